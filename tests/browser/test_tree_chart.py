"""The interactive chart of a tree in a real browser: all nodes, search, zoom, pan, hover, collapse, labels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from equipoise.domains.accounts.charts import TreeCharts
from equipoise.domains.accounts.disk_chart import tree_page
from equipoise.domains.accounts.embedders import tree_embedder
from equipoise.domains.accounts.trees.tree import Tree


def large_tree() -> Tree:
    """5,000 accounts: 10 classes, 490 groups, and accounts below them."""
    groups = [(f"{top}.{group}", f"{top}") for top in range(10) for group in range(49)]
    accounts = [(f"{key}.{number}", key) for number in range(10) for key, _ in groups][:4500]
    nodes = [(key, f"Account {key}") for key in [*map(str, range(10)), *(child for child, _ in [*groups, *accounts])]]
    return Tree.of(nodes, [*groups, *accounts])


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    tree = large_tree()
    charts = TreeCharts(tree, "combinatorial-2", tree_embedder("combinatorial").fit(tree, 2))
    file = tmp_path_factory.mktemp("tree") / "disk.html"
    file.write_text(tree_page(charts.drawing(), "a chart", [charts.norm_chart()]), encoding="utf-8")
    return file


def chart(tab: Any, expression: str) -> Any:
    # Drawing is scheduled for the next frame.
    tab.evaluate("treeChart.draw()")
    return tab.evaluate(f"treeChart.{expression}")


def test_every_node_is_shown_and_labels_do_not_overlap(opened: Any, page: Path) -> None:
    tab = opened(page.as_uri())
    assert chart(tab, "shown()") == 5000
    boxes = chart(tab, "labels()")
    assert len(boxes) > 20
    for index, box in enumerate(boxes):
        for other in boxes[:index]:
            assert (
                box["right"] < other["left"]
                or other["right"] < box["left"]
                or box["bottom"] < other["top"]
                or other["bottom"] < box["top"]
            )


def test_search_finds_nodes_and_enter_moves_to_the_first(opened: Any, page: Path) -> None:
    tab = opened(page.as_uri())
    tab.fill("#tree-search", "account 3.7.1")
    assert len(chart(tab, "matches()")) == 1
    assert "1 found" in tab.text_content("#tree-status")
    tab.press("#tree-search", "Enter")
    assert chart(tab, "scale()") >= 2
    match = chart(tab, "matches()")[0]
    x, y = chart(tab, f"toScreen({match})")
    box = tab.locator("#tree").bounding_box()
    assert (x, y) == pytest.approx((box["width"] / 2, box["height"] / 2), abs=3)


def test_enter_moves_from_match_to_match(opened: Any, page: Path) -> None:
    tab = opened(page.as_uri())
    tab.fill("#tree-search", "account 3.7")
    matches = chart(tab, "matches()")
    assert len(matches) > 2
    visited = []
    for _ in range(len(matches) + 1):
        tab.press("#tree-search", "Enter")
        visited.append(chart(tab, "hovered()"))
    assert visited == [*matches, matches[0]]


def test_zoom_pan_hover_and_collapse(opened: Any, page: Path) -> None:
    tab = opened(page.as_uri())
    box = tab.locator("#tree").bounding_box()
    left, top = box["x"], box["y"]
    x, y = chart(tab, "toScreen(0)")
    tab.mouse.move(left + x, top + y)
    tab.wait_for_function("treeChart.hovered() === 0")
    assert "Account 0" in tab.text_content("#tree-tooltip")
    tooltip = tab.locator("#tree-tooltip").bounding_box()
    assert tooltip["y"] + tooltip["height"] <= tab.viewport_size["height"]
    tab.mouse.click(left + x, top + y)
    assert chart(tab, "shown()") < 5000
    tab.mouse.click(left + x, top + y)
    assert chart(tab, "shown()") == 5000
    tab.mouse.wheel(0, -400)
    tab.wait_for_function("treeChart.scale() > 2")
    before = chart(tab, "toScreen(0)")
    tab.mouse.move(left + 300, top + 300)
    tab.mouse.down()
    tab.mouse.move(left + 350, top + 320, steps=4)
    tab.mouse.up()
    after = chart(tab, "toScreen(0)")
    assert (after[0] - before[0], after[1] - before[1]) == pytest.approx((50, 20), abs=1)
    tab.click("#tree-reset")
    assert chart(tab, "scale()") == 1


def test_groups_collapse_together(opened: Any, page: Path) -> None:
    tab = opened(page.as_uri())
    tab.click("#tree-collapse")
    assert chart(tab, "shown()") == 500
