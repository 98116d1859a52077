"""Run a benchmark: plan the jobs, evaluate them, and compare the systems on every data set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from equipoise.config import DEFAULT_STATS, StatsConfig
from equipoise.domains.bench.jobs import BenchContext, BenchRunStore, JobInputs, evaluate_job, plan_jobs
from equipoise.domains.bench.read_data import read_suite
from equipoise.domains.bench.results import BenchComparison, DataComparison, ScoredSystem
from equipoise.domains.bench.systems import DEFAULT_DEPTH, SystemPool, SystemSpec, expand_systems
from equipoise.errors import EquipoiseError, InputError, UnknownNameError
from equipoise.io.json import parse_json
from equipoise.io.text import open_text
from equipoise.runs.compare import compare as compare_systems
from equipoise.runs.experiment_folder import RESULTS, ExperimentFolder
from equipoise.runs.progress import ProgressCallback, report_progress
from equipoise.runs.runner import Job, JobResults, resume_key, run_jobs

SHARDS = "shards"
"""The folder of vectors of large corpora in the output folder."""

if TYPE_CHECKING:
    from equipoise.domains.bench.base_data import BenchData
    from equipoise.models.cache import VectorCache
    from equipoise.runs.executors import Executor


def compare(
    models: Any,
    data: Any,
    *,
    text: Sequence[str] = (),
    split: str | None = None,
    dims: Sequence[int] = (),
    dtypes: Sequence[str] = (),
    rerankers: Sequence[Any] = (),
    rerank_depth: int = DEFAULT_DEPTH,
    tune: Sequence[str] = (),
    baselines: bool = True,
    prices: Mapping[str, float] | None = None,
    config: StatsConfig = DEFAULT_STATS,
    cache: VectorCache | Path | str | bool | None = None,
    threads: int = 1,
    device: str | None = None,
    output: str | Path | None = None,
    progress: ProgressCallback | None = None,
    command: Sequence[str] = (),
    engine: Executor | None = None,
) -> BenchComparison:
    """Compare embedding models on your own data sets.

    Parameters
    ----------
    models
        Model specs (``minilm``, ``bm25:``, ``sum:minilm+bm25:``), objects with ``encode``, or a mapping from names to
        models.
    data
        Paths, frames, ``datasets`` objects or ``bench.Retrieval(...)`` and the like; one or several.
    text
        Columns of text.
    split
        The split of BEIR folders.
    dims
        Truncated dimensions, as variants of every model that embeds.
    dtypes
        Storage types, as variants of every model that embeds: float32, float16, int8 or binary.
    rerankers
        Rerankers such as ``maxsim:minilm``, or ``CrossEncoder`` objects, applied to the first hits of every system.
    rerank_depth
        Number of hits that are reranked.
    tune
        ``fusion`` adds a variant of every ``sum:`` fusion of two systems with a selected weight, ``depth`` one of every
        reranked system with a selected depth. They are scored by nested cross-validation over the queries.
    baselines
        Whether BM25, TF-IDF and random vectors are added.
    prices
        US dollars per million tokens by model, for hosted models.
    config
        Options of intervals and tests.
    cache
        The vector cache; False for none.
    threads
        Threads per model.
    device
        The device of sentence-transformers models.
    output
        A folder for results.json and the run directories. A repeated call uses what is stored there.
    progress
        Called with the progress over the jobs.
    command
        The command line that is recorded in the manifests.
    engine
        Executor of the jobs, such as a Ray cluster; results do not depend on it.

    Returns
    -------
    BenchComparison
        One comparison per data set, the aggregate over data sets, costs and the decision.

    Examples
    --------
    >>> rows = [{"query": f"word{i}", "positive": f"a text on word{i}"} for i in range(12)]
    >>> comparison = compare(["hash"], [rows], baselines=False, cache=False)
    >>> comparison.datasets[0].data.kind, comparison.datasets[0].systems[0].name
    ('retrieval', 'hash')
    """
    plan = plan_benchmark(
        models,
        data,
        text=text,
        split=split,
        dims=dims,
        dtypes=dtypes,
        rerankers=rerankers,
        rerank_depth=rerank_depth,
        tune=tune,
        baselines=baselines,
        prices=prices,
        device=device,
        config=config,
        output=output,
    )
    return run_benchmark(plan, cache=cache, threads=threads, progress=progress, command=command, engine=engine)


@dataclass(frozen=True)
class BenchPlan:
    """What a benchmark consists of: data sets, systems and jobs."""

    suite: Sequence[BenchData]
    systems: Sequence[SystemSpec]
    jobs: Sequence[Job[JobInputs]]
    folder: ExperimentFolder | None
    config: StatsConfig
    prices: Mapping[str, float]

    @property
    def key(self) -> str:
        """Equal for plans with equal results; empty if a Python object is among the systems."""
        keys = [job.key for job in self.jobs]
        return resume_key(keys) if all(keys) else ""

    def store(self, command: Sequence[str] = ()) -> BenchRunStore | None:
        """Where the results of the jobs are stored; None without an output folder."""
        if self.folder is None:
            return None
        return BenchRunStore(self.folder, self.systems, self.suite, self.config, tuple(command))

    def stored(self) -> dict[str, Any] | None:
        """The content of results.json, if the same plan has been finished before without failures."""
        store = self.store()
        if store is None or not self.key:
            return None
        try:
            content: Any = parse_json(open_text(store.folder.path / RESULTS))
        except EquipoiseError:
            return None
        if not isinstance(content, dict) or content.get("key") != self.key or content.get("failures"):
            return None
        return content if all(store.path(job).is_dir() for job in self.jobs) else None


def plan_benchmark(
    models: Any,
    data: Any,
    *,
    text: Sequence[str] = (),
    split: str | None = None,
    dims: Sequence[int] = (),
    dtypes: Sequence[str] = (),
    rerankers: Sequence[Any] = (),
    rerank_depth: int = DEFAULT_DEPTH,
    tune: Sequence[str] = (),
    baselines: bool = True,
    prices: Mapping[str, float] | None = None,
    device: str | None = None,
    config: StatsConfig = DEFAULT_STATS,
    output: str | Path | None = None,
) -> BenchPlan:
    """Read the data and list the systems; no model is loaded. The parameters are those of ``compare``."""
    suite = read_suite(data, text=text, split=split)
    systems = expand_systems(
        models,
        dims=dims,
        dtypes=dtypes,
        rerankers=rerankers,
        depth=rerank_depth,
        tune=tune,
        device=device,
        baselines=baselines,
        data=suite,
    )
    for name in prices or {}:
        if name not in (known := [system.name for system in systems]):
            raise UnknownNameError.of("model", name, known)
    jobs = plan_jobs(systems, suite, config, prices or {})
    return BenchPlan(suite, systems, jobs, ExperimentFolder.of(output), config, prices or {})


def run_benchmark(
    plan: BenchPlan,
    *,
    cache: VectorCache | Path | str | bool | None = None,
    threads: int = 1,
    progress: ProgressCallback | None = None,
    command: Sequence[str] = (),
    engine: Executor | None = None,
) -> BenchComparison:
    """Run the jobs of a plan that are not stored, and compare all results."""
    folder = None if plan.folder is None else plan.folder.path
    pool = SystemPool(cache=cache, threads=threads)
    try:
        with report_progress(folder, "benchmark", len(plan.jobs), command=command, step=progress) as step:
            results = run_jobs(
                evaluate_job,
                plan.jobs,
                BenchContext(plan.systems, plan.suite, plan.config, plan.prices, pool, folder and folder / SHARDS),
                executor=engine,
                store=plan.store(command),
                progress=step,
                n_cores=threads,
            )
    finally:
        pool.keep_only(())
    comparison = collect(plan, results)
    if folder is not None:
        comparison.write(folder)
    return comparison


def collect(plan: BenchPlan, results: JobResults[ScoredSystem]) -> BenchComparison:
    """All results by data set, compared; if nothing could be evaluated, the first error is raised."""
    if not plan.jobs:
        raise InputError(
            "no system can be evaluated on these data: " + "; ".join(_skipped(plan)),
            hint="name a model that embeds with --models",
        )
    results.raise_if_all_failed()
    outputs = results.outputs
    scored = {job.inputs: outputs[job.name] for job in plan.jobs if job.name in outputs}
    datasets = []
    for place, data in enumerate(plan.suite):
        here = [system for inputs, system in scored.items() if inputs.data == place]
        if here:
            datasets.append(DataComparison(data, here, _compared(here, data, plan.config)))
    baselines = [system.name for system in plan.systems if system.baseline]
    return BenchComparison(datasets, results.failures, _skipped(plan), baselines, plan.config, plan.key)


def _skipped(plan: BenchPlan) -> list[str]:
    """Why a requested system is not evaluated on a kind of data."""
    reasons = [system.why_not(data) for data in plan.suite for system in plan.systems if not system.baseline]
    return list(dict.fromkeys(filter(None, reasons)))


def _compared(scored: Sequence[ScoredSystem], data: BenchData, config: StatsConfig) -> Any:
    """The paired comparison on the primary metric; None for a single system."""
    if len(scored) < 2:
        return None
    return compare_systems([each.result for each in scored], [data.primary], primary=data.primary, config=config)
