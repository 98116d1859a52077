"""A retriever over components, with the stored vectors in the place of those it would have to make."""

from __future__ import annotations

from collections.abc import Sequence

from equipoise.embed.dense import DenseRetriever
from equipoise.embed.fusion import FittedFusion, ReciprocalRank, Sum, read_fusion
from equipoise.embed.model import Embedder
from equipoise.embed.retriever import LEXICAL, Fitted, Retriever, is_fusion, kind_of
from equipoise.embed.work import Progress
from equipoise.errors import StoreError
from equipoise.ontology.index.components import Components
from equipoise.ontology.index.held import HeldVectors
from equipoise.ontology.index.store import TermIndex
from equipoise.types import Role


def fitted_system(
    system: Retriever,
    components: Components,
    indexes: Sequence[TermIndex] = (),
    progress: Progress | None = None,
) -> Fitted:
    """The system, fitted on the components; what embeds takes its vectors from the index that has them."""
    models = [model.fingerprint for model in models_of(system)]
    for index in indexes:
        if index.model not in models:
            raise StoreError(
                f"the index {index.folder} holds vectors of {index.meta.model_spec}, "
                f"not of {system.card.spec}",
                hint="build an index for this model",
            )
    fitted = [_fitted(part, components, indexes, progress) for part in parts_of(system)]
    return FittedFusion(system, fitted) if isinstance(system, Sum | ReciprocalRank) else fitted[0]


def dense_parts(spec: str) -> list[str]:
    """The models of a spec that embed: itself, those that a fusion names, or none.

    >>> dense_parts("sum:use+tfidf:"), dense_parts("bm25:"), dense_parts("minilm")
    (['use'], [], ['minilm'])
    """
    parts = read_fusion(spec)[2] if is_fusion(spec) else [spec]
    return [part for part in parts if kind_of(part) not in LEXICAL]


def models_of(system: Retriever) -> list[Embedder]:
    """The models of a system that embed, loaded as they are: its own, those of a fusion's parts, or none."""
    return [part.embedder for part in parts_of(system) if isinstance(part, DenseRetriever)]


def parts_of(system: Retriever) -> tuple[Retriever, ...]:
    """The systems that a fusion adds up, or the one that there is."""
    return system.parts if isinstance(system, Sum | ReciprocalRank) else (system,)


def _fitted(
    system: Retriever, components: Components, indexes: Sequence[TermIndex], progress: Progress | None
) -> Fitted:
    if not isinstance(system, DenseRetriever):
        return system.fit(components.texts)
    model = system.embedder
    for index in indexes:
        if index.model == model.fingerprint:
            return HeldVectors(system, index.vectors, index.first, texts=components.texts)
    made = model.embed_report(components.texts, Role.DOCUMENT, progress=progress)
    return HeldVectors(system, made.vectors, texts=components.texts)
