"""``eq phenotypes query``: terms for a text, and what is said when there can be none."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import Result

from equipoise.domains.phenotypes.cli_query import language_notes
from equipoise.domains.phenotypes.index.retriever import TermRetriever
from equipoise.domains.phenotypes.ontology import load_ontology
from toy_ontology import TERMS, obo

TOY = ("--ontology", "toy.obo", "--index-dir", "indexes")
QUERY = ("phenotypes", "query")


@pytest.fixture(autouse=True)
def toy(folder: Path) -> Path:
    """The small ontology lies in the working folder."""
    return obo(folder / "toy.obo")


def found(result: Result) -> list[dict]:
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)["results"]


def test_a_synonym_finds_its_term_and_is_named(eq) -> None:
    words = (*QUERY, "convulsions", *TOY, "--model-name", "tfidf:", "--multi-vector")
    first = found(eq(*words, "--json"))[0]
    assert (first["id"], first["component"], first["text"]) == ("T:2", "synonym", "Convulsions")
    shown = eq(*words)
    assert "synonym: Convulsions" in shown.stdout
    assert "toy, release 2025-01-01" in shown.stderr
    assert "Sudden abnormal activity" not in shown.stdout
    assert "Sudden abnormal activity" in eq(*words, "-v").stdout


def test_the_command_says_what_the_library_finds(eq) -> None:
    strategy = "0.6*label + 0.4*max(synonyms)"
    words = (*QUERY, "small body", *TOY, "--model-name", "tfidf:", "--multi-vector", "--json")
    rows = found(eq(*words, "--aggregation-strategy", strategy, "--num-results", "4"))
    ontology = load_ontology("toy.obo")
    expected = TermRetriever("tfidf:", ontology, strategy=strategy).search(["small body"], 4)
    shared = expected.scores[0] > 0
    assert [row["id"] for row in rows] == [ontology.ids[term] for term in expected.terms[0][shared]]
    np.testing.assert_allclose([row["score"] for row in rows], expected.scores[0][shared])


def test_more_results_than_terms_are_all_terms(eq) -> None:
    rows = found(eq(*QUERY, "fits", *TOY, "--model-name", "hash", "--single-vector", "--num-results", "99", "--json"))
    assert [row["rank"] for row in rows] == [1, 2, 3, 4, 5, 6]
    assert {row["component"] for row in rows} == {"whole"}


def test_weights_change_the_scores(eq) -> None:
    words = (*QUERY, "fits", *TOY, "--model-name", "tfidf:", "--multi-vector", "--json")
    weighted = ("--aggregation-strategy", "all_weighted", "--weights")
    rows = found(eq(*words, *weighted, "0,1,0"))
    assert rows[0]["score"] == pytest.approx(1.0)
    _refused(eq(*words, *weighted, "1,x"), "the weights are '1,x'", "three numbers")


def test_a_stored_index_gives_the_same_answer(eq) -> None:
    words = (
        *QUERY,
        "seizure with fever",
        *TOY,
        "--model-name",
        "sum:hash+tfidf:",
        "--multi-vector",
        "--json",
    )
    without = found(eq(*words))
    eq("phenotypes", "index", "build", "--model-name", "hash", "--multi-vector", *TOY)
    assert found(eq(*words)) == without


def test_a_model_without_its_index_gets_one_that_the_next_question_finds(eq, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("equipoise.domains.phenotypes.index.build.UNINDEXED_KINDS", ())
    words = (*QUERY, "fits", *TOY, "--model-name", "hash", "--multi-vector")
    first, second = eq(*words), eq(*words)
    assert first.exit_code == second.exit_code == 0
    assert "had no index; it was built" in first.stdout + first.stderr
    assert "had no index" not in second.stdout + second.stderr
    assert len(list(Path("indexes").glob("*_multi/vectors.npy"))) == 1


def test_an_index_of_another_release_and_a_damaged_one_are_refused(eq, toy: Path) -> None:
    words = (*QUERY, "fits", *TOY, "--model-name", "hash")
    eq("phenotypes", "index", "build", "--model-name", "hash", *TOY)
    obo(toy, TERMS, "2025-06-01")
    assert eq(*words).exit_code == 0, "a release with the same content is the same ontology"
    obo(toy, TERMS.replace("Coughing", "Tussis"), "2025-06-01")
    _refused(eq(*words), "was built for toy 2025-01-01, and this is toy 2025-06-01", "build it again")
    obo(toy)
    next(Path("indexes").glob("*/vectors.npy")).write_bytes(b"nothing")
    _refused(eq(*words), "is damaged", "build it again")


@pytest.mark.parametrize(
    ("words", "fact", "hint"),
    [
        (("",), "E200", "seizures"),
        ((" \t",), "E200", "seizures"),
        (("fits", "--single-vector", "--aggregation-strategy", "all_max"), "E310", "--single-vector"),
        (("fits", "--multi-vector", "--aggregation-strategy", "al_max"), "'al_max'", "did you mean all_max"),
        (("fits", "--multi-vector", "--aggregation-strategy", "label +"), "E310", "0.5*label"),
        (("fits", "--multi-vector", "--weights", "1,1,1"), "takes no weights", "all_weighted"),
        (("fits", "--model-name", "tfdif:"), "no kind of model is called 'tfdif'", "tfidf"),
        (("fits", "--model-name", "tfidf:", "--store", "memory"), "has no index", "--store"),
        (("fits", "--num-results", "0"), "0 is not in the range", "--help"),
        (("fits", "--language", "klingon"), "E310", "'klingon'"),
        (("fits", "--language", ""), "E310", "''"),
        (("fits", "--language", "d3"), "E310", "'d3'"),
        (("fits", "--single-vector", "--aggregation-strategy", ""), "E310", "--single-vector"),
        (("fits", "--multi-vector", "--aggregation-strategy", ""), "strategy is empty", "label_synonyms_max"),
        (("fits", "--model-name", "hash", "--index-dir", "toy.obo"), "toy.obo is a file", "--index-dir"),
    ],
)
def test_what_cannot_be_asked_gets_a_sentence(eq, words: tuple[str, ...], fact: str, hint: str) -> None:
    _refused(eq(*QUERY, *TOY, *words), fact, hint)


def test_several_texts_are_answered_in_one_table(eq, folder: Path) -> None:
    (folder / "findings.csv").write_text("text,ward\nconvulsions,a\nsmall body,b\n")
    (folder / "findings.txt").write_text("convulsions\n\nsmall body\n")
    words = (*TOY, "--model-name", "tfidf:", "-k", "2", "--json")
    by_hand = json.loads(eq(*QUERY, "convulsions", "small body", *words).stdout)
    alone = [found(eq(*QUERY, text, *words)) for text in ("convulsions", "small body")]
    assert [part["results"] for part in by_hand["queries"]] == alone
    for file in ("findings.csv", "findings.txt"):
        assert json.loads(eq(*QUERY, "--file", file, *words).stdout) == by_hand
    assert eq(*QUERY, "--file", "findings.txt", *TOY, "--model-name", "tfidf:", "-o", "terms.csv").exit_code == 0
    lines = (folder / "terms.csv").read_text().splitlines()
    assert lines[0].startswith("text,rank,term,label,score")
    assert lines[1].startswith("convulsions,1,T:2,")
    _refused(eq(*QUERY, "fits", "--file", "findings.txt", *TOY), "E310", "omit one")
    _refused(eq(*QUERY, *TOY), "E200", "seizures")


def test_a_german_text_is_also_scored_by_its_translation(eq) -> None:
    words = (*QUERY, "Krampfanfälle", *TOY, "--model-name", "tfidf:", "--json")
    first = json.loads(eq(*words).stdout)
    assert first["translation"] == "seizure"
    assert first["results"][0]["id"] == "T:2"
    assert json.loads(eq(*words, "--no-translate").stdout)["translation"] is None


@pytest.mark.slow
def test_a_model_made_for_english_says_so_where_the_text_is_not(eq) -> None:
    pytest.importorskip("wordllama")
    words = (*QUERY, "Anfall", *TOY, "--model-name", "wordllama", "--language")
    assert "sum:use+tfidf:" in eq(*words, "de").stderr
    assert "sum:use+tfidf:" not in eq(*words, "en").stderr


def test_words_that_no_term_has_find_nothing(eq) -> None:
    words = (*QUERY, "!!!", *TOY, "--model-name", "tfidf:", "--multi-vector")
    assert eq(*words).stdout.strip() == "no term shares words or letters with the text"
    assert found(eq(*words, "--json")) == []


def test_a_model_of_words_says_that_it_reads_one_language(eq) -> None:
    words = (*QUERY, "Anfall", *TOY, "--model-name", "bm25:", "--language")
    assert "bm25 matches shared words" in eq(*words, "de").stderr
    assert "bm25 matches" not in eq(*words, "en").stderr


def told_of(eq, model: str, language: str) -> str:
    done = eq(*QUERY, "Anfall", *TOY, "--model-name", model, "--language", language)
    assert done.exit_code == 0, done.output
    return " ".join(done.stderr.split())


@pytest.mark.parametrize(
    ("model", "signs"), [("tfidf:", "letters"), ("bm25:", "words"), ("sum:tfidf:+bm25:", "letters")]
)
def test_a_language_that_a_model_reads_is_sent_to_that_model(eq, model: str, signs: str) -> None:
    for language in ("de", "DE", "de-AT", "deu", "ja"):
        said = told_of(eq, model, language)
        assert f"shared {signs}" in said
        assert f"use, or sum:use+tfidf:, supports {language}" in said


@pytest.mark.parametrize("model", ["tfidf:", "bm25:", "hash", "sum:hash+tfidf:"])
def test_of_a_language_that_no_model_reads_none_is_promised(eq, model: str) -> None:
    for language in ("fi", "tlh", "eo-XX"):
        said = told_of(eq, model, language)
        assert f"no installed model supports {language}" in said
        assert "sum:use+tfidf:" not in said
    for language in ("en", "en-GB", "eng"):
        assert "letters" not in told_of(eq, model, language)


def test_the_multilingual_model_is_not_promised_for_every_language() -> None:
    for kinds in ({"use": "use"}, {"use": "use", "tfidf:": "tfidf"}):
        assert language_notes(kinds, "de") == []
        assert language_notes(kinds, "zh-Hant") == []
        assert "no installed model supports cy" in language_notes(kinds, "cy")[0]
    assert language_notes({"onnx:minilm": "onnx"}, "nl")[0].startswith("minilm supports English only")


def test_of_a_model_that_nobody_knows_nothing_is_said() -> None:
    assert language_notes({"st:some/model": "st", "tfidf:": "tfidf"}, "cy") == []


def test_the_help_says_what_a_language_is_for(eq) -> None:
    assert "Used only to warn about unsuitable models" in " ".join(eq(*QUERY, "--help").stdout.split())


def test_a_store_in_memory_proposes_the_same_terms(eq) -> None:
    eq("phenotypes", "index", "build", "--model-name", "hash", "--multi-vector", *TOY)
    words = (*QUERY, "seizure", *TOY, "--model-name", "hash", "--multi-vector", "--json")
    exact, stored = found(eq(*words)), found(eq(*words, "--store", "memory"))
    assert [row["id"] for row in exact] == [row["id"] for row in stored]


def _refused(result: Result, fact: str, hint: str) -> None:
    assert result.exit_code == 2, result.output
    assert fact in result.stderr
    assert hint in result.stderr
