"""The base of the kinds of data: what a unit is, which metrics are scored, and what was wrong with the input."""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from equipoise.errors import InputError
from equipoise.io.tables import named_columns
from equipoise.models.encoder import Role
from equipoise.stats.formatting import format_count
from equipoise.types import Floats

if TYPE_CHECKING:
    from equipoise.evidence.base import Evidence
    from equipoise.io.columns import ColumnTable
    from equipoise.io.dataset import Value
    from equipoise.models.retriever import Retriever
    from equipoise.runs.unit_table import UnitContent

_NAMED = 3
SHOWN = 10
"""Retrieved items that are kept per query."""
LONGEST_TEXT = 300
"""Characters of a retrieved item that are kept."""


class EvaluatedSystem(Protocol):
    """The interface of a system for the kinds of data."""

    @property
    def retriever(self) -> Retriever:
        """The system as a retriever."""

    def vectors(self, texts: Sequence[str], role: Role = Role.DOCUMENT) -> Any:
        """One row per text: an array, or a sparse matrix for lexical systems."""


@dataclass(frozen=True, slots=True)
class DataIssue:
    """Rows of the input that were left out or treated specially: a code, their number, and what was done."""

    code: str
    count: int
    message: str

    def __str__(self) -> str:
        return self.message


ISSUES: dict[str, tuple[str, str]] = {
    "bad_relevance": ("judgements without a number", "ignored"),
    "blank_labels": ("rows without a label or score", "left out"),
    "blank_queries": ("queries without text", "left out"),
    "blank_texts": ("rows with an empty text", "left out"),
    "conflicting_labels": ("texts with several labels", "one row per label"),
    "document_without_id": ("documents without an id", "left out"),
    "duplicate_documents": ("documents with the text of another", "same rank"),
    "empty_documents": ("empty documents", "ranked last"),
    "no_candidates": ("queries without a positive or a negative", "left out"),
    "positive_and_negative": ("queries with a text that is positive and negative", "counted as positive"),
    "query_without_id": ("queries without an id", "left out"),
    "repeated_documents": ("documents listed twice", "counted once"),
    "repeated_pairs": ("pairs that repeat another", "kept"),
    "repeated_queries": ("queries listed twice", "counted once"),
    "leaked_texts": ("rows outside the training split with a text of it", "left out"),
    "other_splits": ("rows of other splits than train and test", "left out"),
    "repeated_texts": ("rows that repeat a text", "kept, in one fold"),
    "single_texts": ("labels with a single text", "cannot be predicted"),
    "unjudged_queries": ("queries without a relevant document", "left out"),
    "unknown_documents": ("judgements of documents that are not in the corpus", "ignored"),
    "unknown_queries": ("judgements of unknown queries", "ignored"),
}
"""What can be wrong with the input, by code: the rows, and how they are treated."""


class IssueLog:
    """Collects the issues of one data set, one per code."""

    def __init__(self) -> None:
        self._ids: dict[str, list[str]] = {}

    def add(self, code: str, ids: Iterable[Any]) -> None:
        """Note that these rows have a problem of ``ISSUES``; nothing happens if there are none."""
        new_ids = [str(row_id) for row_id in ids]
        if new_ids:
            self._ids.setdefault(code, []).extend(new_ids)

    @property
    def issues(self) -> tuple[DataIssue, ...]:
        """One phrase per code, with the first ids."""
        data_issues = []
        for code, ids in self._ids.items():
            rows, treatment = ISSUES[code]
            listed = ", ".join(ids[:_NAMED]) + (", ..." if len(ids) > _NAMED else "")
            data_issues.append(DataIssue(code, len(ids), f"{rows}: {format_count(len(ids))} ({listed}), {treatment}"))
        return tuple(data_issues)


