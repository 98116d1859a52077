"""Metrics by name: the parser of names such as ``nDCG@10``, ``HR@{1,3,5,10}``, ``MAP(norm=R)@10``."""

from __future__ import annotations

import importlib.util
import inspect
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import cached_property, lru_cache
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin

from equipoise.errors import EquipoiseError, InputError, ParameterError, UnknownNameError, did_you_mean
from equipoise.metrics.base import BaseMetric, Metric, parameter_types

if TYPE_CHECKING:
    from equipoise.evidence.base import Evidence

_PATTERN = re.compile(r"^\s*(?P<symbol>[^\s@(){}]+?)\s*(\((?P<parameters>[^()]*)\))?\s*(@\s*(?P<cutoff>[^@]+?))?\s*$")
_CUTOFFS = re.compile(r"^\{([^{}]*)\}$")

AnyMetric = Metric[Any]

_DCG_OF_IR_MEASURES = {"log2": "linear", "exp-log2": "exp"}

SEVERAL = "for several metrics repeat -m, or pass a list in Python; for several cutoffs write @{1,3,5,10}"


def parse_metrics(
    expressions: str | AnyMetric | Iterable[str | AnyMetric],
    *,
    evidence: type[Evidence] | None = None,
    catalogue: MetricCatalogue | None = None,
) -> tuple[AnyMetric, ...]:
    """Parse metric names.

    Parameters
    ----------
    expressions
        One name or several, such as ``nDCG@10``, ``HR@{1,3}`` or ``MAP(norm=R)@10``, or metrics.
    evidence
        The kind of evidence, which selects between metrics of the same name, such as F1 of classes and F1 of sets.
    catalogue
        Metrics in addition to the built-in ones.

    Returns
    -------
    tuple
        The metrics, each once, in the order of the expressions.

    Examples
    --------
    >>> [str(metric) for metric in parse_metrics(["HR@{1,3}", "AP(norm=R)@10", "ndcg@5"])]
    ['HR@1', 'HR@3', 'MAP(norm=R)@10', 'nDCG@5']
    """
    if isinstance(expressions, str | Metric):
        expressions = [expressions]
    available = catalogue or builtin()
    parsed: dict[str, AnyMetric] = {}
    for expression in expressions:
        if isinstance(expression, type) and issubclass(expression, Metric) and not is_dataclass(expression):
            expression = expression()  # a custom metric, which is a class without parameters
        if not isinstance(expression, str | Metric):
            raise ParameterError(
                f"{expression!r} is neither the name of a metric nor a metric", hint="for example nDCG@10"
            )
        metrics = [expression] if isinstance(expression, Metric) else _parse_one(expression, evidence, available)
        for metric in metrics:
            parsed.setdefault(metric.name, metric)
    if not parsed:
        raise ParameterError("no metric was given", hint="for example nDCG@10 or HR@{1,3,5,10}")
    return tuple(parsed.values())


def find_metric(name: str, evidence: Evidence | None = None) -> AnyMetric | None:
    """The built-in metric of this name for this evidence; None if the name is unknown."""
    try:
        return parse_metrics(name, evidence=None if evidence is None else type(evidence))[0]
    except EquipoiseError:
        return None


def _parse_one(text: str, evidence: type[Evidence] | None, catalogue: MetricCatalogue) -> list[AnyMetric]:
    match = _PATTERN.match(text)
    if not match:
        raise ParameterError(f"{text!r} is not a metric name", hint="write nDCG@10, HR@{1,3,5} or F1(average=macro)")
    symbol, cutoff = match["symbol"], match["cutoff"]
    candidates = catalogue.named(symbol, evidence) or catalogue.with_entry_points().named(symbol)
    if not candidates:
        own_name = name_from_other_library(text.strip(), catalogue)
        if own_name:
            return _parse_one(own_name, evidence, catalogue)
        raise unknown_metric(text, catalogue)
    chosen = _choose(symbol, candidates, evidence, with_cutoff=cutoff is not None)
    if isinstance(chosen, Metric):  # a custom metric
        if match["parameters"] or cutoff:
            raise ParameterError(f"{chosen.name} takes no parameters and no cutoff", hint=f"write {chosen.name}")
        return [chosen]
    if cutoff is not None and "k" not in (field.name for field in fields(chosen)):
        raise ParameterError(f"{chosen.symbol} takes no cutoff", hint=f"write {chosen.symbol}")
    parameters = _parameters(chosen, match["parameters"] or "")
    cutoffs = [{}] if cutoff is None else [{"k": k} for k in _cutoffs(text, cutoff)]
    return [chosen(**with_cutoff, **parameters) for with_cutoff in cutoffs]


