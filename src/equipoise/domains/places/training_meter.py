"""A meter for training loops: it takes batches, does not store logits, and can be merged across processes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from equipoise.config import Ties
from equipoise.domains.places.metrics import (
    CUTOFFS,
    NDCG_AT,
    default_cutoffs,
    label_metrics,
    omitted_cutoffs_note,
    ranking_metrics,
    user_means,
)
from equipoise.errors import InputError, ParameterError, ShapeError, UnknownNameError
from equipoise.evidence.base import as_host_array, as_ids, to_numpy
from equipoise.evidence.kernels.dispatch import TargetRanks, rank_targets, take_rows
from equipoise.evidence.labels import Labels
from equipoise.evidence.ranking import Ranking
from equipoise.metrics.labels import ClassF1
from equipoise.metrics.ranking import hit_rate, ndcg, reciprocal_rank
from equipoise.tasks.classification import ClassificationOutput, classify

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from equipoise.types import Floats, Ids, Ints

# The functions that next-location projects call for each batch, by the names they have there.

SUM_NAMES = (*(f"correct@{k}" for k in CUTOFFS), "rr", "ndcg", "total")
"""The names of the sums that ``calculate_correct_total_prediction`` returns, in their order."""

MAX_CACHED_CLASSES = 100_000
"""Maximum number of classes for cached gains per rank: about 5 MB."""


def calculate_correct_total_prediction(
    logits: ArrayLike, true_y: ArrayLike, *, ties: Ties | str = Ties.EXPECTED, compiled: bool | None = None
) -> tuple[Floats, Ints, Ints]:
    """Compute the sums, the true labels and the top-1 predictions of a batch.

    The sums are correct@1, correct@3, correct@5, correct@10, the sum of reciprocal ranks, the sum of nDCG@10 and the
    number of rows. With fewer classes than a cutoff, every row is correct at that cutoff.

    Parameters
    ----------
    logits
        One row per unit, one column per class.
    true_y
        The true class of each row.
    ties
        The order of equal scores.
    compiled
        Whether the compiled kernel is used (extra ``fast``); by default once many scores were counted.

    Returns
    -------
    tuple of arrays
        The seven sums, the true labels and the top-1 predictions.

    Examples
    --------
    >>> sums, true, top1 = calculate_correct_total_prediction(np.eye(12)[[3, 4]], [3, 5])
    >>> sums[[0, 6]].tolist(), true.tolist(), top1.tolist()
    ([1.0, 2.0], [3, 5], [3, 4])
    """
    order = ties if isinstance(ties, Ties) else Ties.parse(ties)
    on_gpu = _sums_on_gpu(logits, true_y) if order is Ties.EXPECTED and getattr(logits, "is_cuda", False) else None
    if on_gpu is not None:
        return on_gpu
    ranks = rank_targets(logits, true_y, compiled=compiled)
    sums = _sums(ranks, order)
    return np.array([*sums.tolist(), float(len(ranks.true))]), ranks.true, ranks.predicted


def top_k_accuracy(logits: ArrayLike, targets: ArrayLike, k: int, *, ties: Ties | str = Ties.EXPECTED) -> float:
    """Count the rows whose target is among the k best classes: a count, not a proportion.

    Parameters
    ----------
    logits
        One row per unit, one column per class.
    targets
        The true class of each row.
    k
        The cutoff.
    ties
        The order of equal scores. By default, a tie at the cutoff counts by its expected value.

    Returns
    -------
    float
        The number of correct rows.

    Examples
    --------
    >>> top_k_accuracy([[0.4, 0.3, 0.2], [0.5, 0.3, 0.1]], [1, 0], 2)
    2.0
    """
    ranking = rank_targets(logits, targets, ks=(k,)).ranking().ordered(Ties.parse(ties))
    return float(hit_rate(ranking, k).sum())


def get_mrr(prediction: ArrayLike, targets: ArrayLike, *, ties: Ties | str = Ties.EXPECTED) -> float:
    """Compute the sum (not the mean) of the reciprocal ranks of the targets.

    Parameters
    ----------
    prediction
        Scores: one row per unit, one column per class.
    targets
        The true class of each row.
    ties
        The order of equal scores.

    Returns
    -------
    float
        The sum over the rows.

    Examples
    --------
    >>> get_mrr([[0.4, 0.3, 0.2], [0.5, 0.3, 0.1]], [1, 0])
    1.5
    """
    ranking = rank_targets(prediction, targets).ranking().ordered(Ties.parse(ties))
    return float(reciprocal_rank(ranking).sum())


def get_ndcg(prediction: ArrayLike, targets: ArrayLike, k: int = 10, *, ties: Ties | str = Ties.EXPECTED) -> float:
    """Compute the sum (not the mean) of 1/log2(rank + 1) over the targets that rank within k.

    Parameters
    ----------
    prediction
        Scores: one row per unit, one column per class.
    targets
        The true class of each row.
    k
        The cutoff.
    ties
        The order of equal scores.

    Returns
    -------
    float
        The sum over the rows.

    Examples
    --------
    >>> get_ndcg([[0.4, 0.3, 0.2], [0.5, 0.3, 0.1]], [2, 0], k=3)
    1.5
    """
    if k < 1:
        raise ParameterError(f"k = {k} is not a cutoff", hint="cutoffs are positive integers")
    ranking = rank_targets(prediction, targets).ranking().ordered(Ties.parse(ties))
    return float(ndcg(ranking, k).sum())


def get_performance_dict(
    counts: ArrayLike,
    true_labels: ArrayLike | None = None,
    top1_predictions: ArrayLike | None = None,
    *,
    f1: float | None = None,
) -> dict[str, float]:
    """Compute metrics in percent from the sums of one batch or of several batches.

    Parameters
    ----------
    counts
        The seven sums of ``calculate_correct_total_prediction`` in their order, or a mapping by name.
    true_labels
        True classes, for F1.
    top1_predictions
        Predicted classes, for F1.
    f1
        A weighted F1, as a fraction, that was computed elsewhere.

    Returns
    -------
    dict
        The sums, and acc@1, acc@3, acc@5, acc@10, mrr, ndcg and f1, all in percent. ``f1`` is the weighted F1; it is
        left out if neither labels nor a value are given.

    Examples
    --------
    >>> metrics = get_performance_dict([1, 2, 2, 2, 1.5, 1.63, 2], [0, 1], [0, 2])
    >>> metrics["acc@1"], metrics["mrr"], metrics["f1"], metrics["correct@1"]
    (50.0, 75.0, 50.0, 1.0)
    """
    sums, f1_known = _named_sums(counts)
    if not sums["total"] > 0:
        raise InputError("the sums count no row, so nothing can be a share of them", hint="add a batch first")
    performance = dict(sums)
    performance |= {f"acc@{k}": _percent(sums[f"correct@{k}"] / sums["total"], f"acc@{k}") for k in CUTOFFS}
    performance |= {"mrr": _percent(sums["rr"] / sums["total"], "mrr")}
    performance |= {"ndcg": _percent(sums["ndcg"] / sums["total"], "ndcg")}
    share = f1_known if f1 is None else f1
    if true_labels is not None and top1_predictions is not None:
        share = ClassF1("weighted").measure(Labels.of(true_labels, top1_predictions)).value
    return performance if share is None else performance | {"f1": _percent(share, "f1")}


def _named_sums(counts: Any) -> tuple[dict[str, float], float | None]:
    """The sums by name, and the F1, if given."""
    if isinstance(counts, Mapping):
        lacking = [name for name in SUM_NAMES if name not in counts]
        if lacking:
            raise InputError(f"the sums lack {', '.join(lacking)}", hint=f"they are {', '.join(SUM_NAMES)}")
        f1 = counts.get("f1")
        return {name: float(counts[name]) for name in SUM_NAMES}, None if f1 is None else float(f1)
    column = to_numpy(counts)
    if column.shape != (len(SUM_NAMES),):
        raise ShapeError(
            f"the sums have shape {column.shape}; there are {len(SUM_NAMES)}",
            hint=f"give {', '.join(SUM_NAMES)}",
        )
    return dict(zip(SUM_NAMES, column.astype(float).tolist(), strict=True)), None


def _percent(share: float, name: str) -> float:
    """A share in percent; more than 1 is an error."""
    if not -1e-9 <= share <= 1 + 1e-9:
        raise InputError(
            f"{name} would be {share:g} of the rows, which is more than 1",
            hint="the sums belong to more rows than total, or f1 is already in percent",
        )
    return 100.0 * share


def _sums(ranks: TargetRanks, ties: Ties) -> Floats:
    """All sums except the number of rows: by the histogram of ranks, and one by one for rows with ties."""
    counts = ranks.counts
    if ranks.classes > MAX_CACHED_CLASSES:
        return _unit_gains(ranks.ranking().ordered(ties)).sum(axis=1)
    histogram = counts.rank_histogram(ranks.classes)
    sums: Floats = _gains_by_rank(ranks.classes) @ histogram[:-1].astype(np.float64)
    if histogram[-1]:
        tied = np.flatnonzero(counts.tied)
        above, equal, before = counts.above[tied], counts.tied[tied], counts.before[tied]
        rows = Ranking.of_targets(None, above=above, tied=equal, before=before, candidates=ranks.classes)
        sums = sums + _unit_gains(rows.ordered(ties)).sum(axis=1)
    return sums


def _sums_on_gpu(logits: Any, true_y: Any) -> tuple[Floats, Ints, Ints] | None:
    """The result of ``calculate_correct_total_prediction``, summed on the GPU; only sums and labels are copied.

    None if the kernel does not support the logits, or if an input is invalid: ``rank_targets`` then states the error.
    """
    torch, kernels = _gpu_modules()
    device = logits.device
    if kernels.triton is None or device.index != torch.cuda.current_device():
        return None
    if logits.ndim != 2 or logits.shape[1] > MAX_CACHED_CLASSES:
        return None
    targets = true_y if getattr(true_y, "device", None) == device else torch.as_tensor(true_y, device=device)
    results = kernels.triton_sums(logits, targets, _cumulative_gains_on_gpu)
    if results is None:
        return None
    sums, true, predicted = results
    sums = sums[: len(SUM_NAMES)]
    sums[-1] = len(true)
    return sums, true, predicted


@lru_cache(maxsize=1)
def _gpu_modules() -> tuple[Any, Any]:
    """Imported once: the import statement of a call takes a few microseconds."""
    import torch

    from equipoise.evidence.kernels import rank_counts_gpu

    return torch, rank_counts_gpu


@lru_cache(maxsize=4)
def _cumulative_gains_on_gpu(classes: int, device: Any) -> Any:
    """The sums of the gains of the first r ranks: (classes + 1, ``N_SUMS``), with columns of zeros."""
    import torch

    from equipoise.evidence.kernels.rank_counts_gpu import N_SUMS

    gains = _gains_by_rank(classes).T
    cumulative = np.zeros((classes + 1, N_SUMS))
    np.cumsum(gains, axis=0, out=cumulative[1:, : gains.shape[1]])
    return torch.as_tensor(cumulative, device=device)


@lru_cache(maxsize=4)
def _gains_by_rank(classes: int) -> Floats:
    """The gain of a target at each rank among this many classes; the same for every batch."""
    ranks = np.arange(classes)
    none = np.zeros_like(ranks)
    return _unit_gains(Ranking.of_targets(None, above=ranks, tied=none, before=none, candidates=classes))


def _unit_gains(ranking: Ranking) -> Floats:
    """What each unit adds to each of the sums."""
    hits = [hit_rate(ranking, k) for k in CUTOFFS]
    return np.array([*hits, reciprocal_rank(ranking), ndcg(ranking, NDCG_AT)])


# The summary at the end of an epoch: scores as fractions, and in percent.


@dataclass(frozen=True)
class PlaceSummary:
    """The scores of all rows of a meter.

    ``fractions`` has the scores by name (acc@1, mrr, ndcg, f1, f1_macro, f1_micro);
    ``answerable`` holds the same for the rows whose target was seen in training, ``by_user`` the means over
    users of each user's mean. ``tied`` counts rows whose target shares its score with another class,
    ``tied_top`` those where several classes share the largest one. ``notes`` name the default cutoffs that
    were left out because there are fewer classes.
    """

    n: int
    classes: int
    fractions: Mapping[str, float]
    answerable: Mapping[str, float] | None = None
    answerable_n: int = 0
    by_user: Mapping[str, float] | None = None
    users: int = 0
    tied: int = 0
    tied_top: int = 0
    ignored: int = 0
    settings: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def __getitem__(self, name: str) -> float:
        """A score as a fraction."""
        if name not in self.fractions:
            more = "; ".join((f"there are {', '.join(self)}", *self.notes))
            raise UnknownNameError.of("score", name, self.fractions, more=more)
        return self.fractions[name]

    def __iter__(self) -> Any:
        return iter(self.fractions)

    @property
    def percent(self) -> dict[str, float]:
        """The scores in percent."""
        return {name: 100.0 * value for name, value in self.fractions.items()}

    def __repr__(self) -> str:
        values = ", ".join(f"{name} {value:.2f} %" for name, value in self.percent.items())
        return f"<PlaceSummary: {self.n} rows, {self.classes} classes; {values}>"

    def to_dict(self) -> dict[str, Any]:
        """Plain values with their unit."""
        return {"unit": "fraction", **asdict(self), "notes": list(self.notes)}


class MeterBatch(NamedTuple):
    """The stored data of a batch: a few numbers per row."""

    output: ClassificationOutput
    users: Ids | None = None


@dataclass
class PlaceMeter:
    """Collects batches of logits; any split of the rows and any order of merging give the same bytes.

    Only counts are stored, not the logits, so a meter is small and can be pickled.

    Parameters
    ----------
    ks
        Cutoffs of the accuracy. The defaults are 1, 3, 5 and 10, without those above the number of classes, which are
        named in ``notes`` of the summary; a given cutoff above it is an error.
    padding
        A column, or columns, that are not classes.
    unseen
        Classes that do not occur in training; the summary then also has the scores of the other rows.
    ties
        How tied scores are ranked: ``expected``, ``by_id``, ``optimistic`` or ``pessimistic``.
    ignore_index
        Rows with this target are counted and left out.
    compiled
        Whether the compiled kernel is used (extra ``fast``); by default once many scores were counted.

    >>> meter = PlaceMeter(ks=(1, 2))
    >>> meter.update(np.array([[0.1, 0.7, 0.2], [0.5, 0.3, 0.2]]), [1, 1])
    >>> scores = meter.compute()
    >>> scores["acc@1"], scores.percent["mrr"]
    (0.5, 75.0)
    """

    ks: Sequence[int] | None = None
    padding: Any = None
    unseen: Any = None
    ties: str = "expected"
    ignore_index: int | None = None
    compiled: bool | None = None
    batches: list[MeterBatch] = field(default_factory=list, repr=False)
    ignored: int = 0

    def __post_init__(self) -> None:
        self.ks = None if self.ks is None else tuple(self.ks)
        self.ties = str(Ties.parse(self.ties))
        if self.ks is not None and not self.ks:
            raise ParameterError("the meter has no cutoff", hint="for example ks=(1, 3, 5, 10)")

    def __len__(self) -> int:
        return sum(len(batch.output) for batch in self.batches)

    def update(self, logits: ArrayLike, targets: ArrayLike, *, users: ArrayLike | None = None) -> None:
        """Add a batch, which may have no rows.

        Parameters
        ----------
        logits
            A matrix (rows x classes) of numpy or of any array-API library.
        targets
            The true class of each row.
        users
            The user of each row; the summary then also has means over users. Give it for all batches or for none.
        """
        matrix: Any = as_host_array(logits)
        codes = to_numpy(targets)
        names = None if users is None else as_ids(to_numpy(users), 0)
        if names is not None and len(names) != len(codes):
            raise ShapeError(f"there are {len(names)} users for {len(codes)} targets", hint="give one per row")
        rows = np.flatnonzero(codes != self.ignore_index)
        if self.ignore_index is not None and len(rows) < len(codes):
            self.ignored += len(codes) - len(rows)
            matrix, targets = take_rows(matrix, rows), codes[rows]
            names = None if names is None else names[rows]
        if not len(matrix):
            return
        output = classify(
            matrix, targets, padding=self.padding, unseen=self.unseen, ks=self.ks or (), compiled=self.compiled
        )
        self._add([MeterBatch(output, names)])

    def _add(self, batches: Sequence[MeterBatch]) -> None:
        """Add batches of the same classes and the same kind of users as those before."""
        if self.batches and batches:
            one, other = self.batches[0], batches[0]
            widths = len(one.output.labels.classes), len(other.output.labels.classes)
            if widths[0] != widths[1]:
                raise ShapeError(
                    f"one batch has {widths[0]} classes and another {widths[1]}", hint="score one model at a time"
                )
            if _kind(one.users) != _kind(other.users):
                raise InputError(
                    f"the users of one batch are {_kind(one.users)}, of another {_kind(other.users)}",
                    hint="give every update the same kind",
                )
        self.batches.extend(batches)

    def merge_state(self, other: PlaceMeter) -> None:
        """Add all rows of another meter."""
        if self._settings() != other._settings():
            raise ParameterError(
                f"the meters count differently: {self._settings()} and {other._settings()}",
                hint="make both with the same arguments",
            )
        self._add(other.batches)
        self.ignored += other.ignored

    def sync(self, gather: Callable[[PlaceMeter], Iterable[PlaceMeter]]) -> PlaceMeter:
        """A meter with the rows of all processes; this one keeps its own.

        ``gather`` takes the meter of this process and returns those of all processes, such as ``comm.allgather`` of
        mpi4py, or a function around ``torch.distributed.all_gather_object``. A meter holds a few numbers per row.
        """
        whole = replace(self, batches=[], ignored=0)
        for meter in gather(self):
            whole.merge_state(meter)
        return whole

    def reset(self) -> None:
        """Remove all rows, for the next epoch."""
        self.batches, self.ignored = [], 0

    def compute(self) -> PlaceSummary:
        """The scores of all rows so far."""
        output, users = self._whole()
        index = np.flatnonzero(output.answerable)
        fractions = self._fractions(output)
        return PlaceSummary(
            n=len(output),
            classes=output.classes,
            fractions=fractions,
            answerable=None if self.unseen is None else self._fractions(output.take(index)),
            answerable_n=len(index),
            by_user=None if users is None else self._by_user(output, users),
            users=0 if users is None else len(np.unique(users)),
            tied=int(np.count_nonzero(output.ranking.tied)),
            tied_top=int(np.count_nonzero(output.tied_top)),
            ignored=self.ignored,
            settings=self._settings() | {"ks": list(self._cutoffs(output))},
            notes=omitted_cutoffs_note(output.classes, f"there are {output.classes} classes")
            if self.ks is None
            else (),
        )

    def _settings(self) -> dict[str, Any]:
        return {
            "ks": list(CUTOFFS if self.ks is None else self.ks),
            "padding": _plain(self.padding),
            "unseen": _plain(self.unseen),
            "ties": self.ties,
            "ignore_index": self.ignore_index,
        }

    def _cutoffs(self, output: ClassificationOutput) -> Sequence[int]:
        return default_cutoffs(output.classes) if self.ks is None else self.ks

    def _whole(self) -> tuple[ClassificationOutput, Ids | None]:
        """All rows in an order that does not depend on the batches."""
        if not self.batches:
            raise InputError(
                "the meter has no rows" + (f"; {self.ignored} were left out by ignore_index" if self.ignored else ""),
                hint="call update first",
            )
        output = ClassificationOutput.joined([batch.output for batch in self.batches])
        names = [batch.users for batch in self.batches if batch.users is not None]
        users = np.concatenate(names) if names else None
        order = _by_content(output, users)
        output = output.take(order).with_ids(np.arange(len(order)))
        return output, None if users is None else users[order]

    def _fractions(self, output: ClassificationOutput) -> dict[str, float]:
        ranking = output.ranking.ordered(self.ties)
        metrics = ranking_metrics(self._cutoffs(output))
        fractions = {name: metric.measure(ranking).value for name, metric in metrics.items()}
        return fractions | {name: metric.measure(output.labels).value for name, metric in label_metrics().items()}

    def _by_user(self, output: ClassificationOutput, users: Ids) -> dict[str, float]:
        ranking = output.ranking.ordered(self.ties)
        metrics = ranking_metrics(self._cutoffs(output))
        columns = {name: metric.measure(ranking).per_unit for name, metric in metrics.items()}
        _, means = user_means(columns, users)
        return {name: float(column.mean()) for name, column in means.items()}


def _kind(ids: Ids | None) -> str:
    return "none" if ids is None else "names" if ids.dtype == object else "numbers"


def _plain(codes: Any) -> Any:
    return None if codes is None else np.atleast_1d(to_numpy(codes)).tolist()


def _by_content(output: ClassificationOutput, users: Ids | None) -> Ints:
    """An order of rows by content; equal rows may be in any order."""
    ranking, labels = output.ranking, output.labels
    keys = [output.tied_top, ranking.before, ranking.tied, ranking.above, labels.predicted, labels.true]
    if users is not None:
        keys.append(np.unique(users, return_inverse=True)[1].reshape(-1))
    return np.lexsort(keys)
