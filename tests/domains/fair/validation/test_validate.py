"""The validation of a question set: issues, findings, thresholds and summary."""

from __future__ import annotations

import json
import re

import pytest

from equipoise.domains.fair.answer_verification import ISSUE_MESSAGES
from equipoise.domains.fair.config import FairConfig
from equipoise.domains.fair.experiment import plan_comparison
from equipoise.domains.fair.questions import QuestionAnswer
from equipoise.domains.fair.validation import ValidationResult, validate_fixture
from equipoise.errors import EquipoiseError, InputError, ParameterError, UnknownNameError
from equipoise.io.documents import TextDocument
from equipoise.types import Severity

TREE_NAMES = ["alder", "birch", "cedar", "damson", "elder", "fir", "gorse", "hazel", "ivy", "juniper"]


def fixture(n: int = 80, multihop: int = 20, hard: int = 32) -> tuple[list[dict[str, str]], str]:
    """A valid question set and its document: every answer occurs once, and all questions differ."""
    pairs, lines = [], []
    for index in range(n):
        name = f"{TREE_NAMES[index % 10]} {TREE_NAMES[index // 10 % 10]} {index}"
        answer = f"{index * 37 + 1000} barrels"
        filler_text = " ".join(f"{TREE_NAMES[(index + step) % 10]}berries ripen slowly" for step in range(20))
        lines.append(f"The orchard of {name} yielded {answer} that year. {filler_text}.")
        pairs.append(
            {
                "question": f"How much did {name} yield?",
                "answer": answer,
                "category": "multi_hop" if index < multihop else "exact",
                "difficulty": "hard" if index < hard else "easy",
            }
        )
    return pairs, "\n".join(lines)


def check(pairs: list[dict[str, str]], document: object = None, **options: object) -> ValidationResult:
    return validate_fixture(pairs, document, **{"tokenizer": "words", "chunk_size": 64, "overlap": 10, **options})  # type: ignore[arg-type]


def check_one(answer: str, document: str, question: str = "What is asked here?", **options: object) -> ValidationResult:
    return check([{"question": question, "answer": answer}], document, **options)


def issue_types(result: ValidationResult) -> list[str]:
    return [issue.issue_type for issue in result.answer_issues]


# ---- a valid question set, and embedding-eval as the reference ---------------------------------


def test_a_valid_question_set_has_no_issues_and_no_findings() -> None:
    result = check(*fixture())
    assert result.is_valid
    assert (result.answers_found, result.answers_missing, result.duplicates_found) == (80, 0, 0)
    assert result.answer_issues == result.near_duplicates == result.unknown_names == result.findings == ()


SHARED_FIELDS = (
    "total_questions", "answers_found", "answers_missing", "duplicates_found", "category_counts",
    "difficulty_counts", "category_percentages", "difficulty_percentages", "multihop_percentage",
    "hard_percentage", "meets_min_questions", "meets_recommended_questions", "meets_min_multihop",
    "meets_recommended_multihop", "meets_min_hard", "meets_recommended_hard", "is_valid",
)  # fmt: skip


@pytest.mark.engines("embedding_eval")
@pytest.mark.parametrize(
    ("n", "multihop", "hard"),
    [(80, 20, 32), (80, 16, 32), (60, 6, 20), (49, 20, 20), (60, 5, 30), (60, 30, 17)],
)
def test_the_shared_fields_equal_those_of_embedding_eval(n: int, multihop: int, hard: int) -> None:
    package = pytest.importorskip("embedding_eval")
    pairs, document = fixture(n, multihop, hard)
    pairs.append(pairs[0])
    for question_pairs in (pairs, pairs[:-1]):
        result, expected = check(question_pairs, document), package.validate_fixture(question_pairs, document)
        for name in SHARED_FIELDS:
            assert getattr(result, name) == pytest.approx(getattr(expected, name), rel=1e-12), name
        assert list(result.duplicate_questions) == expected.duplicate_questions
        assert list(result.answer_issues) == expected.answer_issues == []


def test_given_thresholds_are_used() -> None:
    pairs, document = fixture(30, 3, 6)
    assert not check(pairs, document).is_valid
    result = check(pairs, document, min_questions=30, min_multihop_pct=10, min_hard_pct=20)
    assert result.is_valid
    assert "Questions: 30 (minimum 30, recommended 80)" in result.summary
    assert "Hard: 20 % (minimum 20 %, recommended 40 %)" in result.summary
    assert not check(pairs, document, min_questions=31, min_multihop_pct=10, min_hard_pct=20).is_valid
    assert not check(pairs, document, min_questions=30, min_multihop_pct=10.1, min_hard_pct=20).is_valid
    assert not check(pairs, document, min_questions=30, min_multihop_pct=10, min_hard_pct=20.5).is_valid


