"""The results of an evaluation, and its folder, from which stored embeddings are read again.

results.json        all scores of all embeddings, and the claims
tree.json           the tree that was embedded
vectors/SYSTEM.npz  the vectors of each embedding; in vectors/seeds those of further seeds
runs/SYSTEM/        a run directory, as eq compare, eq report and eq view read it
charts/             all charts as PNG and SVG, if they can be rendered
"""

from __future__ import annotations

import glob
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise import __version__
from equipoise.domains.accounts.checks import merge_findings
from equipoise.domains.accounts.placement import DisplacedNode, displaced_nodes
from equipoise.domains.accounts.trees.tree import Tree
from equipoise.domains.accounts.vectors import NodeVectors, read_node_vectors
from equipoise.errors import ChangedFileError, EquipoiseError, StoreError, UnknownNameError
from equipoise.io.atomic import write_bytes, write_error
from equipoise.io.dataset import file_sha256
from equipoise.io.json import parse_json
from equipoise.io.text import open_text
from equipoise.runs.experiment_folder import RESULTS, RUNS, check_writable, failures_to_dict, folder_name
from equipoise.runs.manifest import MANIFEST, Manifest, read_manifest
from equipoise.runs.run_folder import save_run
from equipoise.runs.runner import Job, resume_key
from equipoise.runs.unit_table import UnitContent
from equipoise.types import Finding, require_extra

if TYPE_CHECKING:
    from pandas import DataFrame

    from equipoise.domains.accounts.evaluation import BranchClusters, EmbeddingEvaluation
    from equipoise.domains.accounts.experiment import EmbeddingInputs, EmbeddingSpec, TreeEvaluationConfig
    from equipoise.stats.comparison import Comparison

VECTORS, CHARTS, SEEDS = "vectors", "charts", "seeds"
TREE = "tree.json"
_HASH = 32
"""Hexadecimal digits of a hash in a file name."""
VERSION = "accounts 5"
"""Increased when the same inputs give other vectors."""
_INPUTS = "all inputs of these vectors"
_VECTORS = "the file of these vectors"


def vectors_fingerprint(tree: Tree, spec: EmbeddingSpec, settings: TreeEvaluationConfig, seed: int) -> str:
    """The resume key of the vectors of a spec: all inputs that determine them."""
    parts: list[object] = [VERSION, __version__, tree.fingerprint, spec.system, seed]
    if spec.is_trained:
        parts += [settings.learning_rates, settings.training]
    if settings.is_on_device(spec):
        parts.append(settings.device)
    return resume_key(*parts)


@dataclass(frozen=True)
class EmbeddingStore:
    """The stored embeddings of a tree.

    Vectors are reused if their inputs are the same. The evaluation runs again on them, because its options may
    differ, so no job output is loaded.
    """

    output: Path
    tree: Tree
    settings: TreeEvaluationConfig
    command: tuple[str, ...] = ()

    def check_writable(self) -> None:
        """Raise ``StoreError`` if the folder cannot be written."""
        check_writable(self.output)

    def load(self, job: Job[EmbeddingInputs]) -> None:
        """Nothing: see ``load_vectors``."""

    def load_vectors(self, spec: EmbeddingSpec, seed: int, is_first: bool) -> NodeVectors | None:
        """The vectors that an earlier run stored for the same inputs; None if there are none."""
        key = vectors_fingerprint(self.tree, spec, self.settings, seed)
        if not is_first:
            return self._load_seed_vectors(spec.system, seed, key)
        name = folder_name(spec.system)
        try:
            if read_manifest(self.output / RUNS / name).inputs.get(_INPUTS) != key:
                return None
            return read_stored_vectors(self.output, self.output / VECTORS / f"{name}.npz")
        except (EquipoiseError, OSError):
            return None  # an unreadable result is computed again

    def _load_seed_vectors(self, system: str, seed: int, key: str) -> NodeVectors | None:
        for file in self._seed_files(system, seed, f"{key[:16]}_"):
            try:
                # The name ends in the hash of the content, so that a changed file is not used.
                if file.stem.endswith(f"_{file_sha256(file)[:_HASH]}"):
                    return read_node_vectors(file)
            except (EquipoiseError, OSError):
                continue
        return None

    def save(self, job: Job[EmbeddingInputs], value: EmbeddingEvaluation, *, key: str, seconds: float) -> None:
        """Write the run directory and the vectors of a first seed; only new vectors of a further seed."""
        spec, seed = job.inputs.spec, job.inputs.seed
        key = "" if spec is None else vectors_fingerprint(self.tree, spec, self.settings, seed)
        if job.inputs.is_first:
            write_tree(self.output, self.tree)
            write_evaluation(self.output, self.tree, value, key=key, command=self.command, seconds=seconds)
        elif job.inputs.vectors is None:
            self._write_seed_vectors(value.system, seed, key, value.vectors)

    def _write_seed_vectors(self, system: str, seed: int, key: str, vectors: NodeVectors) -> None:
        """Replaces older vectors of that seed."""
        for old_file in self._seed_files(system, seed):
            old_file.unlink(missing_ok=True)
        stem = self.output / VECTORS / SEEDS / f"{folder_name(system)}_{seed}_{key[:16]}"
        file = write_vectors(stem.with_name(f"{stem.name}.npz"), vectors)
        file.replace(stem.with_name(f"{stem.name}_{file_sha256(file)[:_HASH]}.npz"))

    def _seed_files(self, system: str, seed: int, start: str = "") -> list[Path]:
        """The files of a seed; ``start`` is the start of the fingerprint of its inputs."""
        pattern = f"{glob.escape(folder_name(system))}_{seed}_{start}*.npz"
        return sorted((self.output / VECTORS / SEEDS).glob(pattern))


