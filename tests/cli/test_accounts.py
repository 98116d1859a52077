"""``eq accounts``, run as people run it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from equipoise.domains.accounts import cli
from equipoise.domains.accounts.embedders import LorentzEmbedder
from equipoise.domains.accounts.shape import tree_distances
from equipoise.domains.accounts.trees.read import accounts, read_tree
from equipoise.domains.accounts.trees.tree import Tree
from equipoise.domains.accounts.vectors import NodeVectors, read_node_vectors
from equipoise.io.dag import edges as read_pairs
from equipoise.report.view import View

QUICK = ("--learning-rates", "0.3", "--epochs", "4", "--n-resamples", "40")
EVALUATE = ("accounts", "evaluate", *QUICK)


@pytest.fixture(autouse=True)
def files(folder: Path) -> None:
    """A chart of accounts as a table, as edges and as codes; and the sample's database."""
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
def test_a_table_of_embeddings_stands_beside_baselines(eq, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "110")
    done = eq(*EVALUATE, "--tree", "accounts.csv", "--geometry", "lorentz", "--dims", "2", "4")
    assert done.exit_code == 0, done.stderr
    lines = done.stdout.splitlines()
    assert "36 nodes" in " ".join(lines[:3])
    table = next(index for index, line in enumerate(lines) if line.startswith("rank"))
    systems = {line.split()[1] for line in lines[table + 2 : table + 10]}
    assert systems == {
        f"{name}-{dim}" for name in ("lorentz", "combinatorial", "euclidean", "random") for dim in (2, 4)
    }
    assert "accounts.csv: 40 nodes, 36 edges, 4 roots, 3 levels." in done.stdout
    assert "A random embedding scores 20" in done.stdout
    verbose = eq(*EVALUATE, "--tree", "accounts.csv", "--geometry", "lorentz", "--dims", "2", "-v").stdout
    assert "MAP is the mean reciprocal rank" in verbose


@pytest.mark.parametrize(
    "source",
    [
        ("--tree", "accounts.csv"),
        ("--edges", "edges.tsv"),
        ("--codes", "codes.txt"),
    ],
)
def test_the_same_tree_has_the_same_figures_from_every_source(eq, source: tuple[str, str]) -> None:
    done = eq(*EVALUATE, *source, "--embedder", "combinatorial", "--dims", "2", "--json")
    assert done.exit_code == 0, done.stderr
    told = json.loads(done.stdout, parse_constant=pytest.fail)
    assert (told["tree"]["nodes"], told["tree"]["edges"], told["tree"]["roots"]) == (40, 36, 4)
    assert [each["system"] for each in told["systems"]] == ["combinatorial-2", "euclidean-2", "random-2"]


def test_a_database_gives_only_the_accounts_of_its_business(eq) -> None:
    pytest.importorskip("sqlalchemy")
    sizes = []
    for business in ("acme", "larkspur"):
        done = eq(
            *EVALUATE, "--database", "sqlite:///books.db", "--business-id", business,
            "--embedder", "random", "--dims", "2", "--json",
        )  # fmt: skip
        assert done.exit_code == 0, done.stderr
        sizes.append(json.loads(done.stdout)["tree"]["nodes"])
    assert sizes == [128, 88]


def test_a_database_is_known_by_what_it_holds(eq) -> None:
    pytest.importorskip("sqlalchemy")
    words = ("--tree", "books.db", "--business-id", "larkspur", "--embedder", "random", "-o", "v.npz")
    done = eq("accounts", "train", *words, "--json")
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout)["units"] == 88


def test_a_closure_file_is_known_as_one_and_it_is_said(eq, folder: Path) -> None:
    closed = Tree.from_edges(read_pairs(folder / "edges.tsv"))
    pairs = [(closed.ids[low], closed.ids[high]) for low, high in closed.closure()]
    (folder / "closure.tsv").write_text("".join(f"{low}\t{high}\n" for low, high in pairs))
    sizes = {}
    for word in ("--closure", "--no-closure", "-q"):
        words = ("--edges", "closure.tsv", word, "--embedder", "random", "--dims", "2", "--json")
        told = json.loads(eq(*EVALUATE, *words).stdout)["tree"]
        sizes[word] = (told["edges"], told["source"])
    assert sizes["--closure"] == (36, "closure.tsv")
    assert sizes["--no-closure"] == (len(pairs), "closure.tsv")
    assert sizes["-q"] == (36, "closure.tsv (read as a closure)")


