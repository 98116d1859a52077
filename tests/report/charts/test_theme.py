"""The palettes have enough contrast, and the dark palette replaces the light one colour by colour."""

from __future__ import annotations

import pytest

from equipoise.report.charts.chart import DARK, FIRST_DARK_STEP, HEAT_STEPS, LIGHT, heat_color, series_style


def luminance(colour: str) -> float:
    """Relative luminance as the accessibility guidelines (WCAG 2.1) define it."""
    channels = [int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    linear = [channel / 12.92 if channel <= 0.03928 else ((channel + 0.055) / 1.055) ** 2.4 for channel in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(first: str, second: str) -> float:
    lighter, darker = sorted((luminance(first), luminance(second)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def test_light_and_dark_palettes_have_the_same_names() -> None:
    assert list(LIGHT) == list(DARK)
    assert len(set(LIGHT.values())) == len(LIGHT)


@pytest.mark.parametrize("palette", [LIGHT, DARK], ids=["light", "dark"])
def test_texts_have_enough_contrast_to_the_background(palette: dict[str, str]) -> None:
    for name in ("ink", "soft", "chance"):
        assert contrast(palette[name], palette["paper"]) >= 4.5, name
    assert contrast(palette["soft"], palette["few"]) >= 4.5


@pytest.mark.parametrize("palette", [LIGHT, DARK], ids=["light", "dark"])
def test_marks_have_enough_contrast_to_the_background(palette: dict[str, str]) -> None:
    marks = [name for name in palette if name.startswith("system")] + ["lead", "behind"]
    for name in marks:
        assert contrast(palette[name], palette["paper"]) >= 4.5, name


@pytest.mark.parametrize("palette", [LIGHT, DARK], ids=["light", "dark"])
def test_texts_have_enough_contrast_to_every_heat_colour(palette: dict[str, str]) -> None:
    for step in range(HEAT_STEPS):
        text = palette["on_high" if step >= FIRST_DARK_STEP else "on_low"]
        assert contrast(text, palette[f"heat{step}"]) >= 4.5, step


@pytest.mark.parametrize("palette", [LIGHT, DARK], ids=["light", "dark"])
def test_heat_colours_have_increasing_contrast(palette: dict[str, str]) -> None:
    steps = [contrast(palette[f"heat{step}"], palette["paper"]) for step in range(HEAT_STEPS)]
    assert steps == sorted(steps)


def test_sixty_four_systems_have_different_styles() -> None:
    assert len({series_style(index) for index in range(64)}) == 64


def test_neighbouring_systems_differ_in_colour_and_shape() -> None:
    for index in range(30):
        style, next_style = series_style(index), series_style(index + 1)
        assert style[0] != next_style[0]
        assert style[1] != next_style[1] or index % 8 == 7


def test_heat_values_outside_the_range_are_clipped() -> None:
    assert heat_color(-0.1) == heat_color(0.0)
    assert heat_color(1.0) == heat_color(2.0) == (LIGHT["heat6"], LIGHT["on_high"])
