"""The interface of a vector store. Every engine returns the same ids, scores and order.

A score is a similarity, higher is nearer: the cosine, the inner product, or minus the squared distance. Equal
scores are in the order of their ids. Vectors are stored as float32.
"""

from __future__ import annotations

import re
import sys
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from operator import itemgetter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from equipoise.errors import (
    DuplicateError,
    InputError,
    NotFiniteError,
    ParameterError,
    PartialError,
    ShapeError,
    StoreError,
    UnknownNameError,
)
from equipoise.geometry.base import as_vectors
from equipoise.geometry.spaces import geometry as geometry_of
from equipoise.models.tokenizers import check_text
from equipoise.types import Closable, Floats, Ids, Ints

if TYPE_CHECKING:
    from equipoise.models.encoder import Vectors

# Ties are ordered by id, also at the cutoff.

Search = Callable[[Ints, int], tuple[Ids, Floats]]
"""The best of some queries to a depth: ids and scores, one row per query, best first, ties in any order."""


def break_ties_by_id(search: Search, queries: int, k: int, total: int) -> tuple[Ids, Floats]:
    """The best k of every query out of ``total``, equal scores by id.

    An engine truncates ties arbitrarily. Therefore k + 1 hits are requested, and more for queries whose
    k-th score is still tied at the end of the list.
    """
    depth = min(k + 1, total)
    rows = np.arange(queries)
    ids, scores = search(rows, depth)
    best_ids, best_scores = _order_hits(ids, scores, k)
    while depth < total:
        rows = rows[(scores[:, -1] == scores[:, k - 1]) & (scores[:, -1] > -np.inf)]
        if not len(rows):
            break
        depth = min(4 * depth, total)
        ids, scores = search(rows, depth)
        best_ids[rows], best_scores[rows] = _order_hits(ids, scores, k)
    return best_ids, best_scores


def _order_hits(ids: Ids, scores: Floats, k: int) -> tuple[Ids, Floats]:
    """The first k columns by falling score, then by id."""
    ids, scores = ids.copy(), scores.copy()
    for row in np.flatnonzero((scores[:, 1:] >= scores[:, :-1]).any(axis=1)):
        n_hits = int((scores[row] > -np.inf).sum())
        pairs = zip((-scores[row, :n_hits]).tolist(), ids[row, :n_hits].tolist(), strict=True)
        order = [at for at, _ in sorted(enumerate(pairs), key=itemgetter(1))]
        ids[row, :n_hits], scores[row, :n_hits] = ids[row, order], scores[row, order]
    return ids[:, :k], scores[:, :k]


# Names of stores without passwords.

_PASSWORD = re.compile(r"://([^/:@]*):[^/]*@")
_SECRET = re.compile(r"[^=]*(password|secret|token|api)", re.IGNORECASE)


def without_secrets(spec: str) -> str:
    """The spec for display: without password and without the options after a question mark.

    >>> without_secrets("pgvector:postgresql://me:secret@host/db?sslmode=require")
    'pgvector:postgresql://me@host/db'
    """
    return without_password(spec).partition("?")[0]


def without_password(spec: str) -> str:
    """The spec without secrets, with all other options.

    >>> without_password("pgvector:postgresql://me:secret@host/db?sslmode=require&password=secret")
    'pgvector:postgresql://me@host/db?sslmode=require'
    """
    location, _, settings = _PASSWORD.sub(r"://\1@", spec).partition("?")
    options = "&".join(option for option in settings.split("&") if not _SECRET.match(option))
    return f"{location}?{options}" if options else location


GEOMETRIES = ("cosine", "dot", "euclidean")
DEFAULT_COLLECTION = "vectors"

SearchResult = tuple[Ids, Floats]
"""Ids and similarities, one row per query, best first; a short row ends in None and minus infinity."""


@dataclass(frozen=True, slots=True)
class Hits:
    """For each query the ids of its nearest vectors and their similarities, best first, ties by id.

    If an approximate index returns fewer hits, the row ends in None with score minus infinity.
    """

    ids: Ids
    scores: Floats

    def __len__(self) -> int:
        return len(self.ids)

    def pairs(self, query: int) -> list[tuple[str, float]]:
        """The hits of one query as (id, score), best first."""
        row = zip(self.ids[query].tolist(), self.scores[query].tolist(), strict=True)
        return [(name, score) for name, score in row if name is not None]


