"""The bread samples hold together, and the script makes the very runs that are shipped."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from types import ModuleType

import pytest

from equipoise.io.run_files import read_qrels, read_run
from loading import script

RUNS = ("bm25", "opening", "chargrams", "overlap", "random")


@pytest.fixture(scope="module", name="script")
def make_samples() -> ModuleType:
    return script("make_samples")


def test_the_script_makes_the_same_bytes_as_are_shipped(script: ModuleType, tmp_path: Path) -> None:
    made = script.make(tmp_path)
    assert sorted(path.stem for path in made) == sorted(RUNS)
    for path in made:
        assert path.read_bytes() == (script.SAMPLES / path.name).read_bytes(), path.name


def test_every_question_is_judged_and_every_judgement_names_a_passage(script: ModuleType) -> None:
    passages = script.read_texts(script.SAMPLES / "passages.jsonl")
    questions = script.read_texts(script.SAMPLES / "questions.jsonl")
    truth = read_qrels(script.SAMPLES / "truth.qrels")
    assert truth.keys() == questions.keys()
    assert {name for gains in truth.values() for name in gains} <= passages.keys()
    assert all(2 in gains.values() for gains in truth.values())
    assert Counter(gain for gains in truth.values() for gain in gains.values()).keys() == {1, 2}


@pytest.mark.parametrize("name", RUNS)
def test_a_run_ranks_at_most_20_known_passages_a_question(script: ModuleType, name: str) -> None:
    passages = script.read_texts(script.SAMPLES / "passages.jsonl")
    run = read_run(script.SAMPLES / f"{name}.trec")
    assert len(run) >= 79
    for scores in run.values():
        assert 0 < len(scores) <= script.DEPTH
        assert scores.keys() <= passages.keys()


def test_bm25_agrees_with_the_formula_worked_by_hand(script: ModuleType) -> None:
    # Two passages of 2 and 4 words (mean 3); "rye" stands once in each, so its idf is log(1 + .5 / 2.5).
    scores = script.bm25({"a": "rye bread", "b": "rye and more rye"})("", "rye")
    idf = 0.1823215567939546
    assert scores["a"] == pytest.approx(idf * 1 * 2.2 / (1 + 1.2 * (0.25 + 0.75 * 2 / 3)))
    assert scores["b"] == pytest.approx(idf * 2 * 2.2 / (2 + 1.2 * (0.25 + 0.75 * 4 / 3)))


def test_identical_texts_have_the_cosine_and_the_overlap_1(script: ModuleType) -> None:
    texts = {"a": "a loaf of rye", "b": "soft white rolls"}
    assert script.chargrams(texts)("", "A loaf of RYE!")["a"] == pytest.approx(1.0)
    assert script.overlap(texts)("", "rye of a loaf") == {"a": 1.0, "b": 0.0}
