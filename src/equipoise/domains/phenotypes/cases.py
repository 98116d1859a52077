"""Test cases: texts with expected terms, read from JSON, JSONL, CSV or Python and resolved against an ontology."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from importlib.resources import as_file, files
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.checks.base import join_names, pluralize
from equipoise.domains.phenotypes.checks import ExpectedTerm, ExpectedTerms
from equipoise.errors import DuplicateError, FormatError, InputError, UnknownNameError, did_you_mean
from equipoise.io.json import parse_json
from equipoise.io.tables import Table, read_table, table_format, table_of_json
from equipoise.io.text import PathLike, display_path, open_text

if TYPE_CHECKING:
    from equipoise.domains.phenotypes.ontology import Ontology, ResolvedId
    from equipoise.domains.phenotypes.scoring import RetrievedTerms
    from equipoise.domains.phenotypes.similarity import TermSimilarity
    from equipoise.io.dataset import Value
    from equipoise.types import Ids, Ints

SAMPLES = ("english", "german")
"""The names of the bundled cases."""
EXPECTED_ID_COLUMNS = ("hpo_ids", "expected_hpo_ids", "term_ids", "expected_ids", "expected")
"""Accepted keys of the expected terms."""

_ID_COLUMNS = ("id", "case_id")
_LIST_KEYS = ("cases", "test_cases", "data")
_EXAMPLE = '{"text": "...", "hpo_ids": ["HP:0001250"], "language": "en"}'
_SEPARATOR = re.compile(r"[;|,\s]+")


@dataclass(frozen=True, slots=True)
class Case:
    """A text, the ids of its expected terms, its language, and further properties (slices)."""

    id: str
    text: str
    expected: tuple[str, ...]
    language: str = ""
    slices: Mapping[str, Value] = field(default_factory=dict)

    @property
    def properties(self) -> dict[str, Value]:
        """The language, if it is known, and the slices."""
        return ({"language": self.language} if self.language else {}) | dict(self.slices)


def check_cases(rows: Iterable[Mapping[str, Any] | Case]) -> tuple[Case, ...]:
    """Validate cases given as dicts, as in a test file, or as ``Case`` objects."""
    if isinstance(rows, str | bytes | Mapping) or not isinstance(rows, Iterable):
        raise InputError(f"the cases are a {type(rows).__name__}, not a list", hint=f"give [{_EXAMPLE}, ...]")
    plain = [_plain(row) for row in rows]
    for number, row in enumerate(plain, start=1):
        if not isinstance(row, dict):
            raise FormatError(f"case {number} is a {type(row).__name__}", hint=f"write {_EXAMPLE}")
    if not plain:
        raise InputError("there are no cases", hint=f"give at least one {_EXAMPLE}")
    return _parse_cases(Table("the list of cases", plain, range(1, len(plain) + 1)))


def read_cases(path: PathLike, *, language: str | None = None) -> tuple[Case, ...]:
    """Read cases: texts with the ids of the expected terms.

    Parameters
    ----------
    path
        A .json, .jsonl, .csv, .tsv or .parquet file, or a sample: ``english``, ``german``. A case has a ``text`` and a
        list of ids under ``hpo_ids``, ``expected_hpo_ids``, ``term_ids``, ``expected_ids`` or ``expected``; in CSV the
        ids are in one cell, separated by semicolons. JSON has a list of cases, or an object with that list under
        ``cases``, ``test_cases`` or ``data``. ``id`` and ``language`` are optional. Every other field with a short
        value is a slice.
    language
        The language of cases that do not name it.

    Returns
    -------
    tuple of Case
        The cases in the order of the file.

    Examples
    --------
    >>> len(read_cases("german")) > 60
    True
    """
    if str(path) in SAMPLES:
        with as_file(files("equipoise.io") / "samples" / "phenotypes" / f"{path}.json") as file:
            return read_cases(file)
    form = table_format(path)
    if form is None:
        if "." not in display_path(path) and "/" not in display_path(path):
            raise UnknownNameError.of(
                "sample of cases",
                display_path(path),
                SAMPLES,
                more=f"there are {' and '.join(SAMPLES)}, or name a file",
            )
        raise FormatError(
            f"{display_path(path)} cannot be read as cases: its file extension is not that of a table",
            hint=f"write a list of {_EXAMPLE} as JSON, or one such object per line as JSONL",
        )
    return _parse_cases(_read_json_table(path) if form == "json" else read_table(path), language or "")


def _plain(row: Any) -> Any:
    if not isinstance(row, Case):
        return dict(row) if isinstance(row, Mapping) else row
    return {**row.slices, "id": row.id, "text": row.text, "expected": list(row.expected)} | (
        {"language": row.language} if row.language else {}
    )


def _read_json_table(path: PathLike) -> Table:
    """The rows of a JSON file: a list, or an object with a list."""
    file = open_text(path)
    value = parse_json(file)
    if isinstance(value, dict):
        under = [key for key in _LIST_KEYS if key in value]
        if len(under) != 1:
            content = f"the keys {', '.join(map(repr, list(value)[:5]))}" if value else "no keys"
            raise FormatError(
                f"{file.name} is a JSON object with {content}; the list of cases was not found",
                hint=f"put it under {' or '.join(map(repr, _LIST_KEYS))}, or write the list alone: [{_EXAMPLE}]",
            )
        value = value[under[0]]
    if not isinstance(value, list):
        raise FormatError(f"{file.name} is JSON and holds no list of cases", hint=f"write [{_EXAMPLE}, ...]")
    if not value:
        raise FormatError(f"{file.name} holds an empty list of cases", hint=f"write [{_EXAMPLE}, ...]")
    return table_of_json(file, value)


def _parse_cases(table: Table, language: str = "") -> tuple[Case, ...]:
    cases = tuple(_parse_case(table, index, language) for index in range(len(table.rows)))
    first_of: dict[str, int] = {}
    for index, case in enumerate(cases):
        first = first_of.setdefault(case.id, index)
        if first != index:
            raise table.error(DuplicateError, [first, index], f"both have the id {case.id}", hint="rename one of them")
    return cases


def _parse_case(table: Table, index: int, language: str) -> Case:
    row = table.rows[index]
    key = _key_of_terms(table, index)
    case_language = row.get("language")
    if case_language is not None and not isinstance(case_language, str):
        raise table.error(FormatError, [index], f"has the language {case_language!r}", hint="write a code such as de")
    used = {*_ID_COLUMNS, "text", "language", key}
    return Case(
        _id(table, index),
        _text(table, index),
        _terms(table, index, key),
        (case_language or language).strip(),
        {name: value for name, value in row.items() if name not in used and _is_slice_value(value)},
    )


def _key_of_terms(table: Table, index: int) -> str:
    row = table.rows[index]
    keys = [key for key in EXPECTED_ID_COLUMNS if key in row]
    if not keys:
        columns = [str(column) for column in row]
        near = did_you_mean("hpo_ids", columns) if len(columns) < 20 else ""
        raise table.error(
            FormatError,
            [index],
            "has no terms: no key hpo_ids",
            hint=near or f"it has: {', '.join(columns)}; write {_EXAMPLE}",
        )
    if len(keys) > 1:
        raise table.error(FormatError, [index], f"has both {keys[0]} and {keys[1]}", hint="keep one of them")
    return keys[0]


def _id(table: Table, index: int) -> str:
    case_id = next((table.rows[index][key] for key in _ID_COLUMNS if table.rows[index].get(key) is not None), None)
    if case_id is None:
        return f"c{index + 1}"
    if isinstance(case_id, bool) or not isinstance(case_id, str | int) or not str(case_id).strip():
        raise table.error(FormatError, [index], f"has the id {case_id!r}", hint="an id is a string or an integer")
    return str(case_id).strip()


def _text(table: Table, index: int) -> str:
    row = table.rows[index]
    if "text" not in row:
        raise table.missing(index, "text")
    text = row["text"]
    if not isinstance(text, str) or not text.strip():
        fact = "has an empty text" if isinstance(text, str) else f"has no text but {text!r}"
        raise table.error(FormatError, [index], fact, hint="write it, or leave the case out")
    return text.strip()


def _terms(table: Table, index: int, key: str) -> tuple[str, ...]:
    """The ids of a row: a list, or a cell with separators. An empty list is a case without expected terms."""
    value = table.rows[index][key]
    names = [name for name in _SEPARATOR.split(value) if name] if isinstance(value, str) else value
    if not isinstance(names, list | tuple):
        raise table.error(
            FormatError, [index], f"has {value!r} as its {key}", hint='give a list of ids: ["HP:0001250"]'
        )
    for name in names:
        if not isinstance(name, str) or not name.strip():
            raise table.error(FormatError, [index], f"has {name!r} among its {key}", hint="an id is a text")
    terms = tuple(name.strip() for name in names)
    repeated = next((term for term in terms if terms.count(term) > 1), None)
    if repeated is not None:
        raise table.error(DuplicateError, [index], f"names {repeated} twice", hint="name every term once")
    return terms


def _is_slice_value(value: object) -> bool:
    """Whether a value can be a slice: a short string, a number or a boolean."""
    if isinstance(value, str):
        return 0 < len(value) <= 60 and "\n" not in value
    return isinstance(value, bool | int | float)


_MAX_EXPLAINED_IDS = 5
"""Number of unknown ids with an explanation; all are named."""
MAX_SLICE_VALUES = 30
"""A property with more distinct values is not used as a slice."""


@dataclass(frozen=True, eq=False)
class ResolvedCases:
    """The cases, and for each the distinct indices of its expected terms.

    ``moved`` are the alternative and replaced ids, by case. ``merged`` is the number of ids that resolve to a
    term that the same case already has; ``unknown`` are ids without a live term, which were left out.
    """

    cases: tuple[Case, ...]
    ontology: Ontology
    expected: tuple[Ints, ...]
    moved: tuple[tuple[str, ResolvedId], ...] = ()
    merged: int = 0
    unknown: tuple[str, ...] = ()
    properties: dict[str, dict[str, object]] = field(default_factory=dict)

    @property
    def texts(self) -> list[str]:
        return [case.text for case in self.cases]

    @property
    def unit_ids(self) -> Ids:
        ids = np.empty(len(self.cases), dtype=object)
        ids[:] = [case.id for case in self.cases]
        return ids

    @property
    def scored(self) -> int:
        """The number of cases with an expected term; the others cannot be scored."""
        return sum(len(terms) > 0 for terms in self.expected)

    @property
    def fingerprint(self) -> str:
        """Equal for equal texts with equal expected terms under equal ids."""
        content = [
            [case.id, case.text, sorted(self.ontology.ids[term] for term in terms)]
            for case, terms in zip(self.cases, self.expected, strict=True)
        ]
        return sha256(json.dumps(content, ensure_ascii=False).encode()).hexdigest()

    @property
    def fingerprints(self) -> dict[str, str]:
        """The fingerprints of the cases and of the ontology, by name."""
        return {"cases": self.fingerprint, self.ontology.title: self.ontology.fingerprint}

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes about the resolution of ids, without full stops."""
        notes = []
        if self.moved:
            case, first = self.moved[0]
            notes.append(
                f"{_count_ids(len(self.moved), 'was', 'were')} resolved to the current id of the term, such as "
                f"{first.id} to {self.ontology.ids[first.term]} in {case}"
            )
        if self.merged:
            notes.append(f"{_count_ids(self.merged, 'resolves', 'resolve')} to a term that the same case already has")
        if self.unknown:
            ids = _count_ids(len(self.unknown), "is not in the ontology and was", "are not in the ontology and were")
            notes.append(f"{ids} ignored: {join_names(self.unknown)}")
        empty = len(self.cases) - self.scored
        if empty:
            notes.append(f"{pluralize(empty, 'case')} without an expected term cannot be scored")
        return tuple(notes)


