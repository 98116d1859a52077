"""Run directories: what one system scored, written whole or not at all.

manifest.json   what made it, and whether it is complete
result.json     the figures, each with its unit, interval, n, undefined count and chance; the findings
cases.jsonl     the values of every unit
evidence.npz    what was observed, so that it can be scored again
details.jsonl   what people see of a unit: its text, the right answers, what was retrieved (where it is known)
errors.npz      how far off each figure was when all was drawn anew (where its units depend on each other)
tuning.json     how the system's parameters were chosen (where they were)
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.checks.protocol import PARTIAL_RUN
from equipoise.checks.registry import run_checks
from equipoise.errors import InputError, PartialError, StoreError, did_you_mean
from equipoise.evidence.base import Evidence, pack_npz, unpack_npz
from equipoise.io import json
from equipoise.io.atomic import atomic_directory, current_path, write_bytes, write_error
from equipoise.io.json import parse_lines
from equipoise.runs.manifest import STATUS_SETTINGS, Manifest, Status
from equipoise.runs.run_directory import (
    CASES,
    CHANGED,
    DETAILS,
    ERRORS,
    EVIDENCE,
    FILES,
    MANIFEST,
    RESULT,
    TUNING,
    RunFolder,
    open_run,
    read_manifest,
    unreadable,
)
from equipoise.runs.unit_table import (
    UnitContent,
    UnitContents,
    UnitTable,
    detail_lines,
    json_text,
    number,
    parse_details,
    parse_unit_lines,
    unit_lines,
)
from equipoise.stats.intervals import Interval
from equipoise.stats.result import Estimate, Result
from equipoise.tuning.grid import TuningRecord
from equipoise.types import Direction, Finding, Floats, Severity

if TYPE_CHECKING:
    from equipoise.io.text import PathLike

# Results and evidence as they come back from a run directory.

KINDS = {
    "ranking": ("equipoise.evidence.ranking", "Ranking"),
    "pairs": ("equipoise.evidence.pairs", "Pairs"),
    "labels": ("equipoise.evidence.labels", "Labels"),
    "sets": ("equipoise.evidence.sets", "Sets"),
    "space": ("equipoise.evidence.space", "Space"),
}
"""Where each kind of evidence lives; only the one that is read is imported."""


def result_from_dict(content: Any, cases: UnitTable, *, source: str) -> Result:
    """The result that ``Result.to_dict`` described, with its per-unit columns."""
    try:
        estimates = [_estimate(each) for each in content["estimates"]]
        return Result(
            system=json.text(content["system"]),
            unit_ids=cases.unit_ids,
            estimates={each.metric: each for each in estimates},
            per_unit=cases.per_unit,
            weights=cases.weights,
            clusters=cases.clusters,
            findings=tuple(_finding(each) for each in content["findings"]),
            settings=dict(content["settings"]),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        what = f"no {error}" if isinstance(error, KeyError) else str(error)
        raise StoreError(
            f"{source} does not describe a result: {what}",
            hint="the file was changed after it was written: run the command again",
        ) from error


def pack_errors(errors: Mapping[str, Floats]) -> bytes:
    """The redrawn errors of all metrics, as ``unpack_errors`` reads them."""
    return pack_npz({"metrics": np.array(list(errors)), "errors": np.array(list(errors.values()))})


def unpack_errors(file: Path, data: bytes | None = None) -> dict[str, Floats]:
    """The redrawn errors that a run directory keeps, by metric; ``data`` are the bytes of the file."""
    arrays = unpack_npz(file, data)
    try:
        names, errors = arrays["metrics"].tolist(), np.asarray(arrays["errors"], dtype=np.float64)
        return {str(name): row for name, row in zip(names, errors, strict=True)}
    except (KeyError, TypeError, ValueError) as error:
        raise StoreError(f"{file} holds no redrawn errors: {error}", hint="run the command again") from error


def evidence_from(file: Path, data: bytes | None = None) -> Evidence:
    """Evidence of whatever kind the file holds; ``data`` are its bytes, where they were read already."""
    arrays = unpack_npz(file, data)
    kind = str(arrays.pop("kind", ""))
    if kind not in KINDS:
        raise StoreError(
            f"{file} holds {f'{kind!r}' if kind else 'no'} evidence",
            hint=did_you_mean(kind, KINDS) or f"evidence is {', '.join(KINDS)}",
        )
    home, name = KINDS[kind]
    try:
        evidence: Evidence = getattr(import_module(home), name).from_arrays(arrays)
    except StoreError as error:
        raise StoreError(f"{file} is no {kind} evidence: {error.message}", hint=error.hint) from error
    return evidence


def _estimate(content: Any) -> Estimate:
    reach = content["interval"]
    return Estimate(
        metric=json.text(content["metric"]),
        value=number(content["value"]),
        interval=Interval(
            number(reach["low"]),
            number(reach["high"]),
            number(reach["confidence_level"]),
            json.text(reach["method"]),
            json.text(reach.get("reason", "")),
        ),
        n=json.integer(content["n"]),
        undefined=json.integer(content["undefined"]),
        chance=number(content["chance"]),
        better=Direction(content["better"]),
        unit=json.text(content["unit"]),
    )


def _finding(content: Any) -> Finding:
    return Finding(
        code=json.text(content["code"]),
        severity=Severity(content["severity"]),
        subject=json.text(content["subject"]),
        message=json.text(content["message"]),
        hint=json.text(content["hint"]),
        evidence=tuple(map(json.text, json.items(content["evidence"]))),
    )


_ATTEMPTS = 3


@dataclass(frozen=True)
class StoredRun:
    """A run as it was read back: the result, what made it, and where it lies."""

    result: Result
    manifest: Manifest
    path: Path

    @property
    def caution(self) -> str:
        """What to say beside the figures of a run that is not complete; empty for one that is."""
        return self.manifest.caution

    @cached_property
    def details(self) -> Mapping[str | int, UnitContent]:
        """What people see of each unit; empty where the run keeps none. Read when it is first asked for."""
        folder = RunFolder(self.path, self.manifest)
        if DETAILS not in folder:
            return {}
        return parse_details(_lines(folder, DETAILS), source=str(self.path / DETAILS))

    @cached_property
    def tuning(self) -> TuningRecord | None:
        """How the parameters were chosen; None where nothing was tuned."""
        folder = RunFolder(self.path, self.manifest)
        if TUNING not in folder:
            return None
        try:
            return TuningRecord.from_dict(folder.json(TUNING))  # type: ignore[arg-type]
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            file = self.path / TUNING
            raise StoreError(f"{file} does not describe a tuning: {error}", hint=CHANGED) from error

    def _repr_html_(self) -> str:
        """The result as notebooks show it."""
        return self.result._repr_html_()


def save_run(
    path: PathLike,
    result: Result,
    *,
    manifest: Manifest,
    details: UnitContents | None = None,
    tuning: TuningRecord | None = None,
) -> Path:
    """Write a run directory in one step, replacing an older run at that path.

    Readers see the old run or the new one, never a mixture. The number of units, the SHA-256 of every other file and,
    if it is not set, the end time are added to the manifest.

    Parameters
    ----------
    path
        The run directory.
    result
        The result to store, with its evidence.
    manifest
        Provenance: system, command, seed, settings, inputs.
    details
        Texts, expected answers and retrieved items of the units.
    tuning
        How the parameters of the system were chosen.

    Returns
    -------
    Path
        The run directory.

    Examples
    --------
    >>> import tempfile
    >>> from equipoise import Ranking, evaluate
    >>> from equipoise.runs.manifest import Manifest
    >>> result = evaluate(Ranking.from_ranks([1, 2, 4], candidates=20), "MRR", system="mine")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     run = save_run(f"{folder}/mine", result, manifest=Manifest.start("mine"))
    ...     sorted(file.name for file in run.iterdir())
    ['cases.jsonl', 'evidence.npz', 'manifest.json', 'result.json']
    """
    target = Path(path).absolute()
    _refuse_to_replace(target, path)
    files = {RESULT: _encoded(result.to_dict()), CASES: _cases(result)}
    if result.evidence is not None:
        files[EVIDENCE] = pack_npz({"kind": np.array(result.evidence.kind), **result.evidence.to_arrays()})
    if result.errors:
        files[ERRORS] = pack_errors(result.errors)
    if details:
        files[DETAILS] = _bytes("".join(f"{line}\n" for line in detail_lines(details)))
    if tuning is not None:
        files[TUNING] = _encoded(tuning.to_dict())
    whole = _completed(manifest, result, files)
    # Until the last step the directory says of itself that it is not whole.
    begun = replace(whole, status=Status.PARTIAL, reason="the write was interrupted")
    try:
        with atomic_directory(target) as folder:
            write_bytes(folder / MANIFEST, _encoded(begun.to_dict()))
            for name, data in files.items():
                write_bytes(folder / name, data)
            write_bytes(folder / MANIFEST, _encoded(whole.to_dict()))
    except (OSError, StoreError, PartialError) as error:
        # The name of the part that could not be written means nothing to anybody.
        reason = error if isinstance(error, OSError) else error.__cause__
        raise write_error(path, reason, hint="choose another folder") from error
    return Path(path)


def load_run(path: PathLike, *, evidence: bool = True) -> StoredRun:
    """Read a run directory.

    A partial or failed run is read as well; its manifest has the status. All files of the run are verified against the
    SHA-256 hashes in the manifest.

    Parameters
    ----------
    path
        The run directory.
    evidence
        Whether the evidence is loaded, too.

    Returns
    -------
    StoredRun
        The result, the manifest, and the contents of the units.

    Examples
    --------
    >>> import tempfile
    >>> from equipoise import Ranking, evaluate
    >>> from equipoise.runs.manifest import Manifest
    >>> result = evaluate(Ranking.from_ranks([1, 2, 4], candidates=20), "MRR", system="mine")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     run = save_run(f"{folder}/mine", result, manifest=Manifest.start("mine"))
    ...     round(load_run(run).result["MRR"].value, 4)
    0.5833
    """
    for _ in range(_ATTEMPTS):
        folder = open_run(path)
        try:
            run = _read(folder, evidence=evidence)
        except StoreError:
            if read_manifest(path) == folder.manifest:
                raise
            continue
        # A run that was replaced while it was read may be a mixture, so it is read once more.
        if read_manifest(path) == folder.manifest:
            return run
    raise StoreError(f"{path} is being replaced again and again", hint="wait until its writer has finished")


def load_evidence(path: PathLike) -> Evidence:
    """Read evidence of any kind from an ``.npz`` file or a run directory.

    Parameters
    ----------
    path
        A file that ``Evidence.save`` wrote, or a run directory.

    Returns
    -------
    Evidence
        A ``Ranking``, ``Pairs``, ``Labels``, ``Sets`` or ``Space``.

    Examples
    --------
    >>> import tempfile
    >>> from equipoise import Ranking
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Ranking.from_ranks([1, 2, 4], candidates=20).save(f"{folder}/evidence.npz")
    ...     load_evidence(f"{folder}/evidence.npz").ranks.tolist()
    [1.0, 2.0, 4.0]
    """
    file = Path(path)
    if not file.is_file() and current_path(file.absolute()).is_dir():
        folder = open_run(path)
        return evidence_from(folder.path / EVIDENCE, folder.read(EVIDENCE))
    return evidence_from(file)


def _completed(manifest: Manifest, result: Result, files: Mapping[str, bytes]) -> Manifest:
    """The manifest with what only the end of a run knows."""
    ended = manifest if manifest.finished else manifest.finish(manifest.status, reason=manifest.reason)
    hashes = {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}
    observed = None
    if result.evidence is not None and EVIDENCE in hashes:
        observed = {"kind": result.evidence.kind, "sha256": hashes[EVIDENCE]}
    return replace(
        ended,
        system=result.system,
        units=len(result.unit_ids),
        seed=result.settings.get("seed", manifest.seed),
        settings={**result.settings, **manifest.settings},
        evidence=observed,
        files=hashes,
    )


def _refuse_to_replace(target: Path, path: PathLike) -> None:
    """Only a run directory, or an empty one, gives way: nobody's other files do."""
    if not target.exists():
        return
    if not target.is_dir():
        raise StoreError(f"{path} is a file, where a run directory should be", hint="choose another name")
    names = sorted(each.name for each in target.iterdir())
    foreign = [name for name in names if name not in FILES]
    if foreign or (names and MANIFEST not in names):
        raise StoreError(
            f"{path} holds {(foreign or names)[0]}, which is no part of a run, and is not replaced",
            hint="choose another folder, or move that file away",
        )


