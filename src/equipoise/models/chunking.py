"""Split documents into chunks with exact character offsets: fixed windows, sentences, Markdown sections."""

from __future__ import annotations

import inspect
import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from equipoise.errors import ParameterError, UnknownNameError, check_options
from equipoise.models.tokenizers import Tokenizer, check_text, tokenizer_for

if TYPE_CHECKING:
    from equipoise.types import Bools, Ints

# Token windows as character spans; no chunk begins or ends inside a character.

Span = tuple[int, int]

_JOINER = 0x200D
_FLAG_LETTERS = (0x1F1E6, 0x1F1FF)
_SKIN_TONES = (0x1F3FB, 0x1F3FF)


class TokenSpans:
    """The tokens of one document, and how many of them are in any part of it."""

    def __init__(self, document: str, tokenizer: Tokenizer) -> None:
        offsets = tokenizer.offsets(document)
        filled = np.flatnonzero(offsets[:, 0] < offsets[:, 1])
        self._starts: Ints = offsets[filled, 0]
        self._ends: Ints = offsets[filled, 1]
        # An empty token is a further part of the character before it; at the very start, of the first one.
        self._before: list[int] = [0, *filled[1:].tolist(), len(offsets)] if len(filled) else [0]
        self._edges: Ints = np.concatenate([[0], self._ends[:-1], [len(document)]]) if len(filled) else np.zeros(1, int)
        allowed = _between_clusters(document, self._edges)
        index = np.arange(len(allowed))
        self._whole_up_to: Ints = np.maximum.accumulate(np.where(allowed, index, 0))
        self._whole_from: Ints = np.minimum.accumulate(np.where(allowed, index, len(allowed) - 1)[::-1])[::-1]

    def tokens(self, start: int, end: int, limit: int | None = None) -> int:
        """The number of tokens in a span; those that end beyond ``limit`` are counted in the next one."""
        first = int(np.searchsorted(self._ends, start, side="right"))
        last = int(np.searchsorted(self._starts, end, side="left"))
        if limit is not None:
            last = min(last, int(np.searchsorted(self._ends, limit, side="right")))
        return self._before[last] - self._before[first] if last > first else 0

    def spans(self, start: int, end: int, size: int, overlap: int) -> Iterator[Span]:
        """Windows over a part of the document, each of at most ``size`` tokens, ``overlap`` shared by two.

        A border is placed between grapheme clusters (a letter with its accents, a joined emoji) if possible, and
        leaves out a few tokens for it. A window is larger only where characters share more tokens than ``size``.
        """
        first = int(np.searchsorted(self._ends, start, side="right"))
        last = int(np.searchsorted(self._ends, end, side="right")) if end < self._edges[-1] else len(self._ends)
        if first >= last:
            yield start, end
            return
        for left, right in self._windows(first, last, size, overlap):
            yield (
                start if left == first else int(self._edges[left]),
                end if right == last else int(self._edges[right]),
            )

    def _windows(self, first: int, last: int, size: int, overlap: int) -> Iterator[Span]:
        """Ranges of groups; each ends beyond the one before it."""
        before = self._before
        left, reached = first, first
        while True:
            right = min(max(bisect_right(before, before[left] + size) - 1, left + 1), last)
            if right < last and self._whole_up_to[right] > reached:
                right = int(self._whole_up_to[right])
            yield left, right
            if right >= last:
                return
            # The next window must have room for the following group, or it would add nothing new.
            shared = bisect_left(before, before[right] - overlap)
            smallest = bisect_left(before, before[right + 1] - size)
            reached = right
            left = min(int(self._whole_from[min(max(shared, smallest, left), right)]), right)


def _between_clusters(document: str, edges: Ints) -> Bools:
    """For each edge, whether it is between two grapheme clusters."""
    allowed = np.ones(len(edges), dtype=np.bool_)
    inner = np.flatnonzero((edges > 0) & (edges < len(document)))
    if not len(inner):
        return allowed
    codes = np.frombuffer(document.encode("utf-32-le"), dtype="<u4")
    left, right = codes[edges[inner] - 1], codes[edges[inner]]
    joined = _extends(right) | (left == _JOINER) | ((left == ord("\r")) & (right == ord("\n")))
    joined |= _within(left, _FLAG_LETTERS) & _within(right, _FLAG_LETTERS)
    allowed[inner] = ~joined
    return allowed


