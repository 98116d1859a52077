"""Scores that are made of parts: recomputed, and searched for parts that mislead.

A composite adds numbers up that need not mean what their names say: statistics of the test data that no
model changes, a spread that is called consistency, cosines that are high because all vectors point one way.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from equipoise.checks.audit.formula import Formula
from equipoise.checks.audit.scored import COMPOSITE, FORMULAS, Compared, Scored, span_of
from equipoise.checks.audit.span import SLACK, Span, digits
from equipoise.checks.audit.violation import Violation, accusing
from equipoise.checks.base import Check, counted
from equipoise.checks.concepts import COLLAPSED
from equipoise.data.published.printed import Printed
from equipoise.types import Severity

OF_THE_DATA = ("graph_density", "clustering_coefficient")
"""Properties of the graph of the test data; no model changes them."""
SIMILARITIES = tuple(
    f"{mean}_{what}"
    for mean in ("avg", "average", "mean")
    for what in (
        "pairwise_similarity",
        "pairwise_cosine_similarity",
        "pairwise_cosine",
        "cosine_similarity",
        "cosine",
    )
)
"""Names of the mean cosine over all pairs of vectors."""
_SIMILAR_ELSEWHERE = ("avg_pairwise_similarity", "average_pairwise_similarity", "mean_pairwise_similarity")
"""Texts have a pairwise similarity as well; other numbers of vectors alongside say that it is theirs."""
_OF_VECTORS = (
    "embedding_variance",
    "norm_mean",
    "norm_std",
    "embedding_dimension",
    "embedding_quality_score",
)
PARTS = frozenset(name for formula in FORMULAS for name in formula.names)
NAMES = frozenset((*OF_THE_DATA, *(each.name for each in FORMULAS), "norm_consistency", *SIMILARITIES))


def collapsed(compared: Compared) -> Iterator[Violation]:
    """EQ418: a system whose vectors all point nearly the same way."""
    for system in compared.systems:
        seen = next((pair for name in SIMILARITIES if (pair := _similarity(system, name))), None)
        if seen is None or seen[1].low < COLLAPSED:
            continue
        label, span = seen
        rank = _rank(compared, system)
        yield Violation(
            (),
            f"{label} is {span}: all vectors point nearly the same way{rank}",
            (
                f"1 is the similarity of equal directions; from {digits(COLLAPSED)} on a space has collapsed",
                "in a collapsed space every pair looks related, so coherence and similarity are high for all",
                "a score that adds up such similarities rewards the collapse",
            ),
            subject=system.name,
        )


def _similarity(system: Scored, name: str) -> tuple[str, Span] | None:
    number = system.find(name)
    if number is None:
        return None
    if name in _SIMILAR_ELSEWHERE and not any(system.find(each) for each in _OF_VECTORS):
        return None
    return name, span_of(number)


def _rank(compared: Compared, system: Scored) -> str:
    scores = {each.name: number.value for each in compared.systems if (number := each.find(COMPOSITE))}
    if len(scores) > 1 and scores.get(system.name) == max(scores.values()):
        return f", and it has the highest {COMPOSITE} of {counted(len(scores), 'system')}"
    return ""


def parts_of_the_data(compared: Compared) -> Iterator[Violation]:
    """EQ414: a part of a score that measures the test data and not the system."""
    for name in OF_THE_DATA:
        files: dict[str, dict[str, Printed]] = {}
        for system in compared.systems:
            number = system.find(name)
            if number is not None:
                files.setdefault(system.file, {}).setdefault(system.name, number)
        # Files with one system each may be of one evaluation, or of evaluations on other data.
        single = {
            system: number for seen in files.values() if len(seen) == 1 for system, number in seen.items()
        }
        for seen in files.values():
            if len(seen) > 1:
                yield from _constant(name, seen)
        if len(single) > 1 and _alike(single):
            yield from _constant(name, single)


def _alike(seen: Mapping[str, Printed]) -> bool:
    first, *others = map(span_of, seen.values())
    return not any(first.apart(each) for each in others)


def _constant(name: str, seen: Mapping[str, Printed]) -> Iterator[Violation]:
    why = "the graph is made of the relations of the test data, before any model is asked"
    steps = (why, *(f"{system}: {name} {number.text}" for system, number in list(seen.items())[:5]))
    sentence = f"{name} differs between systems, and cannot if they were measured on the same graph"
    if _alike(seen):
        sentence = (
            f"{name} is {next(iter(seen.values())).text} for all of {counted(len(seen), 'system')}: it is a "
            "constant of the test data and says nothing of a system"
        )
    yield Violation((), sentence, steps)


def reversed_parts(compared: Compared) -> Iterator[Violation]:
    """EQ415: a consistency of norms that is their standard deviation over their mean."""
    for system in compared.systems:
        claimed, score = system.find("norm_consistency"), system.find("embedding_quality_score")
        spread, mean = system.find("norm_std"), system.find("norm_mean")
        ratio = None
        if spread and mean and mean.low > 0:
            ratio = Span(max(spread.low, 0.0) / mean.high, spread.high / mean.low)
        if claimed is None or (ratio is not None and ratio.apart(span_of(claimed))) or not (ratio or score):
            continue
        shown = "it is counted for the score, as the ratio of std to mean"
        if ratio and spread and mean:
            shown = f"norm_std {spread.text} over norm_mean {mean.text} is {ratio}, and so is it"
        yield Violation(
            (),
            f"norm_consistency {claimed.text} rewards inconsistency: it is 0 when all norms are equal",
            (
                shown,
                "equal norms have the standard deviation 0 and get 0; it grows as they differ",
            ),
            subject=system.name,
        )


def unlike_its_parts(compared: Compared) -> Iterator[Violation]:
    """EQ416: a score that is not what its formula gives."""
    for system in compared.systems:
        scores: dict[str, list[tuple[Formula, Span, Mapping[str, Span]]]] = {}
        for formula in system.formulas:
            parts = system.spans(formula) if system.find(formula.name) else None
            value = formula.value(parts) if parts else None
            if parts and value is not None:
                scores.setdefault(formula.name, []).append((formula, value, parts))
        for name, ways in scores.items():
            stated = system.find(name)
            if stated is None or not all(_apart(span_of(stated), value) for _, value, _ in ways):
                continue
            formula, value, used = ways[0]
            yield Violation(
                (),
                f"{name} {stated.text} is not what its formula gives, {value}",
                (f"{name} = {formula.expression}", *(f"{part} is {span}" for part, span in used.items())),
                subject=system.name,
            )


def _apart(stated: Span, value: Span) -> bool:
    return stated.apart(Span(value.low - SLACK, value.high + SLACK))


CONSTANT = Check(
    code="EQ414",
    title="a part of a score that does not depend on the system",
    severity=Severity.ISSUE,
    applies_to=Compared,
    function=accusing(parts_of_the_data),
    why="""\
