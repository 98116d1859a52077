"""The tester with the published method names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from equipoise.config import StatsConfig
from equipoise.domains.accounts.embedders import tree_embedder
from equipoise.domains.accounts.report import chart_of_accounts_table
from equipoise.domains.accounts.tester import AccountEmbedderTester
from equipoise.domains.accounts.trees.read import BUSINESSES, accounts
from equipoise.domains.accounts.trees.tree import Tree
from equipoise.errors import InputError, ParameterError


class LetterCountEmbedder:
    """An embedder of names that counts letters."""

    def __init__(self, embedding_dim: int) -> None:
        self.embedding_dim = embedding_dim
        self.fit_arguments: dict[str, Any] = {}

    def fit(self, names: list[str], batch_size: int = 1, verbose: bool = False) -> None:
        """Store the arguments of the call."""
        self.fit_arguments = {"names": len(names), "batch_size": batch_size, "verbose": verbose}

    def encode(self, names: list[str]) -> Any:
        """Letter counts, hashed to the dimensions."""
        rows = np.zeros((len(names), self.embedding_dim))
        for row, name in enumerate(names):
            for letter in name:
                rows[row, ord(letter) % self.embedding_dim] += 1
        return rows


def make_tester(chart: Tree) -> AccountEmbedderTester:
    return AccountEmbedderTester(chart, config=StatsConfig(n_resamples=60))


def test_accounts_of_one_business_are_read_from_the_database() -> None:
    pytest.importorskip("sqlalchemy")
    acme = AccountEmbedderTester(str(accounts()), BUSINESSES[0]).load_data()
    other = AccountEmbedderTester(f"sqlite:///{accounts()}", business_id=BUSINESSES[1]).load_data()
    assert len(acme) > 60
    assert set(acme.names) != set(other.names)
    with pytest.raises(InputError, match="'acne'"):
        AccountEmbedderTester(str(accounts()), "acne").load_data()


def test_any_tree_file_is_accepted(tmp_path: Path) -> None:
    (tmp_path / "accounts.csv").write_text("id,parent,name\n1,,Assets\n2,1,Cash\n3,1,Bank\n")
    assert AccountEmbedderTester(tmp_path / "accounts.csv").tree.names == ("Assets", "Cash", "Bank")


@pytest.mark.parametrize(
    ("name", "metric"),
    [("euclidean", "euclidean"), ("poincare", "hyperbolic_poincare"), ("lorentz", "hyperbolic_lorentz")],
)
def test_the_published_distance_names_are_accepted(chart: Tree, name: str, metric: str) -> None:
    result = make_tester(chart).test_embedder(tree_embedder(name, epochs=5), distance_metric=metric, dim=3)
    assert result.geometry == name
    assert result.dim == 3


def test_a_distance_of_another_geometry_is_an_error(chart: Tree) -> None:
    with pytest.raises(ParameterError) as error_info:
        make_tester(chart).test_embedder(tree_embedder("lorentz"), "euclidean")
    assert error_info.value.hint == "write distance_metric='lorentz'"


def test_every_dimension_is_a_row_and_training_options_are_passed_to_fit(chart: Tree) -> None:
    pytest.importorskip("pandas")
    embedders: list[LetterCountEmbedder] = []

    def factory(dim: int) -> LetterCountEmbedder:
        embedders.append(LetterCountEmbedder(dim))
        return embedders[-1]

    frame = make_tester(chart).evaluate_across_dimensions(
        embedder_factory=factory, dimensions=[2, 5], distance_metric="euclidean", batch_size=32, verbose=True
    )
    assert frame["dimension"].tolist() == [2, 5]
    assert embedders[1].fit_arguments == {"names": len(chart), "batch_size": 32, "verbose": True}
    single = make_tester(chart).test_embedder(LetterCountEmbedder(5))
    assert frame["mean_rank"][1] == single.mean_rank.value
    assert frame["spearman"][1] == single.spearman.value


def test_tree_embedders_are_fitted_at_the_dimension_of_the_row(chart: Tree) -> None:
    pytest.importorskip("pandas")
    frame = make_tester(chart).evaluate_across_dimensions(lambda dim: tree_embedder("random"), [2, 6])
    expected = make_tester(chart).test_embedder(tree_embedder("random").fit(chart, 6, 0))
    assert frame["mean_rank"][1] == expected.mean_rank.value


def test_the_table_has_the_published_layout(chart: Tree, capsys: pytest.CaptureFixture[str]) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(
        {
            "dimension": [2, 50],
            "mean_rank": [45.32, 5.23],
            "median_rank": [32.0, 3.0],
            "map": [0.4215, 0.6345],
            "spearman": [0.3567, 0.8012],
        }
    )
    make_tester(chart).print_evaluation_table(frame, title="Chart of Accounts")
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "=" * 100
    assert lines[1].strip() == "Chart of Accounts"
    assert lines[lines.index("Metric                    |        2       50") - 1] == ""
    assert "Mean Rank (MR)            |    45.32     5.23" in lines
    assert "Median Rank               |    32.00     3.00" in lines
    assert "MAP (%)                   |    42.15    63.45" in lines
    assert "Spearman ρ (%)            |    35.67    80.12" in lines
    assert lines[-3:] == [
        "  Best Mean Rank: 5.23 at dimension 50",
        "  Best MAP: 63.45 % at dimension 50",
        "  Best Spearman ρ: 80.12 % at dimension 50",
    ]


def test_an_undefined_score_is_not_best() -> None:
    table = chart_of_accounts_table([2, 5], {"mean_rank": [4, 2], "spearman": [float("nan")] * 2}, "t")
    assert "Spearman ρ (%)            |      n/a      n/a" in table
    assert "Best Spearman ρ: n/a" in table


def test_the_summary_has_every_score_with_its_interval(chart: Tree, capsys: pytest.CaptureFixture[str]) -> None:
    tester = make_tester(chart)
    result = tester.test_embedder(LetterCountEmbedder(4))
    tester.print_test_summary(result)
    output = capsys.readouterr().out
    assert f"{100 * result.map.value:.2f}" in output
    for name in ("Mean Rank (MR)", "Median Rank", "Norm", "Parent-child distance", "95 % interval"):
        assert name in output
    assert "MAP is the mean reciprocal rank" in output


def test_a_frame_without_scores_is_an_error(chart: Tree) -> None:
    pandas = pytest.importorskip("pandas")
    with pytest.raises(ParameterError):
        make_tester(chart).print_evaluation_table(pandas.DataFrame({"a": [1]}))
