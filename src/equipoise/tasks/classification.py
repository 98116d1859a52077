"""Classification and clustering: rankings and labels from a score matrix, classifiers and K-means on vectors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.errors import InputError, NotFiniteError, ShapeError, UndefinedError
from equipoise.evidence.base import to_numpy, unique_ids
from equipoise.evidence.kernels.dispatch import check_score_matrix, class_codes, rank_targets
from equipoise.evidence.labels import Labels
from equipoise.evidence.ranking import Ranking
from equipoise.evidence.space import Space
from equipoise.geometry.gpu_search import free_bytes, torch_device
from equipoise.io.arrays import MappedPages
from equipoise.io.splits import kfold_splits
from equipoise.tasks.numpy_estimators import (
    MAX_LOGISTIC_SIZE,
    N_INIT,
    LogisticRegression,
    as_dense,
    kmeans,
    lbfgs_classes,
)
from equipoise.types import Bools, Floats, Ints

if TYPE_CHECKING:
    from equipoise.domains.concepts.concept_set import ConceptCluster

Encode = Callable[[Sequence[str]], Any]
"""One row per text, in order; ``embedder("minilm").encode`` is one."""


@dataclass(frozen=True)
class ClassificationOutput:
    """Target ranks, predictions and confidences of a matrix of scores.

    ``ranking`` has the rank of the target of each unit among the ``classes`` candidates, ``labels`` the
    class with the largest score. ``answerable`` marks units whose target was in the training data. ``confidence`` is
    the softmax of the first class and ``target_probability`` that of the target, if requested.
    """

    ranking: Ranking
    labels: Labels
    answerable: Bools
    classes: int
    confidence: Floats | None = None
    target_probability: Floats | None = None

    def __len__(self) -> int:
        return len(self.ranking)

    @classmethod
    def joined(cls, parts: Sequence[ClassificationOutput]) -> ClassificationOutput:
        """The rows of all parts, one part after another."""
        labels = [part.labels for part in parts]
        shares = [
            None if any(part is None for part in column) else np.concatenate(column)
            for column in zip(*((part.confidence, part.target_probability) for part in parts), strict=True)
        ]
        return cls(
            ranking=Ranking.concatenated([part.ranking for part in parts]),
            labels=Labels(
                np.concatenate([label.unit_ids for label in labels]),
                np.concatenate([label.true for label in labels]),
                np.concatenate([label.predicted for label in labels]),
                labels[0].classes,
                np.concatenate([part.tied_top for part in parts]),
            ),
            answerable=np.concatenate([part.answerable for part in parts]),
            classes=parts[0].classes,
            confidence=shares[0],
            target_probability=shares[1],
        )

    @property
    def tied_top(self) -> Bools:
        """Which units have several classes with the largest score; the lowest code was predicted there."""
        tied = self.labels.tied_top
        return np.zeros(len(self), dtype=bool) if tied is None else tied

    def take(self, index: Ints) -> ClassificationOutput:
        """The units at ``index``, in that order."""
        shares = (None if values is None else values[index] for values in (self.confidence, self.target_probability))
        return ClassificationOutput(
            self.ranking.take(index),
            self.labels.take(index),
            self.answerable[index],
            self.classes,
            *shares,
        )

    def with_ids(self, unit_ids: Any) -> ClassificationOutput:
        """The same units with other ids."""
        ids = unique_ids(unit_ids, len(self))
        return replace(self, ranking=replace(self.ranking, unit_ids=ids), labels=replace(self.labels, unit_ids=ids))


def classify(
    scores: Any,
    targets: Any,
    *,
    padding: Any = None,
    unseen: Any = None,
    unit_ids: Any = None,
    ks: Iterable[int] = (),
    block_bytes: int | None = None,
    probabilities: bool = False,
    compiled: bool | None = None,
) -> ClassificationOutput:
    """The target rank and the first class of each row, from one read of the scores.

    ``scores`` is a (units, classes) matrix of logits or probabilities: numpy, also memory-mapped and larger
    than memory, or torch, which stays on its device. ``targets`` has the column of the target of each row. Columns in
    ``padding`` are not classes; targets in ``unseen`` are not in the training data and marked as not answerable. If
    there are fewer classes than one of the cutoffs ``ks``, that is an error. Equal scores are counted, not ordered.
    ``compiled`` uses the compiled kernel in host memory, by default after this process has counted 2^24 scores,
    because compiling takes about 0.1 s. Large matrices are split over OMP_NUM_THREADS threads or all cores. The
    counts are the same.

    >>> output = classify(np.array([[9.0, 1.0, 2.0], [9.0, 3.0, 3.0]]), [2, 2], padding=0)
    >>> output.ranking.above.tolist(), output.ranking.tied.tolist(), output.labels.predicted.tolist()
    ([0, 0], [0, 1], [2, 1])
    """
    scores = check_score_matrix(scores)
    width = int(scores.shape[1])
    hidden = class_codes(unseen, width, "unseen")
    ranks = rank_targets(
        scores,
        targets,
        padding=padding,
        ks=ks,
        block_bytes=block_bytes,
        probabilities=probabilities,
        compiled=compiled,
    )
    rows, counts = len(ranks.true), ranks.counts
    ranking = ranks.ranking(None if unit_ids is None else unique_ids(unit_ids, rows))
    return ClassificationOutput(
        ranking=ranking,
        labels=Labels(ranking.unit_ids, ranks.true, ranks.predicted, np.arange(width), counts.tied_top),
        answerable=~np.isin(ranks.true, hidden) if len(hidden) else np.ones(rows, dtype=bool),
        classes=ranks.classes,
        confidence=counts.confidence,
        target_probability=counts.target_probability,
    )


# Scores from a file or host memory, copied to a device in blocks and counted there.

DEVICE_MEMORY_FRACTION = 0.25
"""The share of the free memory of the device for a block: the next one may be copied at the same time."""


def classify_on_device(
    device: Any,
    scores: Any,
    targets: Any,
    *,
    block_bytes: int | None = None,
    **options: Any,
) -> ClassificationOutput:
    """``classify`` on a named device; a file may be larger than its memory."""
    where = torch_device(device)
    import torch

    scores = check_score_matrix(scores)
    if not isinstance(scores, np.ndarray):
        return classify(scores.to(where), targets, **options)
    right, ids = to_numpy(targets), np.arange(len(scores))
    step = max(
        1,
        (block_bytes or int(DEVICE_MEMORY_FRACTION * free_bytes(where))) // (scores.shape[1] * scores.itemsize),
    )
    pages, parts = MappedPages(scores), []
    for start in range(0, max(1, len(scores)), step):
        part = slice(start, start + step)
        # Reads a mapped file; torch warns about arrays that are not writable.
        block = torch.from_numpy(np.array(scores[part])).to(where)
        parts.append(classify(block, right[part], unit_ids=ids[part], **options))
        pages.drop(scores[part])
    return parts[0] if len(parts) == 1 else ClassificationOutput.joined(parts)


# Classifiers on vectors: logistic regression and nearest neighbours by cross-validation, and few-shot.

FOLDS = 5
NEIGHBOURS = 5
_BLOCK_ROWS = 1024


def linear_probe(space: Space, *, groups: Sequence[Any] | None = None, seed: int = 0) -> Labels:
    """The class of each point, predicted by a logistic regression that was trained on other points.

    Cross-validated in ``FOLDS`` stratified parts, or as many as there are points; points of one group are in one
    part. Coordinates are standardised on the training part, so that the scale of the vectors does not matter.

    >>> from equipoise.evidence.space import Space
    >>> rows = [[float(place % 2), float(place)] for place in range(12)]
    >>> labels = linear_probe(Space.of(rows, labels=["odd" if place % 2 else "even" for place in range(12)]))
    >>> bool((labels.true == labels.predicted).all())
    True
    """
    if space.labels is None or space.classes is None or len(np.unique(space.labels)) < 2:
        raise UndefinedError("a probe needs points of two classes", hint="Space.of(vectors, labels=...) adds classes")
    splits = class_folds(space.labels, groups=groups, seed=seed)
    predicted = cross_validated_classes(logistic_classes, space.vectors.astype(np.float64), space.labels, splits)
    return Labels(space.unit_ids, space.labels, predicted, space.classes)


def class_folds(codes: Ints, *, groups: Sequence[Any] | None = None, seed: int = 0) -> list[tuple[Ints, Ints]]:
    """Train and test positions of a stratified cross-validation; groups are never split."""
    count = len(codes) if groups is None else len(set(groups))
    folds = max(2, min(FOLDS, count))
    rng = np.random.default_rng(seed)
    return kfold_splits(list(range(len(codes))), folds, stratify=codes.tolist(), groups=groups, rng=rng)


def cross_validated_classes(
    classify_rows: Callable[[Any, Ints, Any], Ints], vectors: Any, codes: Ints, splits: Sequence[tuple[Ints, Ints]]
) -> Ints:
    """The predicted class of every row by a classifier that was trained on the other folds."""
    predicted = np.empty(len(codes), dtype=np.int64)
    for train, test in splits:
        predicted[test] = classify_rows(vectors[train], codes[train], vectors[test])
    return predicted


def logistic_classes(known: Any, codes: Ints, rows: Any) -> Ints:
    """Logistic regression on standardised coordinates; sparse matrices are scaled and not centred."""
    if len(np.unique(codes)) < 2:
        return np.full(rows.shape[0], codes[0], dtype=np.int64)
    if isinstance(known, np.ndarray):
        mean, spread = known.mean(axis=0), known.std(axis=0)
        spread[spread == 0] = 1.0
        known, rows = (known - mean) / spread, (rows - mean) / spread
        if known.shape[0] * min(known.shape) * len(np.unique(codes)) <= MAX_LOGISTIC_SIZE:
            return LogisticRegression(known, codes).predict(rows)
    return lbfgs_classes(known, codes, rows)


def nearest_neighbour_classes(known: Any, codes: Ints, rows: Any) -> Ints:
    """The class with the most votes, then the largest sum of cosines, among the ``NEIGHBOURS`` nearest rows.

    >>> nearest_neighbour_classes(np.eye(2), np.array([0, 1]), np.array([[0.9, 0.1]]))
    array([0])
    """
    known, rows = _unit(known), _unit(rows)
    k = min(NEIGHBOURS, known.shape[0])
    predicted = np.empty(rows.shape[0], dtype=np.int64)
    for first in range(0, len(predicted), _BLOCK_ROWS):
        cosines = as_dense(rows[first : first + _BLOCK_ROWS] @ known.T)
        nearest = np.argpartition(-cosines, k - 1, axis=1)[:, :k]
        votes = np.zeros((len(cosines), int(codes.max()) + 1))
        # 3 is added, so that the number of votes decides, and cosines only break ties.
        votes_of = 3.0 + np.take_along_axis(cosines, nearest, 1)
        np.add.at(votes, (np.arange(len(cosines))[:, None], codes[nearest]), votes_of)
        predicted[first : first + _BLOCK_ROWS] = votes.argmax(axis=1)
    return predicted


SHOTS, EXPERIMENTS, MTEB_SEED = 8, 10, 42
"""Training texts per class, repetitions and seed of MTEB's classification tasks."""


