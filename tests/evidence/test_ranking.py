"""Building, taking apart, shuffling and storing rankings."""

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


def assert_same(one: Ranking, two: Ranking) -> None:
    for name in COUNT_FIELDS:
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name), err_msg=name)
    assert list(one.unit_ids) == list(two.unit_ids)


@given(st.data())
def test_counting_agrees_with_comparing_one_by_one(data):
    rows, width = data.draw(st.integers(1, 6)), data.draw(st.sampled_from([1, 7, 8, 9, 300, 2100, 9000]))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    dtype = data.draw(st.sampled_from([np.float32, np.float64, np.int64]))
    scores = rng.integers(0, data.draw(st.sampled_from([2, 1000])), (rows, width)).astype(dtype)
    counts = np.array(data.draw(st.lists(st.integers(0, 4), min_size=rows, max_size=rows)))
    row_of = np.repeat(np.arange(rows), counts)
    thresholds = scores[row_of, rng.integers(0, width, len(row_of))]
    if dtype != np.int64:
        thresholds[rng.random(len(row_of)) < 0.2] = np.nan  # what the row does not hold
    above, tied = count_above_and_tied(scores, thresholds, counts)
    assert above.tolist() == [int((scores[r] > t).sum()) for r, t in zip(row_of, thresholds, strict=True)]
    others = [max(int((scores[r] == t).sum()) - 1, 0) for r, t in zip(row_of, thresholds, strict=True)]
    assert tied.tolist() == others


def test_scores_that_differ_beyond_32_bits_are_told_apart():
    run = {"a": 1.0, "b": 1.0 + 1e-12, "c": 1.0 - 1e-12, "d": 1e300, "e": 2e300, "f": 1.0}
    ranking = Ranking.from_runs({"q": dict.fromkeys(run, 1)}, {"q": run})
    assert ranking.above.tolist() == [0, 1, 2, 3, 3, 5]
    assert ranking.tied.tolist() == [0, 0, 0, 1, 1, 0]


@given(
    hnp.arrays(np.float64, st.tuples(st.integers(1, 8), st.integers(1, 9)), elements=FEW_VALUES),
    st.integers(0, 99),
)
def test_a_score_matrix_gives_what_dicts_of_the_same_scores_give(scores, seed):
    units, width = scores.shape
    targets = np.random.default_rng(seed).integers(0, width, units)
    run = {str(u): {str(c): float(scores[u, c]) for c in range(width)} for u in range(units)}
    qrels = {str(u): {str(targets[u]): 1} for u in range(units)}
    assert_same(
        Ranking.from_scores(scores, targets, unit_ids=[str(u) for u in range(units)]),
        Ranking.from_runs(qrels, run),
    )


def test_excluded_columns_are_never_candidates():
    scores = np.array([[9.0, 1.0, 2.0, 2.0], [9.0, 5.0, 3.0, 2.0]])
    ranking = Ranking.from_scores(scores, [2, 3], exclude=[0])
    assert_same(ranking, Ranking.from_scores(scores[:, 1:], [1, 2]))
    assert ranking.candidates.tolist() == [3, 3]


@pytest.mark.parametrize("kind", [np.int64, np.uint8, np.float16, bool])
def test_scores_of_any_kind_of_number_are_ranked(kind):
    scores = np.array([[3, 1, 2], [0, 1, 1]]).astype(kind)
    expected = Ranking.from_scores(scores.astype(float), [2, 1])
    assert_same(Ranking.from_scores(scores, [2, 1]), expected)


def test_arrays_may_stand_where_dicts_do():
    assert_same(Ranking.from_runs([[3, 1]], [[1, 2, 3]]), Ranking.from_lists([[1, 2, 3]], [[3, 1]]))


def test_vectors_without_a_direction_are_named():
    ranking = Ranking.from_embeddings(np.eye(2), np.array([[1.0, 0.0], [0.0, 0.0], [0.0, 1.0]]), [0, 2])
    assert "1 of 3 points" in ranking.invalid_points
    assert Ranking.from_embeddings(np.eye(2), np.eye(2), [0, 1]).invalid_points == ""


def test_several_targets_a_unit_are_ranked_each():
    ranking = Ranking.from_scores(np.array([[3.0, 2.0, 1.0], [3.0, 2.0, 1.0]]), [[2, 0], [1]])
    assert ranking.above.tolist() == [0, 2, 1]
    assert ranking.counts.tolist() == [2, 1]