def test_vectors_that_training_has_lost_are_not_written(eq, folder: Path, monkeypatch) -> None:
    def fit(embedder: LorentzEmbedder, tree: Tree, dim: int, seed: int, progress) -> NodeVectors:
        rows = np.full((len(tree), dim), np.nan)
        return NodeVectors(tree.ids, tree.names, rows, "euclidean", {"learning_rate": 9.0}, (np.nan,))

    monkeypatch.setattr(LorentzEmbedder, "fit", fit)
    done = eq("accounts", "train", "--tree", "accounts.csv", "-o", "v.csv")
    assert done.exit_code == 2
    assert "training at the learning rate 9.0 left 40 of 40 points without finite coordinates" in done.stderr
    assert "a smaller learning rate" in done.stderr
    assert not (folder / "v.csv").exists()


def test_options_of_training_reach_it(eq, folder: Path) -> None:
    words = ("--epochs", "3", "--restarts", "2", "--dim", "2", "-o", "v.npz")
    done = eq("accounts", "train", "--tree", "accounts.csv", "--train-relation", "ancestors", *words)
    assert done.exit_code == 0
    made = read_node_vectors(folder / "v.npz").settings
    assert (made["epochs"], made["restarts"]) == (3, 2)
    assert made["train_relation"] == "ancestors"


