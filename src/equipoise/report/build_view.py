"""Build the view of stored runs: read the runs, compare them, and fill the tables."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import isfinite
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.checks.base import run_checks
from equipoise.config import StatsConfig
from equipoise.errors import DuplicateError, ParameterError, UnknownNameError
from equipoise.report.answer import Answer
from equipoise.report.charts.tuning import tuning_views
from equipoise.report.pairwise import comparison_caption
from equipoise.report.publish import export_downloads
from equipoise.report.sections import (
    cost_table,
    entry_name,
    leaderboard_tables,
    pairwise_table,
    parameter_table,
    slice_table,
    value_distributions,
)
from equipoise.report.tables import bounded_systems, extra_costs
from equipoise.report.tables import caption as score_caption
from equipoise.report.unit_explorer import Slices, build_unit_explorer, read_unit_slices
from equipoise.report.view import RunsView, View
from equipoise.report.view_model import ProtocolEntry, ProtocolGroup, ProtocolSection, SystemInfo
from equipoise.runs.compare import compare
from equipoise.runs.evaluate import recorded_stats, with_metrics
from equipoise.runs.run_folder import StoredRun, load_run
from equipoise.stats.complete_units import on_complete_units
from equipoise.stats.formatting import PERCENT_UNIT, ScoreFormat, format_count, format_percent
from equipoise.stats.pairing import AlignedResults, align_results
from equipoise.stats.slices import slice_estimates
from equipoise.stats.tuning_uncertainty import ERROR_DF, RESAMPLE_ID
from equipoise.stats.verdict import DISPLAY, EVIDENCE_NOUNS, UNIT_NOUN, Vocabulary, plural
from equipoise.types import Direction, Finding

if TYPE_CHECKING:
    from equipoise.runs.manifest import Manifest
    from equipoise.stats.comparison import Comparison
    from equipoise.stats.result import Estimate, Result
    from equipoise.tuning.grid import Trial, TuningRecord
    from equipoise.types import Floats

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
MAX_DATASETS = 3
NOT_RECORDED = "—"
RUN_SPECIFIC = ("started", "finished", "command", "evidence")
"""Entries that differ between any two runs, so that a difference is not marked."""
INTERNAL_SETTINGS = (UNIT_NOUN, DISPLAY, RESAMPLE_ID, ERROR_DF)
"""Settings that only the program needs."""
SIGNIFICANT_DIGITS = 4


@dataclass(frozen=True)
class RunSet:
    """The runs, best first, their comparison, and the metrics that all of them have, the primary one first."""

    runs: tuple[StoredRun, ...]
    comparison: Comparison | None
    metrics: tuple[str, ...]
    fractions: RunSet | None = None
    """The same scores as they were measured, if these are in percent."""

    @classmethod
    def of(cls, runs: Sequence[StoredRun], comparison: Comparison | None) -> RunSet:
        """Sort the runs; a comparison must be of exactly these runs."""
        if not runs:
            raise ParameterError("a report needs at least one run", hint="name a run directory")
        if comparison is None:
            return cls._single(runs)
        by_name = {run.result.system: run for run in runs}
        if set(by_name) != set(comparison.systems) or len(by_name) != len(runs):
            raise ParameterError(
                f"the comparison is of {', '.join(comparison.systems)}, and the runs of {', '.join(by_name)}",
                hint="compare the results of exactly these runs",
            )
        others = [name for name in comparison.metrics if name != comparison.primary]
        return cls(tuple(by_name[name] for name in comparison.order), comparison, (comparison.primary, *others))

    @classmethod
    def _single(cls, runs: Sequence[StoredRun]) -> RunSet:
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
        """The metric that determines the order."""
        return self.metrics[0]

    @property
    def better(self) -> Direction:
        """The better direction of the primary metric."""
        return self.estimates(self.primary)[0].better

    @property
    def names(self) -> tuple[str, ...]:
        """The systems, best first."""
        return tuple(run.result.system for run in self.runs)

    @property
    def n(self) -> int:
        """The number of units that the verdict is about: those with a value of the primary metric."""
        if self.comparison is not None:
            return self.comparison.n_scored
        return self.estimates(self.primary)[0].n

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The findings of the runs and of their comparison."""
        if self.comparison is not None:
            return self.comparison.findings
        return self.runs[0].result.findings

    @property
    def units(self) -> list[str | int]:
        """The ids of all units, in the order of the first run."""
        ids: list[str | int] = self.runs[0].result.unit_ids.tolist()
        return ids

    def estimates(self, metric: str) -> list[Estimate]:
        """The estimate of every system on a metric."""
        if self.comparison is None:
            return [self.runs[0].result.estimates[metric]]
        return [self.comparison.estimates[name][metric] for name in self.names]

    def per_unit(self, metric: str) -> Floats | None:
        """Values of every unit and system, shape (units, systems); None for a metric without per-unit values."""
        if any(metric not in run.result.per_unit for run in self.runs):
            return None
        if self._aligned is None:
            return np.asarray(self.runs[0].result.per_unit[metric], dtype=np.float64)[:, np.newaxis]
        return self._aligned.per_unit(metric)

    @property
    def words(self) -> Vocabulary:
        """What the units, the systems and the primary metric are called."""
        return Vocabulary.of([run.result for run in self.runs], self.primary)

    def in_percent(self) -> RunSet:
        """The same scores under the names and in the unit that the settings of the results ask for."""
        names = percent_names(self.runs[0])
        if not names:
            return self
        comparison = None if self.comparison is None else comparison_in_percent(self.comparison, names)
        runs = tuple(run_in_percent(run, names) for run in self.runs)
        return RunSet(runs, comparison, tuple(names.get(metric, metric) for metric in self.metrics), self)

    def slice_estimates(self, slices: Slices) -> list[dict[tuple[str, str], Estimate]]:
        """For every system, the primary metric by name and value of a slice."""
        measured = self.fractions or self
        columns = [
            {(part.name, part.value): part.estimate for part in slice_estimates(result, measured.primary, slices)}
            for result in measured._complete_results
        ]
        if self.primary == measured.primary:
            return columns
        return [{key: _in_percent(estimate, self.primary) for key, estimate in column.items()} for column in columns]

    @property
    def _complete_results(self) -> Sequence[Result]:
        """The results; with a comparison, on the units on which it is made."""
        if self.comparison is None or self._aligned is None:
            return [run.result for run in self.runs]
        return on_complete_units(self._aligned, [self.primary], {}, self.comparison.config)[0].results

    @cached_property
    def _aligned(self) -> AlignedResults | None:
        return align_results([run.result for run in self.runs]) if len(self.runs) > 1 else None


