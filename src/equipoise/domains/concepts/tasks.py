"""The five tasks of a concept set on one model: the evidence, then every metric of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from equipoise.domains.concepts.concept_set import (
    AnnotatedSentence,
    ConceptSet,
    EntityMention,
    Relation,
    relation_query,
)
from equipoise.domains.concepts.kmeans import fast_kmeans, rotate_to_span
from equipoise.domains.concepts.scores import CONCEPT_SCORES
from equipoise.domains.concepts.uncertainty import Parts, ResamplingPlan, TaskEvidence, per_unit, permutation_chance
from equipoise.errors import InputError
from equipoise.evidence.ranking import Ranking
from equipoise.evidence.space import Space
from equipoise.geometry.search import score_blocks
from equipoise.metrics.base import Metric
from equipoise.metrics.class_separation import ClusterCoherence, ClusterSeparation, NeighborPurity, Silhouette
from equipoise.metrics.clustering import AdjustedRand, MutualInformation, VMeasure
from equipoise.metrics.intrinsic import (
    Diversity,
    EffectiveRank,
    EmbeddingVariance,
    Hubness,
    Isotropy,
    MeanCosine,
    NormRatio,
    Uniformity,
    random_vectors,
)
from equipoise.metrics.labels import Accuracy
from equipoise.metrics.pairs import MeanAbsoluteError, Pearson, Spearman, WithinTolerance
from equipoise.metrics.ranking import HitRate, MeanRank, ReciprocalRank
from equipoise.metrics.structure import Alignment, EdgeCoherence, GraphClustering, GraphDensity, edge_cosines
from equipoise.runs.evaluate import evaluate
from equipoise.stats.corpus_intervals import HALF_SAMPLES, WITH_REPLACEMENT, value_or_nan
from equipoise.stats.estimate import result_from_values
from equipoise.tasks.classification import cluster_texts, linear_probe
from equipoise.tasks.similarity import Encode, encode_checked, paired_cosine, similarity, unit_rows

if TYPE_CHECKING:
    from equipoise.config import StatsConfig
    from equipoise.evidence.base import Evidence
    from equipoise.evidence.labels import Labels
    from equipoise.stats.result import Estimate, Result
    from equipoise.types import Floats, Ids, Ints

# Entities: clustering by type, and similarity to their sentences.


@dataclass(frozen=True)
class EntityEvidence:
    """Entities by type, and the similarity of each mention to its sentence.

    ``space`` has one point an entity: one that is named in three sentences is still one, since copies of a
    point would be its nearest neighbours. ``entity_text`` has one cosine a mention, ``mention_ids`` names
    them, and ``sentence_of`` holds the sentence of each, so that sentences can be resampled.
    """

    space: Space
    names: tuple[str, ...]
    entity_text: Floats
    mention_ids: Ids
    sentence_of: Ints
    entity_text_chance: float
    """The mean cosine of the mentions with the other sentences; NaN for a single one."""
    seed: int = 0

    @cached_property
    def probed(self) -> Labels:
        """The type of each entity as a cross-validated linear probe predicts it."""
        return linear_probe(self.space, groups=self.names, seed=self.seed)


def entity_evidence(encode: Encode, sentences: Sequence[AnnotatedSentence], *, seed: int = 0) -> EntityEvidence:
    """Embed sentences and entities; ``seed`` decides the folds of the probe.

    >>> vectors = {"Plato wrote Laws.": [1.0, 1.0], "Plato": [1.0, 0.0], "Laws": [0.0, 1.0]}
    >>> mentions = (EntityMention("Plato", "PERSON"), EntityMention("Laws", "WORK"))
    >>> marked = AnnotatedSentence("Plato wrote Laws.", mentions)
    >>> found = entity_evidence(lambda texts: [vectors[text] for text in texts], [marked])
    >>> found.entity_text.round(3).tolist(), found.space.classes.tolist()
    ([0.707, 0.707], ['PERSON', 'WORK'])
    """
    mentions = [(index, entity) for index, sentence in enumerate(sentences) for entity in sentence.entities]
    kinds = list(dict.fromkeys((entity.text, entity.label) for _, entity in mentions))
    if len({label for _, label in kinds}) < 2:
        raise InputError("the sentences have entities of fewer than two types", hint="types need others to differ from")
    texts = [sentence.text for sentence in sentences]
    names = [text for text, _ in kinds]
    vectors = encode_checked(encode, texts + names)
    sentence_vectors, mention_vectors = vectors[: len(texts)], vectors[len(texts) :]
    row = {kind: index for index, kind in enumerate(kinds)}
    rows = np.array([row[entity.text, entity.label] for _, entity in mentions], dtype=np.int64)
    inside = np.array([index for index, _ in mentions], dtype=np.int64)
    return EntityEvidence(
        Space.of(mention_vectors, labels=[label for _, label in kinds], unit_ids=_point_ids(kinds)),
        tuple(names),
        paired_cosine(mention_vectors[rows], sentence_vectors[inside]),
        _mention_ids(mentions),
        inside,
        _elsewhere(mention_vectors[rows], sentence_vectors, inside),
        seed,
    )


def _elsewhere(mentions: Floats, sentences: Floats, inside: Ints) -> float:
    """The mean cosine of mentions with sentences that they are not marked in: pairs dealt at random."""
    if len(sentences) < 2:
        return float("nan")
    # The sum of cosines with all sentences is one product with the sum of their directions.
    total = unit_rows(mentions) @ unit_rows(sentences).sum(axis=0)
    own_cosine = paired_cosine(mentions, sentences[inside])
    return float(np.mean((total - own_cosine) / (len(sentences) - 1)))


def _point_ids(kinds: Sequence[tuple[str, str]]) -> list[str]:
    """The name of each entity, with its type where a name has several."""
    times = Counter(text for text, _ in kinds)
    return [f"{text} ({label})" if times[text] > 1 else text for text, label in kinds]


def _mention_ids(mentions: Sequence[tuple[int, EntityMention]]) -> Ids:
    """The number of the sentence and the name, numbered where a sentence marks it several times."""
    times: Counter[tuple[int, str]] = Counter()
    ids = []
    for index, entity in mentions:
        times[index, entity.text] += 1
        nth = times[index, entity.text]
        ids.append(f"{index + 1}: {entity.text}{f' ({nth})' if nth > 1 else ''}")
    return np.array(ids, dtype=object)


# Relations: similarity of related entities, and retrieval of the object of a relation.


@dataclass(frozen=True)
class RelationEvidence:
    """Entities and what joins them.

    ``space`` has one point an entity and one edge a pair that is related, in whatever way; relation coherence
    is ``Coherence`` on it. ``ranking`` has one unit a relation: the rank of its object among all entities
    but the subject. Other correct answers to the same query are not candidates. ``subjects`` can
    serve as clusters: relations of one subject have nearly the same query vector.
    """

    space: Space
    ranking: Ranking
    subjects: Ids

    @property
    def graph_density(self) -> float:
        """Edges over possible edges of the directed graph, by networkx; not capped."""
        return GraphDensity().value(self.space)

    @property
    def clustering_coefficient(self) -> float:
        """Mean clustering coefficient of the graph without directions, by networkx."""
        return GraphClustering().value(self.space)


def relation_evidence(encode: Encode, relations: Sequence[Relation]) -> RelationEvidence:
    """Embed all entities, join the related ones, and look for the object of each relation.

    The question is the subject and the predicate as words, ``Plato wrote``; the answers are ranked by cosine.

    >>> vectors = {"Plato": [1.0, 0.0], "Laws": [0.0, 1.0], "Kant": [0.6, 0.8], "Plato wrote": [0.2, 1.0]}
    >>> vectors |= {"Kant read": [1.0, 0.1]}
    >>> said = [Relation("Plato", "wrote", "Laws"), Relation("Kant", "read", "Plato")]
    >>> relation_evidence(lambda texts: [vectors[text] for text in texts], said).ranking.ranks
    array([1., 1.])
    """
    if len(relations) < 2:
        raise InputError(
            f"there {'is one relation' if relations else 'are no relations'}",
            hint="an object can only be looked for among several entities",
        )
    names = list(dict.fromkeys(name for relation in relations for name in (relation.subject, relation.object)))
    row = {name: index for index, name in enumerate(names)}
    questions = [relation_query(relation) for relation in relations]
    query_row = {question: index for index, question in enumerate(dict.fromkeys(questions))}
    vectors = encode_checked(encode, [*names, *query_row])
    ends = np.array([(row[relation.subject], row[relation.object]) for relation in relations], dtype=np.int64)
    queries = vectors[len(names) :][[query_row[question] for question in questions]]
    return RelationEvidence(
        Space.of(vectors[: len(names)], edges=np.unique(ends, axis=0), unit_ids=names),
        _ranking(queries, vectors[: len(names)], ends, _rivals(questions, ends), relations),
        np.array([relation.subject for relation in relations], dtype=object),
    )


def _rivals(questions: Sequence[str], ends: Ints) -> list[list[int]]:
    """For each relation, the other entities that answer its query."""
    answers: dict[str, set[int]] = {}
    for question, (_, answer) in zip(questions, ends.tolist(), strict=True):
        answers.setdefault(question, set()).add(answer)
    return [
        sorted(answers[question] - {answer}) for question, answer in zip(questions, ends[:, 1].tolist(), strict=True)
    ]


def _ranking(
    queries: Floats, corpus: Floats, ends: Ints, rivals: list[list[int]], relations: Sequence[Relation]
) -> Ranking:
    """The rank of each object; NaN marks entities that are not candidates."""

    def masked() -> Iterator[tuple[slice, NDArray[Any]]]:
        for rows, scores in score_blocks(queries, corpus, geometry="cosine"):
            for row, others in zip(scores, rivals[rows], strict=True):
                row[others] = np.nan
            yield rows, scores

    ranking = Ranking.from_blocks(
        masked(),
        ends[:, 1],
        units=len(queries),
        corpus=len(corpus),
        exclude=ends[:, 0],
        unit_ids=[" | ".join((relation.subject, relation.predicate, relation.object)) for relation in relations],
    )
    pool = ranking.candidates - np.array([len(others) for others in rivals])
    return replace(ranking, candidates=pool, depth=pool)


# Embedding quality: metrics of the vectors of standard concepts, without ground truth.


def concept_space(encode: Encode, concepts: Sequence[str]) -> Space:
    """The vectors of the concepts; a unit is a concept.

    >>> len(concept_space(lambda texts: [[1.0, 0.0], [0.0, 1.0]], ["amor fati", "qualia"]))
    2
    """
    if len(concepts) < 2:
        raise InputError(
            f"there {'is one concept' if concepts else 'are no concepts'}",
            hint="vectors need others to differ from",
        )
    return Space.of(encode_checked(encode, list(concepts)), unit_ids=list(concepts))


# Errors of a mean over pairs that share members: relations of one entity are not independent.


def dyadic_weights(edges: Ints, points: int, draws: int, rng: np.random.Generator) -> Floats:
    """One row per resample and one column per edge: weights with variance 1, and covariance 1 if edges share a node.

    No weights have exactly these covariances in every graph; the nearest that exist are a little larger.

    >>> apart = dyadic_weights(np.array([[0, 1], [2, 3]]), 4, 20_000, np.random.default_rng(0))
    >>> bool(np.allclose(np.cov(apart.T), np.eye(2), atol=0.05))
    True
    """
    ends = np.zeros((len(edges), points))
    rows = np.arange(len(edges))
    ends[rows, edges[:, 0]] = ends[rows, edges[:, 1]] = 1.0
    # Edges that meet share 1 in ends @ ends.T, but an edge shares 2 with itself: one of them is taken off,
    # and negative variances are set to 0. The eigenvalues are those of the smaller matrix.
    values, vectors = np.linalg.eigh(ends.T @ ends)
    above_one = values > 1.0
    across = ends @ vectors[:, above_one] * np.sqrt((values[above_one] - 1.0) / values[above_one])
    return np.asarray(rng.standard_normal((draws, int(above_one.sum()))) @ across.T)


def dyadic_errors(values: Floats, edges: Ints, points: int, draws: int, rng: np.random.Generator) -> Floats:
    """Errors of the mean of ``values`` (one per edge): one per resample."""
    weights = dyadic_weights(edges, points, draws, rng)
    return np.asarray(weights @ (values - values.mean()) / len(values))


SPACE_RESAMPLES = 200
"""Resampled parts of a space, for the errors of its metrics."""
N_RANDOM_BASELINES = 20
"""Sets of random vectors that K-means is run on for the chance level."""
N_KMEANS_SEEDS = 10
"""Other seeds that K-means is run with, to see how much a score owes to where it began."""
N_NEIGHBORS = 3
"""Neighbours that hubness counts among the standard concepts, which are few."""

EUCLIDEAN = Silhouette(distance="euclidean")
"""What the concept scores are defined with: scikit-learn's silhouette_score by default."""

