"""Parser of aggregation expressions such as ``0.6*label + 0.4*max(synonyms)``.

The grammar is small: weighted sums of the scores ``label`` and ``definition``, and of ``max``,
``min`` or ``mean`` over such sums and over ``synonyms``. Numbers multiply and divide; two scores are never
multiplied, so that every result stays on the scale of the scores. Nothing is evaluated as Python.

    sum     = product { ("+" | "-") product }
    product = factor { ("*" | "/") factor }
    factor  = ["-" | "+"] ( number | name | function "(" sum { "," sum } ")" | "(" sum ")" )
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from equipoise.errors import ParameterError, did_you_mean

PARTS = ("label", "synonyms", "definition")
POOLS = ("max", "min", "mean")
MAX_LENGTH = 1000
"""Maximum number of characters of an expression."""

_TOKEN = re.compile(r"\s*(?:(\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?)|(\w+)|(\S))|\s+$")
_MAX_NESTING = 50


@dataclass(frozen=True, slots=True)
class ComponentScore:
    """The score of a term's label or definition, or those of its synonyms."""

    name: str


@dataclass(frozen=True, slots=True)
class PooledTerm:
    """The maximum, minimum or mean over several sums, of those that a term has."""

    pooling: str
    sums: tuple[WeightedSum, ...]


@dataclass(frozen=True, slots=True)
class WeightedSum:
    """A weighted sum of scores plus a constant; ``addends`` are pairs of weight and score."""

    addends: tuple[tuple[float, ComponentScore | PooledTerm], ...] = ()
    constant: float = 0.0

    @property
    def parts(self) -> frozenset[str]:
        """The components that the result depends on."""
        names: set[str] = set()
        for _, atom in self.addends:
            names |= (
                {atom.name} if isinstance(atom, ComponentScore) else set().union(*(part.parts for part in atom.sums))
            )
        return frozenset(names)

    @property
    def is_vector(self) -> bool:
        """Whether it has one value per synonym instead of one per term."""
        return any(isinstance(atom, ComponentScore) and atom.name == "synonyms" for _, atom in self.addends)

    def scaled(self, factor: float) -> WeightedSum:
        """The sum multiplied by a number."""
        return WeightedSum(tuple((weight * factor, atom) for weight, atom in self.addends), self.constant * factor)

    def plus(self, other: WeightedSum) -> WeightedSum:
        """The flattened sum of two sums."""
        return WeightedSum(self.addends + other.addends, self.constant + other.constant)


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    at: int


Rule = Callable[[], WeightedSum]


def parse_expression(text: str) -> WeightedSum:
    """Parse an expression; an error points at the position.

    >>> parse_expression("0.6*label + 0.4*max(synonyms)").parts == {"label", "synonyms"}
    True
    >>> parse_expression("label * definition")
    Traceback (most recent call last):
    ...
    equipoise.errors.ParameterError: two scores are multiplied in 'label * definition'
    """
    return _Parser(text).whole()