def resolve_cases(cases: Sequence[Case], ontology: Ontology, *, skip_unknown: bool = False) -> ResolvedCases:
    """Resolve every expected id; ids without a live term are an error that names them all, or are left out."""
    unknown = _unknown_ids(cases, ontology)
    if unknown and not skip_unknown:
        raise _unknown_ids_error(unknown, ontology)
    expected, moved, merged = [], [], 0
    for case in cases:
        resolutions = [ontology.resolve(name) for name in case.expected if name not in unknown]
        terms = list(dict.fromkeys(resolution.term for resolution in resolutions))
        merged += len(resolutions) - len(terms)
        moved += [(case.id, resolution) for resolution in resolutions if resolution.how != "live"]
        expected.append(np.array(terms, dtype=np.int64))
    return ResolvedCases(
        tuple(cases), ontology, tuple(expected), tuple(moved), merged, tuple(unknown), _slice_properties(cases)
    )


def _unknown_ids(cases: Sequence[Case], ontology: Ontology) -> dict[str, tuple[str, UnknownNameError]]:
    """The ids without a live term, each with its first case and its error."""
    first_case: dict[str, str] = {}
    for case in cases:
        for name in case.expected:
            first_case.setdefault(name, case.id)
    return {name: (first_case[name], error) for name, error in ontology.id_resolver.unknown(first_case).items()}


