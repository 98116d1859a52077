"""Rankings: construction, subsets, shuffling and storage."""

from __future__ import annotations

from contextlib import suppress
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from equipoise.errors import (
    DuplicateError,
    EquipoiseError,
    InputError,
    NotFiniteError,
    ParameterError,
    ShapeError,
)
from equipoise.evidence.kernels.threshold_counts import count_above_and_tied
from equipoise.evidence.ranking import COUNT_FIELDS, Ranking
from equipoise.evidence.ranking_from_scores import RankingStream
from equipoise.evidence.segments import NOT_RETRIEVED, random_ranks

FEW_VALUES = st.sampled_from([-np.inf, -1.0, 0.0, 0.5, 2.0])


def assert_rankings_equal(left: Ranking, right: Ranking) -> None:
    for name in COUNT_FIELDS:
        np.testing.assert_array_equal(getattr(left, name), getattr(right, name), err_msg=name)
    assert list(left.unit_ids) == list(right.unit_ids)


@given(st.data())
def test_counts_above_and_tied_equal_those_of_a_loop(data):
    rows, width = data.draw(st.integers(1, 6)), data.draw(st.sampled_from([1, 7, 8, 9, 300, 2100, 9000]))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    dtype = data.draw(st.sampled_from([np.float32, np.float64, np.int64]))
    scores = rng.integers(0, data.draw(st.sampled_from([2, 1000])), (rows, width)).astype(dtype)
    counts = np.array(data.draw(st.lists(st.integers(0, 4), min_size=rows, max_size=rows)))
    row_of = np.repeat(np.arange(rows), counts)
    thresholds = scores[row_of, rng.integers(0, width, len(row_of))]
    if dtype != np.int64:
        thresholds[rng.random(len(row_of)) < 0.2] = np.nan  # a score that is not in the row
    above, tied = count_above_and_tied(scores, thresholds, counts)
    assert above.tolist() == [int((scores[r] > t).sum()) for r, t in zip(row_of, thresholds, strict=True)]
    expected_tied = [max(int((scores[r] == t).sum()) - 1, 0) for r, t in zip(row_of, thresholds, strict=True)]
    assert tied.tolist() == expected_tied


def test_scores_that_differ_beyond_32_bits_do_not_tie():
    run = {"a": 1.0, "b": 1.0 + 1e-12, "c": 1.0 - 1e-12, "d": 1e300, "e": 2e300, "f": 1.0}
    ranking = Ranking.from_runs({"q": dict.fromkeys(run, 1)}, {"q": run})
    assert ranking.above.tolist() == [0, 1, 2, 3, 3, 5]
    assert ranking.tied.tolist() == [0, 0, 0, 1, 1, 0]


@given(
    hnp.arrays(np.float64, st.tuples(st.integers(1, 8), st.integers(1, 9)), elements=FEW_VALUES),
    st.integers(0, 99),
)
def test_a_score_matrix_ranks_as_dicts_of_the_same_scores(scores, seed):
    units, width = scores.shape
    targets = np.random.default_rng(seed).integers(0, width, units)
    run = {str(u): {str(c): float(scores[u, c]) for c in range(width)} for u in range(units)}
    qrels = {str(u): {str(targets[u]): 1} for u in range(units)}
    assert_rankings_equal(
        Ranking.from_scores(scores, targets, unit_ids=[str(u) for u in range(units)]),
        Ranking.from_runs(qrels, run),
    )


def test_excluded_columns_are_never_candidates():
    scores = np.array([[9.0, 1.0, 2.0, 2.0], [9.0, 5.0, 3.0, 2.0]])
    ranking = Ranking.from_scores(scores, [2, 3], exclude=[0])
    assert_rankings_equal(ranking, Ranking.from_scores(scores[:, 1:], [1, 2]))
    assert ranking.candidates.tolist() == [3, 3]


