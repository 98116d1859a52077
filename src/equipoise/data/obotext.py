"""OBO text, the format of ``hp.obo`` and ``go.obo``: stanzas of ``tag: value`` lines.

Read by hand, since only ten tags matter here and ten megabytes of them should take a moment. Of the
relationships only ``is_a`` is kept; stanzas other than ``[Term]`` are passed over.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from equipoise.data.oboterms import OboFile, OboTerm
from equipoise.data.text import TextFile
from equipoise.errors import DuplicateError, FormatError

Tags = dict[str, list[str]]

_KEPT = frozenset(
    ("id", "name", "synonym", "def", "is_a", "alt_id", "is_obsolete", "replaced_by", "consider")
)
_QUOTED = re.compile(r'"([^"\\]*(?:\\.[^"\\]*)*)"')
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_MEANING = {"n": "\n", "t": "\t", "W": " "}
_QUALIFIERS = re.compile(r"\{[^{}]*=[^{}]*\}$")
_CONTINUED = re.compile(r"(?<!\\)((?:\\\\)*)\\\n")
_TITLE = re.compile(r'\S*\btitle\s+"((?:[^"\\]|\\.)*)"')
_LICENCE = re.compile(r"\S*\blicen[sc]e\s+(\S+)")
_VERSION_INFO = re.compile(r'\S*\bversionInfo\s+"((?:[^"\\]|\\.)*)"')


def parse_obo_text(file: TextFile) -> OboFile:
    """The terms of OBO text; a line that is no ``tag: value`` and an id given twice are errors."""
    lines = _lines(file.text)
    header: Tags = {}
    terms: list[OboTerm] = []
    line_of: dict[str, int] = {}
    for stanza, line, tags in _stanzas(file, lines):
        if not stanza:
            header = tags
        elif stanza == "[Term]":
            term = _term(file, line, tags)
            first = line_of.setdefault(term.id, line)
            if first != line:
                raise DuplicateError(
                    f"{file.name} describes {term.id} twice, from line {first} and from line {line}",
                    hint="keep one of the two stanzas",
                )
            terms.append(term)
    return _file(file, header, terms)


def _lines(text: str) -> list[str]:
    """The lines, those that end in a backslash joined with the next one."""
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    if "\\\n" in text:
        text = _CONTINUED.sub(r"\1", text)
    return text.split("\n")  # splitlines would also split at marks that a definition may hold


def _stanzas(file: TextFile, lines: list[str]) -> Iterator[tuple[str, int, Tags]]:
    """The name of each stanza (none for the header), its line, and the values of the tags that are kept."""
    stanza, start = "", 1
    tags: Tags = {}
    for number, line in enumerate(lines, start=1):
        tag, colon, value = line.partition(":")
        if colon and not (tag in _KEPT or not stanza):
            continue
        if colon and not tag.startswith(("[", "!")):
            tags.setdefault(tag.strip(), []).append(value.strip())
        elif line.startswith("["):
            yield stanza, start, tags
            stanza, start, tags = line.partition("!")[0].strip(), number, {}
        elif line.strip() and not line.lstrip().startswith("!"):
            raise file.error(
                FormatError, number, "is neither a stanza nor a tag with its value", hint="is it OBO text?"
            )
    yield stanza, start, tags


def _term(file: TextFile, line: int, tags: Tags) -> OboTerm:
    if not any(tags.get("id", ())):
        raise file.error(FormatError, line, "begins a term without an id", hint="each [Term] has an id: line")
    return OboTerm(
        id=_word(tags["id"][0]),
        name=_unquoted(tags["name"][0]) if "name" in tags else "",
        synonyms=tuple(_quoted(file, line, each) for each in tags.get("synonym", ())),
        definition=_quoted(file, line, tags["def"][0]) if "def" in tags else "",
        parents=_words(tags, "is_a"),
        alternatives=_words(tags, "alt_id"),
        obsolete=_words(tags, "is_obsolete") == ("true",),
        replaced_by=_words(tags, "replaced_by"),
        consider=_words(tags, "consider"),
    )


def _words(tags: Tags, tag: str) -> tuple[str, ...]:
    values = tags.get(tag)
    return tuple(dict.fromkeys(map(_word, values))) if values else ()


def _word(value: str) -> str:
    """The first word of a value: what follows an id is a comment or a qualifier."""
    word = value.split(None, 1)[0] if value else ""
    return _plain(word)


def _quoted(file: TextFile, line: int, value: str) -> str:
    match = _QUOTED.match(value)
    if match is None:
        raise file.error(
            FormatError,
            line,
            f"begins a term with a text that has no quotes: {value[:40]}",
            hint="definitions and synonyms stand in double quotes",
        )
    return _plain(match.group(1))


def _unquoted(value: str) -> str:
    return _plain(_QUALIFIERS.sub("", value).rstrip())


def _plain(text: str) -> str:
    if "\\" not in text:
        return text
    return _ESCAPE.sub(lambda match: _MEANING.get(match.group(1), match.group(1)), text)


def _file(file: TextFile, header: Tags, terms: list[OboTerm]) -> OboFile:
    properties = header.get("property_value", [])
    versions = header.get("data-version", []) + _matches(_VERSION_INFO, properties) + header.get("date", [])
    return OboFile(
        source=file.name,
        ontology=next(iter(header.get("ontology", [])), "").removesuffix(".obo"),
        title=next(iter(_matches(_TITLE, properties)), ""),
        version=next(iter(versions), ""),
        licence=next(iter(_matches(_LICENCE, properties)), ""),
        terms=tuple(terms),
    )


def _matches(pattern: re.Pattern[str], values: list[str]) -> list[str]:
    return [_plain(match.group(1)) for value in values if (match := pattern.match(value))]
