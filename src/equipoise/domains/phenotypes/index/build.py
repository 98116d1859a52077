"""Building an index and opening it again: each text is embedded once, and only if it is new."""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.domains.phenotypes.index.files import (
    IndexMetadata,
    TermIndex,
    check_is_folder,
    check_metadata,
    damaged_index_error,
    read_arrays,
    read_metadata,
    text_digests,
    write_index,
)
from equipoise.domains.phenotypes.index.retriever import dense_model_specs, dense_models
from equipoise.domains.phenotypes.index.term_texts import TermTexts, term_texts
from equipoise.domains.phenotypes.ontology.ontology import HPO, Ontology
from equipoise.errors import EquipoiseError, ParameterError, StoreError
from equipoise.geometry.search import find_duplicate_rows
from equipoise.io.atomic import current_path
from equipoise.models.cache import VectorCache
from equipoise.models.embedder import Embedder
from equipoise.models.retriever import Retriever, retriever
from equipoise.types import Role

if TYPE_CHECKING:
    from equipoise.io.text import PathLike
    from equipoise.models.encode_texts import Progress
    from equipoise.models.encoder import Vectors
    from equipoise.models.worker_pool import ExecutorMap

# The command that makes an index, ready to be copied: wherever one is missing or old, it is the hint.


def index_build_command(
    ontology: Ontology, model_spec: str, *, multi: bool, folder: PathLike, default: PathLike
) -> str:
    """``eq phenotypes index build`` for this model, ontology and folder; what is the default is left out.

    An ontology that was not read from a file has no path to name, so FILE stands there.
    """
    words = ["eq", "phenotypes", "index", "build", "--model-name", model_spec]
    words += ["--multi-vector"] if multi else []
    words += [] if ontology.source == HPO else ["--ontology", ontology.source or "FILE"]
    words += [] if Path(folder) == Path(default) else ["--index-dir", str(folder)]
    return shlex.join(words)


_LONGEST_NAME = 80
_NO_BOUND = 1 << 62


@dataclass(frozen=True, slots=True)
class BuildReport:
    """What building took: texts that an older index had, that the cache had, and that were embedded now.

    ``seconds`` are those of the whole, ``embedding_seconds`` those inside the model.
    """

    texts: int
    kept: int
    from_cache: int
    embedded: int
    seconds: float
    embedding_seconds: float


@dataclass(frozen=True, slots=True)
class BuiltIndex:
    """An index, and what it took to build it."""

    index: TermIndex
    report: BuildReport


def default_index_folder() -> Path:
    """Where indexes lie unless a folder is given: in the user's data folder."""
    base = os.environ.get("XDG_DATA_HOME") or "~/.local/share"
    return Path(base).expanduser() / "equipoise" / "indexes"


def index_folder(folder: PathLike, ontology: Ontology, model_spec: str, multi: bool) -> Path:
    """The folder of one index, named for the ontology, the model and the kind."""
    check_is_folder(Path(folder))
    name = f"{_slug(ontology.name)}_{_slug(model_spec)}"
    return Path(folder) / (f"{name}_multi" if multi else name)


def build_index(
    ontology: Ontology,
    model_spec: str | Embedder,
    folder: PathLike,
    *,
    multi: bool,
    progress: Progress | None = None,
    **options: Any,
) -> TermIndex:
    """Embed the terms of an ontology and keep the vectors; see ``build_index_with_report``."""
    return build_index_with_report(ontology, model_spec, folder, multi=multi, progress=progress, **options).index


