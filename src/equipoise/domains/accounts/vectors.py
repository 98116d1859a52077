"""Vectors of the nodes of a tree: the type, its files and those of other programs, and conversion from any embedder.

gensim's files are pickles. They are read by an unpickler that creates arrays and plain containers only, so that a file
cannot run code, and gensim is not needed.
"""

from __future__ import annotations

import csv
import inspect
import io
import json
import pickle
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.domains.accounts.evaluation import check_points
from equipoise.errors import EquipoiseError, FormatError, InputError, ParameterError, ShapeError
from equipoise.geometry.distances import ball_to_hyperboloid, hyperboloid_to_ball, norm
from equipoise.geometry.spaces import geometry as geometry_named
from equipoise.io.arrays import array_names, read_array
from equipoise.io.atomic import write_bytes, write_text
from equipoise.io.tables import read_table, table_format
from equipoise.io.text import PathLike, display_path, open_text, read_bytes
from equipoise.models.backends.python_object import is_model
from equipoise.types import require_extra

if TYPE_CHECKING:
    from equipoise.domains.accounts.trees.tree import Tree
    from equipoise.types import Floats


_NPZ = ".npz"


@dataclass(frozen=True, eq=False)
class NodeVectors:
    """One point per node of a tree, in the order of the tree.

    ``dim`` is the dimension of the space: Lorentz points have one more coordinate, time first. ``settings`` records how
    the vectors were computed, and ``history`` the mean loss of each epoch (empty if nothing was trained).

    >>> NodeVectors(("a",), ("Cash",), np.zeros((1, 2)), "euclidean")
    NodeVectors(1 nodes, euclidean, 2 dimensions)
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
                f"{len(self.ids)} ids, {len(self.names)} names and vectors of shape {self.vectors.shape} do not match",
                hint="give one id, one name and one row per node",
            )

    @property
    def dim(self) -> int:
        """The dimension of the space, for Lorentz points one less than the number of coordinates."""
        return int(self.vectors.shape[1]) - (self.geometry == "lorentz")

    def __repr__(self) -> str:
        return f"NodeVectors({len(self.ids)} nodes, {self.geometry}, {self.dim} dimensions)"

    def write(self, path: PathLike) -> None:
        """Write the vectors: ``.npz`` with all fields, any other suffix as CSV with the columns id, name, x0, x1, ...

        CSV has all digits, so that reading returns the same numbers; it does not record the geometry.
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


def read_node_vectors(path: PathLike, geometry: str | None = None) -> NodeVectors:
    """Read the vectors of the nodes of a tree.

    Parameters
    ----------
    path
        A file of ``NodeVectors.write``; a CSV file with ``id``, optionally ``name``, and numeric columns; word2vec text
        (``.vec``, ``.w2v``, ``.txt``); gensim's KeyedVectors (``.kv``, ``.model``); or a checkpoint of Facebook's
        poincare-embeddings (``.pth``). Files of gensim and word2vec are recognised under other names as well. A
        distance matrix is an error.
    geometry
        The geometry of a file that does not record it; by default ``lorentz`` if all points are on the hyperboloid,
        else ``euclidean``.

    Returns
    -------
    NodeVectors
        One vector per node, with ids and geometry.

    Examples
    --------
    >>> read_node_vectors("vectors.csv", "lorentz").geometry  # doctest: +SKIP
    """
    vectors = _read_vectors(path, geometry)
    check_not_distances(path, vectors.vectors)
    return vectors