Given = Mapping[str, Any]
Named = Mapping[str, Metric[Any]]


def _figures(metrics: Named) -> Callable[[Evidence], Parts]:
    """The parts of a blend on any evidence, NaN where it cannot give them."""
    return lambda evidence: {
        name: value_or_nan(lambda part, metric=metric: metric.measure(part).value, evidence)  # type: ignore[misc]
        for name, metric in metrics.items()
    }


def _estimates(result: Result, metrics: Named) -> dict[str, Estimate]:
    return {name: result.estimates[metric.name] for name, metric in metrics.items()}


def _chances(parts: Mapping[str, Estimate]) -> dict[str, float]:
    return {name: estimate.chance for name, estimate in parts.items()}


def observe_similarity(encode: Encode, field: ConceptSet, system: str, config: StatsConfig) -> TaskEvidence:
    """Cosines of pairs against what is expected of them."""
    pairs = similarity(encode, field.pairs or ())
    metrics: Named = {"accuracy": WithinTolerance(0.1), "correlation": Pearson(), "mae": MeanAbsoluteError()}
    reference: Named = {"Spearman": Spearman(), "mean absolute error": MeanAbsoluteError()}
    result = evaluate(pairs, [*metrics.values(), Spearman()], system=system, config=per_unit(config))
    parts, figures = _estimates(result, metrics), _figures(metrics)
    return TaskEvidence(
        CONCEPT_SCORES["similarity"],
        parts,
        _estimates(result, reference),
        {"similarity": result},
        "similarity",
        ResamplingPlan("pairs", len(pairs), WITH_REPLACEMENT, lambda rows: figures(pairs.take(rows))),
        _chances(parts),
        chance_tests=permutation_chance(pairs, {"Spearman": Spearman()}, seed=config.seed),
        pairs=pairs,
    )


