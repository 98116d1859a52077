"""The interface of answer matchers, and the matcher "words": whole words of the answer within one text."""

from __future__ import annotations

import re
import unicodedata
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, ClassVar

import numpy as np

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
        """How many texts, in this order, are needed to contain the answer; None if all are not enough."""

    def parts(self, answer: str) -> AnswerParts | None:
        """The parts of the answer in each text; None if texts are not joined."""
        return None

    def holders_of_any(self, answers: Sequence[str]) -> Ints:
        """The positions of the texts that contain at least one of the answers alone, ascending."""
        first, *others = (self.holders(answer) for answer in answers)
        return np.unique(np.concatenate([first, *others])) if others else first

    def first_hit_of_any(self, answers: Sequence[str], order: Sequence[int] | Ints) -> int | None:
        """How many texts, in this order, are needed to contain one of the answers; None if all are not enough."""
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
        """How many texts, from the first on, are needed to contain the answer; None if all are not enough.

        >>> from equipoise.domains.fair.embedding_eval_matcher import answer_matcher
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
            chunk_ids.update(self._sharing(normal).tolist())
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

    def _sharing(self, answer: str) -> Ints:
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
