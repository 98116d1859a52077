"""Conventions in which libraries differ on the same run, and presets: the conventions of each library.

Their texts and values are data: ``conventions.toml`` and ``presets.toml``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Literal

from equipoise.errors import ParameterError, UnknownNameError
from equipoise.types import packaged_toml

if TYPE_CHECKING:
    from equipoise.metrics.base import Metric

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
        """The same with other values for some."""
        return replace(self, **values)  # type: ignore[arg-type]

    def to_dict(self) -> dict[str, Value]:
        """Plain values by name."""
        return {name: self[name] for name in self}


@dataclass(frozen=True)
class ConventionInfo:
    """One convention in words. ``only`` names the metrics that it can change; empty is all of them."""

    title: str
    descriptions: Mapping[str, str]
    only: tuple[str, ...] = ()

    def describe(self, value: Value) -> str:
        """The meaning of a value; a number is inserted into the text for any number."""
        name = "none" if value is None else str(value)
        return self.descriptions[name] if name in self.descriptions else self.descriptions["any"].format(value)


CONVENTIONS = {
    name: ConventionInfo(content["title"], content["values"], tuple(content.get("only", ())))
    for name, content in packaged_toml("equipoise.reproduce", "conventions.toml").items()
}
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
    """Descriptions of the conventions that differ from the defaults and affect the metric."""
    defaults = Conventions()
    return [
        CONVENTIONS[name].describe(conventions[name])
        for name in conventions
        if affects(name, metric) and conventions[name] != defaults[name]
    ]


EQUIPOISE = "equipoise"

UNJUDGED, FRACTIONS, NEGATIVE, TIES = "unjudged", "fractions", "negative", "ties"
OTHER_QUERIES, EMPTY = "other queries", "empty"
"""Contents of runs and qrels that a library cannot handle."""


@dataclass(frozen=True)
class LibraryLimitation:
    """The behaviour of a library that is not emulated, for the metrics ``forms`` or for all."""

    message: str
    forms: tuple[str, ...] = ()


@dataclass(frozen=True)
class Preset:
    """A named set of conventions, and ``entry``, the call of the library that they reproduce."""

    name: str
    version: str
    entry: str
    conventions: Conventions
    calls: Mapping[str, str]
    exceptions: Mapping[str, Mapping[str, Value]] = field(default_factory=dict)
    unsupported: Mapping[str, str] = field(default_factory=dict)
    limitations: Mapping[str, LibraryLimitation] = field(default_factory=dict)

    @classmethod
    def of(cls, name: str, content: Mapping[str, Any]) -> Preset:
        """From its table in ``presets.toml``, where the word none is no value."""
        limitations = {
            subject: LibraryLimitation(limit["message"], tuple(limit.get("forms", ())))
            for subject, limit in content.get("limitations", {}).items()
        }
        exceptions = {
            form: {key: None if value == "none" else value for key, value in values.items()}
            for form, values in content.get("exceptions", {}).items()
        }
        return cls(
            name,
            content["version"],
            content["entry"],
            Conventions(**content.get("conventions", {})),
            content["calls"],
            exceptions,
            content.get("unsupported", {}),
            limitations,
        )

    @property
    def title(self) -> str:
        """Name and version: ``ranx 0.3.21``."""
        return f"{self.name} {self.version}".strip()

    def call(self, metric: Metric[Any]) -> str:
        """The library's name of the metric, or a message that it has none."""
        form = metric_form(metric)
        if form not in self.calls:
            why = self.unsupported.get(form) or f"it has {', '.join(self.calls)}"
            raise ParameterError(f"{self.name} has no {metric.name}", hint=f"{why[:1].lower()}{why[1:]}".rstrip("."))
        return self.calls[form].format(k=getattr(metric, "k", None))

    def rules(self, metric: Metric[Any]) -> Conventions:
        """The conventions for one metric; an error if the library does not have it."""
        self.call(metric)
        conventions = self.conventions.with_values(self.exceptions.get(metric_form(metric), {}))
        if self.name == EQUIPOISE:  # metrics of this package may define their conventions
            requested = {name: getattr(metric, name) for name in ("norm", "gain") if hasattr(metric, name)}
            conventions = conventions.with_values(requested)
        return conventions


def metric_form(metric: Metric[Any]) -> str:
    """The metric without the number of its cutoff: ``nDCG@k``, ``R(capped)@k``, ``MRR``."""
    cutoff = getattr(metric, "k", None)
    return metric.name if cutoff is None else f"{metric.name.rpartition('@')[0]}@k"


PRESETS: Mapping[str, Preset] = {
    name: Preset.of(name, content) for name, content in packaged_toml("equipoise.reproduce", "presets.toml").items()
}


def get_preset(name: str | Preset) -> Preset:
    """The preset of a name, in any case, or a did-you-mean."""
    if isinstance(name, Preset):
        return name
    by_name = {key.casefold(): preset for key, preset in PRESETS.items()}
    preset_found = by_name.get(str(name).casefold())
    if preset_found is None:
        raise UnknownNameError.of("library", str(name), PRESETS, more=f"known: {', '.join(PRESETS)}")
    return preset_found
