"""Accounts that are probably below the wrong parent, according to their names and to the order of their numbers.

Most names that fit another parent better are no mistakes: SKR03, a chart without mistakes, has 203 such accounts of
1,052. Three conditions leave the accounts that are worth a look:

- The other parent is neither an ancestor nor a descendant of the present one.
- No account that is next to it in the order of the numbers has the same parent, in a chart whose numbers follow the
  tree. In SKR03 91 % of the accounts have such a neighbour, and an account in a random wrong place has none.
- It is among the accounts with the strongest evidence, at most ``MAX_SHARE`` of all.

Mistakes are simulated to measure the list: each account is moved to random other parents.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from math import nan
from typing import TYPE_CHECKING

import numpy as np

from equipoise.domains.accounts.trees.tree import is_random_id
from equipoise.io.dag import reachable

if TYPE_CHECKING:
    from equipoise.domains.accounts.placement import AccountPlacer
    from equipoise.domains.accounts.trees.tree import Tree
    from equipoise.types import Bools, Floats, Ints

MAX_SHARE, MIN_LISTED = 0.02, 5
"""At most this share of the accounts is listed, but not fewer than this number.

Of accounts of SKR03 that are moved to a random parent, 82 % are among the first 2 %, and 84 % among all suspects (3 %).
Without the order of numbers 47 % are among the first 2 %, and 56 % among the first 15 %.
"""
MIN_CONFIDENCE, MIN_CONFIDENCE_NUMBERED = 0.5, 0.2
"""The least confidence of the other parent by default, without and with the order of numbers."""
MIN_NUMBERED = 0.95
"""The order of numbers is used if at least this share of the accounts has one."""
MIN_FOLLOWING, MAX_FOLLOWING_BY_CHANCE = 0.7, 0.5
"""Numbers follow the tree if at least this share of accounts is next to one of the same parent, and few by chance."""
N_MOVES = 5
"""Random other parents that each account is moved to."""


@dataclass(frozen=True)
class MisfiledAccount:
    """An account that its name would place below another parent.

    ``parent_confidence`` is the confidence of its present place: of its parents, their ancestors and descendants.
    """

    id: str
    name: str
    parent: str
    likely_parent: str
    confidence: float
    parent_confidence: float


@dataclass(frozen=True)
class MisfiledAccounts:
    """The accounts that are probably misfiled, those with the strongest evidence first.

    Of ``n_accounts``, the names of ``n_suspects`` point to another parent, and ``accounts`` are listed.
    ``uses_numbers`` tells whether the order of numbers was used. ``detection_rate`` is the share of accounts moved to
    a random other parent that would be on a list of this length.
    """

    accounts: tuple[MisfiledAccount, ...]
    n_accounts: int
    n_suspects: int
    uses_numbers: bool
    detection_rate: float

    def __len__(self) -> int:
        return len(self.accounts)

    def __iter__(self) -> Iterator[MisfiledAccount]:
        return iter(self.accounts)

    def __getitem__(self, at: int) -> MisfiledAccount:
        return self.accounts[at]


def misfiled_accounts(
    placer: AccountPlacer,
    *,
    min_confidence: float | None = None,
    max_share: float = MAX_SHARE,
    seed: int = 0,
    progress: Callable[[int], None] | None = None,
) -> MisfiledAccounts:
    """The accounts that are probably below the wrong parent.

    Each account without children is in turn treated as new. Evidence is the ratio of two confidences: of the most
    probable parent, and of the present place.

    Parameters
    ----------
    placer
        The tree and the system that compares names.
    min_confidence
        The least confidence of the other parent; by default 0.2 if numbers follow the tree, and 0.5 otherwise.
    max_share
        The largest share of the accounts that is listed; at least five accounts may be.
    seed
        Of the random moves that the detection rate is measured with.
    progress
        Called with the number of compared accounts.

    Returns
    -------
    MisfiledAccounts
        The accounts, those with the strongest evidence first.

    Examples
    --------
    >>> placer = AccountPlacer(read_tree("chart.csv"))  # doctest: +SKIP
    >>> [account.id for account in misfiled_accounts(placer)]  # doctest: +SKIP
    """
    tree = placer.tree
    nodes, probabilities = placer.leave_one_out(progress)
    neighbors = _neighbors_by_number(tree, nodes)
    least = min_confidence
    if least is None:
        least = MIN_CONFIDENCE if neighbors is None else MIN_CONFIDENCE_NUMBERED
    evidence = _Evidence(tree, placer.candidates, neighbors, least)
    suspects = []
    for node, probability in zip(nodes.tolist(), probabilities, strict=True):
        ratio, place = evidence.ratio(node, probability, tree.parents(node))
        if ratio > 1.0:
            best = int(probability.argmax())
            parent, likely = (tree.ids[at] for at in (int(tree.first_parents[node]), int(placer.candidates[best])))
            item = MisfiledAccount(tree.ids[node], tree.names[node], parent, likely, float(probability[best]), place)
            suspects.append((ratio, item))
    suspects.sort(key=lambda pair: (-pair[0], pair[1].id))
    listed = suspects[: max(MIN_LISTED, int(max_share * len(nodes)))]
    is_complete = len(listed) == len(suspects)
    threshold = 1.0 if is_complete else listed[-1][0]
    return MisfiledAccounts(
        tuple(item for _, item in listed),
        len(nodes),
        len(suspects),
        neighbors is not None,
        _detection_rate(evidence, nodes, probabilities, threshold, np.random.default_rng(seed)),
    )


class _Evidence:
    """The evidence that an account is misfiled, for its present parent or for any other."""

    def __init__(
        self, tree: Tree, candidates: Ints, neighbors: dict[int, list[int]] | None, min_confidence: float
    ) -> None:
        self.tree, self.candidates = tree, candidates
        self._neighbors, self._min_confidence = neighbors, min_confidence
        self._is_related = lru_cache(maxsize=4096)(self._compute_related)

    def ratio(self, node: int, probability: Floats, parents: Ints) -> tuple[float, float]:
        """Confidence of the most probable parent over that of the place below these parents, and the latter.

        The ratio is 0 if the account is not suspect.
        """
        is_related = self.is_related(parents)
        best, place = int(probability.argmax()), float(probability[is_related].sum())
        if is_related[best] or probability[best] < self._min_confidence or self._is_next_to_sibling(node, parents):
            return 0.0, place
        return float(probability[best]) / place, place

    def is_related(self, parents: Ints) -> Bools:
        """Which candidates are one of these parents, their ancestors or their descendants."""
        return np.any([self._is_related(parent) for parent in parents.tolist()], axis=0)

    def _compute_related(self, parent: int) -> Bools:
        related = [*reachable(self.tree.down, parent).tolist(), *reachable(self.tree.up, parent).tolist()]
        return np.isin(self.candidates, related)

    def _is_next_to_sibling(self, node: int, parents: Ints) -> bool:
        if self._neighbors is None:
            return False
        neighbors = self._neighbors.get(node, ())
        return any(np.isin(self.tree.parents(other), parents).any() for other in neighbors)


def _neighbors_by_number(tree: Tree, nodes: Ints) -> dict[int, list[int]] | None:
    """The accounts before and after each account in the order of the numbers; None if they do not follow the tree."""
    keys = [_number(tree, node) for node in nodes.tolist()]
    numbered = [(_by_number(key), node) for key, node in zip(keys, nodes.tolist(), strict=True) if key]
    if len(numbered) < max(2, MIN_NUMBERED * len(keys)):
        return None
    ordered = [node for _, node in sorted(numbered)]
    parents = tree.first_parents[np.array(ordered)]
    same = parents[1:] == parents[:-1]
    following = float((np.append(same, False) | np.append(False, same)).mean())
    by_chance = float(((np.unique(parents, return_counts=True)[1] / len(parents)) ** 2).sum())
    if following < MIN_FOLLOWING or 1.0 - (1.0 - by_chance) ** 2 > MAX_FOLLOWING_BY_CHANCE:
        return None
    return {
        node: [ordered[other] for other in (at - 1, at + 1) if 0 <= other < len(ordered)]
        for at, node in enumerate(ordered)
    }


def _number(tree: Tree, node: int) -> str:
    """The id, if it has digits; names of GnuCash, whose ids may be random, may begin with the number."""
    key, name = tree.ids[node], tree.names[node]
    if is_random_id(key):
        return name if name[:1].isdigit() else ""
    return key if re.search("[0-9]", key) else ""


def _by_number(key: str) -> list[tuple[int, str]]:
    """A sort key in which numbers within an id are compared as numbers."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split("([0-9]+)", key)]


def _detection_rate(
    evidence: _Evidence, nodes: Ints, probabilities: Floats, threshold: float, rng: np.random.Generator
) -> float:
    """The share of accounts, moved to random other parents, with at least this evidence.

    The probabilities of an account do not depend on its own place, since each is left out in turn.
    """
    detected = []
    for node, probability in zip(nodes.tolist(), probabilities, strict=True):
        others = evidence.candidates[~evidence.is_related(evidence.tree.parents(node))]
        for parent in rng.choice(others, min(N_MOVES, len(others)), replace=False).tolist() if len(others) else ():
            detected.append(evidence.ratio(node, probability, np.array([parent]))[0] >= threshold)
    return float(np.mean(detected)) if detected else nan
