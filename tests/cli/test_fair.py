"""``eq fair compare`` from the command line: the report, the files and the exit statuses."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest
from click.shell_completion import BashComplete

from equipoise.cli.explain import find_explanations
from equipoise.cli.main import cli
from equipoise.domains.fair.cli import OPTION_DETAILS
from equipoise.domains.fair.cli import fair as fair_group
from equipoise.domains.fair.config import FAIR_STATS
from equipoise.domains.fair.results import EMBEDDING_EVAL_KEYS
from equipoise.metrics.parser import catalogue_with
from equipoise.models.embedder import embedder
from equipoise.runs.progress_file import report_progress
from fair_sample import chunks_of, document, pairs

GRID = ["--chunk-sizes", "16", "24", "--overlaps", "0", "4", "--top-ks", "1", "3", "--tokenizer", "words"]

Run = Callable[..., Any]


@pytest.fixture
def fair(eq: Run, folder: Path) -> Run:
    """The command on a small document, with further arguments."""
    text = document()
    (folder / "document.md").write_text(text)
    (folder / "fixture.json").write_text(json.dumps(pairs(text)))

    def run(*arguments: str, doc: str = "document.md", qa: str = "fixture.json", **options: Any) -> Any:
        return eq("fair", "compare", "--doc", doc, "--qa", qa, *arguments, **options)

    return run


def test_the_held_out_table_comes_first_and_the_optimistic_one_is_labelled(fair: Run) -> None:
    result = fair("--models", "bm25:", "hash", *GRID)
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert "30 questions" in lines[0]
    assert next(line for line in lines if line.startswith("rank")).split()[:3] == ["rank", "model", "accuracy"]
    assert "EQ105" in result.stdout
    assert "unit" not in result.stdout
    assert not re.search(r"\b0\.\d", re.split("EQ| p [=<]", result.stdout)[0]), "accuracies are in percent"
    assert len(lines) <= 15
    verbose = fair("--models", "bm25:", "hash", *GRID, "-v").stdout
    positions = [verbose.index(part) for part in ("Held-out accuracy on 30", "(optimistic)", "Accuracy by category")]
    assert positions == sorted(positions)


def test_lists_are_accepted_with_spaces_commas_or_repetition(fair: Run) -> None:
    with_spaces = fair("--models", "bm25:", "hash", *GRID, "--json")
    with_commas = fair(
        "--models", "bm25:", "--models", "hash", "--chunk-sizes", "16,24", "--overlaps=0,4",
        "--top-ks", "1", "--top-ks", "3", "--tokenizer", "words", "--json",
    )  # fmt: skip
    first, second = (json.loads(result.stdout) for result in (with_spaces, with_commas))
    for content in (first, second):
        for model in content["models"]:
            model.pop("optimization_time_seconds")
            model["costs"].pop("documents_per_second")
    assert first == second
    assert first["settings"]["chunk_sizes"] == [16, 24]


def test_statistics_options_affect_intervals_and_tests(fair: Run) -> None:
    arguments = ("--models", "bm25:", "hash", *GRID, "--n-resamples", "200", "--json")
    wide, narrow = (json.loads(fair(*arguments, "--confidence-level", level).stdout) for level in ("0.95", "0.8"))
    for wide_model, narrow_model in zip(wide["models"], narrow["models"], strict=True):
        for kind in ("", "nested_"):
            assert wide_model[f"{kind}ci_lower"] < narrow_model[f"{kind}ci_lower"] <= narrow_model[f"{kind}ci_upper"]
    assert fair(*arguments, "--test", "t", "--correction", "none").exit_code == 0


@pytest.mark.slow
def test_a_repeated_command_resumes_from_the_output_folder(fair: Run, folder: Path, eq: Run) -> None:
    first = fair("--models", "bm25:", *GRID, "-o", "results")
    assert not (folder / "results" / "visualizations").exists()
    second = fair("--models", "bm25:", "hash", *GRID, "-o", "results", "--charts")
    assert first.exit_code == second.exit_code == 0
    assert "bm25: loaded from results, not computed again" in second.stderr
    assert "hash: read back" not in second.stderr
    assert "eq report results." in second.stdout
    assert (folder / "results" / "visualizations" / "leaderboard.png").is_file()
    compared = eq("compare", "results/runs/bm25", "results/runs/hash")
    assert compared.exit_code == 0
    assert "held-out accuracy on 30 questions" in compared.stdout
    used = {"n_resamples": FAIR_STATS.n_resamples, "seed": 0}
    recorded = json.loads(eq("compare", "results/runs/bm25", "results/runs/hash", "--json").stdout)
    assert {name: recorded[name] for name in used} == used, "the settings of the runs"
    given = json.loads(eq("compare", "results/runs/bm25", "results/runs/hash", "--n-resamples", "500", "--json").stdout)
    assert given["n_resamples"] == 500
    verbose = fair("--models", "bm25:", "hash", *GRID, "-o", "results", "-v").stdout
    assert eq("report", "results", "-o", "page.html", "--no-charts").exit_code == 0
    page = html.unescape((folder / "page.html").read_text())
    assert page.split('<p class="verdict">')[1].startswith(verbose.split("\n\n")[0].replace("\n", " "))
    assert "accuracy (%)" in page
    details = (folder / "page.html").read_text().split('<section id="details"')[1].split("</section>")[0]
    titles = re.findall("<h3>(.*?)</h3>", details)
    assert "Best accuracy by number of retrieved tokens (optimistic)" in titles
    assert all(html.unescape(title) in verbose for title in titles)
    assert "Accuracy by category and difficulty" not in titles, "the page has its own table of slices"


@pytest.mark.slow
def test_runs_of_another_grid_in_the_folder_are_reported(fair: Run) -> None:
    fair("--models", "bm25:", "tfidf:", *GRID, "-o", "mix")
    small = ["--chunk-sizes", "8", "--overlaps", "0", "--top-ks", "1", "--tokenizer", "words"]
    result = fair("--models", "hash", *small, "-o", "mix")
    assert "bm25, tfidf in mix are not part of this comparison (computed with other options)" in result.stderr
    replaced = fair("--models", "bm25:", *small, "-o", "mix")
    assert replaced.exit_code == 2, "the run of bm25 with the first grid would be lost"
    assert "error[E500]" in replaced.stderr
    same = fair("--models", "bm25:", "hash", *small, "-o", "alone")
    assert "not part of this comparison" not in same.stderr


def test_the_report_of_an_interrupted_comparison_says_how_to_resume(folder: Path, eq: Run) -> None:
    with pytest.raises(KeyboardInterrupt), report_progress(folder / "out", "fair comparison", 9, command=["eq", "x"]):
        raise KeyboardInterrupt
    result = eq("report", "out")
    assert result.exit_code == 2
    assert "repeat it to resume: eq x" in result.stderr


@pytest.mark.slow
def test_unequal_tuning_is_a_finding(fair: Run, eq: Run) -> None:
    """EQ203 from the command line."""
    fair("--models", "bm25:", "hash", *GRID, "-o", "one")
    fair("--models", "tfidf:", *GRID[:-2], "--tokenizer", "words", "--top-ks", "9", "-o", "two")
    unequal = eq("compare", "one/runs/bm25", "two/runs/tfidf", env={"COLUMNS": "100"})
    assert unequal.exit_code == 0
    assert "EQ203" in unequal.stdout
    assert "8 trials" in eq("compare", "one/runs/bm25", "two/runs/tfidf", "-v").stdout
    assert eq("compare", "one/runs/bm25", "two/runs/tfidf", "--fail-on", "issue").exit_code == 1
    assert "not tuned on equal terms (EQ203)" in eq("report", "one", "two", "-o", "page.html").stdout
    equal = eq("compare", "one/runs/bm25", "one/runs/hash")
    assert "EQ203" not in equal.stdout
    assert "bm25" in equal.stdout


@pytest.mark.slow
def test_runs_with_another_matcher_or_document_are_not_comparable(fair: Run, eq: Run, folder: Path) -> None:
    fair("--models", "bm25:", *GRID, "-o", "one")
    fair("--models", "hash", *GRID, "--matcher", "source", "-o", "two")
    (folder / "longer.md").write_text(document() + "\nOne more sentence.\n")
    fair("--models", "tfidf:", *GRID, "-o", "three", doc="longer.md")
    rule = eq("compare", "one/runs/bm25", "two/runs/hash")
    assert rule.exit_code == 2
    assert "bm25 was measured with the matcher words and hash with embedding-eval" in rule.stderr
    other = eq("compare", "one/runs/bm25", "three/runs/tfidf")
    assert other.exit_code == 2
    assert "were not measured on the same document" in other.stderr


def test_one_fold_gives_optimistic_scores_and_a_finding(fair: Run, eq: Run, folder: Path) -> None:
    """EQ201 from the command line."""
    result = fair("--models", "bm25:", "hash", *GRID, "--n-folds", "1", "-o", "results")
    assert result.exit_code == 0, result.output
    assert "These scores are optimistic" in result.stdout
    assert "EQ201" in result.stdout
    assert "EQ201" in eq("compare", "results/runs/bm25", "results/runs/hash").stdout
    assert eq("report", "results", "-o", "page.html").exit_code == 0
    assert "EQ201" in (folder / "page.html").read_text()
    assert "EQ201" not in fair("--models", "bm25:", "hash", *GRID).stdout


def test_a_narrow_terminal_keeps_the_main_columns(fair: Run) -> None:
    lines = fair("--models", "bm25:", "hash", "tfidf:", *GRID, env={"COLUMNS": "80"}).stdout.splitlines()
    table = next(line for line in lines if line.startswith("rank"))
    for column in ("rank", "model", "accuracy", "95 % interval", "vs. best", "chunks", "memory"):
        assert column in table
    assert max(map(len, lines)) <= 80


@pytest.mark.slow
def test_model_names_have_no_double_colons(fair: Run) -> None:
    result = fair("--models", "bm25:", "tfidf:", *GRID, "-v", "-o", "results")
    resumed = fair("--models", "bm25:", "tfidf:", *GRID, "-v", "-o", "results")
    assert "::" not in result.output + resumed.output


def test_a_json_file_has_the_documented_keys(fair: Run, folder: Path) -> None:
    result = fair("--models", "bm25:", "hash", *GRID, "--output", "results.json", "--quiet")
    assert result.exit_code == 0
    assert [tuple(model) for model in json.loads((folder / "results.json").read_text())] == [EMBEDDING_EVAL_KEYS] * 2


def test_a_budget_and_all_chunkers(fair: Run) -> None:
    result = fair(
        *("--models", "bm25:", "hash", *GRID, "--token-budget", "40", "-v"),
        *("--chunkers", "fixed", "section", "sentence"),
    )
    assert result.exit_code == 0, result.output
    assert "within 40 retrieved tokens" in result.stdout


def test_quiet_prints_the_decision_and_the_table_only(fair: Run) -> None:
    _decision, blank, *table = fair("--models", "bm25:", "hash", *GRID, "-q").stdout.splitlines()
    assert (blank, len(table)) == ("", 4)
    assert "Findings" in fair("--models", "bm25:", "hash", *GRID, "-v").stdout


def test_verbose_shows_the_selection_of_each_fold(fair: Run) -> None:
    assert "Configurations selected by nested cross-validation" in fair("--models", "bm25:", "hash", *GRID, "-v").stdout


def test_fail_on_issue_fails_on_issues(fair: Run) -> None:
    result = fair("--models", "bm25:", "hash", *GRID, "--fail-on", "issue")
    assert result.exit_code == 1
    assert "--fail-on issue: EQ105" in result.stderr


def test_a_model_that_cannot_be_loaded_does_not_stop_the_others(fair: Run, folder: Path) -> None:
    result = fair("--models", "bm25:", "vectors:missing.npz", "hash", *GRID, "-o", "results")
    assert result.exit_code == 3
    assert "1 of 3 requested models failed: vectors:missing.npz (" in result.stdout.splitlines()[1]
    assert "missing.npz" in result.stderr
    assert "compute only what is missing" in result.stderr
    assert sorted(path.name for path in (folder / "results" / "runs").iterdir()) == ["bm25", "hash"]


def write_vectors(folder: Path, *chunkings: tuple[int, int]) -> str:
    """The vectors of ``hash`` for the questions and for the chunks of these sizes and overlaps."""
    text = document()
    chunks = [chunk.text for size, overlap in chunkings for chunk in chunks_of(text, size, overlap)]
    texts = list(dict.fromkeys([*chunks, *(pair["question"] for pair in pairs(text))]))
    with embedder("hash") as model:
        np.savez(folder / "custom.npz", vectors=model.embed(texts), texts=np.array(texts))
    return "vectors:custom.npz"


def test_a_file_of_vectors_needs_only_the_chunks_of_the_grid(fair: Run, folder: Path) -> None:
    spec = write_vectors(folder, (16, 0), (16, 4), (24, 0), (24, 4))
    result = fair("--models", spec, "hash", "bm25:", *GRID, "-o", "results", "--json")
    assert result.exit_code == 0, result.stderr
    content = json.loads(result.stdout, parse_constant=pytest.fail)
    models = {model["model_spec"]: model for model in content["models"]}
    vectors_model, hash_model = models[spec], models["hash"]
    assert vectors_model["nested_accuracy"] == hash_model["nested_accuracy"]
    assert vectors_model["all_results"] == hash_model["all_results"]
    assert vectors_model["baseline_accuracy"] is None
    assert vectors_model["baseline_passed"] is None
    assert hash_model["baseline_accuracy"] is not None
    note = f"The default baseline is left out for {spec}: its chunks have no vectors"
    assert note in content["notes"]
    resumed = fair("--models", spec, "hash", "bm25:", *GRID, "-o", "results", "-v")
    assert resumed.exit_code == 0, resumed.stderr
    assert note in resumed.stdout
    assert "Gain from tuning" not in resumed.stdout, "the default baseline is not in the grid"


def test_a_file_of_vectors_without_a_chunk_of_the_grid_is_an_error(fair: Run, folder: Path) -> None:
    spec = write_vectors(folder, (16, 0), (16, 4), (24, 0))
    result = fair("--models", spec, "bm25:", *GRID)
    assert result.exit_code == 3
    assert "custom.npz holds no vector for" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--models", "minilmm", "bm25:"], "E300"),
        (["--models", "bm25:", "--chunk-sizes", "8", "--overlaps", "8"], "E310"),
        (["--models", "bm25:", "--chunk-sizes", "many"], "E100"),
        (["--models", "bm25:", "--matcher", "wrods"], "E300"),
        (["--models", "bm25:", "--chunkers", "fixed", "sections"], "E300"),
        (["--models", "bm25:", "--token-budget", "0"], "E100"),
        (["--models", "bm25:", "-o", "document.md"], "E500"),
        ([], "E100"),
    ],
)
def test_invalid_options_are_errors_with_exit_status_2(fair: Run, arguments: list[str], code: str) -> None:
    result = fair(*arguments)
    assert result.exit_code == 2
    assert f"error[{code}]" in result.stderr
    assert result.stdout == ""


def test_an_empty_document_and_a_missing_fixture_are_bad_input(fair: Run, folder: Path) -> None:
    (folder / "empty.txt").write_text("\n")
    assert fair("--models", "bm25:", doc="empty.txt").exit_code == 2
    assert fair("--models", "bm25:", qa="nothing.json").exit_code == 2


def test_absent_answers_are_an_error_with_hints(fair: Run, folder: Path) -> None:
    questions = [*pairs(document()), {"question": "Where?", "answer": "nowhere at all"}]
    (folder / "lost.json").write_text(json.dumps(questions))
    default = fair("--models", "bm25:", *GRID, qa="lost.json")
    assert default.exit_code == 2
    assert "nowhere at all" in default.stderr
    assert "--unanswerable zero" in default.stderr
    assert fair("--models", "bm25:", *GRID, "--unanswerable", "skip", qa="lost.json").exit_code == 0


def test_models_are_completed_after_the_first_one() -> None:
    shell = BashComplete(cli, {}, "eq", "_EQ_COMPLETE")
    completions = shell.get_completions(["fair", "compare", "--models", "minilm"], "wordl")
    assert [item.value for item in completions] == ["wordllama"]


def test_the_group_lists_its_commands(eq: Run) -> None:
    result = eq("fair")
    assert result.exit_code == 0
    assert all(name in result.stdout for name in ("compare", "validate"))


def test_printed_findings_are_on_the_page_before_the_tables(fair: Run, eq: Run, folder: Path) -> None:
    """EQ102 (an answer is cut), EQ105 (few questions), EQ108 (most of the document is retrieved)."""
    grid = ["--chunk-sizes", "8", "--overlaps", "0", "--top-ks", "60", "--tokenizer", "words"]
    printed = json.loads(fair("--models", "hash", "hash,dim=16", *grid, "-o", "results", "--json").stdout)
    codes = {finding["code"] for finding in printed["findings"]}
    assert codes >= {"EQ102", "EQ105", "EQ108"}
    for runs in (["results"], ["results/runs/hash"]):
        assert eq("report", *runs, "-o", "page.html").exit_code == 0
        page = (folder / "page.html").read_text()
        shared = {"EQ102", "EQ105", "EQ108"} if len(runs[0]) > len("results") else codes
        assert [code for code in shared if code not in page] == []
        assert page.index('class="verdict"') < page.index("EQ105") < page.index('id="leaderboard"')


def test_notes_on_the_evaluation_are_on_the_page(fair: Run, eq: Run, folder: Path) -> None:
    questions = [*pairs(document()), {"question": "Where?", "answer": "nowhere at all"}]
    (folder / "lost.json").write_text(json.dumps(questions))
    fair("--models", "bm25:", "hash", *GRID, "--unanswerable", "skip", "-o", "results", qa="lost.json")
    assert eq("report", "results", "-o", "page.html").exit_code == 0
    assert "1 question was skipped" in (folder / "page.html").read_text()


def fair_options() -> dict[str, set[str]]:
    """The options that each command of ``eq fair`` declares."""
    context = click.Context(fair_group)
    commands = {name: fair_group.get_command(context, name) for name in fair_group.list_commands(context)}
    return {
        name: {opt for option in command.params if isinstance(option, click.Option) for opt in option.opts}
        for name, command in commands.items()
        if command is not None
    }


def test_every_option_is_explained_with_its_commands() -> None:
    for command, names in fair_options().items():
        for name in names:
            pages = find_explanations(name, catalogue_with(()))
            assert any(f"eq fair {command}" in page.facts["commands"] and page.text for page in pages), (command, name)


def test_option_details_refer_to_existing_options() -> None:
    declared = fair_options()
    assert {name: set(details) - declared[name] for name, details in OPTION_DETAILS.items()} == {
        name: set() for name in OPTION_DETAILS
    }


def test_options_are_explained_by_name(eq: Run) -> None:
    result = eq("explain", "--token-budget")
    assert result.exit_code == 0
    assert result.stdout.startswith("--token-budget N")
    assert eq("explain", "--token-budgt").exit_code == 2
