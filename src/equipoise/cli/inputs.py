"""The systems named on the command line: run files, matrices of logits, and stored runs."""

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

from equipoise.cli.options import matching_metrics
from equipoise.errors import (
    DuplicateError,
    EquipoiseError,
    FormatError,
    InputError,
    NotFiniteError,
    ParameterError,
    ShapeError,
)
from equipoise.evidence.labels import Labels
from equipoise.evidence.ranking import Ranking
from equipoise.evidence.ranking_from_lists import streamed_ranking
from equipoise.io.arrays import array_names, read_array, read_matrix, split_member
from equipoise.io.run_files import QUERY_COLUMNS, Qrels, read_qrels, read_run
from equipoise.io.tables import Table, read_table
from equipoise.io.text import STDIN

if TYPE_CHECKING:
    from equipoise.config import StatsConfig
    from equipoise.evidence.base import Evidence
    from equipoise.metrics.catalogue import MetricCatalogue

ARRAYS = (".npy", ".npz", ".safetensors")
NO_CLASS = "leave out a column that is no class with --padding COLUMN, or write -inf where there is no score"


@dataclass(frozen=True, slots=True)
class SystemInput:
    """A system as it was named: what to call it, and where what it delivered lies."""

    name: str
    path: str
    own: bool = False
    """Whether the name was given, and not read off the path."""

    @classmethod
    def of(cls, word: str) -> SystemInput:
        """``path``, or ``NAME=path`` for a name of one's own.

        >>> SystemInput.of("runs/bm25.v2.trec.gz").name, SystemInput.of("ours=runs/7.trec").name
        ('bm25.v2', 'ours')
        """
        name, equals, path = word.partition("=")
        own = bool(equals) and not Path(word).exists()
        if not own:
            name, path = _stem(word), word
        if not name or name in (".", "..") or set(name) & set("/\\\0"):
            raise ParameterError(
                f"{name!r} cannot be the name of a system",
                hint=f"write NAME=path, with a name that can be a folder: mine={path}",
            )
        return cls(name, path, own)

    @property
    def is_logits(self) -> bool:
        """Whether it is a file of arrays."""
        return split_member(self.path)[0].suffix.casefold() in ARRAYS

    @property
    def is_stored(self) -> bool:
        """Whether it is a run directory."""
        return Path(self.path).is_dir()


def _stem(path: str) -> str:
    if path == STDIN:
        return "stdin"
    file, member = split_member(path)
    name = file.name.removesuffix(".gz")
    stem = file.resolve().name if file.is_dir() else Path(name).stem
    return f"{stem}-{member}" if member else stem


def parse_systems(words: Sequence[str]) -> list[SystemInput]:
    """All systems named; two of one name are refused."""
    found: dict[str, SystemInput] = {}
    for source in map(SystemInput.of, words):
        other = found.setdefault(source.name, source)
        if other is not source:
            raise DuplicateError(
                f"{other.path} and {source.path} would both be called {source.name}",
                hint=f"give one of them another name: {source.name}-2={source.path}",
            )
    return list(found.values())


