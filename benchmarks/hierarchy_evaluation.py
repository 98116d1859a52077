"""Evaluating an embedded hierarchy: all ranks of WordNet's nouns, compared with the products and with sorting.

python -m benchmarks.hierarchy_evaluation                     all of it; trains the vectors first
python -m benchmarks.hierarchy_evaluation --quick             verbs instead of nouns
python -m benchmarks.hierarchy_evaluation --vectors V.npz     vectors that `eq accounts train` has kept
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from time import process_time

import numpy as np

from benchmarks.row import Row
from benchmarks.timing import extra_megabytes, fastest, number_printed_by
from equipoise.domains.accounts.embedders import tree_embedder
from equipoise.domains.accounts.evaluation import Reconstruction, reconstruct
from equipoise.domains.accounts.trees.read import read_wordnet
from equipoise.domains.accounts.trees.tree import Tree
from equipoise.domains.accounts.vectors import NodeVectors, read_node_vectors
from equipoise.evidence.kernels.point_counts import TILE
from equipoise.evidence.ranking_among_points import ranking_among_points
from equipoise.geometry.spaces import geometry
from equipoise.metrics.parser import parse_metrics
from equipoise.types import Floats

DIM, EPOCHS = 10, 60
SORTED_NODES = 200
"""Nodes that are sorted for the comparison: all of them would take an hour or so."""
PRODUCT_TARGET, SORT_TARGET, MEGABYTES_TARGET = 1.5, 20.0, 1024.0
FIGURES = ("MR", "MR(filtered)", "MAP")


@dataclass(frozen=True)
class EmbeddedTree:
    """A hierarchy of WordNet with vectors on the hyperboloid."""

    tree: Tree
    vectors: Floats

    @property
    def size(self) -> str:
        """As the tables name it."""
        return f"{len(self.tree):,} nodes, {len(self.tree.closure()):,} pairs, {DIM} dimensions"


def make_inputs(quick: bool, path: str = "") -> EmbeddedTree:
    """Vectors of a file, or trained for a while: the figures say how good they are."""
    tree = read_wordnet("verb" if quick else "noun")
    if path:
        return EmbeddedTree(tree, read_node_vectors(path, "lorentz").vectors)
    embedder = tree_embedder("lorentz", train_relation="closure", epochs=EPOCHS)
    return EmbeddedTree(tree, embedder.fit(tree, DIM, seed=0).vectors)


def rows(quick: bool, path: str = "") -> list[Row]:
    """The whole evaluation as a ratio to the products alone and to a sort for every node."""
    inputs = make_inputs(quick, path)
    inputs.tree.closure()
    ours, reconstruction = fastest(lambda: evaluated(inputs), times=3)
    per_node, ranks = sorted_nodes(inputs)
    check_against(reconstruction, ranks)
    task = f"all ranks, MR, MAP, Spearman; {inputs.size}"
    note = ", ".join(f"{name} {value:.3g}" for name, value in figures(reconstruction).items())
    everywhere = {relation: _seconds_of(inputs, relation) for relation in ("parent", "ancestors")}
    return [
        *beside_products(inputs, task, ours, note),
        Row(
            task,
            ours,
            "distances and a sort for every node",
            per_node * len(reconstruction),
            SORT_TARGET,
            note=f"estimated from {SORTED_NODES} nodes, ranks agree within 1",
        ),
        Row(
            f"{task}, extra memory",
            _megabytes(inputs, quick),
            target=MEGABYTES_TARGET,
            goal="below",
            unit="MB",
        ),
        *(Row(f"the same for {name}", seconds) for name, seconds in everywhere.items()),
        Row("the same for random vectors", fastest(lambda: evaluated(shuffled(inputs)), times=1)[0]),
        *single_precision(inputs, reconstruction),
    ]


def beside_products(inputs: EmbeddedTree, task: str, ours: float, note: str) -> list[Row]:
    """The evaluation, and the ranks alone without numba, beside products that are thrown away.

    Every point against every other is what an evaluation by products has to make. Ours makes most of them in
    float32 and once for both points, so these stand there too, without a target.
    """
    programs: dict[str, tuple[str, bool]] = {
        "float64 products over the same blocks, all of them": ("float64", False),
        "float32 products over the same blocks, all of them": ("float32", False),
        "float32 products right of the diagonal": ("float32", True),
    }
    seconds = {
        name: fastest(partial(products_alone, inputs.vectors, kind, half), times=3)[0]
        for name, (kind, half) in programs.items()
    }
    full, *others = seconds
    plain, _ = fastest(lambda: ranks_alone(inputs, compiled=False), times=2)
    return [
        Row(task, ours, full, seconds[full], PRODUCT_TARGET, "within", note=note),
        *(Row(task, ours, name, seconds[name], goal="within") for name in others),
        Row("the ranks alone, without numba", plain, full, seconds[full], goal="within"),
    ]


def evaluated(inputs: EmbeddedTree, relation: str = "closure") -> Reconstruction:
    """Everything that is evaluated: ranks, raw and filtered, precision, norm against depth."""
    reconstruction = reconstruct(inputs.tree, inputs.vectors, "lorentz", relation=relation)
    figures(reconstruction)
    return reconstruction


def figures(reconstruction: Reconstruction) -> dict[str, float]:
    """The figures of a reconstruction."""
    values = {name: parse_metrics(name)[0].measure(reconstruction.ranking).value for name in FIGURES}
    return values | {"Spearman": parse_metrics("NormDepth")[0].measure(reconstruction.space).value}


def ranks_alone(inputs: EmbeddedTree, *, compiled: bool) -> None:
    """What takes the time of an evaluation, one way or the other."""
    pairs = inputs.tree.pairs("closure")
    ranking_among_points(inputs.vectors, pairs, geometry("lorentz"), compiled=compiled)


def products_alone(vectors: Floats, kind: str, half: bool) -> None:
    """The Lorentz products in tiles of the same size, thrown away; ``half`` makes those of each pair once."""
    left = vectors.astype(kind)
    right = left * np.where(np.arange(left.shape[1]) == 0, -1.0, 1.0).astype(kind)
    columns = [np.ascontiguousarray(right[start : start + TILE].T) for start in range(0, len(right), TILE)]
    tile = np.empty(TILE * TILE, dtype=kind)
    for number, top in enumerate(range(0, len(left), TILE)):
        block = left[top : top + TILE]
        for part in columns[number if half else 0 :]:
            shape = len(block), part.shape[1]
            np.matmul(block, part, out=tile[: shape[0] * shape[1]].reshape(shape))


def sorted_nodes(inputs: EmbeddedTree) -> tuple[float, dict[int, list[int]]]:
    """CPU seconds a node of the usual way, for some nodes: all distances, a sort, precision by scikit-learn.

    Also the filtered ranks of each of them.
    """
    from sklearn.metrics import average_precision_score

    tree, vectors, space = inputs.tree, inputs.vectors, geometry("lorentz")
    pairs = tree.pairs("closure")
    pairs = pairs[np.argsort(pairs[:, 0], kind="stable")]
    starts = np.searchsorted(pairs[:, 0], np.arange(len(tree) + 1))
    chosen = np.random.default_rng(0).choice(len(tree), SORTED_NODES, replace=False)
    ranks: dict[int, list[int]] = {}
    started = process_time()
    for node in chosen.tolist():
        relatives = pairs[starts[node] : starts[node + 1], 1]
        distances = space.distance(vectors[node], vectors)
        distances[node] = np.inf
        order = np.argsort(distances)
        positions = np.flatnonzero(np.isin(order, relatives))
        ranks[node] = (positions - np.arange(len(positions)) + 1).tolist()
        average_precision_score(np.isin(np.arange(len(tree)), relatives), -np.minimum(distances, 1e9))
    return (process_time() - started) / SORTED_NODES, ranks


def check_against(reconstruction: Reconstruction, ranks: dict[int, list[int]]) -> None:
    """Stop if the two ways disagree by more than the rounding of an arcosh."""
    filtered = reconstruction.ranking.without_rivals()
    for node, expected in ranks.items():
        ranks_here = filtered.ranks[filtered.starts[node] : filtered.starts[node + 1]]
        if not np.allclose(np.sort(ranks_here), np.sort(expected), rtol=1e-3, atol=1.0):
            sys.exit(f"the ranks of {reconstruction.tree.ids[node]} differ from those of a sort")


def single_precision(inputs: EmbeddedTree, reconstruction: Reconstruction) -> list[Row]:
    """How many ranks change when vectors are kept in float32, by how far out the node lies."""
    coarse = reconstruct(inputs.tree, inputs.vectors.astype(np.float32), "lorentz", relation="closure")
    changed = coarse.ranking.above != reconstruction.ranking.above
    radius = reconstruction.norms[reconstruction.ranking.unit_of]
    cuts = np.quantile(radius, [0.0, 0.5, 0.9, 1.0]).tolist()
    rows = []
    for low, high in pairwise(cuts):
        part = (radius >= low) & (radius <= high)
        task = f"ranks that float32 vectors change, nodes at radius {low:.3g} to {high:.3g}"
        rows.append(Row(task, 100 * float(changed[part].mean()), unit="%"))
    return rows


def shuffled(inputs: EmbeddedTree) -> EmbeddedTree:
    """The same vectors, dealt to the nodes at random: what a system that knows nothing gives."""
    return EmbeddedTree(inputs.tree, np.random.default_rng(0).permutation(inputs.vectors))


def _seconds_of(inputs: EmbeddedTree, relation: str) -> float:
    return fastest(lambda: evaluated(inputs, relation), times=1)[0]


def _megabytes(inputs: EmbeddedTree, quick: bool) -> float:
    """The extra memory in a fresh process that has read the same tree and the same vectors."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "vectors.npz"
        NodeVectors(inputs.tree.ids, inputs.tree.names, inputs.vectors, "lorentz").write(file)
        words = ["--memory", "--vectors", str(file), *(["--quick"] if quick else [])]
        return number_printed_by("benchmarks.hierarchy_evaluation", *words)


def main() -> None:
    """Print the lines, or the extra memory of one evaluation."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="verbs instead of nouns")
    parser.add_argument("--vectors", default="", help="vectors of the nouns (or verbs) in the order of the tree")
    parser.add_argument("--memory", action="store_true", help="only print the extra MB of one evaluation")
    chosen = parser.parse_args()
    if chosen.memory:
        inputs = make_inputs(chosen.quick, chosen.vectors)
        inputs.tree.closure()
        print(extra_megabytes(lambda: evaluated(inputs)))
        return
    for row in rows(chosen.quick, chosen.vectors):
        print(" | ".join(row.cells))


if __name__ == "__main__":
    main()