# ---- without a document ------------------------------------------------------------------------


def test_without_a_document_answers_are_not_verified() -> None:
    result = check(fixture()[0])
    assert result.is_valid
    assert not result.verified
    assert result.answers_found is None
    assert result.answers_missing is None
    assert result.summary.count("not verified: no document given") == 2
    assert "verbatim" not in result.summary
    assert "Answers verified" not in result.summary


# ---- answers -----------------------------------------------------------------------------------


def test_an_answer_across_a_line_end_is_found() -> None:
    result = check_one("third Sunday of October", "It is held on the third\n  Sunday\tof October.")
    assert (result.answers_found, issue_types(result)) == (1, [])


def test_different_capitals_match_with_a_tip() -> None:
    result = check_one("third sunday", "It is held on the Third Sunday.")
    (issue,) = result.answer_issues
    assert result.answers_found == 1
    assert (issue.issue_type, issue.severity) == ("case_mismatch", Severity.TIP)
    assert issue.suggestion == 'written as "Third Sunday"'


def test_different_quotes_match_with_a_tip() -> None:
    result = check_one("the mill's owner", "Ada is the mill’s owner.")
    (issue,) = result.answer_issues
    assert result.answers_found == 1
    assert (issue.issue_type, issue.severity) == ("spelling_mismatch", Severity.TIP)


def test_an_answer_inside_another_word_is_missing() -> None:
    result = check_one("65%", "The margin was 165% in that year.")
    (issue,) = result.answer_issues
    assert (result.answers_missing, issue.issue_type, issue.severity) == (1, "inside_word", Severity.ISSUE)
    assert issue.suggestion == 'found only inside "165%"'


def test_a_near_miss_gets_the_closest_passage() -> None:
    result = check_one("twelve thousand barels", "They sold twelve thousand barrels.")
    (issue,) = result.answer_issues
    assert issue.issue_type == "partial_match"
    assert issue.suggestion == 'closest passage (0.98): "twelve thousand barrels"'
    assert issue.question_id == "q1"


def test_separated_words_of_an_answer_are_scattered() -> None:
    assert issue_types(
        check_one("barrels sold early", "Early in May they sold all the pears, and the barrels too.")
    ) == ["words_scattered"]


def test_an_answer_with_other_words_is_missing_without_a_passage() -> None:
    (issue,) = check_one("quantum chromodynamics", "They sold twelve thousand barrels.").answer_issues
    assert (issue.issue_type, issue.suggestion) == ("not_found", None)


def test_occurrences_and_chunks_of_an_ambiguous_answer_are_counted() -> None:
    words = ["filler"] * 300
    for position in (5, 100, 101, 250):
        words[position] = "Paris"
    result = check_one("Paris", " ".join(words), chunk_size=50, overlap=0)
    assert result.verification is not None
    (occurrences,) = result.verification.answers
    assert (occurrences.places, occurrences.chunks, result.verification.chunks) == (4, 3, 6)
    (issue,) = result.answer_issues
    assert (issue.issue_type, issue.suggestion) == ("ambiguous", "4 occurrences, in 3 of 6 chunks")
    assert "EQ103" in {finding.code for finding in result.findings}


def test_occurrences_inside_other_words_are_not_counted() -> None:
    result = check_one("cat", "The cat saw a category and a concatenation; the Cat. Cat!")
    assert result.verification is not None
    assert result.verification.answers[0].places == 3


def test_an_answer_split_by_every_boundary_is_an_issue() -> None:
    words = [f"w{number}" for number in range(40)]
    answer = "w8 w9 w10 w11"
    result = check_one(answer, " ".join(words), chunk_size=10, overlap=0)
    assert (result.answers_found, issue_types(result)) == (1, ["cut_by_chunks"])
    assert any(finding.code == "EQ102" and "1 of 1 answer is split" in finding.message for finding in result.findings)
    assert issue_types(check_one(answer, " ".join(words), chunk_size=10, overlap=5)) == []


def test_a_question_that_contains_its_answer_is_an_issue() -> None:
    document = "Ada Lovelace wrote the program."
    assert issue_types(check_one("Ada Lovelace", document, "What did Ada Lovelace write?")) == ["in_question"]
    assert issue_types(check_one("Ada", document, "What is an adagio?")) == []


