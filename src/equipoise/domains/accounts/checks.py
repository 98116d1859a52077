"""Checks of a hierarchy that was read back from vectors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.checks.base import Check, Observation, evidence_names, join_names, pluralize
from equipoise.geometry.spaces import Lorentz, Poincare
from equipoise.metrics.structure import NormDepthCorrelation
from equipoise.stats.formatting import format_value
from equipoise.types import Finding, Severity

if TYPE_CHECKING:
    from equipoise.domains.accounts.experiment import EmbeddingSpec, TreeEvaluationConfig
    from equipoise.domains.accounts.reconstruction import Reconstruction
    from equipoise.metrics.base import Metric
    from equipoise.stats.result import Result

MAX_ROUNDING_ERROR = 0.01
"""A point that rounding may have moved by more than this, in the distance of its space, is blurred."""


@dataclass(frozen=True)
class ReconstructedTree:
    """A reconstruction and the system whose vectors it was made from."""

    system: str
    found: Reconstruction


def single_positive(rebuilt: ReconstructedTree) -> Iterator[Observation]:
    """EQ305: every node has one relative at most, so MAP is MRR under another name."""
    if rebuilt.found.single:
        counts = rebuilt.found.ranking.counts
        yield Observation(
            rebuilt.system,
            f"no node has more than one {_relative(rebuilt.found)}, so MAP is MRR: the mean of one over its rank",
            (f"{pluralize(int(counts.sum()), 'node')} with one, {int((counts == 0).sum()):,} with none",),
        )


def norm_decreases_with_depth(rebuilt: ReconstructedTree) -> Iterator[Observation]:
    """EQ306: in a hyperbolic space, deeper nodes lie nearer to the origin."""
    found = rebuilt.found
    if not isinstance(found.geometry, Poincare | Lorentz):
        return
    correlation = NormDepthCorrelation().value(found.space)
    if correlation < 0.0:
        roots = found.norms[found.tree.roots]
        yield Observation(
            rebuilt.system,
            f"the norm falls as nodes get deeper: Spearman's correlation is {format_value(correlation, 3)}",
            (
                f"mean norm of the roots {format_value(float(roots.mean()), 4)}, "
                f"of all nodes {format_value(float(found.norms.mean()), 4)}",
            ),
        )


def insufficient_precision(rebuilt: ReconstructedTree) -> Iterator[Observation]:
    """EQ113: points so far out that the digits they were kept with no longer say where they are."""
    found = rebuilt.found
    if not isinstance(found.geometry, Poincare | Lorentz):
        return
    vectors = found.space.vectors
    digits = _precision(vectors)
    # A coordinate of a far point is rounded by eps, and the metric stretches that by e^radius.
    radius = found.radii * found.geometry.curvature**0.5
    moved = np.finfo(digits).eps * np.exp(np.minimum(radius, 700.0))
    far = np.flatnonzero(moved > MAX_ROUNDING_ERROR)
    if len(far):
        worst = far[np.argsort(-moved[far], kind="stable")]
        names = [found.tree.ids[node] for node in worst.tolist()]
        yield Observation(
            rebuilt.system,
            f"{len(far):,} of {pluralize(len(found), 'point')} lie so far out that {digits} may have moved "
            f"them by more than {MAX_ROUNDING_ERROR:g}, the farthest by {format_value(float(moved[worst[0]]), 2)}: "
            f"{join_names(names)}",
            evidence_names(names),
        )


def with_findings(result: Result, found: Reconstruction, metrics: tuple[Metric[Any], ...]) -> Result:
    """The same result with what the checks find in it and in the reconstruction behind it.

    Only the figures of the metrics are held against chance: how norms follow depth describes an embedding,
    and in a flat space nothing says that they should (EQ306 looks at the others).
    """
    from equipoise.checks.base import ScoredResult
    from equipoise.checks.registry import run_checks

    known = {metric.name: metric for metric in metrics}
    claimed = {name: each for name, each in result.estimates.items() if name in known}
    scored = ScoredResult(replace(result, estimates=claimed), known)
    findings = (*run_checks(scored), *run_checks(ReconstructedTree(result.system, found)))
    return replace(result, findings=tuple(dict.fromkeys((*result.findings, *findings))))


def _relative(found: Reconstruction) -> str:
    return {"parent": "parent", "ancestors": "ancestor"}.get(found.relation, "relative")


def _precision(vectors: Any) -> str:
    """The type that holds all digits of the vectors: float32 also when it was written out and read again."""
    with np.errstate(over="ignore"):
        single = vectors.dtype == np.float32 or np.array_equal(vectors, vectors.astype(np.float32))
    return "float32" if single else "float64"


_EXAMPLE = """\
from equipoise.checks.registry import run_checks
from equipoise.domains.accounts.checks import ReconstructedTree
from equipoise.domains.accounts.trees.tree import Tree
from equipoise.domains.accounts.reconstruction import reconstruct
tree = Tree.from_edges([("cash", "assets"), ("bank", "assets")])
"""

CHECKS: tuple[Check, ...] = (
    Check(
        code="EQ113",
        title="points that their digits cannot place",
        severity=Severity.TIP,
        applies_to=ReconstructedTree,
        function=insufficient_precision,
        why="""\
Hyperbolic space grows so fast that most of it lies next to the rim of the ball, where neighbouring numbers
are far apart: at radius 17, float32 moves a point by about 1 and float64 by a few billionths. Distances among
such points are those of the rounding, and so are their ranks. Files with few digits do the same.""",
        hint="keep the vectors in float64 with all digits (.npz, or CSV with 17), or bound the radius",
        example=f"""\
{_EXAMPLE}found = reconstruct(tree, [[1 - 2**-24, 0.0], [0.0, 0.0], [0.0, 0.5]], "poincare")
run_checks(ReconstructedTree("mine", found))""",
    ),
    Check(
        code="EQ305",
        title="MAP is MRR",
        severity=Severity.NOTE,
        applies_to=ReconstructedTree,
        function=single_positive,
        why="""\
