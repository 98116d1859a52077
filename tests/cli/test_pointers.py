"""Names from other tools: the error suggests the command, option, format or metric."""

from __future__ import annotations

import re

import click
import pytest

from equipoise.cli.main import COMMANDS, SECTIONS, cli
from equipoise.cli.output import pointers


@pytest.mark.parametrize(
    ("arguments", "expected_hint"),
    [
        (("models",), "eq ls models"),
        (("metrics",), "eq ls metrics"),
        (("run",), "eq score"),
        (("eval",), "eq score"),
        (("benchmark",), "did you mean eq bench?"),
        (("bench", "."), "did you mean eq bench run .?"),
        (("fair", "report"), "eq report"),
        (("fair", "run"), "eq fair compare"),
        (("places", "view"), "eq view"),
        (("concepts", "validate"), "eq concepts check"),
        (("phenotypes", "search"), "eq phenotypes query"),
        (("compar",), "compare"),
        (("ls", "metrcs"), "metrics"),
        (("dashboard",), "eq view"),
        (("ui",), "eq view"),
        (("ls", "datasets"), "eq bench ls"),
        (("cache", "clear"), "eq cache prune --all"),
        (("cache", "ls"), "eq cache size"),
        (("fair", "evaluate"), "eq fair compare"),
        (("accounts", "validate"), "eq accounts check"),
        (("fuse",), "rrf:"),
        (("license",), "eq has demo"),
    ],
)
def test_an_unknown_command_suggests_the_right_one(eq, assert_error, arguments, expected_hint: str) -> None:
    assert_error(eq(*arguments), "E300", expected_hint)


@pytest.mark.parametrize(
    ("arguments", "expected_hint"),
    [
        (("fair", "compare", "--document", "x"), "--doc"),
        (("fair", "compare", "--model", "x"), "--models"),
        (("fair", "compare", "--out", "x"), "--output"),
        (("fair", "compare", "--budget", "9"), "--token-budget"),
        (("concepts", "run", "--gpu"), "--device"),
        (("places", "score", "y.npy"), "--logits y.npy"),
        (("fair", "validate", "q.jsonl", "doc.md"), "write --qa FILE"),
        (("embed", "x", "--models", "a"), "--model"),
        (("score", "--run", "a.trec"), "eq score SYSTEMS"),
        (("score", "--logits", "a.npy"), "eq score SYSTEMS"),
        (("bench", "run", "--data", "x"), "eq bench run DATA"),
        (("fair", "compare", "--data", "x"), "--doc"),
        (("compare", "--level", "0.9"), "--confidence-level"),
        (("compare", "--resamples", "9"), "--n-resamples"),
        (("gate", "x", "--min", "MRR>=1"), "--require"),
        (("index-quality", "--num-results", "9"), "--top-k"),
        (("accounts", "evaluate", "--rates", "1"), "--learning-rates"),
        (("bench", "run", "x", "-k", "5"), "eq bench ls"),
        (("bench", "run", "x", "--metric", "MRR"), "eq compare RESULTS -m"),
        (("score", "x", "-k", "5"), "-m nDCG@10"),
        (("bench", "run", "x", "--limit", "5"), "smaller table"),
        (("bench", "run", "--datasets", "x"), "eq bench run DATA"),
        (("bench", "run", "--tasks", "x"), "clustering:tickets.csv"),
        (("bench", "run", "--file", "x"), "eq bench run DATA"),
        (("fair", "compare", "--file", "x"), "--doc"),
        (("accounts", "evaluate", "--file", "x"), "--tree"),
        (("compare", "x", "y", "--alpha", "0.05"), "--confidence-level 0.95"),
        (("bench", "run", "x", "--batch-size", "8"), "--models st:NAME,batch=16"),
        (("embed", "x", "--batch-size", "8"), "--model st:NAME,batch=16"),
        (("index-quality", "--metric", "cosine"), "--geometry"),
        (("bench", "run", "x", "--rerank", "y"), "--rerankers"),
        (("score", "x", "--csv"), "--to csv"),
        (("embed", "x", "--csv"), "eq embed --help"),
    ],
)
def test_an_unknown_option_suggests_the_right_one(eq, assert_error, arguments, expected_hint: str) -> None:
    assert_error(eq(*arguments), "E100", expected_hint)


def test_an_option_without_its_value_and_a_command_of_another_group_have_a_hint(eq, assert_error) -> None:
    assert_error(eq("fair", "compare", "--models"), "E100", "write a value after --models")
    assert_error(eq("fair", "demo"), "E300", "eq demo is a command of its own")
    assert_error(eq("fair", "compare", "--doc", "d", "--qa", "q", "--models", "hash", "--rerank-depths", "5"), "E310")


@pytest.mark.parametrize("flag", ["--json", "--quiet", "--verbose"])
def test_options_of_every_command_are_explained(eq, flag: str) -> None:
    done = eq("explain", flag)
    assert done.exit_code == 0, done.stderr
    assert flag in done.stdout.splitlines()[0]


@pytest.mark.parametrize(
    ("arguments", "expected_hint"),
    [
        (("export", "x", "--to", "markdown"), "--to md"),
        (("export", "x", "--to", "tex"), "--to latex"),
        (("compare", "a", "b", "--to", "html"), "eq report"),
    ],
)
def test_an_unknown_format_suggests_the_right_one(eq, assert_error, arguments, expected_hint: str) -> None:
    assert_error(eq(*arguments), "E300", expected_hint)


