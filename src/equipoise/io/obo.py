"""OBO text, the format of ``hp.obo`` and ``go.obo``: stanzas of ``tag: value`` lines.

Parsed by hand for speed: only ten tags of about ten megabytes are read. Of the relationships only ``is_a`` is read;
stanzas other than ``[Term]`` are skipped.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from equipoise.errors import DuplicateError, FormatError, InputError
from equipoise.io.json import parse_json
from equipoise.io.text import PathLike, TextFile, open_text

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")


@dataclass(frozen=True, slots=True)
class OboTerm:
    """One term of the file, possibly obsolete; ids and texts as in the file."""

    id: str
    name: str = ""
    synonyms: tuple[str, ...] = ()
    definition: str = ""
    parents: tuple[str, ...] = ()
    alternatives: tuple[str, ...] = ()
    obsolete: bool = False
    replaced_by: tuple[str, ...] = ()
    consider: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class OboFile:
    """An ontology file: the fields of its header, empty if absent, and its terms in order."""

    source: str
    ontology: str = ""
    title: str = ""
    version: str = ""
    licence: str = ""
    terms: tuple[OboTerm, ...] = field(default=(), repr=False)

    @property
    def release(self) -> str:
        """The date of the version, or the version itself."""
        date = _DATE.search(self.version)
        return date.group() if date else self.version


Tags = dict[str, list[str]]

_KEPT = frozenset(("id", "name", "synonym", "def", "is_a", "alt_id", "is_obsolete", "replaced_by", "consider"))
_QUOTED = re.compile(r'"([^"\\]*(?:\\.[^"\\]*)*)"')
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_MEANING = {"n": "\n", "t": "\t", "W": " "}
_QUALIFIERS = re.compile(r"\{[^{}]*=[^{}]*\}$")
_CONTINUED = re.compile(r"(?<!\\)((?:\\\\)*)\\\n")
_TITLE = re.compile(r'\S*\btitle\s+"((?:[^"\\]|\\.)*)"')
_LICENCE = re.compile(r"\S*\blicen[sc]e\s+(\S+)")
_VERSION_INFO = re.compile(r'\S*\bversionInfo\s+"((?:[^"\\]|\\.)*)"')


def parse_obo_text(file: TextFile) -> OboFile:
    """The terms of OBO text; a line that is not ``tag: value`` and an id given twice are errors."""
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
    """The name of each stanza (none for the header), its line, and the values of the tags that are read."""
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
        name=_plain(_QUALIFIERS.sub("", tags["name"][0]).rstrip()) if "name" in tags else "",
        synonyms=tuple(_quoted_text(file, line, synonym) for synonym in tags.get("synonym", ())),
        definition=_quoted_text(file, line, tags["def"][0]) if "def" in tags else "",
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


def _quoted_text(file: TextFile, line: int, value: str) -> str:
    match = _QUOTED.match(value)
    if match is None:
        raise file.error(
            FormatError,
            line,
            f"begins a term with a text that has no quotes: {value[:40]}",
            hint="definitions and synonyms are written in double quotes",
        )
    return _plain(match.group(1))


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


# OBO-graph JSON, the format of ``hp.json`` and ``mondo.json``: nodes and edges with IRIs for ids.

_COMPACT = re.compile(r"^(?:https?|ftp)://.*[/#]([A-Za-z][\w.-]*?)_(\w+)$")
_LAST_WORD = re.compile(r"[/#]")
_OTHER_ID = "hasAlternativeId"
_REPLACED = "IAO_0100001"
_CONSIDER = "consider"


def parse_obo_graph(file: TextFile) -> OboFile:
    """The classes of all graphs in the file; properties and individuals are skipped."""
    graphs = _graphs(file)
    parents: dict[str, list[str]] = {}
    for edge in _listed_objects(file, graphs, "edges", needed=("sub", "obj")):
        if edge.get("pred") == "is_a":
            parents.setdefault(compact_iri(edge["sub"]), []).append(compact_iri(edge["obj"]))
    terms: dict[str, OboTerm] = {}
    for node in _listed_objects(file, graphs, "nodes", needed=("id",)):
        if node.get("type", "CLASS") != "CLASS":
            continue
        term = _obograph_term(node, _meta(file, node), parents)
        if term.id in terms:
            raise DuplicateError(f"{file.name} describes {term.id} twice", hint="keep one of the two nodes")
        terms[term.id] = term
    meta = _meta(file, graphs[0])
    return OboFile(
        source=file.name,
        ontology=str(graphs[0].get("id", "")).rpartition("/")[2].partition(".")[0],
        title=next(iter(meta.of("title")), ""),
        version=meta.version or next(iter(meta.of("versionInfo")), ""),
        licence=next(iter(meta.of("license")), ""),
        terms=tuple(terms.values()),
    )


def compact_iri(iri: str) -> str:
    """The short form of an OBO id, such as HP:0001250; a short id is returned unchanged."""
    match = _COMPACT.match(iri)
    return f"{match[1]}:{match[2]}" if match else iri


def _graphs(file: TextFile) -> list[dict[str, Any]]:
    value = parse_json(file)
    graphs = value.get("graphs") if isinstance(value, dict) else None
    if not isinstance(graphs, list) or not graphs or not all(isinstance(graph, dict) for graph in graphs):
        raise FormatError(
            f"{file.name} is JSON, but not an OBO graph: it has no list called graphs",
            hint="OBO-graph JSON is what robot convert --format json writes",
        )
    return graphs


def _listed_objects(
    file: TextFile, owners: Iterable[dict[str, Any]], key: str, *, needed: tuple[str, ...]
) -> Iterator[dict[str, Any]]:
    """The objects in the lists called ``key`` of all owners, each with the texts that it needs."""
    for owner in owners:
        listed = owner.get(key) or []
        if not isinstance(listed, list):
            raise FormatError(f"{file.name} has {key} that is not a list: {str(listed)[:60]}")
        for entry in listed:
            if not isinstance(entry, dict) or not all(isinstance(entry.get(name), str) for name in needed):
                raise FormatError(f"{file.name} has one of its {key} without {' and '.join(needed)}: {str(entry)[:60]}")
            yield entry


def _obograph_term(node: dict[str, Any], meta: _Meta, parents: dict[str, list[str]]) -> OboTerm:
    name = compact_iri(node["id"])
    return OboTerm(
        id=name,
        name=str(node.get("lbl") or ""),
        synonyms=meta.synonyms,
        definition=meta.definition,
        parents=tuple(dict.fromkeys(parents.get(name, ()))),
        alternatives=meta.ids(_OTHER_ID),
        obsolete=meta.obsolete,
        replaced_by=meta.ids(_REPLACED),
        consider=meta.ids(_CONSIDER),
    )


@dataclass(frozen=True, slots=True)
class _Meta:
    """The content of ``meta``: texts, and properties by the last word of their IRI."""

    version: str
    obsolete: bool
    definition: str
    synonyms: tuple[str, ...]
    properties: tuple[tuple[str, str], ...]

    def of(self, predicate: str) -> tuple[str, ...]:
        """The values of one property."""
        return tuple(value for name, value in self.properties if name == predicate)

    def ids(self, predicate: str) -> tuple[str, ...]:
        """The values of one property as short ids, each once."""
        return tuple(dict.fromkeys(map(compact_iri, self.of(predicate))))


_NOTHING = _Meta("", False, "", (), ())


def _meta(file: TextFile, owner: dict[str, Any]) -> _Meta:
    meta = owner.get("meta")
    if not meta:
        return _NOTHING
    if not isinstance(meta, dict):
        raise FormatError(f"{file.name} has a meta that is not an object: {str(meta)[:60]}")
    definition = meta.get("definition") or {}
    properties = _listed_objects(file, [meta], "basicPropertyValues", needed=("pred", "val"))
    return _Meta(
        version=str(meta.get("version") or ""),
        obsolete=bool(meta.get("deprecated")),
        definition=str(definition.get("val", "")) if isinstance(definition, dict) else str(definition),
        synonyms=tuple(synonym["val"] for synonym in _listed_objects(file, [meta], "synonyms", needed=("val",))),
        properties=tuple((_LAST_WORD.split(annotation["pred"])[-1], annotation["val"]) for annotation in properties),
    )


# Ontology files: OBO text or OBO-graph JSON, plain or gzipped; the format is detected from the content.

_JSON = re.compile(rb"\{|\[\s*[{\[\]\"]")
"""The start of JSON, which differs from a stanza such as ``[Term]``."""


def read_obo(path: PathLike) -> OboFile:
    """The terms of an ontology file, in the order of the file, and the fields of its header."""
    return parse_obo(open_text(path))


def parse_obo(file: TextFile) -> OboFile:
    """The same from an opened text file."""
    start = file.data[:4096].lstrip()
    if start.startswith(b"<"):
        raise FormatError(
            f"{file.name} is XML, such as OWL; OBO text or OBO-graph JSON is needed",
            hint=f"robot convert --input {file.name} --output ontology.obo",
        )
    ontology = parse_obo_graph(file) if _JSON.match(start) else parse_obo_text(file)
    if not ontology.terms:
        raise InputError(f"{file.name} holds no terms", hint="a term is a [Term] stanza, or a node of JSON")
    return ontology
