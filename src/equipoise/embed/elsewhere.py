"""Blocks of texts embedded elsewhere: the model is loaded where the texts arrive, and the vectors come back.

What runs the function, the processes of a cluster or anything else that maps, is handed in. The blocks are
those that this process would make, so the vectors are the same.
"""

from __future__ import annotations

import pickle
import platform
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

from equipoise.embed.encoder import Encoder
from equipoise.embed.local.encoder import Encoded, encode_counted
from equipoise.embed.registry import load_encoder
from equipoise.embed.spec import Spec
from equipoise.errors import EquipoiseError, MissingExtraError
from equipoise.types import Role

if TYPE_CHECKING:
    from equipoise.embed.model import Embedder

Spread = Callable[[Callable[[Any], Any], Sequence[Any]], Iterator[tuple[int, Any]]]
"""Applies a pure function to every item; gives the place of an item and its answer as they are finished."""


def encode_elsewhere(
    model: Embedder, blocks: Sequence[list[str]], role: Role, over: Spread
) -> Iterator[tuple[int, Encoded]]:
    """The number of a block and its vectors, in the order in which they come back.

    A model that was named is loaded there by its name; one in hand travels.
    """
    spec, encoder = model.spec, model.encoder
    if spec.text:
        options = {name: value for name, value in spec.options.items() if name != "processes"}
        alone = Spec(spec.kind, spec.name, options, spec.text)
        identity = encoder.identity if encoder.cacheable else ""
        work = partial(encode_named, pickle.dumps(alone), identity, role)
    else:
        work = partial(encode_block, encoder, role)
    return over(work, blocks)


def encode_named(packed: bytes, identity: str, role: Role, texts: list[str]) -> Encoded:
    """A block by the model of a spec, when it is the very one that the texts were sent for.

    A model that does not say which one it is (an identity of "") is taken as it comes.
    """
    try:
        encoder = _loaded(packed)
    except EquipoiseError as error:  # it was loaded where the command was typed, so something is absent here
        raise MissingExtraError(
            f"the node {platform.node()} cannot load the model: {error.sentence}",
            hint="install the same packages and models on every node",
        ) from error
    if identity and encoder.identity != identity:
        raise MissingExtraError(
            f"{encoder.card.name} on the node {platform.node()} is another than where the command was typed",
            hint="install the same version of the model on every node",
        )
    return encode_block(encoder, role, texts)


def encode_block(encoder: Encoder, role: Role, texts: list[str]) -> Encoded:
    """A block by a loaded model."""
    return encode_counted(encoder, texts, role)


@lru_cache(maxsize=1)
def _loaded(packed: bytes) -> Encoder:
    """The model of a spec, loaded once a process."""
    return load_encoder(pickle.loads(packed))
