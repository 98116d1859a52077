"""Documented names of commands and options, including aliases that the help does not show."""

from __future__ import annotations

import json

import click
import pytest

from equipoise.cli.main import cli

BENCHMARK = ("phenotypes", "benchmark")
DOCUMENTED_COMMANDS = [
    (*BENCHMARK, "run", "--model-name", "hash", "--enable-reranker", "--test-file", "none.json", "--output-dir", "out"),
    (*BENCHMARK, "run", "--gpu", "--model-name", "hash", "--test-file", "none.json"),
    (*BENCHMARK, "compare-vectors", "--test-file", "none.json", "--strategies", "label_only", "--no-single"),
    (*BENCHMARK, "extraction", "run", "none", "--dataset", "GeneReviews", "--no-bootstrap-ci", "--model", "hash"),
    (*BENCHMARK, "extraction", "compare", "none/a.json", "none/b.json"),
    ("phenotypes", "index", "build", "--multi-vector", "--model-name", "tfidf:"),
    ("phenotypes", "query", "", "--multi-vector", "--aggregation-strategy", "all_max", "--num-results", "3"),
    ("phenotypes", "extract", "none.txt", "--num-results", "3", "--chunk-threshold", "0.5", "--top-term-only"),
    ("phenotypes", "extraction", "run", "none", "--num-results", "3", "--min-confidence", "0.1"),
    ("fair", "compare", "--doc", "none.txt", "--qa", "none.json", "--models", "hash", "--output", "out"),
    ("fair", "compare", "--doc", "none.txt", "--qa", "none.json", "--models", "hash", "--top-ks", "5", "10"),
    ("fair", "validate", "--qa", "none.json", "--doc", "none.txt", "--min-questions", "5", "--min-multihop", "5"),
    ("fair", "validate", "--qa", "none.json", "--min-hard", "5"),
]
"""Each command fails for a reason other than an unknown name: a missing file, or an empty input."""


@pytest.mark.parametrize("arguments", DOCUMENTED_COMMANDS, ids=" ".join)
def test_documented_names_are_accepted(eq, arguments: tuple[str, ...]) -> None:
    result = eq(*arguments, "--json")
    error = json.loads(result.stderr.splitlines()[-1])["error"]
    assert result.exit_code in (2, 4)
    assert error["code"] not in ("E100", "E300"), error


@pytest.mark.parametrize(
    ("path", "alias", "shown"),
    [
        ((*BENCHMARK, "run"), "--model-name", "--models"),
        ((*BENCHMARK, "run"), "--test-file", "--data"),
        ((*BENCHMARK, "run"), "--output-dir", "--output"),
        ((*BENCHMARK, "run"), "--gpu", "--device"),
        (("phenotypes", "query"), "--num-results", "--top-k"),
        (("fair", "compare"), "--top-ks", "--top-k"),
    ],
)
def test_the_help_shows_one_name_per_option(eq, path: tuple[str, ...], alias: str, shown: str) -> None:
    options = eq(*path, "--help").stdout.partition("Options:")[2]
    assert shown in options
    assert alias not in options.split()


def test_the_help_lists_a_command_only_in_its_own_group(eq) -> None:
    assert "extraction" in eq("phenotypes", "--help").stdout
    assert "extraction" not in eq(*BENCHMARK, "--help").stdout


def test_several_models_are_accepted_after_one_or_repeated_options() -> None:
    command: click.Command = cli
    for name in (*BENCHMARK, "run"):
        assert isinstance(command, click.Group)
        subcommand = command.get_command(click.Context(command), name)
        assert subcommand is not None
        command = subcommand
    for arguments in (
        ["--models", "a", "b"],
        ["--model-name", "a", "--model-name", "b"],
        ["--model", "a", "--models", "b"],
    ):
        assert command.make_context("run", arguments).params["models"] == ("a", "b")
