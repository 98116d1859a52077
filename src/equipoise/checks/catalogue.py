"""All checks in one place: each stands beside its function, and here they are collected by code.

Numbers up to 199 look at units and data, 2xx at the protocol, 3xx at scores and claims,
4xx at figures that someone published.
"""

from __future__ import annotations

from equipoise.checks import (
    audit,
    concepts,
    embedding,
    extraction,
    field,
    fixture,
    hierarchy,
    phenotypes,
    points,
    power,
    protocol,
    scores,
    tuning,
    units,
)
from equipoise.checks.base import Check
from equipoise.errors import UnknownNameError
from equipoise.types import Finding

_SUBJECTS = (
    audit,
    concepts,
    embedding,
    extraction,
    field,
    fixture,
    hierarchy,
    phenotypes,
    points,
    power,
    protocol,
    scores,
    tuning,
    units,
)

CHECKS: tuple[Check, ...] = tuple(
    sorted((check for subject in _SUBJECTS for check in subject.CHECKS), key=lambda check: check.code)
)

_BY_CODE = {check.code: check for check in CHECKS}


def explain(code: str) -> Check:
    """The check with this code, in any case; an unknown code gets a did-you-mean.

    >>> explain("eq301").title
    'many tied scores'
    """
    check = _BY_CODE.get(code.strip().upper())
    if check is None:
        raise UnknownNameError.of("check", code, _BY_CODE, more=f"known: {', '.join(_BY_CODE)}")
    return check


def examine(thing: object) -> tuple[Finding, ...]:
    """What all checks that apply to a thing find in it, by code.

    >>> from equipoise.checks.subjects import UnitSets
    >>> [str(finding) for finding in examine(UnitSets({"a": ["q1"], "b": ["q1", "q2"]}))]
    ['EQ204 a, b: 0 units only in a (none), 1 only in b (q2)']
    """
    return tuple(finding for check in CHECKS for finding in check.findings(thing))
