"""Points ranked among themselves, held against counting every distance one by one."""

from __future__ import annotations

import sys
from functools import cache
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise.evidence.kernels import point_counts
from equipoise.evidence.kernels.point_counts import GroupedCounts, certain_counts
from equipoise.evidence.ranking import Ranking
from equipoise.evidence.ranking_among_points import PairPrefilter, ranking_among_points
from equipoise.geometry.base import Geometry
from equipoise.geometry.distances import ball_to_hyperboloid
from equipoise.geometry.spaces import Lorentz, Poincare, geometry
from equipoise.types import Floats, Ints, install_command

NAMES = ("cosine", "dot", "euclidean", "poincare", "lorentz")
HAS_NUMBA = find_spec("numba") is not None
WAYS = {
    "all counted by buckets": {"wide": -1, "compiled": False},
    "all screened": {"wide": 1_000_000, "compiled": False},
    "compiled, in rows": {"wide": -1, "compiled": True},
    "compiled, both ways": {"wide": 1_000_000, "compiled": True},
    "compiled, half in rows": {"wide": 40, "compiled": True},
}
POSSIBLE = [how for how in WAYS.values() if HAS_NUMBA or not how["compiled"]]
EITHER_WAY = pytest.mark.parametrize(
    "how",
    [
        pytest.param(
            how,
            id=name,
            marks=pytest.mark.skipif(bool(how["compiled"]) and not HAS_NUMBA, reason="numba is absent"),
        )
        for name, how in WAYS.items()
    ],
)
How = dict[str, Any]
Places = dict[str, list[tuple[int, ...]]]


def points_for(name: str, kind: str, count: int, rng: np.random.Generator) -> Floats:
    """Points at random, on a grid so that many distances are equal, or next to the rim of the ball."""
    drawn = rng.normal(size=(count, 3))
    if kind == "grid":
        drawn = np.round(drawn)
    if name in ("poincare", "lorentz"):
        lengths = np.linalg.norm(drawn, axis=1, keepdims=True)
        radius = 1.0 - 10.0 ** -rng.uniform(1, 7, (count, 1)) if kind == "rim" else np.tanh(lengths)
        drawn = drawn / np.maximum(lengths, 1e-9) * radius
        if kind == "grid":
            drawn = np.round(drawn * 4) / 8
    return ball_to_hyperboloid(drawn) if name == "lorentz" else drawn


def some_pairs(count: int, rng: np.random.Generator) -> Ints:
    """Relatives of most points; some have none."""
    pairs = np.unique(rng.integers(0, count, (4 * count, 2)), axis=0)
    return pairs[(pairs[:, 0] != pairs[:, 1]) & (pairs[:, 0] % 5 > 0)]


def one_by_one(points: Floats, pairs: Ints, space: Geometry, ids: list[str]) -> Places:
    """Above, tied and before of each relative, by looking at all distances of each point."""
    arranged, rows = space.standard(points)
    found: Places = {each: [] for each in ids}
    for node, relative in pairs.tolist():
        far = arranged.excess(np.broadcast_to(rows[node], rows.shape), rows)
        others = [each for each in range(len(rows)) if each not in (node, relative)]
        equal = [other for other in others if far[other] == far[relative]]
        above = sum(far[other] < far[relative] for other in others)
        found[ids[node]].append((above, len(equal), sum(ids[each] > ids[relative] for each in equal)))
    return {unit: sorted(places) for unit, places in found.items()}


def places_of(ranking: Ranking) -> Places:
    columns = list(zip(ranking.above.tolist(), ranking.tied.tolist(), ranking.before.tolist(), strict=True))
    return {
        unit: sorted(columns[ranking.starts[place] : ranking.starts[place + 1]])
        for place, unit in enumerate(ranking.unit_ids)
    }


IDS = [f"n{place}" for place in range(150)]


@cache
def counted_case(name: str, kind: str) -> tuple[Floats, Ints, Places]:
    """Points, pairs and the places that counting finds: they are the same for every way."""
    rng = np.random.default_rng(7)
    points, pairs = points_for(name, kind, len(IDS), rng), some_pairs(len(IDS), rng)
    return points, pairs, one_by_one(points, pairs, geometry(name), IDS)


