"""The texts of each term: label, synonyms and definition, or all of them concatenated.

The order of the texts makes aggregation cheap. Terms are sorted by decreasing number of synonyms; among equals,
those with a definition come first. The columns are all labels, then the first synonym of every term that has
one, then the second synonyms, and so on; the definitions are last. Each synonym run belongs to a prefix of the
sorted terms and the definitions to a few runs of terms, so a maximum is a few maxima of contiguous columns
(about nine times as fast as numpy's ``reduceat`` over segments).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from hashlib import sha256
from typing import TYPE_CHECKING

import numpy as np

from equipoise.errors import InputError, ShapeError

if TYPE_CHECKING:
    from equipoise.domains.phenotypes.ontology.ontology import Ontology
    from equipoise.types import Bools, Ints


TEXTS_VERSION = "texts 1"
"""Increased when the same ontology gives other texts or another order."""


class ComponentKind(IntEnum):
    """The role of a text for its term."""

    LABEL = 0
    SYNONYM = 1
    DEFINITION = 2
    WHOLE = 3
    """Label, synonyms and definition in one text: the only component of a term in a single-vector index."""


@dataclass(frozen=True, slots=True, eq=False)
class TermTexts:
    """The texts of all terms; column i of a score matrix is text i.

    ``term`` is the index of its term in the ontology and ``kind`` a code of ``ComponentKind``. ``order`` has the terms
    in sorted order; ``synonym_runs`` has the number of sorted terms with a first synonym, a second synonym and
    so on; ``definition_positions`` has the positions, among the sorted terms, of those with a definition.
    """

    texts: tuple[str, ...]
    term: Ints
    kind: Ints
    order: Ints
    synonym_runs: tuple[int, ...] = ()
    definition_positions: Ints | None = None

    def __len__(self) -> int:
        return len(self.texts)

    @property
    def terms(self) -> int:
        """The number of terms."""
        return len(self.order)

    @property
    def multi_vector(self) -> bool:
        """Whether label, synonyms and definition are separate texts."""
        return self.definition_positions is not None

    @property
    def without_definitions(self) -> int:
        """The number of leading texts that are labels or synonyms."""
        return self.terms + sum(self.synonym_runs)

    @property
    def fingerprint(self) -> str:
        """A digest of the texts in order, and of their terms."""
        digest = sha256(np.ascontiguousarray(self.term).tobytes())
        for text in self.texts:
            digest.update(sha256(text.encode()).digest())
        return digest.hexdigest()

    def subset(self, terms: Ints) -> tuple[TermTexts, Ints]:
        """The components of some distinct terms, and their columns here; term i of them is ``terms[i]``."""
        position = np.full(self.terms, -1, dtype=np.int64)
        position[terms] = np.arange(len(terms))
        columns = np.flatnonzero(position[self.term] >= 0)
        arranged = position[self.order] >= 0
        subset = TermTexts(
            texts=tuple(self.texts[column] for column in columns),
            term=position[self.term[columns]],
            kind=self.kind[columns],
            order=position[self.order[arranged]],
            synonym_runs=tuple(filter(None, (int(arranged[:size].sum()) for size in self.synonym_runs))),
            definition_positions=None
            if self.definition_positions is None
            else _renumber(self.definition_positions, arranged),
        )
        return subset, columns


def term_texts(ontology: Ontology, multi_vector: bool = True) -> TermTexts:
    """The texts of an ontology's terms: one per component, or one per term."""
    make = component_texts if multi_vector else concatenated_texts
    labels = [label.strip() or name for name, label in zip(ontology.ids, ontology.labels, strict=True)]
    return make(labels, ontology.synonyms, ontology.definitions)


def component_texts(labels: Sequence[str], synonyms: Sequence[Sequence[str]], definitions: Sequence[str]) -> TermTexts:
    """A text for each label, each synonym and each definition; blank ones are left out.

    >>> found = component_texts(["Seizure", "Fever"], [[], ["Pyrexia"]], ["A fit.", ""])
    >>> found.texts, found.term.tolist()
    (('Fever', 'Seizure', 'Pyrexia', 'A fit.'), [1, 0, 1, 0])
    """
    _check_same_length(labels, synonyms, definitions)
    synonym_lists = [[synonym for synonym in term_synonyms if synonym.strip()] for term_synonyms in synonyms]
    counts = np.array([len(term_synonyms) for term_synonyms in synonym_lists], dtype=np.int64)
    order = np.lexsort((np.array([not definition.strip() for definition in definitions]), -counts))
    rounds = tuple(int((counts > nth).sum()) for nth in range(counts.max(initial=0)))
    defined = np.array([at for at, term in enumerate(order) if definitions[term].strip()], dtype=np.int64)
    terms = [order, *(order[:size] for size in rounds), order[defined]]
    kinds = [ComponentKind.LABEL, *(ComponentKind.SYNONYM for _ in rounds), ComponentKind.DEFINITION]
    texts = [labels[term] for term in order]
    texts += [synonym_lists[term][nth] for nth, size in enumerate(rounds) for term in order[:size]]
    texts += [definitions[term] for term in order[defined]]
    kind = np.repeat(np.array(kinds, dtype=np.int64), [len(numbers) for numbers in terms])
    return TermTexts(tuple(texts), np.concatenate(terms), kind, order, rounds, defined)


def concatenated_texts(
    labels: Sequence[str], synonyms: Sequence[Sequence[str]], definitions: Sequence[str]
) -> TermTexts:
    """One text per term: label, comma-separated synonyms and definition, joined by bars.

    >>> concatenated_texts(["Seizure"], [["Fits", "Convulsions"]], ["Abnormal activity."]).texts
    ('Seizure | Fits, Convulsions | Abnormal activity.',)
    """
    _check_same_length(labels, synonyms, definitions)
    positions = np.arange(len(labels))
    texts = tuple(
        " | ".join(part for part in (label, ", ".join(filter(str.strip, term_synonyms)), definition) if part.strip())
        for label, term_synonyms, definition in zip(labels, synonyms, definitions, strict=True)
    )
    return TermTexts(texts, positions, np.full(len(labels), int(ComponentKind.WHOLE)), positions)


def _check_same_length(labels: Sequence[str], synonyms: Sequence[Sequence[str]], definitions: Sequence[str]) -> None:
    if not len(labels) == len(synonyms) == len(definitions):
        raise ShapeError(
            f"{len(labels)} labels, {len(synonyms)} lists of synonyms and {len(definitions)} definitions were given",
            hint="give one of each for every term, empty where a term has none",
        )
    if not len(labels):
        raise InputError("there are no terms to index", hint="check that the ontology has live terms")
    blank = next((index for index, label in enumerate(labels) if not label.strip()), None)
    if blank is not None:
        raise InputError(f"term {blank} (counted from 0) has no label", hint="use its id as its label")


def _renumber(positions: Ints, mask: Bools) -> Ints:
    """New positions of the kept ones of ``positions``."""
    renumbered: Ints = np.cumsum(mask) - 1
    return renumbered[positions[mask[positions]]]
