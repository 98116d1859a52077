"""The configurations that a tuning tries: the same for every model, thresholds as quantiles of its scores."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from equipoise.errors import ParameterError
from equipoise.tasks.extract import Candidates, Settings
from equipoise.tune.grid import grid
from equipoise.tune.record import Params

NUM_RESULTS = (1, 2, 3, 5, 10)
THRESHOLDS = (0.0, 0.25, 0.5, 0.65, 0.8, 0.9, 0.95)
CONFIDENCES = (0.0, 0.8, 0.95)
DEEPEST = max(NUM_RESULTS)
_PLACES = 4


@dataclass(frozen=True)
class Point:
    """A configuration in terms that mean the same for every model.

    ``threshold`` and ``confidence`` are shares: so many of a model's chunks have a best term below it. Scores
    of one model lie between .2 and .6 and those of another between .7 and .9, so one number for both would be
    generous to one of them.
    """

    num_results: int
    threshold: float
    confidence: float

    def settings(self, scores: Candidates) -> Settings:
        """The configuration in the scores of a model."""
        best = scores.scores[:, 0] if len(scores) else np.zeros(1)
        cut, sure = (
            round(float(np.quantile(best, share)), _PLACES) if share else 0.0
            for share in (self.threshold, self.confidence)
        )
        return Settings(min(self.num_results, scores.depth), cut, sure, top_term_only=self.num_results == 1)


def stricter_confidence(params: Params) -> bool:
    """The confidence is 0 or above the threshold: below it, it changes nothing."""
    confidence, threshold = params["confidence"], params["threshold"]
    return not confidence or float(confidence) > float(threshold or 0.0)


def points(budget: int, seed: int = 0) -> tuple[Point, ...]:
    """As many points of the grid as the budget has trials, drawn at random where it has more.

    >>> len(points(40)), points(40) == points(40), len(points(10_000))
    (40, True, 85)
    """
    if budget < 1:
        raise ParameterError(f"a budget of {budget} trials tries nothing", hint="give 1 or more")
    every = grid(
        valid=stricter_confidence,
        num_results=NUM_RESULTS,
        threshold=THRESHOLDS,
        confidence=CONFIDENCES,
    )
    drawn = np.random.default_rng([seed, len(every)]).permutation(len(every))[:budget]
    return tuple(Point(**every[place]) for place in np.sort(drawn).tolist())


def axes() -> dict[str, list[float]]:
    """The values of each parameter, as a record keeps them."""
    return {
        "num_results": list(NUM_RESULTS),
        "threshold quantile": list(THRESHOLDS),
        "confidence quantile": list(CONFIDENCES),
    }
