"""Options that several commands share, each declared once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import fields
from functools import partial, wraps
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.shell_completion import CompletionItem

from equipoise.cli.output import Output
from equipoise.config import CORRECTION_NAMES, DEFAULT_STATS, TEST_ALIASES, StatsConfig, Ties
from equipoise.errors import EquipoiseError, ParameterError, UnknownNameError

if TYPE_CHECKING:
    from equipoise.metrics.base import Metric
    from equipoise.metrics.catalogue import MetricCatalogue
    from equipoise.models.worker_pool import ExecutorMap
    from equipoise.runs.executors import Executor

Command = TypeVar("Command", bound=Callable[..., Any])
Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]
Record = TypeVar("Record")

if TYPE_CHECKING:  # generic since click 8.4, and we run with older ones
    NamedType = click.ParamType[str]
else:
    NamedType = click.ParamType


class ChoiceWithHint(NamedType):
    """A name out of a few; a mistyped one gets a did-you-mean. The names may be loaded late."""

    def __init__(self, kind: str, names: Callable[[], Iterable[str]]) -> None:
        self.name = kind
        self.names = names

    def get_metavar(self, *args: Any, **options: Any) -> str:
        """``[holm|bh|none]`` in the help."""
        return f"[{'|'.join(self.names())}]"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The name as it is spelled in the table."""
        known = {name.casefold(): name for name in self.names()}
        found = known.get(str(value).casefold())
        if found is None:
            raise UnknownNameError.of(
                self.name, str(value), known.values(), more=f"choose one of {', '.join(known.values())}"
            )
        return found

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """The names that begin so."""
        return [CompletionItem(name) for name in self.names() if name.startswith(incomplete)]


class NameType(NamedType, ABC):
    """A name as it is spelled, which is read later, with what it belongs to; known ones complete it."""

    @abstractmethod
    def known(self) -> Iterable[tuple[str, str]]:
        """Spellings worth offering, each with what it means."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The spelling as it is."""
        return str(value)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """The known spellings that begin so."""
        return [
            CompletionItem(name, help=title)
            for name, title in self.known()
            if name.casefold().startswith(incomplete.casefold())
        ]


class ModelType(NameType):
    """A model spec, such as ``minilm`` or ``bm25:``. It is resolved later, when the model is loaded."""

    name = "model"

    def known(self) -> Iterable[tuple[str, str]]:
        """The models that ``eq ls models`` lists, with their titles."""
        from equipoise.models.inventory import list_models

        return ((model.spec, model.title) for model in list_models())


class MetricType(NameType):
    """A metric, such as ``nDCG@10``."""

    name = "metric"

    def known(self) -> Iterable[tuple[str, str]]:
        """The metrics of the catalogue; those that need a cutoff with one."""
        from equipoise.metrics.catalogue import builtin

        return ((name, metric.title) for metric in builtin() for name in suggestions(metric))


def symbol_of(expression: str) -> str:
    """The name in the spelling of a metric.

    >>> symbol_of("F1(average=macro)"), symbol_of("HR@{1,3}")
    ('F1', 'HR')
    """
    return expression.partition("(")[0].partition("@")[0].strip()


def suggestions(metric: Any) -> list[str]:
    """The spellings of a metric worth offering."""
    cut = [f"{metric.symbol}@{k}" for k in (1, 5, 10, 100)] if hasattr(metric, "k") else []
    return cut if metric.needs_cutoff else [metric.symbol, *cut]


def names_in(module: str, table: str) -> Callable[[], list[str]]:
    """The names of a table, which is imported when it is asked for: options cost nothing until then.

    >>> names_in("equipoise.stats.corrections", "CORRECTIONS")()
    ['holm', 'bh', 'none']
    """
    return lambda: list(getattr(import_module(module), table))


tie_rules = partial(list[str], Ties)
tests = partial(list[str], TEST_ALIASES)
corrections = partial(list[str], CORRECTION_NAMES)
severities = names_in("equipoise.types", "Severity")
"""How grave a finding can be, gravest first."""


def kinds() -> list[str]:
    """The kinds of evidence that metrics measure."""
    from equipoise.metrics.catalogue import builtin

    return list(dict.fromkeys(metric.evidence.kind for metric in builtin()))


def _switch(name: str) -> Callable[[click.Context, click.Parameter, bool], None]:
    """Turn the option into a property of the shared ``Output``, wherever on the line it stands."""

    def turn(ctx: click.Context, parameter: click.Parameter, on: bool) -> None:
        if on:
            setattr(ctx.ensure_object(Output), name, True)

    return turn


