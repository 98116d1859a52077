"""The charts of an embedded tree: the disk with its edges, norms against depth, figures by dimension."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from equipoise.data.atomic import write_bytes
from equipoise.errors import MissingExtraError, StoreError, UnknownNameError
from equipoise.geometry.names import geometry as geometry_named
from equipoise.hierarchy.embedded import Embedded
from equipoise.hierarchy.tree import Tree
from equipoise.recipes.accounts.disk import HYPERBOLIC, flattened
from equipoise.recipes.accounts.evaluation import AccountsEvaluation
from equipoise.recipes.accounts.judged import SPEARMAN
from equipoise.recipes.accounts.settings import TRAINED
from equipoise.recipes.accounts.store import (
    CHARTS,
    RUNS,
    kept_systems,
    last_systems,
    read_kept_tree,
    read_kept_vectors,
)
from equipoise.recipes.accounts.vectors import in_order
from equipoise.report.charts.accounts import Node, norms_chart, tree_chart
from equipoise.report.charts.chart import Chart
from equipoise.report.charts.dimensions import Reach, dimensions_chart
from equipoise.report.charts.render import png, svg
from equipoise.run.store import read_run
from equipoise.stats.numbers import figure, span
from equipoise.stats.result import Estimate, Result

DRAWN = ("MR", "MAP")
"""The figures that are drawn against dimensions, by how their names begin."""


@dataclass(frozen=True)
class Gallery:
    """A tree, the embedding that is drawn, and the results of all."""

    tree: Tree
    system: str
    embedded: Embedded
    results: tuple[Result, ...] = ()

    @classmethod
    def of(cls, found: AccountsEvaluation, system: str | None = None) -> Gallery:
        """What an evaluation in hand has to show."""
        vectors = {each.system: each.embedded for each in found.judged}
        name = system or best_to_draw(vectors)
        return cls(found.tree, name, found[name].embedded, tuple(each.result for each in found.judged))

    @classmethod
    def read(cls, folder: Path, system: str | None = None) -> Gallery:
        """The same from the folder of an evaluation."""
        tree, kept = read_kept_tree(folder), kept_systems(folder)
        if system is not None and system not in kept:
            raise UnknownNameError.of("embedding", system, kept, more=f"there are: {', '.join(kept)}")
        vectors = {
            name: in_order(read_kept_vectors(folder, path), tree)
            for name, path in kept.items()
            if system in (None, name)
        }
        chosen = system or best_to_draw(vectors)
        # Of earlier evaluations with other settings, runs may still lie there: they are not drawn together.
        shown = dict.fromkeys([*(last_systems(folder) or kept), chosen])
        runs = [folder / RUNS / kept[name].stem for name in shown if name in kept]
        results = [read_run(run, evidence=False).result for run in runs if run.is_dir()]
        return cls(tree, chosen, vectors[chosen], tuple(results))

    def pictures(self) -> list[Chart]:
        """The tree first, then norms and figures."""
        return [self.map(), self.norms(), *dimension_charts(self.results)]

    def map(self) -> Chart:
        """The tree in the disk, or in the plane where its points are flat."""
        flat = flattened(self.embedded)
        where = "the Poincaré disk" if flat.kind == "disk" else "the plane"
        return tree_chart(
            self._nodes,
            flat.points,
            self.tree.edges,
            self.tree.depth,
            kind=flat.kind,
            caption=flat.caption,
            title=f"{self.system} in {where}",
        )

    def norms(self) -> Chart:
        """Norms against the place between root and leaf."""
        norms = geometry_named(self.embedded.geometry).norm(self.embedded.vectors)
        told = next(
            (_told(each.estimates[SPEARMAN]) for each in self.results if each.system == self.system), ""
        )
        return norms_chart(
            self._nodes, norms, self.tree.normalised_rank, system=self.system, correlation=told
        )

    @property
    def _nodes(self) -> list[Node]:
        tree = self.tree
        names = dict(zip(tree.ids, tree.names, strict=True))
        return [Node(name, names[branch]) for name, branch in zip(tree.names, tree.branches, strict=True)]


def best_to_draw(vectors: Mapping[str, Embedded]) -> str:
    """Which embedding shows most: hyperbolic before flat, two dimensions before more, trained first."""
    drawable = {name: each for name, each in vectors.items() if each.dim >= 2}
    if not drawable:
        raise StoreError("no embedding has the two dimensions of a picture", hint="evaluate with --dims 2")
    return min(
        drawable,
        key=lambda name: (
            drawable[name].geometry not in HYPERBOLIC,
            drawable[name].dim,
            drawable[name].settings.get("embedder") not in TRAINED,
        ),
    )


def dimension_charts(results: Sequence[Result]) -> list[Chart]:
    """Mean rank and MAP of every embedder that was tried at two dimensions or more."""
    families: dict[str, list[tuple[int, Result]]] = {}
    for result in results:
        name, dash, dim = result.system.rpartition("-")
        if dash and dim.isdigit():
            families.setdefault(name, []).append((int(dim), result))
    if max((len(each) for each in families.values()), default=0) < 2:
        return []
    charts = []
    for start in DRAWN:
        curves = {
            name: [
                _reach(dim, _named(result, start)) for dim, result in sorted(rows, key=lambda each: each[0])
            ]
            for name, rows in families.items()
        }
        first = _named(next(iter(families.values()))[0][1], start)
        charts.append(
            dimensions_chart(
                first.metric,
                curves,
                better=str(first.better),
                chance=first.chance,
                level=first.interval.level,
            )
        )
    return charts


def _named(result: Result, start: str) -> Estimate:
    return next(each for name, each in result.estimates.items() if name.partition("(")[0] == start)


def _reach(dim: int, estimate: Estimate) -> Reach:
    ends = (estimate.interval.low, estimate.interval.high) if estimate.interval.known else (None, None)
    return Reach(dim, estimate.value, *ends)


def _told(estimate: Estimate) -> str:
    return f"{figure(estimate.value, 2)} {span(estimate.interval, 2)}"


def draw(pictures: Iterable[Chart], folder: Path) -> str:
    """Every chart as SVG and PNG into a folder; a sentence where they cannot be drawn here."""
    try:
        (folder / CHARTS).mkdir(parents=True, exist_ok=True)
        for each in pictures:
            write_bytes(folder / CHARTS / f"{each.name}.svg", svg(each).encode())
            write_bytes(folder / CHARTS / f"{each.name}.png", png(each))
    except MissingExtraError as error:
        return f"For charts: {error.hint}"
    except OSError as error:
        raise StoreError(
            f"{folder / CHARTS} cannot be written: {error.strerror}", hint="choose another folder"
        ) from error
    return ""
