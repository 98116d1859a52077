"""What cannot be compared is refused with a sentence, and what looks wrong is a finding."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from equipoise import run_fair_comparison
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
from equipoise.models.encoder import Encoder, ModelCard
from equipoise.types import Role, install_command
from fair_sample import SETTINGS, Counting, document, pairs

TEXT = document()
ASKED = pairs(TEXT)
LOST = {"question": "Where is it?", "answer": "nowhere at all"}


def compared(**changes: Any) -> Any:
    given = {"models": ["bm25:"], "doc_content": TEXT, "qa_pairs": ASKED, **SETTINGS, **changes}
    return run_fair_comparison(**given)


@pytest.mark.parametrize(
    ("changes", "kind", "told"),
    [
        ({"doc_content": " \n"}, InputError, "the document is empty"),
        ({"doc_content": []}, InputError, "the document is empty"),
        ({"doc_content": 7}, InputError, "the document is a int"),
        ({"doc_content": [TEXT, None]}, InputError, "document 2 is a NoneType"),
        ({"qa_pairs": []}, InputError, "contains no question"),
        ({"qa_pairs": [{"question": "Why?"}]}, FormatError, "has no key 'answer'"),
        ({"qa_pairs": [{"question": "Why?", "answer": 7}]}, FormatError, "instead of text"),
        ({"qa_pairs": ASKED[:1]}, InputError, "the only question has one answer"),
        ({"qa_pairs": [ASKED[0], {**ASKED[0], "question": "?"}]}, InputError, "all 2 questions have one"),
        ({"qa_pairs": [*ASKED, LOST]}, InputError, "1 of 31 answers are not in"),
        ({"qa_pairs": [LOST], "unanswerable": "skip"}, InputError, "no question is left"),
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
        ({"test": "tea test"}, UnknownNameError, "no paired test is called 'tea test'"),
        ({"models": ["bm52:"]}, UnknownNameError, "no kind of model is called 'bm52'"),
        ({"models": ["sum:bm25:+minilmm"]}, UnknownNameError, "no model is called 'minilmm'"),
        ({"models": []}, ParameterError, "no model was given"),
        ({"models": [7]}, ParameterError, "a int is not a model"),
        ({"models": ["hash", "hash"]}, DuplicateError, "named twice"),
    ],
)
def test_bad_input_is_refused_with_a_sentence(changes: Any, kind: type[EquipoiseError], told: str) -> None:
    with pytest.raises(kind) as caught:
        compared(**changes)
    assert told in caught.value.message
    assert caught.value.exit_code == 2


def test_the_refusal_of_absent_answers_shows_them_and_the_hints() -> None:
    with pytest.raises(InputError) as caught:
        compared(qa_pairs=[*ASKED, *({**LOST, "id": f"lost {number}"} for number in range(7))])
    assert "lost 4: nowhere at all\nand 2 more" in caught.value.excerpt
    assert all(word in caught.value.hint for word in ("--unanswerable zero", "--unanswerable skip", "eq fair validate"))


def test_absent_answers_count_as_misses_or_are_left_out() -> None:
    asked = [LOST, *ASKED]
    plain, zero, skip = (
        compared(qa_pairs=given, unanswerable=policy, overlaps=[4])
        for given, policy in ((ASKED, "refuse"), (asked, "zero"), (asked, "skip"))
    )
    assert zero[0].total_questions == 31
    assert skip[0].total_questions == 30
    assert [row["passed"] for row in zero[0].all_results] == [row["passed"] for row in plain[0].all_results]
    assert [row["passed"] for row in skip[0].all_results] == [row["passed"] for row in plain[0].all_results]
    assert skip.notes == ("1 question was skipped: the answer is not in the document",)
    assert "EQ102" in codes(zero)
    assert "EQ102" not in codes(plain)


def test_a_tokenizer_that_only_stands_in_is_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokenizers, "_cl100k_file", lambda: None)
    (note,) = compared(tokenizer=None).notes
    assert "cl100k is not installed" in note
    assert install_command("chunk") in note
    assert compared(tokenizer="words").notes == ()


def test_several_documents_are_searched_together_and_named() -> None:
    half = TEXT.index("# Part 2")
    parts = [TextDocument("first.md", TEXT[:half]), TextDocument("second.md", TEXT[half:])]
    found = compared(doc_content=parts)
    shown = [chunk.where for detail in found.outcomes[0].details.values() for chunk in detail.retrieved]
    assert {where.partition(":")[0] for where in shown} == {"first.md", "second.md"}
    assert compared(doc_content=[each.text for each in parts])[0].all_results == found[0].all_results


class Short(Encoder):
    """A model that reads a few words."""

    identity = "short"
    cacheable = False

    def __init__(self, window: int = 8) -> None:
        self.card = ModelCard("short", "py:short", dims=4, max_tokens=window)

    def encode(self, texts: Any, role: Role) -> Any:
        return np.array([[len(text), text.count("a"), text.count("e"), 1.0] for text in texts], dtype=np.float32)

    def token_counts(self, texts: Any) -> list[int]:
        return [len(text.split()) for text in texts]


def codes(found: Any) -> set[str]:
    return {finding.code for finding in found.findings}


def test_models_alone_lack_a_lexical_baseline() -> None:
    assert "EQ107" in codes(compared(models=["hash", Counting()]))
    assert "EQ107" not in codes(compared(models=["hash", "bm25:"]))


def test_few_questions_and_a_short_document_are_findings() -> None:
    assert {"EQ105", "EQ108"} <= codes(compared(top_ks=[1, 40]))
    asked = [{**pair, "id": f"{number}", "question": pair["question"]} for number, pair in enumerate(ASKED * 2)]
    assert not {"EQ105", "EQ108"} & codes(compared(qa_pairs=asked, top_ks=[1, 2]))


SMALL = {"chunk_sizes": [16], "overlaps": [4], "top_ks": [2]}
"""One configuration, beside which the baseline of 512/50 top 10 retrieves the whole document."""


def test_tuning_the_depth_without_a_budget_is_a_finding() -> None:
    (finding,) = (each for each in compared().findings if each.code == "EQ202")
    assert "and accuracy never falls" in finding.message
    assert "EQ202" not in codes(compared(top_ks=[2]))


def test_a_depth_that_only_the_baseline_has_was_not_tuned() -> None:
    assert "EQ202" not in codes(compared(chunk_sizes=[32], overlaps=[4], top_ks=[1]))


def test_a_baseline_that_nobody_tried_raises_nothing() -> None:
    found = compared(models=["bm25:", Embedder(Short(window=40))], **SMALL, baseline_params=None)
    assert not {"EQ108", "EQ205", "EQ151"} & codes(found)
    tried = compared(models=["bm25:", Embedder(Short(window=40))], chunk_sizes=[512], overlaps=[50], top_ks=[10])
    assert {"EQ108", "EQ205", "EQ151"} <= codes(tried)


def test_what_the_budget_forbids_raises_nothing() -> None:
    assert "EQ108" in codes(compared(top_ks=[40], chunk_sizes=[16], overlaps=[0]))
    assert "EQ108" not in codes(compared(top_ks=[40], chunk_sizes=[16], overlaps=[0], budget=60))


def test_borders_that_cut_answers_are_a_finding_of_the_chunking_that_was_tried() -> None:
    found = compared(chunk_sizes=[3], overlaps=[0], top_ks=[9])
    (finding,) = (each for each in found.findings if each.code == "EQ102")
    reachable = found[0].all_results[0]["reachable"]
    assert reachable < 80
    lost = round(30 * (1 - reachable / 100))
    assert f"{lost} of 30 answers are split between chunks with chunk size 3, overlap 0" in finding.message
    told = " ".join(found.summary.split())
    assert f"the maximum score is below 100 %: bm25: {reachable:.1f} %." in told
    assert "EQ102" not in codes(compared(chunk_sizes=[24], overlaps=[8]))


def test_no_border_cuts_what_is_read_as_one_text() -> None:
    found = compared(chunk_sizes=[3], overlaps=[0], top_ks=[9], matcher="source")
    assert "EQ102" not in codes(found)
    assert found[0].all_results[0]["reachable"] is None


def test_honest_figures_are_not_called_tuned_on_reported_units() -> None:
    assert not {"EQ201", "EQ203"} & codes(compared(models=["bm25:", "hash"]))
    assert "EQ201" in codes(compared(models=["bm25:", "hash"], folds=1))


def test_the_only_configuration_is_the_best_of_nothing() -> None:
    assert "EQ201" not in codes(compared(models=["bm25:", "hash"], folds=1, **SMALL))


def test_questions_asked_twice_and_questions_that_tell_are_findings() -> None:
    twice = [*ASKED, {**ASKED[3], "id": "again"}]
    telling = [*ASKED, {"question": f"Is it {ASKED[0]['answer']}?", "answer": ASKED[0]["answer"]}]
    assert not {"EQ111", "EQ112"} & codes(compared())
    assert "EQ111" in codes(compared(qa_pairs=twice))
    assert "EQ112" in codes(compared(qa_pairs=telling))


def test_questions_without_kinds_have_no_slices() -> None:
    plain = [{"question": pair["question"], "answer": pair["answer"]} for pair in ASKED]
    found = compared(qa_pairs=plain)
    assert found.slices == {"bm25:": ()}
    assert "Accuracy by category and difficulty" not in found.summary
    some = compared(qa_pairs=[*plain[1:], {**plain[0], "category": "negation"}])
    assert {each.value: each.estimate.n for each in some.slices["bm25:"]} == {"negation": 1, "none": 29}


def test_a_model_that_reads_only_the_beginning_of_chunks_is_a_finding() -> None:
    found = compared(models=["bm25:", Embedder(Short())])
    assert {"EQ151", "EQ205"} <= codes(found)
    assert found[1].truncated_share == 1.0
    assert not {"EQ151", "EQ205"} & codes(compared(models=["bm25:", "hash"]))


def test_an_answer_at_several_places_is_a_finding() -> None:
    word = TEXT.split()[20].strip(".")
    asked = [*ASKED, {"question": "Which word is it?", "answer": word}]
    several = [finding for finding in compared(qa_pairs=asked).findings if finding.code == "EQ103"]
    assert any(word in line for finding in several for line in finding.evidence)
