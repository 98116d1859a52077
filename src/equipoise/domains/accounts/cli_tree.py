"""``eq accounts``: the tree of the command line, and the commands check, misfiled, place, nearest and shape."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields, replace
from importlib import import_module
from math import isclose, isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from equipoise.cli import options
from equipoise.cli.output import DONE, GATE_FAILED, Output, pass_output
from equipoise.errors import InputError, ParameterError, UndefinedError, UnknownNameError

if TYPE_CHECKING:
    from equipoise.config import StatsConfig
    from equipoise.domains.accounts.checks import TreeProblems
    from equipoise.domains.accounts.misfiled import MisfiledAccounts
    from equipoise.domains.accounts.placement import ParentCandidate, PlacementEvaluation
    from equipoise.domains.accounts.trees.tree import Tree
    from equipoise.report.terminal import ReportColumn, TerminalTable
    from equipoise.types import Finding


SOURCES = ("database", "tree", "edges", "gnucash", "codes", "wordnet", "obo")
READERS = {
    "gnucash": ("equipoise.domains.accounts.trees.read", "read_gnucash"),
    "obo": ("equipoise.domains.accounts.trees.read", "read_obo_tree"),
}
"""Readers of a file without options; imported when they are needed."""
_WORDNET_PARTS = ("noun", "verb", "mammal")
MAMMAL = "mammal.n.01"


@dataclass(frozen=True)
class TreeSource:
    """The options of the tree. Exactly one of ``SOURCES`` is set."""

    database: str | None
    business_id: str | None
    table: str | None
    columns: str | None
    tree: str | None
    edges: str | None
    closure: bool | None
    gnucash: str | None
    codes: str | None
    code_widths: str | None
    wordnet: str | None
    wordnet_folder: str | None
    obo: str | None
    subtree: str | None
    add_root: bool
    orphans: str

    @property
    def named(self) -> dict[str, str]:
        """The sources that are set."""
        sources = {name: getattr(self, name) for name in SOURCES}
        return {name: word for name, word in sources.items() if word is not None}

    def read(self) -> Tree:
        """The tree."""
        from equipoise.domains.accounts.trees.tree import InvalidTreeError, with_orphans

        named = self.named
        if len(named) != 1:
            several = " and ".join(f"--{name}" for name in named)
            message = f"several trees were given: {several}" if named else "no tree was given"
            raise ParameterError(message, hint="give one, such as --tree accounts.csv or --database books.db")
        self._check_options_of_source()
        try:
            tree = self._read_source(*next(iter(named.items())))
        except InvalidTreeError as error:
            if error.rows is None:
                raise
            if self.orphans == "error":
                error.hint = f"{error.hint}; eq accounts check lists all problems"
                raise
            tree = with_orphans(error.rows, self.orphans)
        if self.subtree is not None:
            source = tree.source.removesuffix(f" below {MAMMAL}") if self.wordnet else tree.source
            tree = replace(tree.subtree(self.subtree), source=f"{source} below {self.subtree}")
        return tree.rooted() if self.add_root else tree

    def _read_source(self, kind: str, word: str) -> Tree:
        """The whole tree."""
        if kind == "database":
            return self._from_database(word)
        if kind == "edges":
            from equipoise.domains.accounts.trees.files import read_edges

            return read_edges(word, closure=self.closure)
        if kind == "wordnet":
            return _wordnet(word, self.wordnet_folder)
        if kind == "codes":
            from equipoise.domains.accounts.trees.files import read_codes

            return self._check_has_parents(read_codes(word, widths=_parse_widths(self.code_widths)))
        if kind == "tree":
            from equipoise.domains.accounts.trees.read import read_tree

            return read_tree(word, self.business_id, columns=self._columns())
        module, name = READERS[kind]
        reader: Callable[[str], Tree] = getattr(import_module(module), name)
        return reader(word)

    def _check_has_parents(self, tree: Tree) -> Tree:
        """Raise an error if no code is a prefix of another: most often the codes have no separators."""
        if len(tree.edges) or len(tree) < 2:
            return tree
        raise InputError(
            f"{tree.source}: no code is a prefix of another, so no code has a parent",
            hint="--code-widths 1,1,2 splits codes such as 1120 into 1, 1 and 20"
            if self.code_widths is None
            else "check the widths of the parts, from the left",
        )

    def _from_database(self, url: str) -> Tree:
        from equipoise.domains.accounts.trees.sql import TableColumns, read_sql

        chosen: dict[str, Any] = {}
        if self.table is not None:
            schema, _, table = self.table.rpartition(".")
            chosen = {"table": table} | ({"schema": schema} if schema else {})
        return read_sql(url, self.business_id, columns=TableColumns(**self._columns()), **chosen)

    def _columns(self) -> dict[str, str]:
        """The columns of ``--columns``."""
        from equipoise.domains.accounts.trees.sql import TableColumns

        known = [field.name for field in fields(TableColumns)]
        return {} if self.columns is None else _parse_columns(self.columns, known)

    def _check_options_of_source(self) -> None:
        """Raise an error for an option of another source."""
        sources_of_option = {
            "--business-id": (self.business_id, ("database", "tree")),
            "--table": (self.table, ("database",)),
            "--columns": (self.columns, ("tree", "database")),
            "--code-widths": (self.code_widths, ("codes",)),
            "--closure": (self.closure, ("edges",)),
            "--wordnet-folder": (self.wordnet_folder, ("wordnet",)),
        }
        for option, (value, sources) in sources_of_option.items():
            if value is not None and not set(sources) & set(self.named):
                listed = " or ".join(f"--{source}" for source in sources)
                raise ParameterError(f"{option} needs {listed}", hint=f"leave it out, or add {listed}")


def _wordnet(part: str, folder: str | None) -> Tree:
    from equipoise.domains.accounts.trees.read import FOLDER, read_wordnet

    if part == "mammal":
        return read_wordnet("noun", root=MAMMAL, folder=folder or FOLDER)
    return read_wordnet(part, folder=folder or FOLDER)


def _parse_widths(words: str | None) -> list[int] | None:
    """``1,2,2`` as numbers."""
    if words is None:
        return None
    parts = [part.strip() for part in words.split(",")]
    if not all(part.isdigit() for part in parts):
        raise ParameterError(f"--code-widths {words} is not a list of integers", hint="for example 1,2,2")
    return [int(part) for part in parts]


def _parse_columns(words: str, known: list[str]) -> dict[str, str]:
    """``id=code,parent=above`` as a mapping."""
    columns = {}
    for word in words.split(","):
        name, equals, column = word.partition("=")
        if not equals or not column:
            raise ParameterError(
                f"--columns {words} has a part without a column: {word!r}", hint="write id=number,parent=parent_number"
            )
        if name not in known:
            raise UnknownNameError.of("column of accounts", name, known, more=f"there are: {', '.join(known)}")
        columns[name] = column
    return columns


def tree_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options of the tree; the command gets one ``source``."""
    tree = click.option("--tree", metavar="FILE", help=f"{FILE_FORMATS}; the format is detected.")
    return options.options_as(TreeSource, "source", tree, *_TREE_OPTIONS, section="Tree")(command)


