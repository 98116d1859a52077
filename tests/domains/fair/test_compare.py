"""The fair comparison, held to the grid walked slowly."""

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

from equipoise import optimize_model, retriever, run_fair_comparison
from equipoise.domains.fair.config import METRIC
from equipoise.domains.fair.questions import timekeeping
from equipoise.domains.fair.results import FairComparison
from equipoise.errors import ParameterError
from equipoise.io.splits import kfold_splits
from equipoise.runs.compare import compare
from equipoise.runs.run_folder import load_run
from equipoise.stats.comparison import Contrast
from fair_sample import BASELINE, GRID, SETTINGS, Counting, chunks_of, document, pairs, slow_hits

TEXT = document()
ASKED = pairs(TEXT)
POINTS = [dict(zip(("chunk_size", "overlap", "top_k"), point, strict=True)) for point in product(*GRID.values())]


@pytest.fixture(scope="module")
def found() -> FairComparison:
    return run_fair_comparison(["bm25:", "hash,dim=16", "sum:hash,dim=16+bm25:"], TEXT, ASKED, **SETTINGS)


def cheapest_best(means: np.ndarray, tokens: list[float]) -> int:
    """Of the configurations with the best mean, the one that retrieves least."""
    rounded = np.round(means, 12)
    return min(np.flatnonzero(rounded == rounded.max()).tolist(), key=lambda place: tokens[place])


@cache
def table_of(spec: str) -> np.ndarray:
    """A row a configuration, a column a question."""
    return np.array([slow_hits(retriever(spec), TEXT, ASKED, point) for point in POINTS])


@pytest.mark.parametrize("place", [0, 1, 2])
def test_every_configuration_scores_what_the_slow_walk_scores(found: FairComparison, place: int) -> None:
    model = found[place]
    slow = table_of(model.model_spec).mean(axis=1)
    assert [{name: row[name] for name in BASELINE} for row in model.all_results] == POINTS
    np.testing.assert_allclose([row["accuracy"] for row in model.all_results], 100 * slow)
    assert model.configurations_tested == len(POINTS)


@pytest.mark.parametrize("place", [0, 1, 2])
def test_the_best_is_the_cheapest_best_and_the_baseline_as_given(found: FairComparison, place: int) -> None:
    model = found[place]
    slow = table_of(model.model_spec).mean(axis=1)
    best = cheapest_best(slow, [row["tokens"] for row in model.all_results])
    assert model.best_params == POINTS[best]
    assert model.best_accuracy == pytest.approx(100 * slow[best])
    assert model.baseline_accuracy == pytest.approx(100 * slow[POINTS.index(BASELINE)])
    assert model.improvement_pct == pytest.approx(model.best_accuracy - model.baseline_accuracy)


def test_the_optimistic_interval_is_wilsons() -> None:
    model = optimize_model(Counting(), TEXT, ASKED, **SETTINGS)
    reach = binomtest(model.best_passed, model.total_questions).proportion_ci(0.95, method="wilson")
    assert (model.ci_lower, model.ci_upper) == pytest.approx((100 * reach.low, 100 * reach.high))


@pytest.mark.parametrize("place", [0, 1])
def test_the_nested_values_are_chosen_without_the_question(found: FairComparison, place: int) -> None:
    model = found[place]
    table = table_of(model.model_spec)
    rng, repeats = np.random.default_rng(0), len(found.plan.splits)
    wanted = np.full((repeats, len(ASKED)), np.nan)
    tokens = [row["tokens"] for row in model.all_results]
    for split in wanted:
        parts = kfold_splits(
            [f"q{number + 1}" for number in range(len(ASKED))],
            5,
            stratify=[pair["category"] for pair in ASKED],
            groups=[pair["answer"].lower() for pair in ASKED],
            rng=rng,
        )
        for train, test in parts:
            chosen = cheapest_best(table[:, train].mean(axis=1), tokens)
            split[test] = table[chosen, test]
    np.testing.assert_allclose(model.result.per_unit[METRIC], wanted.mean(axis=0))
    assert model.tuning.splits == repeats
    assert model.tuning.split_sd == pytest.approx(wanted.mean(axis=1).std(ddof=1))
    assert model.nested_accuracy == pytest.approx(100 * wanted.mean())
    assert model.gap == pytest.approx(model.best_accuracy - model.nested_accuracy)
    assert model.tuning.gap == pytest.approx(model.gap / 100)


