"""A tree trained on a device, every node against all strangers at once; hyperbolic spaces alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from importlib.util import find_spec
from typing import Any

import numpy as np

from equipoise.errors import ParameterError
from equipoise.geometry.device import torch_device
from equipoise.geometry.functions import hyperboloid_to_ball
from equipoise.hierarchy.embedded import Embedded
from equipoise.hierarchy.embedders.base import checked
from equipoise.hierarchy.embedders.trained import INNER, OUTER
from equipoise.hierarchy.riemann.cones import in_cones
from equipoise.hierarchy.riemann.relatives import Relatives
from equipoise.hierarchy.riemann.spaces import Hyperboloid
from equipoise.hierarchy.riemann.whole import WholeSchedule, train_whole
from equipoise.hierarchy.tree import PARENT, Tree
from equipoise.types import Floats

THERE = ("poincare", "lorentz")
"""Embedders that are trained on a device; all others stay on the processor."""
SETTLE = 5
"""One epoch of so many is spent on settling, where numba is installed."""
_TAKEN = ("epochs", "rate", "train_on")
_TYPED = {"aim": "aim (--negatives)", "burn_in": "burn_in (--burn-in)"}


def fitted_on(
    device: str,
    name: str,
    tree: Tree,
    dim: int,
    seed: int,
    *,
    options: Mapping[str, Any],
    progress: Callable[[int, int], None] | None = None,
) -> Embedded:
    """The points of a tree's nodes.

    ``options`` are ``epochs``, ``rate`` (the length of first steps) and ``train_on`` (who is drawn near).
    """
    checked(tree, dim)
    schedule, relation = whole_schedule(options), options.get("train_on", PARENT)
    relatives = Relatives.of(tree, relation)
    rng = np.random.default_rng(seed)
    start = in_cones(tree, dim, rng, inner=INNER, outer=OUTER)
    epochs = schedule.epochs
    last = epochs // SETTLE if find_spec("numba") and len(relatives.pieces) else 0
    schedule = replace(schedule, epochs=epochs - last)

    def told(done: int, _: int) -> None:
        if progress is not None:
            progress(done, epochs)

    points, history = train_whole(
        start, relatives.links, schedule, device=torch_device(device), seed=seed, progress=told
    )
    if last:
        history += _settled(points, relatives, last, rng, lambda done: told(epochs - last + done, epochs))
    settings = {"embedder": name, "dim": dim, "seed": seed, **asdict(schedule), "device": device}
    settings |= {"epochs_run": len(history), "epochs": epochs, "epochs_settled": last, "train_on": relation}
    vectors = hyperboloid_to_ball(points) if name == "poincare" else points
    return Embedded(tree.ids, tree.names, vectors, name, settings, tuple(history))


def _settled(
    points: Floats, relatives: Relatives, epochs: int, rng: np.random.Generator, told: Callable[[int], None]
) -> list[float]:
    """Let the points settle, in place and on the processor: few strangers are left to be seen by then."""
    from equipoise.hierarchy.riemann.settle import Settling

    settling = Settling(Hyperboloid(), points, relatives, rng)
    history = []
    for done in range(epochs):
        history.append(settling.epoch(done, epochs) / len(relatives.keys))
        told(done + 1)
    return history


def whole_schedule(options: Mapping[str, Any]) -> WholeSchedule:
    """The schedule of these options; what only the processor knows is refused.

    >>> whole_schedule({"rate": 0.3, "epochs": 5}).epochs
    5
    """
    for option in options:
        if option not in _TAKEN:
            said = _TYPED.get(option, option)
            raise ParameterError(
                f"training on a device takes no {said}: it sees all strangers at every step",
                hint="leave it out, or leave --device out",
            )
    return WholeSchedule(**{name: value for name, value in options.items() if name != "train_on"})
