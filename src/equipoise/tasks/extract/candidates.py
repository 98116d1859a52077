"""What retrieval found for every chunk of every document: kept, so that no later choice embeds again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equipoise.data.atomic import write_bytes
from equipoise.embed.fusion import Sum
from equipoise.errors import NotFiniteError, StoreError
from equipoise.evidence.base import Arrays, pack, unpack
from equipoise.ontology.assertion.detect import detect
from equipoise.ontology.assertion.kinds import ASSERTIONS
from equipoise.ontology.index.fitting import models_of
from equipoise.ontology.index.search import TermSystem
from equipoise.tasks.extract.chunk import DEFAULT_CHUNKERS, Chunk, chunked
from equipoise.tasks.extract.cut.base import Cutter
from equipoise.tasks.extract.cut.named import cutters
from equipoise.tasks.extract.document import Document, documents_of
from equipoise.tasks.extract.settings import NUM_RESULTS
from equipoise.types import Floats, Ints

_KIND = "candidates 1"
SCORE_DECIMALS = 6
"""Scores that agree so far are equal: those of perfect matches differ from 1 in their last digits, and would
pass or miss a threshold by chance."""


@dataclass(frozen=True, eq=False, repr=False)
class Candidates:
    """The best terms of every chunk; row ``i`` of ``terms`` and ``scores`` is chunk ``i``, best first.

    ``terms`` are places in ``term_ids``. Scores of a system that sums cosines are divided by the number of
    its parts, so that 1 is perfect agreement for it as for a single model; all are rounded to six decimals.
    ``chunkers`` and ``system`` say what made them.
    """

    documents: tuple[Document, ...]
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
        """How many terms of each chunk are kept."""
        return int(self.terms.shape[1])

    @property
    def chunks(self) -> tuple[Chunk, ...]:
        """The chunks, with their texts."""
        rows = zip(self.document.tolist(), self.start.tolist(), self.end.tolist(), strict=True)
        return tuple(
            Chunk(place, start, end, self.documents[place].text[start:end]) for place, start, end in rows
        )

    @cached_property
    def assertions(self) -> Ints:
        """What the text says of each chunk, as a place in ``ASSERTIONS``."""
        codes = {assertion: code for code, assertion in enumerate(ASSERTIONS)}
        found = np.zeros(len(self), dtype=np.int64)
        for place, document in enumerate(self.documents):
            rows = np.flatnonzero(self.document == place)
            spans = list(zip(self.start[rows].tolist(), self.end[rows].tolist(), strict=True))
            found[rows] = [codes[each] for each in detect(document.text, spans, document.spoken)]
        return found

    def to_arrays(self) -> Arrays:
        """Plain arrays that hold all of it."""
        return {
            "kind": np.array(_KIND),
            **{name: getattr(self, name) for name in ("document", "start", "end", "terms", "scores")},
            **_packed("term_ids", self.term_ids),
            **_packed("ids", [document.id for document in self.documents]),
            **_packed("texts", [document.text for document in self.documents]),
            **_packed("languages", [document.language or "" for document in self.documents]),
            **_packed("made_by", [self.system, self.fingerprint, *self.chunkers]),
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Candidates:
        """The inverse of ``to_arrays``."""
        system, fingerprint, *chunkers = _unpacked("made_by", arrays)
        rows = zip(*(_unpacked(name, arrays) for name in ("ids", "texts", "languages")), strict=True)
        return cls(
            tuple(Document(name, text, language or None) for name, text, language in rows),
            arrays["document"],
            arrays["start"],
            arrays["end"],
            arrays["terms"],
            arrays["scores"],
            term_ids=tuple(_unpacked("term_ids", arrays)),
            chunkers=tuple(chunkers),
            system=system,
            fingerprint=fingerprint,
        )

    def save(self, path: str | Path) -> None:
        """Write one npz file; equal candidates give equal bytes."""
        write_bytes(path, pack(self.to_arrays()))

    @classmethod
    def load(cls, path: str | Path) -> Candidates:
        """Read a file written by ``save``."""
        arrays = unpack(path)
        if str(arrays.get("kind", "")) != _KIND:
            raise StoreError(f"{path} holds no candidates", hint="name a file that Candidates.save wrote")
        return cls.from_arrays(arrays)


def candidates(
    documents: Iterable[Document] | Mapping[str, str],
    system: TermSystem,
    *,
    chunkers: Sequence[str | Cutter] = DEFAULT_CHUNKERS,
    num_results: int = NUM_RESULTS,
) -> Candidates:
    """Cut all documents, and find the best terms of all their chunks in one batch."""
    listed = documents_of(documents)
    stages = cutters(chunkers, next(iter(models_of(system.system)), None))
    chunks = chunked(listed, stages)
    return retrieved(listed, chunks, system, num_results=num_results, chunkers=[each.name for each in stages])


def retrieved(
    documents: Iterable[Document] | Mapping[str, str],
    chunks: Sequence[Chunk],
    system: TermSystem,
    *,
    num_results: int = NUM_RESULTS,
    chunkers: Sequence[str] = ("given",),
) -> Candidates:
    """The best terms of chunks that are there already, such as the spans that people marked.

    Every distinct text is embedded once.
    """
    listed = documents_of(documents)
    depth = min(num_results, len(system.ontology))
    system.require_depth(depth)
    texts = {text: place for place, text in enumerate(dict.fromkeys(chunk.text for chunk in chunks))}
    row = np.array([texts[chunk.text] for chunk in chunks], dtype=np.int64)
    if texts:
        found = system.search(list(texts), depth)
        terms, scores = found.terms, np.round(found.scores / _perfect(system), SCORE_DECIMALS)
    else:
        terms, scores = np.empty((0, depth), dtype=np.int64), np.empty((0, depth))
    if np.isnan(scores).any():
        raise NotFiniteError("a score is no number (NaN)", hint="look at the vectors of the chunks")
    distinct, coded = np.unique(terms, return_inverse=True)
    places = np.array([(chunk.document, chunk.start, chunk.end) for chunk in chunks], dtype=np.int64)
    document, start, end = places.reshape(-1, 3).T
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


def _perfect(system: TermSystem) -> float:
    """What a text scores that agrees with a term in all parts of a sum."""
    return float(len(system.system.parts)) if isinstance(system.system, Sum) else 1.0


def _packed(name: str, texts: Sequence[str]) -> Arrays:
    """Texts as one row of bytes and their borders: a long one does not widen the others."""
    encoded = [text.encode() for text in texts]
    return {
        f"{name}_bytes": np.frombuffer(b"".join(encoded), dtype=np.uint8),
        f"{name}_borders": np.cumsum([0, *map(len, encoded)], dtype=np.int64),
    }


def _unpacked(name: str, arrays: Mapping[str, NDArray[Any]]) -> list[str]:
    data, borders = arrays[f"{name}_bytes"].tobytes(), arrays[f"{name}_borders"].tolist()
    return [data[start:end].decode() for start, end in pairwise(borders)]
