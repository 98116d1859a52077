"""The chart of a whole tree: an interactive page with every node, and SVG and PNG files for print.

The page draws on a canvas, which shows 5,000 nodes without delay; it loads nothing from a network. The other charts
use Vega-Lite, which is made for hundreds of points.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING

import numpy as np

from equipoise.io.atomic import write_bytes
from equipoise.report.charts.chart import LIGHT, series_style, shorten_label
from equipoise.report.charts.projection import poincare_geodesic
from equipoise.report.html import charts as interactive
from equipoise.report.html.render import content_security_policy
from equipoise.types import require_extra

if TYPE_CHECKING:
    from equipoise.report.charts.chart import Chart
    from equipoise.types import Floats, Ints

PRINT_SIZE, PRINT_MARGIN, LABEL_SIZE = 1000.0, 20.0, 12.0
"""Pixels of the SVG file."""
MAX_PRINTED_LABELS = 150
CAPTION_LETTERS = 130
"""Letters per line of the caption."""
LETTER = 0.58
"""Mean width of a letter in units of the font size."""

_STYLE = """
body{font:15px/1.5 system-ui,sans-serif;margin:1.5rem auto;max-width:76rem;padding:0 1rem}
#tree{width:100%;height:80vh;display:block;border:1px solid #8884;color:#222;background:#fff;touch-action:none}
.tree-tools{display:flex;gap:.6rem;align-items:center;flex-wrap:wrap;margin:.5rem 0}
.tree-tools input{font:inherit;padding:.2rem .5rem;min-width:16rem}.tree-tools button{font:inherit;padding:.2rem .6rem}
#tree-tooltip{position:fixed;max-width:32rem;padding:.2rem .5rem;border:1px solid #8888;background:#fff;
pointer-events:none}
.groups span{margin-right:1rem;white-space:nowrap}
.groups svg{width:.8em;height:.8em;margin-right:.3em}
@media (prefers-color-scheme:dark){body{background:#181818;color:#ddd}#tree{color:#eee;background:#181818}
#tree-tooltip{background:#181818}}
@media print{.tree-tools{display:none}}
"""


@dataclass(frozen=True)
class TreeDrawing:
    """Every node of a tree in two coordinates, in the order of depth; ``parents`` are positions, -1 for roots.

    ``kind`` is ``disk`` for the Poincare disk and ``plane`` otherwise. ``groups`` are indices of ``group_names``.
    """

    title: str
    kind: str
    points: Floats
    ids: Sequence[str]
    names: Sequence[str]
    parents: Ints
    depth: Ints
    groups: Sequence[int]
    group_names: Sequence[str]
    caption: str = ""

    @property
    def unit_points(self) -> Floats:
        """The points within the unit disk; points of the plane are moved and scaled into it."""
        if self.kind == "disk":
            return self.points
        low, high = self.points.min(axis=0), self.points.max(axis=0)
        half = max(float((high - low).max()) / 2.0, 1e-12)
        return np.asarray((self.points - (low + high) / 2.0) / half)


def tree_page(drawing: TreeDrawing, text: str, charts: Sequence[Chart]) -> str:
    """The interactive page, with further charts below the tree. The same tree gives the same bytes."""
    script = interactive.chart_script() + "\n" + _script()
    style = interactive.chart_style() + _STYLE
    embedded = [interactive.embed_chart(chart) for chart in charts]
    figures = "\n".join(
        f"<figure><figcaption>{escape(' '.join((part['title'], part['subtitle'])))}</figcaption>{part['svg']}</figure>"
        for part in embedded
    )
    label = f"{drawing.title}: {len(drawing.ids):,} nodes"
    caption = f"<p>{escape(drawing.caption)}</p>" if drawing.caption else ""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{content_security_policy(style, script)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(drawing.title)}</title>\n<style>{style}</style>\n</head>\n<body>\n"
        f"<h1>{escape(drawing.title)}</h1>\n<p>{escape(text)}</p>\n"
        '<div class="tree-tools"><label>Search <input id="tree-search" type="search" placeholder="name or id"></label>'
        '<button id="tree-collapse" type="button">Collapse groups</button>'
        '<button id="tree-reset" type="button">Reset</button><span id="tree-status" role="status"></span></div>\n'
        f'<canvas id="tree" role="img" tabindex="0" aria-label="{escape(label)}"></canvas>\n'
        '<div id="tree-tooltip" hidden></div>\n'
        f"{_legend(drawing.group_names)}\n{caption}\n"
        "<p>Scroll to zoom, drag to move, click a node to collapse or expand it. Press Enter in the search field for "
        "the next match.</p>\n"
        f'<script type="application/json" id="tree-data">{_data(drawing)}</script>\n'
        f"{figures}\n<script>{script}</script>\n</body>\n</html>\n"
    )


def _script() -> str:
    return (files("equipoise.domains.accounts") / "disk_chart.js").read_text(encoding="utf-8")


def _legend(names: Sequence[str]) -> str:
    entries = [
        f'<span><svg viewBox="0 0 10 10"><circle cx="5" cy="5" r="5" fill="{series_style(index)[0]}"/></svg>'
        f"{escape(name)}</span>"
        for index, name in enumerate(names)
        if name
    ]
    return f'<p class="groups">{"".join(entries)}</p>' if len(entries) > 1 else ""


def _data(drawing: TreeDrawing) -> str:
    points = drawing.unit_points
    content = {
        "kind": drawing.kind,
        "x": [round(value, 7) for value in points[:, 0].tolist()],
        "y": [round(value, 7) for value in points[:, 1].tolist()],
        "id": list(drawing.ids),
        "name": list(drawing.names),
        "parent": drawing.parents.tolist(),
        "depth": drawing.depth.tolist(),
        "group": list(drawing.groups),
        "colors": {
            "line": LIGHT["line"],
            "groups": [series_style(index)[0] for index in range(len(drawing.group_names))],
        },
    }
    # "</script>" in a name must not end the element.
    return json.dumps(content, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")


def tree_svg(drawing: TreeDrawing) -> str:
    """The tree as SVG for print: every node, links along geodesics, and names that do not overlap."""
    scale = PRINT_SIZE / 2.0 - PRINT_MARGIN

    def at(point: Floats) -> tuple[float, float]:
        return PRINT_SIZE / 2.0 + scale * float(point[0]), PRINT_SIZE / 2.0 - scale * float(point[1])

    points = drawing.unit_points
    caption = wrap(drawing.caption, CAPTION_LETTERS)
    line_height = LABEL_SIZE * 1.3
    header = LABEL_SIZE * 2.5 + line_height * len(caption)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 {-header:g} {PRINT_SIZE:g} {PRINT_SIZE + header:g}" '
        f'width="{PRINT_SIZE:g}" height="{PRINT_SIZE + header:g}" font-family="sans-serif" role="img">',
        f"<title>{escape(drawing.title)}</title>",
        f'<rect y="{-header:g}" width="100%" height="100%" fill="{LIGHT["paper"]}"/>',
        f'<text x="{PRINT_SIZE / 2:g}" y="{LABEL_SIZE * 1.6 - header:g}" text-anchor="middle" '
        f'font-size="{LABEL_SIZE * 1.4:g}">{escape(drawing.title)}</text>',
        *(
            f'<text x="{PRINT_SIZE / 2:g}" y="{LABEL_SIZE * 1.8 - header + line_height * line:g}" text-anchor="middle" '
            f'font-size="{LABEL_SIZE:g}">{escape(text)}</text>'
            for line, text in enumerate(caption, 1)
        ),
    ]
    if drawing.kind == "disk":
        parts.append(
            f'<circle cx="{PRINT_SIZE / 2:g}" cy="{PRINT_SIZE / 2:g}" r="{scale:g}" fill="none" '
            f'stroke="{LIGHT["line"]}"/>'
        )
    paths = []
    for node, parent in enumerate(drawing.parents.tolist()):
        if parent >= 0:
            ends = points[node].tolist(), points[parent].tolist()
            line = poincare_geodesic(*ends) if drawing.kind == "disk" else np.array(ends)
            paths.append("M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in map(at, line)))
    parts.append(f'<path d="{"".join(paths)}" fill="none" stroke="{LIGHT["line"]}" stroke-width="0.6"/>')
    sizes = _subtree_sizes(drawing.parents)
    for node in range(len(points) - 1, -1, -1):
        x, y = at(points[node])
        radius = min(1.6 + 0.7 * np.log2(sizes[node]), 8.0)
        color = series_style(drawing.groups[node])[0]
        parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}" fill="{color}"/>')
    parts += _svg_labels(drawing, [at(point) for point in points], sizes)
    return "\n".join([*parts, "</svg>"]) + "\n"


def _subtree_sizes(parents: Ints) -> Ints:
    """The number of nodes of each subtree; parents come before their children."""
    sizes = np.ones(len(parents), dtype=np.int64)
    for node in range(len(parents) - 1, -1, -1):
        if parents[node] >= 0:
            sizes[parents[node]] += sizes[node]
    return sizes


_Box = tuple[float, float, float, float]
"""Left, top, right and bottom."""


def _overlap(a: _Box, b: _Box) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


def _svg_labels(drawing: TreeDrawing, places: Sequence[tuple[float, float]], sizes: Ints) -> list[str]:
    """Names, those of the largest subtrees first; a name that would overlap another one is left out."""
    boxes: list[_Box] = []
    labels = []
    for node in np.argsort(-sizes, kind="stable").tolist():
        text = shorten_label(drawing.names[node], 28)
        x, y = places[node]
        width = LETTER * LABEL_SIZE * len(text)
        # To the right of the node, or to the left.
        candidates = [
            (left, y - LABEL_SIZE / 2.0, left + width, y + LABEL_SIZE / 2.0)
            for left in (x + 6.0, x - 6.0 - width)
            if left >= 0.0 and left + width <= PRINT_SIZE
        ]
        box = next((box for box in candidates if not any(_overlap(box, other) for other in boxes)), None)
        if box is None:
            continue
        boxes.append(box)
        left = box[0]
        labels.append(
            f'<text x="{left:.1f}" y="{y:.1f}" font-size="{LABEL_SIZE:g}" dominant-baseline="middle" '
            f'stroke="{LIGHT["paper"]}" stroke-width="3" paint-order="stroke">{escape(text)}</text>'
        )
        if len(labels) >= MAX_PRINTED_LABELS:
            break
    return labels


def tree_png(drawing: TreeDrawing, scale: float = 2.0) -> bytes:
    """The same as PNG."""
    converter = require_extra("vl_convert", extra="report")
    png: bytes = converter.svg_to_png(tree_svg(drawing), scale=scale)
    return png


def write_drawing(drawing: TreeDrawing, stem: Path) -> None:
    """Write the tree as ``stem.svg`` and ``stem.png``."""
    write_bytes(stem.with_name(f"{stem.name}.svg"), tree_svg(drawing).encode())
    write_bytes(stem.with_name(f"{stem.name}.png"), tree_png(drawing))