@EITHER_WAY
@pytest.mark.parametrize("kind", ["cloud", "grid", "rim"])
@pytest.mark.parametrize("name", NAMES)
def test_every_rank_is_the_one_that_counting_finds(name: str, kind: str, how: How) -> None:
    points, pairs, expected = counted_case(name, kind)
    ranking = ranking_among_points(points, pairs, geometry(name), unit_ids=IDS, **how)
    assert places_of(ranking) == expected
    assert (ranking.candidates == 149).all()


@pytest.mark.parametrize("name", ["euclidean", "poincare", "lorentz"])
def test_the_order_is_that_of_the_distances(name: str) -> None:
    rng = np.random.default_rng(3)
    points, pairs, space = points_for(name, "cloud", 400, rng), some_pairs(400, rng), geometry(name)
    distances = space.distances(points, points)
    expected = [
        (np.delete(distances[node], [node, other]) < distances[node, other]).sum() for node, other in pairs.tolist()
    ]
    ranking = ranking_among_points(points, pairs, space)
    assert sorted(ranking.above.tolist()) == sorted(expected)


@cache
def repeated_points(seed: int, digits: int, name: str) -> tuple[Floats, Ints, Places, int]:
    """Twelve points, each several times, with pairs, the places by counting, and a bound on the ties."""
    rng = np.random.default_rng(seed)
    distinct = np.round(points_for(name, "cloud", 12, rng), 6 + digits)
    if name == "lorentz":
        distinct[:, 0] = np.hypot(1.0, np.linalg.norm(distinct[:, 1:], axis=1))
    elif name == "poincare":
        distinct /= 1.0 + 1e-5
    rows = rng.integers(0, 12, 60)
    points, pairs = distinct[rows], some_pairs(60, rng)
    copies = np.bincount(rows, minlength=12)[rows[pairs[:, 1]]] - 1
    same = rows[pairs[:, 0]] == rows[pairs[:, 1]]
    return points, pairs, one_by_one(points, pairs, geometry(name), IDS[:60]), int((copies - same).sum())


@EITHER_WAY
@given(seed=st.integers(0, 10_000), digits=st.integers(0, 2), name=st.sampled_from(NAMES))
@settings(max_examples=25, deadline=None)
def test_equal_points_tie_wherever_they_stand(how: How, seed: int, digits: int, name: str) -> None:
    points, pairs, expected, n_ties = repeated_points(seed, digits, name)
    ranking = ranking_among_points(points, pairs, geometry(name), unit_ids=IDS[:60], **how)
    assert places_of(ranking) == expected
    assert sum(tied for places in expected.values() for _, tied, _ in places) >= n_ties


@pytest.mark.parametrize("scale", [1e-200, 1e-6, 1e6, 1e150])
def test_the_scale_of_flat_points_changes_nothing(scale: float) -> None:
    rng = np.random.default_rng(5)
    points, pairs = rng.normal(size=(200, 4)), some_pairs(200, rng)
    plain, scaled = (ranking_among_points(each, pairs, geometry("euclidean")) for each in (points, points * scale))
    assert plain.above.tolist() == scaled.above.tolist()


@pytest.mark.parametrize("space", [Poincare(4.0), Lorentz(4.0)], ids=lambda space: space.name)
def test_another_curvature_is_the_same_space_at_another_scale(space: Poincare | Lorentz) -> None:
    rng = np.random.default_rng(5)
    points, pairs = points_for(space.name, "cloud", 200, rng), some_pairs(200, rng)
    plain = ranking_among_points(points, pairs, type(space)())
    curved = ranking_among_points(points / 2.0, pairs, space)
    assert plain.above.tolist() == curved.above.tolist()


def test_neighbours_at_the_rim_keep_their_order() -> None:
    """At radius 17 a plain product of float64 is off by some hundredths, these distances differ by less."""
    angles = np.concatenate([[0.0], np.geomspace(1e-9, 1e-7, 40)])
    radius = 17.0
    points = np.column_stack(
        [np.full(41, np.cosh(radius)), np.sinh(radius) * np.cos(angles), np.sinh(radius) * np.sin(angles)]
    )
    pairs = np.column_stack([np.zeros(40, dtype=np.int64), np.arange(1, 41)])
    for how in POSSIBLE:
        ranking = ranking_among_points(points, pairs, geometry("lorentz"), **how)
        assert ranking.above.tolist() == list(range(40))


