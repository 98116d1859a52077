"""Configuration of an extraction evaluation: pipeline, metrics and term retriever."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

from equipoise.config import DEFAULT_STATS, StatsConfig
from equipoise.domains.phenotypes.extraction.candidates import DEFAULT_CHUNKERS
from equipoise.domains.phenotypes.extraction.candidates import SelectionSettings as Pipeline
from equipoise.domains.phenotypes.index.aggregation import DEFAULT_STRATEGY
from equipoise.errors import ParameterError, UnknownNameError
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

if TYPE_CHECKING:
    from equipoise.domains.phenotypes.ontology import Ontology

DEFAULT_EXTRACTOR = "use"
"""The default model for phrases that the dictionary leaves free: multilingual and fast."""
PHENOTYPES = "HP:0000118"
"""Phenotypic abnormality: other branches of HPO have modes of inheritance, onset and modifiers."""
MODE_DESCRIPTIONS = {
    "strict": "terms with their assertions",
    "present": "affirmed terms alone",
    "id": "terms, regardless of their assertion",
}
"""What counts as an entry in each mode."""


@dataclass(frozen=True)
class ExtractionConfig:
    """How documents are split, candidates selected, and predictions scored."""

    pipeline: Pipeline = field(default_factory=Pipeline)
    chunkers: tuple[str, ...] = DEFAULT_CHUNKERS
    dictionary: bool = True
    """Whether names in the text are matched by the dictionary, and the model scores the other phrases only."""
    branch: str | None = PHENOTYPES
    """Only terms below this one are found; ignored by ontologies that lack it, None for all terms."""
    averaging: OverDocuments = "micro"
    include_assertions: bool = False
    """Whether the primary metrics count a term with a wrong assertion as an error."""
    bootstrap: bool = True
    measure: str = "lin"
    """Similarity measure of near misses in the soft scores."""
    multi_vector: bool = True
    strategy: str = DEFAULT_STRATEGY
    config: StatsConfig = DEFAULT_STATS
    translations: tuple[str, ...] = ()
    """Tables of translated labels, which the dictionary matches and the model uses to translate phrases."""
    index_dir: str | None = None
    threads: int = 1

    @property
    def mode(self) -> Mode:
        return "strict" if self.include_assertions else "id"

    @property
    def interval_config(self) -> StatsConfig:
        """The options of intervals: one resample without ``bootstrap``, because the intervals are dropped."""
        return self.config if self.bootstrap else replace(self.config, n_resamples=1)

    def branch_in(self, ontology: Ontology) -> str | None:
        """The branch in an ontology; the default one is ignored where the ontology lacks it."""
        if self.branch is None or (self.branch == PHENOTYPES and self.branch not in ontology.id_resolver.indices):
            return None
        ontology.index_of(self.branch)
        return self.branch

    def limited_to(self, terms: int) -> ExtractionConfig:
        """These settings with at most ``terms`` results per chunk."""
        depth = min(self.pipeline.num_results, terms)
        return replace(self, pipeline=replace(self.pipeline, num_results=depth))

    def checked(self) -> ExtractionConfig:
        if self.averaging not in AVERAGES:
            raise UnknownNameError.of("averaging", self.averaging, AVERAGES, more=f"there are {', '.join(AVERAGES)}")
        if not self.chunkers:
            raise ParameterError("no chunker was named", hint=f"such as {', '.join(DEFAULT_CHUNKERS)}")
        if self.pipeline.num_results < 1:
            raise ParameterError(f"num_results is {self.pipeline.num_results}", hint="give 1 or more")
        return self


def make_config(options: dict[str, Any]) -> ExtractionConfig:
    """The configuration from settings by name, those of the pipeline included."""
    of_pipeline = {field.name for field in fields(Pipeline)}
    accepted = of_pipeline | {field.name for field in fields(ExtractionConfig)} - {"pipeline"}
    for name in options:
        if name not in accepted:
            raise UnknownNameError.of("setting of an extraction", name, sorted(accepted))
    extraction_options = {name: value for name, value in options.items() if name not in of_pipeline}
    pipeline = {name: value for name, value in options.items() if name in of_pipeline}
    return replace(ExtractionConfig(**extraction_options), pipeline=Pipeline(**pipeline)).checked()


def describe_pipeline(pipeline: Pipeline) -> str:
    """The name of a configuration: its settings that differ from the defaults."""
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
