"""``eq cache``: size, pruning and path of the vector cache."""

from __future__ import annotations

from dataclasses import asdict

import click

from equipoise.cli import options
from equipoise.cli.app import SuggestingGroup
from equipoise.cli.output import Output, pass_output
from equipoise.errors import ParameterError, StoreError
from equipoise.models.cache import VectorCache, format_bytes, parse_bytes
from equipoise.models.cache_storage import CacheSize
from equipoise.report.terminal import ReportColumn, TerminalTable

HELP = """
\b
  eq cache size
  eq cache prune --to 2GB

Computed vectors are cached and reused. EQUIPOISE_CACHE sets another folder, or "off" for no
cache, and EQUIPOISE_CACHE_BYTES another maximum size, such as 50GB.
"""

SIZE_HELP = """
\b
  eq cache size
  eq cache size --json

Show the number of cached vectors per model, and their size.
"""

PRUNE_HELP = """
\b
  eq cache prune --to 2GB
  eq cache prune --all

Remove the least recently used vectors, until the cache is no larger than --to. The default is the maximum size of the
cache.
"""

PATH_HELP = """
\b
  eq cache path
  eq cache path --json

Print the path of the cache.
"""


@click.group(cls=SuggestingGroup, help=HELP, short_help="Show or prune the vector cache.")
def cache() -> None:
    """See ``HELP``."""


@cache.command(help=SIZE_HELP, short_help="Show the size of the cache.")
@options.table_options()
@options.output_options
@pass_output
def size(out: Output) -> None:
    """See ``SIZE_HELP``."""
    with VectorCache() as vector_cache:
        usage = _measure(vector_cache)
    if out.json:
        out.data({"path": str(vector_cache.path), **asdict(usage)})
        return
    if usage.spaces:
        out.show(
            TerminalTable(
                [
                    ReportColumn("model", [space.name or space.identity for space in usage.spaces], shortens="middle"),
                    ReportColumn("used as", [space.variant for space in usage.spaces], rank=1, shortens="end"),
                    ReportColumn("vectors", [f"{space.vectors:,}" for space in usage.spaces], right=True),
                    ReportColumn("size", [format_bytes(space.bytes) for space in usage.spaces], right=True),
                ]
            )
        )
    out.text(
        f"{usage.vectors:,} vectors, {format_bytes(sum(space.bytes for space in usage.spaces))}; the file takes"
        f" {format_bytes(usage.file_bytes)} of at most {format_bytes(usage.max_bytes)}: {vector_cache.path}"
    )


@cache.command(help=PRUNE_HELP, short_help="Reduce the size of the cache.")
@click.option("--to", metavar="SIZE", help="The size to prune to, such as 2GB.")
@click.option("--all", "everything", is_flag=True, help="Remove all vectors.")
@options.output_options
@pass_output
def prune(out: Output, to: str | None, everything: bool) -> None:
    """See ``PRUNE_HELP``."""
    if to is not None and everything:
        raise ParameterError("--to and --all exclude each other", hint="keep one of them")
    with VectorCache() as vector_cache:
        bound = 0 if everything else vector_cache.max_bytes if to is None else parse_bytes(to)
        dropped = vector_cache.prune(bound) if vector_cache.path.exists() else 0
        usage = _measure(vector_cache)
    if out.json:
        out.data({"path": str(vector_cache.path), "dropped": dropped, **asdict(usage)})
    else:
        out.text(f"dropped {dropped:,} vectors; {usage.vectors:,} stay, {format_bytes(usage.file_bytes)}")


@cache.command(help=PATH_HELP, short_help="Print the path of the cache.")
@options.output_options
@pass_output
def path(out: Output) -> None:
    """See ``PATH_HELP``."""
    vector_cache = VectorCache()
    if out.json:
        out.data({"path": str(vector_cache.path), "exists": vector_cache.path.exists()})
    else:
        out.text(str(vector_cache.path))


def _measure(vector_cache: VectorCache) -> CacheSize:
    """The size of the cache. No file is created; an unusable file is an error."""
    if not vector_cache.path.exists():
        return CacheSize(0, 0, vector_cache.max_bytes)
    usage = vector_cache.size()
    for trouble in vector_cache.troubles:
        raise StoreError(f"{trouble.subject}: {trouble.message}", hint=trouble.hint)
    return usage
