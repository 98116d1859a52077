"""The HTML report: its content and order, and that data are neither executed nor fetched."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from math import nan
from pathlib import Path

import numpy as np
import pytest

from equipoise.report.build_view import build_view, compare_runs
from equipoise.report.html.render import render_html
from equipoise.report.pairwise import pairwise_claims
from equipoise.report.terminal import ReportColumn
from equipoise.report.view import RunsView, Section
from equipoise.runs.manifest import Status
from equipoise.runs.run_folder import load_run
from equipoise.runs.unit_table import RetrievedItem, UnitContent
from equipoise.stats.intervals import Interval
from equipoise.stats.result import Estimate
from equipoise.types import Direction, Finding, Severity, install_command
from html_tree import Node, tree
from stored_runs import bread_runs, ranks, synthetic_runs

ORDER = [
    "verdict",
    "findings",
    "leaderboard",
    "costs",
    "pairwise",
    "slices",
    "units",
    "distributions",
    "tuning",
    "protocol",
    "downloads",
]
HOSTILE = "</script><script>alert('x')</script><img src=x onerror=alert(1)>&amp;\"'\u2028{{ 7 * 7 }}"


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> RunsView:
    runs = bread_runs(tmp_path_factory.mktemp("bread"))
    return build_view(runs, compare_runs(runs))


@pytest.fixture(scope="module")
def text(report: RunsView) -> str:
    return render_html(report)


@pytest.fixture(scope="module")
def document(text: str) -> Node:
    return tree(text)


def section_ids(document: Node) -> list[str]:
    return [node.attributes["id"] for node in document.all("section")]


def page_data(document: Node) -> dict[str, object]:
    content: dict[str, object] = json.loads(document.one("script", type="application/json").raw)
    return content


def test_sections_have_a_fixed_order(document: Node) -> None:
    assert section_ids(document) == ORDER
    links = [node.attributes["href"] for node in document.one("nav").all("a")]
    assert links == [f"#{name}" for name in ORDER]


def with_findings(report: RunsView, findings: Sequence[Finding]) -> RunsView:
    return replace(report, answer=replace(report.answer, findings=tuple(findings)))


def test_without_findings_their_section_is_at_the_end(report: RunsView) -> None:
    ids = section_ids(tree(render_html(with_findings(report, ()), charts=False)))
    assert ids[0] == "verdict"
    assert ids.index("findings") > ids.index("tuning")


def test_many_findings_are_folded_except_issues(report: RunsView) -> None:
    findings = [
        replace(report.answer.findings[0], code=f"EQ30{n}", severity=severity) for n, severity in enumerate(Severity)
    ]
    page = tree(render_html(with_findings(report, findings), charts=False))
    folds = page.one("section", id="findings").all("details", class_="finding")
    assert ["open" in fold.attributes for fold in folds] == [True, False, False]


def test_the_verdict_is_complete(report: RunsView, document: Node) -> None:
    assert document.one("p", class_="verdict").text == report.answer.headline


def test_every_value_of_the_leaderboard_is_in_its_row(report: RunsView, document: Node) -> None:
    table = document.one("section", id="leaderboard").all("table")[0]
    rows = table.one("tbody").all("tr")
    assert len(rows) == len(report.leaderboard.rows)
    for row, html_row in zip(report.leaderboard.rows, rows, strict=True):
        assert row.system in html_row.one("th").text
        cells = [cell.text for cell in html_row.all("td")]
        bands = "".join(row.tie_groups)
        assert cells[1:] == [row.score.text, row.score.interval_text, row.chance_text, row.rank, bands]
    assert "No missing values." in document.one("section", id="leaderboard").text


def test_every_parameter_that_differs_and_every_cost_is_in_its_row(report: RunsView, document: Node) -> None:
    columns = report.parameters + report.costs
    table = document.one("section", id="costs").one("table")
    for index, (row, html_row) in enumerate(zip(report.leaderboard.rows, table.one("tbody").all("tr"), strict=True)):
        cells = [cell.text for cell in html_row.all("td")]
        assert cells == [row.score.text, *(column.texts[index] or "–" for column in columns)]


def test_the_leaderboard_has_columns_for_known_values_only(tmp_path: Path) -> None:
    values = 1 / ranks(2, 30)
    values[1, 3] = np.nan
    runs = synthetic_runs(tmp_path, ["a", "b"], {"MRR": values})
    document = tree(render_html(build_view(runs, compare_runs(runs), exports=False), charts=False))
    leaderboard = document.one("section", id="leaderboard")
    headers = [header.text for header in leaderboard.all("th", scope="col")]
    assert "Undefined" in headers
    assert "Chance" not in headers
    assert "chance level of MRR is n/a" in leaderboard.text


def test_leaderboards_of_other_metrics_have_their_own_order_and_ranks(tmp_path: Path) -> None:
    values = np.linspace(0.1, 0.9, 40)
    runs = synthetic_runs(
        tmp_path, ["a", "b"], {"MRR": np.array([values, values / 2]), "MAP": np.array([values / 2, values])}
    )
    report = build_view(runs, compare_runs(runs, primary="MRR"), exports=False)
    primary, other = tree(render_html(report, charts=False)).one("section", id="leaderboard").all("table")[:2]
    for table, order in ((primary, ["a", "b"]), (other, ["b", "a"])):
        rows = table.one("tbody").all("tr")
        assert [row.one("bdi").text for row in rows] == order
        assert [[cell.text for cell in row.all("td")][-2] for row in rows] == ["1", "2"]
        assert "tied with the best" in table.one("caption").text
    assert "Systems in the same tie band" in report.leaderboards[1].caption
    assert "Differences" not in report.leaderboards[1].caption


def test_tie_groups_have_every_system_once(report: RunsView, document: Node) -> None:
    systems_by_group = {
        group.one("dt").text: [badge.text for badge in group.all("bdi", class_="name")]
        for group in document.one("dl", class_="tie-groups").all("div")
    }
    assert systems_by_group == {"Best, or tied with the best": ["tfidf", "bm25"], "Worse than the best": ["hash"]}


def test_intervals_are_drawn_at_their_values(report: RunsView, document: Node) -> None:
    scale = report.leaderboard.scale
    table = document.one("section", id="leaderboard").all("table")[0]
    for row, html_row in zip(report.leaderboard.rows, table.one("tbody").all("tr"), strict=True):
        drawing = html_row.one("svg")
        base = drawing.one("line", class_="base").attributes
        start, end = float(base["x1"]), float(base["x2"])

        def x_position(value: float | None, start: float = start, end: float = end) -> float:
            assert value is not None
            return start + (value - scale.low) / (scale.high - scale.low) * (end - start)

        (mark,) = [node for node in drawing.walk() if "point" in node.attributes.get("class", "").split()]
        mark_position = mark.attributes.get("cx") or mark.attributes["d"][1:].split()[0]
        assert float(mark_position) == pytest.approx(x_position(row.score.number), abs=0.06)
        is_worse = not set(row.tie_groups) & set(report.leaderboard.rows[0].tie_groups)
        assert mark.tag == ("path" if is_worse else "circle")
        chance = drawing.one("line", class_="chance").attributes
        assert float(chance["x1"]) == pytest.approx(x_position(row.chance), abs=0.06)
        interval_ends = [
            float(number)
            for number in re.findall(r"M([\d.]+) 6V16", drawing.one("path", class_="interval").attributes["d"])
        ]
        assert interval_ends == pytest.approx([x_position(row.score.low), x_position(row.score.high)], abs=0.06)


def test_every_pair_and_every_cell_of_the_matrix_is_shown(report: RunsView, document: Node) -> None:
    assert report.pairwise is not None
    section = document.one("section", id="pairwise")
    for pair, row in zip(report.pairwise.rows, section.all("table")[0].one("tbody").all("tr"), strict=True):
        cells = [cell.text for cell in row.all("td")]
        assert cells[2:5] == [pair.difference.text, pair.difference.interval_text, pair.p_adjusted]
        letters = {system.name: system.letter for system in report.systems}
        assert cells[5] == (f"{letters[pair.winner]}{pair.winner}" if pair.winner else "not significant")
    matrix_rows = [row.all("td") for row in section.one("table", class_="matrix").one("tbody").all("tr")]
    for cells, matrix in zip(matrix_rows, report.pairwise.matrix, strict=True):
        for node, cell in zip(cells, matrix, strict=True):
            assert node.text == ("·" if cell is None else cell.text + (" ≠" if cell.significant else ""))


def test_slices_tunings_and_findings_are_complete(report: RunsView, document: Node) -> None:
    assert report.slices is not None
    slice_cells = [cell.text for cell in document.one("section", id="slices").all("td")]
    for slice_row in report.slices.rows:
        for cell in slice_row.cells:
            assert f"{cell.text}{cell.note}" in slice_cells
    tuning = document.one("section", id="tuning").text
    for tuned in report.tuning:
        assert all(trial.text in tuning for trial in tuned.trials)
        assert all(fold.chosen in tuning for fold in tuned.folds)
    findings = document.one("section", id="findings")
    assert {node.one("code").text for node in findings.all("h3")} == {item.code for item in report.answer.findings}
    for finding in report.answer.findings:
        assert finding.hint[1:] in findings.text
        assert finding.message in findings.text


def test_differences_are_marked_in_the_protocol(report: RunsView, document: Node) -> None:
    marked_rows = [row.one("th").text for row in document.one("section", id="protocol").all("tr", class_="differs")]
    different_facts = [
        f"{fact.name} differs" for group in report.protocol.groups for fact in group.entries if fact.differs
    ]
    assert marked_rows == different_facts == ["model differs"]


def test_downloads_are_complete(report: RunsView, document: Node) -> None:
    for download in report.downloads:
        # A parser drops the first line break after the tag, so the template adds one.
        assert document.one("pre", id=f"text-{download.name}").raw == f"\n{download.text}"


def test_the_units_are_in_the_data_of_the_page(report: RunsView, document: Node) -> None:
    assert report.explorer is not None
    data = page_data(document)
    assert data["units"] == list(report.explorer.units)
    assert data["texts"] == list(report.explorer.texts)
    for name in ("columns", "slices", "details"):
        assert data[name] == getattr(report.explorer, name)
    assert data["items"] == [list(item) for item in report.explorer.items]


def test_a_single_run_has_a_page_without_comparison(tmp_path: Path) -> None:
    document = tree(render_html(build_view(bread_runs(tmp_path, tuned=False)[:1])))
    assert section_ids(document) == [name for name in ORDER if name not in ("pairwise", "tuning")]
    headers = [header.text for header in document.one("section", id="leaderboard").all("th", scope="col")]
    assert "Band" not in headers


def test_a_partial_run_has_a_banner_and_a_mark(tmp_path: Path) -> None:
    synthetic_runs(tmp_path, ["a", "b"], {"MRR": 1 / ranks(2, 30)}, status=Status.PARTIAL, reason="interrupted")
    runs = [load_run(tmp_path / f"run{index}") for index in (0, 1)]
    document = tree(render_html(build_view(runs, compare_runs(runs), exports=False), charts=False))
    banners = [node.text for node in document.one("main").all("p", class_="caution")]
    assert sorted(banners) == [
        "Not complete: the run of a is partial: interrupted.",
        "Not complete: the run of b is partial: interrupted.",
    ]
    assert len(document.one("section", id="leaderboard").all("abbr", class_="mark")) == 2


def test_a_row_is_about_its_system_with_and_without_a_mark(tmp_path: Path) -> None:
    """An asterisk may mark an incomplete run, or belong to the name."""
    runs = synthetic_runs(tmp_path, ["a", "b*"], {"MRR": 1 / ranks(2, 30)})
    section = Section.of_table("Texts", [ReportColumn("system", ["a", "a*", "b*", "c"])])
    view = replace(build_view(runs, compare_runs(runs), exports=False), sections=(section,))
    table = tree(render_html(view, charts=False)).one("section", id="details").one("table")
    rows = [row.attributes.get("data-systems") for row in table.one("tbody").all("tr")]
    assert rows == ["0", "0", "1", None]


def test_markup_in_data_is_shown_and_never_executed(tmp_path: Path) -> None:
    names = [f"{HOSTILE}{index}" for index in range(2)]
    hit = RetrievedItem(HOSTILE, HOSTILE, 0.5, True, HOSTILE)
    units: list[str | int] = [f"{HOSTILE}-{index}" for index in range(30)]
    details: dict[str | int, UnitContent] = {
        unit: UnitContent(HOSTILE, (HOSTILE,), {HOSTILE: f"{HOSTILE}{index % 2}"}, (hit,))
        for index, unit in enumerate(units)
    }
    runs = synthetic_runs(
        tmp_path,
        names,
        {"MRR": 1 / ranks(2, 30)},
        units=units,
        details=details,
        parameters={HOSTILE: HOSTILE},
        datasets={HOSTILE: HOSTILE},
        cost={HOSTILE: 1.0},
        command=(HOSTILE,),
    )
    text = render_html(build_view(runs, compare_runs(runs)))
    document = tree(text)
    assert [node.attributes.get("type") for node in document.all("script")] == ["application/json", None]
    assert document.all("img") == []
    assert "49" not in document.one("h1").text
    data = page_data(document)
    assert data["units"] == units
    assert HOSTILE in data["texts"]  # type: ignore[operator]
    leaderboard_text = document.one("section", id="leaderboard").text
    assert all(" ".join(name.split()) in leaderboard_text for name in names)
    assert "\u2028" not in document.one("script", type="application/json").raw
    for node in document.walk():
        assert not [name for name in node.attributes if name.startswith("on")]


def test_the_page_fetches_nothing(document: Node) -> None:
    for node in document.walk():
        assert "src" not in node.attributes
        assert node.tag not in {"iframe", "object", "embed", "base", "form"}
        address = node.attributes.get("href", "#")
        assert address.startswith("#") or address == "data:,"
        for name, value in node.attributes.items():
            assert name == "xmlns" or not re.search(r"https?:|url\((?!#)|^//", value), (node.tag, name, value)
    for style in document.all("style"):
        assert not re.search(r"@import|url\(|https?:", style.raw)


def test_the_policy_allows_only_the_style_and_the_script_of_the_page(document: Node) -> None:
    policy = document.one("meta", **{"http-equiv": "Content-Security-Policy"}).attributes["content"]
    directives = dict(directive.strip().split(" ", 1) for directive in policy.split(";"))
    assert directives["default-src"] == "'none'"
    (script,) = [node for node in document.all("script") if "type" not in node.attributes]
    for kind, node in (("style-src", document.one("style")), ("script-src", script)):
        digest = base64.b64encode(hashlib.sha256(node.raw.encode()).digest()).decode()
        assert directives[kind] == f"'sha256-{digest}'"
    # The policy ignores style attributes, so none may be used.
    assert not [node.tag for node in document.walk() if "style" in node.attributes]


def test_the_script_never_turns_text_into_markup(document: Node) -> None:
    (script,) = [node for node in document.all("script") if "type" not in node.attributes]
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|Function\(", script.raw)
    assert not re.search(r"fetch\(|XMLHttpRequest|WebSocket|import\(", script.raw)


def test_the_page_is_accessible(document: Node) -> None:
    assert len(document.all("h1")) == 1
    ids = Counter(node.attributes["id"] for node in document.walk() if "id" in node.attributes)
    assert not [name for name, count in ids.items() if count > 1]
    for section in document.all("section"):
        assert section.attributes["aria-labelledby"] in ids
    skip = document.one("a", class_="skip").attributes["href"]
    assert skip.removeprefix("#") in ids
    for table in document.all("table"):
        assert table.one("caption").text
        assert all(header.attributes.get("scope") in ("col", "row", "rowgroup") for header in table.all("th"))
    for region in document.all("div", class_="wide"):
        assert region.attributes["tabindex"] == "0"
        assert region.attributes["aria-label"]
    for drawing in document.all("svg"):
        hidden = drawing.attributes.get("aria-hidden") == "true"
        assert hidden or drawing.attributes.get("aria-label")
    assert document.one("html").attributes["lang"] == "en"


def test_the_same_runs_give_the_same_bytes(tmp_path: Path, report: RunsView, text: str) -> None:
    assert render_html(report) == text
    runs = bread_runs(tmp_path, tuned=False)
    pages = [
        render_html(build_view(stored_runs, compare_runs(stored_runs)), charts=False)
        for stored_runs in (runs, [load_run(run.path) for run in runs])
    ]
    assert pages[0] == pages[1]


@pytest.mark.slow
def test_three_systems_on_a_thousand_units_stay_below_two_megabytes(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    letters = np.array(list("abcdefghij klmnopqrstuvwxyz äöüß"))
    blocks = ["".join(row) for row in letters[rng.integers(0, len(letters), (10_000, 200))]]
    details: dict[str | int, UnitContent] = {
        f"q{unit}": UnitContent(
            f"question {unit}",
            (blocks[unit],),
            {"kind": f"kind {unit % 5}"},
            tuple(RetrievedItem(f"d{unit * 10 + rank}", blocks[unit * 10 + rank] * 2, 0.1) for rank in range(10)),
        )
        for unit in range(1000)
    }
    unit_ranks = ranks(3, 1000)
    values = {"MRR": 1 / unit_ranks, **{f"HR@{k}": unit_ranks <= k for k in (1, 5, 10)}}
    runs = synthetic_runs(tmp_path, ["a", "b", "c"], values, details=details)
    report = build_view(runs, compare_runs(runs))
    assert report.explorer is not None
    assert len(report.explorer.units) == 1000
    assert "Texts are truncated to" in report.explorer.note
    assert len(render_html(report).encode()) < 2_000_000


def test_without_the_chart_converter_the_page_has_the_install_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    runs = synthetic_runs(tmp_path, ["not drawn yet", "nor this"], {"MRR": 1 / ranks(2, 30)})
    document = tree(render_html(build_view(runs, compare_runs(runs), exports=False)))
    hint = document.one("main").all("p", class_="hint")[0].text
    assert install_command("report") in hint
    assert document.all("figure") == []
    assert document.one("section", id="distributions").all("table")


def test_p_of_a_single_pair_is_not_called_adjusted(tmp_path: Path) -> None:
    for names in (["a", "b"], ["a", "b", "c"]):
        runs = synthetic_runs(tmp_path, names, {"MRR": 1 / ranks(len(names), 30)})
        comparison = compare_runs(runs)
        assert comparison is not None
        text = render_html(build_view(runs, comparison, exports=False))
        claims = [column.head for column in pairwise_claims(comparison)]
        is_adjusted = len(names) > 2
        assert ("djusted p" in text, "adj. p" in claims) == (is_adjusted, is_adjusted)
        assert claims.count("p") == 1


def test_metrics_and_parameters_are_columns_however_many(tmp_path: Path) -> None:
    metrics = {f"HR@{k}": ranks(2, 30) <= k for k in range(1, 11)}
    runs = synthetic_runs(tmp_path, ["a", "b"], metrics)
    parameters = [{f"p{number}": number + index for number in range(9)} for index in range(2)]
    runs = [
        replace(run, manifest=replace(run.manifest, parameters=values))
        for run, values in zip(runs, parameters, strict=True)
    ]
    document = tree(render_html(build_view(runs, compare_runs(runs), exports=False), charts=False))
    table = document.one("section", id="leaderboard").all("table")[-1]
    assert [cell.text for cell in table.one("thead").all("th")] == ["System", *metrics]
    costs = document.one("section", id="costs").one("table")
    assert [cell.text for cell in costs.one("thead").all("th")] == ["System", "HR@1", *(f"P{n}" for n in range(9))]


def test_the_page_uses_the_noun_of_the_systems(tmp_path: Path) -> None:
    runs = synthetic_runs(tmp_path, ["a", "b"], {"MRR": 1 / ranks(2, 30), "HR@1": ranks(2, 30) == 1})
    settings = {"display": {"system": "embedding"}}
    named = [replace(run, result=replace(run.result, settings={**run.result.settings, **settings})) for run in runs]
    report = build_view(named, compare_runs(named), exports=False)
    text = tree(render_html(report, charts=False)).one("main").text
    assert "Embeddings in the tables" in text
    assert "Embeddings in the same tie band" in text
    assert "System" not in text


def test_metrics_that_are_measured_have_their_unit_in_the_heading(tmp_path: Path) -> None:
    runs = synthetic_runs(tmp_path, ["a", "b"], {"MRR": 1 / ranks(2, 30)})
    interval = Interval.unknown("one pass")
    speed = Estimate("Throughput", 28_496.349, interval, 30, 0, nan, Direction.UP, "queries a second")
    measured = [
        replace(run, result=replace(run.result, estimates={**run.result.estimates, "Throughput": speed}))
        for run in runs
    ]
    report = build_view(measured, compare_runs(measured), exports=False)
    text = render_html(report, charts=False)
    assert "Throughput (queries/s)" in text
    assert ">28,496<" in text
    assert "28,496.3" not in text
    assert "each system was measured once" in text
