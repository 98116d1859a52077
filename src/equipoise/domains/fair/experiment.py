"""Run a fair comparison: tune each model separately, score it on held-out questions, compare all models."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from equipoise.checks.base import ScoredResult, run_checks
from equipoise.checks.models import TruncationStats, TunedSystem
from equipoise.domains.fair.answer_matching import answer_matcher as matcher_of
from equipoise.domains.fair.checks import with_affected_models
from equipoise.domains.fair.chunk_index import ChunkingParams, IndexedChunks, chunk_locations
from equipoise.domains.fair.config import METRIC, OPTIMISTIC, FairConfig
from equipoise.domains.fair.costs import measure_costs, rerank_bytes, rerank_seconds
from equipoise.domains.fair.grid_search import (
    GridEvidence,
    GridSearchResult,
    Progress,
    Search,
    embed_all,
    run_grid,
    select_configuration,
)
from equipoise.domains.fair.plan import Plan, qa_dataset, setup_findings
from equipoise.domains.fair.questions import check_drafts
from equipoise.domains.fair.results import (
    RERANKED,
    FairComparison,
    FairModelResult,
    FairRunStore,
    ModelProfile,
    fair_key,
)
from equipoise.errors import ParameterError
from equipoise.models.dense import dense_models, memoise_retriever, n_cached_texts
from equipoise.models.embedder import open_cache, weights_bytes
from equipoise.models.encoder import Role
from equipoise.models.registry import is_fusion, parse_spec, spec_kind, spec_parts
from equipoise.models.rerank import RerankedRetriever, Reranker, memoise_reranker, reranker
from equipoise.models.retriever import LEXICAL, open_retriever, resolve_models
from equipoise.runs.compare import compare
from equipoise.runs.experiment_folder import RESULTS, ExperimentFolder, check_writable, is_json_file
from equipoise.runs.manifest import Manifest
from equipoise.runs.progress_file import report_progress
from equipoise.runs.runner import Job, JobContext, JobOutput, JobResults, executor_map, run_jobs
from equipoise.runs.unit_table import RetrievedItem, UnitContent
from equipoise.stats.result import NOTES, SPEC, WINDOW
from equipoise.stats.slices import slice_estimates
from equipoise.stats.verdict import DISPLAY, UNIT_NOUN
from equipoise.tuning.nested_cv import majority_hits

if TYPE_CHECKING:
    from equipoise.domains.fair.plan import QADataset
    from equipoise.domains.fair.results import OptimizationResult
    from equipoise.domains.fair.validation import Documents
    from equipoise.models.retriever import Retriever
    from equipoise.models.vector_cache import VectorCache
    from equipoise.models.worker_pool import ExecutorMap
    from equipoise.runs.executors import Executor
    from equipoise.stats.comparison import Comparison
    from equipoise.types import Finding


EMBEDDING, SEARCHING, TUNING = "embedding", "searching", "tuning"
"""The steps of a model; loading is a part of the first one."""
CHARACTER_BYTES = 3e12
"""Characters times bytes of weights that are embedded in about the time of the tuning."""
UNKNOWN_BYTES = 1e8
"""The size of a model whose weights are not known before it is loaded."""
FAST_SHARE = 0.1
"""The time of a search, or of the embedding step of a system without weights, as a share of that of the tuning."""


def n_steps(models: Mapping[str, Any]) -> int:
    """The number of steps: those of every model, and the comparison."""
    return len((EMBEDDING, SEARCHING, TUNING)) * len(models) + 1


def step_weights(models: Mapping[str, Any], plan: Plan) -> dict[str, float]:
    """The expected relative time of each step by its text: most of it is for models with large weights."""
    characters = plan.n_chunkings * sum(len(document.text) for document in plan.full_dataset.documents)
    weights: dict[str, float] = {}
    for name, model in models.items():
        size = _weights_size(model.model if isinstance(model, RerankedModel) else model)
        embedding = FAST_SHARE + characters * size / CHARACTER_BYTES
        # A reranker reads every question with many chunks.
        searching = embedding + 1.0 if isinstance(model, RerankedModel) else FAST_SHARE
        weights |= {f"{name}: {EMBEDDING}": embedding, f"{name}: {SEARCHING}": searching, f"{name}: {TUNING}": 1.0}
    return weights


def _weights_size(model: Any) -> float:
    """The bytes of the weights of a model or of the parts of a fusion."""
    if not isinstance(model, str):
        return UNKNOWN_BYTES
    sizes = [
        0.0 if spec_kind(part) in LEXICAL else weights_bytes(parse_spec(part))
        for part in spec_parts(model)
        if not is_fusion(part)
    ]
    return sum(UNKNOWN_BYTES if size is None else size for size in sizes)


def evaluate_model(
    name: str, system: Retriever, plan: Plan, step: Progress, map_function: ExecutorMap | None = None
) -> FairModelResult:
    """Tune one model and score it on held-out questions; ``map_function`` embeds its texts on an executor."""
    start, manifest = perf_counter(), Manifest.start(name)
    settings = plan.settings
    base, reranker = (system.base, system.reranker) if isinstance(system, RerankedRetriever) else (system, None)
    base = memoise_retriever(base)
    rerank_depths = settings.rerank_depth_axis if reranker is not None else ()
    indexed_chunks = _known_chunks(base, plan)
    reports = embed_all(base, indexed_chunks, plan.dataset, map_function)
    step(f"{name}: {SEARCHING}")
    observed = run_grid(
        base, indexed_chunks, plan.dataset, settings.depth, reranker=reranker, rerank_depths=rerank_depths
    )
    step(f"{name}: {TUNING}")
    tuned = select_configuration(name, observed, plan.dataset, settings, plan.splits, rerank_depths or (None,))
    best = observed[tuned.best]
    seconds = perf_counter() - start
    chunks = best.chunked.chunks
    costs_of_reranker: tuple[float | None, float | None] = (0.0, 0.0)
    if reranker is not None:
        depth = tuned.best.rerank_depth or max(rerank_depths)
        seconds_per_question = best.seconds / len(plan.dataset.ids)
        costs_of_reranker = rerank_seconds(reranker, depth, seconds_per_question), rerank_bytes(reranker)
    tokens = sum(chunk.tokens for chunk in chunks)
    costs = measure_costs(base, best.chunked.texts, tokens, reports, *costs_of_reranker)
    profile = replace(_measured_profile(name, base, tuned, best, seconds), name=system.card.name, costs=costs)
    findings = setup_findings(tuned.tuning, plan) + _findings(profile, tuned, best)
    result = replace(
        tuned.result, findings=findings, settings={**tuned.result.settings, **_comparability_settings(profile, plan)}
    )
    details = _details(tuned, observed, plan.dataset)
    return FairModelResult(profile, tuned.tuning, result, details, manifest=manifest.finish())


def _known_chunks(system: Retriever, plan: Plan) -> dict[ChunkingParams, IndexedChunks]:
    """The chunkings to evaluate, without the default baseline if the model has no vectors for it.

    The baseline is no configuration to select, so a file of vectors needs the chunks of the requested grid only.
    """
    settings, indexed_chunks = plan.settings, plan.indexed_chunks
    baseline = settings.baseline[0]
    if plan.requested.baseline_params is not None or baseline in settings.chunkings:
        return indexed_chunks
    texts = indexed_chunks[baseline].chunked.texts
    if all(
        model.encoder.covers([f"{model.prompts[Role.DOCUMENT]}{text}" for text in texts])
        for model in dense_models(system)
    ):
        return indexed_chunks
    return {chunking: indexed for chunking, indexed in indexed_chunks.items() if chunking != baseline}


def _measured_profile(
    name: str, system: Retriever, tuned: GridSearchResult, best: GridEvidence, seconds: float
) -> ModelProfile:
    models = dense_models(system)
    dimensions = [model.dims for model in models]
    windows = [model.card.max_tokens for model in models if model.card.max_tokens is not None]
    return ModelProfile(
        spec=name,
        name=name,
        dimensions=sum(dimensions) if dimensions else None,
        bytes_per_vector=system.card.bytes_per_vector,
        window=min(windows, default=None),
        chunks=len(best.chunked.chunks),
        truncated_chunks=0 if best.truncation is None else best.truncation.truncated,
        tied_questions=tuned.tied_questions,
        retrieved_tokens=tuned.tuning.trials[tuned.tuning.best].cost,
        seconds=seconds,
        cached_texts=n_cached_texts(system),
        configurations=tuned.configurations,
    )


def _comparability_settings(profile: ModelProfile, plan: Plan) -> dict[str, Any]:
    """The properties of the model and the setup that every comparison needs."""
    return {
        SPEC: profile.spec,
        UNIT_NOUN: "question",
        DISPLAY: {"system": "model", "percent": {METRIC: METRIC, OPTIMISTIC: OPTIMISTIC}},
        WINDOW: {
            "tokens": profile.window,
            "texts": profile.chunks,
            "truncated": profile.truncated_chunks,
        },
        **({NOTES: list(plan.notes)} if plan.notes else {}),
    }


def _findings(profile: ModelProfile, tuned: GridSearchResult, best: GridEvidence) -> tuple[Finding, ...]:
    """Findings about the tuning of this model and about truncated chunks of its best configuration."""
    findings = run_checks(TunedSystem.of(profile.spec, tuned.tuning)) + run_checks(ScoredResult(tuned.result, {}))
    truncation = best.truncation
    if truncation is not None:
        findings += run_checks(
            TruncationStats(
                profile.spec, profile.window, truncation.texts, truncation.truncated, truncation.lost_tokens
            )
        )
    return findings


def _details(
    tuned: GridSearchResult, observed: Mapping[Search, GridEvidence], dataset: QADataset
) -> dict[str | int, UnitContent]:
    """Every question with the chunks that its held-out configuration retrieved."""
    locations = {
        search.chunking: chunk_locations(observed[search].chunked, dataset.documents)
        for search in {configuration.search for configuration in tuned.held_out_configurations}
    }
    details: dict[str | int, UnitContent] = {}
    for row, (question, (search, k)) in enumerate(zip(dataset.questions, tuned.held_out_configurations, strict=True)):
        evidence, chunking = observed[search], search.chunking
        holders = set(evidence.search.holders[row].tolist())
        retrieved = (
            RetrievedItem(
                f"{chunking.chunker}-{chunking.chunk_size}-{chunking.overlap}-{at + 1}",
                evidence.chunked.chunks[at].text,
                score,
                at in holders,
                locations[chunking][at],
            )
            for at, score in zip(
                evidence.search.order[row, :k].tolist(), evidence.search.scores[row, :k].tolist(), strict=True
            )
        )
        details[question.id] = UnitContent(question.question, question.answers, question.kinds, tuple(retrieved))
    return details


def question_slices(dataset: QADataset) -> Mapping[str, Mapping[str, str]]:
    """The category and the difficulty of every question that has them."""
    return {question.id: question.kinds for question in dataset.questions if question.kinds}


@dataclass(frozen=True)
class RerankedModel:
    """A model whose first chunks are reordered by a reranker; another process opens the reranker again."""

    model: Any
    spec: str | Reranker
    opened: Reranker

    def __reduce__(self) -> tuple[Any, ...]:
        return _reranked_model, (self.model, self.spec)


def _reranked_model(model: Any, spec: str | Reranker) -> RerankedModel:
    return RerankedModel(model, spec, reranker(spec))


def with_rerankers(models: Mapping[str, Any], rerankers: Iterable[str | Reranker]) -> dict[str, Any]:
    """The models, then each of them with each reranker, by name. A reranker that cannot be opened is an error now.

    >>> list(with_rerankers({"minilm": "minilm"}, ["fusion:bm25:+tfidf:"]))
    ['minilm', 'minilm > fusion:bm25:+tfidf:']
    """
    opened = [(spec, reranker(spec)) for spec in ([rerankers] if isinstance(rerankers, str) else rerankers)]
    reranked = {
        f"{name}{RERANKED}{spec if isinstance(spec, str) else spec.card.spec}": RerankedModel(model, spec, reranking)
        for name, model in models.items()
        for spec, reranking in opened
    }
    return {**models, **reranked}


def check_rerank_depths(depths: Iterable[int] | None, rerankers: str | Sequence[str | Reranker]) -> None:
    """Raise ``ParameterError`` for depths without a reranker, which would be ignored."""
    if depths is not None and not rerankers:
        raise ParameterError(
            "rerank depths are given without a reranker", hint="add rerankers, such as --rerankers maxsim:minilm"
        )


@dataclass(frozen=True)
class FairContext:
    """The shared context of all models: the plan of the comparison, and the loading of models."""

    plan: Plan
    cache: Any = None
    threads: int = 1


def evaluate_job(job: Job[Any], context: JobContext[FairContext]) -> JobOutput[FairModelResult]:
    """Tune and score the model, unless its stored run has the same key.

    The key contains the fingerprint of the model, which is known only after the model is loaded.
    """
    plan, threads = context.shared.plan, context.shared.threads
    context.progress(f"{job.name}: {EMBEDDING}")
    is_reranked = isinstance(job.inputs, RerankedModel)
    with open_retriever(
        job.inputs.model if is_reranked else job.inputs, cache=context.shared.cache, threads=threads
    ) as system:
        if is_reranked:
            memoised = memoise_reranker(job.inputs.opened, open_cache(context.shared.cache))
            system = RerankedRetriever(system, memoised, depth=max(plan.requested.rerank_depth_axis))
        key = fair_key(plan, job.name, system.fingerprint)
        if key == context.stored_key:
            return JobOutput(None, key)
        map_function = None if context.executor is None else executor_map(context.executor, n_cores=threads)
        return JobOutput(evaluate_model(job.name, system, plan, context.progress, map_function), key)


def run_fair_comparison(
    models: Sequence[object],
    doc_content: Documents,
    qa_pairs: Iterable[Any],
    chunk_sizes: Sequence[int] | None = None,
    overlaps: Sequence[int] | None = None,
    top_ks: Sequence[int] | None = None,
    verbose: bool = False,
    *,
    rerankers: Sequence[str | Reranker] = (),
    config: FairConfig | None = None,
    cache: VectorCache | Path | str | bool | None = None,
    threads: int = 1,
    progress: Progress | None = None,
    output: str | Path | None = None,
    engine: Executor | None = None,
) -> FairComparison:
    """Tune every model separately, and compare the models on held-out questions.

    Of equally accurate configurations the cheapest is selected (with the matcher ``embedding-eval`` the first
    one). A model that fails is a ``FailedModel`` in the result and in ``failures``; if all fail, the first
    error is raised.

    Parameters
    ----------
    models
        Specs (``minilm``, ``bm25:``, ``sum:minilm+bm25:``) or objects with ``encode``.
    doc_content
        A text, a list of texts, or documents.
    qa_pairs
        Dicts with ``question`` and ``answer``, and optionally ``category`` and ``difficulty``.
    chunk_sizes
        Chunk sizes to try, in tokens, instead of those of ``config``.
    overlaps
        Overlaps to try, in tokens, instead of those of ``config``.
    top_ks
        Numbers of retrieved chunks to try, instead of those of ``config``.
    verbose
        Whether the summary is printed.
    rerankers
        Rerankers such as ``maxsim:minilm`` or ``cross-encoder:NAME``. Each model is also compared with each reranker.
    config
        Grid, baseline, matcher, token budget, folds and statistics; None for the defaults.
    cache
        As in ``embedder``.
    threads
        Threads per model.
    progress
        Called with the progress of each model.
    output
        Folder for the results. Finished models are written immediately, and loaded when the same call is repeated.
    engine
        Executor of the models, such as a Ray cluster; the scores are the same.

    Returns
    -------
    FairComparison
        A sequence with one result per model; ``comparison`` has the paired comparison on held-out questions.

    Examples
    --------
    >>> text = "The mill was built in 1871. The river Ilse drives it."
    >>> pairs = [{"question": "When was the mill built?", "answer": "1871"},
    ...          {"question": "What river drives it?", "answer": "Ilse"}]
    >>> config = FairConfig(chunk_sizes=[6], overlaps=[0], top_ks=[1], tokenizer="words")
    >>> comparison = run_fair_comparison(["bm25:", "hash"], text, pairs, config=config)
    >>> [(result.model_spec, result.best_params) for result in comparison][0]
    ('bm25:', {'chunk_size': 6, 'overlap': 0, 'top_k': 1})
    """
    settings = _with_values(config, chunk_sizes=chunk_sizes, overlaps=overlaps, top_ks=top_ks)
    check_rerank_depths(settings.rerank_depths, rerankers)
    named = with_rerankers(resolve_models(models), rerankers)
    plan = plan_comparison(doc_content, qa_pairs, settings)
    comparison = compare_models(named, plan, cache=cache, threads=threads, step=progress, output=output, engine=engine)
    if verbose:
        from equipoise.report.terminal import print_text

        print_text(comparison.summary)
    return comparison


def _with_values(config: FairConfig | None, **values: Any) -> FairConfig:
    """The configuration with those of these values that are not None."""
    return replace(config or FairConfig(), **{name: value for name, value in values.items() if value is not None})


def optimize_model(
    model_spec: object,
    doc_content: Documents,
    qa_pairs: Iterable[Any],
    chunk_sizes: Sequence[int] | None = None,
    overlaps: Sequence[int] | None = None,
    top_ks: Sequence[int] | None = None,
    baseline_params: Mapping[str, Any] | None = None,
    verbose: bool = False,
    *,
    config: FairConfig | None = None,
    cache: VectorCache | Path | str | bool | None = None,
    threads: int = 1,
    progress: Progress | None = None,
    output: str | Path | None = None,
    engine: Executor | None = None,
) -> OptimizationResult:
    """Tune one model on a document with questions, and score it on held-out questions.

    Parameters
    ----------
    model_spec
        A model spec or an object with ``encode``.
    doc_content
        A text, a list of texts, or documents.
    qa_pairs
        Dicts with ``question`` and ``answer``.
    chunk_sizes
        Chunk sizes to try, in tokens, instead of those of ``config``.
    overlaps
        Overlaps to try, in tokens, instead of those of ``config``.
    top_ks
        Numbers of retrieved chunks to try, instead of those of ``config``.
    baseline_params
        Configuration of the untuned baseline, instead of that of ``config``.
    verbose
        Whether the summary is printed.
    config
        Grid, baseline, matcher, token budget, folds and statistics; None for the defaults.
    cache
        As in ``embedder``.
    threads
        Threads per model.
    progress
        Called with the progress of the model.
    output
        Folder for the results.
    engine
        Executor of the model, such as a Ray cluster; the scores are the same.

    Returns
    -------
    OptimizationResult
        Best parameters, held-out and optimistic accuracy, and the result of every configuration.

    Examples
    --------
    >>> text = "The mill was built in 1871. The river Ilse drives it."
    >>> pairs = [{"question": "When was the mill built?", "answer": "1871"},
    ...          {"question": "What river drives it?", "answer": "Ilse"}]
    >>> optimize_model("bm25:", text, pairs, [6], [0], [1], config=FairConfig(tokenizer="words")).best_params
    {'chunk_size': 6, 'overlap': 0, 'top_k': 1}
    """
    comparison = run_fair_comparison(
        [model_spec],
        doc_content,
        qa_pairs,
        chunk_sizes,
        overlaps,
        top_ks,
        verbose,
        config=_with_values(config, baseline_params=baseline_params),
        cache=cache,
        threads=threads,
        progress=progress,
        output=output,
        engine=engine,
    )
    return comparison.outcomes[0].optimization


def plan_comparison(
    doc_content: Any, qa_pairs: Iterable[Any], settings: FairConfig, question_file: str = "questions"
) -> Plan:
    """The shared context of the models, after checking documents and questions; nothing is chunked yet."""
    dataset = replace(qa_dataset(doc_content, qa_pairs), question_file=question_file)
    check_drafts(dataset.questions, allowed=settings.allow_drafts)
    return Plan(settings, dataset, matcher_of(settings.matcher))


def prepare_comparison(
    doc_content: Any, qa_pairs: Iterable[Any], settings: FairConfig, question_file: str = "questions"
) -> Plan:
    """The same, with chunked documents and located answers."""
    plan = plan_comparison(doc_content, qa_pairs, settings, question_file)
    _ = plan.prepared
    return plan


def compare_models(
    models: Mapping[str, Any],
    plan: Plan,
    *,
    cache: Any = None,
    threads: int = 1,
    step: Progress | None = None,
    output: str | Path | None = None,
    command: Sequence[str] = (),
    engine: Executor | None = None,
) -> FairComparison:
    """Evaluate every model on the executor and compare the results; write each model when it is finished."""
    target = None if output is None else Path(output)
    store = None
    if target is not None and is_json_file(target):
        check_writable(target, example=RESULTS)
    elif target is not None:
        store = FairRunStore(ExperimentFolder(target), tuple(models), plan, tuple(command))
        store.check_writable()
    if store is None or not store.has_runs_of_this_setup():
        _ = plan.prepared  # an error in the inputs is raised before any model is loaded
        if store is not None:
            store.folder.check_same_data(plan.dataset.fingerprints)
            store.folder.check_same_options(store.paths.values(), plan.requested.fingerprint)
    jobs = [Job(name, model) for name, model in models.items()]
    steps = n_steps(models)
    progress_folder = None if store is None else target
    with report_progress(progress_folder, "fair comparison", steps, command=command, step=step) as progress:
        results = run_jobs(
            evaluate_job,
            jobs,
            FairContext(plan, cache, threads),
            executor=engine,
            store=store,
            progress=progress,
            n_cores=threads,
            divisible=True,
        )
        results.raise_if_all_failed()
        progress("comparing the models")
        comparison = _compare_results(results, plan, tuple(command))
        if store is not None:
            # The runs were written when they were finished.
            if not comparison.is_stored(store.folder):
                comparison.write_results(store.folder)
        elif target is not None:
            comparison.write(target)
        return comparison


def _compare_results(job_results: JobResults[FairModelResult], plan: Plan, command: tuple[str, ...]) -> FairComparison:
    settings, outcomes = plan.requested, tuple(job_results.outputs.values())
    results = [outcome.result for outcome in outcomes]
    comparison = compare(results, settings.metric, config=settings.stats) if len(results) > 1 else None
    kinds = question_slices(plan.full_dataset)
    return FairComparison(
        outcomes=outcomes,
        comparison=comparison,
        mcnemar=_mcnemar(outcomes, settings),
        slices={outcome.profile.spec: slice_estimates(outcome.result, settings.metric, kinds) for outcome in outcomes},
        findings=with_affected_models(
            results[0].findings if comparison is None else comparison.findings,
            {outcome.name: outcome.ceiling for outcome in outcomes},
            [outcomes[0].name] if comparison is None else comparison.contenders,
        ),
        failures=job_results.failures,
        plan=plan,
        keys={result.name: result.key for result in job_results.results},
        command=command,
    )


def _mcnemar(outcomes: Sequence[FairModelResult], settings: FairConfig) -> Comparison | None:
    """McNemar's exact test for all pairs of models with binary hits; None if there are fewer than two.

    A question counts as answered if it is in more than half of the splits. The bootstrap errors are dropped,
    so that p is the exact one of these counts.
    """
    binary = [outcome.result for outcome in outcomes if not outcome.profile.tied_questions]
    if len(binary) < 2:
        return None
    metric = settings.metric
    counted = [
        replace(result, per_unit={metric: majority_hits(result.per_unit[metric])}, errors={}) for result in binary
    ]
    return compare(counted, metric, config=replace(settings.stats, test="mcnemar"))
