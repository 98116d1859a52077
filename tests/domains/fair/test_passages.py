"""Several accepted answers, and passages that must contain the answer of a question."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise import run_fair_comparison, validate_fixture
from equipoise.domains.fair.config import FairConfig
from equipoise.domains.fair.experiment import prepare_comparison
from equipoise.domains.fair.questions import PassageFinder, PassageSpan, check_questions
from equipoise.errors import FormatError, InputError, ParameterError
from equipoise.io.documents import read_documents
from equipoise.types import Severity

TEXT = """\
# The mill

The mill of Ulm was built in 1871 by Jonas Weber. It burned down soon after.

# The railway

The railway reached Ulm in 1850. The inter-
national line to Vienna opened in 1871, and a well-
known engineer, Karl Etzel, planned it.
"""
CONFIG = FairConfig(chunk_sizes=[12], overlaps=[4], top_ks=[1, 2], tokenizer="words", repeats=2)


def plan(*questions: dict[str, Any], **settings: Any) -> Any:
    return prepare_comparison(TEXT, questions, replace(CONFIG, unanswerable="zero", folds=1, **settings))


def relevant_chunks(prepared: Any, index: int = 0) -> list[str]:
    """The texts of the chunks that are hits of a question, in the first chunking."""
    indexed = next(iter(prepared.indexed_chunks.values()))
    return [indexed.chunked.texts[chunk] for chunk in indexed.locations.holders[index]]


def test_any_accepted_answer_is_a_hit() -> None:
    question = {"question": "When?", "answer": ["1850", "1871"]}
    chunks = relevant_chunks(plan(question, {"question": "Who?", "answer": "Weber"}))
    chunks_per_answer = [relevant_chunks(plan({**question, "answer": answer})) for answer in question["answer"]]
    assert sorted(chunks) == sorted({*chunks_per_answer[0], *chunks_per_answer[1]})
    assert all("1850" in chunk or "1871" in chunk for chunk in chunks)


@pytest.mark.parametrize("key", ["answer", "answers"])
def test_a_list_of_answers_is_read_without_duplicates(key: str) -> None:
    (question,) = check_questions([{"question": "Where?", key: ["Ulm ", "Ulm", "at Ulm"]}])
    assert (question.answer, question.alternatives, question.answers) == ("Ulm", ("at Ulm",), ("Ulm", "at Ulm"))
    assert check_questions([question]) == (question,)


@pytest.mark.parametrize("answer", [[], ["Ulm", ""], ["Ulm", 3]])
def test_a_list_with_an_invalid_answer_is_an_error(answer: list[Any]) -> None:
    with pytest.raises(FormatError):
        check_questions([{"question": "Where?", "answer": answer}])


def test_an_answer_is_a_hit_only_inside_a_passage() -> None:
    question = {"question": "When was the mill built?", "answer": "1871"}
    with_passage = {**question, "passage": "the mill of ulm was built in 1871 by jonas weber"}
    other = {"question": "Who?", "answer": "Weber"}
    all_chunks, chunks_in_passage = relevant_chunks(plan(question, other)), relevant_chunks(plan(with_passage, other))
    assert set(chunks_in_passage) == {chunk for chunk in all_chunks if "built in 1871" in chunk}
    assert len(chunks_in_passage) < len(all_chunks)


def test_several_passages_are_alternatives() -> None:
    passages = ["built in 1871 by Jonas", "international line to Vienna opened in 1871"]
    question = {"question": "What happened in that year?", "answer": "1871", "passages": passages}
    chunks = relevant_chunks(plan(question))
    assert any("mill" in chunk for chunk in chunks)
    assert any("Vienna" in chunk for chunk in chunks)


def test_a_chunk_that_only_overlaps_the_passage_is_not_a_hit() -> None:
    """The chunk contains the answer outside the passage, and a part of the passage without the answer."""
    text = "alpha one two answer three four five six answer seven"
    question = {"question": "Which?", "answer": "answer", "passage": "three four five six answer seven"}
    settings = FairConfig(chunk_sizes=[6], overlaps=[0], top_ks=[1], tokenizer="words")
    other = {"question": "What?", "answer": "alpha"}
    indexed = prepare_comparison(text, [question, other], settings).indexed_chunks
    holders = next(iter(indexed.values())).locations.holders
    assert holders[0].tolist() == [1]


@pytest.mark.parametrize(
    ("question", "error"),
    [
        ({"passage": "the mill of Augsburg"}, InputError),
        ({"passage": "It burned down soon after"}, InputError),
        ({"passage": 3}, FormatError),
        ({"passages": ["built in 1871", ""]}, FormatError),
    ],
)
def test_an_invalid_passage_is_an_error(question: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        plan({"question": "When?", "answer": "1871", **question})


def test_a_matcher_that_joins_chunks_does_not_accept_passages() -> None:
    with pytest.raises(ParameterError):
        plan({"question": "When?", "answer": "1871", "passage": "built in 1871"}, matcher="embedding-eval")


def test_validation_lists_invalid_passages_and_counts_within_valid_ones() -> None:
    questions = [
        {"question": "When was it built?", "answer": "1871", "passage": "built in 1871"},
        {"question": "When did the line open?", "answer": "1871"},
        {"question": "Where?", "answer": "Ulm", "passage": "the mill of Augsburg"},
        {"question": "Who?", "answer": "Weber", "passage": "It burned down soon after"},
        {"question": "Which line?", "answer": "international"},
        {"question": "Who planned it?", "answer": ["Carl Etzel", "Karl Etzel"]},
    ]
    result = validate_fixture(questions, TEXT, tokenizer="words")
    kinds = {(issue.question_id, issue.issue_type) for issue in result.answer_issues}
    assert kinds == {
        ("q2", "ambiguous"), ("q3", "passage_missing"), ("q4", "not_in_passage"), ("q5", "hyphenated"),
    }  # fmt: skip
    assert (result.answers_found, result.answers_missing) == (4, 2)


def test_validation_finds_a_wrong_passage_next_to_a_right_one() -> None:
    asked = [{"question": "When?", "answer": "1871", "passages": ["built in 1871", "the mill of Augsburg"]}]
    (issue,) = validate_fixture(asked, TEXT, tokenizer="words").answer_issues
    assert (issue.issue_type, issue.severity) == ("passage_missing", Severity.ISSUE)
    with pytest.raises(InputError):
        plan(*asked)


def test_validation_names_drafts_in_its_status() -> None:
    asked = [
        {"question": "When was it built?", "answer": "1871", "passage": "built in 1871", "draft": True},
        {"question": "Who planned it?", "answer": "Karl Etzel"},
    ]
    result = validate_fixture(asked, TEXT, tokenizer="words", min_questions=1)
    assert (result.drafts_found, result.is_valid) == (1, False)
    assert "Status: not edited (1 unedited draft, which eq fair compare rejects" in result.summary.splitlines()[1]


def test_questions_with_alternatives_and_passages_are_scored_with_details() -> None:
    questions = [
        {"question": "When did the railway reach Ulm?", "answer": ["in the year 1850", "1850"]},
        {"question": "Who built the mill?", "answer": "Weber"},
        {"question": "What line opened to Vienna?", "answer": "international", "passage": "international line"},
    ]
    comparison = run_fair_comparison(["bm25:", "hash"], TEXT, questions, [20], [10], config=CONFIG)
    assert comparison[0].best_accuracy == 100.0
    details = comparison.outcomes[0].details
    assert details["q1"].expected == ("in the year 1850", "1850")
    assert any(chunk.relevant for chunk in details["q3"].retrieved)


def test_different_answers_or_passages_are_a_different_dataset() -> None:
    questions = [{"question": "When?", "answer": "1871"}, {"question": "Who?", "answer": "Weber"}]
    changes: list[dict[str, Any]] = [{}, {"answer": ["1871", "1850"]}, {"passage": "built in 1871"}]
    datasets = [plan({**questions[0], **change}, questions[1]).dataset for change in changes]
    assert len({dataset.fingerprints["questions"] for dataset in datasets}) == len(changes)
    assert len({dataset.identity["questions"] for dataset in datasets}) == len(changes)


WORDS = st.lists(st.sampled_from(["rye", "Wheat", "oats", "in"]), min_size=1, max_size=5)


@given(WORDS, WORDS, st.sampled_from([" ", "\n", ", ", " - "]))
def test_a_passage_is_located_at_every_occurrence_of_its_words(
    document: list[str], passage: list[str], separator: str
) -> None:
    text = separator.join(document)
    document_words = [word.lower() for word in document]
    passage_words = [word.lower() for word in passage]
    starts = [
        position
        for position in range(len(document))
        if document_words[position : position + len(passage_words)] == passage_words
    ]
    spans = PassageFinder([text]).find(" ".join(passage))
    exact = [span for span in spans if text[span.start : span.end] == " ".join(passage)]
    if len(exact) < len(spans) or not spans:
        assert len(spans) == len(starts)
    for span in spans:
        span_words = text[span.start : span.end].replace(",", " ").replace("-", " ").lower().split()
        assert " ".join(passage_words) in " ".join(span_words)


def test_symbols_next_to_a_passage_are_part_of_it() -> None:
    (span,) = PassageFinder(["It rose by $5 (65%) in May."]).find("5 65")
    assert span == PassageSpan(0, 11, 19)
    assert "It rose by $5 (65%) in May."[span.start : span.end] == "$5 (65%)"


@pytest.mark.engines("reportlab", "pypdf")
@pytest.mark.parametrize("hyphen", ["-", "\N{SOFT HYPHEN}"])
def test_answers_hyphenated_at_line_ends_of_a_pdf_are_located(tmp_path: Path, hyphen: str) -> None:
    from reportlab.pdfgen.canvas import Canvas

    pdf = Canvas(str(tmp_path / "railway.pdf"))
    lines = f"The train reached Ulm. The inter{hyphen}\nnational line was planned by a well{hyphen}\nknown Karl Etzel."
    for y, line in enumerate(lines.splitlines()):
        pdf.drawString(72, 720 - 14 * y, line)
    pdf.save()
    questions = [{"question": "Which line?", "answer": "international line"}, {"question": "Who?", "answer": "Etzel"}]
    result = validate_fixture(questions, read_documents(tmp_path / "railway.pdf"), tokenizer="words")
    assert (result.answers_found, result.answers_missing) == (2, 0)
    (issue,) = result.answer_issues
    assert (issue.issue_type, issue.suggestion) == ("hyphenated", f'written as "inter{hyphen} national line"')
    prepared = prepare_comparison(read_documents(tmp_path / "railway.pdf"), questions, CONFIG)
    assert all(relevant_chunks(prepared, index) for index in range(2))
