"""The OpenAI adapter: the SDK itself, against a real server that fails in every way."""

from __future__ import annotations

import base64
import io
import json
import pickle
import traceback
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pytest

import embedding_server as server
from embedding_server import DIMS, Service, vector

pytest.importorskip("openai")

from equipoise.errors import (
    EquipoiseError,
    MissingExtraError,
    ParameterError,
    PartialError,
    StoppedError,
    TextTooLongError,
)
from equipoise.models.backends.hosted_retry import RetryPolicy
from equipoise.models.backends.openai import OpenAIEncoder, load
from equipoise.models.cache import VectorCache
from equipoise.models.corpus import embed_to_file
from equipoise.models.embedder import Embedder
from equipoise.models.registry import parse_spec
from equipoise.runs.manifest import Manifest
from equipoise.types import Role
from marked import marked

KEY = "sk-not-a-real-key-0123456789abcdef"
TEXTS = [f"text number {number}" for number in range(10)]


@pytest.fixture
@marked(pytest.mark.slow)
def service(monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    for name in ("OPENAI_BASE_URL", "AZURE_OPENAI_API_KEY", "AZURE_OPENAI_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)
    with server.serving() as running:
        yield running


@pytest.fixture
def slept() -> list[float]:
    return []


@pytest.fixture
def make(service: Service, slept: list[float]) -> Iterator:
    made: list[OpenAIEncoder] = []

    def encoder(options: str = "parallel=1", attempts: int = 4) -> OpenAIEncoder:
        patience = RetryPolicy(attempts=attempts, sleep=slept.append, rng=np.random.default_rng(0))
        spec = parse_spec(f"openai:tiny,base_url={service.url},{options}")
        made.append(load(spec, retry_policy=patience))
        return made[-1]

    yield encoder
    for each in made:
        each.close()


def rows(texts: list[str]) -> np.ndarray:
    return np.stack([vector(text) for text in texts])


@pytest.mark.parametrize("options", ["batch=3", "batch=3,encoding=float", "batch=1,parallel=8", "batch=100"])
def test_vectors_come_back_exactly_and_in_order(make, service: Service, options: str) -> None:
    encoder = make(options)
    assert encoder.encode(TEXTS, Role.DOCUMENT).tobytes() == rows(TEXTS).tobytes()
    assert sorted(service.asked) == sorted(TEXTS)
    assert set(service.paths) == {"/v1/embeddings"}
    assert encoder.card.dims == DIMS
    assert encoder.usage.requests == len(service.requests)
    assert encoder.usage.tokens == 30
    assert encoder.usage.cost is None


def test_tokens_times_price_is_the_cost(make) -> None:
    encoder = make("price=0.5")
    encoder.encode(TEXTS, Role.QUERY)
    assert encoder.usage.cost == pytest.approx(30 / 1e6 * 0.5)


def test_the_key_goes_to_the_server_and_nowhere_else(make, service: Service) -> None:
    encoder = make()
    encoder.encode(["a"], Role.DOCUMENT)
    assert service.headers[0]["authorization"] == f"Bearer {KEY}"
    shown = [repr(encoder), str(encoder), encoder.identity, repr(encoder.card), str(encoder.usage)]
    assert not any(KEY in text for text in [*shown, *map(str, vars(encoder).values())])


def test_dimensions_are_asked_for(make, service: Service) -> None:
    service.always = server.data(lambda items: [{**items[0], "embedding": [1.0, 2.0, 3.0]}])
    encoder = make("dimensions=3")
    assert encoder.encode(["a"], Role.QUERY).tolist() == [[1.0, 2.0, 3.0]]
    assert service.requests[0]["dimensions"] == 3
    assert encoder.card.dims == 3


# -- what may pass is tried again ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "trick",
    [
        *(server.status(code) for code in (408, 409, 429, 500, 502, 503, 529)),
        server.cut_off,
        server.half_json,
    ],
    ids=["408", "409", "429", "500", "502", "503", "529", "cut off", "half JSON"],
)
def test_what_may_pass_is_tried_again(make, service: Service, slept, trick) -> None:
    service.tricks = [trick, trick]
    encoder = make()
    assert encoder.encode(TEXTS, Role.DOCUMENT).tobytes() == rows(TEXTS).tobytes()
    assert len(service.requests) == 3
    assert len(slept) == 2
    assert (encoder.usage.requests, encoder.usage.refused) == (3, 2)


@pytest.mark.parametrize("code", [400, 403, 404, 418])
def test_what_cannot_pass_is_asked_once(make, service: Service, slept, code: int) -> None:
    service.always = server.status(code, "never heard of it")
    with pytest.raises(PartialError, match=f"{code}") as caught:
        make().encode(TEXTS, Role.DOCUMENT)
    assert len(service.requests) == 1
    assert slept == []
    assert caught.value.exit_code == 3


def test_a_spent_quota_is_not_waited_for(make, service: Service) -> None:
    service.always = server.status(429, "You exceeded your current quota, see billing")
    with pytest.raises(PartialError, match="quota"):
        make().encode(TEXTS, Role.DOCUMENT)
    assert len(service.requests) == 1


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry_After": "7"}, 7.0),
        ({"Retry_After_Ms": "250"}, 0.25),
        ({"x_ratelimit_remaining_tokens": "0", "x_ratelimit_reset_tokens": "1m2s"}, 62.0),
        ({"x_ratelimit_remaining_requests": "0", "x_ratelimit_reset_requests": "120ms"}, 0.12),
    ],
)
def test_a_server_that_says_how_long_is_obeyed(make, service: Service, slept, headers, seconds) -> None:
    service.tricks = [server.status(429, **headers)]
    make().encode(TEXTS, Role.DOCUMENT)
    assert slept == [pytest.approx(seconds)]


