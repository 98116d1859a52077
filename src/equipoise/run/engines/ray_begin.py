"""The first lines that run on a worker: they need nothing but Ray, so that a node without us can say so."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from equipoise.run.engines.ray_worker import Answer

Begin = Callable[[bytes, bytes, bytes], tuple[str, str, "Answer | str"]]
"""A pickled cell, what is shared, and surroundings; gives the node's id and name, and what came of it."""


class Told(NamedTuple):
    """What came back of a cell, and from which node."""

    node: str
    """Its id, by which Ray knows it."""
    host: str
    answer: Answer | str
    """A sentence, where the node could not even begin."""


def begin_anywhere() -> Begin:
    """The function that begins a cell; it stands in no module, so that it travels as it is written here.

    A function of a module would be looked up there, and a worker that lacks the module only dies of it,
    without a word on which node that was.
    """

    def begin(sent: bytes, held: bytes, typed: bytes) -> tuple[str, str, Answer | str]:
        import platform

        import ray

        node, host = ray.get_runtime_context().get_node_id(), platform.node()
        try:
            from equipoise.run.engines.ray_worker import answer
        except Exception as error:  # an installation may be broken in any way
            return node, host, f"{type(error).__name__}: {error}"
        return node, host, answer(sent, held, typed)

    return begin
