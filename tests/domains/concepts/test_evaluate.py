"""Models on a field: figures that other libraries confirm, and claims that the data support."""

from collections.abc import Sequence
from itertools import combinations
from math import isnan
from typing import Any
from zlib import crc32

import numpy as np
import pytest

from equipoise.config import StatsConfig
from equipoise.domains.concepts.concept_set import ConceptCluster, ConceptPair, ConceptSet
from equipoise.domains.concepts.concept_set_reader import read_concept_set
from equipoise.domains.concepts.experiment import evaluate_concepts
from equipoise.domains.concepts.permutation import length_preserving_orders
from equipoise.domains.concepts.results import ConceptEvaluation
from equipoise.errors import InputError, ParameterError, PartialError, UnknownNameError

pytestmark = pytest.mark.slow

pytest.importorskip("sklearn")
networkx = pytest.importorskip("networkx")

QUICK: dict[str, Any] = {"cache": False, "config": StatsConfig(n_resamples=24)}


class Letters:
    """Vectors of any length that texts with the same letters share in part; none of them is zero."""

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        made = [np.random.default_rng(crc32(text.encode())).normal(size=26) for text in texts]
        counts = [[text.casefold().count(chr(97 + place)) for place in range(26)] for text in texts]
        return np.array(counts, dtype=np.float64) + 0.3 * np.array(made)


MODEL = f"py:{Letters.__module__}.Letters"
OTHER = "hash,dim=96"


@pytest.fixture(scope="module")
def found() -> ConceptEvaluation:
    return evaluate_concepts([Letters(), OTHER], **QUICK)


def vectors_of(texts: Sequence[str]) -> np.ndarray:
    # Models are asked in single precision.
    return Letters().encode(texts).astype(np.float32).astype(np.float64)


def cosine(one: np.ndarray, other: np.ndarray) -> float:
    return float(one @ other / np.linalg.norm(one) / np.linalg.norm(other))


def test_semantic_similarity_is_what_scipy_and_numpy_make_of_the_cosines(found: ConceptEvaluation) -> None:
    from scipy.stats import pearsonr

    pairs = read_concept_set().pairs or ()
    said = np.array([cosine(*vectors_of([pair.first, pair.second])) for pair in pairs])
    wanted = np.array([pair.expected for pair in pairs])
    accuracy = np.mean(np.abs(said - wanted) <= 0.1 + 1e-9)
    score = 0.4 * accuracy + 0.4 * pearsonr(said, wanted)[0] + 0.2 * (1 - np.abs(said - wanted).mean())
    assert found[MODEL]["semantic_similarity_score"].value == pytest.approx(score)


def test_clustering_is_what_scikit_learn_finds(found: ConceptEvaluation) -> None:
    from sklearn.cluster import KMeans
    from sklearn.metrics import adjusted_rand_score, silhouette_score

    clusters = read_concept_set().clusters or ()
    vectors = vectors_of([concept for each in clusters for concept in each.concepts])
    labels = KMeans(len(clusters), n_init=10, random_state=0).fit_predict(vectors)
    inside = [
        np.mean([cosine(vectors[i], vectors[j]) for i, j in combinations(np.flatnonzero(labels == own), 2)])
        for own in set(labels)
        if (labels == own).sum() > 1
    ]
    apart = [
        np.mean([1 - cosine(i, j) for i in vectors[labels == a] for j in vectors[labels == b]])
        for a, b in combinations(sorted(set(labels)), 2)
    ]
    score = 0.5 * silhouette_score(vectors, labels) + 0.3 * np.mean(inside) + 0.2 * np.mean(apart)
    assert found[MODEL]["clustering_score"].value == pytest.approx(score)
    true = [each.name for each in clusters for _ in each.concepts]
    standing = next(each for each in found.score_comparisons if each.score == "clustering_score")
    assert standing.reference_metrics["ARI"][MODEL].value == pytest.approx(adjusted_rand_score(true, labels))


