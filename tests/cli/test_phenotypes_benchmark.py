"""``eq phenotypes benchmark`` from the command line."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from equipoise.cli.main import COMMANDS, CommandEntry

OBO = """format-version: 1.2
data-version: signs/2026-01-01
ontology: signs

[Term]
id: T:01
name: Sign

[Term]
id: T:02
name: Small head
synonym: "Microcephaly" EXACT []
is_a: T:01

[Term]
id: T:03
name: Long fingers
alt_id: T:33
synonym: "Spider fingers" EXACT []
def: "Fingers that are long." []
is_a: T:01

[Term]
id: T:04
name: Tremor
is_a: T:01

[Term]
id: T:05
name: obsolete Shaking
is_obsolete: true
consider: T:04
"""
CASES = [
    {"id": "a", "text": "a small head", "hpo_ids": ["T:02"], "language": "en"},
    {"id": "b", "text": "spider fingers and tremor", "hpo_ids": ["T:33", "T:04"], "language": "en"},
    {"id": "c", "text": "Mikrozephalie", "hpo_ids": ["T:02"], "language": "de"},
    {"id": "d", "text": "long fingers", "hpo_ids": ["T:03"], "language": "en"},
]
RUN = ("phenotypes", "benchmark", "run", "--ontology", "signs.obo", "--test-file", "cases.json")
VECTORS = ("phenotypes", "benchmark", "compare-vectors", *RUN[3:])
QUICK = ("--n-resamples", "100")


@pytest.fixture(autouse=True)
def files(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A small ontology and cases, and a data folder without indexes."""
    entry = CommandEntry("equipoise.domains.phenotypes.cli:phenotypes", "Clinical terms.")
    monkeypatch.setitem(COMMANDS, "phenotypes", entry)
    monkeypatch.setenv("XDG_DATA_HOME", str(folder / "data"))
    (folder / "signs.obo").write_text(OBO)
    (folder / "cases.json").write_text(json.dumps(CASES))


def test_one_model_is_shown_with_every_metric(eq) -> None:
    result = eq(*RUN, "--model-name", "tfidf:", "--multi-vector", *QUICK, "-v")
    assert result.exit_code == 0, result.stderr
    assert result.stdout.startswith("tfidf (label_synonyms_max): MRR 1.00 on 4 cases")
    symbols = [line.split()[0] for line in result.stdout.split("Every metric\n")[1].splitlines()[3:28]]
    assert symbols[0] == "MRR"
    assert symbols[-1] == "MaxOntSim@10"
    assert len(symbols) == 25
    assert "T:33 to T:03 in b" in " ".join(result.stdout.split())
    assert "signs, release 2026-01-01" in result.stdout


@pytest.mark.slow
def test_several_models_are_compared_and_stored(eq, folder: Path) -> None:
    models = ("--model-name", "tfidf:", "--model-name", "hash", "--single-vector", "--no-translate")
    result = eq(*RUN, *models, "--output-dir", "results", *QUICK)
    assert result.exit_code == 0, result.stderr
    assert "on 4 cases" in result.stdout.splitlines()[0]
    assert result.stdout.rstrip().endswith("Next: eq report results")
    runs = sorted(path.name for path in (folder / "results" / "runs").iterdir())
    assert runs == ["hash-single", "tfidf-single"]
    compared = eq("phenotypes", "benchmark", "compare", "results", "--json")
    assert compared.exit_code == 0, compared.stderr
    assert set(json.loads(compared.stdout)["systems"]) == {"hash (single)", "tfidf (single)"}
    assert eq("compare", "results/runs/hash-single", "results/runs/tfidf-single").exit_code == 0
    named = eq("phenotypes", "benchmark", "compare", "results/runs/hash-single", "other=results/runs/tfidf-single")
    assert named.exit_code == 0, named.output
    assert "other" in named.stdout
    assert eq("report", "results", "-o", "page.html").exit_code in (0, 4)


