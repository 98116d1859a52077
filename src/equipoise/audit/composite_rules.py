"""Scores that are made of parts: recomputed, and searched for parts that mislead.

A composite adds numbers up that need not mean what their names say: statistics of the test data that no
model changes, a spread that is called consistency, cosines that are high because all vectors point one way.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from equipoise.audit.assumptions import Assumption
from equipoise.audit.reading import key_of
from equipoise.audit.table import (
    SLACK,
    PublishedMetric,
    PublishedRow,
    PublishedValue,
    ValueRange,
    Violation,
    as_check,
    format_digits,
)
from equipoise.checks.base import Check, pluralize
from equipoise.domains.concepts.checks import COLLAPSED_MEAN_COSINE
from equipoise.io.published.numbers import PrintedNumber, parse_printed
from equipoise.types import Severity

if TYPE_CHECKING:
    from equipoise.io.published.tables import System

# Figures that are one and the same number under two names.

ONE, BINARY = (Assumption.ONE_RELEVANT,), (Assumption.BINARY,)


def unequal_aliases(row: PublishedRow) -> Iterator[Violation]:
    """EQ401: two figures that must be the same number, and are not."""
    yield from _one_metric_twice(row)
    yield from _at_the_first_rank(row)
    yield from _map_at_one(row)
    yield from _with_one_relevant(row)


def _one_metric_twice(row: PublishedRow) -> Iterator[Violation]:
    seen: dict[PublishedMetric, PublishedValue] = {}
    for each in row.figures:
        first = seen.setdefault(each.measure, each)
        if first is not each:
            yield from _differ(first, each, f"{first.label} and {each.label} both name {each.measure}")


def _at_the_first_rank(row: PublishedRow) -> Iterator[Violation]:
    hits = [row.one("HR", 1), row.one("P", 1), row.one("MRR", 1), row.one("R", 1, capped="True")]
    known = [each for each in hits if each is not None]
    why = "of one retrieved item either it is relevant, and all of them are 1, or it is not, and all are 0"
    for other in known[1:]:
        yield from _differ(known[0], other, why)
    if known:
        for gain in (row.one("nDCG", 1), row.one("nDCG", 1, gain="exp")):
            if gain is not None:
                grades = "without grades the gain of the first item over the ideal one is 1 or 0"
                yield from _differ(known[0], gain, grades, BINARY, quiet=True)


def _map_at_one(row: PublishedRow) -> Iterator[Violation]:
    """AP@1 is P@1 over min(1, R) relevant items, or R@1 over all of them: libraries differ."""
    hits, recall = row.one("HR", 1) or row.one("P", 1), row.one("R", 1)
    average, by_all = row.one("MAP", 1), row.one("MAP", 1, norm="R")
    if by_all and recall:
        yield from _differ(by_all, recall, "over all R relevant items AP@1 is what R@1 is")
    if average and hits and recall and average.span.apart(hits.span) and average.span.apart(recall.span):
        yield Violation(
            (average, hits, recall),
            f"{average} is neither {hits} nor {recall}",
            (
                "AP@1 is 0 unless the first item is relevant",
                "if it is, AP@1 is 1 where the sum is divided by min(k, R), which makes it P@1 = HR@1",
                "and 1/R where it is divided by R, which makes it R@1; no library has a third way",
                *(each.read for each in (average, hits, recall)),
            ),
        )


def _with_one_relevant(row: PublishedRow) -> Iterator[Violation]:
    for hits in row.series("HR"):
        k = int(hits.k)
        for recall in (row.one("R", k), row.one("R", k, capped="True")):
            if recall:
                yield from _differ(recall, hits, "the one relevant item is found or not", ONE, quiet=True)
        precision = row.one("P", k)
        if precision and k > 1 and (precision.span * k).apart(hits.span):
            yield Violation(
                (precision, hits),
                f"{precision} is not {hits} divided by {k}",
                (
                    f"of the {k} items one at most is relevant, so precision is HR@{k} / {k}",
                    precision.read,
                    hits.read,
                    f"HR@{k} / {k} is {hits.span * (1 / k)}",
                ),
                ONE,
                quiet=True,
            )
    for average in row.series("MAP", cut=False):
        reciprocal = row.one("MRR", average.measure.k)
        if reciprocal:
            why = "with one relevant item average precision is one over its rank"
            yield from _differ(average, reciprocal, why, ONE, quiet=True)


def _differ(
    first: PublishedValue,
    second: PublishedValue,
    why: str,
    needs: tuple[Assumption, ...] = (),
    *,
    quiet: bool = False,
) -> Iterator[Violation]:
    if first.span.apart(second.span):
        yield Violation(
            (first, second),
            f"{first} and {second} must be equal",
            (why, first.read, second.read, _gap(first.span, second.span)),
            needs,
            quiet,
        )


def _gap(first: ValueRange, second: ValueRange) -> str:
    high, low = (first, second) if first.low > second.high else (second, first)
    return f"no value is in both: the one is at least {ValueRange(high.low, high.low)}, the other at most " + (
        f"{ValueRange(low.high, low.high)}"
    )


CHECK = Check(
    code="EQ401",
    title="figures that must be equal, and are not",
    severity=Severity.ISSUE,
    applies_to=PublishedRow,
    function=as_check(unequal_aliases),
    why="""\
