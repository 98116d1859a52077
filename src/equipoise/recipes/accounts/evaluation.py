"""What an evaluation found: every embedding judged, the comparison, and how they are told and drawn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from equipoise.errors import UnknownNameError
from equipoise.hierarchy.tree import Tree
from equipoise.recipes.accounts.branches import Branches
from equipoise.recipes.accounts.findings import gathered
from equipoise.recipes.accounts.judged import Judged
from equipoise.recipes.accounts.settings import Settings
from equipoise.recipes.accounts.store import RUNS, folder_name
from equipoise.report.accounts import AccountsEdition, AccountsRow
from equipoise.stats.comparison import Comparison
from equipoise.types import Finding, need

if TYPE_CHECKING:
    from pandas import DataFrame


@dataclass(frozen=True)
class AccountsEvaluation:
    """All embeddings of one tree, in the order they were asked for; ``found["lorentz-10"]`` is one."""

    tree: Tree
    settings: Settings
    judged: tuple[Judged, ...]
    comparison: Comparison | None
    branches: Branches
    resumed: tuple[str, ...] = field(default=())

    def __getitem__(self, system: str) -> Judged:
        known = {each.system: each for each in self.judged}
        if system not in known:
            raise UnknownNameError.of("embedding", system, known, more=f"there are: {', '.join(known)}")
        return known[system]

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        """What the checks have to say, each once, but for what the report says of all embeddings."""
        own = (finding for each in self.judged for finding in each.result.findings)
        shared = () if self.comparison is None else self.comparison.findings
        return gathered((*own, *shared), self.settings.relation)

    @property
    def edition(self) -> AccountsEdition:
        """All that the report shows."""
        first = self.judged[0].result
        return AccountsEdition(
            source=self.tree.source,
            nodes=len(self.tree),
            edges=len(self.tree.edges),
            roots=len(self.tree.roots),
            levels=int(self.tree.depth.max(initial=-1)) + 1,
            relation=str(first.settings["relation"]),
            filtered=bool(first.settings["filtered"]),
            single=self.judged[0].single,
            rows=tuple(row_of(each) for each in self.judged),
            comparison=self.comparison,
            branches=self.branches.sentence,
            branch_names=dict(zip(self.tree.ids, self.tree.names, strict=True)),
            rates=self.settings.rates,
            findings=self.findings,
        )

    def frame(self) -> DataFrame:
        """A row an embedding; ranks as they are, MAP and Spearman as fractions, the intervals beside them."""
        pandas = need("pandas", extra="accounts")
        found: DataFrame = pandas.DataFrame([frame_row(each) for each in self.judged])
        return found

    def runs(self, output: str | Path) -> list[Path]:
        """The run directories of the embeddings in a folder that they were written to."""
        return [Path(output) / RUNS / folder_name(each.system) for each in self.judged]

    @property
    def _claims(self) -> dict[str, Any] | None:
        """The comparison as plain values, whose verdict speaks of nodes."""
        found = self.comparison
        return None if found is None else {**found.to_dict(), "verdict": found.verdict("node")}

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        tree = self.tree
        return {
            "tree": {
                "source": tree.source,
                "nodes": len(tree),
                "edges": len(tree.edges),
                "roots": len(tree.roots),
                "sha256": tree.fingerprint,
            },
            "relation": self.edition.relation,
            "filtered": self.edition.filtered,
            "branches": {"count": len(self.branches), "levels_below_the_top": self.branches.level},
            "systems": [each.to_dict() | _seeds(each) for each in self.judged],
            "comparison": self._claims,
            "resumed": list(self.resumed),
        }


def row_of(judged: Judged) -> AccountsRow:
    """One embedding as the report shows it."""
    return AccountsRow(
        system=judged.system,
        geometry=judged.geometry,
        dim=judged.dim,
        train_on=judged.train_on,
        mean_rank=judged.mean_rank,
        macro_mean_rank=judged.macro_mean_rank,
        median_rank=judged.median_rank,
        map=judged.map,
        spearman=judged.spearman,
        norms=(judged.norms.mean, judged.norms.sd),
        radii=(judged.radii.mean, judged.radii.sd),
        parent_distances=(judged.parent_distances.mean, judged.parent_distances.sd),
        slices=judged.slices,
        seeds={name: str(each) for name, each in judged.over_seeds.items()},
    )


def frame_row(judged: Judged) -> dict[str, Any]:
    """The figures of one embedding under plain names."""
    figures: Mapping[str, Any] = {
        "mean_rank": judged.mean_rank,
        "macro_mean_rank": judged.macro_mean_rank,
        "median_rank": judged.median_rank,
        "map": judged.map,
        "spearman": judged.spearman,
    }
    row: dict[str, Any] = {"dimension": judged.dim, "system": judged.system, "geometry": judged.geometry}
    row |= {name: each.value for name, each in figures.items()}
    row |= {
        "norm_mean": judged.norms.mean,
        "norm_sd": judged.norms.sd,
        "parent_distance_mean": judged.parent_distances.mean,
        "parent_distance_sd": judged.parent_distances.sd,
    }
    for name, each in figures.items():
        row |= {f"{name}_low": each.interval.low, f"{name}_high": each.interval.high}
    return row | {"n": judged.map.n}


def _seeds(judged: Judged) -> dict[str, Any]:
    """Mean and spread over seeds, where there are several."""
    return {
        "seeds": {
            name: {"mean": each.mean, "sd": each.deviation, "values": list(each.values)}
            for name, each in judged.over_seeds.items()
        }
    }
