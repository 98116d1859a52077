"""Training hierarchies: CPU time to the MAP that gensim's PoincareModel reaches, and the quality reached.

Published figures rank the ancestors of each node among all others, its descendants too, and so do these. The
closure, where descendants are wanted as well, is another task, and has rows of its own.

python -m benchmarks.hierarchy_training mammals verbs               figures of every geometry
python -m benchmarks.hierarchy_training nouns:lorentz               of one; nouns take a quarter of an hour
python -m benchmarks.hierarchy_training nouns:lorentz:closure       ancestors and descendants; half an hour
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from importlib.util import find_spec
from time import process_time

import numpy as np

from benchmarks.row import Row
from equipoise.domains.accounts.embedders import tree_embedder
from equipoise.domains.accounts.evaluation import reconstruct
from equipoise.domains.accounts.trees.read import FOLDER, read_wordnet
from equipoise.domains.accounts.trees.tree import Tree
from equipoise.metrics.parser import parse_metrics
from equipoise.types import Floats

SPEED_TARGET = 20.0
RELATIONS = ("ancestors", "closure")
PEER = "gensim's PoincareModel"


@dataclass(frozen=True)
class Case:
    """A part of WordNet, the dimensions, what the peer is given, and the published MR and MAP to beat."""

    name: str
    part: str
    root: str | None
    dim: int
    peer_epochs: int
    epochs: int
    flat_epochs: int
    published: str
    """By the ancestors of each node."""

    def tree(self) -> Tree:
        """The hierarchy, its closure computed."""
        tree = read_wordnet(self.part, self.root)
        tree.closure()
        return tree


MAMMALS = Case("mammals", "noun", "mammal.n.01", 5, 50, 1000, 300, "wanted 1.3, 0.93")
VERBS = Case("verbs", "verb", None, 10, 0, 1000, 300, "published Lorentz 1.23, 0.933")
NOUNS = Case("nouns", "noun", None, 10, 2, 2000, 300, "published Lorentz 2.95, 0.928")
CASES = {case.name: case for case in (MAMMALS, VERBS, NOUNS)}


@dataclass(frozen=True)
class Figures:
    """What an embedding reaches, ranks filtered, and the CPU seconds it took."""

    rank: float
    precision: float
    seconds: float

    def __str__(self) -> str:
        return f"MR {self.rank:.4g}, MAP {self.precision:.3f} in {self.seconds:.3g} CPU-seconds"


def rows(quick: bool) -> list[Row]:
    """Nothing is measured without WordNet. The first call compiles, which is not counted."""
    if not FOLDER.is_dir():
        return []
    tree_embedder("lorentz", epochs=1).fit(Tree.from_edges([("a", "r"), ("b", "r")]), 2)
    lines = []
    if find_spec("gensim"):
        lines += [to_the_same_precision(case) for case in ((MAMMALS,) if quick else (MAMMALS, NOUNS))]
    for case in (MAMMALS,) if quick else (MAMMALS, VERBS):
        for relation in RELATIONS:
            lines += qualities(case, relation)
    return lines


def to_the_same_precision(case: Case) -> Row:
    """The peer trains for some epochs; ours for as few as give at least its MAP, a whole schedule each."""
    tree = case.tree()
    theirs = by_peer(tree, case)
    for epochs in (5, 10, 20, 40, 80, 160, 320, 640):
        ours = trained(tree, "poincare", case.dim, epochs, "ancestors")
        if ours.precision >= theirs.precision:
            break
    note = f"ours {epochs} epochs: {ours}; theirs {case.peer_epochs}: {theirs}"
    task = f"{case.name} in {case.dim} dimensions to the peer's MAP"
    return Row(task, ours.seconds, PEER, theirs.seconds, SPEED_TARGET, note=note)


def qualities(case: Case, relation: str, names: tuple[str, ...] = ("lorentz", "poincare", "euclidean")) -> list[Row]:
    """MR and MAP of each geometry with about the same CPU time, trained on what is judged; without a peer."""
    tree = case.tree()
    rows = []
    for name in names:
        epochs = case.flat_epochs if name == "euclidean" else case.epochs
        embedding = trained(tree, name, case.dim, epochs, relation)
        note = f"{embedding}; {case.published}" if relation == "ancestors" else str(embedding)
        task = f"{case.name} in {case.dim} dimensions, {name}, {relation}"
        rows.append(Row(task, embedding.seconds, note=note))
    return rows


def trained(tree: Tree, name: str, dim: int, epochs: int, relation: str) -> Figures:
    """An embedder of ours, from the tree with its closure to the vectors."""
    start = process_time()
    embedding = tree_embedder(name, epochs=epochs, train_relation=relation).fit(tree, dim)
    return judged(tree, embedding.vectors, embedding.geometry, process_time() - start, relation)


def by_peer(tree: Tree, case: Case) -> Figures:
    """gensim on the same closure, with 10 negatives and its default burn-in."""
    from gensim.models.poincare import PoincareModel

    pairs = [(str(below), str(above)) for below, above in tree.closure().tolist()]
    start = process_time()
    model = PoincareModel(pairs, size=case.dim, negative=10, seed=0)
    model.train(epochs=case.peer_epochs, batch_size=10)
    seconds = process_time() - start
    vectors = np.zeros((len(tree), case.dim))
    for node in range(len(tree)):
        vectors[node] = model.kv.get_vector(str(node))
    return judged(tree, vectors, "poincare", seconds, "ancestors")


def judged(tree: Tree, vectors: Floats, space: str, seconds: float, relation: str) -> Figures:
    """By our own evaluation, which treats both alike."""
    ranking = reconstruct(tree, vectors, space, relation=relation).ranking
    rank, precision = (float(parse_metrics(name)[0].measure(ranking).value) for name in ("MR(filtered)", "MAP"))
    return Figures(rank, precision, seconds)


if __name__ == "__main__":
    tree_embedder("lorentz", epochs=1).fit(Tree.from_edges([("a", "r"), ("b", "r")]), 2)
    for chosen in sys.argv[1:]:
        name, space, relation = [*chosen.split(":"), "", ""][:3]
        for row in qualities(CASES[name], relation or "ancestors", *([(space,)] if space else [])):
            print(" | ".join(row.cells), flush=True)
