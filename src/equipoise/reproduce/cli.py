"""``eq why``: which convention makes two libraries disagree, or gives a published score."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from equipoise.cli import options, output
from equipoise.cli.inputs import EvidenceOptions
from equipoise.cli.output import Output, pass_output
from equipoise.cli.score import reproduce
from equipoise.errors import ParameterError
from equipoise.evidence.ranking import Ranking
from equipoise.io.run_files import read_run
from equipoise.metrics.parser import parse_metrics
from equipoise.report.terminal import Paragraph
from equipoise.reproduce.attribution import attribute_difference
from equipoise.reproduce.emulation import RunAndQrels
from equipoise.reproduce.presets import EQUIPOISE, PRESETS, Preset
from equipoise.reproduce.published import ReportedScore, search_conventions
from equipoise.reproduce.report import difference_report, search_report

if TYPE_CHECKING:
    from equipoise.metrics.base import Metric

HELP = """
\b
  eq why run.trec --qrels truth.qrels --like mteb --like ranx
  eq why run.trec --qrels truth.qrels --published 0.4123 --like trec_eval

Explain why two libraries print different scores for one run: their conventions are changed one
at a time, and each gets its part of the difference, with the units where it happens and one of
them worked out. A single --like is compared with equipoise itself.

With --published, find the conventions that give a figure as it was printed: all presets, and
one or two changes from --like. Exit code 1 means that none of them does.
"""

DEFAULT_METRIC = "nDCG@10"


@click.command(help=HELP, short_help="Say why two libraries disagree.")
@click.argument("run", metavar="RUN")
@click.option("--qrels", type=click.Path(), help="The truth: TREC, TSV, JSON, ...")
@click.option(
    "--like",
    "names",
    type=options.ChoiceWithHint("preset", reproduce),
    multiple=True,
    help="A library to score as; twice for two of them.",
)
@click.option("--published", metavar="FIGURE", help="A figure as it was printed, such as 0.4123 or 41.2.")
@options.metric_option
@click.option("--run-tag", metavar="NAME", help="Accept TREC lines without their last field.")
@options.output_options
@pass_output
def why(
    out: Output,
    run: str,
    qrels: str | None,
    names: tuple[str, ...],
    published: str | None,
    metrics: tuple[str, ...],
    run_tag: str | None,
) -> int:
    """See ``HELP``."""
    asked = parse_metrics(metrics or [DEFAULT_METRIC], evidence=Ranking)
    reading = EvidenceOptions(qrels=qrels, run_tag=run_tag)
    if published is None:
        pair = _pair([PRESETS[name] for name in names])
        return _explain(out, _inputs(run, reading), asked, pair)
    printed = ReportedScore.of(published)
    base = PRESETS[_only(names, "a published figure is looked for from one preset", "--like") or EQUIPOISE]
    metric = asked[0]
    _only([each.name for each in asked], "one figure was published", "-m")
    return _find_convention(out, _inputs(run, reading), metric, printed, base)


def _inputs(run: str, reading: EvidenceOptions) -> RunAndQrels:
    truth = reading.judgements
    return RunAndQrels.of(read_run(run, tag=reading.run_tag), truth)


def _pair(chosen: Sequence[Preset]) -> tuple[Preset, Preset]:
    if not chosen or len(chosen) > 2:
        raise ParameterError(
            f"a difference is between two presets; {len(chosen) or 'none'} were named",
            hint="write --like mteb --like ranx, or one of them to compare it with equipoise",
        )
    return chosen[0], chosen[1] if len(chosen) == 2 else PRESETS[EQUIPOISE]


def _only(words: Sequence[str], subject: str, option: str) -> str:
    """The one word that was given, if any; several are refused."""
    if len(words) > 1:
        raise ParameterError(f"{subject}, and {len(words)} were named", hint=f"write {option} {words[0]}")
    return words[0] if words else ""


def _explain(out: Output, material: RunAndQrels, metrics: Sequence[Metric[Any]], pair: tuple[Preset, Preset]) -> int:
    found = [attribute_difference(material, metric, *pair) for metric in metrics]
    if out.json:
        out.data({"differences": [each.to_dict() for each in found]})
        return output.DONE
    for number, each in enumerate(found):
        blank = [Paragraph("")] if number else []
        out.show(*blank, *difference_report(each, quiet=out.quiet, verbose=out.verbose))
    return output.DONE


def _find_convention(
    out: Output, material: RunAndQrels, metric: Metric[Any], printed: ReportedScore, base: Preset
) -> int:
    found = search_conventions(material, metric, printed, base)
    if out.json:
        out.data(found.to_dict())
    else:
        out.show(*search_report(found, quiet=out.quiet, verbose=out.verbose))
    return output.DONE if found.matches else output.GATE_FAILED
