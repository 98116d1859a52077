"""What the checks say of many embeddings of one tree: told once, with remedies that fit a tree."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from equipoise.checks.base import listed
from equipoise.recipes.accounts.settings import Cell, Settings
from equipoise.stats.result import Result
from equipoise.types import Finding

NOT_ABOVE_CHANCE, AT_THE_CEILING, TOO_FEW, MAP_IS_MRR = "EQ302", "EQ303", "EQ304", "EQ305"
REMEDIES = {
    NOT_ABOVE_CHANCE: "train longer or in more dimensions, or accept that the vectors do not know the tree",
    AT_THE_CEILING: "compare on MR or MAP, or rank all relatives: --relation closure",
    TOO_FEW: "judge on a larger tree, or report the embeddings as tied",
}
"""A tree has as many nodes as it has, and no cutoffs: the usual advice would not help."""


def quiet_baseline(result: Result, cell: Cell, settings: Settings) -> Result:
    """The result of a baseline without the finding that it is no better than chance, which it may be."""
    if not settings.is_baseline(cell):
        return result
    return replace(result, findings=tuple(each for each in result.findings if each.code != NOT_ABOVE_CHANCE))


def gathered(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Each finding once, those of figures at their best value as one, without what the report says anyway.

    >>> from equipoise.types import Severity
    >>> one, two = (Finding("EQ303", Severity.TIP, name, "", "", ("MAP 1.00",)) for name in "ab")
    >>> found = gathered([one, two])
    >>> print(found[0].subject, found[0].sentence, sep=": ")
    a, b: MAP can hardly improve any further and cannot tell good embeddings apart
    """
    told = [
        replace(each, remedy=REMEDIES.get(each.code, each.remedy))
        for each in dict.fromkeys(findings)
        if each.code != MAP_IS_MRR
    ]
    full = [each for each in told if each.code == AT_THE_CEILING]
    if not full:
        return tuple(told)
    figures = dict.fromkeys(line.split()[0] for each in full for line in each.evidence)
    together = replace(
        full[0],
        subject=listed([each.subject for each in full]),
        sentence=f"{listed(list(figures))} can hardly improve any further and cannot tell good embeddings "
        "apart",
        evidence=tuple(f"{each.subject}: {line}" for each in full for line in each.evidence),
    )
    first = told.index(full[0])
    return (*told[:first], together, *(each for each in told[first:] if each.code != AT_THE_CEILING))
