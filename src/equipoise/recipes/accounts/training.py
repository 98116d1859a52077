"""One embedder at one dimension, trained at several learning rates; the lowest loss is kept."""

from __future__ import annotations

from collections.abc import Callable
from math import inf

from equipoise.errors import ParameterError
from equipoise.hierarchy.embedded import Embedded
from equipoise.hierarchy.embedders import embedder
from equipoise.hierarchy.tree import Tree
from equipoise.recipes.accounts.settings import Cell, Settings

Progress = Callable[[int, int], None]


def trained(
    tree: Tree, cell: Cell, settings: Settings, seed: int, progress: Progress | None = None
) -> Embedded:
    """The vectors of a cell.

    A trained embedder is tried at every rate of the settings, euclidean and hyperbolic alike. The loss at the
    end decides, not the figures that are reported later: these had no say in the choice.
    """
    if not cell.is_trained:
        return _fitted(tree, cell, {}, seed, progress)
    rates = [settings.options["rate"]] if "rate" in settings.options else settings.rates
    tried = [_fitted(tree, cell, {**settings.options, "rate": rate}, seed, progress) for rate in rates]
    return min(tried, key=_loss)


def _fitted(
    tree: Tree, cell: Cell, options: dict[str, object], seed: int, progress: Progress | None
) -> Embedded:
    made = embedder(cell.embedder, **options)
    try:
        # A text model that is given no dimension keeps its own.
        return made.fit(tree, cell.dim, seed, progress=progress)  # type: ignore[arg-type]
    except ParameterError as error:
        raise ParameterError(f"{cell.system}: {error.sentence}", hint=error.hint) from error


def _loss(found: Embedded) -> float:
    """The mean loss of the last epoch; one that never trained is no better than any other."""
    return found.history[-1] if found.history else inf
