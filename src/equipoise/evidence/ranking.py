"""Evidence for ranking metrics: the rank of each relevant item of each unit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from equipoise.config import Ties
from equipoise.errors import InputError
from equipoise.evidence import segments
from equipoise.evidence.base import Arrays, Evidence, StoredArrays, constant_column, ids_to_array
from equipoise.evidence.segments import NOT_RETRIEVED
from equipoise.io.arrays import segment_indices, segment_offsets

if TYPE_CHECKING:
    from equipoise.geometry.base import Geometry
    from equipoise.types import Bools, Floats, Ids, Ints


@dataclass(frozen=True, eq=False)
class Ranking(Evidence):
    """For each unit and each of its relevant items: gain, candidates above it, candidates tied with it.

    The items of unit ``u`` are ``starts[u]:starts[u + 1]``, best rank first. ``tied`` counts other candidates with
    the same score, and ``before`` those of them that precede the item by id. ``candidates`` is the number of items
    that could have been ranked (a lower bound unless ``pool_known``), ``depth`` the number of observed ranks; they
    differ for truncated lists. ``near`` ranks items that are not relevant but similar to a relevant one (their gain
    is the similarity), for MaxOntSim; ``random_near[u, k - 1]`` is the expected MaxOntSim@k of unit ``u`` for random
    candidates. An item of ``near`` may represent several items of equal score and similarity: ``copies`` is their
    number. ``nonrelevant`` ranks the assessed items that are not relevant (their gain is 0 or less), for bpref and
    others; None if there are none.

    >>> ranking = Ranking.from_runs({"q": {"a": 1, "b": 1}}, {"q": {"a": 0.9, "x": 0.8, "b": 0.7}})
    >>> ranking.ranks
    array([1., 3.])
    """

    unit_ids: Ids
    starts: Ints
    gain: Floats
    above: Ints
    tied: Ints
    before: Ints
    candidates: Ints
    depth: Ints
    pool_known: bool = True
    filtered: bool = False
    unknown_units: tuple[str, ...] = ()
    invalid_points: str = ""
    near: Ranking | None = None
    random_near: Floats | None = None
    copies: Ints | None = None
    nonrelevant: Ranking | None = None

    kind = "ranking"

    # ---- building ---------------------------------------------------------------------------

    @classmethod
    def from_runs(
        cls, qrels: object, run: object, *, corpus_size: int | None = None, columns: Mapping[str, str] | None = None
    ) -> Ranking:
        """Build a ranking from relevance judgements and a run.

        Both are dicts of dicts, paths of files, pandas or polars frames, pyarrow tables, Hugging Face datasets, ranx
        ``Qrels`` and ``Run``, or the iterators of ir_measures and ir_datasets.

        Parameters
        ----------
        qrels
            ``qrels[unit][item]`` is the gain; 0 and below is not relevant.
        run
            ``run[unit][item]`` is the score. A TREC file is read one query at a time if the lines of every query are
            contiguous.
        corpus_size
            The number of items that could have been retrieved. Without it the chance level uses only the items that
            were retrieved or are relevant.
        columns
            The columns of tables, for those without a usual name: ``query_id``, ``doc_id``, ``gain``, and ``score`` or
            ``rank``.

        Returns
        -------
        Ranking
            One unit per query of ``qrels``.

        Examples
        --------
        >>> Ranking.from_runs({"q1": {"d7": 1}}, {"q1": {"d2": 0.9, "d7": 0.4}}, corpus_size=100).ranks
        array([2.])
        """
        from equipoise.evidence.ranking_from_lists import ranking_from_runs

        return ranking_from_runs(qrels, run, corpus_size=corpus_size, columns=columns)

    @classmethod
    def from_lists(
        cls,
        retrieved: ArrayLike,
        relevant: ArrayLike,
        *,
        scores: ArrayLike | None = None,
        gains: ArrayLike | None = None,
        unit_ids: ArrayLike | None = None,
        corpus_size: int | None = None,
    ) -> Ranking:
        """Build a ranking from retrieved and relevant ids.

        Parameters
        ----------
        retrieved
            Ids, best first: a matrix with one row per unit, or a sequence of rows of unequal length.
        relevant
            Ids of the relevant items, in the same form.
        scores
            Scores of the retrieved items, which define order and ties.
        gains
            Gains of the relevant items; 1 by default.
        unit_ids
            Ids of the units.
        corpus_size
            The number of items that could have been retrieved.

        Returns
        -------
        Ranking
            One unit per row.

        Examples
        --------
        >>> Ranking.from_lists([["a", "b"], ["c", "a"]], [["b"], ["c"]], corpus_size=10).ranks
        array([2., 1.])
        """
        from equipoise.evidence.ranking_from_lists import ranking_from_lists

        return ranking_from_lists(
            retrieved, relevant, scores=scores, gains=gains, unit_ids=unit_ids, corpus_size=corpus_size
        )

    @classmethod
    def from_scores(
        cls,
        scores: ArrayLike,
        targets: ArrayLike,
        *,
        exclude: ArrayLike | None = None,
        unit_ids: ArrayLike | None = None,
    ) -> Ranking:
        """Build a ranking from a matrix of scores or logits.

        Parameters
        ----------
        scores
            A matrix (units x candidates) of any library that follows the array API (numpy, torch on any device). Ranks
            are counted on its device.
        targets
            The column of the relevant item of each unit, or a sequence of columns per unit.
        exclude
            Columns that are never candidates, such as padding classes.
        unit_ids
            Ids of the units.

        Returns
        -------
        Ranking
            One unit per row.

        Examples
        --------
        >>> Ranking.from_scores(np.array([[0.1, 0.9], [0.8, 0.2]]), [1, 1]).ranks
        array([1., 2.])
        """
        from equipoise.evidence.ranking_from_scores import ranking_from_scores

        return ranking_from_scores(scores, targets, exclude=exclude, unit_ids=unit_ids)

    @classmethod
    def from_embeddings(
        cls,
        queries: ArrayLike,
        corpus: ArrayLike,
        relevant: ArrayLike,
        *,
        geometry: str | Geometry = "cosine",
        exclude: ArrayLike | None = None,
        gains: ArrayLike | None = None,
        unit_ids: ArrayLike | None = None,
        device: object = None,
    ) -> Ranking:
        """Build a ranking from vectors: the ranks of the relevant rows among all rows of the corpus.

        Parameters
        ----------
        queries
            One vector per unit.
        corpus
            One vector per candidate.
        relevant
            Row numbers of the relevant candidates: one per unit, or a sequence per unit.
        geometry
            ``cosine``, ``dot``, ``euclidean``, ``poincare`` or ``lorentz``.
        exclude
            One row per unit that is not a candidate (the unit itself), -1 for none.
        gains
            Gains of the relevant rows; 1 by default.
        unit_ids
            Ids of the units.
        device
            Where distances are computed, such as ``cuda``. Scores that differ only by rounding may swap ranks there.

        Returns
        -------
        Ranking
            Full-depth ranks, one unit per query.

        Examples
        --------
        >>> Ranking.from_embeddings([[1.0, 0.1]], [[0.0, 1.0], [1.0, 0.0]], [1]).ranks
        array([1.])
        """
        from equipoise.evidence.ranking_from_vectors import ranking_from_embeddings

        return ranking_from_embeddings(
            queries,
            corpus,
            relevant,
            geometry=geometry,
            exclude=exclude,
            gains=gains,
            unit_ids=unit_ids,
            device=device,
        )

    @classmethod
    def from_blocks(
        cls,
        blocks: Iterable[tuple[slice, NDArray[Any]]],
        relevant: ArrayLike,
        *,
        units: int,
        corpus: int,
        exclude: ArrayLike | None = None,
        gains: ArrayLike | None = None,
        unit_ids: ArrayLike | None = None,
    ) -> Ranking:
        """Build a ranking from scores that come in blocks, such as those of ``score_blocks`` of a fitted retriever.

        Parameters
        ----------
        blocks
            Pairs of a slice of the units and their scores (units x items), higher is better. Blocks are overwritten.
        relevant
            Row numbers of the relevant items: one per unit, or a sequence per unit.
        units
            Number of units.
        corpus
            Number of items.
        exclude
            One item per unit that is not a candidate, -1 for none.
        gains
            Gains of the relevant items; 1 by default.
        unit_ids
            Ids of the units.
        """
        from equipoise.evidence.ranking_from_vectors import ranking_from_blocks

        return ranking_from_blocks(
            blocks, relevant, units=units, corpus=corpus, exclude=exclude, gains=gains, unit_ids=unit_ids
        )

    @classmethod
    def from_ranks(cls, ranks: ArrayLike, *, candidates: int, unit_ids: ArrayLike | None = None) -> Ranking:
        """Build a ranking from the rank of the single relevant item of each unit.

        Parameters
        ----------
        ranks
            Ranks; 1 is best.
        candidates
            Number of candidates of every unit.
        unit_ids
            Ids of the units.

        Returns
        -------
        Ranking
            One unit per rank.

        Examples
        --------
        >>> Ranking.from_ranks([2, 1, 5], candidates=10).above
        array([1, 0, 4])
        """
        from equipoise.evidence.ranking_from_lists import ranking_from_ranks

        return ranking_from_ranks(ranks, candidates=candidates, unit_ids=unit_ids)

    @classmethod
    def of_items(
        cls,
        unit_ids: Ids,
        counts: Ints,
        *,
        gain: Floats,
        above: Ints,
        tied: Ints,
        before: Ints | None = None,
        copies: Ints | None = None,
        depth: Ints,
        candidates: Ints | None = None,
    ) -> Ranking:
        """From counts for each relevant item, in any order within its unit; they are sorted by rank.

        Parameters
        ----------
        unit_ids
            Ids of the units.
        counts
            Number of relevant items of each unit; the arrays below are in the order of the units.
        gain
            Gain of each relevant item.
        above
            Number of candidates with a higher score than each relevant item.
        tied
            Number of other candidates with the same score as each relevant item.
        before
            Number of these tied candidates that precede each relevant item by id; 0 by default.
        copies
            How many items of equal gain each item represents; 1 by default.
        depth
            Number of observed ranks of each unit.
        candidates
            Number of candidates of each unit; by default a lower bound.
        """
        starts = segment_offsets(counts)
        order = segments.segment_order(above, counts)
        if before is None:
            before = np.zeros_like(above)
        pool_known = candidates is not None
        if candidates is None:
            unit_of = np.repeat(np.arange(len(counts)), counts)
            candidates = depth + np.bincount(unit_of[above == NOT_RETRIEVED], minlength=len(counts))
        if order is not None:
            gain, above, tied, before = gain[order], above[order], tied[order], before[order]
            copies = None if copies is None else copies[order]
        return cls(
            unit_ids,
            starts,
            gain,
            above,
            tied,
            before,
            candidates,
            depth,
            pool_known=pool_known,
            copies=copies,
        )

    @classmethod
    def of_targets(cls, unit_ids: Ids | None, *, above: Ints, tied: Ints, before: Ints, candidates: int) -> Ranking:
        """From one relevant item per unit, of gain 1, with the same number of candidates for all units.

        Without ids, the units are 0, 1, 2, ... Constant columns are views of one number and take no memory.
        """
        starts = np.arange(len(above) + 1)
        pool = constant_column(np.int64(candidates), len(above))
        return cls(
            starts[:-1] if unit_ids is None else unit_ids,
            starts,
            gain=constant_column(np.float64(1.0), len(above)),
            above=above,
            tied=tied,
            before=before,
            candidates=pool,
            depth=pool,
        )

    @classmethod
    def concatenated(cls, parts: Sequence[Ranking]) -> Ranking:
        """The units of all parts, one part after another."""
        counts = np.concatenate([part.counts for part in parts])
        joined: dict[str, Any] = {
            name: np.concatenate([getattr(part, name) for part in parts]) for name in COUNT_FIELDS[1:]
        }
        near = [part.near for part in parts if part.near is not None]
        if 0 < len(near) < len(parts):
            raise InputError("some parts of the ranking have near items and some have none")
        return cls(
            np.concatenate([part.unit_ids for part in parts]),
            segment_offsets(counts),
            **joined,
            pool_known=all(part.pool_known for part in parts),
            filtered=any(part.filtered for part in parts),
            unknown_units=tuple(unit for part in parts for unit in part.unknown_units),
            near=cls.concatenated(near) if near else None,
            random_near=_stack_tables([part.random_near for part in parts]),
            copies=_concatenate_copies(parts),
            nonrelevant=_concatenate_nonrelevant(parts),
        )

    # ---- derived from the counts -------------------------------------------------------

    @cached_property
    def counts(self) -> Ints:
        """The number of relevant items of each unit."""
        return np.diff(self.starts)

    @cached_property
    def pool(self) -> Ints:
        """The number of candidates each item of a unit is ranked among; without other relevant items if filtered."""
        n_others = np.maximum(self.counts - 1, 0) if self.filtered else 0
        return np.maximum(self.candidates - n_others, 1)

    @cached_property
    def unit_of(self) -> Ints:
        """The index of the unit of each item."""
        return np.repeat(np.arange(len(self.counts)), self.counts)

    @cached_property
    def slot(self) -> Ints:
        """The number of relevant items of the same unit before each item."""
        return np.arange(len(self.above)) - np.repeat(self.starts[:-1], self.counts)

    @cached_property
    def has_ties(self) -> bool:
        """Whether any relevant item shares its score with another candidate."""
        return bool(self.tied.any())

    @cached_property
    def retrieved(self) -> Bools:
        """Which items were retrieved."""
        return self.above != NOT_RETRIEVED

    @cached_property
    def complete(self) -> bool:
        """Whether every relevant item has a rank."""
        return bool(self.retrieved.all())

    @cached_property
    def ranks(self) -> Floats:
        """The (expected) rank of each relevant item, from 1; infinity for those not retrieved."""
        ranks: Floats = self.above.astype(np.float64) + 1.0
        if self.has_ties:
            ranks += self.tied / 2.0
        if not self.complete:
            ranks[~self.retrieved] = np.inf
        return ranks

    @cached_property
    def best_ranks(self) -> Floats:
        """The rank of each unit's best item; NaN for a unit without relevant items."""
        return segments.segment_firsts(self.ranks, self.starts)

    @cached_property
    def ideal_gains(self) -> Floats:
        """The gains of each unit, largest first: the order of a perfect system."""
        if len(self.gain) == 0 or self.gain.min() == self.gain.max():
            return self.gain
        return self.gain[np.lexsort((-self.gain, self.unit_of))]

    # ---- transformations --------------------------------------------------

    def ordered(self, ties: Ties | str) -> Ranking:
        """The ranking with ties broken: by id, or in the best or worst order.

        ``expected`` keeps the ties: the metrics then take the expectation over all orders.
        """
        policy = Ties(ties)
        near, other = self.near, self.nonrelevant
        tied = self.has_ties or any(part is not None and part.has_ties for part in (near, other))
        if policy is Ties.EXPECTED or not tied:
            return self
        if near is not None:
            # In the worst order, the near items of a tie group precede its relevant items.
            last = segments.shared_groups(near, self) if policy is Ties.PESSIMISTIC else 0
            near = near.with_above(segments.break_ties(near, policy) - last)
        if other is not None:
            # The best order for the relevant items is the worst one for the others.
            opposite = {Ties.OPTIMISTIC: Ties.PESSIMISTIC, Ties.PESSIMISTIC: Ties.OPTIMISTIC}.get(policy, policy)
            other = other.with_above(segments.break_ties(other, opposite))
        return replace(self.with_above(segments.break_ties(self, policy)), near=near, nonrelevant=other)

    def with_above(self, above: Ints) -> Ranking:
        """The same items at other ranks, without ties."""
        order = segments.segment_order(above, self.counts)
        gain = self.gain
        if order is not None:
            gain, above = gain[order], above[order]
        zeros = np.zeros_like(above)
        return replace(self, gain=gain, above=above, tied=zeros, before=zeros, copies=None)

    def with_near(self, near: Ranking) -> Ranking:
        """The same ranking with the similarity of other retrieved items, for MaxOntSim.

        ``near`` ranks, for the same units, items that are not relevant; its gains are similarities.
        """
        if list(near.unit_ids) != list(self.unit_ids):
            raise InputError("the near items belong to other units", hint="rank them for the same units")
        return replace(self, near=near)

    def with_filtered_ranks(self) -> Ranking:
        """Filtered ranks: the other relevant items of a unit do not count as candidates above."""
        first, size = segments.relevant_tie_groups(self)
        relevant_before = segments.rank_within_tie(self, self.before)
        retrieved = self.retrieved
        return replace(
            self,
            above=self.above - np.where(retrieved, first, 0),
            tied=self.tied - np.where(retrieved, size - 1, 0),
            before=self.before - np.where(retrieved, relevant_before, 0),
            filtered=True,
            nonrelevant=None,
        )

    def at_least(self, gain: float) -> Ranking:
        """The ranking in which only items of at least this gain are relevant.

        >>> ranking = Ranking.from_runs({"q": {"a": 1, "b": 2}}, {"q": {"a": 0.9, "b": 0.7}})
        >>> ranking.at_least(2).ranks
        array([2.])
        """
        is_kept = self.gain >= gain
        if is_kept.all():
            return self
        other = self._items(~is_kept)
        if self.nonrelevant is not None:
            other = merge_items(other, self.nonrelevant)
        return replace(self._items(is_kept), nonrelevant=other, near=self.near, random_near=self.random_near)

    def _items(self, chosen: Bools) -> Ranking:
        """The same units with these items only."""
        counts = np.bincount(self.unit_of[chosen], minlength=len(self))
        return replace(
            self,
            starts=segment_offsets(counts),
            gain=self.gain[chosen],
            above=self.above[chosen],
            tied=self.tied[chosen],
            before=self.before[chosen],
            copies=None if self.copies is None else self.copies[chosen],
            near=None,
            random_near=None,
            nonrelevant=None,
        )

    def with_constant_scores(self) -> Ranking:
        """The ranking of a system that gives every candidate the same score."""
        above = np.zeros_like(self.above)
        tied = np.repeat(self.pool - 1, self.counts)
        near = None if self.near is None else self.near.with_constant_scores()
        other = None if self.nonrelevant is None else self.nonrelevant.with_constant_scores()
        constant_ranking = replace(self, above=above, tied=tied, before=above, near=near, nonrelevant=other)
        # What depends on the units alone is computed once, not for the chance level of every metric.
        constant_ranking.__dict__.update({name: getattr(self, name) for name in ("counts", "pool", "unit_of", "slot")})
        return constant_ranking

    def take(self, index: Ints) -> Ranking:
        """The units at ``index``, in that order; an index may repeat."""
        counts = self.counts[index]
        items = segment_indices(self.starts[:-1][index], counts)
        return replace(
            self,
            unit_ids=self.unit_ids[index],
            starts=segment_offsets(counts),
            gain=self.gain[items],
            above=self.above[items],
            tied=self.tied[items],
            before=self.before[items],
            candidates=self.candidates[index],
            depth=self.depth[index],
            near=None if self.near is None else self.near.take(index),
            random_near=None if self.random_near is None else self.random_near[index],
            copies=None if self.copies is None else self.copies[items],
            nonrelevant=None if self.nonrelevant is None else self.nonrelevant.take(index),
        )

    def shuffled(self, rng: np.random.Generator) -> Ranking:
        """The relevant items at random ranks among the candidates; beyond the depth they are not retrieved."""
        others = {name: part for name in ("near", "nonrelevant") if (part := getattr(self, name)) is not None}
        counts = self.counts + sum((part.counts for part in others.values()), np.zeros_like(self.counts))
        above = segments.random_ranks(np.maximum(self.pool, counts), counts, rng, distinct=not self.filtered)
        above[above >= np.repeat(self.depth, counts)] = NOT_RETRIEVED
        begin = np.cumsum(counts) - counts
        shuffled = {"": self, **others}
        for name, part in shuffled.items():
            shuffled[name] = part.with_above(above[segment_indices(begin, part.counts)])
            begin = begin + part.counts
        return replace(shuffled.pop(""), **shuffled)

    # ---- storing ----------------------------------------------------------------------------

    def to_arrays(self) -> Arrays:
        """All fields as plain arrays."""
        arrays: Arrays = {
            "unit_ids": ids_to_array(self.unit_ids),
            "starts": self.starts,
            "gain": self.gain,
            "above": self.above,
            "tied": self.tied,
            "before": self.before,
            "candidates": self.candidates,
            "depth": self.depth,
            "pool_known": np.array(self.pool_known),
            "filtered": np.array(self.filtered),
            "unknown_units": np.array(self.unknown_units, dtype=str),
            "invalid_points": np.array(self.invalid_points),
        }
        if self.near is not None:
            arrays |= {f"near_{name}": array for name, array in self.near.to_arrays().items()}
        if self.nonrelevant is not None:
            arrays |= {f"nonrelevant_{name}": array for name, array in self.nonrelevant.to_arrays().items()}
        if self.random_near is not None:
            arrays["random_near"] = self.random_near
        if self.copies is not None:
            arrays["copies"] = self.copies
        return arrays

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Ranking:
        """The inverse of ``to_arrays``."""
        stored = StoredArrays(arrays)
        unit_ids, gain = stored.ids("unit_ids"), stored.numbers("gain", None)
        units, items = len(unit_ids), len(gain)
        near, other = stored.below("near_"), stored.below("nonrelevant_")
        return cls(
            unit_ids=unit_ids,
            starts=stored.offsets("starts", units, items),
            gain=gain,
            **{name: stored.counts(name, items) for name in ("above", "tied", "before")},
            **{name: stored.counts(name, units) for name in ("candidates", "depth")},
            pool_known=stored.flag("pool_known"),
            filtered=stored.flag("filtered"),
            unknown_units=stored.texts("unknown_units"),
            invalid_points=stored.text("invalid_points"),
            near=cls.from_arrays(near) if near else None,
            random_near=stored.numbers("random_near", units, None) if "random_near" in stored else None,
            copies=stored.counts("copies", items) if "copies" in stored else None,
            nonrelevant=cls.from_arrays(other) if other else None,
        )

    def __repr__(self) -> str:
        shape = f"{len(self)} units, {len(self.above)} relevant items"
        marks = [mark for mark, holds in (("tied", self.has_ties), ("truncated", not self.complete)) if holds]
        return f"<Ranking: {', '.join([shape, *marks])}>"


