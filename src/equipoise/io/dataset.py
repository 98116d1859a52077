"""Datasets: immutable, validated on construction, identified by a content hash."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any

from equipoise.errors import DuplicateError, InputError, NotFiniteError, UnknownNameError
from equipoise.io.text import PathLike, parse_number, read_error

Value = str | int | float | bool | None
_NAMED = 3


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """Items that can be retrieved, units (such as queries), and the relevance of items to units.

    ``items`` and ``units`` map ids to texts, ``truth`` maps a unit to the gains of its items, ``slices`` a unit to
    named properties, and ``splits`` a name to unit ids. A unit without truth is allowed; truth, slices and splits with
    unknown ids are errors.

    >>> data = Dataset("tiny", items={"d1": "rain"}, units={"q1": "weather?"}, truth={"q1": {"d1": 1}})
    >>> data
    Dataset('tiny', 1 items, 1 units, 1 with truth)
    """

    name: str
    items: Mapping[str, str]
    units: Mapping[str, str]
    truth: Mapping[str, Mapping[str, int | float]]
    slices: Mapping[str, Mapping[str, Value]] = field(default_factory=dict)
    splits: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        frozen = {
            "items": MappingProxyType(dict(self.items)),
            "units": MappingProxyType(dict(self.units)),
            "truth": _frozen(self.truth),
            "slices": _frozen(self.slices),
            "splits": MappingProxyType({name: tuple(units) for name, units in self.splits.items()}),
        }
        for name, value in frozen.items():
            object.__setattr__(self, name, value)
        self._check()

    def __repr__(self) -> str:
        counts = f"{len(self.items)} items, {len(self.units)} units, {len(self.truth)} with truth"
        return f"Dataset({self.name!r}, {counts})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Dataset):
            return NotImplemented
        return self.name == other.name and self.fingerprint == other.fingerprint

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __reduce__(self) -> tuple[Any, ...]:
        # Read-only views cannot be pickled; their content can.
        return (Dataset, tuple(_plain_value(getattr(self, field.name)) for field in fields(self)))

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of all content, in hexadecimal.

        It does not depend on the order in which anything was given, nor on the dataset's name.
        """
        import hashlib  # loads OpenSSL, which few commands need

        digest = hashlib.sha256()
        for section in ("items", "units", "truth", "slices", "splits"):
            content = getattr(self, section)
            for key in sorted(content):
                value = content[key]
                if section == "truth":
                    value = {item: float(gain) + 0.0 for item, gain in value.items()}
                elif section == "splits":
                    value = sorted(value)
                elif section == "slices":
                    value = dict(value)
                digest.update(json.dumps([section, key, value], sort_keys=True).encode("ascii") + b"\n")
        return digest.hexdigest()

    def select(self, units: Iterable[str]) -> Dataset:
        """The same dataset with these units only, in this order; with all items."""
        chosen = list(units)
        for unit in chosen:
            if unit not in self.units:
                raise UnknownNameError.of(f"unit of {self.name}", unit, self.units)
        _check_unique_units(chosen, f"the selection from {self.name}")
        chosen_units = set(chosen)
        return Dataset(
            self.name,
            items=self.items,
            units={unit: self.units[unit] for unit in chosen},
            truth={unit: self.truth[unit] for unit in chosen if unit in self.truth},
            slices={unit: self.slices[unit] for unit in chosen if unit in self.slices},
            splits={name: [unit for unit in members if unit in chosen_units] for name, members in self.splits.items()},
        )

    @classmethod
    def from_beir(cls, folder: PathLike, *, split: str | None = None, name: str | None = None) -> Dataset:
        """Read a folder in the layout of BEIR: corpus, queries and qrels/SPLIT.tsv, in any table format.

        Units are the queries with judgements. The text of an item is its title, a space, and its text.

        Parameters
        ----------
        folder
            The folder with ``corpus``, ``queries`` and ``qrels``.
        split
            The split to read; all splits by default.
        name
            The name in reports; that of the folder by default.
        """
        from equipoise.io.retrieval_tables import beir_files, choose_split

        corpus, queries, files = beir_files(folder)
        splits = choose_split(files, split, folder)
        return cls._from_splits(corpus, queries, splits, name=name or Path(folder).resolve().name)

    @classmethod
    def from_tables(
        cls,
        corpus: object,
        queries: object = None,
        qrels: object = None,
        *,
        name: str = "dataset",
        text: Sequence[str] = (),
    ) -> Dataset:
        """A dataset from three tables, or from an ``ir_datasets`` object that has all of them.

        Parameters
        ----------
        corpus
            Documents with ids and texts: a pandas or polars frame, a pyarrow table, a Hugging Face dataset, a list of
            dicts, a file, or an ``ir_datasets`` object.
        queries
            Queries with ids and texts, in the same forms.
        qrels
            Judgements: query id, document id and relevance (1 if there is no such column), in the same forms.
        name
            The name in reports.
        text
            The columns of the document text, joined by a space. Default: title and text.

        Examples
        --------
        >>> corpus, queries = [{"doc_id": "d1", "text": "rain"}], [{"query_id": "q1", "text": "wet?"}]
        >>> Dataset.from_tables(corpus, queries, [{"query_id": "q1", "doc_id": "d1"}])
        Dataset('dataset', 1 items, 1 units, 1 with truth)
        """
        from equipoise.io.retrieval_tables import ir_datasets_parts

        opened = ir_datasets_parts(corpus) if queries is None else None
        if opened is not None:
            corpus, queries, qrels = opened
        if queries is None or qrels is None:
            raise InputError("the queries or the judgements are missing", hint="give corpus, queries and qrels")
        return cls._from_splits(corpus, queries, {"qrels": qrels}, name=name, text=text)

    @classmethod
    def _from_splits(
        cls, corpus: Any, queries: Any, qrels: Mapping[str, Any], *, name: str, text: Sequence[str] = ()
    ) -> Dataset:
        from equipoise.io.retrieval_tables import read_retrieval

        parts = read_retrieval(corpus, queries, qrels, text=text, report_issue=_require_consistent)
        _check_disjoint(parts.judgements)
        truth = parts.truth
        units = {query: parts.queries[query] for query in truth}
        splits = {split: tuple(gains) for split, gains in parts.judgements.items()} if len(qrels) > 1 else {}
        return cls(name, parts.documents, units, truth, splits=splits)

    def _check(self) -> None:
        for section, texts in (("items", self.items), ("units", self.units)):
            for key, text in texts.items():
                if not isinstance(key, str) or not isinstance(text, str):
                    raise InputError(
                        f"the {section} of {self.name} map {key!r} to {text!r}",
                        hint="ids and texts are strings",
                    )
        for unit, properties in self.slices.items():
            for key, value in properties.items():
                if not isinstance(key, str) or not isinstance(value, Value):
                    raise InputError(
                        f"the slices of {self.name} give unit {unit} the property {key!r}: {value!r}",
                        hint="a property is a string, a number, a truth value or None",
                    )
        item_ids = dict.fromkeys(item for gains in self.truth.values() for item in gains)
        self._check_names_exist("truth", "items", item_ids, self.items)
        self._check_names_exist("truth", "units", self.truth, self.units)
        self._check_names_exist("slices", "units", self.slices, self.units)
        for split, members in self.splits.items():
            self._check_names_exist(f"split {split}", "units", members, self.units)
            _check_unique_units(members, f"split {split} of {self.name}")
        for unit, gains in self.truth.items():
            for item, gain in gains.items():
                try:
                    parse_number(gain)
                except ValueError as error:
                    raise NotFiniteError(
                        f"{self.name} gives item {item} the gain {gain!r} for unit {unit}",
                        hint="a gain is a finite number",
                    ) from error

    def _check_names_exist(self, section: str, kind: str, names: Iterable[str], available: Mapping[str, str]) -> None:
        unknown = [name for name in names if name not in available]
        if unknown:
            first = ", ".join(map(str, unknown[:_NAMED])) + (", ..." if len(unknown) > _NAMED else "")
            raise InputError(
                f"the {section} of {self.name} names {len(unknown)} {kind} that are not there: {first}",
                hint=f"are the ids of the {section} and of the {kind} written in the same way?",
            )


