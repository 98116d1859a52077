"""The reference of model specs lists every kind of model, every alias and every option."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest

from equipoise.models.backends.rerankers import CROSS_ENCODER_OPTIONS, TOKEN_ENCODER_OPTIONS
from equipoise.models.lexical import BM25_OPTIONS, TFIDF_OPTIONS
from equipoise.models.registry import ALIASES, MODEL_KINDS, SHARED_OPTIONS
from equipoise.models.rerank import RERANKERS

PAGE = (Path(__file__).parents[1] / "docs" / "reference" / "model-specs.md").read_text(encoding="utf-8")
NAMED = set(re.findall(r"`([\w-]+)`", PAGE))
OPTIONS = {
    kind.kind: import_module(f"equipoise.models.backends.{kind.module}").OPTIONS
    for kind in MODEL_KINDS.values()
    if kind.module
} | {
    "every model": SHARED_OPTIONS,
    "bm25": BM25_OPTIONS,
    "tfidf": TFIDF_OPTIONS,
    "cross-encoder": CROSS_ENCODER_OPTIONS,
    "maxsim": TOKEN_ENCODER_OPTIONS,
}


@pytest.mark.parametrize("kind", OPTIONS)
def test_every_option_is_documented(kind: str) -> None:
    assert set(OPTIONS[kind]) - NAMED == set()


def test_every_kind_is_documented() -> None:
    kinds = set(re.findall(r"`([\w-]+):", PAGE))
    assert {*MODEL_KINDS, *RERANKERS} - kinds == set()


def test_every_alias_is_documented() -> None:
    assert set(ALIASES) - NAMED == set()
