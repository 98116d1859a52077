"""The contents of a results folder: one row per run directory, and the runs in progress."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Lock
from time import monotonic
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from equipoise import __version__
from equipoise.errors import EquipoiseError, ParameterError, RunNotFoundError, StoreError
from equipoise.report.build_view import data_names, result_in_percent
from equipoise.report.sections import to_value
from equipoise.runs.manifest import CASES, FILES, MANIFEST, RESULT, open_run
from equipoise.runs.progress_file import ActiveRun, find_active_runs
from equipoise.runs.run_folder import find_runs, result_from_dict
from equipoise.runs.unit_table import parse_unit_lines
from equipoise.stats.formatting import format_count, format_percent, n_decimals
from equipoise.stats.result import DATA, MATCHER
from equipoise.stats.verdict import EVIDENCE_NOUNS, UNIT_NOUN, Vocabulary

if TYPE_CHECKING:
    from equipoise.report.view_model import Value
    from equipoise.runs.manifest import Manifest

# A run directory as one row of the list: its headline, and nothing that takes long to read.

UNREADABLE = "unreadable"
MARKS = {"complete": "✓", "partial": "◐", "failed": "✗", UNREADABLE: "?"}
MAX_OTHERS = 20
"""Runs on the same data that a report offers to add."""


@dataclass(frozen=True, slots=True)
class RunSummary:
    """The row of one run in the list; ``note`` is the reason why it is incomplete or unreadable.

    ``key`` names it in an address, and ``fingerprint`` changes whenever a file of it does. ``units`` counts
    all of them, ``n`` those with a value. A run that cannot be read has no score. Runs with the same ``protocol`` are
    on the same units of the same data and task; it is empty if the data are not known. ``names`` are all metrics.
    """

    key: str
    path: Path
    fingerprint: str
    system: str
    status: str
    units: int = 0
    metric: str = ""
    better: str = ""
    confidence_level: str = ""
    score: Value | None = None
    n: str = ""
    data: str = ""
    started: str = ""
    finished: str = ""
    note: str = ""
    size: str = ""
    names: tuple[str, ...] = ()
    protocol: str = ""

    @classmethod
    def unreadable(cls, key: str, path: Path, fingerprint: str, note: str) -> RunSummary:
        """A directory with files of a run, and why it cannot be shown."""
        return cls(key, path, fingerprint, path.name, UNREADABLE, note=note)

    @property
    def ended(self) -> str:
        """The time when the run finished, or started if it did not finish."""
        return self.finished or self.started

    @property
    def label(self) -> str:
        """The name of the system, with the folder if its name differs."""
        return self.system if self.system == self.key else f"{self.system} ({self.key})"

    @property
    def mark(self) -> str:
        """The symbol of the status."""
        return MARKS[self.status]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, without the path on this machine."""
        shown = self.score
        return {
            "run": self.key,
            "system": self.system,
            "status": self.status,
            "note": self.note,
            "metric": self.metric,
            "value": None if shown is None else shown.number,
            "low": None if shown is None else shown.low,
            "high": None if shown is None else shown.high,
            "units": self.units,
            "data": self.data,
            "finished": self.finished,
        }


def summarise_run(key: str, path: Path, fingerprint: str) -> RunSummary:
    """Read the manifest and the scores, but not the units."""
    folder = open_run(path)
    manifest, file = folder.manifest, path / RESULT
    no_units = parse_unit_lines([], source=str(file))
    stored = result_from_dict(folder.json(RESULT), no_units, source=str(file))
    result = result_in_percent(stored)
    headline: dict[str, Any] = {}
    if result.estimates:
        best = next(iter(result.estimates.values()))
        headline = {
            "metric": best.metric,
            "better": str(best.better),
            "confidence_level": format_percent(best.interval.confidence_level),
            "score": to_value(best.value, best.interval, n_decimals(best.interval)),
            "n": format_count(best.n),
        }
    return RunSummary(
        key=key,
        path=path,
        fingerprint=fingerprint,
        system=manifest.system,
        status=str(manifest.status),
        units=manifest.units,
        data=data_names(manifest.datasets or manifest.inputs),
        started=manifest.started,
        finished=manifest.finished,
        note=manifest.reason if not manifest.complete else "",
        size=Vocabulary(_unit_noun(manifest)).units(manifest.units),
        names=stored.names,
        protocol=protocol_of(manifest, path),
        **headline,
    )


def _unit_noun(manifest: Manifest) -> str:
    kind = (manifest.evidence or {}).get("kind", "")
    return str(manifest.settings.get(UNIT_NOUN) or EVIDENCE_NOUNS.get(kind, "item"))


