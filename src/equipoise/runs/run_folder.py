"""Run directories: the scores of one system, written completely or not at all.

manifest.json   inputs, versions and settings, and whether the run is complete
result.json     the estimates, each with its unit, interval, n, undefined count and chance level; the findings
cases.jsonl     the values of every unit
evidence.npz    the evidence, so that other metrics can be computed
details.jsonl   the content of the units: text, expected answers, retrieved items (if known)
errors.npz      bootstrap errors of the estimates (if the units depend on each other)
tuning.json     how the parameters of the system were selected (if they were)
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

from equipoise.checks.base import run_checks
from equipoise.errors import InputError, PartialError, StoreError, did_you_mean
from equipoise.evidence.base import FILE_CHANGED, Evidence, pack_npz, unpack_npz
from equipoise.io import json
from equipoise.io.atomic import atomic_directory, current_path, write_bytes, write_error
from equipoise.io.json import parse_lines
from equipoise.io.run_files import TREC_SUFFIXES
from equipoise.runs.manifest import (
    CASES,
    CHANGED,
    DETAILS,
    ERRORS,
    EVIDENCE,
    FILES,
    MANIFEST,
    RESULT,
    STATUS_SETTINGS,
    TUNING,
    VIEW,
    Manifest,
    RunFolder,
    Status,
    open_run,
    read_manifest,
    unreadable,
)
from equipoise.runs.progress_file import find_active_runs
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
from equipoise.stats.verdict import PARTIAL_RUN
from equipoise.tuning.grid import TuningRecord
from equipoise.types import Direction, Finding, Floats, Severity

if TYPE_CHECKING:
    from equipoise.io.text import PathLike

# Results and evidence from a run directory.

KINDS = {
    "ranking": ("equipoise.evidence.ranking", "Ranking"),
    "pairs": ("equipoise.evidence.pairs", "Pairs"),
    "labels": ("equipoise.evidence.labels", "Labels"),
    "sets": ("equipoise.evidence.sets", "Sets"),
    "space": ("equipoise.evidence.space", "Space"),
}
"""The module of each kind of evidence; only the one that is read is imported."""


def result_from_dict(content: Any, cases: UnitTable, *, source: str) -> Result:
    """The result from the output of ``Result.to_dict`` and its per-unit columns."""
    try:
        estimates = [_estimate(entry) for entry in content["estimates"]]
        return Result(
            system=json.text(content["system"]),
            unit_ids=cases.unit_ids,
            estimates={estimate.metric: estimate for estimate in estimates},
            per_unit=cases.per_unit,
            weights=cases.weights,
            clusters=cases.clusters,
            findings=tuple(_finding(entry) for entry in content["findings"]),
            settings=dict(content["settings"]),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        reason = f"no {error}" if isinstance(error, KeyError) else str(error)
        raise StoreError(
            f"{source} does not describe a result: {reason}",
            hint=FILE_CHANGED,
        ) from error


def pack_errors(errors: Mapping[str, Floats]) -> bytes:
    """The bootstrap errors of all metrics, as ``unpack_errors`` reads them."""
    return pack_npz({"metrics": np.array(list(errors)), "errors": np.array(list(errors.values()))})


def unpack_errors(file: Path, data: bytes | None = None) -> dict[str, Floats]:
    """The stored bootstrap errors by metric; ``data`` are the bytes of the file."""
    arrays = unpack_npz(file, data)
    try:
        names, errors = arrays["metrics"].tolist(), np.asarray(arrays["errors"], dtype=np.float64)
        return {str(name): row for name, row in zip(names, errors, strict=True)}
    except (KeyError, TypeError, ValueError) as error:
        raise StoreError(f"{file} has no bootstrap errors: {error}", hint="run the command again") from error


def evidence_from(file: Path, data: bytes | None = None) -> Evidence:
    """Evidence of any kind from a file; ``data`` are its bytes, if they were read already."""
    arrays = unpack_npz(file, data)
    kind = str(arrays.pop("kind", ""))
    if kind not in KINDS:
        raise StoreError(
            f"{file} has {f'{kind!r}' if kind else 'no'} evidence",
            hint=did_you_mean(kind, KINDS) or f"evidence is {', '.join(KINDS)}",
        )
    module, name = KINDS[kind]
    try:
        evidence: Evidence = getattr(import_module(module), name).from_arrays(arrays)
    except StoreError as error:
        raise StoreError(f"{file} is not {kind} evidence: {error.message}", hint=error.hint) from error
    return evidence


def _estimate(content: Any) -> Estimate:
    interval = content["interval"]
    return Estimate(
        metric=json.text(content["metric"]),
        value=number(content["value"]),
        interval=Interval(
            number(interval["low"]),
            number(interval["high"]),
            number(interval["confidence_level"]),
            json.text(interval["method"]),
            json.text(interval.get("reason", "")),
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
        title=json.text(content.get("title", "")),
    )


_ATTEMPTS = 3


@dataclass(frozen=True)
class StoredRun:
    """A run that was read from disk: ``result``, ``manifest`` (command, versions, seed, hashes) and ``path``."""

    result: Result
    manifest: Manifest
    path: Path

    @property
    def caution(self) -> str:
        """The warning for the scores of an incomplete run; empty for a complete one."""
        return self.manifest.caution

    def renamed(self, system: str) -> StoredRun:
        """The run under another name of its system, in its findings and its warning too."""
        return replace(self, result=self.result.renamed(system), manifest=replace(self.manifest, system=system))

    @cached_property
    def details(self) -> Mapping[str | int, UnitContent]:
        """The content of the units, read on first use; empty if the run has none."""
        folder = RunFolder(self.path, self.manifest)
        if DETAILS not in folder:
            return {}
        return parse_details(_lines(folder, DETAILS), source=str(self.path / DETAILS))

    @cached_property
    def tuning(self) -> TuningRecord | None:
        """How the parameters were selected; None if nothing was tuned."""
        folder = RunFolder(self.path, self.manifest)
        if TUNING not in folder:
            return None
        try:
            return TuningRecord.from_dict(folder.json(TUNING))  # type: ignore[arg-type]
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            file = self.path / TUNING
            raise StoreError(f"{file} does not describe a tuning: {error}", hint=CHANGED) from error

    def _repr_html_(self) -> str:
        """The result as HTML for notebooks."""
        return self.result._repr_html_()


def save_run(
    path: PathLike,
    result: Result,
    *,
    manifest: Manifest | None = None,
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
        Provenance: system, command, seed, settings, inputs. By default only the system and the time are recorded.
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
    >>> result = evaluate(Ranking.from_ranks([1, 2, 4], candidates=20), "MRR", system="mine")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     run = save_run(f"{folder}/mine", result)
    ...     sorted(file.name for file in run.iterdir())
    ['cases.jsonl', 'evidence.npz', 'manifest.json', 'result.json']
    """
    target = Path(path).absolute()
    _check_replaceable(target, path)
    files = {RESULT: _encoded(result.to_dict()), CASES: _cases(result)}
    if result.evidence is not None:
        files[EVIDENCE] = pack_npz({"kind": np.array(result.evidence.kind), **result.evidence.to_arrays()})
    if result.errors:
        files[ERRORS] = pack_errors(result.errors)
    if details:
        files[DETAILS] = _bytes("".join(f"{line}\n" for line in detail_lines(details)))
    if tuning is not None:
        files[TUNING] = _encoded(tuning.to_dict())
    complete = _completed(manifest or Manifest.start(result.system), result, files)
    # Until the last step the manifest in the directory has the status partial.
    partial = replace(complete, status=Status.PARTIAL, reason="the write was interrupted")
    try:
        with atomic_directory(target) as folder:
            write_bytes(folder / MANIFEST, _encoded(partial.to_dict()))
            for name, data in files.items():
                write_bytes(folder / name, data)
            write_bytes(folder / MANIFEST, _encoded(complete.to_dict()))
    except (OSError, StoreError, PartialError) as error:
        # The error names the run directory, not the temporary file.
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
    >>> result = evaluate(Ranking.from_ranks([1, 2, 4], candidates=20), "MRR", system="mine")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     run = save_run(f"{folder}/mine", result)
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
        # A run that was replaced while it was read may be a mixture, so it is read again.
        if read_manifest(path) == folder.manifest:
            return run
    raise StoreError(f"{path} is replaced repeatedly", hint="wait until its writer has finished")


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
    """The manifest with the number of units, the hashes of the files and the time of the end."""
    ended = manifest if manifest.finished else manifest.finish(manifest.status, reason=manifest.reason)
    hashes = {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}
    evidence = None
    if result.evidence is not None and EVIDENCE in hashes:
        evidence = {"kind": result.evidence.kind, "sha256": hashes[EVIDENCE]}
    return replace(
        ended,
        system=result.system,
        units=len(result.unit_ids),
        seed=result.settings.get("seed", manifest.seed),
        settings={**result.settings, **manifest.settings},
        evidence=evidence,
        files=hashes,
    )


