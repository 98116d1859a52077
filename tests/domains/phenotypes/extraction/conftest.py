"""Short annotated documents about the ontology of signs, and a retriever over the toy ontology."""

from __future__ import annotations

import re

import pytest

from equipoise.domains.phenotypes.extraction.annotated_corpus import (
    AnnotatedCorpus,
    AnnotatedDocument,
    Annotation,
)
from equipoise.domains.phenotypes.index.retriever import TermRetriever
from equipoise.domains.phenotypes.ontology import load_ontology
from toy_ontology import obo

NOTES = {
    "a": "A [small head|T:04|affirmed] was seen. No [tremor|T:11|negated].",
    "b": "[Spider fingers|T:99|affirmed]. [Polydactyly|T:09|affirmed].",
    "c": "A [round face|T:12|affirmed] and [short fingers|T:08|affirmed].",
    "d": "Nothing was found.",
    "e": "[Webbing|T:10|affirmed]. The mother has a [large head|T:05|family_history].",
    "f": "[Very small head|T:06|affirmed], and [tremor|T:11|affirmed].",
    "g": "[Extra fingers|T:09|affirmed]. Possible [macrocephaly|T:05|uncertain].",
    "h": "[Brachydactyly|T:08|affirmed] without [syndactyly|T:10|negated].",
}
MARKED = re.compile(r"\[([^|]+)\|([^|]+)\|([^\]]+)\]")


def document(name: str, marked_text: str) -> AnnotatedDocument:
    """A text in which ``[words|term|assertion]`` is a gold annotation."""
    text, gold, position = "", [], 0
    for match in MARKED.finditer(marked_text):
        text += marked_text[position : match.start()]
        words, term, assertion = match.groups()
        gold.append(Annotation(term, assertion, ((len(text), len(text) + len(words)),)))
        text, position = text + words, match.end()
    return AnnotatedDocument(name, text + marked_text[position:], tuple(gold), "en")


@pytest.fixture(scope="session")
def signs() -> AnnotatedCorpus:
    return AnnotatedCorpus(tuple(document(name, text) for name, text in NOTES.items()), source="signs")


@pytest.fixture(scope="session")
def toy_retriever(tmp_path_factory: pytest.TempPathFactory) -> TermRetriever:
    """Character n-grams over the toy ontology; shared by property-based tests."""
    return TermRetriever("tfidf:", load_ontology(obo(tmp_path_factory.mktemp("toy") / "toy.obo")))


@pytest.fixture
def retriever(toy_retriever: TermRetriever) -> TermRetriever:
    """The same retriever, function-scoped."""
    return toy_retriever