def build_index_with_report(
    ontology: Ontology,
    model_spec: str | Embedder,
    folder: PathLike,
    *,
    multi: bool,
    progress: Progress | None = None,
    over: ExecutorMap | None = None,
    **options: Any,
) -> BuiltIndex:
    """Embed the terms of an ontology, keep the vectors, and say what it took.

    Where an older index of the same model stands in the place, only texts that it does not have are embedded.
    Nothing is written where nothing changed. ``options`` go to the model, such as ``cache`` and ``threads``.
    ``over`` embeds blocks of texts elsewhere, with the same bytes; what is back is kept until the index is
    whole, so that the same call goes on behind it whatever dies.
    """
    start = perf_counter()
    model = _model(model_spec, **options)
    place = index_folder(folder, ontology, model.card.spec, multi)
    texts = term_texts(ontology, multi)
    old = _old(place, model)
    if old is not None and replace(old.meta, checksum=0) == _meta(model, ontology, texts, old.meta.dims):
        kept = len(texts)
        index = TermIndex(place, old.meta, texts, old.vectors, old.first)
        return BuiltIndex(index, BuildReport(kept, kept, 0, 0, perf_counter() - start, 0.0))
    with _keeping(model, place, over) as keeping:
        vectors, counts, embedding = _vectors(keeping, texts, old, progress, over)
        meta = _meta(model, ontology, texts, vectors.shape[1])
        write_index(place, meta, text_digests(texts.texts), vectors, find_duplicate_rows(vectors).first)
    index = _opened(place, texts)
    return BuiltIndex(index, BuildReport(len(texts), *counts, perf_counter() - start, embedding))


def open_index(
    folder: PathLike, ontology: Ontology, model_spec: str | Embedder, multi: bool, **options: Any
) -> TermIndex:
    """The index that this model has of this ontology; an error where there is none that fits."""
    model = _model(model_spec, **options)
    place = index_folder(folder, ontology, model.card.spec, multi)
    if not current_path(place).is_dir():
        raise missing_index_error(folder, ontology, model.card.spec, multi)
    try:
        meta = read_metadata(place)
        if meta.model != model.fingerprint:
            raise StoreError(
                f"the index {place} was built by another model ({meta.model_spec}, {meta.model[:12]}) "
                f"than {model.card.spec} is now ({model.fingerprint[:12]})"
            )
        check_metadata(meta, place, ontology, multi)
        return _opened(place, term_texts(ontology, multi))
    except StoreError as error:
        command = _command(folder, ontology, model.card.spec, multi)
        hint = f"build it again, which embeds what is new: {command}"
        raise StoreError(error.message, hint=hint) from error


def missing_index_error(folder: PathLike, ontology: Ontology, model_spec: str, multi: bool) -> StoreError:
    """There is no such index, and the command that makes it."""
    kind = "multi-vector" if multi else "single-vector"
    return StoreError(
        f"there is no {kind} index of {ontology.name} by {model_spec} in {Path(folder)}",
        hint=f"{_command(folder, ontology, model_spec, multi)} makes it, once",
    )


def open_indexes(
    folder: PathLike, ontology: Ontology, system: str | Retriever, multi: bool, **options: Any
) -> tuple[TermIndex, ...]:
    """The indexes of all parts of a system that embed; none for a system that scores words."""
    models = dense_models(retriever(system, **options))
    return tuple(open_index(folder, ontology, model, multi) for model in models)


def missing_indexes(
    folder: PathLike, ontology: Ontology, system: str | Retriever, multi: bool, **options: Any
) -> list[Embedder]:
    """The models of a system that have no index yet."""
    return [
        model
        for model in dense_models(retriever(system, **options))
        if not current_path(index_folder(folder, ontology, model.card.spec, multi)).is_dir()
    ]


def _command(folder: PathLike, ontology: Ontology, model_spec: str, multi: bool) -> str:
    return index_build_command(ontology, model_spec, multi=multi, folder=folder, default=default_index_folder())


def _opened(place: Path, texts: TermTexts) -> TermIndex:
    meta = read_metadata(place)
    vectors, _, first = read_arrays(place, meta)
    if meta.texts != texts.fingerprint:
        raise damaged_index_error(place, "its texts are not those of its ontology")
    return TermIndex(place, meta, texts, vectors, first)


