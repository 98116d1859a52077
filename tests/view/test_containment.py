"""Nothing outside the results folder is served, and nothing inside it but runs."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

import pytest

SECRET = "the secret of the house"
WAYS = (
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
def house(tmp_path_factory: pytest.TempPathFactory, serve, store):
    """A folder with a run and a text inside, and a text and a run outside."""
    land = tmp_path_factory.mktemp("land")
    (land / "secret.txt").write_text(SECRET)
    store(land / "results" / "bm25")
    store(land / "outside", SECRET)
    (land / "results" / "inside.txt").write_text(SECRET)
    (land / "results" / "link").symlink_to(land / "outside")
    return serve(land / "results")


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("form", ["/{}", "/report/{}", "/report?run={}", "/export?to=json&run={}", "/static/{}"])
def test_no_spelling_of_a_path_leads_out(house, way: str, form: str) -> None:
    answer = house.get(form.format(way))
    assert answer.status in (400, 404)
    assert SECRET not in answer.text


@pytest.mark.parametrize("form", ["{}", "/report?run={}", "/export?to=json&run={}"])
def test_absolute_paths_lead_nowhere(house, form: str) -> None:
    for path in (house.root.parent / "secret.txt", house.root.parent / "outside", house.root / "bm25"):
        for spelled in (str(path), quote(str(path), safe=""), f"//{path}", f"file://{path}"):
            answer = house.get(form.format(spelled))
            assert answer.status in (400, 404)
            assert "bm25:" not in answer.text


def test_a_run_outside_is_not_reached_by_a_link_to_its_folder(house) -> None:
    assert [row["run"] for row in house.get("/runs.json").json["runs"]] == ["bm25"]
    assert house.get("/report?run=link").status == 404


@pytest.mark.parametrize("name", ["manifest.json", "result.json", "cases.jsonl", "details.jsonl", "evidence.npz"])
def test_a_file_of_a_run_that_leads_out_is_not_read(tmp_path: Path, serve, store, name: str) -> None:
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


def test_a_link_that_stays_inside_is_followed(tmp_path: Path, serve, store) -> None:
    kept = store(tmp_path / "a")
    (kept / "cases.jsonl").rename(tmp_path / "cases")
    (kept / "cases.jsonl").symlink_to(tmp_path / "cases")
    assert serve(tmp_path).get("/report?run=a").status == 200


def test_a_progress_file_that_is_a_link_is_passed_over(tmp_path: Path, serve) -> None:
    (tmp_path / "secret.json").write_text(f'{{"what": "{SECRET}"}}')
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / ".progress.0-1-2.json").symlink_to(tmp_path / "secret.json")
    served = serve(tmp_path / "results")
    assert served.get("/runs.json").json["under_way"] == []
    assert SECRET not in served.get().text
