"""The benchmark: models that find terms, measured on the same cases and compared pair by pair."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from equipoise.checks.base import counted
from equipoise.checks.catalogue import examine
from equipoise.data.cases import Case, read_cases
from equipoise.data.cases import cases as checked_cases
from equipoise.errors import InputError, ParameterError
from equipoise.ontology.index.aggregate import DEFAULT_STRATEGY, Weights
from equipoise.ontology.load import load_ontology
from equipoise.ontology.nearness import refuse_unbounded
from equipoise.ontology.ontology import Ontology
from equipoise.ontology.similarity import similarity
from equipoise.recipes.fair.models import named_models
from equipoise.recipes.phenotypes.comparison import PhenotypeBenchmark
from equipoise.recipes.phenotypes.device import judges_on_device, refuse_idle_device
from equipoise.recipes.phenotypes.engine import Bench, Outcome
from equipoise.recipes.phenotypes.figures import PRIMARY
from equipoise.recipes.phenotypes.golds import expected_terms
from equipoise.recipes.phenotypes.rerank import Judge
from equipoise.recipes.phenotypes.settings import (
    DEFAULT_MODEL,
    DEFAULT_RERANKER,
    DEFAULT_STRATEGIES,
    Mode,
    Settings,
    modes_of,
)
from equipoise.recipes.phenotypes.store import refuse_unwritable, write_run_of
from equipoise.recipes.phenotypes.truth import truth_of
from equipoise.run.evaluate import compare
from equipoise.run.progress import Step, reported
from equipoise.stats.result import Result
from equipoise.types import Finding

Cases = str | Path | Iterable[Case | dict[str, Any]]


def run_benchmark(
    models: Sequence[Any] | str = DEFAULT_MODEL,
    cases: Cases | None = None,
    ontology: Ontology | str = "hpo",
    *,
    multi: bool = False,
    strategy: str = DEFAULT_STRATEGY,
    weights: Weights | None = None,
    output: str | Path | None = None,
    progress: Step | None = None,
    command: Sequence[str] = (),
    **settings: Any,
) -> PhenotypeBenchmark:
    """Measure models on cases: MRR and six metrics at 1, 3, 5 and 10, with intervals and chance levels.

    ``models`` are specs (``use``, ``tfidf:``, ``sum:use+tfidf:``) or objects with ``encode``. ``cases`` are a
    file, dicts, or the sample cases where none are given. ``multi`` gives every label, synonym and definition
    a vector, which ``strategy`` puts together. All terms of the ontology are ranked for every case, whatever
    the model and the mode, so that all are compared at the same depth. Further ``settings``: ``reranker``
    (True for late interaction, or a spec), ``rerank_depth``, ``device``, ``measure`` of similarity, ``ks``,
    ``ties``, ``level``, ``resamples``, ``seed``, ``index_dir``, ``skip_unknown`` ids, and ``sample``: how
    many labels are looked up to see whether each finds itself. With ``output``, every model is written there
    as soon as it is measured.
    """
    modes = (Mode(multi, strategy, weights),)
    return _run(models, cases, ontology, modes, settings, output, progress, command)


def compare_vectors(
    models: Sequence[Any] | str = DEFAULT_MODEL,
    cases: Cases | None = None,
    ontology: Ontology | str = "hpo",
    *,
    strategies: Sequence[str] = DEFAULT_STRATEGIES,
    single: bool = True,
    weights: Weights | None = None,
    output: str | Path | None = None,
    progress: Step | None = None,
    command: Sequence[str] = (),
    **settings: Any,
) -> PhenotypeBenchmark:
    """One vector a term against one for each of its texts, put together in several ways.

    All strategies of a model are measured in the same pass over the same scores; further ``settings`` are
    those of ``run_benchmark``.
    """
    modes = modes_of(strategies, single=single, weights=weights)
    return _run(models, cases, ontology, modes, settings, output, progress, command)


def _run(
    models: Any,
    cases: Cases | None,
    ontology: Ontology | str,
    modes: tuple[Mode, ...],
    options: dict[str, Any],
    output: str | Path | None,
    progress: Step | None,
    command: Sequence[str],
) -> PhenotypeBenchmark:
    known = options.keys() - Settings.__dataclass_fields__.keys()
    if known:
        raise ParameterError(
            f"a benchmark has no setting {sorted(known)[0]}",
            hint=f"there are {', '.join(Settings.__dataclass_fields__)}",
        )
    settings = Settings(**{**options, "modes": modes}).checked()
    folder = None if output is None else Path(output)
    if folder is not None:
        refuse_unwritable(folder)
    named = named_models(models)
    refuse_idle_device(settings.device, named.values(), settings.reranker)
    bench = prepared(cases, ontology, settings)
    outcomes: list[Outcome] = []
    total = len(named) * len({mode.multi for mode in settings.modes}) + 1
    with reported(folder, "phenotype benchmark", total, command=command, step=progress) as step:
        for name, model in named.items():
            for outcome in bench.outcomes(model, name, step):
                outcomes.append(outcome)
                if folder is not None:
                    write_run_of(folder, outcome, bench, command)
        step("comparing")
        found = compared(outcomes, bench, command)
        for before, after in zip(outcomes, found.outcomes, strict=True):
            if folder is not None and after.result.findings != before.result.findings:
                write_run_of(folder, after, bench, command)
        return found


def prepared(cases: Cases | None, ontology: Ontology | str, settings: Settings) -> Bench:
    """All that models share: the cases resolved, the similarity, and the judge where there is one."""
    terms = ontology if isinstance(ontology, Ontology) else load_ontology(ontology)
    alike = similarity(terms, settings.measure)
    refuse_unbounded(alike)
    truth = truth_of(_cases(cases), terms, skip_unknown=settings.skip_unknown)
    if not truth.scored:
        raise InputError(
            f"none of {counted(len(truth.cases), 'case')} has an expected term, so nothing can be scored",
            hint='name the terms that should be found: "hpo_ids": ["HP:0001250"]',
        )
    return Bench(truth, alike, settings, _judge(settings, terms))


def compared(outcomes: Sequence[Outcome], bench: Bench, command: Sequence[str] = ()) -> PhenotypeBenchmark:
    """The claims over all that was measured."""
    settings = bench.settings
    shared = _findings(outcomes, bench)
    # They belong to every run directory: a report is made of these alone.
    outcomes = [replace(each, result=_with(each.result, shared)) for each in outcomes]
    results = [each.result for each in outcomes]
    comparison = None
    if len(results) > 1:
        comparison = compare(
            results,
            primary=PRIMARY,
            level=settings.level,
            flips=settings.flips,
            resamples=settings.resamples,
            seed=settings.seed,
        )
    return PhenotypeBenchmark(
        outcomes=tuple(outcomes),
        bench=bench,
        comparison=comparison,
        findings=comparison.findings if comparison else results[0].findings,
        command=tuple(command),
    )


def _with(result: Result, shared: tuple[Finding, ...]) -> Result:
    return replace(result, findings=tuple(dict.fromkeys((*shared, *result.findings))))


def _findings(outcomes: Sequence[Outcome], bench: Bench) -> tuple[Finding, ...]:
    seen = {each.name: each.seen for each in outcomes}
    return examine(expected_terms(seen, bench.truth, bench.alike))


def _cases(cases: Cases | None) -> tuple[Case, ...]:
    if cases is None:
        return (*read_cases("english"), *read_cases("german"))
    return read_cases(cases) if isinstance(cases, str | Path) else checked_cases(cases)


def _judge(settings: Settings, ontology: Ontology) -> Judge | None:
    if not settings.reranker:
        return None
    from equipoise.embed.rerank.rerank import reranker

    spec = DEFAULT_RERANKER if settings.reranker is True else settings.reranker
    options = {"device": settings.device} if settings.device and judges_on_device(spec) else {}
    # With labels alone the judge loses what the first stage found by a synonym: MRR .34 instead of .62.
    names = [
        ", ".join([label, *synonyms])
        for label, synonyms in zip(ontology.labels, ontology.synonyms, strict=True)
    ]
    return Judge(reranker(spec, **options), names, settings.rerank_depth)
