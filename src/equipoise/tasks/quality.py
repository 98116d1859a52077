"""Embedding quality: a standard set of concepts as points, for what vectors tell without any truth."""

from __future__ import annotations

from collections.abc import Sequence

from equipoise.errors import InputError
from equipoise.evidence.space import Space
from equipoise.tasks.encode import Encode, encoded


def quality(encode: Encode, concepts: Sequence[str]) -> Space:
    """The vectors of the concepts; a unit is a concept.

    >>> len(quality(lambda texts: [[1.0, 0.0], [0.0, 1.0]], ["amor fati", "qualia"]))
    2
    """
    if len(concepts) < 2:
        raise InputError(
            f"there {'is one concept' if concepts else 'are no concepts'}",
            hint="vectors need others to differ from",
        )
    return Space.of(encoded(encode, list(concepts)), unit_ids=list(concepts))
