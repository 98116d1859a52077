"""Visits in time order: training data of the baselines, test cases, and the files that hold them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from equipoise.domains.places.prediction_files import find_column, require_column
from equipoise.errors import FormatError, InputError, ParameterError, ShapeError
from equipoise.evidence.base import as_ids, to_numpy
from equipoise.io.arrays import ARRAY_FORMATS, array_names, read_array, segment_offsets, split_member
from equipoise.io.tables import Table, read_table
from equipoise.io.text import PathLike, display_path
from equipoise.stats.slices import WEEKDAYS

if TYPE_CHECKING:
    from equipoise.types import Bools, Ids, Ints

NO_PREVIOUS_PLACE = -1
"""The place before a user's first visit."""


@dataclass(frozen=True, eq=False)
class PredictionCases:
    """Visits to be predicted: user, previous place, hour, and target place."""

    unit_ids: Ids
    users: Ids
    previous: Ints
    targets: Ints
    hours: Ints | None = None

    def __len__(self) -> int:
        return len(self.targets)

    def __repr__(self) -> str:
        return f"<Cases: {len(self)} visits of {len(set(self.users.tolist()))} users to be predicted>"


@dataclass(frozen=True, eq=False)
class VisitHistory:
    """One visit per row, each user's visits in time order; places are class codes below ``classes``.

    >>> history = VisitHistory.of(["ann", "ann", "bob", "ann"], [0, 2, 1, 0])
    >>> history.counts.tolist(), history.previous.tolist()
    ([2, 1, 1], [-1, 0, -1, 2])
    """

    users: Ids
    places: Ints
    classes: int
    hours: Ints | None = None

    @classmethod
    def of(
        cls, users: ArrayLike, places: ArrayLike, *, classes: int | None = None, hours: ArrayLike | None = None
    ) -> VisitHistory:
        """From columns of equal length.

        Parameters
        ----------
        users
            The user of each visit; the visits of a user are in time order.
        places
            The place of each visit, as an integer from 0.
        classes
            Number of places, visited or not; by default the largest place plus 1.
        hours
            The hour of each visit.
        """
        codes = as_class_codes(places, "places")
        if not len(codes):
            raise InputError("there are no visits", hint="give at least one user and one place")
        names = as_ids(to_numpy(users), len(codes))
        n_classes = int(codes.max()) + 1
        if codes.min() < 0 or (classes is not None and n_classes > classes):
            raise InputError(
                f"the places reach from {codes.min()} to {codes.max()}",
                hint=f"places are class codes from 0 to {(classes or n_classes) - 1}",
            )
        columns = {"users": names} | ({} if hours is None else {"hours": to_numpy(hours)})
        for name, column in columns.items():
            if column.shape != codes.shape:
                raise ShapeError(f"there are {len(column)} {name} for {len(codes)} places", hint="give one per visit")
        return cls(names, codes, classes or n_classes, None if hours is None else to_numpy(hours).astype(np.int64))

    def __len__(self) -> int:
        return len(self.places)

    def __repr__(self) -> str:
        return f"<History: {len(self)} visits of {len(self.names)} users to {self.classes} places>"

    @cached_property
    def names(self) -> Ids:
        """The users, each once, sorted."""
        return np.unique(self.users)

    @cached_property
    def user_codes(self) -> Ints:
        """The index of each visit's user in ``names``."""
        return self.codes_of(self.users)

    @cached_property
    def counts(self) -> Ints:
        """The number of visits of each place by all users."""
        return np.bincount(self.places, minlength=self.classes)

    @cached_property
    def previous(self) -> Ints:
        """Where each visit's user was before; ``NO_PREVIOUS_PLACE`` at the first visit."""
        order = np.argsort(self.user_codes, kind="stable")
        users, places = self.user_codes[order], self.places[order]
        before = np.full(len(self), NO_PREVIOUS_PLACE, dtype=np.int64)
        before[order[1:]] = np.where(users[1:] == users[:-1], places[:-1], NO_PREVIOUS_PLACE)
        return before

    def codes_of(self, users: Ids) -> Ints:
        """The positions of these users in ``names``; -1 for a user without visits."""
        names, requested = self.names.tolist(), users.tolist()
        if {str} == set(map(type, names)) != set(map(type, requested)):  # 7 in an array is "7" in a text table
            requested = [str(name) for name in requested]
        elif {str} == set(map(type, requested)) != set(map(type, names)):
            names = [str(name) for name in names]
        code_of = {name: at for at, name in enumerate(names)}
        return np.array([code_of.get(name, -1) for name in requested], dtype=np.int64)

    def take(self, index: Ints) -> VisitHistory:
        """The visits at ``index``, which should keep the order of time."""
        hours = None if self.hours is None else self.hours[index]
        return VisitHistory(self.users[index], self.places[index], self.classes, hours)

    def split(self, share: float = 0.2) -> tuple[VisitHistory, PredictionCases]:
        """Hold back the last visits of each user, this share of them, rounded up to whole visits.

        A user with a single visit is only learned from. The units are called ``user-number`` after the
        position of the visit in the user's sequence.
        """
        if not 0.0 < share < 1.0:
            raise ParameterError(f"the share to be predicted is {share}", hint="give one between 0 and 1")
        number, total = self._numbers()
        # A tiny slack: a fifth of 10 visits is 2, also where floats make it a little more.
        is_test = number >= total - np.ceil(share * total - 1e-9)
        is_test &= number > 0
        if not is_test.any():
            raise InputError("no user has more than one visit, so there is nothing to predict")
        rows = np.flatnonzero(is_test)
        ids = np.array(
            [f"{user}-{at + 1}" for user, at in zip(self.users[rows], number[rows], strict=True)],
            dtype=object,
        )
        hours = None if self.hours is None else self.hours[rows]
        cases = PredictionCases(ids, self.users[rows], self.previous[rows], self.places[rows], hours)
        return self.take(np.flatnonzero(~is_test)), cases

    def _numbers(self) -> tuple[Ints, Ints]:
        """For each visit its number in the user's sequence, from 0, and how many visits the user has."""
        order = np.argsort(self.user_codes, kind="stable")
        users = self.user_codes[order]
        first = np.flatnonzero(np.r_[True, users[1:] != users[:-1]])
        lengths = np.diff(np.append(first, len(users)))
        number = np.empty(len(self), dtype=np.int64)
        number[order] = np.arange(len(self)) - np.repeat(first, lengths)
        return number, lengths[self.user_codes]


