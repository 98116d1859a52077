"""Pages of the documentation that are generated from the program: metrics, checks, commands, tests and the Python API.

A hook of mkdocs (see mkdocs.yml). Nothing is written into docs/: the pages exist while the site is built. Examples are
run at that time, so that every number on a page comes from this version of the program.
"""

from __future__ import annotations

import contextlib
import io
import re
import runpy
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import click
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from equipoise.checks.base import all_checks
from equipoise.cli.explain import InfoPage, find_explanations
from equipoise.cli.main import cli
from equipoise.cli.options import HelpContext
from equipoise.metrics.parser import builtin
from equipoise.runs.inferiority_test import BOUNDS
from equipoise.stats.multiple_comparisons import CORRECTIONS
from equipoise.stats.paired_tests import TESTS

KINDS = {
    "ranking": "Ranking: search and recommendation",
    "labels": "Classes and clusters",
    "sets": "Sets of terms",
    "pairs": "Pairs of numbers: similarity",
    "space": "Geometry of an embedding space",
}
"""A heading for each kind of evidence."""

API_MODULES: tuple[str, ...] = runpy.run_path(str(Path(__file__).with_name("write_stubs.py")))["MODULES"]
"""The public modules, ``""`` for the package itself."""


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Replace the placeholders in the navigation of mkdocs.yml by the generated pages."""
    pages = {
        "reference/api/": ["reference/api/index.md", *_api_pages()],
        "reference/metrics/": ["reference/metrics/index.md", *sorted(_metric_pages(), key=str.casefold)],
        "reference/checks/": ["reference/checks/index.md", *_check_pages()],
    }
    config.nav = _fill_navigation(config.nav, pages)
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages to those in docs/."""
    generated: dict[str, Callable[[], str]] = {
        **_metric_pages(),
        **_check_pages(),
        **_api_pages(),
        "reference/api/index.md": _list_of_modules,
        "reference/metrics/index.md": _list_of_metrics,
        "reference/checks/index.md": _list_of_checks,
        "reference/commands.md": _commands,
        "reference/tests.md": _tests,
    }
    for path, content in generated.items():
        files.append(File.generated(config, path, content=content()))
    return files


def _fill_navigation(nav: Any, pages: dict[str, list[str]]) -> Any:
    if isinstance(nav, str):
        return pages.get(nav, nav)
    if isinstance(nav, list):
        return [_fill_navigation(entry, pages) for entry in nav]
    return {title: _fill_navigation(children, pages) for title, children in nav.items()}


def _metric_pages() -> dict[str, Callable[[], str]]:
    """One page per metric; metrics of the same name but different evidence have separate pages."""
    return {
        f"reference/metrics/{_slug(kind, symbol)}.md": partial(_metric, kind, symbol) for kind, symbol in _metrics()
    }


def _metrics() -> Iterator[tuple[str, str]]:
    for metric in builtin():
        yield metric.evidence.kind, metric.symbol


def _metric(kind: str, symbol: str) -> str:
    page = next(page for page in find_explanations(symbol, builtin()) if page.facts["input"].partition(":")[0] == kind)
    metric_declaration = next(metric for metric in builtin() if (metric.evidence.kind, metric.symbol) == (kind, symbol))
    return _markdown(page, formula=metric_declaration.formula)


def _check_pages() -> dict[str, Callable[[], str]]:
    return {f"reference/checks/{check.code}.md": partial(_check, check.code) for check in all_checks()}


def _check(code: str) -> str:
    check = next(check for check in all_checks() if check.code == code)
    page = find_explanations(code, builtin())[0]
    markdown = _markdown(InfoPage(page.title, page.text, page.facts))
    return f"{markdown}\n## Example\n\n```python\n{check.example}\n```\n\n```text\n{_printed(check.example)}\n```\n"


def _printed(example: str) -> str:
    """The value of the last line of the example, as an interpreter prints it."""
    *setup_lines, last_line = example.rstrip().splitlines()
    names: dict[str, Any] = {}
    with contextlib.redirect_stdout(io.StringIO()):
        exec("\n".join(setup_lines), names)
        value = eval(last_line, names)
    findings = value if isinstance(value, tuple) else (value,)
    return "\n".join(map(str, findings))


def _list_of_metrics() -> str:
    lines = [
        "# Metrics",
        "",
        "Definition, formula, chance level and a worked example of every metric.",
        "",
    ]
    for kind, title in KINDS.items():
        lines += [f"## {title}", "", "| metric | name |", "|---|---|"]
        for metric in builtin():
            if metric.evidence.kind == kind:
                lines.append(f"| [`{metric.symbol}`]({_slug(kind, metric.symbol)}.md) | {metric.title} |")
        lines.append("")
    return "\n".join(lines)


