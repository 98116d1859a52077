"""Rules on composite scores: weighted sums of components.

A composite score may contain components that do not measure what their names say: statistics of the test
data that no model changes, a spread called consistency, or cosines that are high in a collapsed space.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from equipoise.audit.metric_labels import NAMES
from equipoise.audit.table import SLACK, ValueRange, Violation, format_digits, label_key
from equipoise.checks.base import pluralize
from equipoise.domains.concepts.checks import COLLAPSED_MEAN_COSINE
from equipoise.io.published.numbers import PrintedNumber, parse_printed

if TYPE_CHECKING:
    from equipoise.io.published.tables import System


# Formulas of composite scores, such as ``score = a * 0.4 + min(b, 1) * 0.6``, evaluated on value ranges.

MAX_LINE_LENGTH = 500
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
        """The formula of a line; None if it states none."""
        match = _STATED.match(line[:MAX_LINE_LENGTH].translate(_SIGNS))
        if match is None:
            return None
        formula = cls(match["name"].casefold(), match["expression"])
        return formula if formula._tree is not None and len(formula.names) > 1 else None

    @cached_property
    def _tree(self) -> ast.expr | None:
        try:
            tree = ast.parse(self.expression.casefold().translate(_SIGNS), mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None
        return tree if _is_arithmetic(tree) else None

    @cached_property
    def names(self) -> frozenset[str]:
        """The names of its components."""
        nodes = list(ast.walk(self._tree)) if self._tree else []
        calls = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
        return frozenset(node.id for node in nodes if isinstance(node, ast.Name) and id(node) not in calls)

    def value(self, numbers: Mapping[str, ValueRange]) -> ValueRange | None:
        """The value range of the score; None if it divides by a range that contains 0."""
        assert self._tree is not None
        return _evaluate(self._tree, numbers)


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


def _evaluate(node: ast.expr, numbers: Mapping[str, ValueRange]) -> ValueRange | None:
    if isinstance(node, ast.Constant):
        value = float(node.value)  # type: ignore[arg-type]
        return ValueRange(value, value)
    if isinstance(node, ast.Name):
        return numbers[node.id]
    if isinstance(node, ast.UnaryOp):
        inner = _evaluate(node.operand, numbers)
        return None if inner is None else ValueRange(-inner.high, -inner.low)
    if isinstance(node, ast.Call):
        parts = [_evaluate(arg, numbers) for arg in node.args]
        function: Callable[..., float] = min if node.func.id == "min" else max  # type: ignore[attr-defined]
        ranges = [part for part in parts if part is not None]
        if len(ranges) < len(parts):
            return None
        return ValueRange(function(part.low for part in ranges), function(part.high for part in ranges))
    assert isinstance(node, ast.BinOp)
    left, right = _evaluate(node.left, numbers), _evaluate(node.right, numbers)
    return None if left is None or right is None else _combine(node.op, left, right)


def _combine(operator: ast.operator, left: ValueRange, right: ValueRange) -> ValueRange | None:
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


COMPOSITE = "composite_score"
FORMULAS = tuple(Formula(**content) for content in NAMES["composite_scores"])
_LABELS = {"accuracy": "acc", "correlation": "pearson", "silhouette_score": "silhouette"}
"""Other labels of components."""


@dataclass(frozen=True)
class SystemNumbers:
    """All numbers of one system, by the end of their path and the words on it."""

    name: str
    numbers: Mapping[tuple[str, ...], PrintedNumber]
    formulas: tuple[Formula, ...] = FORMULAS
    file: str = ""

    @classmethod
    def of(cls, system: System, file: str, stated: Sequence[Formula]) -> SystemNumbers:
        """The readable numbers. A formula that the file states replaces the published one."""
        numbers = {}
        for path, text in system.numbers.items():
            number = parse_printed(text) if text else None
            if number is not None:
                numbers[tuple(map(label_key, path))] = number
        names = {formula.name for formula in stated}
        formulas = (*stated, *(formula for formula in FORMULAS if formula.name not in names))
        return cls(system.name or file, numbers, formulas, file)

    @cached_property
    def _by_name(self) -> dict[str, list[tuple[str, ...]]]:
        paths_by_name: dict[str, list[tuple[str, ...]]] = {}
        for path in self.numbers:
            joined = ["_".join(path[at:]) for at in range(len(path))]
            for name in dict.fromkeys([*joined, *(name.removesuffix("_score") for name in joined)]):
                paths_by_name.setdefault(name, []).append(path)
        return paths_by_name

    def find(self, name: str, scope: str = "") -> PrintedNumber | None:
        """The number of a name; of several, the one inside ``scope``, or None if that is ambiguous."""
        paths = self._by_name.get(name) or self._by_name.get(_LABELS.get(name, ""), [])
        inside = [path for path in paths if scope in path[:-1]]
        shortest = [path for path in paths if len(path) == min(map(len, paths))]
        for chosen in (paths, inside, shortest):
            if len({self.numbers[path] for path in chosen}) == 1:
                return self.numbers[chosen[0]]
        return None

    def spans(self, formula: Formula) -> dict[str, ValueRange] | None:
        """The components of a formula; None if one is missing."""
        scope = formula.name.removesuffix("_score")
        numbers = {name: self.find(name, scope) for name in formula.names}
        return {name: range_of(number) for name, number in numbers.items() if number} if all(numbers.values()) else None


@dataclass(frozen=True)
class ScoredSystems:
    """The systems of one source, measured on the same data."""

    name: str
    systems: tuple[SystemNumbers, ...] = ()


def range_of(number: PrintedNumber) -> ValueRange:
    """The value range of a printed number; percent as a fraction."""
    scale = 0.01 if number.percent else 1.0
    return ValueRange(number.low * scale, number.high * scale)


DATA_COMPONENTS = ("graph_density", "clustering_coefficient")
"""Properties of the graph of the test data, equal for all models."""
_COSINES = ("pairwise_similarity", "pairwise_cosine_similarity", "pairwise_cosine", "cosine_similarity", "cosine")
SIMILARITIES = tuple(f"{mean}_{part}" for mean in ("avg", "average", "mean") for part in _COSINES)
"""Names of the mean cosine over all pairs of vectors."""
_SIMILAR_ELSEWHERE = ("avg_pairwise_similarity", "average_pairwise_similarity", "mean_pairwise_similarity")
"""Names that may be of texts; other numbers of vectors in the same system decide."""
_OF_VECTORS = ("embedding_variance", "norm_mean", "norm_std", "embedding_dimension", "embedding_quality_score")
COMPONENTS = frozenset(name for formula in FORMULAS for name in formula.names)
COMPOSITE_NAMES = frozenset(
    (*DATA_COMPONENTS, *(formula.name for formula in FORMULAS), "norm_consistency", *SIMILARITIES)
)


def collapsed_space(compared: ScoredSystems) -> Iterator[Violation]:
    """EQ418: a system whose vectors all point in nearly the same direction."""
    for system in compared.systems:
        similarity = next((pair for name in SIMILARITIES if (pair := _similarity(system, name))), None)
        if similarity is None or similarity[1].low < COLLAPSED_MEAN_COSINE:
            continue
        label, value_range = similarity
        rank = _rank(compared, system)
        yield Violation(
            (),
            f"{label} is {value_range}: all vectors point in nearly the same direction{rank}",
            (
                f"1 is the similarity of equal directions; from {format_digits(COLLAPSED_MEAN_COSINE)} on "
                f"a space has collapsed",
                "in a collapsed space every pair is similar, so coherence and similarity are high for all",
                "a score that adds up such similarities rewards the collapse",
            ),
            subject=system.name,
        )


def _similarity(system: SystemNumbers, name: str) -> tuple[str, ValueRange] | None:
    number = system.find(name)
    if number is None:
        return None
    if name in _SIMILAR_ELSEWHERE and not any(system.find(of_vector) for of_vector in _OF_VECTORS):
        return None
    return name, range_of(number)


def _rank(compared: ScoredSystems, system: SystemNumbers) -> str:
    scores = {system.name: number.value for system in compared.systems if (number := system.find(COMPOSITE))}
    if len(scores) > 1 and scores.get(system.name) == max(scores.values()):
        return f", and it has the highest {COMPOSITE} of {pluralize(len(scores), 'system')}"
    return ""


def data_only_components(compared: ScoredSystems) -> Iterator[Violation]:
    """EQ414: a component of a score that measures the test data and not the system."""
    for name in DATA_COMPONENTS:
        files: dict[str, dict[str, PrintedNumber]] = {}
        for system in compared.systems:
            number = system.find(name)
            if number is not None:
                files.setdefault(system.file, {}).setdefault(system.name, number)
        # Files with one system each may belong to one evaluation, or to evaluations on other data.
        single = {
            system: number for numbers in files.values() if len(numbers) == 1 for system, number in numbers.items()
        }
        for numbers in files.values():
            if len(numbers) > 1:
                yield from _constant(name, numbers)
        if len(single) > 1 and _all_equal(single):
            yield from _constant(name, single)


def _all_equal(numbers: Mapping[str, PrintedNumber]) -> bool:
    first, *other_numbers = map(range_of, numbers.values())
    return not any(first.is_disjoint(other_number) for other_number in other_numbers)


def _constant(name: str, numbers: Mapping[str, PrintedNumber]) -> Iterator[Violation]:
    why = "the graph is made of the relations of the test data, independent of any model"
    steps = (why, *(f"{system}: {name} {number.text}" for system, number in list(numbers.items())[:5]))
    sentence = f"{name} differs between systems, which is impossible if they were measured on the same graph"
    if _all_equal(numbers):
        sentence = (
            f"{name} is {next(iter(numbers.values())).text} for all of {pluralize(len(numbers), 'system')}: it is a "
            "constant of the test data and does not depend on the system"
        )
    yield Violation((), sentence, steps)


def reversed_components(compared: ScoredSystems) -> Iterator[Violation]:
    """EQ415: a consistency of norms that is their coefficient of variation."""
    for system in compared.systems:
        claimed, score = system.find("norm_consistency"), system.find("embedding_quality_score")
        spread, mean = system.find("norm_std"), system.find("norm_mean")
        ratio = None
        if spread and mean and mean.low > 0:
            ratio = ValueRange(max(spread.low, 0.0) / mean.high, spread.high / mean.low)
        if claimed is None or (ratio is not None and ratio.is_disjoint(range_of(claimed))) or not (ratio or score):
            continue
        reason = "it adds to the score, as the ratio of std to mean"
        if ratio and spread and mean:
            reason = f"norm_std {spread.text} over norm_mean {mean.text} is {ratio}, which equals it"
        yield Violation(
            (),
            f"norm_consistency {claimed.text} rewards inconsistency: it is 0 when all norms are equal",
            (
                reason,
                "equal norms have the standard deviation 0 and get 0; it grows as they differ",
            ),
            subject=system.name,
        )


def inconsistent_weighted_sum(compared: ScoredSystems) -> Iterator[Violation]:
    """EQ416: a score that differs from its formula."""
    for system in compared.systems:
        scores: dict[str, list[tuple[Formula, ValueRange, Mapping[str, ValueRange]]]] = {}
        for formula in system.formulas:
            parts = system.spans(formula) if system.find(formula.name) else None
            value = formula.value(parts) if parts else None
            if parts and value is not None:
                scores.setdefault(formula.name, []).append((formula, value, parts))
        for name, ways in scores.items():
            stated = system.find(name)
            if stated is None or not all(range_of(stated).is_disjoint(value.widened(SLACK)) for _, value, _ in ways):
                continue
            formula, value, used = ways[0]
            yield Violation(
                (),
                f"{name} {stated.text} differs from its formula, which gives {value}",
                (f"{name} = {formula.expression}", *(f"{part} is {value_range}" for part, value_range in used.items())),
                subject=system.name,
            )
