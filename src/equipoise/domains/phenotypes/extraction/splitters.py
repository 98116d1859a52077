"""Cutting by what is written: paragraphs, sentences, punctuation marks, conjunctions."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np

from equipoise.domains.phenotypes.assertion.detect import FUNCTION_WORDS, RULES, cue_spans
from equipoise.errors import ParameterError, UnknownNameError
from equipoise.models.chunking import sentence_starts
from equipoise.types import Bools, Floats, Role

if TYPE_CHECKING:
    from equipoise.models.embedder import Embedder

# What every way of cutting does: for each text, spans of it, in order.

Span = tuple[int, int]

TRIM_CHARACTERS = ".,;:!?()[]{}\"'„“”‚‘’«»–—-/*•·…"
"""What a piece neither begins nor ends with, beside white space."""


@dataclass(frozen=True, slots=True)
class TextToSplit:
    """A text to cut, and its language."""

    text: str
    language: str = "en"


@runtime_checkable
class TextSplitter(Protocol):
    """A way of cutting. It gets the pieces of all documents at once, so that a model embeds in one batch."""

    @property
    def name(self) -> str:
        """The kind with every parameter that is not usual."""

    def cut(self, sources: Sequence[TextToSplit]) -> list[list[Span]]:
        """For each text the spans of its pieces; what lies between them separates and is left out."""


def trim_spans(text: str, spans: Iterable[Span]) -> list[Span]:
    """Spans without white space and marks at their ends; those that then hold nothing are left out.

    >>> trim_spans("fever, (cough)", [(0, 6), (6, 14)])
    [(0, 5), (8, 13)]
    """
    kept = []
    for start, end in spans:
        while start < end and _is_edge(text[start]):
            start += 1
        while end > start and _is_edge(text[end - 1]):
            end -= 1
        if any(letter.isalnum() for letter in text[start:end]):
            kept.append((start, end))
    return kept


def spans_between(text: str, separators: Iterable[Span]) -> list[Span]:
    """The spans between separators, trimmed; separators are in order and may overlap.

    >>> spans_between("fever and cough", [(6, 9)])
    [(0, 5), (10, 15)]
    """
    spans, begun = [], 0
    for start, end in separators:
        spans.append((begun, max(begun, start)))
        begun = max(begun, end)
    return trim_spans(text, [*spans, (begun, len(text))])


def _is_edge(letter: str) -> bool:
    return letter.isspace() or letter in TRIM_CHARACTERS


# Overlapping phrases: every run of a few words that neither begins nor ends with a small word.

_PHRASES_WORD = re.compile(r"\S+")


@dataclass(frozen=True)
class PhraseSplitter:
    """Every run of one to ``words`` words that neither begins nor ends with a small word, such as *of*.

    Phrases overlap. Of those that overlap only the best-scoring one becomes evidence, see ``predict``.

    >>> text = "loss of fine hair"
    >>> [text[start:end] for start, end in PhraseSplitter(3).cut([TextToSplit(text)])[0]]
    ['loss', 'loss of fine', 'fine', 'fine hair', 'hair']
    """

    words: int = 5

    def __post_init__(self) -> None:
        if self.words < 1:
            raise ParameterError(f"a phrase of {self.words} words is none", hint="give 1 or more")

    @property
    def name(self) -> str:
        """``phrase``, with the number of words."""
        return f"phrase(words={self.words})"

    def cut(self, sources: Sequence[TextToSplit]) -> list[list[Span]]:
        """The phrases of each text, by their start and then their length."""
        return [self._spans(source) for source in sources]

    def _spans(self, source: TextToSplit) -> list[Span]:
        text, small = source.text, FUNCTION_WORDS[source.language]
        words = trim_spans(text, (match.span() for match in _PHRASES_WORD.finditer(text)))
        content = [text[start:end].casefold() not in small for start, end in words]
        return [
            (words[first][0], words[last][1])
            for first in range(len(words))
            if content[first]
            for last in range(first, min(first + self.words, len(words)))
            if content[last]
        ]


_BLANK = re.compile(r"\n[^\S\n]*\n\s*")
_ITEM = re.compile(r"\n[^\S\n]*+(?:[-*•]|\d{1,2}[.)])\s+")
# A comma between digits is part of a number, a colon or stroke inside a word part of the word.
_MARKS = re.compile(r"[;\n()\[\]{}]+|(?<!\d),|,(?!\d)|:(?=\s)|\s[–—-]\s|(?<!\w)/|/(?!\w)")
_JOINTS = {
    "en": re.compile(
        r"\b(?:and/or|as well as|and|or|but|nor|with|without|except(?: for)?|plus|however|although|though"
        r"|while|whereas|because of|due to|associated with|accompanied by|followed by|including|such as"
        r"|characterized by|characterised by)\b",
        re.IGNORECASE,
    ),
    "de": re.compile(
        r"\b(?:und/oder|sowie|und|oder|aber|jedoch|sondern|mit|ohne|außer|während|obwohl|wegen|aufgrund"
        r"|bzw\.|beziehungsweise|einschließlich|begleitet von|gefolgt von|sowohl|als auch|weder|noch)(?!\w)",
        re.IGNORECASE,
    ),
}


_LEADING = {
    "en": re.compile(
        r"\b(?:(?:seen|referred|admitted|treated|evaluated|known|presenting) (?:for|with|because of)"
        r"|diagnos(?:ed|is) (?:with|of)|suffers? from|suffer(?:ed|ing) from|history of|consistent with)\b",
        re.IGNORECASE,
    ),
    "de": re.compile(
        r"\b(?:(?:leidet|litt|leiden|erkrankt) an|(?:vorgestellt|aufgenommen|behandelt|bekannt) (?:wegen|mit)"
        r"|Zustand nach|Z\.\s?n\.|Vorliegen (?:von|einer|eines)|besteht|bestehen|bestand|bestanden"
        r"|(?:fand|fanden|findet|finden|zeigten?) sich)(?!\w)",
        re.IGNORECASE,
    ),
}


class _Rule(ABC):
    """A cutter that needs nothing but the text."""

    name: str

    def cut(self, sources: Sequence[TextToSplit]) -> list[list[Span]]:
        """The spans of each text by itself."""
        return [self._spans(source) for source in sources]

    @abstractmethod
    def _spans(self, source: TextToSplit) -> list[Span]: ...

    def __repr__(self) -> str:
        return f"<cutter {self.name}>"


class ParagraphSplitter(_Rule):
    """Stretches between empty lines; each item of a list is one too.

    >>> [span for spans in ParagraphSplitter().cut([TextToSplit("Fever.\\n\\nCough.")]) for span in spans]
    [(0, 5), (8, 13)]
    """

    name = "paragraph"

    def _spans(self, source: TextToSplit) -> list[Span]:
        breaks = {match.span() for pattern in (_BLANK, _ITEM) for match in pattern.finditer(source.text)}
        return spans_between(source.text, sorted(breaks))


class SentenceSplitter(_Rule):
    """Sentences; abbreviations and initials end none.

    >>> SentenceSplitter().cut([TextToSplit("Seen by Dr. Roe. Has fever.")])
    [[(0, 15), (17, 26)]]
    """

    name = "sentence"

    def _spans(self, source: TextToSplit) -> list[Span]:
        return trim_spans(source.text, pairwise([*sentence_starts(source.text), len(source.text)]))


class PunctuationSplitter(_Rule):
    """Stretches between commas, semicolons, colons, brackets, dashes and line ends; numbers stay whole.

    >>> text = "Fever of 39,5 degrees, cough (dry)"
    >>> [text[start:end] for start, end in PunctuationSplitter().cut([TextToSplit(text)])[0]]
    ['Fever of 39,5 degrees', 'cough', 'dry']
    """

    name = "punctuation"

    def _spans(self, source: TextToSplit) -> list[Span]:
        return spans_between(source.text, (match.span() for match in _MARKS.finditer(source.text)))


class ConjunctionSplitter(_Rule):
    """Stretches between words that join findings, such as and, with, without; the words are left out.

    >>> text = "seizures and developmental delay without regression"
    >>> [text[start:end] for start, end in ConjunctionSplitter().cut([TextToSplit(text)])[0]]
    ['seizures', 'developmental delay', 'regression']
    """

    name = "conjunction"

    def _spans(self, source: TextToSplit) -> list[Span]:
        return spans_between(source.text, (match.span() for match in _JOINTS[source.language].finditer(source.text)))


class CueSplitter(_Rule):
    """What is left when the words are cut out that speak about findings: cues, and verbs of having.

    A piece that is nothing but a result, as *negative*, is left out: what it speaks of stands elsewhere.

    >>> text = "The patient has no sign of fever"
    >>> [text[start:end] for start, end in CueSplitter().cut([TextToSplit(text)])[0]]
    ['The patient', 'fever']
    >>> CueSplitter().cut([TextToSplit("unremarkable")])
    [[]]
    """

    name = "cue"

    def _spans(self, source: TextToSplit) -> list[Span]:
        rules = RULES[source.language]
        leading = [match.span() for match in _LEADING[source.language].finditer(source.text)]
        pieces = spans_between(source.text, sorted([*leading, *cue_spans(source.text, rules)]))
        return [piece for piece in pieces if not rules.bare_pattern.fullmatch(source.text, *piece)]


# Cutting where the meaning turns: a window of words is compared with the window that follows it.

_WORD = re.compile(r"\S+")


@dataclass(frozen=True)
class SemanticSplitter:
    """Slides over the words, and cuts where what was said and what follows agree least.

    At each gap between words the ``words`` before it are compared with the ``words`` behind it, by cosine. A
    cut is a local minimum below ``threshold`` that leaves at least ``least`` words on both sides. All windows
    of all texts are embedded in one batch.
    """

    embedder: Embedder
    words: int = 4
    threshold: float = 0.5
    least: int = 2

    def __post_init__(self) -> None:
        if self.words < 1 or self.least < 1:
            raise ParameterError(
                f"a window of {self.words} words, and pieces of {self.least}, cannot be",
                hint="give 1 or more",
            )

    @property
    def name(self) -> str:
        """``semantic``, with its parameters and the model."""
        return (
            f"semantic(words={self.words}, threshold={self.threshold:g}, least={self.least}, "
            f"model={self.embedder.card.spec})"
        )

    def cut(self, sources: Sequence[TextToSplit]) -> list[list[Span]]:
        """The pieces of each text."""
        words = [[match.span() for match in _WORD.finditer(source.text)] for source in sources]
        agreement = iter(self._agreement(sources, words))
        pieces = []
        for source, spans in zip(sources, words, strict=True):
            gaps = np.array([next(agreement) for _ in self._gaps(spans)])
            cuts = [self.least + int(gap) for gap in np.flatnonzero(self._turns(gaps))]
            borders = [0, *(spans[cut][0] for cut in cuts), len(source.text)]
            pieces.append(trim_spans(source.text, pairwise(borders)))
        return pieces

    def _gaps(self, spans: Sequence[Span]) -> range:
        """Where a text may be cut: before the words of these numbers."""
        return range(self.least, len(spans) - self.least + 1)

    def _agreement(self, sources: Sequence[TextToSplit], words: Sequence[Sequence[Span]]) -> Floats:
        """The cosine across every gap of every text, in order."""
        before, behind = [], []
        for source, spans in zip(sources, words, strict=True):
            for gap in self._gaps(spans):
                before.append(source.text[spans[max(0, gap - self.words)][0] : spans[gap - 1][1]])
                behind.append(source.text[spans[gap][0] : spans[min(len(spans), gap + self.words) - 1][1]])
        if not before:
            return np.zeros(0)
        distinct = {text: place for place, text in enumerate(dict.fromkeys([*before, *behind]))}
        vectors = self.embedder.embed(list(distinct), role=Role.QUERY).astype(np.float64)
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        unit = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
        left, right = ([distinct[text] for text in side] for side in (before, behind))
        cosines: Floats = np.einsum("ij,ij->i", unit[left], unit[right])
        return cosines

    def _turns(self, gaps: Floats) -> Bools:
        """The gaps that are cut: below the threshold, and none lower nearby; the first of equals."""
        chosen = np.zeros(len(gaps), dtype=np.bool_)
        reach = max(1, self.least - 1)
        for gap in np.flatnonzero(gaps < self.threshold):
            around = slice(max(0, gap - reach), gap + reach + 1)
            chosen[gap] = gaps[gap] <= gaps[around].min() and not chosen[around].any()
        return chosen


# Cutters by name.

NAMED_RULES = {
    "paragraph": ParagraphSplitter,
    "sentence": SentenceSplitter,
    "punctuation": PunctuationSplitter,
    "conjunction": ConjunctionSplitter,
    "cue": CueSplitter,
    "phrase": PhraseSplitter,
}
SEMANTIC = "semantic"
SPLITTERS: tuple[str, ...] = (*NAMED_RULES, SEMANTIC)
"""The names of all ways to cut, from coarse to fine."""


def get_splitter(name: str | TextSplitter, embedder: Embedder | None = None) -> TextSplitter:
    """The cutter of a name; one that is made already is taken as it is.

    ``semantic`` needs a model that embeds.

    >>> get_splitter("sentence")
    <cutter sentence>
    """
    if not isinstance(name, str):
        return name
    if name in NAMED_RULES:
        return NAMED_RULES[name]()
    if name != SEMANTIC:
        raise UnknownNameError.of("chunker", name, SPLITTERS, more=f"known: {', '.join(SPLITTERS)}")
    if embedder is None:
        raise ParameterError(
            "semantic windows need a model that embeds, and there is none",
            hint="name a model that embeds, or cut by sentence, punctuation and conjunction",
        )
    return SemanticSplitter(embedder)


def get_splitters(names: Sequence[str | TextSplitter], embedder: Embedder | None = None) -> tuple[TextSplitter, ...]:
    """The cutters of several names, coarse first, in the order given."""
    if isinstance(names, str):
        names = [part.strip() for part in names.split(",")]
    if not names:
        raise ParameterError("there is no chunker", hint=f"name some of {', '.join(SPLITTERS)}")
    return tuple(get_splitter(name, embedder) for name in names)
