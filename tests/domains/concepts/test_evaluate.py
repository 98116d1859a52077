"""Evaluation of models on a concept set: scores equal those of other libraries, and claims are supported by tests."""

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


class LetterModel:
    """Letter counts plus noise: texts with the same letters are similar, and no vector is zero."""

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        noise = [np.random.default_rng(crc32(text.encode())).normal(size=26) for text in texts]
        counts = [[text.casefold().count(chr(97 + letter)) for letter in range(26)] for text in texts]
        return np.array(counts, dtype=np.float64) + 0.3 * np.array(noise)


MODEL = f"py:{LetterModel.__module__}.LetterModel"
OTHER = "hash,dim=96"


@pytest.fixture(scope="module")
def evaluation() -> ConceptEvaluation:
    return evaluate_concepts([LetterModel(), OTHER], **QUICK)


def vectors_of(texts: Sequence[str]) -> np.ndarray:
    # Models are called in single precision.
    return LetterModel().encode(texts).astype(np.float32).astype(np.float64)


def cosine(a: np.ndarray, b: np.ndarray) -> float:
    return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))


def test_semantic_similarity_equals_scipy_and_numpy_on_the_cosines(evaluation: ConceptEvaluation) -> None:
    from scipy.stats import pearsonr

    pairs = read_concept_set().pairs or ()
    cosines = np.array([cosine(*vectors_of([pair.first, pair.second])) for pair in pairs])
    expected = np.array([pair.expected for pair in pairs])
    accuracy = np.mean(np.abs(cosines - expected) <= 0.1 + 1e-9)
    score = 0.4 * accuracy + 0.4 * pearsonr(cosines, expected)[0] + 0.2 * (1 - np.abs(cosines - expected).mean())
    assert evaluation[MODEL]["semantic_similarity_score"].value == pytest.approx(score)


def test_clustering_equals_scikit_learn(evaluation: ConceptEvaluation) -> None:
    from sklearn.cluster import KMeans
    from sklearn.metrics import adjusted_rand_score, silhouette_score

    clusters = read_concept_set().clusters or ()
    vectors = vectors_of([concept for cluster in clusters for concept in cluster.concepts])
    labels = KMeans(len(clusters), n_init=10, random_state=0).fit_predict(vectors)
    coherences = [
        np.mean([cosine(vectors[i], vectors[j]) for i, j in combinations(np.flatnonzero(labels == label), 2)])
        for label in set(labels)
        if (labels == label).sum() > 1
    ]
    separations = [
        np.mean([1 - cosine(i, j) for i in vectors[labels == a] for j in vectors[labels == b]])
        for a, b in combinations(sorted(set(labels)), 2)
    ]
    score = 0.5 * silhouette_score(vectors, labels) + 0.3 * np.mean(coherences) + 0.2 * np.mean(separations)
    assert evaluation[MODEL]["clustering_score"].value == pytest.approx(score)
    true = [cluster.name for cluster in clusters for _ in cluster.concepts]
    comparison = next(item for item in evaluation.score_comparisons if item.score == "clustering_score")
    assert comparison.reference_metrics["ARI"][MODEL].value == pytest.approx(adjusted_rand_score(true, labels))


def test_entity_recognition_is_a_silhouette_by_type_and_a_mean_cosine(evaluation: ConceptEvaluation) -> None:
    from sklearn.metrics import silhouette_score

    sentences = read_concept_set().sentences or ()
    kinds = list(dict.fromkeys((entity.text, entity.label) for sentence in sentences for entity in sentence.entities))
    by_type = silhouette_score(vectors_of([text for text, _ in kinds]), [label for _, label in kinds])
    cosines = [
        cosine(*vectors_of([entity.text, sentence.text])) for sentence in sentences for entity in sentence.entities
    ]
    score = 0.6 * by_type + 0.4 * np.mean(cosines)
    assert evaluation[MODEL]["entity_recognition_score"].value == pytest.approx(score)


