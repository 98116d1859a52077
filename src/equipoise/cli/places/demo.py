"""``eq places demo``: a small model trained on made-up visits, and scored beside what knows less."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from equipoise.cli import options
from equipoise.cli.output import Output, pass_output
from equipoise.cli.scoring import refuse_unwritable
from equipoise.errors import MissingExtraError, StoreError

if TYPE_CHECKING:
    from equipoise.recipes.places.demonstration import Demonstration

HELP = """
\b
  eq places demo
  eq places demo --users 200 --seed 7 -o demo/

Simulate people with a home, work and habits, train a Markov model on their visits, let it predict the last
fifth of them, and score it beside random, majority, each user's habits and plain moves. With -o the logits
and all else that eq places score takes are left in a folder, and charts where these can be drawn.
"""


@click.command(help=HELP, short_help="Train and score a small model on made-up visits.")
@click.option("--users", type=click.IntRange(min=1), default=60, show_default=True, help="How many people.")
@click.option("--days", type=click.IntRange(min=1), default=28, show_default=True, help="For how many days.")
@click.option(
    "--places", type=click.IntRange(min=10), default=300, show_default=True, help="How many places."
)
@click.option(
    "--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of all randomness."
)
@click.option("-o", "--output", metavar="FOLDER", help="Leave the logits, the targets and charts here.")
@options.output_options
@pass_output
def demo(out: Output, users: int, days: int, places: int, seed: int, output: str | None) -> int:
    """See ``HELP``."""
    from equipoise.recipes.places.demonstration import Demonstration

    if output is not None:
        refuse_unwritable(output)
    found = Demonstration.of(users, days, places, seed=seed)
    _show(out, found)
    if output is not None:
        _keep(out, found, Path(output))
    return 0


def _show(out: Output, found: Demonstration) -> None:
    from equipoise.report.places import places_report
    from equipoise.report.terminal import Paragraph

    sure = found.reliability
    if out.json:
        calibration = {
            "ece": sure.ece,
            "calibrated": sure.calibrated,
            "calibrated_high": sure.calibrated_high,
        }
        out.data({**found.scores.to_dict(), "reliability": calibration})
        return
    learned = found.learned
    out.note(
        f"{len(learned.names)} made-up people made {len(learned):,} visits to {learned.classes} places; "
        f"{len(found.cases):,} more are to be predicted.\n"
    )
    out.show(*places_report(found.scores.edition, verbose=out.verbose, quiet=out.quiet))
    if not out.quiet:
        apart = "more than" if sure.told_apart else "no more than"
        out.show(
            Paragraph(""),
            Paragraph(
                f"Calibration: the expected calibration error is {sure.ece:.3f}, {apart} luck explains: a "
                f"calibrated model would show {sure.calibrated:.3f} on these units, and rarely above "
                f"{sure.calibrated_high:.3f}."
            ),
        )


def _keep(out: Output, found: Demonstration, folder: Path) -> None:
    """The files, the charts where they can be drawn, and the command that scores the same again."""
    from equipoise.data.atomic import write_bytes
    from equipoise.report.charts.render import png, svg

    try:
        found.write(folder)
        for chart in found.charts():
            write_bytes(folder / f"{chart.name}.svg", svg(chart).encode())
            write_bytes(folder / f"{chart.name}.png", png(chart))
    except MissingExtraError as error:
        out.note(f"For charts: {error.hint}")
    except OSError as error:
        raise StoreError(
            f"{folder} cannot be written: {error.strerror}", hint="choose another folder"
        ) from error
    out.note(f"wrote {folder}/")
    if not out.quiet and not out.json:
        named = {"logits": "logits", "targets": "targets", "user": "user", "previous": "previous"}
        words = [
            word for option, file in named.items() for word in (f"--{option}", str(folder / f"{file}.npy"))
        ]
        words += ["--history", str(folder / "visits.csv")]
        out.text(f"\nNext: {shlex.join(['eq', 'places', 'score', *words])}")
