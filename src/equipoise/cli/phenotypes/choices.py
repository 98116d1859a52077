"""Options that the commands of ``eq phenotypes`` share: the ontology, the model, and where indexes lie."""

from __future__ import annotations

from pathlib import Path

import click

ontology_option = click.option(
    "--ontology",
    default="hpo",
    show_default=True,
    metavar="NAME|FILE",
    help="hpo, or the path of an OBO or OBO-graph JSON file.",
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


def folder_of(index_dir: str | None) -> Path:
    """The folder of the indexes: the one that was given, or the usual one."""
    from equipoise.ontology.index.build import default_folder

    return Path(index_dir).expanduser() if index_dir else default_folder()
