"""Whatever is wrong with the input: a sentence, a hint, exit 2, nothing written, no traceback."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

RUN = "q00 Q0 d1 1 0.5 tag\n"

BAD_RUNS = {
    "wrong field count": ("q00 Q0 d1 1 0.5\n", "line 1 has 5 fields"),
    "no number": ("q00 Q0 d1 1 high tag\n", "line 1 has the score 'high'"),
    "NaN score": (f"{RUN}q00 Q0 d2 2 nan tag\n", "line 2 has the score nan"),
    "duplicate id": (RUN * 2, "lines 1 and 2 both give document d1 for query q00"),
    "empty": ("", "x.trec is empty"),
    "blank": ("\n \n", "x.trec"),
    "not UTF-8": (b"q00 Q0 \xff\xfe 1 0.5 tag\n", "x.trec is not UTF-8: line 1"),
    "binary": (b"q00\0\0", "NUL byte"),
    "other queries": ("z Q0 d1 1 0.5 tag\n", "no query in common: 'z' in the one, 'q00' in the other"),
}


def refused(done, *, code: str = "error[") -> str:
    """The error of a command that must have been refused in the proper form."""
    assert done.exit_code == 2, done.output
    assert done.stderr.startswith(code), done.stderr
    assert "Traceback" not in done.output
    assert done.stdout == ""
    return done.stderr


@pytest.mark.parametrize("name", BAD_RUNS)
def test_a_bad_run_is_explained_with_file_and_line(eq, folder: Path, name: str) -> None:
    content, fact = BAD_RUNS[name]
    (folder / "x.trec").write_bytes(content if isinstance(content, bytes) else content.encode())
    error = refused(eq("score", "--run", "x.trec", "--qrels", "truth.qrels", "-o", "results"))
    assert fact in error
    assert not (folder / "results").exists()
    other = refused(eq("compare", "good.trec", "x.trec", "--qrels", "truth.qrels"))
    assert fact in other


def test_one_bad_run_among_good_ones_leaves_nothing_behind(eq, folder: Path) -> None:
    (folder / "x.trec").write_text("q00 Q0 d1 1 0.5\n")
    words = ("--run", "good.trec", "--run", "x.trec", "--qrels", "truth.qrels", "-o", "results")
    refused(eq("score", *words))
    assert not (folder / "results").exists()


@pytest.mark.parametrize(
    ("words", "fact"),
    [
        (("-m", "nDGC@10"), "no metric is called 'nDGC'\nhint: did you mean nDCG?"),
        (("-m", "nDCG@-3"), "cutoff below 1"),
        (("-m", "nDCG@ten"), "no whole number"),
        (("-m", "nDCG(gian=exp)@10"), "did you mean gain?"),
        (("-m", "HR"), "needs a cutoff"),
        (("-m", "Silhouette"), "is a metric of space evidence, and this is ranking evidence"),
        (("-m", "@"), "is not spelled like a metric"),
        (("--ties", "expcted"), "did you mean expected?"),
        (("--confidence-level", "95"), "is not between 0 and 1"),
        (("--n-resamples", "0"), "'--n-resamples': 0 is not in the range"),
        (("--seed", "-1"), "--seed"),
        (("--seed", "x"), "is not a valid integer"),
        (("--corpus-size", "2"), "a corpus of 2 items cannot give a list of 5"),
        (("--qrel", "x"), "has no option --qrel\nhint: did you mean --qrels?"),
        (("--plugin", "none.py"), "there is no plugin file none.py"),
        (("--cluster", "units.csv"), "names no column"),
        (("--cluster", "none.csv:x"), "there is no file none.csv"),
        (("--cluster-by", "("), "is no regular expression"),
        (("--cluster-by", "zz"), "does not match the unit q00"),
        (("--cluster", "a.csv:x", "--cluster-by", "q"), "were both given"),
        (("-o", "truth.qrels"), "is a file, not a folder"),
        (("--run", "sub/good.trec"), "would both be called good"),
        (
            ("--run", "..=good.trec"),
            "'..' cannot be the name of a system\nhint: write NAME=path, with a name",
        ),
        (("--fail-on", "isue"), "did you mean issue?"),
    ],
)
def test_bad_options_are_explained(eq, words: tuple[str, ...], fact: str) -> None:
    assert fact in refused(eq("score", "--run", "good.trec", "--qrels", "truth.qrels", *words))


@pytest.mark.parametrize(
    ("words", "fact"),
    [
        (("score",), "there is nothing to score"),
        (("score", "--run", "good.trec"), "need a truth"),
        (("score", "--run", "none.trec", "--qrels", "truth.qrels"), "there is no file none.trec"),
        (("score", "--run", "god.trec", "--qrels", "truth.qrels"), "did you mean good.trec"),
        (("score", "--run", "good.trec", "--qrels", "."), ". is a folder, where a file should be"),
        (("score", "--run", ".", "--qrels", "truth.qrels"), ". is a folder, where a file should be"),
        (("score", "--run", "truth.qrels", "--qrels", "good.trec"), "were the run and the qrels swapped?"),
        (("compare", "good.trec", "good.trec", "--qrels", "truth.qrels"), "would both be called good"),
        (("compare", "a", "b", "--test", "wilcxon"), "did you mean wilcoxon?"),
        (("compare", "a", "b", "--correction", "hom"), "did you mean holm?"),
        (("compar",), "no command is called 'compar'\nhint: did you mean compare?"),
        (("ls", "metrcs"), "did you mean metrics?"),
        (("ls", "metrics", "--kind", "rankng"), "did you mean ranking?"),
        (("explain", "nDGC"), "did you mean nDCG"),
        (("explain", "nDGC@10"), "is called 'nDGC'\nhint: did you mean nDCG?"),
        (("explain", "P(no)@5"), "P has no parameter 'no'"),
        (("explain", "EQ999"), "no check is called 'EQ999'"),
        (("explain", "E999"), "no error is called 'E999'"),
        (("explain",), "missing argument"),
        (("completion", "bsh"), "did you mean bash"),
        (("--nonsense",), "has no option --nonsense"),
    ],
)
def test_bad_commands_are_explained(eq, words: tuple[str, ...], fact: str) -> None:
    assert fact in refused(eq(*words))


@pytest.mark.parametrize(
    ("scores", "targets", "fact"),
    [
        (np.zeros((3, 2)), np.zeros(2, dtype=int), "y.npy has 2 targets for 3 rows in x.npy"),
        (np.zeros((3, 2)), np.zeros(3), "y.npy holds float64 values, where column numbers are needed"),
        (np.zeros((3, 2)), np.full(3, 7), "x.npy: target 7 of unit 0 is not a column"),
        (np.array([[1.0, np.nan]]), np.zeros(1, dtype=int), "x.npy: the scores of unit 0"),
        (np.array([[1.0, np.nan]]), np.zeros(1, dtype=int), "no class with --padding COLUMN"),
        (np.zeros(3), np.zeros(3, dtype=int), "x.npy has shape (3,); 2 dimensions are needed"),
        (np.zeros((0, 2)), np.zeros(0, dtype=int), "there is nothing in it"),
    ],
)
def test_arrays_that_do_not_fit_are_explained(eq, folder: Path, scores, targets, fact: str) -> None:
    np.save(folder / "x.npy", scores)
    np.save(folder / "y.npy", targets)
    assert fact in refused(eq("score", "--logits", "x.npy", "--targets", "y.npy", "-m", "HR@1"))


def test_a_file_for_the_other_option_is_recognised(eq, folder: Path) -> None:
    np.save(folder / "x.npy", np.zeros((3, 2)))
    assert "write --logits x.npy" in refused(eq("score", "--run", "x.npy", "--qrels", "truth.qrels"))
    assert "write --run good.trec" in refused(eq("score", "--logits", "good.trec", "--targets", "x.npy"))
    assert "need targets" in refused(eq("score", "--logits", "x.npy"))


@pytest.mark.parametrize(
    ("table", "fact"),
    [
        ("query_id,group\nq00,a\n", "has no cluster for 11 of 12 units"),
        ("name,group\nq00,a\n", "has no column of unit ids"),
        ("query_id,group\nq00,a\nq00,b\n", "line 3 puts the unit q00 into a second cluster"),
        ("query_id,grop\nq00,a\n", "did you mean grop?"),
    ],
)
def test_cluster_tables_that_do_not_fit_are_explained(eq, folder: Path, table: str, fact: str) -> None:
    (folder / "units.csv").write_text(table)
    words = ("score", "--run", "good.trec", "--qrels", "truth.qrels", "--cluster", "units.csv:group")
    assert fact in refused(eq(*words))


def test_errors_are_json_where_data_is(eq) -> None:
    for words in (("score", "--json", "--run", "x", "--qrels", "y"), ("compare", "--json", "--tset", "t")):
        done = eq(*words)
        error = json.loads(done.stderr)["error"]
        assert done.exit_code == error["exit_code"] == 2
        assert error["message"]
        assert error["hint"]


def test_a_missing_engine_is_named_with_its_install_line(eq, folder: Path, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    (folder / "run.parquet").write_bytes(b"PAR1")
    done = eq("score", "--run", "run.parquet", "--qrels", "truth.qrels")
    assert done.exit_code == 4
    assert "pip install " in done.stderr


def test_a_fault_of_ours_is_one_line_and_a_traceback_only_when_asked(eq, monkeypatch) -> None:
    def fail(*args: object, **options: object) -> None:
        raise KeyError("lost")

    monkeypatch.setattr("equipoise.cli.inputs.read_qrels", fail)
    words = ("score", "--run", "good.trec", "--qrels", "truth.qrels")
    done = eq(*words)
    assert done.exit_code == 70
    assert "error: unexpected KeyError: 'lost'" in done.stderr
    assert "Traceback" not in done.stderr
    assert "Traceback" in eq(*words, "-v").stderr
    assert json.loads(eq(*words, "--json").stderr)["error"]["code"] == "unexpected"
