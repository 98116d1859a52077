"""One model, from its name to what a run directory keeps of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from time import perf_counter
from typing import Any

from equipoise.checks.catalogue import examine
from equipoise.checks.subjects import Scored, Window
from equipoise.checks.tuning import TunedSystem
from equipoise.embed.elsewhere import Spread
from equipoise.embed.retriever import Retriever
from equipoise.recipes.fair.chunking import Chunking, places
from equipoise.recipes.fair.engine import Observed, Step, observe
from equipoise.recipes.fair.findings import setup_findings
from equipoise.recipes.fair.material import Material
from equipoise.recipes.fair.plan import Plan
from equipoise.recipes.fair.remember import cached_texts, embedders, remembering
from equipoise.recipes.fair.result import ModelFacts, OptimizationResult, optimization_result
from equipoise.recipes.fair.tuning import Tuned, tune
from equipoise.run.details import Detail, Details, Retrieved
from equipoise.run.manifest import Manifest
from equipoise.run.store import StoredRun
from equipoise.stats.result import Result
from equipoise.stats.terms import NOTES, SPEC, WINDOW
from equipoise.tune.record import Tuning
from equipoise.types import Finding


@dataclass(frozen=True)
class Outcome:
    """What one model showed; ``stored`` is the run that it was read back from, where it was."""

    facts: ModelFacts
    tuning: Tuning
    result: Result
    own_details: Details = field(default_factory=dict, repr=False)
    stored: StoredRun | None = None
    begun: Manifest = field(kw_only=True, repr=False)
    """When it was begun and when it was finished."""

    @property
    def details(self) -> Details:
        """What people see of each question: its text, its answer, what was retrieved for it."""
        return self.own_details if self.stored is None else self.stored.details

    @cached_property
    def optimization(self) -> OptimizationResult:
        """The same in the fields of the source."""
        return optimization_result(self.facts, self.tuning, self.result)


def outcome(name: str, system: Retriever, plan: Plan, step: Step, over: Spread | None = None) -> Outcome:
    """Tune one model and measure it honestly; ``over`` embeds its texts elsewhere, with the same vectors."""
    start, begun = perf_counter(), Manifest.start(name)
    system = remembering(system)
    observed = observe(system, plan.shelved, plan.material, plan.settings.depth, plan.matcher, step, over)
    tuned = tune(name, observed, plan.material, plan.settings, plan.splits)
    best = observed[tuned.best]
    facts = _facts(name, system, tuned, observed, perf_counter() - start)
    findings = setup_findings(tuned.tuning, plan) + _findings(facts, tuned, best)
    result = replace(
        tuned.result, findings=findings, settings={**tuned.result.settings, **_terms(facts, plan)}
    )
    details = _details(tuned, observed, plan.material)
    return Outcome(facts, tuned.tuning, result, details, begun=begun.finish())


def _facts(
    name: str, system: Retriever, tuned: Tuned, observed: Mapping[Chunking, Observed], seconds: float
) -> ModelFacts:
    card, best = system.card, observed[tuned.best]
    choosable = [observed[chunking] for chunking in tuned.choosable]
    models = embedders(system)
    dimensions = [model.dims for model in models]
    windows = [model.card.max_tokens for model in models if model.card.max_tokens is not None]
    cut = [None if each.truncation is None else each.truncation.truncated for each in choosable]
    return ModelFacts(
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
        cached_texts=cached_texts(system),
        configurations=tuned.configurations,
    )


def _terms(facts: ModelFacts, plan: Plan) -> dict[str, Any]:
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


def _findings(facts: ModelFacts, tuned: Tuned, best: Observed) -> tuple[Finding, ...]:
    """What is wrong with how this model was tuned, and how it reads the chunks of its best configuration."""
    found = examine(TunedSystem.of(facts.spec, tuned.tuning)) + examine(Scored(tuned.result, {}))
    seen = best.truncation
    if seen is not None:
        found += examine(Window(facts.spec, facts.window, seen.texts, seen.truncated, seen.lost_tokens))
    return found


def _sum(counts: Sequence[int | None]) -> int | None:
    """The sum; unknown where one of them is."""
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None


def _details(
    tuned: Tuned, observed: Mapping[Chunking, Observed], material: Material
) -> dict[str | int, Detail]:
    """Every question with what was retrieved for it by the configuration that scored it."""
    where = {
        chunking: places(observed[chunking].cut, material.documents)
        for chunking in {chunking for chunking, _ in tuned.scored_by}
    }
    details: dict[str | int, Detail] = {}
    for row, (question, (chunking, k)) in enumerate(zip(material.questions, tuned.scored_by, strict=True)):
        seen = observed[chunking]
        right = set(seen.search.holders[row].tolist())
        found = (
            Retrieved(
                f"{chunking.chunker}-{chunking.chunk_size}-{chunking.overlap}-{at + 1}",
                seen.cut.chunks[at].text,
                score,
                at in right,
                where[chunking][at],
            )
            for at, score in zip(
                seen.search.order[row, :k].tolist(), seen.search.scores[row, :k].tolist(), strict=True
            )
        )
        details[question.id] = Detail(question.question, (question.answer,), question.kinds, tuple(found))
    return details


def slices_of(material: Material) -> Mapping[str, Mapping[str, str]]:
    """The category and the difficulty of every question that has them; empty where none has."""
    return {question.id: question.kinds for question in material.questions if question.kinds}
