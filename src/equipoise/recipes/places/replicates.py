"""Models that were trained several times, with one seed each: what holds over seeds, and what over users."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np

from equipoise.checks.base import listed
from equipoise.errors import PairingError, ParameterError
from equipoise.metrics.parse import parse
from equipoise.recipes.places.users import user_means
from equipoise.report.replicates import PairRow, SeedsEdition, SystemRow, verdicts
from equipoise.stats.comparison import Comparison, compare_results
from equipoise.stats.family import CORRECTIONS, adjust
from equipoise.stats.interval import Bounds
from equipoise.stats.pairing import Pairing, pair_results
from equipoise.stats.result import Result
from equipoise.stats.seeds import SeedContrast, compare_seeds, summarise_seeds
from equipoise.stats.tabled import result_of_values
from equipoise.types import Floats

Replicates = Mapping[str, Result]
"""The results of one model by seed."""


@dataclass(frozen=True)
class Settings:
    """How sure is sure."""

    correction: str = "holm"
    level: float = 0.95
    flips: int = 10_000
    resamples: int = 2000
    seed: int = 0


@dataclass(frozen=True)
class SeedComparison:
    """Models over seeds and over users.

    ``pooled`` are the results averaged over seeds unit by unit, whose intervals resample whole users;
    ``by_user`` the same with every user counted alike. ``over_users`` compares the latter by the
    randomisation test. Metrics that are no means over units, such as F1, are compared over seeds alone.
    """

    edition: SeedsEdition
    pooled: Mapping[str, Result]
    by_user: Mapping[str, Result]
    over_users: Comparison | None

    @property
    def rows(self) -> tuple[SystemRow, ...]:
        """Each system on each metric."""
        return self.edition.rows

    @property
    def pairs(self) -> tuple[PairRow, ...]:
        """Each pair of systems on each metric."""
        return self.edition.pairs

    def pair(self, a: str, b: str, metric: str) -> PairRow:
        """System ``a`` against system ``b`` as they were lined up, on a metric under any of its names."""
        (name,) = (each.name for each in parse(metric))
        for row in self.pairs:
            if (row.metric, row.a, row.b) == (name, a, b):
                return row
        raise ParameterError(
            f"there is no pair {a}, {b} on {metric}",
            hint=f"the first pair is {self.pairs[0].a}, {self.pairs[0].b} on {self.pairs[0].metric}",
        )

    def verdict(self) -> str:
        """A sentence for each pair on the primary metric."""
        return " ".join(verdicts(self.edition))

    def __repr__(self) -> str:
        systems = list(dict.fromkeys(row.system for row in self.rows))
        return (
            f"<SeedComparison of {listed(systems)}: {self.edition.seeds} seeds, {self.edition.units} units>"
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values: fractions, with the reason where there is no number."""
        edition = self.edition
        return {
            "unit": "fraction",
            "units": edition.units,
            "people": edition.people,
            "people_count": edition.people_count,
            "seeds": edition.seeds,
            "primary": edition.primary,
            "family": edition.family,
            "systems": [_system(row) for row in edition.rows],
            "pairs": [_pair(row) for row in edition.pairs],
            "verdict": self.verdict(),
            "notes": list(edition.notes),
        }


def compare_replicates(
    models: Mapping[str, Replicates],
    *,
    metrics: Sequence[str] | None = None,
    primary: str | None = None,
    settings: Settings | None = None,
) -> SeedComparison:
    """Compare models that were trained with several seeds each, on the same units.

    Seeds are paired by their names where the models have the same ones, else by their order, with a note. All
    results must be of the same units; their clusters are the users.
    """
    settings = settings or Settings()
    adjust([], settings.correction)
    if len(models) < 2:
        raise ParameterError(
            f"a comparison needs at least two models; {len(models)} was given", hint="add another one"
        )
    lined_up, notes = pair_seeds(models)
    pairing = pair_results(
        [
            replace(result, system=f"{model} {seed}")
            for model, own in lined_up.items()
            for seed, result in own.items()
        ]
    )
    names = _metrics(pairing.results, metrics, primary)
    pooled = _pooled(lined_up, pairing, names, settings)
    by_user = _by_user(pooled, settings)
    flips, t = (_compared(by_user, test, settings) for test in ("randomisation", "t"))
    seeds = len(next(iter(lined_up.values())))
    edition = SeedsEdition(
        rows=tuple(
            _row(name, model, lined_up[model], pooled, by_user, settings)
            for name in names
            for model in lined_up
        ),
        pairs=tuple(row for name in names for row in _pairs(name, lined_up, flips, t, settings)),
        primary=names[0],
        units=len(pairing),
        people="units" if pairing.clusters is None else "users",
        people_count=len(pairing) if pairing.clusters is None else len(set(pairing.clusters.tolist())),
        seeds=seeds,
        family=_family(len(models), settings.correction),
        level=settings.level,
        notes=tuple(notes),
    )
    return SeedComparison(edition, pooled, by_user, flips)


