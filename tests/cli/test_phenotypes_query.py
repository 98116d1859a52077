"""``eq phenotypes query``: terms for a text, warnings and errors."""

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
    """Write the small ontology to the working folder."""
    return obo(folder / "toy.obo")


def parse_results(result: Result) -> list[dict]:
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)["results"]


def test_a_synonym_matches_its_term_and_is_shown(eq) -> None:
    arguments = (*QUERY, "convulsions", *TOY, "--model-name", "tfidf:", "--multi-vector")
    first = parse_results(eq(*arguments, "--json"))[0]
    assert (first["id"], first["component"], first["text"]) == ("T:2", "synonym", "Convulsions")
    table_result = eq(*arguments)
    assert "synonym: Convulsions" in table_result.stdout
    assert "toy, release 2025-01-01" in table_result.stderr
    assert "Sudden abnormal activity" not in table_result.stdout
    assert "Sudden abnormal activity" in eq(*arguments, "-v").stdout


def test_the_command_and_the_library_give_the_same_terms(eq) -> None:
    strategy = "0.6*label + 0.4*max(synonyms)"
    arguments = (*QUERY, "small body", *TOY, "--model-name", "tfidf:", "--multi-vector", "--json")
    rows = parse_results(eq(*arguments, "--aggregation-strategy", strategy, "--num-results", "4"))
    ontology = load_ontology("toy.obo")
    expected = TermRetriever("tfidf:", ontology, strategy=strategy).search(["small body"], 4)
    shared = expected.scores[0] > 0
    assert [row["id"] for row in rows] == [ontology.ids[term] for term in expected.terms[0][shared]]
    np.testing.assert_allclose([row["score"] for row in rows], expected.scores[0][shared])


def test_num_results_above_the_number_of_terms_gives_all_terms(eq) -> None:
    rows = parse_results(
        eq(*QUERY, "fits", *TOY, "--model-name", "hash", "--single-vector", "--num-results", "99", "--json")
    )
    assert [row["rank"] for row in rows] == [1, 2, 3, 4, 5, 6]
    assert {row["component"] for row in rows} == {"whole"}


def test_weights_change_the_scores(eq) -> None:
    arguments = (*QUERY, "fits", *TOY, "--model-name", "tfidf:", "--multi-vector", "--json")
    weighted = ("--aggregation-strategy", "all_weighted", "--weights")
    rows = parse_results(eq(*arguments, *weighted, "0,1,0"))
    assert rows[0]["score"] == pytest.approx(1.0)
    _assert_error(eq(*arguments, *weighted, "1,x"), "the weights are '1,x'", "three numbers")


def test_a_stored_index_gives_the_same_results(eq) -> None:
    arguments = (
        *QUERY,
        "seizure with fever",
        *TOY,
        "--model-name",
        "sum:hash+tfidf:",
        "--multi-vector",
        "--json",
    )
    without = parse_results(eq(*arguments))
    eq("phenotypes", "index", "build", "--model-name", "hash", "--multi-vector", *TOY)
    assert parse_results(eq(*arguments)) == without