At the first rank precision, hit rate and reciprocal rank are the same number: the item is relevant or it is
not. With one relevant item a unit recall is the hit rate at every cutoff, precision its k-th part, and MAP
is MRR. Without grades nDCG@1 is P@1 as well. Where two such figures differ, at least one of them is not what
its name says. The comparison allows for all values that would be printed alike.""",
    hint="compute both from the same ranks; one of them is not what its name says",
    example="""\
from equipoise.audit.audit import audit_table
audit_table({"HR@1": "0.3333", "P@1": "1.0000"}).findings""",
)


# Formulas that a file states for its scores, as ``score = a * 0.4 + min(b, 1) * 0.6``, on intervals.

LONGEST = 500
_STATED = re.compile(r"^\s*(?P<name>[A-Za-z]\w*)\s*=\s*(?P<expression>[^=].*?)\s*$")
_SIGNS = str.maketrans({"×": "*", "·": "*", "\u2212": "-"})
_OPERATORS = (ast.Add, ast.Sub, ast.Mult, ast.Div)


@dataclass(frozen=True)
class Formula:
    """A score as an expression of other numbers: ``+ - * /``, ``min`` and ``max``."""

    name: str
    expression: str

    @classmethod
    def parse(cls, line: str) -> Formula | None:
        """The formula of a line; None where it states none.

        >>> sorted(Formula.parse("score = (a × 0.4) + (1 - b) × 0.6").names)
        ['a', 'b']
        >>> Formula.parse("n = 12")
        """
        match = _STATED.match(line[:LONGEST].translate(_SIGNS))
        if match is None:
            return None
        found = cls(match["name"].casefold(), match["expression"])
        return found if found._tree is not None and len(found.names) > 1 else None

    @cached_property
    def _tree(self) -> ast.expr | None:
        try:
            tree = ast.parse(self.expression.casefold().translate(_SIGNS), mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None
        return tree if _is_arithmetic(tree) else None

    @cached_property
    def names(self) -> frozenset[str]:
        """The numbers that it is made of."""
        tree = self._tree
        calls = {id(each.func) for each in ast.walk(tree) if isinstance(each, ast.Call)} if tree else set()
        return (
            frozenset(each.id for each in ast.walk(tree) if isinstance(each, ast.Name) and id(each) not in calls)
            if tree
            else frozenset()
        )

    def value(self, numbers: Mapping[str, ValueRange]) -> ValueRange | None:
        """The interval of the score; None where it divides by an interval that holds 0."""
        assert self._tree is not None
        return _evaluated(self._tree, numbers)


def _is_arithmetic(node: ast.expr) -> bool:
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, _OPERATORS) and _is_arithmetic(node.left) and _is_arithmetic(node.right)
    if isinstance(node, ast.UnaryOp):
        return isinstance(node.op, ast.USub) and _is_arithmetic(node.operand)
    if isinstance(node, ast.Call):
        function = isinstance(node.func, ast.Name) and node.func.id in ("min", "max")
        return function and bool(node.args) and not node.keywords and all(map(_is_arithmetic, node.args))
    if isinstance(node, ast.Constant):
        return isinstance(node.value, int | float) and not isinstance(node.value, bool)
    return isinstance(node, ast.Name)


def _evaluated(node: ast.expr, numbers: Mapping[str, ValueRange]) -> ValueRange | None:
    if isinstance(node, ast.Constant):
        value = float(node.value)  # type: ignore[arg-type]
        return ValueRange(value, value)
    if isinstance(node, ast.Name):
        return numbers[node.id]
    if isinstance(node, ast.UnaryOp):
        inner = _evaluated(node.operand, numbers)
        return None if inner is None else ValueRange(-inner.high, -inner.low)
    if isinstance(node, ast.Call):
        parts = [_evaluated(each, numbers) for each in node.args]
        pick: Callable[..., float] = min if node.func.id == "min" else max  # type: ignore[attr-defined]
        known = [each for each in parts if each is not None]
        if len(known) < len(parts):
            return None
        return ValueRange(pick(each.low for each in known), pick(each.high for each in known))
    assert isinstance(node, ast.BinOp)
    left, right = _evaluated(node.left, numbers), _evaluated(node.right, numbers)
    return None if left is None or right is None else _combined(node.op, left, right)


def _combined(operator: ast.operator, left: ValueRange, right: ValueRange) -> ValueRange | None:
    if isinstance(operator, ast.Add):
        return left + right
    if isinstance(operator, ast.Sub):
        return ValueRange(left.low - right.high, left.high - right.low)
    if isinstance(operator, ast.Div):
        if right.low <= 0 <= right.high:
            return None
        right = ValueRange(1 / right.high, 1 / right.low)
    ends = [one * other for one in (left.low, left.high) for other in (right.low, right.high)]
    return ValueRange(min(ends), max(ends))


# Systems with all of their numbers, and the formulas by which their scores are made.

COMPOSITE = "composite_score"
FORMULAS: tuple[Formula, ...] = tuple(
    Formula(name, expression)
    for name, expression in (
        ("semantic_similarity_score", "accuracy * 0.4 + correlation * 0.4 + (1 - mae) * 0.2"),
        (
            "clustering_score",
            "silhouette_score * 0.5 + cluster_coherence * 0.3 + cluster_separation * 0.2",
        ),
        ("entity_recognition_score", "entity_clustering_silhouette * 0.6 + avg_entity_text_similarity * 0.4"),
        (
            "knowledge_graph_score",
            "relation_coherence * 0.4 + min(graph_density, 0.5) * 0.3 + clustering_coefficient * 0.3",
        ),
        (
            "embedding_quality_score",
            "diversity_score * 0.4 + min(embedding_variance, 1) * 0.3 + min(norm_consistency, 1) * 0.3",
        ),
        (
            "embedding_quality_score",
            "(1 - avg_pairwise_similarity) * 0.4 + min(embedding_variance, 1) * 0.3 "
            "+ min(norm_std / norm_mean, 1) * 0.3",
        ),
        (
            COMPOSITE,
            "(semantic_similarity_score + clustering_score + entity_recognition_score "
            "+ knowledge_graph_score + embedding_quality_score) / 5",
        ),
    )
)
"""The published formulas of concept scores; a name may be made of one set of parts or of another."""
_LABELS = {"accuracy": "acc", "correlation": "pearson", "silhouette_score": "silhouette"}
"""Other labels of parts."""


@dataclass(frozen=True)
class Scored:
    """All numbers of one system, found by the end of their path and the words on it."""

    name: str
    numbers: Mapping[tuple[str, ...], PrintedNumber]
    formulas: tuple[Formula, ...] = FORMULAS
    file: str = ""

    @classmethod
    def of(cls, system: System, file: str, stated: Sequence[Formula]) -> Scored:
        """The numbers that can be read; a formula that the file states replaces the published one."""
        numbers = {}
        for path, text in system.numbers.items():
            number = parse_printed(text) if text else None
            if number is not None:
                numbers[tuple(map(key_of, path))] = number
        names = {each.name for each in stated}
        formulas = (*stated, *(each for each in FORMULAS if each.name not in names))
        return cls(system.name or file, numbers, formulas, file)

    @cached_property
    def _by_name(self) -> dict[str, list[tuple[str, ...]]]:
        found: dict[str, list[tuple[str, ...]]] = {}
        for path in self.numbers:
            joined = ["_".join(path[at:]) for at in range(len(path))]
            for name in dict.fromkeys([*joined, *(each.removesuffix("_score") for each in joined)]):
                found.setdefault(name, []).append(path)
        return found

    def find(self, name: str, scope: str = "") -> PrintedNumber | None:
        """The number of a name; of several, the one inside ``scope``, and none where that is open."""
        paths = self._by_name.get(name) or self._by_name.get(_LABELS.get(name, ""), [])
        inside = [path for path in paths if scope in path[:-1]]
        shortest = [path for path in paths if len(path) == min(map(len, paths))]
        for chosen in (paths, inside, shortest):
            if len({self.numbers[path] for path in chosen}) == 1:
                return self.numbers[chosen[0]]
        return None

    def spans(self, formula: Formula) -> dict[str, ValueRange] | None:
        """The parts of a formula; None where one of them is not there."""
        scope = formula.name.removesuffix("_score")
        found = {name: self.find(name, scope) for name in formula.names}
        return {name: span_of(each) for name, each in found.items() if each} if all(found.values()) else None


@dataclass(frozen=True)
class Compared:
    """The systems of one source, which were measured on the same data."""

    name: str
    systems: tuple[Scored, ...] = ()


def span_of(number: PrintedNumber) -> ValueRange:
    """Where the value behind a printed number is; percent as a fraction."""
    scale = 0.01 if number.percent else 1.0
    return ValueRange(number.low * scale, number.high * scale)


DATA_COMPONENTS = ("graph_density", "clustering_coefficient")
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
COMPONENTS = frozenset(name for formula in FORMULAS for name in formula.names)
COMPOSITE_NAMES = frozenset((*DATA_COMPONENTS, *(each.name for each in FORMULAS), "norm_consistency", *SIMILARITIES))


def collapsed(compared: Compared) -> Iterator[Violation]:
    """EQ418: a system whose vectors all point nearly the same way."""
    for system in compared.systems:
        seen = next((pair for name in SIMILARITIES if (pair := _similarity(system, name))), None)
        if seen is None or seen[1].low < COLLAPSED_MEAN_COSINE:
            continue
        label, span = seen
        rank = _rank(compared, system)
        yield Violation(
            (),
            f"{label} is {span}: all vectors point nearly the same way{rank}",
            (
                f"1 is the similarity of equal directions; from {format_digits(COLLAPSED_MEAN_COSINE)} on "
                f"a space has collapsed",
                "in a collapsed space every pair looks related, so coherence and similarity are high for all",
                "a score that adds up such similarities rewards the collapse",
            ),
            subject=system.name,
        )


def _similarity(system: Scored, name: str) -> tuple[str, ValueRange] | None:
    number = system.find(name)
    if number is None:
        return None
    if name in _SIMILAR_ELSEWHERE and not any(system.find(each) for each in _OF_VECTORS):
        return None
    return name, span_of(number)


def _rank(compared: Compared, system: Scored) -> str:
    scores = {each.name: number.value for each in compared.systems if (number := each.find(COMPOSITE))}
    if len(scores) > 1 and scores.get(system.name) == max(scores.values()):
        return f", and it has the highest {COMPOSITE} of {pluralize(len(scores), 'system')}"
    return ""


def data_only_components(compared: Compared) -> Iterator[Violation]:
    """EQ414: a part of a score that measures the test data and not the system."""
    for name in DATA_COMPONENTS:
        files: dict[str, dict[str, PrintedNumber]] = {}
        for system in compared.systems:
            number = system.find(name)
            if number is not None:
                files.setdefault(system.file, {}).setdefault(system.name, number)
        # Files with one system each may be of one evaluation, or of evaluations on other data.
        single = {system: number for seen in files.values() if len(seen) == 1 for system, number in seen.items()}
        for seen in files.values():
            if len(seen) > 1:
                yield from _constant(name, seen)
        if len(single) > 1 and _alike(single):
            yield from _constant(name, single)


def _alike(seen: Mapping[str, PrintedNumber]) -> bool:
    first, *others = map(span_of, seen.values())
    return not any(first.apart(each) for each in others)


def _constant(name: str, seen: Mapping[str, PrintedNumber]) -> Iterator[Violation]:
    why = "the graph is made of the relations of the test data, before any model is asked"
    steps = (why, *(f"{system}: {name} {number.text}" for system, number in list(seen.items())[:5]))
    sentence = f"{name} differs between systems, and cannot if they were measured on the same graph"
    if _alike(seen):
        sentence = (
            f"{name} is {next(iter(seen.values())).text} for all of {pluralize(len(seen), 'system')}: it is a "
            "constant of the test data and says nothing of a system"
        )
    yield Violation((), sentence, steps)


def reversed_components(compared: Compared) -> Iterator[Violation]:
    """EQ415: a consistency of norms that is their standard deviation over their mean."""
    for system in compared.systems:
        claimed, score = system.find("norm_consistency"), system.find("embedding_quality_score")
        spread, mean = system.find("norm_std"), system.find("norm_mean")
        ratio = None
        if spread and mean and mean.low > 0:
            ratio = ValueRange(max(spread.low, 0.0) / mean.high, spread.high / mean.low)
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


def inconsistent_weighted_sum(compared: Compared) -> Iterator[Violation]:
    """EQ416: a score that is not what its formula gives."""
    for system in compared.systems:
        scores: dict[str, list[tuple[Formula, ValueRange, Mapping[str, ValueRange]]]] = {}
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


def _apart(stated: ValueRange, value: ValueRange) -> bool:
    return stated.apart(ValueRange(value.low - SLACK, value.high + SLACK))


CONSTANT = Check(
    code="EQ414",
    title="a part of a score that does not depend on the system",
    severity=Severity.ISSUE,
    applies_to=Compared,
    function=as_check(data_only_components),
    why="""\