def test_the_knowledge_graph_score_equals_networkx(evaluation: ConceptEvaluation) -> None:
    relations = read_concept_set().relations or ()
    graph = networkx.DiGraph([(relation.subject, relation.object) for relation in relations])
    vectors = dict(zip(graph, vectors_of(list(graph)), strict=True))
    coherence = np.mean([cosine(vectors[subject], vectors[object_]) for subject, object_ in graph.edges])
    score = (
        0.4 * coherence
        + 0.3 * min(networkx.density(graph), 0.5)
        + 0.3 * networkx.average_clustering(graph.to_undirected())
    )
    assert evaluation[MODEL]["knowledge_graph_score"].value == pytest.approx(score)


def test_embedding_quality_is_the_published_sum(evaluation: ConceptEvaluation) -> None:
    vectors = vectors_of(read_concept_set().concepts or ())
    diversity = 1 - np.mean([cosine(a, b) for a, b in combinations(vectors, 2)])
    norms = np.linalg.norm(vectors, axis=1)
    score = 0.4 * diversity + 0.3 * min(vectors.var(axis=0).mean(), 1) + 0.3 * norms.std() / norms.mean()
    assert evaluation[MODEL]["embedding_quality_score"].value == pytest.approx(score, abs=1e-6)


def test_the_composite_is_the_mean_of_the_five_scores_and_its_interval_covers_it(evaluation: ConceptEvaluation) -> None:
    scores = evaluation[MODEL]
    composite = scores.pop("composite_score")
    assert len(scores) == 5
    assert composite.value == pytest.approx(np.mean([estimate.value for estimate in scores.values()]))
    assert composite.chance == pytest.approx(np.mean([estimate.chance for estimate in scores.values()]))
    for estimate in (*scores.values(), composite):
        assert estimate.interval.covers(estimate.value)


def test_every_pair_is_compared_on_every_score(evaluation: ConceptEvaluation) -> None:
    for comparison in evaluation.all_score_comparisons:
        (contrast,) = comparison.contrasts
        estimates = comparison.estimates
        assert contrast.difference == pytest.approx(estimates[MODEL].value - estimates[OTHER].value)
        separated = not set(comparison.letters[MODEL]) & set(comparison.letters[OTHER])
        assert separated == (contrast.adjusted < 0.05)


def test_the_same_seed_gives_the_same_scores(evaluation: ConceptEvaluation) -> None:
    repeated = evaluate_concepts([LetterModel()], tasks=["clustering", "entities"], **QUICK)
    for score, estimate in repeated[MODEL].items():
        assert estimate == evaluation[MODEL][score]


def test_findings_list_the_constant_parts_and_the_reversed_one(evaluation: ConceptEvaluation) -> None:
    findings = {(finding.code, finding.subject) for finding in evaluation.findings}
    assert ("EQ311", "knowledge_graph_score") in findings
    assert ("EQ312", "embedding_quality_score") in findings
    assert not any(code == "EQ310" for code, _ in findings)


def test_scores_do_not_depend_on_the_other_models(evaluation: ConceptEvaluation) -> None:
    single_model = evaluate_concepts([OTHER], tasks=["similarity"], **QUICK)
    name = "semantic_similarity_score"
    assert single_model[OTHER][name] == evaluation[OTHER][name]
    assert single_model.advice[0].models == ()
    assert OTHER in single_model.recommendations["Semantic Similarity Tasks"]


class NarrowModel:
    """A model whose vectors are nearly equal."""

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        rng = np.random.default_rng(len(texts))
        return np.ones((len(texts), 8)) + 0.01 * rng.normal(size=(len(texts), 8))


class ConstantModel:
    """A model with the same vector for all texts."""

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        return np.tile([3.0, 4.0], (len(texts), 1))


class BrokenModel:
    """A model that fails."""

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        raise RuntimeError("out of memory")


def test_a_collapsed_space_is_a_finding() -> None:
    evaluation = evaluate_concepts([NarrowModel()], tasks=["quality"], **QUICK)
    (finding,) = [finding for finding in evaluation.findings if finding.code == "EQ310"]
    assert "mean cosine is 1.000" in finding.message


