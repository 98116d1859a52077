"""The runs of a page, read with no more than it needs, and the comparison of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from equipoise.errors import DuplicateError, UnknownNameError
from equipoise.run.evaluate import compare
from equipoise.run.measured import with_metrics
from equipoise.run.store import StoredRun, read_run
from equipoise.stats.comparison import Comparison
from equipoise.stats.result import Result


def read_runs(named: Sequence[tuple[str, Path]], primary: str | None = None) -> tuple[StoredRun, ...]:
    """Read run directories; each comes with a name for its system, or with an empty one.

    Two systems of one name are refused. A ``primary`` metric comes first, and is scored where it was not.
    Evidence is read only where a metric cannot be had or compared without it.
    """
    runs: dict[str, StoredRun] = {}
    for name, path in named:
        run = _renamed(_read(path, primary), name)
        other = runs.setdefault(run.result.system, run)
        if other is not run:
            raise DuplicateError(
                f"{other.path} and {path} are both runs of {run.result.system}",
                hint=f"give one of them another name: {run.result.system}-2={path}",
            )
    return tuple(runs.values())


def comparison_of(
    runs: Sequence[StoredRun],
    *,
    primary: str | None = None,
    test: str = "randomisation",
    correction: str = "holm",
    seed: int = 0,
) -> Comparison | None:
    """The comparison of the runs on the metrics that all of them have; None for one run alone."""
    if len(runs) < 2:
        return None
    return compare([run.result for run in runs], primary=primary, test=test, correction=correction, seed=seed)


def _read(path: Path, primary: str | None) -> StoredRun:
    run = read_run(path, evidence=False)
    if not _suffices(run.result, primary):
        run = read_run(path)
    if primary is None:
        return run
    return replace(run, result=with_metrics(run.result, [primary, *run.result.names]))


def _suffices(result: Result, primary: str | None) -> bool:
    """Whether everything can be compared without the evidence."""
    if any(name not in result.per_unit for name in result.names):
        return False
    try:
        return primary is None or bool(result[primary])
    except UnknownNameError:
        return False


def _renamed(run: StoredRun, name: str) -> StoredRun:
    """The run under the name it was given, in its findings and cautions too."""
    was = run.result.system
    if not name or name == was:
        return run
    findings = tuple(
        replace(each, subject=name) if each.subject == was else each for each in run.result.findings
    )
    result = replace(run.result, system=name, findings=findings)
    return replace(run, result=result, manifest=replace(run.manifest, system=name))
