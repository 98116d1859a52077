"""The result of a comparison in plain sentences: which system is best, and what the data do not decide."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import floor, isnan, log10
from typing import TYPE_CHECKING

from equipoise.stats.formatting import (
    ScoreFormat,
    about,
    capitalised,
    format_interval,
    format_p,
    format_percent,
    format_value,
    metric_in_sentence,
)
from equipoise.stats.intervals import Interval
from equipoise.stats.power import POWER, REALISTIC
from equipoise.types import Direction

if TYPE_CHECKING:
    from equipoise.stats.comparison import Comparison, Contrast
    from equipoise.stats.result import Estimate, Result

# Words and numbers of the sentences.

UNIT_NOUN = "unit_noun"
"""The key in the settings of a result for what its units are called: ``question``, ``node``."""

DISPLAY = "display"
"""The key in the settings of a result for its presentation: ``system`` and ``cluster`` are nouns, ``percent`` maps the
metrics that are printed in percent to the names under which they are."""

EVIDENCE_NOUNS = {"ranking": "query", "pairs": "pair", "labels": "example", "sets": "document", "space": "item"}
"""The default noun of a unit by the kind of evidence."""

MAX_NAMES = 4


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The nouns of unit, system, metric and cluster, and whether scores are printed in percent.

    ``data`` is the name of the data, which a sentence then has instead of the number of units.
    """

    unit: str = "unit"
    system: str = "system"
    metric: str = ""
    percent: bool = False
    cluster: str = "cluster"
    data: str = ""

    @classmethod
    def of(cls, results: Sequence[Result], metric: str) -> Vocabulary:
        """The words that the settings of these results record."""
        percent = results[0].settings.get(DISPLAY, {}).get("percent", {})
        return replace(cls.nouns(results), metric=percent.get(metric, metric), percent=metric in percent)

    @classmethod
    def nouns(cls, results: Sequence[Result]) -> Vocabulary:
        """What the units and clusters of these results are called; scores are fractions."""
        display = results[0].settings.get(DISPLAY, {})
        return cls(
            unit_noun(results), system=display.get("system", "system"), cluster=display.get("cluster", "cluster")
        )

    @property
    def plural(self) -> str:
        """The noun for several units."""
        return plural(self.unit)

    def units(self, n: int) -> str:
        """A number of units with their noun.

        >>> Vocabulary("query").units(1_200), Vocabulary("node").units(1)
        ('1,200 queries', '1 node')
        """
        return f"{n:,} {self.unit if n == 1 else plural(self.unit)}"

    def size(self, n: int, n_clusters: int | None) -> str:
        """A number of units, and of clusters if there are any.

        >>> Vocabulary("query").size(9, 3), Vocabulary("visit", cluster="user").size(40, 1)
        ('9 queries in 3 clusters', '40 visits of 1 user')
        >>> Vocabulary("node", cluster="subtree").size(122, 30)
        '122 nodes in 30 subtrees'
        """
        if n_clusters is None:
            return self.units(n)
        preposition = "in" if self.cluster in ("cluster", "branch", "subtree") else "of"
        noun = self.cluster if n_clusters == 1 else plural(self.cluster)
        return f"{self.units(n)} {preposition} {n_clusters:,} {noun}"


def plural(noun: str) -> str:
    """The plural of a noun.

    >>> plural("query"), plural("day"), plural("branch"), plural("class"), plural("document")
    ('queries', 'days', 'branches', 'classes', 'documents')
    """
    if noun.endswith("y") and noun[-2:-1] not in "aeiou":
        return f"{noun[:-1]}ies"
    return f"{noun}es" if noun.endswith(("s", "x", "z", "ch", "sh")) else f"{noun}s"


def unit_noun(results: Sequence[Result]) -> str:
    """What the units of these results are called; ``unit`` if it is not known or not the same for all."""
    nouns = set()
    for result in results:
        of_evidence = "unit" if result.evidence is None else EVIDENCE_NOUNS.get(result.evidence.kind, "unit")
        nouns.add(str(result.settings.get(UNIT_NOUN) or of_evidence))
    return nouns.pop() if len(nouns) == 1 else "unit"


