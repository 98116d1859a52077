"""``openai:``: the OpenAI protocol through its SDK, at OpenAI or at any compatible server.

``openai:text-embedding-3-small`` calls OpenAI; ``openai:NAME,base_url=http://localhost:1234/v1`` calls LM Studio or
any other server. ``ollama:``, ``vllm:``, ``tei:`` and ``infinity:`` are the same protocol at the usual local address
of these servers, or at ``base_url``. With ``api_version`` it is Azure, and the model is the name
of a deployment. Keys come from the environment: ``OPENAI_API_KEY``, for Azure ``AZURE_OPENAI_API_KEY``, or
the variable that ``key_env`` names.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from equipoise.models.backends.hosted import SERVICE_OPTIONS, ApiEncoder, checked_url, positive_option
from equipoise.models.backends.hosted_retry import RetryPolicy, api_key_from_env, missing_api_key_error
from equipoise.models.encoder import ModelCard, Role
from equipoise.types import require_extra

if TYPE_CHECKING:
    from equipoise.models.registry import ModelSpec

OPTIONS = (*SERVICE_OPTIONS, "base_url", "api_version", "dimensions", "encoding", "key_env")
OPENAI_BASE_URL = "https://api.openai.com/v1"
DEFAULT_MODEL = "text-embedding-3-small"
LOCAL_SERVERS = {
    "ollama": "http://localhost:11434/v1",
    "vllm": "http://localhost:8000/v1",
    "tei": "http://localhost:8080/v1",
    "infinity": "http://localhost:7997",
}
"""Servers that speak the OpenAI protocol, by kind of spec, and the address that each listens on by default."""
_ADDRESS_VARIABLES = {"ollama": "OLLAMA_HOST"}
CONNECT_SECONDS = 10.0
NO_KEY = "none"

SIZES = {
    "text-embedding-3-small": (1536, 8191),
    "text-embedding-3-large": (3072, 8191),
    "text-embedding-ada-002": (1536, 8191),
}
"""Dimensions and longest input of OpenAI models."""


class OpenAIEncoder(ApiEncoder):
    """A model at a server with the OpenAI API."""

    def __init__(
        self, client: Any, url: str, spec: ModelSpec, card: ModelCard, retry_policy: RetryPolicy | None = None
    ) -> None:
        api_version = spec.options.get("api_version", "")
        super().__init__(spec, card, "openai", url, card.name, api_version, retry_policy=retry_policy)
        self._client = client
        self._request: dict[str, Any] = {
            "model": spec.name or DEFAULT_MODEL,
            "encoding_format": spec.options.get("encoding", "base64"),
        }
        if spec.count("dimensions"):
            self._request["dimensions"] = spec.count("dimensions")

    def request(self, texts: Sequence[str], role: Role) -> Any:
        """The raw JSON: the objects of the SDK convert true to 1.0."""
        reply = self._client.embeddings.with_raw_response.create(input=list(texts), **self._request)
        return reply.http_response.json()

    def close(self) -> None:
        """Close the connections."""
        self._client.close()


def load(spec: ModelSpec, *, retry_policy: RetryPolicy | None = None) -> OpenAIEncoder:
    """The model of an ``openai:`` spec; no request is made."""
    client, url = open_client(spec), _base_url(spec)
    name = spec.name or DEFAULT_MODEL
    dims, max_tokens = SIZES.get(name, (None, None)) if _host(url) == _host(OPENAI_BASE_URL) else (None, None)
    card = ModelCard(
        name,
        str(spec),
        dims=spec.count("dimensions") or dims,
        max_tokens=max_tokens,
        licence="proprietary" if _host(url) == _host(OPENAI_BASE_URL) else "",
        origin=_host(url),
    )
    return OpenAIEncoder(client, url, spec, card, retry_policy)


def open_client(spec: ModelSpec) -> Any:
    """The client of the SDK for the server that a spec names; its retries are off, since ours follow the response."""
    key, url = api_key_from_env(*_key_names(spec)), _base_url(spec)
    azure = "api_version" in spec.options
    if key is None and (azure or "key_env" in spec.options or _host(url) == _host(OPENAI_BASE_URL)):
        raise missing_api_key_error(_host(url), *_key_names(spec))
    engine = require_extra("openai", extra="openai")
    seconds = positive_option(spec, "timeout") or 60.0
    shared = {
        "api_key": key or NO_KEY,
        "max_retries": 0,
        "timeout": engine.Timeout(seconds, connect=min(seconds, CONNECT_SECONDS)),
    }
    if azure:
        return engine.AzureOpenAI(azure_endpoint=url, api_version=spec.options["api_version"], **shared)
    return engine.OpenAI(base_url=url, **shared)


def _key_names(spec: ModelSpec) -> list[str]:
    """The variables that may hold the key, in this order."""
    key_variable = spec.options.get("key_env")
    if key_variable:
        return [key_variable]
    if spec.kind in LOCAL_SERVERS:  # the key of OpenAI is not sent to another server
        return [f"{spec.kind.upper()}_API_KEY"]
    return (["AZURE_OPENAI_API_KEY"] if "api_version" in spec.options else []) + ["OPENAI_API_KEY"]


def _base_url(spec: ModelSpec) -> str:
    """Where the server is: the option, the environment, the usual address of a local server, or OpenAI."""
    base_url = spec.options.get("base_url")
    if spec.kind in LOCAL_SERVERS:
        host = os.environ.get(_ADDRESS_VARIABLES.get(spec.kind, ""), "")
        if host and not base_url:
            base_url = f"{host if '//' in host else f'http://{host}'}".rstrip("/") + "/v1"
        return checked_url((base_url or LOCAL_SERVERS[spec.kind]).rstrip("/"))
    fallback = "AZURE_OPENAI_ENDPOINT" if "api_version" in spec.options else "OPENAI_BASE_URL"
    return checked_url((base_url or os.environ.get(fallback) or OPENAI_BASE_URL).rstrip("/"))


def _host(url: str) -> str:
    return urlsplit(url).netloc
