"""From texts and an encoder to evidence: similarity, clusters, entities, relations, quality."""

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
from equipoise.tasks.kmeans import kmeans
from equipoise.types import Floats


@pytest.fixture(scope="module")
def field() -> ConceptSet:
    return read_concept_set()


class Table:
    """An encoder that knows some texts by heart and gives the others random vectors of their own."""

    def __init__(self, dims: int = 8, **known: Sequence[float]) -> None:
        self.dims, self.known, self.asked = dims, known, 0

    def __call__(self, texts: Sequence[str]) -> Floats:
        self.asked += 1
        return np.array([self.known[text] if text in self.known else self._drawn(text) for text in texts])

    def _drawn(self, text: str) -> Floats:
        return np.random.default_rng(list(text.encode())).normal(size=self.dims)


# ---- encoders ----------------------------------------------------------------------------------


def test_remembered_texts_are_embedded_once(field: ConceptSet) -> None:
    table = Table()
    encode = memoized_encoder(table, field.texts)
    for task, part in (
        (similarity, field.pairs),
        (cluster_texts, field.clusters),
        (concept_space, field.concepts),
    ):
        task(encode, part)
    entity_evidence(encode, field.sentences)
    relation_evidence(encode, field.relations)
    assert table.asked == 1
    assert encode(["something new"]).shape == (1, 8)


def test_an_encoder_that_does_not_give_a_row_a_text_is_refused() -> None:
    with pytest.raises(ShapeError, match=r"\(1, 2\).*2 texts"):
        encode_checked(lambda texts: [[1.0, 2.0]], ["a", "b"])
    with pytest.raises(NotFiniteError, match=r"'b'.*NaN"):
        encode_checked(lambda texts: [[1.0], [float("nan")]], ["a", "b"])


# ---- similarity --------------------------------------------------------------------------------


def test_similarity_is_the_cosine_of_each_pair(field: ConceptSet) -> None:
    table = Table()
    found = similarity(table, field.pairs)
    rows = zip(field.pairs, found.predicted, strict=True)
    for pair, predicted in rows:
        assert predicted == pytest.approx(cosine_similarity(table([pair.first]), table([pair.second]))[0, 0])
    assert found.expected.tolist() == [pair.expected for pair in field.pairs]


def test_a_text_without_a_direction_is_like_nothing() -> None:
    found = similarity(Table(a=[0.0] * 8, b=[1.0] * 8), [ConceptPair("a", "b", 0.5)])
    assert found.predicted.tolist() == [0.0]


# ---- clusters ----------------------------------------------------------------------------------


def test_clusters_that_lie_apart_are_found_whatever_the_seed() -> None:
    rng = np.random.default_rng(0)
    clusters = [ConceptCluster(name, tuple(f"{name}{place}" for place in range(6))) for name in "xyz"]
    known = {
        concept: np.eye(8)[place] + rng.normal(scale=0.05, size=8)
        for place, each in enumerate(clusters)
        for concept in each.concepts
    }
    for seed in range(3):
        found = cluster_texts(Table(**known), clusters, seed=seed)
        assert evaluate(found.labels, ["ARI", "NMI", "V"], config=StatsConfig(n_resamples=100))["ARI"].value == 1.0
        assert evaluate(found.space, "Silhouette", config=StatsConfig(n_resamples=100))["Silhouette"].value > 0.9


def test_the_two_spaces_hold_the_same_points_under_both_partitions(field: ConceptSet) -> None:
    found = cluster_texts(Table(), field.clusters, seed=3)
    assert np.array_equal(found.space.vectors, found.found.vectors)
    truth = [cluster.name for cluster in field.clusters for _ in cluster.concepts]
    assert found.space.classes[found.space.labels].tolist() == truth
    assert adjusted_rand_score(found.found.labels, found.labels.predicted) == 1.0
    assert found.method == "K-means with 10 clusters, 10 starts, seed 3"


def test_the_same_seed_gives_the_same_clusters(field: ConceptSet) -> None:
    one, other = (cluster_texts(Table(), field.clusters, seed=5).labels.predicted for _ in range(2))
    assert np.array_equal(one, other)


