"""``eq phenotypes``: the command group, options shared by its commands, and ``eq phenotypes index``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from equipoise.cli import options, output
from equipoise.cli.main import CommandEntry, LazyGroup, SuggestingGroup
from equipoise.cli.options import embedding_map, engine_options, executor_context
from equipoise.cli.output import Output, pass_output, suggestion
from equipoise.domains.phenotypes.defaults import DEFAULT_MODEL
from equipoise.errors import EquipoiseError, ParameterError

if TYPE_CHECKING:
    from equipoise.domains.phenotypes.index.build import BuiltIndex
    from equipoise.domains.phenotypes.index.files import IndexMetadata
    from equipoise.domains.phenotypes.index.retriever import TermRetriever
    from equipoise.domains.phenotypes.ontology import Ontology
    from equipoise.models.embedder import Embedder
    from equipoise.runs.executors import Executor
    from equipoise.runs.run_folder import StoredRun
    from equipoise.stats.comparison import Comparison

COMMANDS = {
    "index": CommandEntry("equipoise.domains.phenotypes.cli:index", "Build the index of all terms, once per model."),
    "query": CommandEntry("equipoise.domains.phenotypes.cli_query:query", "Retrieve the terms that match a text."),
    "benchmark": CommandEntry(
        "equipoise.domains.phenotypes.cli_benchmark:benchmark", "Evaluate and compare models on cases."
    ),
    "extract": CommandEntry(
        "equipoise.domains.phenotypes.cli_extraction:extract", "Extract terms with their assertion status."
    ),
    "extraction": CommandEntry(
        "equipoise.domains.phenotypes.cli_extraction:extraction", "Evaluate and tune extraction on documents."
    ),
    "similarity": CommandEntry(
        "equipoise.domains.phenotypes.cli_query:similarity", "Show the similarity of ontology terms."
    ),
}

PHENOTYPES_HELP = """
\b
  eq phenotypes query "seizures"
  eq phenotypes benchmark run --models minilm use

Retrieve the terms of an ontology (the Human Phenotype Ontology, or your own file) for clinical text, and
evaluate which model retrieves them best.
"""


@click.group(
    cls=LazyGroup, entries=COMMANDS, help=PHENOTYPES_HELP, short_help="Retrieve clinical terms, and evaluate it."
)
def phenotypes() -> None:
    """See ``PHENOTYPES_HELP``."""


ontology_option = click.option(
    "--ontology",
    default="hpo",
    show_default=True,
    metavar="NAME|FILE",
    help="hpo, or the path of an OBO or OBO-graph JSON file.",
)


def model_option(default: str) -> options.Decorator:
    """``--model`` with this default."""
    return options.model_option(
        aliases=("--model-name",), text="The model, such as minilm, tfidf, use or sum:use+tfidf.", default=default
    )


index_dir_option = click.option(
    "--index-dir",
    metavar="FOLDER",
    show_default="~/.local/share/equipoise/indexes",
    help="Folder of indexes.",
)

multi_vector_option = click.option(
    "--multi-vector/--single-vector",
    default=True,
    show_default=True,
    help="One vector for each label, synonym and definition, or one per term.",
)

strategy_option = click.option(
    "--aggregation-strategy", metavar="STRATEGY", help="How component scores are aggregated into the score of a term."
)


def _parse_weights(context: click.Context, parameter: click.Parameter, text: str | None) -> list[float] | None:
    if text is None:
        return None
    try:
        return [float(weight) for weight in text.split(",")]
    except ValueError:
        raise ParameterError(f"the weights are {text!r}", hint="write three numbers: --weights 0.5,0.3,0.2") from None


weights_option = click.option(
    "--weights",
    metavar="L,S,D",
    callback=_parse_weights,
    help="Weights of label, synonyms and definition, for all_weighted.  [default: 0.5,0.3,0.2]",
)


translate_option = click.option(
    "--translate/--no-translate",
    default=True,
    show_default=True,
    help="Also translate texts with German words into English, and search with the translation.",
)

translations_option = click.option(
    "--translations",
    cls=options.MultiValueOption,
    metavar="FILE ...",
    help="Tables of translated labels, such as hp-de.babelon.tsv hp-de.synonyms.tsv.",
)


annotations_option = click.option(
    "--annotations",
    metavar="hpo|FILE",
    help="Compute information content from annotation counts instead of the graph: hpo (the HPO disease annotations), "
    "a .hpoa file, or a table with hpo_id and count.",
)


def compare_options(metric_option: options.Decorator) -> options.Decorator:
    """The options of commands that compare stored runs."""
    return options.joined(
        click.argument("runs", nargs=-1, metavar="RUNS..."),
        metric_option,
        options.primary_option,
        options.stats_options(),
        options.fail_option,
        options.log_option,
        options.table_options(),
        options.output_options,
    )


def show_stored_comparison(
    out: Output, comparison: Comparison, stored: Sequence[StoredRun], fail_on: str | None
) -> int:
    """Show a comparison of stored runs; exit status 3 if a run is incomplete, otherwise that of the gate."""
    from equipoise.cli.compare import show_comparison

    show_comparison(out, comparison, list(stored))
    if any(run.caution for run in stored):
        return output.FAILED_UNITS
    return output.gate(out, comparison.findings, fail_on)


def check_strategy_applies(multi_vector: bool, strategy: str | None, weights: list[float] | None) -> None:
    """Raise an error for a strategy or weights without multi-vector terms."""
    if not (strategy is None and weights is None) and not multi_vector:
        raise ParameterError(
            "with one vector per term there is nothing to aggregate",
            hint="omit --single-vector, or omit --aggregation-strategy and --weights",
        )


INDEX_HELP = """
\b
  eq phenotypes index build
  eq phenotypes index list

