"""mteb's own tasks over data in memory, and a model with given vectors: the reference of the benchmark."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np


def random_vector(text: str, dims: int = 24) -> Any:
    """The sum of one random vector per word: texts with common words are similar."""
    vector = np.zeros(dims)
    for word in text.lower().split():
        seed = int.from_bytes(hashlib.sha256(word.encode()).digest()[:8], "little")
        vector += np.random.default_rng(seed).standard_normal(dims)
    return vector.astype(np.float32)


class GivenVectors:
    """A model for both programs: ``encode(texts)`` for equipoise, ``mteb_model`` for mteb."""

    def __init__(self, vectors: Mapping[str, Any] | None = None) -> None:
        self.vectors = {} if vectors is None else dict(vectors)

    def encode(self, texts: Sequence[str]) -> Any:
        """One row per text."""
        return np.array([self.of(text) for text in texts], dtype=np.float32)

    def of(self, text: str) -> Any:
        """The vector of a text, computed at its first use."""
        if text not in self.vectors:
            self.vectors[text] = random_vector(text)
        return self.vectors[text]

    def mteb_model(self) -> Any:
        """The same vectors as a model of mteb."""
        from mteb.models.abs_encoder import AbsEncoder
        from mteb.models.model_meta import ModelMeta

        given = self

        class Model(AbsEncoder):
            """Returns the given vector of every text."""

            def __init__(self) -> None:
                self.mteb_model_meta = ModelMeta.create_empty({"name": "test/given", "revision": "1"})

            def encode(self, inputs: Any, **options: Any) -> Any:
                """The vectors of all batches."""
                return given.encode([text for batch in inputs for text in batch["text"]])

        return Model()


def mteb_scores(kind: str, dataset: Any, model: GivenVectors, main_score: str) -> dict[str, float]:
    """All scores of mteb's task of a kind on data in memory."""
    import mteb
    from mteb.abstasks import AbsTaskClassification, AbsTaskPairClassification, AbsTaskRetrieval, AbsTaskSTS
    from mteb.abstasks.task_metadata import TaskMetadata
    from mteb.abstasks.text.bitext_mining import AbsTaskBitextMining

    base: Any = {
        "STS": AbsTaskSTS,
        "Retrieval": AbsTaskRetrieval,
        "PairClassification": AbsTaskPairClassification,
        "Classification": AbsTaskClassification,
        "BitextMining": AbsTaskBitextMining,
    }[kind]
    task_metadata = TaskMetadata(
        name=f"Given{kind}",
        dataset={"path": "none/none", "revision": "1"},
        description="Data in memory.",
        type=kind,
        category="t2t",
        modalities=["text"],
        eval_splits=["test"],
        eval_langs=["eng-Latn"],
        main_score=main_score,
    )

    class Task(base):  # type: ignore[misc]
        """A task with its data in memory."""

        metadata = task_metadata

        def load_data(self, **options: Any) -> None:
            """Use the data in memory."""
            if kind == "Retrieval":
                self.dataset = {"default": {"test": dataset}}
            else:
                self.dataset = dataset
            self.data_loaded = True

    with warnings.catch_warnings(action="ignore"):
        results = mteb.evaluate(
            model.mteb_model(),
            Task(),
            cache=None,
            co2_tracker=False,
            show_progress_bar=False,
            overwrite_strategy="always",
        )
    (scores,) = results.task_results[0].scores["test"]
    return {name: value for name, value in scores.items() if isinstance(value, float)}