def file_or_tree_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The argument FILE and the options of the tree; the command gets ``file`` and one ``source``."""
    tree = click.option("--tree", metavar="FILE", help=f"The same as FILE. {FILE_FORMATS}; the format is detected.")
    file = click.argument("file", metavar="[FILE]", required=False)
    return file(options.options_as(TreeSource, "source", tree, *_TREE_OPTIONS, section="Tree")(command))


FILE_FORMATS = "A CSV, TSV, JSON, GnuCash or OBO file"
_TREE_OPTIONS: tuple[options.Decorator, ...] = (
    click.option("--database", metavar="URL", help="books.db, sqlite:///books.db, postgresql://..."),
    click.option("--business-id", metavar="ID", help="The business, if the database has several."),
    click.option("--table", metavar="[SCHEMA.]NAME", help="The table of the database.  [default: accounts]"),
    click.option(
        "--columns",
        metavar="NAME=COLUMN,...",
        help="The columns to read, such as id=number,parent=parent_number.",
    ),
    click.option("--edges", metavar="FILE", help="Pairs of child and parent, or of descendant and ancestor."),
    click.option(
        "--closure/--no-closure",
        default=None,
        help="Whether --edges lists all ancestors.  [default: detected]",
    ),
    click.option("--gnucash", metavar="FILE", help="A GnuCash file, XML or SQLite."),
    click.option("--codes", metavar="FILE", help="Codes that contain the hierarchy, such as 102-0001-003."),
    click.option("--code-widths", metavar="N,N,...", help="Widths of the parts of --codes without separators."),
    click.option(
        "--wordnet",
        type=options.ChoiceWithHint("part of WordNet", lambda: _WORDNET_PARTS),
        help="Nouns, verbs or mammals of WordNet.",
    ),
    click.option(
        "--wordnet-folder",
        metavar="FOLDER",
        help="The folder of WordNet.  [default: /usr/share/wordnet]",
    ),
    click.option("--obo", metavar="FILE", help="An ontology in OBO format."),
    click.option("--subtree", metavar="ID", help="Only this node and its descendants."),
    click.option("--add-root", is_flag=True, help="Add one root above all roots."),
    options.one_of(
        "--orphans",
        "orphans",
        options.names_in("equipoise.domains.accounts.trees.tree", "ORPHAN_POLICIES"),
        "error",
        "If a parent does not exist: stop with an error, make the node a root, or drop it with its descendants.",
    ),
)


CHECK_HELP = """
\b
  eq accounts check accounts.csv
  eq accounts check --database books.db --business-id acme

