"""Expected ids are resolved to live terms, and every change is reported."""

from __future__ import annotations

import pytest

from equipoise.domains.phenotypes.cases import Case, check_cases, resolve_cases
from equipoise.domains.phenotypes.ontology import Ontology
from equipoise.errors import UnknownNameError


def test_alternative_ids_are_resolved_and_counted(ontology: Ontology, some_cases: tuple[Case, ...]) -> None:
    resolved = resolve_cases(some_cases, ontology)
    assert [ontology.ids[term] for term in resolved.expected[1]] == ["T:07", "T:11"]
    ((case, resolution),) = resolved.moved
    assert (case, resolution.id, resolution.how) == ("b", "T:99", "alternative")
    assert resolved.notes == ("1 expected id was resolved to the current id of the term, such as T:99 to T:07 in b",)


def test_two_ids_of_one_term_count_once(ontology: Ontology) -> None:
    resolved = resolve_cases(check_cases([{"text": "long", "hpo_ids": ["T:07", "T:99"]}]), ontology)
    assert resolved.expected[0].tolist() == [ontology.index_of("T:07")]
    assert resolved.merged == 1


def test_unresolvable_ids_are_errors_with_alternatives(ontology: Ontology) -> None:
    cases = check_cases([{"text": "a", "hpo_ids": ["T:98"]}, {"text": "b", "hpo_ids": ["T:0777", "T:04"]}])
    with pytest.raises(UnknownNameError) as error_info:
        resolve_cases(cases, ontology)
    assert error_info.value.message == "2 expected ids have no current term in signs 2026-01-01"
    assert "case c1: T:98 (Odd) is obsolete" in error_info.value.excerpt
    assert "consider T:12 (Round face)" in error_info.value.excerpt
    assert "case c2: signs 2026-01-01 has no term 'T:0777'" in error_info.value.excerpt


def test_all_unknown_ids_are_listed(ontology: Ontology) -> None:
    names = [f"T:{number}" for number in range(700, 712)]
    with pytest.raises(UnknownNameError) as error_info:
        resolve_cases(check_cases([{"text": "a", "hpo_ids": names}]), ontology)
    assert all(name in error_info.value.excerpt for name in names)


def test_unknown_ids_can_be_left_out(ontology: Ontology) -> None:
    cases = check_cases([{"text": "a", "hpo_ids": ["T:98"]}, {"text": "b", "hpo_ids": ["T:98", "T:04"]}])
    resolved = resolve_cases(cases, ontology, skip_unknown=True)
    assert [len(terms) for terms in resolved.expected] == [0, 1]
    assert resolved.unknown == ("T:98",)
    assert resolved.notes == (
        "1 expected id is not in the ontology and was ignored: T:98",
        "1 case without an expected term cannot be scored",
    )


def test_only_properties_with_few_values_are_slices(ontology: Ontology) -> None:
    rows = [
        {"text": f"text {n}", "hpo_ids": ["T:04"], "language": "en", "kind": n % 2, "description": f"d{n}"}
        for n in range(8)
    ]
    resolved = resolve_cases(check_cases(rows), ontology)
    assert set(resolved.properties["c1"]) == {"kind"}
