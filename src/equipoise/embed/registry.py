"""From a spec to a loaded model, through the adapter of its kind."""

from __future__ import annotations

from importlib import import_module

from equipoise.embed.encoder import Encoder
from equipoise.embed.kinds import REGISTRY, Kind
from equipoise.embed.spec import Spec
from equipoise.errors import ParameterError, did_you_mean

__all__ = ["REGISTRY", "SHARED_OPTIONS", "Kind", "load_encoder"]

SHARED_OPTIONS = (
    "dim", "dtype", "normalize", "query_prompt", "document_prompt", "threads", "processes",
)  # fmt: skip
"""Options that every encoder has, since the Embedder and not the adapter answers to them."""


def load_encoder(spec: Spec) -> Encoder:
    """Load the model that a spec names, through its adapter's ``load(spec)``.

    An adapter lists its own options in ``OPTIONS``; any other is refused with a did-you-mean.
    """
    kind = REGISTRY[spec.kind]
    if not kind.module:
        raise ParameterError(
            f"{spec.text or spec} makes rankings, not vectors",
            hint=f"use retriever({spec.text or str(spec)!r}), or a model that embeds",
        )
    module = import_module(f"equipoise.embed.adapters.{kind.module}")
    own = getattr(module, "OPTIONS", None)
    if own is not None:
        _refuse_unknown(spec, (*SHARED_OPTIONS, *own))
        spec.check_values()
    encoder: Encoder = module.load(spec)
    return encoder


def _refuse_unknown(spec: Spec, known: tuple[str, ...]) -> None:
    for option in spec.options:
        if option not in known:
            hint = did_you_mean(option, known) or f"the options are {', '.join(sorted(known))}"
            raise ParameterError(f"{spec.kind}: has no option {option!r}", hint=hint)
