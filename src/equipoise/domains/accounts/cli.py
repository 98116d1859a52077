"""``eq accounts evaluate``: a tree embedded in several dimensions, each judged beside baselines."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click

from equipoise.cli import options
from equipoise.cli import output as exits
from equipoise.cli.app import CommandEntry, LazyGroup
from equipoise.cli.options import MultiValueOption, SeveralCommand, engine_options, executor_context
from equipoise.cli.output import Output, pass_output, progress_bar
from equipoise.domains.accounts.cli_tree import TreeSource, tree_options
from equipoise.errors import DuplicateError, ParameterError, StoreError, UnknownNameError
from equipoise.extras import install_command
from equipoise.runs.experiment import check_writable

if TYPE_CHECKING:
    from equipoise.config import StatsConfig
    from equipoise.domains.accounts.charts import TreeCharts
    from equipoise.domains.accounts.evaluation import EmbeddingEvaluation
    from equipoise.domains.accounts.experiment import TreeEvaluationConfig
    from equipoise.domains.accounts.results import AccountsEvaluation
    from equipoise.domains.accounts.trees.tree import Tree
    from equipoise.domains.accounts.vectors import NodeVectors
    from equipoise.report.charts.chart import Chart
    from equipoise.runs.executors import Executor

# ``eq accounts``: trees embedded, judged and drawn.

COMMANDS = {
    "evaluate": CommandEntry(
        "equipoise.domains.accounts.cli:evaluate", "Embed a tree in several dimensions, and judge each."
    ),
    "train": CommandEntry("equipoise.domains.accounts.cli:train", "Embed a tree, and keep the vectors."),
    "plot": CommandEntry("equipoise.domains.accounts.cli:plot", "Draw the tree in the disk."),
    "demo": CommandEntry(
        "equipoise.domains.accounts.cli:demo", "Embed and judge the chart of accounts that is shipped."
    ),
}

GROUP_HELP = """
\b
  eq accounts evaluate --tree accounts.csv --geometry lorentz --dims 2 5 10 -o results/
  eq accounts train --tree accounts.csv --geometry lorentz --dim 10 -o account_vectors.csv