With a single right answer the precision at its rank is one over that rank, so average precision and the
reciprocal rank are the same number. Two columns that always agree are one piece of evidence, and a MAP of
this kind does not compare with one over all ancestors.""",
        hint='read one of the two, or rank all relatives: relation="closure"',
        example=f"""\
{_EXAMPLE}run_checks(ReconstructedTree("mine", reconstruct(tree, [[1.0], [0.0], [-2.0]])))""",
    ),
    Check(
        code="EQ306",
        title="a hierarchy inside out",
        severity=Severity.TIP,
        applies_to=ReconstructedTree,
        function=norm_decreases_with_depth,
        why="""\
Hyperbolic space has room for the many leaves of a tree far from the origin, and for its few roots near it.
In a good embedding deeper nodes therefore lie farther out. Where the norm falls with depth, the
training has not found the shape of the tree, or the edges were read the wrong way round: parent, child.""",
        hint="see whether the edges are (child, parent), and train longer or from a better start",
        example=f"""\
{_EXAMPLE}found = reconstruct(tree, [[0.1, 0.0], [0.9, 0.0], [0.0, 0.2]], "poincare")
run_checks(ReconstructedTree("mine", found))""",
    ),
)


# What the checks say of many embeddings of one tree: told once, with hints that fit a tree.

TIED = "EQ301"
NOT_ABOVE_CHANCE, AT_THE_CEILING, TOO_FEW, MAP_IS_MRR = "EQ302", "EQ303", "EQ304", "EQ305"
TREE_HINTS = {
    TIED: "none where the distances are meant to be equal: ties count by their expectation",
    NOT_ABOVE_CHANCE: "train longer or in more dimensions, or accept that the vectors do not know the tree",
    TOO_FEW: "judge on a larger tree, or report the embeddings as tied",
}
"""A tree has as many nodes as it has, and no cutoffs: the usual advice would not help."""
PRIMARY = ("MR", "MAP")
"""What embeddings of a tree are compared on."""


def without_chance_finding(result: Result, cell: EmbeddingSpec, settings: TreeEvaluationConfig) -> Result:
    """The result of a baseline without the finding that it is no better than chance, which it may be."""
    if not settings.is_baseline(cell):
        return result
    return replace(result, findings=tuple(each for each in result.findings if each.code != NOT_ABOVE_CHANCE))


def merge_findings(findings: Iterable[Finding], relation: str = "parent") -> tuple[Finding, ...]:
    """Each finding once, without what the report says anyway.

    What is the same of several embeddings is told of them together. Figures at their best value are so for
    all embeddings of which the same figures are: one finding a set of figures.

    >>> from equipoise.types import Severity
    >>> one, two = (Finding("EQ303", Severity.TIP, name, "", "", ("MAP 1.00",)) for name in "ab")
    >>> found = merge_findings([one, two])
    >>> print(found[0].subject, found[0].message, sep=": ")
    a, b: MAP can hardly improve any further and cannot tell good embeddings apart
    >>> found[0].hint
    'compare on MR, or rank all relatives: --relation closure'
    """
    told = list(dict.fromkeys(findings))
    single = {each.subject for each in told if each.code == MAP_IS_MRR}
    alike: dict[tuple[str, ...], list[Finding]] = {}
    for each in told:
        if each.code == AT_THE_CEILING:
            alike.setdefault((each.code, *_exhausted(each, each.subject in single)), []).append(each)
        elif each.code != MAP_IS_MRR:
            alike.setdefault((each.code, each.message), []).append(each)
    return tuple(
        _at_the_ceiling(tuple(figures), _together(group), relation)
        if code == AT_THE_CEILING
        else replace(_together(group), hint=TREE_HINTS.get(code, group[0].hint))
        for (code, *figures), group in alike.items()
    )


def _exhausted(finding: Finding, single: bool) -> tuple[str, ...]:
    """The figures that are at their best; with one relative a node some are others under another name."""
    names = tuple(dict.fromkeys(line.split()[0].rstrip(",") for line in finding.evidence))
    return tuple(name for name in names if not (single and _equivalent_metric(name) in names))


def _equivalent_metric(name: str) -> str | None:
    """What a figure equals where no node has two relatives."""
    if name == "MRR":
        return "MAP"
    over = {"MR(over=units)": "MR", "MR(over=units,filtered)": "MR(filtered)"}
    return over.get(name)


def _together(findings: list[Finding]) -> Finding:
    """One finding for several that say the same of different embeddings."""
    if len(findings) == 1 and findings[0].code != AT_THE_CEILING:
        return findings[0]
    return replace(
        findings[0],
        subject=join_names([each.subject for each in findings]),
        evidence=tuple(f"{each.subject}: {line}" for each in findings for line in each.evidence),
    )


def _at_the_ceiling(figures: tuple[str, ...], finding: Finding, relation: str) -> Finding:
    """The finding in the words of trees."""
    return replace(
        finding,
        message=f"{', '.join(figures)} can hardly improve any further and cannot tell good embeddings apart",
        hint=_beyond(figures, relation),
    )


def _beyond(figures: tuple[str, ...], relation: str) -> str:
    """Where embeddings may still differ: on the figures that are not at their best, or in a harder task."""
    done = {name.partition("(")[0] for name in figures}
    left = [name for name in PRIMARY if name not in done]
    ways = [f"compare on {' or '.join(left)}"] if left else []
    if relation != "closure":
        ways.append("rank all relatives: --relation closure")
    return ", or ".join(ways) or "compare in fewer dimensions, or on a larger tree"