def file_sha256(path: PathLike) -> str:
    """SHA-256 of a file's bytes, in hexadecimal."""
    import hashlib

    try:
        with open(path, "rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except (OSError, ValueError) as error:
        raise read_error(path, error) from error


def _check_unique_units(units: Sequence[str], location: str) -> None:
    previous: set[str] = set()
    for unit in units:
        if unit in previous:
            raise DuplicateError(f"{location} names unit {unit} twice", hint="name every unit once")
        previous.add(unit)


_CONTRADICTIONS = {
    "bad_relevance": "judgements have no number as relevance",
    "blank_queries": "queries have no text",
    "document_without_id": "documents have no id",
    "query_without_id": "queries have no id",
    "unknown_documents": "judgements name documents that are not in the corpus",
    "unknown_queries": "judgements name queries that are not there",
}


def _require_consistent(code: str, ids: list[str]) -> None:
    """Raise an error for rows that contradict each other; repeated rows and empty documents are allowed."""
    if ids and code in _CONTRADICTIONS:
        first = ", ".join(ids[:_NAMED]) + (", ..." if len(ids) > _NAMED else "")
        raise InputError(
            f"{len(ids)} {_CONTRADICTIONS[code]}: {first}",
            hint="remove these rows; eq bench leaves them out and counts them",
        )


def _check_disjoint(judgements: Mapping[str, Mapping[str, Any]]) -> None:
    """Raise an error for a query in two splits: it would leak from one into the other."""
    split_of: dict[str, str] = {}
    for split, truth in judgements.items():
        for query in truth:
            if split_of.setdefault(query, split) != split:
                raise DuplicateError(
                    f"query {query} is in the splits {split_of[query]} and {split}",
                    hint=f"read one of them: split={split!r}",
                )


def _frozen(outer: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Mapping[str, Any]]:
    return MappingProxyType({key: MappingProxyType(dict(inner)) for key, inner in outer.items()})


def _plain_value(value: Any) -> Any:
    return {key: _plain_value(inner) for key, inner in value.items()} if isinstance(value, Mapping) else value


def title_and_text(title: str, text: str) -> str:
    """A document as it is embedded: its title, if any, before its text.

    >>> title_and_text("Foxes", "They are red."), title_and_text("", "No title.")
    ('Foxes They are red.', 'No title.')
    """
    return f"{title} {text}" if title else text