def test_constant_vectors_leave_the_correlation_and_the_score_undefined() -> None:
    evaluation = evaluate_concepts([ConstantModel()], tasks=["similarity"], **QUICK)
    (scores,) = [evaluation[name] for name in evaluation]
    assert isnan(scores["semantic_similarity_score"].value)
    assert "n/a" in evaluation.summary
    assert [advice.models for advice in evaluation.advice] == [()]


def test_a_failing_model_does_not_affect_the_others() -> None:
    evaluation = evaluate_concepts([LetterModel(), BrokenModel()], tasks=["quality"], **QUICK)
    assert list(evaluation) == [MODEL]
    ((name, error),) = evaluation.failures.items()
    assert "RuntimeError: out of memory" in error.message
    assert f"{name} failed" in repr(evaluation)
    with pytest.raises(type(error)):
        _ = evaluation[name]


def test_the_first_failure_is_raised_when_all_models_fail() -> None:
    with pytest.raises(ParameterError):
        evaluate_concepts(["tfidf:"], **QUICK)


def test_a_set_without_some_files_is_evaluated_on_the_others_and_has_no_composite() -> None:
    concept_set = read_concept_set()
    partial_set = ConceptSet("some", pairs=concept_set.pairs, concepts=concept_set.concepts)
    evaluation = evaluate_concepts([LetterModel()], partial_set, **QUICK)
    assert evaluation.tasks == ("similarity", "quality")
    assert evaluation.composite is None
    assert "clustering_score was not measured: some has no clusters" in evaluation.notes
    weighted = evaluate_concepts([LetterModel()], partial_set, weights={"similarity": 3, "quality": 1}, **QUICK)
    similarity, quality = (
        weighted[MODEL][name].value for name in ("semantic_similarity_score", "embedding_quality_score")
    )
    assert weighted[MODEL]["composite_score"].value == pytest.approx(0.75 * similarity + 0.25 * quality)


def test_invalid_sets_tasks_and_weights_are_errors_with_their_names() -> None:
    pairs = ConceptSet("pairs-only", pairs=(ConceptPair("a", "b", 0.5), ConceptPair("a", "c", 0.1)))
    with pytest.raises(InputError, match="pairs-only"):
        evaluate_concepts([LetterModel()], pairs, tasks=["clustering"], **QUICK)
    with pytest.raises(InputError, match="empty"):
        evaluate_concepts([LetterModel()], ConceptSet("empty"), **QUICK)
    with pytest.raises(UnknownNameError, match="'clusterin'"):
        evaluate_concepts([LetterModel()], tasks=["clusterin"], **QUICK)
    with pytest.raises(ParameterError, match="-1"):
        evaluate_concepts([LetterModel()], weights={"quality": -1}, **QUICK)
    with pytest.raises(ParameterError):
        evaluate_concepts([LetterModel()], weights={"quality": 0}, **QUICK)


def test_too_few_pairs_give_a_score_and_a_reason_instead_of_an_interval() -> None:
    few_pairs = ConceptSet(
        "few",
        pairs=(ConceptPair("a b", "a c", 0.5), ConceptPair("a", "d", 0.1), ConceptPair("e f", "e f g", 0.9)),
    )
    estimate = evaluate_concepts([LetterModel()], few_pairs, **QUICK)[MODEL]["semantic_similarity_score"]
    assert not isnan(estimate.value)
    assert estimate.interval.reason == "3 pairs are too few to resample"


def test_a_model_with_the_true_clusters_is_significantly_better_than_a_random_one() -> None:
    clusters = tuple(
        ConceptCluster(f"c{cluster}", tuple(f"concept {cluster} {index}" for index in range(8))) for cluster in range(4)
    )
    concept_set = ConceptSet("simulated", clusters=clusters)

    class TrueClusters:
        """One-hot vectors of the cluster number in the text, plus noise."""

        def encode(self, texts: Sequence[str]) -> np.ndarray:
            rng = np.random.default_rng(0)
            labels = [int(text.split()[1]) for text in texts]
            return np.eye(4)[labels] + 0.05 * rng.normal(size=(len(texts), 4))

    evaluation = evaluate_concepts([TrueClusters(), "hash,dim=32"], concept_set, **QUICK)
    (advice,) = evaluation.advice
    assert len(advice.models) == 1
    assert advice.models[0].endswith("TrueClusters")
    assert not advice.formula
    comparison, _ = evaluation.score_comparisons
    assert comparison.reference_metrics["ARI"][advice.models[0]].value == 1.0


