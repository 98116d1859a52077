"""The chart of a whole tree for the page and for print."""

from __future__ import annotations

import json
import re
from xml.etree import ElementTree

import numpy as np
import pytest

from equipoise.domains.accounts.charts import DiskProjection, TreeCharts, spread_angles
from equipoise.domains.accounts.disk import TreeDrawing, tree_page, tree_png, tree_svg
from equipoise.domains.accounts.embedders import tree_embedder
from equipoise.domains.accounts.trees.tree import Tree

HOSTILE = "</script><b>&"
CHART = Tree.of(
    [
        ("r", HOSTILE),
        *((f"{top}", f"Group {top}") for top in range(8)),
        *(f"{n}.{k}" for n in range(8) for k in range(9)),
    ],
    [*((f"{top}", "r") for top in range(8)), *((f"{n}.{k}", f"{n}") for n in range(8) for k in range(9))],
)


def drawing(embedder: str = "combinatorial") -> TreeDrawing:
    return TreeCharts(CHART, f"{embedder}-2", tree_embedder(embedder).fit(CHART, 2)).drawing()


def test_the_svg_has_every_node_and_escapes_names() -> None:
    root = ElementTree.fromstring(tree_svg(drawing()))
    circles = root.findall("{http://www.w3.org/2000/svg}circle")
    assert len(circles) == len(CHART) + 1
    texts = ["".join(text.itertext()) for text in root.findall("{http://www.w3.org/2000/svg}text")]
    assert HOSTILE in texts


def test_the_page_has_all_data_and_is_deterministic() -> None:
    page = tree_page(drawing(), "text", [])
    assert page == tree_page(drawing(), "text", [])
    assert HOSTILE not in page
    found = re.search(r'<script type="application/json" id="tree-data">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    data = json.loads(found.group(1))
    assert sorted(data["id"]) == sorted(CHART.ids)
    for node, parent in enumerate(data["parent"]):
        assert parent < node
        above = [CHART.ids[at] for at in CHART.parents(CHART.position(data["id"][node]))]
        assert ([data["id"][parent]] if parent >= 0 else []) == above
    assert np.hypot(data["x"], data["y"]).max() < 1.0


def test_points_of_the_plane_are_scaled_into_the_disk() -> None:
    flat = drawing("euclidean")
    assert flat.kind == "plane"
    assert np.abs(flat.unit_points).max() == pytest.approx(1.0)


def test_crowded_angles_are_spread_in_their_order() -> None:
    angles = np.linspace(0.0, 0.02, 100)
    radii = np.linspace(0.1, 0.9, 100)
    points = radii[:, None] * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    found = spread_angles(DiskProjection(points, "disk"))
    np.testing.assert_allclose(np.hypot(*found.points.T), radii)
    moved = np.unwrap(np.arctan2(found.points[:, 1], found.points[:, 0]))
    np.testing.assert_allclose(np.diff(moved), 2 * np.pi / 100)
    assert found.caption
    even = DiskProjection(0.5 * np.stack([np.cos(100 * moved), np.sin(moved)], axis=1), "disk")
    assert spread_angles(found).points is found.points
    assert spread_angles(DiskProjection(even.points, "plane")).kind == "plane"


@pytest.mark.engines("vl_convert")
def test_the_png_is_an_image() -> None:
    pytest.importorskip("vl_convert")
    assert tree_png(drawing(), scale=0.5).startswith(b"\x89PNG")
