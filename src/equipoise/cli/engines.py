"""Where the work of a command runs: the options, and what is said of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial, wraps
from typing import TYPE_CHECKING, Any

import click

from equipoise.cli import options
from equipoise.cli.output import Output

if TYPE_CHECKING:
    from equipoise.embed.elsewhere import Spread
    from equipoise.run.engines.base import Engine

engines = options.names_in("equipoise.run.engines.choose", "ENGINES")


def engine_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """``--engine`` and ``--address``; the command gets one ``engine`` of both."""

    @wraps(command)
    def collected(*args: Any, engine: str, address: str | None, **others: Any) -> Any:
        from equipoise.run.engines.choose import engine as chosen

        return command(*args, engine=chosen(engine, address), **others)

    address = click.option(
        "--address", metavar="ADDRESS", help="The Ray cluster: ray://head:10001, or host:6379 inside it."
    )
    where = options.one_of("--engine", "engine", engines, "local", "Where the work runs.")
    return where(address(collected))


def spread_over(engine: Engine, *, cores: int = 1) -> Spread | None:
    """How texts are embedded on the engine; None for this process, which embeds them where they are."""
    return None if engine.name == "local" else partial(engine.as_finished, cores=cores)


@contextmanager
def running(engine: Engine, out: Output, unit: str = "a piece of the work") -> Iterator[Engine]:
    """The engine at work; says where that is, and what is lost on the way. ``unit`` is what a cell is."""
    engine.unit, engine.tell = unit, out.note
    with engine:
        if engine.name != "local":
            out.note(f"running on {engine.place}")
        try:
            yield engine
        finally:
            _tell_of_cache(out)


def _tell_of_cache(out: Output) -> None:
    """Warn where vectors could not be kept, such as on a full disk: the next run makes them again."""
    from equipoise.embed.cache.cache import Cache

    kept = Cache.default()
    for trouble in kept.troubles if kept is not None else ():
        out.note(f"warning: {trouble.subject}: {trouble.sentence}; {trouble.remedy}")
