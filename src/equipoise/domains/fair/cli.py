"""``eq fair``: compare embedding models on your document, and validate a question set. ``eq demo``."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from equipoise.checks.base import pluralize
from equipoise.cli import options
from equipoise.cli import output as exits
from equipoise.cli.main import CommandEntry, LazyGroup
from equipoise.cli.options import Command, MultiValueOption, engine_options, executor_context
from equipoise.cli.output import Output, pass_output
from equipoise.domains.fair.answer_matching import MATCHER_ALIASES, MATCHERS, EmbeddingEvalMatcher
from equipoise.domains.fair.config import BASELINE, CHUNK_SIZES, FAIR_STATS, OVERLAPS, RERANK_DEPTHS, TOP_KS, FairConfig
from equipoise.domains.fair.questions import read_questions, timekeeping
from equipoise.domains.fair.validation import validate_fixture
from equipoise.domains.fair.validation_report import validation_parts, validation_table
from equipoise.errors import InputError, ParameterError
from equipoise.io.documents import TextDocument, read_documents
from equipoise.models.vector_cache import document_folder
from equipoise.report.terminal import Paragraph
from equipoise.types import packaged_toml, with_label

if TYPE_CHECKING:
    from equipoise.config import StatsConfig
    from equipoise.domains.fair.draft import DraftSet
    from equipoise.domains.fair.plan import Plan
    from equipoise.domains.fair.results import FairComparison
    from equipoise.domains.fair.validation import ValidationResult
    from equipoise.runs.executors import Executor

COMMANDS = {
    "compare": CommandEntry("equipoise.domains.fair.cli:compare", "Tune and compare models on held-out questions."),
    "validate": CommandEntry("equipoise.domains.fair.cli:validate", "Check a question set before a comparison."),
    "draft": CommandEntry("equipoise.domains.fair.cli:draft", "Propose questions about a document."),
}

FAIR_HELP = """
\b
  eq fair draft --doc document.txt -o drafts.jsonl
  eq fair validate --qa questions.json --doc document.txt
  eq fair compare --doc document.txt --qa questions.json --models minilm bm25 -o results/

Compare embedding models on your own document. Each model is tuned separately and scored on
held-out questions.
"""


@click.group(cls=LazyGroup, entries=COMMANDS, help=FAIR_HELP, short_help="Compare models on your document.")
def fair() -> None:
    """See ``FAIR_HELP``."""


COMPARE_HELP = """
\b
  eq fair compare --doc document.txt --qa questions.json --models minilm bm25 -o results/
  eq fair compare --doc docs/ --qa questions.jsonl --models minilm use bm25 --token-budget 2000

Compare embedding models on your own document. For each model, every configuration of the grid
is evaluated. Parameters are selected and scored on different questions (nested cross-validation),
and models are compared in pairs on the same questions. -v also prints the optimistic score, for
which parameters are selected and scored on the same questions.

