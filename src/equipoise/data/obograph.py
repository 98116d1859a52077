"""OBO-graph JSON, the format of ``hp.json`` and ``mondo.json``: nodes and edges with IRIs for ids."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from equipoise.data.jsontext import parse_json
from equipoise.data.oboterms import OboFile, OboTerm
from equipoise.data.text import TextFile
from equipoise.errors import DuplicateError, FormatError

_COMPACT = re.compile(r"^(?:https?|ftp)://.*[/#]([A-Za-z][\w.-]*?)_(\w+)$")
_LAST_WORD = re.compile(r"[/#]")
_OTHER_ID = "hasAlternativeId"
_REPLACED = "IAO_0100001"
_CONSIDER = "consider"


def parse_obo_graph(file: TextFile) -> OboFile:
    """The classes of all graphs in the file; properties and individuals are passed over."""
    graphs = _graphs(file)
    parents: dict[str, list[str]] = {}
    for edge in _each(file, graphs, "edges", needed=("sub", "obj")):
        if edge.get("pred") == "is_a":
            parents.setdefault(compact(edge["sub"]), []).append(compact(edge["obj"]))
    terms: dict[str, OboTerm] = {}
    for node in _each(file, graphs, "nodes", needed=("id",)):
        if node.get("type", "CLASS") != "CLASS":
            continue
        term = _term(node, _meta(file, node), parents)
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


def compact(iri: str) -> str:
    """The short form of an OBO id; what is short already stays.

    >>> compact("http://purl.obolibrary.org/obo/HP_0001250")
    'HP:0001250'
    """
    match = _COMPACT.match(iri)
    return f"{match[1]}:{match[2]}" if match else iri


def _graphs(file: TextFile) -> list[dict[str, Any]]:
    value = parse_json(file)
    graphs = value.get("graphs") if isinstance(value, dict) else None
    if not isinstance(graphs, list) or not graphs or not all(isinstance(each, dict) for each in graphs):
        raise FormatError(
            f"{file.name} is JSON, but no OBO graph: it has no list called graphs",
            hint="OBO-graph JSON is what robot convert --format json writes",
        )
    return graphs


def _each(
    file: TextFile, owners: Iterable[dict[str, Any]], key: str, *, needed: tuple[str, ...]
) -> Iterator[dict[str, Any]]:
    """The objects in the lists called ``key`` of all owners, each with the texts that it needs."""
    for owner in owners:
        listed = owner.get(key) or []
        if not isinstance(listed, list):
            raise FormatError(f"{file.name} has {key} that are no list: {str(listed)[:60]}")
        for each in listed:
            if not isinstance(each, dict) or not all(isinstance(each.get(name), str) for name in needed):
                raise FormatError(
                    f"{file.name} has one of its {key} without {' and '.join(needed)}: {str(each)[:60]}"
                )
            yield each


def _term(node: dict[str, Any], meta: _Meta, parents: dict[str, list[str]]) -> OboTerm:
    name = compact(node["id"])
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
    """What stands under ``meta``: texts, and properties by the last word of their IRI."""

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
        return tuple(dict.fromkeys(map(compact, self.of(predicate))))


_NOTHING = _Meta("", False, "", (), ())


def _meta(file: TextFile, owner: dict[str, Any]) -> _Meta:
    meta = owner.get("meta")
    if not meta:
        return _NOTHING
    if not isinstance(meta, dict):
        raise FormatError(f"{file.name} has a meta that is no object: {str(meta)[:60]}")
    definition = meta.get("definition") or {}
    properties = _each(file, [meta], "basicPropertyValues", needed=("pred", "val"))
    return _Meta(
        version=str(meta.get("version") or ""),
        obsolete=bool(meta.get("deprecated")),
        definition=str(definition.get("val", "")) if isinstance(definition, dict) else str(definition),
        synonyms=tuple(each["val"] for each in _each(file, [meta], "synonyms", needed=("val",))),
        properties=tuple((_LAST_WORD.split(each["pred"])[-1], each["val"]) for each in properties),
    )
