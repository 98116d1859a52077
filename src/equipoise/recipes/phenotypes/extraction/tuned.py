"""Parameters that a tuning chose, and the documents that chose them: a run on those is no test."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from equipoise.checks.catalogue import examine
from equipoise.checks.tuning import TunedSystem
from equipoise.data import typed
from equipoise.data.annotated import Annotated
from equipoise.data.jsontext import parse_json
from equipoise.data.text import PathLike, open_text
from equipoise.embed.trust import spec_from_file
from equipoise.errors import FormatError, ParameterError, UnknownNameError
from equipoise.ontology.ontology import Ontology
from equipoise.recipes.phenotypes.extraction.settings import ExtractionSettings
from equipoise.tasks.extract import Settings as Pipeline
from equipoise.tune.record import Tuning
from equipoise.types import Finding

TUNING = "extraction_tuning.json"
_CHOSEN: dict[str, Callable[[Any], Any]] = {
    each.name: type(getattr(Pipeline(), each.name)) for each in fields(Pipeline)
}
"""What a tuning chooses, and the types of it."""


@dataclass(frozen=True)
class TunedParameters:
    """What a tuning says to deploy for a model; ``documents`` are hashes of the texts that it chose on.

    ``parameters`` are what it chose, ``made_with`` the settings that all of its trials had (chunkers, vectors
    of the terms, mode): the thresholds are right for these alone. ``ontology`` is a fingerprint.
    """

    model: str
    parameters: Mapping[str, Any]
    tuning: Tuning
    documents: frozenset[str]
    made_with: Mapping[str, Any]
    ontology: str

    def settings(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The settings of a run with these parameters; a given one that says otherwise is refused."""
        own = {**self.made_with, **self.parameters}
        for name, value in given.items():
            if name in own and _plain(value) != _plain(own[name]):
                raise ParameterError(
                    f"{name} is {_said(value)} here, and {_said(own[name])} in the tuning",
                    hint="leave it out, tune with it, or give all parameters by name instead of the tuning",
                )
        return {**given, **own}

    def refuse_other(self, model: str, ontology: Ontology) -> None:
        """Thresholds are scores of one model over the terms of one ontology, and mean nothing elsewhere."""
        if model != self.model:
            raise ParameterError(
                f"the parameters were tuned for {self.model}, not for {model}", hint=f"tune {model} as well"
            )
        if ontology.fingerprint != self.ontology:
            raise ParameterError(
                f"the parameters were tuned over other terms than those of {ontology.title}",
                hint="tune again with this ontology, or name the one of the tuning with --ontology",
            )

    def findings(self, system: str, annotated: Annotated) -> tuple[Finding, ...]:
        """EQ201 where a document that is reported on had a say in the parameters."""
        if not self.documents & text_hashes(annotated):
            return ()
        return examine(TunedSystem(system, self.tuning, nested=False))


MADE_WITH = ("chunkers", "multi", "strategy", "include_assertions")
"""The settings of a tuning that its parameters depend on."""


def made_with(settings: ExtractionSettings) -> dict[str, Any]:
    """Those settings, as a record keeps them."""
    return {name: _plain(getattr(settings, name)) for name in MADE_WITH}


def text_hashes(annotated: Annotated) -> frozenset[str]:
    """What tells texts apart, whatever their ids are."""
    return frozenset(hashlib.sha256(each.text.encode()).hexdigest()[:24] for each in annotated.documents)


def read_tuned(path: PathLike, model: str | None = None, *, trust: bool = False) -> TunedParameters:
    """The parameters of a tuning that was written, of a model or of the one that it holds.

    A model that the caller does not name is taken from the file only where it runs no code and takes no
    credentials, or with ``trust``.
    """
    file = Path(path) / TUNING if Path(path).is_dir() else Path(path)
    content = parse_json(open_text(file))
    try:
        models = {each["model"]: each for each in content["models"]}
        documents = frozenset(content["documents"])
        shared = {name: content["made_with"][name] for name in MADE_WITH}
        if not isinstance(shared["strategy"], str):
            raise TypeError("strategy")
        ontology = content["ontology"]["fingerprint"]
        name = model if model is not None else spec_from_file(next(iter(models)), file, trust=trust)
    except (KeyError, TypeError, StopIteration) as error:
        raise _incomplete(file) from error
    if name not in models:
        raise UnknownNameError.of("tuned model", name, models, more=f"it holds {', '.join(models)}")
    found = models[name]
    try:
        shared["chunkers"] = tuple(map(typed.text, typed.items(shared["chunkers"])))
        tuning = Tuning.from_dict(found["tuning"])
        # A tuning chooses thresholds: nothing else of a run is taken from the file.
        best = {name: kind(found["best"][name]) for name, kind in _CHOSEN.items() if name in found["best"]}
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise _incomplete(file) from error
    return TunedParameters(name, best, tuning, documents, shared, ontology)


def _incomplete(file: Path) -> FormatError:
    return FormatError(
        f"{file} is no whole record of a tuning",
        hint=f"give a {TUNING} that this version of eq phenotypes extraction tune wrote",
    )


def _said(value: Any) -> str:
    return ", ".join(value) if isinstance(value, tuple | list) else str(value).lower()


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
