"""From questions, chunks and a fitted system to evidence: one pass over the scores serves every depth."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from equipoise.errors import InputError, ParameterError, ShapeError
from equipoise.evidence.ranking import Ranking, unanswerable_as_misses
from equipoise.evidence.segments import NOT_RETRIEVED
from equipoise.geometry.topk import leading_columns_of

if TYPE_CHECKING:
    from equipoise.domains.fair.answer_matching import AnswerIndex, AnswerMatcher, AnswerParts
    from equipoise.domains.fair.questions import QuestionAnswer
    from equipoise.models.chunking import Chunk
    from equipoise.types import Floats, Ints

# How many questions chunks that are drawn at random would answer.

N_SAMPLES = 100_000
"""Of all questions together: with these the standard error is at most 0.5 / sqrt(100,000) = 0.0016."""
MAX_SAMPLES = 4_000
"""Of one question; with fewer than 25 of them the standard error is at most 0.008 / sqrt(questions)."""


def chance_levels(
    holders: Sequence[Ints],
    parts: Sequence[AnswerParts | None],
    corpus: int,
    depth: int,
    rng: np.random.Generator,
) -> Floats:
    """The share of questions that k of ``corpus`` chunks answer, drawn at random: a number for k = 1, 2, ...

    ``holders`` are the chunks that answer a question by themselves: to draw one of them has a closed form.
    ``parts`` are given where chunks are read together. What they then answer only together is simulated,
    with a standard error of at most 0.0016. An answer that only the seam of two neighbours makes whole, so
    that its words are in neither, is left out.

    >>> from equipoise.domains.fair.answer_matching import AnswerParts
    >>> rye, bread = [True, False, False], [False, True, False]
    >>> either, both = AnswerParts(np.array([rye, bread]), 1), AnswerParts(np.array([rye, bread]), 2)
    >>> rng, none = np.random.default_rng(0), np.array([], dtype=int)
    >>> chance_levels([np.array([0, 1])], [either], 3, 3, rng).round(2).tolist()
    [0.67, 1.0, 1.0]
    >>> chance_levels([none], [both], 3, 3, rng).round(1).tolist()  # two of three chunks: one time in three
    [0.0, 0.3, 1.0]
    """
    alone = _drawing_one_of(np.array([len(each) for each in holders]), corpus, depth)
    simulated = np.zeros(depth)
    orders = None
    for held, each in zip(holders, parts, strict=True):
        scattered = None if each is None else each.scattered()
        if scattered is not None:
            if orders is None:
                orders = _orders(corpus, depth, min(MAX_SAMPLES, -(-N_SAMPLES // len(holders))), rng)
            simulated += _only_together(scattered, held, orders, rng.permutation(corpus))
    return alone + simulated / len(holders)


def _drawing_one_of(counts: Ints, corpus: int, depth: int) -> Floats:
    """How often one of so many chunks is among k; the mean over the questions."""
    drawn = np.arange(depth)
    missed = np.cumprod(np.maximum(corpus - counts[:, None] - drawn, 0) / (corpus - drawn), axis=1)
    return 1.0 - missed.mean(axis=0)


def _orders(corpus: int, depth: int, draws: int, rng: np.random.Generator) -> Ints:
    """The first chunks of random orders, a column an order."""
    orders = rng.permuted(np.tile(np.arange(corpus), (draws, 1)), axis=1)
    return np.ascontiguousarray(orders[:, :depth].T)


def _only_together(parts: AnswerParts, held: Ints, orders: Ints, labels: Ints) -> Floats:
    """How often the first k chunks have enough parts, and none of them holds the answer by itself.

    ``labels`` renames the chunks at random, so that questions share no order and their errors are
    independent.
    """
    sets = np.packbits(parts.there[:, labels], axis=0)  # the parts that a chunk has, as bits
    holds = np.zeros(len(labels), dtype=np.bool_)
    holds[held] = True
    gathered = np.bitwise_or.accumulate(sets.take(orders, axis=1), axis=1)
    enough = np.bitwise_count(gathered).sum(axis=0, dtype=np.uint32) >= parts.needed
    alone = np.logical_or.accumulate(holds[labels].take(orders), axis=0)
    together: Floats = np.mean(enough & ~alone, axis=1)
    return together


Blocks = Iterable[tuple[slice, NDArray[Any]]]


class ScoresTexts(Protocol):
    """A system that has seen the chunks, such as ``retriever(...).fit(texts)``."""

    def score_blocks(self, queries: Sequence[str]) -> Blocks:
        """Rows of queries with their scores against every chunk, higher being better."""


@dataclass(frozen=True)
class AnswerLocations:
    """Which chunks hold which answers: the same for every system that searches these chunks."""

    joins: bool
    shelf: AnswerIndex
    holders: tuple[Ints, ...]
    _chance: dict[tuple[int, int], Floats] = field(default_factory=dict, init=False, repr=False)

    def chance(self, questions: Sequence[QuestionAnswer], corpus: int, depth: int, seed: int = 0) -> Floats:
        """The share of questions that k chunks at random answer, k = 1 to ``depth``; worked out once."""
        if (depth, seed) not in self._chance:
            parts = [self.shelf.parts(each.answer) for each in questions]
            self._chance[depth, seed] = chance_levels(self.holders, parts, corpus, depth, np.random.default_rng(seed))
        return self._chance[depth, seed]


@dataclass(frozen=True)
class AnswerRanking:
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


def locate_answers(
    questions: Sequence[QuestionAnswer], chunks: Sequence[Chunk], matcher: AnswerMatcher
) -> AnswerLocations:
    """Look every answer up in every chunk, once for all systems that search these chunks."""
    if not questions or not chunks:
        raise InputError(
            f"there are {len(questions)} questions and {len(chunks)} chunks",
            hint="at least one of each is needed",
        )
    shelf = matcher.shelve([chunk.text for chunk in chunks])
    return AnswerLocations(matcher.joins, shelf, tuple(shelf.holders(each.answer) for each in questions))


def rank_answers(
    fitted: ScoresTexts,
    questions: Sequence[QuestionAnswer],
    chunks: Sequence[Chunk],
    matcher: AnswerMatcher,
    depth: int,
    *,
    held: AnswerLocations | None = None,
) -> AnswerRanking:
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
    held = held or locate_answers(questions, chunks, matcher)
    if len(held.holders) != len(questions):
        raise ShapeError(f"the answers of {len(held.holders)} questions were looked up, not of {len(questions)}")
    found = _Found(len(questions), min(depth, len(chunks)))
    blocks = found.watching(fitted.score_blocks([each.question for each in questions]))
    ids = np.array([each.id for each in questions], dtype=object)
    if held.joins:
        for _ in blocks:
            pass
        ranking = _ranking_of_hits(held, questions, found.order, ids, len(chunks))
    else:
        ranking = unanswerable_as_misses(
            Ranking.from_blocks(blocks, held.holders, units=len(questions), corpus=len(chunks), unit_ids=ids)
        )
    tokens = np.array([chunk.tokens for chunk in chunks], dtype=np.int64)
    return AnswerRanking(
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
            self.order[rows], self.scores[rows] = leading_columns_of(scores, self.order.shape[1])
            yield rows, scores


def _ranking_of_hits(
    held: AnswerLocations, questions: Sequence[QuestionAnswer], order: Ints, ids: NDArray[Any], corpus: int
) -> Ranking:
    """The rank at which the joined chunks hold each answer.

    The other chunks that hold an answer by themselves stand in as items that were not retrieved, which hit
    rates ignore. Chance is not to be read off it: chunks that are drawn together are read together too.
    """
    answers = (each.answer for each in questions)
    hits = [held.shelf.first_hit(answer, row) for answer, row in zip(answers, order, strict=True)]
    least = np.array([hit is not None for hit in hits], dtype=np.int64)
    counts = np.maximum([len(holders) for holders in held.holders], least)
    above = np.full(int(counts.sum()), NOT_RETRIEVED, dtype=np.int64)
    found = least > 0
    above[(np.cumsum(counts) - counts)[found]] = [hit - 1 for hit in hits if hit is not None]
    pool = np.full(len(counts), corpus, dtype=np.int64)
    return unanswerable_as_misses(
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
