"""The place of an account: its nearest nodes, other parents that fit better, and the parents of a new account.

The score of a candidate parent is the mean of two similarities of names: of the new name to its own, and to the most
similar of its children. Confidences are a softmax of the scores, whose temperature is fitted on the tree by
leave-one-out. An embedding that was trained on the tree has no vector for a new account, so its
reconstruction does not measure such placements; ``evaluate_placement`` measures them on held-out accounts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.config import DEFAULT_STATS, StatsConfig
from equipoise.domains.accounts.evaluation import branch_clusters
from equipoise.errors import ParameterError, UndefinedError
from equipoise.evidence.ranking import Ranking
from equipoise.geometry.spaces import geometry as geometry_named
from equipoise.io.dag import reachable
from equipoise.metrics.parser import parse_metrics
from equipoise.progress import ignore_shares, portion
from equipoise.runs.compare import compare
from equipoise.stats.estimate import estimate
from equipoise.stats.result import DATA
from equipoise.stats.verdict import DISPLAY, UNIT_NOUN

if TYPE_CHECKING:
    from equipoise.domains.accounts.trees.tree import Tree
    from equipoise.domains.accounts.vectors import NodeVectors
    from equipoise.stats.comparison import Comparison
    from equipoise.stats.result import Result
    from equipoise.types import Floats, Ints


# The neighbourhood of a node: its nearest nodes, its ancestors by norm, and nodes that are nearer than its parent.

N_VOTES = 5
"""Nearest nodes whose parents are counted for a suggestion."""
MAX_NODES = 6000
"""Larger trees are not searched for displaced nodes: that needs all distances."""
OWN_CHILD, SIBLING, SAME_BRANCH, OTHER_PARENT = "own child", "sibling", "same branch", "other parent"
"""The relation of a node to its nearest nodes."""


@dataclass(frozen=True)
class Neighbor:
    """A node and its distance."""

    id: str
    name: str
    distance: float


@dataclass(frozen=True)
class DisplacedNode:
    """A node whose nearest node is not a parent.

    ``kind`` is what the nearest node is: an own child, a sibling, or another node of the same top-level branch. If it
    is in another branch, or if most of the nearest nodes are below another parent, the kind is ``other parent``, and
    ``suggestion`` is the id of that parent.
    """

    id: str
    name: str
    parent: str
    nearest: str
    parent_distance: float
    nearest_distance: float
    parent_rank: int
    kind: str
    suggestion: str | None = None


def nearest_nodes(tree: Tree, vectors: NodeVectors, node: str, k: int = 10) -> list[Neighbor]:
    """The nearest nodes of a node.

    Parameters
    ----------
    tree
        The tree.
    vectors
        One vector per node, in the order of the tree.
    node
        The id of the node.
    k
        The number of nodes.

    Returns
    -------
    list of Neighbor
        The nearest first; ties are in the order of the tree.

    Examples
    --------
    >>> vectors = tree_embedder("combinatorial").fit(tree, 5)  # doctest: +SKIP
    >>> nearest_nodes(tree, vectors, "1000", k=3)  # doctest: +SKIP
    """
    if k < 1:
        raise ParameterError(f"k is {k}", hint="k is 1 or more")
    position = tree.position(node)
    distances = _distances(vectors, position)
    order = np.argsort(distances, kind="stable")[: min(k, len(tree) - 1)]
    return [Neighbor(tree.ids[other], tree.names[other], float(distances[other])) for other in order.tolist()]


def ancestors_by_norm(tree: Tree, vectors: NodeVectors, node: str) -> list[Neighbor]:
    """Ancestors of a node as the embedding alone suggests them.

    From each node to the nearest node with a smaller norm, until no norm is smaller: in a good hyperbolic embedding
    these are the parent, its parent, and so on up to a root.
    """
    norms = geometry_named(vectors.geometry).norm(vectors.vectors)
    position = tree.position(node)
    path: list[Neighbor] = []
    while True:
        distances = np.where(norms < norms[position], _distances(vectors, position), np.inf)
        above = int(distances.argmin())
        if not np.isfinite(distances[above]):
            return path
        path.append(Neighbor(tree.ids[above], tree.names[above], float(distances[above])))
        position = above


def _distances(vectors: NodeVectors, position: int) -> Floats:
    """Distances of all nodes to one node, that of the node itself infinite."""
    points = vectors.vectors
    distances = geometry_named(vectors.geometry).distance(points[position], points)
    distances[position] = np.inf
    return np.asarray(distances)


def displaced_nodes(tree: Tree, vectors: NodeVectors) -> tuple[DisplacedNode, ...]:
    """The nodes whose nearest node is not a parent, the worst ranks of the parent first; none for a large tree."""
    if len(tree) > MAX_NODES:
        return ()
    branches = tree.branches
    displaced = []
    for position in range(len(tree)):
        parents = tree.parents(position)
        if not len(parents):
            continue
        distances = _distances(vectors, position)
        parent = int(parents[distances[parents].argmin()])
        nearer = np.flatnonzero(distances < distances[parent])
        if not len(nearer):
            continue
        order = nearer[np.argsort(distances[nearer], kind="stable")]
        nearest = int(order[0])
        suggestion = _other_parent(tree, position, distances)
        if nearest in tree.children(position):
            kind, suggestion = OWN_CHILD, None
        elif suggestion is not None:
            kind = OTHER_PARENT
        elif np.isin(tree.parents(nearest), parents).any():
            kind = SIBLING
        else:
            kind = SAME_BRANCH if branches[nearest] == branches[position] else OTHER_PARENT
            suggestion = _first_parent(tree, nearest) if kind == OTHER_PARENT else None
        displaced.append(
            DisplacedNode(
                tree.ids[position],
                tree.names[position],
                tree.ids[parent],
                tree.ids[nearest],
                float(distances[parent]),
                float(distances[nearest]),
                len(nearer) + 1,
                kind,
                suggestion,
            )
        )
    return tuple(sorted(displaced, key=lambda item: -item.parent_rank))


def _other_parent(tree: Tree, position: int, distances: Floats) -> str | None:
    """The parent of most of the nearest nodes, if it is not a parent of the node."""
    nearest = np.argsort(distances, kind="stable")[:N_VOTES].tolist()
    votes = Counter(int(parent) for node in nearest for parent in tree.parents(node).tolist())
    if not votes:
        return None
    parent, count = votes.most_common(1)[0]
    is_other = parent != position and parent not in tree.parents(position)
    return tree.ids[parent] if is_other and 2 * count > N_VOTES else None


def _first_parent(tree: Tree, position: int) -> str:
    """The parent of a node, or the node itself if it is a root."""
    parent = int(tree.first_parents[position])
    return tree.ids[parent if parent >= 0 else position]


DEFAULT_MODEL = "tfidf"
"""Character n-grams, which need no download. On the German chart SKR04 the parent is first for 42 % of the accounts."""
NAMES_SHARE = 0.1
"""The expected share of the time that the comparison of names takes, if a tree is embedded too."""
N_CHILDREN = 3
"""The most similar children of a candidate that are averaged."""
TEMPERATURES: Floats = np.geomspace(0.02, 2.0, 25)
SIBLING_WEIGHT = 30.0
"""Log-probability that one known sibling adds to its parent."""
METRICS = ("HR@1", "HR@5", "MRR", "MR")


@dataclass(frozen=True)
class ParentCandidate:
    """A possible parent of a new account; ``confidence`` is the estimated probability that it is the right one."""

    id: str
    name: str
    confidence: float
    similar_child: str = ""


class AccountPlacer:
    """Ranks the nodes of one tree as parents of new accounts.

    Parameters
    ----------
    tree
        The tree. Candidates are the nodes that have children.
    model
        The text system that compares names: any spec of ``equipoise.retriever``.

    Examples
    --------
    >>> from equipoise.accounts import Tree
    >>> names = {"1": "Cash", "2": "Taxes", "11": "Petty cash", "12": "Cash at bank", "21": "Income tax", "22": "VAT"}
    >>> tree = Tree.from_edges([("11", "1"), ("12", "1"), ("21", "2"), ("22", "2")], names)
    >>> AccountPlacer(tree).rank("Cash in transit")[0].name
    'Cash'
    """

    def __init__(self, tree: Tree, model: str = DEFAULT_MODEL) -> None:
        self.tree, self.model = tree, model
        self.candidates: Ints = np.flatnonzero(tree.down.counts > 0)
        if not len(self.candidates):
            raise UndefinedError(f"{tree.source} has no node with children", hint="the tree needs parents")
        from equipoise.models.retriever import retriever

        self._system = retriever(model).fit(tree.names)
        self._temperature: float | None = None

    def rank(self, name: str = "", siblings: Sequence[str] = (), k: int = 5) -> list[ParentCandidate]:
        """The most probable parents of a new account with this name, these known siblings, or both."""
        if not name.strip() and not siblings:
            raise ParameterError("a new account needs a name or a sibling", hint="give --name, --sibling, or both")
        similarities = self._similarities([name])[0] if name.strip() else None
        log_probability = np.zeros(len(self.candidates))
        if similarities is not None:
            log_probability += np.log(self._probabilities(self._scores(similarities)))
        log_probability += SIBLING_WEIGHT * self._sibling_counts([self.tree.position(key) for key in siblings])
        probability = np.exp(log_probability - np.logaddexp.reduce(log_probability))
        order = np.argsort(-probability, kind="stable")[:k]
        return [
            ParentCandidate(
                self.tree.ids[self.candidates[at]],
                self.tree.names[self.candidates[at]],
                float(probability[at]),
                self._similar_child(int(self.candidates[at]), similarities),
            )
            for at in order.tolist()
        ]

    @property
    def temperature(self) -> float:
        """The temperature of the confidences, by leave-one-out on the accounts of the tree."""
        if self._temperature is None:
            self._temperature = self._fitted_temperature()
        return self._temperature

    def leave_one_out(self, progress: Callable[[int], None] | None = None) -> tuple[Ints, Floats]:
        """The accounts without children, and the probability of each candidate if the account were new."""
        nodes = self._accounts()
        return nodes, np.array([self._probabilities(row) for row in self._leave_one_out_scores(nodes, progress)])

    def _accounts(self) -> Ints:
        """The nodes below a parent that have no children themselves: new accounts are of this kind."""
        return np.flatnonzero((self.tree.first_parents >= 0) & (self.tree.down.counts == 0))

    def _leave_one_out_scores(self, nodes: Ints, progress: Callable[[int], None] | None = None) -> Floats:
        rows = []
        for node, similarities in zip(
            nodes.tolist(), self._similarities([self.tree.names[node] for node in nodes]), strict=True
        ):
            rows.append(self._scores(similarities, without=node))
            if progress is not None:
                progress(len(rows))
        return np.array(rows)

    def _fitted_temperature(self) -> float:
        nodes = self._accounts()
        # Enough accounts for one number.
        nodes = nodes[:: max(1, len(nodes) // 500)]
        scores = self._leave_one_out_scores(nodes)
        truth = np.searchsorted(self.candidates, self.tree.first_parents[nodes])
        losses = []
        for temperature in TEMPERATURES:
            logits = scores / temperature
            losses.append(np.mean(np.logaddexp.reduce(logits, axis=1) - logits[np.arange(len(nodes)), truth]))
        return float(TEMPERATURES[int(np.argmin(losses))])

    def _probabilities(self, scores: Floats) -> Floats:
        logits = scores / self.temperature
        return np.asarray(np.maximum(np.exp(logits - np.logaddexp.reduce(logits)), 1e-12))

    def _similarities(self, names: Sequence[str]) -> Floats:
        """(n_names, n_nodes): the scores of the text system."""
        texts = [name if name.strip() else "-" for name in names]
        blocks = [scores.copy() for _, scores in self._system.score_blocks(texts)]
        return np.concatenate(blocks).astype(np.float64)

    def _scores(self, similarities: Floats, without: int | None = None) -> Floats:
        """The score of each candidate, optionally as if one node and its descendants were not in the tree."""
        scores = np.empty(len(self.candidates))
        absent = set() if without is None else set(reachable(self.tree.down, without).tolist())
        for at, candidate in enumerate(self.candidates.tolist()):
            if candidate in absent:
                scores[at] = -np.inf
                continue
            children = self.tree.children(candidate)
            if without is not None:
                children = children[children != without]
            nearest = np.sort(similarities[children])[-N_CHILDREN:]
            scores[at] = 0.5 * similarities[candidate] + 0.5 * (nearest.mean() if len(nearest) else 0.0)
        return np.where(np.isneginf(scores), scores[~np.isneginf(scores)].min(initial=0.0), scores)

    def _sibling_counts(self, siblings: Sequence[int]) -> Floats:
        parents = [parent for sibling in siblings for parent in self.tree.parents(sibling).tolist()]
        return np.array([parents.count(candidate) for candidate in self.candidates.tolist()], dtype=np.float64)

    def _similar_child(self, candidate: int, similarities: Floats | None) -> str:
        if similarities is None:
            return ""
        children = self.tree.children(candidate)
        return self.tree.names[int(children[similarities[children].argmax()])]


@dataclass(frozen=True)
class PlacementEvaluation:
    """How well parents of held-out accounts are found; one result per source of information.

    ``n_only_children`` held-out accounts have no sibling left, so that their parents are no candidates.
    """

    n_held_out: int
    n_only_children: int
    n_candidates: int
    results: tuple[Result, ...]
    comparison: Comparison | None


def evaluate_placement(
    tree: Tree,
    model: str = DEFAULT_MODEL,
    *,
    held_out: float = 0.2,
    embed: Callable[[Tree], NodeVectors] | None = None,
    config: StatsConfig = DEFAULT_STATS,
    model_name: str | None = None,
) -> PlacementEvaluation:
    """Remove accounts from a tree, and rank their parents by name, by one known sibling, and by both.

    Parameters
    ----------
    tree
        The tree.
    model
        The text system that compares names.
    held_out
        Share of the accounts without children that are held out.
    embed
        Embeds a tree. If given, the edges of the held-out accounts are predicted from the structure as well: each
        account is in the tree, but below its grandparent, and its parent is ranked by distance.
    config
        Confidence level, resamples and seed.
    model_name
        The name of the model in the results.  [default: ``model``]

    Returns
    -------
    PlacementEvaluation
        HR@1, HR@5, MRR and MR of the parents, with intervals and chance levels, and the comparison of the sources.

    Examples
    --------
    >>> evaluate_placement(read_tree("chart.csv"), held_out=0.1).n_held_out  # doctest: +SKIP
    """
    if not 0.0 < held_out < 1.0:
        raise ParameterError(f"held_out is {held_out:g}", hint="it is a share between 0 and 1")
    rng = config.rng(7)
    leaves = tree.leaves[tree.up.counts[tree.leaves] > 0]
    held = np.sort(rng.permutation(leaves)[: max(1, round(held_out * len(leaves)))])
    train_tree = tree.taken(np.setdiff1d(np.arange(len(tree)), held))
    held = held[[tree.ids[tree.first_parents[node]] in train_tree.positions for node in held]]
    names_share = 1.0 if embed is None else NAMES_SHARE
    with portion(0.0, names_share):
        placer = AccountPlacer(train_tree, model)
    truth = np.array([train_tree.positions[tree.ids[tree.first_parents[node]]] for node in held], dtype=np.int64)
    with ignore_shares():
        similarities = placer._similarities([tree.names[node] for node in held])
    by_name = np.array([placer._scores(row) for row in similarities])
    by_name = np.array([np.log(placer._probabilities(row)) for row in by_name])
    siblings = [_known_sibling(train_tree, int(parent), rng) for parent in truth]
    by_sibling = SIBLING_WEIGHT * np.array([placer._sibling_counts(known) for known in siblings])
    sources = {f"name ({model_name or model})": by_name, "sibling": by_sibling, "name + sibling": by_name + by_sibling}
    clusters = branch_clusters(tree).labels[held]
    options = _Options(tree, held, clusters, config)
    results = []
    for name, scores in sources.items():
        full = np.full((len(held), len(train_tree)), -np.inf)
        full[:, placer.candidates] = scores
        results.append(_placement_result(name, full, truth, options))
    if embed is not None:
        with portion(names_share, 1.0):
            results.append(_structure_result(embed, tree.first_parents[held], options))
    comparison = compare(results, METRICS, primary="MRR", config=config)
    n_only_children = sum(not known for known in siblings)
    return PlacementEvaluation(len(held), n_only_children, len(train_tree), tuple(results), comparison)


@dataclass(frozen=True)
class _Options:
    tree: Tree
    held: Ints
    clusters: Any
    config: StatsConfig


def _known_sibling(tree: Tree, parent: int, rng: np.random.Generator) -> list[int]:
    """One random child of the parent, if there is one."""
    children = tree.children(parent)
    return [int(rng.choice(children))] if len(children) else []


def _placement_result(name: str, scores: Floats, truth: Ints, options: _Options) -> Result:
    """The result of scores, (n_held_out, n_nodes); ties count by their expected rank."""
    true_scores = scores[np.arange(len(truth)), truth][:, None]
    above, tied = (scores > true_scores).sum(axis=1), (scores == true_scores).sum(axis=1) - 1
    pool = np.full(len(truth), scores.shape[1], dtype=np.int64)
    ids = np.array([options.tree.ids[node] for node in options.held], dtype=object)
    ranking = Ranking.of_items(
        ids, np.ones(len(truth), dtype=np.int64), gain=np.ones(len(truth)), above=above, tied=tied, depth=pool,
        candidates=pool,
    )  # fmt: skip
    settings = {
        DATA: {"tree": options.tree.fingerprint},
        UNIT_NOUN: "account",
        DISPLAY: {"system": "source", "cluster": "subtree"},
    }
    config = replace(options.config, clusters=options.clusters)
    metrics = [metric for text in METRICS for metric in parse_metrics(text)]
    return estimate(ranking, metrics, system=name, config=config, settings=settings)


def _structure_result(embed: Callable[[Tree], NodeVectors], parents: Ints, options: _Options) -> Result:
    """Each held-out account is a child of its grandparent, or a root, and its parent is ranked by distance."""
    from equipoise.domains.accounts.trees.tree import Tree

    tree, held = options.tree, options.held
    hidden = set(held.tolist())
    grandparents = tree.first_parents[parents]
    edges = [(tree.ids[child], tree.ids[parent]) for child, parent in tree.edges.tolist() if child not in hidden]
    edges += [
        (tree.ids[node], tree.ids[above])
        for node, above in zip(held.tolist(), grandparents.tolist(), strict=True)
        if above >= 0
    ]
    reattached = Tree.of(list(zip(tree.ids, tree.names, strict=True)), edges, source=tree.source)
    vectors = embed(reattached)
    space = geometry_named(vectors.geometry)
    scores = np.array([-space.distance(vectors.vectors[node], vectors.vectors) for node in held])
    # The node itself and the known grandparent are no candidates.
    scores[np.arange(len(held)), held] = -np.inf
    known = grandparents >= 0
    scores[np.flatnonzero(known), grandparents[known]] = -np.inf
    return _placement_result("structure alone", scores, parents, options)