List all problems in a tree: duplicate ids and edges, nodes that are their own parent, parents that do not
exist, cycles, missing roots or edges, empty ids and names, siblings with the same name, and chains of single
children. Also show the number of nodes at each depth. The exit status is 1 if a finding is an issue, marked
with an exclamation mark.
"""


@options.command(help=CHECK_HELP)
@file_or_tree_options
@options.table_options()
@options.output_options
@pass_output
def check(out: Output, /, file: str | None, source: TreeSource) -> int:
    """See ``CHECK_HELP``."""
    from equipoise.report.terminal import Paragraph, findings_section
    from equipoise.types import Severity

    problems = read_problems(with_file(source, file))
    summary = map(Paragraph, _summary(problems))
    if out.json:
        out.data(_problems_to_dict(problems))
    elif out.to:
        out.show(*summary, Paragraph(""), _findings_table(problems.findings))
    else:
        out.show(*summary, *findings_section(problems.findings, verbose=out.verbose))
    return GATE_FAILED if any(finding.severity == Severity.ISSUE for finding in problems.findings) else DONE


def with_file(source: TreeSource, file: str | None) -> TreeSource:
    """The tree of the options, or the file of the argument."""
    if file is None:
        return source
    if source.named:
        option = f"--{next(iter(source.named))}"
        raise ParameterError(f"two trees were given: {file} and {option}", hint="give one of them")
    return replace(source, tree=file)


def read_problems(source: TreeSource) -> TreeProblems:
    """The problems of the tree that the options name, valid or not."""
    from equipoise.domains.accounts.checks import tree_problems
    from equipoise.domains.accounts.trees.tree import InvalidTreeError, TreeRows

    try:
        tree = source.read()
    except InvalidTreeError as error:
        if error.rows is None:
            raise
        return tree_problems(error.rows, None)
    nodes = [(key, "" if key in tree.unnamed else name) for key, name in zip(tree.ids, tree.names, strict=True)]
    return tree_problems(TreeRows(nodes, tree.named_edges(), tree.source), tree)


MAX_LEVELS = 20
"""Levels of a tree whose nodes are counted one by one."""


def _summary(problems: TreeProblems) -> list[str]:
    """The size of the tree, the number of problems, and the nodes by depth."""
    from equipoise.checks.base import pluralize
    from equipoise.domains.accounts.report import describe_tree

    rows, tree = problems.rows, problems.tree
    count = pluralize(len(problems.findings), "finding") if problems.findings else "no problems"
    by_depth = problems.nodes_by_depth
    shown = [f"{n_nodes:,} at {depth}" for depth, n_nodes in enumerate(by_depth[:MAX_LEVELS])]
    if len(by_depth) > MAX_LEVELS:
        shown.append(f"{sum(by_depth[MAX_LEVELS:]):,} at {MAX_LEVELS} or more")
    depths = ", ".join(shown) or "n/a"
    if tree is None:
        size = f"{pluralize(len(rows.nodes), 'node')}, {pluralize(len(rows.edges), 'edge')}"
        first = f"{rows.source}: {size}, not a tree; {count}."
    else:
        first = f"{describe_tree(tree)}, {pluralize(len(tree.roots), 'root')}; {count}."
    return [first, f"Nodes by depth: {depths}."]


def _findings_table(findings: Sequence[Finding]) -> TerminalTable:
    """One row per finding, for the formats of ``--to``."""
    from equipoise.report.terminal import ReportColumn, TerminalTable
    from equipoise.types import with_label

    return TerminalTable(
        [
            ReportColumn("code", [finding.code for finding in findings]),
            ReportColumn("severity", [str(finding.severity) for finding in findings]),
            ReportColumn("message", [with_label(finding.subject, finding.message) for finding in findings]),
            ReportColumn("hint", [finding.hint for finding in findings]),
        ]
    )


def _problems_to_dict(problems: TreeProblems) -> dict[str, object]:
    return {
        "source": problems.rows.source,
        "rows": len(problems.rows.nodes),
        "is_tree": problems.tree is not None,
        "nodes_by_depth": problems.nodes_by_depth,
        "findings": [
            {
                "code": finding.code,
                "severity": str(finding.severity),
                "message": finding.message,
                "hint": finding.hint,
                "evidence": list(finding.evidence),
            }
            for finding in problems.findings
        ],
    }


model_option = click.option(
    "--model", default="tfidf", show_default=True, metavar="NAME", help="The text model that compares names."
)

MISFILED_HELP = """
\b
  eq accounts misfiled accounts.csv
  eq accounts misfiled accounts.csv --model minilm --max-share 0.05

