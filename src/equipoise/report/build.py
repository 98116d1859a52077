"""What a page is about: the runs, best first, and the comparison of them where there is more than one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise import __version__
from equipoise.checks.base import pluralize
from equipoise.config import DEFAULT_STATS, StatsConfig
from equipoise.errors import DuplicateError, ParameterError, UnknownNameError
from equipoise.report.breakdowns import slice_table, value_distributions
from equipoise.report.findings import group_findings
from equipoise.report.pairwise import comparison_caption, leaderboard_tables, pairwise_table
from equipoise.report.publish import export_downloads
from equipoise.report.tables import caption as score_caption
from equipoise.report.tables import cost_table, extra_costs
from equipoise.report.tuning import tuning_views
from equipoise.report.unit_explorer import build_unit_explorer, read_unit_slices
from equipoise.report.view_model import Fact, FactGroup, Page, Protocol, SystemInfo
from equipoise.runs.compare import compare
from equipoise.runs.evaluate import with_metrics
from equipoise.runs.store import StoredRun, load_run
from equipoise.runs.unit_table import json_text
from equipoise.stats.alignment import AlignedResults, align_results
from equipoise.stats.formatting import format_interval, format_percent, format_value, shared_decimals

if TYPE_CHECKING:
    from equipoise.runs.manifest import Manifest
    from equipoise.stats.comparison import Comparison
    from equipoise.stats.result import Estimate, Result
    from equipoise.types import Direction, Finding, Floats

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


@dataclass(frozen=True)
class RunSet:
    """The runs in the order of the page, the metrics that all of them have, and the one that decides."""

    runs: tuple[StoredRun, ...]
    comparison: Comparison | None
    metrics: tuple[str, ...]

    @classmethod
    def of(cls, runs: Sequence[StoredRun], comparison: Comparison | None) -> RunSet:
        """Put the runs in order; the comparison, where there is one, must be of these runs."""
        if not runs:
            raise ParameterError("a report needs at least one run", hint="name a run directory")
        if comparison is None:
            return cls._alone(runs)
        named = {run.result.system: run for run in runs}
        if set(named) != set(comparison.systems) or len(named) != len(runs):
            raise ParameterError(
                f"the comparison is of {', '.join(comparison.systems)}, and the runs of {', '.join(named)}",
                hint="compare the results of exactly these runs",
            )
        others = [name for name in comparison.metrics if name != comparison.primary]
        return cls(tuple(named[name] for name in comparison.order), comparison, (comparison.primary, *others))

    @classmethod
    def _alone(cls, runs: Sequence[StoredRun]) -> RunSet:
        if len(runs) > 1:
            raise ParameterError(
                f"there are {len(runs)} runs and no comparison of them", hint="compare their results first"
            )
        if not runs[0].result.names:
            raise ParameterError(
                f"the run of {runs[0].result.system} has no metric", hint="score it: eq score -o FOLDER"
            )
        return cls(tuple(runs), None, runs[0].result.names)

    @property
    def primary(self) -> str:
        """The metric that decides the order."""
        return self.metrics[0]

    @property
    def better(self) -> Direction:
        """Which way is better on the primary metric."""
        return self.estimates(self.primary)[0].better

    @property
    def names(self) -> tuple[str, ...]:
        """The systems, best first."""
        return tuple(run.result.system for run in self.runs)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Everything that was found about the runs, and about comparing them."""
        if self.comparison is not None:
            return self.comparison.findings
        return self.runs[0].result.findings

    @property
    def units(self) -> list[str | int]:
        """The ids of all units, in the order of the first run."""
        ids: list[str | int] = self.runs[0].result.unit_ids.tolist()
        return ids

    def estimates(self, metric: str) -> list[Estimate]:
        """The figure of every system on a metric."""
        if self.comparison is None:
            return [self.runs[0].result.estimates[metric]]
        return [self.comparison.estimates[name][metric] for name in self.names]

    def per_unit(self, metric: str) -> Floats | None:
        """Values of every unit and system, shape (units, systems); None for a metric of the whole."""
        if any(metric not in run.result.per_unit for run in self.runs):
            return None
        if self._pairing is None:
            return np.asarray(self.runs[0].result.per_unit[metric], dtype=np.float64)[:, np.newaxis]
        return self._pairing.per_unit(metric)

    @cached_property
    def _pairing(self) -> AlignedResults | None:
        return align_results([run.result for run in self.runs]) if len(self.runs) > 1 else None


