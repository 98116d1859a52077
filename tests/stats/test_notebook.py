"""HTML of results, comparisons and findings in a notebook."""

from __future__ import annotations

from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np

from equipoise.config import StatsConfig
from equipoise.evidence.ranking import Ranking
from equipoise.runs.compare import compare
from equipoise.runs.evaluate import evaluate
from equipoise.runs.manifest import Manifest
from equipoise.runs.run_folder import load_run, save_run
from equipoise.types import Finding, Severity

HTML_NAME = "<script>alert('x')</script>&"
ISSUE = Finding("EQ999", Severity.ISSUE, HTML_NAME, "it is <wrong>", "mend it", ("a < b", "c"))
NOTE = Finding("EQ998", Severity.NOTE, "b", "it is so", "")


class Tables(HTMLParser):
    """Every table as rows of text; any tag outside of a table is an error."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tables: list[list[list[str]]] = []
        self.captions: list[str] = []
        self._in_caption = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        assert tag in ("table", "caption", "tr", "th", "td")
        self._in_caption = tag == "caption"
        if tag == "table":
            self.tables.append([])
        if tag == "tr":
            self.tables[-1].append([])
        if tag in ("th", "td"):
            self.tables[-1][-1].append("")

    def handle_data(self, data: str) -> None:
        if self._in_caption:
            self.captions.append(data)
        else:
            self.tables[-1][-1][-1] += data


def ranking(*ranks: int) -> Ranking:
    return Ranking.from_ranks(list(ranks), candidates=50)


def test_findings_are_tables_of_one_row() -> None:
    (table,) = Tables(ISSUE._repr_html_()).tables
    assert table[1] == ["issue", "EQ999", HTML_NAME, "it is <wrong>", "mend it", "a < b; c"]


def test_results_show_direction_interval_chance_and_findings() -> None:
    result = evaluate(
        ranking(*range(1, 41)),
        ["MRR", "MR"],
        system=HTML_NAME,
        config=StatsConfig(clusters=[unit // 2 for unit in range(40)]),
    )
    page = Tables(replace(result, findings=(NOTE, ISSUE, NOTE))._repr_html_())
    estimates, findings = page.tables
    assert page.captions[0].startswith(f"{HTML_NAME}: 40 queries in 20 clusters. ")
    assert "Smaller is better: MR." in page.captions[0]
    assert [row[0] for row in estimates] == ["metric", "MRR", "MR"]
    interval = result["MR"].interval
    assert estimates[2][1:6] == ["20.5", f"[{interval.low:.1f}, {interval.high:.1f}]", "40", "0", "25.5"]
    assert [row[1] for row in findings[1:]] == ["EQ999", "EQ998"]


def test_results_without_findings_are_one_table() -> None:
    result = replace(evaluate(ranking(1, 2, 3), ["MRR"]), findings=())
    assert len(Tables(result._repr_html_()).tables) == 1


def test_comparisons_show_bands_intervals_and_differences_best_first() -> None:
    rng = np.random.default_rng(1)
    low, high = (ranking(*rng.integers(1, max_rank, 60).tolist()) for max_rank in (4, 40))
    comparison = compare(
        {HTML_NAME: high, "low": low}, ["MR", "HR@3"], config=StatsConfig(n_resamples=200, n_permutations=200)
    )
    page = Tables(replace(comparison, findings=(ISSUE,))._repr_html_())
    systems, other_metrics, findings = page.tables
    assert systems[0][:4] == ["band", "system", "MR", "95 % interval"]
    assert [row[0] for row in other_metrics] == ["metric", "HR@3", ""]
    assert [row[:2] for row in systems[1:]] == [["a", "low"], ["b", HTML_NAME]]
    contrast = comparison.contrast(HTML_NAME, "low")
    assert systems[2][4] == f"+{contrast.difference:.2f}"
    assert systems[2][7] == f"{contrast.wins}/{contrast.ties}/{contrast.losses}"
    assert "paired randomisation test, two-sided; one pair on MR" in "".join(page.captions)
    assert len(findings) == 2


def test_bands_on_a_metric_use_the_contrasts_of_that_metric() -> None:
    rng = np.random.default_rng(2)
    systems = {
        name: ranking(*rng.integers(1, max_rank, 80).tolist())
        for name, max_rank in zip("abc", (4, 12, 40), strict=True)
    }
    comparison = compare(systems, ["MRR", "HR@1"], config=StatsConfig(n_resamples=200, n_permutations=500))
    other = compare(systems, ["MRR", "HR@1"], primary="HR@1", config=StatsConfig(n_resamples=200, n_permutations=500))
    assert comparison.bands_on("HR@1") == other.bands
    assert comparison.bands_on("MRR") == comparison.bands


def test_stored_runs_have_the_html_of_their_result(tmp_path: Path) -> None:
    result = evaluate(ranking(1, 2, 3), ["MRR"], system="a")
    run = load_run(save_run(tmp_path / "a", result, manifest=Manifest("a")))
    assert run._repr_html_() == run.result._repr_html_()
    assert "a: 3 queries" in run._repr_html_()
