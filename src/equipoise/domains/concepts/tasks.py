"""The five tasks of a concept set on one model: every metric of the evidence, and how the score is resampled."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.domains.concepts.concept_set import ConceptPair, ConceptSet
from equipoise.domains.concepts.evidence import (
    binary_pairs,
    centered_and_whitened,
    concept_space,
    dyadic_errors,
    entity_evidence,
    pair_texts,
    relation_evidence,
    similarity,
    unit_rows,
)
from equipoise.domains.concepts.permutation import (
    ChanceTest,
    length_preserving_orders,
    permuted_ari,
    permuted_mrr,
    permuted_probe,
    permuted_spearman,
)
from equipoise.domains.concepts.scores import CONCEPT_SCORES
from equipoise.domains.concepts.uncertainty import Parts, ResamplingPlan, TaskEvidence, per_unit
from equipoise.evidence.space import Space
from equipoise.metrics.base import Metric
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
from equipoise.metrics.labels import Accuracy, AdjustedRand, MutualInformation, VMeasure
from equipoise.metrics.pairs import MeanAbsoluteError, PairAveragePrecision, Pearson, Spearman, WithinTolerance
from equipoise.metrics.ranking import HitRate, MeanRank, ReciprocalRank
from equipoise.metrics.structure import (
    Alignment,
    ClusterCoherence,
    ClusterSeparation,
    EdgeCoherence,
    GraphClustering,
    GraphDensity,
    NeighborPurity,
    Silhouette,
    edge_cosines,
)
from equipoise.runs.evaluate import evaluate
from equipoise.stats.corpus_metrics import HALF_SAMPLES, WITH_REPLACEMENT, value_or_nan
from equipoise.stats.estimate import result_from_values
from equipoise.tasks.classification import Encode, cluster_texts, encode_checked
from equipoise.tasks.numpy_estimators import fast_kmeans, rotate_to_span

if TYPE_CHECKING:
    from equipoise.config import StatsConfig
    from equipoise.evidence.base import Evidence
    from equipoise.evidence.labels import Labels
    from equipoise.evidence.pairs import Pairs
    from equipoise.stats.result import Estimate, Result
    from equipoise.types import Floats, Ints

SPACE_RESAMPLES = 200
"""Resamples of spaces, and of the metrics of pairs that no recommendation depends on."""
N_RANDOM_BASELINES = 20
"""Sets of random vectors that K-means is run on for the chance level."""
N_KMEANS_SEEDS = 10
"""Other seeds that K-means is run with, to see how much a score owes to where it began."""
N_NEIGHBORS = 3
"""Neighbours that hubness counts among the standard concepts, which are few."""

EUCLIDEAN = Silhouette(distance="euclidean")
"""What the concept scores are defined with: scikit-learn's silhouette_score by default."""

Named = Mapping[str, Metric[Any]]


def _measured_parts(metrics: Named) -> Callable[[Evidence], Parts]:
    """The parts of a blend on any evidence, NaN where it cannot give them."""
    return lambda evidence: {
        name: value_or_nan(lambda part, metric=metric: metric.measure(part).value, evidence)  # type: ignore[misc]
        for name, metric in metrics.items()
    }


def _estimates(result: Result, metrics: Named) -> dict[str, Estimate]:
    return {name: result.estimates[metric.name] for name, metric in metrics.items()}


