"""Ontology files: OBO text and OBO graph JSON, and errors of other files."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.errors import DuplicateError, FormatError, InputError
from equipoise.io.obo import OboTerm, compact_iri, parse_obo, read_obo
from equipoise.io.text import TextFile

TEXT = """\
format-version: 1.2
data-version: t/releases/2026-03-04
ontology: t.obo
property_value: dc:title "Test \\"things\\"" xsd:string
property_value: terms:license https://example.org/licence

[Term]
id: T:0001
name: All
comment: nothing of this is kept
xref: X:1

[Term]
id: T:0002
name: Cough
alt_id: T:0020
alt_id: T:0021
def: "A \\"sudden\\" expulsion\\, of air." [PMID:1, "a note"]
synonym: "Coughing" EXACT layperson [X:1]
synonym: "Tussis: Latin" RELATED []
is_a: T:0001 {source="me"} ! All
relationship: part_of T:0003 ! other

[Term]
id: T:0003
name: obsolete bark
is_obsolete: true
replaced_by: T:0002
consider: T:0001

[Typedef]
id: part_of
name: part of
is_a: overlaps
"""

OBO = "http://purl.obolibrary.org/obo/"
IN_OWL = "http://www.geneontology.org/formats/oboInOwl#"
GRAPH = {
    "graphs": [
        {
            "id": f"{OBO}t.json",
            "meta": {
                "version": f"{OBO}t/releases/2026-03-04/t.json",
                "basicPropertyValues": [
                    {"pred": "http://purl.org/dc/elements/1.1/title", "val": 'Test "things"'},
                    {"pred": "http://purl.org/dc/terms/license", "val": "https://example.org/licence"},
                ],
            },
            "nodes": [
                {"id": f"{OBO}T_0001", "lbl": "All", "type": "CLASS"},
                {
                    "id": f"{OBO}T_0002",
                    "lbl": "Cough",
                    "type": "CLASS",
                    "meta": {
                        "definition": {"val": 'A "sudden" expulsion, of air.', "xrefs": ["PMID:1"]},
                        "synonyms": [
                            {"pred": "hasExactSynonym", "val": "Coughing"},
                            {"pred": "hasRelatedSynonym", "val": "Tussis: Latin"},
                        ],
                        "basicPropertyValues": [
                            {"pred": f"{IN_OWL}hasAlternativeId", "val": "T:0020"},
                            {"pred": f"{IN_OWL}hasAlternativeId", "val": "T:0021"},
                        ],
                    },
                },
                {
                    "id": f"{OBO}T_0003",
                    "lbl": "obsolete bark",
                    "type": "CLASS",
                    "meta": {
                        "deprecated": True,
                        "basicPropertyValues": [
                            {"pred": f"{OBO}IAO_0100001", "val": f"{OBO}T_0002"},
                            {"pred": f"{IN_OWL}consider", "val": "T:0001"},
                        ],
                    },
                },
                {"id": f"{OBO}part_of", "lbl": "part of", "type": "PROPERTY"},
            ],
            "edges": [
                {"sub": f"{OBO}T_0002", "pred": "is_a", "obj": f"{OBO}T_0001"},
                {"sub": f"{OBO}T_0002", "pred": f"{OBO}BFO_0000050", "obj": f"{OBO}T_0003"},
            ],
        }
    ]
}

TERMS = (
    OboTerm("T:0001", "All"),
    OboTerm(
        "T:0002",
        "Cough",
        synonyms=("Coughing", "Tussis: Latin"),
        definition='A "sudden" expulsion, of air.',
        parents=("T:0001",),
        alternatives=("T:0020", "T:0021"),
    ),
    OboTerm("T:0003", "obsolete bark", obsolete=True, replaced_by=("T:0002",), consider=("T:0001",)),
)


def text_file(content: str) -> TextFile:
    """A text file in memory."""
    return TextFile("t.obo", content.encode())


@pytest.mark.parametrize("content", [TEXT, TEXT.replace("\n", "\r\n"), json.dumps(GRAPH), json.dumps(GRAPH, indent=1)])
def test_both_formats_give_the_same_terms(content):
    result = parse_obo(text_file(content))
    assert result.terms == TERMS
    assert (result.ontology, result.title, result.release) == ("t", 'Test "things"', "2026-03-04")
    assert result.licence == "https://example.org/licence"


def test_gzipped_files_with_any_name_are_read(tmp_path: Path):
    (tmp_path / "any.thing").write_bytes(gzip.compress(TEXT.encode()))
    assert read_obo(tmp_path / "any.thing").terms == TERMS


@given(
    st.text(alphabet=st.characters(exclude_categories=["Cs", "Cc"])).map(str.strip),
    st.lists(st.text(alphabet=st.characters(exclude_categories=["Cs"], exclude_characters="\0\r"))),
)
def test_escaped_texts_are_unescaped(name, synonyms):
    def escape(value: str) -> str:
        return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")

    lines = ["[Term]", "id: T:1", f"name: {name.replace(chr(92), chr(92) * 2)}"]
    lines += [f'synonym: "{escape(synonym)}" EXACT []' for synonym in synonyms]
    term = parse_obo(text_file("\n".join(lines) + "\n")).terms[0]
    assert term.synonyms == tuple(synonyms)
    if not name.endswith("}"):  # a trailing {a="b"} is a qualifier, not part of the name
        assert term.name == name


def test_continued_lines_are_joined_and_comments_and_qualifiers_removed():
    content = (
        '! a comment\n[Term] ! one\nid: T:1 ! its id\nname: long \\\nname {source="X"}\n'
        "is_a: T:2\nis_a: T:2 ! again\n\n[Term]\nid: T:2\n"
    )
    first, second = parse_obo(text_file(content)).terms
    assert (first.id, first.name, first.parents) == ("T:1", "long name", ("T:2",))
    assert (second.id, second.name) == ("T:2", "")


def test_versions_without_a_date_are_kept():
    assert parse_obo(text_file("data-version: 4.2\n\n[Term]\nid: T:1\n")).release == "4.2"
    assert parse_obo(text_file("[Term]\nid: T:1\n")).release == ""


@pytest.mark.parametrize(
    ("content", "error", "fragment"),
    [
        ("[Term]\nname: anything\n", FormatError, "line 1 begins a term without an id"),
        ("[Term]\nid:\nname: anything\n", FormatError, "line 1 begins a term without an id"),
        ("[Term]\nid: T:1\nwhat is this\n", FormatError, "line 3 is neither a stanza nor a tag"),
        ("[Term]\nid: T:1\nsynonym: bare EXACT []\n", FormatError, "a text that has no quotes: bare"),
        ("[Term]\nid: T:1\n\n[Term]\nid: T:1\n", DuplicateError, "T:1 twice, from line 1 and from line 4"),
        ("ontology: t\n", InputError, "holds no terms"),
        ("a,b,c\n1,2,3\n", FormatError, "line 1 is neither"),
        ("<?xml version='1.0'?><rdf/>", FormatError, "is XML, such as OWL"),
        ('{"nodes": []}', FormatError, "is JSON, but not an OBO graph"),
        ('[{"text": "cough"}]', FormatError, "is JSON, but not an OBO graph"),
        ('{"graphs": [{"nodes": [{"lbl": "x"}]}]}', FormatError, "one of its nodes without id"),
        ('{"graphs": [{"edges": [{"sub": "x"}]}]}', FormatError, "one of its edges without sub and obj"),
        ('{"graphs": [{"nodes": [{"id": "x"}, {"id": "x"}]}]}', DuplicateError, "describes x twice"),
        ('{"graphs": [{"nodes": [{"id": "x", "meta": 3}]}]}', FormatError, "meta"),
        ('{"graphs": [{"nodes": [{"id": "x", "meta": {"synonyms": ["y"]}}]}]}', FormatError, "synonyms"),
        ('{"graphs": [{"nodes": 3}]}', FormatError, "nodes"),
        ('{"graphs": []}', FormatError, "is JSON, but not an OBO graph"),
    ],
)
def test_other_files_raise_errors(content, error, fragment):
    with pytest.raises(error, match=fragment):
        parse_obo(text_file(content))


@pytest.mark.parametrize(
    ("iri", "compact_id"),
    [
        ("http://purl.obolibrary.org/obo/HP_0001250", "HP:0001250"),
        ("HP:0001250", "HP:0001250"),
        ("http://example.org/onto#MY_TERM_12", "MY:TERM_12"),
        ("http://example.org/plain", "http://example.org/plain"),
    ],
)
def test_iris_are_compacted(iri, compact_id):
    assert compact_iri(iri) == compact_id