def _read_vectors(path: PathLike, geometry: str | None) -> NodeVectors:
    if Path(path).suffix.casefold() == _NPZ:
        return _from_npz(path, geometry)
    reader = foreign_reader(path)
    if reader is not None:
        keys, rows, recorded = reader(path)
        return NodeVectors(tuple(keys), tuple(keys), rows, geometry or recorded or _geometry_of(rows))
    if Path(path).suffix.casefold() == ".npy":
        check_not_distances(path, read_array(str(path)))
        raise FormatError(f"{display_path(path)} has no ids", hint="write .npz with ids and vectors, or CSV: id,x0,x1")
    table = read_table(path)
    if not table.rows:
        raise InputError(f"{display_path(path)} has no vectors", hint="it needs columns id, name, x0, x1, ...")
    columns = [column for column in table.rows[0] if column not in ("id", "name")]
    if all(map(is_number, table.rows[0])):
        raise FormatError(
            f"{display_path(path)} is a table of numbers without a header",
            hint="vectors need the columns id, x0, x1, ...; --distances reads a distance matrix",
        )
    if "id" not in table.rows[0] and len(table.rows[0]) == len(table.rows) + 1:
        raise _square_matrix_error(path, len(table.rows), "distances or similarities")
    table.require("id", *columns)
    if not columns:
        raise FormatError(f"{display_path(path)} has no columns of numbers", hint="it needs id, name, x0, x1, ...")
    vectors = np.empty((len(table.rows), len(columns)))
    for index, row in enumerate(table.rows):
        try:
            vectors[index] = [float(row[column]) for column in columns]
        except (TypeError, ValueError):
            invalid_column = next(column for column in columns if not is_number(row[column]))
            raise table.error(
                FormatError, [index], f"has {row[invalid_column]!r} under {invalid_column}, which is not a number"
            ) from None
    ids = tuple(str(row["id"]) for row in table.rows)
    names = tuple(str(row.get("name") or row["id"]) for row in table.rows)
    return NodeVectors(ids, names, vectors, geometry or _geometry_of(vectors))


def _geometry_of(vectors: Floats) -> str:
    """``lorentz`` for points on the hyperboloid, with time first; all other files of coordinates are Euclidean."""
    time, space = vectors[:, 0], vectors[:, 1:]
    on_hyperboloid = len(vectors) > 1 and np.allclose(time, np.hypot(1.0, norm(space)), rtol=1e-6, atol=0.0)
    return "lorentz" if on_hyperboloid else "euclidean"


def _from_npz(path: PathLike, geometry: str | None) -> NodeVectors:
    arrays = {name: read_array(f"{path}:{name}") for name in array_names(path)}
    if "ids" not in arrays or "vectors" not in arrays:
        raise FormatError(
            f"{display_path(path)} holds {', '.join(arrays) or 'nothing'}; ids and vectors are needed",
            hint="NodeVectors.write(path) writes both",
        )
    try:
        ids = tuple(map(str, arrays["ids"].tolist()))
        return NodeVectors(
            ids,
            tuple(map(str, arrays["names"].tolist())) if "names" in arrays else ids,
            np.asarray(arrays["vectors"], dtype=np.float64),
            geometry or str(arrays.get("geometry", "euclidean")),
            dict(json.loads(str(arrays["settings"]))) if "settings" in arrays else {},
            tuple(map(float, arrays["history"].tolist())) if "history" in arrays else (),
        )
    except (TypeError, ValueError, RecursionError) as error:
        raise FormatError(f"{display_path(path)} holds no vectors of a tree: {error}", hint="write it again") from error


def is_number(value: object) -> bool:
    """Whether a value is a number or the text of one."""
    try:
        float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return False
    return True


TREE_PARAMETER_NAMES = ("tree", "hierarchy")
"""If the first parameter of ``fit`` has one of these names it gets the tree, else the node names."""
VECTOR_ATTRIBUTES = ("vectors", "embeddings", "embedding_", "vectors_")
"""Attributes in which a fitted object may store its vectors."""
ENCODE_METHODS = ("encode", "embed", "transform")
_OF_NAMES = "an embedder has fit(tree, dim, seed), fit(names) or encode(names), or is a matrix with one row per node"


def node_vectors_from(
    embedder: Any, tree: Tree, *, geometry: str, dim: int | None = None, seed: int = 0, **training: Any
) -> NodeVectors:
    """The vectors of an embedder, one per node in the order of the tree.

    An object with ``fit`` is fitted: on the tree if its first parameter is called ``tree``, else on the node names.
    The vectors are what ``fit`` returns, what ``encode`` of the names returns, or an attribute. A matrix has one row
    per node; a mapping has one vector per id; vectors with ids are put into the order of the tree. ``training`` is
    passed to ``fit``, and so are ``dim`` and ``seed`` if it has such parameters.

    >>> from equipoise.domains.accounts.trees.tree import Tree
    >>> tree = Tree.from_edges([("cash", "assets"), ("bank", "assets")])
    >>> node_vectors_from(np.eye(3)[:, :2], tree, geometry="euclidean")
    NodeVectors(3 nodes, euclidean, 2 dimensions)
    """
    space = geometry_named(geometry).name
    vectors = _raw_vectors(embedder, tree, {"dim": dim, "seed": seed}, training)
    if isinstance(vectors, NodeVectors):
        return align_to_tree(vectors, tree)
    return NodeVectors(tree.ids, tree.names, _matrix(vectors, tree), space)


