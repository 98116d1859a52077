"""``eq phenotypes extraction run``: one model and configuration on annotated documents."""

from __future__ import annotations

from typing import Any

import click

from equipoise.cli import options
from equipoise.cli.output import Output, pass_output
from equipoise.cli.phenotypes.benchmark.asked import ModelName
from equipoise.cli.phenotypes.extraction.asked import Asked, asking, ended, measures

HELP = """
\b
  eq phenotypes extraction run notes --model tfidf: -o results/default
  eq phenotypes extraction run corpus/ --dataset GeneReviews --top-term-only -o results/top_term

Extract terms from annotated documents and score them at the document. DIR holds annotations/*.json
(doc_id, full_text, annotations with hpo_id, assertion_status and evidence_spans), or datasets that do; a
flat JSON or JSONL file of such documents will do, and "notes" are short samples of our own, in English and
German. All averages (micro, macro, weighted) and modes (with assertions, affirmed only, id only) are
measured; --averaging and --include-assertions say which of them lead. A file that cannot be read is named
and left out, and the run is partial (exit 3).

Ten terms of each chunk count from 0.7 on; eq phenotypes extract takes the best one from 0.5 on, which
--chunk-threshold 0.5 --top-term-only measures here.
"""

averages = options.names_in("equipoise.metrics.sets", "AVERAGES")


@click.command(help=HELP, short_help="Measure extraction on documents.")
@click.argument("source", metavar="DIR")
@click.option(
    "--model",
    "--model-name",
    "model",
    type=ModelName(),
    metavar="MODEL",
    help="The model, such as use, tfidf: or sum:a+b.",
)
@click.option("--num-results", type=int, help="How many terms of each chunk are looked at.  [default: 10]")
@click.option("--chunk-threshold", type=float, help="The least score of a term in a chunk.  [default: 0.7]")
@click.option(
    "--min-confidence", type=float, help="The least mean score of a term in a document.  [default: 0]"
)
@click.option("--top-term-only", is_flag=True, default=None, help="Only the best term of each chunk counts.")
@options.one_of("--averaging", "averaging", averages, "micro", "How documents are put together.")
@options.one_of("--similarity", "similarity", measures, "lin", "What a near miss earns in soft scores.")
@click.option("--tuned", metavar="FILE", help="Take the parameters that a tuning chose (its folder or file).")
@click.option("--trust", is_flag=True, help="Let the model that --tuned names run code or use credentials.")
@asking
@options.output_options
@pass_output
def run(
    out: Output,
    source: str,
    model: str | None,
    averaging: str,
    similarity: str,
    tuned: str | None,
    trust: bool,
    num_results: int | None,
    chunk_threshold: float | None,
    min_confidence: float | None,
    top_term_only: bool | None,
    asked: Asked,
) -> int:
    """See ``HELP``."""
    from equipoise.errors import ParameterError
    from equipoise.recipes.phenotypes.extraction.run import run_extraction
    from equipoise.recipes.phenotypes.extraction.tuned import read_tuned
    from equipoise.recipes.phenotypes.settings import DEFAULT_MODEL
    from equipoise.report.extraction import extraction_report

    given: dict[str, Any] = {
        "num_results": num_results,
        "chunk_threshold": chunk_threshold,
        "min_confidence": min_confidence,
        "top_term_only": top_term_only,
    }
    own = {name: value for name, value in given.items() if value is not None}
    chosen = None if tuned is None else read_tuned(tuned, model, trust=trust)
    if chosen is not None and own:
        raise ParameterError(
            f"{next(iter(own))} is given beside --tuned, which brings its own", hint="leave one of them out"
        )
    with out.progress(3) as step:
        found = run_extraction(
            source,
            model or (DEFAULT_MODEL if chosen is None else chosen.model),
            asked.ontology,
            dataset=asked.dataset,
            tuned=chosen,
            output=asked.output,
            progress=step,
            command=out.command,
            averaging=averaging,
            measure=similarity,
            **own,
            **asked.settings,
        )
    if out.json:
        out.data(found.to_dict())
    else:
        out.show(*extraction_report(found.edition, verbose=out.verbose, quiet=out.quiet))
    if chosen is None and not own:
        from equipoise.tasks.extract.settings import FOR_NOTES

        out.note(f"eq phenotypes extract has other defaults, which {FOR_NOTES.flags} measures")
    if asked.output is not None:
        from equipoise.recipes.phenotypes.extraction.store import RESULTS

        out.note(f"wrote {asked.output.rstrip('/')}/{RESULTS}")
    return ended(out, found.gold, found.findings, asked.fail_on)
