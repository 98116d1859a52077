"""Which model to use for what, and where the data do not say."""

from __future__ import annotations

from collections.abc import Sequence

from equipoise.recipes.concepts.blends import BLENDS, COMPOSITE, GENERAL_USE
from equipoise.report.concepts_edition import Advice, Standing
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
    sentence = _sentence(models, len(standing.scored), len(standing.order))
    return Advice(use, standing.score, models, sentence, _caution(models, standing))


def _caution(models: Sequence[str], standing: Standing) -> str:
    """What the figure says that is held against the truth: who is not above chance, and who is better."""
    figure = standing.truth
    known = [name for name in models if name in standing.beside.get(figure, {})]
    if not known:
        return ""
    lucky = [name for name in known if not standing.above_chance(figure, name)]
    told = []
    if lucky:
        verb = "is" if len(lucky) == 1 else "are"
        told.append(f"{_joined(lucky, 'and')} {verb} not shown to be above chance in {figure}")
    values = {name: own.value for name, own in standing.beside[figure].items()}
    better = set.intersection(*(set(standing.beaten(name)) for name in known)) - set(models)
    if better:
        best = max(better, key=lambda name: values[name])
        told.append(f"{best} has a higher {figure} than {_joined(known, 'and')}")
    return f"but {', and '.join(told)}" if told else ""


def _sentence(models: Sequence[str], scored: int, measured: int) -> str:
    """The advice in words.

    >>> _sentence(["minilm", "use"], 3, 3), _sentence(["minilm"], 1, 2)
    ('minilm or use: not separated by this data', 'minilm, the only one with a score')
    """
    if len(models) > 1:
        return labelled(_joined(models, "or"), "not separated by this data")
    if scored > 1:
        return models[0]
    return f"{models[0]}, the only one {'measured' if measured == 1 else 'with a score'}"


def _joined(names: Sequence[str], word: str) -> str:
    """Names as a sentence lists them.

    >>> _joined(["a", "b", "c"], "or"), _joined(["a"], "and")
    ('a, b or c', 'a')
    """
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} {word} {names[-1]}"
