"""``eq index-quality``: recall of a vector index against exact search, and its speed."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from equipoise.checks.base import pluralize
from equipoise.cli import options
from equipoise.cli import output as exits
from equipoise.cli.options import engine_options, executor_context
from equipoise.cli.output import Output, pass_output
from equipoise.errors import ParameterError
from equipoise.report.tables import interval_methods
from equipoise.report.terminal import Paragraph, Part, ReportColumn, TerminalTable, heading
from equipoise.runs.experiment_folder import check_writable
from equipoise.stats.formatting import format_count, format_interval, format_percent, format_value, n_decimals

if TYPE_CHECKING:
    from equipoise.config import StatsConfig
    from equipoise.geometry.sharded_search import MapFunction
    from equipoise.runs.executors import Executor
    from equipoise.runs.manifest import Manifest
    from equipoise.stats.result import Estimate, Result
    from equipoise.tasks.index_quality import IndexMeasurement

# The report: recall, latency and throughput, and how they were measured.

_UNITS = {"fraction": "", "queries a second": "queries/s"}
"""The unit after a value; a fraction has none."""


def index_report(result: Result, cost: dict[str, float], *, exact: bool, quiet: bool = False) -> list[Part]:
    """The recall and the median latency, a table of all metrics, and sentences on how they were measured."""
    recall, median = next(iter(result.estimates.values())), result["Latency(p50)"]
    vectors = int(result.settings["vectors"])
    rows = [_cells(estimate) for estimate in result.estimates.values()]
    names, values, units, reaches, n = zip(*rows, strict=True)
    table = TerminalTable(
        [
            ReportColumn("metric", names),
            ReportColumn("estimate", values, right=True),
            ReportColumn("unit", units),
            ReportColumn(f"{format_percent(recall.interval.confidence_level)} interval", reaches, right=True, rank=1),
            ReportColumn("n", n, right=True, rank=2),
        ]
    )
    if quiet:
        return [table]
    k = recall.metric.partition("@")[2]
    headline = (
        f"{result.system}: recall {_cells(recall)[1]} of the {k} exact nearest neighbours "
        f"among {format_count(vectors)} vectors, on {pluralize(recall.n, 'query', 'queries')}; median latency "
        f"{_cells(median)[1]} ms."
    )
    return [
        heading(headline),
        Paragraph(""),
        table,
        Paragraph(""),
        *map(Paragraph, _reasons(result)),
        Paragraph(_measured(result, cost, exact=exact)),
        Paragraph(_methods(result)),
    ]


def _cells(estimate: Estimate) -> tuple[str, ...]:
    places = n_decimals(estimate.interval) if estimate.interval.known else _places(estimate.value)
    return (
        estimate.metric,
        format_value(estimate.value, places),
        _UNITS.get(estimate.unit, estimate.unit),
        format_interval(estimate.interval, places) if estimate.interval.known else "n/a",
        format_count(estimate.n),
    )


def _reasons(result: Result) -> list[str]:
    """Why some intervals are not known: sentences below the table, which a long cell would push apart."""
    metrics_by_reason: dict[str, list[str]] = {}
    for estimate in result.estimates.values():
        if not estimate.interval.known:
            metrics_by_reason.setdefault(estimate.interval.reason, []).append(estimate.metric)
    return [f"No interval for {', '.join(names)}: {reason}." for reason, names in metrics_by_reason.items()]


def _places(value: float) -> int:
    """The decimals of a figure without an interval: a large one needs none."""
    return 0 if isnan(value) or value >= 100 else 3


def _measured(result: Result, cost: dict[str, float], *, exact: bool) -> str:
    recall = next(iter(result.estimates.values()))
    column = result.per_unit[recall.metric]
    complete = int((column == 1.0).sum())
    kind = "compares each query with every vector" if exact else "is approximate"
    return (
        f"The store {kind}; it found all exact neighbours for {format_count(complete)} of {format_count(recall.n)} "
        f"queries. Random results have a recall of {recall.chance:.2g}. The store was filled in "
        f"{cost['fill_seconds']:.3g} s and ready "
        f"{cost['build_seconds']:.3g} s later; exact search of the same vectors took "
        f"{cost['exact_seconds']:.3g} s for all queries. Latency is measured for one query at a time, including the "
        "network, as the mean and as percentiles; throughput is measured for batches of queries."
    )


def _methods(result: Result) -> str:
    methods = interval_methods(result.estimates.values())
    return f"Intervals: {methods}." if methods else "No interval is known."


HELP = """
\b
  eq index-quality --store faiss:hnsw --corpus vectors.npy --queries q.npy
  eq index-quality --store pgvector:postgresql://me@host/db --corpus shards/ --queries q.npy

