"""``eq phenotypes benchmark``, run as people run it."""

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


def test_one_model_is_shown_metric_by_metric(eq) -> None:
    done = eq(*RUN, "--model-name", "tfidf:", "--multi-vector", *QUICK, "-v")
    assert done.exit_code == 0, done.stderr
    assert done.stdout.startswith("tfidf (label_synonyms_max): MRR 1.00 on 4 cases")
    shown = [line.split()[0] for line in done.stdout.split("Every metric\n")[1].splitlines()[3:28]]
    assert shown[0] == "MRR"
    assert shown[-1] == "MaxOntSim@10"
    assert len(shown) == 25
    assert "T:33 to T:03 in b" in " ".join(done.stdout.split())
    assert "signs, release 2026-01-01" in done.stdout


@pytest.mark.slow
def test_several_models_are_compared_and_kept(eq, folder: Path) -> None:
    models = ("--model-name", "tfidf:", "--model-name", "hash", "--single-vector", "--no-translate")
    done = eq(*RUN, *models, "--output-dir", "results", *QUICK)
    assert done.exit_code == 0, done.stderr
    assert "on 4 cases" in done.stdout.splitlines()[0]
    assert done.stdout.rstrip().endswith("Next: eq report results")
    runs = sorted(path.name for path in (folder / "results" / "runs").iterdir())
    assert runs == ["hash-single", "tfidf-single"]
    again = eq("phenotypes", "benchmark", "compare", "results", "--json")
    assert again.exit_code == 0, again.stderr
    assert set(json.loads(again.stdout)["systems"]) == {"hash (single)", "tfidf (single)"}
    assert eq("compare", "results/runs/hash-single", "results/runs/tfidf-single").exit_code == 0
    assert eq("report", "results", "-o", "page.html").exit_code in (0, 4)


def test_json_holds_everything(eq) -> None:
    done = eq(*VECTORS, "--model-name", "tfidf:", "--strategies", "all_max,label_only", "--json", *QUICK)
    assert done.exit_code == 0, done.stderr
    told = json.loads(done.stdout, parse_constant=pytest.fail)
    assert [each["mode"] for each in told["systems"]] == ["single", "all_max", "label_only"]
    assert told["ontology"]["release"] == "2026-01-01"
    assert told["resolved_ids"] == [{"case": "b", "id": "T:33", "how": "alternative", "term": "T:03"}]
    assert {each["name"] for each in told["systems"][0]["slices"]} == {"language", "expected terms"}
    assert {each["slice"] for each in told["systems"][0]["slices"] if each["name"] == "language"} >= {"de", "en"}


def test_single_vectors_can_be_left_out_and_expressions_named(eq) -> None:
    expression = "0.6*label + 0.4*max(synonyms)"
    listed = f"max(label, synonyms); {expression}"
    done = eq(*VECTORS, "--model-name", "tfidf:", "--no-single", "--strategies", listed, "--json", *QUICK)
    assert done.exit_code == 0, done.stderr
    assert [each["mode"] for each in json.loads(done.stdout)["systems"]] == [
        "max(label, synonyms)",
        expression,
    ]


def test_cases_of_one_language_are_chosen(eq) -> None:
    done = eq(*RUN, "--model-name", "tfidf:", "--language", "de", "--json", *QUICK)
    assert json.loads(done.stdout)["cases"] == 1
    capitals = eq(*RUN, "--model-name", "tfidf:", "--language", "DE", "--json", *QUICK)
    assert json.loads(capitals.stdout)["cases"] == 1
    done = eq(*RUN, "--model-name", "tfidf:", "--language", "fr", *QUICK)
    assert done.exit_code == 2
    assert "the cases are in de, en" in done.stderr


def test_labels_are_queries_on_request(eq) -> None:
    done = eq(*RUN, "--model-name", "tfidf:", "--multi-vector", "--n-label-queries", "4", *QUICK)
    assert done.exit_code == 0, done.stderr
    assert "Ontology labels as queries" in done.stdout
    assert "self-match" in done.stdout