def test_of_equally_good_configurations_the_cheaper_is_deployed_and_the_source_s_rule_takes_the_first() -> None:
    """With one chunk that holds everything, every configuration answers all."""
    asked = [{"question": "What?", "answer": "rye"}, {"question": "And what?", "answer": "wheat"}]
    text = "Rye and wheat grow here. " + "Nothing else is said of it. " * 30
    grid = {"chunk_sizes": [64, 32], "overlaps": [0], "top_ks": [9], "tokenizer": "words"}
    cheap = optimize_model("bm25:", text, asked, **grid)
    first = optimize_model("bm25:", text, asked, matcher="source", **grid)
    assert {row["accuracy"] for row in cheap.all_results} == {100.0}
    assert cheap.best_params["chunk_size"] == min(cheap.all_results, key=lambda row: row["tokens"])["chunk_size"]
    assert first.best_params == {"chunk_size": 64, "overlap": 0, "top_k": 9}
    assert cheap.retrieved_tokens == min(row["tokens"] for row in cheap.all_results)


@pytest.mark.parametrize("repeats", [1, 15])
def test_mcnemar_s_p_is_that_of_the_exact_test(repeats: int) -> None:
    """A model in hand has no tied scores, so that all hits are binary."""
    settings = {**SETTINGS, "repeats": repeats}
    found = run_fair_comparison([Counting(), "sum:bm25:+hash,dim=64"], TEXT, ASKED, **settings)
    assert found.mcnemar is not None
    first, second = (model.result.per_unit[METRIC] > 0.5 for model in found)
    won, lost = int(np.sum(first & ~second)), int(np.sum(second & ~first))
    assert won + lost
    assert found.mcnemar.contrasts[0].p == pytest.approx(binomtest(won, won + lost).pvalue)
    assert "McNemar p comes from McNemar's exact test" in " ".join(found.summary.split())


def test_ten_questions_to_none_give_the_p_of_the_binomial_test() -> None:
    """The first model finds every answer, and the second none of ten."""
    words = [f"word{number}" for number in range(40)]
    text = " ".join(f"{word} answer{number}." for number, word in enumerate(words))
    asked = [{"question": word, "answer": f"answer{number}"} for number, word in enumerate(words)]
    settings = {"chunk_sizes": [3], "overlaps": [0], "top_ks": [1], "tokenizer": "words", "repeats": 5}
    found = run_fair_comparison([Exact(words), Partial(words[10:])], text, asked, **settings)
    assert found.mcnemar is not None
    assert found.mcnemar.contrasts[0].p == pytest.approx(2 * 0.5**10)
    assert "0.002" in found.summary.split("McNemar p")[1].splitlines()[3]


class Exact:
    """Knows some words, each by a direction of its own; it takes a question that it does not know for the
    first of them."""

    def __init__(self, words: Sequence[str]) -> None:
        self.words = list(words)

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        vectors = np.full((len(texts), len(self.words) + 1), 1e-3)
        for row, text in enumerate(texts):
            known = [place for place, word in enumerate(self.words) if word in text.split()]
            vectors[row, known or [-1 if "answer" in text else 0]] = 1.0
        return vectors


class Partial(Exact):
    """The same under another name."""


def test_tied_scores_leave_a_model_without_mcnemar_and_the_summary_says_so(found: FairComparison) -> None:
    tied = [each.profile.spec for each in found.outcomes if each.profile.tied_questions]
    assert "hash,dim=16" in tied
    assert found.mcnemar is None or not set(tied) & set(found.mcnemar.systems)
    said = " ".join(found.summary.split()).split("fractional hits (")[1].split(")")[0]
    assert all(name in said for name in tied)