class PartlyZeroModel:
    """A model with a zero vector for some texts."""

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        vectors = LetterModel().encode(texts)
        vectors[[len(text) % 3 == 0 for text in texts]] = 0.0
        return vectors


def test_zero_vectors_are_counted_and_listed() -> None:
    concept_set = ConceptSet("few", concepts=("abc", "ab", "abcd", "abcdef", "a"))
    evaluation = evaluate_concepts([PartlyZeroModel()], concept_set, weights={"quality": 1}, **QUICK)
    (finding,) = [finding for finding in evaluation.findings if finding.code == "EQ313"]
    assert finding.message == "2 of 5 texts have a zero vector: 'abc', 'abcdef'"


def test_models_of_one_class_are_distinguished_by_the_keys_of_a_mapping() -> None:
    evaluation = evaluate_concepts({"old": LetterModel(), "new": LetterModel()}, tasks=["quality"], **QUICK)
    assert list(evaluation) == ["old", "new"]
    assert evaluation["old"] == evaluation["new"]
    with pytest.raises(ParameterError):
        evaluate_concepts({"old": 3}, tasks=["quality"], **QUICK)


def test_an_undefined_score_has_the_part_and_the_reason() -> None:
    evaluation = evaluate_concepts({"flat": ConstantModel()}, tasks=["similarity"], **QUICK)
    assert evaluation["flat"]["semantic_similarity_score"].interval.reason == "correlation is undefined"
    (note,) = evaluation.notes
    assert note.startswith("semantic_similarity_score of flat is undefined, because correlation is undefined (")


def test_weights_of_tasks_that_are_not_evaluated_give_a_note() -> None:
    evaluation = evaluate_concepts(
        [LetterModel()], tasks=["similarity"], weights={"similarity": 1, "clustering": 1}, **QUICK
    )
    assert evaluation.notes == ("composite_score is undefined without clustering_score",)


def test_the_failure_of_a_single_model_does_not_mention_other_models() -> None:
    with pytest.raises(PartialError) as error_info:
        evaluate_concepts([BrokenModel()], tasks=["quality"], **QUICK)
    assert "other models" not in error_info.value.hint


def test_metrics_with_equal_values_have_equal_chance_levels(evaluation: ConceptEvaluation) -> None:
    reference_metrics = evaluation.score_comparisons[1].reference_metrics
    for model in evaluation:
        assert reference_metrics["NMI"][model].chance == reference_metrics["V-measure"][model].chance
        assert reference_metrics["ARI"][model].chance == 0.0


def test_the_chance_test_of_clustering_permutes_labels(evaluation: ConceptEvaluation) -> None:
    """Compared with scikit-learn on other permutations."""
    from sklearn.metrics import adjusted_rand_score

    observed = evaluation.scores[MODEL].tasks["clustering"].observed
    labels = observed.results["clusters-found"].evidence
    value = adjusted_rand_score(labels.true, labels.predicted)
    orders = length_preserving_orders(labels.unit_ids.tolist(), [5], 400)
    permuted = [adjusted_rand_score(labels.true, labels.predicted[order]) for order in orders]
    share = (np.sum(np.array(permuted) >= value) + 1) / 401
    assert observed.chance_test.p == pytest.approx(share, abs=0.06)


def test_every_interval_has_the_requested_confidence_level() -> None:
    config = StatsConfig(confidence_level=0.8, n_resamples=24)
    evaluation = evaluate_concepts([LetterModel()], cache=False, config=config)
    for task in evaluation.scores[MODEL].tasks.values():
        estimates = [task.estimate, *task.observed.parts.values(), *task.observed.reference_metrics.values()]
        assert {estimate.interval.confidence_level for estimate in estimates} == {0.8}, task.blend.name