@dataclass(frozen=True)
class UsedColumns:
    """The columns of a table by what they are used for, and other columns with usual names of the same roles."""

    columns: Mapping[str, Sequence[str]] = field(default_factory=dict)
    others: tuple[str, ...] = ()

    @classmethod
    def of(cls, table: ColumnTable, roles: Iterable[str], **columns: Sequence[str]) -> UsedColumns:
        """``roles`` are those whose columns were found by their names: none if the user has named the columns."""
        used = {name for names in columns.values() for name in names}
        candidates = [name for role in roles for name in named_columns(table.columns, role)]
        return cls(columns, tuple(name for name in dict.fromkeys(candidates) if name not in used))

    def __str__(self) -> str:
        used = [f"{purpose}: {' + '.join(names)}" for purpose, names in self.columns.items() if names]
        others = f" (not used: {', '.join(self.others)}; --text chooses the columns)" if self.others else ""
        return f"{'; '.join(used)}{others}"


@dataclass(frozen=True)
class BenchObservation:
    """The output of a system on a data set.

    ``evidence`` gives the metrics of the kind. ``further`` are metrics on other evidence of the same units: by name,
    the evidence and the metric. ``values`` are per-unit values without evidence. ``details`` is shown to people.
    """

    evidence: Evidence | None
    further: Mapping[str, tuple[Evidence, str]] = field(default_factory=dict)
    values: Mapping[str, Floats] = field(default_factory=dict)
    chance: Mapping[str, float] = field(default_factory=dict)
    details: Mapping[str | int, UnitContent] = field(default_factory=dict)


class BenchData(ABC):
    """One data set of a benchmark.

    Subclasses read any table in ``__init__`` and evaluate a system in ``observe``.
    """

    kind: ClassVar[str]
    title: ClassVar[str]
    formats: ClassVar[str]
    unit: ClassVar[str]
    metrics: tuple[str, ...]
    """Metric names; the first is the primary metric."""
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)
    """The range of the primary metric."""
    needs_vectors: ClassVar[bool] = True
    """Whether only systems with vectors can be evaluated; otherwise any retriever can."""

    name: str
    issues: tuple[DataIssue, ...] = ()
    columns: UsedColumns = UsedColumns()
    """The columns that are used, if the data are one table."""
    slices: Mapping[str, Mapping[str, Value]]

    @property
    def primary(self) -> str:
        """The metric that decides the order."""
        return self.metrics[0]

    @property
    @abstractmethod
    def unit_ids(self) -> Sequence[str]:
        """The units that are scored."""

    @property
    @abstractmethod
    def size(self) -> str:
        """The size in words: ``225 queries, 1,400 documents``."""

    @property
    def clusters(self) -> Mapping[str, str] | None:
        """The cluster of each unit, where units depend on each other."""
        return None

    @property
    @abstractmethod
    def content(self) -> Any:
        """Everything that decides the scores, as plain values for the fingerprint."""

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the kind and the content, in hexadecimal."""
        text = json.dumps([self.kind, self.content], ensure_ascii=False, sort_keys=True)
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()

    @property
    @abstractmethod
    def texts(self) -> tuple[Sequence[str], Sequence[str]]:
        """The queries and the documents that are embedded; there may be no queries."""

    @abstractmethod
    def observe(self, system: EvaluatedSystem, *, seed: int = 0) -> BenchObservation:
        """Evaluate a system."""

    def __len__(self) -> int:
        return len(self.unit_ids)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, {self.size})"


def require_rows(rows: Sequence[Any], name: str, noun: str, log: IssueLog, minimum: int = 1) -> None:
    """Raise an error if too few usable rows are left; it says what was left out."""
    if len(rows) < minimum:
        reasons = "; ".join(map(str, log.issues))
        raise InputError(
            f"{name} has too few usable {noun} ({format_count(len(rows))})" + (f": {reasons}" if reasons else ""),
            hint=f"at least {minimum} {'is' if minimum == 1 else 'are'} needed; check the columns and the ids",
        )


def slices_of(unit_ids: Sequence[str], properties: Sequence[Mapping[str, Value]]) -> dict[str, dict[str, Value]]:
    """The properties by unit id."""
    return {unit: dict(values) for unit, values in zip(unit_ids, properties, strict=True) if values}
