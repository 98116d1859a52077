"""Resolution of ids: live terms, alternative ids, replaced ids, and errors for the rest."""

from __future__ import annotations

import re

import pytest

from equipoise.domains.phenotypes.ontology import Ontology, ontology_from_file
from equipoise.errors import UnknownNameError
from equipoise.io.obo import OboFile, OboTerm


@pytest.fixture
def ontology() -> Ontology:
    """Three live terms, and obsolete ones of every kind."""
    terms = (
        OboTerm("T:0001", "root"),
        OboTerm("T:0002", "cough", parents=("T:0001",), alternatives=("T:0020", "T:0003")),
        OboTerm("T:0003", "fever", parents=("T:0001",)),
        OboTerm("T:0090", "obsolete heat", obsolete=True, replaced_by=("T:0003",)),
        OboTerm("T:0091", "obsolete warmth", obsolete=True, replaced_by=("T:0090",)),
        OboTerm("T:0092", "obsolete bark", obsolete=True, replaced_by=("T:0020",)),
        OboTerm("T:0093", "obsolete both", obsolete=True, replaced_by=("T:0002", "T:0003")),
        OboTerm("T:0094", "obsolete malaise", obsolete=True, consider=("T:0003", "T:7777")),
        OboTerm("T:0095", "obsolete loop", obsolete=True, replaced_by=("T:0095",)),
        OboTerm("T:0096", obsolete=True),
    )
    return ontology_from_file(OboFile("t.obo", title="Tests", version="2026-01-02", terms=terms))


def test_a_live_id_is_resolved_to_itself(ontology):
    assert ontology.resolve("T:0003").how == "live"
    assert ontology.labels[ontology.index_of("T:0003")] == "fever"


def test_an_alternative_id_is_resolved_to_its_term(ontology):
    resolution = ontology.resolve("T:0020")
    assert (ontology.ids[resolution.term], resolution.how, resolution.id) == ("T:0002", "alternative", "T:0020")


@pytest.mark.parametrize(("old", "new"), [("T:0090", "T:0003"), ("T:0091", "T:0003"), ("T:0092", "T:0002")])
def test_a_replaced_id_is_resolved_to_its_live_successor_over_several_steps(ontology, old, new):
    resolution = ontology.resolve(old)
    assert (ontology.ids[resolution.term], resolution.how) == (new, "replaced")


@pytest.mark.parametrize(
    ("old", "hint"),
    [
        ("T:0093", r"consider T:0002 \(cough\) or T:0003 \(fever\)"),
        ("T:0094", r"consider T:0003 \(fever\) or T:7777$"),
        ("T:0095", "consider T:0095$"),
        ("T:0096", "choose another term"),
    ],
)
def test_an_obsolete_id_without_a_unique_successor_is_an_error_with_alternatives(ontology, old, hint):
    with pytest.raises(UnknownNameError, match="2026-01-02") as error_info:
        ontology.resolve(old)
    assert re.search(hint, error_info.value.hint)


@pytest.mark.parametrize(
    ("unknown_id", "hint"),
    [
        ("T:2", "did you mean T:0002 (cough)?"),
        ("t_0002", "did you mean T:0002 (cough)?"),
        ("T:5555", "is it from another release?"),
        ("Cough", "cough is the label of T:0002; give the id"),
        ("coughh", "did you mean cough?"),
        ("zzzzzzzz", "an id looks like T:0001"),
        ("", "an id looks like T:0001"),
    ],
)
def test_an_unknown_id_is_an_error_with_a_suggestion(ontology, unknown_id, hint):
    with pytest.raises(UnknownNameError, match="2026-01-02") as error_info:
        ontology.index_of(unknown_id)
    assert error_info.value.hint == hint


def test_the_way_of_resolution_is_reported(ontology):
    resolved = [ontology.resolve(name) for name in ("T:0001", "T:0020", "T:0090", "T:0091")]
    assert [ontology.ids[resolution.term] for resolution in resolved] == ["T:0001", "T:0002", "T:0003", "T:0003"]
    assert [resolution.how for resolution in resolved] == ["live", "alternative", "replaced", "replaced"]


def test_all_unknown_ids_can_be_listed(ontology):
    assert list(ontology.id_resolver.unknown(["T:0001", "T:5555", "T:0096"])) == ["T:5555", "T:0096"]