@pytest.mark.parametrize("dtype", [np.int64, np.uint8, np.float16, bool])
def test_scores_of_any_numeric_dtype_are_ranked(dtype):
    scores = np.array([[3, 1, 2], [0, 1, 1]]).astype(dtype)
    expected = Ranking.from_scores(scores.astype(float), [2, 1])
    assert_rankings_equal(Ranking.from_scores(scores, [2, 1]), expected)


def test_from_runs_accepts_arrays():
    assert_rankings_equal(Ranking.from_runs([[3, 1]], [[1, 2, 3]]), Ranking.from_lists([[1, 2, 3]], [[3, 1]]))


def test_zero_vectors_are_reported():
    ranking = Ranking.from_embeddings(np.eye(2), np.array([[1.0, 0.0], [0.0, 0.0], [0.0, 1.0]]), [0, 2])
    assert "1 of 3 points" in ranking.invalid_points
    assert Ranking.from_embeddings(np.eye(2), np.eye(2), [0, 1]).invalid_points == ""


def test_several_targets_per_unit_are_ranked_separately():
    ranking = Ranking.from_scores(np.array([[3.0, 2.0, 1.0], [3.0, 2.0, 1.0]]), [[2, 0], [1]])
    assert ranking.above.tolist() == [0, 2, 1]
    assert ranking.counts.tolist() == [2, 1]


@pytest.mark.engines("torch")
def test_torch_tensors_rank_as_numpy_arrays():
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    scores = rng.integers(0, 9, (30, 20)).astype(np.float32)
    targets = rng.integers(1, 20, 30)
    expected = Ranking.from_scores(scores, targets, exclude=0)
    assert_rankings_equal(Ranking.from_scores(torch.from_numpy(scores), torch.from_numpy(targets), exclude=0), expected)
    bfloat16_scores = torch.from_numpy(scores).to(torch.bfloat16)  # a format that numpy does not have
    assert_rankings_equal(Ranking.from_scores(bfloat16_scores, torch.from_numpy(targets), exclude=0), expected)
    scores_with_gradient = torch.from_numpy(scores).requires_grad_()
    assert_rankings_equal(Ranking.from_scores(scores_with_gradient, targets, exclude=[0]), expected)
    with pytest.raises(NotFiniteError, match="row 1"):
        Ranking.from_scores(torch.tensor([[1.0, 2.0], [float("nan"), 1.0]], dtype=torch.bfloat16), [0, 1])
    integer_scores = torch.from_numpy(scores.astype(np.int64))
    assert_rankings_equal(Ranking.from_scores(integer_scores, targets, exclude=[0]), expected)
    if torch.cuda.is_available():
        assert_rankings_equal(Ranking.from_scores(torch.from_numpy(scores).cuda(), targets, exclude=0), expected)


@given(st.integers(1, 40), st.lists(st.integers(0, 40), max_size=4), st.permutations(range(5)))
def test_batches_and_the_order_of_merging_do_not_change_the_bytes(units, cut_points, order):
    rng = np.random.default_rng(units)
    scores, targets = rng.integers(0, 5, (units, 7)).astype(float), rng.integers(0, 7, units)
    whole = RankingStream()
    whole.update(scores, targets, unit_ids=np.arange(units))
    edges = sorted({0, units, *(min(cut_point, units) for cut_point in cut_points)})
    streams = [RankingStream() for _ in range(5)]
    for number, (low, high) in enumerate(pairwise(edges)):
        streams[number % 5].update(scores[low:high], targets[low:high], unit_ids=np.arange(low, high))
    merged = RankingStream()
    for number in order:
        merged.merge(streams[number])
    whole_arrays, merged_arrays = whole.compute().to_arrays(), merged.compute().to_arrays()
    assert all(whole_arrays[name].tobytes() == merged_arrays[name].tobytes() for name in whole_arrays)


def test_merged_streams_with_equal_unit_ids_raise_duplicate_error():
    stream, other = RankingStream(), RankingStream()
    stream.update(np.eye(2), [0, 1])
    other.update(np.eye(2), [0, 1])
    stream.merge(other)
    with pytest.raises(DuplicateError):
        stream.compute()


