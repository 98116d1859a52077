"""``eq phenotypes extract`` and ``eq phenotypes extraction``: run, compare and tune."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from equipoise.checks.base import pluralize
from equipoise.cli import options
from equipoise.cli import output as exits
from equipoise.cli.main import CommandEntry, LazyGroup
from equipoise.cli.output import Output, pass_output
from equipoise.domains.phenotypes.cli import (
    compare_options,
    index_dir_option,
    model_option,
    ontology_option,
    open_with_progress,
    show_stored_comparison,
    translations_option,
)
from equipoise.domains.phenotypes.defaults import DEFAULT_EXTRACTOR
from equipoise.progress import report_share
from equipoise.runs.experiment_folder import exit_code
from equipoise.types import with_label

if TYPE_CHECKING:
    from equipoise.config import StatsConfig
    from equipoise.domains.phenotypes.extraction.annotated_corpus import GoldAnnotations
    from equipoise.domains.phenotypes.extraction.candidates import Candidates, ClinicalText
    from equipoise.domains.phenotypes.extraction.predict import ExtractedTerm, Predictions
    from equipoise.domains.phenotypes.ontology import Ontology
    from equipoise.runs.executors import Executor
    from equipoise.types import Finding

EXTRACT_HELP = """
\b
  eq phenotypes extract note.txt
  eq phenotypes extract arztbrief.txt --model dict --json

Extract the terms in a note, with their assertion status: affirmed, negated, uncertain, family_history or hypothetical.
A dictionary matches labels, synonyms, clinical abbreviations and German names regardless of word order, inflection
and common spelling variants. The model scores the phrases that the dictionary does not match; --model dict uses
the dictionary alone. The score of a term is its confidence: the estimated probability that it is correct.

