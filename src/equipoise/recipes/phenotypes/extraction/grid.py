"""The configurations that a tuning tries: one grid for every model, thresholds as quantiles of its scores."""

from __future__ import annotations

from dataclasses import dataclass
from math import floor

import numpy as np

from equipoise.errors import ParameterError
from equipoise.tasks.extract import Candidates, Settings
from equipoise.tasks.extract.candidates import SCORE_DECIMALS
from equipoise.tasks.extract.stages import outcome
from equipoise.tune.grid import grid
from equipoise.tune.record import Params

NUM_RESULTS = (1, 2, 3, 5, 10)
THRESHOLDS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
CONFIDENCES = (0.0, 0.5, 0.8, 0.95)
DEEPEST = max(NUM_RESULTS)
_PLACES = 4


@dataclass(frozen=True)
class Point:
    """A configuration in terms that mean the same for every model.

    ``threshold`` and ``confidence`` are shares: so many of the distinct scores that a model gave to the best
    term of a chunk lie below it. Scores of one model lie between .2 and .6 and those of another between .7
    and .9, so one number for both would be generous to one of them. Scores that many chunks share, as perfect
    matches do, count once: else half of the shares would be that one number. A share of 0 drops nothing. The
    scores are those of all documents, for they know nothing of the gold.
    """

    num_results: int
    threshold: float
    confidence: float

    def settings(self, scores: Candidates) -> Settings:
        """The configuration in the scores of a model."""
        best = np.unique(scores.scores[:, 0]) if len(scores) else np.zeros(1)
        lowest = min(0.0, _floored(float(scores.scores.min(initial=0.0))))
        cut, sure = (
            # Downwards, so that what scores exactly the quantile is not lost to the places.
            _floored(float(np.quantile(best, share))) if share else lowest
            for share in (self.threshold, self.confidence)
        )
        return Settings(min(self.num_results, scores.depth), cut, sure, top_term_only=self.num_results == 1)


def stricter_confidence(params: Params) -> bool:
    """The confidence is 0 or above the threshold: below it, it changes nothing."""
    confidence, threshold = params["confidence"], params["threshold"]
    return not confidence or float(confidence) > float(threshold or 0.0)


def points(seed: int = 0) -> tuple[Point, ...]:
    """All points of the grid, in an order drawn at random.

    >>> len(points()), points(1) == points(1), set(points(1)) == set(points(2))
    (170, True, True)
    """
    every = grid(
        valid=stricter_confidence,
        num_results=NUM_RESULTS,
        threshold=THRESHOLDS,
        confidence=CONFIDENCES,
    )
    order = np.random.default_rng([seed, len(every)]).permutation(len(every))
    return tuple(Point(**every[place]) for place in order.tolist())


def trial_settings(found: Candidates, budget: int, seed: int = 0) -> tuple[Settings, ...]:
    """As many configurations as the budget has trials, with different outcomes as long as there are such.

    Every model takes them from the same points in the same order. One that predicts what an earlier one did
    would be a trial spent on nothing; it is taken only where the grid holds no other, so that all models get
    the same number.
    """
    if budget < 1:
        raise ParameterError(f"a budget of {budget} trials tries nothing", hint="give 1 or more")
    seen: set[bytes] = set()
    fresh: list[Settings] = []
    repeated: list[Settings] = []
    for each in (point.settings(found) for point in points(seed)):
        if len(fresh) == budget:
            break
        told = outcome(found, each)
        (repeated if told in seen else fresh).append(each)
        seen.add(told)
    return (*fresh, *repeated[: budget - len(fresh)])


def axes() -> dict[str, list[float]]:
    """The values of each parameter, as a record keeps them."""
    return {
        "num_results": list(NUM_RESULTS),
        "threshold quantile": list(THRESHOLDS),
        "confidence quantile": list(CONFIDENCES),
    }


def _floored(score: float) -> float:
    """Rounded down; the scores have more decimals, and the last of them does not come from arithmetic."""
    return floor(round(score * 10**_PLACES, SCORE_DECIMALS - _PLACES)) / 10**_PLACES
