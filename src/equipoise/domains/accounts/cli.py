"""``eq accounts``: the commands evaluate, train, plot and demo."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from equipoise.cli import options
from equipoise.cli import output as exits
from equipoise.cli.main import CommandEntry, LazyGroup
from equipoise.cli.options import MultiValueOption, engine_options, executor_context
from equipoise.cli.output import Output, pass_output, suggestion
from equipoise.domains.accounts.cli_tree import (
    TreeSource,
    embedding_options,
    file_or_tree_options,
    tree_options,
    with_file,
)
from equipoise.errors import DuplicateError, ParameterError, StoreError, UnknownNameError
from equipoise.runs.experiment_folder import RUNS, check_writable, exit_code, folder_name
from equipoise.types import install_command

if TYPE_CHECKING:
    from equipoise.config import StatsConfig
    from equipoise.domains.accounts.charts import TreeCharts
    from equipoise.domains.accounts.evaluation import EmbeddingEvaluation
    from equipoise.domains.accounts.experiment import TreeEvaluationConfig
    from equipoise.domains.accounts.results import AccountsEvaluation
    from equipoise.domains.accounts.vectors import NodeVectors
    from equipoise.report.charts.chart import Chart
    from equipoise.runs.executors import Executor

COMMANDS = {
    "evaluate": CommandEntry(
        "equipoise.domains.accounts.cli:evaluate",
        "Embed a tree once per number of dimensions, and evaluate each embedding.",
    ),
    "train": CommandEntry("equipoise.domains.accounts.cli:train", "Embed a tree, and write the vectors."),
    "check": CommandEntry(
        "equipoise.domains.accounts.cli_tree:check",
        "List all problems in a tree, and the number of nodes at each depth.",
    ),
    "misfiled": CommandEntry(
        "equipoise.domains.accounts.cli_tree:misfiled", "List accounts whose names fit better under another parent."
    ),
    "place": CommandEntry(
        "equipoise.domains.accounts.cli_tree:place",
        "Rank possible parents for a new account, or evaluate such placements.",
    ),
    "nearest": CommandEntry(
        "equipoise.domains.accounts.cli_tree:nearest", "List the nearest neighbours of an account in an embedding."
    ),
    "shape": CommandEntry(
        "equipoise.domains.accounts.cli_tree:shape", "Measure the delta-hyperbolicity of a tree or of distances."
    ),
    "plot": CommandEntry("equipoise.domains.accounts.cli:plot", "Plot the tree in the Poincare disk."),
    "demo": CommandEntry("equipoise.domains.accounts.cli:demo", "Embed and evaluate a sample chart of accounts."),
}

ACCOUNTS_HELP = """
\b
  eq accounts evaluate accounts.csv --geometry lorentz --dims 2 5 10 -o results/
  eq accounts train accounts.csv --geometry lorentz --dim 10 -o account_vectors.csv