Embed a chart of accounts, or any other tree, and see how well distances keep the order of parents
and children, beside a tuned euclidean embedding and a random one.
"""


@click.group(cls=LazyGroup, entries=COMMANDS, help=GROUP_HELP, short_help="Embed trees, and judge the embeddings.")
def accounts() -> None:
    """See ``GROUP_HELP``."""


# Options of training that several commands share, and what they are called in Python.

device_option = click.option(
    "--device", metavar="NAME", help="Train hyperbolic embeddings and rank there: cuda, cuda:1, cpu."
)


relations = options.names_in("equipoise.domains.accounts.trees.tree", "RELATIONS")


def negative_sampling_choices() -> list[str]:
    """How strangers may be drawn."""
    from equipoise.domains.accounts.training.trainer import NegativeSampling

    return list(get_args(NegativeSampling))


def training_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """How long and against whom embeddings are trained."""
    decorated = command
    for option in reversed(_OPTIONS):
        decorated = option(decorated)
    return decorated


def training_config(
    epochs: int | None, burn_in: int | None, negatives: str | None, train_on: str | None
) -> dict[str, Any]:
    """The options that were given, by the names of ``TrainingConfig``."""
    given = {"epochs": epochs, "burn_in": burn_in, "aim": negatives, "train_on": train_on}
    return {name: value for name, value in given.items() if value is not None}


def report_devices(out: Output, settings: TreeEvaluationConfig) -> None:
    """Say which embeddings are trained on the processor although a device was named."""
    cells = settings.cells if settings.device is not None else ()
    staying = [each.system for each in cells if each.is_trained and not settings.is_on_device(each)]
    if staying:
        out.note(f"trained on the processor, and ranked on {settings.device}: {', '.join(staying)}")


def report_backend(out: Output, names: Iterable[str]) -> None:
    """Say where hyperbolic embeddings could be trained better: stages need numba."""
    from equipoise.domains.accounts.training.torch_backend import THERE
    from equipoise.domains.accounts.training.trainer import TrainingConfig, select_backend

    if any(name in THERE for name in names) and select_backend(TrainingConfig()) == "numpy":
        out.note(
            "without numba hyperbolic embeddings are trained by one plain descent, which is slower and does "
            f"less well in few dimensions: {install_command('fast')}"
        )


_OPTIONS: tuple[options.Decorator, ...] = (
    click.option("--epochs", type=click.IntRange(min=1), help="Epochs of training at most."),
    click.option(
        "--burn-in",
        type=click.IntRange(min=0),
        metavar="EPOCHS",
        help="Epochs at the beginning at a tenth of the rate.",
    ),
    click.option(
        "--negatives",
        type=options.ChoiceWithHint("way to draw negatives", negative_sampling_choices),
        help="How strangers are drawn: alike, by degree, or of a node's depth.",
    ),
    click.option(
        "--train-on",
        type=options.ChoiceWithHint("relation", relations),
        help="Whom training draws near to each node: parent, ancestors or closure. [as --relation]",
    ),
)


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


class TreeEmbedderParam(options.NameType):
    """An embedder of trees as it is written."""

    name = "embedder"

    def known(self) -> list[tuple[str, str]]:
        """The embedders that ship; texts are open."""
        from equipoise.domains.accounts.embedders import TREE_EMBEDDERS

        return [*((name, "") for name in TREE_EMBEDDERS), ("text:", "a text model over the names")]


@click.command(cls=SeveralCommand, help=HELP, short_help="Embed a tree in several dimensions, and judge each.")
@tree_options
@click.option(
    "--geometry",
    cls=MultiValueOption,
    commas=True,
    metavar="NAME ...",
    help="Where embeddings are trained: lorentz, poincare, euclidean. [default: lorentz]",
)
@click.option(
    "--embedder",
    "embedders",
    cls=MultiValueOption,
    type=TreeEmbedderParam(),
    metavar="NAME ...",
    help="Others besides: combinatorial, text:MODEL.",
)
@click.option(
    "--dims",
    cls=MultiValueOption,
    commas=True,
    type=click.IntRange(min=1),
    default=(2, 5, 10, 15, 25, 50),
    show_default="2 5 10 15 25 50",
    metavar="N ...",
    help="Dimensions to try.",
)
@click.option(
    "--vectors",
    cls=MultiValueOption,
    metavar="FILE ...",
    help="Vectors of your own, .csv or .npz; NAME=FILE too. --vectors-geometry says where they lie.",
)
@click.option("--vectors-geometry", metavar="NAME", help="The geometry of --vectors; a CSV is euclidean.")
@options.one_of("--relation", "relation", relations, "parent", "Whom each node ranks.")
@click.option("--filtered/--raw", default=None, help="Leave other relatives out of ranks. [raw for parents only]")
@click.option(
    "--rates",
    cls=MultiValueOption,
    commas=True,
    type=click.FloatRange(min=0, min_open=True),
    default=(0.1, 0.3, 1.0, 3.0),
    show_default="0.1 0.3 1 3",
    metavar="RATE ...",
    help="Learning rates that every trained embedding is tried at.",
)
@training_options
@device_option
@click.option("--seeds", type=click.IntRange(min=1), default=1, show_default=True, help="How often each is trained.")
@options.stats_options(omit=("test", "correction", "n_permutations"))
@click.option("-o", "--output", metavar="FOLDER", help="Keep everything here.")
@options.fail_option
@engine_options
@options.output_options
@pass_output
def evaluate(
    out: Output,
    /,
    source: TreeSource,
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
    config: StatsConfig,
    output: str | None,
    fail_on: str | None,
    engine: Executor,
    **judging: Any,
) -> int:
    """See ``HELP``."""
    from equipoise.domains.accounts.experiment import check_device, checked_settings, evaluate_tree

    if output is not None:
        check_writable(output)
    settings = {
        **judging,
        "embedders": embedders,
        "seeds": tuple(range(config.seed, config.seed + seeds)),
        "confidence_level": config.confidence_level,
        "n_resamples": config.n_resamples,
        "seed": config.seed,
        "options": training_config(epochs, burn_in, negatives, train_on),
    }
    # Somebody who names only other embedders, or has vectors, need not train a hyperbolic one.
    spaces = geometry or (() if embedders or vectors else ("lorentz",))
    check_device(judging.get("device"), engine)
    checked = checked_settings(spaces, dims, **settings)
    tree = source.read()
    own = read_user_vectors(vectors, vectors_geometry)
    _tell_flat(out, vectors, vectors_geometry)
    report_devices(out, checked)
    report_backend(out, checked.embedders)
    made = sum(len(checked.seeds_of(cell)) for cell in checked.cells)
    with executor_context(engine, out, "an embedding"), out.progress(len(own) + made) as step:
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


def read_user_vectors(words: tuple[str, ...], geometry: str | None) -> dict[str, NodeVectors]:
    """The vectors named on the command line, by name: that before ``=``, or that of the file."""
    from equipoise.cli.inputs import SystemInput as Named
    from equipoise.domains.accounts.vectors import read_node_vectors
    from equipoise.geometry.spaces import geometry as geometry_named

    space = None if geometry is None else geometry_named(geometry).name
    found: dict[str, NodeVectors] = {}
    for word in words:
        named = Named.of(word)
        if named.name in found:
            raise DuplicateError(
                f"two files of vectors are called {named.name}", hint="name one otherwise: mine=vectors.csv"
            )
        found[named.name] = read_node_vectors(named.path, space)
    return found


def _tell_flat(out: Output, words: tuple[str, ...], geometry: str | None) -> None:
    """A CSV does not say where its points lie, and a wrong guess would pass for a bad embedding."""
    silent = [word for word in words if not word.casefold().endswith(".npz")]
    if silent and geometry is None:
        out.note(f"{', '.join(silent)}: taken as euclidean; --vectors-geometry lorentz says otherwise")


def _show(out: Output, found: AccountsEvaluation, output: str | None) -> None:
    from equipoise.domains.accounts.report import accounts_report

    if found.resumed:
        out.note(f"read back from {output}: the vectors of {', '.join(found.resumed)}")
    if out.json:
        out.data(found.to_dict())
    else:
        out.show(*accounts_report(found.edition, verbose=out.verbose, quiet=out.quiet))
    if output is not None:
        write_outputs(out, found, Path(output))


def write_outputs(out: Output, found: AccountsEvaluation, folder: Path) -> None:
    """Draw the charts beside the results, and say what to type next."""
    from equipoise.cli.output import suggestion
    from equipoise.domains.accounts.charts import TreeCharts, write_charts

    if any(each.dim >= 2 for each in found.judged):
        told = write_charts(TreeCharts.of(found).pictures(), folder)
        if told:
            out.note(told)
    out.note(f"wrote {folder}")
    if not out.quiet and not out.json:
        out.text(suggestion(["eq", "accounts", "plot", str(folder), "-o", "disk.html"]))


def describe_tree(tree: Tree) -> str:
    """A tree in a few words."""
    from equipoise.checks.base import pluralize

    return f"{tree.source}: {pluralize(len(tree), 'node')}, {pluralize(len(tree.edges), 'edge')}"


# Files that a command is to write: looked at before the work begins.

VECTORS = (".csv", ".csv.gz", ".npz")
"""What files of vectors are called."""


def check_suffix(file: Path) -> None:
    """Vectors are kept in two forms; a name that promises another would hold one of these."""
    if not file.name.casefold().endswith(VECTORS):
        raise ParameterError(
            f"{file} has no ending that says how to keep the vectors", hint=f"it ends in {', '.join(VECTORS)}"
        )


# ``eq accounts train``: a tree embedded once, and its vectors kept.

TRAIN_HELP = """
\b
  eq accounts train --tree accounts.csv --geometry lorentz --dim 10 -o account_vectors.csv
  eq accounts train --wordnet mammal --geometry poincare --dim 5 -o mammals.npz

