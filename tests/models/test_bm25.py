"""BM25, compared with a direct implementation of the formula and with bm25s."""

from __future__ import annotations

import math
import re
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise.errors import InputError, MissingExtraError, ParameterError, UnknownNameError
from equipoise.models.analyzer import Analyzer
from equipoise.models.lexical import BM25_VARIANTS, BM25Retriever
from equipoise.models.retriever import retriever
from equipoise.types import install_command

DOCUMENTS = [
    "A red fox jumps over the lazy dog, the DOG sleeps",
    "the blue whale swims in the sea",
    "type 2 diabetes mellitus",
    "insulin-dependent diabetes, type 1; juvenile onset of diabetes",
    "chairs and tables",
    "chairs and tables",
    "Straße und Fluß",
]
QUERIES = ["diabetes type 2", "the the dog", "STRASSE", "nothing known here xyz", "chairs sea fox diabetes"]

TEXT = st.lists(st.sampled_from("abcde!"), min_size=1, max_size=8).map(" ".join)
CORPUS = st.lists(TEXT, min_size=1, max_size=8)


def words_of(text):
    return re.findall(r"\w+", text.casefold())


def reference_scores(queries, documents, method="lucene", k1=1.5, b=0.75, delta=None):
    """The definitions, with a loop for each sum."""
    words = [words_of(text) for text in documents]
    n, mean = len(words), sum(map(len, words)) / len(words)
    delta = {"bm25plus": 1.0, "bm25l": 0.5}.get(method, 0.0) if delta is None else delta
    table = np.zeros((len(queries), n))
    for row, query in enumerate(queries):
        for word in words_of(query):
            df = sum(word in document_words for document_words in words)
            for column, document_words in enumerate(words):
                tf = document_words.count(word)
                if tf == 0:
                    continue
                norm = 1 - b + b * len(document_words) / mean
                saturated = tf / (tf + k1 * norm)
                if method == "lucene":
                    table[row, column] += math.log(1 + (n - df + 0.5) / (df + 0.5)) * saturated
                elif method == "robertson":
                    table[row, column] += max(0.0, math.log((n - df + 0.5) / (df + 0.5))) * saturated
                elif method == "atire":
                    table[row, column] += math.log(n / df) * saturated * (k1 + 1)
                elif method == "bm25plus":
                    table[row, column] += math.log((n + 1) / df) * (saturated * (k1 + 1) + delta)
                else:
                    c = tf / norm
                    table[row, column] += math.log((n + 1) / (df + 0.5)) * (k1 + 1) * (c + delta) / (k1 + c + delta)
    return table


def all_scores(fitted, queries, **options):
    table = np.full((len(queries), len(fitted)), np.nan)
    for rows, scores in fitted.score_blocks(queries, **options):
        table[rows] = scores
    return table


@pytest.mark.parametrize("method", BM25_VARIANTS)
@pytest.mark.parametrize(("k1", "b"), [(1.5, 0.75), (0.9, 0.4), (0.0, 0.0), (2.0, 1.0)])
def test_scores_agree_with_the_formula(method, k1, b):
    fitted = BM25Retriever(k1=k1, b=b, method=method).fit(DOCUMENTS)
    assert all_scores(fitted, QUERIES) == pytest.approx(reference_scores(QUERIES, DOCUMENTS, method, k1, b), abs=1e-12)


@settings(deadline=None, max_examples=60)
@given(CORPUS, st.lists(TEXT, min_size=1, max_size=3), st.sampled_from(sorted(BM25_VARIANTS)))
def test_scores_of_any_documents_agree_with_the_formula(documents, queries, method):
    scores = all_scores(BM25Retriever(method=method).fit(documents), queries)
    assert scores == pytest.approx(reference_scores(queries, documents, method), abs=1e-12)