List accounts whose names fit better under another parent. Each account without children is treated in turn as a new
one: all possible parents are ranked by their own names and by the names of their other children. An account is suspect
if the most probable parent is in another part of the tree. If account numbers follow the tree, an account whose number
is next to that of a sibling is not suspect. Suspects are sorted by the ratio of two confidences: that of the suggested
parent to that of the current parent. To estimate how many mistakes would be found, some accounts are moved to random
parents in a copy of the tree.
"""


@options.command(help=MISFILED_HELP)
@file_or_tree_options
@model_option
@click.option(
    "--min-confidence",
    type=click.FloatRange(0.0, 1.0),
    help="List an account only if another parent has at least this confidence.  [default: 0.2 if account numbers "
    "follow the tree, otherwise 0.5]",
)
@click.option(
    "--max-share",
    type=click.FloatRange(0.0, 1.0),
    default=0.02,
    show_default=True,
    help="List at most this share of the accounts, or five if that is more. 1 lists all suspects.",
)
@options.seed_option
@options.model_device_option
@options.table_options()
@options.output_options
@pass_output
def misfiled(
    out: Output,
    /,
    file: str | None,
    source: TreeSource,
    model: str,
    min_confidence: float | None,
    max_share: float,
    seed: int,
    device: str | None,
) -> int:
    """See ``MISFILED_HELP``."""
    from equipoise.domains.accounts.misfiled import misfiled_accounts
    from equipoise.domains.accounts.placement import AccountPlacer
    from equipoise.domains.accounts.report import node_label
    from equipoise.report.terminal import Paragraph, ReportColumn, TerminalTable

    spec = options.models_on_device([model], device, out)[model]
    tree = with_file(source, file).read()
    n_accounts = int(((tree.first_parents >= 0) & (tree.down.counts == 0)).sum())
    with out.working(f"loading {model}"):
        placer = AccountPlacer(tree, spec)
    with out.count("comparing names", n_accounts) as count:
        listed = misfiled_accounts(
            placer, min_confidence=min_confidence, max_share=max_share, seed=seed, progress=count
        )
    if out.json:
        counts = {"accounts": listed.n_accounts, "suspects": listed.n_suspects, "uses_numbers": listed.uses_numbers}
        rate = None if isnan(listed.detection_rate) else listed.detection_rate
        facts = {"source": tree.source, "model": model, **counts, "detection_rate": rate}
        out.data({**facts, "misfiled": [asdict(item) for item in listed]})
        return DONE
    decision, *notes = _misfiled_summary(tree, model, listed)
    out.show(Paragraph(decision, style="bold"))
    if listed:
        columns = [
            # The next column has the path of its parent.
            ReportColumn("account", [node_label(tree, item.id, with_path=False) for item in listed], shortens="end"),
            ReportColumn("current parent", [node_label(tree, item.parent) for item in listed], shortens="end"),
            ReportColumn("likely parent", [node_label(tree, item.likely_parent) for item in listed], shortens="end"),
            _confidence_column("confidence", [item.confidence for item in listed]),
            _confidence_column("confidence (current)", [item.parent_confidence for item in listed]),
        ]
        out.show(Paragraph(""), TerminalTable(columns, max_rows=0 if out.verbose else MAX_ROWS))
    out.show(*([] if out.quiet else map(Paragraph, notes)))
    return DONE


def _confidence_column(head: str, confidences: Sequence[float]) -> ReportColumn:
    from equipoise.report.terminal import ReportColumn

    cells = [_confidence(value) for value in confidences]
    return ReportColumn(head, cells, right=True, values={head: confidences})


def _confidence(value: float) -> str:
    """A probability in percent.

    >>> _confidence(0.724), _confidence(0.0004)
    ('72 %', '<1 %')
    """
    percent = f"{100 * value:.0f} %"
    return "<1 %" if percent == "0 %" else percent


def _misfiled_summary(tree: Tree, model: str, listed: MisfiledAccounts) -> list[str]:
    """What is listed, what to check first, and the share of simulated mistakes that are found."""
    from equipoise.checks.base import pluralize
    from equipoise.domains.accounts.report import node_label

    accounts = f"{pluralize(listed.n_accounts, 'account')} without children"
    basis = "names and the order of numbers" if listed.uses_numbers else "names"
    rate = ""
    if not isnan(listed.detection_rate):
        percent = _confidence(listed.detection_rate)
        rate = f"In a simulation, {percent} of the accounts that were moved to a random parent were found."
    if not listed:
        decision = f"{tree.source}: none of {accounts} is likely misfiled, according to {basis} ({model})."
        return [decision, rate] if rate else [decision]
    first = listed[0]
    lines = [
        f"{len(listed):,} of {accounts} may be misfiled, according to {basis} ({model}). Check first: "
        f"{node_label(tree, first.id)} is under {node_label(tree, first.parent)}, but its name fits "
        f"{node_label(tree, first.likely_parent)} better."
    ]
    if listed.n_suspects > len(listed):
        rest = listed.n_suspects - len(listed)
        more = f"{rest:,} more {'has' if rest == 1 else 'have'} weaker evidence: add --max-share 1."
        rate = f"{rate} {more}".strip()
    return [*lines, rate] if rate else lines


MAX_ROWS = 10
MAX_PARENTS = 3
"""Parents that the answer of ``place`` names if none has a clear lead."""


PLACE_HELP = """
\b
  eq accounts place accounts.csv --name "Office petty cash"
  eq accounts place accounts.csv --name "Bank overdraft" --sibling 1121
  eq accounts place accounts.csv --held-out 0.2

