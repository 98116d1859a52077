"""The hash baseline: equal everywhere, words only, and a floor that search can stand on."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise.errors import ParameterError
from equipoise.models.backends.hashing import HashEncoder, load
from equipoise.models.registry import ModelSpec
from equipoise.models.retriever import retriever
from equipoise.types import Role

WORDS = st.lists(st.sampled_from(["fox", "red", "Größe", "sea", "2"]), min_size=1, max_size=6)


def vectors(*texts, dims=64):
    return HashEncoder(dims, "hash").encode(texts, Role.DOCUMENT)


@settings(deadline=None, max_examples=40)
@given(WORDS, st.randoms(use_true_random=False))
def test_the_order_of_words_does_not_matter_and_lengths_are_one_or_zero(words, random):
    mixed = words.copy()
    random.shuffle(mixed)
    a, b = vectors(" ".join(words), " ".join(mixed))
    assert a.tolist() == b.tolist()
    assert np.linalg.norm(a) == pytest.approx(1.0, abs=1e-6) or not a.any()


def test_a_word_is_one_signed_coordinate():
    (vector,) = vectors("fox")
    assert sorted(np.abs(vector).tolist()) == [0.0] * 63 + [1.0]


def test_a_text_without_words_is_the_zero_vector():
    assert not vectors("...", "fox")[0].any()


def test_a_vector_does_not_depend_on_the_other_texts_of_the_call():
    together = vectors("a red fox", "the sea")
    assert together[1].tolist() == vectors("the sea")[0].tolist()


def test_shared_words_bring_texts_near():
    found = retriever("hash:,dims=2048").fit(["a blue whale", "one red fox", "grey stone"]).search(["red fox"], 2)
    assert found.indices[0, 0] == 1
    assert found.scores[0, 0] == pytest.approx(2 / 6**0.5, abs=1e-6)


def test_tokens_are_counted_in_words():
    assert HashEncoder(8, "hash").token_counts(["a red-fox", "..."]) == [3, 0]


def test_options_are_dims_and_what_every_encoder_has():
    assert load(ModelSpec("hash", "", {"dims": "16"})).card.dims == 16
    with pytest.raises(ParameterError, match="no option 'dimz'") as caught:
        load(ModelSpec("hash", "", {"dimz": "16"}))
    assert "dims" in caught.value.hint
    with pytest.raises(ParameterError, match="dims is '0'"):
        load(ModelSpec("hash", "", {"dims": "0"}))


PROGRAM = """
from equipoise.models.retriever import retriever
documents = ["a red fox", "the blue whale sea", "red sea and fox", "Größe und Straße", "fox"]
for spec in ("hash:", "bm25:,stopwords=english", "tfidf:", "rrf:hash:+bm25:+tfidf:", "sum:hash:+bm25:"):
    system = retriever(spec)
    for _, scores in system.fit(documents).score_blocks(["red fox sea", "grosse strasse"]):
        print(system.fingerprint, scores.tobytes().hex())
"""


@pytest.mark.slow
def test_scores_and_fingerprints_are_the_same_bytes_in_every_process():
    runs = [
        subprocess.run(
            [sys.executable, "-c", PROGRAM], env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True, text=True, check=True,
        ).stdout
        for seed in ("1", "2")
    ]  # fmt: skip
    assert runs[0] == runs[1]
    assert len(runs[0].split()) == 10
