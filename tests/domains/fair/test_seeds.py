"""The verdict is stable over seeds of splits and resamples, on real documents in two languages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from equipoise import run_fair_comparison
from equipoise.domains.fair.config import FairConfig
from equipoise.domains.fair.draft import draft_questions
from equipoise.domains.fair.questions import timekeeping

MODELS = ["bm25:", "tfidf:", "hash"]
CONFIG = FairConfig(chunk_sizes=[100, 200], overlaps=[20], top_ks=[2, 4])
GERMAN = sorted(Path("/usr/share/vim").glob("vim*/tutor/tutor.de.utf-8"))
"""The German tutorial of the editor Vim: 5,400 words."""


def with_drafts(text: str) -> tuple[str, Sequence[Any]]:
    """The document with draft questions that are marked as edited."""
    drafts = draft_questions(text, 120)
    return text, [replace(question, draft=False) for question in drafts.questions]


def python_reference() -> tuple[str, Sequence[Any]]:
    """The longest chapters of the Python reference of the interpreter: 16,000 words."""
    topics = pytest.importorskip("pydoc_data.topics").topics
    return with_drafts("\n\n".join(f"# {name}\n\n{topics[name]}" for name in ("specialnames", "compound")))


def vim_tutorial() -> tuple[str, Sequence[Any]]:
    if not GERMAN:
        pytest.skip("the German tutorial of Vim is not installed")
    return with_drafts(GERMAN[-1].read_text(encoding="utf-8"))


@pytest.mark.slow
@pytest.mark.parametrize("source", [timekeeping, python_reference, vim_tutorial])
def test_ten_seeds_give_the_same_verdict_nine_times(source: Callable[[], tuple[str, Sequence[Any]]]) -> None:
    text, questions = source()
    assert len(questions) >= 120
    verdicts: Counter[tuple[str | None, frozenset[str]]] = Counter()
    for seed in range(10):
        config = replace(CONFIG, stats=replace(CONFIG.stats, seed=seed))
        comparison = run_fair_comparison(MODELS, text, questions, config=config).comparison
        assert comparison is not None
        verdicts[comparison.leader, frozenset(comparison.tied_with_leader)] += 1
    assert max(verdicts.values()) >= 9, verdicts
