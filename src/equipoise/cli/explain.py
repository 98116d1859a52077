"""``eq explain``: what a metric, a check, an error, a test, a correction or an option of a command is."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, replace
from functools import cache
from importlib.resources import files
from inspect import cleandoc
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin, get_type_hints

import click

from equipoise.cli import options
from equipoise.cli.output import Output, pass_output
from equipoise.errors import EquipoiseError, UnknownNameError, did_you_mean
from equipoise.metrics.base import BaseMetric, CorpusMetric, Metric
from equipoise.metrics.parser import catalogue_with, matching_metrics, symbol_of
from equipoise.report.terminal import Paragraph, Part, heading
from equipoise.stats.formatting import format_bounds, format_value
from equipoise.types import Direction

if TYPE_CHECKING:
    from equipoise.evidence.base import Evidence
    from equipoise.metrics.parser import MetricCatalogue

# Pages of facts: a title, a definition, and a list of what is known.


@dataclass(frozen=True)
class InfoPage:
    """What ``eq explain`` shows, for people and as data."""

    title: str
    text: str = ""
    facts: Mapping[str, str] = field(default_factory=dict)
    blocks: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def parts(self) -> list[Part]:
        """The page as paragraphs."""
        parts: list[Part] = [heading(self.title)]
        for paragraph in filter(None, self.text.split("\n\n")):
            parts += [Paragraph(""), Paragraph(" ".join(paragraph.split()))]
        known = {name: fact for name, fact in self.facts.items() if fact}
        if known:
            width = max(map(len, known)) + 2
            parts.append(Paragraph(""))
            parts += [Paragraph(fact, lead=f"{name:<{width}}", mark="bold") for name, fact in known.items()]
        for title, lines in self.blocks.items():
            if lines:
                code = (Paragraph(line, indent=2, overflow="ignore") for line in lines)
                parts += [Paragraph(""), heading(title), *code]
        return parts

    def to_dict(self) -> dict[str, Any]:
        """The page as data."""
        return {
            "title": self.title,
            "text": self.text,
            "facts": dict(self.facts),
            **{name.lower(): list(lines) for name, lines in self.blocks.items()},
        }


# Formulas in LaTeX as a terminal can show them.

_WORDS = {
    r"\left": "",
    r"\right": "",
    r"\cdot": "*",
    r"\,": " ",
    r"\|": "|",
    r"\le": "<=",
    r"\ge": ">=",
    r"\in": "in",
}
_GROUP = r"\{([^{}]*)\}"
_CHOOSE = re.compile(rf"\\binom\s*{_GROUP}\s*{_GROUP}")
_FRACTION = re.compile(rf"\\frac\s*{_GROUP}\s*{_GROUP}")
_WRAPPED = re.compile(rf"\\(?P<name>mathrm|text|sqrt)\s*{_GROUP}")
_ACCENTED = re.compile(r"\\(hat|bar)\s+(\w)")
_SCRIPT = re.compile(rf"([_^]){_GROUP}")
_COMMAND = re.compile(r"\\(?:[A-Za-z]+|[^A-Za-z])")


def plain_formula(formula: str) -> str:
    """The formula in plain text; one that is plain already stays as it is."""
    if "\\" not in formula:
        return formula
    text = _ACCENTED.sub(r"\1(\2)", formula)
    before = None
    while text != before:  # the innermost groups first, until none is left
        before = text
        text = _SCRIPT.sub(lambda match: match[1] + _bracketed(match[2]), text)
        text = _WRAPPED.sub(lambda match: f"sqrt({match[2]})" if match["name"] == "sqrt" else match[2], text)
        text = _CHOOSE.sub(r"choose(\1, \2)", text)
        text = _FRACTION.sub(lambda match: f"({_bracketed(match[1])} / {_bracketed(match[2])})", text)
    text = _COMMAND.sub(lambda match: _WORDS.get(match[0], match[0][1:]), text)
    return _without_brackets(" ".join(text.split()))


def _without_brackets(text: str) -> str:
    """The text without brackets around all of it.

    >>> _without_brackets("((a) / (b))"), _without_brackets("(a) / (b)")
    ('(a) / (b)', '(a) / (b)')
    """
    depth = 0
    for at, letter in enumerate(text):
        depth += {"(": 1, ")": -1}.get(letter, 0)
        if depth == 0 and at < len(text) - 1:
            return text
    return _without_brackets(text[1:-1]) if text.startswith("(") else text


def _bracketed(part: str) -> str:
    """The part, in brackets unless it is a single thing."""
    return f"({part})" if re.search(r"[\s+*/-]", part.strip()) else part


PLACES = 4


@dataclass(frozen=True)
class MetricExample:
    """Evidence, and what it says in one line."""

    text: str
    evidence: Evidence


def example_evidence(kind: str) -> list[MetricExample]:
    """Evidence of this kind, small enough to check by hand."""
    from equipoise.evidence.labels import Labels
    from equipoise.evidence.pairs import Pairs
    from equipoise.evidence.ranking import Ranking
    from equipoise.evidence.sets import Sets
    from equipoise.evidence.space import Space

    scores = {"a": 0.9, "b": 0.8, "c": 0.7, "d": 0.6, "e": 0.5}
    tied, truth = scores | {"c": 0.6}, {"q": {"a": 1, "d": 1, "e": 1}}
    points = [[0.1, 0.0], [0.2, 0.1], [0.0, 0.5], [0.1, 0.9]]
    examples: dict[str, dict[str, Evidence]] = {
        "ranking": {
            "ranked a* b c d* e* (* is relevant)": Ranking.from_runs(truth, {"q": scores}),
            "the same, with c and d* tied": Ranking.from_runs(truth, {"q": tied}),
            "one relevant item, at rank 3 of 100": Ranking.from_ranks([3], candidates=100),
        },
        "labels": {"true a a b b, predicted a a a b": Labels.of(list("aabb"), list("aaab"))},
        "sets": {"gold {a, b}, predicted {b, c, d}": Sets.of({"doc": ["a", "b"]}, {"doc": ["b", "c", "d"]})},
        "pairs": {
            "predicted .9 .4 .6 .1, expected 1.0 .5 .3 .2": Pairs.of([0.9, 0.4, 0.6, 0.1], [1.0, 0.5, 0.3, 0.2]),
        },
        "space": {
            "points (.1, 0) (.2, .1) of class a and (0, .5) (.1, .9) of class b": Space.of(
                points, labels=["a", "a", "b", "b"], depth=[0, 1, 1, 2]
            )
        },
    }
    return [MetricExample(text, evidence) for text, evidence in examples.get(kind, {}).items()]


def worked_values(metric: Metric[Any]) -> list[str]:
    """Lines such as ``relevant at ranks 1, 4, 5 of 5: 0.7``; none where an example lacks what it needs."""
    lines = []
    for example in example_evidence(metric.evidence.kind):
        try:
            value = metric.measure(example.evidence).value
        except EquipoiseError:
            continue
        lines.append(f"{example.text}: {metric.name} = {format_value(value, PLACES, reason='undefined')}")
    return lines


HELP = """
\b
  eq explain nDCG@10
  eq explain EQ301
  eq explain --token-budget

