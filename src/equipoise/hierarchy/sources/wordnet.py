"""The hypernyms of WordNet as a tree, read from its own files (Debian: ``apt install wordnet-base``)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from equipoise.data.graph import Edge, find_cycle
from equipoise.data.text import PathLike, read_text
from equipoise.errors import InputError, UnknownNameError
from equipoise.hierarchy.tree import Tree

FOLDER = Path("/usr/share/wordnet")
PARTS = {"noun": "n", "verb": "v"}
HYPERNYM, INSTANCE = "@", "@i"


@dataclass(frozen=True, slots=True)
class _Synset:
    """One line of a data file: where it stands, its words, and its pointers upwards."""

    offset: str
    words: list[str]
    above: list[tuple[str, str]]


def read_wordnet(
    part: str = "noun",
    root: str | None = None,
    instances: bool = True,
    *,
    isolated: bool = False,
    folder: PathLike = FOLDER,
) -> Tree:
    """The synsets of a part of speech, by names such as ``mammal.n.01``, and their hypernyms.

    ``instances`` counts "is an instance of" as well (Einstein is a physicist). ``root`` gives the subtree
    of one synset. Synsets without any relation are left out unless ``isolated``. Debian's files have no
    circle of hypernyms; other releases have had some among the verbs, and there the edge of the circle
    that comes last in the file is left out.
    """
    if part not in PARTS:
        raise UnknownNameError.of("part of WordNet with hypernyms", part, PARTS, more="there are: noun, verb")
    place = Path(folder)
    if not place.is_dir():
        raise InputError(
            f"there is no WordNet at {place}",
            hint="apt install wordnet-base, or name the folder of data.noun",
        )
    kinds = {HYPERNYM, INSTANCE} if instances else {HYPERNYM}
    senses = _senses(place / f"index.{part}")
    synsets = list(_synsets(place / f"data.{part}", PARTS[part]))
    name_of = {each.offset: _name(each, PARTS[part], senses) for each in synsets}
    nodes = [(name_of[each.offset], each.words[0].replace("_", " ")) for each in synsets]
    edges = _without_cycles(
        {
            (name_of[each.offset], name_of[above]): None
            for each in synsets
            for kind, above in each.above
            if kind in kinds
        }
    )
    tree = Tree.of(nodes, edges, source=f"WordNet {part}s")
    if root is not None:
        return replace(tree.subtree(root), source=f"{tree.source} below {root}")
    return tree if isolated else tree.taken(np.flatnonzero(~tree.isolated))


def _synsets(path: Path, letter: str) -> Iterator[_Synset]:
    """The synsets of a data file, as wndb(5WN) describes it; lines of the licence start with blanks."""
    for line in read_text(path).splitlines():
        if line.startswith(" "):
            continue
        fields = line.partition(" | ")[0].split()
        count = int(fields[3], 16)
        pointers = fields[4 + 2 * count :]
        above = [
            (pointers[place], pointers[place + 1])
            for place in range(1, 1 + 4 * int(pointers[0]), 4)
            if pointers[place] in {HYPERNYM, INSTANCE} and pointers[place + 2] == letter
        ]
        yield _Synset(fields[0], fields[4 : 4 + 2 * count : 2], above)


def _senses(path: Path) -> dict[str, list[str]]:
    """The offsets of each word's synsets, the most frequent sense first."""
    found = {}
    for line in read_text(path).splitlines():
        if not line.startswith(" "):
            fields = line.split()
            found[fields[0]] = fields[-int(fields[2]) :]
    return found


def _name(synset: _Synset, letter: str, senses: dict[str, list[str]]) -> str:
    """``mammal.n.01``: the first word, and which of its senses this is."""
    word = synset.words[0].lower()
    return f"{word}.{letter}.{senses[word].index(synset.offset) + 1:02d}"


def _without_cycles(edges: dict[Edge, None]) -> dict[Edge, None]:
    """The edges without the last one of every cycle."""
    left = dict(edges)
    order = {edge: place for place, edge in enumerate(edges)}
    while cycle := find_cycle(left):
        left.pop(max(zip(cycle, [*cycle[1:], cycle[0]], strict=True), key=order.__getitem__))
    return left
