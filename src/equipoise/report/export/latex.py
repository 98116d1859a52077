r"""A LaTeX table: booktabs, the best score in bold, tie groups as superscripts, and a complete caption.

It compiles with pdfLaTeX, XeLaTeX and LuaLaTeX, whatever names people gave their systems. A character that
pdfLaTeX does not know goes through ``\eqglyph``, which falls back to something it does.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING
from unicodedata import category, normalize

from equipoise.redaction import inert
from equipoise.report.export.paper_table import PARTIAL, PaperTable, ReportCell, table_caption
from equipoise.types import Direction

if TYPE_CHECKING:
    from equipoise.runs.store import StoredRun
    from equipoise.stats.comparison import Comparison

LABEL = "tab:equipoise"
LONG = 20
"""More systems than this do not fit on one page, and the table is one that breaks."""

GLYPH = r"\providecommand{\eqglyph}[2]{\ifdefined\Umathchar #1\else #2\fi}"
ARROWS = {Direction.UP: r"$\uparrow$", Direction.DOWN: r"$\downarrow$"}

# A row may not begin with [ or *, which \\ would take for its own; -- and `` would become one sign.
_ESCAPES = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': "''",
    "`": r"\textasciigrave{}",
    "[": "{[}",
    "]": "{]}",
    "*": "{*}",
    "-": "-{}",
}
_PLAIN_MINUS = re.compile(r"-\{\}(?!-)")
_NO_GLYPH = frozenset("«»­ÐÞðþĄąĐđĘęĦħĮįĸĿŀŉŊŋŦŧŲųſ")
_PUNCTUATION = frozenset("–—‘’“”…")


def as_latex(runs: Sequence[StoredRun], comparison: Comparison | None) -> str:
    """One row of scores and one of intervals per system, best first; then the chance level."""
    return latex_table(PaperTable.of(runs, comparison))


def latex_table(sheet: PaperTable) -> str:
    """The sheet in LaTeX."""
    body = _long(sheet) if len(sheet.systems) > LONG else _float(sheet)
    glyphs = [GLYPH] if r"\eqglyph" in body else []
    packages = "booktabs, longtable" if len(sheet.systems) > LONG else "booktabs"
    return "\n".join([rf"% needs \usepackage{{{packages}}}", *glyphs, body, ""])


def escape_latex(text: str) -> str:
    """Text that LaTeX sets as it is, on one line."""
    return _PLAIN_MINUS.sub("-", "".join(map(_character, inert(" ".join(text.split())))))


def _character(sign: str) -> str:
    if sign in _ESCAPES:
        return _ESCAPES[sign]
    if sign.isascii():
        return sign if sign.isprintable() else " "
    if ("\u00a0" <= sign <= "\u017f" and sign not in _NO_GLYPH) or sign in _PUNCTUATION:
        return sign
    plain = normalize("NFKD", sign).encode("ascii", "ignore").decode()
    fallback = plain if plain.isalnum() else f"U+{ord(sign):04X}"
    # An unpaired surrogate is in no file, and what is not assigned is in no font.
    return fallback if category(sign) in ("Cs", "Cn", "Cc") else rf"\eqglyph{{{sign}}}{{{fallback}}}"


def _float(sheet: PaperTable) -> str:
    lines = [
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{_caption(sheet)}}}",
        rf"\label{{{LABEL}}}",
        rf"\begin{{tabular}}{{{_columns(sheet)}}}",
        r"\toprule",
        _heads(sheet),
        r"\midrule",
        *_rows(sheet),
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
    ]
    return "\n".join(lines)


def _long(sheet: PaperTable) -> str:
    lines = [
        rf"\begin{{longtable}}{{{_columns(sheet)}}}",
        rf"\caption{{{_caption(sheet)}}}\label{{{LABEL}}}\\",
        r"\toprule",
        _heads(sheet),
        r"\midrule",
        r"\endhead",
        r"\bottomrule",
        r"\endfoot",
        *_rows(sheet),
        r"\end{longtable}",
    ]
    return "\n".join(lines)


def _columns(sheet: PaperTable) -> str:
    return "l" + "c" * len(sheet.metrics)


def _caption(sheet: PaperTable) -> str:
    return escape_latex(" ".join(table_caption(sheet)))


def _heads(sheet: PaperTable) -> str:
    heads = [f"{escape_latex(metric)} {ARROWS[sheet.better(metric)]}" for metric in sheet.metrics]
    return _row(["system", *heads])


def _rows(sheet: PaperTable) -> list[str]:
    rows = []
    for system in sheet.systems:
        cells = [sheet.cell(system, metric) for metric in sheet.metrics]
        mark = escape_latex(PARTIAL) if system in sheet.cautions else ""
        rows.append(_row([escape_latex(system) + mark, *map(_figure, cells)]))
        rows.append(_row(["", *(_interval(cell.interval) for cell in cells)]))
    chance = [_number(sheet.chance(metric)) for metric in sheet.metrics]
    return [*rows, r"\midrule", _row([r"\emph{chance}", *chance])]


def _row(cells: Sequence[str]) -> str:
    return rf"{' & '.join(cells)} \\"


def _figure(cell: ReportCell) -> str:
    value = rf"\textbf{{{_number(cell.value)}}}" if cell.best else _number(cell.value)
    return rf"{value}\textsuperscript{{{cell.letters}}}" if cell.letters else value


def _interval(text: str) -> str:
    return rf"{{\scriptsize {_number(text)}}}" if text else ""


def _number(text: str) -> str:
    """Figures, ranges and bounds with a real minus and real inequality signs."""
    return text.replace("-", "$-$").replace("<=", r"$\leq$").replace(">=", r"$\geq$")
