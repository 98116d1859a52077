"""What a measurement of extraction is asked to do, beside the documents, the model and the ontology."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import Any

from equipoise.errors import ParameterError, UnknownNameError
from equipoise.metrics.overlap import Mode
from equipoise.metrics.sets import AVERAGES, OverDocuments
from equipoise.ontology.index.aggregate import DEFAULT_STRATEGY
from equipoise.tasks.extract import DEFAULT_CHUNKERS
from equipoise.tasks.extract import Settings as Pipeline

WORDS = {
    "strict": "terms with their assertions",
    "present": "affirmed terms alone",
    "id": "terms, whatever is asserted of them",
}
"""What an entry is in each mode."""


@dataclass(frozen=True)
class ExtractionSettings:
    """How documents are cut, how candidates become predictions, and how these are scored."""

    pipeline: Pipeline = field(default_factory=Pipeline)
    chunkers: tuple[str, ...] = DEFAULT_CHUNKERS
    averaging: OverDocuments = "micro"
    include_assertions: bool = False
    """Whether the leading figures count a term with the wrong assertion as an error."""
    bootstrap: bool = True
    measure: str = "lin"
    """What a near miss earns in the soft scores."""
    multi: bool = True
    strategy: str = DEFAULT_STRATEGY
    level: float = 0.95
    resamples: int = 2000
    seed: int = 0
    index_dir: str | None = None
    threads: int = 1

    @property
    def mode(self) -> Mode:
        """The mode of the leading figures."""
        return "strict" if self.include_assertions else "id"

    def within(self, terms: int) -> ExtractionSettings:
        """The same settings, looking at no more terms than there are."""
        depth = min(self.pipeline.num_results, terms)
        return replace(self, pipeline=replace(self.pipeline, num_results=depth))

    def checked(self) -> ExtractionSettings:
        """The same settings, or a sentence about what cannot be."""
        if self.averaging not in AVERAGES:
            raise UnknownNameError.of(
                "averaging", self.averaging, AVERAGES, more=f"there are {', '.join(AVERAGES)}"
            )
        if not self.chunkers:
            raise ParameterError("no chunker was named", hint=f"such as {', '.join(DEFAULT_CHUNKERS)}")
        if self.pipeline.num_results < 1:
            raise ParameterError(
                f"num_results is {self.pipeline.num_results}", hint="ask for one term a chunk or more"
            )
        return self


def settings_of(options: dict[str, Any]) -> ExtractionSettings:
    """Settings by name; those of the pipeline stand beside the others.

    >>> settings_of({"num_results": 3, "averaging": "macro"}).pipeline.num_results
    3
    """
    of_pipeline = {each.name for each in fields(Pipeline)}
    known = of_pipeline | {each.name for each in fields(ExtractionSettings)} - {"pipeline"}
    for name in options:
        if name not in known:
            raise UnknownNameError.of("setting of an extraction", name, sorted(known))
    own = {name: value for name, value in options.items() if name not in of_pipeline}
    pipeline = {name: value for name, value in options.items() if name in of_pipeline}
    return replace(ExtractionSettings(**own), pipeline=Pipeline(**pipeline)).checked()


def told(pipeline: Pipeline) -> str:
    """What is not as it would be by default: the name of a configuration.

    >>> told(Pipeline()), told(Pipeline(top_term_only=True, chunk_threshold=0.5))
    ('default', 'chunk_threshold 0.5, top_term_only')
    """
    usual = Pipeline()
    unlike = {
        each.name: getattr(pipeline, each.name)
        for each in fields(Pipeline)
        if getattr(pipeline, each.name) != getattr(usual, each.name)
    }
    parts = [name if value is True else f"{name} {_plain(value)}" for name, value in unlike.items()]
    return ", ".join(parts) or "default"


def _plain(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value).lower()
