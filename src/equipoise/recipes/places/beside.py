"""The baselines that can be had with what is given, for the same units as a system."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from equipoise.errors import ParameterError
from equipoise.metrics.labels import ClassF1
from equipoise.recipes.places.baselines import (
    Guess,
    guess_majority,
    guess_markov,
    guess_per_user,
    random_level,
)
from equipoise.recipes.places.history import History
from equipoise.tasks.classify import Classified
from equipoise.types import Ids, Ints


@dataclass(frozen=True)
class Beside:
    """What baselines can learn from, and whom and from where they are asked."""

    padding: Any = None
    train_counts: Ints | None = None
    history: History | None = None
    users: Ids | None = None
    previous: Any = None


def baselines_of(
    classified: Classified, given: Beside, cutoffs: tuple[int, ...]
) -> dict[str, Classified | Mapping[str, float]]:
    """Random is known exactly; the others say where they would have put the target of each unit."""
    # Micro F1 is the accuracy of the first class, so that of a guess is known too.
    guess = random_level(classified.classes, cutoffs) | {ClassF1("micro").name: 1.0 / classified.classes}
    found: dict[str, Classified | Mapping[str, float]] = {"random": guess}
    targets = classified.labels.true
    asked = {"exclude": given.padding, "unit_ids": classified.ranking.unit_ids}
    if given.train_counts is not None:
        found["majority"] = _like(classified, guess_majority(given.train_counts, targets, **asked))
    if given.history is None:
        if given.previous is not None:
            raise ParameterError(
                "the places before were given, and no history to learn moves from", hint="give a history too"
            )
        return found
    if given.users is None:
        raise ParameterError("a history tells of users, and the rows name none", hint="give users, one a row")
    found["user"] = _like(classified, guess_per_user(given.history, given.users, targets, **asked))
    if given.previous is not None:
        moved = guess_markov(given.history, given.users, given.previous, targets, **asked)
        found["markov"] = _like(classified, moved)
    return found


def _like(classified: Classified, guess: Guess) -> Classified:
    """A guess as the same kind of thing as the system beside it."""
    return Classified(guess.ranking, guess.labels, classified.answerable, classified.classes)