def _cases(result: Result) -> bytes:
    for unit in result.unit_ids.tolist():
        if not isinstance(unit, str | int):
            raise StoreError(
                f"the unit id {unit!r} is a {type(unit).__name__} and cannot be stored",
                hint="name units by strings or whole numbers",
            )
    return _bytes("".join(f"{line}\n" for line in unit_lines(result)))


def _encoded(value: object) -> bytes:
    return _bytes(f"{json_text(value, indent=1)}\n")


def _bytes(text: str) -> bytes:
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise StoreError(
            f"the text {text[max(0, error.start - 20) : error.end]!r} holds half of a surrogate pair",
            hint="the input was decoded with the wrong encoding",
        ) from error


def _read(folder: RunFolder, *, evidence: bool) -> StoredRun:
    manifest, path = folder.manifest, folder.path
    cases = _read_cases(folder)
    result = result_from_dict(folder.json(RESULT), cases, source=str(path / RESULT))
    read = [CASES, RESULT]
    if ERRORS in folder:
        result = replace(result, errors=unpack_errors(path / ERRORS, folder.read(ERRORS)))
        read.append(ERRORS)
    if evidence and EVIDENCE in folder:
        result = replace(result, evidence=_read_evidence(folder, cases))
        read.append(EVIDENCE)
    folder.verify(*(name for name in manifest.files if name not in read))
    return StoredRun(_with_status(result, manifest), manifest, path)


