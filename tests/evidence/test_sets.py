"""Sets of terms: encoding, storage, shuffling, credit and errors."""

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


def sets_of_corpus(corpus) -> Sets:
    gold = {f"d{i}": gold_set for i, (gold_set, _) in enumerate(corpus)}
    predicted = {f"d{i}": predicted_set for i, (_, predicted_set) in enumerate(corpus)}
    return Sets.of(gold, predicted)


@given(CORPORA)
def test_decoded_sets_equal_the_input(corpus):
    sets = sets_of_corpus(corpus)
    assert decoded(sets, sets.gold) == [gold_set for gold_set, _ in corpus]
    assert decoded(sets, sets.predicted) == [predicted_set for _, predicted_set in corpus]


@given(CORPORA, st.data())
def test_taking_documents_takes_their_sets(corpus, data):
    sets = sets_of_corpus(corpus)
    index = data.draw(st.lists(st.integers(0, len(corpus) - 1), max_size=8) if corpus else st.just([]))
    taken = sets.take(np.array(index, dtype=np.int64))
    assert decoded(taken, taken.gold) == [corpus[i][0] for i in index]
    assert decoded(taken, taken.predicted) == [corpus[i][1] for i in index]


@given(CORPORA, st.integers(0, 99))
def test_shuffling_permutes_whole_predicted_sets(corpus, seed):
    sets = sets_of_corpus(corpus)
    shuffled = sets.shuffled(np.random.default_rng(seed))
    assert decoded(shuffled, shuffled.gold) == decoded(sets, sets.gold)
    assert sorted(map(sorted, decoded(shuffled, shuffled.predicted))) == sorted(
        sorted(predicted_set) for _, predicted_set in corpus
    )


def test_terms_without_an_assertion_are_affirmed_with_code_zero():
    sets = Sets.of({"d": ["fever", ("cough", "absent")]}, {"d": [("fever", AFFIRMED)]})
    assert sets.assertions.tolist() == [AFFIRMED, "absent"]
    assert decoded(sets, sets.gold) == [{("fever", AFFIRMED), ("cough", "absent")}]


def test_documents_missing_on_either_side_are_recorded(tmp_path):
    sets = Sets.of({"d1": ["a"], "d2": ["b"]}, {"d2": [], "d9": ["z"]})
    assert sets.missing.tolist() == [True, False]
    assert sets.unknown_units == ("d9",)
    sets.save(tmp_path / "sets.npz")
    assert Sets.load(tmp_path / "sets.npz").unknown_units == ("d9",)


@pytest.mark.parametrize("with_credit", [False, True])
def test_the_order_of_terms_does_not_change_the_file(tmp_path, with_credit):
    def build_sets(step: int) -> Sets:
        sets = Sets.of({"d": ["a", "b", ("b", "negated")][::step]}, {"d": ["c", "a"][::step]})
        return sets.with_credit(lambda g, p: np.full((len(g), len(p)), 0.5)) if with_credit else sets

    build_sets(1).save(tmp_path / "one.npz")
    build_sets(-1).save(tmp_path / "two.npz")
    assert (tmp_path / "one.npz").read_bytes() == (tmp_path / "two.npz").read_bytes()
    Sets.load(tmp_path / "one.npz").save(tmp_path / "two.npz")
    assert (tmp_path / "one.npz").read_bytes() == (tmp_path / "two.npz").read_bytes()
    assert (Sets.load(tmp_path / "one.npz").credit is None) != with_credit


def test_credit_is_found_by_term_across_blocks(monkeypatch):
    monkeypatch.setattr("equipoise.evidence.sets.BLOCK_TERMS", 2)
    similarity_of = {("a", "b"): 0.5, ("c", "a"): 0.25, ("e", "b"): 1.0}
    sets = Sets.of({"d": ["a", "c", "e"]}, {"d": ["a", "b"]}).with_credit(
        lambda gold, predicted: [[similarity_of.get((g, p), 0.0) for p in predicted] for g in gold]
    )
    code = {name: i for i, name in enumerate(sets.terms)}
    gold, predicted = np.array([code[t] for t in "ace"]), np.array([code[t] for t in "ab"])
    expected = [[1.0, 0.5], [0.25, 0.0], [0.0, 1.0]]
    np.testing.assert_array_equal(sets.credit.between(gold, predicted, len(sets.terms)), expected)


def test_credit_over_empty_sets_is_empty():
    sets = Sets.of({"d": []}, {"d": ["a"]}).with_credit(lambda gold, predicted: np.ones((len(gold), len(predicted))))
    assert len(sets.credit.similarity) == 0


def test_bad_sets_raise_errors():
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
        sets.with_credit(lambda gold, predicted: np.ones((2, 2)))
    for credit in (np.nan, 1.5, -0.1):
        with pytest.raises(NotFiniteError) as error:
            sets.with_credit(lambda gold, predicted, credit=credit: np.full((1, 1), credit))
        assert error.value.code == "E207"
