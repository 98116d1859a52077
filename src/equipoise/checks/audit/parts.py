"""Scores that are blended from parts: parts that do not depend on the system, or reward the opposite."""

from __future__ import annotations

import re
from collections.abc import Iterator

from equipoise.checks.audit.row import Row, Table
from equipoise.checks.audit.span import SLACK, Span
from equipoise.checks.audit.violation import Violation, accusing
from equipoise.checks.base import Check, counted
from equipoise.data.published.printed import Printed
from equipoise.types import Severity

OF_THE_DATA = ("graph_density", "clustering_coefficient")
"""Properties of the graph of the test data; no model changes them."""
BLENDS: dict[str, tuple[tuple[float, str], ...]] = {
    "semantic_similarity_score": ((0.4, "accuracy"), (0.4, "correlation"), (0.2, "1-mae")),
    "clustering_score": ((0.5, "silhouette_score"), (0.3, "cluster_coherence"), (0.2, "cluster_separation")),
    "entity_recognition_score": (
        (0.6, "entity_clustering_silhouette"),
        (0.4, "avg_entity_text_similarity"),
    ),
    "knowledge_graph_score": (
        (0.4, "relation_coherence"),
        (0.3, "min(graph_density,0.5)"),
        (0.3, "clustering_coefficient"),
    ),
    "embedding_quality_score": (
        (0.4, "diversity_score"),
        (0.3, "min(embedding_variance,1)"),
        (0.3, "min(norm_consistency,1)"),
    ),
    "composite_score": tuple(
        (0.2, f"{name}_score")
        for name in (
            "semantic_similarity",
            "clustering",
            "entity_recognition",
            "knowledge_graph",
            "embedding_quality",
        )
    ),
}
"""The blends of concept scores, each a weighted sum of its parts."""
PARTS = frozenset(
    re.sub(r"^min\(|,.*\)$|^1-", "", part) for blend in BLENDS.values() for _, part in blend
) | {"norm_mean", "norm_std"}
"""The parts of the blends, and what tells how one of them was made."""
NAMES = frozenset(OF_THE_DATA) | frozenset(BLENDS) | {"norm_consistency"}


def parts_of_the_data(table: Table) -> Iterator[Violation]:
    """EQ414: a part of a score that measures the test data and not the system."""
    for name in OF_THE_DATA:
        rows = [row for row in table.rows if name in row.others and not row.own]
        spans = [_span(row.others[name]) for row in rows]
        if len(rows) < 2:
            continue
        steps = tuple(f"{row.name or 'a row'}: {name} {row.others[name].text}" for row in rows[:5])
        if all(not spans[0].apart(each) for each in spans[1:]):
            yield Violation(
                (),
                f"{name} is {rows[0].others[name].text} for all of {counted(len(rows), 'system')}: it is a "
                "constant of the test data and says nothing of a system",
                ("the graph is made of the relations of the test data, before any model is asked", *steps),
            )
        else:
            yield Violation(
                (),
                f"{name} differs between systems, and cannot if they were measured on the same graph",
                ("the graph is made of the relations of the test data, before any model is asked", *steps),
            )


def reversed_parts(row: Row) -> Iterator[Violation]:
    """EQ415: a consistency of norms that is their standard deviation over their mean."""
    if row.own or "norm_consistency" not in row.others:
        return
    claimed = row.others["norm_consistency"]
    spread, mean = row.others.get("norm_std"), row.others.get("norm_mean")
    if spread and mean and mean.low > 0:
        ratio = Span(max(spread.low, 0.0) / mean.high, spread.high / mean.low)
        if ratio.apart(_span(claimed)):
            return
        shown: tuple[str, ...] = (
            f"norm_std {spread.text} over norm_mean {mean.text} is {ratio}",
            f"norm_consistency {claimed.text} is that ratio",
        )
    elif "embedding_quality_score" in row.others:
        shown = (f"norm_consistency {claimed.text} is counted for the score, as the ratio of std to mean",)
    else:
        return
    yield Violation(
        (),
        f"norm_consistency {claimed.text} rewards inconsistency: it is 0 when all norms are equal",
        (
            *shown,
            "equal norms have the standard deviation 0 and get 0; the more they differ, the more it grows",
        ),
    )


