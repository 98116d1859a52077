"""What the import of the package costs, and what a user finds at its top."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import equipoise

pytestmark = pytest.mark.slow

ENGINES = {"numpy", "scipy", "sklearn", "torch", "networkx", "click", "rich", "altair", "pandas", "numba"}

FIRST_SCORE = """
from equipoise import Ranking, evaluate
qrels, run = {"q1": {"a": 1}, "q2": {"b": 1}}, {"q1": {"a": 0.9, "x": 0.1}, "q2": {"x": 0.9, "b": 0.2}}
ranking = Ranking.from_runs(qrels, run)
evaluate(ranking, ["nDCG@10", "MRR", "HR@{1,3,5,10}"])
"""


def modules_after(code: str) -> set[str]:
    """The modules that a fresh interpreter has loaded after running some code."""
    source = Path(equipoise.__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport json, sys\nprint(json.dumps(sorted(sys.modules)))"],
        env={**os.environ, "PYTHONPATH": str(source), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_the_import_loads_no_engine_and_not_even_numpy() -> None:
    assert not modules_after("import equipoise") & ENGINES


def test_a_first_ranking_is_scored_without_the_heavy_engines() -> None:
    loaded = modules_after(FIRST_SCORE)
    assert "numpy" in loaded
    assert not loaded & {"scipy.stats", "sklearn", "torch", "networkx", "click", "rich", "altair"}


def test_one_evaluate_loads_at_most_60_modules_and_no_application() -> None:
    loaded = {name for name in modules_after(FIRST_SCORE) if name.partition(".")[0] == "equipoise"}
    assert len(loaded) <= 60, sorted(loaded)
    outside = ("domains", "audit", "reproduce", "view", "cli", "report", "models", "geometry")
    assert not [name for name in loaded if name.split(".")[1:2] and name.split(".")[1] in outside]


def test_every_public_name_is_there_and_listed() -> None:
    for name in equipoise.__all__:
        assert getattr(equipoise, name) is not None
    assert set(equipoise.__all__) <= set(dir(equipoise))


def test_every_public_name_has_a_home_and_every_home_is_public() -> None:
    assert set(equipoise._HOMES) | {"__version__"} == set(equipoise.__all__)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Rankings'"):
        equipoise.Rankings  # noqa: B018


def test_the_geometry_package_is_not_shadowed() -> None:
    from equipoise import geometry

    assert geometry.geometry("lorentz").name == "lorentz"


def test_the_three_lines_of_the_introduction_work_on_files_too(tmp_path: Path) -> None:
    (tmp_path / "truth.qrels").write_text("q1 0 a 1\nq2 0 b 1\n")
    (tmp_path / "run.trec").write_text("q1 Q0 a 1 0.9 tag\nq2 Q0 x 1 0.9 tag\nq2 Q0 b 2 0.2 tag\n")
    ranking = equipoise.Ranking.from_runs(tmp_path / "truth.qrels", tmp_path / "run.trec")
    result = equipoise.evaluate(ranking, ["nDCG@10", "MRR", "HR@{1,3,5,10}"])
    assert result["MRR"].value == 0.75
    assert result.names == ("nDCG@10", "MRR", "HR@1", "HR@3", "HR@5", "HR@10")
