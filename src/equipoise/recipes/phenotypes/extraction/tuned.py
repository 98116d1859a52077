"""Parameters that a tuning chose, and the documents that chose them: a run on those is no test."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from equipoise.checks.catalogue import examine
from equipoise.checks.tuning import TunedSystem
from equipoise.data.annotated import Annotated
from equipoise.data.jsontext import parse_json
from equipoise.data.text import PathLike, open_text
from equipoise.errors import FormatError, UnknownNameError
from equipoise.tune.record import Tuning
from equipoise.types import Finding

TUNING = "extraction_tuning.json"


@dataclass(frozen=True)
class TunedParameters:
    """What a tuning says to deploy for a model; ``documents`` are hashes of the texts that it chose on."""

    model: str
    parameters: Mapping[str, Any]
    tuning: Tuning
    documents: frozenset[str]

    def findings(self, system: str, annotated: Annotated) -> tuple[Finding, ...]:
        """EQ201 where a document that is reported on had a say in the parameters."""
        if not self.documents & text_hashes(annotated):
            return ()
        return examine(TunedSystem(system, self.tuning, nested=False))


def text_hashes(annotated: Annotated) -> frozenset[str]:
    """What tells texts apart, whatever their ids are."""
    return frozenset(hashlib.sha256(each.text.encode()).hexdigest()[:24] for each in annotated.documents)


def read_tuned(path: PathLike, model: str | None = None) -> TunedParameters:
    """The parameters of a tuning that was written, of a model or of the one that it holds."""
    file = Path(path) / TUNING if Path(path).is_dir() else Path(path)
    content = parse_json(open_text(file))
    try:
        models = {each["model"]: each for each in content["models"]}
        documents = frozenset(content["documents"])
    except (KeyError, TypeError) as error:
        raise FormatError(
            f"{file} is no record of a tuning", hint=f"give a {TUNING} of eq phenotypes extraction tune"
        ) from error
    name = model if model is not None else next(iter(models))
    if name not in models:
        raise UnknownNameError.of("tuned model", name, models, more=f"it holds {', '.join(models)}")
    found = models[name]
    return TunedParameters(name, found["best"], Tuning.from_dict(found["tuning"]), documents)
