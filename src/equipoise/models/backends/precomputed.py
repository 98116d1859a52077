"""``vectors:``: precomputed vectors, looked up by text or id. An unknown text is an error.

An .npz file has the matrix and its keys; an .npy file has its keys in a text file next to it, one per line; a
parquet file has a column of each.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, ZipFile

import numpy as np
from numpy.typing import NDArray

from equipoise.errors import DuplicateError, FormatError, InputError, ParameterError, ShapeError
from equipoise.io.arrays import read_array, read_matrix
from equipoise.io.dataset import file_sha256
from equipoise.io.tables import check_parquet
from equipoise.io.text import open_text
from equipoise.models.encoder import EncodedBatch, Encoder, LocalEncoder, ModelCard, Role
from equipoise.models.registry import ModelSpec, as_path
from equipoise.types import require_extra

OPTIONS = ("ids", "key", "column")
COLUMN_NAMES = ("vectors", "embeddings", "vector", "embedding", "arr_0")
KEY_NAMES = ("texts", "ids", "text", "id", "keys", "arr_1")
"""The arrays or columns that are looked for, in this order; numpy gives the last ones to arrays without a name."""

Matrix = NDArray[Any]


class PrecomputedEncoder(LocalEncoder):
    """A table of vectors by key; a text without a row may differ from its key by white space at the ends."""

    block_texts = 65_536
    cacheable = False

    def __init__(self, matrix: Matrix, row_of: dict[str, int], card: ModelCard) -> None:
        self.card = card
        self.identity = f"vectors {card.revision}"
        self._matrix = matrix
        self._row_of = row_of

    @cached_property
    def _row_of_stripped(self) -> dict[str, int]:
        """The rows by keys without white space at their ends; keys that are then equal are left out."""
        counts = Counter(key.strip() for key in self._row_of)
        return {key.strip(): row for key, row in self._row_of.items() if counts[key.strip()] == 1}

    def _row(self, text: str) -> int:
        row = self._row_of.get(text)
        return self._row_of_stripped[text.strip()] if row is None else row

    def covers(self, texts: Sequence[str]) -> bool:
        """Whether every text has a vector."""
        return all(text in self._row_of or text.strip() in self._row_of_stripped for text in texts)

    def encode_counted(self, texts: Sequence[str], role: Role) -> EncodedBatch:
        """The stored vector of each text; a text without one is an error."""
        try:
            rows = [self._row(text) for text in texts]
        except KeyError as error:
            key = str(error.args[0])
            excerpt = key if len(key) <= 80 else f"{key[:80]}..."
            raise InputError(
                f"{self.card.name} holds no vector for {excerpt!r}",
                hint=f"it has {len(self._row_of):,} keys, the first is {next(iter(self._row_of))[:80]!r}",
            ) from None
        return EncodedBatch(self._matrix[rows].astype(np.float32), None)


def load(spec: ModelSpec) -> Encoder:
    """Read the file; keys must be unique, and as many as there are rows."""
    path = as_path(spec.name)
    readers = {".npy": _npy, ".npz": _npz, ".parquet": _parquet}
    if path.suffix.casefold() not in readers:
        raise ParameterError(f"vectors: cannot read {spec.name!r}", hint="name an .npy, .npz or .parquet file")
    matrix, keys = readers[path.suffix.casefold()](path, spec)
    if len(keys) != len(matrix):
        raise ShapeError(f"{path} has {len(matrix)} vectors for {len(keys)} keys", hint="each key needs one vector")
    row_of = {key: row for row, key in enumerate(keys)}
    if len(row_of) != len(keys):
        again = next(key for row, key in enumerate(keys) if row_of[key] != row)
        raise DuplicateError(f"{path} has the key {again[:80]!r} more than once", hint="keep one of them")
    card = ModelCard(
        path.name,
        str(spec),
        dims=matrix.shape[1],
        origin=f"file {path}",
        revision=f"sha256:{file_sha256(path)}",
        note=f"{len(keys):,} vectors",
    )
    return PrecomputedEncoder(matrix, row_of, card)


def _npz(path: Path, spec: ModelSpec) -> tuple[Matrix, list[str]]:
    names = _members(path)
    column = spec.options.get("column") or _find_name(path, names, COLUMN_NAMES, "vectors")
    matrix = read_matrix(f"{path}:{column}")
    if "ids" in spec.options:
        return matrix, _lines(as_path(spec.options["ids"]))
    key = spec.options.get("key") or _find_name(path, names, KEY_NAMES, "texts or ids")
    return matrix, [str(key_value) for key_value in read_array(f"{path}:{key}", ndim=1).tolist()]


def _members(path: Path) -> list[str]:
    try:
        with ZipFile(path) as archive:
            return [name.removesuffix(".npy") for name in archive.namelist()]
    except (OSError, BadZipFile) as error:
        read_array(path)  # raises if the file is invalid
        raise FormatError(f"{path} is not a readable .npz file: {error}") from error


def _npy(path: Path, spec: ModelSpec) -> tuple[Matrix, list[str]]:
    matrix = read_matrix(path)
    ids_path = spec.options.get("ids")
    key_files = [as_path(ids_path)] if ids_path else [path.with_suffix(end) for end in (".txt", ".ids", ".ids.txt")]
    key_file = next((file for file in key_files if file.is_file()), None)
    if key_file is None:
        raise InputError(
            f"{path} has no keys: {key_files[0]} does not exist",
            hint="write vectors:FILE.npy,ids=KEYS.txt, one key per line",
        )
    return matrix, _lines(key_file)


def _parquet(path: Path, spec: ModelSpec) -> tuple[Matrix, list[str]]:
    engine = require_extra("pyarrow.parquet", extra="parquet")
    if not path.is_file():
        raise InputError(f"there is no file {path}", hint="check the path")
    try:
        schema = list(engine.read_schema(path).names)
        key = spec.options.get("key") or _find_name(path, schema, KEY_NAMES, "texts or ids")
        column = spec.options.get("column") or _find_name(path, schema, COLUMN_NAMES, "vectors")
        check_parquet(path)
        table = engine.read_table(path, columns=[key, column])
    except (OSError, ValueError) as error:
        raise FormatError(f"{path} is not a readable parquet file: {error}", hint="was it truncated?") from error
    keys = [str(key_value) for key_value in table.column(key).to_pylist()]
    return _stack_lists(path, column, table.column(column).combine_chunks()), keys


def _stack_lists(path: Path, column: str, lists: Any) -> Matrix:
    """A column of lists as a matrix, without a Python object per number."""
    lengths = set(lists.value_lengths().to_pylist())
    if len(lengths) != 1 or None in lengths or 0 in lengths:
        raise ShapeError(f"the vectors in {column} of {path} differ in length", hint="each row needs one vector")
    flat = lists.flatten().to_numpy(zero_copy_only=False)
    return np.asarray(flat, dtype=np.float32).reshape(len(lists), -1)


def _lines(path: Path) -> list[str]:
    """One key per line; a JSON list if the file extension is .json."""
    text = open_text(path).text
    if path.suffix == ".json":
        from equipoise.io.json import parse_json

        keys = parse_json(open_text(path))
        if not isinstance(keys, list):
            raise FormatError(f"{path} is not a JSON list of keys")
        return [str(key) for key in keys]
    return list(_split(text))


def _split(text: str) -> Iterator[str]:
    """Lines, which end at line feeds only, since keys may contain other separators."""
    lines = text.split("\n")
    if lines and not lines[-1]:
        lines.pop()
    return (line.removesuffix("\r") for line in lines)


def _find_name(path: Path, names: Sequence[str], default_names: Sequence[str], role: str) -> str:
    match = next((name for name in default_names if name in names), None)
    if match is None:
        raise InputError(
            f"{path} has no {role} under the usual names: it holds {', '.join(names)}",
            hint="say which with column=NAME (the vectors) and key=NAME (texts or ids)",
        )
    return match
