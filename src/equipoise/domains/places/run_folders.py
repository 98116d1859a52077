"""Folders of scored systems: the seeds of each model in them, and the page of ``eq report``.

The page is in percent and has the metric names of the terminal. It has the view of every system and, for several
systems, their comparison first, over seeds and users if the runs are named MODEL-seedN. Full reports of all visits and
of the answerable ones, with every pair, slice and visit, are next to it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from math import nan
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from equipoise.checks.base import join_names
from equipoise.domains.places.charts import MOST_CUTOFFS
from equipoise.domains.places.metrics import (
    accuracy_curve,
    default_cutoffs,
    label_metrics,
    ranking_metrics,
    unseen_classes,
)
from equipoise.domains.places.report import display_metric, systems_view
from equipoise.domains.places.seed_comparison import compare_across_seeds
from equipoise.errors import (
    DuplicateError,
    InputError,
    PairingError,
    ParameterError,
    ShapeError,
    StoreError,
    UnknownNameError,
)
from equipoise.evidence.base import as_ids
from equipoise.evidence.ranking import Ranking
from equipoise.io.arrays import read_array, read_matrix
from equipoise.io.atomic import write_text
from equipoise.metrics.parser import parse_metrics
from equipoise.progress import portion
from equipoise.report.build_view import compare_runs, data_and_dates, read_runs
from equipoise.report.charts.chart import slug, unique_names, write_charts
from equipoise.report.charts.curves import accuracy_at_k_chart
from equipoise.report.html.render import render_views
from equipoise.report.publish import ReportOptions, write_report
from equipoise.report.view import View
from equipoise.runs.evaluate import with_metrics
from equipoise.runs.executors import ignore_progress
from equipoise.runs.manifest import MANIFEST, VIEW, read_manifest
from equipoise.runs.progress_file import ProgressCallback
from equipoise.runs.run_folder import load_run
from equipoise.stats.intervals import Interval
from equipoise.stats.result import Estimate, Result
from equipoise.stats.verdict import DISPLAY, UNIT_NOUN
from equipoise.tasks.classification import ClassificationOutput, classify, classify_on_device

if TYPE_CHECKING:
    from equipoise.metrics.parser import AnyMetric
    from equipoise.report.charts.chart import Chart
    from equipoise.report.view import RunsView
    from equipoise.types import Ids

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
    if len(named_folders) == 1 and not _is_seed(named_folders[0][1]):
        models = _inside(named_folders[0][1])
        if not any(map(_is_seed, models)):
            named_folders = [("", folder) for folder in models]
    by_name = _models_by_name(named_folders)
    if by_name:
        return by_name
    parents = {name or folder.resolve().parent for name, folder in named_folders}
    # Sibling folders that are not seeds are models, with their seeds inside.
    side_by_side = len(parents) == 1 and not any(name or _is_seed(folder) for name, folder in named_folders)
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
        raise StoreError(
            f"{path} {fact}",
            hint="name the folders of seeds: eq places compare a/seed*/ b/seed*/; eq places results reads files",
        )
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
                hint="eq places score -o FOLDER writes a run; eq audit FILE checks a file of published scores",
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
    """Settings for folders of logits: padding columns, training classes, and users.

    ``metrics`` are computed in addition to those that every seed has.
    """

    metrics: Sequence[str] = ()
    padding: Sequence[int] = ()
    unseen: Sequence[int] = ()
    train_counts: NDArray[Any] | None = None
    users: NDArray[Any] | None = None
    answerable: bool = False
    device: str | None = None
    cautions: list[str] = field(default_factory=list)

    def read(self, models: Folders, progress: ProgressCallback = ignore_progress) -> dict[str, dict[str, Result]]:
        """The result of every seed; folders with logits must have the same targets."""
        results: dict[str, dict[str, Result]] = {}
        first: tuple[Path, NDArray[Any]] | None = None
        for model, seeds in models.items():
            for seed, folder in seeds.items():
                progress(f"reading {folder}")
                result, targets = self._seed(_result_folder(folder, answerable=self.answerable), model)
                if targets is not None and first is not None and not np.array_equal(targets, first[1]):
                    raise PairingError(
                        f"{folder} and {first[0]} have different targets, so their rows are not the same visits",
                        hint="all seeds must predict the same rows in the same order",
                    )
                first = first or (None if targets is None else (folder, targets))
                results.setdefault(model, {})[seed] = result
        return results

    def _seed(self, folder: Path, model: str) -> tuple[Result, NDArray[Any] | None]:
        if not (folder / MANIFEST).is_file():
            return self._from_logits(folder, model)
        stored = load_run(folder, evidence=False)
        if _lacking(stored.result, self.metrics):
            stored = load_run(folder)
            extra = [metric.name for metric in _lacking(stored.result, self.metrics)]
            stored = replace(stored, result=with_metrics(stored.result, [*stored.result.names, *extra]))
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
        return evaluate_seed(classified, users, model, self.metrics), targets

    def _users(self, users: NDArray[Any], units: int, folder: Path) -> Ids:
        if len(users) != units:
            raise ShapeError(f"there are {len(users)} users for {units} visits of {folder}", hint="give one per visit")
        return as_ids(users, units)


def _lacking(result: Result | None, names: Sequence[str]) -> list[AnyMetric]:
    """The ranking metrics with these names that a result does not have; others are an error when they are compared."""
    lacking: list[AnyMetric] = []
    for name in names:
        with suppress(UnknownNameError, ParameterError):
            found = parse_metrics(name, evidence=Ranking)
            lacking += [metric for metric in found if result is None or metric.name not in result.estimates]
    return lacking


def evaluate_seed(
    classified: ClassificationOutput, users: Ids | None, system: str, metrics: Sequence[str] = ()
) -> Result:
    """All next-location metrics, without intervals: those over seeds and users are computed later.

    ``metrics`` are further ranking metrics.
    """
    if not len(classified):
        raise InputError(f"{system} has no visits to be scored", hint="check the targets")
    unknown = Interval.unknown("one of several seeds")
    estimates, columns = {}, {}
    ranked = {metric.name: metric for metric in ranking_metrics(default_cutoffs(classified.classes)).values()}
    for evidence, measures in (
        (classified.ranking, ranked | {metric.name: metric for metric in _lacking(None, metrics)}),
        (classified.labels, label_metrics()),
    ):
        for metric in measures.values():
            measured = metric.measure(evidence)
            chance = metric.chance(evidence, np.random.default_rng(0)) if evidence is classified.ranking else nan
            estimates[metric.name] = Estimate(
                metric.name, measured.value, unknown, len(classified), 0, chance, metric.better, metric.unit
            )
            if measured.per_unit is not None:
                columns[metric.name] = measured.per_unit
    display = {"cluster": "user", "percent": {name: display_metric(name) for name in estimates}}
    settings = {UNIT_NOUN: "visit", DISPLAY: display}
    return Result(system, classified.ranking.unit_ids, estimates, columns, clusters=users, settings=settings)


def _result_folder(folder: Path, *, answerable: bool) -> Path:
    """The folder of a seed's result: the folder itself, or the one run in it."""
    chosen = folder if _is_seed(folder) else _inside(folder)[0]
    if not answerable or not (chosen / MANIFEST).is_file():
        return chosen
    part = chosen.with_name(f"{chosen.name}{ANSWERABLE}")
    if not (part / MANIFEST).is_file():
        raise StoreError(
            f"{chosen} has no run of the visits whose target is in the training data",
            hint="eq places score --train-counts counts.npy -o FOLDER writes one if some targets are not",
        )
    return part