@pytest.mark.parametrize("more", [(), pytest.param(("--device", "cpu"), marks=pytest.mark.engines("torch"))])
def test_a_name_in_other_letters_is_trained_alike(eq, folder: Path, more: tuple[str, ...]) -> None:
    if more:
        pytest.importorskip("torch")
    words = (
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
        assert eq(*words, "--embedder", name, *more, "-o", f"{name}.npz").exit_code == 0
    lower, upper = (read_node_vectors(folder / f"{name}.npz") for name in ("lorentz", "Lorentz"))
    assert lower.settings == upper.settings
    assert lower.settings["train_relation"] == "closure"
    np.testing.assert_array_equal(lower.vectors, upper.vectors)


@pytest.mark.slow
def test_vectors_of_another_training_are_named(eq, folder: Path) -> None:
    words = (
        "--tree",
        "accounts.csv",
        "--relation",
        "closure",
        "--dim",
        "2",
        "--epochs",
        "4",
        "-o",
        "mine.npz",
    )
    told = eq("accounts", "train", *words).stdout
    assert "with --vectors mine.npz --relation closure." in " ".join(told.split())
    beside = eq(*EVALUATE, "--tree", "accounts.csv", "--dims", "2", "--vectors", "mine=mine.npz").stdout
    assert "Trained on another relation: mine." in " ".join(beside.split())


@pytest.mark.slow
def test_vectors_trained_on_another_relation_are_not_resumed(eq, folder: Path) -> None:
    words = (*EVALUATE, "--tree", "accounts.csv", "--dims", "2", "-o", "results", "--json")
    first, other, again = (
        json.loads(eq(*words, *more).stdout) for more in ((), *2 * [("--train-relation", "closure")])
    )
    assert first["resumed"] == []
    assert other["resumed"] == ["combinatorial-2", "random-2"]
    assert sorted(again["resumed"]) == ["combinatorial-2", "euclidean-2", "lorentz-2", "random-2"]
    assert other["systems"][0]["estimates"] != first["systems"][0]["estimates"]
    told = eq(*words[:-1], "--train-relation", "closure").stdout
    assert "Trained on another relation: lorentz-2, euclidean-2" in told
    assert "another relation" not in eq(*words[:-1]).stdout
    assert {each["train_relation"] for each in other["systems"]} == {"closure", None}


@pytest.mark.slow
def test_what_is_kept_is_compared_reported_and_drawn(eq, folder: Path) -> None:
    pytest.importorskip("vl_convert")
    done = eq(*EVALUATE, "--tree", "accounts.csv", "--dims", "2", "4", "-o", "results", "-q")
    assert done.exit_code == 0, done.stderr
    assert (folder / "results" / "charts" / "disk.svg").is_file()
    view = View.read(folder / "results")
    assert view is not None
    assert "disk" in {chart.name for chart in view.charts}
    compared = eq("compare", "results/runs/lorentz-2", "results/runs/random-2", "--primary", "MR", "--json")
    assert compared.exit_code == 0, compared.stderr
    assert json.loads(compared.stdout)["leader"] == "lorentz-2"
    drawn = eq("accounts", "plot", "results", "-o", "disk.html")
    assert drawn.exit_code == 0, drawn.stderr
    page = (folder / "disk.html").read_text()
    assert '"Account 1.1.2"' in page
    assert "http-equiv" in page
    assert 'src="' not in page
    assert '<canvas id="tree"' in page
    for name in ("norm-depth-combinatorial-2", "dimensions-mr", "dimensions-map"):
        assert f'data-chart="{name}"' in page
    one = eq("accounts", "plot", "results", "--chart", "dimensions-mr", "-o", "mr.html", "--json")
    assert json.loads(one.stdout)["charts"] == ["dimensions-mr"]
    assert json.loads(one.stdout)["system"] is None
    assert "lorentz-2" not in one.stderr
    assert 'data-chart="disk"' not in (folder / "mr.html").read_text()
    (folder / "other.csv").write_text("id,parent,name\n1,,A\n2,1,B\n3,1,C\n")
    other = eq(*EVALUATE, "--tree", "other.csv", "--dims", "2", "-o", "results")
    assert other.exit_code == 2
    assert "results has another tree: accounts.csv with 40 nodes" in other.stderr


def test_the_command_typed_again_reads_back_what_it_left(eq) -> None:
    # One dimension is not drawn, which saves the time of it.
    words = (*EVALUATE, "--tree", "accounts.csv", "--dims", "1", "-o", "results", "--json")
    first, again = json.loads(eq(*words).stdout), eq(*words)
    told = json.loads(again.stdout)
    assert first["resumed"] == []
    assert told["resumed"] == ["lorentz-1", "euclidean-1", "random-1"]
    assert told["systems"] == first["systems"]


@pytest.mark.slow
def test_vectors_are_trained_judged_and_drawn_from_a_file(eq, folder: Path) -> None:
    pytest.importorskip("vl_convert")
    tree = ("--tree", "accounts.csv")
    done = eq("accounts", "train", *tree, "--dim", "3", "--epochs", "6", "-o", "v.csv", "--json")
    assert done.exit_code == 0, done.stderr
    header = (folder / "v.csv").read_text().splitlines()[0]
    assert header == "id,name,x0,x1,x2,x3"
    mean_rank = json.loads(done.stdout)["estimates"][0]["value"]
    judged = eq(*EVALUATE, *tree, "--vectors", "mine=v.csv", "--vectors-geometry", "lorentz", "--dims", "2", "--json")
    own = json.loads(judged.stdout)["systems"][0]
    assert (own["system"], own["dim"], own["estimates"][0]["value"]) == ("mine", 3, mean_rank)
    drawn = eq("accounts", "plot", "v.csv", *tree, "--geometry", "hyperbolic_lorentz", "-o", "v.svg")
    assert drawn.exit_code == 0, drawn.stderr
    assert (folder / "v.svg").read_text().startswith("<svg")
    (folder / "v.svg").unlink()
    outside = eq("accounts", "plot", "v.csv", *tree, "--geometry", "poincare", "-o", "v.svg")
    assert outside.exit_code == 2
    assert "40 of the 40 points of accounts.csv" in outside.stderr
    assert not (folder / "v.svg").exists()


def test_a_csv_without_a_geometry_is_taken_as_flat_and_it_is_said(eq, folder: Path) -> None:
    eq("accounts", "train", "--tree", "accounts.csv", "--embedder", "random", "-o", "v.csv")
    words = ("--tree", "accounts.csv", "--vectors", "v.csv", "--dims", "2", "--json")
    assert "read as euclidean" in eq(*EVALUATE, *words).stderr


@pytest.mark.slow
def test_npz_keeps_the_geometry_and_every_digit(eq, folder: Path) -> None:
    for name in ("v.npz", "v.csv"):
        words = ("--geometry", "poincare", "--dim", "2", "--epochs", "6", "-o", name)
        assert eq("accounts", "train", "--tree", "accounts.csv", *words).exit_code == 0
    kept, table = read_node_vectors(folder / "v.npz"), read_node_vectors(folder / "v.csv", "poincare")
    assert kept.geometry == "poincare"
    assert np.array_equal(kept.vectors, table.vectors)


@pytest.mark.slow
def test_the_demonstration_needs_nothing(eq, monkeypatch) -> None:
    pytest.importorskip("sqlalchemy")
    monkeypatch.setattr(cli, "DEMO_LEARNING_RATES", (0.3,))
    done = eq("accounts", "demo", "--business-id", "larkspur", "--dims", "2", "-q")
    assert done.exit_code == 0, done.stderr
    assert done.stdout.startswith("rank  embedding")


@pytest.mark.parametrize("name", ["evaluate", "train", "plot", "demo"])
def test_the_help_opens_with_two_lines_to_type(eq, name: str) -> None:
    done = eq("accounts", name, "--help")
    examples = [line.strip() for line in done.stdout.splitlines() if line.strip().startswith("eq accounts")]
    assert len(examples) >= 2
    assert all(len(line) <= 100 for line in examples)
    assert "--json" in done.stdout


@pytest.mark.parametrize("name", ["evaluate", "train", "plot", "demo"])
def test_the_help_fits_a_narrow_window(eq, name: str, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = eq("accounts", name, "--help").stdout.splitlines()
    assert not [line for line in lines if len(line) > 80 and not line.strip().startswith("eq accounts")]


@pytest.mark.parametrize(
    ("words", "code"),
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
def test_mistakes_are_named_and_end_with_2(eq, folder: Path, words: tuple[str, ...], code: str) -> None:
    (folder / "loop.csv").write_text("id,parent,name\na,b,A\nb,c,B\nc,a,C\n")
    (folder / "flat.csv").write_text("id,parent,name\na,,A\nb,,B\n")
    (folder / "header.csv").write_text("id,parent,name\n")
    (folder / "broken.json").write_text('{"id": 1, "children": [')
    (folder / "plain.txt").write_text("1000\n1100\n1120\n")
    done = eq("accounts", *words)
    assert done.exit_code == 2
    assert not (folder / "v.csv").exists()
    assert f"error[{code}]" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("words", "code", "sentence", "hint"),
    [
        (("train", "-o", "v.txt"), "E310", "v.txt does not have the file extension", ".csv, .csv.gz, .npz"),
        (("train", "-o", "v.parquet"), "E310", "v.parquet does not have the file extension", ".csv, .csv.gz, .npz"),
        (("train", "-o", "/proc/v.csv"), "E500", "/proc/v.csv cannot be written", "another folder"),
        (("evaluate", "--confidence-level", "95"), "E310", "confidence_level=95.0", "confidence_level=0.95"),
        (("evaluate", "--geometry", "sphere"), "E300", "'sphere'", "there are: euclidean, poincare, lorentz"),
        (("train", "--geometry", "lorenz", "-o", "v.csv"), "E300", "'lorenz'", "did you mean lorentz"),
    ],
)
def test_what_cannot_be_is_said_before_any_training(eq, folder: Path, words, code, sentence, hint) -> None:
    done = eq("accounts", *words, "--tree", "accounts.csv")
    assert done.exit_code == 2
    error, printed_hint = done.stderr.split("hint:")
    assert f"error[{code}]" in error
    assert sentence in error
    assert hint in " ".join(printed_hint.split())
    assert not list(folder.glob("v.*"))


def test_columns_of_a_file_are_named_as_those_of_a_database(eq, folder: Path) -> None:
    rows = ["Konto;Oberkonto;Bezeichnung", "1;;Aktiva", "11;1;Kasse", "12;1;Bank", "111;11;Wechselgeld"]
    (folder / "konten.csv").write_text("\n".join(rows))
    words = (*EVALUATE, "--tree", "konten.csv", "--embedder", "random", "--dims", "2", "--json")
    lost = eq(*words)
    assert lost.exit_code == 2
    assert "its columns are Konto, Oberkonto, Bezeichnung" in " ".join(lost.stderr.split())
    found = eq(*words, "--columns", "id=Konto,parent=Oberkonto,name=Bezeichnung")
    assert found.exit_code == 0, found.stderr
    assert json.loads(found.stdout)["tree"]["edges"] == 3
    stray = eq(*EVALUATE, "--edges", "edges.tsv", "--columns", "id=a")
    assert "error[E310]" in stray.stderr
    assert "--tree or --database" in stray.stderr


def test_a_part_of_a_tree_is_named(eq) -> None:
    words = (*EVALUATE, "--embedder", "random", "--dims", "2", "--json")
    found = eq(*words, "--tree", "accounts.csv", "--subtree", "1-1")
    assert json.loads(found.stdout)["tree"]["source"] == "accounts.csv below 1-1"


def test_a_part_of_the_mammals_is_named_alone(eq) -> None:
    if not Path("/usr/share/wordnet/data.noun").exists():
        pytest.skip("no WordNet: apt install wordnet-base")
    words = ("train", "--wordnet", "mammal", "--subtree", "dog.n.01", "--embedder", "random", "-o", "v.csv")
    lines = eq("accounts", *words).stdout.splitlines()
    assert lines[0] == "In 10 dimensions, 189 nodes of 190 do not have the parent as the nearest node (random)."
    assert lines[2].startswith("WordNet nouns below dog.n.01: 190 nodes")


def test_one_epoch_is_one(eq) -> None:
    words = ("--tree", "accounts.csv", "--epochs", "1", "--dim", "1", "-o", "v.csv")
    assert "lorentz in 1 dimension in 1 epoch." in eq("accounts", "train", *words).stdout


def test_names_stay_whole_while_lesser_columns_can_give_way(eq, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "70")
    done = eq(*EVALUATE, "--tree", "accounts.csv", "--embedder", "combinatorial", "--dims", "2", "10")
    assert "combinatorial-10" in done.stdout
    told = " ".join(done.stdout.split())
    assert "MAP closure" in told.partition("(not shown:")[2].partition(";")[0]


def test_codes_without_separators_need_the_widths_of_their_parts(eq, folder: Path) -> None:
    codes = [top + group for top in "12345" for group in ("", "10", "20")]
    (folder / "plain.txt").write_text("".join(f"{code}\n" for code in codes))
    words = ("--codes", "plain.txt", "--embedder", "random", "--dims", "2", "--json")
    done = eq(*EVALUATE, *words, "--code-widths", "1,2")
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout)["tree"]["edges"] == 10
    assert '"E310"' in eq(*EVALUATE, *words, "--code-widths", "1;2").stderr


@pytest.mark.engines("torch")
@pytest.mark.parametrize("words", [("evaluate", "-o", "results"), ("train", "-o", "vectors.csv")])
def test_a_device_that_is_not_there_is_said_before_any_work(eq, folder: Path, words) -> None:
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("there is one")
    done = eq("accounts", *words, "--tree", "accounts.csv", "--device", "cuda")
    assert done.exit_code == 4
    assert "error[E600]" in done.stderr
    assert not (folder / words[-1]).exists()


@pytest.mark.engines("torch")
def test_a_tree_is_trained_on_a_device(eq) -> None:
    pytest.importorskip("torch")
    words = ("accounts", "train", "--tree", "accounts.csv", "--dim", "3", "--epochs", "20", "--json")
    done = eq(*words, "--device", "cpu", "-o", "there.npz")
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout)["epochs"] == 20
    assert read_node_vectors("there.npz").settings["device"] == "cpu"
    assert eq(*words, "--device", "cpu", "--train-relation", "closure", "-o", "up.npz").exit_code == 0
    assert read_node_vectors("up.npz").settings["train_relation"] == "closure"
    assert not np.array_equal(read_node_vectors("up.npz").vectors, read_node_vectors("there.npz").vectors)
    refused = eq(*words, "--device", "cpu", "--restarts", "2", "-o", "there.npz")
    assert refused.exit_code == 2
    assert "training on a device has no option restarts" in refused.stderr


