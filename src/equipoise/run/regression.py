"""Has a run lost against a baseline? A paired question, on the same units, or no answer at all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from equipoise.errors import DuplicateError, PairingError, ParameterError, UnknownNameError
from equipoise.run.evaluate import compare
from equipoise.run.measured import with_metrics
from equipoise.run.store import StoredRun
from equipoise.run.verdict import Verdict
from equipoise.stats.family import adjust
from equipoise.stats.numbers import DEFAULT_DECIMALS, figure, p_value, percent, signed
from equipoise.stats.paired import run_test
from equipoise.stats.pairing import Pairing, pair_results
from equipoise.stats.result import Estimate, Result
from equipoise.types import Direction, Floats

MODES = {"ties": "ties", "like": "the conventions of"}
"""Settings that decide what a figure means."""
_PLACES = DEFAULT_DECIMALS + 1


@dataclass(frozen=True)
class Loss:
    """What is asked of a pair of results: how much may be lost, and how sure a loss must be."""

    margin: float
    level: float
    flips: int
    seed: int

    @property
    def alpha(self) -> float:
        """The p below which a loss is significant."""
        return round(1 - self.level, 12)


def regressions(
    run: StoredRun,
    baseline: StoredRun,
    metrics: Sequence[str],
    *,
    margin: float,
    level: float,
    flips: int = 10_000,
    seed: int = 0,
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
        asked = Loss(margin, level, flips, seed)
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
            return (
                f"the runs were scored in different ways: {words} {ours.get(name) or 'equipoise'} here, "
                f"{theirs.get(name) or 'equipoise'} in the baseline"
            )
    kinds = [type(each.evidence).kind for each in (run.result, baseline.result) if each.evidence is not None]
    if len(set(kinds)) > 1:
        return f"the runs hold different kinds of evidence: {kinds[0]} here, {kinds[1]} in the baseline"
    here, there = (set(each.manifest.datasets.values()) for each in (run, baseline))
    if here and there and here != there:
        return "the runs were scored on different data: the fingerprints of the truth differ"
    return ""


def _renamed(result: Result, system: str) -> Result:
    return replace(result, system=f"{system} (baseline)") if result.system == system else result


def _by_metric(paired: Pairing, asked: Loss) -> list[Verdict]:
    names = paired.results[0].names
    means = [name for name in names if paired.has_parts(name)]
    p = {name: _p_of(paired, name, asked) for name in means}
    adjusted = dict(zip(means, adjust(list(p.values()), "holm").tolist(), strict=True)) if means else {}
    return [
        _mean_verdict(paired, name, adjusted[name], asked)
        if name in adjusted
        else _corpus_verdict(paired, name, asked)
        for name in names
    ]


def _gains(paired: Pairing, metric: str) -> Floats:
    """Unit by unit, by how much the run is better; negative where it is worse."""
    values = paired.per_unit(metric)
    difference = values[:, 0] - values[:, 1]
    better = paired.results[0].estimates[metric].better
    return np.asarray(difference if better == Direction.UP else -difference)


def _p_of(paired: Pairing, metric: str, asked: Loss) -> float:
    """How likely so large a loss is, if the true one does not exceed the margin."""
    found = run_test(
        "randomisation",
        _gains(paired, metric)[:, np.newaxis],
        weights=paired.weights(metric),
        clusters=paired.clusters,
        alternative="less",
        margin=-asked.margin,
        flips=asked.flips,
        rng=np.random.default_rng([asked.seed, 0]),
    )
    return float(found[0])


def _mean_verdict(paired: Pairing, metric: str, p: float, asked: Loss) -> Verdict:
    ours, theirs = (result.estimates[metric] for result in paired.results)
    undefined = np.isnan(paired.per_unit(metric))
    one_sided = int(np.count_nonzero(undefined[:, 0] != undefined[:, 1]))
    n = int(np.count_nonzero(~undefined.any(axis=1)))
    if one_sided or np.isnan([ours.value, theirs.value, p]).any():
        units = "1 unit has" if one_sided == 1 else f"{one_sided} units have"
        what = f"{units} a value in one run only" if one_sided else "it has no value"
        return Verdict(False, f"{metric} cannot be compared: {what}", "regression", metric, n=n)
    gain = _gain(ours, theirs)
    significant = p < asked.alpha and gain < -asked.margin
    count = f"{n} unit{'' if n == 1 else 's'}"
    sentence = f"{_beside(ours, theirs, gain)}, {_judged(significant, asked)} (p {p_value(p)}, {count})"
    return Verdict(not significant, sentence, "regression", metric, ours.value, None, gain, p, n)


def _corpus_verdict(paired: Pairing, metric: str, asked: Loss) -> Verdict:
    """A figure that is no mean over units: the end of the interval of its difference decides.

    At twice the level less 1 an interval leaves as much on each side as a one-sided test at the level.
    """
    ours, theirs = (result.estimates[metric] for result in paired.results)
    gain = _gain(ours, theirs)
    found = compare(
        list(paired.results), [metric], level=2 * asked.level - 1, flips=asked.flips, seed=asked.seed
    ).contrasts[0]
    reach = found.interval
    if not reach.known or np.isnan(gain):
        why = reach.reason or "it has no value"
        return Verdict(False, f"{metric} cannot be compared: {why}", "regression", metric, n=found.n)
    best = reach.high if ours.better == Direction.UP else -reach.low
    significant = best < -asked.margin
    how = f"at best {signed(best, _PLACES)} at {percent(asked.level)}, {found.n} units"
    sentence = f"{_beside(ours, theirs, gain)}, {_judged(significant, asked)} ({how})"
    return Verdict(not significant, sentence, "regression", metric, ours.value, best, gain, None, found.n)


def _gain(ours: Estimate, theirs: Estimate) -> float:
    difference = ours.value - theirs.value
    return difference if ours.better == Direction.UP else -difference


def _beside(ours: Estimate, theirs: Estimate, gain: float) -> str:
    better = "better" if gain > 0 else "worse"
    values = f"{ours.metric} is {figure(ours.value, _PLACES)} and was {figure(theirs.value, _PLACES)}"
    return f"{values}, {figure(abs(gain), _PLACES)} {better}" if gain else f"{values}, the same"


def _judged(significant: bool, asked: Loss) -> str:
    beyond = f" beyond the margin of {asked.margin:g}" if asked.margin else ""
    return f"a significant loss{beyond}" if significant else f"no significant loss{beyond}"