Embed a chart of accounts, or any other tree, and evaluate how well distances reconstruct it, compared with a
combinatorial, a tuned Euclidean and a random embedding as baselines.
"""


@click.group(
    cls=LazyGroup, entries=COMMANDS, help=ACCOUNTS_HELP, short_help="Embed trees, and evaluate the embeddings."
)
def accounts() -> None:
    """See ``ACCOUNTS_HELP``."""


device_option = click.option(
    "--device",
    metavar="NAME",
    help="Train hyperbolic embeddings and rank on this device: cuda, cuda:1, mps or cpu.  [default: cpu]",
)


relations = options.names_in("equipoise.domains.accounts.trees.tree", "RELATIONS")


def report_devices(out: Output, settings: TreeEvaluationConfig) -> None:
    """Report which embeddings are trained on the CPU although there is a device."""
    specs = settings.specs if settings.device is not None else ()
    on_cpu = [spec.system for spec in specs if spec.is_trained and not settings.is_on_device(spec)]
    if on_cpu:
        out.note(f"trained on the CPU, and ranked on {settings.device}: {', '.join(on_cpu)}")


_TRAINING_OPTIONS: tuple[options.Decorator, ...] = (
    click.option(
        "--epochs",
        type=click.IntRange(min=1),
        help="Maximum number of epochs.  [default: 1000; 250 on a GPU; for Euclidean embeddings 400 if trained on "
        "parents, else 300]",
    ),
    click.option(
        "--restarts",
        type=click.IntRange(min=1),
        help="Number of training runs from different initial vectors; the one with the lowest loss is kept.  "
        "[default: 8; fewer for more than 5,000 training pairs]",
    ),
    click.option(
        "--train-relation",
        type=options.ChoiceWithHint("relation", relations),
        help="The relation to train on.  [default: the same as --relation]",
    ),
)


def training_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options of training; the command gets those that are set as one ``training``."""

    @wraps(command)
    def collected(*args: Any, **values: Any) -> Any:
        names = ("epochs", "restarts", "train_relation")
        training = {name: value for name in names if (value := values.pop(name)) is not None}
        return command(*args, training=training, **values)

    return options.joined(*_TRAINING_OPTIONS)(collected)


FILTERED_HELP = (
    "Ignore the other targets of a node when ranking one (filtered ranks), or count them (raw ranks).  [default: raw "
    "for parents, filtered otherwise]"
)

EVALUATE_HELP = """
\b
  eq accounts evaluate --database books.db --business-id acme --dims 2 5 10 -o results/
  eq accounts evaluate accounts.csv --relation closure --embedder text:minilm

Embed a chart of accounts, or any other tree, once per number of dimensions. For every node, all other nodes are ranked
by distance, and the targets are its parent or other related nodes (--relation). The scores are mean rank (MR), median
rank, MAP, and NormDepth: Spearman's correlation of the norm with the position between root (0) and leaf (1). A
combinatorial construction, a tuned Euclidean embedding and a random one are always included as baselines. Embeddings
that are not significantly worse than the best one are marked as tied.

With -o all results are written: vectors, run directories for eq compare, eq report and eq view, and charts. If
the command is repeated, only missing embeddings are trained. --vectors adds existing vectors; --distances evaluates
distance matrices instead of embeddings.

With --engine ray embeddings are trained on a cluster, in parallel, with the same results. With --device cuda
hyperbolic embeddings are trained on a GPU, and all embeddings are ranked there.
"""


class TreeEmbedderParam(options.NameType):
    """The name of a tree embedder."""

    name = "embedder"

    def known(self) -> list[tuple[str, str]]:
        """The embedders that ship; texts are open."""
        from equipoise.domains.accounts.embedders import TREE_EMBEDDERS

        return [*((name, "") for name in TREE_EMBEDDERS), ("text:", "a text model over the names")]


