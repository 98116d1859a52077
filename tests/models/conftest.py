"""Small models with random weights, so that the loading code runs without a download."""

from __future__ import annotations

import os
import warnings
from pathlib import Path

import pytest

from marked import marked

os.environ.setdefault("HF_HUB_OFFLINE", "1")

WORDS = "the a cat dog sat ran on under mat tree red blue fish swims in water ##s ##ed !"


@pytest.fixture(scope="session")
@marked(pytest.mark.engines("sentence_transformers"))
def tiny_bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sentence-transformers folder with a random BERT of two layers, mean pooling and unit vectors."""
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    pytest.importorskip("sentence_transformers")
    folder = tmp_path_factory.mktemp("models") / "tiny"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from sentence_transformers import SentenceTransformer
        from sentence_transformers.models import Normalize, Pooling, Transformer

        plain = tmp_path_factory.mktemp("plain")
        vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS.split()]
        (plain / "vocab.txt").write_text("\n".join(vocabulary) + "\n")
        state = torch.random.get_rng_state()
        torch.manual_seed(0)
        config = transformers.BertConfig(
            vocab_size=len(vocabulary), hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
            intermediate_size=64, max_position_embeddings=24,
        )  # fmt: skip
        transformers.BertModel(config).save_pretrained(plain)
        torch.random.set_rng_state(state)
        transformers.BertTokenizerFast(vocab=str(plain / "vocab.txt")).save_pretrained(plain)
        word = Transformer(str(plain), max_seq_length=16)
        SentenceTransformer(modules=[word, Pooling(32), Normalize()], device="cpu").save(str(folder))
    return folder