def score_format(comparison: Comparison, words: Vocabulary) -> ScoreFormat:
    """The format of the scores on the primary metric."""
    intervals = [comparison.estimates[name][comparison.primary].interval for name in comparison.systems]
    return ScoreFormat.of(intervals, percent=words.percent)


# Comparisons that show nothing: every system is at the chance level, or every system is at the ceiling.

UNEQUAL_TUNING = "EQ203"
"""The finding that systems were tuned with unequal budgets, which every verdict mentions."""
NOT_ALIKE = f"They were not tuned on equal terms ({UNEQUAL_TUNING}), so a difference may be due to the tuning."
PARTIAL_RUN = "EQ206"
"""The finding that a run is not complete."""
INCOMPLETE_MARK = "*"
"""Appended to the name of a system whose run is incomplete; a shortened name keeps its end."""
UNKNOWN_CANDIDATES = "EQ110"
"""The finding that the number of candidates is unknown."""
CEILING_MARGIN = 0.02
"""Fractions above 1 minus this leave no room for a better system."""
HARDER = "Make the task harder, for example with harder test data, more candidates or a smaller cutoff."
MORE = "Use more {units}, or a task with a lower chance level: a smaller cutoff or more candidates."
_ROUNDING = 1e-9


def why_uninformative(comparison: Comparison, words: Vocabulary) -> str:
    """Why the primary metric cannot compare these systems, and what to change; empty if it can."""
    estimates = [comparison.estimates[name][comparison.primary] for name in comparison.systems]
    estimates = [estimate for estimate in estimates if not isnan(estimate.value)]
    if len(estimates) < 2:
        return ""
    metric, shown = _metric(comparison, words), score_format(comparison, words)
    values = shown.range([estimate.value for estimate in estimates])
    more = MORE.format(units=plural(words.unit))
    chance_levels = [estimate.chance for estimate in estimates]
    if all(_is_fraction(estimate) and estimate.chance >= 1.0 - _ROUNDING for estimate in estimates):
        return (
            f"This setup cannot compare the {words.system}s: a random choice has the maximum {metric} of "
            f"{shown.range(chance_levels)}. {HARDER}"
        )
    if all(_is_fraction(estimate) and 1.0 - CEILING_MARGIN <= estimate.value <= 1.0 for estimate in estimates):
        return (
            f"This setup cannot compare the {words.system}s: all of them are at the ceiling of {metric} ({values}), "
            f"where a better {words.system} could not score higher. {HARDER}"
        )
    # A chance level of 0 is the floor of a metric: any score above it is above chance. A chance level that is only a
    # bound, because the number of candidates is unknown, decides nothing.
    is_bound = any(finding.code == UNKNOWN_CANDIDATES for finding in comparison.findings)
    known = not is_bound and all(level != 0.0 and not isnan(level) for level in chance_levels)
    if known and not any(_above_chance(estimate) for estimate in estimates):
        n = max(estimate.n for estimate in estimates)
        return (
            f"No {words.system} is significantly better than chance on {metric} ({values}, chance "
            f"{shown.range(chance_levels)}) on {words.units(n)}, so this setup cannot compare them. {more}"
        )
    return ""


def _is_fraction(estimate: Estimate) -> bool:
    return estimate.better == Direction.UP and estimate.unit == "fraction"


def _above_chance(estimate: Estimate) -> bool:
    """Whether the interval is on the better side of chance; without an interval, the value."""
    interval = estimate.interval
    low, high = (interval.low, interval.high) if interval.known else (estimate.value, estimate.value)
    return low > estimate.chance if estimate.better == Direction.UP else high < estimate.chance


# The decision.


def verdict_text(comparison: Comparison, words: Vocabulary) -> str:
    """The decision, what is not decided, and how many units would decide it."""
    sentences = " ".join(filter(None, (decision(comparison, words), sample_size(comparison, words))))
    return _with_caveats(comparison, sentences, why_uninformative(comparison, words))


def headline(comparison: Comparison, words: Vocabulary, uninformative: str) -> str:
    """The decision in brief; ``uninformative`` is what ``why_uninformative`` returns."""
    return _with_caveats(comparison, decision(comparison, words, brief=True), uninformative)


