"""Models that were trained several times, with one seed each: what holds over seeds, and what over users."""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import combinations
from math import nan
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from equipoise.checks.base import join_names
from equipoise.config import DEFAULT_STATS, StatsConfig
from equipoise.domains.places.metrics import (
    default_cutoffs,
    label_metrics,
    ranking_metrics,
    unseen_classes,
    user_means,
)
from equipoise.domains.places.seed_report import ReplicateReportData, SeedDifference, SeedScores, seed_claims
from equipoise.errors import DuplicateError, InputError, PairingError, ParameterError, ShapeError, StoreError
from equipoise.evidence.base import as_ids
from equipoise.io.arrays import read_array, read_matrix
from equipoise.metrics.parser import parse_metrics
from equipoise.runs.manifest import MANIFEST
from equipoise.runs.store import load_run
from equipoise.stats.comparison import Comparison
from equipoise.stats.corrections import CORRECTIONS, adjust
from equipoise.stats.estimate import result_from_values
from equipoise.stats.intervals import Bounds, Interval
from equipoise.stats.pairing import AlignedResults, align_results, compare_results
from equipoise.stats.result import Estimate, Result
from equipoise.stats.seeds import SeedContrast, compare_seeds, summarise_seeds
from equipoise.tasks.classification import ClassificationOutput, classify, classify_on_device

if TYPE_CHECKING:
    from equipoise.metrics.base import Metric
    from equipoise.types import Floats, Ids

SeedResults = Mapping[str, Result]
"""The results of one model by seed."""


@dataclass(frozen=True)
class SeedComparison:
    """Models over seeds and over users.

    ``pooled`` are the results averaged over seeds unit by unit, whose intervals resample users;
    ``by_user`` the same with equal weight per user. ``over_users`` compares the latter by the
    randomisation test. Metrics that are not means over units, such as F1, are compared over seeds only.
    """

    edition: ReplicateReportData
    pooled: Mapping[str, Result]
    by_user: Mapping[str, Result]
    over_users: Comparison | None

    @property
    def rows(self) -> tuple[SeedScores, ...]:
        """Each system on each metric."""
        return self.edition.rows

    @property
    def pairs(self) -> tuple[SeedDifference, ...]:
        """Each pair of systems on each metric."""
        return self.edition.pairs

    def pair(self, a: str, b: str, metric: str) -> SeedDifference:
        """System ``a`` against system ``b`` as they were lined up, on a metric under any of its names."""
        (name,) = (parsed.name for parsed in parse_metrics(metric))
        for row in self.pairs:
            if (row.metric, row.a, row.b) == (name, a, b):
                return row
        raise ParameterError(
            f"there is no pair {a}, {b} on {metric}",
            hint=f"the first pair is {self.pairs[0].a}, {self.pairs[0].b} on {self.pairs[0].metric}",
        )

    def verdict(self) -> str:
        """A sentence for each pair on the primary metric."""
        return " ".join(seed_claims(self.edition))

    def __repr__(self) -> str:
        systems = list(dict.fromkeys(row.system for row in self.rows))
        return f"<SeedComparison of {join_names(systems)}: {self.edition.seeds} seeds, {self.edition.units} units>"

    def to_dict(self) -> dict[str, Any]:
        """Plain values: fractions, with the reason where there is no number."""
        edition = self.edition
        return {
            "unit": "fraction",
            "units": edition.units,
            "people": edition.people,
            "people_count": edition.people_count,
            "seeds": edition.seeds,
            "primary": edition.primary,
            "family": edition.family,
            "systems": [_system(row) for row in edition.rows],
            "pairs": [_pair(row) for row in edition.pairs],
            "verdict": self.verdict(),
            "notes": list(edition.notes),
        }


