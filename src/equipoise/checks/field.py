"""Checks of a field: entries that cannot be used, wrong offsets, lopsided pairs, small clusters."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from operator import attrgetter

from equipoise.checks.base import Check, Complaint, counted, kept, listed
from equipoise.data.field import Field, Rule
from equipoise.stats.numbers import figure
from equipoise.types import Severity

UNLIKE = 0.25
"""A pair that expects at most this similarity is a negative one."""
FEWEST_NEGATIVES = 0.1
"""The share of negative pairs below which they cannot find a model out that thinks everything alike."""
FEWEST_CONCEPTS = 4
"""In smaller clusters, the place of a single concept decides the figure of the cluster."""


def unusable_entries(field: Field) -> Iterator[Complaint]:
    """EQ130: entries that lack something, stand twice, or are too few for any figure."""
    yield from _by_file(field, Rule.ENTRY, Rule.REPEATED, Rule.TOO_FEW)


def out_of_range(field: Field) -> Iterator[Complaint]:
    """EQ131: expected similarities outside 0 to 1."""
    yield from _by_file(field, Rule.RANGE)


def wrong_offsets(field: Field) -> Iterator[Complaint]:
    """EQ132: entities that do not stand where they are said to stand."""
    yield from _by_file(field, Rule.OFFSETS)


def _by_file(field: Field, *rules: Rule) -> Iterator[Complaint]:
    """One complaint a file: the first problem in full, and how many more there are."""
    found = [problem for problem in field.problems if problem.rule in rules]
    for file, group in groupby(found, key=attrgetter("file")):
        sentences = [problem.sentence for problem in group]
        more = f" (and {counted(len(sentences) - 1, 'more problem')})" if len(sentences) > 1 else ""
        yield Complaint(file, f"{sentences[0].removeprefix(file).strip()}{more}", kept(sentences))


def without_negatives(field: Field) -> Iterator[Complaint]:
    """EQ133: hardly any pair that is expected to be unlike."""
    pairs = field.pairs or ()
    unlike = sum(1 for pair in pairs if pair.expected <= UNLIKE)
    if len(pairs) < 2 or unlike >= FEWEST_NEGATIVES * len(pairs):
        return
    lowest = min(pairs, key=lambda pair: pair.expected)
    yield Complaint(
        f"{field.name} pairs",
        f"of {counted(len(pairs), 'pair')}, {unlike or 'none'} "
        f"expect{'s' if unlike == 1 else ''} a similarity of {figure(UNLIKE, 2)} or less, so that a model "
        f"which finds everything alike is hardly found out",
        (f"the lowest is {figure(lowest.expected, 2)}, of {lowest.id}",),
    )


def small_clusters(field: Field) -> Iterator[Complaint]:
    """EQ134: clusters of too few concepts to say anything of a cluster."""
    clusters = field.clusters or ()
    small = [each for each in clusters if len(each.concepts) < FEWEST_CONCEPTS]
    if small:
        names = [f"{each.name} ({len(each.concepts)})" for each in small]
        yield Complaint(
            f"{field.name} clusters",
            f"{len(small)} of {counted(len(clusters), 'cluster')} "
            f"{'has' if len(small) == 1 else 'have'} fewer than {FEWEST_CONCEPTS} concepts: {listed(names)}",
            kept(names),
        )


def undefined_scores(field: Field) -> Iterator[Complaint]:
    """EQ135: a score that no model can have on this field."""
    expected = {pair.expected for pair in field.pairs or ()}
    if field.pairs and len(field.pairs) > 1 and len(expected) == 1:
        yield Complaint(
            f"{field.name} pairs",
            f"all {len(field.pairs)} pairs expect the similarity {figure(expected.pop(), 2)}, so that no "
            "correlation and no semantic_similarity_score is defined",
            kept([pair.id for pair in field.pairs]),
        )
    clusters = field.clusters or ()
    if len(clusters) > 1 and all(len(each.concepts) == 1 for each in clusters):
        yield Complaint(
            f"{field.name} clusters",
            f"each of {counted(len(clusters), 'cluster')} has one concept, so that no cluster_coherence and "
            "no clustering_score is defined",
            kept([each.name for each in clusters]),
        )


CHECKS: tuple[Check, ...] = (
    Check(
        code="EQ130",
        title="entries of a field that cannot be used",
        severity=Severity.ISSUE,
        applies_to=Field,
        function=unusable_entries,
        why="""\