class VectorStore(Closable, ABC):
    """One collection of vectors with ids and, where given, texts."""

    kind: ClassVar[str]
    """The name before the colon of a spec."""
    name_rule: ClassVar[re.Pattern[str]] = re.compile(r"[^\x00-\x1f\x7f]{1,48}")
    name_words: ClassVar[str] = "1 to 48 characters, none of them a control character"
    geometries: ClassVar[tuple[str, ...]] = GEOMETRIES
    batch: int = sys.maxsize
    """Rows, ids and queries per request to the engine."""

    def __init__(
        self, collection: str, dims: int, geometry: str, client: Any = None, location: str = "", *, exact: bool = True
    ) -> None:
        self.collection = collection
        self.dims = dims
        self.geometry = geometry
        self.exact = exact
        """Whether search compares with every vector; an approximate index may miss some of the nearest."""
        self._client = client
        self._place = location
        self._closed = False

    def add(self, ids: Sequence[str], vectors: ArrayLike, texts: Sequence[str] | None = None) -> None:
        """Put vectors under ids; an existing id gets the new vector and the new text.

        All are checked before the first is written.
        """
        names = self._ids(ids)
        if len(set(names)) < len(names):
            (repeated, _), *_ = Counter(names).most_common(1)
            raise DuplicateError(f"the id {repeated!r} is in one call twice", hint="keep one vector for each id")
        rows = self._rows(vectors, "the vectors")
        if len(rows) != len(names):
            raise ShapeError(f"{len(names)} ids were given for {len(rows)} vectors", hint="give one id to each vector")
        if texts is not None and len(texts) != len(names):
            raise ShapeError(f"{len(names)} ids were given for {len(texts)} texts", hint="give one text to each id")
        scaled = self._scaled(rows)
        checked: list[str | None] = [None] * len(names) if texts is None else _whole_texts(names, texts)
        with self._request():
            for part in batches(len(names), self.batch):
                self._add(names[part], scaled[part], checked[part])

    def search(self, queries: ArrayLike, k: int) -> Hits:
        """The k nearest vectors of every query; all of them if there are fewer than k."""
        if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1:
            raise ParameterError(f"k is {k!r}; it must be an integer of 1 or more")
        rows = self._scaled(self._rows(queries, "the queries"))
        total = self.count()
        width = min(int(k), total)
        if not width or not len(rows):
            return Hits(np.empty((len(rows), width), dtype=object), np.empty((len(rows), width)))
        return Hits(*break_ties_by_id(lambda part, depth: self._hits(rows[part], depth), len(rows), width, total))

    def search_once(self, queries: ArrayLike, k: int) -> Hits:
        """The response of the engine to one request, with ties in any order and without further requests.

        ``search`` counts the vectors first and repeats the request if a tie was truncated; a measurement of the speed
        of a store should exclude that.
        """
        return Hits(*self._hits(self._scaled(self._rows(queries, "the queries")), k))

    def delete(self, ids: Sequence[str]) -> int:
        """Remove vectors by id; returns the number of existing ones."""
        names = self._ids(ids)
        with self._request():
            return sum(self._delete(names[part]) for part in batches(len(names), self.batch))

    def texts(self, ids: Sequence[str]) -> list[str | None]:
        """The texts that were added under these ids; None if there is no text or no such id."""
        names = self._ids(ids)
        stored = self._stored("text", names)
        return [stored.get(name) for name in names]

    def vectors(self, ids: Sequence[str]) -> Vectors:
        """The vectors under these ids, NaN where there is none; of length 1 for the cosine."""
        names = self._ids(ids)
        rows = np.full((len(names), self.dims), np.nan, dtype=np.float32)
        vector_by_id = self._stored("vector", names)
        present = [at for at, name in enumerate(names) if name in vector_by_id]
        if present:
            vectors = np.array([vector_by_id[names[at]] for at in present], dtype=np.float32)
            rows[present] = self._scaled(vectors)
        return rows

    def count(self) -> int:
        """The number of vectors."""
        self._require_open()
        with self._request():
            return self._count()

    def close(self) -> None:
        """Release memory, files and connections; data on disk or on a server are kept."""
        if not self._closed and hasattr(self._client, "close"):
            self._client.close()
        self._closed = True

    @property
    def named(self) -> str:
        """A description of the store, without password."""
        if not self._place:
            return f"the {self.kind} store"
        return f"the collection {self.collection!r} of {without_secrets(f'{self.kind}:{self._place}')}"

    def __repr__(self) -> str:
        return f"<{self.kind} store {self.collection!r}: {self.dims} dimensions, {self.geometry}>"

    @abstractmethod
    def _count(self) -> int: ...

    @abstractmethod
    def _add(self, ids: list[str], vectors: Vectors, texts: list[str | None]) -> None: ...

    @abstractmethod
    def _search(self, queries: Vectors, k: int) -> SearchResult:
        """The k nearest of each query, best first; ties in any order.

        Vectors and queries of cosine collections have length 1, so the inner product is the cosine.
        """

    @abstractmethod
    def _delete(self, ids: list[str]) -> int: ...

    @abstractmethod
    def _column(self, name: str, ids: list[str]) -> dict[str, Any]:
        """One column, ``text`` or ``vector``, of those ids that are there."""

    @classmethod
    def _translate_errors(cls, location: str) -> AbstractContextManager[None]:
        """Raise errors of the engine as ``StoreError``."""
        return nullcontext()

    def _request(self) -> AbstractContextManager[None]:
        """The context of every call of the methods above; a transaction where the engine has them."""
        return self._translate_errors(self._place)

    def _hits(self, queries: Vectors, k: int) -> SearchResult:
        with self._request():
            batch_hits = [self._search(queries[part], k) for part in batches(max(len(queries), 1), self.batch)]
        ids, scores = zip(*batch_hits, strict=True)
        return np.vstack(ids), np.vstack(scores)

    def _stored(self, name: str, ids: list[str]) -> dict[str, Any]:
        values: dict[str, Any] = {}
        with self._request():
            for part in batches(len(ids), self.batch):
                values |= self._column(name, ids[part])
        return values

    def _scaled(self, vectors: Vectors) -> Vectors:
        """The rows as they are stored and searched: at length 1 for the cosine."""
        return unit_rows(vectors) if self.geometry == "cosine" else vectors

    def _require_open(self) -> None:
        if self._closed:
            raise StoreError(f"the {self.kind} store {self.collection!r} is closed", hint="open it again")

    def _ids(self, ids: Sequence[str]) -> list[str]:
        self._require_open()
        return _strings(ids)

    def _rows(self, values: ArrayLike, subject: str) -> Vectors:
        self._require_open()
        array = np.asarray(values) if not isinstance(values, Sequence) or len(values) else np.empty((0, self.dims))
        rows = as_vectors(array, subject)
        if rows.shape[1] != self.dims:
            raise ShapeError(
                f"{subject} have {rows.shape[1]} dimensions, those of {self.collection!r} have {self.dims}",
                hint="embed with the model that filled the collection, or open another one",
            )
        with np.errstate(over="ignore"):
            narrow = rows.astype(np.float32)
        finite = np.isfinite(narrow).all(axis=1)
        if not finite.all():
            raise NotFiniteError(
                f"{subject} hold NaN or infinity in row {int(np.flatnonzero(~finite)[0])}",
                hint="find where the embedder returned it; empty texts are a usual cause",
            )
        return narrow