def test_a_missing_index_is_built_once(eq, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("equipoise.domains.phenotypes.index.build.UNINDEXED_KINDS", ())
    arguments = (*QUERY, "fits", *TOY, "--model-name", "hash", "--multi-vector")
    first, second = eq(*arguments), eq(*arguments)
    assert first.exit_code == second.exit_code == 0
    assert "had no index; it was built" in first.stdout + first.stderr
    assert "had no index" not in second.stdout + second.stderr
    assert len(list(Path("indexes").glob("*_multi/vectors.npy"))) == 1


def test_an_outdated_or_damaged_index_is_an_error(eq, toy: Path) -> None:
    arguments = (*QUERY, "fits", *TOY, "--model-name", "hash")
    eq("phenotypes", "index", "build", "--model-name", "hash", *TOY)
    obo(toy, TERMS, "2025-06-01")
    assert eq(*arguments).exit_code == 0, "a release with the same content is the same ontology"
    obo(toy, TERMS.replace("Coughing", "Tussis"), "2025-06-01")
    _assert_error(eq(*arguments), "was built for toy 2025-01-01, and this is toy 2025-06-01", "build it again")
    obo(toy)
    next(Path("indexes").glob("*/vectors.npy")).write_bytes(b"nothing")
    _assert_error(eq(*arguments), "is damaged", "build it again")


@pytest.mark.parametrize(
    ("arguments", "expected_message", "expected_hint"),
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
def test_invalid_arguments_are_errors(
    eq, arguments: tuple[str, ...], expected_message: str, expected_hint: str
) -> None:
    _assert_error(eq(*QUERY, *TOY, *arguments), expected_message, expected_hint)


def test_several_texts_give_one_table(eq, folder: Path) -> None:
    (folder / "findings.csv").write_text("text,ward\nconvulsions,a\nsmall body,b\n")
    (folder / "findings.txt").write_text("convulsions\n\nsmall body\n")
    arguments = (*TOY, "--model-name", "tfidf:", "-k", "2", "--json")
    combined = json.loads(eq(*QUERY, "convulsions", "small body", *arguments).stdout)
    separate = [parse_results(eq(*QUERY, text, *arguments)) for text in ("convulsions", "small body")]
    assert [part["results"] for part in combined["queries"]] == separate
    for file in ("findings.csv", "findings.txt"):
        assert json.loads(eq(*QUERY, "--file", file, *arguments).stdout) == combined
    assert eq(*QUERY, "--file", "findings.txt", *TOY, "--model-name", "tfidf:", "-o", "terms.csv").exit_code == 0
    lines = (folder / "terms.csv").read_text().splitlines()
    assert lines[0].startswith("text,rank,term,label,score")
    assert lines[1].startswith("convulsions,1,T:2,")
    _assert_error(eq(*QUERY, "fits", "--file", "findings.txt", *TOY), "E310", "omit one")
    _assert_error(eq(*QUERY, *TOY), "E200", "seizures")


def test_a_german_text_is_also_scored_by_its_translation(eq) -> None:
    arguments = (*QUERY, "Krampfanfälle", *TOY, "--model-name", "tfidf:", "--json")
    first = json.loads(eq(*arguments).stdout)
    assert first["translation"] == "seizure"
    assert first["results"][0]["id"] == "T:2"
    assert json.loads(eq(*arguments, "--no-translate").stdout)["translation"] is None


@pytest.mark.slow
def test_an_english_model_warns_about_other_languages(eq) -> None:
    pytest.importorskip("wordllama")
    arguments = (*QUERY, "Anfall", *TOY, "--model-name", "wordllama", "--language")
    assert "sum:use+tfidf" in eq(*arguments, "de").stderr
    assert "sum:use+tfidf" not in eq(*arguments, "en").stderr


def test_a_text_without_shared_words_has_no_results(eq) -> None:
    arguments = (*QUERY, "!!!", *TOY, "--model-name", "tfidf:", "--multi-vector")
    assert eq(*arguments).stdout.strip() == "no term shares words or letters with the text"
    assert parse_results(eq(*arguments, "--json")) == []


def test_a_lexical_model_warns_about_other_languages(eq) -> None:
    arguments = (*QUERY, "Anfall", *TOY, "--model-name", "bm25:", "--language")
    assert "bm25 matches only shared words" in eq(*arguments, "de").stderr
    assert "bm25 matches" not in eq(*arguments, "en").stderr


def language_warnings(eq, model: str, language: str) -> str:
    result = eq(*QUERY, "Anfall", *TOY, "--model-name", model, "--language", language)
    assert result.exit_code == 0, result.output
    return " ".join(result.stderr.split())


@pytest.mark.parametrize(
    ("model", "shared_units"), [("tfidf:", "letters"), ("bm25:", "words"), ("sum:tfidf:+bm25:", "letters")]
)
def test_supported_languages_suggest_the_multilingual_model(eq, model: str, shared_units: str) -> None:
    for language in ("de", "DE", "de-AT", "deu", "ja"):
        warnings = language_warnings(eq, model, language)
        assert f"shared {shared_units}" in warnings
        assert f'models for {language}: "use"' in warnings


@pytest.mark.parametrize("model", ["tfidf:", "bm25:", "hash", "sum:hash+tfidf:"])
def test_unsupported_languages_suggest_no_model(eq, model: str) -> None:
    for language in ("fi", "tlh", "eo-XX"):
        warnings = language_warnings(eq, model, language)
        assert f"no installed model supports {language}" in warnings
        assert "sum:use+tfidf" not in warnings
    for language in ("en", "en-GB", "eng"):
        assert "letters" not in language_warnings(eq, model, language)


def test_the_multilingual_model_is_suggested_for_its_languages_only() -> None:
    for kinds in ({"use": "use"}, {"use": "use", "tfidf:": "tfidf"}):
        assert language_notes(kinds, "de") == []
        assert language_notes(kinds, "zh-Hant") == []
        assert "no installed model supports cy" in language_notes(kinds, "cy")[0]
    assert language_notes({"onnx:minilm": "onnx"}, "nl")[0].startswith("minilm supports only English")


def test_unknown_models_have_no_language_notes() -> None:
    assert language_notes({"st:some/model": "st", "tfidf:": "tfidf"}, "cy") == []


def test_the_help_explains_the_language_option(eq) -> None:
    assert "Used only to warn about unsuitable models" in " ".join(eq(*QUERY, "--help").stdout.split())


def test_an_in_memory_store_gives_the_same_terms(eq) -> None:
    eq("phenotypes", "index", "build", "--model-name", "hash", "--multi-vector", *TOY)
    arguments = (*QUERY, "seizure", *TOY, "--model-name", "hash", "--multi-vector", "--json")
    exact, from_store = parse_results(eq(*arguments)), parse_results(eq(*arguments, "--store", "memory"))
    assert [row["id"] for row in exact] == [row["id"] for row in from_store]


def _assert_error(result: Result, expected_message: str, expected_hint: str) -> None:
    assert result.exit_code == 2, result.output
    assert expected_message in result.stderr
    assert expected_hint in result.stderr
