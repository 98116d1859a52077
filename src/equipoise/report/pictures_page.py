"""A few charts as one HTML file: drawings, style and script inside it, and nothing fetched."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from equipoise.report.charts import interactive
from equipoise.report.charts.chart import Chart
from equipoise.report.html.render import policy

_LOOK = """\
:root{color-scheme:light dark}
body{margin:0 auto;max-width:60rem;padding:1.5rem;font-family:sans-serif;line-height:1.45;
background:var(--chart-paper);color:var(--chart-ink)}
h1{font-size:1.3rem}figure{margin:0 0 2.5rem;overflow-x:auto}
p{color:var(--chart-soft);font-size:.9rem}
"""


def pictures_page(title: str, text: str, charts: Sequence[Chart]) -> str:
    """The page as text; pointing at a mark shows what it says. The same charts give the same bytes."""
    style, script = interactive.style() + _LOOK, interactive.script()
    figures = "\n".join(f"<figure>{interactive.mount(chart)['svg']}</figure>" for chart in charts)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy(style, script)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{style}</style>\n</head>\n<body>\n"
        f"<h1>{escape(title)}</h1>\n<p>{escape(text)}</p>\n{figures}\n<script>{script}</script>\n"
        "</body>\n</html>\n"
    )
