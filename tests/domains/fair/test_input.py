"""Invalid input of a comparison is an error, and suspicious input is a finding."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from equipoise import run_fair_comparison
from equipoise.domains.fair.checks import with_affected_models
from equipoise.errors import (
    DuplicateError,
    EquipoiseError,
    FormatError,
    InputError,
    ParameterError,
    UnknownNameError,
)
from equipoise.io.documents import TextDocument
from equipoise.models import tokenizers
from equipoise.models.embedder import Embedder
from equipoise.models.encoder import Encoder, ModelCard, Role
from equipoise.types import Finding, Severity, install_command
from fair_sample import CONFIG, Counting, document, pairs

TEXT = document()
QUESTIONS = pairs(TEXT)
UNANSWERABLE = {"question": "Where is it?", "answer": "nowhere at all"}


def run_comparison(**changes: Any) -> Any:
    inputs = {"models": ["bm25:"], "doc_content": TEXT, "qa_pairs": QUESTIONS}
    inputs |= {name: changes.pop(name) for name in inputs if name in changes}
    return run_fair_comparison(**inputs, config=replace(CONFIG, **changes))


@pytest.mark.parametrize(
    ("changes", "kind", "text"),
    [
        ({"doc_content": " \n"}, InputError, "the document is empty"),
        ({"doc_content": []}, InputError, "the document is empty"),
        ({"doc_content": 7}, InputError, "the document is a int"),
        ({"doc_content": [TEXT, None]}, InputError, "document 2 is a NoneType"),
        ({"qa_pairs": []}, InputError, "contains no question"),
        ({"qa_pairs": [{"question": "Why?"}]}, FormatError, "has no key 'answer'"),
        ({"qa_pairs": [{"question": "Why?", "answer": 7}]}, FormatError, "instead of text"),
        ({"qa_pairs": QUESTIONS[:1]}, InputError, "there is only one question"),
        ({"qa_pairs": [QUESTIONS[0], {**QUESTIONS[0], "question": "?"}]}, InputError, "all 2 questions have the same"),
        ({"qa_pairs": [*QUESTIONS, UNANSWERABLE]}, InputError, "1 of 31 answers is not in"),
        ({"qa_pairs": [UNANSWERABLE], "unanswerable": "skip"}, InputError, "no question is left"),
        ({"unanswerable": "zeros"}, ParameterError, "unanswerable='zeros'"),
        ({"chunk_sizes": [8], "overlaps": [8, 9]}, ParameterError, "there is no valid configuration"),
        ({"chunk_sizes": [0]}, ParameterError, "chunk_sizes has 0"),
        ({"chunk_sizes": ["many"]}, ParameterError, "chunk_sizes has 'many'"),
        ({"chunk_sizes": 16}, ParameterError, "chunk_sizes is 16, not a list"),
        ({"top_ks": []}, ParameterError, "top_ks is an empty list"),
        ({"top_ks": [True]}, ParameterError, "top_ks has True"),
        ({"folds": 0}, ParameterError, "folds has 0"),
        ({"budget": 0}, ParameterError, "the budget is 0 tokens"),
        ({"budget": float("nan")}, ParameterError, "the budget is nan tokens"),
        ({"baseline_params": {"topk": 3}}, ParameterError, "no parameter 'topk'"),
        ({"chunkers": ["fixt"]}, UnknownNameError, "no chunker is called 'fixt'"),
        ({"matcher": "word"}, UnknownNameError, "no matcher is called 'word'"),
        ({"models": ["bm52:"]}, UnknownNameError, "no kind of model is called 'bm52'"),
        ({"models": ["sum:bm25:+minilmm"]}, UnknownNameError, "no model is called 'minilmm'"),
        ({"models": []}, ParameterError, "no model was given"),
        ({"models": [7]}, ParameterError, "a int is not a model"),
        ({"models": ["hash", "hash"]}, DuplicateError, "named twice"),
    ],
)
def test_bad_input_is_an_error(changes: Any, kind: type[EquipoiseError], text: str) -> None:
    with pytest.raises(kind) as error_info:
        run_comparison(**changes)
    assert text in error_info.value.message
    assert error_info.value.exit_code == 2


def test_the_error_for_missing_answers_lists_them_with_hints() -> None:
    with pytest.raises(InputError) as error_info:
        run_comparison(qa_pairs=[*QUESTIONS, *({**UNANSWERABLE, "id": f"missing {index}"} for index in range(7))])
    assert "missing 4: nowhere at all\nand 2 more" in error_info.value.excerpt
    assert all(
        word in error_info.value.hint for word in ("--unanswerable zero", "--unanswerable skip", "eq fair validate")
    )


def test_missing_answers_count_as_misses_or_are_left_out() -> None:
    questions = [UNANSWERABLE, *QUESTIONS]
    complete, zero, skip = (
        run_comparison(qa_pairs=qa_pairs, unanswerable=policy, overlaps=[4])
        for qa_pairs, policy in ((QUESTIONS, "refuse"), (questions, "zero"), (questions, "skip"))
    )
    assert zero[0].total_questions == 31
    assert skip[0].total_questions == 30
    assert [row["passed"] for row in zero[0].all_results] == [row["passed"] for row in complete[0].all_results]
    assert [row["passed"] for row in skip[0].all_results] == [row["passed"] for row in complete[0].all_results]
    assert skip.notes == ("1 question was skipped: the answer is not in the document",)
    assert "EQ102" in finding_codes(zero)
    assert "EQ102" not in finding_codes(complete)


def test_a_substitute_tokenizer_gives_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokenizers, "_cl100k_file", lambda: None)
    (note,) = run_comparison(tokenizer=None).notes
    assert "cl100k is not installed" in note
    assert install_command("chunk") in note
    assert run_comparison(tokenizer="words").notes == ()


def test_several_documents_are_searched_together_with_their_names() -> None:
    boundary = TEXT.index("# Part 2")
    documents = [TextDocument("first.md", TEXT[:boundary]), TextDocument("second.md", TEXT[boundary:])]
    comparison = run_comparison(doc_content=documents)
    locations = [chunk.where for detail in comparison.outcomes[0].details.values() for chunk in detail.retrieved]
    assert {location.partition(":")[0] for location in locations} == {"first.md", "second.md"}
    assert run_comparison(doc_content=[part.text for part in documents])[0].all_results == comparison[0].all_results


class ShortWindowModel(Encoder):
    """A model with a window of a few words."""

    identity = "short"
    cacheable = False

    def __init__(self, window: int = 8) -> None:
        self.card = ModelCard("short", "py:short", dims=4, max_tokens=window)

    def encode(self, texts: Any, role: Role) -> Any:
        return np.array([[len(text), text.count("a"), text.count("e"), 1.0] for text in texts], dtype=np.float32)

    def token_counts(self, texts: Any) -> list[int]:
        return [len(text.split()) for text in texts]


def finding_codes(comparison: Any) -> set[str]:
    return {finding.code for finding in comparison.findings}


def test_dense_models_without_a_lexical_baseline_are_a_finding() -> None:
    assert "EQ107" in finding_codes(run_comparison(models=["hash", Counting()]))
    assert "EQ107" not in finding_codes(run_comparison(models=["hash", "bm25:"]))


def test_few_questions_and_a_short_document_are_findings() -> None:
    assert {"EQ105", "EQ108"} <= finding_codes(run_comparison(top_ks=[1, 40]))
    questions = [{**pair, "id": f"{index}", "question": pair["question"]} for index, pair in enumerate(QUESTIONS * 2)]
    assert not {"EQ105", "EQ108"} & finding_codes(run_comparison(qa_pairs=questions, top_ks=[1, 2]))


SMALL = {"chunk_sizes": [16], "overlaps": [4], "top_ks": [2]}
"""One configuration; the baseline of 512/50 top 10 retrieves the whole document."""


def test_tuning_the_depth_without_a_budget_is_a_finding() -> None:
    (finding,) = (finding for finding in run_comparison().findings if finding.code == "EQ202")
    assert "accuracy never falls" in finding.message
    assert "EQ202" not in finding_codes(run_comparison(top_ks=[2]))


def test_a_depth_that_only_the_baseline_has_is_not_tuning() -> None:
    assert "EQ202" not in finding_codes(run_comparison(chunk_sizes=[32], overlaps=[4], top_ks=[1]))


def test_without_a_baseline_there_are_no_findings_about_it() -> None:
    comparison = run_comparison(models=["bm25:", Embedder(ShortWindowModel(window=40))], **SMALL, baseline_params=None)
    assert not {"EQ108", "EQ205", "EQ151"} & finding_codes(comparison)
    large_chunks = run_comparison(
        models=["bm25:", Embedder(ShortWindowModel(window=40))], chunk_sizes=[512], overlaps=[50], top_ks=[10]
    )
    assert {"EQ108", "EQ205", "EQ151"} <= finding_codes(large_chunks)


def test_configurations_beyond_the_budget_raise_no_finding() -> None:
    assert "EQ108" in finding_codes(run_comparison(top_ks=[40], chunk_sizes=[16], overlaps=[0]))
    assert "EQ108" not in finding_codes(run_comparison(top_ks=[40], chunk_sizes=[16], overlaps=[0], budget=60))


def test_answers_split_between_the_evaluated_chunks_are_a_finding() -> None:
    comparison = run_comparison(chunk_sizes=[3], overlaps=[0], top_ks=[9])
    (finding,) = (finding for finding in comparison.findings if finding.code == "EQ102")
    reachable = comparison[0].all_results[0]["reachable"]
    assert reachable < 80
    n_split = round(30 * (1 - reachable / 100))
    assert f"{n_split} of 30 answers are split between chunks with chunk size 3, overlap 0" in finding.message
    assert f"at most {reachable:.0f} % can be found" in finding.message
    assert "EQ102" not in finding_codes(run_comparison(chunk_sizes=[24], overlaps=[8]))


def test_split_answers_name_the_models_whose_selected_chunks_split_some() -> None:
    def finding(**grid: Any) -> Finding:
        comparison = run_comparison(top_ks=[9], **grid)
        (found,) = (each for each in comparison.findings if each.code == "EQ102")
        return found

    none = finding(chunk_sizes=[24], overlaps=[0, 8])
    assert (none.severity, none.message.rpartition("; ")[2]) == (
        Severity.TIP,
        "no model in the table uses it",
    )
    every = finding(chunk_sizes=[3], overlaps=[0])
    assert (every.severity, "chunk boundaries split some" in every.message) == (Severity.ISSUE, False)
    ceilings = {"bm25": 1.0, "hash": 0.954}
    (some,) = with_affected_models([every], ceilings, ["bm25", "hash"])
    assert (some.severity, some.subject) == (Severity.ISSUE, "hash")
    assert some.message == "chunk boundaries split answers, so accuracy is at most 95 % for hash"
    (of_others,) = with_affected_models([every], ceilings, ["bm25"])
    assert (of_others.severity, of_others.message) == (Severity.TIP, some.message), "hash is significantly worse"
    assert with_affected_models([replace(every, code="EQ103")], ceilings, ["hash"])[0].message == every.message


def test_the_embedding_eval_matcher_has_no_split_answers() -> None:
    comparison = run_comparison(chunk_sizes=[3], overlaps=[0], top_ks=[9], matcher="embedding-eval")
    assert "EQ102" not in finding_codes(comparison)
    assert comparison[0].all_results[0]["reachable"] is None


def test_held_out_scores_have_no_finding_about_tuning() -> None:
    assert not {"EQ201", "EQ203"} & finding_codes(run_comparison(models=["bm25:", "hash"]))
    assert "EQ201" in finding_codes(run_comparison(models=["bm25:", "hash"], folds=1))


def test_a_single_configuration_has_no_finding_about_tuning() -> None:
    assert "EQ201" not in finding_codes(run_comparison(models=["bm25:", "hash"], folds=1, **SMALL))


def test_repeated_questions_and_questions_with_their_answer_are_findings() -> None:
    repeated = [*QUESTIONS, {**QUESTIONS[3], "id": "again"}]
    with_answer_in_question = [
        *QUESTIONS,
        {"question": f"Is it {QUESTIONS[0]['answer']}?", "answer": QUESTIONS[0]["answer"]},
    ]
    assert not {"EQ111", "EQ112"} & finding_codes(run_comparison())
    assert "EQ111" in finding_codes(run_comparison(qa_pairs=repeated))
    assert "EQ112" in finding_codes(run_comparison(qa_pairs=with_answer_in_question))


def test_questions_without_categories_have_no_slices() -> None:
    qa_pairs = [{"question": pair["question"], "answer": pair["answer"]} for pair in QUESTIONS]
    comparison = run_comparison(qa_pairs=qa_pairs)
    assert comparison.slices == {"bm25:": ()}
    assert "Accuracy by category and difficulty" not in comparison.summary
    partly_labelled = run_comparison(qa_pairs=[*qa_pairs[1:], {**qa_pairs[0], "category": "negation"}])
    assert {part.value: part.estimate.n for part in partly_labelled.slices["bm25:"]} == {"negation": 1, "not given": 29}


def test_a_model_that_truncates_chunks_is_a_finding() -> None:
    comparison = run_comparison(models=["bm25:", Embedder(ShortWindowModel())])
    assert {"EQ151", "EQ205"} <= finding_codes(comparison)
    assert comparison[1].truncated_share == 1.0
    assert not {"EQ151", "EQ205"} & finding_codes(run_comparison(models=["bm25:", "hash"]))


def test_an_answer_with_several_occurrences_is_a_finding() -> None:
    word = TEXT.split()[20].strip(".")
    questions = [*QUESTIONS, {"question": "Which word is it?", "answer": word}]
    findings = [finding for finding in run_comparison(qa_pairs=questions).findings if finding.code == "EQ103"]
    assert any(word in line for finding in findings for line in finding.evidence)
