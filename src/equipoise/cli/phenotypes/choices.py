"""Options that the commands of ``eq phenotypes`` share: the ontology, the model, and where indexes lie."""

from __future__ import annotations

from pathlib import Path

import click

from equipoise.errors import ParameterError

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

weights_option = click.option(
    "--weights", metavar="L,S,D", help="Of label, synonyms and definition, for all_weighted."
)


def weights_of(text: str | None) -> list[float] | None:
    """The three weights as numbers.

    >>> weights_of("0.5,0.3,0.2")
    [0.5, 0.3, 0.2]
    """
    if text is None:
        return None
    try:
        return [float(each) for each in text.split(",")]
    except ValueError:
        raise ParameterError(
            f"the weights are {text!r}", hint="write three numbers: --weights 0.5,0.3,0.2"
        ) from None


def refuse_idle(multi_vector: bool, strategy: str | None, weights: str | None) -> None:
    """A strategy or weights that nothing would read."""
    if not (strategy is None and weights is None) and not multi_vector:
        raise ParameterError(
            "one vector a term leaves nothing to aggregate",
            hint="add --multi-vector, or leave the strategy out",
        )


def folder_of(index_dir: str | None) -> Path:
    """The folder of the indexes: the one that was given, or the usual one."""
    from equipoise.ontology.index.build import default_folder

    return Path(index_dir).expanduser() if index_dir else default_folder()
