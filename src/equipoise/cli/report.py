"""``eq report``: runs as one page that opens from disk and can be mailed."""

from __future__ import annotations

from pathlib import Path

import click

from equipoise.cli import exits, options
from equipoise.cli.output import Output, pass_output
from equipoise.errors import ParameterError, StoreError

HELP = """
\b
  eq report results/ -o report.html
  eq report results/bm25 ours=results/7 --primary nDCG@10 -o report.html
  eq report results/ --charts results/visualizations

Write one HTML file about one run, or about several and how they compare: who leads, who is tied, every
pair, every slice, every unit, what was found, and how it was measured. It needs no network and no
server. RUN is a run directory or a folder that holds some; NAME=path gives a system another name.
"""


@click.command(help=HELP, short_help="Write runs as one HTML page.")
@click.argument("runs", nargs=-1, metavar="RUN [RUN ...]")
@click.option(
    "-o", "--output", metavar="FILE", default="report.html", show_default=True, help="The file to write."
)
@options.comparing_options
@options.seed_option
@click.option("--charts", metavar="FOLDER", help="Write the charts here as well, as PNG and SVG.")
@click.option("--no-charts", "plain", is_flag=True, help="Leave the charts out of the page.")
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
    charts: str | None,
    plain: bool,
) -> int:
    """See ``HELP``."""
    if not runs:
        raise ParameterError(
            "no run was named", hint="name a run directory: eq report results/ -o report.html"
        )
    refuse_unwritable(output, charts)
    from equipoise.report.publish import STEPS, chart_note, publish

    with out.progress(STEPS) as step:
        page = publish(
            named_runs(runs),
            output,
            primary=primary,
            test=test,
            correction=correction,
            seed=seed,
            charts=not plain,
            pictures=charts,
            step=step,
        )
    for caution in page.cautions:
        out.note(f"caution: {caution}")
    if out.json:
        systems = [system.name for system in page.systems]
        out.data({"report": output, "systems": systems, "verdict": page.verdict, "cautions": page.cautions})
    else:
        out.text(page.verdict)
        out.note(f"wrote {output}: open it in a browser{'' if plain else chart_note()}")
        if charts is not None:
            out.note(f"wrote the charts to {charts}")
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


def refuse_unwritable(output: str, charts: str | None) -> None:
    """Say before the work begins that the page or the charts could not be written."""
    target = Path(output)
    if charts is not None and Path(charts).is_file():
        raise StoreError(f"{charts} is a file, where a folder should be", hint="name a folder for the charts")
    if target.is_dir():
        raise StoreError(f"{output} is a folder", hint=f"name a file in it: -o {target / 'report.html'}")
    if not target.parent.is_dir():
        raise StoreError(
            f"there is no folder {target.parent}", hint=f"make it first: mkdir -p {target.parent}"
        )
