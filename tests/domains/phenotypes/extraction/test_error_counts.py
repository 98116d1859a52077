"""Errors by kind, on a small ontology with known parents, children and siblings."""

from __future__ import annotations

import pytest

from equipoise.domains.phenotypes.extraction.scoring import ErrorKind, count_errors
from equipoise.domains.phenotypes.ontology import Ontology


@pytest.mark.parametrize(
    ("predicted_term", "kind"),
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
def test_errors_are_classified_by_relation_and_assertion(
    ontology: Ontology, predicted_term: tuple[str, str], kind: ErrorKind
) -> None:
    counts = count_errors({"d": [("T:04", "affirmed")]}, {"d": [predicted_term]}, ontology)
    assert counts.predicted == {error_kind: int(error_kind == kind) for error_kind in ErrorKind}
    assert counts.gold == counts.predicted


def test_a_document_without_predictions_has_only_missed_gold(ontology: Ontology) -> None:
    counts = count_errors({"d": [("T:04", "affirmed"), ("T:05", "negated")], "e": []}, {}, ontology)
    assert sum(counts.predicted.values()) == 0
    assert counts.gold[ErrorKind.OTHER] == 2


def test_the_nearest_of_several_gold_terms_determines_the_kind(ontology: Ontology) -> None:
    gold = {"d": [("T:06", "affirmed"), ("T:05", "affirmed")]}
    counts = count_errors(gold, {"d": [("T:04", "affirmed")]}, ontology)
    assert counts.predicted[ErrorKind.PARENT] == 1
    assert (counts.gold[ErrorKind.PARENT], counts.gold[ErrorKind.SIBLING]) == (1, 1)
