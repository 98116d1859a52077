"""The interface of answer matchers, and the matcher "words": whole words of the answer within one text."""

from __future__ import annotations

import re
import unicodedata
from abc import ABC, abstractmethod
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from equipoise.errors import ParameterError, UnknownNameError, did_you_mean

if TYPE_CHECKING:
    from equipoise.types import Bools, Ints


# Interface: which texts contain an answer, and how many texts in order are needed.


@dataclass(frozen=True, eq=False)
class AnswerParts:
    """The parts of an answer, for matchers that join texts: one row per part, one column per text.

    Texts that together have ``needed`` parts contain the answer.
    """

    there: Bools
    needed: int

    def scattered(self) -> AnswerParts | None:
        """The parts that only some texts have; None if no two texts complement each other.

        >>> there = np.array([[True, True, True], [True, False, False], [False, True, False]])
        >>> AnswerParts(there, 3).scattered()
        AnswerParts(there=array([[ True, False, False],
               [False,  True, False]]), needed=2)
        """
        count = self.there.sum(axis=1)
        everywhere = count == self.there.shape[1]
        scattered_parts = self.there[(count > 0) & ~everywhere]
        needed = self.needed - int(everywhere.sum())
        return AnswerParts(scattered_parts, needed) if 2 <= needed <= len(scattered_parts) else None


class AnswerIndex(ABC):
    """Texts that are prepared once and searched for many answers."""

    @abstractmethod
    def holders(self, answer: str) -> Ints:
        """The positions of the texts that contain the answer alone, ascending."""

    @abstractmethod
    def first_hit(self, answer: str, order: Sequence[int] | Ints) -> int | None:
        """The number of texts, in this order, that contain the answer; None if all are not enough."""

    def parts(self, answer: str) -> AnswerParts | None:
        """The parts of the answer in each text; None if texts are not joined."""
        return None

    def holders_of_any(self, answers: Sequence[str]) -> Ints:
        """The positions of the texts that contain at least one of the answers alone, ascending."""
        first, *others = (self.holders(answer) for answer in answers)
        return np.unique(np.concatenate([first, *others])) if others else first

    def first_hit_of_any(self, answers: Sequence[str], order: Sequence[int] | Ints) -> int | None:
        """The number of texts, in this order, that contain one of the answers; None if all are not enough."""
        hits = (self.first_hit(answer, order) for answer in answers)
        return min((hit for hit in hits if hit is not None), default=None)


@dataclass(frozen=True)
class AnswerMatcher(ABC):
    """Decides whether a text contains an answer. The fields are the options."""

    kind: ClassVar[str]
    joins: ClassVar[bool] = False
    """Whether the retrieved texts are joined, so that an answer may span two of them."""

    @property
    def name(self) -> str:
        """The kind of matcher, with the options that differ from their defaults."""
        options = {field.name: getattr(self, field.name) for field in fields(self)}
        defaults = {field.name: field.default for field in fields(self)}
        changed = [f"{name}={value}" for name, value in options.items() if value != defaults[name]]
        return f"{self.kind}({', '.join(changed)})" if changed else self.kind

    @abstractmethod
    def build_index(self, texts: Sequence[str]) -> AnswerIndex:
        """Prepare texts for the search of many answers."""

    def holds(self, answer: str, text: str) -> bool:
        """Whether one text contains the answer."""
        return bool(len(self.build_index([text]).holders(answer)))

    def holds_any(self, answers: Sequence[str], text: str) -> bool:
        """Whether one text contains at least one of the answers."""
        return bool(len(self.build_index([text]).holders_of_any(answers)))

    def first_hit(self, answer: str, texts: Sequence[str]) -> int | None:
        """The number of texts, from the first on, that contain the answer; None if all are not enough.

        >>> from equipoise.domains.fair.answer_matching import answer_matcher
        >>> answer_matcher("words").first_hit("rye", ["wheat flour", "rye flour"])
        2
        """
        return self.build_index(texts).first_hit(answer, np.arange(len(texts)))


# Word and number boundaries, so that an answer is not found inside a longer word or number.

