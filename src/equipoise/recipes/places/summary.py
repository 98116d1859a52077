"""What a meter says at the end of an epoch: every figure as a fraction, and in percent for people."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from equipoise.errors import UnknownNameError
from equipoise.recipes.places.figures import percent_view


@dataclass(frozen=True)
class PlaceSummary:
    """The figures of all rows that a meter has seen.

    ``fractions`` is keyed by the names of the field (acc@1, mrr, ndcg, f1, f1_macro, f1_micro);
    ``answerable`` holds the same for the rows whose target was seen in training, ``by_user`` the means over
    users of each user's mean. ``tied`` counts rows whose target shares its score with another class,
    ``tied_top`` those where several classes share the largest one. ``notes`` name the default cutoffs that
    were left out because there are fewer classes.
    """

    n: int
    classes: int
    fractions: Mapping[str, float]
    answerable: Mapping[str, float] | None = None
    answerable_n: int = 0
    by_user: Mapping[str, float] | None = None
    users: int = 0
    tied: int = 0
    tied_top: int = 0
    ignored: int = 0
    settings: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def __getitem__(self, name: str) -> float:
        """A figure as a fraction."""
        if name not in self.fractions:
            more = "; ".join((f"there are {', '.join(self)}", *self.notes))
            raise UnknownNameError.of("figure", name, self.fractions, more=more)
        return self.fractions[name]

    def __iter__(self) -> Any:
        return iter(self.fractions)

    @property
    def percent(self) -> dict[str, float]:
        """The figures in percent."""
        return percent_view(self.fractions)

    def __repr__(self) -> str:
        told = ", ".join(f"{name} {value:.2f} %" for name, value in self.percent.items())
        return f"<PlaceSummary: {self.n} rows, {self.classes} classes; {told}>"

    def to_dict(self) -> dict[str, Any]:
        """Plain values; the unit stands beside them."""
        return {
            "unit": "fraction",
            "n": self.n,
            "classes": self.classes,
            "fractions": dict(self.fractions),
            "answerable": None if self.answerable is None else dict(self.answerable),
            "answerable_n": self.answerable_n,
            "by_user": None if self.by_user is None else dict(self.by_user),
            "users": self.users,
            "tied": self.tied,
            "tied_top": self.tied_top,
            "ignored": self.ignored,
            "settings": dict(self.settings),
            "notes": list(self.notes),
        }