Documents are .txt, .md, .html, .pdf and .docx files or folders of them; the question set is JSON or
JSONL with "question", "answer" (a text or a list of accepted texts) and optionally "category",
"difficulty" and "passages" (excerpts that the answer must be in). With -o FOLDER, results.json and
one run directory per model are written; re-running the command resumes, and eq report FOLDER writes
a page with all charts. With -o FILE.json, only a list of results is written. With --engine ray each
model runs on a node of a cluster; the scores are the same.
"""

RESUME_NOTE = "run the same command again to compute only what is missing"


chunkers = options.names_in("equipoise.models.chunking", "CHUNKERS")
unanswerable_policies = options.names_in("equipoise.domains.fair.config", "UNANSWERABLE_POLICIES")

matcher_option = click.option(
    "--matcher",
    type=options.ChoiceWithHint("matcher", lambda: MATCHERS, aliases={EmbeddingEvalMatcher.kind: MATCHER_ALIASES}),
    default="words",
    show_default=True,
    help="How answers are found. words: whole words within one chunk; embedding-eval: the lenient rule of that package "
    "(substrings of the joined chunks, or most of the words).",
)

tokenizer_option = click.option(
    "--tokenizer",
    metavar="NAME",
    help="Tokenizer that counts tokens: cl100k, words, or that of a model such as minilm.  [default: cl100k if "
    "installed, else words]",
)


def _several(
    *names: str, default: Sequence[int], minimum: int, text: str, aliases: Sequence[str] = (), fitted: bool = True
) -> options.Decorator:
    """An option that takes several integers; ``fitted`` defaults are lower for short documents."""
    return click.option(
        *names,
        cls=MultiValueOption,
        aliases=aliases,
        commas=True,
        type=click.IntRange(min=minimum),
        callback=lambda ctx, option, values: values or None,
        metavar="N ...",
        show_default=" ".join(map(str, default)) + ("; lower for short documents" if fitted else ""),
        help=text,
    )


@options.command(help=COMPARE_HELP, short_help="Compare models on your document.")
@click.option(
    "--doc",
    "documents",
    cls=MultiValueOption,
    required=True,
    metavar="PATH ...",
    help="Documents or folders of documents.",
)
@click.option(
    "--qa",
    "question_set",
    required=True,
    metavar="FILE",
    help="The question set: JSON or JSONL with question and answer.",
)
@options.models_option(required=True)
@_several("--chunk-sizes", default=CHUNK_SIZES, minimum=1, text="Chunk sizes to try, in tokens.")
@_several("--overlaps", default=OVERLAPS, minimum=0, text="Overlaps to try, in tokens.")
@_several(
    *("-k", "--top-k", "top_ks"),
    default=TOP_KS,
    minimum=1,
    text="Numbers of retrieved chunks to try. With --token-budget, every number up to the largest is tried, by "
    "default every number that fits.",
    aliases=("--top-ks",),
)
@click.option(
    "--chunkers",
    cls=MultiValueOption,
    commas=True,
    type=options.ChoiceWithHint("chunker", chunkers),
    default=("fixed",),
    metavar="NAME ...",
    show_default="fixed",
    help="Chunkers to try: fixed, section, sentence.",
)
@click.option(
    "--rerankers",
    cls=MultiValueOption,
    metavar="SPEC ...",
    help="Also evaluate each model combined with each of these rerankers, such as maxsim:minilm.",
)
@_several(
    "--rerank-depths", default=RERANK_DEPTHS, minimum=1, text="Numbers of top-ranked chunks to rerank.", fitted=False
)
@click.option(
    "--token-budget",
    "budget",
    type=click.FloatRange(min=0, min_open=True),
    metavar="N",
    help="Maximum mean number of retrieved tokens per question.",
)
@click.option(
    "--n-folds",
    "folds",
    type=click.IntRange(min=1),
    default=5,
    show_default=True,
    help="Number of folds; 1 means no cross-validation (optimistic).",
)
@click.option(
    "--n-repeats",
    "repeats",
    type=click.IntRange(min=1),
    default=100,
    show_default=True,
    help="Number of random splits into folds; scores are means over them.",
)
@matcher_option
@click.option(
    "--unanswerable",
    type=options.ChoiceWithHint("policy for unanswerable questions", unanswerable_policies),
    default="refuse",
    show_default=True,
    help="Questions whose answer is not in the document: stop with an error, score 0, or skip.",
)
@click.option("--allow-drafts", is_flag=True, help="Compare on questions that are marked as drafts (EQ116).")
@tokenizer_option
@options.stats_options(n_resamples=FAIR_STATS.n_resamples)
@options.threads_option
@options.model_device_option
@click.option("-o", "--output", metavar="FOLDER", help="Output folder; a .json file gets only a list of results.")
@click.option("--charts", is_flag=True, help="Also write all charts to the output folder, as PNG and SVG.")
@engine_options
@options.fail_option
@options.log_option
@options.table_options(file=False)
@options.output_options
@pass_output
def compare(
    out: Output,
    /,
    documents: tuple[str, ...],
    question_set: str,
    models: tuple[str, ...],
    rerankers: tuple[str, ...],
    config: StatsConfig,
    threads: int,
    device: str | None,
    output: str | None,
    charts: bool,
    fail_on: str | None,
    engine: Executor,
    **settings: Any,
) -> int:
    """See ``COMPARE_HELP``."""
    from equipoise.domains.fair.experiment import (
        check_rerank_depths,
        compare_models,
        n_steps,
        plan_comparison,
        step_weights,
        with_rerankers,
    )
    from equipoise.models.retriever import resolve_models
    from equipoise.runs.experiment_folder import check_writable, is_json_file

    if output is not None:
        check_writable(output, example="results.json" if is_json_file(Path(output)) else None)
    if charts and (output is None or is_json_file(Path(output))):
        raise ParameterError("--charts needs an output folder", hint="add -o FOLDER")
    fair_config = FairConfig(stats=config, **settings)
    check_rerank_depths(fair_config.rerank_depths, rerankers)
    resolved = with_rerankers(options.models_on_device(list(resolve_models(models)), device, out), rerankers)
    with executor_context(engine, out, "a model"):
        with out.working("reading the documents"):
            questions = read_questions(question_set)
            plan = plan_comparison(
                read_documents(*documents, cache=document_folder()), questions, fair_config, Path(question_set).name
            )
        if fair_config.budget is not None:
            out.note(budget_note(fair_config.budget, fair_config.tokenizer_name))
        with out.progress(n_steps(resolved), step_weights(resolved, plan)) as step:
            comparison = compare_models(
                resolved, plan, threads=threads, step=step, output=output, command=out.command, engine=engine
            )
    _show_comparison(out, comparison, output, charts=charts)
    return _exit_code(out, comparison, fail_on)


def _show_comparison(out: Output, comparison: FairComparison, output: str | None, *, charts: bool) -> None:
    """Print the report or the JSON data, and where it was written."""
    from equipoise.domains.fair.report import fair_view
    from equipoise.runs.experiment_folder import is_json_file

    for name in comparison.resumed:
        out.note(with_label(name, f"loaded from {output}, not computed again"))
    out.results(comparison.to_dict, lambda: fair_view(comparison, _details(comparison, output)))
    if output is not None:
        out.note(f"wrote {output}")
        if charts:
            comparison.draw(output)
        if not is_json_file(Path(output)):
            _report_unrelated_runs(out, comparison, Path(output))
    out.failures(comparison.failures, "model")
    if comparison.failures and output is not None:
        out.note(RESUME_NOTE)


def _report_unrelated_runs(out: Output, comparison: FairComparison, folder: Path) -> None:
    """Print the runs in the folder that are not part of this comparison."""
    unrelated = comparison.unrelated_runs(folder)
    for same_setup, reason in ((True, "not among --models"), (False, "computed with other options")):
        names = [name for name, same in unrelated.items() if same == same_setup]
        if names:
            verb = "is" if len(names) == 1 else "are"
            out.note(f"{', '.join(names)} in {folder} {verb} not part of this comparison ({reason})")


def _details(comparison: FairComparison, output: str | None) -> str:
    """Where the rest is: further tables, and the report if there is an output folder."""
    from equipoise.runs.experiment_folder import is_json_file

    if output is None or is_json_file(Path(output)) or len(comparison.outcomes) < 2:
        return "Details: add -v."
    return f"Details: add -v, or {shlex.join(['eq', 'report', output])}."


def _exit_code(out: Output, comparison: FairComparison, fail_on: str | None) -> int:
    from equipoise.runs.experiment_folder import exit_code

    gate = exits.gate(out, comparison.findings, fail_on)
    return exit_code(comparison.failures) or gate


VALIDATE_HELP = """
\b
  eq fair validate --qa questions.json --doc document.txt
  eq fair validate --qa questions.jsonl --doc manual.pdf --doc notes/ --min-multihop 5 --json