def test_a_wait_that_is_too_long_is_not_begun(make, service: Service, slept) -> None:
    service.always = server.status(429, Retry_After="86400")
    with pytest.raises(PartialError, match="86400 s"):
        make().encode(TEXTS, Role.DOCUMENT)
    assert slept == []


def test_attempts_end(make, service: Service, slept) -> None:
    service.always = server.status(500)
    with pytest.raises(PartialError, match=r"500.*4"):
        make().encode(TEXTS, Role.DOCUMENT)
    assert len(service.requests) == 4
    assert len(slept) == 3


def test_a_slow_answer_is_given_up_and_asked_for_again(make, service: Service) -> None:
    service.tricks = [server.slow(0.6)]
    encoder = make("timeout=0.2")
    assert encoder.encode(["a"], Role.DOCUMENT).tobytes() == vector("a").tobytes()
    assert len(service.requests) == 2
    service.always = server.slow(0.6)
    with pytest.raises(PartialError):
        make("timeout=0.1", attempts=2).encode(["b"], Role.DOCUMENT)


def test_a_server_that_is_not_there_is_named(make, monkeypatch) -> None:
    spec = parse_spec("openai:tiny,base_url=http://127.0.0.1:9/v1")
    encoder = load(spec, retry_policy=RetryPolicy(attempts=2, sleep=lambda seconds: None))
    with pytest.raises(PartialError, match=r"the connection failed: .* \(after 2 attempts\)"):
        encoder.encode(["a"], Role.DOCUMENT)
    encoder.close()


# -- batches that are too large ------------------------------------------------------------------------


@pytest.mark.parametrize(("code", "message"), [(413, "payload"), (400, "maximum context length is 8 tokens")])
def test_a_batch_that_is_too_large_is_halved_and_the_size_remembered(make, service, code, message) -> None:
    service.always = server.at_most(3, 1000, code, message)
    encoder = make("batch=8")
    assert encoder.encode(TEXTS[:8], Role.DOCUMENT).tobytes() == rows(TEXTS[:8]).tobytes()
    assert [len(server.inputs(request)) for request in service.requests] == [8, 4, 2, 2, 4, 2, 2]
    service.requests.clear()
    encoder.encode(TEXTS, Role.DOCUMENT)
    assert [len(server.inputs(request)) for request in service.requests] == [2, 2, 2, 2, 2]


