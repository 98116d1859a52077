"""What only processes of their own can show: several writers, sudden death, a full disk, no permission."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

import numpy as np
import pytest

import equipoise
from equipoise.models.cache import VectorCache

pytestmark = pytest.mark.slow

MODEL, ROLE = "model", "document|"
BATCH, DIMS = 50, 16

PROGRAM = """
import sys
import numpy as np
from pathlib import Path
from equipoise.models.cache import VectorCache

def vector(text):
    return np.random.default_rng(abs(hash_of(text))).normal(size=16).astype(np.float32)

def hash_of(text):
    return int.from_bytes(text.encode(), "little") % 2**63

def put(cache, texts):
    cache.put_many("model", "document|", texts, np.stack([vector(text) for text in texts]))
"""


def vector(text: str) -> np.ndarray:
    """What the writers compute for a text."""
    seed = int.from_bytes(text.encode(), "little") % 2**63
    return np.random.default_rng(seed).normal(size=DIMS).astype(np.float32)


def environment() -> dict[str, str]:
    source = str(Path(equipoise.__file__).parents[1])
    return {**os.environ, "PYTHONPATH": source, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


def start(code: str, *words: object, **options: object) -> subprocess.Popen[str]:
    program = PROGRAM + textwrap.dedent(code)
    command = [sys.executable, "-c", program, *map(str, words)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(command, env=environment(), **pipes, **options)  # type: ignore[call-overload]


def finished(*processes: subprocess.Popen[str]) -> str:
    """What they said, once all have ended well; every one is waited for before any is judged."""
    ends = [process.communicate(timeout=60) for process in processes]
    for process, (_, complained) in zip(processes, ends, strict=True):
        assert process.returncode == 0, complained
    return "".join(said for said, _ in ends)


def test_several_processes_write_and_read_the_same_new_file(tmp_path: Path) -> None:
    code = """
    cache = VectorCache(sys.argv[1])
    mine = int(sys.argv[2])
    for batch in range(12):
        shared = [f"shared {batch} {number}" for number in range(20)]
        own = [f"{mine} {batch} {number}" for number in range(30)]
        put(cache, shared + own)
        got = cache.get_many("model", "document|", own, 16)
        assert len(got) == 30 and all((got[i] == vector(own[i])).all() for i in range(30))
    assert cache.working and not cache.problems, cache.problems
    assert cache.damaged == 0
    """
    path = tmp_path / "vectors.sqlite"
    finished(*(start(code, path, number) for number in range(4)))
    cache = VectorCache(path)
    texts = [f"{who} {batch} {number}" for who in range(4) for batch in range(12) for number in range(30)]
    texts += [f"shared {batch} {number}" for batch in range(12) for number in range(20)]
    found = cache.lookup(MODEL, ROLE, texts, DIMS)
    assert found.positions.tolist() == list(range(len(texts)))
    assert found.vectors.tobytes() == np.stack([vector(text) for text in texts]).tobytes()
    assert cache.size().vectors == len(texts)
    cache.close()


def test_a_killed_process_loses_at_most_one_batch(tmp_path: Path) -> None:
    code = """
    cache = VectorCache(sys.argv[1])
    for batch in range(100_000):
        put(cache, [f"{batch} {number}" for number in range(50)])
        print(batch, flush=True)
    """
    path = tmp_path / "vectors.sqlite"
    process = start(code, path)
    assert process.stdout is not None
    for line in process.stdout:
        if int(line) >= 20:
            break
    process.send_signal(signal.SIGKILL)
    said = process.communicate(timeout=60)[0]
    assert process.returncode == -signal.SIGKILL
    told = max([20, *(int(line) for line in said.split())])
    cache = VectorCache(path)
    texts = [f"{batch} {number}" for batch in range(told + 1) for number in range(BATCH)]
    got = cache.get_many(MODEL, ROLE, texts, DIMS)
    assert len(got) == len(texts)
    assert all((got[index] == vector(text)).all() for index, text in enumerate(texts))
    assert cache.size().vectors % BATCH == 0
    assert not cache.problems
    cache.close()


def test_processes_that_find_a_damaged_file_together_go_on_together(tmp_path: Path) -> None:
    path = tmp_path / "vectors.sqlite"
    path.write_bytes(b"not a database at all" * 4000)
    code = """
    cache = VectorCache(sys.argv[1])
    for batch in range(10):
        put(cache, [f"{sys.argv[2]} {batch} {number}" for number in range(20)])
    assert cache.working, cache.problems
    """
    finished(*(start(code, path, number) for number in range(6)))
    cache = VectorCache(path)
    texts = [f"{who} {batch} {number}" for who in range(6) for batch in range(10) for number in range(20)]
    for index, row in cache.get_many(MODEL, ROLE, texts, DIMS).items():
        assert row.tobytes() == vector(texts[index]).tobytes()
    assert any(file.read_bytes().startswith(b"not a database") for file in tmp_path.glob("*.damaged-*"))
    cache.close()


def test_a_child_after_a_fork_opens_the_file_for_itself(tmp_path: Path) -> None:
    code = """
    import os
    cache = VectorCache(sys.argv[1])
    put(cache, ["before"])
    child = os.fork()
    put(cache, ["child" if child == 0 else "parent"])
    if child == 0:
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    put(cache, ["after"])
    print(len(cache.get_many("model", "document|", ["before", "child", "parent", "after"], 16)))
    """
    assert finished(start(code, tmp_path / "vectors.sqlite")).split() == ["4"]


def test_a_full_disk_ends_the_caching_and_not_the_run(tmp_path: Path) -> None:
    def little_room() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))

    code = """
    cache = VectorCache(sys.argv[1])
    for batch in range(300):
        put(cache, [f"{batch} {number}" for number in range(50)])
    print(len(cache.problems), cache.working, cache.problems[0].message)
    """
    path = tmp_path / "vectors.sqlite"
    said = finished(start(code, path, preexec_fn=little_room))
    assert said.startswith("1 False it cannot be used")
    cache = VectorCache(path)
    texts = [f"{batch} {number}" for batch in range(300) for number in range(BATCH)]
    got = cache.get_many(MODEL, ROLE, texts, DIMS)
    assert 0 < len(got) < len(texts)
    assert len(got) % BATCH == 0
    assert all((row == vector(texts[index])).all() for index, row in got.items())
    cache.close()


@pytest.mark.parametrize("filled", [False, True], ids=["empty", "filled"])
def test_a_folder_that_may_not_be_written_ends_the_caching_and_not_the_run(filled: bool) -> None:
    code = """
    import os
    vector("a")  # what is imported late is read while it still may be
    if os.getuid() == 0:  # root may write everywhere
        os.setgroups([]), os.setgid(65534), os.setuid(65534)
    cache = VectorCache(sys.argv[1])
    for batch in range(3):
        put(cache, ["a", "b"])
        assert cache.get_many("model", "document|", ["c"], 16) == {}
    print(len(cache.problems), cache.working)
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "vectors.sqlite"
        if filled:
            cache = VectorCache(path)
            cache.put_many(MODEL, ROLE, ["a"], vector("a")[None])
            cache.close()
            path.chmod(0o444)
        Path(folder).chmod(0o555)
        try:
            assert finished(start(code, path)).split() == ["1", "False"]
        finally:
            Path(folder).chmod(0o755)
