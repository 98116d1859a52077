"""The term-retrieval benchmark: models evaluated on the same cases and compared pairwise."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from equipoise.checks.base import pluralize, run_checks
from equipoise.domains.phenotypes.cases import (
    Case,
    ResolvedCases,
    check_cases,
    expected_term_ranks,
    read_cases,
    resolve_cases,
)
from equipoise.domains.phenotypes.config import (
    DEFAULT_RERANKER,
    DEFAULT_STRATEGIES,
    PRIMARY,
    BenchmarkConfig,
    TermRepresentation,
    check_device_is_used,
    reranker_supports_device,
    supports_device,
    term_representations,
)
from equipoise.domains.phenotypes.defaults import DEFAULT_MODEL
from equipoise.domains.phenotypes.diagnostics import LabelDiagnostics, diagnose
from equipoise.domains.phenotypes.index.aggregation import DEFAULT_STRATEGY, Weights, aggregate_scores
from equipoise.domains.phenotypes.index.build import missing_indexes, open_index, resolve_index_dir
from equipoise.domains.phenotypes.index.lexicon import Translations, make_translator, read_translations
from equipoise.domains.phenotypes.index.retriever import TermRetriever, dense_models
from equipoise.domains.phenotypes.max_similarity import check_bounded, random_max_similarity
from equipoise.domains.phenotypes.ontology import Ontology, load_ontology
from equipoise.domains.phenotypes.report import write_benchmark, write_system_runs
from equipoise.domains.phenotypes.scoring import (
    MIN_DEPTH,
    RetrievedTerms,
    benchmark_result,
    case_details,
    case_slices,
    dataset_settings,
    failure_message,
    rank_cases_jointly,
)
from equipoise.domains.phenotypes.similarity import TermSimilarity, information_values, term_similarity
from equipoise.errors import EquipoiseError, InputError, ParameterError
from equipoise.models.registry import parse_spec
from equipoise.models.rerank import Reranker, reranked_scores, reranker
from equipoise.models.retriever import open_retriever, resolve_models
from equipoise.runs.compare import compare
from equipoise.runs.executors import Executor, check_device
from equipoise.runs.experiment_folder import ArtifactStore, ExperimentFolder
from equipoise.runs.progress_file import ProgressCallback, report_progress
from equipoise.runs.runner import Job, JobContext, JobOutput, resume_key, run_jobs

if TYPE_CHECKING:
    from equipoise.domains.phenotypes.index.files import TermIndex
    from equipoise.models.encoder import ModelCard
    from equipoise.models.retriever import Retriever
    from equipoise.runs.unit_table import UnitContents
    from equipoise.stats.comparison import Comparison
    from equipoise.stats.result import Result
    from equipoise.stats.slices import Slice
    from equipoise.types import Finding, Floats


@dataclass(frozen=True, eq=False)
class TermSystemResult:
    """One model with one term representation: its result, slices and details per case."""

    model: str
    representation: TermRepresentation
    reranker: str
    card: ModelCard
    retrieved: RetrievedTerms
    result: Result
    slices: tuple[Slice, ...]
    details: UnitContents
    seconds: float
    diagnosis: LabelDiagnostics | None = None

    @property
    def name(self) -> str:
        """The name of the system in tables."""
        return self.result.system

    @property
    def mode(self) -> str:
        """The representation, and the reranker if there is one."""
        return self.representation.name + (f" > {self.reranker}" if self.reranker else "")

    def to_dict(self) -> dict[str, Any]:
        return {
            "system": self.name,
            "model": self.model,
            "mode": self.representation.name,
            "reranker": self.reranker or None,
            "seconds": self.seconds,
            "estimates": [estimate.to_dict() for estimate in self.result.estimates.values()],
            "slices": [{"name": part.name, "slice": part.value, **part.estimate.to_dict()} for part in self.slices],
            "diagnosis": None if self.diagnosis is None else self.diagnosis.to_dict(),
        }


VERSION = "phenotype benchmark 2"
"""Increased when the same inputs give other scores."""


@dataclass(frozen=True, eq=False)
class BenchmarkContext:
    """The shared context of all models of a benchmark."""

    resolved_cases: ResolvedCases
    similarity: TermSimilarity
    settings: BenchmarkConfig
    notes: tuple[str, ...] = ()
    translations: Translations | None = None

    def __getstate__(self) -> dict[str, Any]:
        """A worker loads the reranker itself."""
        return {name: value for name, value in self.__dict__.items() if name != "reranker"}

    @cached_property
    def reranker(self) -> Reranker | None:
        """The reranker, if one is requested; it is loaded once per process."""
        settings = self.settings
        if not settings.reranker:
            return None
        spec = DEFAULT_RERANKER if settings.reranker is True else settings.reranker
        options = {"device": settings.device} if settings.device and reranker_supports_device(spec) else {}
        return reranker(spec, **options)

    @cached_property
    def term_names(self) -> list[str]:
        """The text of each term for the reranker. With labels only it loses synonyms: MRR .34 instead of .62."""
        terms = zip(self.ontology.labels, self.ontology.synonyms, strict=True)
        return [", ".join([label, *synonyms]) for label, synonyms in terms]

    @property
    def ontology(self) -> Ontology:
        """The ontology that terms are retrieved in."""
        return self.resolved_cases.ontology

    @cached_property
    def translated(self) -> str:
        """The number of cases that are also searched in translation, as text; empty if none is."""
        if not self.settings.translate:
            return ""
        translator = make_translator(self.ontology, self.translations)
        count = sum(translator(text) is not None for text in self.resolved_cases.texts)
        cases, verb = pluralize(len(self.resolved_cases.cases), "text"), "was" if count == 1 else "were"
        return f"{count} of {cases} {verb} also translated into English and searched again" if count else ""

    @cached_property
    def random_max_similarity(self) -> Floats:
        """The expected MaxOntSim of random terms per case and cutoff; the same for all systems."""
        return random_max_similarity(
            self.similarity,
            [terms.tolist() for terms in self.resolved_cases.expected],
            min(self.depth, len(self.ontology)),
        )

    @property
    def depth(self) -> int:
        """The number of stored top terms per case."""
        return max(MIN_DEPTH, *self.settings.ks)

    def key(self, name: str, system: Retriever) -> str:
        settings = replace(self.settings, index_dir=None, threads=1, translations=())
        data = dataset_settings(self.resolved_cases, self.similarity)
        labels = "" if self.translations is None else self.translations.fingerprint
        properties = self.resolved_cases.properties
        return resume_key(VERSION, name, system.fingerprint, data, properties, settings, self.depth, labels)

    def evaluate_model(self, system: Retriever, name: str, progress: ProgressCallback) -> list[TermSystemResult]:
        """Evaluate the model with every representation; shared work is done once."""
        representations = self.settings.representations
        outcomes: list[TermSystemResult] = []
        for multi_vector in (False, True):
            selected = [
                representation for representation in representations if representation.multi_vector == multi_vector
            ]
            if selected:
                progress(f"{name}: {'multi' if multi_vector else 'single'}-vector")
                outcomes += self._evaluate_representations(system, name, selected, multi_vector)
        return sorted(outcomes, key=lambda outcome: representations.index(outcome.representation))

    def on_device(self, model: Any) -> Any:
        """The model on the requested device, if it accepts one."""
        device = self.settings.device
        if device is None or not isinstance(model, str) or not supports_device(model):
            return model
        return str(parse_spec(model).with_options(device=device))

    def _evaluate_representations(
        self, system: Retriever, name: str, representations: Sequence[TermRepresentation], multi_vector: bool
    ) -> list[TermSystemResult]:
        start = perf_counter()
        terms = TermRetriever(
            system,
            self.ontology,
            multi_vector=multi_vector,
            index=self._indexes(system, multi_vector),
            translate=self.settings.translate,
            translations=self.translations,
        )
        names = [representation.name for representation in representations]
        score_blocks = partial(self._score_blocks, terms, representations)
        retrieved = rank_cases_jointly(score_blocks, self.resolved_cases, names, depth=self.depth)
        seconds = perf_counter() - start
        return [
            self._outcome(terms, name, representation, retrieved[representation.name], seconds / len(representations))
            for representation in representations
        ]

    def _score_blocks(
        self, terms: TermRetriever, representations: Sequence[TermRepresentation], texts: list[str]
    ) -> Iterator[tuple[Mapping[str, NDArray[Any]], slice]]:
        """The scores of all representations from one pass over the components."""
        multi_vector = representations[0].multi_vector
        for part, scores in terms.component_blocks(texts) if multi_vector else terms.score_blocks(texts):
            by_name = {
                representation.name: aggregate_scores(
                    scores, terms.components, representation.strategy, representation.weights
                )
                if multi_vector
                else scores
                for representation in representations
            }
            if self.reranker is not None:
                # Reranked terms score above 0 in their new order, all others 0 or less in their old order.
                rerank = partial(
                    reranked_scores,
                    reranker=self.reranker,
                    queries=texts[part],
                    documents=self.term_names,
                    depth=self.settings.rerank_depth,
                )
                by_name = {name: rerank(term_scores) for name, term_scores in by_name.items()}
            yield by_name, part

    def _indexes(self, system: Retriever, multi_vector: bool) -> tuple[TermIndex, ...]:
        """The stored vectors of every model in the system.

        Without an index folder, a model without an index embeds the texts.
        """
        index_dir = self.settings.index_dir
        folder = resolve_index_dir(index_dir)
        missing = [] if index_dir else missing_indexes(folder, self.ontology, system, multi_vector)
        models = [model for model in dense_models(system) if model not in missing]
        return tuple(open_index(folder, self.ontology, model, multi_vector) for model in models)

    def _outcome(
        self,
        terms: TermRetriever,
        name: str,
        representation: TermRepresentation,
        retrieved: RetrievedTerms,
        seconds: float,
    ) -> TermSystemResult:
        reranker = "" if self.reranker is None else self.reranker.card.spec
        system = f"{name} ({representation.name})" + (f" > {reranker}" if reranker else "")
        settings = self.settings
        result = benchmark_result(
            retrieved, self.resolved_cases, self.similarity, system, settings, self.random_max_similarity
        )
        diagnosis = None
        if settings.n_label_queries:
            retriever = (
                terms.with_strategy(representation.strategy, representation.weights)
                if representation.multi_vector
                else terms
            )
            diagnosis = diagnose(retriever, self.ontology, n_labels=settings.n_label_queries, config=settings.config)
        return TermSystemResult(
            model=name,
            representation=representation,
            reranker=reranker,
            card=terms.card,
            retrieved=retrieved,
            result=result,
            slices=case_slices(result, self.resolved_cases),
            details=case_details(retrieved, self.resolved_cases),
            seconds=seconds,
            diagnosis=diagnosis,
        )


def evaluate_job(job: Job[Any], context: JobContext[BenchmarkContext]) -> JobOutput[list[TermSystemResult]]:
    """Evaluate one model with every representation, unless its stored results have the same key.

    Results with failed cases have no key, so that a repeated command tries these cases again.
    """
    bench = context.shared
    with open_retriever(bench.on_device(job.inputs), threads=bench.settings.threads) as system:
        key = bench.key(job.name, system)
        if key == context.stored_key:
            return JobOutput(None, key)
        outcomes = bench.evaluate_model(system, job.name, context.progress)
    return JobOutput(outcomes, "" if any(outcome.retrieved.failures for outcome in outcomes) else key)


@dataclass(frozen=True, eq=False)
class PhenotypeBenchmark:
    """Results of systems on the same cases, in input order, with paired comparisons."""

    outcomes: tuple[TermSystemResult, ...]
    bench: BenchmarkContext
    comparison: Comparison | None
    findings: tuple[Finding, ...] = ()
    command: tuple[str, ...] = ()
    failed_models: Mapping[str, EquipoiseError] = field(default_factory=dict)
    resumed: tuple[str, ...] = ()
    """The models that were loaded from the output folder instead of computed."""

    def __len__(self) -> int:
        return len(self.outcomes)

    def __getitem__(self, system: int | str) -> Result:
        """The result of a system, by its number or its name."""
        return self.results[system] if isinstance(system, str) else self.outcomes[system].result

    @property
    def results(self) -> Mapping[str, Result]:
        """The results by the names of the systems."""
        return {outcome.name: outcome.result for outcome in self.outcomes}

    @property
    def failures(self) -> dict[str, EquipoiseError]:
        """The models that failed, and the cases that a system could not answer as ``system, case``."""
        failed_cases = {
            f"{outcome.name}, case {case}": error
            for outcome in self.outcomes
            for case, error in outcome.retrieved.failures.items()
        }
        return {**self.failed_models, **failed_cases}

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes about ids, devices, translations and failed cases, without full stops."""
        failed = [
            f"{outcome.name}: {failure_message(outcome.retrieved)}"
            for outcome in self.outcomes
            if outcome.retrieved.failures
        ]
        others = filter(None, (self.bench.translated, "; ".join(failed)))
        return (*self.bench.resolved_cases.notes, *self.bench.notes, *others)

    def verdict(self) -> str:
        """The verdict of the comparison; the MRR if there is one system."""
        return self.comparison.verdict("case") if self.comparison else str(self.outcomes[0].result["MRR"])

    def write(self, folder: str | Path) -> list[Path]:
        """Write a run directory for every system, results.json, and the charts if they can be rendered."""
        return write_benchmark(Path(folder), self)

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values for JSON."""
        resolved_cases = self.bench.resolved_cases
        return {
            "ontology": {
                "name": resolved_cases.ontology.name,
                "release": resolved_cases.ontology.release,
                "terms": len(resolved_cases.ontology),
                "citation": resolved_cases.ontology.citation,
            },
            "cases": len(resolved_cases.cases),
            "scored_cases": resolved_cases.scored,
            "similarity": self.bench.settings.measure,
            "resolved_ids": [
                {
                    "case": case,
                    "id": resolution.id,
                    "how": resolution.how,
                    "term": resolved_cases.ontology.ids[resolution.term],
                }
                for case, resolution in resolved_cases.moved
            ],
            "systems": [outcome.to_dict() for outcome in self.outcomes],
            "comparison": None if self.comparison is None else self.comparison.to_dict(),
            "verdict": self.verdict(),
            "notes": list(self.notes),
            "findings": [asdict(finding) for finding in self.findings],
            "failures": [
                {"where": where, "code": error.code, "message": error.message} for where, error in self.failures.items()
            ],
        }

    def __repr__(self) -> str:
        scores = ", ".join(f"{name} {result['MRR'].value:.3f}" for name, result in self.results.items())
        return f"<PhenotypeBenchmark on {len(self.bench.resolved_cases.cases)} cases: MRR of {scores}>"

    def _repr_html_(self) -> str:
        """The comparison, or the one result, as notebooks show it."""
        return (self.comparison or self.outcomes[0].result)._repr_html_()


Cases = str | Path | Iterable[Case | dict[str, Any]]


def run_benchmark(
    models: Sequence[Any] | str = DEFAULT_MODEL,
    cases: Cases | None = None,
    ontology: Ontology | str = "hpo",
    *,
    multi_vector: bool = True,
    strategy: str = DEFAULT_STRATEGY,
    weights: Weights | None = None,
    output: str | Path | None = None,
    progress: ProgressCallback | None = None,
    command: Sequence[str] = (),
    engine: Executor | None = None,
    **settings: Any,
) -> PhenotypeBenchmark:
    """Evaluate models on cases: MRR and six metrics at 1, 3, 5 and 10, with intervals and chance levels.

    All terms of the ontology are ranked for every case, so that all models and representations are compared at the same
    depth.

    Parameters
    ----------
    models
        Specs (``use``, ``tfidf``, ``sum:use+tfidf``) or objects with ``encode``.
    cases
        A file, dicts, or the name of a sample; by default the sample cases.
    ontology
        The ontology, its path, or ``hpo``.
    multi_vector
        Whether every label, synonym and definition has its own vector, or every term one.
    strategy
        How the scores of several vectors are aggregated to the score of a term.
    weights
        Weights of label, synonyms and definition for ``all_weighted``.
    output
        Folder for the results. Every model is written as soon as it is evaluated, and loaded by a repeated call.
    progress
        Called with the progress over the systems.
    command
        The command line that is recorded in the manifests.
    engine
        Executor of the jobs, such as a Ray cluster; results do not depend on it.
    **settings
        Fields of ``BenchmarkConfig``: ``reranker`` (True for late interaction, or a spec), ``rerank_depth``,
        ``device``, ``measure`` of similarity, ``annotations``, ``ks``, further ``metrics`` and their ``plugins``,
        ``config`` (a ``StatsConfig``), ``index_dir``, ``skip_unknown``, ``translate``, ``translations`` and
        ``n_label_queries``.

    Returns
    -------
    PhenotypeBenchmark
        One result per model, and their comparison.

    Examples
    --------
    >>> benchmark = run_benchmark(["tfidf:", "bm25:"], "english")  # doctest: +SKIP
    >>> benchmark.verdict()  # doctest: +SKIP
    """
    representations = (TermRepresentation(multi_vector, strategy, weights),)
    checked = _checked_settings(settings, representations)
    return _run(models, cases, ontology, checked, output, progress, command, engine)


def compare_vectors(
    models: Sequence[Any] | str = DEFAULT_MODEL,
    cases: Cases | None = None,
    ontology: Ontology | str = "hpo",
    *,
    strategies: Sequence[str] = DEFAULT_STRATEGIES,
    single: bool = True,
    weights: Weights | None = None,
    output: str | Path | None = None,
    progress: ProgressCallback | None = None,
    command: Sequence[str] = (),
    engine: Executor | None = None,
    **settings: Any,
) -> PhenotypeBenchmark:
    """Compare one vector per term with one vector per text and several aggregation strategies.

    All strategies of a model are evaluated in one pass over the same scores.

    Parameters
    ----------
    models
        One model spec or several, or objects with ``encode``.
    cases
        A file, dicts, or the name of a sample; by default the sample cases.
    ontology
        The ontology, its path, or ``hpo``.
    strategies
        Aggregation strategies of multi-vector scores, such as ``label_synonyms_max``.
    single
        Whether one vector per term is included.
    weights
        Weights of label, synonyms and definition for ``all_weighted``.
    output
        Folder for the results; a repeated call loads finished models from it.
    progress
        Called with the progress over the systems.
    command
        The command line that is recorded in the manifests.
    engine
        Executor of the jobs, such as a Ray cluster; results do not depend on it.
    **settings
        Further settings of ``run_benchmark``.

    Returns
    -------
    PhenotypeBenchmark
        One result per model and strategy, and their comparison.

    Examples
    --------
    >>> compare_vectors("tfidf:", "english", strategies=["label_only", "all_max"]).verdict()  # doctest: +SKIP
    """
    representations = term_representations(strategies, single=single, weights=weights)
    checked = _checked_settings(settings, representations)
    return _run(models, cases, ontology, checked, output, progress, command, engine)


def _checked_settings(options: dict[str, Any], representations: tuple[TermRepresentation, ...]) -> BenchmarkConfig:
    """The settings of a benchmark of these representations, from the named options."""
    unknown = options.keys() - BenchmarkConfig.__dataclass_fields__.keys()
    if unknown:
        raise ParameterError(
            f"a benchmark has no setting {sorted(unknown)[0]}",
            hint=f"there are {', '.join(BenchmarkConfig.__dataclass_fields__)}",
        )
    return BenchmarkConfig(**{**options, "representations": representations}).checked()


def _run(
    models: Any,
    cases: Cases | None,
    ontology: Ontology | str,
    settings: BenchmarkConfig,
    output: str | Path | None,
    progress: ProgressCallback | None,
    command: Sequence[str],
    engine: Executor | None,
) -> PhenotypeBenchmark:
    folder = ExperimentFolder.of(output)
    named = resolve_models(models)
    check_device(settings.device, engine)
    check_device_is_used(settings.device, named.values(), settings.reranker)
    bench = prepare_benchmark(cases, ontology, settings)
    bench = replace(bench, notes=_device_notes(named.values(), settings))
    store = None
    if folder is not None:
        folder.check_same_data(bench.resolved_cases.fingerprints)
        store = ArtifactStore[list[TermSystemResult]](
            folder.artifacts, lambda outcomes: write_system_runs(folder, outcomes, bench, command)
        )
    n_steps = len(named) * len({representation.multi_vector for representation in settings.representations}) + 1
    with report_progress(output, "phenotype benchmark", n_steps, command=command, step=progress) as report:
        jobs = [Job(name, model) for name, model in named.items()]
        results = run_jobs(
            evaluate_job, jobs, bench, executor=engine, store=store, progress=report, n_cores=settings.threads
        )
        results.raise_if_all_failed()
        report("comparing")
        outcomes = [outcome for outputs in results.outputs.values() for outcome in outputs]
        benchmark = compare_systems(outcomes, bench, command)
        benchmark = replace(benchmark, failed_models=results.failures, resumed=results.resumed)
        if folder is not None:
            changed = [
                after
                for before, after in zip(outcomes, benchmark.outcomes, strict=True)
                if after.result.findings != before.result.findings or after.model in results.resumed
            ]
            write_system_runs(folder, changed, bench, command)
        return benchmark


def _device_notes(models: Iterable[Any], settings: BenchmarkConfig) -> tuple[str, ...]:
    """A note for each model that does not use the requested device."""
    if settings.device is None:
        return ()
    return tuple(
        f"{model} runs on the CPU: a device applies to models of the kind st:"
        for model in models
        if isinstance(model, str) and not supports_device(model)
    )


def prepare_benchmark(cases: Cases | None, ontology: Ontology | str, settings: BenchmarkConfig) -> BenchmarkContext:
    """The shared context of all models: resolved cases, similarity, and the reranker if there is one."""
    terms = ontology if isinstance(ontology, Ontology) else load_ontology(ontology)
    similarity = term_similarity(terms, settings.measure, information=information_values(terms, settings.annotations))
    check_bounded(similarity)
    if cases is None:
        cases = (*read_cases("english"), *read_cases("german"))
    listed = read_cases(cases) if isinstance(cases, str | Path) else check_cases(cases)
    resolved_cases = resolve_cases(listed, terms, skip_unknown=settings.skip_unknown)
    if not resolved_cases.scored:
        raise InputError(
            f"none of {pluralize(len(resolved_cases.cases), 'case')} has an expected term, so nothing can be scored",
            hint='name the terms that should be found: "hpo_ids": ["HP:0001250"]',
        )
    translations = read_translations(settings.translations, terms) if settings.translations else None
    bench = BenchmarkContext(resolved_cases, similarity, settings, translations=translations)
    _ = bench.reranker  # loaded here, so that an error comes before any model is evaluated
    return bench


def compare_systems(
    outcomes: Sequence[TermSystemResult], bench: BenchmarkContext, command: Sequence[str] = ()
) -> PhenotypeBenchmark:
    retrieved = {outcome.name: outcome.retrieved for outcome in outcomes}
    shared = run_checks(expected_term_ranks(retrieved, bench.resolved_cases, bench.similarity))
    # They are stored in every run directory, because reports are built from these.
    results = [
        replace(outcome.result, findings=tuple(dict.fromkeys((*shared, *outcome.result.findings))))
        for outcome in outcomes
    ]
    outcomes = [replace(outcome, result=result) for outcome, result in zip(outcomes, results, strict=True)]
    comparison = compare(results, primary=PRIMARY, config=bench.settings.config) if len(results) > 1 else None
    return PhenotypeBenchmark(
        outcomes=tuple(outcomes),
        bench=bench,
        comparison=comparison,
        findings=comparison.findings if comparison else results[0].findings,
        command=tuple(command),
    )
