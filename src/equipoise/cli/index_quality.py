"""``eq index-quality``: what a vector index loses against exact search, and how fast it is."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from equipoise.cli import options
from equipoise.cli import output as exits
from equipoise.cli.options import engine_options, executor_context
from equipoise.cli.output import Output, pass_output, progress_bar
from equipoise.errors import ParameterError
from equipoise.runs.experiment import check_writable

if TYPE_CHECKING:
    from equipoise.geometry.sharded_search import MapFunction
    from equipoise.runs.executors import Executor
    from equipoise.runs.manifest import Manifest
    from equipoise.stats.result import Result
    from equipoise.tasks.index_quality import IndexMeasurement

HELP = """
\b
  eq index-quality --store faiss:hnsw --corpus vectors.npy --queries q.npy
  eq index-quality --store pgvector:postgresql://me@host/db --corpus shards/ --queries q.npy

Fill a vector store, ask it, and hold its answers against exact search over the same vectors: recall with its
interval, the latency of one query (p50, p95, p99) and the throughput of batches. The corpus is an array file
or a folder of .npy shards, float32 or int8, and may be larger than memory. What a store on disk or on a
server holds already is not sent again, so the same command typed again goes on where it stopped. With -o the
run is kept, and eq compare tells two indexes apart. With --engine ray the exact search runs on a cluster
whose machines all see the corpus, a shard a task; with -o shards that are finished are not searched again.
"""


def geometries() -> list[str]:
    """What stores compare by."""
    from equipoise.models.stores.base import GEOMETRIES

    return list(GEOMETRIES)


@click.command(help=HELP, short_help="Measure what a vector index loses, and how fast it is.")
@click.option(
    "--store",
    "spec",
    required=True,
    metavar="STORE",
    help="faiss:hnsw, chroma:FOLDER, pgvector:URL, qdrant:URL or memory.",
)
@click.option("--corpus", required=True, metavar="FILE", help="The vectors: an array file or a folder of shards.")
@click.option("--queries", required=True, metavar="FILE", help="The query vectors, a row a query.")
@click.option("-k", type=click.IntRange(min=1), default=10, show_default=True, help="How many to find.")
@click.option(
    "--geometry",
    type=options.ChoiceWithHint("geometry", geometries),
    default="cosine",
    show_default=True,
    help="What is near.",
)
@click.option(
    "--option",
    "settings",
    multiple=True,
    metavar="NAME=VALUE",
    help="Of the store: index=hnsw for pgvector, ef_search=200 for a graph.",
)
@click.option("--collection", metavar="NAME", help="Its name in the store; made from the vectors if left out.")
@click.option("--name", metavar="NAME", help="What the run is called; the store's spec if left out.")
@click.option("--threads", type=click.IntRange(min=1), default=1, show_default=True, help="For exact search.")
@click.option("--confidence-level", type=float, default=0.95, show_default=True, help="Level of the intervals.")
@click.option("--n-resamples", type=click.IntRange(min=1), default=2000, show_default=True, help="Bootstrap resamples.")
@options.seed_option
@click.option("-o", "--output", metavar="FOLDER", help="Keep the run beneath this folder.")
@engine_options
@options.output_options
@pass_output
def index_quality(
    out: Output,
    spec: str,
    corpus: str,
    queries: str,
    k: int,
    geometry: str,
    settings: tuple[str, ...],
    collection: str | None,
    name: str | None,
    threads: int,
    confidence_level: float,
    n_resamples: int,
    seed: int,
    output: str | None,
    engine: Executor,
) -> int:
    """See ``HELP``."""
    from equipoise.geometry.shards import open_shards
    from equipoise.io.arrays import read_matrix
    from equipoise.models.dense import store_label
    from equipoise.models.stores import open_store
    from equipoise.runs.manifest import Manifest
    from equipoise.tasks import index_quality as task

    if output is not None:
        check_writable(output)
    given = _settings(settings)
    shards, points = open_shards(corpus), read_matrix(queries)
    files = [*dict.fromkeys(_file(shard.rows, corpus) for shard in shards.parts), queries]
    system = name or ", ".join([store_label(spec), *(f"{key}={value}" for key, value in given.items())])
    begun = replace(
        Manifest.start(system, command=out.command, seed=seed, inputs=files),
        parameters={"store": store_label(spec), "geometry": geometry, "k": k, **given},
    )
    held = collection or _collection(begun, geometry, given)
    with executor_context(engine, out, "a shard"), _mapper(engine, output, system) as over:
        with (
            open_store(spec, collection=held, dims=shards.dims, geometry=geometry, **given) as opened,
            _StageBars(out) as bars,
        ):
            found = task.measure_index(opened, shards, points, k, threads=threads, over=over, watch=bars.watch)
            exact = opened.exact
        result = found.result(system, confidence_level=confidence_level, n_resamples=n_resamples, seed=seed)
        _show(out, result, found, exact=exact)
        if output is not None:
            _keep(out, result, found, begun, Path(output))
    if found.stopped:
        out.note(f"caution: {found.stopped}; {len(found.recall):,} of {len(points):,} queries were answered")
    return exits.FAILED_UNITS if found.stopped else exits.DONE


@contextmanager
def _mapper(engine: Executor, output: str | None, system: str) -> Iterator[MapFunction | None]:
    """How shards are searched on the engine; what is finished lies beside the run until that is written."""
    if engine.name == "local":
        yield None
        return
    from equipoise.runs.runner import resumable_map

    keep = None if output is None else Path(output) / f".{_folder(system)}.shards"
    yield resumable_map(engine, keep)
    if keep is not None:
        shutil.rmtree(keep, ignore_errors=True)


def _settings(words: Sequence[str]) -> dict[str, Any]:
    """``ef_search=200`` as an option of a store; whole numbers are numbers."""
    found: dict[str, Any] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name or not value:
            raise ParameterError(f"--option {word} has no value", hint="write --option index=hnsw")
        found[name] = int(value) if value.isdecimal() else value
    return found


def _file(rows: Any, corpus: str) -> str:
    """The file of a shard; vectors that were read whole lie in the corpus itself."""
    return str(getattr(rows, "path", corpus))


def _collection(begun: Manifest, geometry: str, given: dict[str, Any]) -> str:
    """A name of its own for these vectors, this geometry and these settings, so that nothing is mixed."""
    *vectors, _ = begun.inputs.values()
    known = [geometry, *map(str, sorted(given.items())), *map(str, vectors)]
    return f"index-{hashlib.sha256(chr(0).join(known).encode()).hexdigest()[:24]}"


class _StageBars(ExitStack):
    """A bar for each stage of the work, one after another."""

    def __init__(self, out: Output) -> None:
        super().__init__()
        self._out = out
        self._stage = ""
        self._count: Any = None

    def watch(self, what: str, done: int, total: int) -> None:
        """Show how far a stage has come."""
        if what != self._stage:
            self.close()
            self._stage = what
            self._count = self.enter_context(progress_bar(self._out, what, total))
        self._count(done)


def _cost(found: IndexMeasurement) -> dict[str, float]:
    return {
        "fill_seconds": found.fill_seconds,
        "build_seconds": found.build_seconds,
        "exact_seconds": found.exact_seconds,
    }


def _show(out: Output, result: Result, found: IndexMeasurement, *, exact: bool) -> None:
    from equipoise.report.index_quality import index_report

    if out.json:
        out.data({**result.to_dict(), "cost": _cost(found), "exact": exact, "stopped": found.stopped})
    else:
        out.show(*index_report(result, _cost(found), exact=exact, quiet=out.quiet))


def _keep(out: Output, result: Result, found: IndexMeasurement, begun: Manifest, folder: Path) -> None:
    from equipoise.runs.manifest import Status
    from equipoise.runs.store import save_run

    status = Status.PARTIAL if found.stopped else Status.COMPLETE
    whole = replace(begun, cost=_cost(found)).finish(status, reason=found.stopped)
    out.note(f"wrote {save_run(folder / _folder(result.system), result, manifest=whole)}")


def _folder(system: str) -> str:
    """The name of a system as that of a folder."""
    return "".join(letter if letter.isalnum() or letter in "-_." else "-" for letter in system)
