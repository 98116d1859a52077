"""The texts of terms, ordered for fast aggregation."""

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
def test_every_text_that_is_not_blank_occurs_once_with_its_term_and_kind(terms: list) -> None:
    labels, synonyms, definitions = zip(*terms, strict=True)
    texts = component_texts(labels, synonyms, definitions)
    expected = Counter()
    for term_index, (label, term_synonyms, definition) in enumerate(terms):
        expected[label, term_index, ComponentKind.LABEL] += 1
        expected.update((synonym, term_index, ComponentKind.SYNONYM) for synonym in term_synonyms if synonym.strip())
        expected.update([(definition, term_index, ComponentKind.DEFINITION)] if definition.strip() else [])
    assert Counter(zip(texts.texts, texts.term.tolist(), texts.kind.tolist(), strict=True)) == expected


@given(st.lists(term, min_size=1, max_size=12))
def test_each_run_of_synonyms_has_the_first_arranged_terms(terms: list) -> None:
    texts = component_texts(*zip(*terms, strict=True))
    start = texts.terms
    assert texts.term[:start].tolist() == texts.order.tolist()
    for size in texts.synonym_runs:
        assert texts.term[start : start + size].tolist() == texts.order[:size].tolist()
        start += size
    assert start == texts.without_definitions
    assert texts.term[start:].tolist() == texts.order[texts.definition_positions].tolist()


@given(st.lists(term, min_size=2, max_size=12), st.data())
def test_the_subset_of_components_equals_the_components_of_the_selected_terms(terms: list, data: st.DataObject) -> None:
    all_texts = component_texts(*zip(*terms, strict=True))
    selected = data.draw(st.lists(st.sampled_from(range(len(terms))), min_size=1, unique=True))
    subset, columns = all_texts.subset(np.array(selected))
    expected = component_texts(*zip(*(terms[term_index] for term_index in selected), strict=True))
    assert [all_texts.texts[column] for column in columns] == list(subset.texts)
    assert sorted(zip(subset.texts, subset.term, subset.kind, strict=True)) == sorted(
        zip(expected.texts, expected.term, expected.kind, strict=True)
    )
    assert subset.synonym_runs == expected.synonym_runs
    assert subset.term[: subset.terms].tolist() == subset.order.tolist()
    assert subset.term[subset.without_definitions :].tolist() == subset.order[subset.definition_positions].tolist()


def test_one_text_per_term_joins_label_synonyms_and_definition(ontology: Ontology) -> None:
    texts = term_texts(ontology, multi_vector=False)
    assert texts.texts[1] == ("Seizure | Fits, Convulsions, Epileptic attack | Sudden abnormal activity of the brain.")
    assert texts.texts[5] == "Cough | Coughing"
    assert texts.texts[0] == "Abnormality"
    assert not texts.multi_vector
    assert set(texts.kind) == {ComponentKind.WHOLE}


def test_a_changed_text_changes_the_fingerprint(ontology: Ontology, next_release: Ontology) -> None:
    fingerprints = {
        term_texts(release, multi_vector).fingerprint for release in (ontology, next_release) for multi_vector in (0, 1)
    }
    assert len(fingerprints) == 4
    assert term_texts(ontology).fingerprint == term_texts(ontology).fingerprint
