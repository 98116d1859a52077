"""The tree of the command line: a database, a file, GnuCash, edges, codes, WordNet or OBO."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

from equipoise.cli import options
from equipoise.errors import InputError, ParameterError

if TYPE_CHECKING:
    from equipoise.domains.accounts.trees.tree import Tree

SOURCES = ("database", "tree", "edges", "gnucash", "codes", "wordnet", "obo")
READERS = {
    "gnucash": ("equipoise.domains.accounts.trees.formats", "read_gnucash"),
    "obo": ("equipoise.domains.accounts.trees.formats", "read_obo_tree"),
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
        from equipoise.domains.accounts.trees.problems import with_orphans
        from equipoise.domains.accounts.trees.tree import InvalidTreeError

        named = self.named
        if len(named) != 1:
            several = " and ".join(f"--{name}" for name in named)
            message = f"{several} are {len(named)} trees" if named else "there is no tree"
            raise ParameterError(message, hint="give one: --tree accounts.csv or --database books.db")
        self._check_options_of_source()
        try:
            tree = self._read_source(*next(iter(named.items())))
        except InvalidTreeError as error:
            if error.rows is None or self.orphans == "error":
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
                raise ParameterError(f"{option} needs {listed}", hint=f"omit it, or add {listed}")


def _wordnet(part: str, folder: str | None) -> Tree:
    from equipoise.domains.accounts.trees.formats import FOLDER, read_wordnet

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
    from equipoise.errors import UnknownNameError

    columns = {}
    for word in words.split(","):
        name, equals, column = word.partition("=")
        if not equals or not column:
            raise ParameterError(
                f"--columns {words} has a part without a column: {word!r}", hint="id=code,parent=above_code"
            )
        if name not in known:
            raise UnknownNameError.of("column of accounts", name, known, more=f"there are: {', '.join(known)}")
        columns[name] = column
    return columns


def tree_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options of the tree; the command gets one ``source``."""
    return options.options_as(TreeSource, "source", *_TREE_OPTIONS)(command)


_TREE_OPTIONS: tuple[options.Decorator, ...] = (
    click.option("--database", metavar="URL", help="A database: books.db, sqlite:///books.db, postgresql://..."),
    click.option("--business-id", metavar="ID", help="Only the accounts of this business of a database."),
    click.option("--table", metavar="NAME", help="The table, as NAME or SCHEMA.NAME.  [default: accounts]"),
    click.option(
        "--columns",
        metavar="NAME=COLUMN,...",
        help="Names of the columns id, parent, name and business, of --database and --tree.",
    ),
    click.option("--tree", metavar="FILE", help="A CSV, TSV or JSON file, or another file with a tree."),
    click.option("--edges", metavar="FILE", help="Pairs of child and parent; a transitive closure is detected."),
    click.option(
        "--closure/--no-closure",
        default=None,
        help="The pairs of --edges are those of all ancestors, or of parents only.  [detected]",
    ),
    click.option("--gnucash", metavar="FILE", help="A GnuCash file, XML or SQLite."),
    click.option("--codes", metavar="FILE", help="Codes whose prefix is the parent: 102-0001-003."),
    click.option("--code-widths", metavar="N,N,...", help="Widths of the parts of --codes without separators."),
    click.option(
        "--wordnet",
        type=options.ChoiceWithHint("part of WordNet", lambda: _WORDNET_PARTS),
        help="Nouns, verbs or mammals of WordNet.",
    ),
    click.option(
        "--wordnet-folder", metavar="FOLDER", help="The folder of WordNet's data.noun.  [default: /usr/share/wordnet]"
    ),
    click.option("--obo", metavar="FILE", help="An ontology in OBO format."),
    click.option("--subtree", metavar="ID", help="Only this node and its descendants."),
    click.option("--add-root", is_flag=True, help="Add one root above all roots."),
    options.one_of(
        "--orphans",
        "orphans",
        options.names_in("equipoise.domains.accounts.trees.problems", "ORPHAN_POLICIES"),
        "error",
        "Nodes whose parent does not exist: an error, roots, or dropped with their descendants.",
    ),
)