def _extends(codes: NDArray[np.uint32]) -> Bools:
    """Whether each character belongs to the one before it: accents, vowel signs, joiners, skin tones."""
    distinct, index = np.unique(codes, return_inverse=True)
    marks = [unicodedata.category(chr(code)).startswith("M") for code in distinct.tolist()]
    extends: Bools = np.array(marks, dtype=np.bool_)[index]
    return extends | (codes == _JOINER) | _within(codes, _SKIN_TONES)


def _within(codes: NDArray[np.uint32], bounds: Span) -> Bools:
    inside: Bools = (codes >= bounds[0]) & (codes <= bounds[1])
    return inside


# The starts of Markdown sections, in one pass over the lines.


@dataclass(frozen=True, slots=True)
class MarkdownSection:
    """The part of a document below one heading; ``title`` holds the headings above it too."""

    start: int
    title: str


def markdown_sections(text: str) -> list[MarkdownSection]:
    """The sections of a Markdown document in order; each ends where the next begins, the first begins at 0.

    Headings are lines that begin with one to six ``#``, or that are underlined with ``=`` or ``-``; lines in
    fenced code are none. A heading with nothing below it but a deeper one belongs to the latter's section.

    >>> [(section.start, section.title) for section in markdown_sections("# A\\n## B\\ntext\\n# C\\ntext")]
    [(0, 'A > B'), (14, 'C')]
    """
    path: list[tuple[int, str]] = []
    sections = [MarkdownSection(0, "")]
    body_since = 0
    for start, after, level, title in _headings(text):
        follows = bool(path) and level > path[-1][0] and not text[body_since:start].strip()
        path = [*(above for above in path if above[0] < level), (level, title)]
        section = MarkdownSection(start, " > ".join(name for _, name in path if name))
        if follows or not text[sections[-1].start : start].strip():
            sections[-1] = MarkdownSection(sections[-1].start, section.title)
        else:
            sections.append(section)
        body_since = after
    return sections


def _headings(text: str) -> Iterator[tuple[int, int, int, str]]:
    """Start, end, level and title of each heading."""
    fence = ""
    above: tuple[int, str] | None = None
    for start, end, line in _lines_after_front_matter(text):
        stripped = line.strip()
        indent = len(line) - len(line.lstrip(" "))
        mark = _fence(stripped) if indent < 4 else ""
        if fence:
            fence = "" if mark[:1] == fence[:1] and len(mark) >= len(fence) and stripped == mark else fence
        elif mark:
            fence, above = mark, None
        elif indent < 4 and (level := _hash_level(stripped)):
            yield start, end, level, _hash_title(stripped[level:])
            above = None
        elif above is not None and indent < 4 and stripped and not stripped.strip(stripped[0]) and stripped[0] in "=-":
            yield above[0], end, "=-".index(stripped[0]) + 1, above[1]
            above = None
        else:
            above = (start, stripped) if stripped and indent < 4 and stripped[0] not in "-*+>|" else None


def _lines_after_front_matter(text: str) -> Iterator[tuple[int, int, str]]:
    """Start, end and content of each line; settings between two ``---`` at the top are skipped."""
    lines = _lines(text)
    if text.startswith("---\n"):
        close = text.find("\n---\n", 3)
        lines = (line for line in lines if line[0] > close + 1) if close >= 0 else lines
    return iter(lines)


def _lines(text: str) -> Iterator[tuple[int, int, str]]:
    start = 0
    while start < len(text):
        position = text.find("\n", start)
        end = len(text) if position < 0 else position + 1
        yield start, end, text[start:end]
        start = end


def _fence(line: str) -> str:
    """The run of three or more backticks or tildes that a line begins with."""
    if not line.startswith(("```", "~~~")):
        return ""
    run = line[: len(line) - len(line.lstrip(line[0]))]
    return "" if line[0] == "`" and "`" in line[len(run) :] else run


def _hash_level(line: str) -> int:
    level = len(line) - len(line.lstrip("#"))
    return level if 1 <= level <= 6 and line[level : level + 1] in ("", " ", "\t") else 0


def _hash_title(rest: str) -> str:
    title = rest.strip()
    opened = title.rstrip("#")
    return opened.rstrip() if not opened or opened[-1] in " \t" else title


# The starts of sentences, in one pass over the text.

