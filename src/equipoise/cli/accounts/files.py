"""Files that a command is to write: looked at before the work begins."""

from __future__ import annotations

from pathlib import Path

from equipoise.errors import StoreError


def refuse_unwritable_file(file: Path, example: str) -> None:
    """Say before the work begins that a file could not be kept."""
    if file.is_dir():
        raise StoreError(f"{file} is a folder", hint=f"name a file in it: {file / example}")
    if not file.absolute().parent.is_dir():
        raise StoreError(
            f"there is no folder {file.absolute().parent}", hint=f"make it first: mkdir -p {file.parent}"
        )
