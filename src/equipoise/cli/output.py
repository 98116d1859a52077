"""Output of commands: data to standard output, notes and errors to standard error."""

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
    """The options ``--json``, ``-q`` and ``-v``, and the command line."""

    json: bool = False
    quiet: bool = False
    verbose: bool = False
    command: tuple[str, ...] = ()

    @classmethod
    def of_words(cls, words: Sequence[str]) -> Output:
        """Read the options from the raw arguments, because errors in other options must follow them too."""
        shorts = "".join(word for word in words if word[:1] == "-" and set(word[1:]) <= {"q", "v"})
        return cls(
            json="--json" in words,
            quiet="--quiet" in words or "q" in shorts,
            verbose="--verbose" in words or "v" in shorts,
            command=("eq", *words),
        )

    def data(self, value: Mapping[str, Any] | Sequence[Any]) -> None:
        """Write data as JSON. NaN and infinity become null."""
        sys.stdout.write(json.dumps(plain(value), indent=2, allow_nan=False) + "\n")

    def show(self, *parts: Any) -> None:
        """Write a readable report: tables and paragraphs, as wide as the terminal."""
        from equipoise.report.terminal import console

        if parts:
            screen = console(sys.stdout)
            with screen.capture() as captured:
                screen.print(*parts, sep="\n", crop=False)
            sys.stdout.write(captured.get())

    def text(self, text: str) -> None:
        """Write text. Control characters are escaped."""
        sys.stdout.write(inert(text if text.endswith("\n") else f"{text}\n"))

    def file(self, text: str) -> None:
        """Write the content of a file. Control characters are escaped only if the output is a terminal."""
        sys.stdout.write(inert(text) if sys.stdout.isatty() else text)

    def note(self, text: str) -> None:
        """Write a note to standard error, unless ``--quiet`` is set."""
        if not self.quiet:
            sys.stderr.write(inert(f"{text}\n"))

    def error(self, fields: Mapping[str, Any], rendered: str) -> None:
        """Write an error to standard error, as JSON with ``--json``."""
        text = json.dumps({"error": plain(fields)}, allow_nan=False) if self.json else inert(rendered)
        sys.stderr.write(f"{redact(text)}\n")

    @contextmanager
    def progress(self, total: int) -> Iterator[Step]:
        """A progress bar of ``total`` steps on standard error, if it is a terminal."""
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
    """Called at the start of each step with its description."""

    def __call__(self, text: str, /) -> None:
        """Start the next step."""


def _silent(text: str, /) -> None:
    """Show no progress."""


def plain(value: Any) -> Any:
    """A value that JSON can represent: no NaN, no infinity, no numpy scalars, no tuples."""
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


# Exit codes and messages of errors.

DONE = 0
GATE_FAILED = 1
BAD_INPUT = 2
FAILED_UNITS = 3
MISSING = 4
UNEXPECTED = 70
INTERRUPTED = 128 + signal.SIGINT
BROKEN_PIPE = 141  # 128 + SIGPIPE, which Windows does not name


def report(error: BaseException, out: Output) -> int:
    """Write the error to standard error, and return the exit code."""
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
    """The exit code of ``--fail-on``. Findings of this severity or higher are listed, also with ``--quiet``."""
    from equipoise.report.findings import at_least_severity, sort_by_severity

    failing = sort_by_severity(at_least_severity(findings, severity)) if severity else []
    for finding in [] if out.json else failing:
        sys.stderr.write(inert(f"--fail-on {severity}: {finding}\n"))
    return GATE_FAILED if failing else DONE


def _fields(error: EquipoiseError) -> dict[str, Any]:
    return {
        "code": error.code,
        "message": error.message,
        "hint": error.hint,
        "excerpt": error.excerpt,
        "exit_code": error.exit_code,
    }


def _as_ours(error: click.ClickException) -> EquipoiseError:
    """An error of click as one of ours, with a message and a hint."""
    context = error.ctx if isinstance(error, click.UsageError) else None
    page = f"{context.command_path} --help lists the options" if context else ""
    sentence = error.format_message()
    if isinstance(error, click.NoSuchOption) and context is not None:
        sentence = f"{context.command_path} has no option {error.option_name}"
        page = _nearest_option(error.option_name, context.command) or page
    return EquipoiseError(sentence[:1].lower() + sentence[1:].rstrip("."), hint=page)


def _nearest_option(name: str, command: click.Command) -> str:
    """Suggest the nearest option, compared without the leading dashes."""
    known = {name.lstrip("-"): name for parameter in command.params for name in parameter.opts}
    near = get_close_matches(name.lstrip("-"), known, n=1)
    return f"did you mean {known[near[0]]}?" if near else ""


def _unexpected(error: BaseException, out: Output) -> int:
    reason = f"{type(error).__name__}: {error}".strip().rstrip(":").splitlines()[0]
    if out.verbose:
        sys.stderr.write(inert(redact("".join(traceback.format_exception(error)))))
        hint = "please report this with the lines above and the output of eq doctor"
    else:
        hint = "this is a bug in equipoise; run it again with -v and report its output and that of eq doctor"
    sentence = "there is not enough memory" if isinstance(error, MemoryError) else f"unexpected {reason}"
    fields = {"code": "unexpected", "message": sentence, "hint": hint, "exit_code": UNEXPECTED}
    out.error(fields, f"error: {sentence}\nhint: {hint}")
    return UNEXPECTED


def _hang_up() -> int:
    """The output pipe is closed, as after ``| head``: exit without a message, also when Python flushes at exit."""
    sink = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (BrokenPipeError, ValueError):
            os.dup2(sink, stream.fileno())
    os.close(sink)
    return BROKEN_PIPE


# Progress bar with rate and remaining time.


@contextmanager
def progress_bar(out: Output, what: str, total: int) -> Iterator[Callable[[int], None]]:
    """Yields a function that takes the number of finished units; shows nothing without a terminal."""
    if out.quiet or not sys.stderr.isatty():
        yield lambda done: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, TextColumn
    from rich.progress import Task as Work
    from rich.progress import TimeRemainingColumn as Remaining
    from rich.text import Text

    from equipoise.report.terminal import console

    class Rate(ProgressColumn):
        """Units per second."""

        def render(self, task: Work) -> Text:
            """The rate, once it is known."""
            speed = task.finished_speed or task.speed
            return Text("" if speed is None else f"{speed:,.0f} per second")

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), Rate(), Remaining())
    with Progress(*columns, console=console(sys.stderr), transient=True) as bar:
        task = bar.add_task(what, total=total)
        yield lambda done: bar.update(task, completed=done)


# Suggestions for the next command.


def next_command(paths: Sequence[str], ground_truth: Sequence[str], primary: str) -> str:
    """After scoring: compare several systems, or explain the metric of one."""
    if len(paths) > 1:
        return suggestion(["eq", "compare", *paths, *ground_truth, "--primary", primary])
    return suggestion(["eq", "explain", primary])


def after_comparison(findings: Sequence[Finding], primary: str) -> str:
    """After comparing: explain the most severe finding, or else the metric."""
    return suggestion(["eq", "explain", findings[0].code if findings else primary])


def suggestion(words: Sequence[str]) -> str:
    """A command line to copy."""
    return f"\nNext: {shlex.join(words)}"
