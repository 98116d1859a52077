"""The engines by name."""

from __future__ import annotations

from equipoise.errors import ParameterError, UnknownNameError
from equipoise.run.engines.base import Engine
from equipoise.run.engines.local import LocalEngine

ENGINES = ("local", "ray")


def engine(name: str = "local", address: str | None = None) -> Engine:
    """The engine of a name, to be used with ``with``; the address is that of a cluster.

    >>> engine().place
    'this process'
    """
    if name not in ENGINES:
        raise UnknownNameError.of("engine", name, ENGINES, more=f"choose one of {', '.join(ENGINES)}")
    if name == "ray":
        from equipoise.run.engines.ray import RayEngine

        return RayEngine(address)
    if address is not None:
        raise ParameterError(
            f"the address {address} is of no use to the engine local, which stays in this process",
            hint=f"--engine ray --address {address} runs on that cluster",
        )
    return LocalEngine()
