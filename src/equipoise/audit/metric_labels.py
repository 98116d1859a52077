"""Parse the labels of published tables: names of metrics, of interval ends, and of differences."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from equipoise.audit.table import AVERAGES, PublishedMetric
from equipoise.errors import did_you_mean
from equipoise.io.published.numbers import strip_markup
from equipoise.metrics.parser import builtin, find_metric
from equipoise.types import packaged_toml

if TYPE_CHECKING:
    from equipoise.audit.read_records import UnresolvedValue
    from equipoise.io.published.tables import SystemRecord

_PERCENT = re.compile(r"\s*[\(\[]\s*(?:in )?(?:%|percent|pct)\s*[\)\]]|\s+in (?:%|percent)$|[_ ](?:pct|percent)$|\s*%$")
_NO_LEVEL = re.compile(
    r"(?i)(?<![^\W_])(?:delta|diff|differences?|improvements?|improv\.?|impr?\.|changes?|gap|time|loss|"
    r"p[-_ ]?value|increase|decrease|(?-i:[Dd]rop)|degradation|lift|uplift|vs\.?|versus|relative|"
    r"(?<!information )(?<!cumulative )gains?(?!\s*=))(?![^\W_])|[Δ∆δ]"
)
_INTERVAL, _END = r"(?i)[ _/-]*(?:95 ?%? ?)?(?:ci[ _-]?)?", r"(?:[ _-]?(?:bound|ci|end))?$"
_ROLES = (
    ("low", re.compile(rf"{_INTERVAL}(?:lower|low|lo){_END}")),
    ("high", re.compile(rf"{_INTERVAL}(?:upper|high|hi){_END}")),
    ("spread", re.compile(r"(?i)[ _/-]*\(?(?:std|sd|stdev|stderr|se|sem|variance|±)\)?$")),
)
_CUTOFF = re.compile(r"^(?P<symbol>.*?[^\W\d_])[ _-]*(?:_at_|@| at )[ _]*(?P<k>\d+)$")
NAMES: dict[str, Any] = packaged_toml("equipoise.audit", "labels.toml")
_ALIASES = [(re.compile(pattern, re.IGNORECASE), name) for pattern, name in NAMES["aliases"].items()]
_AVERAGED = re.compile(
    rf"(?i)^(?:(?P<first>{'|'.join(AVERAGES)})(?:_?avg)?_)?(?P<what>f1(?:_?score)?|f_1|precision|recall|p|r)"
    rf"(?:_\(?(?P<last>{'|'.join(AVERAGES)})(?:_?avg)?\)?)?$"
)
_DIRECTION = re.compile(r"(?i)\s*(?:(?:higher|lower|larger|smaller)(?: is| =)? better)?\s*")
_SEPARATORS = re.compile(r"[\s/:._-]+")
MAX_LABEL_LENGTH = 120
MIN_PREFIXED_LETTERS = 2
"""The smallest length of a metric name after another word, unless it has a cutoff: dim_r is not recall."""


class ColumnRole(StrEnum):
    """The role of a column for its metric."""

    VALUE = "value"
    LOW = "low"
    HIGH = "high"
    SPREAD = "spread"


@dataclass(frozen=True, slots=True)
class ParsedLabel:
    """A parsed label; ``group`` is the prefix before the metric, such as a data set or a split.

    ``metric`` is None for an interval end without the name of a metric.
    """

    metric: PublishedMetric | None
    role: ColumnRole = ColumnRole.VALUE
    percent: bool = False
    group: str = ""


@lru_cache(maxsize=4096)
def parse_label(label: str) -> ParsedLabel | None:
    """The meaning of a label; None if it names no metric."""
    text = strip_markup(label).strip()
    if not text or len(text) > MAX_LABEL_LENGTH or _NO_LEVEL.search(text):
        return None
    name = _PERCENT.sub("", text).strip()
    percent = name != text
    parsed = _value(name) or _interval_end_or_spread(name)
    return replace(parsed, percent=percent) if parsed else None


def is_metric_label(label: str) -> bool:
    """Whether the label is that of a metric's value."""
    metric = parse_label(label)
    return metric is not None and metric.role is ColumnRole.VALUE and metric.metric is not None


