"""Rankings among points, compared with a count over all distances."""

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
COUNT_OPTIONS = {
    "all pairs in buckets": {"wide": -1, "compiled": False},
    "all pairs prefiltered": {"wide": 1_000_000, "compiled": False},
    "compiled, in rows": {"wide": -1, "compiled": True},
    "compiled, in rows and columns": {"wide": 1_000_000, "compiled": True},
    "compiled, half in rows": {"wide": 40, "compiled": True},
}
AVAILABLE_COUNT_OPTIONS = [
    count_options for count_options in COUNT_OPTIONS.values() if HAS_NUMBA or not count_options["compiled"]
]
all_count_options = pytest.mark.parametrize(
    "count_options",
    [
        pytest.param(
            count_options,
            id=name,
            marks=pytest.mark.skipif(
                bool(count_options["compiled"]) and not HAS_NUMBA, reason="numba is not installed"
            ),
        )
        for name, count_options in COUNT_OPTIONS.items()
    ],
)
CountOptions = dict[str, Any]
RankTuples = dict[str, list[tuple[int, ...]]]


def sample_points(space_name: str, kind: str, count: int, rng: np.random.Generator) -> Floats:
    """Random points, rounded to a grid (many equal distances) or close to the boundary of the ball."""
    points = rng.normal(size=(count, 3))
    if kind == "grid":
        points = np.round(points)
    if space_name in ("poincare", "lorentz"):
        lengths = np.linalg.norm(points, axis=1, keepdims=True)
        radius = 1.0 - 10.0 ** -rng.uniform(1, 7, (count, 1)) if kind == "rim" else np.tanh(lengths)
        points = points / np.maximum(lengths, 1e-9) * radius
        if kind == "grid":
            points = np.round(points * 4) / 8
    return ball_to_hyperboloid(points) if space_name == "lorentz" else points


def sample_pairs(count: int, rng: np.random.Generator) -> Ints:
    """Pairs of a point and a relative; every fifth point has no relative."""
    pairs = np.unique(rng.integers(0, count, (4 * count, 2)), axis=0)
    return pairs[(pairs[:, 0] != pairs[:, 1]) & (pairs[:, 0] % 5 > 0)]


def rank_tuples_by_loop(points: Floats, pairs: Ints, space: Geometry, ids: list[str]) -> RankTuples:
    """Above, tied and before of each relative, by a loop over all distances of each point."""
    arranged, rows = space.standard(points)
    rank_tuples: RankTuples = {unit_id: [] for unit_id in ids}
    for node, relative in pairs.tolist():
        excess = arranged.excess(np.broadcast_to(rows[node], rows.shape), rows)
        others = [index for index in range(len(rows)) if index not in (node, relative)]
        equal = [other for other in others if excess[other] == excess[relative]]
        above = sum(excess[other] < excess[relative] for other in others)
        rank_tuples[ids[node]].append((above, len(equal), sum(ids[index] > ids[relative] for index in equal)))
    return {unit: sorted(tuples) for unit, tuples in rank_tuples.items()}


def rank_tuples_of(ranking: Ranking) -> RankTuples:
    columns = list(zip(ranking.above.tolist(), ranking.tied.tolist(), ranking.before.tolist(), strict=True))
    return {
        unit: sorted(columns[ranking.starts[index] : ranking.starts[index + 1]])
        for index, unit in enumerate(ranking.unit_ids)
    }


IDS = [f"n{index}" for index in range(150)]


@cache
def counted_case(space_name: str, kind: str) -> tuple[Floats, Ints, RankTuples]:
    """Points, pairs and the rank tuples of the loop; they do not depend on the count options."""
    rng = np.random.default_rng(7)
    points, pairs = sample_points(space_name, kind, len(IDS), rng), sample_pairs(len(IDS), rng)
    return points, pairs, rank_tuples_by_loop(points, pairs, geometry(space_name), IDS)


@all_count_options
@pytest.mark.parametrize("kind", ["cloud", "grid", "rim"])
@pytest.mark.parametrize("space_name", NAMES)
def test_ranks_equal_those_of_the_loop(space_name: str, kind: str, count_options: CountOptions) -> None:
    points, pairs, expected = counted_case(space_name, kind)
    ranking = ranking_among_points(points, pairs, geometry(space_name), unit_ids=IDS, **count_options)
    assert rank_tuples_of(ranking) == expected
    assert (ranking.candidates == 149).all()


