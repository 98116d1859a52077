"""``eq places``: score models of the next place against baselines, and compare them over seeds and users."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from equipoise.cli import options
from equipoise.cli import output as exits
from equipoise.cli.inputs import (
    SystemInput,
    check_system_name,
    errors_name_file,
    named_column,
    read_class_codes,
    read_column,
)
from equipoise.cli.main import CommandEntry, LazyGroup
from equipoise.cli.options import MultiValueOption
from equipoise.cli.output import Output, pass_output, suggestion
from equipoise.errors import InputError, MissingExtraError, ParameterError, StoreError
from equipoise.runs.experiment_folder import check_writable

if TYPE_CHECKING:
    from equipoise.config import StatsConfig
    from equipoise.domains.places.demo import PlacesDemo
    from equipoise.domains.places.prediction_files import ScoredPredictions
    from equipoise.domains.places.score import PlaceScores
    from equipoise.domains.places.visits import TestSequences

COMMANDS = {
    "score": CommandEntry("equipoise.domains.places.cli:score", "Score a next-place model, with baselines."),
    "compare": CommandEntry("equipoise.domains.places.cli:compare", "Compare models over seeds and users."),
    "results": CommandEntry("equipoise.domains.places.cli:results", "Read result files from other projects."),
    "check": CommandEntry("equipoise.domains.places.cli:check", "Check training and test visits before training."),
    "demo": CommandEntry("equipoise.domains.places.cli:demo", "Train and score a small model on simulated visits."),
}

GROUP_HELP = """
\b
  eq places score --logits logits.npy --targets y.npy --padding 0 -o results/
  eq places compare modelA/seed*/ modelB/seed*/
  eq places check --history train.parquet --sequences test.parquet
  eq places results other/*_results.json

Score models that predict the next place: accuracy, MRR, nDCG and F1 with confidence intervals,
and random, majority and per-user baselines.
"""


@click.group(cls=LazyGroup, entries=COMMANDS, help=GROUP_HELP, short_help="Score models of the next place.")
def places() -> None:
    """See ``GROUP_HELP``."""


HELP = """
\b
  eq places score --logits lstm/logits.npy --targets y.npy --padding 0 --train-counts counts.npy
  eq places score --logits all.npz --sequences test.parquet --history train.parquet --coordinates places.csv
  eq places score --predictions top10.parquet --n-classes 1187

Score a model that predicts the next place. Logits are .npy, .npz, .safetensors or .pt files, which may be
larger than memory; an archive may also hold the targets and users. Predictions are top-k lists (parquet or JSONL),
or LibCity files (uid, loc_true, loc_pred). With training counts, a history or unseen classes, scores are
given for all visits and for those whose target is in the training data. Baselines: random, majority,
most frequent places per user, and a first-order Markov model, as far as the data allow. COLUMN is an
array file (user.npy) or a column of a table (units.csv:user). With -o a run directory is written, which
eq places compare and eq report read.
"""

CALIBRATION = ("auto", "logits", "probabilities", "none")


@dataclass(frozen=True)
class ScoreInputs:
    """The options about the predictions and the visits."""

    logits: str | None
    predictions: str | None
    targets: str | None
    n_classes: int | None
    device: str | None
    name: str | None
    padding: tuple[int, ...]
    unseen: tuple[int, ...]
    top_ks: tuple[int, ...]
    train_counts: str | None
    user: str | None
    slices: tuple[str, ...]
    sequences: str | None
    history: str | None
    previous_places: str | None
    coordinates: str | None
    calibration: str
    unit_ids: str | None

    @cached_property
    def test(self) -> TestSequences | None:
        """The visits to be predicted, if a table of them is given."""
        from equipoise.domains.places.visits import read_test_sequences

        return None if self.sequences is None else read_test_sequences(self.sequences)

    def check_targets(self, targets: Any, path: str) -> None:
        """Raise an error if the targets of a file are not those of the table of visits: then the rows differ."""
        test = self.test
        if test is None or len(test.targets) != len(targets):
            return  # unequal lengths are an error later
        differ = [row for row, (one, other) in enumerate(zip(targets, test.targets, strict=True)) if one != other]
        if differ:
            raise InputError(
                f"{len(differ):,} of {len(targets):,} targets in {path} differ from those in {self.sequences}, "
                f"the first in row {differ[0] + 1:,}",
                hint="both need the same visits in the same order",
            )

    def system(self, word: str) -> tuple[str, str]:
        """The name of the system and its path: from ``--name``, ``NAME=path``, the folder or the file."""
        from equipoise.domains.places.prediction_files import system_name

        system_input = SystemInput.of(word)
        if self.name is not None:
            check_system_name(self.name, hint="give a name that can be a folder: --name mine")
            return self.name, system_input.path
        return system_input.name if system_input.is_named else system_name(system_input.path), system_input.path

    def columns(self, n_classes: int | None, users: Any = None) -> dict[str, Any]:
        """Users, slices, history, previous places and coordinates; columns that are named replace those of files."""
        from equipoise.domains.places.geography import read_coordinates
        from equipoise.domains.places.visits import read_history

        test = self.test
        slices = {} if test is None else dict(test.columns)
        if self.coordinates is not None and n_classes is None:
            raise ParameterError("--coordinates needs the number of places", hint="add --n-classes N")
        previous = _optional(self.previous_places, "--previous-places", read_class_codes)
        history = None if self.history is None else read_history(self.history, n_classes)
        if previous is None and test is not None and history is not None:
            previous = test.previous
        if self.user is not None:
            users = read_column(self.user, "--user", filled=True)
        elif users is None and test is not None:
            users = test.users
        return {
            "padding": list(self.padding) or None,
            "unseen": list(self.unseen) or None,
            "train_counts": _optional(self.train_counts, "--train-counts", read_class_codes),
            "ks": self.top_ks or None,
            "users": users,
            "slices": slices | dict(named_column(word, "--slice") for word in self.slices),
            "history": history,
            "previous": previous,
            "coordinates": None if self.coordinates is None else read_coordinates(self.coordinates, n_classes or 0),
        }


def _one_system(context: click.Context, option: click.Parameter, words: tuple[str, ...]) -> str | None:
    """The file of the system; several are an error, since the first ones would be ignored."""
    if len(words) > 1:
        raise ParameterError(
            f"{option.opts[0]} is given {len(words)} times: one system is scored at a time",
            hint="score each with the same -o FOLDER, then eq report FOLDER, or eq places compare for several seeds",
        )
    return words[0] if words else None


@options.command(help=HELP, short_help="Score a next-place model, with baselines.")
@click.option(
    "--logits",
    metavar="FILE",
    multiple=True,
    callback=_one_system,
    help="Scores of all places: one row per visit, one column per place. FILE or NAME=FILE.",
)
@click.option("--targets", metavar="FILE", help="The true place of each row, if it is not in the logits file.")
@click.option(
    "--predictions",
    metavar="FILE",
    multiple=True,
    callback=_one_system,
    help="Top-k places of each visit, or a LibCity file.",
)
@click.option("--name", metavar="NAME", help="The name of the system; default: its file or folder.")
@click.option("--n-classes", type=click.IntRange(min=1), help="Number of places, for top-k predictions.")
@click.option("--padding", type=int, multiple=True, metavar="CLASS", help="A class id to exclude (padding).")
@click.option("--unseen", type=int, multiple=True, metavar="CLASS", help="A class id that is not in the training data.")
@click.option("--train-counts", metavar="FILE", help="Number of training visits per place.")
@click.option("--user", metavar="COLUMN", help="The user of each row; visits of one user are treated as dependent.")
@click.option("--slice", "slices", multiple=True, metavar="NAME=COLUMN", help="An attribute of each row, to slice by.")
@click.option(
    "--sequences", metavar="FILE", help="A table with one row per visit: target, user, preceding places and time."
)
@click.option("--history", metavar="FILE", help="Training visits: a table with user and place, or with sequences.")
@click.option("--previous-places", metavar="COLUMN", help="The place before each row; -1 for none.")
@click.option("--coordinates", metavar="FILE", help="Latitude and longitude of each place, for distances in km.")
@click.option(
    "--calibration",
    type=click.Choice(CALIBRATION),
    default="auto",
    show_default=True,
    help="Whether the scores are logits or probabilities, for calibration errors; auto detects this from the first "
    "rows.",
)
@click.option("--unit-ids", metavar="COLUMN", help="The id of each row, to match rows of different systems.")
@click.option(
    "-k",
    "--top-k",
    "top_ks",
    cls=MultiValueOption,
    aliases=("--ks",),
    commas=True,
    type=click.IntRange(min=1),
    show_default="1 3 5 10, up to the number of classes",
    metavar="K ...",
    help="Cutoffs of the accuracy.",
)
@options.ties_option
@options.stats_options()
@options.device_option
@options.fail_option
@click.option("-o", "--output", metavar="FOLDER", help="Write a run directory here.")
@options.log_option
@options.table_options(file=False)
@options.output_options
@pass_output
def score(out: Output, /, config: StatsConfig, fail_on: str | None, output: str | None, **inputs: Any) -> int:
    """See ``HELP``."""
    if output is not None:
        check_writable(output)
    with out.progress(1 if output is None else 2) as step:
        step("ranking the places and resampling the visits")
        scores, files = _scores(ScoreInputs(**inputs), config)
        step("writing the run")
        written = [] if output is None else _write(scores, output, files, out, config)
    _show(out, scores, written)
    return exits.gate(out, scores.findings, fail_on)


def _scores(inputs: ScoreInputs, config: StatsConfig) -> tuple[PlaceScores, list[str]]:
    """The scores of logits, LibCity predictions or top-k lists, and the files that were read."""
    from equipoise.domains.places.prediction_files import TopKPredictions, read_predictions, read_score_arrays
    from equipoise.domains.places.score import score_top_k

    words = [word for word in (inputs.logits, inputs.predictions) if word is not None]
    if len(words) != 1:
        raise ParameterError(
            "--logits and --predictions cannot be used together" if words else "there is nothing to score",
            hint="give one of --logits logits.npy and --predictions top10.parquet",
        )
    name, path = inputs.system(words[0])
    read = read_predictions(path) if inputs.logits is None else read_score_arrays(path)
    if not isinstance(read, TopKPredictions):
        return _from_scores(read, name, path, inputs, config)
    inputs.check_targets(read.targets, path)
    columns = inputs.columns(inputs.n_classes)
    return score_top_k(read, classes=inputs.n_classes, system=name, config=config, **columns), [path]


def _from_scores(
    read: ScoredPredictions, name: str, path: str, inputs: ScoreInputs, config: StatsConfig
) -> tuple[PlaceScores, list[str]]:
    from equipoise.domains.places.score import on_device, score_places

    targets = read.targets
    if inputs.targets is not None:
        targets = read_class_codes(inputs.targets, "--targets")
    elif targets is None and inputs.test is not None:
        targets = inputs.test.targets
    if targets is None:
        raise ParameterError(
            f"the logits in {path} need targets", hint="add --targets y.npy, or --sequences test.parquet"
        )
    inputs.check_targets(targets, inputs.targets or path)
    width = read.scores.shape[1]
    if inputs.n_classes not in (None, width):
        raise ParameterError(
            f"--n-classes is {inputs.n_classes:,}, but {path} has scores of {width:,} places",
            hint="leave out --n-classes: it is for top-k predictions",
        )
    columns = inputs.columns(width, read.users)
    unit_ids = _optional(inputs.unit_ids, "--unit-ids", read_column)
    with errors_name_file(path):
        scores = score_places(
            read.scores if inputs.device is None else on_device(read.scores, inputs.device),
            targets,
            unit_ids=unit_ids,
            system=name,
            calibration=inputs.calibration != "none",
            probabilities={"logits": False, "probabilities": True}.get(inputs.calibration),
            config=config,
            **columns,
        )
    return scores, [path, *(file for file in (inputs.targets, inputs.sequences) if file is not None)]


def _optional(word: str | None, option: str, read: Any) -> Any:
    return None if word is None else read(word, option)


def _write(scores: PlaceScores, folder: str, inputs: list[str], out: Output, config: StatsConfig) -> list[str]:
    """Write a run directory for all visits, and one for the answerable ones if they are fewer."""
    from equipoise.io.arrays import split_member
    from equipoise.runs.manifest import Manifest
    from equipoise.runs.run_folder import save_run

    results = {scores.system: scores.all}
    if scores.answerable is not None and scores.partly_answerable:
        results[f"{scores.system}-answerable"] = scores.answerable
    manifest = Manifest.start(
        scores.system,
        command=out.command,
        seed=config.seed,
        truth=[split_member(path)[0] for path in inputs[1:]],
        inputs=[split_member(path)[0] for path in inputs[:1]],
    ).finish()
    details = scores.details() if scores.columns else None
    written = []
    for name, result in results.items():
        unit_details = None if details is None else {unit: details[unit] for unit in result.unit_ids.tolist()}
        written.append(str(save_run(Path(folder) / name, result, manifest=manifest, details=unit_details)))
    scores.view(charts=True).write(written[0])
    return written


def _show(out: Output, scores: PlaceScores, written: list[str]) -> None:
    out.results(lambda: {**scores.to_dict(), "written": written}, scores.view)
    for path in written:
        out.note(f"wrote {path}")
    if not out.quiet and not out.json and written:
        out.text(suggestion(["eq", "report", str(Path(written[0]).parent)]))


# ``eq places compare``: models trained with several seeds, compared over seeds and over users.

COMPARE_HELP = """
\b
  eq places compare modelA/seed*/ modelB/seed*/
  eq places compare results/
  eq places compare lstm=runs/17/ lstm=runs/18/ markov=runs/19/ markov=runs/20/ --primary MRR