def suggest_label(label: str) -> str:
    """A did-you-mean for a label that names no metric; empty if no name is similar."""
    symbol, at, cutoff = strip_markup(label).partition("@")
    hint = did_you_mean(symbol.strip(), builtin().names(), cutoff=0.7)
    if not hint or len(symbol.strip()) < MIN_PREFIXED_LETTERS:
        return ""
    return hint.replace("?", f"{at}{cutoff} for {label}?").replace(" or ", f"{at}{cutoff} or ")


def _value(text: str) -> ParsedLabel | None:
    for group, candidate in _candidates(text):
        bracketed = text[len(candidate) :].lstrip()[:1] in ("(", "[") and text.startswith(candidate)
        metric = _measure(candidate, is_whole_label=not group or bracketed)
        if metric is not None:
            return ParsedLabel(metric, group=_join_words(group))
    return None


def _interval_end_or_spread(text: str) -> ParsedLabel | None:
    """An interval end or a spread, with or without the name of a metric."""
    for role, ending in _ROLES:
        match = ending.search(text)
        if match:
            before = text[: match.start()]
            label = _value(before) if before else None
            if label is None and before and role == ColumnRole.SPREAD:
                return None
            return replace(label or ParsedLabel(None, group=_join_words(before)), role=ColumnRole(role))
    return None


def _candidates(text: str) -> Iterator[tuple[str, str]]:
    """Candidates for the metric: the text, the parts before and in its brackets, and the parts after other words.

    Brackets with a metric give another name for it; any other content keeps columns apart.
    """
    yield "", text
    brackets = re.fullmatch(r"(.*?)\s*[(\[]([^()\[\]]*)[)\]]", text)
    if brackets:
        is_alias = _DIRECTION.fullmatch(brackets[2]) or _measure(brackets[2], is_whole_label=True)
        yield "" if is_alias else brackets[2], brackets[1]
        yield "", brackets[2]
        for match in _SEPARATORS.finditer(brackets[1]):
            yield f"{brackets[1][: match.start()]} {brackets[2]}", brackets[1][match.end() :]
    for match in _SEPARATORS.finditer(text):
        yield text[: match.start()], text[match.end() :]


def _join_words(group: str) -> str:
    return " ".join(_SEPARATORS.split(group)).strip()


def _measure(text: str, *, is_whole_label: bool) -> PublishedMetric | None:
    """The metric of a text that is only a metric name."""
    folded = re.sub(r"[\s-]+", "_", text.strip())
    averaged = _AVERAGED.match(folded)
    if averaged and (averaged["first"] or averaged["last"]):
        symbol = {"f": "F1", "p": "P", "r": "R"}[averaged["what"][0].casefold()]
        return PublishedMetric(symbol, None, (("average", (averaged["first"] or averaged["last"]).casefold()),))
    for pattern, name in _ALIASES:
        match = pattern.fullmatch(folded)
        if match:
            return _parse_name(match.expand(name))
    cut = _CUTOFF.match(text.strip()) or _CUTOFF.match(folded)
    if cut:
        symbol = re.sub(r"[\s-]+", "_", cut["symbol"])
        return _parse_name(f"{'HR' if symbol.casefold() == 'h' else symbol}@{cut['k']}")
    if not is_whole_label and len(folded) < MIN_PREFIXED_LETTERS:
        return None
    return _parse_name(text.strip()) or _parse_name(folded)


def _parse_name(name: str) -> PublishedMetric | None:
    """The metric of this name in the built-in catalogue, or None."""
    symbol = name.partition("(")[0].partition("@")[0].strip()
    if not symbol or not builtin().named(symbol):
        return None
    metric = find_metric(name)
    if metric is None:
        return None
    average = re.search(rf"average\s*=\s*({'|'.join(AVERAGES)})", name)
    return PublishedMetric.of(metric, average=average[1] if average else None)


