"""The short answer at the start of the output of every comparison."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from math import nan
from pathlib import Path

import numpy as np
import pytest

from equipoise.checks.base import run_checks
from equipoise.config import StatsConfig
from equipoise.evidence.ranking import Ranking
from equipoise.report.answer import (
    MAX_ROWS,
    METRIC_RANK,
    AnswerOptions,
    comparison_answer,
    finding_lines,
    single_answer,
)
from equipoise.report.export.tables import format_parts
from equipoise.report.tables import cost_report_columns
from equipoise.report.terminal import ReportColumn, console
from equipoise.runs.compare import compare
from equipoise.stats.comparison import Comparison
from equipoise.stats.estimate import result_from_values
from equipoise.stats.formatting import ScoreFormat
from equipoise.stats.pairing import compare_results
from equipoise.stats.verdict import UNIT_NOUN, Vocabulary
from equipoise.types import Finding, Severity

QUICK = StatsConfig(n_resamples=200, n_permutations=499)
QUESTIONS = Vocabulary("question", "model", "accuracy", percent=True)


def printed(parts: list[object], width: int = 100) -> str:
    """The parts printed on a terminal of this width."""
    stream = io.StringIO()
    console(stream, width).print(*parts, sep="\n", crop=False)
    return stream.getvalue()


def compare_models(hit_rates: dict[str, float], n: int = 200, seed: int = 0) -> Comparison:
    """Models that answer these fractions of the questions correctly, independently of each other."""
    rng = np.random.default_rng(seed)
    results = [
        result_from_values(
            name,
            range(n),
            {"accuracy": rng.random(n) < hit_rate},
            chance={"accuracy": 0.07},
            settings={UNIT_NOUN: "question"},
        )
        for name, hit_rate in hit_rates.items()
    ]
    return compare_results(results, config=QUICK)


def test_the_headline_has_the_best_model_the_difference_and_p() -> None:
    answer = comparison_answer(compare_models({"good": 0.9, "bad": 0.3}), AnswerOptions(QUESTIONS))
    assert answer.headline.startswith("good is the best of 2 models on 200 questions: its accuracy is ")
    assert " points, p < 0.001)" in answer.headline
    assert answer.columns[0].cells == ["1", "2"]


def test_tied_models_are_listed_and_the_sample_size_is_stated() -> None:
    comparison = compare_models({"a": 0.66, "b": 0.6, "c": 0.1}, seed=3)
    answer = comparison_answer(comparison, AnswerOptions(QUESTIONS))
    first, second, third = comparison.order
    assert answer.headline.startswith(f"Inconclusive: {first} has the highest accuracy on 200 questions")
    assert answer.headline.endswith(f"but {second} is not significantly worse.")
    statuses = next(column for column in answer.columns if column.head == "vs. best").cells
    assert dict(zip(comparison.order, statuses, strict=True)) == {first: "", second: "tied", third: "worse"}
    assert any(" questions would distinguish " in note for note in answer.notes)


def test_percent_and_fractions_are_not_mixed() -> None:
    comparison = compare_models({"a": 0.62, "b": 0.6})
    percent = printed(comparison_answer(comparison, AnswerOptions(QUESTIONS)).parts())
    assert "0.6" not in percent
    assert "Random" not in percent
    assert "A random baseline scores 7 %." in percent
    fractions = printed(comparison_answer(comparison, AnswerOptions(Vocabulary("question"))).parts())
    assert "A random baseline scores 0.07" in fractions
    assert "points" not in fractions


def test_units_are_called_by_their_noun() -> None:
    ranking = {
        name: Ranking.from_ranks(ranks, candidates=50) for name, ranks in (("x", [1, 2, 9] * 9), ("y", [2, 1, 9] * 9))
    }
    comparison = compare(ranking, "MRR", config=QUICK)
    assert comparison.words.unit == "query"
    text = printed(comparison_answer(comparison, AnswerOptions(comparison.words)).parts())
    assert "27 queries" in text
    assert "unit" not in text


def test_a_finding_states_the_missing_scores() -> None:
    values = {"x": [1, 0, 1, nan], "y": [1, nan, 0, 1], "z": [1, 1, 1, 1]}
    results = [result_from_values(name, range(4), {"accuracy": column}) for name, column in values.items()]
    comparison = compare_results(results, config=QUICK)
    assert (comparison.n_scored, comparison.scores["x"]) == (2, 1.0)
    answer = comparison_answer(comparison, AnswerOptions(comparison.words))
    assert "on 2 units (1.00)" in answer.headline
    assert answer.columns[2].cells == ["1.00", "1.00", "0.50"]
    (finding,) = (finding for finding in run_checks(comparison) if finding.code == "EQ208")
    assert finding.message == "missing values of Acc: 1 (x), 1 (y) of 4, so all systems are compared on 2 units"


def test_metrics_that_prefer_another_system_are_named() -> None:
    rng = np.random.default_rng(0)
    values = {"a": {"x": rng.random(80), "y": rng.random(80), "z": rng.random(80)}}
    values["b"] = {
        "x": values["a"]["x"] - 0.3,
        "y": values["a"]["y"] + 0.2,
        "z": values["a"]["z"] + 0.01 * rng.normal(size=80),
    }
    results = [result_from_values(name, range(80), columns, bounds=(-1.0, 2.0)) for name, columns in values.items()]
    comparison = compare_results(results, config=QUICK)
    notes = comparison_answer(comparison, AnswerOptions(comparison.words)).notes
    assert comparison.leader == "a"
    assert "By y, b is significantly better than a." in notes


@pytest.mark.parametrize("significant", [False, True])
def test_uninformative_setups_have_no_sample_size_unless_pairs_differ(significant: bool) -> None:
    comparison = compare_models({"a": 0.08, "b": 0.07})
    if significant:
        (pair,) = comparison.contrasts
        comparison = replace(comparison, contrasts=(replace(pair, adjusted=0.01, difference=0.2),))
    answer = comparison_answer(comparison, AnswerOptions(QUESTIONS))
    assert answer.headline.startswith("No model is significantly better than chance")
    assert any("question" in note for note in answer.notes) == significant


def test_results_of_different_kinds_have_no_common_noun() -> None:
    first, second = (
        result_from_values(name, range(9), {"m": np.arange(9.0) / 9}, settings={UNIT_NOUN: noun})
        for name, noun in (("a", "node"), ("b", "case"))
    )
    assert compare_results([first, second], config=QUICK).words.unit == "unit"


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_the_least_important_columns_are_dropped_first(width: int) -> None:
    comparison = compare_models({"a-model-with-a-long-name": 0.62, "b": 0.6})
    columns = (ReportColumn("chunks", ["100/20 top 8"] * 2, rank=4), ReportColumn("size", ["384 dims"] * 2, rank=5))
    answer = comparison_answer(comparison, AnswerOptions(QUESTIONS, columns=columns))
    table = printed(answer.parts(quiet=True), width)
    assert max(map(len, table.splitlines())) <= width
    header = table.splitlines()[0]
    assert "accuracy" in header
    assert ("size" in header) <= ("chunks" in header) <= ("95 % interval" in header)


def test_findings_of_one_code_are_printed_once_with_a_count() -> None:
    title = "the number of candidates is unknown"
    many = [Finding("EQ110", Severity.NOTE, name, "the corpus size is unknown", "", title=title) for name in "abc"]
    issue = Finding("EQ302", Severity.ISSUE, "b", "is at chance " * 20, "hint")
    first, *rest = printed(finding_lines([*many, issue]), 80).splitlines()
    assert first.startswith("! EQ302  b: is at chance")
    assert rest[-1] == "- EQ110  the number of candidates is unknown (a, b, c)"
    with_other_message = printed(finding_lines([*many, replace(many[0], message="another metric")]), 80)
    assert with_other_message.strip() == rest[-1]
    of_metrics = [replace(many[0], title=f"{metric} at its ceiling") for metric in ("MRR", "HR@1")]
    assert printed(finding_lines(of_metrics)).strip() == "- EQ110  MRR at its ceiling (a) (and 1 similar finding)"
    issues = [replace(finding, severity=Severity.ISSUE) for finding in many]
    assert printed(finding_lines(issues)).strip() == "! EQ110  a: the corpus size is unknown (and 2 similar findings)"


def test_other_metrics_are_left_out_before_names_are_shortened_and_costs_after_them() -> None:
    name = "a-model-with-quite-a-long-name"
    comparison = compare_models({name: 0.6, "b": 0.5})
    metric = ReportColumn("MRR", ["0.5", "0.4"], right=True, rank=METRIC_RANK)
    costs = cost_report_columns(comparison.order, {name: {"documents_per_second": 9.0}, "b": {}})
    table = printed(comparison_answer(comparison, AnswerOptions(QUESTIONS, columns=(metric, *costs))).parts(), 85)
    assert name in table
    assert "s/1k texts" in table
    assert "MRR" not in table


def test_further_codes_are_listed_without_messages() -> None:
    findings = [Finding(f"EQ90{number}", Severity.TIP, "a", "x", "") for number in range(7)]
    findings.append(Finding("EQ304", Severity.TIP, "a, b", "an n of about 9", ""))
    lines = printed(finding_lines(findings)).splitlines()
    assert len(lines) == 5
    assert lines[-1].strip() == "and EQ904, EQ905, EQ906"


def test_quiet_has_no_notes_and_verbose_no_findings() -> None:
    answer = comparison_answer(
        compare_models({"a": 0.62, "b": 0.6}), AnswerOptions(QUESTIONS, details="Details: add -v.")
    )
    answer = replace(answer, findings=(Finding("EQ1", Severity.ISSUE, "a", "is wrong", ""),))
    assert printed(answer.parts()).startswith(printed(answer.parts(quiet=True)))
    assert len(printed(answer.parts(quiet=True)).splitlines()) == 6
    assert "EQ1" in printed(answer.parts())
    assert "Details" in printed(answer.parts())
    assert "EQ1" not in printed(answer.parts(verbose=True))


def test_one_model_gets_the_hint_to_add_a_baseline() -> None:
    comparison = compare_models({"bm25:": 0.6, "b": 0.6})
    answer = single_answer("bm25:", comparison.estimates["bm25:"][comparison.primary], AnswerOptions(QUESTIONS))
    assert answer.headline.startswith("bm25: accuracy ")
    assert "add a baseline" in answer.headline


def test_costs_are_columns_and_unknown_ones_are_dashes() -> None:
    columns = cost_report_columns(
        ["a", "b"], {"a": {"dims": 384.0, "documents_per_second": 500.0}, "b": {"dims": None}}
    )
    assert [(column.head, list(column.cells)) for column in columns] == [
        ("s/1k texts", ["2", "-"]),
        ("dims", ["384", "-"]),
    ]


def test_costs_of_systems_that_embed_chunks_are_per_chunk() -> None:
    costs = {"a": {"documents_per_second": 500.0, "price": 2.0, "chunks": 40.0}, "b": {"documents_per_second": 50.0}}
    assert [column.head for column in cost_report_columns(["a", "b"], costs)] == [
        "$/M chunks",
        "s/1k chunks",
    ]


def test_percent_has_as_many_digits_as_the_interval_supports() -> None:
    from equipoise.stats.intervals import Interval

    few, many = Interval(0.5, 0.7), Interval(0.600, 0.602)
    assert ScoreFormat.of([few], percent=True).value(0.6123) == "61 %"
    assert ScoreFormat.of([many], percent=True).value(0.6123) == "61.2 %"
    assert ScoreFormat.of([few], percent=True).interval(few) == "50-70 %"


def test_a_comparison_writes_its_page_and_its_chart(tmp_path: Path) -> None:
    comparison = compare_models({"a": 0.9, "b": 0.6, "c": 0.3})
    page = comparison.report(tmp_path / "report.html").read_text(encoding="utf-8")
    assert all(f">{name}<" in page for name in "abc")
    assert "is the best of 3" in page
    chart = comparison.plot()
    assert len(chart.spec["data"]["values"]) == 3
    assert set(chart._repr_mimebundle_()) == {"application/vnd.vegalite.v6+json", "text/plain"}


def test_csv_has_unrounded_numbers_in_separate_columns() -> None:
    comparison = compare_models({"a": 0.9, "b": 0.88, "c": 0.3})
    text_column = ReportColumn("chunks", ["4,609", "n/a (one seed)", "-"], right=True)
    answer = comparison_answer(comparison, AnswerOptions(QUESTIONS, columns=(text_column,)))
    rows = list(csv.DictReader(io.StringIO(format_parts(answer.parts(), "csv"))))
    assert [row["model"] for row in rows] == list(comparison.order)
    assert [row["chunks"] for row in rows] == ["4609", "", ""]
    for row in rows:
        estimate = comparison.estimates[row["model"]][comparison.primary]
        assert float(row["accuracy"]) == estimate.value
        assert (float(row["low"]), float(row["high"])) == (estimate.interval.low, estimate.interval.high)
        assert (int(row["rank_low"]), int(row["rank_high"])) == comparison.ranks[row["model"]]
        tied = row["model"] in (comparison.leader, *comparison.tied_with_leader)
        assert bool(int(row["significantly_worse"])) is not tied


def test_a_terminal_shows_the_first_systems_and_counts_the_others() -> None:
    names = [f"model{number:02}" for number in range(MAX_ROWS + 4)]
    answer = comparison_answer(compare_models(dict.fromkeys(names, 0.5)), AnswerOptions(QUESTIONS))
    table = printed(answer.parts(quiet=True)).split("vs. best")[1]
    assert table.count("model") == MAX_ROWS
    assert "\n4 more: add -v.\n" in table
    assert " more: " not in printed(answer.parts(verbose=True))
    assert len(format_parts(answer.parts(), "csv").splitlines()) == 1 + len(names)
