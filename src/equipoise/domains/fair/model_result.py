"""What tuning one model showed, in the fields that the source of this recipe has, and in ours.

Accuracies are in percent here and only here, as in the source; ``tuning`` and ``result`` hold fractions.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from math import isnan
from typing import TYPE_CHECKING, Any

from equipoise.stats.intervals import Interval, wilson_interval
from equipoise.tuning.grid import NESTED, Trial, TuningRecord

if TYPE_CHECKING:
    from equipoise.errors import EquipoiseError
    from equipoise.stats.result import Estimate, Result

ACCURACY = "accuracy"
METRIC = f"{NESTED}{ACCURACY}"
"""The share of questions answered with parameters that the question had no say in."""

OPTIMISTIC = f"optimistic {ACCURACY}"
"""The same with the best parameters, on the very questions that chose them: what is left without folds."""

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
"""What the source writes to a file of results."""


@dataclass(frozen=True)
class ModelProfile:
    """What is known of a model beside its figures; None is unknown, or nothing that the model has."""

    spec: str
    name: str
    dimensions: int | None = None
    bytes_per_vector: float | None = None
    truncated_share: float | None = None
    """The share of the chunks of the best configuration that the model reads only in part."""
    window: int | None = None
    """How many tokens the model reads of a chunk; of several models, the one that reads least."""
    grid_chunks: int = 0
    """How many chunks all configurations that could be chosen have together."""
    grid_truncated: int | None = None
    """How many of these the model reads only in part."""
    tied_questions: int = 0
    """How many questions have fractional hits, since tied scores leave the rank of the answer open."""
    retrieved_tokens: float | None = None
    """What the best configuration retrieves for a question, in the mean."""
    seconds: float = 0.0
    cached_texts: int = 0
    """How many texts were embedded by an earlier run, so that the seconds do not count them."""
    configurations: int = 0


@dataclass(frozen=True)
class OptimizationResult:
    """The tuning of one model. Accuracies, intervals and differences are in percent.

    ``best_accuracy`` with its interval is optimistic: the best of all configurations on the very questions
    that chose it. ``nested_accuracy`` is the honest figure; without folds there is none, and it is NaN. Where
    scores are equal, a question may pass in part, and the number that passed is rounded.
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
    tuning: TuningRecord = field(kw_only=True, repr=False)
    result: Result = field(kw_only=True, repr=False)

    @property
    def gap(self) -> float:
        """By how many points the optimistic accuracy exceeds the honest one."""
        return self.best_accuracy - self.nested_accuracy

    def to_source(self) -> dict[str, Any]:
        """The keys that the source writes, and no others."""
        return {name: getattr(self, name) for name in EMBEDDING_EVAL_KEYS}

    def to_dict(self) -> dict[str, Any]:
        """All fields as plain values: the source's in percent, then the gap, the tuning and the estimate."""
        plain = {each.name: getattr(self, each.name) for each in fields(self)}
        plain |= {"gap": self.gap, "tuning": self.tuning.to_dict(), "result": self.result.to_dict()}
        return {name: None if isinstance(value, float) and isnan(value) else value for name, value in plain.items()}


@dataclass(frozen=True)
class FailedModel:
    """A model without a result, in its place among the results: what it would have told raises the error.

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


def optimization_result(facts: ModelProfile, tuning: TuningRecord, result: Result) -> OptimizationResult:
    """The fields of the source from the record of a tuning."""
    total = len(result.unit_ids)
    best = tuning.trials[tuning.best]
    baseline = tuning.trials[tuning.baseline] if tuning.baseline is not None else best
    reach = wilson_interval(best.value * total, total)
    (estimate,) = result.estimates.values()
    honest = estimate if estimate.metric == METRIC else _nothing(estimate)
    return OptimizationResult(
        model_spec=facts.spec,
        model_name=facts.name,
        dimensions=facts.dimensions,
        best_accuracy=best.value * 100,
        best_params=dict(best.params),
        best_passed=n_passed(best, total),
        total_questions=total,
        baseline_accuracy=baseline.value * 100,
        baseline_passed=n_passed(baseline, total),
        improvement_pct=best.value * 100 - baseline.value * 100,
        ci_lower=reach.low * 100,
        ci_upper=reach.high * 100,
        optimization_time_seconds=facts.seconds,
        configurations_tested=facts.configurations,
        all_results=[_row(trial, total) for trial in tuning.trials[: facts.configurations]],
        nested_accuracy=honest.value * 100,
        nested_ci_lower=honest.interval.low * 100,
        nested_ci_upper=honest.interval.high * 100,
        chance=estimate.chance * 100,
        retrieved_tokens=facts.retrieved_tokens,
        truncated_share=facts.truncated_share,
        tuning=tuning,
        result=result,
    )


def _nothing(estimate: Estimate) -> Estimate:
    """The estimate that there is not, where nothing was nested."""
    return replace(estimate, value=float("nan"), interval=Interval.unknown("no folds"))


def n_passed(trial: Trial, total: int) -> int:
    """How many questions a trial answers."""
    return round(trial.value * total)


def _row(trial: Trial, total: int) -> dict[str, Any]:
    """A configuration as the source lists it, with its chance level and its cost."""
    return {
        **trial.params,
        "passed": n_passed(trial, total),
        "total": total,
        "accuracy": trial.value * 100,
        "chance": None if trial.chance is None else trial.chance * 100,
        "tokens": trial.cost,
        "reachable": None if trial.reachable is None else trial.reachable * 100,
    }
