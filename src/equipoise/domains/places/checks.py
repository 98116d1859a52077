"""Checks of a data set of visits: unseen places, users without history, leaked targets, and repeated test rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.checks.base import Observation, declared_checks, evidence_names, join_names, pluralize
from equipoise.domains.places.visits import NO_PREVIOUS_PLACE, read_history, read_test_sequences
from equipoise.errors import FormatError
from equipoise.io.arrays import ARRAY_FORMATS, split_member
from equipoise.stats.formatting import format_count, format_percent

if TYPE_CHECKING:
    from equipoise.domains.places.visits import TestSequences, VisitHistory
    from equipoise.io.text import PathLike
    from equipoise.types import Bools, Ints

MIN_ROWS = 20
"""With fewer rows a feature may equal the target by chance."""
LEAKED = 0.99
"""A feature that equals the target in this share of the rows contains it."""
LONG_SEQUENCE = 8
"""Shorter sequences of places are repeated by the same user."""
MANY_REPEATS = 0.3
"""From this share of targets that equal the previous place on, repeating it is a strong baseline."""


@dataclass(frozen=True, eq=False)
class MobilityData:
    """Training visits and the visits to be predicted; ``train_rows`` are training examples with sequences, if given."""

    train: VisitHistory
    test: TestSequences
    train_rows: TestSequences | None = None

    @cached_property
    def unseen(self) -> Bools:
        """Which targets were never visited in training."""
        counts, targets = self.train.counts, self.test.targets
        inside = targets < len(counts)
        return ~inside | (counts[np.where(inside, targets, 0)] == 0)

    @cached_property
    def new_users(self) -> Bools:
        """Which rows belong to users without a training visit; all False if the users are unknown."""
        if self.test.users is None:
            return np.zeros(len(self.test), dtype=bool)
        return self.train.codes_of(self.test.users) < 0

    @cached_property
    def repeats(self) -> Bools:
        """Which targets equal the previous place."""
        previous = self.test.previous
        return np.zeros(len(self.test), dtype=bool) if previous is None else previous == self.test.targets

    @cached_property
    def unseen_for_user(self) -> Bools:
        """Which targets were never visited by the user of the row."""
        if self.test.users is None:
            return self.unseen
        known = set(zip(map(str, self.train.users.tolist()), self.train.places.tolist(), strict=True))
        rows = zip(map(str, self.test.users.tolist()), self.test.targets.tolist(), strict=True)
        return np.array([row not in known for row in rows], dtype=bool)

    @cached_property
    def shared_columns(self) -> tuple[str, ...]:
        """The columns by which rows of both tables can be compared, besides the target."""
        if self.train_rows is None:
            return ()
        tables = (self.test, self.train_rows)
        return tuple(name for name in ROW_COLUMNS if all(getattr(table, name) is not None for table in tables))

    @cached_property
    def repeated_rows(self) -> Bools | None:
        """Which test rows are training rows; None if no row can be recognised by its time or by a long sequence."""
        if self.train_rows is None:
            return None
        test, train = (_row_keys(rows, self.shared_columns) for rows in (self.test, self.train_rows))
        known = set(train) - {None}
        return np.array([key in known for key in test], dtype=bool) if known and any(test) else None

    @cached_property
    def unchecked(self) -> tuple[str, ...]:
        """The leaks that these tables do not allow to find, each with its reason."""
        missing = []
        if self.repeated_rows is None:
            missing.append(
                "whether test rows are training rows, which needs the time of each row in both tables, or sequences "
                f"of at least {LONG_SEQUENCE} places"
            )
        if not self.test.features:
            missing.append("whether a feature equals the target, because the test table has no features")
        elif len(self.test) < MIN_ROWS:
            missing.append(f"whether a feature equals the target, which needs at least {MIN_ROWS} test rows")
        return tuple(missing)

    def to_dict(self) -> dict[str, Any]:
        """Plain values: counts of visits, users and places."""
        return {
            "train": {
                "visits": len(self.train),
                "users": len(self.train.names),
                "places": int(np.count_nonzero(self.train.counts)),
            },
            "test": {
                "visits": len(self.test),
                "users": None if self.test.users is None else len(np.unique(self.test.users)),
                "places": len(np.unique(self.test.targets)),
                "unseen_targets": int(np.count_nonzero(self.unseen)),
                "unseen_for_user": int(np.count_nonzero(self.unseen_for_user)),
                "rows_of_new_users": int(np.count_nonzero(self.new_users)),
                "repeats": None if self.test.previous is None else int(np.count_nonzero(self.repeats)),
            },
        }


def read_mobility_data(history: PathLike, sequences: PathLike) -> MobilityData:
    """Read training and test visits, and count what makes a test too easy or impossible.

    Parameters
    ----------
    history
        Training visits or examples, as for ``read_history``.
    sequences
        The visits to be predicted, as for ``read_test_sequences``.

    Returns
    -------
    MobilityData
        Counts of unseen targets, new users and repeated places.

    Examples
    --------
    >>> read_mobility_data("train.parquet", "test.parquet").to_dict()  # doctest: +SKIP
    """
    is_table = split_member(history)[0].suffix.casefold() not in ARRAY_FORMATS
    try:
        train_rows = read_test_sequences(history) if is_table else None
    except FormatError:  # sequences without targets have no rows to compare
        train_rows = None
    return MobilityData(read_history(history), read_test_sequences(sequences), train_rows)


def share(mask: Bools, noun: str) -> str:
    """A count and its share in percent: ``5 of 20 rows (25 %)``."""
    count, total = int(np.count_nonzero(mask)), len(mask)
    return f"{format_count(count)} of {pluralize(total, noun)} ({format_percent(round(count / total, 3))})"


def unseen_targets(data: MobilityData) -> Iterator[Observation]:
    """EQ180: targets that training never saw."""
    if data.unseen.any():
        places = np.unique(data.test.targets[data.unseen]).tolist()
        yield Observation(
            data.test.name,
            f"{share(data.unseen, 'target')} {'is a place' if data.unseen.sum() == 1 else 'are places'} without a "
            f"training visit: {join_names([f'place {place}' for place in places])}",
            evidence_names([f"place {place}" for place in places]),
        )


def users_without_history(data: MobilityData) -> Iterator[Observation]:
    """EQ181: users without training visits."""
    if data.new_users.any() and data.test.users is not None:
        users = np.unique(data.test.users[data.new_users]).tolist()
        yield Observation(
            data.test.name,
            f"{share(data.new_users, 'row')} {'belongs' if data.new_users.sum() == 1 else 'belong'} to "
            f"{pluralize(len(users), 'user')} without training visits: {join_names(users)}",
            evidence_names(users),
        )


def leaked_target(data: MobilityData) -> Iterator[Observation]:
    """EQ182: a feature that equals the target."""
    if len(data.test) < MIN_ROWS:
        return
    for name, values in data.test.features.items():
        for what, mask in _matches(values, data.test.targets):
            if mask.mean() >= LEAKED:
                yield Observation(data.test.name, f"{what} {name} equals the target in {share(mask, 'row')}", (name,))
                break


def _matches(values: Sequence[Any], targets: Ints) -> Iterator[tuple[str, Bools]]:
    """Comparisons of a feature with the target: the value itself, or the last and the first item of a list."""
    truth = [str(target) for target in targets.tolist()]
    if any(isinstance(value, list) for value in values):
        for what, index in (("the last item of", -1), ("the first item of", 0)):
            items = [value[index] if isinstance(value, list) and value else None for value in values]
            yield what, _equal(items, truth)
    else:
        yield "the column", _equal(values, truth)


def _equal(values: Sequence[Any], truth: Sequence[str]) -> Bools:
    return np.array([_text(value) == target for value, target in zip(values, truth, strict=True)], dtype=bool)


def _text(value: Any) -> str:
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def repeated_test_rows(data: MobilityData) -> Iterator[Observation]:
    """EQ183: rows of the test data that are training rows, too."""
    mask = data.repeated_rows
    if mask is not None and mask.any():
        rows = (np.flatnonzero(mask) + 1).tolist()
        names = ["target", *(ROW_COLUMNS[name] for name in data.shared_columns)]
        verb = "has" if len(rows) == 1 else "have"
        yield Observation(
            data.test.name,
            f"{share(mask, 'row')} {verb} the same {', '.join(names[:-1])} and {names[-1]} as a training row",
            evidence_names([f"row {row}" for row in rows]),
        )


ROW_COLUMNS = {"users": "user", "times": "time", "sequences": "sequence"}
"""What identifies a row besides its target, and what it is called."""


def _row_keys(rows: TestSequences, columns: Sequence[str]) -> list[tuple[Any, ...] | None]:
    """The target and these columns of each row; None without a time or a long sequence."""
    n = len(rows)
    users = map(str, rows.users.tolist()) if "users" in columns and rows.users is not None else [None] * n
    times = map(str, rows.times) if "times" in columns and rows.times is not None else [None] * n
    sequences: list[tuple[int, ...]] = [()] * n
    if "sequences" in columns and rows.sequences is not None:
        sequences = [tuple(places.tolist()) for places in rows.sequences]
    return [
        (target, user, time, sequence) if time is not None or len(sequence) >= LONG_SEQUENCE else None
        for target, user, time, sequence in zip(rows.targets.tolist(), users, times, sequences, strict=True)
    ]


def repeated_places(data: MobilityData) -> Iterator[Observation]:
    """EQ184: targets that equal the previous place."""
    previous = data.test.previous
    if previous is None or not len(data.test) or data.repeats.mean() < MANY_REPEATS:
        return
    known = previous != NO_PREVIOUS_PLACE
    yield Observation(
        data.test.name,
        f"{share(data.repeats, 'target')} {'equals' if data.repeats.sum() == 1 else 'equal'} the previous place",
        (f"{pluralize(int(known.sum()), 'target')} with a previous place",),
    )


CHECKS = declared_checks(
    "equipoise.domains.places",
    {
        "EQ180": (MobilityData, unseen_targets),
        "EQ181": (MobilityData, users_without_history),
        "EQ182": (MobilityData, leaked_target),
        "EQ183": (MobilityData, repeated_test_rows),
        "EQ184": (MobilityData, repeated_places),
    },
)
