"""How much a term says: its information content, from the graph alone or from counts of use.

From the graph, a term says the more the fewer terms lie below it, so no annotations are needed and the
same ontology always gives the same figures.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from equipoise.errors import NotFiniteError, ParameterError, ShapeError, UnknownNameError
from equipoise.ontology.ontology import Ontology
from equipoise.types import Floats

DESCENDANTS = "descendants"
SANCHEZ = "sanchez"
KINDS = {
    DESCENDANTS: "minus the logarithm of the share of terms at or below the term (Seco et al. 2004)",
    SANCHEZ: "from the leaves below and the ancestors above the term (Sanchez et al. 2011)",
}


def information_content(ontology: Ontology, kind: str = DESCENDANTS) -> Floats:
    """The information content of every term in nats, from the graph alone; 0 for the only root.

    ``descendants``: -ln(terms at or below it / all terms). Divided by ln(all terms) this is the intrinsic
    content of Seco, Veale and Hayes (2004). ``sanchez``: -ln((leaves below / ancestors + 1) / (all leaves
    + 1)), of Sanchez, Batet and Isern (2011); a term counts as its own ancestor, a leaf has none below.
    """
    lineage = ontology.lineage
    if kind == DESCENDANTS:
        return _negative_log(lineage.below / len(ontology))
    if kind != SANCHEZ:
        raise UnknownNameError.of("information content", kind, KINDS, more=f"there are: {', '.join(KINDS)}")
    leaf = np.ones(len(ontology), dtype=bool)
    leaf[ontology.parents.values] = False
    rows = lineage.rows
    leaves = np.bincount(rows.values, weights=leaf[rows.owner], minlength=len(ontology)) - leaf
    return _negative_log((leaves / rows.counts + 1.0) / (leaf.sum() + 1.0))


def annotated_information(
    ontology: Ontology, counts: Mapping[str, float] | Floats, *, prior: float = 1.0
) -> Floats:
    """The information content from how often each term is used: -ln of the share of uses at or below it.

    ``counts`` are uses of the term itself, by id or one a place. Each term is counted ``prior`` times more
    than it was used: what was never used is then rare and not impossible, and an ancestor is always more
    frequent than what lies below it, so that no two terms are taken for the same.
    """
    own = _uses(ontology, counts)
    if not prior > 0:
        raise ParameterError(
            f"the prior is {prior}, and must be above 0", hint="1 counts each term once more"
        )
    rows = ontology.lineage.rows
    used = np.bincount(rows.values, weights=own[rows.owner] + prior, minlength=len(ontology))
    return _negative_log(used / (own.sum() + prior * len(ontology)))


def _uses(ontology: Ontology, counts: Mapping[str, float] | Floats) -> Floats:
    if isinstance(counts, Mapping):
        own = np.zeros(len(ontology))
        places, _ = ontology.resolve_all(counts)
        np.add.at(own, places, np.array(list(counts.values()), dtype=np.float64))
    else:
        own = np.asarray(counts, dtype=np.float64)
    if own.shape != (len(ontology),):
        raise ShapeError(f"{own.shape} counts were given for {len(ontology)} terms", hint="one a term")
    if not (np.isfinite(own).all() and (own >= 0).all()):
        raise NotFiniteError("a count of uses is negative or no number")
    return own


def _negative_log(share: Floats) -> Floats:
    return np.maximum(-np.log(share), 0.0)
