"""Evaluate one model, write its run directory, and load it again when the same command is repeated."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from equipoise.checks.base import ScoredResult, run_checks
from equipoise.checks.models import TruncationStats
from equipoise.checks.tuning import TunedSystem
from equipoise.domains.fair.chunk_index import chunk_locations
from equipoise.domains.fair.grid_search import (
    GridEvidence,
    GridSearchResult,
    Progress,
    Search,
    embed_all,
    run_grid,
    select_configuration,
)
from equipoise.domains.fair.model_result import (
    ACCURACY,
    METRIC,
    OPTIMISTIC,
    ModelCosts,
    ModelProfile,
    OptimizationResult,
    measure_costs,
    optimization_result,
)
from equipoise.domains.fair.plan import Plan, setup_findings
from equipoise.errors import EquipoiseError
from equipoise.models.dense import dense_models, memoise_retriever, n_cached_texts
from equipoise.models.rerank import RerankedRetriever
from equipoise.runs.manifest import Manifest, read_manifest, redact_secrets
from equipoise.runs.runner import Job, StoredOutput, resume_key
from equipoise.runs.store import StoredRun, load_run, save_run
from equipoise.runs.unit_table import RetrievedItem, UnitContent, UnitContents
from equipoise.stats.result import NOTES, SPEC, WINDOW
from equipoise.stats.verdict import DISPLAY, UNIT_NOUN

if TYPE_CHECKING:
    from equipoise.domains.fair.dataset import QADataset
    from equipoise.models.retriever import Retriever
    from equipoise.models.worker_pool import ExecutorMap
    from equipoise.runs.experiment_folder import ExperimentFolder
    from equipoise.stats.result import Result
    from equipoise.tuning.grid import TuningRecord
    from equipoise.types import Finding


@dataclass(frozen=True)
class FairModelResult:
    """The result of one model; ``stored`` is the run directory that it was loaded from, if it was."""

    profile: ModelProfile
    tuning: TuningRecord
    result: Result
    new_details: UnitContents = field(default_factory=dict, repr=False)
    stored: StoredRun | None = None
    begun: Manifest = field(kw_only=True, repr=False)
    """The times of start and end."""

    @property
    def details(self) -> UnitContents:
        """Each question with its text, its answer and the retrieved chunks."""
        return self.new_details if self.stored is None else self.stored.details

    @cached_property
    def optimization(self) -> OptimizationResult:
        """The same with the fields of embedding-eval."""
        return optimization_result(self.profile, self.tuning, self.result)


def evaluate_model(
    name: str, system: Retriever, plan: Plan, step: Progress, map_function: ExecutorMap | None = None
) -> FairModelResult:
    """Tune one model and score it on held-out questions; ``map_function`` embeds its texts on an executor."""
    start, begun = perf_counter(), Manifest.start(name)
    settings = plan.settings
    base, reranker = (system.base, system.reranker) if isinstance(system, RerankedRetriever) else (system, None)
    base = memoise_retriever(base)
    rerank_depths = settings.rerank_depths if reranker is not None else ()
    reports = embed_all(base, plan.indexed_chunks, plan.dataset, map_function)
    observed = run_grid(
        base,
        plan.indexed_chunks,
        plan.dataset,
        settings.depth,
        plan.matcher,
        step,
        reranker=reranker,
        rerank_depths=rerank_depths,
    )
    tuned = select_configuration(name, observed, plan.dataset, settings, plan.splits, rerank_depths or (None,))
    best = observed[tuned.best]
    seconds = perf_counter() - start
    chunks = best.chunked.chunks
    # The search with the largest depth runs the reranker; the others reuse its scores.
    slowest = 0.0 if reranker is None else observed[Search(tuned.best.chunking, max(rerank_depths))].seconds
    costs = measure_costs(
        base, best.chunked.texts, sum(chunk.tokens for chunk in chunks), reports, slowest / len(plan.dataset.ids)
    )
    profile = replace(_measured_profile(name, base, tuned, best, seconds), name=system.card.name, costs=costs)
    findings = setup_findings(tuned.tuning, plan) + _findings(profile, tuned, best)
    result = replace(
        tuned.result, findings=findings, settings={**tuned.result.settings, **_comparability_settings(profile, plan)}
    )
    details = _details(tuned, observed, plan.dataset)
    return FairModelResult(profile, tuned.tuning, result, details, begun=begun.finish())


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
        DISPLAY: {"system": "model", "percent": {METRIC: ACCURACY, OPTIMISTIC: OPTIMISTIC}},
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


RERANKED = " > "
"""Between the model and the reranker in the name of a reranked model."""

VERSION = "fair comparison 4"
"""Increased when the same inputs give other scores."""

_INPUTS = "all inputs of this comparison"
_SETUP = "all inputs but the model"


def fair_key(plan: Plan, name: str, model_fingerprint: str) -> str:
    """The resume key of one model: everything that determines its scores, and its name."""
    depths = plan.requested.rerank_depths if RERANKED in name else ()
    return resume_key(name, plan.requested.metric, context_key(plan), model_fingerprint, depths)


def context_key(plan: Plan) -> str:
    """The key of what all models of a comparison share: settings, document and questions."""
    return resume_key(VERSION, plan.requested.fingerprint, *plan.full_dataset.fingerprints.values())


def unrelated_runs(folder: ExperimentFolder, models: Iterable[str], plan: Plan) -> dict[str, bool]:
    """Run directories in the output folder that are not part of this comparison, and whether the setup is the same."""
    same_setup = {}
    for path in folder.unrelated_runs(models):
        try:
            same_setup[path.name] = read_manifest(path).inputs.get(_SETUP) == context_key(plan)
        except EquipoiseError:
            continue  # not a run directory
    return same_setup


@dataclass(frozen=True)
class FairRunStore:
    """The run directories of the models; their manifests have the resume keys."""

    folder: ExperimentFolder
    models: tuple[str, ...]
    plan: Plan
    command: tuple[str, ...] = ()

    def check_writable(self) -> None:
        """Raise ``StoreError`` if the output folder cannot be written."""
        self.folder.check_writable()

    @cached_property
    def paths(self) -> dict[str, Path]:
        """The run directory of each model."""
        return self.folder.run_paths(self.models)

    def has_runs_of_this_setup(self) -> bool:
        """Whether every model has a finished run with the same settings, document and questions."""
        setup = context_key(self.plan)
        try:
            manifests = [read_manifest(path) for path in self.paths.values()]
        except (EquipoiseError, OSError):
            return False
        return all(manifest.complete and manifest.inputs.get(_SETUP) == setup for manifest in manifests)

    def load(self, job: Job[Any]) -> StoredOutput[FairModelResult] | None:
        """The finished run of a model; a directory that cannot be read is computed again and replaced."""
        path = self.paths[job.name]
        try:
            manifest = read_manifest(path)
            key = manifest.inputs.get(_INPUTS)
            if not manifest.complete or not key:
                return None
            run = load_run(path, evidence=False)
            if run.tuning is None or (run.tuning.folds and METRIC not in run.result.errors):
                return None
        except (EquipoiseError, OSError):
            return None
        profile = _stored_profile(manifest)
        return StoredOutput(key, FairModelResult(profile, run.tuning, run.result, stored=run, begun=manifest))

    def save(self, job: Job[Any], value: FairModelResult, *, key: str, seconds: float = 0.0) -> None:
        """Write the run directory of a model."""
        write_outcome(self.paths[job.name], value, self.plan, key, self.command)


def write_outcome(path: Path, model_result: FairModelResult, plan: Plan, key: str, command: Sequence[str] = ()) -> Path:
    """Write the run directory of one model."""
    profile = model_result.profile
    manifest = Manifest(
        system=profile.spec,
        started=model_result.begun.started,
        finished=model_result.begun.finished,
        command=redact_secrets(command),
        seed=plan.settings.seed,
        datasets=plan.dataset.fingerprints,
        inputs={_INPUTS: key, _SETUP: context_key(plan)},
        parameters={
            "model": profile.spec,
            "model_name": profile.name,
            **model_result.tuning.trials[model_result.tuning.best].params,
            "matcher": plan.settings.matcher,
            "tokenizer": plan.settings.tokenizer_name,
            "folds": plan.split_counts.folds,
            "repeats": max(1, plan.split_counts.splits),
            "configurations": profile.configurations,
        },
        cost={
            "dims": profile.dimensions,
            "bytes_per_vector": profile.bytes_per_vector,
            # Cached vectors take no time, so these seconds are not comparable with those of other runs.
            "seconds": None if profile.cached_texts else profile.seconds,
            "seconds_with_cache": profile.seconds,
            "texts_from_cache": profile.cached_texts,
            "truncated_share": profile.truncated_share,
            "retrieved_tokens": profile.retrieved_tokens,
            "window": profile.window,
            "chunks": profile.chunks,
            "truncated_chunks": profile.truncated_chunks,
            "tied_questions": profile.tied_questions,
            **profile.costs.to_costs(),
        },
    )
    return save_run(
        path, model_result.result, manifest=manifest, details=model_result.details, tuning=model_result.tuning
    )


def _stored_profile(manifest: Manifest) -> ModelProfile:
    """The profile that ``write_outcome`` stored."""
    cost = manifest.cost
    return ModelProfile(
        spec=manifest.system,
        name=str(manifest.parameters["model_name"]),
        dimensions=_as_int(cost["dims"]),
        bytes_per_vector=cost["bytes_per_vector"],
        window=_as_int(cost["window"]),
        chunks=_as_int(cost["chunks"]) or 0,
        truncated_chunks=_as_int(cost["truncated_chunks"]),
        tied_questions=_as_int(cost.get("tied_questions")) or 0,
        retrieved_tokens=cost["retrieved_tokens"],
        seconds=float(cost["seconds_with_cache"] or 0.0),
        cached_texts=_as_int(cost["texts_from_cache"]) or 0,
        configurations=int(manifest.parameters["configurations"]),
        costs=ModelCosts.of_costs(cost),
    )


def _as_int(number: float | None) -> int | None:
    return None if number is None else int(number)
