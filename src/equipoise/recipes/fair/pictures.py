"""The charts of a comparison as files beside its results."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from equipoise.errors import MissingExtraError
from equipoise.run.store import read_run
from equipoise.stats.comparison import Comparison

VISUALIZATIONS = "visualizations"


def write_pictures(folder: Path, runs: Sequence[Path], comparison: Comparison | None) -> list[Path]:
    """Every chart of these run directories as PNG and SVG; none where nothing is installed to draw them."""
    from equipoise.report.charts.render import write_charts
    from equipoise.report.page.build import build_page

    page = build_page([read_run(path, evidence=False) for path in runs], comparison, texts=False)
    try:
        return write_charts(page, folder / VISUALIZATIONS)
    except MissingExtraError:
        return []
