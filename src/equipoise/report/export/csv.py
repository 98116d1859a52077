"""Comma-separated values: one row per system and metric, or one row per unit, with all digits."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from math import isnan
from typing import TYPE_CHECKING, Any

from equipoise.io.text import parse_number
from equipoise.redaction import inert
from equipoise.report.export.paper_table import PaperTable

if TYPE_CHECKING:
    from equipoise.runs.store import StoredRun
    from equipoise.stats.comparison import Comparison
    from equipoise.stats.result import Estimate

CSV_COLUMNS = (
    "system",
    "metric",
    "value",
    "low",
    "high",
    "level",
    "n",
    "undefined",
    "chance",
    "unit",
    "better",
    "band",
    "status",
    "like",
)


def as_csv(runs: Sequence[StoredRun], comparison: Comparison | None, *, formulas: bool = False) -> str:
    """One row a system and metric; what is not known is empty."""
    sheet = PaperTable.of(runs, comparison)
    status = {run.result.system: str(run.manifest.status) for run in runs}
    rows: list[Sequence[Any]] = [CSV_COLUMNS]
    for metric in sheet.metrics:
        for system, estimate in zip(sheet.systems, sheet.column(metric), strict=True):
            band = " ".join(sheet.letters(system, metric))
            rows.append((system, metric, *_facts(estimate), band, status.get(system, ""), sheet.like))
    return _written(rows, formulas)


def as_unit_csv(runs: Sequence[StoredRun], comparison: Comparison | None, *, formulas: bool = False) -> str:
    """One row a unit of each system; metrics that are no means over units have no column."""
    named = comparison.metrics if comparison else tuple(name for run in runs for name in run.result.names)
    metrics = [name for name in dict.fromkeys(named) if any(name in run.result.per_unit for run in runs)]
    clustered = any(run.result.clusters is not None for run in runs)
    rows: list[Sequence[Any]] = [("system", "unit", *(["cluster"] if clustered else []), *metrics)]
    for run in runs:
        result = run.result
        units = result.unit_ids.tolist()
        nothing = [""] * len(units)
        clusters = nothing if result.clusters is None else result.clusters.tolist()
        columns = [
            [_known(value) for value in result.per_unit[name].tolist()] if name in result.per_unit else nothing
            for name in metrics
        ]
        rows += zip([result.system] * len(units), units, *([clusters] if clustered else []), *columns, strict=True)
    return _written(rows, formulas)


def _cell(value: Any, formulas: bool) -> Any:
    """A value as a cell: numbers as they are, texts without control characters."""
    if not isinstance(value, str):
        return value
    return inert(value if formulas else inert_cell(value))


def _facts(estimate: Estimate) -> tuple[Any, ...]:
    reach = estimate.interval
    return (
        _known(estimate.value),
        _known(reach.low),
        _known(reach.high),
        reach.confidence_level,
        estimate.n,
        estimate.undefined,
        _known(estimate.chance),
        estimate.unit,
        str(estimate.better),
    )


def _known(value: float) -> float | str:
    return "" if isnan(value) else value


def _written(rows: Iterable[Sequence[Any]], formulas: bool) -> str:
    lines = []
    for row in rows:
        buffer = io.StringIO()
        # Told to end lines by both signs, the writer also quotes cells that hold either of them.
        csv.writer(buffer, lineterminator="\r\n").writerow([_cell(value, formulas) for value in row])
        lines.append(buffer.getvalue().removesuffix("\r\n"))
    return "".join(f"{line}\n" for line in lines)


_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


def inert_cell(text: str) -> str:
    """The text as a cell that a spreadsheet does not run: what looks like a formula gets an apostrophe."""
    return f"'{text}" if text.startswith(_FORMULA) and not _is_number(text) else text


def _is_number(text: str) -> bool:
    try:
        parse_number(text)
    except ValueError:
        return False
    return "\t" not in text
