"""Trees from account codes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.domains.accounts.trees.files import from_codes, read_codes
from equipoise.errors import InputError, ParameterError

part = st.text("123456789", min_size=2, max_size=2)
paths = st.sets(st.lists(part, min_size=1, max_size=4).map(tuple), min_size=1, max_size=15)


def test_the_parent_of_a_code_is_the_code_without_its_last_part():
    for separator in "-./: ":
        codes = [separator.join(parts) for parts in (("102",), ("102", "0001"), ("102", "0001", "003"))]
        assert from_codes(codes).named_edges() == [(codes[1], codes[0]), (codes[2], codes[1])]


def test_a_longer_number_is_not_a_child_of_a_shorter_one():
    assert len(from_codes(["10", "102", "10-1"]).edges) == 1


def test_trailing_zeros_are_padding():
    tree = from_codes([("1000", "Assets"), ("1100", "Cash"), ("1110", "Till")], widths=(1, 1, 1, 1))
    assert tree.named_edges() == [("1100", "1000"), ("1110", "1100")]
    assert from_codes(["102-0000", "102-0001"]).named_edges() == [("102-0001", "102-0000")]
    with pytest.raises(InputError, match="102 and 102-000"):
        from_codes(["102", "102-000"])


def test_a_missing_group_is_skipped():
    assert from_codes(["102", "102-0001-003"]).named_edges() == [("102-0001-003", "102")]


@given(paths)
def test_separators_and_widths_give_the_same_tree(code_paths):
    ordered = sorted(code_paths)
    separated = from_codes(["-".join(path) for path in ordered])
    fixed = from_codes(["".join(path) for path in ordered], widths=(2, 2, 2, 2))
    assert (separated.edges == fixed.edges).all()


def test_codes_that_cannot_be_split_are_errors():
    with pytest.raises(InputError, match=r"12345.*5 characters.*1.*2.*4"):
        from_codes(["12345"], widths=(1, 1, 2))
    with pytest.raises(ParameterError, match="widths"):
        from_codes(["12"], widths=(2, 0))
    with pytest.raises(InputError):
        from_codes(["--"])


def test_codes_are_read_from_tables_and_plain_text(file):
    table = read_codes(file("code,name\n1,Assets\n1.1,Cash\n", "codes.csv"))
    assert table.names == ("Assets", "Cash")
    assert table.named_edges() == read_codes(file("1\n\n1.1\n", "codes.txt")).named_edges() == [("1.1", "1")]
    with pytest.raises(InputError):
        read_codes(file("number\n1\n", "codes.csv"))
