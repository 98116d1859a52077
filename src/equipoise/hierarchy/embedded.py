"""Vectors of a tree's nodes: what they lie in, how they were made, and the files they are kept in."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from equipoise.data.arrays import array_names, read_array
from equipoise.data.atomic import write_bytes, write_text
from equipoise.data.tables import read_table
from equipoise.data.text import PathLike, shown
from equipoise.errors import FormatError, InputError, ShapeError
from equipoise.types import Floats

_NPZ = ".npz"


@dataclass(frozen=True, eq=False)
class Embedded:
    """One point for every node of a tree, in the tree's order.

    ``dim`` is the dimension of the space: Lorentz points have one coordinate more, time first. ``settings``
    says what made them, and ``history`` holds the mean loss of each epoch, empty where nothing was trained.

    >>> Embedded(("a",), ("Cash",), np.zeros((1, 2)), "euclidean")
    Embedded(1 nodes, euclidean, 2 dimensions)
    """

    ids: tuple[str, ...]
    names: tuple[str, ...]
    vectors: Floats
    geometry: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    history: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if self.vectors.ndim != 2 or not len(self.ids) == len(self.names) == len(self.vectors):
            raise ShapeError(
                f"{len(self.ids)} ids, {len(self.names)} names and vectors of shape {self.vectors.shape} "
                "do not fit together",
                hint="give one id, one name and one row for each node",
            )

    @property
    def dim(self) -> int:
        """The dimension of the space, which for Lorentz points is one less than their coordinates."""
        return int(self.vectors.shape[1]) - (self.geometry == "lorentz")

    def __repr__(self) -> str:
        return f"Embedded({len(self.ids)} nodes, {self.geometry}, {self.dim} dimensions)"

    def write(self, path: PathLike) -> None:
        """Keep the vectors: ``.npz`` with everything, any other name as CSV of id, name, x0, x1, ...

        CSV holds every digit, so that reading gives back the same numbers; it does not say the geometry.
        """
        if Path(path).suffix.casefold() == _NPZ:
            write_bytes(path, self._npz())
        else:
            write_text(path, self._csv())

    def _npz(self) -> bytes:
        stream = io.BytesIO()
        np.savez_compressed(
            stream,
            ids=np.array(self.ids, dtype=np.str_),
            names=np.array(self.names, dtype=np.str_),
            vectors=self.vectors,
            geometry=np.array(self.geometry),
            settings=np.array(json.dumps(dict(self.settings), sort_keys=True)),
            history=np.array(self.history, dtype=np.float64),
        )
        return stream.getvalue()

    def _csv(self) -> str:
        stream = io.StringIO(newline="")
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(["id", "name", *(f"x{axis}" for axis in range(self.vectors.shape[1]))])
        for node, name, row in zip(self.ids, self.names, self.vectors.tolist(), strict=True):
            writer.writerow([node, name, *map(repr, row)])
        return stream.getvalue()


def read_vectors(path: PathLike, geometry: str | None = None) -> Embedded:
    """The vectors of a file that ``write`` made, or of any CSV with id, perhaps name, and number columns.

    A CSV does not say its geometry: it is euclidean unless ``geometry`` says otherwise.
    """
    if Path(path).suffix.casefold() == _NPZ:
        return _from_npz(path, geometry)
    table = read_table(path)
    if not table.rows:
        raise InputError(f"{shown(path)} holds no vectors", hint="it needs columns id, name, x0, x1, ...")
    columns = [column for column in table.rows[0] if column not in ("id", "name")]
    table.require("id", *columns)
    if not columns:
        raise FormatError(f"{shown(path)} has no columns of numbers", hint="it needs id, name, x0, x1, ...")
    vectors = np.empty((len(table.rows), len(columns)))
    for index, row in enumerate(table.rows):
        try:
            vectors[index] = [float(row[column]) for column in columns]
        except (TypeError, ValueError):
            bad = next(column for column in columns if not _is_number(row[column]))
            raise table.error(
                FormatError, [index], f"has {row[bad]!r} under {bad}, which is no number"
            ) from None
    ids = tuple(str(row["id"]) for row in table.rows)
    names = tuple(str(row.get("name") or row["id"]) for row in table.rows)
    return Embedded(ids, names, vectors, geometry or "euclidean")


def _from_npz(path: PathLike, geometry: str | None) -> Embedded:
    parts = {name: read_array(f"{path}:{name}") for name in array_names(path)}
    if "ids" not in parts or "vectors" not in parts:
        raise FormatError(
            f"{shown(path)} holds {', '.join(parts) or 'nothing'}; ids and vectors are needed",
            hint="Embedded.write(path) keeps both",
        )
    try:
        ids = tuple(map(str, parts["ids"].tolist()))
        return Embedded(
            ids,
            tuple(map(str, parts["names"].tolist())) if "names" in parts else ids,
            np.asarray(parts["vectors"], dtype=np.float64),
            geometry or str(parts.get("geometry", "euclidean")),
            dict(json.loads(str(parts["settings"]))) if "settings" in parts else {},
            tuple(map(float, parts["history"].tolist())) if "history" in parts else (),
        )
    except (TypeError, ValueError, RecursionError) as error:
        raise FormatError(
            f"{shown(path)} holds no vectors of a tree: {error}", hint="write it again"
        ) from error


def _is_number(value: object) -> bool:
    try:
        float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return False
    return True
