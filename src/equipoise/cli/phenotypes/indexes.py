"""The stored vectors that a model needs, or how to make them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from equipoise.cli.phenotypes.choices import folder_of
from equipoise.cli.progress import counting

if TYPE_CHECKING:
    from equipoise.cli.output import Output
    from equipoise.embed.retriever import Retriever
    from equipoise.ontology.index.store import TermIndex
    from equipoise.ontology.ontology import Ontology

QUICK = ("hash", "static", "vectors")
"""Kinds of models that embed all terms in seconds, so that no index need be built before."""


def stored_indexes(
    out: Output, system: Retriever, index_dir: str | None, terms: Ontology, multi: bool
) -> tuple[TermIndex, ...]:
    """The indexes of the models; one that is absent is built once and kept, except for quick models."""
    from equipoise.ontology.index.build import build_index, missing_indexes, open_index
    from equipoise.ontology.index.components import components
    from equipoise.ontology.index.fitting import models_of

    folder = folder_of(index_dir)
    missing = missing_indexes(folder, terms, system, multi)
    for model in missing:
        if model.spec.kind not in QUICK:
            what = f"embedding all terms with {model.card.name}, once"
            with counting(out, what, len(components(terms, multi))) as count:
                build_index(terms, model, folder, multi=multi, progress=lambda done, total: count(done))
            out.note(f"{model.card.name} had no index; it was built, and the next question finds it there")
    absent = [model for model in missing if model.spec.kind in QUICK]
    models = [model for model in models_of(system) if model not in absent]
    return tuple(open_index(folder, terms, model, multi) for model in models)
