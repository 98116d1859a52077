"""Build and open term indexes: each text is embedded once, and only if it is new."""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.domains.phenotypes.index.files import (
    IndexMetadata,
    TermIndex,
    TermTexts,
    check_is_folder,
    check_metadata,
    damaged_index_error,
    read_arrays,
    read_metadata,
    term_texts,
    text_digests,
    write_index,
)
from equipoise.domains.phenotypes.index.retriever import dense_model_specs, dense_models
from equipoise.domains.phenotypes.ontology import HPO, Ontology
from equipoise.errors import EquipoiseError, ParameterError, StoreError
from equipoise.geometry.search import find_duplicate_rows
from equipoise.io.atomic import current_path
from equipoise.models.embedder import Embedder
from equipoise.models.encoder import Role
from equipoise.models.retriever import Retriever, retriever
from equipoise.models.vector_cache import VectorCache

if TYPE_CHECKING:
    from equipoise.io.text import PathLike
    from equipoise.models.encode_texts import Progress
    from equipoise.models.encoder import Vectors
    from equipoise.models.worker_pool import ExecutorMap


def _build_command(folder: PathLike, ontology: Ontology, model_spec: str, multi_vector: bool) -> str:
    """The ``eq phenotypes index build`` command without default options; FILE if the ontology was not read from one."""
    words = ["eq", "phenotypes", "index", "build", "--model", model_spec]
    words += [] if multi_vector else ["--single-vector"]
    words += [] if ontology.source == HPO else ["--ontology", ontology.source or "FILE"]
    words += [] if Path(folder) == default_index_folder() else ["--index-dir", str(folder)]
    return shlex.join(words)


_MAX_NAME_LENGTH = 80
_NO_SIZE_LIMIT = 1 << 62


@dataclass(frozen=True, slots=True)
class BuildReport:
    """The cost of a build: texts reused from an older index, found in the cache, and embedded now.

    ``seconds`` is the total time, ``embedding_seconds`` the time inside the model.
    """

    texts: int
    reused: int
    from_cache: int
    embedded: int
    seconds: float
    embedding_seconds: float


@dataclass(frozen=True, slots=True)
class BuiltIndex:
    """An index and the report of its build."""

    index: TermIndex
    report: BuildReport


def default_index_folder() -> Path:
    """The folder of indexes unless one is given: in the user's data folder."""
    base = os.environ.get("XDG_DATA_HOME") or "~/.local/share"
    return Path(base).expanduser() / "equipoise" / "indexes"


def resolve_index_dir(index_dir: PathLike | None) -> Path:
    """The folder of indexes: the given one, or the default."""
    return Path(index_dir).expanduser() if index_dir else default_index_folder()


def index_folder(folder: PathLike, ontology: Ontology, model_spec: str, multi_vector: bool) -> Path:
    """The folder of one index, named for the ontology, the model and the kind."""
    check_is_folder(Path(folder))
    name = f"{_slug(ontology.name)}_{_slug(model_spec)}"
    return Path(folder) / (f"{name}_multi" if multi_vector else name)


def build_index(
    ontology: Ontology,
    model_spec: str | Embedder,
    folder: PathLike,
    *,
    multi_vector: bool,
    progress: Progress | None = None,
    **options: Any,
) -> TermIndex:
    """Embed the terms of an ontology and store the vectors.

    If the folder has an older index of the same model, only new texts are embedded. An interrupted build resumes.

    Parameters
    ----------
    ontology
        The ontology.
    model_spec
        The spec of an embedding model, or an ``Embedder``.
    folder
        Where indexes are stored.
    multi_vector
        Whether every label, synonym and definition has its own vector, or every term one.
    progress
        Called with the progress of embedding.
    **options
        Options of the model, such as ``cache`` and ``threads``.

    Returns
    -------
    TermIndex
        The stored index.

    Examples
    --------
    >>> build_index(load_ontology(), "wordllama", "indexes", multi_vector=True)  # doctest: +SKIP
    """
    return build_index_with_report(
        ontology, model_spec, folder, multi_vector=multi_vector, progress=progress, **options
    ).index


