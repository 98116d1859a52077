"""Crashes of a writer at any time leave the old run or the new one."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest

import equipoise
from equipoise.config import StatsConfig
from equipoise.errors import StoreError
from equipoise.evidence.ranking import Ranking
from equipoise.io import atomic
from equipoise.runs.evaluate import evaluate
from equipoise.runs.manifest import Manifest
from equipoise.runs.run_folder import load_run, save_run
from equipoise.stats.result import Result

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.name != "posix", reason="kill -9 and fork are of POSIX"),
]

WRITER = """
import sys
import numpy as np
from dataclasses import replace
from equipoise.config import StatsConfig
from equipoise.evidence.ranking import Ranking
from equipoise.runs.manifest import Manifest
from equipoise.runs.evaluate import evaluate
from equipoise.runs.run_folder import save_run

def versioned(version, units=UNITS):
    ranking = Ranking.from_ranks([2] * units, candidates=9)
    result = evaluate(ranking, "MRR", chance=False, config=StatsConfig(n_resamples=50))
    column = np.full(units, float(version))
    return replace(result, per_unit={"MRR": column}, settings={"version": version})
"""


def start_writer(code: str, *arguments: str, units: int = 40) -> subprocess.Popen[str]:
    source = str(Path(equipoise.__file__).parents[1])
    return subprocess.Popen(
        [sys.executable, "-c", WRITER.replace("UNITS", str(units)) + textwrap.dedent(code), *arguments],
        env={**os.environ, "PYTHONPATH": source, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        text=True,
    )


def consistent_version(path: Path) -> int:
    """The version of the run at a path, which must be equal in all its files."""
    stored = load_run(path)
    assert stored.manifest.complete
    version = stored.result.settings["version"]
    assert set(stored.result.per_unit["MRR"].tolist()) == {float(version)}
    assert stored.manifest.settings["version"] == version
    return int(version)


def small_result(version: int) -> Result:
    result = evaluate(
        Ranking.from_ranks([2] * 5, candidates=9), "MRR", chance=False, config=StatsConfig(n_resamples=50)
    )
    return Result(
        result.system,
        result.unit_ids,
        result.estimates,
        {"MRR": np.full(5, float(version))},
        evidence=result.evidence,
        settings={"version": version},
    )


def test_a_killed_writer_leaves_a_consistent_run(tmp_path: Path) -> None:
    path = tmp_path / "run"
    save_run(path, small_result(0), manifest=Manifest("system"))
    rng = random.Random(7)
    for _ in range(5):
        writer = start_writer(
            """
            result = [versioned(1), versioned(2)]
            print("ready", flush=True)
            count = 0
            while True:
                count += 1
                save_run(sys.argv[1], result[count % 2], manifest=Manifest("system"))
            """,
            str(path),
            units=400,
        )
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
        time.sleep(rng.uniform(0.0, 0.15))
        writer.kill()
        writer.wait()
        writer.stdout.close()
        assert consistent_version(path) in (0, 1, 2)
        for pending in atomic.pending_directories(path):
            manifest = pending / "manifest.json"
            assert not manifest.exists() or json.loads(manifest.read_text())["schema"] == 1
    save_run(path, small_result(3), manifest=Manifest("system"))
    assert consistent_version(path) == 3
    assert [entry.name for entry in tmp_path.iterdir()] == ["run"]


@pytest.mark.parametrize("existing", [True, False], ids=["replacing a run", "a new run"])
def test_a_crash_at_any_step_leaves_the_old_run_or_the_new_one(existing: bool, tmp_path: Path) -> None:
    """Exit a forked writer at its first access to the folder, then at its second, and so on."""
    writer = start_writer(
        """
        import os
        folder, existing = sys.argv[1], sys.argv[2] == "True"
        new, old = versioned(1, 5), versioned(0, 5)
        for step in range(1, 400):
            path = os.path.join(folder, str(step), "run")
            os.makedirs(os.path.dirname(path))
            if existing:
                save_run(path, old, manifest=Manifest("system"))
            if (process := os.fork()) == 0:
                remaining = step
                def exit_at_step(event, arguments):
                    global remaining
                    if any(str(argument).startswith(os.path.dirname(path)) for argument in arguments):
                        remaining -= 1
                        if remaining == 0:
                            os._exit(9)
                sys.addaudithook(exit_at_step)
                save_run(path, new, manifest=Manifest("system"))
                os._exit(0)
            if os.waitpid(process, 0)[1] == 0:
                print(step)
                break
        """,
        str(tmp_path),
        str(existing),
    )
    output, _ = writer.communicate(timeout=60)
    n_steps = int(output)
    assert n_steps > 20
    versions = [version_after_crash(tmp_path / str(step)) for step in range(1, n_steps + 1)]
    old_version = 0 if existing else None
    assert versions == sorted(versions, key=lambda version: version == 1), "later steps never restore the old run"
    assert set(versions) == {old_version, 1}


def version_after_crash(folder: Path) -> int | None:
    """The version after a crash, before and after leftovers are removed."""
    path = folder / "run"
    if atomic.current_path(path).exists():
        version: int | None = consistent_version(path)
    else:
        version = None
        with pytest.raises(StoreError) as error:
            load_run(path)
        assert error.value.code == "E500"
    for pending in atomic.pending_directories(path):
        manifest = pending / "manifest.json"
        if manifest.exists() and version != 1 and not (pending / "evidence.npz").exists():
            assert json.loads(manifest.read_text())["status"] == "partial"
    atomic.remove_leftovers(path)
    if version is None:
        assert list(folder.iterdir()) == []
    else:
        assert [entry.name for entry in folder.iterdir()] == ["run"]
        assert consistent_version(path) == version
    return version


def test_an_interrupt_leaves_the_old_run_and_no_temporary_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "run"
    save_run(path, small_result(0), manifest=Manifest("system"))
    original, calls = atomic.Path.rename, []

    def rename(self: Path, target: Path) -> Path:
        calls.append(self)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return original(self, target)

    monkeypatch.setattr(atomic.Path, "rename", rename)
    with pytest.raises(KeyboardInterrupt):
        save_run(path, small_result(1), manifest=Manifest("system"))
    assert consistent_version(path) == 0
    assert [entry.name for entry in tmp_path.iterdir()] == ["run"]


def test_files_of_a_running_writer_are_not_removed(tmp_path: Path) -> None:
    path = tmp_path / "run"
    with atomic.atomic_directory(path) as part:
        atomic.remove_leftovers(path)
        assert part.is_dir()
        save_run(path, small_result(1), manifest=Manifest("system"))
        (part / "mark").write_text("later")
    assert (path / "mark").read_text() == "later"
    assert [entry.name for entry in tmp_path.iterdir()] == ["run"]


def test_a_run_that_is_being_replaced_can_be_read(tmp_path: Path) -> None:
    path = tmp_path / "run"
    save_run(path, small_result(4), manifest=Manifest("system"))
    path.rename(tmp_path / ".run.00000000-1-00000000.old")
    assert consistent_version(path) == 4


def test_runs_with_a_common_name_prefix_are_distinguished(tmp_path: Path) -> None:
    save_run(tmp_path / "run", small_result(1), manifest=Manifest("system"))
    save_run(tmp_path / "run.v2", small_result(2), manifest=Manifest("system"))
    (tmp_path / "run.v2").rename(tmp_path / ".run.v2.00000000-1-00000000.old")
    (tmp_path / "run").rename(tmp_path / "moved")
    with pytest.raises(StoreError) as error:
        load_run(tmp_path / "run")
    assert error.value.code == "E500"


def test_an_interrupted_first_write_is_mentioned(tmp_path: Path) -> None:
    (tmp_path / ".run.00000000-1-00000000.part").mkdir()
    with pytest.raises(StoreError) as error:
        load_run(tmp_path / "run")
    assert "was interrupted" in error.value.hint
