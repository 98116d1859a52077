"""``eq phenotypes extraction`` from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

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
is_a: T:01

[Term]
id: T:04
name: Tremor
is_a: T:01
"""
NOTES = [
    ("a", "A small head. No tremor.", [("T:02", "affirmed"), ("T:04", "negated")]),
    ("b", "Long fingers.", [("T:03", "affirmed")]),
    ("c", "Microcephaly and tremor.", [("T:02", "affirmed"), ("T:04", "affirmed")]),
    ("d", "He has long fingers; a fine tremor.", [("T:03", "affirmed"), ("T:04", "affirmed")]),
    ("e", "All is well.", []),
    ("f", "Small head, long fingers.", [("T:02", "affirmed"), ("T:03", "affirmed")]),
]
GROUP = ("phenotypes", "extraction")
COMMON = ("corpus", "--ontology", "signs.obo", "--model", "tfidf:")
QUICK = ("--n-resamples", "100", "--chunk-threshold", "0.4")


@pytest.fixture(autouse=True)
def files(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A small ontology, a corpus, and a data folder without indexes."""
    monkeypatch.setenv("XDG_DATA_HOME", str(folder / "data"))
    (folder / "signs.obo").write_text(OBO)
    annotations = folder / "corpus" / "annotations"
    annotations.mkdir(parents=True)
    for name, text, gold in NOTES:
        terms = [{"hpo_id": term, "assertion_status": assertion} for term, assertion in gold]
        content = {"doc_id": name, "full_text": text, "annotations": terms, "language": "en"}
        (annotations / f"{name}.json").write_text(json.dumps(content))


def test_a_run_reports_scores_stages_and_errors(eq) -> None:  # type: ignore[no-untyped-def]
    result = eq(*GROUP, "run", *COMMON, *QUICK, "-v", "-o", "results/default")
    assert result.exit_code == 0, result.stderr
    for expected_text in ("precision", "By mode and average", "Where gold terms were lost", "by kind of error"):
        assert expected_text in result.stdout
    assert Path("results/default/extraction_results.json").is_file()
    assert Path("results/default/view.json").is_file()


def test_a_run_has_json_output(eq) -> None:  # type: ignore[no-untyped-def]
    result = eq(*GROUP, "run", *COMMON, *QUICK, "--averaging", "macro", "--include-assertions", "--json")
    content = json.loads(result.stdout)
    assert content["primary"] == "F1(average=macro)"
    assert content["documents_without_gold"] == ["e"]
    assert set(content["predictions"]) == {name for name, _, _ in NOTES}


def test_a_broken_file_is_reported_and_the_run_is_partial(eq) -> None:  # type: ignore[no-untyped-def]
    Path("corpus/annotations/broken.json").write_text("{")
    result = eq(*GROUP, "run", *COMMON, *QUICK, "--no-bootstrap-ci")
    assert result.exit_code == 3
    assert "broken.json" in result.stderr
    assert "hint: " in result.stderr
    assert "on 6 documents" in result.stdout


@pytest.mark.slow
def test_runs_are_compared_by_their_files_and_gated_by_their_folders(eq) -> None:  # type: ignore[no-untyped-def]
    for name, options in (("default", ()), ("top_term", ("--top-term-only",))):
        eq(*GROUP, "run", *COMMON, *QUICK, *options, "-o", f"results/{name}")
    files = [f"results/{name}/extraction_results.json" for name in ("default", "top_term")]
    compared = eq(*GROUP, "compare", *files, "-m", "F1(mode=id)", "-m", "P(average=macro,mode=id)", "--json")
    assert compared.exit_code == 0, compared.stderr
    assert json.loads(compared.stdout)["primary"] == "F1(mode=id)"
    # Another configuration in the same folder replaces the earlier one.
    eq(*GROUP, "run", *COMMON, *QUICK, "--num-results", "2", "--top-term-only", "-o", "results/top_term")
    gated = eq("gate", "results/top_term", "--no-worse-than", "results/default", "--margin", "0.01")
    assert gated.stdout.startswith(("pass", "FAIL"))
    eq(*GROUP, "run", *COMMON, *QUICK, "--include-assertions", "-o", "results/strict")
    mismatched = eq("gate", "results/strict", "--no-worse-than", "results/default", "--margin", "0.01")
    assert mismatched.exit_code == 1
    assert "mode strict here, id in the baseline" in mismatched.stdout


def test_tuning_reports_held_out_scores_and_reusing_the_documents_is_a_finding(eq) -> None:  # type: ignore[no-untyped-def]
    result = eq(*GROUP, "tune", *COMMON, "--n-trials", "6", "--n-folds", "3", "-o", "results/tuned")
    assert result.exit_code == 0, result.stderr
    assert "held-out macro F1 (id only) 0.667 on 5 of 6 documents" in result.stdout
    run = eq(*GROUP, "run", *COMMON, "--tuned-parameters", "results/tuned", "--no-bootstrap-ci", "--fail-on", "issue")
    assert run.exit_code == 1
    assert "EQ201" in run.stdout
    for options in (("--num-results", "3"), ("--chunkers", "sentence"), ("--include-assertions",)):
        assert eq(*GROUP, "run", *COMMON, "--tuned-parameters", "results/tuned", *options).exit_code == 2


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("run", "corpus", "--averaging", "mirco"), "E300"),
        (("run", "corpus", "--dataset", "korpus"), "E300"),
        (("run", "absent"), "E200"),
        (("run", "corpus", "--num-results", "0"), "E310"),
        (("compare", "signs.obo"), "E204"),
        (("compare",), "E310"),
    ],
)
def test_invalid_arguments_are_errors(eq, arguments: tuple[str, ...], code: str) -> None:  # type: ignore[no-untyped-def]
    options = COMMON[1:] if arguments[0] == "run" else ()
    result = eq(*GROUP, *arguments, *options)
    assert result.exit_code == 2
    assert f"error[{code}]" in result.stderr


@pytest.mark.parametrize("command", ["run", "compare", "tune"])
def test_every_help_starts_with_examples(eq, command: str) -> None:  # type: ignore[no-untyped-def]
    page = eq(*GROUP, command, "--help").stdout
    assert page.count(f"eq phenotypes extraction {command}") >= 2
    assert "--json" in page


def test_external_predictions_are_scored_with_the_dictionary_baseline(eq) -> None:  # type: ignore[no-untyped-def]
    Path("tool.csv").write_text("doc,term\na,T:02\nb,T:03\nc,T:02\n")
    common = ("--gold", "corpus", "--ontology", "signs.obo", "--n-resamples", "100")
    result = eq(*GROUP, "score", "--predictions", "tool.csv", *common, "--json")
    assert result.exit_code == 0, result.stderr
    assert set(json.loads(result.stdout)["estimates"]) == {"tool", "dict"}
    table_result = eq(*GROUP, "score", "--predictions", "other=tool.csv", *common)
    assert "other" in table_result.stdout
    assert "3 documents without predictions" in table_result.stderr


def test_the_dictionary_is_a_row_of_every_report(eq) -> None:  # type: ignore[no-untyped-def]
    assert "F1 (dict)" in eq(*GROUP, "run", *COMMON, *QUICK).stdout
    content = json.loads(eq(*GROUP, "run", *COMMON[:-1], "dict:", *QUICK, "--json").stdout)
    assert content["dictionary_baseline"] is None


def test_assertions_are_evaluated_on_sentences(eq, folder: Path) -> None:  # type: ignore[no-untyped-def]
    (folder / "cases.txt").write_text("# lists\nNo [fever|n], but [cough|a].\n[Fever|n] is seen.\n")
    content = json.loads(eq(*GROUP, "assertions", "cases.txt", "--json").stdout)
    assert content[0]["accuracy"] == pytest.approx(2 / 3)
    assert [error["finding"] for error in content[0]["errors"]] == ["Fever"]
    assert "lists" in eq(*GROUP, "assertions", "cases.txt", "-v").stdout
