"""Charts: one specification each, drawn as PNG, as SVG and in the page."""

from equipoise.report.charts.build import charts_of
from equipoise.report.charts.chart import Chart

__all__ = ["Chart", "charts_of"]