def test_a_text_that_is_too_long_is_named_and_the_rest_is_finished(make, service: Service) -> None:
    service.always = server.at_most(100, 50)
    texts = [*TEXTS[:4], "long " * 40, *TEXTS[4:]]
    with pytest.raises(TextTooLongError, match="200 characters that begins 'long long") as caught:
        make("batch=2").encode(texts, Role.DOCUMENT)
    assert caught.value.exit_code == 2
    assert "truncate=true" in caught.value.hint
    finished = caught.value.finished
    assert finished.positions[:4].tolist() == [0, 1, 2, 3]
    for place, row in zip(finished.positions.tolist(), finished.vectors, strict=True):
        assert row.tobytes() == vector(texts[place]).tobytes()


def test_one_long_text_does_not_make_all_later_requests_small(make, service: Service) -> None:
    service.always = server.at_most(100, 50)
    encoder = make("batch=4,truncate=true")
    encoder.encode([*TEXTS[:3], "long " * 11], Role.DOCUMENT)
    service.requests.clear()
    service.always = None
    encoder.encode(TEXTS, Role.DOCUMENT)
    assert len(service.requests) <= 5


def test_a_text_is_cut_only_when_that_was_asked_for(make, service: Service) -> None:
    service.always = server.at_most(100, 50)
    encoder = make("truncate=true")
    got = encoder.encode(["short", "x" * 200], Role.DOCUMENT)
    kept = len(service.asked[-1])
    assert 50 * 3 // 4 <= kept <= 50
    assert got[1].tobytes() == vector("x" * kept).tobytes()
    assert encoder.usage.cut == 1
    assert encoder.identity != make().identity


# -- answers that are wrong ----------------------------------------------------------------------------

WRONG = {
    "one too few": lambda items: items[:-1],
    "one too many": lambda items: [*items, items[0]],
    "none": lambda items: [],
    "an index twice": lambda items: [{**item, "index": 0} for item in items],
    "an index beyond": lambda items: [{**item, "index": item["index"] + 1} for item in items],
    "an index that is a word": lambda items: [{**item, "index": "first"} for item in items],
    "one index that is a boolean": lambda items: [items[0], {**items[1], "index": True}, *items[2:]],
    "an index that is a float": lambda items: [{**item, "index": float(item["index"])} for item in items],
    "a negative index": lambda items: [{**items[0], "index": -1}, *items[1:]],
    "an index that is missing": lambda items: [{"embedding": items[0]["embedding"]}, *items[1:]],
    "lengths that differ": lambda items: [{**items[0], "embedding": [1.0]}, *items[1:]],
    "nothing in it": lambda items: [{**item, "embedding": []} for item in items],
    "NaN": lambda items: [{**items[0], "embedding": [float("nan")] * DIMS}, *items[1:]],
    "infinity": lambda items: [{**items[0], "embedding": [1e300] * DIMS}, *items[1:]],
    "zeros": lambda items: [{**items[0], "embedding": [0.0] * DIMS}, *items[1:]],
    "null": lambda items: [{**items[0], "embedding": None}, *items[1:]],
    "words": lambda items: [{**items[0], "embedding": ["a"] * DIMS}, *items[1:]],
    "numbers as strings": lambda items: [{**items[0], "embedding": ["1.0"] * DIMS}, *items[1:]],
    "booleans": lambda items: [{**items[0], "embedding": [True] * DIMS}, *items[1:]],
    "a boolean among numbers": lambda items: [{**items[0], "embedding": [0.5, True] * 4}, *items[1:]],
    "null among numbers": lambda items: [{**items[0], "embedding": [0.5, None] * 4}, *items[1:]],
    "a number beyond float": lambda items: [{**items[0], "embedding": [10**400] * DIMS}, *items[1:]],
    "an object": lambda items: [{**items[0], "embedding": {"0": 1.0}}, *items[1:]],
    "half a number in base64": lambda items: [{**items[0], "embedding": "AAAA"}, *items[1:]],
    "no list": lambda items: {"0": items[0]},
    "broken base64": lambda items: [{**items[0], "embedding": "AAAA!"}, *items[1:]],
    "nested": lambda items: [{**items[0], "embedding": [[1.0] * DIMS]}, *items[1:]],
}


