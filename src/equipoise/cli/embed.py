"""``eq embed``: embed the texts of a file, and write the vectors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, nullcontext
from dataclasses import asdict
from itertools import tee
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from equipoise.checks.base import pluralize, run_checks
from equipoise.cli import options
from equipoise.cli import output as exits
from equipoise.cli.output import Output, pass_output
from equipoise.errors import ParameterError
from equipoise.io.texts_to_embed import TextSource, read_texts

if TYPE_CHECKING:
    from equipoise.models.backends.hosted import ApiUsage
    from equipoise.models.corpus import CorpusStats
    from equipoise.models.embedder import Embedder
    from equipoise.models.vector_cache import VectorCache

HELP = """
\b
  eq embed texts.txt --model minilm -o vectors.npz
  eq embed corpus.jsonl --model openai:text-embedding-3-small -o vectors.npz

Embed the texts of a file: one text per line, or a column of a JSONL, JSON, CSV, TSV or parquet
file; "-" is standard input. Rows with "_id", "title" and "text" are embedded with their titles.
The output is an .npy file or an .npz file. An .npz file can be used as a model (vectors:FILE): it
holds "vectors", "ids" if the texts have ids, and "texts" if they are unique and take at most
256 MiB. Vectors are cached: repeating the command embeds nothing, and after an interruption it
resumes. eq ls models lists the models.
"""


def roles() -> list[str]:
    """The roles of a text: query or document."""
    from equipoise.models.encoder import Role

    return list(Role)


@options.command(help=HELP, short_help="Embed the texts of a file.")
@click.argument("texts", metavar="FILE")
@options.model_option(required=True)
@click.option("-o", "--output", required=True, metavar="FILE", help="The file to write: .npz or .npy.")
@click.option(
    "--role",
    type=options.ChoiceWithHint("role", roles),
    default="document",
    show_default=True,
    help="The role of the texts, which selects the model's prompt.",
)
@click.option(
    "--column",
    metavar="NAME",
    help="The column with the texts.  [default: detected by common names, such as text]",
)
@click.option("--id-column", metavar="NAME", help="The column with the ids of the texts.")
@click.option("--skip-blank", is_flag=True, help="Skip blank texts.")
@click.option("--threads", type=click.IntRange(min=1), default=1, show_default=True, help="Threads per process.")
@click.option("--processes", type=click.IntRange(min=1), default=1, show_default=True, help="Number of processes.")
@options.model_device_option
@click.option("--no-cache", is_flag=True, help="Do not use the cache.")
@options.output_options
@pass_output
def embed(
    out: Output,
    texts: str,
    model: str,
    output: str,
    role: str,
    column: str | None,
    id_column: str | None,
    skip_blank: bool,
    threads: int,
    processes: int,
    device: str | None,
    no_cache: bool,
) -> int:
    """See ``HELP``."""
    from equipoise.models.corpus import SUFFIXES, embed_to_file
    from equipoise.models.embedder import embedder
    from equipoise.models.vector_cache import VectorCache, is_disabled

    if Path(output).suffix.casefold() not in SUFFIXES:
        raise ParameterError(f"{output} has an unknown file extension", hint=f"use {' or '.join(SUFFIXES)}")
    source = read_texts(texts, column=column, id_column=id_column, skip_blank=skip_blank)
    cache = None if no_cache or is_disabled() else VectorCache()
    more = {"processes": processes} if processes > 1 else {}
    spec = options.models_on_device([model], device, out)[model]
    with closing(cache) if cache is not None else nullcontext(), ExitStack() as models:
        with out.working(f"loading {model}"):
            loaded = models.enter_context(embedder(spec, cache=cache or False, threads=threads, **more))
        with _resumable(out), out.count(f"embedding with {loaded.card.name}", source.count) as count:
            first, second = tee(source.items())
            report = embed_to_file(
                (item.text for item in first),
                loaded,
                output,
                role=role,
                ids=(item.id for item in second) if source.has_ids else None,
                total=source.count,
                progress=count,
            )
        _show(out, report, source, loaded, cache)
    return exits.DONE


@contextmanager
def _resumable(out: Output) -> Iterator[None]:
    """After an interrupt, say that the command can be resumed."""
    try:
        yield
    except KeyboardInterrupt:
        if not out.json:
            out.note("finished vectors are cached: repeat the command to resume")
        raise


def _show(out: Output, report: CorpusStats, source: TextSource, model: Embedder, cache: VectorCache | None) -> None:
    from equipoise.checks.models import TruncationStats
    from equipoise.report.terminal import findings_section

    usage: ApiUsage | None = getattr(model.encoder, "usage", None)
    window = TruncationStats(model.card.name, model.card.max_tokens, report.texts, report.truncated, report.lost_tokens)
    findings = (run_checks(cache) if cache is not None else ()) + run_checks(window)
    if out.json:
        out.data(
            {
                "written": str(report.path),
                **{name: value for name, value in asdict(report).items() if name != "path"},
                "card": model.card.to_dict(),
                "fingerprint": model.fingerprint,
                "usage": None if usage is None else {**asdict(usage), "cost": usage.cost},
                "findings": [asdict(finding) for finding in findings],
            }
        )
        return
    if not out.quiet:
        for line in _lines(report, source, model, usage):
            out.text(line)
        out.show(*findings_section(findings, verbose=out.verbose))


def _lines(report: CorpusStats, source: TextSource, model: Embedder, usage: Any) -> list[str]:
    """The lines of the report."""
    rate = report.embedded / report.seconds if report.seconds else 0.0
    name = f"{model.card.name} on {model.card.device}" if model.card.device else model.card.name
    lines = [
        f"wrote {report.path}: {pluralize(report.texts, 'vector')} of {report.dims:,} dimensions (model: {name})",
        f"{report} in {report.seconds:.1f} s{f' ({rate:,.0f} texts per second)' if report.embedded else ''}",
    ]
    if source.blank:
        lines.append(f"skipped {pluralize(source.blank, 'blank text')}")
    if usage is not None and usage.requests:
        cost = "" if usage.cost is None else f", cost {usage.cost:.4f}"
        cut = f", {pluralize(usage.cut, 'text')} truncated" if usage.cut else ""
        lines.append(f"{pluralize(usage.requests, 'request')}, {usage.tokens:,} tokens{cost}{cut}")
    return lines
