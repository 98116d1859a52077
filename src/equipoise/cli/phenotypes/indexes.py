"""The stored vectors that a model needs, or how to make them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from equipoise.cli.phenotypes.choices import folder_of
from equipoise.errors import StoreError

if TYPE_CHECKING:
    from equipoise.embed.retriever import Retriever
    from equipoise.ontology.index.store import TermIndex
    from equipoise.ontology.ontology import Ontology

QUICK = ("hash", "static", "vectors")
"""Kinds of models that embed all terms in seconds, so that no index need be built before."""


def stored_indexes(
    system: Retriever, index_dir: str | None, terms: Ontology, multi: bool, *, option: str = "--model-name"
) -> tuple[TermIndex, ...]:
    """The indexes of the models; those of quick ones may be absent. ``option`` is what names a model."""
    from equipoise.ontology.index.build import absent_index, missing_indexes, open_index
    from equipoise.ontology.index.fitting import models_of

    folder = folder_of(index_dir)
    missing = missing_indexes(folder, terms, system, multi)
    slow = next((model for model in missing if model.spec.kind not in QUICK), None)
    if slow is not None:
        absent = absent_index(folder, terms, slow.card.spec, multi)
        raise StoreError(absent.sentence, hint=f"{absent.hint}; {option} tfidf: needs none")
    models = [model for model in models_of(system) if model not in missing]
    return tuple(open_index(folder, terms, model, multi) for model in models)
