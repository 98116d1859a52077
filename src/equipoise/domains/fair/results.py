"""The result of a fair comparison: one result per model, its run directory, the comparison and its files.

Accuracies are in percent in ``OptimizationResult`` and only there, as in embedding-eval; ``tuning`` and ``result`` hold
fractions.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property
from math import isnan, nan
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from equipoise.checks.base import join_names
from equipoise.domains.fair.config import METRIC
from equipoise.domains.fair.costs import UNKNOWN_COSTS, ModelCosts, cheapest
from equipoise.domains.fair.plan import Plan
from equipoise.domains.fair.report import fair_view
from equipoise.errors import EquipoiseError
from equipoise.report.terminal import render_text
from equipoise.runs.experiment_folder import (
    OPTIONS,
    RESULTS,
    ExperimentFolder,
    failures_to_dict,
    is_json_file,
    write_json,
)
from equipoise.runs.manifest import VIEW, Manifest, read_manifest, redact_secrets
from equipoise.runs.run_folder import StoredRun, load_run, save_run
from equipoise.runs.runner import Job, StoredOutput, resume_key
from equipoise.runs.unit_table import UnitContents
from equipoise.stats.intervals import wilson_interval
from equipoise.stats.result import NOTES
from equipoise.tuning.grid import Trial, TuningRecord

if TYPE_CHECKING:
    from equipoise.stats.comparison import Comparison
    from equipoise.stats.result import Estimate, Result
    from equipoise.stats.slices import Slice
    from equipoise.types import Finding

EMBEDDING_EVAL_KEYS = (
    "model_spec",
    "model_name",
    "dimensions",
    "best_accuracy",
    "best_params",
    "baseline_accuracy",
    "improvement_pct",
    "ci_lower",
    "ci_upper",
    "configurations_tested",
    "optimization_time_seconds",
)
"""The keys that embedding-eval writes to a results file."""


@dataclass(frozen=True)
class ModelProfile:
    """Properties of a model other than its scores; None is unknown or not applicable."""

    spec: str
    name: str
    dimensions: int | None = None
    bytes_per_vector: float | None = None
    window: int | None = None
    """The maximum number of tokens that the model reads of a chunk; the minimum over several models."""
    chunks: int = 0
    """The number of chunks of the best configuration."""
    truncated_chunks: int | None = None
    """The number of chunks that the model truncates."""
    costs: ModelCosts = UNKNOWN_COSTS
    tied_questions: int = 0
    """The number of questions with fractional hits because of tied scores."""
    retrieved_tokens: float | None = None
    """Tokens that the best configuration retrieves per question, on average."""
    seconds: float = 0.0
    cached_texts: int = 0
    """The number of texts from the cache; the seconds do not include their embedding."""
    configurations: int = 0

    @property
    def truncated_share(self) -> float | None:
        """The share of the chunks of the best configuration that the model truncates."""
        return None if self.truncated_chunks is None or not self.chunks else self.truncated_chunks / self.chunks


@dataclass(frozen=True)
class OptimizationResult:
    """The tuning of one model. Accuracies, intervals and differences are in percent.

    ``best_accuracy`` with its interval is optimistic: the best of all configurations on the questions that
    selected it. ``nested_accuracy`` is the held-out accuracy; without folds it is NaN. Tied scores give
    fractional hits, so the number of passed questions is rounded.
    """

    model_spec: str
    model_name: str
    dimensions: int | None

    best_accuracy: float
    best_params: dict[str, Any]
    best_passed: int
    total_questions: int

    baseline_accuracy: float
    baseline_passed: int | None

    improvement_pct: float = 0.0
    ci_lower: float = 0.0
    ci_upper: float = 0.0

    optimization_time_seconds: float = 0.0
    configurations_tested: int = 0
    all_results: list[dict[str, Any]] = field(default_factory=list, repr=False)

    nested_accuracy: float = nan
    nested_ci_lower: float = nan
    nested_ci_upper: float = nan
    chance: float = nan
    retrieved_tokens: float | None = None
    truncated_share: float | None = None
    costs: ModelCosts = UNKNOWN_COSTS
    tuning: TuningRecord = field(kw_only=True, repr=False)
    result: Result = field(kw_only=True, repr=False)

    @property
    def gap(self) -> float:
        """The optimistic minus the held-out accuracy, in percentage points."""
        return self.best_accuracy - self.nested_accuracy

    def to_embedding_eval(self) -> dict[str, Any]:
        """Only the keys that embedding-eval writes."""
        return {name: getattr(self, name) for name in EMBEDDING_EVAL_KEYS}

    def to_dict(self) -> dict[str, Any]:
        """All fields as plain values: accuracies in percent, then the gap, the tuning and the result."""
        plain = {item.name: getattr(self, item.name) for item in fields(self)}
        plain |= {
            "gap": self.gap,
            "costs": self.costs.to_costs(),
            "tuning": self.tuning.to_dict(),
            "result": self.result.to_dict(),
        }
        return {name: None if isinstance(value, float) and isnan(value) else value for name, value in plain.items()}


@dataclass(frozen=True)
class FailedModel:
    """A model that failed, at its position among the results; reading a result field raises its error.

    >>> from equipoise.errors import InputError
    >>> failed = FailedModel("minilm", InputError("there is no such file"))
    >>> failed
    <FailedModel minilm: there is no such file>
    >>> failed.best_accuracy
    Traceback (most recent call last):
    equipoise.errors.InputError: there is no such file
    """

    model_spec: str
    error: EquipoiseError

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name not in OptimizationResult.__dataclass_fields__:
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
        raise self.error

    def __repr__(self) -> str:
        return f"<FailedModel {self.model_spec}: {self.error.message}>"


def optimization_result(outcome: FairModelResult) -> OptimizationResult:
    """The fields of embedding-eval from the tuning record of a model."""
    profile, tuning, estimate = outcome.profile, outcome.tuning, outcome.estimate
    total = len(outcome.result.unit_ids)
    best = tuning.trials[tuning.best]
    baseline = None if tuning.baseline is None else tuning.trials[tuning.baseline]
    interval = wilson_interval(best.value * total, total, estimate.interval.confidence_level)
    held_out = (estimate.value, estimate.interval.low, estimate.interval.high)
    nested = held_out if estimate.metric == METRIC else (nan, nan, nan)
    return OptimizationResult(
        model_spec=profile.spec,
        model_name=profile.name,
        dimensions=profile.dimensions,
        best_accuracy=best.value * 100,
        best_params=dict(best.params),
        best_passed=n_passed(best, total),
        total_questions=total,
        baseline_accuracy=nan if baseline is None else baseline.value * 100,
        baseline_passed=None if baseline is None else n_passed(baseline, total),
        improvement_pct=nan if baseline is None else best.value * 100 - baseline.value * 100,
        ci_lower=interval.low * 100,
        ci_upper=interval.high * 100,
        optimization_time_seconds=profile.seconds,
        configurations_tested=profile.configurations,
        all_results=[_row(trial, total) for trial in tuning.trials[: profile.configurations]],
        nested_accuracy=nested[0] * 100,
        nested_ci_lower=nested[1] * 100,
        nested_ci_upper=nested[2] * 100,
        chance=estimate.chance * 100,
        retrieved_tokens=profile.retrieved_tokens,
        truncated_share=profile.truncated_share,
        costs=profile.costs,
        tuning=tuning,
        result=outcome.result,
    )


def n_passed(trial: Trial, total: int) -> int:
    """The number of questions that a trial answers."""
    return round(trial.value * total)


def _row(trial: Trial, total: int) -> dict[str, Any]:
    """A configuration as embedding-eval lists it, with its chance level and its cost."""
    return {
        **trial.params,
        "passed": n_passed(trial, total),
        "total": total,
        "accuracy": trial.value * 100,
        "chance": None if trial.chance is None else trial.chance * 100,
        "tokens": trial.cost,
        "reachable": None if trial.reachable is None else trial.reachable * 100,
    }


@dataclass(frozen=True)
class FairModelResult:
    """The result of one model; ``stored`` is the run directory that it was loaded from, if it was."""

    profile: ModelProfile
    tuning: TuningRecord
    result: Result
    new_details: UnitContents = field(default_factory=dict, repr=False)
    stored: StoredRun | None = None
    manifest: Manifest = field(kw_only=True, repr=False)
    """The times of start and end."""

    @property
    def name(self) -> str:
        """The model as it was requested."""
        return self.profile.spec

    @property
    def estimate(self) -> Estimate:
        """The accuracy: held out, or optimistic without nested cross-validation."""
        (estimate,) = self.result.estimates.values()
        return estimate

    @property
    def n_tried(self) -> int:
        """The number of configurations of the grid."""
        return len(self.tuning.grid)

    @property
    def ceiling(self) -> float:
        """The maximum score of the best configuration: the share of answers that its chunks do not split."""
        reachable = self.tuning.trials[self.tuning.best].reachable
        return 1.0 if reachable is None else reachable

    @property
    def details(self) -> UnitContents:
        """Each question with its text, its answer and the retrieved chunks."""
        return self.new_details if self.stored is None else self.stored.details

    @cached_property
    def optimization(self) -> OptimizationResult:
        """The same with the fields of embedding-eval."""
        return optimization_result(self)


RERANKED = " > "
"""Between the model and the reranker in the name of a reranked model."""


VERSION = "fair comparison 7"
"""Increased when the same inputs give other scores or other settings."""


_INPUTS = "all inputs of the run"
_SETUP = "all inputs but the model"


def fair_key(plan: Plan, name: str, model_fingerprint: str) -> str:
    """The resume key of one model: everything that determines its scores, and its name."""
    depths = plan.requested.rerank_depth_axis if RERANKED in name else ()
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
        profile = _stored_profile(manifest, run.tuning)
        return StoredOutput(key, FairModelResult(profile, run.tuning, run.result, stored=run, manifest=manifest))

    def save(self, job: Job[Any], value: FairModelResult, *, key: str, seconds: float = 0.0) -> None:
        """Write the run directory of a model."""
        write_outcome(self.paths[job.name], value, self.plan, key, self.command)


def write_outcome(path: Path, model_result: FairModelResult, plan: Plan, key: str, command: Sequence[str] = ()) -> Path:
    """Write the run directory of one model."""
    profile = model_result.profile
    manifest = Manifest(
        system=profile.spec,
        started=model_result.manifest.started,
        finished=model_result.manifest.finished,
        command=redact_secrets(command),
        seed=plan.settings.seed,
        datasets=plan.dataset.fingerprints,
        inputs={_INPUTS: key, _SETUP: context_key(plan), OPTIONS: plan.requested.fingerprint},
        parameters={
            "model": profile.spec,
            "model_name": profile.name,
            **model_result.tuning.trials[model_result.tuning.best].params,
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


def _stored_profile(manifest: Manifest, tuning: TuningRecord) -> ModelProfile:
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
        configurations=len(tuning.grid),
        costs=ModelCosts.of_costs(cost),
    )


def _as_int(number: float | None) -> int | None:
    return None if number is None else int(number)


@dataclass(frozen=True)
class FairComparison(Sequence[OptimizationResult | FailedModel]):
    """One result per model, in the order of the models, and the claims that they allow.

    A model that failed is a ``FailedModel`` at its position; reading a result field raises its error.
    ``failures`` holds these errors by model. ``comparison`` uses the held-out values, ``mcnemar`` binary hits
    with McNemar's exact test; both are None with fewer than two such models.
    """

    outcomes: tuple[FairModelResult, ...] = field(repr=False)
    comparison: Comparison | None
    mcnemar: Comparison | None = field(repr=False)
    slices: Mapping[str, tuple[Slice, ...]] = field(repr=False)
    findings: tuple[Finding, ...] = ()
    failures: Mapping[str, EquipoiseError] = field(default_factory=dict)
    plan: Plan = field(kw_only=True, repr=False)
    keys: Mapping[str, str] = field(default_factory=dict, kw_only=True, repr=False)
    command: tuple[str, ...] = field(default=(), kw_only=True, repr=False)

    @property
    def results(self) -> tuple[OptimizationResult | FailedModel, ...]:
        """The result or failure of each model, in input order."""
        finished = {outcome.name: outcome.optimization for outcome in self.outcomes}
        return tuple(
            finished[name] if name in finished else FailedModel(name, self.failures[name])
            for name in self.keys or finished
        )

    @overload
    def __getitem__(self, index: int) -> OptimizationResult | FailedModel: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[OptimizationResult | FailedModel]: ...
    def __getitem__(
        self, index: int | slice
    ) -> OptimizationResult | FailedModel | Sequence[OptimizationResult | FailedModel]:
        """The result at this position in the order of the models."""
        return self.results[index]

    def __len__(self) -> int:
        return len(self.results)

    @property
    def tunings(self) -> dict[str, TuningRecord]:
        """The tuning record of each model."""
        return {outcome.name: outcome.tuning for outcome in self.outcomes}

    @property
    def resumed(self) -> tuple[str, ...]:
        """The models that were loaded from the output folder instead of computed."""
        return tuple(outcome.name for outcome in self.outcomes if outcome.stored is not None)

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on the setup, which every result has, and on models without a baseline."""
        shared = tuple(self.outcomes[0].result.settings.get(NOTES, ())) if self.outcomes else self.plan.notes
        without = [outcome.name for outcome in self.outcomes if outcome.tuning.baseline is None]
        if not without:
            return shared
        return *shared, f"The default baseline is left out for {join_names(without)}: its chunks have no vectors"

    @property
    def ranked(self) -> list[FairModelResult]:
        """The results of the models, best first."""
        if self.comparison is None:
            return list(self.outcomes)
        by_name = {outcome.name: outcome for outcome in self.outcomes}
        return [by_name[name] for name in self.comparison.order]

    @property
    def cheapest(self) -> str | None:
        """The cheapest of the models that could be best (``Comparison.could_be_best``); None if that is unknown."""
        if self.comparison is None:
            return None
        names = self.comparison.could_be_best
        return cheapest({outcome.name: outcome.profile.costs for outcome in self.ranked if outcome.name in names})

    @property
    def summary(self) -> str:
        """The report as text."""
        return render_text(*fair_view(self).parts(verbose=True))

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values; the fields of embedding-eval are in percent, all others are fractions."""
        settings = self.plan.settings
        return {
            "schema": 1,
            "key": self.key,
            "models": [outcome.optimization.to_dict() for outcome in self.outcomes],
            "comparison": None if self.comparison is None else self.comparison.to_dict(),
            "cheapest": self.cheapest,
            "mcnemar": [] if self.mcnemar is None else self.mcnemar.to_dict()["contrasts"],
            "slices": {
                name: [{"slice": {part.name: part.value}, **part.estimate.to_dict()} for part in slices]
                for name, slices in self.slices.items()
            },
            "findings": [asdict(finding) for finding in self.findings],
            "failures": failures_to_dict(self.failures),
            "settings": {
                **{f"{name}s": values for name, values in settings.axes.items()},
                "baseline": settings.params(*settings.baseline),
                "matcher": settings.matcher,
                "budget": settings.budget,
                "tokenizer": settings.tokenizer_name,
                "units": dict.fromkeys(("chunk_size", "overlap", "budget", "tokens"), "tokens"),
                "metric": settings.metric,
                "folds": self.plan.split_counts.folds,
                "repeats": max(1, self.plan.split_counts.splits),
                "seed": settings.seed,
                "questions": len(self.plan.dataset.questions),
                "unanswerable": [question.id for question in self.plan.dataset.unanswerable],
                "skipped": self.plan.dataset.n_skipped,
                "drafts": sum(question.draft for question in self.plan.dataset.questions),
            },
            "notes": self.notes,
        }

    def to_embedding_eval(self) -> list[dict[str, Any]]:
        """The list that embedding-eval writes, with only its keys."""
        return [outcome.optimization.to_embedding_eval() for outcome in self.outcomes]

    def write(self, output: str | Path) -> list[Path]:
        """Write results.json and one run directory per model to a folder, or embedding-eval's list to a .json file."""
        target = Path(output)
        if is_json_file(target):
            return [write_json(target, self.to_embedding_eval())]
        written = []
        for outcome, path in zip(self.outcomes, self.runs(target), strict=True):
            if outcome.stored is None or outcome.stored.path.resolve() != path.resolve():
                write_outcome(path, outcome, self.plan, self.keys[outcome.name], self.command)
            written.append(path)
        return [self.write_results(ExperimentFolder(target)), *written]

    @property
    def key(self) -> str:
        """The resume key of the comparison: the keys of all models and the statistics."""
        return resume_key(sorted(self.keys.items()), self.plan.requested.stats, sorted(self.failures))

    def is_stored(self, folder: ExperimentFolder) -> bool:
        """Whether all models were loaded from this folder, and its results.json is that of this comparison."""
        if len(self.resumed) < len(self.keys) or not (folder.path / VIEW).is_file():
            return False
        try:
            return bool(json.loads((folder.path / RESULTS).read_text(encoding="utf-8"))["key"] == self.key)
        except (OSError, ValueError, KeyError, TypeError):
            return False

    def write_results(self, folder: ExperimentFolder) -> Path:
        """Write results.json to an output folder."""
        fair_view(self).write(folder.path, self.runs(folder.path))
        return folder.write_results(self.to_dict())

    def draw(self, output: str | Path) -> list[Path]:
        """Write the charts of the runs in a folder; nothing if charts cannot be drawn here."""
        folder = Path(output)
        from equipoise.report.charts import write_run_charts

        return write_run_charts(folder, self.runs(folder), self.comparison)

    def runs(self, output: str | Path) -> list[Path]:
        """The run directory of each model in an output folder."""
        paths = ExperimentFolder(Path(output)).run_paths(self.keys)
        return [paths[outcome.name] for outcome in self.outcomes]

    def unrelated_runs(self, output: str | Path) -> dict[str, bool]:
        """Runs in the folder that are not part of this comparison, and whether their setup is the same."""
        return unrelated_runs(ExperimentFolder(Path(output)), self.keys, self.plan)

    def __repr__(self) -> str:
        nested = self.plan.requested.nested
        shown = ", ".join(
            f"{result.model_spec} failed"
            if isinstance(result, FailedModel)
            else (f"{result.model_spec} {result.nested_accuracy:.1f} % " if nested else f"{result.model_spec} ")
            + f"({result.best_accuracy:.1f} % optimistic)"
            for result in self.results
        )
        n_questions = len(self.outcomes[0].result.unit_ids)
        return f"<FairComparison on {n_questions} questions: {shown}>"