def _choose(symbol: str, candidates: Sequence[Any], evidence: type[Evidence] | None, *, with_cutoff: bool) -> Any:
    """The metric of that name that accepts the evidence and the parameters."""
    if evidence is not None:
        fitting = [metric for metric in candidates if issubclass(evidence, metric.evidence)]
        if not fitting:
            kinds = " or ".join(sorted({metric.evidence.kind for metric in candidates}))
            raise ParameterError(
                f"{symbol} is a metric of {kinds} evidence, and this is {evidence.kind} evidence",
                hint=f"eq ls metrics --kind {evidence.kind} lists those that fit",
            )
        candidates = fitting
    by_cutoff = [metric for metric in candidates if metric.needs_cutoff == with_cutoff]
    if len(candidates) > 1 and by_cutoff:
        candidates = by_cutoff
    return candidates[0]


def _cutoffs(text: str, cutoff: str) -> list[int]:
    several = _CUTOFFS.match(cutoff)
    numbers = several[1].split(",") if several else [cutoff]
    try:
        return [int(number) for number in numbers]
    except ValueError:
        hint = SEVERAL if "," in text else "write @10 or @{1,3,5,10}"
        raise ParameterError(f"{text!r} has the cutoff {cutoff!r}, which is not an integer", hint=hint) from None


def _parameters(metric: type[AnyMetric], text: str) -> dict[str, Any]:
    """The keyword arguments of ``norm=R,capped``; a bare name switches a flag on."""
    types = parameter_types(metric)
    allowed = {field.name: types[field.name] for field in fields(metric) if field.name != "k"}  # type: ignore[arg-type]
    read: dict[str, Any] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, _, value = (text.strip().strip("'\"") for text in part.partition("="))
        if name == "dcg" and value.casefold() in _DCG_OF_IR_MEASURES:
            name, value = "gain", _DCG_OF_IR_MEASURES[value.casefold()]
        if name not in allowed:
            hint = did_you_mean(name, allowed) or (
                f"{metric.symbol} takes {', '.join(allowed)}" if allowed else f"{metric.symbol} takes none"
            )
            raise UnknownNameError(f"{metric.symbol} has no parameter {name!r}", hint=hint)
        read[name] = _value(metric, name, value, allowed[name])
    for field in fields(metric):  # type: ignore[arg-type]
        if field.default is MISSING and field.default_factory is MISSING and field.name not in read:
            raise ParameterError(f"{metric.symbol} needs {field.name}", hint=f"write {metric.symbol}({field.name}=...)")
    return read


def _value(metric: type[AnyMetric], name: str, text: str, kind: Any) -> Any:
    if kind is bool:
        if text.casefold() in ("", "true", "yes", "1"):
            return True
        if text.casefold() in ("false", "no", "0"):
            return False
        raise ParameterError(f"{metric.symbol}({name}={text}) is neither true nor false", hint=f"write {name}")
    if get_origin(kind) is Literal:
        choices = {str(choice).casefold(): choice for choice in get_args(kind)}
        if text.casefold() not in choices:
            values = [str(choice) for choice in get_args(kind)]
            raise ParameterError(
                f"{metric.symbol}({name}={text}) is not among its choices",
                hint=did_you_mean(text, values) or f"choose {' or '.join(values)}",
            )
        return choices[text.casefold()]
    try:
        return kind(text)
    except (TypeError, ValueError):
        raise ParameterError(f"{metric.symbol}({name}={text}) is not a {getattr(kind, '__name__', kind)}") from None


_OTHER_LIBRARIES = re.compile(r"^(?P<name>[A-Za-z][A-Za-z_-]*?)(?:[_-](?:at|cut))?[_.@-]?(?P<cutoff>\d+)$")
"""``ndcg_cut_10`` (trec_eval), ``ndcg_at_10`` (mteb), ``recall_10``, ``P.5``."""
_RBP_OF_RANX = re.compile(r"^rbp(?P<p>\.\d+)$", re.IGNORECASE)
_OTHER_NAMES = {
    "cosine_spearman": "Spearman",
    "cosine_pearson": "Pearson",
    "main_score": "nDCG@10",
}
_OTHER_SYMBOLS = {"map": "MAP(norm=R)", "ndcg_burges": "nDCG(gain=exp)"}
"""Names of other libraries that mean another metric than ours: trec_eval and mteb divide average precision by R."""


_TOP_ACCURACY = re.compile(r"^top[-_]?(?P<k>\d+)([-_]?acc(uracy)?)?$", re.IGNORECASE)
_UNLIKE_OURS = ("auc", "mcc", "perplexity")
"""Metrics that are not here, and whose names are near those of unrelated metrics."""