@dataclass(frozen=True)
class EvidenceOptions:
    """How evidence is read: where the truth lies, and what the files leave open."""

    qrels: str | None = None
    targets: str | None = None
    padding: tuple[int, ...] = ()
    corpus_size: int | None = None
    run_tag: str | None = None
    device: str | None = None

    @property
    def truth(self) -> list[str]:
        """The files that hold the truth."""
        return [path for path in (self.qrels, self.targets) if path]

    def options(self) -> list[str]:
        """The options that say the same again."""
        words = [f"--padding={column}" for column in self.padding]
        for option, value in (
            ("--qrels", self.qrels),
            ("--targets", self.targets),
            ("--corpus-size", self.corpus_size),
            ("--run-tag", self.run_tag),
            ("--device", self.device),
        ):
            words += [option, str(value)] if value is not None else []
        return words

    def evidence(self, source: SystemInput, *, labels: bool = False) -> Evidence:
        """Where the right answers landed in what a system delivered; of logits also the top class alone."""
        if source.is_logits:
            return self._from_logits(source, labels)
        return self._from_run(source)

    @cached_property
    def judgements(self) -> Qrels:
        """The truth of run files, read once."""
        if self.qrels is None:
            raise ParameterError("run files need a truth to be scored against", hint="name it: --qrels truth.qrels")
        return read_qrels(self.qrels)

    def _from_run(self, source: SystemInput) -> Ranking:
        if not Path(source.path).exists() and source.path != STDIN:
            read_run(source.path)  # raises that there is no such file, which comes before a missing truth
        judgements = self.judgements
        ranking = streamed_ranking(judgements, source.path, tag=self.run_tag, corpus_size=self.corpus_size)
        if ranking is not None and ranking.depth.any():
            return ranking
        run = read_run(source.path, tag=self.run_tag)
        if not run.keys() & judgements.keys():
            raise InputError(
                f"{source.path} and {self.qrels} have no query in common: "
                f"{_first(run)} in the one, {_first(judgements)} in the other",
                hint="check that they belong together and spell the query ids alike",
            )
        return Ranking.from_runs(judgements, run, corpus_size=self.corpus_size)

    def _from_logits(self, source: SystemInput, labels: bool) -> Evidence:
        if self.device is not None:
            from equipoise.geometry.gpu_search import torch_device

            torch_device(self.device)  # said before anything is read, and not of a file
        scores, truth = self._arrays(source)
        logits = read_matrix(scores)
        targets = read_array(truth, ndim=1)
        if len(targets) != len(logits):
            raise ShapeError(
                f"{truth} has {len(targets)} targets for {len(logits)} rows in {source.path}",
                hint="there must be one target a row",
            )
        if targets.dtype.kind not in "iu":
            raise InputError(
                f"{truth} holds {targets.dtype} values, where column numbers are needed",
                hint="save the targets as integers",
            )
        with _naming(source.path):
            if self.device is not None:
                from equipoise.tasks.classification import classify_on_device

                found = classify_on_device(self.device, logits, targets, padding=list(self.padding))
                return found.labels if labels else found.ranking
            make = Labels.from_logits if labels else Ranking.from_scores
            return make(logits, targets, exclude=list(self.padding))

    def _arrays(self, source: SystemInput) -> tuple[str, str]:
        """Where the logits and the targets lie; one file may hold both, under these names."""
        file, member = split_member(source.path)
        names = array_names(source.path)
        scores = f"{file}:logits" if member is None and len(names) > 1 and "logits" in names else source.path
        if self.targets is not None:
            return scores, self.targets
        if "targets" in names and names != ["targets"]:
            return scores, f"{file}:targets"
        raise ParameterError(
            f"the logits in {source.path} need targets",
            hint="name them: --targets y.npy, or keep them as targets in the same .npz or .safetensors file",
        )


def needs_labels(metrics: Sequence[str], catalogue: MetricCatalogue) -> bool:
    """Whether the metrics measure predicted classes, such as F1, and not ranks; both at once are refused."""
    kinds = {each: {metric.evidence.kind for metric in matching_metrics(each, catalogue)} for each in metrics}
    of_classes = [each for each, known in kinds.items() if "labels" in known and "ranking" not in known]
    of_ranks = [each for each, known in kinds.items() if "ranking" in known and "labels" not in known]
    if of_classes and of_ranks:
        raise ParameterError(
            f"{of_classes[0]} measures predicted classes and {of_ranks[0]} measures ranks",
            hint=f"ask for them in two commands: one with {_asked(of_classes)}, one with {_asked(of_ranks)}",
        )
    return bool(of_classes)


def _asked(metrics: Sequence[str]) -> str:
    return shlex.join(word for metric in metrics for word in ("-m", metric))


@contextmanager
def _naming(path: str) -> Iterator[None]:
    """Errors that arise from the arrays alone, with the file they come from."""
    try:
        yield
    except EquipoiseError as error:
        hint = NO_CLASS if isinstance(error, NotFiniteError) else error.hint
        raise type(error)(f"{path}: {error.message}", hint=hint, excerpt=error.excerpt) from error


def _first(table: Mapping[str, object]) -> str:
    return repr(next(iter(table), "none"))