@pytest.mark.engines("torch")
def test_torch_tensors_are_counted_without_leaving_torch():
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    scores = rng.integers(0, 9, (30, 20)).astype(np.float32)
    targets = rng.integers(1, 20, 30)
    expected = Ranking.from_scores(scores, targets, exclude=0)
    assert_same(Ranking.from_scores(torch.from_numpy(scores), torch.from_numpy(targets), exclude=0), expected)
    half = torch.from_numpy(scores).to(torch.bfloat16)  # a format that numpy does not have
    assert_same(Ranking.from_scores(half, torch.from_numpy(targets), exclude=0), expected)
    live = torch.from_numpy(scores).requires_grad_()
    assert_same(Ranking.from_scores(live, targets, exclude=[0]), expected)
    with pytest.raises(NotFiniteError, match="row 1"):
        Ranking.from_scores(torch.tensor([[1.0, 2.0], [float("nan"), 1.0]], dtype=torch.bfloat16), [0, 1])
    counted = torch.from_numpy(scores.astype(np.int64))
    assert_same(Ranking.from_scores(counted, targets, exclude=[0]), expected)
    if torch.cuda.is_available():
        assert_same(Ranking.from_scores(torch.from_numpy(scores).cuda(), targets, exclude=0), expected)


@given(st.integers(1, 40), st.lists(st.integers(0, 40), max_size=4), st.permutations(range(5)))
def test_any_split_into_batches_and_any_order_of_merging_give_the_same_bytes(units, cuts, order):
    rng = np.random.default_rng(units)
    scores, targets = rng.integers(0, 5, (units, 7)).astype(float), rng.integers(0, 7, units)
    whole = RankingStream()
    whole.update(scores, targets, unit_ids=np.arange(units))
    edges = sorted({0, units, *(min(cut, units) for cut in cuts)})
    streams = [RankingStream() for _ in range(5)]
    for number, (low, high) in enumerate(pairwise(edges)):
        streams[number % 5].update(scores[low:high], targets[low:high], unit_ids=np.arange(low, high))
    merged = RankingStream()
    for number in order:
        merged.merge(streams[number])
    one, two = whole.compute().to_arrays(), merged.compute().to_arrays()
    assert all(one[name].tobytes() == two[name].tobytes() for name in one)


def test_merging_streams_that_both_count_from_zero_is_refused():
    stream, other = RankingStream(), RankingStream()
    stream.update(np.eye(2), [0, 1])
    other.update(np.eye(2), [0, 1])
    stream.merge(other)
    with pytest.raises(DuplicateError):
        stream.compute()


@pytest.mark.parametrize("geometry", ["cosine", "dot", "euclidean", "poincare", "lorentz"])
def test_vectors_give_the_ranks_of_their_sorted_distances(geometry):
    from equipoise.geometry.spaces import geometry as named

    rng = np.random.default_rng(3)
    points = rng.normal(size=(60, 4)) * 0.2
    if geometry == "lorentz":
        points = np.hstack([np.sqrt(1 + (points**2).sum(axis=1, keepdims=True)), points])
    distances = named(geometry).distances(points, points)
    relevant = [[(u + 1) % 60, (u + 7) % 60] for u in range(60)]
    ranking = Ranking.from_embeddings(
        points, points, relevant, geometry=geometry, exclude=np.arange(60), block_bytes=4096
    )
    for unit in range(60):
        others = np.delete(distances[unit], unit)
        expected = sorted(int((others < distances[unit, r]).sum()) for r in relevant[unit])
        assert ranking.above[ranking.starts[unit] : ranking.starts[unit + 1]].tolist() == expected
    assert (ranking.candidates == 59).all()


def test_blocks_of_scores_give_what_the_whole_matrix_gives():
    scores = np.random.default_rng(4).integers(0, 6, (11, 9)).astype(float)
    relevant = [[u % 9, (u + 3) % 9] for u in range(11)]
    blocks = ((slice(at, min(at + 4, 11)), scores[at : at + 4].copy()) for at in range(0, 11, 4))
    assert_same(Ranking.from_blocks(blocks, relevant, units=11, corpus=9), Ranking.from_scores(scores, relevant))


def test_duplicate_vectors_tie():
    corpus = np.tile(np.random.default_rng(0).normal(size=(5, 37)).astype(np.float32), (7, 1))
    ranking = Ranking.from_embeddings(corpus[:5], corpus, [[u] for u in range(5)])
    assert ranking.above.tolist() == [0] * 5
    assert ranking.tied.tolist() == [6] * 5


@given(st.lists(st.integers(0, 5), max_size=9), st.integers(0, 99))
def test_taking_units_is_indexing_each_of_them(index, seed):
    rng = np.random.default_rng(seed)
    lists = [rng.permutation(8)[: rng.integers(0, 8)].tolist() for _ in range(6)]
    truth = [rng.permutation(10)[: rng.integers(0, 4)].tolist() for _ in range(6)]
    names = [f"u{u}" for u in range(6)]
    ranking = Ranking.from_lists(lists, truth, unit_ids=names)
    taken = ranking.take(np.array(index, dtype=np.int64))
    assert list(taken.unit_ids) == [names[u] for u in index]
    if index:
        direct = Ranking.from_lists([lists[u] for u in index], [truth[u] for u in index])
        for name in COUNT_FIELDS:
            np.testing.assert_array_equal(getattr(taken, name), getattr(direct, name), err_msg=name)


