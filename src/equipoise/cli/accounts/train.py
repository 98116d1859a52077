"""``eq accounts train``: a tree embedded once, and its vectors kept."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from equipoise.cli import options
from equipoise.cli.accounts.evaluate import EmbedderName, described
from equipoise.cli.accounts.files import refuse_other_form, refuse_unwritable_file
from equipoise.cli.accounts.training import (
    device_option,
    relations,
    schedule_of,
    tell_engine,
    training_options,
)
from equipoise.cli.accounts.trees import Source, tree_options
from equipoise.cli.output import Output, pass_output
from equipoise.cli.progress import counting
from equipoise.errors import ParameterError

if TYPE_CHECKING:
    from equipoise.hierarchy.embedded import Embedded
    from equipoise.hierarchy.tree import Tree
    from equipoise.recipes.accounts.judged import Judged

HELP = """
\b
  eq accounts train --tree accounts.csv --geometry lorentz --dim 10 -o account_vectors.csv
  eq accounts train --wordnet mammal --geometry poincare --dim 5 -o mammals.npz

Embed a chart of accounts, or any other tree, and keep the vectors: as CSV with id, name and coordinates, or
as .npz, which also holds the geometry and what made them. Points of the Lorentz model have one coordinate
more than dimensions, the time first. How well the vectors keep the tree is said at the end. With --device
cuda a hyperbolic embedding is trained on a GPU, every node against all others at once.
"""

BESIDE = "eq accounts evaluate --vectors{} puts a tuned euclidean embedding and a random one beside."


@click.command(help=HELP, short_help="Embed a tree, and keep the vectors.")
@tree_options
@click.option("--geometry", metavar="NAME", help="lorentz, poincare or euclidean. [default: lorentz]")
@click.option("--embedder", type=EmbedderName(), help="Another embedder: combinatorial, random, text:MODEL.")
@click.option("--dim", type=click.IntRange(min=1), help="Dimensions; 10, or those of a text model.")
@training_options
@click.option("--rate", type=click.FloatRange(min=0, min_open=True), help="The learning rate at the start.")
@device_option
@options.one_of("--relation", "relation", relations, "parent", "Whom each node ranks when it is judged.")
@click.option(
    "--filtered/--raw", default=None, help="Leave other relatives out of ranks. [raw for parents only]"
)
@options.seed_option
@click.option("-o", "--output", required=True, metavar="FILE", help="Where the vectors go: .csv or .npz.")
@options.output_options
@pass_output
def train(
    out: Output,
    /,
    source: Source,
    geometry: str | None,
    embedder: str | None,
    dim: int | None,
    seed: int,
    output: str,
    relation: str,
    filtered: bool | None,
    rate: float | None,
    device: str | None,
    **training: Any,
) -> int:
    """See ``HELP``."""
    from equipoise.hierarchy.embedders import folded
    from equipoise.recipes.accounts.judged import judge
    from equipoise.recipes.accounts.settings import TEXT, TRAINED, refuse_flat_disk, trained_in
    from equipoise.recipes.accounts.training import usable
    from equipoise.tasks.reconstruct import refuse_edgeless

    if geometry is not None and embedder is not None:
        raise ParameterError("--geometry and --embedder name two embedders", hint="leave out one of them")
    refuse_other_form(Path(output))
    refuse_unwritable_file(Path(output), "account_vectors.csv")
    name = folded(embedder) if embedder else trained_in(geometry or "lorentz")
    chosen = schedule_of(**training) | ({} if rate is None else {"rate": rate})
    made = _Made(name, ({"train_on": relation} if name in TRAINED else {}) | chosen, device)
    wanted = dim if dim is not None or name.startswith(TEXT) else 10
    refuse_flat_disk(name, wanted)
    tree = source.read()
    refuse_edgeless(tree)
    tell_engine(out, [name])
    with counting(out, f"training {name}", made.epochs) as count:
        found = made.fit(tree, wanted, seed, lambda done, total: count(done))
    judged = judge(
        tree, usable(found, name), system=name, relation=relation, filtered=filtered, device=device
    )
    found.write(output)
    _show(out, found, judged, described(tree), output)
    return 0


class _Made:
    """What embeds the tree: an embedder of the processor, or training on a device; checked at once."""

    def __init__(self, name: str, options: dict[str, Any], device: str | None) -> None:
        from equipoise.hierarchy.embedders import embedder
        from equipoise.recipes.accounts.on_device import THERE, whole_schedule

        self._name, self._options = name, options
        self._device = device if name in THERE else None
        self._embedder = embedder(name, **options)
        schedule = getattr(self._embedder, "schedule", None)
        if device is not None:
            from equipoise.geometry.device import check_device_name, torch_device

            check_device_name(device)
        if self._device is not None:
            schedule = whole_schedule(options)
        if device is not None:
            torch_device(device)
        self.epochs: int = getattr(schedule, "epochs", 1)

    def fit(self, tree: Tree, dim: int | None, seed: int, progress: Callable[[int, int], None]) -> Embedded:
        """The vectors of the tree's nodes."""
        from equipoise.recipes.accounts.on_device import fitted_on

        if self._device is not None and dim is not None:
            return fitted_on(
                self._device, self._name, tree, dim, seed, options=self._options, progress=progress
            )
        # A text model that is given no dimension keeps its own.
        return self._embedder.fit(tree, dim, seed, progress=progress)  # type: ignore[arg-type]


def _show(out: Output, found: Embedded, judged: Judged, tree: str, output: str) -> None:
    from equipoise.checks.base import counted
    from equipoise.hierarchy.tree import PARENT
    from equipoise.recipes.accounts.evaluation import row_of
    from equipoise.report.accounts import SINGLE, by_chance, one_line, trained_on_others
    from equipoise.report.terminal import Paragraph

    if out.json:
        out.data({**judged.to_dict(), "epochs": len(found.history), "written": [output]})
    else:
        epochs = f" in {counted(len(found.history), 'epoch')}" if found.history else ""
        out.show(Paragraph(f"{tree}; {judged.system} in {counted(found.dim, 'dimension')}{epochs}."))
        out.show(Paragraph(one_line(row_of(judged))))
        for sentence in trained_on_others([row_of(judged)], judged.relation):
            out.show(Paragraph(sentence))
        if judged.single and not out.quiet:
            out.show(Paragraph(SINGLE))
        if not out.quiet:
            relation = "" if judged.relation == PARENT else f" --relation {judged.relation}"
            out.show(Paragraph(f"{by_chance(row_of(judged))} {BESIDE.format(relation)}"))
    out.note(f"wrote {output}")
