"""The tuning result of one model, with the fields of embedding-eval and further ones.

Accuracies are in percent here and only here, as in embedding-eval; ``tuning`` and ``result`` hold fractions.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from math import isnan
from typing import TYPE_CHECKING, Any

from equipoise.domains.fair.model_costs import UNKNOWN_COSTS, ModelCosts
from equipoise.stats.intervals import Interval, wilson_interval
from equipoise.tuning.grid import NESTED, Trial, TuningRecord

if TYPE_CHECKING:
    from equipoise.errors import EquipoiseError
    from equipoise.stats.result import Estimate, Result

ACCURACY = "accuracy"
METRIC = f"{NESTED}{ACCURACY}"
"""The share of held-out questions answered (nested cross-validation)."""

OPTIMISTIC = f"optimistic {ACCURACY}"
"""The same with the best parameters on the questions that selected them, without cross-validation."""

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
    """How many of these chunks the model truncates."""
    costs: ModelCosts = UNKNOWN_COSTS
    tied_questions: int = 0
    """How many questions have fractional hits because of tied scores."""
    retrieved_tokens: float | None = None
    """Tokens that the best configuration retrieves per question, on average."""
    seconds: float = 0.0
    cached_texts: int = 0
    """How many texts were read from the cache; the seconds do not include their embedding."""
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
    baseline_passed: int

    improvement_pct: float = 0.0
    ci_lower: float = 0.0
    ci_upper: float = 0.0

    optimization_time_seconds: float = 0.0
    configurations_tested: int = 0
    all_results: list[dict[str, Any]] = field(default_factory=list, repr=False)

    nested_accuracy: float = float("nan")
    nested_ci_lower: float = float("nan")
    nested_ci_upper: float = float("nan")
    chance: float = float("nan")
    retrieved_tokens: float | None = None
    truncated_share: float | None = None
    costs: ModelCosts = UNKNOWN_COSTS
    tuning: TuningRecord = field(kw_only=True, repr=False)
    result: Result = field(kw_only=True, repr=False)

    @property
    def gap(self) -> float:
        """By how many percentage points the optimistic accuracy exceeds the held-out accuracy."""
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


def optimization_result(profile: ModelProfile, tuning: TuningRecord, result: Result) -> OptimizationResult:
    """The result of one model from its tuning record."""
    total = len(result.unit_ids)
    best = tuning.trials[tuning.best]
    baseline = tuning.trials[tuning.baseline] if tuning.baseline is not None else best
    (estimate,) = result.estimates.values()
    interval = wilson_interval(best.value * total, total, estimate.interval.confidence_level)
    held_out = estimate if estimate.metric == METRIC else _undefined_estimate(estimate)
    return OptimizationResult(
        model_spec=profile.spec,
        model_name=profile.name,
        dimensions=profile.dimensions,
        best_accuracy=best.value * 100,
        best_params=dict(best.params),
        best_passed=n_passed(best, total),
        total_questions=total,
        baseline_accuracy=baseline.value * 100,
        baseline_passed=n_passed(baseline, total),
        improvement_pct=best.value * 100 - baseline.value * 100,
        ci_lower=interval.low * 100,
        ci_upper=interval.high * 100,
        optimization_time_seconds=profile.seconds,
        configurations_tested=profile.configurations,
        all_results=[_row(trial, total) for trial in tuning.trials[: profile.configurations]],
        nested_accuracy=held_out.value * 100,
        nested_ci_lower=held_out.interval.low * 100,
        nested_ci_upper=held_out.interval.high * 100,
        chance=estimate.chance * 100,
        retrieved_tokens=profile.retrieved_tokens,
        truncated_share=profile.truncated_share,
        costs=profile.costs,
        tuning=tuning,
        result=result,
    )


def _undefined_estimate(estimate: Estimate) -> Estimate:
    """An undefined estimate, for a run without nested cross-validation."""
    return replace(estimate, value=float("nan"), interval=Interval.unknown("no folds"))


def n_passed(trial: Trial, total: int) -> int:
    """How many questions a trial answers."""
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
