"""The system that finds terms: a model over the vectors of an ontology, stored or made now."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from equipoise.errors import EquipoiseError
from equipoise.ontology.index.build import default_folder, open_indexes
from equipoise.ontology.index.fitting import models_of
from equipoise.ontology.index.search import TermSystem
from equipoise.ontology.ontology import Ontology
from equipoise.recipes.fair.models import loaded
from equipoise.recipes.phenotypes.extraction.settings import ExtractionSettings


@contextmanager
def term_system(model: Any, ontology: Ontology, settings: ExtractionSettings) -> Iterator[TermSystem]:
    """The model over the terms; without a stored index the terms are embedded first, which takes a while."""
    with loaded(model, threads=settings.threads) as system:
        folder = settings.index_dir or default_folder()
        try:
            indexes = open_indexes(
                folder, ontology, system.card.spec, settings.multi, threads=settings.threads
            )
        except EquipoiseError:
            if settings.index_dir is not None:
                raise
            indexes = ()
        yield TermSystem(system, ontology, multi=settings.multi, strategy=settings.strategy, index=indexes)


def unstored(system: TermSystem) -> tuple[str, ...]:
    """What to know of a model whose vectors of the terms are not stored; nothing where they are."""
    if system.indexes or not models_of(system.system):
        return ()
    flag = " --multi-vector" if system.multi else ""
    return (
        f"no index of {system.card.spec} is stored, so all texts of the terms had to be embedded: "
        f"eq phenotypes index build --model-name {system.card.spec}{flag} makes one, once",
    )