def read_stored_vectors(output: Path, file: Path) -> NodeVectors:
    """The vectors of an evaluation's folder; a file that was changed is an error."""
    recorded = read_manifest(output / RUNS / file.stem).inputs.get(_VECTORS)
    if file_sha256(file) != recorded:
        raise ChangedFileError(
            f"{file} was changed after it was written: its SHA-256 is not the one in the manifest of its run",
            hint="restore the file, or run eq accounts evaluate again",
        )
    return read_node_vectors(file)


def write_evaluation(
    output: Path,
    tree: Tree,
    evaluation: EmbeddingEvaluation,
    *,
    key: str = "",
    command: Sequence[str] = (),
    seconds: float,
) -> Path:
    """Write the vectors and the run directory of one embedding."""
    name = folder_name(evaluation.system)
    file = write_vectors(output / VECTORS / f"{name}.npz", evaluation.vectors)
    settings = {key: value for key, value in evaluation.vectors.settings.items() if key not in ("embedder", "dim")}
    manifest = Manifest.start(evaluation.system, command=command, seed=int(settings.get("seed", 0))).finish()
    manifest = replace(
        manifest,
        datasets={tree.source: tree.fingerprint},
        inputs={_INPUTS: key or None, _VECTORS: file_sha256(file)},
        parameters={
            "embedder": evaluation.vectors.settings.get("embedder", evaluation.system),
            "geometry": evaluation.geometry,
            "dim": evaluation.dim,
            **settings,
            "norm_mean": evaluation.norms.mean,
            "norm_sd": evaluation.norms.sd,
            "parent_distance_mean": evaluation.parent_distances.mean,
            "parent_distance_sd": evaluation.parent_distances.sd,
        },
        cost={
            "dims": evaluation.dim,
            "bytes_per_vector": 8 * evaluation.vectors.vectors.shape[1],
            "seconds": seconds,
        },
    )
    return save_run(output / RUNS / name, evaluation.result, manifest=manifest, details=node_details(tree))


def node_details(tree: Tree) -> dict[str | int, UnitContent]:
    """The contents of each node in reports: name, parents, depth and branch."""
    names = tree.names
    branches = [names[tree.positions[branch]] for branch in tree.branches]
    return {
        key: UnitContent(
            names[index],
            tuple(names[parent] for parent in tree.parents(index).tolist()),
            {"depth": int(tree.depth[index]), "branch": branches[index]},
        )
        for index, key in enumerate(tree.ids)
    }


def write_tree(output: Path, tree: Tree) -> None:
    """Write the tree, so that it can be plotted later."""
    content = {"source": tree.source, "ids": tree.ids, "names": tree.names, "edges": tree.edges.tolist()}
    data = json.dumps(content, ensure_ascii=False).encode("utf-8", "replace")
    _write(output / TREE, lambda file: write_bytes(file, data))


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
        raise StoreError(f"{file} does not contain a valid tree: {error}", hint="run the command again") from error
    for run in sorted((output / RUNS).glob(f"*/{MANIFEST}")):
        if tree.fingerprint not in read_manifest(run.parent).datasets.values():
            raise ChangedFileError(
                f"{file} was changed after it was written: it is not the tree in {run}",
                hint="restore the file, or run eq accounts evaluate again",
            )
    return tree


def stored_systems(output: Path) -> dict[str, Path]:
    """The files of vectors in an evaluation's folder by system: those of the last evaluation first, in its order."""
    paths = {_system(output, path.stem): path for path in sorted((output / VECTORS).glob("*.npz"))}
    if not paths:
        raise StoreError(f"{output} has no vectors", hint="eq accounts evaluate -o FOLDER writes them")
    last_systems = last_run_systems(output)
    return {name: paths[name] for name in (*(name for name in last_systems if name in paths), *paths)}


def last_run_systems(output: Path) -> list[str]:
    """The systems of the last completed evaluation, in its order; empty if there is none."""
    file = output / RESULTS
    if not file.is_file():
        return []
    content: Any = parse_json(open_text(file))
    try:
        return [str(system["system"]) for system in content["systems"]]
    except (KeyError, TypeError) as error:
        raise StoreError(f"{file} is not a valid result file", hint="run the command again") from error


def _system(output: Path, stem: str) -> str:
    """The system of a file of vectors; the file name may differ from the system's name."""
    try:
        return read_manifest(output / RUNS / stem).system
    except (EquipoiseError, OSError):
        return stem