def test_json_has_systems_slices_and_resolved_ids(eq) -> None:
    result = eq(*VECTORS, "--model-name", "tfidf:", "--strategies", "all_max,label_only", "--json", *QUICK)
    assert result.exit_code == 0, result.stderr
    content = json.loads(result.stdout, parse_constant=pytest.fail)
    assert [item["mode"] for item in content["systems"]] == ["single", "all_max", "label_only"]
    assert content["ontology"]["release"] == "2026-01-01"
    assert content["resolved_ids"] == [{"case": "b", "id": "T:33", "how": "alternative", "term": "T:03"}]
    assert {item["name"] for item in content["systems"][0]["slices"]} == {"language", "expected terms"}
    assert {item["slice"] for item in content["systems"][0]["slices"] if item["name"] == "language"} >= {"de", "en"}


def test_strategies_can_be_names_or_expressions(eq) -> None:
    expression = "0.6*label + 0.4*max(synonyms)"
    strategies = f"max(label, synonyms); {expression}"
    result = eq(*VECTORS, "--model-name", "tfidf:", "--no-single", "--strategies", strategies, "--json", *QUICK)
    assert result.exit_code == 0, result.stderr
    assert [system["mode"] for system in json.loads(result.stdout)["systems"]] == [
        "max(label, synonyms)",
        expression,
    ]


def test_cases_are_filtered_by_language(eq) -> None:
    result = eq(*RUN, "--model-name", "tfidf:", "--language", "de", "--json", *QUICK)
    assert json.loads(result.stdout)["cases"] == 1
    upper_case = eq(*RUN, "--model-name", "tfidf:", "--language", "DE", "--json", *QUICK)
    assert json.loads(upper_case.stdout)["cases"] == 1
    result = eq(*RUN, "--model-name", "tfidf:", "--language", "fr", *QUICK)
    assert result.exit_code == 2
    assert "the cases are in de, en" in result.stderr


def test_labels_are_queries_on_request(eq) -> None:
    result = eq(*RUN, "--model-name", "tfidf:", "--multi-vector", "--n-label-queries", "4", *QUICK)
    assert result.exit_code == 0, result.stderr
    assert "Ontology labels as queries" in result.stdout
    assert "self-match" in result.stdout


def test_the_reranker_is_part_of_the_system(eq) -> None:
    result = eq(*RUN, "--model-name", "hash", "--reranker", "fusion:tfidf:+bm25:", "--json", *QUICK)
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout)["systems"][0]["reranker"] == "fusion:tfidf+bm25"


def test_a_model_that_fails_on_a_case_makes_the_run_partial(eq, folder: Path, monkeypatch) -> None:
    (folder / "brittle.py").write_text(
        "import numpy\n"
        "class Model:\n"
        "    def encode(self, texts):\n"
        "        if any('Mikro' in text for text in texts):\n"
        "            raise TimeoutError('no answer')\n"
        "        return numpy.array([[text.count(x) + 0.1 for x in 'aeioulnr'] for text in texts])\n"
        "model = Model()\n"
    )
    monkeypatch.syspath_prepend(str(folder))
    result = eq(*RUN, "--model-name", "py:brittle.model", "--output-dir", "results", *QUICK)
    assert result.exit_code == 3, result.stdout + result.stderr
    assert "case c" in result.stderr
    assert "1 case failed and counts as a miss: c" in " ".join(result.stdout.split())
    assert eq("phenotypes", "benchmark", "compare", "results", "results").exit_code == 2


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("--model-name", "tfidf:", "--single-vector", "--aggregation-strategy", "all_max"), "E310"),
        (("--model-name", "tfidf:", "--test-file", "none.json"), "E200"),
        (("--model-name", "tfidf:", "--test-file", "signs.obo"), "E204"),
        (("--model-name", "tfidf:", "--similarity-measure", "lyn"), "E300"),
        (("--model-name", "tfidf:", "--ontology", "none.obo"), "E200"),
        (("--model-name", "tfidf:", "--similarity-measure", "resnik"), "E300"),
        (("--model-name", "tfidf:", "--rerank-depth", "5"), "E310"),
        (("--model-name", "tfidf:", "--weights", "1,0,0"), "E310"),
        (("--model-name", "nonsense"), "E300"),
        (("--model-name", "tfidf:", "--multi-vector", "--aggregation-strategy", ""), "E310"),
        (("--model-name", "tfidf:", "--device", "nonsense"), "E300"),
        (("--model-name", "tfidf:", "--gpu", "--device", "cpu"), "E310"),
        (("--model-name", "hash", "--index-dir", "signs.obo"), "E500"),
    ],
)
def test_bad_input_is_an_error_with_exit_status_2(eq, arguments: tuple[str, ...], code: str) -> None:
    result = eq(*RUN, *arguments)
    assert result.exit_code == 2, result.stderr
    assert f"error[{code}]" in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.engines("torch")
