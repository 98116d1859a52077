"""OBO-graph JSON, the format of ``hp.json`` and ``mondo.json``: nodes and edges with IRIs for ids."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from equipoise.data.jsontext import parse_json
from equipoise.data.oboterms import OboFile, OboTerm
from equipoise.data.text import TextFile
from equipoise.errors import DuplicateError, FormatError

_COMPACT = re.compile(r"^(?:https?|ftp)://.*[/#]([A-Za-z][\w.-]*?)_(\w+)$")
_OTHER_ID = "hasAlternativeId"
_REPLACED = "IAO_0100001"
_CONSIDER = "consider"


def parse_obo_graph(file: TextFile) -> OboFile:
    """The classes of all graphs in the file; properties and individuals are passed over."""
    graphs = _graphs(file)
    parents: dict[str, list[str]] = {}
    for edge in _each(file, graphs, "edges"):
        if edge.get("pred") == "is_a":
            parents.setdefault(compact(edge["sub"]), []).append(compact(edge["obj"]))
    terms: dict[str, OboTerm] = {}
    for node in _each(file, graphs, "nodes"):
        if node.get("type", "CLASS") != "CLASS":
            continue
        term = _term(node, parents)
        if term.id in terms:
            raise DuplicateError(f"{file.name} describes {term.id} twice", hint="keep one of the two nodes")
        terms[term.id] = term
    meta = _meta(graphs[0])
    return OboFile(
        source=file.name,
        ontology=str(graphs[0].get("id", "")).rpartition("/")[2].partition(".")[0],
        title=next(_values(meta, "title"), ""),
        version=str(meta.get("version") or next(_values(meta, "versionInfo"), "")),
        licence=next(_values(meta, "license"), ""),
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


def _each(file: TextFile, graphs: Iterable[dict[str, Any]], key: str) -> Iterator[dict[str, Any]]:
    needed = ("sub", "obj") if key == "edges" else ("id",)
    for graph in graphs:
        for each in graph.get(key) or ():
            if not isinstance(each, dict) or not all(isinstance(each.get(name), str) for name in needed):
                raise FormatError(
                    f"{file.name} has one of its {key} without {' and '.join(needed)}: {str(each)[:60]}"
                )
            yield each


def _term(node: dict[str, Any], parents: dict[str, list[str]]) -> OboTerm:
    name = compact(node["id"])
    meta = _meta(node)
    return OboTerm(
        id=name,
        name=str(node.get("lbl") or ""),
        synonyms=tuple(str(each["val"]) for each in meta.get("synonyms") or ()),
        definition=str((meta.get("definition") or {}).get("val", "")),
        parents=tuple(dict.fromkeys(parents.get(name, ()))),
        alternatives=_ids(meta, _OTHER_ID),
        obsolete=bool(meta.get("deprecated")),
        replaced_by=_ids(meta, _REPLACED),
        consider=_ids(meta, _CONSIDER),
    )


def _meta(owner: dict[str, Any]) -> dict[str, Any]:
    meta: dict[str, Any] = owner.get("meta") or {}
    return meta


def _ids(meta: dict[str, Any], predicate: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(compact(value) for value in _values(meta, predicate)))


def _values(meta: dict[str, Any], predicate: str) -> Iterator[str]:
    """The values of the properties whose IRI ends in this word."""
    for each in meta.get("basicPropertyValues") or ():
        if re.split(r"[/#]", each["pred"])[-1] == predicate:
            yield str(each["val"])