@pytest.mark.parametrize("method", ["lucene", "robertson", "atire"])
def test_scores_agree_with_bm25s(method):
    bm25s = pytest.importorskip("bm25s")
    rng = np.random.default_rng(0)
    names = np.array([f"w{i}" for i in range(300)])
    frequencies = 1 / np.arange(1, 301)
    documents = [
        " ".join(rng.choice(names, size=size, p=frequencies / frequencies.sum())) for size in rng.integers(1, 60, 400)
    ]
    library = bm25s.BM25(k1=1.3, b=0.6, method=method, dtype="float64")
    library.index([text.split() for text in documents], show_progress=False)
    queries = [" ".join(rng.choice(names, size=5)) for _ in range(20)]
    expected = np.array([library.get_scores(query.split()) for query in queries])
    scores = all_scores(BM25Retriever(k1=1.3, b=0.6, method=method).fit(documents), queries)
    assert scores == pytest.approx(expected, abs=1e-6)


@settings(deadline=None, max_examples=50)
@given(CORPUS, TEXT, st.randoms(use_true_random=False))
def test_scores_do_not_depend_on_the_order_of_documents(documents, query, random):
    order = list(range(len(documents)))
    random.shuffle(order)
    original = all_scores(BM25Retriever().fit(documents), [query])[0]
    shuffled = all_scores(BM25Retriever().fit([documents[i] for i in order]), [query])[0]
    assert shuffled.tolist() == original[order].tolist()


@settings(deadline=None, max_examples=50)
@given(CORPUS, TEXT, st.integers(0, 7))
def test_copies_of_a_document_tie(documents, query, index):
    documents = [*documents, documents[index % len(documents)]]
    scores = all_scores(BM25Retriever().fit(documents), [query])[0]
    assert scores[-1] == scores[index % (len(documents) - 1)]


@settings(deadline=None, max_examples=50)
@given(CORPUS, TEXT)
def test_only_documents_with_common_words_score_above_zero(documents, query):
    scores = all_scores(BM25Retriever().fit(documents), [query])[0]
    has_common_word = [bool(set(words_of(text)) & set(words_of(query))) for text in documents]
    assert (scores > 0).tolist() == has_common_word


def test_search_returns_the_best_first_and_ties_by_row():
    hits = BM25Retriever().fit(DOCUMENTS).search(["chairs", "diabetes type 2"], k=3)
    assert hits.indices.tolist() == [[4, 5, 0], [2, 3, 0]]
    assert hits.scores[0, 0] == hits.scores[0, 1] > hits.scores[0, 2] == 0.0


def test_scores_do_not_depend_on_the_block_size():
    fitted = BM25Retriever().fit(DOCUMENTS)
    expected = all_scores(fitted, QUERIES)
    assert all_scores(fitted, QUERIES, block_bytes=1).tolist() == expected.tolist()
    sizes = [rows.stop - rows.start for rows, _ in fitted.score_blocks(QUERIES, block_bytes=2 * 8 * 7)]
    assert sizes == [2, 2, 1]


def test_stop_words_count_neither_as_words_nor_as_length():
    without_stop_words = BM25Retriever().fit(["red fox", "blue whale sea"])
    with_stop_words = BM25Retriever(rule=Analyzer("english")).fit(["the red fox", "the blue whale of the sea"])
    assert all_scores(with_stop_words, ["the red sea"]).tolist() == all_scores(without_stop_words, ["red sea"]).tolist()


def test_stemmers_match_inflected_forms():
    pytest.importorskip("snowballstemmer")
    documents = ["er hat Kopfschmerzen", "der Hund"]
    assert retriever("bm25:").fit(documents).search(["Kopfschmerz"], 1).scores[0, 0] == 0.0
    assert retriever("bm25:,language=de").fit(documents).search(["Kopfschmerz"], 1).indices[0, 0] == 0


