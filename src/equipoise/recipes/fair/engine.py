"""One model over the whole grid: every chunk embedded once, one search a chunking, every top_k from it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from equipoise.embed.elsewhere import Spread
from equipoise.embed.retriever import Retriever
from equipoise.metrics.functions import hit
from equipoise.recipes.fair.chunking import Chunking, Cut
from equipoise.recipes.fair.material import Material
from equipoise.recipes.fair.remember import Truncation, embedders, truncation
from equipoise.recipes.fair.shelf import Shelved
from equipoise.tasks.answers.evidence import AnswerSearch, search_answers
from equipoise.tasks.answers.matcher import Matcher
from equipoise.types import Floats, Role

Step = Callable[[str], None]
"""Called at the start of a step with what is being done."""


@dataclass(frozen=True)
class Observed:
    """What one chunking showed: for every top_k from 1 to the depth, who was answered and at what price.

    ``hits`` has a row a top_k and a column a question; ``chance`` and ``tokens`` a number a top_k, the mean
    over the questions.
    """

    cut: Cut
    search: AnswerSearch
    hits: Floats
    chance: Floats
    tokens: Floats
    truncation: Truncation | None
    """Of the model that reads least; None where nothing is embedded."""


def observe(
    system: Retriever,
    shelved: dict[Chunking, Shelved],
    material: Material,
    depth: int,
    matcher: Matcher,
    step: Step,
    over: Spread | None = None,
) -> dict[Chunking, Observed]:
    """Let one system answer all questions from all chunkings, each at every top_k up to the depth.

    The system should be a remembering one, so that no text is embedded twice. ``over`` embeds elsewhere.
    """
    _embed_all(system, [each.cut for each in shelved.values()], material, over)
    observed = {}
    for chunking, shelf in shelved.items():
        step(f"{system.card.name}: {chunking.chunker} {chunking.chunk_size}/{chunking.overlap}")
        observed[chunking] = _observe(system, shelf, material, depth, matcher)
    return observed


def _embed_all(system: Retriever, cuts: Sequence[Cut], material: Material, over: Spread | None) -> None:
    """All texts in one call a model and role, so that texts of like length share a batch."""
    chunks = list(dict.fromkeys(text for found in cuts for text in found.texts))
    for model in embedders(system):
        model.embed_report(chunks, Role.DOCUMENT, over=over)
        model.embed_report(material.texts, Role.QUERY, over=over)


def _observe(system: Retriever, shelf: Shelved, material: Material, depth: int, matcher: Matcher) -> Observed:
    found = shelf.cut
    fitted = system.fit(found.texts)
    search = search_answers(fitted, material.questions, found.chunks, matcher, depth, held=shelf.held)
    reached = search.order.shape[1]
    hits = np.array([hit(search.ranking, k) for k in range(1, reached + 1)])
    tokens = search.tokens.mean(axis=0)
    read = [truncation(model, found.texts) for model in embedders(system)]
    return Observed(
        found,
        search,
        _deepened(hits, depth),
        _deepened(search.chance, depth),
        _deepened(tokens, depth),
        max(read, key=_unread, default=None),
    )


def _deepened(rows: Floats, depth: int) -> Floats:
    """A document with fewer chunks than top_k is retrieved whole: nothing changes beyond its last chunk."""
    lacking = depth - len(rows)
    return rows if not lacking else np.concatenate([rows, np.repeat(rows[-1:], lacking, axis=0)])


def _unread(seen: Truncation) -> float:
    """How much is left out; what is unknown counts more than nothing, and less than something."""
    return 0.0 if seen.share is None else seen.share or -1.0