def test_mcnemar_as_the_main_test_needs_a_single_split() -> None:
    models = [Counting(), "sum:bm25:+hash,dim=64"]
    with pytest.raises(ParameterError):
        run_fair_comparison(models, TEXT, ASKED, test="mcnemar", **SETTINGS)
    alone = run_fair_comparison(models, TEXT, ASKED, test="mcnemar", **{**SETTINGS, "repeats": 1})
    assert alone.comparison is not None
    assert alone.comparison.contrasts[0].test == "mcnemar"


def test_questions_with_one_answer_share_a_fold() -> None:
    twins = [{**pair, "question": f"{pair['question']} Again?"} for pair in ASKED]
    default = {name: value for name, value in SETTINGS.items() if name != "repeats"}
    found = run_fair_comparison(["hash,dim=16"], TEXT, ASKED + twins, **default)
    assert len(found.plan.splits) == 100
    for split in found.plan.splits:
        fold_of = {}
        for number, (_, test) in enumerate(split):
            fold_of |= dict.fromkeys(test.tolist(), number)
        assert all(fold_of[place] == fold_of[place + len(ASKED)] for place in range(len(ASKED)))


def test_chance_is_what_random_chunks_would_hold(found: FairComparison) -> None:
    row = next(row for row in found[0].all_results if row["top_k"] == 2 and row["chunk_size"] == 16)
    texts = [chunk.text for chunk in chunks_of(TEXT, 16, row["overlap"])]
    rng = np.random.default_rng(0)
    drawn = [
        any(pair["answer"].lower() in " ".join(texts[at].split()).lower() for at in rng.choice(len(texts), 2, False))
        for _ in range(400)
        for pair in ASKED
    ]
    assert row["chance"] / 100 == pytest.approx(np.mean(drawn), abs=0.01)


def test_the_frontier_holds_the_best_accuracy_for_every_price(found: FairComparison) -> None:
    system = retriever("hash,dim=16")
    prices, values = [], []
    for size, overlap in product(GRID["chunk_sizes"], GRID["overlaps"]):
        chunks = chunks_of(TEXT, size, overlap)
        order = system.fit([chunk.text for chunk in chunks]).search([pair["question"] for pair in ASKED], 4).indices
        tokens = np.array([chunk.tokens for chunk in chunks])[order].cumsum(axis=1).mean(axis=0)
        for k in range(1, 5):
            prices.append(tokens[k - 1])
            point = {"chunk_size": size, "overlap": overlap, "top_k": k}
            values.append(slow_hits(system, TEXT, ASKED, point).mean())
    for trial in found.frontiers["hash,dim=16"]:
        affordable = [value for price, value in zip(prices, values, strict=True) if price <= trial.cost + 1e-9]
        assert trial.value == pytest.approx(max(affordable))
    costs = [trial.cost for trial in found.frontiers["hash,dim=16"]]
    assert costs == sorted(costs)


def test_every_text_is_embedded_once_without_any_cache() -> None:
    model = Counting()
    run_fair_comparison([model], TEXT, ASKED, cache=False, **SETTINGS)
    distinct = {
        chunk.text
        for size, overlap in product(GRID["chunk_sizes"], GRID["overlaps"])
        for chunk in chunks_of(TEXT, size, overlap)
    }
    assert sorted(model.documents) == sorted(distinct)
    assert sorted(model.queries) == sorted(pair["question"] for pair in ASKED)


def test_a_part_of_a_fusion_embeds_every_text_once_too() -> None:
    from equipoise.models.dense import dense_retriever
    from equipoise.models.fusion import SumFusion

    model = Counting()
    run_fair_comparison([SumFusion([dense_retriever(model), retriever("bm25:")])], TEXT, ASKED, cache=False, **SETTINGS)
    assert len(model.documents) == len(set(model.documents))
    assert len(model.queries) == len(ASKED)