def name_from_other_library(name: str, catalogue: MetricCatalogue) -> str:
    """Our name of a metric as trec_eval, mteb or ranx writes it; empty if it is unknown.

    >>> [name_from_other_library(name, builtin()) for name in ("ndcg_cut_10", "map_at_5", "rbp.95", "nonsense")]
    ['nDCG@10', 'MAP(norm=R)@5', 'RBP(p=.95)', '']
    """
    if rbp := _RBP_OF_RANX.match(name):
        return f"RBP(p={rbp['p']})"
    match = _OTHER_LIBRARIES.match(name)
    if match is None:
        return _OTHER_NAMES.get(name.casefold(), "")
    symbol = _OTHER_SYMBOLS.get(match["name"].casefold(), "")
    if not symbol:
        metrics = catalogue.named(match["name"])
        if not metrics:
            return ""
        symbol = next((metric for metric in metrics if metric.needs_cutoff), metrics[0]).symbol
    return f"{symbol}@{match['cutoff']}"


def unknown_metric(name: str, catalogue: MetricCatalogue) -> UnknownNameError:
    """The error for a metric that the catalogue does not have."""
    symbol = name.partition("(")[0].partition("@")[0].strip()
    if symbol.casefold().replace("-", "_") in ("alpha_ndcg", "α_ndcg", "err_ia", "alpha_dcg"):
        return UnknownNameError(
            f"{symbol} needs judgements per subtopic, which qrels here do not have",
            hint="score each subtopic as a query of its own, or use ir_measures with pyndeval",
        )
    if symbol.casefold().replace("_", "") in ("numq", "numret", "numrel", "numrelret"):
        return UnknownNameError(
            f"{symbol} is a count, not a metric with a value per query",
            hint="n in the table is the number of queries; R@1000 is the share of the relevant documents retrieved",
        )
    if "," in symbol:
        return UnknownNameError(f"no metric is called {symbol!r}", hint=SEVERAL)
    if top := _TOP_ACCURACY.match(symbol):
        return UnknownNameError(f"no metric is called {symbol!r}", hint=f"write Acc@{top['k']}")
    if symbol.casefold() in _UNLIKE_OURS:
        return UnknownNameError(f"no metric is called {symbol!r}", hint="eq ls metrics lists them all")
    return UnknownNameError.of("metric", symbol, catalogue.names(), more="eq ls metrics lists them all")


# Names that a user may abbreviate: all metrics that a name matches, in a catalogue with plugins.

DEFAULT_CUTOFF = "@10"


def catalogue_with(plugins: Sequence[str]) -> MetricCatalogue:
    """The built-in metrics, those of installed packages, and those of plugin files."""
    catalogue = builtin().with_entry_points()
    for path in plugins:
        catalogue = catalogue.with_plugin(path)
    return catalogue


def symbol_of(expression: str) -> str:
    """The symbol in a metric name.

    >>> symbol_of("F1(average=macro)"), symbol_of("HR@{1,3}")
    ('F1', 'HR')
    """
    return expression.partition("(")[0].partition("@")[0].strip()


def matching_metrics(name: str, catalogue: MetricCatalogue) -> list[Metric[Any]]:
    """Every metric that the name matches: P@5 is the precision of rankings, not that of classes.

    Empty for an unknown symbol; an error if no metric with the symbol takes these parameters. A metric that needs
    a cutoff gets ``DEFAULT_CUTOFF`` if the name has none.
    """
    metrics: list[Metric[Any]] = []
    errors: list[EquipoiseError] = []
    own_name = "" if catalogue.named(symbol_of(name)) else name_from_other_library(name, catalogue)
    name = own_name or name
    for declared in catalogue.named(symbol_of(name)):
        try:
            metrics.append(_parse(name, MetricCatalogue((declared,))))
        except EquipoiseError as error:
            errors.append(error)
    if errors and not metrics:
        raise errors[0]
    return metrics


def _parse(name: str, catalogue: MetricCatalogue) -> Metric[Any]:
    try:
        return parse_metrics(name, catalogue=catalogue)[0]
    except ParameterError:
        if "@" in name:
            raise
        return parse_metrics(name + DEFAULT_CUTOFF, catalogue=catalogue)[0]


# The catalogue: the built-in metrics by name, and metrics registered by users.


BUILT_IN = {
    "ranking": ("ranking", "ranking_trec_eval"),
    "labels": ("labels",),
    "sets": ("sets",),
    "pairs": ("pairs",),
    "space": ("structure",),
}
"""The modules whose ``METRICS`` measure a kind of evidence; imported one by one until a metric is found."""


