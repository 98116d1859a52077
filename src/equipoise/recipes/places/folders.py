"""Folders of seeds: which models they belong to, and the results that lie in them.

A seed is a run directory, a folder that holds one (as ``eq places score -o`` leaves it), or a folder with
``logits.npy`` and ``targets.npy``. A model is the folder around its seeds, or has a name of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import nan
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equipoise.data.arrays import read_array, read_matrix
from equipoise.errors import DuplicateError, InputError, PairingError, ParameterError, ShapeError, StoreError
from equipoise.evidence.base import as_ids
from equipoise.metrics.base import Metric
from equipoise.recipes.places.figures import default_cutoffs, label_figures, ranking_figures
from equipoise.recipes.places.frequency import never_seen
from equipoise.run.folder import MANIFEST
from equipoise.run.store import read_run
from equipoise.stats.interval import Interval
from equipoise.stats.result import Estimate, Result
from equipoise.tasks.classify import Classified, classify
from equipoise.types import Ids

LOGITS, TARGETS = "logits.npy", "targets.npy"
USERS = ("user.npy", "users.npy")
COUNTS = ("train_counts.npy", "counts.npy")
ANSWERABLE = "-answerable"
"""How the run of the answerable units is called, beside that of all."""
Folders = dict[str, dict[str, Path]]
"""The folder of each seed of each model."""


def seed_folders(words: Sequence[str]) -> Folders:
    """The models and their seeds, in the order given; a word is a folder or ``NAME=folder``."""
    given = [_named(word) for word in words]
    homes = {name or folder.resolve().parent for name, folder in given}
    # Folders side by side that are no seeds themselves are models, with their seeds inside.
    side_by_side = len(homes) == 1 and not any(name or _is_seed(folder) for name, folder in given)
    groups: dict[str | Path, list[Path]] = {}
    for name, folder in given:
        whole = folder.resolve()
        groups.setdefault(name or (whole if side_by_side else whole.parent), []).append(folder)
    last = [key if isinstance(key, str) else key.name for key in groups]
    return {
        name if last.count(name) == 1 else str(key): _seeds(folders)
        for name, (key, folders) in zip(last, groups.items(), strict=True)
    }


def _named(word: str) -> tuple[str, Path]:
    name, equals, path = word.partition("=")
    if not equals or Path(word).exists():
        name, path = "", word
    folder = Path(path)
    if not folder.is_dir():
        fact = "is a file, not a folder" if folder.exists() else "is not there"
        raise StoreError(
            f"{path} {fact}", hint="name the folders of seeds: eq places compare a/seed*/ b/seed*/"
        )
    return name, folder


def _is_seed(folder: Path) -> bool:
    """Whether a run or logits lie in the folder itself."""
    return (folder / MANIFEST).is_file() or ((folder / LOGITS).is_file() and (folder / TARGETS).is_file())


def _inside(folder: Path) -> list[Path]:
    """What lies in a folder that is no seed itself: runs, or seeds; the answerable ones go with theirs."""
    below = sorted(each for each in folder.iterdir() if each.is_dir() and not each.name.startswith("."))
    names = {each.name for each in below}
    paired = {name for name in names if name.removesuffix(ANSWERABLE) in names - {name}}
    return [each for each in below if each.name not in paired and (_is_seed(each) or _inside(each))]


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
        for each in inside if len(inside) > 1 else [folder]:
            name = each.resolve().name
            if name in seeds:
                raise DuplicateError(
                    f"two seeds of one model are called {name}: {seeds[name]} and {each}",
                    hint="write NAME=folder to say which belong together",
                )
            seeds[name] = each
    return seeds


@dataclass(frozen=True)
class Reading:
    """What the folders leave open: columns that are no classes, what was seen in training, and the users."""

    padding: Sequence[int] = ()
    unseen: Sequence[int] = ()
    train_counts: NDArray[Any] | None = None
    users: NDArray[Any] | None = None
    answerable: bool = False
    cautions: list[str] = field(default_factory=list)

    def read(self, models: Folders) -> dict[str, dict[str, Result]]:
        """The result of every seed; folders with logits must have the same targets."""
        results: dict[str, dict[str, Result]] = {}
        first: tuple[Path, NDArray[Any]] | None = None
        for model, seeds in models.items():
            for seed, folder in seeds.items():
                result, targets = self._seed(_whole(folder, answerable=self.answerable), model)
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
        stored = read_run(folder, evidence=False)
        self.cautions.extend([stored.caution] if stored.caution else [])
        result = replace(stored.result, system=model)
        if self.users is not None:
            result = replace(result, clusters=self._users(self.users, len(result.unit_ids), folder))
        return result, None

    def _from_logits(self, folder: Path, model: str) -> tuple[Result, NDArray[Any]]:
        logits, targets = read_matrix(folder / LOGITS), read_array(folder / TARGETS, ndim=1)
        counts = self.train_counts if self.train_counts is not None else _optional(folder, COUNTS)
        hidden = never_seen(list(self.unseen), counts) if self.unseen or counts is not None else None
        found = classify(logits, targets, padding=list(self.padding) or None, unseen=hidden)
        given = self.users if self.users is not None else _optional(folder, USERS)
        users = None if given is None else self._users(given, len(targets), folder)
        if self.answerable:
            if hidden is None:
                raise ParameterError(
                    f"nobody told which targets of {folder} were seen in training",
                    hint="give --train-counts counts.npy or --unseen CLASS",
                )
            kept = np.flatnonzero(found.answerable)
            found, users = found.take(kept), None if users is None else users[kept]
        return measured(found, users, model), targets

    def _users(self, users: NDArray[Any], units: int, folder: Path) -> Ids:
        if len(users) != units:
            raise ShapeError(f"there are {len(users)} users for {units} units of {folder}", hint="one a unit")
        return as_ids(users, units)


def measured(classified: Classified, users: Ids | None, system: str) -> Result:
    """All figures of the field, without intervals: over seeds and users these are made later."""
    if not len(classified):
        raise InputError(f"{system} has no units to be scored", hint="check the targets")
    unknown = Interval.unknown("one of several seeds")
    estimates, columns = {}, {}
    for evidence, metrics in (
        (classified.ranking, ranking_figures(default_cutoffs(classified.classes))),
        (classified.labels, label_figures()),
    ):
        for metric in metrics.values():
            found = metric.measure(evidence)
            estimates[metric.name] = _estimate(metric, found.value, unknown, len(classified))
            if found.per_unit is not None:
                columns[metric.name] = found.per_unit
    return Result(system, classified.ranking.unit_ids, estimates, columns, clusters=users)


def _estimate(metric: Metric[Any], value: float, unknown: Interval, n: int) -> Estimate:
    return Estimate(metric.name, value, unknown, n, 0, nan, metric.better, metric.unit)


def _whole(folder: Path, *, answerable: bool) -> Path:
    """Where the result of a seed lies: the folder itself, or the one run in it."""
    chosen = folder if _is_seed(folder) else _inside(folder)[0]
    if not answerable or not (chosen / MANIFEST).is_file():
        return chosen
    part = chosen.with_name(f"{chosen.name}{ANSWERABLE}")
    if not (part / MANIFEST).is_file():
        raise StoreError(
            f"{chosen} has no run of its answerable units beside it",
            hint="eq places score --train-counts counts.npy -o FOLDER writes one where some are not",
        )
    return part


def _optional(folder: Path, names: Sequence[str]) -> NDArray[Any] | None:
    found = [folder / name for name in names if (folder / name).is_file()]
    return read_array(found[0], ndim=1) if found else None
