"""Evaluating an embedded hierarchy: all ranks of WordNet's nouns, compared with the products and with sorting.

python -m benchmarks.hierarchy_evaluation                     all benchmarks; trains the vectors first
python -m benchmarks.hierarchy_evaluation --quick             verbs instead of nouns
python -m benchmarks.hierarchy_evaluation --vectors V.npz     vectors written by `eq accounts train`
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
"""Number of nodes that are sorted for the comparison: all of them would take about an hour."""
PRODUCT_TARGET, SORT_TARGET, MEGABYTES_TARGET = 1.5, 20.0, 1024.0
METRICS = ("MR", "MR(filtered)", "MAP")


@dataclass(frozen=True)
class EmbeddedTree:
    """A hierarchy of WordNet with vectors on the hyperboloid."""

    tree: Tree
    vectors: Floats

    @property
    def size(self) -> str:
        """The size in the names of the tasks."""
        return f"{len(self.tree):,} nodes, {len(self.tree.closure()):,} pairs, {DIM} dimensions"


def make_inputs(quick: bool, path: str = "") -> EmbeddedTree:
    """Vectors of a file, or vectors trained with ``EPOCHS`` epochs."""
    tree = read_wordnet("verb" if quick else "noun")
    if path:
        return EmbeddedTree(tree, read_node_vectors(path, "lorentz").vectors)
    embedder = tree_embedder("lorentz", train_relation="closure", epochs=EPOCHS)
    return EmbeddedTree(tree, embedder.fit(tree, DIM, seed=0).vectors)


def rows(quick: bool, path: str = "") -> list[Row]:
    """The evaluation compared with the products alone and with a sort per node."""
    inputs = make_inputs(quick, path)
    inputs.tree.closure()
    our_seconds, reconstruction = fastest(lambda: evaluate_all(inputs), times=3)
    sort_seconds, ranks = sort_nodes(inputs)
    check_against(reconstruction, ranks)
    task = f"all ranks, MR, MAP, Spearman; {inputs.size}"
    note = ", ".join(f"{name} {value:.3g}" for name, value in metric_values(reconstruction).items())
    seconds_by_relation = {relation: _seconds_of(inputs, relation) for relation in ("parent", "ancestors")}
    return [
        *compare_with_products(inputs, task, our_seconds, note),
        Row(
            task,
            our_seconds,
            "distances and a sort for every node",
            sort_seconds * len(reconstruction),
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
        *(Row(f"the same for {name}", seconds) for name, seconds in seconds_by_relation.items()),
        Row("the same for random vectors", fastest(lambda: evaluate_all(shuffle_nodes(inputs)), times=1)[0]),
        *single_precision(inputs, reconstruction),
    ]


def compare_with_products(inputs: EmbeddedTree, task: str, our_seconds: float, note: str) -> list[Row]:
    """The evaluation, and the ranks alone without numba, compared with products whose results are discarded.

    An evaluation by products computes every pair of points. The evaluation here computes most of them in float32
    and once per unordered pair, so these products are also listed, without a target.
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
    full_products, *other_products = seconds
    plain_seconds, _ = fastest(lambda: ranks_alone(inputs, compiled=False), times=2)
    return [
        Row(task, our_seconds, full_products, seconds[full_products], PRODUCT_TARGET, "within", note=note),
        *(Row(task, our_seconds, name, seconds[name], goal="within") for name in other_products),
        Row("the ranks alone, without numba", plain_seconds, full_products, seconds[full_products], goal="within"),
    ]


def evaluate_all(inputs: EmbeddedTree, relation: str = "closure") -> Reconstruction:
    """The whole evaluation: ranks, raw and filtered, precision, and norm against depth."""
    reconstruction = reconstruct(inputs.tree, inputs.vectors, "lorentz", relation=relation)
    metric_values(reconstruction)
    return reconstruction


def metric_values(reconstruction: Reconstruction) -> dict[str, float]:
    """The metrics of a reconstruction."""
    values = {name: parse_metrics(name)[0].measure(reconstruction.ranking).value for name in METRICS}
    return values | {"Spearman": parse_metrics("NormDepth")[0].measure(reconstruction.space).value}


def ranks_alone(inputs: EmbeddedTree, *, compiled: bool) -> None:
    """Compute the ranks only, with or without compiled code."""
    pairs = inputs.tree.pairs("closure")
    ranking_among_points(inputs.vectors, pairs, geometry("lorentz"), compiled=compiled)


