"""The matcher "source", which reproduces the scores of embedding-eval 0.2.0, and the table of all matchers.

It joins the retrieved texts, so an answer may span two of them. It ignores word boundaries. It also accepts
texts that have most of the answer's words, or inflected forms of them, anywhere.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from equipoise.domains.fair.answer_matching import AnswerIndex, AnswerMatcher, AnswerParts, WholeWordMatcher
from equipoise.errors import ParameterError, UnknownNameError, did_you_mean

if TYPE_CHECKING:
    from equipoise.types import Bools, Ints

_MIN_STEM_LENGTH = 4


def is_word_form(word: str, other: str) -> bool:
    """Whether ``other``, a word of a text, counts as a form of ``word``, a word of an answer.

    It does when it contains the word, when it begins with the word less its final s, or, from four letters
    on, when the word begins with it less its own final s.

    >>> is_word_form("observe", "observes"), is_word_form("perspectives", "perspective"), is_word_form("cat", "dog")
    (True, True, False)
    """
    return (
        word in other
        or other.startswith(word.rstrip("s"))
        or (len(other) >= _MIN_STEM_LENGTH and word.startswith(other.rstrip("s")))
    )


class WordFormIndex:
    """An index of the words of many texts that finds forms of a word without comparing every pair."""

    def __init__(self, texts: Sequence[Collection[str]], *, forms: bool) -> None:
        self._count = len(texts)
        self._forms = forms
        owners: dict[str, list[int]] = {}
        for index, words in enumerate(texts):
            for word in set(words):
                owners.setdefault(word, []).append(index)
        self._words = sorted(owners)
        self._owners = [owners[word] for word in self._words]
        self._joined = " ".join(self._words)
        self._starts = np.cumsum([0, *(len(word) + 1 for word in self._words)]).tolist()
        self._by_stem: dict[str, list[int]] = {}
        for index, word in enumerate(self._words):
            if len(word) >= _MIN_STEM_LENGTH:
                self._by_stem.setdefault(word.rstrip("s"), []).append(index)
        self._known: dict[str, Bools] = {}

    def texts_with(self, word: str) -> Bools:
        """For each text, whether it has the word or, with ``forms``, a form of it."""
        if word not in self._known:
            contains = np.zeros(self._count, dtype=np.bool_)
            for index in self._matching(word):
                contains[self._owners[index]] = True
            self._known[word] = contains
        return self._known[word]

    def _matching(self, word: str) -> Iterator[int]:
        if not self._forms:
            position = bisect_left(self._words, word)
            if self._words[position : position + 1] == [word]:
                yield position
            return
        yield from self._containing(word)
        stem = word.rstrip("s")
        for index in range(bisect_left(self._words, stem), len(self._words)):
            if not self._words[index].startswith(stem):
                break
            yield index
        for length in range(len(word) + 1):
            yield from self._by_stem.get(word[:length], ())

    def _containing(self, word: str) -> Iterator[int]:
        position = self._joined.find(word)
        while position >= 0:
            index = bisect_right(self._starts, position) - 1
            yield index
            position = self._joined.find(word, self._starts[index + 1])


_QUOTES = str.maketrans("\u2018\u2019\u201c\u201d", "''\"\"")
_MARKS = re.compile("[®™©]")
_SIGNS = "$€£¥"
_SPACE_AFTER_SIGN = re.compile(rf"(?<=[{_SIGNS}])\s+")
_OPEN_END = re.compile(rf"[{_SIGNS}]\s*\Z")
PASS_SCORE = 0.5
"""A question with at least this score counts as answered."""


@dataclass(frozen=True)
class EmbeddingEvalMatcher(AnswerMatcher):
    """The evaluator of embedding-eval, with its option names and default values.

    >>> rule = EmbeddingEvalMatcher()
    >>> rule.holds("art", "party"), rule.holds("65%", "It rose by 165%.")
    (True, True)
    >>> rule.first_hit("rye and wheat", ["a field of rye", "and wheat"])
    2
    """

    kind = "source"
    joins = True

    case_sensitive: bool = False
    normalize_whitespace: bool = True
    partial_match_threshold: float = 0.8
    fuzzy_word_match: bool = True
    normalize_currency: bool = True

    def build_index(self, texts: Sequence[str]) -> EmbeddingEvalIndex:
        """The texts, normalised, with their words."""
        return EmbeddingEvalIndex(self, texts)

    def normal(self, text: str) -> str:
        """The normalised form of embedding-eval, with the same order of steps."""
        text = text.translate(_QUOTES)
        text = text if self.case_sensitive else text.lower()
        text = _SPACE_AFTER_SIGN.sub("", text) if self.normalize_currency else text
        text = _MARKS.sub("", text)
        return " ".join(text.split()) if self.normalize_whitespace else text

    def wordings(self, answer: str) -> list[str]:
        """The normalised answer, and the same without a currency sign in front."""
        normal = self.normal(answer)
        return [normal, normal[1:]] if self.normalize_currency and normal[:1] in set(_SIGNS) else [normal]

    def score(self, answer: str, texts: Sequence[str]) -> float:
        """1 if the joined texts contain the answer, else the share of its words if it reaches the threshold."""
        if not texts:
            return 0.0
        joined = self.normal(" ".join(texts))
        wordings = self.wordings(answer)
        if any(wording in joined for wording in wordings):
            return 1.0
        words, text_words = set(wordings[0].split()), set(joined.split())
        matched = sum(word in text_words or self._has_form(word, text_words) for word in words)
        share = matched / len(words) if words else 0.0
        return share if share >= self.partial_match_threshold else 0.0

    def _has_form(self, word: str, words: set[str]) -> bool:
        return self.fuzzy_word_match and any(is_word_form(word, other) for other in words)

    def words_needed(self, words: int) -> int:
        """How many words of an answer are needed for a hit; more than there are if no number is enough."""
        limit = max(self.partial_match_threshold, PASS_SCORE)
        return next((few for few in range(1, words + 1) if few / words >= limit), words + 1)


class EmbeddingEvalIndex(AnswerIndex):
    """Texts normalised one by one; joined, they equal the normalised joined texts.

    The exception is a text that ends in a currency sign, because normalisation removes the space after it.
    Orders with such a text are evaluated prefix by prefix, which is slower.
    """

    def __init__(self, rule: EmbeddingEvalMatcher, texts: Sequence[str]) -> None:
        self._rule = rule
        self._texts = list(texts)
        self._normal = [rule.normal(text) for text in texts]
        self._open = [rule.normalize_currency and bool(_OPEN_END.search(text)) for text in texts]

    def holders(self, answer: str) -> Ints:
        """The positions of the texts that contain the answer alone."""
        wordings = self._rule.wordings(answer)
        contains: Bools = np.zeros(len(self._normal), dtype=np.bool_)
        for wording in wordings:
            contains |= np.array([wording in text for text in self._normal], dtype=np.bool_)
        parts = self._words_of(wordings[0])
        if len(parts.there):
            contains |= parts.there.sum(axis=0) >= parts.needed
        return np.flatnonzero(contains)

    def parts(self, answer: str) -> AnswerParts:
        """The words of the answer; ``needed`` of them are enough, in any of the texts."""
        return self._words_of(self._rule.wordings(answer)[0])

    def first_hit(self, answer: str, order: Sequence[int] | Ints) -> int | None:
        """The smallest number of texts, in this order, that embedding-eval accepts."""
        chunk_ids = np.asarray(order, dtype=np.int64)
        if any(self._open[chunk_id] for chunk_id in chunk_ids[:-1].tolist()):
            texts = [self._texts[chunk_id] for chunk_id in chunk_ids.tolist()]
            counts = range(1, len(texts) + 1)
            return next((few for few in counts if self._rule.score(answer, texts[:few]) >= PASS_SCORE), None)
        wordings = self._rule.wordings(answer)
        hits = [self._exact_hit(wordings, chunk_ids), self._words_hit(wordings[0], chunk_ids)]
        return min((hit for hit in hits if hit is not None), default=None)

    def _exact_hit(self, wordings: Sequence[str], order: Ints) -> int | None:
        """The text in which the first occurrence of a wording ends."""
        texts = [self._normal[chunk_id] for chunk_id in order.tolist()]
        if self._rule.normalize_whitespace:
            gaps = [bool(text) for text in texts]
            joined = " ".join(filter(None, texts))
        else:
            gaps = [True] * len(texts)
            joined = " ".join(texts)
        ends = np.cumsum([len(text) + gap for text, gap in zip(texts, gaps, strict=True)]) - 1
        ends = np.maximum(ends, 0).tolist()
        positions = [(joined.find(wording), len(wording)) for wording in wordings]
        last = min((position + length for position, length in positions if position >= 0), default=None)
        return None if last is None or not texts else bisect_left(ends, last) + 1

    def _words_hit(self, answer: str, order: Ints) -> int | None:
        """The rank of the text that completes the needed number of words."""
        parts = self._words_of(answer)
        if parts.needed > len(parts.there) or not len(order):
            return None
        contains = parts.there[:, order]
        first = np.where(contains.any(axis=1), contains.argmax(axis=1) + 1, len(order) + 1)
        hit = int(np.sort(first)[parts.needed - 1])
        return hit if hit <= len(order) else None

    def _words_of(self, normal: str) -> AnswerParts:
        words = set(normal.split())
        contains = np.array([self._vocabulary.texts_with(word) for word in words], dtype=np.bool_)
        return AnswerParts(contains.reshape(len(words), len(self._normal)), self._rule.words_needed(len(words)))

    @cached_property
    def _vocabulary(self) -> WordFormIndex:
        return WordFormIndex([text.split() for text in self._normal], forms=self._rule.fuzzy_word_match)


__all__ = ["MATCHERS", "AnswerIndex", "AnswerMatcher", "answer_matcher"]

MATCHERS: dict[str, type[WholeWordMatcher] | type[EmbeddingEvalMatcher]] = {
    "words": WholeWordMatcher,
    "source": EmbeddingEvalMatcher,
}


def answer_matcher(name: str | AnswerMatcher = "words", **options: object) -> AnswerMatcher:
    """The matcher with this name and these options; an unknown name or option gets a did-you-mean.

    ``words`` takes ``currency``, ``fuzzy`` and ``threshold``; ``source`` takes the options of the
    evaluator of embedding-eval. A matcher object is returned unchanged.

    >>> answer_matcher("words", currency=True).holds("$5", "It costs 5 dollars.")
    True
    """
    if isinstance(name, AnswerMatcher):
        if options:
            raise ParameterError(
                f"the matcher {name.name} is an object and takes no options", hint="pass its name with the options"
            )
        return name
    if name not in MATCHERS:
        raise UnknownNameError.of("matcher", str(name), MATCHERS, more=f"known: {', '.join(MATCHERS)}")
    options_of = {field.name: field for field in fields(MATCHERS[name])}
    for option, value in options.items():
        if option not in options_of:
            hint = did_you_mean(option, options_of) or f"it takes {', '.join(options_of)}"
            raise ParameterError(f"the matcher {name} has no option {option!r}", hint=hint)
        _require(name, option, value, share=isinstance(options_of[option].default, float))
    return MATCHERS[name](**options)  # type: ignore[arg-type]


def _require(name: str, option: str, value: object, *, share: bool) -> None:
    """Options are booleans, except shares of words, which are between 0 and 1."""
    if share:
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not number or not 0 <= value <= 1:  # type: ignore[operator]
            raise ParameterError(f"{option} of the matcher {name} is {value!r}; it is a share from 0 to 1")
    elif not isinstance(value, bool):
        raise ParameterError(f"{option} of the matcher {name} is {value!r}; it is True or False")
