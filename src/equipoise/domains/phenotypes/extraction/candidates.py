"""Documents split into chunks, and the stored candidate terms of every chunk.

Selection settings are applied to stored candidates, so changing them never embeds again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.domains.phenotypes.assertion.detect import DetectedAssertion, detect_assertions_with_cues
from equipoise.domains.phenotypes.assertion.rules import ASSERTIONS, Assertion
from equipoise.domains.phenotypes.extraction.splitters import TextSplitter, TextToSplit, get_splitters
from equipoise.domains.phenotypes.extraction.word_forms import contradicts
from equipoise.domains.phenotypes.index.retriever import TermHits, TermRetriever
from equipoise.domains.phenotypes.language import guess_language, language_segments, validate_language
from equipoise.errors import DuplicateError, InputError, NotFiniteError, ParameterError, StoreError
from equipoise.evidence.base import pack_npz, unpack_npz
from equipoise.io.atomic import write_bytes
from equipoise.models.fusion import SumFusion
from equipoise.models.tokenizers import check_text

if TYPE_CHECKING:
    from equipoise.types import Bools, Floats, Ints


@dataclass(frozen=True)
class ClinicalText:
    """A text with an id. Its language (en, de) is guessed from its words unless it is given."""

    id: str
    text: str
    language: str | None = None

    def __post_init__(self) -> None:
        check_text(self.text, f"document {self.id}")
        if self.language is not None:
            object.__setattr__(self, "language", validate_language(self.language))

    @cached_property
    def detected_language(self) -> str:
        """The language, given or guessed."""
        return self.language or guess_language(self.text)

    @cached_property
    def segments(self) -> tuple[tuple[int, int, str], ...]:
        """Start, end and language of the parts of the text in one language; one part if the language is given."""
        return ((0, len(self.text), self.language),) if self.language else tuple(language_segments(self.text))

    def language_at(self, position: int) -> str:
        """The language of the segment at a position."""
        return next((language for _, end, language in self.segments if position < end), self.detected_language)

    def detect_assertions(
        self, spans: Sequence[tuple[int, int]], *, names: Iterable[tuple[int, int]] = ()
    ) -> list[DetectedAssertion]:
        """The assertion of each span by the rules of the main language, then by those of the other segments."""
        main, listed = self.detected_language, list(names)
        others = {language for _, _, language in self.segments} - {main}
        detected = detect_assertions_with_cues(self.text, spans, main, names=listed)
        for language in others:
            by_other = detect_assertions_with_cues(self.text, spans, language, names=listed)
            detected = [
                second if first.assertion is Assertion.AFFIRMED else first
                for first, second in zip(detected, by_other, strict=True)
            ]
        return detected


def to_documents(documents: Iterable[ClinicalText] | Mapping[str, str]) -> tuple[ClinicalText, ...]:
    """Documents with distinct ids; a mapping from id to text is accepted.

    >>> to_documents({"a": "No fever."})[0].id
    'a'
    """
    if isinstance(documents, Mapping):
        documents = [ClinicalText(name, text) for name, text in documents.items()]
    listed = tuple(documents)
    if not listed:
        raise InputError("there is no document", hint="give at least one text")
    ids: set[str] = set()
    for document in listed:
        if document.id in ids:
            raise DuplicateError(f"two documents are called {document.id}", hint="give each its own id")
        ids.add(document.id)
    return listed


SPAN = "span"
"""The generator of phrases that may name a term, instead of splitters."""
DEFAULT_CHUNKERS: tuple[str, ...] = (SPAN,)
SPLITTER_CHAIN: tuple[str, ...] = ("paragraph", "sentence", "punctuation", "conjunction", "cue")
"""Splitters for chunks that cover the whole text."""


@dataclass(frozen=True, slots=True)
class TextSpan:
    """A chunk of the document with index ``document``: ``text`` is its characters from start to end."""

    document: int
    start: int
    end: int
    text: str


def split_documents(
    documents: Iterable[ClinicalText] | Mapping[str, str],
    chunkers: Sequence[str | TextSplitter] = SPLITTER_CHAIN,
) -> tuple[TextSpan, ...]:
    """The chunks of all documents, in order: each splitter splits the chunks of the one before it.

    White space and punctuation at the ends is trimmed.
    """
    listed = to_documents(documents)
    spans = [(index, 0, len(document.text)) for index, document in enumerate(listed)]
    for stage in get_splitters(chunkers):
        split_spans = stage.split(
            [TextToSplit(listed[index].text[start:end], listed[index].detected_language) for index, start, end in spans]
        )
        spans = [
            (index, start + first, start + last)
            for (index, start, _), inner in zip(spans, split_spans, strict=True)
            for first, last in inner
        ]
    return tuple(TextSpan(index, start, end, listed[index].text[start:end]) for index, start, end in spans)


@dataclass(frozen=True)
class SelectionSettings:
    """How candidates become predictions: see ``predict``."""

    num_results: int = 10
    chunk_threshold: float = 0.4
    """The threshold that maximises F1 is half of the best F1 (Lipton et al., ECML 2014), about .8 on clinical notes."""
    min_confidence: float = 0.0
    top_term_only: bool = True
    assertions: bool = True

    def checked(self, depth: int) -> SelectionSettings:
        """These settings, if ``depth`` stored candidates per chunk are enough for them."""
        if not 1 <= self.num_results <= depth:
            raise ParameterError(
                f"num_results is {self.num_results} and {depth} candidates per chunk are stored",
                hint=f"choose 1 to {depth}, or retrieve more candidates",
            )
        for name in ("chunk_threshold", "min_confidence"):
            if getattr(self, name) != getattr(self, name):
                raise ParameterError(f"{name} is NaN", hint="give a score, such as 0.7")
        return self

    def record(self) -> dict[str, Any]:
        return asdict(self)

    @property
    def flags(self) -> str:
        """The options of ``eq phenotypes extraction run`` for these settings."""
        default = SelectionSettings()
        words = [
            f"--{name.replace('_', '-')} {value:g}"
            for name in ("num_results", "chunk_threshold", "min_confidence")
            if (value := getattr(self, name)) != getattr(default, name)
        ]
        return " ".join([*words, *([] if self.top_term_only else ["--all-terms"])])


_FILE_KIND = "candidates 4"
_ARRAYS = ("document", "start", "end", "terms", "scores", "is_mention", "is_negated")
_TEXTS = ("term_ids", "chunkers", "system", "fingerprint")
SCORE_DECIMALS = 6
"""Scores are rounded to this precision: perfect matches differ from 1 by rounding errors, which would decide
whether they pass a threshold."""


@dataclass(frozen=True, eq=False, repr=False)
class Candidates:
    """The best terms of every chunk; row ``i`` of ``terms`` and ``scores`` is chunk ``i``, best first.

    ``terms`` are indices into ``term_ids``; a row with fewer terms has scores of minus infinity. A score is a
    confidence if the dictionary was used, otherwise a similarity: that of a sum is divided by the number of its parts,
    so that 1 is a perfect match as for a single model. ``chunkers`` and ``system`` name what computed them.
    """

    documents: tuple[ClinicalText, ...]
    document: Ints
    start: Ints
    end: Ints
    terms: Ints
    scores: Floats
    term_ids: tuple[str, ...]
    chunkers: tuple[str, ...]
    system: str
    fingerprint: str
    is_mention: Bools
    """Which rows are names that the dictionary found; the others are chunks or phrases that a model scored."""
    is_negated: Bools
    """Which mentions have a negation between their words: *the spleen is not enlarged*."""

    def __len__(self) -> int:
        return len(self.document)

    def __repr__(self) -> str:
        return f"<Candidates: {len(self)} chunks of {len(self.documents)} documents, {self.depth} terms each>"

    @property
    def depth(self) -> int:
        """The number of stored terms per chunk."""
        return int(self.terms.shape[1])

    @property
    def chunks(self) -> tuple[TextSpan, ...]:
        """The chunks, with their texts."""
        rows = zip(self.document.tolist(), self.start.tolist(), self.end.tolist(), strict=True)
        return tuple(TextSpan(index, start, end, self.documents[index].text[start:end]) for index, start, end in rows)

    @cached_property
    def assertions(self) -> Ints:
        """The assertion of each chunk, as an index into ``ASSERTIONS``."""
        codes = {assertion: code for code, assertion in enumerate(ASSERTIONS)}
        assertion_codes = np.zeros(len(self), dtype=np.int64)
        for index, document in enumerate(self.documents):
            rows = np.flatnonzero(self.document == index)
            spans = list(zip(self.start[rows].tolist(), self.end[rows].tolist(), strict=True))
            names = [span for span, is_name in zip(spans, self.is_mention[rows].tolist(), strict=True) if is_name]
            assertion_codes[rows] = [codes[d.assertion] for d in document.detect_assertions(spans, names=names)]
        assertion_codes[self.is_negated & (assertion_codes == codes[Assertion.AFFIRMED])] = codes[Assertion.NEGATED]
        return assertion_codes

    def save(self, path: str | Path) -> None:
        """Write one npz file; equal candidates give equal bytes."""
        texts = {
            "documents": [(document.id, document.text, document.language) for document in self.documents],
            **{name: getattr(self, name) for name in _TEXTS},
        }
        arrays = {name: getattr(self, name) for name in _ARRAYS}
        encoded = np.frombuffer(json.dumps(texts).encode(), dtype=np.uint8)
        write_bytes(path, pack_npz({"kind": np.array(_FILE_KIND), "texts": encoded, **arrays}))

    @classmethod
    def load(cls, path: str | Path) -> Candidates:
        """Read a file written by ``save``."""
        arrays = unpack_npz(path)
        if str(arrays.get("kind", "")) != _FILE_KIND:
            raise StoreError(f"{path} has no candidates", hint="name a file that Candidates.save wrote")
        content: dict[str, Any] = json.loads(arrays["texts"].tobytes())
        documents = tuple(ClinicalText(*document) for document in content.pop("documents"))
        content |= {name: tuple(content[name]) for name in ("term_ids", "chunkers")}
        content |= {name: arrays[name] for name in _ARRAYS}
        return cls(documents, **content)


_N_SPARE = 10
"""Terms that are retrieved in addition, because some may be outside of the branch or contradict the chunk."""


def search_chunks(
    chunks: Sequence[TextSpan],
    system: TermRetriever,
    *,
    num_results: int,
    allowed: Bools | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> TermHits:
    """The best allowed terms of every chunk; names that say the opposite of the chunk are dropped.

    Every distinct text is embedded once. A missing term is -1, with a score of minus infinity.
    """
    depth = min(num_results, len(system.ontology))
    system.check_depth(depth)
    rows = {text: index for index, text in enumerate(dict.fromkeys(chunk.text for chunk in chunks))}
    if not rows:
        empty = np.empty((0, depth), dtype=np.int64)
        return TermHits(empty, np.empty((0, depth)), empty)
    hits = system.search(list(rows), min(depth + _N_SPARE, len(system.ontology)), progress)
    max_score = float(len(system.system.parts)) if isinstance(system.system, SumFusion) else 1.0
    scores = np.round(hits.scores.astype(np.float64) / max_score, SCORE_DECIMALS)
    if np.isnan(scores).any():
        raise NotFiniteError("a score is NaN", hint="check the vectors of the chunks")
    dropped = np.zeros(scores.shape, dtype=np.bool_) if allowed is None else ~allowed[hits.terms]
    names = system.components.texts
    for text, row in rows.items():
        dropped[row] |= [contradicts(text, names[component]) for component in hits.component[row].tolist()]
    scores[dropped] = -np.inf
    order = np.argsort(-scores, axis=1, kind="stable")[:, :depth]
    scores = np.take_along_axis(scores, order, axis=1)
    terms, components = (np.take_along_axis(values, order, axis=1) for values in (hits.terms, hits.component))
    terms = np.where(np.isfinite(scores), terms, -1)
    row_of = np.array([rows[chunk.text] for chunk in chunks], dtype=np.int64)
    return TermHits(terms[row_of], scores[row_of], components[row_of])
