"""BM25 on words, exact over all documents: the lexical baseline that every comparison should hold.

Ours, and not bm25s, since it needs nothing but numpy and gives float64 scores of all documents, so that equal
documents tie to the last bit. It builds and answers faster than bm25s by default; with numba, bm25s answers
faster once compiled (benchmarks/lexical.py). The tests hold the scores to those of bm25s.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from equipoise.embed.card import Card
from equipoise.embed.lexical.postings import Postings, tally
from equipoise.embed.lexical.words import Lexicon, WordRule, require_texts
from equipoise.embed.options import number_option, refuse_unknown_options
from equipoise.embed.retriever import Blocks, Fitted, Retriever, Scale, fingerprint_of
from equipoise.embed.spec import Spec
from equipoise.errors import ParameterError, UnknownNameError
from equipoise.types import Floats


@dataclass(frozen=True, slots=True)
class Method:
    """One member of the family: the weight of a term by its spread, and of its count in a document.

    ``idf(n, df)`` for n documents of which df hold the term; ``tf(count, norm, k1, delta)`` where norm is
    ``1 - b + b * length / mean length``. A term that the document does not hold adds 0.
    """

    idf: Callable[[int, Floats], Floats]
    tf: Callable[[Floats, Floats, float, float], Floats]
    delta: float = 0.0


METHODS: dict[str, Method] = {
    "lucene": Method(
        lambda n, df: np.log1p((n - df + 0.5) / (df + 0.5)), lambda tf, norm, k1, _: tf / (tf + k1 * norm)
    ),
    "robertson": Method(
        lambda n, df: np.log(np.maximum(1.0, (n - df + 0.5) / (df + 0.5))),
        lambda tf, norm, k1, _: tf / (tf + k1 * norm),
    ),
    "atire": Method(lambda n, df: np.log(n / df), lambda tf, norm, k1, _: tf * (k1 + 1.0) / (tf + k1 * norm)),
    "bm25plus": Method(
        lambda n, df: np.log((n + 1.0) / df),
        lambda tf, norm, k1, delta: delta + tf * (k1 + 1.0) / (tf + k1 * norm),
        delta=1.0,
    ),
    "bm25l": Method(
        lambda n, df: np.log((n + 1.0) / (df + 0.5)),
        lambda tf, norm, k1, delta: (k1 + 1.0) * (tf / norm + delta) / (k1 + tf / norm + delta),
        delta=0.5,
    ),
}
"""Kamphuis et al., ECIR 2020, names the first three; Lv and Zhai, CIKM and SIGIR 2011, the last two."""

OPTIONS = ("method", "k1", "b", "delta", "language", "stemmer", "stopwords")


@dataclass(frozen=True)
class BM25(Retriever):
    """The sum over the query's words of ``idf * tf``; a word that the query has twice counts twice.

    Words are runs of letters, digits and underscores after NFKC and case folding. Nothing is stemmed and no
    word is left out unless ``rule`` says so.
    """

    k1: float = 1.5
    b: float = 0.75
    method: str = "lucene"
    delta: float | None = None
    rule: WordRule = field(default_factory=WordRule)

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise UnknownNameError.of(
                "BM25 method", self.method, METHODS, more=f"there are {', '.join(METHODS)}"
            )
        if not 0.0 <= self.b <= 1.0:
            raise ParameterError(f"b is {self.b} in bm25:", hint="b is 0 (length ignored) to 1")
        if not 0.0 <= self.k1 < np.inf:
            raise ParameterError(f"k1 is {self.k1} in bm25:", hint="k1 is 0 or more; 1.2 to 2 is usual")
        if self.delta is not None and not (self.delta >= 0.0 and METHODS[self.method].delta):
            raise ParameterError(
                f"delta is {self.delta} in bm25:,method={self.method}",
                hint="delta is 0 or more, and only bm25plus and bm25l have one",
            )

    @classmethod
    def from_spec(cls, spec: Spec) -> BM25:
        """From ``bm25:,k1=1.2,method=atire,language=german`` and the like."""
        refuse_unknown_options(spec, OPTIONS)
        given = spec.options
        return cls(
            k1=number_option(spec, "k1", cls.k1),
            b=number_option(spec, "b", cls.b),
            method=given.get("method", cls.method).casefold().replace("+", "plus"),
            delta=number_option(spec, "delta", 0.0) if "delta" in given else None,
            rule=WordRule.of(given.get("language", ""), given.get("stopwords", ""), given.get("stemmer", "")),
        )

    @property
    def card(self) -> Card:
        """Name and parameters; there are no weights and no window."""
        return Card(f"BM25 ({self.method})", str(self._spec()), note="words, exact; scores are not bounded")

    @property
    def scale(self) -> Scale:
        """From 0 upwards, without a bound."""
        return Scale.POSITIVE

    @property
    def fingerprint(self) -> str:
        """Equal for equal scores on any documents."""
        shape = f"{self.method} k1={self.k1!r} b={self.b!r} delta={self._delta!r}"
        return fingerprint_of("bm25 1", shape, self.rule.described())

    def fit(self, documents: Iterable[str]) -> FittedBM25:
        """Count the words and weigh them."""
        documents = require_texts(documents, "documents")
        lexicon = Lexicon(self.rule)
        terms, lengths = lexicon.learn(documents)
        counts = tally(terms, np.repeat(np.arange(len(documents)), lengths), len(documents)).postings
        method, spread = METHODS[self.method], counts.spread
        norm: Floats = 1.0 - self.b + self.b * (lengths / (float(lengths.mean()) or 1.0))
        idf = np.repeat(method.idf(len(documents), spread.astype(np.float64)), spread)
        tf = method.tf(counts.values, norm[counts.documents], self.k1, self._delta)
        return FittedBM25(lexicon, counts.with_values(idf * tf), len(documents))

    @property
    def _delta(self) -> float:
        return METHODS[self.method].delta if self.delta is None else self.delta

    def _spec(self) -> Spec:
        return Spec("bm25", "").with_options(
            k1=None if self.k1 == BM25.k1 else f"{self.k1:g}",
            b=None if self.b == BM25.b else f"{self.b:g}",
            method=None if self.method == BM25.method else self.method,
            delta=self.delta,
            stemmer=self.rule.stemmer or None,
            stopwords=self.rule.stopwords or None,
        )


class FittedBM25(Fitted):
    """Words, and for each the documents with what it adds to their scores."""

    def __init__(self, lexicon: Lexicon, weights: Postings, documents: int) -> None:
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