@pytest.mark.engines("torch")
def test_what_stays_on_the_processor_is_told(eq) -> None:
    pytest.importorskip("torch")
    done = eq(*EVALUATE, "--tree", "accounts.csv", "--dims", "2", "--device", "cpu")
    assert done.exit_code == 0, done.stderr
    assert "trained on the CPU, and ranked on cpu: euclidean-2" in done.stderr


def test_all_problems_are_listed_and_the_exit_status_is_1(eq, folder: Path) -> None:
    (folder / "bad.csv").write_text("id,parent,name\n1,,Assets\n1,,Again\n2,2,Own\n3,9,Orphan\n")
    done = eq("accounts", "check", "bad.csv", "--json")
    assert done.exit_code == 1
    assert [item["code"] for item in json.loads(done.stdout)["findings"]] == ["EQ170", "EQ171", "EQ172"]
    assert "Findings" in eq("accounts", "check", "bad.csv").stdout
    sound = eq("accounts", "check", "accounts.csv")
    assert sound.exit_code == 0
    assert "0: 4, 1: 12, 2: 24" in sound.stdout
    (folder / "orphan.csv").write_text("id,parent,name\n1,,Assets\n11,1,Cash\n3,9,Orphan\n")
    words = ("accounts", "train", "--tree", "orphan.csv", "--embedder", "random", "--dim", "2", "-o", "v.npz")
    assert eq(*words).exit_code == 2
    assert eq(*words, "--orphans", "root", "--json").exit_code == 0
    assert len(read_node_vectors(folder / "v.npz").ids) == 3