_SPREADS = r"std\.?(?: ?dev\.?)?|sd|stdev|stderr|s\.e\.|standard (?:deviation|error)|variance|p[-_ ]?values?"
_ROW = re.compile(
    r"(?i)(?<![^\W_])(?:delta|diff\.?|differences?|improvements?|improv\.?|impr?\.|changes?|vs\.?|versus|"
    rf"(?<!information )(?<!info )(?<!cumulative )gains?|(?:uplift|lift)|{_SPREADS})(?![^\W_])|[Δ∆δ±]"
)
"""Words that do not occur in rows or columns of metric values; a loss or a time may be part of a system's name."""
_SIGN = re.compile(r"^\s*(?:(?P<plus>\+)|(?P<minus>[-\u2212\u2013]))(?=\s*[\d.])")
_ARROW = re.compile(r"^[\s$*]*(?:[↑↓⬆⬇▲▼]\ufe0f?|\\(?:up|down)arrow)[\s$*]*[\d.]")
MAX_NAME_WORDS = 6
"""In words. A longer heading that mentions a change says nothing about its numbers."""


def names_difference(name: str) -> bool:
    """Whether a row of this name contains differences or spreads."""
    plain_name = strip_markup(name.replace("_", " "))
    return len(plain_name.split()) <= MAX_NAME_WORDS and _ROW.search(plain_name) is not None


def without_differences(
    drafts: Sequence[tuple[SystemRecord, list[UnresolvedValue]]],
) -> tuple[list[tuple[SystemRecord, list[UnresolvedValue]]], list[str]]:
    """The metric values, and the names of the rows and columns that contain differences."""
    names: dict[str, None] = {}
    remaining: list[tuple[SystemRecord, list[UnresolvedValue]]] = []
    columns = _signed_columns(drafts)
    names |= dict.fromkeys(columns)
    for record, values in drafts:
        others = [value for value in values if value.cell.label not in columns]
        levels = [] if names_difference(record.name) else _without_signed(others)
        if len(levels) < len(others):
            names[record.name or "a row"] = None
        remaining.append((record, levels))
    return remaining, list(names)


def _signed_columns(drafts: Sequence[tuple[SystemRecord, list[UnresolvedValue]]]) -> frozenset[str]:
    """The labels of columns in which every number has a sign, although the metric is never negative."""
    columns: dict[str, list[UnresolvedValue]] = {}
    for _, values in drafts:
        for value in values:
            columns.setdefault(value.cell.label, []).append(value)
    return frozenset(label for label, column in columns.items() if len(column) > 1 and _all_signed(column))


def _all_signed(drafts: Sequence[UnresolvedValue]) -> bool:
    signs = [_sign(draft) for draft in drafts if draft.number.value != 0]
    return len(signs) > 1 and all(signs) and all(map(_never_negative, drafts))


def _without_signed(drafts: list[UnresolvedValue]) -> list[UnresolvedValue]:
    """A row without its differences: numbers with a plus sign, and all numbers if most are signed."""
    levels = [draft for draft in drafts if _never_negative(draft)]
    raised = [level for level in levels if _sign(level) == "+"]
    signed = [level for level in levels if _sign(level)]
    if _all_signed(levels) or (raised and 2 * len(signed) >= len(levels)):
        return []
    return [draft for draft in drafts if not (raised and _never_negative(draft) and _sign(draft))]


def _sign(draft: UnresolvedValue) -> str:
    """The printed sign, ``+`` or ``-``; an arrow counts as plus; empty if there is none."""
    if _ARROW.match(draft.cell.text):
        return "+"
    match = _SIGN.match(strip_markup(draft.cell.text))
    return "" if match is None else "+" if match["plus"] else "-"


def _never_negative(draft: UnresolvedValue) -> bool:
    return draft.metric.bounds[0] >= 0