def test_one_search_a_chunking_serves_every_top_k(monkeypatch: pytest.MonkeyPatch) -> None:
    from equipoise.models.dense import FittedDenseRetriever

    searched: list[int] = []
    row_blocks = FittedDenseRetriever.row_blocks

    def counted(self: FittedDenseRetriever, queries: Any, rows: int) -> Any:
        searched.append(len(queries))
        return row_blocks(self, queries, rows)

    monkeypatch.setattr(FittedDenseRetriever, "row_blocks", counted)
    run_fair_comparison(["hash,dim=16"], TEXT, ASKED, **SETTINGS)
    assert searched == [len(ASKED)] * len(GRID["chunk_sizes"]) * len(GRID["overlaps"])


def test_with_a_budget_only_what_is_affordable_is_chosen() -> None:
    found = run_fair_comparison(["bm25:", "hash,dim=16"], TEXT, ASKED, budget=40, **SETTINGS)
    for model in found:
        tuning = model.tuning
        cost_of = {tuple(trial.params.items()): trial.cost for trial in tuning.trials}
        assert all(cost_of[tuple(choice.params.items())] <= 40 for choice in tuning.folds)
        assert model.retrieved_tokens <= 40
        affordable = [trial.value for trial in tuning.trials if trial.cost <= 40]
        assert tuning.optimistic == pytest.approx(max(affordable))
        assert tuning.frontier[tuning.within_budget].value == pytest.approx(max(affordable))
        assert {trial.params["top_k"] for trial in tuning.grid} == {1, 2, 3, 4}
    assert found[0].result.settings["grid"]["top_k"] == "1 to 4"
    assert not [finding for finding in found.findings if finding.code == "EQ202"]


def test_a_budget_that_buys_nothing_is_refused() -> None:
    with pytest.raises(ParameterError, match="3 tokens"):
        run_fair_comparison(["hash"], TEXT, ASKED, budget=3, **SETTINGS)


def test_chunkers_are_an_axis_and_sentences_have_no_overlap() -> None:
    found = run_fair_comparison(["bm25:"], TEXT, ASKED, chunkers=["fixed", "section", "sentence"], **SETTINGS)
    counts = dict.fromkeys(("fixed", "section", "sentence"), 0)
    for row in found[0].all_results:
        counts[row["chunker"]] += 1
    assert counts == {"fixed": 18, "section": 18, "sentence": 9}
    assert set(found[0].best_params) == {"chunker", "chunk_size", "overlap", "top_k"}


def test_the_comparison_is_paired_on_the_honest_values(found: FairComparison) -> None:
    assert found.comparison is not None
    for one, other in (("bm25:", "hash,dim=16"), ("hash,dim=16", "sum:hash,dim=16+bm25:")):
        first, second = (found.tunings[name].nested for name in (one, other))
        assert found.comparison.contrast(one, other).difference == pytest.approx(first - second)


def test_two_models_are_told_apart_only_where_the_redrawn_choice_agrees(found: FairComparison) -> None:

    assert found.comparison is not None
    by_test = compare([replace(model.result, errors={}) for model in found], METRIC)
    for contrast in by_test.contrasts:
        errors = np.subtract(*(found[at].result.errors[METRIC] for at in _places(found, contrast)))
        if not errors.any():
            continue
        by_bootstrap = 2 * student.sf(abs(contrast.difference) / errors.std(ddof=1), len(ASKED) - 1)
        judged = found.comparison.contrast(contrast.a, contrast.b)
        assert judged.p == pytest.approx(max(contrast.p, by_bootstrap))
    assert "bootstrap" in found.comparison.family