class _Parser:
    """Recursive-descent parser with one method per grammar rule."""

    def __init__(self, text: str) -> None:
        if len(text) > MAX_LENGTH:
            raise ParameterError(
                f"the expression has {len(text):,} characters", hint=f"at most {MAX_LENGTH:,} are read"
            )
        self._text = text
        self._tokens = list(_tokens(text))
        self._next = 0
        self._depth = 0

    def whole(self) -> WeightedSum:
        """The whole expression; it must have one score per term and no remaining tokens."""
        if not self._tokens:
            raise ParameterError(
                "the aggregation strategy is empty", hint="write label_synonyms_max, or max(label, synonyms)"
            )
        expression = self._sum()
        if (token := self._peek()) is not None:
            raise self._error(f"{token.text!r} is not expected", token, "put an operator between two values")
        if not expression.addends:
            raise ParameterError(f"{self._text!r} names no score", hint=f"the scores are {', '.join(PARTS)}")
        self._require_single(expression, self._tokens[0])
        return expression

    def _sum(self) -> WeightedSum:
        start, total = self._peek(), self._product()
        while (sign := self._taken("+", "-")) is not None:
            self._require_single(total, start)
            start, other = self._peek(), self._product()
            self._require_single(other, start)
            total = total.plus(other.scaled(-1.0 if sign.text == "-" else 1.0))
        return total

    def _product(self) -> WeightedSum:
        product = self._factor()
        while (sign := self._taken("*", "/")) is not None:
            product = self._combined(product, sign, self._factor())
        return product

    def _combined(self, left: WeightedSum, sign: _Token, right: WeightedSum) -> WeightedSum:
        if sign.text == "/":
            if right.addends:
                raise self._error("a score is a divisor", sign, "divide by a number")
            if right.constant == 0.0:
                raise self._error("division by 0", sign, "divide by another number")
            return left.scaled(1.0 / right.constant)
        if left.addends and right.addends:
            raise self._error("two scores are multiplied", sign, "one side of * is a number: 0.5*label")
        return left.scaled(right.constant) if left.addends else right.scaled(left.constant)

    def _factor(self) -> WeightedSum:
        token = self._peek()
        if token is None:
            raise self._error("the expression ends after an operator", None, "complete it, or remove the operator")
        self._next += 1
        if token.text in ("+", "-"):
            return self._deeper(token, self._factor).scaled(-1.0 if token.text == "-" else 1.0)
        if token.text == "(":
            inner = self._deeper(token, self._sum)
            self._expect(")", token)
            return inner
        if token.kind == "number":
            return WeightedSum(constant=self._number(token))
        if token.kind == "name":
            return self._pool(token) if token.text in POOLS else self._part(token)
        raise self._error(f"{token.text!r} is not expected", token, f"write {PARTS[0]}, max(...), or a number")

    def _pool(self, name: _Token) -> WeightedSum:
        if self._taken("(") is None:
            raise self._error(f"{name.text} has no parenthesis", name, f"write {name.text}(label, synonyms)")
        sums = [self._deeper(name, self._sum)]
        while self._taken(",") is not None:
            sums.append(self._deeper(name, self._sum))
        self._expect(")", name)
        if not any(part.addends for part in sums):
            raise self._error(f"{name.text} has no score in it", name, f"write {name.text}(label, synonyms)")
        return WeightedSum(((1.0, PooledTerm(name.text, tuple(sums))),))

    def _part(self, name: _Token) -> WeightedSum:
        if name.text not in PARTS:
            names = (*PARTS, *POOLS)
            hint = did_you_mean(name.text, names) or f"the names are {', '.join(names)}"
            raise self._error(f"no score is called {name.text!r}", name, hint)
        return WeightedSum(((1.0, ComponentScore(name.text)),))

    def _number(self, token: _Token) -> float:
        number = float(token.text)
        if not math.isfinite(number):
            raise self._error(f"{token.text} is too large", token, "write a smaller number")
        return number

    def _require_single(self, expression: WeightedSum, token: _Token | None) -> None:
        if expression.is_vector:
            hint = "write max(synonyms), min(synonyms) or mean(synonyms)"
            raise self._error("synonyms is several scores", token, hint)

    def _deeper(self, token: _Token, rule: Rule) -> WeightedSum:
        self._depth += 1
        if self._depth > _MAX_NESTING:
            raise self._error("the parentheses are nested too deeply", token, f"nest at most {_MAX_NESTING}")
        result = rule()
        self._depth -= 1
        return result

    def _peek(self) -> _Token | None:
        return self._tokens[self._next] if self._next < len(self._tokens) else None

    def _taken(self, *signs: str) -> _Token | None:
        token = self._peek()
        if token is None or token.kind != "sign" or token.text not in signs:
            return None
        self._next += 1
        return token

    def _expect(self, sign: str, opened: _Token) -> None:
        if self._taken(sign) is None:
            raise self._error(f"{sign!r} is missing", self._peek(), f"close what begins with {opened.text!r}")

    def _error(self, fact: str, token: _Token | None, hint: str) -> ParameterError:
        at = len(self._text.rstrip()) if token is None else token.at
        pointed = f"{self._text}\n{' ' * at}^" if "\n" not in self._text else ""
        return ParameterError(f"{fact} in {self._text!r}", hint=hint, excerpt=pointed)


def _tokens(text: str) -> Iterator[_Token]:
    for match in _TOKEN.finditer(text):
        for kind, group in (("number", 1), ("name", 2), ("sign", 3)):
            if match[group]:
                yield _Token(kind, match[group], match.start(group))
