"""The analysis of a leaderboard, on the results of the MTEB paper and on small tables."""

from __future__ import annotations

import csv
import json
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
from scipy.special import expit

from equipoise.config import StatsConfig
from equipoise.domains.bench.leaderboard import LeaderboardAnalysis, leaderboard
from equipoise.domains.bench.leaderboard_report import leaderboard_view
from equipoise.errors import EquipoiseError, InputError, ParameterError, UnknownNameError
from equipoise.report.terminal import render_text
from equipoise.stats.estimate import result_from_values
from html_tree import tree

# 31 models on the 56 English data sets of MTEB (Muennighoff et al., 2023, table 10), with the published averages.
MTEB = Path(str(files("equipoise.io") / "samples" / "mteb_2022.csv"))
CONFIG = StatsConfig(n_resamples=500)


@pytest.fixture(scope="module")
def mteb() -> LeaderboardAnalysis:
    return leaderboard(MTEB, missing="models", config=CONFIG)


def published_averages() -> dict[str, float]:
    with MTEB.open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    (row,) = [row for row in rows if row["Dataset"] == "Average"]
    return {model: float(text) for model, text in row.items() if model not in ("Dataset", "Language") and text}


def test_the_published_averages_are_reproduced(mteb: LeaderboardAnalysis) -> None:
    means = {entry.model: entry.mean for entry in mteb.entries}
    assert means == pytest.approx(published_averages(), abs=0.0051)


def test_the_published_order_is_kept(mteb: LeaderboardAnalysis) -> None:
    published = published_averages()
    assert [entry.model for entry in mteb.entries] == sorted(published, key=published.__getitem__, reverse=True)


def test_most_adjacent_ranks_of_mteb_are_not_separated(mteb: LeaderboardAnalysis) -> None:
    assert len(mteb.adjacent) == 29
    assert len(mteb.separated) <= 3
    assert sum(pair.p < 0.05 for pair in mteb.adjacent) <= 5


def test_several_models_of_mteb_may_be_first(mteb: LeaderboardAnalysis) -> None:
    assert mteb.tied_for_first[0] == "ST5-XXL"
    assert {"GTR-XXL", "SGPT-5.8B-msmarco"} <= set(mteb.tied_for_first)
    assert not {"BERT", "Glove", "LASER2"} & set(mteb.tied_for_first)
    assert all(entry.rank_low <= entry.rank <= entry.rank_high for entry in mteb.entries)


def test_missing_cells_decide_which_data_sets_or_models_are_used() -> None:
    datasets = leaderboard(MTEB, config=CONFIG)
    assert (len(datasets.table.models), len(datasets.table.datasets)) == (31, 41)
    assert len(datasets.to_dict()["missing_cells"]) == 15
    assert {finding.code for finding in datasets.findings} >= {"EQ420"}


def test_findings_cover_the_part_that_is_used() -> None:
    rows = {"a": {f"d{d}": 1.5 + d for d in range(8)}, "b": {f"d{d}": 2.5 + d for d in range(3)}}
    assert "EQ424" in {finding.code for finding in leaderboard(rows, config=CONFIG).findings}


def test_borda_counts_add_up_to_the_number_of_comparisons(mteb: LeaderboardAnalysis) -> None:
    assert sum(entry.borda for entry in mteb.entries) == pytest.approx(56 * 30 * 29 / 2)


def test_models_and_data_sets_can_be_selected() -> None:
    selection = leaderboard(MTEB, models=["BERT", "MPNet"], datasets=["NQ", "FEVER", "SciFact"], config=CONFIG)
    assert [entry.model for entry in selection.entries] == ["MPNet", "BERT"]
    assert selection.table.datasets == ("NQ", "FEVER", "SciFact")
    with pytest.raises(UnknownNameError):
        leaderboard(MTEB, models=["BERTT", "MPNet"])
    with pytest.raises(UnknownNameError):
        leaderboard(MTEB, datasets=["NQQ"])


