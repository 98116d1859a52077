"""Sets of terms: coding, storing, shuffling, credit, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.errors import DuplicateError, InputError, NotFiniteError, ShapeError
from equipoise.evidence.sets import AFFIRMED, Sets, TermSets

ENTRIES = st.sets(st.tuples(st.sampled_from("abcde"), st.sampled_from([AFFIRMED, "negated"])), max_size=5)
CORPORA = st.lists(st.tuples(ENTRIES, ENTRIES), max_size=6)


def decoded(sets: Sets, side: TermSets) -> list[set[tuple[str, str]]]:
    return [
        {(sets.terms[t], sets.assertions[a]) for t, a in zip(side.terms[i:j], side.assertions[i:j], strict=True)}
        for i, j in zip(side.offsets[:-1], side.offsets[1:], strict=True)
    ]


def made(corpus) -> Sets:
    gold = {f"d{i}": one for i, (one, _) in enumerate(corpus)}
    predicted = {f"d{i}": other for i, (_, other) in enumerate(corpus)}
    return Sets.of(gold, predicted)


@given(CORPORA)
def test_what_went_in_can_be_read_back(corpus):
    sets = made(corpus)
    assert decoded(sets, sets.gold) == [one for one, _ in corpus]
    assert decoded(sets, sets.predicted) == [other for _, other in corpus]


@given(CORPORA, st.data())
def test_taking_documents_takes_their_sets(corpus, data):
    sets = made(corpus)
    index = data.draw(st.lists(st.integers(0, len(corpus) - 1), max_size=8) if corpus else st.just([]))
    taken = sets.take(np.array(index, dtype=np.int64))
    assert decoded(taken, taken.gold) == [corpus[i][0] for i in index]
    assert decoded(taken, taken.predicted) == [corpus[i][1] for i in index]


@given(CORPORA, st.integers(0, 99))
def test_shuffling_permutes_whole_predicted_sets(corpus, seed):
    sets = made(corpus)
    shuffled = sets.shuffled(np.random.default_rng(seed))
    assert decoded(shuffled, shuffled.gold) == decoded(sets, sets.gold)
    assert sorted(map(sorted, decoded(shuffled, shuffled.predicted))) == sorted(sorted(o) for _, o in corpus)


def test_a_bare_term_is_affirmed_and_affirmed_is_code_zero():
    sets = Sets.of({"d": ["fever", ("cough", "absent")]}, {"d": [("fever", AFFIRMED)]})
    assert sets.assertions.tolist() == [AFFIRMED, "absent"]
    assert decoded(sets, sets.gold) == [{("fever", AFFIRMED), ("cough", "absent")}]


def test_documents_missing_on_either_side_are_remembered(tmp_path):
    sets = Sets.of({"d1": ["a"], "d2": ["b"]}, {"d2": [], "d9": ["z"]})
    assert sets.missing.tolist() == [True, False]
    assert sets.unknown_units == ("d9",)
    sets.save(tmp_path / "sets.npz")
    assert Sets.load(tmp_path / "sets.npz").unknown_units == ("d9",)


@pytest.mark.parametrize("credited", [False, True])
def test_the_order_of_a_set_leaves_no_trace_in_the_file(tmp_path, credited):
    def build(turn: int) -> Sets:
        sets = Sets.of({"d": ["a", "b", ("b", "negated")][::turn]}, {"d": ["c", "a"][::turn]})
        return sets.with_credit(lambda g, p: np.full((len(g), len(p)), 0.5)) if credited else sets

    build(1).save(tmp_path / "one.npz")
    build(-1).save(tmp_path / "two.npz")
    assert (tmp_path / "one.npz").read_bytes() == (tmp_path / "two.npz").read_bytes()
    Sets.load(tmp_path / "one.npz").save(tmp_path / "two.npz")
    assert (tmp_path / "one.npz").read_bytes() == (tmp_path / "two.npz").read_bytes()
    assert (Sets.load(tmp_path / "one.npz").credit is None) != credited


def test_credit_is_looked_up_by_term_whichever_block_it_came_from(monkeypatch):
    monkeypatch.setattr("equipoise.evidence.sets.BLOCK_TERMS", 2)
    worth = {("a", "b"): 0.5, ("c", "a"): 0.25, ("e", "b"): 1.0}
    sets = Sets.of({"d": ["a", "c", "e"]}, {"d": ["a", "b"]}).with_credit(
        lambda gold, found: [[worth.get((g, p), 0.0) for p in found] for g in gold]
    )
    code = {name: i for i, name in enumerate(sets.terms)}
    gold, found = np.array([code[t] for t in "ace"]), np.array([code[t] for t in "ab"])
    expected = [[1.0, 0.5], [0.25, 0.0], [0.0, 1.0]]
    np.testing.assert_array_equal(sets.credit.between(gold, found, len(sets.terms)), expected)


def test_credit_over_empty_sets_is_empty():
    sets = Sets.of({"d": []}, {"d": ["a"]}).with_credit(lambda gold, found: np.ones((len(gold), len(found))))
    assert len(sets.credit.similarity) == 0


def test_bad_sets_are_explained():
    with pytest.raises(DuplicateError, match="/"):
        Sets.of({"d": ["a", ("a", AFFIRMED)]}, {"d": []})
    with pytest.raises(InputError):
        Sets.of({"d": []}, {"d": "fever"})
    with pytest.raises(InputError, match="holds 7"):
        Sets.of({"d": [7]}, {"d": []})
    with pytest.raises(InputError):
        Sets.of([["a"]], {"d": []})
    with pytest.raises(InputError):
        Sets.of({"d": ["a"]}, [["a"]])
    sets = Sets.of({"d": ["a"]}, {"d": ["b"]})
    with pytest.raises(ShapeError, match=r"\(2, 2\)"):
        sets.with_credit(lambda gold, found: np.ones((2, 2)))
    for wrong in (np.nan, 1.5, -0.1):
        with pytest.raises(NotFiniteError, match="outside 0 to 1"):
            sets.with_credit(lambda gold, found, wrong=wrong: np.full((1, 1), wrong))
