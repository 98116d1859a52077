"""``eq report``: an HTML report of runs. ``eq export``: tables and files for papers and other programs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

import click

from equipoise.cli import options
from equipoise.cli import output as exits
from equipoise.cli.inputs import separate_experiments
from equipoise.cli.output import Output, pass_output
from equipoise.cli.output_files import check_is_page, check_suffix, write_output
from equipoise.errors import ParameterError
from equipoise.io.atomic import write_text
from equipoise.metrics.parser import catalogue_with
from equipoise.runs.compare import compare
from equipoise.runs.evaluate import at_confidence_level, with_metrics
from equipoise.runs.experiment_folder import check_writable
from equipoise.runs.run_folder import find_runs, load_run

if TYPE_CHECKING:
    from equipoise.config import StatsConfig
    from equipoise.report.publish import ReportOptions, StoredExperiment

REPORT_HELP = """
\b
  eq report results/ -o report.html
  eq report results/bm25 ours=results/7 --primary nDCG@10 -o report.html
  eq report results/ --charts results/visualizations

Write an HTML report of one run or several: leaderboard, tie bands, pairs, slices, individual
queries, findings and protocol. It needs no network and no server. RUN is a run directory, or a
folder with run directories; NAME=path renames a system. A folder with several data sets or tasks
gives several linked files, next to the report.
"""


SUFFIXES = (".html", ".htm")


@options.command(help=REPORT_HELP, short_help="Write an HTML report of results.")
@click.argument("runs", nargs=-1, metavar="RUN [RUN ...]")
@click.option("-o", "--output", metavar="FILE", default="report.html", show_default=True, help="The HTML file.")
@options.primary_option
@options.stats_options(of_runs=True)
@click.option("--title", metavar="TEXT", default="", help="The title of the page.")
@click.option("--charts", metavar="FOLDER", help="Also write the charts here, as PNG and SVG.")
@click.option("--no-charts", "plain", is_flag=True, help="Leave out the charts.")
@options.output_options
@pass_output
def report(
    out: Output,
    runs: tuple[str, ...],
    output: str,
    primary: str | None,
    config: StatsConfig,
    title: str,
    charts: str | None,
    plain: bool,
) -> int:
    """See ``REPORT_HELP``."""
    if not runs:
        raise ParameterError("there is no run to report", hint="eq report results/ -o report.html")
    if charts is not None:
        check_writable(charts)
    check_writable(output, example="report.html")
    if Path(output).suffix.casefold() not in SUFFIXES:
        raise ParameterError(
            f"a report is an HTML file, and {output} does not end in .html",
            hint=f"write -o {Path(output).with_suffix('.html')}; eq export writes other formats",
        )
    if check_is_page(output):
        out.note(f"{output} is an earlier report, and is replaced")
    from equipoise.domains.bench.leaderboard import stored_page
    from equipoise.domains.bench.report import stored_suite
    from equipoise.domains.places.run_folders import has_views
    from equipoise.report.publish import ReportOptions, StoredExperiment, chart_note, write_report

    if len(runs) == 1 and stored_suite(runs[0]) is not None:
        _check_not_given(
            {"--primary": primary},
            "a benchmark with several data sets",
            f"report one of them: eq report {runs[0]}/runs/NAME",
        )
        experiment = StoredExperiment.of(runs[0], named_runs(runs))
        chosen = ReportOptions(
            config=config,
            config_of=options.stats_of_runs,
            charts=not plain,
            charts_folder=charts,
            title=title,
            folder_notes=experiment.notes,
        )
        return _report_suite(out, experiment, runs[0], output, chosen)
    if len(runs) == 1 and (stored := stored_page(runs[0])) is not None:
        _check_not_given(
            {"--primary": primary, "--charts": charts},
            "the results of eq leaderboard",
            "repeat eq leaderboard with other options",
        )
        return _copy_page(out, stored, output, title)
    if has_views(named := named_runs(runs)):
        chosen = ReportOptions(
            primary, config, options.stats_of_runs, charts=not plain, charts_folder=charts, title=title
        )
        return _report_places(out, named, output, chosen)
    with out.progress(0) as step:
        experiment = StoredExperiment.of(runs[0], named) if len(runs) == 1 else StoredExperiment(named)
        chosen = ReportOptions(
            primary,
            config,
            options.stats_of_runs,
            charts=not plain,
            charts_folder=charts,
            title=title,
            view=experiment.view,
            folder_notes=experiment.notes,
        )
        with separate_experiments(runs):
            page = write_report(experiment.runs, output, chosen, split=len(runs) == 1, progress=step)
    for caution in (*page.cautions, *experiment.notes):
        out.note(f"caution: {caution}")
    if out.json:
        systems = [system.name for system in page.systems]
        cautions = [*page.cautions, *experiment.notes]
        out.data({"report": output, "systems": systems, "verdict": page.answer.headline, "cautions": cautions})
    else:
        out.text(page.answer.headline)
        out.note(f"wrote {output}: open it in a browser{'' if plain else chart_note()}")
        for name, file in page.related:
            out.note(f"wrote {Path(output).with_name(file)}: {name}")
        if charts is not None:
            out.note(f"wrote the charts to {charts}")
    return exits.FAILED_UNITS if page.cautions else exits.DONE


def _check_not_given(options: Mapping[str, str | None], subject: str, hint: str) -> None:
    for option, value in options.items():
        if value:
            raise ParameterError(f"{option} does not apply to {subject}", hint=hint)


def _copy_page(out: Output, page: Path, output: str, title: str) -> int:
    """Copy a page that is already written, under another title if one is given."""
    text = page.read_text(encoding="utf-8")
    if title:
        text = re.sub(r"(<(title|h1)>).*?(</\2>)", lambda match: f"{match[1]}{escape(title)}{match[3]}", text, count=2)
    write_text(output, text)
    if out.json:
        out.data({"report": output})
    out.note(f"wrote {output}: open it in a browser")
    return exits.DONE


def _report_suite(out: Output, experiment: StoredExperiment, folder: str, output: str, chosen: ReportOptions) -> int:
    """Write the page of a benchmark with several data sets, and a report per data set."""
    from equipoise.domains.bench.report import write_suite_page

    with out.progress(0) as step:
        headline = write_suite_page(folder, [path for _, path in experiment.runs], output, chosen, progress=step)
    for caution in experiment.notes:
        out.note(f"caution: {caution}")
    if out.json:
        out.data({"report": output, "decision": headline})
    else:
        out.text(headline)
    out.note(f"wrote {output}: open it in a browser; it links to a report per data set, in the same folder")
    return exits.DONE


def _report_places(out: Output, runs: list[tuple[str, Path]], output: str, chosen: ReportOptions) -> int:
    """Write the page of scored next-place systems, and the full reports next to it."""
    from equipoise.domains.places.run_folders import write_places_page
    from equipoise.report.publish import chart_note

    with out.progress(0) as step:
        page = write_places_page(runs, output, chosen, step)
    for caution in page.cautions:
        out.note(f"caution: {caution}")
    if out.json:
        out.data({"report": output, "systems": page.systems, "verdict": page.headline, "cautions": list(page.cautions)})
    else:
        out.text(page.headline)
        out.note(f"wrote {output}: open it in a browser{chart_note() if chosen.charts else ''}")
        for title, file in page.other_pages.items():
            out.note(f"wrote {file}: {title}, with every pair, slice and visit")
    if page.not_compared:
        out.note(f"not all systems are compared: {page.not_compared}")
    return exits.FAILED_UNITS if page.cautions else exits.DONE


def named_runs(words: tuple[str, ...]) -> list[tuple[str, Path]]:
    """The run directories of the command line, each once; a name that is given for one of a folder is its name."""
    named: dict[Path, tuple[str, Path]] = {}
    for word in words:
        name, path = _named(word)
        runs = find_runs(path)
        if name and len(runs) > 1:
            raise ParameterError(
                f"{path} has {len(runs)} runs, and {name} can name only one",
                hint="choose one run directory, or omit the name",
            )
        for run in runs:
            if name or run.resolve() not in named:
                named[run.resolve()] = (name, run)
    return list(named.values())


def _named(word: str) -> tuple[str, str]:
    """``NAME=path``, unless it is the path of an existing file.

    >>> _named("ours=results/7"), _named("results/7")
    (('ours', 'results/7'), ('', 'results/7'))
    """
    name, equals, path = word.partition("=")
    return ("", word) if not equals or Path(word).exists() else (name, path)


HELP = """
\b
  eq export results/ --to latex -o table.tex
  eq export results/bm25 results/minilm --to md --primary nDCG@10
  eq export results/bm25 --to csv --units

