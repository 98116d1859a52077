"""The comparison, or the result of one run, as JSON that every parser reads."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from equipoise.report.export.sheet import only, scored_like
from equipoise.run.store import StoredRun
from equipoise.stats.comparison import Comparison


def as_json(runs: Sequence[StoredRun], comparison: Comparison | None) -> str:
    """What ``eq compare --json`` writes of several runs, and ``eq score --json`` of one."""
    cautions = [run.caution for run in runs if run.caution]
    if comparison is None:
        data: dict[str, Any] = {"results": [only(runs).result.to_dict()], "cautions": cautions}
    else:
        data = comparison_data(comparison) | {"cautions": cautions}
    like = scored_like(runs)
    return f"{json.dumps(_finite(data | ({'like': like} if like else {})), indent=2, allow_nan=False)}\n"


def comparison_data(comparison: Comparison) -> dict[str, Any]:
    """The comparison with its estimates in the shape that a result gives them."""
    estimates = {
        system: {metric: estimate.to_dict() for metric, estimate in estimates.items()}
        for system, estimates in comparison.estimates.items()
    }
    return comparison.to_dict() | {"estimates": estimates}


def _finite(data: dict[str, Any]) -> Any:
    """The same with null for what is no number."""
    return json.loads(json.dumps(data, default=str), parse_constant=lambda _: None)