def test_runs_read_back_make_the_same_claims(tmp_path: Path) -> None:

    found = run_fair_comparison(["bm25:", "hash,dim=16"], TEXT, ASKED, output=tmp_path, **SETTINGS)
    stored = [load_run(path).result for path in sorted((tmp_path / "runs").iterdir())]
    assert found.comparison is not None
    assert compare(stored, METRIC).contrasts == found.comparison.contrasts


def _places(found: FairComparison, contrast: Contrast) -> list[int]:
    """Where the two systems of a contrast stand."""
    specs = [model.model_spec for model in found]
    return [specs.index(contrast.a), specs.index(contrast.b)]


def test_the_same_seed_gives_the_same_figures() -> None:
    first, second = (run_fair_comparison(["bm25:", "hash,dim=16"], TEXT, ASKED, **SETTINGS).to_dict() for _ in range(2))
    for content in (first, second):
        for model in content["models"]:
            model.pop("optimization_time_seconds")
            model["costs"].pop("documents_per_second")
    assert str(first) == str(second)


def test_slices_add_up_to_all_questions(found: FairComparison) -> None:
    for slices in found.slices.values():
        for name in ("category", "difficulty"):
            assert sum(each.estimate.n for each in slices if each.name == name) == len(ASKED)


def test_a_document_shorter_than_a_chunk_is_one_chunk_and_a_finding() -> None:
    few = [{"question": "What?", "answer": "rye"}, {"question": "And what?", "answer": "wheat"}]
    found = run_fair_comparison(["bm25:", "hash"], "Rye and wheat grow here.", few, tokenizer="words")
    assert all(model.best_accuracy == 100.0 for model in found)
    assert "EQ108" in {finding.code for finding in found.findings}
    assert "2 folds instead of 5: there are 2 different answers" in found.summary


def test_one_configuration_is_no_choice_and_nothing_is_said_of_its_luck() -> None:
    single = {**SETTINGS, "chunk_sizes": [16], "overlaps": [0], "top_ks": [2]}
    text = run_fair_comparison(["bm25:", "hash,dim=16"], TEXT, ASKED, **single).summary
    assert "The grid has one configuration, so nothing was tuned." in text
    assert "luck of choosing" not in text
    assert "gap" not in text


def test_without_folds_the_figure_is_the_optimistic_one_and_a_finding_says_so() -> None:
    found = run_fair_comparison(["bm25:", "hash,dim=16"], TEXT, ASKED, folds=None, **SETTINGS)
    for model in found:
        best = next(row for row in model.all_results if model.best_params.items() <= row.items())
        assert model.result["optimistic accuracy"].value == pytest.approx(best["accuracy"] / 100)
        assert np.isnan(model.nested_accuracy)
        assert model.result.errors == {}
    tuned = [finding.subject for finding in found.findings if finding.code == "EQ201"]
    assert tuned == ["bm25:", "hash,dim=16"]
    assert "selected and scored on the same questions" in found.summary
    assert found.to_dict()["models"][0]["nested_accuracy"] is None


def test_what_a_token_is_stands_in_the_report_and_in_the_results(found: FairComparison) -> None:
    assert "A token is a word or a punctuation mark." in " ".join(found.summary.split())
    assert found.to_dict()["settings"]["tokenizer"] == "words"
    assert found[0].result.settings["tokenizer"] == "words"


def test_a_baseline_beyond_the_budget_is_marked() -> None:
    found = run_fair_comparison(["bm25:", "hash,dim=16"], TEXT, ASKED, budget=40, **SETTINGS)
    assert "* The baseline exceeds the token budget." in found.summary
    generous = run_fair_comparison(["bm25:", "hash,dim=16"], TEXT, ASKED, budget=400, **SETTINGS)
    assert "The baseline exceeds" not in generous.summary


def test_the_summary_names_the_optimistic_figures_as_such(found: FairComparison) -> None:
    text = found.summary
    assert text.index("Held-out accuracy") < text.index("(optimistic accuracy)")
    optimistic = text[text.index("(optimistic accuracy)") :]
    assert all(model.model_spec in optimistic for model in found)


