"""Text splitters: by paragraph, sentence, punctuation, conjunction, cue, phrase, or semantic window."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np

from equipoise.domains.phenotypes.assertion.detect import cue_spans
from equipoise.domains.phenotypes.assertion.rules import rules_for
from equipoise.domains.phenotypes.language import FUNCTION_WORDS, LANGUAGES, WORDS
from equipoise.errors import ParameterError, UnknownNameError
from equipoise.models.chunking import sentence_starts
from equipoise.models.encoder import Role
from equipoise.types import Bools, Floats

if TYPE_CHECKING:
    from equipoise.models.embedder import Embedder

Span = tuple[int, int]

TRIM_CHARACTERS = ".,;:!?()[]{}\"'„“”‚‘’«»–—-/*•·…"
"""Characters that are trimmed from both ends of a chunk, in addition to white space."""


@dataclass(frozen=True, slots=True)
class TextToSplit:
    """A text to split, and its language."""

    text: str
    language: str = "en"


@runtime_checkable
class TextSplitter(Protocol):
    """Splits texts into chunks. It gets all texts at once, so that a model embeds in one batch."""

    @property
    def name(self) -> str:
        """The kind, with its parameters."""

    def split(self, sources: Sequence[TextToSplit]) -> list[list[Span]]:
        """For each text the spans of its chunks; the text between chunks is dropped."""


def trim_spans(text: str, spans: Iterable[Span]) -> list[Span]:
    """Trim white space and punctuation from the ends of spans; empty spans are dropped.

    >>> trim_spans("fever, (cough)", [(0, 6), (6, 14)])
    [(0, 5), (8, 13)]
    """
    trimmed = []
    for start, end in spans:
        while start < end and _is_trimmed(text[start]):
            start += 1
        while end > start and _is_trimmed(text[end - 1]):
            end -= 1
        if any(letter.isalnum() for letter in text[start:end]):
            trimmed.append((start, end))
    return trimmed


def spans_between(text: str, separators: Iterable[Span]) -> list[Span]:
    """The spans between separators, trimmed; separators are in order and may overlap.

    >>> spans_between("fever and cough", [(6, 9)])
    [(0, 5), (10, 15)]
    """
    spans, position = [], 0
    for start, end in separators:
        spans.append((position, max(position, start)))
        position = max(position, end)
    return trim_spans(text, [*spans, (position, len(text))])


def _is_trimmed(letter: str) -> bool:
    return letter.isspace() or letter in TRIM_CHARACTERS


_TOKEN = re.compile(r"\S+")


@dataclass(frozen=True)
class PhraseSplitter:
    """Every run of one to ``words`` words that neither starts nor ends with a function word, such as *of*.

    Phrases overlap. Only the best-scoring one of overlapping phrases becomes evidence, see ``predict``.
    """

    words: int = 5

    def __post_init__(self) -> None:
        if self.words < 1:
            raise ParameterError(f"words is {self.words}", hint="give 1 or more")

    @property
    def name(self) -> str:
        """``phrase``, with the number of words."""
        return f"phrase(words={self.words})"

    def split(self, sources: Sequence[TextToSplit]) -> list[list[Span]]:
        """The phrases of each text, by their start and then their length."""
        return [self._spans(source) for source in sources]

    def _spans(self, source: TextToSplit) -> list[Span]:
        text, function_words = source.text, FUNCTION_WORDS[source.language]
        words = trim_spans(text, (match.span() for match in _TOKEN.finditer(text)))
        content = [text[start:end].casefold() not in function_words for start, end in words]
        return [
            (words[first][0], words[last][1])
            for first in range(len(words))
            if content[first]
            for last in range(first, min(first + self.words, len(words)))
            if content[last]
        ]


_EMPTY_LINE = re.compile(r"\n[^\S\n]*\n\s*")
_LIST_ITEM = re.compile(r"\n[^\S\n]*+(?:[-*•]|\d{1,2}[.)])\s+")
# A comma between digits is part of a number; a colon or slash inside a word is part of the word.
_PUNCTUATION = re.compile(r"[;\n()\[\]{}]+|(?<!\d),|,(?!\d)|:(?=\s)|\s[–—-]\s|(?<!\w)/|/(?!\w)")
_CONJUNCTIONS, _LEAD_IN_PHRASES = (
    {code: re.compile(rf"\b(?:{WORDS[code][kind]})(?!\w)", re.IGNORECASE) for code in LANGUAGES}
    for kind in ("conjunctions", "lead_in_phrases")
)


@dataclass(frozen=True)
class RuleSplitter:
    """A splitter that needs only a text and its language."""

    name: str
    spans: Callable[[str, str], list[Span]]

    def split(self, sources: Sequence[TextToSplit]) -> list[list[Span]]:
        return [self.spans(source.text, source.language) for source in sources]


def _paragraphs(text: str, language: str) -> list[Span]:
    """Paragraphs between empty lines; each list item is a paragraph."""
    breaks = {match.span() for pattern in (_EMPTY_LINE, _LIST_ITEM) for match in pattern.finditer(text)}
    return spans_between(text, sorted(breaks))


def _sentences(text: str, language: str) -> list[Span]:
    """Sentences; abbreviations and initials do not end a sentence."""
    return trim_spans(text, pairwise([*sentence_starts(text), len(text)]))


def _between_punctuation(text: str, language: str) -> list[Span]:
    """Text between commas, semicolons, colons, brackets, dashes and line ends; numbers are not split."""
    return spans_between(text, (match.span() for match in _PUNCTUATION.finditer(text)))


def _between_conjunctions(text: str, language: str) -> list[Span]:
    """Text between words that join findings, such as and, with, without; these words are dropped."""
    return spans_between(text, (match.span() for match in _CONJUNCTIONS[language].finditer(text)))


def _without_cues(text: str, language: str) -> list[Span]:
    """Text without assertion cues and lead-in phrases such as *suffers from*.

    A chunk that is only a bare result, such as *negative*, is dropped: it names no finding.
    """
    rules = rules_for(language)
    leading = [match.span() for match in _LEAD_IN_PHRASES[language].finditer(text)]
    spans = spans_between(text, sorted([*leading, *cue_spans(text, rules)]))
    return [span for span in spans if not rules.bare_result_pattern.fullmatch(text, *span)]


@dataclass(frozen=True)
class SemanticSplitter:
    """Splits where the similarity of adjacent windows of words has a local minimum.

    At each gap between words, the ``words`` words before it are compared with the ``words`` words after it, by
    cosine. A boundary is a local minimum below ``threshold`` with at least ``min_words`` words on both sides. All
    windows of all texts are embedded in one batch.
    """

    embedder: Embedder
    words: int = 4
    threshold: float = 0.5
    min_words: int = 2

    def __post_init__(self) -> None:
        if self.words < 1 or self.min_words < 1:
            raise ParameterError(
                f"words is {self.words} and min_words is {self.min_words}",
                hint="give 1 or more",
            )

    @property
    def name(self) -> str:
        """``semantic``, with its parameters and the model."""
        return (
            f"semantic(words={self.words}, threshold={self.threshold:g}, min_words={self.min_words}, "
            f"model={self.embedder.card.spec})"
        )

    def split(self, sources: Sequence[TextToSplit]) -> list[list[Span]]:
        words = [[match.span() for match in _TOKEN.finditer(source.text)] for source in sources]
        similarity = iter(self._window_similarity(sources, words))
        chunks = []
        for source, spans in zip(sources, words, strict=True):
            gaps = np.array([next(similarity) for _ in self._gaps(spans)])
            boundaries = [self.min_words + int(gap) for gap in np.flatnonzero(self._is_boundary(gaps))]
            borders = [0, *(spans[boundary][0] for boundary in boundaries), len(source.text)]
            chunks.append(trim_spans(source.text, pairwise(borders)))
        return chunks

    def _gaps(self, spans: Sequence[Span]) -> range:
        """Candidate boundaries: before the words with these indices."""
        return range(self.min_words, len(spans) - self.min_words + 1)

    def _window_similarity(self, sources: Sequence[TextToSplit], words: Sequence[Sequence[Span]]) -> Floats:
        """The cosine across every gap of every text, in order."""
        before, after = [], []
        for source, spans in zip(sources, words, strict=True):
            for gap in self._gaps(spans):
                before.append(source.text[spans[max(0, gap - self.words)][0] : spans[gap - 1][1]])
                after.append(source.text[spans[gap][0] : spans[min(len(spans), gap + self.words) - 1][1]])
        if not before:
            return np.zeros(0)
        distinct = {text: index for index, text in enumerate(dict.fromkeys([*before, *after]))}
        vectors = self.embedder.embed(list(distinct), role=Role.QUERY).astype(np.float64)
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        unit = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
        left, right = ([distinct[text] for text in side] for side in (before, after))
        cosines: Floats = np.einsum("ij,ij->i", unit[left], unit[right])
        return cosines

    def _is_boundary(self, gaps: Floats) -> Bools:
        """Local minima below the threshold; the first of equal minima."""
        chosen = np.zeros(len(gaps), dtype=np.bool_)
        radius = max(1, self.min_words - 1)
        for gap in np.flatnonzero(gaps < self.threshold):
            neighborhood = slice(max(0, gap - radius), gap + radius + 1)
            chosen[gap] = gaps[gap] <= gaps[neighborhood].min() and not chosen[neighborhood].any()
        return chosen


RULE_SPLITTERS: dict[str, TextSplitter] = {
    "paragraph": RuleSplitter("paragraph", _paragraphs),
    "sentence": RuleSplitter("sentence", _sentences),
    "punctuation": RuleSplitter("punctuation", _between_punctuation),
    "conjunction": RuleSplitter("conjunction", _between_conjunctions),
    "cue": RuleSplitter("cue", _without_cues),
    "phrase": PhraseSplitter(),
}
SEMANTIC = "semantic"
SPLITTERS: tuple[str, ...] = (*RULE_SPLITTERS, SEMANTIC)
"""The names of all splitters, from coarse to fine."""


def _get_splitter(name: str | TextSplitter, embedder: Embedder | None) -> TextSplitter:
    if not isinstance(name, str):
        return name
    if name in RULE_SPLITTERS:
        return RULE_SPLITTERS[name]
    if name != SEMANTIC:
        raise UnknownNameError.of("chunker", name, SPLITTERS, more=f"known: span (alone), {', '.join(SPLITTERS)}")
    if embedder is None:
        raise ParameterError(
            "the semantic splitter needs a dense model",
            hint="name a dense model, or split by sentence, punctuation and conjunction",
        )
    return SemanticSplitter(embedder)


def get_splitters(names: Sequence[str | TextSplitter], embedder: Embedder | None = None) -> tuple[TextSplitter, ...]:
    """The splitters of several names, coarse first; ``semantic`` needs a dense model. Other objects are splitters."""
    if isinstance(names, str):
        names = [part.strip() for part in names.split(",")]
    if not names:
        raise ParameterError("there is no chunker", hint=f"name some of {', '.join(SPLITTERS)}")
    return tuple(_get_splitter(name, embedder) for name in names)