The density and the clustering coefficient of a graph that is made of the test data are properties of that
data. They are the same for every model, add the same amount to every score, and make bad models look half
good. If they differ between models, the models were not measured on the same data.""",
    hint="leave the part out of the score, or report it once, with the data",
    example="""\
from equipoise.audit.audit import audit_table
rows = [{"model": name, "relation_coherence": 0.4, "graph_density": 0.031} for name in ("minilm", "mpnet")]
audit_table(rows).findings""",
)
REVERSED = Check(
    code="EQ415",
    title="a part of a score that rewards the opposite of its name",
    severity=Severity.ISSUE,
    applies_to=Compared,
    function=as_check(reversed_components),
    why="""\
The standard deviation of norms over their mean is the coefficient of variation. It is 0 when all norms are
equal and grows with their spread: a measure of inconsistency. Added to a score under the name of consistency,
it takes points from models whose norms are equal, such as every model that normalises its vectors, and gives
them to those whose norms vary most.""",
    hint="subtract it, or use 1 minus it; better report the mean cosine and the effective rank instead",
    example="""\
from equipoise.audit.audit import audit_table
audit_table({"norm_mean": 1.0, "norm_std": 0.0, "norm_consistency": 0.0}).findings""",
)
SUMS = Check(
    code="EQ416",
    title="a score that is not what its formula gives",
    severity=Severity.ISSUE,
    applies_to=Compared,
    function=as_check(inconsistent_weighted_sum),
    why="""\
