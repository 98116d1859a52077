"""An evaluator for ``SentenceTransformerTrainer``: scores for the log, and a run directory per evaluation step."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from equipoise.config import DEFAULT_STATS, StatsConfig
from equipoise.domains.bench.experiment import score
from equipoise.domains.bench.read_data import read_suite
from equipoise.domains.bench.systems import OpenSystem, SystemSpec
from equipoise.models.dense import DenseRetriever
from equipoise.models.embedder import embedder
from equipoise.runs.experiment_folder import folder_names
from equipoise.runs.manifest import Manifest
from equipoise.runs.run_folder import save_run
from equipoise.types import require_extra

if TYPE_CHECKING:
    from equipoise.stats.result import Result


def evaluator(
    data: Any,
    *,
    output: str | Path | None = None,
    text: Sequence[str] = (),
    split: str | None = None,
    config: StatsConfig = DEFAULT_STATS,
    name: str = "",
) -> Any:
    """An evaluator of sentence-transformers that scores a model on data sets of ``eq bench``.

    Pass it as ``evaluator=`` to ``SentenceTransformerTrainer``. Queries and documents are embedded with the prompts of
    the model. With ``output``, every evaluation writes the run directory ``OUTPUT/DATA/step-000200``, so that
    ``eq compare`` says whether one checkpoint is better than another.

    Parameters
    ----------
    data
        One or several paths, frames, ``datasets`` objects, or kinds of data such as ``bench.Retrieval(...)``.
    output
        The folder for the run directories; None writes none.
    text
        Columns of text.
    split
        The split of BEIR folders.
    config
        Confidence level, resamples and seed.
    name
        A prefix of the names of the metrics.

    Returns
    -------
    sentence_transformers.evaluation.SentenceEvaluator
        Its metrics are named ``DATA_METRIC``. ``primary_metric`` is the primary metric of the first data set.

    Examples
    --------
    >>> trainer = SentenceTransformerTrainer(model, evaluator=evaluator("support/", output="runs"))  # doctest: +SKIP
    """
    return _evaluator_class()(read_suite(data, text=text, split=split), output, config, name)


@cache
def _evaluator_class() -> type[Any]:
    """The class, made when it is needed: the trainer requires a subclass of its own base class."""
    base: Any = require_extra("sentence_transformers.evaluation", extra="st").SentenceEvaluator

    class BenchEvaluator(base):  # type: ignore[misc]
        """Scores of one model on data sets of ``eq bench``."""

        def __init__(self, suite: Sequence[Any], output: str | Path | None, config: StatsConfig, name: str) -> None:
            super().__init__()
            self.suite, self.config, self.name = suite, config, name
            self.output = None if output is None else Path(output)
            self.folders = folder_names(data.name for data in suite)
            self.greater_is_better = True
            self.primary_metric = _metric_name(name, suite[0].name, suite[0].primary)

        def __call__(
            self, model: Any, output_path: str | None = None, epoch: float = -1, steps: int = -1
        ) -> dict[str, float]:
            """Embed all texts with the model, score it, and store the runs."""
            system_name = _step_name(epoch, steps)
            metrics: dict[str, float] = {}
            with embedder(model, cache=False) as opened:
                system = OpenSystem(SystemSpec(system_name, model), DenseRetriever(opened, "cosine"))
                for data in self.suite:
                    observed = data.observe(system, seed=self.config.seed)
                    result = score(data, observed, system_name, self.config)
                    if self.output is not None:
                        self._save(data, result, observed.details, epoch, steps)
                    metrics |= {
                        _metric_name(self.name, data.name, key): value
                        for key, value in result.to_dict(flat=True).items()
                        if key != "units"
                    }
            self.store_metrics_in_model_card_data(model, metrics, epoch, steps)
            return metrics

        def _save(self, data: Any, result: Result, details: Any, epoch: float, steps: int) -> None:
            assert self.output is not None
            path = self.output / self.folders[data.name] / result.system
            path.parent.mkdir(parents=True, exist_ok=True)
            manifest = Manifest(
                system=result.system,
                seed=self.config.seed,
                datasets={data.name: data.fingerprint},
                parameters={"epoch": epoch, "steps": steps, "kind": data.kind, "dataset": data.name},
            )
            save_run(path, result, manifest=manifest, details=details)

        @property
        def description(self) -> str:
            """The title of the section in the model card."""
            return ", ".join(data.kind for data in self.suite)

    return BenchEvaluator


def _metric_name(prefix: str, data: str, metric: str) -> str:
    return "_".join(filter(None, (prefix, data, metric)))


def _step_name(epoch: float, steps: int) -> str:
    """The system name of an evaluation: the global step of the trainer, or the epoch, or ``final``.

    >>> _step_name(0.5, 200), _step_name(3, -1), _step_name(-1, -1)
    ('step-000200', 'epoch-3', 'final')
    """
    if steps >= 0:
        return f"step-{steps:06}"
    return f"epoch-{epoch:g}" if epoch >= 0 else "final"
