"""The hash encoder: word counts, norms, and equal bytes in every process."""

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
from equipoise.models.encoder import Role
from equipoise.models.registry import ModelSpec
from equipoise.models.retriever import retriever

WORDS = st.lists(st.sampled_from(["fox", "red", "Größe", "sea", "2"]), min_size=1, max_size=6)


def vectors(*texts, dims=64):
    return HashEncoder(dims, "hash").encode(texts, Role.DOCUMENT)


@settings(deadline=None, max_examples=40)
@given(WORDS, st.randoms(use_true_random=False))
def test_vectors_ignore_the_order_of_words_and_have_norm_one_or_zero(words, random):
    shuffled = words.copy()
    random.shuffle(shuffled)
    a, b = vectors(" ".join(words), " ".join(shuffled))
    assert a.tolist() == b.tolist()
    assert np.linalg.norm(a) == pytest.approx(1.0, abs=1e-6) or not a.any()


def test_one_word_gives_one_signed_coordinate():
    (vector,) = vectors("fox")
    assert sorted(np.abs(vector).tolist()) == [0.0] * 63 + [1.0]


def test_texts_without_words_are_zero_vectors():
    assert not vectors("...", "fox")[0].any()


def test_vectors_do_not_depend_on_other_texts():
    vectors_of_both = vectors("a red fox", "the sea")
    assert vectors_of_both[1].tolist() == vectors("the sea")[0].tolist()


def test_common_words_increase_the_similarity():
    hits = retriever("hash:,dims=2048").fit(["a blue whale", "one red fox", "grey stone"]).search(["red fox"], 2)
    assert hits.indices[0, 0] == 1
    assert hits.scores[0, 0] == pytest.approx(2 / 6**0.5, abs=1e-6)


def test_tokens_are_counted_in_words():
    assert HashEncoder(8, "hash").token_counts(["a red-fox", "..."]) == [3, 0]


def test_options_of_the_hash_encoder():
    assert load(ModelSpec("hash", "", {"dims": "16"})).card.dims == 16
    with pytest.raises(ParameterError, match="'dimz'") as error:
        load(ModelSpec("hash", "", {"dimz": "16"}))
    assert "dims" in error.value.hint
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
    outputs = [
        subprocess.run(
            [sys.executable, "-c", PROGRAM], env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True, text=True, check=True,
        ).stdout
        for seed in ("1", "2")
    ]  # fmt: skip
    assert outputs[0] == outputs[1]
    assert len(outputs[0].split()) == 10
