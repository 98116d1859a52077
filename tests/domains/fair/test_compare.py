"""The fair comparison, compared with a plain loop over the grid."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import binomtest
from scipy.stats import t as student

from equipoise import StatsConfig, optimize_model, retriever, run_fair_comparison
from equipoise.domains.fair.config import METRIC, FairConfig
from equipoise.domains.fair.experiment import compare_models, n_steps, plan_comparison, step_weights
from equipoise.domains.fair.questions import timekeeping
from equipoise.domains.fair.report import fold_section
from equipoise.domains.fair.results import FairComparison
from equipoise.errors import ParameterError
from equipoise.io.splits import kfold_splits
from equipoise.models.retriever import resolve_models
from equipoise.runs.compare import compare
from equipoise.runs.run_folder import load_run
from equipoise.stats.comparison import Contrast
from equipoise.tuning.grid import FoldSelection
from fair_sample import BASELINE, CONFIG, GRID, Counting, chunks_of, document, pairs, slow_hits

TEXT = document()
QUESTIONS = pairs(TEXT)
POINTS = [dict(zip(("chunk_size", "overlap", "top_k"), point, strict=True)) for point in product(*GRID.values())]


@pytest.fixture(scope="module")
def comparison() -> FairComparison:
    return run_fair_comparison(["bm25:", "hash,dim=16", "sum:hash,dim=16+bm25:"], TEXT, QUESTIONS, config=CONFIG)


def best_and_cheapest(means: np.ndarray, tokens: list[float]) -> int:
    """The index of the best mean; of ties, that of the fewest retrieved tokens."""
    rounded = np.round(means, 12)
    return min(np.flatnonzero(rounded == rounded.max()).tolist(), key=lambda index: tokens[index])


@cache
def reference_hits(spec: str) -> np.ndarray:
    """Hits: one row per configuration, one column per question."""
    return np.array([slow_hits(retriever(spec), TEXT, QUESTIONS, point) for point in POINTS])


@pytest.mark.parametrize("model_index", [0, 1, 2])
def test_every_configuration_has_the_score_of_the_reference(comparison: FairComparison, model_index: int) -> None:
    model = comparison[model_index]
    expected = reference_hits(model.model_spec).mean(axis=1)
    assert [{name: row[name] for name in BASELINE} for row in model.all_results] == POINTS
    np.testing.assert_allclose([row["accuracy"] for row in model.all_results], 100 * expected)
    assert model.configurations_tested == len(POINTS)


@pytest.mark.parametrize("model_index", [0, 1, 2])
def test_the_best_configuration_is_the_cheapest_of_the_best_and_the_baseline_is_as_given(
    comparison: FairComparison, model_index: int
) -> None:
    model = comparison[model_index]
    expected = reference_hits(model.model_spec).mean(axis=1)
    best = best_and_cheapest(expected, [row["tokens"] for row in model.all_results])
    assert model.best_params == POINTS[best]
    assert model.best_accuracy == pytest.approx(100 * expected[best])
    assert model.baseline_accuracy == pytest.approx(100 * expected[POINTS.index(BASELINE)])
    assert model.improvement_pct == pytest.approx(model.best_accuracy - model.baseline_accuracy)


def test_the_optimistic_interval_is_the_wilson_interval() -> None:
    model = optimize_model(Counting(), TEXT, QUESTIONS, config=CONFIG)
    interval = binomtest(model.best_passed, model.total_questions).proportion_ci(0.95, method="wilson")
    assert (model.ci_lower, model.ci_upper) == pytest.approx((100 * interval.low, 100 * interval.high))


@pytest.mark.parametrize("model_index", [0, 1])
def test_nested_values_are_selected_without_the_question(comparison: FairComparison, model_index: int) -> None:
    model = comparison[model_index]
    table = reference_hits(model.model_spec)
    rng, repeats = np.random.default_rng(0), len(comparison.plan.splits)
    nested = np.full((repeats, len(QUESTIONS)), np.nan)
    tokens = [row["tokens"] for row in model.all_results]
    for split in nested:
        folds = kfold_splits(
            [f"q{index + 1}" for index in range(len(QUESTIONS))],
            5,
            stratify=[pair["category"] for pair in QUESTIONS],
            groups=[pair["answer"].lower() for pair in QUESTIONS],
            rng=rng,
        )
        for train, test in folds:
            best = best_and_cheapest(table[:, train].mean(axis=1), tokens)
            split[test] = table[best, test]
    np.testing.assert_allclose(model.result.per_unit[METRIC], nested.mean(axis=0))
    assert model.tuning.splits == repeats
    assert model.tuning.split_sd == pytest.approx(nested.mean(axis=1).std(ddof=1))
    assert model.nested_accuracy == pytest.approx(100 * nested.mean())
    assert model.gap == pytest.approx(model.best_accuracy - model.nested_accuracy)
    assert model.tuning.gap == pytest.approx(model.gap / 100)


def test_the_cheapest_of_tied_configurations_is_deployed_and_the_embedding_eval_matcher_uses_the_first() -> None:
    """With a single chunk, every configuration answers all questions."""
    questions = [{"question": "What?", "answer": "rye"}, {"question": "And what?", "answer": "wheat"}]
    text = "Rye and wheat grow here. " + "Nothing else is said of it. " * 30
    config = FairConfig(chunk_sizes=[64, 32], overlaps=[0], top_ks=[9], tokenizer="words")
    cheapest = optimize_model("bm25:", text, questions, config=config)
    first = optimize_model("bm25:", text, questions, config=replace(config, matcher="embedding-eval"))
    assert {row["accuracy"] for row in cheapest.all_results} == {100.0}
    assert cheapest.best_params["chunk_size"] == min(cheapest.all_results, key=lambda row: row["tokens"])["chunk_size"]
    assert first.best_params == {"chunk_size": 64, "overlap": 0, "top_k": 9}
    assert cheapest.retrieved_tokens == min(row["tokens"] for row in cheapest.all_results)


@pytest.mark.parametrize("repeats", [1, 15])
def test_the_mcnemar_p_value_is_that_of_the_exact_test(repeats: int) -> None:
    """The models have no tied scores, so all hits are binary."""
    config = replace(CONFIG, repeats=repeats)
    comparison = run_fair_comparison([Counting(), "sum:bm25:+hash,dim=64"], TEXT, QUESTIONS, config=config)
    assert comparison.mcnemar is not None
    first, second = (model.result.per_unit[METRIC] > 0.5 for model in comparison)
    first_only, second_only = int(np.sum(first & ~second)), int(np.sum(second & ~first))
    assert first_only + second_only
    assert comparison.mcnemar.contrasts[0].p == pytest.approx(binomtest(first_only, first_only + second_only).pvalue)
    assert "McNemar p is that of McNemar's exact test" in " ".join(comparison.summary.split())


def test_ten_discordant_questions_of_one_model_give_the_binomial_p_value() -> None:
    """The first model answers every question; the second misses ten."""
    words = [f"word{index}" for index in range(40)]
    text = " ".join(f"{word} answer{index}." for index, word in enumerate(words))
    questions = [{"question": word, "answer": f"answer{index}"} for index, word in enumerate(words)]
    config = FairConfig(chunk_sizes=[3], overlaps=[0], top_ks=[1], tokenizer="words", repeats=5)
    models = [ExactWordModel(words), PartialWordModel(words[10:])]
    comparison = run_fair_comparison(models, text, questions, config=config)
    assert comparison.mcnemar is not None
    assert comparison.mcnemar.contrasts[0].p == pytest.approx(2 * 0.5**10)
    assert "0.002" in comparison.summary.split("McNemar p")[1].splitlines()[2]


def test_configurations_that_few_folds_selected_are_not_listed(comparison: FairComparison) -> None:
    params = [{**POINTS[0], "top_k": top_k} for top_k in range(1, 4)]
    folds = tuple(FoldSelection(point, 0.5, 0.5, 10, times) for point, times in zip(params, (470, 25, 5), strict=True))
    outcome = comparison.outcomes[0]
    tuned = replace(outcome, tuning=replace(outcome.tuning, folds=folds, splits=100))
    (section,) = fold_section(replace(comparison, outcomes=(tuned, *comparison.outcomes[1:])))
    rows = list(zip(*(column.cells for column in section.tables[0].columns[:2]), strict=True))
    assert [times for name, times in rows if name == outcome.name] == ["470", "25"]
    assert "Not shown: 1 selected in fewer than 5 % of the folds." in section.tables[0].notes


class ExactWordModel:
    """One dimension per known word; a question without a known word gets the vector of the first word."""

    def __init__(self, words: Sequence[str]) -> None:
        self.words = list(words)

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        vectors = np.full((len(texts), len(self.words) + 1), 1e-3)
        for row, text in enumerate(texts):
            columns = [column for column, word in enumerate(self.words) if word in text.split()]
            vectors[row, columns or [-1 if "answer" in text else 0]] = 1.0
        return vectors


class PartialWordModel(ExactWordModel):
    """The same model as a different class."""


def test_models_with_tied_scores_have_no_mcnemar_test_and_are_listed_in_the_summary(comparison: FairComparison) -> None:
    tied = [outcome.profile.spec for outcome in comparison.outcomes if outcome.profile.tied_questions]
    assert "hash,dim=16" in tied
    assert comparison.mcnemar is None or not set(tied) & set(comparison.mcnemar.systems)
    listed = " ".join(comparison.summary.split()).split("fractional hits (")[1].split(")")[0]
    assert all(name in listed for name in tied)


def test_mcnemar_as_the_main_test_needs_a_single_split() -> None:
    models, config = [Counting(), "sum:bm25:+hash,dim=64"], replace(CONFIG, stats=StatsConfig(test="mcnemar"))
    with pytest.raises(ParameterError):
        run_fair_comparison(models, TEXT, QUESTIONS, config=config)
    single_split = run_fair_comparison(models, TEXT, QUESTIONS, config=replace(config, repeats=1))
    assert single_split.comparison is not None
    assert single_split.comparison.contrasts[0].test == "mcnemar"


def test_questions_with_equal_answers_are_in_the_same_fold() -> None:
    duplicates = [{**pair, "question": f"{pair['question']} Again?"} for pair in QUESTIONS]
    comparison = run_fair_comparison(["hash,dim=16"], TEXT, QUESTIONS + duplicates, config=replace(CONFIG, repeats=100))
    assert len(comparison.plan.splits) == 100
    for split in comparison.plan.splits:
        fold_of = {}
        for fold, (_, test) in enumerate(split):
            fold_of |= dict.fromkeys(test.tolist(), fold)
        assert all(fold_of[index] == fold_of[index + len(QUESTIONS)] for index in range(len(QUESTIONS)))


def test_chance_is_the_hit_rate_of_random_chunks(comparison: FairComparison) -> None:
    row = next(row for row in comparison[0].all_results if row["top_k"] == 2 and row["chunk_size"] == 16)
    texts = [chunk.text for chunk in chunks_of(TEXT, 16, row["overlap"])]
    rng = np.random.default_rng(0)
    hits = [
        any(
            pair["answer"].lower() in " ".join(texts[chunk].split()).lower()
            for chunk in rng.choice(len(texts), 2, False)
        )
        for _ in range(400)
        for pair in QUESTIONS
    ]
    assert row["chance"] / 100 == pytest.approx(np.mean(hits), abs=0.01)


def test_the_frontier_has_the_best_accuracy_at_every_cost(comparison: FairComparison) -> None:
    system = retriever("hash,dim=16")
    prices, values = [], []
    for size, overlap in product(GRID["chunk_sizes"], GRID["overlaps"]):
        chunks = chunks_of(TEXT, size, overlap)
        order = system.fit([chunk.text for chunk in chunks]).search([pair["question"] for pair in QUESTIONS], 4).indices
        tokens = np.array([chunk.tokens for chunk in chunks])[order].cumsum(axis=1).mean(axis=0)
        for k in range(1, 5):
            prices.append(tokens[k - 1])
            point = {"chunk_size": size, "overlap": overlap, "top_k": k}
            values.append(slow_hits(system, TEXT, QUESTIONS, point).mean())
    for trial in comparison.tunings["hash,dim=16"].frontier:
        affordable = [value for price, value in zip(prices, values, strict=True) if price <= trial.cost + 1e-9]
        assert trial.value == pytest.approx(max(affordable))
    costs = [trial.cost for trial in comparison.tunings["hash,dim=16"].frontier]
    assert costs == sorted(costs)


def test_every_text_is_embedded_once_without_a_cache() -> None:
    model = Counting()
    run_fair_comparison([model], TEXT, QUESTIONS, cache=False, config=CONFIG)
    expected = {
        chunk.text
        for size, overlap in product(GRID["chunk_sizes"], GRID["overlaps"])
        for chunk in chunks_of(TEXT, size, overlap)
    }
    assert sorted(model.documents) == sorted(expected)
    assert sorted(model.queries) == sorted(pair["question"] for pair in QUESTIONS)


def test_a_fused_model_embeds_every_text_once() -> None:
    from equipoise.models.dense import dense_retriever
    from equipoise.models.fusion import SumFusion

    model = Counting()
    run_fair_comparison(
        [SumFusion([dense_retriever(model), retriever("bm25:")])], TEXT, QUESTIONS, cache=False, config=CONFIG
    )
    assert len(model.documents) == len(set(model.documents))
    assert len(model.queries) == len(QUESTIONS)


def test_there_is_one_search_per_chunking_for_all_top_ks(monkeypatch: pytest.MonkeyPatch) -> None:
    from equipoise.models.dense import FittedDenseRetriever

    n_queries: list[int] = []
    row_blocks = FittedDenseRetriever.row_blocks

    def counting_row_blocks(self: FittedDenseRetriever, queries: Any, rows: int) -> Any:
        n_queries.append(len(queries))
        return row_blocks(self, queries, rows)

    monkeypatch.setattr(FittedDenseRetriever, "row_blocks", counting_row_blocks)
    run_fair_comparison(["hash,dim=16"], TEXT, QUESTIONS, config=CONFIG)
    assert n_queries == [len(QUESTIONS)] * len(GRID["chunk_sizes"]) * len(GRID["overlaps"])


def test_only_configurations_within_the_budget_are_selected() -> None:
    comparison = run_fair_comparison(["bm25:", "hash,dim=16"], TEXT, QUESTIONS, config=replace(CONFIG, budget=40))
    for model in comparison:
        tuning = model.tuning
        cost_of = {tuple(trial.params.items()): trial.cost for trial in tuning.trials}
        assert all(cost_of[tuple(choice.params.items())] <= 40 for choice in tuning.folds)
        assert model.retrieved_tokens <= 40
        values_within_budget = [trial.value for trial in tuning.trials if trial.cost <= 40]
        assert tuning.optimistic == pytest.approx(max(values_within_budget))
        assert tuning.frontier[tuning.within_budget].value == pytest.approx(max(values_within_budget))
        assert {trial.params["top_k"] for trial in tuning.grid} == {1, 2, 3, 4}
    assert comparison[0].result.settings["grid"]["top_k"] == "1 to 4"
    assert not [finding for finding in comparison.findings if finding.code == "EQ202"]


def test_a_budget_below_the_cheapest_configuration_is_an_error() -> None:
    with pytest.raises(ParameterError, match="3 tokens"):
        run_fair_comparison(["hash"], TEXT, QUESTIONS, config=replace(CONFIG, budget=3))


def test_chunkers_are_part_of_the_grid_and_sentences_have_no_overlap() -> None:
    counts = dict.fromkeys(("fixed", "section", "sentence"), 0)
    comparison = run_fair_comparison(["bm25:"], TEXT, QUESTIONS, config=replace(CONFIG, chunkers=list(counts)))
    for row in comparison[0].all_results:
        counts[row["chunker"]] += 1
    assert counts == {"fixed": 18, "section": 18, "sentence": 9}
    assert set(comparison[0].best_params) == {"chunker", "chunk_size", "overlap", "top_k"}


def test_the_comparison_is_paired_on_nested_values(comparison: FairComparison) -> None:
    assert comparison.comparison is not None
    for a, b in (("bm25:", "hash,dim=16"), ("hash,dim=16", "sum:hash,dim=16+bm25:")):
        first_score, second_score = (comparison.tunings[name].nested for name in (a, b))
        assert comparison.comparison.contrast(a, b).difference == pytest.approx(first_score - second_score)


def test_a_difference_is_significant_only_if_the_bootstrap_of_the_selection_agrees(comparison: FairComparison) -> None:

    assert comparison.comparison is not None
    by_test = compare([replace(model.result, errors={}) for model in comparison], METRIC)
    for contrast in by_test.contrasts:
        errors = np.subtract(
            *(comparison[index].result.errors[METRIC] for index in _model_indices(comparison, contrast))
        )
        if not errors.any():
            continue
        by_bootstrap = 2 * student.sf(abs(contrast.difference) / errors.std(ddof=1), len(QUESTIONS) - 1)
        corrected = comparison.comparison.contrast(contrast.a, contrast.b)
        assert corrected.p == pytest.approx(max(contrast.p, by_bootstrap))
    assert "bootstrap" in comparison.comparison.family


def test_stored_runs_give_the_same_contrasts(tmp_path: Path) -> None:

    comparison = run_fair_comparison(["bm25:", "hash,dim=16"], TEXT, QUESTIONS, output=tmp_path, config=CONFIG)
    stored = [load_run(path).result for path in sorted((tmp_path / "runs").iterdir())]
    assert comparison.comparison is not None
    assert compare(stored, METRIC).contrasts == comparison.comparison.contrasts


def _model_indices(comparison: FairComparison, contrast: Contrast) -> list[int]:
    """The indices of the two systems of a contrast."""
    specs = [model.model_spec for model in comparison]
    return [specs.index(contrast.a), specs.index(contrast.b)]


def test_the_same_seed_gives_the_same_results() -> None:
    first, second = (
        run_fair_comparison(["bm25:", "hash,dim=16"], TEXT, QUESTIONS, config=CONFIG).to_dict() for _ in range(2)
    )
    for content in (first, second):
        for model in content["models"]:
            model.pop("optimization_time_seconds")
            model["costs"].pop("documents_per_second")
    assert str(first) == str(second)


def test_slices_add_up_to_all_questions(comparison: FairComparison) -> None:
    for slices in comparison.slices.values():
        for name in ("category", "difficulty"):
            assert sum(part.estimate.n for part in slices if part.name == name) == len(QUESTIONS)


def test_a_document_shorter_than_a_chunk_is_one_chunk_and_a_finding() -> None:
    questions = [{"question": "What?", "answer": "rye"}, {"question": "And what?", "answer": "wheat"}]
    config = FairConfig(tokenizer="words")
    comparison = run_fair_comparison(["bm25:", "hash"], "Rye and wheat grow here.", questions, config=config)
    assert all(model.best_accuracy == 100.0 for model in comparison)
    assert "EQ108" in {finding.code for finding in comparison.findings}
    assert "2 folds instead of 5: there are 2 different answers" in comparison.summary


def test_one_configuration_has_no_tuning_note_and_no_gap() -> None:
    text = run_fair_comparison(["bm25:", "hash,dim=16"], TEXT, QUESTIONS, [16], [0], [2], config=CONFIG).summary
    assert "The grid has one configuration, so nothing was tuned." in text
    assert "add up to" not in text
    assert "gap" not in text


def test_without_folds_the_score_is_the_optimistic_one_with_a_finding() -> None:
    comparison = run_fair_comparison(["bm25:", "hash,dim=16"], TEXT, QUESTIONS, config=replace(CONFIG, folds=1))
    for model in comparison:
        best = next(row for row in model.all_results if model.best_params.items() <= row.items())
        assert model.result["optimistic accuracy"].value == pytest.approx(best["accuracy"] / 100)
        assert np.isnan(model.nested_accuracy)
        assert model.result.errors == {}
    subjects = [finding.subject for finding in comparison.findings if finding.code == "EQ201"]
    assert subjects == ["bm25:", "hash,dim=16"]
    assert "selected and scored on the same questions" in comparison.summary
    assert comparison.to_dict()["models"][0]["nested_accuracy"] is None


def test_the_tokenizer_is_in_the_summary_and_in_the_results(comparison: FairComparison) -> None:
    assert "A token is a word or a punctuation mark." in " ".join(comparison.summary.split())
    assert comparison.to_dict()["settings"]["tokenizer"] == "words"
    assert comparison[0].result.settings["tokenizer"] == "words"


def test_a_baseline_beyond_the_budget_is_marked() -> None:
    comparison = run_fair_comparison(["bm25:", "hash,dim=16"], TEXT, QUESTIONS, config=replace(CONFIG, budget=40))
    assert "* The baseline exceeds the token budget." in comparison.summary
    large_budget = run_fair_comparison(["bm25:", "hash,dim=16"], TEXT, QUESTIONS, config=replace(CONFIG, budget=400))
    assert "The baseline exceeds" not in large_budget.summary


def test_a_budget_that_no_configuration_reaches_is_mentioned() -> None:
    reached, unreached = (
        run_fair_comparison(["bm25:"], TEXT, QUESTIONS, config=replace(CONFIG, budget=budget)).summary
        for budget in (40, 4000)
    )
    assert "The budget is" not in reached
    assert "The budget is 4,000 tokens per question" in unreached


def test_optimistic_scores_are_labelled_in_the_summary(comparison: FairComparison) -> None:
    text = comparison.summary
    assert text.index("Held-out accuracy") < text.index("(optimistic accuracy)")
    optimistic = text[text.index("(optimistic accuracy)") :]
    assert all(model.model_spec in optimistic for model in comparison)


def test_verbose_prints_the_summary(capsys: pytest.CaptureFixture[str]) -> None:
    optimize_model("hash", TEXT, QUESTIONS, verbose=True, config=CONFIG)
    assert "Held-out accuracy" in capsys.readouterr().out


def test_exported_slices_have_their_names_and_values(comparison: FairComparison) -> None:
    for name, slices in comparison.to_dict()["slices"].items():
        keys = [part["slice"] for part in slices]
        assert keys == [{part.name: part.value} for part in comparison.slices[name]]
        assert [part["value"] for part in slices] == [part.estimate.value for part in comparison.slices[name]]


def test_a_chunk_id_identifies_one_text_in_all_chunkings(comparison: FairComparison) -> None:
    for outcome in comparison.outcomes:
        chunks = [chunk for detail in outcome.details.values() for chunk in detail.retrieved]
        assert len({chunk.id for chunk in chunks}) == len({(chunk.id, chunk.text) for chunk in chunks})
        assert not any(" " in chunk.id for chunk in chunks)


def test_accuracy_one_at_chance_one_cannot_be_compared() -> None:
    comparison = run_fair_comparison(["bm25:", "hash"], TEXT, QUESTIONS, [64], [0], [60], config=CONFIG)
    assert comparison[0].chance == comparison[0].nested_accuracy == 100.0
    assert comparison.comparison is not None
    assert "cannot compare" in comparison.comparison.verdict()
    assert {"EQ108", "EQ302"} <= {finding.code for finding in comparison.findings}


@pytest.mark.parametrize("sentences", [60, 240, 960])
def test_the_default_grid_keeps_the_chance_level_low_for_short_documents(sentences: int) -> None:
    text = document(sentences)
    config = FairConfig(tokenizer="words", repeats=2)
    comparison = run_fair_comparison(["bm25:", "hash,dim=16"], text, pairs(text), config=config)
    rows = [row for model in comparison for row in model.all_results]
    assert max(row["chance"] for row in rows) < 20
    assert len({row["chunk_size"] for row in rows}) > 1
    assert any("adapted to a document" in note for note in comparison.notes)
    settings = comparison.plan.settings
    assert settings.baseline[1] <= settings.max_top_k


@pytest.mark.parametrize("budget", [300, 1_000])
def test_the_default_grid_uses_the_whole_token_budget(budget: int) -> None:
    text = document(240)
    config = FairConfig(tokenizer="words", repeats=2, budget=budget)
    comparison = run_fair_comparison(["bm25:", "hash,dim=16"], text, pairs(text), config=config)
    settings = comparison.plan.settings
    smallest, largest = min(settings.axes["chunk_size"]), max(settings.axes["chunk_size"])
    tokens = [row["tokens"] for row in comparison[0].all_results]
    assert max(count for count in tokens if count <= budget) > budget - smallest
    assert largest * 4 <= budget
    baseline, top_k = settings.baseline
    assert budget - baseline.chunk_size < top_k * baseline.chunk_size <= budget


def test_given_values_are_not_adapted_to_the_document() -> None:
    config = FairConfig(tokenizer="words", repeats=2)
    comparison = run_fair_comparison(["bm25:"], TEXT, QUESTIONS, [300], [40], [7], config=config)
    assert comparison[0].best_params == {"chunk_size": 300, "overlap": 40, "top_k": 7}
    assert not any("adapted" in note for note in comparison.notes)


def test_tuning_is_compared_with_the_baseline_at_no_more_tokens(comparison: FairComparison) -> None:
    from equipoise.domains.fair.report import _Gain

    for model in comparison:
        gain = _Gain.of(model.tuning, None)
        assert gain.baseline.cost is not None
        assert gain.tuned is not None
        assert gain.tuned.cost is not None
        assert gain.tuned.cost <= gain.baseline.cost
        table = reference_hits(model.model_spec).mean(axis=1)
        values_within_cost = [value for value, row in zip(table, model.all_results, strict=True)
                 if row["tokens"] <= gain.baseline.cost]  # fmt: skip
        assert gain.tuned.value >= max(values_within_cost) - 1e-12
        assert float(gain.points) >= 0


@pytest.mark.slow
def test_ten_seeds_give_the_same_verdict_at_least_nine_times() -> None:
    sample, questions = timekeeping()
    config = FairConfig(chunk_sizes=[100, 200], overlaps=[20], top_ks=[2, 4], tokenizer="words")
    verdicts: Counter[tuple[str | None, frozenset[str]]] = Counter()
    for seed in range(10):
        seeded = replace(config, stats=replace(config.stats, seed=seed))
        comparison = run_fair_comparison(["bm25:", "tfidf:", "hash"], sample, questions, config=seeded).comparison
        assert comparison is not None
        verdicts[comparison.leader, frozenset(comparison.tied_with_leader)] += 1
    assert verdicts.most_common(1)[0][1] >= 9


def test_every_step_has_a_weight_and_models_with_larger_weights_take_longer() -> None:
    models = resolve_models(["bm25:", "hash", "sum:hash+bm25:"])
    texts: list[str] = []
    plan = plan_comparison(TEXT, QUESTIONS, CONFIG)
    weights = step_weights(models, plan)
    compare_models(models, plan, step=texts.append)
    assert texts == [*weights, "comparing the models"]
    assert len(texts) == n_steps(models)
    assert weights["sum:hash+bm25:: embedding"] == weights["hash: embedding"] == weights["bm25:: embedding"]
    unknown = step_weights({"object": Counting()}, plan)
    assert unknown["object: embedding"] > weights["hash: embedding"]
