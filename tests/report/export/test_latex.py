"""LaTeX tables: they compile, and have the required content."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.evidence.base import Evidence
from equipoise.evidence.pairs import Pairs
from equipoise.evidence.ranking import Ranking
from equipoise.report.export import export
from equipoise.report.export.paper_table import GLYPH, LONG, escape_latex
from equipoise.runs.evaluate import evaluate
from equipoise.runs.manifest import Manifest
from equipoise.runs.run_folder import StoredRun, load_run, save_run

needs_tex = pytest.mark.browser("pdflatex")
PREAMBLE = r"\documentclass{article}\usepackage{booktabs,longtable}\begin{document}"


def compile_latex(folder: Path, content: str) -> tuple[int, str]:
    """The exit code of pdfLaTeX, which stops at the first error, and its log."""
    (folder / "paper.tex").write_text(f"{PREAMBLE}\n{content}\n\\end{{document}}\n", encoding="utf-8")
    command = ["pdflatex", "-halt-on-error", "-interaction=nonstopmode", "-draftmode", "paper.tex"]
    completed = subprocess.run(command, cwd=folder, capture_output=True, check=False)
    return completed.returncode, (folder / "paper.log").read_text(errors="replace")


@needs_tex
def test_tables_of_systems_with_hostile_names_compile(make_runs, hostile, tmp_path: Path) -> None:
    names = [f"{name} {number}" for number in range(4) for name in hostile]
    assert len(names) > LONG
    exports = [
        make_runs(hostile[:1], partial=hostile[:1]),
        make_runs(hostile, partial=hostile),
        make_runs(names, partial=names[-2:]),
    ]
    body = "\n".join(export(exported.runs, exported.comparison, "latex") for exported in exports)
    code, log = compile_latex(tmp_path, body)
    assert code == 0, log[-1500:]


@needs_tex
def test_every_character_compiles(tmp_path: Path) -> None:
    characters = [*map(chr, range(0x250)), *map(chr, range(0x2000, 0x2070)), *"αЖ中😀\ufffe\ud800\U0010ffff"]
    lines = [rf"\par {escape_latex(f'a{character}b')}" for character in characters]
    code, log = compile_latex(tmp_path, "\n".join([GLYPH, *lines]))
    assert code == 0, log[-1500:]


@needs_tex
def test_unescaped_text_does_not_compile(tmp_path: Path) -> None:
    assert compile_latex(tmp_path, "R_D")[0] == 1
    assert compile_latex(tmp_path, "日")[0] == 1


@given(st.text())
def test_escaped_text_has_no_special_characters_and_balanced_braces(text: str) -> None:
    unescaped = re.sub(r"\\([{}$&#%_]|text[a-z]+\{\}|eqglyph)", "", escape_latex(text))
    assert not re.search(r"[\\$&#%_~^<>|\"`]", unescaped)
    assert "\n" not in unescaped
    assert "--" not in unescaped
    depth = 0
    for character in unescaped:
        depth += {"{": 1, "}": -1}.get(character, 0)
        assert depth >= 0
    assert depth == 0


@given(st.text(alphabet=st.characters(codec="ascii", categories=["L", "N", "P", "S"])))
def test_escaping_preserves_ascii(text: str) -> None:
    decoded = escape_latex(text)
    for command, character in (
        (r"\textbackslash{}", "\0"),
        (r"\textasciitilde{}", "~"),
        (r"\textasciicircum{}", "^"),
        (r"\textasciigrave{}", "`"),
        (r"\textless{}", "<"),
        (r"\textgreater{}", ">"),
        (r"\textbar{}", "|"),
        ("-{}", "-"),
    ):
        decoded = decoded.replace(command, character)
    decoded = re.sub(r"\{([\[\]*])\}", r"\1", decoded)
    decoded = re.sub(r"\\([{}$&#%_])", r"\1", decoded)
    assert decoded.replace("\0", "\\") == text.replace('"', "''")


def test_the_best_value_is_bold_in_both_directions(make_runs) -> None:
    exported = make_runs(["low", "high"], primary="MR")
    lines = export(exported.runs, exported.comparison, "latex").splitlines()
    assert r"system & MRR $\uparrow$ & MR $\downarrow$ & HR@1 $\uparrow$ \\" in lines
    low = next(line for line in lines if line.startswith("low"))
    high = next(line for line in lines if line.startswith("high"))
    smallest = min(result.result["MR"].value for result in exported.runs)
    assert re.search(rf"\\textbf{{{smallest:.2f}}}\\textsuperscript{{a}}", low.split("&")[2])
    assert "textbf" not in high.split("&")[2]
    assert r"\textsuperscript{b}" in high.split("&")[2]
    assert lines.index(low) < lines.index(high)


def test_the_caption_states_test_correction_n_and_level(make_runs) -> None:
    exported = make_runs(["one", "two", "three"])
    caption = next(
        line for line in export(exported.runs, exported.comparison, "latex").splitlines() if r"\caption" in line
    )
    for expected_text in (
        "on 40 queries, ordered by MRR",
        r"95 \% intervals",
        r"do not differ significantly at the 5 \% level",
        "Paired randomisation test, two-sided, 500 permutations, seed 0",
        "Holm correction for 3 pairs on each metric",
    ):
        assert expected_text in caption


def test_chance_is_below_a_rule_and_intervals_are_below_their_values(make_runs) -> None:
    exported = make_runs(["one", "two"])
    lines = export(exported.runs, exported.comparison, "latex").splitlines()
    row = next(index for index, line in enumerate(lines) if line.startswith(r"\emph{chance}"))
    assert lines[row - 1] == r"\midrule"
    assert "100.5" in lines[row]  # the mean rank by chance among 200 candidates
    interval_line = lines[next(index for index, line in enumerate(lines) if line.startswith("one &")) + 1]
    interval = exported.runs[0].result["MRR"].interval
    assert rf"{{\scriptsize [{interval.low:.3f}, {interval.high:.3f}]}}" in interval_line


def test_one_system_has_no_letters_and_no_bold_value(make_runs) -> None:
    exported = make_runs(["only"])
    text = export(exported.runs, None, "latex")
    assert "textbf" not in text
    assert "textsuperscript" not in text
    assert "share a letter" not in text
    assert "MRR, MR and HR@1 of only on 40 queries." in text


def test_a_partial_run_is_marked_and_explained(make_runs) -> None:
    exported = make_runs(["whole", "part"], partial=["part"])
    text = export(exported.runs, exported.comparison, "latex")
    assert "\npart{*} &" in text
    assert "{*} the run of part is partial: out of time." in text
    assert "whole{*}" not in text


def run_of(evidence: Evidence, metric: str, folder: Path) -> StoredRun:
    """The run of a system called a."""
    result = evaluate(evidence, metric, system="a")
    return load_run(save_run(folder / "run", result, manifest=Manifest("a")))


def test_negative_values_have_a_minus_sign(tmp_path: Path) -> None:
    run = run_of(Pairs.of([1.0, 2.0, 3.0, 4.0], [4.0, 3.0, 1.0, 2.0]), "Spearman", tmp_path)
    row = next(line for line in export([run], None, "latex").splitlines() if line.startswith("a &"))
    assert "$-$0.8" in row


def test_undefined_units_and_chance_bounds_are_explained(tmp_path: Path) -> None:
    truth = {"q1": {"x": 1}, "q2": {"x": 0}, "q3": {"x": 1}}
    text = export([run_of(Ranking.from_runs(truth, {"q1": {"x": 1.0, "y": 0.5}}), "HR@1", tmp_path)], None, "latex")
    assert "1 query without a value is excluded." in text
    assert r"\emph{chance} & $\leq$ 0." in text
    assert "A chance level with an inequality sign is only a bound" in text


def test_a_missing_interval_is_explained(tmp_path: Path) -> None:
    text = export([run_of(Ranking.from_ranks([3], candidates=9), "MRR", tmp_path)], None, "latex")
    assert re.search(r"Without an interval: MRR of a \(.+\)\.", text)
    assert "In brackets" not in text
