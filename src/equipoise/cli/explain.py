"""``eq explain``: what a metric, a check, an error, a test or a correction is."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import MISSING, fields
from inspect import cleandoc
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin, get_type_hints

import click

from equipoise.cli import options
from equipoise.cli.ls import bounds_text
from equipoise.cli.metric_names import catalogue_with, matching_metrics, symbol_of
from equipoise.cli.output import Output, pass_output
from equipoise.errors import EquipoiseError, UnknownNameError, did_you_mean
from equipoise.metrics.base import BaseMetric, Metric
from equipoise.metrics.parser import name_from_other_library
from equipoise.report.metric_page import InfoPage, plain_formula, worked_values
from equipoise.report.terminal import Paragraph
from equipoise.types import Direction

if TYPE_CHECKING:
    from equipoise.metrics.catalogue import MetricCatalogue

HELP = """
\b
  eq explain nDCG@10
  eq explain EQ301

Explain a metric, with its formula and a worked example; the code of a finding (EQ301) or of
an error (E204); a paired test or a correction.
"""

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

        others = [*_check_codes(), *_error_kinds(), *options.tests(), *options.corrections()]
        return super().shell_complete(ctx, param, incomplete) + [
            CompletionItem(name) for name in others if name.casefold().startswith(incomplete.casefold())
        ]


@click.command(help=HELP, short_help="Explain a metric, a test or a code.")
@click.argument("name", type=ExplainableType())
@options.plugin_option
@options.output_options
@pass_output
def explain(out: Output, name: str, plugins: tuple[str, ...]) -> None:
    """See ``HELP``."""
    pages = find_explanations(name.strip(), catalogue_with(plugins))
    if out.json:
        out.data({"pages": [page.to_dict() for page in pages]})
        return
    for number, page in enumerate(pages):
        out.show(*([Paragraph("")] if number else []), *page.parts())


def find_explanations(name: str, catalogue: MetricCatalogue) -> list[InfoPage]:
    """The pages for a name. An unknown name is an error with a suggestion over all kinds."""

    if _CHECK.fullmatch(name):
        return [_check_page(name)]
    if _ERROR.fullmatch(name):
        return [_error_page(name)]
    pages = [*_test_pages(name), *explain_metric(name, catalogue)]
    if not pages:
        known = [
            *catalogue.spellings(),
            *_check_codes(),
            *_error_kinds(),
            *options.tests(),
            *options.corrections(),
        ]
        ours = name_from_other_library(name, catalogue)
        suggested = f"write {ours}" if ours else did_you_mean(symbol_of(name) or name, known)
        hint = suggested or "eq ls metrics, eq ls checks and eq ls tests list all names"
        raise UnknownNameError(f"no metric, test or code is called {name!r}", hint=hint)
    return pages


def _check_codes() -> list[str]:
    from equipoise.checks.registry import all_checks

    return [check.code for check in all_checks()]


def _check_page(code: str) -> InfoPage:
    from equipoise.checks.registry import check_by_code as find

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

    return {kind.code: kind for kind in with_subclasses(EquipoiseError)}


def _error_page(code: str) -> InfoPage:
    kinds = _error_kinds()
    kind = kinds.get(code.upper())
    if kind is None:
        raise UnknownNameError.of("error", code, kinds, more=f"the errors are {', '.join(kinds)}")
    meaning = (kind.__doc__ or "").split(">>>")[0].strip()
    subclasses = [f"{known.code} {known.__name__}" for known in kinds.values() if known in kind.__subclasses__()]
    facts = {
        "class": f"equipoise.errors.{kind.__name__}",
        "exit code": str(kind.exit_code),
        "includes": ", ".join(subclasses),
    }
    return InfoPage(f"{kind.code}  {kind.__name__}", meaning, facts)


def _test_pages(name: str) -> list[InfoPage]:
    """The paired test and the correction with this name, if any."""
    from equipoise.stats.corrections import CORRECTIONS
    from equipoise.stats.paired_tests import TESTS

    folded = name.casefold()
    pages = [
        InfoPage(
            f"{known}  {test.title}",
            _definition(test.function),
            {
                "use": f"eq compare ... --test {known}",
                "takes": ", ".join(sorted(test.takes & {"clusters", "weights"})) or "neither clusters nor weights",
                "aliases": ", ".join(test.aliases),
                "source": test.cite,
            },
        )
        for known, test in TESTS.items()
        if folded == known or folded in test.aliases
    ]
    return pages + [
        InfoPage(f"{known}  {title}", _definition(function), {"use": f"eq compare ... --correction {known}"})
        for known, (function, title) in CORRECTIONS.items()
        if folded in (known, title.casefold())
    ]


def _definition(function: Callable[..., object]) -> str:
    """A docstring without its examples."""
    return (function.__doc__ or "").split(">>>")[0].strip().replace("``", "")


# The page about a metric, from its declaration.

TIES = {
    "ranking": "the expected value over all orders of tied scores; or --ties by_id, optimistic, pessimistic",
    "labels": "a tie for the largest score goes to the lowest class, and is reported",
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
        _metric_page_definition(metric),
        {
            "formula": plain_formula(metric.formula),
            "range": f"{bounds_text(metric.bounds)}{unit}; {direction} is better",
            "evidence": metric.evidence.kind,
            "undefined": "" if custom else metric.undefined,
            "ties": "" if custom else TIES.get(metric.evidence.kind, ""),
            "chance": _joined_lines(type(metric).chance.__doc__),
            "parameters": _parameters(metric),
            "aliases": ", ".join(metric.aliases),
            "source": metric.cite,
        },
        {"Example": worked_values(metric)},
    )


def _metric_page_definition(metric: Metric[Any]) -> str:
    return cleandoc(type(metric).__doc__ or metric.title).split(">>>")[0].strip().replace("``", "")


def _joined_lines(text: str | None) -> str:
    return " ".join((text or "").split(">>>")[0].split()).replace("``", "")


def _parameters(metric: Metric[Any]) -> str:
    """``k (none), norm (min, or R)``: each parameter with its default and other choices."""
    if isinstance(metric, BaseMetric):
        return ""
    types = get_type_hints(type(metric))
    described = []
    for field in fields(metric):  # type: ignore[arg-type]
        if field.name == "k":
            described.append("k, the cutoff")
            continue
        kind = types[field.name]
        choices = " | ".join(map(str, get_args(kind))) if get_origin(kind) is Literal else ""
        default = "" if field.default is MISSING else f" (default {field.default})"
        described.append(f"{field.name}{'=' + choices if choices else ''}{default}")
    return ", ".join(described)
