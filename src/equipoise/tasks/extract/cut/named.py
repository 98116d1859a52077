"""Cutters by name."""

from __future__ import annotations

from collections.abc import Sequence

from equipoise.embed.model import Embedder
from equipoise.errors import ParameterError, UnknownNameError
from equipoise.tasks.extract.cut.base import Cutter
from equipoise.tasks.extract.cut.phrases import Phrases
from equipoise.tasks.extract.cut.rules import Conjunctions, Cues, Paragraphs, Punctuation, Sentences
from equipoise.tasks.extract.cut.semantic import SemanticWindows

RULES = {
    "paragraph": Paragraphs,
    "sentence": Sentences,
    "punctuation": Punctuation,
    "conjunction": Conjunctions,
    "cue": Cues,
    "phrase": Phrases,
}
SEMANTIC = "semantic"
CUTTERS: tuple[str, ...] = (*RULES, SEMANTIC)
"""The names of all ways to cut, from coarse to fine."""


def cutter(name: str | Cutter, embedder: Embedder | None = None) -> Cutter:
    """The cutter of a name; one that is made already is taken as it is.

    ``semantic`` needs a model that embeds.

    >>> cutter("sentence")
    <cutter sentence>
    """
    if not isinstance(name, str):
        return name
    if name in RULES:
        return RULES[name]()
    if name != SEMANTIC:
        raise UnknownNameError.of("chunker", name, CUTTERS, more=f"known: {', '.join(CUTTERS)}")
    if embedder is None:
        raise ParameterError(
            "semantic windows need a model that embeds, and there is none",
            hint="name a model that embeds, or cut by sentence, punctuation and conjunction",
        )
    return SemanticWindows(embedder)


def cutters(names: Sequence[str | Cutter], embedder: Embedder | None = None) -> tuple[Cutter, ...]:
    """The cutters of several names, coarse first, in the order given."""
    if isinstance(names, str):
        names = [part.strip() for part in names.split(",")]
    if not names:
        raise ParameterError("there is no chunker", hint=f"name some of {', '.join(CUTTERS)}")
    return tuple(cutter(name, embedder) for name in names)
