"""How a command ends: the exit code and the sentence for every way it can go wrong."""

from __future__ import annotations

import os
import signal
import sys
import traceback
from collections.abc import Iterable
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import click

from equipoise.cli.output import Output
from equipoise.errors import EquipoiseError
from equipoise.redaction import redact
from equipoise.report.inert import inert

if TYPE_CHECKING:
    from equipoise.types import Finding

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
        out.error({"code": "interrupted", "sentence": "interrupted", "hint": ""}, "interrupted")
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
    from equipoise.report.findings import as_grave, gravest_first

    grave = gravest_first(as_grave(findings, severity)) if severity else []
    for finding in [] if out.json else grave:
        sys.stderr.write(inert(f"--fail-on {severity}: {finding}\n"))
    return GATE_FAILED if grave else DONE


def _fields(error: EquipoiseError) -> dict[str, Any]:
    return {
        "code": error.code,
        "sentence": error.sentence,
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
    fields = {"code": "unexpected", "sentence": sentence, "hint": hint, "exit_code": UNEXPECTED}
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