# Scripts that write no spaces between words, and Korean, whose particles follow a noun without one.
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u3130-\u318f\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff]"
)
_RUN = re.compile(r"\d+(?:[.,]\d+)*")
_ONE_NUMBER = re.compile(r"\d+[.,]\d+|\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d{1,3}(?:\.\d{3})+(?:,\d+)?")


def is_whole_word(text: str, start: int, end: int) -> bool:
    """Whether ``text[start:end]`` starts and ends at word and number boundaries.

    A border is inside a word when it has a letter, a digit, an underscore or a combining mark on both
    sides, unless one of the two belongs to a script that writes no spaces. It is inside a number when the
    digits go on beyond a decimal point or a separator of thousands. A sign in front of digits that follows a
    word is the dash of a range. Punctuation at the ends of the span itself needs no border.

    >>> [is_whole_word(text, text.find("65%"), text.find("65%") + 3) for text in ("by 65%.", "165%", "1.65%")]
    [True, False, False]
    """
    return not (
        (start > 0 and _are_joined(text[start - 1], text[start]))
        or (end < len(text) and _are_joined(text[end - 1], text[end]))
        or _cuts_number(text, start)
        or _cuts_number(text, end)
        or _is_range(text, start)
    )


def _are_joined(left: str, right: str) -> bool:
    return _is_spaced_word(left) and _is_spaced_word(right)


@lru_cache(maxsize=4096)
def _is_spaced_word(character: str) -> bool:
    """Whether a character is part of a word in a script that separates words by spaces."""
    if not (character.isalnum() or character == "_" or unicodedata.category(character).startswith("M")):
        return False
    return not _UNSPACED.match(character)


def _cuts_number(text: str, border: int) -> bool:
    """Whether a border is directly before or after the separator inside a number.

    ``1.5`` and ``1,000`` are one number each; ``12.05.2024`` and ``1,2,3`` are several.
    """
    for separator in (border - 1, border):
        if not 0 < separator < len(text) - 1 or text[separator] not in ".,":
            continue
        if text[separator - 1].isdecimal() and text[separator + 1].isdecimal():
            first = separator
            while first > 0 and (text[first - 1].isdecimal() or _separates(text, first - 1)):
                first -= 1
            run = _RUN.match(text, first)
            return run is not None and _ONE_NUMBER.fullmatch(run.group()) is not None
    return False


def _separates(text: str, position: int) -> bool:
    return text[position] in ".," and position > 0 and text[position - 1].isdecimal()


def _is_range(text: str, start: int) -> bool:
    """Whether a span that begins with a signed number follows a word, so that the sign is a dash."""
    signed = text[start] in "+-" and text[start + 1 : start + 2].isdecimal()
    return signed and start > 0 and (text[start - 1].isalnum() or text[start - 1] == "_")


# Normalisation of answers and texts before they are compared.

_SINGLE_QUOTES = "‘’‚‛′‵´`ʹʼˈ΄‹›"
_DOUBLE_QUOTES = "“”„‟″‶«»〝〞〟"
_DASHES = "‐‑‒–—―−⁃─"
# NFKC would turn a trade mark into the letters TM and glue them to the word before it.
_DROPPED = "™℠®"
_PLAIN = str.maketrans(
    {
        **dict.fromkeys(_SINGLE_QUOTES, "'"),
        **dict.fromkeys(_DOUBLE_QUOTES, '"'),
        **dict.fromkeys(_DASHES, "-"),
        **dict.fromkeys(_DROPPED, None),
    }
)
_INVISIBLE = re.compile(
    "[\0\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\U000e0000-\U000e0fff]"
)
"""NUL, soft hyphens, joiners, zero-width spaces, marks of writing direction, variation selectors."""


def normalize_answer(text: str, *, fold_case: bool = True, collapse_spaces: bool = True) -> str:
    """The text in Unicode NFKC, case folded, with plain quotes and dashes and single spaces.

    Invisible characters and trade marks are dropped. ``fold_case=False`` keeps capitals, and
    ``collapse_spaces=False`` keeps white space unchanged.

    >>> normalize_answer("The  “Ｃａｆé’s”\\nstock—½ litre")
    'the "café\\'s" stock-1⁄2 litre'
    """
    if not text.isascii():
        text = unicodedata.normalize("NFKC", _INVISIBLE.sub("", text).translate(_PLAIN))
    if fold_case:
        text = unicodedata.normalize("NFKC", text.casefold())
    text = text.translate(_PLAIN).replace("\0", "")
    return " ".join(text.split()) if collapse_spaces else text


