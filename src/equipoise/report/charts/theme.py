"""The theme of all charts: a light and a dark palette, a font, and shapes of series.

A chart is drawn with the light palette. The dark version replaces each colour of ``LIGHT`` by the colour of the
same name in ``DARK``: ``render`` does it in a file, the style sheet of ``html.charts`` in a page. So every colour
has a name and all light colours differ. No information is in colour alone: shapes, letters, dashes or texts
repeat it.
"""

from __future__ import annotations

from typing import Any, Final

Spec = dict[str, Any]
"""A Vega-Lite specification, or a part of one."""

SCHEMA: Final = "https://vega.github.io/schema/vega-lite/v6.json"
FONT: Final = "sans-serif"
"""The generic family, available in every browser and converter."""
TEXT_SIZE: Final = 13
SMALL_SIZE: Final = 12
TITLE_SIZE: Final = 15

# The colours of systems are those of Okabe and Ito, darkened to a contrast of 4.5 with white.
LIGHT: Final[dict[str, str]] = {
    "paper": "#ffffff",
    "ink": "#1c2530",
    "soft": "#56616e",
    "line": "#a9b4c0",
    "grid": "#e4e9ef",
    "lead": "#0069a8",
    "behind": "#5b6774",
    "chance": "#a03a0c",
    "few": "#eef0f2",
    "system0": "#0072b2",
    "system1": "#bd4f00",
    "system2": "#007a5a",
    "system3": "#8e4585",
    "system4": "#806500",
    "system5": "#4d5967",
    "system6": "#a3244a",
    "system7": "#2f4aa8",
    "heat0": "#f3f7fb",
    "heat1": "#dce8f4",
    "heat2": "#bfd6ec",
    "heat3": "#9cc1e3",
    "heat4": "#72a7d5",
    "heat5": "#2e74ae",
    "heat6": "#0b4c85",
    "on_low": "#17212c",
    "on_high": "#fdfeff",
}
DARK: Final[dict[str, str]] = {
    "paper": "#14181d",
    "ink": "#e8ecf0",
    "soft": "#a7b1bd",
    "line": "#5a6673",
    "grid": "#2b333c",
    "lead": "#5db7f0",
    "behind": "#a2adb9",
    "chance": "#ff9b73",
    "few": "#1e242b",
    "system0": "#56b4e9",
    "system1": "#ff9e4a",
    "system2": "#3fd1a4",
    "system3": "#e29bd0",
    "system4": "#e6c229",
    "system5": "#b9c3ce",
    "system6": "#ff7d97",
    "system7": "#9db1ff",
    "heat0": "#1a232c",
    "heat1": "#1c3143",
    "heat2": "#1e415c",
    "heat3": "#225274",
    "heat4": "#2a6690",
    "heat5": "#6fabd9",
    "heat6": "#b9daf3",
    "on_low": "#eff4f9",
    "on_high": "#0d1319",
}
SHAPES: Final = (
    "circle",
    "square",
    "triangle-up",
    "diamond",
    "cross",
    "triangle-down",
    "triangle-right",
    "triangle-left",
)
SYSTEM_COLOURS: Final = 8
HEAT_STEPS: Final = 7
FIRST_DARK_STEP: Final = 5
"""From this heatmap step on, text has the colour ``on_high``."""


def series_style(index: int) -> tuple[str, str]:
    """The colour and the shape of the series with this index; there are 64 distinct pairs.

    >>> series_style(0), series_style(8)
    (('#0072b2', 'circle'), ('#0072b2', 'square'))
    """
    color = LIGHT[f"system{index % SYSTEM_COLOURS}"]
    return color, SHAPES[(index + index // SYSTEM_COLOURS) % len(SHAPES)]


def heat_color(shade: float) -> tuple[str, str]:
    """The colours of a cell with this shade (0 to 1) and of its text.

    There are steps instead of a gradient because each colour needs a dark counterpart.

    >>> heat_color(0.0), heat_color(1.0)
    (('#f3f7fb', '#17212c'), ('#0b4c85', '#fdfeff'))
    """
    step = min(max(int(shade * HEAT_STEPS), 0), HEAT_STEPS - 1)
    return LIGHT[f"heat{step}"], LIGHT["on_high" if step >= FIRST_DARK_STEP else "on_low"]


def theme_config() -> Spec:
    """The Vega-Lite configuration of all charts."""
    text = {"font": FONT, "fontSize": SMALL_SIZE, "fill": LIGHT["ink"]}
    axis = {
        "aria": False,
        "labelFont": FONT,
        "titleFont": FONT,
        "labelFontSize": SMALL_SIZE,
        "titleFontSize": SMALL_SIZE,
        "titleFontWeight": "normal",
        "labelColor": LIGHT["soft"],
        "titleColor": LIGHT["soft"],
        "domainColor": LIGHT["line"],
        "tickColor": LIGHT["line"],
        "gridColor": LIGHT["grid"],
        "tickSize": 4,
        "labelPadding": 4,
        "titlePadding": 8,
    }
    return {
        "background": LIGHT["paper"],
        "padding": 14,
        "font": FONT,
        "view": {"stroke": None},
        "axis": axis,
        "text": {**text, "baseline": "middle", "aria": False},
        "rule": {"aria": False},
        "tick": {"aria": False},
        "title": {
            "anchor": "start",
            "frame": "bounds",
            "font": FONT,
            "fontSize": TITLE_SIZE,
            "fontWeight": "bold",
            "color": LIGHT["ink"],
            "subtitleFont": FONT,
            "subtitleFontSize": SMALL_SIZE,
            "subtitleColor": LIGHT["soft"],
            "subtitlePadding": 5,
            "offset": 16,
        },
    }