NOTE is a text file, a folder of text files, or - for standard input. -o terms.csv writes the table;
--phenopackets FOLDER writes one phenopacket (GA4GH, version 2) per note, with affirmed terms as features and negated
terms as excluded features. English and German are detected, even if one note has both. --translations adds translated
labels to the dictionary. eq phenotypes extraction run evaluates this command, with the same defaults.
"""


branch_option = click.option(
    "--branch",
    metavar="TERM",
    help="Find only terms below this one; all means every term.  [default: HP:0000118, phenotypic abnormalities]",
)
generator_options = options.joined(
    click.option(
        "--chunkers",
        metavar="NAMES",
        help="How text is split into the phrases that the model scores: span (word sequences that may name a term; "
        "the default), or splitters from coarse to fine, such as sentence,phrase.",
    ),
    click.option(
        "--dictionary/--no-dictionary",
        default=None,
        help="Match names with the dictionary first and the model for the rest (the default), or with the model only.",
    ),
    branch_option,
    translations_option,
)
selection_options = options.joined(
    click.option(
        "-k",
        "--top-k",
        "num_results",
        cls=options.AliasOption,
        aliases=("--num-results",),
        type=int,
        help="Candidate terms per phrase; with --top-term-only only the best of them is kept.  [default: 10]",
    ),
    click.option(
        "--chunk-threshold", type=float, help="Minimum confidence of a term in a single phrase.  [default: 0.4]"
    ),
    click.option("--min-confidence", type=float, help="Minimum mean confidence of a term in a document.  [default: 0]"),
    click.option(
        "--top-term-only/--all-terms", default=None, help="Only the best term per phrase (the default), or all."
    ),
)


def given_settings(
    *, chunkers: str | None = None, branch: str | None = None, no_bootstrap_ci: bool = False, **values: Any
) -> dict[str, Any]:
    """The settings of an ``ExtractionConfig`` that are set; others keep their defaults or come from a tuning."""
    settings = {name: value for name, value in values.items() if value is not None}
    if chunkers is not None:
        settings["chunkers"] = tuple(name.strip() for name in chunkers.split(",") if name.strip())
    if branch is not None:
        settings["branch"] = None if branch.casefold() == "all" else branch
    return settings | {"bootstrap": not no_bootstrap_ci}


@options.command(help=EXTRACT_HELP, short_help="Extract terms with their assertion status.")
@click.argument("note", type=click.Path())
@model_option(DEFAULT_EXTRACTOR)
@generator_options
@selection_options
@click.option("--assertions/--no-assertions", default=True, help="Detect assertions, or treat all terms as affirmed.")
@click.option("--language", metavar="CODE", help="en or de; detected by default.")
@click.option("--phenopackets", metavar="FOLDER", help="Write a phenopacket per note to this folder.")
@ontology_option
@index_dir_option
@options.threads_option
@options.model_device_option
@options.table_options()
@options.output_options
@pass_output
def extract(
    out: Output,
    /,
    note: str,
    model: str | None,
    language: str | None,
    phenopackets: str | None,
    ontology: str,
    index_dir: str | None,
    threads: int,
    device: str | None,
    **choices: Any,
) -> int:
    """See ``EXTRACT_HELP``."""
    from equipoise.domains.phenotypes.config import make_config
    from equipoise.domains.phenotypes.export import read_notes, write_phenopackets
    from equipoise.domains.phenotypes.extraction.extractor import TermExtractor, is_dictionary
    from equipoise.domains.phenotypes.extraction.predict import predict
    from equipoise.domains.phenotypes.ontology import load_ontology

    documents = read_notes(note, language=language)
    settings = make_config(given_settings(**choices))
    spec = model or DEFAULT_EXTRACTOR
    with out.working(f"reading the ontology {ontology}"):
        terms = load_ontology(ontology)
    settings = settings.limited_to(len(terms))
    retriever = None
    if not is_dictionary(spec):
        retriever = open_with_progress(
            out, spec, terms, threads, device, index_dir=index_dir, translations=settings.translations
        )
    extractor = TermExtractor.of(settings, terms, retriever)
    with out.working("extracting terms"):
        candidates = extractor.candidates(documents, num_results=settings.pipeline.num_results, progress=report_share)
        predicted = predict(candidates, **settings.pipeline.record())
    _show(out, terms, candidates, predicted, several=Path(note).is_dir())
    if phenopackets is not None:
        written = write_phenopackets(phenopackets, predicted, terms)
        out.note(f"wrote {pluralize(len(written), 'phenopacket')} to {phenopackets.rstrip('/')}/")
    return exits.DONE


def _show(out: Output, terms: Ontology, candidates: Candidates, predicted: Predictions, *, several: bool) -> None:
    documents = candidates.documents
    if out.json:
        records = [
            {
                "document": document.id,
                "language": document.detected_language,
                "terms": [_row(term, document, terms) for term in extracted],
            }
            for document, extracted in zip(documents, predicted.found, strict=True)
        ]
        out.data(
            {
                **({"documents": records} if several else records[0]),
                "model": candidates.system,
                "chunkers": candidates.chunkers,
                "chunks": len(candidates),
                "settings": predicted.settings.record(),
                "ontology": {"name": terms.name, "release": terms.release},
                "citation": terms.citation,
            }
        )
        return
    from equipoise.report.terminal import ReportColumn, TerminalTable
    from equipoise.stats.formatting import format_value

    rows = [
        (document, term) for document, extracted in zip(documents, predicted.found, strict=True) for term in extracted
    ]
    if rows:
        columns = [
            *([ReportColumn("document", [document.id for document, _ in rows], shortens="middle")] if several else []),
            ReportColumn("term", [term.term for _, term in rows]),
            ReportColumn("label", [terms.label_of(term.term) for _, term in rows], shortens="end"),
            ReportColumn("assertion", [str(term.assertion) for _, term in rows]),
            ReportColumn("score", [format_value(term.score, 2) for _, term in rows], right=True),
            ReportColumn("at", [", ".join(f"{start}-{end}" for start, end in term.spans) for _, term in rows], rank=2),
            ReportColumn("evidence", [_evidence(term, document) for document, term in rows], rank=1, shortens="end"),
        ]
        out.show(TerminalTable(columns))
    for line in _notes(terms, candidates, predicted):
        out.note(line)


def _row(term: ExtractedTerm, document: ClinicalText, terms: Ontology) -> dict[str, Any]:
    detected = document.detect_assertions(term.spans, names=term.spans)
    return {
        "id": term.term,
        "label": terms.label_of(term.term),
        "assertion": term.assertion,
        "score": term.score,
        "evidence": [
            {
                "start_char": start,
                "end_char": end,
                "text": document.text[start:end],
                "cues": [document.text[first:last] for first, last in span_assertion.cues],
            }
            for (start, end), span_assertion in zip(term.spans, detected, strict=True)
        ],
    }


def _evidence(term: ExtractedTerm, document: ClinicalText) -> str:
    return " | ".join(" ".join(document.text[start:end].split()) for start, end in term.spans)


def _notes(terms: Ontology, candidates: Candidates, predicted: Predictions) -> list[str]:
    """Notes: counts, language and model, how to evaluate, and the citation."""
    import numpy as np

    from equipoise.stats.formatting import format_value

    n_terms = sum(map(len, predicted.found))
    threshold = predicted.settings.chunk_threshold
    languages = ", ".join(sorted({document.detected_language for document in candidates.documents}))
    where = "" if len(predicted) == 1 else f" of {pluralize(len(predicted), 'note')}"
    found = f"{pluralize(n_terms, 'term')} in {pluralize(len(candidates), 'phrase')}{where}"
    notes = [f"{found}; language {languages}; model {candidates.system}"]
    best = float(candidates.scores.max(initial=-np.inf))
    if not n_terms and np.isfinite(best):
        notes.append(f"the best score is {format_value(best, 3)}, and --chunk-threshold is {threshold:g}")
    command = " ".join(["eq phenotypes extraction run DIR", predicted.settings.flags]).strip()
    return [*notes, f"to evaluate extraction on annotated documents: {command}", terms.citation]


EXTRACTION_COMMANDS = {
    "run": CommandEntry("equipoise.domains.phenotypes.cli_extraction:run", "Evaluate extraction on documents."),
    "compare": CommandEntry("equipoise.domains.phenotypes.cli_extraction:compare", "Compare stored runs."),
    "tune": CommandEntry(
        "equipoise.domains.phenotypes.cli_extraction:tune", "Choose parameters by nested cross-validation."
    ),
    "score": CommandEntry(
        "equipoise.domains.phenotypes.cli_extraction:score", "Score the predictions of other programs."
    ),
    "assertions": CommandEntry(
        "equipoise.domains.phenotypes.cli_extraction:assertions", "Evaluate assertion detection on sentences."
    ),
}

EXTRACTION_HELP = """
\b
  eq phenotypes extraction run notes --model tfidf -o results/default
  eq phenotypes extraction tune notes --models tfidf --n-trials 40

