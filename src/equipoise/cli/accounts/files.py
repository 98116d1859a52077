"""Files that a command is to write: looked at before the work begins."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryFile

from equipoise.errors import ParameterError, StoreError

VECTORS = (".csv", ".csv.gz", ".npz")
"""What files of vectors are called."""


def refuse_unwritable_file(file: Path, example: str) -> None:
    """Say before the work begins that a file could not be kept."""
    if file.is_dir():
        raise StoreError(f"{file} is a folder", hint=f"name a file in it: {file / example}")
    if not file.absolute().parent.is_dir():
        raise StoreError(
            f"there is no folder {file.absolute().parent}", hint=f"make it first: mkdir -p {file.parent}"
        )
    try:
        TemporaryFile(dir=file.absolute().parent).close()
    except OSError as error:
        raise StoreError(
            f"{file} cannot be written: {error.strerror or error}",
            hint=f"name a file in another folder: {example}",
        ) from error


def refuse_other_form(file: Path) -> None:
    """Vectors are kept in two forms; a name that promises another would hold one of these."""
    if not file.name.casefold().endswith(VECTORS):
        raise ParameterError(
            f"{file} has no ending that says how to keep the vectors", hint=f"it ends in {', '.join(VECTORS)}"
        )
