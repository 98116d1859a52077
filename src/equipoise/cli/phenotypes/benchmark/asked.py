"""Options that ``benchmark run`` and ``compare-vectors`` share, and what both do with what was found."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from equipoise.cli import exits, options
from equipoise.cli.output import Output
from equipoise.cli.phenotypes.choices import (
    index_dir_option,
    ontology_option,
    threads_option,
    weights_of,
    weights_option,
)
from equipoise.errors import InputError, ParameterError
from equipoise.extras import install_command

if TYPE_CHECKING:
    from equipoise.data.cases import Case
    from equipoise.recipes.phenotypes.comparison import PhenotypeBenchmark


def measures() -> list[str]:
    """The similarities that MaxOntSim can be made of: those that lie between 0 and 1."""
    from equipoise.ontology.measures import MEASURES

    return [name for name, measure in MEASURES.items() if measure.bounded]


class ModelName(options.Spelled):
    """A model as it is written."""

    name = "model"

    def known(self) -> Iterable[tuple[str, str]]:
        """What works here."""
        from equipoise.embed.inventory import inventory

        return ((each.spec, each.title) for each in inventory())


@dataclass(frozen=True)
class Asked:
    """What was asked for: models, cases, and everything that decides the figures."""

    model_name: tuple[str, ...]
    test_file: str | None
    output_dir: str | None
    language: str | None
    skip_unknown: bool
    ontology: str
    fail_on: str | None
    enable_reranker: bool
    reranker: str | None
    rerank_depth: int | None
    weights: str | None
    gpu: bool
    device: str | None
    index_dir: str | None
    similarity: str
    diagnose: int
    ties: str
    level: float
    resamples: int
    seed: int
    threads: int

    @property
    def models(self) -> list[str]:
        """The models, or the one that is best offline."""
        from equipoise.recipes.phenotypes.settings import DEFAULT_MODEL

        return list(self.model_name) or [DEFAULT_MODEL]

    @property
    def settings(self) -> dict[str, Any]:
        """The settings of the recipe."""
        from equipoise.recipes.phenotypes.settings import RERANKED

        reranker = self.reranker or self.enable_reranker
        if self.rerank_depth is not None and not reranker:
            raise ParameterError(
                "--rerank-depth needs a reranker", hint="add --enable-reranker, or leave the depth out"
            )
        return {
            "weights": weights_of(self.weights),
            "measure": self.similarity,
            "reranker": reranker,
            "rerank_depth": self.rerank_depth or RERANKED,
            "device": self._device,
            "index_dir": self.index_dir,
            "sample": self.diagnose,
            "ties": self.ties,
            "level": self.level,
            "resamples": self.resamples,
            "seed": self.seed,
            "threads": self.threads,
            "skip_unknown": self.skip_unknown,
        }

    @property
    def _device(self) -> str | None:
        if self.gpu and self.device is not None:
            raise ParameterError(
                f"--gpu and --device {self.device} are two words for one thing", hint="leave one of them out"
            )
        return "cuda" if self.gpu else self.device

    def cases(self) -> tuple[Case, ...]:
        """The cases of the file, or the samples; of one language where one was named."""
        from equipoise.data.cases import SAMPLES, read_cases

        files = SAMPLES if self.test_file is None else (self.test_file,)
        found = tuple(case for file in files for case in read_cases(file, language=self.language))
        if self.language is None:
            return found
        wanted = self.language.casefold()
        kept = tuple(case for case in found if case.language.casefold() == wanted)
        if not kept:
            known = sorted({case.language for case in found})
            raise InputError(
                f"no case is in the language {self.language!r}", hint=f"the cases are in {', '.join(known)}"
            )
        return kept


_OPTIONS: tuple[Callable[[Any], Any], ...] = (
    click.option(
        "--model-name",
        type=ModelName(),
        multiple=True,
        metavar="MODEL",
        help="A model, such as use, minilm, tfidf: or sum:use+tfidf:; may be repeated.",
    ),
    click.option(
        "--test-file", metavar="FILE", help="The cases; without it, samples in English and German are used."
    ),
    click.option("--output-dir", metavar="FOLDER", help="Write runs, results.json and charts here."),
    click.option("--language", metavar="CODE", help="Only cases in this language, or that name none."),
    click.option("--skip-unknown", is_flag=True, help="Leave out expected ids that lead to no term."),
    ontology_option,
    click.option("--enable-reranker", is_flag=True, help="Let late interaction reorder the first terms."),
    click.option("--reranker", metavar="SPEC", help="Another judge, such as cross-encoder:FOLDER."),
    click.option(
        "--rerank-depth",
        type=click.IntRange(min=1),
        help="How many of the first terms are judged; 20 unless told.",
    ),
    click.option("--gpu", is_flag=True, help="Put models of the kind st: on the GPU."),
    click.option("--device", metavar="NAME", help="The same by name: cuda, cuda:1, mps, cpu."),
    index_dir_option,
    weights_option,
    options.one_of("--similarity", "similarity", measures, "lin", "How near misses are judged."),
    click.option(
        "--diagnose",
        type=click.IntRange(min=0),
        default=0,
        metavar="N",
        help="Also look up N labels: does each find itself, and is near also alike?",
    ),
    options.one_of("--ties", "tie rule", options.tie_rules, "expected", "What equal scores mean."),
    click.option("--level", type=float, default=0.95, show_default=True, help="Level of the intervals."),
    click.option(
        "--resamples",
        type=click.IntRange(min=1),
        default=2000,
        show_default=True,
        help="Bootstrap resamples.",
    ),
    options.seed_option,
    threads_option,
    options.fail_option,
)

asking = options.gathering(Asked, "asked", *_OPTIONS)
"""All shared options as one argument ``asked``."""


def show(out: Output, found: PhenotypeBenchmark, asked: Asked) -> int:
    """The report for people or as data, the files, and how it ended."""
    from equipoise.report.phenotypes import phenotype_report

    if out.json:
        out.data(found.to_dict())
    else:
        out.show(*phenotype_report(found.edition, verbose=out.verbose, quiet=out.quiet))
    if asked.output_dir is not None:
        _keep(out, found, Path(asked.output_dir))
    for where, error in found.failures.items():
        out.error(
            {"where": where, "code": error.code, "sentence": error.sentence, "hint": error.hint},
            f"{where}: {error.render()}",
        )
    if not out.quiet and not out.json:
        out.text(_next(found, asked))
    if found.failures:
        return exits.FAILED_UNITS
    return exits.gate(out, found.findings, asked.fail_on)


def _keep(out: Output, found: PhenotypeBenchmark, folder: Path) -> None:
    """What was not written yet: the runs were, one by one."""
    from equipoise.recipes.phenotypes.store import VISUALIZATIONS, other_runs, write_benchmark

    written = write_benchmark(folder, found, runs=False)
    out.note(f"wrote {folder}/")
    older = other_runs(folder, found)
    if older:
        out.note(f"older runs lie there too: {', '.join(path.name for path in older)}")
    if len(written) > 1:
        out.note(f"charts are in {folder / VISUALIZATIONS}/")
    else:
        out.note(f"For charts: {install_command('report')}")


def _next(found: PhenotypeBenchmark, asked: Asked) -> str:
    """The next command to type."""
    from equipoise.cli.suggest import after_comparison, suggestion
    from equipoise.recipes.phenotypes.store import other_runs, run_folders
    from equipoise.report.findings import gravest_first

    if asked.output_dir is not None:
        folder = Path(asked.output_dir)
        own = [str(path) for path in run_folders(folder, found)]
        return suggestion(["eq", "report", *(own if other_runs(folder, found) else [str(folder)])])
    return after_comparison(gravest_first(found.findings), "MRR")