def test_a_new_account_is_placed_and_placements_are_evaluated(eq) -> None:
    done = eq("accounts", "place", "accounts.csv", "--sibling", "2-1-1", "--json")
    assert json.loads(done.stdout)["parents"][0]["id"] == "2-1"
    by_name = json.loads(eq("accounts", "place", "accounts.csv", "--name", "Account 3.2.9", "--json").stdout)
    assert by_name["parents"][0]["id"] == "3-2"
    assert 0 < by_name["parents"][0]["confidence"] <= 1
    words = ("accounts", "place", "accounts.csv", "--held-out", "0.25", "--dim", "2", "--n-resamples", "40")
    evaluated = json.loads(eq(*words, "--json").stdout)
    assert evaluated["held_out"] == 6
    assert [item["system"] for item in evaluated["systems"]][-1] == "structure alone"
    assert "held-out accounts" in eq(*words).stdout
    placed = eq("accounts", "place", "accounts.csv", "--name", "Account 3.2.9", "--top-k", "3", "--to", "csv")
    assert [line.split(",")[0] for line in placed.stdout.splitlines()] == ["rank", "1", "2", "3"]
    assert eq("accounts", "place", "accounts.csv", "--held-out", "0.2", "--name", "x").exit_code == 2


def test_a_name_without_information_has_no_most_likely_parent(eq) -> None:
    unknown = eq("accounts", "place", "accounts.csv", "--name", "Xyzzy", "--top-k", "2").stdout
    assert unknown.startswith("No parent is the most likely one: 16 have the same confidence, 0.06.")