def test_a_clear_winner_is_in_the_verdict() -> None:
    rng = np.random.default_rng(0)
    scores = {
        model: {f"d{d}": float(value) for d, value in enumerate(rng.normal(level, 1, 12))}
        for model, level in (("good", 80), ("bad", 60), ("worse", 40))
    }
    result = leaderboard(scores, config=CONFIG)
    assert result.tied_for_first == ("good",)
    assert "good" in result.verdict()
    assert len(result.separated) == 2


MIXED = {
    "a": {"x": 71.0, "y": 0.5, "WER": 8.0},
    "b": {"x": 72.0, "y": 0.6, "WER": 7.0},
    "c": {"x": 73.0, "y": 0.4, "WER": 9.0},
}


def test_different_scales_are_ordered_by_borda_and_not_averaged() -> None:
    result = leaderboard(MIXED, lower=["WER"], config=CONFIG)
    assert result.aggregate == "borda"
    assert result.entries[0].model == "b"
    assert all(np.isnan(entry.mean) for entry in result.entries)
    assert "EQ421" in {finding.code for finding in result.findings}


def test_a_mean_of_different_scales_must_be_requested() -> None:
    result = leaderboard(MIXED, aggregate="mean", config=CONFIG)
    assert result.entries[0].mean == pytest.approx((73.0 + 0.4 + 9.0) / 3)
    assert "EQ421" in {finding.code for finding in result.findings}


def test_errors_are_ranked_from_low_to_high_with_their_values() -> None:
    scores = {"a": {"x": 8.0, "y": 7.0}, "b": {"x": 6.0, "y": 5.0}}
    result = leaderboard(scores, lower=["x", "y"], config=CONFIG)
    best = result.entries[0]
    assert (best.model, best.mean) == ("b", pytest.approx(5.5))
    assert best.interval.low < 5.5 < best.interval.high


def unit_table(seed: int = 0) -> list[dict[str, object]]:
    rng = np.random.default_rng(seed)
    rows: list[dict[str, object]] = []
    for dataset in ("x", "y", "z"):
        difficulty = rng.normal(0, 1, 80)
        for model, level in (("a", 0.0), ("b", 0.6)):
            values = difficulty + rng.normal(level, 1, 80)
            rows += [{"model": model, "dataset": dataset, "unit": u, "score": float(v)} for u, v in enumerate(values)]
    return rows


def test_unit_resampling_is_for_the_given_data_sets_and_not_for_others() -> None:
    both = leaderboard(unit_table(), config=CONFIG)
    units = leaderboard(unit_table(), resample="units", config=CONFIG)
    assert (both.resample, units.resample) == ("both", "units")
    assert "EQ424" in {finding.code for finding in both.findings}  # three data sets
    assert "EQ424" not in {finding.code for finding in units.findings}
    assert units.tied_for_first == ("b",)
    assert len(units.separated) == 1
    assert not both.separated
    with pytest.raises(ParameterError):
        leaderboard(unit_table(), resample="units", aggregate="borda")


def test_the_intervals_of_a_single_data_set_equal_those_of_its_evaluation() -> None:
    rows = [{**row, "score": float(expit(row["score"]))} for row in unit_table() if row["dataset"] == "x"]
    result = leaderboard(rows, config=CONFIG)
    assert result.resample == "units"
    assert result.tied_for_first == ("b",)
    by_model = {entry.model: entry.interval for entry in result.entries}
    for model, interval in by_model.items():
        scores = [row["score"] for row in rows if row["model"] == model]
        expected = result_from_values(model, range(len(scores)), {"score": scores}, config=CONFIG)["score"].interval
        assert interval.method == expected.method
        assert (interval.low, interval.high) == pytest.approx((expected.low, expected.high), abs=1e-12)


