"""Whatever moment a writer dies at, the old run or the new one stands there."""

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


def child(code: str, *arguments: str, units: int = 40) -> subprocess.Popen[str]:
    source = str(Path(equipoise.__file__).parents[1])
    return subprocess.Popen(
        [sys.executable, "-c", WRITER.replace("UNITS", str(units)) + textwrap.dedent(code), *arguments],
        env={**os.environ, "PYTHONPATH": source, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        text=True,
    )


def whole_version(path: Path) -> int:
    """The version of the run at a path, which must be one and the same in all its files."""
    stored = load_run(path)
    assert stored.manifest.complete
    version = stored.result.settings["version"]
    assert set(stored.result.per_unit["MRR"].tolist()) == {float(version)}
    assert stored.manifest.settings["version"] == version
    return int(version)


def small(version: int) -> Result:
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


def test_a_writer_that_is_killed_leaves_a_whole_run(tmp_path: Path) -> None:
    path = tmp_path / "run"
    save_run(path, small(0), manifest=Manifest("system"))
    moments = random.Random(7)
    for _ in range(5):
        writer = child(
            """
            result = [versioned(1), versioned(2)]
            print("ready", flush=True)
            turn = 0
            while True:
                turn += 1
                save_run(sys.argv[1], result[turn % 2], manifest=Manifest("system"))
            """,
            str(path),
            units=400,
        )
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
        time.sleep(moments.uniform(0.0, 0.15))
        writer.kill()
        writer.wait()
        writer.stdout.close()
        assert whole_version(path) in (0, 1, 2)
        for begun in atomic.pending_directories(path):
            manifest = begun / "manifest.json"
            assert not manifest.exists() or json.loads(manifest.read_text())["schema"] == 1
    save_run(path, small(3), manifest=Manifest("system"))
    assert whole_version(path) == 3
    assert [each.name for each in tmp_path.iterdir()] == ["run"]


@pytest.mark.parametrize("existing", [True, False], ids=["replacing a run", "a new run"])
def test_a_crash_at_any_step_leaves_the_old_run_or_the_new_one(existing: bool, tmp_path: Path) -> None:
    """A forked writer dies at its first access to the folder, then at its second, and so on."""
    writer = child(
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
                left = step
                def die(event, arguments):
                    global left
                    if any(str(each).startswith(os.path.dirname(path)) for each in arguments):
                        left -= 1
                        if left == 0:
                            os._exit(9)
                sys.addaudithook(die)
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
    last = int(output)
    assert last > 20
    seen = [outcome(tmp_path / str(step)) for step in range(1, last + 1)]
    before = 0 if existing else None
    assert seen == sorted(seen, key=lambda version: version == 1), "the new run appears once and stays"
    assert set(seen) == {before, 1}


def outcome(folder: Path) -> int | None:
    """The version that stands after a crash, before and after the next writer has tidied up."""
    path = folder / "run"
    if atomic.current_path(path).exists():
        version: int | None = whole_version(path)
    else:
        version = None
        with pytest.raises(StoreError, match="there is no run directory"):
            load_run(path)
    for begun in atomic.pending_directories(path):
        manifest = begun / "manifest.json"
        if manifest.exists() and version != 1 and not (begun / "evidence.npz").exists():
            assert json.loads(manifest.read_text())["status"] == "partial"
    atomic.remove_leftovers(path)
    if version is None:
        assert list(folder.iterdir()) == []
    else:
        assert [each.name for each in folder.iterdir()] == ["run"]
        assert whole_version(path) == version
    return version


def test_an_interrupt_leaves_the_old_run_and_no_litter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "run"
    save_run(path, small(0), manifest=Manifest("system"))
    real, calls = atomic.Path.rename, []

    def rename(self: Path, target: Path) -> Path:
        calls.append(self)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return real(self, target)

    monkeypatch.setattr(atomic.Path, "rename", rename)
    with pytest.raises(KeyboardInterrupt):
        save_run(path, small(1), manifest=Manifest("system"))
    assert whole_version(path) == 0
    assert [each.name for each in tmp_path.iterdir()] == ["run"]


def test_the_work_of_a_living_writer_is_not_cleaned_up(tmp_path: Path) -> None:
    path = tmp_path / "run"
    with atomic.atomic_directory(path) as part:
        atomic.remove_leftovers(path)
        assert part.is_dir()
        save_run(path, small(1), manifest=Manifest("system"))
        (part / "mark").write_text("later")
    assert (path / "mark").read_text() == "later"
    assert [each.name for each in tmp_path.iterdir()] == ["run"]


def test_a_run_that_stepped_aside_is_still_read(tmp_path: Path) -> None:
    path = tmp_path / "run"
    save_run(path, small(4), manifest=Manifest("system"))
    path.rename(tmp_path / ".run.00000000-1-00000000.old")
    assert whole_version(path) == 4


def test_runs_whose_names_begin_alike_are_kept_apart(tmp_path: Path) -> None:
    save_run(tmp_path / "run", small(1), manifest=Manifest("system"))
    save_run(tmp_path / "run.v2", small(2), manifest=Manifest("system"))
    (tmp_path / "run.v2").rename(tmp_path / ".run.v2.00000000-1-00000000.old")
    (tmp_path / "run").rename(tmp_path / "elsewhere")
    with pytest.raises(StoreError, match="there is no run directory"):
        load_run(tmp_path / "run")


def test_an_interrupted_first_write_is_mentioned(tmp_path: Path) -> None:
    (tmp_path / ".run.00000000-1-00000000.part").mkdir()
    with pytest.raises(StoreError) as caught:
        load_run(tmp_path / "run")
    assert "was interrupted" in caught.value.hint
