"""Checks of the protocol: whether a run is what its figures take it for."""

from __future__ import annotations

from collections.abc import Iterator

from equipoise.checks.base import Check, Complaint, counted
from equipoise.checks.subjects import LineUp
from equipoise.embed.retriever import has_lexical_baseline
from equipoise.errors import EquipoiseError
from equipoise.stats.result import Result
from equipoise.types import Severity

PARTIAL_RUN = "EQ206"


def partial_run(result: Result) -> Iterator[Complaint]:
    """EQ206: a result that was read from a run directory which is not complete."""
    status = result.settings.get("status", "complete")
    if status != "complete":
        reason = result.settings.get("status_reason") or "no reason was recorded"
        yield Complaint(
            result.system,
            f"the run is {status}: {reason}",
            (f"{counted(len(result.unit_ids), 'unit')} in the run directory",),
        )


def no_lexical_baseline(line_up: LineUp) -> Iterator[Complaint]:
    """EQ107: models are compared with each other, and with nothing that only looks at words."""
    try:
        lacking = len(line_up.specs) > 1 and not has_lexical_baseline(line_up.specs)
    except EquipoiseError:  # a name that is no spec does not say what the system looks at
        return
    if lacking:
        yield Complaint(
            ", ".join(line_up.specs),
            "no system that only looks at words is compared with these models",
            (f"{counted(len(line_up.specs), 'system')} compared",),
        )


CHECKS: tuple[Check, ...] = (
    Check(
        code="EQ107",
        title="no lexical baseline",
        severity=Severity.TIP,
        applies_to=LineUp,
        function=no_lexical_baseline,
        why="""\
On many collections BM25 or TF-IDF over character n-grams is as good as a model, costs next to nothing and
needs no download. A comparison of models alone cannot show that none of them is worth its price.""",
        remedy="add bm25: or tfidf: to the systems",
        example="""\
from equipoise.checks.catalogue import examine
from equipoise.types import Severity
from equipoise.checks.subjects import LineUp
examine(LineUp(["minilm", "use"]))""",
    ),
    Check(
        code=PARTIAL_RUN,
        title="a run is partial",
        severity=Severity.ISSUE,
        applies_to=Result,
        function=partial_run,
        why="""\
The run directory says of itself that the run was interrupted or failed. What it holds is what was finished
before that. The units that come last are not a sample of all of them, so the figures may move in either
direction when the rest is there, and a comparison with a complete run is not on equal terms.""",
        remedy="run the command again until it ends; what was finished is not done twice",
        example="""\
from dataclasses import replace
from equipoise import Ranking, evaluate
from equipoise.checks.catalogue import examine
result = evaluate(Ranking.from_ranks([1, 2, 4], candidates=20), "MRR", system="bm25")
examine(replace(result, settings={"status": "partial", "status_reason": "interrupted"}))""",
    ),
)