Rank possible parents for a new account: by its name, by its known siblings, or by both. Confidences are calibrated on
the tree itself, by leaving out each account without children in turn.

With --held-out a share of the accounts without children is held out, and their parents are ranked by name, by one
sibling, and by both. The row "structure alone" uses no names: each held-out account is attached to its grandparent,
the tree is embedded, and the parent is predicted from the distances.
"""


@options.command(help=PLACE_HELP)
@file_or_tree_options
@click.option("--name", "account_name", default="", metavar="TEXT", help="The name of the new account.")
@click.option(
    "--sibling",
    "siblings",
    cls=options.MultiValueOption,
    metavar="ID ...",
    help="Accounts that have the same parent, by id, name or path of names.",
)
@model_option
@click.option(
    "-k", "--top-k", "k", type=click.IntRange(min=1), default=5, show_default=True, help="Number of parents to list."
)
@click.option(
    "--held-out",
    type=click.FloatRange(0.0, 1.0, min_open=True, max_open=True),
    help="Hold out this share of the accounts without children, and evaluate on them.",
)
@click.option(
    "--dim",
    type=click.IntRange(min=2),
    default=5,
    show_default=True,
    help="Dimensions of the embedding for --held-out.",
)
@options.stats_options()
@options.model_device_option
@options.table_options()
@options.output_options
@pass_output
def place(
    out: Output,
    /,
    file: str | None,
    source: TreeSource,
    account_name: str,
    siblings: tuple[str, ...],
    model: str,
    k: int,
    held_out: float | None,
    dim: int,
    device: str | None,
    config: StatsConfig,
) -> int:
    """See ``PLACE_HELP``."""
    from equipoise.domains.accounts.placement import AccountPlacer
    from equipoise.domains.accounts.report import node_label
    from equipoise.report.terminal import Paragraph, ReportColumn, TerminalTable

    if held_out is not None and (account_name or siblings):
        raise ParameterError("--held-out evaluates accounts of the tree", hint="leave out --name and --sibling")
    spec = options.models_on_device([model], device, out)[model]
    tree = with_file(source, file).read()
    if held_out is not None:
        return _show_placement(out, tree, (model, spec), held_out, dim, config)
    ranked = AccountPlacer(tree, spec).rank(account_name, siblings, len(tree))
    candidates = ranked[:k]
    if out.json:
        out.data({"source": tree.source, "model": model, "parents": [asdict(item) for item in candidates]})
        return DONE
    columns = [
        ReportColumn("rank", [str(rank) for rank in range(1, len(candidates) + 1)], right=True),
        ReportColumn("parent", [node_label(tree, item.id) for item in candidates], shortens="end"),
        _confidence_column("confidence", [item.confidence for item in candidates]),
    ]
    if account_name:
        columns.append(ReportColumn("most similar child", [item.similar_child for item in candidates], shortens="end"))
    what = repr(account_name) if account_name else "An account with these siblings"
    out.show(Paragraph(_place_answer(tree, what, ranked), style="bold"), Paragraph(""), TerminalTable(columns))
    return DONE


def _place_answer(tree: Tree, what: str, ranked: Sequence[ParentCandidate]) -> str:
    """The parent with a clear lead: a probability of at least one half, or twice that of the next; else the nearest."""
    from equipoise.domains.accounts.report import node_label

    best = ranked[0]
    n_best = sum(isclose(item.confidence, best.confidence) for item in ranked)
    if n_best > MAX_PARENTS:
        return f"No parent is the most likely one: {n_best:,} have the same confidence, {_confidence(best.confidence)}."
    alternatives = [item for item in ranked[1:] if 2.0 * item.confidence > best.confidence]
    if not alternatives or (best.confidence >= 0.5 and n_best == 1):
        confidence = _confidence(best.confidence)
        return f"{what} most likely belongs under {node_label(tree, best.id)} (confidence {confidence})."
    named = [best, *alternatives][:MAX_PARENTS]
    parents = [f"{node_label(tree, item.id)} ({_confidence(item.confidence)})" for item in named]
    n_others = 1 + len(alternatives) - len(named)
    others = [f"{n_others:,} with less"] if n_others else []
    *first, last = [*parents, *others]
    return f"Inconclusive: {', '.join(first)} or {last}."


def _show_placement(
    out: Output, tree: Tree, named_model: tuple[str, str], held_out: float, dim: int, config: StatsConfig
) -> int:
    """Evaluate on held-out accounts; ``named_model`` is the name of the model and its spec."""
    from equipoise.domains.accounts.embedders import tree_embedder
    from equipoise.domains.accounts.placement import evaluate_placement
    from equipoise.domains.accounts.report import placement_view
    from equipoise.progress import report_share

    model, spec = named_model
    with out.working("placing held-out accounts"):
        evaluation = evaluate_placement(
            tree,
            spec,
            model_name=model,
            held_out=held_out,
            embed=lambda part: tree_embedder("lorentz").fit(part, dim, config.seed, progress=report_share),
            config=config,
        )
    if out.json:
        out.data(_placement_to_dict(tree, model, evaluation))
    else:
        out.view(placement_view(evaluation, dim))
    return DONE


def _placement_to_dict(tree: Tree, model: str, evaluation: PlacementEvaluation) -> dict[str, Any]:
    return {
        "source": tree.source,
        "model": model,
        "held_out": evaluation.n_held_out,
        "only_children": evaluation.n_only_children,
        "candidates": evaluation.n_candidates,
        "systems": [result.to_dict() for result in evaluation.results],
        "comparison": None if evaluation.comparison is None else evaluation.comparison.to_dict(),
    }


embedding_options = options.joined(
    click.option(
        "--system",
        metavar="NAME",
        help="An embedding in the folder, such as lorentz-5.  [default: combinatorial-2 or, without it, the hyperbolic "
        "one with the fewest dimensions]",
    ),
    click.option(
        "--geometry",
        metavar="NAME",
        help="The geometry of a file that does not record it, such as CSV.  [default: lorentz if all points are on "
        "the hyperboloid, otherwise euclidean]",
    ),
)
"""Which vectors of a folder or file are used, and in which geometry."""

NEAREST_HELP = """
\b
  eq accounts nearest results/ 1110
  eq accounts nearest account_vectors.npz 1110 --tree accounts.csv -k 5

