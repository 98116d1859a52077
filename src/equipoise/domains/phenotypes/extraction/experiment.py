"""Extraction runs: extract terms from annotated documents, score them, store, read and compare runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from equipoise.checks.base import run_checks
from equipoise.domains.phenotypes.checks import GoldAssertions
from equipoise.domains.phenotypes.config import (
    ExtractionConfig,
    describe_pipeline,
    extraction_metrics,
    make_config,
)
from equipoise.domains.phenotypes.defaults import DEFAULT_EXTRACTOR
from equipoise.domains.phenotypes.extraction.annotated_corpus import (
    SAMPLE,
    AnnotatedCorpus,
    GoldAnnotations,
    read_annotated_corpus,
    resolve_annotations,
)
from equipoise.domains.phenotypes.extraction.candidates import Candidates
from equipoise.domains.phenotypes.extraction.extractor import (
    DICTIONARY,
    TermExtractor,
    missing_index_notes,
    open_term_extractor,
    resolve_extraction_models,
)
from equipoise.domains.phenotypes.extraction.predict import (
    LossStage,
    Predictions,
    TracedTerm,
    count_by_stage,
    predict,
    trace_gold_terms,
)
from equipoise.domains.phenotypes.extraction.report import extraction_view
from equipoise.domains.phenotypes.extraction.scoring import (
    ErrorCounts,
    GoldSpanOracle,
    count_errors,
    document_details,
    evaluate_gold_spans,
    extraction_result,
    prediction_sets,
    with_similarity_credit,
)
from equipoise.domains.phenotypes.ontology import Ontology, load_ontology
from equipoise.domains.phenotypes.similarity import term_similarity
from equipoise.errors import FormatError, ParameterError
from equipoise.io.json import parse_json
from equipoise.io.text import PathLike, open_text
from equipoise.runs.compare import compare
from equipoise.runs.experiment_folder import ArtifactStore, ExperimentFolder, write_json
from equipoise.runs.manifest import Manifest, Status
from equipoise.runs.progress_file import ProgressCallback, report_progress
from equipoise.runs.run_folder import StoredRun, find_runs, load_run, save_run
from equipoise.runs.runner import Job, JobContext, JobOutput, resume_key, run_jobs

if TYPE_CHECKING:
    from equipoise.domains.phenotypes.extraction.tuning_results import TunedParameters
    from equipoise.models.encoder import ModelCard
    from equipoise.runs.executors import Executor
    from equipoise.stats.comparison import Comparison, Contrast
    from equipoise.stats.result import Result
    from equipoise.types import Finding


@dataclass(frozen=True, eq=False)
class DictionaryBaseline:
    """The result of the dictionary alone, and the paired difference of the run from it in the primary metric."""

    result: Result
    contrast: Contrast

    def to_dict(self) -> dict[str, Any]:
        return {
            "estimates": [self.result[name].to_dict() for name in self.result.names[:3]],
            "difference": self.contrast.difference,
            "interval": asdict(self.contrast.interval),
            "p": self.contrast.p,
        }


@dataclass(frozen=True, eq=False)
class ModelCandidates:
    """What needs the model: the candidates of all documents, and the evaluation of the gold spans."""

    card: ModelCard
    candidates: Candidates
    predictions: Predictions
    gold_span_oracle: GoldSpanOracle | None
    seconds: float
    notes: tuple[str, ...]
    dictionary_predictions: Predictions | None
    """The same without a model; None if the model is the dictionary."""


@dataclass(frozen=True, eq=False)
class ExtractionRun(ModelCandidates):
    """One model with one configuration on annotated documents."""

    model: str
    gold: GoldAnnotations
    settings: ExtractionConfig
    result: Result
    errors_by_kind: ErrorCounts
    stage_trace: tuple[TracedTerm, ...]
    baseline: DictionaryBaseline | None = None
    """The dictionary alone on the same documents; None if the run itself is the dictionary."""
    command: tuple[str, ...] = ()
    resumed: bool = False
    """Whether the candidates were loaded from the output folder."""

    @property
    def primary(self) -> str:
        """The name of the primary metric."""
        return extraction_metrics(self.settings.averaging, self.settings.mode)[0].name

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The findings of the result, which are stored with it."""
        return self.result.findings

    @property
    def stages(self) -> Mapping[LossStage, int]:
        """The number of gold entries per stage."""
        return count_by_stage(self.stage_trace)

    def write(self, folder: str | Path) -> Path:
        """Write extraction_results.json, a run directory, and the candidates."""
        return write_extraction(Path(folder), self)

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values for JSON."""
        ontology = self.gold.ontology
        return {
            "system": self.result.system,
            "model": self.model,
            "settings": {
                **self.settings.pipeline.record(),
                **{
                    field.name: getattr(self.settings, field.name)
                    for field in fields(self.settings)
                    if field.name not in ("pipeline", "config", "index_dir", "threads")
                },
                "confidence_level": self.settings.config.confidence_level,
                "n_resamples": self.settings.config.n_resamples,
                "seed": self.settings.config.seed,
            },
            "mode": self.settings.mode,
            "primary": self.primary,
            "ontology": {"name": ontology.name, "release": ontology.release, "citation": ontology.citation},
            "documents": len(self.gold.annotated),
            "documents_without_gold": list(self.gold.annotated.without_gold),
            "notes": [*self.gold.notes, *self.notes],
            "chunks": len(self.candidates),
            "seconds": self.seconds,
            "estimates": [estimate.to_dict() for estimate in self.result.estimates.values()],
            "dictionary_baseline": None if self.baseline is None else self.baseline.to_dict(),
            "errors_by_kind": self.errors_by_kind.to_dict(),
            "gold_by_stage": {str(stage): number for stage, number in self.stages.items()},
            "gold_spans": None if self.gold_span_oracle is None else self.gold_span_oracle.to_dict(),
            "resolved_ids": [
                {"id": resolution.id, "how": resolution.how, "term": ontology.ids[resolution.term]}
                for resolution in self.gold.moved
            ],
            "problems": [asdict(problem) for problem in self.gold.annotated.problems],
            "findings": [asdict(finding) for finding in self.findings],
            "predictions": {
                name: [
                    {
                        "hpo_id": term.term,
                        "label": ontology.label_of(term.term),
                        "assertion_status": str(term.assertion),
                        "score": term.score,
                        "evidence_spans": [{"start_char": start, "end_char": end} for start, end in term.spans],
                    }
                    for term in terms
                ]
                for name, terms in self.predictions
            },
        }

    def __repr__(self) -> str:
        estimate = self.result[self.primary]
        return f"<ExtractionRun of {self.result.system}: {self.primary} {estimate.value:.3f}>"

    def _repr_html_(self) -> str:
        """The result as HTML for notebooks."""
        return self.result._repr_html_()


MIN_DEPTH = 20
"""Minimum number of stored terms per chunk."""

Source = str | Path | AnnotatedCorpus


def run_extraction(
    source: Source = SAMPLE,
    model: Any = DEFAULT_EXTRACTOR,
    ontology: Ontology | str = "hpo",
    *,
    dataset: str | None = None,
    tuned: TunedParameters | None = None,
    output: str | Path | None = None,
    progress: ProgressCallback | None = None,
    command: Sequence[str] = (),
    engine: Executor | None = None,
    **settings: Any,
) -> ExtractionRun:
    """Extract terms from annotated documents, and score them against the annotations.

    Evaluation on the documents that tuned the parameters is a finding (EQ201).

    Parameters
    ----------
    source
        A folder, a JSON or JSONL file, an ``AnnotatedCorpus``, or ``notes`` for the included sample.
    model
        A model spec, such as ``tfidf:``, for the phrases that the dictionary does not match; ``dict`` for the
        dictionary alone.
    ontology
        The ontology, its path, or ``hpo``.
    dataset
        One dataset of the corpus.
    tuned
        Parameters and fixed settings of a tuning. A conflicting setting, model or ontology is an error.
    output
        Folder for the results; a repeated call loads finished models from it.
    progress
        Called with the progress over the documents.
    command
        The command line that is recorded in the manifest.
    engine
        Executor of the jobs, such as a Ray cluster; results do not depend on it.
    **settings
        Settings of the pipeline (``num_results``, ``chunk_threshold``, ``min_confidence``, ``top_term_only``) and
        fields of ``ExtractionConfig``: ``chunkers``, ``dictionary``, ``branch``, ``averaging``,
        ``include_assertions``, ``bootstrap``, ``measure``,
        ``multi_vector``, ``strategy``, ``config`` (a ``StatsConfig``), ``translations``, ``index_dir``, ``threads``.

    Returns
    -------
    ExtractionRun
        Scores, per-document values, predictions, error stages and findings.

    Examples
    --------
    >>> extraction = run_extraction("notes", "tfidf:", dataset="german", chunk_threshold=0.4)  # doctest: +SKIP
    >>> extraction.stages  # doctest: +SKIP
    """
    chosen = make_config(settings if tuned is None else tuned.settings(settings))
    folder = ExperimentFolder.of(output)
    named = resolve_extraction_models(model)
    if len(named) != 1:
        raise ParameterError(
            f"{len(named)} models were named, and a run has one", hint="run each, and compare the runs"
        )
    name, loadable = next(iter(named.items()))
    with report_progress(output, "extraction", 3, command=command, step=progress) as report:
        report("reading documents")
        gold = read_gold_annotations(source, ontology, dataset)
        if tuned is not None:
            tuned.check_applicable(name, gold.ontology)
        context = ExtractionContext(gold, chosen.limited_to(len(gold.ontology)))
        (result,) = run_jobs(
            retrieve_job,
            [Job(name, loadable)],
            context,
            executor=engine,
            store=None if folder is None else ArtifactStore[ModelCandidates](folder.artifacts),
            progress=report,
            n_cores=chosen.threads,
        ).results
        run = score_extraction(context, name, result.value, command)
        run = replace(run, resumed=result.resumed)
        report("writing")
        if tuned is not None:
            extra = tuned.findings(run.result.system, gold.annotated)
            run = replace(run, result=with_findings(run.result, extra))
        if folder is not None:
            run.write(folder.path)
    return run


def read_gold_annotations(source: Source, ontology: Ontology | str, dataset: str | None = None) -> GoldAnnotations:
    """Read annotated documents and resolve their ids in an ontology."""
    annotated = source if isinstance(source, AnnotatedCorpus) else read_annotated_corpus(source, dataset)
    return resolve_annotations(annotated, ontology if isinstance(ontology, Ontology) else load_ontology(ontology))


VERSION = "extraction 2"
"""Increased when the same inputs give other candidates."""


@dataclass(frozen=True, eq=False)
class ExtractionContext:
    """The annotated documents with their ontology, and the configuration."""

    gold: GoldAnnotations
    settings: ExtractionConfig

    def key(self, name: str, extractor: TermExtractor) -> str:
        settings = replace(self.settings, index_dir=None, threads=1)
        gold = self.gold.annotated.fingerprint, self.gold.ontology.fingerprint
        return resume_key(VERSION, name, extractor.fingerprint, gold, settings)


def retrieve_job(job: Job[Any], context: JobContext[ExtractionContext]) -> JobOutput[ModelCandidates]:
    """Retrieve the candidates, unless the stored ones have the same key."""
    gold, settings = context.shared.gold, context.shared.settings
    context.progress(f"{job.name}: finding terms")
    with open_term_extractor(job.inputs, gold.ontology, settings) as extractor:
        key = context.shared.key(job.name, extractor)
        if key == context.stored_key:
            return JobOutput(None, key)
        extractor.prepare(gold.documents)
        start = perf_counter()
        # More terms are stored than are selected, to trace where a gold term was lost.
        depth = min(max(MIN_DEPTH, settings.pipeline.num_results), len(gold.ontology))
        candidates = extractor.candidates(gold.documents, num_results=depth)
        predictions = predict(candidates, **settings.pipeline.record())
        seconds = perf_counter() - start
        oracle = evaluate_gold_spans(gold, extractor, predictions, settings)
        value = ModelCandidates(
            extractor.card,
            candidates,
            predictions,
            oracle,
            seconds,
            (*missing_index_notes(extractor), *_branch_notes(extractor, gold)),
            None if job.name == DICTIONARY else extractor.dictionary_predictions(gold.documents),
        )
        return JobOutput(value, key)


def _branch_notes(extractor: TermExtractor, gold: GoldAnnotations) -> tuple[str, ...]:
    """The number of gold entries that the branch excludes."""
    if extractor.branch is None:
        return ()
    terms = [gold.ontology.index_of(entry.term) for entries in gold.annotations.values() for entry in entries]
    outside = sum(not extractor.allowed[term] for term in terms)
    if not outside:
        return ()
    return (f"{outside} of {len(terms)} gold terms are not below {extractor.branch} (--branch) and cannot be found",)


def score_extraction(
    context: ExtractionContext, name: str, retrieved: ModelCandidates, command: Sequence[str] = ()
) -> ExtractionRun:
    """Score the predictions of one model against the gold; all stages use the same candidates."""
    gold, settings, predictions = context.gold, context.settings, retrieved.predictions
    similarity = term_similarity(gold.ontology, settings.measure)

    def scored(system: str, predicted: Predictions) -> Result:
        sets = with_similarity_credit(prediction_sets(gold, predicted), similarity)
        return extraction_result(sets, system, gold, settings)

    result = scored(f"{name} ({describe_pipeline(settings.pipeline)})", predictions)
    result = with_findings(result, gold_findings(gold, settings))
    baseline = None
    if retrieved.dictionary_predictions is not None:
        dictionary = scored(DICTIONARY, retrieved.dictionary_predictions)
        primary = result.names[0]
        comparison = compare([result, dictionary], [primary], config=settings.interval_config)
        baseline = DictionaryBaseline(dictionary, comparison.contrast(result.system, DICTIONARY, primary))
    return ExtractionRun(
        **vars(retrieved),
        model=name,
        gold=gold,
        settings=settings,
        result=result,
        errors_by_kind=count_errors(gold.sets(), predictions.sets(), gold.ontology),
        stage_trace=trace_gold_terms(retrieved.candidates, predictions, gold.annotations),
        baseline=baseline,
        command=tuple(command),
    )


def with_findings(result: Result, findings: tuple[Finding, ...]) -> Result:
    return replace(result, findings=(*findings, *result.findings))


def gold_findings(gold: GoldAnnotations, settings: ExtractionConfig) -> tuple[Finding, ...]:
    """Findings about the gold, such as that all entries are affirmed."""
    return run_checks(
        GoldAssertions.of(
            gold.annotated.source or "the documents",
            [annotation.assertion for annotations in gold.annotations.values() for annotation in annotations],
            scored=settings.include_assertions,
        )
    )


RESULTS, CANDIDATES, RUN = "extraction_results.json", "candidates.npz", "run"


def write_extraction(folder: Path, run: ExtractionRun) -> Path:
    """Write all files; the results file is last, so that it implies a complete run."""
    gold, settings = run.gold, run.settings
    started = Manifest.start(run.result.system, command=run.command, seed=settings.config.seed)
    manifest = replace(
        started.finish(Status.PARTIAL if gold.lost else Status.COMPLETE, reason=gold.lost_message),
        parameters={
            "model": run.model,
            "model_name": run.card.name,
            **settings.pipeline.record(),
            "chunkers": ", ".join(settings.chunkers),
            "mode": settings.mode,
            "averaging": settings.averaging,
            "ontology": gold.ontology.title,
            "similarity": settings.measure,
            "citation": gold.ontology.citation,
        },
        datasets=gold.fingerprints,
        cost={"dims": run.card.dims, "seconds": run.seconds},
    )
    # A fixed name for every configuration: a repeated run replaces the old one.
    save_run(folder / RUN, run.result, manifest=manifest, details=document_details(gold, run.predictions))
    run.candidates.save(folder / CANDIDATES)
    extraction_view(run).write(folder)
    return write_json(folder / RESULTS, {"run": RUN, **run.to_dict()})


def compare_extractions(
    files: Sequence[PathLike], metrics: Any = None, *, primary: str | None = None, **options: Any
) -> Comparison:
    """Compare two or more extraction runs, paired by document.

    Runs with different modes or averages are an error.

    Parameters
    ----------
    files
        Files ``extraction_results.json``, folders that hold one, or run directories.
    metrics
        Metric names. By default the primary F1, precision and recall of the first run, and their soft and macro forms.
    primary
        The metric that decides the order; by default the first one.
    **options
        Further options of ``compare``.

    Returns
    -------
    Comparison
        The paired comparison.

    Examples
    --------
    >>> compare_extractions(["results/default", "results/top_term"]).verdict()  # doctest: +SKIP
    """
    return compare_extraction_runs(read_extractions(files), metrics, primary=primary, **options)


def compare_extraction_runs(
    runs: dict[str, StoredRun], metrics: Any = None, *, primary: str | None = None, **options: Any
) -> Comparison:
    """The same for loaded runs."""
    _check_same_modes(runs)
    first = next(iter(runs.values())).result
    results = [replace(run.result, system=name) for name, run in runs.items()]
    # A run lists F1, precision and recall first, then their soft forms, then those of the next average.
    return compare(results, metrics or first.names[:9], primary=primary or first.names[0], **options)


def read_extractions(files: Sequence[PathLike]) -> dict[str, StoredRun]:
    """The runs by system name, or by folder if two runs have the same system."""
    stored = [(Path(file), load_run(path)) for file in files for path in _run_folders(Path(file))]
    if len(stored) < 2:
        raise ParameterError(
            f"a comparison needs at least two runs, and {len(stored) or 'none'} was named",
            hint="eq phenotypes extraction run DIR -o FOLDER writes one",
        )
    names = [run.result.system for _, run in stored]
    if len(set(names)) < len(names):
        names = [(file.parent if file.name == RESULTS else file).name for file, _ in stored]
    if len(set(names)) < len(names):
        names = [str(file) for file, _ in stored]
    if len(set(names)) < len(names):
        raise ParameterError("a run is named twice", hint="name each run once")
    return dict(zip(names, (run for _, run in stored), strict=True))


def _run_folders(file: Path) -> list[Path]:
    """The run directories of a results file or a folder."""
    if file.is_dir():
        return find_runs(file)
    content = parse_json(open_text(file))
    run = content.get("run") if isinstance(content, dict) else None
    if not isinstance(run, str):
        raise FormatError(f"{file} names no run", hint=f"give a {RESULTS} that eq phenotypes extraction run wrote")
    return [file.parent / run]


def _check_same_modes(runs: dict[str, StoredRun]) -> None:
    for setting, flag in (("mode", "--include-assertions"), ("averaging", "--averaging")):
        values = {name: run.result.settings.get(setting) for name, run in runs.items()}
        if len(set(values.values())) > 1:
            listed = ", ".join(f"{name}: {value or 'unknown'}" for name, value in values.items())
            raise ParameterError(
                f"the runs have different settings of {setting} ({listed})", hint=f"run them with the same {flag}"
            )
