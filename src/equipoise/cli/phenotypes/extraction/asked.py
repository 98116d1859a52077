"""Options that ``extraction run`` and ``tune`` share, and how problems with documents are told."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from equipoise.cli import exits, options
from equipoise.cli.output import Output
from equipoise.cli.phenotypes.choices import index_dir_option, ontology_option, threads_option

if TYPE_CHECKING:
    from equipoise.recipes.phenotypes.extraction.gold import Gold
    from equipoise.types import Finding

measures = options.names_in("equipoise.ontology.measures", "MEASURES")


@dataclass(frozen=True)
class Asked:
    """What was asked for, beside the documents and the parameters of the pipeline."""

    dataset: str | None
    output: str | None
    ontology: str
    index_dir: str | None
    chunkers: str | None
    multi_vector: bool | None
    include_assertions: bool | None
    no_bootstrap_ci: bool
    level: float
    resamples: int
    seed: int
    threads: int
    fail_on: str | None

    @property
    def settings(self) -> dict[str, Any]:
        """The settings of the recipe; what nobody said is left to it, or to a tuning."""
        named = [each.strip() for each in (self.chunkers or "").split(",") if each.strip()]
        said = {
            "chunkers": tuple(named) or None,
            "multi": self.multi_vector,
            "include_assertions": self.include_assertions,
        }
        return {
            **{name: value for name, value in said.items() if value is not None},
            "bootstrap": not self.no_bootstrap_ci,
            "level": self.level,
            "resamples": self.resamples,
            "seed": self.seed,
            "threads": self.threads,
            "index_dir": self.index_dir,
        }


_OPTIONS: tuple[Callable[[Any], Any], ...] = (
    click.option("--dataset", metavar="NAME", help="One of the datasets below the folder, by name."),
    click.option("-o", "--output", metavar="FOLDER", help="Write results and a run directory here."),
    ontology_option,
    index_dir_option,
    click.option(
        "--chunkers",
        metavar="LIST",
        help="How texts are cut, coarse first: names such as sentence, conjunction, semantic, with commas.",
    ),
    click.option(
        "--multi-vector/--single-vector",
        default=None,
        help="A vector for each text of a term (the default), or one a term.",
    ),
    click.option(
        "--include-assertions",
        is_flag=True,
        default=None,
        help="Lead with figures that count a wrong assertion as wrong.",
    ),
    click.option("--no-bootstrap-ci", is_flag=True, help="Make no intervals; quicker."),
    click.option("--level", type=float, default=0.95, show_default=True, help="Level of the intervals."),
    click.option(
        "--resamples",
        type=click.IntRange(min=1),
        default=2000,
        show_default=True,
        help="Bootstrap resamples of the documents.",
    ),
    options.seed_option,
    threads_option,
    options.fail_option,
)

asking = options.gathering(Asked, "asked", *_OPTIONS)
"""All shared options as one argument ``asked``."""


def ended(out: Output, gold: Gold, findings: tuple[Finding, ...], fail_on: str | None) -> int:
    """Every lost document is told on standard error and makes the run partial; else a gate may close."""
    for problem in gold.lost:
        fields = {"where": problem.where, "sentence": problem.sentence, "code": "E700", "hint": problem.hint}
        out.error(fields, f"left out: {problem}" + (f"\nhint: {problem.hint}" if problem.hint else ""))
    if gold.lost:
        return exits.FAILED_UNITS
    return exits.gate(out, findings, fail_on)
