"""One system scored: all units and the answerable ones, baselines, users and slices."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from math import nan
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.checks.base import pluralize
from equipoise.config import DEFAULT_STATS, StatsConfig, Ties
from equipoise.domains.places.baselines import BaselineInputs, run_baselines
from equipoise.domains.places.charts import place_charts
from equipoise.domains.places.geography import DistanceErrors, check_coordinates, distance_errors
from equipoise.domains.places.metrics import (
    PlaceCalibration,
    ProbabilityColumns,
    calibrate,
    default_cutoffs,
    frequency_slices,
    label_metrics,
    omitted_cutoffs_note,
    probability_columns,
    ranking_metrics,
    unseen_classes,
    user_means,
)
from equipoise.domains.places.prediction_files import TRUNCATED_NOTE, evidence_from_top_k
from equipoise.domains.places.report import best_baseline, display_metric, in_percent, places_view
from equipoise.domains.places.visits import USER
from equipoise.errors import InputError, ParameterError, ShapeError
from equipoise.evidence.base import as_ids, to_numpy
from equipoise.metrics.labels import ClassF1
from equipoise.runs.evaluate import evaluate
from equipoise.runs.unit_table import RetrievedItem, UnitContent
from equipoise.stats.estimate import result_from_values
from equipoise.stats.pairing import compare_results
from equipoise.stats.slices import Slice, slice_estimates
from equipoise.stats.verdict import DISPLAY, UNIT_NOUN
from equipoise.tasks.classification import ClassificationOutput, classify
from equipoise.types import Finding, Floats, Ids, Ints, Severity, json_value

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from equipoise.domains.places.prediction_files import TopKPredictions
    from equipoise.domains.places.visits import VisitHistory
    from equipoise.evidence.labels import Labels
    from equipoise.report.charts.chart import Chart
    from equipoise.report.view import View
    from equipoise.stats.comparison import Contrast
    from equipoise.stats.result import Result

# The scores of one next-location system.


@dataclass(frozen=True, slots=True)
class TieReport:
    """The number of tied scores, and the range of a metric over all tie orders."""

    targets: int
    tops: int
    metric: str
    low: float
    high: float


@dataclass(frozen=True)
class PlaceScores:
    """Scores of all units and of the answerable ones, with baselines, users, slices, calibration and distances.

    ``answerable`` is None if the training classes are unknown, or no target was in training, ``calibration``
    if the scores of all classes are unknown, ``distances`` without coordinates. ``against_baseline`` is the system
    minus the best baseline on the first metric; None if that is the random one, whose scores are not per unit.
    """

    classified: ClassificationOutput = field(repr=False)
    all: Result
    answerable: Result | None
    baselines: Mapping[str, Mapping[str, float]]
    answerable_baselines: Mapping[str, Mapping[str, float]]
    by_user: Result | None
    slices: tuple[Slice, ...]
    columns: Mapping[str, Ids] = field(repr=False)
    ties: TieReport
    calibration: PlaceCalibration | None = None
    distances: DistanceErrors | None = None
    guesses: Mapping[str, ClassificationOutput] = field(default_factory=dict, repr=False)
    against_baseline: Contrast | None = None
    findings: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def system(self) -> str:
        """The name of the system."""
        return self.all.system

    @property
    def partly_answerable(self) -> bool:
        """Whether some units are answerable and some are not."""
        return self.answerable is not None and self.answerable is not self.all

    @property
    def percent(self) -> dict[str, float]:
        """The scores of all units in percent."""
        return {display_metric(name): 100 * estimate.value for name, estimate in self.all.estimates.items()}

    @property
    def all_notes(self) -> tuple[str, ...]:
        """Notes on cutoffs and calibration, and on the answerable units."""
        return (*self.notes, self._about_answers())

    def _about_answers(self) -> str:
        if self.partly_answerable:
            n_unseen = int(np.count_nonzero(~self.classified.answerable))
            verb = "does" if n_unseen == 1 else "do"
            return f"{n_unseen:,} of {len(self.classified):,} targets {verb} not occur in training"
        if self.answerable is not None:
            return "All targets occur in training"
        if not self.classified.answerable.any():
            return "No target occurs in training"
        return "Without a history, training counts or unseen classes, it is unknown which targets occur in training"

    def charts(self) -> tuple[Chart, ...]:
        """Accuracy over k, ranks, reliability, confusion of the most frequent places, and a map of the distances."""
        return place_charts(self).all

    def view(self, *, charts: bool = False) -> View:
        """The view of the scores, for the terminal or, with ``charts``, for a page."""
        return places_view(self, place_charts(self) if charts else None)

    def details(self) -> dict[str | int, UnitContent]:
        """The row of each unit in the report: target, slices, and the first prediction."""
        labels = self.classified.labels
        rows = zip(*(column.tolist() for column in self.columns.values()), strict=True)
        slices = list(rows) if self.columns else [()] * len(labels)
        names = labels.classes
        return {
            unit: UnitContent(
                f"true place {names[true]}",
                slices=dict(zip(self.columns, slices[row], strict=True)),
                retrieved=(RetrievedItem(f"place {names[predicted]}", "", relevant=true == predicted),),
            )
            for row, (unit, true, predicted) in enumerate(
                zip(labels.unit_ids.tolist(), labels.true.tolist(), labels.predicted.tolist(), strict=True)
            )
        }

    def to_dict(self) -> dict[str, Any]:
        """Plain values: fractions, each with its unit, and percentages."""
        return {
            "system": self.system,
            "classes": self.classified.classes,
            "percent": self.percent,
            "all": self.all.to_dict(),
            "answerable": None if self.answerable is None else self.answerable.to_dict(),
            "baselines": {name: dict(scores) for name, scores in self.baselines.items()},
            "against_baseline": json_value(self.against_baseline),
            "answerable_baselines": {name: dict(scores) for name, scores in self.answerable_baselines.items()},
            "by_user": None if self.by_user is None else self.by_user.to_dict(),
            "calibration": None if self.calibration is None else self.calibration.to_dict(),
            "distances": None if self.distances is None else self.distances.to_dict(),
            "slices": [{"name": part.name, "slice": part.value, **part.estimate.to_dict()} for part in self.slices],
            "ties": {
                "targets": self.ties.targets,
                "tops": self.ties.tops,
                "metric": self.ties.metric,
                "pessimistic": self.ties.low,
                "optimistic": self.ties.high,
            },
            "notes": list(self.all_notes),
        }


SEEN = "target in training"
FREQUENCY = "training visits of the target"


def score_places(
    logits: ArrayLike,
    targets: ArrayLike,
    *,
    padding: ArrayLike | None = None,
    unseen: ArrayLike | None = None,
    train_counts: ArrayLike | None = None,
    users: ArrayLike | None = None,
    slices: Mapping[str, Any] | None = None,
    history: VisitHistory | None = None,
    previous: ArrayLike | None = None,
    coordinates: ArrayLike | None = None,
    calibration: bool = True,
    probabilities: bool | None = None,
    unit_ids: ArrayLike | None = None,
    ks: Iterable[int] | None = None,
    system: str = "system",
    config: StatsConfig = DEFAULT_STATS,
) -> PlaceScores:
    """Score a matrix of logits against the true class of each row, together with baselines.

    The random baseline is always included, the majority baseline with ``train_counts`` or a ``history``, the most
    frequent places of each user with a ``history`` and ``users``, and the Markov chain with ``previous`` as well.

    Parameters
    ----------
    logits
        One row per unit, one column per class.
    targets
        The true class of each row.
    padding
        Columns that are not classes.
    unseen
        Classes that do not occur in training. Scores are reported for all units and for the answerable ones, whose
        target occurs in training.
    train_counts
        Number of training examples per class; classes with 0 are unseen.
    users
        The user of each row. Visits of one user are treated as dependent, and ``by_user`` gives every user the same
        weight.
    slices
        Columns by name, such as the hour.
    history
        Visits in training, for the baselines.
    previous
        The previous place of each row, -1 if there is none.
    coordinates
        Latitude and longitude of each class in degrees, for distances between predicted and true places.
    calibration
        Whether log loss, Brier score and calibration errors are computed, which reads the logits once more.
    probabilities
        Whether the scores are probabilities, not logits. By default the first rows decide.
    unit_ids
        Ids of the rows.
    ks
        Cutoffs of the accuracy. The defaults are 1, 3, 5 and 10, without those above the number of classes; a given
        cutoff above it is an error.
    system
        The name of the model in the result.
    config
        Confidence level, resamples, seed and ties. Clusters are given as ``users``.

    Returns
    -------
    PlaceScores
        Results for all units and for the answerable ones, baselines, slices, calibration, distances and findings.

    Examples
    --------
    >>> scores = score_places(np.eye(4)[[0, 1, 2, 2]], [0, 1, 2, 3], ks=(1, 3), train_counts=[5, 1, 1, 0])
    >>> scores.all["Acc@1"].value, scores.answerable["Acc@1"].value
    (0.75, 1.0)
    """
    cutoffs = None if ks is None else tuple(ks)
    counts = _counts(train_counts, history)
    shape = getattr(logits, "shape", (0, 0))
    if counts is not None and len(shape) == 2 and len(counts) != shape[1]:
        raise ShapeError(
            f"there are {len(counts)} training counts for {shape[1]} classes", hint="give one count per class"
        )
    hidden = None if unseen is None and counts is None else unseen_classes(unseen, counts)
    classified = classify(logits, targets, padding=padding, unseen=hidden, unit_ids=unit_ids, ks=cutoffs or ())
    columns: ProbabilityColumns | None = None
    notes: tuple[str, ...] = ()
    if calibration and len(classified):
        columns, notes = _probability_columns(logits, classified, padding, cutoffs, probabilities)
    return score_evidence(
        classified,
        probability=columns,
        coordinates=coordinates,
        notes=notes,
        train_counts=counts,
        padding=padding,
        users=users,
        slices=slices,
        history=history,
        previous=previous,
        split=hidden is not None,
        ks=cutoffs,
        system=system,
        config=config,
    )


def on_device(matrix: Any, device: str) -> Any:
    """The logits as a tensor on the device, so that they are ranked there."""
    from equipoise.geometry.gpu_search import torch_device

    where = torch_device(device)
    import torch

    return torch.from_numpy(np.array(matrix)).to(where)


def _probability_columns(
    logits: Any,
    classified: ClassificationOutput,
    padding: Any,
    cutoffs: tuple[int, ...] | None,
    probabilities: bool | None,
) -> tuple[ProbabilityColumns | None, tuple[str, ...]]:
    """The probabilities; None and a note if the scores have none, unless ``probabilities`` says what they are."""
    ks = default_cutoffs(classified.classes) if cutoffs is None else cutoffs
    scores = logits if hasattr(logits, "shape") else np.asarray(logits)
    try:
        columns = probability_columns(
            scores, classified.labels.true, padding=padding, ks=sorted({1, *ks}), probabilities=probabilities
        )
    except InputError as error:
        if probabilities is not None:
            raise
        return None, (f"Calibration was left out: {error.message}",)
    return columns, ()


def score_top_k(
    top: TopKPredictions,
    *,
    classes: int | None = None,
    unseen: ArrayLike | None = None,
    train_counts: ArrayLike | None = None,
    history: VisitHistory | None = None,
    ks: Iterable[int] | None = None,
    **others: Any,
) -> PlaceScores:
    """Score lists of the k best classes of each unit, if the logits are not available.

    Parameters
    ----------
    top
        The predicted classes and the true class of each unit.
    classes
        Number of classes, for the chance level.
    unseen
        As in ``score_places``.
    train_counts
        As in ``score_places``.
    history
        As in ``score_places``.
    ks
        Cutoffs of the accuracy. Default cutoffs beyond the shortest list are left out with a note.
    **others
        Further options of ``score_places``.

    Returns
    -------
    PlaceScores
        As of ``score_places``.

    Examples
    --------
    >>> from equipoise.places import TopKPredictions
    >>> top = TopKPredictions("t", [2, 1], [[2, 1, 0], [0, 1, 2]])
    >>> score_top_k(top, classes=9, ks=(1, 3)).all["Acc@1"].value
    0.5
    """
    cutoffs = (default_cutoffs(top.depth) or (1,)) if ks is None else tuple(ks)
    counts = _counts(train_counts, history)
    hidden = None if unseen is None and counts is None else unseen_classes(unseen, counts)
    if classes is None and counts is not None:
        classes = len(counts)
    evidence = evidence_from_top_k(top, classes=classes, unseen=hidden, ks=cutoffs)
    if counts is not None and len(counts) != evidence.classes:
        raise ShapeError(
            f"there are {len(counts)} training counts for {evidence.classes} classes", hint="give one per class"
        )
    if others.get("users") is None:
        named = {name.casefold(): column for name, column in top.columns.items()}
        others["users"] = next((named[name] for name in USER if name in named), None)
    scores = score_evidence(
        evidence,
        train_counts=counts,
        history=history,
        split=hidden is not None,
        ks=cutoffs,
        **others,
    )
    omitted = omitted_cutoffs_note(top.depth, f"the shortest list has {pluralize(top.depth, 'place')}")
    truncated = () if evidence.ranking.complete else (TRUNCATED_NOTE,)
    return replace(scores, notes=(*truncated, *(omitted if ks is None else ()), *scores.notes))


def score_evidence(
    classified: ClassificationOutput,
    *,
    train_counts: Ints | None = None,
    padding: ArrayLike | None = None,
    users: ArrayLike | None = None,
    slices: Mapping[str, Any] | None = None,
    history: VisitHistory | None = None,
    previous: ArrayLike | None = None,
    split: bool = True,
    ks: Iterable[int] | None = None,
    system: str = "system",
    config: StatsConfig = DEFAULT_STATS,
    probability: ProbabilityColumns | None = None,
    coordinates: ArrayLike | None = None,
    notes: tuple[str, ...] = (),
) -> PlaceScores:
    """``score_places`` for classified units; ``split`` tells whether the training classes are known."""
    if not len(classified):
        raise InputError("there are no rows to score", hint="check the step that writes the logits")
    if config.clusters is not None:
        raise ParameterError("the clusters of next-location scores are the users", hint="give them as users=")
    classes = classified.classes
    cutoffs = default_cutoffs(classes) if ks is None else tuple(ks)
    user_ids = None if users is None else _column(users, classified, "users")
    columns = {name: _column(column, classified, name) for name, column in (slices or {}).items()}
    if train_counts is not None:
        columns[FREQUENCY] = frequency_slices(train_counts[classified.labels.true])
    if split:
        columns[SEEN] = np.where(classified.answerable, "yes", "no")
    result = _result(classified, cutoffs, user_ids, system, config)
    index = np.flatnonzero(classified.answerable)
    partly = split and 0 < len(index) < len(classified)
    baseline_inputs = BaselineInputs(padding, train_counts, history, user_ids, previous)
    baselines = run_baselines(classified, baseline_inputs, cutoffs)
    guesses = {name: guess for name, guess in baselines.items() if isinstance(guess, ClassificationOutput)}
    points = None if coordinates is None else check_coordinates(coordinates, len(classified.labels.classes))
    baseline_scores = {name: _baseline_scores(guess, cutoffs, config) for name, guess in baselines.items()}
    return PlaceScores(
        classified=classified,
        all=result,
        answerable=_result(
            classified.take(index), cutoffs, user_ids if user_ids is None else user_ids[index], system, config
        )
        if partly
        else (result if split and len(index) else None),
        baselines=baseline_scores,
        answerable_baselines={
            name: _baseline_scores(
                guess.take(index) if isinstance(guess, ClassificationOutput) else guess, cutoffs, config
            )
            for name, guess in baselines.items()
            if partly
        },
        by_user=None if user_ids is None else _by_user(result, user_ids, config),
        slices=_slices(result, columns),
        columns=columns if user_ids is None else {"user": user_ids, **columns},
        ties=_tie_report(classified, cutoffs[0]),
        calibration=None if probability is None else calibrate(probability, classified, user_ids, system, config),
        distances=None if points is None else distance_errors(classified, guesses, points, user_ids, system, config),
        guesses=guesses,
        against_baseline=_against_baseline(result, baseline_scores, guesses, replace(config, clusters=user_ids)),
        findings=result.findings,
        notes=(
            *notes,
            *(omitted_cutoffs_note(classes, f"there are {classes} places") if ks is None else ()),
            *_new_users_note(history, user_ids),
        ),
    )


def _new_users_note(history: VisitHistory | None, users: Ids | None) -> tuple[str, ...]:
    """The number of units of users that are not in the history, so that per-user baselines have no data for them."""
    if history is None or users is None:
        return ()
    n_unknown = int(np.count_nonzero(history.codes_of(users) < 0))
    return (f"{n_unknown:,} of {len(users):,} visits are by users without training visits",) if n_unknown else ()


def _counts(train_counts: Any, history: VisitHistory | None) -> Ints | None:
    """The number of occurrences of each class in training."""
    if train_counts is None:
        return None if history is None else history.counts
    counts = to_numpy(train_counts)
    if counts.ndim != 1 or counts.dtype.kind not in "iu" or (counts < 0).any():
        raise InputError(
            "the training counts are not one non-negative integer per class",
            hint="count the targets of the training data: numpy.bincount(y_train, minlength=classes)",
        )
    return counts.astype(np.int64)


def _column(values: Any, classified: ClassificationOutput, name: str) -> Ids:
    column = as_ids(to_numpy(values), 0)
    if column.shape != (len(classified),):
        raise ShapeError(f"there are {len(column)} {name} for {len(classified)} rows", hint="give one for each row")
    return column


def _result(
    classified: ClassificationOutput, cutoffs: tuple[int, ...], users: Ids | None, system: str, config: StatsConfig
) -> Result:
    """Metrics of ranks and of first classes in one result; its evidence is the ranking."""
    ranks = evaluate(
        classified.ranking,
        list(ranking_metrics(cutoffs).values()),
        system=system,
        config=replace(config, clusters=users),
    )
    evidence, sorted_users = _in_content_order(classified.labels, users)
    labels = evaluate(
        evidence, list(label_metrics().values()), system=system, config=replace(config, clusters=sorted_users)
    )
    chances = {ClassF1("micro").name: 1.0 / classified.classes}  # of the baseline that orders the places at random
    by_label = {name: replace(estimate, chance=chances.get(name, nan)) for name, estimate in labels.estimates.items()}
    estimates = {**ranks.estimates, **by_label}
    core_findings = (in_percent(finding, estimates) for finding in (*ranks.findings, *labels.findings))
    findings = tuple(dict.fromkeys((*core_findings, *_tied_tops(classified, ranks.system))))
    display = {"cluster": "user", "percent": {name: display_metric(name) for name in estimates}}
    settings = {**ranks.settings, UNIT_NOUN: "visit", DISPLAY: display}
    return replace(ranks, estimates=estimates, findings=findings, settings=settings)


def _against_baseline(
    result: Result,
    baselines: Mapping[str, Mapping[str, float]],
    guesses: Mapping[str, ClassificationOutput],
    config: StatsConfig,
) -> Contrast | None:
    """The paired difference to the best baseline on the first metric; resampling and test keep users together."""
    metric = result.names[0]
    best = best_baseline(baselines, metric)
    if best not in guesses:
        return None
    if config.test == "mcnemar" and config.clusters is not None:
        raise ParameterError(
            f"McNemar's test of the difference from the baseline {best} cannot take users into account",
            hint="use the test 'randomisation'",
        )
    name = f"{best} (baseline)"
    baseline = evaluate(guesses[best].ranking, metric, system=name, config=config)
    return compare_results([result, baseline], metrics=[metric], config=replace(config, clusters=None)).contrast(
        result.system, name
    )


def _in_content_order(labels: Labels, users: Ids | None) -> tuple[Labels, Ids | None]:
    """Labels and users sorted by content: the resamples of F1 then depend neither on the order of rows nor on ids."""
    keys = [labels.predicted, labels.true]
    if users is not None:
        keys.append(np.unique(users, return_inverse=True)[1].reshape(-1))
    order = np.lexsort(keys)
    ordered = replace(labels.take(order), unit_ids=np.arange(len(order)))
    return ordered, None if users is None else users[order]


def _baseline_scores(
    guess: ClassificationOutput | Mapping[str, float], cutoffs: tuple[int, ...], config: StatsConfig
) -> dict[str, float]:
    """The scores of a baseline by metric."""
    if isinstance(guess, Mapping):
        return dict(guess)
    ranking = guess.ranking.ordered(config.ties)
    values = {metric.name: metric.measure(ranking).value for metric in ranking_metrics(cutoffs).values()}
    return values | {metric.name: metric.measure(guess.labels).value for metric in label_metrics().values()}


def _by_user(result: Result, users: Ids, config: StatsConfig) -> Result:
    names, means = user_means(dict(result.per_unit), users)
    columns: dict[str, Floats] = {name: np.clip(column, 0.0, 1.0) for name, column in means.items()}
    return result_from_values(result.system, names, columns, config=config)


def _slices(result: Result, columns: Mapping[str, Ids]) -> tuple[Slice, ...]:
    if not columns:
        return ()
    rows = zip(*(column.tolist() for column in columns.values()), strict=True)
    properties = {
        unit: dict(zip(columns, row, strict=True)) for unit, row in zip(result.unit_ids.tolist(), rows, strict=True)
    }
    return slice_estimates(result, result.names[0], properties)


def _tie_report(classified: ClassificationOutput, k: int) -> TieReport:
    metric = ranking_metrics([k])[f"acc@{k}"]
    ends = [metric.measure(classified.ranking.ordered(order)).value for order in (Ties.PESSIMISTIC, Ties.OPTIMISTIC)]
    return TieReport(
        targets=int(np.count_nonzero(classified.ranking.tied)),
        tops=int(np.count_nonzero(classified.tied_top)),
        metric=metric.name,
        low=min(ends),
        high=max(ends),
    )


def _tied_tops(classified: ClassificationOutput, system: str) -> tuple[Finding, ...]:
    """Tied first predictions are decided by class code, which affects F1: reported as tied scores."""
    tied = int(np.count_nonzero(classified.tied_top))
    if not tied:
        return ()
    return (
        Finding(
            code="EQ301",
            severity=Severity.TIP,
            subject=system,
            message=f"{pluralize(tied, 'visit')} of {len(classified):,} {'has' if tied == 1 else 'have'} several "
            "places with the largest score; F1 uses the one with the lowest class number",
            hint="keep more digits of the scores (float32, no rounding), or break ties in the model itself",
            title="several places with the largest score",
            evidence=(f"first such visit: {classified.ranking.unit_ids[np.argmax(classified.tied_top)]}",),
        ),
    )
