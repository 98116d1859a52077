"""Data is escaped: markup in names and texts is shown and never executed."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from pathlib import Path

import pytest

from equipoise.runs.progress_file import report_progress
from equipoise.view.results import ResultsFolder
from html_tree import tree

HOSTILE = "</title><script>alert('x')</script><img src=x onerror=alert(1)>\"'&"


def is_harmless(page: str) -> bool:
    """Whether the page has no image, no event handler, and no script but its own."""
    document = tree(page)
    handlers = [name for node in document.walk() for name in node.attributes if name.startswith("on")]
    foreign = [script for script in document.all("script") if script.attributes.get("src", "/view.js") != "/view.js"]
    return not handlers and not foreign and not document.all("img")


@pytest.fixture
def hostile(tmp_path: Path, serve, store):
    """Two runs with injected markup in names, units and texts, and in the description of an active run."""
    units = [f"{HOSTILE}{index}" for index in range(20)]
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


def test_the_content_security_policy_allows_only_the_scripts_of_the_page(hostile) -> None:
    response = hostile.get("/report?run=a")
    policy = response.headers["content-security-policy"]
    for tag in ("script", "style"):
        (text,) = re.findall(rf"<{tag}>(.*?)</{tag}>", response.text, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy


def test_error_pages_escape_the_query(hostile) -> None:
    response = hostile.get("/report?run=%3Cscript%3Ealert(1)%3C/script%3E&primary=%3Cb%3E")
    assert response.status == 404
    assert is_harmless(response.text)
    assert not tree(response.text).all("script")
    error_response = hostile.get("/report?run=a&primary=%3Cscript%3Ealert(1)%3C/script%3E")
    assert error_response.status == 422
    assert not tree(error_response.text).all("script")


def test_data_is_served_as_json(hostile) -> None:
    response = hostile.get("/runs.json")
    assert response.headers["content-type"] == "application/json"
    assert json.loads(response.text)["under_way"][0]["what"] == HOSTILE


def test_exports_are_served_as_attachments(hostile) -> None:
    for format_name in ("json", "csv", "md", "units", "latex", "card"):
        headers = hostile.get(f"/export?run=a&to={format_name}").headers
        assert headers["content-disposition"].startswith("attachment; filename=")
        assert "html" not in headers["content-type"]


def test_a_file_name_that_is_not_valid_utf_8_is_escaped(tmp_path: Path, serve, store) -> None:
    store(tmp_path / "plain").rename(tmp_path / "b\udcffd")
    (row,) = ResultsFolder(tmp_path).run_list().rows
    assert row.key == "b\\xffd"
    served = serve(tmp_path)
    assert served.get().status == 200
    assert served.get("/report?run=b%5Cxffd").status == 200