_SIGNS = "$€£¥"
_SPACE_BY_SIGN = re.compile(rf"(?<=[{_SIGNS}])\s+(?=\d)|(?<=\d)\s+(?=[{_SIGNS}](?!\s?\d))")
_WORD = re.compile(r"\w+")
_SEPARATOR = "\0"
"""Separates texts that are searched as one string. Normalised texts and answers never contain it."""


@dataclass(frozen=True)
class WholeWordMatcher(AnswerMatcher):
    """A text contains an answer if the normalised answer occurs in the normalised text as whole words and numbers.

    ``currency``: a space between a currency sign and its number is ignored, and the sign of an answer may be
    missing in the text (but may not be another one). ``fuzzy``: a text also contains an answer if it has at
    least ``threshold`` of the answer's distinct words, anywhere.

    >>> rule = WholeWordMatcher()
    >>> rule.holds("65%", "By 65%."), rule.holds("65%", "By 165%."), rule.holds("art", "party")
    (True, False, False)
    """

    kind = "words"

    currency: bool = False
    fuzzy: bool = False
    threshold: float = 0.8
    fold_case: bool = True
    collapse_spaces: bool = True

    def build_index(self, texts: Sequence[str]) -> WholeWordIndex:
        """The texts, normalised and joined."""
        return WholeWordIndex(self, texts)

    def normal(self, text: str) -> str:
        """The normalised form that is compared."""
        normal = normalize_answer(text, fold_case=self.fold_case, collapse_spaces=self.collapse_spaces)
        return _SPACE_BY_SIGN.sub("", normal) if self.currency else normal


# Words hyphenated at line ends, as in the text of a PDF: "inter-\nnational" and "well-\nknown".

_LINE_END_HYPHEN = re.compile(rf"(?<=\w)[-\u00ad{_DASHES}][^\S\n]*\n\s*(?=\w)")
_WORD_HYPHEN = re.compile(r"(?<=[^\W\d_])-(?=[^\W\d_])")


def join_hyphenated(text: str) -> str:
    r"""The text without line breaks after hyphens, and without hyphens between letters.

    Whether the hyphen at a line end belongs to the word is unknown, so hyphens between letters are dropped
    everywhere: in the text and in the answer that is searched in it.

    >>> join_hyphenated("inter-\nnational, well-\n  known, low-cost, 1995-\n1998")
    'international, wellknown, lowcost, 1995-1998'
    """
    return _WORD_HYPHEN.sub("", _LINE_END_HYPHEN.sub("-", text))


