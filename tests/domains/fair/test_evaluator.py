"""The evaluator with the names of embedding-eval."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.domains.fair.compat import BinaryEvaluator, EvaluationScore
from equipoise.errors import (
    EquipoiseError,
    InputError,
    ParameterError,
    UnknownNameError,
)

CHUNKS = ["France is a country. Paris is its capital.", "It grew by 165%."]


def test_the_published_example_is_reproduced():
    score = BinaryEvaluator().evaluate(
        question="What is the capital?", expected_answer="Paris", retrieved_chunks=CHUNKS
    )
    assert score.score == 1.0
    assert score
    assert score.explanation == "the answer is in the first 1 of 2 chunks"
    assert score.retrieved_chunks == tuple(CHUNKS)


def test_an_answer_inside_another_number_is_a_hit_only_for_the_embedding_eval_matcher():
    assert not BinaryEvaluator().evaluate("How much?", "65%", CHUNKS)
    assert BinaryEvaluator(matcher="embedding-eval").evaluate("How much?", "65%", CHUNKS)


def test_an_answer_across_two_chunks_is_a_hit_only_for_the_embedding_eval_matcher():
    chunks = ["dark rye", "bread rolls"]
    assert not BinaryEvaluator().evaluate("?", "rye bread", chunks)
    score = BinaryEvaluator(matcher="embedding-eval").evaluate("?", "rye bread", chunks)
    assert score.explanation == "the answer is in the first 2 of 2 chunks"


def test_no_chunks_score_zero():
    score = BinaryEvaluator().evaluate("?", "rye", [])
    assert (score.score, bool(score), score.explanation) == (0.0, False, "nothing was retrieved")


@pytest.mark.parametrize(
    ("options", "answer", "chunk", "expected"),
    [
        ({"case_sensitive": True}, "paris", "Paris", False),
        ({"case_sensitive": True}, "Paris", "Paris", True),
        ({"normalize_whitespace": False}, "a b", "a  b", False),
        ({"fuzzy_word_match": True}, "one two three four five", "five four three one", True),
        (
            {"fuzzy_word_match": True, "partial_match_threshold": 0.9},
            "one two three four five",
            "five four three",
            False,
        ),
        ({}, "$5", "costs 5 dollars", False),
        ({"normalize_currency": True}, "$5", "costs 5 dollars", True),
    ],
)
def test_options_change_the_match(options, answer, chunk, expected):
    assert bool(BinaryEvaluator(**options).evaluate("?", answer, [chunk])) is expected


def test_a_partial_match_of_the_embedding_eval_matcher_is_scored_by_its_share():
    score = BinaryEvaluator(matcher="embedding-eval").evaluate(
        "?", "one two three four five", ["two three", "one four"]
    )
    assert score.score == 0.8
    assert score.explanation == "the chunks have 80 % of the answer's words"


TEXT = st.text("ab $5®s ", max_size=12)


@pytest.mark.engines("embedding_eval")
@given(TEXT.filter(lambda text: text.strip()), st.lists(TEXT, max_size=4), st.booleans(), st.booleans())
def test_the_embedding_eval_matcher_gives_the_scores_of_embedding_eval(answer, chunks, fuzzy, currency):
    pytest.importorskip("embedding_eval.evaluation")
    from embedding_eval.evaluation.evaluators import BinaryEvaluator as ReferenceEvaluator

    expected = ReferenceEvaluator().evaluate("?", answer, chunks)
    score = BinaryEvaluator(matcher="embedding-eval").evaluate("?", answer, chunks)
    assert (score.score, bool(score)) == (expected.score, bool(expected))
    options = {"fuzzy_word_match": fuzzy, "normalize_currency": currency}
    score_with_options = BinaryEvaluator(matcher="embedding-eval", **options).evaluate("?", answer, chunks)
    assert score_with_options.score == ReferenceEvaluator(**options).evaluate("?", answer, chunks).score


def test_scores_of_at_least_one_half_are_true():
    assert EvaluationScore(0.5, "half")
    assert not EvaluationScore(0.49, "less")


@pytest.mark.parametrize(
    ("call", "kind", "fact"),
    [
        (lambda: BinaryEvaluator(matcher="sauce"), UnknownNameError, "'sauce'"),
        (lambda: BinaryEvaluator(partial_match_threshold=80), ParameterError, "80"),
        (lambda: BinaryEvaluator().evaluate("?", " ", ["a"]), InputError, "expected answer"),
        (lambda: BinaryEvaluator().evaluate("?", None, ["a"]), InputError, "expected answer"),
        (lambda: BinaryEvaluator().evaluate("?", "a", "a text"), InputError, "str"),
        (lambda: BinaryEvaluator().evaluate("?", "a", ["a", None]), InputError, r"2.*NoneType"),
    ],
)
def test_wrong_input_is_an_error(call, kind, fact):
    assert issubclass(kind, EquipoiseError)
    with pytest.raises(kind, match=fact):
        call()
