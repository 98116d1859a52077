"""Next-place metrics for torchmetrics: sums on the device of the model that synchronise between processes.

For target scores above and tied with the target, and the cumulative gain ``C[r]`` of the ranks 1 to r, a row adds::

    (C[above + tied + 1] - C[above]) / (tied + 1)

which is the expected gain over all orders of the tied scores. All metrics of ranks are such sums.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from equipoise.domains.places.metrics import CUTOFFS, NDCG_AT
from equipoise.errors import MissingExtraError, NotFiniteError, ParameterError, ShapeError
from equipoise.types import install_command

if TYPE_CHECKING:
    Metric: Any
else:
    try:
        from torchmetrics import Metric
    except ImportError:

        class MissingMetric:
            """Takes the place of the base class, so that the name can be imported without torchmetrics."""

            def __init__(self, **options: object) -> None:
                raise MissingExtraError(
                    "this needs the package torchmetrics, which is not installed",
                    hint=install_command("torchmetrics"),
                )

        Metric = MissingMetric


class PlaceMetric(Metric):  # type: ignore[misc]
    """Accuracy at k, MRR, nDCG@10 and F1 of next-place logits as a torchmetrics ``Metric``.

    It has ``update``, ``compute``, ``reset``, ``forward``, ``merge_state`` and synchronisation between processes
    (``torch.distributed``) from torchmetrics. Its state is a few sums and three counts per class, all of them added up
    between processes, and stays on the device of the logits. ``PlaceMeter`` has the same values without torch.

    Parameters
    ----------
    num_classes
        Number of columns of the logits.
    ks
        Cutoffs of the accuracy; by default those of 1, 3, 5 and 10 that do not exceed the number of classes.
    padding
        Columns that are not classes.
    ignore_index
        Rows with this target are left out.
    **options
        Options of ``torchmetrics.Metric``, such as ``dist_sync_on_step``.

    Examples
    --------
    ``compute`` gives tensors by name: acc@1, ..., mrr, ndcg, f1, f1_macro, f1_micro.

        metric = PlaceMetric(num_classes=1187).to("cuda")
        for logits, targets in loader:
            metric.update(logits, targets)
        print(metric.compute()["mrr"])
    """

    is_differentiable = False
    higher_is_better = True
    full_state_update = False
    _update_count: int

    def __init__(
        self,
        num_classes: int,
        *,
        ks: Sequence[int] | None = None,
        padding: Sequence[int] = (),
        ignore_index: int | None = None,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        import torch

        n_candidates = num_classes - len(set(padding))
        if n_candidates < 1:
            raise ParameterError(f"there are {n_candidates} classes to predict", hint="give at least one class")
        self.num_classes, self.padding, self.ignore_index = num_classes, sorted(set(padding)), ignore_index
        self.ks = tuple(k for k in CUTOFFS if k <= n_candidates) if ks is None else tuple(ks)
        if not self.ks or min(self.ks) < 1 or max(self.ks) > n_candidates:
            raise ParameterError(f"the cutoffs are {self.ks}", hint=f"give cutoffs from 1 to {n_candidates}")
        self.names = (*(f"acc@{k}" for k in self.ks), "mrr", "ndcg")
        self._cumulative = _cumulative_gains(self.ks, n_candidates)
        self.add_state("gains", torch.zeros(len(self.names), dtype=torch.float64), dist_reduce_fx="sum")
        self.add_state("total", torch.zeros((), dtype=torch.int64), dist_reduce_fx="sum")
        for name in ("support", "predicted", "correct"):
            self.add_state(name, torch.zeros(num_classes, dtype=torch.int64), dist_reduce_fx="sum")

    def update(self, preds: Any, target: Any) -> None:
        """Add a batch: logits (rows x classes), and the target of each row."""
        import torch

        if preds.ndim != 2 or preds.shape[1] != self.num_classes or target.shape != preds.shape[:1]:
            raise ShapeError(
                f"the logits have shape {tuple(preds.shape)} and the targets {tuple(target.shape)}",
                hint=f"give (rows, {self.num_classes}) and (rows,)",
            )
        preds, target = preds.detach(), target.detach()
        if self.ignore_index is not None:
            rows = target != self.ignore_index
            preds, target = preds[rows], target[rows]
        if self.padding:
            preds = preds.index_fill(1, torch.tensor(self.padding, device=preds.device), float("-inf"))
        _check_batch(preds, target, self.num_classes)
        limit = preds.gather(1, target[:, None])
        above, equal = (preds > limit).sum(1), (preds == limit).sum(1)
        if self.padding:  # a candidate with -inf is above padding
            equal = torch.where(torch.isneginf(limit[:, 0]), equal - len(self.padding), equal)
        table = self._cumulative.to(preds.device)
        self.gains += ((table[:, above + equal] - table[:, above]) / equal).sum(1)
        self.total += len(target)
        columns = torch.arange(self.num_classes, device=preds.device)
        # The lowest code of tied first classes; argmax may return any of them on a GPU.
        is_top = preds == preds.amax(1, keepdim=True)
        is_top[:, self.padding] = False
        first = torch.where(is_top, columns, self.num_classes).amin(1) if len(preds) else target
        for name, codes in (("support", target), ("predicted", first), ("correct", target[target == first])):
            setattr(self, name, getattr(self, name) + torch.bincount(codes, minlength=self.num_classes))

    def merge_state(self, incoming_state: Any) -> None:
        """Add the sums of another metric, or of its ``metric_state``."""
        if isinstance(incoming_state, PlaceMetric) and self._settings() != incoming_state._settings():
            raise ParameterError(
                f"the metrics count differently: {self._settings()} and {incoming_state._settings()}",
                hint="make both with the same arguments",
            )
        super().merge_state(incoming_state)
        # torchmetrics would return the value of the last compute, and warn that there was no update.
        self._computed = None
        self._update_count = max(1, self._update_count)

    def _settings(self) -> dict[str, Any]:
        names = ("num_classes", "ks", "padding", "ignore_index")
        return {name: getattr(self, name) for name in names}

    def compute(self) -> dict[str, Any]:
        """The metrics of all rows of all processes; NaN without rows."""
        import torch

        values = dict(zip(self.names, self.gains / self.total, strict=True))
        occurs = (self.support + self.predicted) > 0
        by_class = torch.where(occurs, 2.0 * self.correct.double() / (self.support + self.predicted).clamp(min=1), 0.0)
        values["f1"] = (by_class * self.support).sum() / self.total
        values["f1_macro"] = by_class.sum() / occurs.sum()
        values["f1_micro"] = self.correct.sum().double() / self.total
        return values


def _cumulative_gains(ks: Sequence[int], classes: int) -> Any:
    """One row per metric: the sum of the gains of the ranks 1 to r, for r from 0 to the number of classes."""
    import torch

    ranks = torch.arange(1, classes + 1, dtype=torch.float64)
    gains = [(ranks <= k).double() for k in ks]
    gains += [1.0 / ranks, torch.where(ranks <= NDCG_AT, 1.0 / torch.log2(ranks + 1.0), 0.0)]
    return torch.cat([torch.zeros(len(gains), 1, dtype=torch.float64), torch.stack(gains).cumsum(1)], 1)


def _check_batch(preds: Any, target: Any, num_classes: int) -> None:
    """Targets are classes, and no score is NaN."""
    if not len(target):
        return
    if int(target.min()) < 0 or int(target.max()) >= num_classes:
        raise ParameterError("a target is not a class", hint=f"targets are 0 to {num_classes - 1}")
    if bool(preds.isnan().any()):
        raise NotFiniteError("the logits contain NaN", hint="a model that returns NaN cannot be scored")
