"""Checks of a concept set, of the vectors, and of the score components."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING

import numpy as np

from equipoise.checks.base import Check, Observation, evidence_names, join_names, pluralize
from equipoise.domains.concepts.concept_set import ConceptSet, IssueKind
from equipoise.metrics.intrinsic import EffectiveRank, MeanCosine
from equipoise.stats.formatting import format_value
from equipoise.types import Direction, Severity, with_label

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


CONCEPTS_CHECKS: tuple[Check, ...] = (
    Check(
        code="EQ310",
        title="collapsed space",
        severity=Severity.ISSUE,
        applies_to=ConceptSpace,
        function=collapsed_space,
        why="""\
If all vectors point in nearly the same direction, every cosine is high. Related entities then look coherent,
names look close to their sentences, and similar pairs get a high cosine, although unrelated pairs do as well.
Scores that add up such cosines reward the collapse; scores that compare them with shuffled pairs do not. Vectors
on one line have only cosines of 1 and -1, and if most vectors are zero, most cosines are equal.""",
        hint="use the scale-free metrics: correlation, ranks, coherence against shuffled pairs",
        example="""\
from equipoise.checks.base import run_checks
from equipoise.domains.concepts.checks import ConceptSpace
from equipoise.evidence.space import Space
run_checks(ConceptSpace("narrow", Space.of([[1.0, 0.1], [1.0, 0.0], [1.0, -0.1]])))""",
    ),
    Check(
        code="EQ311",
        title="a component is the same for all models",
        severity=Severity.TIP,
        applies_to=ScoreComponent,
        function=constant_component,
        why="""\
A part of a score that is the same for every model cannot help to choose one. It shifts all scores equally, so a
rating such as "good" can be due to the test data: the density of a graph, for example, is known before any model is
loaded.""",
        hint="compare models by the other parts; the ranking does not depend on this one",
        example="""\
from equipoise.checks.base import run_checks
from equipoise.domains.concepts.checks import ScoreComponent
from equipoise.types import Direction
density = {"minilm": 0.01, "use": 0.01}
run_checks(ScoreComponent("knowledge_graph_score", "graph_density", 0.3, Direction.UP, density, fixed=True))""",
    ),
    Check(
        code="EQ312",
        title="a component rewards worse models",
        severity=Severity.ISSUE,
        applies_to=ScoreComponent,
        function=reversed_component,
        why="""\
A weighted score adds values for which higher is better. If it adds one for which lower is better, the model with the
worst value gains most. The ratio of the norms' standard deviation to their mean is such a value: it is
called consistency, and it is 0 for the most consistent model. The score is computed as it is
defined, so that it can be compared with published ones.""",
        hint="do not select by this part; use the score without it",
        example="""\
from equipoise.checks.base import run_checks
from equipoise.domains.concepts.checks import ScoreComponent
from equipoise.types import Direction
ratios = {"even": 0.0, "uneven": 0.3}
run_checks(ScoreComponent("embedding_quality_score", "norm_std/norm_mean", 0.3, Direction.DOWN, ratios))""",
    ),
    Check(
        code="EQ313",
        title="texts with a zero vector",
        severity=Severity.ISSUE,
        applies_to=ZeroVectors,
        function=zero_vectors,
        why="""\
A zero vector has no direction: the model has no representation of the text. Its cosine with any other vector counts as
0 here, which is the right value for unrelated pairs and raises diversity and separation. Its norm of 0 makes the norms
uneven. A weighted score may reward all of these, so a worse model can rank first.""",
        hint="find out why the model returns zero vectors for these texts, or remove them for every model",
        example="""\
from equipoise.checks.base import run_checks
from equipoise.domains.concepts.checks import ZeroVectors
run_checks(ZeroVectors("half", ("akrasia", "qualia"), 3))""",
    ),
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


CONCEPT_SET_CHECKS: tuple[Check, ...] = (
    Check(
        code="EQ130",
        title="invalid entries of a concept set",
        severity=Severity.ISSUE,
        applies_to=ConceptSet,
        function=unusable_entries,
        why="""\
A pair without its second text, a cluster without concepts, a pair with two similarities: nothing can be measured on
such an entry, and leaving it out silently would change the dataset. A single cluster or a single concept cannot be
compared with anything. A run stops at the first of them; eq concepts check lists them all.""",
        hint="correct or remove these entries",
        example="""\
from equipoise.checks.base import run_checks
from equipoise.domains.concepts.concept_set import ConceptSet, ConceptSetIssue, IssueKind
missing = ConceptSetIssue(IssueKind.ENTRY, "pairs.json", "pairs.json entry 3 has no concept_2")
run_checks(ConceptSet("ethics", problems=(missing,)))""",
    ),
    Check(
        code="EQ131",
        title="expected similarities out of range",
        severity=Severity.ISSUE,
        applies_to=ConceptSet,
        function=out_of_range,
        why="""\