@pytest.mark.parametrize(
    ("arguments", "expected_hint"),
    [
        (("--test", "student"), "--test t"),
        (("--correction", "bonferroni"), "--correction holm"),
        (("--correction", "fdr"), "--correction bh"),
        (("--ties", "random"), "--ties expected"),
        (("--fail-on", "error"), "--fail-on issue"),
        (("--to", "text"), "without --to"),
        (("-m", "top_5_accuracy"), "Acc@5"),
        (("-m", "auc"), "eq ls metrics"),
    ],
)
def test_an_unknown_value_suggests_the_right_one(eq, assert_error, arguments, expected_hint: str) -> None:
    assert_error(eq("compare", "good.trec", "bad.trec", "--qrels", "truth.qrels", *arguments), "E300", expected_hint)


@pytest.mark.parametrize(
    ("model", "expected_hint"),
    [
        ("BM25", "write bm25"),
        ("openai/text-embedding-3-small", "write openai:text-embedding-3-small"),
        ("text-embedding-3-small", "write openai:text-embedding-3-small"),
        ("all-MiniLM-L6-v2", "write minilm"),
        ("cohere", "write cohere:NAME"),
        ("gemini", "eq ls models"),
        ("minilmm", "did you mean minilm?"),
    ],
)
def test_an_unknown_model_suggests_the_right_one(eq, assert_error, model: str, expected_hint: str) -> None:
    assert_error(eq("embed", "good.trec", "--model", model, "-o", "x.npz"), "E300", expected_hint)


def test_an_unknown_device_does_not_suggest_the_cpu(eq, assert_error) -> None:
    done = eq("embed", "good.trec", "--model", "minilm", "-o", "x.npz", "--device", "gpu")
    assert_error(done, "E300", "write cuda, cuda:1, mps or cpu")


def test_an_html_file_of_tables_points_to_the_report(eq, assert_error) -> None:
    assert_error(eq("compare", "a", "b", "-o", "page.html"), "E310", "eq report")


@pytest.mark.parametrize(
    ("name", "expected_name"),
    [
        ("ndcg_cut_10", "nDCG@10"),
        ("ndcg_at_10", "nDCG@10"),
        ("recall_10", "R@10"),
        ("P_5", "P@5"),
        ("map_cut_100", "MAP(norm=R)@100"),
        ("recip_rank", "MRR"),
        ("success_1", "HR@1"),
    ],
)
def test_metric_names_of_other_libraries_are_accepted(eq, name: str, expected_name: str) -> None:
    assert expected_name in eq("score", "good.trec", "--qrels", "truth.qrels", "-m", name).stdout
    assert expected_name.partition("(")[0].partition("@")[0] in eq("explain", name).stdout


@pytest.mark.parametrize(("name", "expected_name"), [("mrr@10", "MRR@10"), ("map", "MAP"), ("ndcg@10", "nDCG@10")])
def test_metric_names_are_case_insensitive(eq, name: str, expected_name: str) -> None:
    assert expected_name in eq("score", "good.trec", "--qrels", "truth.qrels", "-m", name).stdout


def leaf_commands(group: click.Group, path: tuple[str, ...] = ()) -> list[tuple[tuple[str, ...], click.Command]]:
    """Every command that is no group, with its path."""
    context = click.Context(group)
    commands: list[tuple[tuple[str, ...], click.Command]] = []
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        is_group = isinstance(command, click.Group)
        commands += leaf_commands(command, (*path, name)) if is_group else [((*path, name), command)]
    return commands


LEAVES = leaf_commands(cli)


def test_every_command_is_in_one_section() -> None:
    sectioned = [name for names in SECTIONS.values() for name in names if name in COMMANDS]
    assert sorted(sectioned) == sorted(COMMANDS)


def test_no_pointer_hides_a_command() -> None:
    assert not set(pointers("commands")) & {" ".join(path) for path, _ in LEAVES}


def test_every_command_in_a_pointer_exists_and_has_the_options() -> None:
    by_path = {" ".join(path): command for path, command in LEAVES}
    values = [text for table in pointers("values").values() for text in table.values()]
    sentences = [text for texts in pointers("options").values() for text in texts if text[:1] != "-"]
    for text in [*pointers("commands").values(), *sentences, *values]:
        for start in re.finditer(r"\beq (?=[a-z])", text):
            words = (
                re.split(r";|,? (?:and|or|then) eq|\)", text[start.end() :])[0]
                .replace(",", "")
                .replace("?", "")
                .split()
            )
            n_words = max((n for n in (1, 2, 3, 4) if " ".join(words[:n]) in by_path), default=0)
            assert n_words or words[0] in COMMANDS, text
            if n_words and words[0] != "explain":
                names = {name for p in by_path[" ".join(words[:n_words])].params for name in p.opts}
                assert {word for word in words if word[0] == "-"} <= names | {"--help"}, text


def test_every_pointer_of_one_command_names_that_command() -> None:
    paths = {" ".join(path) for path, _ in LEAVES}
    assert {key.rpartition(" ")[0] for key in pointers("options")} - {""} <= paths


def test_every_option_pointer_names_an_option_of_some_command() -> None:
    known = {name for _, command in LEAVES for parameter in command.params for name in parameter.opts}
    assert {name for names in pointers("options").values() for name in names if name.startswith("-")} <= known


@pytest.mark.parametrize(
    ("option", "short"), [("--output", "-o"), ("--top-k", "-k"), ("--metric", "-m"), ("--quiet", "-q")]
)
def test_options_have_the_same_short_name_everywhere(option: str, short: str) -> None:
    for path, command in LEAVES:
        for parameter in command.params:
            if option in parameter.opts:
                assert short in parameter.opts, path


@pytest.mark.parametrize("option", ["--seed", "--confidence-level", "--n-resamples", "--device", "--engine", "--to"])
def test_shared_options_have_the_same_type_everywhere(option: str) -> None:
    kinds = {
        type(parameter.type).__name__
        for _, command in LEAVES
        for parameter in command.params
        if option in parameter.opts and command.name != "export"
    }
    assert len(kinds) == 1
