"""The systems named on the command line: run files, matrices of logits, and stored runs."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from equipoise.cli.namesakes import fitting
from equipoise.data.arrays import array_names, read_array, read_matrix, split_member
from equipoise.data.runs import read_qrels, read_run
from equipoise.data.text import STDIN
from equipoise.data.trec import Qrels
from equipoise.errors import (
    DuplicateError,
    EquipoiseError,
    InputError,
    NotFiniteError,
    ParameterError,
    ShapeError,
)
from equipoise.evidence.base import Evidence
from equipoise.evidence.from_runs import streamed_ranking
from equipoise.evidence.labels import Labels
from equipoise.evidence.ranking import Ranking
from equipoise.metrics.catalogue import Catalogue

ARRAYS = (".npy", ".npz", ".safetensors")
NO_CLASS = "leave out a column that is no class with --padding COLUMN, or write -inf where there is no score"


@dataclass(frozen=True, slots=True)
class Source:
    """A system as it was named: what to call it, and where what it delivered lies."""

    name: str
    path: str
    own: bool = False
    """Whether the name was given, and not read off the path."""

    @classmethod
    def of(cls, word: str) -> Source:
        """``path``, or ``NAME=path`` for a name of one's own.

        >>> Source.of("runs/bm25.v2.trec.gz").name, Source.of("ours=runs/7.trec").name
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


def sources(words: Sequence[str]) -> list[Source]:
    """All systems named; two of one name are refused."""
    found: dict[str, Source] = {}
    for source in map(Source.of, words):
        other = found.setdefault(source.name, source)
        if other is not source:
            raise DuplicateError(
                f"{other.path} and {source.path} would both be called {source.name}",
                hint=f"give one of them another name: {source.name}-2={source.path}",
            )
    return list(found.values())


@dataclass(frozen=True)
class Reading:
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

    def evidence(self, source: Source, *, labels: bool = False) -> Evidence:
        """Where the right answers landed in what a system delivered; of logits also the top class alone."""
        if source.is_logits:
            return self._from_logits(source, labels)
        return self._from_run(source)

    @cached_property
    def judgements(self) -> Qrels:
        """The truth of run files, read once."""
        if self.qrels is None:
            raise ParameterError(
                "run files need a truth to be scored against", hint="name it: --qrels truth.qrels"
            )
        return read_qrels(self.qrels)

    def _from_run(self, source: Source) -> Ranking:
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

    def _from_logits(self, source: Source, labels: bool) -> Evidence:
        if self.device is not None:
            from equipoise.geometry.device import torch_device

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
                from equipoise.tasks.classify.sent import classify_on

                found = classify_on(self.device, logits, targets, padding=list(self.padding))
                return found.labels if labels else found.ranking
            make = Labels.from_logits if labels else Ranking.from_scores
            return make(logits, targets, exclude=list(self.padding))

    def _arrays(self, source: Source) -> tuple[str, str]:
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


def needs_labels(metrics: Sequence[str], catalogue: Catalogue) -> bool:
    """Whether the metrics measure predicted classes, such as F1, and not ranks; both at once are refused."""
    kinds = {each: {metric.evidence.kind for metric in fitting(each, catalogue)} for each in metrics}
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
        raise type(error)(f"{path}: {error.sentence}", hint=hint, excerpt=error.excerpt) from error


def _first(table: Mapping[str, object]) -> str:
    return repr(next(iter(table), "none"))