def test_the_list_of_misfiled_accounts_shows_names_and_both_confidences(eq, folder: Path) -> None:
    ids = {name: f"{at:032x}" for at, name in enumerate(("Cash", "Taxes", "Petty cash", "Income tax", "Sales tax"))}
    below = {"Petty cash": "Cash", "Income tax": "Taxes", "Sales tax": "Cash"}
    rows = [f"{key},{ids.get(below.get(name, ''), '')},{name}" for name, key in ids.items()]
    more = [f"{90 + at:032x},{ids['Taxes']},{name} tax" for at, name in enumerate(("Property", "Payroll", "Capital"))]
    (folder / "random_ids.csv").write_text("\n".join(["id,parent,name", *rows, *more]))
    listed = eq("accounts", "misfiled", "random_ids.csv", "--min-confidence", "0.3", "--to", "csv").stdout.splitlines()
    assert listed[0] == "account,is below,likely parent,confidence,confidence now"
    assert listed[1].startswith("Sales tax,Cash,Taxes,")


def test_nearest_misfiled_and_shape_answer_first(eq, folder: Path) -> None:
    eq("accounts", "train", "--tree", "accounts.csv", "--embedder", "combinatorial", "--dim", "2", "-o", "v.npz")
    near = json.loads(eq("accounts", "nearest", "v.npz", "1-1-1", "--tree", "accounts.csv", "-k", "2", "--json").stdout)
    assert near["nearest"][0]["id"] == "1-1"
    assert [item["id"] for item in near["ancestors"]] == ["1-1", "1"]
    assert "Ancestors by norm" in eq("accounts", "nearest", "v.npz", "1-1-1", "--tree", "accounts.csv").stdout
    assert json.loads(eq("accounts", "misfiled", "accounts.csv", "--json").stdout)["misfiled"] == []
    assert "accounts.csv" in eq("accounts", "misfiled", "accounts.csv").stdout.splitlines()[0]
    assert eq("accounts", "shape", "accounts.csv").stdout.startswith("Hyperbolic space suits these distances: ")
    np.save(folder / "distances.npy", np.abs(np.subtract.outer(np.arange(40.0), np.arange(40.0))))
    assert json.loads(eq("accounts", "shape", "--distances", "distances.npy", "--json").stdout)["n_nodes"] == 40
    assert eq("accounts", "shape", "accounts.csv", "--distances", "distances.npy").exit_code == 2