def _check_replaceable(target: Path, path: PathLike) -> None:
    """Raise an error unless the target is a run directory or empty: other files are not replaced."""
    if not target.exists():
        return
    if not target.is_dir():
        raise StoreError(f"{path} is a file, not a run directory", hint="choose another name")
    names = sorted(file.name for file in target.iterdir())
    other_files = [name for name in names if name not in (*FILES, VIEW)]
    if other_files or (names and MANIFEST not in names):
        raise StoreError(
            f"{path} has {(other_files or names)[0]}, which is not part of a run, and is not replaced",
            hint="choose another folder, or move that file away",
        )


def _cases(result: Result) -> bytes:
    for unit in result.unit_ids.tolist():
        if not isinstance(unit, str | int):
            raise StoreError(
                f"the unit id {unit!r} is a {type(unit).__name__} and cannot be stored",
                hint="use strings or integers as unit ids",
            )
    return _bytes("".join(f"{line}\n" for line in unit_lines(result)))


def _encoded(value: object) -> bytes:
    return _bytes(f"{json_text(value, indent=1)}\n")


def _bytes(text: str) -> bytes:
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise StoreError(
            f"the text {text[max(0, error.start - 20) : error.end]!r} has half of a surrogate pair",
            hint="the input was decoded with the wrong encoding",
        ) from error