Embed a chart of accounts, or any other tree, and keep the vectors: as CSV with id, name and coordinates, or
as .npz, which also holds the geometry and what made them. Points of the Lorentz model have one coordinate
more than dimensions, the time first. How well the vectors keep the tree is said at the end. With --device
cuda a hyperbolic embedding is trained on a GPU, every node against all others at once.
"""

BESIDE = "eq accounts evaluate --vectors{} puts a tuned euclidean embedding and a random one beside."


@click.command(help=TRAIN_HELP, short_help="Embed a tree, and keep the vectors.")
@tree_options
@click.option("--geometry", metavar="NAME", help="lorentz, poincare or euclidean. [default: lorentz]")
@click.option("--embedder", type=TreeEmbedderParam(), help="Another embedder: combinatorial, random, text:MODEL.")
@click.option("--dim", type=click.IntRange(min=1), help="Dimensions; 10, or those of a text model.")
@training_options
@click.option("--rate", type=click.FloatRange(min=0, min_open=True), help="The learning rate at the start.")
@device_option
@options.one_of("--relation", "relation", relations, "parent", "Whom each node ranks when it is judged.")
@click.option("--filtered/--raw", default=None, help="Leave other relatives out of ranks. [raw for parents only]")
@options.seed_option
@click.option("-o", "--output", required=True, metavar="FILE", help="Where the vectors go: .csv or .npz.")
@options.output_options
@pass_output
def train(
    out: Output,
    /,
    source: TreeSource,
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
    """See ``TRAIN_HELP``."""
    from equipoise.domains.accounts.embedders import normalise_name
    from equipoise.domains.accounts.evaluation import evaluate_embedding
    from equipoise.domains.accounts.experiment import (
        TEXT,
        TRAINED,
        check_combinatorial_dim,
        check_finite_vectors,
        embedder_for_geometry,
    )
    from equipoise.domains.accounts.reconstruction import check_has_edges

    if geometry is not None and embedder is not None:
        raise ParameterError("--geometry and --embedder name two embedders", hint="leave out one of them")
    check_suffix(Path(output))
    check_writable(output, example="account_vectors.csv")
    name = normalise_name(embedder) if embedder else embedder_for_geometry(geometry or "lorentz")
    chosen = training_config(**training) | ({} if rate is None else {"rate": rate})
    made = _Made(name, ({"train_on": relation} if name in TRAINED else {}) | chosen, device)
    wanted = dim if dim is not None or name.startswith(TEXT) else 10
    check_combinatorial_dim(name, wanted)
    tree = source.read()
    check_has_edges(tree)
    report_backend(out, [name])
    with progress_bar(out, f"training {name}", made.epochs) as count:
        found = made.fit(tree, wanted, seed, lambda done, total: count(done))
    judged = evaluate_embedding(
        tree,
        check_finite_vectors(found, name),
        system=name,
        relation=relation,
        filtered=filtered,
        device=device,
    )
    found.write(output)
    _train_show(out, found, judged, describe_tree(tree), output)
    return 0


class _Made:
    """What embeds the tree: an embedder of the processor, or training on a device; checked at once."""

    def __init__(self, name: str, options: dict[str, Any], device: str | None) -> None:
        from equipoise.domains.accounts.embedders import tree_embedder
        from equipoise.domains.accounts.training.torch_backend import THERE, whole_schedule

        self._name, self._options = name, options
        self._device = device if name in THERE else None
        self._embedder = tree_embedder(name, **options)
        schedule = getattr(self._embedder, "schedule", None)
        if device is not None:
            from equipoise.geometry.gpu_search import check_device_name, torch_device

            check_device_name(device)
        if self._device is not None:
            schedule = whole_schedule(options)
        if device is not None:
            torch_device(device)
        self.epochs: int = getattr(schedule, "epochs", 1)

    def fit(self, tree: Tree, dim: int | None, seed: int, progress: Callable[[int, int], None]) -> NodeVectors:
        """The vectors of the tree's nodes."""
        from equipoise.domains.accounts.training.torch_backend import fitted_on

        if self._device is not None and dim is not None:
            return fitted_on(self._device, self._name, tree, dim, seed, options=self._options, progress=progress)
        # A text model that is given no dimension keeps its own.
        return self._embedder.fit(tree, dim, seed, progress=progress)  # type: ignore[arg-type]