def test_random_places_are_distinct_and_uniform():
    rng = np.random.default_rng(0)
    pool, counts = np.array([5, 6, 1, 40]), np.array([2, 6, 1, 3])
    seen = np.zeros(40)
    for _ in range(3000):
        places = np.split(random_ranks(pool, counts, rng), np.cumsum(counts)[:-1])
        for own, size in zip(places, pool, strict=True):
            assert len(set(own.tolist())) == len(own)
            assert own.max() < size
        seen[places[3]] += 1
    expected = 3000 * 3 / 40
    assert ((seen - expected) ** 2 / expected).sum() < 72  # the 99.9 % point of chi-squared with 39


def test_shuffled_rankings_lose_what_falls_below_the_depth():
    ranking = Ranking.from_lists([[1, 2]] * 500, [[1]] * 500, corpus_size=8)
    shuffled = ranking.shuffled(np.random.default_rng(0))
    lost = (shuffled.above == NOT_RETRIEVED).mean()
    assert abs(lost - 6 / 8) < 0.08
    assert set(shuffled.above.tolist()) == {0, 1, NOT_RETRIEVED}


def test_storing_gives_back_the_same_evidence_and_the_same_bytes(tmp_path):
    ranking = Ranking.from_runs({"ü": {"a": 2, "b": 1}, "z": {}}, {"ü": {"a": 1.0, "c": 1.0}, "w": {"a": 1.0}})
    ranking.save(tmp_path / "one.npz")
    again = Ranking.load(tmp_path / "one.npz")
    assert_same(ranking, again)
    assert again.unknown_units == ("w",)
    again.save(tmp_path / "two.npz")
    assert (tmp_path / "one.npz").read_bytes() == (tmp_path / "two.npz").read_bytes()


@pytest.mark.parametrize("large", [3, 2_000_000, 2**40])
def test_lists_that_are_short_or_not_in_order_of_their_scores_are_put_in_order(large):
    ranking = Ranking.from_lists([[large], [7, 0, 9]], [[0], [9]], scores=[[0.5], [0.1, 0.2, 0.3]])
    assert ranking.ranks.tolist() == [np.inf, 1.0]
    again = Ranking.from_lists([[large, 0], [7, 9]], [[0], [7]], scores=[[0.1, 0.5], [0.5, 0.5]])
    assert again.ranks.tolist() == [1.0, 1.5]


def test_near_items_survive_storing_taking_and_shuffling(tmp_path):
    from dataclasses import replace

    near = Ranking.from_lists([[1, 2, 3]] * 4, [[2, 3]] * 4, gains=[[0.5, 0.25]] * 4)
    ranking = replace(Ranking.from_lists([[1, 2, 3]] * 4, [[1]] * 4), near=near)
    ranking.save(tmp_path / "near.npz")
    again = Ranking.load(tmp_path / "near.npz").take(np.array([2, 0])).shuffled(np.random.default_rng(0))
    assert again.near is not None
    for unit in range(2):
        own = again.above[unit], *again.near.above[2 * unit : 2 * unit + 2]
        assert sorted(own) == [0, 1, 2]


@pytest.mark.parametrize(
    ("build", "error", "sentence"),
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
def test_bad_input_gets_a_sentence(build, error, sentence):
    with pytest.raises(error, match=sentence):
        build()


@given(st.one_of(st.none(), st.integers(), st.text(), st.lists(st.integers() | st.text() | st.lists(st.floats()))))
def test_whatever_the_lists_are_the_answer_is_a_ranking_or_a_sentence(junk):
    for call in (
        lambda: Ranking.from_lists(junk, [[1]]),
        lambda: Ranking.from_lists([[1]], junk),
        lambda: Ranking.from_runs({"q": {"d": 1}}, {"q": junk}),
        lambda: Ranking.from_runs({"q": junk}, {"q": {"d": 1.0}}),
        lambda: Ranking.from_scores(np.eye(2), junk),
    ):
        with suppress(EquipoiseError):  # anything else than a ranking or such a sentence fails
            assert isinstance(call(), Ranking)


def test_one_target_a_unit_is_the_evidence_of_items_one_by_one():
    above, tied, before = np.array([2, 0, 5]), np.array([0, 1, 0]), np.array([0, 1, 0])
    short = Ranking.of_targets(None, above=above, tied=tied, before=before, candidates=9)
    pool, one = np.full(3, 9), np.ones(3, dtype=np.int64)
    long = Ranking.of_items(
        np.arange(3), one, gain=np.ones(3), above=above, tied=tied, before=before, depth=pool, candidates=pool
    )
    index = np.array([2, 0, 0])
    for ours, theirs in ((short, long), (short.take(index), long.take(index))):
        for name, array in theirs.to_arrays().items():
            np.testing.assert_array_equal(ours.to_arrays()[name], array, err_msg=name)
