"""Files of visits: training histories and test sequences, from tables with one visit or one sequence per row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from equipoise.domains.places.history import NO_PREVIOUS_PLACE, VisitHistory
from equipoise.domains.places.prediction_files import find_column, require_column
from equipoise.errors import FormatError, InputError
from equipoise.io.arrays import ARRAY_FORMATS, array_names, read_array, split_member
from equipoise.io.tables import Table, read_table
from equipoise.io.text import PathLike, display_path
from equipoise.stats.slices import WEEKDAYS

if TYPE_CHECKING:
    from equipoise.types import Ids, Ints

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
