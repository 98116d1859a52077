"""Checks, their subjects and their registry. A check has a code, a detector, a rationale and a hint.

Codes up to EQ199 concern units and data, EQ2xx the protocol, EQ3xx scores and claims, EQ4xx published tables.

A check is found through the type of its subject. Types of the core are in ``CORE_CHECKS``; any other type
names the module of its checks in the class attribute ``__checks__``, or is defined in that module. Modules with
checks are imported when a subject of their type is checked.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from types import UnionType
from typing import TYPE_CHECKING, Any, NamedTuple

from equipoise.errors import UnknownNameError, did_you_mean
from equipoise.types import Finding, Severity, packaged_toml

if TYPE_CHECKING:
    from equipoise.metrics.base import Metric
    from equipoise.stats.result import Result

SHOWN = 5
KEPT = 20


class Observation(NamedTuple):
    """One detection of a check; the check adds code and severity, and its hint and title if none are given."""

    subject: str
    message: str
    evidence: tuple[str, ...] = ()
    hint: str = ""
    title: str = ""


@dataclass(frozen=True)
class Check:
    """One kind of problem: its subject type, its detection, why it matters, and what to do.

    ``function`` takes a subject of type ``applies_to`` and yields one observation per problem.
    ``example`` is Python whose last line has findings with this code.
    """

    code: str
    title: str
    severity: Severity
    applies_to: type | UnionType
    function: Callable[[Any], Iterator[Observation]]
    why: str
    hint: str
    example: str

    def findings(self, subject: object) -> Iterator[Finding]:
        """The findings about a subject; none if it has another type."""
        if not isinstance(subject, self.applies_to):
            return
        for observation in self.function(subject):
            yield Finding(
                code=self.code,
                severity=self.severity,
                subject=observation.subject,
                message=observation.message,
                hint=observation.hint or self.hint,
                evidence=observation.evidence,
                title=observation.title or self.title,
            )


def join_names(names: Sequence[object], separator: str = ", ") -> str:
    """The first few names, and how many more there are.

    >>> join_names(["q1", "q2", "q3", "q4", "q5", "q6", "q7"])
    'q1, q2, q3, q4, q5 and 2 more'
    """
    shown = separator.join(str(name) for name in names[:SHOWN])
    return shown + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "")


def evidence_names(names: Sequence[object]) -> tuple[str, ...]:
    """The first names as evidence of a finding, and how many more there are."""
    n_more = len(names) - KEPT
    return (*(str(name) for name in names[:KEPT]), *((f"and {n_more} more",) if n_more > 0 else ()))


def pluralize(count: int, noun: str, plural: str = "") -> str:
    """A number and its noun: ``1 unit``, ``3 units``; ``plural`` for nouns that do not just add an s.

    >>> pluralize(2, "entry", "entries")
    '2 entries'
    """
    return f"{count:,} {noun if count == 1 else plural or f'{noun}s'}"


@dataclass(frozen=True)
class ScoredResult:
    """A result with its metrics; its evidence is as observed, including ties."""

    result: Result
    metrics: Mapping[str, Metric[Any]]


@dataclass(frozen=True)
class ComparedResults:
    """The results of the systems of a comparison; their settings tell how they were measured."""

    results: Sequence[Result]


CORE_CHECKS = {
    "equipoise.checks.base:ComparedResults": ("equipoise.checks.protocol",),
    "equipoise.checks.base:ScoredResult": ("equipoise.checks.scores",),
    "equipoise.stats.result:Result": ("equipoise.checks.protocol",),
    "equipoise.stats.comparison:Comparison": ("equipoise.checks.protocol",),
    "equipoise.models.vector_cache:VectorCache": ("equipoise.checks.models",),
    "equipoise.models.retriever:FittedRetriever": ("equipoise.checks.models",),
}
"""The modules that declare checks for a type of the core."""

CHECK_MODULES = (
    "equipoise.checks.protocol",
    "equipoise.checks.scores",
    "equipoise.checks.models",
    "equipoise.audit.rules",
    "equipoise.domains.accounts.checks",
    "equipoise.domains.bench.checks",
    "equipoise.domains.bench.score_table",
    "equipoise.domains.concepts.checks",
    "equipoise.domains.fair.checks",
    "equipoise.domains.phenotypes.checks",
    "equipoise.domains.places.checks",
)
"""Every module with a tuple ``CHECKS``; imported only to list or explain all checks."""


def declared_checks(
    package: str, functions: Mapping[str, tuple[type | UnionType, Callable[[Any], Iterator[Observation]]]]
) -> tuple[Check, ...]:
    """The checks of a package: subjects and functions by code, and the texts of its ``checks.toml``."""
    texts = packaged_toml(package, "checks.toml")
    return tuple(
        Check(
            code,
            severity=Severity(texts[code]["severity"]),
            applies_to=subject,
            function=function,
            **{name: texts[code][name] for name in ("title", "why", "hint", "example")},
        )
        for code, (subject, function) in functions.items()
    )


def checks_for(subject_type: type) -> tuple[Check, ...]:
    """The checks that apply to a type, ordered by code."""
    modules: list[str] = []
    for base in subject_type.__mro__[:-1]:
        declared = base.__dict__.get("__checks__")
        modules += CORE_CHECKS.get(f"{base.__module__}:{base.__qualname__}", (declared or base.__module__,))
    checks = {check.code: check for name in modules for check in getattr(import_module(name), "CHECKS", ())}
    return tuple(checks[code] for code in sorted(checks))


@cache
def all_checks() -> tuple[Check, ...]:
    """Every check, ordered by code."""
    checks = (check for name in CHECK_MODULES for check in import_module(name).CHECKS)
    return tuple(sorted(checks, key=lambda check: check.code))


_SENTENCE_END = re.compile(r"(?<=\.)\s+(?=[A-Z\"])")
REASON_SENTENCES = 2


@cache
def reasons() -> dict[str, str]:
    """Why the problem of each check matters, by code: the first sentences of its page."""
    return {
        check.code: " ".join(_SENTENCE_END.split(" ".join(check.why.split()))[:REASON_SENTENCES])
        for check in all_checks()
    }


def check_by_code(code: str) -> Check:
    """The check with this code, in any case; an unknown code gets a did-you-mean.

    >>> check_by_code("eq301").title
    'many tied scores'
    """
    by_code = {check.code: check for check in all_checks()}
    check = by_code.get(code.strip().upper())
    if check is None:
        # Codes have their first letters in common, so two of them are always similar.
        hint = did_you_mean(code, by_code, cutoff=0.8) or "eq ls checks lists all codes"
        raise UnknownNameError(f"no check is called {code!r}", hint=hint)
    return check


def run_checks(subject: object) -> tuple[Finding, ...]:
    """The findings of all checks that apply to a subject, ordered by code.

    >>> from equipoise.stats.estimate import result_from_values
    >>> a, b = result_from_values("a", ["q1"], {"HR": [1]}), result_from_values("b", ["q2"], {"HR": [1]})
    >>> [str(finding) for finding in run_checks(ComparedResults([a, b]))]
    ['EQ204 a, b: 1 id only in a (q1), 1 only in b (q2)']
    """
    return tuple(finding for check in checks_for(type(subject)) for finding in check.findings(subject))