def test_all_points_in_one_place_tie_with_everything() -> None:
    pairs = np.array([[0, 1], [1, 2]])
    for name in ("euclidean", "poincare", "cosine", "dot"):
        for how in POSSIBLE:
            ranking = ranking_among_points(np.full((30, 2), 0.25), pairs, geometry(name), **how)
            assert ranking.above.tolist() == [0, 0]
            assert ranking.tied.tolist() == [28, 28]
            assert ranking.before.tolist() == [np.sum([str(each) > "1" for each in range(2, 30)]), 27 - 10]


# ---- the counting inside ---------------------------------------------------------------------

numbers = st.lists(st.floats(-1e6, 1e6) | st.integers(-3, 3).map(float), min_size=1, max_size=60)


@given(values=numbers, groups=st.randoms(use_true_random=False), limits=numbers)
@settings(max_examples=60, deadline=None)
def test_a_tally_counts_within_groups(values: list[float], groups: object, limits: list[float]) -> None:
    of = np.array([groups.randrange(4) for _ in values])  # type: ignore[attr-defined]
    asked = np.array([groups.randrange(4) for _ in limits])  # type: ignore[attr-defined]
    column = np.array(values)
    below, equal = GroupedCounts.of(of, column).below(asked, np.array(limits))
    assert below.tolist() == [int((column[of == g] < limit).sum()) for g, limit in zip(asked, limits, strict=True)]
    assert equal.tolist() == [int((column[of == g] == limit).sum()) for g, limit in zip(asked, limits, strict=True)]


@given(
    seed=st.integers(0, 10_000),
    size=st.integers(1, 300),
    spread=st.sampled_from([1e-9, 1.0, 40.0]),
    slack=st.sampled_from([0.0, 1e-12, 0.1]),
)
@settings(max_examples=80, deadline=None)
def test_buckets_are_sure_of_what_they_count(seed: int, size: int, spread: float, slack: float) -> None:
    rng = np.random.default_rng(seed)
    true = np.exp(rng.normal(scale=spread, size=size).clip(-300, 300))
    seen = np.maximum(true - slack * rng.uniform(size=size), -1.0)
    limits = np.concatenate([rng.choice(true, 3), rng.uniform(0, true.max() * 1.1, 3)])
    below, unsure = certain_counts(seen, limits, slack)
    open_to_doubt = np.zeros(size, dtype=bool)
    open_to_doubt[unsure] = True
    assert below.tolist() == [int(((true < limit) & ~open_to_doubt).sum()) for limit in limits]
    assert not ((true[:, None] == limits) & ~open_to_doubt[:, None]).any()


def test_buckets_leave_little_open() -> None:
    rng = np.random.default_rng(0)
    distances = (rng.normal(size=(20_000, 10)) ** 2).sum(axis=1)
    _, unsure = certain_counts(distances, distances[:18], 1e-12)
    assert len(unsure) < 2_000


# ---- the compiled kernels --------------------------------------------------------------------


def counted(points: Floats, pairs: Ints, space: Geometry) -> tuple[Ints, Ints]:
    """Above and tied of each pair, in the order of the pairs, by comparing with all distances."""
    arranged, rows = space.standard(points)
    above, tied = np.zeros(len(pairs), dtype=np.int64), np.zeros(len(pairs), dtype=np.int64)
    for node in np.unique(pairs[:, 0]):
        far = arranged.excess(np.broadcast_to(rows[node], rows.shape), rows)
        own = pairs[:, 0] == node
        limits = far[pairs[own, 1]]
        far = np.sort(np.delete(far, node))
        above[own] = np.searchsorted(far, limits)
        tied[own] = np.searchsorted(far, limits, side="right") - above[own] - 1
    return above, tied


