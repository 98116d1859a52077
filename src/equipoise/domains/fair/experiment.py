"""Run a fair comparison: tune each model separately, score it on held-out questions, compare all models."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from equipoise.checks.base import pluralize
from equipoise.domains.fair.chunk_index import index_chunks
from equipoise.domains.fair.config import REPEATS, FairConfig, checked_settings, fitted_settings
from equipoise.domains.fair.dataset import apply_unanswerable_policy, qa_dataset
from equipoise.domains.fair.embedding_eval_matcher import answer_matcher as matcher_of
from equipoise.domains.fair.grid_search import Progress, answer_splits
from equipoise.domains.fair.model_outcome import (
    FairModelResult,
    evaluate_model,
    job_fingerprint,
    load_result,
    question_slices,
    write_outcome,
)
from equipoise.domains.fair.plan import Plan
from equipoise.domains.fair.results import FairComparison
from equipoise.errors import EquipoiseError, MissingExtraError, ParameterError, PartialError
from equipoise.extras import install_command
from equipoise.models.resolve import open_retriever, resolve_models
from equipoise.models.tokenizers import WordTokenizer, tokenizer_for
from equipoise.runs.compare import compare
from equipoise.runs.executors import Completed, Executor, LocalExecutor
from equipoise.runs.experiment import RUNS, check_writable, folder_names, is_json_file
from equipoise.runs.progress import report_progress
from equipoise.stats.paired_tests import get_test
from equipoise.stats.slices import slice_estimates
from equipoise.tuning.nested_cv import majority_hits

if TYPE_CHECKING:
    from equipoise.domains.fair.model_result import OptimizationResult
    from equipoise.models.worker_pool import ExecutorMap
    from equipoise.stats.comparison import Comparison


@dataclass(frozen=True)
class FairJob:
    """A model and how to load it; ``stored_key`` is the fingerprint of its stored run, if there is one."""

    name: str
    model: Any
    cache: Any = None
    threads: int = 1
    stored_key: str = ""


@dataclass(frozen=True)
class FairJobResult:
    """The result of a model, and the fingerprint of its inputs."""

    key: str
    outcome: FairModelResult


def run_job(job: FairJob, plan: Plan, step: Progress, over: ExecutorMap | None = None) -> FairJobResult | None:
    """Tune and score the model; None if its stored run has the same fingerprint.

    The fingerprint is known only after the model is loaded, so it is compared here. ``over`` embeds blocks of
    texts on an executor.
    """
    step(f"{job.name}: loading")
    with open_retriever(job.model, cache=job.cache, threads=job.threads) as system:
        key = job_fingerprint(plan, job.name, system.fingerprint)
        return None if key == job.stored_key else FairJobResult(key, evaluate_model(job.name, system, plan, step, over))


def run_fair_comparison(
    models: Sequence[Any],
    doc_content: Any,
    qa_pairs: Iterable[Any],
    chunk_sizes: Sequence[int] | None = None,
    overlaps: Sequence[int] | None = None,
    top_ks: Sequence[int] | None = None,
    verbose: bool = False,
    *,
    chunkers: Sequence[str] = ("fixed",),
    baseline_params: Mapping[str, Any] | None = None,
    matcher: str = "words",
    budget: float | None = None,
    folds: int | None = 5,
    repeats: int = REPEATS,
    seed: int = 0,
    unanswerable: str = "refuse",
    tokenizer: Any = None,
    cache: Any = None,
    threads: int = 1,
    test: str = "randomisation",
    progress: Progress | None = None,
    output: str | Path | None = None,
    engine: Executor | None = None,
) -> FairComparison:
    """Tune every model separately, and compare the models on held-out questions.

    ``models`` are specs (``minilm``, ``bm25:``, ``sum:minilm+bm25:``) or objects with ``encode``.
    ``doc_content`` is a text, a list of texts, or documents; ``qa_pairs`` are dicts with ``question`` and
    ``answer`` that may have ``category`` and ``difficulty``. The grid is chunkers x chunk_sizes x overlaps x
    top_ks; default values are fitted to the length of the document. A question is answered when a retrieved
    chunk contains its answer according to ``matcher``; the matcher ``source`` is that of embedding-eval.

    With a ``budget``, only configurations that retrieve no more tokens on average are eligible. Of equally
    accurate configurations the cheaper is selected; with the matcher ``source`` the first, as in
    embedding-eval. Scores come from nested cross-validation with ``folds`` folds, repeated on ``repeats``
    random splits: the score of a question is its mean over the splits. Without ``folds`` (None or 1) the best
    configuration is scored on the questions that selected it, which is a finding. McNemar's test as the main
    ``test`` needs ``repeats=1`` or no folds; its exact p is reported anyway. ``unanswerable`` is the policy for
    questions whose answer is not in the document: ``refuse``, ``zero`` or ``skip``.

    With an ``output`` folder, finished models are written immediately and loaded when the same call is
    repeated. There is one result per model: a model that fails is a ``FailedModel`` and in ``failures``; if all
    fail, the first error is raised. An ``engine`` runs the models remotely, with the same scores.

    >>> text = "The mill was built in 1871. The river Ilse drives it."
    >>> pairs = [{"question": "When was the mill built?", "answer": "1871"},
    ...          {"question": "What river drives it?", "answer": "Ilse"}]
    >>> comparison = run_fair_comparison(["bm25:", "hash"], text, pairs, [6], [0], [1], tokenizer="words")
    >>> [(result.model_spec, result.best_params) for result in comparison][0]
    ('bm25:', {'chunk_size': 6, 'overlap': 0, 'top_k': 1})
    """
    settings = checked_settings(
        chunk_sizes=chunk_sizes,
        overlaps=overlaps,
        top_ks=top_ks,
        chunkers=chunkers,
        baseline_params=baseline_params,
        matcher=matcher,
        budget=budget,
        folds=folds,
        repeats=repeats,
        seed=seed,
        unanswerable=unanswerable,
        tokenizer=tokenizer,
        test=test,
    )
    named = resolve_models(models)
    plan = prepare_comparison(doc_content, qa_pairs, settings)
    comparison = compare_models(named, plan, cache=cache, threads=threads, step=progress, output=output, engine=engine)
    if verbose:
        from equipoise.report.terminal import print_text

        print_text(comparison.summary)
    return comparison


def optimize_model(
    model_spec: Any,
    doc_content: Any,
    qa_pairs: Iterable[Any],
    chunk_sizes: Sequence[int] | None = None,
    overlaps: Sequence[int] | None = None,
    top_ks: Sequence[int] | None = None,
    baseline_params: Mapping[str, Any] | None = None,
    verbose: bool = False,
    **options: Any,
) -> OptimizationResult:
    """Tune one model; further options are those of ``run_fair_comparison``."""
    comparison = run_fair_comparison(
        [model_spec],
        doc_content,
        qa_pairs,
        chunk_sizes,
        overlaps,
        top_ks,
        verbose,
        baseline_params=baseline_params,
        **options,
    )
    return comparison.outcomes[0].optimization


def prepare_comparison(doc_content: Any, qa_pairs: Iterable[Any], settings: FairConfig) -> Plan:
    """The shared context of the models: check the inputs, chunk the documents, locate the answers."""
    rule = matcher_of(settings.matcher)
    full_dataset = qa_dataset(doc_content, qa_pairs)
    tokenizer = tokenizer_for(settings.tokenizer)
    tokens = sum(tokenizer.count(document.text) for document in full_dataset.documents)
    requested, settings = settings, fitted_settings(settings, tokens)
    dataset, indexed_chunks = apply_unanswerable_policy(
        full_dataset, index_chunks(full_dataset, settings, rule), rule, settings.unanswerable
    )
    splits, note = answer_splits(dataset, settings)
    if get_test(settings.stats.test).binary_only and len(splits) > 1:
        raise ParameterError(
            f"the test {settings.stats.test} needs binary hits, and means over {len(splits)} splits are fractional",
            hint="use --n-repeats 1 or another test: McNemar's exact p is always reported in its own column",
        )
    fitted = "" if settings.axes == requested.axes else _fitted_note(settings, tokens)
    notes = tuple(filter(None, (fitted, note, _skipped_note(dataset.n_skipped), _tokenizer_note(settings))))
    return Plan(dataset, settings, rule, indexed_chunks, splits, notes)


def _fitted_note(settings: FairConfig, tokens: int) -> str:
    """A note on default values that were reduced for a short document."""
    values = {
        "chunk sizes": settings.chunk_sizes,
        "overlaps": settings.overlaps,
        "top_k": settings.top_ks,
    }
    listed = ", ".join(f"{name} {'/'.join(map(str, axis))}" for name, axis in values.items())
    return f"The default grid was fitted to a document of {tokens:,} tokens: {listed}"


def _skipped_note(questions: int) -> str:
    if not questions:
        return ""
    verb = "was" if questions == 1 else "were"
    return f"{pluralize(questions, 'question')} {verb} skipped: the answer is not in the document"


def _tokenizer_note(settings: FairConfig) -> str:
    """A note if no tokenizer was specified and the default one is not installed."""
    if settings.tokenizer is not None or settings.tokenizer_name != WordTokenizer.name:
        return ""
    return (
        f"cl100k is not installed ({install_command('chunk')}), so tokens are words; with it, chunk "
        "sizes and scores differ"
    )


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
    if target is not None:
        check_writable(target, example="results.json" if is_json_file(target) else None)
    runs = None if target is None or is_json_file(target) else target / RUNS
    paths = [None if runs is None else runs / folder for folder in folder_names(models).values()]
    jobs = [FairJob(name, model, cache, threads) for name, model in models.items()]
    steps = len(models) * (len(plan.indexed_chunks) + 1)
    watched = None if runs is None else target
    with report_progress(watched, "fair comparison", steps, command=command, step=step) as tell:
        done = dict(_evaluate_jobs(jobs, paths, plan, engine or LocalExecutor(), tell, command))
    ordered = {job.name: done[job.name] for job in jobs}
    failures = {name: each for name, each in ordered.items() if isinstance(each, EquipoiseError)}
    finished = {name: each for name, each in ordered.items() if isinstance(each, FairJobResult)}
    if not finished:
        raise next(iter(failures.values()))
    keys = {name: finished[name].key if name in finished else "" for name in ordered}
    outcomes = tuple(each.outcome for each in finished.values())
    comparison = _compare_results(outcomes, plan, failures, keys, tuple(command))
    if target is not None:
        comparison.write(target)
    return comparison


def _evaluate_jobs(
    jobs: Sequence[FairJob],
    paths: Sequence[Path | None],
    plan: Plan,
    engine: Executor,
    step: Progress,
    command: Sequence[str],
) -> Iterator[tuple[str, FairJobResult | EquipoiseError]]:
    """Yield each model when it is finished, after writing it, or its error."""
    stored = {index: run for index, path in enumerate(paths) if (run := load_result(path)) is not None}
    keyed = [replace(job, stored_key=stored[index][0] if index in stored else "") for index, job in enumerate(jobs)]
    for completed in _run_jobs(keyed, plan, engine, step):
        name, path = jobs[completed.place].name, paths[completed.place]
        try:
            result = completed.value()
        except Exception as error:  # a failing model must not lose the results of the others
            yield name, _as_our_error(name, error)
            continue
        if result is None:
            result = FairJobResult(*stored[completed.place])
        elif path is not None:
            write_outcome(path, result.outcome, plan, result.key, command)
        yield name, result


def _run_jobs(
    jobs: Sequence[FairJob], plan: Plan, engine: Executor, step: Progress
) -> Iterator[Completed[FairJobResult | None]]:
    """Run the models on the executor. For a single model its texts are distributed instead.

    The single model is then loaded in this process; if a package is missing here, it runs remotely.
    """
    cores = max(job.threads for job in jobs)
    if len(jobs) == 1 and not isinstance(engine, LocalExecutor):
        unit, engine.unit = engine.unit, "a block of texts"
        spread = partial(engine.as_finished, cores=cores)
        (alone,) = LocalExecutor().map(partial(run_job, over=spread), jobs, plan, step=step)
        engine.unit = unit
        if not isinstance(alone.outcome, MissingExtraError):
            yield alone
            return
    yield from engine.map(run_job, jobs, plan, step=step, cores=cores)


def _as_our_error(name: str, error: Exception) -> EquipoiseError:
    """The failure as an ``EquipoiseError``: a user-defined model may raise any exception."""
    if isinstance(error, EquipoiseError):
        return error
    failure = PartialError(
        f"{name} failed with {type(error).__name__}: {error}", hint="the other models are not affected"
    )
    failure.__cause__ = error
    return failure


def _compare_results(
    outcomes: tuple[FairModelResult, ...],
    plan: Plan,
    failures: Mapping[str, EquipoiseError],
    keys: Mapping[str, str],
    command: tuple[str, ...],
) -> FairComparison:
    settings = plan.settings
    results = [each.result for each in outcomes]
    comparison = compare(results, settings.metric, config=settings.stats) if len(results) > 1 else None
    kinds = question_slices(plan.dataset)
    return FairComparison(
        outcomes=outcomes,
        comparison=comparison,
        mcnemar=_mcnemar(outcomes, settings),
        slices={each.profile.spec: slice_estimates(each.result, settings.metric, kinds) for each in outcomes},
        findings=comparison.findings if comparison is not None else tuple(results[0].findings),
        failures=failures,
        plan=plan,
        keys=keys,
        command=command,
    )


def _mcnemar(outcomes: Sequence[FairModelResult], settings: FairConfig) -> Comparison | None:
    """McNemar's exact test for all pairs of models with binary hits; None if there are fewer than two.

    A question counts as answered if it is in more than half of the splits. The bootstrap errors are dropped,
    so that p is the exact one of these counts.
    """
    binary = [each.result for each in outcomes if not each.profile.tied_questions]
    if len(binary) < 2:
        return None
    metric = settings.metric
    counted = [replace(each, per_unit={metric: majority_hits(each.per_unit[metric])}, errors={}) for each in binary]
    return compare(counted, metric, config=replace(settings.stats, test="mcnemar"))
