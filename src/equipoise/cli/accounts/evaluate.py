"""``eq accounts evaluate``: a tree embedded in several dimensions, each judged beside baselines."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from equipoise.cli import exits, options
from equipoise.cli.accounts.training import (
    device_option,
    relations,
    schedule_of,
    tell_engine,
    tell_where,
    training_options,
)
from equipoise.cli.accounts.trees import Source, tree_options
from equipoise.cli.engines import engine_options, running
from equipoise.cli.output import Output, pass_output
from equipoise.cli.scoring import refuse_unwritable
from equipoise.cli.several import Several, SeveralCommand
from equipoise.errors import DuplicateError

if TYPE_CHECKING:
    from equipoise.hierarchy.embedded import Embedded
    from equipoise.hierarchy.tree import Tree
    from equipoise.recipes.accounts.evaluation import AccountsEvaluation
    from equipoise.run.engines.base import Engine

HELP = """
\b
  eq accounts evaluate --database books.db --business-id acme --dims 2 5 10 -o results/
  eq accounts evaluate --tree accounts.csv --relation closure --embedder combinatorial

Embed a chart of accounts, or any other tree, in several dimensions, and rank the relatives of every node
by distance: mean rank, median rank, MAP, and how norms follow depth. A tuned euclidean embedding and a
random one always stand beside, and embeddings that the tree cannot tell apart share a letter.

With -o everything is kept: vectors, run directories for eq compare, eq report and eq view, and charts.
Typed again, the command trains only what is missing. Embeddings are trained on what they are to rank,
--relation, or on --train-on. --vectors judges vectors that you have already.