Expected similarities are compared with cosines and must be between 0 and 1. A value of 3.8 is either a typo or a score
on another scale, and the two need different corrections. Clipping would give every strong pair the maximum, and a scale
guessed from the largest value would change all pairs when one is added.""",
        hint="correct the number, or specify the scale: --similarity-scale 5, or a column called score_0_5",
        example="""\
from equipoise.checks.base import run_checks
from equipoise.domains.concepts.concept_set import ConceptSet, ConceptSetIssue, IssueKind
high = ConceptSetIssue(IssueKind.RANGE, "pairs.csv", "pairs.csv line 4 expects the similarity 3.8, outside 0 to 1")
run_checks(ConceptSet("sts", problems=(high,)))""",
    ),
    Check(
        code="EQ132",
        title="entity offsets that do not match the text",
        severity=Severity.ISSUE,
        applies_to=ConceptSet,
        function=wrong_offsets,
        why="""\
Start and end are the character offsets of an entity in its sentence. If the text between them is not the entity,
either the sentence was edited after annotation, or the offsets count bytes or words. The scores here use the
entity's text and do not change, but a recogniser trained on the file would learn wrong spans.""",
        hint="correct the offsets: text[start:end] must be the entity",
        example="""\
from equipoise.checks.base import run_checks
from equipoise.domains.concepts.concept_set import ConceptSet, ConceptSetIssue, IssueKind
fact = "entities.json entry 1 marks 'Plato' at 1 to 6, where the text is 'lato '"
run_checks(ConceptSet("greece", problems=(ConceptSetIssue(IssueKind.OFFSETS, "entities.json", fact),)))""",
    ),
    Check(
        code="EQ136",
        title="duplicate entries of a concept set",
        severity=Severity.TIP,
        applies_to=ConceptSet,
        function=duplicate_entries,
        why="""\
An entry that occurs twice would count twice in every mean, and would make intervals too narrow. Entries that are
equal to an earlier one are left out. A pair with two different similarities stops the run (EQ130).""",
        hint="remove the duplicates",
        example="""\
from equipoise.checks.base import run_checks
from equipoise.domains.concepts.concept_set import ConceptSet, ConceptSetIssue, IssueKind
fact = "pairs.csv line 9 is equal to an earlier one and left out"
run_checks(ConceptSet("sts", problems=(ConceptSetIssue(IssueKind.DUPLICATE, "pairs.csv", fact),)))""",
    ),
    Check(
        code="EQ133",
        title="too few dissimilar pairs",
        severity=Severity.TIP,
        applies_to=ConceptSet,
        function=few_dissimilar_pairs,
        why="""\
A model that gives every pair a cosine of 0.8 does well on pairs that are all expected to be similar: its absolute
errors are small, and most are within the tolerance. Only pairs that are expected to be dissimilar show its errors, and
a correlation over a narrow range of expected values is mostly noise.""",
        hint="add pairs of unrelated concepts",
        example="""\
from equipoise.checks.base import run_checks
from equipoise.domains.concepts.concept_set import ConceptSet, ConceptPair
pairs = ConceptPair("duty", "obligation", 0.9), ConceptPair("virtue", "good character", 0.8)
run_checks(ConceptSet("ethics", pairs=pairs))""",
    ),
    Check(
        code="EQ134",
        title="clusters too small",
        severity=Severity.TIP,
        applies_to=ConceptSet,
        function=small_clusters,
        why="""\
The coherence of a cluster is computed from the pairs of its concepts: two concepts give one pair, three give three, and
the silhouette of a single concept is 0 by definition. Scores of such clusters change with every added concept, and
differences between models are rarely significant.""",
        hint="add concepts to these clusters, or join them with others",
        example="""\
from equipoise.checks.base import run_checks
from equipoise.domains.concepts.concept_set import ConceptCluster, ConceptSet
ethics, logic = ConceptCluster("ethics", ("duty", "virtue")), ConceptCluster("logic", ("modus ponens", "syllogism"))
run_checks(ConceptSet("both", clusters=(ethics, logic)))""",
    ),
    Check(
        code="EQ135",
        title="score undefined for every model",
        severity=Severity.ISSUE,
        applies_to=ConceptSet,
        function=undefined_scores,
        why="""\
A correlation needs expected similarities that differ, and the coherence of a cluster needs at least two
concepts. If all pairs have the same expected similarity, or every cluster is a single concept, that part of the
score is undefined for every model, and so are the score and the composite. The concept set can be read, but not
used for this score.""",
        hint="add pairs of other similarities, or concepts to the clusters",
        example="""\
from equipoise.checks.base import run_checks
from equipoise.domains.concepts.concept_set import ConceptSet, ConceptPair
run_checks(ConceptSet("flat", pairs=(ConceptPair("duty", "virtue", 0.5), ConceptPair("logic", "number", 0.5))))""",
    ),
)


CHECKS: tuple[Check, ...] = (*CONCEPT_SET_CHECKS, *CONCEPTS_CHECKS)
