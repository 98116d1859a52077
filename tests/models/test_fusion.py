"""Fusions against slow code, over all documents."""

from __future__ import annotations

from itertools import pairwise, permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise.errors import ParameterError, UnknownNameError
from equipoise.models.fusion import ReciprocalRankFusion, SumFusion, parse_fusion, reciprocal_ranks
from equipoise.models.lexical import BM25Retriever, TfidfRetriever
from equipoise.models.registry import parse_spec
from equipoise.models.retriever import has_lexical_baseline, retriever

DOCUMENTS = ["a red fox", "the blue whale sea", "red sea and fox", "a grey stone", "fox fox fox", "a red fox"]
QUERIES = ["red fox", "blue sea", "unknown", "stone"]


def all_scores(system, queries=QUERIES, **options):
    table = np.full((len(queries), len(DOCUMENTS)), np.nan)
    for rows, scores in retriever(system).fit(DOCUMENTS).score_blocks(queries, **options):
        table[rows] = scores
    return table


def slow_reciprocal_ranks(scores, k):
    """The mean of 1 / (k + rank) over all orders of equal scores, one order at a time."""
    columns = range(len(scores))
    orders = [order for order in permutations(columns) if all(scores[a] >= scores[b] for a, b in pairwise(order))]
    return [np.mean([1 / (k + order.index(column) + 1) for order in orders]) for column in columns]


@settings(deadline=None, max_examples=60)
@given(st.lists(st.integers(0, 3), min_size=1, max_size=6), st.sampled_from([0, 1, 60]))
def test_equal_scores_share_the_expectation_over_their_orders(scores, k):
    found = reciprocal_ranks(np.array([scores], dtype=float), k)[0]
    assert found == pytest.approx(slow_reciprocal_ranks(scores, k), abs=1e-12)


def test_the_sum_adds_cosines_and_bm25_over_its_largest():
    cosine, words = all_scores("tfidf:"), all_scores("bm25:")
    expected = cosine.copy()
    for row in range(len(QUERIES)):
        if words[row].max() > 0:
            expected[row] += words[row] / words[row].max()
    assert all_scores("sum:tfidf:+bm25:") == pytest.approx(expected, abs=1e-12)


def test_three_parts_are_added_like_two():
    expected = all_scores("hash:").astype(float) + all_scores("tfidf:") + all_scores("tfidf:,ngrams=2")
    assert all_scores("sum:hash:+tfidf:+tfidf:,ngrams=2") == pytest.approx(expected, abs=1e-12)


def test_reciprocal_ranks_are_added_over_all_documents():
    parts = [all_scores("tfidf:"), all_scores("bm25:")]
    expected = [sum(np.array(slow_reciprocal_ranks(part[row], 20)) for part in parts) for row in range(len(QUERIES))]
    assert all_scores("rrf,k=20:tfidf:+bm25:") == pytest.approx(np.array(expected), abs=1e-12)


def test_k_may_be_given_beside_the_spec():
    assert retriever("rrf:tfidf:+bm25:", k=20).fingerprint == retriever("rrf,k=20:tfidf:+bm25:").fingerprint


def test_the_order_of_the_parts_changes_no_bit_of_a_rank_fusion():
    straight, turned = all_scores("rrf:hash:+tfidf:+bm25:"), all_scores("rrf:bm25:+hash:+tfidf:")
    assert straight.tolist() == turned.tolist()


@pytest.mark.parametrize("kind", ["sum", "rrf"])
def test_equal_documents_tie_under_fusion(kind):
    scores = all_scores(f"{kind}:tfidf:+bm25:+hash:")
    assert scores[:, 0].tolist() == scores[:, 5].tolist()


@pytest.mark.parametrize("kind", ["sum", "rrf"])
def test_blocks_of_any_size_hold_the_same_scores(kind):
    whole = all_scores(f"{kind}:hash:+bm25:")
    assert all_scores(f"{kind}:hash:+bm25:", block_bytes=1) == pytest.approx(whole, abs=1e-7)


@pytest.mark.parametrize("kind", ["sum", "rrf"])
def test_search_agrees_with_the_blocks(kind):
    fitted = retriever(f"{kind}:tfidf:+bm25:").fit(DOCUMENTS)
    found = fitted.search(QUERIES, 3)
    order = np.argsort(-all_scores(f"{kind}:tfidf:+bm25:"), axis=1, kind="stable")[:, :3]
    assert found.indices.tolist() == order.tolist()


def test_a_part_of_a_fusion_keeps_its_own_options():
    fusion = retriever("sum:tfidf:,ngrams=2-3+bm25:,k1=1.2,stopwords=the|a|")
    assert [part.card.spec for part in fusion.parts] == ["tfidf,ngrams=2-3", "bm25,k1=1.2,stopwords=the|a|"]


def test_the_spec_of_the_card_makes_the_same_fusion():
    system = retriever("rrf,k=5:tfidf:,ngrams=2-3+bm25:,method=bm25+".replace("bm25+", '"bm25+"'))
    assert retriever(system.card.spec).fingerprint == system.fingerprint


def test_a_parsed_spec_is_fused_as_it_was_written():
    text = "sum:hash:,dims=128+bm25:"
    assert retriever(parse_spec(text)).fingerprint == retriever(text).fingerprint


def test_plus_signs_in_quotes_do_not_part():
    assert parse_fusion('sum:st:"a+b"+bm25:')[2] == ['st:"a+b"', "bm25:"]


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        ("sum:bm25:", "not a list of two or more"),
        ("sum:", "not a list of two or more"),
        ("sum:bm25:+", "not a list of two or more"),
        ("sum:bm25:++tfidf:", "not a list of two or more"),
        ("sum:bm25:+rrf:tfidf:+hash:", "cannot be nested"),
        ("sum,k=3:bm25:+tfidf:", "sum: has no option 'k'"),
        ("rrf,kk=3:bm25:+tfidf:", "rrf: has no option 'kk'"),
        ("rrf,k=x:bm25:+tfidf:", "k is 'x'"),
        ("rrf,k=-1:bm25:+tfidf:", "k is -1"),
        ("sum:hash:,geometry=euclidean+bm25:", "no scale"),
    ],
)
def test_wrong_fusions_are_refused_in_a_sentence(spec, sentence):
    with pytest.raises(ParameterError, match=sentence) as caught:
        retriever(spec)
    assert caught.value.hint


def test_made_fusions_cannot_be_nested_or_have_one_part():
    inner = SumFusion([BM25Retriever(), TfidfRetriever()])
    with pytest.raises(ParameterError, match="nested"):
        ReciprocalRankFusion([inner, BM25Retriever()])
    with pytest.raises(ParameterError, match="1 parts"):
        SumFusion([BM25Retriever()])


def test_unknown_kinds_get_a_did_you_mean():
    with pytest.raises(UnknownNameError, match="bm52") as caught:
        retriever("bm52:")
    assert "bm25" in caught.value.hint
    with pytest.raises(UnknownNameError, match="bm52"):
        retriever("sum:hash:+bm52:")


def test_a_lexical_baseline_is_a_lexical_system_by_itself():
    assert has_lexical_baseline(["hash:", "tfidf:,ngrams=2"])
    assert has_lexical_baseline([BM25Retriever()])
    assert has_lexical_baseline([parse_spec("bm25")])
    assert not has_lexical_baseline(
        ["hash:", "sum:hash:+bm25:", SumFusion([BM25Retriever(), TfidfRetriever()]), object()]
    )
    assert not has_lexical_baseline([])
