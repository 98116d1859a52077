"""Checks of concept scores: collapsed spaces, and parts of a blend that mislead."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import isnan

import numpy as np

from equipoise.checks.base import Check, Complaint, counted, kept, listed
from equipoise.evidence.space import Space
from equipoise.metrics.spread import EffectiveRank, MeanCosine
from equipoise.stats.numbers import figure
from equipoise.types import Direction, Severity, labelled

COLLAPSED = 0.9
"""From this mean cosine on, the points lie in a narrow cone."""
SAME = 1e-9
"""Values that differ by less, relative to the largest, are the same."""


@dataclass(frozen=True)
class ConceptSpace:
    """The vectors that a model gave to some concepts."""

    model: str
    space: Space
    what: str = "the concepts"


@dataclass(frozen=True)
class Vectorless:
    """The texts that a model gave a vector of zeros, of so many in all."""

    model: str
    texts: tuple[str, ...]
    count: int


@dataclass(frozen=True)
class BlendPart:
    """A part of a blended score: what it counts, which way is better, and what each model has.

    ``better`` is that of the figure as it enters the blend: MAE enters as 1 - MAE, of which more is better.
    ``fixed`` says that the part is computed from the data alone.
    """

    blend: str
    part: str
    weight: float
    better: Direction
    values: Mapping[str, float]
    fixed: bool = False


def collapsed_space(seen: ConceptSpace) -> Iterator[Complaint]:
    """EQ310: vectors that all point the same way."""
    cosine, rank = MeanCosine().value(seen.space), EffectiveRank().value(seen.space)
    if isnan(cosine):
        yield Complaint(
            seen.model, f"fewer than two of {seen.what} have a direction: the other vectors are zero"
        )
        return
    flat = len(seen.space) > 2 and rank < 2.0
    if cosine >= COLLAPSED or flat:
        yield Complaint(
            seen.model,
            f"{seen.what} lie nearly in one direction: their mean cosine is {figure(cosine, 3)}, their "
            f"effective rank {figure(rank, 1)} of {min(seen.space.vectors.shape)} possible",
            (f"mean cosine {figure(cosine, 4)}", f"effective rank {figure(rank, 2)}"),
        )


def zero_vectors(seen: Vectorless) -> Iterator[Complaint]:
    """EQ313: texts whose vector is zero."""
    if seen.texts:
        yield Complaint(
            seen.model,
            f"{len(seen.texts)} of {counted(seen.count, 'text')} "
            f"{'has' if len(seen.texts) == 1 else 'have'} a vector of zeros: "
            f"{listed([repr(text) for text in seen.texts])}",
            kept(seen.texts),
        )


def constant_part(part: BlendPart) -> Iterator[Complaint]:
    """EQ311: a part of a blend that is the same for every model."""
    values = np.array(list(part.values.values()), dtype=np.float64)
    values = values[~np.isnan(values)]
    alike = len(values) > 1 and np.ptp(values) <= SAME * max(1.0, float(np.abs(values).max()))
    if not len(values) or not (alike or part.fixed):
        return
    share = float(values[0]) * part.weight
    reason = "is computed from the data alone" if part.fixed else f"is the same for all {len(values)} models"
    yield Complaint(
        part.blend,
        f"{part.part} {reason}: it adds {figure(share, 4)} to every model and tells none from another",
        (f"{part.part} = {figure(float(values[0]), 4)}, weight {figure(part.weight, 2)}",),
    )


def reversed_part(part: BlendPart) -> Iterator[Complaint]:
    """EQ312: a part of a blend that rewards what is worse."""
    wanted = Direction.UP if part.weight > 0 else Direction.DOWN
    if part.weight and part.better != wanted:
        verb, less = ("adds", "less") if part.weight > 0 else ("takes off", "more")
        yield Complaint(
            part.blend,
            f"it {verb} {figure(abs(part.weight), 2)} x {part.part}, of which {less} is better: the worse a "
            f"model is there, the higher it scores",
            tuple(labelled(model, figure(value, 4)) for model, value in part.values.items())
            or (f"weight {figure(part.weight, 2)}",),
        )


CHECKS: tuple[Check, ...] = (
    Check(
        code="EQ310",
        title="collapsed space",
        severity=Severity.ISSUE,
        applies_to=ConceptSpace,
        function=collapsed_space,
        why="""\
Where all vectors point nearly the same way, every cosine is high. Related entities then look coherent, names
look near their sentences, and pairs that should be alike are alike, without the model telling anything apart.
Scores that add up such cosines reward the collapse; those held against shuffled pairs do not.""",
        remedy="read the scale-free figures: correlation, ranks, coherence against shuffled pairs",
        example="""\
from equipoise.checks.catalogue import examine
from equipoise.checks.concepts import ConceptSpace
from equipoise.evidence.space import Space
examine(ConceptSpace("narrow", Space.of([[1.0, 0.1], [1.0, 0.0], [1.0, -0.1]])))""",
    ),
    Check(
        code="EQ311",
        title="a part that no model changes",
        severity=Severity.TIP,
        applies_to=BlendPart,
        function=constant_part,
        why="""\
A part of a score that is the same for every model cannot help to choose one. It moves all scores, so that
bands such as "good" are reached or missed for a reason that lies in the test data: the density and
the clustering coefficient of a graph are known before any model is loaded. It also makes all scores
look closer to each other than the models are.""",
        remedy="compare models by the other parts; the ranking does not depend on this one",
        example="""\
from equipoise.checks.catalogue import examine
from equipoise.checks.concepts import BlendPart
from equipoise.types import Direction
density = {"minilm": 0.01, "use": 0.01}
examine(BlendPart("knowledge_graph_score", "graph_density", 0.3, Direction.UP, density, fixed=True))""",
    ),
    Check(
        code="EQ312",
        title="a part that rewards what is worse",
        severity=Severity.ISSUE,
        applies_to=BlendPart,
        function=reversed_part,
        why="""\
A blend adds up figures of which more is better. Where it adds one of which less is better, the model that is
worst there gains most. The ratio of the norms' standard deviation to their mean is such a figure: it is
called consistency, and it is 0 for the most consistent model. The blend is computed as it is
defined, so that it can be compared with published ones; this finding says what to make of it.""",
        remedy="do not choose by this part; read the blend without it",
        example="""\
from equipoise.checks.catalogue import examine
from equipoise.checks.concepts import BlendPart
from equipoise.types import Direction
ratios = {"even": 0.0, "uneven": 0.3}
examine(BlendPart("embedding_quality_score", "norm_std/norm_mean", 0.3, Direction.DOWN, ratios))""",
    ),
    Check(
        code="EQ313",
        title="texts with a vector of zeros",
        severity=Severity.ISSUE,
        applies_to=Vectorless,
        function=zero_vectors,
        why="""\
A vector of zeros has no direction: the model does not know the text, or lost it. Its cosine with any
other counts as 0 here, which is right for pairs that have nothing in common, raises diversity and
separation, and makes norms uneven, which a blend may even reward. A model can come first by knowing less.""",
        remedy="find out why the model has nothing to say of these texts, or leave them out for every model",
        example="""\
from equipoise.checks.catalogue import examine
from equipoise.checks.concepts import Vectorless
examine(Vectorless("half", ("akrasia", "qualia"), 3))""",
    ),
)