Export one run, or several and their comparison. RUN is a run directory, such
as those written with -o by eq score, eq fair compare, eq demo or eq bench run, or a folder with
run directories. For a folder with several data sets or tasks, latex and md have one table for each of them.

\b
  latex   a booktabs table with tie bands, intervals and a complete caption
  md      a table in Markdown
  csv     one row per system and metric; with --units one row per query
  json    everything, as eq compare --json writes it
  trec    the retrieved lists of one run, as a TREC run file
  card    the metadata of a Hugging Face model card, as YAML
  bibtex  references for the metrics, intervals and test
"""

FORMATS = options.names_in("equipoise.report.export", "FORMATS")
ALONE = ("trec",)
"""Formats that need no comparison."""
SEVERAL = {"latex": "% {name}\n{text}", "md": "## {name}\n\n{text}"}
"""Formats that have one table per data set or task, each under its name."""


@options.command(help=HELP, short_help="Export results for papers and other programs.")
@click.argument("runs", nargs=-1, metavar="RUN [RUN ...]")
@click.option(
    "--to",
    type=options.ChoiceWithHint("format", FORMATS),
    help="The format.  [required, or --json]",
)
@click.option("-o", "--output", metavar="FILE", help="The file; default: standard output.")
@click.option("--units", is_flag=True, help="With --to csv: one row per query.")
@click.option(
    "--formulas/--no-formulas",
    default=False,
    help="With --to csv: keep cells that start with =, +, - or @; by default they are escaped.",
)
@options.primary_option
@options.stats_options(of_runs=True)
@options.metric_option
@options.plugin_option
@partial(options.output_options, json_help="The same as --to json.")
@pass_output
def export(
    out: Output,
    runs: tuple[str, ...],
    to: str | None,
    output: str | None,
    units: bool,
    formulas: bool,
    primary: str | None,
    metrics: tuple[str, ...],
    config: StatsConfig,
    plugins: tuple[str, ...],
) -> int:
    """See ``HELP``."""
    if not runs:
        raise ParameterError("there is nothing to export", hint="eq export results/ --to md")
    to = out.format_of(to)
    if to is None:
        raise ParameterError("--to is missing", hint=f"choose a format: {', '.join(FORMATS())}")
    if output is not None:
        check_suffix(output, to)
    from equipoise.report.export import export as written
    from equipoise.report.publish import StoredExperiment, comparable_groups

    catalogue, found = catalogue_with(plugins), [("", path) for path in find_runs(*runs)]
    experiment = StoredExperiment.of(runs[0], found) if len(runs) == 1 else StoredExperiment(found)
    groups = comparable_groups(experiment.runs) if len(runs) == 1 else {"": found}
    if len(groups) > 1 and to not in SEVERAL:
        folder = next(iter(groups.values()))[0][1].parent
        raise ParameterError(
            f"{runs[0]} has runs on {len(groups)} data sets or tasks, and {to} holds one",
            hint=f"export one of them: eq export {folder} --to {to}",
        )
    texts, cautions = [], []
    each = separate_experiments(runs, f"eq export {{runs}} --to {to}")
    with each, out.progress(len(experiment.runs) + len(groups)) as step:
        for name, group in groups.items():
            stored = []
            for _, path in group:
                step(f"reading {path.name}")
                run = load_run(path)
                requested = [*(metrics or run.result.names), *([primary] if primary else [])]
                stored.append(replace(run, result=with_metrics(run.result, requested, catalogue=catalogue)))
            step("comparing")
            shown = options.stats_of_runs(config, [run.result for run in stored])
            stored = [
                replace(run, result=at_confidence_level(run.result, shown, catalogue=catalogue)) for run in stored
            ]
            comparison = None
            if len(stored) > 1 and not units and to not in ALONE:
                results = [run.result for run in stored]
                comparison = compare(results, metrics or None, primary=primary, config=shown, catalogue=catalogue)
            text = written(stored, comparison, to, units=units, formulas=formulas, dataset=name)
            texts.append(SEVERAL[to].format(name=name, text=text) if len(groups) > 1 else text)
            cautions += [run.caution for run in stored if run.caution]
    if output is None:
        out.file("\n".join(texts))
    else:
        write_output(output, "\n".join(texts), to)
        out.note(f"wrote {output}")
    for caution in (*experiment.notes, *cautions):
        out.note(f"caution: {caution}")
    return exits.FAILED_UNITS if cautions else exits.DONE
