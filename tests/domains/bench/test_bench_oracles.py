"""The scores of every kind of data, compared with mteb, sentence-transformers, scikit-learn and scipy."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from equipoise import bench, evaluate
from equipoise.config import StatsConfig
from equipoise.domains.bench.base_data import BenchData
from equipoise.domains.bench.experiment import score
from equipoise.domains.bench.systems import OpenSystem, SystemPool, SystemSpec
from equipoise.io.tables import read_rows
from equipoise.stats.result import Result

sys.path.insert(0, str(Path(__file__).parent))
from mteb_harness import GivenVectors, mteb_scores

FAST = StatsConfig(n_resamples=20, n_permutations=20)
WORDS = [f"w{number}" for number in range(400)]


def sentences(count: int, seed: int, length: int = 6) -> list[str]:
    """Texts of random words, without repetition."""
    rng = np.random.default_rng(seed)
    return [" ".join(rng.choice(WORDS, length, replace=False)) for _ in range(count)]


def open_system(model: GivenVectors) -> OpenSystem:
    return SystemPool(cache=False).open(SystemSpec("given", model))


def score_model(data: BenchData, model: GivenVectors) -> Result:
    return score(data, data.observe(open_system(model)), "given", FAST)


@pytest.fixture(scope="module")
def model() -> GivenVectors:
    return GivenVectors()


def pair_rows(seed: int = 0) -> list[dict[str, Any]]:
    rng = np.random.default_rng(seed)
    rows = []
    for text in sentences(120, seed):
        n_shared = int(rng.integers(0, 7))
        other = " ".join([*text.split()[:n_shared], *rng.choice(WORDS, 6 - n_shared)])
        rows.append({"sentence1": text, "sentence2": other, "score": float(n_shared + rng.integers(0, 3))})
    return rows


@pytest.mark.engines("mteb")
def test_similarity_equals_mteb(model: GivenVectors) -> None:
    from datasets import Dataset, DatasetDict

    expected = mteb_scores("STS", DatasetDict(test=Dataset.from_list(pair_rows())), model, "cosine_spearman")
    result = score_model(bench.Similarity(pair_rows()), model)
    assert result["Spearman"].value == pytest.approx(expected["cosine_spearman"], abs=1e-6)
    assert result["Pearson"].value == pytest.approx(expected["cosine_pearson"], abs=1e-6)


@pytest.mark.engines("mteb")
def test_average_precision_of_pairs_equals_mteb(model: GivenVectors) -> None:
    from datasets import Dataset, DatasetDict

    rows = [{**row, "labels": int(row.pop("score") > 4)} for row in pair_rows(1)]
    expected = mteb_scores("PairClassification", DatasetDict(test=Dataset.from_list(rows)), model, "cosine_ap")
    result = score_model(bench.PairClassification(rows), model)
    assert result["AP"].value == pytest.approx(expected["cosine_ap"], abs=1e-6)
    assert result["F1"].value <= expected["cosine_f1"] + 1e-9  # mteb chooses the threshold on the same pairs


@pytest.mark.engines("mteb")
def test_retrieval_equals_mteb(model: GivenVectors) -> None:
    from datasets import Dataset

    rng = np.random.default_rng(2)
    bodies = sentences(150, 3)
    corpus = [{"id": f"d{row}", "title": f"t{row % 9}", "text": text} for row, text in enumerate(bodies)]
    queries = [{"id": f"q{row}", "text": " ".join(bodies[row].split()[:3])} for row in range(40)]
    truth = {
        f"q{row}": {f"d{row}": 2, **{f"d{other}": 1 for other in rng.integers(41, 150, size=3).tolist()}}
        for row in range(40)
    }
    data = {
        "corpus": Dataset.from_list(corpus),
        "queries": Dataset.from_list(queries),
        "relevant_docs": truth,
        "top_ranked": None,
    }
    expected = mteb_scores("Retrieval", data, model, "ndcg_at_10")
    qrels = [
        {"query-id": query, "corpus-id": document, "score": gain}
        for query, gains in truth.items()
        for document, gain in gains.items()
    ]
    observed = bench.Retrieval(corpus, queries, qrels).observe(open_system(model))
    assert observed.evidence is not None
    result = evaluate(observed.evidence, ["nDCG@10", "R@10", "R@100", "MAP", "MRR@10", "HR@10"], config=FAST)
    names = {
        "nDCG@10": "ndcg_at_10",
        "R@10": "recall_at_10",
        "R@100": "recall_at_100",
        "MAP": "map_at_1000",
        "MRR@10": "mrr_at_10",
        "HR@10": "hit_rate_at_10",
    }
    for name, mteb_name in names.items():  # mteb rounds these to five decimals
        assert result[name].value == pytest.approx(expected[mteb_name], abs=5.1e-6)


def test_texts_with_labels_need_no_scikit_learn(model: GivenVectors, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [{"text": f"{text} k{row % 3}", "label": row % 3} for row, text in enumerate(sentences(200, 5))]
    kinds = [
        bench.Classification(rows),
        bench.Classification(rows, protocol="few-shot"),
        bench.Clustering(rows),
    ]
    expected = [score_model(data, model)[data.primary].value for data in kinds]
    for name in list(sys.modules):
        if name.partition(".")[0] == "sklearn":
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "sklearn", None)
    assert [score_model(data, model)[data.primary].value for data in kinds] == expected
    assert not any(name.startswith("sklearn.") for name in sys.modules)


@pytest.mark.engines("mteb")
def test_few_shot_classification_equals_mteb(model: GivenVectors) -> None:
    from datasets import Dataset, DatasetDict

    rng = np.random.default_rng(4)
    rows = [
        {"text": f"{text} k{label}", "label": int(label)}
        for text, label in zip(sentences(200, 5), rng.integers(0, 5, 200), strict=True)
    ]
    splits = DatasetDict(train=Dataset.from_list(rows[:120]), test=Dataset.from_list(rows[120:]))
    expected = mteb_scores("Classification", splits, model, "accuracy")
    table = [{**row, "split": "train" if index < 120 else "test"} for index, row in enumerate(rows)]
    result = score_model(bench.Classification(table, protocol="few-shot"), model)
    assert result["Acc"].value == pytest.approx(expected["accuracy"], abs=1e-6)
    assert 0.3 < result["Acc"].value < 1


@pytest.mark.engines("mteb")
def test_bitext_accuracy_equals_mteb_in_both_directions(model: GivenVectors) -> None:
    from datasets import Dataset, DatasetDict

    rng = np.random.default_rng(6)
    pairs = [
        {"sentence1": text, "sentence2": " ".join([*text.split()[:2], *rng.choice(WORDS, 4)])}
        for text in sentences(80, 7)
    ]
    observed = bench.Bitext(pairs).observe(open_system(model))
    assert observed.evidence is not None
    for first, flipped in ((0, False), (80, True)):
        rows = [{"sentence1": row["sentence2"], "sentence2": row["sentence1"]} for row in pairs] if flipped else pairs
        expected = mteb_scores("BitextMining", DatasetDict(test=Dataset.from_list(rows)), model, "accuracy")
        direction = observed.evidence.take(np.arange(first, first + 80))
        assert evaluate(direction, "HR@1", config=FAST)["HR@1"].value == pytest.approx(expected["accuracy"], abs=1e-6)


class SentenceModel:
    """The interface of the evaluators of sentence-transformers: the given vectors as tensors."""

    similarity_fn_name = "cosine"

    def __init__(self, given: GivenVectors) -> None:
        self.given = given

    def encode(
        self, texts: Any, *, convert_to_numpy: bool = True, convert_to_tensor: bool = False, **options: Any
    ) -> Any:
        """One vector for a text, a matrix for a list."""
        import torch

        single = isinstance(texts, str)
        rows = self.given.encode([texts] if single else list(texts))
        vectors = torch.from_numpy(rows) if convert_to_tensor or not convert_to_numpy else rows
        return vectors[0] if single else vectors

    encode_query = encode_document = encode


@pytest.mark.engines("sentence_transformers")
def test_similarity_and_pairs_equal_sentence_transformers(model: GivenVectors) -> None:
    with warnings.catch_warnings(action="ignore"):
        from sentence_transformers.evaluation import BinaryClassificationEvaluator, EmbeddingSimilarityEvaluator

    # Equal texts have a cosine of 1 here; in single precision it is 1 with a random rounding error.
    rows = [row for row in pair_rows(12) if row["sentence1"] != row["sentence2"]]
    columns = [[row[name] for row in rows] for name in ("sentence1", "sentence2", "score")]
    evaluator = EmbeddingSimilarityEvaluator(*columns, write_csv=False, similarity_fn_names=["cosine"])
    evaluator.store_metrics_in_model_card_data = lambda *arguments: None  # the model has no model card
    expected = evaluator(SentenceModel(model))
    result = score_model(bench.Similarity(rows), model)
    assert result["Spearman"].value == pytest.approx(expected["spearman_cosine"], abs=1e-6)
    assert result["Pearson"].value == pytest.approx(expected["pearson_cosine"], abs=1e-6)
    labels = [int(row["score"] > 4) for row in rows]
    binary = BinaryClassificationEvaluator(*columns[:2], labels, write_csv=False, similarity_fn_names=["cosine"])
    scores = binary.compute_metrices(SentenceModel(model))
    pairs = score_model(
        bench.PairClassification([{**row, "label": label} for row, label in zip(rows, labels, strict=True)]), model
    )
    assert pairs["AP"].value == pytest.approx(scores["cosine"]["ap"], abs=1e-6)


@pytest.mark.engines("sentence_transformers")
def test_reranking_equals_sentence_transformers(model: GivenVectors) -> None:
    with warnings.catch_warnings(action="ignore"):
        from sentence_transformers.evaluation import RerankingEvaluator

    rng = np.random.default_rng(8)
    rows = []
    for text in sentences(30, 9):
        words = text.split()
        positives = [" ".join([*words[:2], *rng.choice(WORDS, 4)]) for _ in range(2)]
        rows.append({"query": text, "positives": positives, "negatives": sentences(12, int(rng.integers(1e6)))})
    samples = [{"query": row["query"], "positive": row["positives"], "negative": row["negatives"]} for row in rows]
    evaluator = RerankingEvaluator(samples, at_k=10, use_batched_encoding=False)

    evaluator.truncate_dim = None
    expected = evaluator.compute_metrices(SentenceModel(model))
    result = score_model(bench.Reranking(rows), model)
    assert result["MAP"].value == pytest.approx(expected["map"], abs=1e-6)
    assert (
        result["MRR"].value >= expected["mrr"] - 1e-9
    )  # the reciprocal rank of sentence-transformers is 0 below rank 10
    assert result["nDCG@10"].value == pytest.approx(expected["ndcg"], abs=1e-6)


def test_pair_metrics_equal_scikit_learn_with_ties() -> None:
    from sklearn.metrics import average_precision_score, f1_score, precision_recall_curve

    from equipoise.metrics.pairs import average_precision, best_f1_threshold

    rng = np.random.default_rng(0)
    for _ in range(20):
        scores, positive = rng.integers(0, 12, 50) / 12, rng.random(50) < 0.4
        assert average_precision(scores, positive) == pytest.approx(average_precision_score(positive, scores))
        precision, recall, _ = precision_recall_curve(positive, scores)
        best = np.max(2 * precision * recall / np.maximum(precision + recall, 1e-12))
        assert f1_score(positive, scores > best_f1_threshold(scores, positive)) == pytest.approx(best)


def test_clustering_scores_equal_scikit_learn(model: GivenVectors) -> None:
    from sklearn.cluster import KMeans
    from sklearn.metrics import adjusted_rand_score, v_measure_score

    rows = [
        {"text": f"{text} k{row % 4} k{row % 4} m{row % 4}", "label": f"c{row % 4}"}
        for row, text in enumerate(sentences(80, 10, 3))
    ]
    data = bench.Clustering(rows)
    result = score_model(data, model)
    vectors = model.encode([row["text"] for row in rows]).astype(np.float64)
    clusters = KMeans(4, n_init=10, random_state=0).fit_predict(vectors)
    labels = [row["label"] for row in rows]
    assert result["V"].value == pytest.approx(v_measure_score(labels, clusters))
    assert result["ARI"].value == pytest.approx(adjusted_rand_score(labels, clusters))


def test_copies_of_a_test_text_are_not_in_the_training_folds_of_the_probe(model: GivenVectors) -> None:
    texts = sentences(40, 11)
    rows = [{"text": text, "label": f"c{row % 20}"} for row, text in enumerate(texts)] * 2
    random_labels = score_model(bench.Classification(rows), model)
    assert random_labels["Acc"].value < 0.3  # with copies in the training folds it would be near 1


BENCH = Path("/work/shared/data/bench")


@pytest.mark.slow
@pytest.mark.skipif(not BENCH.is_dir(), reason="the shared data are not here")
def test_cranfield_equals_pytrec_eval() -> None:
    pytrec_eval = pytest.importorskip("pytrec_eval")
    data = bench.read_data(str(BENCH / "cranfield"))
    assert isinstance(data, bench.Retrieval)
    system = SystemPool(cache=False).open(SystemSpec("hash", "hash"))
    result = score(data, data.observe(system), "hash", FAST)
    fitted = system.retriever.fit(list(data.texts[1]))
    doc_ids = [scores for scores, text in data.dataset.items.items() if text]
    run = {}
    for rows, block in fitted.score_blocks(list(data.dataset.units.values())):
        for unit, scores in zip(data.unit_ids[rows], block.tolist(), strict=True):
            run[unit] = dict(zip(doc_ids, scores, strict=True))
    truth = {unit: {item: int(gain) for item, gain in gains.items()} for unit, gains in data.dataset.truth.items()}
    values = pytrec_eval.RelevanceEvaluator(truth, {"ndcg_cut_10", "map"}).evaluate(run)
    expected = {name: np.mean([scores[name] for scores in values.values()]) for name in ("ndcg_cut_10", "map")}
    # Hashed words give many tied scores, and pytrec_eval orders ties by id.
    assert result["nDCG@10"].value == pytest.approx(expected["ndcg_cut_10"], abs=0.005)
    assert result["MAP"].value == pytest.approx(expected["map"], abs=0.005)


@pytest.mark.slow
@pytest.mark.engines("wordllama")
@pytest.mark.skipif(not BENCH.is_dir(), reason="the shared data are not here")
@pytest.mark.parametrize(("name", "minimum"), [("en-dev.csv", 0.82), ("de-dev.csv", 0.69)])
def test_the_stsb_correlations_of_wordllama_equal_scipy(name: str, minimum: float) -> None:
    from scipy.stats import pearsonr, spearmanr

    from equipoise import embedder

    rows = read_rows(BENCH / "stsb" / name)
    with embedder("wordllama", cache=False) as model:
        first, second = (model.embed([row[f"sentence{side}"] for row in rows]).astype(np.float64) for side in (1, 2))
        comparison = bench.compare(["wordllama"], str(BENCH / "stsb" / name), baselines=False, config=FAST, cache=False)
    cosines = (first * second).sum(axis=1) / np.linalg.norm(first, axis=1) / np.linalg.norm(second, axis=1)
    gold = [float(row["score"]) for row in rows]
    result = comparison.datasets[0].result("wordllama")
    assert result["Spearman"].value == pytest.approx(spearmanr(cosines, gold)[0], abs=1e-6)
    assert result["Pearson"].value == pytest.approx(pearsonr(cosines, gold)[0], abs=1e-6)
    assert result["Spearman"].value > minimum