Check questions and answers before models are compared on them: answers that are not in the
document, with the closest passage; answers that occur several times or are split by chunk
boundaries; duplicate questions; the mix of categories and difficulties; and the differences that
this number of questions can detect. Without --doc no answer is verified. Exit status 1 means that
answers are missing or questions are duplicates; with --strict also that a minimum is not met, such
as --min-questions, or that questions are unedited drafts.
"""


def _number(
    name: str, kind: type[int] | type[float], default: float, words: str, *, into: str = ""
) -> Callable[[Command], Command]:
    """An option with a number; ``into`` is the parameter name if it differs."""
    names = (name, into) if into else (name,)
    return click.option(*names, type=kind, default=default, show_default=True, help=words)


def _fitted_number(*names: str, default: str, text: str) -> Callable[[Command], Command]:
    """An option with an integer; the default is that of the untuned baseline."""
    shown = f"{BASELINE[default]}; lower for short documents"
    return click.option(*names, type=int, default=None, show_default=shown, help=text)


@options.command(help=VALIDATE_HELP, short_help="Check a question set before a comparison.")
@click.option("--qa", required=True, metavar="FILE", help="The question set: JSON or JSONL with question and answer.")
@click.option(
    "--doc",
    "docs",
    cls=MultiValueOption,
    metavar="PATH ...",
    help="Documents or folders that contain the answers.",
)
@_number("--min-questions", int, 50, "Minimum number of questions.")
@_number("--recommended-questions", int, 80, "Recommended number of questions.")
@_number(
    "--min-multihop", float, 10.0, "Minimum percentage of questions of category multi_hop.", into="min_multihop_pct"
)
@_number(
    "--recommended-multihop",
    float,
    20.0,
    "Recommended percentage of questions of category multi_hop.",
    into="recommended_multihop_pct",
)
@_number("--min-hard", float, 30.0, "Minimum percentage of questions of difficulty hard.", into="min_hard_pct")
@_number(
    "--recommended-hard",
    float,
    40.0,
    "Recommended percentage of questions of difficulty hard.",
    into="recommended_hard_pct",
)
@_fitted_number("--chunk-size", default="chunk_size", text="Chunk size in tokens, to find answers that are split.")
@_fitted_number("--overlap", default="overlap", text="Overlap of chunks in tokens.")
@_fitted_number("-k", "--top-k", default="top_k", text="Number of retrieved chunks, to warn of short documents.")
@tokenizer_option
@matcher_option
@click.option("--strict", is_flag=True, help="Also exit with status 1 if a minimum is not met, or if there are drafts.")
@options.table_options()
@options.output_options
@pass_output
def validate(out: Output, /, qa: str, docs: tuple[str, ...], strict: bool, **settings: Any) -> int:
    """See ``VALIDATE_HELP``."""
    with out.working("locating the answers"):
        result = validate_fixture(
            read_questions(qa), read_documents(*docs, cache=document_folder()) if docs else None, **settings
        )
    _show_validation(out, result, strict=strict)
    is_error = result.answers_missing or result.duplicate_questions or (strict and not result.is_valid)
    return exits.GATE_FAILED if is_error else exits.DONE


def _show_validation(out: Output, result: ValidationResult, *, strict: bool) -> None:
    if out.json:
        out.data(result.to_dict())
    elif out.to == "csv":
        out.show(validation_table(result))
    else:
        out.show(*validation_parts(result, strict=strict, quiet=out.quiet, verbose=out.verbose))


OPTION_DETAILS = packaged_toml("equipoise.domains.fair", "option_details.toml")
"""More about options, for ``eq explain --OPTION``."""

DRAFT_HELP = """
\b
  eq fair draft --doc document.txt -o drafts.jsonl
  eq fair draft --doc manual.pdf --n-questions 120 --model openai:gpt-4o-mini -o drafts.jsonl