def _list_of_checks() -> str:
    lines = ["# Checks", "", "Problems of data, method or claims that the program reports as findings.", ""]
    lines += ["| code | title | severity |", "|---|---|---|"]
    lines += [f"| [{check.code}]({check.code}.md) | {check.title} | {check.severity} |" for check in all_checks()]
    return "\n".join(lines)


def _api_pages() -> dict[str, Callable[[], str]]:
    return {f"reference/api/{module or 'equipoise'}.md": partial(_api, module) for module in API_MODULES}


def _api(module: str) -> str:
    """The reference of one public module: mkdocstrings renders the docstrings, functions first."""
    package, documented = _public_module(module)
    lines = [f"# {package}", "", _escaped((documented.__doc__ or "").split("\n")[0]), ""]
    lines += [f"```python\nfrom {package} import ...\n```", ""]
    names = {name: path for name, path in documented.PUBLIC_NAMES.items() if path != f"{package}.{name}"}
    for title, is_class in (("Functions", False), ("Classes and constants", True)):
        lines += [f"## {title}", ""]
        lines += [f"::: {names[name]}.{name}\n" for name in sorted(names) if is_class is not name.islower()]
    return "\n".join(lines)


def _list_of_modules() -> str:
    lines = ["# Python API", "", "| module | contents | names |", "|---|---|---|"]
    for module in API_MODULES:
        package, documented = _public_module(module)
        contents = _escaped((documented.__doc__ or "").split("\n")[0])
        lines.append(f"| [`{package}`]({module or 'equipoise'}.md) | {contents} | {len(documented.PUBLIC_NAMES)} |")
    lines += [
        "",
        "Names are imported when they are first used, so `import equipoise` is fast. All names are typed. Modules",
        "that are not listed here are internal and may change without notice.",
    ]
    return "\n".join(lines)


def _public_module(module: str) -> tuple[str, ModuleType]:
    """The name to import from, and the module that holds docstring and table of names."""
    package = f"equipoise.{module}".rstrip(".")
    return package, import_module(package)


def _commands() -> str:
    lines = ["# Commands", ""]
    context = HelpContext(cli, info_name="eq", color=False, max_content_width=100, terminal_width=100)
    for path, command in _subcommands(cli, context):
        lines += [f"{'#' * min(4, len(path) + 1)} {' '.join(['eq', *path])}", ""]
        inner = HelpContext(command, info_name=" ".join(["eq", *path]), max_content_width=100, terminal_width=100)
        lines += ["```text", command.get_help(inner), "```", ""]
    return "\n".join(lines)


def _subcommands(group: click.Command, context: click.Context, *path: str) -> Iterator[tuple[list[str], click.Command]]:
    if not isinstance(group, click.Group):
        return
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if command is not None:
            yield [*path, name], command
            yield from _subcommands(command, context, *path, name)


def _tests() -> str:
    names = [*TESTS, BOUNDS, *CORRECTIONS]
    pages = [page for name in names for page in find_explanations(name, builtin()) if "--" in page.facts["use"]]
    return "# Tests and corrections\n\n" + "\n".join(_markdown(page, level=2) for page in pages)


def _markdown(page: InfoPage, *, level: int = 1, formula: str = "") -> str:
    lines = [f"{'#' * level} {_escaped(page.title.replace('  ', ': ', 1))}", ""]
    lines += [f"{_escaped(paragraph)}\n" for paragraph in page.text.split("\n\n") if paragraph]
    if formula:
        lines += [_mathml(formula), ""]
    facts = {name: fact for name, fact in page.facts.items() if fact and not (formula and name == "formula")}
    lines += ["| | |", "|---|---|"] if facts else []
    lines += [f"| {name} | {_escaped(fact)} |" for name, fact in facts.items()]
    for title, block in page.blocks.items():
        if block:
            lines += ["", f"{'#' * (level + 1)} {title}", "", "```text", *block, "```"]
    return "\n".join(lines) + "\n"


def _mathml(formula: str) -> str:
    """Browsers draw MathML themselves, so no script is needed."""
    if "\\" not in formula:
        return f"```text\n{formula}\n```"
    from latex2mathml.converter import convert

    mathml: str = convert(formula, display="block")
    return mathml


def _slug(kind: str, symbol: str) -> str:
    return f"{kind}-{re.sub(r'[^A-Za-z0-9]+', '-', symbol).strip('-')}"


def _escaped(text: str) -> str:
    return re.sub(r"([|<>*_`\[\]])", r"\\\1", " ".join(text.split()))
