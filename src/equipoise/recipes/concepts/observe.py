"""The five tasks of a field, observed on one model: evidence first, then every figure of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from equipoise.data.field import Field
from equipoise.evidence.base import Evidence
from equipoise.evidence.space import Space
from equipoise.metrics.base import Metric
from equipoise.metrics.clusterings import AdjustedRand, MutualInformation, VMeasure
from equipoise.metrics.graph import GraphClustering, GraphDensity
from equipoise.metrics.grouping import ClusterCoherence, ClusterSeparation, Purity
from equipoise.metrics.labels import Accuracy
from equipoise.metrics.pairs import AbsoluteError, Pearson, Spearman, Within
from equipoise.metrics.quality import Diversity, EmbeddingVariance, NormRatio, random_directions
from equipoise.metrics.ranking import HitRate, MeanRank, ReciprocalRank
from equipoise.metrics.silhouette import Silhouette
from equipoise.metrics.space import Alignment, Coherence, edge_cosines
from equipoise.metrics.spread import EffectiveRank, Hubness, Isotropy, MeanCosine, Uniformity
from equipoise.recipes.concepts.blends import BLENDS
from equipoise.recipes.concepts.dyads import dyad_errors
from equipoise.recipes.concepts.luck import shuffled_luck
from equipoise.recipes.concepts.measured import Observed
from equipoise.recipes.concepts.spread import Parts, Sampling
from equipoise.run.scoring import evaluate
from equipoise.stats.parts import HALVES, REPEATED, value_of
from equipoise.stats.result import Estimate, Result
from equipoise.stats.tabled import result_of_values
from equipoise.tasks.cluster import cluster, kmeans
from equipoise.tasks.encode import Encode
from equipoise.tasks.entities import entities
from equipoise.tasks.quality import quality
from equipoise.tasks.relate import relate
from equipoise.tasks.similarity import similarity
from equipoise.types import Floats, Ints

SPACE_RESAMPLES = 200
"""Parts of a space on which its figures are measured again."""
RANDOM_DRAWS = 20
"""Sets of random vectors that K-means is run on for the chance level."""
SEEDS = 10
"""Other seeds that K-means is run with, to see how much a score owes to where it began."""
NEIGHBOURS = 3
"""Neighbours that hubness counts among the standard concepts, which are few."""

EUCLIDEAN = Silhouette(distance="euclidean")
"""What the concept scores are defined with: scikit-learn's silhouette_score by default."""

Given = Mapping[str, Any]
Named = Mapping[str, Metric[Any]]


def _figures(named: Named) -> Callable[[Evidence], Parts]:
    """The parts of a blend on any evidence, NaN where it cannot give them."""
    return lambda evidence: {
        name: value_of(lambda part, metric=metric: metric.measure(part).value, evidence)  # type: ignore[misc]
        for name, metric in named.items()
    }


def _estimates(result: Result, named: Named) -> dict[str, Estimate]:
    return {name: result.estimates[metric.name] for name, metric in named.items()}


def _chances(parts: Mapping[str, Estimate]) -> dict[str, float]:
    return {name: each.chance for name, each in parts.items()}


def observe_similarity(encode: Encode, field: Field, system: str, seed: int) -> Observed:
    """Cosines of pairs against what is expected of them."""
    pairs = similarity(encode, field.pairs or ())
    named: Named = {"accuracy": Within(0.1), "correlation": Pearson(), "mae": AbsoluteError()}
    beside: Named = {"Spearman": Spearman(), "mean absolute error": AbsoluteError()}
    result = evaluate(pairs, [*named.values(), Spearman()], system=system, seed=seed)
    parts, figures = _estimates(result, named), _figures(named)
    return Observed(
        BLENDS["similarity"],
        parts,
        _estimates(result, beside),
        {"similarity": result},
        "similarity",
        Sampling("pairs", len(pairs), REPEATED, lambda rows: figures(pairs.take(rows))),
        _chances(parts),
        luck=shuffled_luck(pairs, {"Spearman": Spearman()}, seed=seed),
        pairs=pairs,
    )