def observe_clustering(encode: Encode, field: ConceptSet, system: str, config: StatsConfig) -> TaskEvidence:
    """K-means with the true number of clusters, and whether it found the true ones."""
    clustered = cluster_texts(encode, field.clusters or (), seed=config.seed)
    count = len(field.clusters or ())
    metrics: Named = {
        "silhouette_score": EUCLIDEAN,
        "cluster_coherence": ClusterCoherence(),
        "cluster_separation": ClusterSeparation(),
    }
    figures = _figures(metrics)

    vectors = rotate_to_span(clustered.found.vectors.astype(np.float64))

    def again(rows: Ints, state: int) -> Parts:
        """K-means with a random start, since the initialisation is part of the variability of the score."""
        return figures(Space.of(vectors[rows], labels=fast_kmeans(vectors[rows], count, seed=state)))

    def resample(rows: Ints) -> Parts:
        return again(rows, int(rows @ np.arange(1, len(rows) + 1)))

    every = np.arange(len(vectors))
    others = [CONCEPT_SCORES["clustering"].value(again(every, config.seed + 1 + at)) for at in range(N_KMEANS_SEEDS)]
    result = evaluate(
        clustered.found, list(metrics.values()), system=system, config=replace(config, n_resamples=1), chance=False
    )
    chance = _random_parts(clustered.found, count, figures, config.seed)
    result = _with_chances(result, {metrics[name].name: value for name, value in chance.items()})
    matched: Named = {"ARI": AdjustedRand(), "NMI": MutualInformation(), "V-measure": VMeasure()}
    labels = evaluate(
        clustered.labels,
        list(matched.values()),
        system=system,
        config=replace(config, n_resamples=SPACE_RESAMPLES),
        chance=False,
    )
    chance_tests = permutation_chance(clustered.labels, matched, seed=config.seed)
    chances = {matched[name].name: test.chance for name, test in chance_tests.items()}
    # The mean over all shuffles is known here.
    labels = _with_chances(labels, {**chances, AdjustedRand().name: 0.0})
    true: Named = {"silhouette, true clusters": Silhouette(), "neighbours, same cluster": NeighborPurity()}
    space = evaluate(
        clustered.space, list(true.values()), system=system, config=replace(config, n_resamples=SPACE_RESAMPLES)
    )
    return TaskEvidence(
        CONCEPT_SCORES["clustering"],
        _estimates(result, metrics),
        {**_estimates(labels, matched), **_estimates(space, true)},
        {"clustering": result, "clusters-found": labels, "clusters-true": space},
        "clustering",
        ResamplingPlan("concepts", len(clustered.found), HALF_SAMPLES, resample),
        chance,
        method=clustered.method,
        others=others,
        chance_tests=chance_tests,
        space=clustered.space,
    )


