"""``AccountEmbedderTester``: evaluation of embedders on a chart of accounts, as a class."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from equipoise.config import DEFAULT_STATS, StatsConfig
from equipoise.domains.accounts.evaluation import EmbeddingEvaluation, evaluate_embedding
from equipoise.domains.accounts.experiment import DIMS
from equipoise.domains.accounts.report import (
    LAYOUT_METRICS,
    chart_of_accounts_summary,
    chart_of_accounts_table,
    ranking_caption,
)
from equipoise.domains.accounts.results import to_row
from equipoise.domains.accounts.trees.read import read_tree
from equipoise.domains.accounts.trees.sql import read_sql
from equipoise.domains.accounts.trees.tree import PARENT, Tree
from equipoise.domains.accounts.vectors import node_vectors_from
from equipoise.errors import ParameterError
from equipoise.geometry.spaces import geometry as geometry_named
from equipoise.report.terminal import print_text
from equipoise.types import require_extra

if TYPE_CHECKING:
    from pandas import DataFrame

TITLE = "Chart of Accounts Embedding Evaluation"
DEFAULT_DIM = 10
"""The dimension of an embedder that is fitted here and has no dimension attribute."""
_DIMS = ("dim", "embedding_dim", "dimension", "n_components")


class AccountEmbedderTester:
    """Evaluates embedders on a chart of accounts, or on any tree. Scores are ranks and fractions.

    Parameters
    ----------
    database_name
        A SQLite file, the URL of a database, any file with a tree, or a ``Tree``.
    business_id
        The business in the database.
    relation
        The ranking targets of a node: ``parent``, ``ancestors`` or ``closure`` (ancestors and descendants).
    filtered
        Whether the other targets of a node are left out of its ranks; by default unless the relation is ``parent``.
    config
        Confidence level, resamples and seed.
    **reader_options
        Options of ``read_sql``: ``table``, ``schema`` and ``columns``.

    >>> import numpy as np
    >>> tree = Tree.from_edges([(f"{top}{sub}", top) for top in "abc" for sub in range(4)])
    >>> tester = AccountEmbedderTester(tree, config=StatsConfig(n_resamples=50))
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
        config: StatsConfig = DEFAULT_STATS,
        **reader_options: Any,
    ) -> None:
        self.database_name = database_name
        self.business_id = business_id
        self.relation = relation
        self.filtered = filtered
        self.config = config
        self.reader_options = reader_options
        self._tree: Tree | None = database_name if isinstance(database_name, Tree) else None

    @property
    def tree(self) -> Tree:
        """The accounts; read on first use."""
        return self._tree if self._tree is not None else self.load_data()

    def load_data(self) -> Tree:
        """Read the accounts and store them."""
        if isinstance(self.database_name, Tree):
            self._tree = self.database_name
        elif self.reader_options:
            self._tree = read_sql(str(self.database_name), self.business_id, **self.reader_options)
        else:
            self._tree = read_tree(self.database_name, self.business_id)
        return self._tree

    def test_embedder(
        self, embedder: Any, distance_metric: str = "euclidean", *, system: str = "", **training: Any
    ) -> EmbeddingEvaluation:
        """Fit an embedder, if it can be fitted, and evaluate its vectors with a distance.

        ``distance_metric`` is ``euclidean``, ``hyperbolic_poincare``, ``hyperbolic_lorentz`` or any other name of a
        geometry. ``training`` is passed to ``fit``. An embedder is an object with ``fit`` or ``encode``,
        a matrix with one row per node, or a mapping from ids to vectors. The
        built-in ones are trained on parents; use ``tree_embedder("lorentz", train_relation="closure")`` with a tester
        of that relation.
        """
        geometry = geometry_named(distance_metric).name
        self._check_geometry(embedder, geometry)
        dim = training.pop("dim", None) or self._dim(embedder)
        vectors = node_vectors_from(
            embedder,
            self.tree,
            geometry=geometry,
            dim=dim,
            **{"seed": self.config.seed, **training},
        )
        if vectors.geometry != geometry:
            raise _other_geometry_error(type(embedder).__qualname__, vectors.geometry, geometry)
        return evaluate_embedding(
            self.tree,
            vectors,
            system=system or _embedder_name(embedder),
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
        """Evaluate an embedder for several numbers of dimensions.

        Parameters
        ----------
        embedder_factory
            Takes the number of dimensions and returns an embedder, as for ``test_embedder``.
        dimensions
            Numbers of dimensions.
        distance_metric
            The distance, as for ``test_embedder``.
        **training
            Passed to ``fit``.

        Returns
        -------
        DataFrame
            One row per dimension. Intervals are in columns that end in ``_low`` and ``_high``.
        """
        pandas = require_extra("pandas", extra="accounts")
        if not dimensions:
            raise ParameterError("no dimension was given", hint="dimensions=[2, 5, 10]")
        rows = []
        for dim in dimensions:
            embedder = embedder_factory(dim)
            evaluation = self.test_embedder(
                embedder, distance_metric, system=f"{_embedder_name(embedder)}-{dim}", **{"dim": dim, **training}
            )
            rows.append(to_row(evaluation) | {"dimension": int(dim)})
        results_df: DataFrame = pandas.DataFrame(rows)
        return results_df

    def print_test_summary(self, result: EmbeddingEvaluation) -> None:
        """Print every score of one embedder with its interval."""
        print_text(chart_of_accounts_summary(result))

    def print_evaluation_table(self, results_df: DataFrame, title: str = TITLE) -> None:
        """Print the scores by dimension, one row per metric."""
        missing = [name for name in ("dimension", "mean_rank") if name not in results_df]
        if missing:
            raise ParameterError(
                f"results_df has no column {missing[0]}", hint="evaluate_across_dimensions returns such a table"
            )
        scores = {name: results_df[name].tolist() for name, _, _ in LAYOUT_METRICS if name in results_df}
        filtered = self.relation != PARENT if self.filtered is None else self.filtered
        caption = ranking_caption(self.relation, filtered)
        print_text(chart_of_accounts_table(results_df["dimension"].tolist(), scores, title, caption))

    def _dim(self, embedder: Any) -> int:
        dim = next(
            (getattr(embedder, name) for name in _DIMS if isinstance(getattr(embedder, name, None), int)),
            None,
        )
        return DEFAULT_DIM if dim is None else int(dim)

    def _check_geometry(self, embedder: Any, geometry: str) -> None:
        """Raise an error if the embedder has a geometry other than that of the distance."""
        geometry_name = getattr(embedder, "geometry", None)
        if isinstance(geometry_name, str) and geometry_named(geometry_name).name != geometry:
            raise _other_geometry_error(_embedder_name(embedder), geometry_named(geometry_name).name, geometry)


def _other_geometry_error(name: str, geometry_name: str, requested: str) -> ParameterError:
    return ParameterError(
        f"the points of {name} are in {geometry_name} space, and {requested} distances were requested",
        hint=f"write distance_metric={geometry_name!r}",
    )


def _embedder_name(embedder: Any) -> str:
    name = getattr(embedder, "name", None)
    return name if isinstance(name, str) and name else type(embedder).__name__