def observe_clustering(encode: Encode, field: Field, system: str, seed: int) -> Observed:
    """K-means with the true number of clusters, and whether it found the true ones."""
    found = cluster(encode, field.clusters or (), seed=seed)
    count = len(field.clusters or ())
    named: Named = {
        "silhouette_score": EUCLIDEAN,
        "cluster_coherence": ClusterCoherence(),
        "cluster_separation": ClusterSeparation(),
    }
    figures = _figures(named)

    def again(vectors: Floats, state: int) -> Parts:
        """K-means from the start: where it begins is part of what a score may owe to luck."""
        return figures(Space.of(vectors, labels=kmeans(vectors, count, seed=state)))

    def redraw(rows: Ints) -> Parts:
        return again(found.found.vectors[rows].astype(np.float64), int(rows @ np.arange(1, len(rows) + 1)))

    whole = found.found.vectors.astype(np.float64)
    others = [BLENDS["clustering"].value(again(whole, seed + 1 + at)) for at in range(SEEDS)]
    result = evaluate(found.found, list(named.values()), system=system, seed=seed, chance=False, resamples=1)
    chance = _random_parts(found.found, count, figures, seed)
    result = _with_chances(result, {named[name].name: value for name, value in chance.items()})
    matched: Named = {"ARI": AdjustedRand(), "NMI": MutualInformation(), "V-measure": VMeasure()}
    labels = evaluate(
        found.labels,
        list(matched.values()),
        system=system,
        seed=seed,
        chance=False,
        resamples=SPACE_RESAMPLES,
    )
    luck = shuffled_luck(found.labels, matched, seed=seed)
    chances = {matched[name].name: each.chance for name, each in luck.items()}
    # The mean over all shuffles is known here.
    labels = _with_chances(labels, {**chances, AdjustedRand().name: 0.0})
    true: Named = {"silhouette, true clusters": Silhouette(), "neighbours, same cluster": Purity()}
    space = evaluate(found.space, list(true.values()), system=system, seed=seed, resamples=SPACE_RESAMPLES)
    return Observed(
        BLENDS["clustering"],
        _estimates(result, named),
        {**_estimates(labels, matched), **_estimates(space, true)},
        {"clustering": result, "clusters-found": labels, "clusters-true": space},
        "clustering",
        Sampling("concepts", len(found.found), HALVES, redraw),
        chance,
        method=found.method,
        others=others,
        luck=luck,
        space=found.space,
    )


def _random_parts(
    space: Space, count: int, figures: Callable[[Evidence], Parts], seed: int
) -> dict[str, float]:
    """The parts of the clustering score where there is nothing to find: K-means on random directions."""
    rng = np.random.default_rng([seed, count])
    rows = []
    for _ in range(RANDOM_DRAWS):
        drawn = random_directions(space, rng)
        labels = kmeans(np.asarray(drawn.vectors), count, seed=seed)
        rows.append(figures(Space.of(drawn.vectors, labels=labels)))
    return {name: float(np.mean([row[name] for row in rows])) for name in rows[0]}


def observe_entities(encode: Encode, field: Field, system: str, seed: int) -> Observed:
    """Entities by type, and each beside the sentence that it comes from."""
    sentences = field.sentences or ()
    found = entities(encode, sentences, seed=seed)
    points = _points_of_mentions(sentences)
    beside: Named = {"neighbours, same type": Purity()}
    space = evaluate(
        found.space, [EUCLIDEAN, *beside.values()], system=system, seed=seed, resamples=SPACE_RESAMPLES
    )
    text = result_of_values(
        system,
        found.mention_ids,
        {"entity_text_similarity": found.entity_text},
        bounds=(-1.0, 1.0),
        unit="cosine",
        chance={"entity_text_similarity": found.entity_text_chance},
        clusters=found.sentence_of,
        seed=seed,
    )
    probed = evaluate(found.probed, [Accuracy()], system=system, seed=seed, chance=False)
    luck = shuffled_luck(found.probed, {"linear probe": Accuracy()}, seed=seed)
    probed = _with_chances(probed, {Accuracy().name: luck["linear probe"].chance})
    parts = {
        "entity_clustering_silhouette": space.estimates[EUCLIDEAN.name],
        "avg_entity_text_similarity": text.estimates["entity_text_similarity"],
    }

    def redraw(rows: Ints) -> Parts:
        """The entities and the mentions of some of the sentences."""
        kept = np.isin(found.sentence_of, rows)
        kinds = found.space.take(np.unique(points[kept]))
        return {
            "entity_clustering_silhouette": value_of(lambda part: EUCLIDEAN.measure(part).value, kinds),
            "avg_entity_text_similarity": float(found.entity_text[kept].mean()) if kept.any() else np.nan,
        }

    return Observed(
        BLENDS["entities"],
        parts,
        {**_estimates(space, beside), "linear probe": probed.estimates[Accuracy().name]},
        {"entities": space, "entity-text": text, "entity-types": probed},
        "entities",
        Sampling("sentences", len(sentences), HALVES, redraw),
        _chances(parts),
        luck=luck,
        space=found.space,
    )


