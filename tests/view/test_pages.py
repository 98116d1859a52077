"""The list, the report of one run, the comparison of several, and error pages."""

from __future__ import annotations

import json
import re
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from equipoise.report.build_view import build_view, compare_runs, read_runs
from equipoise.report.html.render import render_html
from equipoise.runs.manifest import Status
from equipoise.runs.run_folder import load_run
from equipoise.view.app import PageCache
from equipoise.view.results import ResultsFolder, RunSelection
from stored_runs import rewrite

COMPARED = "/report?run=deep/minilm&run=bm25"


def replace_in(file: Path, old: str, new: str) -> None:
    """Replace a text in a file."""
    file.write_text(file.read_text().replace(old, new))


def without_brand(page: str) -> str:
    """The page without the header above its title: a link back, or the name of the program."""
    return re.sub(r'<div class="viewer">.*?</div>|<p class="brand">.*?</p>', "", page, count=1, flags=re.DOTALL)


def test_the_list_has_every_run_the_newest_first(viewer) -> None:
    rows = viewer.get("/runs.json").json["runs"]
    assert [row["run"] for row in rows] == ["half", "other", "deep/minilm", "bm25", "old/bm25"]
    page = viewer.get().text
    # In the list, runs on the same units are together.
    positions = [page.index(f'value="{run}"') for run in ("half", "deep/minilm", "bm25", "old/bm25", "other")]
    assert positions == sorted(positions)


def test_a_row_shows_the_values_of_the_run(viewer) -> None:
    (row,) = [row for row in viewer.get("/runs.json").json["runs"] if row["run"] == "bm25"]
    run = load_run(viewer.root / "bm25")
    estimate = run.result["MRR"]
    assert row["metric"] == "MRR"
    assert (row["value"], row["low"], row["high"]) == (
        estimate.value,
        estimate.interval.low,
        estimate.interval.high,
    )
    assert (row["units"], row["status"], row["data"]) == (30, "complete", "truth.qrels")
    assert f">{estimate.value:.3f}</td>" in viewer.get().text


def test_only_runs_that_can_be_compared_are_offered_together(tmp_path: Path, serve, store) -> None:
    store(tmp_path / "a", day=9)
    store(tmp_path / "b", day=8)
    store(tmp_path / "other-units", units=[f"x{index}" for index in range(30)], day=7)
    store(tmp_path / "fewer-units", units=20, day=6)
    store(tmp_path / "other-metric", metrics=["nDCG@10"], day=5)
    store(tmp_path / "other-data", day=4)
    replace_in(tmp_path / "other-data" / "manifest.json", '"ab12"', '"cd34"')
    served = serve(tmp_path)
    links = re.findall(r'href="(/report[^"]*)">Compare all (\d)', served.get().text)
    assert links == [("/report?run=a&amp;run=b", "2")]
    assert served.get("/report?run=a&run=b").status == 200
    assert "Show other" not in served.get("/report?run=a").text
    headings = re.findall(r'<th scope="rowgroup"[^>]*>([^<]*)<', served.get().text)
    assert "truth.qrels, 20 queries" in headings
    assert "truth.qrels, 30 queries, nDCG@10" in headings


def test_the_list_has_the_display_names_and_units_of_metrics(tmp_path: Path, serve, store) -> None:
    store(tmp_path / "a")
    file, display = tmp_path / "a" / "result.json", {"percent": {"HR@1": "Acc@1", "MRR": "MRR"}}
    content = json.loads(file.read_text())
    rewrite(file, json.dumps({**content, "settings": {**content["settings"], "display": display}}))
    (row,) = serve(tmp_path).get("/runs.json").json["runs"]
    assert row["metric"] == "MRR (%)"
    assert row["value"] == pytest.approx(100 * load_run(tmp_path / "a").result["MRR"].value)


def test_a_run_without_a_data_set_is_named_by_its_input_files(tmp_path: Path, serve, store) -> None:
    store(tmp_path / "a")
    file = tmp_path / "a" / "manifest.json"
    content = json.loads(file.read_text())
    file.write_text(json.dumps({**content, "datasets": {}, "inputs": {"vectors/corpus.npy": "ab", "q.npy": "cd"}}))
    (row,) = serve(tmp_path).get("/runs.json").json["runs"]
    assert row["data"] == "corpus.npy, q.npy"