def _train_show(out: Output, found: NodeVectors, judged: EmbeddingEvaluation, tree: str, output: str) -> None:
    from equipoise.checks.base import pluralize
    from equipoise.domains.accounts.report import SINGLE, chance_note, summary_line, training_relation_notes
    from equipoise.domains.accounts.results import view_row
    from equipoise.domains.accounts.trees.tree import PARENT
    from equipoise.report.terminal import Paragraph

    if out.json:
        out.data({**judged.to_dict(), "epochs": len(found.history), "written": [output]})
    else:
        epochs = f" in {pluralize(len(found.history), 'epoch')}" if found.history else ""
        out.show(Paragraph(f"{tree}; {judged.system} in {pluralize(found.dim, 'dimension')}{epochs}."))
        out.show(Paragraph(summary_line(view_row(judged))))
        for sentence in training_relation_notes([view_row(judged)], judged.relation):
            out.show(Paragraph(sentence))
        if judged.single and not out.quiet:
            out.show(Paragraph(SINGLE))
        if not out.quiet:
            relation = "" if judged.relation == PARENT else f" --relation {judged.relation}"
            out.show(Paragraph(f"{chance_note(view_row(judged))} {BESIDE.format(relation)}"))
    out.note(f"wrote {output}")


# ``eq accounts demo``: the chart of accounts that comes with the program, embedded and judged.

