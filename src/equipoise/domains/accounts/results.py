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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from equipoise import __version__
from equipoise.domains.accounts.checks import merge_findings
from equipoise.domains.accounts.report import AccountsReportData, EmbeddingScores
from equipoise.domains.accounts.trees.tree import Tree
from equipoise.domains.accounts.vectors import NodeVectors, read_node_vectors
from equipoise.errors import ChangedFileError, EquipoiseError, StoreError, UnknownNameError
from equipoise.io.atomic import write_bytes, write_error
from equipoise.io.dataset import file_sha256
from equipoise.io.json import parse_json
from equipoise.io.text import open_text
from equipoise.runs.manifest import Manifest
from equipoise.runs.run_directory import MANIFEST, read_manifest
from equipoise.runs.store import save_run
from equipoise.runs.unit_table import UnitContent, json_text
from equipoise.types import Finding, require_extra

if TYPE_CHECKING:
    from pandas import DataFrame

    from equipoise.domains.accounts.evaluation import BranchClusters, EmbeddingEvaluation
    from equipoise.domains.accounts.experiment import EmbeddingSpec, TreeEvaluationConfig
    from equipoise.stats.comparison import Comparison

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


def vectors_fingerprint(tree: Tree, cell: EmbeddingSpec, settings: TreeEvaluationConfig, seed: int) -> str:
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


def kept_vectors(output: Path | None, cell: EmbeddingSpec, key: str) -> NodeVectors | None:
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


def read_kept_vectors(output: Path, file: Path) -> NodeVectors:
    """The vectors of an evaluation's folder, once their file is known to be the one that was written."""
    said = read_manifest(output / RUNS / file.stem).inputs.get(_VECTORS)
    if file_sha256(file) != said:
        raise ChangedFileError(
            f"{file} was changed after it was written: its SHA-256 is not the one in the manifest of its run",
            hint="restore the file, or run eq accounts evaluate again",
        )
    return read_node_vectors(file)


def kept_seed(output: Path | None, cell: EmbeddingSpec, seed: int, key: str) -> NodeVectors | None:
    """The vectors of another seed than the first, of the same inputs; None where there are none."""
    if output is None:
        return None
    for file in _seed_files(output, cell, seed, f"{key[:16]}_"):
        try:
            # The name ends in the hash of the content, so that a file that was changed is not used.
            if file.stem.endswith(f"_{file_sha256(file)[:_HASH]}"):
                return read_node_vectors(file)
        except (EquipoiseError, OSError):
            continue
    return None


def write_seed(output: Path, cell: EmbeddingSpec, seed: int, key: str, embedded: NodeVectors) -> Path:
    """The vectors of another seed than the first, in the place of older ones of that seed."""
    for older in _seed_files(output, cell, seed):
        older.unlink(missing_ok=True)
    stem = output / VECTORS / SEEDS / f"{folder_name(cell.system)}_{seed}_{key[:16]}"
    file = write_vectors(stem.with_name(f"{stem.name}.npz"), embedded)
    return file.replace(stem.with_name(f"{stem.name}_{file_sha256(file)[:_HASH]}.npz"))


def _seed_files(output: Path, cell: EmbeddingSpec, seed: int, start: str = "") -> list[Path]:
    """The files of a seed; a ``start`` is that of the key of its inputs."""
    pattern = f"{glob.escape(folder_name(cell.system))}_{seed}_{start}*.npz"
    return sorted((output / VECTORS / SEEDS).glob(pattern))


