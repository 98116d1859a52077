"""Vectors of nodes in the files of other programs: word2vec text, gensim's KeyedVectors, Facebook's checkpoints.

gensim's files are pickles. They are read by an unpickler that creates arrays and plain containers only, so that a file
cannot run code, and gensim is not needed.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.errors import EquipoiseError, FormatError, InputError
from equipoise.io.arrays import read_array
from equipoise.io.text import PathLike, display_path, open_text, read_bytes
from equipoise.types import require_extra

if TYPE_CHECKING:
    from equipoise.types import Floats

WORD2VEC_SUFFIXES = (".vec", ".w2v", ".txt")
GENSIM_SUFFIXES = (".kv", ".model", ".kvmodel")
FACEBOOK_SUFFIXES = (".pth", ".pt")
NamedVectors = tuple[list[str], "Floats", str | None]
"""Ids, one row per id, and the geometry if the file records it."""


def foreign_reader(path: PathLike) -> Callable[[PathLike], NamedVectors] | None:
    """The reader of a file extension of another program; None for our own formats."""
    suffix = Path(path).name.casefold().removesuffix(".gz")
    readers = (
        (WORD2VEC_SUFFIXES, read_word2vec),
        (GENSIM_SUFFIXES, read_keyed_vectors),
        (FACEBOOK_SUFFIXES, read_checkpoint),
    )
    return next((reader for suffixes, reader in readers if suffix.endswith(suffixes)), None)


def read_word2vec(path: PathLike) -> NamedVectors:
    """Vectors in the text format of word2vec: a line ``count dimensions``, then one line ``id x x x`` per node.

    The first line may be missing, as in GloVe. An id may contain blanks: the last numbers of a line are the vector.
    """
    file = open_text(path)
    lines = [(number, line.decode("utf-8").rstrip()) for number, line in enumerate(file.lines, start=1) if line.strip()]
    if not lines:
        raise InputError(f"{display_path(path)} has no vectors", hint="it needs one line per node: id x x x")
    first = lines[0][1].split()
    dim = int(first[1]) if len(first) == 2 and all(word.isdigit() for word in first) else None
    rows = lines[1:] if dim is not None else lines
    ids, vectors = [], []
    for number, line in rows:
        words = line.split()
        size = dim if dim is not None else len(words) - 1
        try:
            vectors.append([float(word) for word in words[len(words) - size :]])
        except ValueError:
            raise file.error(FormatError, number, f"does not end in {size} numbers", hint="write id x x x") from None
        ids.append(" ".join(words[: len(words) - size]))
        dim = size
        if not ids[-1]:
            raise file.error(FormatError, number, f"has no id before its {size} numbers", hint="write id x x x")
    if dim is not None and len(first) == 2 and first[0].isdigit() and int(first[0]) != len(ids) and rows is not lines:
        raise FormatError(
            f"{display_path(path)} announces {first[0]} vectors and has {len(ids)}", hint="the file may be truncated"
        )
    return ids, np.array(vectors, dtype=np.float64), None


class _Stub:
    """A placeholder for classes of gensim and for random states: it has attributes and no behaviour."""

    def __init__(self, *arguments: object) -> None:
        """Arguments are ignored."""

    def __setstate__(self, state: object) -> None:
        if isinstance(state, dict):
            self.__dict__.update(state)


class _ArrayUnpickler(pickle.Unpickler):
    """An unpickler that knows numpy arrays, plain containers and stubs of gensim's classes."""

    _NUMPY = frozenset({"_reconstruct", "ndarray", "dtype", "scalar", "_frombuffer"})
    _BUILTINS = frozenset({"set", "frozenset", "dict", "list", "tuple", "int", "float", "str", "bytes", "object"})

    def find_class(self, module: str, name: str) -> Any:
        """The class of a name, if it is harmless."""
        if module.partition(".")[0] == "numpy" and name in self._NUMPY:
            return super().find_class(module, name)
        if module == "builtins" and name in self._BUILTINS:
            return super().find_class(module, name)
        if module == "collections" and name in {"OrderedDict", "defaultdict"}:
            return super().find_class(module, name)
        if module.partition(".")[0] == "gensim" or module.startswith("numpy.random"):
            return _Stub
        scalar = getattr(np, name, None) if module == "numpy" else None
        if isinstance(scalar, type) and issubclass(scalar, np.generic):
            return scalar
        if (module, name) in {("_codecs", "encode"), ("copyreg", "_reconstructor")}:
            return super().find_class(module, name)
        raise pickle.UnpicklingError(f"{module}.{name} is not allowed")


