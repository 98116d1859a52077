"""Errors by kind, on a small ontology whose family relations can be read off."""

from __future__ import annotations

import pytest

from equipoise.domains.phenotypes.extraction.scoring import ErrorKind, count_errors
from equipoise.domains.phenotypes.ontology import Ontology


@pytest.mark.parametrize(
    ("found", "kind"),
    [
        (("T:04", "affirmed"), ErrorKind.RIGHT),
        (("T:04", "negated"), ErrorKind.ASSERTION),
        (("T:02", "affirmed"), ErrorKind.PARENT),
        (("T:06", "affirmed"), ErrorKind.CHILD),
        (("T:05", "negated"), ErrorKind.SIBLING),
        (("T:11", "affirmed"), ErrorKind.OTHER),
        (("T:01", "affirmed"), ErrorKind.OTHER),
    ],
)
def test_what_is_found_instead_of_a_small_head(ontology: Ontology, found: tuple[str, str], kind: ErrorKind) -> None:
    seen = count_errors({"d": [("T:04", "affirmed")]}, {"d": [found]}, ontology)
    assert seen.predicted == {each: int(each == kind) for each in ErrorKind}
    assert seen.gold == seen.predicted


def test_a_document_without_an_answer_has_only_lost_gold(ontology: Ontology) -> None:
    seen = count_errors({"d": [("T:04", "affirmed"), ("T:05", "negated")], "e": []}, {}, ontology)
    assert sum(seen.predicted.values()) == 0
    assert seen.gold[ErrorKind.OTHER] == 2


def test_the_nearest_of_several_gold_terms_decides(ontology: Ontology) -> None:
    gold = {"d": [("T:06", "affirmed"), ("T:05", "affirmed")]}
    seen = count_errors(gold, {"d": [("T:04", "affirmed")]}, ontology)
    assert seen.predicted[ErrorKind.PARENT] == 1
    assert (seen.gold[ErrorKind.PARENT], seen.gold[ErrorKind.SIBLING]) == (1, 1)