def percent_names(run: StoredRun) -> dict[str, str]:
    """The metrics that the settings of a result ask to print in percent, with their names: ``Acc@1 (%)``."""
    return _percent_names(run.result)


def _percent_names(result: Result) -> dict[str, str]:
    return {
        metric: f"{name}{PERCENT_UNIT}" for metric, name in result.settings.get(DISPLAY, {}).get("percent", {}).items()
    }


def result_in_percent(result: Result) -> Result:
    """The result with the estimates that its settings ask to print in percent; values per unit are unchanged."""
    names = _percent_names(result)
    return replace(result, estimates=_estimates_in_percent(result.estimates, names)) if names else result


def run_in_percent(run: StoredRun, names: Mapping[str, str]) -> StoredRun:
    """The run with these metrics renamed and in percent."""
    result = run.result
    scaled = replace(
        result,
        estimates=_estimates_in_percent(result.estimates, names),
        per_unit=_renamed_keys(result.per_unit, names, 100.0),
        weights=_renamed_keys(result.weights, names),
        errors=_renamed_keys(result.errors, names, 100.0),
    )
    copy = replace(run, result=scaled)
    if run.tuning is not None and run.tuning.metric in names:
        vars(copy)["tuning"] = _tuning_in_percent(run.tuning, names[run.tuning.metric])  # a cached property
    return copy


def comparison_in_percent(comparison: Comparison, names: Mapping[str, str]) -> Comparison:
    """The comparison with these metrics renamed and in percent."""
    factor = 100.0 if comparison.primary in names else 1.0
    scaled = replace(
        comparison,
        metrics=tuple(names.get(metric, metric) for metric in comparison.metrics),
        primary=names.get(comparison.primary, comparison.primary),
        estimates={
            system: _estimates_in_percent(estimates, names) for system, estimates in comparison.estimates.items()
        },
        contrasts=tuple(
            replace(
                contrast,
                metric=names[contrast.metric],
                difference=100.0 * contrast.difference,
                interval=contrast.interval.scaled(100.0),
                sd=None if contrast.sd is None else 100.0 * contrast.sd,
                detectable=replace(contrast.detectable, value=100.0 * contrast.detectable.value),
            )
            if contrast.metric in names
            else contrast
            for contrast in comparison.contrasts
        ),
        scores={system: factor * score for system, score in comparison.scores.items()},
        missing={names.get(metric, metric): systems for metric, systems in comparison.missing.items()},
        families={
            names.get(metric, metric): family.replace(f" on {metric}", f" on {names.get(metric, metric)}")
            for metric, family in comparison.families.items()
        },
    )
    restated = run_checks(scaled)
    codes = {finding.code for finding in restated}
    others = tuple(finding for finding in comparison.findings if finding.code not in codes)
    return replace(scaled, findings=(*others, *restated))


