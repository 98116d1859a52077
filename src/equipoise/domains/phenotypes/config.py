"""Configurations: of a benchmark (metrics, term representations, reranker, device), and of extraction (pipeline)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, cast

from equipoise.config import DEFAULT_STATS, StatsConfig
from equipoise.domains.phenotypes.extraction.candidates import DEFAULT_CHUNKERS, SelectionSettings
from equipoise.domains.phenotypes.index.aggregation import DEFAULT_STRATEGY, STRATEGIES, Weights, parse_strategy
from equipoise.errors import DuplicateError, ParameterError, UnknownNameError
from equipoise.geometry.gpu_search import torch_device
from equipoise.metrics.parser import catalogue_with, parse_metrics
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
from equipoise.models.registry import spec_kind

if TYPE_CHECKING:
    from equipoise.domains.phenotypes.ontology import Ontology
    from equipoise.metrics.base import Metric

CUTOFFS = (1, 3, 5, 10)
"""The default cutoffs k."""
PRIMARY = "MRR"
_AT_K = ("HR", "nDCG", "R", "P", "MAP", "MaxOntSim")


def benchmark_metrics(
    ks: Iterable[int] = CUTOFFS, metrics: Iterable[Any] = (), plugins: Sequence[str] = ()
) -> list[Metric[Any]]:
    """MRR, all other ranking metrics at each cutoff, and further ``metrics``, which may be defined in plugin files."""
    cutoffs = ",".join(map(str, ks))
    names = [PRIMARY, *(f"{symbol}@{{{cutoffs}}}" for symbol in _AT_K)]
    return list(parse_metrics([*names, *metrics], catalogue=catalogue_with(plugins) if plugins else None))


DEFAULT_STRATEGIES = ("label_synonyms_max", "all_max", "label_only", "all_weighted")
DEFAULT_RERANKER = "maxsim:minilm"
DEFAULT_RERANK_DEPTH = 20
SINGLE, WEIGHTED = "single", "all_weighted"


@dataclass(frozen=True)
class TermRepresentation:
    """How a term is represented: one vector for all texts, or one vector per text with an aggregation strategy."""

    multi_vector: bool = False
    strategy: str = DEFAULT_STRATEGY
    weights: Weights | None = None

    @property
    def name(self) -> str:
        """``single``, or the name of the strategy."""
        return self.strategy if self.multi_vector else SINGLE

    def checked(self) -> TermRepresentation:
        """The validated representation, with the canonical name of its strategy."""
        if not self.multi_vector:
            return self
        parse_strategy(self.strategy, self.weights)
        name = self.strategy.strip().casefold()
        return replace(self, strategy=name if name in STRATEGIES else self.strategy.strip())


@dataclass(frozen=True)
class BenchmarkConfig:
    """All settings of a benchmark that decide the scores, except models, cases and ontology.

    The fields are the ``**settings`` of ``run_benchmark``.

    Attributes
    ----------
    representations
        How the texts of a term become a score; one system per representation and model.
    measure
        Ontology similarity of near misses: ``lin``, ``resnik-normalised``, ``jiang-conrath``, ``edge`` or ``hybrid``.
    reranker
        True for late interaction, a spec such as ``cross-encoder:FOLDER``, or a reranker; None for none.
    rerank_depth
        Number of top terms that are reranked.
    device
        The device of models and rerankers that can use one, such as ``cuda``.
    ks
        Cutoffs of the default metrics.
    metrics
        Further metrics, as names or objects.
    plugins
        Python files that define further metrics.
    annotations
        Annotations for the information content: ``hpo``, a ``.hpoa`` file, or a table; None for the graph alone.
    config
        Options of intervals and tests.
    index_dir
        The folder of indexes; None for ``~/.local/share/equipoise/indexes``.
    threads
        Threads per model.
    skip_unknown
        Whether expected ids without a live term are left out instead of being an error.
    translate
        Whether texts with German words are also translated into English and searched again.
    translations
        Files of translated labels; see ``read_translations``.
    n_label_queries
        Number of term labels that are searched as queries; 0 for none.
    """

    representations: tuple[TermRepresentation, ...] = (TermRepresentation(),)
    measure: str = "lin"
    reranker: Any = None
    rerank_depth: int = DEFAULT_RERANK_DEPTH
    device: str | None = None
    ks: tuple[int, ...] = CUTOFFS
    metrics: tuple[Any, ...] = ()
    plugins: tuple[str, ...] = ()
    annotations: str | None = None
    config: StatsConfig = DEFAULT_STATS
    index_dir: str | None = None
    threads: int = 1
    skip_unknown: bool = False
    translate: bool = True
    translations: tuple[str, ...] = ()
    n_label_queries: int = 0

    @property
    def further_metrics(self) -> tuple[str, ...]:
        """The names of the requested metrics that are not among the default ones."""
        default = {metric.name for metric in benchmark_metrics(self.ks)}
        names = [metric.name for metric in benchmark_metrics(self.ks, self.metrics, self.plugins)]
        return tuple(name for name in names if name not in default)

    def checked(self) -> BenchmarkConfig:
        """The configuration, if it is valid; otherwise an error."""
        representations = tuple(representation.checked() for representation in self.representations)
        names = [representation.name for representation in representations]
        if not names:
            raise ParameterError("there is nothing to compare", hint="name a strategy, or omit --no-single")
        duplicate = next((name for name in names if names.count(name) > 1), None)
        if duplicate is not None:
            raise DuplicateError(f"the strategy {duplicate} is named twice", hint="name each once")
        if not self.ks or min(self.ks) < 1:
            raise ParameterError(f"the cutoffs are {list(self.ks)}", hint="give integers from 1: 1, 3, 5, 10")
        if self.rerank_depth < 1:
            raise ParameterError(f"the rerank depth is {self.rerank_depth}", hint="give 1 or more")
        if self.translations and not self.translate:
            raise ParameterError("translations are given, and queries are not translated", hint="omit one of the two")
        metrics = (self.metrics,) if isinstance(self.metrics, str) else tuple(self.metrics)
        benchmark_metrics(self.ks, metrics, self.plugins)
        return replace(self, representations=representations, metrics=metrics, plugins=tuple(self.plugins))


def term_representations(
    strategies: Sequence[str], *, single: bool = True, weights: Weights | None = None
) -> tuple[TermRepresentation, ...]:
    """The single-vector representation, unless it is left out, then the strategies.

    >>> [representation.name for representation in term_representations(["all_max"])]
    ['single', 'all_max']
    """
    if not strategies:
        raise ParameterError(
            "no strategy is named, so there is nothing to compare with one vector per term",
            hint=f"name some: {', '.join(DEFAULT_STRATEGIES)}",
        )
    weighted = [strategy.strip().casefold() == WEIGHTED for strategy in strategies]
    if weights is not None and not any(weighted):
        raise ParameterError(f"weights are for {WEIGHTED}, which is not compared", hint=f"add {WEIGHTED}")
    several = tuple(
        TermRepresentation(True, strategy, weights if takes_weights else None)
        for strategy, takes_weights in zip(strategies, weighted, strict=True)
    )
    return ((TermRepresentation(),) if single else ()) + several


MODEL_KINDS_ON_DEVICE = ("st",)
"""The kinds of models that accept a device."""
RERANKER_KIND_ON_DEVICE = "cross-encoder"
"""The kind of rerankers that accept a device."""


def supports_device(model: Any) -> bool:
    """Whether a model accepts a device: a spec of the right kind that is no fusion."""
    return isinstance(model, str) and spec_kind(model) in MODEL_KINDS_ON_DEVICE


def reranker_supports_device(reranker: Any) -> bool:
    return isinstance(reranker, str) and reranker.startswith(RERANKER_KIND_ON_DEVICE)


def check_device_is_used(device: str | None, models: Iterable[Any], reranker: Any) -> None:
    """Raise an error for an unavailable device, and for a GPU that no model would use."""
    if device is None:
        return
    torch_target = torch_device(device)
    if torch_target.type == "cpu" or reranker_supports_device(reranker) or any(map(supports_device, models)):
        return
    raise ParameterError(
        "none of these models runs on a GPU",
        hint="a device applies to models of the kind st: outside of fusions, and to rerankers of the kind "
        f"{RERANKER_KIND_ON_DEVICE}:; omit --gpu and --device",
    )


# The extraction of terms from documents: pipeline, metrics and term retriever.

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
    """How documents are split, candidates selected, and predictions scored.

    The fields, and those of ``pipeline``, are the ``**settings`` of ``run_extraction``.

    Attributes
    ----------
    pipeline
        How terms are selected from candidates: ``num_results``, ``chunk_threshold``, ``min_confidence`` and
        ``top_term_only``; see ``predict``.
    chunkers
        ``span`` for phrases that may name a term, or splitters from coarse to fine, such as ``sentence``, ``phrase``.
    dictionary
        Whether names in the text are matched by the dictionary; the model then scores the other phrases only.
    branch
        Only terms below this one are found; ignored by ontologies that lack it. None for all terms.
    averaging
        How the primary scores are averaged over documents: ``micro``, ``macro`` or ``weighted``.
    include_assertions
        Whether the primary scores count a term with a wrong assertion as an error.
    bootstrap
        Whether intervals are computed.
    measure
        Ontology similarity of near misses in the soft scores, as in ``term_similarity``.
    multi_vector
        Whether every label, synonym and definition has its own vector, as in ``run_benchmark``.
    strategy
        How the scores of the texts of a term are aggregated, as in ``run_benchmark``.
    config
        Options of intervals and tests.
    translations
        Tables of translated labels, which the dictionary matches and the model uses to translate phrases.
    index_dir
        The folder of indexes; None for ``~/.local/share/equipoise/indexes``.
    threads
        Threads per model.
    """

    pipeline: SelectionSettings = field(default_factory=SelectionSettings)
    chunkers: tuple[str, ...] = DEFAULT_CHUNKERS
    dictionary: bool = True
    branch: str | None = PHENOTYPES
    averaging: OverDocuments = "micro"
    include_assertions: bool = False
    bootstrap: bool = True
    measure: str = "lin"
    multi_vector: bool = True
    strategy: str = DEFAULT_STRATEGY
    config: StatsConfig = DEFAULT_STATS
    translations: tuple[str, ...] = ()
    index_dir: str | None = None
    threads: int = 1

    @property
    def mode(self) -> Mode:
        """The name of the primary mode in metrics: ``strict`` (with assertions) or ``id``."""
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
        """The configuration, if it is valid; otherwise an error."""
        if self.averaging not in AVERAGES:
            raise UnknownNameError.of("averaging", self.averaging, AVERAGES, more=f"there are {', '.join(AVERAGES)}")
        if not self.chunkers:
            raise ParameterError("no chunker was given", hint=f"such as {', '.join(DEFAULT_CHUNKERS)}")
        if self.pipeline.num_results < 1:
            raise ParameterError(f"num_results is {self.pipeline.num_results}", hint="give 1 or more")
        return self


def make_config(options: dict[str, Any]) -> ExtractionConfig:
    """The configuration from settings by name, those of the pipeline included."""
    of_pipeline = SelectionSettings().record().keys()
    accepted = of_pipeline | {field.name for field in fields(ExtractionConfig)} - {"pipeline"}
    for name in options:
        if name not in accepted:
            raise UnknownNameError.of("setting of an extraction", name, sorted(accepted))
    pipeline = SelectionSettings(**{name: value for name, value in options.items() if name in of_pipeline})
    others = {name: value for name, value in options.items() if name not in of_pipeline}
    return ExtractionConfig(pipeline, **others).checked()


def describe_pipeline(pipeline: SelectionSettings) -> str:
    """The name of a configuration: its settings that differ from the defaults."""
    default = SelectionSettings().record()
    changed = {name: value for name, value in pipeline.record().items() if value != default[name]}
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


MODE_TITLES: dict[Mode, str] = {"strict": "with assertion", "present": "affirmed only", "id": "id only"}
"""The modes as reports name them."""


def metric_label(name: str) -> str:
    """The name of an extraction metric as reports write it.

    >>> metric_label("F1(average=macro,mode=id,soft)"), metric_label("P")
    ('soft macro F1 (id only)', 'micro precision (with assertion)')
    """
    symbol, _, options = name.rstrip(")").partition("(")
    given = dict(option.partition("=")[::2] for option in options.split(",")) if options else {}
    title = {"P": "precision", "R": "recall"}.get(symbol, symbol)
    mode = MODE_TITLES[cast("Mode", given.get("mode", "strict"))]
    return f"{'soft ' if 'soft' in given else ''}{given.get('average', 'micro')} {title} ({mode})"


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
