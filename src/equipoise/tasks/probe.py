"""A linear probe: can a straight cut through the vectors tell the classes apart?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from equipoise.data.split import folds as parts_of
from equipoise.errors import UndefinedError
from equipoise.evidence.labels import Labels
from equipoise.evidence.space import Space
from equipoise.types import Floats, Ints, need

FOLDS = 5
_STEPS = 5000


def probe(space: Space, *, folds: int = FOLDS, groups: Sequence[Any] | None = None, seed: int = 0) -> Labels:
    """The class of each point as a logistic regression predicts it that has not seen the point.

    Cross-validated in ``folds`` parts, or as many as there are points, that hold every class evenly; points
    of one group are never parted. Coordinates are standardised on the training part, so that the scale of the
    vectors does not matter.

    >>> rows = [[float(place % 2), float(place)] for place in range(12)]
    >>> labels = probe(Space.of(rows, labels=["odd" if place % 2 else "even" for place in range(12)]))
    >>> bool((labels.true == labels.predicted).all())
    True
    """
    if space.labels is None or space.classes is None or len(np.unique(space.labels)) < 2:
        raise UndefinedError(
            "a probe needs points of two classes", hint="Space.of(vectors, labels=...) adds classes"
        )
    count = len(space) if groups is None else len(set(groups))
    parts = parts_of(
        list(range(len(space))),
        max(2, min(folds, count)),
        stratify=space.labels.tolist(),
        groups=groups,
        rng=np.random.default_rng(seed),
    )
    predicted = np.empty(len(space), dtype=np.int64)
    vectors = space.vectors.astype(np.float64)
    for train, test in parts:
        predicted[test] = _predicted(vectors[train], space.labels[train], vectors[test])
    return Labels(space.unit_ids, space.labels, predicted, space.classes)


def _predicted(known: Floats, labels: Ints, asked: Floats) -> Ints:
    """The classes of new rows; where only one class is known, it is that."""
    if len(np.unique(labels)) < 2:
        return np.full(len(asked), labels[0], dtype=np.int64)
    middle, spread = known.mean(axis=0), known.std(axis=0)
    spread[spread == 0] = 1.0
    engine = need("sklearn.linear_model", extra="concepts").LogisticRegression(max_iter=_STEPS)
    engine.fit((known - middle) / spread, labels)
    return np.asarray(engine.predict((asked - middle) / spread), dtype=np.int64)