def observe_similarity(encode: Encode, concept_set: ConceptSet, system: str, config: StatsConfig) -> TaskEvidence:
    """Cosines of pairs against what is expected of them, also of centred and whitened vectors and by category."""
    pairs = similarity(encode, concept_set.pairs or ())
    groups = _text_groups(concept_set.pairs or ())
    stats = replace(per_unit(config), clusters=groups)
    secondary = replace(stats, n_resamples=SPACE_RESAMPLES)
    metrics: Named = {"accuracy": WithinTolerance(0.1), "correlation": Pearson(), "mae": MeanAbsoluteError()}
    truth: Named = {"Spearman": Spearman()}
    result = evaluate(pairs, [*metrics.values(), Spearman()], system=system, config=stats)
    results = {"similarity": result}
    reference = _estimates(result, truth)
    centered, whitened = centered_and_whitened(encode, concept_set.pairs or ())
    for name, transformed in (("centred", centered), ("whitened", whitened)):
        results[f"similarity-{name}"] = evaluate(transformed, [Spearman()], system=system, config=secondary)
        reference[f"Spearman, {name}"] = results[f"similarity-{name}"].estimates[Spearman().name]
    binary = binary_pairs(pairs)
    if binary is not None:
        average_precision = PairAveragePrecision()
        results["pair-classification"] = evaluate(binary, [average_precision], system=system, config=secondary)
        reference["pair AP"] = results["pair-classification"].estimates[average_precision.name]
    reference |= _estimates(result, {"mean absolute error": MeanAbsoluteError()})
    parts, measured_parts = _estimates(result, metrics), _measured_parts({**metrics, **truth})
    return TaskEvidence(
        CONCEPT_SCORES["similarity"],
        parts,
        reference,
        results,
        "similarity",
        ResamplingPlan(
            "pairs", len(pairs), WITH_REPLACEMENT, lambda rows: measured_parts(pairs.take(rows)), groups=groups
        ),
        chance_test=_similarity_test(encode, concept_set.pairs or (), config.seed),
        space=concept_space(encode, pair_texts(concept_set.pairs or ())[0]),
        pairs=pairs,
        slices=_by_category(pairs, concept_set.pairs or (), system, secondary),
    )


def _similarity_test(encode: Encode, concept_pairs: Sequence[ConceptPair], seed: int) -> ChanceTest:
    """Spearman with the vectors of other texts."""
    texts, ends = pair_texts(concept_pairs)
    directions = unit_rows(encode_checked(encode, texts))
    expected = np.array([pair.expected for pair in concept_pairs])
    orders = length_preserving_orders(texts, (seed, 0))
    return ChanceTest.of(lambda part: permuted_spearman(directions, ends, expected, part), orders)


MIN_TEXT_GROUPS = 10
"""With fewer groups of pairs, resampled groups would show too little of the variability."""


def _text_groups(concept_pairs: Sequence[ConceptPair]) -> list[str] | None:
    """The first text of each pair: pairs that share it depend on each other. None if all differ, or nearly none."""
    groups = [pair.first for pair in concept_pairs]
    return groups if MIN_TEXT_GROUPS <= len(set(groups)) < len(groups) else None


def _by_category(
    pairs: Pairs, concept_pairs: Sequence[ConceptPair], system: str, config: StatsConfig
) -> dict[str, Estimate]:
    """Spearman on the pairs of each category; empty where there are no categories."""
    estimates = {}
    for name in dict.fromkeys(pair.category for pair in concept_pairs if pair.category):
        rows = [row for row, pair in enumerate(concept_pairs) if pair.category == name]
        stats = replace(config, clusters=_text_groups([concept_pairs[row] for row in rows]))
        result = evaluate(pairs.take(np.array(rows)), [Spearman()], system=system, config=stats)
        estimates[name] = result.estimates[Spearman().name]
    return estimates


def observe_clustering(encode: Encode, concept_set: ConceptSet, system: str, config: StatsConfig) -> TaskEvidence:
    """K-means with the true number of clusters, and whether it found the true ones."""
    clustered = cluster_texts(encode, concept_set.clusters or (), seed=config.seed)
    count = len(concept_set.clusters or ())
    metrics: Named = {
        "silhouette_score": EUCLIDEAN,
        "cluster_coherence": ClusterCoherence(),
        "cluster_separation": ClusterSeparation(),
    }
    measured_parts = _measured_parts(metrics)

    vectors = rotate_to_span(clustered.predicted.vectors.astype(np.float64))

    def again(rows: Ints, state: int) -> Parts:
        """K-means with a random start, since the initialisation is part of the variability of the score."""
        clusters = fast_kmeans(vectors[rows], count, seed=state)
        agreement = AdjustedRand().value(replace(clustered.labels.take(rows), predicted=clusters))
        return {**measured_parts(Space.of(vectors[rows], labels=clusters)), "ARI": agreement}

    def resample(rows: Ints) -> Parts:
        return again(rows, int(rows @ np.arange(1, len(rows) + 1)))

    all_rows = np.arange(len(vectors))
    other_seeds = [
        CONCEPT_SCORES["clustering"].value(again(all_rows, config.seed + 1 + at)) for at in range(N_KMEANS_SEEDS)
    ]
    result = evaluate(
        clustered.predicted, list(metrics.values()), system=system, config=replace(config, n_resamples=1), chance=False
    )
    chance = _random_parts(clustered.predicted, count, measured_parts, config.seed)
    result = _with_chances(result, {metrics[name].name: value for name, value in chance.items()})
    matched: Named = {"ARI": AdjustedRand(), "NMI": MutualInformation(), "V-measure": VMeasure()}
    stats = replace(config, n_resamples=SPACE_RESAMPLES)
    labels = evaluate(clustered.labels, list(matched.values()), system=system, config=stats)
    # The mean of ARI over all permutations is known, and V-measure is equal to NMI.
    nmi = labels.estimates[MutualInformation().name]
    labels = _with_chances(labels, {AdjustedRand().name: 0.0, VMeasure().name: nmi.chance})
    true_codes, found_codes = clustered.labels.true, clustered.labels.predicted
    orders = length_preserving_orders(clustered.labels.unit_ids.tolist(), (config.seed, 1))
    true: Named = {"silhouette, true clusters": Silhouette(), "neighbours, same cluster": NeighborPurity()}
    space = evaluate(clustered.space, list(true.values()), system=system, config=stats)
    return TaskEvidence(
        CONCEPT_SCORES["clustering"],
        _estimates(result, metrics),
        {**_estimates(labels, matched), **_estimates(space, true)},
        {"clustering": result, "clusters-found": labels, "clusters-true": space},
        "clustering",
        ResamplingPlan("concepts", len(clustered.predicted), HALF_SAMPLES, resample),
        method=clustered.method,
        other_seeds=other_seeds,
        chance_test=ChanceTest.of(lambda part: permuted_ari(true_codes, found_codes, part), orders),
        space=clustered.space,
    )


