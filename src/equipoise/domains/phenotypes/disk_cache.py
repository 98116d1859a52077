"""Derived files of large ontologies in the user's cache folder, so that a command starts quickly.

Parsing the Human Phenotype Ontology and counting the n-grams of its texts take most of the time of a single query.
Both are stored the first time, under a key of everything that they depend on: the ontology as JSON, which is read four
times as fast as OBO, and fitted lexical systems as arrays that are mapped into memory. A file that is missing,
unreadable or of another version is computed again; a folder that cannot be written is ignored.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import astuple
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import equipoise
from equipoise.errors import EquipoiseError
from equipoise.io.atomic import atomic_directory, write_array, write_text
from equipoise.io.dag import Rows
from equipoise.models.vector_cache import cache_folder, is_disabled

if TYPE_CHECKING:
    from equipoise.domains.phenotypes.ontology import Ontology
    from equipoise.models.retriever import FittedRetriever, Retriever

VERSION = "derived 2"
"""Increased when the same inputs give other files."""
MIN_TEXTS = 10_000
"""Smaller collections are computed as quickly as they are read."""

_ARRAYS = "arrays.json"
_PLAIN_FIELDS = ("name", "release", "citation", "ids", "labels", "synonyms", "definitions", "alternatives", "source")


def _path(kind: str, *parts: str) -> Path:
    digest = sha256("\0".join((VERSION, equipoise.__version__, *parts)).encode()).hexdigest()[:32]
    return cache_folder() / "phenotypes" / f"{kind}-{digest}"


def read_parsed(source: Path) -> dict[str, Any] | None:
    """The fields of the ontology that was parsed from this file, with its fingerprint; None if it is not stored."""
    if is_disabled():
        return None
    try:
        content: dict[str, Any] = json.loads(_ontology_path(source).read_text(encoding="utf-8"))
        parents = content.pop("parents")
        return {
            **content,
            **{name: tuple(content[name]) for name in ("ids", "labels", "definitions")},
            "synonyms": tuple(map(tuple, content["synonyms"])),
            "parents": Rows(*(np.array(values, dtype=np.int64) for values in parents)),
        }
    except (OSError, ValueError, KeyError, TypeError):
        return None


def write_parsed(source: Path, ontology: Ontology) -> None:
    """Store the fields of an ontology that was parsed from this file."""
    if is_disabled():
        return
    content = {
        **{name: getattr(ontology, name) for name in _PLAIN_FIELDS},
        "parents": [ontology.parents.starts.tolist(), ontology.parents.values.tolist()],
        "obsolete": {name: astuple(term) for name, term in ontology.obsolete.items()},
        "fingerprint": ontology.fingerprint,
    }
    path = _ontology_path(source)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, json.dumps(content, ensure_ascii=False))
    except (OSError, EquipoiseError):
        return


def _ontology_path(source: Path) -> Path:
    status = source.stat()
    return _path("ontology", str(source), str(status.st_size), str(status.st_mtime_ns)).with_suffix(".json")


def fit_or_load(system: Retriever, texts: tuple[str, ...], key: str) -> FittedRetriever:
    """A lexical system, fitted on texts that ``key`` identifies; large TF-IDF systems are stored and read again."""
    from equipoise.models.lexical import TfidfRetriever

    if not isinstance(system, TfidfRetriever) or len(texts) < MIN_TEXTS or is_disabled():
        return system.fit(texts)
    folder = _path("tfidf", system.fingerprint, key, str(len(texts)))
    arrays = _read_arrays(folder)
    if arrays is not None:
        return system.from_arrays(arrays, len(texts))
    fitted = system.fit(texts)
    learned = fitted.to_arrays()
    if learned is not None:
        _write_arrays(folder, learned)
    return fitted


def _read_arrays(folder: Path) -> dict[str, Any] | None:
    """The arrays of a folder, mapped into memory; None if they are missing or damaged."""
    try:
        sizes: Mapping[str, list[int]] = json.loads((folder / _ARRAYS).read_text(encoding="utf-8"))
        arrays = {name: np.load(folder / f"{name}.npy", mmap_mode="r", allow_pickle=False) for name in sizes}
    except (OSError, ValueError, EOFError):
        return None
    return arrays if all(list(array.shape) == sizes[name] for name, array in arrays.items()) else None


def _write_arrays(folder: Path, arrays: Mapping[str, Any]) -> None:
    try:
        with atomic_directory(folder) as part:
            for name, array in arrays.items():
                write_array(part / f"{name}.npy", np.asarray(array))
            write_text(part / _ARRAYS, json.dumps({name: list(array.shape) for name, array in arrays.items()}))
    except (OSError, EquipoiseError):
        return