# Each alternative can only begin where a run of its characters begins, so that no run is read twice.
_END = re.compile(
    r"(?<![.!?…])[.!?…]++[\"'»”’)\]]*+\s++"
    r"|(?<![。！？｡])[。！？｡]++[」』”’）]*+\s*+"
    r"|(?<!\n)\n[^\S\n]*+\n\s*+"
)
_LAST_WORD = re.compile(r"(?:^|[\s(\[\"'„“«])([^\s(\[\"'„“«]{1,12})\Z")
_ENGLISH_ABBREVIATIONS = (
    "al approx cf co dr ed eds eq etc fig figs inc jr ltd mr mrs ms mt no nos op pp prof sec sr st vol vs e.g i.e"
)
_GERMAN_ABBREVIATIONS = "art bd bspw bzw ca evtl ggf hr inkl nr resp sog str tab u.a usw vgl z.b d.h"
_ABBREVIATIONS = frozenset(f"{_ENGLISH_ABBREVIATIONS} {_GERMAN_ABBREVIATIONS}".split())


def sentence_starts(text: str) -> list[int]:
    """The positions at which sentences begin; the first is 0.

    A sentence ends after a full stop, question or exclamation mark and the following white space, or at an
    empty line. Initials, small ordinals and common English and German abbreviations do not end a sentence.

    >>> sentence_starts("Dr. No came. He left! (So did I.) Now?")
    [0, 13, 22, 34]
    """
    starts = [0]
    for end in _END.finditer(text):
        if end.end() < len(text) and not _is_abbreviation(text, end):
            starts.append(end.end())
    return starts


def _is_abbreviation(text: str, end: re.Match[str]) -> bool:
    if end.group().rstrip() != "." or "\n\n" in end.group():
        return False
    word = _LAST_WORD.search(text, max(0, end.start() - 16), end.start())
    if word is None:
        return False
    letters = word.group(1).casefold()
    if letters.isdigit():
        return len(letters) <= 2
    return letters in _ABBREVIATIONS or (len(letters) == 1 and letters.isalpha() and letters != "i")


@dataclass(frozen=True, slots=True)
class Chunk:
    """A chunk of a document: ``document[start:end] == text``, with no white space at either end."""

    text: str
    start: int
    end: int
    tokens: int
    """The number of tokens in it."""
    section: str = ""
    """The Markdown headings above it, joined by ``>``."""


class Chunker(Protocol):
    """A chunker; ``name`` contains the method and every parameter."""

    @property
    def name(self) -> str:
        """The kind, the sizes and the tokenizer."""

    def chunk(self, document: str) -> list[Chunk]:
        """The chunks in order; together they hold every character that is not white space."""


@dataclass(frozen=True)
class _Windows:
    """Base class of chunkers with token windows: sizes, tokenizer and name."""

    kind: ClassVar[str]

    chunk_size: int = 512
    overlap: int = 50
    tokenizer: object = None
    _tokenizer: Tokenizer = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        _check_sizes(self.chunk_size, self.overlap)
        object.__setattr__(self, "_tokenizer", tokenizer_for(self.tokenizer))

    @property
    def name(self) -> str:
        sizes = f"chunk_size={self.chunk_size}, overlap={self.overlap}"
        return f"{self.kind}({sizes}, tokenizer={self._tokenizer.name})"


@dataclass(frozen=True)
class FixedSizeChunker(_Windows):
    """Split a document into windows of ``chunk_size`` tokens, of which ``overlap`` are shared with the window before.

    Every window adds new text, so the last may be shorter. A window is slightly shorter if its end would split a
    character.

    Parameters
    ----------
    chunk_size
        Tokens per window.
    overlap
        Tokens that a window shares with the one before.
    tokenizer
        ``cl100k`` (the default), ``words``, the spec of a model with a tokenizer, or a tokenizer object.

    >>> [chunk.text for chunk in FixedSizeChunker(3, 1, "words").chunk("one two three four five")]
    ['one two three', 'three four five']
    """

    kind = "fixed"

    def chunk(self, document: str) -> list[Chunk]:
        """The windows of a document, in order, each with its text and its position in characters."""
        layout = TokenSpans(check_text(document, "the document"), self._tokenizer)
        return _chunks(document, layout, layout.spans(0, len(document), self.chunk_size, self.overlap))


