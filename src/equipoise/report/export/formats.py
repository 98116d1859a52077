"""Results in the forms that other people's programs and papers take."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from equipoise.errors import ParameterError, UnknownNameError
from equipoise.report.export.bibtex import as_bibtex
from equipoise.report.export.card import as_card
from equipoise.report.export.json import as_json
from equipoise.report.export.latex import as_latex
from equipoise.report.export.markdown import as_markdown
from equipoise.report.export.tabular import as_csv, as_units
from equipoise.report.export.trec import as_trec
from equipoise.run.store import StoredRun
from equipoise.stats.comparison import Comparison

Exporter = Callable[[Sequence[StoredRun], Comparison | None], str]

FORMATS: dict[str, Exporter] = {
    "latex": as_latex,
    "md": as_markdown,
    "csv": as_csv,
    "json": as_json,
    "trec": as_trec,
    "card": as_card,
    "bibtex": as_bibtex,
}


def export(
    runs: Sequence[StoredRun],
    comparison: Comparison | None,
    to: str,
    *,
    units: bool = False,
    formulas: bool = False,
) -> str:
    """One run, or several and their comparison, as text in the format ``to``.

    ``units`` asks for the figures of every unit instead of their sums; only csv has them. In csv, names that
    a spreadsheet would take for a formula get an apostrophe, unless ``formulas`` says that they may stay.
    """
    if to not in FORMATS:
        raise UnknownNameError.of("format", to, FORMATS, more=f"the formats are {', '.join(FORMATS)}")
    if units and to != "csv":
        raise ParameterError(f"{to} has no form with one row a unit", hint="csv has: --to csv --units")
    if to == "csv":
        return (as_units if units else as_csv)(runs, comparison, formulas=formulas)
    return FORMATS[to](runs, comparison)