def many_relatives(count: int, rng: np.random.Generator) -> Ints:
    """A few relatives of most points, hundreds of some."""
    few = rng.integers(0, count, (5 * count, 2))
    many = [np.column_stack([np.full(count, node), np.arange(count)]) for node in (1, 300, count - 2)]
    some = np.column_stack([np.full(count // 4, 9), rng.permutation(count)[: count // 4]])
    pairs = np.unique(np.concatenate([few, some, *many]), axis=0)
    return pairs[pairs[:, 0] != pairs[:, 1]]


@cache
def counted_many(name: str, kind: str) -> tuple[Floats, Ints, list[int], list[int], list[int]]:
    """Points, pairs, and above, tied and before of each pair without compiled code: the same for every width."""
    rng = np.random.default_rng(11)
    points, pairs, space = points_for(name, kind, 700, rng), many_relatives(700, rng), geometry(name)
    above, tied = counted(points, pairs, space)
    order = np.lexsort((tied, above, pairs[:, 0]))
    plain = ranking_among_points(points, pairs, space, compiled=False)
    return points, pairs, above[order].tolist(), tied[order].tolist(), plain.before.tolist()


@pytest.mark.skipif(not HAS_NUMBA, reason="numba is absent")
@pytest.mark.parametrize("wide", [-1, 100, 1_000_000])
@pytest.mark.parametrize("kind", ["cloud", "grid", "rim"])
@pytest.mark.parametrize("name", NAMES)
def test_compiled_counts_hold_over_many_tiles_and_many_relatives(name: str, kind: str, wide: int) -> None:
    points, pairs, above, tied, before = counted_many(name, kind)
    ranking = ranking_among_points(points, pairs, geometry(name), wide=wide, compiled=True)
    assert ranking.above.tolist() == above
    assert ranking.tied.tolist() == tied
    assert ranking.before.tolist() == before


@pytest.mark.skipif(not HAS_NUMBA, reason="numba is absent")
@pytest.mark.parametrize("wide", [-1, 1_000_000])
def test_more_pairs_in_doubt_than_can_wait_change_nothing(wide: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(point_counts, "CANDIDATE_CAPACITY", 0)
    monkeypatch.setattr(point_counts, "TILES_PER_PRODUCT", 1)
    rng = np.random.default_rng(2)
    points, pairs = np.repeat(rng.normal(size=(3, 4)), 200, axis=0), some_pairs(600, rng)
    space = geometry("euclidean")
    ranking, plain = (ranking_among_points(points, pairs, space, wide=wide, compiled=way) for way in (True, False))
    for column in ("above", "tied", "before"):
        assert getattr(ranking, column).tolist() == getattr(plain, column).tolist()
    assert ranking.tied.min() >= 198


@pytest.mark.skipif(not HAS_NUMBA, reason="numba is absent")
@pytest.mark.parametrize("wide", [-1, 1_000_000])
def test_compiled_counts_leave_little_in_doubt(wide: int, monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at = []
    excess = PairPrefilter.excess

    def watched(screen: PairPrefilter, rows: Ints, columns: Ints) -> Floats:
        looked_at.append(len(rows))
        return excess(screen, rows, columns)

    monkeypatch.setattr(PairPrefilter, "excess", watched)
    rng = np.random.default_rng(1)
    points, pairs = rng.normal(size=(2000, 5)), some_pairs(2000, rng)
    ranking_among_points(points, pairs, geometry("euclidean"), wide=wide, compiled=True)
    assert sum(looked_at) < 2.1 * len(pairs)


@pytest.mark.skipif(not HAS_NUMBA, reason="numba is absent")
def test_points_too_far_out_for_float32_are_counted_in_float64() -> None:
    rng = np.random.default_rng(4)
    directions = rng.normal(size=(300, 3))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    space = np.sinh(rng.uniform(42.0, 46.0, (300, 1))) * directions
    points = np.column_stack([np.hypot(1.0, np.linalg.norm(space, axis=1)), space])
    pairs = some_pairs(300, rng)
    assert PairPrefilter.of(points, geometry("lorentz")).single() is None
    ranking = ranking_among_points(points, pairs, geometry("lorentz"), compiled=True)
    above, _ = counted(points, pairs, geometry("lorentz"))
    assert ranking.above.tolist() == above[np.lexsort((above, pairs[:, 0]))].tolist()


@pytest.mark.skipif(not HAS_NUMBA, reason="numba is absent")
def test_products_too_small_for_float32_keep_their_order() -> None:
    rng = np.random.default_rng(6)
    points = rng.normal(size=(200, 3)) * 10.0 ** rng.uniform(-44, 0, (200, 1))
    pairs = some_pairs(200, rng)
    for wide in (-1, 1_000_000):
        ranking = ranking_among_points(points, pairs, geometry("dot"), wide=wide, compiled=True)
        above, _ = counted(points, pairs, geometry("dot"))
        assert ranking.above.tolist() == above[np.lexsort((above, pairs[:, 0]))].tolist()


def test_what_numba_would_bring_is_logged_once_for_many_points(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(sys.modules, "numba", None)
    point_counts._report_missing_numba.cache_clear()
    assert not point_counts.should_use_numba(1_000)
    assert not caplog.messages
    assert not any(point_counts.should_use_numba(100_000) for _ in range(2))
    (message,) = caplog.messages
    assert message.endswith(f"{install_command('fast')}.")