def _with_caveats(comparison: Comparison, text: str, uninformative: str) -> str:
    """A text on the result; before it, why the setup cannot compare the systems; after it, unequal tuning.

    The text is left out if the setup cannot compare the systems and no pair is significantly different.
    """
    sentences = [uninformative]
    if not uninformative or comparison.any_significant:
        sentences.append(text)
    if any(finding.code == UNEQUAL_TUNING for finding in comparison.findings):
        sentences.append(NOT_ALIKE)
    return " ".join(filter(None, sentences))


def decision(comparison: Comparison, words: Vocabulary, *, brief: bool = False) -> str:
    """Which system is best, or which systems are tied for it; ``brief`` counts several of these without names."""
    best = comparison.leader
    metric, units = _metric(comparison, words), _units(comparison, comparison.n_scored, words)
    if best is None and comparison.primary in comparison.missing:
        return (
            f"Inconclusive: the {words.system}s have no {words.unit} in common on which all have a value of {metric}."
        )
    if best is None:
        return f"Inconclusive: no {words.system} has a value of {metric} on these {units}."
    score = score_format(comparison, words).value(comparison.scores[best])
    unscored = [name for name in comparison.systems if isnan(comparison.scores[name])]
    tail = f" {name_list(unscored)} could not be scored." if unscored else ""
    if len(comparison.scored) == 1:
        return f"{best} is the only {words.system} with a value of {metric} ({score}).{tail}"
    untested = comparison.untested
    others = [name for name in comparison.scored if name != best and name not in untested]
    reasons = "; ".join(dict.fromkeys(untested.values()))
    if not others:
        return (
            f"Inconclusive: {best} has the {_best_word(comparison)} {metric} on {units} ({score}), but no difference "
            f"was tested: {reasons}.{tail}"
        )
    if untested:
        tail = f" The difference from {name_list(list(untested))} was not tested: {reasons}.{tail}"
    if comparison.tied_with_leader:
        return f"Inconclusive: {_tie(comparison, best, score, units, words, brief=brief)}.{tail}"
    contrast = comparison.contrast(best, others[0])
    higher = "higher" if comparison.better == Direction.UP else "lower"
    return (
        f"{best} is the best of {len(others) + 1} {words.system}s on {units}: its {metric} is {score}, significantly "
        f"{higher} than that of {others[0]} (by {_certainty(comparison, contrast, words)})"
        f"{_and_others(others[1:], words)}.{BORDERLINE if contrast.interval.covers(0.0) else ''}{tail}"
    )


BORDERLINE = " The interval includes 0: test and interval use different methods, so treat this as borderline."
"""For a significant difference: the randomisation test can reject where the interval of the mean still includes 0."""


def _and_others(others: Sequence[str], words: Vocabulary) -> str:
    """The end of a clause about the score of the first of several systems."""
    if not others:
        return ""
    return f" and that of {others[0]}" if len(others) == 1 else f" and those of {len(others)} other {words.system}s"


def _tie(comparison: Comparison, best: str, score: str, units: str, words: Vocabulary, *, brief: bool) -> str:
    """The best system and those that are not significantly different from it, as a clause."""
    tied, scores, metric = comparison.tied_with_leader, comparison.scores, _metric(comparison, words)
    equal = [name for name in tied if scores[name] == scores[best]]
    if equal:
        start = f"{name_list([best, *equal])} share the best {metric} on {units} ({score})"
    else:
        start = f"{best} has the {_best_word(comparison)} {metric} on {units} ({score})"
    others = [name for name in tied if name not in equal]
    if not others:
        return start
    if len(others) == 1:
        return f"{start}, but {others[0]} is not significantly worse"
    n_others = len(comparison.scored) - 1 - len(equal) - len(comparison.untested)
    if brief:
        return f"{start}, but {len(others)} other {words.system}s are not significantly worse"
    if len(others) < n_others:
        several = f"{len(others)} of the other {n_others} {words.system}s are not"
    else:
        if n_others == 2:
            return f"{start}, but neither {others[0]} nor {others[1]} is significantly worse"
        several = f"none of the other {n_others} {words.system}s is"
    return f"{start}, but {several} significantly worse: {name_list(others)}"


def _best_word(comparison: Comparison) -> str:
    return "highest" if comparison.better == Direction.UP else "lowest (best)"


