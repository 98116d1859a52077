"""A cluster that goes away: what Ray raises then, which is many things, becomes one error of ours."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from equipoise.errors import PartialError

AGAIN = "everything finished is kept: the same command goes on"


@contextmanager
def reaching(ray: Any) -> Iterator[None]:
    """Calls of Ray and nothing else; raises ``PartialError`` where the connection is lost.

    A closed channel is a ValueError there, a dead raylet an OSError, and a client that was cut off in the
    middle fails an assertion. What a task raises, and what is said of one lost worker, passes.
    """
    told = ray.exceptions
    try:
        yield
    except (told.RayTaskError, *lost_alone(ray)):
        raise
    except (OSError, ValueError, AssertionError, RuntimeError, told.RayError) as error:
        raise PartialError(f"the Ray cluster went away: {reason(error)}", hint=AGAIN) from error


def lost_alone(ray: Any) -> tuple[type[Exception], ...]:
    """What Ray says of one worker, one node or one value that is gone."""
    told = ray.exceptions
    return (told.WorkerCrashedError, told.NodeDiedError, told.ObjectLostError, told.OutOfMemoryError)


def cancel(ray: Any, references: Any) -> None:
    """End tasks that nobody waits for. Never connects: Ray's own call begins a cluster where none is left."""
    for reference in references:
        with suppress(Exception):  # whatever it is, something better is being raised already
            if ray.is_initialized():
                ray.cancel(reference, force=True)


def quieten() -> None:
    """Keep Ray's own warnings of lost connections from standard error: we say them in one sentence."""
    for name in [*logging.root.manager.loggerDict]:  # some of its modules have a level of their own
        if name.partition(".")[0] == "ray":
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)


def reason(error: Exception) -> str:
    """What Ray says in several lines, in one; of a traceback, its last."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    return (lines[-1] if any("Traceback" in line for line in lines) else " ".join(lines))[:300]


def first_line(error: Exception) -> str:
    """The first sentence of what Ray says."""
    said = str(error).strip() or type(error).__name__
    return said.splitlines()[0].partition(". ")[0]
