"""Models compared on one's own document: each tuned by itself, scored on questions that did not tune it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from equipoise.checks.base import pluralize
from equipoise.config import StatsConfig
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

# One model of a comparison as a cell: what it is, and the pure function that measures it.


@dataclass(frozen=True)
class Cell:
    """A model and how it is loaded; ``kept`` is the key of the run that lies in its place, where one does."""

    name: str
    model: Any
    cache: Any = None
    threads: int = 1
    kept: str = ""


@dataclass(frozen=True)
class Measured:
    """What a model showed, and the key of all that decided it."""

    key: str
    outcome: FairModelResult


def measure(cell: Cell, plan: Plan, step: Progress, over: ExecutorMap | None = None) -> Measured | None:
    """Tune and measure the model; None where what is kept of it is of the same inputs.

    Only where a model can be loaded is it known which one it is, so that this is found out here. ``over``
    embeds blocks of its texts elsewhere.
    """
    step(f"{cell.name}: loading")
    with open_retriever(cell.model, cache=cell.cache, threads=cell.threads) as system:
        key = job_fingerprint(plan, cell.name, system.fingerprint)
        return None if key == cell.kept else Measured(key, evaluate_model(cell.name, system, plan, step, over))


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
    absent: str = "refuse",
    tokenizer: Any = None,
    cache: Any = None,
    threads: int = 1,
    test: str = "randomisation",
    progress: Progress | None = None,
    output: str | Path | None = None,
    engine: Executor | None = None,
) -> FairComparison:
    """Tune every model by itself on the questions, and compare them on questions that did not tune them.

    ``models`` are specs (``minilm``, ``bm25:``, ``sum:minilm+bm25:``) or objects with ``encode``.
    ``doc_content`` is a text, a list of texts, or documents; ``qa_pairs`` are dicts with ``question`` and
    ``answer`` that may have ``category`` and ``difficulty``. The grid is chunkers x chunk_sizes x overlaps x
    top_ks; values that are not given are fitted to the length of the document. A question is answered when a
    retrieved chunk holds its answer by the rule ``matcher``; the rule ``source`` is that of the source.

    With a ``budget``, only configurations that retrieve no more tokens on average may be chosen. Of equally
    accurate ones the cheaper is, and with the rule ``source`` the first, as there. Scores come from nested
    cross-validation with ``folds`` folds, repeated on ``repeats`` random splits: the score of a question is
    its mean over them. Without ``folds`` (None or 1) nothing is nested: the best is scored on the questions
    that chose it, which is a finding. McNemar's test needs ``repeats=1`` or no folds as the main ``test``;
    its exact p is reported anyway. ``absent``
    says what happens to a question whose answer the document lacks: ``refuse``, ``zero`` or ``skip``. With an
    ``output`` folder, finished models are written at once, and read back when the same call is made again.
    There is one result per model: one that fails is in its place as a ``FailedModel`` and in ``failures``;
    only when all fail is the first failure raised. An ``engine`` runs the models remotely, with the same
    scores.

    >>> text = "The mill was built in 1871. The river Ilse drives it."
    >>> pairs = [{"question": "When was the mill built?", "answer": "1871"},
    ...          {"question": "What river drives it?", "answer": "Ilse"}]
    >>> found = run_fair_comparison(["bm25:", "hash"], text, pairs, [6], [0], [1], tokenizer="words")
    >>> [(each.model_spec, each.best_params) for each in found][0]
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
        absent=absent,
        tokenizer=tokenizer,
        test=test,
    )
    named = resolve_models(models)
    plan = prepare_comparison(doc_content, qa_pairs, settings)
    found = compare_models(named, plan, cache=cache, threads=threads, step=progress, output=output, engine=engine)
    if verbose:
        from equipoise.report.terminal import print_text

        print_text(found.summary)
    return found


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
    found = run_fair_comparison(
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
    return found.outcomes[0].optimization


def prepare_comparison(doc_content: Any, qa_pairs: Iterable[Any], settings: FairConfig) -> Plan:
    """Everything that the models share, checked and cut."""
    get_test(settings.test)
    rule = matcher_of(settings.matcher)
    given = qa_dataset(doc_content, qa_pairs)
    tokenizer = tokenizer_for(settings.tokenizer)
    tokens = sum(tokenizer.count(document.text) for document in given.documents)
    asked_for, settings = settings, fitted_settings(settings, tokens)
    asked, shelved = apply_unanswerable_policy(given, index_chunks(given, settings, rule), rule, settings.absent)
    splits, note = answer_splits(asked, settings)
    if get_test(settings.test).binary_only and len(splits) > 1:
        raise ParameterError(
            f"the test {settings.test} needs hits and misses, and the mean over {len(splits)} splits is neither",
            hint="use --repeats 1, or another test: McNemar's exact p has a column of its own anyway",
        )
    fitted = "" if settings.axes == asked_for.axes else _fitted(settings, tokens)
    notes = tuple(filter(None, (fitted, note, _left_out(asked.skipped), _fallback(settings))))
    return Plan(asked, settings, rule, shelved, splits, notes)


def _fitted(settings: FairConfig, tokens: int) -> str:
    """A note on default values that are smaller than usual, so that the document is not retrieved whole."""
    values = {
        "chunk sizes": settings.chunk_sizes,
        "overlaps": settings.overlaps,
        "top_k": settings.top_ks,
    }
    told = ", ".join(f"{name} {'/'.join(map(str, each))}" for name, each in values.items())
    return f"The default grid was fitted to a document of {tokens:,} tokens: {told}"


def _left_out(questions: int) -> str:
    if not questions:
        return ""
    verb, answers = ("is", "answer") if questions == 1 else ("are", "answers")
    return f"{pluralize(questions, 'question')} {verb} left out, whose {answers} the document does not hold"


def _fallback(settings: FairConfig) -> str:
    """A note where nobody said what a token is, and the usual vocabulary is not here."""
    if settings.tokenizer is not None or settings.tokenizer_name != WordTokenizer.name:
        return ""
    return (
        f"cl100k is not installed ({install_command('chunk')}), so that tokens are words; with it, chunks "
        "have other sizes and figures differ"
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
    """Every model by the engine, then the claims; what is finished is written as soon as it is."""
    target = None if output is None else Path(output)
    if target is not None:
        check_writable(target, example="results.json" if is_json_file(target) else None)
    runs = None if target is None or is_json_file(target) else target / RUNS
    paths = [None if runs is None else runs / folder for folder in folder_names(models).values()]
    cells = [Cell(name, model, cache, threads) for name, model in models.items()]
    steps = len(models) * (len(plan.shelved) + 1)
    watched = None if runs is None else target
    with report_progress(watched, "fair comparison", steps, command=command, step=step) as tell:
        done = dict(_measured(cells, paths, plan, engine or LocalExecutor(), tell, command))
    ordered = {cell.name: done[cell.name] for cell in cells}
    failures = {name: each for name, each in ordered.items() if isinstance(each, EquipoiseError)}
    finished = {name: each for name, each in ordered.items() if isinstance(each, Measured)}
    if not finished:
        raise next(iter(failures.values()))
    keys = {name: finished[name].key if name in finished else "" for name in ordered}
    outcomes = tuple(each.outcome for each in finished.values())
    found = _claims(outcomes, plan, failures, keys, tuple(command))
    if target is not None:
        found.write(target)
    return found


def _measured(
    cells: Sequence[Cell],
    paths: Sequence[Path | None],
    plan: Plan,
    engine: Executor,
    step: Progress,
    command: Sequence[str],
) -> Iterator[tuple[str, Measured | EquipoiseError]]:
    """Each model as it is finished, written where it has a place, or why it has no result."""
    kept = {place: found for place, path in enumerate(paths) if (found := load_result(path)) is not None}
    offered = [replace(cell, kept=kept[place][0] if place in kept else "") for place, cell in enumerate(cells)]
    for each in _finished(offered, plan, engine, step):
        name, path = cells[each.place].name, paths[each.place]
        try:
            made = each.value()
        except Exception as error:  # whatever one model does, the others keep what they have
            yield name, _told(name, error)
            continue
        if made is None:
            made = Measured(*kept[each.place])
        elif path is not None:
            write_outcome(path, made.outcome, plan, made.key, command)
        yield name, made


def _finished(
    cells: Sequence[Cell], plan: Plan, engine: Executor, step: Progress
) -> Iterator[Completed[Measured | None]]:
    """The models by the engine; of one alone the texts are, so that more than one node has work.

    Then it is loaded in this process too, and where that cannot be, it is sent whole.
    """
    cores = max(cell.threads for cell in cells)
    if len(cells) == 1 and not isinstance(engine, LocalExecutor):
        unit, engine.unit = engine.unit, "a block of texts"
        spread = partial(engine.as_finished, cores=cores)
        (alone,) = LocalExecutor().map(partial(measure, over=spread), cells, plan, step=step)
        engine.unit = unit
        if not isinstance(alone.outcome, MissingExtraError):
            yield alone
            return
    yield from engine.map(measure, cells, plan, step=step, cores=cores)


def _told(name: str, error: Exception) -> EquipoiseError:
    """A failure as one of ours: a model of the user's own may raise anything."""
    if isinstance(error, EquipoiseError):
        return error
    told = PartialError(f"{name} failed with {type(error).__name__}: {error}", hint="the other models are not affected")
    told.__cause__ = error
    return told


def _claims(
    outcomes: tuple[FairModelResult, ...],
    plan: Plan,
    failures: Mapping[str, EquipoiseError],
    keys: Mapping[str, str],
    command: tuple[str, ...],
) -> FairComparison:
    settings = plan.settings
    results = [each.result for each in outcomes]
    comparison = (
        compare(results, settings.metric, config=StatsConfig(test=settings.test, seed=settings.seed))
        if len(results) > 1
        else None
    )
    kinds = question_slices(plan.material)
    return FairComparison(
        outcomes=outcomes,
        comparison=comparison,
        mcnemar=_mcnemar(outcomes, settings),
        slices={each.facts.spec: slice_estimates(each.result, settings.metric, kinds) for each in outcomes},
        findings=comparison.findings if comparison is not None else tuple(results[0].findings),
        failures=failures,
        plan=plan,
        keys=keys,
        command=command,
    )


def _mcnemar(outcomes: Sequence[FairModelResult], settings: FairConfig) -> Comparison | None:
    """The pairs by McNemar's exact test alone, of the models whose hits are binary; None below two of them.

    A question counts as answered when it is in more than half of the splits. The errors of the choice are
    left out, so that p is the exact one of these counts.
    """
    binary = [each.result for each in outcomes if not each.facts.tied_questions]
    if len(binary) < 2:
        return None
    metric = settings.metric
    counted = [replace(each, per_unit={metric: majority_hits(each.per_unit[metric])}, errors={}) for each in binary]
    return compare(counted, metric, config=StatsConfig(test="mcnemar", seed=settings.seed))