def _estimates_in_percent(estimates: Mapping[str, Estimate], names: Mapping[str, str]) -> dict[str, Estimate]:
    return {
        names.get(metric, metric): _in_percent(estimate, names[metric]) if metric in names else estimate
        for metric, estimate in estimates.items()
    }


def _in_percent(estimate: Estimate, name: str) -> Estimate:
    return replace(
        estimate,
        metric=name,
        value=100.0 * estimate.value,
        interval=estimate.interval.scaled(100.0),
        chance=100.0 * estimate.chance,
        unit="percent",
    )


def _renamed_keys(columns: Mapping[str, Any], names: Mapping[str, str], factor: float | None = None) -> dict[str, Any]:
    return {
        names.get(metric, metric): column if factor is None or metric not in names else factor * column
        for metric, column in columns.items()
    }


def _tuning_in_percent(tuning: TuningRecord, name: str) -> TuningRecord:
    def scaled(trial: Trial) -> Trial:
        return replace(trial, value=100.0 * trial.value)

    return replace(
        tuning,
        metric=name,
        trials=tuple(map(scaled, tuning.trials)),
        frontier=tuple(map(scaled, tuning.frontier)),
        optimistic=100.0 * tuning.optimistic,
        nested=100.0 * tuning.nested,
        folds=tuple(replace(fold, inner=100.0 * fold.inner, outer=100.0 * fold.outer) for fold in tuning.folds),
        split_sd=None if tuning.split_sd is None else 100.0 * tuning.split_sd,
    )


def system_label(index: int) -> str:
    """A letter as the short label of the system with this index.

    >>> system_label(0), system_label(27)
    ('A', 'B2')
    """
    cycle, letter = divmod(index, len(LETTERS))
    return LETTERS[letter] + (str(cycle + 1) if cycle else "")


def systems(subject: RunSet) -> tuple[SystemInfo, ...]:
    """Every system with its letter."""
    return tuple(
        SystemInfo(run.result.system, system_label(index), run.caution) for index, run in enumerate(subject.runs)
    )


def title(subject: RunSet) -> str:
    """The systems, the primary metric and the number of units."""
    words = subject.words
    units = words.units(subject.n)
    if len(subject.names) == 1:
        return f"{subject.names[0]} by {words.metric} on {units}"
    return f"{len(subject.names)} {words.system}s by {words.metric} on {units}"


def data_and_dates(manifests: Sequence[Manifest]) -> str:
    """The data and the dates, if the manifests of the runs have them."""
    names = data_names(name for manifest in manifests for name in manifest.datasets)
    days = sorted({manifest.finished[:10] for manifest in manifests if manifest.finished})
    when = " to ".join(dict.fromkeys((days[0], days[-1]))) if days else ""
    return ". ".join(part for part in (names and f"Data: {names}", when and f"Measured {when}") if part)


def data_names(datasets: Iterable[str]) -> str:
    """The names of the first few data sets or files, without their folders.

    >>> data_names(["cranfield/truth.qrels", "b"])
    'truth.qrels, b'
    """
    names = list(dict.fromkeys(PurePath(name).name for name in datasets))
    more = f" and {len(names) - MAX_DATASETS} more" if len(names) > MAX_DATASETS else ""
    return ", ".join(names[:MAX_DATASETS]) + more


def verdict(subject: RunSet) -> str:
    """The verdict of the comparison, or the score of a single run."""
    words = subject.words
    if subject.comparison is not None:
        return subject.comparison.verdict(words=words)
    estimate = subject.estimates(subject.primary)[0]
    shown = ScoreFormat.of([estimate.interval], percent=words.percent)
    chance = "n/a (not computed)" if np.isnan(estimate.chance) else shown.value(estimate.chance)
    if subject.names[0] in bounded_systems(subject.findings):
        chance = f"at {'most' if estimate.better == Direction.UP else 'least'} {chance}"
    return (
        f"{subject.names[0]} scores {shown.value(estimate.value)} on {words.metric} "
        f"({format_percent(estimate.interval.confidence_level)} interval {shown.interval(estimate.interval)}; "
        f"chance {chance}) over {words.units(estimate.n)}. "
        f"One {words.system} alone does not show which is best: add a baseline."
    )


