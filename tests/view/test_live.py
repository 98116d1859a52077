"""What happens in the folder is seen without starting anything again."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from equipoise.runs.progress import report_progress


def eventually(look: Callable[[], Any]) -> Any:
    """The first true thing that is seen; a look at the disk may be half a second old."""
    for _ in range(100):
        seen = look()
        if seen:
            return seen
        time.sleep(0.1)
    raise AssertionError("it never came")


def test_a_new_run_appears_and_changes_the_version(tmp_path: Path, serve, store) -> None:
    served = serve(tmp_path)
    before = served.get("/runs.json").json
    assert before["runs"] == []
    store(tmp_path / "deep" / "a")
    after = eventually(lambda: (now := served.get("/runs.json").json)["runs"] and now)
    assert [row["run"] for row in after["runs"]] == ["deep/a"]
    assert after["version"] != before["version"]
    assert f'data-version="{after["version"]}"' in served.get().text


def test_a_run_that_is_replaced_gets_a_new_page(tmp_path: Path, serve, store) -> None:
    store(tmp_path / "a")
    served = serve(tmp_path)
    first = served.get("/report?run=a")
    store(tmp_path / "a", worse=4)
    tag = first.headers["etag"]
    second = eventually(lambda: (now := served.get("/report?run=a", If_None_Match=tag)).status == 200 and now)
    assert second.text != first.text


def test_work_under_way_is_shown_with_its_step_and_vanishes_at_its_end(tmp_path: Path, serve) -> None:
    served = serve(tmp_path)
    with report_progress(tmp_path / "fair", "fair comparison", 4, command=["eq", "fair"]) as step:
        step("minilm: loading")
        step("minilm: fixed 256/25")
        seen = eventually(lambda: served.get("/runs.json").json["under_way"])
        assert [(each["what"], each["done"], each["total"]) for each in seen] == [("fair comparison", 1, 4)]
        assert (seen[0]["folder"], seen[0]["alive"]) == ("fair", True)
        page = served.get().text
        assert '<progress max="4" value="1"' in page
        assert "minilm: fixed 256/25" in page
    assert eventually(lambda: not served.get("/runs.json").json["under_way"])


def test_work_that_died_is_told_with_the_command_that_goes_on(tmp_path: Path, serve) -> None:
    with report_progress(tmp_path, "fair comparison", 4, command=["eq", "fair", "compare"]) as step:
        step("minilm: loading")
        (file,) = tmp_path.glob(".progress.*")
        host = file.name.split(".")[2].split("-")[0]
        content = file.read_text()
    gone = 2**22 + 7  # above the largest process number of this system
    (tmp_path / f".progress.{host}-{gone}-0000abcd.json").write_text(content)
    page = serve(tmp_path).get().text
    assert "fair comparison</strong> has stopped without finishing" in page
    assert "<pre>eq fair compare</pre>" in page