@pytest.mark.parametrize("space_name", ["euclidean", "poincare", "lorentz"])
def test_ranks_follow_the_distances(space_name: str) -> None:
    rng = np.random.default_rng(3)
    points, pairs, space = sample_points(space_name, "cloud", 400, rng), sample_pairs(400, rng), geometry(space_name)
    distances = space.distances(points, points)
    expected = [
        (np.delete(distances[node], [node, other]) < distances[node, other]).sum() for node, other in pairs.tolist()
    ]
    ranking = ranking_among_points(points, pairs, space)
    assert sorted(ranking.above.tolist()) == sorted(expected)


@cache
def repeated_points(seed: int, digits: int, space_name: str) -> tuple[Floats, Ints, RankTuples, int]:
    """Twelve points, several copies of each, with pairs, the rank tuples of the loop and a lower bound on the ties."""
    rng = np.random.default_rng(seed)
    distinct = np.round(sample_points(space_name, "cloud", 12, rng), 6 + digits)
    if space_name == "lorentz":
        distinct[:, 0] = np.hypot(1.0, np.linalg.norm(distinct[:, 1:], axis=1))
    elif space_name == "poincare":
        distinct /= 1.0 + 1e-5
    rows = rng.integers(0, 12, 60)
    points, pairs = distinct[rows], sample_pairs(60, rng)
    copies = np.bincount(rows, minlength=12)[rows[pairs[:, 1]]] - 1
    same_point = rows[pairs[:, 0]] == rows[pairs[:, 1]]
    return (
        points,
        pairs,
        rank_tuples_by_loop(points, pairs, geometry(space_name), IDS[:60]),
        int((copies - same_point).sum()),
    )


@all_count_options
@given(seed=st.integers(0, 10_000), digits=st.integers(0, 2), space_name=st.sampled_from(NAMES))
@settings(max_examples=25, deadline=None)
def test_equal_points_tie(count_options: CountOptions, seed: int, digits: int, space_name: str) -> None:
    points, pairs, expected, n_ties = repeated_points(seed, digits, space_name)
    ranking = ranking_among_points(points, pairs, geometry(space_name), unit_ids=IDS[:60], **count_options)
    assert rank_tuples_of(ranking) == expected
    assert sum(tied for tuples in expected.values() for _, tied, _ in tuples) >= n_ties


@pytest.mark.parametrize("scale", [1e-200, 1e-6, 1e6, 1e150])
def test_ranks_of_euclidean_points_do_not_depend_on_their_scale(scale: float) -> None:
    rng = np.random.default_rng(5)
    points, pairs = rng.normal(size=(200, 4)), sample_pairs(200, rng)
    plain, scaled = (
        ranking_among_points(points_of_scale, pairs, geometry("euclidean"))
        for points_of_scale in (points, points * scale)
    )
    assert plain.above.tolist() == scaled.above.tolist()


@pytest.mark.parametrize("space", [Poincare(4.0), Lorentz(4.0)], ids=lambda space: space.name)
def test_halved_points_with_curvature_4_rank_as_with_curvature_1(space: Poincare | Lorentz) -> None:
    rng = np.random.default_rng(5)
    points, pairs = sample_points(space.name, "cloud", 200, rng), sample_pairs(200, rng)
    plain = ranking_among_points(points, pairs, type(space)())
    curved = ranking_among_points(points / 2.0, pairs, space)
    assert plain.above.tolist() == curved.above.tolist()


def test_neighbours_near_the_boundary_keep_their_order() -> None:
    """At radius 17 the rounding error of a float64 product is some hundredths; these distances differ by less."""
    angles = np.concatenate([[0.0], np.geomspace(1e-9, 1e-7, 40)])
    radius = 17.0
    points = np.column_stack(
        [np.full(41, np.cosh(radius)), np.sinh(radius) * np.cos(angles), np.sinh(radius) * np.sin(angles)]
    )
    pairs = np.column_stack([np.zeros(40, dtype=np.int64), np.arange(1, 41)])
    for count_options in AVAILABLE_COUNT_OPTIONS:
        ranking = ranking_among_points(points, pairs, geometry("lorentz"), **count_options)
        assert ranking.above.tolist() == list(range(40))


def test_identical_points_all_tie() -> None:
    pairs = np.array([[0, 1], [1, 2]])
    for space_name in ("euclidean", "poincare", "cosine", "dot"):
        for count_options in AVAILABLE_COUNT_OPTIONS:
            ranking = ranking_among_points(np.full((30, 2), 0.25), pairs, geometry(space_name), **count_options)
            assert ranking.above.tolist() == [0, 0]
            assert ranking.tied.tolist() == [28, 28]
            assert ranking.before.tolist() == [np.sum([str(index) > "1" for index in range(2, 30)]), 27 - 10]


