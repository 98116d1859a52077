"""The scores of models on data sets: missing cells, scales, directions and the units behind a score."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from equipoise.checks.base import Observation, declared_checks, evidence_names, join_names, pluralize
from equipoise.errors import PairingError, ParameterError, UnknownNameError, did_you_mean
from equipoise.stats.complete_units import complete_units, n_missing_scores

if TYPE_CHECKING:
    from equipoise.io.published.numbers import PrintedNumber
    from equipoise.types import Bools, Floats, Ints

Scale = Literal["fraction", "percent", "other"]
SCALE_NOUNS: dict[Scale, str] = {"fraction": "fractions", "percent": "percentages", "other": "numbers above 100"}
MissingPolicy = Literal["datasets", "models", "error"]
MISSING_POLICIES: tuple[MissingPolicy, ...] = ("datasets", "models", "error")
MAX_DENOMINATOR = 10_000
PERCENT_LIMIT = 100.0


@dataclass(frozen=True)
class ScoreTable:
    """Scores of models (rows) on data sets (columns), as printed; NaN is a missing cell.

    ``lower`` are the data sets on which a lower score is better, ``accuracy`` those whose score is a share of units
    answered correctly. ``units`` are per-unit values by data set (units, models), NaN where a model has none; the
    scores are means over the units on which all models have a value. ``printed`` are the numbers with their digits by
    (model, data set), ``notes`` how the table was read. ``runs`` says that the scores come from run directories, and
    ``tuned`` are the models among them whose parameters were tuned by cross-validation.
    """

    name: str
    models: tuple[str, ...]
    datasets: tuple[str, ...]
    scores: Floats = field(repr=False)
    lower: frozenset[str] = frozenset()
    accuracy: frozenset[str] = frozenset()
    units: Mapping[str, Floats] = field(default_factory=dict, repr=False)
    printed: Mapping[tuple[str, str], PrintedNumber] = field(default_factory=dict, repr=False)
    n_units: Mapping[str, int] = field(default_factory=dict)
    unreadable: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    runs: bool = False
    tuned: tuple[str, ...] = ()

    @classmethod
    def from_units(cls, name: str, cells: Mapping[tuple[str, str], Mapping[str, float]]) -> ScoreTable:
        """The table of per-unit scores by (model, data set): means over the units that all models share.

        A cell with the one unit ``""`` is a score without units.
        """
        models = tuple(dict.fromkeys(model for model, _ in cells))
        datasets = tuple(dict.fromkeys(dataset for _, dataset in cells))
        scores = np.full((len(models), len(datasets)), np.nan)
        units: dict[str, Floats] = {}
        for column, dataset in enumerate(datasets):
            ids = dict.fromkeys(unit for model in models for unit in cells.get((model, dataset), ()))
            values = np.array([[cells.get((model, dataset), {}).get(unit, np.nan) for model in models] for unit in ids])
            scores[:, column] = _shared_means(values)
            if np.isnan(scores[:, column]).all():
                raise PairingError(
                    f"{name}: the models on {dataset} share no example",
                    hint="give the same ids of examples for every model",
                )
            if list(ids) != [""]:
                units[dataset] = values
        return cls(name, models, datasets, scores, units=units, n_units=_sizes(units))

    @property
    def missing(self) -> Bools:
        """Which cells have no score."""
        return np.isnan(self.scores)

    @property
    def oriented(self) -> Floats:
        """The scores with the sign changed where lower is better, so that higher is always better."""
        signs = np.array([-1.0 if name in self.lower else 1.0 for name in self.datasets])
        return np.asarray(self.scores * signs)

    @property
    def oriented_units(self) -> list[Floats] | None:
        """Values of the units that all models share, higher is better; None unless all data sets have them."""
        if not self.datasets or any(name not in self.units for name in self.datasets):
            return None
        shared = {name: values[complete_units(values)] for name, values in self.units.items()}
        return [shared[name] * (-1.0 if name in self.lower else 1.0) for name in self.datasets]

    @cached_property
    def scales(self) -> dict[str, Scale]:
        """The scale of every data set that has a score, from its largest score and its percent signs."""
        scales: dict[str, Scale] = {}
        for column, name in enumerate(self.datasets):
            known = self.scores[~self.missing[:, column], column]
            if len(known):
                signed = any(self._has_percent_sign(model, name) for model in self.models)
                scales[name] = "percent" if signed else _scale(float(np.abs(known).max()))
        return scales

    @property
    def bounds(self) -> tuple[float, float]:
        """The smallest and largest possible mean of fractions or percentages; negative only if a score is."""
        limits: dict[Scale, float] = {"fraction": 1.0, "percent": PERCENT_LIMIT}
        limit = max((limits.get(scale, inf) for scale in self.scales.values()), default=inf)
        return (0.0 if np.nanmin(self.scores) >= 0.0 else -limit), limit

    @property
    def is_comparable(self) -> bool:
        """Whether a mean over the data sets is meaningful: one scale and one direction."""
        return len(set(self.scales.values())) <= 1 and len(self.lower & set(self.datasets)) in (0, len(self.datasets))

    def take(self, models: Sequence[int] | Ints, datasets: Sequence[int] | Ints, *notes: str) -> ScoreTable:
        """The table of some models and data sets, by position."""
        rows, columns = np.asarray(models, dtype=np.int64), np.asarray(datasets, dtype=np.int64)
        names = tuple(self.datasets[column] for column in columns)
        scores = self.scores[np.ix_(rows, columns)]
        units = {name: self.units[name][:, rows] for name in names if name in self.units}
        for name, values in units.items():
            scores[:, names.index(name)] = _shared_means(values)
        return replace(
            self,
            models=tuple(self.models[row] for row in rows),
            datasets=names,
            scores=scores,
            units=units,
            n_units={**self.n_units, **_sizes(units)},
            notes=(*self.notes, *notes),
        )

    def select(self, models: Sequence[str] = (), datasets: Sequence[str] = ()) -> ScoreTable:
        """The table of these models and data sets; all of them without names."""
        rows = _positions("model", models, self.models)
        columns = _positions("data set", datasets, self.datasets)
        return self.take(rows, columns)

    def with_lower(self, datasets: Sequence[str]) -> ScoreTable:
        """The same table with further data sets on which a lower score is better."""
        _positions("data set", datasets, self.datasets)
        return replace(self, lower=self.lower | set(datasets))

    def complete(self, policy: MissingPolicy | None = None) -> ScoreTable:
        """The table without missing cells: only complete data sets, only complete models, or an error.

        By default the complete data sets are kept. Of run directories the complete models are kept, because a baseline
        that does not apply to some kinds of data would remove these data sets.
        """
        if policy is None:
            policy = "models" if self.runs and (~self.missing.any(axis=1)).sum() > 1 else "datasets"
        if policy not in MISSING_POLICIES:
            raise ParameterError(
                f"missing={policy!r} is not known",
                hint=did_you_mean(policy, MISSING_POLICIES) or f"choose {', '.join(MISSING_POLICIES)}",
            )
        gaps = self.missing
        rows, columns = np.arange(len(self.models)), np.arange(len(self.datasets))
        if not gaps.any():
            return self
        full_columns, full_rows = np.flatnonzero(~gaps.any(axis=0)), np.flatnonzero(~gaps.any(axis=1))
        kept = (rows, full_columns) if policy == "datasets" else (full_rows, columns)
        if policy == "error" or len(kept[0]) < 2 or not len(kept[1]):
            raise PairingError(
                f"{self.name} has {pluralize(int(gaps.sum()), 'missing cell')}: {len(full_columns)} of {len(columns)} "
                f"data sets have scores of all models, and {len(full_rows)} of {len(rows)} models have scores on all "
                "data sets",
                hint=_missing_hint(len(full_columns), len(full_rows)),
            )
        if policy == "datasets":
            note = f"only data sets with scores of all models are used: {len(full_columns)} of {len(columns)}"
        else:
            others = [self.models[row] for row in np.setdiff1d(rows, full_rows).tolist()]
            note = f"models without scores on all data sets are left out: {join_names(others)}"
        return self.take(*kept, note)

    def denominators(self) -> dict[str, tuple[int, ...]]:
        """The numbers of units, up to 10,000, that the printed accuracies of a data set allow."""
        by_dataset = {}
        for name in self.datasets:
            cells = [self.printed[model, name] for model in self.models if (model, name) in self.printed]
            if cells and name in self.accuracy and self.scales.get(name) != "other":
                by_dataset[name] = possible_denominators(cells, percent=self.scales.get(name) == "percent")
        return by_dataset

    def _has_percent_sign(self, model: str, dataset: str) -> bool:
        printed = self.printed.get((model, dataset))
        return printed is not None and printed.percent


def possible_denominators(
    cells: Sequence[PrintedNumber], *, percent: bool, limit: int = MAX_DENOMINATOR
) -> tuple[int, ...]:
    """Every n up to ``limit`` for which each printed accuracy is a count divided by n, rounded as printed.

    >>> from equipoise.io.published.numbers import parse_printed
    >>> possible_denominators([parse_printed("66.67"), parse_printed("83.33")], percent=True, limit=20)
    (6, 12, 18)
    """
    sizes = np.arange(1, limit + 1)
    possible = np.ones(limit, dtype=bool)
    unit = PERCENT_LIMIT if percent else 1.0
    for cell in cells:
        low, high = cell.low / unit, cell.high / unit
        # The smallest count whose share is not below the printed range. The slack is rounding of the products.
        count = np.ceil(low * sizes - 1e-9)
        possible &= count <= high * sizes + 1e-9
    return tuple(sizes[possible].tolist())


def _shared_means(values: Floats) -> Floats:
    """The mean of each model over the units on which all have a value; NaN for a model without values."""
    shared = values[complete_units(values)]
    return shared.mean(axis=0) if len(shared) else np.full(values.shape[1], np.nan)


def _sizes(units: Mapping[str, Floats]) -> dict[str, int]:
    """The number of units of each data set that all models share."""
    return {name: int(complete_units(values).sum()) for name, values in units.items()}


def _scale(largest: float) -> Scale:
    if largest <= 1.0:
        return "fraction"
    return "percent" if largest <= PERCENT_LIMIT else "other"


def _positions(kind: str, names: Sequence[str], known: Sequence[str]) -> list[int]:
    """The positions of the names; all positions without names."""
    for name in names:
        if name not in known:
            raise UnknownNameError.of(kind, name, known, more=f"there are {', '.join(known[:10])}")
    return [known.index(name) for name in dict.fromkeys(names)] if names else list(range(len(known)))


def _missing_hint(n_datasets: int, n_models: int) -> str:
    if n_datasets:
        return "--missing datasets keeps the data sets with scores of all models"
    if n_models > 1:
        return "--missing models keeps the models with scores on all data sets"
    return "choose models and data sets that overlap with --models and --datasets"


# Checks of the table: missing cells, scales, directions, and how much it can show.


LOWER_IS_BETTER = re.compile(
    r"(?i)(?<![a-z])(?:wer|cer|eer|ppl|perplexity|rmse|mae|mse|nll|loss|errors?|mean[ _]rank|latency|fid|bpb|ece|brier)"
    r"(?![a-z])"
)
MISSING_CELLS_CODE = "EQ420"
FEW_DATASETS_CODE = "EQ424"
FEW_DATASETS = 6
"""With fewer data sets, no paired sign or randomisation test reaches p < 0.05: 2 / 2**5 is 0.0625."""
SUSPICIOUS_RATIO = 50.0
"""A percentage this many times below the median of its column may be a fraction."""


def missing_cells(table: ScoreTable) -> Iterator[Observation]:
    """EQ420: models without a score on some data sets."""
    gaps = table.missing
    if gaps.any():
        rows = np.flatnonzero(gaps.any(axis=1))
        names = [f"{table.models[row]}: {pluralize(int(gaps[row].sum()), 'data set')}" for row in rows]
        yield Observation(
            Path(table.name).name,
            f"{int(gaps.sum()):,} of {gaps.size:,} cells {'has' if gaps.sum() == 1 else 'have'} no score "
            f"({pluralize(len(rows), 'model')}, {pluralize(int(gaps.any(axis=0).sum()), 'data set')})",
            evidence_names(names),
        )


def missing_units(table: ScoreTable) -> Iterator[Observation]:
    """EQ427: units of a data set that some models lack."""
    for dataset, values in table.units.items():
        lacking = [
            f"{n_missing:,} ({model})"
            for model, n_missing in zip(table.models, n_missing_scores(values), strict=True)
            if n_missing
        ]
        if lacking:
            yield Observation(
                dataset,
                f"{join_names(lacking)} of {len(values):,} scores are missing, so all models are compared on "
                f"{pluralize(table.n_units[dataset], 'unit')}",
                evidence_names(lacking),
            )


def mixed_scales(table: ScoreTable) -> Iterator[Observation]:
    """EQ421: data sets whose scores have different scales or directions."""
    if table.is_comparable:
        return
    groups: dict[str, list[str]] = {}
    for name, scale in table.scales.items():
        direction = " (lower is better)" if name in table.lower else ""
        groups.setdefault(f"{SCALE_NOUNS[scale]}{direction}", []).append(name)
    yield Observation(
        Path(table.name).name,
        f"the data sets have different scales: {', '.join(groups)}",
        tuple(f"{kind}: {join_names(names)}" for kind, names in groups.items()),
    )


def misplaced_cells(table: ScoreTable) -> Iterator[Observation]:
    """EQ422: cells that look like fractions in a column of percentages."""
    cells = []
    for column, name in enumerate(table.datasets):
        if table.scales.get(name) != "percent":
            continue
        scores = table.scores[:, column]
        others = scores[scores > 1.0]
        if not len(others):
            continue
        typical = float(np.median(others))
        for row in np.flatnonzero((scores > 0.0) & (scores <= 1.0)):
            is_typical = others.min() <= PERCENT_LIMIT * scores[row] <= others.max()
            if is_typical and scores[row] * SUSPICIOUS_RATIO < typical:
                cells.append(f"{table.models[row]}, {name}: {scores[row]:g} (median {typical:g})")
    if cells:
        yield Observation(
            Path(table.name).name,
            f"{pluralize(len(cells), 'score')} may be {'a fraction' if len(cells) == 1 else 'fractions'}: "
            f"{join_names(cells, '; ')}",
            tuple(cells),
        )


def lower_is_better(table: ScoreTable) -> Iterator[Observation]:
    """EQ423: data sets whose name is that of an error measure."""
    names = [name for name in table.datasets if name not in table.lower and LOWER_IS_BETTER.search(name)]
    if names:
        yield Observation(
            Path(table.name).name,
            f"{join_names(names)}: higher scores are taken as better",
            evidence_names(names),
            title=f"higher scores are taken as better on {join_names(names)}; --lower {names[0]} changes it",
        )


def few_datasets(table: ScoreTable) -> Iterator[Observation]:
    """EQ424: too few data sets to distinguish any two models by a test over data sets."""
    count = len(table.datasets)
    if count < FEW_DATASETS:
        yield Observation(
            Path(table.name).name,
            f"the smallest p value of the randomisation test on {pluralize(count, 'data set')} is "
            f"{min(1.0, 2.0 ** (1 - count)):.3g}, so it cannot show a significant difference between two models",
            evidence_names(table.datasets),
        )


def unreadable_cells(table: ScoreTable) -> Iterator[Observation]:
    """EQ425: cells or files that are no scores."""
    if table.unreadable:
        count = pluralize(len(table.unreadable), "file" if Path(table.name).is_dir() else "cell")
        yield Observation(
            Path(table.name).name, f"{count} could not be read: {table.unreadable[0]}", evidence_names(table.unreadable)
        )


def impossible_accuracies(table: ScoreTable) -> Iterator[Observation]:
    """EQ426: data sets whose stated number of units is not compatible with the printed accuracies."""
    for name, sizes in table.denominators().items():
        stated = table.n_units.get(name)
        if stated is not None and stated <= MAX_DENOMINATOR and stated not in sizes:
            none = f"no number up to {MAX_DENOMINATOR:,} is possible"
            possible = f"the smallest possible number is {sizes[0]:,}" if sizes else none
            cells = {model: table.printed.get((model, name)) for model in table.models}
            printed = [f"{model}: {cell.text}" for model, cell in cells.items() if cell is not None]
            message = f"the printed accuracies are impossible with {pluralize(stated, 'example')}; {possible}"
            yield Observation(name, message, evidence_names(printed))


def unaccounted_tuning(table: ScoreTable) -> Iterator[Observation]:
    """EQ428: intervals of tuned systems without the uncertainty of the tuning."""
    if table.tuned:
        yield Observation(
            Path(table.name).name,
            f"the intervals do not include the uncertainty of the tuning of {join_names(table.tuned)}",
            evidence_names(table.tuned),
        )


_FUNCTIONS = {
    MISSING_CELLS_CODE: missing_cells,
    "EQ421": mixed_scales,
    "EQ422": misplaced_cells,
    "EQ423": lower_is_better,
    FEW_DATASETS_CODE: few_datasets,
    "EQ425": unreadable_cells,
    "EQ426": impossible_accuracies,
    "EQ427": missing_units,
    "EQ428": unaccounted_tuning,
}
CHECKS = declared_checks(
    "equipoise.domains.bench", {code: (ScoreTable, function) for code, function in _FUNCTIONS.items()}
)