Explain a metric, with its formula and a worked example; the code of a finding (EQ301) or of
an error (E204); a paired test, a correction or an interval method; a term of the output (tied, gap, chance);
or an option of any command. Without NAME, list what can be explained.
"""

OVERVIEW = InfoPage(
    "eq explain NAME",
    facts={
        "metric": "eq explain nDCG@10; eq ls metrics lists all",
        "finding": "eq explain EQ301; eq ls checks lists all",
        "error": "eq explain E204; every error message starts with its code",
        "paired test": "eq explain randomisation; eq ls tests lists all",
        "correction": "eq explain holm; eq ls tests lists all",
        "interval": "eq explain bca; -v names the method below a table",
        "concept score": "eq explain ground_truth_score",
        "term": "eq explain tied; the glossary in the documentation lists all",
        "option": "eq explain --token-budget; --help of a command lists its options",
    },
)
"""The kinds of names, each with an example."""

_CHECK = re.compile(r"EQ\d+", re.IGNORECASE)
_ERROR = re.compile(r"E\d+", re.IGNORECASE)


class ExplainableType(options.MetricType):
    """The name of a metric, code or test, with completion."""

    name = "name"

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[click.shell_completion.CompletionItem]:
        """Names of all kinds that begin with ``incomplete``."""
        from click.shell_completion import CompletionItem

        others = [*_check_codes(), *_error_kinds(), *_test_names()]
        return super().shell_complete(ctx, param, incomplete) + [
            CompletionItem(name) for name in others if name.casefold().startswith(incomplete.casefold())
        ]


class ExplainCommand(options.SectionedCommand):
    """A command that takes the name of an option of its own as the name to explain."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """``eq explain --plugin`` has no file, so ``--plugin`` is the name."""
        return super().parse_args(ctx, ["--", *args] if args == ["--plugin"] else args)


@click.command(
    cls=ExplainCommand,
    help=HELP,
    short_help="Explain a metric, a test, a code or an option.",
    # An unknown option is the name of the option to explain.
    context_settings={"ignore_unknown_options": True},
)
@click.argument("names", metavar="[NAME]...", type=ExplainableType(), nargs=-1)
@options.plugin_option
@options.output_options
@pass_output
def explain(out: Output, names: tuple[str, ...], plugins: tuple[str, ...]) -> None:
    """See ``HELP``."""
    if not names:  # the name is an option of this command as well
        flags = [
            flag
            for flag, is_set in (("--json", out.json), ("--quiet", out.quiet), ("--verbose", out.verbose))
            if is_set
        ]
        if len(flags) == 1:
            names, out = (flags[0],), replace(out, json=False, quiet=False, verbose=False)
    pages = explain_all(names, catalogue_with(plugins)) if names else [OVERVIEW]
    if out.json:
        out.data({"pages": [page.to_dict() for page in pages]})
        return
    for number, page in enumerate(pages):
        out.show(*([Paragraph("")] if number else []), *page.parts())


def explain_all(names: Sequence[str], catalogue: MetricCatalogue) -> list[InfoPage]:
    """The pages for several names, or for one name of several words, such as ``tie band``."""
    try:
        return find_explanations(" ".join(names).strip(), catalogue)
    except UnknownNameError:
        if len(names) == 1:
            raise
    return [page for name in names for page in find_explanations(name.strip(), catalogue)]


def find_explanations(name: str, catalogue: MetricCatalogue) -> list[InfoPage]:
    """The pages for a name. An unknown name is an error with a suggestion over all kinds."""

    if _CHECK.fullmatch(name):
        return [_check_page(name)]
    if _ERROR.fullmatch(name):
        return [_error_page(name)]
    if name.startswith("-"):
        return _option_pages(name)
    if page := _neighbour_accuracy_page(name, catalogue):
        return [page]
    pages = [
        *_test_pages(name),
        *_gate_test_pages(name),
        *_interval_pages(name),
        *_term_pages(name),
        *_concept_score_pages(name),
        *explain_metric(name, catalogue),
    ]
    if not pages:
        known = [
            *catalogue.names(),
            *_check_codes(),
            *_error_kinds(),
            *_test_names(),
            *INTERVALS,
            *glossary(),
        ]
        hint = (
            did_you_mean(symbol_of(name) or name, known) or "eq ls metrics, eq ls checks and eq ls tests list all names"
        )
        raise UnknownNameError(f"no metric, test or code is called {name!r}", hint=hint)
    return pages


# Options of commands: what every command declares, and details where its module has some.

_DETAILS_TABLE = "OPTION_DETAILS"
"""The table of a module of commands with more about its options: text by command and option."""


@dataclass(frozen=True)
class _CommandOption:
    """An option of a command, with the path of the command and the details of its module."""

    path: str
    option: click.Option
    details: str

    @property
    def key(self) -> tuple[str, ...]:
        """Equal for options that are explained together."""
        return (*self.option.opts, self.option.help or "", self.details, self.default)

    @property
    def default(self) -> str:
        """The default that the help shows; empty if it shows none."""
        option = self.option
        if option.show_default is True and option.secondary_opts:  # a flag with a name for each of its two values
            return (option.opts if option.default else option.secondary_opts)[0]
        shown = option.show_default if isinstance(option.show_default, str) else option.default
        is_shown = isinstance(option.show_default, str) or (
            option.show_default and isinstance(shown, str | int | float)
        )
        return str(shown) if is_shown else ""


def _option_pages(name: str) -> list[InfoPage]:
    """One page per meaning of an option, with the commands that have it."""
    matches = [known for known in _all_options() if name in (*known.option.opts, *known.option.secondary_opts)]
    if not matches:
        names = sorted({opt for known in _all_options() for opt in known.option.opts})
        raise UnknownNameError.of("option of a command", name, names, more="eq COMMAND --help lists its options")
    groups: dict[tuple[str, ...], list[_CommandOption]] = {}
    for known in matches:
        groups.setdefault(known.key, []).append(known)
    return [_option_page(group) for group in groups.values()]


def _option_page(group: Sequence[_CommandOption]) -> InfoPage:
    option = group[0].option
    names = [", ".join(opts) for opts in (option.opts, option.secondary_opts) if opts]
    choices = getattr(option.type, "choices", None)
    values = list(choices() if callable(choices) else choices) if choices else []
    return InfoPage(
        f"{' / '.join(names)}{'' if option.is_flag else f' {_metavar(option)}'}",
        "\n\n".join(filter(None, (option.help, group[0].details))),
        {
            "values": ", ".join(map(str, values)),
            "default": group[0].default,
            "commands": ", ".join(f"eq {known.path}" for known in group),
        },
    )


def _metavar(option: click.Option) -> str:
    """The placeholder of the value, as the help shows it."""
    return option.make_metavar(click.Context(explain)).replace(" RANGE", "")


def _all_options() -> list[_CommandOption]:
    """The options of all commands."""
    from equipoise.cli.main import cli

    def collect(command: click.Command, path: str) -> Iterator[_CommandOption]:
        if not isinstance(command, click.Group):
            yield from _options_of(command, path)
            return
        context = click.Context(command)
        for name in command.list_commands(context):
            child = command.get_command(context, name)
            if child is not None:
                yield from collect(child, f"{path} {name}".strip())

    return list(collect(cli, ""))


def _options_of(command: click.Command, path: str) -> Iterator[_CommandOption]:
    module = inspect.getmodule(inspect.unwrap(command.callback)) if command.callback else None
    details = getattr(module, _DETAILS_TABLE, {}).get(command.name, {})
    for option in command.params:
        if isinstance(option, click.Option):
            text = next((details[opt] for opt in option.opts if opt in details), "")
            yield _CommandOption(path, option, text)


def _check_codes() -> list[str]:
    from equipoise.checks.base import all_checks

    return [check.code for check in all_checks()]


def _check_page(code: str) -> InfoPage:
    from equipoise.checks.base import check_by_code as find

    check = find(code)
    return InfoPage(
        f"{check.code}  {check.title}",
        check.why,
        {"severity": str(check.severity), "hint": check.hint},
        {"Example": check.example.splitlines()},
    )


def _error_kinds() -> dict[str, type[EquipoiseError]]:
    """Every class of error by its code."""

    def with_subclasses(kind: type[EquipoiseError]) -> Iterator[type[EquipoiseError]]:
        yield kind
        for subclass in kind.__subclasses__():
            yield from with_subclasses(subclass)

    return {kind.code: kind for kind in with_subclasses(EquipoiseError) if "code" in vars(kind)}


def _error_page(code: str) -> InfoPage:
    kinds = _error_kinds()
    kind = kinds.get(code.upper())
    if kind is None:
        raise UnknownNameError.of("error", code, kinds, more=f"the errors are {', '.join(kinds)}")
    subclasses = [f"{known.code} {known.__name__}" for known in kinds.values() if known in kind.__subclasses__()]
    facts = {
        "class": f"equipoise.errors.{kind.__name__}",
        "exit code": str(kind.exit_code),
        "includes": ", ".join(subclasses),
    }
    return InfoPage(f"{kind.code}  {kind.__name__}", _definition(kind), facts)


_SUPPORTED = {"clusters": "clusters (--cluster)", "weights": "metrics with weighted units, such as MR"}
"""What a paired test may take into account, by the option of its function."""


def _test_names() -> list[str]:
    """The paired tests, that of ``eq gate``, and the corrections."""
    from equipoise.runs.inferiority_test import BOUNDS

    return [*options.tests(), BOUNDS, *options.corrections()]


def _test_pages(name: str) -> list[InfoPage]:
    """The paired test and the correction with this name, if any."""
    from equipoise.config import TEST_ALIASES
    from equipoise.stats.multiple_comparisons import CORRECTIONS
    from equipoise.stats.paired_tests import TESTS

    folded = name.casefold()
    pages = [
        InfoPage(
            f"{known}  {test.title}",
            _definition(test.function),
            {
                "use": f"eq compare ... --test {known}",
                "supports": ", ".join(text for option, text in _SUPPORTED.items() if option in test.options)
                or "neither clusters nor weights",
                "aliases": ", ".join(TEST_ALIASES[known]),
                "source": test.cite,
            },
        )
        for known, test in TESTS.items()
        if folded in (known, *TEST_ALIASES[known])
    ]
    return pages + [
        InfoPage(f"{known}  {title}", _definition(function), {"use": f"eq compare ... --correction {known}"})
        for known, (function, title) in CORRECTIONS.items()
        if folded in (known, title.casefold())
    ]


def _gate_test_pages(name: str) -> list[InfoPage]:
    """The page about the test that only ``eq gate`` has, if it has the name."""
    from equipoise.runs.inferiority_test import BOUNDS, UnitGains

    facts = {"use": f"eq gate ... --test {BOUNDS}", "supports": "clusters of the stored runs", "source": "Gaffke 2005"}
    page = InfoPage(
        f"{BOUNDS}  test for a loss, using the bounds of the metric", _definition(UnitGains.p_within_bounds), facts
    )
    return [page] if name.casefold() == BOUNDS else []


INTERVALS = {
    "wilson": (
        "Wilson's score interval, for proportions: all values that a score test does not reject (Wilson, 1927). With "
        "clusters, the number of units is replaced by the effective sample size."
    ),
    "t": "Student's t interval: the mean plus or minus a quantile of the t distribution times the standard error.",
    "gaffke": (
        "Limits of the Bayesian bootstrap with half a unit added at a bound of the metric, after Gaffke (2005). They "
        "assume only that the metric is bounded. Unlike those of other bootstraps, they are not too narrow for small "
        "samples. With more than 1,024 units they are computed from the moments of the values (Cornish and Fisher, "
        "1938), unless the values are skewed."
    ),
    "bca": "The bias-corrected and accelerated bootstrap interval (Efron, 1987).",
    "bias-corrected": (
        "The percentile bootstrap interval, corrected for median bias (Efron, 1981), for metrics that are not means "
        "over units: all units are resampled, and the metric is computed again."
    ),
    "percentile": "The percentile bootstrap interval: quantiles of the scores of resamples.",
    "subsampling": (
        "A Student's t interval whose standard error comes from subsamples without replacement (Politis and Romano, "
        "1994), for metrics that repeated units would bias, such as distances between points."
    ),
    "order statistics": (
        "Two of the sorted values that enclose a quantile. Their ranks follow from the binomial distribution, so the "
        "interval holds for any distribution (Thompson, 1936)."
    ),
    "bootstrap-errors": (
        "An interval for scores of tuned systems: questions are resampled, and the nested cross-validation with its "
        "selection of parameters is repeated on each resample. Accuracies get Wilson's interval with the number of "
        "independent questions that has this standard error; other scores and differences get Student's t interval."
    ),
    "paired bootstrap": (
        "The percentile bootstrap interval of a difference, for metrics that are not means over units: the same "
        "resamples are used for both systems."
    ),
    "bootstrap t": "Student's t interval with a bootstrap standard error, for the aggregate scores of eq leaderboard.",
}
"""The methods of intervals that are named below tables."""
VARIANTS = {
    "wilson-effective": "wilson",
    "wilson-bootstrap-errors": "bootstrap-errors",
    "subsample": "subsampling",
}
"""Methods that are explained with another one."""


def _interval_pages(name: str) -> list[InfoPage]:
    """The page about a method of intervals, if the name is one of them, or what a table calls one of them."""
    from equipoise.report.tables import METHOD_NAMES

    folded = name.casefold()
    methods = {title.casefold(): method for method, title in METHOD_NAMES.items()}
    method = methods.get(folded) or folded.removesuffix(" bootstrap")
    known = VARIANTS.get(method, method) if folded not in INTERVALS else folded
    facts = {"use": "chosen automatically; -v names it below the table"}
    return (
        [InfoPage(f"{METHOD_NAMES.get(known, known)}  interval", INTERVALS[known], facts)] if known in INTERVALS else []
    )


_ENTRY = re.compile(r"^\*\*(?P<term>.+?)\*\*(?: \((?P<alias>.+)\))?\n:   (?P<text>(?:.+\n)+)", re.MULTILINE)
_DOCS_LINK = re.compile(r" ?\(\[[^]]*\]\([^)]*\)\)| ?See \[[^]]*\]\([^)]*\)\.")


@cache
def glossary() -> dict[str, InfoPage]:
    """The page of each term of the glossary, by its name and by its short form in tables, in lower case."""
    text = (files("equipoise.cli") / "glossary.md").read_text(encoding="utf-8")
    pages: dict[str, InfoPage] = {}
    for entry in _ENTRY.finditer(text):
        title = entry["term"] + (f" ({entry['alias']})" if entry["alias"] else "")
        definition = _DOCS_LINK.sub("", " ".join(entry["text"].split()))
        page = InfoPage(_without_markup(title), _without_markup(definition))
        pages[entry["term"].casefold()] = page
        if entry["alias"]:
            pages[entry["alias"].casefold()] = page
    return pages


def _without_markup(text: str) -> str:
    """The text without marks of emphasis and code, and with the texts of its links."""
    return re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", text).replace("`", "").replace("*", "")


def _term_pages(name: str) -> list[InfoPage]:
    """The page about a term of the glossary, if the name is one of them."""
    page = glossary().get(name.casefold())
    return [] if page is None else [page]


def _concept_score_pages(name: str) -> list[InfoPage]:
    """The page about a weighted score of ``eq concepts``, if the name is one of them."""
    from equipoise.domains.concepts.scores import explain_score

    page = explain_score(name.casefold())
    return [] if page is None else [InfoPage(*page)]


def _neighbour_accuracy_page(name: str, catalogue: MetricCatalogue) -> InfoPage | None:
    """The page about the accuracy of nearest neighbours of ``eq bench``; None for another name."""
    if "knn" not in name.casefold():  # the imports take longer than most pages
        return None
    from equipoise.domains.bench.text_data import KNN
    from equipoise.tasks.classification import NEIGHBOURS

    if name.casefold() != KNN.casefold():
        return None
    accuracy = next(metric for metric in matching_metrics("Acc", catalogue) if metric.evidence.kind == "labels")
    text = (
        f"{_definition(type(accuracy))}\n\nThe predicted class has the most votes among the {NEIGHBOURS} nearest texts "
        "by cosine similarity; among classes with equally many votes, it has the largest sum of cosines. Each text is "
        "predicted from other folds, or from the training split if there is one."
    )
    page = _page(accuracy)
    facts = {"use": "eq bench run on classification data", **page.facts, "aliases": ""}
    return InfoPage(f"{KNN}  accuracy of the {NEIGHBOURS} nearest neighbours", text, facts)


def _definition(documented: object) -> str:
    """The docstring of a function or class without its examples."""
    return cleandoc(documented.__doc__ or "").split(">>>")[0].strip().replace("``", "")


# The page about a metric, from its declaration.

EVIDENCE = {
    "ranking": "the ranking of the candidates of each unit",
    "labels": "the true and the predicted class of each unit",
    "sets": "the gold and the predicted terms of each document",
    "pairs": "pairs of texts with a predicted and an expected similarity",
    "space": "points, and their classes, depths or edges if the metric needs them",
}
"""What each kind of evidence holds."""
TIES_BY_ID = {"infAP"}
BY_ID = "by id, descending"
TIES = {
    "ranking": "the expected value over all orders of tied scores; or --ties by_id, optimistic, pessimistic",
    "labels": "if classes tie for the largest score, the lowest class is predicted, and the tie is reported",
}


def explain_metric(name: str, catalogue: MetricCatalogue) -> list[InfoPage]:
    """One page per metric that matches the name."""
    return [_page(metric) for metric in matching_metrics(name, catalogue)]


def _page(metric: Metric[Any]) -> InfoPage:
    direction = "larger" if metric.better == Direction.UP else "smaller"
    # A custom metric inherits descriptions of the built-in ones, which may not hold for it.
    custom = isinstance(metric, BaseMetric)
    unit = "" if custom else f" ({metric.unit})"
    return InfoPage(
        f"{metric.name}  {metric.title}",
        _definition(type(metric)) or metric.title,
        {
            "formula": plain_formula(metric.formula),
            "range": f"{format_bounds(metric.bounds)}{unit}; {direction} is better",
            "input": ": ".join(filter(None, (metric.evidence.kind, EVIDENCE.get(metric.evidence.kind)))),
            "undefined": "" if custom else metric.undefined.replace("a unit ", "a unit (such as a query) ", 1),
            "ties": "" if custom else BY_ID if metric.symbol in TIES_BY_ID else TIES.get(metric.evidence.kind, ""),
            "chance": _chance(metric),
            "parameters": _parameters(metric),
            "aliases": ", ".join(metric.aliases),
            "source": metric.cite,
        },
        {"Example": worked_values(metric)},
    )


SHUFFLED = {
    "ranking": "the relevant items at random ranks",
    "labels": "the predictions assigned to the units at random",
    "pairs": "the predictions assigned to the pairs at random",
    "sets": "the predicted sets assigned to the documents at random",
    "space": "classes, depths and edges assigned to the points at random",
}
"""What is random in the shuffled evidence of a chance level."""


def _chance(metric: Metric[Any]) -> str:
    """How the chance level is computed."""
    function = type(metric).chance
    if function not in (Metric.chance, CorpusMetric.chance):
        return " ".join(_definition(function).split())
    if isinstance(metric, CorpusMetric) and metric.zero_by_chance:
        return "Exactly 0: the mean over all permutations."
    return f"The mean value with {SHUFFLED.get(metric.evidence.kind, 'random predictions')}."


COMMON_PARAMETERS = {"k": "k, the cutoff", "rel": "rel, the smallest gain of a relevant item (default 1)"}


def _parameters(metric: Metric[Any]) -> str:
    """``k (none), norm (min, or R)``: each parameter with its default and other choices."""
    if isinstance(metric, BaseMetric):
        return ""
    types = get_type_hints(type(metric))
    described = []
    for parameter in fields(metric):  # type: ignore[arg-type]
        if parameter.name in COMMON_PARAMETERS:
            described.append(COMMON_PARAMETERS[parameter.name])
            continue
        kind = types[parameter.name]
        choices = " | ".join(map(str, get_args(kind))) if get_origin(kind) is Literal else ""
        default = "" if parameter.default is MISSING else f" (default {parameter.default})"
        described.append(f"{parameter.name}{'=' + choices if choices else ''}{default}")
    return "; ".join(described)
