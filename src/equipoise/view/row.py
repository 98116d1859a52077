"""A run directory as one row of the list: its headline, and nothing that takes long to read."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from equipoise.report.page.figures import figure_of
from equipoise.report.page.model import Figure
from equipoise.run.cases import parse_cases
from equipoise.run.folder import RESULT, open_run
from equipoise.run.manifest import Manifest
from equipoise.run.restore import restored_result
from equipoise.stats.numbers import count, decimals, percent

UNREADABLE = "unreadable"
MARKS = {"complete": "✓", "partial": "◐", "failed": "✗", UNREADABLE: "?"}
NAMED = 3


@dataclass(frozen=True, slots=True)
class Row:
    """What the list says of one run; ``note`` says what is wrong with it, where something is.

    ``key`` names it in an address, and ``fingerprint`` changes whenever a file of it does. ``units`` counts
    all of them, ``n`` those with a value. A run that cannot be read has no figure.
    """

    key: str
    path: Path
    fingerprint: str
    system: str
    status: str
    units: int = 0
    metric: str = ""
    better: str = ""
    level: str = ""
    figure: Figure | None = None
    n: str = ""
    data: str = ""
    started: str = ""
    finished: str = ""
    note: str = ""

    @classmethod
    def unreadable(cls, key: str, path: Path, fingerprint: str, note: str) -> Row:
        """A directory that looks like a run, and why it cannot be shown."""
        return cls(key, path, fingerprint, path.name, UNREADABLE, note=note)

    @property
    def ended(self) -> str:
        """When it was finished, or begun where it was not."""
        return self.finished or self.started

    @property
    def mark(self) -> str:
        """A sign beside the status, so that it can be found at a glance."""
        return MARKS[self.status]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, without the place on this disk."""
        shown = self.figure
        return {
            "run": self.key,
            "system": self.system,
            "status": self.status,
            "note": self.note,
            "metric": self.metric,
            "value": None if shown is None else shown.value,
            "low": None if shown is None else shown.low,
            "high": None if shown is None else shown.high,
            "units": self.units,
            "data": self.data,
            "finished": self.finished,
        }


def row_of(key: str, path: Path, fingerprint: str) -> Row:
    """Read the manifest and the figures; the units stay on the disk."""
    folder = open_run(path)
    manifest, file = folder.manifest, path / RESULT
    nothing = parse_cases([], source=str(file))
    result = restored_result(folder.json(RESULT), nothing, source=str(file))
    headline: dict[str, Any] = {}
    if result.estimates:
        best = next(iter(result.estimates.values()))
        headline = {
            "metric": best.metric,
            "better": str(best.better),
            "level": percent(best.interval.level),
            "figure": figure_of(best.value, best.interval, decimals(best.interval)),
            "n": count(best.n),
        }
    return Row(
        key=key,
        path=path,
        fingerprint=fingerprint,
        system=manifest.system,
        status=str(manifest.status),
        units=manifest.units,
        data=data_of(manifest),
        started=manifest.started,
        finished=manifest.finished,
        note=manifest.reason if not manifest.complete else "",
        **headline,
    )


def data_of(manifest: Manifest) -> str:
    """The names of the data, the first few of them.

    >>> data_of(Manifest("bm25", datasets={"cranfield/truth.qrels": "ab", "b": "c"}))
    'truth.qrels, b'
    """
    names = [Path(name).name for name in manifest.datasets]
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more
