"""Search for the conventions that give a published score: all presets, then one or two changes from one of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from decimal import Decimal, InvalidOperation
from itertools import combinations
from math import isnan
from typing import TYPE_CHECKING, Any

from equipoise.errors import EquipoiseError, ParameterError, UndefinedError
from equipoise.reproduce.attribution import attribute_difference, no_effect_reason, parse_single_metric
from equipoise.reproduce.emulation import RunAndQrels, score_under
from equipoise.reproduce.presets import CONVENTIONS, EQUIPOISE, PRESETS, Preset, Value, affects, get_preset

if TYPE_CHECKING:
    from equipoise.metrics.base import Metric
    from equipoise.reproduce.difference import ScoreDifference

SLACK = 1e-12

Changes = tuple[tuple[str, Value], ...]
"""Conventions and what they are changed to."""

ALTERNATIVES: dict[str, tuple[Value, ...]] = {
    "ties": ("expected", "id_down", "id_up", "input", "quicksort", "optimistic", "pessimistic"),
    "scores": ("float64", "float32"),
    "missing": ("zero", "left_out"),
    "empty": ("left_out", "zero"),
    "own_id": ("kept", "dropped"),
    "unretrieved": ("counted", "unseen"),
    "nonpositive": ("kept", "lost"),
    "grades": ("kept", "whole", "binary"),
    "norm": ("min", "R", "hits"),
    "gain": ("linear", "exp"),
    "depth": (None, 10, 100, 1000),
}
"""Alternatives to the conventions of a preset; rounding is covered by the printed digits.

