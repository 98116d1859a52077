"""Concept tasks: similarity, clusters, entities, relations and quality."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.pairwise import cosine_similarity
from sklearn.model_selection import PredefinedSplit, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from equipoise.config import StatsConfig
from equipoise.domains.concepts.concept_set import (
    AnnotatedSentence,
    ConceptCluster,
    ConceptPair,
    ConceptSet,
    EntityMention,
    Relation,
)
from equipoise.domains.concepts.concept_set_reader import read_concept_set
from equipoise.domains.concepts.evidence import (
    concept_space,
    entity_evidence,
    memoized_encoder,
    relation_evidence,
    similarity,
)
from equipoise.errors import InputError, NotFiniteError, ShapeError, UndefinedError
from equipoise.evidence.space import Space
from equipoise.io.splits import kfold_splits
from equipoise.metrics.structure import GraphClustering, GraphDensity
from equipoise.models.embedder import embedder
from equipoise.runs.evaluate import evaluate
from equipoise.tasks.classification import cluster_texts, encode_checked, linear_probe
from equipoise.tasks.numpy_estimators import kmeans
from equipoise.types import Floats


@pytest.fixture(scope="module")
def concept_set() -> ConceptSet:
    return read_concept_set()


class TableEncoder:
    """An encoder with given vectors of some texts and deterministic random vectors of the others."""

    def __init__(self, dims: int = 8, **vectors: Sequence[float]) -> None:
        self.dims, self.vectors, self.n_calls = dims, vectors, 0

    def __call__(self, texts: Sequence[str]) -> Floats:
        self.n_calls += 1
        return np.array([self.vectors[text] if text in self.vectors else self._drawn(text) for text in texts])

    def _drawn(self, text: str) -> Floats:
        return np.random.default_rng(list(text.encode())).normal(size=self.dims)


# ---- encoders ----------------------------------------------------------------------------------


def test_memoised_texts_are_embedded_once(concept_set: ConceptSet) -> None:
    table = TableEncoder()
    encode = memoized_encoder(table, concept_set.texts)
    for task, task_data in (
        (similarity, concept_set.pairs),
        (cluster_texts, concept_set.clusters),
        (concept_space, concept_set.concepts),
    ):
        task(encode, task_data)
    entity_evidence(encode, concept_set.sentences)
    relation_evidence(encode, concept_set.relations)
    assert table.n_calls == 1
    assert encode(["something new"]).shape == (1, 8)


def test_wrong_shapes_and_nan_of_encoders_raise_errors() -> None:
    with pytest.raises(ShapeError, match=r"\(1, 2\).*2 texts"):
        encode_checked(lambda texts: [[1.0, 2.0]], ["a", "b"])
    with pytest.raises(NotFiniteError, match=r"'b'.*NaN"):
        encode_checked(lambda texts: [[1.0], [float("nan")]], ["a", "b"])


# ---- similarity --------------------------------------------------------------------------------


def test_similarity_is_the_cosine_of_each_pair(concept_set: ConceptSet) -> None:
    table = TableEncoder()
    pairs = similarity(table, concept_set.pairs)
    rows = zip(concept_set.pairs, pairs.predicted, strict=True)
    for pair, predicted in rows:
        assert predicted == pytest.approx(cosine_similarity(table([pair.first]), table([pair.second]))[0, 0])
    assert pairs.expected.tolist() == [pair.expected for pair in concept_set.pairs]


def test_zero_vectors_have_similarity_zero() -> None:
    pairs = similarity(TableEncoder(a=[0.0] * 8, b=[1.0] * 8), [ConceptPair("a", "b", 0.5)])
    assert pairs.predicted.tolist() == [0.0]


# ---- clusters ----------------------------------------------------------------------------------


def test_separated_clusters_are_found_with_any_seed() -> None:
    rng = np.random.default_rng(0)
    clusters = [ConceptCluster(name, tuple(f"{name}{index}" for index in range(6))) for name in "xyz"]
    vectors = {
        concept: np.eye(8)[index] + rng.normal(scale=0.05, size=8)
        for index, cluster in enumerate(clusters)
        for concept in cluster.concepts
    }
    for seed in range(3):
        clustering = cluster_texts(TableEncoder(**vectors), clusters, seed=seed)
        assert evaluate(clustering.labels, ["ARI", "NMI", "V"], config=StatsConfig(n_resamples=100))["ARI"].value == 1.0
        assert evaluate(clustering.space, "Silhouette", config=StatsConfig(n_resamples=100))["Silhouette"].value > 0.9


def test_both_spaces_have_the_same_points_and_different_labels(concept_set: ConceptSet) -> None:
    clustering = cluster_texts(TableEncoder(), concept_set.clusters, seed=3)
    assert np.array_equal(clustering.space.vectors, clustering.predicted.vectors)
    truth = [cluster.name for cluster in concept_set.clusters for _ in cluster.concepts]
    assert clustering.space.classes[clustering.space.labels].tolist() == truth
    assert adjusted_rand_score(clustering.predicted.labels, clustering.labels.predicted) == 1.0
    assert clustering.method == "K-means with 10 clusters, 10 starts, seed 3"


def test_the_same_seed_gives_the_same_clusters(concept_set: ConceptSet) -> None:
    first, second = (cluster_texts(TableEncoder(), concept_set.clusters, seed=5).labels.predicted for _ in range(2))
    assert np.array_equal(first, second)


def test_a_collapsed_space_is_clustered_without_a_warning() -> None:
    assert kmeans(np.ones((6, 2)), 3).tolist() == [0] * 6


def test_too_few_clusters_or_concepts_raise_input_error() -> None:
    with pytest.raises(InputError):
        cluster_texts(TableEncoder(), [ConceptCluster("x", ("a", "b"))])
    with pytest.raises(InputError, match=r"1 concepts.*2 clusters"):
        kmeans(np.ones((1, 2)), 2)


# ---- entities ----------------------------------------------------------------------------------

SENTENCES = (
    AnnotatedSentence("Plato wrote Laws.", (EntityMention("Plato", "PERSON"), EntityMention("Laws", "WORK"))),
    AnnotatedSentence(
        "Kant read Plato and Plato.",
        (EntityMention("Kant", "PERSON"), *[EntityMention("Plato", "PERSON")] * 2),
    ),
    AnnotatedSentence("Laws are laws.", (EntityMention("Laws", "CONCEPT"),)),
)


def test_repeated_entities_are_one_point() -> None:
    entities = entity_evidence(TableEncoder(), SENTENCES)
    assert entities.space.unit_ids.tolist() == ["Plato", "Laws (WORK)", "Kant", "Laws (CONCEPT)"]
    assert entities.mention_ids.tolist() == [
        "1: Plato",
        "1: Laws",
        "2: Kant",
        "2: Plato",
        "2: Plato (2)",
        "3: Laws",
    ]
    assert entities.sentence_of.tolist() == [0, 0, 1, 1, 1, 2]


def test_entity_text_similarity_compares_mentions_with_their_sentence() -> None:
    table = TableEncoder()
    evidence = entity_evidence(table, SENTENCES)
    texts = [sentence.text for sentence in SENTENCES]
    mentions = [
        (sentence_index, entity.text)
        for sentence_index, sentence in enumerate(SENTENCES)
        for entity in sentence.entities
    ]
    cosines = cosine_similarity(table([name for _, name in mentions]), table(texts))
    expected = [cosines[row, sentence_index] for row, (sentence_index, _) in enumerate(mentions)]
    chance = [
        cosines[row, sentence_index]
        for row, (own_index, _) in enumerate(mentions)
        for sentence_index in range(3)
        if sentence_index != own_index
    ]
    assert evidence.entity_text == pytest.approx(expected)
    assert evidence.entity_text_chance == pytest.approx(np.mean(chance))


def test_one_entity_type_raises_input_error() -> None:
    with pytest.raises(InputError):
        entity_evidence(TableEncoder(), [AnnotatedSentence("Plato", (EntityMention("Plato", "PERSON"),))])


# ---- the probe ---------------------------------------------------------------------------------


def test_the_probe_agrees_with_cross_validated_regression_of_scikit_learn() -> None:
    rng = np.random.default_rng(0)
    names = [f"t{index % 3}" for index in range(90)]
    space = Space.of(rng.normal(size=(90, 6)) + np.arange(90)[:, None] % 3 / 2, labels=names)
    fold_of = np.empty(90, dtype=int)
    splits = kfold_splits(range(90), 5, stratify=names, rng=np.random.default_rng(7))
    for fold, (_, test) in enumerate(splits):
        fold_of[test] = fold
    expected = cross_val_predict(
        make_pipeline(StandardScaler(), LogisticRegression(max_iter=5000)),
        space.vectors,
        space.labels,
        cv=PredefinedSplit(fold_of),
    )
    assert linear_probe(space, seed=7).predicted.tolist() == expected.tolist()


def test_the_probe_of_noise_has_chance_accuracy() -> None:
    noise = np.random.default_rng(0).normal(size=(200, 120))
    labels = linear_probe(Space.of(noise, labels=[f"t{index % 2}" for index in range(200)]))
    assert 0.35 < np.mean(labels.true == labels.predicted) < 0.65


def test_copies_of_a_point_stay_in_one_fold_of_the_probe() -> None:
    rng = np.random.default_rng(0)
    vectors = np.repeat(rng.normal(size=(60, 30)), 2, axis=0)
    names = np.repeat([f"t{code}" for code in rng.integers(0, 2, 60)], 2)
    groups = np.repeat(np.arange(60), 2).tolist()
    ungrouped, grouped = (
        linear_probe(Space.of(vectors, labels=names), groups=point_groups) for point_groups in (None, groups)
    )
    ungrouped_accuracy, grouped_accuracy = (np.mean(labels.true == labels.predicted) for labels in (ungrouped, grouped))
    assert grouped_accuracy < 0.65 < ungrouped_accuracy


def test_the_probe_does_not_depend_on_the_scale() -> None:
    rng = np.random.default_rng(3)
    names = [f"t{index % 3}" for index in range(60)]
    vectors = rng.normal(size=(60, 5)) + np.arange(60)[:, None] % 3
    original, scaled = (linear_probe(Space.of(vectors * scale, labels=names)).predicted for scale in (1.0, 1e-3))
    assert np.array_equal(original, scaled)


def test_classes_missing_from_the_training_folds_are_never_predicted() -> None:
    labels = linear_probe(Space.of([[0.0], [1.0]], labels=["a", "b"]))
    assert (labels.true != labels.predicted).all()
    with pytest.raises(UndefinedError):
        linear_probe(Space.of([[0.0], [1.0]], labels=["a", "a"]))


# ---- relations ---------------------------------------------------------------------------------


def rank_by_loop(table: TableEncoder, relation: Relation, relations: Sequence[Relation]) -> int:
    """The rank by a loop over the candidates."""
    names = dict.fromkeys(name for relation in relations for name in (relation.subject, relation.object))
    other_answers = {
        other.object
        for other in relations
        if (other.subject, other.predicate) == (relation.subject, relation.predicate)
    }
    candidates = [name for name in names if name != relation.subject and name not in other_answers - {relation.object}]
    query = table([f"{relation.subject} {relation.predicate.replace('_', ' ')}"])
    scores = dict(zip(candidates, cosine_similarity(query, table(candidates))[0], strict=True))
    return 1 + sum(score > scores[relation.object] for score in scores.values())


def test_objects_are_ranked_without_the_subject_and_other_answers(concept_set: ConceptSet) -> None:
    table = TableEncoder()
    evidence = relation_evidence(table, concept_set.relations)
    assert evidence.ranking.ranks.tolist() == [
        rank_by_loop(table, relation, concept_set.relations) for relation in concept_set.relations
    ]
    n_entities = len({name for relation in concept_set.relations for name in (relation.subject, relation.object)})
    assert evidence.ranking.candidates.max() == n_entities - 1
    assert evidence.ranking.candidates.min() < n_entities - 1
    assert evidence.subjects.tolist() == [relation.subject for relation in concept_set.relations]


def test_random_vectors_rank_objects_at_the_chance_level(concept_set: ConceptSet) -> None:
    result = evaluate(
        relation_evidence(TableEncoder(dims=64), concept_set.relations).ranking,
        ["MRR", "MR"],
        config=StatsConfig(n_resamples=200),
    )
    for estimate in result.estimates.values():
        assert estimate.interval.low <= estimate.chance <= estimate.interval.high


def test_two_relations_of_one_pair_are_one_edge() -> None:
    relations = [Relation("a", "reads", "b"), Relation("a", "answers", "b"), Relation("b", "reads", "a")]
    evidence = relation_evidence(TableEncoder(), relations)
    assert evidence.space.edges.tolist() == [[0, 1], [1, 0]]
    assert len(evidence.ranking) == 3
    assert GraphDensity().value(evidence.space) == 1.0
    assert GraphClustering().value(evidence.space) == 0.0


def test_one_relation_raises_input_error() -> None:
    with pytest.raises(InputError):
        relation_evidence(TableEncoder(), [Relation("a", "reads", "b")])


# ---- quality, and an embedder as encoder -------------------------------------------------------


def test_one_concept_raises_input_error() -> None:
    with pytest.raises(InputError):
        concept_space(TableEncoder(), ["a"])


def test_embedders_are_encoders(concept_set: ConceptSet) -> None:
    encode = memoized_encoder(embedder("hash", dim=64, cache=False).encode, concept_set.texts)
    assert len(similarity(encode, concept_set.pairs)) == 240
    evidence = entity_evidence(encode, concept_set.sentences)
    accuracy = evaluate(evidence.probed, "Acc")["Acc"]
    assert accuracy.interval.method == "wilson"
    assert accuracy.n == 123
    assert (
        evaluate(concept_space(encode, concept_set.concepts), "Diversity", config=StatsConfig(n_resamples=100))[
            "Diversity"
        ].value
        > 0.5
    )