def compare_across_seeds(
    models: Mapping[str, SeedResults],
    *,
    metrics: Sequence[str] | None = None,
    primary: str | None = None,
    config: StatsConfig = DEFAULT_STATS,
) -> SeedComparison:
    """Compare models that were trained with several seeds each, on the same units.

    Seeds are paired by name if the models have the same ones, otherwise by their order, with a note.

    Parameters
    ----------
    models
        For each model, the results by seed. All results must be of the same units; their clusters are the users.
    metrics
        Metric names; by default those of the results.
    primary
        The metric that decides the order; by default the first one.
    config
        Confidence level, resamples, permutations, seed, test and correction.

    Returns
    -------
    SeedComparison
        Scores and differences over seeds and over users.

    Examples
    --------
    >>> compare_across_seeds({"gru": gru_results, "markov": markov_results}, primary="MRR")  # doctest: +SKIP
    """
    adjust([], config.correction)
    if len(models) < 2:
        raise ParameterError(f"a comparison needs at least two models; {len(models)} was given", hint="add another one")
    lined_up, notes = pair_seeds(models)
    pairing = align_results(
        [replace(result, system=f"{model} {seed}") for model, runs in lined_up.items() for seed, result in runs.items()]
    )
    names = _metrics(pairing.results, metrics, primary)
    pooled = _average_over_seeds(lined_up, pairing, names, config)
    by_user = _by_user(pooled, config)
    permutation, t = (_compare(by_user, test, config) for test in ("randomisation", "t"))
    seeds = len(next(iter(lined_up.values())))
    edition = ReplicateReportData(
        rows=tuple(_row(name, model, lined_up[model], pooled, by_user, config) for name in names for model in lined_up),
        pairs=tuple(row for name in names for row in _pairs(name, lined_up, permutation, t, config)),
        primary=names[0],
        units=len(pairing),
        people="units" if pairing.clusters is None else "users",
        people_count=len(pairing) if pairing.clusters is None else len(set(pairing.clusters.tolist())),
        seeds=seeds,
        family=_family(len(models), config.correction),
        confidence_level=config.confidence_level,
        notes=tuple(notes),
    )
    return SeedComparison(edition, pooled, by_user, permutation)


def pair_seeds(models: Mapping[str, SeedResults]) -> tuple[dict[str, dict[str, Result]], list[str]]:
    """The results of all models under the seeds of the first, and what had to be assumed for that."""
    (first, first_runs), *others = models.items()
    if not first_runs:
        raise ParameterError(f"{first} has no results", hint="give one result a seed")
    lined_up, notes = {first: dict(first_runs)}, []
    for model, results in others:
        if len(results) != len(first_runs):
            raise PairingError(
                f"{first} was run with {len(first_runs)} seeds ({join_names(list(first_runs))}) and {model} with "
                f"{len(results)} ({join_names(list(results))})",
                hint="the tests are paired: run both with every seed, or leave the odd ones out",
            )
        if set(results) == set(first_runs):
            lined_up[model] = {seed: results[seed] for seed in first_runs}
            continue
        lined_up[model] = dict(zip(first_runs, results.values(), strict=True))
        if len(first_runs) > 1:
            pairs = [f"{one} with {other}" for one, other in zip(first_runs, results, strict=True)]
            notes.append(
                f"{first} and {model} name their seeds differently, so they are paired in the order given: "
                f"{join_names(pairs)}."
            )
    return lined_up, notes


def _metrics(results: Sequence[Result], requested: Sequence[str] | None, primary: str | None) -> list[str]:
    """The metrics that every result has, the primary one first."""
    shared = [name for name in results[0].names if all(name in result.names for result in results)]
    if requested:
        names = [results[0][name].metric for name in requested]
        lacking = [name for name in names if name not in shared]
        if lacking:
            raise ParameterError(f"not every seed was scored with {lacking[0]}", hint=f"all have {join_names(shared)}")
        shared = list(dict.fromkeys(names))
    if not shared:
        raise ParameterError("the results share no metric", hint="score every seed with the same metrics")
    lead = shared[0] if primary is None else results[0][primary].metric
    return list(dict.fromkeys([lead, *shared]))


def _average_over_seeds(
    lined_up: Mapping[str, SeedResults], pairing: AlignedResults, names: Sequence[str], config: StatsConfig
) -> dict[str, Result]:
    """One result a model: every unit's mean over seeds, where a metric has values of units at all."""
    means = [name for name in names if pairing.has_parts(name)]
    if not means:
        return {}
    columns = {name: pairing.per_unit(name) for name in means}
    pooled, start = {}, 0
    for model, runs in lined_up.items():
        part = slice(start, start + len(runs))
        start += len(runs)
        values = {name: _clip_fractions(column[:, part].mean(axis=1)) for name, column in columns.items()}
        pooled[model] = result_from_values(
            model,
            pairing.results[0].unit_ids,
            values,
            config=replace(config, clusters=pairing.clusters),
        )
    return pooled


def _clip_fractions(values: Floats) -> Floats:
    """Means of fractions, without what rounding adds beyond 1."""
    return np.clip(values, 0.0, 1.0)