Grades of the qrels are added as smallest relevant grades. Every other depth is tried alone, not in pairs.
"""

DEEPEST = 1000
"""The largest depth of the lists that is tried."""


@dataclass(frozen=True)
class ReportedScore:
    """A printed score: all values between ``low`` and ``high`` are printed like this."""

    text: str
    low: float
    high: float
    percent: bool

    @classmethod
    def of(cls, text: str) -> ReportedScore:
        """Read ``0.4123``, or ``41.23`` in percent."""
        try:
            number = Decimal(text.strip().rstrip("%").strip())
        except InvalidOperation as error:
            raise ParameterError(
                f"the published score {text!r} is not a number", hint="write it as printed: 0.4123"
            ) from error
        percent = text.strip().endswith("%") or (number.is_finite() and number > 1)
        if not number.is_finite() or not 0 <= number <= (100 if percent else 1):
            raise ParameterError(
                f"the published score {text} is neither a fraction nor a percentage",
                hint="ranking metrics are between 0 and 1",
            )
        half = Decimal(5).scaleb(int(number.as_tuple().exponent) - 1)
        scale = 100 if percent else 1
        low, high = float((number - half) / scale), float((number + half) / scale)
        return cls(text.strip(), max(low, 0.0), min(high, 1.0), percent)  # ranking metrics are between 0 and 1

    def holds(self, value: float) -> bool:
        """Whether a value would be printed so; at the very ends it may be."""
        return self.low - SLACK <= value <= self.high + SLACK

    def distance(self, value: float) -> float:
        """The distance of a value from the range."""
        return max(self.low - value, value - self.high, 0.0)


@dataclass(frozen=True)
class ConventionMatch:
    """A preset, the changes to it, and the resulting score."""

    preset: str
    changes: Changes
    value: float
    n: int

    @property
    def says(self) -> list[str]:
        """The changes in words."""
        return [CONVENTIONS[name].describe(value) for name, value in self.changes]


@dataclass(frozen=True)
class ConventionSearch:
    """The conventions tried to reproduce a published score, and those that do.

    ``attribute_difference`` leads from the requested preset to the first set of conventions that gives the
    score, or else to the nearest; None if that is the preset itself.
    """

    metric: str
    printed: ReportedScore
    base: str
    matches: tuple[ConventionMatch, ...]
    nearest: ConventionMatch
    tried: int
    figures: int
    skipped: dict[str, str]
    difference: ScoreDifference | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        content = asdict(replace(self, difference=None))
        content["difference"] = None if self.difference is None else self.difference.to_dict()
        for entry, match in zip(content["matches"], self.matches, strict=True):
            entry["says"] = match.says
        content["nearest"]["says"] = self.nearest.says
        return content


def explain_published(
    run: Any,
    qrels: Any,
    published: str | float,
    metric: str | Metric[Any] = "nDCG@10",
    *,
    like: str | Preset = EQUIPOISE,
) -> ConventionSearch:
    """Search for the conventions that give a published score for this run.

    Tried are all presets, then every single and every double change of a convention of ``like``. Pairs of
    which one is enough, and changes that do nothing, are not listed.
    """
    return search_conventions(
        RunAndQrels.of(run, qrels),
        parse_single_metric(metric),
        ReportedScore.of(str(published)),
        get_preset(like),
    )


def search_conventions(
    inputs: RunAndQrels, metric: Metric[Any], printed: ReportedScore, base: Preset
) -> ConventionSearch:
    """``explain_published`` on what has been read."""
    base.rules(metric)
    presets, skipped = _presets(inputs, metric)
    changed = _changed_scores(inputs, metric, base)
    candidates = [*presets, *changed.values()]
    matches = [preset for preset in presets if printed.holds(preset.value)]
    matches += [
        score
        for changes, score in changed.items()
        if printed.holds(score.value) and not _has_no_effect(changes, changed, base, presets, printed)
    ]
    nearest = min(candidates, key=lambda score: printed.distance(score.value))
    return ConventionSearch(
        metric=metric.name,
        printed=printed,
        base=base.name,
        matches=tuple(matches),
        nearest=nearest,
        tried=len(candidates),
        figures=len({round(score.value, 12) for score in candidates}),
        skipped=skipped,
        difference=_difference_from_base(matches[0] if matches else nearest, inputs, metric, base),
    )


def _difference_from_base(
    match: ConventionMatch, inputs: RunAndQrels, metric: Metric[Any], base: Preset
) -> ScoreDifference | None:
    """The difference between the requested preset and the conventions that give the score."""
    if match.preset == base.name and not match.changes:
        return None
    preset = PRESETS[match.preset]
    if match.changes:
        rules = preset.rules(metric).with_values(dict(match.changes))
        preset = replace(preset, name=f"{match.preset} with other conventions", conventions=rules, exceptions={})
    try:
        return attribute_difference(inputs, metric, base, preset)
    except UndefinedError:  # as the preset itself scores, no query may be left
        return None


def _has_no_effect(
    changes: Changes,
    changed: Mapping[Changes, ConventionMatch],
    base: Preset,
    presets: list[ConventionMatch],
    printed: ReportedScore,
) -> bool:
    """Whether fewer of the changes are enough, or one of them does nothing."""
    single_changes = [changed[(change,)] for change in changes if len(changes) > 1 and (change,) in changed]
    unchanged = [preset for preset in presets if preset.preset == base.name]
    if len(changes) > 1 and any(printed.holds(score.value) for score in single_changes):
        return True
    return any(score.value == changed[changes].value for score in [*single_changes, *unchanged])


def _presets(inputs: RunAndQrels, metric: Metric[Any]) -> tuple[list[ConventionMatch], dict[str, str]]:
    candidates, skipped = [], {}
    for preset in PRESETS.values():
        try:
            candidate = _candidate(inputs, metric, preset, ())
        except EquipoiseError as error:
            skipped[preset.name] = error.message
            continue
        if candidate is not None:
            candidates.append(candidate)
    return candidates, skipped


def _changed_scores(inputs: RunAndQrels, metric: Metric[Any], base: Preset) -> dict[Changes, ConventionMatch]:
    """The scores after single changes of relevant conventions, and after pairs of them."""
    rules = base.rules(metric)
    grades = (1, *sorted({int(gain) for gain in inputs.gains if gain > 1}))
    singles = [
        (name, value)
        for name, values in {**ALTERNATIVES, "min_grade": grades}.items()
        if affects(name, metric)
        for value in values
        if value != rules[name] and not no_effect_reason(name, (rules[name], value), inputs, metric)
    ]
    pairs = [pair for pair in combinations(singles, 2) if pair[0][0] != pair[1][0]]
    single_changes: list[Changes] = [
        *((single,) for single in singles),
        *((("depth", depth),) for depth in _depths(inputs, metric)),
    ]
    figures = {changes: _candidate(inputs, metric, base, changes) for changes in [*single_changes, *pairs]}
    return {changes: score for changes, score in figures.items() if score is not None}


def _depths(inputs: RunAndQrels, metric: Metric[Any]) -> list[int]:
    """The depths that can change the metric and are not among the alternatives."""
    cutoff = getattr(metric, "k", None)
    longest = min(max(map(len, inputs.run.values()), default=0), DEEPEST, (cutoff or DEEPEST + 1) - 1)
    return [depth for depth in range(1, longest + 1) if depth not in ALTERNATIVES["depth"]]


def _candidate(inputs: RunAndQrels, metric: Metric[Any], preset: Preset, changes: Changes) -> ConventionMatch | None:
    figure = score_under(inputs, metric, preset.rules(metric).with_values(dict(changes)))
    return None if isnan(figure.value) else ConventionMatch(preset.name, changes, figure.value, figure.n)
