"""``eq accounts`` from the command line."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest

from equipoise.domains.accounts.cli_tree import _place_answer
from equipoise.domains.accounts.embedders import LorentzEmbedder
from equipoise.domains.accounts.placement import ParentCandidate
from equipoise.domains.accounts.shape import tree_distances
from equipoise.domains.accounts.trees.files import read_edges
from equipoise.domains.accounts.trees.read import accounts, read_tree
from equipoise.domains.accounts.trees.tree import Tree
from equipoise.domains.accounts.vectors import NodeVectors, read_node_vectors
from equipoise.report.view import View

QUICK = ("--learning-rates", "0.3", "--epochs", "4", "--n-resamples", "40")
EVALUATE = ("accounts", "evaluate", *QUICK)


@pytest.fixture(autouse=True)
def files(folder: Path) -> None:
    """A chart of accounts as a table, as edges and as codes, and the database of the sample."""
    rows = [(top, "", f"Top {top}") for top in "1234"]
    rows += [(f"{top}-{group}", top, f"Group {top}.{group}") for top in "1234" for group in (1, 2, 3)]
    rows += [
        (f"{top}-{group}-{leaf}", f"{top}-{group}", f"Account {top}.{group}.{leaf}")
        for top in "1234"
        for group in (1, 2, 3)
        for leaf in (1, 2)
    ]
    (folder / "accounts.csv").write_text("id,parent,name\n" + "".join(f"{','.join(row)}\n" for row in rows))
    (folder / "edges.tsv").write_text("".join(f"{key}\t{parent}\n" for key, parent, _ in rows if parent))
    (folder / "codes.txt").write_text("".join(f"{key}\n" for key, _, _ in rows))
    shutil.copy(accounts(), folder / "books.db")


@pytest.mark.slow
def test_embeddings_are_compared_with_baselines(eq, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "110")
    result = eq(*EVALUATE, "--tree", "accounts.csv", "--geometry", "lorentz", "--dims", "2", "4")
    assert result.exit_code == 0, result.stderr
    lines = result.stdout.splitlines()
    assert "36 nodes" in " ".join(lines[:3])
    table = next(index for index, line in enumerate(lines) if line.startswith("rank  "))
    systems = {line.split()[1] for line in lines[table + 2 : table + 10]}
    assert systems == {
        f"{name}-{dim}" for name in ("lorentz", "combinatorial", "euclidean", "random") for dim in (2, 4)
    }
    assert "A random embedding scores 20" in result.stdout
    verbose = eq(*EVALUATE, "--tree", "accounts.csv", "--geometry", "lorentz", "--dims", "2", "-v").stdout
    assert "MAP is the mean reciprocal rank" in verbose
    assert "accounts.csv: 40 nodes, 36 edges, 4 roots, 3 levels" in verbose


def test_the_tree_may_be_an_argument(eq) -> None:
    options = ("--geometry", "euclidean", "--dims", "2", "--json")
    by_argument, by_option = (
        eq(*EVALUATE, *tree, *options) for tree in (("accounts.csv",), ("--tree", "accounts.csv"))
    )
    assert by_argument.exit_code == 0, by_argument.stderr
    assert by_argument.stdout == by_option.stdout
    assert eq(*EVALUATE, "accounts.csv", "--codes", "codes.txt").exit_code == 2
    trained = eq("accounts", "train", "accounts.csv", "--embedder", "combinatorial", "--dim", "2", "-o", "v.csv")
    assert trained.exit_code == 0, trained.stderr


@pytest.mark.parametrize(
    "source",
    [
        ("--tree", "accounts.csv"),
        ("--edges", "edges.tsv"),
        ("--codes", "codes.txt"),
    ],
)
def test_every_source_format_gives_the_same_tree(eq, source: tuple[str, str]) -> None:
    result = eq(*EVALUATE, *source, "--geometry", "euclidean", "--dims", "2", "--json")
    assert result.exit_code == 0, result.stderr
    content = json.loads(result.stdout, parse_constant=pytest.fail)
    assert (content["tree"]["nodes"], content["tree"]["edges"], content["tree"]["roots"]) == (40, 36, 4)
    assert [system["system"] for system in content["systems"]] == ["euclidean-2", "combinatorial-2", "random-2"]


def test_further_embedders_are_added_to_the_default_geometry(eq) -> None:
    arguments = ("--tree", "accounts.csv", "--embedder", "text:hash", "--dims", "2", "--epochs", "2", "--json")
    systems = [system["system"] for system in json.loads(eq(*EVALUATE, *arguments).stdout)["systems"]]
    assert systems == ["lorentz-2", "text:hash", "combinatorial-2", "euclidean-2", "random-2"]


def test_a_named_root_of_nested_json_has_a_name(eq, folder: Path) -> None:
    nested = {"name": "Assets", "children": [{"name": "Cash"}, {"id": "12"}, {"id": "Bank", "name": "Bank"}]}
    (folder / "nested.json").write_text(json.dumps(nested))
    findings = json.loads(eq("accounts", "check", "nested.json", "--json").stdout)["findings"]
    assert [finding["message"] for finding in findings] == ["1 node without a name: id 12"]


def test_a_database_gives_only_the_accounts_of_its_business(eq) -> None:
    pytest.importorskip("sqlalchemy")
    sizes = []
    for business in ("acme", "larkspur"):
        result = eq(
            *EVALUATE, "--database", "sqlite:///books.db", "--business-id", business,
            "--geometry", "euclidean", "--dims", "2", "--json",
        )  # fmt: skip
        assert result.exit_code == 0, result.stderr
        sizes.append(json.loads(result.stdout)["tree"]["nodes"])
    assert sizes == [128, 88]


def test_a_database_is_detected_by_its_content(eq) -> None:
    pytest.importorskip("sqlalchemy")
    arguments = ("--tree", "books.db", "--business-id", "larkspur", "--embedder", "random", "-o", "v.npz")
    result = eq("accounts", "train", *arguments, "--json")
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout)["units"] == 88


def test_a_closure_file_is_detected_and_reported(eq, folder: Path) -> None:
    tree_from_edges = read_edges(folder / "edges.tsv")
    pairs = [(tree_from_edges.ids[low], tree_from_edges.ids[high]) for low, high in tree_from_edges.closure()]
    (folder / "closure.tsv").write_text("".join(f"{low}\t{high}\n" for low, high in pairs))
    sizes = {}
    for option in ("--closure", "--no-closure", "-q"):
        arguments = ("--edges", "closure.tsv", option, "--geometry", "euclidean", "--dims", "2", "--json")
        tree = json.loads(eq(*EVALUATE, *arguments).stdout)["tree"]
        sizes[option] = (tree["edges"], tree["source"])
    assert sizes["--closure"] == (36, "closure.tsv")
    assert sizes["--no-closure"] == (len(pairs), "closure.tsv")
    assert sizes["-q"] == (36, "closure.tsv (read as a closure)")


def test_non_finite_vectors_are_not_written(eq, folder: Path, monkeypatch) -> None:
    def fit(embedder: LorentzEmbedder, tree: Tree, dim: int, seed: int, progress) -> NodeVectors:
        rows = np.full((len(tree), dim), np.nan)
        return NodeVectors(tree.ids, tree.names, rows, "euclidean", {"learning_rate": 9.0}, (np.nan,))

    monkeypatch.setattr(LorentzEmbedder, "fit", fit)
    result = eq("accounts", "train", "--tree", "accounts.csv", "-o", "v.csv")
    assert result.exit_code == 2
    assert "training at the learning rate 9.0 left 40 of 40 points without finite coordinates" in result.stderr
    assert "a smaller learning rate" in result.stderr
    assert not (folder / "v.csv").exists()


def test_training_options_are_stored_in_the_settings(eq, folder: Path) -> None:
    arguments = ("--epochs", "3", "--restarts", "2", "--dim", "2", "-o", "v.npz")
    result = eq("accounts", "train", "--tree", "accounts.csv", "--train-relation", "ancestors", *arguments)
    assert result.exit_code == 0
    settings = read_node_vectors(folder / "v.npz").settings
    assert (settings["epochs"], settings["restarts"]) == (3, 2)
    assert settings["train_relation"] == "ancestors"


@pytest.mark.parametrize("options", [(), pytest.param(("--device", "cpu"), marks=pytest.mark.engines("torch"))])
def test_embedder_names_are_case_insensitive(eq, folder: Path, options: tuple[str, ...]) -> None:
    if options:
        pytest.importorskip("torch")
    arguments = (
        "accounts",
        "train",
        "--tree",
        "accounts.csv",
        "--dim",
        "2",
        "--epochs",
        "4",
        "--relation",
        "closure",
    )
    for name in ("lorentz", "Lorentz"):
        assert eq(*arguments, "--embedder", name, *options, "-o", f"{name}.npz").exit_code == 0
    lower, upper = (read_node_vectors(folder / f"{name}.npz") for name in ("lorentz", "Lorentz"))
    assert lower.settings == upper.settings
    assert lower.settings["train_relation"] == "closure"
    np.testing.assert_array_equal(lower.vectors, upper.vectors)


@pytest.mark.slow
def test_vectors_of_another_relation_are_reported(eq, folder: Path) -> None:
    arguments = (
        "--tree",
        "accounts.csv",
        "--relation",
        "closure",
        "--dim",
        "2",
        "--epochs",
        "4",
        "-o",
        "other.npz",
    )
    train_output = eq("accounts", "train", *arguments).stdout
    assert "with --vectors other.npz --relation closure." in " ".join(train_output.split())
    evaluate_output = eq(*EVALUATE, "--tree", "accounts.csv", "--dims", "2", "--vectors", "other=other.npz").stdout
    words = " ".join(evaluate_output.split())
    assert "other was trained on a different relation from the one that is ranked" in words
    assert "In the other embedding with" in words


@pytest.mark.slow
def test_vectors_trained_on_another_relation_are_not_resumed(eq, folder: Path) -> None:
    arguments = (*EVALUATE, "--tree", "accounts.csv", "--dims", "2", "-o", "results", "--json")
    first, other, repeated = (
        json.loads(eq(*arguments, *options).stdout) for options in ((), *2 * [("--train-relation", "closure")])
    )
    assert first["resumed"] == []
    assert other["resumed"] == ["combinatorial-2", "random-2"]
    assert sorted(repeated["resumed"]) == ["combinatorial-2", "euclidean-2", "lorentz-2", "random-2"]
    assert other["systems"][0]["estimates"] != first["systems"][0]["estimates"]
    output = eq(*arguments[:-1], "--train-relation", "closure").stdout
    assert "lorentz-2, euclidean-2 were trained on a different relation" in output
    assert "a different relation" not in eq(*arguments[:-1]).stdout
    assert {system["train_relation"] for system in other["systems"]} == {"closure", None}


@pytest.mark.slow
def test_stored_results_are_compared_reported_and_plotted(eq, folder: Path) -> None:
    pytest.importorskip("vl_convert")
    result = eq(*EVALUATE, "--tree", "accounts.csv", "--dims", "2", "4", "-o", "results", "-q")
    assert result.exit_code == 0, result.stderr
    assert (folder / "results" / "charts" / "disk.svg").is_file()
    view = View.read(folder / "results")
    assert view is not None
    assert "disk" in {chart.name for chart in view.charts}
    assert {"runs/lorentz-2", "runs/lorentz-4"} <= set(view.runs)
    compared = eq("compare", "results/runs/lorentz-2", "results/runs/random-2", "--primary", "MR", "--json")
    assert compared.exit_code == 0, compared.stderr
    assert json.loads(compared.stdout)["leader"] == "lorentz-2"
    plotted = eq("accounts", "plot", "results", "-o", "disk.html")
    assert plotted.exit_code == 0, plotted.stderr
    page = (folder / "disk.html").read_text()
    assert '"Account 1.1.2"' in page
    assert "http-equiv" in page
    assert 'src="' not in page
    assert '<canvas id="tree"' in page
    for name in ("norm-position-combinatorial-2", "dimensions-mr", "dimensions-map"):
        assert f'data-chart="{name}"' in page
    single_chart = eq("accounts", "plot", "results", "--chart", "dimensions-mr", "-o", "mr.html", "--json")
    assert json.loads(single_chart.stdout)["charts"] == ["dimensions-mr"]
    assert json.loads(single_chart.stdout)["system"] is None
    assert "lorentz-2" not in single_chart.stderr
    assert 'data-chart="disk"' not in (folder / "mr.html").read_text()
    (folder / "other.csv").write_text("id,parent,name\n1,,A\n2,1,B\n3,1,C\n")
    other = eq(*EVALUATE, "--tree", "other.csv", "--dims", "2", "-o", "results")
    assert other.exit_code == 2
    assert "error[E500]: results has an experiment on other data: accounts.csv" in other.stderr


def test_a_repeated_command_resumes_from_stored_results(eq) -> None:
    # There is no chart in one dimension, which saves time.
    arguments = (*EVALUATE, "--tree", "accounts.csv", "--dims", "1", "-o", "results", "--json")
    first, repeated = json.loads(eq(*arguments).stdout), eq(*arguments)
    content = json.loads(repeated.stdout)
    assert first["resumed"] == []
    assert content["resumed"] == ["lorentz-1", "euclidean-1", "random-1"]
    assert content["systems"] == first["systems"]


@pytest.mark.slow
def test_vectors_are_trained_evaluated_and_plotted_from_a_file(eq, folder: Path) -> None:
    pytest.importorskip("vl_convert")
    tree = ("--tree", "accounts.csv")
    result = eq("accounts", "train", *tree, "--dim", "3", "--epochs", "6", "-o", "v.csv", "--json")
    assert result.exit_code == 0, result.stderr
    header = (folder / "v.csv").read_text().splitlines()[0]
    assert header == "id,name,x0,x1,x2,x3"
    mean_rank = json.loads(result.stdout)["estimates"][0]["value"]
    evaluated = eq(
        *EVALUATE, *tree, "--vectors", "other=v.csv", "--vectors-geometry", "lorentz", "--dims", "2", "--json"
    )
    system = json.loads(evaluated.stdout)["systems"][0]
    assert (system["system"], system["dim"], system["estimates"][0]["value"]) == ("other", 3, mean_rank)
    plotted = eq("accounts", "plot", "v.csv", *tree, "--geometry", "hyperbolic_lorentz", "-o", "v.svg")
    assert plotted.exit_code == 0, plotted.stderr
    assert (folder / "v.svg").read_text().startswith("<svg")
    (folder / "v.svg").unlink()
    outside = eq("accounts", "plot", "v.csv", *tree, "--geometry", "poincare", "-o", "v.svg")
    assert outside.exit_code == 2
    assert "40 of the 40 points of accounts.csv" in outside.stderr
    assert not (folder / "v.svg").exists()


def test_a_csv_without_a_geometry_is_read_as_euclidean_with_a_note(eq, folder: Path) -> None:
    eq("accounts", "train", "--tree", "accounts.csv", "--embedder", "random", "-o", "v.csv")
    arguments = ("--tree", "accounts.csv", "--vectors", "v.csv", "--dims", "2", "--json")
    assert "read as euclidean" in eq(*EVALUATE, *arguments).stderr


@pytest.mark.slow
def test_npz_preserves_the_geometry_and_the_precision(eq, folder: Path) -> None:
    for name in ("v.npz", "v.csv"):
        arguments = ("--geometry", "poincare", "--dim", "2", "--epochs", "6", "-o", name)
        assert eq("accounts", "train", "--tree", "accounts.csv", *arguments).exit_code == 0
    from_npz, from_csv = read_node_vectors(folder / "v.npz"), read_node_vectors(folder / "v.csv", "poincare")
    assert from_npz.geometry == "poincare"
    assert np.array_equal(from_npz.vectors, from_csv.vectors)


@pytest.mark.slow
def test_the_demo_needs_no_input(eq) -> None:
    pytest.importorskip("sqlalchemy")
    result = eq("accounts", "demo", "--business-id", "larkspur", "--dims", "2", "-q")
    assert result.exit_code == 0, result.stderr
    assert "\n\nrank  embedding" in result.stdout


@pytest.mark.parametrize("name", ["evaluate", "train", "plot", "demo"])
def test_the_help_starts_with_two_examples(eq, name: str) -> None:
    result = eq("accounts", name, "--help")
    examples = [line.strip() for line in result.stdout.splitlines() if line.strip().startswith("eq accounts")]
    assert len(examples) >= 2
    assert all(len(line) <= 100 for line in examples)
    assert "--json" in result.stdout


@pytest.mark.parametrize("name", ["evaluate", "train", "plot", "demo"])
def test_the_help_fits_80_columns(eq, name: str, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = eq("accounts", name, "--help").stdout.splitlines()
    assert not [line for line in lines if len(line) > 80 and not line.strip().startswith("eq accounts")]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("evaluate",), "E310"),
        (("evaluate", "--tree", "accounts.csv", "--edges", "edges.tsv"), "E310"),
        (("evaluate", "--tree", "accounts.csv", "--geometry", "lorenz"), "E300"),
        (("evaluate", "--edges", "edges.tsv", "--business-id", "a"), "E310"),
        (
            ("evaluate", "--tree", "accounts.csv", "--business-id", "a"),
            "E310",
        ),
        (("evaluate", "--tree", "accounts.csv", "--closure"), "E310"),
        (("evaluate", "--edges", "edges.tsv", "--closure"), "E200"),
        (("evaluate", "--database", "accounts.csv"), "E200"),
        (("evaluate", "--database", "books.db", "--table", "a.b"), "E300"),
        (("evaluate", "--tree", "books.db"), "E310"),
        (("evaluate", "--tree", "accounts.csv", "--train-relation", "parnt"), "E300"),
        (
            ("train", "--tree", "accounts.csv", "--train-relation", "ancestor", "-o", "v.csv"),
            "E300",
        ),
        (("evaluate", "--tree", "header.csv"), "E204"),
        (("evaluate", "--tree", "broken.json"), "E204"),
        (("evaluate", "--tree", "flat.csv"), "E400"),
        (("train", "--tree", "flat.csv", "-o", "v.csv"), "E400"),
        (("train", "--codes", "plain.txt", "-o", "v.csv"), "E200"),
        (
            ("train", "--tree", "accounts.csv", "--embedder", "combinatorial", "--dim", "1", "-o", "v.csv"),
            "E310",
        ),
        (("evaluate", "--tree", "accounts.csv", "--relation", "parents"), "E300"),
        (("evaluate", "--tree", "loop.csv"), "E200"),
        (("train", "--tree", "accounts.csv", "--embedder", "lorenz", "-o", "v.csv"), "E300"),
        (("train", "--tree", "accounts.csv", "-o", "nowhere/v.csv"), "E500"),
        (("plot", "nowhere", "-o", "a.html"), "E500"),
        (("plot", "accounts.csv", "-o", "a.pdf"), "E310"),
    ],
)
def test_invalid_arguments_are_errors_with_exit_status_2(
    eq, folder: Path, arguments: tuple[str, ...], code: str
) -> None:
    (folder / "loop.csv").write_text("id,parent,name\na,b,A\nb,c,B\nc,a,C\n")
    (folder / "flat.csv").write_text("id,parent,name\na,,A\nb,,B\n")
    (folder / "header.csv").write_text("id,parent,name\n")
    (folder / "broken.json").write_text('{"id": 1, "children": [')
    (folder / "plain.txt").write_text("1000\n1100\n1120\n")
    result = eq("accounts", *arguments)
    assert result.exit_code == 2
    assert not (folder / "v.csv").exists()
    assert f"error[{code}]" in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "expected_message", "expected_hint"),
    [
        (("train", "-o", "v.txt"), "E310", "v.txt does not have the file extension", ".csv, .csv.gz, .npz"),
        (("train", "-o", "v.parquet"), "E310", "v.parquet does not have the file extension", ".csv, .csv.gz, .npz"),
        (("train", "-o", "/proc/v.csv"), "E500", "/proc/v.csv cannot be written", "another folder"),
        (("evaluate", "--confidence-level", "95"), "E310", "confidence_level=95.0", "confidence_level=0.95"),
        (("evaluate", "--geometry", "sphere"), "E300", "'sphere'", "there are: euclidean, poincare, lorentz"),
        (("train", "--geometry", "lorenz", "-o", "v.csv"), "E300", "'lorenz'", "did you mean lorentz"),
    ],
)
def test_invalid_options_are_reported_before_training(
    eq, folder: Path, arguments, code, expected_message, expected_hint
) -> None:
    result = eq("accounts", *arguments, "--tree", "accounts.csv")
    assert result.exit_code == 2
    error, printed_hint = result.stderr.split("hint:")
    assert f"error[{code}]" in error
    assert expected_message in error
    assert expected_hint in " ".join(printed_hint.split())
    assert not list(folder.glob("v.*"))


def test_columns_of_a_file_can_be_mapped(eq, folder: Path) -> None:
    rows = ["Konto;Oberkonto;Bezeichnung", "1;;Aktiva", "11;1;Kasse", "12;1;Bank", "111;11;Wechselgeld"]
    (folder / "konten.csv").write_text("\n".join(rows))
    arguments = (*EVALUATE, "--tree", "konten.csv", "--geometry", "euclidean", "--dims", "2", "--json")
    without_columns = eq(*arguments)
    assert without_columns.exit_code == 2
    assert "its columns are Konto, Oberkonto, Bezeichnung" in " ".join(without_columns.stderr.split())
    with_columns = eq(*arguments, "--columns", "id=Konto,parent=Oberkonto,name=Bezeichnung")
    assert with_columns.exit_code == 0, with_columns.stderr
    assert json.loads(with_columns.stdout)["tree"]["edges"] == 3
    edges_with_columns = eq(*EVALUATE, "--edges", "edges.tsv", "--columns", "id=a")
    assert "error[E310]" in edges_with_columns.stderr
    assert "--tree or --database" in edges_with_columns.stderr


def test_a_subtree_is_named_in_the_source(eq) -> None:
    arguments = (*EVALUATE, "--geometry", "euclidean", "--dims", "2", "--json")
    result = eq(*arguments, "--tree", "accounts.csv", "--subtree", "1-1")
    assert json.loads(result.stdout)["tree"]["source"] == "accounts.csv below 1-1"


def test_a_subtree_of_wordnet_is_named_by_its_root(eq) -> None:
    if not Path("/usr/share/wordnet/data.noun").exists():
        pytest.skip("no WordNet: apt install wordnet-base")
    arguments = ("train", "--wordnet", "mammal", "--subtree", "dog.n.01", "--embedder", "random", "-o", "v.csv")
    lines = eq("accounts", *arguments).stdout.splitlines()
    assert lines[0] == (
        "In the random embedding with 10 dimensions, 189 of 190 nodes are nearer to another node than to their parent."
    )
    assert lines[2].startswith("WordNet nouns below dog.n.01: 190 nodes")


def test_one_epoch_is_singular(eq) -> None:
    arguments = ("--tree", "accounts.csv", "--epochs", "1", "--dim", "1", "-o", "v.csv")
    assert "lorentz, 1 dimension, 1 epoch." in eq("accounts", "train", *arguments).stdout


def test_narrow_tables_drop_columns_before_truncating_names(eq, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "70")
    arguments = (*EVALUATE, "--tree", "accounts.csv", "--geometry", "euclidean", "--dims", "2", "10")
    result = eq(*arguments)
    assert "combinatorial-10" in result.stdout
    output = " ".join(result.stdout.split())
    assert "MAP closure" not in output
    verbose = " ".join(
        eq(*EVALUATE, "--tree", "accounts.csv", "--geometry", "euclidean", "--dims", "2", "-v").stdout.split()
    )
    assert "MAP closure" in verbose.partition("(not shown:")[2].partition(";")[0]


def test_codes_without_separators_need_code_widths(eq, folder: Path) -> None:
    codes = [top + group for top in "12345" for group in ("", "10", "20")]
    (folder / "plain.txt").write_text("".join(f"{code}\n" for code in codes))
    arguments = ("--codes", "plain.txt", "--geometry", "euclidean", "--dims", "2", "--json")
    result = eq(*EVALUATE, *arguments, "--code-widths", "1,2")
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout)["tree"]["edges"] == 10
    assert '"E310"' in eq(*EVALUATE, *arguments, "--code-widths", "1;2").stderr


@pytest.mark.engines("torch")
@pytest.mark.parametrize("arguments", [("evaluate", "-o", "results"), ("train", "-o", "vectors.csv")])
def test_a_missing_device_is_reported_before_any_work(eq, folder: Path, arguments) -> None:
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("there is one")
    result = eq("accounts", *arguments, "--tree", "accounts.csv", "--device", "cuda")
    assert result.exit_code == 4
    assert "error[E600]" in result.stderr
    assert not (folder / arguments[-1]).exists()


@pytest.mark.engines("torch")
def test_a_tree_is_trained_on_a_device(eq) -> None:
    pytest.importorskip("torch")
    arguments = ("accounts", "train", "--tree", "accounts.csv", "--dim", "3", "--epochs", "20", "--json")
    result = eq(*arguments, "--device", "cpu", "-o", "there.npz")
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout)["epochs"] == 20
    assert read_node_vectors("there.npz").settings["device"] == "cpu"
    assert eq(*arguments, "--device", "cpu", "--train-relation", "closure", "-o", "up.npz").exit_code == 0
    assert read_node_vectors("up.npz").settings["train_relation"] == "closure"
    assert not np.array_equal(read_node_vectors("up.npz").vectors, read_node_vectors("there.npz").vectors)
    with_restarts = eq(*arguments, "--device", "cpu", "--restarts", "2", "-o", "there.npz")
    assert with_restarts.exit_code == 2
    assert "training on a device has no option restarts" in with_restarts.stderr


@pytest.mark.engines("torch")
def test_systems_trained_on_the_cpu_are_reported(eq) -> None:
    pytest.importorskip("torch")
    result = eq(*EVALUATE, "--tree", "accounts.csv", "--dims", "2", "--device", "cpu")
    assert result.exit_code == 0, result.stderr
    assert "trained on the CPU, and ranked on cpu: euclidean-2" in result.stderr


def test_all_problems_are_listed_and_the_exit_status_is_1(eq, folder: Path) -> None:
    (folder / "bad.csv").write_text("id,parent,name\n1,,Assets\n1,,Again\n2,2,Own\n3,9,Orphan\n")
    result = eq("accounts", "check", "bad.csv", "--json")
    assert result.exit_code == 1
    assert [item["code"] for item in json.loads(result.stdout)["findings"]] == ["EQ170", "EQ171", "EQ172"]
    assert "Findings" in eq("accounts", "check", "bad.csv").stdout
    valid = eq("accounts", "check", "accounts.csv")
    assert valid.exit_code == 0
    assert "4 at 0, 12 at 1, 24 at 2" in valid.stdout
    (folder / "orphan.csv").write_text("id,parent,name\n1,,Assets\n11,1,Cash\n3,9,Orphan\n")
    arguments = ("accounts", "train", "--tree", "orphan.csv", "--embedder", "random", "--dim", "2", "-o", "v.npz")
    assert eq(*arguments).exit_code == 2
    assert eq(*arguments, "--orphans", "root", "--json").exit_code == 0
    assert len(read_node_vectors(folder / "v.npz").ids) == 3


def test_a_new_account_is_placed_and_placements_are_evaluated(eq) -> None:
    result = eq("accounts", "place", "accounts.csv", "--sibling", "2-1-1", "--json")
    assert json.loads(result.stdout)["parents"][0]["id"] == "2-1"
    by_name = json.loads(eq("accounts", "place", "accounts.csv", "--name", "Account 3.2.9", "--json").stdout)
    assert by_name["parents"][0]["id"] == "3-2"
    assert 0 < by_name["parents"][0]["confidence"] <= 1
    arguments = ("accounts", "place", "accounts.csv", "--held-out", "0.25", "--dim", "2", "--n-resamples", "40")
    evaluated = json.loads(eq(*arguments, "--json").stdout)
    assert evaluated["held_out"] == 6
    assert [item["system"] for item in evaluated["systems"]][-1] == "structure alone"
    answer = eq(*arguments).stdout
    assert " on 6 accounts" in answer.partition("rank  source")[0]
    assert "structure alone uses no names" in eq(*arguments, "-v").stdout
    table = eq("accounts", "place", "accounts.csv", "--name", "Account 3.2.9", "--top-k", "3", "--to", "csv")
    assert [line.split(",")[0] for line in table.stdout.splitlines()] == ["rank", "1", "2", "3"]
    assert eq("accounts", "place", "accounts.csv", "--held-out", "0.2", "--name", "x").exit_code == 2


@pytest.mark.parametrize(
    ("confidences", "answer"),
    [
        ((0.22, 0.19, 0.02), "Inconclusive: 12 Fixed (22 %) or 11 Current (19 %)."),
        ((0.3, 0.3, 0.3), "Inconclusive: 12 Fixed (30 %), 11 Current (30 %) or 2 Debts (30 %)."),
        (
            (0.2, 0.19, 0.18, 0.17, 0.01),
            "Inconclusive: 12 Fixed (20 %), 11 Current (19 %), 2 Debts (18 %) or 1 with less.",
        ),
        ((0.3, 0.12), "'Cash' most likely belongs under 12 Fixed (confidence 30 %)."),
        ((0.6, 0.4), "'Cash' most likely belongs under 12 Fixed (confidence 60 %)."),
    ],
)
def test_a_parent_without_a_clear_lead_is_not_decided(confidences: tuple[float, ...], answer: str) -> None:
    names = {"12": "Fixed", "11": "Current", "2": "Debts", "3": "Equity", "4": "Income"}
    tree = Tree.of(names.items(), [])
    ranked = [ParentCandidate(key, names[key], confidence) for key, confidence in zip(names, confidences, strict=False)]
    assert _place_answer(tree, "'Cash'", ranked) == answer


def test_a_name_without_information_has_no_most_likely_parent(eq) -> None:
    unknown = eq("accounts", "place", "accounts.csv", "--name", "Xyzzy", "--top-k", "2").stdout
    assert unknown.startswith("No parent is the most likely one: 16 have the same confidence, 6 %.")


def test_the_list_of_misfiled_accounts_shows_names_and_both_confidences(eq, folder: Path) -> None:
    ids = {
        name: f"{index:032x}" for index, name in enumerate(("Cash", "Taxes", "Petty cash", "Income tax", "Sales tax"))
    }
    parent_names = {"Petty cash": "Cash", "Income tax": "Taxes", "Sales tax": "Cash"}
    rows = [f"{key},{ids.get(parent_names.get(name, ''), '')},{name}" for name, key in ids.items()]
    more_rows = [
        f"{90 + index:032x},{ids['Taxes']},{name} tax" for index, name in enumerate(("Property", "Payroll", "Capital"))
    ]
    (folder / "random_ids.csv").write_text("\n".join(["id,parent,name", *rows, *more_rows]))
    lines = eq("accounts", "misfiled", "random_ids.csv", "--min-confidence", "0.3", "--to", "csv").stdout.splitlines()
    assert lines[0] == "account,current parent,likely parent,confidence,confidence (current)"
    assert lines[1].startswith("Sales tax,Cash,Taxes,")
    assert all(0 < float(cell) < 1 for cell in lines[1].split(",")[3:])
    shown = eq("accounts", "misfiled", "random_ids.csv", "--min-confidence", "0.3").stdout
    assert re.search(r"Sales tax +Cash +Taxes +\d+ % +\d+ %", shown)


def test_nearest_misfiled_and_shape_start_with_the_answer(eq, folder: Path) -> None:
    eq("accounts", "train", "--tree", "accounts.csv", "--embedder", "combinatorial", "--dim", "2", "-o", "v.npz")
    nearest = json.loads(
        eq("accounts", "nearest", "v.npz", "1-1-1", "--tree", "accounts.csv", "-k", "2", "--json").stdout
    )
    assert nearest["nearest"][0]["id"] == "1-1"
    assert [item["id"] for item in nearest["ancestors"]] == ["1-1", "1"]
    assert "Ancestors by norm" in eq("accounts", "nearest", "v.npz", "1-1-1", "--tree", "accounts.csv").stdout
    assert json.loads(eq("accounts", "misfiled", "accounts.csv", "--json").stdout)["misfiled"] == []
    assert "accounts.csv" in eq("accounts", "misfiled", "accounts.csv").stdout.splitlines()[0]
    assert eq("accounts", "shape", "accounts.csv").stdout.startswith("Hyperbolic space suits these distances: ")
    np.save(folder / "distances.npy", np.abs(np.subtract.outer(np.arange(40.0), np.arange(40.0))))
    assert json.loads(eq("accounts", "shape", "--distances", "distances.npy", "--json").stdout)["n_nodes"] == 40
    assert eq("accounts", "shape", "accounts.csv", "--distances", "distances.npy").exit_code == 2


def test_check_and_shape_write_tables(eq, folder: Path) -> None:
    (folder / "orphan.csv").write_text("id,parent,name\n1,,Top\n2,9,Cash\n")
    checked = eq("accounts", "check", "orphan.csv", "--to", "csv")
    assert checked.exit_code == 1
    assert checked.stdout.splitlines()[0] == "code,severity,message,hint"
    assert checked.stdout.splitlines()[1].startswith("EQ172,issue,")
    assert eq("accounts", "shape", "accounts.csv", "-o", "shape.csv").exit_code == 0
    assert (folder / "shape.csv").read_text().startswith("nodes,delta-hyperbolicity,diameter,")


@pytest.mark.engines("torch")
@pytest.mark.parametrize("name", ["place", "misfiled"])
def test_names_are_embedded_on_the_device(eq, name: str) -> None:
    options = ("--name", "Top 1") if name == "place" else ()
    on_device = eq("accounts", name, "accounts.csv", *options, "--device", "cpu")
    assert on_device.stdout == eq("accounts", name, "accounts.csv", *options).stdout != ""
    assert eq("accounts", name, "accounts.csv", *options, "--device", "gpu").exit_code == 2


def test_a_misspelled_name_of_an_account_has_a_suggestion(eq, folder: Path) -> None:
    eq("accounts", "train", "--tree", "accounts.csv", "--embedder", "combinatorial", "--dim", "2", "-o", "v.npz")
    unknown = eq("accounts", "nearest", "v.npz", "Acount 1.1.1", "--tree", "accounts.csv")
    assert (unknown.exit_code, "did you mean Account 1" in unknown.stderr) == (2, True)


def test_training_continues_from_a_file(eq, folder: Path) -> None:
    arguments = ("accounts", "train", "--tree", "accounts.csv", "--dim", "3", "--epochs", "30")
    assert eq(*arguments, "-o", "first.npz").exit_code == 0
    with (folder / "accounts.csv").open("a") as stream:
        stream.write("1-1-9,1-1,Account 1.1.9\n")
    rows = (folder / "accounts.csv").read_text().splitlines()
    (folder / "accounts.csv").write_text("\n".join(row for row in rows if not row.startswith(("1-1-1,", "1-1-2,"))))
    continued = eq(*arguments, "--continue-from", "first.npz", "-o", "second.npz")
    assert f"1 of {len(rows) - 3} nodes is new; 2 earlier vectors were left out." in continued.stdout
    assert read_node_vectors(folder / "second.npz").settings["new_nodes"] == 1
    as_json = json.loads(eq(*arguments, "--continue-from", "first.npz", "-o", "second.npz", "--json").stdout)
    assert (as_json["new_nodes"], as_json["unused_vectors"]) == (1, 2)
    ball = eq(*arguments[:4], "--geometry", "poincare", "--continue-from", "first.npz", "-o", "ball.npz")
    assert ball.exit_code == 0, ball.output
    assert eq(*arguments[:4], "--continue-from", "ball.npz", "-o", "third.npz").exit_code == 0
    assert read_node_vectors("third.npz").geometry == "poincare"
    other = eq(*arguments[:4], "--dim", "4", "--continue-from", "first.npz", "-o", "x.npz")
    assert (other.exit_code, "--dim is 4" in other.stderr) == (2, True)
    assert eq(*arguments[:4], "--embedder", "random", "--continue-from", "first.npz", "-o", "x.npz").exit_code == 2


def test_distance_matrices_are_evaluated_and_compared_without_training(eq, folder: Path) -> None:
    tree = read_tree(folder / "accounts.csv")
    edges = tree_distances(tree, np.arange(len(tree)))
    np.save(folder / "edges.npy", edges)
    rng = np.random.default_rng(0)
    noise = np.linalg.norm(rng.standard_normal((len(tree), 1, 3)) - rng.standard_normal((1, len(tree), 3)), axis=2)
    np.save(folder / "noise.npy", np.triu(noise, 1) + np.triu(noise, 1).T)
    options = ("accounts", "evaluate", "--tree", "accounts.csv", "--n-resamples", "50")
    result = eq(*options, "--distances", "edges.npy", "noise.npy", "--json")
    assert result.exit_code == 0, result.stderr
    content = json.loads(result.stdout)
    assert [system["system"] for system in content["systems"]] == ["edges", "noise"]
    assert content["comparison"]["leader"] == "edges"
    # A node has as many children at distance 1 as parents: its parent is tied with these.
    expected = np.mean([1.0 + len(tree.children(node)) / 2 for node in range(len(tree)) if len(tree.parents(node))])
    assert content["systems"][0]["relations"]["parent"]["mean_rank"] == pytest.approx(expected)
    assert eq(*options, "--distances", "edges.npy").exit_code == 0
    assert "E310" in eq(*options, "--distances", "edges.npy", "--geometry", "lorentz").stderr


@pytest.mark.slow
def test_the_output_starts_with_the_effect_of_dimensions(eq) -> None:
    result = eq(*EVALUATE, "--tree", "accounts.csv", "--dims", "1", "2")
    assert result.stdout.startswith(
        "2 of 7 embeddings place every node nearest to its parent (mean rank 1 on 36 nodes). The cheapest of these is "
        "combinatorial-2 (2 dimensions, no training). lorentz needs 2 dimensions."
    )