MAX_COMPARED_IDS = 5_000
"""The ids of more units are not read for the list; such runs are compared by their number of units."""


def protocol_of(manifest: Manifest, path: Path) -> str:
    """A digest of what two runs must share to be compared, apart from a metric; empty if their data are not known."""
    fingerprints = (manifest.datasets or manifest.inputs).values()
    if not fingerprints or None in fingerprints:
        return ""
    settings = manifest.settings
    rules = [settings.get(name) for name in ("ties", MATCHER, DATA)] + [manifest.parameters.get("task")]
    kind = (manifest.evidence or {}).get("kind")
    return digest(repr([sorted(map(str, fingerprints)), kind, manifest.units, rules, _unit_ids(manifest, path)]))


def _unit_ids(manifest: Manifest, path: Path) -> list[bytes]:
    """The ids of the units as they are stored, sorted; none if there are many."""
    if manifest.units > MAX_COMPARED_IDS or CASES not in manifest.files:
        return []
    with (path / CASES).open("rb") as lines:
        return sorted(line.partition(b', "values": ')[0] for line in lines)


RESCAN_SECONDS = 0.5
"""Minimum seconds between two scans of the disk."""
MAX_SCAN_SHARE = 5
"""A look that took a second is followed by a rest of this many."""


@dataclass(frozen=True)
class RunGroup:
    """Runs that can be compared: the same units, data and task, and at least one metric that all of them have.

    ``metric`` is set only if several groups would have the same heading without it.
    """

    rows: tuple[RunSummary, ...]
    metric: str = ""

    @property
    def data(self) -> str:
        """The name of the data; empty if the runs cannot be compared, because their data are not known."""
        return self.rows[0].data if self.rows[0].protocol else ""

    @property
    def heading(self) -> str:
        """The data and the number of units."""
        first = self.rows[0]
        if first.status == UNREADABLE:
            return "Unreadable"
        return ", ".join(part for part in (first.data or "Unnamed data", first.size, self.metric) if part)

    @property
    def compared(self) -> tuple[RunSummary, ...]:
        """The runs that a comparison of the whole group has; none if there would be only one."""
        rows = tuple(row for row in self.rows if row.score is not None)
        return rows if len(rows) > 1 and self.rows[0].protocol else ()


def groups_of(rows: Sequence[RunSummary]) -> tuple[RunGroup, ...]:
    """The rows in groups that can be compared, in the order of their first rows."""
    groups: dict[tuple[str, ...], list[list[RunSummary]]] = {}
    shared: dict[tuple[str, ...], list[set[str]]] = {}
    for row in rows:
        known = (row.protocol,) if row.protocol else ("", str(row.status == UNREADABLE), row.data, row.size)
        same, metrics = groups.setdefault(known, []), shared.setdefault(known, [])
        for index, names in enumerate(metrics):
            if not row.protocol or names.intersection(row.names):
                same[index].append(row)
                names.intersection_update(row.names)
                break
        else:
            same.append([row])
            metrics.append(set(row.names))
    order = {row.key: index for index, row in enumerate(rows)}
    found = [RunGroup(tuple(group)) for same in groups.values() for group in same]
    found.sort(key=lambda group: order[group.rows[0].key])
    times = Counter(group.heading for group in found)
    return tuple(replace(group, metric=group.rows[0].metric) if times[group.heading] > 1 else group for group in found)


@dataclass(frozen=True)
class RunList:
    """The runs of a folder, newest first, and those in progress; equal versions have equal content."""

    rows: tuple[RunSummary, ...]
    under_way: tuple[ActiveRun, ...]
    version: str
    note: str = ""

    @property
    def by_key(self) -> Mapping[str, RunSummary]:
        """The rows by their keys in URLs."""
        return {row.key: row for row in self.rows}

    @property
    def groups(self) -> tuple[RunGroup, ...]:
        """The runs in groups that can be compared."""
        return groups_of(self.rows)