def _by_user(pooled: Mapping[str, Result], config: StatsConfig) -> dict[str, Result]:
    """Every user's mean as one unit; without users, the units themselves."""
    by_model = {}
    for model, result in pooled.items():
        if result.clusters is None:
            by_model[model] = result
            continue
        users, means = user_means(dict(result.per_unit), result.clusters)
        by_model[model] = result_from_values(
            model,
            users,
            {name: _clip_fractions(values) for name, values in means.items()},
            config=config,
        )
    return by_model


def _compare(results: Mapping[str, Result], test: str, config: StatsConfig) -> Comparison | None:
    if not results:
        return None
    return compare_results(
        list(results.values()),
        config=replace(config, test=test),
    )


def _row(
    name: str,
    model: str,
    runs: SeedResults,
    pooled: Mapping[str, Result],
    by_user: Mapping[str, Result],
    config: StatsConfig,
) -> SeedScores:
    figures = [result.estimates[name].value for result in runs.values()]
    summary = summarise_seeds(figures, confidence_level=config.confidence_level, bounds=_bounds(name))
    parts = (comparison[model].estimates.get(name) if comparison else None for comparison in (pooled, by_user))
    return SeedScores(name, model, summary, *parts)


def _pairs(
    name: str,
    lined_up: Mapping[str, SeedResults],
    permutation: Comparison | None,
    t: Comparison | None,
    config: StatsConfig,
) -> list[SeedDifference]:
    """All pairs on one metric; what they are corrected for is this family."""
    figures: dict[str, dict[Hashable, float]] = {
        model: {seed: result.estimates[name].value for seed, result in runs.items()} for model, runs in lined_up.items()
    }
    couples = list(combinations(lined_up, 2))
    contrasts: list[SeedContrast] = [
        compare_seeds(
            figures[a],
            figures[b],
            confidence_level=config.confidence_level,
            n_permutations=config.n_permutations,
            bounds=_bounds(name),
            seed=config.seed,
        )
        for a, b in couples
    ]
    p, p_permutation = (
        adjust([getattr(contrast, field) for contrast in contrasts], config.correction)
        for field in ("p", "p_permutation")
    )
    better = next(iter(next(iter(lined_up.values())).values())).estimates[name].better
    return [
        SeedDifference(
            name,
            a,
            b,
            better,
            contrast,
            float(p[at]),
            float(p_permutation[at]),
            *(
                comparison.contrast(a, b, name) if comparison and name in comparison.metrics else None
                for comparison in (t, permutation)
            ),
        )
        for at, ((a, b), contrast) in enumerate(zip(couples, contrasts, strict=True))
    ]


def _bounds(name: str) -> Bounds:
    return parse_metrics(name)[0].bounds


def _family(models: int, correction: str) -> str:
    if models == 2 or correction == "none":
        return "with one pair per metric, no correction is needed" if models == 2 else "p values are not corrected"
    pairs = models * (models - 1) // 2
    return f"{CORRECTIONS[correction][1]} over the {pairs} pairs of each metric and test"


def _system(row: SeedScores) -> dict[str, Any]:
    return {
        "metric": row.metric,
        "system": row.system,
        "values": list(row.seeds.values),
        "mean": row.seeds.mean,
        "deviation": row.seeds.deviation,
        "seeds": row.seeds.seeds,
        "reason": row.seeds.interval.reason,
        "pooled": None if row.pooled is None else row.pooled.to_dict(),
        "by_user": None if row.by_user is None else row.by_user.to_dict(),
    }


def _pair(row: SeedDifference) -> dict[str, Any]:
    return {
        "metric": row.metric,
        "a": row.a,
        "b": row.b,
        "seeds": {
            "difference": row.seeds.difference,
            "deviation": row.seeds.differences.deviation,
            "low": row.seeds.interval.low,
            "high": row.seeds.interval.high,
            "t_p": row.seeds.p,
            "t_adjusted_p": row.p_seeds,
            "permutation_p": row.seeds.p_permutation,
            "permutation_adjusted_p": row.p_seed_permutation,
            "reason": row.seeds.reason,
        },
        "users": None
        if row.permutation is None or row.t is None
        else {
            "difference": row.permutation.difference,
            "low": row.permutation.interval.low,
            "high": row.permutation.interval.high,
            "n": row.permutation.n,
            "t_p": row.t.p,
            "t_adjusted_p": row.t.adjusted,
            "permutation_p": row.permutation.p,
            "permutation_adjusted_p": row.permutation.adjusted,
        },
    }


# Folders of seeds: the models they belong to, and their results.