def in_geometry(vectors: NodeVectors, geometry: str) -> NodeVectors:
    """The same points in the coordinates of the other model of hyperbolic space.

    >>> in_geometry(NodeVectors(("a",), ("a",), np.array([[1.0, 0.0]]), "lorentz"), "poincare").vectors.tolist()
    [[0.0]]
    """
    if vectors.geometry == geometry:
        return vectors
    convert = hyperboloid_to_ball if geometry == "poincare" else ball_to_hyperboloid
    settings = {**vectors.settings, "embedder": geometry}
    return replace(vectors, vectors=convert(vectors.vectors), geometry=geometry, settings=settings)


def align_to_tree(vectors: NodeVectors, tree: Tree) -> NodeVectors:
    """The vectors in the order of the tree's nodes; a node without a vector is an error."""
    if vectors.ids == tree.ids:
        return vectors
    if len(set(vectors.ids)) < len(vectors.ids):
        duplicate = next(key for key, count in Counter(vectors.ids).items() if count > 1)
        raise InputError(f"the vectors contain the node {duplicate} twice", hint="give each node one vector")
    rows = vectors.vectors[rows_of_tree(tree, vectors.ids, "vector")]
    return NodeVectors(tree.ids, tree.names, rows, vectors.geometry, vectors.settings, vectors.history)


def rows_of_tree(tree: Tree, ids: Iterable[str], noun: str) -> list[int]:
    """The row of each node of the tree among ``ids``; a node that is missing there is an error."""
    row_of = {key: row for row, key in enumerate(ids)}
    missing = [key for key in tree.ids if key not in row_of]
    if missing:
        raise InputError(
            f"{len(missing):,} of {len(tree):,} nodes have no {noun}; the first is {missing[0]}",
            hint=f"the ids of the {noun}s must be those of the tree",
        )
    return [row_of[key] for key in tree.ids]


def align_and_check(vectors: NodeVectors, tree: Tree) -> NodeVectors:
    """The vectors in the order of the tree's nodes; points outside their space are an error."""
    ordered = align_to_tree(vectors, tree)
    check_points(geometry_named(ordered.geometry), ordered.vectors, tree)
    return ordered


def _raw_vectors(embedder: Any, tree: Tree, defaults: dict[str, Any], training: dict[str, Any]) -> Any:
    """A matrix, a mapping or ``NodeVectors``."""
    if isinstance(embedder, NodeVectors | Mapping | np.ndarray | list | tuple) or _is_tensor(embedder):
        if training:
            raise ParameterError(
                f"existing vectors have no training options, and got {', '.join(training)}", hint="leave it out"
            )
        return embedder
    names = list(tree.names)
    fit = getattr(embedder, "fit", None)
    if callable(fit):
        fitted = _fit(fit, tree, names, defaults, training)
        if isinstance(fitted, NodeVectors | Mapping | np.ndarray | list | tuple) or _is_tensor(fitted):
            return fitted
        embedder = embedder if fitted is None else fitted
    elif training:
        raise ParameterError(f"{_type_name(embedder)} has no fit method for {', '.join(training)}", hint=_OF_NAMES)
    for name in ENCODE_METHODS:
        if callable(getattr(embedder, name, None)):
            return getattr(embedder, name)(names)
    if is_model(embedder):  # a model with a method for documents
        return embedder.embed_documents(names)
    for name in VECTOR_ATTRIBUTES:
        if getattr(embedder, name, None) is not None:
            return getattr(embedder, name)
    raise ParameterError(f"{_type_name(embedder)} has no vectors", hint=_OF_NAMES)


def _fit(
    fit: Callable[..., Any], tree: Tree, names: list[str], defaults: dict[str, Any], training: dict[str, Any]
) -> Any:
    """Call ``fit`` with the arguments of its signature."""
    try:
        parameters = inspect.signature(fit).parameters
    except (TypeError, ValueError):  # some extensions have no signature
        return fit(names, **training)
    first = next(iter(parameters), "")
    takes_any = any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters.values())
    unknown = [name for name in training if name not in parameters and not takes_any]
    if unknown:
        raise ParameterError(
            f"the fit of {_type_name(getattr(fit, '__self__', fit))} takes no {unknown[0]}",
            hint=f"it takes {', '.join(parameters) or 'nothing'}",
        )
    extra = {
        name: value
        for name, value in defaults.items()
        if name in parameters and name not in training and value is not None
    }
    return fit(tree if first in TREE_PARAMETER_NAMES else names, **extra, **training)


