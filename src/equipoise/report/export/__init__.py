"""Export formats for papers and other programs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple

from equipoise.errors import DuplicateError, ParameterError, StoreError, UnknownNameError
from equipoise.io.run_files import write_run
from equipoise.report.export.metadata import as_bibtex, as_card
from equipoise.report.export.paper_table import as_latex, as_markdown, emulated_library, single_run
from equipoise.report.export.tables import as_csv, as_unit_csv
from equipoise.runs.run_folder import StoredRun
from equipoise.stats.comparison import Comparison
from equipoise.types import json_value

if TYPE_CHECKING:
    from equipoise.runs.unit_table import RetrievedItem

# The comparison, or the result of one run, as JSON that every parser reads.


def as_json(runs: Sequence[StoredRun], comparison: Comparison | None) -> str:
    """What ``eq compare --json`` writes of several runs, and ``eq score --json`` of one."""
    cautions = [run.caution for run in runs if run.caution]
    if comparison is None:
        data: dict[str, Any] = {"results": [single_run(runs).result.to_dict()], "cautions": cautions}
    else:
        data = comparison_dict(comparison) | {"cautions": cautions}
    like = emulated_library(runs)
    return f"{json.dumps(json_value(data | ({'like': like} if like else {})), indent=2, allow_nan=False)}\n"


def comparison_dict(comparison: Comparison) -> dict[str, Any]:
    """The comparison with its estimates in the shape that a result gives them."""
    estimates = {
        system: {metric: estimate.to_dict() for metric, estimate in estimates.items()}
        for system, estimates in comparison.estimates.items()
    }
    return comparison.to_dict() | {"estimates": estimates}


# A TREC run file of a run that stores the retrieved documents.

DEFAULT_TAG = "run"
_IN_ONE = "white space in names becomes _ there"


def as_trec(runs: Sequence[StoredRun], comparison: Comparison | None = None) -> str:
    """The lists of one system, its name as the tag. White space in names becomes an underscore.

    Scores are those of the system where every list falls by them; elsewhere they are 1 / rank, so that
    sorting by score gives the order that was retrieved.
    """
    if len(runs) != 1:
        raise ParameterError(
            f"a TREC run file holds one system, and {len(runs)} were given", hint="export them one by one"
        )
    run = runs[0]
    lists = {str(unit): detail.retrieved for unit, detail in run.details.items() if detail.retrieved}
    if not lists:
        raise StoreError(
            f"the run of {run.result.system} does not contain the retrieved lists, so no TREC run can be written",
            hint="--to csv --units writes the values of every query or question",
        )
    scored = all(map(_falls, lists.values()))
    table: dict[str, dict[str, float]] = {}
    for unit, items in lists.items():
        if _in_one(unit) in table:
            raise DuplicateError(f"two units would be called {_in_one(unit)} in a TREC run", hint=_IN_ONE)
        table[_in_one(unit)] = _scores(unit, items, scored)
    return _text(table, tag=_in_one(run.result.system) or DEFAULT_TAG)


def _falls(items: Sequence[RetrievedItem]) -> bool:
    """Whether there are scores, and they agree with the order."""
    scores = [item.score for item in items if item.score is not None]
    return len(scores) == len(items) and all(one >= other for one, other in pairwise(scores))


def _scores(unit: str, items: Iterable[RetrievedItem], scored: bool) -> dict[str, float]:
    scores: dict[str, float] = {}
    for rank, item in enumerate(items, start=1):
        name = _in_one(item.id)
        if name in scores:
            raise DuplicateError(
                f"{name} was retrieved twice for unit {unit}",
                hint=f"a TREC run has a document once per query; {_IN_ONE}",
            )
        scores[name] = item.score if scored and item.score is not None else 1 / rank
    return scores


def _in_one(name: str) -> str:
    """A name as one field of a line.

    >>> _in_one("chunk 7")
    'chunk_7'
    """
    return "_".join(name.split())


def _text(table: dict[str, dict[str, float]], tag: str) -> str:
    with TemporaryDirectory() as folder:
        file = Path(folder) / "run.trec"
        write_run(file, table, tag)
        return file.read_text(encoding="utf-8")


class ExportFormat(NamedTuple):
    """A format as a file. ``is_single`` means that it holds one system only."""

    function: Callable[[Sequence[StoredRun], Comparison | None], str]
    title: str
    filename: str
    media: str
    is_single: bool = False


FORMATS = {
    "latex": ExportFormat(as_latex, "LaTeX table", "table.tex", "application/x-tex"),
    "md": ExportFormat(as_markdown, "Markdown table", "table.md", "text/markdown"),
    "csv": ExportFormat(as_csv, "CSV", "scores.csv", "text/csv"),
    "json": ExportFormat(as_json, "JSON", "report.json", "application/json"),
    "card": ExportFormat(as_card, "Model card", "card.yaml", "application/yaml"),
    "bibtex": ExportFormat(as_bibtex, "BibTeX references", "references.bib", "application/x-bibtex"),
    "trec": ExportFormat(as_trec, "TREC run", "run.trec", "text/plain", is_single=True),
}
UNIT_CSV = ExportFormat(as_unit_csv, "CSV of every unit", "units.csv", "text/csv")


def export(
    runs: Sequence[StoredRun],
    comparison: Comparison | None,
    to: str,
    *,
    units: bool = False,
    formulas: bool = False,
    dataset: str = "",
) -> str:
    """One run, or several and their comparison, as text in the format ``to``.

    ``units`` asks for the values of every unit instead of their means; only csv has them. In csv, names that
    a spreadsheet would take for a formula get an apostrophe, unless ``formulas`` says that they may stay. ``dataset``
    is in the caption and the label of a table in latex or md.
    """
    if to not in FORMATS:
        raise UnknownNameError.of("format", to, FORMATS, more=f"the formats are {', '.join(FORMATS)}")
    if units and to != "csv":
        raise ParameterError(f"{to} cannot have one row per query", hint="only csv can: --to csv --units")
    if to == "csv":
        return (as_unit_csv if units else as_csv)(runs, comparison, formulas=formulas)
    if dataset and to in ("latex", "md"):
        return (as_latex if to == "latex" else as_markdown)(runs, comparison, dataset)
    return FORMATS[to].function(runs, comparison)


__all__ = ["FORMATS", "UNIT_CSV", "ExportFormat", "export"]
