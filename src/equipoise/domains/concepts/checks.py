"""Checks of a concept set, of the vectors, and of the score components."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING

import numpy as np

from equipoise.checks.base import Observation, declared_checks, evidence_names, join_names, pluralize
from equipoise.domains.concepts.concept_set import ConceptSet, IssueKind
from equipoise.metrics.intrinsic import EffectiveRank, MeanCosine
from equipoise.stats.formatting import format_value
from equipoise.types import Direction, with_label

if TYPE_CHECKING:
    from equipoise.evidence.space import Space

# Checks of concept scores: collapsed spaces, and parts of a blend that mislead.

COLLAPSED_MEAN_COSINE = 0.9
"""From this mean cosine on, the vectors are in a narrow cone."""
MIN_NONZERO = 0.5
"""With a smaller share of vectors that are not zero, most texts have the same vector."""
EQUAL_TOLERANCE = 1e-9
"""Values that differ by less, relative to the largest, are the same."""


@dataclass(frozen=True)
class ConceptSpace:
    """The vectors of some concepts by one model."""

    model: str
    space: Space
    what: str = "the concepts"


@dataclass(frozen=True)
class ZeroVectors:
    """The texts with a zero vector, and the number of all texts."""

    model: str
    texts: tuple[str, ...]
    count: int


@dataclass(frozen=True)
class ScoreComponent:
    """A part of a blended score: what it counts, which way is better, and what each model has.

    ``better`` is the direction of the value as it enters the blend: MAE enters as 1 - MAE, for which higher is better.
    ``fixed`` means that the part depends only on the data.
    """

    blend: str
    part: str
    weight: float
    better: Direction
    values: Mapping[str, float]
    fixed: bool = False


def collapsed_space(space: ConceptSpace) -> Iterator[Observation]:
    """EQ310: vectors that all point the same way, are on one line, or are mostly zero."""
    n_points = len(space.space)
    n_nonzero = int(np.count_nonzero(space.space.vectors.any(axis=1)))
    if n_nonzero < max(2, MIN_NONZERO * n_points):
        yield Observation(space.model, f"only {n_nonzero} of {n_points} vectors of {space.what} are not zero")
        return
    cosine, rank = MeanCosine().value(space.space), EffectiveRank().value(space.space)
    if cosine >= COLLAPSED_MEAN_COSINE:
        fact = f"point in nearly the same direction: their mean cosine is {format_value(cosine, 3)}"
    elif n_points > 2 and rank < 2.0:
        fact = "are nearly on one line"
    else:
        return
    yield Observation(
        space.model,
        f"the vectors of {space.what} {fact}; their effective rank is {format_value(rank, 1)}, "
        f"at most {min(space.space.vectors.shape)} is possible",
        (f"mean cosine {format_value(cosine, 4)}", f"effective rank {format_value(rank, 2)}"),
    )


def zero_vectors(subject: ZeroVectors) -> Iterator[Observation]:
    """EQ313: texts whose vector is zero."""
    if subject.texts:
        yield Observation(
            subject.model,
            f"{len(subject.texts)} of {pluralize(subject.count, 'text')} "
            f"{'has' if len(subject.texts) == 1 else 'have'} a zero vector: "
            f"{join_names([repr(text) for text in subject.texts])}",
            evidence_names(subject.texts),
        )


def constant_component(part: ScoreComponent) -> Iterator[Observation]:
    """EQ311: a part of a blend that is the same for every model."""
    values = np.array(list(part.values.values()), dtype=np.float64)
    values = values[~np.isnan(values)]
    equal = len(values) > 1 and np.ptp(values) <= EQUAL_TOLERANCE * max(1.0, float(np.abs(values).max()))
    if not len(values) or not (equal or part.fixed):
        return
    share = float(values[0]) * part.weight
    reason = "is computed from the data alone" if part.fixed else f"is the same for all {len(values)} models"
    yield Observation(
        part.blend,
        f"{part.part} {reason}: it adds {format_value(share, 4)} to the score of every model",
        (f"{part.part} = {format_value(float(values[0]), 4)}, weight {format_value(part.weight, 2)}",),
    )


def reversed_component(part: ScoreComponent) -> Iterator[Observation]:
    """EQ312: a component of a blend that rewards worse models."""
    direction = Direction.UP if part.weight > 0 else Direction.DOWN
    if part.weight and part.better != direction:
        verb, better = ("adds", "lower") if part.weight > 0 else ("subtracts", "higher")
        yield Observation(
            part.blend,
            f"it {verb} {format_value(abs(part.weight), 2)} x {part.part}, for which {better} is better, so a worse "
            f"value raises the score",
            tuple(with_label(model, format_value(value, 4)) for model, value in part.values.items())
            or (f"weight {format_value(part.weight, 2)}",),
        )


MAX_DISSIMILAR = 0.25
"""A pair that expects at most this similarity is a negative one."""
FEWEST_NEGATIVES = 0.1
"""Below this share of dissimilar pairs, a model that rates all pairs as similar is not detected."""
FEWEST_CONCEPTS = 4
"""In smaller clusters, a single concept determines the value of the cluster."""


def unusable_entries(concept_set: ConceptSet) -> Iterator[Observation]:
    """EQ130: entries that are incomplete, contradict each other, or are too few for any metric."""
    yield from _by_file(concept_set, IssueKind.ENTRY, IssueKind.REPEATED, IssueKind.TOO_FEW)


def out_of_range(concept_set: ConceptSet) -> Iterator[Observation]:
    """EQ131: expected similarities outside 0 to 1."""
    yield from _by_file(concept_set, IssueKind.RANGE)


def wrong_offsets(concept_set: ConceptSet) -> Iterator[Observation]:
    """EQ132: entities with wrong offsets."""
    yield from _by_file(concept_set, IssueKind.OFFSETS)


def duplicate_entries(concept_set: ConceptSet) -> Iterator[Observation]:
    """EQ136: entries that are equal to earlier ones."""
    yield from _by_file(concept_set, IssueKind.DUPLICATE)


def _by_file(concept_set: ConceptSet, *rules: IssueKind) -> Iterator[Observation]:
    """One complaint a file: the first problem in full, and how many more there are."""
    problems = [problem for problem in concept_set.problems if problem.rule in rules]
    for file, group in groupby(problems, key=attrgetter("file")):
        sentences = [problem.message for problem in group]
        more = f" (and {pluralize(len(sentences) - 1, 'more problem')})" if len(sentences) > 1 else ""
        yield Observation(file, f"{sentences[0].removeprefix(file).strip()}{more}", evidence_names(sentences))


def few_dissimilar_pairs(concept_set: ConceptSet) -> Iterator[Observation]:
    """EQ133: hardly any pair that is expected to be unlike."""
    pairs = concept_set.pairs or ()
    unlike = sum(1 for pair in pairs if pair.expected <= MAX_DISSIMILAR)
    if len(pairs) < 2 or unlike >= FEWEST_NEGATIVES * len(pairs):
        return
    lowest = min(pairs, key=lambda pair: pair.expected)
    yield Observation(
        f"{concept_set.name} pairs",
        f"of {pluralize(len(pairs), 'pair')}, {unlike or 'none'} "
        f"expect{'s' if unlike == 1 else ''} a similarity of {format_value(MAX_DISSIMILAR, 2)} or less, so "
        "a model that rates everything as similar is hardly detected",
        (f"the lowest is {format_value(lowest.expected, 2)}, of {lowest.id}",),
    )


def small_clusters(concept_set: ConceptSet) -> Iterator[Observation]:
    """EQ134: clusters of too few concepts to say anything of a cluster."""
    clusters = concept_set.clusters or ()
    small = [cluster for cluster in clusters if len(cluster.concepts) < FEWEST_CONCEPTS]
    if small:
        names = [f"{cluster.name} ({len(cluster.concepts)})" for cluster in small]
        yield Observation(
            f"{concept_set.name} clusters",
            f"{len(small)} of {pluralize(len(clusters), 'cluster')} "
            f"{'has' if len(small) == 1 else 'have'} fewer than {FEWEST_CONCEPTS} concepts: {join_names(names)}",
            evidence_names(names),
        )


def undefined_scores(concept_set: ConceptSet) -> Iterator[Observation]:
    """EQ135: a score that is undefined for every model on this concept set."""
    expected = {pair.expected for pair in concept_set.pairs or ()}
    if concept_set.pairs and len(concept_set.pairs) > 1 and len(expected) == 1:
        yield Observation(
            f"{concept_set.name} pairs",
            f"all {len(concept_set.pairs)} pairs expect the similarity {format_value(expected.pop(), 2)}, so "
            "the correlation and semantic_similarity_score are undefined",
            evidence_names([pair.id for pair in concept_set.pairs]),
        )
    clusters = concept_set.clusters or ()
    if len(clusters) > 1 and all(len(cluster.concepts) == 1 for cluster in clusters):
        yield Observation(
            f"{concept_set.name} clusters",
            f"each of {pluralize(len(clusters), 'cluster')} has one concept, so cluster_coherence and "
            "clustering_score are undefined",
            evidence_names([cluster.name for cluster in clusters]),
        )


CHECKS = declared_checks(
    "equipoise.domains.concepts",
    {
        "EQ130": (ConceptSet, unusable_entries),
        "EQ131": (ConceptSet, out_of_range),
        "EQ132": (ConceptSet, wrong_offsets),
        "EQ133": (ConceptSet, few_dissimilar_pairs),
        "EQ134": (ConceptSet, small_clusters),
        "EQ135": (ConceptSet, undefined_scores),
        "EQ136": (ConceptSet, duplicate_entries),
        "EQ310": (ConceptSpace, collapsed_space),
        "EQ311": (ScoreComponent, constant_component),
        "EQ312": (ScoreComponent, reversed_component),
        "EQ313": (ZeroVectors, zero_vectors),
    },
)
