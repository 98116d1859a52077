"""Distance matrices in place of vectors: their files, their order, and the ranks of the targets by them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.config import StatsConfig
from equipoise.domains.accounts.evaluation import (
    RelationScores,
    branch_clusters,
    check_has_edges,
    reconstruction_metrics,
)
from equipoise.domains.accounts.shape import TreeShape, sample_nodes, shape_of_distances
from equipoise.domains.accounts.trees.tree import PARENT, RELATIONS
from equipoise.domains.accounts.vectors import is_number, rows_of_tree
from equipoise.errors import FormatError, ShapeError
from equipoise.evidence.ranking import Ranking
from equipoise.io.arrays import read_array
from equipoise.io.tables import find_delimiter, records, table_format
from equipoise.io.text import PathLike, TextFile, display_path, open_text
from equipoise.stats.estimate import estimate
from equipoise.stats.result import DATA
from equipoise.stats.verdict import DISPLAY, UNIT_NOUN

if TYPE_CHECKING:
    from equipoise.domains.accounts.trees.tree import Tree
    from equipoise.stats.result import Result
    from equipoise.types import Floats


SQUARE = "distances are a square symmetric matrix with zeros on its diagonal; --vectors reads vectors"


def read_distances(path: PathLike) -> tuple[list[str] | None, Floats]:
    """A distance matrix: ``.npy``, or a CSV or TSV file whose first column and header may have the ids.

    A matrix that is not square, not symmetric, negative, or not 0 on its diagonal is an error.
    """
    ids: list[str] | None = None
    if Path(path).suffix.casefold() in (".npy", ".npz"):
        matrix = np.asarray(read_array(str(path)), dtype=np.float64)
    else:
        ids, matrix = _parse_distances(open_text(path))
    problem = (
        f"has the shape {' x '.join(map(str, matrix.shape))}"
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]
        else "has values that are not finite"
        if not np.isfinite(matrix).all()
        else "is not symmetric"
        if not np.allclose(matrix, matrix.T)
        else "has negative values"
        if (matrix < 0.0).any()
        else "is not 0 on its diagonal"
        if matrix.diagonal().any()
        else ""
    )
    if problem:
        raise FormatError(f"{display_path(path)} {problem}", hint=SQUARE)
    return ids, matrix


def _parse_distances(file: TextFile) -> tuple[list[str] | None, Floats]:
    """The ids, from the first column or else from the header, and the numbers."""
    rows = [
        (line, [cell.strip() for cell in cells])
        for line, cells in records(file, find_delimiter(file, table_format(file.name)))
    ]
    if not rows:
        raise FormatError(f"{file.name} has no distances", hint=SQUARE)
    header = rows[0][1]
    # Ids may be numbers: then a header has a corner that is none, or the table has one row more than columns.
    has_corner = not is_number(header[0]) and len(rows) == len(header)
    ids = None
    if not is_number(header[-1]) or has_corner or len(rows) == len(header) + 1:
        rows = rows[1:]
        ids = header if len(rows) == len(header) else None
    if rows and len(rows[0][1]) == len(rows) + 1:
        ids, rows = [cells[0] for _, cells in rows], [(line, cells[1:]) for line, cells in rows]
    for line, cells in rows:
        if len(cells) != len(rows):
            raise file.error(FormatError, line, f"has {len(cells):,} columns for {len(rows):,} rows", hint=SQUARE)
        invalid = next((cell for cell in cells if not is_number(cell)), None)
        if invalid is not None:
            raise file.error(FormatError, line, f"has {invalid!r}, which is not a number", hint=SQUARE)
    return ids, np.array([cells for _, cells in rows], dtype=np.float64)


def align_distances(tree: Tree, ids: list[str] | None, distances: Floats) -> Floats:
    """The distances in the order of the tree's nodes; without ids they must be in that order already."""
    if ids is None:
        if len(distances) != len(tree):
            raise ShapeError(
                f"there are distances of {len(distances):,} points for the {len(tree):,} nodes of {tree.source}",
                hint="give one row per node, or ids in the first column",
            )
        return distances
    order = rows_of_tree(tree, ids, "distance")
    return distances[np.ix_(order, order)]


def ranking_by_distances(tree: Tree, distances: Floats, relation: str) -> Ranking:
    """The ranks of the targets of each node among all other nodes, by given distances in the order of the tree."""
    pairs = tree.pairs(relation)
    pairs = pairs[np.argsort(pairs[:, 0], kind="stable")]
    above, tied = np.empty(len(pairs), dtype=np.int64), np.empty(len(pairs), dtype=np.int64)
    for index, (node, target) in enumerate(pairs.tolist()):
        others = np.delete(distances[node], [node, target])
        above[index] = np.count_nonzero(others < distances[node, target])
        tied[index] = np.count_nonzero(others == distances[node, target])
    pool = np.full(len(tree), len(tree) - 1, dtype=np.int64)
    counts = np.bincount(pairs[:, 0], minlength=len(tree))
    ids = np.array(tree.ids, dtype=object)
    return Ranking.of_items(ids, counts, gain=np.ones(len(pairs)), above=above, tied=tied, depth=pool, candidates=pool)


def scores_of_distances(tree: Tree, distances: Floats) -> dict[str, RelationScores]:
    """MR and MAP of each relation by given distances; ranks are raw for parents and filtered otherwise."""
    scores = {}
    for relation in RELATIONS:
        ranking = ranking_by_distances(tree, distances, relation)
        mean_rank, _, _, average_precision, _ = reconstruction_metrics(filtered=relation != PARENT)
        values = [metric.measure(ranking).value for metric in (mean_rank, average_precision)]
        scores[relation] = RelationScores(*values)
    return scores


@dataclass(frozen=True)
class DistanceEvaluation:
    """Ranks by a distance matrix with intervals, the scores of all relations, and the hyperbolicity."""

    result: Result
    relations: Mapping[str, RelationScores]
    shape: TreeShape

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        relations = {name: asdict(scores) for name, scores in self.relations.items()}
        return {**self.result.to_dict(), "relations": relations, "shape": asdict(self.shape)}


def evaluate_distances(
    tree: Tree, system: str, distances: Floats, *, relation: str, filtered: bool | None, config: StatsConfig
) -> DistanceEvaluation:
    """Rank the targets of every node by given distances, in the order of the tree; intervals resample branches."""
    check_has_edges(tree)
    filtered = relation != PARENT if filtered is None else filtered
    ranking = ranking_by_distances(tree, distances, relation)
    result = estimate(
        ranking,
        reconstruction_metrics(filtered=filtered, single_target=bool(ranking.counts.max(initial=0) <= 1)),
        system=system,
        config=replace(config, clusters=branch_clusters(tree).labels),
        settings={
            "relation": relation,
            "filtered": filtered,
            DATA: {"tree": tree.fingerprint},
            UNIT_NOUN: "node",
            DISPLAY: {"system": "distance file", "cluster": "subtree"},
        },
    )
    sample = sample_nodes(len(tree))
    return DistanceEvaluation(
        result, scores_of_distances(tree, distances), shape_of_distances(distances[np.ix_(sample, sample)])
    )
