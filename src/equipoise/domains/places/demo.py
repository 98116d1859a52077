"""A small example from end to end: made-up visits, a Markov model trained on most of them, and its scores."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from equipoise.config import StatsConfig
from equipoise.domains.places.score import PlaceScores, on_device, score_places
from equipoise.domains.places.visits import (
    ContextCounts,
    PredictionCases,
    VisitHistory,
    context_key,
    transition_counts,
    user_transition_counts,
    user_visit_counts,
)
from equipoise.errors import ParameterError
from equipoise.io.arrays import segment_indices
from equipoise.io.atomic import write_bytes

if TYPE_CHECKING:
    from equipoise.report.charts.chart import Chart
    from equipoise.stats.calibration_curve import CalibrationCurve
    from equipoise.types import Floats, Ids, Ints

# Simulated users with a home, work, habits, and occasional new places.

POPULARITY_EXPONENT = 1.1
"""The exponent of Zipf's law for the popularity of places."""
EXPLORATION_PROBABILITY = 0.1
"""The probability that a visit is drawn by popularity and not from the habits."""
GOES_TO_WORK, LUNCHES_OUT, GOES_OUT_AFTER, GOES_OUT_AGAIN, RETURNS_BETWEEN = 0.88, 0.45, 0.5, 0.3, 0.4
FEWEST_PLACES = 10
CITY = (47.38, 8.54)
"""Latitude and longitude of the centre of the simulated city."""
CITY_RADIUS_DEGREES = 0.05
_TOWN, _PERSON, _MAP = range(3)
"""Streams of randomness."""


class SimulatedVisit(NamedTuple):
    """A place and the hour of arrival."""

    hour: int
    place: int


@dataclass(frozen=True)
class SimulatedUser:
    """Home, work and habits of one user; each habit has an hour."""

    home: int
    work: int
    habits: Ints
    weights: Floats
    hours: Ints

    def outing(self, hour: int, popularity: Floats, rng: np.random.Generator) -> int:
        """The next place at this hour: a habit with a similar hour, or any place."""
        if rng.random() < EXPLORATION_PROBABILITY:
            return int(rng.choice(len(popularity), p=popularity))
        fit = self.weights * np.exp(-np.abs(self.hours - hour) / 3.0)
        return int(rng.choice(self.habits, p=fit / fit.sum()))


def simulate_mobility(
    users: int = 60,
    days: int = 28,
    places: int = 300,
    *,
    seed: int = 0,
    progress: Callable[[int], None] | None = None,
) -> VisitHistory:
    """Simulate visits of users with a home, work and habits.

    The visits of a user do not depend on the number of other users.

    Parameters
    ----------
    users
        Number of users.
    days
        Number of days.
    places
        Number of places.
    seed
        The same seed gives the same visits.
    progress
        Called with the number of finished users.

    Returns
    -------
    VisitHistory
        Visits with user, place and hour.

    Examples
    --------
    >>> history = simulate_mobility(users=3, days=7, places=50)
    >>> history.names.tolist(), history.classes
    (['u0', 'u1', 'u2'], 50)
    """
    for name, value, least in (("users", users, 1), ("days", days, 1), ("places", places, FEWEST_PLACES)):
        if value < least:
            raise ParameterError(f"{value} {name} are too few for a simulation", hint=f"give at least {least}")
    popularity = _popularity(places, StatsConfig(seed=seed).rng(_TOWN))
    names: list[str] = []
    visits: list[SimulatedVisit] = []
    for user in range(users):
        rng = np.random.default_rng([seed, _PERSON, user])
        user_visits = _simulate_visits(_simulate_user(popularity, rng), days, popularity, rng)
        names += [f"u{user}"] * len(user_visits)
        visits += user_visits
        if progress is not None:
            progress(user + 1)
    hours, visited = zip(*visits, strict=True)
    return VisitHistory.of(np.array(names, dtype=object), np.array(visited), classes=places, hours=np.array(hours))


def _popularity(places: int, rng: np.random.Generator) -> Floats:
    """Zipf's law over places in a random order, so that codes are independent of popularity."""
    share = 1.0 / np.arange(1, places + 1) ** POPULARITY_EXPONENT
    return rng.permutation(share / share.sum())