def pair_seeds(models: Mapping[str, Replicates]) -> tuple[dict[str, dict[str, Result]], list[str]]:
    """The results of all models under the seeds of the first, and what had to be assumed for that."""
    (first, own), *others = models.items()
    if not own:
        raise ParameterError(f"{first} has no results", hint="give one result a seed")
    lined_up, notes = {first: dict(own)}, []
    for model, results in others:
        if len(results) != len(own):
            raise PairingError(
                f"{first} was run with {len(own)} seeds ({listed(list(own))}) and {model} with "
                f"{len(results)} ({listed(list(results))})",
                hint="the tests are paired: run both with every seed, or leave the odd ones out",
            )
        if set(results) == set(own):
            lined_up[model] = {seed: results[seed] for seed in own}
            continue
        lined_up[model] = dict(zip(own, results.values(), strict=True))
        if len(own) > 1:
            pairs = [f"{one} with {other}" for one, other in zip(own, results, strict=True)]
            notes.append(
                f"{first} and {model} name their seeds differently, so they are paired in the order given: "
                f"{listed(pairs)}."
            )
    return lined_up, notes


def _metrics(results: Sequence[Result], asked: Sequence[str] | None, primary: str | None) -> list[str]:
    """The metrics that every result has, the primary one first."""
    shared = [name for name in results[0].names if all(name in each.names for each in results)]
    if asked:
        wanted = [results[0][name].metric for name in asked]
        lacking = [name for name in wanted if name not in shared]
        if lacking:
            raise ParameterError(
                f"not every seed was scored with {lacking[0]}", hint=f"all have {listed(shared)}"
            )
        shared = list(dict.fromkeys(wanted))
    if not shared:
        raise ParameterError("the results share no metric", hint="score every seed with the same metrics")
    lead = shared[0] if primary is None else results[0][primary].metric
    return list(dict.fromkeys([lead, *shared]))


def _pooled(
    lined_up: Mapping[str, Replicates], pairing: Pairing, names: Sequence[str], settings: Settings
) -> dict[str, Result]:
    """One result a model: every unit's mean over seeds, where a metric has values of units at all."""
    means = [name for name in names if pairing.has_parts(name)]
    if not means:
        return {}
    columns = {name: pairing.per_unit(name) for name in means}
    pooled, start = {}, 0
    for model, own in lined_up.items():
        part = slice(start, start + len(own))
        start += len(own)
        values = {name: _clipped(column[:, part].mean(axis=1)) for name, column in columns.items()}
        pooled[model] = result_of_values(
            model,
            pairing.results[0].unit_ids,
            values,
            clusters=pairing.clusters,
            level=settings.level,
            resamples=settings.resamples,
            seed=settings.seed,
        )
    return pooled


def _clipped(values: Floats) -> Floats:
    """Means of fractions, without what rounding adds beyond 1."""
    return np.clip(values, 0.0, 1.0)


def _by_user(pooled: Mapping[str, Result], settings: Settings) -> dict[str, Result]:
    """Every user's mean as a unit of its own; without users, the units themselves."""
    found = {}
    for model, result in pooled.items():
        if result.clusters is None:
            found[model] = result
            continue
        users, means = user_means(dict(result.per_unit), result.clusters)
        found[model] = result_of_values(
            model,
            users,
            {name: _clipped(values) for name, values in means.items()},
            level=settings.level,
            resamples=settings.resamples,
            seed=settings.seed,
        )
    return found


