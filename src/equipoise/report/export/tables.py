"""Tables for other programs: the scores as CSV, and tables of the terminal in the formats of ``--to``."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterable, Sequence
from math import isnan
from typing import TYPE_CHECKING, Any

from equipoise.io.text import parse_number
from equipoise.redaction import inert
from equipoise.report.export.paper_table import (
    GLYPH,
    PaperTable,
    escape_latex,
    escape_markdown,
    latex_row,
    latex_tabular,
    markdown_row,
)
from equipoise.report.terminal import Part, ReportColumn, TerminalTable

if TYPE_CHECKING:
    from equipoise.runs.run_folder import StoredRun
    from equipoise.stats.comparison import Comparison
    from equipoise.stats.result import Estimate

CSV_COLUMNS = (
    "system",
    "metric",
    "value",
    "low",
    "high",
    "confidence_level",
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
    """One row per system and metric; what is not known is empty."""
    sheet = PaperTable.of(runs, comparison)
    status = {run.result.system: str(run.manifest.status) for run in runs}
    rows: list[Sequence[Any]] = [CSV_COLUMNS]
    for metric in sheet.metrics:
        for system, estimate in zip(sheet.systems, sheet.column(metric), strict=True):
            band = " ".join(sheet.letters(system, metric))
            rows.append((system, metric, *_facts(estimate), band, status.get(system, ""), sheet.like))
    return _written(rows, formulas)


def as_unit_csv(runs: Sequence[StoredRun], comparison: Comparison | None, *, formulas: bool = False) -> str:
    """One row per unit of each system; metrics that are no means over units have no column."""
    named = comparison.metrics if comparison else tuple(name for run in runs for name in run.result.names)
    metrics = [name for name in dict.fromkeys(named) if any(name in run.result.per_unit for run in runs)]
    clustered = any(run.result.clusters is not None for run in runs)
    rows: list[Sequence[Any]] = [("system", "unit", *(["cluster"] if clustered else []), *metrics)]
    for run in runs:
        result = run.result
        units = result.unit_ids.tolist()
        empty = [""] * len(units)
        clusters = empty if result.clusters is None else result.clusters.tolist()
        columns = [
            [_known(value) for value in result.per_unit[name].tolist()] if name in result.per_unit else empty
            for name in metrics
        ]
        rows += zip([result.system] * len(units), units, *([clusters] if clustered else []), *columns, strict=True)
    return _written(rows, formulas)


def _cell(value: Any, formulas: bool) -> Any:
    """A value as a cell: numbers as they are, unknown ones empty, texts without control characters."""
    if not isinstance(value, str):
        return "" if value is None or value != value else value
    return inert(value if formulas else inert_cell(value))


def _facts(estimate: Estimate) -> tuple[Any, ...]:
    interval = estimate.interval
    return (
        _known(estimate.value),
        _known(interval.low),
        _known(interval.high),
        interval.confidence_level,
        estimate.n,
        estimate.undefined,
        _known(estimate.chance),
        estimate.unit,
        str(estimate.better),
    )


def _known(value: float) -> float | str:
    return "" if isnan(value) else value


def _written(rows: Iterable[Sequence[Any]], formulas: bool = False) -> str:
    lines = []
    for row in rows:
        buffer = io.StringIO()
        # With this line terminator the writer also quotes cells that contain \r or \n.
        csv.writer(buffer, lineterminator="\r\n").writerow([_cell(value, formulas) for value in row])
        lines.append(buffer.getvalue().removesuffix("\r\n"))
    return "".join(f"{line}\n" for line in lines)


_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


def inert_cell(text: str) -> str:
    """The text as a cell that a spreadsheet does not evaluate: a formula gets an apostrophe."""
    return f"'{text}" if text.startswith(_FORMULA) and not _is_number(text) else text


def _is_number(text: str) -> bool:
    try:
        parse_number(text)
    except ValueError:
        return False
    return "\t" not in text


# Tables of the terminal as Markdown, LaTeX and CSV.


def format_parts(parts: Iterable[Part], to: str) -> str:
    """The tables of a report in a format, each followed by an empty line.

    Paragraphs stay in Markdown, are comments in LaTeX, and are left out of CSV.
    """
    table_format, text_format = _FORMATS[to]
    texts = []
    for part in parts:
        if isinstance(part, TerminalTable):
            texts.append(table_format(part))
            if text_format is not None:
                texts += [text_format(column.note) for column in part.columns if column.note]
        elif text_format is not None and (text := f"{getattr(part, 'lead', '')}{getattr(part, 'text', '')}").strip():
            texts.append(text_format(text))
    return "\n".join(texts)


def _rows(table: TerminalTable) -> list[tuple[str, ...]]:
    return list(zip(*(column.cells for column in table.columns), strict=True))


def _markdown(table: TerminalTable) -> str:
    rule = ["--:" if column.right else ":--" for column in table.columns]
    heads = [column.head for column in table.columns]
    heads, *rows = ([escape_markdown(cell) for cell in row] for row in (heads, *_rows(table)))
    return "".join(f"{markdown_row(cells)}\n" for cells in (heads, rule, *rows))


def _latex(table: TerminalTable) -> str:
    columns = "".join("r" if column.right else "l" for column in table.columns)
    rows = ([column.head for column in table.columns], *_rows(table))
    heads, *cells = (latex_row([escape_latex(cell) for cell in row]) for row in rows)
    body = "\n".join([*latex_tabular(columns, heads, cells), ""])
    return f"{GLYPH}\n{body}" if r"\eqglyph" in body else body


def _csv(table: TerminalTable) -> str:
    columns = [item for column in table.columns for item in _csv_columns(column)]
    return _written([[head for head, _ in columns], *zip(*(cells for _, cells in columns), strict=True)])


def _csv_columns(column: ReportColumn) -> Iterable[tuple[str, Sequence[Any]]]:
    """The columns of a file in the place of this one: its values, or its cells, numbers without their format."""
    if column.values:
        return column.values.items()
    return [(column.head, list(map(_unformatted, column.cells)) if column.right else column.cells)]


_FORMATTED_NUMBER = re.compile(r"-?\d{1,3}(,\d{3})+(\.\d+)?")


def _unformatted(cell: str) -> str:
    """A number without thousands separators; empty if it is unknown.

    >>> _unformatted("4,609"), _unformatted("n/a (one seed)"), _unformatted("-")
    ('4609', '', '')
    """
    if cell == "-" or cell.startswith("n/a"):
        return ""
    return cell.replace(",", "") if _FORMATTED_NUMBER.fullmatch(cell) else cell


_FORMATS: dict[str, tuple[Callable[[TerminalTable], str], Callable[[str], str] | None]] = {
    "md": (_markdown, lambda text: f"{escape_markdown(text)}\n"),
    "latex": (_latex, lambda text: f"% {inert(' '.join(text.split()))}\n"),
    "csv": (_csv, None),
}
