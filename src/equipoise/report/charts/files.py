"""The charts of a comparison as files beside its results."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from equipoise.errors import MissingExtraError
from equipoise.runs.store import load_run

if TYPE_CHECKING:
    from equipoise.stats.comparison import Comparison

CHART_FOLDER = "visualizations"


def write_charts(folder: Path, runs: Sequence[Path], comparison: Comparison | None) -> list[Path]:
    """Every chart of these run directories as PNG and SVG; none where nothing is installed to draw them."""
    from equipoise.report.build import build_page
    from equipoise.report.charts.render import write_charts

    page = build_page([load_run(path, evidence=False) for path in runs], comparison, texts=False)
    try:
        return write_charts(page, folder / CHART_FOLDER)
    except MissingExtraError:
        return []
