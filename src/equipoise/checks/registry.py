"""The registry of checks. Modules with checks are imported when a subject of their type is checked.

Codes up to EQ199 concern units and data, EQ2xx the protocol, EQ3xx scores and claims, EQ4xx published tables.

A check is found through the type of its subject. Types of the core are in ``CORE_CHECKS``; any other type
names the module of its checks in the class attribute ``__checks__``, or is defined in that module.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

from equipoise.errors import UnknownNameError

if TYPE_CHECKING:
    from equipoise.checks.base import Check
    from equipoise.types import Finding

CORE_CHECKS = {
    "equipoise.checks.base:ScoredResult": ("equipoise.checks.data", "equipoise.checks.scores"),
    "equipoise.checks.base:UnitSets": ("equipoise.checks.data",),
    "equipoise.checks.base:NamedPoints": ("equipoise.checks.data",),
    "equipoise.checks.base:ComparedSystems": ("equipoise.checks.protocol",),
    "equipoise.checks.base:TruncationStats": ("equipoise.checks.models",),
    "equipoise.stats.result:Result": ("equipoise.checks.protocol",),
    "equipoise.stats.comparison:Comparison": ("equipoise.checks.scores",),
    "equipoise.models.cache:VectorCache": ("equipoise.checks.models",),
    "equipoise.models.retriever:FittedRetriever": ("equipoise.checks.models",),
}
"""The modules that declare checks for a type of the core."""

CHECK_MODULES = (
    "equipoise.checks.data",
    "equipoise.checks.protocol",
    "equipoise.checks.scores",
    "equipoise.checks.models",
    "equipoise.audit.rules",
    "equipoise.domains.accounts.checks",
    "equipoise.domains.bench.leaderboard_checks",
    "equipoise.domains.concepts.checks",
    "equipoise.domains.fair.checks",
    "equipoise.domains.phenotypes.checks",
)
"""Every module with a tuple ``CHECKS``; imported only to list or explain all checks."""


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


def check_by_code(code: str) -> Check:
    """The check with this code, in any case; an unknown code gets a did-you-mean.

    >>> check_by_code("eq301").title
    'many tied scores'
    """
    by_code = {check.code: check for check in all_checks()}
    check = by_code.get(code.strip().upper())
    if check is None:
        raise UnknownNameError.of("check", code, by_code, more=f"known: {', '.join(by_code)}")
    return check


def run_checks(subject: object) -> tuple[Finding, ...]:
    """The findings of all checks that apply to a subject, ordered by code.

    >>> from equipoise.checks.base import UnitSets
    >>> [str(finding) for finding in run_checks(UnitSets({"a": ["q1"], "b": ["q1", "q2"]}))]
    ['EQ204 a, b: 0 ids only in a (none), 1 only in b (q2)']
    """
    return tuple(finding for check in checks_for(type(subject)) for finding in check.findings(subject))