def sample_size(comparison: Comparison, words: Vocabulary, *, brief: bool = False) -> str:
    """The number of units that would separate the best system from the next, or the first undecided pair.

    ``brief`` leaves out power and adjustment, the assumed difference, and the pairs that do not decide which is best.
    """
    best, tied = comparison.leader, comparison.tied_with_leader
    scored = comparison.scored
    if best is None or len(scored) < 2 or len(comparison.untested) == len(scored) - 1:
        return ""
    if tied:
        contrasts = [comparison.contrast(best, name) for name in tied]
        if len(tied) > 1 and all(map(_is_equal, contrasts)):
            return f"The scores of all {len(tied) + 1} tied {words.system}s are equal on every {words.unit}."
        return _sentence(_separation(comparison, contrasts[0], words, brief=brief))
    undecided = comparison.undecided
    if undecided and not brief:
        first, n_more = undecided[0], len(undecided) - 1
        more = f" (and {n_more} more {'pair' if n_more == 1 else 'pairs'})" if n_more else ""
        separation = _separation(comparison, first, words, brief=brief)
        return f"{first.a} and {first.b} are not significantly different{more}: {separation}."
    contrast = comparison.contrast(best, next(name for name in scored[1:] if name not in comparison.untested))
    detectable = _detectable(comparison, contrast, words, brief=brief)
    if brief or len(scored) == 2:  # the decision already states that the only pair is significantly different
        return _sentence(detectable) if detectable else ""
    pairs = "all tested pairs" if comparison.untested else "all pairs"
    return _sentence("; ".join(filter(None, (f"{pairs} are significantly different", detectable))))


def _separation(comparison: Comparison, contrast: Contrast, words: Vocabulary, *, brief: bool = False) -> str:
    """The number of units that would separate two systems, as a clause."""
    if _is_equal(contrast):
        return f"the scores of {contrast.a} and {contrast.b} are equal on every {words.unit}"
    units, needed = _units(comparison, contrast.n, words), contrast.needed
    pair = f"{contrast.a} from {contrast.b}"
    if comparison.is_undecidable(contrast):
        more = (
            f", and about {about(needed.value)} would be needed" if needed.known and needed.value > contrast.n else ""
        )
        verb = "is" if contrast.n == 1 else "are"
        return (
            f"{units} {verb} too few for the test of {contrast.a} against {contrast.b}: it cannot give "
            f"{'an adjusted' if comparison.is_adjusted else 'a'} p value below "
            f"{format_p(comparison.smallest_adjusted(contrast))}{more}"
        )
    if needed.reason:
        return (
            f"how many {plural(words.unit)} would be needed to distinguish {pair} is unknown, because {needed.reason}"
        )
    if needed.value > contrast.n and not needed.is_realistic(contrast.n):
        many = f"more than {REALISTIC} times as many"
        return f"no realistic number of {plural(words.unit)} would distinguish {pair} ({many})"
    if needed.value > contrast.n:
        more_units = f"about {about(needed.value)} {plural(words.unit)}"
        if brief:
            return f"{more_units} would distinguish {pair}"
        return f"{more_units} {_planned_test(comparison, contrast, words)}"
    return (
        f"{units} are about enough to show the difference between {contrast.a} and "
        f"{contrast.b} ({score_format(comparison, words).difference(contrast)}) {_with_power(comparison)}, but the "
        f"test did not show it"
    )


def _is_equal(contrast: Contrast) -> bool:
    """Whether two systems have the same score on every unit."""
    return not contrast.reason and contrast.difference == 0 and contrast.wins == contrast.losses == 0


def _planned_test(comparison: Comparison, contrast: Contrast, words: Vocabulary) -> str:
    """What the number of units needed for a pair would show, with which power and adjustment.

    For the best system and one that is tied with it, also how many units would show that it is best.
    """
    return (
        f"would be needed to distinguish {contrast.a} from {contrast.b} {_with_power(comparison)} if the "
        f"observed difference, {score_format(comparison, words).difference(contrast)}, is the true one"
        f"{_to_show_best(comparison, contrast, words)}"
    )


def _with_power(comparison: Comparison) -> str:
    return f"with {format_percent(POWER)} power ({comparison.adjustment})"


def _to_show_best(comparison: Comparison, contrast: Contrast, words: Vocabulary) -> str:
    """The number of units that would show that the first system is best, if it has several competitors."""
    needed = comparison.needed_for_best
    if comparison.leader not in (contrast.a, contrast.b) or not _is_reachable(comparison, contrast):
        return ""
    return (
        f", and about {about(needed.value)} to show that {comparison.leader} is significantly better than every other "
        f"{words.system}"
    )


