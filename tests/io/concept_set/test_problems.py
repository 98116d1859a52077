"""Problems of concept sets are reported with the file and the entry."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from equipoise.checks.base import run_checks
from equipoise.domains.concepts.concept_set import IssueKind
from equipoise.domains.concepts.concept_set_reader import read_concept_set, read_with_issues
from equipoise.errors import DuplicateError, FormatError, InputError

FIRST_PAIR = {"concept_1": "a", "concept_2": "b", "expected_similarity": 0.5}
SECOND_PAIR = {"concept_1": "c", "concept_2": "d", "expected_similarity": 0.1}
CLUSTER = {"theme": "x", "concepts": ["a", "b"]}
SENTENCE = {
    "text": "Kant read Hume.",
    "entities": [{"text": "Kant", "label": "P"}, {"text": "Hume", "label": "Q"}],
}
RELATION = {"subject": "a", "predicate": "p", "object": "b"}


def problem_messages(folder: Path, name: str, content: object) -> list[str]:
    path = folder / f"{name}.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    return [problem.message.removeprefix(f"{path} ") for problem in read_with_issues(path).problems]


CASES = [
    ("pairs", [FIRST_PAIR, {"concept_1": "c", "expected_similarity": 1}], "entry 2 has no concept_2"),
    ("pairs", [FIRST_PAIR, {"concept_1": "c", "concept_2": "d"}], "entry 2 has no expected_similarity"),
    ("pairs", [FIRST_PAIR, SECOND_PAIR | {"concept_1": "  "}], "entry 2 has an empty concept_1"),
    ("pairs", [FIRST_PAIR, SECOND_PAIR | {"concept_2": 3}], "entry 2 has 3 as its concept_2"),
    (
        "pairs",
        [FIRST_PAIR, SECOND_PAIR | {"expected_similarity": 1.2}],
        "entry 2 expects the similarity 1.2, outside 0 to 1",
    ),
    (
        "pairs",
        [FIRST_PAIR, SECOND_PAIR | {"expected_similarity": -0.1}],
        "entry 2 expects the similarity -0.1, outside 0 to 1",
    ),
    ("pairs", [FIRST_PAIR, SECOND_PAIR | {"expected_similarity": True}], "entry 2 has True as its expected_similarity"),
    (
        "pairs",
        [FIRST_PAIR, SECOND_PAIR, {"concept_1": "B", "concept_2": "A", "expected_similarity": 0.6}],
        "entries 1 and 3 are the same pair, 'B' and 'A', and expect the similarities 0.5 and 0.6",
    ),
    ("pairs", [FIRST_PAIR, "c / d"], "entry 2 is 'c / d', not an object"),
    (
        "pairs",
        [FIRST_PAIR, SECOND_PAIR, {"concept_1": "x", "concept_2": "X", "expected_similarity": 0}],
        "entry 3 pairs 'x' with itself and expects the similarity 0",
    ),
    (
        "entities",
        [{"text": "Kant", "entities": []}, {"text": "Hume", "entities": []}],
        "has no types of entities, and at least 2 are needed",
    ),
    ("pairs", [FIRST_PAIR], "has 1 pair, and at least 2 are needed"),
    ("clusters", [CLUSTER], "has 1 cluster, and at least 2 are needed"),
    ("clusters", [CLUSTER, {"theme": "y"}], "entry 2 has no concepts"),
    ("clusters", [CLUSTER, {"theme": "y", "concepts": []}], "entry 2 has no concepts"),
    ("clusters", [CLUSTER, {"concepts": ["c"]}], "entry 2 has no theme and no cluster_id"),
    ("clusters", [CLUSTER, {"theme": "y", "concepts": "c"}], "entry 2 has 'c' as its concepts"),
    ("clusters", [CLUSTER, {"theme": "y", "concepts": ["c", ""]}], "entry 2 has an empty concept"),
    ("clusters", [CLUSTER, {"theme": "x", "concepts": ["c"]}], "entries 1 and 2 are both called x"),
    ("clusters", [CLUSTER, {"theme": "y", "concepts": ["A"]}], "entries 1 and 2 have 'A' in x and in y"),
    ("clusters", [CLUSTER, {"theme": "y", "concepts": ["c", "c"]}], "entry 2 has 'c' in y twice"),
    ("entities", [SENTENCE, {"text": "x"}], "entry 2 has no entities"),
    ("entities", [SENTENCE, {"text": " ", "entities": []}], "entry 2 has an empty text"),
    ("entities", [SENTENCE, {"text": "x", "entities": "x"}], "entry 2 has 'x' as its entities"),
    ("entities", [SENTENCE, {"text": "x", "entities": ["x"]}], "entry 2 has 'x' as entity 1"),
    ("entities", [SENTENCE, {"text": "x", "entities": [{"text": "x"}]}], "entry 2 has no label for entity 1"),
    (
        "entities",
        [SENTENCE, SENTENCE | {"entities": []}],
        "entries 1 and 2 have the same text and different entities",
    ),
    (
        "entities",
        [{"text": "Kant", "entities": [{"text": "Kant", "label": "P"}]}],
        "has 1 type of entity, and at least 2 are needed",
    ),
    (
        "entities",
        [SENTENCE, {"text": "x", "entities": [{"text": "x", "label": "P", "start": 0}]}],
        "entry 2 gives entity 1 one of start and end",
    ),
    (
        "entities",
        [SENTENCE, {"text": "x", "entities": [{"text": "x", "label": "P", "start": "0", "end": 1}]}],
        "entry 2 has '0' as the start of entity 1",
    ),
    (
        "entities",
        [SENTENCE, {"text": "x", "entities": [{"text": "x", "label": "P", "start": 0, "end": 1}] * 2}],
        "entry 2 marks 'x' twice",
    ),
    ("relations", [RELATION], "has 1 relation, and at least 2 are needed"),
    ("relations", [RELATION, RELATION], "has 1 relation, and at least 2 are needed"),
    ("relations", [RELATION, {"subject": "a", "predicate": "p"}], "entry 2 has no object"),
    ("relations", [RELATION, RELATION | {"object": "A"}], "entry 2 relates 'a' to itself"),
    ("concepts", ["a"], "has 1 concept, and at least 2 are needed"),
    ("concepts", ["a", ""], "entry 2 has an empty concept"),
    ("concepts", ["a", 3], "entry 2 has 3 as its concept"),
]


@pytest.mark.parametrize(("name", "content", "message"), CASES, ids=[case[2] for case in CASES])
def test_problems_name_their_entry(tmp_path: Path, name: str, content: object, message: str) -> None:
    assert message in problem_messages(tmp_path, name, content)
    with pytest.raises(InputError) as error:
        read_concept_set(tmp_path / f"{name}.json")
    assert str(tmp_path / f"{name}.json") in error.value.message
    assert error.value.exit_code == 2


@pytest.mark.parametrize(
    ("name", "content", "n_entries"),
    [
        (
            "pairs",
            [
                FIRST_PAIR,
                SECOND_PAIR,
                {**FIRST_PAIR, "concept_1": FIRST_PAIR["concept_2"], "concept_2": FIRST_PAIR["concept_1"]},
                FIRST_PAIR,
            ],
            2,
        ),
        ("relations", [RELATION, RELATION | {"object": "c"}, RELATION], 2),
        ("concepts", ["a", "b", "A", "a"], 2),
        ("entities", [SENTENCE, SENTENCE], 1),
        ("pairs", [FIRST_PAIR, SECOND_PAIR, FIRST_PAIR], 2),
    ],
)
def test_duplicate_entries_are_excluded_and_reported(tmp_path: Path, name: str, content: list, n_entries: int) -> None:
    (tmp_path / f"{name}.json").write_text(json.dumps(content))
    concept_set = read_with_issues(tmp_path / f"{name}.json")
    assert [problem.rule for problem in concept_set.problems] == [IssueKind.DUPLICATE]
    entries = concept_set.sentences if name == "entities" else getattr(concept_set, name)
    assert len(entries) == n_entries
    assert [finding.code for finding in run_checks(concept_set) if finding.code == "EQ136"] == ["EQ136"]
    assert read_concept_set(tmp_path / f"{name}.json") == concept_set


def test_all_problems_are_found_and_the_hint_names_the_command(tmp_path: Path) -> None:
    messages = problem_messages(
        tmp_path, "pairs", [FIRST_PAIR, {"concept_1": "c"}, SECOND_PAIR | {"expected_similarity": 7}]
    )
    assert len(messages) == 3
    with pytest.raises(FormatError, match=r"entry 2.*concept_2") as error:
        read_concept_set(tmp_path / "pairs.json")
    assert error.value.hint.endswith("pairs.json lists it and 2 more problems")


def test_errors_keep_their_class(tmp_path: Path) -> None:
    problem_messages(tmp_path, "pairs", [FIRST_PAIR, SECOND_PAIR, FIRST_PAIR | {"expected_similarity": 0.6}])
    with pytest.raises(DuplicateError, match="entries 1 and 3"):
        read_concept_set(tmp_path / "pairs.json")


def test_misspelled_keys_get_a_suggestion(tmp_path: Path) -> None:
    problem_messages(tmp_path, "pairs", [FIRST_PAIR, {"concept_1": "c", "concept2": "d", "expected_similarity": 0}])
    assert read_with_issues(tmp_path / "pairs.json").problems[0].hint.startswith("did you mean concept2")


def test_invalid_json_is_reported_with_other_problems(tmp_path: Path) -> None:
    (tmp_path / "pairs.json").write_text('[{"concept_1": ]', encoding="utf-8")
    (tmp_path / "concepts.json").write_text('["a"]', encoding="utf-8")
    concept_set = read_with_issues(tmp_path)
    assert [problem.rule for problem in concept_set.problems] == [IssueKind.TOO_FEW, IssueKind.ENTRY]
    assert "is not JSON" in concept_set.problems[1].message


# ---- offsets -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("entity", "message", "hint"),
    [
        (
            {"text": "Hume", "label": "P", "start": 9, "end": 13},
            "entry 1 marks 'Hume' at 9 to 13, where the text is ' Hum'",
            "it is at 10 to 14",
        ),
        (
            {"text": "Hegel", "label": "P"},
            "entry 1 marks 'Hegel', which is not in the text",
            "write it as the text does",
        ),
        (
            {"text": "Kant", "label": "P", "start": -4, "end": 4},
            "entry 1 marks 'Kant' at -4 to 4, where the text is ''",
            "it is at 0 to 4",
        ),
    ],
)
def test_wrong_offsets_are_reported_and_the_entry_is_kept(
    tmp_path: Path, entity: dict[str, object], message: str, hint: str
) -> None:
    content = [SENTENCE | {"entities": [*SENTENCE["entities"], entity]}]
    assert problem_messages(tmp_path, "entities", content) == [message]
    concept_set = read_concept_set(tmp_path / "entities.json")
    assert concept_set.problems[0].hint == hint
    assert len(concept_set.sentences[0].entities) == 3


# ---- any JSON ----------------------------------------------------------------------------------

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                [
                    "concept_1",
                    "concept_2",
                    "score",
                    "concepts",
                    "theme",
                    "text",
                    "label",
                    "entities",
                    "subject",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    content=json_values,
    name=st.sampled_from(["pairs", "clusters", "entities", "relations", "concepts", "other"]),
)
def test_any_json_gives_a_concept_set_or_an_input_error(tmp_path: Path, content: object, name: str) -> None:
    path = tmp_path / f"{name}.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    with_issues = read_with_issues(path)
    try:
        concept_set = read_concept_set(path)
    except InputError:
        assert any(problem.fatal for problem in with_issues.problems)
    else:
        assert concept_set.present
        assert concept_set == with_issues


def test_errors_of_jsonl_files_name_the_line(tmp_path: Path) -> None:
    path = tmp_path / "relations.jsonl"
    path.write_text(f"{json.dumps(RELATION)}\n\n{json.dumps({'subject': 'a', 'object': 'c'})}\n", encoding="utf-8")
    with pytest.raises(FormatError, match="line 3") as error:
        read_concept_set(path)
    assert error.value.excerpt.startswith("3 | ")


def test_present_keys_are_not_suggested_for_missing_keys(tmp_path: Path) -> None:
    path = tmp_path / "pairs.json"
    path.write_text(json.dumps([FIRST_PAIR, {"concept_1": "c", "expected_similarity": 1}]))
    (problem,) = read_with_issues(path).problems
    assert problem.hint == "it has concept_1, expected_similarity"
    path.write_text(json.dumps([FIRST_PAIR, {"concept_1": "c", "concpt_2": "d", "expected_similarity": 1}]))
    assert "concpt_2" in read_with_issues(path).problems[0].hint


def test_empty_lists_raise_format_error(tmp_path: Path) -> None:
    path = tmp_path / "other.json"
    path.write_text("[]")
    with pytest.raises(FormatError, match=r"other\.json"):
        read_concept_set(path)


def test_identical_texts_with_similarity_one_are_a_pair(tmp_path: Path) -> None:
    path = tmp_path / "pairs.json"
    path.write_text(json.dumps([FIRST_PAIR, {"concept_1": "x", "concept_2": "x", "expected_similarity": 1}]))
    assert len(read_concept_set(path).pairs or ()) == 2
