"""What a scorer that knows nothing would get under conventions.

Where a library sees only what was retrieved, luck decides twice: which of the relevant items are in the list,
and where they stand in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from equipoise.checks.like.conventions import Conventions
from equipoise.checks.like.material import Material
from equipoise.checks.like.measure import left_out, units_under
from equipoise.evidence.ranking import Ranking
from equipoise.metrics.base import Metric
from equipoise.types import Floats

DRAWN_LISTS, FEWEST_LISTS = 60_000, 10
"""So many lists are drawn in all, and at least for a query, where relevant items have different grades."""
NEGLIGIBLE = 1e-12

Gains = tuple[float, ...]


def chance_under(
    material: Material, metric: Metric[Any], conventions: Conventions, *, seed: int = 0
) -> float:
    """The mean that random scores would earn, over the queries that count.

    >>> from equipoise.metrics.parse import parse
    >>> material = Material.of({"q": {"a": 0.9, "b": 0.1}}, {"q": {"a": 1}}, corpus_size=8)
    >>> [chance_under(material, parse("HR@2")[0], Conventions(unretrieved=each, empty="zero"))
    ...  for each in ("counted", "unseen")]
    [0.25, 0.25]
    """
    if conventions.unretrieved == "unseen":
        values = _of_random_lists(material, metric, conventions, np.random.default_rng([seed, 0]))
    else:
        values = units_under(material.ranking(conventions).uninformed(), metric, conventions)
    values[left_out(material, conventions)] = np.nan
    counted = values[~np.isnan(values)]
    return float(np.mean(counted)) if len(counted) else float("nan")


def _of_random_lists(
    material: Material, metric: Metric[Any], conventions: Conventions, rng: np.random.Generator
) -> Floats:
    """For each query the mean over random lists of the length of its own."""
    # Random scores are all different and have no sign that could mean anything.
    free = replace(conventions, ties="expected", nonpositive="kept")
    whole = material.ranking(replace(free, unretrieved="counted"))
    lists = material.seen(free)
    drawn = max(DRAWN_LISTS // len(material.units), FEWEST_LISTS)
    cases: dict[tuple[int, Gains], int] = {}
    units, places, weights = [], [], []
    for at, unit in enumerate(material.units):
        gains = whole.gain[whole.starts[at] : whole.starts[at + 1]]
        gains = gains if metric.symbol == "nDCG" else np.ones(len(gains))
        length = len(lists.get(unit, ()))
        for weight, held in _held(gains, length, int(whole.candidates[at]), drawn, rng):
            units.append(at)
            places.append(cases.setdefault((length, held), len(cases)))
            weights.append(weight)
    found = units_under(_all_alike(list(cases)), metric, free)
    values = np.zeros(len(material.units))
    np.add.at(values, units, np.array(weights) * found[places])
    return values


def _held(
    gains: Floats, length: int, candidates: int, drawn: int, rng: np.random.Generator
) -> Iterator[tuple[float, Gains]]:
    """The relevant items that a random list may hold, and how likely that is."""
    if not len(gains) or length >= candidates:
        yield 1.0, tuple(sorted(gains.tolist()))
        return
    if np.ptp(gains) == 0:
        from scipy.stats import hypergeom

        counts = np.arange(min(len(gains), length) + 1)
        for number, weight in zip(counts, hypergeom.pmf(counts, candidates, len(gains), length), strict=True):
            if weight > NEGLIGIBLE:
                yield float(weight), (float(gains[0]),) * int(number)
        return
    for number in rng.hypergeometric(len(gains), candidates - len(gains), length, drawn):
        yield 1 / drawn, tuple(sorted(rng.permutation(gains)[:number].tolist()))


def _all_alike(cases: Sequence[tuple[int, Gains]]) -> Ranking:
    """Lists of known length and relevant items, in which all scores are equal."""
    truth = {
        f"{at}": {f"{place}": gain for place, gain in enumerate(held)} for at, (_, held) in enumerate(cases)
    }
    lengths = np.array([length for length, _ in cases], dtype=np.int64)
    return replace(Ranking.from_runs(truth, {}), candidates=lengths, depth=lengths).uninformed()