def _optional(folder: Path, names: Sequence[str]) -> NDArray[Any] | None:
    files = [folder / name for name in names if (folder / name).is_file()]
    return read_array(files[0], ndim=1) if files else None


# The page of `eq report`.

NamedRuns = Sequence[tuple[str, Path]]
"""The runs of a report, each with its name in the report or an empty string."""


@dataclass(frozen=True)
class PlacesPage:
    """What was written: the decision, the systems, the other pages by title, and warnings about incomplete runs.

    ``not_compared`` is why there is no comparison of several systems.
    """

    headline: str
    systems: tuple[str, ...]
    other_pages: dict[str, Path]
    cautions: tuple[str, ...] = ()
    not_compared: str = ""


def has_views(runs: NamedRuns) -> bool:
    """Whether all of these are runs of ``eq places score``: each has its view, or is the answerable part of one."""
    return bool(runs) and all(
        (path / VIEW).is_file() or (path.with_name(path.name.removesuffix(ANSWERABLE)) / VIEW).is_file()
        for _, path in runs
    )


def write_places_page(
    runs: NamedRuns, output: str | Path, options: ReportOptions, progress: Callable[[str], None] = lambda message: None
) -> PlacesPage:
    """Write the page, and next to it the full reports of all visits and of the answerable ones."""
    target = Path(output)
    scored = [(name, path) for name, path in runs if (path / VIEW).is_file()]
    parts = [(name, path) for name, path in runs if not (path / VIEW).is_file()]
    views = [_named_view(name, path) for name, path in scored or parts]
    by_visits = [*_same_visits("all visits", scored), *_same_visits("visits with known targets", parts)]
    files = {
        title: target.with_name(f"{target.stem}-{slug(title)}{target.suffix or '.html'}") for title, _ in by_visits
    }
    reports: list[RunsView] = []
    for number, (title, group) in enumerate(by_visits):
        progress(f"writing the full report of {title}")
        others = ((other, file.name) for other, file in files.items() if other != title)
        chosen = replace(
            options,
            charts_folder=None,
            view=None,
            title=f"{options.title}: {title}" if options.title else "",
            related=(("overview", target.name), *others),
        )
        with portion(number / (len(by_visits) + 1), (number + 1) / (len(by_visits) + 1)):
            reports.append(write_report(group, files[title], chosen, split=True))
    cautions = [caution for report in reports for caution in report.cautions]
    groups = [group for _, group in _same_visits("all visits", scored)]
    not_compared = "they were scored on different visits" if len(groups) > 1 else ""
    compared: list[View] = []
    contents: dict[str, RunsView] = {}
    for group, report in zip(groups, reports, strict=False):
        if len(group) > 1:
            (view,) = _comparison(group, options)
            compared.append(view)
            names = [system.name for system in report.systems]
            if set(names) == set(view.answer.columns[1].cells):
                contents[view.title] = report
                views.sort(key=lambda item: names.index(item.title) if item.title in names else len(names))
    views = [*compared, *views]
    if options.charts_folder is not None:
        write_charts(unique_names([chart for view in views for chart in view.charts]), options.charts_folder)
    progress("writing the page")
    systems = tuple(view.title for view in views[-len(scored or parts) :])
    title = options.title or f"Next places: {join_names(systems)}"
    links = {view.title: next(iter(files.values())).name for view in views[:1]}
    data = data_and_dates([read_manifest(path) for _, path in runs])
    text = render_views(title, views, links=links, reports=contents, charts=options.charts, subtitle=data)
    write_text(target, text)
    return PlacesPage(views[0].answer.headline, systems, files, tuple(cautions), not_compared)


