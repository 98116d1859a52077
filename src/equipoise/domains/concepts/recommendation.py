"""Which model to use for what: only models that are shown to be better than chance.

A formula that adds up cosines can rank a model of pure noise first: collapsed vectors make every pair look similar.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isnan
from typing import TYPE_CHECKING

from equipoise.domains.concepts.comparison import ScoreComparison
from equipoise.domains.concepts.scores import COMPOSITE, CONCEPT_SCORES, GENERAL_USE
from equipoise.stats.formatting import format_interval, format_p, format_value, shared_decimals

if TYPE_CHECKING:
    from equipoise.stats.result import Estimate


@dataclass(frozen=True, slots=True)
class Recommendation:
    """What to use for a kind of work.

    ``models`` are the best in the ground-truth ``metric`` and those that are not significantly worse; none if no
    model can be recommended, and ``message`` then says why. ``value`` is the metric of the first of them with interval
    and chance level, ``test`` the result of the paired test. ``formula`` says which model the ``score`` would have
    picked, if another, and why it is not taken. ``excluded`` has the models that cannot be recommended, with reasons.
    """

    use: str
    score: str
    metric: str
    models: tuple[str, ...] = ()
    message: str = ""
    value: str = ""
    test: str = ""
    formula: str = ""
    excluded: Mapping[str, str] = field(default_factory=dict)

    @property
    def names(self) -> str:
        """The recommended models in words."""
        return join_with(self.models, "or") if self.models else "none"

    @property
    def short(self) -> str:
        """The models, the test and what the score would have picked; the table has the values."""
        text = f"{self.names} ({self.test})" if self.models else self.message
        return f"{text}; {self.formula}" if self.formula else text

    @property
    def text(self) -> str:
        """Everything in one sentence."""
        parts = (f"{self.names}: {self.value}", self.test) if self.models else (self.message,)
        return "; ".join(filter(None, (*parts, self.formula)))


def join_with(names: Sequence[str], word: str) -> str:
    """Names joined with commas and a conjunction.

    >>> join_with(["a", "b", "c"], "or"), join_with(["a"], "and")
    ('a, b or c', 'a')
    """
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} {word} {names[-1]}"


USES = {COMPOSITE: GENERAL_USE} | {score.name: score.use for score in CONCEPT_SCORES.values() if score.use}
"""What each score decides."""


def recommend(
    score_comparisons: Sequence[ScoreComparison], collapsed: Collection[str] = ()
) -> tuple[Recommendation, ...]:
    """For every use, the model with the best ground-truth metric, and all that are not significantly worse.

    A model of ``collapsed``, one at chance, and one whose score does not exceed its chance level are left out.
    """
    by_score = {comparison.score: comparison for comparison in score_comparisons}
    return tuple(_advice(use, by_score[score], collapsed) for score, use in USES.items() if score in by_score)


def _advice(use: str, comparison: ScoreComparison, collapsed: Collection[str]) -> Recommendation:
    estimates = comparison.ground_truth
    measured = sorted(
        (name for name, estimate in estimates.items() if not isnan(estimate.value)),
        key=lambda name: -estimates[name].value,
    )
    reasons = {name: _reason_against(name, comparison, collapsed) for name in measured}
    excluded = {name: reason for name, reason in reasons.items() if reason}
    eligible = [name for name in measured if not reasons[name]]
    blank = Recommendation(use, comparison.score, comparison.truth, excluded=excluded)
    if not eligible:
        return replace(blank, message=_no_model(comparison, measured, excluded))
    leader = eligible[0]
    tied = [name for name in eligible[1:] if not comparison.is_better(leader, name)]
    return replace(
        blank,
        models=(leader, *tied),
        value=describe(comparison.truth, estimates[leader]),
        test=_test(comparison, leader, tied, measured),
        formula=_formula_pick(comparison, (leader, *tied), excluded),
    )


def _reason_against(name: str, comparison: ScoreComparison, collapsed: Collection[str]) -> str:
    """Why a model cannot be the answer; empty if it can."""
    if name in collapsed:
        return "its vectors are collapsed (EQ310)"
    truth = comparison.reference_metrics[comparison.truth][name]
    if not comparison.above_chance(comparison.truth, name):
        return f"not above chance: {describe(comparison.truth, truth)}"
    score = comparison.estimates[name]
    # The composite adds a quality score whose random baseline is above every trained model.
    if comparison.score != COMPOSITE and score.value <= score.chance:
        places = shared_decimals([score.interval])
        value, chance = format_value(score.value, places), format_value(score.chance, places)
        return f"its {comparison.score} {value} does not exceed its chance level {chance}"
    return ""


def _no_model(comparison: ScoreComparison, measured: Sequence[str], excluded: dict[str, str]) -> str:
    if not measured:
        return f"no model: {comparison.truth or comparison.score} is undefined for every model"
    best = measured[0]
    return f"no model: the highest is {best}, {excluded[best]}"


def _test(comparison: ScoreComparison, leader: str, tied: Sequence[str], measured: Sequence[str]) -> str:
    """What the paired test says about the leader and the other models."""
    if len(measured) == 1:
        return "the only model measured"
    if tied:
        known = _p_values(comparison, leader, tied)
        least = f", adjusted p {'' if len(known) == 1 else 'at least '}{format_p(min(known))}" if known else ""
        return f"not significantly different{least}"
    better = [name for name in measured if name != leader and comparison.is_better(leader, name)]
    if not better:
        return "no other model can be recommended"
    others = f"{len(better)} of {len(measured) - 1} others" if len(better) < len(measured) - 1 else "all others"
    others = better[0] if len(measured) == 2 else others
    return f"significantly better than {others}, adjusted p {format_p(max(_p_values(comparison, leader, better)))}"


def _p_values(comparison: ScoreComparison, leader: str, others: Sequence[str]) -> list[float]:
    contrasts = [comparison.truth_contrast(leader, name) for name in others]
    return [contrast.adjusted for contrast in contrasts if contrast is not None and not isnan(contrast.adjusted)]


def _formula_pick(comparison: ScoreComparison, recommended: Sequence[str], excluded: dict[str, str]) -> str:
    """What the score would have picked, and why it is not taken; empty if it picks the same model."""
    pick = comparison.leader
    if pick is None or pick == recommended[0]:
        return ""
    score = comparison.estimates[pick]
    value = format_value(score.value, shared_decimals([score.interval]))
    picked = f"{comparison.score} would recommend {pick} ({value})"
    if pick in recommended:
        return f"{picked}, which is not significantly worse"
    worse = f"its {comparison.truth} is significantly lower than that of {recommended[0]}"
    return f"{picked}, which is rejected: {excluded.get(pick, worse)}"


def describe(metric: str, estimate: Estimate) -> str:
    """A metric with its interval and its chance level: ``ARI 0.13 [0.05, 0.22], chance 0.00``."""
    places = max(shared_decimals([estimate.interval]), 2)
    value, interval = format_value(estimate.value, places), format_interval(estimate.interval, places)
    return f"{metric} {value} {interval}, chance {format_value(estimate.chance, places)}"
