"""Output of commands: data to standard output, notes and errors to standard error."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import sys
import traceback
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cache
from itertools import pairwise
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Protocol

import click

from equipoise.errors import EquipoiseError, ParameterError
from equipoise.redaction import inert, redact

if TYPE_CHECKING:
    from equipoise.report.terminal import Part
    from equipoise.report.view import View
    from equipoise.types import Finding


@dataclass
class Output:
    """Where and how a command writes: ``--json``, ``--to``, ``-o FILE``, ``-q``, ``-v``, and the command line."""

    json: bool = False
    quiet: bool = False
    verbose: bool = False
    command: tuple[str, ...] = ()
    to: str = ""
    """The format of tables, one of ``TABLE_FORMATS``; empty for the terminal."""
    path: str | None = None
    """The file that gets the output instead of the terminal."""
    trackers: tuple[str, ...] = ()
    """The experiment trackers of ``--log``."""
    _buffer: list[str] = field(default_factory=list)

    @classmethod
    def of_words(cls, words: Sequence[str]) -> Output:
        """Read the options from the raw arguments, because errors in other options must follow them too."""
        letters = "".join(word for word in words if word[:1] == "-" and set(word[1:]) <= {"q", "v"})
        return cls(
            json="--json" in words or "--to=json" in words or ("--to", "json") in pairwise(words),
            quiet="--quiet" in words or "q" in letters,
            verbose="--verbose" in words or "v" in letters,
            command=("eq", *words),
        )

    def set_format(self, to: str | None, path: str | None) -> None:
        """Write tables as ``to``, by default the format of its file extension."""
        if path is not None:
            from equipoise.cli.output_files import check_suffix
            from equipoise.runs.experiment_folder import check_writable

            suffix = PurePath(path).suffix.casefold()
            to = self.format_of(to) or FORMAT_OF_SUFFIX.get(suffix)
            if to is None:
                known = f"use {', '.join(FORMAT_OF_SUFFIX)}, or choose the format with --to"
                raise ParameterError(
                    f"{path} does not have the file extension of a table format",
                    hint=pointers("values")["format"]["html"] if suffix == ".html" else known,
                )
            check_suffix(path, to)
            check_writable(path, example="table.md")
        self.json = self.format_of(to) == "json"
        self.to, self.path = "" if to in (None, "json") else to, path

    def format_of(self, to: str | None) -> str | None:
        """The format of ``--to``; ``--json`` is another name for ``--to json``."""
        if self.json and to not in (None, "json"):
            raise ParameterError(f"--json and --to {to} cannot be used together", hint="keep one of them")
        return "json" if self.json else to

    def finish(self) -> None:
        """Write the file of ``-o``, if there is one."""
        if self.path is not None and self._buffer:
            from equipoise.cli.output_files import write_output

            write_output(self.path, "".join(self._buffer), self.to or "json")
            self.note(f"wrote {self.path}")

    def write(self, text: str) -> None:
        """Write to standard output, or to the file of ``-o``."""
        if self.path is None:
            sys.stdout.write(text)
        else:
            self._buffer.append(text)

    def data(self, value: Mapping[str, Any] | Sequence[Any]) -> None:
        """Print the results as JSON. NaN and infinity become null."""
        from equipoise.types import json_value

        self.write(json.dumps(json_value(value), indent=2, allow_nan=False) + "\n")

    def show(self, *parts: Part) -> None:
        """Write a readable report: tables and paragraphs, as wide as the terminal, or in the format of ``--to``."""
        if self.to:
            from equipoise.report.export.tables import format_parts

            self.write(format_parts(parts, self.to))
        elif parts:
            from equipoise.report.terminal import console

            screen = console(sys.stdout)
            with screen.capture() as capture:
                screen.print(*parts, sep="\n", crop=False)
            sys.stdout.write(capture.get())

    def view(self, view: View) -> None:
        """Write the view of an experiment; with ``--quiet`` only its decision and table."""
        self.show(*view.parts(quiet=self.quiet, verbose=self.verbose))

    def results(self, content: Callable[[], Mapping[str, Any]], view: Callable[[], View]) -> None:
        """Write the results of a command, as JSON data or as a view, and log the scores of the data."""
        from equipoise.runs.trackers import flat_scores

        if self.json:
            self.data(content())
        else:
            self.view(view())
        self.log(lambda: flat_scores(content()))

    def log(self, scores: Callable[[], Mapping[str, float]], run_name: str = "", **parameters: str) -> None:
        """Write scores to every tracker of ``--log``; the run is named after the command unless it has a name."""
        if not self.trackers:
            return
        from equipoise.runs.manifest import redact_secrets
        from equipoise.runs.trackers import log_scores

        words = redact_secrets(self.command)
        name = run_name or click.get_current_context().command_path.partition(" ")[2]
        for tracker in self.trackers:
            log_scores(tracker, name, scores(), {"command": " ".join(words), **parameters})
            self.note(f"logged {name} to {tracker}")

    def text(self, text: str) -> None:
        """Write text for readers at a terminal. Control characters are escaped; with ``--to`` nothing is written."""
        if not self.to:
            self.write(inert(text if text.endswith("\n") else f"{text}\n"))

    def file(self, text: str) -> None:
        """Write the content of a file. Control characters are escaped only if the output is a terminal."""
        self.write(inert(text) if self.path is None and sys.stdout.isatty() else text)

    def note(self, text: str) -> None:
        """Write a note to standard error, unless ``--quiet`` is set."""
        if not self.quiet:
            sys.stderr.write(inert(f"{text}\n"))

    def error(self, fields: Mapping[str, Any], rendered: str) -> None:
        """Write an error to standard error, as JSON with ``--json``."""
        text = json.dumps({"error": dict(fields)}, allow_nan=False) if self.json else inert(rendered)
        sys.stderr.write(f"{redact(text)}\n")

    def failures(self, failures: Mapping[str, EquipoiseError], kind: str) -> None:
        """Print each distinct error once, after the names that failed with it; in JSON, one error per name.

        ``kind`` is what the names are of: the key in JSON.
        """
        from equipoise.checks.base import join_names
        from equipoise.types import with_label

        names_of: dict[str, list[str]] = {}
        for name, error in failures.items():
            names_of.setdefault(error.render(), []).append(name)
        for rendered, names in names_of.items():
            for name in names if self.json else names[:1]:
                error = failures[name]
                fields = {kind: name, "code": error.code, "message": error.message, "hint": error.hint}
                self.error(fields, with_label(join_names(names), rendered))

    @contextmanager
    def progress(self, total: int, weights: Mapping[str, float] | None = None) -> Iterator[Step]:
        """A progress bar of ``total`` steps with the remaining time; yields a function that starts the next step.

        Within a step the bar moves with the shares that the running code reports (``equipoise.progress``).
        ``weights`` are the expected relative times of the steps by their texts, if they differ. If the number of
        steps is unknown (0), the reported shares are those of the whole command.
        """
        with self._bar("starting", total or None, weights=weights) as update:
            done = iter(range(total + 1))
            yield lambda text: update(next(done, total), text, total or None)

    @contextmanager
    def count(self, description: str, total: int = 0) -> Iterator[Count]:
        """A progress bar of ``total`` items; yields a function that takes the number of finished items.

        If the total is known only later, it is given with the number of finished items.
        """
        with self._bar(description, total or None, follows_shares=False) as update:
            yield lambda done, total=total: update(done, description, total or None)

    @contextmanager
    def working(self, description: str) -> Iterator[None]:
        """Show what a step does and for how long it has been running; its share, if the running code reports it."""
        with self._bar(description, None):
            yield

    @contextmanager
    def _bar(
        self,
        description: str,
        total: int | None,
        *,
        follows_shares: bool = True,
        weights: Mapping[str, float] | None = None,
    ) -> Iterator[Callable[[int, str, int | None], None]]:
        """Nothing is shown with ``--quiet`` or without a terminal."""
        if self.quiet or not sys.stderr.isatty():
            yield lambda done, text, total: None
            return
        from equipoise.cli.progress_bar import ProgressBar

        with ProgressBar(description, total, follows_shares=follows_shares, weights=weights) as bar:
            yield bar.update


TABLE_FORMATS = ("md", "latex", "csv", "json")
FORMAT_OF_SUFFIX = {".md": "md", ".tex": "latex", ".csv": "csv", ".json": "json"}


class Step(Protocol):
    """Called at the start of each step with its description."""

    def __call__(self, text: str, /) -> None:
        """Start the next step."""


class Count(Protocol):
    """Called with the number of finished items, and with their total where it was not known before."""

    def __call__(self, done: int, total: int = ..., /) -> None:
        """Show the progress."""


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
        notes = (getattr(raised, "__notes__", ()) for raised in (error, error.__cause__, error.__context__))
        hint = next((note for of_error in notes for note in of_error), "")
        message = f"interrupted: {hint}" if hint else "interrupted"
        out.error({"code": "interrupted", "message": "interrupted", "hint": hint}, message)
        return INTERRUPTED
    if isinstance(error, BrokenPipeError):
        return _exit_on_closed_pipe()
    if isinstance(error, click.ClickException):
        error = _as_ours(error)
    if isinstance(error, EquipoiseError):
        out.error(_fields(error), error.render())
        return error.exit_code
    return _unexpected(error, out)


def gate(out: Output, findings: Iterable[Finding], severity: str | None) -> int:
    """The exit code of ``--fail-on``. Findings of this severity or higher are listed, also with ``--quiet``."""
    from equipoise.report.terminal import at_least_severity, sort_by_severity

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
    hint = f"{context.command_path} --help lists the options" if context else ""
    message = error.format_message()
    if isinstance(error, click.NoSuchOption) and context is not None:
        name = _single_dash_option(context) or error.option_name
        message = f"{context.command_path} has no option {name}"
        hint = suggest_option(name, context) or hint
    elif isinstance(error, click.MissingParameter) and isinstance(error.param, click.Option):
        hint = f"write {error.param.opts[-1]} {error.param.metavar or 'VALUE'}"
    elif context is not None and (extra := _EXTRA_ARGUMENT.match(message)):
        option = pointers("arguments").get(context.command_path.partition(" ")[2])
        hint = f"write {option} {extra[1]}" if option else hint
    elif isinstance(error, click.BadOptionUsage) and not hint:
        hint = f"write a value after {error.option_name}"
    return EquipoiseError(message[:1].lower() + message[1:].rstrip("."), hint=hint)


def _single_dash_option(context: click.Context) -> str:
    """A long option that was written with one dash: ``-qrels`` would be ``-q`` and ``-r``."""
    names = {name for parameter in context.command.params for name in parameter.opts if name.startswith("--")}
    words = context.obj.command if isinstance(context.obj, Output) else ()
    return next((word for word in words if f"-{word}" in names), "")


_EXTRA_ARGUMENT = re.compile(r"Got unexpected extra arguments? \((\S+?)[ )]")

INPUT_OPTIONS = ("--run", "--runs", "--logits", "--systems", "--system", "--data", "--input", "--file", "--results")
"""Options that users try for inputs, which are arguments of most commands."""


@cache
def pointers(kind: str) -> dict[str, Any]:
    """The ``commands``, ``options``, ``arguments`` or ``values`` that users try, and what does it."""
    from importlib.resources import files
    from tomllib import loads

    content: dict[str, Any] = loads((files("equipoise.cli") / "pointers.toml").read_text(encoding="utf-8"))[kind]
    if kind == "values":
        return {name: _by_name(values) for name, values in content.items()}
    return _by_name(content)


def _by_name(table: Mapping[str, Any]) -> dict[str, Any]:
    """The table with one entry per name; ``cache clear | clean`` are two names with the same path.

    >>> _by_name({"cache clear | clean": "eq cache prune"})
    {'cache clear': 'eq cache prune', 'cache clean': 'eq cache prune'}
    """
    entries: dict[str, Any] = {}
    for key, value in table.items():
        first, *others = key.split(" | ")
        path = first.rpartition(" ")[0]
        entries |= dict.fromkeys([first, *(f"{path} {name}".strip() for name in others)], value)
    return entries


LEAST_SIMILARITY = 0.7
"""How similar a name must be to be suggested for another one; with less, the suggestions mislead."""


def suggest_option(name: str, context: click.Context) -> str:
    """The option or argument that is meant, or the option with the nearest name without its leading dashes."""
    if isinstance(context.command, click.Group):
        return _suggest_command(name, context.command, context)
    parameters = context.command.params
    known = {name.lstrip("-"): name for parameter in parameters for name in parameter.opts if name[0] == "-"}
    path = context.command_path.partition(" ")[2]
    table = pointers("options")
    for pointer in (*table.get(f"{path} {name}", ()), *table.get(name, ())):
        if pointer in known.values():
            return f"write {pointer}"
        if not pointer.startswith("-") and _fits(pointer, known.values()):
            return str(pointer)
    arguments = [parameter.human_readable_name for parameter in parameters if isinstance(parameter, click.Argument)]
    if name in INPUT_OPTIONS and arguments:
        return f"write it without an option: {context.command_path} {' '.join(arguments)}"
    word = name.lstrip("-")
    longer = [option for option in known if len(word) >= 4 and option.startswith(word)]
    near = longer or get_close_matches(word, known, n=1, cutoff=LEAST_SIMILARITY)
    return f"did you mean {known[near[0]]}?" if near else ""


def _fits(sentence: str, options: Collection[str]) -> bool:
    """Whether the command has the options in a sentence about it; a sentence with ``eq`` is about any command."""
    words = [word.strip(",;:") for word in sentence.split()]
    return "eq" in words or all(word in options for word in words if word.startswith("-") and word != "-")


def _suggest_command(name: str, group: click.Group, context: click.Context) -> str:
    """The first command of the group that has the option."""
    for word in group.list_commands(context) if context.parent is not None else ():
        command = group.get_command(context, word)
        if command is not None and any(name in parameter.opts for parameter in command.params):
            return f"write {context.command_path} {word} {name}"
    return ""


def _unexpected(error: BaseException, out: Output) -> int:
    reason = f"{type(error).__name__}: {error}".strip().rstrip(":").splitlines()[0]
    if out.verbose:
        sys.stderr.write(inert(redact("".join(traceback.format_exception(error)))))
        hint = "please report this with the lines above and the output of eq doctor"
    else:
        hint = "this is a bug in equipoise; run it again with -v and report its output and that of eq doctor"
    message = "there is not enough memory" if isinstance(error, MemoryError) else f"unexpected {reason}"
    fields = {"code": "unexpected", "message": message, "hint": hint, "exit_code": UNEXPECTED}
    out.error(fields, f"error: {message}\nhint: {hint}")
    return UNEXPECTED


def _exit_on_closed_pipe() -> int:
    """The output pipe is closed, as after ``| head``: exit without a message, also when Python flushes at exit."""
    sink = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (BrokenPipeError, ValueError):
            os.dup2(sink, stream.fileno())
    os.close(sink)
    return BROKEN_PIPE


# Suggestions for the next command.


def next_command(paths: Sequence[str], ground_truth: Sequence[str], primary: str) -> str:
    """After scoring: compare several systems, or explain the metric of one."""
    if len(paths) > 1:
        return suggestion(["eq", "compare", *paths, *ground_truth, "--primary", primary])
    return suggestion(["eq", "explain", primary])


def after_comparison(findings: Sequence[Finding], primary: str) -> str:
    """After comparing: explain the first finding that the answer shows, or else the metric."""
    from equipoise.report.answer import shown_codes

    return suggestion(["eq", "explain", next(iter(shown_codes(findings)), primary)])


def suggestion(words: Sequence[str]) -> str:
    """A command line to copy."""
    return f"\nNext: {shlex.join(words)}"
