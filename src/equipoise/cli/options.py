"""Options that several commands share, each declared once."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, replace
from functools import partial, wraps
from importlib import import_module
from math import ceil
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.shell_completion import CompletionItem

from equipoise.cli.output import TABLE_FORMATS, Output, pointers
from equipoise.config import CORRECTION_NAMES, DEFAULT_STATS, TEST_ALIASES, StatsConfig, Ties
from equipoise.errors import ParameterError, UnknownNameError

if TYPE_CHECKING:
    from equipoise.models.registry import ModelSpec
    from equipoise.models.worker_pool import ExecutorMap
    from equipoise.runs.executors import Executor
    from equipoise.stats.result import Result

Command = TypeVar("Command", bound=Callable[..., Any])
Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]
Record = TypeVar("Record")

if TYPE_CHECKING:  # generic since click 8.4, and we run with older ones
    NamedType = click.ParamType[str]
else:
    NamedType = click.ParamType


class ChoiceWithHint(NamedType):
    """A name out of a few; a mistyped one gets a did-you-mean. The names may be loaded late.

    ``pointers`` are other names that users try, each with its hint, in addition to those of ``pointers.toml``;
    ``aliases`` are other names that are accepted.
    """

    def __init__(
        self,
        kind: str,
        names: Callable[[], Iterable[str]],
        pointers: Mapping[str, str] | None = None,
        aliases: Mapping[str, Iterable[str]] | None = None,
    ) -> None:
        self.name = kind
        self.names = names
        self.pointers = pointers or {}
        self.aliases = {alias: name for name, others in (aliases or {}).items() for alias in others}

    def get_metavar(self, *args: Any, **options: Any) -> str:
        """``[holm|bh|none]`` in the help."""
        return f"[{'|'.join(self.names())}]"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The name as it is written in the table."""
        known = {name.casefold(): name for name in self.names()} | self.aliases
        word = str(value).casefold()
        hint = self.pointers.get(word) or ("" if word in known else pointers("values").get(self.name, {}).get(word))
        if hint:
            raise UnknownNameError(f"no {self.name} is called {value!r}", hint=hint)
        if word not in known:
            raise UnknownNameError.of(
                self.name, str(value), known.values(), more=f"choose one of {', '.join(self.names())}"
            )
        return known[word]

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """The names that begin with ``incomplete``."""
        return [CompletionItem(name) for name in self.names() if name.startswith(incomplete)]


class NameType(NamedType, ABC):
    """A name that is parsed later by the command. Known names are completed."""

    @abstractmethod
    def known(self) -> Iterable[tuple[str, str]]:
        """Names to offer as completions, each with its title."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The name as it was typed."""
        return str(value)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """The known names that begin with ``incomplete``."""
        return [
            CompletionItem(name, help=title)
            for name, title in self.known()
            if name.casefold().startswith(incomplete.casefold())
        ]


