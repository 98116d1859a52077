"""One HTML page for a whole benchmark: the answer, quality against cost, and every data set."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from equipoise.domains.bench.charts import CostPoint, cost_chart
from equipoise.errors import EquipoiseError, MissingExtraError
from equipoise.io.atomic import write_text
from equipoise.io.json import parse_json
from equipoise.io.text import open_text
from equipoise.report.answer import SAMPLE_SIZE
from equipoise.report.html import charts as interactive
from equipoise.report.html.render import content_security_policy
from equipoise.report.publish import ReportOptions, write_report
from equipoise.report.view import View
from equipoise.runs.experiment_folder import RESULTS, RUNS, folder_names
from equipoise.runs.store import find_runs

if TYPE_CHECKING:
    from equipoise.config import StatsConfig

_STYLE = """\
:root{color-scheme:light dark}
body{margin:0 auto;max-width:70rem;padding:1.5rem;font-family:sans-serif;line-height:1.45;
background:var(--chart-paper);color:var(--chart-ink)}
h1{font-size:1.4rem}h2{font-size:1.15rem;margin-top:2.5rem}
.decision{font-size:1.1rem;font-weight:600}
.table{overflow-x:auto}table{border-collapse:collapse;font-variant-numeric:tabular-nums}
th,td{padding:.25rem .5rem;text-align:right;border-bottom:1px solid var(--chart-line)}
td{white-space:nowrap}th.left,td.left{text-align:left}figure{margin:1.5rem 0;overflow-x:auto}
p.remark{color:var(--chart-soft);font-size:.9rem;margin:.3rem 0}
"""


def stored_suite(path: str | Path) -> Mapping[str, Any] | None:
    """The content of results.json of a benchmark with several data sets; None for any other folder."""
    file = Path(path) / RESULTS
    if not file.is_file():
        return None
    try:
        content: Any = parse_json(open_text(file))
    except EquipoiseError:
        return None
    known = isinstance(content, dict) and {"answers", "datasets", "decision"} <= set(content)
    return content if known and len(content["datasets"]) > 1 else None


def write_suite_page(
    folder: str | Path,
    output: str | Path,
    config: StatsConfig,
    *,
    charts: bool = True,
    progress: Callable[[str], None] = lambda message: None,
) -> str:
    """Write the page of a suite, and next to it a full report per data set; returns the decision."""
    content = stored_suite(folder)
    assert content is not None
    target = Path(output)
    names = [each["name"] for each in content["datasets"]]
    places = folder_names(names)
    links: dict[str, str] = {}
    for name in names:
        progress(f"writing {name}")
        page = target.with_name(f"{target.stem}-{places[name]}{target.suffix or '.html'}")
        runs = [("", run) for run in find_runs(Path(folder) / RUNS / places[name])]
        write_report(runs, page, ReportOptions(config=config, charts=charts))
        links[name] = page.name
    write_text(target, suite_html(content, links, charts=charts))
    return View.from_dict(content["answers"][0]).answer.headline


def suite_html(content: Mapping[str, Any], links: Mapping[str, str] | None = None, *, charts: bool = True) -> str:
    """The page of ``BenchComparison.to_dict()``; ``links`` are the full reports by data set."""
    views = [View.from_dict(each) for each in content["answers"]]
    style, script = interactive.chart_style() + _STYLE, interactive.chart_script()
    sections = []
    n_suite = len(views) - len(content["datasets"])  # 1 if there is an aggregate, else 0
    for view in views[:n_suite]:
        sections += [_section(view, "h1", ""), _figure(suite_points(content), "mean score") if charts else ""]
    for place, (view, dataset) in enumerate(zip(views[n_suite:], content["datasets"], strict=True)):
        level = "h2" if n_suite or place else "h1"
        sections += [
            _section(view, level, (links or {}).get(dataset["name"], "")),
            _figure(data_points(dataset), dataset["primary"]) if charts else "",
        ]
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{content_security_policy(style, script)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>Benchmark: {escape(views[0].title)}</title>\n<style>{style}</style>\n</head>\n<body>\n"
        + "\n".join(filter(None, sections))
        + f"\n<script>{script}</script>\n</body>\n</html>\n"
    )


def _section(view: View, level: str, link: str) -> str:
    answer = view.answer
    heads = "".join(f"<th{'' if each.right else ' class=left'}>{escape(each.head)}</th>" for each in answer.columns)
    rows = "\n".join(
        "<tr>"
        + "".join(f"<td{'' if each.right else ' class=left'}>{escape(each.cells[row])}</td>" for each in answer.columns)
        + "</tr>"
        for row in range(len(answer.columns[0].cells))
    )
    findings = [finding for finding in answer.findings if finding.code != SAMPLE_SIZE]
    notes = [*answer.warnings, *answer.notes, *map(str, findings)]
    remarks = "\n".join(f'<p class="remark">{escape(note)}</p>' for note in notes)
    more = f'<p><a href="{escape(link)}">Every pair, slice and unit</a></p>' if link else ""
    return (
        f'<{level}>{escape(view.title)}</{level}>\n<p class="decision">{escape(answer.headline)}</p>\n'
        f'<div class="table"><table><thead><tr>{heads}</tr></thead>\n'
        f"<tbody>{rows}</tbody></table></div>\n{remarks}\n{more}"
    )


def _figure(points: Sequence[CostPoint], metric: str) -> str:
    """The chart as inline SVG; empty without the converter or with fewer than two points."""
    if len(points) < 2:
        return ""
    try:
        return f"<figure>{interactive.embed_chart(cost_chart(points, metric))['svg']}</figure>"
    except MissingExtraError:
        return ""


def data_points(dataset: Mapping[str, Any]) -> list[CostPoint]:
    """The systems of a data set whose cost is known."""
    found = []
    for system in dataset["systems"]:
        rate = system["cost"].get("documents_per_second")
        estimate = next(each for each in system["estimates"] if each["metric"] == dataset["primary"])
        if rate and estimate["value"] is not None:
            low, high = (estimate["interval"][end] for end in ("low", "high"))
            value = float(estimate["value"])
            found.append(
                CostPoint(
                    system["name"], 1000 / rate, value, value if low is None else low, value if high is None else high
                )
            )
    return found


def suite_points(content: Mapping[str, Any]) -> list[CostPoint]:
    """The systems of the aggregate whose cost is known on every data set."""
    if content.get("aggregate") is None:
        return []
    times: dict[str, list[float]] = {}
    for dataset in content["datasets"]:
        for point in data_points(dataset):
            times.setdefault(point.system, []).append(point.milliseconds)
    count = len(content["datasets"])
    return [
        CostPoint(
            row["system"],
            sum(times[row["system"]]) / count,
            row["mean_score"],
            row["score_interval"][0],
            row["score_interval"][1],
        )
        for row in content["aggregate"]["rows"]
        if len(times.get(row["system"], ())) == count
    ]