def few_shot_hits(vectors: Any, codes: Ints, train: Ints, test: Ints | None) -> Floats:
    """The share of experiments in which each row is classified correctly, in MTEB's few-shot protocol.

    Each experiment trains a logistic regression (100 iterations, no scaling) on ``SHOTS`` rows per class out of
    ``train`` and predicts ``test``; the samples are those of MTEB with its seed. Without ``test``, the rows
    that were not sampled are predicted. A row that was sampled in every experiment has NaN.
    """
    hits, tested = np.zeros(len(codes)), np.zeros(len(codes))
    order = list(range(len(train)))
    for _ in range(EXPERIMENTS):
        np.random.RandomState(MTEB_SEED).shuffle(order)
        counts: dict[int, int] = {}
        samples = []
        for place in order:
            label = int(codes[train[place]])
            if counts.get(label, 0) < SHOTS:
                samples.append(int(train[place]))
                counts[label] = counts.get(label, 0) + 1
        queries = np.setdiff1d(train, samples) if test is None else test
        if len(queries) and len(counts) > 1:
            # 100 iterations may not converge; that is the protocol.
            predicted = lbfgs_classes(vectors[np.array(samples)], codes[samples], vectors[queries], max_steps=100)
            hits[queries] += predicted == codes[queries]
            tested[queries] += 1
    return np.divide(hits, tested, out=np.full(len(codes), np.nan), where=tested > 0)


