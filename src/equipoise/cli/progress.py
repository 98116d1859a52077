"""A bar for long work: how much is done, how fast, and how long it will take."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from equipoise.cli.output import Output


@contextmanager
def counting(out: Output, what: str, total: int) -> Iterator[Callable[[int], None]]:
    """Yields a function that takes how many are done; silent unless someone watches."""
    if out.quiet or not sys.stderr.isatty():
        yield lambda done: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, TextColumn
    from rich.progress import Task as Work
    from rich.progress import TimeRemainingColumn as Remaining
    from rich.text import Text

    from equipoise.report.terminal import console

    class Rate(ProgressColumn):
        """Units a second."""

        def render(self, task: Work) -> Text:
            """The rate, once it is known."""
            speed = task.finished_speed or task.speed
            return Text("" if speed is None else f"{speed:,.0f} a second")

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), Rate(), Remaining())
    with Progress(*columns, console=console(sys.stderr), transient=True) as bar:
        task = bar.add_task(what, total=total)
        yield lambda done: bar.update(task, completed=done)
