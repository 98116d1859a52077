"""The report of embedded trees: one row per embedding, significance groups, slices by depth and branch.

``accounts_view`` is the view of an evaluation. ``chart_of_accounts_table`` and ``chart_of_accounts_summary`` print the
layout of ``AccountEmbedderTester``, with one column per dimension and one row per metric.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import isnan, nan
from typing import TYPE_CHECKING

from equipoise.checks.base import join_names, pluralize
from equipoise.domains.accounts.evaluation import SPEARMAN, branch_clusters
from equipoise.domains.accounts.placement import OTHER_PARENT
from equipoise.domains.accounts.trees.tree import PARENT, is_random_id
from equipoise.report.answer import (
    UNKNOWN_INTERVALS,
    Answer,
    AnswerOptions,
    all_metrics_answer,
    comparison_answer,
    failure_line,
    metric_column,
    single_answer,
)
from equipoise.report.tables import interval_methods
from equipoise.report.terminal import ReportColumn
from equipoise.report.view import ReportTable, Section, View
from equipoise.stats.formatting import format_count, format_interval, format_percent, format_value, shared_decimals
from equipoise.stats.verdict import Vocabulary

if TYPE_CHECKING:
    from equipoise.domains.accounts.distances import DistanceEvaluation
    from equipoise.domains.accounts.evaluation import EmbeddingEvaluation
    from equipoise.domains.accounts.placement import DisplacedNode, PlacementEvaluation
    from equipoise.domains.accounts.results import AccountsEvaluation
    from equipoise.domains.accounts.shape import EmbeddingShape
    from equipoise.domains.accounts.trees.tree import Tree
    from equipoise.stats.comparison import Comparison
    from equipoise.stats.intervals import Interval
    from equipoise.stats.result import Estimate
    from equipoise.stats.seeds import MeanAndDeviation

SINGLE_TARGET_NOTE = "Every node has at most one target, so MAP is the mean reciprocal rank."
TARGETS = {
    "parent": "its parent",
    "ancestors": "its ancestors",
    "closure": "its ancestors and descendants",
}
RANKED = {
    "parent": "target: the parent",
    "ancestors": "targets: the ancestors",
    "closure": "targets: the ancestors and descendants",
}


WORDS = Vocabulary("node", "embedding", cluster="subtree")
MAX_DISPLACED = 20
"""Nodes nearer to another node than to their parent that are listed."""


def accounts_view(data: AccountsEvaluation) -> View:
    """The answer, then all scores, methods, distances, and slices of the best embedding."""
    sections = (
        Section(_title(data), (ReportTable.of(accounts_columns(data)),), tuple(captions(data))),
        *seed_section(data),
        *relation_section(data),
        position_section(data),
        *shape_section(data),
        *displaced_section(data),
        *slice_section(data),
    )
    return View(accounts_answer(data), sections)


def _title(data: AccountsEvaluation) -> str:
    tree = data.tree
    levels = int(tree.depth.max(initial=-1)) + 1
    return f"{describe_tree(tree)}, {pluralize(len(tree.roots), 'root')}, {pluralize(levels, 'level')}"


def describe_tree(tree: Tree) -> str:
    """Source, nodes and edges of a tree."""
    return f"{tree.source}: {pluralize(len(tree), 'node')}, {pluralize(len(tree.edges), 'edge')}"


def node_label(tree: Tree, key: str, *, with_path: bool = True) -> str:
    """Id and name of a node, or its path of names if the id is a GUID of GnuCash.

    >>> from equipoise.domains.accounts.trees.tree import Tree
    >>> tree = Tree.of([("1", "Cash"), ("2", "2 Bank"), ("3", "3")], [])
    >>> [node_label(tree, key) for key in tree.ids]
    ['1 Cash', '2 Bank', '3']
    """
    position = tree.position(key)
    key, name = tree.ids[position], tree.names[position]
    if is_random_id(key):
        return tree.path_of_names(position) if with_path else name
    # A name may begin with the id.
    return name if f"{name} ".startswith(f"{key} ") else f"{key} {name}"


def accounts_answer(data: AccountsEvaluation) -> Answer:
    """Which embedding is best, with all scores and the number of dimensions."""
    primary = data.evaluations[0].map.metric if data.comparison is None else data.comparison.primary
    by_name = {row.system: row for row in data.evaluations}
    order = [row.system for row in data.evaluations] if data.comparison is None else data.comparison.order
    rows = [by_name[name] for name in order]
    scores = {"MR": [row.mean_rank for row in rows], "MAP": [row.map for row in rows]}
    columns = [
        metric_column(name, _values(estimates), estimates, rank=3)
        for name, estimates in scores.items()
        if estimates[0].metric != primary and name != primary
    ]
    for relation in next((list(row.other_relations) for row in rows if row.other_relations), []):
        values = [row.other_relations[relation].map if row.other_relations else nan for row in rows]
        cells = [format_value(value, 2) for value in values]
        name = f"MAP {relation}"
        columns.append(ReportColumn(name, cells, right=True, rank=6, values={name: values}))
    if any(row.seed_summaries for row in rows):
        summaries = [row.seed_summaries.get(row.mean_rank.metric) for row in rows]
        spread = {
            "MR_mean": [summary.mean if summary else nan for summary in summaries],
            "MR_sd_seeds": [summary.deviation if summary else nan for summary in summaries],
        }
        cells = [str(summary or "n/a") for summary in summaries]
        columns.append(ReportColumn("MR over seeds", cells, right=True, rank=2, values=spread))
    columns += [
        metric_column(SPEARMAN, [format_value(row.spearman.value, 2) for row in rows], [r.spearman for r in rows], 4),
        ReportColumn("dims", [str(row.dim) for row in rows], right=True, rank=5),
    ]
    perfect = perfect_sentence(data)
    options = AnswerOptions(
        WORDS,
        columns=tuple(columns),
        baseline="A random embedding",
        notes=(
            *filter(None, [disagreement_note(rows)]),
            *training_relation_notes(data.evaluations, data.settings.relation),
            *_training_notes(data),
        ),
        failures=failure_line(data.failures, len(data.evaluations), "embedding"),
        findings=data.findings,
        details="Details: add -v (methods, slices).",
        explains_codes=True,
        sample_size="" if perfect else None,
    )
    if data.comparison is None:
        answer = single_answer(rows[0].system, rows[0].map, options)
    else:
        answer = comparison_answer(data.comparison, options)
    if perfect:
        # Perfect scores have no intervals, and no more nodes would separate them.
        notes = tuple(note for note in answer.notes if not note.startswith(UNKNOWN_INTERVALS))
        return replace(answer, headline=perfect, notes=notes)
    return replace(answer, headline=" ".join(filter(None, [dimension_sentence(data), answer.headline])))


def perfect_sentence(data: AccountsEvaluation) -> str:
    """How many embeddings place every node nearest to its parent, and the cheapest one; empty if not several do."""
    rows = [row for row in data.evaluations if not row.n_displaced and row.mean_rank.value == 1.0]
    if data.settings.relation != PARENT or len(rows) < 2:
        return ""
    trained = {spec.system for spec in data.settings.specs if spec.is_trained}
    cheapest = min(rows, key=lambda row: (row.system in trained, row.dim))
    number = f"{len(rows)} of {len(data.evaluations)}" if len(rows) < len(data.evaluations) else f"All {len(rows)}"
    cost = pluralize(cheapest.dim, "dimension") + ("" if cheapest.system in trained else ", no training")
    embedder, best, too_few = _dimensions_of_first(data)
    needed = f" {embedder} needs {pluralize(best.dim, 'dimension')}." if too_few else ""
    return (
        f"{number} embeddings place every node nearest to its parent (mean rank 1 on "
        f"{WORDS.units(rows[0].map.n)}). The cheapest of these is {cheapest.system} ({cost}).{needed}"
    )


def distances_view(
    evaluations: Sequence[DistanceEvaluation], comparison: Comparison | None, tree: Tree, relation: str
) -> View:
    """The evaluation of distance matrices: ranks of the targets, and the scores of all relations."""
    order = [item.result.system for item in evaluations] if comparison is None else comparison.order
    by_name = {item.result.system: item for item in evaluations}
    rows = [by_name[name] for name in order]
    results = [item.result for item in rows]
    mean_rank = results[0].names[0]
    precisions = [result.estimates["MAP"] for result in results]
    columns = [] if comparison is None else [metric_column("MAP", _values(precisions), precisions)]
    method = (
        f"{describe_tree(tree)}. {_target_text(tree, relation, 'the given distances')}."
        f"{'' if comparison is None else f' {branch_clusters(tree).definition}'}"
    )
    options = AnswerOptions(
        Vocabulary("node", "distance file", cluster="subtree"),
        columns=tuple(columns),
        baseline="A random matrix",
        notes=tuple(f"{item.result.system}: {item.shape.sentence}" for item in rows),
        details="Details: add -v (all relations, methods).",
    )
    if comparison is None:
        answer = single_answer(order[0], results[0].estimates[mean_rank], options)
    else:
        answer = comparison_answer(comparison, options)
    relations = [ReportColumn("distance file", order, shortens="middle")]
    for name in rows[0].relations:
        scores = [item.relations[name] for item in rows]
        relations.append(ReportColumn(f"MR {name}", [format_value(item.mean_rank, 3) for item in scores], right=True))
        relations.append(ReportColumn(f"MAP {name}", [format_value(item.map, 3) for item in scores], right=True))
    return View(answer, (Section.of_table("All relations", relations, method),))


def placement_view(evaluation: PlacementEvaluation, dim: int) -> View:
    """Which source of information finds the parents of held-out accounts best, and what the sources are."""
    results = evaluation.results
    n_only = evaluation.n_only_children
    only = f"{pluralize(n_only, 'account')} without siblings cannot be placed by a sibling." if n_only else ""
    options = AnswerOptions(
        Vocabulary.nouns(results), notes=tuple(filter(None, [only])), details="Details: add -v (sources)."
    )
    if evaluation.comparison is None:
        answer = single_answer(results[0].system, results[0].estimates["MRR"], options)
    else:
        answer = all_metrics_answer(evaluation.comparison, options)
    sources = (
        f"The parent is ranked among {evaluation.n_candidates:,} nodes: by the names of the account, of the nodes and "
        "of their children, by one known sibling, or by both. A parent without other children is not ranked.",
        "structure alone uses no names: each held-out account is attached to its grandparent, the tree is embedded in "
        f"the Lorentz model with {pluralize(dim, 'dimension')}, and the parent is predicted from the distances.",
    )
    return View(answer, (Section("Sources", notes=sources),))


def dimension_sentence(data: AccountsEvaluation) -> str:
    """In how many dimensions every node finds its parent, for the first embedder that was requested."""
    if data.settings.relation != PARENT:
        return ""
    embedder, best, too_few = _dimensions_of_first(data)
    suffix = f"; {', '.join(too_few)} {'is' if len(too_few) == 1 else 'are'} too few" if too_few else ""
    return f"{nearest_parents(best, embedder)}{suffix}."


def _dimensions_of_first(data: AccountsEvaluation) -> tuple[str, EmbeddingEvaluation, list[str]]:
    """The first embedder that was requested, its best embedding, and the dimensions that are too few for all nodes."""
    requested = [row for row in data.evaluations if row.system not in data.baselines] or list(data.evaluations)
    embedder = requested[0].system.removesuffix(f"-{requested[0].dim}")
    rows = [row for row in requested if row.system.removesuffix(f"-{row.dim}") == embedder]
    rows.sort(key=lambda row: row.dim)
    best = min(rows, key=lambda row: row.n_displaced)
    return embedder, best, [] if best.n_displaced else [str(row.dim) for row in rows if row.dim < best.dim]


def nearest_parents(row: EmbeddingEvaluation, embedder: str) -> str:
    """For how many nodes no parent is the nearest node, without a full stop."""
    embedding = f"In the {embedder} embedding with {pluralize(row.dim, 'dimension')}"
    # A node may have several parents.
    parent = "its parent" if row.has_single_target else "one of its parents"
    if not row.n_displaced:
        return f"{embedding}, every node is nearer to {parent} than to any other node"
    verb, other = ("is", parent) if row.n_displaced == 1 else ("are", parent.replace("its", "their"))
    nodes = f"{row.n_displaced:,} of {pluralize(row.map.n, 'node')}"
    return f"{embedding}, {nodes} {verb} nearer to another node than to {other}"


def disagreement_note(rows: Sequence[EmbeddingEvaluation]) -> str:
    """The embeddings that are best on MR and on MAP, if these are different ones."""
    by_rank = min(rows, key=lambda row: (row.mean_rank.value, -row.map.value))
    by_precision = max(rows, key=lambda row: (row.map.value, -row.mean_rank.value))
    if by_rank.system == by_precision.system:
        return ""
    return (
        f"MR and MAP disagree: {by_rank.system} has the lowest MR ({format_value(by_rank.mean_rank.value, 3)}, MAP "
        f"{format_value(by_rank.map.value, 3)}), {by_precision.system} the highest MAP "
        f"({format_value(by_precision.map.value, 3)}, MR {format_value(by_precision.mean_rank.value, 3)})."
    )


def _training_notes(data: AccountsEvaluation) -> list[str]:
    """Notes on means over seeds, and on two models of hyperbolic space with one embedding."""
    notes = []
    n_seeds = max(len(data.settings.seeds_for(spec)) for spec in data.settings.specs)
    if n_seeds > 1:
        notes.append(f"All scores are means over {n_seeds} seeds; ± is followed by the standard deviation over seeds.")
    if {"lorentz", "poincare"} <= {row.system.rpartition("-")[0] for row in data.evaluations}:
        notes.append("lorentz and poincare are the same embedding in different coordinates; it was trained once.")
    return notes


def _values(estimates: Sequence[Estimate]) -> list[str]:
    decimals = min(shared_decimals(estimate.interval for estimate in estimates), 3)
    return [format_value(estimate.value, decimals) for estimate in estimates]


def accounts_columns(data: AccountsEvaluation) -> list[ReportColumn]:
    """The columns of the table: one row per embedding."""
    rows = data.evaluations
    confidence_level = format_percent(rows[0].map.interval.confidence_level)
    columns = [
        ReportColumn("embedding", [row.system for row in rows], shortens="middle"),
        *_estimated("MR", [row.mean_rank for row in rows], confidence_level, rank=3),
        *_estimated("MAP", [row.map for row in rows], confidence_level, rank=2),
        ReportColumn(SPEARMAN, [format_value(row.spearman.value, 2) for row in rows], right=True, rank=1),
        ReportColumn(
            "median", [format_value(row.median_rank.value, 1) for row in rows], right=True, rank=4, extra=True
        ),
    ]
    if not data.evaluations[0].has_single_target:
        macro = [format_value(row.macro_mean_rank.value, 2) for row in rows]
        columns.append(ReportColumn("MR over nodes", macro, right=True, rank=5, extra=True))
    if data.comparison is not None:
        bands = data.comparison.bands
        columns.append(ReportColumn("band", ["".join(bands[row.system]) for row in rows]))
    return columns


def _estimated(name: str, estimates: Sequence[Estimate], level: str, rank: int) -> list[ReportColumn]:
    """A score and its interval."""
    decimals = min(shared_decimals(item.interval for item in estimates), 3)
    return [
        ReportColumn(name, [format_value(item.value, decimals) for item in estimates], right=True),
        ReportColumn(
            f"{name}, {level}",
            [format_interval(item.interval, decimals) for item in estimates],
            right=True,
            rank=rank,
        ),
    ]


def _target_text(tree: Tree, relation: str, distance: str = "distance") -> str:
    targets = f"{TARGETS[relation]} are"
    if relation == PARENT:
        targets = "its parent is" if tree.is_forest else "its parents are"
    return f"For each node, {targets} ranked among all other nodes by {distance}"


def captions(data: AccountsEvaluation) -> list[str]:
    """What was ranked, how ranks are computed, what is resampled, and what the baselines are."""
    ranks = (
        "other targets are not counted (filtered)"
        if data.evaluations[0].is_filtered
        else "all other nodes are counted (raw)"
    )
    first = data.evaluations[0]
    methods = interval_methods(item for row in data.evaluations for item in (row.mean_rank, row.map))
    notes = [
        f"{_target_text(data.tree, data.settings.relation)}; {ranks}. MR is the mean rank over edges (lower is "
        f"better; {format_value(first.mean_rank.chance, 1)} by chance), MAP the mean average precision over nodes "
        f"({format_value(first.map.chance, 3)} by chance). {SPEARMAN} is Spearman's correlation of "
        "the norm with the position between root (0) and leaf (1).",
        f"Intervals: {methods or 'n/a'}. {data.resampled_branches.caption}",
    ]
    if first.map.undefined:
        nodes = pluralize(first.map.undefined, "node")
        notes.append(f"Left out: {nodes} that {'has' if first.map.undefined == 1 else 'have'} no target to rank.")
    if data.evaluations[0].has_single_target:
        notes.append(SINGLE_TARGET_NOTE)
    if any(row.system.startswith("euclidean") for row in data.evaluations) and len(data.settings.learning_rates) > 1:
        *rates, last_rate = (f"{rate:g}" for rate in data.settings.learning_rates)
        learning_rates = f"{', '.join(rates)} and {last_rate}"
        notes.append(
            f"Embeddings were trained from several initial vectors and with the learning rates {learning_rates}, until "
            "the loss was 0; the run with the lowest loss was kept. combinatorial, euclidean and random are baselines."
        )
    notes += training_relation_notes(data.evaluations, data.settings.relation)
    if data.comparison is not None:
        notes.append(f"Embeddings that share a letter do not differ significantly on {data.comparison.primary}.")
    return notes


def training_relation_notes(rows: Sequence[EmbeddingEvaluation], relation: str) -> list[str]:
    """One note per relation that embeddings were trained on but not evaluated on."""
    notes = []
    for other in dict.fromkeys(row.train_relation for row in rows):
        if other in TARGETS and other != relation:
            names = [row.system for row in rows if row.train_relation == other]
            notes.append(
                f"{join_names(names)} {'was' if len(names) == 1 else 'were'} trained on a different relation from "
                f"the one that is ranked: the positives of a node were {TARGETS[other]}, whereas its ranking targets "
                f"are {TARGETS[relation]}."
            )
    return notes


def seed_section(data: AccountsEvaluation) -> list[Section]:
    """Mean and standard deviation over seeds, if there are several."""
    rows = [row for row in data.evaluations if row.seed_summaries]
    if not rows:
        return []
    names = [rows[0].mean_rank.metric, rows[0].map.metric]
    columns = [
        ReportColumn("embedding", [row.system for row in rows], shortens="middle"),
        *(ReportColumn(name, [str(row.seed_summaries[name]) for row in rows], right=True) for name in names),
    ]
    return [Section.of_table("Over seeds", columns)]


def relation_section(data: AccountsEvaluation) -> list[Section]:
    """MR and MAP of the relations that were not requested."""
    rows = [row for row in data.evaluations if row.other_relations]
    if not rows:
        return []
    columns = [ReportColumn("embedding", [row.system for row in rows], shortens="middle")]
    for relation in rows[0].other_relations:
        scores = [row.other_relations[relation] for row in rows]
        columns.append(ReportColumn(f"MR {relation}", [format_value(item.mean_rank, 2) for item in scores], right=True))
        columns.append(ReportColumn(f"MAP {relation}", [format_value(item.map, 3) for item in scores], right=True))
    return [Section.of_table("Other relations", columns)]


def shape_section(data: AccountsEvaluation) -> list[Section]:
    """The distortion of the distances in the tree, and whether hyperbolic space suits the tree."""
    rows = [(row, row.shape) for row in data.evaluations if row.shape is not None]
    if not rows or data.evaluations[0].tree_shape is None:
        return []
    columns = [
        ReportColumn("embedding", [row.system for row, _ in rows], shortens="middle"),
        ReportColumn("mean distortion", [format_value(shape.mean_distortion, 3) for _, shape in rows], right=True),
        ReportColumn("worst", [format_value(shape.worst_distortion, 2) for _, shape in rows], right=True),
        ReportColumn("Dasgupta cost", [format_value(shape.dasgupta_cost, 3) for _, shape in rows], right=True),
        ReportColumn("curvature", [_curvature(row, shape) for row, shape in rows], right=True),
    ]
    notes = [
        data.evaluations[0].tree_shape.sentence,
        "The distance between two nodes is compared with the number of edges between them. The scale of an embedding "
        "is the mean of distance / edges. Mean distortion is the mean of |distance / (scale x edges) - 1|; worst is "
        "the largest distance / edges divided by the smallest.",
        "Dasgupta cost is the cost of the tree (Dasgupta, 2016) for the similarities exp(-distance / median distance), "
        "divided by the cost of a tree without groups.",
        "Curvature is the curvature of the space after all distances are divided by the scale, so that an edge has "
        "length 1 on average.",
    ]
    return [Section("Distances in the tree", (ReportTable.of(columns),), tuple(notes))]


def _curvature(row: EmbeddingEvaluation, shape: EmbeddingShape) -> str:
    return format_value(-(shape.scale**2), 2) if row.geometry in ("lorentz", "poincare") else "0"


def displaced_section(data: AccountsEvaluation) -> list[Section]:
    """The nodes whose nearest node is not their parent, and how that node is related to them."""
    if not data.displaced:
        return []
    shown = data.displaced[:MAX_DISPLACED]
    labels = {key: node_label(data.tree, key, with_path=False) for item in shown for key in _ids_of(item)}
    # A text model has no dimensions that could be too few.
    cause = (
        "similar names. To check whether accounts are under the wrong parent, use eq accounts misfiled"
        if data.displaced_in.startswith("text:")
        else "too few dimensions"
    )
    columns = [
        ReportColumn("node", [labels[item.id] for item in shown], shortens="end"),
        ReportColumn("parent", [labels[item.parent] for item in shown], shortens="end"),
        ReportColumn("rank of parent", [str(item.parent_rank) for item in shown], right=True),
        ReportColumn("nearest", [labels[item.nearest] for item in shown], shortens="end"),
        ReportColumn("relation", [_relation_of_nearest(item, labels) for item in shown], shortens="end"),
    ]
    verb, parent = ("is", "its parent") if len(data.displaced) == 1 else ("are", "their parent")
    nodes = pluralize(len(data.displaced), "node")
    title = f"{nodes} {verb} nearer to another node than to {parent} in {data.displaced_in}"
    return [Section.of_table(title, columns, f"The usual cause is {cause}.")]


def _ids_of(item: DisplacedNode) -> list[str]:
    return [key for key in (item.id, item.parent, item.nearest, item.suggestion) if key is not None]


def _relation_of_nearest(item: DisplacedNode, labels: Mapping[str, str]) -> str:
    if item.kind != OTHER_PARENT or item.suggestion is None:
        return item.kind
    return "other branch" if item.suggestion == item.nearest else f"under {labels[item.suggestion]}"


def position_section(data: AccountsEvaluation) -> Section:
    """Distances from the origin and from the parents, in the geometry of each embedding."""
    rows = data.evaluations
    from_origin = [_mean_and_deviation(row.origin_distances) for row in rows]
    to_parent = [_mean_and_deviation(row.parent_distances) for row in rows]
    columns = [
        ReportColumn("embedding", [row.system for row in rows], shortens="middle"),
        ReportColumn("geometry", [row.geometry for row in rows]),
        ReportColumn("distance from the origin", from_origin, right=True),
        ReportColumn("distance to the parent", to_parent, right=True),
    ]
    return Section.of_table("Distances, mean ± standard deviation", columns)


def _mean_and_deviation(values: MeanAndDeviation) -> str:
    return f"{format_value(values.mean, 2)} ± {format_value(values.sd, 2)}"


def slice_section(data: AccountsEvaluation) -> list[Section]:
    """The primary metric of the best embedding, or the first one, at every depth and in every branch."""
    leader = None if data.comparison is None else data.comparison.leader
    row, names = data[leader or data.evaluations[0].system], data.names
    shown = [item for item in row.slices if item.estimate.n]
    if not shown:
        return []
    values = [names.get(item.value, item.value) if item.name == "branch" else item.value for item in shown]
    columns = [
        ReportColumn("slice", [item.name for item in shown]),
        ReportColumn("", values, shortens="end"),
        ReportColumn("n", [f"{format_count(item.estimate.n)}{'*' if item.few else ''}" for item in shown], right=True),
        ReportColumn("estimate", [format_value(item.estimate.value, 2) for item in shown], right=True),
        ReportColumn("interval", [format_interval(item.estimate.interval, 2) for item in shown], right=True, rank=1),
    ]
    note = "* few nodes: the estimate is unreliable." if any(item.few for item in shown) else ""
    return [Section.of_table(f"{shown[0].estimate.metric} of {row.system} by depth and branch", columns, note)]


def summary_line(row: EmbeddingEvaluation) -> str:
    """The scores of one embedding in one line."""
    parts = [
        f"{name} {format_value(item.value)} {_summary_interval(item.interval)}"
        for name, item in (
            (row.mean_rank.metric, row.mean_rank),
            ("MAP", row.map),
            (SPEARMAN, row.spearman),
        )
    ]
    return f"{'; '.join(parts)}."


def _summary_interval(interval: Interval) -> str:
    return f"(no interval: {interval.reason})" if interval.reason else format_interval(interval, 3)


def chance_note(row: EmbeddingEvaluation) -> str:
    """The scores of a random embedding."""
    chance = format_value(row.mean_rank.chance, 1), format_value(row.map.chance, 3)
    return f"By chance {row.mean_rank.metric} would be {chance[0]} and MAP {chance[1]}."


WIDTH = 100
NAMES = 26
CELL = 9
DASHES = "-" * WIDTH
LAYOUT_METRICS: tuple[tuple[str, str, float], ...] = (
    ("mean_rank", "Mean Rank (MR)", 1.0),
    ("median_rank", "Median Rank", 1.0),
    ("map", "MAP (%)", 100.0),
    ("spearman", "Spearman ρ (%)", 100.0),
)
"""The rows: the column of the data frame, the printed name, and the factor in print."""
BASELINE_NOTE = "For combinatorial, tuned Euclidean and random baselines: evaluate_tree(tester.tree, ...)."
BEST_PER_ROW = (
    ("mean_rank", "Best Mean Rank", 1.0, "", min),
    ("map", "Best MAP", 100.0, " %", max),
    ("spearman", "Best Spearman ρ", 100.0, " %", max),
)


def ranking_caption(relation: str, filtered: bool) -> str:
    """What was ranked; published values are comparable only for filtered ranks of ancestors or of the closure.

    >>> ranking_caption("ancestors", True)
    'By embedding dimension, as Nickel & Kiela (2018) report it (targets: the ancestors of each node; filtered ranks)'
    """
    ranks = "filtered" if filtered else "raw"
    published = ", as Nickel & Kiela (2018) report it" if relation != PARENT and filtered else ""
    return f"By embedding dimension{published} ({RANKED[relation]} of each node; {ranks} ranks)"


def chart_of_accounts_table(
    dims: Sequence[int], scores: Mapping[str, Sequence[float]], title: str, caption: str = "By embedding dimension"
) -> str:
    """The table as text. ``scores`` are ranks and fractions, one per dimension, by column of the data frame.

    >>> print(chart_of_accounts_table([2, 5], {"mean_rank": [4, 2], "map": [0.5, 0.75]}, "Accounts").splitlines()[9])
    Mean Rank (MR)            |     4.00     2.00
    """
    lines = ["=" * WIDTH, title.center(WIDTH).rstrip(), "=" * WIDTH, ""]
    lines += [f"{caption}:", DASHES, ""]
    lines += [_line("Metric", [str(dim) for dim in dims]), DASHES]
    lines += [
        _line(name, [format_value(scale * float(value), 2) for value in scores[column]])
        for column, name, scale in LAYOUT_METRICS
        if column in scores
    ]
    return "\n".join([*lines, DASHES, "", "Summary:", *_summary(dims, scores)]) + "\n"


def _line(name: str, cells: Sequence[str]) -> str:
    return f"{name:<{NAMES}}|" + "".join(f"{cell:>{CELL}}" for cell in cells)


def _summary(dims: Sequence[int], scores: Mapping[str, Sequence[float]]) -> list[str]:
    lines = []
    for column, name, scale, sign, choose in BEST_PER_ROW:
        known = [(float(value), dim) for value, dim in zip(scores.get(column, ()), dims, strict=False)]
        known = [item for item in known if not isnan(item[0])]
        if not known:
            lines.append(f"  {name}: n/a")
            continue
        value, dim = choose(known, key=lambda item: item[0])
        lines.append(f"  {name}: {format_value(scale * value, 2)}{sign} at dimension {dim}")
    return lines


def chart_of_accounts_summary(row: EmbeddingEvaluation) -> str:
    """One embedding as lines of text: every score with its interval."""
    confidence_level = format_percent(row.map.interval.confidence_level)
    lines = [
        "=" * WIDTH,
        f"{row.system}: {len(row.vectors.ids)} nodes, {row.geometry}, {row.dim} dimensions",
        "=" * WIDTH,
        f"{'':<{NAMES}}|{'estimate':>12}   {confidence_level} interval",
        DASHES,
    ]
    for name, title, scale in LAYOUT_METRICS:
        estimate = getattr(row, name)
        interval = estimate.interval
        if interval.known:
            interval = type(interval)(
                scale * interval.low, scale * interval.high, interval.confidence_level, interval.method
            )
        lines.append(f"{title:<{NAMES}}|{format_value(scale * estimate.value, 2):>12}   {format_interval(interval, 2)}")
    lines.append(DASHES)
    described = [("Norm", row.norms), ("Parent-child distance", row.parent_distances)]
    if row.origin_distances != row.norms:
        described.insert(1, ("Distance from the origin", row.origin_distances))
    for title, values in described:
        sd = format_value(values.sd, 3)
        lines.append(f"{title:<{NAMES}}|{format_value(values.mean, 3):>12}   standard deviation {sd}")
    chance_values = format_value(row.mean_rank.chance, 1), format_value(100 * row.map.chance, 2)
    chance = f"By chance MR would be {chance_values[0]} and MAP {chance_values[1]} %."
    return (
        "\n".join([*lines, DASHES, chance, BASELINE_NOTE, *([SINGLE_TARGET_NOTE] if row.has_single_target else [])])
        + "\n"
    )