def test_entity_recognition_is_a_silhouette_by_type_and_a_mean_cosine(found: ConceptEvaluation) -> None:
    from sklearn.metrics import silhouette_score

    sentences = read_concept_set().sentences or ()
    kinds = list(dict.fromkeys((entity.text, entity.label) for each in sentences for entity in each.entities))
    by_type = silhouette_score(vectors_of([text for text, _ in kinds]), [label for _, label in kinds])
    cosines = [cosine(*vectors_of([entity.text, each.text])) for each in sentences for entity in each.entities]
    score = 0.6 * by_type + 0.4 * np.mean(cosines)
    assert found[MODEL]["entity_recognition_score"].value == pytest.approx(score)


def test_the_knowledge_graph_is_what_networkx_says(found: ConceptEvaluation) -> None:
    relations = read_concept_set().relations or ()
    graph = networkx.DiGraph([(each.subject, each.object) for each in relations])
    vectors = dict(zip(graph, vectors_of(list(graph)), strict=True))
    coherence = np.mean([cosine(vectors[one], vectors[other]) for one, other in graph.edges])
    score = (
        0.4 * coherence
        + 0.3 * min(networkx.density(graph), 0.5)
        + 0.3 * networkx.average_clustering(graph.to_undirected())
    )
    assert found[MODEL]["knowledge_graph_score"].value == pytest.approx(score)


def test_embedding_quality_adds_what_its_source_adds(found: ConceptEvaluation) -> None:
    vectors = vectors_of(read_concept_set().concepts or ())
    diversity = 1 - np.mean([cosine(one, other) for one, other in combinations(vectors, 2)])
    norms = np.linalg.norm(vectors, axis=1)
    score = 0.4 * diversity + 0.3 * min(vectors.var(axis=0).mean(), 1) + 0.3 * norms.std() / norms.mean()
    assert found[MODEL]["embedding_quality_score"].value == pytest.approx(score, abs=1e-6)


def test_the_composite_is_the_mean_of_the_five_and_its_interval_covers_it(found: ConceptEvaluation) -> None:
    scores = found[MODEL]
    composite = scores.pop("composite_score")
    assert len(scores) == 5
    assert composite.value == pytest.approx(np.mean([each.value for each in scores.values()]))
    assert composite.chance == pytest.approx(np.mean([each.chance for each in scores.values()]))
    for each in (*scores.values(), composite):
        assert each.interval.covers(each.value)


def test_every_pair_is_compared_on_every_score(found: ConceptEvaluation) -> None:
    for standing in found.all_score_comparisons:
        (contrast,) = standing.contrasts
        own = standing.estimates
        assert contrast.difference == pytest.approx(own[MODEL].value - own[OTHER].value)
        apart = not set(standing.letters[MODEL]) & set(standing.letters[OTHER])
        assert apart == (contrast.adjusted < 0.05)


def test_the_same_seed_gives_the_same_figures(found: ConceptEvaluation) -> None:
    again = evaluate_concepts([Letters()], tasks=["clustering", "entities"], **QUICK)
    for score, each in again[MODEL].items():
        assert each == found[MODEL][score]


def test_findings_name_the_constant_parts_and_the_reversed_one(found: ConceptEvaluation) -> None:
    told = {(each.code, each.subject) for each in found.findings}
    assert ("EQ311", "knowledge_graph_score") in told
    assert ("EQ312", "embedding_quality_score") in told
    assert not any(code == "EQ310" for code, _ in told)


def test_scores_do_not_depend_on_which_models_are_beside(found: ConceptEvaluation) -> None:
    alone = evaluate_concepts([OTHER], tasks=["similarity"], **QUICK)
    name = "semantic_similarity_score"
    assert alone[OTHER][name] == found[OTHER][name]
    assert alone.advice[0].models == ()
    assert OTHER in alone.recommendations["Semantic Similarity Tasks"]


class Narrow:
    """A model that finds everything alike."""

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        rng = np.random.default_rng(len(texts))
        return np.ones((len(texts), 8)) + 0.01 * rng.normal(size=(len(texts), 8))


