"""Texts with injected markup, and runs in which every text contains one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from equipoise.config import StatsConfig
from equipoise.report.answer import Answer
from equipoise.report.terminal import ReportColumn
from equipoise.report.view import ReportTable, Section, View
from equipoise.runs.manifest import Manifest
from equipoise.runs.run_folder import StoredRun, load_run, save_run
from equipoise.runs.unit_table import RetrievedItem, UnitContent
from equipoise.stats.estimate import result_from_values
from equipoise.tuning.grid import FoldSelection, Trial, TuningRecord
from equipoise.types import Finding, Severity

FLAG = "broken"
"""The property of ``window`` that an executed text would set."""

HOSTILE = (
    f"<script>window.{FLAG}=1</script>",
    f"</script><script>window.{FLAG}=1</script>",
    f"</title></style></textarea><img src=x onerror=window.{FLAG}=1>",
    f"javascript:window.{FLAG}=1",
    f"\"' onmouseover=window.{FLAG}=1 x='",
    f"<svg onload=window.{FLAG}=1><b>bold</b></svg>",
    "\u202eright to left\u202c שלום مرحبا",
    "👩\u200d🔬🏳️\u200d🌈 e\u0301\u0301\u0301",
    f"{{{{ 7 * 7 }}}} ${{window.{FLAG}=1}} <!-- -->",
    "\u2028\u2029 &lt;b&gt; &amp; ]]> --> \\u003c",
    "word" * 2500,
)


SYSTEMS = ("".join(HOSTILE[:4]), "".join(HOSTILE[4:7]), "".join(HOSTILE[7:10]), HOSTILE[10])


def hostile_runs(folder: Path, units: int = 44) -> list[StoredRun]:
    """Runs whose systems, units, texts, slices, parameters, costs and findings are all hostile texts."""
    rng = np.random.default_rng(0)
    ids = [f"{HOSTILE[index % len(HOSTILE)]} {index}" for index in range(units)]
    runs = []
    for index, system in enumerate(SYSTEMS):
        values = {f"HR {HOSTILE[0]}": rng.random(units) < 0.5 + 0.1 * index}
        result = result_from_values(system, ids, values, config=StatsConfig(n_resamples=200))
        finding = Finding("EQ301", Severity.ISSUE, system, HOSTILE[1], HOSTILE[2], HOSTILE)
        manifest = replace(
            Manifest.start(system, command=HOSTILE).finish(),
            datasets={HOSTILE[3]: HOSTILE[4]},
            parameters=dict(zip(HOSTILE, HOSTILE, strict=True)),
            cost={HOSTILE[5]: 1.0, "dims": 8},
        )
        path = save_run(
            folder / f"run{index}",
            replace(result, findings=(finding,)),
            manifest=manifest,
            details=_details(ids),
            tuning=_tuning() if index < 2 else None,
        )
        runs.append(load_run(path))
    _view().write(folder)
    return runs


def _view() -> View:
    columns = (ReportColumn(HOSTILE[0], HOSTILE), ReportColumn(HOSTILE[1], HOSTILE, right=True))
    section = Section(HOSTILE[2], (ReportTable(columns, HOSTILE),), HOSTILE)
    return View(Answer(HOSTILE[0], columns, HOSTILE), (section,), HOSTILE[0], HOSTILE[1])


def _details(ids: Sequence[str]) -> dict[str | int, UnitContent]:
    retrieved_items = tuple(RetrievedItem(text, text, 0.5, index == 0, text) for index, text in enumerate(HOSTILE[:4]))
    return {
        unit: UnitContent(
            HOSTILE[index % len(HOSTILE)],
            (HOSTILE[index % 3],),
            {HOSTILE[1]: HOSTILE[index % 2], HOSTILE[2]: HOSTILE[2 + index % 2]},
            retrieved_items,
        )
        for index, unit in enumerate(ids)
    }


def _tuning() -> TuningRecord:
    trials = tuple(
        Trial({HOSTILE[0]: first, HOSTILE[1]: second}, 0.5, cost=10.0 * (1 + index))
        for index, (first, second) in enumerate((a, b) for a in HOSTILE[2:4] for b in HOSTILE[4:6])
    )
    folds = tuple(FoldSelection(trials[index].params, 0.7, 0.6, 16) for index in (0, 1))
    return TuningRecord(HOSTILE[6], trials, 0, 1, 0.5, 0.4, folds, trials[:1], HOSTILE[7], 20.0, 0)
