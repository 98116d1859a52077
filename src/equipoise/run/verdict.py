"""One answer of a gate."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether one thing that was asked holds, in a sentence; None is what was not computed.

    ``about`` is what was asked: a minimum, a regression, or the state of a run. ``bound`` is the end of an
    interval that was compared, ``difference`` the gain over a baseline (negative: a loss).
    """

    passed: bool
    sentence: str
    about: str
    metric: str | None = None
    value: float | None = None
    bound: float | None = None
    difference: float | None = None
    p: float | None = None
    n: int | None = None
