"""Results that another project wrote: acc@1, mrr, ndcg and f1, some in percent, some not, some missing.

A score is accepted if its unit is proven: by a percent sign, by counts in the same row,
or because every other unit is impossible. Otherwise it is rejected with a reason. ``eq audit``
checks the same files for impossible scores.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import pairwise
from math import ceil, floor, log2
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from equipoise.audit.metric_labels import ColumnRole, parse_label
from equipoise.errors import InputError, ParameterError
from equipoise.io.published import read_published
from equipoise.io.published.numbers import PrintedNumber, parse_printed
from equipoise.io.text import display_path
from equipoise.stats.formatting import format_count, format_value

if TYPE_CHECKING:
    from equipoise.io.published.tables import SystemRecord, TableCell
    from equipoise.io.text import PathLike

# Bounds of a score given the accuracies: these can prove its unit.

Earned = Callable[[int], float]
"""The gain of the target at a rank; it does not increase with the rank."""
SINGLE = 2.0**-22
"""Shares that are nearer are equal: the arithmetic of a percentage in float32 rounds so much at most."""


class RoundingRange(NamedTuple):
    """All values from ``low`` to ``high``."""

    low: float
    high: float

    def meets(self, other: RoundingRange) -> bool:
        """Whether the two have a value in common, at single precision."""
        return self.low <= other.high + SINGLE and other.low <= self.high + SINGLE


Curve = Mapping[int, RoundingRange]
"""Accuracies by cutoff."""

ANY = RoundingRange(0.0, 1.0)


def accuracy_range(curve: Curve, k: int) -> RoundingRange:
    """Accuracy never falls as k grows."""
    below = [bounds.low for cutoff, bounds in curve.items() if cutoff <= k]
    above = [bounds.high for cutoff, bounds in curve.items() if cutoff >= k]
    return RoundingRange(max(below, default=0.0), min(above, default=1.0))


def mean_gain_range(curve: Curve, gain: Earned) -> RoundingRange:
    """The mean of what ranks earn: a hit within k and not before earns at least what rank k does."""
    cutoffs = sorted(curve)
    low = sum(curve[k].low * (gain(k) - (gain(later) if later else 0.0)) for k, later in pairwise([*cutoffs, 0]))
    high = sum(curve[k].high * (gain(before + 1) - gain(k + 1)) for before, k in pairwise([0, *cutoffs]))
    return RoundingRange(low, high + gain((cutoffs[-1] if cutoffs else 0) + 1))


def reciprocal_rank_gain(rank: int) -> float:
    """MRR."""
    return 1.0 / rank


def ndcg_gain(cutoff: int) -> Earned:
    """nDCG with one relevant place."""
    return lambda rank: 1.0 / log2(rank + 1) if rank <= cutoff else 0.0


def weighted_f1_range(curve: Curve) -> RoundingRange:
    """F1 weighted by the units of each class is between 2a²/(1 + a) and 2a/(1 + a), a being Acc@1.

    The upper end is precise predictions only: 2R/(1 + R) of each class's recall R, which is concave. The
    lower end is one class that is always predicted: with t hits among p predictions a class adds at least
    2t²/(t + p) units, which is convex, and all t and all p have known sums.
    """
    accuracy = accuracy_range(curve, 1)
    return RoundingRange(2 * accuracy.low**2 / (1 + accuracy.low), 2 * accuracy.high / (1 + accuracy.high))


# The unit of a published score: fraction, percent or sum, if it can be proven.

NDCG_AT = 10
"""The cutoff of an nDCG that names none, as projects of this field report it."""
MOST_PERCENT = 100.0
_PLACES = 5


class ValueUnit(StrEnum):
    """The unit of a score."""

    FRACTION = "fraction"
    PERCENT = "percent"
    SUM = "sum over visits"


@dataclass(frozen=True)
class WrittenValue:
    """A score as written; ``signed``: with a percent sign, ``summed``: maybe a sum over units."""

    symbol: str
    k: int | None
    average: str
    label: str
    number: PrintedNumber
    signed: bool = False
    summed: bool = False

    @property
    def metric(self) -> str:
        """The name in the catalogue."""
        if self.symbol == "F1":
            return "F1" if self.average in ("", "weighted") else f"F1(average={self.average})"
        cutoff = NDCG_AT if self.symbol == "nDCG" and self.k is None else self.k
        return self.symbol if cutoff is None else f"{self.symbol}@{cutoff}"


@dataclass(frozen=True)
class UnitDecision:
    """The unit and range of the value, or None and the reason why it is unknown."""

    unit: ValueUnit | None
    reach: RoundingRange
    why: str


def infer_unit(written: WrittenValue, total: int | None, curve: Curve) -> UnitDecision:
    """Try every unit, and keep the one that the number of units and the proven accuracies allow.

    >>> from equipoise.io.published.numbers import parse_printed
    >>> mrr = WrittenValue("MRR", None, "", "mrr", parse_printed("0.34"))
    >>> infer_unit(mrr, 50, {1: RoundingRange(0.2, 0.2)}).unit.value
    'fraction'
    >>> infer_unit(mrr, None, {}).why
    'it may be a fraction (0.34) or percent (0.0034)'
    """
    readings = _readings(written, total)
    if written.signed:
        readings = {ValueUnit.PERCENT: readings[ValueUnit.PERCENT]}
    if written.number.value == 0.0:
        unit, bounds = next(iter(readings.items()))
        return UnitDecision(unit, bounds, "0 is 0")
    refusals = {unit: _refusal(written, bounds, total, curve) for unit, bounds in readings.items()}
    left = [unit for unit, reason in refusals.items() if not reason]
    reasons = "; ".join(f"as {_words(unit)} {reason}" for unit, reason in refusals.items() if reason)
    if len(left) == 1:
        return UnitDecision(left[0], readings[left[0]], "it has a percent sign" if written.signed else reasons)
    if left:
        alternatives = " or ".join(f"{_words(unit)} ({_middle(readings[unit])})" for unit in left)
        return UnitDecision(None, ANY, f"it may be {alternatives}")
    return UnitDecision(None, ANY, reasons)


def _readings(written: WrittenValue, total: int | None) -> Mapping[ValueUnit, RoundingRange]:
    number = written.number
    scales = {ValueUnit.FRACTION: 1.0, ValueUnit.PERCENT: 0.01}
    # A share cannot exceed 100 %, so a larger value is a sum, whatever its name.
    if total is not None and (written.summed or number.low > MOST_PERCENT) and written.symbol != "F1":
        scales[ValueUnit.SUM] = 1.0 / total
    return {unit: RoundingRange(number.low * scale, number.high * scale) for unit, scale in scales.items()}


def _refusal(written: WrittenValue, value_range: RoundingRange, total: int | None, curve: Curve) -> str:
    """Why the score cannot have these values; empty if it can."""
    middle = _middle(value_range)
    if not value_range.meets(ANY):
        return f"it would be {middle}, but a score is at most 1"
    bounds = _bounds(written, curve)
    if not value_range.meets(bounds):
        return (
            f"it would be {middle}, but the accuracies allow {format_value(bounds.low, _PLACES)} to "
            f"{format_value(bounds.high, _PLACES)}"
        )
    # A count of hits is stronger evidence, and tied scores give fractional hits.
    counted = (written.k or 1) in curve
    if written.symbol == "HR" and not counted and total is not None and not _units_whole(value_range, total):
        return f"it would be {middle}, which no number of hits among {format_count(total)} visits gives"
    return ""


def _bounds(written: WrittenValue, curve: Curve) -> RoundingRange:
    if not curve:
        return ANY
    if written.symbol == "HR":
        return accuracy_range(curve, written.k or 1)
    if written.symbol == "MRR" and written.k is None:
        return mean_gain_range(curve, reciprocal_rank_gain)
    if written.symbol == "nDCG":
        return mean_gain_range(curve, ndcg_gain(written.k or NDCG_AT))
    if written.symbol == "F1" and written.average == "weighted":
        return weighted_f1_range(curve)
    return accuracy_range(curve, 1) if written.symbol == "F1" and written.average == "micro" else ANY


def _units_whole(value_range: RoundingRange, total: int) -> bool:
    """Whether the range contains an integer number of hits, at single precision."""
    slack = SINGLE * total
    return ceil(value_range.low * total - slack) <= floor(value_range.high * total + slack)


def _middle(value_range: RoundingRange) -> str:
    middle = (value_range.low + value_range.high) / 2
    return format_count(round(middle)) if middle >= 1000 else f"{middle:.4g}"


def _words(unit: ValueUnit) -> str:
    return f"a {unit}" if unit is not ValueUnit.PERCENT else "percent"


SYMBOLS = ("HR", "MRR", "nDCG", "F1")
AVERAGES = ("weighted", "macro", "micro")
_HITS = re.compile(r"(?:n_)?(?:correct|hits?)(?:_?@|_at_|_)(\d+)")
_TOTAL = re.compile(r"total|n|n_test|num_samples|samples|n_samples|units|visits")
_LIBCITY = re.compile(r"(?P<symbol>precision|recall|f1|mrr|map|ndcg)@(?:(?P<k>\d+)|\[(?P<ks>\d+(?:,_?\d+)*)\])")
_SUMS = re.compile(r"(?P<symbol>rr|mrr|ndcg|dcg)(?P<sum>_sum)?|sum_(?P<other>rr|mrr|ndcg|dcg)")


@dataclass(frozen=True)
class AcceptedValue:
    """A score whose unit is proven: its value as a fraction, and the proof."""

    metric: str
    value: float
    label: str
    text: str
    unit: str
    proof: str


@dataclass(frozen=True)
class RejectedValue:
    """A score whose unit is unknown, or that is impossible."""

    metric: str
    label: str
    text: str
    reason: str


@dataclass(frozen=True)
class PublishedScores:
    """One row of published results; ``empty`` are labels without a score."""

    name: str
    total: int | None
    accepted: tuple[AcceptedValue, ...]
    rejected: tuple[RejectedValue, ...]
    empty: tuple[str, ...]

    @property
    def values(self) -> dict[str, float]:
        """The accepted scores, as fractions by metric."""
        return {accepted.metric: accepted.value for accepted in self.accepted}

    def __repr__(self) -> str:
        counts = f"{len(self.accepted)} scores accepted, {len(self.rejected)} rejected, {len(self.empty)} empty"
        return f"<PublishedScores {self.name}: {counts}>"


def read_published_results(
    source: PathLike | Mapping[Any, Any] | Sequence[Any], *, total: int | None = None, f1: str = "weighted"
) -> tuple[PublishedScores, ...]:
    """Read published scores, and determine whether each value is a percentage or a fraction.

    Parameters
    ----------
    source
        A file (JSON, CSV, Markdown, LaTeX), or values as JSON has them. ``correct@k``, ``rr`` and ``total`` are counts
        over units. Files of LibCity's evaluator are recognised by their names: Recall@k is Acc@k.
    total
        Number of units if the file does not have it.
    f1
        How F1 was averaged, if a file does not state it.

    Returns
    -------
    tuple of PublishedScores
        One entry per row; ``values`` are fractions.

    Examples
    --------
    >>> (row,) = read_published_results({"acc@1": 29.61, "mrr": 40.84, "f1": 0.212, "ndcg": None})
    >>> {name: round(value, 4) for name, value in row.values.items()}, row.empty
    ({'HR@1': 0.2961, 'MRR': 0.4084, 'F1': 0.212}, ('ndcg',))
    >>> row.accepted[2].proof
    'as percent it would be 0.00212, but the accuracies allow 0.13525 to 0.45697'
    """
    if f1 not in AVERAGES:
        raise ParameterError(f"no F1 is averaged by {f1}", hint=f"choose one of {', '.join(AVERAGES)}")
    if total is not None and total < 1:
        raise ParameterError(f"the number of visits is {total}", hint="give at least 1")
    rows: list[PublishedScores] = []
    sources = read_published(source, _is_score_label)
    for published in sources:
        for record in published.records:
            if _is_libcity(record.cells):
                rows.append(_libcity_scores(record.name or published.name, record.cells, total))
                continue
            rows += [_scores(name, cells, total, f1) for name, cells in _groups(record, published.name)]
    if not rows:
        names = ", ".join(published.name for published in sources)
        raise InputError(f"{names} has no next-place metric", hint="known are acc@k, mrr, ndcg, f1, rr and correct@k")
    return tuple(rows)


def read_result_files(paths: Sequence[PathLike], **options: Any) -> tuple[PublishedScores, ...]:
    """``read_published_results`` of several files; the rows are named after their file, and those of tables also."""
    rows: list[PublishedScores] = []
    for path in paths:
        stem = Path(display_path(path).removesuffix(".gz")).stem
        read = read_published_results(path, **options)
        rows += [replace(row, name=stem if len(read) == 1 else f"{stem}: {row.name}") for row in read]
    return tuple(rows)


def _is_score_label(label: str) -> bool:
    return (
        _written_as(label) is not None or _HITS.fullmatch(_key(label)) is not None or _libcity_metric(label) is not None
    )


LIBCITY_PROOF = "LibCity writes fractions"


def _libcity_metric(label: str) -> tuple[str, int] | None:
    """Symbol and cutoff of a metric of LibCity's evaluator; None for a name that it does not use.

    Recall of one target is the accuracy at k. With a list of cutoffs, MRR and NDCG are named after the list and
    computed with its first cutoff. F1 is that of precision and recall at k, not of classes; precision and MAP follow
    from the others.

    >>> _libcity_metric("Recall@5"), _libcity_metric("MRR@[1, 5, 10]"), _libcity_metric("F1@5"), _libcity_metric("acc")
    (('HR', 5), ('MRR', 1), ('F1@k', 5), None)
    """
    match = _LIBCITY.fullmatch(_key(label))
    if match is None:
        return None
    symbol = {"recall": "HR", "mrr": "MRR", "ndcg": "nDCG", "f1": "F1@k"}.get(match["symbol"], match["symbol"])
    return symbol, int(match["k"] or match["ks"].split(",")[0])


def _is_libcity(cells: Sequence[TableCell]) -> bool:
    """Whether LibCity wrote the row: it has recall at a cutoff, only names that LibCity uses, and only fractions."""
    names = [_libcity_metric(cell.label) for cell in cells]
    numbers = [parse_printed(cell.text) for cell in cells]
    has_recall = any(name is not None and name[0] == "HR" for name in names)
    return has_recall and all(
        name is not None and number is not None and 0.0 <= number.value <= 1.0 and not number.percent
        for name, number in zip(names, numbers, strict=True)
    )


def _libcity_scores(name: str, cells: Sequence[TableCell], total: int | None) -> PublishedScores:
    accepted, rejected = [], []
    for cell in cells:
        metric, number = _libcity_metric(cell.label), parse_printed(cell.text)
        if metric is None or number is None:
            continue
        symbol, k = metric
        if symbol in ("HR", "MRR", "nDCG"):
            accepted.append(
                AcceptedValue(f"{symbol}@{k}", number.value, cell.label, number.text, "fraction", LIBCITY_PROOF)
            )
        elif symbol == "F1@k":
            reason = "LibCity's F1@k is computed from precision and recall at k; it is not the F1 of classes"
            rejected.append(RejectedValue("F1", cell.label, number.text, reason))
    return PublishedScores(name, total, tuple(accepted), tuple(rejected), ())


def _key(label: str) -> str:
    return re.sub(r"[\s-]+", "_", label.strip().casefold())


def _written_as(label: str) -> tuple[str, int | None, str, bool, bool] | None:
    """Symbol, cutoff, average, whether it has a percent sign, and whether it may be a sum."""
    sums = _SUMS.fullmatch(_key(label))
    if sums is not None and (sums["sum"] or sums["other"] or sums["symbol"] == "rr"):
        word = sums["symbol"] or sums["other"]
        return "MRR" if word.endswith("rr") else "nDCG", None, "", False, True
    metric = parse_label(label)
    if metric is None or metric.role is not ColumnRole.VALUE or metric.metric is None:
        return None
    measure = metric.metric
    symbol, k = ("HR", 1) if measure.symbol == "Acc" else (measure.symbol, measure.k)
    if symbol not in SYMBOLS or (symbol == "HR" and k is None):
        return None
    return symbol, k, dict(measure.parameters).get("average", ""), metric.percent, False


def _groups(record: SystemRecord, source: str) -> Iterable[tuple[str, list[TableCell]]]:
    """The cells by the prefix of their metric, such as a split; counts without a prefix belong to all."""
    parts: dict[str, list[TableCell]] = {}
    shared = []
    for cell in record.cells:
        meaning = parse_label(cell.label) if _written_as(cell.label) else None
        if meaning is None:
            shared.append(cell)
        else:
            parts.setdefault(meaning.group, []).append(cell)
    if not parts and any(_HITS.fullmatch(_key(cell.label)) for cell in shared):
        parts[""] = []
    for group, cells in parts.items():
        yield "/".join(filter(None, (record.name, group))) or source, [*cells, *shared]


def _scores(name: str, cells: Sequence[TableCell], total: int | None, f1: str) -> PublishedScores:
    n = _total(name, cells, total)
    hits = _hits(name, cells, n)
    curve = {k: RoundingRange(times / n, times / n) for k, times in hits.items()} if n else {}
    written_values = [score for cell in cells if (score := _written_value(cell, f1)) is not None]
    decided = _decide_units(written_values, n, curve)
    counted = [
        AcceptedValue(
            f"HR@{k}", times / n, f"correct@{k}", f"{times:.10g}", "count", f"{times:,.10g} of {format_count(n)} visits"
        )
        for k, times in sorted(hits.items())
        if n
    ]
    accepted = {value.metric: value for value in counted}
    refused = []
    for written, decision in zip(written_values, decided, strict=True):
        if decision.unit is None:
            refused.append(RejectedValue(written.metric, written.label, written.number.text, decision.why))
        else:
            accepted.setdefault(written.metric, _accept(written, decision))
    empty = [cell.label for cell in cells if not cell.text.strip() and _is_score_label(cell.label)]
    return PublishedScores(name, n, tuple(accepted.values()), tuple(refused), tuple(empty))


def _decide_units(written_values: Sequence[WrittenValue], total: int | None, counted: Curve) -> list[UnitDecision]:
    """Every proven accuracy narrows what the others can be, so ask again until nothing changes."""
    curve = dict(counted)
    while True:
        decided = []
        for written in written_values:
            # An accuracy is no evidence of its own unit, unless hits were counted.
            cutoff = written.k if written.symbol == "HR" else None
            others = {k: bounds for k, bounds in curve.items() if k != cutoff or k in counted}
            decided.append(infer_unit(written, total, others))
        new = {
            written.k or 1: decision.reach
            for written, decision in zip(written_values, decided, strict=True)
            if written.symbol == "HR" and decision.unit is not None and (written.k or 1) not in curve
        }
        if not new:
            return decided
        curve |= new


def _accept(written: WrittenValue, decision: UnitDecision) -> AcceptedValue:
    middle = (decision.reach.low + decision.reach.high) / 2
    unit = str(decision.unit)
    if decision.unit is ValueUnit.FRACTION:  # not through a sum of two ends, which rounds
        middle = written.number.value
    return AcceptedValue(written.metric, middle, written.label, written.number.text, unit, decision.why)


def _written_value(cell: TableCell, f1: str) -> WrittenValue | None:
    meaning = _written_as(cell.label)
    number = parse_printed(cell.text) if meaning and cell.text.strip() else None
    if meaning is None or number is None:
        return None
    symbol, k, average, percent, summed = meaning
    if symbol == "F1":
        average = average or f1
    return WrittenValue(symbol, k, average, cell.label, number, percent or number.percent, summed)


def _total(name: str, cells: Iterable[TableCell], stated: int | None) -> int | None:
    totals = {
        _parse_integer(name, cell): cell.label
        for cell in cells
        if _TOTAL.fullmatch(_key(cell.label)) and cell.text.strip()
    }
    if stated is not None:
        totals.setdefault(stated, "total=")
    if len(totals) > 1:
        (one, first), (other, second), *_ = totals.items()
        raise InputError(f"{name} has {one} visits by {first} and {other} by {second}")
    return next(iter(totals), None)


def _hits(name: str, cells: Iterable[TableCell], total: int | None) -> dict[int, float]:
    """The hits by cutoff; a fraction of one is what a unit with tied scores earns on average."""
    hits: dict[int, float] = {}
    for cell in cells:
        match = _HITS.fullmatch(_key(cell.label))
        if match and cell.text.strip():
            hits[int(match[1])] = _not_negative(name, cell)
    if total is not None:
        invalid = [k for k in hits if hits[k] > total or any(hits[k] < hits[j] for j in hits if j < k)]
        if invalid:
            raise InputError(
                f"{name} has {hits[invalid[0]]:g} hits within {invalid[0]} among {total} visits, which cannot be",
                hint="the number of hits does not decrease as k grows, and is at most the number of visits",
            )
    return hits


def _parse_integer(name: str, cell: TableCell) -> int:
    value = _not_negative(name, cell)
    if value != round(value):
        raise InputError(f"{name} has {cell.label} {cell.text}, where a count should be")
    return round(value)


def _not_negative(name: str, cell: TableCell) -> float:
    number = parse_printed(cell.text)
    if number is None or number.value < 0:
        raise InputError(f"{name} has {cell.label} {cell.text}, where a count should be")
    return number.value
