"""Configuration of an extraction evaluation: pipeline, metrics and term retriever."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

from equipoise.config import DEFAULT_STATS, StatsConfig
from equipoise.domains.phenotypes.extraction.candidates import DEFAULT_CHUNKERS
from equipoise.domains.phenotypes.extraction.candidates import SelectionSettings as Pipeline
from equipoise.domains.phenotypes.index.aggregation import DEFAULT_STRATEGY
from equipoise.domains.phenotypes.index.build import default_index_folder, open_indexes
from equipoise.domains.phenotypes.index.retriever import TermRetriever, dense_models
from equipoise.errors import EquipoiseError, ParameterError, UnknownNameError
from equipoise.metrics.sets import (
    AVERAGES,
    MODES,
    Mode,
    OverDocuments,
    SetAverageMetric,
    SetF1,
    SetPrecision,
    SetRecall,
)
from equipoise.models.resolve import open_retriever

if TYPE_CHECKING:
    from equipoise.domains.phenotypes.ontology.ontology import Ontology

MODE_DESCRIPTIONS = {
    "strict": "terms with their assertions",
    "present": "affirmed terms alone",
    "id": "terms, whatever is asserted of them",
}
"""What counts as an entry in each mode."""


@dataclass(frozen=True)
class ExtractionConfig:
    """How documents are split, candidates selected, and predictions scored."""

    pipeline: Pipeline = field(default_factory=Pipeline)
    chunkers: tuple[str, ...] = DEFAULT_CHUNKERS
    averaging: OverDocuments = "micro"
    include_assertions: bool = False
    """Whether the primary metrics count a term with a wrong assertion as an error."""
    bootstrap: bool = True
    measure: str = "lin"
    """Similarity measure of near misses in the soft scores."""
    multi_vector: bool = True
    strategy: str = DEFAULT_STRATEGY
    config: StatsConfig = DEFAULT_STATS
    index_dir: str | None = None
    threads: int = 1

    @property
    def mode(self) -> Mode:
        """The mode of the primary metrics."""
        return "strict" if self.include_assertions else "id"

    @property
    def interval_config(self) -> StatsConfig:
        """The options of intervals: one resample without ``bootstrap``, because the intervals are dropped."""
        return self.config if self.bootstrap else replace(self.config, n_resamples=1)

    def limited_to(self, terms: int) -> ExtractionConfig:
        """These settings with at most ``terms`` results per chunk."""
        depth = min(self.pipeline.num_results, terms)
        return replace(self, pipeline=replace(self.pipeline, num_results=depth))

    def checked(self) -> ExtractionConfig:
        """The validated settings."""
        if self.averaging not in AVERAGES:
            raise UnknownNameError.of("averaging", self.averaging, AVERAGES, more=f"there are {', '.join(AVERAGES)}")
        if not self.chunkers:
            raise ParameterError("no chunker was named", hint=f"such as {', '.join(DEFAULT_CHUNKERS)}")
        if self.pipeline.num_results < 1:
            raise ParameterError(f"num_results is {self.pipeline.num_results}", hint="give 1 or more")
        return self


def make_config(options: dict[str, Any]) -> ExtractionConfig:
    """The configuration from settings by name, those of the pipeline included.

    >>> make_config({"num_results": 3, "averaging": "macro"}).pipeline.num_results
    3
    """
    of_pipeline = {field.name for field in fields(Pipeline)}
    accepted = of_pipeline | {field.name for field in fields(ExtractionConfig)} - {"pipeline"}
    for name in options:
        if name not in accepted:
            raise UnknownNameError.of("setting of an extraction", name, sorted(accepted))
    extraction_options = {name: value for name, value in options.items() if name not in of_pipeline}
    pipeline = {name: value for name, value in options.items() if name in of_pipeline}
    return replace(ExtractionConfig(**extraction_options), pipeline=Pipeline(**pipeline)).checked()


def describe_pipeline(pipeline: Pipeline) -> str:
    """The name of a configuration: its settings that differ from the defaults.

    >>> describe_pipeline(Pipeline()), describe_pipeline(Pipeline(top_term_only=True, chunk_threshold=0.5))
    ('default', 'chunk_threshold 0.5, top_term_only')
    """
    default = Pipeline()
    changed = {
        field.name: getattr(pipeline, field.name)
        for field in fields(Pipeline)
        if getattr(pipeline, field.name) != getattr(default, field.name)
    }
    parts = [name if value is True else f"{name} {_plain(value)}" for name, value in changed.items()]
    return ", ".join(parts) or "default"


def _plain(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value).lower()


METRIC_CLASSES: tuple[type[SetAverageMetric], ...] = (SetF1, SetPrecision, SetRecall)


def primary_metrics(averaging: OverDocuments, mode: Mode) -> tuple[SetAverageMetric, ...]:
    """The three primary metrics, F1 first.

    >>> [metric.name for metric in primary_metrics("macro", "id")][0]
    'F1(average=macro,mode=id)'
    """
    return tuple(kind(averaging, mode) for kind in METRIC_CLASSES)


def extraction_metrics(averaging: OverDocuments, mode: Mode) -> tuple[SetAverageMetric, ...]:
    """All metrics, primary ones first; soft scores are of the primary mode.

    >>> len(extraction_metrics("micro", "id"))
    36
    """
    averages = [averaging, *(average for average in AVERAGES if average != averaging)]
    modes = [mode, *(other_mode for other_mode in MODES if other_mode != mode)]
    exact = [metric for of in modes for average in averages for metric in primary_metrics(average, of)]
    soft = [kind(average, mode, soft=True) for average in averages for kind in METRIC_CLASSES]
    return (*exact[:3], *soft[:3], *exact[3:], *soft[3:])


@contextmanager
def open_term_retriever(model: Any, ontology: Ontology, settings: ExtractionConfig) -> Iterator[TermRetriever]:
    """The term retriever of a model; without a stored index all terms are embedded first."""
    with open_retriever(model, threads=settings.threads) as system:
        folder = settings.index_dir or default_index_folder()
        try:
            indexes = open_indexes(folder, ontology, system.card.spec, settings.multi_vector, threads=settings.threads)
        except EquipoiseError:
            if settings.index_dir is not None:
                raise
            indexes = ()
        yield TermRetriever(
            system, ontology, multi_vector=settings.multi_vector, strategy=settings.strategy, index=indexes
        )


def missing_index_notes(system: TermRetriever) -> tuple[str, ...]:
    """A note for a dense model without a stored index."""
    if system.indexes or not dense_models(system.system):
        return ()
    flag = " --multi-vector" if system.multi_vector else ""
    return (
        f"no index of {system.card.spec} is stored, so all texts of the terms had to be embedded: "
        f"eq phenotypes index build --model {system.card.spec}{flag} makes one, once",
    )
