"""Expected ids become live terms, and nothing about it is silent."""

from __future__ import annotations

import pytest

from equipoise.domains.phenotypes.cases import Case, check_cases, resolve_cases
from equipoise.domains.phenotypes.ontology import Ontology
from equipoise.errors import UnknownNameError


def test_alternative_ids_are_followed_and_counted(ontology: Ontology, some_cases: tuple[Case, ...]) -> None:
    truth = resolve_cases(some_cases, ontology)
    assert [ontology.ids[term] for term in truth.expected[1]] == ["T:07", "T:11"]
    ((case, moved),) = truth.moved
    assert (case, moved.id, moved.how) == ("b", "T:99", "alternative")
    assert truth.notes == (
        "1 expected id is alternative or replaced, and resolved to the live term, such as T:99 to T:07 in b",
    )


def test_two_ids_of_one_term_count_once(ontology: Ontology) -> None:
    truth = resolve_cases(check_cases([{"text": "long", "hpo_ids": ["T:07", "T:99"]}]), ontology)
    assert truth.expected[0].tolist() == [ontology.index_of("T:07")]
    assert truth.merged == 1


def test_ids_that_lead_nowhere_are_all_named_with_what_to_use(ontology: Ontology) -> None:
    wrong = check_cases([{"text": "a", "hpo_ids": ["T:98"]}, {"text": "b", "hpo_ids": ["T:0777", "T:04"]}])
    with pytest.raises(UnknownNameError) as caught:
        resolve_cases(wrong, ontology)
    assert caught.value.message == "2 expected ids have no live term in signs 2026-01-01"
    assert "case c1: T:98 (Odd) is obsolete" in caught.value.excerpt
    assert "consider T:12 (Round face)" in caught.value.excerpt
    assert "case c2: signs 2026-01-01 has no term 'T:0777'" in caught.value.excerpt


def test_of_many_unknown_ids_all_are_named(ontology: Ontology) -> None:
    names = [f"T:{number}" for number in range(700, 712)]
    with pytest.raises(UnknownNameError) as caught:
        resolve_cases(check_cases([{"text": "a", "hpo_ids": names}]), ontology)
    assert all(name in caught.value.excerpt for name in names)


def test_unknown_ids_can_be_left_out_by_name(ontology: Ontology) -> None:
    given = check_cases([{"text": "a", "hpo_ids": ["T:98"]}, {"text": "b", "hpo_ids": ["T:98", "T:04"]}])
    truth = resolve_cases(given, ontology, skip_unknown=True)
    assert [len(terms) for terms in truth.expected] == [0, 1]
    assert truth.unknown == ("T:98",)
    assert truth.notes == (
        "1 expected id is left out without a live term: T:98",
        "1 case without an expected term cannot be scored",
    )


def test_only_properties_that_tell_parts_apart_are_slices(ontology: Ontology) -> None:
    rows = [
        {"text": f"text {n}", "hpo_ids": ["T:04"], "language": "en", "kind": n % 2, "description": f"d{n}"}
        for n in range(8)
    ]
    truth = resolve_cases(check_cases(rows), ontology)
    assert set(truth.properties["c1"]) == {"kind"}
