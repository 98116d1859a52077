"""Semantic similarity: what a model says of pairs of texts beside what people say."""

from __future__ import annotations

from collections.abc import Sequence

from equipoise.data.field.records import Pair
from equipoise.errors import InputError
from equipoise.evidence.pairs import Pairs
from equipoise.tasks.encode import Encode, encoded, row_cosines


def similarity(encode: Encode, pairs: Sequence[Pair]) -> Pairs:
    """The cosine of each pair's vectors, and the similarity that is expected; a unit is a pair.

    A text without a direction (a zero vector) is as far from everything as can be told: its cosine is 0.

    >>> vectors = {"rye": [1.0, 0.0], "wheat": [0.6, 0.8]}
    >>> found = similarity(lambda texts: [vectors[text] for text in texts], [Pair("rye", "wheat", 0.7)])
    >>> found.predicted.round(6).tolist(), found.expected.tolist()
    ([0.6], [0.7])
    """
    if not pairs:
        raise InputError("there are no pairs to compare", hint="a field has them in pairs.json")
    vectors = encoded(encode, [text for pair in pairs for text in (pair.first, pair.second)])
    return Pairs.of(
        row_cosines(vectors[::2], vectors[1::2]),
        [pair.expected for pair in pairs],
        unit_ids=[pair.id for pair in pairs],
    )
