"""A TREC run file of a run that stores the retrieved documents."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from equipoise.errors import DuplicateError, ParameterError, StoreError
from equipoise.io.run_files import write_run

if TYPE_CHECKING:
    from equipoise.runs.store import StoredRun
    from equipoise.runs.unit_table import RetrievedItem
    from equipoise.stats.comparison import Comparison

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
            f"the run of {run.result.system} does not keep what was retrieved, so there is no TREC run to write",
            hint="--to csv --units writes the figures of every unit",
        )
    scored = all(map(_falls, lists.values()))
    table: dict[str, dict[str, float]] = {}
    for unit, found in lists.items():
        if _in_one(unit) in table:
            raise DuplicateError(f"two units would be called {_in_one(unit)} in a TREC run", hint=_IN_ONE)
        table[_in_one(unit)] = _scores(unit, found, scored)
    return _text(table, tag=_in_one(run.result.system) or DEFAULT_TAG)


def _falls(found: Sequence[RetrievedItem]) -> bool:
    """Whether there are scores, and they agree with the order."""
    scores = [each.score for each in found if each.score is not None]
    return len(scores) == len(found) and all(one >= other for one, other in pairwise(scores))


def _scores(unit: str, found: Iterable[RetrievedItem], scored: bool) -> dict[str, float]:
    scores: dict[str, float] = {}
    for rank, each in enumerate(found, start=1):
        name = _in_one(each.id)
        if name in scores:
            raise DuplicateError(
                f"{name} was retrieved twice for unit {unit}",
                hint=f"a TREC run names a document once a query; {_IN_ONE}",
            )
        scores[name] = each.score if scored and each.score is not None else 1 / rank
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