def test_a_partial_run_is_marked_with_its_reason(viewer) -> None:
    (row,) = [row for row in viewer.get("/runs.json").json["runs"] if row["run"] == "half"]
    assert (row["status"], row["note"]) == ("partial", "out of time")
    assert "the run of half is partial: out of time" in viewer.get("/report?run=half").text


def test_a_comparison_is_the_page_of_eq_report_with_a_link_back(viewer) -> None:
    runs = read_runs([("", viewer.root / "deep" / "minilm"), ("", viewer.root / "bm25")])
    page = render_html(build_view(runs, compare_runs(runs)))
    page_text = viewer.get(COMPARED).text
    assert without_brand(page_text) == without_brand(page)
    assert '<a href="/?run=deep%2Fminilm&amp;run=bm25">' in page_text
    assert '<a href="/?' not in page


def test_a_comparison_offers_to_hide_and_to_show_systems(viewer) -> None:
    page_text = viewer.get(COMPARED).text
    assert '<a href="/report?run=bm25">Hide minilm (deep/minilm)</a>' in page_text
    assert "Show bm25</a>" not in page_text
    single_page = viewer.get("/report?run=bm25").text
    assert '<a href="/report?run=bm25&amp;run=deep%2Fminilm">Show minilm (deep/minilm)</a>' in single_page
    assert "Hide" not in single_page


def test_a_single_run_has_a_page(viewer) -> None:
    runs = read_runs([("", viewer.root / "bm25")])
    page_text = viewer.get("/report?run=bm25").text
    assert without_brand(page_text) == without_brand(render_html(build_view(runs, None)))
    assert 'href="/export?run=bm25&amp;to=trec"' in page_text
    assert "to=trec" not in viewer.get(COMPARED).text


def test_the_metric_that_decides_can_be_changed(viewer) -> None:
    assert 'href="/report?run=deep%2Fminilm&amp;run=bm25&amp;primary=HR%401"' in viewer.get(COMPARED).text
    assert "2 systems by HR@1 on 30 queries" in viewer.get(f"{COMPARED}&primary=HR@1").text
    assert "2 systems by HR@3 on 30 queries" in viewer.get(f"{COMPARED}&primary=HR@3").text


def test_systems_with_equal_names_are_distinguished_by_their_folders(viewer) -> None:
    page = viewer.get("/report?run=bm25&run=old/bm25").text
    assert "bm25 (bm25)" in page
    assert "bm25 (old/bm25)" in page


def test_a_run_selected_twice_is_one_run(viewer) -> None:
    assert "bm25 by MRR on 30 queries" in viewer.get("/report?run=bm25&run=bm25").text


@pytest.mark.parametrize(
    ("query", "status", "expected_text"),
    [
        ("run=bm25&run=other", 409, "the same queries"),
        ("run=missing", 404, "No run is called"),
        ("run=bm52", 404, "did you mean bm25"),
        ("", 422, "No run is selected"),
        ("run=bm25&primary=nDGC", 422, "nDGC"),
    ],
)
def test_an_invalid_selection_is_an_error_page(viewer, query: str, status: int, expected_text: str) -> None:
    response = viewer.get(f"/report?{query}")
    assert response.status == status
    assert expected_text in response.text
    assert "Traceback" not in response.text
    assert '<a href="/?list">' in response.text
    assert viewer.get(f"/export?to=csv&{query}").status == status


@pytest.mark.parametrize("format_name", ["latex", "md", "csv", "json", "card", "bibtex", "units"])
def test_a_comparison_is_exported_in_every_format(viewer, format_name: str) -> None:
    response = viewer.get(f"/export?run=deep/minilm&run=bm25&to={format_name}")
    assert response.status == 200
    assert len(response.text) > 50


def test_exports_are_those_of_the_command(viewer) -> None:
    exported = viewer.get("/export?run=deep/minilm&run=bm25&to=json").json
    assert exported["leader"] == "minilm"
    assert viewer.get("/export?run=deep/minilm&to=trec").text.startswith("q0 Q0 d1 1 0.9 minilm\n")
    lines = viewer.get("/export?run=deep/minilm&run=bm25&to=units").text.splitlines()
    assert len(lines) == 1 + 2 * 30


@pytest.mark.parametrize(
    ("query", "expected_text"),
    [
        ("run=bm25&to=trec", "does not contain the retrieved lists"),
        ("run=bm25&run=deep/minilm&to=trec", "one system"),
        ("run=bm25&to=latx", "did you mean latex"),
        ("run=bm25", "no form is called"),
    ],
)
def test_an_invalid_export_is_an_error_page(viewer, query: str, expected_text: str) -> None:
    response = viewer.get(f"/export?{query}")
    assert response.status == 422
    assert expected_text.casefold() in response.text.casefold()


