"""Formulas that a file states for its scores, as ``score = a * 0.4 + min(b, 1) * 0.6``, on intervals."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

from equipoise.checks.audit.span import Span

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
            frozenset(
                each.id for each in ast.walk(tree) if isinstance(each, ast.Name) and id(each) not in calls
            )
            if tree
            else frozenset()
        )

    def value(self, numbers: Mapping[str, Span]) -> Span | None:
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


def _evaluated(node: ast.expr, numbers: Mapping[str, Span]) -> Span | None:
    if isinstance(node, ast.Constant):
        value = float(node.value)  # type: ignore[arg-type]
        return Span(value, value)
    if isinstance(node, ast.Name):
        return numbers[node.id]
    if isinstance(node, ast.UnaryOp):
        inner = _evaluated(node.operand, numbers)
        return None if inner is None else Span(-inner.high, -inner.low)
    if isinstance(node, ast.Call):
        parts = [_evaluated(each, numbers) for each in node.args]
        pick: Callable[..., float] = min if node.func.id == "min" else max  # type: ignore[attr-defined]
        known = [each for each in parts if each is not None]
        if len(known) < len(parts):
            return None
        return Span(pick(each.low for each in known), pick(each.high for each in known))
    assert isinstance(node, ast.BinOp)
    left, right = _evaluated(node.left, numbers), _evaluated(node.right, numbers)
    return None if left is None or right is None else _combined(node.op, left, right)


def _combined(operator: ast.operator, left: Span, right: Span) -> Span | None:
    if isinstance(operator, ast.Add):
        return left + right
    if isinstance(operator, ast.Sub):
        return Span(left.low - right.high, left.high - right.low)
    if isinstance(operator, ast.Div):
        if right.low <= 0 <= right.high:
            return None
        right = Span(1 / right.high, 1 / right.low)
    ends = [one * other for one in (left.low, left.high) for other in (right.low, right.high)]
    return Span(min(ends), max(ends))