@pytest.mark.parametrize("change", WRONG.values(), ids=WRONG)
def test_a_wrong_answer_is_an_error_and_no_vector(make, service: Service, change) -> None:
    service.always = server.data(change)
    with pytest.raises(PartialError) as caught:
        make().encode(TEXTS, Role.DOCUMENT)
    assert len(service.requests) == 1
    assert "the server is at fault" in caught.value.hint
    assert caught.value.finished is None


def test_boolean_indexes_of_two_texts_are_no_order(make, service: Service) -> None:
    service.always = server.data(lambda items: [{**item, "index": item["index"] == 1} for item in items])
    with pytest.raises(PartialError) as caught:
        make().encode(["a", "b"], Role.DOCUMENT)
    assert caught.value.code == "E702"
    assert caught.value.finished is None


def test_an_answer_in_another_order_is_put_right_by_its_indexes(make, service: Service) -> None:
    service.always = server.data(lambda items: items[::-1])
    assert make().encode(TEXTS, Role.DOCUMENT).tobytes() == rows(TEXTS).tobytes()


def test_an_answer_without_indexes_stands_in_order(make, service: Service) -> None:
    service.always = server.data(lambda items: [{"embedding": item["embedding"]} for item in items])
    assert make().encode(TEXTS, Role.DOCUMENT).tobytes() == rows(TEXTS).tobytes()


def test_another_length_than_before_is_an_error(make, service: Service) -> None:
    encoder = make()
    encoder.encode(["a"], Role.DOCUMENT)
    service.always = server.data(lambda items: [{**item, "embedding": [1.0, 2.0]} for item in items])
    with pytest.raises(PartialError, match="2 and 8 dimensions") as caught:
        encoder.encode(["b"], Role.DOCUMENT)
    assert "run the same command again" not in caught.value.hint


# -- going on after a failure --------------------------------------------------------------------------


def test_the_error_carries_what_was_finished(make, service: Service) -> None:
    service.tricks = [server.honest, server.honest, server.status(400, "enough")]
    with pytest.raises(PartialError, match=r"6.*10 texts") as caught:
        make("batch=3,parallel=1").encode(TEXTS, Role.DOCUMENT)
    finished = caught.value.finished
    assert finished.positions.tolist() == [0, 1, 2, 3, 4, 5]
    assert finished.vectors.tobytes() == rows(TEXTS[:6]).tobytes()


def test_a_failure_counts_all_texts_and_not_those_of_a_block(make, service: Service) -> None:
    model = Embedder(make("batch=2,parallel=1"), cache=None)
    texts = [*TEXTS, TEXTS[0], TEXTS[9]]  # of the repetitions, one is of a text that was embedded
    service.tricks = [server.honest, server.honest, server.status(400, "enough")]
    with pytest.raises(StoppedError) as caught:
        model.embed(texts)
    assert (caught.value.done, caught.value.total) == (5, 12)
    again = pickle.loads(pickle.dumps(caught.value))
    assert (again.message, again.hint, again.done) == (caught.value.message, caught.value.hint, 5)


def test_a_failure_counts_the_texts_of_a_file_with_those_of_an_earlier_run(
    make, service: Service, tmp_path: Path
) -> None:
    model = Embedder(make("batch=2,parallel=1"), cache=None)
    texts = [f"{text} {half}" for half in "ab" for text in TEXTS]
    # A batch of the file is two requests; its rows are written when both are answered.
    for answered, done in ((3, 6), (5, 14)):
        service.tricks = [*[server.honest] * answered, server.status(400, "enough")]
        with pytest.raises(StoppedError) as caught:
            embed_to_file(iter(texts), model, tmp_path / "v.npy", batch=4, total=len(texts))
        assert (caught.value.done, caught.value.total) == (done, 20)


def test_the_same_call_goes_on_where_the_service_failed(make, service: Service, tmp_path: Path) -> None:
    cache = VectorCache(tmp_path / "vectors.sqlite")
    model = Embedder(make("batch=3,parallel=1"), cache=cache)
    service.tricks = [server.honest, server.honest, server.status(400, "enough")]
    with pytest.raises(PartialError):
        model.embed(TEXTS)
    assert len(service.requests) == 3
    service.requests.clear()
    done = model.embed_report(TEXTS)
    assert (done.report.from_cache, done.report.embedded) == (6, 4)
    assert len(service.asked) == 4
    direct = Embedder(make("batch=3")).embed(TEXTS)
    assert done.vectors.tobytes() == direct.tobytes()
    service.requests.clear()
    assert model.embed_report(TEXTS).report.embedded == 0
    assert service.requests == []
    cache.close()


