"""Lexical retrievers: BM25 on words, and TF-IDF with cosine on character n-grams or words.

Implemented here instead of scikit-learn, since n-grams are counted as integers and not as strings: reading the
documents is several times faster, search about equal (benchmarks/lexical.py). The tests hold the scores to
those of ``TfidfVectorizer``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.errors import ParameterError, UnknownNameError
from equipoise.models.analyzer import Analyzer, TermVocabulary, check_nonempty_texts, fold_case
from equipoise.models.encoder import ModelCard
from equipoise.models.inverted_index import NgramIndex, Postings, character_symbols, count_terms, word_symbols
from equipoise.models.registry import ModelSpec, check_options, number_option
from equipoise.models.retriever import Blocks, FittedRetriever, Retriever, ScoreScale, content_fingerprint

if TYPE_CHECKING:
    from equipoise.types import Floats


@dataclass(frozen=True, slots=True)
class BM25Variant:
    """One member of the family: the weight of a term by its spread, and of its count in a document.

    ``idf(n, df)`` for n documents of which df hold the term; ``tf(count, norm, k1, delta)`` where norm is
    ``1 - b + b * length / mean length``. A term that the document does not hold adds 0.
    """

    idf: Callable[[int, Floats], Floats]
    tf: Callable[[Floats, Floats, float, float], Floats]
    delta: float = 0.0


BM25_VARIANTS: dict[str, BM25Variant] = {
    "lucene": BM25Variant(
        lambda n, df: np.log1p((n - df + 0.5) / (df + 0.5)), lambda tf, norm, k1, _: tf / (tf + k1 * norm)
    ),
    "robertson": BM25Variant(
        lambda n, df: np.log(np.maximum(1.0, (n - df + 0.5) / (df + 0.5))),
        lambda tf, norm, k1, _: tf / (tf + k1 * norm),
    ),
    "atire": BM25Variant(lambda n, df: np.log(n / df), lambda tf, norm, k1, _: tf * (k1 + 1.0) / (tf + k1 * norm)),
    "bm25plus": BM25Variant(
        lambda n, df: np.log((n + 1.0) / df),
        lambda tf, norm, k1, delta: delta + tf * (k1 + 1.0) / (tf + k1 * norm),
        delta=1.0,
    ),
    "bm25l": BM25Variant(
        lambda n, df: np.log((n + 1.0) / (df + 0.5)),
        lambda tf, norm, k1, delta: (k1 + 1.0) * (tf / norm + delta) / (k1 + tf / norm + delta),
        delta=0.5,
    ),
}
"""Kamphuis et al., ECIR 2020, names the first three; Lv and Zhai, CIKM and SIGIR 2011, the last two."""

BM25_OPTIONS = ("method", "k1", "b", "delta", "language", "stemmer", "stopwords")


@dataclass(frozen=True)
class BM25Retriever(Retriever):
    """The sum over the query's words of ``idf * tf``; a word that the query has twice counts twice.

    Words are runs of letters, digits and underscores after NFKC and case folding. Nothing is stemmed and no
    word is left out unless ``rule`` keeps it.
    """

    k1: float = 1.5
    b: float = 0.75
    method: str = "lucene"
    delta: float | None = None
    rule: Analyzer = field(default_factory=Analyzer)

    def __post_init__(self) -> None:
        if self.method not in BM25_VARIANTS:
            raise UnknownNameError.of(
                "BM25 method", self.method, BM25_VARIANTS, more=f"there are {', '.join(BM25_VARIANTS)}"
            )
        if not 0.0 <= self.b <= 1.0:
            raise ParameterError(f"b is {self.b} in bm25:", hint="b is 0 (length ignored) to 1")
        if not 0.0 <= self.k1 < np.inf:
            raise ParameterError(f"k1 is {self.k1} in bm25:", hint="k1 is 0 or more; 1.2 to 2 is usual")
        if self.delta is not None and not (self.delta >= 0.0 and BM25_VARIANTS[self.method].delta):
            raise ParameterError(
                f"delta is {self.delta} in bm25:,method={self.method}",
                hint="delta is 0 or more, and only bm25plus and bm25l have one",
            )

    @classmethod
    def from_spec(cls, spec: ModelSpec) -> BM25Retriever:
        """From ``bm25:,k1=1.2,method=atire,language=german`` and the like."""
        check_options(spec, BM25_OPTIONS)
        options = spec.options
        return cls(
            k1=number_option(spec, "k1", cls.k1),
            b=number_option(spec, "b", cls.b),
            method=options.get("method", cls.method).casefold().replace("+", "plus"),
            delta=number_option(spec, "delta", 0.0) if "delta" in options else None,
            rule=Analyzer.of(options.get("language", ""), options.get("stopwords", ""), options.get("stemmer", "")),
        )

    @property
    def card(self) -> ModelCard:
        """Name and parameters; there are no weights and no window."""
        return ModelCard(f"BM25 ({self.method})", str(self._spec()), note="words, exact; scores are not bounded")

    @property
    def scale(self) -> ScoreScale:
        """From 0 upwards, without a bound."""
        return ScoreScale.POSITIVE

    @property
    def fingerprint(self) -> str:
        """Equal for equal scores on any documents."""
        shape = f"{self.method} k1={self.k1!r} b={self.b!r} delta={self._delta!r}"
        return content_fingerprint("bm25 1", shape, self.rule.described())

    def fit(self, documents: Iterable[str]) -> FittedBM25:
        """Count the words and weigh them."""
        documents = check_nonempty_texts(documents, "documents")
        lexicon = TermVocabulary(self.rule)
        terms, lengths = lexicon.learn(documents)
        counts = count_terms(terms, np.repeat(np.arange(len(documents)), lengths), len(documents)).postings
        method, spread = BM25_VARIANTS[self.method], counts.spread
        norm: Floats = 1.0 - self.b + self.b * (lengths / (float(lengths.mean()) or 1.0))
        idf = np.repeat(method.idf(len(documents), spread.astype(np.float64)), spread)
        tf = method.tf(counts.values, norm[counts.documents], self.k1, self._delta)
        return FittedBM25(lexicon, counts.with_values(idf * tf), len(documents))

    @property
    def _delta(self) -> float:
        return BM25_VARIANTS[self.method].delta if self.delta is None else self.delta

    def _spec(self) -> ModelSpec:
        return ModelSpec("bm25", "").with_options(
            k1=None if self.k1 == BM25Retriever.k1 else f"{self.k1:g}",
            b=None if self.b == BM25Retriever.b else f"{self.b:g}",
            method=None if self.method == BM25Retriever.method else self.method,
            delta=self.delta,
            stemmer=self.rule.stemmer or None,
            stopwords=self.rule.stopwords or None,
        )


class FittedBM25(FittedRetriever):
    """Words, and for each the documents with what it adds to their scores."""

    def __init__(self, lexicon: TermVocabulary, weights: Postings, documents: int) -> None:
        self.documents = documents
        self._lexicon, self._weights = lexicon, weights

    def row_blocks(self, queries: Sequence[str], rows: int) -> Blocks:
        """Only documents that share a word are touched; the others score 0."""
        scores = np.empty((min(rows, len(queries)), self.documents))
        for start in range(0, len(queries), rows):
            part = slice(start, min(start + rows, len(queries)))
            block = scores[: part.stop - start]
            block[:] = 0.0
            terms, lengths = self._lexicon.look_up(queries[part])
            # Each word once for every time the query has it, in the order of the query: the order of the
            # documents, which numbers the terms, cannot change a bit of a sum.
            words = Postings(np.append(0, np.cumsum(lengths)), terms.astype(np.int32), np.ones(len(terms)))
            self._weights.add_to(block, words)
            yield part, block


DEFAULT_NGRAMS = {"char_wb": (3, 5), "word": (1, 1)}
TFIDF_OPTIONS = ("analyzer", "ngrams", "sublinear", "language", "stemmer", "stopwords")
_QUERY_BATCH = 1024


@dataclass(frozen=True)
class TfidfRetriever(Retriever):
    """The cosine of vectors with ``count * (1 + ln((1 + n) / (1 + df)))`` for each n-gram of a text.

    ``char_wb`` takes the characters of each word with a space on both sides, ``word`` the words of the
    text. N-grams that no document has are left out of a query. A text without any scores 0.
    """

    analyzer: str = "char_wb"
    ngrams: tuple[int, int] | None = None
    sublinear: bool = False
    """Whether a count becomes 1 + ln(count)."""
    rule: Analyzer = field(default_factory=Analyzer)

    def __post_init__(self) -> None:
        if self.analyzer not in DEFAULT_NGRAMS:
            raise UnknownNameError.of(
                "analyzer", self.analyzer, DEFAULT_NGRAMS, more=f"there are {', '.join(DEFAULT_NGRAMS)}"
            )
        shortest, longest = self._lengths
        if not 1 <= shortest <= longest:
            raise ParameterError(f"ngrams is {shortest}-{longest} in tfidf:", hint="write ngrams=3-5")
        if self.analyzer != "word" and self.rule != Analyzer():
            raise ParameterError("tfidf: of characters has no stop words and no stemmer", hint="add analyzer=word")

    @classmethod
    def from_spec(cls, spec: ModelSpec) -> TfidfRetriever:
        """From ``tfidf:,ngrams=2-4`` or ``tfidf:,analyzer=word,language=german`` and the like."""
        check_options(spec, TFIDF_OPTIONS)
        options = spec.options
        return cls(
            analyzer=options.get("analyzer", cls.analyzer).casefold(),
            ngrams=_lengths_from(options["ngrams"]) if "ngrams" in options else None,
            sublinear=spec.flag("sublinear", False),
            rule=Analyzer.of(options.get("language", ""), options.get("stopwords", ""), options.get("stemmer", "")),
        )

    @property
    def card(self) -> ModelCard:
        """Name and parameters; there are no weights and no window."""
        shortest, longest = self._lengths
        title = f"TF-IDF ({self.analyzer} {shortest}-{longest})"
        return ModelCard(title, str(self._spec()), note="cosine, exact")

    @property
    def scale(self) -> ScoreScale:
        """A cosine, here of vectors without a negative part."""
        return ScoreScale.COSINE

    @property
    def fingerprint(self) -> str:
        """Equal for equal scores on any documents."""
        shape = f"{self.analyzer} {self._lengths} sublinear={self.sublinear}"
        return content_fingerprint("tfidf 1", shape, self.rule.described())

    def fit(self, documents: Iterable[str]) -> FittedTfidf:
        """Count and weight the n-grams, and normalise every document to length one."""
        documents = check_nonempty_texts(documents, "documents")
        grams = _Words(self.rule, self._lengths) if self.analyzer == "word" else _Characters(self._lengths)
        counts = grams.learn(documents)
        spread = counts.spread
        idf = 1.0 + np.log((1.0 + len(documents)) / (1.0 + spread))
        weights = self.damped(counts.values) * np.repeat(idf, spread)
        length = np.sqrt(np.bincount(counts.documents, weights**2, minlength=len(documents)))
        weights /= length[counts.documents]
        return FittedTfidf(self, grams, idf, counts.with_values(weights), len(documents))

    def from_arrays(self, arrays: Mapping[str, Any], documents: int) -> FittedTfidf:
        """The fitted system that ``FittedTfidf.to_arrays`` was called on; nothing is read or counted again."""
        weights = Postings(arrays["starts"], arrays["documents"], arrays["values"])
        grams = _Characters(self._lengths, NgramIndex.from_arrays(self._lengths, arrays))
        return FittedTfidf(self, grams, arrays["idf"], weights, documents)

    def damped(self, counts: Floats) -> Floats:
        """The counts as they are, or one plus their logarithm."""
        return 1.0 + np.log(counts) if self.sublinear else counts

    @property
    def _lengths(self) -> tuple[int, int]:
        return self.ngrams or DEFAULT_NGRAMS[self.analyzer]

    def _spec(self) -> ModelSpec:
        return ModelSpec("tfidf", "").with_options(
            analyzer=None if self.analyzer == TfidfRetriever.analyzer else self.analyzer,
            ngrams=None if self.ngrams is None else "{}-{}".format(*self.ngrams),
            sublinear=True if self.sublinear else None,
            stemmer=self.rule.stemmer or None,
            stopwords=self.rule.stopwords or None,
        )


class FittedTfidf(FittedRetriever):
    """N-grams, and for each the documents with its share of their unit vectors."""

    def __init__(
        self,
        system: TfidfRetriever,
        grams: _Words | _Characters,
        idf: Floats,
        weights: Postings,
        documents: int,
    ) -> None:
        self.documents = documents
        self._system, self._grams, self._idf, self._weights = system, grams, idf, weights

    def to_arrays(self) -> dict[str, Any] | None:
        """Everything that was learned, as arrays; None for n-grams of words, whose vocabulary is no array."""
        if not isinstance(self._grams, _Characters):
            return None
        weights = self._weights
        postings = {"starts": weights.starts, "documents": weights.documents, "values": weights.values}
        return {**self._grams.index.to_arrays(), **postings, "idf": self._idf}

    def document_matrix(self) -> Any:
        """The documents as rows of length one of a sparse matrix (documents, n-grams)."""
        from scipy.sparse import csc_array

        weights, shape = self._weights, (self.documents, len(self._weights.starts) - 1)
        index = np.int32 if len(weights.values) < 1 << 31 else np.int64  # scikit-learn wants the smaller one
        documents, starts = weights.documents.astype(index), weights.starts.astype(index)
        return csc_array((weights.values, documents, starts), shape=shape).tocsr()

    def row_blocks(self, queries: Sequence[str], rows: int) -> Blocks:
        """Only documents that share an n-gram are touched; the others score 0."""
        rows = min(rows, len(queries))
        scores = np.empty((rows, self.documents))
        for start in range(0, len(queries), rows):
            part = slice(start, min(start + rows, len(queries)))
            block = scores[: part.stop - start]
            block[:] = 0.0
            for first in range(0, len(block), _QUERY_BATCH):
                self._fill(block[first : first + _QUERY_BATCH], queries[part][first : first + _QUERY_BATCH])
            yield part, block

    def _fill(self, scores: Floats, queries: Sequence[str]) -> None:
        counts = self._grams.look_up(queries)
        weights = self._system.damped(counts.values) * self._idf[counts.documents]
        owner = np.repeat(np.arange(len(queries)), counts.spread)
        length = np.sqrt(np.bincount(owner, weights**2, minlength=len(queries)))
        self._weights.add_to(scores, counts.with_values(weights / length[owner]))


class _Words:
    """N-grams of words."""

    def __init__(self, rule: Analyzer, lengths: tuple[int, int]) -> None:
        self._lexicon, self._index = TermVocabulary(rule), NgramIndex(*lengths)

    def learn(self, documents: Sequence[str]) -> Postings:
        """For each n-gram the documents that hold it, with counts."""
        return self._index.learn(word_symbols(*self._lexicon.learn(documents)), len(documents))

    def look_up(self, queries: Sequence[str]) -> Postings:
        """For each query its known n-grams, with counts."""
        return self._index.look_up(word_symbols(*self._lexicon.look_up(queries)), len(queries))


class _Characters:
    """N-grams of the characters of each word, words being what white space parts."""

    def __init__(self, lengths: tuple[int, int], index: NgramIndex | None = None) -> None:
        self.index = index or NgramIndex(*lengths)

    def learn(self, documents: Sequence[str]) -> Postings:
        """For each n-gram the documents that hold it, with counts; each distinct word is split once."""
        lexicon = TermVocabulary(split=lambda text: fold_case(text).split())
        numbers, lengths = lexicon.learn(documents)
        spellings = lexicon.terms
        parts = count_terms(numbers, np.repeat(np.arange(len(documents)), lengths), len(documents)).postings
        return self.index.learn(character_symbols(spellings), len(spellings)).through(parts, len(documents))

    def look_up(self, queries: Sequence[str]) -> Postings:
        """For each query its known n-grams, with counts."""
        return self.index.look_up(character_symbols([fold_case(text) for text in queries]), len(queries))


def _lengths_from(text: str) -> tuple[int, int]:
    match = re.fullmatch(r"([1-9][0-9]?)(?:-([1-9][0-9]?))?", text)
    if match is None:
        raise ParameterError(f"ngrams is {text!r} in tfidf:", hint="write ngrams=3-5, or ngrams=2 for one length")
    return int(match[1]), int(match[2] or match[1])