A pair without its second text, a cluster without concepts, the same relation twice: nothing can be measured
on such an entry, and leaving it out in silence would measure something else than the file says. One cluster
or one concept has nothing to differ from. A run refuses the field at the first of them; eq concepts check
lists them all.""",
        remedy="mend or remove these entries",
        example="""\
from equipoise.checks.catalogue import examine
from equipoise.data.field import Field, Problem, Rule
missing = Problem(Rule.ENTRY, "pairs.json", "pairs.json entry 3 has no concept_2")
examine(Field("ethics", problems=(missing,)))""",
    ),
    Check(
        code="EQ131",
        title="expected similarities out of range",
        severity=Severity.ISSUE,
        applies_to=Field,
        function=out_of_range,
        why="""\
Expected similarities are compared with cosines, so they run from 0 to 1. A 3.8 is either a slip of the point
or a score on another scale, and the two need different remedies. Clipping it would turn every strong
pair into a perfect one, and guessing the scale from the largest number would change all pairs when one is
added.""",
        remedy="correct the number, or say the scale: --scale 5, or a column called score_0_5",
        example="""\
from equipoise.checks.catalogue import examine
from equipoise.data.field import Field, Problem, Rule
high = Problem(Rule.RANGE, "pairs.csv", "pairs.csv line 4 expects the similarity 3.8, outside 0 to 1")
examine(Field("sts", problems=(high,)))""",
    ),
    Check(
        code="EQ132",
        title="entity offsets that do not match the text",
        severity=Severity.ISSUE,
        applies_to=Field,
        function=wrong_offsets,
        why="""\
Start and end say where an entity stands, in characters of its sentence. Where other words stand there, either
the sentence was edited after it was marked, or the offsets count bytes or words. The scores here use the
entity's own words and do not change, but whoever trains a recogniser on the file teaches it nonsense.""",
        remedy="write the offsets again; text[start:end] must be the entity",
        example="""\
from equipoise.checks.catalogue import examine
from equipoise.data.field import Field, Problem, Rule
fact = "entities.json entry 1 marks 'Plato' at 1 to 6, where 'lato ' stands"
examine(Field("greece", problems=(Problem(Rule.OFFSETS, "entities.json", fact),)))""",
    ),
    Check(
        code="EQ133",
        title="pairs without negatives",
        severity=Severity.TIP,
        applies_to=Field,
        function=without_negatives,
        why="""\
A model that gives every pair a cosine of 0.8 does well on pairs that are all expected to be alike: its
absolute errors are small, and most are within the tolerance. Only pairs that are expected to be
unlike find it out, and a correlation over a narrow range of expectations is mostly noise.""",
        remedy="add pairs of concepts that have nothing to do with each other",
        example="""\
from equipoise.checks.catalogue import examine
from equipoise.data.field import Field, Pair
examine(Field("ethics", pairs=(Pair("duty", "obligation", 0.9), Pair("virtue", "good character", 0.8))))""",
    ),
    Check(
        code="EQ134",
        title="clusters too small",
        severity=Severity.TIP,
        applies_to=Field,
        function=small_clusters,
        why="""\
Whether a cluster holds together is read off the pairs of its concepts. Two concepts make one pair, three make
three, and the silhouette of a single one is 0 by definition. Figures of such clusters vary with
every concept that is added, and models cannot be told apart on them.""",
        remedy="add concepts to these clusters, or join them with others",
        example="""\
from equipoise.checks.catalogue import examine
from equipoise.data.field import Cluster, Field
ethics, logic = Cluster("ethics", ("duty", "virtue")), Cluster("logic", ("modus ponens", "syllogism"))
examine(Field("both", clusters=(ethics, logic)))""",
    ),
    Check(
        code="EQ135",
        title="a score that no model can have",
        severity=Severity.ISSUE,
        applies_to=Field,
        function=undefined_scores,
        why="""\
A correlation needs expectations that differ, and the coherence of a cluster needs two concepts in it. Where
every pair expects the same, or every cluster is a single concept, the part of the score is undefined
for any model, and so are the score and the composite. The field can be read, but not used for this.""",
        remedy="add pairs of other similarities, or concepts to the clusters",
        example="""\
from equipoise.checks.catalogue import examine
from equipoise.data.field import Field, Pair
examine(Field("flat", pairs=(Pair("duty", "virtue", 0.5), Pair("logic", "number", 0.5))))""",
    ),
)