def protocol_section(subject: RunSet) -> ProtocolSection:
    """Notes on the method, and the recorded settings of every run."""
    manifests = [run.manifest for run in subject.runs]
    groups = (
        _group(f"Parameters of the {plural(subject.words.system)}", [manifest.parameters for manifest in manifests]),
        _group("Settings of the evaluation", list(map(_evaluation_settings, manifests))),
        _group("Data (SHA-256)", [manifest.datasets for manifest in manifests]),
        _group("Other costs", list(map(_other_costs, manifests)), run_specific=True),
        _group(
            "Inputs of the runs (SHA-256)",
            [manifest.inputs for manifest in manifests],
            run_specific=True,
            folded=True,
        ),
        _group("Runs", [_run(manifest, subject.words.plural) for manifest in manifests], folded=True),
        _group("Versions", [manifest.versions for manifest in manifests], folded=True),
    )
    return ProtocolSection(_notes(subject), tuple(group for group in groups if group.entries))


def _evaluation_settings(manifest: Manifest) -> dict[str, Any]:
    """The settings without those that are also a parameter of the system, a cost or the seed."""
    listed = {**manifest.parameters, **manifest.cost, "seed": manifest.seed}
    return {name: value for name, value in manifest.settings.items() if _text(listed.get(name)) != _text(value)}


def _other_costs(manifest: Manifest) -> dict[str, str]:
    """The costs that are neither in the table of costs nor part of a setting, such as the input window."""
    return {name: text for name, text in extra_costs(manifest.cost).items() if name not in manifest.settings}


def _notes(subject: RunSet) -> tuple[str, ...]:
    scores = score_caption([run.result for run in subject.runs])
    if subject.comparison is None:
        return (scores,)
    return comparison_caption(subject.comparison, subject.words.system.capitalize()), scores


def _run(manifest: Manifest, units: str) -> dict[str, Any]:
    evidence = manifest.evidence
    return {
        "status": manifest.status,
        units: manifest.units,
        "seed": manifest.seed,
        "started": manifest.started,
        "finished": manifest.finished,
        "command": " ".join(manifest.command),
        "evidence": f"{evidence['kind']} {evidence['sha256']}" if evidence else None,
    }


def _group(
    title: str, by_system: Sequence[Mapping[str, Any]], *, run_specific: bool = False, folded: bool = False
) -> ProtocolGroup:
    names = dict.fromkeys(name for values in by_system for name in values)
    entries = []
    for name in names:
        if name in INTERNAL_SETTINGS:
            continue
        texts = tuple(_entry_text(name, values.get(name)) for values in by_system)
        if set(texts) == {NOT_RECORDED}:
            continue
        differs = len(set(texts)) > 1 and not run_specific and name not in RUN_SPECIFIC
        entries.append(ProtocolEntry(entry_name(name), texts, differs))
    return ProtocolGroup(title, tuple(entries), folded)


def _entry_text(name: str, value: Any) -> str:
    """A value of the protocol; the input window of a model is a sentence.

    >>> _entry_text("window", {"tokens": 256, "texts": 130, "truncated": 2}), _entry_text("window", 256)
    ('256 tokens; 2 of 130 texts truncated', '256')
    """
    if name == "seed":
        return NOT_RECORDED if value is None else str(value)
    if name == "window" and isinstance(value, Mapping) and {"tokens", "texts", "truncated"} <= set(value):
        limit = "no limit" if value["tokens"] is None else f"{_text(value['tokens'])} tokens"
        return f"{limit}; {_text(value['truncated'])} of {_text(value['texts'])} texts truncated"
    return _text(value)


def _text(value: Any) -> str:
    """A value as text: numbers with four significant digits, lists with commas; an empty one is a dash.

    >>> _text(798.4769230769231), _text({"chunk_size": [50, 100], "chunker": "fixed"}), _text(None)
    ('798.5', 'chunk size in tokens 50, 100; chunking method fixed', '—')
    """
    if value is None or value == "" or value in ((), [], {}):
        return NOT_RECORDED
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float) and (not isfinite(value) or value != int(value)):
        return f"{value:.{SIGNIFICANT_DIGITS}g}"
    if isinstance(value, Mapping):
        return "; ".join(f"{entry_name(str(key))} {_text(entry)}" for key, entry in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(_text, value))
    if isinstance(value, int | float):
        return format_count(int(value))
    return str(value)