@options.command(help=EVALUATE_HELP)
@file_or_tree_options
@click.option(
    "--geometry",
    cls=MultiValueOption,
    commas=True,
    metavar="NAME ...",
    help="Geometries of the trained embeddings: lorentz, poincare, euclidean.  [default: lorentz; none with --vectors]",
)
@click.option(
    "--embedder",
    "embedders",
    cls=MultiValueOption,
    type=TreeEmbedderParam(),
    metavar="NAME ...",
    help="Further embedders, in addition to --geometry and the baselines: text:MODEL.",
)
@click.option(
    "--dims",
    cls=MultiValueOption,
    commas=True,
    type=click.IntRange(min=1),
    default=(2, 5, 10, 15, 25, 50),
    show_default="2 5 10 15 25 50",
    metavar="N ...",
    help="Dimensions of the embeddings.",
)
@click.option(
    "--vectors",
    cls=MultiValueOption,
    metavar="FILE ...",
    help="Existing vectors to evaluate as well: .csv, .npz, word2vec text, gensim .kv, .pth; or NAME=FILE.",
)
@click.option(
    "--distances",
    cls=MultiValueOption,
    metavar="FILE ...",
    help="Evaluate distance matrices instead (.npy, or CSV with or without ids); or NAME=FILE.",
)
@click.option(
    "--vectors-geometry",
    metavar="NAME",
    help="The geometry of --vectors that do not record it, such as CSV.  [default: lorentz if all points are on the "
    "hyperboloid, otherwise euclidean]",
)
@options.one_of("--relation", "relation", relations, "parent", "Which related nodes are the ranking targets.")
@click.option("--filtered/--raw", default=None, help=FILTERED_HELP)
@click.option(
    "--learning-rates",
    cls=MultiValueOption,
    commas=True,
    type=click.FloatRange(min=0, min_open=True),
    default=(0.1, 0.3, 1.0, 3.0),
    show_default="0.1 0.3 1 3",
    metavar="RATE ...",
    help="Learning rates to try for every trained embedding.",
)
@training_options
@device_option
@click.option(
    "--n-seeds",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Number of seeds; with several, scores are means over seeds.",
)
@options.stats_options()
@click.option("-o", "--output", metavar="FOLDER", help="Write all results to this folder.")
@options.fail_option
@engine_options
@options.log_option
@options.table_options(file=False)
@options.output_options
@pass_output
def evaluate(
    out: Output,
    /,
    file: str | None,
    source: TreeSource,
    geometry: tuple[str, ...],
    embedders: tuple[str, ...],
    dims: tuple[int, ...],
    vectors: tuple[str, ...],
    distances: tuple[str, ...],
    vectors_geometry: str | None,
    training: dict[str, Any],
    n_seeds: int,
    device: str | None,
    config: StatsConfig,
    output: str | None,
    fail_on: str | None,
    engine: Executor,
    **ranking: Any,
) -> int:
    """See ``EVALUATE_HELP``."""
    from equipoise.domains.accounts.experiment import (
        UNTRAINED_SHARE,
        evaluate_tree,
        job_weights,
        tree_evaluation_config,
    )
    from equipoise.runs.executors import check_device

    source = with_file(source, file)
    if distances:
        if geometry or embedders or vectors or output:
            raise ParameterError(
                "--distances trains no embeddings", hint="leave out --geometry, --embedder, --vectors and -o"
            )
        return _evaluate_distances(out, source, distances, config, ranking["relation"], ranking["filtered"])
    if output is not None:
        check_writable(output)
    settings = {
        **ranking,
        "device": device,
        "embedders": embedders,
        "seeds": tuple(range(config.seed, config.seed + n_seeds)),
        "config": config,
        "training": training,
    }
    # With existing vectors no hyperbolic embedding is trained by default.
    geometries = geometry or (() if vectors else ("lorentz",))
    check_device(device, engine)
    checked = tree_evaluation_config(geometries, dims, **settings)
    with out.working("reading the tree"):
        tree = source.read()
    user_vectors = read_user_vectors(vectors, vectors_geometry)
    if vectors_geometry is None:
        _report_assumed_geometry(out, user_vectors, "--vectors-geometry")
    report_devices(out, checked)
    weights = {**dict.fromkeys(user_vectors, UNTRAINED_SHARE), **job_weights(checked)}
    n_jobs = len(user_vectors) + sum(len(checked.seeds_for(spec)) for spec in checked.specs)
    with executor_context(engine, out, "an embedding"), out.progress(n_jobs, weights) as step:
        evaluation = evaluate_tree(
            tree,
            geometries,
            dims,
            vectors=user_vectors,
            output=output,
            command=out.command,
            step=step,
            engine=engine,
            **settings,
        )
    _show_evaluation(out, evaluation, output)
    gate = exits.gate(out, evaluation.findings, fail_on)
    return exit_code(evaluation.failures) or gate


