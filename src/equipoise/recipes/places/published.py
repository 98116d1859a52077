"""Results that another project wrote: acc@1, mrr, ndcg and f1, some in percent, some not, some missing.

Nothing is guessed. A figure is taken where its unit can be proven: from a sign, from counts that stand beside
it, or because every other reading is impossible. Elsewhere it is refused, with a sentence why. ``eq audit``
looks at the same files for figures that no reading allows.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from equipoise.checks.audit.names import Role, named
from equipoise.data.published import Cell, Record, printed, read_published
from equipoise.data.text import PathLike
from equipoise.errors import InputError, ParameterError
from equipoise.recipes.places.bounds import Reach
from equipoise.recipes.places.units import Decision, Known, Unit, Written, decide
from equipoise.stats.numbers import count

SYMBOLS = ("HR", "MRR", "nDCG", "F1")
AVERAGES = ("weighted", "macro", "micro")
_HITS = re.compile(r"(?:n_)?(?:correct|hits?)(?:_?@|_at_|_)(\d+)")
_TOTAL = re.compile(r"total|n|n_test|num_samples|samples|n_samples|units|visits")
_SUMS = re.compile(r"(?P<symbol>rr|mrr|ndcg|dcg)(?P<sum>_sum)?|sum_(?P<other>rr|mrr|ndcg|dcg)")


@dataclass(frozen=True)
class Taken:
    """A figure whose unit is proven: its value as a fraction, and the proof."""

    metric: str
    value: float
    label: str
    text: str
    unit: str
    proof: str


@dataclass(frozen=True)
class Refused:
    """A figure whose unit cannot be told, or that cannot be true."""

    metric: str
    label: str
    text: str
    reason: str


@dataclass(frozen=True)
class PublishedScores:
    """One row of somebody's results; ``empty`` are labels without a figure, which stay unknown."""

    name: str
    total: int | None
    taken: tuple[Taken, ...]
    refused: tuple[Refused, ...]
    empty: tuple[str, ...]

    @property
    def values(self) -> dict[str, float]:
        """The figures that are proven, as fractions by metric."""
        return {each.metric: each.value for each in self.taken}

    def __repr__(self) -> str:
        counts = f"{len(self.taken)} figures taken, {len(self.refused)} refused, {len(self.empty)} empty"
        return f"<PublishedScores {self.name}: {counts}>"


def read_place_results(
    source: PathLike | Mapping[Any, Any] | Sequence[Any], *, total: int | None = None, f1: str = "weighted"
) -> tuple[PublishedScores, ...]:
    """The rows of a file (JSON, CSV, Markdown, LaTeX, ...) or of values as JSON has them.

    ``correct@k``, ``rr`` and ``total`` beside the figures are counts over units; ``total`` may be given where
    the file lacks it. ``f1`` says how an F1 that does not say so itself was averaged.

    >>> (row,) = read_place_results({"acc@1": 29.61, "mrr": 40.84, "f1": 0.212, "ndcg": None})
    >>> {name: round(value, 4) for name, value in row.values.items()}, row.empty
    ({'HR@1': 0.2961, 'MRR': 0.4084, 'F1': 0.212}, ('ndcg',))
    >>> row.taken[2].proof
    'as percent it would be 0.00212, and the accuracies allow 0.13525 to 0.45697'
    """
    if f1 not in AVERAGES:
        raise ParameterError(f"no F1 is averaged by {f1}", hint=f"choose one of {', '.join(AVERAGES)}")
    if total is not None and total < 1:
        raise ParameterError(f"the number of units is {total}", hint="give at least 1")
    rows = [
        _scores(name, cells, total, f1)
        for published in read_published(source, _known)
        for record in published.records
        for name, cells in _groups(record, published.name)
    ]
    if not rows:
        raise InputError(
            "there is no figure of this field in it", hint="it looks for acc@k, mrr, ndcg, f1 and correct@k"
        )
    return tuple(rows)


def _known(label: str) -> bool:
    return _written_as(label) is not None or _HITS.fullmatch(_key(label)) is not None


def _key(label: str) -> str:
    return re.sub(r"[\s-]+", "_", label.strip().casefold())


def _written_as(label: str) -> tuple[str, int | None, str, bool, bool] | None:
    """Symbol, cutoff, average, whether a percent sign stands there, and whether it may be a sum."""
    sums = _SUMS.fullmatch(_key(label))
    if sums is not None and (sums["sum"] or sums["other"] or sums["symbol"] == "rr"):
        word = sums["symbol"] or sums["other"]
        return "MRR" if word.endswith("rr") else "nDCG", None, "", False, True
    found = named(label)
    if found is None or found.role is not Role.VALUE or found.measure is None:
        return None
    measure = found.measure
    symbol, k = ("HR", 1) if measure.symbol == "Acc" else (measure.symbol, measure.k)
    if symbol not in SYMBOLS or (symbol == "HR" and k is None):
        return None
    return symbol, k, dict(measure.parameters).get("average", ""), found.percent, False


