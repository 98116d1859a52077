"""Questions with their answers: the fixture that systems are compared on, from Python, JSON or JSONL."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import as_file, files
from typing import Any

from equipoise.errors import DuplicateError, FormatError, InputError, did_you_mean
from equipoise.io.documents import read_document
from equipoise.io.json import parse_json, parse_lines
from equipoise.io.tables import format_of
from equipoise.io.text import PathLike, TextFile, display_path, open_text

CATEGORIES = ("exact", "reformulated", "multi_hop", "fine_detail", "implicit", "negation")
DIFFICULTIES = ("easy", "medium", "hard")
UNSPECIFIED = "not given"
"""The category and the difficulty of a question that has none of its own."""

_LISTS = ("questions", "qa_pairs")
_EXAMPLE = '{"question": "...", "answer": "..."}'


@dataclass(frozen=True, slots=True)
class QuestionAnswer:
    """A question, the words of the document that answer it, and what kind of question it is."""

    id: str
    question: str
    answer: str
    category: str = UNSPECIFIED
    difficulty: str = UNSPECIFIED

    @property
    def kinds(self) -> dict[str, str]:
        """The category and the difficulty, as far as they are given."""
        both = {"category": self.category, "difficulty": self.difficulty}
        return {name: kind for name, kind in both.items() if kind != UNSPECIFIED}


def check_questions(pairs: Iterable[Mapping[str, Any] | QuestionAnswer]) -> tuple[QuestionAnswer, ...]:
    """Checked questions from dicts with ``question`` and ``answer``, or from questions made already.

    ``id`` is a name or a whole number, q1, q2, ... by position where there is none; ``category`` and
    ``difficulty`` are free words. Further keys are left out.

    >>> check_questions([{"question": "When was it founded?", "answer": "1995", "difficulty": "easy"}])[0].kinds
    {'difficulty': 'easy'}
    """
    if isinstance(pairs, str | bytes | Mapping) or not isinstance(pairs, Iterable):
        raise InputError(f"the questions are a {type(pairs).__name__}, not a list", hint=f"give [{_EXAMPLE}, ...]")
    return _checked(list(pairs), _Source())


def read_questions(path: PathLike) -> tuple[QuestionAnswer, ...]:
    """The questions of a JSON or JSONL file, plain or gzipped.

    JSON holds a list of objects, or an object with that list under ``check_questions`` or ``qa_pairs``. JSONL
    holds an object a line.
    """
    form = format_of(path)
    if form not in ("json", "jsonl"):
        raise FormatError(
            f"{display_path(path)} cannot be read as a fixture: its suffix is neither .json nor .jsonl",
            hint=f"write a list of {_EXAMPLE} as JSON, or one such object a line as JSONL",
        )
    file = open_text(path)
    if form == "jsonl":
        numbered = parse_lines(file)
        return _checked([row for _, row in numbered], _Source(file, [line for line, _ in numbered]))
    return _checked(_listed(file, parse_json(file)), _Source(file))


@dataclass(frozen=True, slots=True)
class _Source:
    """Where the questions come from, for the errors: lines of a file, positions in a file, or Python."""

    file: TextFile | None = None
    lines: Sequence[int] | None = None

    def error(self, kind: type[InputError], places: Sequence[int], fact: str, hint: str = "") -> InputError:
        numbers = [place + 1 if self.lines is None else self.lines[place] for place in places]
        unit = "question" if self.lines is None else "line"
        where = f"{unit}{'s' if len(numbers) > 1 else ''} {' and '.join(map(str, numbers))}"
        if self.file is None:
            return kind(f"{where} {fact}", hint=hint)
        excerpt = "" if self.lines is None else self.file.excerpt(*numbers)
        return kind(f"{self.file.name} {where} {fact}", hint=hint, excerpt=excerpt)


def _listed(file: TextFile, value: Any) -> list[Any]:
    """The list of a JSON fixture, which may stand under a key of an object."""
    if isinstance(value, dict):
        under = [key for key in _LISTS if key in value]
        if len(under) != 1:
            found = f"the keys {', '.join(map(repr, value))}" if value else "no keys"
            raise FormatError(
                f"{file.name} is a JSON object with {found}; the list of questions was not found",
                hint=f"put it under one of {' or '.join(map(repr, _LISTS))}, or write the list alone",
            )
        value = value[under[0]]
    if not isinstance(value, list):
        raise FormatError(f"{file.name} is JSON and holds no list of questions", hint=f"write [{_EXAMPLE}, ...]")
    return value


def _checked(pairs: list[Any], source: _Source) -> tuple[QuestionAnswer, ...]:
    if not pairs:
        name = "the list of questions" if source.file is None else source.file.name
        raise InputError(f"{name} holds no question", hint=f"give at least one {_EXAMPLE}")
    made = tuple(_question(pair, place, source) for place, pair in enumerate(pairs))
    first_of: dict[str, int] = {}
    for place, each in enumerate(made):
        first = first_of.setdefault(each.id, place)
        if first != place:
            raise source.error(DuplicateError, [first, place], f"both have the id {each.id}", "rename one of them")
    return made


def _question(pair: Any, place: int, source: _Source) -> QuestionAnswer:
    if isinstance(pair, QuestionAnswer):
        pair = {name: getattr(pair, name) for name in QuestionAnswer.__dataclass_fields__}
    if not isinstance(pair, Mapping):
        raise source.error(FormatError, [place], f"is a {type(pair).__name__}, not an object", f"write {_EXAMPLE}")
    made = QuestionAnswer(
        _id(pair.get("id"), place, source),
        *(_words(pair, key, place, source) for key in ("question", "answer")),
    )
    kinds = {key: _words(pair, key, place, source) for key in ("category", "difficulty") if _given(pair, key)}
    return replace(made, **kinds)


def _given(pair: Mapping[str, Any], key: str) -> bool:
    return pair.get(key) is not None


def _id(given: Any, place: int, source: _Source) -> str:
    if given is None:
        return f"q{place + 1}"
    if isinstance(given, bool) or not isinstance(given, str | int) or not str(given).strip():
        raise source.error(FormatError, [place], f"has the id {given!r}", "an id is a name or a whole number")
    return str(given).strip()


def _words(pair: Mapping[str, Any], key: str, place: int, source: _Source) -> str:
    """The text under a key, without the white space at its ends."""
    if key not in pair:
        known = [str(each) for each in pair]
        hint = did_you_mean(key, known) or (f"it has: {', '.join(known)}" if known else "it is empty")
        raise source.error(FormatError, [place], f"has no key {key!r}", hint)
    value = pair[key]
    if not isinstance(value, str):
        kind = "null" if value is None else type(value).__name__
        number = isinstance(value, int | float) and not isinstance(value, bool)
        hint = f'write it in quotes: "{value}"' if number else "give a text in quotes"
        raise source.error(FormatError, [place], f"has no text but {kind} as its {key}", hint)
    if not value.strip():
        raise source.error(FormatError, [place], f"has an empty {key}", "write it, or leave the question out")
    return value.strip()


def timekeeping() -> tuple[str, tuple[QuestionAnswer, ...]]:
    """A document of some 9,000 words on how people learned to keep time, and 130 questions on it.

    The answers stand in the document word for word. The questions are of all six categories and three
    difficulties.
    """
    with as_file(files("equipoise.io") / "samples" / "timekeeping") as folder:
        return read_document(folder / "timekeeping.md"), read_questions(folder / "questions.jsonl")