def write_vectors(file: Path, vectors: NodeVectors) -> Path:
    """Write vectors; the folder is created if needed."""
    _write(file, vectors.write)
    return file


def _write(file: Path, write: Callable[[Path], None]) -> None:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        write(file)
    except OSError as error:
        raise write_error(file, error, hint="choose another folder") from error


@dataclass(frozen=True)
class AccountsEvaluation:
    """All embeddings of one tree, in the requested order; ``evaluation["lorentz-10"]`` is one of them."""

    tree: Tree
    settings: TreeEvaluationConfig
    evaluations: tuple[EmbeddingEvaluation, ...]
    comparison: Comparison | None
    branches: BranchClusters
    resumed: tuple[str, ...] = field(default=())
    failures: Mapping[str, EquipoiseError] = field(default_factory=dict)

    def __getitem__(self, system: str) -> EmbeddingEvaluation:
        known = {evaluation.system: evaluation for evaluation in self.evaluations}
        if system not in known:
            raise UnknownNameError.of("embedding", system, known, more=f"there are: {', '.join(known)}")
        return known[system]

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        """All findings, merged over the embeddings, without those that the report states anyway."""
        embedding_findings = (finding for evaluation in self.evaluations for finding in evaluation.result.findings)
        shared = () if self.comparison is None else self.comparison.findings
        return merge_findings((*embedding_findings, *shared), self.settings.relation)

    @cached_property
    def resampled_branches(self) -> BranchClusters:
        """The branches with a node that has a target; the others have no value to resample."""
        result = self.evaluations[0].result
        has_value = ~np.isnan(result.per_unit[result.names[0]])
        return replace(self.branches, labels=self.branches.labels[has_value])

    @cached_property
    def names(self) -> dict[str, str]:
        """The name of each node by its id."""
        return dict(zip(self.tree.ids, self.tree.names, strict=True))

    @property
    def baselines(self) -> set[str]:
        """The systems that were not requested."""
        return {spec.system for spec in self.settings.specs if self.settings.is_baseline(spec)}

    @cached_property
    def displaced(self) -> tuple[DisplacedNode, ...]:
        """The nodes that are nearer to another node than to their parent, in the first embedding that has any.

        A text model comes first: names can point to another parent, while a trained embedding only lacks dimensions.
        """
        return displaced_nodes(self.tree, self[self.displaced_in].vectors) if self.displaced_in else ()

    @property
    def displaced_in(self) -> str:
        """The name of the embedding that ``displaced`` is about; empty if there is none."""
        requested = [item for item in self.evaluations if item.system not in self.baselines and item.n_displaced]
        return min((item.system for item in requested), key=lambda name: not name.startswith("text:"), default="")

    def to_frame(self) -> DataFrame:
        """One row per embedding: ranks, MAP and Spearman as fractions, and their intervals."""
        pandas = require_extra("pandas", extra="accounts")
        frame: DataFrame = pandas.DataFrame([to_row(evaluation) for evaluation in self.evaluations])
        return frame

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        tree, comparison, first = self.tree, self.comparison, self.evaluations[0]
        claims = None if comparison is None else {**comparison.to_dict(), "verdict": comparison.verdict("node")}
        return {
            "tree": {
                "source": tree.source,
                "nodes": len(tree),
                "edges": len(tree.edges),
                "roots": len(tree.roots),
                "sha256": tree.fingerprint,
            },
            "relation": first.relation,
            "filtered": first.is_filtered,
            "branches": {"count": len(self.resampled_branches), "levels_below_the_top": self.branches.level},
            "systems": [evaluation.to_dict() for evaluation in self.evaluations],
            "comparison": claims,
            "tree_shape": None if first.tree_shape is None else asdict(first.tree_shape),
            "displaced": {"system": self.displaced_in, "nodes": [asdict(item) for item in self.displaced]},
            "resumed": list(self.resumed),
            "failures": failures_to_dict(self.failures),
        }


def to_row(evaluation: EmbeddingEvaluation) -> dict[str, Any]:
    """The scores of one embedding by column name."""
    estimates: Mapping[str, Any] = {
        "mean_rank": evaluation.mean_rank,
        "macro_mean_rank": evaluation.macro_mean_rank,
        "median_rank": evaluation.median_rank,
        "map": evaluation.map,
        "spearman": evaluation.spearman,
    }
    row: dict[str, Any] = {"dimension": evaluation.dim, "system": evaluation.system, "geometry": evaluation.geometry}
    row |= {name: estimate.value for name, estimate in estimates.items()}
    row |= {
        "norm_mean": evaluation.norms.mean,
        "norm_sd": evaluation.norms.sd,
        "parent_distance_mean": evaluation.parent_distances.mean,
        "parent_distance_sd": evaluation.parent_distances.sd,
    }
    for name, estimate in estimates.items():
        row |= {f"{name}_low": estimate.interval.low, f"{name}_high": estimate.interval.high}
    return row | {"n": evaluation.map.n}
