"""``eq report``: runs as one page that opens from disk and can be mailed."""

from __future__ import annotations

from pathlib import Path

import click

from equipoise.cli import exits, options
from equipoise.cli.output import Output, pass_output
from equipoise.errors import ParameterError, StoreError
from equipoise.types import need

HELP = """
\b
  eq report results/ -o report.html
  eq report results/bm25 ours=results/7 --primary nDCG@10 -o report.html

Write one HTML file about one run, or about several and how they compare: who leads, who is tied, every
pair, every slice, every unit, what was found, and how it was measured. It needs no network and no
server. RUN is a run directory or a folder that holds some; NAME=path gives a system another name.
"""


@click.command(help=HELP, short_help="Write runs as one HTML page.")
@click.argument("runs", nargs=-1, metavar="RUN [RUN ...]")
@click.option(
    "-o", "--output", metavar="FILE", default="report.html", show_default=True, help="The file to write."
)
@click.option("--primary", type=options.MetricName(), help="The metric that decides the order.")
@click.option(
    "--test",
    type=options.OneOf("paired test", options.tests),
    default="randomisation",
    show_default=True,
    help="The paired test.",
)
@click.option(
    "--correction",
    type=options.OneOf("correction", options.corrections),
    default="holm",
    show_default=True,
    help="For having compared more than one pair.",
)
@click.option(
    "--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of all randomness."
)
@click.option("--charts/--no-charts", default=True, show_default=True, help="Draw charts into the page.")
@options.output_options
@pass_output
def report(
    out: Output,
    runs: tuple[str, ...],
    output: str,
    primary: str | None,
    test: str,
    correction: str,
    seed: int,
    charts: bool,
) -> int:
    """See ``HELP``."""
    if not runs:
        raise ParameterError(
            "no run was named", hint="name a run directory: eq report results/ -o report.html"
        )
    refuse_unwritable(output)
    need("jinja2", extra="report")
    from equipoise.data.atomic import write_text
    from equipoise.report.html.render import html_page
    from equipoise.report.page.build import build_page
    from equipoise.report.page.gather import comparison_of, read_runs

    with out.progress(4) as step:
        named = named_runs(runs)
        step(f"reading {len(named)} runs")
        stored = read_runs(named, primary)
        step("comparing")
        comparison = comparison_of(stored, primary=primary, test=test, correction=correction, seed=seed)
        step("building the page")
        page = build_page(stored, comparison)
        step("writing it")
        write_text(output, html_page(page, charts=charts))
    for caution in page.cautions:
        out.note(f"caution: {caution}")
    if out.json:
        systems = [system.name for system in page.systems]
        out.data({"report": output, "systems": systems, "verdict": page.verdict, "cautions": page.cautions})
    else:
        out.text(page.verdict)
        out.note(f"wrote {output}: open it in a browser")
    return exits.FAILED_UNITS if page.cautions else exits.DONE


def named_runs(words: tuple[str, ...]) -> list[tuple[str, Path]]:
    """The run directories that the words name, each once and with the name it was given."""
    from equipoise.run.find import find_runs

    found: dict[Path, tuple[str, Path]] = {}
    for word in words:
        name, path = _named(word)
        runs = find_runs(path)
        if name and len(runs) > 1:
            raise ParameterError(
                f"{path} holds {len(runs)} runs, and {name} can name only one",
                hint="name a single run directory, or leave the name out",
            )
        for run in runs:
            found.setdefault(run.resolve(), (name, run))
    return list(found.values())


def _named(word: str) -> tuple[str, str]:
    """``NAME=path``, unless that is itself a path.

    >>> _named("ours=results/7"), _named("results/7")
    (('ours', 'results/7'), ('', 'results/7'))
    """
    name, equals, path = word.partition("=")
    return ("", word) if not equals or Path(word).exists() else (name, path)


def refuse_unwritable(output: str) -> None:
    """Say before the work begins that the page could not be written."""
    target = Path(output)
    if target.is_dir():
        raise StoreError(f"{output} is a folder", hint=f"name a file in it: -o {target / 'report.html'}")
    if not target.parent.is_dir():
        raise StoreError(
            f"there is no folder {target.parent}", hint=f"make it first: mkdir -p {target.parent}"
        )
