"""The prefilter finds what the plain search finds, whatever the vectors, or says that it cannot."""

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
def at_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """The prefilter is used for any number of queries, with a product that needs no engine."""
    monkeypatch.setattr(stored_vectors, "_MIN_SCORES", 0)
    monkeypatch.setattr(stored_vectors, "int8_product", lambda dims: product)


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Ontology:
    """Terms named by three words each; many share a synonym."""
    rng = np.random.default_rng(0)
    blocks = [
        f"\n[Term]\nid: T:{number}\nname: {' '.join(rng.choice(WORDS, 3))} {number}\n"
        f'def: "{" ".join(rng.choice(WORDS, 6))}" []\nsynonym: "{" ".join(rng.choice(WORDS, 2))}" EXACT []\n'
        for number in range(1_500)
    ]
    return load_ontology(obo(tmp_path_factory.mktemp("many") / "many.obo", "".join(blocks)))


def made(seed: int, spec: str, spread: float) -> tuple[StoredVectorScorer, TermTexts, np.ndarray]:
    """Random terms with up to four synonyms, vectors around one direction, some equal; and queries."""
    rng = np.random.default_rng(seed)
    synonyms = [[f"s{at} {nth}" for nth in range(rng.integers(5))] for at in range(40)]
    definitions = [f"d{at}" if rng.random() < 0.7 else "" for at in range(40)]
    texts = component_texts([f"l{at}" for at in range(40)], synonyms, definitions)
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
def test_the_best_terms_are_those_of_the_plain_product(seed: int, strategy: str, spec: str, spread: float) -> None:
    fitted, texts, queries = made(seed, spec, spread)
    how = parse_strategy(strategy)
    others = sorted(how.parts - {"label"})
    width = {"label_only": texts.terms, "label_synonyms_max": texts.without_definitions}.get(strategy)
    found = Int8Prefilter(fitted, texts, others, fitted.int8_rows[:width], product, share=1.0).top_k(queries, 10)
    assert found is not None
    ((_, scores),) = fitted.vector_blocks(queries, len(queries), len(texts))
    plain = aggregate_scores(scores, texts, how).astype(np.float64)
    best = -np.sort(-plain, axis=1)[:, :10]
    noise = 1e-5 * np.abs(plain).max()
    assert found[1] == pytest.approx(best, abs=noise)
    assert np.take_along_axis(plain, found[0], axis=1) == pytest.approx(best, abs=noise)
    assert np.array_equal(texts.term[found[2]], found[0])
    assert np.take_along_axis(scores, found[2], axis=1) == pytest.approx(best, abs=noise)
    assert all(len(set(row)) == 10 for row in found[0].tolist())
    same = found[1][:, 1:] == found[1][:, :-1]
    assert (np.diff(found[0], axis=1)[same] > 0).all(), "equal scores are not in the order of the ontology"


@pytest.mark.parametrize("multi_vector", [True, False])
@pytest.mark.parametrize("strategy", PLAIN)
def test_a_search_with_the_prefilter_gives_the_same_answer(
    many: Ontology, monkeypatch: pytest.MonkeyPatch, strategy: str, multi_vector: bool
) -> None:
    system = TermRetriever("hash", many, strategy=strategy, multi_vector=multi_vector)
    queries = [*many.labels[:150], *(synonyms[0] for synonyms in many.synonyms[:50])]
    plain = system.search(queries, 5)
    used = counted(monkeypatch)
    screened = system.search(queries, 5)
    assert used.count(True) > 0
    assert_same(screened, plain)


def test_where_too_many_could_be_the_best_the_plain_product_answers(
    ontology: Ontology, monkeypatch: pytest.MonkeyPatch
) -> None:
    system = TermRetriever("hash", ontology)
    plain = system.search(["fits", "small"], 3)
    used = counted(monkeypatch)
    assert_same(system.search(["fits", "small"], 3), plain)
    assert used == [False]


@pytest.mark.usefixtures("at_hand")
@pytest.mark.parametrize("strategy", ["label_synonyms_min", "all_weighted", "definition", "max(synonyms)"])
def test_only_maxima_that_include_the_label_are_screened(ontology: Ontology, strategy: str) -> None:
    system = TermRetriever("hash", ontology)
    assert isinstance(system.fitted, StoredVectorScorer)
    assert make_prefilter(system.fitted, system.components, parse_strategy(strategy), 1) is None
    assert make_prefilter(system.fitted, system.components, parse_strategy("all_max"), 1) is not None


def test_a_few_queries_are_not_worth_it(ontology: Ontology, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_vectors, "int8_product", lambda dims: product)
    system = TermRetriever("hash", ontology)
    assert isinstance(system.fitted, StoredVectorScorer)
    assert make_prefilter(system.fitted, system.components, system.expression, 1) is None


def counted(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Screens are at hand from now on; whether each block of queries was answered by one."""
    used: list[bool] = []
    top_k = Int8Prefilter.top_k

    def watched(self: Int8Prefilter, vectors: np.ndarray, k: int) -> object:
        found = top_k(self, vectors, k)
        used.append(found is not None)
        return found

    monkeypatch.setattr(stored_vectors, "_MIN_SCORES", 0)
    monkeypatch.setattr(stored_vectors, "int8_product", lambda dims: product)
    monkeypatch.setattr(Int8Prefilter, "top_k", watched)
    return used


def assert_same(ours: TermHits, plain: TermHits) -> None:
    assert ours.scores == pytest.approx(plain.scores, abs=1e-6)
    # Scores that differ by their rounding alone may change places.
    apart = np.abs(np.diff(plain.scores, axis=1)) > 1e-6
    clear = np.column_stack([apart, np.zeros(len(apart), bool)])
    clear[:, 1:] &= apart
    assert np.array_equal(ours.terms[clear], plain.terms[clear])
    assert np.array_equal(ours.component[clear], plain.component[clear])
