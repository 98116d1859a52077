"""Only runs inside the results folder are served."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

import pytest

SECRET = "the content of a secret file"
ESCAPING_PATHS = (
    "../secret.txt",
    "..%2fsecret.txt",
    "%2e%2e/secret.txt",
    "%2e%2e%2fsecret.txt",
    "..%252fsecret.txt",
    "....//secret.txt",
    "..\\secret.txt",
    "%00../secret.txt",
    "inside.txt",
    "bm25/manifest.json",
    "bm25/../../secret.txt",
    "bm25/cases.jsonl",
)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, serve, store):
    """A server for a folder with a run and a text file, with another run and text file outside the folder."""
    root = tmp_path_factory.mktemp("land")
    (root / "secret.txt").write_text(SECRET)
    store(root / "results" / "bm25")
    store(root / "outside", SECRET)
    (root / "results" / "inside.txt").write_text(SECRET)
    (root / "results" / "link").symlink_to(root / "outside")
    return serve(root / "results")


@pytest.mark.parametrize("escaping_path", ESCAPING_PATHS)
@pytest.mark.parametrize("template", ["/{}", "/report/{}", "/report?run={}", "/export?to=json&run={}", "/static/{}"])
def test_paths_outside_the_folder_are_not_served_in_any_encoding(served, escaping_path: str, template: str) -> None:
    response = served.get(template.format(escaping_path))
    assert response.status in (400, 404)
    assert SECRET not in response.text


@pytest.mark.parametrize("template", ["{}", "/report?run={}", "/export?to=json&run={}"])
def test_absolute_paths_are_not_served(served, template: str) -> None:
    for path in (served.root.parent / "secret.txt", served.root.parent / "outside", served.root / "bm25"):
        for encoded_path in (str(path), quote(str(path), safe=""), f"//{path}", f"file://{path}"):
            response = served.get(template.format(encoded_path))
            assert response.status in (400, 404)
            assert "bm25:" not in response.text


def test_a_symlink_to_a_run_outside_is_not_followed(served) -> None:
    assert [row["run"] for row in served.get("/runs.json").json["runs"]] == ["bm25"]
    assert served.get("/report?run=link").status == 404


@pytest.mark.parametrize("name", ["manifest.json", "result.json", "cases.jsonl", "details.jsonl", "evidence.npz"])
def test_a_symlinked_file_outside_the_folder_is_not_read(tmp_path: Path, serve, store, name: str) -> None:
    outside = store(tmp_path / "outside", SECRET, units=[SECRET, "b", "c"], details=True)
    inside = store(tmp_path / "results" / "bm25", details=True)
    (inside / name).unlink()
    (inside / name).symlink_to(outside / name)
    served = serve(tmp_path / "results")
    (row,) = served.get("/runs.json").json["runs"]
    assert row["status"] == "unreadable"
    assert "leads out of the folder" in row["note"]
    for path in (
        "/",
        "/runs.json",
        "/report?run=bm25",
        "/export?to=units&run=bm25",
        "/export?to=trec&run=bm25",
    ):
        assert SECRET not in served.get(path).text
    assert served.get("/report?run=bm25").status == 422


def test_a_symlink_inside_the_folder_is_followed(tmp_path: Path, serve, store) -> None:
    run = store(tmp_path / "a")
    (run / "cases.jsonl").rename(tmp_path / "cases")
    (run / "cases.jsonl").symlink_to(tmp_path / "cases")
    assert serve(tmp_path).get("/report?run=a").status == 200


def test_a_symlinked_progress_file_is_ignored(tmp_path: Path, serve) -> None:
    (tmp_path / "secret.json").write_text(f'{{"what": "{SECRET}"}}')
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / ".progress.0-1-2.json").symlink_to(tmp_path / "secret.json")
    served = serve(tmp_path / "results")
    assert served.get("/runs.json").json["under_way"] == []
    assert SECRET not in served.get().text
