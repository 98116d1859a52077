"""The sets of annotated sentences: size, accuracy and reader."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.config import StatsConfig
from equipoise.domains.phenotypes.assertion.detect import detect_assertions
from equipoise.domains.phenotypes.assertion.evaluation import evaluate_assertions, read_assertion_cases
from equipoise.domains.phenotypes.assertion.rules import PhraseIndex, leading_letters, rules_for
from equipoise.errors import FormatError


@pytest.mark.parametrize("language", ["en", "de"])
def test_the_packaged_cases_are_many_with_a_high_accuracy(language: str) -> None:
    evaluation = evaluate_assertions(language)
    assert evaluation.total.n_cases >= 400
    assert evaluation.total.value >= 0.95
    assert sum(group.n_cases for group in evaluation.by_kind) == evaluation.total.n_cases
    assert sum(group.n_right for group in evaluation.by_assertion) == evaluation.total.n_right
    assert len(evaluation.errors) == evaluation.total.n_cases - evaluation.total.n_right
    assert evaluation.total.interval.low < evaluation.total.value < evaluation.total.interval.high
    assert evaluation.total.interval.confidence_level == 0.95


def test_the_confidence_level_is_that_of_the_config() -> None:
    cases = read_assertion_cases("en")[:40]
    narrow, wide = (
        evaluate_assertions("en", cases, config=StatsConfig(confidence_level=level)) for level in (0.8, 0.99)
    )
    assert narrow.total.interval.width < wide.total.interval.width


@pytest.mark.parametrize(
    ("text", "finding", "expected"),
    [
        ("-hematuria", "hematuria", "negated"),
        ("w/o ascites", "ascites", "negated"),
        ("?seizures", "seizures", "uncertain"),
        ("She cannot hold her head up and feels floppy.", "floppy", "affirmed"),
        ("-hematuria and fever", "fever", "affirmed"),
        ("Asthma since 2010", "Asthma", "affirmed"),
        ("- hypotonia", "hypotonia", "affirmed"),
        ("No rash, no edema, cough since Monday", "cough", "affirmed"),
    ],
)
def test_short_forms_and_scopes(text: str, finding: str, expected: str) -> None:
    start = text.index(finding)
    assert detect_assertions(text, [(start, start + len(finding))]) == [expected]


def test_german_differential_diagnoses_are_uncertain() -> None:
    assert detect_assertions("DD Leberzirrhose", [(3, 16)], "de") == ["uncertain"]


def test_german_exclusions_without_a_preposition_are_negations() -> None:
    assert detect_assertions("Ausschluss Hirntumor.", [(11, 20)], "de") == ["negated"]


def test_a_file_of_cases_is_read_with_its_headings(tmp_path: Path) -> None:
    path = tmp_path / "cases.txt"
    path.write_text("# lists\nNo [fever|n], but [cough|affirmed].\n", encoding="utf-8")
    fever, cough = read_assertion_cases(path)
    assert (fever.finding, fever.expected, fever.kind) == ("fever", "negated", "lists")
    assert (cough.finding, cough.expected) == ("cough", "affirmed")
    assert evaluate_assertions("en", [fever, cough]).total.value == 1.0
    for text in ("nothing", "[fever|x]"):
        path.write_text(text, encoding="utf-8")
        with pytest.raises(FormatError):
            read_assertion_cases(path)


GROUPS = [group.phrases for language in ("en", "de") for group in rules_for(language).cues]
WORDS = ["no", "sign", "of", "fever", "not", "excluded", "mother", "kein", "Verdacht", "auf", "denies", "?", "-", ","]


@cache
def whole_words(phrase: str) -> re.Pattern[str]:
    """The phrase as a regular expression of whole words."""
    body = phrase.replace(" ", r"\s+")
    return re.compile(rf"(?:(?<!\w)|(?=\W))(?:{body})(?:(?!\w)|(?<=\W))", re.IGNORECASE)


@given(st.lists(st.sampled_from(WORDS), max_size=8))
def test_the_index_equals_regular_expressions_at_every_position(words: list[str]) -> None:
    text = " ".join(words)
    for phrases, spans in zip(GROUPS, PhraseIndex(GROUPS).spans(text), strict=True):
        patterns = [whole_words(phrase) for phrase in phrases]
        matches = (pattern.match(text, position) for pattern in patterns for position in range(len(text)))
        assert set(spans) == {match.span() for match in matches if match}


@pytest.mark.parametrize("phrase", [r"\w+ sign", "[^a]b", "(?:a)?", ".b"])
def test_a_phrase_with_an_unknown_start_is_an_error(phrase: str) -> None:
    with pytest.raises(ValueError, match="start"):
        leading_letters(phrase)
