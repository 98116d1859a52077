"""The grid of parameters, and the record of tuning: every trial, the selected one per fold, the cost frontier."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from math import inf, isnan, nan
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.errors import DuplicateError, ParameterError
from equipoise.io import json
from equipoise.types import nan_equal

if TYPE_CHECKING:
    from equipoise.types import Floats

NESTED = "held-out "
"""The prefix of the metric name of a score by nested cross-validation; scores of single trials do not have it."""

Value = str | int | float | bool | None
Params = Mapping[str, Value]


@nan_equal
@dataclass(frozen=True, slots=True)
class Trial:
    """One point of the grid, measured on all units.

    ``cost`` is the cost per unit at this point (retrieved tokens, for retrieval);
    ``reachable`` the share of units that can be correct: those whose answer is not split by a chunk border.
    """

    params: Params
    value: float
    chance: float | None = None
    cost: float | None = None
    reachable: float | None = None


@nan_equal
@dataclass(frozen=True, slots=True)
class FoldSelection:
    """The trial selected on the other folds: its value there (``inner``), on the fold (``outer``), on ``n`` units.

    With several splits, one entry represents all folds with the same selection: ``times`` is their number,
    ``n`` is the number of units in them together, and both values are means over them.
    """

    params: Params
    inner: float
    outer: float
    n: int
    times: int = 1


@nan_equal
@dataclass(frozen=True, slots=True)
class TuningRecord:
    """The tuning of one system. Values are fractions.

    ``best`` and ``baseline`` are indices into ``trials``; ``optimistic`` is the value of the best trial on the
    units that selected it, ``nested`` the value on held-out units. ``frontier`` holds the trials that no
    cheaper one equals, cheapest first; ``within_budget`` is the index there of the best trial within ``budget``.
    Without ``folds``, ``nested`` is NaN. ``tried`` is the number of trials, from the first
    on, of the grid; a baseline beyond them was evaluated but could not be selected. ``nested`` is the mean
    over ``splits`` splits into folds, and ``split_sd`` the standard deviation of the score of one split.
    """

    metric: str
    trials: tuple[Trial, ...]
    best: int
    baseline: int | None
    optimistic: float
    nested: float
    folds: tuple[FoldSelection, ...]
    frontier: tuple[Trial, ...] = ()
    cost_unit: str = ""
    budget: float | None = None
    within_budget: int | None = None
    tried: int | None = None
    splits: int = 1
    split_sd: float | None = None

    @property
    def grid(self) -> tuple[Trial, ...]:
        """The trials of the grid, within the budget or not."""
        return self.trials[: self.tried]

    @property
    def affordable(self) -> tuple[Trial, ...]:
        """The trials of the grid that could be chosen: those within the budget."""
        if self.budget is None:
            return self.grid
        return tuple(trial for trial in self.grid if trial.cost is not None and trial.cost <= self.budget)

    @property
    def fold_count(self) -> int:
        """The number of folds of a split; 0 without nested cross-validation."""
        return sum(choice.times for choice in self.folds) // self.splits

    @property
    def trial_metric(self) -> str:
        """The name of the metric of a single trial."""
        return self.metric.removeprefix(NESTED)

    @property
    def gap(self) -> float:
        """How much better the tuned system looks on the units that tuned it."""
        return self.optimistic - self.nested

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> TuningRecord:
        """The inverse of ``to_dict``; content of another shape raises ``KeyError`` or ``TypeError``.

        >>> trial = Trial({"top_k": 5}, 0.5)
        >>> chosen = FoldSelection({"top_k": 5}, 0.5, 0.5, 4, times=2)
        >>> tuning = TuningRecord("HR", (trial,), 0, None, 0.5, 0.5, (chosen,), splits=2, split_sd=0.1)
        >>> TuningRecord.from_dict(tuning.to_dict()) == tuning
        True
        """
        trials = tuple(map(_trial, json.items(content["trials"])))
        frontier = tuple(map(_trial, json.items(content["frontier"])))

        def place(name: str, among: tuple[Trial, ...], past: int = 0) -> int | None:
            value = content[name]
            return None if value is None else json.integer(value, below=len(among) + past)

        return cls(
            json.text(content["metric"]),
            trials,
            json.integer(content["best"], below=len(trials)),
            place("baseline", trials),
            json.real(content["optimistic"]),
            json.real(content["nested"]),
            tuple(map(_choice, json.items(content["folds"]))),
            frontier,
            json.text(content["cost_unit"]),
            json.optional(content["budget"]),
            place("within_budget", frontier),
            place("tried", trials, past=1),
            max(1, json.integer(content["splits"])),
            json.optional(content["split_sd"]),
        )


def _trial(content: Any) -> Trial:
    return Trial(
        json.mapping(content["params"]),
        json.real(content["value"]),
        *(json.optional(content[name]) for name in ("chance", "cost", "reachable")),
    )


def _choice(content: Any) -> FoldSelection:
    return FoldSelection(
        json.mapping(content["params"]),
        json.real(content["inner"]),
        json.real(content["outer"]),
        json.integer(content["n"]),
        json.integer(content["times"]),
    )


# The grid: every combination of the values of some parameters.


def parameter_grid(
    *, valid: Callable[[Params], bool] | None = None, **axes: Iterable[Value]
) -> tuple[dict[str, Value], ...]:
    """All combinations of the axes, the last axis fastest; without axes, one empty point.

    ``valid`` excludes the points for which it is false; it is an error if it excludes all.

    >>> parameter_grid(chunk_size=[256, 512], top_k=[5, 10])[1]
    {'chunk_size': 256, 'top_k': 10}
    >>> len(parameter_grid(chunk_size=[64, 128], overlap=[0, 64], valid=overlap_fits))
    3
    """
    values = {name: _values(name, options) for name, options in axes.items()}
    points = [dict(zip(values, point, strict=True)) for point in product(*values.values())]
    valid_points = tuple(point for point in points if valid is None or valid(point))
    if not valid_points:
        options_text = "; ".join(f"{name} {', '.join(map(str, options))}" for name, options in values.items())
        raise ParameterError(f"there is no valid configuration ({options_text})", hint=_constraint_text(valid))
    return valid_points


def overlap_fits(params: Params) -> bool:
    """The overlap must be smaller than the chunk size."""
    overlap, size = params.get("overlap"), params.get("chunk_size")
    return overlap is None or size is None or float(overlap) < float(size)


def _values(name: str, options: Iterable[Value]) -> tuple[Value, ...]:
    if isinstance(options, str | bytes) or not isinstance(options, Iterable):
        raise ParameterError(f"{name}={options!r} is not a list of values", hint=f"write {name}=[{options!r}]")
    values = tuple(options)
    if not values:
        raise ParameterError(f"the axis {name} has no values", hint="give it one, or leave it out")
    for index, value in enumerate(values):
        if not isinstance(value, str | int | float | None):
            raise ParameterError(
                f"{name} holds a {type(value).__name__}, which is not a plain value",
                hint="use a string or a number",
            )
        if value in values[:index]:
            raise DuplicateError(
                f"the axis {name} holds {value!r} twice",
                hint="a trial that runs twice only costs time: name every value once",
            )
    return values


def _constraint_text(valid: Callable[[Params], bool] | None) -> str:
    """The constraint of a point: the first line of the docstring of the rule, as a clause."""
    rule = (valid.__doc__ or "").strip().partition("\n")[0].removesuffix(".")
    return f"{rule[0].lower()}{rule[1:]}" if rule else "change the values of the axes"


# Equal budgets: the best trial within a budget, and the Pareto frontier of cost and value.


def pareto_frontier(trials: Sequence[Trial]) -> tuple[Trial, ...]:
    """The Pareto-optimal trials, cheapest first: a more expensive trial only if it is better.

    Cost and value both increase strictly; of trials with equal cost and value the first is used. Trials
    without a cost or without a value are not on it.

    >>> dear, cheap, worse = (Trial({}, value, cost=cost) for value, cost in [(0.6, 9), (0.4, 2), (0.4, 6)])
    >>> pareto_frontier([dear, cheap, worse]) == (cheap, dear)
    True
    """
    return tuple(trials[index] for index in pareto_front(*_columns(trials)))


def pareto_front(costs: Floats, values: Floats) -> list[int]:
    """The points that no other one beats in value at no more cost, cheapest first; of equal points the first.

    >>> pareto_front(np.array([9.0, 2.0, 6.0]), np.array([0.6, 0.4, 0.4]))
    [1, 0]
    """
    order = np.lexsort((-values, costs))
    order = order[~np.isnan(costs[order] + values[order])]
    before = np.maximum.accumulate(np.concatenate([[-inf], values[order]]))[:-1]
    indices: list[int] = order[values[order] > before].tolist()
    return indices


def best_within_budget(trials: Sequence[Trial], budget: float) -> int | None:
    """The index of the best trial that costs at most ``budget``; None if all cost more.

    Of equal values the cheaper is chosen, then the earlier. A trial of unknown cost is not affordable.

    >>> best_within_budget([Trial({"k": 1}, 0.4, cost=2), Trial({"k": 5}, 0.6, cost=9)], budget=5)
    0
    """
    if isnan(budget) or budget < 0:
        raise ParameterError(f"a budget of {budget} allows nothing", hint="give a positive number")
    costs, values = _columns(trials)
    order = np.lexsort((costs, -values))
    affordable = order[(costs[order] <= budget) & ~np.isnan(values[order])]
    return int(affordable[0]) if len(affordable) else None


def _columns(trials: Sequence[Trial]) -> tuple[Floats, Floats]:
    """The costs and the values; NaN where there is none."""
    costs = np.array([nan if trial.cost is None else trial.cost for trial in trials], dtype=np.float64)
    return costs, np.array([trial.value for trial in trials], dtype=np.float64)