def _random_parts(space: Space, count: int, figures: Callable[[Evidence], Parts], seed: int) -> dict[str, float]:
    """The parts of the clustering score where there is nothing to find: K-means on random directions."""
    rng = np.random.default_rng([seed, count])
    rows = []
    for _ in range(N_RANDOM_BASELINES):
        vectors = rotate_to_span(random_vectors(space, rng).vectors.astype(np.float64))
        rows.append(figures(Space.of(vectors, labels=fast_kmeans(vectors, count, seed=seed))))
    return {name: float(np.mean([row[name] for row in rows])) for name in rows[0]}


def observe_entities(encode: Encode, field: ConceptSet, system: str, config: StatsConfig) -> TaskEvidence:
    """Entities by type, and each with its sentence."""
    sentences = field.sentences or ()
    evidence = entity_evidence(encode, sentences, seed=config.seed)
    points = _points_of_mentions(sentences)
    reference: Named = {"neighbours, same type": NeighborPurity()}
    space = evaluate(
        evidence.space,
        [EUCLIDEAN, *reference.values()],
        system=system,
        config=replace(config, n_resamples=SPACE_RESAMPLES),
    )
    text = result_from_values(
        system,
        evidence.mention_ids,
        {"entity_text_similarity": evidence.entity_text},
        bounds=(-1.0, 1.0),
        unit="cosine",
        chance={"entity_text_similarity": evidence.entity_text_chance},
        config=replace(per_unit(config), clusters=evidence.sentence_of),
    )
    probed = evaluate(evidence.probed, [Accuracy()], system=system, config=per_unit(config), chance=False)
    chance_tests = permutation_chance(evidence.probed, {"linear probe": Accuracy()}, seed=config.seed)
    probed = _with_chances(probed, {Accuracy().name: chance_tests["linear probe"].chance})
    parts = {
        "entity_clustering_silhouette": space.estimates[EUCLIDEAN.name],
        "avg_entity_text_similarity": text.estimates["entity_text_similarity"],
    }

    def resample(rows: Ints) -> Parts:
        """The entities and the mentions of some of the sentences."""
        mask = np.isin(evidence.sentence_of, rows)
        kinds = evidence.space.take(np.unique(points[mask]))
        return {
            "entity_clustering_silhouette": value_or_nan(lambda part: EUCLIDEAN.measure(part).value, kinds),
            "avg_entity_text_similarity": float(evidence.entity_text[mask].mean()) if mask.any() else np.nan,
        }

    return TaskEvidence(
        CONCEPT_SCORES["entities"],
        parts,
        {**_estimates(space, reference), "linear probe": probed.estimates[Accuracy().name]},
        {"entities": space, "entity-text": text, "entity-types": probed},
        "entities",
        ResamplingPlan("sentences", len(sentences), HALF_SAMPLES, resample),
        _chances(parts),
        chance_tests=chance_tests,
        space=evidence.space,
    )


