"""Answer evidence: ranking, retrieved chunks and tokens of questions."""

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


class StoredScores:
    """A system with given scores, in blocks of two questions that reuse one buffer."""

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


def questions_with(*answers):
    return check_questions(
        {"question": f"Which grain is number {n}?", "answer": answer} for n, answer in enumerate(answers)
    )


def rank(system, questions, chunks, rule, depth):
    return rank_answers(system, questions, chunks, locate_answers(questions, chunks, rule), depth)


def chunks_of(texts):
    return [Chunk(text, 0, len(text), tokens=index + 1) for index, text in enumerate(texts)]


CASES = st.integers(0, 2**32 - 1).map(np.random.default_rng)


def random_case(rng, *, tied=False):
    texts = [" ".join(rng.choice(WORDS, size=rng.integers(1, 4))) for _ in range(rng.integers(1, 9))]
    answers = [str(answer) for answer in rng.choice([*WORDS, "barley", "rye wheat"], size=rng.integers(1, 6))]
    shape = (len(answers), len(texts))
    scores = rng.integers(0, 3, size=shape) if tied else rng.permuted(np.arange(np.prod(shape))).reshape(shape)
    return questions_with(*answers), chunks_of(texts), StoredScores(scores)


@given(CASES, st.integers(1, 12))
def test_hit_rate_at_k_is_whether_one_of_the_first_k_chunks_holds_the_answer(rng, depth):
    fixture, chunks, system = random_case(rng)
    rule = answer_matcher("words")
    result = rank(system, fixture, chunks, rule, depth)
    assert result.order.shape == result.scores.shape == result.tokens.shape == (len(fixture), min(depth, len(chunks)))
    assert list(result.ranking.unit_ids) == [question.id for question in fixture]
    for k in range(1, result.order.shape[1] + 1):
        is_hit = [
            any(rule.holds(question.answer, chunks[index].text) for index in row[:k])
            for question, row in zip(fixture, result.order, strict=True)
        ]
        assert HitRate(k).per_unit(result.ranking).tolist() == is_hit


@given(CASES, st.integers(1, 12))
def test_the_order_is_a_stable_sort_and_tokens_are_cumulative(rng, depth):
    fixture, chunks, system = random_case(rng, tied=True)
    result = rank(system, fixture, chunks, answer_matcher("words"), depth)
    order = np.argsort(-system.scores, axis=1, kind="stable")[:, :depth]
    assert result.order.tolist() == order.tolist()
    assert result.scores.tolist() == np.take_along_axis(system.scores, order, axis=1).tolist()
    assert result.tokens.tolist() == [
        [sum(index + 1 for index in row[: n + 1]) for n in range(len(row))] for row in order
    ]


@given(CASES, st.integers(1, 5))
def test_constant_scores_earn_the_hypergeometric_chance_level(rng, k):
    fixture, chunks, system = random_case(rng)
    constant = rank(StoredScores(np.zeros_like(system.scores)), fixture, chunks, answer_matcher("words"), 3)
    n_holders = np.array([len(holders) for holders in constant.holders])
    distribution = hypergeom(len(chunks), n_holders, min(k, len(chunks)))
    np.testing.assert_allclose(HitRate(k).per_unit(constant.ranking), distribution.sf(0), atol=1e-12)
    untied = rank(system, fixture, chunks, answer_matcher("words"), 3)
    assert HitRate(k).chance(untied.ranking, rng) == pytest.approx(distribution.sf(0).mean())


@pytest.mark.parametrize("name", ["words", "embedding-eval"])
def test_the_chance_level_agrees_with_a_simulation(name):
    rng = np.random.default_rng(7)
    texts = ["rye", "rye and oat", "wheat", "oat", "spelt", "corn", "rye", "millet"]
    fixture, chunks = questions_with("rye", "oat", "millet", "barley"), chunks_of(texts)
    scores = rng.normal(size=(4, 8))
    result = rank(StoredScores(scores), fixture, chunks, answer_matcher(name), 3)
    rule = answer_matcher(name)
    simulated = [
        rule.first_hit(question.answer, [texts[index] for index in rng.permutation(8)[:3]]) is not None
        for _ in range(1000)
        for question in fixture
    ]
    assert HitRate(3).chance(result.ranking, rng) == pytest.approx(np.mean(simulated), abs=0.02)


@pytest.mark.parametrize("name", ["words", "embedding-eval"])
def test_unanswerable_questions_are_misses(name):
    result = rank(
        StoredScores([[3, 2, 1]] * 2), questions_with("rye", "barley"), chunks_of(WORDS[:3]), answer_matcher(name), 3
    )
    assert result.reachable == 0.5
    assert HitRate(3).per_unit(result.ranking).tolist() == [1.0, 0.0]
    assert ReciprocalRank().per_unit(result.ranking).tolist() == [1.0, 0.0]
    assert HitRate(3).per_unit(result.ranking.with_constant_scores()).tolist() == [1.0, 0.0]
    assert [holder.tolist() for holder in result.holders] == [[0], []]


def test_the_source_rule_matches_answers_across_two_retrieved_chunks():
    texts, fixture = ["dark rye", "bread rolls", "soup"], questions_with("rye bread")
    result = rank(StoredScores([[3, 2, 1]]), fixture, chunks_of(texts), answer_matcher("embedding-eval"), 2)
    assert [HitRate(k).per_unit(result.ranking).tolist() for k in (1, 2, 3)] == [[0.0], [1.0], [1.0]]
    assert result.reachable == 1.0
    other_order = rank(StoredScores([[1, 2, 3]]), fixture, chunks_of(texts), answer_matcher("embedding-eval"), 2)
    assert HitRate(2).per_unit(other_order.ranking).tolist() == [0.0]


@pytest.mark.engines("embedding_eval")
@given(CASES, st.integers(1, 12))
def test_the_source_rule_agrees_with_embedding_eval(rng, depth):
    pytest.importorskip("embedding_eval.evaluation")
    from embedding_eval.evaluation.evaluators import BinaryEvaluator

    fixture, chunks, system = random_case(rng, tied=True)
    result = rank(system, fixture, chunks, answer_matcher("embedding-eval"), depth)
    for k in range(1, result.order.shape[1] + 1):
        passed = [
            bool(BinaryEvaluator().evaluate("?", question.answer, [chunks[index].text for index in row[:k]]))
            for question, row in zip(fixture, result.order, strict=True)
        ]
        assert HitRate(k).per_unit(result.ranking).tolist() == passed


def test_bm25_on_a_chunked_document():
    document = "Rye bread is dark. Wheat bread is light. Oats make porridge, not bread. Corn becomes polenta."
    chunks = chunker("sentence", max_tokens=6, tokenizer="words").chunk(document)
    fixture = check_questions(
        [{"question": "What is dark?", "answer": "Rye"}, {"question": "porridge?", "answer": "oats"}]
    )
    result = rank(retriever("bm25:").fit([chunk.text for chunk in chunks]), fixture, chunks, answer_matcher("words"), 2)
    assert HitRate(1).per_unit(result.ranking).tolist() == [1.0, 1.0]
    assert result.tokens[0].tolist() == np.cumsum([chunks[index].tokens for index in result.order[0]]).tolist()
