"""Lexical retrievers: BM25 on words, and TF-IDF with cosine on character n-grams or words.

Implemented here instead of scikit-learn, since n-grams are counted as integers and not as strings: reading the
documents is several times faster, search about equal (benchmarks/lexical.py). The tests hold the scores to
those of ``TfidfVectorizer``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from equipoise.errors import ParameterError, UnknownNameError
from equipoise.models.analyzer import Analyzer, TermVocabulary, check_nonempty_texts, fold_case
from equipoise.models.encoder import ModelCard
from equipoise.models.registry import ModelSpec, check_nameless, number_option
from equipoise.models.retriever import Blocks, FittedRetriever, Retriever, ScoreScale, content_fingerprint

if TYPE_CHECKING:
    from equipoise.types import Floats, Ints

# Postings: for every term the documents that contain it, with a weight each.

_INT64 = 2**63

_FREQUENT = 512
"""Document frequency from which a term is added by a separate call; rarer terms are added in batches."""

_RARE_BATCH = 1024


@dataclass(frozen=True, slots=True)
class Postings:
    """The documents of term t are at ``starts[t]`` to ``starts[t + 1]``, each with a value."""

    starts: Ints
    documents: NDArray[np.int32]
    values: Floats

    @property
    def spread(self) -> Ints:
        """In how many documents each term occurs."""
        return np.diff(self.starts)

    def with_values(self, values: Floats) -> Postings:
        """The same documents with other numbers."""
        return Postings(self.starts, self.documents, values)

    def through(self, parts: Postings, count: int) -> Postings:
        """Counts of terms in texts from their counts in distinct parts, such as words.

        ``self`` has the parts of each term, ``parts`` the ``count`` wholes that each part occurs in. The
        documents of a term are unordered.
        """
        from scipy.sparse import csr_array

        inner = len(parts.starts) - 1
        left = csr_array((self.values, self.documents, self.starts), shape=(len(self.starts) - 1, inner))
        right = csr_array((parts.values, parts.documents, parts.starts), shape=(inner, count))
        product = left @ right
        return Postings(product.indptr.astype(np.int64), product.indices, product.data)

    def add_to(self, scores: Floats, queries: Postings) -> None:
        """Add ``weight * value`` to the scores (queries, documents) of all that hold a query's terms.

        ``queries`` has the terms and weights of each query. The sums run in a fixed order of its terms, the
        frequent ones first, so equal documents have equal scores to the last bit.
        """
        owners = np.repeat(np.arange(len(scores)), queries.spread)
        sizes = self.spread[queries.documents]
        frequent = np.flatnonzero(sizes >= _FREQUENT)
        for owner, term, weight in zip(
            owners[frequent].tolist(),
            queries.documents[frequent].tolist(),
            queries.values[frequent].tolist(),
            strict=True,
        ):
            part = slice(self.starts[term], self.starts[term + 1])
            np.add.at(scores[owner], self.documents[part], weight * self.values[part])
        rare = np.flatnonzero(sizes < _FREQUENT)
        for batch in np.split(rare, np.arange(_RARE_BATCH, len(rare), _RARE_BATCH)):
            size = sizes[batch]
            start = self.starts[queries.documents[batch]]
            postings = np.repeat(start - np.cumsum(size) + size, size) + np.arange(int(size.sum()))
            columns = np.repeat(owners[batch] * scores.shape[1], size) + self.documents[postings]
            np.add.at(scores.reshape(-1), columns, np.repeat(queries.values[batch], size) * self.values[postings])


@dataclass(frozen=True, slots=True)
class TermCounts:
    """The number of occurrences of each key in each group, and the keys; ascending by key, then by group."""

    keys: Ints
    postings: Postings


def count_terms(keys: Ints, groups: Ints, count: int) -> TermCounts:
    """Count equal pairs of a key (0 or more) and a group (below ``count``): one sort, then run lengths.

    >>> counted = count_terms(np.array([7, 3, 7]), np.array([0, 1, 0]), 2)
    >>> counted.keys.tolist(), counted.postings.documents.tolist(), counted.postings.values.tolist()
    ([3, 7], [1, 0], [1.0, 2.0])
    """
    distinct: Ints | None = None
    if int(keys.max(initial=0)) >= _INT64 // count - 1:
        distinct, keys = np.unique(keys, return_inverse=True)
    pairs = keys * count
    pairs += groups
    pairs.sort()
    firsts = np.flatnonzero(np.diff(pairs, prepend=-1))
    repeats = np.diff(firsts, append=len(pairs)).astype(np.float64)
    terms, documents = np.divmod(pairs[firsts], count)
    edges = np.flatnonzero(np.diff(terms, prepend=-1))
    starts = np.append(edges, len(terms))
    present = terms[edges] if distinct is None else distinct
    return TermCounts(present, Postings(starts, documents.astype(np.int32), repeats))


_MAX_CODE = 2**62


@dataclass(frozen=True, slots=True)
class SymbolSequence:
    """Texts as one array of numbers. An n-gram is within one run: a padded word, or the full text."""

    symbols: Ints
    left: Ints
    """The number of symbols from this one to the end of the run."""
    texts: Ints
    """The text that each symbol belongs to."""
    whole_short_runs: bool = False
    """Whether a run shorter than the shortest n-gram counts once."""


def character_symbols(folded: Sequence[str]) -> SymbolSequence:
    """The characters of folded texts, each word a run with one space before and one after it."""
    padded = [f" {'  '.join(words)} " if (words := text.split()) else "" for text in folded]
    symbols = np.frombuffer("".join(padded).encode("utf-32-le"), dtype=np.uint32)
    spaces = np.flatnonzero(symbols == ord(" "))
    lengths = spaces[1::2] - spaces[0::2] + 1
    left = np.repeat(spaces[1::2] + 1, lengths) - np.arange(len(symbols))
    texts = np.repeat(np.arange(len(padded)), [len(text) for text in padded])
    return SymbolSequence(symbols.astype(np.int64), left, texts, whole_short_runs=True)


def word_symbols(numbers: Ints, lengths: Ints) -> SymbolSequence:
    """The words of texts by their numbers, each text a run."""
    left = np.repeat(np.cumsum(lengths), lengths) - np.arange(len(numbers))
    return SymbolSequence(numbers, left, np.repeat(np.arange(len(lengths)), lengths))


class NgramIndex:
    """The distinct n-grams of some texts, and the texts that contain them. A key is a number in base alphabet size + 1.

    Where the next digit would no longer fit 63 bits, the keys so far are replaced by their rank among those
    that the texts hold: exact for any alphabet and length.
    """

    def __init__(self, shortest: int, longest: int) -> None:
        self.lengths = (shortest, longest)
        self._alphabet = np.empty(0, dtype=np.int64)
        self._ranks: dict[int, Ints] = {}
        self._keys: dict[int, Ints] = {}
        self._offsets: dict[int, int] = {}

    def learn(self, symbols: SymbolSequence, texts: int) -> Postings:
        """Number the n-grams of the texts, by length and then by symbols, and count them in each text."""
        self._alphabet = np.flatnonzero(np.bincount(symbols.symbols))
        starts, documents, values = [np.zeros(1, dtype=np.int64)], [], []
        terms = entries = 0
        for length, keys, owners in self._grams(symbols, self._learned_rank):
            counted = count_terms(keys, owners, texts)
            self._keys[length], self._offsets[length] = counted.keys, terms
            terms += len(counted.keys)
            starts.append(counted.postings.starts[1:] + entries)
            entries += len(counted.postings.values)
            documents.append(counted.postings.documents)
            values.append(counted.postings.values)
        return Postings(np.concatenate(starts), np.concatenate(documents), np.concatenate(values))

    def look_up(self, symbols: SymbolSequence, texts: int) -> Postings:
        """For each of some other texts its known n-grams by number, with their counts."""
        terms, owners = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int64)]
        for length, keys, texts_of_grams in self._grams(symbols, self._known_rank):
            if length in self._keys:
                position = _find(self._keys[length], keys)
                terms.append(position[position >= 0] + self._offsets[length])
                owners.append(texts_of_grams[position >= 0])
        count = sum(map(len, self._keys.values()))
        counted = count_terms(np.concatenate(owners), np.concatenate(terms), max(1, count))
        ends = np.searchsorted(counted.keys, np.arange(texts + 1))
        return Postings(counted.postings.starts[ends], counted.postings.documents, counted.postings.values)

    def to_arrays(self) -> dict[str, Ints]:
        """The n-grams as arrays, from which ``from_arrays`` makes an equal index."""
        ranks = {f"ranks_{length}": values for length, values in self._ranks.items()}
        keys = {f"keys_{length}": values for length, values in self._keys.items()}
        return {"alphabet": self._alphabet, **ranks, **keys}

    @classmethod
    def from_arrays(cls, lengths: tuple[int, int], arrays: Mapping[str, Ints]) -> NgramIndex:
        """The index that ``to_arrays`` was called on."""
        index = cls(*lengths)
        index._alphabet = arrays["alphabet"]
        terms = 0
        for length in range(1, lengths[1] + 1):
            if f"ranks_{length}" in arrays:
                index._ranks[length] = arrays[f"ranks_{length}"]
            if f"keys_{length}" in arrays:
                index._keys[length], index._offsets[length] = arrays[f"keys_{length}"], terms
                terms += len(arrays[f"keys_{length}"])
        return index

    def _grams(self, symbols: SymbolSequence, rank: Callable[[int, Ints], Ints]) -> Iterator[tuple[int, Ints, Ints]]:
        """For each length the keys of all n-grams and the texts that contain them."""
        base = len(self._alphabet) + 1
        # Zero is the digit of a symbol that was never learned: no learned key has it.
        digits = self._digits(symbols.symbols)
        first = np.diff(symbols.left, prepend=0) >= 0
        shortest, longest = self.lengths
        starts, keys, size = np.arange(len(digits)), digits, base
        for length in range(1, longest + 1):
            if length > 1:
                if size > _MAX_CODE // base:
                    keys = rank(length - 1, keys)
                    size = len(self._ranks[length - 1]) + 1
                inside = symbols.left[starts] >= length
                starts = starts[inside]
                keys = keys[inside] * base + digits[starts + length - 1]
                size *= base
            if length >= shortest:
                yield length, keys, symbols.texts[starts]
            elif symbols.whole_short_runs:
                complete = first[starts] & (symbols.left[starts] == length)
                yield length, keys[complete], symbols.texts[starts[complete]]

    def _digits(self, symbols: Ints) -> Ints:
        digit = np.zeros(int(self._alphabet.max(initial=-1)) + 2, dtype=np.int64)
        digit[self._alphabet] = np.arange(1, len(self._alphabet) + 1)
        return digit[np.minimum(symbols, len(digit) - 1)]

    def _learned_rank(self, length: int, keys: Ints) -> Ints:
        self._ranks[length], rank = np.unique(keys, return_inverse=True)
        return rank + 1

    def _known_rank(self, length: int, keys: Ints) -> Ints:
        return _find(self._ranks[length], keys) + 1


def _find(table: Ints, values: Ints) -> Ints:
    """The index of each value in a sorted table; -1 if it is missing."""
    if len(table) == 0:
        return np.full(len(values), -1, dtype=np.int64)
    position = np.minimum(np.searchsorted(table, values), len(table) - 1)
    return np.where(table[position] == values, position, -1)


# Retrievers on these indexes: BM25 and TF-IDF.


@dataclass(frozen=True, slots=True)
class BM25Variant:
    """A variant of BM25: the weight of a term by its spread, and of its count in a document.

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

    scale = ScoreScale.POSITIVE

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
        check_nameless(spec, BM25_OPTIONS)
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

    scale = ScoreScale.COSINE

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
        check_nameless(spec, TFIDF_OPTIONS)
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
        """The fitted state as arrays; None for n-grams of words, whose vocabulary is not an array."""
        if not isinstance(self._grams, _Characters):
            return None
        weights = self._weights
        postings = {"starts": weights.starts, "documents": weights.documents, "values": weights.values}
        return {**self._grams.index.to_arrays(), **postings, "idf": self._idf}

    def leading(self, documents: int) -> FittedTfidf:
        """The same system over its first documents only, which keep their scores."""
        postings = self._weights
        is_leading = postings.documents < documents
        starts = np.concatenate([[0], np.cumsum(is_leading)])[postings.starts]
        weights = Postings(starts, postings.documents[is_leading], postings.values[is_leading])
        return FittedTfidf(self._system, self._grams, self._idf, weights, documents)

    def document_matrix(self) -> Any:
        """The documents as rows of length one of a sparse matrix (documents, n-grams)."""
        from scipy.sparse import csc_array

        weights, shape = self._weights, (self.documents, len(self._weights.starts) - 1)
        index = (
            np.int32 if len(weights.values) < 1 << 31 else np.int64
        )  # scikit-learn requires the smaller integer type
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
    """N-grams of the characters of each word, words being separated by white space."""

    def __init__(self, lengths: tuple[int, int], index: NgramIndex | None = None) -> None:
        self.index = index or NgramIndex(*lengths)

    def learn(self, documents: Sequence[str]) -> Postings:
        """For each n-gram the documents that hold it, with counts; each distinct word is split once."""
        lexicon = TermVocabulary(split=lambda text: fold_case(text).split())
        numbers, lengths = lexicon.learn(documents)
        terms = lexicon.terms
        parts = count_terms(numbers, np.repeat(np.arange(len(documents)), lengths), len(documents)).postings
        return self.index.learn(character_symbols(terms), len(terms)).through(parts, len(documents))

    def look_up(self, queries: Sequence[str]) -> Postings:
        """For each query its known n-grams, with counts."""
        return self.index.look_up(character_symbols([fold_case(text) for text in queries]), len(queries))


def _lengths_from(text: str) -> tuple[int, int]:
    match = re.fullmatch(r"([1-9][0-9]?)(?:-([1-9][0-9]?))?", text)
    if match is None:
        raise ParameterError(f"ngrams is {text!r} in tfidf:", hint="write ngrams=3-5, or ngrams=2 for one length")
    return int(match[1]), int(match[2] or match[1])
