"""Where everything goes that a command says: data to standard output, the rest to standard error."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import isfinite
from typing import Any, Protocol

import click

from equipoise.redaction import redact
from equipoise.report.inert import inert


@dataclass
class Output:
    """What the options ``--json``, ``-q`` and ``-v`` ask for, and the whole line that was typed."""

    json: bool = False
    quiet: bool = False
    verbose: bool = False
    command: tuple[str, ...] = ()

    @classmethod
    def of_words(cls, words: Sequence[str]) -> Output:
        """Read the options off the raw words, since errors in the other options must obey them too."""
        shorts = "".join(word for word in words if word[:1] == "-" and set(word[1:]) <= {"q", "v"})
        return cls(
            json="--json" in words,
            quiet="--quiet" in words or "q" in shorts,
            verbose="--verbose" in words or "v" in shorts,
            command=("eq", *words),
        )

    def data(self, value: Mapping[str, Any] | Sequence[Any]) -> None:
        """Write data as JSON; what is not a number becomes null."""
        sys.stdout.write(json.dumps(plain(value), indent=2, allow_nan=False) + "\n")

    def show(self, *parts: Any) -> None:
        """Write a report for people: tables and paragraphs, as wide as the terminal."""
        from equipoise.report.terminal import console

        if parts:
            screen = console(sys.stdout)
            with screen.capture() as drawn:
                screen.print(*parts, sep="\n", crop=False)
            sys.stdout.write(drawn.get())

    def text(self, text: str) -> None:
        """Write text; control characters in it are shown and not obeyed."""
        sys.stdout.write(inert(text if text.endswith("\n") else f"{text}\n"))

    def file(self, text: str) -> None:
        """Write the content of a file: every character of it, unless the output is a terminal."""
        sys.stdout.write(inert(text) if sys.stdout.isatty() else text)

    def note(self, text: str) -> None:
        """Say something beside the data, unless it was asked to be quiet."""
        if not self.quiet:
            sys.stderr.write(inert(f"{text}\n"))

    def error(self, fields: Mapping[str, Any], rendered: str) -> None:
        """Say what went wrong, as JSON where data was asked for as JSON."""
        text = json.dumps({"error": plain(fields)}, allow_nan=False) if self.json else inert(rendered)
        sys.stderr.write(f"{redact(text)}\n")

    @contextmanager
    def progress(self, total: int) -> Iterator[Step]:
        """A bar on standard error for work of ``total`` steps; silent unless someone watches."""
        if self.quiet or total < 2 or not sys.stderr.isatty():
            yield _silent
            return
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        from equipoise.report.terminal import console

        columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
        with Progress(*columns, console=console(sys.stderr), transient=True) as bar:
            task = bar.add_task("", total=total)
            done = iter(range(total + 1))
            yield lambda text: bar.update(task, description=text, completed=next(done, total))


class Step(Protocol):
    """Called at the start of each step with what is being done."""

    def __call__(self, text: str, /) -> None:
        """The step that begins now."""


def _silent(text: str, /) -> None:
    """Nobody watches."""


def plain(value: Any) -> Any:
    """A value as JSON knows it: no NaN, no infinity, no numpy scalars, no tuples."""
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(each) for each in value]
    if isinstance(value, float):
        return float(value) if isfinite(value) else None
    if value is None or isinstance(value, (bool, int, str)):
        return value
    return plain(value.item()) if hasattr(value, "item") else str(value)


pass_output = click.make_pass_decorator(Output, ensure=True)
