"""The bread samples are consistent, and the script reproduces the shipped runs."""

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


def test_the_script_reproduces_the_shipped_runs(script: ModuleType, tmp_path: Path) -> None:
    paths = script.make(tmp_path)
    assert sorted(path.stem for path in paths) == sorted(RUNS)
    for path in paths:
        assert path.read_bytes() == (script.SAMPLES / path.name).read_bytes(), path.name


def test_every_question_has_judgements_of_known_passages(script: ModuleType) -> None:
    passages = script.read_texts(script.SAMPLES / "passages.jsonl")
    questions = script.read_texts(script.SAMPLES / "questions.jsonl")
    qrels = read_qrels(script.SAMPLES / "truth.qrels")
    assert qrels.keys() == questions.keys()
    assert {passage_id for gains in qrels.values() for passage_id in gains} <= passages.keys()
    assert all(2 in gains.values() for gains in qrels.values())
    assert Counter(gain for gains in qrels.values() for gain in gains.values()).keys() == {1, 2}


@pytest.mark.parametrize("name", RUNS)
def test_runs_rank_at_most_20_known_passages_per_question(script: ModuleType, name: str) -> None:
    passages = script.read_texts(script.SAMPLES / "passages.jsonl")
    run = read_run(script.SAMPLES / f"{name}.trec")
    assert len(run) >= 79
    for scores in run.values():
        assert 0 < len(scores) <= script.DEPTH
        assert scores.keys() <= passages.keys()


def test_bm25_agrees_with_the_formula(script: ModuleType) -> None:
    # Two passages of 2 and 4 words (mean 3); "rye" occurs in both, so its idf is log(1 + .5 / 2.5).
    scores = script.bm25({"a": "rye bread", "b": "rye and more rye"})("", "rye")
    idf = 0.1823215567939546
    assert scores["a"] == pytest.approx(idf * 1 * 2.2 / (1 + 1.2 * (0.25 + 0.75 * 2 / 3)))
    assert scores["b"] == pytest.approx(idf * 2 * 2.2 / (2 + 1.2 * (0.25 + 0.75 * 4 / 3)))


def test_identical_texts_have_the_cosine_and_the_overlap_1(script: ModuleType) -> None:
    texts = {"a": "a loaf of rye", "b": "soft white rolls"}
    assert script.chargrams(texts)("", "A loaf of RYE!")["a"] == pytest.approx(1.0)
    assert script.overlap(texts)("", "rye of a loaf") == {"a": 1.0, "b": 0.0}