# Units that belong together: cluster labels from a table, or from a part of each unit's id.

UNIT_COLUMNS = ("unit_id", *QUERY_COLUMNS, "id")


@dataclass(frozen=True)
class ClusterOptions:
    """Where the cluster of each unit is read from: a column of a table, or a part of the unit id."""

    table: str | None = None
    pattern: str | None = None

    def resolve(self, config: StatsConfig, unit_ids: Sequence[Any]) -> StatsConfig:
        """The config with the clusters of these units."""
        return replace(config, clusters=read_clusters(unit_ids, table=self.table, pattern=self.pattern))


def read_clusters(
    unit_ids: Sequence[Any], *, table: str | None = None, pattern: str | None = None
) -> dict[Any, str] | None:
    """The cluster of each unit by its id, or None when no key was given."""
    if table and pattern:
        raise ParameterError("--cluster and --cluster-by were both given", hint="keep one of them")
    names = [str(unit) for unit in unit_ids]
    if table:
        return dict(zip(unit_ids, _from_table(names, table), strict=True))
    return dict(zip(unit_ids, _from_pattern(names, pattern), strict=True)) if pattern else None


def _from_table(names: list[str], word: str) -> list[str]:
    path, colon, column = word.rpartition(":")
    if not colon or not path or not column:
        raise ParameterError(
            f"--cluster {word} names no column",
            hint="write the file and the column: --cluster units.csv:document",
        )
    found = read_table(path).require(column)
    key = _unit_column(found, column)
    labels: dict[str, str] = {}
    for index, row in enumerate(found.rows):
        name = str(row[key])
        if labels.setdefault(name, str(row[column])) != str(row[column]):
            raise found.error(DuplicateError, [index], f"puts the unit {name} into a second cluster")
    missing = [name for name in names if name not in labels]
    if missing:
        raise InputError(
            f"{path} has no cluster for {len(missing)} of {len(names)} units, the first being {missing[0]}",
            hint=f"its column {key} must name every unit of the truth",
        )
    return [labels[name] for name in names]


def _unit_column(table: Table, column: str) -> str:
    """The column that holds the unit ids."""
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
            f"--cluster-by {pattern} is no regular expression: {error}",
            hint="for example --cluster-by '^[^_]+'",
        ) from error
    labels = []
    for name in names:
        match = compiled.search(name)
        if match is None:
            raise InputError(
                f"--cluster-by {pattern} does not match the unit {name}",
                hint="it must match every unit; its first group, or all of it, names the cluster",
            )
        labels.append(match[1] if compiled.groups and match[1] is not None else match[0])
    return labels


# Columns named on the command line: an array file, or a column of a table.


def read_column(word: str, option: str) -> NDArray[Any]:
    """One value a row: ``user.npy``, ``all.npz:user`` or ``units.csv:user``."""
    if split_member(word)[0].suffix.casefold() in ARRAYS:
        return read_array(word, ndim=1)
    path, colon, column = word.rpartition(":")
    if not colon or not path or not column:
        raise ParameterError(
            f"{option} {word} names neither an array file nor a column of a table",
            hint=f"write {option} user.npy or {option} units.csv:user",
        )
    values = [row[column] for row in read_table(path).require(column).rows]
    return np.array(values, dtype=object)


def read_class_codes(word: str, option: str) -> NDArray[Any]:
    """The same, where class codes are needed."""
    column = read_column(word, option)
    try:
        codes = column.astype(np.int64) if column.dtype == object else column
    except (TypeError, ValueError) as error:
        raise InputError(f"{word} holds a value that is no class code: {error}") from error
    if codes.dtype.kind not in "iu":
        raise InputError(f"{word} holds {codes.dtype} values, where class codes are needed", hint="save whole numbers")
    return codes


def named_column(word: str, option: str) -> tuple[str, NDArray[Any]]:
    """``hour=hour.npy``: a name and a column."""
    name, equals, path = word.partition("=")
    if not equals or not name or not path:
        raise ParameterError(f"{option} {word} has no name", hint=f"write {option} hour=hour.npy")
    return name, read_column(path, option)
