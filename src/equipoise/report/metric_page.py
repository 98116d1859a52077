"""Small bodies of evidence to explain a metric with; the figures are computed when they are shown."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from equipoise.errors import EquipoiseError
from equipoise.report.terminal import CodeLine, Paragraph, heading
from equipoise.stats.formatting import format_value

if TYPE_CHECKING:
    from equipoise.evidence.base import Evidence
    from equipoise.metrics.base import Metric

# Pages of facts: a title, a definition, and a list of what is known.


@dataclass(frozen=True)
class InfoPage:
    """What ``eq explain`` shows, for people and as data."""

    title: str
    text: str = ""
    facts: Mapping[str, str] = field(default_factory=dict)
    blocks: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def parts(self) -> list[Any]:
        """The page as paragraphs."""
        parts: list[Any] = [heading(self.title)]
        for paragraph in filter(None, self.text.split("\n\n")):
            parts += [Paragraph(""), Paragraph(" ".join(paragraph.split()))]
        known = {name: fact for name, fact in self.facts.items() if fact}
        if known:
            width = max(map(len, known)) + 2
            parts.append(Paragraph(""))
            parts += [Paragraph(fact, lead=f"{name:<{width}}", mark="bold") for name, fact in known.items()]
        for title, lines in self.blocks.items():
            if lines:
                parts += [Paragraph(""), heading(title), *map(CodeLine, lines)]
        return parts

    def to_dict(self) -> dict[str, Any]:
        """The page as data."""
        return {
            "title": self.title,
            "text": self.text,
            "facts": dict(self.facts),
            **{name.lower(): list(lines) for name, lines in self.blocks.items()},
        }


# Formulas in LaTeX as a terminal can show them.

_WORDS = {
    r"\,": " ",
    r"\|": "|",
    r"\le": "<=",
    r"\ge": ">=",
    r"\in": "in",
}
_GROUP = r"\{([^{}]*)\}"
_CHOOSE = re.compile(rf"\\binom\s*{_GROUP}\s*{_GROUP}")
_FRACTION = re.compile(rf"\\frac\s*{_GROUP}\s*{_GROUP}")
_WRAPPED = re.compile(rf"\\(?P<name>mathrm|text|sqrt)\s*{_GROUP}")
_ACCENTED = re.compile(r"\\(hat|bar)\s+(\w)")
_SCRIPT = re.compile(rf"([_^]){_GROUP}")
_COMMAND = re.compile(r"\\(?:[A-Za-z]+|[^A-Za-z])")


def plain_formula(formula: str) -> str:
    r"""The formula in plain text; one that is plain already stays as it is.

    >>> plain_formula(r"\sqrt{\frac{1}{n} \sum_i (p_i - e_i)^2}")
    'sqrt((1 / n) sum_i (p_i - e_i)^2)'
    """
    if "\\" not in formula:
        return formula
    text = _ACCENTED.sub(r"\1(\2)", formula)
    before = None
    while text != before:  # the innermost groups first, until none is left
        before = text
        text = _SCRIPT.sub(lambda found: found[1] + _bracketed(found[2]), text)
        text = _WRAPPED.sub(lambda found: f"sqrt({found[2]})" if found["name"] == "sqrt" else found[2], text)
        text = _CHOOSE.sub(r"choose(\1, \2)", text)
        text = _FRACTION.sub(lambda found: f"({_bracketed(found[1])} / {_bracketed(found[2])})", text)
    text = _COMMAND.sub(lambda found: _WORDS.get(found[0], found[0][1:]), text)
    return " ".join(text.split())


def _bracketed(part: str) -> str:
    """The part, in brackets unless it is a single thing."""
    return f"({part})" if re.search(r"[\s+*/-]", part.strip()) else part


PLACES = 4


@dataclass(frozen=True)
class MetricExample:
    """Evidence, and what it says in one line."""

    text: str
    evidence: Evidence


def example_evidence(kind: str) -> list[MetricExample]:
    """Evidence of this kind, small enough to check by hand."""
    makers = {
        "ranking": _ranking,
        "labels": _labels,
        "sets": _sets,
        "pairs": _pairs,
        "space": _space,
    }
    return makers[kind]() if kind in makers else []


def worked_values(metric: Metric[Any]) -> list[str]:
    """Lines such as ``relevant at ranks 1, 4, 5 of 5: 0.7``; none where an example lacks what it needs."""
    lines = []
    for example in example_evidence(metric.evidence.kind):
        try:
            value = metric.measure(example.evidence).value
        except EquipoiseError:
            continue
        lines.append(f"{example.text}: {metric.name} = {format_value(value, PLACES, reason='undefined')}")
    return lines


def _ranking() -> list[MetricExample]:
    from equipoise.evidence.ranking import Ranking

    scores = {"a": 0.9, "b": 0.8, "c": 0.7, "d": 0.6, "e": 0.5}
    truth = {"q": {"a": 1, "d": 1, "e": 1}}
    return [
        MetricExample("ranked a* b c d* e*, the starred ones relevant", Ranking.from_runs(truth, {"q": scores})),
        MetricExample("the same with c and d* at equal scores", Ranking.from_runs(truth, {"q": scores | {"c": 0.6}})),
        MetricExample("one relevant item, at rank 3 of 100", Ranking.from_ranks([3], candidates=100)),
    ]


def _labels() -> list[MetricExample]:
    from equipoise.evidence.labels import Labels

    return [MetricExample("true a a b b, predicted a a a b", _labels_of(Labels, "aabb", "aaab"))]


def _labels_of(kind: Any, true: Sequence[str], predicted: Sequence[str]) -> Evidence:
    made: Evidence = kind.of(list(true), list(predicted))
    return made


def _sets() -> list[MetricExample]:
    from equipoise.evidence.sets import Sets

    return [MetricExample("gold {a, b}, predicted {b, c, d}", Sets.of({"doc": ["a", "b"]}, {"doc": ["b", "c", "d"]}))]


def _pairs() -> list[MetricExample]:
    from equipoise.evidence.pairs import Pairs

    return [
        MetricExample(
            "predicted .9 .4 .6 .1 where 1.0 .5 .3 .2 were expected",
            Pairs.of([0.9, 0.4, 0.6, 0.1], [1.0, 0.5, 0.3, 0.2]),
        )
    ]


def _space() -> list[MetricExample]:
    from equipoise.evidence.space import Space

    points = [[0.1, 0.0], [0.2, 0.1], [0.0, 0.5], [0.1, 0.9]]
    evidence = Space.of(points, labels=["a", "a", "b", "b"], depth=[0, 1, 1, 2])
    return [MetricExample("points (.1, 0) (.2, .1) of class a and (0, .5) (.1, .9) of class b", evidence)]