Propose questions about a document. Without --model, questions are made from sentences (cloze) and from section titles;
nothing is downloaded. With --model, a hosted chat model writes questions; its key is read from the environment.
Answers are copied from the document. A draft is dropped if its question contains the answer, if the answer occurs
several times or belongs to another draft, or if the question nearly duplicates another one. Each draft has its
passage and the key "draft": edit the question, remove the key, and run eq fair validate. eq fair compare rejects
drafts unless --allow-drafts is given. An existing question set is never replaced.
"""

N_SHOWN_DRAFTS = 5


@options.command(help=DRAFT_HELP, short_help="Propose questions about a document.")
@click.option(
    "--doc",
    "docs",
    cls=MultiValueOption,
    required=True,
    metavar="PATH ...",
    help="Documents or folders of documents.",
)
@click.option(
    "-n", "--n-questions", type=click.IntRange(min=1), default=80, show_default=True, help="Maximum number of drafts."
)
@click.option("--model", metavar="SPEC", help="A chat model, such as openai:MODEL or litellm:PROVIDER/MODEL.")
@click.option(
    "--language",
    type=options.ChoiceWithHint("language", options.names_in("equipoise.domains.fair.draft", "LANGUAGES")),
    help="Language of questions from section titles; detected by default.",
)
@click.option(
    "-o", "--output", metavar="FILE", help="The question set to write: .jsonl or .json; standard output by default."
)
@options.output_options
@pass_output
def draft(
    out: Output, /, docs: tuple[str, ...], n_questions: int, model: str | None, language: str | None, output: str | None
) -> int:
    """See ``DRAFT_HELP``."""
    from equipoise.domains.fair.draft import check_draft_path, check_not_replaced, draft_questions

    if output is not None:
        check_draft_path(Path(output))
        if model is not None:  # a chat model costs money, and never writes the same questions twice
            check_not_replaced(Path(output))
    with out.working("reading the documents"):
        documents = read_documents(*docs, cache=document_folder())
    with out.count("drafting questions", n_questions) as count:
        drafts = draft_questions(documents, n_questions, model=model, language=language, progress=count)
    if not len(drafts):
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in drafts.dropped.items())
        raise InputError("no draft passed the checks", hint=f"dropped: {reasons}")
    if output is not None:
        drafts.write(Path(output))
    if out.json:
        out.data({"questions": drafts.to_dicts(), "dropped": dict(drafts.dropped), "failure": drafts.failure})
    elif output is None:
        out.text(drafts.to_jsonl().rstrip("\n"))
    else:
        out.show(*_draft_summary(drafts, output, docs))
    if drafts.failure:
        out.note(f"only {pluralize(len(drafts), 'draft')} of {n_questions:,}: {drafts.failure}")
        return exits.FAILED_UNITS
    return exits.DONE


DRAFT_METHODS = {"heading": "from section titles", "cloze": "cloze questions"}
"""What the summary calls the drafts of a method."""


def _draft_summary(drafts: DraftSet, output: str, docs: Sequence[str]) -> list[Paragraph]:
    """The number of drafts by method, some examples, what was dropped, and the next steps."""
    methods = Counter(drafts.methods.values())
    dropped = ", ".join(f"{count:,} ({reason})" for reason, count in drafts.dropped.items())
    validate = shlex.join(
        ["eq", "fair", "validate", "--qa", output, *(word for doc in docs for word in ("--doc", doc))]
    )
    shown = drafts.questions[:: max(1, len(drafts) // N_SHOWN_DRAFTS)][:N_SHOWN_DRAFTS]
    return [
        Paragraph(
            f"{pluralize(len(drafts), 'draft')} in {output}: "
            f"{', '.join(f'{count} {DRAFT_METHODS.get(method, method)}' for method, count in methods.items())}."
        ),
        Paragraph(""),
        *(Paragraph(f"{question.question} -> {question.answer}", lead="- ") for question in shown),
        Paragraph(""),
        *([Paragraph(f"Dropped: {dropped}.")] if dropped else []),
        Paragraph(f'Edit each question, remove its "draft" key, then run {validate}.'),
    ]


DEMO_HELP = """
\b
  eq demo
  eq demo -o results/ --json