def _unit(rows: Any) -> Any:
    """Rows of length one; a sparse matrix is expected to have them already."""
    if not isinstance(rows, np.ndarray):
        return rows
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.divide(rows, lengths, out=np.zeros_like(rows, dtype=np.float64), where=lengths > 0)


# Clustering: agreement of K-means clusters with the labels.


@dataclass(frozen=True)
class ClusteringOutput:
    """Concepts with their true and their predicted clusters; a unit is a concept.

    ``labels`` holds both, for ARI, NMI and V-measure. ``space`` has the vectors with the true clusters,
    ``predicted`` the same with the clusters of K-means, from which the concept scores are computed.
    """

    labels: Labels
    space: Space
    predicted: Space
    seed: int

    @property
    def method(self) -> str:
        """The description of the clustering, for the caption."""
        count = len(np.unique(self.labels.true))
        return f"K-means with {count} clusters, {N_INIT} starts, seed {self.seed}"


def encode_checked(encode: Encode, texts: Sequence[str]) -> Floats:
    """The vectors of the texts in double precision, checked: one row per text, all of them finite."""
    vectors = np.asarray(to_numpy(encode(list(texts))), dtype=np.float64)
    if vectors.ndim != 2 or len(vectors) != len(texts) or vectors.shape[1] == 0:
        raise ShapeError(
            f"the model gave an array of shape {vectors.shape} for {len(texts)} texts",
            hint="its encode must return one row per text",
        )
    bad = ~np.isfinite(vectors).all(axis=1)
    if bad.any():
        raise NotFiniteError(
            f"the model gave {texts[int(np.argmax(bad))]!r} a vector with NaN or infinity "
            f"({int(bad.sum())} such in all)",
            hint="embed these texts again or leave them out",
        )
    return vectors


def cluster_texts(encode: Encode, clusters: Sequence[ConceptCluster], *, seed: int = 0) -> ClusteringOutput:
    """Embed the concepts and cluster them by K-means, with the true number of clusters.

    The vectors are not scaled; distances are euclidean.

    >>> from equipoise.domains.concepts.concept_set import ConceptCluster
    >>> vectors = {"rye": [1.0, 0.0], "oat": [0.9, 0.1], "train": [0.0, 1.0], "bus": [0.1, 0.9]}
    >>> grain, traffic = ConceptCluster("grain", ("rye", "oat")), ConceptCluster("traffic", ("train", "bus"))
    >>> output = cluster_texts(lambda texts: [vectors[text] for text in texts], [grain, traffic])
    >>> output.method
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
