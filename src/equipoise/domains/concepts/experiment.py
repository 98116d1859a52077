"""Evaluate models on a concept set: each embeds every text once, and all tasks use its vectors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from math import isfinite
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.domains.concepts.concept_set import ConceptSet
from equipoise.domains.concepts.concept_set_reader import read_concept_set
from equipoise.domains.concepts.evidence import memoized_encoder
from equipoise.domains.concepts.results import ConceptEvaluation, ModelScores
from equipoise.domains.concepts.scores import CONCEPT_SCORES, CONCEPT_STATS
from equipoise.domains.concepts.tasks import TASKS
from equipoise.domains.concepts.uncertainty import score_task
from equipoise.errors import InputError, MissingExtraError, ParameterError, UnknownNameError
from equipoise.models.embedder import embedder
from equipoise.models.retriever import resolve_models
from equipoise.runs.experiment_folder import ArtifactStore, ExperimentFolder
from equipoise.runs.progress_file import ProgressCallback, report_progress
from equipoise.runs.runner import Job, JobContext, JobOutput, resume_key, run_jobs
from equipoise.types import require_extra

if TYPE_CHECKING:
    from equipoise.config import StatsConfig
    from equipoise.models.vector_cache import VectorCache
    from equipoise.runs.executors import Executor
    from equipoise.types import Floats


VERSION = "concepts 5"
"""Increased when the same inputs give other scores."""


@dataclass(frozen=True)
class ConceptContext:
    """The shared context of all models: concept set, tasks, options of statistics, and loading of models."""

    concept_set: ConceptSet
    tasks: tuple[str, ...]
    config: StatsConfig
    cache: Any = None
    threads: int = 1


def evaluate_concepts(
    models: str | Sequence[object] | Mapping[str, object],
    concept_set: ConceptSet | str | PathLike[str] | None = None,
    *,
    tasks: Sequence[str] | None = None,
    weights: Mapping[str, float] | None = None,
    scale: float | None = None,
    config: StatsConfig = CONCEPT_STATS,
    cache: VectorCache | Path | str | bool | None = None,
    threads: int = 1,
    progress: ProgressCallback | None = None,
    output: str | Path | None = None,
    command: Sequence[str] = (),
    engine: Executor | None = None,
) -> ConceptEvaluation:
    """Score sentence embedding models on a concept set: ground-truth metrics, five weighted scores, recommendations.

    A model that fails is in ``failures``; if all fail, the first error is raised.

    Parameters
    ----------
    models
        Specs (``minilm``), objects with ``encode``, or a mapping from names to models: ``{"old": a, "new": b}``.
    concept_set
        A folder, a file or a ``ConceptSet``; by default the included one.
    tasks
        Some of ``similarity``, ``clustering``, ``entities``, ``relations`` and ``quality``; by default every task that
        the concept set has data for.
    weights
        Weights of the tasks in `composite_score` and `ground_truth_score`; equal by default. Tasks
        without a weight do not count.
    scale
        The maximum of the expected similarities if it is not 1.
    config
        Confidence level, resamples, and the seed of resampling and K-means.
    cache
        As in ``embedder``.
    threads
        Threads per model.
    progress
        Called with the progress over the models.
    output
        Folder for results and charts; a repeated call loads finished models from it.
    command
        The command line that is recorded in the manifests.
    engine
        Executor of the jobs, such as a Ray cluster; results do not depend on it.

    Returns
    -------
    ConceptEvaluation
        Scores by model, summary, comparison and recommendations.

    Examples
    --------
    >>> evaluation = evaluate_concepts(["hash,dim=32"], tasks=["similarity"], cache=False)
    >>> evaluation.tasks, list(evaluation["hash,dim=32"])
    (('similarity',), ['semantic_similarity_score'])
    """
    named = _named(models)
    known_set = concept_set if isinstance(concept_set, ConceptSet) else read_concept_set(concept_set, scale=scale)
    selected, skipped = select_tasks(known_set, tasks)
    validated_weights = validate_weights(weights)
    folder = ExperimentFolder.of(output)
    if folder is not None:
        folder.check_same_data({known_set.name: known_set.fingerprint})
    n_steps = len(named) * (len(selected) + 1) + 1
    with report_progress(output, "concepts", n_steps, command=command, step=progress) as report:
        results = run_jobs(
            evaluate_job,
            [Job(name, model) for name, model in named.items()],
            ConceptContext(known_set, selected, config, cache, threads),
            executor=engine,
            store=None if folder is None else ArtifactStore[ModelScores](folder.artifacts),
            progress=report,
            n_cores=threads,
        )
        results.raise_if_all_failed()
        report(COMPARING)
        evaluation = ConceptEvaluation(
            known_set,
            results.outputs,
            validated_weights,
            results.failures,
            skipped,
            config,
            tuple(command),
            results.resumed,
        )
        if folder is not None:
            evaluation.write(folder.path)
    return evaluation


STEP_WEIGHTS = {"similarity": 1.0, "clustering": 2.0, "entities": 1.0, "relations": 0.6, "quality": 0.3}
"""The relative times of the tasks, measured with the included concept set."""
EMBEDDING_WEIGHT, COMPARING_WEIGHT = 4.0, 2.0
COMPARING = "comparing the models"


def step_weights(models: Iterable[str], tasks: Sequence[str]) -> dict[str, float]:
    """The expected relative time of each step, for the progress.

    >>> step_weights(["minilm"], ["quality"])
    {'minilm: embedding': 4.0, 'minilm: embedding quality': 0.3, 'comparing the models': 2.0}
    """
    weights = {}
    for model in models:
        weights[_step(model)] = EMBEDDING_WEIGHT
        weights |= {_step(model, task): STEP_WEIGHTS[task] for task in tasks}
    return weights | {COMPARING: COMPARING_WEIGHT}


def _step(model: str, task: str = "") -> str:
    return f"{model}: {CONCEPT_SCORES[task].title.lower() if task else 'embedding'}"


def _named(models: Any) -> dict[str, Any]:
    """The models by name; in a mapping two objects of one class have names of their own."""
    if not isinstance(models, Mapping):
        return resolve_models(models)
    for model in models.values():
        resolve_models([model])
    return {str(name): model for name, model in models.items()} or resolve_models([])


def evaluate_job(job: Job[Any], context: JobContext[ConceptContext]) -> JobOutput[ModelScores]:
    """Embed every text once and score all tasks, unless the stored scores have the same key."""
    inputs = context.shared
    context.progress(_step(job.name))
    system = embedder(job.inputs, cache=inputs.cache, threads=inputs.threads)
    try:
        key = resume_key(
            VERSION, job.name, inputs.concept_set.fingerprint, inputs.tasks, inputs.config, system.fingerprint
        )
        if key == context.stored_key:
            return JobOutput(None, key)
        encode = memoized_encoder(system.encode, inputs.concept_set.texts)
        dims, fingerprint = system.dims, system.fingerprint
    finally:
        if system is not job.inputs:
            system.close()
    is_embedded: dict[str, bool] = {}

    def encode_and_record(texts: Sequence[str]) -> Floats:
        """The vectors; records which texts have one."""
        vectors = encode(texts)
        is_embedded.update(zip(texts, np.any(vectors, axis=1).tolist(), strict=True))
        return np.asarray(vectors)

    scores = {}
    with _thread_limit(inputs.threads):
        for task in inputs.tasks:
            context.progress(_step(job.name, task))
            evidence = TASKS[task](encode_and_record, inputs.concept_set, job.name, inputs.config)
            scores[task] = score_task(evidence, config=inputs.config)
    zeros = tuple(text for text, known in is_embedded.items() if not known)
    return JobOutput(ModelScores(job.name, scores, dims, fingerprint, len(is_embedded), zeros), key)


def _thread_limit(threads: int) -> AbstractContextManager[object]:
    """At most this many threads in BLAS and OpenMP: more of them only wait for each other on arrays this small."""
    try:
        limit: AbstractContextManager[object] = require_extra("threadpoolctl", extra="concepts").threadpool_limits(
            threads
        )
    except MissingExtraError:  # the results are the same, but several models at once take longer
        return nullcontext()
    return limit


def select_tasks(concept_set: ConceptSet, requested: Iterable[str] | None) -> tuple[tuple[str, ...], dict[str, str]]:
    """The tasks to evaluate in their fixed order, and why others are skipped.

    >>> select_tasks(read_concept_set(), ["semantic_similarity"])
    (('similarity',), {})
    """
    tasks = {parse_task(name) for name in requested or ()}
    missing = {
        task: f"{concept_set.name} has no {'sentences with entities' if score.needs == 'sentences' else score.needs}"
        for task, score in CONCEPT_SCORES.items()
        if not _has(concept_set, task)
    }
    for task in tasks & set(missing):
        raise InputError(
            f"{missing[task]}, which {CONCEPT_SCORES[task].name} needs",
            hint=f"the concept set has {', '.join(concept_set.present) or 'nothing'}; eq concepts check lists problems",
        )
    if not tasks and len(missing) == len(CONCEPT_SCORES):
        raise InputError(f"{concept_set.name} has nothing to measure", hint="eq concepts check shows its parts")
    chosen = tuple(task for task in CONCEPT_SCORES if task not in missing and task in (tasks or CONCEPT_SCORES))
    return chosen, {} if tasks else missing


def _has(concept_set: ConceptSet, task: str) -> bool:
    section = CONCEPT_SCORES[task].needs
    return (concept_set.standard_concepts if section == "concepts" else getattr(concept_set, section)) is not None


def parse_task(name: str) -> str:
    """A task by its name, or by that of its score with or without the word score."""
    known = {task: task for task in CONCEPT_SCORES}
    known |= {blend.name: task for task, blend in CONCEPT_SCORES.items()}
    known |= {blend.name.removesuffix("_score"): task for task, blend in CONCEPT_SCORES.items()}
    key = name.strip().casefold().replace("-", "_")
    if key not in known:
        raise UnknownNameError.of("task", name, known, more=f"the tasks are {', '.join(CONCEPT_SCORES)}")
    return known[key]


def validate_weights(weights: Mapping[str, float] | None) -> dict[str, float]:
    """The weights of the tasks; equal if none are given.

    >>> validate_weights({"similarity": 3, "clustering": 1})
    {'similarity': 3.0, 'clustering': 1.0}
    """
    if weights is None:
        return dict.fromkeys(CONCEPT_SCORES, 1.0)
    by_task = {parse_task(name): float(weight) for name, weight in weights.items()}
    for task, weight in by_task.items():
        if not (isfinite(weight) and weight >= 0):
            raise ParameterError(f"the weight of {task} is {weight}", hint="give a number that is 0 or more")
    positive = {task: weight for task, weight in by_task.items() if weight > 0}
    if not positive:
        raise ParameterError("no score has a weight", hint="give at least one, such as similarity=1")
    return positive
