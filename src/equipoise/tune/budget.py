"""Equal budgets: what is the best that can be had for a price, and for every price?"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, isnan, nan

import numpy as np

from equipoise.errors import ParameterError
from equipoise.tune.record import Trial
from equipoise.types import Floats


def frontier(trials: Sequence[Trial]) -> tuple[Trial, ...]:
    """The trials that nothing else beats: dearer ones only where they are better, cheapest first.

    Cost and value both rise strictly; of trials with equal cost and value the first stands for all. Trials
    without a cost or without a value have no place on it.

    >>> dear, cheap, worse = (Trial({}, value, cost=cost) for value, cost in [(0.6, 9), (0.4, 2), (0.4, 6)])
    >>> frontier([dear, cheap, worse]) == (cheap, dear)
    True
    """
    costs, values = _columns(trials)
    order = np.lexsort((-values, costs))
    order = order[~np.isnan(costs[order] + values[order])]
    before = np.maximum.accumulate(np.concatenate([[-inf], values[order]]))[:-1]
    return tuple(trials[place] for place in order[values[order] > before].tolist())


def best_within(trials: Sequence[Trial], budget: float) -> int | None:
    """The place of the best trial that costs no more than ``budget``; None when all cost more.

    Of equal values the cheaper wins, then the earlier. A trial of unknown cost is not affordable.

    >>> best_within([Trial({"k": 1}, 0.4, cost=2), Trial({"k": 5}, 0.6, cost=9)], budget=5)
    0
    """
    if isnan(budget) or budget < 0:
        raise ParameterError(f"a budget of {budget} buys nothing", hint="give a positive number")
    costs, values = _columns(trials)
    order = np.lexsort((costs, -values))
    affordable = order[(costs[order] <= budget) & ~np.isnan(values[order])]
    return int(affordable[0]) if len(affordable) else None


def _columns(trials: Sequence[Trial]) -> tuple[Floats, Floats]:
    """The costs and the values; NaN where there is none."""
    costs = np.array([nan if trial.cost is None else trial.cost for trial in trials], dtype=np.float64)
    return costs, np.array([trial.value for trial in trials], dtype=np.float64)
