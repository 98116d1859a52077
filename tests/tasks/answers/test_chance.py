"""The accuracy of random chunks, compared with all orders and with an evaluator on random chunks."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise.domains.fair.answer_matching import AnswerParts, answer_matcher
from equipoise.domains.fair.chunk_index import MAX_SAMPLES, chance_levels, rank_answers
from equipoise.domains.fair.compat import BinaryEvaluator
from equipoise.domains.fair.questions import check_questions
from equipoise.metrics.ranking import hit_rate
from equipoise.models.chunking import Chunk
from fair_sample import chunks_of, document, locate_answers, pairs

WORDS = ["rye", "wheat", "oats", "spelt", "corn"]
TEXTS = st.lists(st.lists(st.sampled_from(WORDS), max_size=4).map(" ".join), min_size=1, max_size=6)
ANSWERS = st.lists(st.sampled_from(WORDS), min_size=1, max_size=5).map(" ".join)
# Five standard errors of one question.
TOLERANCE = 5 * 0.5 / MAX_SAMPLES**0.5


def located_answers_and_questions(texts, answers, rule):
    questions = check_questions({"question": "Which?", "answer": answer} for answer in answers)
    return locate_answers(questions, [Chunk(text, 0, len(text), 1) for text in texts], rule), questions


@settings(max_examples=60)
@given(TEXTS, ANSWERS, st.booleans(), st.sampled_from([0.5, 0.8, 1.0]))
def test_chance_is_the_share_of_orders_whose_first_chunks_answer(texts, answer, fuzzy, threshold):
    rule = answer_matcher("embedding-eval", fuzzy_word_match=fuzzy, partial_match_threshold=threshold)
    located, questions = located_answers_and_questions(texts, [answer], rule)
    n_chunks_needed = [
        located.index.first_hit(answer, order) or len(texts) + 1 for order in permutations(range(len(texts)))
    ]
    expected = [np.mean(np.array(n_chunks_needed) <= k) for k in range(1, len(texts) + 1)]
    np.testing.assert_allclose(located.chance(questions, len(texts), len(texts)), expected, atol=TOLERANCE)


@pytest.mark.slow
def test_chance_agrees_with_the_evaluator_on_random_chunks():
    text = document(60)
    chunks, questions = chunks_of(text, 24, 4), check_questions(pairs(text, 40))
    texts = [chunk.text for chunk in chunks]
    chance = locate_answers(questions, chunks, answer_matcher("embedding-eval")).chance(questions, len(chunks), 5)
    evaluator, rng = BinaryEvaluator(matcher="embedding-eval"), np.random.default_rng(1)
    for k in (2, 5):
        passed = [
            bool(evaluator.evaluate("?", question.answer, [texts[index] for index in rng.permutation(len(texts))[:k]]))
            for question in questions
            for _ in range(60)
        ]
        error = np.std(passed) / len(passed) ** 0.5
        assert chance[k - 1] == pytest.approx(np.mean(passed), abs=4 * error)
    chance_per_chunk = locate_answers(questions, chunks, answer_matcher("words")).chance(questions, len(chunks), 5)
    assert chance[4] > chance_per_chunk[4] + 0.05


def test_samples_of_many_questions_are_independent():
    texts = [*WORDS, *"abcdefghij"]
    answers = [f"{first} {second}" for first in WORDS for second in WORDS if first != second] * 10
    located, questions = located_answers_and_questions(texts, answers, answer_matcher("embedding-eval"))
    exact = 4 * 3 / (15 * 14)  # both of two chunks are among the first four of fifteen
    chances = [located.chance(questions, 15, 4, seed)[3] for seed in range(20)]
    assert np.std(chances) < 1.5 * (exact * (1 - exact) / 100_000) ** 0.5
    assert np.mean(chances) == pytest.approx(exact, abs=0.001)


@given(st.integers(0, 2**32 - 1), st.integers(1, 8))
def test_chance_of_single_texts_is_the_expectation_of_equal_scores(seed, depth):
    rng = np.random.default_rng(seed)
    texts = [" ".join(rng.choice(WORDS, size=2)) for _ in range(rng.integers(1, 9))]
    located, questions = located_answers_and_questions(texts, WORDS, answer_matcher("words"))

    class ConstantSystem:
        def score_blocks(self, queries):
            yield slice(0, len(queries)), np.zeros((len(queries), len(texts)))

    chunks = [Chunk(text, 0, len(text), 1) for text in texts]
    result = rank_answers(ConstantSystem(), questions, chunks, located, depth)
    expected = [hit_rate(result.ranking, k).mean() for k in range(1, len(result.chance) + 1)]
    np.testing.assert_allclose(result.chance, expected, atol=1e-12)


def test_answers_with_more_than_eight_parts_are_supported():
    is_in_chunk = np.eye(20, dtype=bool)
    chance = chance_levels(
        [np.array([], dtype=int)], [[AnswerParts(is_in_chunk, 16)]], 20, 20, np.random.default_rng(0)
    )
    assert chance.tolist() == [0.0] * 15 + [1.0] * 5


def test_one_of_several_answers_is_sufficient():
    """Parts of the first answer are in chunks 0 and 1, of the second in 2 and 3: two of the six pairs of chunks."""
    first = AnswerParts(np.array([[True, False, False, False], [False, True, False, False]]), 2)
    second = AnswerParts(first.there[:, ::-1], 2)
    none = np.array([], dtype=int)
    chance = chance_levels([none] * 25, [[first, second]] * 25, 4, 4, np.random.default_rng(0))
    assert chance == pytest.approx([0.0, 2 / 6, 1.0, 1.0], abs=0.01)


def test_chance_is_reproducible_and_increases_with_k():
    located, questions = located_answers_and_questions(
        WORDS, ["rye wheat", "oats corn spelt"], answer_matcher("embedding-eval")
    )
    second, _ = located_answers_and_questions(WORDS, ["rye wheat", "oats corn spelt"], answer_matcher("embedding-eval"))
    chance = located.chance(questions, 5, 5)
    assert chance.tolist() == second.chance(questions, 5, 5).tolist()
    assert (np.diff(chance) >= 0).all()
    assert chance[-1] == 1.0