def test_custom_stop_words_are_a_list_or_separated_by_bars():
    from_list, from_spec = retriever("bm25:", stopwords=["fox"]), retriever("bm25:,stopwords=fox|")
    assert from_list.fingerprint == from_spec.fingerprint != retriever("bm25:").fingerprint
    assert from_list.fit(["red fox", "fox"]).search(["fox"], 1).scores[0, 0] == 0.0


def test_documents_without_words_are_kept_and_score_zero():
    assert all_scores(BM25Retriever().fit(["!!!", "..."]), ["fox"]).tolist() == [[0.0, 0.0]]


def test_equal_settings_have_equal_fingerprints_and_others_do_not():
    assert retriever("bm25:,k1=1.5").fingerprint == retriever("bm25").fingerprint
    specs = ["bm25:", "bm25:,k1=1.2", "bm25:,b=0.5", "bm25:,method=atire", "bm25:,stopwords=english"]
    assert len({retriever(spec).fingerprint for spec in specs}) == len(specs)


@pytest.mark.parametrize(
    "spec", ["bm25:,k1=1.2,method=bm25+", "bm25:,b=0,stopwords=de", "bm25:,delta=0.25,method=bm25l"]
)
def test_the_spec_of_the_card_gives_the_same_system(spec):
    assert retriever(retriever(spec).card.spec) == retriever(spec)


@pytest.mark.parametrize(
    ("spec", "error_type", "message", "hint"),
    [
        ("bm25:,k=1", ParameterError, "has no option 'k'", "k1"),
        ("bm25:,k1=much", ParameterError, "k1 is 'much'", "number"),
        ("bm25:,k1=-1", ParameterError, "k1 is -1", "0 or more"),
        ("bm25:,b=2", ParameterError, "b is 2", "0"),
        ("bm25:,method=lucine", UnknownNameError, "lucine", "lucene"),
        ("bm25:,delta=1", ParameterError, "delta is 1", "bm25l"),
        ("bm25:,stopwords=englsh", UnknownNameError, "englsh", "english"),
        ("bm25:english", ParameterError, "'english' follows", "comma"),
    ],
)
def test_invalid_options_raise_errors_with_a_hint(spec, error_type, message, hint):
    with pytest.raises(error_type, match=message) as error:
        retriever(spec)
    assert hint in error.value.hint


def test_missing_stemmers_raise_missing_extra_error_with_the_command(monkeypatch):
    monkeypatch.setitem(sys.modules, "snowballstemmer", None)
    with pytest.raises(MissingExtraError, match="snowballstemmer") as error:
        retriever("bm25:,stemmer=english").fit(["a fox"])
    assert error.value.hint == install_command("lexical")


def test_unknown_stemmers_raise_errors_with_a_suggestion():
    pytest.importorskip("snowballstemmer")
    with pytest.raises(UnknownNameError, match="englisch") as error:
        retriever("bm25:,stemmer=englisch").fit(["a fox"])
    assert "english" in error.value.hint


@pytest.mark.parametrize(
    ("documents", "message"),
    [
        ([], "there are no documents"),
        ("a fox", "one text was given"),
        (["a", None], "number 1 of the documents .* type NoneType"),
        (["a", " "], "number 1 of the documents .* is empty"),
        (["a\ud800"], "lone surrogate"),
    ],
)
def test_invalid_documents_raise_input_error(documents, message):
    with pytest.raises(InputError, match=message):
        BM25Retriever().fit(documents)


@pytest.mark.parametrize("k", [0, 3])
def test_invalid_k_raises_parameter_error(k):
    with pytest.raises(ParameterError, match=rf"{k}.*2 documents"):
        BM25Retriever().fit(["a", "b"]).search(["a"], k)


def test_invalid_queries_raise_errors():
    fitted = BM25Retriever().fit(["a", "b"])
    with pytest.raises(InputError):
        fitted.search([], 1)
    with pytest.raises(InputError):
        fitted.score_blocks([])
    with pytest.raises(ParameterError, match="block_bytes is 0"):
        fitted.score_blocks(["a"], block_bytes=0)
