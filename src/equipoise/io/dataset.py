"""Datasets: immutable, validated on construction, identified by a content hash; the reader of BEIR folders."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any

from equipoise.errors import DuplicateError, FormatError, InputError, NotFiniteError, UnknownNameError
from equipoise.io.run_files import Qrels, read_qrels
from equipoise.io.tables import read_table
from equipoise.io.text import PathLike, display_path, parse_number, read_error

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
        # Read-only views cannot cross process borders; their content can.
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
        """The same dataset with these units only, in this order; all items stay."""
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
        """A folder in BEIR's layout: corpus.jsonl, queries.jsonl and qrels/*.tsv (one file a split).

        Without ``split``, all splits are read. Units are the queries that have judgements; the text of
        an item is its title, a space, and its text.
        """

        return cls(**read_beir(folder, split=split, name=name))

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
        self._refuse_unknown("truth", "items", item_ids, self.items)
        self._refuse_unknown("truth", "units", self.truth, self.units)
        self._refuse_unknown("slices", "units", self.slices, self.units)
        for split, members in self.splits.items():
            self._refuse_unknown(f"split {split}", "units", members, self.units)
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

    def _refuse_unknown(self, section: str, kind: str, names: Iterable[str], available: Mapping[str, str]) -> None:
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


def _frozen(outer: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Mapping[str, Any]]:
    return MappingProxyType({key: MappingProxyType(dict(inner)) for key, inner in outer.items()})


def _plain_value(value: Any) -> Any:
    return {key: _plain_value(inner) for key, inner in value.items()} if isinstance(value, Mapping) else value


# Folders in BEIR's layout: corpus.jsonl, queries.jsonl, qrels/<split>.tsv.


def read_beir(folder: PathLike, *, split: str | None = None, name: str | None = None) -> dict[str, Any]:
    """The parts of a dataset: name, items, units, truth and splits; units are the queries of the qrels."""
    root = Path(folder)
    files = _qrels_files(root)
    if split is not None:
        if split not in files:
            raise UnknownNameError.of(
                f"split of {display_path(root)}", split, files, more=f"there are: {', '.join(files)}"
            )
        files = {split: files[split]}
    qrels = {part: read_qrels(path) for part, path in files.items()}
    truth = _join_splits(qrels)
    queries = _texts(_existing_file(root, "queries.jsonl"))
    return {
        "name": name or root.resolve().name,
        "items": _texts(_existing_file(root, "corpus.jsonl")),
        "units": {query: text for query, text in queries.items() if query in truth},
        "truth": truth,
        "splits": {name: tuple(gains) for name, gains in qrels.items()},
    }


def _qrels_files(root: Path) -> dict[str, Path]:
    folder = root / "qrels"
    try:
        names = sorted(os.listdir(folder))
    except (OSError, ValueError) as error:
        raise read_error(folder, error) from error
    files = {
        file_name.split(".")[0]: folder / file_name for file_name in names if file_name.endswith((".tsv", ".tsv.gz"))
    }
    if not files:
        raise InputError(f"{display_path(folder)} holds no .tsv file", hint="BEIR keeps judgements in qrels/test.tsv")
    return files


def _existing_file(root: Path, name: str) -> Path:
    packed = root / f"{name}.gz"
    return packed if packed.exists() else root / name


def _join_splits(qrels: dict[str, Qrels]) -> Qrels:
    """All splits in one; a query in two splits would leak from one into the other."""
    truth: Qrels = {}
    home: dict[str, str] = {}
    for split, split_qrels in qrels.items():
        for query, gains in split_qrels.items():
            if query in home:
                raise DuplicateError(
                    f"query {query} is in the splits {home[query]} and {split}",
                    hint=f"read one of them: split={split!r}",
                )
            home[query] = split
            truth[query] = gains
    return truth


def _texts(path: Path) -> dict[str, str]:
    """Title and text by ``_id``."""
    table = read_table(path).require("_id", "text")
    texts: dict[str, str] = {}
    index_of: dict[str, int] = {}
    for index, row in enumerate(table.rows):
        name, title, text = row["_id"], row.get("title") or "", row["text"]
        if not isinstance(name, str) or not name or not isinstance(title, str) or not isinstance(text, str):
            raise table.error(FormatError, [index], "needs strings as _id, title and text")
        first = index_of.setdefault(name, index)
        if first != index:
            raise table.error(DuplicateError, [first, index], f"both have the _id {name}", hint="keep one")
        texts[name] = title_and_text(title, text)
    return texts


def title_and_text(title: str, text: str) -> str:
    """A document as it is embedded: its title, where it has one, before its text.

    >>> title_and_text("Foxes", "They are red."), title_and_text("", "No title.")
    ('Foxes They are red.', 'No title.')
    """
    return f"{title} {text}" if title else text
