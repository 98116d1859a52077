"""The errors of the package. Each has a code, a message, a hint and an exit code.

EquipoiseError          E100   base class of all errors                       exit 2
├── InputError          E200   bytes or values that cannot be read            exit 2
│   ├── FormatError     E204   a line or a field of a file is malformed
│   ├── DuplicateError  E205   the same id twice where ids must be unique
│   ├── ShapeError      E206   arrays that do not fit together
│   ├── NotFiniteError  E207   NaN or infinity where a finite number is needed
│   ├── PairingError    E208   systems that were not measured on the same units
│   └── ExpansionError  E209   a compressed file that expands beyond the limit
├── UnknownNameError    E300   an unknown name (with a suggestion)            exit 2
│   └── RunNotFoundError  E301   a run that is not in the folder
├── ParameterError      E310   a parameter outside its range                  exit 2
├── UntrustedError      E320   a file requests code execution or a credential exit 2
├── UndefinedError      E400   a value that is undefined for this evidence    exit 2
├── StoreError          E500   a run directory or a vector store fails        exit 2
│   └── ChangedFileError E501  a stored file is not the one its manifest describes
├── MissingExtraError   E600   an optional package, key or device is missing  exit 4
└── PartialError        E700   a service or a disk failed; results are kept   exit 3
    ├── TextTooLongError    E701   a text exceeds the limit of the service        exit 2
    └── StoppedError    E702   a model failed before all texts were embedded  exit 3
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any

from equipoise.redaction import redact


class EquipoiseError(Exception):
    """A usage error, such as a missing option; the base class of all errors, which have a message, a code and a hint.

    >>> print(EquipoiseError("runs/a.trec is empty", hint="check the path").render())
    error[E100]: runs/a.trec is empty
    hint: check the path
    """

    code = "E100"
    exit_code = 2

    def __init__(self, message: str, *, hint: str = "", excerpt: str = "") -> None:
        self.message = redact(message)
        self.hint = redact(hint)
        self.excerpt = redact(excerpt)
        super().__init__(self.message)

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild, (type(self), self.message, self.hint, self.excerpt))

    def render(self) -> str:
        """The error as printed: message, excerpt of the input, hint; never longer than a screen."""
        lines = [f"error[{self.code}]: {_shortened(self.message)}"]
        if self.excerpt:
            excerpt = self.excerpt.splitlines()
            more = [f"({len(excerpt) - MAX_EXCERPT_LINES} more lines)"] if len(excerpt) > MAX_EXCERPT_LINES else []
            lines += [f"  {_shortened(line)}" for line in [*excerpt[:MAX_EXCERPT_LINES], *more]]
        if self.hint:
            lines.append(f"hint: {_shortened(self.hint)}")
        return "\n".join(lines)


MAX_EXCERPT_LINES = 10
MAX_CHARACTERS = 600


def _shortened(text: str) -> str:
    """The text, or its first and last parts if it is too long to be read.

    >>> len(_shortened("x" * 10_000))
    605
    """
    half = MAX_CHARACTERS // 2
    return text if len(text) <= MAX_CHARACTERS else f"{text[:half]} ... {text[-half:]}"


def _rebuild(kind: type[EquipoiseError], message: str, hint: str, excerpt: str) -> EquipoiseError:
    """Unpickle an error with its keyword arguments, which pickle would drop."""
    return kind(message, hint=hint, excerpt=excerpt)


class InputError(EquipoiseError):
    """Input that cannot be used: a missing or unreadable file, or values that are not what they should be."""

    code = "E200"


class FormatError(InputError):
    """A line or a field of a file is malformed."""

    code = "E204"


class DuplicateError(InputError):
    """An id occurs twice where ids must be unique."""

    code = "E205"


class ShapeError(InputError):
    """Arrays that do not fit together."""

    code = "E206"


class NotFiniteError(InputError):
    """NaN or infinity where a finite number is needed."""

    code = "E207"


class PairingError(InputError):
    """Systems that were not measured on the same units."""

    code = "E208"


class ExpansionError(InputError):
    """A compressed file that expands beyond the limit."""

    code = "E209"


class UnknownNameError(EquipoiseError):
    """An unknown name; the hint suggests the nearest known one."""

    code = "E300"

    @classmethod
    def of(cls, kind: str, name: str, candidates: Iterable[str], *, more: str = "") -> UnknownNameError:
        """``no metric is called 'nDGC'`` with a did-you-mean among the known names.

        >>> print(UnknownNameError.of("metric", "nDGC", ["nDCG", "MRR"]).hint)
        did you mean nDCG?
        """
        return cls(f"no {kind} is called {name!r}", hint=did_you_mean(name, candidates) or more)


class RunNotFoundError(UnknownNameError):
    """A run that is not, or no longer, in the folder."""

    code = "E301"


class ParameterError(EquipoiseError):
    """A parameter or option that is missing, outside its range, or in conflict with another one."""

    code = "E310"


class UntrustedError(EquipoiseError):
    """A file, not the user, requests something that runs code or sends a credential."""

    code = "E320"


class UndefinedError(EquipoiseError):
    """A value that is undefined for this evidence."""

    code = "E400"


class StoreError(EquipoiseError):
    """A run directory or a vector store that cannot be read or written."""

    code = "E500"


class ChangedFileError(StoreError):
    """A stored file whose SHA-256 is not the one in the manifest."""

    code = "E501"


class MissingExtraError(EquipoiseError):
    """An optional package, credential or device is missing."""

    code = "E600"
    exit_code = 4


class PartialError(EquipoiseError):
    """A service failed or a disk is full; the same command resumes where it stopped."""

    code = "E700"
    exit_code = 3
    finished: Any = None
    """The results before the failure; the type depends on the code that raised the error."""


class TextTooLongError(PartialError):
    """A text is longer than the service accepts, and truncation was not requested."""

    code = "E701"
    exit_code = 2


class StoppedError(PartialError):
    """A model failed before all texts were embedded.

    ``done`` and ``total`` are numbers of texts; ``total`` is None if unknown.

    >>> StoppedError("tiny", "the server answered 500", 2, 8).counted(2050, None).message
    'tiny failed after 2,050 texts: the server answered 500'
    """

    code = "E702"

    def __init__(self, model: str, reason: str, done: int, total: int | None, *, hint: str = "") -> None:
        texts = f"{done:,} texts" if total is None else f"{done:,} of {total:,} texts"
        super().__init__(f"{model} failed after {texts}: {reason}", hint=hint)
        self.model, self.reason, self.done, self.total = model, reason, done, total

    def counted(self, done: int, total: int | None) -> StoppedError:
        """The same failure with the counts of a larger job."""
        error = StoppedError(self.model, self.reason, done, total, hint=self.hint)
        error.finished = self.finished
        return error

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild_stopped, (self.model, self.reason, self.done, self.total, self.hint))


def _rebuild_stopped(model: str, reason: str, done: int, total: int | None, hint: str) -> StoppedError:
    return StoppedError(model, reason, done, total, hint=hint)


def did_you_mean(name: str, candidates: Iterable[str], *, cutoff: float = 0.6) -> str:
    """A hint with the nearest known names, or an empty string if none has at least this similarity."""
    folded: dict[str, str] = {}
    for candidate in candidates:
        folded.setdefault(candidate.casefold(), candidate)
    near = get_close_matches(name.casefold(), folded, n=3, cutoff=cutoff)
    return f"did you mean {' or '.join(folded[match] for match in near)}?" if near else ""


def check_options(subject: str, options: Iterable[str], allowed: Iterable[str]) -> None:
    """Raise ``ParameterError`` for the first option that ``subject`` does not have, with a suggestion."""
    known = list(allowed)
    for option in options:
        if option not in known:
            hint = did_you_mean(option, known) or (f"the options are {', '.join(known)}" if known else "it has none")
            raise ParameterError(f"{subject} has no option {option!r}", hint=hint)
