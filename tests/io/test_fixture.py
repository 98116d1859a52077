"""Questions with answers, from Python and from files."""

import gzip
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.domains.fair.questions import (
    CATEGORIES,
    DIFFICULTIES,
    UNSPECIFIED,
    QuestionAnswer,
    check_questions,
    read_questions,
)
from equipoise.errors import DuplicateError, FormatError, InputError

PAIR = {"question": "When?", "answer": "1995"}


@pytest.fixture
def write_file(tmp_path):
    def write(name: str, content):
        path = tmp_path / name
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return path

    return write


def test_optional_fields_have_defaults():
    assert check_questions([PAIR]) == (QuestionAnswer("q1", "When?", "1995", UNSPECIFIED, UNSPECIFIED),)
    assert check_questions([PAIR])[0].kinds == {}
    assert "exact" in CATEGORIES
    assert "medium" in DIFFICULTIES


def test_ids_are_given_or_numbered():
    questions = check_questions([PAIR, {**PAIR, "id": "b"}, {**PAIR, "id": 7}, {**PAIR, "id": None}])
    assert [question.id for question in questions] == ["q1", "b", "7", "q4"]


def test_other_keys_and_null_kinds_are_ignored():
    pair = {**PAIR, "source": "p. 3", "category": None, "difficulty": "brutal"}
    assert check_questions([pair])[0] == QuestionAnswer("q1", "When?", "1995", difficulty="brutal")


def test_questions_pass_through_unchanged():
    questions = check_questions([PAIR, {**PAIR, "id": "x", "category": "negation"}])
    assert check_questions(questions) == questions


@pytest.mark.parametrize("content", [[PAIR], {"questions": [PAIR]}, {"qa_pairs": [PAIR], "title": "t"}])
def test_json_is_a_list_or_an_object_with_a_list(write_file, content):
    assert read_questions(write_file("f.json", content)) == check_questions([PAIR])


def test_jsonl_has_one_object_per_line(write_file):
    assert (
        read_questions(write_file("f.jsonl", f"{json.dumps(PAIR)}\n\n{json.dumps({**PAIR, 'id': 5})}\n"))[1].id == "5"
    )


def test_gzipped_files_are_read(tmp_path):
    path = tmp_path / "f.json.gz"
    path.write_bytes(gzip.compress(json.dumps([PAIR]).encode()))
    assert read_questions(path) == check_questions([PAIR])


@pytest.mark.parametrize(
    ("pair", "message", "hint"),
    [
        ({"question": "Why?", "anwser": "so"}, "has no key 'answer'", "did you mean anwser"),
        ({"answer": "so"}, "has no key 'question'", "it has: answer"),
        ({}, "has no key 'answer'", "it is empty"),
        ({**PAIR, "answer": 1995}, "has int instead of text as its answer", '"1995"'),
        ({**PAIR, "answer": None}, "has null instead of text as its answer", "in quotes"),
        ({**PAIR, "answer": []}, "has an empty list as its answer", "at least one text"),
        ({**PAIR, "answer": ["a", 3]}, "has int instead of text as its answer", '"3"'),
        ({**PAIR, "question": " \n"}, "has an empty question", "remove the question"),
        ({**PAIR, "answer": ""}, "has an empty answer", "remove the question"),
        ({**PAIR, "category": 3}, "has int instead of text as its category", '"3"'),
        ({**PAIR, "id": ""}, "has the id ''", "integer"),
        ({**PAIR, "id": True}, "has the id True", "integer"),
        ({**PAIR, "id": 1.5}, "has the id 1.5", "integer"),
        ("why?", "is a str, not an object", "write {"),
    ],
)
def test_invalid_questions_raise_format_error_with_their_position(write_file, pair, message, hint):
    with pytest.raises(FormatError, match=f"question 2 {message}") as list_error:
        check_questions([PAIR, pair])
    with pytest.raises(FormatError, match=rf"f\.json question 2 {message}"):
        read_questions(write_file("f.json", [PAIR, pair]))
    with pytest.raises(FormatError, match=rf"f\.jsonl line 3 {message}") as file_error:
        read_questions(write_file("f.jsonl", f"{json.dumps(PAIR)}\n\n{json.dumps(pair)}"))
    assert hint in list_error.value.hint
    assert file_error.value.excerpt.startswith("3 | ")


def test_duplicate_ids_name_both_positions(write_file):
    pairs = [{**PAIR, "id": 1}, PAIR, {**PAIR, "id": "1"}]
    with pytest.raises(DuplicateError, match=r"questions 1 and 3.*id 1"):
        check_questions(pairs)
    with pytest.raises(DuplicateError, match=r"f\.jsonl lines 1 and 3.*id 1"):
        read_questions(write_file("f.jsonl", "\n".join(map(json.dumps, pairs))))


def test_default_ids_equal_to_given_ids_raise_duplicate_error():
    with pytest.raises(DuplicateError, match="id q2"):
        check_questions([{**PAIR, "id": "q2"}, PAIR])


@pytest.mark.parametrize("content", [[], {"questions": []}])
def test_empty_lists_raise_input_error(write_file, content):
    with pytest.raises(InputError, match=r"f\.json"):
        read_questions(write_file("f.json", content))
    with pytest.raises(InputError):
        check_questions([])


@pytest.mark.parametrize(
    ("content", "fragment"),
    [
        ({"items": [PAIR]}, "the list of questions was not found"),
        ({"questions": [PAIR], "qa_pairs": [PAIR]}, "the list of questions was not found"),
        ({}, "no keys"),
        ("3", "without a list of questions"),
        ({"questions": {"q1": PAIR}}, "without a list of questions"),
        ("[{]", "line 1 is not JSON"),
        ("", "is empty"),
    ],
)
def test_other_json_raises_input_error(write_file, content, fragment):
    with pytest.raises(InputError, match=fragment):
        read_questions(write_file("f.json", content))


def test_other_suffixes_raise_format_error(write_file):
    with pytest.raises(FormatError, match=r"\.json.*\.jsonl"):
        read_questions(write_file("f.csv", "question,answer"))


@pytest.mark.parametrize("value", ["text", PAIR, 3, None])
def test_other_types_raise_input_error(value):
    with pytest.raises(InputError):
        check_questions(value)


TEXT = st.text(st.characters(exclude_categories=("Cs",)), min_size=1).filter(lambda text: text.strip())


@given(st.lists(st.fixed_dictionaries({"question": TEXT, "answer": TEXT}, optional={"category": TEXT}), min_size=1))
def test_json_and_jsonl_and_python_give_the_same_questions(tmp_path_factory, pairs):
    folder = tmp_path_factory.mktemp("fixture")
    (folder / "f.json").write_text(json.dumps(pairs))
    (folder / "f.jsonl").write_text("\n".join(map(json.dumps, pairs)))
    assert read_questions(folder / "f.json") == read_questions(folder / "f.jsonl") == check_questions(pairs)