@dataclass(frozen=True, slots=True)
class _PreviousIndex:
    """An index that stands in the place of the new one, with its rows by the keys of their texts."""

    meta: IndexMetadata
    vectors: Vectors
    first: Any
    rows: dict[bytes, int]


def _old(place: Path, model: Embedder) -> _PreviousIndex | None:
    """The index in the place, if it can be read and its vectors are of the same model."""
    try:
        meta = read_metadata(place)
        if meta.model != model.fingerprint:
            return None
        vectors, keys, first = read_arrays(place, meta)
    except EquipoiseError:
        return None
    return _PreviousIndex(meta, vectors, first, {key.tobytes(): row for row, key in enumerate(keys)})


@contextmanager
def _keeping(model: Embedder, place: Path, over: ExecutorMap | None) -> Iterator[Embedder]:
    """The model with a cache: its own, or where it has none, one beside the index until that is whole.

    What is made in this process alone needs none, but finds what an earlier call on a cluster left there.
    """
    work = place.with_name(f".{place.name}.work")
    if model.cache is not None or not model.encoder.cacheable or (over is None and not work.is_dir()):
        yield model
        return
    with VectorCache(work / "vectors.sqlite", _NO_BOUND) as cache:
        yield Embedder(model.encoder, model.spec, cache=cache)
    shutil.rmtree(work, ignore_errors=True)


def _vectors(
    model: Embedder,
    texts: TermTexts,
    old: _PreviousIndex | None,
    progress: Progress | None,
    over: ExecutorMap | None = None,
) -> tuple[Vectors, tuple[int, int, int], float]:
    """A vector for each component; how many were kept, found in the cache and embedded; and the seconds."""
    known = old.rows if old is not None else {}
    rows = np.array([known.get(key.tobytes(), -1) for key in text_digests(texts.texts)], dtype=np.int64)
    new = np.flatnonzero(rows < 0)
    if not len(new) and old is not None:
        return old.vectors[rows], (len(rows), 0, 0), 0.0
    made = model.embed_report([texts.texts[place] for place in new], Role.DOCUMENT, progress=progress, over=over)
    report, vectors = made.report, made.vectors
    if old is not None and len(new) < len(rows):
        vectors = np.empty((len(rows), made.vectors.shape[1]), dtype=np.float32)
        vectors[new] = made.vectors
        vectors[rows >= 0] = old.vectors[rows[rows >= 0]]
    return vectors, (len(rows) - len(new), report.from_cache, report.embedded), report.seconds


def _meta(model: Embedder, ontology: Ontology, texts: TermTexts, dims: int) -> IndexMetadata:
    return IndexMetadata(
        model=model.fingerprint,
        model_spec=model.card.spec,
        model_name=model.card.name,
        dims=dims,
        ontology=ontology.fingerprint,
        ontology_name=ontology.name,
        release=ontology.release,
        citation=ontology.citation,
        multi=texts.multi,
        terms=texts.terms,
        components=len(texts),
        texts=texts.fingerprint,
    )


def _model(spec: str | Embedder, **options: Any) -> Embedder:
    """The model of a spec that embeds; a fusion stands for the one part of it that does."""
    if isinstance(spec, Embedder):
        return spec
    parts = dense_model_specs(spec)
    if len(parts) != 1:
        fact = "scores words and has no vectors" if not parts else f"has {len(parts)} models that embed"
        hint = "it needs no index" if not parts else f"build one for each: {', '.join(parts)}"
        raise ParameterError(f"{spec} {fact}", hint=hint)
    return dense_models(retriever(parts[0], **options))[0]


def _slug(text: str) -> str:
    """Letters and digits with underscores between, as a name of a folder; a long one is cut and marked."""
    words = "_".join(re.findall(r"[a-z0-9]+", text.casefold())) or "model"
    return words if len(words) <= _LONGEST_NAME else f"{words[:60]}_{sha256(text.encode()).hexdigest()[:8]}"
