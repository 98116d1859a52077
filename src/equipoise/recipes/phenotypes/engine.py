"""One model on all cases: its texts embedded once, every way to see a term measured in the same pass."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from time import perf_counter
from typing import Any

from numpy.typing import NDArray

from equipoise.embed.card import Card
from equipoise.embed.retriever import Retriever
from equipoise.embed.spec import parse_spec
from equipoise.ontology.index.aggregate import aggregate
from equipoise.ontology.index.build import default_folder, missing_indexes, open_index
from equipoise.ontology.index.fitting import models_of
from equipoise.ontology.index.search import TermSystem
from equipoise.ontology.index.store import TermIndex
from equipoise.ontology.nearness import random_similarity
from equipoise.ontology.ontology import Ontology
from equipoise.ontology.similarity import Similarity
from equipoise.recipes.fair.models import loaded
from equipoise.recipes.phenotypes.device import runs_on_device
from equipoise.recipes.phenotypes.diagnosis import Diagnosis, diagnose
from equipoise.recipes.phenotypes.observe import KEPT, Ask, Observed, observe_all
from equipoise.recipes.phenotypes.rerank import Judge
from equipoise.recipes.phenotypes.score import details_of, result_of, slices_of
from equipoise.recipes.phenotypes.settings import Mode, Settings
from equipoise.recipes.phenotypes.truth import Truth
from equipoise.run.details import Details
from equipoise.run.progress import Step
from equipoise.stats.result import Result
from equipoise.stats.slices import Slice
from equipoise.types import Floats


@dataclass(frozen=True, eq=False)
class Outcome:
    """One model in one mode: its figures, the parts of the cases, and what people see of each case."""

    model: str
    mode: Mode
    judge: str
    card: Card
    seen: Observed
    result: Result
    slices: tuple[Slice, ...]
    details: Details
    seconds: float
    diagnosis: Diagnosis | None = None

    @property
    def name(self) -> str:
        """The name of the system in tables."""
        return self.result.system


@dataclass(frozen=True, eq=False)
class Bench:
    """What all models of a benchmark share."""

    truth: Truth
    alike: Similarity
    settings: Settings
    judge: Judge | None = None
    notes: list[str] = field(default_factory=list)

    @property
    def ontology(self) -> Ontology:
        """The ontology that terms are found in."""
        return self.truth.ontology

    @cached_property
    def luck(self) -> Floats:
        """The MaxOntSim of random terms, for every case and cutoff: once for all systems."""
        return random_similarity(
            self.alike, [terms.tolist() for terms in self.truth.expected], min(self.depth, len(self.ontology))
        )

    @property
    def depth(self) -> int:
        """How many of the first terms of a case are kept."""
        return max(KEPT, *self.settings.ks)

    def outcomes(self, model: Any, name: str, step: Step) -> list[Outcome]:
        """The model in every mode; what a mode shares with another is done once."""
        modes = self.settings.modes
        found: list[Outcome] = []
        with loaded(self._placed(model), threads=self.settings.threads) as system:
            for multi in (False, True):
                wanted = [mode for mode in modes if mode.multi == multi]
                if wanted:
                    step(f"{name}: {'multi' if multi else 'single'}-vector")
                    found += self._measured(system, name, wanted, multi)
        return sorted(found, key=lambda each: modes.index(each.mode))

    def _placed(self, model: Any) -> Any:
        """The model on the device that was asked for, where it can be put on one."""
        device = self.settings.device
        if device is None or not isinstance(model, str):
            return model
        if not runs_on_device(model):
            self.notes.append(f"{model} runs on the processor: a device is for models of the kind st:")
            return model
        return str(parse_spec(model).with_options(device=device))

    def _measured(self, system: Retriever, name: str, modes: Sequence[Mode], multi: bool) -> list[Outcome]:
        begun = perf_counter()
        terms = TermSystem(system, self.ontology, multi=multi, index=self._indexes(system, multi))
        names = [mode.name for mode in modes]
        seen = observe_all(_asking(terms, modes, self.judge), self.truth, names, depth=self.depth)
        seconds = perf_counter() - begun
        return [self._outcome(terms, name, mode, seen[mode.name], seconds / len(modes)) for mode in modes]

    def _indexes(self, system: Retriever, multi: bool) -> tuple[TermIndex, ...]:
        """The stored vectors of every model in the system.

        Where no folder was named, a model without an index embeds the texts anew.
        """
        given = self.settings.index_dir
        folder = Path(given).expanduser() if given else default_folder()
        missing = [] if given else missing_indexes(folder, self.ontology, system, multi)
        models = [model for model in models_of(system) if model not in missing]
        return tuple(open_index(folder, self.ontology, model, multi) for model in models)

    def _outcome(self, terms: TermSystem, name: str, mode: Mode, seen: Observed, seconds: float) -> Outcome:
        judge = "" if self.judge is None else self.judge.name
        system = f"{name} ({mode.name})" + (f" > {judge}" if judge else "")
        settings = self.settings
        result = result_of(seen, self.truth, self.alike, system, settings, self.luck)
        diagnosis = None
        if settings.sample:
            asked = terms.with_strategy(mode.strategy, mode.weights) if mode.multi else terms
            diagnosis = diagnose(asked, self.ontology, sample=settings.sample, seed=settings.seed)
        return Outcome(
            model=name,
            mode=mode,
            judge=judge,
            card=terms.card,
            seen=seen,
            result=result,
            slices=slices_of(result, self.truth, settings),
            details=details_of(seen, self.truth),
            seconds=seconds,
            diagnosis=diagnosis,
        )


def _asking(terms: TermSystem, modes: Sequence[Mode], judge: Judge | None) -> Ask:
    """The scores of every mode from one pass over the components."""

    def ask(texts: list[str]) -> Iterator[tuple[Mapping[str, NDArray[Any]], slice]]:
        for part, scores in _blocks(terms, modes, texts):
            found = {
                mode.name: aggregate(scores, terms.components, mode.strategy, mode.weights)
                if mode.multi
                else scores
                for mode in modes
            }
            if judge is not None:
                found = {name: judge.scores(texts[part], each) for name, each in found.items()}
            yield found, part

    return ask


def _blocks(
    terms: TermSystem, modes: Sequence[Mode], texts: list[str]
) -> Iterator[tuple[slice, NDArray[Any]]]:
    return terms.component_blocks(texts) if modes[0].multi else terms.score_blocks(texts)
