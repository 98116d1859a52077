"""The accuracy of random chunks: beside all orders there are, and beside the evaluator on random chunks."""

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
WITHIN = 5 * 0.5 / MAX_SAMPLES**0.5


def held_and_asked(texts, answers, rule):
    asked = check_questions({"question": "Which?", "answer": answer} for answer in answers)
    return locate_answers(asked, [Chunk(text, 0, len(text), 1) for text in texts], rule), asked


@settings(max_examples=60)
@given(TEXTS, ANSWERS, st.booleans(), st.sampled_from([0.5, 0.8, 1.0]))
def test_it_is_the_share_of_all_orders_whose_first_chunks_answer(texts, answer, forms, threshold):
    rule = answer_matcher("source", fuzzy_word_match=forms, partial_match_threshold=threshold)
    held, asked = held_and_asked(texts, [answer], rule)
    needed = [held.index.first_hit(answer, order) or len(texts) + 1 for order in permutations(range(len(texts)))]
    exact = [np.mean(np.array(needed) <= k) for k in range(1, len(texts) + 1)]
    np.testing.assert_allclose(held.chance(asked, len(texts), len(texts)), exact, atol=WITHIN)


@pytest.mark.slow
def test_the_evaluator_passes_random_chunks_so_often():
    text = document(60)
    chunks, asked = chunks_of(text, 24, 4), check_questions(pairs(text, 40))
    texts = [chunk.text for chunk in chunks]
    level = locate_answers(asked, chunks, answer_matcher("source")).chance(asked, len(chunks), 5)
    evaluator, rng = BinaryEvaluator(matcher="source"), np.random.default_rng(1)
    for k in (2, 5):
        passed = [
            bool(evaluator.evaluate("?", each.answer, [texts[at] for at in rng.permutation(len(texts))[:k]]))
            for each in asked
            for _ in range(60)
        ]
        error = np.std(passed) / len(passed) ** 0.5
        assert level[k - 1] == pytest.approx(np.mean(passed), abs=4 * error)
    alone = locate_answers(asked, chunks, answer_matcher("words")).chance(asked, len(chunks), 5)
    assert level[4] > alone[4] + 0.05


def test_questions_with_many_answers_of_several_words_share_no_luck():
    texts = [*WORDS, *"abcdefghij"]
    answers = [f"{one} {other}" for one in WORDS for other in WORDS if one != other] * 10
    held, asked = held_and_asked(texts, answers, answer_matcher("source"))
    exact = 4 * 3 / (15 * 14)  # both of two chunks are among the first four of fifteen
    found = [held.chance(asked, 15, 4, seed)[3] for seed in range(20)]
    assert np.std(found) < 1.5 * (exact * (1 - exact) / 100_000) ** 0.5
    assert np.mean(found) == pytest.approx(exact, abs=0.001)


@given(st.integers(0, 2**32 - 1), st.integers(1, 8))
def test_where_texts_are_read_alone_it_is_the_expectation_of_equal_scores(seed, depth):
    rng = np.random.default_rng(seed)
    texts = [" ".join(rng.choice(WORDS, size=2)) for _ in range(rng.integers(1, 9))]
    held, asked = held_and_asked(texts, WORDS, answer_matcher("words"))

    class Constant:
        def score_blocks(self, queries):
            yield slice(0, len(queries)), np.zeros((len(queries), len(texts)))

    chunks = [Chunk(text, 0, len(text), 1) for text in texts]
    found = rank_answers(Constant(), asked, chunks, held, depth)
    expected = [hit_rate(found.ranking, k).mean() for k in range(1, len(found.chance) + 1)]
    np.testing.assert_allclose(found.chance, expected, atol=1e-12)


def test_an_answer_may_have_more_parts_than_a_byte_has_bits():
    there = np.eye(20, dtype=bool)
    level = chance_levels([np.array([], dtype=int)], [[AnswerParts(there, 16)]], 20, 20, np.random.default_rng(0))
    assert level.tolist() == [0.0] * 15 + [1.0] * 5


def test_any_of_several_answers_is_enough():
    """Parts of the first answer are in chunks 0 and 1, of the second in 2 and 3: both draws of two of four."""
    first = AnswerParts(np.array([[True, False, False, False], [False, True, False, False]]), 2)
    second = AnswerParts(first.there[:, ::-1], 2)
    none = np.array([], dtype=int)
    level = chance_levels([none] * 25, [[first, second]] * 25, 4, 4, np.random.default_rng(0))
    assert level == pytest.approx([0.0, 2 / 6, 1.0, 1.0], abs=0.01)


def test_the_same_seed_gives_the_same_figures_and_they_rise_with_k():
    held, asked = held_and_asked(WORDS, ["rye wheat", "oats corn spelt"], answer_matcher("source"))
    again, _ = held_and_asked(WORDS, ["rye wheat", "oats corn spelt"], answer_matcher("source"))
    level = held.chance(asked, 5, 5)
    assert level.tolist() == again.chance(asked, 5, 5).tolist()
    assert (np.diff(level) >= 0).all()
    assert level[-1] == 1.0