# ---- counts within groups and buckets --------------------------------------------------------

numbers = st.lists(st.floats(-1e6, 1e6) | st.integers(-3, 3).map(float), min_size=1, max_size=60)


@given(values=numbers, groups=st.randoms(use_true_random=False), limits=numbers)
@settings(max_examples=60, deadline=None)
def test_grouped_counts_count_within_groups(values: list[float], groups: object, limits: list[float]) -> None:
    value_groups = np.array([groups.randrange(4) for _ in values])  # type: ignore[attr-defined]
    limit_groups = np.array([groups.randrange(4) for _ in limits])  # type: ignore[attr-defined]
    column = np.array(values)
    below, equal = GroupedCounts.of(value_groups, column).below(limit_groups, np.array(limits))
    assert below.tolist() == [
        int((column[value_groups == g] < limit).sum()) for g, limit in zip(limit_groups, limits, strict=True)
    ]
    assert equal.tolist() == [
        int((column[value_groups == g] == limit).sum()) for g, limit in zip(limit_groups, limits, strict=True)
    ]


@given(
    seed=st.integers(0, 10_000),
    size=st.integers(1, 300),
    spread=st.sampled_from([1e-9, 1.0, 40.0]),
    slack=st.sampled_from([0.0, 1e-12, 0.1]),
)
@settings(max_examples=80, deadline=None)
def test_certain_counts_exclude_only_uncertain_values(seed: int, size: int, spread: float, slack: float) -> None:
    rng = np.random.default_rng(seed)
    values = np.exp(rng.normal(scale=spread, size=size).clip(-300, 300))
    lower_bounds = np.maximum(values - slack * rng.uniform(size=size), -1.0)
    limits = np.concatenate([rng.choice(values, 3), rng.uniform(0, values.max() * 1.1, 3)])
    below, uncertain = certain_counts(lower_bounds, limits, slack)
    is_uncertain = np.zeros(size, dtype=bool)
    is_uncertain[uncertain] = True
    assert below.tolist() == [int(((values < limit) & ~is_uncertain).sum()) for limit in limits]
    assert not ((values[:, None] == limits) & ~is_uncertain[:, None]).any()


def test_certain_counts_leave_under_a_tenth_uncertain() -> None:
    rng = np.random.default_rng(0)
    distances = (rng.normal(size=(20_000, 10)) ** 2).sum(axis=1)
    _, uncertain = certain_counts(distances, distances[:18], 1e-12)
    assert len(uncertain) < 2_000


# ---- the compiled kernels --------------------------------------------------------------------


def count_above_and_tied(points: Floats, pairs: Ints, space: Geometry) -> tuple[Ints, Ints]:
    """Above and tied of each pair, in the order of the pairs, by a comparison with all distances."""
    arranged, rows = space.standard(points)
    above, tied = np.zeros(len(pairs), dtype=np.int64), np.zeros(len(pairs), dtype=np.int64)
    for node in np.unique(pairs[:, 0]):
        excess = arranged.excess(np.broadcast_to(rows[node], rows.shape), rows)
        of_node = pairs[:, 0] == node
        limits = excess[pairs[of_node, 1]]
        excess = np.sort(np.delete(excess, node))
        above[of_node] = np.searchsorted(excess, limits)
        tied[of_node] = np.searchsorted(excess, limits, side="right") - above[of_node] - 1
    return above, tied


