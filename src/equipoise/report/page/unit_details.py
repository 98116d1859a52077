"""The details of some units of a run, without reading those of all where a run has very many."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from equipoise.data.dataset import Value
from equipoise.errors import StoreError
from equipoise.run.cases import json_text
from equipoise.run.details import Detail, parse_details
from equipoise.run.folder import DETAILS
from equipoise.run.store import StoredRun

MANY = 20_000
"""A run with more units than this is read line by line."""

# Lines as ``detail_lines`` writes them. Inside a string the quotes would be escaped, and a slice has no list
# for a value, so that each of these marks is where it seems to be.
_ID, _TEXT, _BODY = b'{"id": ', b', "text": ', b', "retrieved": ['

Slices = Mapping[str | int, Mapping[str, Value]]


def details_of(run: StoredRun, units: Collection[str | int]) -> dict[str | int, Detail]:
    """What people see of these units; units of which nothing is kept are left out."""
    if run.manifest.units <= MANY:
        return {unit: run.details[unit] for unit in units if unit in run.details}
    file = run.path / DETAILS
    wanted = {_ID + json_text(unit).encode() for unit in units}
    lines = [
        (number, _parsed(line, file, number))
        for number, line in _lines(file)
        if line.partition(_TEXT)[0] in wanted
    ]
    return parse_details(lines, source=str(file))


def slices_of(runs: Sequence[StoredRun]) -> Slices:
    """The slices of every unit, from the first run that knows any: they belong to the units."""
    for run in runs:
        if run.manifest.units <= MANY:
            found: Slices = {unit: detail.slices for unit, detail in run.details.items() if detail.slices}
        else:
            heads = _heads(run.path / DETAILS)
            found = {head["id"]: head["slices"] for head in heads if head.get("slices")}
        if found:
            return found
    return {}


def _heads(file: Path) -> Iterator[dict[str, Any]]:
    """What every line says before it lists what was retrieved."""
    for number, line in _lines(file):
        head, body, _ = line.partition(_BODY)
        yield _parsed(head + b"}" if body else line, file, number)


def _lines(file: Path) -> Iterator[tuple[int, bytes]]:
    if not file.is_file():
        return
    with open(file, "rb") as stream:
        for number, line in enumerate(stream, start=1):
            if not line.startswith(_ID):
                raise _changed(file, number)
            yield number, line


def _parsed(line: bytes, file: Path, number: int) -> Any:
    try:
        parsed = json.loads(line)
    except ValueError as error:
        raise _changed(file, number) from error
    if not isinstance(parsed, dict):
        raise _changed(file, number)
    return parsed


def _changed(file: Path, number: int) -> StoreError:
    return StoreError(
        f"{file} line {number} is no detail of a unit",
        hint="the file was changed after it was written: run the command again",
    )
