"""``eq phenotypes index``: the vectors of all terms, made once a model and kept."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from equipoise.cli import options, output
from equipoise.cli.app import CommandEntry, LazyGroup, SuggestingGroup
from equipoise.cli.options import embedding_map, engine_options, executor_context
from equipoise.cli.output import Output, pass_output, progress_bar, suggestion
from equipoise.errors import ParameterError

if TYPE_CHECKING:
    from equipoise.domains.phenotypes.index.build import BuildReport, BuiltIndex
    from equipoise.domains.phenotypes.index.files import IndexMetadata, TermIndex
    from equipoise.domains.phenotypes.ontology.ontology import Ontology
    from equipoise.models.retriever import Retriever
    from equipoise.runs.executors import Executor

# ``eq phenotypes``: clinical terms indexed, found and compared.

COMMANDS = {
    "index": CommandEntry("equipoise.domains.phenotypes.cli:index", "Build the index of all terms, once a model."),
    "query": CommandEntry("equipoise.domains.phenotypes.cli_query:query", "Find the terms that a text speaks of."),
    "benchmark": CommandEntry(
        "equipoise.domains.phenotypes.cli_benchmark:benchmark", "Measure and compare models on cases."
    ),
    "extract": CommandEntry(
        "equipoise.domains.phenotypes.cli_extraction:extract", "Find the terms of a note, and who has them."
    ),
    "extraction": CommandEntry(
        "equipoise.domains.phenotypes.cli_extraction:extraction", "Measure and tune extraction on documents."
    ),
    "similarity": CommandEntry("equipoise.domains.phenotypes.cli_query:similarity", "How alike two terms are."),
}

GROUP_HELP = """
\b
  eq phenotypes query "seizures" --multi-vector
  eq phenotypes benchmark run --model-name minilm --model-name use --multi-vector

Find the terms of an ontology (the Human Phenotype Ontology, or a file of your own) that a text speaks of,
and measure which model finds them best.
"""


@click.group(cls=LazyGroup, entries=COMMANDS, help=GROUP_HELP, short_help="Find clinical terms, and measure it.")
def phenotypes() -> None:
    """See ``GROUP_HELP``."""


# Options that the commands of ``eq phenotypes`` share: the ontology, the model, and where indexes lie.

ontology_option = click.option(
    "--ontology",
    default="hpo",
    show_default=True,
    metavar="NAME|FILE",
    help="hpo, or the path of an OBO or OBO-graph JSON file.",
)

model_option = click.option(
    "--model",
    "--model-name",
    "model",
    metavar="MODEL",
    help="The model, such as use, tfidf: or sum:use+tfidf:.",
)

index_dir_option = click.option(
    "--index-dir", metavar="FOLDER", help="Where indexes lie; by default in your data folder."
)

multi_vector_option = click.option(
    "--multi-vector",
    is_flag=True,
    help="A vector for each label, synonym and definition, instead of one a term.",
)

threads_option = click.option(
    "--threads", type=click.IntRange(min=1), default=1, show_default=True, help="Threads of the model."
)


strategy_option = click.option(
    "--aggregation-strategy", metavar="STRATEGY", help="How a term's components make its score."
)

weights_option = click.option("--weights", metavar="L,S,D", help="Of label, synonyms and definition, for all_weighted.")


def parse_weights(text: str | None) -> list[float] | None:
    """The three weights as numbers.

    >>> parse_weights("0.5,0.3,0.2")
    [0.5, 0.3, 0.2]
    """
    if text is None:
        return None
    try:
        return [float(each) for each in text.split(",")]
    except ValueError:
        raise ParameterError(f"the weights are {text!r}", hint="write three numbers: --weights 0.5,0.3,0.2") from None


def check_strategy_applies(multi_vector: bool, strategy: str | None, weights: str | None) -> None:
    """A strategy or weights that nothing would read."""
    if not (strategy is None and weights is None) and not multi_vector:
        raise ParameterError(
            "one vector a term leaves nothing to aggregate",
            hint="add --multi-vector, or leave the strategy out",
        )


def index_folder(index_dir: str | None) -> Path:
    """The folder of the indexes: the one that was given, or the usual one."""
    from equipoise.domains.phenotypes.index.build import default_index_folder

    return Path(index_dir).expanduser() if index_dir else default_index_folder()


HELP = """
\b
  eq phenotypes index build --multi-vector
  eq phenotypes index list

Embed all terms of an ontology once a model, and keep the vectors.
"""

BUILD_HELP = """
\b
  eq phenotypes index build --multi-vector
  eq phenotypes index build --engine ray --store pgvector:postgresql://me@host/terms

Embed all terms and keep the vectors: one a term, of its label, synonyms and definition together, or with
--multi-vector one for each of them. Both kinds stand side by side. The same command after a new release of
the ontology embeds only new and changed texts. Systems that score words need no index; of a fusion, such
as sum:use+tfidf:, the parts that embed get one. An index is put in its place when it is whole.