DEMO_HELP = """
\b
  eq accounts demo
  eq accounts demo --business-id larkspur --dims 2 5 10 -o demo/

Read one of the two businesses whose charts of accounts come with the program, embed it in the Lorentz model,
and judge the vectors beside a tuned euclidean embedding, a combinatorial construction and a random one: no
data to prepare. With -o the vectors, run directories and charts are left in a folder.
"""

GEOMETRY, EMBEDDERS, RATES = "lorentz", ("combinatorial",), (0.3, 1.0)


def businesses() -> list[str]:
    """The businesses of the sample."""
    from equipoise.domains.accounts.trees.read import BUSINESSES

    return list(BUSINESSES)


@click.command(cls=SeveralCommand, help=DEMO_HELP, short_help="Embed and judge the chart of accounts that is shipped.")
@options.one_of("--business-id", "business", businesses, "acme", "Which of the two.")
@click.option(
    "--dims",
    cls=MultiValueOption,
    commas=True,
    type=click.IntRange(min=2),
    default=(2, 5),
    show_default="2 5",
    metavar="N ...",
    help="Dimensions to try.",
)
@options.seed_option
@click.option("-o", "--output", metavar="FOLDER", help="Keep everything here.")
@options.output_options
@pass_output
def demo(out: Output, /, business_id: str, dims: tuple[int, ...], seed: int, output: str | None) -> int:
    """See ``DEMO_HELP``."""
    from equipoise.domains.accounts.experiment import checked_settings, evaluate_tree
    from equipoise.domains.accounts.report import accounts_report
    from equipoise.domains.accounts.trees.read import accounts
    from equipoise.domains.accounts.trees.sql import read_sql

    if output is not None:
        check_writable(output)
    settings: dict[str, Any] = {"embedders": EMBEDDERS, "rates": RATES, "seeds": seed, "seed": seed}
    tree = replace(read_sql(str(accounts()), business_id), source=f"the chart of accounts of {business_id}")
    with out.progress(len(checked_settings(GEOMETRY, dims, **settings).cells)) as step:
        found = evaluate_tree(tree, GEOMETRY, dims, output=output, command=out.command, step=step, **settings)
    if out.json:
        out.data(found.to_dict())
    else:
        out.show(*accounts_report(found.edition, verbose=out.verbose, quiet=out.quiet))
    if output is not None:
        write_outputs(out, found, Path(output))
    return 0


# ``eq accounts plot``: the tree in the disk, as a page, an SVG or a PNG.