def products_alone(vectors: Floats, kind: str, upper_triangle: bool) -> None:
    """Compute the Lorentz products in tiles of the same size; ``half`` computes each unordered pair once."""
    left = vectors.astype(kind)
    right = left * np.where(np.arange(left.shape[1]) == 0, -1.0, 1.0).astype(kind)
    columns = [np.ascontiguousarray(right[start : start + TILE].T) for start in range(0, len(right), TILE)]
    tile = np.empty(TILE * TILE, dtype=kind)
    for number, row_start in enumerate(range(0, len(left), TILE)):
        block = left[row_start : row_start + TILE]
        for columns_block in columns[number if upper_triangle else 0 :]:
            shape = len(block), columns_block.shape[1]
            np.matmul(block, columns_block, out=tile[: shape[0] * shape[1]].reshape(shape))


def sort_nodes(inputs: EmbeddedTree) -> tuple[float, dict[int, list[int]]]:
    """CPU seconds per node with all distances, a sort, and average precision by scikit-learn, for some nodes.

    Also return the filtered ranks of these nodes.
    """
    from sklearn.metrics import average_precision_score

    tree, vectors, space = inputs.tree, inputs.vectors, geometry("lorentz")
    pairs = tree.pairs("closure")
    pairs = pairs[np.argsort(pairs[:, 0], kind="stable")]
    starts = np.searchsorted(pairs[:, 0], np.arange(len(tree) + 1))
    nodes = np.random.default_rng(0).choice(len(tree), SORTED_NODES, replace=False)
    ranks: dict[int, list[int]] = {}
    start = process_time()
    for node in nodes.tolist():
        relatives = pairs[starts[node] : starts[node + 1], 1]
        distances = space.distance(vectors[node], vectors)
        distances[node] = np.inf
        order = np.argsort(distances)
        positions = np.flatnonzero(np.isin(order, relatives))
        ranks[node] = (positions - np.arange(len(positions)) + 1).tolist()
        average_precision_score(np.isin(np.arange(len(tree)), relatives), -np.minimum(distances, 1e9))
    return (process_time() - start) / SORTED_NODES, ranks


def check_against(reconstruction: Reconstruction, ranks: dict[int, list[int]]) -> None:
    """Exit if the ranks differ by more than the rounding of an arcosh."""
    filtered = reconstruction.ranking.with_filtered_ranks()
    for node, expected in ranks.items():
        our_ranks = filtered.ranks[filtered.starts[node] : filtered.starts[node + 1]]
        if not np.allclose(np.sort(our_ranks), np.sort(expected), rtol=1e-3, atol=1.0):
            sys.exit(f"the ranks of {reconstruction.tree.ids[node]} differ from those of a sort")


def single_precision(inputs: EmbeddedTree, reconstruction: Reconstruction) -> list[Row]:
    """The percentage of ranks that change with float32 vectors, by the norm of the node."""
    float32_reconstruction = reconstruct(inputs.tree, inputs.vectors.astype(np.float32), "lorentz", relation="closure")
    changed = float32_reconstruction.ranking.above != reconstruction.ranking.above
    radius = reconstruction.norms[reconstruction.ranking.unit_of]
    quantiles = np.quantile(radius, [0.0, 0.5, 0.9, 1.0]).tolist()
    rows = []
    for low, high in pairwise(quantiles):
        in_range = (radius >= low) & (radius <= high)
        task = f"ranks that float32 vectors change, nodes at radius {low:.3g} to {high:.3g}"
        rows.append(Row(task, 100 * float(changed[in_range].mean()), unit="%"))
    return rows


def shuffle_nodes(inputs: EmbeddedTree) -> EmbeddedTree:
    """The same vectors in random order of the nodes: a random baseline."""
    return EmbeddedTree(inputs.tree, np.random.default_rng(0).permutation(inputs.vectors))


def _seconds_of(inputs: EmbeddedTree, relation: str) -> float:
    return fastest(lambda: evaluate_all(inputs, relation), times=1)[0]


def _megabytes(inputs: EmbeddedTree, quick: bool) -> float:
    """The extra memory in a new process that has read the same tree and vectors."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "vectors.npz"
        NodeVectors(inputs.tree.ids, inputs.tree.names, inputs.vectors, "lorentz").write(file)
        arguments = ["--memory", "--vectors", str(file), *(["--quick"] if quick else [])]
        return number_printed_by("benchmarks.hierarchy_evaluation", *arguments)


def main() -> None:
    """Print the rows, or the extra memory of one evaluation."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="verbs instead of nouns")
    parser.add_argument("--vectors", default="", help="vectors of the nouns (or verbs) in the order of the tree")
    parser.add_argument("--memory", action="store_true", help="only print the extra MB of one evaluation")
    options = parser.parse_args()
    if options.memory:
        inputs = make_inputs(options.quick, options.vectors)
        inputs.tree.closure()
        print(extra_megabytes(lambda: evaluate_all(inputs)))
        return
    for row in rows(options.quick, options.vectors):
        print(" | ".join(row.cells))


if __name__ == "__main__":
    main()