class ModelType(NameType):
    """A model spec, such as ``minilm`` or ``bm25``. It is resolved later, when the model is loaded."""

    name = "model"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The spec as it was typed; ``bm25:`` has no name after the colon and is called ``bm25``."""
        from equipoise.models.registry import ALIASES

        spec = str(value)
        names = [name.strip() for name in spec.split(",")]
        if len(names) > 1 and all(name in ALIASES for name in names):
            raise UnknownNameError(
                f"no {self.name} is called {spec!r}", hint=f"separate models with blanks: {' '.join(names)}"
            )
        return spec[:-1] if spec.endswith(":") and spec[:-1] in ALIASES else spec

    def known(self) -> Iterable[tuple[str, str]]:
        """The models that ``eq ls models`` lists, with their titles."""
        from equipoise.models.inventory import list_models

        return ((model.spec, model.title) for model in list_models())


class MetricType(NameType):
    """A metric, such as ``nDCG@10``."""

    name = "metric"

    def known(self) -> Iterable[tuple[str, str]]:
        """The metrics of the catalogue; those that need a cutoff with one."""
        from equipoise.metrics.parser import builtin

        return ((name, metric.title) for metric in builtin() for name in suggestions(metric))


def suggestions(metric: Any) -> list[str]:
    """The names of a metric to offer as completions."""
    with_cutoff = [f"{metric.symbol}@{k}" for k in (1, 5, 10, 100)] if hasattr(metric, "k") else []
    return with_cutoff if metric.needs_cutoff else [metric.symbol, *with_cutoff]


def names_in(module: str, table: str) -> Callable[[], list[str]]:
    """The names of a table. Its module is imported when they are needed, so that help is fast.

    >>> names_in("equipoise.stats.multiple_comparisons", "CORRECTIONS")()
    ['holm', 'bh', 'none']
    """
    return lambda: list(getattr(import_module(module), table))


tie_rules = partial(list[str], Ties)
tests = partial(list[str], TEST_ALIASES)
corrections = partial(list[str], CORRECTION_NAMES)
severities = names_in("equipoise.types", "Severity")
"""The severities of findings, highest first."""


def kinds() -> list[str]:
    """The kinds of evidence that metrics measure."""
    from equipoise.metrics.parser import BUILT_IN

    return list(BUILT_IN)


def _set_output_flag(name: str) -> Callable[[click.Context, click.Parameter, bool], None]:
    """Set a property of the shared ``Output``, before or after the name of the command."""

    def turn(ctx: click.Context, parameter: click.Parameter, on: bool) -> None:
        if on:
            setattr(ctx.ensure_object(Output), name, True)

    return turn


def joined(*options: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """Several options as one decorator, in the order of the help page."""

    def decorate(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def output_options(command: Command, *, json_help: str = "Print the results as JSON.") -> Command:
    """``--json``, ``-q`` and ``-v``."""
    shared: dict[str, Any] = {"is_flag": True, "expose_value": False, "is_eager": True}
    return joined(
        click.option("--json", callback=_set_output_flag("json"), help=json_help, **shared),
        click.option("-q", "--quiet", callback=_set_output_flag("quiet"), help="Print only the result.", **shared),
        click.option("-v", "--verbose", callback=_set_output_flag("verbose"), help="Print more detail.", **shared),
    )(command)


def table_options(*, file: bool = True) -> Decorator:
    """``--to``, and with ``file`` also ``-o FILE``, for commands that print tables."""
    to = click.option(
        "--to",
        type=ChoiceWithHint("format", lambda: TABLE_FORMATS),
        help="Format of the tables.",
    )
    path = click.option(
        "-o", "--output", "table_file", metavar="FILE", help="Write the tables to this file: .md, .tex, .csv or .json."
    )

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(command)
        def collected(*args: Any, to: str | None, table_file: str | None = None, **options: Any) -> Any:
            click.get_current_context().ensure_object(Output).set_format(to, table_file)
            return command(*args, **options)

        return joined(to, *([path] if file else []))(collected)

    return decorate


def one_of(option: str, kind: str, names: Callable[[], list[str]], default: str, text: str) -> Decorator:
    """An option that takes one name out of a few."""
    return click.option(option, type=ChoiceWithHint(kind, names), default=default, show_default=True, help=text)


def metric_option_for(examples: str) -> Decorator:
    """``-m``, with examples of metrics that fit the evidence of the command."""
    return click.option(
        "-m",
        "--metric",
        "metrics",
        type=MetricType(),
        multiple=True,
        help=f"A metric, such as {examples}; may be repeated.",
    )


metric_option = metric_option_for("nDCG@10 or HR@{1,3,5}")
"""``-m`` of commands that take rankings, or any evidence."""

plugin_option = click.option(
    "--plugin",
    "plugins",
    metavar="FILE",
    multiple=True,
    type=click.Path(),
    help="A Python file with your own metrics.",
)

primary_option = click.option("--primary", type=MetricType(), help="The metric that decides the order of the systems.")

fail_option = click.option(
    "--fail-on",
    type=ChoiceWithHint("severity", severities),
    help="Exit with status 1 on findings of this severity or higher.",
)


def _set_trackers(context: click.Context, _: click.Parameter, trackers: tuple[str, ...]) -> None:
    """Store the trackers for ``Output.log``; a missing package is an error before anything is computed."""
    if trackers:
        from equipoise.runs.trackers import check_installed

        for tracker in trackers:
            check_installed(tracker)
        context.ensure_object(Output).trackers = trackers


log_option = click.option(
    "--log",
    type=ChoiceWithHint("tracker", names_in("equipoise.runs.trackers", "TRACKERS")),
    multiple=True,
    expose_value=False,
    callback=_set_trackers,
    help="Log the scores to this experiment tracker; may be repeated.",
)

_DEVICES = "Compute on this device: cuda, cuda:1, mps or cpu."
device_option = click.option("--device", metavar="NAME", help=f"{_DEVICES} Default: cpu.")
model_device_option = click.option("--device", metavar="NAME", help=f"{_DEVICES} Default: a GPU if there is one.")

threads_option = click.option(
    "--threads", type=click.IntRange(min=1), default=1, show_default=True, help="Threads per model."
)


def reading_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """How evidence is read: ground truth, corpus size, padding, tags; the command gets one ``reading``."""

    @wraps(command)
    def collected(*args: Any, **options: Any) -> Any:
        from equipoise.cli.inputs import EvidenceOptions

        return command(*args, reading=_pop_record(EvidenceOptions, options), **options)

    return joined(
        click.option("--qrels", type=click.Path(), help="Relevance judgements for run files: TREC, TSV, JSON, ..."),
        click.option(
            "--targets",
            type=click.Path(),
            help='The target class (a column) of each row of logits. Default: the array "targets" in the same file.',
        ),
        click.option(
            "--padding",
            type=int,
            multiple=True,
            help="Index (from 0) of a column of logits to ignore; may be repeated.",
        ),
        click.option(
            "--corpus-size",
            type=int,
            help="Number of documents that could be retrieved; makes chance levels exact.",
        ),
        click.option("--run-tag", metavar="NAME", help="Name of the run, for TREC lines that lack their last field."),
        click.option(
            "--device", metavar="NAME", help="Rank logits on this device: cuda, cuda:1, mps or cpu (default)."
        ),
    )(collected)


ties_option = one_of("--ties", "tie rule", tie_rules, "expected", "How tied scores are ranked.")

cluster_options: Decorator = joined(
    click.option(
        "--cluster",
        metavar="FILE:COLUMN",
        help="Cluster of each query, such as its user, from a column of a table. Whole clusters are resampled.",
    ),
    click.option(
        "--cluster-by",
        metavar="REGEX",
        help="Cluster of each query: the part of its id that matches this expression.",
    ),
)
"""Queries that are resampled together."""

seed_option = click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Random seed.")


def stats_options(
    *,
    omit: Iterable[str] = (),
    n_resamples: int = DEFAULT_STATS.n_resamples,
    of_runs: bool = False,
    omit_tests: Mapping[str, str] | None = None,
    tested: str = "",
) -> Decorator:
    """The options of ``StatsConfig``; the command gets them as one ``config``.

    ``--ties``, where the command declares it, becomes part of the config. ``omit`` names fields without an
    option, which keep their defaults. ``of_runs``: the command reads stored runs, and ``stats_of_runs`` gives the
    defaults of the options that runs record. ``omit_tests`` maps tests that the command cannot use to hints, and
    ``tested`` says what is tested, if it is not every difference.
    """
    omitted = omit_tests or {}
    note = f" {tested}" if tested else ""

    def shown(default: object) -> str | bool:
        return f"{default}, or that of the stored runs" if of_runs else True

    declared: dict[str, Decorator] = {
        "test": click.option(
            "--test",
            type=ChoiceWithHint(
                "paired test",
                lambda: [name for name in tests() if name not in omitted],
                pointers=omitted,
                aliases={name: aliases for name, aliases in TEST_ALIASES.items() if name not in omitted},
            ),
            default=DEFAULT_STATS.test,
            show_default=shown(DEFAULT_STATS.test),
            help=f"Paired test of a difference.{note}",
        ),
        "correction": click.option(
            "--correction",
            type=ChoiceWithHint("correction", corrections),
            default=DEFAULT_STATS.correction,
            show_default=shown(DEFAULT_STATS.correction),
            help=f"Correction for multiple comparisons.{note}",
        ),
        "confidence_level": click.option(
            "--confidence-level",
            type=float,
            default=DEFAULT_STATS.confidence_level,
            show_default=shown(DEFAULT_STATS.confidence_level),
            help="Confidence level of the intervals.",
        ),
        "n_resamples": click.option(
            "--n-resamples",
            type=click.IntRange(min=1),
            default=n_resamples,
            show_default=shown(n_resamples),
            help="Number of bootstrap resamples.",
        ),
        "n_permutations": click.option(
            "--n-permutations",
            type=click.IntRange(min=1),
            default=DEFAULT_STATS.n_permutations,
            show_default=shown(DEFAULT_STATS.n_permutations),
            help="Number of random sign assignments in the randomisation test.",
        ),
        "seed": click.option(
            "--seed", type=click.IntRange(min=0), default=0, show_default=shown(0), help="Random seed."
        ),
    }
    chosen = {name: option for name, option in declared.items() if name not in omit}

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(command)
        def collected(*args: Any, **options: Any) -> Any:
            fields_of_config = {name: options.pop(name) for name in (*chosen, "ties") if name in options}
            config = StatsConfig(**fields_of_config)
            needed = ceil(round(2 / config.alpha, 6))  # one resample in each tail
            if "n_resamples" in chosen and config.n_resamples < needed:
                raise ParameterError(
                    f"--n-resamples {config.n_resamples} is too few for intervals at --confidence-level "
                    f"{config.confidence_level:g}",
                    hint=f"use at least {needed:,}; the default is {n_resamples:,}",
                )
            return command(*args, config=config, **options)

        return joined(*chosen.values())(collected)

    return decorate


def stats_of_runs(config: StatsConfig, results: Iterable[Result]) -> StatsConfig:
    """The config of the current command; options that were not given are those of the stored results, if they agree."""
    from equipoise.runs.evaluate import RECORDED, recorded_stats

    context = click.get_current_context()
    given = {
        name: getattr(config, name)
        for name in RECORDED
        if context.get_parameter_source(name) not in (None, click.core.ParameterSource.DEFAULT)
    }
    return replace(recorded_stats(results, config), **given)


def _pop_record(kind: type[Record], options: dict[str, Any]) -> Record:
    """A record of the options that are its fields. They are removed from ``options``."""
    return kind(**{field.name: options.pop(field.name) for field in fields(kind)})  # type: ignore[arg-type]


def options_as(kind: type[Record], name: str, *options: Decorator, section: str = "Options") -> Decorator:
    """These options as one argument ``name``: a record of the kind, whose fields they are.

    In the help they are listed in the section.
    """

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(command)
        def collected(*args: Any, **values: Any) -> Any:
            return command(*args, **{name: _pop_record(kind, values)}, **values)

        n_earlier = len(getattr(collected, "__click_params__", ()))
        joined(*options)(collected)
        for parameter in collected.__click_params__[n_earlier:]:  # type: ignore[attr-defined]
            parameter.section = section
        return collected

    return decorate


# Where the work of a command runs.

engines = names_in("equipoise.runs.executors", "EXECUTORS")


def engine_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """``--engine`` and ``--address``; the command gets one ``engine`` of both."""

    @wraps(command)
    def collected(*args: Any, engine: str, address: str | None, **others: Any) -> Any:
        from equipoise.runs.executors import executor as chosen

        return command(*args, engine=chosen(engine, address), **others)

    return joined(
        one_of("--engine", "engine", engines, "local", "Where the work runs."),
        click.option(
            "--address", metavar="ADDRESS", help="Ray cluster: ray://head:10001, or host:6379 from inside it."
        ),
    )(collected)


def embedding_map(engine: Executor, *, cores: int = 1) -> ExecutorMap | None:
    """How texts are embedded on the engine; None for this process."""
    from equipoise.runs.runner import executor_map

    return executor_map(engine, n_cores=cores) if engine.is_remote else None


@contextmanager
def executor_context(engine: Executor, out: Output, unit: str = "a job") -> Iterator[Executor]:
    """The started engine. Notes say where it runs, and what is lost. ``unit`` describes one job."""
    engine.item_label, engine.on_message = unit, out.note
    with engine:
        if engine.is_remote:
            out.note(f"running on {engine.description}")
        try:
            yield engine
        finally:
            _report_cache_problems(out)


def _report_cache_problems(out: Output) -> None:
    """Warn if vectors could not be cached, such as on a full disk: the next run embeds them again."""
    from equipoise.models.vector_cache import VectorCache

    cache = VectorCache.default()
    for finding in cache.problems if cache is not None else ():
        out.note(f"warning: {finding.subject}: {finding.message}; {finding.hint}")


def runs_on_devices(spec: ModelSpec) -> bool:
    """Whether a model can run on a GPU: those of sentence-transformers, and MiniLM."""
    return spec.kind == "st" or spec.name == "minilm"


def models_on_device(models: Sequence[str], device: str | None, out: Output) -> dict[str, str]:
    """The specs by the names that were typed; with a device, the specs of models that support it name it.

    An unavailable device is an error, and so is a GPU that no model would use.
    """
    if device is None:
        return {model: model for model in models}
    from equipoise.geometry.gpu_search import torch_device
    from equipoise.models.registry import is_fusion, parse_spec

    specs = dict(zip(models, models, strict=True))
    for model in models:
        if not is_fusion(model) and runs_on_devices(spec := parse_spec(model)):
            specs[model] = str(spec.with_options(device=device))
    on_cpu = [model for model, spec in specs.items() if model == spec]
    if torch_device(device).type != "cpu":
        if len(on_cpu) == len(models):
            raise ParameterError(
                f"no model runs on {device}",
                hint="--device applies to minilm and to models of the kind st:, such as st:NAME",
            )
        if on_cpu:
            out.note(f"on the CPU, because only minilm and models of the kind st: run on a device: {', '.join(on_cpu)}")
    return specs


# Options with aliases, and options that take several values after their name: ``--models minilm bm25 hash``.

_OPEN = "equipoise.cli.options"
"""Key of a context for the option that the last word belongs to, for the completion of the next one."""


class AliasOption(click.Option):
    """An option with further names that work but are not listed in the help."""

    def __init__(self, *args: Any, aliases: Sequence[str] = (), **options: Any) -> None:
        super().__init__(*args, **options)
        self.aliases = aliases

    def add_to_parser(self, parser: Any, ctx: click.Context) -> None:
        """Let the parser accept the aliases too."""
        listed, self.opts = self.opts, [*self.opts, *self.aliases]
        try:
            super().add_to_parser(parser, ctx)
        finally:
            self.opts = listed


class MultiValueOption(AliasOption):
    """An option with one value or more; with ``commas`` a value may be a list with commas."""

    def __init__(self, *args: Any, commas: bool = False, **options: Any) -> None:
        super().__init__(*args, **{**options, "multiple": True})
        self.commas = commas

    def add_to_parser(self, parser: Any, ctx: click.Context) -> None:
        """Let the parser assign the following words to this option."""
        super().add_to_parser(parser, ctx)
        # click has no public way to a parser's options; these tables are there in all versions since 2.0.
        for option in {*parser._long_opt.values(), *parser._short_opt.values()}:
            if option.obj is self:
                option.process = self._multi_value_process(option.process, ctx)

    def type_cast_value(self, ctx: click.Context, value: Any) -> Any:
        """The values; lists with commas are split."""
        if self.commas and value and not isinstance(value, str):
            value = [part for word in value for part in _split_commas(word)]
        return super().type_cast_value(ctx, value)

    def _multi_value_process(
        self, process: Callable[[Any, Any], None], ctx: click.Context
    ) -> Callable[[Any, Any], None]:
        def take(value: Any, state: Any) -> None:
            process(value, state)
            while state.rargs and not _is_option(state.rargs[0]):
                process(state.rargs.pop(0), state)
            ctx.meta[_OPEN] = None if state.rargs else self

        return take


_HYPHEN = "\ue000"
"""Replaces hyphens while click wraps a text; click has no setting for them."""


class _HelpFormatter(click.HelpFormatter):
    """A formatter that breaks no line at a hyphen: the parts of ``--no-dictionary`` stay together."""

    def write_text(self, text: str) -> None:
        """Write paragraphs."""
        super().write_text(text.replace("-", _HYPHEN))

    def write_dl(self, rows: Iterable[tuple[str, str]], *args: Any, **options: Any) -> None:
        """Write names with their texts."""
        super().write_dl([(name, text.replace("-", _HYPHEN)) for name, text in rows], *args, **options)

    def getvalue(self) -> str:
        """What was written."""
        return super().getvalue().replace(_HYPHEN, "-")


class HelpContext(click.Context):
    """The context of every command."""

    formatter_class = _HelpFormatter


HELP_SECTIONS = {
    "Statistics": (
        "test", "correction", "confidence_level", "n_resamples", "n_permutations", "seed",
        "ties", "cluster", "cluster_by",
    ),
    "Computation": ("device", "threads", "engine", "address"),
    "Output": ("output", "table_file", "to", "fail_on", "log", "json", "quiet", "verbose", "help"),
}  # fmt: skip
"""The sections of a help page that follow the options of the command itself, and the parameters in them."""


class SectionedCommand(click.Command):
    """A command whose help lists shared options in separate sections.

    It completes the second and further values of an option like the first.
    """

    context_class = HelpContext

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The options by section, all sections with the same column width."""
        section_of = {name: title for title, names in HELP_SECTIONS.items() for name in names}
        sections: dict[str, list[tuple[str, str]]] = {"Options": []}
        shared: dict[str, list[tuple[str, str]]] = {title: [] for title in HELP_SECTIONS}
        for parameter, record in self._records(ctx):
            if title := section_of.get(parameter.name or ""):
                shared[title].append(record)
            else:
                sections.setdefault(getattr(parameter, "section", "Options"), []).append(record)
        sections |= shared
        width = min(MAX_OPTION_WIDTH, max(len(name) for records in sections.values() for name, _ in records))
        for title, records in sections.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl([(name.ljust(width), text) for name, text in records])

    def _records(self, ctx: click.Context) -> Iterator[tuple[click.Option, tuple[str, str]]]:
        """The visible options with name and text, without click's word RANGE and with one pair of brackets."""
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if isinstance(parameter, click.Option) and record is not None:
                text = re.sub(r"\[default: \((.*?)\)(?=[;\]])", r"[default: \1", record[1])
                text = re.sub(r"\]\s+\[", "; ", text)
                for pattern, words in RANGES:
                    text = re.sub(pattern, words, text)
                yield parameter, (record[0].replace(" RANGE", ""), text)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Options, or the values of the option before the cursor."""
        option = ctx.meta.get(_OPEN)
        if isinstance(option, MultiValueOption) and not _is_option(incomplete):
            return option.shell_complete(ctx, incomplete)
        return super().shell_complete(ctx, incomplete)


RANGES = (
    (r"\s*\[x>=[01]\]", ""),  # numbers from 0 or 1 on go without saying
    (r"; x>=[01]\]", "]"),
    (r"(?<=[\[ ])(\d+)<=x<=(\d+)(?=\])", r"\1 to \2"),
    (r"(?<=[\[ ])x>=(\d+)(?=\])", r"at least \1"),
    (r"(?<=[\[ ])x>(\d+)(?=\])", r"above \1"),
)
"""How click writes the range of a number, and what the help says instead."""

MAX_OPTION_WIDTH = 30
"""Columns of the names of options in the help; a longer name has its own line."""

command = partial(click.command, cls=SectionedCommand)
"""Decorator of every command."""


def _is_option(word: Any) -> bool:
    """Whether a word is the name of an option, or ``--``; a dash alone is standard input."""
    return isinstance(word, str) and len(word) > 1 and word.startswith("-")


def _split_commas(word: Any) -> list[Any]:
    """The parts of a list with commas.

    >>> _split_commas("256,512,"), _split_commas(256)
    (['256', '512'], [256])
    """
    return [part for part in word.split(",") if part] if isinstance(word, str) else [word]


def models_option(
    *, required: bool = False, aliases: Sequence[str] = (), text: str = "", default: str | None = None
) -> Decorator:
    """``--models A B``. The help shows the ``default``; the command applies it."""
    return click.option(
        "--models",
        cls=MultiValueOption,
        aliases=aliases,
        required=required,
        type=ModelType(),
        metavar="MODEL ...",
        show_default=default,
        help=text or "The models, such as minilm bm25; see eq ls models.",
    )


def model_option(
    *, required: bool = False, aliases: Sequence[str] = (), text: str = "", default: str | None = None
) -> Decorator:
    """``--model A``, for commands that take exactly one. The help shows the ``default``; the command applies it."""
    return click.option(
        "--model",
        cls=AliasOption,
        aliases=aliases,
        required=required,
        type=ModelType(),
        metavar="MODEL",
        show_default=default,
        help=text or "The model, such as minilm or st:NAME; see eq ls models.",
    )