def test_a_collapsed_space_is_clustered_without_a_warning() -> None:
    assert kmeans(np.ones((6, 2)), 3).tolist() == [0] * 6


def test_clusters_need_company() -> None:
    with pytest.raises(InputError):
        cluster_texts(Table(), [ConceptCluster("x", ("a", "b"))])
    with pytest.raises(InputError, match=r"1 concepts.*2 clusters"):
        kmeans(np.ones((1, 2)), 2)


# ---- entities ----------------------------------------------------------------------------------

TWICE = (
    AnnotatedSentence("Plato wrote Laws.", (EntityMention("Plato", "PERSON"), EntityMention("Laws", "WORK"))),
    AnnotatedSentence(
        "Kant read Plato and Plato.",
        (EntityMention("Kant", "PERSON"), *[EntityMention("Plato", "PERSON")] * 2),
    ),
    AnnotatedSentence("Laws are laws.", (EntityMention("Laws", "CONCEPT"),)),
)


def test_an_entity_is_one_point_however_often_it_is_named() -> None:
    found = entity_evidence(Table(), TWICE)
    assert found.space.unit_ids.tolist() == ["Plato", "Laws (WORK)", "Kant", "Laws (CONCEPT)"]
    assert found.mention_ids.tolist() == [
        "1: Plato",
        "1: Laws",
        "2: Kant",
        "2: Plato",
        "2: Plato (2)",
        "3: Laws",
    ]
    assert found.sentence_of.tolist() == [0, 0, 1, 1, 1, 2]


def test_each_mention_is_held_against_its_own_sentence_and_chance_is_the_others() -> None:
    table = Table()
    found = entity_evidence(table, TWICE)
    texts = [sentence.text for sentence in TWICE]
    mentions = [(place, entity.text) for place, each in enumerate(TWICE) for entity in each.entities]
    cosines = cosine_similarity(table([name for _, name in mentions]), table(texts))
    own = [cosines[row, place] for row, (place, _) in enumerate(mentions)]
    others = [
        cosines[row, place] for row, (own_place, _) in enumerate(mentions) for place in range(3) if place != own_place
    ]
    assert found.entity_text == pytest.approx(own)
    assert found.entity_text_chance == pytest.approx(np.mean(others))


def test_one_type_is_refused() -> None:
    with pytest.raises(InputError):
        entity_evidence(Table(), [AnnotatedSentence("Plato", (EntityMention("Plato", "PERSON"),))])


# ---- the probe ---------------------------------------------------------------------------------


def test_the_probe_is_the_cross_validated_regression_of_scikit_learn() -> None:
    rng = np.random.default_rng(0)
    names = [f"t{place % 3}" for place in range(90)]
    space = Space.of(rng.normal(size=(90, 6)) + np.arange(90)[:, None] % 3 / 2, labels=names)
    held_out = np.empty(90, dtype=int)
    parts = kfold_splits(range(90), 5, stratify=names, rng=np.random.default_rng(7))
    for fold, (_, test) in enumerate(parts):
        held_out[test] = fold
    oracle = cross_val_predict(
        make_pipeline(StandardScaler(), LogisticRegression(max_iter=5000)),
        space.vectors,
        space.labels,
        cv=PredefinedSplit(held_out),
    )
    assert linear_probe(space, seed=7).predicted.tolist() == oracle.tolist()


def test_the_probe_learns_nothing_from_noise() -> None:
    noise = np.random.default_rng(0).normal(size=(200, 120))
    labels = linear_probe(Space.of(noise, labels=[f"t{place % 2}" for place in range(200)]))
    assert 0.35 < np.mean(labels.true == labels.predicted) < 0.65


def test_copies_of_a_point_stay_on_one_side_of_the_probe() -> None:
    rng = np.random.default_rng(0)
    vectors = np.repeat(rng.normal(size=(60, 30)), 2, axis=0)
    names = np.repeat([f"t{code}" for code in rng.integers(0, 2, 60)], 2)
    groups = np.repeat(np.arange(60), 2).tolist()
    parted, kept = (linear_probe(Space.of(vectors, labels=names), groups=each) for each in (None, groups))
    leak, honest = (np.mean(labels.true == labels.predicted) for labels in (parted, kept))
    assert honest < 0.65 < leak