def _random_parts(space: Space, count: int, measured_parts: Callable[[Evidence], Parts], seed: int) -> dict[str, float]:
    """The parts of the clustering score without clusters: K-means on random directions."""
    rng = np.random.default_rng([seed, count])
    rows = []
    for _ in range(N_RANDOM_BASELINES):
        vectors = random_vectors(space, rng).vectors.astype(np.float64)
        rows.append(measured_parts(Space.of(vectors, labels=fast_kmeans(vectors, count, seed=seed))))
    return {name: float(np.mean([row[name] for row in rows])) for name in rows[0]}


def observe_entities(encode: Encode, concept_set: ConceptSet, system: str, config: StatsConfig) -> TaskEvidence:
    """Entities by type, and each with its sentence."""
    sentences = concept_set.sentences or ()
    evidence = entity_evidence(encode, sentences, seed=config.seed)
    points = evidence.entity_of
    reference: Named = {"neighbours, same type": NeighborPurity()}
    stats = replace(config, n_resamples=SPACE_RESAMPLES)
    space = evaluate(evidence.space, list(reference.values()), system=system, config=stats)
    space = _with_parts(space, [EUCLIDEAN], config)
    text = result_from_values(
        system,
        evidence.mention_ids,
        {"entity_text_similarity": evidence.entity_text},
        bounds=(-1.0, 1.0),
        unit="cosine",
        chance={"entity_text_similarity": evidence.entity_text_chance},
        config=replace(per_unit(config), clusters=evidence.sentence_of),
    )
    probe_result = evaluate(evidence.probed, [Accuracy()], system=system, config=per_unit(config), chance=False)
    probe_result = _with_chances(probe_result, {Accuracy().name: _expected_accuracy(evidence.probed)})
    orders = length_preserving_orders(evidence.names, (config.seed, 2))
    kind_vectors, kind_codes = evidence.space.vectors.astype(np.float64), evidence.probed.true
    parts = {
        "entity_clustering_silhouette": space.estimates[EUCLIDEAN.name],
        "avg_entity_text_similarity": text.estimates["entity_text_similarity"],
    }

    hits = evidence.probed.true == evidence.probed.predicted

    def resample(rows: Ints) -> Parts:
        """The entities and the mentions of some of the sentences."""
        mask = np.isin(evidence.sentence_of, rows)
        kinds = evidence.space.take(np.unique(points[mask]))
        return {
            "entity_clustering_silhouette": value_or_nan(lambda part: EUCLIDEAN.measure(part).value, kinds),
            "avg_entity_text_similarity": float(evidence.entity_text[mask].mean()) if mask.any() else np.nan,
            "probe accuracy": float(hits[np.unique(points[mask])].mean()) if mask.any() else np.nan,
        }

    return TaskEvidence(
        CONCEPT_SCORES["entities"],
        parts,
        {**_estimates(space, reference), "probe accuracy": probe_result.estimates[Accuracy().name]},
        {"entities": space, "entity-text": text, "entity-types": probe_result},
        "entities",
        ResamplingPlan("sentences", len(sentences), HALF_SAMPLES, resample),
        chance_test=ChanceTest.of(lambda part: permuted_probe(kind_vectors, kind_codes, part), orders),
        space=evidence.space,
    )


