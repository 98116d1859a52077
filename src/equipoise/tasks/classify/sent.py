"""Scores of a file or of host memory, sent to a device a block at a time and counted there."""

from __future__ import annotations

from typing import Any

import numpy as np

from equipoise.evidence.base import as_ids
from equipoise.evidence.columns import host
from equipoise.geometry.device import free_bytes, torch_device
from equipoise.tasks.classify.classified import Classified, classify
from equipoise.tasks.classify.guard import checked_scores
from equipoise.tasks.classify.pages import Pages

SHARE = 0.25
"""Of the free memory of the device that a block may take: the next one may be on its way."""


def classify_on(
    device: Any,
    scores: Any,
    targets: Any,
    *,
    unit_ids: Any = None,
    block_bytes: int | None = None,
    **options: Any,
) -> Classified:
    """What ``classify`` gives, counted on the device by name; a file may be larger than its memory."""
    where = torch_device(device)
    import torch

    scores = checked_scores(scores)
    if not isinstance(scores, np.ndarray):
        return classify(scores.to(where), targets, unit_ids=unit_ids, **options)
    right, ids = host(targets), as_ids(unit_ids, len(scores))
    step = max(1, (block_bytes or int(SHARE * free_bytes(where))) // (scores.shape[1] * scores.itemsize))
    pages, parts = Pages(scores), []
    for start in range(0, max(1, len(scores)), step):
        part = slice(start, start + step)
        # A mapped file is read here; a writable copy is what torch takes without a warning.
        block = torch.from_numpy(np.array(scores[part])).to(where)
        parts.append(classify(block, right[part], unit_ids=ids[part], **options))
        pages.drop(scores[part])
    return parts[0] if len(parts) == 1 else Classified.joined(parts)