def _simulate_user(popularity: Floats, rng: np.random.Generator) -> SimulatedUser:
    """Home is a uniformly random place; work and habits are drawn by popularity."""
    count = 3 + min(int(rng.geometric(0.25)), len(popularity) // 2 - 3)
    chosen = rng.choice(len(popularity), size=count + 1, replace=False, p=popularity)
    weights = 1.0 / np.arange(1, count + 1)
    return SimulatedUser(
        home=int(rng.integers(len(popularity))),
        work=int(chosen[0]),
        habits=chosen[1:],
        weights=weights,
        hours=rng.integers(8, 22, size=count),
    )


def _simulate_visits(
    person: SimulatedUser, days: int, popularity: Floats, rng: np.random.Generator
) -> list[SimulatedVisit]:
    """All visits of one user; staying at a place is not a visit."""
    visits: list[SimulatedVisit] = [SimulatedVisit(7, person.home)]
    for day in range(days):
        plan = _weekend(person, popularity, rng) if day % 7 >= 5 else _weekday(person, popularity, rng)
        for visit in plan:
            if visit.place != visits[-1].place:
                visits.append(visit)
    return visits


def _weekday(person: SimulatedUser, popularity: Floats, rng: np.random.Generator) -> list[SimulatedVisit]:
    plan: list[SimulatedVisit] = []
    if rng.random() < GOES_TO_WORK:
        plan.append(SimulatedVisit(int(rng.integers(7, 10)), person.work))
        if rng.random() < LUNCHES_OUT:
            plan += [SimulatedVisit(12, person.outing(12, popularity, rng)), SimulatedVisit(13, person.work)]
    hour = int(rng.integers(17, 20))
    if rng.random() < GOES_OUT_AFTER:
        plan.append(SimulatedVisit(hour, person.outing(hour, popularity, rng)))
        if rng.random() < GOES_OUT_AGAIN:
            plan.append(SimulatedVisit(hour + 1, person.outing(hour + 1, popularity, rng)))
    return [*plan, SimulatedVisit(hour + 3, person.home)]


def _weekend(person: SimulatedUser, popularity: Floats, rng: np.random.Generator) -> list[SimulatedVisit]:
    plan: list[SimulatedVisit] = []
    for hour in np.sort(rng.choice(np.arange(9, 22), size=1 + min(int(rng.poisson(1.2)), 5), replace=False)):
        plan.append(SimulatedVisit(int(hour), person.outing(int(hour), popularity, rng)))
        if rng.random() < RETURNS_BETWEEN:
            plan.append(SimulatedVisit(int(hour) + 1, person.home))
    return [*plan, SimulatedVisit(23, person.home)]


# A small probabilistic model: first-order transitions with interpolated smoothing.


@dataclass(frozen=True, eq=False)
class MarkovModel:
    """The next place by user and previous place.

    Four distributions from general to specific: visits of all users (each place counted once more, so
    that none is impossible), transitions of all users from the previous place, the user's visits, the user's
    transitions from the previous place. Each leaves a share to the preceding one: with n visits to d different places,
    d/(n + d) of the probability (Witten and Bell, IEEE Transactions on Information Theory 1991).

    >>> training, cases = VisitHistory.of(["ann"] * 7, [0, 1, 0, 1, 0, 2, 0]).split(0.1)
    >>> MarkovModel(training).probabilities(cases).shape
    (1, 3)
    """

    history: VisitHistory

    def logits(self, cases: PredictionCases) -> NDArray[np.float32]:
        """The logarithm of the probability of every place, one row per case."""
        return np.log(self.probabilities(cases)).astype(np.float32)

    def probabilities(self, cases: PredictionCases) -> Floats:
        """The probability of every place, one row per case; each row sums to 1."""
        history = self.history
        users = history.codes_of(cases.users)
        class_probabilities = np.tile((history.counts + 1.0) / (len(history) + history.classes), (len(cases), 1))
        both = context_key(users, cases.previous, history.classes)
        for tally, contexts in zip(self._tallies, (cases.previous, users, both), strict=True):
            _mix_counts(class_probabilities, tally, tally.rows(contexts))
        return class_probabilities

    @cached_property
    def _tallies(self) -> tuple[ContextCounts, ContextCounts, ContextCounts]:
        return (
            transition_counts(self.history),
            user_visit_counts(self.history),
            user_transition_counts(self.history),
        )


def _mix_counts(probabilities: Floats, tally: ContextCounts, rows: Ints) -> None:
    """Mix these counts into the probabilities, in place; rows without counts are unchanged."""
    different, visits = tally.lengths(rows), tally.totals(rows)
    is_known = rows >= 0
    total = np.where(is_known, visits + different, 1)
    probabilities *= np.where(is_known, different / total, 1.0)[:, None]
    items = segment_indices(tally.starts[rows], different)
    unit = np.repeat(np.arange(len(rows)), different)
    probabilities[unit, tally.places[items]] += tally.counts[items] / total[unit]


MODEL = "interpolated-model"
"""The name of ``MarkovModel`` in results, unlike that of the baseline ``markov``, which does not interpolate."""
DAY = ((11, "00-10"), (16, "11-15"), (20, "16-19"), (24, "20-23"))
"""Parts of the day: the hour at which each ends, and its name."""


@dataclass(frozen=True)
class PlacesDemo:
    """Training history, test cases, and predictions of the model."""

    learned: VisitHistory
    cases: PredictionCases
    logits: NDArray[np.float32]
    seed: int = 0
    device: str | None = None

    @classmethod
    def of(
        cls,
        users: int = 60,
        days: int = 28,
        places: int = 300,
        *,
        seed: int = 0,
        device: str | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> PlacesDemo:
        """Simulate visits, train on the first four fifths of each user's visits, and predict the others.

        The parameters are those of ``simulate_mobility``: ``users``, ``days``, ``places``, ``seed`` and ``progress``.
        Predictions are scored on the ``device``.
        """
        learned, cases = simulate_mobility(users, days, places, seed=seed, progress=progress).split()
        return cls(learned, cases, MarkovModel(learned).logits(cases), seed, device)

    @cached_property
    def scores(self) -> PlaceScores:
        """The scores of the model and of the random, majority, per-user and Markov baselines."""
        hours = self.cases.hours
        return score_places(
            self.logits if self.device is None else on_device(self.logits, self.device),
            self.cases.targets,
            users=self.cases.users,
            unit_ids=self.cases.unit_ids,
            history=self.learned,
            previous=self.cases.previous,
            slices=None if hours is None else {"hour": part_of_day(hours)},
            coordinates=self.coordinates,
            system=MODEL,
            config=StatsConfig(seed=self.seed),
        )

    @cached_property
    def coordinates(self) -> Floats:
        """Latitude and longitude of every place, normally distributed around the centre of the city."""
        spread = np.random.default_rng([self.seed, _MAP]).normal(0.0, CITY_RADIUS_DEGREES, (self.learned.classes, 2))
        return spread + CITY

    @property
    def reliability(self) -> CalibrationCurve:
        """The reliability diagram of the first place."""
        calibration = self.scores.calibration
        assert calibration is not None, "the logits of the demo are finite"
        return calibration.curves[1]

    def charts(self) -> tuple[Chart, ...]:
        """Accuracy over k, ranks, reliability, confusion of frequent places, and the map of the distances."""
        return self.scores.charts()

    def write(self, folder: Path) -> list[Path]:
        """The files that ``eq places score`` takes: logits, targets, users, previous places, coordinates, visits."""
        folder.mkdir(parents=True, exist_ok=True)
        arrays: dict[str, NDArray[Any]] = {
            "logits.npy": self.logits,
            "targets.npy": self.cases.targets,
            "user.npy": self.cases.users.astype(str),
            "previous.npy": self.cases.previous,
            "coordinates.npy": self.coordinates,
            "hour.npy": np.array([]) if self.cases.hours is None else self.cases.hours,
        }
        for name, array in arrays.items():
            np.save(folder / name, array, allow_pickle=False)
        visits = zip(self.learned.users.tolist(), self.learned.places.tolist(), strict=True)
        lines = ["user,place", *(f"{user},{place}" for user, place in visits)]
        write_bytes(folder / "visits.csv", ("\n".join(lines) + "\n").encode())
        return [folder / name for name in (*arrays, "visits.csv")]


def part_of_day(hours: NDArray[Any]) -> Ids:
    """The part of the day that an hour belongs to.

    >>> part_of_day(np.array([7, 12, 23])).tolist()
    ['00-10', '11-15', '20-23']
    """
    ends = np.array([end for end, _ in DAY])
    names = np.array([name for _, name in DAY], dtype=object)
    return names[np.searchsorted(ends, hours, side="right")]
