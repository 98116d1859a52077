"""Documents split into chunks, and the stored candidate terms of every chunk.

Selection settings are applied to stored candidates, so changing them never embeds again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from equipoise.domains.phenotypes.assertion.detect import detect_assertions, guess_language, validate_language
from equipoise.domains.phenotypes.assertion.rules import ASSERTIONS
from equipoise.domains.phenotypes.extraction.splitters import TextSplitter, TextToSplit, get_splitters
from equipoise.domains.phenotypes.index.retriever import TermRetriever, dense_models
from equipoise.errors import DuplicateError, InputError, NotFiniteError, ParameterError, StoreError
from equipoise.evidence.base import Arrays, pack_npz, unpack_npz
from equipoise.io.atomic import write_bytes
from equipoise.models.fusion import SumFusion
from equipoise.models.tokenizers import check_text

if TYPE_CHECKING:
    from equipoise.models.embedder import Embedder
    from equipoise.types import Floats, Ints


@dataclass(frozen=True)
class ClinicalText:
    """A text with an id. Its language (en, de) is guessed from its function words unless it is given.

    >>> ClinicalText("note", "Der Junge hat kein Fieber.").detected_language
    'de'
    """

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


DEFAULT_CHUNKERS: tuple[str, ...] = ("paragraph", "sentence", "punctuation", "conjunction", "cue")


@dataclass(frozen=True, slots=True)
class TextSpan:
    """A chunk of the document with index ``document``: ``text`` is its characters from start to end."""

    document: int
    start: int
    end: int
    text: str


def split_documents(
    documents: Iterable[ClinicalText] | Mapping[str, str],
    chunkers: Sequence[str | TextSplitter] = DEFAULT_CHUNKERS,
    *,
    embedder: Embedder | None = None,
) -> tuple[TextSpan, ...]:
    """The chunks of all documents, in order: each splitter splits the chunks of the one before it.

    ``semantic`` embeds with ``embedder``. White space and punctuation at the ends is trimmed.

    >>> chunks = split_documents({"a": "No fever, but cough. Tall."}, ["sentence", "punctuation", "conjunction"])
    >>> [(chunk.start, chunk.text) for chunk in chunks]
    [(0, 'No fever'), (14, 'cough'), (21, 'Tall')]
    """
    listed = to_documents(documents)
    spans = [(index, 0, len(document.text)) for index, document in enumerate(listed)]
    for stage in get_splitters(chunkers, embedder):
        split_spans = stage.split(
            [TextToSplit(listed[index].text[start:end], listed[index].detected_language) for index, start, end in spans]
        )
        spans = [
            (index, start + first, start + last)
            for (index, start, _), inner in zip(spans, split_spans, strict=True)
            for first, last in inner
        ]
    return tuple(TextSpan(index, start, end, listed[index].text[start:end]) for index, start, end in spans)


NUM_RESULTS = 10
CHUNK_THRESHOLD = 0.7
MIN_CONFIDENCE = 0.0
TOP_TERM_ONLY = False


@dataclass(frozen=True)
class SelectionSettings:
    """How candidates become predictions: see ``predict``."""

    num_results: int = NUM_RESULTS
    chunk_threshold: float = CHUNK_THRESHOLD
    min_confidence: float = MIN_CONFIDENCE
    top_term_only: bool = TOP_TERM_ONLY
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
        """The settings by name, for a manifest."""
        return asdict(self)

    @property
    def flags(self) -> str:
        """The options of ``eq phenotypes extraction run`` for these settings.

        >>> SelectionSettings(chunk_threshold=0.5, top_term_only=True).flags
        '--chunk-threshold 0.5 --top-term-only'
        """
        default = SelectionSettings()
        words = [
            f"--{name.replace('_', '-')} {value:g}"
            for name in ("num_results", "chunk_threshold", "min_confidence")
            if (value := getattr(self, name)) != getattr(default, name)
        ]
        return " ".join([*words, *(["--top-term-only"] if self.top_term_only else [])])


DEFAULT_FOR_NOTES = SelectionSettings(chunk_threshold=0.5, top_term_only=True)
"""Defaults for a single note. On the sample notes tfidf: has a micro F1 of .77 with them, and .37 with the ten
terms per chunk of an evaluation. The threshold is between the best one for English notes (0.6) and for German
notes with English terms (0.4)."""


_FILE_KIND = "candidates 1"
SCORE_DECIMALS = 6
"""Scores are rounded to this precision: perfect matches differ from 1 by rounding errors, which would decide
whether they pass a threshold."""


@dataclass(frozen=True, eq=False, repr=False)
class Candidates:
    """The best terms of every chunk; row ``i`` of ``terms`` and ``scores`` is chunk ``i``, best first.

    ``terms`` are indices into ``term_ids``. Scores of a sum of cosines are divided by the number of its parts,
    so that 1 is a perfect match as for a single model; all scores are rounded to six decimals. ``chunkers`` and
    ``system`` name the pipeline that computed them.
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
            assertion_codes[rows] = [
                codes[assertion] for assertion in detect_assertions(document.text, spans, document.detected_language)
            ]
        return assertion_codes

    def to_arrays(self) -> Arrays:
        """The content as plain arrays."""
        return {
            "kind": np.array(_FILE_KIND),
            **{name: getattr(self, name) for name in ("document", "start", "end", "terms", "scores")},
            **_pack_texts("term_ids", self.term_ids),
            **_pack_texts("ids", [document.id for document in self.documents]),
            **_pack_texts("texts", [document.text for document in self.documents]),
            **_pack_texts("languages", [document.language or "" for document in self.documents]),
            **_pack_texts("made_by", [self.system, self.fingerprint, *self.chunkers]),
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Candidates:
        """The inverse of ``to_arrays``."""
        system, fingerprint, *chunkers = _unpack_texts("made_by", arrays)
        rows = zip(*(_unpack_texts(name, arrays) for name in ("ids", "texts", "languages")), strict=True)
        return cls(
            tuple(ClinicalText(name, text, language or None) for name, text, language in rows),
            arrays["document"],
            arrays["start"],
            arrays["end"],
            arrays["terms"],
            arrays["scores"],
            term_ids=tuple(_unpack_texts("term_ids", arrays)),
            chunkers=tuple(chunkers),
            system=system,
            fingerprint=fingerprint,
        )

    def save(self, path: str | Path) -> None:
        """Write one npz file; equal candidates give equal bytes."""
        write_bytes(path, pack_npz(self.to_arrays()))

    @classmethod
    def load(cls, path: str | Path) -> Candidates:
        """Read a file written by ``save``."""
        arrays = unpack_npz(path)
        if str(arrays.get("kind", "")) != _FILE_KIND:
            raise StoreError(f"{path} has no candidates", hint="name a file that Candidates.save wrote")
        return cls.from_arrays(arrays)


def retrieve_candidates(
    documents: Iterable[ClinicalText] | Mapping[str, str],
    system: TermRetriever,
    *,
    chunkers: Sequence[str | TextSplitter] = DEFAULT_CHUNKERS,
    num_results: int = NUM_RESULTS,
) -> Candidates:
    """Split all documents, and retrieve the best terms of all chunks in one batch."""
    listed = to_documents(documents)
    stages = get_splitters(chunkers, next(iter(dense_models(system.system)), None))
    chunks = split_documents(listed, stages)
    return retrieve_for_spans(
        listed, chunks, system, num_results=num_results, chunkers=[stage.name for stage in stages]
    )


def retrieve_for_spans(
    documents: Iterable[ClinicalText] | Mapping[str, str],
    chunks: Sequence[TextSpan],
    system: TermRetriever,
    *,
    num_results: int = NUM_RESULTS,
    chunkers: Sequence[str] = ("given",),
) -> Candidates:
    """Retrieve the best terms of given chunks, such as annotated spans.

    Every distinct text is embedded once.
    """
    listed = to_documents(documents)
    depth = min(num_results, len(system.ontology))
    system.check_depth(depth)
    texts = {text: index for index, text in enumerate(dict.fromkeys(chunk.text for chunk in chunks))}
    row = np.array([texts[chunk.text] for chunk in chunks], dtype=np.int64)
    if texts:
        hits = system.search(list(texts), depth)
        terms, scores = hits.terms, np.round(hits.scores / _max_score(system), SCORE_DECIMALS)
    else:
        terms, scores = np.empty((0, depth), dtype=np.int64), np.empty((0, depth))
    if np.isnan(scores).any():
        raise NotFiniteError("a score is NaN", hint="check the vectors of the chunks")
    distinct, coded = np.unique(terms, return_inverse=True)
    offsets = np.array([(chunk.document, chunk.start, chunk.end) for chunk in chunks], dtype=np.int64)
    document, start, end = offsets.reshape(-1, 3).T
    return Candidates(
        listed,
        document,
        start,
        end,
        coded.reshape(terms.shape)[row].astype(np.int64),
        scores[row].astype(np.float64),
        term_ids=tuple(system.ontology.ids[term] for term in distinct.tolist()),
        chunkers=tuple(chunkers),
        system=system.card.spec,
        fingerprint=system.fingerprint,
    )


def _max_score(system: TermRetriever) -> float:
    """The score of a perfect match: the number of parts of a sum fusion, otherwise 1."""
    return float(len(system.system.parts)) if isinstance(system.system, SumFusion) else 1.0


def _pack_texts(name: str, texts: Sequence[str]) -> Arrays:
    """Texts as one byte array and offsets."""
    encoded = [text.encode() for text in texts]
    return {
        f"{name}_bytes": np.frombuffer(b"".join(encoded), dtype=np.uint8),
        f"{name}_borders": np.cumsum([0, *map(len, encoded)], dtype=np.int64),
    }


def _unpack_texts(name: str, arrays: Mapping[str, NDArray[Any]]) -> list[str]:
    data, borders = arrays[f"{name}_bytes"].tobytes(), arrays[f"{name}_borders"].tolist()
    return [data[start:end].decode() for start, end in pairwise(borders)]
