"""Benchmarks of small data: comparison, aggregate, variants, costs, resuming and failures."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from equipoise import EquipoiseError, bench, find_runs, load_run
from equipoise.config import StatsConfig
from equipoise.domains.bench.costs import SystemCost
from equipoise.domains.bench.report import answer_parts, bench_views
from equipoise.domains.bench.results import DataComparison, ScoredSystem
from equipoise.domains.bench.systems import SystemSpec
from equipoise.errors import StoreError
from equipoise.models.backends.hashing import HashEncoder
from equipoise.runs.compare import compare
from equipoise.runs.executors import LocalExecutor
from equipoise.stats.estimate import result_from_values

pytestmark = pytest.mark.slow  # whole benchmarks

FAST = StatsConfig(n_resamples=200, n_permutations=200)
WORDS = [f"word{number}" for number in range(60)]


def retrieval_rows(count: int = 40) -> list[dict[str, Any]]:
    """Queries with one word, and passages with that word and three others."""
    rng = np.random.default_rng(0)
    return [
        {
            "query": f"{word} topic{row}",
            "positive": f"{word} topic{row} {' '.join(rng.choice(WORDS, 3))}",
            "area": row % 2,
        }
        for row, word in enumerate(rng.choice(WORDS, count))
    ]


def labelled_rows(count: int = 60) -> list[dict[str, Any]]:
    rng = np.random.default_rng(1)
    return [
        {"text": f"{' '.join(rng.choice(WORDS, 3))} kind{row % 3}", "label": f"kind {row % 3}"} for row in range(count)
    ]


def pair_rows(count: int = 50) -> list[dict[str, Any]]:
    rng = np.random.default_rng(2)
    rows = []
    for _ in range(count):
        words, n_shared = rng.choice(WORDS, 4), int(rng.integers(0, 5))
        rows.append(
            {
                "text_a": " ".join(words),
                "text_b": " ".join([*words[:n_shared], *rng.choice(WORDS, 4 - n_shared)]),
                "score": n_shared,
            }
        )
    return rows


class CountingModel:
    """Hashed words, and the number of texts that were encoded."""

    def __init__(self) -> None:
        self.encoded: list[str] = []

    def encode(self, texts: Sequence[str]) -> Any:
        from equipoise import embedder

        self.encoded += texts
        return embedder("hash", cache=False).encode(texts)


class RandomModel:
    """Random vectors that do not depend on the texts."""

    def encode(self, texts: Sequence[str]) -> Any:
        return np.random.default_rng(len(texts)).standard_normal((len(texts), 256))


class ConstantModel:
    """The same vector for every text."""

    def encode(self, texts: Sequence[str]) -> Any:
        return np.ones((len(texts), 8))


def run(models: Any, data: Any, **options: Any) -> bench.BenchComparison:
    return bench.compare(models, data, **{"config": FAST, "cache": False, **options})


def test_baselines_are_added_and_random_vectors_score_at_chance() -> None:
    comparison = run(["hash"], bench.Retrieval(retrieval_rows(), name="r"))
    (dataset,) = comparison.datasets
    assert {system.name for system in dataset.systems} == {"hash", "bm25", "tfidf", "random"}
    chance = dataset.estimate("random")
    assert chance.interval.low <= chance.chance <= max(chance.interval.high, 0.2)
    assert dataset.score("random") < dataset.score("hash")
    assert comparison.baselines == ["bm25", "tfidf", "random"]


def test_every_kind_is_evaluated_by_models_and_baselines() -> None:
    bitext = [{"en": row["query"], "de": row["positive"]} for row in retrieval_rows()]
    pairs = [{**row, "score": None, "label": int(row["score"] > 2)} for row in pair_rows()]
    reranking = [
        {"query": row["query"], "positives": [row["positive"]], "negatives": ["word1 word2", "word3"]}
        for row in retrieval_rows()
    ]
    data = [
        bench.Retrieval(retrieval_rows(), name="retrieval"),
        bench.Reranking(reranking, name="reranking"),
        bench.Similarity(pair_rows(), name="similarity"),
        bench.PairClassification(pairs, name="pairs"),
        bench.Classification(labelled_rows(), name="classification"),
        bench.Classification(labelled_rows(), name="few-shot", protocol="few-shot"),
        bench.Clustering(labelled_rows(), name="clustering"),
        bench.Bitext(bitext, name="bitext"),
    ]
    comparison = run(["hash"], data)
    assert not comparison.failures
    for dataset in comparison.datasets:
        assert dataset.score("hash") > dataset.score("random"), dataset.data.name
        assert set(dataset.data.metrics) <= set(dataset.result("hash").names)
        assert np.isfinite(dataset.score("tfidf"))
    assert comparison.aggregate is not None
    assert comparison.aggregate.incomplete == ("bm25",)


def test_a_system_without_a_score_on_a_data_set_is_left_out_of_the_aggregate() -> None:
    """The correlation with constant cosines is undefined."""
    data = [bench.Similarity(pair_rows(), name="s"), bench.Retrieval(retrieval_rows(), name="r")]
    comparison = run({"hash": "hash", "constant": ConstantModel()}, data)
    assert np.isnan(comparison["s"].score("constant"))
    assert comparison.aggregate is not None
    assert set(comparison.aggregate.incomplete) == {"constant", "bm25"}


def test_the_aggregate_equals_means_ranks_and_borda_by_hand() -> None:
    data = [bench.Retrieval(retrieval_rows(), name="r"), bench.Similarity(pair_rows(), name="s")]
    comparison = run(["hash", "hash,dim=16"], data, baselines=False)
    aggregate = comparison.aggregate
    assert aggregate is not None
    rows = {row.system: row for row in aggregate.rows}
    scores = {name: [dataset.score(name) for dataset in comparison.datasets] for name in rows}
    for name, row in rows.items():
        assert row.mean_score == pytest.approx(np.mean(scores[name]))
        assert row.score_interval[0] <= row.mean_score <= row.score_interval[1]
        assert -1 <= row.interval_elsewhere[0] <= row.mean_score <= row.interval_elsewhere[1] <= 1
    assert rows["hash"].mean_rank + rows["hash,dim=16"].mean_rank == 3
    assert rows["hash"].best_on + rows["hash,dim=16"].best_on == 2
    assert rows["hash"].borda + rows["hash,dim=16"].borda == 2


def test_metrics_that_every_system_maximises_have_no_column() -> None:
    comparison = run(["hash"], bench.Retrieval(retrieval_rows(), name="few documents"))
    heads = [column.head for column in bench_views(comparison)[0].answer.columns]
    assert comparison.datasets[0].result("hash")["R@100"].chance == 1
    assert "R@100" not in heads
    assert {"nDCG@10", "MRR@10", "R@10", "MAP"} <= set(heads)


def test_a_table_in_which_other_columns_could_be_meant_says_which_are_used() -> None:
    rows = [
        {"question": row["query"], "context": row["positive"], "answer": row["query"][:4]} for row in retrieval_rows()
    ]
    (view,) = bench_views(run(["hash"], bench.Retrieval(rows, name="r")))
    note = "r: queries: question; documents: context (not used: answer; --text chooses the columns)."
    assert note in view.answer.notes
    chosen = bench.Retrieval(rows, name="r", text=["question", "answer"])
    (view,) = bench_views(run(["hash"], chosen))
    assert not any("queries:" in note for note in view.answer.notes)
    assert "queries: question; documents: answer." in view.answer.explanation


def test_a_model_that_is_better_on_one_data_set_cannot_be_dropped() -> None:
    rng, cost = np.random.default_rng(0), SystemCost(documents_per_second=100.0, price=0.0, bytes_per_vector=8.0)
    datasets = []
    for name, qualities in {"x": (0.9, 0.3, 0.3), "y": (0.4, 0.7, 0.3)}.items():
        values = {system: rng.random(200) < quality for system, quality in zip("abc", qualities, strict=True)}
        results = [result_from_values(system, range(200), {"nDCG@10": hits}) for system, hits in values.items()]
        systems = [ScoredSystem(result.system, result, cost) for result in results]
        data = bench.Retrieval(retrieval_rows(), name=name)
        datasets.append(DataComparison(data, systems, compare(results, "nDCG@10", config=FAST)))
    comparison = bench.BenchComparison(datasets, {}, [], [], FAST)
    assert comparison.aggregate is not None
    assert comparison.aggregate.significant["a"]["b"], "a has the better mean"
    assert dict(comparison.decision.dropped) == {"c": "a"}, "b is better than a on y"


def test_a_copy_of_a_data_set_is_a_finding_and_tied_first_places_are_counted() -> None:
    data = [bench.Retrieval(retrieval_rows(), name=name) for name in ("a", "copy")]
    comparison = run({"one": "hash", "two": "hash,dim=256"}, data, baselines=False)
    copies = [finding for finding in comparison.findings if finding.code == "EQ207"]
    assert [finding.subject for finding in copies] == ["a, copy"]
    suite, *single = bench_views(comparison)
    assert "EQ207" not in {finding.code for view in single for finding in view.answer.findings}
    assert str(answer_parts([suite, *single], verbose=True)).count("EQ207") == 1
    assert suite.answer.headline.startswith("Inconclusive: one and two share the highest mean score on these 2 data")
    shared = "one has the highest score on 2 of the 2 data sets (shared with another system on 2)."
    assert shared in suite.answer.explanation
    different = run(["hash"], [data[0], bench.Similarity(pair_rows(), name="s")], baselines=False)
    assert "EQ207" not in {finding.code for finding in different.findings}


def test_variants_are_systems_and_every_text_is_encoded_once() -> None:
    model = CountingModel()
    comparison = run({"counting": model}, bench.Retrieval(retrieval_rows(), name="r"), baselines=False)
    assert [system.name for system in comparison.datasets[0].systems] == ["counting"]
    queries, documents = comparison.datasets[0].data.texts
    timed_queries = set(queries)  # the latency of single queries is measured without the cache
    assert len([text for text in model.encoded if text not in timed_queries]) == len(set(documents))
    grid_comparison = run(
        ["hash"], bench.Retrieval(retrieval_rows(), name="r"), dims=[16, 64], dtypes=["float32", "int8", "binary"]
    )
    names = [system.name for system in grid_comparison.datasets[0].systems if system.name not in ("bm25", "tfidf")]
    assert names == [
        "hash",
        "hash,dim=16",
        "hash,dim=16,dtype=int8",
        "hash,dim=16,dtype=binary",
        "hash,dim=64",
        "hash,dim=64,dtype=int8",
        "hash,dim=64,dtype=binary",
        "random",
    ]
    costs = {system.name: system.cost for system in grid_comparison.datasets[0].systems}
    assert costs["hash,dim=16,dtype=binary"].bytes_per_vector == 2
    assert costs["hash,dim=64,dtype=int8"].bytes_per_vector == 68
    assert costs["hash,dim=64"].documents_per_second == costs["hash"].documents_per_second
    assert costs["hash,dim=64"].index_bytes == 64 * 4 * len(documents)


def test_hybrids_and_rerankers_are_systems() -> None:
    models = ["sum:hash+tfidf:", "rrf:hash+bm25:", "hash"]
    comparison = run(
        models, bench.Retrieval(retrieval_rows(), name="r"), rerankers=["fusion:bm25:+tfidf:"], rerank_depth=5
    )
    names = [system.name for system in comparison.datasets[0].systems]
    assert "hash > fusion:bm25:+tfidf:" in names
    assert not comparison.failures
    assert comparison.datasets[0].score("sum:hash+tfidf:") > 0.5


def test_costs_are_measured() -> None:
    comparison = run(["hash"], bench.Retrieval(retrieval_rows(), name="r"), prices={"hash": 0.5})
    cost = comparison.datasets[0].system("hash").cost
    assert cost.documents_per_second > 0
    assert cost.queries_per_second > 0
    assert 0 < cost.latency_p50 <= cost.latency_p95
    assert cost.price == pytest.approx(
        0.5 * np.mean([len(text.split()) for text in comparison.datasets[0].data.texts[1]])
    )
    assert comparison.datasets[0].system("bm25").cost.documents_per_second > 0


def test_a_resumed_run_has_the_prices_that_are_given(tmp_path: Path) -> None:
    data = bench.Retrieval(retrieval_rows(), name="r")
    prices = [
        run(["hash"], data, prices={"hash": price}, output=tmp_path).datasets[0].system("hash").cost.price
        for price in (1.0, 5.0)
    ]
    assert prices[1] == pytest.approx(5.0 * prices[0])


class SlowModel(CountingModel):
    def encode(self, texts: Sequence[str]) -> Any:
        import time

        time.sleep(0.002 * len(texts))
        return super().encode(texts)


def test_the_decision_is_the_cheapest_system_that_is_not_worse_and_the_systems_to_drop() -> None:
    class SlowRandomModel(RandomModel):
        def encode(self, texts: Sequence[str]) -> Any:
            import time

            time.sleep(0.002 * len(texts))
            return super().encode(texts)

    models = {"slow": SlowModel(), "fast": CountingModel(), "useless": SlowRandomModel()}
    comparison = run(models, bench.Retrieval(retrieval_rows(), name="r"), baselines=False)
    assert comparison.decision.cheapest == "fast"
    assert set(comparison.decision.dropped) == {"useless"}


def test_a_price_decides_before_the_time() -> None:
    models = {"slow": SlowModel(), "priced": CountingModel()}
    comparison = run(models, bench.Retrieval(retrieval_rows(), name="r"), baselines=False, prices={"priced": 0.1})
    assert comparison.decision.cheapest == "slow"
    assert not comparison.decision.dropped


def test_differences_of_microseconds_do_not_affect_the_decision() -> None:
    def decision_with_times(seconds: dict[str, float]) -> Any:
        dataset = comparison.datasets[0]
        systems = [
            replace(
                system, cost=replace(system.cost, documents_per_second=1 / seconds[system.name], bytes_per_vector=8)
            )
            for system in dataset.systems
        ]
        return replace(comparison, datasets=[replace(dataset, systems=systems)]).decision

    models = {"good": CountingModel(), "useless": RandomModel()}
    comparison = run(models, bench.Retrieval(retrieval_rows(), name="r"), baselines=False)
    decisions = [
        decision_with_times({"good": good, "useless": useless}) for good, useless in ((60e-6, 50e-6), (50e-6, 60e-6))
    ]
    assert [set(decision.dropped) for decision in decisions] == [{"useless"}, {"useless"}]
    assert not decision_with_times({"good": 60e-3, "useless": 40e-3}).dropped


def test_a_repeated_call_embeds_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = [bench.Retrieval(retrieval_rows(), name="r"), bench.Similarity(pair_rows(), name="s")]
    first = run(["hash"], data, output=tmp_path / "out")
    monkeypatch.setattr("equipoise.domains.bench.experiment.evaluate_job", _fail_on_evaluation)
    repeated = run(["hash"], data, output=tmp_path / "out")
    assert repeated.resumed
    assert not first.resumed
    assert repeated.to_dict() == first.to_dict()


def _fail_on_evaluation(*arguments: Any) -> Any:
    raise AssertionError("a stored run was computed again")


def test_a_call_with_cached_vectors_embeds_nothing_and_has_the_same_costs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def costs() -> dict[str, float | None]:
        comparison = bench.compare(
            ["hash", "hash,dim=64"], [retrieval_rows()], baselines=False, config=FAST, cache=tmp_path / "vectors.sqlite"
        )
        return comparison.datasets[0].system("hash,dim=64").cost.to_dict()

    monkeypatch.setattr(HashEncoder, "cacheable", True)
    first = costs()
    monkeypatch.setattr(HashEncoder, "encode_counted", lambda *arguments: pytest.fail("a text was embedded"))
    assert costs() == first


def test_cache_true_uses_the_default_cache_also_if_it_is_turned_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(HashEncoder, "cacheable", True)
    monkeypatch.setenv("EQUIPOISE_CACHE", "off")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    run(["hash"], [retrieval_rows()], baselines=False, cache=True)
    assert list(tmp_path.glob("equipoise/*.sqlite"))


def test_results_of_other_options_or_other_data_are_not_replaced(tmp_path: Path) -> None:
    data = bench.Retrieval(retrieval_rows(), name="r")
    run(["hash"], data, output=tmp_path)
    with pytest.raises(StoreError):
        run(["hash"], bench.Retrieval(retrieval_rows(30), name="r"), output=tmp_path)
    with pytest.raises(StoreError):
        run(["hash"], data, output=tmp_path, config=StatsConfig(n_resamples=100))
    assert run(["hash"], data, output=tmp_path).resumed


def test_stored_runs_have_retrieved_passages_and_slices(tmp_path: Path) -> None:
    run(["hash"], bench.Retrieval(retrieval_rows(), name="r"), output=tmp_path, baselines=False)
    (path,) = find_runs(tmp_path)
    stored = load_run(path)
    detail = next(iter(stored.details.values()))
    assert detail.slices == {"area": 0}
    assert len(detail.retrieved) == 10
    assert any(item.relevant for item in detail.retrieved)
    assert stored.manifest.cost["dims"] == 256


class ShortWindow(HashEncoder):
    """Hashed words of a model with a window of two."""

    def __init__(self) -> None:
        super().__init__(64, "short")
        self.card = replace(self.card, max_tokens=2)


def test_documents_that_a_model_truncates_are_findings(tmp_path: Path) -> None:
    rows = retrieval_rows(20)
    comparison = run({"short": ShortWindow()}, bench.Retrieval(rows, name="r"), output=tmp_path)
    findings = {finding.code: finding for finding in comparison.findings}
    assert findings["EQ151"].subject == "short"
    assert "short truncates 100 %" in findings["EQ205"].message
    assert load_run(tmp_path / "runs" / "r" / "short").result.settings["window"]["truncated"] == 20


def test_a_failing_model_does_not_affect_the_others() -> None:
    class BrokenModel:
        def encode(self, texts: Sequence[str]) -> Any:
            raise RuntimeError("no weights")

    comparison = run({"broken": BrokenModel(), "hash": "hash"}, bench.Retrieval(retrieval_rows(), name="r"))
    assert list(comparison.failures) == ["broken on r"]
    assert comparison.failures["broken on r"].code == "E700"
    assert comparison.datasets[0].score("hash") > 0
    with pytest.raises(EquipoiseError) as error:
        run({"broken": BrokenModel()}, bench.Retrieval(retrieval_rows(), name="r"), baselines=False)
    assert error.value.code == "E700"


def test_an_unknown_model_is_an_error_before_anything_is_computed() -> None:
    with pytest.raises(EquipoiseError) as error:
        run(["minillm"], bench.Retrieval(retrieval_rows(), name="r"))
    assert error.value.code == "E300"


def test_empty_documents_rank_last() -> None:
    documents = [{"_id": "a", "text": "rye"}, {"_id": "b", "text": ""}, {"_id": "c", "text": "bus"}]
    queries = [{"_id": "q", "text": "rye"}, {"_id": "r", "text": "bus"}]
    qrels = [{"query-id": "q", "corpus-id": "b", "score": 1}, {"query-id": "r", "corpus-id": "c", "score": 1}]
    comparison = run(["hash"], bench.Retrieval(documents, queries, qrels, name="r"), baselines=False)
    assert comparison.datasets[0].result("hash").evidence.ranks.tolist() == [3.0, 1.0]  # type: ignore[union-attr]


def test_views_are_unchanged_by_json() -> None:
    import json
    from dataclasses import asdict

    from equipoise.report.view import View

    data = [bench.Retrieval(retrieval_rows(), name="r"), bench.Similarity(pair_rows(), name="s")]
    views = bench_views(run(["hash"], data))
    stored = json.dumps([asdict(view) for view in views])
    assert json.dumps([asdict(View.from_dict(view)) for view in json.loads(stored)]) == stored
    assert len(views) == 3


def test_rows_and_frames_have_one_row_per_metric() -> None:
    comparison = run(["hash"], bench.Similarity(pair_rows(), name="s"), baselines=False)
    frame = comparison.to_frame() if pytest.importorskip("pandas") else None
    assert [row["metric"] for row in comparison.rows()] == ["Spearman", "Pearson"]
    assert len(frame) == 2


def test_data_without_a_system_above_random_vectors_have_no_ties_with_random() -> None:
    rows = [{"query": f"{row} {row}", "positive": f"x{row}"} for row in range(6)]
    comparison = run(["hash"], bench.Retrieval(rows, name="r"))
    assert not comparison.decision.above_random
    assert "random" not in comparison.decision.tied


def test_the_jobs_of_a_worker_process_share_encoders() -> None:
    from equipoise.domains.bench.systems import SystemPool, SystemSpec

    pool = SystemPool(cache=False)
    specs = [SystemSpec("hash", "hash"), SystemSpec("hash,dim=16", "hash,dim=16")]
    first, second = (pickle.loads(pickle.dumps(pool)) for _ in specs)
    encoders = [worker.encoder_of(worker.open(spec)) for worker, spec in zip((first, second), specs, strict=True)]
    assert encoders[0] is encoders[1] is not None
    assert pickle.loads(pickle.dumps(SystemPool(cache=False))) is not first


def test_a_model_that_cannot_be_loaded_is_loaded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    attempts = []

    def fail(*arguments: Any) -> Any:
        attempts.append(arguments)
        raise RuntimeError("no weights")

    monkeypatch.setattr("equipoise.domains.bench.systems.SystemPool._load", fail)
    data = [bench.Retrieval(retrieval_rows(), name="r"), bench.Similarity(pair_rows(), name="s")]
    comparison = run(["hash", "tfidf:"], data, baselines=False)
    assert list(comparison.failures) == ["hash on r", "hash on s"]
    assert len(attempts) == 1


class PickledExecutor(LocalExecutor):
    """Pickles every item and result, as a cluster does, and returns the items in reverse order."""

    name = "pickled"
    is_remote = True

    def map(self, function: Any, items: Any, shared: Any, **options: Any) -> Any:
        pickled = pickle.loads(pickle.dumps((list(items), shared)))
        for completed in reversed(list(super().map(function, *pickled, **options))):
            yield pickle.loads(pickle.dumps(completed))


def test_an_executor_gives_the_same_scores(tmp_path: Path) -> None:
    data = [bench.Retrieval(retrieval_rows(), name="r"), bench.Similarity(pair_rows(), name="s")]
    local, remote = (run(["hash", "hash,dim=16"], data, engine=engine) for engine in (None, PickledExecutor()))
    assert [system.name for system in remote.datasets[0].systems] == [
        system.name for system in local.datasets[0].systems
    ]
    assert [row["value"] for row in remote.rows()] == [row["value"] for row in local.rows()]


def test_the_report_lists_every_system_and_escapes_names(tmp_path: Path) -> None:
    data = [bench.Retrieval(retrieval_rows(), name="r<b>"), bench.Similarity(pair_rows(), name="s")]
    for datasets in (data, data[:1]):
        report_html = run(["hash"], datasets).report(tmp_path / "page.html", charts=False).read_text()
        assert "r&lt;b&gt;" in report_html
        assert "r<b>" not in report_html
        assert "tfidf:" in report_html


def test_resampled_scores_have_the_standard_error_of_the_mean() -> None:
    from equipoise.domains.bench.results import resampled_scores

    comparison = run(["hash", "tfidf:"], bench.Retrieval(retrieval_rows(), name="r"), baselines=False)
    config = StatsConfig(n_resamples=2_000)
    table = resampled_scores(comparison.datasets[0], ["hash", "tfidf:"], config, 0)
    values = comparison.datasets[0].result("hash").per_unit["nDCG@10"]
    assert table[:, 0].mean() == pytest.approx(values.mean(), abs=0.01)
    assert table[:, 0].std() == pytest.approx(values.std() / np.sqrt(len(values)), rel=0.1)


def test_the_two_directions_of_a_sentence_pair_are_resampled_together() -> None:
    from equipoise.domains.bench.results import resampled_scores

    rows = [{"en": row["query"], "de": row["positive"]} for row in retrieval_rows()]
    comparison = run(["hash", "tfidf:"], bench.Bitext(rows, name="b"), baselines=False)
    result = comparison.datasets[0].result("hash")
    assert result.clusters is not None
    assert len(set(result.clusters.tolist())) == len(result.unit_ids) / 2
    table = resampled_scores(comparison.datasets[0], ["hash", "tfidf:"], StatsConfig(n_resamples=2_000), 0)
    pairs = result.per_unit["HR@1"].reshape(2, -1).mean(axis=0)
    assert table[:, 0].std() == pytest.approx(pairs.std() / np.sqrt(len(pairs)), rel=0.1, abs=1e-3)


def test_a_leaderboard_of_a_benchmark_has_its_data_set_names(tmp_path: Path) -> None:
    data = [bench.Similarity(pair_rows(30 + index), name=f"{name}/dev") for index, name in enumerate(("a", "b"))]
    run(["hash"], data, output=tmp_path)
    assert bench.leaderboard(tmp_path, config=FAST).table.datasets == ("a/dev", "b/dev")


def test_a_leaderboard_of_a_benchmark_leaves_out_baselines_rather_than_data_sets(tmp_path: Path) -> None:
    data = [bench.Retrieval(retrieval_rows(), name="r"), bench.Similarity(pair_rows(), name="s")]
    run(["hash"], data, output=tmp_path)
    board = bench.leaderboard(tmp_path, config=FAST)
    assert board.table.datasets == ("r", "s")
    assert set(board.table.models) == {"hash", "tfidf", "random"}
    assert "models without scores on all data sets are left out: bm25" in board.table.notes
    fewer = bench.leaderboard(tmp_path, config=FAST, missing="datasets")
    assert "on 1 of 2 data sets" in fewer.verdict()


def test_a_requested_baseline_is_not_added_again() -> None:
    rows = [{"query": f"word{i}", "positive": f"a text on word{i}"} for i in range(12)]
    names = [system.name for system in bench.compare(["bm25", "tfidf"], [rows], cache=False).datasets[0].systems]
    assert sorted(names) == ["bm25", "random", "tfidf"]


def test_stored_runs_depend_on_the_content_of_the_model_files(tmp_path: Path) -> None:
    """A new time stamp does not change the version; other weights do."""
    import os

    file = tmp_path / "vectors.npz"
    file.write_bytes(b"first")
    system = SystemSpec("vectors", f"vectors:{file}")
    before = system.version()
    os.utime(file, (1, 1))
    assert system.version() == before
    file.write_bytes(b"other")
    assert system.version() != before


def test_the_revision_of_a_hub_model_is_that_of_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    system = SystemSpec("e5", "st:intfloat/e5-base-v2")
    before = system.version()
    reference = tmp_path / "models--intfloat--e5-base-v2" / "refs" / "main"
    reference.parent.mkdir(parents=True)
    reference.write_text("0123abcd")
    assert system.version() != before
    assert "0123abcd" in system.version()