def as_class_codes(places: ArrayLike, name: str) -> Ints:
    """A column of integer class codes."""
    codes: NDArray[Any] = to_numpy(places)
    if codes.ndim != 1:
        raise ShapeError(f"the {name} have shape {codes.shape}", hint="give one per visit")
    if codes.dtype.kind not in "iu" and len(codes):
        raise InputError(f"the {name} are {codes.dtype} and not class codes", hint="number the places from 0")
    return codes.astype(np.int64)


# Visits of each place in a context: sparse counts, one row per context.


@dataclass(frozen=True, eq=False)
class ContextCounts:
    """Sparse counts: the places of each context in ascending order, concatenated, and how often they occur.

    ``keys`` are the contexts, ascending; row ``r`` has the entries ``starts[r]:starts[r + 1]``.

    >>> tally = ContextCounts.of(np.array([7, 7, 7, 3]), np.array([1, 0, 1, 2]), 3)
    >>> rows = tally.rows(np.array([7, 5]))
    >>> rows.tolist(), tally.visit_counts(rows, np.array([1, 1])).tolist()
    ([1, -1], [2, 0])
    """

    keys: Ints
    starts: Ints
    places: Ints
    counts: Ints
    classes: int

    @classmethod
    def of(cls, contexts: Ints, places: Ints, classes: int) -> ContextCounts:
        """Count the places of each context."""
        keys, rows = np.unique(contexts, return_inverse=True)
        pairs, counts = np.unique(rows.reshape(-1) * classes + places, return_counts=True)
        lengths = np.bincount(pairs // classes, minlength=len(keys))
        return cls(keys, segment_offsets(lengths), pairs % classes, counts.astype(np.int64), classes)

    @cached_property
    def _pairs(self) -> Ints:
        """Row and place of each entry as one number, in ascending order."""
        return np.repeat(np.arange(len(self.keys)), np.diff(self.starts)) * self.classes + self.places

    @cached_property
    def _sums(self) -> Ints:
        return np.concatenate([[0], np.cumsum(self.counts)])

    def rows(self, contexts: Ints) -> Ints:
        """The row of each context; -1 for an unknown context."""
        at, is_known = sorted_lookup(self.keys, contexts)
        return np.where(is_known, at, -1)

    def visit_counts(self, rows: Ints, places: Ints) -> Ints:
        """The count of each place in each row."""
        at, is_known = sorted_lookup(self._pairs, np.where(rows < 0, -1, rows * self.classes + places))
        return np.where(is_known, self.counts[at], 0) if len(self.counts) else np.zeros(len(rows), np.int64)

    def lengths(self, rows: Ints) -> Ints:
        """The number of places of each row; 0 for row -1."""
        return np.where(rows < 0, 0, self.starts[rows + 1] - self.starts[rows])

    def totals(self, rows: Ints) -> Ints:
        """The number of visits of each row."""
        return np.where(rows < 0, 0, self._sums[self.starts[rows + 1]] - self._sums[self.starts[rows]])


def sorted_lookup(table: Ints, values: Ints) -> tuple[Ints, Bools]:
    """The index of each value in a sorted table, and whether the table contains it."""
    if not len(table):
        return np.zeros(len(values), dtype=np.int64), np.zeros(len(values), dtype=bool)
    at = np.minimum(np.searchsorted(table, values), len(table) - 1)
    return at, table[at] == values


def user_visit_counts(history: VisitHistory) -> ContextCounts:
    """Visits per user."""
    return ContextCounts.of(history.user_codes, history.places, history.classes)


def transition_counts(history: VisitHistory) -> ContextCounts:
    """Transitions of all users, by previous place."""
    has_previous = history.previous != NO_PREVIOUS_PLACE
    return ContextCounts.of(history.previous[has_previous], history.places[has_previous], history.classes)


def user_transition_counts(history: VisitHistory) -> ContextCounts:
    """Transitions per user, by user and previous place: see ``context_key``."""
    has_previous = history.previous != NO_PREVIOUS_PLACE
    keys = context_key(history.user_codes, history.previous, history.classes)
    return ContextCounts.of(keys[has_previous], history.places[has_previous], history.classes)


def context_key(users: Ints, places: Ints, classes: int) -> Ints:
    """One key per user and place; -1 if either is unknown."""
    return np.where((users < 0) | (places < 0), -1, users * classes + places)


# Files of visits: training histories and test sequences, from tables with one visit or one sequence per row.

USER = ("user", "user_id", "uid", "userid", "users", "entity_id", "user_x")
PLACE = ("place", "place_id", "location", "location_id", "loc", "loc_id", "poi", "poi_id", "venue_id", "tile_id")
SEQUENCE = ("sequence", "places", "history", "x", "trajectory", "locations")
TARGET = ("target", "y", "true_y", "true", "label", "next_place", "next_location")
PREVIOUS = ("previous", "previous_place", "last_place")
TIME = ("time", "timestamp", "datetime", "started_at", "start_time", "arrival")
HOUR = ("hour", "hour_of_day")
WEEKDAY = ("weekday", "day_of_week", "dow")
UNIT = ("unit_id", "id", "row", "dyna_id")
"""Names of columns in tables of LibCity, trackintel, scikit-mobility and other projects."""

_FOURSQUARE_TIME = "%a %b %d %H:%M:%S %z %Y"


@dataclass(frozen=True, eq=False)
class TestSequences:
    """Visits to be predicted: user, target and previous place, the visited places before, and other columns.

    ``columns`` are slices, such as the hour; ``features`` are all columns that a model may have seen. ``times``
    are those of a column of times, as they are written.
    """

    __test__ = False  # not a test class of pytest

    name: str
    users: Ids | None
    targets: Ints
    previous: Ints | None = None
    sequences: Sequence[Ints] | None = None
    columns: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    features: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    times: Sequence[Any] | None = None

    def __len__(self) -> int:
        return len(self.targets)


def read_history(path: PathLike, classes: int | None = None) -> VisitHistory:
    """Read training visits from a table or from an archive of arrays.

    A row is a visit (user and place), a sequence (user and a list of places in time order), or a training example
    (user, a list of places, and the target that follows them), of which only the target is counted, because the lists
    of consecutive examples overlap. With a column of times, visits are put in the order of time.

    Parameters
    ----------
    path
        CSV, TSV, JSONL, JSON or parquet, or an archive with arrays of users and places. Columns are found by the names
        that LibCity, trackintel and others use, such as ``user_id`` and ``location``.
    classes
        Number of places; by default the largest code plus 1.

    Returns
    -------
    VisitHistory
        The visits, for the baselines of ``score_places``.

    Examples
    --------
    >>> read_history("train.parquet", classes=1187)  # doctest: +SKIP
    """
    if split_member(path)[0].suffix.casefold() in ARRAY_FORMATS:
        return _history_from_arrays(path, classes)
    table = read_table(path)
    user = require_column(table, USER, "users")
    target, sequence, place = (find_column(table, names) for names in (TARGET, SEQUENCE, PLACE))
    if sequence is not None and target is None:
        rows = [_places(table, index, sequence) for index in range(len(table.rows))]
        users = np.repeat(_users(table, user), [len(row) for row in rows])
        return VisitHistory.of(users, np.concatenate(rows), classes=classes)
    column = place or target
    if column is None:
        column = require_column(table, (*PLACE, *SEQUENCE), "places")
    places = np.array([_place(table, index, table.rows[index].get(column)) for index in range(len(table.rows))])
    order = _time_order(table)
    return VisitHistory.of(_users(table, user)[order], places[order], classes=classes)


def _history_from_arrays(path: PathLike, classes: int | None) -> VisitHistory:
    file, _ = split_member(path)
    names = {name.casefold(): name for name in array_names(path)}
    user, place = (
        next((names[name] for name in options if name in names), None) for options in (USER, (*PLACE, *TARGET))
    )
    if user is None or place is None:
        raise FormatError(
            f"{display_path(path)} has no users and places; it has {', '.join(names.values()) or 'one array'}",
            hint=f"call them {USER[0]} and {PLACE[0]}",
        )
    users, places = read_array(f"{file}:{user}", ndim=1), read_array(f"{file}:{place}", ndim=1)
    return VisitHistory.of(users, places, classes=classes)


def read_test_sequences(path: PathLike) -> TestSequences:
    """Read the visits to be predicted, one per row: the target and, where given, user, places before it and time.

    Parameters
    ----------
    path
        CSV, TSV, JSONL, JSON or parquet with a column of targets. A column of lists is the sequence of places before
        the target. From a column of times the hour and the weekday are taken.

    Returns
    -------
    TestSequences
        Targets, users, previous places, slices by hour and weekday, and all other columns as features.

    Examples
    --------
    >>> read_test_sequences("test.parquet").targets  # doctest: +SKIP
    """
    table = read_table(path)
    sequence, user = find_column(table, SEQUENCE), find_column(table, USER)
    target = find_column(table, TARGET) or require_column(table, (*TARGET, *PLACE), "targets")
    count = range(len(table.rows))
    targets = np.array([_place(table, index, table.rows[index].get(target)) for index in count])
    sequences = None if sequence is None else [_places(table, index, sequence, empty=True) for index in count]
    special = {target, sequence, user, find_column(table, UNIT)}
    time = find_column(table, TIME)
    return TestSequences(
        name=table.name,
        users=None if user is None else _users(table, user),
        targets=targets,
        previous=_previous(table, sequences),
        sequences=sequences,
        columns=_time_slices(table),
        times=None if time is None else [row.get(time) for row in table.rows],
        features={
            str(name): [row.get(name) for row in table.rows]
            for name in table.rows[0]
            if name not in special - {sequence}
        },
    )


def _previous(table: Table, sequences: Sequence[Ints] | None) -> Ints | None:
    column = find_column(table, PREVIOUS)
    if column is not None:
        return np.array([_place(table, index, row.get(column), low=-1) for index, row in enumerate(table.rows)])
    if sequences is None:
        return None
    return np.array([row[-1] if len(row) else NO_PREVIOUS_PLACE for row in sequences], dtype=np.int64)


def _time_slices(table: Table) -> dict[str, NDArray[Any]]:
    """The hour and the weekday of each row, from columns of these names or from the time."""
    slices: dict[str, NDArray[Any]] = {}
    for name, options in (("hour", HOUR), ("weekday", WEEKDAY)):
        column = find_column(table, options)
        if column is not None:
            slices[name] = np.array([str(row.get(column)) for row in table.rows], dtype=object)
    column = find_column(table, TIME)
    if column is None:
        return slices
    times = [_time(table, index, column) for index in range(len(table.rows))]
    if all(isinstance(time, datetime) for time in times):
        slices.setdefault("hour", np.array([str(time.hour) for time in times], dtype=object))
        slices.setdefault("weekday", np.array([WEEKDAYS[time.weekday()] for time in times], dtype=object))
    return slices


def _time_order(table: Table) -> Ints:
    """The rows in the order of time; in the order of the table without a column of times."""
    column = find_column(table, TIME)
    if column is None:
        return np.arange(len(table.rows))
    times = [_time(table, index, column) for index in range(len(table.rows))]
    if len({type(time) for time in times}) > 1:
        raise FormatError(f"{table.name} has numbers and dates in {column}", hint="write all times in one form")
    return np.array(sorted(range(len(times)), key=times.__getitem__), dtype=np.int64)


def _time(table: Table, index: int, column: str) -> Any:
    """A time that can be compared with others: a number, or a date with a time zone (UTC if it has none)."""
    value = table.rows[index].get(column)
    if isinstance(value, str):
        try:
            return float(value)
        except ValueError:
            value = _parse_date(value)
    if isinstance(value, datetime):
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    raise table.error(
        FormatError,
        [index],
        f"has the {column} {table.rows[index].get(column)!r}",
        hint="write 2024-05-31T18:30:00 or a number, or leave the column out if the rows are in order",
    )


def _parse_date(text: str) -> datetime | None:
    for parse in (datetime.fromisoformat, lambda value: datetime.strptime(value, _FOURSQUARE_TIME)):
        try:
            return parse(text.strip())
        except ValueError:
            continue
    return None


def _users(table: Table, column: str) -> Ids:
    values = [row.get(column) for row in table.rows]
    values = [value[-1] if isinstance(value, list) and value else value for value in values]
    missing = [index for index, value in enumerate(values) if value in (None, "", [])]
    if missing:
        raise table.error(InputError, missing[:1], "has no user", hint="every row needs a user")
    return np.array([str(value) for value in values], dtype=object)


def _place(table: Table, index: int, value: Any, low: int = 0) -> int:
    try:
        code = int(value)
        if isinstance(value, bool) or float(value) != code or code < low:
            raise ValueError
    except (TypeError, ValueError):
        raise table.error(
            FormatError, [index], f"has the place {value!r}", hint="places are class codes: integers from 0"
        ) from None
    return code


def _places(table: Table, index: int, column: str, *, empty: bool = False) -> Ints:
    value = table.rows[index].get(column)
    if isinstance(value, str):  # a list in a text table: 3 7 7 or 3,7,7
        value = value.strip("[]() ").replace(",", " ").split()
    if not isinstance(value, list) or (not value and not empty):
        raise table.error(FormatError, [index], f"has {value!r} for {column}", hint="give a list of places: [3, 7, 7]")
    return np.array([_place(table, index, item) for item in value], dtype=np.int64)
