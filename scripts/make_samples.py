"""Generate the sample runs from the sample texts with five simple systems in pure Python, deterministically.

python scripts/make_samples.py          rewrites src/equipoise/io/samples/*.trec

The passages, the questions and the judgements are written by hand; only the runs are generated.
"""

from __future__ import annotations

import argparse
import json
import random
import re
from collections import Counter
from collections.abc import Callable, Iterable
from math import log, sqrt
from pathlib import Path

from equipoise.io.run_files import write_run

SAMPLES = Path(__file__).parents[1] / "src" / "equipoise" / "io" / "samples"
DEPTH = 20
SEED = 2026
DIGITS = 6
"""Scores are rounded, because the last bits of a logarithm differ between machines."""

Texts = dict[str, str]
Scores = dict[str, float]
Scorer = Callable[[str, str], Scores]


def read_texts(path: Path) -> Texts:
    """The texts of a JSONL file by id."""
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return {row["id"]: row["text"] for row in rows}


def words(text: str) -> list[str]:
    """Lower-case words and numbers."""
    return re.findall(r"[a-z0-9]+", text.casefold())


def character_ngrams(text: str) -> list[str]:
    """Character 3- to 5-grams of each word, with a space on both sides."""
    return [
        padded[start : start + size]
        for padded in (f" {word} " for word in words(text))
        for size in (3, 4, 5)
        for start in range(len(padded) - size + 1)
    ]


def inverse_document_frequencies(bags: Iterable[Counter[str]], count: int) -> dict[str, float]:
    """The inverse document frequency of each term, as BM25 smooths it."""
    documents = Counter(term for bag in bags for term in bag)
    return {term: log(1 + (count - df + 0.5) / (df + 0.5)) for term, df in documents.items()}


def bm25(passages: Texts, k1: float = 1.2, b: float = 0.75) -> Scorer:
    """Okapi BM25 over words."""
    bags = {name: Counter(words(text)) for name, text in passages.items()}
    idf = inverse_document_frequencies(bags.values(), len(bags))
    mean_length = sum(bag.total() for bag in bags.values()) / len(bags)

    def weight(bag: Counter[str], term: str) -> float:
        damping = k1 * (1 - b + b * bag.total() / mean_length)
        return idf.get(term, 0.0) * bag[term] * (k1 + 1) / (bag[term] + damping)

    return lambda _, question: {name: sum(weight(bag, term) for term in words(question)) for name, bag in bags.items()}


def opening(passages: Texts) -> Scorer:
    """BM25 on the first sentence of each passage, like a model with a short window."""
    return bm25({name: text.partition(". ")[0] for name, text in passages.items()})


def chargrams(passages: Texts) -> Scorer:
    """The cosine of TF-IDF vectors over character 3-5-grams."""
    bags = {name: Counter(character_ngrams(text)) for name, text in passages.items()}
    idf = inverse_document_frequencies(bags.values(), len(bags))

    def vector(bag: Counter[str]) -> dict[str, float]:
        raw = {term: (1 + log(count)) * idf[term] for term, count in bag.items() if term in idf}
        length = sqrt(sum(value * value for value in raw.values())) or 1.0
        return {term: value / length for term, value in raw.items()}

    vectors = {name: vector(bag) for name, bag in bags.items()}

    def scores(_: str, question: str) -> Scores:
        question_vector = vector(Counter(character_ngrams(question)))
        return {name: sum(v * other.get(t, 0.0) for t, v in question_vector.items()) for name, other in vectors.items()}

    return scores


def overlap(passages: Texts) -> Scorer:
    """The fraction of common words (Jaccard), which has many ties."""
    sets = {name: frozenset(words(text)) for name, text in passages.items()}

    def scores(_: str, question: str) -> Scores:
        question_words = frozenset(words(question))
        return {name: len(question_words & other) / len(question_words | other) for name, other in sets.items()}

    return scores


def chance(passages: Texts) -> Scorer:
    """Random scores."""

    def scores(question_id: str, _: str) -> Scores:
        rng = random.Random(f"{SEED} {question_id}")
        return {name: rng.random() for name in passages}

    return scores


SYSTEMS = {"bm25": bm25, "opening": opening, "chargrams": chargrams, "overlap": overlap, "random": chance}


def top_passages(scores: Scores) -> Scores:
    """The top ``DEPTH`` passages with a score above 0; ties in the order of the file."""
    rounded = {name: round(score, DIGITS) for name, score in scores.items()}
    order = sorted(rounded, key=lambda name: -rounded[name])[:DEPTH]
    return {name: rounded[name] for name in order if rounded[name] > 0}


def make(target: Path) -> list[Path]:
    """Write one run for each system into ``target``."""
    passages, questions = (read_texts(SAMPLES / f"{name}.jsonl") for name in ("passages", "questions"))
    written = []
    for tag, system in SYSTEMS.items():
        scorer = system(passages)
        run = {question: top_passages(scorer(question, text)) for question, text in questions.items()}
        write_run(target / f"{tag}.trec", run, tag)
        written.append(target / f"{tag}.trec")
    return written


def main() -> None:
    """Rewrite the runs in place, or into ``--target``."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--target", type=Path, default=SAMPLES, help="folder to write into")
    for path in make(parser.parse_args().target):
        print(path)


if __name__ == "__main__":
    main()
