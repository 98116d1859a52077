"""TF-IDF and the cosine: character n-grams inside words by default, a strong baseline for short terms.

Ours, and not scikit-learn's, since n-grams are counted as numbers and never cut out as strings: reading the
documents is several times faster, search about equal (benchmarks/lexical.py). The tests hold the scores to
those of ``TfidfVectorizer``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from equipoise.embed.card import Card
from equipoise.embed.lexical.grams import GramIndex, characters, words
from equipoise.embed.lexical.postings import Postings, tally
from equipoise.embed.lexical.words import Lexicon, WordRule, fold, require_texts
from equipoise.embed.options import refuse_unknown_options
from equipoise.embed.retriever import Blocks, Fitted, Retriever, Scale, fingerprint_of
from equipoise.embed.spec import Spec
from equipoise.errors import ParameterError, UnknownNameError
from equipoise.types import Floats

DEFAULT_NGRAMS = {"char_wb": (3, 5), "word": (1, 1)}
OPTIONS = ("analyzer", "ngrams", "sublinear", "language", "stemmer", "stopwords")
_QUERIES_AT_ONCE = 1024


@dataclass(frozen=True)
class Tfidf(Retriever):
    """The cosine of vectors with ``count * (1 + ln((1 + n) / (1 + df)))`` for each n-gram of a text.

    ``char_wb`` takes the characters of each word with a space on both sides, ``word`` the words of the whole
    text. N-grams that no document has are left out of a query. A text without any scores 0.
    """

    analyzer: str = "char_wb"
    ngrams: tuple[int, int] | None = None
    sublinear: bool = False
    """Whether a count becomes 1 + ln(count)."""
    rule: WordRule = field(default_factory=WordRule)

    def __post_init__(self) -> None:
        if self.analyzer not in DEFAULT_NGRAMS:
            raise UnknownNameError.of(
                "analyzer", self.analyzer, DEFAULT_NGRAMS, more=f"there are {', '.join(DEFAULT_NGRAMS)}"
            )
        shortest, longest = self._lengths
        if not 1 <= shortest <= longest:
            raise ParameterError(f"ngrams is {shortest}-{longest} in tfidf:", hint="write ngrams=3-5")
        if self.analyzer != "word" and self.rule != WordRule():
            raise ParameterError(
                "tfidf: of characters has no stop words and no stemmer", hint="add analyzer=word"
            )

    @classmethod
    def from_spec(cls, spec: Spec) -> Tfidf:
        """From ``tfidf:,ngrams=2-4`` or ``tfidf:,analyzer=word,language=german`` and the like."""
        refuse_unknown_options(spec, OPTIONS)
        given = spec.options
        return cls(
            analyzer=given.get("analyzer", cls.analyzer).casefold(),
            ngrams=_lengths_from(given["ngrams"]) if "ngrams" in given else None,
            sublinear=spec.flag("sublinear", False),
            rule=WordRule.of(given.get("language", ""), given.get("stopwords", ""), given.get("stemmer", "")),
        )

    @property
    def card(self) -> Card:
        """Name and parameters; there are no weights and no window."""
        shortest, longest = self._lengths
        title = f"TF-IDF ({self.analyzer} {shortest}-{longest})"
        return Card(title, str(self._spec()), note="cosine, exact")

    @property
    def scale(self) -> Scale:
        """A cosine, here of vectors without a negative part."""
        return Scale.COSINE

    @property
    def fingerprint(self) -> str:
        """Equal for equal scores on any documents."""
        shape = f"{self.analyzer} {self._lengths} sublinear={self.sublinear}"
        return fingerprint_of("tfidf 1", shape, self.rule.described())

    def fit(self, documents: Iterable[str]) -> FittedTfidf:
        """Count the n-grams, weigh them, and bring every document to length one."""
        documents = require_texts(documents, "documents")
        grams = _Words(self.rule, self._lengths) if self.analyzer == "word" else _Characters(self._lengths)
        counts = grams.learn(documents)
        spread = counts.spread
        idf = 1.0 + np.log((1.0 + len(documents)) / (1.0 + spread))
        weights = self.damped(counts.values) * np.repeat(idf, spread)
        length = np.sqrt(np.bincount(counts.documents, weights**2, minlength=len(documents)))
        weights /= length[counts.documents]
        return FittedTfidf(self, grams, idf, counts.with_values(weights), len(documents))

    def damped(self, counts: Floats) -> Floats:
        """The counts as they are, or one plus their logarithm."""
        return 1.0 + np.log(counts) if self.sublinear else counts

    @property
    def _lengths(self) -> tuple[int, int]:
        return self.ngrams or DEFAULT_NGRAMS[self.analyzer]

    def _spec(self) -> Spec:
        return Spec("tfidf", "").with_options(
            analyzer=None if self.analyzer == Tfidf.analyzer else self.analyzer,
            ngrams=None if self.ngrams is None else "{}-{}".format(*self.ngrams),
            sublinear=True if self.sublinear else None,
            stemmer=self.rule.stemmer or None,
            stopwords=self.rule.stopwords or None,
        )


class FittedTfidf(Fitted):
    """N-grams, and for each the documents with its share of their unit vectors."""

    def __init__(
        self, system: Tfidf, grams: _Words | _Characters, idf: Floats, weights: Postings, documents: int
    ) -> None:
        self.documents = documents
        self._system, self._grams, self._idf, self._weights = system, grams, idf, weights

    def row_blocks(self, queries: Sequence[str], rows: int) -> Blocks:
        """Only documents that share an n-gram are touched; the others score 0."""
        rows = min(rows, len(queries))
        scores = np.empty((rows, self.documents))
        for start in range(0, len(queries), rows):
            part = slice(start, min(start + rows, len(queries)))
            block = scores[: part.stop - start]
            block[:] = 0.0
            for first in range(0, len(block), _QUERIES_AT_ONCE):
                self._fill(
                    block[first : first + _QUERIES_AT_ONCE], queries[part][first : first + _QUERIES_AT_ONCE]
                )
            yield part, block

    def _fill(self, scores: Floats, queries: Sequence[str]) -> None:
        counts = self._grams.look_up(queries)
        weights = self._system.damped(counts.values) * self._idf[counts.documents]
        owner = np.repeat(np.arange(len(queries)), counts.spread)
        length = np.sqrt(np.bincount(owner, weights**2, minlength=len(queries)))
        self._weights.add_to(scores, counts.with_values(weights / length[owner]))


class _Words:
    """N-grams of words."""

    def __init__(self, rule: WordRule, lengths: tuple[int, int]) -> None:
        self._lexicon, self._index = Lexicon(rule), GramIndex(*lengths)

    def learn(self, documents: Sequence[str]) -> Postings:
        """For each n-gram the documents that hold it, with counts."""
        return self._index.learn(words(*self._lexicon.learn(documents)), len(documents))

    def look_up(self, queries: Sequence[str]) -> Postings:
        """For each query its known n-grams, with counts."""
        return self._index.look_up(words(*self._lexicon.look_up(queries)), len(queries))


class _Characters:
    """N-grams of the characters of each word, words being what white space parts."""

    def __init__(self, lengths: tuple[int, int]) -> None:
        self._index = GramIndex(*lengths)

    def learn(self, documents: Sequence[str]) -> Postings:
        """For each n-gram the documents that hold it, with counts; each distinct word is cut up once."""
        lexicon = Lexicon(split=lambda text: fold(text).split())
        numbers, lengths = lexicon.learn(documents)
        spellings = lexicon.terms
        parts = tally(numbers, np.repeat(np.arange(len(documents)), lengths), len(documents)).postings
        return self._index.learn(characters(spellings), len(spellings)).through(parts, len(documents))

    def look_up(self, queries: Sequence[str]) -> Postings:
        """For each query its known n-grams, with counts."""
        return self._index.look_up(characters([fold(text) for text in queries]), len(queries))


def _lengths_from(text: str) -> tuple[int, int]:
    match = re.fullmatch(r"([1-9][0-9]?)(?:-([1-9][0-9]?))?", text)
    if match is None:
        raise ParameterError(
            f"ngrams is {text!r} in tfidf:", hint="write ngrams=3-5, or ngrams=2 for one length"
        )
    return int(match[1]), int(match[2] or match[1])