List the nearest neighbours of an account in an embedding, and the ancestors that the embedding predicts: the nearest
node with a smaller norm, then the node nearest to that one with a still smaller norm, and so on. The account is given
by its id, its name, or its path of names such as Assets:Cash. RESULTS is a folder written by eq accounts evaluate, or a
file of vectors; a file also needs the tree.
"""


@options.command(help=NEAREST_HELP)
@click.argument("results", metavar="RESULTS")
@click.argument("node", metavar="ID")
@tree_options
@embedding_options
@click.option(
    "-k",
    "--top-k",
    "k",
    type=click.IntRange(min=1),
    default=10,
    show_default=True,
    help="Number of neighbours to list.",
)
@options.table_options()
@options.output_options
@pass_output
def nearest(
    out: Output, /, results: str, node: str, source: TreeSource, system: str | None, geometry: str | None, k: int
) -> int:
    """See ``NEAREST_HELP``."""
    from equipoise.domains.accounts.cli import read_tree_charts
    from equipoise.domains.accounts.placement import ancestors_by_norm, nearest_nodes
    from equipoise.domains.accounts.report import node_label
    from equipoise.report.terminal import Paragraph, ReportColumn, TerminalTable
    from equipoise.stats.formatting import format_value

    stored = read_tree_charts(out, Path(results), source, system, geometry)
    tree, vectors = stored.tree, stored.vectors
    neighbors, ancestors = nearest_nodes(tree, vectors, node, k), ancestors_by_norm(tree, vectors, node)
    if out.json:
        listed = {"nearest": [asdict(item) for item in neighbors], "ancestors": [asdict(item) for item in ancestors]}
        out.data({"system": stored.system, "node": node, **listed})
        return DONE
    parents = {tree.ids[parent] for parent in tree.parents(tree.position(node)).tolist()}
    columns = [
        ReportColumn("rank", [str(rank) for rank in range(1, len(neighbors) + 1)], right=True),
        ReportColumn("account", [node_label(tree, item.id) for item in neighbors], shortens="end"),
        ReportColumn("distance", [format_value(item.distance, 3) for item in neighbors], right=True),
        ReportColumn("", ["parent" if item.id in parents else "" for item in neighbors]),
    ]
    path = " > ".join(node_label(tree, item.id) for item in reversed(ancestors)) or "none: no norm is smaller"
    out.show(
        Paragraph(f"Nearest accounts of {node_label(tree, node)} in {stored.system}:"),
        Paragraph(""),
        TerminalTable(columns),
        Paragraph(""),
        Paragraph(f"Ancestors by norm: {path}."),
    )
    return DONE


SHAPE_HELP = """
\b
  eq accounts shape accounts.csv
  eq accounts shape --distances distances.csv

