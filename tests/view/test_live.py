"""Changes of the folder are shown without restarting the server."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from equipoise.runs.progress_file import report_progress


def wait_for_value(read: Callable[[], Any]) -> Any:
    """Poll until a value is truthy and return it; the server caches the folder for half a second."""
    for _ in range(100):
        value = read()
        if value:
            return value
        time.sleep(0.1)
    raise AssertionError("the condition did not hold in time")


def test_a_new_run_appears_and_changes_the_version(tmp_path: Path, serve, store) -> None:
    served = serve(tmp_path)
    before = served.get("/runs.json").json
    assert before["runs"] == []
    store(tmp_path / "deep" / "a")
    after = wait_for_value(lambda: (answer := served.get("/runs.json").json)["runs"] and answer)
    assert [row["run"] for row in after["runs"]] == ["deep/a"]
    assert after["version"] != before["version"]
    assert f'data-version="{after["version"]}"' in served.get().text


def test_a_replaced_run_gets_a_new_page(tmp_path: Path, serve, store) -> None:
    store(tmp_path / "a")
    served = serve(tmp_path)
    first = served.get("/report?run=a")
    store(tmp_path / "a", worse=4)
    tag = first.headers["etag"]
    second = wait_for_value(lambda: (answer := served.get("/report?run=a", If_None_Match=tag)).status == 200 and answer)
    assert second.text != first.text


def test_an_active_run_is_shown_with_its_step_until_it_ends(tmp_path: Path, serve) -> None:
    served = serve(tmp_path)
    with report_progress(tmp_path / "fair", "fair comparison", 4, command=["eq", "fair"]) as step:
        step("minilm: loading")
        step("minilm: fixed 256/25")
        active_runs = wait_for_value(lambda: served.get("/runs.json").json["under_way"])
        assert [(active_run["what"], active_run["done"], active_run["total"]) for active_run in active_runs] == [
            ("fair comparison", 1, 4)
        ]
        assert (active_runs[0]["folder"], active_runs[0]["alive"]) == ("fair", True)
        page = served.get().text
        assert '<progress max="4" value="1"' in page
        assert "minilm: fixed 256/25" in page
    assert wait_for_value(lambda: not served.get("/runs.json").json["under_way"])


def test_a_stopped_run_is_shown_with_the_command_to_resume(tmp_path: Path, serve) -> None:
    with report_progress(tmp_path, "fair comparison", 4, command=["eq", "fair", "compare"]) as step:
        step("minilm: loading")
        (file,) = tmp_path.glob(".progress.*")
        host = file.name.split(".")[2].split("-")[0]
        content = file.read_text()
    unused_pid = 2**22 + 7  # above the largest process id of the system
    (tmp_path / f".progress.{host}-{unused_pid}-0000abcd.json").write_text(content)
    page = serve(tmp_path).get().text
    assert "fair comparison</strong> has stopped without finishing" in page
    assert "<pre>eq fair compare</pre>" in page
