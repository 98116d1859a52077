"""Late fusion: several systems score the same documents, and their scores or their ranks are added.

Exact over all documents, not over truncated hit lists. ``sum:a+b`` adds scores, ``rrf:a+b`` adds
reciprocal ranks; each part is a spec with its own options, as in ``sum:minilm,dim=128+bm25:``. A
fusion's options are before its colon: ``rrf,k=20:use+tfidf:``. Names with a plus sign are quoted.
"""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.errors import ParameterError, did_you_mean
from equipoise.models.analyzer import check_nonempty_texts
from equipoise.models.encoder import ModelCard
from equipoise.models.registry import parse_fusion, parse_spec, spec_kind
from equipoise.models.retriever import (
    LEXICAL,
    Blocks,
    FittedRetriever,
    Retriever,
    ScoreScale,
    content_fingerprint,
    retriever,
)

if TYPE_CHECKING:
    from equipoise.geometry.base import PointArray
    from equipoise.types import Floats

RRF_K = 60
_FIXED_POINT = 2.0**50


def fusion_from_spec(
    text: str, *, geometry: Any = None, cache: Any = None, threads: int = 1, **options: object
) -> Retriever:
    """The fusion that a spec names; ``geometry``, ``cache`` and ``threads`` go to the parts that embed."""
    kind, spec_options, parts = parse_fusion(text)
    all_options = {**spec_options, **{name: str(value) for name, value in options.items() if value is not None}}
    accepted = ("k",) if kind == "rrf" else ()
    for name in all_options:
        if name not in accepted:
            hint = did_you_mean(name, accepted) or "an option of a part follows the part"
            raise ParameterError(f"{kind}: has no option {name!r}", hint=hint)
    systems = [
        retriever(part, cache=cache, threads=threads, geometry=geometry if _embeds(part) else None) for part in parts
    ]
    return SumFusion(systems) if kind == "sum" else ReciprocalRankFusion(systems, k=_rank_constant(all_options, text))


class _Fusion(Retriever):
    """Two or more systems over the same documents."""

    kind: str
    scale = ScoreScale.ORDER

    def __init__(self, parts: Sequence[Retriever]) -> None:
        if len(parts) < 2:
            raise ParameterError(f"{self.kind}: has {len(parts)} parts", hint="fuse two systems or more")
        if any(isinstance(part, _Fusion) for part in parts):
            raise ParameterError("fusions cannot be nested", hint="name all systems in one fusion")
        self.parts = tuple(parts)

    @property
    def card(self) -> ModelCard:
        """The parts by name."""
        cards = [part.card for part in self.parts]
        sizes = [card.bytes_per_vector for card in cards if card.bytes_per_vector is not None]
        return ModelCard(
            " + ".join(card.name for card in cards),
            f"{self.kind}{self._options()}:" + "+".join(_quote_part(card.spec) for card in cards),
            licence=", ".join(dict.fromkeys(card.licence for card in cards if card.licence)),
            bytes_per_vector=sum(sizes) if sizes else None,
            note=self._note(),
        )

    @property
    def fingerprint(self) -> str:
        """Made of the fingerprints of the parts."""
        return content_fingerprint(self.kind + " 1" + self._options(), *(part.fingerprint for part in self.parts))

    def fit(self, documents: Iterable[str]) -> FittedFusion:
        """Fit every part."""
        documents = check_nonempty_texts(documents, "documents")
        return FittedFusion(self, [part.fit(documents) for part in self.parts])

    def _options(self) -> str:
        return ""

    @abstractmethod
    def contribution(self, part: int, scores: PointArray) -> Floats:
        """The contribution of a part, from its scores of all documents for some queries."""

    @abstractmethod
    def _note(self) -> str: ...


class SumFusion(_Fusion):
    """The plain sum of the scores: cosines as they are, BM25 divided by the query's largest score.

    Systems whose scores are only ordinal (a geometry other than cosine) are an error: there is no common scale.
    """

    kind = "sum"

    def __init__(self, parts: Sequence[Retriever]) -> None:
        super().__init__(parts)
        for part in self.parts:
            if part.scale is ScoreScale.ORDER:
                raise ParameterError(
                    f"the scores of {part.card.spec} have no scale that could be added to others",
                    hint="use rrf:, which adds reciprocal ranks, or geometry=cosine",
                )

    def contribution(self, part: int, scores: PointArray) -> Floats:
        """The scores in float64, each query's divided by its largest where they have no bound."""
        exact = scores.astype(np.float64)
        if self.parts[part].scale is ScoreScale.POSITIVE:
            largest = exact.max(axis=1, keepdims=True)
            np.divide(exact, largest, out=exact, where=largest > 0.0)
        return exact

    def _note(self) -> str:
        return "plain sum of scores; BM25 divided by the query's largest"