A file that gives a score, its parts and its formula can be recomputed. The formula is one that the file
states (score = 0.4 * a + 0.6 * b), or the published one of the concept scores: the knowledge graph score is
0.4 times coherence plus 0.3 times the density, capped at 0.5, plus 0.3 times the clustering coefficient, and
the composite is the mean of the five. Where the result is another number, the score was made with other
weights or from other parts, and cannot be compared with one made as declared.""",
    hint="compute the score again with the declared weights, or state the weights that were used",
    example="""\
from equipoise.audit.audit import audit_table
parts = {"relation_coherence": 0.40, "graph_density": 0.03, "clustering_coefficient": 0.12}
audit_table({"knowledge_graph_score": 0.55, **parts}).findings""",
)
COLLAPSE = Check(
    code="EQ418",
    title="a system whose vectors all point the same way",
    severity=Severity.ISSUE,
    applies_to=Compared,
    function=as_check(collapsed),
    why="""\
Where the mean cosine over all pairs of vectors is near 1, the space has collapsed into a narrow cone, and
the model hardly tells one text from another. Related pairs then have a high similarity, as all pairs have.
Scores that add up similarities rank such a model first, though it retrieves next to nothing.""",
    hint="compare related pairs with random ones; report correlation, effective rank or retrieval scores",
    example="""\
from equipoise.audit.audit import audit_table
audit_table({"avg_pairwise_similarity": 0.959, "embedding_variance": 0.89, "norm_mean": 286.7}).findings""",
)
LAWS = (
    (COLLAPSE, collapsed),
    (CONSTANT, data_only_components),
    (REVERSED, reversed_components),
    (SUMS, inconsistent_weighted_sum),
)
