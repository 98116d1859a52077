"""How the figures came about, and where the systems were not treated alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from equipoise.report.comparison import caption
from equipoise.report.page.costs import other_costs
from equipoise.report.page.model import Fact, FactGroup, Protocol
from equipoise.report.page.subject import Subject
from equipoise.report.score import caption as score_caption
from equipoise.run.cases import json_text
from equipoise.run.manifest import Manifest

ABSENT = "—"
OWN = ("started", "finished", "command", "evidence")
"""What every run has of its own, so that a difference in it says nothing."""


def protocol(subject: Subject) -> Protocol:
    """The method in sentences, and every recorded fact of every run."""
    manifests = [run.manifest for run in subject.runs]
    groups = (
        _group("Parameters of the systems", [each.parameters for each in manifests]),
        _group("Settings of the measurement", [each.settings for each in manifests]),
        _group("Data (SHA-256)", [each.datasets for each in manifests]),
        _group("Other costs", [other_costs(each.cost) for each in manifests], own=True),
        _group(
            "What the systems delivered (SHA-256)", [each.inputs for each in manifests], own=True, folded=True
        ),
        _group("Runs", [_run(each) for each in manifests], folded=True),
        _group("Versions", [each.versions for each in manifests], folded=True),
    )
    return Protocol(_sentences(subject), tuple(group for group in groups if group.facts))


def _sentences(subject: Subject) -> tuple[str, ...]:
    own = score_caption([run.result for run in subject.runs])
    return (own,) if subject.comparison is None else (caption(subject.comparison), own)


def _run(manifest: Manifest) -> dict[str, Any]:
    seen = manifest.evidence
    return {
        "status": manifest.status,
        "units": manifest.units,
        "seed": manifest.seed,
        "started": manifest.started,
        "finished": manifest.finished,
        "command": " ".join(manifest.command),
        "evidence": f"{seen['kind']} {seen['sha256']}" if seen else None,
    }


def _group(
    title: str, by_system: Sequence[Mapping[str, Any]], *, own: bool = False, folded: bool = False
) -> FactGroup:
    names = dict.fromkeys(name for each in by_system for name in each)
    facts = []
    for name in names:
        texts = tuple(_text(each.get(name)) for each in by_system)
        differs = len(set(texts)) > 1 and not own and name not in OWN
        facts.append(Fact(name.replace("_", " "), texts, differs))
    return FactGroup(title, tuple(facts), folded)


def _text(value: Any) -> str:
    """A value as people read it; an empty one is a dash."""
    if value is None or value == "" or value in ((), [], {}):
        return ABSENT
    return str(value) if isinstance(value, str | int | float) else json_text(value)