LOGITS, TARGETS = "logits.npy", "targets.npy"
USERS = ("user.npy", "users.npy")
COUNTS = ("train_counts.npy", "counts.npy")
ANSWERABLE = "-answerable"
"""The name of the run of the answerable units."""
Folders = dict[str, dict[str, Path]]
"""The folder of each seed of each model."""


def find_seed_runs(words: Sequence[str]) -> Folders:
    """The models and their seeds, in the order given; a word is a folder or ``NAME=folder``."""
    named_folders = [_parse_folder(word) for word in words]
    by_name = _models_by_name(named_folders)
    if by_name:
        return by_name
    homes = {name or folder.resolve().parent for name, folder in named_folders}
    # Sibling folders that are not seeds are models, with their seeds inside.
    side_by_side = len(homes) == 1 and not any(name or _is_seed(folder) for name, folder in named_folders)
    groups: dict[str | Path, list[Path]] = {}
    for name, folder in named_folders:
        resolved = folder.resolve()
        groups.setdefault(name or (resolved if side_by_side else resolved.parent), []).append(folder)
    last = [key if isinstance(key, str) else key.name for key in groups]
    return {
        name if last.count(name) == 1 else str(key): _seeds(folders)
        for name, (key, folders) in zip(last, groups.items(), strict=True)
    }


SEED_NAME = re.compile(r"(?P<model>.+?)[-_.](?P<seed>seed[-_]?\d+)", re.IGNORECASE)
"""The name of a run that states its model and its seed, as ``eq places score`` writes for ``lstm/seed1/logits.npy``."""


def _models_by_name(named_folders: Sequence[tuple[str, Path]]) -> Folders:
    """The models of runs in one folder that are called MODEL-seedN; empty if the folders are not such runs."""
    folders = [folder.resolve() for _, folder in named_folders]
    if len(folders) == 1 and not _is_seed(folders[0]):
        folders = _inside(folders[0])
    matches = [SEED_NAME.fullmatch(folder.name) for folder in folders]
    if any(name for name, _ in named_folders) or len({folder.parent for folder in folders}) != 1:
        return {}
    models: Folders = {}
    for folder, match in zip(folders, matches, strict=True):
        if match is None or not _is_seed(folder):
            return {}
        models.setdefault(match["model"], {})[match["seed"]] = folder
    return models if len(models) > 1 else {}


def _parse_folder(word: str) -> tuple[str, Path]:
    name, equals, path = word.partition("=")
    if not equals or Path(word).exists():
        name, path = "", word
    folder = Path(path)
    if not folder.is_dir():
        fact = "is a file, not a folder" if folder.exists() else "is not there"
        raise StoreError(f"{path} {fact}", hint="name the folders of seeds: eq places compare a/seed*/ b/seed*/")
    return name, folder


def _is_seed(folder: Path) -> bool:
    """Whether the folder itself contains a run or logits."""
    return (folder / MANIFEST).is_file() or ((folder / LOGITS).is_file() and (folder / TARGETS).is_file())


def _inside(folder: Path) -> list[Path]:
    """The runs or seeds in a folder that is not a seed; runs of answerable units belong to theirs."""
    below = sorted(entry for entry in folder.iterdir() if entry.is_dir() and not entry.name.startswith("."))
    names = {entry.name for entry in below}
    paired = {name for name in names if name.removesuffix(ANSWERABLE) in names - {name}}
    return [entry for entry in below if entry.name not in paired and (_is_seed(entry) or _inside(entry))]


def _seeds(folders: Sequence[Path]) -> dict[str, Path]:
    """Each seed by its name; of a folder with several inside, each of them."""
    seeds: dict[str, Path] = {}
    for folder in folders:
        inside = [] if _is_seed(folder) else _inside(folder)
        if not inside and not _is_seed(folder):
            raise StoreError(
                f"{folder} holds neither a run nor {LOGITS} and {TARGETS}",
                hint="eq places score -o FOLDER writes a run",
            )
        for run in inside if len(inside) > 1 else [folder]:
            name = run.resolve().name
            if name in seeds:
                raise DuplicateError(
                    f"two seeds of one model are called {name}: {seeds[name]} and {run}",
                    hint="write NAME=folder to say which belong together",
                )
            seeds[name] = run
    return seeds


