"""Runs of extraction compared over the same documents, by the results files that they left."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from equipoise.data.jsontext import parse_json
from equipoise.data.text import PathLike, open_text
from equipoise.errors import FormatError, ParameterError
from equipoise.recipes.phenotypes.extraction.store import RESULTS
from equipoise.run.evaluate import compare
from equipoise.run.find import find_runs
from equipoise.run.store import StoredRun, read_run
from equipoise.stats.comparison import Comparison


def compare_extractions(
    files: Sequence[PathLike], metrics: Any = None, *, primary: str | None = None, **options: Any
) -> Comparison:
    """Compare two or more runs, paired over documents; see ``run.evaluate.compare`` for the options.

    A file is an ``extraction_results.json``, the folder that holds it, or a run directory. The metrics are,
    unless some are named, F1, precision and recall as the first run leads with them, and their soft and macro
    forms. Runs that led with another mode or average are refused: their figures mean other things.
    """
    return compare_runs(read_extractions(files), metrics, primary=primary, **options)


def compare_runs(
    runs: dict[str, StoredRun], metrics: Any = None, *, primary: str | None = None, **options: Any
) -> Comparison:
    """The same for runs that were read already."""
    _refuse_other_modes(runs)
    first = next(iter(runs.values())).result
    results = [replace(run.result, system=name) for name, run in runs.items()]
    return compare(results, metrics or shown(first.names), primary=primary or first.names[0], **options)


def read_extractions(files: Sequence[PathLike]) -> dict[str, StoredRun]:
    """The runs by name: that of the system, or where two are of one system that of the folder."""
    found = [(Path(file), read_run(place)) for file in files for place in _places(Path(file))]
    if len(found) < 2:
        raise ParameterError(
            f"a comparison needs at least two runs, and {len(found) or 'none'} was named",
            hint="eq phenotypes extraction run DIR -o FOLDER leaves one behind",
        )
    names = [run.result.system for _, run in found]
    if len(set(names)) < len(names):
        names = [_folder(file) for file, _ in found]
    if len(set(names)) < len(names):
        names = [str(file) for file, _ in found]
    if len(set(names)) < len(names):
        raise ParameterError("a run is named twice", hint="name each run once")
    return dict(zip(names, (run for _, run in found), strict=True))


def shown(names: Sequence[str]) -> tuple[str, ...]:
    """The metrics of a comparison: the leading three, their soft forms, and those of the next average.

    A run lists them in this order.
    """
    return tuple(names[:9])


def _folder(file: Path) -> str:
    return (file.parent if file.name == RESULTS else file).name


def _places(file: Path) -> list[Path]:
    """The run directories of a results file or a folder."""
    if file.is_dir():
        return find_runs(file)
    content = parse_json(open_text(file))
    run = content.get("run") if isinstance(content, dict) else None
    if not isinstance(run, str):
        raise FormatError(
            f"{file} names no run", hint=f"give a {RESULTS} that eq phenotypes extraction run wrote"
        )
    return [file.parent / run]


def _refuse_other_modes(runs: dict[str, StoredRun]) -> None:
    for setting, flag in (("mode", "--include-assertions"), ("averaging", "--averaging")):
        told = {name: run.result.settings.get(setting) for name, run in runs.items()}
        if len(set(told.values())) > 1:
            said = ", ".join(f"{name}: {value or 'unknown'}" for name, value in told.items())
            raise ParameterError(
                f"the runs lead with another {setting} ({said})", hint=f"run them with the same {flag}"
            )
