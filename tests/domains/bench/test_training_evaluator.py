"""The evaluator in a real training run of sentence-transformers, and cross-encoder objects as rerankers."""

from __future__ import annotations

import math
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from equipoise import bench, compare, load_run
from equipoise.errors import ParameterError
from equipoise.models.rerank import reranker

pytestmark = [pytest.mark.slow, pytest.mark.engines("sentence_transformers", "accelerate", "datasets")]

ANIMALS = ["fox", "whale", "mouse", "horse", "eagle", "salmon", "spider", "otter"]
WORDS = ["query", ":", "which", "animal", "a", "the", "about", *ANIMALS, *(f"{name}s" for name in ANIMALS)]
PAIRS = [{"query": f"which {name}", "positive": f"about the {name}s"} for name in ANIMALS]


@pytest.fixture(autouse=True)
def _quiet() -> Any:
    with warnings.catch_warnings(action="ignore"):
        yield


def static_model(prompts: dict[str, str] | None = None) -> Any:
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.models import StaticEmbedding
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import Whitespace

    tokenizer = Tokenizer(WordLevel({word: index for index, word in enumerate(["[UNK]", *WORDS])}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    torch.manual_seed(0)
    return SentenceTransformer(modules=[StaticEmbedding(tokenizer, embedding_dim=16)], prompts=prompts, device="cpu")


def test_a_trainer_logs_the_metrics_and_stores_a_run_per_step(tmp_path: Path) -> None:
    from datasets import Dataset
    from sentence_transformers import SentenceTransformerTrainer, SentenceTransformerTrainingArguments
    from sentence_transformers.losses import MultipleNegativesRankingLoss

    model = static_model()
    evaluator = bench.evaluator(bench.Retrieval(PAIRS, name="animals"), output=tmp_path / "runs")
    before = evaluator(model)
    arguments = SentenceTransformerTrainingArguments(
        output_dir=str(tmp_path / "checkpoints"),
        max_steps=20,
        per_device_train_batch_size=8,
        learning_rate=0.2,
        eval_strategy="steps",
        eval_steps=10,
        save_strategy="no",
        report_to=[],
        disable_tqdm=True,
        use_cpu=True,
    )
    train = Dataset.from_list([{"anchor": row["query"], "positive": row["positive"]} for row in PAIRS])
    loss = MultipleNegativesRankingLoss(model)
    trainer = SentenceTransformerTrainer(model, arguments, train_dataset=train, loss=loss, evaluator=evaluator)
    trainer.train()
    logged_scores = [
        entry["eval_animals_nDCG@10"] for entry in trainer.state.log_history if "eval_animals_nDCG@10" in entry
    ]
    runs = {path.name: load_run(path) for path in sorted((tmp_path / "runs" / "animals").iterdir())}
    assert list(runs) == ["final", "step-000010", "step-000020"]
    assert logged_scores == [runs[name].result["nDCG@10"].value for name in ("step-000010", "step-000020")]
    assert before[evaluator.primary_metric] == runs["final"].result["nDCG@10"].value < logged_scores[-1]
    comparison = compare([runs[name].result for name in ("final", "step-000020")], "nDCG@10")
    assert comparison.leader == "step-000020"
    assert all(math.isfinite(value) for value in before.values())


def test_the_prompts_of_the_model_are_used() -> None:
    plain, prompted = static_model(), static_model({"query": "query: ", "document": ""})
    data = bench.Retrieval(PAIRS, name="animals")
    encoded_texts: list[list[str]] = []
    encode_query = prompted.encode_query
    prompted.encode_query = lambda texts, **options: (
        encoded_texts.append(list(texts)),
        encode_query(texts, **options),
    )[1]
    bench.evaluator(data)(plain)
    bench.evaluator(data)(prompted)
    assert encoded_texts
    assert all(text.startswith("query: which") for texts in encoded_texts for text in texts)


def tiny_cross_encoder() -> Any:
    import tempfile

    import torch
    from sentence_transformers import CrossEncoder
    from transformers import BertConfig, BertForSequenceClassification, BertTokenizerFast

    folder = Path(tempfile.mkdtemp())
    (folder / "vocab.txt").write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]))
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(WORDS) + 5, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16,
        num_labels=1,
    )  # fmt: skip
    BertForSequenceClassification(config).save_pretrained(folder)
    BertTokenizerFast(str(folder / "vocab.txt")).save_pretrained(folder)
    return CrossEncoder(str(folder), device="cpu")


def test_cross_encoder_objects_rerank() -> None:
    model = tiny_cross_encoder()
    documents = ["about the foxs", "about a whale", "the otter"]
    import torch

    expected = model.predict(
        [("which fox", document) for document in documents], activation_fn=torch.nn.Identity(), show_progress_bar=False
    )
    np.testing.assert_allclose(reranker(model).score("which fox", documents), expected, atol=1e-5)
    comparison = bench.compare(["bm25:"], [bench.Retrieval(PAIRS)], rerankers=[model], baselines=False, cache=False)
    assert [system.name for system in comparison.datasets[0].systems][1].endswith("CrossEncoder")
    with pytest.raises(ParameterError):
        reranker(3)
