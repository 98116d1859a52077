"""The commands that explain: ls, explain, doctor, completion, help and version."""

from __future__ import annotations

import json
import re
import shlex
import tomllib
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import click
import pytest

from equipoise import __version__
from equipoise.checks.base import all_checks
from equipoise.cli.environment import EXTRAS
from equipoise.cli.explain import INTERVALS, glossary
from equipoise.cli.main import COMMANDS, cli
from equipoise.cli.options import ChoiceWithHint
from equipoise.cli.output import after_comparison
from equipoise.domains.phenotypes.defaults import DEFAULT_EXTRACTOR, DEFAULT_MODEL
from equipoise.errors import EquipoiseError
from equipoise.evidence.base import Evidence
from equipoise.evidence.ranking import Ranking
from equipoise.evidence.sets import Sets
from equipoise.metrics.parser import builtin, parse_metrics
from equipoise.models.stores import STORE_EXAMPLES, STORE_KINDS
from equipoise.report.answer import SAMPLE_SIZE
from equipoise.report.tables import METHOD_NAMES
from equipoise.runs.inferiority_test import TESTS as GATE_TESTS
from equipoise.stats.verdict import PARTIAL_RUN
from equipoise.types import Finding, Severity, install_command

COMMAND_PATHS = [(name,) for name in COMMANDS] + [("ls", name) for name in ("metrics", "checks", "tests")]


@pytest.mark.parametrize("path", COMMAND_PATHS, ids=" ".join)
def test_help_starts_with_two_examples(eq, path: tuple[str, ...]) -> None:
    result = eq(*path, "--help")
    lines = [line.strip() for line in result.stdout.splitlines() if line.strip()]
    assert result.exit_code == 0
    assert lines[0].startswith(f"Usage: eq {' '.join(path)}")
    assert re.match(r"(source <\()?eq ", lines[1])
    assert lines[2].startswith("eq ")
    assert max(map(len, result.stdout.splitlines())) <= 100


def test_help_does_not_break_names_at_hyphens(eq) -> None:
    printed = eq("phenotypes", "query", "--help").stdout
    assert "hp-de.babelon.tsv" in printed
    assert not re.search(r"\w-$", printed, re.MULTILINE)


def test_the_help_lists_every_command_with_its_summary(eq) -> None:
    printed = eq("--help").stdout
    for name, entry in COMMANDS.items():
        assert re.search(rf"^  {name} +{re.escape(entry.summary)}$", printed, re.MULTILINE)
    assert eq().stdout == printed


@pytest.mark.parametrize("group", ["ls", "cache"])
def test_a_group_without_a_command_shows_its_help(eq, group: str) -> None:
    result = eq(group)
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == eq(group, "--help").stdout


