"""The folder of an evaluation, from which finished embeddings are read back.

results.json        every figure of every embedding, and the claims
tree.json           the tree that was embedded
vectors/SYSTEM.npz  the vectors of each embedding; in vectors/seeds those of further seeds
runs/SYSTEM/        a run directory, as eq compare, eq report and eq view read them
charts/             every chart as PNG and SVG, where they can be drawn
"""

from __future__ import annotations

import glob
import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from equipoise.data.atomic import unwritten, write_bytes
from equipoise.data.dataset import fingerprint_of_file
from equipoise.data.jsontext import parse_json
from equipoise.data.text import open_text
from equipoise.errors import ChangedFileError, EquipoiseError, StoreError
from equipoise.hierarchy.embedded import Embedded, read_vectors
from equipoise.hierarchy.tree import Tree
from equipoise.recipes.accounts.judged import Judged
from equipoise.recipes.accounts.settings import Cell, Settings
from equipoise.run.cases import json_text
from equipoise.run.details import Detail
from equipoise.run.folder import MANIFEST, read_manifest
from equipoise.run.manifest import Manifest
from equipoise.run.store import write_run
from equipoise.version import __version__

RUNS, VECTORS, CHARTS, SEEDS = "runs", "vectors", "charts", "seeds"
TREE, RESULTS = "tree.json", "results.json"
_HASH = 32
"""Hexadecimal digits of a hash in a file name."""
VERSION = "accounts 2"
"""Grows when the same inputs would give other vectors."""
_INPUTS = "all inputs of these vectors"
_VECTORS = "the file of these vectors"


def folder_name(system: str) -> str:
    """A name for files, like the system's as far as file systems allow.

    >>> folder_name("text:st:BAAI/bge-small"), folder_name("lorentz-10")
    ('text-st-BAAI-bge-small', 'lorentz-10')
    """
    return re.sub(r"[^\w.+,=@-]+", "-", system).strip("-.")[:120] or "system"


def vectors_key(tree: Tree, cell: Cell, settings: Settings, seed: int) -> str:
    """A digest of everything that decides the vectors of a cell."""
    rates = settings.rates if cell.is_trained else ()
    options = settings.options if cell.is_trained else {}
    where = (settings.device,) if settings.is_on_device(cell) else ()
    # Training goes by other ways without numba.
    engine = (find_spec("numba") is not None,) if cell.is_trained else ()
    parts = (
        VERSION,
        __version__,
        tree.fingerprint,
        cell.system,
        seed,
        rates,
        sorted(options.items()),
        *where,
        *engine,
    )
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def kept_vectors(output: Path | None, cell: Cell, key: str) -> Embedded | None:
    """The vectors that an earlier call left of the same inputs; None where there are none."""
    if output is None:
        return None
    name = folder_name(cell.system)
    try:
        if read_manifest(output / RUNS / name).inputs.get(_INPUTS) != key:
            return None
        return read_kept_vectors(output, output / VECTORS / f"{name}.npz")
    except (EquipoiseError, OSError):
        return None  # whatever lies there is made again


def read_kept_vectors(output: Path, file: Path) -> Embedded:
    """The vectors of an evaluation's folder, once their file is known to be the one that was written."""
    said = read_manifest(output / RUNS / file.stem).inputs.get(_VECTORS)
    if fingerprint_of_file(file) != said:
        raise ChangedFileError(
            f"{file} was changed after it was written: its SHA-256 is not the one in the manifest of its run",
            hint="restore the file, or run eq accounts evaluate again",
        )
    return read_vectors(file)


def kept_seed(output: Path | None, cell: Cell, seed: int, key: str) -> Embedded | None:
    """The vectors of another seed than the first, of the same inputs; None where there are none."""
    if output is None:
        return None
    for file in _seed_files(output, cell, seed, f"{key[:16]}_"):
        try:
            # The name ends in the hash of the content, so that a file that was changed is not used.
            if file.stem.endswith(f"_{fingerprint_of_file(file)[:_HASH]}"):
                return read_vectors(file)
        except (EquipoiseError, OSError):
            continue
    return None


def write_seed(output: Path, cell: Cell, seed: int, key: str, embedded: Embedded) -> Path:
    """The vectors of another seed than the first, in the place of older ones of that seed."""
    for older in _seed_files(output, cell, seed):
        older.unlink(missing_ok=True)
    stem = output / VECTORS / SEEDS / f"{folder_name(cell.system)}_{seed}_{key[:16]}"
    file = written(stem.with_name(f"{stem.name}.npz"), embedded)
    return file.replace(stem.with_name(f"{stem.name}_{fingerprint_of_file(file)[:_HASH]}.npz"))


def _seed_files(output: Path, cell: Cell, seed: int, start: str = "") -> list[Path]:
    """The files of a seed; a ``start`` is that of the key of its inputs."""
    pattern = f"{glob.escape(folder_name(cell.system))}_{seed}_{start}*.npz"
    return sorted((output / VECTORS / SEEDS).glob(pattern))


