"""The prefilter gives the results of the plain search for any vectors, or gives no result."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.domains.phenotypes.index import stored_vectors
from equipoise.domains.phenotypes.index.aggregation import aggregate_scores, parse_strategy
from equipoise.domains.phenotypes.index.files import TermTexts, component_texts
from equipoise.domains.phenotypes.index.retriever import TermHits, TermRetriever
from equipoise.domains.phenotypes.index.stored_vectors import Int8Prefilter, StoredVectorScorer, make_prefilter
from equipoise.domains.phenotypes.ontology import Ontology, load_ontology
from equipoise.models.dense import DenseRetriever
from equipoise.models.retriever import retriever
from toy_ontology import obo

PLAIN = ("label_only", "label_synonyms_max", "all_max")
WORDS = [
    "acute",
    "chronic",
    "mild",
    "severe",
    "renal",
    "hepatic",
    "cardiac",
    "retinal",
    "pain",
    "loss",
    "growth",
    "delay",
    "fever",
    "cyst",
]


def product(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    return left.astype(np.int32) @ right.astype(np.int32).T


@pytest.fixture
def prefilter_enabled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use the prefilter for any number of queries, with a numpy product."""
    monkeypatch.setattr(stored_vectors, "_MIN_SCORES", 0)
    monkeypatch.setattr(stored_vectors, "int8_product", lambda dims: product)


@pytest.fixture(scope="module")
def many_terms(tmp_path_factory: pytest.TempPathFactory) -> Ontology:
    """Terms with names of three words; many have a common synonym."""
    rng = np.random.default_rng(0)
    blocks = [
        f"\n[Term]\nid: T:{number}\nname: {' '.join(rng.choice(WORDS, 3))} {number}\n"
        f'def: "{" ".join(rng.choice(WORDS, 6))}" []\nsynonym: "{" ".join(rng.choice(WORDS, 2))}" EXACT []\n'
        for number in range(1_500)
    ]
    return load_ontology(obo(tmp_path_factory.mktemp("many") / "many.obo", "".join(blocks)))


def random_index(seed: int, spec: str, spread: float) -> tuple[StoredVectorScorer, TermTexts, np.ndarray]:
    """Random terms with up to four synonyms, vectors around one direction, some of them equal, and queries."""
    rng = np.random.default_rng(seed)
    synonyms = [[f"s{term} {index}" for index in range(rng.integers(5))] for term in range(40)]
    definitions = [f"d{term}" if rng.random() < 0.7 else "" for term in range(40)]
    texts = component_texts([f"l{term}" for term in range(40)], synonyms, definitions)
    vectors = (rng.normal(size=6) + spread * rng.normal(size=(len(texts) + 5, 6))).astype(np.float32)
    vectors[rng.integers(len(texts), size=30)] = vectors[0]
    system = retriever(spec)
    assert isinstance(system, DenseRetriever)
    return StoredVectorScorer(system, vectors[:-5]), texts, vectors[-5:]


@given(
    st.integers(0, 10_000),
    st.sampled_from(PLAIN),
    st.sampled_from(["hash,dim=6", "hash,dim=6,geometry=dot", "hash,dim=6,geometry=euclidean"]),
    st.sampled_from([0.001, 0.1, 10.0]),
)
def test_the_best_terms_equal_those_of_the_plain_product(seed: int, strategy: str, spec: str, spread: float) -> None:
    fitted, texts, queries = random_index(seed, spec, spread)
    expression = parse_strategy(strategy)
    others = sorted(expression.parts - {"label"})
    width = {"label_only": texts.terms, "label_synonyms_max": texts.without_definitions}.get(strategy)
    top = Int8Prefilter(fitted, texts, others, fitted.int8_rows[:width], product, share=1.0).top_k(queries, 10)
    assert top is not None
    ((_, scores),) = fitted.vector_blocks(queries, len(queries), len(texts))
    expected = aggregate_scores(scores, texts, expression).astype(np.float64)
    best = -np.sort(-expected, axis=1)[:, :10]
    noise = 1e-5 * np.abs(expected).max()
    assert top[1] == pytest.approx(best, abs=noise)
    assert np.take_along_axis(expected, top[0], axis=1) == pytest.approx(best, abs=noise)
    assert np.array_equal(texts.term[top[2]], top[0])
    assert np.take_along_axis(scores, top[2], axis=1) == pytest.approx(best, abs=noise)
    assert all(len(set(row)) == 10 for row in top[0].tolist())
    same = top[1][:, 1:] == top[1][:, :-1]
    assert (np.diff(top[0], axis=1)[same] > 0).all(), "equal scores are not in the order of the ontology"