def test_an_unknown_address_is_an_error_page(viewer) -> None:
    response = viewer.get("/nothing/here")
    assert response.status == 404
    assert "Nothing here" in response.text


def test_an_unchanged_page_is_not_sent_again(viewer) -> None:
    for path in (COMPARED, "/", "/runs.json"):
        first = viewer.get(path)
        cached = viewer.get(path, If_None_Match=first.headers["etag"])
        assert (cached.status, cached.body) == (304, b"")
        assert "content-security-policy" not in cached.headers, "it would replace the policy of the stored page"


def test_a_folder_that_is_itself_a_run_is_shown(tmp_path: Path, serve, store) -> None:
    served = serve(store(tmp_path / "only"))
    assert [row["run"] for row in served.get("/runs.json").json["runs"]] == ["."]
    assert "only by MRR" in served.get("/report?run=.").text


def test_an_empty_folder_shows_a_command_to_create_runs(tmp_path: Path, serve) -> None:
    response = serve(tmp_path).get()
    assert response.status == 200
    assert "There are no runs here yet" in response.text
    assert "eq score" in response.text


def test_a_missing_folder_is_reported(tmp_path: Path, serve) -> None:
    (tmp_path / "results").mkdir()
    served = serve(tmp_path / "results")
    (tmp_path / "results").rmdir()
    response = served.get()
    assert response.status == 200
    assert "There is no run directory" in response.text


@pytest.mark.parametrize(
    ("file", "content", "expected_text"),
    [
        ("manifest.json", "{", "manifest.json"),
        ("manifest.json", '{"schema": 99}', "follows schema 99"),
        ("result.json", '{"system": "a"}', "does not describe a result"),
    ],
)
def test_a_damaged_run_does_not_hide_the_others(
    tmp_path: Path, serve, store, file: str, content: str, expected_text: str
) -> None:
    store(tmp_path / "good")
    bad = store(tmp_path / "bad") / file
    if file == "manifest.json":
        bad.write_text(content)
    else:
        rewrite(bad, content)
    served = serve(tmp_path)
    rows = {row["run"]: row for row in served.get("/runs.json").json["runs"]}
    assert (rows["good"]["status"], rows["bad"]["status"]) == ("complete", "unreadable")
    assert expected_text in rows["bad"]["note"]
    assert served.get("/report?run=bad").status == 422
    assert served.get("/report?run=good").status == 200


def test_a_page_is_built_once_until_a_run_changes(tmp_path: Path, store) -> None:
    store(tmp_path / "a")
    pages = PageCache()

    def page() -> bytes:
        return pages.report(RunSelection.of(ResultsFolder(tmp_path).run_list(), ["a"])).result()

    first = page()
    assert page() is first
    store(tmp_path / "a", worse=3)
    assert page() != first


def test_a_run_without_metrics_is_listed_without_a_report(tmp_path: Path, serve, store) -> None:
    run = store(tmp_path / "a", status=Status.FAILED)
    content = json.loads((run / "result.json").read_text())
    rewrite(run / "result.json", json.dumps(content | {"estimates": []}))
    served = serve(tmp_path)
    assert served.get("/runs.json").json["runs"][0]["value"] is None
    assert "disabled" in served.get().text
    assert served.get("/report?run=a").status == 422


def test_a_large_comparison_shows_a_waiting_page_before_the_report(
    tmp_path: Path, serve, store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("equipoise.view.app.LARGE_PAGE_VALUES", 10)
    monkeypatch.setattr("equipoise.view.app.WAIT_SECONDS", 0.0)
    may_finish = Event()

    def render_later(*args: Any, **options: Any) -> str:
        may_finish.wait(60)
        return render_html(*args, **options)

    monkeypatch.setattr("equipoise.view.app.render_html", render_later)
    store(tmp_path / "a")
    served = serve(tmp_path)
    first = served.get("/report?run=a")
    assert (first.status, first.headers["refresh"]) == (202, "2")
    assert "The report is being built" in first.text
    may_finish.set()
    monkeypatch.setattr("equipoise.view.app.WAIT_SECONDS", 60.0)
    assert "a by MRR on 30 queries" in served.get("/report?run=a").text