@pytest.mark.parametrize("geometry", ["cosine", "dot", "euclidean", "poincare", "lorentz"])
def test_vectors_give_the_ranks_of_their_sorted_distances(geometry, monkeypatch):
    from equipoise.evidence import ranking_from_vectors
    from equipoise.geometry.spaces import geometry as geometry_of

    monkeypatch.setattr(ranking_from_vectors, "_BLOCK_BYTES", 4096)

    rng = np.random.default_rng(3)
    points = rng.normal(size=(60, 4)) * 0.2
    if geometry == "lorentz":
        points = np.hstack([np.sqrt(1 + (points**2).sum(axis=1, keepdims=True)), points])
    distances = geometry_of(geometry).distances(points, points)
    relevant = [[(u + 1) % 60, (u + 7) % 60] for u in range(60)]
    ranking = Ranking.from_embeddings(points, points, relevant, geometry=geometry, exclude=np.arange(60))
    for unit in range(60):
        others = np.delete(distances[unit], unit)
        expected = sorted(int((others < distances[unit, r]).sum()) for r in relevant[unit])
        assert ranking.above[ranking.starts[unit] : ranking.starts[unit + 1]].tolist() == expected
    assert (ranking.candidates == 59).all()


def test_blocks_of_scores_rank_as_the_whole_matrix():
    scores = np.random.default_rng(4).integers(0, 6, (11, 9)).astype(float)
    relevant = [[u % 9, (u + 3) % 9] for u in range(11)]
    blocks = ((slice(start, min(start + 4, 11)), scores[start : start + 4].copy()) for start in range(0, 11, 4))
    assert_rankings_equal(
        Ranking.from_blocks(blocks, relevant, units=11, corpus=9), Ranking.from_scores(scores, relevant)
    )


def test_duplicate_vectors_tie():
    corpus = np.tile(np.random.default_rng(0).normal(size=(5, 37)).astype(np.float32), (7, 1))
    ranking = Ranking.from_embeddings(corpus[:5], corpus, [[u] for u in range(5)])
    assert ranking.above.tolist() == [0] * 5
    assert ranking.tied.tolist() == [6] * 5


@given(st.lists(st.integers(0, 5), max_size=9), st.integers(0, 99))
def test_take_selects_units_by_index(index, seed):
    rng = np.random.default_rng(seed)
    lists = [rng.permutation(8)[: rng.integers(0, 8)].tolist() for _ in range(6)]
    relevant = [rng.permutation(10)[: rng.integers(0, 4)].tolist() for _ in range(6)]
    unit_ids = [f"u{u}" for u in range(6)]
    ranking = Ranking.from_lists(lists, relevant, unit_ids=unit_ids)
    taken = ranking.take(np.array(index, dtype=np.int64))
    assert list(taken.unit_ids) == [unit_ids[u] for u in index]
    if index:
        expected = Ranking.from_lists([lists[u] for u in index], [relevant[u] for u in index])
        for name in COUNT_FIELDS:
            np.testing.assert_array_equal(getattr(taken, name), getattr(expected, name), err_msg=name)


def test_random_ranks_are_distinct_and_uniform():
    rng = np.random.default_rng(0)
    pool, counts = np.array([5, 6, 1, 40]), np.array([2, 6, 1, 3])
    observed = np.zeros(40)
    for _ in range(3000):
        ranks_per_unit = np.split(random_ranks(pool, counts, rng), np.cumsum(counts)[:-1])
        for ranks, size in zip(ranks_per_unit, pool, strict=True):
            assert len(set(ranks.tolist())) == len(ranks)
            assert ranks.max() < size
        observed[ranks_per_unit[3]] += 1
    expected = 3000 * 3 / 40
    assert ((observed - expected) ** 2 / expected).sum() < 72  # the 99.9 % point of chi-squared with 39


