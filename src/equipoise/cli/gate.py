"""``eq gate``: pass or fail, for continuous integration."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from equipoise.cli import options, output
from equipoise.cli.output import Output, pass_output
from equipoise.errors import ParameterError
from equipoise.io.atomic import write_text
from equipoise.runs.gate import BaselineCheck, GateResult, check_gate
from equipoise.runs.inferiority_test import TESTS
from equipoise.runs.run_folder import StoredRun, find_runs, load_run

if TYPE_CHECKING:
    from equipoise.config import StatsConfig

HELP = """
\b
  eq gate results/minilm --require 'nDCG@10>=0.60' --require 'MR<=5'
  eq gate results/minilm --no-worse-than main/minilm --margin 0.01

Pass or fail a run, with exit status 0 or 1 and one line per requirement. RUN is a run directory, such
as one written by eq score -o, or one in the output folder of eq fair compare or eq bench run.

--require compares the point estimate. With --confident the less favourable bound of its interval must meet the
requirement.

--no-worse-than fails only if a paired one-sided test on the same queries finds a loss beyond the margin. This is not a
non-inferiority test: with few queries, a loss is rarely significant. The metrics are those of -m, else those of
--require, else the first of the run. With several metrics p values are adjusted, by Holm's method or --correction.

The default test is the sign-flip randomisation test, or, with a margin, Student's t test of the loss beyond the
margin. --test bounds assumes only the bounds of the metric (Gaffke's bound); it has less power, but stays
valid if a few differences are very large. For tuned runs, the larger p of the test and of the bootstrap errors of the
scores is used, as in eq compare. A metric that is not a mean over queries, such as MedianRank, uses the
bootstrap interval of its difference, without adjustment.

The gate also fails if the comparison is not valid: missing queries, runs that were scored in
different ways, runs that are incomplete or tuned on the queries they are scored on (EQ201), undefined
scores, and a loss on too few queries for any p value to be significant.
"""


@options.command(help=HELP, short_help="Pass or fail, for continuous integration.")
@click.argument("run")
@click.option(
    "--require",
    "requirements",
    metavar="METRIC>=X",
    multiple=True,
    help="A requirement, such as 'nDCG@10>=0.60' or 'MR<=5'; may be repeated.",
)
@click.option("--confident", is_flag=True, help="Apply --require to the less favourable bound of the interval.")
@click.option(
    "--no-worse-than", "baseline", metavar="BASELINE", help="Fail if RUN is significantly worse than this run."
)
@click.option(
    "--margin", type=float, default=0.0, show_default=True, help="The tolerated loss, in the unit of the metric."
)
@click.option(
    "--test",
    type=click.Choice(TESTS),
    help="Test of a loss: randomisation (without a margin only), t, or bounds (assumes only the bounds of the metric). "
    " [default: randomisation without a margin, t with one]",
)
@click.option("--junit", metavar="FILE", help="Also write the checks as JUnit XML, which CI systems show as tests.")
@click.option("--allow-missing", is_flag=True, help="Score missing queries as 0 instead of failing.")
@options.metric_option
@options.stats_options(omit=("test",))
@options.log_option
@options.table_options()
@options.output_options
@pass_output
def gate(
    out: Output,
    run: str,
    requirements: tuple[str, ...],
    confident: bool,
    baseline: str | None,
    margin: float,
    test: str | None,
    junit: str | None,
    allow_missing: bool,
    metrics: tuple[str, ...],
    config: StatsConfig,
) -> int:
    """See ``HELP``."""
    if baseline is None and (margin or metrics):
        raise ParameterError("--margin and -m need a baseline", hint="add --no-worse-than RUN")
    against = None if baseline is None else BaselineCheck(_one_run(baseline), margin, metrics, test)
    with out.working("checking the run"):
        checked = _one_run(run)
        result = check_gate(
            checked,
            requirements,
            confident=confident,
            against=against,
            allow_missing=allow_missing,
            config=config,
        )
    _show(out, result)
    out.log(lambda: {**checked.result.to_dict(flat=True), "passed": float(result.passed)}, f"gate {result.system}")
    if junit is not None:
        write_text(junit, result.to_junit())
        out.note(f"wrote {junit}")
    return output.DONE if result.passed else output.GATE_FAILED


def _one_run(path: str) -> StoredRun:
    runs = find_runs(path)
    if len(runs) > 1:
        raise ParameterError(
            f"{path} has {len(runs)} runs, and a gate checks one",
            hint=f"choose one, such as {runs[0]}",
        )
    return load_run(runs[0])


def _show(out: Output, result: GateResult) -> None:
    if out.json:
        out.data(result.to_dict())
        return
    verdicts = [verdict for verdict in result.verdicts if not (out.quiet and verdict.passed)]
    if out.to:
        from equipoise.report.terminal import ReportColumn, TerminalTable

        results = ["pass" if verdict.passed else "fail" for verdict in verdicts]
        checks = [verdict.message for verdict in verdicts]
        out.show(TerminalTable([ReportColumn("result", results), ReportColumn("check", checks)]))
        return
    for verdict in verdicts:
        out.text(f"{'pass' if verdict.passed else 'FAIL'}  {verdict.message}")