Fill a vector store, query it, and compare its results with exact search over the same vectors: recall with its
interval, the latency of one query (p50, p95, p99) and the throughput of batches. The corpus is an array file
or a folder of .npy shards, float32 or int8, and may be larger than memory. Vectors that a store on disk or on a
server already contains are not sent again, so repeating the command resumes it. With -o the run is stored, and eq
compare compares two indexes. With --engine ray the exact search runs on a cluster whose machines all have
access to the corpus, one shard per task; with -o finished shards are not searched again.
"""


def geometries() -> list[str]:
    """The geometries that stores support."""
    from equipoise.models.stores.base import GEOMETRIES

    return list(GEOMETRIES)


@options.command(help=HELP, short_help="Measure recall and speed of a vector index.")
@click.option(
    "--store",
    "spec",
    required=True,
    metavar="STORE",
    help="The store, such as memory, faiss:hnsw, chroma:FOLDER, pgvector:URL or duckdb:FILE.",
)
@click.option("--corpus", required=True, metavar="FILE", help="The vectors: an array file or a folder of shards.")
@click.option("--queries", required=True, metavar="FILE", help="The query vectors, one row per query.")
@click.option(
    "-k", "--top-k", type=click.IntRange(min=1), default=10, show_default=True, help="Number of neighbours per query."
)
@click.option(
    "--geometry",
    type=options.ChoiceWithHint("geometry", geometries),
    default="cosine",
    show_default=True,
    help="Similarity or distance of vectors.",
)
@click.option(
    "--option",
    "settings",
    multiple=True,
    metavar="NAME=VALUE",
    help="Option of the store: index=hnsw for pgvector, ef_search=200 for HNSW.",
)
@click.option("--collection", metavar="NAME", help="Collection in the store; default: a hash of the vectors.")
@click.option("--name", metavar="NAME", help="Name of the run; default: the spec of the store.")
@click.option("--threads", type=click.IntRange(min=1), default=1, show_default=True, help="Threads for exact search.")
@options.device_option
@options.stats_options()
@click.option("-o", "--output", metavar="FOLDER", help="Write the run into this folder.")
@engine_options
@options.log_option
@options.table_options(file=False)
@options.output_options
@pass_output
def index_quality(
    out: Output,
    spec: str,
    corpus: str,
    queries: str,
    top_k: int,
    geometry: str,
    settings: tuple[str, ...],
    collection: str | None,
    name: str | None,
    threads: int,
    device: str | None,
    config: StatsConfig,
    output: str | None,
    engine: Executor,
) -> int:
    """See ``HELP``."""
    if device is not None:
        from equipoise.geometry.gpu_search import torch_device

        torch_device(device)
    from equipoise.geometry.shards import open_shards
    from equipoise.io.arrays import read_matrix, split_member
    from equipoise.models.dense import store_label
    from equipoise.models.stores import open_store
    from equipoise.runs.manifest import Manifest
    from equipoise.tasks import index_quality as task

    if output is not None:
        check_writable(output)
    store_options = _settings(settings)
    shards, points = open_shards(corpus), read_matrix(queries)
    arrays = [*dict.fromkeys(_file(shard.rows, corpus) for shard in shards.parts), queries]
    files = [split_member(array)[0] for array in arrays]
    system = name or ", ".join([store_label(spec), *(f"{key}={value}" for key, value in store_options.items())])
    manifest = replace(
        Manifest.start(system, command=out.command, seed=config.seed, inputs=files),
        parameters={"store": store_label(spec), "geometry": geometry, "k": top_k, **store_options},
    )
    target = collection or _collection(manifest, geometry, store_options)
    with executor_context(engine, out, "a shard"), _mapper(engine, output, system) as map_function:
        with (
            open_store(spec, collection=target, dims=shards.dims, geometry=geometry, **store_options) as opened_store,
            _StageBars(out) as bars,
        ):
            measurement = task.measure_index(
                opened_store,
                shards,
                points,
                top_k,
                threads=threads,
                device=device,
                map_function=map_function,
                watch=bars.watch,
            )
            exact = opened_store.exact
        result = measurement.result(system, config=config)
        _show(out, result, measurement, exact=exact)
        if output is not None:
            _write_run(out, result, measurement, manifest, Path(output))
    if measurement.stopped:
        out.note(
            f"caution: {measurement.stopped}; {len(measurement.recall):,} of {len(points):,} queries were answered"
        )
    return exits.FAILED_UNITS if measurement.stopped else exits.DONE


@contextmanager
def _mapper(engine: Executor, output: str | None, system: str) -> Iterator[MapFunction | None]:
    """A map over shards on the executor. Finished shards are stored next to the run until it is written."""
    if engine.name == "local":
        yield None
        return
    from equipoise.runs.runner import resumable_map

    keep = None if output is None else Path(output) / f".{_folder(system)}.shards"
    yield resumable_map(engine, keep)
    if keep is not None:
        shutil.rmtree(keep, ignore_errors=True)


def _settings(words: Sequence[str]) -> dict[str, Any]:
    """``ef_search=200`` as an option of a store; digits become an integer, ``true`` and ``false`` a bool."""
    store_options: dict[str, Any] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name or not value:
            raise ParameterError(f"--option {word} has no value", hint="write --option index=hnsw")
        if name in ("geometry", "collection", "dims"):
            raise ParameterError(f"--option {name} is not an option of stores", hint="see eq index-quality --help")
        flag = {"true": True, "false": False}.get(value.lower())
        store_options[name] = flag if flag is not None else int(value) if value.isdecimal() else value
    return store_options


def _file(rows: Any, corpus: str) -> str:
    """The file of a shard; the corpus itself if it was read into memory."""
    return str(getattr(rows, "path", corpus))


def _collection(manifest: Manifest, geometry: str, store_options: dict[str, Any]) -> str:
    """A collection name that is unique for these vectors, geometry and settings."""
    *vectors, _ = manifest.inputs.values()
    known = [geometry, *map(str, sorted(store_options.items())), *map(str, vectors)]
    return f"index-{hashlib.sha256(chr(0).join(known).encode()).hexdigest()[:24]}"


class _StageBars(ExitStack):
    """One progress bar per stage."""

    def __init__(self, out: Output) -> None:
        super().__init__()
        self._out = out
        self._stage = ""
        self._count: Any = None

    def watch(self, what: str, done: int, total: int) -> None:
        """Update the bar of a stage."""
        if what != self._stage:
            self.close()
            self._stage = what
            self._count = self.enter_context(self._out.count(what, total))
        self._count(done)


def _cost(measurement: IndexMeasurement) -> dict[str, float]:
    return {
        "fill_seconds": measurement.fill_seconds,
        "build_seconds": measurement.build_seconds,
        "exact_seconds": measurement.exact_seconds,
    }


def _show(out: Output, result: Result, measurement: IndexMeasurement, *, exact: bool) -> None:
    out.log(lambda: result.to_dict(flat=True), result.system)
    if out.json:
        out.data({**result.to_dict(), "cost": _cost(measurement), "exact": exact, "stopped": measurement.stopped})
    else:
        out.show(*index_report(result, _cost(measurement), exact=exact, quiet=out.quiet))


def _write_run(out: Output, result: Result, measurement: IndexMeasurement, manifest: Manifest, folder: Path) -> None:
    from equipoise.runs.manifest import Status
    from equipoise.runs.run_folder import save_run

    status = Status.PARTIAL if measurement.stopped else Status.COMPLETE
    finished = replace(manifest, cost=_cost(measurement)).finish(status, reason=measurement.stopped)
    out.note(f"wrote {save_run(folder / _folder(result.system), result, manifest=finished)}")


def _folder(system: str) -> str:
    """The name of a system as a folder name."""
    return "".join(letter if letter.isalnum() or letter in "-_." else "-" for letter in system)
