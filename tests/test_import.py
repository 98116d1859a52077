"""Modules loaded by imports, and the public names."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import equipoise
from loading import script

pytestmark = pytest.mark.slow

ENGINES = {"numpy", "scipy", "sklearn", "torch", "networkx", "click", "rich", "altair", "pandas", "numba"}

ROOT = Path(__file__).parents[1]

DOMAINS = ("accounts", "bench", "concepts", "fair", "phenotypes", "places")

LAZY_MODULES = ("equipoise", *(f"equipoise.{name}" for name in DOMAINS), "equipoise.shards")

DOCUMENTED_NAMES = [
    (module, name)
    for module, names in {
        "equipoise": "BaseMetric BinaryEvaluator optimize_model run_fair_comparison validate_fixture",
        "equipoise.accounts": "AccountEmbedderTester",
        "equipoise.fair": "BinaryEvaluator FixedSizeChunker InMemoryVectorStore OpenAIEmbedding OptimizationResult "
        "SentenceTransformerEmbedding optimize_model run_fair_comparison validate_fixture",
        "equipoise.phenotypes": "BaseMetric",
        "equipoise.places": "calculate_correct_total_prediction get_mrr get_ndcg get_performance_dict top_k_accuracy",
    }.items()
    for name in names.split()
]

FIRST_SCORE = """
from equipoise import Ranking, evaluate
qrels, run = {"q1": {"a": 1}, "q2": {"b": 1}}, {"q1": {"a": 0.9, "x": 0.1}, "q2": {"x": 0.9, "b": 0.2}}
ranking = Ranking.from_runs(qrels, run)
evaluate(ranking, ["nDCG@10", "MRR", "HR@{1,3,5,10}"])
"""


def modules_after(code: str) -> set[str]:
    """The modules that a new interpreter has loaded after running some code."""
    source = Path(equipoise.__file__).parents[1]
    completed = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport json, sys\nprint(json.dumps(sorted(sys.modules)))"],
        env={**os.environ, "PYTHONPATH": str(source), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    return set(json.loads(completed.stdout.splitlines()[-1]))


def test_importing_the_package_loads_neither_numpy_nor_an_engine() -> None:
    assert not modules_after("import equipoise") & ENGINES


def test_scoring_a_ranking_loads_no_heavy_package() -> None:
    loaded = modules_after(FIRST_SCORE)
    assert "numpy" in loaded
    assert not loaded & {"scipy.stats", "sklearn", "torch", "networkx", "click", "rich", "altair"}


def test_one_evaluate_loads_at_most_60_modules_and_no_application() -> None:
    loaded = {name for name in modules_after(FIRST_SCORE) if name.partition(".")[0] == "equipoise"}
    assert len(loaded) <= 60, sorted(loaded)
    outside = ("domains", "audit", "reproduce", "view", "cli", "report", "models", "geometry")
    assert not [name for name in loaded if name.split(".")[1:2] and name.split(".")[1] in outside]


@pytest.mark.parametrize("module", LAZY_MODULES)
def test_importing_a_lazy_module_loads_neither_numpy_nor_an_engine(module: str) -> None:
    assert not modules_after(f"import {module}") & ENGINES


@pytest.mark.parametrize("module", LAZY_MODULES)
def test_every_public_name_is_defined_and_listed(module: str) -> None:
    lazy = import_module(module)
    for name in lazy.__all__:
        assert getattr(lazy, name) is not None
    assert lazy.__all__ == sorted(lazy.PUBLIC_NAMES) == dir(lazy)


@pytest.mark.parametrize("module", LAZY_MODULES)
def test_an_unknown_name_of_a_module_is_an_attribute_error(module: str) -> None:
    with pytest.raises(AttributeError, match=f"module '{module}' has no attribute 'nothing'"):
        import_module(module).nothing  # noqa: B018


@pytest.mark.parametrize(("module", "name"), DOCUMENTED_NAMES)
def test_documented_names_are_importable(module: str, name: str) -> None:
    assert getattr(import_module(module), name).__name__ == name


def test_a_module_is_an_attribute_of_the_package() -> None:
    from equipoise import fair

    assert equipoise.fair is fair
    assert equipoise.fair.run_fair_comparison is equipoise.run_fair_comparison


def test_the_stubs_for_type_checkers_list_the_public_names() -> None:
    # When a table PUBLIC_NAMES has changed: python scripts/write_stubs.py
    assert script("write_stubs").main(["--check"]) == 0


def test_no_page_of_the_documentation_imports_from_a_private_path() -> None:
    allowed = {"equipoise", *LAZY_MODULES}
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    private = [
        f"{page.name}: {module}"
        for page in pages
        for module in re.findall(r"^ *(?:from|import) (equipoise[\w.]*)", page.read_text("utf-8"), flags=re.MULTILINE)
        if module not in allowed
    ]
    assert private == []


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Rankings'"):
        equipoise.Rankings  # noqa: B018


def test_the_geometry_package_is_not_shadowed() -> None:
    from equipoise import geometry

    assert geometry.__name__ == "equipoise.geometry"


def test_the_example_of_the_introduction_works_with_files(tmp_path: Path) -> None:
    (tmp_path / "truth.qrels").write_text("q1 0 a 1\nq2 0 b 1\n")
    (tmp_path / "run.trec").write_text("q1 Q0 a 1 0.9 tag\nq2 Q0 x 1 0.9 tag\nq2 Q0 b 2 0.2 tag\n")
    ranking = equipoise.Ranking.from_runs(tmp_path / "truth.qrels", tmp_path / "run.trec")
    result = equipoise.evaluate(ranking, ["nDCG@10", "MRR", "HR@{1,3,5,10}"])
    assert result["MRR"].value == 0.75
    assert result.names == ("nDCG@10", "MRR", "HR@1", "HR@3", "HR@5", "HR@10")
