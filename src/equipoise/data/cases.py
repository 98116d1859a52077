"""Cases: a text, and the terms of an ontology that it speaks of, from JSON, JSONL, CSV or Python."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from importlib.resources import as_file, files
from typing import Any

from equipoise.data.dataset import Value
from equipoise.data.jsontext import parse_json
from equipoise.data.tables import Table, format_of, read_table, table_of_json
from equipoise.data.text import PathLike, open_text, shown
from equipoise.errors import DuplicateError, FormatError, InputError, UnknownNameError, did_you_mean

SAMPLES = ("english", "german")
"""The cases that come with the program, by name."""
EXPECTED = ("hpo_ids", "expected_hpo_ids", "term_ids", "expected_ids", "expected")
"""Under which key the right terms may stand."""

_IDS = ("id", "case_id")
_LISTS = ("cases", "test_cases", "data")
_EXAMPLE = '{"text": "...", "hpo_ids": ["HP:0001250"], "language": "en"}'
_SEPARATOR = re.compile(r"[;|,\s]+")


@dataclass(frozen=True, slots=True)
class Case:
    """A text, the ids of the terms that should be found, its language, and what else is known of it."""

    id: str
    text: str
    expected: tuple[str, ...]
    language: str = ""
    slices: Mapping[str, Value] = field(default_factory=dict)

    @property
    def properties(self) -> dict[str, Value]:
        """The language, where it is known, and the slices: what cases can be told apart by."""
        return ({"language": self.language} if self.language else {}) | dict(self.slices)


def cases(rows: Iterable[Mapping[str, Any] | Case]) -> tuple[Case, ...]:
    """Checked cases from dicts as a test file holds them, or from cases made already.

    >>> cases([{"text": "She faints", "hpo_ids": ["HP:0001279"], "language": "en"}])[0].expected
    ('HP:0001279',)
    """
    if isinstance(rows, str | bytes | Mapping) or not isinstance(rows, Iterable):
        raise InputError(f"the cases are a {type(rows).__name__}, not a list", hint=f"give [{_EXAMPLE}, ...]")
    plain = [_plain(row) for row in rows]
    for place, row in enumerate(plain, start=1):
        if not isinstance(row, dict):
            raise FormatError(f"case {place} is a {type(row).__name__}", hint=f"write {_EXAMPLE}")
    if not plain:
        raise InputError("there are no cases", hint=f"give at least one {_EXAMPLE}")
    return _checked(Table("the list of cases", plain, range(1, len(plain) + 1)))


def read_cases(path: PathLike, *, language: str | None = None) -> tuple[Case, ...]:
    """The cases of a .json, .jsonl, .csv, .tsv or .parquet file, or of a sample: ``english``, ``german``.

    A case has a ``text`` and the ids of its terms, a list under ``hpo_ids`` or one of ``EXPECTED``; in CSV
    the ids stand in one cell, parted by a semicolon. JSON holds a list of cases, or an object with that list
    under ``cases``, ``test_cases`` or ``data``. ``id`` and ``language`` are optional (``language`` is then
    the one given here); every other field with a short value is a slice.

    >>> len(read_cases("german")) > 60
    True
    """
    if str(path) in SAMPLES:
        with as_file(files("equipoise.data") / "samples" / "phenotypes" / f"{path}.json") as file:
            return read_cases(file)
    form = format_of(path)
    if form is None:
        if "." not in shown(path) and "/" not in shown(path):
            raise UnknownNameError.of(
                "sample of cases",
                shown(path),
                SAMPLES,
                more=f"there are {' and '.join(SAMPLES)}, or name a file",
            )
        raise FormatError(
            f"{shown(path)} cannot be read as cases: its suffix names no table format",
            hint=f"write a list of {_EXAMPLE} as JSON, or one such object a line as JSONL",
        )
    return _checked(_wrapped(path) if form == "json" else read_table(path), language or "")


def _plain(row: Any) -> Any:
    if not isinstance(row, Case):
        return dict(row) if isinstance(row, Mapping) else row
    return {**row.slices, "id": row.id, "text": row.text, "expected": list(row.expected)} | (
        {"language": row.language} if row.language else {}
    )


def _wrapped(path: PathLike) -> Table:
    """The rows of a JSON file whose list may stand under a key."""
    file = open_text(path)
    value = parse_json(file)
    if isinstance(value, dict):
        under = [key for key in _LISTS if key in value]
        if len(under) != 1:
            found = f"the keys {', '.join(map(repr, list(value)[:5]))}" if value else "no keys"
            raise FormatError(
                f"{file.name} is a JSON object with {found}; the list of cases was not found",
                hint=f"put it under {' or '.join(map(repr, _LISTS))}, or write the list alone: [{_EXAMPLE}]",
            )
        value = value[under[0]]
    if not isinstance(value, list):
        raise FormatError(f"{file.name} is JSON and holds no list of cases", hint=f"write [{_EXAMPLE}, ...]")
    if not value:
        raise FormatError(f"{file.name} holds an empty list of cases", hint=f"write [{_EXAMPLE}, ...]")
    return table_of_json(file, value)


def _checked(table: Table, language: str = "") -> tuple[Case, ...]:
    made = tuple(_case(table, place, language) for place in range(len(table.rows)))
    first_of: dict[str, int] = {}
    for place, case in enumerate(made):
        first = first_of.setdefault(case.id, place)
        if first != place:
            raise table.error(
                DuplicateError, [first, place], f"both have the id {case.id}", hint="rename one of them"
            )
    return made


def _case(table: Table, place: int, language: str) -> Case:
    row = table.rows[place]
    key = _key_of_terms(table, place)
    told = row.get("language")
    if told is not None and not isinstance(told, str):
        raise table.error(FormatError, [place], f"has the language {told!r}", hint="write a code such as de")
    used = {*_IDS, "text", "language", key}
    return Case(
        _id(table, place),
        _text(table, place),
        _terms(table, place, key),
        (told or language).strip(),
        {name: value for name, value in row.items() if name not in used and _short(value)},
    )


def _key_of_terms(table: Table, place: int) -> str:
    row = table.rows[place]
    found = [key for key in EXPECTED if key in row]
    if not found:
        known = [str(each) for each in row]
        near = did_you_mean("hpo_ids", known) if len(known) < 20 else ""
        raise table.error(
            FormatError,
            [place],
            "has no terms: no key hpo_ids",
            hint=near or f"it has: {', '.join(known)}; write {_EXAMPLE}",
        )
    if len(found) > 1:
        raise table.error(
            FormatError, [place], f"has both {found[0]} and {found[1]}", hint="keep one of them"
        )
    return found[0]


def _id(table: Table, place: int) -> str:
    given = next((table.rows[place][key] for key in _IDS if table.rows[place].get(key) is not None), None)
    if given is None:
        return f"c{place + 1}"
    if isinstance(given, bool) or not isinstance(given, str | int) or not str(given).strip():
        raise table.error(
            FormatError, [place], f"has the id {given!r}", hint="an id is a name or a whole number"
        )
    return str(given).strip()


def _text(table: Table, place: int) -> str:
    row = table.rows[place]
    if "text" not in row:
        raise table.missing(place, "text")
    text = row["text"]
    if not isinstance(text, str) or not text.strip():
        fact = "has an empty text" if isinstance(text, str) else f"has no text but {text!r}"
        raise table.error(FormatError, [place], fact, hint="write it, or leave the case out")
    return text.strip()


def _terms(table: Table, place: int, key: str) -> tuple[str, ...]:
    """The ids under a key: a list, or a cell with separators. An empty list is a case without an answer."""
    value = table.rows[place][key]
    given = [each for each in _SEPARATOR.split(value) if each] if isinstance(value, str) else value
    if not isinstance(given, list | tuple):
        raise table.error(
            FormatError, [place], f"has {value!r} as its {key}", hint='give a list of ids: ["HP:0001250"]'
        )
    for each in given:
        if not isinstance(each, str) or not each.strip():
            raise table.error(FormatError, [place], f"has {each!r} among its {key}", hint="an id is a text")
    terms = tuple(each.strip() for each in given)
    twice = next((each for each in terms if terms.count(each) > 1), None)
    if twice is not None:
        raise table.error(DuplicateError, [place], f"names {twice} twice", hint="name every term once")
    return terms


def _short(value: object) -> bool:
    """Whether a value can name a slice: a word or a number, no paragraph and no structure."""
    if isinstance(value, str):
        return 0 < len(value) <= 60 and "\n" not in value
    return isinstance(value, bool | int | float)
