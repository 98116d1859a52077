"""Write the charts of a comparison into its results folder."""

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
    """Every chart of these run directories as PNG and SVG; none if the converter is not installed."""
    from equipoise.report.build import build_report
    from equipoise.report.charts.render import write_charts

    report = build_report([load_run(path, evidence=False) for path in runs], comparison, exports=False)
    try:
        return write_charts(report, folder / CHART_FOLDER)
    except MissingExtraError:
        return []
