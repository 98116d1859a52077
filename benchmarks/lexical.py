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
    """CPU seconds of each; a peer that is not installed has no line."""
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
    """Documents of words by Zipf's law, and the first words of some of them as queries."""
    rng = np.random.default_rng(0)
    letters = np.array(list("etaoinshrdlucmfwypvbgkjqxz"))
    share = np.arange(1, 27) ** -0.7
    sizes = rng.integers(2, 11, 60_000)
    characters = rng.choice(letters, size=int(sizes.sum()), p=share / share.sum())
    vocabulary = np.array(["".join(word) for word in np.split(characters, np.cumsum(sizes)[:-1])], dtype=object)
    rank = 1.0 / np.arange(1, len(vocabulary) + 1)
    lengths = np.maximum(1, rng.poisson(words, count))
    drawn = vocabulary[rng.choice(len(vocabulary), size=int(lengths.sum()), p=rank / rank.sum())]
    documents = [" ".join(document_words) for document_words in np.split(drawn, np.cumsum(lengths)[:-1])]
    return documents, [" ".join(text.split()[:6]) for text in documents[:: max(1, count // 1_000)]]


def by_bm25s(documents: list[str], queries: list[str], quick: bool) -> list[Row]:
    """bm25s as it comes, on numpy, and its search on numba; its scores are float32."""
    import bm25s

    def built() -> Any:
        model = bm25s.BM25()
        tokens = bm25s.tokenize(documents, stopwords=[], token_pattern=WORDS, show_progress=False)
        model.index(tokens, show_progress=False)
        return model

    def asked() -> Any:
        tokens = bm25s.tokenize(queries, stopwords=[], token_pattern=WORDS, show_progress=False, return_ids=False)
        return model.retrieve(tokens, k=K, show_progress=False).scores

    times = 1 if quick else 3
    theirs, model = fastest(built, times=times)
    ours, fitted = fastest(lambda: BM25Retriever().fit(documents), times=times)
    their_search, their_scores = fastest(asked, times=times)
    our_search, hits = fastest(lambda: fitted.search(queries, K), times=times)
    refuse_difference(hits.scores, their_scores, 1e-4, "bm25s")
    size = f"{len(documents):,} documents"
    lines = [
        Row(f"BM25: read and index {size}", ours, "bm25s", theirs, target=1.0),
        Row(
            f"BM25: top {K} of {size}, {len(queries):,} queries",
            our_search,
            "bm25s",
            their_search,
            target=1.0,
        ),
    ]
    if find_spec("numba"):
        model.backend = "numba"
        asked()  # compiles
        compiled, _ = fastest(asked, times=times)
        task = f"BM25: top {K} of {size}, {len(queries):,} queries"
        lines.append(Row(task, our_search, "bm25s with numba, compiled before", compiled))
    return lines


def by_rank_bm25(documents: list[str], queries: list[str]) -> list[Row]:
    """rank_bm25 has no tokenizer and no top-k of its own: split and sort as its page shows."""
    from rank_bm25 import BM25Okapi

    theirs, model = fastest(lambda: BM25Okapi([text.split() for text in documents]), times=1)
    ours, fitted = fastest(lambda: BM25Retriever().fit(documents), times=1)
    their_search, _ = fastest(lambda: [np.argsort(-model.get_scores(q.split()))[:K] for q in queries], times=1)
    our_search, _ = fastest(lambda: fitted.search(queries, K), times=1)
    size = f"{len(documents):,} documents"
    return [
        Row(f"BM25: read and index {size}", ours, "rank_bm25", theirs, target=1.0),
        Row(
            f"BM25: top {K} of {size}, {len(queries):,} queries",
            our_search,
            "rank_bm25",
            their_search,
            target=1.0,
        ),
    ]


def by_scikit_learn(documents: list[str], queries: list[str], kind: str, quick: bool) -> list[Row]:
    """TfidfVectorizer, and the sparse product for search; our selection for both."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    def built() -> Any:
        vectoriser = TfidfVectorizer(analyzer="char_wb", ngram_range=(3, 5))
        return vectoriser, vectoriser.fit_transform(documents).T.tocsr()

    def asked() -> Any:
        vectoriser, table = model
        return top_columns((vectoriser.transform(queries) @ table).toarray(), K)[1]

    times = 1 if quick else 3
    theirs, model = fastest(built, times=times)
    ours, fitted = fastest(lambda: TfidfRetriever().fit(documents), times=times)
    their_search, their_scores = fastest(asked, times=times)
    our_search, hits = fastest(lambda: fitted.search(queries, K), times=times)
    refuse_difference(hits.scores, their_scores, 1e-9, "scikit-learn")
    size = f"{len(documents):,} {kind}"
    peer = "scikit-learn TfidfVectorizer"
    return [
        Row(f"TF-IDF of characters 3-5: read {size}", ours, peer, theirs, target=1.0),
        Row(
            f"TF-IDF: top {K} of {size}, {len(queries):,} queries",
            our_search,
            peer,
            their_search,
            target=1.25,
            goal="within",
        ),
    ]


def refuse_difference(ours: Any, theirs: Any, limit: float, peer: str) -> None:
    """A speed is only worth telling where the scores are the same."""
    gap = float(np.abs(ours - theirs).max())
    if not gap <= limit:
        raise SystemExit(f"scores differ from {peer} by {gap:g}")
