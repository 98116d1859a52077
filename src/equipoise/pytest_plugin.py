"""The pytest plugin: a test fails if a result misses its requirements or is significantly worse than a baseline.

    def test_retrieval(equipoise_gate):
        equipoise_gate(Ranking.from_runs(qrels, run), "nDCG@10", require=["nDCG@10>=0.6"], margin=0.01)

``pytest --eq-baseline eval/baseline`` compares with the runs in that folder, and ``--eq-update-baseline`` writes them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from equipoise.runs.gate import GateResult
    from equipoise.runs.run_folder import StoredRun

Gate = Callable[..., "GateResult"]
_SAVED = pytest.StashKey[set[Path]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of the plugin."""
    group = parser.getgroup("equipoise", "embedding evaluation")
    group.addoption("--eq-baseline", metavar="FOLDER", help="Compare equipoise_gate results with the runs in FOLDER.")
    group.addoption(
        "--eq-update-baseline", action="store_true", help="Write the runs to the folder of --eq-baseline instead."
    )


@pytest.fixture
def equipoise_gate(request: pytest.FixtureRequest) -> Gate:
    """A function that fails the test if evidence or a result misses its requirements or loses against the baseline."""
    folder: str | None = request.config.getoption("--eq-baseline")
    update: bool = request.config.getoption("--eq-update-baseline")
    if update and folder is None:
        raise pytest.UsageError("--eq-update-baseline needs --eq-baseline FOLDER")
    saved = request.config.stash.setdefault(_SAVED, set())

    def gate(
        evidence: Any,
        metrics: str | Sequence[str] = (),
        *,
        require: Sequence[str] = (),
        margin: float = 0.0,
        name: str = "",
        **options: Any,
    ) -> GateResult:
        """Check evidence or a result.

        Parameters
        ----------
        evidence
            Evidence such as a ``Ranking``, or a ``Result``.
        metrics
            The metrics that are compared with the baseline. Default: those of ``require``, else the first one.
        require
            Requirements such as ``nDCG@10>=0.6``.
        margin
            The tolerated loss against the baseline.
        name
            The name of the run in the baseline folder. Default: the file and the name of the test.
        **options
            Further options of ``equipoise.runs.gate.check_gate``, such as ``confident`` and ``config``.
        """
        from equipoise.runs.gate import BaselineCheck, check_gate

        names = (metrics,) if isinstance(metrics, str) else tuple(metrics)
        run = _run(evidence, names, require, name or request.node.nodeid)
        path = None if folder is None else Path(folder) / re.sub(r"[^\w.-]+", "_", run.result.system)
        if path is not None and update:
            if path in saved:
                pytest.fail(f"two baselines are called {path.name}: give each its own name=", pytrace=False)
            saved.add(path)
            _save(run, path)
            path = None
        if path is not None and not path.exists():
            pytest.fail(f"there is no baseline {path}: run pytest --eq-update-baseline once", pytrace=False)
        if path is None and not require:
            return _passed(run)
        result = check_gate(
            run, require, against=None if path is None else BaselineCheck(_load(path), margin, names), **options
        )
        if not result.passed:
            lines = [f"{'pass' if verdict.passed else 'FAIL'}  {verdict.message}" for verdict in result.verdicts]
            pytest.fail("\n".join([f"eq gate {run.result.system}", *lines]), pytrace=False)
        return result

    return gate


def _run(evidence: Any, metrics: Sequence[str], require: Sequence[str], name: str) -> StoredRun:
    from equipoise.runs.evaluate import evaluate, with_metrics
    from equipoise.runs.gate import Requirement
    from equipoise.runs.manifest import Manifest
    from equipoise.runs.run_folder import StoredRun
    from equipoise.stats.result import Result

    names = [*metrics, *(Requirement.parse(text).metric for text in require)]
    if isinstance(evidence, Result):
        result = (with_metrics(evidence, names) if names else evidence).renamed(name)
    else:
        result = evaluate(evidence, names or None, system=name)
    return StoredRun(result, Manifest.start(name).finish(), Path())


def _save(run: StoredRun, path: Path) -> None:
    from equipoise.runs.run_folder import save_run

    path.parent.mkdir(parents=True, exist_ok=True)
    save_run(path, run.result, manifest=run.manifest)


def _load(path: Path) -> StoredRun:
    from equipoise.runs.run_folder import load_run

    return load_run(path)


def _passed(run: StoredRun) -> GateResult:
    from equipoise.runs.gate import GateResult

    return GateResult(run.result.system, ())
