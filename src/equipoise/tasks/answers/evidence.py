"""From questions, chunks and a fitted system to evidence: one pass over the scores serves every depth."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from equipoise.data.fixture import Question
from equipoise.embed.chunk.chunkers import Chunk
from equipoise.embed.lexical.leading import leading_columns
from equipoise.errors import InputError, ParameterError, ShapeError
from equipoise.evidence.placement import NEVER
from equipoise.evidence.ranking import Ranking
from equipoise.evidence.unreachable import with_misses
from equipoise.tasks.answers.chance import chance_levels
from equipoise.tasks.answers.rule import Matcher, Shelf
from equipoise.types import Floats, Ints

Blocks = Iterable[tuple[slice, NDArray[Any]]]


class ScoresTexts(Protocol):
    """A system that has seen the chunks, such as ``retriever(...).fit(texts)``."""

    def score_blocks(self, queries: Sequence[str]) -> Blocks:
        """Rows of queries with their scores against every chunk, higher being better."""


@dataclass(frozen=True)
class HeldAnswers:
    """Which chunks hold which answers: the same for every system that searches these chunks."""

    joins: bool
    shelf: Shelf
    holders: tuple[Ints, ...]
    _chance: dict[tuple[int, int], Floats] = field(default_factory=dict, init=False, repr=False)

    def chance(self, questions: Sequence[Question], corpus: int, depth: int, seed: int = 0) -> Floats:
        """The share of questions that k chunks at random answer, k = 1 to ``depth``; worked out once."""
        if (depth, seed) not in self._chance:
            parts = [self.shelf.parts(each.answer) for each in questions]
            self._chance[depth, seed] = chance_levels(
                self.holders, parts, corpus, depth, np.random.default_rng(seed)
            )
        return self._chance[depth, seed]


@dataclass(frozen=True)
class AnswerSearch:
    """Where a system ranks the chunks that hold the answers, and what it retrieves for every question.

    ``ranking`` has the question ids as units; its HR@k is the accuracy at top_k = k. ``order``, ``scores``
    and ``tokens`` have a row for a question and a column for a rank: the chunk there, its score, and how
    many tokens the chunks up to there have together. ``chance`` has a number a rank: the accuracy of so many
    chunks that are drawn at random. ``reachable`` is the share of questions that could be answered at all.
    """

    ranking: Ranking
    order: Ints
    scores: Floats
    tokens: Ints
    chance: Floats
    holders: tuple[Ints, ...]
    reachable: float


def hold_answers(questions: Sequence[Question], chunks: Sequence[Chunk], matcher: Matcher) -> HeldAnswers:
    """Look every answer up in every chunk, once for all systems that search these chunks."""
    if not questions or not chunks:
        raise InputError(
            f"there are {len(questions)} questions and {len(chunks)} chunks",
            hint="at least one of each is needed",
        )
    shelf = matcher.shelve([chunk.text for chunk in chunks])
    return HeldAnswers(matcher.joins, shelf, tuple(shelf.holders(each.answer) for each in questions))


def search_answers(
    fitted: ScoresTexts,
    questions: Sequence[Question],
    chunks: Sequence[Chunk],
    matcher: Matcher,
    depth: int,
    *,
    held: HeldAnswers | None = None,
) -> AnswerSearch:
    """Rank the chunks for every question, and see which of them hold the answer.

    The best ``depth`` chunks are kept (all of them where there are fewer), equal scores in the order of the
    chunks. The ranking is of full depth and counts ties as their expectation, so a system that scores
    everything alike earns the chance level. A rule that joins what is retrieved has no such ranking: there
    the answer has the rank of the chunk that completes it, and what is not complete in ``depth`` is a miss.

    A question whose answer no chunk holds is a miss, and its chance level is 0. ``held`` spares looking
    the answers up again for the next system.
    """
    if isinstance(depth, bool) or not isinstance(depth, int) or depth < 1:
        raise ParameterError(f"depth is {depth!r}; it must be a whole number of 1 or more")
    held = held or hold_answers(questions, chunks, matcher)
    if len(held.holders) != len(questions):
        raise ShapeError(
            f"the answers of {len(held.holders)} questions were looked up, not of {len(questions)}"
        )
    found = _Found(len(questions), min(depth, len(chunks)))
    blocks = found.watching(fitted.score_blocks([each.question for each in questions]))
    ids = np.array([each.id for each in questions], dtype=object)
    if held.joins:
        for _ in blocks:
            pass
        ranking = _ranking_of_hits(held, questions, found.order, ids, len(chunks))
    else:
        ranking = with_misses(
            Ranking.from_blocks(blocks, held.holders, units=len(questions), corpus=len(chunks), unit_ids=ids)
        )
    tokens = np.array([chunk.tokens for chunk in chunks], dtype=np.int64)
    return AnswerSearch(
        ranking,
        found.order,
        found.scores,
        np.cumsum(tokens[found.order], axis=1),
        held.chance(questions, len(chunks), found.order.shape[1]),
        held.holders,
        float(np.mean(ranking.depth > 0)),
    )


class _Found:
    """The best chunks of every question, gathered while the scores pass by."""

    def __init__(self, questions: int, depth: int) -> None:
        self.order: Ints = np.empty((questions, depth), dtype=np.int64)
        self.scores: Floats = np.empty((questions, depth))

    def watching(self, blocks: Blocks) -> Iterator[tuple[slice, NDArray[Any]]]:
        """The same blocks; what is best in each is kept before it is handed on."""
        for rows, scores in blocks:
            self.order[rows], self.scores[rows] = leading_columns(scores, self.order.shape[1])
            yield rows, scores


def _ranking_of_hits(
    held: HeldAnswers, questions: Sequence[Question], order: Ints, ids: NDArray[Any], corpus: int
) -> Ranking:
    """The rank at which the joined chunks hold each answer.

    The other chunks that hold an answer by themselves stand in as items that were not retrieved, which hit
    rates ignore. Chance is not to be read off it: chunks that are drawn together are read together too.
    """
    answers = (each.answer for each in questions)
    hits = [held.shelf.first_hit(answer, row) for answer, row in zip(answers, order, strict=True)]
    least = np.array([hit is not None for hit in hits], dtype=np.int64)
    counts = np.maximum([len(holders) for holders in held.holders], least)
    above = np.full(int(counts.sum()), NEVER, dtype=np.int64)
    found = least > 0
    above[(np.cumsum(counts) - counts)[found]] = [hit - 1 for hit in hits if hit is not None]
    pool = np.full(len(counts), corpus, dtype=np.int64)
    return with_misses(
        Ranking.of_items(
            ids,
            counts,
            gain=np.ones(len(above)),
            above=above,
            tied=np.zeros_like(above),
            depth=np.full_like(pool, order.shape[1]),
            candidates=pool,
        )
    )
