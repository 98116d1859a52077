"""Evidence of the tasks of a concept set: pairs in several spaces, entities, relations, and errors of dyadic means."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import isnan, nan
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from equipoise.domains.concepts.concept_set import (
    AnnotatedSentence,
    ConceptPair,
    EntityMention,
    Relation,
    relation_query,
)
from equipoise.errors import InputError
from equipoise.evidence.pairs import Pairs
from equipoise.evidence.ranking import Ranking
from equipoise.evidence.segments import average_ranks
from equipoise.evidence.space import Space
from equipoise.geometry.distances import cosine
from equipoise.geometry.search import score_blocks
from equipoise.metrics.pairs import correlation
from equipoise.tasks.classification import Encode, encode_checked, linear_probe

if TYPE_CHECKING:
    from equipoise.evidence.labels import Labels
    from equipoise.types import Floats, Ids, Ints

# Vectors: each text is embedded once.


def memoized_encoder(encode: Encode, texts: Sequence[str]) -> Encode:
    """An encoder that embeds these texts in one go now, and any others on request.

    >>> calls = []
    >>> encode = memoized_encoder(lambda texts: calls.append(texts) or [[1.0]] * len(texts), ["a", "b"])
    >>> len(encode(["b", "a", "b"])), calls
    (3, [['a', 'b']])
    """
    unique_texts = list(dict.fromkeys(texts))
    known = dict(zip(unique_texts, encode_checked(encode, unique_texts), strict=True)) if unique_texts else {}

    def lookup(texts: Sequence[str]) -> Floats:
        more = [text for text in dict.fromkeys(texts) if text not in known]
        if more:
            known.update(zip(more, encode_checked(encode, more), strict=True))
        return np.array([known[text] for text in texts])

    return lookup


def paired_cosine(one: Floats, other: Floats) -> Floats:
    """The cosine of each row with the same row of the other; a vector without a direction has 0."""
    return np.asarray(1.0 - cosine(one, other))


def unit_rows(vectors: Floats) -> Floats:
    """Rows of length one; those without a direction stay zero.

    >>> unit_rows(np.array([[3.0, 4.0], [0.0, 0.0]])).tolist()
    [[0.6, 0.8], [0.0, 0.0]]
    """
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)


# Pairs: the cosine of their vectors, after the mean of all texts is subtracted, and after whitening.

MIN_POSITIVE = 0.5
"""From this expected similarity on, a pair counts as similar in pair classification."""


def similarity(encode: Encode, pairs: Sequence[ConceptPair]) -> Pairs:
    """The cosine of each pair's vectors, and the similarity that is expected; a unit is a pair.

    The cosine of a zero vector with any other vector is 0.

    >>> from equipoise.domains.concepts.concept_set import ConceptPair
    >>> vectors = {"rye": [1.0, 0.0], "wheat": [0.6, 0.8]}
    >>> pairs = similarity(lambda texts: [vectors[text] for text in texts], [ConceptPair("rye", "wheat", 0.7)])
    >>> pairs.predicted.round(6).tolist(), pairs.expected.tolist()
    ([0.6], [0.7])
    """
    if not pairs:
        raise InputError("there are no pairs to compare", hint="a concept set has them in pairs.json")
    vectors = encode_checked(encode, [text for pair in pairs for text in (pair.first, pair.second)])
    return Pairs.of(
        paired_cosine(vectors[::2], vectors[1::2]),
        [pair.expected for pair in pairs],
        unit_ids=[pair.id for pair in pairs],
    )


def pair_texts(pairs: Sequence[ConceptPair]) -> tuple[list[str], Ints]:
    """Every text of the pairs once, and the rows of the first and of the second texts."""
    texts = list(dict.fromkeys(text for pair in pairs for text in (pair.first, pair.second)))
    row = {text: index for index, text in enumerate(texts)}
    return texts, np.array([(row[pair.first], row[pair.second]) for pair in pairs]).T


def centered_and_whitened(encode: Encode, pairs: Sequence[ConceptPair]) -> tuple[Pairs, Pairs]:
    """The pairs with cosines of centred vectors, and with cosines of whitened vectors.

    Mean and covariance are those of the texts of the pairs, each text once; the expected similarities are not used.
    """
    texts, ends = pair_texts(pairs)
    vectors = encode_checked(encode, texts)
    centered = vectors - vectors.mean(axis=0)
    expected, ids = [pair.expected for pair in pairs], [pair.id for pair in pairs]
    evidence = (
        Pairs.of(paired_cosine(points[ends[0]], points[ends[1]]), expected, unit_ids=ids)
        for points in (centered, whitened(centered))
    )
    return next(evidence), next(evidence)


def whitened(centered: Floats) -> Floats:
    """Centred vectors, multiplied by the inverse square root of their covariance, in the space that they span.

    With fewer texts than dimensions, the plain covariance would make all texts equally far apart. It is therefore
    shrunk towards a multiple of the identity (Ledoit and Wolf, Journal of Multivariate Analysis 88, 2004).
    """
    count, dims = centered.shape
    left, sizes, _ = np.linalg.svd(centered, full_matrices=False)
    variances = sizes**2 / count
    mean = variances.sum() / dims
    if mean == 0:
        return np.zeros_like(left)
    covariance_norm = float((variances**2).sum())
    delta = covariance_norm / dims - mean**2
    beta = (float((np.einsum("ij,ij->i", centered, centered) ** 2).sum()) / count - covariance_norm) / (dims * count)
    shrinkage = min(max(beta, 0.0), delta) / delta if delta > 0 else 0.0
    shrunk = (1.0 - shrinkage) * variances + shrinkage * mean
    return np.asarray(left * np.divide(sizes, np.sqrt(shrunk), out=np.zeros_like(sizes), where=shrunk > 0))


def binary_pairs(pairs: Pairs) -> Pairs | None:
    """The pairs as similar (1) or not (0), for average precision; None if all are the same."""
    similar = pairs.expected >= MIN_POSITIVE
    if similar.all() or not similar.any():
        return None
    return replace(pairs, expected=similar.astype(np.float64))


def annotator_ceiling(pairs: Sequence[ConceptPair]) -> float:
    """Mean Spearman correlation of each annotator with the mean of the others: what a human reaches on these pairs.

    The annotators in position j of all pairs are assumed to be one person. NaN for fewer than two annotators.
    """
    annotators = max((len(pair.ratings) for pair in pairs), default=0)
    ratings = np.full((len(pairs), annotators), nan)
    for row, pair in enumerate(pairs):
        ratings[row, : len(pair.ratings)] = pair.ratings
    is_rated = ~np.isnan(ratings)
    values = np.where(is_rated, ratings, 0.0)
    agreements = []
    for annotator in range(annotators):
        # Summed without the annotator: a subtraction would turn ties into almost ties.
        others = np.delete(is_rated, annotator, axis=1).sum(axis=1)
        rows = is_rated[:, annotator] & (others > 0)
        means = np.delete(values, annotator, axis=1).sum(axis=1)[rows] / others[rows]
        agreements.append(correlation(average_ranks(values[rows, annotator]), average_ranks(means)))
    defined = [agreement for agreement in agreements if not isnan(agreement)]
    return float(np.mean(defined)) if defined else nan


# Entities: clustering by type, and similarity to their sentences.


@dataclass(frozen=True)
class EntityEvidence:
    """Entities by type, and the similarity of each mention to its sentence.

    ``space`` has one point per entity: one that is named in three sentences is still one, since copies of a
    point would be its nearest neighbours. ``entity_text`` has one cosine a mention, ``mention_ids`` names
    them, ``sentence_of`` and ``entity_of`` are the sentence and the point of each, so that sentences can be resampled.
    """

    space: Space
    names: tuple[str, ...]
    entity_text: Floats
    mention_ids: Ids
    sentence_of: Ints
    entity_of: Ints
    entity_text_chance: float
    """The mean cosine of the mentions with the other sentences; NaN for a single one."""
    seed: int = 0

    @cached_property
    def probed(self) -> Labels:
        """The type of each entity as a cross-validated linear probe predicts it."""
        return linear_probe(self.space, groups=self.names, seed=self.seed)


def entity_evidence(encode: Encode, sentences: Sequence[AnnotatedSentence], *, seed: int = 0) -> EntityEvidence:
    """Embed sentences and entities; ``seed`` decides the folds of the probe."""
    mentions = [(index, entity) for index, sentence in enumerate(sentences) for entity in sentence.entities]
    kinds = list(dict.fromkeys((entity.text, entity.label) for _, entity in mentions))
    if len({label for _, label in kinds}) < 2:
        raise InputError("the sentences have entities of fewer than two types", hint="at least two types are needed")
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
        rows,
        _other_sentence_cosine(mention_vectors[rows], sentence_vectors, inside),
        seed,
    )


def _other_sentence_cosine(mentions: Floats, sentences: Floats, inside: Ints) -> float:
    """The mean cosine of mentions with sentences that they are not marked in: pairs of the chance level."""
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

    ``space`` has one point per entity and one edge per related pair; relation coherence
    is ``Coherence`` on it. ``ranking`` has one unit a relation: the rank of its object among all entities
    but the subject. Other correct answers to the same query are not candidates. ``subjects`` can
    serve as clusters: relations of one subject have nearly the same query vector.
    """

    space: Space
    ranking: Ranking
    subjects: Ids
    ends: Ints
    """The rows of the subject and of the object of each relation."""
    queries: Floats
    """The query vector of each relation."""
    other_answers: list[list[int]]
    """The other entities that answer the query of each relation."""


