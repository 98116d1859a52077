"""The conventions in which libraries differ on the same run: names, values and descriptions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from types import MappingProxyType
from typing import Any, Literal

Value = str | int | None


@dataclass(frozen=True)
class Conventions:
    """The choices of a program that the definition of a metric leaves open; the defaults are those of equipoise."""

    ties: Literal[
        "expected",
        "id_down",
        "id_up",
        "input",
        "quicksort",
        "torch_sort",
        "torch_topk",
        "threshold",
        "optimistic",
        "pessimistic",
    ] = "expected"
    scores: Literal["float64", "float32"] = "float64"
    missing: Literal["zero", "left_out"] = "zero"
    empty: Literal["left_out", "zero"] = "left_out"
    own_id: Literal["kept", "dropped"] = "kept"
    unretrieved: Literal["counted", "unseen"] = "counted"
    nonpositive: Literal["kept", "lost"] = "kept"
    grades: Literal["kept", "whole", "binary"] = "kept"
    min_grade: int = 1  # no library raises it by itself, but trec_eval -l 2 and rel=2 of ir_measures do
    norm: Literal["min", "R", "hits"] = "min"
    gain: Literal["linear", "exp"] = "linear"
    depth: int | None = None  # no library truncates lists by itself, but a published score may be of truncated lists
    fewest: int = 0
    digits: int | None = None

    def __iter__(self) -> Iterator[str]:
        """The names of all conventions."""
        return (field.name for field in fields(self))

    def __getitem__(self, name: str) -> Value:
        """The value of a convention."""
        value: Value = getattr(self, name)
        return value

    def with_values(self, values: Mapping[str, Value]) -> Conventions:
        """The same with other values for some.

        >>> Conventions().with_values({"norm": "R"}).norm
        'R'
        """
        return replace(self, **values)  # type: ignore[arg-type]

    def to_dict(self) -> dict[str, Value]:
        """Plain values by name."""
        return {name: self[name] for name in self}


@dataclass(frozen=True)
class ConventionInfo:
    """One convention in words. ``only`` names the metrics that it can change; empty is all of them."""

    title: str
    says: Mapping[Value, str]
    only: tuple[str, ...] = field(default=())

    def describe(self, value: Value) -> str:
        """What a value means; a number is put into the words for any number."""
        return self.says[value] if value in self.says else self.says["any"].format(value)


CONVENTIONS: Mapping[str, ConventionInfo] = MappingProxyType(
    {
        "ties": ConventionInfo(
            "equal scores",
            {
                "expected": "equal scores count as the average over all their orders",
                "id_down": "equal scores are ordered by document id, descending",
                "id_up": "equal scores are ordered by document id, ascending",
                "input": "equal scores keep the order of the run",
                "quicksort": "equal scores are in the order of numba's quicksort: lists of up to 15 items keep the "
                "order of the run, longer lists do not (sorted twice if the run and the qrels have other queries)",
                "torch_sort": "equal scores are in the order of torch's sort, of all rows by query and then "
                "of each list",
                "torch_topk": "equal scores are in the order of torch's sort of all rows by query, and its "
                "topk picks them",
                "threshold": "equal scores are one threshold: all of them count at the end of their group",
                "optimistic": "equal scores are in the best order",
                "pessimistic": "equal scores are in the worst order",
            },
        ),
        "scores": ConventionInfo(
            "width of the scores",
            {
                "float64": "scores keep 64 bits",
                "float32": "scores are rounded to 32 bits, which can create ties",
            },
        ),
        "missing": ConventionInfo(
            "queries of the qrels that the run misses",
            {
                "zero": "a query of the qrels that the run misses scores 0",
                "left_out": "a query of the qrels that the run misses is left out of the mean",
            },
        ),
        "empty": ConventionInfo(
            "queries without relevant items",
            {
                "left_out": "a query without relevant items is left out of the mean",
                "zero": "a query without relevant items scores 0",
            },
        ),
        "own_id": ConventionInfo(
            "documents named like the query",
            {
                "kept": "a document with the id of the query is ranked like any other",
                "dropped": "a document with the id of the query is dropped from its list",
            },
        ),
        "unretrieved": ConventionInfo(
            "relevant items that were not retrieved",
            {
                "counted": "relevant items that were not retrieved count in R and in the ideal order",
                "unseen": "only retrieved items count in R and in the ideal order",
            },
        ),
        "nonpositive": ConventionInfo(
            "items with a score of 0 or below",
            {
                "kept": "the sign of a score has no meaning",
                "lost": "a relevant item with a score of 0 or below counts as not found",
            },
        ),
        "grades": ConventionInfo(
            "graded relevance",
            {
                "kept": "any grade above 0 is relevant, and is the gain",
                "whole": "grades are truncated to integers, and those from 1 are relevant",
                "binary": "any grade above 0 is relevant with gain 1",
            },
        ),
        "min_grade": ConventionInfo(
            "smallest relevant grade",
            {1: "any grade above 0 is relevant", "any": "only grades from {} are relevant"},
        ),
        "norm": ConventionInfo(
            "denominator of average precision",
            {
                "min": "average precision is over min(k, R)",
                "R": "average precision is over R",
                "hits": "average precision is over the relevant items found within k",
            },
            ("MAP",),
        ),
        "gain": ConventionInfo(
            "gain",
            {"linear": "the gain is the grade", "exp": "the gain is 2^grade - 1"},
            ("nDCG",),
        ),
        "depth": ConventionInfo(
            "depth of the lists",
            {None: "lists count to their end", "any": "lists are truncated after {} items"},
        ),
        "fewest": ConventionInfo(
            "shortest list",
            {
                0: "lists of any length are scored",
                1: "empty lists are left out",
                "any": "lists of fewer than {} items are left out",
            },
        ),
        "digits": ConventionInfo(
            "rounding",
            {None: "the mean is not rounded", "any": "the mean is rounded to {} digits"},
        ),
    }
)
"""Every field of ``Conventions`` in words, in the same order."""


def affects(name: str, metric: Any) -> bool:
    """Whether a convention can change a metric at all.

    >>> from equipoise.metrics.parser import parse_metrics
    >>> affects("norm", parse_metrics("nDCG@10")[0]), affects("ties", parse_metrics("nDCG@10")[0])
    (False, True)
    """
    only = CONVENTIONS[name].only
    return not only or metric.symbol in only


def differences_from_default(conventions: Conventions, metric: Any) -> list[str]:
    """Descriptions of the conventions that differ from the defaults and affect the metric.

    >>> from equipoise.metrics.parser import parse_metrics
    >>> differences_from_default(Conventions(norm="R", missing="left_out"), parse_metrics("MRR")[0])
    ['a query of the qrels that the run misses is left out of the mean']
    """
    defaults = Conventions()
    return [
        CONVENTIONS[name].describe(conventions[name])
        for name in conventions
        if affects(name, metric) and conventions[name] != defaults[name]
    ]
