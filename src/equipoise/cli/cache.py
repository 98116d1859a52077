"""``eq cache``: how much the vector cache holds, where it lies, and making it smaller."""

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

Vectors that were computed once are kept and never computed again. EQUIPOISE_CACHE names
another folder for them, or is "off" for none, and EQUIPOISE_CACHE_BYTES another bound, such
as 50GB.
"""

SIZE_HELP = """
\b
  eq cache size
  eq cache size --json

Show how many vectors are kept for each model, and how much room they take.
"""

PRUNE_HELP = """
\b
  eq cache prune --to 2GB
  eq cache prune --all

Drop the vectors that were not used for longest, until the file is no larger than this.
Without --to, it is made to fit its bound.
"""

PATH_HELP = """
\b
  eq cache path
  eq cache path --json

Print where the cache lies.
"""


@click.group(cls=SuggestingGroup, help=HELP, short_help="Look after the vector cache.")
def cache() -> None:
    """See ``HELP``."""


@cache.command(help=SIZE_HELP, short_help="Show what is kept.")
@options.output_options
@pass_output
def size(out: Output) -> None:
    """See ``SIZE_HELP``."""
    with VectorCache() as kept:
        found = _measured(kept)
    if out.json:
        out.data({"path": str(kept.path), **asdict(found)})
        return
    if found.spaces:
        out.show(
            TerminalTable(
                [
                    ReportColumn("model", [each.name or each.identity for each in found.spaces], shortens="middle"),
                    ReportColumn("used as", [each.variant for each in found.spaces], rank=1, shortens="end"),
                    ReportColumn("vectors", [f"{each.vectors:,}" for each in found.spaces], right=True),
                    ReportColumn("size", [format_bytes(each.bytes) for each in found.spaces], right=True),
                ]
            )
        )
    out.text(
        f"{found.vectors:,} vectors, {format_bytes(sum(each.bytes for each in found.spaces))}; the file takes"
        f" {format_bytes(found.file_bytes)} of at most {format_bytes(found.max_bytes)}: {kept.path}"
    )


@cache.command(help=PRUNE_HELP, short_help="Make it smaller.")
@click.option("--to", metavar="SIZE", help="How large it may stay, such as 2GB.")
@click.option("--all", "everything", is_flag=True, help="Drop every vector.")
@options.output_options
@pass_output
def prune(out: Output, to: str | None, everything: bool) -> None:
    """See ``PRUNE_HELP``."""
    if to is not None and everything:
        raise ParameterError("--to and --all were both given", hint="keep one of them")
    with VectorCache() as kept:
        bound = 0 if everything else kept.max_bytes if to is None else parse_bytes(to)
        dropped = kept.prune(bound) if kept.path.exists() else 0
        found = _measured(kept)
    if out.json:
        out.data({"path": str(kept.path), "dropped": dropped, **asdict(found)})
    else:
        out.text(f"dropped {dropped:,} vectors; {found.vectors:,} stay, {format_bytes(found.file_bytes)}")


@cache.command(help=PATH_HELP, short_help="Print where it lies.")
@options.output_options
@pass_output
def path(out: Output) -> None:
    """See ``PATH_HELP``."""
    kept = VectorCache()
    if out.json:
        out.data({"path": str(kept.path), "exists": kept.path.exists()})
    else:
        out.text(str(kept.path))


def _measured(kept: VectorCache) -> CacheSize:
    """How much there is; looking does not make a file, and a file that cannot be used is an error."""
    if not kept.path.exists():
        return CacheSize(0, 0, kept.max_bytes)
    found = kept.size()
    for trouble in kept.troubles:
        raise StoreError(f"{trouble.subject}: {trouble.message}", hint=trouble.hint)
    return found
