"""Export formats for papers and other programs."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from equipoise.errors import ParameterError, UnknownNameError
from equipoise.report.export.bibtex import as_bibtex
from equipoise.report.export.card import as_card
from equipoise.report.export.csv import as_csv, as_unit_csv
from equipoise.report.export.latex import as_latex
from equipoise.report.export.markdown import as_markdown
from equipoise.report.export.paper_table import emulated_library, single_run
from equipoise.report.export.trec import as_trec
from equipoise.runs.store import StoredRun
from equipoise.stats.comparison import Comparison

# The comparison, or the result of one run, as JSON that every parser reads.


def as_json(runs: Sequence[StoredRun], comparison: Comparison | None) -> str:
    """What ``eq compare --json`` writes of several runs, and ``eq score --json`` of one."""
    cautions = [run.caution for run in runs if run.caution]
    if comparison is None:
        data: dict[str, Any] = {"results": [single_run(runs).result.to_dict()], "cautions": cautions}
    else:
        data = comparison_dict(comparison) | {"cautions": cautions}
    like = emulated_library(runs)
    return f"{json.dumps(_finite(data | ({'like': like} if like else {})), indent=2, allow_nan=False)}\n"


def comparison_dict(comparison: Comparison) -> dict[str, Any]:
    """The comparison with its estimates in the shape that a result gives them."""
    estimates = {
        system: {metric: estimate.to_dict() for metric, estimate in estimates.items()}
        for system, estimates in comparison.estimates.items()
    }
    return comparison.to_dict() | {"estimates": estimates}


def _finite(data: dict[str, Any]) -> Any:
    """The same with null for what is no number."""
    return json.loads(json.dumps(data, default=str), parse_constant=lambda _: None)


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
        return (as_unit_csv if units else as_csv)(runs, comparison, formulas=formulas)
    return FORMATS[to](runs, comparison)


__all__ = ["FORMATS", "export"]
