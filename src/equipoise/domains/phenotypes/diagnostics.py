"""Label self-retrieval, and correlation of retrieval scores with ontology similarity.

All values come from one pass with the labels of a sample of terms as queries.

- Self-match: the term of a label is the first answer, with the label as it is written and in lower case. Equal scores
  share the first place.
- Branch purity: of the nearest terms to a term, the share that have a top-level branch in common with it.
- Fidelity: for each term, Spearman's correlation of the system's distance (minus the score) to the other
  terms of the sample with their path length in the graph; and of its score with their Resnik similarity.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from equipoise.config import DEFAULT_STATS, StatsConfig
from equipoise.domains.phenotypes.similarity import path_lengths, term_similarity
from equipoise.geometry.topk import top_columns
from equipoise.stats.estimate import result_from_values
from equipoise.stats.slices import Slice, slice_estimates

if TYPE_CHECKING:
    from equipoise.domains.phenotypes.ontology import Ontology, TopLevelBranches
    from equipoise.domains.phenotypes.scoring import TermScorer
    from equipoise.stats.result import Estimate, Result
    from equipoise.types import Bools, Floats, Ints

N_NEIGHBORS = 10
SELF, LOWER_CASE, PURITY = "self-match", "self-match, lower case", f"branch purity@{N_NEIGHBORS}"
PATHS, RESNIK = "Spearman with path length", "Spearman with Resnik"
SYNONYMS = "synonyms"


@dataclass(frozen=True)
class LabelDiagnostics:
    """Shares and correlations over a sample of terms with intervals; self-match by number of synonyms."""

    terms: int
    shares: Result
    correlations: Result
    by_synonyms: tuple[Slice, ...]

    @property
    def scores(self) -> tuple[Estimate, ...]:
        """All estimates, including self-match by number of synonyms."""
        shares, correlations = self.shares.estimates, self.correlations.estimates
        parts = [replace(part.estimate, metric=f"  synonyms: {part.value}") for part in self.by_synonyms]
        return (shares[SELF], *parts, shares[LOWER_CASE], shares[PURITY], *correlations.values())

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        estimates = [*self.shares.estimates.values(), *self.correlations.estimates.values()]
        return {
            "terms": self.terms,
            "estimates": [estimate.to_dict() for estimate in estimates],
            "self_match_by_synonyms": {part.value: part.estimate.to_dict() for part in self.by_synonyms},
        }


def diagnose(
    system: TermScorer, ontology: Ontology, *, n_labels: int = 500, config: StatsConfig = DEFAULT_STATS
) -> LabelDiagnostics:
    """Search for the labels of a random sample of terms, and compare the scores with the graph.

    Parameters
    ----------
    system
        A system that scores all terms, such as a ``TermRetriever``.
    ontology
        The ontology.
    n_labels
        Number of labels in the sample.
    config
        Confidence level, resamples and seed.

    Returns
    -------
    LabelDiagnostics
        How often a label finds its own term, branch purity, and the correlation with similarity in the graph.

    Examples
    --------
    >>> diagnose(system, load_ontology(), n_labels=300).scores  # doctest: +SKIP
    """
    rng = config.rng(len(ontology))
    terms = np.sort(rng.choice(len(ontology), min(n_labels, len(ontology)), replace=False))
    columns = _label_scores(system, ontology, terms)
    ids = [ontology.ids[term] for term in terms]
    branches = top_branches(ontology)
    shares = result_from_values(
        "labels",
        ids,
        {name: columns[name] for name in (SELF, LOWER_CASE, PURITY)},
        chance={
            SELF: 1.0 / len(ontology),
            LOWER_CASE: 1.0 / len(ontology),
            PURITY: _chance_purity(branches, terms),
        },
        config=config,
    )
    correlations = result_from_values(
        "labels",
        ids,
        {PATHS: columns[PATHS], RESNIK: columns[RESNIK]},
        bounds=(-1.0, 1.0),
        chance={PATHS: 0.0, RESNIK: 0.0},
        unit="correlation",
        config=config,
    )
    groups = {
        name: {SYNONYMS: _synonym_group(len(ontology.synonyms[term]))} for name, term in zip(ids, terms, strict=True)
    }
    by_synonyms = slice_estimates(shares, SELF, groups)
    return LabelDiagnostics(len(terms), shares, correlations, tuple(sorted(by_synonyms, key=lambda part: part.value)))


def top_branches(ontology: Ontology) -> TopLevelBranches:
    """The children of the root, or of its largest child if that has more than half of the terms."""
    branches = ontology.branches()
    sizes = branches.member.sum(axis=0)
    if len(sizes) and sizes.max() > len(ontology) / 2:
        return ontology.branches(ontology.ids[branches.tops[int(sizes.argmax())]])
    return branches


def _label_scores(system: TermScorer, ontology: Ontology, terms: Ints) -> dict[str, Floats]:
    member = top_branches(ontology).member
    resnik = term_similarity(ontology, "resnik")
    columns = {name: np.full(len(terms), np.nan) for name in (SELF, LOWER_CASE, PURITY, PATHS, RESNIK)}
    labels = [ontology.labels[term] for term in terms]
    for part, scores in system.score_blocks([label.lower() for label in labels]):
        columns[LOWER_CASE][part] = _first_place(scores, terms[part])
    for part, scores in system.score_blocks(labels):
        block = terms[part]
        columns[SELF][part] = _first_place(scores, block)
        columns[PURITY][part] = _purity(scores, block, member)
        for row, term in enumerate(block):
            others = terms[terms != term]
            repeated = np.full(len(others), term)
            near = scores[row, others]
            columns[PATHS][part.start + row] = _spearman(-near, path_lengths(ontology, repeated, others))
            columns[RESNIK][part.start + row] = _spearman(near, resnik.pairs(repeated, others))
    return columns


def _first_place(scores: NDArray[Any], own_columns: Ints) -> Floats:
    """1 for a term with the highest score, divided by the number of ties."""
    own_scores = scores[np.arange(len(own_columns)), own_columns][:, None]
    shares: Floats = ((scores > own_scores).sum(axis=1) == 0) / (scores == own_scores).sum(axis=1)
    return shares


def _purity(scores: NDArray[Any], own_columns: Ints, member: Bools) -> Floats:
    """Share of the nearest other terms in a common branch; NaN for terms outside all branches."""
    masked = scores.astype(np.float64)
    masked[np.arange(len(own_columns)), own_columns] = -np.inf
    nearest, _ = top_columns(masked, min(N_NEIGHBORS, scores.shape[1] - 1))
    shared = (member[own_columns][:, None, :] & member[nearest]).any(axis=-1).mean(axis=1)
    return np.where(member[own_columns].any(axis=1), shared, np.nan)


def _chance_purity(branches: TopLevelBranches, terms: Ints) -> float:
    """The share of random pairs that have a branch in common."""
    inside = terms[branches.member[terms].any(axis=1)]
    if len(inside) < 2:
        return float("nan")
    member = branches.member.astype(np.float32)
    shared = (member[inside] @ member.T > 0).sum(axis=1) - 1
    return float(shared.mean() / (len(member) - 1))


def _spearman(a: Floats, b: Floats) -> float:
    """Spearman's correlation; undefined where either is constant."""
    from scipy.stats import rankdata

    finite = np.isfinite(a) & np.isfinite(b)
    if finite.sum() < 3:
        return float("nan")
    x, y = rankdata(a[finite]), rankdata(b[finite])
    x, y = x - x.mean(), y - y.mean()
    scale = float(np.sqrt((x @ x) * (y @ y)))
    return float(np.clip(x @ y / scale, -1.0, 1.0)) if scale else float("nan")


def _synonym_group(synonyms: int) -> str:
    if synonyms < 3:
        return str(synonyms)
    return "3 to 5" if synonyms < 6 else "6 or more"
