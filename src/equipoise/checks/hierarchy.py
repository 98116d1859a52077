"""Checks of a hierarchy that was read back from vectors."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from equipoise.checks.base import Check, Complaint, counted, kept, listed
from equipoise.geometry.spaces import Lorentz, Poincare
from equipoise.metrics.base import Metric
from equipoise.metrics.space import NormDepth
from equipoise.stats.numbers import figure
from equipoise.stats.result import Result
from equipoise.tasks.reconstruct.reconstruct import Reconstruction
from equipoise.types import Severity

BLURRED = 0.01
"""A point that rounding may have moved by more than this, in the distance of its space, is blurred."""


@dataclass(frozen=True)
class Rebuilt:
    """A reconstruction and the system whose vectors it was made from."""

    system: str
    found: Reconstruction


def one_relative(rebuilt: Rebuilt) -> Iterator[Complaint]:
    """EQ305: every node has one relative at most, so MAP is MRR under another name."""
    if rebuilt.found.single:
        counts = rebuilt.found.ranking.counts
        yield Complaint(
            rebuilt.system,
            f"no node has more than one {_relative(rebuilt.found)}, so MAP is MRR: "
            "the mean of one over its rank",
            (f"{counted(int(counts.sum()), 'node')} with one, {int((counts == 0).sum()):,} with none",),
        )


def inside_out(rebuilt: Rebuilt) -> Iterator[Complaint]:
    """EQ306: in a hyperbolic space, deeper nodes lie nearer to the origin."""
    found = rebuilt.found
    if not isinstance(found.geometry, Poincare | Lorentz):
        return
    correlation = NormDepth().value(found.space)
    if correlation < 0.0:
        roots = found.norms[found.tree.roots]
        yield Complaint(
            rebuilt.system,
            f"the norm falls as nodes get deeper: Spearman's correlation is {figure(correlation, 3)}",
            (
                f"mean norm of the roots {figure(float(roots.mean()), 4)}, "
                f"of all nodes {figure(float(found.norms.mean()), 4)}",
            ),
        )


def blurred(rebuilt: Rebuilt) -> Iterator[Complaint]:
    """EQ113: points so far out that the digits they were kept with no longer say where they are."""
    found = rebuilt.found
    if not isinstance(found.geometry, Poincare | Lorentz):
        return
    vectors = found.space.vectors
    digits = _precision(vectors)
    # A coordinate of a far point is rounded by eps, and the metric stretches that by e^radius.
    radius = found.radii * found.geometry.curvature**0.5
    moved = np.finfo(digits).eps * np.exp(np.minimum(radius, 700.0))
    far = np.flatnonzero(moved > BLURRED)
    if len(far):
        worst = far[np.argsort(-moved[far], kind="stable")]
        names = [found.tree.ids[node] for node in worst.tolist()]
        yield Complaint(
            rebuilt.system,
            f"{len(far):,} of {counted(len(found), 'point')} lie so far out that {digits} may have moved "
            f"them by more than {BLURRED:g}, the farthest by {figure(float(moved[worst[0]]), 2)}: "
            f"{listed(names)}",
            kept(names),
        )


def examined(result: Result, found: Reconstruction, metrics: tuple[Metric[Any], ...]) -> Result:
    """The same result with what the checks find in it and in the reconstruction behind it.

    Only the figures of the metrics are held against chance: how norms follow depth describes an embedding,
    and in a flat space nothing says that they should (EQ306 looks at the others).
    """
    from equipoise.checks.catalogue import examine
    from equipoise.checks.subjects import Scored

    known = {metric.name: metric for metric in metrics}
    claimed = {name: each for name, each in result.estimates.items() if name in known}
    scored = Scored(replace(result, estimates=claimed), known)
    findings = (*examine(scored), *examine(Rebuilt(result.system, found)))
    return replace(result, findings=tuple(dict.fromkeys((*result.findings, *findings))))


def _relative(found: Reconstruction) -> str:
    return {"parent": "parent", "ancestors": "ancestor"}.get(found.relation, "relative")


def _precision(vectors: Any) -> str:
    """The type that holds all digits of the vectors: float32 also when it was written out and read again."""
    with np.errstate(over="ignore"):
        single = vectors.dtype == np.float32 or np.array_equal(vectors, vectors.astype(np.float32))
    return "float32" if single else "float64"


_EXAMPLE = """\
from equipoise.checks.catalogue import examine
from equipoise.checks.hierarchy import Rebuilt
from equipoise.hierarchy.tree import Tree
from equipoise.tasks.reconstruct import reconstruct
tree = Tree.from_edges([("cash", "assets"), ("bank", "assets")])
"""

CHECKS: tuple[Check, ...] = (
    Check(
        code="EQ113",
        title="points that their digits cannot place",
        severity=Severity.TIP,
        applies_to=Rebuilt,
        function=blurred,
        why="""\
Hyperbolic space grows so fast that most of it lies next to the rim of the ball, where neighbouring numbers
are far apart: at radius 17, float32 moves a point by about 1 and float64 by a few billionths. Distances among
such points are those of the rounding, and so are their ranks. Files with few digits do the same.""",
        remedy="keep the vectors in float64 with all digits (.npz, or CSV with 17), or bound the radius",
        example=f"""\
{_EXAMPLE}found = reconstruct(tree, [[1 - 2**-24, 0.0], [0.0, 0.0], [0.0, 0.5]], "poincare")
examine(Rebuilt("mine", found))""",
    ),
    Check(
        code="EQ305",
        title="MAP is MRR",
        severity=Severity.NOTE,
        applies_to=Rebuilt,
        function=one_relative,
        why="""\
With a single right answer the precision at its rank is one over that rank, so average precision and the
reciprocal rank are the same number. Two columns that always agree are one piece of evidence, and a MAP of
this kind does not compare with one over all ancestors.""",
        remedy='read one of the two, or rank all relatives: relation="closure"',
        example=f"""\
{_EXAMPLE}examine(Rebuilt("mine", reconstruct(tree, [[1.0], [0.0], [-2.0]])))""",
    ),
    Check(
        code="EQ306",
        title="a hierarchy inside out",
        severity=Severity.TIP,
        applies_to=Rebuilt,
        function=inside_out,
        why="""\
Hyperbolic space has room for the many leaves of a tree far from the origin, and for its few roots near it.
In a good embedding deeper nodes therefore lie farther out. Where the norm falls with depth, the
training has not found the shape of the tree, or the edges were read the wrong way round: parent, child.""",
        remedy="see whether the edges are (child, parent), and train longer or from a better start",
        example=f"""\
{_EXAMPLE}found = reconstruct(tree, [[0.1, 0.0], [0.9, 0.0], [0.0, 0.2]], "poincare")
examine(Rebuilt("mine", found))""",
    ),
)