def _unknown_ids_error(unknown: dict[str, tuple[str, UnknownNameError]], ontology: Ontology) -> UnknownNameError:
    lines = [
        f"case {case}: {error.message}" + (f"; {error.hint}" if error.hint else "")
        for case, error in list(unknown.values())[:_MAX_EXPLAINED_IDS]
    ]
    more = list(unknown)[_MAX_EXPLAINED_IDS:]
    count, verb = pluralize(len(unknown), "expected id"), "has" if len(unknown) == 1 else "have"
    return UnknownNameError(
        f"{count} {verb} no current term in {ontology.title}",
        excerpt="\n".join([*lines, *([f"and {len(more)} more: {', '.join(more)}"] if more else [])]),
        hint="correct the ids, or ignore them with --skip-unknown-ids (skip_unknown=True)",
    )


def _slice_properties(cases: Sequence[Case]) -> dict[str, dict[str, object]]:
    """The properties to slice by: with several values, and far fewer values than cases."""
    sizes = ("none", "1", "2 or more")
    properties = {case.id: case.properties | {"expected terms": sizes[min(len(case.expected), 2)]} for case in cases}
    names = dict.fromkeys(name for values_by_name in properties.values() for name in values_by_name)
    varying = []
    for name in names:
        values = {str(values_by_name.get(name)) for values_by_name in properties.values()}
        if 1 < len(values) <= min(MAX_SLICE_VALUES, max(2, len(cases) // 2)):
            varying.append(name)
    return {
        case: {name: values_by_name[name] for name in varying if name in values_by_name}
        for case, values_by_name in properties.items()
    }


def _count_ids(ids: int, one: str, several: str) -> str:
    return f"{pluralize(ids, 'expected id')} {one if ids == 1 else several}"


N_COMPARED = 10
"""The number of top terms per system that an expected term is compared with."""


def expected_term_ranks(
    retrieved: Mapping[str, RetrievedTerms], resolved_cases: ResolvedCases, similarity: TermSimilarity
) -> ExpectedTerms:
    """For each expected term its best rank by any system, and its similarity to the top terms of the systems."""
    ontology = resolved_cases.ontology
    ranks = np.min([terms.ranks for terms in retrieved.values()], axis=0)
    expected_terms: list[ExpectedTerm] = []
    position = 0
    for row, (case, terms) in enumerate(zip(resolved_cases.cases, resolved_cases.expected, strict=True)):
        first = np.concatenate([terms.top_terms[row, :N_COMPARED] for terms in retrieved.values()])
        first = first[first >= 0]
        leading = Counter(int(terms.top_terms[row, 0]) for terms in retrieved.values() if terms.top_terms[row, 0] >= 0)
        for term in terms.tolist():
            nearest = float(similarity.pairs(np.full(len(first), term), first).max()) if len(first) else float("nan")
            expected_terms.append(
                ExpectedTerm(
                    case=case.id,
                    text=case.text,
                    id=ontology.ids[term],
                    label=ontology.labels[term],
                    rank=float(ranks[position]),
                    nearest=nearest,
                    found=ontology.labels[leading.most_common(1)[0][0]] if leading else "",
                )
            )
            position += 1
    return ExpectedTerms(tuple(expected_terms), tuple(retrieved), len(ontology))
