"""Documents cut into chunks with exact character offsets: fixed windows, sentences, Markdown sections."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import ClassVar, Protocol

from equipoise.embed.chunk.layout import Layout, Span
from equipoise.embed.chunk.sections import markdown_sections
from equipoise.embed.chunk.sentences import sentence_starts
from equipoise.embed.chunk.tokenizer import Tokenizer, tokenizer_for
from equipoise.embed.chunk.tokens import checked_text
from equipoise.errors import ParameterError, UnknownNameError, did_you_mean


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of a document: ``document[start:end] == text``, with no white space at either end."""

    text: str
    start: int
    end: int
    tokens: int
    """How many tokens of the document lie in it."""
    section: str = ""
    """The Markdown headings above it, joined by ``>``."""


class Chunker(Protocol):
    """Anything that cuts a document; ``name`` says how, with every parameter."""

    @property
    def name(self) -> str:
        """The kind, the sizes and the tokenizer."""

    def chunk(self, document: str) -> list[Chunk]:
        """The chunks in order; together they hold every character that is not white space."""


@dataclass(frozen=True)
class _Windows:
    """What chunkers by windows of tokens share: the sizes, the tokenizer, and a name that tells them."""

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
    """Windows of ``chunk_size`` tokens, of which ``overlap`` are shared with the window before.

    Every window brings something new, so the last may be shorter. Borders keep characters whole: where one is
    made of several tokens, or carries accents, a window is a little shorter.

    >>> [chunk.text for chunk in FixedSizeChunker(3, 1, "words").chunk("one two three four five")]
    ['one two three', 'three four five']
    """

    kind = "fixed"

    def chunk(self, document: str) -> list[Chunk]:
        layout = Layout(checked_text(document, "the document"), self._tokenizer)
        return _chunks(document, layout, layout.spans(0, len(document), self.chunk_size, self.overlap))


@dataclass(frozen=True)
class SentenceChunker:
    """As many whole sentences as fit into ``max_tokens``; a longer sentence is cut into windows of that size.

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
        layout = Layout(checked_text(document, "the document"), self._tokenizer)
        return _chunks(document, layout, self._spans(document, layout))

    def _spans(self, document: str, layout: Layout) -> Iterator[Span]:
        begun, held = 0, 0
        for start, end in pairwise([*sentence_starts(document), len(document)]):
            tokens = layout.tokens(start, end, limit=end)
            if held and held + tokens > self.max_tokens:
                yield begun, start
                begun, held = start, 0
            held += tokens
            if held > self.max_tokens:
                yield from layout.spans(begun, end, self.max_tokens, 0)
                begun, held = end, 0
        yield begun, len(document)


@dataclass(frozen=True)
class SectionChunker(_Windows):
    """The sections below Markdown headings; one longer than ``chunk_size`` tokens is cut into windows.

    >>> chunks = SectionChunker(8, 0, "words").chunk("# Soup\\nBoil water.\\n## Salt\\nA pinch.")
    >>> [(chunk.section, chunk.text) for chunk in chunks]
    [('Soup', '# Soup\\nBoil water.'), ('Soup > Salt', '## Salt\\nA pinch.')]
    """

    kind = "section"

    def chunk(self, document: str) -> list[Chunk]:
        layout = Layout(checked_text(document, "the document"), self._tokenizer)
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
    known = inspect.signature(CHUNKERS[name]).parameters
    for option in options:
        if option not in known:
            hint = did_you_mean(option, known) or f"it takes {', '.join(known)}"
            raise ParameterError(f"the {name} chunker has no option {option!r}", hint=hint)
    return CHUNKERS[name](**options)  # type: ignore[arg-type]


def _chunks(document: str, layout: Layout, spans: Iterable[Span], section: str = "") -> list[Chunk]:
    """Spans without the white space at their ends; those that then bring nothing new are left out."""
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
            raise ParameterError(f"{label} is {value!r}; it must be a whole number of {least} or more")
    if overlap >= size:  # type: ignore[operator]
        raise ParameterError(
            f"an overlap of {overlap} tokens leaves no room for new ones in chunks of {size}",
            hint="choose an overlap below the chunk size; a tenth of it is usual",
        )