COUNT_FIELDS = ("starts", "gain", "above", "tied", "before", "candidates", "depth")


def _stack_tables(tables: Sequence[Floats | None]) -> Floats | None:
    """The tables concatenated, truncated to the narrowest; None if one is missing."""
    present = [table for table in tables if table is not None]
    if not present or len(present) < len(tables):
        return None
    width = min(table.shape[1] for table in present)
    return np.concatenate([table[:, :width] for table in present])


def _concatenate_copies(parts: Sequence[Ranking]) -> Ints | None:
    """The multiplicities of all items, 1 for parts without ``copies``; None if no part has them."""
    if all(part.copies is None for part in parts):
        return None
    return np.concatenate([segments.multiplicities(part) for part in parts])


def _concatenate_nonrelevant(parts: Sequence[Ranking]) -> Ranking | None:
    """The assessed items that are not relevant of all parts; None if no part has any."""
    if all(part.nonrelevant is None for part in parts):
        return None
    empty = [np.zeros(len(part.above), dtype=np.bool_) for part in parts]
    return Ranking.concatenated(
        [part.nonrelevant or part._items(none) for part, none in zip(parts, empty, strict=True)]
    )


def merge_items(one: Ranking, other: Ranking) -> Ranking:
    """The items of two rankings of the same units, sorted by rank."""
    order = np.argsort(np.concatenate([one.unit_of, other.unit_of]), kind="stable")
    joined: dict[str, Any] = {
        name: np.concatenate([getattr(one, name), getattr(other, name)])[order] for name in _ITEM_FIELDS
    }
    return Ranking.of_items(
        one.unit_ids, one.counts + other.counts, depth=one.depth, candidates=one.candidates, **joined
    )


_ITEM_FIELDS = ("gain", "above", "tied", "before")


def unanswerable_as_misses(ranking: Ranking) -> Ranking:
    """The same ranking with units without relevant items scored as misses instead of undefined.

    Such a unit gets one relevant item that is an additional candidate and was not retrieved, and an observed depth
    of 0. So its score and its chance level are 0 for every ranking metric.
    """
    empty = ranking.counts == 0
    if not empty.any():
        return ranking
    at = ranking.starts[:-1][empty]
    return replace(
        ranking,
        starts=segment_offsets(np.maximum(ranking.counts, 1)),
        gain=np.insert(ranking.gain, at, 1.0),
        above=np.insert(ranking.above, at, NOT_RETRIEVED),
        tied=np.insert(ranking.tied, at, 0),
        before=np.insert(ranking.before, at, 0),
        candidates=ranking.candidates + empty,
        depth=np.where(empty, 0, ranking.depth),
    )