def relation_evidence(encode: Encode, relations: Sequence[Relation]) -> RelationEvidence:
    """Embed all entities, join the related ones, and look for the object of each relation.

    The question is the subject and the predicate as words, ``Plato wrote``; the answers are ranked by cosine.
    """
    if len(relations) < 2:
        raise InputError(
            f"there {'is one relation' if relations else 'are no relations'}",
            hint="the object of a relation is ranked among several entities",
        )
    names = list(dict.fromkeys(name for relation in relations for name in (relation.subject, relation.object)))
    row = {name: index for index, name in enumerate(names)}
    questions = [relation_query(relation) for relation in relations]
    query_row = {question: index for index, question in enumerate(dict.fromkeys(questions))}
    vectors = encode_checked(encode, [*names, *query_row])
    ends = np.array([(row[relation.subject], row[relation.object]) for relation in relations], dtype=np.int64)
    queries = vectors[len(names) :][[query_row[question] for question in questions]]
    other_answers = _other_answers(questions, ends)
    return RelationEvidence(
        Space.of(vectors[: len(names)], edges=np.unique(ends, axis=0), unit_ids=names),
        _ranking(queries, vectors[: len(names)], ends, other_answers, relations),
        np.array([relation.subject for relation in relations], dtype=object),
        ends,
        queries,
        other_answers,
    )