def test_shuffled_rankings_drop_items_below_the_depth():
    ranking = Ranking.from_lists([[1, 2]] * 500, [[1]] * 500, corpus_size=8)
    shuffled = ranking.shuffled(np.random.default_rng(0))
    not_retrieved = (shuffled.above == NOT_RETRIEVED).mean()
    assert abs(not_retrieved - 6 / 8) < 0.08
    assert set(shuffled.above.tolist()) == {0, 1, NOT_RETRIEVED}


def test_saved_rankings_load_unchanged_with_the_same_bytes(tmp_path):
    ranking = Ranking.from_runs({"ü": {"a": 2, "b": 1}, "z": {}}, {"ü": {"a": 1.0, "c": 1.0}, "w": {"a": 1.0}})
    ranking.save(tmp_path / "one.npz")
    loaded = Ranking.load(tmp_path / "one.npz")
    assert_rankings_equal(ranking, loaded)
    assert loaded.unknown_units == ("w",)
    loaded.save(tmp_path / "two.npz")
    assert (tmp_path / "one.npz").read_bytes() == (tmp_path / "two.npz").read_bytes()


@pytest.mark.parametrize("large_id", [3, 2_000_000, 2**40])
def test_lists_are_sorted_by_their_scores(large_id):
    ranking = Ranking.from_lists([[large_id], [7, 0, 9]], [[0], [9]], scores=[[0.5], [0.1, 0.2, 0.3]])
    assert ranking.ranks.tolist() == [np.inf, 1.0]
    with_zero = Ranking.from_lists([[large_id, 0], [7, 9]], [[0], [7]], scores=[[0.1, 0.5], [0.5, 0.5]])
    assert with_zero.ranks.tolist() == [1.0, 1.5]


def test_near_items_are_kept_by_save_take_and_shuffle(tmp_path):
    from dataclasses import replace

    near = Ranking.from_lists([[1, 2, 3]] * 4, [[2, 3]] * 4, gains=[[0.5, 0.25]] * 4)
    ranking = replace(Ranking.from_lists([[1, 2, 3]] * 4, [[1]] * 4), near=near)
    ranking.save(tmp_path / "near.npz")
    loaded = Ranking.load(tmp_path / "near.npz").take(np.array([2, 0])).shuffled(np.random.default_rng(0))
    assert loaded.near is not None
    for unit in range(2):
        above = loaded.above[unit], *loaded.near.above[2 * unit : 2 * unit + 2]
        assert sorted(above) == [0, 1, 2]


