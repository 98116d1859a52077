"""``eq accounts plot``: the tree in the disk, as a page, an SVG or a PNG."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from equipoise.cli import options
from equipoise.cli.accounts.files import refuse_unwritable_file
from equipoise.cli.accounts.trees import Source, tree_options
from equipoise.cli.output import Output, pass_output
from equipoise.errors import ParameterError, StoreError, UnknownNameError

if TYPE_CHECKING:
    from equipoise.recipes.accounts.pictures import Gallery
    from equipoise.report.charts.chart import Chart

HELP = """
\b
  eq accounts plot results/ -o disk.html
  eq accounts plot account_vectors.csv --tree accounts.csv --geometry lorentz -o disk.svg

Draw an embedded tree in the Poincare disk with its edges: one HTML file that opens from disk without a
network, in which pointing at a mark shows the account. The page also has norms against depth and, for a
folder that eq accounts evaluate wrote, MR and MAP against dimensions. A name in .svg or .png gets one chart.
Vectors from a file need their tree beside them. Flat embeddings are drawn in the plane.
"""

SUFFIXES = (".html", ".svg", ".png")
DIMENSIONS = "dimensions-"
"""How the names of charts begin that show all embeddings."""


@click.command(help=HELP, short_help="Draw the tree in the disk.")
@click.argument("place", metavar="RESULTS")
@tree_options
@click.option(
    "--system", metavar="NAME", help="Which embedding; hyperbolic and of two dimensions by default."
)
@click.option("--geometry", metavar="NAME", help="The geometry of a CSV of vectors; euclidean by default.")
@click.option("--chart", metavar="NAME", help="Only this chart; an .svg or .png holds the tree by default.")
@click.option("-o", "--output", required=True, metavar="FILE", help="disk.html, or a name in .svg or .png.")
@options.output_options
@pass_output
def plot(
    out: Output,
    /,
    place: str,
    source: Source,
    system: str | None,
    geometry: str | None,
    chart: str | None,
    output: str,
) -> int:
    """See ``HELP``."""
    file = Path(output)
    _refuse_unwritable(file)
    gallery = _gallery(Path(place), source, system, geometry)
    pictures = _chosen(gallery.pictures(), chart)
    _write(file, gallery, pictures)
    of_one = any(not each.name.startswith(DIMENSIONS) for each in pictures)
    if out.json:
        names = [each.name for each in (pictures if file.suffix.casefold() == ".html" else pictures[:1])]
        out.data({"system": gallery.system if of_one else None, "charts": names, "written": [output]})
    out.note(f"wrote {output} ({gallery.system})" if of_one else f"wrote {output}")
    return 0


def _gallery(place: Path, source: Source, system: str | None, geometry: str | None) -> Gallery:
    from equipoise.recipes.accounts.pictures import Gallery

    if place.is_dir():
        if source.named or geometry is not None:
            raise ParameterError(
                f"{place} keeps its own tree and geometry", hint="name only the folder, and --system"
            )
        return Gallery.read(place, system)
    from equipoise.geometry.names import geometry as geometry_named
    from equipoise.hierarchy.embedded import read_vectors
    from equipoise.recipes.accounts.vectors import in_space

    if not place.exists():
        raise StoreError(
            f"there is no {place}", hint="name the folder of eq accounts evaluate -o, or a file of vectors"
        )
    tree = source.read()
    found = read_vectors(place, None if geometry is None else geometry_named(geometry).name)
    return Gallery(tree, system or place.stem, in_space(found, tree))


def _write(file: Path, gallery: Gallery, pictures: list[Chart]) -> None:
    from equipoise.data.atomic import write_bytes
    from equipoise.report.charts.render import png, svg
    from equipoise.report.pictures_page import pictures_page

    if file.suffix.casefold() == ".html":
        tree = gallery.tree
        text = f"{tree.source}: {len(tree):,} nodes, {len(tree.edges):,} edges, {len(tree.roots):,} roots."
        write_bytes(file, pictures_page(gallery.system, text, pictures).encode())
        return
    write_bytes(file, png(pictures[0]) if file.suffix.casefold() == ".png" else svg(pictures[0]).encode())


def _chosen(pictures: list[Chart], chart: str | None) -> list[Chart]:
    """All charts, or the one that was named."""
    known = {each.name: each for each in pictures}
    if chart is not None and chart not in known:
        raise UnknownNameError.of("chart", chart, known, more=f"there are: {', '.join(known)}")
    return pictures if chart is None else [known[chart]]


def _refuse_unwritable(file: Path) -> None:
    """Say before the work begins that the picture could not be kept."""
    if file.suffix.casefold() not in SUFFIXES:
        raise ParameterError(
            f"{file} has no ending that says what to draw", hint=f"it ends in {', '.join(SUFFIXES)}"
        )
    refuse_unwritable_file(file, "disk.html")