Compute the delta-hyperbolicity, which shows how tree-like a hierarchy is: 0 for a tree, usually larger if nodes have
several parents. With --distances the delta-hyperbolicity of a distance matrix is computed instead (.npy, or CSV with
or without ids). eq accounts evaluate --distances ranks by such distances.
"""


@options.command(help=SHAPE_HELP)
@file_or_tree_options
@click.option("--distances", metavar="FILE", help="A square symmetric matrix of distances.")
@options.table_options()
@options.output_options
@pass_output
def shape(out: Output, /, file: str | None, source: TreeSource, distances: str | None) -> int:
    """See ``SHAPE_HELP``."""
    from equipoise.domains.accounts.distances import read_distances
    from equipoise.domains.accounts.shape import shape_of_distances, tree_shape
    from equipoise.report.terminal import Paragraph, ReportColumn, TerminalTable
    from equipoise.stats.formatting import format_value

    source = with_file(source, file)
    if distances is not None:
        if source.named:
            raise ParameterError("a tree and --distances were given", hint="give one, or use eq accounts evaluate")
        result = shape_of_distances(read_distances(distances)[1])
    else:
        tree = source.read()
        of_tree = tree_shape(tree)
        if of_tree is None:
            raise UndefinedError(f"{tree.source} has fewer than four nodes", hint="hyperbolicity needs four points")
        result = of_tree
    if out.json:
        out.data(asdict(result))
        return DONE
    values = {
        "nodes": f"{result.n_nodes}",
        "delta-hyperbolicity": format_value(result.delta, 3),
        "diameter": format_value(result.diameter, 3),
        "relative to the diameter": format_value(result.relative_delta, 3),
    }
    table = TerminalTable([ReportColumn(name, [value], right=True) for name, value in values.items()])
    if out.to:
        out.show(Paragraph(result.sentence), Paragraph(""), table)
    else:
        out.show(Paragraph(result.sentence))
    return DONE
