"""Checks of the rows of a tree and of its reconstruction from vectors, and findings merged over embeddings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.checks.base import (
    Observation,
    ScoredResult,
    declared_checks,
    evidence_names,
    join_names,
    pluralize,
    run_checks,
)
from equipoise.domains.accounts.trees.tree import Tree, TreeRows, is_random_id, orphan_edges
from equipoise.geometry.spaces import Lorentz, Poincare
from equipoise.io.dag import find_cycle
from equipoise.metrics.structure import NormDepthCorrelation
from equipoise.stats.formatting import format_value
from equipoise.types import Finding

if TYPE_CHECKING:
    from equipoise.domains.accounts.evaluation import Reconstruction
    from equipoise.domains.accounts.experiment import EmbeddingSpec, TreeEvaluationConfig
    from equipoise.metrics.base import Metric
    from equipoise.stats.result import Result


MIN_CHAIN = 2
"""Nodes in a row with a single child each that are reported as a chain."""
MAX_SHOWN = 8
"""The nodes of a longer chain or cycle are not all listed."""


def duplicate_ids(rows: TreeRows) -> Iterator[Observation]:
    """EQ170: several rows have the same id, or are the same edge."""
    counts = Counter(key for key, _ in rows.nodes if key)
    repeated = [key for key, count in counts.items() if count > 1]
    if repeated:
        yield Observation(
            rows.source,
            f"{pluralize(len(repeated), 'id')} in more than one row: {join_names(repeated)}",
            evidence_names([f"{key}: {counts[key]} rows" for key in repeated]),
        )
    # The rows of a repeated id are reported above.
    edges = Counter(edge for edge in rows.edges if counts[edge[0]] < 2)
    names = [f"{child} -> {parent}" for (child, parent), count in edges.items() if count > 1]
    if names:
        message = f"{pluralize(len(names), 'edge')} in more than one row: {join_names(names)}"
        yield Observation(rows.source, message, evidence_names(names))


def self_parents(rows: TreeRows) -> Iterator[Observation]:
    """EQ171: a node is its own parent."""
    nodes = list(dict.fromkeys(child for child, parent in rows.edges if child == parent))
    if nodes:
        verb = "is its own parent" if len(nodes) == 1 else "are their own parents"
        message = f"{pluralize(len(nodes), 'node')} that {verb}: {join_names(nodes)}"
        yield Observation(rows.source, message, evidence_names(nodes))


def orphans(rows: TreeRows) -> Iterator[Observation]:
    """EQ172: the parent of a node does not exist."""
    edges = orphan_edges(rows)
    if edges:
        named = [f"{child} (parent {parent})" for child, parent in edges]
        message = f"{pluralize(len(edges), 'node')} with a parent that does not exist: {join_names(named)}"
        yield Observation(rows.source, message, evidence_names(named))


def cycles(rows: TreeRows) -> Iterator[Observation]:
    """EQ173: a node is its own ancestor."""
    edges = dict.fromkeys(edge for edge in rows.edges if edge[0] != edge[1])
    paths = []
    while cycle := find_cycle(edges):
        paths.append(_join_path([*cycle, cycle[0]]))
        # One edge less, so that the next cycle is found.
        edges.pop((cycle[-1], cycle[0]))
    if paths:
        yield Observation(rows.source, f"{pluralize(len(paths), 'cycle')}: {join_names(paths)}", evidence_names(paths))


def _join_path(names: list[str]) -> str:
    """The nodes of a path, without the middle of a long one."""
    shown = names if len(names) <= MAX_SHOWN else [*names[:2], f"... {len(names) - 3:,} more", names[-1]]
    return " -> ".join(shown)


def no_root(rows: TreeRows) -> Iterator[Observation]:
    """EQ174: every node has a parent."""
    children = {child for child, _ in rows.edges}
    if rows.nodes and all(key in children for key, _ in rows.nodes):
        parents = list(dict.fromkeys(parent for _, parent in rows.edges))
        message = (
            "the only node is not a root"
            if len(rows.nodes) == 1
            else f"none of the {len(rows.nodes):,} nodes is a root"
        )
        yield Observation(rows.source, message, evidence_names([f"parent {parent}" for parent in parents]))


def no_edges(rows: TreeRows) -> Iterator[Observation]:
    """EQ178: no node has a parent."""
    if rows.nodes and not rows.edges:
        message = f"no node has a parent ({pluralize(len(rows.nodes), 'node')})"
        yield Observation(rows.source, message, evidence_names([key for key, _ in rows.nodes]))


def empty_fields(rows: TreeRows) -> Iterator[Observation]:
    """EQ175: nodes without an id or a name."""
    without_id = [name or "(no name)" for key, name in rows.nodes if not key]
    if without_id:
        message = f"{pluralize(len(without_id), 'row')} without an id: {join_names(without_id)}"
        yield Observation(rows.source, message, evidence_names(without_id))
    without_name = [key for key, name in rows.nodes if key and not name]
    if without_name and len(without_name) < len(rows.nodes):
        ids = "id" if len(without_name) == 1 else "ids"
        message = f"{pluralize(len(without_name), 'node')} without a name: {ids} {join_names(without_name)}"
        yield Observation(rows.source, message, evidence_names(without_name))


def duplicate_names(rows: TreeRows) -> Iterator[Observation]:
    """EQ176: siblings with the same name."""
    parents: dict[str, str] = dict(rows.edges)
    groups: dict[tuple[str, str], list[str]] = {}
    for key, name in rows.nodes:
        if name:
            groups.setdefault((parents.get(key, ""), " ".join(name.split()).casefold()), []).append(name)
    repeated = [(parent, names) for (parent, _), names in groups.items() if len(names) > 1]
    if repeated:
        labels = _labels(rows)
        places = [f"under {labels.get(parent, parent)}" if parent else "at the top" for parent, _ in repeated]
        shared = [f"{names[0]!r} {place}" for (_, names), place in zip(repeated, places, strict=True)]
        message = f"{pluralize(len(repeated), 'name')} that siblings share: {join_names(shared)}"
        evidence = [f"{text}: {len(names)} nodes" for text, (_, names) in zip(shared, repeated, strict=True)]
        yield Observation(rows.source, message, evidence_names(evidence))


def _labels(rows: TreeRows) -> dict[str, str]:
    """The names of nodes whose ids are random."""
    return {key: name for key, name in rows.nodes if name and is_random_id(key)}


def single_child_chains(rows: TreeRows) -> Iterator[Observation]:
    """EQ177: nodes in a row that have one child each."""
    children: dict[str, list[str]] = {}
    known = {key for key, _ in rows.nodes}
    for child, parent in dict.fromkeys(rows.edges):
        if parent in known:
            children.setdefault(parent, []).append(child)
    single = {parent: below[0] for parent, below in children.items() if len(below) == 1 and below[0] != parent}
    chains, labels = [], _labels(rows)
    for start in single.keys() - set(single.values()):
        chain = [start]
        while chain[-1] in single and len(chain) <= len(single):
            chain.append(single[chain[-1]])
        if len(chain) > MIN_CHAIN:
            chains.append(_join_path([labels.get(key, key) for key in chain]))
    if chains:
        chains.sort()
        message = f"{pluralize(len(chains), 'chain')} of nodes with a single child: {join_names(chains)}"
        yield Observation(rows.source, message, evidence_names(chains))


@dataclass(frozen=True)
class TreeProblems:
    """The findings about rows; ``tree`` is None if they are not a hierarchy."""

    rows: TreeRows
    findings: tuple[Finding, ...]
    tree: Tree | None

    @property
    def nodes_by_depth(self) -> list[int]:
        """The number of ids at each depth below the nodes without a parent.

        >>> rows = TreeRows([("1", ""), ("11", ""), ("12", ""), ("9", "")], [("11", "1"), ("12", "1"), ("9", "9")], "")
        >>> tree_problems(rows, None).nodes_by_depth
        [1, 2]
        """
        children: dict[str, list[str]] = {}
        for child, parent in self.rows.edges:
            children.setdefault(parent, []).append(child)
        has_parent = {child for child, _ in self.rows.edges}
        layer = {key for key, _ in self.rows.nodes if key and key not in has_parent}
        reached, counts = set(layer), []
        while layer:
            counts.append(len(layer))
            layer = {child for parent in layer for child in children.get(parent, ())} - reached
            reached |= layer
        return counts


def tree_problems(rows: TreeRows, tree: Tree | None) -> TreeProblems:
    """All problems of the rows; ``tree`` is what was built of them, if it could be."""
    return TreeProblems(rows, tuple(run_checks(rows)), tree)


MAX_ROUNDING_ERROR = 0.01
"""Points with a larger possible rounding error, as a distance, are reported."""


@dataclass(frozen=True)
class ReconstructedTree:
    """A reconstruction and the system of its vectors."""

    system: str
    reconstruction: Reconstruction


def single_positive(subject: ReconstructedTree) -> Iterator[Observation]:
    """EQ305: every node has at most one target, so MAP equals MRR."""
    if subject.reconstruction.has_single_target:
        counts = subject.reconstruction.ranking.counts
        targets = {"parent": "parent", "ancestors": "ancestor"}
        target = targets.get(subject.reconstruction.relation, "related node")
        yield Observation(
            subject.system,
            f"no node has more than one {target}, so MAP equals MRR",
            (f"{pluralize(int(counts.sum()), 'node')} with one, {int((counts == 0).sum()):,} with none",),
        )


def norm_decreases_to_leaves(subject: ReconstructedTree) -> Iterator[Observation]:
    """EQ306: in a hyperbolic space, nodes near the leaves are nearer to the origin."""
    reconstruction = subject.reconstruction
    if not isinstance(reconstruction.geometry, Poincare | Lorentz):
        return
    correlation = NormDepthCorrelation().value(reconstruction.space)
    if correlation < 0.0:
        roots = reconstruction.norms[reconstruction.tree.roots]
        yield Observation(
            subject.system,
            "the norm decreases from root to leaf: its Spearman correlation with the position between root (0) and "
            f"leaf (1) is {format_value(correlation, 3)}",
            (
                f"mean norm of the roots {format_value(float(roots.mean()), 4)}, "
                f"of all nodes {format_value(float(reconstruction.norms.mean()), 4)}",
            ),
        )


def insufficient_precision(subject: ReconstructedTree) -> Iterator[Observation]:
    """EQ113: points so far from the origin that their number format cannot represent their position."""
    reconstruction = subject.reconstruction
    if not isinstance(reconstruction.geometry, Poincare | Lorentz):
        return
    vectors = reconstruction.space.vectors
    dtype = _precision(vectors)
    # A coordinate of a far point is rounded by eps, and the metric multiplies that by e^radius.
    radius = reconstruction.origin_distances * reconstruction.geometry.curvature**0.5
    errors = np.finfo(dtype).eps * np.exp(np.minimum(radius, 700.0))
    imprecise = np.flatnonzero(errors > MAX_ROUNDING_ERROR)
    if len(imprecise):
        by_error = imprecise[np.argsort(-errors[imprecise], kind="stable")]
        names = [reconstruction.tree.ids[node] for node in by_error.tolist()]
        points = f"{pluralize(len(reconstruction), 'point')} {'is' if len(imprecise) == 1 else 'are'}"
        largest = format_value(float(errors[by_error[0]]), 2)
        yield Observation(
            subject.system,
            f"{len(imprecise):,} of {points} so far from the origin that rounding to "
            f"{dtype} may have moved them by more than {MAX_ROUNDING_ERROR:g}, the farthest by {largest}: "
            f"{join_names(names)}",
            evidence_names(names),
        )


def with_findings(result: Result, reconstruction: Reconstruction, metrics: tuple[Metric[Any], ...]) -> Result:
    """The result with the findings about it and about its reconstruction.

    Only ranking metrics are compared with chance: the correlation of norm and position describes an embedding, and in a
    flat space there is no expected value (EQ306 covers hyperbolic spaces).
    """
    metric_of = {metric.name: metric for metric in metrics}
    ranking_estimates = {name: value for name, value in result.estimates.items() if name in metric_of}
    scored = ScoredResult(replace(result, estimates=ranking_estimates), metric_of)
    findings = (*result.findings, *run_checks(scored), *run_checks(ReconstructedTree(result.system, reconstruction)))
    with_hints = (_with_tree_hint(finding, reconstruction.relation) for finding in findings)
    return replace(result, findings=tuple(dict.fromkeys(with_hints)))


def _with_tree_hint(finding: Finding, relation: str) -> Finding:
    """The finding with a hint that fits trees, if there is one."""
    if finding.code == AT_THE_CEILING:
        return replace(finding, hint=_ceiling_hint(_saturated_metrics(finding), relation))
    return replace(finding, hint=TREE_HINTS.get(finding.code, finding.hint))


def _precision(vectors: Any) -> str:
    """The float type of the vectors: float32 also if they were written as float32 and read again."""
    with np.errstate(over="ignore"):
        is_float32 = vectors.dtype == np.float32 or np.array_equal(vectors, vectors.astype(np.float32))
    return "float32" if is_float32 else "float64"


CHECKS = declared_checks(
    "equipoise.domains.accounts",
    {
        "EQ113": (ReconstructedTree, insufficient_precision),
        "EQ170": (TreeRows, duplicate_ids),
        "EQ171": (TreeRows, self_parents),
        "EQ172": (TreeRows, orphans),
        "EQ173": (TreeRows, cycles),
        "EQ174": (TreeRows, no_root),
        "EQ175": (TreeRows, empty_fields),
        "EQ176": (TreeRows, duplicate_names),
        "EQ177": (TreeRows, single_child_chains),
        "EQ178": (TreeRows, no_edges),
        "EQ305": (ReconstructedTree, single_positive),
        "EQ306": (ReconstructedTree, norm_decreases_to_leaves),
    },
)


TIED = "EQ301"
NOT_ABOVE_CHANCE, AT_THE_CEILING, TOO_FEW, MAP_IS_MRR = "EQ302", "EQ303", "EQ304", "EQ305"
TREE_HINTS = {
    TIED: "no action needed if the distances are equal by design: ties count by their expectation",
    NOT_ABOVE_CHANCE: "train longer or in more dimensions, or use another model",
    TOO_FEW: "evaluate on a larger tree, or report the embeddings as tied",
}
"""Hints for trees: their number of nodes is given, and there are no cutoffs."""
PRIMARY = ("MR", "MAP")
"""The metrics on which embeddings of a tree are compared."""


def without_chance_finding(result: Result, spec: EmbeddingSpec, settings: TreeEvaluationConfig) -> Result:
    """Remove the finding of a baseline that it is not above chance."""
    if not settings.is_baseline(spec):
        return result
    return replace(result, findings=tuple(finding for finding in result.findings if finding.code != NOT_ABOVE_CHANCE))


def merge_findings(findings: Iterable[Finding], relation: str = "parent") -> tuple[Finding, ...]:
    """Each finding once, without those that the report states anyway.

    Equal findings about several embeddings are merged. Findings about saturated metrics are merged over the embeddings
    with the same saturated metrics.

    >>> from equipoise.types import Severity
    >>> one, two = (Finding("EQ303", Severity.TIP, name, "", "", ("MAP 1.00",)) for name in "ab")
    >>> merged = merge_findings([one, two])
    >>> print(merged[0].subject, merged[0].message, sep=": ")
    a, b: MAP is saturated and cannot distinguish good embeddings
    >>> merged[0].hint
    'compare on MR, or rank all related nodes: --relation closure'
    """
    unique = list(dict.fromkeys(findings))
    groups: dict[tuple[str, ...], list[Finding]] = {}
    for finding in unique:
        if finding.code == AT_THE_CEILING:
            groups.setdefault((finding.code, *_saturated_metrics(finding)), []).append(finding)
        elif finding.code != MAP_IS_MRR:
            groups.setdefault((finding.code, finding.message), []).append(finding)
    return tuple(
        _ceiling_finding(tuple(metrics), group, relation)
        if code == AT_THE_CEILING
        else replace(_merge(group), hint=TREE_HINTS.get(code, group[0].hint))
        for (code, *metrics), group in groups.items()
    )


def _saturated_metrics(finding: Finding) -> tuple[str, ...]:
    """The saturated metrics."""
    return tuple(dict.fromkeys(line.split()[0].rstrip(",") for line in finding.evidence))


def _merge(findings: list[Finding]) -> Finding:
    """One finding for several that state the same about different embeddings."""
    if len(findings) == 1:
        return findings[0]
    return replace(
        findings[0],
        subject=join_names(list(dict.fromkeys(finding.subject for finding in findings))),
        evidence=tuple(f"{finding.subject}: {line}" for finding in findings for line in finding.evidence),
    )


def _ceiling_finding(metrics: tuple[str, ...], findings: list[Finding], relation: str) -> Finding:
    """One finding with a message and a hint for trees; its evidence is one line per embedding."""
    verb = "is" if len(metrics) == 1 else "are"
    values = [[line for line in finding.evidence if line.split()[0].rstrip(",") in metrics] for finding in findings]
    return replace(
        findings[0],
        subject=join_names(list(dict.fromkeys(finding.subject for finding in findings))),
        evidence=tuple(
            f"{finding.subject}: {'; '.join(lines)}" for finding, lines in zip(findings, values, strict=True)
        ),
        message=f"{', '.join(metrics)} {verb} saturated and cannot distinguish good embeddings",
        hint=_ceiling_hint(metrics, relation),
    )


def _ceiling_hint(metrics: tuple[str, ...], relation: str) -> str:
    """Where embeddings may still differ: on metrics that are not saturated, or on a harder task."""
    saturated = {name.partition("(")[0] for name in metrics}
    remaining = [name for name in PRIMARY if name not in saturated]
    hints = [f"compare on {' or '.join(remaining)}"] if remaining else []
    if relation != "closure":
        hints.append("rank all related nodes: --relation closure")
    return ", or ".join(hints) or "compare in fewer dimensions, or on a larger tree"
