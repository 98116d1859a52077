"""The tester of account embedders, by the names of its source."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from equipoise.config import StatsConfig
from equipoise.domains.accounts.evaluation import EmbeddingEvaluation, evaluate_embedding
from equipoise.domains.accounts.experiment import DIMS
from equipoise.domains.accounts.report import (
    LAYOUT_METRICS,
    chart_of_accounts_summary,
    chart_of_accounts_table,
)
from equipoise.domains.accounts.results import to_row, view_row
from equipoise.domains.accounts.trees.read import read_tree
from equipoise.domains.accounts.trees.sql import read_sql
from equipoise.domains.accounts.trees.tree import Tree
from equipoise.domains.accounts.vectors import node_vectors_from
from equipoise.errors import ParameterError
from equipoise.geometry.spaces import geometry as geometry_named
from equipoise.report.terminal import print_text
from equipoise.types import require_extra

if TYPE_CHECKING:
    from pandas import DataFrame

TITLE = "Chart of Accounts Embedding Evaluation"
USUAL_DIM = 10
"""The dimension of an embedder that is fitted here and says none."""
_DIMS = ("dim", "embedding_dim", "dimension", "n_components")


class AccountEmbedderTester:
    """Tests embedders on a chart of accounts, or on any tree.

    ``database_name`` is a SQLite file, the URL of a database, any file that holds a tree, or a ``Tree``;
    ``business_id`` keeps to one tenant. ``source`` are options of ``read_sql``: ``table``, ``schema`` and
    ``columns``. Figures are ranks and fractions; percent appears only in print.

    >>> import numpy as np
    >>> tree = Tree.from_edges([(f"{top}{sub}", top) for top in "abc" for sub in range(4)])
    >>> tester = AccountEmbedderTester(tree, n_resamples=50)
    >>> result = tester.test_embedder(np.random.default_rng(0).normal(size=(15, 2)))
    >>> result.mean_rank.n, result.dim
    (12, 2)
    """

    def __init__(
        self,
        database_name: str | Path | Tree,
        business_id: str | None = None,
        *,
        relation: str = "parent",
        filtered: bool | None = None,
        confidence_level: float = 0.95,
        n_resamples: int = 2000,
        seed: int = 0,
        **source: Any,
    ) -> None:
        self.database_name = database_name
        self.business_id = business_id
        self.relation = relation
        self.filtered = filtered
        self.seed = seed
        self.config = StatsConfig(confidence_level=confidence_level, n_resamples=n_resamples, seed=seed)
        self.source = source
        self._tree: Tree | None = database_name if isinstance(database_name, Tree) else None

    @property
    def tree(self) -> Tree:
        """The accounts; read when they are first needed."""
        return self._tree if self._tree is not None else self.load_data()

    def load_data(self) -> Tree:
        """Read the accounts, and keep them."""
        if isinstance(self.database_name, Tree):
            self._tree = self.database_name
        elif self.source:  # options of the reader of databases
            self._tree = read_sql(str(self.database_name), self.business_id, **self.source)
        else:
            self._tree = read_tree(self.database_name, self.business_id)
        return self._tree

    def test_embedder(
        self, embedder: Any, distance_metric: str = "euclidean", *, system: str = "", **training: Any
    ) -> EmbeddingEvaluation:
        """Fit an embedder, where it can be, and judge its vectors by a distance.

        ``distance_metric`` is ``euclidean``, ``hyperbolic_poincare``, ``hyperbolic_lorentz`` or any other
        name of a geometry. ``training`` goes to its ``fit``. See ``node_vectors_from`` for what an embedder may be.
        Those that ship are trained on parents; ``embedder("lorentz", train_on="closure")`` is for a tester of
        that relation.
        """
        space = geometry_named(distance_metric).name
        self._refuse_other_space(embedder, space)
        dim = training.pop("dim", None) or self._dim(embedder)
        found = node_vectors_from(
            embedder,
            self.tree,
            geometry=space,
            dim=dim,
            **{"seed": self.seed, **training},
        )
        if found.geometry != space:
            raise _other_space(type(embedder).__qualname__, found.geometry, space)
        return evaluate_embedding(
            self.tree,
            found,
            system=system or _name(embedder),
            relation=self.relation,
            filtered=self.filtered,
            config=self.config,
        )

    def evaluate_across_dimensions(
        self,
        embedder_factory: Callable[[int], Any],
        dimensions: Sequence[int] = DIMS,
        distance_metric: str = "euclidean",
        **training: Any,
    ) -> DataFrame:
        """A row a dimension: the embedder that the factory makes for it, fitted and judged.

        Intervals stand beside the figures in columns that end in ``_low`` and ``_high``.
        """
        pandas = require_extra("pandas", extra="accounts")
        if not dimensions:
            raise ParameterError("no dimension was named", hint="dimensions=[2, 5, 10]")
        rows = []
        for dim in dimensions:
            made = embedder_factory(dim)
            judged = self.test_embedder(
                made, distance_metric, system=f"{_name(made)}-{dim}", **{"dim": dim, **training}
            )
            rows.append(to_row(judged) | {"dimension": int(dim)})
        frame: DataFrame = pandas.DataFrame(rows)
        return frame

    def print_test_summary(self, result: EmbeddingEvaluation) -> None:
        """Every figure of one embedder, with its interval."""
        print_text(chart_of_accounts_summary(view_row(result), nodes=len(self.tree), single=result.single))

    def print_evaluation_table(self, frame: DataFrame, title: str = TITLE) -> None:
        """The figures by dimension, in the source's layout."""
        lacking = [name for name in ("dimension", "mean_rank") if name not in frame]
        if lacking:
            raise ParameterError(
                f"the frame has no column {lacking[0]}", hint="evaluate_across_dimensions makes such a frame"
            )
        figures = {name: frame[name].tolist() for name, _, _ in LAYOUT_METRICS if name in frame}
        print_text(chart_of_accounts_table(frame["dimension"].tolist(), figures, title))

    def _dim(self, embedder: Any) -> int:
        found = next(
            (getattr(embedder, name) for name in _DIMS if isinstance(getattr(embedder, name, None), int)),
            None,
        )
        return USUAL_DIM if found is None else int(found)

    def _refuse_other_space(self, embedder: Any, space: str) -> None:
        """An embedder that says where its points lie is not measured as if they lay elsewhere."""
        own = getattr(embedder, "geometry", None)
        if isinstance(own, str) and geometry_named(own).name != space:
            raise _other_space(_name(embedder), geometry_named(own).name, space)


def _other_space(name: str, own: str, asked: str) -> ParameterError:
    return ParameterError(
        f"the points of {name} lie in {own} space, and {asked} distances were asked for",
        hint=f"write distance_metric={own!r}",
    )


def _name(embedder: Any) -> str:
    own = getattr(embedder, "name", None)
    return own if isinstance(own, str) and own else type(embedder).__name__
