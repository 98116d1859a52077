"""From the systems named on the command line to their results, and to run directories."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from equipoise.cli.clusters import cluster_labels
from equipoise.cli.output import Step
from equipoise.cli.sources import Reading, Source, needs_labels
from equipoise.data.arrays import split_member
from equipoise.data.dataset import fingerprint_of_file
from equipoise.data.runs import read_run
from equipoise.errors import ParameterError, StoreError
from equipoise.evidence.base import Evidence
from equipoise.metrics.catalogue import Catalogue, builtin
from equipoise.run.evaluate import evaluate
from equipoise.run.manifest import Manifest
from equipoise.run.store import write_run
from equipoise.stats.result import Result


@dataclass(frozen=True)
class Statistics:
    """How sure is sure: ties, clusters, level, resampling and the seed."""

    ties: str = "expected"
    cluster: str | None = None
    cluster_by: str | None = None
    level: float = 0.95
    resamples: int = 2000
    seed: int = 0

    def options(self, subject: Evidence | Result) -> dict[str, Any]:
        """These as arguments of ``evaluate`` and ``compare``, with clusters for the units of the subject."""
        return self.options_for(subject.unit_ids.tolist())

    def options_for(self, units: Sequence[Any]) -> dict[str, Any]:
        """The same for units that are known by their ids alone."""
        return {
            "ties": self.ties,
            "clusters": cluster_labels(units, table=self.cluster, pattern=self.cluster_by),
            "level": self.level,
            "resamples": self.resamples,
            "seed": self.seed,
        }


def presets() -> list[str]:
    """The libraries that ``--like`` knows."""
    from equipoise.checks.like.presets import PRESETS

    return list(PRESETS)


def catalogue_with(plugins: Sequence[str]) -> Catalogue:
    """The built-in metrics, those of installed packages, and those of plugin files."""
    catalogue = builtin().with_entry_points()
    for path in plugins:
        catalogue = catalogue.with_plugin(path)
    return catalogue


@dataclass(frozen=True)
class Scorer:
    """Everything that scoring a source needs besides the source."""

    reading: Reading
    statistics: Statistics
    metrics: tuple[str, ...]
    catalogue: Catalogue
    like: str | None = None

    def score(self, source: Source) -> Result:
        """What one system scores."""
        if self.like is not None:
            return self._score_like(source, self.like)
        evidence = self.reading.evidence(source, labels=needs_labels(self.metrics, self.catalogue))
        return evaluate(
            evidence,
            self.metrics or None,
            system=source.name,
            catalogue=self.catalogue,
            **self.statistics.options(evidence),
        )

    def _score_like(self, source: Source, like: str) -> Result:
        """What a library would say that it scores."""
        from equipoise.checks.like.score import DEFAULTS, score_like

        if source.is_logits:
            raise ParameterError(
                f"--like scores runs as other libraries do, and {source.path} holds logits",
                hint="write the ranked lists to a run file first",
            )
        if self.statistics.ties != Statistics.ties:
            raise ParameterError(
                f"--like {like} decides about equal scores, and so does --ties {self.statistics.ties}",
                hint="leave out one of them",
            )
        truth = self.reading.judgements
        settings = self.statistics.options_for(list(truth))
        return score_like(
            read_run(source.path, tag=self.reading.run_tag),
            truth,
            self.metrics or DEFAULTS,
            like=like,
            system=source.name,
            corpus_size=self.reading.corpus_size,
            catalogue=self.catalogue,
            **{name: value for name, value in settings.items() if name != "ties"},
        )

    def run(self, source: Source, command: Sequence[str]) -> tuple[Result, Manifest]:
        """The result and the manifest of a run that is complete, ready to be written."""
        manifest = replace(
            Manifest.start(source.name, command=command, seed=self.statistics.seed),
            datasets=_fingerprints(self.reading.truth),
            inputs=_fingerprints([source.path]),
        )
        return self.score(source), manifest.finish()


def _fingerprints(paths: Sequence[str]) -> dict[str, str | None]:
    """The fingerprint of each file; a pipe has none, since it can be read only once."""
    files = {path: split_member(path)[0] for path in paths}
    return {path: fingerprint_of_file(file) if file.is_file() else None for path, file in files.items()}


def refuse_unwritable(folder: str) -> None:
    """Say before the work begins that the results could not be kept."""
    path = Path(folder)
    if path.exists() and not path.is_dir():
        raise StoreError(f"{folder} is a file, where a folder should be", hint="name another folder with -o")


def write_runs(runs: Sequence[tuple[Result, Manifest]], folder: str, step: Step) -> list[str]:
    """Write every run into a directory of its own beneath the folder."""
    written = []
    for result, manifest in runs:
        step(f"writing {result.system}")
        written.append(str(write_run(Path(folder) / result.system, result, manifest=manifest)))
    return written
