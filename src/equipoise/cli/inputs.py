"""The systems of the command line: run files, matrices of logits, and stored runs."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from equipoise.errors import (
    DuplicateError,
    EquipoiseError,
    FormatError,
    InputError,
    NotFiniteError,
    PairingError,
    ParameterError,
    ShapeError,
    StoreError,
)
from equipoise.evidence.ranking import Ranking
from equipoise.evidence.ranking_from_run_file import QrelsArrays, streamed_ranking
from equipoise.io.arrays import ARRAY_FORMATS, array_names, read_array, read_matrix, split_member
from equipoise.io.run_files import QUERY_COLUMNS, Qrels, read_qrels, read_run
from equipoise.io.tables import Table, read_table, table_format
from equipoise.io.text import STDIN
from equipoise.metrics.parser import builtin, matching_metrics, symbol_of
from equipoise.runs.evaluate import with_metrics

if TYPE_CHECKING:
    from equipoise.config import StatsConfig
    from equipoise.evidence.base import Evidence
    from equipoise.metrics.parser import MetricCatalogue
    from equipoise.stats.result import Result

NO_CLASS = "exclude a column that is not a class with --padding COLUMN, or write -inf where there is no score"

LOGITS_NOUN = "example"
"""What a row of logits is called."""


@dataclass(frozen=True, slots=True)
class SystemInput:
    """A system on the command line: its name and its path."""

    name: str
    path: str
    is_named: bool = False
    """Whether the name was written, as in ``NAME=path``, and not taken from the path."""
    is_logits: bool = False
    """Whether it is a file of arrays."""
    is_stored: bool = False
    """Whether it is a run directory."""

    @classmethod
    def of(cls, word: str) -> SystemInput:
        """``path``, or ``NAME=path``.

        >>> SystemInput.of("runs/bm25.v2.trec.gz").name, SystemInput.of("ours=runs/7.trec").name
        ('bm25.v2', 'ours')
        """
        name, equals, path = word.partition("=")
        is_named = bool(equals) and not Path(word).exists()
        path = path if is_named else word
        file, member = split_member(path)
        if not is_named:
            name = _stem(path, file, member)
        if path != STDIN and not file.exists() and builtin().named(symbol_of(word)):
            raise ParameterError(f"{word} is a metric, not a file", hint=f"write -m before each metric: -m {word!r}")
        check_system_name(name, hint=f"write NAME=path, with a name that can be a folder: mine={path}")
        is_logits = file.suffix.casefold() in ARRAY_FORMATS
        return cls(name, path, is_named, is_logits, is_stored=Path(path).is_dir())

    @property
    def is_unit_table(self) -> bool:
        """Whether it is a table with scores per unit, such as an export of LangSmith or RAGAS."""
        from equipoise.io.unit_scores import is_unit_table

        if self.path == STDIN or table_format(self.path) is None or not Path(self.path).is_file():
            return False
        try:
            return is_unit_table(self.path)
        except EquipoiseError:  # the reader of runs reports what is wrong with it
            return False

    def unit_result(self, metrics: Sequence[str], config: StatsConfig) -> Result:
        """The result of a table with scores per unit."""
        from equipoise.io.unit_scores import read_unit_scores
        from equipoise.stats.estimate import result_from_values
        from equipoise.stats.verdict import UNIT_NOUN

        scores = read_unit_scores(self.path)
        bounds = (0.0, 1.0) if scores.within_unit_interval else (-np.inf, np.inf)
        result = result_from_values(self.name, scores.unit_ids, scores.values, bounds=bounds, config=config)
        result = replace(result, settings={**result.settings, UNIT_NOUN: scores.noun})
        return with_metrics(result, metrics) if metrics else result


def check_system_name(name: str, *, hint: str) -> None:
    """The name of a system is also that of its run directory."""
    if not name or name in (".", "..") or set(name) & set("/\\\0"):
        raise ParameterError(f"{name!r} cannot be the name of a system", hint=hint)


def _stem(path: str, file: Path, member: str | None) -> str:
    if path == STDIN:
        return "stdin"
    name = file.name.removesuffix(".gz")
    stem = file.resolve().name if file.is_dir() else Path(name).stem
    return f"{stem}-{member}" if member else stem


def parse_systems(words: Sequence[str]) -> list[SystemInput]:
    """The systems of the command line. Two systems with the same name are an error."""
    systems: dict[str, SystemInput] = {}
    for system in (system for word in words for system in _systems_at(word)):
        other = systems.setdefault(system.name, system)
        if other is not system:
            raise DuplicateError(
                f"{other.path} and {system.path} would both be called {system.name}",
                hint=f"rename one of them: {system.name}-2={system.path}",
            )
    return list(systems.values())


def _systems_at(word: str) -> list[SystemInput]:
    """The system of one argument, or those of all runs in a folder."""
    system = SystemInput.of(word)
    if not system.is_stored or system.is_named:
        return [system]
    from equipoise.runs.run_folder import find_runs

    try:
        runs = find_runs(system.path)
    except StoreError:  # without runs, the reader of systems reports what the folder holds instead
        return [system]
    if len({run.name for run in runs}) < len(runs):
        raise ParameterError(
            f"{system.path} has runs on several data sets or tasks",
            hint=f"name the folder of one: {runs[0].parent}; eq leaderboard {system.path} and eq report {system.path} "
            "use all of them",
        )
    return [SystemInput.of(str(run)) for run in runs]


@contextmanager
def separate_experiments(
    words: Sequence[str], command: str = "eq report {runs} -o report-{number}.html"
) -> Iterator[None]:
    """An error about runs that cannot be compared gets a hint for runs on different data: a command for each data.

    ``words`` are run directories, or folders of them; ``command`` has places for {runs} and a {number}.
    """
    try:
        yield
    except (DuplicateError, ParameterError) as error:
        groups = _by_data(words)
        if len(groups) < 2:
            raise
        commands = [command.format(runs=shlex.join(group), number=place) for place, group in enumerate(groups, 1)]
        raise PairingError(
            f"{groups[0][0]} and {groups[1][0]} are results on different data, which cannot be compared",
            hint=f"use a command for each: {'; '.join(commands)}",
        ) from error


def _by_data(words: Sequence[str]) -> list[list[str]]:
    """The folders of stored runs in groups with the same data; a single one by the folders in it."""
    from equipoise.runs.manifest import read_manifest
    from equipoise.runs.run_folder import find_runs

    groups: dict[frozenset[str], list[str]] = {}
    for word in words:
        path = word if Path(word).exists() else word.partition("=")[2]
        runs = find_runs(path) if Path(path).is_dir() else []
        parts = {word: runs}
        if len(words) == 1:
            parts = {str(run.parent): [other for other in runs if other.parent == run.parent] for run in runs}
        for part, members in parts.items():
            data = frozenset(filter(None, (sha for run in members for sha in read_manifest(run).datasets.values())))
            if data:
                groups.setdefault(data, []).append(part)
    return list(groups.values())


@dataclass(frozen=True)
class EvidenceOptions:
    """How evidence is read: the ground truth, and what the files do not say."""

    qrels: str | None = None
    targets: str | None = None
    padding: tuple[int, ...] = ()
    corpus_size: int | None = None
    run_tag: str | None = None
    device: str | None = None

    @property
    def truth(self) -> list[str]:
        """The files with the ground truth."""
        return [path for path in (self.qrels, self.targets) if path]

    def options(self) -> list[str]:
        """The same options as words of a command line."""
        words = [f"--padding={column}" for column in self.padding]
        for name in ("qrels", "targets", "corpus_size", "run_tag", "device"):
            value = getattr(self, name)
            words += [f"--{name.replace('_', '-')}", str(value)] if value is not None else []
        return words

    @staticmethod
    def unit_noun(systems: Sequence[SystemInput]) -> str | None:
        """What the rows of logits are called; None if a system has none."""
        return LOGITS_NOUN if all(system.is_logits for system in systems) else None

    def evidence(self, system: SystemInput, *, labels: bool = False) -> Evidence:
        """The ranks of the relevant items; with ``labels`` the predicted classes of logits."""
        return self._from_logits(system, labels) if system.is_logits else self._from_run(system)

    @cached_property
    def judgements(self) -> Qrels:
        """The relevance judgements of run files, read once."""
        if self.qrels is None:
            raise ParameterError(
                "run files need relevance judgements",
                hint="add --qrels truth.qrels; a table of scores per query needs a column named unit instead",
            )
        return read_qrels(self.qrels)

    @cached_property
    def _qrels_arrays(self) -> QrelsArrays | None:
        """The judgements as arrays; None if they cannot be."""
        arrays = None if self.qrels is None or self.qrels == STDIN else QrelsArrays.read(self.qrels)
        return arrays or QrelsArrays.of_dicts(self.judgements)

    def _from_run(self, system: SystemInput) -> Ranking:
        if not Path(system.path).exists() and system.path != STDIN:
            read_run(system.path)  # a missing run is reported before missing judgements
        ranking = streamed_ranking(self._qrels_arrays, system.path, tag=self.run_tag, corpus_size=self.corpus_size)
        if ranking is not None and ranking.depth.any():
            return ranking
        judgements = self.judgements
        run = read_run(system.path, tag=self.run_tag)
        if not run.keys() & judgements.keys():
            raise InputError(
                f"{system.path} and {self.qrels} have no query in common: "
                f"the first is {_first(run)} in the run and {_first(judgements)} in the judgements",
                hint="check that they are of the same data, and that the query ids are written in the same way",
            )
        return Ranking.from_runs(judgements, run, corpus_size=self.corpus_size)

    def _from_logits(self, system: SystemInput, labels: bool) -> Evidence:
        if self.device is not None:
            from equipoise.geometry.gpu_search import torch_device

            torch_device(self.device)  # an unavailable device is an error before anything is read
        scores, truth = self._arrays(system)
        logits = read_matrix(scores)
        targets = read_array(truth, ndim=1)
        if len(targets) != len(logits):
            raise ShapeError(
                f"{truth} has {len(targets)} targets for {len(logits)} rows in {system.path}",
                hint="there must be one target per row",
            )
        if targets.dtype.kind not in "iu":
            raise InputError(
                f"{truth} has {targets.dtype} values, and column numbers are needed",
                hint="save the targets as integers",
            )
        with errors_name_file(system.path):
            if self.device is not None:
                from equipoise.tasks.classification import classify_on_device

                classified = classify_on_device(self.device, logits, targets, padding=list(self.padding))
                return classified.labels if labels else classified.ranking
            from equipoise.evidence.labels import Labels

            make = Labels.from_logits if labels else Ranking.from_scores
            return make(logits, targets, exclude=list(self.padding))

    def _arrays(self, system: SystemInput) -> tuple[str, str]:
        """The arrays of the logits and the targets; one file may have both."""
        file, member = split_member(system.path)
        names = array_names(system.path)
        scores = f"{file}:logits" if member is None and len(names) > 1 and "logits" in names else system.path
        if self.targets is not None:
            return scores, self.targets
        if "targets" in names and names != ["targets"]:
            return scores, f"{file}:targets"
        raise ParameterError(
            f"the logits in {system.path} need targets",
            hint="add --targets y.npy, or store them as targets in the same .npz, .safetensors or .pt file",
        )


def needs_labels(metrics: Sequence[str], catalogue: MetricCatalogue) -> bool:
    """Whether the metrics measure predicted classes, such as F1, and not ranks. Both at once are an error."""
    kinds = {
        name: {m.evidence.kind for m in matching_metrics(name, catalogue) if "@" in name or not m.needs_cutoff}
        for name in metrics
    }
    of_classes = [name for name, matched in kinds.items() if "labels" in matched and "ranking" not in matched]
    of_ranks = [name for name, matched in kinds.items() if "ranking" in matched and "labels" not in matched]
    if of_classes and of_ranks:
        raise ParameterError(
            f"{of_classes[0]} measures predicted classes and {of_ranks[0]} measures ranks",
            hint=f"use two commands: one with {_metric_words(of_classes)}, one with {_metric_words(of_ranks)}",
        )
    return bool(of_classes)


def _metric_words(metrics: Sequence[str]) -> str:
    return shlex.join(word for metric in metrics for word in ("-m", metric))


@contextmanager
def errors_name_file(path: str) -> Iterator[None]:
    """Errors about arrays name the file of the arrays."""
    try:
        yield
    except EquipoiseError as error:
        if path in error.message:
            raise
        hint = NO_CLASS if isinstance(error, NotFiniteError) else error.hint
        raise type(error)(f"{path}: {error.message}", hint=hint, excerpt=error.excerpt) from error


def _first(table: Mapping[str, object]) -> str:
    return repr(next(iter(table), "none"))


# Clusters of units, from a column of a table or from a part of each unit id.

UNIT_COLUMNS = ("unit_id", *QUERY_COLUMNS, "id")


def read_clusters(
    unit_ids: Sequence[object], *, table: str | None = None, pattern: str | None = None
) -> dict[object, str] | None:
    """The cluster of each unit by its id; None without a table and a pattern."""
    if table and pattern:
        raise ParameterError("--cluster and --cluster-by cannot be used together", hint="keep one of them")
    names = [str(unit) for unit in unit_ids]
    if table:
        return dict(zip(unit_ids, _from_table(names, table), strict=True))
    return dict(zip(unit_ids, _from_pattern(names, pattern), strict=True)) if pattern else None


def _from_table(names: list[str], word: str) -> list[str]:
    path, _, column = word.rpartition(":")
    if not path or not column:
        raise ParameterError(
            f"--cluster {word} has no column",
            hint="write the file and the column: --cluster units.csv:document",
        )
    content = read_table(path).filled(column)
    key = _unit_column(content, column)
    labels: dict[str, str] = {}
    for index, row in enumerate(content.require(key).rows):
        name = str(row[key])
        if labels.setdefault(name, str(row[column])) != str(row[column]):
            raise content.error(DuplicateError, [index], f"puts the unit {name} into a second cluster")
    missing = [name for name in names if name not in labels]
    if missing:
        raise InputError(
            f"{path} has no cluster for {len(missing)} of {len(names)} units; the first is {missing[0]}",
            hint=f"its column {key} must have every unit of the ground truth",
        )
    return [labels[name] for name in names]


def _unit_column(table: Table, column: str) -> str:
    """The column with the unit ids."""
    header = {str(name).casefold().replace("-", "_"): str(name) for name in table.rows[0]}
    for name in UNIT_COLUMNS:
        if name in header and header[name] != column:
            return header[name]
    raise FormatError(
        f"{table.name} has no column of unit ids; it has {', '.join(header.values())}",
        hint=f"call it one of {', '.join(UNIT_COLUMNS)}",
    )


def _from_pattern(names: list[str], pattern: str) -> list[str]:
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        raise ParameterError(
            f"--cluster-by {pattern} is not a regular expression: {error}",
            hint="for example --cluster-by '^[^_]+'",
        ) from error
    labels = []
    for name in names:
        match = compiled.search(name)
        label = match and (match[1] if compiled.groups and match[1] is not None else match[0])
        if not label:
            raise InputError(
                f"--cluster-by {pattern} does not match the unit {name}",
                hint="it must match every unit; the cluster is its first group, or the whole match",
            )
        labels.append(label)
    return labels


# Columns on the command line: an array file, or a column of a table.


def read_column(word: str, option: str, *, filled: bool = False) -> NDArray[Any]:
    """One value per row: ``user.npy``, ``all.npz:user`` or ``units.csv:user``; ``filled``: a blank cell is an error."""
    if split_member(word)[0].suffix.casefold() in ARRAY_FORMATS:
        return read_array(word, ndim=1)
    path, colon, column = word.rpartition(":")
    if not colon or not path or not column:
        raise ParameterError(
            f"{option} {word} is neither an array file nor a column of a table",
            hint=f"write {option} user.npy or {option} units.csv:user",
        )
    table = read_table(path)
    rows = (table.filled(column) if filled else table.require(column)).rows
    return np.array([row[column] for row in rows], dtype=object)


def read_class_codes(word: str, option: str) -> NDArray[Any]:
    """A column of class codes."""
    column = read_column(word, option)
    try:
        codes = column.astype(np.int64) if column.dtype == object else column
    except (TypeError, ValueError) as error:
        raise InputError(f"{word} has a value that is not a class code: {error}") from error
    if codes.dtype.kind not in "iu":
        raise InputError(f"{word} has {codes.dtype} values, and class codes are needed", hint="save integers")
    return codes


def named_column(word: str, option: str) -> tuple[str, NDArray[Any]]:
    """``hour=hour.npy``: a name and a column."""
    name, equals, path = word.partition("=")
    if not equals or not name or not path:
        raise ParameterError(f"{option} {word} has no name", hint=f"write {option} hour=hour.npy")
    return name, read_column(path, option)
