"""Command and option names of the documents that the applications come from. They work, shown in the help or not."""

from __future__ import annotations

import json

import click
import pytest

from equipoise.cli.main import cli

BENCHMARK = ("phenotypes", "benchmark")
PROMISED = [
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
"""Each command fails for another reason than its names: a missing file, or nothing to do."""


@pytest.mark.parametrize("words", PROMISED, ids=" ".join)
def test_a_promised_name_is_accepted(eq, words: tuple[str, ...]) -> None:
    done = eq(*words, "--json")
    error = json.loads(done.stderr.splitlines()[-1])["error"]
    assert done.exit_code in (2, 4)
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
def test_the_help_shows_one_name(eq, path: tuple[str, ...], alias: str, shown: str) -> None:
    options = eq(*path, "--help").stdout.partition("Options:")[2]
    assert shown in options
    assert alias not in options.split()


def test_several_models_follow_one_option_or_repeat_it() -> None:
    command: click.Command = cli
    for name in (*BENCHMARK, "run"):
        assert isinstance(command, click.Group)
        subcommand = command.get_command(click.Context(command), name)
        assert subcommand is not None
        command = subcommand
    for words in (
        ["--models", "a", "b"],
        ["--model-name", "a", "--model-name", "b"],
        ["--model", "a", "--models", "b"],
    ):
        assert command.make_context("run", words).params["models"] == ("a", "b")