Embed all terms of an ontology once per model, and store the vectors.
"""

BUILD_HELP = """
\b
  eq phenotypes index build
  eq phenotypes index build --engine ray --store pgvector:postgresql://me@host/terms

Embed all terms and store the vectors: one for each label, synonym and definition, or with --single-vector one
per term for all its texts together. The two kinds are stored separately. After a new release of the ontology, the
same command embeds only new and changed texts. Lexical systems need no index; for a fusion such as sum:use+tfidf,
only its dense models are indexed.

With --engine ray the texts are embedded on a cluster, with byte-identical vectors. With --store the vectors are
also written to a store, for eq phenotypes query --store: chroma:FOLDER, lancedb:FOLDER, duckdb:FILE, milvus:FILE,
pgvector:URL, qdrant:URL or redis://HOST. Credentials are read from PGPASSWORD, QDRANT_API_KEY and
REDIS_PASSWORD. After an interruption, the same command resumes.
"""

LIST_HELP = """
\b
  eq phenotypes index list
  eq phenotypes index list --index-dir indexes/ --json

List the indexes: model, ontology with its release, number of terms and vectors.
"""


@click.group(cls=SuggestingGroup, help=INDEX_HELP, short_help="Build the index of all terms, once per model.")
def index() -> None:
    """See ``INDEX_HELP``."""


@index.command(help=BUILD_HELP, short_help="Embed all terms and store the vectors.")
@model_option(DEFAULT_MODEL)
@multi_vector_option
@ontology_option
@index_dir_option
@click.option("--store", metavar="STORE", help="Also write the vectors to this store, such as duckdb:FILE.")
@options.threads_option
@options.model_device_option
@engine_options
@options.output_options
@pass_output
def build(
    out: Output,
    model: str | None,
    multi_vector: bool,
    ontology: str,
    index_dir: str | None,
    store: str | None,
    threads: int,
    device: str | None,
    engine: Executor,
) -> int:
    from equipoise.domains.phenotypes.index.build import resolve_index_dir
    from equipoise.domains.phenotypes.index.retriever import dense_model_specs
    from equipoise.domains.phenotypes.ontology import load_ontology
    from equipoise.models.stores import STORE_EXAMPLES
    from equipoise.models.stores.base import without_password

    if store is not None and (kind := store.partition(":")[0]) in ("memory", "faiss"):
        raise ParameterError(
            f"a {kind} store ends with this command",
            hint=f"{', '.join(STORE_EXAMPLES)} keep vectors; eq phenotypes query also takes faiss",
        )
    spec = model or DEFAULT_MODEL
    models = dense_model_specs(spec)
    if not models:
        raise ParameterError(
            f"{spec} is lexical and has no vectors to store",
            hint=f'it needs no index: eq phenotypes query "seizures" --model {spec}',
        )
    specs = options.models_on_device(models, device, out)
    with out.working(f"reading the ontology {ontology}"):
        terms = load_ontology(ontology)
    folder = resolve_index_dir(index_dir)
    with executor_context(engine, out, "a block of texts"):
        built = [
            _build(out, terms, dense_spec, folder, multi_vector, store, threads, engine)
            for dense_spec in specs.values()
        ]
    if out.json:
        records = [
            {
                "folder": str(one.index.folder),
                **asdict(one.index.meta),
                "report": asdict(one.report),
                "store": stored or None,
            }
            for one, stored in built
        ]
        out.data({"indexes": records, "citation": terms.citation})
        return output.DONE
    for one, stored in built:
        _show_built(out, one, stored)
    out.note(terms.citation)
    if store is not None and not out.quiet:
        address = without_password(store)
        words = ["eq", "phenotypes", "query", "seizures", "--model", models[0]]
        words += [] if multi_vector else ["--single-vector"]
        words += ["--ontology", ontology] if ontology != "hpo" else []
        words += ["--index-dir", index_dir] if index_dir else []
        out.text(suggestion([*words, "--store", address]))
        if address != store:
            out.note("the address is shown without its password; set PGPASSWORD or REDIS_PASSWORD")
    return output.DONE


@index.command("list", help=LIST_HELP, short_help="List the indexes.")
@index_dir_option
@options.table_options()
@options.output_options
@pass_output
def list_indexes(out: Output, index_dir: str | None) -> int:
    from equipoise.domains.phenotypes.index.build import resolve_index_dir
    from equipoise.domains.phenotypes.index.files import find_indexes

    folder = resolve_index_dir(index_dir)
    indexes = find_indexes(folder)
    readable = [(path, meta) for path, meta in indexes if not isinstance(meta, EquipoiseError)]
    errors = [error for _, error in indexes if isinstance(error, EquipoiseError)]
    if out.json:
        rows = [{"folder": str(path), **asdict(meta)} for path, meta in readable]
        out.data({"index_dir": str(folder), "indexes": rows, "damaged": [error.message for error in errors]})
        return output.DONE
    if readable:
        out.show(_table(readable))
    for error in errors:
        out.note(error.render())
    if not indexes:
        out.note(f"there are no indexes in {folder}; eq phenotypes index build makes one")
    return output.DONE


def _build(
    out: Output,
    terms: Ontology,
    spec: str,
    folder: Path,
    multi_vector: bool,
    store: str | None,
    threads: int,
    engine: Executor,
) -> tuple[BuiltIndex, dict[str, Any]]:
    """The index, and where a store is given, the number of its vectors and how many were sent now."""
    from equipoise.domains.phenotypes.index.build import build_index_with_report
    from equipoise.domains.phenotypes.index.files import term_texts
    from equipoise.domains.phenotypes.query import check_store, fill_store
    from equipoise.models.dense import DenseRetriever, store_label
    from equipoise.models.retriever import retriever

    with out.working(f"loading {spec}"):
        system = retriever(spec, threads=threads)
    assert isinstance(system, DenseRetriever)
    texts = term_texts(terms, multi_vector)
    with system.embedder as model:
        if store is not None:
            check_store(texts, system, store)
        with out.count(f"embedding with {model.card.name}", len(texts)) as count:
            built = build_index_with_report(
                terms,
                model,
                folder,
                multi_vector=multi_vector,
                progress=count,
                executor=embedding_map(engine, cores=threads),
            )
        if store is None:
            return built, {}
        with out.count("filling the store", len(texts)) as count:
            filled = fill_store(built.index, system, store, count)
        filled.store.close()
    collection, sent = filled.store.collection, filled.sent
    return built, {"store": store_label(store), "collection": collection, "vectors": len(texts), "sent": sent}


def _show_built(out: Output, built: BuiltIndex, stored: dict[str, Any]) -> None:
    from equipoise.checks.base import pluralize

    meta, report = built.index.meta, built.report
    out.text(
        f"{built.index.folder}: {meta.components:,} vectors of {meta.dims:,} dimensions "
        f"for {meta.terms:,} terms by {meta.model_name} ({meta.kind})"
    )
    if report.reused == report.texts:
        out.text("the index was up to date, and nothing was embedded")
    else:
        parts = ((report.embedded, "embedded"), (report.from_cache, "from the cache"), (report.reused, "reused"))
        counts = ", ".join(f"{pluralize(number, 'distinct text')} {what}" for number, what in parts if number)
        out.text(f"{counts} in {report.seconds:.1f} s")
    if stored:
        sent = f"{stored['sent']:,} sent now" if stored["sent"] else "all of them were already stored"
        out.text(f"{stored['store']}: {pluralize(stored['vectors'], 'vector')}, {sent}")
        if out.verbose:
            out.text(f"the collection there is called {stored['collection']}")


def _table(indexes: list[tuple[Path, IndexMetadata]]) -> Any:
    from equipoise.report.terminal import ReportColumn, TerminalTable

    metas = [meta for _, meta in indexes]
    return TerminalTable(
        [
            ReportColumn("model", [meta.model_spec for meta in metas], shortens="middle"),
            ReportColumn("ontology", [meta.ontology_name for meta in metas], shortens="end"),
            ReportColumn("release", [meta.release for meta in metas]),
            ReportColumn("kind", [meta.kind for meta in metas]),
            ReportColumn("terms", [f"{meta.terms:,}" for meta in metas], right=True),
            ReportColumn("vectors", [f"{meta.components:,}" for meta in metas], right=True),
            ReportColumn("dims", [f"{meta.dims:,}" for meta in metas], right=True, rank=1),
            ReportColumn("folder", [path.name for path, _ in indexes], rank=2, shortens="middle", extra=True),
        ]
    )


def open_with_progress(
    out: Output, spec: str, terms: Ontology, threads: int, device: str | None, **settings: Any
) -> TermRetriever:
    """``open_term_retriever`` for the model of a command, with progress."""
    from equipoise.domains.phenotypes.query import open_term_retriever
    from equipoise.models.retriever import retriever

    with out.working(f"loading {spec}"):
        system = retriever(options.models_on_device([spec], device, out)[spec], threads=threads)

    @contextmanager
    def progress(model: Embedder, n_texts: int) -> Iterator[Callable[[int, int], None]]:
        with out.count(f"building the index of {model.card.name}", n_texts) as count:
            yield count
        out.note(f"{model.card.name} had no index; it was built and stored")

    return open_term_retriever(system, terms, progress=progress, **settings)