def write_judged(
    output: Path, tree: Tree, judged: Judged, *, key: str = "", command: Sequence[str] = (), seconds: float
) -> Path:
    """The vectors and the run directory of one embedding."""
    name = folder_name(judged.system)
    file = written(output / VECTORS / f"{name}.npz", judged.embedded)
    made = {key: value for key, value in judged.embedded.settings.items() if key not in ("embedder", "dim")}
    manifest = Manifest.start(judged.system, command=command, seed=int(made.get("seed", 0))).finish()
    manifest = replace(
        manifest,
        datasets={tree.source: tree.fingerprint},
        inputs={_INPUTS: key or None, _VECTORS: fingerprint_of_file(file)},
        parameters={
            "embedder": judged.embedded.settings.get("embedder", judged.system),
            "geometry": judged.geometry,
            "dim": judged.dim,
            **made,
            "norm_mean": judged.norms.mean,
            "norm_sd": judged.norms.sd,
            "parent_distance_mean": judged.parent_distances.mean,
            "parent_distance_sd": judged.parent_distances.sd,
        },
        cost={
            "dims": judged.dim,
            "bytes_per_vector": 8 * judged.embedded.vectors.shape[1],
            "seconds": seconds,
        },
    )
    return write_run(output / RUNS / name, judged.result, manifest=manifest, details=details_of(tree))


def details_of(tree: Tree) -> dict[str | int, Detail]:
    """What people see of each node: its name, its parents, its depth and its branch."""
    names = tree.names
    branches = [names[tree.positions[branch]] for branch in tree.branches]
    return {
        key: Detail(
            names[place],
            tuple(names[parent] for parent in tree.parents(place).tolist()),
            {"depth": int(tree.depth[place]), "branch": branches[place]},
        )
        for place, key in enumerate(tree.ids)
    }


def write_tree(output: Path, tree: Tree) -> None:
    """Keep the tree, so that it can be drawn later."""
    content = {"source": tree.source, "ids": tree.ids, "names": tree.names, "edges": tree.edges.tolist()}
    _write(output / TREE, json.dumps(content, ensure_ascii=False).encode("utf-8", "replace"))


def refuse_other_tree(output: Path, tree: Tree) -> None:
    """A folder that holds another tree would be left with vectors of both."""
    if not (output / TREE).is_file():
        return
    kept = read_kept_tree(output)
    if kept.fingerprint != tree.fingerprint:
        raise StoreError(
            f"{output} holds another tree: {kept.source} with {len(kept):,} nodes",
            hint="name another folder with -o, or remove this one",
        )


def read_kept_tree(output: Path) -> Tree:
    """The tree of an evaluation's folder."""
    file = output / TREE
    if not file.is_file():
        raise StoreError(
            f"{output} is not the folder of an evaluation: it has no {TREE}",
            hint="eq accounts evaluate -o FOLDER writes one",
        )
    content: Any = parse_json(open_text(file))
    try:
        ids = list(content["ids"])
        edges = [(ids[child], ids[parent]) for child, parent in content["edges"]]
        tree = Tree.of(zip(ids, content["names"], strict=True), edges, source=content["source"])
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise StoreError(f"{file} describes no tree: {error}", hint="run the command again") from error
    for run in sorted((output / RUNS).glob(f"*/{MANIFEST}")):
        if tree.fingerprint not in read_manifest(run.parent).datasets.values():
            raise ChangedFileError(
                f"{file} was changed after it was written: it is not the tree in {run}",
                hint="restore the file, or run eq accounts evaluate again",
            )
    return tree


def kept_systems(output: Path) -> dict[str, Path]:
    """The vectors of an evaluation's folder by system: those of the last evaluation first, in its order."""
    found = {_system(output, path.stem): path for path in sorted((output / VECTORS).glob("*.npz"))}
    if not found:
        raise StoreError(
            f"{output} holds no vectors", hint="eq accounts evaluate -o FOLDER leaves them there"
        )
    order = last_systems(output)
    return {name: found[name] for name in (*(name for name in order if name in found), *found)}


def last_systems(output: Path) -> list[str]:
    """The systems of the last evaluation that came to its end, in its order; none where none did."""
    file = output / RESULTS
    if not file.is_file():
        return []
    content: Any = parse_json(open_text(file))
    try:
        return [str(each["system"]) for each in content["systems"]]
    except (KeyError, TypeError) as error:
        raise StoreError(f"{file} describes no evaluation", hint="run the command again") from error


def _system(output: Path, stem: str) -> str:
    """What the vectors of a file are called; a file system does not allow every name."""
    try:
        return read_manifest(output / RUNS / stem).system
    except (EquipoiseError, OSError):
        return stem


def write_results(output: Path, content: Any) -> Path:
    """The JSON file of all embeddings."""
    _write(output / RESULTS, f"{json_text(content, indent=2)}\n".encode())
    return output / RESULTS


def written(file: Path, embedded: Embedded) -> Path:
    """Vectors written into a folder that is made where there is none."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        embedded.write(file)
    except OSError as error:
        raise unwritten(file, error, hint="choose another folder") from error
    return file


def _write(file: Path, content: bytes) -> None:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_bytes(file, content)
    except OSError as error:
        raise unwritten(file, error, hint="choose another folder") from error