def _expected_accuracy(labels: Labels) -> float:
    """The mean accuracy over all permutations of the predictions."""
    shares = (
        np.bincount(codes, minlength=len(labels.classes)) / len(labels) for codes in (labels.true, labels.predicted)
    )
    return float(np.dot(*shares))


def observe_relations(encode: Encode, concept_set: ConceptSet, system: str, config: StatsConfig) -> TaskEvidence:
    """Related entities against all others, and the search for the object of each relation."""
    evidence = relation_evidence(encode, concept_set.relations or ())
    graph: Named = {"graph_density": GraphDensity(), "clustering_coefficient": GraphClustering()}
    reference: Named = {"coherence": EdgeCoherence(), "alignment": Alignment()}
    stats = replace(config, n_resamples=SPACE_RESAMPLES)
    space = evaluate(evidence.space, [Alignment()], system=system, config=stats)
    space = _with_parts(space, [EdgeCoherence(), *graph.values()], config)
    links: Named = {"link MRR": ReciprocalRank(), "HR@10": HitRate(10), "mean rank": MeanRank()}
    by_subject = replace(per_unit(config), clusters=evidence.subjects.tolist())
    ranked = evaluate(evidence.ranking, list(links.values()), system=system, config=by_subject)
    parts = _estimates(space, {"relation_coherence": EdgeCoherence(), **graph})
    reciprocal_ranks = np.asarray(ranked.per_unit[ReciprocalRank().name])
    # Rounded, so that equal vectors have equal scores.
    scores = (unit_rows(evidence.queries) @ unit_rows(evidence.space.vectors.astype(np.float64)).T).round(12)
    orders = length_preserving_orders(evidence.space.unit_ids.tolist(), (config.seed, 3))

    def errors(n_resamples: int, rng: np.random.Generator) -> dict[str, Floats]:
        cosines, edges = np.nan_to_num(edge_cosines(evidence.space)), evidence.space.edges
        assert edges is not None
        points = len(evidence.space)
        return {
            **{name: np.zeros(n_resamples) for name in graph},
            "relation_coherence": dyadic_errors(cosines, edges, points, n_resamples, rng),
            "link MRR": dyadic_errors(reciprocal_ranks, evidence.ends, points, n_resamples, rng),
        }

    return TaskEvidence(
        CONCEPT_SCORES["relations"],
        parts,
        {**_estimates(ranked, links), **_estimates(space, reference)},
        {"relations": space, "links": ranked},
        "relations",
        ResamplingPlan("entities", len(evidence.space), errors_of=errors),
        chance_test=ChanceTest.of(
            lambda part: permuted_mrr(scores, evidence.ends, evidence.other_answers, part), orders
        ),
        space=evidence.space,
    )


def observe_quality(encode: Encode, concept_set: ConceptSet, system: str, config: StatsConfig) -> TaskEvidence:
    """The quality metrics of the vectors of the standard concepts."""
    space = concept_space(encode, concept_set.standard_concepts or ())
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
    stats = replace(config, n_resamples=SPACE_RESAMPLES)
    result = evaluate(space, list(reference.values()), system=system, config=stats)
    result = _with_parts(result, list(metrics.values()), config)
    parts, measured_parts = _estimates(result, metrics), _measured_parts(metrics)
    return TaskEvidence(
        CONCEPT_SCORES["quality"],
        parts,
        _estimates(result, reference),
        {"quality": result},
        "quality",
        ResamplingPlan("concepts", len(space), HALF_SAMPLES, lambda rows: measured_parts(space.take(rows))),
        space=space,
    )


def _with_parts(result: Result, metrics: Sequence[Metric[Any]], config: StatsConfig) -> Result:
    """The result with the parts of a score, whose intervals come from the resamples of the score."""
    assert result.evidence is not None
    parts = evaluate(result.evidence, metrics, system=result.system, config=replace(config, n_resamples=1))
    return replace(
        result,
        estimates={**parts.estimates, **result.estimates},
        per_unit={**parts.per_unit, **result.per_unit},
        weights={**parts.weights, **result.weights},
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