def build_view(
    runs: Sequence[StoredRun],
    comparison: Comparison | None = None,
    *,
    experiment: View | None = None,
    exports: bool = True,
    heading: str = "",
    stored_answer: bool = True,
) -> RunsView:
    """The view of one run, or of several runs and their comparison.

    ``experiment`` is the view that was stored with the runs: its answer and its sections come first;
    ``stored_answer=False`` replaces the answer by the verdict of the comparison. ``exports=False`` leaves out the
    downloads, which take most of the time. ``heading`` replaces the title.
    """
    subject = RunSet.of(runs, comparison)
    slices = read_unit_slices(subject.runs)
    downloads, notes = export_downloads(subject) if exports else ((), ())
    words, shown = subject.words, experiment or View(Answer(verdict(subject), ()))
    if not stored_answer:
        shown = replace(shown, answer=Answer(verdict(subject), (), failures=shown.answer.failures))
    heading = heading or title(subject)
    subject = subject.in_percent()
    # The experiment knows more than its runs: which models a finding affects, or that a tree cannot be enlarged.
    findings = (shown.answer.findings if stored_answer else ()) or subject.findings
    return RunsView(
        answer=replace(shown.answer, findings=findings),
        sections=tuple(section for section in shown.sections if section.on_page),
        citation=shown.citation,
        title=heading,
        subtitle=data_and_dates([run.manifest for run in subject.runs]),
        systems=systems(subject),
        primary=subject.primary,
        better=str(subject.better),
        leaderboards=leaderboard_tables(subject),
        costs=cost_table(subject),
        parameters=parameter_table(subject),
        pairwise=pairwise_table(subject),
        slices=slice_table(subject, slices),
        explorer=build_unit_explorer(subject, slices),
        distributions=value_distributions(subject),
        tuning=tuning_views(subject),
        protocol=protocol_section(subject),
        downloads=downloads,
        notes=notes,
        unit=words.unit,
        units=words.plural,
        system=words.system,
    )


def read_runs(named: Sequence[tuple[str, Path]], primary: str | None = None) -> tuple[StoredRun, ...]:
    """Read run directories, each with a new name for its system or an empty string.

    Two systems with one name are an error. A ``primary`` metric comes first, and is computed if it is missing.
    Evidence is read only if a metric needs it.
    """
    runs: dict[str, StoredRun] = {}
    repeated: list[StoredRun] = []
    for name, path in named:
        run = _with_unit_noun(_read(path, primary))
        run = run.renamed(name) if name else run
        if runs.setdefault(run.result.system, run) is not run:
            repeated.append(run)
    if repeated:
        names = [run.result.system for run in repeated]
        renamed = [f"{name}-{2 + names[:place].count(name)}={repeated[place].path}" for place, name in enumerate(names)]
        raise DuplicateError(
            f"{runs[names[0]].path} and {repeated[0].path} are both runs of {names[0]}",
            hint=f"add other names: {shlex.join(renamed)}",
        )
    return tuple(runs.values())


def compare_runs(
    runs: Sequence[StoredRun],
    *,
    primary: str | None = None,
    config: StatsConfig | None = None,
) -> Comparison | None:
    """The comparison of the runs on the metrics that all of them have; None for a single run.

    Without ``config``, the settings that all runs record are used.
    """
    if len(runs) < 2:
        return None
    results = [run.result for run in runs]
    return compare(results, primary=primary, config=recorded_stats(results) if config is None else config)


def _read(path: Path, primary: str | None) -> StoredRun:
    run = load_run(path, evidence=False)
    if not _is_sufficient(run.result, primary):
        run = load_run(path)
    if primary is None:
        return run
    return replace(run, result=with_metrics(run.result, [primary, *run.result.names]))


def _with_unit_noun(run: StoredRun) -> StoredRun:
    """The run with the name of its units, which follows from the kind of its evidence if it was not recorded."""
    kind = (run.manifest.evidence or {}).get("kind", "")
    if UNIT_NOUN in run.result.settings or kind not in EVIDENCE_NOUNS:
        return run
    return replace(run, result=replace(run.result, settings={**run.result.settings, UNIT_NOUN: EVIDENCE_NOUNS[kind]}))


def _is_sufficient(result: Result, primary: str | None) -> bool:
    """Whether all metrics can be compared without the evidence."""
    if any(name not in result.per_unit for name in result.names):
        return False
    try:
        return primary is None or bool(result[primary])
    except UnknownNameError:
        return False
