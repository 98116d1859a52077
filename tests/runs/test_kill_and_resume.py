"""A command killed between two models: repeating it loads the first model and computes the second."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import equipoise
from cluster_cells import wait_for
from fair_sample import document, pairs
from toy_ontology import obo

pytestmark = [pytest.mark.slow, pytest.mark.skipif(os.name != "posix", reason="kill -9 is of POSIX")]

WAITING_MODEL = """
import time
from pathlib import Path

class Model:
    def encode(self, texts):
        Path("waiting").touch()
        while not Path("gate").exists():
            time.sleep(0.02)
        return [[float(text.count(letter) + 1) for letter in "aeiou"] for text in texts]

model = Model()
"""
FAIR = "fair compare --doc document.md --qa fixture.json --chunk-sizes 16 --overlaps 0 --top-k 1 --tokenizer words"
CONCEPTS = "concepts run --data pairs.json --n-resamples 40"
PHENOTYPES = "--ontology toy.obo --n-resamples 40"
COMMANDS = {
    "fair": f"{FAIR} --models hash py:waiting_model.model -o out",
    "concepts": f"{CONCEPTS} --models hash py:waiting_model.model -o out",
    "benchmark": f"phenotypes benchmark run --data cases.json --models hash py:waiting_model.model {PHENOTYPES} -o out",
    "tuning": "phenotypes extraction tune notes.json --models hash py:waiting_model.model --n-folds 2 --n-trials 3 "
    f"{PHENOTYPES} -o out",
}


@pytest.fixture
def inputs(tmp_path: Path) -> Path:
    """The files of all commands."""
    (tmp_path / "waiting_model.py").write_text(WAITING_MODEL)
    (tmp_path / "document.md").write_text(document())
    (tmp_path / "fixture.json").write_text(json.dumps(pairs(document())))
    rows = [{"concept_1": f"rye {n}", "concept_2": f"bread {n % 5}", "expected_similarity": n / 20} for n in range(20)]
    (tmp_path / "pairs.json").write_text(json.dumps(rows))
    obo(tmp_path / "toy.obo")
    terms = ["T:2", "T:3", "T:4"]
    cases = [{"text": f"finding {number}", "hpo_ids": [term]} for number, term in enumerate(terms)]
    (tmp_path / "cases.json").write_text(json.dumps(cases))
    notes = [
        {"doc_id": f"d{number}", "full_text": f"Finding {number}.", "annotations": [{"hpo_id": term}], "language": "en"}
        for number, term in enumerate(terms * 2)
    ]
    (tmp_path / "notes.json").write_text(json.dumps(notes))
    return tmp_path


def start(command: str, folder: Path) -> subprocess.Popen[str]:
    """Start the command in a separate process."""
    source = str(Path(equipoise.__file__).parents[1])
    return subprocess.Popen(
        [sys.executable, "-m", "equipoise", *command.split()],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([source, str(folder)]), "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("name", COMMANDS)
def test_a_killed_command_resumes(name: str, inputs: Path) -> None:
    if name == "concepts":
        pytest.importorskip("sklearn")
    killed = start(COMMANDS[name], inputs)
    try:
        wait_for(inputs / "waiting")
    finally:
        killed.kill()
        killed.communicate()
    assert list((inputs / "out").rglob("*.npz"))
    if name == "fair":
        printed, messages = start("report out --no-charts", inputs).communicate(timeout=120)
        assert "Incomplete: the last command was interrupted" in messages
        assert "Incomplete: the last command was interrupted" in (inputs / "report.html").read_text()
    (inputs / "gate").touch()
    resumed = start(COMMANDS[name], inputs)
    printed, messages = resumed.communicate(timeout=120)
    assert resumed.returncode == 0, messages
    assert "hash: loaded from out, not computed again" in messages
    assert "py:waiting_model.model: loaded" not in messages
    assert "waiting_model" in printed
    if name == "fair":
        printed, messages = start("report out --no-charts", inputs).communicate(timeout=120)
        assert "Incomplete" not in messages