class Constant:
    """A model with one vector for all."""

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        return np.tile([3.0, 4.0], (len(texts), 1))


class Broken:
    """A model that fails."""

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        raise RuntimeError("out of luck")


def test_a_collapsed_space_is_found_out() -> None:
    found = evaluate_concepts([Narrow()], tasks=["quality"], **QUICK)
    (finding,) = [each for each in found.findings if each.code == "EQ310"]
    assert "mean cosine is 1.000" in finding.message


def test_one_vector_for_all_leaves_the_correlation_and_so_the_score_undefined() -> None:
    found = evaluate_concepts([Constant()], tasks=["similarity"], **QUICK)
    (scores,) = [found[name] for name in found]
    assert isnan(scores["semantic_similarity_score"].value)
    assert "n/a" in found.summary
    assert [advice.models for advice in found.advice] == [()]


def test_a_model_that_fails_leaves_the_others_alone() -> None:
    found = evaluate_concepts([Letters(), Broken()], tasks=["quality"], **QUICK)
    assert list(found) == [MODEL]
    ((name, error),) = found.failures.items()
    assert "RuntimeError: out of luck" in error.message
    assert f"{name} failed" in repr(found)
    with pytest.raises(type(error)):
        _ = found[name]


def test_the_first_failure_is_raised_when_all_fail() -> None:
    with pytest.raises(ParameterError):
        evaluate_concepts(["tfidf:"], **QUICK)


def test_a_field_without_some_files_is_measured_on_the_others_and_has_no_composite() -> None:
    field = read_concept_set()
    some = ConceptSet("some", pairs=field.pairs, concepts=field.concepts)
    found = evaluate_concepts([Letters()], some, **QUICK)
    assert found.tasks == ("similarity", "quality")
    assert found.composite is None
    assert "clustering_score was not measured: some has no clusters" in found.notes
    weighed = evaluate_concepts([Letters()], some, weights={"similarity": 3, "quality": 1}, **QUICK)
    one, other = (weighed[MODEL][name].value for name in ("semantic_similarity_score", "embedding_quality_score"))
    assert weighed[MODEL]["composite_score"].value == pytest.approx(0.75 * one + 0.25 * other)


def test_what_cannot_be_measured_is_refused_with_its_name() -> None:
    pairs = ConceptSet("mine", pairs=(ConceptPair("a", "b", 0.5), ConceptPair("a", "c", 0.1)))
    with pytest.raises(InputError, match="mine"):
        evaluate_concepts([Letters()], pairs, tasks=["clustering"], **QUICK)
    with pytest.raises(InputError, match="empty"):
        evaluate_concepts([Letters()], ConceptSet("empty"), **QUICK)
    with pytest.raises(UnknownNameError, match="'clusterin'"):
        evaluate_concepts([Letters()], tasks=["clusterin"], **QUICK)
    with pytest.raises(ParameterError, match="-1"):
        evaluate_concepts([Letters()], weights={"quality": -1}, **QUICK)
    with pytest.raises(ParameterError):
        evaluate_concepts([Letters()], weights={"quality": 0}, **QUICK)


def test_few_pairs_have_a_score_and_a_reason_instead_of_an_interval() -> None:
    few = ConceptSet(
        "few",
        pairs=(ConceptPair("a b", "a c", 0.5), ConceptPair("a", "d", 0.1), ConceptPair("e f", "e f g", 0.9)),
    )
    estimate = evaluate_concepts([Letters()], few, **QUICK)[MODEL]["semantic_similarity_score"]
    assert not isnan(estimate.value)
    assert estimate.interval.reason == "3 pairs are too few to resample"