def _groups(record: Record, source: str) -> Iterable[tuple[str, list[Cell]]]:
    """The cells by what stands before their metric, such as a split; counts without such a word go to all."""
    parts: dict[str, list[Cell]] = {}
    shared = []
    for cell in record.cells:
        meaning = named(cell.label) if _written_as(cell.label) else None
        if meaning is None:
            shared.append(cell)
        else:
            parts.setdefault(meaning.group, []).append(cell)
    if not parts and any(_HITS.fullmatch(_key(cell.label)) for cell in shared):
        parts[""] = []
    for group, cells in parts.items():
        yield "/".join(filter(None, (record.name, group))) or source, [*cells, *shared]


def _scores(name: str, cells: Sequence[Cell], total: int | None, f1: str) -> PublishedScores:
    n = _total(name, cells, total)
    hits = _hits(name, cells, n)
    known = Known(n, {k: Reach(times / n, times / n) for k, times in hits.items()} if n else {})
    figures = [each for cell in cells if (each := _figure(cell, f1)) is not None]
    decided = _decided(figures, known)
    counted = [
        Taken(
            f"HR@{k}",
            times / n,
            f"correct@{k}",
            f"{times:.10g}",
            "count",
            f"{times:,.10g} of {count(n)} units",
        )
        for k, times in sorted(hits.items())
        if n
    ]
    taken = {each.metric: each for each in counted}
    refused = []
    for written, decision in zip(figures, decided, strict=True):
        if decision.unit is None:
            refused.append(Refused(written.metric, written.label, written.number.text, decision.why))
        else:
            taken.setdefault(written.metric, _taken(written, decision))
    empty = [cell.label for cell in cells if not cell.text.strip() and _known(cell.label)]
    return PublishedScores(name, n, tuple(taken.values()), tuple(refused), tuple(empty))


def _decided(figures: Sequence[Written], known: Known) -> list[Decision]:
    """Every proven accuracy narrows what the others can be, so ask again until nothing changes."""
    curve = dict(known.curve)
    while True:
        decided = [decide(written, Known(known.total, _others(written, curve, known))) for written in figures]
        proven = {
            written.k or 1: decision.reach
            for written, decision in zip(figures, decided, strict=True)
            if written.symbol == "HR" and decision.unit is not None
        }
        new = {k: reach for k, reach in proven.items() if k not in curve}
        if not new:
            return decided
        curve |= new


def _others(written: Written, curve: Mapping[int, Reach], known: Known) -> Mapping[int, Reach]:
    """What speaks for or against a figure: the counts, and the accuracies that are not this one."""
    own = written.k if written.symbol == "HR" else None
    return {k: reach for k, reach in curve.items() if k != own or k in known.curve}


def _taken(written: Written, decision: Decision) -> Taken:
    middle = (decision.reach.low + decision.reach.high) / 2
    unit = str(decision.unit)
    if decision.unit is Unit.FRACTION:  # not through a sum of two ends, which rounds
        middle = written.number.value
    return Taken(written.metric, middle, written.label, written.number.text, unit, decision.why)


def _figure(cell: Cell, f1: str) -> Written | None:
    meaning = _written_as(cell.label)
    number = printed(cell.text) if meaning and cell.text.strip() else None
    if meaning is None or number is None:
        return None
    symbol, k, average, percent, summed = meaning
    if symbol == "F1":
        average = average or f1
    return Written(symbol, k, average, cell.label, number, percent or number.percent, summed)


def _total(name: str, cells: Iterable[Cell], given: int | None) -> int | None:
    found = {
        _whole(name, cell): cell.label
        for cell in cells
        if _TOTAL.fullmatch(_key(cell.label)) and cell.text.strip()
    }
    if given is not None:
        found.setdefault(given, "total=")
    if len(found) > 1:
        (one, first), (other, second), *_ = found.items()
        raise InputError(f"{name} rests on {one} units by {first} and on {other} by {second}")
    return next(iter(found), None)


def _hits(name: str, cells: Iterable[Cell], total: int | None) -> dict[int, float]:
    """The hits by cutoff; a fraction of one is what a unit with tied scores earns on average."""
    hits: dict[int, float] = {}
    for cell in cells:
        match = _HITS.fullmatch(_key(cell.label))
        if match and cell.text.strip():
            hits[int(match[1])] = _not_negative(name, cell)
    if total is not None:
        fallen = [k for k in hits if hits[k] > total or any(hits[k] < hits[j] for j in hits if j < k)]
        if fallen:
            raise InputError(
                f"{name} has {hits[fallen[0]]:g} hits within {fallen[0]} among {total} units, "
                "which cannot be",
                hint="hits never fall as k grows, and there are no more than units",
            )
    return hits


def _whole(name: str, cell: Cell) -> int:
    value = _not_negative(name, cell)
    if value != round(value):
        raise InputError(f"{name} has {cell.label} {cell.text}, where a count should be")
    return round(value)


def _not_negative(name: str, cell: Cell) -> float:
    number = printed(cell.text)
    if number is None or number.value < 0:
        raise InputError(f"{name} has {cell.label} {cell.text}, where a count should be")
    return number.value