With --engine ray the texts are embedded on a cluster, with the same bytes. With --store the vectors are also
put into a database: chroma:FOLDER, pgvector:URL or qdrant:URL, which eq phenotypes query --store then asks.
PGPASSWORD and QDRANT_API_KEY may hold what nobody should read. Whatever dies meanwhile, what is embedded and
what is stored stays, and the same command goes on.
"""

LIST_HELP = """
\b
  eq phenotypes index list
  eq phenotypes index list --index-dir indexes/ --json

List the indexes: model, ontology with its release, how many terms and vectors.
"""


@click.group(cls=SuggestingGroup, help=HELP, short_help="Build the index of all terms, once a model.")
def index() -> None:
    """See ``HELP``."""


@index.command(help=BUILD_HELP, short_help="Embed all terms and keep the vectors.")
@click.option("--model-name", metavar="MODEL", help="The model; by default the one of eq phenotypes query.")
@multi_vector_option
@ontology_option
@index_dir_option
@click.option("--store", metavar="STORE", help="Also put the vectors into a store, such as chroma:FOLDER.")
@threads_option
@engine_options
@options.output_options
@pass_output
def build(
    out: Output,
    model_name: str | None,
    multi_vector: bool,
    ontology: str,
    index_dir: str | None,
    store: str | None,
    threads: int,
    engine: Executor,
) -> int:
    """See ``BUILD_HELP``."""
    from equipoise.domains.phenotypes.config import DEFAULT_MODEL
    from equipoise.domains.phenotypes.index.retriever import dense_model_specs
    from equipoise.domains.phenotypes.ontology.ontology import load_ontology

    _refuse_fleeting(store)
    spec = model_name or DEFAULT_MODEL
    models = dense_model_specs(spec)
    if not models:
        raise ParameterError(
            f"{spec} scores words and has no vectors to keep",
            hint=f'it needs no index: eq phenotypes query "seizures" --model-name {spec}',
        )
    terms = load_ontology(ontology)
    place = _IndexTarget(index_folder(index_dir), multi_vector, store)
    with executor_context(engine, out, "a block of texts"):
        built = [_build(out, terms, model, place, threads, engine) for model in models]
    if out.json:
        out.data({"indexes": [_facts(*each) for each in built], "citation": terms.citation})
        return output.DONE
    for each, stored in built:
        _say(out, each, stored)
    out.note(terms.citation)
    if store is not None and not out.quiet:
        words = _question(models[0], place, ontology, index_dir)
        out.text(suggestion(words))
        if words[-1] != store:
            out.note("the address stands there without its password; PGPASSWORD may hold it")
    return output.DONE


@index.command("list", help=LIST_HELP, short_help="List the indexes.")
@index_dir_option
@options.output_options
@pass_output
def list_indexes(out: Output, index_dir: str | None) -> int:
    """See ``LIST_HELP``."""
    from equipoise.domains.phenotypes.index.files import find_indexes
    from equipoise.errors import EquipoiseError

    folder = index_folder(index_dir)
    found = find_indexes(folder)
    sound = [(path, meta) for path, meta in found if not isinstance(meta, EquipoiseError)]
    broken = [error for _, error in found if isinstance(error, EquipoiseError)]
    if out.json:
        rows = [{"folder": str(path), **asdict(meta)} for path, meta in sound]
        out.data({"index_dir": str(folder), "indexes": rows, "damaged": [each.message for each in broken]})
        return output.DONE
    if sound:
        out.show(_table(sound))
    for error in broken:
        out.note(error.render())
    if not found:
        out.note(f"there are no indexes in {folder}; eq phenotypes index build makes one")
    return output.DONE


@dataclass(frozen=True)
class _IndexTarget:
    """Where the vectors go, and how many a term has."""

    folder: Path
    multi: bool
    store: str | None


@dataclass(frozen=True)
class _StoreReport:
    """What a store holds of an index, and how much of it was sent now."""

    store: str
    collection: str
    vectors: int
    sent: int


def _build(
    out: Output, terms: Ontology, spec: str, place: _IndexTarget, threads: int, engine: Executor
) -> tuple[BuiltIndex, _StoreReport | None]:
    from equipoise.domains.phenotypes.index.build import build_index_with_report
    from equipoise.domains.phenotypes.index.term_texts import term_texts
    from equipoise.domains.phenotypes.index.vector_store import check_store, fill_store
    from equipoise.models.dense import DenseRetriever, store_label
    from equipoise.models.retriever import retriever

    system = retriever(spec, threads=threads)
    assert isinstance(system, DenseRetriever)
    texts = term_texts(terms, place.multi)
    with system.embedder as model:
        if place.store is not None:
            check_store(texts, system, place.store)
        with progress_bar(out, f"embedding with {model.card.name}", len(texts)) as count:
            built = build_index_with_report(
                terms,
                model,
                place.folder,
                multi=place.multi,
                progress=lambda done, total: count(done),
                over=embedding_map(engine, cores=threads),
            )
        if place.store is None:
            return built, None
        with progress_bar(out, "filling the store", len(texts)) as count:
            held = fill_store(built.index, system, place.store, count)
        held.store.close()
    return built, _StoreReport(store_label(place.store), held.store.collection, len(texts), held.sent)


def _refuse_fleeting(store: str | None) -> None:
    """A store that lives in this process would be gone when the command ends."""
    if store is not None and store.partition(":")[0] in ("memory", "faiss"):
        raise ParameterError(
            f"a {store.partition(':')[0]} store ends with this command",
            hint="chroma:FOLDER, pgvector: and qdrant: keep vectors; eq phenotypes query also takes faiss",
        )


def _question(model: str, place: _IndexTarget, ontology: str, index_dir: str | None) -> list[str]:
    """The command that asks the store, with what this one was told and without a password."""
    from equipoise.models.stores.base import without_password

    words = ["eq", "phenotypes", "query", "seizures", "--model-name", model]
    words += ["--multi-vector"] if place.multi else []
    words += ["--ontology", ontology] if ontology != "hpo" else []
    words += ["--index-dir", index_dir] if index_dir else []
    return [*words, "--store", without_password(str(place.store))]


def _say(out: Output, built: BuiltIndex, stored: _StoreReport | None) -> None:
    from equipoise.checks.base import pluralize

    meta, report = built.index.meta, built.report
    out.text(
        f"{built.index.folder}: {meta.components:,} vectors of {meta.dims:,} dimensions "
        f"for {meta.terms:,} terms by {meta.model_name} ({meta.kind})"
    )
    out.text(_work(report))
    if stored is not None:
        sent = f"{stored.sent:,} sent now" if stored.sent else "all there already"
        out.text(f"{stored.store}: {pluralize(stored.vectors, 'vector')}, {sent}")
        if out.verbose:
            out.text(f"the collection there is called {stored.collection}")


def _work(report: BuildReport) -> str:
    """How much was embedded, and how long that took."""
    from equipoise.checks.base import pluralize

    if report.kept == report.texts:
        return "all texts were there already, and nothing was embedded"
    parts = ((report.embedded, "embedded"), (report.from_cache, "from the cache"), (report.kept, "kept"))
    said = ", ".join(f"{pluralize(number, 'text')} {what}" for number, what in parts if number)
    share = report.embedding_seconds / report.seconds
    return f"{said} in {report.seconds:.1f} s, {share:.0%} of it in the embedder"


def _facts(built: BuiltIndex, stored: _StoreReport | None) -> dict[str, Any]:
    return {
        "folder": str(built.index.folder),
        **asdict(built.index.meta),
        "report": asdict(built.report),
        "store": None if stored is None else asdict(stored),
    }


def _table(found: list[tuple[Path, IndexMetadata]]) -> Any:
    from equipoise.report.terminal import ReportColumn, TerminalTable

    metas = [meta for _, meta in found]
    return TerminalTable(
        [
            ReportColumn("model", [meta.model_spec for meta in metas], shortens="middle"),
            ReportColumn("ontology", [meta.ontology_name for meta in metas], shortens="end"),
            ReportColumn("release", [meta.release for meta in metas]),
            ReportColumn("kind", [meta.kind for meta in metas]),
            ReportColumn("terms", [f"{meta.terms:,}" for meta in metas], right=True),
            ReportColumn("vectors", [f"{meta.components:,}" for meta in metas], right=True),
            ReportColumn("dims", [f"{meta.dims:,}" for meta in metas], right=True, rank=1),
            ReportColumn("folder", [path.name for path, _ in found], rank=2, shortens="middle", extra=True),
        ]
    )


# The stored vectors that a model needs, or how to make them.

UNINDEXED_KINDS = ("hash", "static", "vectors")
"""Kinds of models that embed all terms in seconds, so that no index need be built before."""


def open_or_build_indexes(
    out: Output, system: Retriever, index_dir: str | None, terms: Ontology, multi: bool
) -> tuple[TermIndex, ...]:
    """The indexes of the models; one that is absent is built once and kept, except for quick models."""
    from equipoise.domains.phenotypes.index.build import build_index, missing_indexes, open_index
    from equipoise.domains.phenotypes.index.retriever import dense_models
    from equipoise.domains.phenotypes.index.term_texts import term_texts

    folder = index_folder(index_dir)
    missing = missing_indexes(folder, terms, system, multi)
    for model in missing:
        if model.spec.kind not in UNINDEXED_KINDS:
            what = f"embedding all terms with {model.card.name}, once"
            with progress_bar(out, what, len(term_texts(terms, multi))) as count:
                build_index(terms, model, folder, multi=multi, progress=lambda done, total: count(done))
            out.note(f"{model.card.name} had no index; it was built, and the next question finds it there")
    absent = [model for model in missing if model.spec.kind in UNINDEXED_KINDS]
    models = [model for model in dense_models(system) if model not in absent]
    return tuple(open_index(folder, terms, model, multi) for model in models)
