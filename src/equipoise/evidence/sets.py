"""Gold and predicted sets of (term, assertion) in each document, with optional credit for near misses."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from equipoise.errors import DuplicateError, InputError, NotFiniteError, ShapeError
from equipoise.evidence.base import Arrays, Evidence, StoredArrays, ids_to_array, unique_ids
from equipoise.types import Bools, Floats, Ids, Ints

AFFIRMED = "affirmed"
"""The assertion of a term without one; always code 0."""

BLOCK_TERMS = 256

Element = str | tuple[str, str]
Similarity = Callable[[Ids, Ids], Any]
"""Called with gold terms and predicted terms; returns their (gold, predicted) matrix of credits in [0, 1]."""


class TermSets(NamedTuple):
    """One set per document: document ``i`` holds the entries ``offsets[i]`` to ``offsets[i + 1]``."""

    offsets: Ints
    terms: Ints
    assertions: Ints

    @property
    def sizes(self) -> Ints:
        """The number of entries of each document."""
        return np.diff(self.offsets)

    @property
    def documents(self) -> Ints:
        """The document of each entry."""
        return np.repeat(np.arange(len(self.offsets) - 1), self.sizes)

    def take(self, index: Ints) -> TermSets:
        """The sets of the documents at ``index``, in that order."""
        sizes = self.sizes[index]
        offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        entries = np.arange(offsets[-1]) + np.repeat(self.offsets[:-1][index] - offsets[:-1], sizes)
        return TermSets(offsets, self.terms[entries], self.assertions[entries])

    def where(self, mask: Bools) -> TermSets:
        """Only the entries marked in ``mask``, in the same documents."""
        offsets = np.concatenate([[0], np.cumsum(mask)])[self.offsets].astype(np.int64)
        return TermSets(offsets, self.terms[mask], self.assertions[mask])


class PartialCredit(NamedTuple):
    """The credit of a predicted term for another gold term: pairs of codes, sorted; absent pairs have 0."""

    gold: Ints
    predicted: Ints
    similarity: Floats

    def between(self, gold: Ints, predicted: Ints, terms: int) -> Floats:
        """The (gold, predicted) matrix of credits; a term earns 1 for itself."""
        matrix: Floats = (gold[:, None] == predicted).astype(np.float64)
        if len(self.gold):
            keys, queries = self.gold * terms + self.predicted, gold[:, None] * terms + predicted
            position = np.minimum(np.searchsorted(keys, queries), len(keys) - 1)
            np.maximum(matrix, np.where(keys[position] == queries, self.similarity[position], 0.0), out=matrix)
        return matrix


@dataclass(frozen=True, eq=False, repr=False)
class Sets(Evidence):
    """The true and the predicted terms of each document; a unit is a document.

    ``missing`` marks documents without a prediction, which count as empty. ``unknown_units`` are the documents with a
    prediction that are not in the ground truth; they are ignored.

    >>> sets = Sets.of({"d1": ["fever", ("cough", "negated")]}, {"d1": ["fever", "cough"]})
    >>> sets.terms.tolist(), sets.assertions.tolist(), sets.gold.assertions.tolist()
    (['cough', 'fever'], ['affirmed', 'negated'], [1, 0])
    """

    kind: ClassVar[str] = "sets"

    unit_ids: Ids
    gold: TermSets
    predicted: TermSets
    terms: Ids
    assertions: Ids
    missing: Bools
    unknown_units: tuple[str, ...] = ()
    credit: PartialCredit | None = None
    counted: dict[Any, tuple[Any, ...]] = field(default_factory=dict, init=False)
    """Counts per document, cached by the metrics; ``take`` selects the counts together with the documents."""
    permutation_cache: dict[Any, Any] = field(default_factory=dict, init=False)
    """Counts of these sets after random assignment to documents, for the chance levels."""

    @classmethod
    def of(cls, gold: Mapping[Any, Iterable[Element]], predicted: Mapping[Any, Iterable[Element]]) -> Self:
        """From sets of terms by document. A duplicate entry in one set is an error.

        Parameters
        ----------
        gold
            The true terms of each document. A term is a text, or a pair of a term and its assertion, such as
            ``("cough", "negated")``; a text alone is affirmed.
        predicted
            The predicted terms, in the same form.
        """
        truth, answer = _entries_by_document(gold, "gold"), _entries_by_document(predicted, "predicted")
        pairs = {entry for side in (truth, answer) for entries in side.values() for entry in entries}
        terms = sorted({term for term, _ in pairs})
        others = sorted({assertion for _, assertion in pairs} - {AFFIRMED})
        term_codes = {term: code for code, term in enumerate(terms)}
        assertion_codes = {name: code for code, name in enumerate([AFFIRMED, *others])}
        return cls(
            unit_ids=unique_ids(list(truth), len(truth)),
            gold=_encode_sets([truth[document] for document in truth], term_codes, assertion_codes),
            predicted=_encode_sets([answer.get(document, []) for document in truth], term_codes, assertion_codes),
            terms=np.array(terms, dtype=object),
            assertions=np.array([AFFIRMED, *others], dtype=object),
            missing=np.array([document not in answer for document in truth], dtype=bool),
            unknown_units=tuple(str(document) for document in answer if document not in truth),
        )

    def with_credit(self, similarity: Similarity) -> Self:
        """The same sets, where a near miss counts as part of a hit in the soft scores.

        ``similarity`` gets some gold terms and all predicted terms, and returns a matrix in [0, 1].

        >>> sets = Sets.of({"d1": ["fever"]}, {"d1": ["high fever"]})
        >>> sets.with_credit(lambda gold, predicted: np.full((len(gold), len(predicted)), 0.8)).credit.similarity
        array([0.8])
        """
        rows, columns = np.unique(self.gold.terms), np.unique(self.predicted.terms)
        parts = []
        for start in range(0, len(rows), BLOCK_TERMS):
            block = rows[start : start + BLOCK_TERMS]
            matrix = _credits(similarity(self.terms[block], self.terms[columns]), (len(block), len(columns)))
            gold, predicted = np.nonzero((matrix > 0) & (block[:, None] != columns))
            parts.append((block[gold], columns[predicted], matrix[gold, predicted]))
        if not parts:
            parts = [(rows, rows, np.empty(0))]
        return replace(self, credit=PartialCredit(*(np.concatenate(side) for side in zip(*parts, strict=True))))

    def take(self, index: Ints) -> Self:
        """The documents at ``index``, in that order."""
        sample = replace(
            self,
            unit_ids=self.unit_ids[index],
            gold=self.gold.take(index),
            predicted=self.predicted.take(index),
            missing=self.missing[index],
        )
        for name, columns in self.counted.items():
            sample.counted[name] = tuple(column[index] for column in columns)
        return sample

    def shuffled(self, rng: np.random.Generator) -> Self:
        """The same predicted sets, assigned to the documents at random; set sizes and term frequencies remain."""
        order = rng.permutation(len(self))
        return replace(self, predicted=self.predicted.take(order), missing=self.missing[order])

    def to_arrays(self) -> Arrays:
        """Ids, names, and the two collections of sets as offsets and codes."""
        arrays: Arrays = {name: ids_to_array(getattr(self, name)) for name in ("unit_ids", "terms", "assertions")}
        arrays["missing"] = self.missing
        arrays["unknown_units"] = np.array(self.unknown_units, dtype=str)
        for side in ("gold", "predicted", "credit"):
            group = getattr(self, side)
            if group is not None:
                arrays |= {f"{side}_{name}": array for name, array in group._asdict().items()}
        return arrays

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """The inverse of ``to_arrays``."""
        stored = StoredArrays(arrays)
        unit_ids, terms, assertions = (stored.ids(name) for name in ("unit_ids", "terms", "assertions"))
        sides = {}
        for side in ("gold", "predicted"):
            codes = stored.codes(f"{side}_terms", len(terms), None)
            sides[side] = TermSets(
                stored.offsets(f"{side}_offsets", len(unit_ids), len(codes)),
                codes,
                stored.codes(f"{side}_assertions", len(assertions), len(codes)),
            )
        credit = None
        if "credit_similarity" in stored:
            similarity = stored.numbers("credit_similarity", None)
            gold, predicted = (
                stored.codes(f"credit_{side}", len(terms), len(similarity)) for side in ("gold", "predicted")
            )
            credit = PartialCredit(gold, predicted, similarity)
        return cls(
            unit_ids,
            sides["gold"],
            sides["predicted"],
            terms=terms,
            assertions=assertions,
            missing=stored.flags("missing", len(unit_ids)),
            unknown_units=stored.texts("unknown_units"),
            credit=credit,
        )


def _entries_by_document(sets: Any, side: str) -> dict[Any, list[tuple[str, str]]]:
    """The sets of all documents as sorted entries."""
    if not isinstance(sets, Mapping):
        raise InputError(
            f"the {side} sets are of type {type(sets).__name__}",
            hint="give a mapping from each document id to its terms",
        )
    return {document: _entries(document, elements, side) for document, elements in sets.items()}


def _entries(document: Any, elements: Iterable[Element], side: str) -> list[tuple[str, str]]:
    """One document's set as sorted (term, assertion) pairs."""
    if isinstance(elements, str):
        raise InputError(
            f"the {side} set of document {document} is the string {elements!r}", hint="give a list of terms"
        )
    entries = []
    for element in elements:
        match element:
            case str(term):
                entries.append((term, AFFIRMED))
            case (str(term), str(assertion)):
                entries.append((term, assertion))
            case _:
                raise InputError(
                    f"the {side} set of document {document} holds {element!r}",
                    hint="an entry is a term, or a pair of term and assertion",
                )
    entries.sort()
    for before, after in pairwise(entries):
        if before == after:
            raise DuplicateError(
                f"the {side} set of document {document} holds {' / '.join(after)} twice",
                hint="pass a set if mentions are meant to count once",
            )
    return entries


def _encode_sets(
    sets: list[list[tuple[str, str]]], terms: Mapping[str, int], assertions: Mapping[str, int]
) -> TermSets:
    """Sorted entries as offsets and codes."""
    flat = [entry for entries in sets for entry in entries]
    return TermSets(
        np.cumsum([0, *(len(entries) for entries in sets)], dtype=np.int64),
        np.array([terms[term] for term, _ in flat], dtype=np.int64),
        np.array([assertions[assertion] for _, assertion in flat], dtype=np.int64),
    )


def _credits(answer: Any, shape: tuple[int, int]) -> Floats:
    """The matrix that a similarity returned, if it is one."""
    matrix = np.asarray(answer, dtype=np.float64)
    if matrix.shape != shape:
        raise ShapeError(
            f"the similarity returned shape {matrix.shape} for {shape[0]} gold and {shape[1]} predicted terms"
        )
    if not ((matrix >= 0) & (matrix <= 1)).all():
        raise NotFiniteError(
            "the similarity returned values outside 0 to 1",
            hint="credit is a share of a hit",
        )
    return matrix
