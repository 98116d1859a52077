"""The command that makes an index, ready to be copied: wherever one is missing or old, it is the remedy."""

from __future__ import annotations

import shlex
from pathlib import Path

from equipoise.data.text import PathLike
from equipoise.ontology.load import HPO
from equipoise.ontology.ontology import Ontology


def build_command(
    ontology: Ontology, model_spec: str, *, multi: bool, folder: PathLike, default: PathLike
) -> str:
    """``eq phenotypes index build`` for this model, ontology and folder; what is the default is left out.

    An ontology that was not read from a file has no path to name, so FILE stands there.
    """
    words = ["eq", "phenotypes", "index", "build", "--model-name", model_spec]
    words += ["--multi-vector"] if multi else []
    words += [] if ontology.source == HPO else ["--ontology", ontology.source or "FILE"]
    words += [] if Path(folder) == Path(default) else ["--index-dir", str(folder)]
    return shlex.join(words)
