"""``eq gate``: pass or fail, for continuous integration."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from equipoise.cli import options, output
from equipoise.cli.output import Output, pass_output
from equipoise.errors import ParameterError
from equipoise.runs.gate import BaselineCheck, GateResult, check_gate
from equipoise.runs.regression_gate import TESTS
from equipoise.runs.store import StoredRun, find_runs, load_run

if TYPE_CHECKING:
    from equipoise.config import StatsConfig

HELP = """
\b
  eq gate results/minilm --min 'nDCG@10>=0.60' --min 'MR<=5'
  eq gate results/minilm --no-worse-than main/minilm --margin 0.01

Pass or fail, with exit code 0 or 1 and a sentence for everything that was asked. RUN is a
run directory as eq score -o writes it.

--min compares the point estimate; with --confident it is the end of the interval on the wrong
side that must reach the limit.

--no-worse-than fails only on a significant loss beyond the margin: a paired one-sided test on
the same units. The metrics are those of -m, else those of --min, else only the first of the
run. With several metrics each p is adjusted for their number (Holm), so that an unchanged run
seldom fails by chance.

Without a margin signs are flipped at random: if nothing has changed, a gain is as likely as a
loss of that size. With a margin Student's t judges how far beyond it the mean loss lies. Where
rare units may gain very much, --test bounds assumes nothing but the bounds of the metric
(Gaffke's bound), and sees only losses far beyond the margin. A figure that is no mean over units,
such as MedianRank, is judged by the bootstrap interval of its difference, not adjusted.

What cannot be judged fails: missing units, runs that were scored in different ways, runs that
are not complete or were tuned on the units they report (EQ201), undefined figures, and a loss on
so few units that no p could be small enough.
"""


@click.command(help=HELP, short_help="Pass or fail, for continuous integration.")
@click.argument("run")
@click.option(
    "--min",
    "minimums",
    metavar="METRIC>=X",
    multiple=True,
    help="What must be reached, such as 'nDCG@10>=0.60' or 'MR<=5'; may be repeated.",
)
@click.option("--confident", is_flag=True, help="Compare the end of the interval, not the point estimate.")
@click.option("--no-worse-than", "baseline", metavar="BASELINE", help="A run directory to compare with.")
@click.option("--margin", type=float, default=0.0, show_default=True, help="The loss that is tolerated.")
@click.option(
    "--test",
    type=click.Choice(TESTS),
    default="t",
    show_default=True,
    help="How a loss beyond a margin is judged.",
)
@click.option("--allow-missing", is_flag=True, help="Let units that a run lacks score 0, and go on.")
@options.metric_option
@options.stats_options(omit=("test", "correction"))
@options.output_options
@pass_output
def gate(
    out: Output,
    run: str,
    minimums: tuple[str, ...],
    confident: bool,
    baseline: str | None,
    margin: float,
    test: str,
    allow_missing: bool,
    metrics: tuple[str, ...],
    config: StatsConfig,
) -> int:
    """See ``HELP``."""
    if baseline is None and (margin or metrics):
        raise ParameterError("there is no baseline for the margin or the metrics", hint="name one with --no-worse-than")
    against = None if baseline is None else BaselineCheck(_one_run(baseline), margin, metrics, test)
    found = check_gate(
        _one_run(run),
        minimums,
        confident=confident,
        against=against,
        allow_missing=allow_missing,
        config=config,
    )
    _show(out, found)
    return output.DONE if found.passed else output.GATE_FAILED


def _one_run(path: str) -> StoredRun:
    runs = find_runs(path)
    if len(runs) > 1:
        raise ParameterError(
            f"{path} holds {len(runs)} runs, and a gate judges one",
            hint=f"name one of them, such as {runs[0]}",
        )
    return load_run(runs[0])


def _show(out: Output, found: GateResult) -> None:
    if out.json:
        out.data(found.to_dict())
        return
    for verdict in found.verdicts:
        if not (out.quiet and verdict.passed):
            out.text(f"{'pass' if verdict.passed else 'FAIL'}  {verdict.message}")