def _read(folder: RunFolder, *, evidence: bool) -> StoredRun:
    manifest, path = folder.manifest, folder.path
    cases = _read_cases(folder)
    result = result_from_dict(folder.json(RESULT), cases, source=str(path / RESULT))
    verified = [CASES, RESULT]
    if ERRORS in folder:
        result = replace(result, errors=unpack_errors(path / ERRORS, folder.read(ERRORS)))
        verified.append(ERRORS)
    if evidence and EVIDENCE in folder:
        result = replace(result, evidence=_read_evidence(folder, cases))
        verified.append(EVIDENCE)
    folder.verify(*(name for name in manifest.files if name not in verified))
    return StoredRun(_with_status(result, manifest), manifest, path)


def _with_status(result: Result, manifest: Manifest) -> Result:
    """The result with the status of its run in its settings and findings, if the run is incomplete."""
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
        raise StoreError(f"{file} has {len(lines)} units, and the manifest has {units}", hint=CHANGED)
    return parse_unit_lines(lines, source=str(file))


def _read_evidence(folder: RunFolder, cases: UnitTable) -> Evidence:
    file = folder.path / EVIDENCE
    evidence = evidence_from(file, folder.read(EVIDENCE))
    if len(evidence) != len(cases.unit_ids):
        raise StoreError(f"{file} has {len(evidence)} units, and the cases have {len(cases.unit_ids)}", hint=CHANGED)
    # An archive has only plain strings, so ids come from the cases, which have their types.
    restored: Evidence = replace(evidence, unit_ids=cases.unit_ids)  # type: ignore[type-var]
    return restored


def _lines(folder: RunFolder, name: str) -> list[tuple[int, object]]:
    try:
        return parse_lines(folder.text(name))
    except InputError as error:
        raise unreadable(error) from error


# Finding run directories: a path is one itself, or a folder with some below it.


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
    >>> result = evaluate(Ranking.from_ranks([1, 2, 4], candidates=20), "MRR", system="mine")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     run = save_run(f"{folder}/mine", result)
    ...     [path.name for path in find_runs(folder)]
    ['mine']
    """
    runs: dict[Path, Path] = {}
    for path in map(Path, paths):
        for run in _runs_at(path):
            runs.setdefault(run.resolve(), run)
    return list(runs.values())


def _hint_for_folder(path: Path) -> str:
    """What to do with a folder that holds other files."""
    suffixes = {file.suffix for file in path.iterdir() if file.suffix.casefold() in TREC_SUFFIXES}
    return f"name its run files: {path}/*{min(suffixes)}" if suffixes else "eq score -o FOLDER writes one"


def _runs_at(path: Path) -> list[Path]:
    if not path.is_dir() or (path / MANIFEST).is_file():
        read_manifest(path)  # raises the error if it is not a run directory
        return [path]
    runs = runs_below(path)
    if not runs:
        for command in find_active_runs(path):
            raise StoreError(f"{path} has no finished run yet", hint=command.advice)
        raise StoreError(f"neither {path} nor a folder below it is a run directory", hint=_hint_for_folder(path))
    return runs


def runs_below(folder: Path) -> list[Path]:
    """The run directories in a folder, also if it is one itself; hidden folders are skipped."""
    runs = []
    for path, folders, files in os.walk(folder):
        # Other programs write a manifest.json too; a run has both files.
        if {MANIFEST, RESULT} <= set(files):
            runs.append(Path(path))
            folders.clear()
        folders[:] = sorted(name for name in folders if not name.startswith("."))
    return runs
