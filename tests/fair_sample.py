"""A synthetic document with questions, and a slow reference evaluation, for tests of the fair comparison."""

from __future__ import annotations

from collections.abc import Sequence
from math import comb
from random import Random
from typing import Any

import numpy as np

from equipoise.domains.fair.answer_matching import AnswerMatcher
from equipoise.domains.fair.chunk_index import AnswerLocations
from equipoise.domains.fair.config import FairConfig
from equipoise.domains.fair.questions import QuestionAnswer
from equipoise.models.chunking import Chunk, chunker
from equipoise.models.retriever import Retriever

GRID: dict[str, Any] = {"chunk_sizes": [16, 24, 32], "overlaps": [0, 4], "top_ks": [1, 2, 4]}
BASELINE = {"chunk_size": 32, "overlap": 4, "top_k": 2}
CONFIG = FairConfig(**GRID, baseline_params=BASELINE, tokenizer="words", repeats=5)


def document(sentences: int = 60, seed: int = 0) -> str:
    """Sentences of random words under headings; most words occur several times."""
    rng = Random(seed)
    words = ["".join(rng.choice("bdfgklmnprst") + rng.choice("aeiou") for _ in range(3)) for _ in range(150)]
    lines = []
    for number in range(sentences):
        if number % 12 == 0:
            lines.append(f"\n# Part {number // 12}\n")
        lines.append(" ".join(rng.choice(words) for _ in range(rng.randint(7, 12))).capitalize() + ".")
    return "\n".join(lines)


def pairs(text: str, count: int = 30, seed: int = 1) -> list[dict[str, str]]:
    """Questions from words of a sentence, with an answer from the same sentence."""
    rng = Random(seed)
    sentences = [line for line in text.splitlines() if line.endswith(".")]
    questions = []
    for line in rng.sample(sentences, count):
        words = line.rstrip(".").split()
        sampled_words = rng.sample([word for word in words if word not in words[2:4]], 2)
        labels = rng.choice(["exact", "multi_hop"]), rng.choice(["easy", "hard"])
        questions.append({"question": f"What of {' '.join(sampled_words)}?", "answer": " ".join(words[2:4])})
        questions[-1] |= {"category": labels[0], "difficulty": labels[1]}
    return questions


def chunks_of(text: str, size: int, overlap: int) -> list[Chunk]:
    """The chunks that the chunker returns."""
    return chunker("fixed", chunk_size=size, overlap=overlap, tokenizer="words").chunk(text)


def slow_hits(system: Retriever, text: str, questions: Sequence[dict[str, str]], params: dict[str, Any]) -> np.ndarray:
    """Probability per question that the top k chunks contain its answer, with ties in random order."""
    texts = [chunk.text for chunk in chunks_of(text, params["chunk_size"], params["overlap"])]
    scores = np.concatenate(
        [block.copy() for _, block in system.fit(texts).score_blocks([pair["question"] for pair in questions])]
    )
    hits = []
    for pair, row in zip(questions, scores, strict=True):
        is_correct = [pair["answer"].lower() in " ".join(chunk_text.split()).lower() for chunk_text in texts]
        hits.append(_chance_within(row.tolist(), is_correct, min(params["top_k"], len(texts))))
    return np.array(hits)


def _chance_within(scores: list[float], is_correct: list[bool], k: int) -> float:
    miss_probability = 1.0
    for score in sorted(set(scores), reverse=True):
        tied = [index for index, value in enumerate(scores) if value == score]
        n_taken = min(k, len(tied))
        n_incorrect = sum(not is_correct[index] for index in tied)
        miss_probability *= comb(n_incorrect, n_taken) / comb(len(tied), n_taken)
        k -= n_taken
    return 1.0 - miss_probability


class Counting:
    """An in-process model that hashes words into a few dimensions and records the texts it embeds."""

    def __init__(self, dims: int = 24) -> None:
        self.dims = dims
        self.documents: list[str] = []
        self.queries: list[str] = []

    def embed_documents(self, texts: Sequence[str]) -> np.ndarray:
        self.documents += texts
        return np.array([self._vector(text) for text in texts])

    def embed_query(self, text: str) -> np.ndarray:
        self.queries.append(text)
        return self._vector(text)

    def _vector(self, text: str) -> np.ndarray:
        vector = np.full(self.dims, 1e-3)
        for word in text.lower().replace(".", " ").replace("?", " ").split():
            rng = Random(word)
            vector += [rng.gauss(0, 1) for _ in range(self.dims)]
        return vector / np.linalg.norm(vector)


def locate_answers(
    questions: Sequence[QuestionAnswer], chunks: Sequence[Chunk], matcher: AnswerMatcher
) -> AnswerLocations:
    """Which chunks contain which answers."""
    index = matcher.build_index([chunk.text for chunk in chunks])
    holders = tuple(index.holders_of_any(question.answers) for question in questions)
    return AnswerLocations(matcher.joins, index, holders)
