"""A tree trained on a device, every node against all strangers at once; hyperbolic spaces alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
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
from equipoise.hierarchy.riemann.whole import WholeSchedule, train_whole
from equipoise.hierarchy.tree import Tree

THERE = ("poincare", "lorentz")
"""Embedders that are trained on a device; all others stay on the processor."""
_TAKEN = ("epochs", "rate")
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
    """The points of a tree's nodes; ``options`` are ``epochs`` and ``rate``, the length of first steps."""
    checked(tree, dim)
    schedule = whole_schedule(options)
    start = in_cones(tree, dim, np.random.default_rng(seed), inner=INNER, outer=OUTER)
    points, history = train_whole(
        start, Relatives.of(tree).links, schedule, device=torch_device(device), seed=seed, progress=progress
    )
    settings = {"embedder": name, "dim": dim, "seed": seed, **asdict(schedule), "device": device}
    settings["epochs_run"] = len(history)
    vectors = hyperboloid_to_ball(points) if name == "poincare" else points
    return Embedded(tree.ids, tree.names, vectors, name, settings, tuple(history))


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
    return WholeSchedule(**options)
