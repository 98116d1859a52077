"""One embedder at one dimension, trained at several learning rates; the lowest loss is kept."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, isfinite

import numpy as np

from equipoise.checks.base import counted
from equipoise.errors import ParameterError
from equipoise.hierarchy.embedded import Embedded
from equipoise.hierarchy.embedders import embedder
from equipoise.hierarchy.tree import Tree
from equipoise.recipes.accounts.on_device import fitted_on
from equipoise.recipes.accounts.settings import Cell, Settings

Progress = Callable[[int, int], None]


def trained(
    tree: Tree, cell: Cell, settings: Settings, seed: int, progress: Progress | None = None
) -> Embedded:
    """The vectors of a cell.

    A trained embedder is tried at every rate of the settings, euclidean and hyperbolic alike. The loss at the
    end decides, not the figures that are reported later: these had no say in the choice. A loss or a point
    that is not finite never wins, and where no rate gives others that is an error.
    """
    if not cell.is_trained:
        return _fitted(tree, cell, {}, seed, progress)
    rates = [settings.options["rate"]] if "rate" in settings.options else settings.rates
    device = settings.device if settings.is_on_device(cell) else None
    tried = [
        _fitted(tree, cell, {**settings.options, "rate": rate}, seed, progress, device) for rate in rates
    ]
    return usable(min(tried, key=_loss), cell.system)


def usable(found: Embedded, system: str) -> Embedded:
    """The same vectors, once it is known that training has not thrown them out of their space."""
    lost = int(np.count_nonzero(~np.isfinite(found.vectors).all(axis=1)))
    if lost and found.history:
        rate = found.settings.get("rate")
        raise ParameterError(
            f"{system}: training at the rate {rate} left {lost:,} of {counted(len(found.ids), 'point')} "
            "without finite coordinates",
            hint="try a smaller rate, such as 0.3",
        )
    return found


def _fitted(
    tree: Tree,
    cell: Cell,
    options: dict[str, object],
    seed: int,
    progress: Progress | None,
    device: str | None = None,
) -> Embedded:
    if device is not None and cell.dim is not None:
        return fitted_on(device, cell.embedder, tree, cell.dim, seed, options=options, progress=progress)
    made = embedder(cell.embedder, **options)
    try:
        # A text model that is given no dimension keeps its own.
        return made.fit(tree, cell.dim, seed, progress=progress)  # type: ignore[arg-type]
    except ParameterError as error:
        raise ParameterError(f"{cell.system}: {error.sentence}", hint=error.hint) from error


def _loss(found: Embedded) -> float:
    """The mean loss of the last epoch; what never trained, or ended out of bounds, is better than nothing."""
    sound = found.history and isfinite(found.history[-1]) and np.isfinite(found.vectors).all()
    return found.history[-1] if sound else inf