Compare the models minilm, use (Universal Sentence Encoder) and wordllama, where installed, with the
baselines bm25, tfidf and hash: each searches a text on the history of timekeeping for the answers
to 130 questions. Nothing is downloaded. Each model is tuned separately on a small grid and scored
on held-out questions. The results and an HTML report are written to a folder, and repeating the
command reuses them.
"""

DEMO_REPORT = "report.html"
DEMO_MODELS = ("minilm", "use", "wordllama")
LEXICAL_MODELS = ("bm25", "tfidf", "hash")
DEMO_CHUNK_SIZES, DEMO_OVERLAPS = (50, 100, 200), (0, 20)
DEMO_BUDGET = 800
"""Token budget per question: 4 of the largest chunks or 16 of the smallest."""

DEMO_BASELINE = {"chunk_size": 200, "overlap": 20, "top_k": 4}
MCNEMAR_HINT = "means over several splits are fractional; eq demo -v shows McNemar's exact p in its own column"


@options.command(help=DEMO_HELP, short_help="Compare models on a sample document.")
@click.option(
    "-o",
    "--output",
    metavar="FOLDER",
    default="equipoise-demo",
    show_default=True,
    help="The output folder.",
)
@options.model_device_option
@options.stats_options(n_resamples=FAIR_STATS.n_resamples, omit_tests={"mcnemar": MCNEMAR_HINT})
@options.table_options(file=False)
@options.output_options
@pass_output
def demo(out: Output, output: str, device: str | None, config: StatsConfig) -> int:
    """See ``DEMO_HELP``."""
    from equipoise.domains.fair.experiment import compare_models, n_steps, step_weights
    from equipoise.models.inventory import list_models
    from equipoise.models.retriever import resolve_models
    from equipoise.runs.experiment_folder import check_writable, exit_code

    check_writable(output)
    with out.working("chunking the sample document"):
        plan = _demo_plan(config)
    installed = [listing.spec for listing in list_models() if listing.spec in DEMO_MODELS and listing.works]
    models = options.models_on_device(list(resolve_models([*installed, *LEXICAL_MODELS])), device, out)
    _announce_demo(out, plan, len(models))
    with out.progress(n_steps(models) + 1, step_weights(models, plan)) as step:
        comparison = compare_models(models, plan, step=step, output=output, command=out.command)
        step("writing the report")
        _write_demo_report(out, comparison, Path(output), config)
    _show_demo(out, comparison, Path(output))
    missing = [name for name in DEMO_MODELS if name not in installed]
    if missing:
        out.note(f"Not installed: {', '.join(missing)}. See eq ls models.")
    return exit_code(comparison.failures)


def _demo_plan(config: StatsConfig) -> Plan:
    """The sample document, its questions and the grid."""
    from equipoise.domains.fair.experiment import prepare_comparison

    document, questions = timekeeping()
    settings = FairConfig(
        chunk_sizes=DEMO_CHUNK_SIZES,
        overlaps=DEMO_OVERLAPS,
        top_ks=[DEMO_BUDGET // min(DEMO_CHUNK_SIZES)],
        budget=DEMO_BUDGET,
        baseline_params=DEMO_BASELINE,
        tokenizer="words",  # so that the scores do not depend on the installed tokenizers
        stats=config,
    )
    return prepare_comparison(TextDocument("timekeeping.md", document), questions, settings, "questions.jsonl")


def _announce_demo(out: Output, plan: Plan, systems: int) -> None:
    """Print what is compared, before the work starts."""
    words = sum(len(document.text.split()) for document in plan.dataset.documents)
    out.note(
        f"Comparing {systems} models on {len(plan.dataset.questions)} questions about a text of {words:,} words.\n"
        f"{budget_note(DEMO_BUDGET, plan.settings.tokenizer_name)}\n"
    )


def budget_note(budget: float, tokenizer: str) -> str:
    """The token budget and its unit, before the work starts.

    >>> budget_note(800, "words")
    'Budget: 800 tokens (words and punctuation) per question on average.'
    """
    from equipoise.stats.formatting import format_value

    unit = "words and punctuation" if tokenizer == "words" else tokenizer
    return f"Budget: {format_value(budget, 0)} tokens ({unit}) per question on average."


def _show_demo(out: Output, comparison: FairComparison, folder: Path) -> None:
    """Print the report or the JSON data."""
    from equipoise.domains.fair.report import fair_view

    if out.json:
        out.data(comparison.to_dict())
        return
    details = f"Details: {folder / DEMO_REPORT}, -v, or eq view {shlex.quote(str(folder))}."
    out.view(fair_view(comparison, details))


def _write_demo_report(out: Output, comparison: FairComparison, folder: Path, config: StatsConfig) -> None:
    """Write the HTML report into the output folder."""
    from equipoise.domains.fair.report import fair_view
    from equipoise.report.publish import ReportOptions, chart_note, write_report
    from equipoise.runs.experiment_folder import RUNS, folder_names

    names = folder_names(comparison.keys)
    runs = [(spec, folder / RUNS / names[spec]) for spec in comparison.tunings]
    options = ReportOptions(config=config, view=fair_view(comparison), view_config=config)
    write_report(runs, folder / DEMO_REPORT, options)
    if chart_note():
        out.note(f"wrote {folder / DEMO_REPORT}{chart_note()}")
