"""Results with undefined numbers equal their copies, on every version of Python."""

from __future__ import annotations

import shlex
import shutil
import sys
from copy import deepcopy
from pathlib import Path

import pytest

from equipoise.stats.comparison import Contrast
from equipoise.stats.intervals import Interval
from equipoise.stats.power import PowerEstimate
from equipoise.stats.result import Estimate
from equipoise.stats.seeds import SeedSummary
from equipoise.tuning.grid import FoldSelection, Trial
from equipoise.types import Direction, pip_install


def unknown() -> Interval:
    return Interval.unknown("one unit")


def results(undefined: float) -> list[object]:
    return [
        Interval(undefined, undefined),
        Estimate("MRR", 0.5, unknown(), 1, 0, undefined, Direction.UP),
        PowerEstimate(undefined),
        Contrast("MRR", "a", "b", Direction.UP, 0.0, unknown(), undefined, undefined, 1, 0),
        SeedSummary((0.5, undefined), undefined, undefined, unknown()),
        Trial({"k": 1}, undefined),
        FoldSelection({"k": 1}, undefined, 0.5, 3),
    ]


@pytest.mark.parametrize("index", range(len(results(0.0))), ids=lambda index: type(results(0.0)[index]).__name__)
def test_an_undefined_number_equals_another_and_no_defined_one(index: int) -> None:
    first, second = results(float("nan"))[index], results(float("-nan"))[index]
    assert first == second == deepcopy(first)
    assert first != results(0.0)[index]
    assert first != "nan"


def test_equal_results_have_equal_hashes() -> None:
    assert hash(Interval(float("nan"), 1.0)) == hash(Interval(float("nan"), 1.0))


def test_the_pip_command_has_the_interpreter_if_another_pip_is_first(monkeypatch: pytest.MonkeyPatch) -> None:
    folder = Path(sys.executable).parent
    for pip, command in (
        (str(folder / "pip"), "pip install"),
        ("/another/pip", f"{shlex.quote(sys.executable)} -m pip install"),
        (None, f"{shlex.quote(sys.executable)} -m pip install"),
    ):
        monkeypatch.setattr(shutil, "which", lambda name, pip=pip: pip)
        assert pip_install() == command