@pytest.mark.parametrize("command", [RUN, VECTORS])
@pytest.mark.parametrize("arguments", [("--gpu",), ("--device", "cuda:99")])
def test_a_missing_device_is_an_error(eq, command: tuple[str, ...], arguments: tuple[str, ...]) -> None:
    torch = pytest.importorskip("torch")
    if arguments == ("--gpu",) and torch.cuda.is_available():
        pytest.skip("there is a GPU here")
    result = eq(*command, "--model-name", "tfidf:", *arguments)
    assert result.exit_code == 4, result.stderr
    assert "there is no device cuda" in result.stderr


@pytest.mark.engines("torch")
def test_the_cpu_is_a_valid_device(eq) -> None:
    pytest.importorskip("torch")
    result = eq(*RUN, "--model-name", "tfidf:", "--device", "cpu", "-v", *QUICK)
    assert result.exit_code == 0, result.stderr
    assert re.search("tfidf:? runs on the CPU", " ".join(result.stdout.split()))


def test_unknown_ids_are_reported_with_replacements_and_can_be_skipped(eq, folder: Path) -> None:
    wrong = [{"text": "shaking", "hpo_ids": ["T:05", "T:04"]}, *CASES]
    (folder / "cases.json").write_text(json.dumps(wrong))
    result = eq(*RUN, "--model-name", "tfidf:")
    assert result.exit_code == 2
    assert "case c1: T:05 (Shaking) is obsolete" in result.stderr
    assert "consider T:04 (Tremor)" in result.stderr
    assert "--skip-unknown-ids" in result.stderr
    result = eq(*RUN, "--model-name", "tfidf:", "--skip-unknown-ids", *QUICK)
    assert result.exit_code == 0, result.stderr


def test_a_stored_index_is_used_and_a_missing_or_damaged_one_is_an_error(eq, folder: Path) -> None:
    arguments = (*RUN, "--model-name", "hash", "--multi-vector", "--index-dir", "indexes", *QUICK)
    result = eq(*arguments)
    assert result.exit_code == 2
    assert "eq phenotypes index build --model hash --ontology signs.obo --index-dir indexes" in result.stderr
    build = (
        "phenotypes",
        "index",
        "build",
        "--model-name",
        "hash",
        "--multi-vector",
        "--ontology",
        "signs.obo",
    )
    assert eq(*build, "--index-dir", "indexes").exit_code == 0
    assert eq(*arguments).exit_code == 0
    (vectors,) = (folder / "indexes").glob("*/vectors.npy")
    vectors.write_bytes(b"nonsense")
    result = eq(*arguments)
    assert result.exit_code == 2
    assert "damaged" in result.stderr


@pytest.mark.slow
def test_a_report_has_the_runs_of_the_last_command_and_other_cases_are_refused(eq, folder: Path) -> None:
    arguments = (*RUN, "--output-dir", "out", *QUICK)
    assert eq(*arguments, "--model-name", "hash").exit_code == 0
    result = eq(*arguments, "--model-name", "tfidf:")
    assert result.stdout.rstrip().endswith("Next: eq report out")
    report = eq("report", "out", "-o", "page.html", "--no-charts", "--json")
    assert json.loads(report.stdout)["systems"] == ["tfidf (label_synonyms_max)"]
    (folder / "cases.json").write_text(json.dumps(CASES[:3]))
    refused = eq(*arguments, "--model-name", "tfidf:")
    assert (refused.exit_code, "error[E500]" in refused.stderr) == (2, True)