def _joined(*options: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """Several options as one decorator, in the order of the help page."""

    def decorate(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def output_options(command: Command) -> Command:
    """``--json``, ``-q`` and ``-v``."""
    shared: dict[str, Any] = {"is_flag": True, "expose_value": False, "is_eager": True}
    return _joined(
        click.option("--json", callback=_switch("json"), help="Write data as JSON.", **shared),
        click.option("-q", "--quiet", callback=_switch("quiet"), help="Only the table, no advice.", **shared),
        click.option("-v", "--verbose", callback=_switch("verbose"), help="More detail.", **shared),
    )(command)


def one_of(option: str, kind: str, names: Callable[[], list[str]], default: str, text: str) -> Decorator:
    """An option that takes one name out of a few."""
    return click.option(option, type=ChoiceWithHint(kind, names), default=default, show_default=True, help=text)


metric_option = click.option(
    "-m",
    "--metric",
    "metrics",
    type=MetricType(),
    multiple=True,
    help="A metric, such as nDCG@10 or HR@{1,3,5}; may be repeated.",
)

plugin_option = click.option(
    "--plugin",
    "plugins",
    metavar="FILE",
    multiple=True,
    type=click.Path(),
    help="A Python file with metrics of your own.",
)

primary_option = click.option("--primary", type=MetricType(), help="The metric that decides the order.")

fail_option = click.option(
    "--fail-on",
    type=ChoiceWithHint("severity", severities),
    help="Exit 1 when there is a finding this grave or graver.",
)


def reading_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """How evidence is read: the truth, the size of the corpus, padding, tags; one ``reading`` in all."""

    @wraps(command)
    def collected(*args: Any, **options: Any) -> Any:
        from equipoise.cli.inputs import EvidenceOptions

        return command(*args, reading=_taken(EvidenceOptions, options), **options)

    return _joined(
        click.option("--qrels", type=click.Path(), help="The truth for run files: TREC, TSV, JSON, ..."),
        click.option(
            "--targets",
            type=click.Path(),
            help="The right column of each row of logits; if left out, the array targets of their file.",
        ),
        click.option("--padding", type=int, multiple=True, help="A column of the logits that is no class."),
        click.option("--corpus-size", type=int, help="How many documents could have been retrieved."),
        click.option("--run-tag", metavar="NAME", help="Accept TREC lines without their last field."),
        click.option("--device", metavar="NAME", help="Count logits there: cuda, cuda:1, mps, cpu."),
    )(collected)


ties_option = one_of("--ties", "tie rule", tie_rules, "expected", "Order of equal scores.")

cluster_options: Decorator = _joined(
    click.option(
        "--cluster",
        metavar="FILE:COLUMN",
        help="Clusters of units, from a table with a column of unit ids.",
    ),
    click.option("--cluster-by", metavar="REGEX", help="Clusters of units, from a part of each unit id."),
)
"""Units that are resampled together."""

test_option = one_of("--test", "paired test", tests, "randomisation", "Paired test of a difference.")

seed_option = click.option(
    "--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of all random numbers."
)


def stats_options(
    *, omit: Iterable[str] = (), n_resamples: int = DEFAULT_STATS.n_resamples, min_resamples: int = 1
) -> Decorator:
    """The options of ``StatsConfig``; the command gets them as one ``config``.

    ``--ties``, where the command declares it, becomes part of the config. ``omit`` names fields without an
    option, which keep their defaults.
    """
    declared: dict[str, Decorator] = {
        "test": test_option,
        "correction": one_of(
            "--correction", "correction", corrections, DEFAULT_STATS.correction, "Correction for multiple comparisons."
        ),
        "confidence_level": click.option(
            "--confidence-level",
            type=float,
            default=DEFAULT_STATS.confidence_level,
            show_default=True,
            help="Confidence level of the intervals.",
        ),
        "n_resamples": click.option(
            "--n-resamples",
            type=click.IntRange(min=min_resamples),
            default=n_resamples,
            show_default=True,
            help="Bootstrap resamples per interval.",
        ),
        "n_permutations": click.option(
            "--n-permutations",
            type=click.IntRange(min=1),
            default=DEFAULT_STATS.n_permutations,
            show_default=True,
            help="Random sign patterns of the randomisation test.",
        ),
        "seed": seed_option,
    }
    chosen = {name: option for name, option in declared.items() if name not in omit}

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(command)
        def collected(*args: Any, **options: Any) -> Any:
            fields_of_config = {name: options.pop(name) for name in (*chosen, "ties") if name in options}
            return command(*args, config=StatsConfig(**fields_of_config), **options)

        return _joined(*chosen.values())(collected)

    return decorate


def _taken(kind: type[Record], options: dict[str, Any]) -> Record:
    """A record made of the options that are its fields, which are taken out of the rest."""
    return kind(**{field.name: options.pop(field.name) for field in fields(kind)})  # type: ignore[arg-type]


def options_as(kind: type[Record], name: str, *options: Decorator) -> Decorator:
    """These options as one argument: a record of the kind, whose fields they are."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(command)
        def collected(*args: Any, **given: Any) -> Any:
            return command(*args, **{name: _taken(kind, given)}, **given)

        return _joined(*options)(collected)

    return decorate


# Where the work of a command runs: the options, and what is said of it.

engines = names_in("equipoise.runs.executors", "EXECUTORS")


def engine_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """``--engine`` and ``--address``; the command gets one ``engine`` of both."""

    @wraps(command)
    def collected(*args: Any, engine: str, address: str | None, **others: Any) -> Any:
        from equipoise.runs.executors import executor as chosen

        return command(*args, engine=chosen(engine, address), **others)

    address = click.option(
        "--address", metavar="ADDRESS", help="The Ray cluster: ray://head:10001, or host:6379 inside it."
    )
    where = one_of("--engine", "engine", engines, "local", "Where the work runs.")
    return where(address(collected))


def embedding_map(engine: Executor, *, cores: int = 1) -> ExecutorMap | None:
    """How texts are embedded on the engine; None for this process, which embeds them where they are."""
    from equipoise.runs.runner import executor_map

    return executor_map(engine, n_cores=cores) if engine.is_remote else None


@contextmanager
def executor_context(engine: Executor, out: Output, unit: str = "a piece of the work") -> Iterator[Executor]:
    """The engine at work; says where that is, and what is lost on the way. ``unit`` is what a cell is."""
    engine.item_label, engine.on_message = unit, out.note
    with engine:
        if engine.is_remote:
            out.note(f"running on {engine.description}")
        try:
            yield engine
        finally:
            _tell_of_cache(out)


def _tell_of_cache(out: Output) -> None:
    """Warn where vectors could not be kept, such as on a full disk: the next run makes them again."""
    from equipoise.models.cache import VectorCache

    kept = VectorCache.default()
    for trouble in kept.troubles if kept is not None else ():
        out.note(f"warning: {trouble.subject}: {trouble.message}; {trouble.hint}")


# Options that take several values after their name: ``--models minilm bm25: hash``.

_OPEN = "equipoise.cli.options"
"""Where a context keeps the option that the last word belongs to, for the completion of the next one."""


class MultiValueOption(click.Option):
    """An option with one value or more; ``commas`` says whether a value may be a list of them."""

    def __init__(self, *args: Any, commas: bool = False, **options: Any) -> None:
        super().__init__(*args, **{**options, "multiple": True})
        self.commas = commas

    def add_to_parser(self, parser: Any, ctx: click.Context) -> None:
        """Let the parser go on taking words for this option."""
        super().add_to_parser(parser, ctx)
        # click has no public way to a parser's options; these tables are there in all versions since 2.0.
        for option in {*parser._long_opt.values(), *parser._short_opt.values()}:
            if option.obj is self:
                option.process = self._taking(option.process, ctx)

    def type_cast_value(self, ctx: click.Context, value: Any) -> Any:
        """The values, lists with commas taken apart."""
        if self.commas and value and not isinstance(value, str):
            value = [part for word in value for part in _parts(word)]
        return super().type_cast_value(ctx, value)

    def _taking(self, process: Callable[[Any, Any], None], ctx: click.Context) -> Callable[[Any, Any], None]:
        def take(value: Any, state: Any) -> None:
            process(value, state)
            while state.rargs and not _is_option(state.rargs[0]):
                process(state.rargs.pop(0), state)
            ctx.meta[_OPEN] = None if state.rargs else self

        return take


class SeveralCommand(click.Command):
    """A command that completes the second and further values of an option as it does the first."""

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Options, or what the option before the cursor takes."""
        option = ctx.meta.get(_OPEN)
        if isinstance(option, MultiValueOption) and not _is_option(incomplete):
            return option.shell_complete(ctx, incomplete)
        return super().shell_complete(ctx, incomplete)


def _is_option(word: Any) -> bool:
    """Whether a word is the name of an option, or the end of all; a dash alone is standard input."""
    return isinstance(word, str) and len(word) > 1 and word.startswith("-")


def _parts(word: Any) -> list[Any]:
    """A list with commas taken apart.

    >>> _parts("256,512,"), _parts(256)
    (['256', '512'], [256])
    """
    return [part for part in word.split(",") if part] if isinstance(word, str) else [word]


# Metrics that share a name: which of them a spelling fits.

USUAL_CUTOFF = "@10"


def matching_metrics(spelling: str, catalogue: MetricCatalogue) -> list[Metric[Any]]:
    """Every metric that the spelling fits, as P@5 fits the precision of rankings and not that of classes.

    None where nothing has that name; an error where something has, and fits none of its namesakes. One
    that needs a cutoff and has none is taken with a usual one.
    """
    found: list[Metric[Any]] = []
    refusals: list[EquipoiseError] = []
    for declared in catalogue.named(symbol_of(spelling)):
        try:
            found.append(_read(spelling, declared))
        except EquipoiseError as refusal:
            refusals.append(refusal)
    if refusals and not found:
        raise refusals[0]
    return found


def _read(spelling: str, declared: Any) -> Metric[Any]:
    from equipoise.metrics.catalogue import MetricCatalogue
    from equipoise.metrics.parser import parse_metrics

    only = MetricCatalogue((declared,))
    try:
        return parse_metrics(spelling, catalogue=only)[0]
    except ParameterError:
        if "@" in spelling:
            raise
        return parse_metrics(spelling + USUAL_CUTOFF, catalogue=only)[0]