Compare models that were trained with several seeds each. Give one folder per seed: a run directory, the output folder
of eq places score, or a folder with logits.npy and targets.npy (and user.npy). The name of a model is NAME in
NAME=folder, or that of the parent folder of its seeds, or that of its runs (lstm-seed1 and lstm-seed2 in one results
folder). Seeds are paired by name if the seed names are the same for all models, and otherwise in the order given.

Each score is the mean over seeds, with its standard deviation. There are two tests. Over seeds: would the order hold if
the models were trained again, for the same users? Over users: would it hold for other users, with the same trained
models? One model is better than another if both tests are significant. -v shows all metrics and pairs.
"""


@options.command(help=COMPARE_HELP, short_help="Compare models over seeds and users.")
@click.argument("folders", nargs=-1, metavar="FOLDER...")
@options.metric_option_for("Acc@{1,5} or MRR")
@options.primary_option
@click.option("--answerable", is_flag=True, help="Only visits whose target is in the training data.")
@click.option("--user", metavar="COLUMN", help="The user of each visit: user.npy or units.csv:user.")
@click.option("--padding", type=int, multiple=True, metavar="CLASS", help="A class id to exclude (padding).")
@click.option("--unseen", type=int, multiple=True, metavar="CLASS", help="A class id that is not in the training data.")
@click.option("--train-counts", metavar="FILE", help="Number of training visits per place.")
@options.stats_options(omit=("test",))
@options.device_option
@options.log_option
@options.table_options()
@options.output_options
@pass_output
def compare(
    out: Output,
    folders: tuple[str, ...],
    metrics: tuple[str, ...],
    primary: str | None,
    answerable: bool,
    user: str | None,
    padding: tuple[int, ...],
    unseen: tuple[int, ...],
    train_counts: str | None,
    config: StatsConfig,
    device: str | None,
) -> int:
    """See ``COMPARE_HELP``."""
    from equipoise.domains.places.run_folders import SeedRunReader, find_seed_runs
    from equipoise.domains.places.seed_comparison import compare_across_seeds

    models = find_seed_runs(folders)
    if len(models) < 2:
        named = f"there is only {next(iter(models))}" if models else "there are none"
        raise ParameterError(
            f"a comparison needs the seeds of at least two models; {named}",
            hint="eq places compare modelA/seed*/ modelB/seed*/, or NAME=FOLDER for each run",
        )
    reader = SeedRunReader(
        metrics=(*metrics, *([] if primary is None else [primary])),
        padding=padding,
        unseen=unseen,
        train_counts=None if train_counts is None else read_class_codes(train_counts, "--train-counts"),
        users=None if user is None else read_column(user, "--user", filled=True),
        answerable=answerable,
        device=device,
    )
    with out.progress(sum(map(len, models.values())) + 1) as step:
        results = reader.read(models, step)
        step("comparing")
        comparison = compare_across_seeds(results, metrics=metrics, primary=primary, config=config)
    for caution in reader.cautions:
        out.note(f"caution: {caution}")
    out.results(lambda: comparison.to_dict() | {"cautions": reader.cautions}, comparison.view)
    return exits.FAILED_UNITS if reader.cautions else exits.DONE


# ``eq places results``: values that another project wrote.

RESULTS_HELP = """
\b
  eq places results lstm_results.json mhsa_results.json
  eq places results other/*_results.json --to md -o results.md

Read result files from other projects (JSON, CSV, Markdown or LaTeX), including those of LibCity's evaluator. They may
contain acc@k, mrr, ndcg and f1 as percentages or fractions, and correct@k, rr and total as counts. A value is accepted
only if it is clear whether it is a percentage or a fraction: from a percent sign, from counts, or because the other
reading is impossible. -v shows the decision for each value. Such files have no per-visit scores, so there are no
intervals and no tests; eq places score and eq places compare give them from logits or predictions. eq audit checks the
same files for impossible values.
"""


@options.command(help=RESULTS_HELP, short_help="Read result files from other projects.")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("--total", type=click.IntRange(min=1), help="Number of visits, if the files do not state it.")
@click.option(
    "--f1-average",
    type=click.Choice(("weighted", "macro", "micro")),
    default="weighted",
    show_default=True,
    help="How F1 was averaged, if a file does not state it.",
)
@options.table_options()
@options.output_options
@pass_output
def results(out: Output, files: tuple[str, ...], total: int | None, f1_average: str) -> int:
    """See ``RESULTS_HELP``."""
    from equipoise.domains.places.published_results import read_result_files
    from equipoise.domains.places.report import published_view

    rows = read_result_files(files, total=total, f1=f1_average)
    out.results(
        lambda: {"results": [asdict(row) | {"values": row.values} for row in rows]}, lambda: published_view(rows)
    )
    return exits.DONE


# ``eq places check``: training and test visits, before a model is trained.

CHECK_HELP = """
\b
  eq places check --history train.parquet --sequences test.parquet
  eq places check --history visits.csv --sequences test.csv --fail-on issue

Check a data set of visits: targets that do not occur in training, users without training visits, features that
equal the target, test rows that are also training rows, and targets that equal the previous place. A table has
one row per visit (user, place, time) or per example (user, sequence, target); other columns are features.
"""


@options.command(help=CHECK_HELP, short_help="Check training and test visits before training.")
@click.option("--history", required=True, metavar="FILE", help="Training visits or training examples.")
@click.option("--sequences", required=True, metavar="FILE", help="The visits to be predicted.")
@options.fail_option
@options.table_options()
@options.output_options
@pass_output
def check(out: Output, history: str, sequences: str, fail_on: str | None) -> int:
    """See ``CHECK_HELP``."""
    from equipoise.checks.base import run_checks
    from equipoise.domains.places.checks import read_mobility_data
    from equipoise.domains.places.report import dataset_view

    if Path(history).resolve() == Path(sequences).resolve():
        raise ParameterError(
            f"--history and --sequences are the same file, {history}",
            hint="give the training visits and the visits to be predicted",
        )
    with out.working("reading the visits"):
        data = read_mobility_data(history, sequences)
    findings = run_checks(data)
    view = dataset_view(data, findings)
    if out.json:
        out.data({**data.to_dict(), "findings": [asdict(finding) for finding in findings]})
    else:
        out.view(view)
    return exits.gate(out, findings, fail_on)


# ``eq places demo``: a Markov model trained on simulated visits, scored against baselines.

DEMO_HELP = """
\b
  eq places demo
  eq places demo --users 200 --seed 7 -o demo/

Simulate users with a home, a workplace and habits, train an interpolated Markov model on the first four fifths of their
visits, and score its predictions of the rest against random, majority, per-user and first-order Markov baselines.
With -o the inputs of eq places score (logits, targets, users and others) are written to a folder.
"""


@options.command(help=DEMO_HELP, short_help="Train and score a small model on simulated visits.")
@click.option("--users", type=click.IntRange(min=1), default=60, show_default=True, help="Number of users.")
@click.option("--days", type=click.IntRange(min=1), default=28, show_default=True, help="Number of days.")
@click.option("--places", type=click.IntRange(min=10), default=300, show_default=True, help="Number of places.")
@options.seed_option
@options.device_option
@click.option(
    "-o", "--output", metavar="FOLDER", help="Write the inputs of eq places score, a run directory and charts here."
)
@options.table_options(file=False)
@options.output_options
@pass_output
def demo(out: Output, users: int, days: int, places: int, seed: int, device: str | None, output: str | None) -> int:
    """See ``DEMO_HELP``."""
    from equipoise.domains.places.demo import PlacesDemo

    if output is not None:
        check_writable(output)
    with out.count("simulating visits", users) as count:
        simulated = PlacesDemo.of(users, days, places, seed=seed, device=device, progress=count)
    with out.working("scoring the model and the baselines"):
        simulated.scores  # noqa: B018
    _demo_show(out, simulated)
    if output is not None:
        _write_demo(out, simulated, Path(output))
    return exits.DONE


def _demo_show(out: Output, simulated: PlacesDemo) -> None:
    if out.json:
        out.data(simulated.scores.to_dict())
        return
    from equipoise.checks.base import pluralize

    history = simulated.learned
    out.note(
        f"Simulated {pluralize(len(history.names), 'user')} in a city of {history.classes} places: "
        f"{pluralize(len(history), 'training visit')}, and {pluralize(len(simulated.cases), 'visit')} to predict.\n"
    )
    out.view(simulated.scores.view())


def _write_demo(out: Output, simulated: PlacesDemo, folder: Path) -> None:
    """Write the files, a run directory and the charts, and suggest the command that scores them."""
    from equipoise.config import DEFAULT_STATS
    from equipoise.report.charts.chart import write_charts

    try:
        with out.progress(3) as step:
            step("writing the inputs")
            simulated.write(folder)
            inputs = [str(folder / "logits.npy"), str(folder / "targets.npy")]
            step("writing the run")
            _write(simulated.scores, str(folder / "runs"), inputs, out, DEFAULT_STATS)
            step("writing the charts")
            write_charts(simulated.charts(), folder)
    except MissingExtraError as error:
        out.note(f"For charts: {error.hint}")
    except OSError as error:
        raise StoreError(f"{folder} cannot be written: {error.strerror}", hint="choose another folder") from error
    out.note(f"wrote {folder}/")
    if not out.quiet and not out.json:
        files = {
            "logits": "logits",
            "targets": "targets",
            "user": "user",
            "previous-places": "previous",
            "coordinates": "coordinates",
        }
        words = [word for option, file in files.items() for word in (f"--{option}", str(folder / f"{file}.npy"))]
        words += ["--history", str(folder / "visits.csv"), *(["--seed", str(simulated.seed)] if simulated.seed else [])]
        out.text(suggestion(["eq", "places", "score", *words]))