def _with_status(result: Result, manifest: Manifest) -> Result:
    """The result of a run that is not complete says so itself, wherever it is taken."""
    settings = {name: value for name, value in result.settings.items() if name not in STATUS_SETTINGS}
    if not manifest.complete:
        settings |= dict(zip(STATUS_SETTINGS, (str(manifest.status), manifest.reason), strict=True))
    findings = tuple(finding for finding in result.findings if finding.code != PARTIAL_RUN)
    result = replace(result, settings=settings, findings=findings)
    return replace(result, findings=run_checks(result) + findings)


def _read_cases(folder: RunFolder) -> UnitTable:
    file, units = folder.path / CASES, folder.manifest.units
    if units == 0:
        folder.verify(CASES)
        return parse_unit_lines([], source=str(file))
    lines = _lines(folder, CASES)
    if len(lines) != units:
        raise StoreError(f"{file} has {len(lines)} units, and the manifest counts {units}", hint=CHANGED)
    return parse_unit_lines(lines, source=str(file))


def _read_evidence(folder: RunFolder, cases: UnitTable) -> Evidence:
    file = folder.path / EVIDENCE
    evidence = evidence_from(file, folder.read(EVIDENCE))
    if len(evidence) != len(cases.unit_ids):
        raise StoreError(f"{file} has {len(evidence)} units, and the cases have {len(cases.unit_ids)}", hint=CHANGED)
    # An archive keeps only plain strings, so ids come from the cases, which know their type.
    restored: Evidence = replace(evidence, unit_ids=cases.unit_ids)  # type: ignore[type-var]
    return restored