PLOT_HELP = """
\b
  eq accounts plot results/ -o disk.html
  eq accounts plot account_vectors.csv --tree accounts.csv --geometry lorentz -o disk.svg

Draw an embedded tree in the Poincare disk with its edges: one HTML file that opens from disk without a
network, in which pointing at a mark shows the account. The page also has norms against depth and, for a
folder that eq accounts evaluate wrote, MR and MAP against dimensions. A name in .svg or .png gets one chart.
Vectors from a file need their tree beside them. Flat embeddings are drawn in the plane.
"""

SUFFIXES = (".html", ".svg", ".png")
DIMENSIONS = "dimensions-"
"""How the names of charts begin that show all embeddings."""


@click.command(help=PLOT_HELP, short_help="Draw the tree in the disk.")
@click.argument("place", metavar="RESULTS")
@tree_options
@click.option("--system", metavar="NAME", help="Which embedding; hyperbolic and of two dimensions by default.")
@click.option("--geometry", metavar="NAME", help="The geometry of a CSV of vectors; euclidean by default.")
@click.option("--chart", metavar="NAME", help="Only this chart; an .svg or .png holds the tree by default.")
@click.option("-o", "--output", required=True, metavar="FILE", help="disk.html, or a name in .svg or .png.")
@options.output_options
@pass_output
def plot(
    out: Output,
    /,
    place: str,
    source: TreeSource,
    system: str | None,
    geometry: str | None,
    chart: str | None,
    output: str,
) -> int:
    """See ``PLOT_HELP``."""
    file = Path(output)
    _check_chart_file(file)
    gallery = _gallery(Path(place), source, system, geometry)
    pictures = _chosen(gallery.pictures(), chart)
    _write(file, gallery, pictures)
    of_one = any(not each.name.startswith(DIMENSIONS) for each in pictures)
    if out.json:
        names = [each.name for each in (pictures if file.suffix.casefold() == ".html" else pictures[:1])]
        out.data({"system": gallery.system if of_one else None, "charts": names, "written": [output]})
    out.note(f"wrote {output} ({gallery.system})" if of_one else f"wrote {output}")
    return 0


def _gallery(place: Path, source: TreeSource, system: str | None, geometry: str | None) -> TreeCharts:
    from equipoise.domains.accounts.charts import TreeCharts

    if place.is_dir():
        if source.named or geometry is not None:
            raise ParameterError(f"{place} keeps its own tree and geometry", hint="name only the folder, and --system")
        return TreeCharts.read(place, system)
    from equipoise.domains.accounts.vectors import align_and_check, read_node_vectors
    from equipoise.geometry.spaces import geometry as geometry_named

    if not place.exists():
        raise StoreError(
            f"there is no {place}", hint="name the folder of eq accounts evaluate -o, or a file of vectors"
        )
    tree = source.read()
    found = read_node_vectors(place, None if geometry is None else geometry_named(geometry).name)
    return TreeCharts(tree, system or place.stem, align_and_check(found, tree))


def _write(file: Path, gallery: TreeCharts, pictures: list[Chart]) -> None:
    from equipoise.io.atomic import write_bytes
    from equipoise.report.charts.render import render_png, render_svg
    from equipoise.report.publish import charts_html

    if file.suffix.casefold() == ".html":
        tree = gallery.tree
        text = f"{tree.source}: {len(tree):,} nodes, {len(tree.edges):,} edges, {len(tree.roots):,} roots."
        write_bytes(file, charts_html(gallery.system, text, pictures).encode())
        return
    write_bytes(
        file,
        render_png(pictures[0]) if file.suffix.casefold() == ".png" else render_svg(pictures[0]).encode(),
    )


def _chosen(pictures: list[Chart], chart: str | None) -> list[Chart]:
    """All charts, or the one that was named."""
    known = {each.name: each for each in pictures}
    if chart is not None and chart not in known:
        raise UnknownNameError.of("chart", chart, known, more=f"there are: {', '.join(known)}")
    return pictures if chart is None else [known[chart]]


def _check_chart_file(file: Path) -> None:
    """Raise before any work if the chart cannot be written."""
    if file.suffix.casefold() not in SUFFIXES:
        raise ParameterError(f"{file} has no ending that says what to draw", hint=f"it ends in {', '.join(SUFFIXES)}")
    check_writable(file, example="disk.html")