def test_printed_accuracies_give_the_possible_numbers_of_units() -> None:
    scores = {"a": {"x": "66.67"}, "b": {"x": "83.33"}}
    (dataset,) = leaderboard(scores, accuracy=True, config=CONFIG).to_dict()["datasets"]
    assert dataset["possible_n_units"][:3] == [6, 12, 18]
    (dataset,) = leaderboard(scores, config=CONFIG).to_dict()["datasets"]
    assert dataset["possible_n_units"] is None


def test_the_page_lists_the_possible_numbers_of_units_of_a_single_data_set() -> None:
    scores = {"a": {"x": "66.67"}, "b": {"x": "83.33"}}
    text = render_text(*leaderboard_view(leaderboard(scores, accuracy=True, config=CONFIG)).parts(verbose=True))
    assert "6, 12, 18, ..." in text
    assert "cannot be resampled" in text
    assert "6, 12" not in render_text(*leaderboard_view(leaderboard(scores, config=CONFIG)).parts(verbose=True))


def test_equal_scores_have_no_more_decimals_than_others() -> None:
    scores = {"a": {"x": 83.33, "y": 83.33}, "b": {"x": 66.67, "y": 66.67}}
    assert "[83.3, 83.3]" in str(leaderboard(scores, config=CONFIG))


def test_the_frame_has_one_row_per_model(mteb: LeaderboardAnalysis) -> None:
    pytest.importorskip("pandas")
    frame = mteb.to_frame()
    assert list(frame.index) == [entry.model for entry in mteb.entries]
    assert frame.loc["ST5-XXL", "rank_low"] == 1


def test_the_same_seed_gives_the_same_result(mteb: LeaderboardAnalysis) -> None:
    repeated = leaderboard(MTEB, missing="models", config=CONFIG)
    assert json.dumps(repeated.to_dict()) == json.dumps(mteb.to_dict())


def test_the_order_of_rows_does_not_change_the_statistics(mteb: LeaderboardAnalysis) -> None:
    reversed_models = leaderboard(MTEB, models=list(reversed(mteb.table.models)), missing="models", config=CONFIG)
    assert [entry.model for entry in reversed_models.entries] == [entry.model for entry in mteb.entries]
    ranks = [(entry.rank_low, entry.rank_high) for entry in mteb.entries]
    assert [(entry.rank_low, entry.rank_high) for entry in reversed_models.entries] == ranks


def test_the_report_has_the_verdict_the_tables_and_the_chart(tmp_path: Path, mteb: LeaderboardAnalysis) -> None:
    results, report_path = mteb.write(tmp_path / "out")
    report_html = report_path.read_text(encoding="utf-8")
    tree(report_html)
    assert mteb.verdict() in report_html
    assert 'data-chart="ranks"' in report_html
    assert json.loads(results.read_text())["verdict"] == mteb.verdict()


def test_names_are_escaped_in_the_report(tmp_path: Path) -> None:
    scores = {"<script>alert(1)</script>": {"x": 1.5, "y": 2.5}, "=cmd()": {"x": 1.0, "y": 2.0}}
    result = leaderboard(scores, config=CONFIG)
    result.report(tmp_path / "page.html")
    assert "<script>alert(1)" not in (tmp_path / "page.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        ({"table": {"a": {"x": 1.5}}}, InputError),
        ({"table": MIXED, "aggregate": "median"}, ParameterError),
        ({"table": MIXED, "resample": "rows"}, ParameterError),
        ({"table": MIXED, "resample": "units"}, ParameterError),
        ({"table": MIXED, "missing": "zero"}, ParameterError),
        ({"table": MIXED, "lower": ["CER"]}, UnknownNameError),
    ],
)
def test_wrong_options_are_errors_with_a_hint(options: dict, kind: type[EquipoiseError]) -> None:
    with pytest.raises(EquipoiseError) as error:
        leaderboard(**options)
    assert isinstance(error.value, kind)
    assert error.value.hint