def _evaluate_distances(
    out: Output,
    source: TreeSource,
    arguments: tuple[str, ...],
    config: StatsConfig,
    relation: str,
    filtered: bool | None,
) -> int:
    """Evaluate distance matrices, and compare them if there are several."""
    from equipoise.cli.inputs import SystemInput
    from equipoise.domains.accounts.distances import align_distances, evaluate_distances, read_distances
    from equipoise.domains.accounts.report import distances_view
    from equipoise.runs.compare import compare

    tree = source.read()
    evaluations = []
    for argument in arguments:
        system = SystemInput.of(argument)
        matrix = align_distances(tree, *read_distances(system.path))
        evaluations.append(
            evaluate_distances(tree, system.name, matrix, relation=relation, filtered=filtered, config=config)
        )
    results = [item.result for item in evaluations]
    primary = results[0].names[0]
    comparison = compare(results, [primary, "MAP"], primary=primary, config=config) if len(results) > 1 else None
    if out.json:
        comparison_fields = None if comparison is None else comparison.to_dict()
        out.data({"systems": [item.to_dict() for item in evaluations], "comparison": comparison_fields})
    else:
        out.view(distances_view(evaluations, comparison, tree, relation))
    return exits.DONE


def read_user_vectors(arguments: tuple[str, ...], geometry: str | None) -> dict[str, NodeVectors]:
    """The vectors of the command line by name: that before ``=``, or that of the file."""
    from equipoise.cli.inputs import SystemInput
    from equipoise.domains.accounts.vectors import read_node_vectors
    from equipoise.geometry.spaces import geometry as geometry_named

    geometry_name = None if geometry is None else geometry_named(geometry).name
    vectors: dict[str, NodeVectors] = {}
    for argument in arguments:
        system = SystemInput.of(argument)
        if system.name in vectors:
            raise DuplicateError(
                f"two files of vectors have the name {system.name}", hint="rename one: mine=vectors.csv"
            )
        vectors[system.name] = read_node_vectors(system.path, geometry_name)
    return vectors


def _report_assumed_geometry(out: Output, vectors: Mapping[str, NodeVectors], option: str) -> None:
    """A CSV has no geometry, and with a wrong one the scores would be too low."""
    for name, item in vectors.items():
        if item.geometry == "euclidean" and not item.settings:
            out.note(f"{name}: read as euclidean; use {option} for another geometry")


def _show_evaluation(out: Output, evaluation: AccountsEvaluation, output: str | None) -> None:
    from equipoise.domains.accounts.report import accounts_view

    if evaluation.resumed:
        out.note(f"reused from {output}: the vectors of {', '.join(evaluation.resumed)}")
    out.results(evaluation.to_dict, lambda: accounts_view(evaluation))
    out.failures(evaluation.failures, "system")
    if output is not None:
        write_outputs(out, evaluation, Path(output))


def write_outputs(out: Output, evaluation: AccountsEvaluation, folder: Path) -> None:
    """Write the charts to the folder of the results, and suggest the next command."""
    from equipoise.domains.accounts.charts import TreeCharts
    from equipoise.domains.accounts.disk_chart import write_drawing
    from equipoise.domains.accounts.report import accounts_view
    from equipoise.domains.accounts.results import CHARTS
    from equipoise.report.charts.chart import write_charts

    charts = TreeCharts.of(evaluation).charts() if any(item.dim >= 2 for item in evaluation.evaluations) else []
    runs = [folder / RUNS / folder_name(item.system) for item in evaluation.evaluations]
    accounts_view(evaluation).with_charts(charts).write(folder, runs)
    if charts and not write_charts(charts[1:], folder / CHARTS, required=False):
        out.note(f"For charts: {install_command('report')}")
    elif charts:
        write_drawing(TreeCharts.of(evaluation).drawing(), folder / CHARTS / charts[0].name)
    out.note(f"wrote {folder}")
    if not out.quiet and not out.json:
        out.text(suggestion(["eq", "accounts", "plot", str(folder), "-o", "disk.html"]))


VECTOR_SUFFIXES = (".csv", ".csv.gz", ".npz")
"""Suffixes of files of vectors."""