def test_a_misspelled_name_of_an_account_has_a_suggestion(eq, folder: Path) -> None:
    eq("accounts", "train", "--tree", "accounts.csv", "--embedder", "combinatorial", "--dim", "2", "-o", "v.npz")
    unknown = eq("accounts", "nearest", "v.npz", "Acount 1.1.1", "--tree", "accounts.csv")
    assert (unknown.exit_code, "did you mean Account 1" in unknown.stderr) == (2, True)


def test_training_continues_from_a_file(eq, folder: Path) -> None:
    words = ("accounts", "train", "--tree", "accounts.csv", "--dim", "3", "--epochs", "30")
    assert eq(*words, "-o", "first.npz").exit_code == 0
    with (folder / "accounts.csv").open("a") as stream:
        stream.write("1-1-9,1-1,Account 1.1.9\n")
    rows = (folder / "accounts.csv").read_text().splitlines()
    (folder / "accounts.csv").write_text("\n".join(row for row in rows if not row.startswith(("1-1-1,", "1-1-2,"))))
    continued = eq(*words, "--continue-from", "first.npz", "-o", "second.npz")
    assert f"1 node of {len(rows) - 3} is new; 2 earlier vectors left out." in continued.stdout
    assert read_node_vectors(folder / "second.npz").settings["new_nodes"] == 1
    as_json = json.loads(eq(*words, "--continue-from", "first.npz", "-o", "second.npz", "--json").stdout)
    assert (as_json["new_nodes"], as_json["unused_vectors"]) == (1, 2)
    other = eq(*words[:4], "--dim", "4", "--continue-from", "first.npz", "-o", "x.npz")
    assert (other.exit_code, "--dim is 4" in other.stderr) == (2, True)
    assert eq(*words[:4], "--embedder", "random", "--continue-from", "first.npz", "-o", "x.npz").exit_code == 2


def test_distance_matrices_are_evaluated_and_compared_without_training(eq, folder: Path) -> None:
    tree = read_tree(folder / "accounts.csv")
    edges = tree_distances(tree, np.arange(len(tree)))
    np.save(folder / "edges.npy", edges)
    rng = np.random.default_rng(0)
    noise = np.linalg.norm(rng.standard_normal((len(tree), 1, 3)) - rng.standard_normal((1, len(tree), 3)), axis=2)
    np.save(folder / "noise.npy", np.triu(noise, 1) + np.triu(noise, 1).T)
    options = ("accounts", "evaluate", "--tree", "accounts.csv", "--n-resamples", "50")
    done = eq(*options, "--distances", "edges.npy", "noise.npy", "--json")
    assert done.exit_code == 0, done.stderr
    answer = json.loads(done.stdout)
    assert [system["system"] for system in answer["systems"]] == ["edges", "noise"]
    assert answer["comparison"]["leader"] == "edges"
    # A node has as many children at distance 1 as parents: its parent is tied with these.
    expected = np.mean([1.0 + len(tree.children(node)) / 2 for node in range(len(tree)) if len(tree.parents(node))])
    assert answer["systems"][0]["relations"]["parent"]["mean_rank"] == pytest.approx(expected)
    assert eq(*options, "--distances", "edges.npy").exit_code == 0
    assert "E310" in eq(*options, "--distances", "edges.npy", "--geometry", "lorentz").stderr


@pytest.mark.slow
def test_the_first_sentence_is_about_dimensions(eq) -> None:
    done = eq(*EVALUATE, "--tree", "accounts.csv", "--dims", "1", "2")
    assert done.stdout.startswith(
        "In 2 dimensions, the parent of every node is its nearest node (lorentz); 1 is too few."
    )
