"""What the checks say of many embeddings of one tree: told once, with remedies that fit a tree."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from equipoise.checks.base import listed
from equipoise.recipes.accounts.settings import Cell, Settings
from equipoise.stats.result import Result
from equipoise.types import Finding

TIED = "EQ301"
NOT_ABOVE_CHANCE, AT_THE_CEILING, TOO_FEW, MAP_IS_MRR = "EQ302", "EQ303", "EQ304", "EQ305"
REMEDIES = {
    TIED: "none where the distances are meant to be equal: ties count by their expectation",
    NOT_ABOVE_CHANCE: "train longer or in more dimensions, or accept that the vectors do not know the tree",
    TOO_FEW: "judge on a larger tree, or report the embeddings as tied",
}
"""A tree has as many nodes as it has, and no cutoffs: the usual advice would not help."""
PRIMARY = ("MR", "MAP")
"""What embeddings of a tree are compared on."""


def quiet_baseline(result: Result, cell: Cell, settings: Settings) -> Result:
    """The result of a baseline without the finding that it is no better than chance, which it may be."""
    if not settings.is_baseline(cell):
        return result
    return replace(result, findings=tuple(each for each in result.findings if each.code != NOT_ABOVE_CHANCE))


def gathered(findings: Iterable[Finding], relation: str = "parent") -> tuple[Finding, ...]:
    """Each finding once, without what the report says anyway.

    What is the same of several embeddings is told of them together. Figures at their best value are so for
    all embeddings of which the same figures are: one finding a set of figures.

    >>> from equipoise.types import Severity
    >>> one, two = (Finding("EQ303", Severity.TIP, name, "", "", ("MAP 1.00",)) for name in "ab")
    >>> found = gathered([one, two])
    >>> print(found[0].subject, found[0].sentence, sep=": ")
    a, b: MAP can hardly improve any further and cannot tell good embeddings apart
    >>> found[0].remedy
    'compare on MR, or rank all relatives: --relation closure'
    """
    told = list(dict.fromkeys(findings))
    single = {each.subject for each in told if each.code == MAP_IS_MRR}
    alike: dict[tuple[str, ...], list[Finding]] = {}
    for each in told:
        if each.code == AT_THE_CEILING:
            alike.setdefault((each.code, *_exhausted(each, each.subject in single)), []).append(each)
        elif each.code != MAP_IS_MRR:
            alike.setdefault((each.code, each.sentence), []).append(each)
    return tuple(
        _at_the_ceiling(tuple(figures), _together(group), relation)
        if code == AT_THE_CEILING
        else replace(_together(group), remedy=REMEDIES.get(code, group[0].remedy))
        for (code, *figures), group in alike.items()
    )


def _exhausted(finding: Finding, single: bool) -> tuple[str, ...]:
    """The figures that are at their best; with one relative a node some are others under another name."""
    names = tuple(dict.fromkeys(line.split()[0].rstrip(",") for line in finding.evidence))
    return tuple(name for name in names if not (single and _twin(name) in names))


def _twin(name: str) -> str | None:
    """What a figure equals where no node has two relatives."""
    if name == "MRR":
        return "MAP"
    over = {"MR(over=units)": "MR", "MR(over=units,filtered)": "MR(filtered)"}
    return over.get(name)


def _together(findings: list[Finding]) -> Finding:
    """One finding for several that say the same of different embeddings."""
    if len(findings) == 1 and findings[0].code != AT_THE_CEILING:
        return findings[0]
    return replace(
        findings[0],
        subject=listed([each.subject for each in findings]),
        evidence=tuple(f"{each.subject}: {line}" for each in findings for line in each.evidence),
    )


def _at_the_ceiling(figures: tuple[str, ...], finding: Finding, relation: str) -> Finding:
    """The finding in the words of trees."""
    return replace(
        finding,
        sentence=f"{', '.join(figures)} can hardly improve any further and cannot tell good embeddings apart",
        remedy=_beyond(figures, relation),
    )


def _beyond(figures: tuple[str, ...], relation: str) -> str:
    """Where embeddings may still differ: on the figures that are not at their best, or in a harder task."""
    done = {name.partition("(")[0] for name in figures}
    left = [name for name in PRIMARY if name not in done]
    ways = [f"compare on {' or '.join(left)}"] if left else []
    if relation != "closure":
        ways.append("rank all relatives: --relation closure")
    return ", or ".join(ways) or "compare in fewer dimensions, or on a larger tree"
