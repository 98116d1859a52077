"""How every expected term stands with all systems, for the check that looks for wrong ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import numpy as np

from equipoise.checks.phenotypes import ExpectedTerm, ExpectedTerms
from equipoise.ontology.similarity import Similarity
from equipoise.recipes.phenotypes.observe import Observed
from equipoise.recipes.phenotypes.truth import Truth
from equipoise.types import Ints

LOOKED_AT = 10
"""How many of the first terms of each system an expected term is compared with."""


def expected_terms(seen: Mapping[str, Observed], truth: Truth, alike: Similarity) -> ExpectedTerms:
    """For each expected term its best rank by any system, and how alike the first terms of any are to it."""
    ontology = truth.ontology
    ranks = np.min([each.ranks for each in seen.values()], axis=0)
    told: list[ExpectedTerm] = []
    place = 0
    for row, (case, terms) in enumerate(zip(truth.cases, truth.expected, strict=True)):
        first = np.concatenate([each.first[row, :LOOKED_AT] for each in seen.values()])
        first = first[first >= 0]
        leading = Counter(int(each.first[row, 0]) for each in seen.values() if each.first[row, 0] >= 0)
        for term in terms.tolist():
            told.append(
                ExpectedTerm(
                    case=case.id,
                    text=case.text,
                    id=ontology.ids[term],
                    label=ontology.labels[term],
                    rank=float(ranks[place]),
                    nearest=_nearest(alike, term, first),
                    found=ontology.labels[leading.most_common(1)[0][0]] if leading else "",
                )
            )
            place += 1
    return ExpectedTerms(tuple(told), tuple(seen), len(ontology))


def _nearest(alike: Similarity, term: int, first: Ints) -> float:
    if not len(first):
        return float("nan")
    return float(alike.pairs(np.full(len(first), term), first).max())