@dataclass(frozen=True)
class SeedRunReader:
    """Settings for folders of logits: padding columns, training classes, and users."""

    padding: Sequence[int] = ()
    unseen: Sequence[int] = ()
    train_counts: NDArray[Any] | None = None
    users: NDArray[Any] | None = None
    answerable: bool = False
    device: str | None = None
    cautions: list[str] = field(default_factory=list)

    def read(self, models: Folders) -> dict[str, dict[str, Result]]:
        """The result of every seed; folders with logits must have the same targets."""
        results: dict[str, dict[str, Result]] = {}
        first: tuple[Path, NDArray[Any]] | None = None
        for model, seeds in models.items():
            for seed, folder in seeds.items():
                result, targets = self._seed(_result_folder(folder, answerable=self.answerable), model)
                if targets is not None and first is not None and not np.array_equal(targets, first[1]):
                    raise PairingError(
                        f"{folder} and {first[0]} have other targets, so their rows are not the same units",
                        hint="all seeds must predict the same rows in the same order",
                    )
                first = first or (None if targets is None else (folder, targets))
                results.setdefault(model, {})[seed] = result
        return results

    def _seed(self, folder: Path, model: str) -> tuple[Result, NDArray[Any] | None]:
        if not (folder / MANIFEST).is_file():
            return self._from_logits(folder, model)
        stored = load_run(folder, evidence=False)
        self.cautions.extend([stored.caution] if stored.caution else [])
        result = replace(stored.result, system=model)
        if self.users is not None:
            result = replace(result, clusters=self._users(self.users, len(result.unit_ids), folder))
        return result, None

    def _from_logits(self, folder: Path, model: str) -> tuple[Result, NDArray[Any]]:
        logits, targets = read_matrix(folder / LOGITS), read_array(folder / TARGETS, ndim=1)
        counts = self.train_counts if self.train_counts is not None else _optional(folder, COUNTS)
        hidden = unseen_classes(list(self.unseen), counts) if self.unseen or counts is not None else None
        count_ranks = classify if self.device is None else partial(classify_on_device, self.device)
        classified = count_ranks(logits, targets, padding=list(self.padding) or None, unseen=hidden)
        user_ids = self.users if self.users is not None else _optional(folder, USERS)
        users = None if user_ids is None else self._users(user_ids, len(targets), folder)
        if self.answerable:
            if hidden is None:
                raise ParameterError(
                    f"the training classes of {folder} are unknown",
                    hint="give --train-counts counts.npy or --unseen CLASS",
                )
            answerable = np.flatnonzero(classified.answerable)
            classified, users = classified.take(answerable), None if users is None else users[answerable]
        return evaluate_seed(classified, users, model), targets

    def _users(self, users: NDArray[Any], units: int, folder: Path) -> Ids:
        if len(users) != units:
            raise ShapeError(f"there are {len(users)} users for {units} units of {folder}", hint="give one per unit")
        return as_ids(users, units)


def evaluate_seed(classified: ClassificationOutput, users: Ids | None, system: str) -> Result:
    """All next-location metrics, without intervals: those over seeds and users are computed later."""
    if not len(classified):
        raise InputError(f"{system} has no units to be scored", hint="check the targets")
    unknown = Interval.unknown("one of several seeds")
    estimates, columns = {}, {}
    for evidence, metrics in (
        (classified.ranking, ranking_metrics(default_cutoffs(classified.classes))),
        (classified.labels, label_metrics()),
    ):
        for metric in metrics.values():
            measured = metric.measure(evidence)
            estimates[metric.name] = _estimate(metric, measured.value, unknown, len(classified))
            if measured.per_unit is not None:
                columns[metric.name] = measured.per_unit
    return Result(system, classified.ranking.unit_ids, estimates, columns, clusters=users)


def _estimate(metric: Metric[Any], value: float, unknown: Interval, n: int) -> Estimate:
    return Estimate(metric.name, value, unknown, n, 0, nan, metric.better, metric.unit)


def _result_folder(folder: Path, *, answerable: bool) -> Path:
    """The folder of a seed's result: the folder itself, or the one run in it."""
    chosen = folder if _is_seed(folder) else _inside(folder)[0]
    if not answerable or not (chosen / MANIFEST).is_file():
        return chosen
    part = chosen.with_name(f"{chosen.name}{ANSWERABLE}")
    if not (part / MANIFEST).is_file():
        raise StoreError(
            f"{chosen} has no run of its answerable units",
            hint="eq places score --train-counts counts.npy -o FOLDER writes one where some are not",
        )
    return part


def _optional(folder: Path, names: Sequence[str]) -> NDArray[Any] | None:
    files = [folder / name for name in names if (folder / name).is_file()]
    return read_array(files[0], ndim=1) if files else None
