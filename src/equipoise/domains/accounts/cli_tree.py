"""The tree named on the command line: a database, a file, GnuCash, edges, codes, WordNet or OBO."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import wraps
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
"""Readers that take a file and nothing else; loaded when they are needed."""
_WORDNET_PARTS = ("noun", "verb", "mammal")
MAMMAL = "mammal.n.01"


@dataclass(frozen=True)
class TreeSource:
    """Where the tree comes from; exactly one of the sources is named."""

    database: str | None
    business_id: str | None
    table: str | None
    columns: str | None
    tree: str | None
    edges: str | None
    closed: bool | None
    gnucash: str | None
    codes: str | None
    widths: str | None
    wordnet: str | None
    obo: str | None
    subtree: str | None
    rooted: bool

    @property
    def named(self) -> dict[str, str]:
        """The sources that were named."""
        given = {name: getattr(self, name) for name in SOURCES}
        return {name: word for name, word in given.items() if word is not None}

    def read(self) -> Tree:
        """The tree."""
        named = self.named
        if len(named) != 1:
            several = " and ".join(f"--{name}" for name in named)
            fact = f"{several} name {len(named)} trees" if named else "no tree was named"
            raise ParameterError(fact, hint="name one: --tree accounts.csv or --database books.db")
        self._refuse_stray()
        found = self._whole(*next(iter(named.items())))
        if self.subtree is not None:
            whole = found.source.removesuffix(f" below {MAMMAL}") if self.wordnet else found.source
            found = replace(found.subtree(self.subtree), source=f"{whole} below {self.subtree}")
        return found.rooted() if self.rooted else found

    def _whole(self, kind: str, word: str) -> Tree:
        """The tree before anything is cut off or added."""
        if kind == "database":
            return self._from_database(word)
        if kind == "edges":
            from equipoise.domains.accounts.trees.files import read_edges

            return read_edges(word, closure=self.closed)
        if kind == "wordnet":
            return _wordnet(word)
        if kind == "codes":
            from equipoise.domains.accounts.trees.files import read_codes

            return self._refuse_flat(read_codes(word, widths=_parse_widths(self.widths)))
        if kind == "tree":
            from equipoise.domains.accounts.trees.read import read_tree

            return read_tree(word, self.business_id, columns=self._columns())
        module, name = READERS[kind]
        reader: Callable[[str], Tree] = getattr(import_module(module), name)
        return reader(word)

    def _refuse_flat(self, tree: Tree) -> Tree:
        """Codes of which none begins with another are most often codes whose parts have no separators."""
        if len(tree.edges) or len(tree) < 2:
            return tree
        separated = "--widths 1,1,2 says how wide the parts of codes such as 1120 are"
        given = "see whether these widths are those of the parts, from the left"
        raise InputError(
            f"{tree.source}: no code is the beginning of another, so nobody has a parent",
            hint=separated if self.widths is None else given,
        )

    def _from_database(self, url: str) -> Tree:
        from equipoise.domains.accounts.trees.sql import TableColumns, read_sql

        chosen: dict[str, Any] = {}
        if self.table is not None:
            schema, _, table = self.table.rpartition(".")
            chosen = {"table": table} | ({"schema": schema} if schema else {})
        return read_sql(url, self.business_id, columns=TableColumns(**self._columns()), **chosen)

    def _columns(self) -> dict[str, str]:
        """The columns that were named."""
        from equipoise.domains.accounts.trees.sql import TableColumns

        known = [each.name for each in fields(TableColumns)]
        return {} if self.columns is None else _parse_columns(self.columns, known)

    def _refuse_stray(self) -> None:
        """Options that belong to another source would be passed over in silence."""
        stray = {
            "--business-id": (self.business_id, ("database", "tree")),
            "--table": (self.table, ("database",)),
            "--columns": (self.columns, ("tree", "database")),
            "--widths": (self.widths, ("codes",)),
            "--closed": (self.closed, ("edges",)),
        }
        for option, (value, owners) in stray.items():
            if value is not None and not set(owners) & set(self.named):
                both = " or ".join(f"--{owner}" for owner in owners)
                raise ParameterError(f"{option} belongs to {both}", hint=f"leave it out, or name {both}")


def _wordnet(part: str) -> Tree:
    from equipoise.domains.accounts.trees.formats import read_wordnet

    return read_wordnet("noun", root=MAMMAL) if part == "mammal" else read_wordnet(part)


def _parse_widths(words: str | None) -> list[int] | None:
    """``1,2,2`` as numbers."""
    if words is None:
        return None
    parts = [part.strip() for part in words.split(",")]
    if not all(part.isdigit() for part in parts):
        raise ParameterError(f"--widths {words} is no list of whole numbers", hint="for example 1,2,2")
    return [int(part) for part in parts]


def _parse_columns(words: str, known: list[str]) -> dict[str, str]:
    """``id=code,parent=above`` as a mapping."""
    from equipoise.errors import UnknownNameError

    found = {}
    for word in words.split(","):
        name, equals, column = word.partition("=")
        if not equals or not column:
            raise ParameterError(
                f"--columns {words} has a part without a column: {word!r}", hint="id=code,parent=above_code"
            )
        if name not in known:
            raise UnknownNameError.of("column of accounts", name, known, more=f"there are: {', '.join(known)}")
        found[name] = column
    return found


def tree_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Where the tree comes from; one ``source`` in all."""

    @wraps(command)
    def collected(*args: Any, **given: Any) -> Any:
        taken = {each.name: given.pop(each.name) for each in fields(TreeSource)}
        return command(*args, source=TreeSource(**taken), **given)

    decorated: Callable[..., Any] = collected
    for option in reversed(_OPTIONS):
        decorated = option(decorated)
    return decorated


_OPTIONS: tuple[options.Decorator, ...] = (
    click.option("--database", metavar="URL", help="A database: books.db, sqlite:///books.db, postgresql://..."),
    click.option("--business-id", metavar="ID", help="Only the accounts of this business of a database."),
    click.option("--table", metavar="NAME", help="The table of accounts, or SCHEMA.NAME; accounts by default."),
    click.option(
        "--columns",
        metavar="NAME=COLUMN,...",
        help="Columns by other names, of --tree too: id, parent, name, business.",
    ),
    click.option("--tree", metavar="FILE", help="A CSV, TSV or JSON file, or any other that holds a tree."),
    click.option("--edges", metavar="FILE", help="Pairs of child and parent; a closure is known as such."),
    click.option(
        "--closed/--no-closed",
        default=None,
        help="The pairs of --edges are those of all ancestors, or of parents only.",
    ),
    click.option("--gnucash", metavar="FILE", help="A GnuCash file, XML or SQLite."),
    click.option("--codes", metavar="FILE", help="Codes whose beginning is the parent: 102-0001-003."),
    click.option("--widths", metavar="N,N,...", help="The widths of the parts of --codes without separators."),
    click.option(
        "--wordnet",
        type=options.ChoiceWithHint("part of WordNet", lambda: _WORDNET_PARTS),
        help="Nouns, verbs or mammals of WordNet.",
    ),
    click.option("--obo", metavar="FILE", help="An ontology in OBO format."),
    click.option("--subtree", metavar="ID", help="Only this node and what is below it."),
    click.option("--rooted", is_flag=True, help="Put one root above all."),
)
