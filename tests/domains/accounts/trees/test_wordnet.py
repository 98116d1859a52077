"""WordNet: the published counts, and small files with cases that the packaged files do not have."""

from __future__ import annotations

import pytest

from equipoise.domains.accounts.trees.read import FOLDER, read_wordnet
from equipoise.errors import InputError, UnknownNameError

installed = pytest.mark.skipif(not FOLDER.is_dir(), reason="wordnet-base is not installed")


@installed
def test_the_closure_of_the_verbs_has_the_published_size():
    tree = read_wordnet("verb")
    assert (len(tree), len(tree.closure())) == (13_542, 35_079)
    assert len(read_wordnet("verb", isolated=True)) == 13_767


@installed
def test_the_closure_of_the_nouns_has_the_published_size_and_one_root():
    tree = read_wordnet("noun")
    assert (len(tree), len(tree.closure())) == (82_115, 743_241)
    assert [tree.ids[root] for root in tree.roots] == ["entity.n.01"]
    mammals = tree.subtree("mammal.n.01")
    assert "dog.n.01" in mammals.ids
    assert "bird.n.01" not in mammals.ids
    einstein = tree.position("einstein.n.01")
    assert [tree.ids[parent] for parent in tree.parents(einstein)] == ["physicist.n.01"]


@installed
def test_other_parts_of_speech_are_errors():
    with pytest.raises(UnknownNameError, match=r"WordNet.*'adj'"):
        read_wordnet("adj")


def test_the_last_edge_of_a_cycle_is_removed_and_instances_are_optional(tmp_path):
    (tmp_path / "data.noun").write_text(
        "  1 a licence\n"
        "00000001 03 n 01 thing 0 001 @ 00000002 n 0000 | a\n"
        "00000002 03 n 02 Matter 0 stuff 0 002 @ 00000001 n 0000 + 00000009 v 0101 | b\n"
        "00000003 03 n 01 thing 0 001 @i 00000001 n 0000 | c\n"
    )
    (tmp_path / "index.noun").write_text(
        "  1 a licence\nthing n 2 1 @ 2 0 00000003 00000001\nmatter n 1 1 @ 1 0 00000002\n"
    )
    tree = read_wordnet("noun", folder=tmp_path)
    assert tree.named_edges() == [("thing.n.02", "matter.n.01"), ("thing.n.01", "thing.n.02")]
    assert read_wordnet("noun", folder=tmp_path, instances=False).ids == ("thing.n.02", "matter.n.01")


def test_the_error_for_a_missing_wordnet_has_the_package_name(tmp_path):
    with pytest.raises(InputError, match="WordNet") as error_info:
        read_wordnet(folder=tmp_path / "nowhere")
    assert "wordnet-base" in error_info.value.hint