def write_judged(
    output: Path,
    tree: Tree,
    judged: EmbeddingEvaluation,
    *,
    key: str = "",
    command: Sequence[str] = (),
    seconds: float,
) -> Path:
    """The vectors and the run directory of one embedding."""
    name = folder_name(judged.system)
    file = write_vectors(output / VECTORS / f"{name}.npz", judged.embedded)
    made = {key: value for key, value in judged.embedded.settings.items() if key not in ("embedder", "dim")}
    manifest = Manifest.start(judged.system, command=command, seed=int(made.get("seed", 0))).finish()
    manifest = replace(
        manifest,
        datasets={tree.source: tree.fingerprint},
        inputs={_INPUTS: key or None, _VECTORS: file_sha256(file)},
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
    return save_run(output / RUNS / name, judged.result, manifest=manifest, details=node_details(tree))


def node_details(tree: Tree) -> dict[str | int, UnitContent]:
    """What people see of each node: its name, its parents, its depth and its branch."""
    names = tree.names
    branches = [names[tree.positions[branch]] for branch in tree.branches]
    return {
        key: UnitContent(
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


def check_same_tree(output: Path, tree: Tree) -> None:
    """A folder that holds another tree would be left with vectors of both."""
    if not (output / TREE).is_file():
        return
    kept = read_stored_tree(output)
    if kept.fingerprint != tree.fingerprint:
        raise StoreError(
            f"{output} holds another tree: {kept.source} with {len(kept):,} nodes",
            hint="name another folder with -o, or remove this one",
        )


def read_stored_tree(output: Path) -> Tree:
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


def stored_systems(output: Path) -> dict[str, Path]:
    """The vectors of an evaluation's folder by system: those of the last evaluation first, in its order."""
    found = {_system(output, path.stem): path for path in sorted((output / VECTORS).glob("*.npz"))}
    if not found:
        raise StoreError(f"{output} holds no vectors", hint="eq accounts evaluate -o FOLDER leaves them there")
    order = last_run_systems(output)
    return {name: found[name] for name in (*(name for name in order if name in found), *found)}


def last_run_systems(output: Path) -> list[str]:
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


def write_vectors(file: Path, embedded: NodeVectors) -> Path:
    """Vectors written into a folder that is made where there is none."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        embedded.write(file)
    except OSError as error:
        raise write_error(file, error, hint="choose another folder") from error
    return file


def _write(file: Path, content: bytes) -> None:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_bytes(file, content)
    except OSError as error:
        raise write_error(file, error, hint="choose another folder") from error


# What an evaluation found: every embedding judged, the comparison, and how they are told and drawn.


@dataclass(frozen=True)
class AccountsEvaluation:
    """All embeddings of one tree, in the order they were asked for; ``found["lorentz-10"]`` is one."""

    tree: Tree
    settings: TreeEvaluationConfig
    judged: tuple[EmbeddingEvaluation, ...]
    comparison: Comparison | None
    branches: BranchClusters
    resumed: tuple[str, ...] = field(default=())

    def __getitem__(self, system: str) -> EmbeddingEvaluation:
        known = {each.system: each for each in self.judged}
        if system not in known:
            raise UnknownNameError.of("embedding", system, known, more=f"there are: {', '.join(known)}")
        return known[system]

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        """What the checks have to say, each once, but for what the report says of all embeddings."""
        own = (finding for each in self.judged for finding in each.result.findings)
        shared = () if self.comparison is None else self.comparison.findings
        return merge_findings((*own, *shared), self.settings.relation)

    @property
    def edition(self) -> AccountsReportData:
        """All that the report shows."""
        first = self.judged[0].result
        return AccountsReportData(
            source=self.tree.source,
            nodes=len(self.tree),
            edges=len(self.tree.edges),
            roots=len(self.tree.roots),
            levels=int(self.tree.depth.max(initial=-1)) + 1,
            relation=str(first.settings["relation"]),
            filtered=bool(first.settings["filtered"]),
            single=self.judged[0].single,
            rows=tuple(view_row(each) for each in self.judged),
            comparison=self.comparison,
            branches=self.branches.description,
            branch_names=dict(zip(self.tree.ids, self.tree.names, strict=True)),
            rates=self.settings.rates,
            findings=self.findings,
        )

    def frame(self) -> DataFrame:
        """A row an embedding; ranks as they are, MAP and Spearman as fractions, the intervals beside them."""
        pandas = require_extra("pandas", extra="accounts")
        found: DataFrame = pandas.DataFrame([to_row(each) for each in self.judged])
        return found

    def runs(self, output: str | Path) -> list[Path]:
        """The run directories of the embeddings in a folder that they were written to."""
        return [Path(output) / RUNS / folder_name(each.system) for each in self.judged]

    @property
    def _claims(self) -> dict[str, Any] | None:
        """The comparison as plain values, whose verdict speaks of nodes."""
        found = self.comparison
        return None if found is None else {**found.to_dict(), "verdict": found.verdict("node")}

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        tree = self.tree
        return {
            "tree": {
                "source": tree.source,
                "nodes": len(tree),
                "edges": len(tree.edges),
                "roots": len(tree.roots),
                "sha256": tree.fingerprint,
            },
            "relation": self.edition.relation,
            "filtered": self.edition.filtered,
            "branches": {"count": len(self.branches), "levels_below_the_top": self.branches.level},
            "systems": [each.to_dict() | _seeds(each) for each in self.judged],
            "comparison": self._claims,
            "resumed": list(self.resumed),
        }


def view_row(judged: EmbeddingEvaluation) -> EmbeddingScores:
    """One embedding as the report shows it."""
    return EmbeddingScores(
        system=judged.system,
        geometry=judged.geometry,
        dim=judged.dim,
        train_on=judged.train_on,
        mean_rank=judged.mean_rank,
        macro_mean_rank=judged.macro_mean_rank,
        median_rank=judged.median_rank,
        map=judged.map,
        spearman=judged.spearman,
        norms=(judged.norms.mean, judged.norms.sd),
        radii=(judged.radii.mean, judged.radii.sd),
        parent_distances=(judged.parent_distances.mean, judged.parent_distances.sd),
        slices=judged.slices,
        seeds={name: str(each) for name, each in judged.over_seeds.items()},
    )


def to_row(judged: EmbeddingEvaluation) -> dict[str, Any]:
    """The figures of one embedding under plain names."""
    figures: Mapping[str, Any] = {
        "mean_rank": judged.mean_rank,
        "macro_mean_rank": judged.macro_mean_rank,
        "median_rank": judged.median_rank,
        "map": judged.map,
        "spearman": judged.spearman,
    }
    row: dict[str, Any] = {"dimension": judged.dim, "system": judged.system, "geometry": judged.geometry}
    row |= {name: each.value for name, each in figures.items()}
    row |= {
        "norm_mean": judged.norms.mean,
        "norm_sd": judged.norms.sd,
        "parent_distance_mean": judged.parent_distances.mean,
        "parent_distance_sd": judged.parent_distances.sd,
    }
    for name, each in figures.items():
        row |= {f"{name}_low": each.interval.low, f"{name}_high": each.interval.high}
    return row | {"n": judged.map.n}


def _seeds(judged: EmbeddingEvaluation) -> dict[str, Any]:
    """Mean and spread over seeds, where there are several."""
    return {
        "seeds": {
            name: {"mean": each.mean, "sd": each.deviation, "values": list(each.values)}
            for name, each in judged.over_seeds.items()
        }
    }
