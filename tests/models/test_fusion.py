"""Fusions, compared with direct implementations over all documents."""

from __future__ import annotations

from itertools import pairwise, permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise.errors import ParameterError, UnknownNameError
from equipoise.models.fusion import ReciprocalRankFusion, SumFusion, reciprocal_ranks
from equipoise.models.lexical import BM25Retriever, TfidfRetriever
from equipoise.models.registry import parse_fusion, parse_spec
from equipoise.models.retriever import has_lexical_baseline, retriever

DOCUMENTS = ["a red fox", "the blue whale sea", "red sea and fox", "a grey stone", "fox fox fox", "a red fox"]
QUERIES = ["red fox", "blue sea", "unknown", "stone"]


def all_scores(system, queries=QUERIES, **options):
    table = np.full((len(queries), len(DOCUMENTS)), np.nan)
    for rows, scores in retriever(system).fit(DOCUMENTS).score_blocks(queries, **options):
        table[rows] = scores
    return table


def reference_reciprocal_ranks(scores, k):
    """The mean of 1 / (k + rank) over all orders of tied scores."""
    columns = range(len(scores))
    orders = [order for order in permutations(columns) if all(scores[a] >= scores[b] for a, b in pairwise(order))]
    return [np.mean([1 / (k + order.index(column) + 1) for order in orders]) for column in columns]


@settings(deadline=None, max_examples=60)
@given(st.lists(st.integers(0, 3), min_size=1, max_size=6), st.sampled_from([0, 1, 60]))
def test_reciprocal_ranks_of_ties_are_the_mean_over_all_orders(scores, k):
    ranks = reciprocal_ranks(np.array([scores], dtype=float), k)[0]
    assert ranks == pytest.approx(reference_reciprocal_ranks(scores, k), abs=1e-12)


def test_sum_fusion_adds_cosines_and_scaled_bm25_scores():
    cosine, bm25_scores = all_scores("tfidf:"), all_scores("bm25:")
    expected = cosine.copy()
    for row in range(len(QUERIES)):
        if bm25_scores[row].max() > 0:
            expected[row] += bm25_scores[row] / bm25_scores[row].max()
    assert all_scores("sum:tfidf:+bm25:") == pytest.approx(expected, abs=1e-12)


def test_sum_fusion_of_three_systems():
    expected = all_scores("hash:").astype(float) + all_scores("tfidf:") + all_scores("tfidf:,ngrams=2")
    assert all_scores("sum:hash:+tfidf:+tfidf:,ngrams=2") == pytest.approx(expected, abs=1e-12)


def test_reciprocal_ranks_are_added_over_all_documents():
    tables = [all_scores("tfidf:"), all_scores("bm25:")]
    expected = [
        sum(np.array(reference_reciprocal_ranks(table[row], 20)) for table in tables) for row in range(len(QUERIES))
    ]
    assert all_scores("rrf,k=20:tfidf:+bm25:") == pytest.approx(np.array(expected), abs=1e-12)


def test_k_is_an_option_or_part_of_the_spec():
    assert retriever("rrf:tfidf:+bm25:", k=20).fingerprint == retriever("rrf,k=20:tfidf:+bm25:").fingerprint


def test_rank_fusion_does_not_depend_on_the_order_of_systems():
    original, reordered = all_scores("rrf:hash:+tfidf:+bm25:"), all_scores("rrf:bm25:+hash:+tfidf:")
    assert original.tolist() == reordered.tolist()


@pytest.mark.parametrize("kind", ["sum", "rrf"])
def test_equal_documents_tie_under_fusion(kind):
    scores = all_scores(f"{kind}:tfidf:+bm25:+hash:")
    assert scores[:, 0].tolist() == scores[:, 5].tolist()


@pytest.mark.parametrize("kind", ["sum", "rrf"])
def test_scores_do_not_depend_on_the_block_size(kind):
    expected = all_scores(f"{kind}:hash:+bm25:")
    assert all_scores(f"{kind}:hash:+bm25:", block_bytes=1) == pytest.approx(expected, abs=1e-7)


@pytest.mark.parametrize("kind", ["sum", "rrf"])
def test_search_agrees_with_score_blocks(kind):
    fitted = retriever(f"{kind}:tfidf:+bm25:").fit(DOCUMENTS)
    hits = fitted.search(QUERIES, 3)
    order = np.argsort(-all_scores(f"{kind}:tfidf:+bm25:"), axis=1, kind="stable")[:, :3]
    assert hits.indices.tolist() == order.tolist()


def test_systems_of_a_fusion_keep_their_options():
    fusion = retriever("sum:tfidf:,ngrams=2-3+bm25:,k1=1.2,stopwords=the|a|")
    assert [part.card.spec for part in fusion.parts] == ["tfidf,ngrams=2-3", "bm25,k1=1.2,stopwords=the|a|"]


def test_the_spec_of_the_card_gives_the_same_fusion():
    system = retriever("rrf,k=5:tfidf:,ngrams=2-3+bm25:,method=bm25+".replace("bm25+", '"bm25+"'))
    assert retriever(system.card.spec).fingerprint == system.fingerprint


def test_parsed_specs_give_the_same_fusion():
    text = "sum:hash:,dims=128+bm25:"
    assert retriever(parse_spec(text)).fingerprint == retriever(text).fingerprint


def test_quoted_plus_signs_do_not_separate_systems():
    assert parse_fusion('sum:st:"a+b"+bm25:')[2] == ['st:"a+b"', "bm25:"]


@pytest.mark.parametrize(
    ("spec", "fragment"),
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
def test_invalid_fusions_raise_parameter_error(spec, fragment):
    with pytest.raises(ParameterError, match=fragment) as error:
        retriever(spec)
    assert error.value.hint


def test_nested_fusions_and_fusions_of_one_system_raise_parameter_error():
    inner = SumFusion([BM25Retriever(), TfidfRetriever()])
    with pytest.raises(ParameterError) as error:
        ReciprocalRankFusion([inner, BM25Retriever()])
    assert error.value.code == "E310"
    with pytest.raises(ParameterError) as error:
        SumFusion([BM25Retriever()])
    assert error.value.code == "E310"


def test_unknown_kinds_raise_errors_with_a_suggestion():
    with pytest.raises(UnknownNameError, match="bm52") as error:
        retriever("bm52:")
    assert "bm25" in error.value.hint
    with pytest.raises(UnknownNameError, match="bm52"):
        retriever("sum:hash:+bm52:")


def test_only_separate_lexical_systems_are_lexical_baselines():
    assert has_lexical_baseline(["hash:", "tfidf:,ngrams=2"])
    assert has_lexical_baseline([BM25Retriever()])
    assert has_lexical_baseline([parse_spec("bm25")])
    assert not has_lexical_baseline(
        ["hash:", "sum:hash:+bm25:", SumFusion([BM25Retriever(), TfidfRetriever()]), object()]
    )
    assert not has_lexical_baseline([])
