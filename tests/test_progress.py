"""Reports of progress reach the listener of the current step, and no other."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from equipoise import embedder
from equipoise.domains.accounts.experiment import EmbeddingSpec, TreeEvaluationConfig, train_best_learning_rate
from equipoise.domains.accounts.trees.tree import Tree
from equipoise.io.documents import read_documents
from equipoise.progress import activity, ignore_shares, listen, portion, report_share


class Heard:
    """A listener that keeps what it hears."""

    def __init__(self) -> None:
        self.shares: list[float] = []
        self.texts: list[str] = []

    def __call__(self, share: float | None, text: str | None) -> None:
        if share is not None:
            self.shares.append(share)
        if text is not None:
            self.texts.append(text)


def test_portions_are_nested() -> None:
    heard = Heard()
    with listen(heard), portion(0.5, 1.0), portion(0.0, 0.5), activity("loading"):
        report_share(1, 2)
    assert heard.shares == [0.625, 0.75, 1.0]
    assert heard.texts == ["loading", ""]


def test_shares_of_a_trial_are_ignored_but_not_its_activity() -> None:
    heard = Heard()
    with listen(heard), ignore_shares():
        report_share(1, 1)
        with activity("loading"):
            pass
    assert heard.shares == []
    assert heard.texts == ["loading", ""]


def test_without_a_listener_and_in_other_threads_nothing_is_reported() -> None:
    report_share(1, 2)
    heard = Heard()
    with listen(heard), ThreadPoolExecutor(1) as pool:
        pool.submit(report_share, 1, 2).result()
    assert heard.shares == []


def test_the_listener_is_restored_after_an_error() -> None:
    heard = Heard()
    with listen(heard), pytest.raises(ValueError, match="no"), portion(0.0, 0.5), activity("loading"):
        raise ValueError("no")
    assert heard.texts == ["loading", ""]
    report_share(1, 1)
    assert heard.shares == []


class Blockwise:
    """A model that reports its progress within a block."""

    def encode(self, texts: list[str]) -> np.ndarray:
        report_share(1, 2)
        return np.array([[len(text), 1.0] for text in texts])


def test_embedding_reports_its_share_within_a_block() -> None:
    heard, counts = Heard(), []
    texts = [f"{number} texts" for number in range(1000)]
    with listen(heard):
        embedder(Blockwise(), cache=False).embed_report(texts, progress=lambda done, total: counts.append(done))
    assert heard.shares == sorted(heard.shares)
    assert heard.shares[-1] == 1.0
    assert 0 < heard.shares[0] < 0.2
    assert counts == sorted(counts)
    assert counts[-1] == 1000
    assert any(count % 256 for count in counts[:-1])


def test_loading_a_model_says_so() -> None:
    heard = Heard()
    with listen(heard):
        embedder("hash", cache=False)
    assert heard.texts == ["loading hash", ""]


def test_training_reports_its_share_over_starts_and_learning_rates() -> None:
    heard = Heard()
    tree = Tree.from_edges([(f"{node}", f"{(node - 1) // 3}") for node in range(1, 60)])
    settings = TreeEvaluationConfig(learning_rates=(0.3, 1.0), training={"epochs": 4, "restarts": 2})
    with listen(heard):
        train_best_learning_rate(tree, EmbeddingSpec("euclidean", 2), settings, 0)
    assert heard.shares == sorted(heard.shares)
    assert len(set(heard.shares)) > 4
    assert heard.shares[-1] <= 1.0


def test_reading_documents_reports_each_one(tmp_path) -> None:
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text("Rye and oats.")
    heard = Heard()
    with listen(heard):
        read_documents(tmp_path)
    assert heard.shares == [0.5, 1.0]