def _lines(folder: RunFolder, name: str) -> list[tuple[int, object]]:
    try:
        return parse_lines(folder.text(name))
    except InputError as error:
        raise unreadable(error) from error


# Finding run directories: a path names one itself, or a folder that holds some below it.


def find_runs(*paths: PathLike) -> list[Path]:
    """List the run directories at and below the given paths.

    Hidden folders (such as a run that is being written) and symbolic links are skipped. Folders inside a run directory
    are not searched.

    Parameters
    ----------
    *paths
        Run directories, or folders that contain some.

    Returns
    -------
    list of Path
        Each run directory once, in the order of the paths and then of the names.

    Examples
    --------
    >>> import tempfile
    >>> from equipoise import Ranking, evaluate
    >>> from equipoise.runs.manifest import Manifest
    >>> result = evaluate(Ranking.from_ranks([1, 2, 4], candidates=20), "MRR", system="mine")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     run = save_run(f"{folder}/mine", result, manifest=Manifest.start("mine"))
    ...     [path.name for path in find_runs(folder)]
    ['mine']
    """
    found: dict[Path, Path] = {}
    for path in map(Path, paths):
        for run in _runs_at(path):
            found.setdefault(run.resolve(), run)
    return list(found.values())


def _runs_at(path: Path) -> list[Path]:
    if not path.is_dir() or (path / MANIFEST).is_file():
        read_manifest(path)  # says why, where it is no run directory
        return [path]
    runs = _runs_below(path)
    if not runs:
        raise StoreError(
            f"neither {path} nor a folder below it is a run directory", hint="eq score -o FOLDER writes one"
        )
    return runs


def _runs_below(folder: Path) -> list[Path]:
    runs = []
    for at, folders, files in os.walk(folder):
        # Another program's manifest.json makes no run; a result beside it does.
        if {MANIFEST, RESULT} <= set(files):
            runs.append(Path(at))
            folders.clear()
        folders[:] = sorted(name for name in folders if not name.startswith("."))
    return runs
