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
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from equipoise.checks.catalogue import examine
from equipoise.checks.protocol import PARTIAL_RUN
from equipoise.data.atomic import unwritten, write_bytes
from equipoise.data.dataset import fingerprint_of_file
from equipoise.data.jsontext import parse_json, parse_lines
from equipoise.data.swap import replaced_directory, standing, unfinished
from equipoise.data.text import PathLike, open_text
from equipoise.errors import InputError, PartialError, StoreError
from equipoise.evidence.base import Evidence, pack
from equipoise.run.cases import Cases, case_lines, json_text, parse_cases
from equipoise.run.details import Detail, Details, detail_lines, parse_details
from equipoise.run.manifest import STATUS_SETTINGS, Manifest, Status
from equipoise.run.restore import errors_from, evidence_from, packed_errors, restored_result
from equipoise.stats.result import Result
from equipoise.tune.record import Tuning

MANIFEST, RESULT, CASES, EVIDENCE = "manifest.json", "result.json", "cases.jsonl", "evidence.npz"
DETAILS, TUNING, ERRORS = "details.jsonl", "tuning.json", "errors.npz"
FILES = (MANIFEST, RESULT, CASES, EVIDENCE, DETAILS, TUNING, ERRORS)
_CHANGED = "the directory was changed after it was written: run the command again"
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
    def details(self) -> Mapping[str | int, Detail]:
        """What people see of each unit; empty where the run keeps none. Read when it is first asked for."""
        file = self.path / DETAILS
        if not file.is_file():
            return {}
        try:
            return parse_details(parse_lines(open_text(file)), source=str(file))
        except InputError as error:
            raise _unreadable(error) from error

    @cached_property
    def tuning(self) -> Tuning | None:
        """How the parameters were chosen; None where nothing was tuned."""
        file = self.path / TUNING
        if not file.is_file():
            return None
        content = _json(file)
        try:
            return Tuning.from_dict(content)  # type: ignore[arg-type]
        except (KeyError, TypeError) as error:
            raise StoreError(f"{file} does not describe a tuning: {error}", hint=_CHANGED) from error

    def _repr_html_(self) -> str:
        """The result as notebooks show it."""
        return self.result._repr_html_()


def write_run(
    path: PathLike,
    result: Result,
    *,
    manifest: Manifest,
    details: Details | None = None,
    tuning: Tuning | None = None,
) -> Path:
    """Write a run directory in one step, replacing a run that stands there.

    Whoever reads the path meanwhile finds the old run or the new one. The manifest gets the number of units,
    the fingerprint of the evidence and, where it has none, the time of its end.
    """
    target = Path(path).absolute()
    _refuse_to_replace(target, path)
    files = {RESULT: _encoded(result.to_dict()), CASES: _cases(result)}
    if result.evidence is not None:
        files[EVIDENCE] = pack({"kind": np.array(result.evidence.kind), **result.evidence.to_arrays()})
    if result.errors:
        files[ERRORS] = packed_errors(result.errors)
    if details:
        files[DETAILS] = _bytes("".join(f"{line}\n" for line in detail_lines(details)))
    if tuning is not None:
        files[TUNING] = _encoded(tuning.to_dict())
    whole = _completed(manifest, result, files.get(EVIDENCE))
    # Until the last step the directory says of itself that it is not whole.
    begun = replace(whole, status=Status.PARTIAL, reason="the write was interrupted")
    try:
        with replaced_directory(target) as folder:
            write_bytes(folder / MANIFEST, _encoded(begun.to_dict()))
            for name, data in files.items():
                write_bytes(folder / name, data)
            write_bytes(folder / MANIFEST, _encoded(whole.to_dict()))
    except (OSError, StoreError, PartialError) as error:
        # The name of the part that could not be written means nothing to anybody.
        reason = error if isinstance(error, OSError) else error.__cause__
        raise unwritten(path, reason, hint="choose another folder") from error
    return Path(path)


def read_run(path: PathLike, *, evidence: bool = True) -> StoredRun:
    """Read a run directory back; ``evidence=False`` leaves the evidence on disk.

    A run that is partial or failed is read like any other; its manifest says so.
    """
    for _ in range(_ATTEMPTS):
        folder = _run_directory(path)
        manifest = read_manifest(folder)
        run = _read(folder, manifest, evidence=evidence)
        # A run that was replaced while it was read may be a mixture, so it is read once more.
        if read_manifest(_run_directory(path)) == manifest:
            return run
    raise StoreError(f"{path} is being replaced again and again", hint="wait until its writer has finished")


def read_manifest(path: PathLike) -> Manifest:
    """Only the manifest of a run directory."""
    file = _run_directory(path) / MANIFEST
    return Manifest.from_dict(_json(file), source=str(file))


