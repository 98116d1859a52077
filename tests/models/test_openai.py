"""The OpenAI adapter: the SDK with a local server that simulates failures."""

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
from equipoise.models.corpus import embed_to_file
from equipoise.models.embedder import Embedder
from equipoise.models.encoder import Role
from equipoise.models.registry import parse_spec
from equipoise.models.vector_cache import VectorCache
from equipoise.runs.manifest import Manifest
from marked import marked

KEY = "sk-not-a-real-key-0123456789abcdef"
TEXTS = [f"text number {number}" for number in range(10)]


@pytest.fixture
@marked(pytest.mark.slow)
def service(monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    for name in ("OPENAI_BASE_URL", "AZURE_OPENAI_API_KEY", "AZURE_OPENAI_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)
    with server.serving() as local_service:
        yield local_service


@pytest.fixture
def waits() -> list[float]:
    return []


@pytest.fixture
def make(service: Service, waits: list[float]) -> Iterator:
    encoders: list[OpenAIEncoder] = []

    def encoder(options: str = "parallel=1", attempts: int = 4) -> OpenAIEncoder:
        patience = RetryPolicy(attempts=attempts, sleep=waits.append, rng=np.random.default_rng(0))
        spec = parse_spec(f"openai:tiny,base_url={service.url},{options}")
        encoders.append(load(spec, retry_policy=patience))
        return encoders[-1]

    yield encoder
    for created in encoders:
        created.close()


def test_a_server_that_is_not_running_is_named() -> None:
    spec = parse_spec("openai:tiny,base_url=http://127.0.0.1:9/v1,parallel=1")
    encoder = load(spec, retry_policy=RetryPolicy(attempts=2, sleep=lambda seconds: None))
    with pytest.raises(StoppedError) as error:
        encoder.encode(["a"], Role.DOCUMENT)
    assert "(after 2 attempts)" in error.value.message
    assert error.value.hint == "check that 127.0.0.1:9 can be reached, and repeat the command"


def vectors_of(texts: list[str]) -> np.ndarray:
    return np.stack([vector(text) for text in texts])


@pytest.mark.parametrize("options", ["batch=3", "batch=3,encoding=float", "batch=1,parallel=8", "batch=100"])
def test_vectors_are_exact_and_in_order(make, service: Service, options: str) -> None:
    encoder = make(options)
    assert encoder.encode(TEXTS, Role.DOCUMENT).tobytes() == vectors_of(TEXTS).tobytes()
    assert sorted(service.asked) == sorted(TEXTS)
    assert set(service.paths) == {"/v1/embeddings"}
    assert encoder.card.dims == DIMS
    assert encoder.usage.requests == len(service.requests)
    assert encoder.usage.tokens == 30
    assert encoder.usage.cost is None


def test_the_cost_is_tokens_times_price(make) -> None:
    encoder = make("price=0.5")
    encoder.encode(TEXTS, Role.QUERY)
    assert encoder.usage.cost == pytest.approx(30 / 1e6 * 0.5)


def test_the_key_is_sent_to_the_server_only(make, service: Service) -> None:
    encoder = make()
    encoder.encode(["a"], Role.DOCUMENT)
    assert service.headers[0]["authorization"] == f"Bearer {KEY}"
    texts = [repr(encoder), str(encoder), encoder.identity, repr(encoder.card), str(encoder.usage)]
    assert not any(KEY in text for text in [*texts, *map(str, vars(encoder).values())])


def test_dimensions_are_requested(make, service: Service) -> None:
    service.always = server.data(lambda items: [{**items[0], "embedding": [1.0, 2.0, 3.0]}])
    encoder = make("dimensions=3")
    assert encoder.encode(["a"], Role.QUERY).tolist() == [[1.0, 2.0, 3.0]]
    assert service.requests[0]["dimensions"] == 3
    assert encoder.card.dims == 3


# -- retries --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "response",
    [
        *(server.status(code) for code in (408, 409, 429, 500, 502, 503, 529)),
        server.cut_off,
        server.half_json,
    ],
    ids=["408", "409", "429", "500", "502", "503", "529", "cut off", "half JSON"],
)
def test_temporary_errors_are_retried(make, service: Service, waits, response) -> None:
    service.tricks = [response, response]
    encoder = make()
    assert encoder.encode(TEXTS, Role.DOCUMENT).tobytes() == vectors_of(TEXTS).tobytes()
    assert len(service.requests) == 3
    assert len(waits) == 2
    assert (encoder.usage.requests, encoder.usage.failed) == (3, 2)


@pytest.mark.parametrize("code", [400, 403, 404, 418])
def test_permanent_errors_are_not_retried(make, service: Service, waits, code: int) -> None:
    service.always = server.status(code, "unknown resource")
    with pytest.raises(PartialError, match=f"{code}") as error:
        make().encode(TEXTS, Role.DOCUMENT)
    assert len(service.requests) == 1
    assert waits == []
    assert error.value.exit_code == 3


def test_exceeded_quotas_are_not_retried(make, service: Service) -> None:
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
def test_the_requested_wait_is_used(make, service: Service, waits, headers, seconds) -> None:
    service.tricks = [server.status(429, **headers)]
    make().encode(TEXTS, Role.DOCUMENT)
    assert waits == [pytest.approx(seconds)]


def test_too_long_waits_raise_partial_error(make, service: Service, waits) -> None:
    service.always = server.status(429, Retry_After="86400")
    with pytest.raises(PartialError, match="86400 s"):
        make().encode(TEXTS, Role.DOCUMENT)
    assert waits == []


def test_attempts_are_limited(make, service: Service, waits) -> None:
    service.always = server.status(500)
    with pytest.raises(PartialError, match=r"500.*4"):
        make().encode(TEXTS, Role.DOCUMENT)
    assert len(service.requests) == 4
    assert len(waits) == 3


def test_timeouts_are_retried(make, service: Service) -> None:
    service.tricks = [server.slow(0.6)]
    encoder = make("timeout=0.2")
    assert encoder.encode(["a"], Role.DOCUMENT).tobytes() == vector("a").tobytes()
    assert len(service.requests) == 2
    service.always = server.slow(0.6)
    with pytest.raises(PartialError):
        make("timeout=0.1", attempts=2).encode(["b"], Role.DOCUMENT)


def test_unreachable_servers_raise_partial_error(make, monkeypatch) -> None:
    spec = parse_spec("openai:tiny,base_url=http://127.0.0.1:9/v1")
    encoder = load(spec, retry_policy=RetryPolicy(attempts=2, sleep=lambda seconds: None))
    with pytest.raises(PartialError, match="2 attempts"):
        encoder.encode(["a"], Role.DOCUMENT)
    encoder.close()


# -- batches that are too large ------------------------------------------------------------------------


@pytest.mark.parametrize(("code", "message"), [(413, "payload"), (400, "maximum context length is 8 tokens")])
def test_too_large_batches_are_halved_and_later_batches_smaller(make, service, code, message) -> None:
    service.always = server.at_most(3, 1000, code, message)
    encoder = make("batch=8")
    assert encoder.encode(TEXTS[:8], Role.DOCUMENT).tobytes() == vectors_of(TEXTS[:8]).tobytes()
    assert [len(server.inputs(request)) for request in service.requests] == [8, 4, 2, 2, 4, 2, 2]
    service.requests.clear()
    encoder.encode(TEXTS, Role.DOCUMENT)
    assert [len(server.inputs(request)) for request in service.requests] == [2, 2, 2, 2, 2]


def test_too_long_texts_raise_an_error_after_the_other_texts(make, service: Service) -> None:
    service.always = server.at_most(100, 50)
    texts = [*TEXTS[:4], "long " * 40, *TEXTS[4:]]
    with pytest.raises(TextTooLongError, match=r"200 characters.*'long long") as error:
        make("batch=2").encode(texts, Role.DOCUMENT)
    assert error.value.exit_code == 2
    assert "truncate=true" in error.value.hint
    finished_texts = error.value.finished
    assert finished_texts.positions[:4].tolist() == [0, 1, 2, 3]
    for index, row in zip(finished_texts.positions.tolist(), finished_texts.vectors, strict=True):
        assert row.tobytes() == vector(texts[index]).tobytes()


def test_one_long_text_does_not_reduce_later_batches(make, service: Service) -> None:
    service.always = server.at_most(100, 50)
    encoder = make("batch=4,truncate=true")
    encoder.encode([*TEXTS[:3], "long " * 11], Role.DOCUMENT)
    service.requests.clear()
    service.always = None
    encoder.encode(TEXTS, Role.DOCUMENT)
    assert len(service.requests) <= 5


def test_texts_are_truncated_only_on_request(make, service: Service) -> None:
    service.always = server.at_most(100, 50)
    encoder = make("truncate=true")
    vectors = encoder.encode(["short", "x" * 200], Role.DOCUMENT)
    n_characters = len(service.asked[-1])
    assert 50 * 3 // 4 <= n_characters <= 50
    assert vectors[1].tobytes() == vector("x" * n_characters).tobytes()
    assert encoder.usage.cut == 1
    assert encoder.identity != make().identity


# -- invalid responses ----------------------------------------------------------------------------------

INVALID_RESPONSES = {
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


@pytest.mark.parametrize("change", INVALID_RESPONSES.values(), ids=INVALID_RESPONSES)
def test_invalid_responses_raise_partial_error(make, service: Service, change) -> None:
    service.always = server.data(change)
    with pytest.raises(PartialError) as error:
        make().encode(TEXTS, Role.DOCUMENT)
    assert len(service.requests) == 1
    assert "the server is at fault" in error.value.hint
    assert error.value.finished is None


def test_boolean_indexes_raise_partial_error(make, service: Service) -> None:
    service.always = server.data(lambda items: [{**item, "index": item["index"] == 1} for item in items])
    with pytest.raises(PartialError) as error:
        make().encode(["a", "b"], Role.DOCUMENT)
    assert error.value.code == "E702"
    assert error.value.finished is None


def test_responses_in_another_order_are_sorted_by_their_indexes(make, service: Service) -> None:
    service.always = server.data(lambda items: items[::-1])
    assert make().encode(TEXTS, Role.DOCUMENT).tobytes() == vectors_of(TEXTS).tobytes()


def test_responses_without_indexes_are_in_order(make, service: Service) -> None:
    service.always = server.data(lambda items: [{"embedding": item["embedding"]} for item in items])
    assert make().encode(TEXTS, Role.DOCUMENT).tobytes() == vectors_of(TEXTS).tobytes()


def test_changed_dimensions_raise_partial_error(make, service: Service) -> None:
    encoder = make()
    encoder.encode(["a"], Role.DOCUMENT)
    service.always = server.data(lambda items: [{**item, "embedding": [1.0, 2.0]} for item in items])
    with pytest.raises(PartialError, match="2 and 8 dimensions") as error:
        encoder.encode(["b"], Role.DOCUMENT)
    assert "run the same command again" not in error.value.hint


# -- resuming after a failure ---------------------------------------------------------------------------


def test_errors_contain_the_finished_vectors(make, service: Service) -> None:
    service.tricks = [server.honest, server.honest, server.status(400, "bad request")]
    with pytest.raises(PartialError, match=r"6.*10 texts") as error:
        make("batch=3,parallel=1").encode(TEXTS, Role.DOCUMENT)
    finished_texts = error.value.finished
    assert finished_texts.positions.tolist() == [0, 1, 2, 3, 4, 5]
    assert finished_texts.vectors.tobytes() == vectors_of(TEXTS[:6]).tobytes()


def test_errors_count_all_texts(make, service: Service) -> None:
    model = Embedder(make("batch=2,parallel=1"), cache=None)
    texts = [*TEXTS, TEXTS[0], TEXTS[9]]  # of the repetitions, one is of a text that was embedded
    service.tricks = [server.honest, server.honest, server.status(400, "bad request")]
    with pytest.raises(StoppedError) as error:
        model.embed(texts)
    assert (error.value.done, error.value.total) == (5, 12)
    unpickled = pickle.loads(pickle.dumps(error.value))
    assert (unpickled.message, unpickled.hint, unpickled.done) == (error.value.message, error.value.hint, 5)


def test_errors_count_the_texts_of_earlier_runs(make, service: Service, tmp_path: Path) -> None:
    model = Embedder(make("batch=2,parallel=1"), cache=None)
    texts = [f"{text} {suffix}" for suffix in "ab" for text in TEXTS]
    # A batch of the file is two requests; its rows are written after both responses.
    for n_answered, n_done in ((3, 6), (5, 14)):
        service.tricks = [*[server.honest] * n_answered, server.status(400, "bad request")]
        with pytest.raises(StoppedError) as error:
            embed_to_file(iter(texts), model, tmp_path / "v.npy", batch=4, total=len(texts))
        assert (error.value.done, error.value.total) == (n_done, 20)


def test_the_same_call_resumes_after_a_failure(make, service: Service, tmp_path: Path) -> None:
    cache = VectorCache(tmp_path / "vectors.sqlite")
    model = Embedder(make("batch=3,parallel=1"), cache=cache)
    service.tricks = [server.honest, server.honest, server.status(400, "bad request")]
    with pytest.raises(PartialError):
        model.embed(TEXTS)
    assert len(service.requests) == 3
    service.requests.clear()
    result = model.embed_report(TEXTS)
    assert (result.report.from_cache, result.report.embedded) == (6, 4)
    assert len(service.asked) == 4
    expected = Embedder(make("batch=3")).embed(TEXTS)
    assert result.vectors.tobytes() == expected.tobytes()
    service.requests.clear()
    assert model.embed_report(TEXTS).report.embedded == 0
    assert service.requests == []
    cache.close()


def test_parallel_requests_of_a_failed_call_are_cached(make, service, tmp_path: Path) -> None:
    cache = VectorCache(tmp_path / "vectors.sqlite")
    model = Embedder(make("batch=2,parallel=5"), cache=cache)

    def fail_one_text(handler, request) -> None:
        should_fail = TEXTS[5] in server.inputs(request)
        (server.status(400) if should_fail else server.honest)(handler, request)

    service.always = fail_one_text
    with pytest.raises(PartialError) as error:
        model.embed(TEXTS)
    n_finished = len(error.value.finished.positions)
    service.requests.clear()
    service.always = None
    assert model.embed_report(TEXTS).report.from_cache == n_finished
    assert len(service.asked) == len(TEXTS) - n_finished
    cache.close()


# -- keys ----------------------------------------------------------------------------------------------

RESPONSES_WITH_KEY = {
    "401 that repeats the key": server.status(401, f"Incorrect API key provided: {KEY}. Find yours"),
    "400 that repeats the header": server.status(400, f"bad header Authorization: Bearer {KEY}"),
    "500 that repeats the key": server.status(500, KEY),
    "a wrong answer": server.data(lambda items: []),
    "a cut-off answer": server.cut_off,
}


@pytest.mark.parametrize("response", RESPONSES_WITH_KEY.values(), ids=RESPONSES_WITH_KEY)
def test_errors_and_caches_hide_the_key(make, service, tmp_path: Path, response) -> None:
    service.always = response
    cache = VectorCache(tmp_path / "vectors.sqlite")
    with pytest.raises(EquipoiseError) as error:
        Embedder(make(), cache=cache).embed(TEXTS)
    exception: BaseException | None = error.value
    printed = io.StringIO()
    traceback.print_exception(exception, file=printed)
    texts = [printed.getvalue(), error.value.render(), repr(exception)]
    while exception is not None:
        texts += [repr(vars(exception)), str(exception.args)]
        exception = exception.__cause__ or exception.__context__
    assert not any(KEY in text for text in texts)
    service.always = None
    Embedder(make(), cache=cache).embed(TEXTS)
    cache.close()
    assert all(KEY.encode() not in path.read_bytes() for path in tmp_path.iterdir())


KEY_FORMS = {
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
@pytest.mark.parametrize("form", KEY_FORMS.values(), ids=KEY_FORMS)
def test_keys_of_any_variable_are_hidden_in_every_form(
    service, monkeypatch, tmp_path: Path, waits, form, code: int
) -> None:
    """The server repeats the key of a variable whose name does not indicate a key."""
    key = "Zq3/v+W=k7Xp%9Lm2Tn-8Ry"
    monkeypatch.setenv("MYAUTH", key)
    received_keys: list[str] = []

    def respond_with_key(handler: server.Handler, request: dict) -> None:
        received_key = handler.headers["Authorization"].removeprefix("Bearer ")
        received_keys.append(received_key)
        handler.answer({"error": {"message": f"no {form(received_key)} here"}}, code)

    service.always = respond_with_key
    spec = parse_spec(f"openai:tiny,base_url={service.url},key_env=MYAUTH,parallel=1")
    cache = VectorCache(tmp_path / "vectors.sqlite")
    with pytest.raises(EquipoiseError) as error:
        Embedder(load(spec, retry_policy=RetryPolicy(attempts=2, sleep=waits.append)), spec, cache=cache).embed(TEXTS)
    cache.close()
    assert set(received_keys) == {key}
    printed = io.StringIO()
    traceback.print_exception(error.value, file=printed)
    outputs = [printed.getvalue(), error.value.render(), repr(vars(error.value)), repr(error.value)]
    outputs.append(json.dumps(Manifest.start("x", command=["eq", form(key)]).to_dict()))
    key_parts = {form(key)[start : start + 8] for start in range(len(form(key)) - 7)} | {key[:4], key[-4:]}
    assert not [key_part for key_part in key_parts for text in outputs if key_part in text]
    assert all(key.encode() not in path.read_bytes() for path in tmp_path.iterdir())


@pytest.mark.parametrize("address", ["http://localhost/{key}/v1", "http://localhost/v1/{quoted}"])
def test_keys_in_the_address_raise_errors_without_the_key(monkeypatch, address: str) -> None:
    key = "Zq3/v+W=k7Xp%9Lm2Tn-8Ry"
    monkeypatch.setenv("MYAUTH", key)
    url = address.format(key=key, quoted=quote(key, safe=""))
    with pytest.raises(ParameterError) as error:
        load(parse_spec(f"openai:m,base_url={url},key_env=MYAUTH"))
    assert "Zq3" not in error.value.render()


def test_rejected_keys_raise_missing_extra_error(make, service: Service) -> None:
    service.always = server.status(401, "Incorrect API key provided")
    with pytest.raises(MissingExtraError) as error:
        make().encode(TEXTS, Role.DOCUMENT)
    assert error.value.exit_code == 4
    assert len(service.requests) == 1


@pytest.mark.parametrize(
    ("spec", "variable"),
    [
        ("openai:text-embedding-3-small", "OPENAI_API_KEY"),
        ("openai:m,base_url=http://localhost:1/v1,key_env=MY_KEY", "MY_KEY"),
        ("openai:m,base_url=https://x.openai.azure.com,api_version=2024-06-01", "AZURE_OPENAI_API_KEY"),
    ],
)
def test_missing_keys_raise_missing_extra_error_with_the_variable(monkeypatch, spec: str, variable: str) -> None:
    for name in ("OPENAI_API_KEY", "AZURE_OPENAI_API_KEY", "MY_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(MissingExtraError, match=variable) as error:
        load(parse_spec(spec))
    assert error.value.exit_code == 4


def test_other_servers_need_no_key(make, service: Service, monkeypatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    monkeypatch.setenv("OPENAI_BASE_URL", service.url)
    encoder = load(parse_spec("openai:tiny"))
    assert encoder.encode(["a"], Role.QUERY).tobytes() == vector("a").tobytes()
    encoder.close()


def test_azure_receives_the_key_in_its_header(service: Service, monkeypatch) -> None:
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
def test_invalid_options_raise_errors_without_secrets(monkeypatch, option: str) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with pytest.raises(ParameterError) as error:
        load(parse_spec(f"openai:m,{option}"))
    assert "secret" not in error.value.render()


def test_the_sizes_of_openai_models_need_no_request(monkeypatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    encoder = load(parse_spec("openai:text-embedding-3-large"))
    assert (encoder.card.dims, encoder.card.max_tokens) == (3072, 8191)
    encoder.close()
