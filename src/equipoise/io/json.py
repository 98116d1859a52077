"""JSON, strictly: no NaN, no key twice in an object, no lone surrogates, and errors that give the line."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from math import isnan, nan
from typing import TYPE_CHECKING, Any

from equipoise.errors import DuplicateError, FormatError, InputError, NotFiniteError

if TYPE_CHECKING:
    from equipoise.io.text import TextFile

# A string without an end reaches to the end of the text: trying the next quote instead takes quadratic time.
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*(?:"|\Z)|[{}\[\]:]', re.DOTALL)
_STRING_OR_CONSTANT = re.compile(r'"(?:[^"\\]|\\.)*(?:"|\Z)|NaN|-?Infinity', re.DOTALL)
_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")


class _Repeated(Exception):  # noqa: N818  (a signal; the message needs file and line)
    """A key occurs twice in one object."""


class _Constant(Exception):  # noqa: N818
    """NaN or Infinity, which Python reads although JSON does not have them."""


def parse_json(file: TextFile) -> Any:
    """The value of a JSON file."""
    return _parse(file, file.text, first_line=1)


def parse_lines(file: TextFile) -> list[tuple[int, Any]]:
    """The value of each line that is not blank, with its line number."""
    return [(number, parse_line(file, number, line)) for number, line in enumerate(file.lines, start=1) if line.strip()]


def parse_line(file: TextFile, number: int, line: bytes) -> Any:
    """The value of one line of a file; errors give the line number."""
    return _parse(file, line.decode("utf-8"), first_line=number)


def _parse(file: TextFile, text: str, *, first_line: int) -> Any:
    try:
        value = json.loads(text, object_pairs_hook=_object, parse_constant=_reject_constant)
        if _SURROGATE_ESCAPE.search(text):
            json.dumps(value, ensure_ascii=False).encode("utf-8")
    except _Repeated as error:
        raise _repeated_key_error(file, text, first_line) from error
    except _Constant as error:
        raise _constant(file, text, first_line) from error
    except json.JSONDecodeError as error:
        raise _malformed_error(file, text, error, first_line) from error
    except UnicodeEncodeError as error:
        # Strings with lone surrogates cannot be encoded.
        raise FormatError(
            f"{file.name} from line {first_line} on holds half of a surrogate pair (\\ud800 to \\udfff)",
            hint="the text was truncated inside a character; write it again as UTF-8",
        ) from error
    except RecursionError as error:
        raise FormatError(f"{file.name} nests too deeply to be data") from error
    except ValueError as error:
        raise FormatError(f"{file.name} holds a number that cannot be read: {error}") from error
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    built = dict(pairs)
    if len(built) != len(pairs):
        raise _Repeated
    return built


def _reject_constant(name: str) -> None:
    raise _Constant(name)


def _malformed_error(file: TextFile, text: str, error: json.JSONDecodeError, first_line: int) -> InputError:
    line = min(_line(text, error.pos, first_line), len(file.lines))
    hint = "something is missing or superfluous just before this position; is the file complete?"
    if error.msg == "Extra data" and line > first_line:
        hint = "one object per line is JSONL; name the file .jsonl"
    elif text.strip() == "[":
        hint = "a list over several lines is JSON, not JSONL: name the file .json"
    elif line == 1 and text.lstrip()[:1] not in ("{", "[", '"'):
        hint = "JSON begins with { or [; if this is a table, name the file .csv or .tsv"
    elif error.msg.startswith("Expecting property name"):
        hint = "keys are written in double quotes, and no comma follows the last pair"
    return file.error(
        FormatError, line, f"is not JSON: {error.msg.removesuffix(' at')} at column {error.colno}", hint=hint
    )


def _repeated_key_error(file: TextFile, text: str, first_line: int) -> InputError:
    key, *offsets = _repeated_key(text)
    first, second = (_line(text, offset, first_line) for offset in offsets)
    prefix = f"line {first} gives" if first == second else f"lines {first} and {second} give"
    return DuplicateError(
        f"{file.name} {prefix} the key {key!r} twice in one object",
        hint="keep one of them",
        excerpt=file.excerpt(*sorted({first, second})),
    )


def _constant(file: TextFile, text: str, first_line: int) -> InputError:
    match = next(match for match in _STRING_OR_CONSTANT.finditer(text) if match.group()[0] != '"')
    return file.error(
        NotFiniteError,
        _line(text, match.start(), first_line),
        f"holds {match.group()}, which is not JSON",
        hint="leave out what is unknown",
    )


def _repeated_key(text: str) -> tuple[str, int, int]:
    """The first duplicate key of an object, and both its positions in the text."""
    open_objects: list[dict[str, int]] = []
    string, offset = "", 0
    for match in _TOKEN.finditer(text):
        token = match.group()
        if token in "{[":
            open_objects.append({})
        elif token in "}]":
            open_objects.pop()
        elif token != ":":
            string, offset = token, match.start()
        elif (key := json.loads(string)) in open_objects[-1]:
            return key, open_objects[-1][key], offset
        else:
            open_objects[-1][key] = offset
    raise AssertionError("the parser saw a key twice, the scanner did not")


def _line(text: str, offset: int, first_line: int) -> int:
    return first_line - 1 + len(f"{text[:offset]}.".encode("utf-8", "replace").splitlines())


# Type checks of JSON values.

SHOWN = 40
"""Characters of a wrong value that a message shows."""


def text(value: Any) -> str:
    """A string; anything else raises ``TypeError``, as in all functions here."""
    return _check_type(value, str, "a text")


def integer(value: Any, *, below: int | None = None) -> int:
    """An integer from 0 up to ``below``."""
    if type(value) is not int or not 0 <= value < (1 << 62 if below is None else below):
        raise _type_error(value, "a count" if below is None else f"an index below {below}")
    return value


def real(value: Any) -> float:
    """A number; null and words represent NaN and infinity, which JSON does not have."""
    if value is None:
        return nan
    if value in ("Infinity", "-Infinity"):
        return float(value)
    if type(value) not in (int, float) or abs(value) > 1.8e308 or isnan(value):
        raise _type_error(value, "a number")
    number: float = value
    return number


def optional(value: Any) -> float | None:
    """A number, or None."""
    return None if value is None else real(value)


def name(value: Any) -> str | int:
    """An id: a string or an integer."""
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise _type_error(value, "an id")
    return value


def mapping(value: Any) -> dict[str, Any]:
    """An object whose values are neither lists nor objects."""
    items: dict[str, Any] = _check_type(value, Mapping, "an object")
    for item in items.values():
        if isinstance(item, list | Mapping):
            raise _type_error(item, "a single value")
    return items


def items(value: Any) -> list[Any]:
    """A list."""
    return list(_check_type(value, list | tuple, "a list"))


def _check_type(value: Any, kind: Any, expected: str) -> Any:
    if not isinstance(value, kind):
        raise _type_error(value, expected)
    return value


def _type_error(value: Any, expected: str) -> TypeError:
    text = repr(value)
    return TypeError(f"{text if len(text) <= SHOWN else f'{text[:SHOWN]}...'} is not {expected}")