def _is_tensor(value: Any) -> bool:
    """Whether a value is an array of another library."""
    return hasattr(value, "__array__") and hasattr(value, "shape")


def _matrix(vectors: Any, tree: Tree) -> Floats:
    if isinstance(vectors, Mapping):
        rows_of_tree(tree, vectors, "vector")
        vectors = [vectors[key] for key in tree.ids]
    if callable(getattr(vectors, "detach", None)):
        vectors = vectors.detach().cpu().numpy()
    try:
        matrix = np.asarray(vectors, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"the vectors are not numeric rows of equal length: {error}") from error
    if matrix.ndim != 2 or len(matrix) != len(tree):
        raise ShapeError(
            f"there are vectors of shape {matrix.shape} for {len(tree)} nodes",
            hint="give one row per node, in the order of the tree",
        )
    check_not_distances("the matrix", matrix)
    return matrix


def _type_name(embedder: Any) -> str:
    return type(embedder).__qualname__


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
    known = next((reader for suffixes, reader in readers if suffix.endswith(suffixes)), None)
    if known is not None or table_format(path) is not None or not Path(path).is_file():
        return known
    start = read_bytes(path)[:64]
    if start.startswith(b"\x80"):
        return read_keyed_vectors
    return read_word2vec if re.match(rb"\d+ \d+\r?\n", start) else None


def read_word2vec(path: PathLike) -> NamedVectors:
    """Vectors in the text format of word2vec: a line ``count dimensions``, then one line ``id x x x`` per node.

    The first line may be missing, as in GloVe. An id may contain blanks: the last numbers of a line are the vector.
    """
    try:
        file = open_text(path)
    except FormatError as error:
        raise FormatError(
            f"{display_path(path)} is not text; it may be in the binary format of word2vec",
            hint="save it with save_word2vec_format(path, binary=False)",
        ) from error
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
            f"{display_path(path)} should have {first[0]} vectors according to its first line, and has {len(ids)}",
            hint="the file may be truncated",
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
        # The objects of an adjacency matrix are a numpy array.
        with torch.serialization.safe_globals(_array_types()):
            state = torch.load(str(path), map_location="cpu", weights_only=True)
        model = state.get("model", {})
        weight = state["embeddings"] if "embeddings" in state else model["lt.weight"]
        ids = [str(name) for name in state["objects"]]
        vectors = weight.detach().to(torch.float64).numpy()
    except OSError as error:
        raise InputError(f"{display_path(path)} cannot be read: {error}", hint="check the path") from error
    except Exception as error:
        reason = f"it has no {error}" if isinstance(error, KeyError) else str(error).partition(". ")[0]
        raise FormatError(
            f"{display_path(path)} is not a checkpoint of poincare-embeddings: {reason}",
            hint="it needs objects, and embeddings or model['lt.weight']",
        ) from error
    conf = state.get("conf", {})
    manifold = str(conf.get("manifold", "")) if isinstance(conf, dict) else ""
    return ids, vectors, manifold if manifold in ("lorentz", "poincare", "euclidean") else None


def _array_types() -> list[Any]:
    """What an unpickler needs for numpy arrays of texts and numbers, under the names of numpy 1 and 2."""
    reconstruct = np.empty(0).__reduce__()[0]
    dtypes = [type(np.dtype(kind)) for kind in ("U", "S", "O", "f4", "f8", "i4", "i8")]
    return [reconstruct, (reconstruct, "numpy.core.multiarray._reconstruct"), np.ndarray, np.dtype, *dtypes]


def check_not_distances(path: PathLike, matrix: Floats) -> None:
    """Raise an error for a square symmetric matrix: these are distances or similarities, not vectors."""
    n_rows, n_columns = matrix.shape
    if n_rows != n_columns or n_rows < 3 or not np.allclose(matrix, matrix.T, equal_nan=True):
        return
    raise _square_matrix_error(path, n_rows, "similarities" if matrix.diagonal().any() else "distances")


def _square_matrix_error(path: PathLike, n_rows: int, what: str) -> FormatError:
    return FormatError(
        f"{display_path(path)} is a square matrix of {n_rows:,} x {n_rows:,}: {what}, not vectors",
        hint="eq accounts evaluate --distances reads distances; convert similarities to distances first",
    )