def load_evidence(path: PathLike) -> Evidence:
    """Evidence of any kind, from an npz file or from a run directory."""
    file = Path(path)
    if not file.is_file() and standing(file.absolute()).is_dir():
        file = _run_directory(path) / EVIDENCE
    return evidence_from(file)


def _completed(manifest: Manifest, result: Result, evidence: bytes | None) -> Manifest:
    """The manifest with what only the end of a run knows."""
    ended = manifest if manifest.finished else manifest.finish(manifest.status, reason=manifest.reason)
    observed = None
    if result.evidence is not None and evidence is not None:
        observed = {"kind": result.evidence.kind, "sha256": hashlib.sha256(evidence).hexdigest()}
    return replace(
        ended,
        system=result.system,
        units=len(result.unit_ids),
        seed=result.settings.get("seed", manifest.seed),
        settings={**result.settings, **manifest.settings},
        evidence=observed,
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
    return _bytes("".join(f"{line}\n" for line in case_lines(result)))


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


def _run_directory(path: PathLike) -> Path:
    """The directory where the run lies, or a sentence that says why there is none."""
    folder = Path(path)
    if not folder.exists():
        folder = standing(folder.absolute())
    if not folder.exists():
        begun = unfinished(folder)
        hint = f"a write of it was interrupted: {begun[0]}" if begun else "check the path"
        raise StoreError(f"there is no run directory {path}", hint=hint)
    if not folder.is_dir():
        raise StoreError(f"{path} is a file, not a run directory", hint="give the folder that it lies in")
    if not (folder / MANIFEST).is_file():
        raise StoreError(
            f"{path} is not a run directory: it has no {MANIFEST}", hint="eq score -o FOLDER writes one"
        )
    return folder


def _read(folder: Path, manifest: Manifest, *, evidence: bool) -> StoredRun:
    wanted = [RESULT, CASES] + ([EVIDENCE] if evidence and manifest.evidence else [])
    for name in wanted:
        if not (folder / name).is_file():
            unwhole = f"; {manifest.caution}" if manifest.caution else ""
            raise StoreError(f"{folder} lacks {name}{unwhole}", hint="run the command again")
    cases = _read_cases(folder / CASES, manifest)
    result = restored_result(_json(folder / RESULT), cases, source=str(folder / RESULT))
    if (folder / ERRORS).is_file():
        result = replace(result, errors=errors_from(folder / ERRORS))
    if EVIDENCE in wanted:
        result = replace(result, evidence=_read_evidence(folder / EVIDENCE, cases, manifest))
    return StoredRun(_with_status(result, manifest), manifest, folder)


def _with_status(result: Result, manifest: Manifest) -> Result:
    """The result of a run that is not complete says so itself, wherever it is taken."""
    settings = {name: value for name, value in result.settings.items() if name not in STATUS_SETTINGS}
    if not manifest.complete:
        settings |= dict(zip(STATUS_SETTINGS, (str(manifest.status), manifest.reason), strict=True))
    findings = tuple(finding for finding in result.findings if finding.code != PARTIAL_RUN)
    result = replace(result, settings=settings, findings=findings)
    return replace(result, findings=examine(result) + findings)


def _read_cases(file: Path, manifest: Manifest) -> Cases:
    if manifest.units == 0:
        return parse_cases([], source=str(file))
    try:
        lines = parse_lines(open_text(file))
    except InputError as error:
        raise _unreadable(error) from error
    if len(lines) != manifest.units:
        raise StoreError(
            f"{file} has {len(lines)} units, and the manifest counts {manifest.units}", hint=_CHANGED
        )
    return parse_cases(lines, source=str(file))


def _read_evidence(file: Path, cases: Cases, manifest: Manifest) -> Evidence:
    if manifest.evidence and fingerprint_of_file(file) != manifest.evidence.get("sha256"):
        raise StoreError(f"{file} is not the evidence that this run was scored on", hint=_CHANGED)
    evidence = evidence_from(file)
    if len(evidence) != len(cases.unit_ids):
        raise StoreError(
            f"{file} has {len(evidence)} units, and the cases have {len(cases.unit_ids)}", hint=_CHANGED
        )
    # An archive keeps only plain strings, so ids come from the cases, which know their type.
    restored: Evidence = replace(evidence, unit_ids=cases.unit_ids)  # type: ignore[type-var]
    return restored


def _json(file: Path) -> object:
    try:
        value: object = parse_json(open_text(file))
    except InputError as error:
        raise _unreadable(error) from error
    return value


def _unreadable(error: InputError) -> StoreError:
    return StoreError(error.sentence, hint=error.hint or "run the command again", excerpt=error.excerpt)
