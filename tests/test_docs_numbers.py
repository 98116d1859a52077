"""Numbers that the documentation quotes from the benchmarks are those of the stored tables."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TABLES, GPU = "benchmarks/README.md", "benchmarks/gpu.md"
SCALE = "docs/scale.md"

QUOTED = {
    "MiniLM, ms": (SCALE, r"([\d.]+) ms per text", TABLES, r"MiniLM, 5,000 texts of 5 to 250 tokens +\| ([\d.]+) s", 5),
    "MiniLM, s": (SCALE, r'MiniLM": ([\de.-]+)', TABLES, r"MiniLM, 5,000 texts of 5 to 250 tokens +\| ([\d.]+) s", 5e3),
    "WordLlama, µs": (SCALE, r"([\d.]+) µs per short", TABLES, r"WordLlama, 50,000 short texts +\| ([\d.]+) s", 0.05),
    "WordLlama, s": (SCALE, r'WordLlama": ([\de.-]+)', TABLES, r"WordLlama, 50,000 short texts +\| ([\d.]+) s", 5e4),
    "search, ns": (
        SCALE,
        r"([\d.]+) ns per pair at 384",
        TABLES,
        r"5,000,000 \| float32(?: +\| [\d.]+){2} +\| ([\d.]+)",
        1,
    ),
    "intervals, µs": (SCALE, r"([\d.]+) µs per query", TABLES, r"21 metrics, 1,000 units.*?\| ([\d.]+) s", 1e-3),
    "GPU search, ns": (SCALE, r"to ([\d.]+) ns per pair", GPU, r"top 100 .* euclidean, .*? \| ([\d.]+)", 10),
    "GPU, long texts": ("docs/setup/gpu.md", r"MiniLM embeds ([\d,]+)", GPU, r"no cache \| ([\d,]+) \|", 1),
    "GPU, short texts": ("docs/setup/gpu.md", r"and ([\d,]+) per second", GPU, r"no cache \| [\d,]+ \| ([\d,]+)", 1),
}
"""Page and pattern of the quoted number, table and pattern of the measured one, and what that one is divided by."""


def number(page: str, pattern: str) -> float:
    match = re.search(pattern, (ROOT / page).read_text(encoding="utf-8"))
    assert match is not None, f"{page} has no {pattern}"
    return float(match[1].replace(",", ""))


@pytest.mark.parametrize("name", QUOTED)
def test_a_quoted_number_is_that_of_the_table(name: str) -> None:
    page, quoted, table, measured, divisor = QUOTED[name]
    assert number(page, quoted) == pytest.approx(number(table, measured) / divisor, rel=0.1)
