"""What results, comparisons and findings show of themselves in a notebook."""

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

NASTY = "<script>alert('x')</script>&"
ISSUE = Finding("EQ999", Severity.ISSUE, NASTY, "it is <wrong>", "mend it", ("a < b", "c"))
NOTE = Finding("EQ998", Severity.NOTE, "b", "it is so", "")


class Tables(HTMLParser):
    """Every table as rows of text; any tag that is not part of one is an error."""

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


def test_a_finding_is_a_table_of_one_row() -> None:
    (shown,) = Tables(ISSUE._repr_html_()).tables
    assert shown[1] == ["issue", "EQ999", NASTY, "it is <wrong>", "mend it", "a < b; c"]


def test_a_result_shows_direction_interval_chance_and_its_findings_below() -> None:
    result = evaluate(
        ranking(*range(1, 41)), ["MRR", "MR"], system=NASTY, config=StatsConfig(clusters=[u // 2 for u in range(40)])
    )
    page = Tables(replace(result, findings=(NOTE, ISSUE, NOTE))._repr_html_())
    figures, findings = page.tables
    assert page.captions[0].startswith(f"{NASTY}: 40 queries in 20 clusters. ")
    assert "Smaller is better: MR." in page.captions[0]
    assert [row[0] for row in figures] == ["metric", "MRR", "MR"]
    reach = result["MR"].interval
    assert figures[2][1:6] == ["20.5", f"[{reach.low:.1f}, {reach.high:.1f}]", "40", "0", "25.5"]
    assert [row[1] for row in findings[1:]] == ["EQ999", "EQ998"]


def test_a_result_without_findings_is_one_table() -> None:
    result = replace(evaluate(ranking(1, 2, 3), ["MRR"]), findings=())
    assert len(Tables(result._repr_html_()).tables) == 1


def test_a_comparison_shows_bands_intervals_and_differences_best_first() -> None:
    rng = np.random.default_rng(1)
    low, high = (ranking(*rng.integers(1, most, 60).tolist()) for most in (4, 40))
    comparison = compare(
        {NASTY: high, "low": low}, ["MR", "HR@3"], config=StatsConfig(n_resamples=200, n_permutations=200)
    )
    page = Tables(replace(comparison, findings=(ISSUE,))._repr_html_())
    systems, others, findings = page.tables
    assert systems[0][:4] == ["band", "system", "MR", "95 % interval"]
    assert [row[0] for row in others] == ["metric", "HR@3", ""]
    assert [row[:2] for row in systems[1:]] == [["a", "low"], ["b", NASTY]]
    seen = comparison.contrast(NASTY, "low")
    assert systems[2][4] == f"+{seen.difference:.2f}"
    assert systems[2][7] == f"{seen.wins}/{seen.ties}/{seen.losses}"
    assert "paired randomisation test, two-sided; one pair on MR" in "".join(page.captions)
    assert len(findings) == 2


def test_bands_on_a_metric_are_made_from_its_own_contrasts() -> None:
    rng = np.random.default_rng(2)
    systems = {
        name: ranking(*rng.integers(1, most, 80).tolist()) for name, most in zip("abc", (4, 12, 40), strict=True)
    }
    comparison = compare(systems, ["MRR", "HR@1"], config=StatsConfig(n_resamples=200, n_permutations=500))
    other = compare(systems, ["MRR", "HR@1"], primary="HR@1", config=StatsConfig(n_resamples=200, n_permutations=500))
    assert comparison.bands_on("HR@1") == other.bands
    assert comparison.bands_on("MRR") == comparison.bands


def test_a_stored_run_shows_its_result(tmp_path: Path) -> None:
    result = evaluate(ranking(1, 2, 3), ["MRR"], system="a")
    run = load_run(save_run(tmp_path / "a", result, manifest=Manifest("a")))
    assert run._repr_html_() == run.result._repr_html_()
    assert "a: 3 queries" in run._repr_html_()