def test_the_scale_of_the_vectors_does_not_matter_to_the_probe() -> None:
    rng = np.random.default_rng(3)
    names = [f"t{place % 3}" for place in range(60)]
    vectors = rng.normal(size=(60, 5)) + np.arange(60)[:, None] % 3
    one, other = (linear_probe(Space.of(vectors * scale, labels=names)).predicted for scale in (1.0, 1e-3))
    assert np.array_equal(one, other)


def test_a_class_that_the_training_part_lacks_is_never_predicted() -> None:
    labels = linear_probe(Space.of([[0.0], [1.0]], labels=["a", "b"]))
    assert (labels.true != labels.predicted).all()
    with pytest.raises(UndefinedError):
        linear_probe(Space.of([[0.0], [1.0]], labels=["a", "a"]))


# ---- relations ---------------------------------------------------------------------------------


def slow_rank(table: Table, relation: Relation, relations: Sequence[Relation]) -> int:
    """The rank by counting, with everything that is no candidate left out by hand."""
    names = dict.fromkeys(name for relation in relations for name in (relation.subject, relation.object))
    same = {
        each.object for each in relations if (each.subject, each.predicate) == (relation.subject, relation.predicate)
    }
    left = [name for name in names if name != relation.subject and name not in same - {relation.object}]
    asked = table([f"{relation.subject} {relation.predicate.replace('_', ' ')}"])
    scores = dict(zip(left, cosine_similarity(asked, table(left))[0], strict=True))
    return 1 + sum(score > scores[relation.object] for score in scores.values())


def test_objects_are_ranked_among_all_entities_but_the_subject_and_other_answers(field: ConceptSet) -> None:
    table = Table()
    found = relation_evidence(table, field.relations)
    assert found.ranking.ranks.tolist() == [slow_rank(table, relation, field.relations) for relation in field.relations]
    entities_there = len({name for relation in field.relations for name in (relation.subject, relation.object)})
    assert found.ranking.candidates.max() == entities_there - 1
    assert found.ranking.candidates.min() < entities_there - 1
    assert found.subjects.tolist() == [relation.subject for relation in field.relations]


def test_a_model_that_knows_nothing_finds_objects_at_the_chance_level(field: ConceptSet) -> None:
    result = evaluate(
        relation_evidence(Table(dims=64), field.relations).ranking, ["MRR", "MR"], config=StatsConfig(n_resamples=200)
    )
    for estimate in result.estimates.values():
        assert estimate.interval.low <= estimate.chance <= estimate.interval.high


def test_two_relations_of_one_pair_are_one_edge() -> None:
    said = [Relation("a", "reads", "b"), Relation("a", "answers", "b"), Relation("b", "reads", "a")]
    found = relation_evidence(Table(), said)
    assert found.space.edges.tolist() == [[0, 1], [1, 0]]
    assert len(found.ranking) == 3
    assert GraphDensity().value(found.space) == 1.0
    assert GraphClustering().value(found.space) == 0.0


def test_one_relation_is_refused() -> None:
    with pytest.raises(InputError):
        relation_evidence(Table(), [Relation("a", "reads", "b")])


# ---- quality, and a model of the program -------------------------------------------------------


def test_quality_needs_two_concepts() -> None:
    with pytest.raises(InputError):
        concept_space(Table(), ["a"])


def test_a_model_of_the_program_is_an_encoder(field: ConceptSet) -> None:
    encode = memoized_encoder(embedder("hash", dim=64, cache=False).encode, field.texts)
    assert len(similarity(encode, field.pairs)) == 240
    found = entity_evidence(encode, field.sentences)
    accuracy = evaluate(found.probed, "Acc")["Acc"]
    assert accuracy.interval.method == "wilson"
    assert accuracy.n == 123
    assert (
        evaluate(concept_space(encode, field.concepts), "Diversity", config=StatsConfig(n_resamples=100))[
            "Diversity"
        ].value
        > 0.5
    )