def test_a_judge_is_named_in_the_system(eq) -> None:
    done = eq(*RUN, "--model-name", "hash", "--reranker", "fusion:tfidf:+bm25:", "--json", *QUICK)
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout)["systems"][0]["reranker"] == "fusion:tfidf+bm25"


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
    done = eq(*RUN, "--model-name", "py:brittle.model", "--output-dir", "results", *QUICK)
    assert done.exit_code == 3, done.stdout + done.stderr
    assert "case c" in done.stderr
    assert "1 case failed and counts as a miss: c" in " ".join(done.stdout.split())
    assert eq("phenotypes", "benchmark", "compare", "results", "results").exit_code == 2


@pytest.mark.parametrize(
    ("words", "code"),
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
def test_bad_input_is_a_sentence_and_exit_2(eq, words: tuple[str, ...], code: str) -> None:
    done = eq(*RUN, *words)
    assert done.exit_code == 2, done.stderr
    assert f"error[{code}]" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.engines("torch")
@pytest.mark.parametrize("command", [RUN, VECTORS])
@pytest.mark.parametrize("words", [("--gpu",), ("--device", "cuda:99")])
def test_a_device_that_is_not_there_is_told(eq, command: tuple[str, ...], words: tuple[str, ...]) -> None:
    torch = pytest.importorskip("torch")
    if words == ("--gpu",) and torch.cuda.is_available():
        pytest.skip("there is a GPU here")
    done = eq(*command, "--model-name", "tfidf:", *words)
    assert done.exit_code == 4, done.stderr
    assert "there is no device cuda" in done.stderr


@pytest.mark.engines("torch")
def test_the_processor_by_name_is_no_fault(eq) -> None:
    pytest.importorskip("torch")
    done = eq(*RUN, "--model-name", "tfidf:", "--device", "cpu", "-v", *QUICK)
    assert done.exit_code == 0, done.stderr
    assert re.search("tfidf:? runs on the CPU", " ".join(done.stdout.split()))


def test_unknown_ids_are_named_with_what_to_use_and_can_be_left_out(eq, folder: Path) -> None:
    wrong = [{"text": "shaking", "hpo_ids": ["T:05", "T:04"]}, *CASES]
    (folder / "cases.json").write_text(json.dumps(wrong))
    done = eq(*RUN, "--model-name", "tfidf:")
    assert done.exit_code == 2
    assert "case c1: T:05 (Shaking) is obsolete" in done.stderr
    assert "consider T:04 (Tremor)" in done.stderr
    assert "--skip-unknown-ids" in done.stderr
    done = eq(*RUN, "--model-name", "tfidf:", "--skip-unknown-ids", *QUICK)
    assert done.exit_code == 0, done.stderr


def test_an_index_is_used_where_it_is_and_missed_where_it_was_asked_for(eq, folder: Path) -> None:
    asked = (*RUN, "--model-name", "hash", "--multi-vector", "--index-dir", "indexes", *QUICK)
    done = eq(*asked)
    assert done.exit_code == 2
    assert "eq phenotypes index build --model hash --ontology signs.obo --index-dir indexes" in done.stderr
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
    assert eq(*asked).exit_code == 0
    (vectors,) = (folder / "indexes").glob("*/vectors.npy")
    vectors.write_bytes(b"nonsense")
    done = eq(*asked)
    assert done.exit_code == 2
    assert "damaged" in done.stderr


@pytest.mark.slow
def test_the_next_command_works_where_older_runs_of_other_cases_lie(eq, folder: Path) -> None:
    words = (*RUN, "--output-dir", "out", *QUICK)
    assert eq(*words, "--model-name", "hash").exit_code == 0
    (folder / "cases.json").write_text(json.dumps(CASES[:3]))
    done = eq(*words, "--model-name", "tfidf:")
    assert "unrelated runs in the same folder: hash-label_synonyms_max" in done.stderr
    assert done.stdout.rstrip().endswith("Next: eq report out/runs/tfidf-label_synonyms_max")
    assert eq("report", "out/runs/tfidf-label_synonyms_max", "-o", "page.html").exit_code in (0, 4)


def test_commas_inside_brackets_part_no_strategies(eq) -> None:
    listed = "max(label,synonyms),all_max"
    done = eq(*VECTORS, "--model-name", "tfidf:", "--no-single", "--strategies", listed, "--json", *QUICK)
    assert [each["mode"] for each in json.loads(done.stdout)["systems"]] == ["max(label,synonyms)", "all_max"]


def test_no_strategies_are_refused(eq) -> None:
    done = eq(*VECTORS, "--model-name", "tfidf:", "--strategies", "")
    assert done.exit_code == 2
    assert "no strategy is named" in done.stderr


@pytest.mark.parametrize("content", ["[", "[]", '{"cases": []}'])
def test_a_file_without_cases_says_what_to_write(eq, folder: Path, content: str) -> None:
    (folder / "cases.json").write_text(content)
    done = eq(*RUN, "--model-name", "tfidf:", "--output-dir", "out")
    assert done.exit_code == 2
    assert "hint: " in done.stderr
    assert not (folder / "out").exists()


def test_systems_keep_different_names_and_lose_no_column_in_silence(eq, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    done = eq(*VECTORS, "--model-name", "tfidf:", "--model-name", "hash", *QUICK)
    assert done.exit_code == 0, done.stderr
    lines = done.stdout.splitlines()
    first = next(index for index, line in enumerate(lines) if line.startswith("rank")) + 2
    rows = [line.split() for line in lines[first : first + 10]]
    names = [row[1] + row[2] if row[2].startswith("(") else row[1] for row in rows]
    assert len(set(names)) == 10
    alone = eq(*VECTORS, "--model-name", "tfidf:", *QUICK)
    assert "4 cases, 4 terms" in alone.stdout
    for mode in ("single", "all_max", "label_only", "all_weighted"):
        assert f" {mode} " in alone.stdout


def test_a_folder_without_runs_says_what_leaves_some_behind(eq, folder: Path) -> None:
    (folder / "empty").mkdir()
    done = eq("phenotypes", "benchmark", "compare", "empty")
    assert done.exit_code == 2
    assert "hint: eq phenotypes benchmark run -o" in done.stderr


def test_two_runs_are_needed_to_compare(eq) -> None:
    done = eq("phenotypes", "benchmark", "compare")
    assert done.exit_code == 2
    assert "at least two runs" in done.stderr


@pytest.mark.parametrize("command", [(), ("run",), ("compare-vectors",), ("compare",)])
def test_every_help_opens_with_two_examples(eq, command: tuple[str, ...]) -> None:
    done = eq("phenotypes", "benchmark", *command, "--help")
    assert done.exit_code == 0
    examples = [line for line in done.stdout.splitlines() if line.strip().startswith("eq phenotypes")]
    assert len(examples) >= 2
    assert all(len(line.strip()) <= 100 for line in examples)


PLUGIN = """
from equipoise import BaseMetric


class Steep(BaseMetric):
    name = "steep"

    def calculate(self, results):
        return 1 / results.best_ranks**2
"""


def test_a_metric_of_ones_own_is_computed_with_the_others(eq, folder: Path) -> None:
    (folder / "steep.py").write_text(PLUGIN)
    words = (*RUN, "--model-name", "tfidf:", "--no-translate", "--json", *QUICK)
    done = eq(*words, "--plugin", "steep.py", "-m", "steep", "-m", "P@2")
    assert done.exit_code == 0, done.stderr
    values = {one["metric"]: one["value"] for one in json.loads(done.stdout)["systems"][0]["estimates"]}
    assert 0 < values["steep"] <= values["MRR"]
    assert {"P@1", "P@2", "MaxOntSim@10"} <= set(values)
    assert "E300" in eq(*words, "-m", "steep").stderr
