"""Options of training that several commands share, and what they are called in Python."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, get_args

import click

from equipoise.cli import options
from equipoise.cli.output import Output
from equipoise.extras import install_command

if TYPE_CHECKING:
    from equipoise.recipes.accounts.settings import Settings

device_option = click.option(
    "--device", metavar="NAME", help="Train hyperbolic embeddings and rank there: cuda, cuda:1, cpu."
)


relations = options.names_in("equipoise.hierarchy.tree", "RELATIONS")


def negatives() -> list[str]:
    """How strangers may be drawn."""
    from equipoise.hierarchy.riemann.schedule import Aim

    return list(get_args(Aim))


def training_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """How long and against whom embeddings are trained."""
    decorated = command
    for option in reversed(_OPTIONS):
        decorated = option(decorated)
    return decorated


def schedule_of(
    epochs: int | None, burn_in: int | None, negatives: str | None, train_on: str | None
) -> dict[str, Any]:
    """The options that were given, by the names of ``Schedule``."""
    given = {"epochs": epochs, "burn_in": burn_in, "aim": negatives, "train_on": train_on}
    return {name: value for name, value in given.items() if value is not None}


def tell_where(out: Output, settings: Settings) -> None:
    """Say which embeddings are trained on the processor although a device was named."""
    cells = settings.cells if settings.device is not None else ()
    staying = [each.system for each in cells if each.is_trained and not settings.is_on_device(each)]
    if staying:
        out.note(f"trained on the processor, and ranked on {settings.device}: {', '.join(staying)}")


def tell_engine(out: Output, names: Iterable[str]) -> None:
    """Say where hyperbolic embeddings could be trained better: stages need numba."""
    from equipoise.hierarchy.riemann.schedule import Schedule
    from equipoise.hierarchy.riemann.train import engine_of
    from equipoise.recipes.accounts.on_device import THERE

    if any(name in THERE for name in names) and engine_of(Schedule()) == "numpy":
        out.note(
            "without numba hyperbolic embeddings are trained by one plain descent, which is slower and does "
            f"less well in few dimensions: {install_command('fast')}"
        )


_OPTIONS: tuple[options.Decorator, ...] = (
    click.option("--epochs", type=click.IntRange(min=1), help="Epochs of training at most."),
    click.option(
        "--burn-in",
        type=click.IntRange(min=0),
        metavar="EPOCHS",
        help="Epochs at the beginning at a tenth of the rate.",
    ),
    click.option(
        "--negatives",
        type=options.OneOf("way to draw negatives", negatives),
        help="How strangers are drawn: alike, by degree, or of a node's depth.",
    ),
    click.option(
        "--train-on",
        type=options.OneOf("relation", relations),
        help="Whom training draws near to each node: parent, ancestors or closure. [as --relation]",
    ),
)
