"""What a page is about: the runs, best first, and the comparison of them where there is more than one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from equipoise.errors import ParameterError
from equipoise.run.store import StoredRun
from equipoise.stats.comparison import Comparison
from equipoise.stats.pairing import Pairing, pair_results
from equipoise.stats.result import Estimate
from equipoise.types import Direction, Finding, Floats

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


@dataclass(frozen=True)
class Subject:
    """The runs in the order of the page, the metrics that all of them have, and the one that decides."""

    runs: tuple[StoredRun, ...]
    comparison: Comparison | None
    metrics: tuple[str, ...]

    @classmethod
    def of(cls, runs: Sequence[StoredRun], comparison: Comparison | None) -> Subject:
        """Put the runs in order; the comparison, where there is one, must be of these runs."""
        if not runs:
            raise ParameterError("a report needs at least one run", hint="name a run directory")
        if comparison is None:
            return cls._alone(runs)
        named = {run.result.system: run for run in runs}
        if set(named) != set(comparison.systems) or len(named) != len(runs):
            raise ParameterError(
                f"the comparison is of {', '.join(comparison.systems)}, and the runs of {', '.join(named)}",
                hint="compare the results of exactly these runs",
            )
        others = [name for name in comparison.metrics if name != comparison.primary]
        return cls(tuple(named[name] for name in comparison.order), comparison, (comparison.primary, *others))

    @classmethod
    def _alone(cls, runs: Sequence[StoredRun]) -> Subject:
        if len(runs) > 1:
            raise ParameterError(
                f"there are {len(runs)} runs and no comparison of them", hint="compare their results first"
            )
        if not runs[0].result.names:
            raise ParameterError(
                f"the run of {runs[0].result.system} has no metric", hint="score it: eq score -o FOLDER"
            )
        return cls(tuple(runs), None, runs[0].result.names)

    @property
    def primary(self) -> str:
        """The metric that decides the order."""
        return self.metrics[0]

    @property
    def better(self) -> Direction:
        """Which way is better on the primary metric."""
        return self.estimates(self.primary)[0].better

    @property
    def names(self) -> tuple[str, ...]:
        """The systems, best first."""
        return tuple(run.result.system for run in self.runs)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Everything that was found about the runs, and about comparing them."""
        if self.comparison is not None:
            return self.comparison.findings
        return self.runs[0].result.findings

    @property
    def units(self) -> list[str | int]:
        """The ids of all units, in the order of the first run."""
        ids: list[str | int] = self.runs[0].result.unit_ids.tolist()
        return ids

    def estimates(self, metric: str) -> list[Estimate]:
        """The figure of every system on a metric."""
        if self.comparison is None:
            return [self.runs[0].result.estimates[metric]]
        return [self.comparison.estimates[name][metric] for name in self.names]

    def per_unit(self, metric: str) -> Floats | None:
        """Values of every unit and system, shape (units, systems); None for a metric of the whole."""
        if any(metric not in run.result.per_unit for run in self.runs):
            return None
        if self._pairing is None:
            return np.asarray(self.runs[0].result.per_unit[metric], dtype=np.float64)[:, np.newaxis]
        return self._pairing.per_unit(metric)

    @cached_property
    def _pairing(self) -> Pairing | None:
        return pair_results([run.result for run in self.runs]) if len(self.runs) > 1 else None


def letter(place: int) -> str:
    """A name for the system at this place that fits anywhere.

    >>> letter(0), letter(27)
    ('A', 'B2')
    """
    turn, at = divmod(place, len(LETTERS))
    return LETTERS[at] + (str(turn + 1) if turn else "")