def test_a_model_that_knows_the_clusters_is_told_from_one_that_does_not() -> None:
    clusters = tuple(
        ConceptCluster(f"c{own}", tuple(f"concept {own} {place}" for place in range(8))) for own in range(4)
    )
    field = ConceptSet("made", clusters=clusters)

    class Knows:
        """The cluster is in the name."""

        def encode(self, texts: Sequence[str]) -> np.ndarray:
            rng = np.random.default_rng(0)
            own = [int(text.split()[1]) for text in texts]
            return np.eye(4)[own] + 0.05 * rng.normal(size=(len(texts), 4))

    found = evaluate_concepts([Knows(), "hash,dim=32"], field, **QUICK)
    (advice,) = found.advice
    assert len(advice.models) == 1
    assert advice.models[0].endswith("Knows")
    assert not advice.formula
    standing, _ = found.score_comparisons
    assert standing.reference_metrics["ARI"][advice.models[0]].value == 1.0


class Half:
    """A model that has nothing to say of every third text."""

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        vectors = Letters().encode(texts)
        vectors[[len(text) % 3 == 0 for text in texts]] = 0.0
        return vectors


def test_zero_vectors_are_counted_and_named() -> None:
    field = ConceptSet("few", concepts=("abc", "ab", "abcd", "abcdef", "a"))
    found = evaluate_concepts([Half()], field, weights={"quality": 1}, **QUICK)
    (finding,) = [each for each in found.findings if each.code == "EQ313"]
    assert finding.message == "2 of 5 texts have a vector of zeros: 'abc', 'abcdef'"


def test_objects_of_one_class_are_told_apart_by_the_names_of_a_mapping() -> None:
    found = evaluate_concepts({"old": Letters(), "new": Letters()}, tasks=["quality"], **QUICK)
    assert list(found) == ["old", "new"]
    assert found["old"] == found["new"]
    with pytest.raises(ParameterError):
        evaluate_concepts({"old": 3}, tasks=["quality"], **QUICK)


def test_an_undefined_score_names_the_part_and_the_reason() -> None:
    found = evaluate_concepts({"flat": Constant()}, tasks=["similarity"], **QUICK)
    assert found["flat"]["semantic_similarity_score"].interval.reason == "correlation is undefined"
    (note,) = found.notes
    assert note.startswith("semantic_similarity_score of flat is undefined, as correlation is (")


def test_weights_of_what_is_not_measured_are_not_dropped_in_silence() -> None:
    found = evaluate_concepts([Letters()], tasks=["similarity"], weights={"similarity": 1, "clustering": 1}, **QUICK)
    assert found.notes == ("composite_score is undefined without clustering_score",)


def test_a_lone_model_that_fails_is_not_compared_with_others() -> None:
    with pytest.raises(PartialError) as caught:
        evaluate_concepts([Broken()], tasks=["quality"], **QUICK)
    assert "other models" not in caught.value.hint


def test_chance_of_two_names_for_one_figure_is_one_number(found: ConceptEvaluation) -> None:
    reference_metrics = found.score_comparisons[1].reference_metrics
    for model in found:
        assert reference_metrics["NMI"][model].chance == reference_metrics["V-measure"][model].chance
        assert reference_metrics["ARI"][model].chance == 0.0


def test_who_is_above_chance_is_decided_by_shuffled_labels(found: ConceptEvaluation) -> None:
    """Compared with scikit-learn on other permutations."""
    from sklearn.metrics import adjusted_rand_score

    observed = found.scores[MODEL].tasks["clustering"].observed
    labels = observed.results["clusters-found"].evidence
    value = adjusted_rand_score(labels.true, labels.predicted)
    orders = length_preserving_orders(labels.unit_ids.tolist(), [5], 400)
    permuted = [adjusted_rand_score(labels.true, labels.predicted[order]) for order in orders]
    share = (np.sum(np.array(permuted) >= value) + 1) / 401
    assert observed.chance_test.p == pytest.approx(share, abs=0.06)


def test_every_interval_has_the_requested_confidence_level() -> None:
    config = StatsConfig(confidence_level=0.8, n_resamples=24)
    found = evaluate_concepts([Letters()], cache=False, config=config)
    for task in found.scores[MODEL].tasks.values():
        estimates = [task.estimate, *task.observed.parts.values(), *task.observed.reference_metrics.values()]
        assert {each.interval.confidence_level for each in estimates} == {0.8}, task.blend.name
