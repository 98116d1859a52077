"""Results of an extraction tuning: nested score, trials and best parameters per model, and reading them back."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from equipoise.checks.base import run_checks
from equipoise.checks.models import TunedSystem
from equipoise.domains.phenotypes.config import ExtractionConfig
from equipoise.domains.phenotypes.extraction.candidates import SelectionSettings
from equipoise.domains.phenotypes.extraction.extractor import DICTIONARY, is_dictionary
from equipoise.domains.phenotypes.extraction.report import tuning_view
from equipoise.errors import EquipoiseError, FormatError, ParameterError, UnknownNameError
from equipoise.io import json
from equipoise.io.json import parse_json
from equipoise.io.text import PathLike, open_text
from equipoise.models.registry import spec_from_file
from equipoise.runs.experiment_folder import RUNS, VISUALIZATIONS, check_writable, folder_name, write_json
from equipoise.runs.manifest import Manifest, Status
from equipoise.runs.run_folder import save_run
from equipoise.tuning.grid import Params, TuningRecord, pareto_front

if TYPE_CHECKING:
    from equipoise.domains.phenotypes.extraction.annotated_corpus import AnnotatedCorpus, GoldAnnotations
    from equipoise.domains.phenotypes.extraction.tuning import TrialScores
    from equipoise.domains.phenotypes.ontology import Ontology
    from equipoise.evidence.sets import Sets
    from equipoise.report.charts.chart import Chart
    from equipoise.stats.comparison import Comparison
    from equipoise.stats.result import Estimate, Result
    from equipoise.types import Finding

TUNING_FILE = "extraction_tuning.json"
_TUNED_TYPES: dict[str, Callable[[Any], Any]] = {
    **{name: type(value) for name, value in SelectionSettings().record().items()},
    "dictionary": bool,
    "chunkers": lambda value: tuple(json.text(value).split(",")),
    "branch": lambda value: json.text(value) or None,
}
"""The tuned parameters with their types."""


@dataclass(frozen=True)
class TunedParameters:
    """The tuned parameters of a model; ``documents`` are hashes of the texts used for tuning.

    ``parameters`` are the tuned ones, ``fixed_settings`` the settings of all trials (representation and mode),
    for which the thresholds are valid. ``ontology`` is a fingerprint.
    """

    model: str
    parameters: Mapping[str, Any]
    tuning: TuningRecord
    documents: frozenset[str]
    fixed_settings: Mapping[str, Any]
    ontology: str

    def settings(self, requested: Mapping[str, Any]) -> dict[str, Any]:
        """The settings of a run with these parameters; a conflicting setting is an error."""
        tuned = {**self.fixed_settings, **self.parameters}
        for name, value in requested.items():
            if name in tuned and _plain(value) != _plain(tuned[name]):
                raise ParameterError(
                    f"{name} is {_format_setting(value)} here, and {_format_setting(tuned[name])} in the tuning",
                    hint="leave it out, tune with it, or give all parameters by name instead of the tuning",
                )
        return {**requested, **tuned}

    def check_applicable(self, model: str, ontology: Ontology) -> None:
        """Raise an error for another model or ontology, for which the thresholds are not valid."""
        if model != self.model:
            raise ParameterError(
                f"the parameters were tuned for {self.model}, not for {model}", hint=f"tune {model} as well"
            )
        if ontology.fingerprint != self.ontology:
            raise ParameterError(
                f"the parameters were tuned over other terms than those of {ontology.title}",
                hint="tune again with this ontology, or name the one of the tuning with --ontology",
            )

    def findings(self, system: str, annotated: AnnotatedCorpus) -> tuple[Finding, ...]:
        """EQ201 if an evaluated document was used for tuning."""
        if not self.documents & text_hashes(annotated):
            return ()
        chosen = deployed_trial(self.tuning)
        tuning = replace(self.tuning, best=chosen, optimistic=self.tuning.trials[chosen].value)
        return run_checks(TunedSystem(system, tuning, nested=False))


FIXED_SETTINGS = ("multi_vector", "strategy", "include_assertions")
"""The settings of a tuning that its parameters depend on."""


def fixed_settings(settings: ExtractionConfig) -> dict[str, Any]:
    """Those settings, as a record keeps them."""
    return {name: _plain(getattr(settings, name)) for name in FIXED_SETTINGS}


def text_hashes(annotated: AnnotatedCorpus) -> frozenset[str]:
    """Hashes of the texts, independent of their ids."""
    return frozenset(hashlib.sha256(document.text.encode()).hexdigest()[:24] for document in annotated.documents)


def read_tuned_parameters(path: PathLike, model: str | None = None, *, trust: bool = False) -> TunedParameters:
    """Read the parameters of a stored tuning, for a model or for its first model.

    A model that the caller does not name is taken from the file only if it runs no code and uses no credentials,
    or with ``trust``.
    """
    file = Path(path) / TUNING_FILE if Path(path).is_dir() else Path(path)
    content = parse_json(open_text(file))
    try:
        models = {model["model"]: model for model in content["models"]}
        documents = frozenset(content["documents"])
        shared = {name: content["fixed_settings"][name] for name in FIXED_SETTINGS}
        if not isinstance(shared["strategy"], str):
            raise TypeError("strategy")
        ontology = content["ontology"]["fingerprint"]
        name = next(iter(models)) if model is None else model
        if is_dictionary(name):
            name = DICTIONARY
        elif model is None:
            spec_from_file(name, file, trust=trust)
    except (KeyError, TypeError, StopIteration) as error:
        raise _incomplete_record_error(file) from error
    if name not in models:
        raise UnknownNameError.of("tuned model", name, models, more=f"it holds {', '.join(models)}")
    tuned = models[name]
    try:
        tuning = TuningRecord.from_dict(tuned["tuning"])
        # Nothing else of a run is taken from the file.
        best = {name: kind(tuned["best"][name]) for name, kind in _TUNED_TYPES.items() if name in tuned["best"]}
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise _incomplete_record_error(file) from error
    return TunedParameters(name, best, tuning, documents, shared, ontology)


def _incomplete_record_error(file: Path) -> FormatError:
    return FormatError(
        f"{file} is no whole record of a tuning",
        hint=f"give a {TUNING_FILE} that this version of eq phenotypes extraction tune wrote",
    )


def _format_setting(value: Any) -> str:
    return ", ".join(value) if isinstance(value, tuple | list) else str(value).lower()


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


@dataclass(frozen=True, eq=False)
class TunedModel:
    """One model: all trials, and the result on held-out documents.

    ``sets`` has the predictions of each document by the configuration that was chosen without it.
    """

    name: str
    tuning: TuningRecord
    trials: TrialScores
    result: Result
    sets: Sets

    @property
    def best(self) -> Params:
        """What to deploy: the best trial, or the default parameters if no trial scores higher."""
        return self.tuning.trials[deployed_trial(self.tuning)].params

    @property
    def estimate(self) -> Estimate:
        """The score on held-out documents."""
        return self.result[self.tuning.metric]

    @property
    def frontier(self) -> list[int]:
        """The Pareto-optimal trials of the grid in precision and recall, by increasing recall."""
        n_trials = len(self.tuning.grid)
        return pareto_front(-self.trials.recall[:n_trials], self.trials.precision[:n_trials])[::-1]


def deployed_trial(tuning: TuningRecord) -> int:
    """The best trial, or that of the default parameters if no trial scores higher."""
    default = tuning.baseline
    return tuning.best if default is None or tuning.trials[default].value < tuning.optimistic else default


@dataclass(frozen=True, eq=False)
class ExtractionTuning:
    """Models that were tuned with the same grid, trials and folds."""

    models: tuple[TunedModel, ...]
    gold: GoldAnnotations
    settings: ExtractionConfig
    comparison: Comparison | None
    findings: tuple[Finding, ...] = ()
    command: tuple[str, ...] = ()
    failures: Mapping[str, EquipoiseError] = field(default_factory=dict)
    resumed: tuple[str, ...] = ()
    """The models that were loaded from the output folder instead of computed."""

    def charts(self) -> Iterator[Chart]:
        """Precision against recall of all trials, with the frontier of each model."""
        from equipoise.domains.phenotypes.charts import precision_recall_frontier

        yield precision_recall_frontier(self.models)

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values; ``documents`` are hashes of the tuning texts."""
        return {
            "documents": sorted(text_hashes(self.gold.annotated)),
            "mode": self.settings.mode,
            "fixed_settings": fixed_settings(self.settings),
            "ontology": {
                "name": self.gold.ontology.name,
                "release": self.gold.ontology.release,
                "fingerprint": self.gold.ontology.fingerprint,
            },
            "models": [
                {
                    "model": model.name,
                    "best": dict(model.best),
                    "estimate": model.estimate.to_dict(),
                    "optimistic": model.tuning.optimistic,
                    "tuning": model.tuning.to_dict(),
                    "precision": model.trials.precision.tolist(),
                    "recall": model.trials.recall.tolist(),
                }
                for model in self.models
            ],
            "comparison": None if self.comparison is None else self.comparison.to_dict(),
            "problems": [asdict(problem) for problem in self.gold.annotated.problems],
            "findings": [asdict(finding) for finding in self.findings],
        }

    def write(self, folder: str | Path) -> list[Path]:
        """Write one run per model, the tuning record, and the frontier chart if it can be rendered."""
        from equipoise.report.charts.chart import write_charts

        folder = Path(folder)
        check_writable(folder)
        status = Status.PARTIAL if self.gold.lost else Status.COMPLETE
        runs = []
        for model in self.models:
            run_manifest = Manifest.start(model.name, command=self.command, seed=self.settings.config.seed)
            manifest = replace(
                run_manifest.finish(status, reason=self.gold.lost_message),
                parameters={"model": model.name, "mode": self.settings.mode, **model.best},
                datasets=self.gold.fingerprints,
            )
            run = folder / RUNS / folder_name(model.name)
            runs.append(save_run(run, model.result, manifest=manifest, tuning=model.tuning))
        file = write_json(folder / TUNING_FILE, self.to_dict())
        view = tuning_view(self).with_charts(self.charts())
        view.write(folder, runs)
        return [file, *write_charts(view.charts, folder / VISUALIZATIONS, required=False)]

    def __repr__(self) -> str:
        scores = ", ".join(f"{model.name} {model.estimate.value:.3f}" for model in self.models)
        return f"<ExtractionTuning on {len(self.gold.annotated)} documents: {scores}>"
