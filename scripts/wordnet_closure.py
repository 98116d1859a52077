"""Write the transitive closure of WordNet's hypernyms as a file of pairs, from Debian's wordnet-base.

python scripts/wordnet_closure.py noun nouns.csv                        82,115 nodes, 743,241 pairs
python scripts/wordnet_closure.py verb verbs.csv                        13,542 nodes, 35,079 pairs
python scripts/wordnet_closure.py noun mammals.csv --root mammal.n.01

The columns are id1 (the descendant), id2 (the ancestor) and weight, as hyperbolic-embedding code reads them.
"""

from __future__ import annotations

import argparse
import csv
import sys
from pathlib import Path

from equipoise.domains.accounts.trees.read import read_wordnet
from equipoise.errors import EquipoiseError


def main() -> None:
    """Read the hierarchy, write its closure, and print the size."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", choices=["noun", "verb"])
    parser.add_argument("output", type=Path)
    parser.add_argument("--root", help="only the descendants of this synset, such as mammal.n.01")
    parser.add_argument("--no-instances", action="store_true", help="leave out instances such as Einstein")
    options = parser.parse_args()
    try:
        tree = read_wordnet(options.part, options.root, not options.no_instances)
    except EquipoiseError as error:
        sys.exit(error.render())
    pairs = tree.closure().tolist()
    with open(options.output, "w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(["id1", "id2", "weight"])
        writer.writerows((tree.ids[descendant], tree.ids[ancestor], 1) for descendant, ancestor in pairs)
    print(f"{options.output}: {len(tree):,} nodes, {len(pairs):,} pairs")


if __name__ == "__main__":
    main()
