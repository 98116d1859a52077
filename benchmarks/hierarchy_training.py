"""Training hierarchies: CPU time to the MAP that gensim's PoincareModel reaches, and the quality reached.

Published scores rank the ancestors of each node among all other nodes, including its descendants, and so do these.
The closure, where descendants are relevant too, is another task with separate rows.

python -m benchmarks.hierarchy_training mammals verbs               scores of every geometry
python -m benchmarks.hierarchy_training nouns:lorentz               scores of one geometry; 15 minutes for nouns
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
    """A part of WordNet, the dimensions, the epochs of both packages, and the published MR and MAP."""

    name: str
    part: str
    root: str | None
    dim: int
    peer_epochs: int
    epochs: int
    flat_epochs: int
    published: str
    """MR and MAP of the ancestors of each node."""

    def tree(self) -> Tree:
        """The hierarchy with its computed closure."""
        tree = read_wordnet(self.part, self.root)
        tree.closure()
        return tree


MAMMALS = Case("mammals", "noun", "mammal.n.01", 5, 50, 1000, 300, "goal 1.3, 0.93")
VERBS = Case("verbs", "verb", None, 10, 0, 1000, 300, "published Lorentz 1.23, 0.933")
NOUNS = Case("nouns", "noun", None, 10, 2, 2000, 300, "published Lorentz 2.95, 0.928")
CASES = {case.name: case for case in (MAMMALS, VERBS, NOUNS)}


@dataclass(frozen=True)
class Scores:
    """Filtered mean rank, MAP and CPU seconds of an embedding."""

    rank: float
    precision: float
    seconds: float

    def __str__(self) -> str:
        return f"MR {self.rank:.4g}, MAP {self.precision:.3f} in {self.seconds:.3g} CPU-seconds"


def rows(quick: bool) -> list[Row]:
    """Training times and scores; nothing is measured without WordNet, and compilation is not part of the time."""
    if not FOLDER.is_dir():
        return []
    tree_embedder("lorentz", epochs=1).fit(Tree.from_edges([("a", "r"), ("b", "r")]), 2)
    lines = []
    if find_spec("gensim"):
        lines += [time_to_equal_map(case) for case in ((MAMMALS,) if quick else (MAMMALS, NOUNS))]
    for case in (MAMMALS,) if quick else (MAMMALS, VERBS):
        for relation in RELATIONS:
            lines += quality_rows(case, relation)
    return lines


def time_to_equal_map(case: Case) -> Row:
    """Train the peer for fixed epochs, and find the fewest epochs here that give at least its MAP."""
    tree = case.tree()
    peer_scores = by_peer(tree, case)
    for epochs in (5, 10, 20, 40, 80, 160, 320, 640):
        our_scores = train(tree, "poincare", case.dim, epochs, "ancestors")
        if our_scores.precision >= peer_scores.precision:
            break
    note = f"ours {epochs} epochs: {our_scores}; theirs {case.peer_epochs}: {peer_scores}"
    task = f"{case.name} in {case.dim} dimensions to the peer's MAP"
    return Row(task, our_scores.seconds, PEER, peer_scores.seconds, SPEED_TARGET, note=note)


def quality_rows(case: Case, relation: str, names: tuple[str, ...] = ("lorentz", "poincare", "euclidean")) -> list[Row]:
    """MR and MAP of each geometry with similar CPU time, trained on the evaluated relation; without a peer."""
    tree = case.tree()
    rows = []
    for name in names:
        epochs = case.flat_epochs if name == "euclidean" else case.epochs
        embedding = train(tree, name, case.dim, epochs, relation)
        note = f"{embedding}; {case.published}" if relation == "ancestors" else str(embedding)
        task = f"{case.name} in {case.dim} dimensions, {name}, {relation}"
        rows.append(Row(task, embedding.seconds, note=note))
    return rows


def train(tree: Tree, name: str, dim: int, epochs: int, relation: str) -> Scores:
    """Train an embedder on the tree, and evaluate its vectors."""
    start = process_time()
    embedding = tree_embedder(name, epochs=epochs, train_relation=relation).fit(tree, dim)
    return evaluate(tree, embedding.vectors, embedding.geometry, process_time() - start, relation)


def by_peer(tree: Tree, case: Case) -> Scores:
    """gensim on the same closure, with 10 negatives and its default burn-in."""
    from gensim.models.poincare import PoincareModel

    pairs = [(str(descendant), str(ancestor)) for descendant, ancestor in tree.closure().tolist()]
    start = process_time()
    model = PoincareModel(pairs, size=case.dim, negative=10, seed=0)
    model.train(epochs=case.peer_epochs, batch_size=10)
    seconds = process_time() - start
    vectors = np.zeros((len(tree), case.dim))
    for node in range(len(tree)):
        vectors[node] = model.kv.get_vector(str(node))
    return evaluate(tree, vectors, "poincare", seconds, "ancestors")


def evaluate(tree: Tree, vectors: Floats, space: str, seconds: float, relation: str) -> Scores:
    """Evaluate the vectors of either package with the same function."""
    ranking = reconstruct(tree, vectors, space, relation=relation).ranking
    rank, precision = (float(parse_metrics(name)[0].measure(ranking).value) for name in ("MR(filtered)", "MAP"))
    return Scores(rank, precision, seconds)


if __name__ == "__main__":
    tree_embedder("lorentz", epochs=1).fit(Tree.from_edges([("a", "r"), ("b", "r")]), 2)
    for argument in sys.argv[1:]:
        name, space, relation = [*argument.split(":"), "", ""][:3]
        for row in quality_rows(CASES[name], relation or "ancestors", *([(space,)] if space else [])):
            print(" | ".join(row.cells), flush=True)
