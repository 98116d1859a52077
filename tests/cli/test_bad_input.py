"""Bad input: an error with a code and a hint, exit status 2, nothing written, no traceback."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

RUN = "q00 Q0 d1 1 0.5 tag\n"

# The content of a run file, the error code, and a text of the message.
BAD_RUNS = {
    "wrong field count": ("q00 Q0 d1 1 0.5\n", "E204", "line 1"),
    "no number": ("q00 Q0 d1 1 high tag\n", "E204", "'high'"),
    "NaN score": (f"{RUN}q00 Q0 d2 2 nan tag\n", "E207", "line 2"),
    "duplicate id": (RUN * 2, "E205", "lines 1 and 2"),
    "empty": ("", "E200", "x.trec"),
    "blank": ("\n \n", "E200", "x.trec"),
    "not UTF-8": (b"q00 Q0 \xff\xfe 1 0.5 tag\n", "E204", "line 1"),
    "binary": (b"q00\0\0", "E204", "NUL"),
    "other queries": ("z Q0 d1 1 0.5 tag\n", "E200", "'z'"),
}


@pytest.mark.parametrize("name", BAD_RUNS)
def test_a_bad_run_is_reported_with_file_and_line(eq, assert_error, folder: Path, name: str) -> None:
    content, code, expected_text = BAD_RUNS[name]
    (folder / "x.trec").write_bytes(content if isinstance(content, bytes) else content.encode())
    assert_error(eq("score", "x.trec", "--qrels", "truth.qrels", "-o", "results"), code, "x.trec", expected_text)
    assert not (folder / "results").exists()
    assert_error(eq("compare", "good.trec", "x.trec", "--qrels", "truth.qrels"), code, "x.trec", expected_text)


def test_one_bad_run_among_good_ones_writes_nothing(eq, assert_error, folder: Path) -> None:
    (folder / "x.trec").write_text("q00 Q0 d1 1 0.5\n")
    assert_error(eq("score", "good.trec", "x.trec", "--qrels", "truth.qrels", "-o", "results"), "E204")
    assert not (folder / "results").exists()


@pytest.mark.parametrize(
    ("arguments", "code", "expected_text"),
    [
        (("-m", "nDGC@10"), "E300", "nDCG"),
        (("-m", "nDCG@-3"), "E310", "nDCG@-3"),
        (("-m", "nDCG@ten"), "E310", "'ten'"),
        (("-m", "nDCG(gian=exp)@10"), "E300", "gain"),
        (("-m", "HR"), "E310", "HR@10"),
        (("-m", "Silhouette"), "E310", "ranking"),
        (("-m", "@"), "E310", "'@'"),
        (("--ties", "expcted"), "E300", "expected"),
        (("--confidence-level", "95"), "E310", "0.95"),
        (("--n-resamples", "0"), "E100", "--n-resamples"),
        (("--n-resamples", "39"), "E310", "--n-resamples 39"),
        (("--n-resamples", "100", "--confidence-level", "0.99"), "E310", "at least 200"),
        (("--seed", "-1"), "E100", "--seed"),
        (("--seed", "x"), "E100", "--seed"),
        (("--corpus-size", "2"), "E310", "corpus_size"),
        (("--qrel", "x"), "E100", "--qrels"),
        (("--plugin", "none.py"), "E200", "none.py"),
        (("--cluster", "units.csv"), "E310", "--cluster units.csv"),
        (("--cluster", "none.csv:x"), "E200", "none.csv"),
        (("--cluster-by", "("), "E310", "--cluster-by ("),
        (("--cluster-by", "zz"), "E200", "q00"),
        (("--cluster-by", "^(x*)"), "E200", "q00"),
        (("--cluster", "a.csv:x", "--cluster-by", "q"), "E310", "--cluster-by"),
        (("-o", "truth.qrels"), "E500", "truth.qrels"),
        (("sub/good.trec",), "E205", "good-2=sub/good.trec"),
        (("..=good.trec",), "E310", "'..'"),
        (("--fail-on", "isue"), "E300", "issue"),
        (("--device", "nonsense"), "E300", "nonsense"),
    ],
)
def test_bad_options_are_reported(
    eq, assert_error, folder: Path, arguments: tuple[str, ...], code: str, expected_text: str
) -> None:
    np.save(folder / "x.npy", np.eye(2))
    np.save(folder / "y.npy", np.arange(2))
    system = ("x.npy", "--targets", "y.npy") if "--device" in arguments else ("good.trec", "--qrels", "truth.qrels")
    assert_error(eq("score", *system, *arguments), code, expected_text)


@pytest.mark.parametrize(
    ("arguments", "code", "expected_text"),
    [
        (("score",), "E310", "eq score a.trec"),
        (("score", "good.trec"), "E310", "--qrels"),
        (("score", "none.trec", "--qrels", "truth.qrels"), "E200", "none.trec"),
        (("score", "god.trec", "--qrels", "truth.qrels"), "E200", "good.trec"),
        (("score", "good.trec", "--qrels", "."), "E200", "good.trec"),
        (("score", ".", "--qrels", "truth.qrels"), "E200", "good.trec"),
        (("score", "truth.qrels", "--qrels", "good.trec"), "E204", "good.trec"),
        (("compare", "good.trec", "--qrels", "truth.qrels"), "E310", "eq compare a.trec b.trec"),
        (("compare", "good.trec", "good.trec", "--qrels", "truth.qrels"), "E205", "good-2=good.trec"),
        (("compare", "a", "b", "--test", "wilcxon"), "E300", "wilcoxon"),
        (("compare", "a", "b", "--correction", "hom"), "E300", "holm"),
        (("compare", "a", "b", "-o", "table.docx"), "E310", ".tex"),
        (("compare", "a", "b", "-o", "no/such/table.md"), "E500", "no/such"),
        (("ls", "metrics", "--kind", "rankng"), "E300", "ranking"),
        (("explain", "nDGC"), "E300", "nDCG"),
        (("explain", "nDGC@10"), "E300", "nDCG"),
        (("explain", "P(no)@5"), "E300", "'no'"),
        (("explain", "EQ999"), "E300", "EQ999"),
        (("explain", "E999"), "E300", "E999"),
        (("completion", "bsh"), "E300", "bash"),
        (("--nonsense",), "E100", "--nonsense"),
    ],
)
def test_bad_commands_are_reported(eq, assert_error, arguments: tuple[str, ...], code: str, expected_text: str) -> None:
    assert_error(eq(*arguments), code, expected_text)


@pytest.mark.parametrize(
    ("scores", "targets", "code", "expected_text"),
    [
        (np.zeros((3, 2)), np.zeros(2, dtype=int), "E206", "y.npy"),
        (np.zeros((3, 2)), np.zeros(3), "E200", "float64"),
        (np.zeros((3, 2)), np.full(3, 7), "E200", "x.npy: target 7"),
        (np.array([[1.0, np.nan]]), np.zeros(1, dtype=int), "E207", "x.npy"),
        (np.array([[1.0, np.nan]]), np.zeros(1, dtype=int), "E207", "--padding COLUMN"),
        (np.zeros(3), np.zeros(3, dtype=int), "E206", "(3,)"),
        (np.zeros((0, 2)), np.zeros(0, dtype=int), "E206", "(0, 2)"),
    ],
)
def test_arrays_that_do_not_fit_are_reported(
    eq, assert_error, folder: Path, scores: np.ndarray, targets: np.ndarray, code: str, expected_text: str
) -> None:
    np.save(folder / "x.npy", scores)
    np.save(folder / "y.npy", targets)
    assert_error(eq("score", "x.npy", "--targets", "y.npy", "-m", "HR@1"), code, expected_text)


def test_logits_need_targets(eq, assert_error, folder: Path) -> None:
    np.save(folder / "x.npy", np.zeros((3, 2)))
    assert_error(eq("score", "x.npy"), "E310", "--targets")
    assert_error(eq("score", "x.npy", "--qrels", "truth.qrels"), "E310", "--targets")


@pytest.mark.parametrize(
    ("file", "table", "code", "expected_text"),
    [
        ("units.csv", "query_id,group\nq00,a\n", "E200", "11 of 12"),
        ("units.csv", "name,group\nq00,a\n", "E204", "name, group"),
        ("units.csv", "query_id,group\nq00,a\nq00,b\n", "E205", "line 3"),
        ("units.csv", "query_id,grop\nq00,a\n", "E204", "grop"),
        ("units.csv", "query_id,group\nq00,a\nq01,\nq02, \n", "E200", "line 3 has no value in the column group"),
        ("units.jsonl", '{"query_id": "q00", "group": null}', "E200", "line 1 has no value"),
        ("units.jsonl", '{"query_id": "q00", "group": "a"}\n{"group": "b"}', "E204", "line 2 has no column query_id"),
    ],
)
def test_cluster_tables_that_do_not_fit_are_reported(
    eq, assert_error, folder: Path, file: str, table: str, code: str, expected_text: str
) -> None:
    (folder / file).write_text(table)
    assert_error(eq("score", "good.trec", "--qrels", "truth.qrels", "--cluster", f"{file}:group"), code, expected_text)


def test_errors_are_json_when_the_output_is_json(eq) -> None:
    for arguments in (
        ("score", "--json", "--to", "csv", "good.trec", "--qrels", "truth.qrels"),
        ("score", "--json", "x", "--qrels", "y"),
        ("score", "--to", "json", "x", "--qrels", "y"),
        ("compare", "--json", "--tset", "t"),
    ):
        result = eq(*arguments)
        error = json.loads(result.stderr)["error"]
        assert result.exit_code == error["exit_code"] == 2
        assert error["message"]
        assert error["hint"]


def test_a_missing_package_is_reported_with_its_install_command(eq, folder: Path, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    (folder / "run.parquet").write_bytes(b"PAR1")
    result = eq("score", "run.parquet", "--qrels", "truth.qrels")
    assert result.exit_code == 4
    assert "pip install " in result.stderr


def test_an_unexpected_error_is_one_line_and_a_traceback_only_with_verbose(eq, monkeypatch) -> None:
    def fail(*args: object, **options: object) -> None:
        raise KeyError("lost")

    monkeypatch.setattr("equipoise.cli.inputs.streamed_ranking", fail)
    arguments = ("score", "good.trec", "--qrels", "truth.qrels")
    result = eq(*arguments)
    assert result.exit_code == 70
    assert "KeyError: 'lost'" in result.stderr
    assert "Traceback" not in result.stderr
    assert "Traceback" in eq(*arguments, "-v").stderr
    assert json.loads(eq(*arguments, "--json").stderr)["error"]["code"] == "unexpected"