def _is_reachable(comparison: Comparison, contrast: Contrast) -> bool:
    """Whether a realistic number of units would show the best system, other than the number for ``contrast``."""
    needed = comparison.needed_for_best
    if len(comparison.scored) < 3 or not needed.known or not needed.is_realistic(contrast.n):
        return False
    return not contrast.needed.known or about(needed.value) != about(contrast.needed.value)


def units_to_show_best_note(comparison: Comparison) -> str:
    """The number of units that would show that the first system is better than all others; empty if unknown."""
    needed, tied = comparison.needed_for_best, comparison.tied_with_leader
    if (
        comparison.leader is None
        or not tied
        or not _is_reachable(comparison, comparison.contrast(comparison.leader, tied[0]))
    ):
        return ""
    return (
        f"About {about(needed.value)} {comparison.words.plural} would show that {comparison.leader} is significantly "
        f"better than every other {comparison.words.system} ({format_percent(POWER)} power), if the observed "
        "differences are the true ones."
    )


def other_metrics_note(comparison: Comparison) -> str:
    """Which systems are significantly better than the best one by other metrics, the best of them by each metric."""
    leader, metrics_by_system = comparison.leader, dict[str, list[str]]()
    for metric in comparison.metrics:
        pairs = [pair for pair in comparison.contrasts if pair.metric == metric and leader in (pair.a, pair.b)]
        better = [pair for pair in pairs if pair.winner(comparison.alpha) not in (None, leader)]
        if better:
            largest = max(better, key=lambda pair: abs(pair.difference))
            best = largest.b if largest.a == leader else largest.a
            metrics_by_system.setdefault(best, []).append(metric_in_sentence(metric))
    return " ".join(
        f"By {name_list(metrics)}, {best} is significantly better than {leader}."
        for best, metrics in metrics_by_system.items()
    )


def _detectable(comparison: Comparison, contrast: Contrast, words: Vocabulary, *, brief: bool) -> str:
    """The smallest difference that could be shown: that of the first two, since others may vary far more."""
    if not contrast.detectable.known:
        return ""
    size = contrast.detectable.value * (100 if words.percent else 1)
    shown = format_value(size, max(0, 1 - floor(log10(size))) if size > 0 else 0)
    between = " between the first two" if len(comparison.scored) > 2 else ""
    units = _units(comparison, contrast.n, words)
    text = f"{units} can detect differences of about {shown}{' points' if words.percent else ''} or more{between}"
    return text if brief else f"{text} {_with_power(comparison)}"


def _certainty(comparison: Comparison, contrast: Contrast, words: Vocabulary) -> str:
    """The difference in favour of the first system, with its interval and p."""
    shown, p = score_format(comparison, words), comparison.adjusted_p(contrast)
    if not contrast.interval.known:
        return f"{shown.difference(contrast)}, {p}"
    low, high = contrast.interval.low, contrast.interval.high
    if low + high < 0:  # smaller is better
        low, high = -high, -low
    if shown.percent:
        interval = f"{format_value(100 * low, shown.decimals)} to {format_value(100 * high, shown.decimals)} points"
    else:
        interval = format_interval(Interval(low, high))
    level = format_percent(contrast.interval.confidence_level)
    return f"{shown.difference(contrast)}, {level} interval {interval}, {p}"


SPELLED_OUT = {"MR": "mean rank (MR)"}
"""Metrics whose symbol is not known outside of the field, as the sentences name them."""


def _metric(comparison: Comparison, words: Vocabulary) -> str:
    return words.metric or SPELLED_OUT.get(comparison.primary, comparison.primary)


def _units(comparison: Comparison, n: int, words: Vocabulary) -> str:
    return words.data or words.size(n, comparison.clusters)


def _sentence(clause: str) -> str:
    return f"{capitalised(clause)}."


def name_list(names: Sequence[str]) -> str:
    """Up to four names, or three and how many more there are."""
    if len(names) > MAX_NAMES:
        return f"{', '.join(names[: MAX_NAMES - 1])} and {len(names) - MAX_NAMES + 1} more"
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else names[0]
