"""``eq phenotypes index``: the vectors of all terms, made once a model and kept."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from equipoise.cli import exits, options
from equipoise.cli.engines import engine_options, running, spread_over
from equipoise.cli.lazy import SuggestingGroup
from equipoise.cli.output import Output, pass_output
from equipoise.cli.phenotypes.choices import (
    folder_of,
    index_dir_option,
    multi_vector_option,
    ontology_option,
    threads_option,
)
from equipoise.cli.progress import counting
from equipoise.cli.suggest import suggestion
from equipoise.errors import ParameterError

if TYPE_CHECKING:
    from equipoise.ontology.index.build import BuildReport, Built
    from equipoise.ontology.index.store import Meta
    from equipoise.ontology.ontology import Ontology
    from equipoise.run.engines.base import Engine

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
    engine: Engine,
) -> int:
    """See ``BUILD_HELP``."""
    from equipoise.ontology.index.fitting import dense_parts
    from equipoise.ontology.load import load_ontology
    from equipoise.recipes.phenotypes.settings import DEFAULT_MODEL

    _refuse_fleeting(store)
    spec = model_name or DEFAULT_MODEL
    models = dense_parts(spec)
    if not models:
        raise ParameterError(
            f"{spec} scores words and has no vectors to keep",
            hint=f'it needs no index: eq phenotypes query "seizures" --model-name {spec}',
        )
    terms = load_ontology(ontology)
    place = _Place(folder_of(index_dir), multi_vector, store)
    with running(engine, out, "a block of texts"):
        built = [_build(out, terms, model, place, threads, engine) for model in models]
    if out.json:
        out.data({"indexes": [_facts(*each) for each in built], "citation": terms.citation})
        return exits.DONE
    for each, stored in built:
        _say(out, each, stored)
    out.note(terms.citation)
    if store is not None and not out.quiet:
        words = _question(models[0], place, ontology, index_dir)
        out.text(suggestion(words))
        if words[-1] != store:
            out.note("the address stands there without its password; PGPASSWORD may hold it")
    return exits.DONE


@index.command("list", help=LIST_HELP, short_help="List the indexes.")
@index_dir_option
@options.output_options
@pass_output
def list_(out: Output, index_dir: str | None) -> int:
    """See ``LIST_HELP``."""
    from equipoise.errors import EquipoiseError
    from equipoise.ontology.index.store import find_indexes

    folder = folder_of(index_dir)
    found = find_indexes(folder)
    sound = [(path, meta) for path, meta in found if not isinstance(meta, EquipoiseError)]
    broken = [error for _, error in found if isinstance(error, EquipoiseError)]
    if out.json:
        rows = [{"folder": str(path), **asdict(meta)} for path, meta in sound]
        out.data({"index_dir": str(folder), "indexes": rows, "damaged": [each.sentence for each in broken]})
        return exits.DONE
    if sound:
        out.show(_table(sound))
    for error in broken:
        out.note(error.render())
    if not found:
        out.note(f"there are no indexes in {folder}; eq phenotypes index build makes one")
    return exits.DONE


@dataclass(frozen=True)
class _Place:
    """Where the vectors go, and how many a term has."""

    folder: Path
    multi: bool
    store: str | None


@dataclass(frozen=True)
class _Stored:
    """What a store holds of an index, and how much of it was sent now."""

    store: str
    collection: str
    vectors: int
    sent: int


def _build(
    out: Output, terms: Ontology, spec: str, place: _Place, threads: int, engine: Engine
) -> tuple[Built, _Stored | None]:
    from equipoise.embed.dense import DenseRetriever
    from equipoise.embed.indexed import described
    from equipoise.embed.retriever import retriever
    from equipoise.ontology.index.build import build_report
    from equipoise.ontology.index.candidates import put_into_store, refuse_absent_store
    from equipoise.ontology.index.components import components

    system = retriever(spec, threads=threads)
    assert isinstance(system, DenseRetriever)
    texts = components(terms, place.multi)
    with system.embedder as model:
        if place.store is not None:
            refuse_absent_store(texts, system, place.store)
        with counting(out, f"embedding with {model.card.name}", len(texts)) as count:
            built = build_report(
                terms,
                model,
                place.folder,
                multi=place.multi,
                progress=lambda done, total: count(done),
                over=spread_over(engine, cores=threads),
            )
        if place.store is None:
            return built, None
        with counting(out, "filling the store", len(texts)) as count:
            held = put_into_store(built.index, system, place.store, count)
        held.store.close()
    return built, _Stored(described(place.store), held.store.collection, len(texts), held.sent)


def _refuse_fleeting(store: str | None) -> None:
    """A store that lives in this process would be gone when the command ends."""
    if store is not None and store.partition(":")[0] in ("memory", "faiss"):
        raise ParameterError(
            f"a {store.partition(':')[0]} store ends with this command",
            hint="chroma:FOLDER, pgvector: and qdrant: keep vectors; eq phenotypes query also takes faiss",
        )


def _question(model: str, place: _Place, ontology: str, index_dir: str | None) -> list[str]:
    """The command that asks the store, with what this one was told and without a password."""
    from equipoise.embed.stores.shown import without_password

    words = ["eq", "phenotypes", "query", "seizures", "--model-name", model]
    words += ["--multi-vector"] if place.multi else []
    words += ["--ontology", ontology] if ontology != "hpo" else []
    words += ["--index-dir", index_dir] if index_dir else []
    return [*words, "--store", without_password(str(place.store))]


def _say(out: Output, built: Built, stored: _Stored | None) -> None:
    from equipoise.checks.base import counted

    meta, report = built.index.meta, built.report
    out.text(
        f"{built.index.folder}: {meta.components:,} vectors of {meta.dims:,} dimensions "
        f"for {meta.terms:,} terms by {meta.model_name} ({meta.kind})"
    )
    out.text(_work(report))
    if stored is not None:
        sent = f"{stored.sent:,} sent now" if stored.sent else "all there already"
        out.text(f"{stored.store}: {counted(stored.vectors, 'vector')}, {sent}")
        if out.verbose:
            out.text(f"the collection there is called {stored.collection}")


def _work(report: BuildReport) -> str:
    """How much was embedded, and how long that took."""
    from equipoise.checks.base import counted

    if report.kept == report.texts:
        return "all texts were there already, and nothing was embedded"
    parts = ((report.embedded, "embedded"), (report.from_cache, "from the cache"), (report.kept, "kept"))
    said = ", ".join(f"{counted(number, 'text')} {what}" for number, what in parts if number)
    share = report.embedding_seconds / report.seconds
    return f"{said} in {report.seconds:.1f} s, {share:.0%} of it in the embedder"


def _facts(built: Built, stored: _Stored | None) -> dict[str, Any]:
    return {
        "folder": str(built.index.folder),
        **asdict(built.index.meta),
        "report": asdict(built.report),
        "store": None if stored is None else asdict(stored),
    }


def _table(found: list[tuple[Path, Meta]]) -> Any:
    from equipoise.report.table import Column, FittedTable

    metas = [meta for _, meta in found]
    return FittedTable(
        [
            Column("model", [meta.model_spec for meta in metas], shortens="middle"),
            Column("ontology", [meta.ontology_name for meta in metas], shortens="end"),
            Column("release", [meta.release for meta in metas]),
            Column("kind", [meta.kind for meta in metas]),
            Column("terms", [f"{meta.terms:,}" for meta in metas], right=True),
            Column("vectors", [f"{meta.components:,}" for meta in metas], right=True),
            Column("dims", [f"{meta.dims:,}" for meta in metas], right=True, rank=1),
            Column("folder", [path.name for path, _ in found], rank=2, shortens="middle", extra=True),
        ]
    )
