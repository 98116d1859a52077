"""Clustering: agreement of K-means clusters with the labels."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from equipoise.errors import InputError
from equipoise.evidence.labels import Labels
from equipoise.evidence.space import Space
from equipoise.tasks.similarity import Encode, encode_checked
from equipoise.types import Floats, Ints, require_extra

if TYPE_CHECKING:
    from equipoise.domains.concepts.concept_set import ConceptCluster

N_INIT = 10
"""K-means is started so many times, and the tightest outcome is kept."""


@dataclass(frozen=True)
class ClusteringOutput:
    """Concepts with the cluster that is theirs and the one that was found; a unit is a concept.

    ``labels`` holds both, for ARI, NMI and V-measure. ``space`` has the vectors with the true clusters,
    ``found`` the same with those of K-means, which is what the concept scores are made of.
    """

    labels: Labels
    space: Space
    found: Space
    seed: int
    starts: int = N_INIT

    @property
    def method(self) -> str:
        """How the clusters were found, for the caption."""
        count = len(np.unique(self.labels.true))
        return f"K-means with {count} clusters, {self.starts} starts, seed {self.seed}"


def cluster_texts(encode: Encode, clusters: Sequence[ConceptCluster], *, seed: int = 0) -> ClusteringOutput:
    """Embed the concepts and part them into as many clusters as there truly are, by scikit-learn.

    K-means sees the vectors as the model gives them, with euclidean distances.

    >>> from equipoise.domains.concepts.concept_set import ConceptCluster
    >>> vectors = {"rye": [1.0, 0.0], "oat": [0.9, 0.1], "train": [0.0, 1.0], "bus": [0.1, 0.9]}
    >>> grain, traffic = ConceptCluster("grain", ("rye", "oat")), ConceptCluster("traffic", ("train", "bus"))
    >>> found = cluster_texts(lambda texts: [vectors[text] for text in texts], [grain, traffic])
    >>> found.method
    'K-means with 2 clusters, 10 starts, seed 0'
    """
    if len(clusters) < 2:
        raise InputError(
            f"there {'is one cluster' if clusters else 'are no clusters'}",
            hint="use two or more clusters",
        )
    concepts = [concept for cluster in clusters for concept in cluster.concepts]
    names = [cluster.name for cluster in clusters for _ in cluster.concepts]
    vectors = encode_checked(encode, concepts)
    guessed = kmeans(vectors, len(clusters), seed=seed)
    labelled = [f"found {number}" for number in guessed.tolist()]
    return ClusteringOutput(
        Labels.of(names, labelled, unit_ids=concepts),
        Space.of(vectors, labels=names, unit_ids=concepts),
        Space.of(vectors, labels=labelled, unit_ids=concepts),
        seed,
    )


def kmeans(vectors: Floats, count: int, *, seed: int = 0, starts: int = N_INIT) -> Ints:
    """The cluster of each row by K-means; fewer than ``count`` where so many rows are not different."""
    if vectors.shape[0] < count:
        raise InputError(
            f"there are {vectors.shape[0]} concepts for {count} clusters", hint="every cluster needs a concept"
        )
    engine = require_extra("sklearn.cluster", extra="concepts").KMeans(count, n_init=starts, random_state=seed)
    with warnings.catch_warnings():
        # It warns of fewer clusters than asked for; a collapsed space has a finding of its own.
        warnings.simplefilter("ignore")
        return np.asarray(engine.fit_predict(vectors), dtype=np.int64)
