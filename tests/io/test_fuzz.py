"""Any bytes give a value or an EquipoiseError in every reader."""

import io
import math

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from equipoise.errors import EquipoiseError
from equipoise.io import run_files
from equipoise.io.arrays import read_array
from equipoise.io.dag import edge_lines
from equipoise.io.run_files import read_qrels, read_run
from equipoise.io.tables import read_rows
from equipoise.io.text import TextFile, open_text, read_text

TEXT_READERS = {
    "a.trec": read_run,
    "b.trec": lambda path: run_files.parse_trec(open_text(path), run_files.RUN),
    "c.trec": lambda path: run_files.parse_trec(open_text(path), run_files.UNTAGGED_RUN),
    "d.qrels": read_qrels,
    "e.qrels": lambda path: run_files.parse_trec(open_text(path), run_files.QRELS),
    "f.json": read_run,
    "g.jsonl": read_run,
    "h.csv": read_qrels,
    "i.tsv": read_qrels,
    "j": read_run,
    "k.csv": read_rows,
    "l.json": read_rows,
    "m.jsonl": read_rows,
    "n.csv": edge_lines,
    "p.txt": read_text,
}
VALID = [
    b"q1 Q0 d1 1 0.5 t\nq1 Q0 d2 2 0.25 t\nq2\tQ0\td1\t1\t-3e2\tt\r\n",
    b"q1 0 d1 1\nq1 0 d2 0.5\n\nq2 0 d1 2\n",
    b'{"q1": {"d1": 0.5,\n "d2": 1}, "q2": {}}',
    b'[{"query": "q1", "doc": "d1", "score": 1}]',
    b'{"query": "q1", "doc": "d1", "score": 1}\n{"query": "q1", "doc": "d2", "score": 2}\n',
    b'query,doc,score\nq1,d1,1\n"q,2","d""2",2\n',
    b"query-id\tcorpus-id\tscore\nq1\td1\t1\n",
    b"child,parent\na,b\nb,c\n",
    b'{"id": "d1", "text": "abcdef", "spans": [{"start": 0, "end": 3, "label": "x", "text": "abc"}]}\n',
]
SPLICES = st.sampled_from(
    [b"", b"\0", b"\n", b"\r", b" ", b"\t", b'"', b"{", b"}", b"nan", b"1e999", b"NaN", b"\\ud800", b"\xff",
     b"\xef\xbb\xbf", b"\x1f\x8b", "\u2028".encode(), b"\x1c", b"_", b"9" * 5000, b",", b":", b"-1", b"null"]
)  # fmt: skip


@st.composite
def mutated(draw, sources):
    data = draw(st.sampled_from(sources))
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(data)))
        stop = draw(st.integers(start, min(len(data), start + 4)))
        data = data[:start] + draw(SPLICES | st.binary(max_size=3)) + data[stop:]
    return data


LINES = st.lists(
    st.lists(
        st.sampled_from(["q1", "d1", "Q0", "0", "1", "0.5", "nan", "-", "ä", "1_0", "\u00a0", "\x1c"]),
        max_size=7,
    )
).map(lambda rows: "\n".join(" ".join(row) for row in rows).encode())


def read_or_none(reader, path):
    """The value read, or None for an EquipoiseError; any other exception is raised."""
    try:
        return reader(path)
    except EquipoiseError as error:
        caught_error = error
    assert caught_error.render().startswith(f"error[{caught_error.code}]: {caught_error.message[:300]}")
    assert str(path) in caught_error.message
    return None


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("fuzz")


@pytest.mark.parametrize("name", TEXT_READERS)
@given(data=st.binary() | st.text().map(str.encode) | LINES | mutated(VALID))
@example(data="\u00a0".encode())
@example(data=b",,\n")
@settings(max_examples=120, suppress_health_check=[HealthCheck.too_slow])
def test_text_readers_give_a_value_or_an_equipoise_error(folder, name, data):
    path = folder / name
    path.write_bytes(data)
    read_or_none(TEXT_READERS[name], path)


def npy(array) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


def npz(save, **arrays) -> bytes:
    buffer = io.BytesIO()
    save(buffer, **arrays)
    return buffer.getvalue()


MATRIX = np.arange(6.0).reshape(2, 3)
ARRAYS = {
    "a.npy": [npy(MATRIX), npy(np.array(["a", "b"]))],
    "b.npz": [npz(np.savez, a=MATRIX), npz(np.savez_compressed, a=MATRIX)],
    "c.safetensors": [b"\x38\0\0\0\0\0\0\0" + b'{"a":{"dtype":"F64","shape":[1],"data_offsets":[0,8]}}  ' + b"\0" * 8],
}


@pytest.mark.slow
@pytest.mark.parametrize("name", ARRAYS)
def test_array_readers_give_a_value_or_an_equipoise_error(folder, name):
    if name.endswith("safetensors"):
        pytest.importorskip("safetensors")

    @given(data=st.binary() | mutated(ARRAYS[name]))
    @settings(max_examples=300)
    def check(data):
        # A new file for every example: a mapped file must not change.
        (folder / name).unlink(missing_ok=True)
        (folder / name).write_bytes(data)
        read_or_none(read_array, folder / name)

    (folder / name).write_bytes(ARRAYS[name][0])
    assert read_array(folder / name) is not None
    check()


def test_parquet_gives_a_value_or_an_equipoise_error(folder):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    buffer = io.BytesIO()
    parquet.write_table(pyarrow.Table.from_pylist([{"query": "q", "doc": "d", "score": 1.0}]), buffer)

    @given(data=st.binary() | mutated([buffer.getvalue()]))
    @settings(max_examples=60)
    def check(data):
        (folder / "a.parquet").write_bytes(data)
        read_or_none(read_run, folder / "a.parquet")

    check()


def naive_reader(data: bytes, widths: set[int], value_column: int) -> dict | None:
    """A simple reader that returns None for invalid data."""
    table: dict = {}
    for line in data.splitlines():
        fields = [field.decode() for field in line.split()]
        if not fields:
            continue
        if len(fields) not in widths or "_" in fields[value_column] or not fields[value_column].isascii():
            return None
        try:
            value = float(fields[value_column])
        except ValueError:
            return None
        docs = table.setdefault(fields[0], {})
        if not math.isfinite(value) or fields[2] in docs:
            return None
        docs[fields[2]] = value
    return table


def open_or_none(path) -> TextFile | None:
    try:
        return open_text(path)
    except EquipoiseError:
        return None


@given(data=LINES | mutated(VALID[:2]) | st.text().map(str.encode))
@example(data="q1 0 d1 \u20281".encode())
@settings(max_examples=400)
def test_trec_readers_agree_with_a_naive_reader(folder, data):
    path = folder / "naive.trec"
    path.write_bytes(data)
    file = open_or_none(path)
    if file is None:
        return
    for name, widths, value_column in (("b.trec", {6}, 4), ("c.trec", {5, 6}, 4), ("e.qrels", {4}, 3)):
        assert read_or_none(TEXT_READERS[name], path) == naive_reader(file.data, widths, value_column)
