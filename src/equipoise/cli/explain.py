"""``eq explain``: what a metric, a check, an error, a test or a correction is."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import click

from equipoise.cli import options
from equipoise.cli.options import symbol_of
from equipoise.cli.output import Output, pass_output
from equipoise.errors import EquipoiseError, UnknownNameError
from equipoise.metrics.catalogue import Catalogue
from equipoise.report.facts import Page
from equipoise.report.terminal import Paragraph

HELP = """
\b
  eq explain nDCG@10
  eq explain EQ301

Explain a metric, with its formula and a worked example; the code of a finding (EQ301) or of
an error (E204); a paired test or a correction.
"""

_CHECK = re.compile(r"EQ\d+", re.IGNORECASE)
_ERROR = re.compile(r"E\d+", re.IGNORECASE)


class Explicable(options.MetricName):
    """Anything that can be explained; completes metrics, codes and tests."""

    name = "name"

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[click.shell_completion.CompletionItem]:
        """Names of all kinds that begin so."""
        from click.shell_completion import CompletionItem

        others = [*_check_codes(), *_error_kinds(), *options.tests(), *options.corrections()]
        return super().shell_complete(ctx, param, incomplete) + [
            CompletionItem(name) for name in others if name.casefold().startswith(incomplete.casefold())
        ]


@click.command(help=HELP, short_help="Explain a metric, a test or a code.")
@click.argument("name", type=Explicable())
@options.plugin_option
@options.output_options
@pass_output
def explain(out: Output, name: str, plugins: tuple[str, ...]) -> None:
    """See ``HELP``."""
    from equipoise.cli.scoring import catalogue_with

    pages = pages_about(name.strip(), catalogue_with(plugins))
    if out.json:
        out.data({"pages": [page.to_dict() for page in pages]})
        return
    for number, page in enumerate(pages):
        out.show(*([Paragraph("")] if number else []), *page.parts())


def pages_about(name: str, catalogue: Catalogue) -> list[Page]:
    """Everything that answers to the name; an unknown one gets a did-you-mean over all kinds."""
    from equipoise.cli.metric_page import metric_pages

    if _CHECK.fullmatch(name):
        return [_check_page(name)]
    if _ERROR.fullmatch(name):
        return [_error_page(name)]
    pages = [*_test_pages(name), *metric_pages(name, catalogue)]
    if not pages:
        known = [
            *catalogue.spellings(),
            *_check_codes(),
            *_error_kinds(),
            *options.tests(),
            *options.corrections(),
        ]
        more = "eq ls metrics, eq ls checks and eq ls tests list what there is"
        raise UnknownNameError.of("metric, test or code", symbol_of(name) or name, known, more=more)
    return pages


def _check_codes() -> list[str]:
    from equipoise.checks.catalogue import all_checks

    return [check.code for check in all_checks()]


def _check_page(code: str) -> Page:
    from equipoise.checks.catalogue import explain as find

    check = find(code)
    return Page(
        f"{check.code}  {check.title}",
        check.why,
        {"severity": str(check.severity), "remedy": check.remedy},
        {"Example": check.example.splitlines()},
    )


def _error_kinds() -> dict[str, type[EquipoiseError]]:
    """Every class of error by its code."""

    def below(kind: type[EquipoiseError]) -> Iterator[type[EquipoiseError]]:
        yield kind
        for each in kind.__subclasses__():
            yield from below(each)

    return {kind.code: kind for kind in below(EquipoiseError)}


def _error_page(code: str) -> Page:
    kinds = _error_kinds()
    kind = kinds.get(code.upper())
    if kind is None:
        raise UnknownNameError.of("error", code, kinds, more=f"the errors are {', '.join(kinds)}")
    meaning = (kind.__doc__ or "").split(">>>")[0].strip()
    family = [f"{each.code} {each.__name__}" for each in kinds.values() if each in kind.__subclasses__()]
    facts = {
        "class": f"equipoise.errors.{kind.__name__}",
        "exit code": str(kind.exit_code),
        "includes": ", ".join(family),
    }
    return Page(f"{kind.code}  {kind.__name__}", meaning, facts)


def _test_pages(name: str) -> list[Page]:
    """The paired test and the correction of that name, if there are such."""
    from equipoise.stats.family import CORRECTIONS
    from equipoise.stats.paired import TESTS

    folded = name.casefold()
    pages = [
        Page(
            f"{known}  {test.title}",
            _definition(test.function),
            {
                "use": f"eq compare ... --test {known}",
                "takes": ", ".join(sorted(test.takes & {"clusters", "weights"}))
                or "neither clusters nor weights",
                "also read as": ", ".join(test.aliases),
                "source": test.cite,
            },
        )
        for known, test in TESTS.items()
        if folded == known or folded in test.aliases
    ]
    return pages + [
        Page(f"{known}  {title}", _definition(function), {"use": f"eq compare ... --correction {known}"})
        for known, (function, title) in CORRECTIONS.items()
        if folded in (known, title.casefold())
    ]


def _definition(function: Callable[..., object]) -> str:
    """The words of a docstring, without its examples."""
    return (function.__doc__ or "").split(">>>")[0].strip().replace("``", "")
