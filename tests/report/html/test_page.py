"""The HTML file: what it says, in which order, and that it neither runs nor fetches what data tell it to."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from equipoise.report.build_view import build_view, compare_runs
from equipoise.report.html.render import render_html
from equipoise.report.view import RunsView
from equipoise.runs.manifest import Status
from equipoise.runs.run_folder import load_run
from equipoise.runs.unit_table import RetrievedItem, UnitContent
from equipoise.types import Finding, Severity, install_command
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


def sections(document: Node) -> list[str]:
    return [node.attributes["id"] for node in document.all("section")]


def island(document: Node) -> dict[str, object]:
    content: dict[str, object] = json.loads(document.one("script", type="application/json").raw)
    return content


def test_sections_stand_in_the_order_of_the_questions(document: Node) -> None:
    assert sections(document) == ORDER
    links = [node.attributes["href"] for node in document.one("nav").all("a")]
    assert links == [f"#{name}" for name in ORDER]


def with_findings(report: RunsView, findings: Sequence[Finding]) -> RunsView:
    return replace(report, answer=replace(report.answer, findings=tuple(findings)))


def test_a_page_without_findings_says_so_at_its_end(report: RunsView) -> None:
    sound = sections(tree(render_html(with_findings(report, ()), charts=False)))
    assert sound[0] == "verdict"
    assert sound.index("findings") > sound.index("tuning")


def test_many_findings_are_folded_except_issues(report: RunsView) -> None:
    findings = [replace(report.answer.findings[0], code=f"EQ30{n}", severity=each) for n, each in enumerate(Severity)]
    page = tree(render_html(with_findings(report, findings), charts=False))
    folds = page.one("section", id="findings").all("details", class_="finding")
    assert ["open" in fold.attributes for fold in folds] == [True, False, False]


def test_the_verdict_is_whole(report: RunsView, document: Node) -> None:
    assert document.one("p", class_="verdict").text == report.answer.headline


def test_every_figure_of_the_league_is_in_its_row(report: RunsView, document: Node) -> None:
    table = document.one("section", id="leaderboard").all("table")[0]
    rows = table.one("tbody").all("tr")
    assert len(rows) == len(report.leaderboard.rows)
    for row, shown in zip(report.leaderboard.rows, rows, strict=True):
        assert row.system in shown.one("th").text
        cells = [cell.text for cell in shown.all("td")]
        bands = "".join(row.tie_groups)
        assert cells[1:] == [row.score.text, row.score.interval_text, row.chance_text, row.rank, bands]
    assert "No missing values." in document.one("section", id="leaderboard").text


def test_every_parameter_that_differs_and_every_cost_is_in_its_row(report: RunsView, document: Node) -> None:
    columns = report.parameters + report.costs
    table = document.one("section", id="costs").one("table")
    for place, (row, shown) in enumerate(zip(report.leaderboard.rows, table.one("tbody").all("tr"), strict=True)):
        cells = [cell.text for cell in shown.all("td")]
        assert cells == [row.score.text, *(column.texts[place] or "–" for column in columns)]


def test_the_league_has_columns_only_for_what_is_known(tmp_path: Path) -> None:
    values = 1 / ranks(2, 30)
    values[1, 3] = np.nan
    runs = synthetic_runs(tmp_path, ["a", "b"], {"MRR": values})
    document = tree(render_html(build_view(runs, compare_runs(runs), exports=False), charts=False))
    league = document.one("section", id="leaderboard")
    heads = [head.text for head in league.all("th", scope="col")]
    assert "Undefined" in heads
    assert "Chance" not in heads
    assert "chance level of MRR is n/a" in league.text


def test_the_standing_names_every_system_once(report: RunsView, document: Node) -> None:
    parts = {
        each.one("dt").text: [badge.text for badge in each.all("bdi", class_="name")]
        for each in document.one("dl", class_="tie-groups").all("div")
    }
    assert parts == {"Best, or tied with the best": ["tfidf", "bm25"], "Worse than the best": ["hash"]}


def test_whiskers_lie_where_their_numbers_say(report: RunsView, document: Node) -> None:
    scale = report.leaderboard.scale
    table = document.one("section", id="leaderboard").all("table")[0]
    for row, shown in zip(report.leaderboard.rows, table.one("tbody").all("tr"), strict=True):
        drawing = shown.one("svg")
        base = drawing.one("line", class_="base").attributes
        start, end = float(base["x1"]), float(base["x2"])

        def place(value: float | None, start: float = start, end: float = end) -> float:
            assert value is not None
            return start + (value - scale.low) / (scale.high - scale.low) * (end - start)

        (mark,) = [node for node in drawing.walk() if "point" in node.attributes.get("class", "").split()]
        at = mark.attributes.get("cx") or mark.attributes["d"][1:].split()[0]
        assert float(at) == pytest.approx(place(row.score.number), abs=0.06)
        behind = not set(row.tie_groups) & set(report.leaderboard.rows[0].tie_groups)
        assert mark.tag == ("path" if behind else "circle")
        chance = drawing.one("line", class_="chance").attributes
        assert float(chance["x1"]) == pytest.approx(place(row.chance), abs=0.06)
        ends = [
            float(each)
            for each in re.findall(r"M([\d.]+) 6V16", drawing.one("path", class_="interval").attributes["d"])
        ]
        assert ends == pytest.approx([place(row.score.low), place(row.score.high)], abs=0.06)


def test_every_pair_and_every_cell_of_the_matrix_is_shown(report: RunsView, document: Node) -> None:
    assert report.pairwise is not None
    part = document.one("section", id="pairwise")
    for pair, row in zip(report.pairwise.rows, part.all("table")[0].one("tbody").all("tr"), strict=True):
        cells = [cell.text for cell in row.all("td")]
        assert cells[2:5] == [pair.difference.text, pair.difference.interval_text, pair.p_adjusted]
        letters = {system.name: system.letter for system in report.systems}
        assert cells[5] == (f"{letters[pair.winner]}{pair.winner}" if pair.winner else "not significant")
    shown = [row.all("td") for row in part.one("table", class_="matrix").one("tbody").all("tr")]
    for cells, matrix in zip(shown, report.pairwise.matrix, strict=True):
        for node, cell in zip(cells, matrix, strict=True):
            assert node.text == ("·" if cell is None else cell.text + (" ≠" if cell.significant else ""))


def test_slices_tunings_and_findings_are_all_there(report: RunsView, document: Node) -> None:
    assert report.slices is not None
    heat = [cell.text for cell in document.one("section", id="slices").all("td")]
    for slice_row in report.slices.rows:
        for cell in slice_row.cells:
            assert f"{cell.text}{cell.note}" in heat
    tuning = document.one("section", id="tuning").text
    for tuned in report.tuning:
        assert all(trial.text in tuning for trial in tuned.trials)
        assert all(fold.chosen in tuning for fold in tuned.folds)
    findings = document.one("section", id="findings")
    assert {node.one("code").text for node in findings.all("h3")} == {each.code for each in report.answer.findings}
    for finding in report.answer.findings:
        assert finding.hint[1:] in findings.text
        assert finding.message in findings.text


def test_only_what_differs_is_marked_in_the_protocol(report: RunsView, document: Node) -> None:
    marked = [row.one("th").text for row in document.one("section", id="protocol").all("tr", class_="differs")]
    differing = [f"{fact.name} ≠" for group in report.protocol.groups for fact in group.entries if fact.differs]
    assert marked == differing == ["model ≠"]


def test_texts_to_take_away_are_whole(report: RunsView, document: Node) -> None:
    for download in report.downloads:
        # A parser drops the line break after the tag, and so the template puts one there.
        assert document.one("pre", id=f"text-{download.name}").raw == f"\n{download.text}"


def test_the_units_are_in_the_data_of_the_page(report: RunsView, document: Node) -> None:
    assert report.explorer is not None
    data = island(document)
    assert data["units"] == list(report.explorer.units)
    assert data["texts"] == list(report.explorer.texts)
    for name in ("columns", "slices", "details"):
        assert data[name] == getattr(report.explorer, name)
    assert data["items"] == [list(item) for item in report.explorer.items]


def test_one_run_alone_gives_a_page_without_comparison(tmp_path: Path) -> None:
    document = tree(render_html(build_view(bread_runs(tmp_path, tuned=False)[:1])))
    assert sections(document) == [name for name in ORDER if name not in ("pairwise", "tuning")]
    heads = [head.text for head in document.one("section", id="leaderboard").all("th", scope="col")]
    assert "Band" not in heads


def test_a_partial_run_has_a_banner_and_a_mark(tmp_path: Path) -> None:
    synthetic_runs(tmp_path, ["a", "b"], {"MRR": 1 / ranks(2, 30)}, status=Status.PARTIAL, reason="interrupted")
    runs = [load_run(tmp_path / f"run{place}") for place in (0, 1)]
    document = tree(render_html(build_view(runs, compare_runs(runs), exports=False), charts=False))
    banners = [node.text for node in document.one("main").all("p", class_="caution")]
    assert sorted(banners) == [
        "Not complete: the run of a is partial: interrupted.",
        "Not complete: the run of b is partial: interrupted.",
    ]
    assert len(document.one("section", id="leaderboard").all("abbr", class_="mark")) == 2


def test_what_data_say_is_shown_and_never_run(tmp_path: Path) -> None:
    names = [f"{HOSTILE}{place}" for place in range(2)]
    hit = RetrievedItem(HOSTILE, HOSTILE, 0.5, True, HOSTILE)
    units: list[str | int] = [f"{HOSTILE}-{place}" for place in range(30)]
    details: dict[str | int, UnitContent] = {
        unit: UnitContent(HOSTILE, (HOSTILE,), {HOSTILE: f"{HOSTILE}{place % 2}"}, (hit,))
        for place, unit in enumerate(units)
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
    data = island(document)
    assert data["units"] == units
    assert HOSTILE in data["texts"]  # type: ignore[operator]
    shown = document.one("section", id="leaderboard").text
    assert all(" ".join(name.split()) in shown for name in names)
    assert "\u2028" not in document.one("script", type="application/json").raw
    for node in document.walk():
        assert not [name for name in node.attributes if name.startswith("on")]


def test_nothing_is_fetched_from_anywhere(document: Node) -> None:
    for node in document.walk():
        assert "src" not in node.attributes
        assert node.tag not in {"iframe", "object", "embed", "base", "form"}
        address = node.attributes.get("href", "#")
        assert address.startswith("#") or address == "data:,"
        for name, value in node.attributes.items():
            assert name == "xmlns" or not re.search(r"https?:|url\((?!#)|^//", value), (node.tag, name, value)
    for style in document.all("style"):
        assert not re.search(r"@import|url\(|https?:", style.raw)


def test_the_policy_allows_exactly_the_style_and_the_script_of_the_page(document: Node) -> None:
    policy = document.one("meta", **{"http-equiv": "Content-Security-Policy"}).attributes["content"]
    parts = dict(part.strip().split(" ", 1) for part in policy.split(";"))
    assert parts["default-src"] == "'none'"
    (script,) = [node for node in document.all("script") if "type" not in node.attributes]
    for kind, node in (("style-src", document.one("style")), ("script-src", script)):
        digest = base64.b64encode(hashlib.sha256(node.raw.encode()).digest()).decode()
        assert parts[kind] == f"'sha256-{digest}'"
    # The policy would ignore them, so none may be needed.
    assert not [node.tag for node in document.walk() if "style" in node.attributes]


def test_the_script_never_turns_text_into_markup(document: Node) -> None:
    (script,) = [node for node in document.all("script") if "type" not in node.attributes]
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|Function\(", script.raw)
    assert not re.search(r"fetch\(|XMLHttpRequest|WebSocket|import\(", script.raw)


def test_the_page_can_be_walked_by_keyboard_and_by_ear(document: Node) -> None:
    assert len(document.all("h1")) == 1
    ids = Counter(node.attributes["id"] for node in document.walk() if "id" in node.attributes)
    assert not [name for name, count in ids.items() if count > 1]
    for section in document.all("section"):
        assert section.attributes["aria-labelledby"] in ids
    skip = document.one("a", class_="skip").attributes["href"]
    assert skip.removeprefix("#") in ids
    for table in document.all("table"):
        assert table.one("caption").text
        assert all(head.attributes.get("scope") in ("col", "row", "rowgroup") for head in table.all("th"))
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
        render_html(build_view(given, compare_runs(given)), charts=False)
        for given in (runs, [load_run(run.path) for run in runs])
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
    found = ranks(3, 1000)
    values = {"MRR": 1 / found, **{f"HR@{k}": found <= k for k in (1, 5, 10)}}
    runs = synthetic_runs(tmp_path, ["a", "b", "c"], values, details=details)
    report = build_view(runs, compare_runs(runs))
    assert report.explorer is not None
    assert len(report.explorer.units) == 1000
    assert "Texts are truncated to" in report.explorer.note
    assert len(render_html(report).encode()) < 2_000_000


def test_without_the_converter_the_page_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    runs = synthetic_runs(tmp_path, ["not drawn yet", "nor this"], {"MRR": 1 / ranks(2, 30)})
    document = tree(render_html(build_view(runs, compare_runs(runs), exports=False)))
    hint = document.one("main").all("p", class_="hint")[0].text
    assert install_command("report") in hint
    assert document.all("figure") == []
    assert document.one("section", id="distributions").all("table")