@pytest.mark.parametrize(
    ("build", "error", "fragment"),
    [
        (lambda: Ranking.from_runs({}, {}), InputError, "no unit"),
        (lambda: Ranking.from_runs([], {}), InputError, "dict of dicts"),
        (lambda: Ranking.from_runs({"q": ["d"]}, {"q": {}}), InputError, "list, not a dict"),
        (lambda: Ranking.from_runs({"q": {"d": 1}}, {"q": 3}), InputError, "int, not a dict"),
        (
            lambda: Ranking.from_runs({"q": {"d": 1}}, {"q": {"d": float("nan")}}),
            NotFiniteError,
            "item 'd' for unit 'q'",
        ),
        (lambda: Ranking.from_runs({"q": {"d": 1}}, {"q": {"d": "high"}}), NotFiniteError, "'high'"),
        (
            lambda: Ranking.from_runs({"q": {"d": None}}, {"q": {"d": 1.0}}),
            NotFiniteError,
            "gain of item 'd'",
        ),
        (
            lambda: Ranking.from_runs({"q": {"d": 1}}, {"q": {"d": 1, "e": 0}}, corpus_size=1),
            ParameterError,
            "corpus of 1",
        ),
        (lambda: Ranking.from_lists([[1, 1]], [[1]]), DuplicateError, "retrieved id 1 twice"),
        (lambda: Ranking.from_lists([["a", "a"]], [["b"]]), DuplicateError, "retrieved id a twice"),
        (lambda: Ranking.from_lists([[1, 2]], [[2, 2]]), DuplicateError, "relevant id 2 twice"),
        (lambda: Ranking.from_lists([[1, 2]], [[2], [1]]), ShapeError, "1 lists"),
        (lambda: Ranking.from_lists(np.arange(3), [[1]]), ShapeError, "1 dimension"),
        (lambda: Ranking.from_lists([[1, 2]], [[2]], scores=[[1.0]]), ShapeError, "does not fit"),
        (
            lambda: Ranking.from_lists([[1, 2]], [[2]], scores=[[1.0, float("nan")]]),
            NotFiniteError,
            "NaN score",
        ),
        (lambda: Ranking.from_scores(np.zeros(3), [0]), ShapeError, "two dimensions"),
        (lambda: Ranking.from_scores(np.zeros((2, 3)), [0]), ShapeError, "1 targets for 2 rows"),
        (lambda: Ranking.from_scores(np.zeros((1, 3)), [3]), InputError, "target 3"),
        (lambda: Ranking.from_scores(np.zeros((1, 3)), [-1]), InputError, "target -1"),
        (lambda: Ranking.from_scores(np.full((2, 3), np.nan), [0, 1]), NotFiniteError, "row 0"),
        (lambda: Ranking.from_scores(np.zeros((1, 3)), [0], exclude=[0]), InputError, "padding class 0"),
        (lambda: Ranking.from_scores(np.zeros((1, 3)), [0], exclude=[7]), ParameterError, "padding class 7"),
        (
            lambda: Ranking.from_scores(np.eye(2), [0, 1], unit_ids=["a", "a"]),
            DuplicateError,
            "appears 2 times",
        ),
        (lambda: Ranking.from_lists([[1]], [[1]], unit_ids=["a", "b"]), ShapeError, "2 unit ids for 1"),
        (lambda: Ranking.from_scores(np.array([["a", "b"]]), [0]), InputError, "not real numbers"),
        (lambda: Ranking.from_scores(np.ones((1, 2), dtype=complex), [0]), InputError, "not real numbers"),
        (lambda: Ranking.from_ranks([0], candidates=3), InputError, "rank 0"),
        (lambda: Ranking.from_ranks([4], candidates=3), InputError, "rank 4"),
        (lambda: Ranking.from_embeddings(np.eye(2), np.eye(2), [[5], [0]]), InputError, "row 5"),
        (
            lambda: Ranking.from_embeddings(np.eye(2), np.eye(2), [[0], [1]], exclude=[0, -1]),
            InputError,
            "excluded as well",
        ),
    ],
)
def test_bad_input_raises_errors(build, error, fragment):
    with pytest.raises(error, match=fragment):
        build()


@given(st.one_of(st.none(), st.integers(), st.text(), st.lists(st.integers() | st.text() | st.lists(st.floats()))))
def test_any_lists_give_a_ranking_or_an_equipoise_error(value):
    for build in (
        lambda: Ranking.from_lists(value, [[1]]),
        lambda: Ranking.from_lists([[1]], value),
        lambda: Ranking.from_runs({"q": {"d": 1}}, {"q": value}),
        lambda: Ranking.from_runs({"q": value}, {"q": {"d": 1.0}}),
        lambda: Ranking.from_scores(np.eye(2), value),
    ):
        with suppress(EquipoiseError):  # any other exception fails the test
            assert isinstance(build(), Ranking)


def test_one_target_per_unit_equals_lists_of_one_item():
    above, tied, before = np.array([2, 0, 5]), np.array([0, 1, 0]), np.array([0, 1, 0])
    of_targets = Ranking.of_targets(None, above=above, tied=tied, before=before, candidates=9)
    pool, counts = np.full(3, 9), np.ones(3, dtype=np.int64)
    of_items = Ranking.of_items(
        np.arange(3), counts, gain=np.ones(3), above=above, tied=tied, before=before, depth=pool, candidates=pool
    )
    index = np.array([2, 0, 0])
    for left, right in ((of_targets, of_items), (of_targets.take(index), of_items.take(index))):
        for name, array in right.to_arrays().items():
            np.testing.assert_array_equal(left.to_arrays()[name], array, err_msg=name)