def _other_answers(questions: Sequence[str], ends: Ints) -> list[list[int]]:
    """For each relation, the other entities that answer its query."""
    answers: dict[str, set[int]] = {}
    for question, (_, answer) in zip(questions, ends.tolist(), strict=True):
        answers.setdefault(question, set()).add(answer)
    return [
        sorted(answers[question] - {answer}) for question, answer in zip(questions, ends[:, 1].tolist(), strict=True)
    ]


def _ranking(
    queries: Floats, corpus: Floats, ends: Ints, other_answers: list[list[int]], relations: Sequence[Relation]
) -> Ranking:
    """The rank of each object; NaN marks entities that are not candidates."""

    def masked() -> Iterator[tuple[slice, NDArray[Any]]]:
        for rows, scores in score_blocks(queries, corpus, geometry="cosine"):
            for row, others in zip(scores, other_answers[rows], strict=True):
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
    pool = ranking.candidates - np.array([len(others) for others in other_answers])
    return replace(ranking, candidates=pool, depth=pool)


# Embedding quality: metrics of the vectors of standard concepts, without ground truth.


def concept_space(encode: Encode, concepts: Sequence[str]) -> Space:
    """The vectors of the concepts; a unit is a concept."""
    if len(concepts) < 2:
        raise InputError(
            f"there {'is one concept' if concepts else 'are no concepts'}",
            hint="at least two concepts are needed",
        )
    return Space.of(encode_checked(encode, list(concepts)), unit_ids=list(concepts))


# Errors of a mean over pairs that share members: relations of one entity are not independent.


def dyadic_weights(edges: Ints, points: int, n_resamples: int, rng: np.random.Generator) -> Floats:
    """One row per resample and one column per edge: weights with variance 1, and covariance 1 if edges share a node.

    No weights have exactly these covariances in every graph; the nearest that exist are a little larger.
    """
    ends = np.zeros((len(edges), points))
    rows = np.arange(len(edges))
    ends[rows, edges[:, 0]] = ends[rows, edges[:, 1]] = 1.0
    # Edges with a common end share 1 in ends @ ends.T, but an edge shares 2 with itself: 1 is subtracted,
    # and negative variances are set to 0. The eigenvalues are those of the smaller matrix.
    values, vectors = np.linalg.eigh(ends.T @ ends)
    above_one = values > 1.0
    across = ends @ vectors[:, above_one] * np.sqrt((values[above_one] - 1.0) / values[above_one])
    return np.asarray(rng.standard_normal((n_resamples, int(above_one.sum()))) @ across.T)


def dyadic_errors(values: Floats, edges: Ints, points: int, n_resamples: int, rng: np.random.Generator) -> Floats:
    """Errors of the mean of ``values`` (one per edge): one per resample."""
    weights = dyadic_weights(edges, points, n_resamples, rng)
    return np.asarray(weights @ (values - values.mean()) / len(values))
