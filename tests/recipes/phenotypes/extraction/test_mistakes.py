"""Errors by kind, on a small ontology whose family relations can be read off."""

from __future__ import annotations

import pytest

from equipoise.ontology.ontology import Ontology
from equipoise.recipes.phenotypes.extraction.mistakes import Kind, mistakes


@pytest.mark.parametrize(
    ("found", "kind"),
    [
        (("T:04", "affirmed"), Kind.RIGHT),
        (("T:04", "negated"), Kind.ASSERTION),
        (("T:02", "affirmed"), Kind.PARENT),
        (("T:06", "affirmed"), Kind.CHILD),
        (("T:05", "negated"), Kind.SIBLING),
        (("T:11", "affirmed"), Kind.OTHER),
        (("T:01", "affirmed"), Kind.OTHER),
    ],
)
def test_what_is_found_instead_of_a_small_head(
    ontology: Ontology, found: tuple[str, str], kind: Kind
) -> None:
    seen = mistakes({"d": [("T:04", "affirmed")]}, {"d": [found]}, ontology)
    assert seen.predicted == {each: int(each == kind) for each in Kind}
    assert seen.gold == seen.predicted


def test_a_document_without_an_answer_has_only_lost_gold(ontology: Ontology) -> None:
    seen = mistakes({"d": [("T:04", "affirmed"), ("T:05", "negated")], "e": []}, {}, ontology)
    assert sum(seen.predicted.values()) == 0
    assert seen.gold[Kind.OTHER] == 2


def test_the_nearest_of_several_gold_terms_decides(ontology: Ontology) -> None:
    gold = {"d": [("T:06", "affirmed"), ("T:05", "affirmed")]}
    seen = mistakes(gold, {"d": [("T:04", "affirmed")]}, ontology)
    assert seen.predicted[Kind.PARENT] == 1
    assert (seen.gold[Kind.PARENT], seen.gold[Kind.SIBLING]) == (1, 1)
