"""Stored runs with special characters in their names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from equipoise.config import StatsConfig
from equipoise.evidence.ranking import Ranking
from equipoise.runs.compare import compare
from equipoise.runs.evaluate import evaluate
from equipoise.runs.manifest import Manifest, Status
from equipoise.runs.run_folder import StoredRun, load_run, save_run
from equipoise.runs.unit_table import UnitContent
from equipoise.stats.comparison import Comparison

HOSTILE = (
    "R&D_50% #1 {x} ~^\\ $a$",
    "[first]",
    "*star*, \"quoted\", 'single'",
    "line\nbreak\r\nand\ttab",
    "<script>alert(1)</script>|pipe`code`",
    "- item: yes @me --- &amp; !important",
    "1. Ångström ß «ą» 日本 😀 \u200b\u2028x",
)
METRICS = ("MRR", "MR", "HR@1")


@dataclass(frozen=True)
class Exported:
    """Runs and their comparison, the inputs of exporters."""

    runs: tuple[StoredRun, ...]
    comparison: Comparison | None


RunMaker = Callable[..., Exported]


@pytest.fixture
def make_runs(tmp_path: Path) -> RunMaker:
    """Return a function that stores runs of systems on the same units, each worse than the one before."""

    def make(
        names: Sequence[str],
        *,
        metrics: Sequence[str] = METRICS,
        units: int = 40,
        partial: Sequence[str] = (),
        primary: str | None = None,
        details: dict[str | int, UnitContent] | None = None,
    ) -> Exported:
        rng = np.random.default_rng(7)
        runs = []
        for index, name in enumerate(names):
            ranks = rng.integers(1, 4 + 2 * index, units)
            evidence = Ranking.from_ranks(ranks, candidates=200)
            result = evaluate(evidence, metrics, system=name, config=StatsConfig(n_resamples=200))
            status = Status.PARTIAL if name in partial else Status.COMPLETE
            manifest = Manifest(name, status=status, reason="out of time", datasets={"data/truth.qrels": "ab12"})
            path = save_run(tmp_path / str(index), result, manifest=manifest, details=details)
            runs.append(load_run(path))
        comparison = None
        if len(runs) > 1:
            comparison = compare(
                [run.result for run in runs], primary=primary, config=StatsConfig(n_resamples=200, n_permutations=500)
            )
        return Exported(tuple(runs), comparison)

    return make


@pytest.fixture
def hostile() -> tuple[str, ...]:
    """Names with special characters of LaTeX, Markdown, YAML, CSV and HTML."""
    return HOSTILE