def build_index_with_report(
    ontology: Ontology,
    model_spec: str | Embedder,
    folder: PathLike,
    *,
    multi_vector: bool,
    progress: Progress | None = None,
    executor: ExecutorMap | None = None,
    **options: Any,
) -> BuiltIndex:
    """Embed the terms of an ontology, store the vectors, and report the cost.

    If the folder has an older index of the same model, only texts that it does not have are embedded.
    Nothing is written if nothing changed. ``options`` go to the model, such as ``cache`` and ``threads``.
    ``executor`` embeds blocks of texts on remote workers, with identical bytes. Finished blocks are kept until
    the index is complete, so that an interrupted build resumes.
    """
    start = perf_counter()
    model = _load_model(model_spec, **options)
    path = index_folder(folder, ontology, model.card.spec, multi_vector)
    texts = term_texts(ontology, multi_vector)
    old = _previous_index(path, model)
    if old is not None and replace(old.meta, checksum=0) == _make_metadata(model, ontology, texts, old.meta.dims):
        n_texts = len(texts)
        index = TermIndex(path, old.meta, texts, old.vectors, old.first)
        return BuiltIndex(index, BuildReport(n_texts, n_texts, 0, 0, perf_counter() - start, 0.0))
    with _with_work_cache(model, path, executor) as cached_model:
        vectors, counts, embedding = _embed_texts(cached_model, texts, old, progress, executor)
        meta = _make_metadata(model, ontology, texts, vectors.shape[1])
        write_index(path, meta, text_digests(texts.texts), vectors, find_duplicate_rows(vectors).first)
    index = _load_index(path, texts)
    return BuiltIndex(index, BuildReport(len(texts), *counts, perf_counter() - start, embedding))


def open_index(
    folder: PathLike, ontology: Ontology, model_spec: str | Embedder, multi_vector: bool, **options: Any
) -> TermIndex:
    """Open the index of a model and an ontology. A missing index, or one that does not match, is an error.

    Parameters
    ----------
    folder
        Where indexes are stored.
    ontology
        The ontology.
    model_spec
        The spec of an embedding model, or an ``Embedder``.
    multi_vector
        Whether every label, synonym and definition has its own vector, or every term one.
    **options
        Options of the model, such as ``cache`` and ``threads``.

    Returns
    -------
    TermIndex
        The stored index.

    Examples
    --------
    >>> open_index("indexes", load_ontology(), "wordllama", multi_vector=True)  # doctest: +SKIP
    """
    model = _load_model(model_spec, **options)
    path = index_folder(folder, ontology, model.card.spec, multi_vector)
    if not current_path(path).is_dir():
        kind = "multi-vector" if multi_vector else "single-vector"
        raise StoreError(
            f"there is no {kind} index of {ontology.name} by {model.card.spec} in {Path(folder)}",
            hint=f"build it once: {_build_command(folder, ontology, model.card.spec, multi_vector)}",
        )
    try:
        meta = read_metadata(path)
        if meta.model != model.fingerprint:
            raise StoreError(
                f"the index {path} was built by another model ({meta.model_spec}, {meta.model[:12]}) "
                f"than {model.card.spec} is now ({model.fingerprint[:12]})"
            )
        check_metadata(meta, path, ontology, multi_vector)
        return _load_index(path, term_texts(ontology, multi_vector))
    except StoreError as error:
        command = _build_command(folder, ontology, model.card.spec, multi_vector)
        hint = f"build it again, which embeds what is new: {command}"
        raise StoreError(error.message, hint=hint) from error


def open_indexes(
    folder: PathLike, ontology: Ontology, system: str | Retriever, multi_vector: bool, **options: Any
) -> tuple[TermIndex, ...]:
    """The indexes of all dense models of a system; none for a lexical system."""
    models = dense_models(retriever(system, **options))
    return tuple(open_index(folder, ontology, model, multi_vector) for model in models)


def missing_indexes(
    folder: PathLike, ontology: Ontology, system: str | Retriever, multi_vector: bool
) -> list[Embedder]:
    return [
        model
        for model in dense_models(retriever(system))
        if not current_path(index_folder(folder, ontology, model.card.spec, multi_vector)).is_dir()
    ]


UNINDEXED_KINDS = ("hash", "static", "vectors")
"""Kinds of models that embed all terms in seconds and need no index."""
BuildProgress = Callable[[Embedder, int], AbstractContextManager["Progress"]]
"""From a model and its number of texts to a context that gives the progress function of the build."""


def open_or_build_indexes(
    folder: PathLike,
    ontology: Ontology,
    system: str | Retriever,
    multi_vector: bool,
    progress: BuildProgress | None = None,
) -> tuple[TermIndex, ...]:
    """The indexes of the dense models; a missing one is built and stored, except for fast models."""
    missing = missing_indexes(folder, ontology, system, multi_vector)
    unindexed = [model for model in missing if model.spec.kind in UNINDEXED_KINDS]
    for model in missing:
        if model not in unindexed:
            shown = progress(model, len(term_texts(ontology, multi_vector))) if progress else nullcontext()
            with shown as advance:
                build_index(ontology, model, folder, multi_vector=multi_vector, progress=advance)
    models = [model for model in dense_models(retriever(system)) if model not in unindexed]
    return tuple(open_index(folder, ontology, model, multi_vector) for model in models)


