"""Settings shared by all tests, and the markers for requirements of tests.

``engines("torch")`` names packages of the extras ``engines`` and ``peers``, ``browser("chromium")`` programs
that ``make browser`` installs. A test is skipped where one of them is missing, so ``-m "engines or browser"``
selects what a machine without them skips. ``slow`` tests start processes or servers, load models or a whole
ontology, or simulate for a second and more.
"""

from __future__ import annotations

import gc
import os
import shutil
import signal
import sys
import warnings
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

# Set before numpy is imported, because the workers of pytest already share the cores.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest
from hypothesis import HealthCheck, settings

from equipoise import redaction

TESTS = Path(__file__).parent

sys.path.insert(0, str(TESTS))  # tests/reference.py is imported by its name

os.environ["EQUIPOISE_CACHE"] = "off"  # tests neither read nor write the cache of the user

os.fsync = lambda fd: None  # tests do not need durability, and a call takes milliseconds

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # SIGINT is ignored in a background job of a shell, and the processes that tests interrupt would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)

# HYPOTHESIS_PROFILE=thorough runs the max_examples of each test; the other profiles limit them.
MAX_EXAMPLES = {"quick": 8, "default": 15}
PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "default")
COMMON: dict[str, Any] = {
    "deadline": None,
    "suppress_health_check": [HealthCheck.too_slow],
    "derandomize": True,
}
for name, n_examples in MAX_EXAMPLES.items():
    settings.register_profile(name, max_examples=n_examples, **COMMON)
settings.register_profile("thorough", max_examples=100, **COMMON)
settings.load_profile(PROFILE)


def pytest_itemcollected(item: pytest.Item) -> None:
    """Add the markers of the fixtures, and limit the hypothesis examples."""
    fixtures = getattr(item, "_fixtureinfo", None)
    for definitions in fixtures.name2fixturedefs.values() if fixtures else ():
        for mark in getattr(definitions[-1].func, "marks", ()):
            item.add_marker(mark)
    test_settings = getattr(getattr(item, "obj", None), "_hypothesis_internal_use_settings", None)
    max_examples = MAX_EXAMPLES.get(PROFILE)
    if test_settings is not None and max_examples is not None and test_settings.max_examples > max_examples:
        item.obj._hypothesis_internal_use_settings = settings(test_settings, max_examples=max_examples)  # type: ignore[attr-defined]


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Collect tests without garbage collection, which took a tenth of the time, and freeze the collected objects."""
    gc.disable()
    result = yield
    gc.freeze()
    gc.enable()
    return result


LONGEST = ("test_readme.py", "test_calibration.py")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Start the longest modules first, so that they do not run last on one worker."""
    items.sort(key=lambda item: item.path.name not in LONGEST)


@cache
def _installed(name: str) -> bool:
    """Whether a package, a program, or a file of the project exists."""
    if (TESTS.parent / name).is_file() or shutil.which(name):
        return True
    try:
        with warnings.catch_warnings(action="ignore"):  # finding a submodule imports its package
            return find_spec(name) is not None
    except ImportError:  # of a parent package
        return False


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip tests whose required packages or programs are missing."""
    for kind in ("engines", "browser"):
        for mark in item.iter_markers(kind):
            missing = [name for name in mark.args if not _installed(name)]
            if missing:
                pytest.skip(f"needs {', '.join(missing)}: make {kind}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Fail a test that ``importorskip`` skips without a marker: ``-m engines`` would never run it."""
    report: Any = yield
    marked = item.get_closest_marker("engines") or item.get_closest_marker("browser")
    if report.skipped and not marked and "could not import" in str(report.longrepr):
        report.outcome = "failed"
        report.longrepr = f"{report.longrepr[2]}: mark the test with @pytest.mark.engines(...)"
    return report


@pytest.fixture(autouse=True)
def _no_secrets_of_other_tests() -> Iterator[None]:
    """Clear the keys used by a test, which would be redacted in the output of the next."""
    yield
    redaction._USED.clear()
