"""Whatever data says, it is shown and never run."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from pathlib import Path

import pytest

from equipoise.runs.progress import report_progress
from equipoise.view.results import ResultsFolder
from html_tree import tree

HOSTILE = "</title><script>alert('x')</script><img src=x onerror=alert(1)>\"'&"


def is_harmless(page: str) -> bool:
    """No image, no handler, and no script but those that carry the page."""
    found = tree(page)
    handlers = [name for node in found.walk() for name in node.attributes if name.startswith("on")]
    foreign = [each for each in found.all("script") if each.attributes.get("src", "/view.js") != "/view.js"]
    return not handlers and not foreign and not found.all("img")


@pytest.fixture
def hostile(tmp_path: Path, serve, store):
    """Two runs whose names, units and texts are all attacks, with work under way that is one too."""
    units = [f"{HOSTILE}{place}" for place in range(20)]
    for name in ("a", "b<script>"):
        store(tmp_path / name, f"{HOSTILE}{name}", units=units, details=True)
    with report_progress(tmp_path, HOSTILE, 5, command=["eq", HOSTILE]) as step:
        step(HOSTILE)
        yield serve(tmp_path)


def test_the_list_shows_hostile_names_as_text(hostile) -> None:
    page = hostile.get().text
    assert "<script>alert" not in page
    assert is_harmless(page)
    assert len(tree(page).all("script")) == 1
    text = tree(page).raw
    assert f"{HOSTILE}a" in text
    assert f"{HOSTILE} is running" in text


def test_a_report_shows_hostile_texts_as_text(hostile) -> None:
    keys = [row["run"] for row in hostile.get("/runs.json").json["runs"]]
    assert sorted(keys) == ["a", "b<script>"]
    page = hostile.get("/report?run=a&run=b%3Cscript%3E").text
    assert "<script>alert" not in page
    assert is_harmless(page)
    assert f"{HOSTILE}a" in tree(page).raw


def test_its_policy_allows_the_scripts_of_the_page_and_no_others(hostile) -> None:
    answer = hostile.get("/report?run=a")
    policy = answer.headers["content-security-policy"]
    for tag in ("script", "style"):
        (text,) = re.findall(rf"<{tag}>(.*?)</{tag}>", answer.text, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy


def test_an_error_repeats_what_was_asked_as_text(hostile) -> None:
    answer = hostile.get("/report?run=%3Cscript%3Ealert(1)%3C/script%3E&primary=%3Cb%3E")
    assert answer.status == 404
    assert is_harmless(answer.text)
    assert not tree(answer.text).all("script")
    refused = hostile.get("/report?run=a&primary=%3Cscript%3Ealert(1)%3C/script%3E")
    assert refused.status == 422
    assert not tree(refused.text).all("script")


def test_data_is_data_and_not_a_page(hostile) -> None:
    answer = hostile.get("/runs.json")
    assert answer.headers["content-type"] == "application/json"
    assert json.loads(answer.text)["under_way"][0]["what"] == HOSTILE


def test_exports_are_saved_and_not_shown(hostile) -> None:
    for form in ("json", "csv", "md", "units", "latex", "card"):
        headers = hostile.get(f"/export?run=a&to={form}").headers
        assert headers["content-disposition"].startswith("attachment; filename=")
        assert "html" not in headers["content-type"]


def test_a_file_name_that_is_no_text_is_spelled_out(tmp_path: Path, serve, store) -> None:
    store(tmp_path / "plain").rename(tmp_path / "b\udcffd")
    (row,) = ResultsFolder(tmp_path).run_list().rows
    assert row.key == "b\\xffd"
    served = serve(tmp_path)
    assert served.get().status == 200
    assert served.get("/report?run=b%5Cxffd").status == 200
