"""The reference of model specs lists every kind of model, every alias and every option."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest

from equipoise.models.backends.precomputed import COLUMN_NAMES, KEY_NAMES
from equipoise.models.backends.rerankers import CROSS_ENCODER_OPTIONS, TOKEN_ENCODER_OPTIONS
from equipoise.models.lexical import BM25_OPTIONS, TFIDF_OPTIONS
from equipoise.models.registry import ALIASES, MODEL_KINDS, SHARED_OPTIONS
from equipoise.models.rerank import RERANKERS

PAGE = (Path(__file__).parents[1] / "docs" / "reference" / "model-specs.md").read_text(encoding="utf-8")
OPTIONS = {
    kind.kind: import_module(f"equipoise.models.backends.{kind.module}").OPTIONS
    for kind in MODEL_KINDS.values()
    if kind.module
} | {"bm25": BM25_OPTIONS, "tfidf": TFIDF_OPTIONS}
RERANKER_OPTIONS = {"cross-encoder": CROSS_ENCODER_OPTIONS, "maxsim": TOKEN_ENCODER_OPTIONS}


def section(title: str) -> str:
    """The part of the page under a heading."""
    return PAGE.split(f"\n## {title}\n")[1].split("\n## ")[0]


def names(text: str) -> set[str]:
    """All words in backticks."""
    return set(re.findall(r"`([\w-]+)`", text))


def options_of(kind: str) -> str:
    """The part of the page about the options of a kind, which starts with the kinds in bold."""
    blocks = re.split(r"^(?=\*\*`)", section("Options by kind"), flags=re.MULTILINE)
    return next(block for block in blocks if f"**`{kind}:`**" in block)


@pytest.mark.parametrize("kind", OPTIONS)
def test_every_option_is_documented_for_its_kind(kind: str) -> None:
    assert set(OPTIONS[kind]) - names(options_of(kind)) == set()


def test_every_shared_option_is_documented() -> None:
    assert {*SHARED_OPTIONS, "geometry", "store"} - names(section("Options of every embedding model")) == set()


@pytest.mark.parametrize("kind", RERANKER_OPTIONS)
def test_every_option_of_a_reranker_is_documented(kind: str) -> None:
    row = next(line for line in section("Rerankers").splitlines() if line.startswith(f"| `{kind}:"))
    assert set(RERANKER_OPTIONS[kind]) - names(row) == set()


def test_every_default_name_of_keys_and_vectors_is_documented() -> None:
    assert {*KEY_NAMES, *COLUMN_NAMES} - names(options_of("vectors")) == set()


def test_every_kind_is_documented() -> None:
    kinds = set(re.findall(r"`([\w-]+):", PAGE))
    assert {*MODEL_KINDS, *RERANKERS} - kinds == set()


def test_every_alias_is_documented() -> None:
    assert set(ALIASES) - names(section("Kinds")) == set()