def sample_pairs_with_many_relatives(count: int, rng: np.random.Generator) -> Ints:
    """A few relatives of most points, hundreds of some."""
    few_pairs = rng.integers(0, count, (5 * count, 2))
    many_pairs = [np.column_stack([np.full(count, node), np.arange(count)]) for node in (1, 300, count - 2)]
    some_pairs = np.column_stack([np.full(count // 4, 9), rng.permutation(count)[: count // 4]])
    pairs = np.unique(np.concatenate([few_pairs, some_pairs, *many_pairs]), axis=0)
    return pairs[pairs[:, 0] != pairs[:, 1]]


@cache
def counted_case_of_many_relatives(space_name: str, kind: str) -> tuple[Floats, Ints, list[int], list[int], list[int]]:
    """Points, pairs, and above, tied and before of each pair without compiled code."""
    rng = np.random.default_rng(11)
    points, pairs, space = (
        sample_points(space_name, kind, 700, rng),
        sample_pairs_with_many_relatives(700, rng),
        geometry(space_name),
    )
    above, tied = count_above_and_tied(points, pairs, space)
    order = np.lexsort((tied, above, pairs[:, 0]))
    plain = ranking_among_points(points, pairs, space, compiled=False)
    return points, pairs, above[order].tolist(), tied[order].tolist(), plain.before.tolist()


@pytest.mark.skipif(not HAS_NUMBA, reason="numba is not installed")
@pytest.mark.parametrize("wide", [-1, 100, 1_000_000])
@pytest.mark.parametrize("kind", ["cloud", "grid", "rim"])
@pytest.mark.parametrize("space_name", NAMES)
def test_compiled_counts_are_exact_over_many_tiles_and_relatives(space_name: str, kind: str, wide: int) -> None:
    points, pairs, above, tied, before = counted_case_of_many_relatives(space_name, kind)
    ranking = ranking_among_points(points, pairs, geometry(space_name), wide=wide, compiled=True)
    assert ranking.above.tolist() == above
    assert ranking.tied.tolist() == tied
    assert ranking.before.tolist() == before


@pytest.mark.skipif(not HAS_NUMBA, reason="numba is not installed")
@pytest.mark.parametrize("wide", [-1, 1_000_000])
def test_more_uncertain_pairs_than_the_capacity_are_counted_exactly(wide: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(point_counts, "CANDIDATE_CAPACITY", 0)
    monkeypatch.setattr(point_counts, "TILES_PER_PRODUCT", 1)
    rng = np.random.default_rng(2)
    points, pairs = np.repeat(rng.normal(size=(3, 4)), 200, axis=0), sample_pairs(600, rng)
    space = geometry("euclidean")
    ranking, plain = (
        ranking_among_points(points, pairs, space, wide=wide, compiled=compiled) for compiled in (True, False)
    )
    for column in ("above", "tied", "before"):
        assert getattr(ranking, column).tolist() == getattr(plain, column).tolist()
    assert ranking.tied.min() >= 198


@pytest.mark.skipif(not HAS_NUMBA, reason="numba is not installed")
@pytest.mark.parametrize("wide", [-1, 1_000_000])
def test_compiled_counts_recompute_about_two_excesses_per_pair(wide: int, monkeypatch: pytest.MonkeyPatch) -> None:
    recomputed_sizes = []
    excess = PairPrefilter.excess

    def counting_excess(prefilter: PairPrefilter, rows: Ints, columns: Ints) -> Floats:
        recomputed_sizes.append(len(rows))
        return excess(prefilter, rows, columns)

    monkeypatch.setattr(PairPrefilter, "excess", counting_excess)
    rng = np.random.default_rng(1)
    points, pairs = rng.normal(size=(2000, 5)), sample_pairs(2000, rng)
    ranking_among_points(points, pairs, geometry("euclidean"), wide=wide, compiled=True)
    assert sum(recomputed_sizes) < 2.1 * len(pairs)


@pytest.mark.skipif(not HAS_NUMBA, reason="numba is not installed")
def test_points_too_far_out_for_float32_are_counted_in_float64() -> None:
    rng = np.random.default_rng(4)
    directions = rng.normal(size=(300, 3))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    space = np.sinh(rng.uniform(42.0, 46.0, (300, 1))) * directions
    points = np.column_stack([np.hypot(1.0, np.linalg.norm(space, axis=1)), space])
    pairs = sample_pairs(300, rng)
    assert PairPrefilter.of(points, geometry("lorentz")).single() is None
    ranking = ranking_among_points(points, pairs, geometry("lorentz"), compiled=True)
    above, _ = count_above_and_tied(points, pairs, geometry("lorentz"))
    assert ranking.above.tolist() == above[np.lexsort((above, pairs[:, 0]))].tolist()


@pytest.mark.skipif(not HAS_NUMBA, reason="numba is not installed")
def test_products_too_small_for_float32_keep_their_order() -> None:
    rng = np.random.default_rng(6)
    points = rng.normal(size=(200, 3)) * 10.0 ** rng.uniform(-44, 0, (200, 1))
    pairs = sample_pairs(200, rng)
    for wide in (-1, 1_000_000):
        ranking = ranking_among_points(points, pairs, geometry("dot"), wide=wide, compiled=True)
        above, _ = count_above_and_tied(points, pairs, geometry("dot"))
        assert ranking.above.tolist() == above[np.lexsort((above, pairs[:, 0]))].tolist()


def test_missing_numba_is_logged_once_for_many_points(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(sys.modules, "numba", None)
    point_counts._report_missing_numba.cache_clear()
    assert not point_counts.should_use_numba(1_000)
    assert not caplog.messages
    assert not any(point_counts.should_use_numba(100_000) for _ in range(2))
    (message,) = caplog.messages
    assert message.endswith(f"{install_command('fast')}.")
