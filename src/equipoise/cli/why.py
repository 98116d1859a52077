"""``eq why``: which convention makes two programs disagree, or gives a published figure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from equipoise.checks.like.explain import difference
from equipoise.checks.like.material import Material
from equipoise.checks.like.presets import OWN, PRESETS, Preset
from equipoise.checks.like.published import Printed, search
from equipoise.cli import exits, options
from equipoise.cli.output import Output, pass_output
from equipoise.cli.scoring import presets
from equipoise.cli.sources import Reading
from equipoise.data.runs import read_run
from equipoise.errors import ParameterError
from equipoise.evidence.ranking import Ranking
from equipoise.metrics.base import Metric
from equipoise.metrics.parse import parse
from equipoise.report.terminal import Paragraph
from equipoise.report.why import difference_part, search_part

HELP = """
\b
  eq why run.trec --qrels truth.qrels --like mteb --like ranx
  eq why run.trec --qrels truth.qrels --published 0.4123 --like trec_eval

Say why two libraries print different figures for one run: their conventions are changed one
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
    type=options.OneOf("preset", presets),
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
    asked = parse(metrics or [DEFAULT_METRIC], evidence=Ranking)
    reading = Reading(qrels=qrels, run_tag=run_tag)
    if published is None:
        pair = _pair([PRESETS[name] for name in names])
        return _explain(out, _material(run, reading), asked, pair)
    printed = Printed.of(published)
    base = PRESETS[_only(names, "a published figure is looked for from one preset", "--like") or OWN]
    metric = asked[0]
    _only([each.name for each in asked], "one figure was published", "-m")
    return _look_for(out, _material(run, reading), metric, printed, base)


def _material(run: str, reading: Reading) -> Material:
    truth = reading.judgements
    return Material.of(read_run(run, tag=reading.run_tag), truth)


def _pair(chosen: Sequence[Preset]) -> tuple[Preset, Preset]:
    if not chosen or len(chosen) > 2:
        raise ParameterError(
            f"a difference is between two presets; {len(chosen) or 'none'} were named",
            hint="write --like mteb --like ranx, or one of them to compare it with equipoise",
        )
    return chosen[0], chosen[1] if len(chosen) == 2 else PRESETS[OWN]


def _only(words: Sequence[str], subject: str, option: str) -> str:
    """The one word that was given, if any; several are refused."""
    if len(words) > 1:
        raise ParameterError(f"{subject}, and {len(words)} were named", hint=f"write {option} {words[0]}")
    return words[0] if words else ""


def _explain(
    out: Output, material: Material, metrics: Sequence[Metric[Any]], pair: tuple[Preset, Preset]
) -> int:
    found = [difference(material, metric, *pair) for metric in metrics]
    if out.json:
        out.data({"differences": [each.to_dict() for each in found]})
        return exits.DONE
    for number, each in enumerate(found):
        blank = [Paragraph("")] if number else []
        out.show(*blank, *difference_part(each, quiet=out.quiet, verbose=out.verbose))
    return exits.DONE


def _look_for(out: Output, material: Material, metric: Metric[Any], printed: Printed, base: Preset) -> int:
    found = search(material, metric, printed, base)
    if out.json:
        out.data(found.to_dict())
    else:
        out.show(*search_part(found, quiet=out.quiet, verbose=out.verbose))
    return exits.DONE if found.matches else exits.GATE_FAILED
