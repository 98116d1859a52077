"""``eq why``: which convention makes two libraries disagree, or gives a published score."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from equipoise.cli import options, output
from equipoise.cli.inputs import EvidenceOptions
from equipoise.cli.output import Output, pass_output
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

Explain why two libraries print different scores for one run: their conventions are changed one at a time, and the
contribution of each to the difference is shown, with the queries that change and a
worked example. A single --like is compared with equipoise itself. The default metric is nDCG@10.

With --published, search all presets, and one or two changes from --like, for the conventions that reproduce a
published score. Exit status 1 means that none of them does.
"""

DEFAULT_METRIC = "nDCG@10"
preset_names = options.names_in("equipoise.reproduce.presets", "PRESETS")


@options.command(help=HELP, short_help="Explain why two libraries score the same run differently.")
@click.argument("run", metavar="RUN")
@click.option("--qrels", type=click.Path(), help="Relevance judgements: TREC, TSV, JSON, ...")
@click.option(
    "--like",
    "names",
    type=options.ChoiceWithHint("preset", preset_names),
    multiple=True,
    help="A library; give two to compare them.",
)
@click.option("--published", metavar="SCORE", help="A published score as it was printed, such as 0.4123 or 41.2.")
@options.metric_option
@click.option("--run-tag", metavar="NAME", help="Name of the run, for TREC lines that lack their last field.")
@options.table_options()
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
    requested = parse_metrics(metrics or [DEFAULT_METRIC], evidence=Ranking)
    reading = EvidenceOptions(qrels=qrels, run_tag=run_tag)
    if published is None:
        pair = _pair([PRESETS[name] for name in names])
        return _explain(out, _inputs(run, reading), requested, pair)
    printed = ReportedScore.of(published)
    base = PRESETS[_only(names, "the search starts from one preset", "--like") or EQUIPOISE]
    _only([metric.name for metric in requested], "a published score has one metric", "-m")
    return _find_convention(out, _inputs(run, reading), requested[0], printed, base)


def _inputs(run: str, reading: EvidenceOptions) -> RunAndQrels:
    judgements = reading.judgements
    return RunAndQrels.of(read_run(run, tag=reading.run_tag), judgements)


def _pair(chosen: Sequence[Preset]) -> tuple[Preset, Preset]:
    if not chosen or len(chosen) > 2:
        raise ParameterError(
            f"two libraries can be compared, and {len(chosen)} are given" if chosen else "no library is given",
            hint="--like ranx compares ranx with equipoise, --like mteb --like ranx compares mteb with ranx",
        )
    return chosen[0], chosen[1] if len(chosen) == 2 else PRESETS[EQUIPOISE]


def _only(words: Sequence[str], subject: str, option: str) -> str:
    """The only word, or an empty one; several are an error."""
    if len(words) > 1:
        raise ParameterError(f"{subject}, and there are {len(words)}", hint=f"write {option} {words[0]}")
    return words[0] if words else ""


def _explain(out: Output, inputs: RunAndQrels, metrics: Sequence[Metric[Any]], pair: tuple[Preset, Preset]) -> int:
    with out.working("changing one convention at a time"):
        differences = [attribute_difference(inputs, metric, *pair) for metric in metrics]
    if out.json:
        out.data({"differences": [difference.to_dict() for difference in differences]})
        return output.DONE
    for number, difference in enumerate(differences):
        separator = [Paragraph("")] if number else []
        out.show(*separator, *difference_report(difference, quiet=out.quiet, verbose=out.verbose))
    return output.DONE


def _find_convention(
    out: Output, inputs: RunAndQrels, metric: Metric[Any], printed: ReportedScore, base: Preset
) -> int:
    with out.working("searching conventions"):
        search = search_conventions(inputs, metric, printed, base)
    if out.json:
        out.data(search.to_dict())
    else:
        out.show(*search_report(search, quiet=out.quiet, verbose=out.verbose))
    return output.DONE if search.matches else output.GATE_FAILED
