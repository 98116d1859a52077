"""People who do not exist, going about their days: homes, work, habits, and now and then something new.

A generator for demonstrations and tests. Places have a heavy tail: few are visited by many, most by hardly
anyone. Hours matter, weekends differ, and everybody mostly returns to where they have been.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from equipoise.errors import ParameterError
from equipoise.recipes.places.history import History
from equipoise.stats.draws import checked_seed
from equipoise.types import Floats, Ints

TAIL = 1.1
"""The exponent of Zipf's law for how popular places are."""
EXPLORES = 0.1
"""How often an outing leads somewhere by popularity alone, and not to a habit."""
GOES_TO_WORK, LUNCHES_OUT, GOES_OUT_AFTER, GOES_OUT_AGAIN, RETURNS_BETWEEN = 0.88, 0.45, 0.5, 0.3, 0.4
FEWEST_PLACES = 10
_TOWN, _PERSON = range(2)
"""Streams of randomness."""


class Visit(NamedTuple):
    """Someone arrives somewhere at an hour."""

    hour: int
    place: int


@dataclass(frozen=True)
class Person:
    """Where one person lives, works and likes to go; each habit has an hour of its own."""

    home: int
    work: int
    habits: Ints
    liking: Floats
    hours: Ints

    def outing(self, hour: int, popularity: Floats, rng: np.random.Generator) -> int:
        """Somewhere to go at this hour: a habit whose hour is near, or anywhere."""
        if rng.random() < EXPLORES:
            return int(rng.choice(len(popularity), p=popularity))
        fit = self.liking * np.exp(-np.abs(self.hours - hour) / 3.0)
        return int(rng.choice(self.habits, p=fit / fit.sum()))


def simulate_mobility(users: int = 60, days: int = 28, places: int = 300, *, seed: int = 0) -> History:
    """The visits of so many users in so many days, with their hours; the same seed gives the same visits.

    A user's days do not depend on how many other users there are.

    >>> history = simulate_mobility(users=3, days=7, places=50)
    >>> history.names.tolist(), history.classes
    (['u0', 'u1', 'u2'], 50)
    """
    for what, given, least in (("users", users, 1), ("days", days, 1), ("places", places, FEWEST_PLACES)):
        if given < least:
            raise ParameterError(f"{given} {what} make no mobility", hint=f"give at least {least}")
    popularity = _popularity(places, np.random.default_rng([checked_seed(seed), _TOWN]))
    names: list[str] = []
    visits: list[Visit] = []
    for user in range(users):
        rng = np.random.default_rng([seed, _PERSON, user])
        life = _life(_person(popularity, rng), days, popularity, rng)
        names += [f"u{user}"] * len(life)
        visits += life
    hours, gone = zip(*visits, strict=True)
    return History.of(np.array(names, dtype=object), np.array(gone), classes=places, hours=np.array(hours))


def _popularity(places: int, rng: np.random.Generator) -> Floats:
    """Zipf's law over places in a random order, so that a code says nothing of its popularity."""
    share = 1.0 / np.arange(1, places + 1) ** TAIL
    return rng.permutation(share / share.sum())


def _person(popularity: Floats, rng: np.random.Generator) -> Person:
    """Home is anywhere; work and habits are where many go."""
    count = 3 + min(int(rng.geometric(0.25)), len(popularity) // 2 - 3)
    chosen = rng.choice(len(popularity), size=count + 1, replace=False, p=popularity)
    liking = 1.0 / np.arange(1, count + 1)
    return Person(
        home=int(rng.integers(len(popularity))),
        work=int(chosen[0]),
        habits=chosen[1:],
        liking=liking,
        hours=rng.integers(8, 22, size=count),
    )


def _life(person: Person, days: int, popularity: Floats, rng: np.random.Generator) -> list[Visit]:
    """All visits of one person; staying where one is, is no visit."""
    visits: list[Visit] = [Visit(7, person.home)]
    for day in range(days):
        plan = _weekend(person, popularity, rng) if day % 7 >= 5 else _weekday(person, popularity, rng)
        for visit in plan:
            if visit.place != visits[-1].place:
                visits.append(visit)
    return visits


def _weekday(person: Person, popularity: Floats, rng: np.random.Generator) -> list[Visit]:
    plan: list[Visit] = []
    if rng.random() < GOES_TO_WORK:
        plan.append(Visit(int(rng.integers(7, 10)), person.work))
        if rng.random() < LUNCHES_OUT:
            plan += [Visit(12, person.outing(12, popularity, rng)), Visit(13, person.work)]
    hour = int(rng.integers(17, 20))
    if rng.random() < GOES_OUT_AFTER:
        plan.append(Visit(hour, person.outing(hour, popularity, rng)))
        if rng.random() < GOES_OUT_AGAIN:
            plan.append(Visit(hour + 1, person.outing(hour + 1, popularity, rng)))
    return [*plan, Visit(hour + 3, person.home)]


def _weekend(person: Person, popularity: Floats, rng: np.random.Generator) -> list[Visit]:
    plan: list[Visit] = []
    for hour in np.sort(rng.choice(np.arange(9, 22), size=1 + min(int(rng.poisson(1.2)), 5), replace=False)):
        plan.append(Visit(int(hour), person.outing(int(hour), popularity, rng)))
        if rng.random() < RETURNS_BETWEEN:
            plan.append(Visit(int(hour) + 1, person.home))
    return [*plan, Visit(23, person.home)]
