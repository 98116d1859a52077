"""The texts of terms, in the order that makes aggregation cheap."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from equipoise.domains.phenotypes.index.files import (
    ComponentKind,
    component_texts,
    term_texts,
)
from equipoise.domains.phenotypes.ontology import Ontology

word = st.text("abcdef ", max_size=6)
term = st.tuples(st.text("abc", min_size=1, max_size=4), st.lists(word, max_size=5), word)


@given(st.lists(term, min_size=1, max_size=12))
def test_every_text_that_is_not_blank_is_there_once_under_its_term_and_kind(terms: list) -> None:
    labels, synonyms, definitions = zip(*terms, strict=True)
    found = component_texts(labels, synonyms, definitions)
    expected = Counter()
    for place, (label, some, definition) in enumerate(terms):
        expected[label, place, ComponentKind.LABEL] += 1
        expected.update((each, place, ComponentKind.SYNONYM) for each in some if each.strip())
        expected.update([(definition, place, ComponentKind.DEFINITION)] if definition.strip() else [])
    assert Counter(zip(found.texts, found.term.tolist(), found.kind.tolist(), strict=True)) == expected


@given(st.lists(term, min_size=1, max_size=12))
def test_each_run_of_synonyms_belongs_to_the_first_arranged_terms(terms: list) -> None:
    found = component_texts(*zip(*terms, strict=True))
    at = found.terms
    assert found.term[:at].tolist() == found.order.tolist()
    for size in found.synonym_runs:
        assert found.term[at : at + size].tolist() == found.order[:size].tolist()
        at += size
    assert at == found.without_definitions
    assert found.term[at:].tolist() == found.order[found.definition_positions].tolist()


@given(st.lists(term, min_size=2, max_size=12), st.data())
def test_the_components_of_some_terms_are_those_of_an_ontology_of_these_terms(terms: list, data: st.DataObject) -> None:
    whole = component_texts(*zip(*terms, strict=True))
    chosen = data.draw(st.lists(st.sampled_from(range(len(terms))), min_size=1, unique=True))
    some, columns = whole.subset(np.array(chosen))
    fresh = component_texts(*zip(*(terms[place] for place in chosen), strict=True))
    assert [whole.texts[column] for column in columns] == list(some.texts)
    assert sorted(zip(some.texts, some.term, some.kind, strict=True)) == sorted(
        zip(fresh.texts, fresh.term, fresh.kind, strict=True)
    )
    assert some.synonym_runs == fresh.synonym_runs
    assert some.term[: some.terms].tolist() == some.order.tolist()
    assert some.term[some.without_definitions :].tolist() == some.order[some.definition_positions].tolist()


def test_one_text_a_term_joins_label_synonyms_and_definition(ontology: Ontology) -> None:
    found = term_texts(ontology, multi_vector=False)
    assert found.texts[1] == ("Seizure | Fits, Convulsions, Epileptic attack | Sudden abnormal activity of the brain.")
    assert found.texts[5] == "Cough | Coughing"
    assert found.texts[0] == "Abnormality"
    assert not found.multi_vector
    assert set(found.kind) == {ComponentKind.WHOLE}


def test_a_changed_text_changes_the_fingerprint(ontology: Ontology, next_release: Ontology) -> None:
    prints = {
        term_texts(each, multi_vector).fingerprint for each in (ontology, next_release) for multi_vector in (0, 1)
    }
    assert len(prints) == 4
    assert term_texts(ontology).fingerprint == term_texts(ontology).fingerprint
