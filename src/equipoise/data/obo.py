"""Files of ontologies: OBO text or OBO-graph JSON, plain or gzipped, told apart by their content."""

from __future__ import annotations

import re

from equipoise.data.obograph import parse_obo_graph
from equipoise.data.oboterms import OboFile, OboTerm
from equipoise.data.obotext import parse_obo_text
from equipoise.data.text import PathLike, TextFile, open_text
from equipoise.errors import FormatError, InputError

_JSON = re.compile(rb"\{|\[\s*[{\[\]\"]")
"""How JSON begins and a stanza such as ``[Term]`` does not."""

__all__ = ["OboFile", "OboTerm", "parse_obo", "read_obo"]


def read_obo(path: PathLike) -> OboFile:
    """The terms of an ontology file, in the order of the file, and what its header says."""
    return parse_obo(open_text(path))


def parse_obo(file: TextFile) -> OboFile:
    """The same from a text that was opened already."""
    start = file.data[:4096].lstrip()
    if start.startswith(b"<"):
        raise FormatError(
            f"{file.name} is XML, such as OWL; OBO text or OBO-graph JSON is needed",
            hint=f"robot convert --input {file.name} --output ontology.obo",
        )
    found = parse_obo_graph(file) if _JSON.match(start) else parse_obo_text(file)
    if not found.terms:
        raise InputError(f"{file.name} holds no terms", hint="a term is a [Term] stanza, or a node of JSON")
    return found