def unlike_its_parts(row: Row) -> Iterator[Violation]:
    """EQ416: a blended score that is not the weighted sum of its parts."""
    for name, weights in BLENDS.items():
        parts = [(weight, part, _part(row, part)) for weight, part in weights]
        if name not in row.others or any(span is None for _, _, span in parts):
            continue
        total = Span(0.0, 0.0)
        for weight, _, span in parts:
            total += (span or total) * weight
        score = _span(row.others[name])
        if score.apart(Span(total.low - SLACK, total.high + SLACK)):
            yield Violation(
                (),
                f"{name} {row.others[name].text} is not the sum of its parts, {total}",
                (
                    f"{name} = {' + '.join(f'{weight} {part}' for weight, part, _ in parts)}",
                    *(f"{part} is {span}" for _, part, span in parts),
                    f"together that is {total}",
                ),
            )


def _part(row: Row, part: str) -> Span | None:
    """A part of a blend, capped or turned round as the blend has it."""
    if part == "1-mae":
        mae = _known(row, "mae", "MAE")
        return None if mae is None else Span(1.0 - mae.high, 1.0 - mae.low)
    if part.startswith("min("):
        name, cap = part.removeprefix("min(").removesuffix(")").split(",")
        whole = _known(row, name)
        return None if whole is None else Span(min(whole.low, float(cap)), min(whole.high, float(cap)))
    symbols = {"accuracy": "Acc", "correlation": "Pearson", "silhouette_score": "Silhouette"}
    return _known(row, part, symbols.get(part, {"relation_coherence": "Coherence"}.get(part, "")))


def _known(row: Row, label: str, symbol: str = "") -> Span | None:
    if label in row.others:
        return _span(row.others[label])
    figure = row.one(symbol) if symbol else None
    return figure.span if figure else None


def _span(number: Printed) -> Span:
    scale = 0.01 if number.percent else 1.0
    return Span(number.low * scale, number.high * scale)


CONSTANT = Check(
    code="EQ414",
    title="a part of a score that does not depend on the system",
    severity=Severity.ISSUE,
    applies_to=Table,
    function=accusing(parts_of_the_data),
    why="""\
The density and the clustering coefficient of a graph that is made of the test data are properties of that
data. They are the same for every model, add the same amount to every score, and make bad models look half
good. If they differ between models, the models were not measured on the same data.""",
    remedy="leave the part out of the score, or report it once, beside the data",
    example="""\
from equipoise.checks.audit import audit_table
rows = [{"model": name, "relation_coherence": 0.4, "graph_density": 0.031} for name in ("minilm", "mpnet")]
audit_table(rows).findings""",
)
REVERSED = Check(
    code="EQ415",
    title="a part of a score that rewards the opposite of its name",
    severity=Severity.ISSUE,
    applies_to=Row,
    function=accusing(reversed_parts),
    why="""\
The standard deviation of norms over their mean is the coefficient of variation. It is 0 when all norms are
equal and grows as they scatter: a measure of inconsistency. Added to a score under the name of consistency,
it takes points from models whose norms are all alike, such as every model that normalises its vectors, and
gives them to those whose norms run wild.""",
    remedy="subtract it, or use 1 minus it; better report the mean cosine and the effective rank instead",
    example="""\
from equipoise.checks.audit import audit_table
audit_table({"norm_mean": 1.0, "norm_std": 0.0, "norm_consistency": 0.0}).findings""",
)
SUMS = Check(
    code="EQ416",
    title="a blended score that is not the sum of its parts",
    severity=Severity.ISSUE,
    applies_to=Row,
    function=accusing(unlike_its_parts),
    why="""\
The concept scores are declared as weighted sums: the knowledge graph score is 0.4 times coherence plus 0.3
times the density, capped at 0.5, plus 0.3 times the clustering coefficient, and the composite is the mean of
the five. A table that gives both a score and its parts can be added up. Where the sum is another number, the
score was made with other weights or from other parts, and cannot be compared with one made as declared.""",
    remedy="add the parts up again with the declared weights, or state the weights that were used",
    example="""\
from equipoise.checks.audit import audit_table
parts = {"relation_coherence": 0.40, "graph_density": 0.03, "clustering_coefficient": 0.12}
audit_table({"knowledge_graph_score": 0.55, **parts}).findings""",
)
