"""BM25 and TF-IDF: indexing and search, compared with bm25s, rank_bm25 and scikit-learn; all give the same hits."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import numpy as np

from benchmarks.row import Row
from benchmarks.timing import fastest
from equipoise.geometry.topk import top_columns
from equipoise.models.lexical import BM25Retriever, TfidfRetriever

WORDS = r"\w+"
K = 10


def rows(quick: bool) -> list[Row]:
    """CPU seconds of each package; peers that are not installed are skipped."""
    long_documents, long_queries = texts(2_000 if quick else 50_000, 60)
    short_documents, short_queries = texts(2_000 if quick else 20_000, 5)
    lines = []
    if find_spec("bm25s"):
        lines += by_bm25s(long_documents, long_queries, quick)
    if find_spec("rank_bm25"):
        lines += by_rank_bm25(long_documents[:5_000], long_queries[:100])
    if find_spec("sklearn"):
        lines += by_scikit_learn(short_documents, short_queries, "short terms", quick)
        lines += by_scikit_learn(long_documents[:10_000], long_queries[:200], "texts", quick)
    return lines


def texts(count: int, words: int) -> tuple[list[str], list[str]]:
    """Documents with words distributed by Zipf's law, and the first words of some of them as queries."""
    rng = np.random.default_rng(0)
    letters = np.array(list("etaoinshrdlucmfwypvbgkjqxz"))
    letter_weights = np.arange(1, 27) ** -0.7
    sizes = rng.integers(2, 11, 60_000)
    characters = rng.choice(letters, size=int(sizes.sum()), p=letter_weights / letter_weights.sum())
    vocabulary = np.array(["".join(word) for word in np.split(characters, np.cumsum(sizes)[:-1])], dtype=object)
    word_weights = 1.0 / np.arange(1, len(vocabulary) + 1)
    lengths = np.maximum(1, rng.poisson(words, count))
    sampled_words = vocabulary[
        rng.choice(len(vocabulary), size=int(lengths.sum()), p=word_weights / word_weights.sum())
    ]
    documents = [" ".join(document_words) for document_words in np.split(sampled_words, np.cumsum(lengths)[:-1])]
    return documents, [" ".join(text.split()[:6]) for text in documents[:: max(1, count // 1_000)]]


def by_bm25s(documents: list[str], queries: list[str], quick: bool) -> list[Row]:
    """bm25s with its default numpy backend, and its search with numba; its scores are float32."""
    import bm25s

    def build() -> Any:
        model = bm25s.BM25()
        tokens = bm25s.tokenize(documents, stopwords=[], token_pattern=WORDS, show_progress=False)
        model.index(tokens, show_progress=False)
        return model

    def search() -> Any:
        tokens = bm25s.tokenize(queries, stopwords=[], token_pattern=WORDS, show_progress=False, return_ids=False)
        return model.retrieve(tokens, k=K, show_progress=False).scores

    times = 1 if quick else 3
    peer_build_seconds, model = fastest(build, times=times)
    build_seconds, fitted = fastest(lambda: BM25Retriever().fit(documents), times=times)
    peer_search_seconds, peer_scores = fastest(search, times=times)
    search_seconds, hits = fastest(lambda: fitted.search(queries, K), times=times)
    check_equal(hits.scores, peer_scores, 1e-4, "bm25s")
    size = f"{len(documents):,} documents"
    lines = [
        Row(f"BM25: read and index {size}", build_seconds, "bm25s", peer_build_seconds, target=1.0),
        Row(
            f"BM25: top {K} of {size}, {len(queries):,} queries",
            search_seconds,
            "bm25s",
            peer_search_seconds,
            target=1.0,
        ),
    ]
    if find_spec("numba"):
        model.backend = "numba"
        search()  # compiles
        compiled_seconds, _ = fastest(search, times=times)
        task = f"BM25: top {K} of {size}, {len(queries):,} queries"
        lines.append(Row(task, search_seconds, "bm25s with numba, compiled before", compiled_seconds))
    return lines


def by_rank_bm25(documents: list[str], queries: list[str]) -> list[Row]:
    """rank_bm25 with split and argsort as in its documentation, because it has no tokenizer and no top-k."""
    from rank_bm25 import BM25Okapi

    peer_build_seconds, model = fastest(lambda: BM25Okapi([text.split() for text in documents]), times=1)
    build_seconds, fitted = fastest(lambda: BM25Retriever().fit(documents), times=1)
    peer_search_seconds, _ = fastest(lambda: [np.argsort(-model.get_scores(q.split()))[:K] for q in queries], times=1)
    search_seconds, _ = fastest(lambda: fitted.search(queries, K), times=1)
    size = f"{len(documents):,} documents"
    return [
        Row(f"BM25: read and index {size}", build_seconds, "rank_bm25", peer_build_seconds, target=1.0),
        Row(
            f"BM25: top {K} of {size}, {len(queries):,} queries",
            search_seconds,
            "rank_bm25",
            peer_search_seconds,
            target=1.0,
        ),
    ]


def by_scikit_learn(documents: list[str], queries: list[str], kind: str, quick: bool) -> list[Row]:
    """TfidfVectorizer and a sparse product for search, with the same top-k selection for both packages."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    def build() -> Any:
        vectoriser = TfidfVectorizer(analyzer="char_wb", ngram_range=(3, 5))
        return vectoriser, vectoriser.fit_transform(documents).T.tocsr()

    def search() -> Any:
        vectoriser, matrix = model
        return top_columns((vectoriser.transform(queries) @ matrix).toarray(), K)[1]

    times = 1 if quick else 3
    peer_build_seconds, model = fastest(build, times=times)
    build_seconds, fitted = fastest(lambda: TfidfRetriever().fit(documents), times=times)
    peer_search_seconds, peer_scores = fastest(search, times=times)
    search_seconds, hits = fastest(lambda: fitted.search(queries, K), times=times)
    check_equal(hits.scores, peer_scores, 1e-9, "scikit-learn")
    size = f"{len(documents):,} {kind}"
    peer = "scikit-learn TfidfVectorizer"
    return [
        Row(f"TF-IDF of characters 3-5: read {size}", build_seconds, peer, peer_build_seconds, target=1.0),
        Row(
            f"TF-IDF: top {K} of {size}, {len(queries):,} queries",
            search_seconds,
            peer,
            peer_search_seconds,
            target=1.25,
            goal="within",
        ),
    ]


def check_equal(our_scores: Any, peer_scores: Any, limit: float, peer: str) -> None:
    """Exit if the scores differ: times are comparable only for equal scores."""
    difference = float(np.abs(our_scores - peer_scores).max())
    if not difference <= limit:
        raise SystemExit(f"scores differ from {peer} by {difference:g}")