def test_commas_in_brackets_do_not_separate_strategies(eq) -> None:
    strategies = "max(label,synonyms),all_max"
    result = eq(*VECTORS, "--model-name", "tfidf:", "--no-single", "--strategies", strategies, "--json", *QUICK)
    assert [system["mode"] for system in json.loads(result.stdout)["systems"]] == ["max(label,synonyms)", "all_max"]


def test_an_empty_list_of_strategies_is_an_error(eq) -> None:
    result = eq(*VECTORS, "--model-name", "tfidf:", "--strategies", "")
    assert result.exit_code == 2
    assert "no strategy is named" in result.stderr


@pytest.mark.parametrize("content", ["[", "[]", '{"cases": []}'])
def test_a_file_without_cases_is_an_error_with_a_hint(eq, folder: Path, content: str) -> None:
    (folder / "cases.json").write_text(content)
    result = eq(*RUN, "--model-name", "tfidf:", "--output-dir", "out")
    assert result.exit_code == 2
    assert "hint: " in result.stderr
    assert not (folder / "out").exists()


def test_system_names_are_unique_in_narrow_tables(eq, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    result = eq(*VECTORS, "--model-name", "tfidf:", "--model-name", "hash", *QUICK)
    assert result.exit_code == 0, result.stderr
    lines = result.stdout.splitlines()
    first = next(index for index, line in enumerate(lines) if line.startswith("rank")) + 2
    rows = [line.split() for line in lines[first : first + 10]]
    names = [row[1] + row[2] if row[2].startswith("(") else row[1] for row in rows]
    assert len(set(names)) == 10
    one_model = eq(*VECTORS, "--model-name", "tfidf:", *QUICK)
    assert "4 cases, 4 terms" in one_model.stdout
    for mode in ("single", "all_max", "label_only", "all_weighted"):
        assert f" {mode} " in one_model.stdout


def test_a_folder_without_runs_is_an_error_with_a_hint(eq, folder: Path) -> None:
    (folder / "empty").mkdir()
    result = eq("phenotypes", "benchmark", "compare", "empty")
    assert result.exit_code == 2
    assert "hint: eq phenotypes benchmark run -o" in result.stderr


def test_two_runs_are_needed_to_compare(eq) -> None:
    result = eq("phenotypes", "benchmark", "compare")
    assert result.exit_code == 2
    assert "at least two runs" in result.stderr


@pytest.mark.parametrize("command", [(), ("run",), ("compare-vectors",), ("compare",)])
def test_every_help_starts_with_two_examples(eq, command: tuple[str, ...]) -> None:
    result = eq("phenotypes", "benchmark", *command, "--help")
    assert result.exit_code == 0
    examples = [line for line in result.stdout.splitlines() if line.strip().startswith("eq phenotypes")]
    assert len(examples) >= 2
    assert all(len(line.strip()) <= 100 for line in examples)


PLUGIN = """
from equipoise import BaseMetric


class Steep(BaseMetric):
    name = "steep"

    def calculate(self, results):
        return 1 / results.best_ranks**2
"""


def test_a_metric_of_a_plugin_is_computed(eq, folder: Path) -> None:
    (folder / "steep.py").write_text(PLUGIN)
    arguments = (*RUN, "--model-name", "tfidf:", "--no-translate", "--json", *QUICK)
    result = eq(*arguments, "--plugin", "steep.py", "-m", "steep", "-m", "P@2")
    assert result.exit_code == 0, result.stderr
    values = {
        estimate["metric"]: estimate["value"] for estimate in json.loads(result.stdout)["systems"][0]["estimates"]
    }
    assert 0 < values["steep"] <= values["MRR"]
    assert {"P@1", "P@2", "MaxOntSim@10"} <= set(values)
    assert "E300" in eq(*arguments, "-m", "steep").stderr
