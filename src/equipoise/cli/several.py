"""Options that take several values after their name: ``--models minilm bm25: hash``.

click parses one value an option, or a fixed number of them. Here an option takes the words up to the next
option; it may also be repeated, and, where a comma is no part of a value, hold a list with commas.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click
from click.shell_completion import CompletionItem

_OPEN = "equipoise.cli.several"
"""Where a context keeps the option that the last word belongs to, for the completion of the next one."""


class Several(click.Option):
    """An option with one value or more; ``commas`` says whether a value may be a list of them."""

    def __init__(self, *args: Any, commas: bool = False, **options: Any) -> None:
        super().__init__(*args, **{**options, "multiple": True})
        self.commas = commas

    def add_to_parser(self, parser: Any, ctx: click.Context) -> None:
        """Let the parser go on taking words for this option."""
        super().add_to_parser(parser, ctx)
        # click has no public way to a parser's options; these tables are there in all versions since 2.0.
        for option in {*parser._long_opt.values(), *parser._short_opt.values()}:
            if option.obj is self:
                option.process = self._taking(option.process, ctx)

    def type_cast_value(self, ctx: click.Context, value: Any) -> Any:
        """The values, lists with commas taken apart."""
        if self.commas and value and not isinstance(value, str):
            value = [part for word in value for part in _parts(word)]
        return super().type_cast_value(ctx, value)

    def _taking(self, process: Callable[[Any, Any], None], ctx: click.Context) -> Callable[[Any, Any], None]:
        def take(value: Any, state: Any) -> None:
            process(value, state)
            while state.rargs and not _is_option(state.rargs[0]):
                process(state.rargs.pop(0), state)
            ctx.meta[_OPEN] = None if state.rargs else self

        return take


class SeveralCommand(click.Command):
    """A command that completes the second and further values of an option as it does the first."""

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Options, or what the option before the cursor takes."""
        option = ctx.meta.get(_OPEN)
        if isinstance(option, Several) and not _is_option(incomplete):
            return option.shell_complete(ctx, incomplete)
        return super().shell_complete(ctx, incomplete)


def _is_option(word: Any) -> bool:
    """Whether a word is the name of an option, or the end of all; a dash alone is standard input."""
    return isinstance(word, str) and len(word) > 1 and word.startswith("-")


def _parts(word: Any) -> list[Any]:
    """A list with commas taken apart.

    >>> _parts("256,512,"), _parts(256)
    (['256', '512'], [256])
    """
    return [part for part in word.split(",") if part] if isinstance(word, str) else [word]
