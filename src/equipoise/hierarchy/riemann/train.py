"""The training loop: epochs over shuffled pieces, strangers drawn anew for each batch."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from equipoise.hierarchy.riemann.batches import descend
from equipoise.hierarchy.riemann.relatives import Relatives
from equipoise.hierarchy.riemann.schedule import Schedule
from equipoise.hierarchy.riemann.spaces import Space
from equipoise.hierarchy.riemann.strangers import Strangers
from equipoise.types import Floats

Progress = Callable[[int, int], None]
"""Takes the epochs that are done and the epochs there are at most."""


def train(
    space: Space,
    start: Floats,
    relatives: Relatives,
    strangers: Strangers,
    schedule: Schedule,
    rng: np.random.Generator,
    progress: Progress | None = None,
) -> tuple[Floats, list[float]]:
    """The trained points, and the mean loss of a pair in each epoch."""
    points = start.copy()
    history: list[float] = []
    pairs = max(1, len(relatives.keys))
    for epoch in range(schedule.epochs if len(relatives.pieces) else 0):
        order = rng.permutation(len(relatives.pieces))
        rate = schedule.rate_at(epoch)
        loss = 0.0
        for begin in range(0, len(order), schedule.batch):
            pieces = relatives.pieces[order[begin : begin + schedule.batch]]
            drawn = strangers.draw(pieces[:, 0], schedule.strangers, rng)
            loss += descend(space, points, relatives, pieces, drawn, rate, schedule.sharpness)
        history.append(loss / pairs)
        if progress is not None:
            progress(epoch + 1, schedule.epochs)
        if schedule.is_over(history):
            break
    return points, history