def check_suffix(file: Path, suffixes: tuple[str, ...], kind: str) -> None:
    """Raise an error for a file extension that is not one of these."""
    if not file.name.casefold().endswith(suffixes):
        raise ParameterError(
            f"{file} does not have the file extension of a {kind} format", hint=f"use one of {', '.join(suffixes)}"
        )


TRAIN_HELP = """
\b
  eq accounts train accounts.csv --geometry lorentz --dim 10 -o account_vectors.csv
  eq accounts train --wordnet mammal --geometry poincare --dim 5 -o mammals.npz

Embed a chart of accounts, or any other tree, write the vectors, and print their scores. A CSV file has id, name and
coordinates; an .npz file also has the geometry and the settings. Points of the Lorentz model have one more coordinate
than dimensions; the time-like coordinate is first. With --device cuda a hyperbolic embedding is trained on a GPU, with
all other nodes as negatives. With --continue-from existing vectors are trained further, and new nodes are initialised
next to their parents.
"""

BASELINE_HINT = "To compare the vectors with baselines, run eq accounts evaluate on the same tree with --vectors {}."


@options.command(help=TRAIN_HELP)
@file_or_tree_options
@click.option(
    "--geometry",
    metavar="NAME",
    help="lorentz, poincare or euclidean.  [default: lorentz, or that of --continue-from]",
)
@click.option("--embedder", type=TreeEmbedderParam(), help="Another embedder: combinatorial, random, text:MODEL.")
@click.option("--dim", type=click.IntRange(min=1), help="Dimensions.  [default: 10, or that of the text model]")
@training_options
@click.option("--learning-rate", type=click.FloatRange(min=0, min_open=True), help="Initial learning rate.")
@click.option("--continue-from", metavar="FILE", help="Continue training these vectors; new nodes are added.")
@device_option
@options.one_of("--relation", "relation", relations, "parent", "Which related nodes are the ranking targets.")
@click.option("--filtered/--raw", default=None, help=FILTERED_HELP)
@options.seed_option
@click.option("-o", "--output", required=True, metavar="FILE", help="Output file of the vectors: .csv or .npz.")
@options.output_options
@pass_output
def train(
    out: Output,
    /,
    file: str | None,
    source: TreeSource,
    geometry: str | None,
    embedder: str | None,
    dim: int | None,
    seed: int,
    output: str,
    relation: str,
    filtered: bool | None,
    learning_rate: float | None,
    continue_from: str | None,
    device: str | None,
    training: dict[str, Any],
) -> int:
    """See ``TRAIN_HELP``."""
    from equipoise.checks.base import pluralize
    from equipoise.domains.accounts.embedders import LorentzEmbedder, normalise_name, tree_embedder
    from equipoise.domains.accounts.evaluation import check_has_edges, evaluate_embedding
    from equipoise.domains.accounts.experiment import (
        TEXT,
        TRAINED,
        check_combinatorial_dim,
        check_finite_vectors,
        embedder_for_geometry,
    )
    from equipoise.domains.accounts.report import describe_tree
    from equipoise.domains.accounts.training.torch_backend import DEVICE_EMBEDDERS, device_config, fit_on_device
    from equipoise.domains.accounts.vectors import read_node_vectors
    from equipoise.geometry.gpu_search import check_device_name, torch_device

    if geometry is not None and embedder is not None:
        raise ParameterError("--geometry and --embedder cannot be used together", hint="leave out one of them")
    check_suffix(Path(output), VECTOR_SUFFIXES, "vector")
    check_writable(Path(output), example="account_vectors.csv")
    old = None if continue_from is None else read_node_vectors(continue_from)
    default = "lorentz" if old is None else old.geometry
    name = normalise_name(embedder) if embedder else embedder_for_geometry(geometry or default)
    if name in TRAINED:
        training = {"train_relation": relation} | training
    if learning_rate is not None:
        training = training | {"learning_rate": learning_rate}
    trainer = tree_embedder(name, **training)
    epochs = getattr(trainer, "config", None) and trainer.config.epochs  # type: ignore[attr-defined]
    fit = trainer.fit
    if device is not None:
        check_device_name(device)
        if name in DEVICE_EMBEDDERS:
            epochs, fit = device_config(training).epochs, partial(fit_on_device, device, name, options=training)
        torch_device(device)
    embedding_dim = dim if dim is not None or name.startswith(TEXT) else 10
    check_combinatorial_dim(name, embedding_dim)
    with out.working("reading the tree"):
        tree = with_file(source, file).read()
    check_has_edges(tree)
    with out.count(f"training {name}", epochs or 1) as count:
        report = lambda done, total: count(done * (epochs or 1) // max(1, total))  # noqa: E731
        if old is None:
            # Without a dimension a text model keeps its full dimension.
            vectors = fit(tree, embedding_dim, seed, progress=report)  # type: ignore[arg-type]
        elif not isinstance(trainer, LorentzEmbedder) or fit != trainer.fit:
            raise ParameterError(
                f"--continue-from needs an embedder that is trained on the CPU, and {name} is not",
                hint="use --geometry lorentz, poincare or euclidean, without --device",
            )
        else:
            if dim not in {None, old.dim}:
                raise ParameterError(
                    f"--dim is {dim}, but the vectors of {continue_from} have {pluralize(old.dim, 'dimension')}",
                    hint="leave out --dim, or train without --continue-from",
                )
            vectors = trainer.fit_more(tree, old, seed, progress=report)
    evaluation = evaluate_embedding(
        tree,
        check_finite_vectors(vectors, name),
        system=name,
        relation=relation,
        filtered=filtered,
        device=device,
    )
    vectors.write(output)
    _show_trained(out, vectors, evaluation, describe_tree(tree), output)
    return 0


def _show_trained(out: Output, vectors: NodeVectors, evaluation: EmbeddingEvaluation, tree: str, output: str) -> None:
    from equipoise.checks.base import pluralize
    from equipoise.domains.accounts.report import (
        SINGLE_TARGET_NOTE,
        chance_note,
        nearest_parents,
        summary_line,
        training_relation_notes,
    )
    from equipoise.domains.accounts.trees.tree import PARENT
    from equipoise.report.terminal import Paragraph

    if out.json:
        counts = ("new_nodes", "unused_vectors")
        continued = {name: vectors.settings[name] for name in counts if name in vectors.settings}
        out.data({**evaluation.to_dict(), **continued, "epochs": len(vectors.history), "written": [output]})
    else:
        if evaluation.relation == PARENT:
            more = f"; try --dim {2 * vectors.dim}" if evaluation.n_displaced and vectors.history else ""
            out.show(Paragraph(f"{nearest_parents(evaluation, evaluation.system)}{more}."))
        out.show(Paragraph(summary_line(evaluation)))
        epochs = f", {pluralize(len(vectors.history), 'epoch')}" if vectors.history else ""
        out.show(Paragraph(f"{tree}; {evaluation.system}, {pluralize(vectors.dim, 'dimension')}{epochs}."))
        if "new_nodes" in vectors.settings:
            out.show(Paragraph(_continued_note(vectors)))
        for note in training_relation_notes([evaluation], evaluation.relation):
            out.show(Paragraph(note))
        if evaluation.has_single_target and not out.quiet:
            out.show(Paragraph(SINGLE_TARGET_NOTE))
        if not out.quiet:
            relation = "" if evaluation.relation == PARENT else f" --relation {evaluation.relation}"
            out.show(Paragraph(f"{chance_note(evaluation)} {BASELINE_HINT.format(output + relation)}"))
    out.note(f"wrote {output}")


def _continued_note(vectors: NodeVectors) -> str:
    """The numbers of new nodes, and of earlier vectors whose nodes no longer exist."""
    from equipoise.checks.base import pluralize

    n_new, n_unused = vectors.settings["new_nodes"], vectors.settings["unused_vectors"]
    note = f"{n_new:,} of {pluralize(len(vectors.ids), 'node')} {'is' if n_new == 1 else 'are'} new"
    was = "was" if n_unused == 1 else "were"
    return f"{note}; {pluralize(n_unused, 'earlier vector')} {was} left out." if n_unused else f"{note}."


DEMO_HELP = """
\b
  eq accounts demo
  eq accounts demo --business-id larkspur --dims 2 5 10 -o demo/

Read one of the two sample charts of accounts, embed it in the Lorentz model, and compare the vectors with a tuned
Euclidean embedding, a combinatorial construction and a random one, as eq accounts evaluate does. With -o the vectors,
run directories and charts are written to a folder.
"""


def businesses() -> list[str]:
    """The businesses of the sample data."""
    from equipoise.domains.accounts.trees.read import BUSINESSES

    return list(BUSINESSES)


@options.command(help=DEMO_HELP)
@options.one_of("--business-id", "business", businesses, "acme", "Which of the two charts.")
@click.option(
    "--dims",
    cls=MultiValueOption,
    commas=True,
    type=click.IntRange(min=2),
    default=(2, 5),
    show_default="2 5",
    metavar="N ...",
    help="Dimensions of the embeddings.",
)
@device_option
@options.stats_options()
@click.option("-o", "--output", metavar="FOLDER", help="Write all results to this folder.")
@options.table_options(file=False)
@options.output_options
@pass_output
def demo(
    out: Output, /, business_id: str, dims: tuple[int, ...], device: str | None, config: StatsConfig, output: str | None
) -> int:
    """See ``DEMO_HELP``."""
    from equipoise.domains.accounts.experiment import evaluate_tree, job_weights, tree_evaluation_config
    from equipoise.domains.accounts.report import accounts_view
    from equipoise.domains.accounts.trees.read import accounts
    from equipoise.domains.accounts.trees.sql import read_sql

    if output is not None:
        check_writable(output)
    settings: dict[str, Any] = {"device": device, "seeds": config.seed, "config": config}
    checked = tree_evaluation_config("lorentz", dims, **settings)
    tree = replace(read_sql(str(accounts()), business_id), source=f"Chart of accounts of {business_id}")
    report_devices(out, checked)
    weights = job_weights(checked)
    with out.progress(len(weights), weights) as step:
        evaluation = evaluate_tree(tree, "lorentz", dims, output=output, command=out.command, step=step, **settings)
    if out.json:
        out.data(evaluation.to_dict())
    else:
        out.view(accounts_view(evaluation))
    if output is not None:
        write_outputs(out, evaluation, Path(output))
    return 0


PLOT_HELP = """
\b
  eq accounts plot results/ -o disk.html
  eq accounts plot account_vectors.csv --tree accounts.csv --geometry lorentz -o disk.svg

Plot an embedded tree with its edges: hyperbolic embeddings in the Poincare disk, others in the plane. An HTML file
shows every node, with search, zoom and collapsible groups, and works offline. It also has charts of the norm against
the position between root and leaf and, for several dimensions, of mean rank (MR) and mean average precision (MAP)
against dimensions. An .svg or .png file has one chart. RESULTS is a folder written by eq accounts evaluate, or a file
of vectors; a file also needs the tree.
"""

PLOT_STEPS = 3
CHART_SUFFIXES = (".html", ".svg", ".png")
DIMENSION_CHARTS = "dimensions-"
"""Start of the names of charts that show all embeddings."""


@options.command(help=PLOT_HELP)
@click.argument("results", metavar="RESULTS")
@tree_options
@embedding_options
@click.option(
    "--chart",
    metavar="NAME",
    help="Only this chart, such as dimensions-mr.  [default: all in HTML, the tree in .svg and .png]",
)
@click.option("-o", "--output", required=True, metavar="FILE", help="The output file: .html, .svg or .png.")
@options.output_options
@pass_output
def plot(
    out: Output,
    /,
    results: str,
    source: TreeSource,
    system: str | None,
    geometry: str | None,
    chart: str | None,
    output: str,
) -> int:
    """See ``PLOT_HELP``."""
    file = Path(output)
    check_suffix(file, CHART_SUFFIXES, "chart")
    check_writable(file, example="disk.html")
    with out.progress(PLOT_STEPS) as step:
        step("reading the tree and its vectors")
        tree_charts = read_tree_charts(out, Path(results), source, system, geometry)
        step("drawing")
        charts = _select_charts(tree_charts.charts(), chart)
        step(f"writing {file.name}")
        _write_charts_file(file, tree_charts, charts)
    is_embedding_chart = any(not item.name.startswith(DIMENSION_CHARTS) for item in charts)
    if out.json:
        names = [item.name for item in (charts if file.suffix.casefold() == ".html" else charts[:1])]
        out.data({"system": tree_charts.system if is_embedding_chart else None, "charts": names, "written": [output]})
    out.note(f"wrote {output} ({tree_charts.system})" if is_embedding_chart else f"wrote {output}")
    return 0


def read_tree_charts(
    out: Output, results: Path, source: TreeSource, system: str | None, geometry: str | None
) -> TreeCharts:
    """Tree and vectors of a folder of results, or of a file of vectors and the tree of the options."""
    from equipoise.domains.accounts.charts import TreeCharts

    if results.is_dir():
        if source.named or geometry is not None:
            raise ParameterError(f"{results} has its own tree and geometry", hint="give only the folder, and --system")
        return TreeCharts.read(results, system)
    from equipoise.domains.accounts.vectors import align_and_check, read_node_vectors
    from equipoise.geometry.spaces import geometry as geometry_named

    if not results.exists():
        raise StoreError(
            f"{results} does not exist", hint="give the folder of eq accounts evaluate -o, or a file of vectors"
        )
    tree = source.read()
    vectors = read_node_vectors(results, None if geometry is None else geometry_named(geometry).name)
    if geometry is None:
        _report_assumed_geometry(out, {str(results): vectors}, "--geometry")
    return TreeCharts(tree, system or results.stem, align_and_check(vectors, tree))


def _write_charts_file(file: Path, tree_charts: TreeCharts, charts: list[Chart]) -> None:
    from equipoise.checks.base import pluralize
    from equipoise.domains.accounts.charts import LAYOUT_CHARTS
    from equipoise.domains.accounts.disk_chart import tree_page, tree_png, tree_svg
    from equipoise.domains.accounts.report import describe_tree
    from equipoise.io.atomic import write_bytes
    from equipoise.report.charts.chart import render_png, render_svg
    from equipoise.report.publish import charts_html

    is_layout = charts[0].name in LAYOUT_CHARTS
    if file.suffix.casefold() == ".html":
        tree = tree_charts.tree
        text = f"{describe_tree(tree)}, {pluralize(len(tree.roots), 'root')}."
        page = (
            tree_page(tree_charts.drawing(), text, charts[1:])
            if is_layout
            else charts_html(tree_charts.system, text, charts)
        )
        write_bytes(file, page.encode())
        return
    if is_layout:
        drawing = tree_charts.drawing()
        write_bytes(file, tree_png(drawing) if file.suffix.casefold() == ".png" else tree_svg(drawing).encode())
        return
    write_bytes(
        file,
        render_png(charts[0]) if file.suffix.casefold() == ".png" else render_svg(charts[0]).encode(),
    )


def _select_charts(charts: list[Chart], chart: str | None) -> list[Chart]:
    """All charts, or the requested one."""
    charts_by_name = {chart_item.name: chart_item for chart_item in charts}
    if chart is not None and chart not in charts_by_name:
        raise UnknownNameError.of("chart", chart, charts_by_name, more=f"there are: {', '.join(charts_by_name)}")
    return charts if chart is None else [charts_by_name[chart]]
