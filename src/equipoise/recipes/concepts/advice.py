"""Which model to use for what, and where the data do not say."""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan

from equipoise.recipes.concepts.blends import BLENDS, COMPOSITE, GENERAL_USE
from equipoise.report.concepts_edition import Advice, Standing
from equipoise.stats.result import Estimate
from equipoise.types import labelled

USES = {COMPOSITE: GENERAL_USE} | {blend.name: blend.use for blend in BLENDS.values() if blend.use}
"""What each score decides."""


def advise(standings: Sequence[Standing]) -> tuple[Advice, ...]:
    """For every use, the model with the highest score, or all that cannot be told from it."""
    found = {each.score: each for each in standings}
    return tuple(_advice(use, found[score]) for score, use in USES.items() if score in found)


def _advice(use: str, standing: Standing) -> Advice:
    leader = standing.leader
    if leader is None:
        return Advice(use, standing.score, (), f"no model has a {standing.score}")
    models = (leader, *standing.tied_with_leader)
    return Advice(
        use, standing.score, models, _sentence(models, len(standing.order)), _caution(models, standing)
    )


def _caution(models: Sequence[str], standing: Standing) -> str:
    """What the figure says that is held against the truth: no better than chance, or another model first."""
    figure = next((blend.truth for blend in BLENDS.values() if blend.name == standing.score), "")
    if figure not in standing.beside:
        return ""
    own = standing.beside[figure]
    if not any(_above_chance(each) for each in own.values()):
        who = "no model" if len(own) > 1 else "it"
        return f"but {who} is {'' if len(own) > 1 else 'not '}shown to be above chance in {figure}"
    best = max((name for name in own if not isnan(own[name].value)), key=lambda name: own[name].value)
    if best not in models:
        luck = "" if any(_above_chance(own[name]) for name in models) else ", where it is not above chance"
        return f"but {best} has the highest {figure}{luck}"
    return ""


def _above_chance(estimate: Estimate) -> bool:
    return estimate.interval.known and estimate.interval.low > estimate.chance


def _sentence(models: Sequence[str], count: int) -> str:
    """The advice in words.

    >>> _sentence(["minilm", "use"], 3), _sentence(["minilm"], 1)
    ('minilm or use: not separated by this data', 'minilm, the only one measured')
    """
    if len(models) > 1:
        named = f"{', '.join(models[:-1])} or {models[-1]}"
        return labelled(named, "not separated by this data")
    return models[0] if count > 1 else f"{models[0]}, the only one measured"
