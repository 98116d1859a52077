"""``eq accounts train``: a tree embedded once, and its vectors kept."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from equipoise.cli import options
from equipoise.cli.accounts.evaluate import EmbedderName, described, relations
from equipoise.cli.accounts.files import refuse_unwritable_file
from equipoise.cli.accounts.training import schedule_of, training_options
from equipoise.cli.accounts.trees import Source, tree_options
from equipoise.cli.output import Output, pass_output
from equipoise.cli.progress import counting
from equipoise.errors import ParameterError

if TYPE_CHECKING:
    from equipoise.hierarchy.embedded import Embedded
    from equipoise.recipes.accounts.judged import Judged

HELP = """
\b
  eq accounts train --tree accounts.csv --geometry lorentz --dim 10 -o account_vectors.csv
  eq accounts train --wordnet mammal --geometry poincare --dim 5 -o mammals.npz

Embed a chart of accounts, or any other tree, and keep the vectors: as CSV with id, name and coordinates, or
as .npz, which also holds the geometry and what made them. Points of the Lorentz model have one coordinate
more than dimensions, the time first. How well the vectors keep the tree is said at the end.
"""

BESIDE = "eq accounts evaluate --vectors puts a tuned euclidean embedding and a random one beside."


@click.command(help=HELP, short_help="Embed a tree, and keep the vectors.")
@tree_options
@click.option("--geometry", metavar="NAME", help="lorentz, poincare or euclidean. [default: lorentz]")
@click.option("--embedder", type=EmbedderName(), help="Another embedder: combinatorial, random, text:MODEL.")
@click.option("--dim", type=click.IntRange(min=1), help="Dimensions; 10, or those of a text model.")
@training_options
@click.option("--rate", type=click.FloatRange(min=0, min_open=True), help="The learning rate at the start.")
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
    **training: Any,
) -> int:
    """See ``HELP``."""
    from equipoise.hierarchy.embedders import embedder as embedder_named
    from equipoise.recipes.accounts.judged import judge
    from equipoise.recipes.accounts.settings import TEXT, refuse_flat_disk, trained_in
    from equipoise.recipes.accounts.training import usable
    from equipoise.tasks.reconstruct import refuse_edgeless

    if geometry is not None and embedder is not None:
        raise ParameterError("--geometry and --embedder name two embedders", hint="leave out one of them")
    refuse_unwritable_file(Path(output), "account_vectors.csv")
    name = embedder or trained_in(geometry or "lorentz")
    made = embedder_named(name, **schedule_of(**training), **({} if rate is None else {"rate": rate}))
    wanted = dim if dim is not None or name.startswith(TEXT) else 10
    refuse_flat_disk(name, wanted)
    tree = source.read()
    refuse_edgeless(tree)
    epochs = getattr(getattr(made, "schedule", None), "epochs", 1)
    with counting(out, f"training {name}", epochs) as count:
        # A text model that is given no dimension keeps its own.
        found = made.fit(tree, wanted, seed, progress=lambda done, total: count(done))  # type: ignore[arg-type]
    judged = judge(tree, usable(found, name), system=name, relation=relation, filtered=filtered)
    found.write(output)
    _show(out, found, judged, described(tree), output)
    return 0


def _show(out: Output, found: Embedded, judged: Judged, tree: str, output: str) -> None:
    from equipoise.recipes.accounts.evaluation import row_of
    from equipoise.report.accounts import SINGLE, by_chance, one_line
    from equipoise.report.terminal import Paragraph

    if out.json:
        out.data({**judged.to_dict(), "epochs": len(found.history), "written": [output]})
    else:
        epochs = f" in {len(found.history)} epochs" if found.history else ""
        out.show(Paragraph(f"{tree}; {judged.system} in {found.dim} dimensions{epochs}."))
        out.show(Paragraph(one_line(row_of(judged))))
        if judged.single and not out.quiet:
            out.show(Paragraph(SINGLE))
        if not out.quiet:
            out.show(Paragraph(f"{by_chance(row_of(judged))} {BESIDE}"))
    out.note(f"wrote {output}")
