"""What gold and predicted sets of documents have in common, counted document by document."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from equipoise.errors import UndefinedError
from equipoise.evidence.sets import Sets, TermSets
from equipoise.types import Bools, Floats, Ints

Mode = Literal["strict", "present", "id"]


class Overlap(NamedTuple):
    """For each document: hits (parts of hits, where credit is given), gold entries, predicted entries."""

    hits: Floats
    gold: Ints | Floats
    predicted: Ints | Floats


def overlap(sets: Sets, mode: Mode, *, soft: bool = False) -> Overlap:
    """What gold and predicted sets have in common, after ``mode`` has said what an entry is.

    ``strict``: a term with its assertion. ``present``: affirmed terms only, on both sides.
    ``id``: a term, whatever was asserted of it. What was counted once is kept with the sets: matching one
    to one is slow, and a bootstrap asks for the same documents again and again.
    """
    if (mode, soft) in sets.counted:
        return Overlap(*sets.counted[mode, soft])
    found = _overlap(sets, mode, soft)
    sets.counted[mode, soft] = tuple(found)
    return found


def _overlap(sets: Sets, mode: Mode, soft: bool) -> Overlap:
    gold, predicted = viewed(sets.gold, mode), viewed(sets.predicted, mode)
    hits = soft_hits(gold, predicted, sets) if soft else exact_hits(gold, predicted, sets)
    return Overlap(hits, gold.sizes, predicted.sizes)


def viewed(side: TermSets, mode: Mode) -> TermSets:
    """The entries that count in this mode; assertions that do not matter become 0."""
    if mode == "strict":
        return side
    if mode == "present":
        return side.where(side.assertions == 0)
    # Entries are sorted by term within a document, so repeated terms stand side by side.
    repeated = np.zeros(len(side.terms), dtype=bool)
    documents = side.documents
    repeated[1:] = (side.terms[1:] == side.terms[:-1]) & (documents[1:] == documents[:-1])
    return side.where(~repeated)._replace(assertions=np.zeros(int((~repeated).sum()), dtype=np.int64))


def exact_hits(gold: TermSets, predicted: TermSets, sets: Sets) -> Floats:
    """How many predicted entries of each document are gold."""
    terms, assertions = max(1, len(sets.terms)), len(sets.assertions)
    wanted, given = (
        (side.documents * terms + side.terms) * assertions + side.assertions for side in (gold, predicted)
    )
    found: Bools = np.isin(given, wanted)
    return np.bincount(predicted.documents[found], minlength=len(sets)).astype(np.float64)


def soft_hits(gold: TermSets, predicted: TermSets, sets: Sets) -> Floats:
    """The largest total credit of any one-to-one matching in each document."""
    documents = np.arange(len(sets))
    return pair_credits(gold, predicted, documents, documents, sets)


def pair_credits(gold: TermSets, predicted: TermSets, wanted: Ints, given: Ints, sets: Sets) -> Floats:
    """The same for the gold of documents ``wanted`` and the predictions of documents ``given``, in pairs.

    Exact matches are not fixed first: two near misses may together earn more than one hit.
    """
    from scipy.optimize import linear_sum_assignment

    if sets.credit is None:
        raise UndefinedError(
            "soft scores need to know what a near miss earns, and these sets carry no credit",
            hint="sets.with_credit(similarity) adds it; without soft only exact terms count",
        )
    hits = np.zeros(len(wanted))
    for pair in np.flatnonzero((gold.sizes[wanted] > 0) & (predicted.sizes[given] > 0)):
        rows = slice(*gold.offsets[wanted[pair] : wanted[pair] + 2])
        columns = slice(*predicted.offsets[given[pair] : given[pair] + 2])
        matrix = sets.credit.between(gold.terms[rows], predicted.terms[columns], len(sets.terms))
        # Nothing is earned across assertions.
        matrix = np.where(gold.assertions[rows, None] == predicted.assertions[columns], matrix, 0.0)
        if matrix.any():
            hits[pair] = matrix[linear_sum_assignment(matrix, maximize=True)].sum()
    return hits