def test_verbose_prints_the_summary(capsys: pytest.CaptureFixture[str]) -> None:
    optimize_model("hash", TEXT, ASKED, verbose=True, **SETTINGS)
    assert "Held-out accuracy" in capsys.readouterr().out


def test_slices_as_data_say_which_slice_they_are(found: FairComparison) -> None:
    for name, slices in found.to_dict()["slices"].items():
        shown = [each["slice"] for each in slices]
        assert shown == [{each.name: each.value} for each in found.slices[name]]
        assert [each["value"] for each in slices] == [each.estimate.value for each in found.slices[name]]


def test_a_chunk_id_stands_for_one_text_whatever_the_chunking(found: FairComparison) -> None:
    for done in found.outcomes:
        kept = [each for detail in done.details.values() for each in detail.retrieved]
        assert len({each.id for each in kept}) == len({(each.id, each.text) for each in kept})
        assert not any(" " in each.id for each in kept)


def test_accuracy_one_at_chance_one_says_that_nothing_can_be_compared() -> None:
    few = {**SETTINGS, "chunk_sizes": [64], "overlaps": [0], "top_ks": [60]}
    found = run_fair_comparison(["bm25:", "hash"], TEXT, ASKED, **few)
    assert found[0].chance == found[0].nested_accuracy == 100.0
    assert found.comparison is not None
    assert "cannot compare" in found.comparison.verdict()
    assert {"EQ108", "EQ302"} <= {finding.code for finding in found.findings}


@pytest.mark.parametrize("sentences", [60, 240, 960])
def test_the_default_grid_keeps_the_chance_level_low_however_short_the_document(sentences: int) -> None:
    text = document(sentences)
    found = run_fair_comparison(["bm25:", "hash,dim=16"], text, pairs(text), tokenizer="words", repeats=2)
    rows = [row for model in found for row in model.all_results]
    assert max(row["chance"] for row in rows) < 20
    assert len({row["chunk_size"] for row in rows}) > 1
    assert any("adapted to a document" in note for note in found.notes)
    settings = found.plan.settings
    assert settings.baseline[1] <= max(settings.top_ks)


def test_values_that_are_given_are_not_fitted() -> None:
    found = run_fair_comparison(["bm25:"], TEXT, ASKED, [300], [40], [7], tokenizer="words", repeats=2)
    assert found[0].best_params == {"chunk_size": 300, "overlap": 40, "top_k": 7}
    assert not any("adapted" in note for note in found.notes)


def test_tuning_is_compared_with_the_baseline_at_no_more_tokens(found: FairComparison) -> None:
    from equipoise.domains.fair.report import _Gain

    for model in found:
        gain = _Gain.of(model.tuning, None)
        assert gain.baseline.cost is not None
        assert gain.tuned is not None
        assert gain.tuned.cost is not None
        assert gain.tuned.cost <= gain.baseline.cost
        table = table_of(model.model_spec).mean(axis=1)
        cheap = [value for value, row in zip(table, model.all_results, strict=True)
                 if row["tokens"] <= gain.baseline.cost]  # fmt: skip
        assert gain.tuned.value >= max(cheap) - 1e-12
        assert float(gain.points) >= 0


@pytest.mark.slow
def test_ten_seeds_give_the_same_verdict_at_least_nine_times() -> None:
    sample, questions = timekeeping()
    grid: dict[str, Any] = {"chunk_sizes": [100, 200], "overlaps": [20], "top_ks": [2, 4], "tokenizer": "words"}
    verdicts: Counter[tuple[str | None, frozenset[str]]] = Counter()
    for seed in range(10):
        comparison = run_fair_comparison(["bm25:", "tfidf:", "hash"], sample, questions, seed=seed, **grid).comparison
        assert comparison is not None
        verdicts[comparison.leader, frozenset(comparison.tied_with_leader)] += 1
    assert verdicts.most_common(1)[0][1] >= 9