@dataclass(frozen=True)
class SentenceChunker:
    """As many whole sentences as fit into ``max_tokens``; a longer sentence is split into windows of that size.

    >>> [chunk.text for chunk in SentenceChunker(6, "words").chunk("One two. Three four. Five six.")]
    ['One two. Three four.', 'Five six.']
    """

    max_tokens: int = 256
    tokenizer: object = None
    _tokenizer: Tokenizer = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        _check_sizes(self.max_tokens, 0, name="max_tokens")
        object.__setattr__(self, "_tokenizer", tokenizer_for(self.tokenizer))

    @property
    def name(self) -> str:
        return f"sentence(max_tokens={self.max_tokens}, tokenizer={self._tokenizer.name})"

    def chunk(self, document: str) -> list[Chunk]:
        layout = TokenSpans(check_text(document, "the document"), self._tokenizer)
        return _chunks(document, layout, self._spans(document, layout))

    def _spans(self, document: str, layout: TokenSpans) -> Iterator[Span]:
        chunk_start, n_tokens = 0, 0
        for start, end in pairwise([*sentence_starts(document), len(document)]):
            tokens = layout.tokens(start, end, limit=end)
            if n_tokens and n_tokens + tokens > self.max_tokens:
                yield chunk_start, start
                chunk_start, n_tokens = start, 0
            n_tokens += tokens
            if n_tokens > self.max_tokens:
                yield from layout.spans(chunk_start, end, self.max_tokens, 0)
                chunk_start, n_tokens = end, 0
        yield chunk_start, len(document)


@dataclass(frozen=True)
class SectionChunker(_Windows):
    """The sections below Markdown headings; one longer than ``chunk_size`` tokens is split into windows.

    >>> chunks = SectionChunker(8, 0, "words").chunk("# Soup\\nBoil water.\\n## Salt\\nA pinch.")
    >>> [(chunk.section, chunk.text) for chunk in chunks]
    [('Soup', '# Soup\\nBoil water.'), ('Soup > Salt', '## Salt\\nA pinch.')]
    """

    kind = "section"

    def chunk(self, document: str) -> list[Chunk]:
        layout = TokenSpans(check_text(document, "the document"), self._tokenizer)
        sections = markdown_sections(document)
        borders = [*(section.start for section in sections), len(document)]
        chunks: list[Chunk] = []
        for section, (start, end) in zip(sections, pairwise(borders), strict=True):
            spans = layout.spans(start, end, self.chunk_size, self.overlap)
            chunks += _chunks(document, layout, spans, section.title)
        return chunks


CHUNKERS: dict[str, type[FixedSizeChunker] | type[SentenceChunker] | type[SectionChunker]] = {
    "fixed": FixedSizeChunker,
    "sentence": SentenceChunker,
    "section": SectionChunker,
}


def chunker(name: str, **options: object) -> Chunker:
    """The chunker of this name with these options; an unknown name or option gets a did-you-mean.

    >>> chunker("fixed", chunk_size=256, overlap=25, tokenizer="words").name
    'fixed(chunk_size=256, overlap=25, tokenizer=words)'
    """
    if name not in CHUNKERS:
        raise UnknownNameError.of("chunker", name, CHUNKERS, more=f"known: {', '.join(CHUNKERS)}")
    check_options(f"the {name} chunker", options, inspect.signature(CHUNKERS[name]).parameters)
    return CHUNKERS[name](**options)  # type: ignore[arg-type]


def _chunks(document: str, layout: TokenSpans, spans: Iterable[Span], section: str = "") -> list[Chunk]:
    """Spans without the white space at their ends; those that then add nothing new are left out."""
    chunks: list[Chunk] = []
    for left, right in spans:
        tail = document[left:right].lstrip()
        text = tail.rstrip()
        start = right - len(tail)
        end = start + len(text)
        if not text or (chunks and end <= chunks[-1].end):
            continue
        if chunks and chunks[-1].start == start:
            chunks.pop()
        chunks.append(Chunk(text, start, end, layout.tokens(start, end, limit=right), section))
    return chunks


def _check_sizes(size: object, overlap: object, *, name: str = "chunk_size") -> None:
    for label, value, least in ((name, size, 1), ("overlap", overlap, 0)):
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise ParameterError(f"{label} is {value!r}; it must be an integer of {least} or more")
    if overlap >= size:  # type: ignore[operator]
        raise ParameterError(
            f"an overlap of {overlap} tokens leaves no room for new ones in chunks of {size}",
            hint="choose an overlap below the chunk size; a tenth of it is usual",
        )
