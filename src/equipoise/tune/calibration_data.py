"""Simulated fixtures for tuning: questions, answers and configurations whose true accuracy is known.

A configuration answers a question rightly when its strength, the ease of the question and luck add up to
more than nothing. Ease is shared by all configurations, luck by those that differ in top_k alone: a larger
top_k then never loses a hit. Ease and luck are normal and their variances add up to 1, so the true accuracy
is the normal distribution function of the strength.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from equipoise.data.split import Fold, folds
from equipoise.types import Floats, Ints

QUESTIONS, TWINS, FOLDS, CONFIGURATIONS = 100, 10, 5, 27
SPLITS = 10
"""Fewer than comparisons use, for speed: the score then varies a little more, never less."""
CATEGORY_BORDERS = (-1.5, -0.7, 0.0, 0.7, 1.5)


@dataclass(frozen=True)
class Scenario:
    """Strengths of the configurations (a row a chunking, a column a top_k).

    ``shared`` is the part of the variance that the questions decide.
    """

    name: str
    strengths: Floats
    shared: float
    promised: bool = True

    @property
    def accuracies(self) -> Floats:
        """The true accuracy of each configuration."""
        from scipy.special import ndtr

        return np.asarray(ndtr(self.strengths.ravel()), dtype=np.float64)


@dataclass(frozen=True)
class SimulatedFixture:
    """Hits of each model (configurations x questions), the splits into folds, and the answers' groups."""

    hits: tuple[Floats, ...]
    splits: list[list[Fold]]
    groups: Ints


def scenarios() -> list[Scenario]:
    """What grids look like: nothing to choose, one thing to choose, and a smooth hill with top_k.

    Real configurations answer the same questions and mostly agree. Those of the last scenario share nothing,
    which no promise covers: it shows how far the nested figure can lag when four fifths of the
    questions often miss the one good configuration that all of them find.
    """
    level = np.full((CONFIGURATIONS, 1), 0.7)
    peak = np.where(np.arange(CONFIGURATIONS)[:, None] == CONFIGURATIONS // 2, 1.1, 0.5)
    hill = 0.15 * np.array([0.0, 0.5, 1.0, 0.8, 1.5, 1.2, 0.5, 1.0, 0.2])
    smooth = hill[:, None] + np.array([-0.1, 0.3, 0.6])
    named = [("all equal", level), ("one clearly best", peak), ("smooth grid", smooth)]
    found = [Scenario(name, strengths, shared) for name, strengths in named for shared in (0.5, 0.8)]
    return [*found, Scenario("one clearly best", peak, 0.0, promised=False)]


def simulated_fixture(scenario: Scenario, rng: np.random.Generator, *, models: int = 1) -> SimulatedFixture:
    """Questions in categories of different ease, some of them twins with one answer, dealt to folds.

    Of several models, each has luck of its own with each question, half of all the luck there is.

    >>> fixture = simulated_fixture(scenarios()[0], np.random.default_rng(0))
    >>> fixture.hits[0].shape, len(fixture.splits), len(fixture.splits[0])
    ((27, 100), 10, 5)
    """
    groups = np.arange(QUESTIONS)
    groups[QUESTIONS - TWINS :] = np.arange(TWINS)
    ease = rng.normal(size=QUESTIONS)[groups]
    categories = np.digitize(ease + rng.normal(size=QUESTIONS), CATEGORY_BORDERS)
    kinds = {"stratify": categories.tolist(), "groups": groups.tolist()}
    splits = [folds(range(QUESTIONS), FOLDS, **kinds, rng=rng) for _ in range(SPLITS)]
    hits = tuple(_hits(scenario, ease, models > 1, rng) for _ in range(models))
    return SimulatedFixture(hits, splits, groups)


def _hits(scenario: Scenario, ease: Floats, own: bool, rng: np.random.Generator) -> Floats:
    luck = rng.normal(size=(len(scenario.strengths), 1, QUESTIONS))
    if own:
        luck = np.sqrt(0.5) * (luck + rng.normal(size=QUESTIONS))
    latent = np.sqrt(scenario.shared) * ease + np.sqrt(1.0 - scenario.shared) * luck
    hits = latent + scenario.strengths[:, :, None] > 0.0
    return np.asarray(hits.reshape(-1, QUESTIONS), dtype=np.float64)
