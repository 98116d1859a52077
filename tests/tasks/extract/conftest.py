"""A small ontology of findings, and a system that finds them by their letters."""

from __future__ import annotations

import pytest

from equipoise.domains.phenotypes.index.retriever import TermRetriever
from equipoise.domains.phenotypes.ontology.ontology import load_ontology
from toy_ontology import obo


@pytest.fixture(scope="session")
def toy_system(tmp_path_factory: pytest.TempPathFactory) -> TermRetriever:
    """The small ontology behind character n-grams."""
    return TermRetriever("tfidf:", load_ontology(obo(tmp_path_factory.mktemp("toy") / "toy.obo")))


@pytest.fixture
def system(toy_system: TermRetriever) -> TermRetriever:
    """The same, for tests that draw nothing."""
    return toy_system
