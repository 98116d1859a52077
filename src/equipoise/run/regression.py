"""Has a run lost against a baseline? A paired question, on the same units, or no answer at all."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf

import numpy as np

from equipoise.checks.base import counted
from equipoise.errors import DuplicateError, PairingError, ParameterError, UnknownNameError
from equipoise.metrics.parse import parse
from equipoise.run.evaluate import compare
from equipoise.run.loss import Gains, Loss
from equipoise.run.measured import with_metrics
from equipoise.run.store import StoredRun
from equipoise.run.verdict import Verdict
from equipoise.stats.family import adjust
from equipoise.stats.numbers import DEFAULT_DECIMALS, figure, p_value, percent, signed
from equipoise.stats.pairing import Pairing, pair_results
from equipoise.stats.result import Estimate, Result
from equipoise.stats.terms import BUDGET, FOLDS, GRID, MATCHER, TOKENIZER
from equipoise.types import Direction

MODES = {
    "ties": "ties",
    "like": "the conventions of",
    MATCHER: "the matcher",
    TOKENIZER: "the tokenizer",
    FOLDS: "folds",
    BUDGET: "a budget of",
    GRID: "the grid",
    **{name: name.replace("_", " ") for name in ("padding", "unseen", "ignore_index")},
    **{name: name.replace("_", " ") for name in ("relation", "filtered", "measure", "mode", "averaging")},
}
"""Settings that decide what a figure means; one that only one of two runs knows differs."""
_PLACES = DEFAULT_DECIMALS + 1


@dataclass(frozen=True)
class Tested:
    """The p of one metric, adjusted for all that were asked about."""

    p: float
    metrics: int

    @property
    def words(self) -> str:
        """That p is adjusted, where it is."""
        return f" adjusted for {self.metrics} metrics" if self.metrics > 1 else ""


def regressions(
    run: StoredRun,
    baseline: StoredRun,
    metrics: Sequence[str],
    asked: Loss,
) -> list[Verdict]:
    """A verdict for every metric, or one that says why there can be none."""
    closed = _different_ways(run, baseline)
    if closed:
        return [Verdict(False, closed, "regression")]
    ours = with_metrics(run.result, metrics)
    try:
        theirs = with_metrics(_renamed(baseline.result, ours.system), list(ours.names))
    except (UnknownNameError, ParameterError) as error:
        return [Verdict(False, f"the baseline cannot be compared: {error.sentence}", "regression")]
    try:
        paired = pair_results([ours, theirs])
        return _by_metric(paired, asked)
    except (PairingError, DuplicateError) as error:
        return [Verdict(False, error.sentence, "regression")]


def _different_ways(run: StoredRun, baseline: StoredRun) -> str:
    """Why two runs cannot be held against each other; empty when they can."""
    if baseline.caution:
        return f"the baseline decides nothing: {baseline.caution}"
    ours, theirs = run.result.settings, baseline.result.settings
    for name, words in MODES.items():
        if ours.get(name) != theirs.get(name):
            how = [_said(each.get(name), name) for each in (ours, theirs)]
            return f"the runs were scored in different ways: {words} {how[0]} here, {how[1]} in the baseline"
    kinds = [type(each.evidence).kind for each in (run.result, baseline.result) if each.evidence is not None]
    if len(set(kinds)) > 1:
        return f"the runs hold different kinds of evidence: {kinds[0]} here, {kinds[1]} in the baseline"
    here, there = (set(each.manifest.datasets.values()) for each in (run, baseline))
    if here and there and here != there:
        return "the runs were scored on different data: the fingerprints of the truth differ"
    return ""


def _said(value: object, name: str) -> str:
    if value is None:
        return "equipoise" if name == "like" else "none"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _renamed(result: Result, system: str) -> Result:
    return replace(result, system=f"{system} (baseline)") if result.system == system else result


def _by_metric(paired: Pairing, asked: Loss) -> list[Verdict]:
    """All means over units are one family; other figures are judged by their own intervals."""
    names = paired.results[0].names
    means = [name for name in names if paired.has_parts(name)]
    asked.checked(len(means))
    gains = {name: _gains(paired, name) for name in means}
    p = [each.p_of_loss(asked) for each in gains.values()]
    adjusted = dict(zip(means, adjust(p, "holm").tolist(), strict=True)) if means else {}
    return [
        _mean_verdict(paired, gains[name], name, Tested(adjusted[name], len(means)), asked)
        if name in adjusted
        else _corpus_verdict(paired, name, asked)
        for name in names
    ]


def _gains(paired: Pairing, metric: str) -> Gains:
    values = paired.per_unit(metric)
    difference = values[:, 0] - values[:, 1]
    better = paired.results[0].estimates[metric].better
    gains = np.asarray(difference if better == Direction.UP else -difference)
    return Gains(gains, paired.weights(metric), paired.clusters, _width(paired, metric))


def _width(paired: Pairing, metric: str) -> float:
    """How far apart two values of a metric can lie; infinite where nobody knows."""
    evidence = paired.results[0].evidence
    try:
        low, high = parse(metric, evidence=None if evidence is None else type(evidence))[0].bounds
    except (UnknownNameError, ParameterError):
        return inf
    return high - low


def _mean_verdict(paired: Pairing, gains: Gains, metric: str, tested: Tested, asked: Loss) -> Verdict:
    ours, theirs = (result.estimates[metric] for result in paired.results)
    undefined = np.isnan(paired.per_unit(metric))
    one_sided = int(np.count_nonzero(undefined[:, 0] != undefined[:, 1]))
    n = int(np.count_nonzero(~undefined.any(axis=1)))
    if one_sided or np.isnan([ours.value, theirs.value]).any():
        units = "1 unit has" if one_sided == 1 else f"{one_sided} units have"
        what = f"{units} a value in one run only" if one_sided else "it has no value"
        return Verdict(False, f"{metric} cannot be compared: {what}", "regression", metric, n=n)
    gain, p = _gain(ours, theirs), tested.p
    lost = _exceeds(gain, asked.margin)
    undecided = _undecided(gains, tested, asked) if lost else ""
    closed = lost and (bool(undecided) or p < asked.alpha)
    judged = f"{'a' if closed else 'no'} significant loss{_beyond(asked)}"
    if undecided:
        judged = f"a loss{_beyond(asked)} that cannot be judged: {undecided}"
    details = [*([] if np.isnan(p) else [f"p {p_value(p)}{tested.words}"]), counted(n, "unit")]
    if not closed and np.isfinite(visible := gains.visible(asked)) and asked.test == "t":
        details.append(f"a true loss of {figure(visible, _PLACES)} would show four times in five")
    sentence = f"{_beside(ours, theirs, gain)}, {judged} ({', '.join(details)})"
    shown = None if np.isnan(p) else p
    return Verdict(not closed, sentence, "regression", metric, ours.value, None, gain, shown, n)


def _undecided(gains: Gains, tested: Tested, asked: Loss) -> str:
    """Why the test could not have called any loss significant; empty when it could."""
    what = counted(gains.blocks, "unit" if gains.clusters is None else "cluster")
    if np.isnan(tested.p):
        return f"{what} without any spread"
    smallest = gains.smallest_p(asked) * tested.metrics
    if smallest < asked.alpha:
        return ""
    return f"{what} cannot give a p below {p_value(min(smallest, 1.0))}"


def _corpus_verdict(paired: Pairing, metric: str, asked: Loss) -> Verdict:
    """A figure that is no mean over units: the end of the interval of its difference decides.

    At twice the level less 1 an interval leaves as much on each side as a one-sided test at the level. Where
    every resample gives the same difference there is no interval, but no doubt about the difference either.
    """
    ours, theirs = (result.estimates[metric] for result in paired.results)
    gain = _gain(ours, theirs)
    found = compare(
        list(paired.results), [metric], level=2 * asked.level - 1, flips=asked.flips, seed=asked.seed
    ).contrasts[0]
    reach = found.interval
    if np.isnan(gain) or (not reach.known and found.reason):
        why = found.reason or reach.reason or "it has no value"
        return Verdict(False, f"{metric} cannot be compared: {why}", "regression", metric, n=found.n)
    units = counted(found.n, "unit")
    if reach.known:
        best = reach.high if ours.better == Direction.UP else -reach.low
        how = f"at best {signed(best, _PLACES)} at {percent(asked.level)}, {units}"
    else:
        best, how = gain, f"{reach.reason}, {units}"
    significant = _exceeds(best, asked.margin)
    judged = f"{'a' if significant else 'no'} significant loss{_beyond(asked)}"
    sentence = f"{_beside(ours, theirs, gain)}, {judged} ({how})"
    return Verdict(not significant, sentence, "regression", metric, ours.value, best, gain, None, found.n)


def _exceeds(gain: float, margin: float) -> bool:
    """Whether a gain is a loss beyond the margin; 0.5 - 0.4 is no more than 0.1."""
    return gain < -margin - 1e-12 * max(1.0, abs(gain))


def _gain(ours: Estimate, theirs: Estimate) -> float:
    difference = ours.value - theirs.value
    return difference if ours.better == Direction.UP else -difference


def _beside(ours: Estimate, theirs: Estimate, gain: float) -> str:
    better = "better" if gain > 0 else "worse"
    values = f"{ours.metric} is {figure(ours.value, _PLACES)} and was {figure(theirs.value, _PLACES)}"
    return f"{values}, {figure(abs(gain), _PLACES)} {better}" if gain else f"{values}, the same"


def _beyond(asked: Loss) -> str:
    return f" beyond the margin of {asked.margin:g}" if asked.margin else ""