def test_every_type_of_issue_has_a_message() -> None:
    document = "Third Sunday. 165%. The mill’s owner sold pears early; early pears. " + "pad " * 90
    pairs = [
        {"question": f"Question {index} on {answer[:3]}?", "answer": answer}
        for index, answer in enumerate(["third sunday", "65%", "the mill's owner", "pears sold", "moon landing"])
    ]
    pairs.append({"question": "pears?", "answer": "pears"})
    result = check(pairs, document)
    assert set(issue_types(result)) <= set(ISSUE_MESSAGES)
    for issue in result.answer_issues:
        assert ISSUE_MESSAGES[issue.issue_type] in result.summary


# ---- documents ---------------------------------------------------------------------------------


def test_several_documents_are_chunked_separately() -> None:
    documents = [TextDocument("a.txt", "Ada wrote it."), TextDocument("b.txt", "In 1843 it was printed.")]
    result = check([{"question": "When?", "answer": "1843"}, {"question": "Who?", "answer": "it. In"}], documents)
    assert result.verification is not None
    assert result.verification.chunks == 2
    assert result.answers_missing == 1


def test_a_document_of_one_chunk_is_too_short() -> None:
    assert "EQ108" in {finding.code for finding in check_one("Ada", "Ada wrote it.").findings}
    assert "EQ108" not in {finding.code for finding in check(*fixture(), top_k=3).findings}


@pytest.mark.parametrize("document", ["", " \n\t", [], [TextDocument("a", " ")]])
def test_an_empty_document_is_an_error(document: object) -> None:
    with pytest.raises(InputError):
        check([{"question": "Who?", "answer": "Ada"}], document)


@pytest.mark.parametrize("document", [b"bytes", 7, [b"bytes"], [None]])
def test_a_document_that_is_not_text_is_an_error(document: object) -> None:
    with pytest.raises(InputError):
        check([{"question": "Who?", "answer": "Ada"}], document)


# ---- names, sizes, parameters ------------------------------------------------------------------


def test_unknown_names_get_a_suggestion_and_are_counted() -> None:
    pairs = [
        {"question": f"Question {index}?", "answer": "x", "category": name, "difficulty": level}
        for index, (name, level) in enumerate([("multihop", "easy"), ("multihop", "hrad"), ("exact", "hard")])
    ]
    result = check(pairs)
    assert [(unknown.kind, unknown.name, unknown.count) for unknown in result.unknown_names] == [
        ("category", "multihop", 2),
        ("difficulty", "hrad", 1),
    ]
    assert result.unknown_names[0].suggestion == "did you mean multi_hop?"
    assert 'difficulty "hrad" of 1 question: did you mean hard?' in result.summary
    assert result.difficulty_percentages["hard"] == pytest.approx(100 / 3)


def test_missing_categories_are_counted_as_not_given() -> None:
    result = check([{"question": f"Question {index}?", "answer": f"x{index}"} for index in range(3)])
    assert result.category_counts == result.difficulty_counts == {"not given": 3}
    assert result.unknown_names == ()
    assert "exact" not in result.summary
    assert result.meets_min_multihop
    assert result.meets_min_hard
    assert "Multi-hop" not in result.summary
    assert "✗ Status: too few to compare models (with 3 questions no difference can be detected)" in result.summary
    twenty = check([{"question": f"Question {index}?", "answer": f"x{index}"} for index in range(20)])
    assert "~ Status: too few for reliable results (fewer questions than the minimum" in twenty.summary


def test_repeated_questions_and_questions_with_their_answer_are_findings() -> None:
    repeated = [{"question": "Who was Ada?", "answer": "Ada"}, {"question": "who was  Ada?", "answer": "Ada"}]
    assert {"EQ111", "EQ112"} <= {finding.code for finding in check(repeated).findings}
    pairs, document = fixture(60)
    assert not {"EQ111", "EQ112"} & {finding.code for finding in check(pairs, document).findings}


def test_the_sample_size_table_has_the_row_of_this_question_set() -> None:
    result = check(*fixture(60))
    assert [row.n for row in result.resolutions] == [50, 60, 80, 100, 200, 400]
    assert result.detectable == result.resolutions[1].detectable
    rows = re.findall(r"^ *(\d+) +± ([\d.]+) points +([\d.]+) points(.*)$", result.summary, re.MULTILINE)
    assert [(n, half_width, detectable) for n, half_width, detectable, _ in rows[:3]] == [
        ("50", "11", "23"),
        ("60", "10", "21"),
        ("80", "8.7", "18"),
    ]
    assert [n for n, _, _, note in rows if "this question set" in note] == ["60"]