def system_label(place: int) -> str:
    """A name for the system at this place that fits anywhere.

    >>> system_label(0), system_label(27)
    ('A', 'B2')
    """
    turn, at = divmod(place, len(LETTERS))
    return LETTERS[at] + (str(turn + 1) if turn else "")


# What the page says first: the title, what the runs come to, and which of them are not complete.

NAMED = 3


def systems(subject: RunSet) -> tuple[SystemInfo, ...]:
    """Every system with its letter."""
    return tuple(
        SystemInfo(run.result.system, system_label(place), run.caution) for place, run in enumerate(subject.runs)
    )


def title(subject: RunSet) -> str:
    """What was measured, on how much."""
    units = pluralize(len(subject.units), "unit")
    if len(subject.names) == 1:
        return f"{subject.names[0]} by {subject.primary} on {units}"
    return f"{len(subject.names)} systems by {subject.primary} on {units}"


def subtitle(subject: RunSet) -> str:
    """The data and the time, as far as the manifests know them."""
    data = dict.fromkeys(name for run in subject.runs for name in run.manifest.datasets)
    days = sorted({run.manifest.finished[:10] for run in subject.runs if run.manifest.finished})
    names = ", ".join(list(data)[:NAMED]) + (f" and {len(data) - NAMED} more" if len(data) > NAMED else "")
    when = " to ".join(dict.fromkeys((days[0], days[-1]))) if days else ""
    return ". ".join(part for part in (names and f"Data: {names}", when and f"Measured {when}") if part)


def verdict(subject: RunSet) -> str:
    """Two sentences: of the comparison, or on what one run alone can say."""
    if subject.comparison is not None:
        return subject.comparison.verdict()
    own = subject.estimates(subject.primary)[0]
    places = shared_decimals([own.interval])
    luck = format_value(own.chance, places, reason="not computed")
    return (
        f"{subject.names[0]} scores {format_value(own.value, places)} on {subject.primary} "
        f"({format_percent(own.interval.confidence_level)} interval "
        f"{format_interval(own.interval, places)}; chance {luck}) over {pluralize(own.n, 'unit')}. "
        "One run alone cannot say whether another system would do better: report it together with one."
    )


def cautions(subject: RunSet) -> tuple[str, ...]:
    """A sentence for every run that is not complete."""
    return tuple(run.caution for run in subject.runs if run.caution)


# How the figures came about, and where the systems were not treated alike.

NOT_RECORDED = "—"
NATIVE_SCORING = ("started", "finished", "command", "evidence")
"""What every run has of its own, so that a difference in it says nothing."""


def protocol_section(subject: RunSet) -> Protocol:
    """The method in sentences, and every recorded fact of every run."""
    manifests = [run.manifest for run in subject.runs]
    groups = (
        _group("Parameters of the systems", [each.parameters for each in manifests]),
        _group("Settings of the measurement", [each.settings for each in manifests]),
        _group("Data (SHA-256)", [each.datasets for each in manifests]),
        _group("Other costs", [extra_costs(each.cost) for each in manifests], own=True),
        _group("What the systems delivered (SHA-256)", [each.inputs for each in manifests], own=True, folded=True),
        _group("Runs", [_run(each) for each in manifests], folded=True),
        _group("Versions", [each.versions for each in manifests], folded=True),
    )
    return Protocol(_sentences(subject), tuple(group for group in groups if group.facts))


def _sentences(subject: RunSet) -> tuple[str, ...]:
    own = score_caption([run.result for run in subject.runs])
    return (own,) if subject.comparison is None else (comparison_caption(subject.comparison), own)


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