With --engine ray every embedding is trained on a cluster, dimensions and seeds side by side, with the same
figures. With --device cuda hyperbolic ones are trained on a GPU, and all are ranked there.
"""


class EmbedderName(options.Spelled):
    """An embedder of trees as it is written."""

    name = "embedder"

    def known(self) -> list[tuple[str, str]]:
        """The embedders that ship; texts are open."""
        from equipoise.hierarchy.embedders import EMBEDDERS

        return [*((name, "") for name in EMBEDDERS), ("text:", "a text model over the names")]


@click.command(
    cls=SeveralCommand, help=HELP, short_help="Embed a tree in several dimensions, and judge each."
)
@tree_options
@click.option(
    "--geometry",
    cls=Several,
    commas=True,
    metavar="NAME ...",
    help="Where embeddings are trained: lorentz, poincare, euclidean. [default: lorentz]",
)
@click.option(
    "--embedder",
    "embedders",
    cls=Several,
    type=EmbedderName(),
    metavar="NAME ...",
    help="Others besides: combinatorial, text:MODEL.",
)
@click.option(
    "--dims",
    cls=Several,
    commas=True,
    type=click.IntRange(min=1),
    default=(2, 5, 10, 15, 25, 50),
    show_default="2 5 10 15 25 50",
    metavar="N ...",
    help="Dimensions to try.",
)
@click.option(
    "--vectors",
    cls=Several,
    metavar="FILE ...",
    help="Vectors of your own, .csv or .npz; NAME=FILE too. --vectors-geometry says where they lie.",
)
@click.option("--vectors-geometry", metavar="NAME", help="The geometry of --vectors; a CSV is euclidean.")
@options.one_of("--relation", "relation", relations, "parent", "Whom each node ranks.")
@click.option(
    "--filtered/--raw", default=None, help="Leave other relatives out of ranks. [raw for parents only]"
)
@click.option(
    "--rates",
    cls=Several,
    commas=True,
    type=click.FloatRange(min=0, min_open=True),
    default=(0.1, 0.3, 1.0, 3.0),
    show_default="0.1 0.3 1 3",
    metavar="RATE ...",
    help="Learning rates that every trained embedding is tried at.",
)
@training_options
@device_option
@click.option(
    "--seeds", type=click.IntRange(min=1), default=1, show_default=True, help="How often each is trained."
)
@click.option("--level", type=float, default=0.95, show_default=True, help="Level of the intervals.")
@click.option(
    "--resamples", type=click.IntRange(min=1), default=2000, show_default=True, help="Bootstrap resamples."
)
@options.seed_option
@click.option("-o", "--output", metavar="FOLDER", help="Keep everything here.")
@options.fail_option
@engine_options
@options.output_options
@pass_output
def evaluate(
    out: Output,
    /,
    source: Source,
    geometry: tuple[str, ...],
    embedders: tuple[str, ...],
    dims: tuple[int, ...],
    vectors: tuple[str, ...],
    vectors_geometry: str | None,
    epochs: int | None,
    burn_in: int | None,
    negatives: str | None,
    train_on: str | None,
    seeds: int,
    seed: int,
    output: str | None,
    fail_on: str | None,
    engine: Engine,
    **judging: Any,
) -> int:
    """See ``HELP``."""
    from equipoise.recipes.accounts.evaluate import evaluate_tree, refuse_device
    from equipoise.recipes.accounts.settings import checked_settings

    if output is not None:
        refuse_unwritable(output)
    settings = {
        **judging,
        "embedders": embedders,
        "seeds": tuple(range(seed, seed + seeds)),
        "seed": seed,
        "options": schedule_of(epochs, burn_in, negatives, train_on),
    }
    # Somebody who names only other embedders, or has vectors, need not train a hyperbolic one.
    spaces = geometry or (() if embedders or vectors else ("lorentz",))
    refuse_device(judging.get("device"), engine)
    checked = checked_settings(spaces, dims, **settings)
    tree = source.read()
    own = own_vectors(vectors, vectors_geometry)
    _tell_flat(out, vectors, vectors_geometry)
    tell_where(out, checked)
    tell_engine(out, checked.embedders)
    made = sum(len(checked.seeds_of(cell)) for cell in checked.cells)
    with running(engine, out, "an embedding"), out.progress(len(own) + made) as step:
        found = evaluate_tree(
            tree,
            spaces,
            dims,
            vectors=own,
            output=output,
            command=out.command,
            step=step,
            engine=engine,
            **settings,
        )
    _show(out, found, output)
    return exits.gate(out, found.findings, fail_on)


def own_vectors(words: tuple[str, ...], geometry: str | None) -> dict[str, Embedded]:
    """The vectors named on the command line, by name: that before ``=``, or that of the file."""
    from equipoise.cli.sources import Source as Named
    from equipoise.geometry.names import geometry as geometry_named
    from equipoise.hierarchy.embedded import read_vectors

    space = None if geometry is None else geometry_named(geometry).name
    found: dict[str, Embedded] = {}
    for word in words:
        named = Named.of(word)
        if named.name in found:
            raise DuplicateError(
                f"two files of vectors are called {named.name}", hint="name one otherwise: mine=vectors.csv"
            )
        found[named.name] = read_vectors(named.path, space)
    return found


def _tell_flat(out: Output, words: tuple[str, ...], geometry: str | None) -> None:
    """A CSV does not say where its points lie, and a wrong guess would pass for a bad embedding."""
    silent = [word for word in words if not word.casefold().endswith(".npz")]
    if silent and geometry is None:
        out.note(f"{', '.join(silent)}: taken as euclidean; --vectors-geometry lorentz says otherwise")


def _show(out: Output, found: AccountsEvaluation, output: str | None) -> None:
    from equipoise.report.accounts import accounts_report

    if found.resumed:
        out.note(f"read back from {output}: the vectors of {', '.join(found.resumed)}")
    if out.json:
        out.data(found.to_dict())
    else:
        out.show(*accounts_report(found.edition, verbose=out.verbose, quiet=out.quiet))
    if output is not None:
        keep(out, found, Path(output))


def keep(out: Output, found: AccountsEvaluation, folder: Path) -> None:
    """Draw the charts beside the results, and say what to type next."""
    from equipoise.cli.suggest import suggestion
    from equipoise.recipes.accounts.pictures import Gallery, draw

    if any(each.dim >= 2 for each in found.judged):
        told = draw(Gallery.of(found).pictures(), folder)
        if told:
            out.note(told)
    out.note(f"wrote {folder}")
    if not out.quiet and not out.json:
        out.text(suggestion(["eq", "accounts", "plot", str(folder), "-o", "disk.html"]))


def described(tree: Tree) -> str:
    """A tree in a few words."""
    from equipoise.checks.base import counted

    return f"{tree.source}: {counted(len(tree), 'node')}, {counted(len(tree.edges), 'edge')}"