Evaluate term extraction from whole documents: precision, recall and F1 against annotations, with intervals over
documents, the stage at which each missed term was lost, and the kinds of error.
"""


@click.group(
    cls=LazyGroup, entries=EXTRACTION_COMMANDS, help=EXTRACTION_HELP, short_help="Evaluate and tune extraction."
)
def extraction() -> None:
    """See ``EXTRACTION_HELP``."""


measures = options.names_in("equipoise.domains.phenotypes.similarity", "MEASURES")


extraction_options = options.joined(
    click.option("--dataset", metavar="NAME", help="Use only this data set of the folder."),
    click.option("-o", "--output", metavar="FOLDER", help="Write results and a run directory here."),
    ontology_option,
    index_dir_option,
    generator_options,
    click.option(
        "--multi-vector/--single-vector",
        default=None,
        help="One vector for each label, synonym and definition (the default), or one per term.",
    ),
    click.option(
        "--include-assertions",
        is_flag=True,
        default=None,
        help="Count a wrong assertion as an error in the primary scores.",
    ),
    click.option("--no-bootstrap-ci", is_flag=True, help="Do not compute intervals (faster)."),
    options.stats_options(),
    options.threads_option,
    options.model_device_option,
    options.engine_options,
    options.fail_option,
    options.log_option,
    options.table_options(file=False),
)
"""The options shared by ``run`` and ``tune``."""


def models_on_device(models: Sequence[str], device: str | None, out: Output) -> list[str]:
    """The specs with their device; the dictionary has none."""
    from equipoise.domains.phenotypes.extraction.extractor import is_dictionary

    specs = options.models_on_device([model for model in models if not is_dictionary(model)], device, out)
    return [specs.get(model, model) for model in models]


def exit_status(out: Output, gold: GoldAnnotations, findings: tuple[Finding, ...], fail_on: str | None) -> int:
    """Report lost documents on standard error; exit status 3 if there are any, otherwise that of the gate."""
    for problem in gold.lost:
        fields = {"where": problem.where, "message": problem.message, "code": "E700", "hint": problem.hint}
        out.error(fields, f"left out: {problem}" + (f"\nhint: {problem.hint}" if problem.hint else ""))
    if gold.lost:
        return exits.FAILED_UNITS
    return exits.gate(out, findings, fail_on)


EXTRACTION_RUN_HELP = """
\b
  eq phenotypes extraction run notes --model tfidf -o results/default
  eq phenotypes extraction run corpus/ --dataset GeneReviews --top-term-only -o results/top_term

