"""What a fixture must reach, and what it should."""

from __future__ import annotations

from dataclasses import dataclass, fields

from equipoise.errors import ParameterError


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Numbers of questions, and shares of them in percent.

    >>> Thresholds(min_hard_pct=130)
    Traceback (most recent call last):
    equipoise.errors.ParameterError: min_hard_pct is 130; a percentage lies between 0 and 100
    """

    min_questions: int = 50
    recommended_questions: int = 80
    min_multihop_pct: float = 10.0
    recommended_multihop_pct: float = 20.0
    min_hard_pct: float = 30.0
    recommended_hard_pct: float = 40.0

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            whole = not each.name.endswith("_pct")
            if isinstance(value, bool) or not isinstance(value, int if whole else (int, float)):
                kind = "a whole number" if whole else "a number"
                raise ParameterError(f"{each.name} is {value!r}; it must be {kind}")
            if whole and value < 0:
                raise ParameterError(f"{each.name} is {value}; it cannot be below 0")
            if not whole and not 0 <= value <= 100:
                raise ParameterError(
                    f"{each.name} is {value}; a percentage lies between 0 and 100",
                    hint="ten in a hundred are written as 10",
                )
