"""The cache in several processes: concurrent writers, killed processes, full disks and permissions."""

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
from equipoise.models.vector_cache import VectorCache

pytestmark = pytest.mark.slow

MODEL, ROLE = "model", "document|"
BATCH, DIMS = 50, 16

PROGRAM = """
import sys
import numpy as np
from pathlib import Path
from equipoise.models.vector_cache import VectorCache

def vector(text):
    return np.random.default_rng(abs(hash_of(text))).normal(size=16).astype(np.float32)

def hash_of(text):
    return int.from_bytes(text.encode(), "little") % 2**63

def put(cache, texts):
    cache.put_many("model", "document|", texts, np.stack([vector(text) for text in texts]))
"""


def vector(text: str) -> np.ndarray:
    """The vector that the writer processes compute for a text."""
    seed = int.from_bytes(text.encode(), "little") % 2**63
    return np.random.default_rng(seed).normal(size=DIMS).astype(np.float32)


def environment() -> dict[str, str]:
    source = str(Path(equipoise.__file__).parents[1])
    return {**os.environ, "PYTHONPATH": source, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


def start_process(code: str, *arguments: object, **options: object) -> subprocess.Popen[str]:
    program = PROGRAM + textwrap.dedent(code)
    command = [sys.executable, "-c", program, *map(str, arguments)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(command, env=environment(), **pipes, **options)  # type: ignore[call-overload]


def wait_for_outputs(*processes: subprocess.Popen[str]) -> str:
    """Wait for all processes, check their exit codes, and join their outputs."""
    outputs = [process.communicate(timeout=60) for process in processes]
    for process, (_, error_output) in zip(processes, outputs, strict=True):
        assert process.returncode == 0, error_output
    return "".join(output for output, _ in outputs)


def test_several_processes_write_and_read_one_new_file(tmp_path: Path) -> None:
    code = """
    cache = VectorCache(sys.argv[1])
    number_of_process = int(sys.argv[2])
    for batch in range(12):
        shared = [f"shared {batch} {number}" for number in range(20)]
        texts = [f"{number_of_process} {batch} {number}" for number in range(30)]
        put(cache, shared + texts)
        vectors = cache.get_many("model", "document|", texts, 16)
        assert len(vectors) == 30 and all((vectors[i] == vector(texts[i])).all() for i in range(30))
    assert cache.working and not cache.problems, cache.problems
    assert cache.damaged == 0
    """
    path = tmp_path / "vectors.sqlite"
    wait_for_outputs(*(start_process(code, path, number) for number in range(4)))
    cache = VectorCache(path)
    texts = [
        f"{process_number} {batch} {number}"
        for process_number in range(4)
        for batch in range(12)
        for number in range(30)
    ]
    texts += [f"shared {batch} {number}" for batch in range(12) for number in range(20)]
    result = cache.lookup(MODEL, ROLE, texts, DIMS)
    assert result.positions.tolist() == list(range(len(texts)))
    assert result.vectors.tobytes() == np.stack([vector(text) for text in texts]).tobytes()
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
    process = start_process(code, path)
    assert process.stdout is not None
    for line in process.stdout:
        if int(line) >= 20:
            break
    process.send_signal(signal.SIGKILL)
    output = process.communicate(timeout=60)[0]
    assert process.returncode == -signal.SIGKILL
    last_batch = max([20, *(int(line) for line in output.split())])
    cache = VectorCache(path)
    texts = [f"{batch} {number}" for batch in range(last_batch + 1) for number in range(BATCH)]
    vectors_by_index = cache.get_many(MODEL, ROLE, texts, DIMS)
    assert len(vectors_by_index) == len(texts)
    assert all((vectors_by_index[index] == vector(text)).all() for index, text in enumerate(texts))
    assert cache.size().vectors % BATCH == 0
    assert not cache.problems
    cache.close()


def test_processes_replace_a_damaged_file_concurrently(tmp_path: Path) -> None:
    path = tmp_path / "vectors.sqlite"
    path.write_bytes(b"not a database at all" * 4000)
    code = """
    cache = VectorCache(sys.argv[1])
    for batch in range(10):
        put(cache, [f"{sys.argv[2]} {batch} {number}" for number in range(20)])
    assert cache.working, cache.problems
    """
    wait_for_outputs(*(start_process(code, path, number) for number in range(6)))
    cache = VectorCache(path)
    texts = [
        f"{process_number} {batch} {number}"
        for process_number in range(6)
        for batch in range(10)
        for number in range(20)
    ]
    for index, row in cache.get_many(MODEL, ROLE, texts, DIMS).items():
        assert row.tobytes() == vector(texts[index]).tobytes()
    assert any(file.read_bytes().startswith(b"not a database") for file in tmp_path.glob("*.damaged-*"))
    cache.close()


def test_forked_processes_open_the_file_again(tmp_path: Path) -> None:
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
    assert wait_for_outputs(start_process(code, tmp_path / "vectors.sqlite")).split() == ["4"]


def test_a_full_disk_disables_the_cache(tmp_path: Path) -> None:
    def limit_file_size() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))

    code = """
    cache = VectorCache(sys.argv[1])
    for batch in range(300):
        put(cache, [f"{batch} {number}" for number in range(50)])
    print(len(cache.problems), cache.working, cache.problems[0].message)
    """
    path = tmp_path / "vectors.sqlite"
    output = wait_for_outputs(start_process(code, path, preexec_fn=limit_file_size))
    assert output.startswith("1 False it cannot be used")
    cache = VectorCache(path)
    texts = [f"{batch} {number}" for batch in range(300) for number in range(BATCH)]
    vectors_by_index = cache.get_many(MODEL, ROLE, texts, DIMS)
    assert 0 < len(vectors_by_index) < len(texts)
    assert len(vectors_by_index) % BATCH == 0
    assert all((row == vector(texts[index])).all() for index, row in vectors_by_index.items())
    cache.close()


@pytest.mark.parametrize("filled", [False, True], ids=["empty", "filled"])
def test_read_only_folders_disable_the_cache(filled: bool) -> None:
    code = """
    import os
    vector("a")  # import all modules before the permissions change
    if os.getuid() == 0:  # root may write to every folder
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
            assert wait_for_outputs(start_process(code, path)).split() == ["1", "False"]
        finally:
            Path(folder).chmod(0o755)