def _group(title: str, by_system: Sequence[Mapping[str, Any]], *, own: bool = False, folded: bool = False) -> FactGroup:
    names = dict.fromkeys(name for each in by_system for name in each)
    facts = []
    for name in names:
        texts = tuple(_text(each.get(name)) for each in by_system)
        differs = len(set(texts)) > 1 and not own and name not in NATIVE_SCORING
        facts.append(Fact(name.replace("_", " "), texts, differs))
    return FactGroup(title, tuple(facts), folded)


def _text(value: Any) -> str:
    """A value as people read it; an empty one is a dash."""
    if value is None or value == "" or value in ((), [], {}):
        return NOT_RECORDED
    return str(value) if isinstance(value, str | int | float) else json_text(value)


# From runs and their comparison to the page.


def build_page(runs: Sequence[StoredRun], comparison: Comparison | None = None, *, texts: bool = True) -> Page:
    """The page of one run, or of several and the comparison of exactly these.

    ``texts=False`` leaves out the texts to take away, which take the longest to make.
    """
    subject = RunSet.of(runs, comparison)
    known = read_unit_slices(subject.runs)
    taken, notes = export_downloads(subject) if texts else ((), ())
    return Page(
        title=title(subject),
        subtitle=subtitle(subject),
        systems=systems(subject),
        primary=subject.primary,
        better=str(subject.better),
        cautions=cautions(subject),
        verdict=verdict(subject),
        leagues=leaderboard_tables(subject),
        costs=cost_table(subject),
        pairs=pairwise_table(subject),
        slices=slice_table(subject, known),
        explorer=build_unit_explorer(subject, known),
        distributions=value_distributions(subject),
        tuned=tuning_views(subject),
        maps=(),
        findings=group_findings(subject),
        protocol=protocol_section(subject),
        downloads=taken,
        notes=notes,
        program=f"equipoise {__version__}",
    )


# The runs of a page, read with no more than it needs, and the comparison of them.


def read_runs(named: Sequence[tuple[str, Path]], primary: str | None = None) -> tuple[StoredRun, ...]:
    """Read run directories; each comes with a name for its system, or with an empty one.

    Two systems of one name are refused. A ``primary`` metric comes first, and is scored where it was not.
    Evidence is read only where a metric cannot be had or compared without it.
    """
    runs: dict[str, StoredRun] = {}
    for name, path in named:
        run = _renamed(_read(path, primary), name)
        other = runs.setdefault(run.result.system, run)
        if other is not run:
            raise DuplicateError(
                f"{other.path} and {path} are both runs of {run.result.system}",
                hint=f"give one of them another name: {run.result.system}-2={path}",
            )
    return tuple(runs.values())


def compare_runs(
    runs: Sequence[StoredRun],
    *,
    primary: str | None = None,
    config: StatsConfig = DEFAULT_STATS,
) -> Comparison | None:
    """The comparison of the runs on the metrics that all of them have; None for one run alone."""
    if len(runs) < 2:
        return None
    return compare([run.result for run in runs], primary=primary, config=config)


def _read(path: Path, primary: str | None) -> StoredRun:
    run = load_run(path, evidence=False)
    if not _suffices(run.result, primary):
        run = load_run(path)
    if primary is None:
        return run
    return replace(run, result=with_metrics(run.result, [primary, *run.result.names]))


def _suffices(result: Result, primary: str | None) -> bool:
    """Whether everything can be compared without the evidence."""
    if any(name not in result.per_unit for name in result.names):
        return False
    try:
        return primary is None or bool(result[primary])
    except UnknownNameError:
        return False


def _renamed(run: StoredRun, name: str) -> StoredRun:
    """The run under the name it was given, in its findings and cautions too."""
    was = run.result.system
    if not name or name == was:
        return run
    findings = tuple(replace(each, subject=name) if each.subject == was else each for each in run.result.findings)
    result = replace(run.result, system=name, findings=findings)
    return replace(run, result=result, manifest=replace(run.manifest, system=name))