@pytest.mark.parametrize("multi_vector", [True, False])
@pytest.mark.parametrize("strategy", PLAIN)
def test_a_search_with_the_prefilter_gives_the_same_hits(
    many_terms: Ontology, monkeypatch: pytest.MonkeyPatch, strategy: str, multi_vector: bool
) -> None:
    system = TermRetriever("hash", many_terms, strategy=strategy, multi_vector=multi_vector)
    queries = [*many_terms.labels[:150], *(synonyms[0] for synonyms in many_terms.synonyms[:50])]
    expected = system.search(queries, 5)
    prefilter_used = record_prefilter_use(monkeypatch)
    hits = system.search(queries, 5)
    assert prefilter_used.count(True) > 0
    assert_same(hits, expected)


def test_with_too_many_candidates_the_plain_product_is_used(
    ontology: Ontology, monkeypatch: pytest.MonkeyPatch
) -> None:
    system = TermRetriever("hash", ontology)
    expected = system.search(["fits", "small"], 3)
    prefilter_used = record_prefilter_use(monkeypatch)
    assert_same(system.search(["fits", "small"], 3), expected)
    assert prefilter_used == [False]


@pytest.mark.usefixtures("prefilter_enabled")
@pytest.mark.parametrize("strategy", ["label_synonyms_min", "all_weighted", "definition", "max(synonyms)"])
def test_only_maxima_that_include_the_label_are_prefiltered(ontology: Ontology, strategy: str) -> None:
    system = TermRetriever("hash", ontology)
    assert isinstance(system.fitted, StoredVectorScorer)
    assert make_prefilter(system.fitted, system.components, parse_strategy(strategy), 1) is None
    assert make_prefilter(system.fitted, system.components, parse_strategy("all_max"), 1) is not None


def test_a_few_queries_are_not_prefiltered(ontology: Ontology, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_vectors, "int8_product", lambda dims: product)
    system = TermRetriever("hash", ontology)
    assert isinstance(system.fitted, StoredVectorScorer)
    assert make_prefilter(system.fitted, system.components, system.expression, 1) is None


def record_prefilter_use(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Enable the prefilter, and record for each block of queries whether it gave the result."""
    prefilter_used: list[bool] = []
    top_k = Int8Prefilter.top_k

    def recording_top_k(self: Int8Prefilter, vectors: np.ndarray, k: int) -> object:
        top = top_k(self, vectors, k)
        prefilter_used.append(top is not None)
        return top

    monkeypatch.setattr(stored_vectors, "_MIN_SCORES", 0)
    monkeypatch.setattr(stored_vectors, "int8_product", lambda dims: product)
    monkeypatch.setattr(Int8Prefilter, "top_k", recording_top_k)
    return prefilter_used


def assert_same(hits: TermHits, expected: TermHits) -> None:
    assert hits.scores == pytest.approx(expected.scores, abs=1e-6)
    # Scores that differ only by rounding may be swapped.
    separated = np.abs(np.diff(expected.scores, axis=1)) > 1e-6
    clear = np.column_stack([separated, np.zeros(len(separated), bool)])
    clear[:, 1:] &= separated
    assert np.array_equal(hits.terms[clear], expected.terms[clear])
    assert np.array_equal(hits.component[clear], expected.component[clear])