class ResultsFolder:
    """A results folder; requests read it again, but not more often than a minimum interval."""

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()
        self._lock = Lock()
        self._rows: dict[str, RunSummary] = {}
        self._run_list: RunList | None = None
        self._until = 0.0

    def run_list(self) -> RunList:
        """The current content of the folder, at most the minimum interval old."""
        with self._lock:
            if self._run_list is None or monotonic() >= self._until:
                start = monotonic()
                self._run_list = self._read_folder()
                seconds = monotonic() - start
                self._until = start + seconds + max(RESCAN_SECONDS, MAX_SCAN_SHARE * seconds)
            return self._run_list

    def _read_folder(self) -> RunList:
        paths, note = self._run_directories()
        rows = {key: self._row(key, path) for path in paths for key in [run_key(path, self.root)]}
        self._rows = rows
        newest_first = sorted(rows.values(), key=lambda row: row.key)
        newest_first.sort(key=lambda row: row.ended, reverse=True)
        under_way = tuple(replace(run, folder=run.folder.relative_to(self.root)) for run in find_active_runs(self.root))
        state = repr([(row.key, row.fingerprint) for row in newest_first]) + repr(under_way) + note
        return RunList(tuple(newest_first), under_way, digest(state), note)

    def _run_directories(self) -> tuple[list[Path], str]:
        """The run directories; if the folder cannot be read, none and the reason."""
        try:
            return find_runs(self.root), ""
        except StoreError as error:
            empty = self.root.is_dir() and not (self.root / MANIFEST).exists()
            return [], "" if empty else error.message

    def _row(self, key: str, path: Path) -> RunSummary:
        fingerprint = fingerprint_of(path)
        known = self._rows.get(key)
        if known is not None and known.fingerprint == fingerprint:
            return known
        outside = path_outside_root(path, self.root)
        if outside:
            return RunSummary.unreadable(key, path, fingerprint, f"{outside} is a link that leads out of the folder")
        try:
            return summarise_run(key, path, fingerprint)
        except EquipoiseError as error:
            return RunSummary.unreadable(key, path, fingerprint, error.message)


def run_key(path: Path, root: Path) -> str:
    """The key of a run in URLs: its path below the folder; bytes that are not text are escaped.

    >>> run_key(Path("/results/a/bm25"), Path("/results"))
    'a/bm25'
    """
    return os.fsencode(path.relative_to(root).as_posix()).decode("utf-8", "backslashreplace")


def path_outside_root(run: Path, root: Path) -> str:
    """The first file of a run that is outside the folder because of a link; empty if all are inside."""
    return next((name for name in FILES if not (run / name).resolve().is_relative_to(root)), "")


def fingerprint_of(run: Path) -> str:
    """A digest of file names, sizes and times, which changes whenever a file of the run is replaced."""
    file_states: list[tuple[str, int, int, int]] = []
    for name in FILES:
        try:
            state = (run / name).stat()
        except OSError:
            continue
        file_states.append((name, state.st_ino, state.st_mtime_ns, state.st_size))
    return digest(repr(file_states))


def digest(text: str) -> str:
    """A short digest of a text."""
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:32]


# Which runs a request asks for, and by which metric they are to be ordered.


@dataclass(frozen=True)
class RunSelection:
    """Selected rows of the list, without repetition, and the primary metric if one was named.

    ``others`` are the readable runs on the same data that were not chosen.
    """

    rows: tuple[RunSummary, ...]
    primary: str = ""
    others: tuple[RunSummary, ...] = ()

    @classmethod
    def of(cls, run_list: RunList, keys: Sequence[str], primary: str = "") -> RunSelection:
        """The rows with these keys. Only keys of the list are accepted."""
        known = run_list.by_key
        if not keys:
            raise ParameterError("no run is selected", hint="select one or more runs in the list")
        for key in keys:
            if key not in known:
                raise RunNotFoundError.of("run", key, known, more="it may have been moved or removed")
            if known[key].status == UNREADABLE:
                raise StoreError(f"the run {key} cannot be shown: {known[key].note}")
        rows = tuple(known[key] for key in dict.fromkeys(keys))
        groups = (group.compared for group in run_list.groups if set(rows) <= set(group.compared))
        others = (row for group in groups for row in group if row not in rows)
        return cls(rows, primary, tuple(others)[:MAX_OTHERS])

    def hiding(self, row: RunSummary) -> RunSelection:
        """The choice without this run."""
        return replace(self, rows=tuple(chosen for chosen in self.rows if chosen != row))

    def showing(self, row: RunSummary) -> RunSelection:
        """The choice with one more run."""
        return replace(self, rows=(*self.rows, row))

    @property
    def version(self) -> str:
        """Changes whenever a selected run or the program changes."""
        others = repr([row.key for row in self.others])
        return digest(repr([(row.key, row.fingerprint) for row in self.rows]) + self.primary + others + __version__)

    @property
    def units(self) -> int:
        """The total number of units."""
        return sum(row.units for row in self.rows)

    @property
    def named(self) -> list[tuple[str, Path]]:
        """Every run with a unique name: equal names get the folder appended."""
        times = Counter(row.system for row in self.rows)
        return [(f"{row.system} ({row.key})" if times[row.system] > 1 else "", row.path) for row in self.rows]

    def query(self, **more: str) -> str:
        """The selection as a URL query."""
        primary = {"primary": self.primary} if self.primary else {}
        return urlencode([*(("run", row.key) for row in self.rows), *{**primary, **more}.items()])
