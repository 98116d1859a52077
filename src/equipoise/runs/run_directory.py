"""An open run directory: every byte that is read from it is verified against the manifest's hashes."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from equipoise.errors import ChangedFileError, InputError, StoreError
from equipoise.io.atomic import current_path, pending_directories
from equipoise.io.json import parse_json
from equipoise.io.text import PathLike, TextFile, open_text, text_file
from equipoise.runs.manifest import Manifest

MANIFEST, RESULT, CASES, EVIDENCE = "manifest.json", "result.json", "cases.jsonl", "evidence.npz"
DETAILS, TUNING, ERRORS = "details.jsonl", "tuning.json", "errors.npz"
FILES = (MANIFEST, RESULT, CASES, EVIDENCE, DETAILS, TUNING, ERRORS)
CHANGED = "the directory was changed after it was written: run the command again"


@dataclass(frozen=True)
class RunFolder:
    """The path of a run directory and its manifest; its files are read only through ``read``.

    A file that the manifest does not list is not part of the run, whatever is in the directory.
    """

    path: Path
    manifest: Manifest

    def __contains__(self, name: str) -> bool:
        return name in self.manifest.files

    def read(self, name: str) -> bytes:
        """The bytes of a file, after its SHA-256 was compared with the manifest."""
        if name not in self:
            raise self._missing(name)
        try:
            data = (self.path / name).read_bytes()
        except OSError as error:
            raise self._missing(name) from error
        self._check(name, hashlib.sha256(data).hexdigest())
        return data

    def verify(self, *names: str) -> None:
        """Check files without keeping their content in memory."""
        for name in names:
            try:
                with open(self.path / name, "rb") as stream:
                    digest = hashlib.file_digest(stream, "sha256").hexdigest()
            except OSError as error:
                raise self._missing(name) from error
            self._check(name, digest)

    def text(self, name: str) -> TextFile:
        """A text file of the run."""
        try:
            return text_file(str(self.path / name), self.read(name))
        except InputError as error:
            raise unreadable(error) from error

    def json(self, name: str) -> object:
        """The value of a JSON file of the run."""
        try:
            value: object = parse_json(self.text(name))
        except InputError as error:
            raise unreadable(error) from error
        return value

    def _check(self, name: str, digest: str) -> None:
        if digest != self.manifest.files[name]:
            raise ChangedFileError(
                f"{self.path / name} was changed after the run was written: its SHA-256 is not the one in {MANIFEST}",
                hint="restore the file, or run the command that wrote the run again",
            )

    def _missing(self, name: str) -> StoreError:
        reason = f"; {self.manifest.caution}" if self.manifest.caution else ""
        return StoreError(f"{self.path} lacks {name}{reason}", hint="run the command again")


def open_run(path: PathLike) -> RunFolder:
    """Open a run directory; raises ``StoreError`` where there is none or its manifest cannot be read."""
    folder = _run_directory(path)
    file = folder / MANIFEST
    try:
        content: object = parse_json(open_text(file))
    except InputError as error:
        raise unreadable(error) from error
    return RunFolder(folder, Manifest.from_dict(content, source=str(file)))


def read_manifest(path: PathLike) -> Manifest:
    """Only the manifest of a run directory."""
    return open_run(path).manifest


def unreadable(error: InputError) -> StoreError:
    """The same error as a ``StoreError`` of the run directory."""
    return StoreError(error.message, hint=error.hint or "run the command again", excerpt=error.excerpt)


def hint_for_file(file: Path) -> str:
    """What to do with a file where a run directory is needed: it is part of one, or it must be scored first."""
    if (file.parent / MANIFEST).is_file():
        return f"give its folder: {file.parent}"
    return f"score it first: eq score {file} --qrels FILE -o runs/"


def _run_directory(path: PathLike) -> Path:
    """The directory of the run, or an error that says why there is none."""
    folder = Path(path)
    if not folder.exists():
        folder = current_path(folder.absolute())
    if not folder.exists():
        pending = pending_directories(folder)
        hint = f"its write was interrupted: {pending[0]}" if pending else "check the path"
        raise StoreError(f"there is no run directory {path}", hint=hint)
    if not folder.is_dir():
        raise StoreError(f"{path} is a file, not a run directory", hint=hint_for_file(folder))
    if not (folder / MANIFEST).is_file():
        raise StoreError(f"{path} is not a run directory: it has no {MANIFEST}", hint="eq score -o FOLDER writes one")
    return folder