def _points_of_mentions(sentences: Sequence[Any]) -> Ints:
    """For each mention, the index of its entity among the distinct ones."""
    mentions = [(entity.text, entity.label) for sentence in sentences for entity in sentence.entities]
    index = {kind: at for at, kind in enumerate(dict.fromkeys(mentions))}
    return np.array([index[kind] for kind in mentions], dtype=np.int64)


def observe_relations(encode: Encode, field: ConceptSet, system: str, config: StatsConfig) -> TaskEvidence:
    """Related entities against all others, and the search for the object of each relation."""
    evidence = relation_evidence(encode, field.relations or ())
    coherence: Named = {"relation_coherence": EdgeCoherence()}
    graph: Named = {"graph_density": GraphDensity(), "clustering_coefficient": GraphClustering()}
    reference: Named = {"coherence": EdgeCoherence(), "alignment": Alignment()}
    space = evaluate(
        evidence.space,
        list(reference.values()),
        system=system,
        config=replace(config, n_resamples=SPACE_RESAMPLES),
    )
    fixed = evaluate(evidence.space, list(graph.values()), system=system, config=replace(config, n_resamples=1))
    space = replace(space, estimates={**space.estimates, **fixed.estimates})
    links: Named = {"MRR of the object": ReciprocalRank(), "HR@10": HitRate(10), "mean rank": MeanRank()}
    ranked = evaluate(
        evidence.ranking,
        list(links.values()),
        system=system,
        config=replace(per_unit(config), clusters=evidence.subjects.tolist()),
    )
    parts = _estimates(space, {**coherence, **graph})

    def errors(draws: int, rng: np.random.Generator) -> dict[str, Floats]:
        cosines, edges = np.nan_to_num(edge_cosines(evidence.space)), evidence.space.edges
        assert edges is not None
        cosine_errors = dyadic_errors(cosines, edges, len(evidence.space), draws, rng)
        return {**{name: np.zeros(draws) for name in graph}, "relation_coherence": cosine_errors}

    return TaskEvidence(
        CONCEPT_SCORES["relations"],
        parts,
        {**_estimates(ranked, links), **_estimates(space, reference)},
        {"relations": space, "links": ranked},
        "relations",
        ResamplingPlan("entities", len(evidence.space), errors_of=errors),
        _chances(parts),
        space=evidence.space,
    )


