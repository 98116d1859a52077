"""The chart of a whole tree as HTML, SVG and PNG."""

from __future__ import annotations

import json
import re
from xml.etree import ElementTree

import numpy as np
import pytest

from equipoise.domains.accounts.charts import ONE_PARENT, DiskProjection, TreeCharts, spread_angles
from equipoise.domains.accounts.disk_chart import TreeDrawing, tree_page, tree_png, tree_svg
from equipoise.domains.accounts.embedders import tree_embedder
from equipoise.domains.accounts.trees.tree import Tree

MARKUP_NAME = "</script><b>&"
CHART = Tree.of(
    [
        ("r", MARKUP_NAME),
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
    assert MARKUP_NAME in texts
    assert drawing().caption in " ".join(texts)


def test_the_page_has_all_data_and_is_deterministic() -> None:
    page_html = tree_page(drawing(), "text", [])
    assert page_html == tree_page(drawing(), "text", [])
    assert MARKUP_NAME not in page_html
    match = re.search(r'<script type="application/json" id="tree-data">(.*?)</script>', page_html, re.DOTALL)
    assert match is not None
    data = json.loads(match.group(1))
    assert sorted(data["id"]) == sorted(CHART.ids)
    for node, parent in enumerate(data["parent"]):
        assert parent < node
        parent_ids = [CHART.ids[position] for position in CHART.parents(CHART.position(data["id"][node]))]
        assert ([data["id"][parent]] if parent >= 0 else []) == parent_ids
    assert np.hypot(data["x"], data["y"]).max() < 1.0


def test_euclidean_points_are_scaled_to_the_disk() -> None:
    euclidean = drawing("euclidean")
    assert euclidean.kind == "plane"
    assert np.abs(euclidean.unit_points).max() == pytest.approx(1.0)


def test_crowded_angles_are_spread_in_their_order() -> None:
    angles = np.linspace(0.0, 0.02, 100)
    radii = np.linspace(0.1, 0.9, 100)
    points = radii[:, None] * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    spread = spread_angles(DiskProjection(points, "disk"))
    np.testing.assert_allclose(np.hypot(*spread.points.T), radii)
    spread_angle = np.unwrap(np.arctan2(spread.points[:, 1], spread.points[:, 0]))
    np.testing.assert_allclose(np.diff(spread_angle), 2 * np.pi / 100)
    assert spread.caption
    evenly_spread = DiskProjection(0.5 * np.stack([np.cos(100 * spread_angle), np.sin(spread_angle)], axis=1), "disk")
    assert spread_angles(spread).points is spread.points
    assert spread_angles(DiskProjection(evenly_spread.points, "plane")).kind == "plane"


@pytest.mark.engines("vl_convert")
def test_the_png_is_an_image() -> None:
    pytest.importorskip("vl_convert")
    assert tree_png(drawing(), scale=0.5).startswith(b"\x89PNG")


def test_a_caption_states_that_one_of_several_parents_is_linked() -> None:
    tree = Tree.from_edges([("b", "a"), ("c", "a"), ("d", "b"), ("d", "c")])
    charts = TreeCharts(tree, "combinatorial-2", tree_embedder("combinatorial").fit(tree, 2))
    assert ONE_PARENT in charts.drawing().caption
    assert ONE_PARENT not in drawing().caption
