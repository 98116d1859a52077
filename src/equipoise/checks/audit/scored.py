"""Systems with all of their numbers, and the formulas by which their scores are made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from equipoise.checks.audit.formula import Formula
from equipoise.checks.audit.span import Span
from equipoise.checks.audit.sums import key_of
from equipoise.data.published.printed import Printed, printed
from equipoise.data.published.record import System

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
    numbers: Mapping[tuple[str, ...], Printed]
    formulas: tuple[Formula, ...] = FORMULAS
    file: str = ""

    @classmethod
    def of(cls, system: System, file: str, stated: Sequence[Formula]) -> Scored:
        """The numbers that can be read; a formula that the file states replaces the published one."""
        numbers = {}
        for path, text in system.numbers.items():
            number = printed(text) if text else None
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

    def find(self, name: str, scope: str = "") -> Printed | None:
        """The number of a name; of several, the one inside ``scope``, and none where that is open."""
        paths = self._by_name.get(name) or self._by_name.get(_LABELS.get(name, ""), [])
        inside = [path for path in paths if scope in path[:-1]]
        shortest = [path for path in paths if len(path) == min(map(len, paths))]
        for chosen in (paths, inside, shortest):
            if len({self.numbers[path] for path in chosen}) == 1:
                return self.numbers[chosen[0]]
        return None

    def spans(self, formula: Formula) -> dict[str, Span] | None:
        """The parts of a formula; None where one of them is not there."""
        scope = formula.name.removesuffix("_score")
        found = {name: self.find(name, scope) for name in formula.names}
        return {name: span_of(each) for name, each in found.items() if each} if all(found.values()) else None


@dataclass(frozen=True)
class Compared:
    """The systems of one source, which were measured on the same data."""

    name: str
    systems: tuple[Scored, ...] = ()


def span_of(number: Printed) -> Span:
    """Where the value behind a printed number is; percent as a fraction."""
    scale = 0.01 if number.percent else 1.0
    return Span(number.low * scale, number.high * scale)
