"""Results and evidence as they come back from a run directory."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from equipoise.data import typed
from equipoise.errors import StoreError, did_you_mean
from equipoise.evidence.base import Evidence, pack, unpack
from equipoise.run.cases import Cases, number
from equipoise.stats.interval import Interval
from equipoise.stats.result import Estimate, Result
from equipoise.types import Direction, Finding, Floats, Severity

KINDS = {
    "ranking": ("equipoise.evidence.ranking", "Ranking"),
    "pairs": ("equipoise.evidence.pairs", "Pairs"),
    "labels": ("equipoise.evidence.labels", "Labels"),
    "sets": ("equipoise.evidence.sets", "Sets"),
    "space": ("equipoise.evidence.space", "Space"),
}
"""Where each kind of evidence lives; only the one that is read is imported."""


def restored_result(content: Any, cases: Cases, *, source: str) -> Result:
    """The result that ``Result.to_dict`` described, with its per-unit columns."""
    try:
        estimates = [_estimate(each) for each in content["estimates"]]
        return Result(
            system=typed.text(content["system"]),
            unit_ids=cases.unit_ids,
            estimates={each.metric: each for each in estimates},
            per_unit=cases.per_unit,
            weights=cases.weights,
            clusters=cases.clusters,
            findings=tuple(_finding(each) for each in content["findings"]),
            settings=dict(content["settings"]),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        what = f"no {error}" if isinstance(error, KeyError) else str(error)
        raise StoreError(
            f"{source} does not describe a result: {what}",
            hint="the file was changed after it was written: run the command again",
        ) from error


def packed_errors(errors: Mapping[str, Floats]) -> bytes:
    """The redrawn errors of all metrics, as ``errors_from`` reads them."""
    return pack({"metrics": np.array(list(errors)), "errors": np.array(list(errors.values()))})


def errors_from(file: Path, data: bytes | None = None) -> dict[str, Floats]:
    """The redrawn errors that a run directory keeps, by metric; ``data`` are the bytes of the file."""
    arrays = unpack(file, data)
    try:
        names, errors = arrays["metrics"].tolist(), np.asarray(arrays["errors"], dtype=np.float64)
        return {str(name): row for name, row in zip(names, errors, strict=True)}
    except (KeyError, TypeError, ValueError) as error:
        raise StoreError(f"{file} holds no redrawn errors: {error}", hint="run the command again") from error


def evidence_from(file: Path, data: bytes | None = None) -> Evidence:
    """Evidence of whatever kind the file holds; ``data`` are its bytes, where they were read already."""
    arrays = unpack(file, data)
    kind = str(arrays.pop("kind", ""))
    if kind not in KINDS:
        raise StoreError(
            f"{file} holds {f'{kind!r}' if kind else 'no'} evidence",
            hint=did_you_mean(kind, KINDS) or f"evidence is {', '.join(KINDS)}",
        )
    home, name = KINDS[kind]
    try:
        evidence: Evidence = getattr(import_module(home), name).from_arrays(arrays)
    except StoreError as error:
        raise StoreError(f"{file} is no {kind} evidence: {error.sentence}", hint=error.hint) from error
    return evidence


def _estimate(content: Any) -> Estimate:
    reach = content["interval"]
    return Estimate(
        metric=typed.text(content["metric"]),
        value=number(content["value"]),
        interval=Interval(
            number(reach["low"]),
            number(reach["high"]),
            number(reach["level"]),
            typed.text(reach["method"]),
            typed.text(reach.get("reason", "")),
        ),
        n=typed.integer(content["n"]),
        undefined=typed.integer(content["undefined"]),
        chance=number(content["chance"]),
        better=Direction(content["better"]),
        unit=typed.text(content["unit"]),
    )


def _finding(content: Any) -> Finding:
    return Finding(
        code=typed.text(content["code"]),
        severity=Severity(content["severity"]),
        subject=typed.text(content["subject"]),
        sentence=typed.text(content["sentence"]),
        remedy=typed.text(content["remedy"]),
        evidence=tuple(map(typed.text, typed.items(content["evidence"]))),
    )