def read_keyed_vectors(path: PathLike) -> NamedVectors:
    """Vectors of gensim: ``KeyedVectors.save``, ``PoincareModel.save`` or the ``kv`` of such a model.

    A large array is in a file of its own next to it (``NAME.vectors.npy``). Vectors of a Poincare model are in the
    Poincare ball.
    """
    try:
        loaded = _ArrayUnpickler(io.BytesIO(read_bytes(path))).load()
    except (pickle.UnpicklingError, EOFError, AttributeError, IndexError, TypeError, ValueError, KeyError) as error:
        raise FormatError(
            f"{display_path(path)} is not a file of gensim's KeyedVectors: {error}",
            hint="save it with KeyedVectors.save, or as text with save_word2vec_format",
        ) from error
    keyed = getattr(loaded, "kv", loaded)
    ids = getattr(keyed, "index_to_key", None) or getattr(keyed, "index2word", None)
    vectors = getattr(keyed, "vectors", None)
    if vectors is None and ids is not None:
        attribute = "vectors" if keyed is loaded else "kv.vectors"
        try:
            vectors = read_array(f"{path}.{attribute}.npy")
        except (EquipoiseError, OSError) as error:
            raise FormatError(
                f"{display_path(path)} has its vectors in another file, {path}.{attribute}.npy, which cannot be read",
                hint="keep the files together",
            ) from error
    if ids is None or vectors is None:
        raise FormatError(
            f"{display_path(path)} has no keys and vectors", hint="save it with KeyedVectors.save of gensim 4"
        )
    # Models of gensim's Poincare embeddings have relations.
    is_poincare = hasattr(loaded, "all_relations") or hasattr(loaded, "node_relations")
    return [str(key) for key in ids], np.asarray(vectors, dtype=np.float64), "poincare" if is_poincare else None


def read_checkpoint(path: PathLike) -> NamedVectors:
    """Vectors of Facebook's poincare-embeddings: a ``.pth`` file with ``objects``, the embedding and ``conf``."""
    torch = require_extra("torch", extra="torch")
    try:
        state = torch.load(str(path), map_location="cpu", weights_only=True)
        model = state.get("model", {})
        weight = state["embeddings"] if "embeddings" in state else model["lt.weight"]
        ids = [str(name) for name in state["objects"]]
        vectors = weight.detach().to(torch.float64).numpy()
    except OSError as error:
        raise InputError(f"{display_path(path)} cannot be read: {error}", hint="check the path") from error
    except Exception as error:
        raise FormatError(
            f"{display_path(path)} is not a checkpoint of poincare-embeddings: {error}",
            hint="it needs objects, and embeddings or model['lt.weight']",
        ) from error
    conf = state.get("conf", {})
    manifold = str(conf.get("manifold", "")) if isinstance(conf, dict) else ""
    return ids, vectors, manifold if manifold in ("lorentz", "poincare", "euclidean") else None


def check_not_distances(path: PathLike, matrix: Floats) -> None:
    """Raise an error for a square symmetric matrix: these are distances or similarities, not vectors."""
    n_rows, n_columns = matrix.shape
    if n_rows != n_columns or n_rows < 3 or not np.allclose(matrix, matrix.T, equal_nan=True):
        return
    what = "similarities" if matrix.diagonal().any() else "distances"
    raise FormatError(
        f"{display_path(path)} is a symmetric matrix of {n_rows} x {n_rows}: {what}, not vectors",
        hint="eq accounts evaluate --distances reads distances; convert similarities to distances first",
    )


def read_distances(path: PathLike) -> tuple[list[str] | None, Floats]:
    """A distance matrix: ``.npy``, or a CSV or TSV file whose first column and header may have the ids.

    A matrix that is not square, not symmetric, negative, or not 0 on its diagonal is an error.
    """
    ids: list[str] | None = None
    if Path(path).suffix.casefold() in (".npy", ".npz"):
        matrix = np.asarray(read_array(str(path)), dtype=np.float64)
    else:
        file = open_text(path)
        delimiter = "\t" if "\t" in file.first_line else ";" if ";" in file.first_line else ","
        cells = [
            [cell.strip() for cell in line.decode("utf-8").split(delimiter)] for line in file.lines if line.strip()
        ]
        # Ids may be numbers: then a header has a corner that is none, and the table is square.
        if cells and not (_is_number(cells[0][-1]) and (_is_number(cells[0][0]) or len(cells) != len(cells[0]))):
            cells = cells[1:]
        if cells and len(cells[0]) == len(cells) + 1:
            ids, cells = [row[0] for row in cells], [row[1:] for row in cells]
        try:
            matrix = np.array(cells, dtype=np.float64)
        except ValueError as error:
            raise FormatError(f"{display_path(path)} is not a matrix of numbers: {error}") from error
    problem = (
        f"has the shape {matrix.shape}"
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]
        else "has values that are not finite"
        if not np.isfinite(matrix).all()
        else "is not symmetric"
        if not np.allclose(matrix, matrix.T)
        else "has negative values"
        if (matrix < 0.0).any()
        else "is not 0 on its diagonal"
        if matrix.diagonal().any()
        else ""
    )
    if problem:
        raise FormatError(
            f"{display_path(path)} {problem}", hint="distances are a square symmetric matrix with zeros on its diagonal"
        )
    return ids, matrix


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
