"""The machine and the package versions of a benchmark."""

from __future__ import annotations

import os
import platform
from contextlib import suppress
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

PACKAGES = (
    "equipoise",
    "numpy",
    "scipy",
    "scikit-learn",
    "torch",
    "pytrec-eval-terrier",
    "ranx",
    "numba",
    "faiss-cpu",
)


def machine_description() -> str:
    """One line with date, processor, cores, memory and package versions."""
    versions = [f"Python {platform.python_version()}"]
    for package in PACKAGES:
        with suppress(PackageNotFoundError):
            versions.append(f"{package} {version(package)}")
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return (
        f"{datetime.now(UTC):%B %Y}, {_processor()}, {os.cpu_count()} cores, {memory:.0f} GiB, "
        f"{platform.system()}; {', '.join(versions)}."
    )


def _processor() -> str:
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