def _compared(results: Mapping[str, Result], test: str, settings: Settings) -> Comparison | None:
    if not results:
        return None
    return compare_results(
        list(results.values()),
        test=test,
        correction=settings.correction,
        level=settings.level,
        flips=settings.flips,
        resamples=settings.resamples,
        seed=settings.seed,
    )


def _row(
    name: str,
    model: str,
    own: Replicates,
    pooled: Mapping[str, Result],
    by_user: Mapping[str, Result],
    settings: Settings,
) -> SystemRow:
    figures = [result.estimates[name].value for result in own.values()]
    summary = summarise_seeds(figures, level=settings.level, bounds=_bounds(name))
    parts = (found[model].estimates.get(name) if found else None for found in (pooled, by_user))
    return SystemRow(name, model, summary, *parts)


def _pairs(
    name: str,
    lined_up: Mapping[str, Replicates],
    flips: Comparison | None,
    t: Comparison | None,
    settings: Settings,
) -> list[PairRow]:
    """All pairs on one metric; what they are corrected for is this family."""
    figures: dict[str, dict[Hashable, float]] = {
        model: {seed: result.estimates[name].value for seed, result in own.items()}
        for model, own in lined_up.items()
    }
    couples = list(combinations(lined_up, 2))
    found: list[SeedContrast] = [
        compare_seeds(
            figures[a],
            figures[b],
            level=settings.level,
            flips=settings.flips,
            bounds=_bounds(name),
            seed=settings.seed,
        )
        for a, b in couples
    ]
    p, p_flips = (
        adjust([getattr(each, field) for each in found], settings.correction) for field in ("p", "p_flips")
    )
    better = next(iter(next(iter(lined_up.values())).values())).estimates[name].better
    return [
        PairRow(
            name,
            a,
            b,
            better,
            contrast,
            float(p[at]),
            float(p_flips[at]),
            *(over.contrast(a, b, name) if over and name in over.metrics else None for over in (t, flips)),
        )
        for at, ((a, b), contrast) in enumerate(zip(couples, found, strict=True))
    ]


def _bounds(name: str) -> Bounds:
    return parse(name)[0].bounds


def _family(models: int, correction: str) -> str:
    if models == 2 or correction == "none":
        return "one pair a metric, nothing to correct for" if models == 2 else "p values are not corrected"
    pairs = models * (models - 1) // 2
    return f"{CORRECTIONS[correction][1]} over the {pairs} pairs of each metric and test"


def _system(row: SystemRow) -> dict[str, Any]:
    return {
        "metric": row.metric,
        "system": row.system,
        "values": list(row.seeds.values),
        "mean": row.seeds.mean,
        "deviation": row.seeds.deviation,
        "seeds": row.seeds.seeds,
        "reason": row.seeds.interval.reason,
        "pooled": None if row.pooled is None else row.pooled.to_dict(),
        "by_user": None if row.by_user is None else row.by_user.to_dict(),
    }


def _pair(row: PairRow) -> dict[str, Any]:
    return {
        "metric": row.metric,
        "a": row.a,
        "b": row.b,
        "seeds": {
            "difference": row.seeds.difference,
            "deviation": row.seeds.differences.deviation,
            "low": row.seeds.interval.low,
            "high": row.seeds.interval.high,
            "t_p": row.seeds.p,
            "t_adjusted_p": row.p_seeds,
            "flips_p": row.seeds.p_flips,
            "flips_adjusted_p": row.p_seed_flips,
            "reason": row.seeds.reason,
        },
        "users": None
        if row.flips is None or row.t is None
        else {
            "difference": row.flips.difference,
            "low": row.flips.interval.low,
            "high": row.flips.interval.high,
            "n": row.flips.n,
            "t_p": row.t.p,
            "t_adjusted_p": row.t.adjusted,
            "flips_p": row.flips.p,
            "flips_adjusted_p": row.flips.adjusted,
        },
    }
