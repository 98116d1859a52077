"""What tuning a system showed: every trial, what was chosen without seeing which units, and the frontier."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from equipoise.data import typed
from equipoise.stats.equality import nan_equal

NESTED = "nested "
"""How the metric of a nested figure begins; what a single trial scores is not nested."""

Value = str | int | float | bool | None
Params = Mapping[str, Value]


@nan_equal
@dataclass(frozen=True, slots=True)
class Trial:
    """One point of the grid, measured on all units.

    ``cost`` is what a unit takes at this point (retrieved tokens, where something is retrieved);
    ``reachable`` the share of units that could be right at all: whose answer no chunk border cuts in two.
    """

    params: Params
    value: float
    chance: float | None = None
    cost: float | None = None
    reachable: float | None = None


@nan_equal
@dataclass(frozen=True, slots=True)
class FoldChoice:
    """What was chosen on the other folds: its value there (``inner``), here (``outer``), on ``n`` units.

    With several splits, one entry stands for all folds that chose the same: ``times`` is their number,
    ``n`` is the number of units in them together, and both values are means over them.
    """

    params: Params
    inner: float
    outer: float
    n: int
    times: int = 1


@nan_equal
@dataclass(frozen=True, slots=True)
class Tuning:
    """The tuning of one system. Values are fractions.

    ``best`` and ``baseline`` are places in ``trials``; ``optimistic`` is the value of the best trial on the
    units that chose it, ``nested`` the value on units that had no say. ``frontier`` holds the trials that no
    cheaper one equals, cheapest first; ``within_budget`` is the place there of what ``budget`` affords.
    Without ``folds`` nothing is nested, and ``nested`` is NaN. ``tried`` says how many trials, from the first
    on, make up the grid; a baseline beyond them was measured and could not be chosen. ``nested`` is the mean
    over ``splits`` splits into folds, and ``split_sd`` the standard deviation of the score of one split.
    """

    metric: str
    trials: tuple[Trial, ...]
    best: int
    baseline: int | None
    optimistic: float
    nested: float
    folds: tuple[FoldChoice, ...]
    frontier: tuple[Trial, ...] = ()
    cost_unit: str = ""
    budget: float | None = None
    within_budget: int | None = None
    tried: int | None = None
    splits: int = 1
    split_sd: float | None = None

    @property
    def grid(self) -> tuple[Trial, ...]:
        """The trials that something was chosen from, affordable or not."""
        return self.trials[: self.tried]

    @property
    def affordable(self) -> tuple[Trial, ...]:
        """The trials of the grid that could be chosen: those within the budget."""
        if self.budget is None:
            return self.grid
        return tuple(trial for trial in self.grid if trial.cost is not None and trial.cost <= self.budget)

    @property
    def fold_count(self) -> int:
        """The number of folds of a split; 0 where nothing is nested."""
        return sum(choice.times for choice in self.folds) // self.splits

    @property
    def trial_metric(self) -> str:
        """What the value of a single trial is called."""
        return self.metric.removeprefix(NESTED)

    @property
    def gap(self) -> float:
        """How much better the tuned system looks on the units that tuned it."""
        return self.optimistic - self.nested

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Tuning:
        """The inverse of ``to_dict``; content of another shape raises ``KeyError`` or ``TypeError``.

        >>> trial = Trial({"top_k": 5}, 0.5)
        >>> chosen = FoldChoice({"top_k": 5}, 0.5, 0.5, 4, times=2)
        >>> tuning = Tuning("HR", (trial,), 0, None, 0.5, 0.5, (chosen,), splits=2, split_sd=0.1)
        >>> Tuning.from_dict(tuning.to_dict()) == tuning
        True
        """
        trials = tuple(map(_trial, typed.items(content["trials"])))
        frontier = tuple(map(_trial, typed.items(content["frontier"])))

        def place(name: str, among: tuple[Trial, ...], past: int = 0) -> int | None:
            value = content[name]
            return None if value is None else typed.integer(value, below=len(among) + past)

        return cls(
            typed.text(content["metric"]),
            trials,
            typed.integer(content["best"], below=len(trials)),
            place("baseline", trials),
            typed.real(content["optimistic"]),
            typed.real(content["nested"]),
            tuple(map(_choice, typed.items(content["folds"]))),
            frontier,
            typed.text(content["cost_unit"]),
            typed.optional(content["budget"]),
            place("within_budget", frontier),
            place("tried", trials, past=1),
            max(1, typed.integer(content["splits"])),
            typed.optional(content["split_sd"]),
        )


def _trial(content: Any) -> Trial:
    return Trial(
        typed.mapping(content["params"]),
        typed.real(content["value"]),
        *(typed.optional(content[name]) for name in ("chance", "cost", "reachable")),
    )


def _choice(content: Any) -> FoldChoice:
    return FoldChoice(
        typed.mapping(content["params"]),
        typed.real(content["inner"]),
        typed.real(content["outer"]),
        typed.integer(content["n"]),
        typed.integer(content["times"]),
    )
