"""Where everything goes that a command says: data to standard output, the rest to standard error."""

from __future__ import annotations

import json
import os
import shlex
import signal
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from math import isfinite
from typing import TYPE_CHECKING, Any, Protocol

import click

from equipoise.errors import EquipoiseError
from equipoise.redaction import redact
from equipoise.report.escaping import inert

if TYPE_CHECKING:
    from equipoise.types import Finding


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


# How a command ends: the exit code and the sentence for every way it can go wrong.

DONE = 0
GATE_FAILED = 1
BAD_INPUT = 2
FAILED_UNITS = 3
MISSING = 4
UNEXPECTED = 70
INTERRUPTED = 128 + signal.SIGINT
BROKEN_PIPE = 141  # 128 + SIGPIPE, which Windows does not name


def report(error: BaseException, out: Output) -> int:
    """Say what went wrong on standard error, and return the exit code."""
    if isinstance(error, click.Abort | KeyboardInterrupt):
        out.error({"code": "interrupted", "message": "interrupted", "hint": ""}, "interrupted")
        return INTERRUPTED
    if isinstance(error, BrokenPipeError):
        return _hang_up()
    if isinstance(error, click.ClickException):
        error = _as_ours(error)
    if isinstance(error, EquipoiseError):
        out.error(_fields(error), error.render())
        return error.exit_code
    return _unexpected(error, out)


def gate(out: Output, findings: Iterable[Finding], severity: str | None) -> int:
    """The exit code after a gate; the findings that closed it are named, also where the report is quiet."""
    from equipoise.report.findings import at_least_severity, sort_by_severity

    grave = sort_by_severity(at_least_severity(findings, severity)) if severity else []
    for finding in [] if out.json else grave:
        sys.stderr.write(inert(f"--fail-on {severity}: {finding}\n"))
    return GATE_FAILED if grave else DONE


def _fields(error: EquipoiseError) -> dict[str, Any]:
    return {
        "code": error.code,
        "message": error.message,
        "hint": error.hint,
        "excerpt": error.excerpt,
        "exit_code": error.exit_code,
    }


def _as_ours(error: click.ClickException) -> EquipoiseError:
    """A mistake in the options, told like any other: a sentence and how to go on."""
    context = error.ctx if isinstance(error, click.UsageError) else None
    page = f"{context.command_path} --help shows what it takes" if context else ""
    sentence = error.format_message()
    if isinstance(error, click.NoSuchOption) and context is not None:
        sentence = f"{context.command_path} has no option {error.option_name}"
        page = _nearest_option(error.option_name, context.command) or page
    return EquipoiseError(sentence[:1].lower() + sentence[1:].rstrip("."), hint=page)


def _nearest_option(name: str, command: click.Command) -> str:
    """A did-you-mean on the letters alone: the dashes would make all options look alike."""
    known = {name.lstrip("-"): name for each in command.params for name in each.opts}
    near = get_close_matches(name.lstrip("-"), known, n=1)
    return f"did you mean {known[near[0]]}?" if near else ""


def _unexpected(error: BaseException, out: Output) -> int:
    reason = f"{type(error).__name__}: {error}".strip().rstrip(":").splitlines()[0]
    if out.verbose:
        sys.stderr.write(inert(redact("".join(traceback.format_exception(error)))))
        hint = "please report this with the lines above and the output of eq doctor"
    else:
        hint = "this is a fault of equipoise; run it again with -v and report what that and eq doctor print"
    sentence = "there is not enough memory" if isinstance(error, MemoryError) else f"unexpected {reason}"
    fields = {"code": "unexpected", "message": sentence, "hint": hint, "exit_code": UNEXPECTED}
    out.error(fields, f"error: {sentence}\nhint: {hint}")
    return UNEXPECTED


def _hang_up() -> int:
    """The reader has gone, as after ``| head``: end quietly, also when Python flushes at its exit."""
    sink = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (BrokenPipeError, ValueError):
            os.dup2(sink, stream.fileno())
    os.close(sink)
    return BROKEN_PIPE


# A bar for long work: how much is done, how fast, and how long it will take.


@contextmanager
def progress_bar(out: Output, what: str, total: int) -> Iterator[Callable[[int], None]]:
    """Yields a function that takes how many are done; silent unless someone watches."""
    if out.quiet or not sys.stderr.isatty():
        yield lambda done: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, TextColumn
    from rich.progress import Task as Work
    from rich.progress import TimeRemainingColumn as Remaining
    from rich.text import Text

    from equipoise.report.terminal import console

    class Rate(ProgressColumn):
        """Units a second."""

        def render(self, task: Work) -> Text:
            """The rate, once it is known."""
            speed = task.finished_speed or task.speed
            return Text("" if speed is None else f"{speed:,.0f} a second")

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), Rate(), Remaining())
    with Progress(*columns, console=console(sys.stderr), transient=True) as bar:
        task = bar.add_task(what, total=total)
        yield lambda done: bar.update(task, completed=done)


# The next command to type, on one line, ready to be copied.


def next_command(places: Sequence[str], truth: Sequence[str], primary: str) -> str:
    """After scoring: compare, when there is something to compare; else learn what the figure means."""
    if len(places) > 1:
        return suggestion(["eq", "compare", *places, *truth, "--primary", primary])
    return suggestion(["eq", "explain", primary])


def after_comparison(findings: Sequence[Finding], primary: str) -> str:
    """After comparing: the gravest finding is worth a look, else the metric."""
    return suggestion(["eq", "explain", findings[0].code if findings else primary])


def suggestion(words: Sequence[str]) -> str:
    """A command line to be copied."""
    return f"\nNext: {shlex.join(words)}"
