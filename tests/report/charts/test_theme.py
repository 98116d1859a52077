"""The palette can be read on both grounds, and dark ground can be had by replacing colours one by one."""

from __future__ import annotations

import pytest

from equipoise.report.charts.chart import DARK, FIRST_DARK_STEP, HEAT_STEPS, LIGHT, heat_color, series_style


def luminance(colour: str) -> float:
    """Relative luminance as the accessibility guidelines (WCAG 2.1) define it."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    lighter, darker = sorted((luminance(one), luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def test_every_light_colour_has_one_dark_partner() -> None:
    assert list(LIGHT) == list(DARK)
    assert len(set(LIGHT.values())) == len(LIGHT)


@pytest.mark.parametrize("palette", [LIGHT, DARK], ids=["light", "dark"])
def test_texts_stand_out_from_the_paper(palette: dict[str, str]) -> None:
    for name in ("ink", "soft", "chance"):
        assert contrast(palette[name], palette["paper"]) >= 4.5, name
    assert contrast(palette["soft"], palette["few"]) >= 4.5


@pytest.mark.parametrize("palette", [LIGHT, DARK], ids=["light", "dark"])
def test_marks_stand_out_from_the_paper(palette: dict[str, str]) -> None:
    marks = [name for name in palette if name.startswith("system")] + ["lead", "behind"]
    for name in marks:
        assert contrast(palette[name], palette["paper"]) >= 4.5, name


@pytest.mark.parametrize("palette", [LIGHT, DARK], ids=["light", "dark"])
def test_texts_stand_out_from_every_step_of_the_heat(palette: dict[str, str]) -> None:
    for step in range(HEAT_STEPS):
        text = palette["on_high" if step >= FIRST_DARK_STEP else "on_low"]
        assert contrast(text, palette[f"heat{step}"]) >= 4.5, step


@pytest.mark.parametrize("palette", [LIGHT, DARK], ids=["light", "dark"])
def test_more_heat_is_farther_from_the_paper(palette: dict[str, str]) -> None:
    steps = [contrast(palette[f"heat{step}"], palette["paper"]) for step in range(HEAT_STEPS)]
    assert steps == sorted(steps)


def test_sixty_four_systems_look_different() -> None:
    assert len({series_style(place) for place in range(64)}) == 64


def test_systems_side_by_side_differ_in_colour_and_in_shape() -> None:
    for place in range(30):
        one, other = series_style(place), series_style(place + 1)
        assert one[0] != other[0]
        assert one[1] != other[1] or place % 8 == 7


def test_shades_beyond_the_ends_take_the_last_colour() -> None:
    assert heat_color(-0.1) == heat_color(0.0)
    assert heat_color(1.0) == heat_color(2.0) == (LIGHT["heat6"], LIGHT["on_high"])
