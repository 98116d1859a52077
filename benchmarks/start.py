"""Start-up time: the import, the help page, the first score of a fresh process."""

from __future__ import annotations

import subprocess
import sys
from importlib.resources import files
from pathlib import Path

from benchmarks.row import Row
from benchmarks.timing import seconds_of

ENGINES = ("torch", "sklearn", "scipy.stats", "networkx", "pandas", "numba")
IMPORT = "import time; t = time.perf_counter(); import equipoise; s = time.perf_counter() - t"
FIRST = """
from equipoise import Ranking, evaluate
print(evaluate(Ranking.from_runs({!r}, {!r}), ["nDCG@10", "MRR"]))
"""


def rows(quick: bool) -> list[Row]:
    """Wall seconds of new processes, with files in the page cache of the system."""
    times = 5 if quick else 15
    samples = files("equipoise") / "io" / "samples"
    first = FIRST.format(str(samples / "truth.qrels"), str(samples / "bm25.trec"))
    command = [str(Path(sys.executable).with_name("eq"))]
    return [
        Row("import equipoise", _import_seconds(times), target=0.15, goal="below"),
        Row("eq --help", seconds_of([*command, "--help"], times=times), target=0.15, goal="below"),
        Row(
            "first score with interval, fresh process, from TREC files",
            seconds_of([sys.executable, "-c", first], times=times),
            target=0.5,
            goal="below",
        ),
    ]


def _import_seconds(times: int) -> float:
    """Import time measured inside the process, without the start of Python; no engine may be imported."""
    program = f"{IMPORT}; import sys; print(s, *(e for e in {ENGINES} if e in sys.modules))"
    seconds = []
    for _ in range(times + 1):
        printed = subprocess.run(
            [sys.executable, "-c", program], check=True, capture_output=True, text=True
        ).stdout.split()
        assert len(printed) == 1, f"import equipoise loads {', '.join(printed[1:])}"
        seconds.append(float(printed[0]))
    return min(seconds[1:])
