"""The one-line call ``phenotypes.query``: plain records, one text or many, and shared loading."""

from __future__ import annotations

from pathlib import Path

import pytest

from equipoise import phenotypes
from equipoise.domains.phenotypes.index.retriever import TermRetriever
from equipoise.domains.phenotypes.query import read_queries
from equipoise.errors import FormatError, InputError
from toy_ontology import obo


@pytest.fixture
def toy_path(tmp_path: Path) -> str:
    return str(obo(tmp_path / "toy.obo"))


def test_one_text_gives_one_list_and_several_texts_give_several(toy_path: str) -> None:
    first = phenotypes.query("convulsions", "tfidf:", toy_path, k=2)
    assert (first[0].rank, first[0].id, first[0].component, first[0].text) == (1, "T:2", "synonym", "Convulsions")
    assert phenotypes.query(["convulsions", "small body"], "tfidf:", toy_path, k=2)[0] == first


def test_scores_equal_those_of_the_retriever(toy_path: str) -> None:
    ontology = phenotypes.load_ontology(toy_path)
    expected = TermRetriever("hash", ontology).search(["fits"], 3)
    matches = phenotypes.query("fits", "hash", ontology, k=3)
    assert [match.id for match in matches] == [ontology.ids[term] for term in expected.terms[0]]
    assert [match.score for match in matches] == expected.scores[0].tolist()


def test_options_are_passed_to_the_retriever(toy_path: str) -> None:
    assert phenotypes.query("fits", "hash", toy_path, multi_vector=False)[0].component == "whole"
    weighted = phenotypes.query("fits", "tfidf:", toy_path, strategy="all_weighted", weights=[0, 1, 0])
    assert weighted[0].score == pytest.approx(1.0)


def test_files_without_texts_are_errors(tmp_path: Path) -> None:
    empty, table = tmp_path / "empty.txt", tmp_path / "table.csv"
    empty.write_text("\n \n")
    table.write_text("text,id\n,1\n")
    with pytest.raises(InputError):
        read_queries(empty)
    with pytest.raises(FormatError):
        read_queries(table)