The density and the clustering coefficient of a graph that is made of the test data are properties of that
data. They are the same for every model, add the same amount to every score, and make bad models look half
good. If they differ between models, the models were not measured on the same data.""",
    remedy="leave the part out of the score, or report it once, with the data",
    example="""\
from equipoise.checks.audit import audit_table
rows = [{"model": name, "relation_coherence": 0.4, "graph_density": 0.031} for name in ("minilm", "mpnet")]
audit_table(rows).findings""",
)
REVERSED = Check(
    code="EQ415",
    title="a part of a score that rewards the opposite of its name",
    severity=Severity.ISSUE,
    applies_to=Compared,
    function=accusing(reversed_parts),
    why="""\
The standard deviation of norms over their mean is the coefficient of variation. It is 0 when all norms are
equal and grows with their spread: a measure of inconsistency. Added to a score under the name of consistency,
it takes points from models whose norms are equal, such as every model that normalises its vectors, and gives
them to those whose norms vary most.""",
    remedy="subtract it, or use 1 minus it; better report the mean cosine and the effective rank instead",
    example="""\
from equipoise.checks.audit import audit_table
audit_table({"norm_mean": 1.0, "norm_std": 0.0, "norm_consistency": 0.0}).findings""",
)
SUMS = Check(
    code="EQ416",
    title="a score that is not what its formula gives",
    severity=Severity.ISSUE,
    applies_to=Compared,
    function=accusing(unlike_its_parts),
    why="""\
A file that gives a score, its parts and its formula can be recomputed. The formula is one that the file
states (score = 0.4 * a + 0.6 * b), or the published one of the concept scores: the knowledge graph score is
0.4 times coherence plus 0.3 times the density, capped at 0.5, plus 0.3 times the clustering coefficient, and
the composite is the mean of the five. Where the result is another number, the score was made with other
weights or from other parts, and cannot be compared with one made as declared.""",
    remedy="compute the score again with the declared weights, or state the weights that were used",
    example="""\
from equipoise.checks.audit import audit_table
parts = {"relation_coherence": 0.40, "graph_density": 0.03, "clustering_coefficient": 0.12}
audit_table({"knowledge_graph_score": 0.55, **parts}).findings""",
)
COLLAPSE = Check(
    code="EQ418",
    title="a system whose vectors all point the same way",
    severity=Severity.ISSUE,
    applies_to=Compared,
    function=accusing(collapsed),
    why="""\
Where the mean cosine over all pairs of vectors is near 1, the space has collapsed into a narrow cone, and
the model hardly tells one text from another. Related pairs then have a high similarity, as all pairs have.
Scores that add up similarities rank such a model first, though it retrieves next to nothing.""",
    remedy="compare related pairs with random ones; report correlation, effective rank or retrieval scores",
    example="""\
from equipoise.checks.audit import audit_table
audit_table({"avg_pairwise_similarity": 0.959, "embedding_variance": 0.89, "norm_mean": 286.7}).findings""",
)
LAWS = (
    (COLLAPSE, collapsed),
    (CONSTANT, parts_of_the_data),
    (REVERSED, reversed_parts),
    (SUMS, unlike_its_parts),
)