def test_requests_that_ran_beside_a_failed_one_are_not_paid_twice(make, service, tmp_path: Path) -> None:
    cache = VectorCache(tmp_path / "vectors.sqlite")
    model = Embedder(make("batch=2,parallel=5"), cache=cache)

    def one_fails(handler, request) -> None:
        fails = TEXTS[5] in server.inputs(request)
        (server.status(400) if fails else server.honest)(handler, request)

    service.always = one_fails
    with pytest.raises(PartialError) as caught:
        model.embed(TEXTS)
    finished = len(caught.value.finished.positions)
    service.requests.clear()
    service.always = None
    assert model.embed_report(TEXTS).report.from_cache == finished
    assert len(service.asked) == len(TEXTS) - finished
    cache.close()


# -- keys ----------------------------------------------------------------------------------------------

LEAKS = {
    "401 that repeats the key": server.status(401, f"Incorrect API key provided: {KEY}. Find yours"),
    "400 that repeats the header": server.status(400, f"bad header Authorization: Bearer {KEY}"),
    "500 that repeats the key": server.status(500, KEY),
    "a wrong answer": server.data(lambda items: []),
    "a cut-off answer": server.cut_off,
}


@pytest.mark.parametrize("trick", LEAKS.values(), ids=LEAKS)
def test_the_key_is_in_no_error_no_chain_and_no_cache(make, service, tmp_path: Path, trick) -> None:
    service.always = trick
    cache = VectorCache(tmp_path / "vectors.sqlite")
    with pytest.raises(EquipoiseError) as caught:
        Embedder(make(), cache=cache).embed(TEXTS)
    error: BaseException | None = caught.value
    said = io.StringIO()
    traceback.print_exception(error, file=said)
    texts = [said.getvalue(), caught.value.render(), repr(error)]
    while error is not None:
        texts += [repr(vars(error)), str(error.args)]
        error = error.__cause__ or error.__context__
    assert not any(KEY in text for text in texts)
    service.always = None
    Embedder(make(), cache=cache).embed(TEXTS)
    cache.close()
    assert all(KEY.encode() not in path.read_bytes() for path in tmp_path.iterdir())


ECHOES = {
    "as it is": lambda key: key,
    "percent-encoded": lambda key: quote(key, safe=""),
    "base64": lambda key: base64.b64encode(key.encode()).decode(),
    "base64 of user and key": lambda key: base64.b64encode(f"user:{key}".encode()).decode(),
    "escaped for JSON": lambda key: json.dumps(key).replace("/", "\\/"),
    "unicode escapes": lambda key: "".join(f"\\u{ord(char):04x}" for char in key),
    "shortened": lambda key: f"{key[:6]}...{key[-4:]}",
    "starred": lambda key: f"{key[:4]}*********{key[-4:]}",
    "the first 8 characters": lambda key: key[:8],
}


@pytest.mark.parametrize("code", [400, 401, 503])
@pytest.mark.parametrize("echo", ECHOES.values(), ids=ECHOES)
def test_the_key_of_any_variable_is_hidden_in_every_form(
    service, monkeypatch, tmp_path: Path, slept, echo, code: int
) -> None:
    """The server repeats the key that it was sent, which is in a variable whose name says nothing."""
    key = "Zq3/v+W=k7Xp%9Lm2Tn-8Ry"
    monkeypatch.setenv("MYAUTH", key)
    heard: list[str] = []

    def trick(handler: server.Handler, request: dict) -> None:
        sent = handler.headers["Authorization"].removeprefix("Bearer ")
        heard.append(sent)
        handler.answer({"error": {"message": f"no {echo(sent)} here"}}, code)

    service.always = trick
    spec = parse_spec(f"openai:tiny,base_url={service.url},key_env=MYAUTH,parallel=1")
    cache = VectorCache(tmp_path / "vectors.sqlite")
    with pytest.raises(EquipoiseError) as caught:
        Embedder(load(spec, retry_policy=RetryPolicy(attempts=2, sleep=slept.append)), spec, cache=cache).embed(TEXTS)
    cache.close()
    assert set(heard) == {key}
    said = io.StringIO()
    traceback.print_exception(caught.value, file=said)
    told = [said.getvalue(), caught.value.render(), repr(vars(caught.value)), repr(caught.value)]
    told.append(json.dumps(Manifest.start("x", command=["eq", echo(key)]).to_dict()))
    pieces = {echo(key)[at : at + 8] for at in range(len(echo(key)) - 7)} | {key[:4], key[-4:]}
    assert not [piece for piece in pieces for text in told if piece in text]
    assert all(key.encode() not in path.read_bytes() for path in tmp_path.iterdir())