def observe_quality(encode: Encode, field: ConceptSet, system: str, config: StatsConfig) -> TaskEvidence:
    """The quality metrics of the vectors of the standard concepts."""
    space = concept_space(encode, field.standard_concepts or ())
    metrics: Named = {
        "diversity_score": Diversity(),
        "embedding_variance": EmbeddingVariance(),
        "norm_std/norm_mean": NormRatio(),
    }
    reference: Named = {
        "effective rank": EffectiveRank(),
        "mean cosine": MeanCosine(),
        "uniformity": Uniformity(),
        "isotropy": Isotropy(),
    }
    if len(space) > N_NEIGHBORS + 1:
        reference = {**reference, "hubness": Hubness(N_NEIGHBORS)}
    result = evaluate(
        space,
        [*metrics.values(), *reference.values()],
        system=system,
        config=replace(config, n_resamples=SPACE_RESAMPLES),
    )
    parts, figures = _estimates(result, metrics), _figures(metrics)
    return TaskEvidence(
        CONCEPT_SCORES["quality"],
        parts,
        _estimates(result, reference),
        {"quality": result},
        "quality",
        ResamplingPlan("concepts", len(space), HALF_SAMPLES, lambda rows: figures(space.take(rows))),
        _chances(parts),
        space=space,
    )


def _with_chances(result: Result, chances: Mapping[str, float]) -> Result:
    estimates = {
        name: replace(estimate, chance=chances.get(name, estimate.chance))
        for name, estimate in result.estimates.items()
    }
    return replace(result, estimates=estimates)


TASKS: dict[str, Callable[[Encode, ConceptSet, str, StatsConfig], TaskEvidence]] = {
    "similarity": observe_similarity,
    "clustering": observe_clustering,
    "entities": observe_entities,
    "relations": observe_relations,
    "quality": observe_quality,
}
"""By task."""
