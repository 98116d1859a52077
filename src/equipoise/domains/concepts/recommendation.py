"""Which model to use for what: only models that are shown to be better than chance.

A formula that adds up cosines can rank a model of pure noise first: collapsed vectors make every pair look similar.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isnan, nan
from typing import TYPE_CHECKING

from equipoise.domains.concepts.comparison import STRONG_EVIDENCE
from equipoise.domains.concepts.scores import COMPOSITE, CONCEPT_SCORES, GENERAL_USE
from equipoise.stats.formatting import format_interval, format_p, format_value, shared_decimals

if TYPE_CHECKING:
    from equipoise.domains.concepts.comparison import ScoreComparison
    from equipoise.stats.result import Estimate

SMALL = 10.0
"""Smaller values have two decimals at least: a correlation is never 1.0."""
SMALLEST_WITH_THREE_DECIMALS = 0.1


@dataclass(frozen=True, slots=True)
class Recommendation:
    """The recommended models for a kind of work.

    ``models`` are the best in the ground-truth ``metric`` and those that are not significantly worse; none if no
    model can be recommended, and ``message`` then says why. ``value`` is the metric of the first of them with interval
    and chance level, ``test`` the result of the paired test. ``formula`` names the model that the ``score`` would
    select, if another, and why it is not recommended. ``excluded`` are the models that cannot be recommended, with
    reasons.
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
    def text(self) -> str:
        """Everything in one sentence."""
        parts = (f"{self.names}: {self.value}", self.test) if self.models else (f"no recommendation. {self.message}",)
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
    return tuple(
        _advice(use, by_score[score], collapsed)
        for score, use in USES.items()
        if score in by_score and by_score[score].truth
    )


def _advice(use: str, comparison: ScoreComparison, collapsed: Collection[str]) -> Recommendation:
    estimates = comparison.ground_truth
    measured = sorted(
        (name for name, estimate in estimates.items() if not isnan(estimate.value)),
        key=lambda name: -estimates[name].value,
    )
    reasons = {name: _reason_against(name, comparison, collapsed) for name in measured}
    excluded = {name: reason for name, reason in reasons.items() if reason}
    eligible = [name for name in measured if not reasons[name]]
    no_advice = Recommendation(use, comparison.score, comparison.truth, excluded=excluded)
    if not eligible:
        return replace(
            no_advice,
            message=_no_model(comparison, measured, excluded, collapsed),
            formula=_formula_pick(comparison, (), excluded, best=next(iter(measured), "")),
        )
    leader = eligible[0]
    tied = [name for name in eligible[1:] if not comparison.is_better(leader, name)]
    return replace(
        no_advice,
        models=(leader, *tied),
        value=describe(comparison.truth, estimates[leader]),
        test=_test(comparison, leader, tied, measured),
        formula=_formula_pick(comparison, (leader, *tied), excluded),
    )


def _reason_against(name: str, comparison: ScoreComparison, collapsed: Collection[str]) -> str:
    """Why a model cannot be the answer; empty if it can."""
    if name in collapsed:
        return "its vectors are collapsed (EQ310)"
    if not comparison.can_be_recommended(name):
        value, chance = _value_and_chance(comparison.ground_truth[name])
        return f"its {comparison.truth} {value} {_against_chance(name, comparison, chance)}"
    score = comparison.estimates[name]
    # The composite adds a quality score whose random baseline is above every trained model.
    if comparison.score != COMPOSITE and score.value <= score.chance:
        places = decimals([score])
        value, chance = format_value(score.value, places), format_value(score.chance, places)
        return f"its {comparison.score} {value} does not exceed its chance level {chance}"
    return ""


def _against_chance(name: str, comparison: ScoreComparison, chance: str) -> str:
    """That a metric is not far enough above chance, as a clause without its subject."""
    p_value = comparison.chance_p.get(name, nan)
    p = f"adjusted p {format_p(p_value)}"
    if not p_value < comparison.alpha:
        return f"is not significantly above chance ({chance}, {p})"
    if not comparison.exceeds_chance(name):
        return f"does not exceed its chance level {chance}"
    strong = format_p(STRONG_EVIDENCE * comparison.alpha)
    return (
        f"is above chance ({chance}, {p}), but no second metric is: a single one must have an adjusted p below {strong}"
    )