def test_aliases_of_metrics_are_listed_on_a_narrow_terminal(eq, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert "(not shown: aliases; -v lists them" in eq("ls", "metrics").stdout
    printed = eq("ls", "metrics", "-v").stdout
    for metric in builtin():
        for name in metric.aliases:
            assert name in printed.split("Aliases")[1]


def test_the_version_is_printed(eq) -> None:
    assert eq("--version").stdout == f"equipoise {__version__}\n"


@pytest.mark.parametrize("word", ["--json", "-q", "-v"])
def test_shared_options_are_accepted_before_or_after_the_command(eq, word: str) -> None:
    assert eq(word, "ls", "checks").stdout == eq("ls", "checks", word).stdout


def test_every_metric_is_listed_by_kind(eq) -> None:
    metrics = json.loads(eq("ls", "metrics", "--json").stdout)["metrics"]
    assert [entry["symbol"] for entry in metrics] == [metric.symbol for metric in builtin()]
    of_pairs = json.loads(eq("ls", "metrics", "--kind", "pairs", "--json").stdout)["metrics"]
    assert {entry["kind"] for entry in of_pairs} == {"pairs"}
    assert 0 < len(of_pairs) < len(metrics)


def test_every_check_and_test_is_listed(eq) -> None:
    assert [line.split()[0] for line in eq("ls", "checks").stdout.splitlines()[2:]] == [
        check.code for check in all_checks()
    ]
    names = [test["name"] for test in json.loads(eq("ls", "tests", "--json").stdout)["tests"]]
    assert {"randomisation", "t", "wilcoxon", "mcnemar", "holm", "bh", "none"} <= set(names)


@pytest.mark.parametrize("metric", list(builtin()), ids=lambda metric: f"{metric.evidence.kind}-{metric.symbol}")
def test_every_metric_has_a_page(eq, metric) -> None:
    pages = json.loads(eq("explain", metric.symbol, "--json").stdout)["pages"]
    page = next(candidate for candidate in pages if candidate["facts"]["input"].split(":")[0] == metric.evidence.kind)
    assert metric.title in page["title"]
    assert page["text"]
    assert ">>>" not in page["text"]
    assert page["facts"]["range"]


def test_the_page_of_a_metric_has_an_example(eq) -> None:
    printed = eq("explain", "AP@5").stdout
    assert printed.startswith("MAP@5  mean average precision\n")
    assert "ranked a* b c d* e* (* is relevant): MAP@5 = 0.7000" in printed
    assert "one relevant item, at rank 3 of 100: MAP@5 = 0.3333" in printed
    for fact in ("formula", "range", "undefined", "ties", "chance", "aliases", "source"):
        assert re.search(rf"^{fact}  ", printed, re.MULTILINE), fact


@pytest.mark.parametrize(
    ("name", "titles"),
    [
        ("P@5", ["P@5  precision"]),
        ("R@5", ["R@5  recall"]),
        ("Recall@10", ["R@10  recall"]),
        ("Acc@5", ["HR@5  hit rate"]),
        ("R(capped)@5", ["R(capped)@5  recall"]),
        ("R(capped)", ["R(capped)@10  recall"]),
    ],
)
def test_parameters_select_among_metrics_with_the_same_name(eq, name: str, titles) -> None:
    pages = json.loads(eq("explain", name, "--json").stdout)["pages"]
    assert [page["title"] for page in pages] == titles


def test_a_name_without_parameters_shows_all_metrics_with_it(eq) -> None:
    pages = json.loads(eq("explain", "P", "--json").stdout)["pages"]
    assert {page["facts"]["input"].split(":")[0] for page in pages} == {"ranking", "labels", "sets"}


def test_formulas_are_plain_text(eq) -> None:
    for metric in builtin():
        for page in json.loads(eq("explain", metric.symbol, "--json").stdout)["pages"]:
            assert not set("\\\\{}") & set(page["facts"]["formula"]), page["facts"]["formula"]


def test_the_page_of_a_plugin_metric_has_declared_properties_only(eq, folder) -> None:
    (folder / "plugin.py").write_text(
        "from equipoise import BaseMetric\n"
        "class Steep(BaseMetric):\n"
        "    'How steep.'\n"
        "    def __init__(self):\n"
        "        super().__init__(name='steep')\n"
        "    def calculate(self, results):\n"
        "        return 1 / results.best_ranks**2\n"
    )
    printed = eq("explain", "steep", "--plugin", "plugin.py").stdout
    assert "any number; larger is better" in printed
    for absent in ("undefined  ", "ties  ", "fraction"):
        assert absent not in printed


@pytest.mark.parametrize("check", all_checks(), ids=lambda check: check.code)
def test_every_check_has_a_page(eq, check) -> None:
    printed = eq("explain", check.code.lower()).stdout
    assert printed.startswith(f"{check.code}  {check.title}\n")
    assert check.example.splitlines()[-1] in printed


def test_every_error_has_a_page(eq) -> None:
    kinds = [EquipoiseError]
    for kind in kinds:
        kinds += kind.__subclasses__()
        if "code" not in vars(kind):  # the page is that of the class with this code
            continue
        printed = eq("explain", kind.code).stdout
        assert printed.startswith(f"{kind.code}  {kind.__name__}\n")
        assert f"exit code  {kind.exit_code}" in printed


@pytest.mark.parametrize("name", ["randomisation", "sign-flip", "holm", "bh", "Benjamini-Hochberg", *GATE_TESTS])
def test_tests_and_corrections_have_pages(eq, name: str) -> None:
    assert re.search("eq (compare|gate) ... --(test|correction)", eq("explain", name).stdout)


def test_doctor_checks_every_component(eq) -> None:
    result = eq("doctor", "--json")
    states = {row["what"]: row["state"] for row in json.loads(result.stdout)["doctor"]}
    assert result.exit_code == 0
    assert states["numpy"] == states["scipy"] == states["rich"] == "ok"
    assert {"torch", "threads", "memory", "device", "cache"} <= set(states)


def test_doctor_shows_install_commands_of_missing_packages(eq, monkeypatch) -> None:
    monkeypatch.setattr("equipoise.cli.environment.find_spec", lambda name: None)
    printed = eq("doctor").stdout
    assert re.search(rf"torch +absent +{re.escape(install_command('torch'))}", printed)


def test_doctor_covers_exactly_the_extras_of_the_package() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    declared = project["optional-dependencies"]
    for_developers = {"all", "test", "engines", "peers", "dev", "docs", "bench"}
    assert {extra for _, extra in EXTRAS.values()} == set(declared) - for_developers


def test_the_extra_all_has_every_extra_of_doctor() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    extras = ",".join(re.findall(r"\[(.*?)\]", " ".join(project["optional-dependencies"]["all"])))
    assert set(extras.split(",")) == {extra for _, extra in EXTRAS.values()}


def test_every_package_of_doctor_is_in_its_extra() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    declared = project["optional-dependencies"]
    for package, (_, extra) in EXTRAS.items():
        assert any(re.split(r"[\[>=]", requirement)[0] == package for requirement in declared[extra]), package


def test_doctor_fails_on_a_missing_package(eq, monkeypatch) -> None:
    monkeypatch.setattr("equipoise.cli.environment._installed", lambda package: None)
    assert eq("doctor").exit_code == 4


def completions(eq, line: str) -> list[str]:
    """The completions of bash for the last word of the line."""
    words = line.split(" ")
    result = eq(env={"_EQ_COMPLETE": "bash_complete", "COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)})
    return [item.partition(",")[2] for item in result.stdout.splitlines()]


def test_metrics_tests_and_codes_are_completed(eq) -> None:
    assert "nDCG@10" in completions(eq, "eq score -m nD")
    assert "HR@1" in completions(eq, "eq compare --primary h")
    assert "HR" not in completions(eq, "eq compare --primary h")
    assert completions(eq, "eq compare --test w") == ["wilcoxon"]
    assert "EQ301" in completions(eq, "eq explain EQ3")
    assert "compare" in completions(eq, "eq co")
    assert completions(eq, "eq ls m") == ["metrics", "models"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_are_printed(eq, shell: str) -> None:
    printed = eq("completion", shell).stdout
    assert f"_EQ_COMPLETE={shell}_complete" in printed
    assert json.loads(eq("completion", shell, "--json").stdout)["script"].strip() == printed.strip()


def test_the_table_of_commands_names_existing_commands() -> None:
    import click

    context = click.Context(cli)
    for name in COMMANDS:
        command = cli.get_command(context, name)
        assert command is not None
        assert command.name == name


def _leaf_commands(command: click.Command, context: click.Context) -> Iterator[tuple[click.Command, click.Context]]:
    if not isinstance(command, click.Group):
        yield command, context
        return
    for name in command.list_commands(context):
        subcommand = command.get_command(context, name)
        assert subcommand is not None
        yield from _leaf_commands(subcommand, click.Context(subcommand, info_name=name, parent=context))


def _examples(text: str) -> list[list[str]]:
    """The arguments of every line that calls the program, without comments, pipes and redirections."""
    joined = text.replace("\\\n", " ")
    lines = re.findall(r"(?m)^\s+(eq .*)$", joined)
    return [shlex.split(re.split(r" [|>] ", line)[0], comments=True)[1:] for line in lines]


def test_examples_of_help_pages_have_valid_options_and_choices() -> None:
    n_examples = 0
    for command, context in _leaf_commands(cli, click.Context(cli, info_name="eq")):
        path = context.command_path.split()[1:]
        for arguments in _examples(command.help or ""):
            # Some examples use a shorter name of the same command, and explain takes the names of options.
            if arguments[: len(path)] != path or path == ["explain"]:
                continue
            values, _, _ = command.make_parser(context).parse_args(args=arguments[len(path) :])
            for parameter in command.params:
                value = values.get(parameter.name)
                if isinstance(parameter.type, ChoiceWithHint) and isinstance(value, str):
                    parameter.type(value, parameter, context)
            n_examples += 1
    assert n_examples > 100


def test_explain_without_a_name_lists_what_can_be_explained(eq) -> None:
    (page,) = json.loads(eq("explain", "--json", "--quiet").stdout)["pages"]
    examples = [fact.split(";")[0].removeprefix("eq explain ") for fact in page["facts"].values()]
    assert len(examples) == 9
    for name in examples:
        assert json.loads(eq("explain", name, "--json").stdout)["pages"], name
    assert "eq explain nDCG@10" in eq("explain").stdout


def test_help_lists_every_store_that_keeps_vectors(eq) -> None:
    printed = eq("phenotypes", "index", "build", "--help").stdout
    assert set(STORE_EXAMPLES) == set(STORE_KINDS) - {"memory", "faiss"}
    assert all(f" {kind}:" in printed.replace("\n", " ") for kind in STORE_EXAMPLES)


@pytest.mark.parametrize(
    ("command", "default"),
    [
        ("index build", DEFAULT_MODEL),
        ("query", DEFAULT_MODEL),
        ("benchmark run", DEFAULT_MODEL),
        ("benchmark compare-vectors", DEFAULT_MODEL),
        ("extract", DEFAULT_EXTRACTOR),
        ("extraction run", DEFAULT_EXTRACTOR),
        ("extraction tune", DEFAULT_EXTRACTOR),
    ],
)
def test_help_states_the_default_model(eq, command: str, default: str) -> None:
    printed = " ".join(eq("phenotypes", *command.split(), "--help").stdout.split())
    assert f"[default: {default}" in printed.split(" MODEL ", 1)[1].split(" --", 1)[0]


@pytest.mark.parametrize(
    ("command", "evidence"),
    [("phenotypes extraction compare", Sets), ("phenotypes benchmark run", Ranking), ("places compare", Ranking)],
)
def test_examples_of_metrics_fit_the_evidence_of_the_command(eq, command: str, evidence: type[Evidence]) -> None:
    printed = " ".join(eq(*command.split(), "--help").stdout.split())
    examples = printed.split("A metric, such as ", 1)[1].split("; may be repeated", 1)[0].replace(" or ", ", ")
    names = re.split(r", (?![^(]*\))", examples.replace('"', ""))
    assert len(parse_metrics(names, evidence=evidence)) >= len(names) > 1


@pytest.mark.parametrize(
    "word",
    ["gap", "held out", "tied", "tie band", "rank", "chance", "Link MRR", "pair AP", "BCa bootstrap", "subsampling"],
)
def test_words_of_the_outputs_have_a_page(eq, word: str) -> None:
    (page,) = json.loads(eq("explain", word, "--json").stdout)["pages"]
    assert word.casefold().removesuffix(" bootstrap") in page["title"].casefold()
    assert page["text"]


def test_explain_of_a_flag_names_both_of_its_values(eq) -> None:
    (page,) = json.loads(eq("explain", "--browser", "--json").stdout)["pages"]
    assert (page["title"], page["facts"]["default"]) == ("--browser / --no-browser", "--browser")


def test_explain_takes_its_own_option_as_a_name(eq) -> None:
    (page,) = json.loads(eq("explain", "--json", "--", "--plugin").stdout)["pages"]
    assert page["title"] == "--plugin FILE"
    assert eq("explain", "--plugin").stdout.startswith("--plugin FILE")


def test_explain_lists_a_command_under_one_path(eq) -> None:
    commands = json.loads(eq("explain", "--gold", "--json").stdout)["pages"][0]["facts"]["commands"]
    assert commands == "eq phenotypes extraction score"


@pytest.mark.parametrize("name", [*METHOD_NAMES.values(), *INTERVALS])
def test_every_name_of_an_interval_is_explained(eq, name: str) -> None:
    done = eq("explain", name)
    assert done.exit_code == 0, done.stderr
    assert "interval" in done.stdout


def test_the_accuracy_of_fair_is_explained_with_the_metric(eq) -> None:
    printed = " ".join(eq("explain", "accuracy").stdout.split())
    assert "The share of questions whose answer is in a retrieved chunk." in printed
    assert "hit rate" in printed


def test_probe_accuracy_is_explained(eq) -> None:
    assert "logistic regression" in eq("explain", "Probe accuracy").stdout


def test_the_next_command_explains_a_finding_that_the_answer_shows() -> None:
    few, partial, ties = (
        Finding(code, Severity.TIP, "bm25", "message", "hint") for code in (SAMPLE_SIZE, PARTIAL_RUN, "EQ301")
    )
    assert after_comparison([few, partial, ties], "MRR") == "\nNext: eq explain EQ301"
    assert after_comparison([few, partial], "MRR") == "\nNext: eq explain MRR"


def test_the_glossary_of_the_documentation_is_that_of_explain() -> None:
    docs = (Path(__file__).parents[2] / "docs" / "glossary.md").read_text(encoding="utf-8")
    assert docs == (files("equipoise.cli") / "glossary.md").read_text(encoding="utf-8"), "copy one to the other"
    assert {page.title.partition(" (")[0] for page in glossary().values()} == {
        term.replace("`", "") for term in re.findall(r"^\*\*(.+?)\*\*", docs, re.MULTILINE)
    }
    assert "](" not in "".join(page.text for page in glossary().values())
