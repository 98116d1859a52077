"""Checks of a table of models and data sets: missing cells, scales, directions, and how much it can show."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from equipoise.checks.base import Check, Observation, evidence_names, join_names, pluralize
from equipoise.domains.bench.leaderboard_table import MAX_DENOMINATOR, PERCENT_LIMIT, ScoreTable
from equipoise.types import Severity

LOWER_IS_BETTER = re.compile(
    r"(?i)\b(?:wer|cer|ppl|perplexity|rmse|mae|mse|loss|error(?: rate)?|mean rank|latency|fid|bpb|ece|brier)\b"
)
FEW_DATASETS = 6
"""With fewer data sets, no paired sign or randomisation test reaches p < 0.05: 2 / 2**5 is 0.0625."""
SUSPICIOUS_RATIO = 50.0
"""A percentage this many times below the median of its column may be a fraction."""


def missing_cells(table: ScoreTable) -> Iterator[Observation]:
    """EQ420: models without a score on some data sets."""
    gaps = table.missing
    if gaps.any():
        rows = np.flatnonzero(gaps.any(axis=1))
        names = [f"{table.models[row]}: {pluralize(int(gaps[row].sum()), 'data set')}" for row in rows]
        yield Observation(
            table.name,
            f"{pluralize(int(gaps.sum()), 'cell')} of {gaps.size:,} have no score "
            f"({pluralize(len(rows), 'model')}, {pluralize(int(gaps.any(axis=0).sum()), 'data set')})",
            evidence_names(names),
        )


def mixed_scales(table: ScoreTable) -> Iterator[Observation]:
    """EQ421: data sets whose scores have different scales or directions."""
    if table.is_comparable:
        return
    groups: dict[str, list[str]] = {}
    for name, scale in table.scales.items():
        direction = "lower is better" if name in table.lower else "higher is better"
        groups.setdefault(f"{scale}, {direction}", []).append(name)
    yield Observation(
        table.name,
        f"the data sets have different scales: {'; '.join(groups)}",
        tuple(f"{kind}: {join_names(names)}" for kind, names in groups.items()),
    )


def misplaced_cells(table: ScoreTable) -> Iterator[Observation]:
    """EQ422: cells that look like fractions in a column of percentages."""
    cells = []
    for column, name in enumerate(table.datasets):
        if table.scales.get(name) != "percent":
            continue
        scores = table.scores[:, column]
        others = scores[scores > 1.0]
        for row in np.flatnonzero((scores > 0.0) & (scores <= 1.0)):
            typical = float(np.median(others))
            is_typical = others.min() <= PERCENT_LIMIT * scores[row] <= others.max()
            if is_typical and scores[row] * SUSPICIOUS_RATIO < typical:
                cells.append(f"{table.models[row]}, {name}: {scores[row]:g} (median {typical:g})")
    if cells:
        yield Observation(table.name, f"{pluralize(len(cells), 'score')} may be a fraction: {cells[0]}", tuple(cells))


def lower_is_better(table: ScoreTable) -> Iterator[Observation]:
    """EQ423: data sets whose name is that of an error measure."""
    names = [name for name in table.datasets if name not in table.lower and LOWER_IS_BETTER.search(name)]
    if names:
        yield Observation(table.name, f"{join_names(names)}: higher scores are taken as better", evidence_names(names))


def few_datasets(table: ScoreTable) -> Iterator[Observation]:
    """EQ424: too few data sets to separate any two models."""
    count = len(table.datasets)
    if count < FEW_DATASETS and table.oriented_units is None:
        yield Observation(
            table.name,
            f"{pluralize(count, 'data set')} cannot separate two models at 95 %: "
            f"the smallest p value of a randomisation test is {min(1.0, 2.0 ** (1 - count)):.3g}",
            evidence_names(table.datasets),
        )


def unreadable_cells(table: ScoreTable) -> Iterator[Observation]:
    """EQ425: cells or files that are no scores."""
    if table.unreadable:
        count = pluralize(len(table.unreadable), "cell or file", "cells or files")
        yield Observation(
            table.name, f"{count} could not be read: {table.unreadable[0]}", evidence_names(table.unreadable)
        )


def impossible_accuracies(table: ScoreTable) -> Iterator[Observation]:
    """EQ426: data sets whose stated number of units are not compatible with the printed accuracies."""
    for name, sizes in table.denominators().items():
        stated = table.n_units.get(name)
        if stated is not None and stated <= MAX_DENOMINATOR and stated not in sizes:
            possible = f"{sizes[0]:,} is the smallest number that can" if sizes else "no number up to 10,000 can"
            printed = [f"{model}: {table.printed[model, name].text}" for model in table.models]
            message = f"{stated:,} units are not compatible with the printed accuracies; {possible}"
            yield Observation(name, message, evidence_names(printed))


CHECKS = (
    Check(
        "EQ420",
        "missing scores",
        Severity.NOTE,
        ScoreTable,
        missing_cells,
        "Means over different data sets are not comparable: a model without a score on a difficult data set has a "
        "higher mean. An imputed score is not a measurement, so nothing is imputed.",
        "--missing datasets keeps the data sets that all models share, --missing models the complete models",
        "from equipoise.domains.bench.leaderboard_readers import read_scores\n"
        "from equipoise.checks.base import run_checks\n"
        "run_checks(read_scores({'a': {'x': 71.0, 'y': 60.5}, 'b': {'x': 70.2}}))",
    ),
    Check(
        "EQ421",
        "scores on different scales",
        Severity.ISSUE,
        ScoreTable,
        mixed_scales,
        "In a mean of percentages and fractions, the data sets with percentages decide. In a mean of accuracies and "
        "error rates, good and bad scores cancel.",
        "rank by --aggregate borda, or convert the columns; --lower names columns where lower is better",
        "from equipoise.domains.bench.leaderboard_readers import read_scores\n"
        "from equipoise.checks.base import run_checks\n"
        "run_checks(read_scores({'a': {'x': 71.0, 'y': 0.6}, 'b': {'x': 70.2, 'y': 0.5}}))",
    ),
    Check(
        "EQ422",
        "a fraction among percentages",
        Severity.TIP,
        ScoreTable,
        misplaced_cells,
        "One cell on another scale moves its model down in the order: 0.70 instead of 70 lowers a mean over ten data "
        "sets by seven points.",
        "correct the cell if it is a fraction",
        "from equipoise.domains.bench.leaderboard_readers import read_scores\n"
        "from equipoise.checks.base import run_checks\n"
        "run_checks(read_scores({'a': {'x': 71.0}, 'b': {'x': 0.702}, 'c': {'x': 69.5}}))",
    ),
    Check(
        "EQ423",
        "a data set on which lower may be better",
        Severity.TIP,
        ScoreTable,
        lower_is_better,
        "Error rates, losses and perplexities are better when they are lower. Taken as scores, they put the worst "
        "model first.",
        "declare such columns with --lower, or mark them with ↓ in the header",
        "from equipoise.domains.bench.leaderboard_readers import read_scores\n"
        "from equipoise.checks.base import run_checks\n"
        "run_checks(read_scores({'a': {'WER': 7.1}, 'b': {'WER': 8.2}}))",
    ),
    Check(
        "EQ424",
        "too few data sets",
        Severity.TIP,
        ScoreTable,
        few_datasets,
        "Whether an order of models holds on other data sets can be tested only with enough of them. With five, even "
        "a model that is better on all of them is not significantly better.",
        "add data sets; with per-unit scores, --resample units tests the difference on these data sets",
        "from equipoise.domains.bench.leaderboard_readers import read_scores\n"
        "from equipoise.checks.base import run_checks\n"
        "run_checks(read_scores({'a': {'x': 71.0, 'y': 60.5}, 'b': {'x': 70.2, 'y': 61.0}}))",
    ),
    Check(
        "EQ425",
        "unreadable scores",
        Severity.ISSUE,
        ScoreTable,
        unreadable_cells,
        "A cell that is not a number counts as missing, and a file that cannot be read is left out. Both may remove a "
        "data set or a model from the comparison.",
        "write a number, or leave the cell empty",
        "from equipoise.domains.bench.leaderboard_readers import read_scores\n"
        "from equipoise.checks.base import run_checks\n"
        "run_checks(read_scores({'a': {'x': 71.0}, 'b': {'x': 'OOM'}, 'c': {'x': 70.2}}))",
    ),
    Check(
        "EQ426",
        "accuracies that are impossible with n units",
        Severity.ISSUE,
        ScoreTable,
        impossible_accuracies,
        "An accuracy on n units is a multiple of 1/n, rounded as printed. If none fits, the number of units "
        "or the score is wrong, or the score is not an accuracy.",
        "check the number of units, or whether the score is an accuracy",
        "from equipoise.domains.bench.leaderboard_readers import read_scores\n"
        "from equipoise.checks.base import run_checks\n"
        "rows = [{'model': 'a', 'dataset': 'accuracy', 'score': 66.67, 'n': 10},\n"
        "        {'model': 'b', 'dataset': 'accuracy', 'score': 50.00, 'n': 10}]\n"
        "run_checks(read_scores(rows))",
    ),
)