Extract terms from annotated documents and score them per document. DIR contains annotations/*.json (doc_id,
full_text, annotations with hpo_id, assertion_status and evidence_spans), or one such folder per data set. It can also
be a JSON or JSONL file of such documents, or "notes" for the short samples in English and German that are included.
All averages (micro, macro, weighted) and modes (with assertions, affirmed only, id only) are computed; --averaging
and --include-assertions select the primary ones. A file that cannot be read is listed and skipped, and the run is
partial (exit status 3).

The defaults are those of eq phenotypes extract: the dictionary, and the model for phrases that the dictionary does not
match. The dictionary alone (--model dict) is always included as a baseline. --branch limits the terms that are
found, not the gold annotations.
"""

averages = options.names_in("equipoise.metrics.sets", "AVERAGES")
_OPTIONS = {
    "num_results": "--top-k",
    "chunk_threshold": "--chunk-threshold",
    "min_confidence": "--min-confidence",
    "top_term_only": "--top-term-only",
    "assertions": "--assertions",
}
"""The options that set the fields of ``SelectionSettings``."""


@options.command(help=EXTRACTION_RUN_HELP, short_help="Evaluate extraction on documents.")
@click.argument("source", metavar="DIR")
@model_option(f"{DEFAULT_EXTRACTOR}, or that of --tuned-parameters")
@selection_options
@options.one_of("--averaging", "averaging", averages, "micro", "How scores are averaged over documents.")
@options.one_of(
    "--similarity-measure", "similarity measure", measures, "lin", "Ontology similarity of near misses in soft scores."
)
@click.option(
    "--tuned-parameters",
    metavar="FILE",
    help="Use the parameters chosen by eq phenotypes extraction tune (folder or file).",
)
@click.option("--trust", is_flag=True, help="Let the model of --tuned-parameters run code or use credentials.")
@extraction_options
@options.output_options
@pass_output
def run(
    out: Output,
    /,
    source: str,
    model: str | None,
    similarity_measure: str,
    tuned_parameters: str | None,
    trust: bool,
    ontology: str,
    dataset: str | None,
    output: str | None,
    device: str | None,
    engine: Executor,
    fail_on: str | None,
    **choices: Any,
) -> int:
    from equipoise.domains.phenotypes.extraction.candidates import SelectionSettings
    from equipoise.domains.phenotypes.extraction.experiment import RESULTS, run_extraction
    from equipoise.domains.phenotypes.extraction.report import extraction_view
    from equipoise.domains.phenotypes.extraction.tuning_results import read_tuned_parameters
    from equipoise.errors import ParameterError

    settings = given_settings(measure=similarity_measure, **choices)
    tuned = None if tuned_parameters is None else read_tuned_parameters(tuned_parameters, model, trust=trust)
    chosen = [name for name in SelectionSettings().record() if name in settings]
    if tuned is not None and chosen:
        raise ParameterError(
            f"{_OPTIONS[chosen[0]]} and --tuned-parameters set the same parameter", hint="omit one of them"
        )
    spec = model or (DEFAULT_EXTRACTOR if tuned is None else tuned.model)
    with options.executor_context(engine, out, "a model"), out.progress(3) as step:
        evaluation = run_extraction(
            source,
            models_on_device([spec], device, out)[0],
            ontology,
            dataset=dataset,
            tuned=tuned,
            output=output,
            progress=step,
            command=out.command,
            engine=engine,
            **settings,
        )
    out.results(evaluation.to_dict, lambda: extraction_view(evaluation))
    if evaluation.resumed:
        out.note(with_label(evaluation.model, f"loaded from {output}, not computed again"))
    if output is not None:
        out.note(f"wrote {output.rstrip('/')}/{RESULTS}")
    return exit_status(out, evaluation.gold, evaluation.findings, fail_on)


EXTRACTION_COMPARE_HELP = """
\b
  eq phenotypes extraction compare results/default results/top_term
  eq phenotypes extraction compare results/default results/top_term --primary "F1(average=macro,mode=id)"

Compare extraction runs on the same documents: differences with intervals and tests, paired by document. Runs with
different documents, primary modes or averages cannot be compared. Metrics are named F1, P and R: the average is micro
unless stated; mode=id ignores assertions, mode=present counts affirmed terms only, and without mode= terms are counted
together with their assertions.
"""


@options.command(help=EXTRACTION_COMPARE_HELP, short_help="Compare stored runs.")
@compare_options(options.metric_option_for('F1, R or "P(average=macro,mode=id)"'))
@pass_output
def compare(
    out: Output,
    runs: tuple[str, ...],
    metrics: tuple[str, ...],
    primary: str | None,
    config: StatsConfig,
    fail_on: str | None,
) -> int:
    from equipoise.domains.phenotypes.extraction.experiment import compare_extraction_runs, read_extractions

    with out.progress(2) as step:
        step("reading")
        stored = read_extractions(runs)
        step("comparing")
        comparison = compare_extraction_runs(stored, metrics or None, primary=primary, config=config)
    return show_stored_comparison(out, comparison, list(stored.values()), fail_on)


EXTRACTION_TUNE_HELP = """
\b
  eq phenotypes extraction tune notes --models tfidf --n-trials 40
  eq phenotypes extraction tune corpus/ --models use tfidf --n-folds 5 -o results/tuned

Tune the parameters of extraction by nested cross-validation: with or without the dictionary, phrases or chunks,
branch, number of terms per phrase, and thresholds. --chunkers, --no-dictionary and --branch fix a choice. Every model
gets the same number of trials: two thirds on a grid whose thresholds are quantiles of the model's scores, the rest
close to the best of these. Each document is scored with the parameters that have the highest mean F1 on the other
folds. With -o, the precision-recall frontier is plotted, and the selected parameters are written to
extraction_tuning.json, for eq phenotypes extraction run OTHER --tuned-parameters FOLDER.
"""


@options.command(help=EXTRACTION_TUNE_HELP, short_help="Choose parameters by nested cross-validation.")
@click.argument("source", metavar="DIR")
@options.models_option(
    aliases=("--model", "--model-name"),
    text="The models, such as minilm, tfidf, use or sum:use+tfidf.",
    default=DEFAULT_EXTRACTOR,
)
@click.option(
    "--n-trials",
    type=click.IntRange(min=1),
    default=40,
    show_default=True,
    help="Configurations to try per model.",
)
@click.option(
    "--n-folds",
    type=click.IntRange(min=1),
    default=5,
    show_default=True,
    help="Number of folds; 1 means no cross-validation (optimistic).",
)
@extraction_options
@options.output_options
@pass_output
def tune(
    out: Output,
    /,
    source: str,
    models: tuple[str, ...],
    n_trials: int,
    n_folds: int,
    ontology: str,
    dataset: str | None,
    output: str | None,
    device: str | None,
    engine: Executor,
    fail_on: str | None,
    **choices: Any,
) -> int:
    from equipoise.domains.phenotypes.extraction.report import tuning_view
    from equipoise.domains.phenotypes.extraction.tuning import tune_extraction

    specs = models_on_device(models or (DEFAULT_EXTRACTOR,), device, out)
    with options.executor_context(engine, out, "a model"), out.progress(len(specs) + 1) as step:
        tuning = tune_extraction(
            source,
            specs,
            ontology,
            budget=n_trials,
            folds=n_folds,
            dataset=dataset,
            output=output,
            progress=step,
            command=out.command,
            engine=engine,
            **given_settings(**choices),
        )
    out.results(tuning.to_dict, lambda: tuning_view(tuning))
    if output is not None:
        out.note(f"wrote {output.rstrip('/')}/")
    for name in tuning.resumed:
        out.note(with_label(name, f"loaded from {output}, not computed again"))
    out.failures(tuning.failures, "model")
    status = exit_status(out, tuning.gold, tuning.findings, fail_on)
    return exit_code(tuning.failures) or status


EXTRACTION_SCORE_HELP = """
\b
  eq phenotypes extraction score --predictions clinphen_out/ --gold corpus/
  eq phenotypes extraction score --predictions clinphen=out/ llm=llm.json --gold corpus/

Score the predictions of other programs against annotated documents, and compare them with paired tests by
document. The dictionary (dict) is scored as well; --branch limits the terms that it finds, not the predictions. The
format is recognised: ClinPhen, PhenoBERT, FastHPOCR, PhenoTagger (PubTator), Phentrieve, JSON output of language
models, phenopackets, and tables with columns such as doc, term and assertion. A folder has one file per document,
named after it. F1(mode=id) is the micro F1 of terms, regardless of their assertion.
"""


@options.command(help=EXTRACTION_SCORE_HELP, short_help="Score the predictions of other programs.")
@click.option(
    "--predictions",
    cls=options.MultiValueOption,
    required=True,
    metavar="[NAME=]PATH...",
    help="Files or folders, optionally with a display name.",
)
@click.option("--gold", required=True, metavar="DIR", help="Annotated documents, as for eq phenotypes extraction run.")
@click.option("--dataset", metavar="NAME", help="Use only this data set of the folder.")
@options.one_of("--averaging", "averaging", averages, "micro", "How scores are averaged over documents.")
@click.option("--include-assertions", is_flag=True, help="Count a wrong assertion as an error in the primary scores.")
@click.option("--baseline/--no-baseline", default=True, show_default=True, help="Also score the dictionary (dict).")
@branch_option
@ontology_option
@options.stats_options()
@options.fail_option
@options.log_option
@options.table_options()
@options.output_options
@pass_output
def score(
    out: Output,
    /,
    predictions: tuple[str, ...],
    gold: str,
    dataset: str | None,
    baseline: bool,
    ontology: str,
    fail_on: str | None,
    **choices: Any,
) -> int:
    from equipoise.cli.compare import show_comparison
    from equipoise.domains.phenotypes.extraction.score_predictions import score_predictions

    with out.working("scoring"):
        scored = score_predictions(
            predictions, gold, ontology, dataset=dataset, baseline=baseline, **given_settings(**choices)
        )
    show_comparison(out, scored.comparison)
    for note in scored.notes:
        out.note(note)
    return exit_status(out, scored.gold, scored.comparison.findings, fail_on)


EXTRACTION_ASSERTIONS_HELP = """
\b
  eq phenotypes extraction assertions
  eq phenotypes extraction assertions sentences.txt --language de -v

Evaluate the detection of assertions (affirmed, negated, uncertain, family_history, hypothetical) on sentences in
which findings are marked: "No [fever|n], but [cough|a]." Without a file, the included English and German sentences
are used, on which the rules were developed. -v lists the accuracy by kind of sentence, and the errors.
"""


@options.command(help=EXTRACTION_ASSERTIONS_HELP, short_help="Evaluate assertion detection on sentences.")
@click.argument("file", required=False)
@click.option("--language", metavar="CODE", default="en", show_default=True, help="The language of the file.")
@options.table_options()
@options.output_options
@pass_output
def assertions(out: Output, file: str | None, language: str) -> int:
    from equipoise.domains.phenotypes.assertion.evaluation import evaluate_assertions, read_assertion_cases
    from equipoise.domains.phenotypes.extraction.report import assertion_view
    from equipoise.domains.phenotypes.language import LANGUAGES

    if file is None:
        evaluations = [evaluate_assertions(code) for code in LANGUAGES]
    else:
        evaluations = [evaluate_assertions(language, read_assertion_cases(file))]
    if out.json:
        out.data([evaluation.to_dict() for evaluation in evaluations])
    else:
        out.view(assertion_view(evaluations, included=file is None))
    return exits.DONE
