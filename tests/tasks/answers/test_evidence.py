"""From questions and chunks to a ranking, what was retrieved, and its tokens."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import hypergeom

from equipoise.domains.fair.answer_matching import answer_matcher
from equipoise.domains.fair.chunk_index import rank_answers
from equipoise.domains.fair.questions import check_questions
from equipoise.metrics.ranking import HitRate, ReciprocalRank
from equipoise.models.chunking import Chunk, chunker
from equipoise.models.retriever import retriever
from fair_sample import locate_answers

WORDS = ["rye", "wheat", "oat", "spelt", "corn"]


class Stored:
    """A system with given scores, in blocks of two questions, each written over by the next."""

    def __init__(self, scores):
        self.scores = np.asarray(scores, dtype=float)

    def score_blocks(self, queries):
        assert len(queries) == len(self.scores)
        buffer = np.empty((2, self.scores.shape[1]))
        for start in range(0, len(self.scores), 2):
            rows = slice(start, min(start + 2, len(self.scores)))
            block = buffer[: rows.stop - start]
            block[...] = self.scores[rows]
            yield rows, block


def asked(*answers):
    return check_questions(
        {"question": f"Which grain is number {n}?", "answer": each} for n, each in enumerate(answers)
    )


def ranked(system, questions, chunks, rule, depth):
    return rank_answers(system, questions, chunks, locate_answers(questions, chunks, rule), depth)


def chunks_of(texts):
    return [Chunk(text, 0, len(text), tokens=place + 1) for place, text in enumerate(texts)]


CASES = st.integers(0, 2**32 - 1).map(np.random.default_rng)


def random_case(rng, *, tied=False):
    texts = [" ".join(rng.choice(WORDS, size=rng.integers(1, 4))) for _ in range(rng.integers(1, 9))]
    answers = [str(each) for each in rng.choice([*WORDS, "barley", "rye wheat"], size=rng.integers(1, 6))]
    shape = (len(answers), len(texts))
    scores = rng.integers(0, 3, size=shape) if tied else rng.permuted(np.arange(np.prod(shape))).reshape(shape)
    return asked(*answers), chunks_of(texts), Stored(scores)


@given(CASES, st.integers(1, 12))
def test_the_hit_rate_at_k_asks_whether_the_first_k_chunks_hold_the_answer(rng, depth):
    fixture, chunks, system = random_case(rng)
    rule = answer_matcher("words")
    found = ranked(system, fixture, chunks, rule, depth)
    assert found.order.shape == found.scores.shape == found.tokens.shape == (len(fixture), min(depth, len(chunks)))
    assert list(found.ranking.unit_ids) == [each.id for each in fixture]
    for k in range(1, found.order.shape[1] + 1):
        held = [
            any(rule.holds(question.answer, chunks[place].text) for place in row[:k])
            for question, row in zip(fixture, found.order, strict=True)
        ]
        assert HitRate(k).per_unit(found.ranking).tolist() == held


@given(CASES, st.integers(1, 12))
def test_the_order_is_a_stable_sort_of_the_scores_and_tokens_add_up(rng, depth):
    fixture, chunks, system = random_case(rng, tied=True)
    found = ranked(system, fixture, chunks, answer_matcher("words"), depth)
    order = np.argsort(-system.scores, axis=1, kind="stable")[:, :depth]
    assert found.order.tolist() == order.tolist()
    assert found.scores.tolist() == np.take_along_axis(system.scores, order, axis=1).tolist()
    assert found.tokens.tolist() == [
        [sum(place + 1 for place in row[: n + 1]) for n in range(len(row))] for row in order
    ]


@given(CASES, st.integers(1, 5))
def test_a_constant_scorer_earns_the_chance_level_of_drawing_k_chunks(rng, k):
    fixture, chunks, system = random_case(rng)
    constant = ranked(Stored(np.zeros_like(system.scores)), fixture, chunks, answer_matcher("words"), 3)
    held = np.array([len(holders) for holders in constant.holders])
    drawn = hypergeom(len(chunks), held, min(k, len(chunks)))
    np.testing.assert_allclose(HitRate(k).per_unit(constant.ranking), drawn.sf(0), atol=1e-12)
    sharp = ranked(system, fixture, chunks, answer_matcher("words"), 3)
    assert HitRate(k).chance(sharp.ranking, rng) == pytest.approx(drawn.sf(0).mean())


@pytest.mark.parametrize("name", ["words", "source"])
def test_the_chance_level_agrees_with_a_simulation(name):
    rng = np.random.default_rng(7)
    texts = ["rye", "rye and oat", "wheat", "oat", "spelt", "corn", "rye", "millet"]
    fixture, chunks = asked("rye", "oat", "millet", "barley"), chunks_of(texts)
    scores = rng.normal(size=(4, 8))
    found = ranked(Stored(scores), fixture, chunks, answer_matcher(name), 3)
    rule = answer_matcher(name)
    simulated = [
        rule.first_hit(question.answer, [texts[place] for place in rng.permutation(8)[:3]]) is not None
        for _ in range(1000)
        for question in fixture
    ]
    assert HitRate(3).chance(found.ranking, rng) == pytest.approx(np.mean(simulated), abs=0.02)


@pytest.mark.parametrize("name", ["words", "source"])
def test_a_question_that_no_chunk_answers_is_a_miss_and_not_undefined(name):
    found = ranked(Stored([[3, 2, 1]] * 2), asked("rye", "barley"), chunks_of(WORDS[:3]), answer_matcher(name), 3)
    assert found.reachable == 0.5
    assert HitRate(3).per_unit(found.ranking).tolist() == [1.0, 0.0]
    assert ReciprocalRank().per_unit(found.ranking).tolist() == [1.0, 0.0]
    assert HitRate(3).per_unit(found.ranking.uninformed()).tolist() == [1.0, 0.0]
    assert [holder.tolist() for holder in found.holders] == [[0], []]


def test_the_source_rule_finds_an_answer_across_two_retrieved_chunks():
    texts, fixture = ["dark rye", "bread rolls", "soup"], asked("rye bread")
    found = ranked(Stored([[3, 2, 1]]), fixture, chunks_of(texts), answer_matcher("source"), 2)
    assert [HitRate(k).per_unit(found.ranking).tolist() for k in (1, 2, 3)] == [[0.0], [1.0], [1.0]]
    assert found.reachable == 1.0
    missed = ranked(Stored([[1, 2, 3]]), fixture, chunks_of(texts), answer_matcher("source"), 2)
    assert HitRate(2).per_unit(missed.ranking).tolist() == [0.0]


@pytest.mark.engines("embedding_eval")
@given(CASES, st.integers(1, 12))
def test_the_source_rule_scores_as_the_real_package_does(rng, depth):
    pytest.importorskip("embedding_eval.evaluation")
    from embedding_eval.evaluation.evaluators import BinaryEvaluator

    fixture, chunks, system = random_case(rng, tied=True)
    found = ranked(system, fixture, chunks, answer_matcher("source"), depth)
    for k in range(1, found.order.shape[1] + 1):
        passed = [
            bool(BinaryEvaluator().evaluate("?", each.answer, [chunks[place].text for place in row[:k]]))
            for each, row in zip(fixture, found.order, strict=True)
        ]
        assert HitRate(k).per_unit(found.ranking).tolist() == passed


def test_a_real_system_on_a_real_document():
    document = "Rye bread is dark. Wheat bread is light. Oats make porridge, not bread. Corn becomes polenta."
    chunks = chunker("sentence", max_tokens=6, tokenizer="words").chunk(document)
    fixture = check_questions(
        [{"question": "What is dark?", "answer": "Rye"}, {"question": "porridge?", "answer": "oats"}]
    )
    found = ranked(
        retriever("bm25:").fit([chunk.text for chunk in chunks]), fixture, chunks, answer_matcher("words"), 2
    )
    assert HitRate(1).per_unit(found.ranking).tolist() == [1.0, 1.0]
    assert found.tokens[0].tolist() == np.cumsum([chunks[place].tokens for place in found.order[0]]).tolist()