@pytest.mark.parametrize("place", ["http://localhost/{key}/v1", "http://localhost/v1/{quoted}"])
def test_a_key_in_the_address_is_refused_and_not_repeated(monkeypatch, place: str) -> None:
    key = "Zq3/v+W=k7Xp%9Lm2Tn-8Ry"
    monkeypatch.setenv("MYAUTH", key)
    url = place.format(key=key, quoted=quote(key, safe=""))
    with pytest.raises(ParameterError) as caught:
        load(parse_spec(f"openai:m,base_url={url},key_env=MYAUTH"))
    assert "Zq3" not in caught.value.render()


def test_a_refused_key_ends_with_exit_code_4(make, service: Service) -> None:
    service.always = server.status(401, "Incorrect API key provided")
    with pytest.raises(MissingExtraError) as caught:
        make().encode(TEXTS, Role.DOCUMENT)
    assert caught.value.exit_code == 4
    assert len(service.requests) == 1


@pytest.mark.parametrize(
    ("spec", "variable"),
    [
        ("openai:text-embedding-3-small", "OPENAI_API_KEY"),
        ("openai:m,base_url=http://localhost:1/v1,key_env=MY_KEY", "MY_KEY"),
        ("openai:m,base_url=https://x.openai.azure.com,api_version=2024-06-01", "AZURE_OPENAI_API_KEY"),
    ],
)
def test_a_missing_key_names_the_variable(monkeypatch, spec: str, variable: str) -> None:
    for name in ("OPENAI_API_KEY", "AZURE_OPENAI_API_KEY", "MY_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(MissingExtraError, match=variable) as caught:
        load(parse_spec(spec))
    assert caught.value.exit_code == 4


def test_a_server_of_ones_own_needs_no_key(make, service: Service, monkeypatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    monkeypatch.setenv("OPENAI_BASE_URL", service.url)
    encoder = load(parse_spec("openai:tiny"))
    assert encoder.encode(["a"], Role.QUERY).tobytes() == vector("a").tobytes()
    encoder.close()


def test_azure_gets_its_key_in_its_own_header(service: Service, monkeypatch) -> None:
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", "azure-key-123456")
    url = service.url.removesuffix("/v1")
    encoder = load(parse_spec(f"openai:deployed,base_url={url},api_version=2024-06-01"))
    assert encoder.encode(["a"], Role.QUERY).tobytes() == vector("a").tobytes()
    assert service.headers[0]["api-key"] == "azure-key-123456"
    assert service.paths == ["/openai/deployments/deployed/embeddings?api-version=2024-06-01"]
    encoder.close()


@pytest.mark.parametrize(
    "option",
    [
        "base_url=localhost",
        "base_url=ftp://x/v1",
        "base_url=http://name:secret@x/v1",
        "base_url=http://x/v1?key=secret",
        "timeout=0",
        "timeout=soon",
        "batch=0",
        "price=-1",
    ],
)
def test_options_that_cannot_be_are_refused_without_repeating_secrets(monkeypatch, option: str) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with pytest.raises(ParameterError) as caught:
        load(parse_spec(f"openai:m,{option}"))
    assert "secret" not in caught.value.render()


def test_the_sizes_of_openai_models_are_known_without_asking(monkeypatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    encoder = load(parse_spec("openai:text-embedding-3-large"))
    assert (encoder.card.dims, encoder.card.max_tokens) == (3072, 8191)
    encoder.close()
