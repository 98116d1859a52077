"""From any texts to even batches and back: each text once, alike lengths together, order restored."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from equipoise.embed.chunk.tokens import checked_text
from equipoise.errors import InputError
from equipoise.types import Ints

BLOCK_CHARACTERS = 1 << 20
"""A block ends here even if it could take more texts, so that long texts do not pile up in memory."""


@dataclass(frozen=True, slots=True)
class Distinct:
    """Every text once, in the order of first appearance; ``first`` and ``again`` lead back."""

    texts: list[str]
    first: Ints
    """Where each distinct text appeared first."""
    again: Ints
    """The places of all repetitions."""
    same_as: Ints
    """For each repetition, where its text appeared first."""


def checked(texts: Iterable[str], *, start: int = 0) -> list[str]:
    """The texts as a list, when each is a non-empty string of whole characters; errors count from ``start``.

    >>> checked(["a", ""])
    Traceback (most recent call last):
    ...
    equipoise.errors.InputError: text 1 (counted from 0) is empty
    """
    if isinstance(texts, str | bytes):
        raise InputError("one text was given where a list of texts is needed", hint="write [text]")
    if not isinstance(texts, Iterable):
        raise InputError(
            f"the texts are of type {type(texts).__name__}, not a list of texts", hint="write [text, ...]"
        )
    found = list(texts)
    if not found:
        raise InputError("there are no texts to embed", hint="check that the file or list is not empty")
    for place, text in enumerate(found, start):
        checked_text(text, subject=f"text {place} (counted from 0)")
        if not text or text.isspace():
            raise InputError(f"text {place} (counted from 0) is empty", hint="leave empty texts out")
    return found


def distinct(texts: Sequence[str]) -> Distinct:
    """Find the repetitions.

    >>> distinct(["a", "b", "a"]).texts
    ['a', 'b']
    """
    seen: dict[str, int] = {}
    same = np.fromiter(
        (seen.setdefault(text, place) for place, text in enumerate(texts)), np.int64, len(texts)
    )
    again = np.flatnonzero(same != np.arange(len(texts)))
    first = np.fromiter(seen.values(), np.int64, len(seen))
    return Distinct(list(seen), first, again, same[again])


def blocks(texts: Sequence[str], max_texts: int) -> Iterator[list[int]]:
    """Indexes of texts of alike length, longest first, at most ``max_texts`` and a bounded size a block."""
    lengths = np.fromiter(map(len, texts), np.int64, len(texts))
    block: list[int] = []
    characters = 0
    for place in np.argsort(-lengths, kind="stable").tolist():
        if block and (len(block) == max_texts or characters + lengths[place] > BLOCK_CHARACTERS):
            yield block
            block, characters = [], 0
        block.append(place)
        characters += int(lengths[place])
    if block:
        yield block


def token_batches(lengths: Sequence[int], max_tokens: int) -> Iterator[list[int]]:
    """Indexes of texts to run together, longest first: padded to the longest, none exceeds ``max_tokens``.

    A text that is longer by itself is a batch of one.

    >>> list(token_batches([2, 5, 2, 1], max_tokens=5))
    [[1], [0, 2], [3]]
    """
    batch: list[int] = []
    for place in sorted(range(len(lengths)), key=lambda place: -lengths[place]):
        if batch and (len(batch) + 1) * lengths[batch[0]] > max_tokens:
            yield batch
            batch = []
        batch.append(place)
    if batch:
        yield batch