def _points_of_mentions(sentences: Sequence[Any]) -> Ints:
    """For each mention, the place of its entity among the distinct ones."""
    mentions = [(entity.text, entity.label) for each in sentences for entity in each.entities]
    place = {kind: at for at, kind in enumerate(dict.fromkeys(mentions))}
    return np.array([place[kind] for kind in mentions], dtype=np.int64)


def observe_relations(encode: Encode, field: Field, system: str, seed: int) -> Observed:
    """Related entities against all others, and the search for the object of each relation."""
    found = relate(encode, field.relations or ())
    coherence: Named = {"relation_coherence": Coherence()}
    graph: Named = {"graph_density": GraphDensity(), "clustering_coefficient": GraphClustering()}
    beside: Named = {"coherence": Coherence(), "alignment": Alignment()}
    space = evaluate(
        found.space,
        list(beside.values()),
        system=system,
        seed=seed,
        resamples=SPACE_RESAMPLES,
    )
    fixed = evaluate(found.space, list(graph.values()), system=system, seed=seed, resamples=1)
    space = replace(space, estimates={**space.estimates, **fixed.estimates})
    links: Named = {"MRR of the object": ReciprocalRank(), "HR@10": HitRate(10), "mean rank": MeanRank()}
    ranked = evaluate(
        found.ranking, list(links.values()), system=system, seed=seed, clusters=found.subjects.tolist()
    )
    parts = _estimates(space, {**coherence, **graph})

    def errors(draws: int, rng: np.random.Generator) -> dict[str, Floats]:
        cosines, edges = np.nan_to_num(edge_cosines(found.space)), found.space.edges
        assert edges is not None
        own = dyad_errors(cosines, edges, len(found.space), draws, rng)
        return {**{name: np.zeros(draws) for name in graph}, "relation_coherence": own}

    return Observed(
        BLENDS["relations"],
        parts,
        {**_estimates(ranked, links), **_estimates(space, beside)},
        {"relations": space, "links": ranked},
        "relations",
        Sampling("entities", len(found.space), errors_of=errors),
        _chances(parts),
        space=found.space,
    )


def observe_quality(encode: Encode, field: Field, system: str, seed: int) -> Observed:
    """The vectors of the standard concepts, whatever they stand for."""
    space = quality(encode, field.concepts or ())
    named: Named = {
        "diversity_score": Diversity(),
        "embedding_variance": EmbeddingVariance(),
        "norm_std/norm_mean": NormRatio(),
    }
    beside: Named = {
        "effective rank": EffectiveRank(),
        "mean cosine": MeanCosine(),
        "uniformity": Uniformity(),
        "isotropy": Isotropy(),
    }
    if len(space) > NEIGHBOURS + 1:
        beside = {**beside, "hubness": Hubness(NEIGHBOURS)}
    result = evaluate(
        space, [*named.values(), *beside.values()], system=system, seed=seed, resamples=SPACE_RESAMPLES
    )
    parts, figures = _estimates(result, named), _figures(named)
    return Observed(
        BLENDS["quality"],
        parts,
        _estimates(result, beside),
        {"quality": result},
        "quality",
        Sampling("concepts", len(space), HALVES, lambda rows: figures(space.take(rows))),
        _chances(parts),
        space=space,
    )


def _with_chances(result: Result, chances: Mapping[str, float]) -> Result:
    estimates = {
        name: replace(each, chance=chances.get(name, each.chance)) for name, each in result.estimates.items()
    }
    return replace(result, estimates=estimates)


OBSERVERS: dict[str, Callable[[Encode, Field, str, int], Observed]] = {
    "similarity": observe_similarity,
    "clustering": observe_clustering,
    "entities": observe_entities,
    "relations": observe_relations,
    "quality": observe_quality,
}
"""By task."""
