"""``eq phenotypes benchmark compare-vectors``: single against multi-vector, strategy by strategy."""

from __future__ import annotations

import click

from equipoise.cli import options
from equipoise.cli.output import Output, pass_output
from equipoise.cli.phenotypes.benchmark.asked import Asked, asking, show

HELP = """
\b
  eq phenotypes benchmark compare-vectors --test-file cases.json
  eq phenotypes benchmark compare-vectors --no-single --strategies "label_synonyms_max,label_only"

Compare one vector a term with one for each label, synonym and definition, put together by strategies. All
strategies of a model are measured on the same scores in one pass. A strategy may be an expression of your
own, such as "0.6*label + 0.4*max(synonyms)". --weights are those of all_weighted.
"""


@click.command(name="compare-vectors", help=HELP, short_help="Single against multi-vector.")
@asking
@click.option(
    "--strategies",
    default="label_synonyms_max,all_max,label_only,all_weighted",
    show_default=True,
    metavar="LIST",
    help="Strategies, parted by commas, or by semicolons.",
)
@click.option("--single/--no-single", default=True, help="Whether one vector a term is compared too.")
@options.output_options
@pass_output
def compare_vectors(out: Output, asked: Asked, strategies: str, single: bool) -> int:
    """See ``HELP``."""
    from equipoise.recipes.phenotypes.benchmark import compare_vectors as compared

    models = asked.models
    with out.progress(len(models) * (2 if single else 1) + 1) as step:
        found = compared(
            models,
            asked.cases(),
            asked.ontology,
            strategies=listed(strategies),
            single=single,
            output=asked.output_dir,
            progress=step,
            command=out.command,
            **asked.settings,
        )
    return show(out, found, asked)


def listed(text: str) -> list[str]:
    """The strategies of a list: parted by semicolons or by commas, but not inside brackets.

    >>> listed("all_max, label_only"), listed("max(label, synonyms), all_max; label")
    (['all_max', 'label_only'], ['max(label, synonyms)', 'all_max', 'label'])
    """
    found, depth = [""], 0
    for sign in text:
        depth += (sign == "(") - (sign == ")")
        if sign in ",;" and depth <= 0:
            found.append("")
        else:
            found[-1] += sign
    return [each.strip() for each in found if each.strip()]