def _same_visits(part: str, runs: NamedRuns) -> list[tuple[str, NamedRuns]]:
    """The runs in groups that were scored on the same visits, each with its title; several data sets in one folder."""
    groups: dict[tuple[Any, ...], list[tuple[str, Path]]] = {}
    for run in runs:
        ids = load_run(run[1], evidence=False).result.unit_ids
        groups.setdefault(tuple(ids.tolist()), []).append(run)
    if len(groups) < 2:
        return [(part, group) for group in groups.values()]
    return [
        (f"{part} of {join_names([name or path.name for name, path in group])}", group) for group in groups.values()
    ]


def _named_view(name: str, path: Path) -> View:
    view = View.read(path) or View.read(path.with_name(path.name.removesuffix(ANSWERABLE)))
    assert view is not None, "has_views was asked before"
    return replace(view, title=name) if name else view


def _comparison(runs: NamedRuns, options: ReportOptions) -> list[View]:
    """The comparison of the models over seeds, or of the systems; an error if they were scored on other visits."""
    models = _models_by_name(runs)
    if len({len(seeds) for seeds in models.values()}) == 1:
        results = SeedRunReader(metrics=() if options.primary is None else (options.primary,)).read(models)
        return [compare_across_seeds(results, primary=options.primary, config=options.config).view()]
    stored = read_runs(runs, options.primary)
    config = options.config_of(options.config, [run.result for run in stored])
    comparison = compare_runs(stored, primary=options.primary, config=config)
    assert comparison is not None, "there are several runs"
    view = systems_view(comparison, f"{len(runs)} systems by {display_metric(comparison.primary)}")
    return [view.with_charts(_accuracy_charts(runs, comparison.order), "Accuracy over k")]


def _accuracy_charts(runs: NamedRuns, order: Sequence[str]) -> list[Chart]:
    """The accuracy of all systems over k in one chart, best first; none if the ranks are unknown."""
    rankings = {}
    for name, path in runs:
        result = load_run(path).result
        if not isinstance(result.evidence, Ranking) or not result.evidence.complete:
            return []
        rankings[name or result.system] = result.evidence
    curves = {name: accuracy_curve(rankings[name], MOST_CUTOFFS).tolist() for name in order}
    return [accuracy_at_k_chart(curves, percent=True)]