def _no_model(
    comparison: ScoreComparison, measured: Sequence[str], excluded: dict[str, str], collapsed: Collection[str]
) -> str:
    """Why no model can be recommended."""
    if not measured:
        return f"{comparison.truth or comparison.score} is undefined for every model"
    best = measured[0]
    if best not in collapsed and not comparison.can_be_recommended(best):
        value, chance = _value_and_chance(comparison.ground_truth[best])
        return f"The highest {comparison.truth} ({best}, {value}) {_against_chance(best, comparison, chance)}"
    others = "; no other model qualifies" if len(measured) > 1 else ""
    return f"{best} has the highest {comparison.truth}, but {excluded[best]}{others}"


def _test(comparison: ScoreComparison, leader: str, tied: Sequence[str], measured: Sequence[str]) -> str:
    """The result of the paired test of the leader and the other models."""
    p_name = "adjusted p" if len(comparison.truth_contrasts) > 1 else "p"
    if len(measured) == 1:
        return "the only model measured"
    if tied:
        known = _p_values(comparison, leader, tied)
        least = f", {p_name} {'' if len(known) == 1 else 'at least '}{format_p(min(known))}" if known else ""
        return f"not significantly different{least}"
    better = [name for name in measured if name != leader and comparison.is_better(leader, name)]
    if not better:
        return "no other model can be recommended"
    others = f"{len(better)} of {len(measured) - 1} others" if len(better) < len(measured) - 1 else "all others"
    others = better[0] if len(measured) == 2 else others
    return f"significantly better than {others}, {p_name} {format_p(max(_p_values(comparison, leader, better)))}"


def _p_values(comparison: ScoreComparison, leader: str, others: Sequence[str]) -> list[float]:
    contrasts = [comparison.truth_contrast(leader, name) for name in others]
    return [contrast.adjusted for contrast in contrasts if contrast is not None and not isnan(contrast.adjusted)]


def _formula_pick(
    comparison: ScoreComparison, recommended: Sequence[str], excluded: Mapping[str, str], best: str = ""
) -> str:
    """The model that the score would select, and why it is not recommended; empty if it is the recommended one.

    If no model is recommended, the message gives the reason against ``best``, which is not repeated.
    """
    leader = comparison.leader
    if leader is None or leader in recommended[:1]:
        return ""
    score = comparison.estimates[leader]
    sentence = f"{comparison.score} would recommend {leader} ({format_value(score.value, decimals([score]))})"
    if leader in recommended:
        return f"{sentence}, which is not significantly worse"
    if leader == best:
        return f"{sentence}, which is rejected for the same reason"
    if leader in excluded:
        reason = excluded[leader]
    elif isnan(comparison.ground_truth[leader].value):
        reason = f"its {comparison.truth} is undefined"
    else:
        reason = f"its {comparison.truth} is significantly lower than that of {recommended[0]}"
    return f"{sentence}, which is rejected because {reason}"


def decimals(estimates: Sequence[Estimate]) -> int:
    """Decimals for values next to each other: two or three, and more only if all values are small."""
    places = shared_decimals(estimate.interval for estimate in estimates)
    largest = max((abs(estimate.value) for estimate in estimates if not isnan(estimate.value)), default=0.0)
    if largest >= SMALL:
        return places
    return max(places, 2) if largest < SMALLEST_WITH_THREE_DECIMALS else min(max(places, 2), 3)


def describe(metric: str, estimate: Estimate) -> str:
    """A metric with its interval and its chance level: ``ARI 0.13 [0.05, 0.22], chance 0.00``."""
    value, chance = _value_and_chance(estimate)
    return f"{metric} {value}, chance {chance}"


def _value_and_chance(estimate: Estimate) -> tuple[str, str]:
    """The value with its interval, and the chance level, with equal decimals."""
    places = decimals([estimate])
    interval = f" {format_interval(estimate.interval, places)}" if estimate.interval.known else ""
    return f"{format_value(estimate.value, places)}{interval}", format_value(estimate.chance, places)
