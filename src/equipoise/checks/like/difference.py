"""What is known of a difference between two programs: the figures, the parts, the units, an example."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from equipoise.checks.like.conventions import CONVENTIONS, Conventions, Value
from equipoise.checks.like.example import Example


@dataclass(frozen=True)
class Side:
    """One of the two programs: its figure, and on how many units it rests."""

    name: str
    title: str
    call: str
    entry: str
    value: float
    n: int
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Apart:
    """A convention in which the two differ: its values, and what they mean."""

    convention: str
    title: str
    one: Value
    other: Value
    one_says: str
    other_says: str

    @classmethod
    def of(cls, name: str, one: Conventions, other: Conventions) -> Apart:
        """The convention of that name on either side.

        >>> Apart.of("norm", Conventions(), Conventions(norm="R")).other_says
        'average precision is over R'
        """
        convention = CONVENTIONS[name]
        said = convention.sentence(one[name]), convention.sentence(other[name])
        return cls(name, convention.title, one[name], other[name], *said)


@dataclass(frozen=True)
class Change:
    """What a convention does to the figure. ``share`` is its part of the difference; the parts add up.

    ``alone`` is what the change does to the first figure while all else stays, and ``units`` counts those
    whose value it moves when it is the first or the last of all changes.
    """

    convention: Apart
    share: float
    alone: float
    units: int


@dataclass(frozen=True)
class Idle:
    """A convention in which the two differ without any effect on this data, and why."""

    convention: Apart
    reason: str


@dataclass(frozen=True)
class UnitChange:
    """A unit before and after, NaN where a side leaves it out; ``because`` names what moves it."""

    unit: str
    one: float
    other: float
    because: tuple[str, ...]


@dataclass(frozen=True)
class Difference:
    """The whole answer: the two figures, what accounts for their difference, and where it happens."""

    metric: str
    one: Side
    other: Side
    changes: tuple[Change, ...]
    idle: tuple[Idle, ...]
    units: tuple[UnitChange, ...]
    changed_units: int
    example: Example | None
    method: str

    @property
    def value(self) -> float:
        """The second figure minus the first."""
        return self.other.value - self.one.value

    def __repr__(self) -> str:
        parts = ", ".join(f"{change.convention.convention} {change.share:+.4g}" for change in self.changes)
        sides = f"{self.one.name} {self.one.value:.4g}, {self.other.name} {self.other.value:.4g}"
        return f"<Difference {self.metric}: {sides}; {parts or 'no convention matters'}>"

    def to_dict(self) -> dict[str, Any]:
        """Plain values; a unit that a side leaves out has NaN there."""
        content = asdict(self)
        for each in (*content["changes"], *content["idle"]):
            each |= each.pop("convention")
        return {"metric": content.pop("metric"), "difference": self.value, **content}