class WholeWordIndex(AnswerIndex):
    """Many texts joined into one string: one search per answer, independent of the number of texts.

    Texts with words that are hyphenated at line ends are searched a second time with these words joined.
    """

    def __init__(self, rule: WholeWordMatcher, texts: Sequence[str]) -> None:
        self._rule = rule
        self._texts = [rule.normal(text) for text in texts]
        self._joined = _SEPARATOR.join(self._texts)
        lengths = [len(text) + len(_SEPARATOR) for text in self._texts]
        self._starts: list[int] = np.cumsum([0, *lengths[:-1]]).tolist() if lengths else []
        self._hyphenated = [index for index, text in enumerate(texts) if _LINE_END_HYPHEN.search(text)]
        # Joined texts have no line breaks after hyphens, so this ends after one level.
        joined = [join_hyphenated(texts[index]) for index in self._hyphenated]
        self._dehyphenated = WholeWordIndex(rule, joined) if joined else None

    def holders(self, answer: str) -> Ints:
        """The positions of the texts that contain the answer."""
        normal = self._rule.normal(answer).strip()
        chunk_ids = set(self._containing(normal)) if normal else set()
        if self._dehyphenated is not None:
            positions = self._dehyphenated.holders(join_hyphenated(answer))
            chunk_ids.update(self._hyphenated[position] for position in positions.tolist())
        if self._rule.currency and normal.strip(_SIGNS) != normal:
            chunk_ids.update(self._containing(normal.strip(_SIGNS).strip(), unsigned=True))
        if self._rule.fuzzy:
            chunk_ids.update(self._above_threshold(normal).tolist())
        return np.array(sorted(chunk_ids), dtype=np.int64)

    def first_hit(self, answer: str, order: Sequence[int] | Ints) -> int | None:
        """The rank of the first text in the order that contains the answer."""
        positions = np.flatnonzero(np.isin(order, self.holders(answer)))
        return int(positions[0]) + 1 if len(positions) else None

    def _containing(self, answer: str, *, unsigned: bool = False) -> Iterator[int]:
        """The texts that contain exactly these words; ``unsigned``: with no adjacent currency sign."""
        if not answer:
            return
        joined, starts = self._joined, self._starts
        position = joined.find(answer)
        while position >= 0:
            end = position + len(answer)
            if is_whole_word(joined, position, end) and not (unsigned and _has_sign(joined, position, end)):
                text = bisect_right(starts, position) - 1
                yield text
                if text + 1 == len(starts):
                    return
                position = joined.find(answer, starts[text + 1])
            else:
                position = joined.find(answer, position + 1)

    def _above_threshold(self, answer: str) -> Ints:
        """The texts that have at least ``threshold`` of the answer's words."""
        words = set(_WORD.findall(answer))
        lists = [self._texts_with[word] for word in words if word in self._texts_with]
        if not lists:
            return np.zeros(0, dtype=np.int64)
        shared = np.bincount(np.concatenate(lists), minlength=len(self._texts))
        return np.flatnonzero((shared > 0) & (shared / len(words) >= self._rule.threshold))

    @cached_property
    def _texts_with(self) -> dict[str, list[int]]:
        """For each word the texts that have it."""
        texts_by_word: dict[str, list[int]] = {}
        for index, text in enumerate(self._texts):
            for word in set(_WORD.findall(text)):
                texts_by_word.setdefault(word, []).append(index)
        return texts_by_word


def _has_sign(text: str, start: int, end: int) -> bool:
    return text[max(start - 1, 0) : start] in set(_SIGNS) or text[end : end + 1] in set(_SIGNS)


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

    kind = "embedding-eval"
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
        """The number of words of an answer that is a hit; ``words`` + 1 if no number is enough."""
        limit = max(self.partial_match_threshold, PASS_SCORE)
        return next((n_words for n_words in range(1, words + 1) if n_words / words >= limit), words + 1)


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
            return next(
                (n_texts for n_texts in counts if self._rule.score(answer, texts[:n_texts]) >= PASS_SCORE), None
            )
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


MATCHERS: dict[str, type[WholeWordMatcher] | type[EmbeddingEvalMatcher]] = {
    WholeWordMatcher.kind: WholeWordMatcher,
    EmbeddingEvalMatcher.kind: EmbeddingEvalMatcher,
}
MATCHER_ALIASES = {"source": EmbeddingEvalMatcher.kind}
"""Former names, which are still accepted."""


def matcher_name(name: str) -> str:
    """The name of a matcher, also for an alias; an unknown name is an error.

    >>> matcher_name("source")
    'embedding-eval'
    """
    known = MATCHER_ALIASES.get(name, name)
    if known not in MATCHERS:
        raise UnknownNameError.of("matcher", str(name), MATCHERS, more=f"known: {', '.join(MATCHERS)}")
    return known


def answer_matcher(name: str | AnswerMatcher = "words", **options: object) -> AnswerMatcher:
    """The matcher with this name and these options; an unknown name or option gets a did-you-mean.

    ``words`` takes ``currency``, ``fuzzy`` and ``threshold``; ``embedding-eval`` takes the options of the evaluator of
    that package. A matcher object is returned unchanged.

    >>> answer_matcher("words", currency=True).holds("$5", "It costs 5 dollars.")
    True
    """
    if isinstance(name, AnswerMatcher):
        if options:
            raise ParameterError(
                f"the matcher {name.name} is an object and takes no options", hint="pass its name with the options"
            )
        return name
    name = matcher_name(name)
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
