"""Tables of the terminal in the formats of ``--to``: Markdown, LaTeX and CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Sequence

from equipoise.redaction import inert
from equipoise.report.export.csv import inert_cell
from equipoise.report.export.latex import GLYPH, escape_latex
from equipoise.report.export.paper_table import escape_markdown
from equipoise.report.terminal import Part, TerminalTable


def format_parts(parts: Iterable[Part], to: str) -> str:
    """The tables of a report in a format, each followed by an empty line.

    Paragraphs stay in Markdown, are comments in LaTeX, and are left out of CSV.
    """
    table_format, text_format = _FORMATS[to]
    texts = []
    for part in parts:
        if isinstance(part, TerminalTable):
            texts.append(table_format(part))
        elif text_format is not None and (text := f"{getattr(part, 'lead', '')}{getattr(part, 'text', '')}").strip():
            texts.append(text_format(text))
    return "\n".join(texts)


def _rows(table: TerminalTable) -> list[tuple[str, ...]]:
    return list(zip(*(column.cells for column in table.columns), strict=True))


def _markdown(table: TerminalTable) -> str:
    rule = ["--:" if column.right else ":--" for column in table.columns]
    heads = [escape_markdown(column.head) for column in table.columns]
    rows = [[escape_markdown(cell) for cell in row] for row in _rows(table)]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in (heads, rule, *rows))


def _latex(table: TerminalTable) -> str:
    columns = "".join("r" if column.right else "l" for column in table.columns)

    def row(cells: Sequence[str]) -> str:
        return f"{' & '.join(map(escape_latex, cells))} \\\\"

    lines = [
        f"\\begin{{tabular}}{{{columns}}}",
        "\\toprule",
        row([column.head for column in table.columns]),
        "\\midrule",
        *map(row, _rows(table)),
        "\\bottomrule",
        "\\end{tabular}",
    ]
    body = "\n".join(lines) + "\n"
    return f"{GLYPH}\n{body}" if r"\eqglyph" in body else body


def _csv(table: TerminalTable) -> str:
    written = io.StringIO()
    writer = csv.writer(written, lineterminator="\n")
    writer.writerow([column.head for column in table.columns])
    writer.writerows([inert(inert_cell(cell)) for cell in row] for row in _rows(table))
    return written.getvalue()


_FORMATS: dict[str, tuple[Callable[[TerminalTable], str], Callable[[str], str] | None]] = {
    "md": (_markdown, lambda text: f"{escape_markdown(text)}\n"),
    "latex": (_latex, lambda text: f"% {inert(' '.join(text.split()))}\n"),
    "csv": (_csv, None),
}
