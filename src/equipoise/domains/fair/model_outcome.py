"""The folder of a comparison, from which finished models are read back.

results.json        every figure of every model, and the claims
runs/MODEL/         a run directory, as eq compare and eq report read them
visualizations/     every chart as PNG and SVG, where they can be drawn
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from equipoise.checks.base import ScoredResult, TruncationStats
from equipoise.checks.protocol import TunedSystem
from equipoise.checks.registry import run_checks
from equipoise.domains.fair.chunk_index import ChunkingParams, chunk_locations
from equipoise.domains.fair.comparison_findings import setup_findings
from equipoise.domains.fair.grid_search import (
    GridEvidence,
    GridSearchResult,
    Progress,
    run_grid,
    select_configuration,
)
from equipoise.domains.fair.model_result import METRIC, ModelProfile, OptimizationResult, optimization_result
from equipoise.errors import EquipoiseError
from equipoise.models.memory_cache import dense_models, memoise_retriever, n_cached_texts
from equipoise.runs.experiment import RUNS
from equipoise.runs.manifest import Manifest, redact_secrets
from equipoise.runs.run_directory import read_manifest
from equipoise.runs.store import StoredRun, load_run, save_run
from equipoise.runs.unit_table import RetrievedItem, UnitContent, UnitContents
from equipoise.stats.alignment import NOTES, SPEC, WINDOW

if TYPE_CHECKING:
    from equipoise.domains.fair.dataset import QADataset
    from equipoise.domains.fair.plan import Plan
    from equipoise.models.retriever import Retriever
    from equipoise.models.worker_pool import ExecutorMap
    from equipoise.stats.result import Result
    from equipoise.tuning.grid import TuningRecord
    from equipoise.types import Finding

# One model, from its name to what a run directory keeps of it.


@dataclass(frozen=True)
class FairModelResult:
    """What one model showed; ``stored`` is the run that it was read back from, where it was."""

    facts: ModelProfile
    tuning: TuningRecord
    result: Result
    own_details: UnitContents = field(default_factory=dict, repr=False)
    stored: StoredRun | None = None
    begun: Manifest = field(kw_only=True, repr=False)
    """When it was begun and when it was finished."""

    @property
    def details(self) -> UnitContents:
        """What people see of each question: its text, its answer, what was retrieved for it."""
        return self.own_details if self.stored is None else self.stored.details

    @cached_property
    def optimization(self) -> OptimizationResult:
        """The same in the fields of the source."""
        return optimization_result(self.facts, self.tuning, self.result)


def evaluate_model(
    name: str, system: Retriever, plan: Plan, step: Progress, over: ExecutorMap | None = None
) -> FairModelResult:
    """Tune one model and measure it honestly; ``over`` embeds its texts elsewhere, with the same vectors."""
    start, begun = perf_counter(), Manifest.start(name)
    system = memoise_retriever(system)
    observed = run_grid(system, plan.shelved, plan.material, plan.settings.depth, plan.matcher, step, over)
    tuned = select_configuration(name, observed, plan.material, plan.settings, plan.splits)
    best = observed[tuned.best]
    facts = _outcome_facts(name, system, tuned, observed, perf_counter() - start)
    findings = setup_findings(tuned.tuning, plan) + _findings(facts, tuned, best)
    result = replace(tuned.result, findings=findings, settings={**tuned.result.settings, **_terms(facts, plan)})
    details = _details(tuned, observed, plan.material)
    return FairModelResult(facts, tuned.tuning, result, details, begun=begun.finish())


def _outcome_facts(
    name: str,
    system: Retriever,
    tuned: GridSearchResult,
    observed: Mapping[ChunkingParams, GridEvidence],
    seconds: float,
) -> ModelProfile:
    card, best = system.card, observed[tuned.best]
    choosable = [observed[chunking] for chunking in tuned.choosable]
    models = dense_models(system)
    dimensions = [model.dims for model in models]
    windows = [model.card.max_tokens for model in models if model.card.max_tokens is not None]
    cut = [None if each.truncation is None else each.truncation.truncated for each in choosable]
    return ModelProfile(
        spec=name,
        name=card.name,
        dimensions=sum(dimensions) if dimensions else None,
        bytes_per_vector=card.bytes_per_vector,
        truncated_share=0.0 if best.truncation is None else best.truncation.share,
        window=min(windows, default=None),
        grid_chunks=sum(len(each.cut.chunks) for each in choosable),
        grid_truncated=_sum(cut) if models else 0,
        tied_questions=tuned.tied_questions,
        retrieved_tokens=tuned.tuning.trials[tuned.tuning.best].cost,
        seconds=seconds,
        cached_texts=n_cached_texts(system),
        configurations=tuned.configurations,
    )


def _terms(facts: ModelProfile, plan: Plan) -> dict[str, Any]:
    """What a comparison must know of the model and of the setup, whoever makes it."""
    return {
        SPEC: facts.spec,
        WINDOW: {
            "tokens": facts.window,
            "texts": facts.grid_chunks,
            "truncated": facts.grid_truncated,
        },
        **({NOTES: list(plan.notes)} if plan.notes else {}),
    }


def _findings(facts: ModelProfile, tuned: GridSearchResult, best: GridEvidence) -> tuple[Finding, ...]:
    """What is wrong with how this model was tuned, and how it reads the chunks of its best configuration."""
    found = run_checks(TunedSystem.of(facts.spec, tuned.tuning)) + run_checks(ScoredResult(tuned.result, {}))
    seen = best.truncation
    if seen is not None:
        found += run_checks(TruncationStats(facts.spec, facts.window, seen.texts, seen.truncated, seen.lost_tokens))
    return found


def _sum(counts: Sequence[int | None]) -> int | None:
    """The sum; unknown where one of them is."""
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None


def _details(
    tuned: GridSearchResult, observed: Mapping[ChunkingParams, GridEvidence], material: QADataset
) -> dict[str | int, UnitContent]:
    """Every question with what was retrieved for it by the configuration that scored it."""
    where = {
        chunking: chunk_locations(observed[chunking].cut, material.documents)
        for chunking in {chunking for chunking, _ in tuned.scored_by}
    }
    details: dict[str | int, UnitContent] = {}
    for row, (question, (chunking, k)) in enumerate(zip(material.questions, tuned.scored_by, strict=True)):
        seen = observed[chunking]
        right = set(seen.search.holders[row].tolist())
        found = (
            RetrievedItem(
                f"{chunking.chunker}-{chunking.chunk_size}-{chunking.overlap}-{at + 1}",
                seen.cut.chunks[at].text,
                score,
                at in right,
                where[chunking][at],
            )
            for at, score in zip(seen.search.order[row, :k].tolist(), seen.search.scores[row, :k].tolist(), strict=True)
        )
        details[question.id] = UnitContent(question.question, (question.answer,), question.kinds, tuple(found))
    return details


def question_slices(material: QADataset) -> Mapping[str, Mapping[str, str]]:
    """The category and the difficulty of every question that has them; empty where none has."""
    return {question.id: question.kinds for question in material.questions if question.kinds}


VERSION = "fair comparison 3"
"""Grows when the same inputs would give other scores."""

_INPUTS = "all inputs of this comparison"
_SETUP = "all inputs but the model"


def job_fingerprint(plan: Plan, name: str, model_fingerprint: str) -> str:
    """A digest of everything that decides the figures of one model, and of what it is called."""
    parts = (
        name,
        VERSION,
        plan.settings.metric,
        plan.settings.fingerprint,
        *plan.material.fingerprints.values(),
        model_fingerprint,
    )
    return _digest(parts)


def context_fingerprint(plan: Plan) -> str:
    """A digest of what all models of a comparison share: settings, document and questions."""
    return _digest((VERSION, plan.settings.fingerprint, *plan.material.fingerprints.values()))


def _digest(parts: Iterable[str]) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def strangers(folder: Path, own: Iterable[str], plan: Plan) -> dict[str, bool]:
    """The other run directories in the folder of a comparison, and whether each is of the same setup."""
    if not (folder / RUNS).is_dir():
        return {}
    names = set(own)
    others = sorted(path for path in (folder / RUNS).iterdir() if path.name not in names)
    found = {}
    for path in others:
        try:
            found[path.name] = read_manifest(path).inputs.get(_SETUP) == context_fingerprint(plan)
        except EquipoiseError:
            continue  # whatever lies there, it is no run
    return found


def write_outcome(path: Path, done: FairModelResult, plan: Plan, key: str, command: Sequence[str] = ()) -> Path:
    """A run directory of one model."""
    facts = done.facts
    manifest = Manifest(
        system=facts.spec,
        started=done.begun.started,
        finished=done.begun.finished,
        command=redact_secrets(command),
        seed=plan.settings.seed,
        datasets=plan.material.fingerprints,
        inputs={_INPUTS: key, _SETUP: context_fingerprint(plan)},
        parameters={
            "model": facts.spec,
            "model_name": facts.name,
            **done.tuning.trials[done.tuning.best].params,
            "matcher": plan.settings.matcher,
            "tokenizer": plan.settings.tokenizer_name,
            "folds": plan.fold_count,
            "repeats": max(1, len(plan.splits)),
            "configurations": facts.configurations,
        },
        cost={
            "dims": facts.dimensions,
            "bytes_per_vector": facts.bytes_per_vector,
            # Vectors that an earlier run made cost nothing now, so that these seconds compare with no others.
            "seconds": None if facts.cached_texts else facts.seconds,
            "seconds_with_cache": facts.seconds,
            "texts_from_cache": facts.cached_texts,
            "truncated_share": facts.truncated_share,
            "retrieved_tokens": facts.retrieved_tokens,
            "window": facts.window,
            "grid_chunks": facts.grid_chunks,
            "grid_truncated": facts.grid_truncated,
            "tied_questions": facts.tied_questions,
        },
    )
    return save_run(path, done.result, manifest=manifest, details=done.details, tuning=done.tuning)


def load_result(path: Path | None) -> tuple[str, FairModelResult] | None:
    """The finished run that lies there, with the key of its inputs; None where there is none.

    A directory that cannot be read is no reason to fail: it is computed again and replaced.
    """
    if path is None:
        return None
    try:
        manifest = read_manifest(path)
        key = manifest.inputs.get(_INPUTS)
        if not manifest.complete or not key:
            return None
        stored = load_run(path, evidence=False)
        if stored.tuning is None or (stored.tuning.folds and METRIC not in stored.result.errors):
            return None
    except (EquipoiseError, OSError):
        return None
    return key, FairModelResult(_facts(manifest), stored.tuning, stored.result, stored=stored, begun=manifest)


def _facts(manifest: Manifest) -> ModelProfile:
    """What ``write_outcome`` said of the model."""
    cost = manifest.cost
    return ModelProfile(
        spec=manifest.system,
        name=str(manifest.parameters["model_name"]),
        dimensions=_whole(cost["dims"]),
        bytes_per_vector=cost["bytes_per_vector"],
        truncated_share=cost["truncated_share"],
        window=_whole(cost["window"]),
        grid_chunks=_whole(cost["grid_chunks"]) or 0,
        grid_truncated=_whole(cost["grid_truncated"]),
        tied_questions=_whole(cost.get("tied_questions")) or 0,
        retrieved_tokens=cost["retrieved_tokens"],
        seconds=float(cost["seconds_with_cache"] or 0.0),
        cached_texts=_whole(cost["texts_from_cache"]) or 0,
        configurations=int(manifest.parameters["configurations"]),
    )


def _whole(number: float | None) -> int | None:
    return None if number is None else int(number)
