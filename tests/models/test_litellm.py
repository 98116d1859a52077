"""The litellm adapter: the protocols of Cohere, Voyage and OpenAI, with a local server."""

from __future__ import annotations

import base64
import traceback
from collections.abc import Iterator
from urllib.parse import quote

import numpy as np
import pytest

import embedding_server as server
from embedding_server import Service, vector
from equipoise.errors import EquipoiseError, MissingExtraError, ParameterError, PartialError
from equipoise.models.backends.hosted_retry import RetryPolicy
from equipoise.models.backends.litellm import LitellmEncoder, load
from equipoise.models.encoder import Role
from equipoise.models.registry import parse_spec

KEY = "not-a-real-key-0123456789abcdef"
TEXTS = [f"text number {number}" for number in range(7)]
KEYS = ("COHERE_API_KEY", "VOYAGE_API_KEY", "OPENAI_API_KEY", "MISTRAL_API_KEY")
MODELS = ("cohere:embed-english-v3.0", "voyage:voyage-3", "litellm:openai/tiny")

pytestmark = [
    pytest.mark.engines("litellm"),
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning"),
]


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    for name in KEYS:
        monkeypatch.setenv(name, KEY)
    with server.serving() as local_service:
        yield local_service


@pytest.fixture
def waits() -> list[float]:
    return []


@pytest.fixture
def make(service: Service, waits: list[float]):
    def encoder(model: str, options: str = "batch=3,parallel=1", attempts: int = 3) -> LitellmEncoder:
        patience = RetryPolicy(attempts=attempts, sleep=waits.append, rng=np.random.default_rng(0))
        return load(parse_spec(f"{model},base_url={service.url},{options}"), retry_policy=patience)

    return encoder


@pytest.mark.parametrize(
    ("model", "query", "document"),
    [
        ("cohere:embed-english-v3.0", "search_query", "search_document"),
        ("voyage:voyage-3", "query", "document"),
        ("litellm:openai/tiny", "", ""),
    ],
)
def test_every_service_receives_the_role_in_its_protocol(make, service, model, query, document) -> None:
    encoder = make(model)
    for role, word in ((Role.QUERY, query), (Role.DOCUMENT, document)):
        expected = np.stack([vector(text, word) for text in TEXTS])
        np.testing.assert_allclose(encoder.encode(TEXTS, role), expected, rtol=1e-6)
    assert len(service.requests) == 6
    assert encoder.usage.tokens == 2 * 3 * len(TEXTS)


@pytest.mark.parametrize("model", MODELS)
def test_temporary_errors_are_retried(make, service: Service, waits, model: str) -> None:
    service.tricks = [server.status(429, Retry_After="3"), server.status(500)]
    encoder = make(model, "batch=100")
    assert encoder.encode(TEXTS, Role.DOCUMENT).shape == (7, 8)
    assert len(service.requests) == 3
    assert waits[0] == 3.0


@pytest.mark.parametrize("model", MODELS)
def test_errors_hide_the_key(make, service: Service, model: str, capfd) -> None:
    service.always = server.status(400, f"key {KEY} may not do this")
    with pytest.raises(EquipoiseError) as error:
        make(model).encode(TEXTS, Role.DOCUMENT)
    assert len(service.requests) == 1
    error_text = "".join(traceback.format_exception(error.value)) + error.value.render() + repr(error.value)
    printed = capfd.readouterr()
    assert "may not do this" in error_text
    assert KEY not in error_text + printed.out + printed.err


@pytest.mark.parametrize("model", MODELS)
def test_errors_hide_shortened_and_encoded_keys(make, service: Service, model: str, capfd) -> None:
    echoes = [quote(KEY[:20]), base64.b64encode(KEY.encode()).decode(), f"{KEY[:6]}...{KEY[-4:]}"]
    service.always = server.status(400, f"keys {' '.join(echoes)} may not do this")
    with pytest.raises(EquipoiseError) as error:
        make(model).encode(TEXTS, Role.DOCUMENT)
    printed = capfd.readouterr()
    error_text = "".join(traceback.format_exception(error.value)) + printed.out + printed.err
    assert not any(echo in error_text for echo in echoes)


def test_a_wrong_number_of_vectors_raises_partial_error(make, service: Service) -> None:
    service.always = server.data(lambda items: items[:-1])
    with pytest.raises(PartialError, match=r"2 vectors.*3 texts"):
        make("voyage:voyage-3").encode(TEXTS, Role.DOCUMENT)


@pytest.mark.parametrize("model", ["voyage:voyage-3", "litellm:openai/tiny"])
@pytest.mark.parametrize(
    "change",
    [
        lambda items: [{**item, "index": item["index"] == 1} for item in items],
        lambda items: [{**item, "index": 0} for item in items],
        lambda items: [{**items[0], "embedding": ["1.0"] * 8}, items[1]],
        lambda items: [{**items[0], "embedding": [float("nan")] * 8}, items[1]],
        lambda items: [{**items[0], "embedding": [[1.0] * 8]}, items[1]],
    ],
    ids=["boolean indexes", "one index twice", "strings", "NaN", "nested"],
)
def test_invalid_responses_raise_partial_error(make, service: Service, model: str, change) -> None:
    service.always = server.data(change)
    with pytest.raises(PartialError):
        make(model).encode(["a", "b"], Role.DOCUMENT)


@pytest.mark.parametrize("model", MODELS)
def test_timeouts_and_closed_connections_are_retried(make, service: Service, model: str) -> None:
    service.tricks = [server.slow(1.0), server.cut_off]
    encoder = make(model, "timeout=0.3")
    assert encoder.encode(["a"], Role.DOCUMENT).shape == (1, 8)
    assert len(service.requests) == 3


@pytest.mark.parametrize(
    ("spec", "variable"),
    [
        ("cohere:embed-english-v3.0", "COHERE_API_KEY"),
        ("voyage:voyage-3", "VOYAGE_API_KEY"),
        ("litellm:mistral/mistral-embed", "MISTRAL_API_KEY"),
    ],
)
def test_missing_keys_raise_missing_extra_error_with_the_variable(monkeypatch, spec: str, variable: str) -> None:
    for name in KEYS:
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(MissingExtraError, match=variable) as error:
        load(parse_spec(spec))
    assert error.value.exit_code == 4


@pytest.mark.parametrize("spec", ["cohere:", "litellm:", "litellm:mistral", "litellm:/"])
def test_specs_without_a_model_raise_parameter_error(spec: str) -> None:
    with pytest.raises(ParameterError):
        load(parse_spec(spec))


def test_the_role_is_part_of_the_cache_key(make) -> None:
    from equipoise.models.embedder import Embedder

    model = Embedder(make("voyage:voyage-3"))
    assert model.variant(Role.QUERY) != model.variant(Role.DOCUMENT)