@pytest.mark.parametrize(
    "options",
    [
        {"min_questions": -1},
        {"min_questions": 1.5},
        {"min_hard_pct": 101},
        {"min_multihop_pct": float("nan")},
        {"recommended_hard_pct": "40"},
        {"top_k": 0},
        {"chunk_size": 0},
        {"overlap": 64},
    ],
)
def test_parameters_outside_their_range_are_errors(options: dict[str, object]) -> None:
    with pytest.raises(ParameterError):
        check(*fixture(2), **options)


def test_an_unknown_matcher_is_an_error() -> None:
    with pytest.raises(UnknownNameError):
        check(*fixture(2), matcher="wrods")


@pytest.mark.parametrize(
    "pairs",
    [
        [],
        [{"question": "Who?"}],
        [{"question": "Who?", "answer": " "}],
        [{"question": "Who?", "answer": 7}],
        ["Who?"],
    ],
)
def test_malformed_pairs_are_errors(pairs: list[object]) -> None:
    with pytest.raises(EquipoiseError):
        check(pairs)  # type: ignore[arg-type]


# ---- export ------------------------------------------------------------------------------------


def test_exported_values_are_json_with_every_shared_field() -> None:
    pairs, document = fixture(20)
    pairs[3]["answer"] = "no such thing"
    content = json.loads(json.dumps(check(pairs, document).to_dict()))
    assert {*SHARED_FIELDS, "answer_issues", "duplicate_questions", "verified", "resolutions", "findings"} <= set(
        content
    )
    assert content["answers_missing"] == 1
    assert {"question", "answer", "issue_type", "suggestion"} <= set(content["answer_issues"][0])
    assert content["verification"]["chunking"] == "fixed(chunk_size=64, overlap=10, tokenizer=words)"


def test_the_summary_lists_the_reasons_of_an_invalid_question_set() -> None:
    pairs, document = fixture(20, 0, 0)
    pairs[3]["answer"] = "no such thing"
    pairs[5]["question"] = pairs[4]["question"]
    result = check(pairs, document)
    assert "✗ Status: invalid (1 answer missing; 1 duplicate question)" in result.summary.splitlines()[1]
    assert "Answers verified: 19/20; 1 not found" in result.summary
    assert "Duplicates: 1 question" in result.summary


def test_question_objects_are_validated_unchanged() -> None:
    result = validate_fixture([QuestionAnswer("first", "Who?", "Ada")], "Bo wrote it.", tokenizer="words")
    assert result.answer_issues[0].question_id == "first"
    assert repr(result).startswith("<ValidationResult invalid: 1 questions")


def test_another_matcher_gives_other_matches() -> None:
    document = "The margin was 165% in that year. " + "Pears are sold. " * 50
    words_result, source_result = (check_one("65%", document, matcher=name) for name in ("words", "embedding-eval"))
    assert (words_result.answers_found, source_result.answers_found) == (0, 1)
    assert source_result.verification is not None
    assert source_result.verification.matcher == "embedding-eval"


def test_a_partial_match_of_the_embedding_eval_matcher_has_the_matched_text() -> None:
    document = "They sold twelve thousand old barrels. " + "Pears are sold. " * 50
    result = check_one("twelve thousand barrels", document, matcher="embedding-eval")
    (issue,) = result.answer_issues
    assert (result.answers_found, issue.issue_type, issue.severity) == (1, "partial_match", Severity.TIP)
    assert issue.suggestion == 'written as "twelve thousand old barrels"'


@pytest.mark.parametrize("sentences", [60, 240])
def test_a_short_document_is_checked_with_the_chunks_that_a_comparison_uses(sentences: int) -> None:
    text = " ".join(f"Sentence {number} is about item {number}." for number in range(sentences))
    pairs = [{"question": f"Which one is {number}?", "answer": f"item {number}"} for number in range(50)]
    result = validate_fixture(pairs, text, tokenizer="words")
    plan = plan_comparison(text, pairs, FairConfig(tokenizer="words"))
    chunking, _ = plan.settings.baseline
    assert result.verification is not None
    assert result.verification.chunking == chunking.build("words").name
    assert "EQ108" not in {finding.code for finding in result.findings}
