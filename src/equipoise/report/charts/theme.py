"""The theme of all charts: a light and a dark palette, a font, and shapes of series.

A chart is drawn with the light palette. The dark version replaces each colour of ``LIGHT`` by the colour of the
same name in ``DARK``: ``render`` does it in a file, the style sheet of ``html.charts`` in a page. So every colour
has a name and all light colours differ. No information is in colour alone: shapes, letters, dashes or texts
repeat it.
"""

from __future__ import annotations

from importlib.resources import files
from tomllib import loads
from typing import Any, Final

Spec = dict[str, Any]
"""A Vega-Lite specification, or a part of one."""

SCHEMA: Final = "https://vega.github.io/schema/vega-lite/v6.json"
FONT: Final = "sans-serif"
"""The generic family, available in every browser and converter."""
TEXT_SIZE: Final = 13
SMALL_SIZE: Final = 12
TITLE_SIZE: Final = 15

_PALETTES = loads((files("equipoise.report.charts") / "palettes.toml").read_text(encoding="utf-8"))
LIGHT: Final[dict[str, str]] = _PALETTES["light"]
DARK: Final[dict[str, str]] = _PALETTES["dark"]
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
    """The colour and the shape of the series with this index; there are 64 distinct pairs."""
    color = LIGHT[f"system{index % SYSTEM_COLOURS}"]
    return color, SHAPES[(index + index // SYSTEM_COLOURS) % len(SHAPES)]


def heat_color(shade: float) -> tuple[str, str]:
    """The colours of a cell with this shade (0 to 1) and of its text.

    There are steps instead of a gradient because each colour needs a dark counterpart.
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