class WeightedSumFusion(SumFusion):
    """A sum fusion of two systems with the weights w and 1 - w."""

    def __init__(self, parts: Sequence[Retriever], weight: float) -> None:
        super().__init__(parts)
        self.weights = (weight, 1.0 - weight)

    def contribution(self, part: int, scores: PointArray) -> Floats:
        """The scores of the plain sum, weighted."""
        return self.weights[part] * super().contribution(part, scores)

    def _options(self) -> str:
        return f",weight={self.weights[0]:g}"

    def _note(self) -> str:
        return f"{super()._note()}; weights {self.weights[0]:g} and {self.weights[1]:g}"


class ReciprocalRankFusion(_Fusion):
    """The sum of ``1 / (k + rank)`` (Cormack, Clarke and Buettcher, SIGIR 2009), over full rankings.

    Equal scores share the expectation over their orders, as everywhere in this program; so documents that a
    lexical part does not score are neither dropped nor ranked by their input order.
    """

    kind = "rrf"

    def __init__(self, parts: Sequence[Retriever], *, k: float = RRF_K) -> None:
        super().__init__(parts)
        if not 0.0 <= k < np.inf:
            raise ParameterError(f"k is {k} in rrf:", hint="k is a number of 0 or more; 60 is usual")
        self.k = float(k)

    def contribution(self, part: int, scores: PointArray) -> Floats:
        """The reciprocal ranks of each query's documents."""
        return reciprocal_ranks(scores, self.k)

    def _options(self) -> str:
        return "" if self.k == RRF_K else f",k={self.k:g}"

    def _note(self) -> str:
        return f"reciprocal rank fusion, k = {self.k:g}"


class FittedFusion(FittedRetriever):
    """A fusion of fitted retrievers."""

    def __init__(self, fusion: _Fusion, parts: Sequence[FittedRetriever]) -> None:
        self.documents = len(parts[0])
        self.fusion, self.parts = fusion, parts
        self.bytes_per_score = 16 + sum(part.bytes_per_score for part in parts)

    def row_blocks(self, queries: Sequence[str], rows: int) -> Blocks:
        """The same queries of every part at a time."""
        for blocks in zip(*(part.row_blocks(queries, rows) for part in self.parts), strict=True):
            total = self.fusion.contribution(0, blocks[0][1])
            for part, (_, scores) in enumerate(blocks[1:], start=1):
                total += self.fusion.contribution(part, scores)
            yield blocks[0][0], total


def reciprocal_ranks(scores: PointArray, k: float) -> Floats:
    """``1 / (k + rank)`` of every score of each row; equal scores share the mean over their ranks.

    Rounded to multiples of 2^-50, so that sums are exact and do not depend on the order of the parts.

    >>> reciprocal_ranks(np.array([[0.5, 0.9, 0.5]]), k=1).round(4).tolist()
    [[0.2917, 0.5, 0.2917]]
    """
    width = scores.shape[1]
    terms = 1.0 / (k + np.arange(1, width + 1))
    before = np.concatenate([[0.0], np.cumsum(terms)])
    shares = np.empty(scores.shape)
    for row, share in zip(scores, shares, strict=True):
        order = np.argsort(-row)
        ranked = row[order]
        first = np.flatnonzero(np.concatenate([[True], ranked[1:] != ranked[:-1]]))
        size = np.diff(first, append=width)
        mean = np.where(size == 1, terms[first], (before[first + size] - before[first]) / size)
        share[order] = np.repeat(mean, size)
    return np.rint(shares * _FIXED_POINT) / _FIXED_POINT


def _embeds(part: str) -> bool:
    return spec_kind(part) not in LEXICAL


def _rank_constant(options: Mapping[str, str], text: str) -> float:
    try:
        return float(options.get("k", RRF_K))
    except ValueError:
        raise ParameterError(f"k is {options['k']!r} in {text!r}", hint="k is a number") from None


def _quote_part(text: str) -> str:
    """A part's spec with quotes around names and values that contain a plus sign."""
    if "+" not in text:
        return text
    spec = parse_spec(text)
    values = {name: json.dumps(value) if "+" in value else value for name, value in spec.options.items()}
    name = json.dumps(spec.name) if "+" in spec.name else spec.name
    return f"{spec.kind}:{name}" + "".join(f",{key}={value}" for key, value in sorted(values.items()))
