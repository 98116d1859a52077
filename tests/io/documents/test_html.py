"""HTML converted to plain text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.errors import FormatError, InputError
from equipoise.io.documents import read_document, text_of_html
from equipoise.models.chunking import SectionChunker


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<p>One</p><p>Two</p>", "One\n\nTwo"),
        ("<p>One<p>Two", "One\n\nTwo"),
        ("one<div>two<div>three</div>four</div>five", "one\n\ntwo\n\nthree\n\nfour\n\nfive"),
        ("<p>f<b>o</b>o   bar\n baz</p>", "foo bar baz"),
        ("<p>one<br>two<br/>three</p>", "one\ntwo\nthree"),
        ("<h1>A</h1><h3>B <em>c</em><br>d</h3>", "# A\n\n### B c d"),
        ("<h2></h2><p>text</p>", "text"),
        ("<ul><li>a<li><p>b</p><ul><li>c</ul></ul>", "- a\n\n- b\n\n- c"),
        ("<p>caf&eacute; &amp; &lt;tea&gt; &#8364;5</p>", "café & <tea> €5"),
        ("<title>T</title><style>p{}</style><script>if (a<b) {'<p>x</p>'}</script><p>y</p>", "y"),
        ("<noscript>n</noscript><template><p>t</p></template>a<!-- <p>no</p> -->b", "ab"),
        ("<script src='x'/><p>after</p></script><p>more</p>", "after\n\nmore"),
    ],
)
def test_elements_become_text(html, text):
    assert text_of_html(html) == text


def test_tables_are_one_line_per_row_with_separated_cells():
    html = """<p>before</p><table><caption>Prices</caption><thead><tr><th>Bread<th>Price</tr></thead>
    <tr><td><p>Rye</p><td>2 <br> euros</tr><tr><td></td><td>x</td></tr></table>after"""
    assert text_of_html(html) == "before\n\nPrices\n\nBread | Price\nRye | 2 euros\n| x\n\nafter"


def test_headings_in_layout_tables_are_kept():
    html = "<table><tr><td><h2>News</h2><p>Bread rose.</p></td><td><table><tr><td>1<td>2</table></td></table>"
    assert text_of_html(html) == "## News\n\nBread rose.\n\n1 | 2"


def test_preformatted_text_is_fenced():
    html = "<p>run</p><pre><code># no heading\n  x = 1\n</code></pre><p>end</p>"
    assert text_of_html(html) == "run\n\n```\n# no heading\n  x = 1\n```\n\nend"
    assert text_of_html("<pre>a ``` b</pre>") == "````\na ``` b\n````"


def test_sections_of_a_page_are_found_by_the_section_chunker():
    text = text_of_html("<h1>Bread</h1><h2>Rye</h2><p>Dark.</p><pre># code</pre><h2>Wheat</h2><p>Light.</p>")
    chunks = SectionChunker(50, 0, "words").chunk(text)
    assert [chunk.section for chunk in chunks] == ["Bread > Rye", "Bread > Wheat"]


@pytest.mark.parametrize(
    "head",
    [
        '<meta charset="iso-8859-1">',
        "<META http-equiv=Content-Type content='text/html; charset=windows-1252'>",
        '<?xml version="1.0" encoding="ISO-8859-15"?>',
    ],
)
def test_the_declared_charset_is_used(tmp_path, head):
    path = tmp_path / "a.html"
    path.write_bytes(f"{head}<p>café</p>".encode("latin-1"))
    assert read_document(path) == "café"


def test_latin_1_is_decoded_as_windows_1252(tmp_path):
    path = tmp_path / "a.htm"
    path.write_bytes(b"<meta charset=latin1><p>5 \x80</p>")
    assert read_document(path) == "5 €"


def test_utf_16_with_a_byte_order_mark_is_read(tmp_path):
    path = tmp_path / "a.html"
    path.write_bytes("<meta charset=utf-16><p>café</p>".encode("utf-16"))
    assert read_document(path) == "café"


@pytest.mark.parametrize(
    ("html", "fragment"),
    [
        (b"<meta charset=klingon><p>x</p>", "declares the charset 'klingon'"),
        (b"<meta charset=rot13><p>x</p>", "declares the charset 'rot13'"),
        (b"<meta charset=shift_jis><p>\xff\xff</p>", "declares the encoding shift_jis, which is wrong"),
        (b"<meta charset=latin1>\0\0<p>x</p>", "NUL"),
        (b"<p>caf\xe9</p>", "not UTF-8"),
    ],
)
def test_undecodable_characters_raise_format_error(tmp_path, html, fragment):
    path = tmp_path / "a.html"
    path.write_bytes(html)
    with pytest.raises(FormatError, match=fragment):
        read_document(path)


def test_pages_without_text_raise_input_error(tmp_path):
    path = tmp_path / "a.html"
    path.write_text("<html><head><title>x</title></head><body><img src=a.png></body></html>")
    with pytest.raises(InputError):
        read_document(path)


TAGS = ("p", "/p", "table", "/table", "tr", "td", "h1", "/h1", "ul", "li", "pre", "/pre", "br", "b", "/div")


@given(st.lists(st.sampled_from([*(f"<{tag}>" for tag in TAGS), " wheat ", " rye ", "\n"])))
def test_malformed_tags_keep_all_words_in_order(fragments):
    words = [fragment.strip() for fragment in fragments if fragment.strip() in ("wheat", "rye")]
    words_of_text = [word for word in text_of_html("".join(fragments)).split() if word in ("wheat", "rye")]
    assert words_of_text == words