def _load_index(path: Path, texts: TermTexts) -> TermIndex:
    meta = read_metadata(path)
    vectors, _, first = read_arrays(path, meta)
    # The ontology is that of the index, so its texts are too; comparing all of them takes longer than a search.
    if meta.components != len(texts):
        raise damaged_index_error(path, "its texts are not those of its ontology")
    return TermIndex(path, meta, texts, vectors, first)


@dataclass(frozen=True, slots=True)
class _PreviousIndex:
    """The index that a build replaces, with its rows by text digest."""

    meta: IndexMetadata
    vectors: Vectors
    first: Any
    rows: dict[bytes, int]


def _previous_index(path: Path, model: Embedder) -> _PreviousIndex | None:
    """The index at this path, if it can be read and has vectors of the same model."""
    try:
        meta = read_metadata(path)
        if meta.model != model.fingerprint:
            return None
        vectors, keys, first = read_arrays(path, meta)
    except EquipoiseError:
        return None
    return _PreviousIndex(meta, vectors, first, {key.tobytes(): row for row, key in enumerate(keys)})


@contextmanager
def _with_work_cache(model: Embedder, path: Path, executor: ExecutorMap | None) -> Iterator[Embedder]:
    """The model with a cache: its own, or a temporary one next to the index until the build is complete.

    A local build needs no temporary cache, but reads one that an interrupted cluster build left.
    """
    work = path.with_name(f".{path.name}.work")
    if model.cache is not None or not model.encoder.cacheable or (executor is None and not work.is_dir()):
        yield model
        return
    with VectorCache(work / "vectors.sqlite", _NO_SIZE_LIMIT) as cache:
        yield Embedder(model.encoder, model.spec, cache=cache)
    shutil.rmtree(work, ignore_errors=True)


def _embed_texts(
    model: Embedder,
    texts: TermTexts,
    old: _PreviousIndex | None,
    progress: Progress | None,
    executor: ExecutorMap | None = None,
) -> tuple[Vectors, tuple[int, int, int], float]:
    """Vectors of all components; numbers of reused, cached and embedded texts; seconds in the model."""
    known = old.rows if old is not None else {}
    rows = np.array([known.get(key.tobytes(), -1) for key in text_digests(texts.texts)], dtype=np.int64)
    new = np.flatnonzero(rows < 0)
    if not len(new) and old is not None:
        return old.vectors[rows], (len(rows), 0, 0), 0.0
    embedded = model.embed_report(
        [texts.texts[index] for index in new], Role.DOCUMENT, progress=progress, map_function=executor
    )
    report, vectors = embedded.report, embedded.vectors
    if old is not None and len(new) < len(rows):
        vectors = np.empty((len(rows), embedded.vectors.shape[1]), dtype=np.float32)
        vectors[new] = embedded.vectors
        vectors[rows >= 0] = old.vectors[rows[rows >= 0]]
    return vectors, (len(rows) - len(new), report.from_cache, report.embedded), report.seconds


def _make_metadata(model: Embedder, ontology: Ontology, texts: TermTexts, dims: int) -> IndexMetadata:
    return IndexMetadata(
        model=model.fingerprint,
        model_spec=model.card.spec,
        model_name=model.card.name,
        dims=dims,
        ontology=ontology.fingerprint,
        ontology_name=ontology.name,
        release=ontology.release,
        citation=ontology.citation,
        multi_vector=texts.multi_vector,
        terms=texts.terms,
        components=len(texts),
        texts=texts.fingerprint,
    )


def _load_model(spec: str | Embedder, **options: Any) -> Embedder:
    """The dense model of a spec; for a fusion, its only dense part."""
    if isinstance(spec, Embedder):
        return spec
    parts = dense_model_specs(spec)
    if len(parts) != 1:
        fact = "is lexical and has no vectors" if not parts else f"has {len(parts)} dense models"
        hint = "it needs no index" if not parts else f"build one for each: {', '.join(parts)}"
        raise ParameterError(f"{spec} {fact}", hint=hint)
    return dense_models(retriever(parts[0], **options))[0]


def _slug(text: str) -> str:
    """Letters and digits with underscores between, as a folder name; a long name is truncated and gets a digest."""
    words = "_".join(re.findall(r"[a-z0-9]+", text.casefold())) or "model"
    return words if len(words) <= _MAX_NAME_LENGTH else f"{words[:60]}_{sha256(text.encode()).hexdigest()[:8]}"