@dataclass(frozen=True)
class MetricCatalogue:
    """Metrics by name and alias: the built-in ones of some kinds of evidence, and added ones.

    A metric is a class, or an instance of a ``BaseMetric`` subclass.
    """

    added: tuple[Any, ...] = ()
    kinds: tuple[str, ...] = ()

    @cached_property
    def metrics(self) -> tuple[Any, ...]:
        """All metrics; this imports the modules of all ``kinds``."""
        built_in = (metric for kind in self.kinds for metrics in _built_in(kind) for metric in metrics)
        return (*built_in, *self.added)

    def named(self, name: str, evidence: type[Evidence] | None = None) -> list[Any]:
        """All metrics with this name or alias, ignoring case; of this type of evidence only, if one of them fits it."""
        if evidence is not None:
            built_in = _built_in(evidence.kind) if evidence.kind in self.kinds else iter(())
            added = tuple(metric for metric in self.added if issubclass(evidence, metric.evidence))
            for metrics in chain(built_in, (added,)):
                if fitting := _with_name(name, metrics):
                    return fitting
        return _with_name(name, self.metrics)

    def names(self) -> list[str]:
        """All symbols and synonyms."""
        return [name for metric in self.metrics for name in (metric.symbol, *metric.aliases)]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.metrics)

    def with_plugin(self, path: str | Path) -> MetricCatalogue:
        """This catalogue and the metrics that a Python file defines."""
        return self.plus(metrics_of_file(Path(path)), source=str(path))

    def with_entry_points(self) -> MetricCatalogue:
        """This catalogue and the metrics that installed packages offer under ``equipoise.metrics``."""
        from importlib.metadata import entry_points

        metrics = metrics_among([point.load() for point in entry_points(group="equipoise.metrics")])
        return self.plus(metrics, source="entry points equipoise.metrics") if metrics else self

    def plus(self, metrics: list[Any], *, source: str) -> MetricCatalogue:
        """This catalogue and more metrics; a name that exists is an error."""
        for metric in metrics:
            if self.named(metric.symbol):
                raise InputError(
                    f"{source} defines a metric {metric.symbol!r}, and there is one of that name already",
                    hint="give it another name",
                )
        return MetricCatalogue(self.added + tuple(metrics), self.kinds)


def _built_in(kind: str) -> Iterator[tuple[Any, ...]]:
    for module in BUILT_IN[kind]:
        yield import_module(f"equipoise.metrics.{module}").METRICS


def _with_name(name: str, metrics: Iterable[Any]) -> list[Any]:
    word = name.casefold()
    return [metric for metric in metrics if any(word == alias.casefold() for alias in (metric.symbol, *metric.aliases))]


@lru_cache(maxsize=1)
def builtin() -> MetricCatalogue:
    """The metrics of this package."""
    return MetricCatalogue(kinds=tuple(BUILT_IN))


# Custom metrics in Python files.


def metrics_of_file(path: Path) -> list[Any]:
    """The metrics that a Python file defines."""
    if not path.is_file():
        raise InputError(f"there is no plugin file {path}", hint="give the path of a Python file")
    spec = importlib.util.spec_from_file_location(f"equipoise_plugin_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise InputError(f"{path} is not a Python file", hint="a plugin ends in .py")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise InputError(f"the plugin {path} fails when it is loaded: {type(error).__name__}: {error}") from error
    definitions = [value for value in vars(module).values() if getattr(value, "__module__", "") == module.__name__]
    try:
        metrics = metrics_among(definitions)
    except Exception as error:
        raise InputError(
            f"a metric of the plugin {path} cannot be created: {type(error).__name__}: {error}",
            hint="its __init__ takes no argument and gives a name: super().__init__(name=...)",
        ) from error
    if not metrics:
        raise InputError(
            f"the plugin {path} defines no metric",
            hint="subclass equipoise.BaseMetric with a name and calculate",
        )
    return metrics


def metrics_among(values: list[Any]) -> list[Any]:
    """Metric classes as they are; subclasses of ``BaseMetric`` as the instance that carries the name."""
    metrics: list[Any] = []
    for value in values:
        if isinstance(value, BaseMetric):
            metrics.append(value)
        elif inspect.isclass(value) and issubclass(value, BaseMetric):
            instance: Any = value  # its own __init__ gives the name
            metrics.append(instance())
        elif inspect.isclass(value) and issubclass(value, Metric) and not inspect.isabstract(value):
            metrics.append(value)
    return metrics