class RowStore(VectorStore):
    """A store whose engine returns the vectors of its hits.

    Scores are computed here, in float64: those of the engines may differ slightly for equal vectors.
    """

    @abstractmethod
    def _nearest(self, query: Vectors, k: int) -> tuple[Sequence[str], Any]:
        """Ids and vectors of the k nearest rows of one query, in any order."""

    def _search(self, queries: Vectors, k: int) -> SearchResult:
        lists = []
        for query in queries:
            ids, vectors = self._nearest(query, k)
            near = np.asarray(vectors, dtype=np.float32).reshape(len(ids), self.dims)
            pairs = zip(ids, similarities(query, near, self.geometry).tolist(), strict=True)
            lists.append(sorted(pairs, key=lambda pair: -pair[1]))
        return pad_hits(lists, k)


@contextmanager
def translate_errors(subject: str, errors: tuple[type[Exception], ...], hint: str) -> Iterator[None]:
    """Raise errors of an engine as ``StoreError``, with the first line of their message."""
    try:
        yield
    except errors as error:
        raise StoreError(f"{subject} cannot be used: {first_line(error)}", hint=hint) from error


@contextmanager
def translate_server_errors(
    server: str,
    unreachable: tuple[type[Exception], ...],
    others: tuple[type[Exception], ...],
    hint: str,
    hints: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[None]:
    """Raise errors of a client as ``StoreError``; ``hints`` are for messages that contain their keys."""
    try:
        yield
    except unreachable as error:
        raise StoreError(
            f"{server} does not answer: {first_line(error)}", hint="check its address, and that it is running"
        ) from None
    except others as error:
        message = first_line(error)
        for phrase, better_hint in hints.items():
            hint = better_hint if phrase in message.lower() else hint
        raise StoreError(f"{server} returned an error: {message}", hint=hint) from None


def first_line(error: Exception) -> str:
    """The first line of an error's message; the name of its class where it has none."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def batches(count: int, size: int) -> list[slice]:
    """The slices of at most ``size`` rows that make up ``count`` rows."""
    return [slice(start, start + size) for start in range(0, count, size)]


def unit_rows(vectors: Vectors) -> Vectors:
    """The rows at length 1, so that their inner product is the cosine; a zero row remains zero.

    Engines disagree on the cosine of a zero vector (NaN, 0 or an error); on the inner product they agree.
    """
    lengths = np.linalg.norm(vectors.astype(np.float64), axis=1, keepdims=True)
    return np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0.0, casting="same_kind")


def similarities(query: Vectors, vectors: Vectors, geometry: str) -> Floats:
    """The similarities of one query to vectors in float64: engines return less exact ones for equal vectors."""
    wide, near = query.astype(np.float64), np.asarray(vectors, dtype=np.float64)
    if geometry == "euclidean":
        distances: Floats = -np.einsum("ij,ij->i", near - wide, near - wide)
        return distances
    products: Floats = np.einsum("ij,j->i", near, wide)
    return products


def pad_hits(rows: Sequence[Sequence[tuple[str, float]]], k: int) -> SearchResult:
    """Lists of (id, score) as the two arrays, padded to k."""
    ids = np.full((len(rows), k), None, dtype=object)
    scores = np.full((len(rows), k), -np.inf)
    for at, row in enumerate(rows):
        for column, (name, score) in enumerate(row):
            ids[at, column], scores[at, column] = name, score
    return ids, scores


def check_collection(
    kind: type[VectorStore], collection: str, dims: int | None, geometry: str
) -> tuple[int | None, str]:
    """Validated dimensions, and the canonical name of the geometry."""
    if not isinstance(collection, str) or not kind.name_rule.fullmatch(collection):
        raise ParameterError(
            f"{collection!r} cannot name a collection of a {kind.kind} store", hint=f"use {kind.name_words}"
        )
    if dims is not None and (isinstance(dims, bool) or not isinstance(dims, int | np.integer) or dims < 1):
        raise ParameterError(f"dims is {dims!r}; it must be an integer of 1 or more")
    name = geometry_of(geometry).name
    if name not in kind.geometries:
        raise ParameterError(
            f"{kind.kind} stores have no {name} geometry",
            hint=f"they support {', '.join(kind.geometries)}; geometry.nearest supports {name}",
        )
    return None if dims is None else int(dims), name


def _whole_texts(names: list[str], texts: Sequence[str]) -> list[str | None]:
    pairs = zip(names, texts, strict=True)
    return [check_text(text, f"the text of {name!r}") for name, text in pairs]


def _strings(ids: Sequence[str]) -> list[str]:
    names: list[Any] = list(ids) if not isinstance(ids, str) else [None]
    for name in names:
        if not isinstance(name, str) or not name or "\0" in name:
            raise InputError(
                f"{ids if name is None else name!r} is not an id; ids are a list of non-empty strings",
                hint="numbers become ids by str(number)",
            )
    check_text("".join(names), "an id among those given")
    return names


# The schema of a stored collection, compared with the requested one.


@dataclass(frozen=True, slots=True)
class CollectionSchema:
    """Dimensions, geometry, and the approximate index where there is one."""

    dims: int
    geometry: str
    index: str = ""

    @classmethod
    def of_metadata(cls, facts: Mapping[str, Any] | None) -> CollectionSchema:
        """The schema in the metadata of a collection; one of another program matches no request."""
        facts = facts or {}
        return cls(int(facts.get("dims", 0)), str(facts.get("geometry", "of another program")))


def resolve_schema(
    collection: str,
    schemas: Mapping[str, CollectionSchema],
    dims: int | None,
    geometry: str,
    location: str,
    *,
    index: str = "",
) -> tuple[CollectionSchema, bool]:
    """The schema of a collection to open, and whether it is new; without ``dims`` it must exist."""
    existing = schemas.get(collection)
    if existing is None:
        if dims is None:
            raise UnknownNameError.of(
                f"collection of {location}",
                collection,
                schemas,
                more="dims=... creates it, with that many dimensions",
            )
        return CollectionSchema(dims, geometry, index), True
    for name, requested, actual in (("dimensions", dims, existing.dims), ("index", index or None, existing.index)):
        if requested is not None and requested != actual:
            raise ParameterError(
                f"the collection {collection!r} of {location} has {actual or 'no'} {name}, not {requested}",
                hint="open it as it is, or choose another name",
            )
    if dims is not None and geometry != existing.geometry:
        raise ParameterError(
            f"the collection {collection!r} of {location} is {existing.geometry}, not {geometry}",
            hint=f"open it with geometry={existing.geometry!r}, or choose another name",
        )
    return existing, False


# Write many vectors into a store in batches, and resume after a failure.

BATCH_ROWS = 5_000
"""Vectors per request: the maximum that is lost when the connection fails."""

Block = tuple[int, Sequence[str], Any, Sequence[str] | None]
"""The row of the first vector, the ids, the vectors and, where there are any, the texts."""

Blocks = Callable[[int, int], Iterable[Block]]
"""The blocks of vectors from a row on, with at most this number of vectors each."""


def ingest(
    store: VectorStore,
    total: int,
    blocks: Blocks,
    watch: Callable[[int], None] | None = None,
    *,
    hint: str = "use a separate collection for these vectors",
) -> int:
    """Put ``total`` vectors into a store, in their order, after those it already has; returns the number sent.

    Where some are missing further ahead, all are sent: existing ids are replaced. A store that fails
    keeps its vectors, and the error reports it. ``hint`` is for a store with other vectors.
    """
    n_stored = store.count()
    if n_stored > total:
        raise ParameterError(f"{store.named} holds {n_stored:,} vectors and there are {total:,}", hint=hint)
    if n_stored == total:
        return 0
    try:
        # The last block may have arrived in part, so it is sent again.
        sent = _send(store, blocks, n_stored - n_stored % BATCH_ROWS, watch)
        count = store.count()
        if count < total and sent < total:
            sent = _send(store, blocks, 0, watch)
            count = store.count()
    except StoreError as error:
        raise PartialError(
            f"{error.message}; the store was being filled",
            hint="stored vectors are kept: the same command resumes once the store is reachable",
        ) from error
    if count != total:
        raise StoreError(f"{store.named} holds {count:,} vectors after {total:,} were put into it", hint=hint)
    return sent


def _send(store: VectorStore, blocks: Blocks, start: int, watch: Callable[[int], None] | None) -> int:
    """Send all vectors from a row on; returns their number."""
    sent = 0
    for first, ids, vectors, texts in blocks(start, BATCH_ROWS):
        if watch is not None:
            watch(first)
        store.add(ids, vectors, texts)
        sent += len(ids)
    return sent


# Verify that an existing collection has the expected vectors.

N_SAMPLED_ROWS = 256
"""Vectors that are fetched and compared, evenly spread over those that should be there."""

_ROUNDING = 1e-5


def check_same_vectors(store: VectorStore, total: int, take: Callable[[Ints], Vectors], *, hint: str) -> None:
    """Compare some stored vectors with the expected ones; the id of a vector is its row number.

    Missing vectors are not an error, unless the store has as many vectors as expected.
    """
    n_stored = store.count()
    if not n_stored or n_stored > total:
        return
    rows = np.unique(np.linspace(0, n_stored - 1, N_SAMPLED_ROWS).astype(np.int64))
    stored = store.vectors([str(row) for row in rows.tolist()])
    is_stored = ~np.isnan(stored).any(axis=1)
    if n_stored == total and not is_stored.all():
        raise ParameterError(
            f"{store.named} holds {n_stored:,} vectors, and none with the id {rows[~is_stored][0]}", hint=hint
        )
    with np.errstate(over="ignore"):  # overflow is an error when the vectors are sent
        expected = take(rows).astype(np.float32)
    expected = unit_rows(expected) if store.geometry == "cosine" else expected
    distances = np.linalg.norm(stored.astype(np.float64) - expected, axis=1)
    size = np.linalg.norm(expected.astype(np.float64), axis=1)
    others = np.flatnonzero(is_stored & (distances > _ROUNDING * size))
    if len(others):
        raise ParameterError(
            f"{store.named} holds other vectors: {len(others):,} of the {int(is_stored.sum()):,} that were "
            f"compared differ from those of the corpus, the first at the id {rows[others[0]]}",
            hint=hint,
        )
