"""``cohere:``, ``voyage:`` and ``litellm:provider/model``: other services, through litellm.

Each provider's key is read from its variable, such as ``COHERE_API_KEY``. Queries and documents are
distinguished if the service does so.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import TYPE_CHECKING, Any

from equipoise.errors import ParameterError
from equipoise.models.backends.hosted import SERVICE_OPTIONS, ApiEncoder, checked_url, positive_option
from equipoise.models.backends.hosted_retry import RetryPolicy, environment_secrets, missing_api_key_error
from equipoise.models.encoder import ModelCard, Role
from equipoise.redaction import note_secret
from equipoise.types import require_extra

if TYPE_CHECKING:
    from equipoise.models.registry import ModelSpec

OPTIONS = (*SERVICE_OPTIONS, "base_url", "dimensions")
TIMEOUT_SECONDS = 60.0

INPUT_TYPES = {
    "cohere": {Role.QUERY: "search_query", Role.DOCUMENT: "search_document"},
    "voyage": {Role.QUERY: "query", Role.DOCUMENT: "document"},
}
"""How services that embed queries and documents differently call the two."""

MAX_BATCH_SIZES = {"cohere": 96, "voyage": 128}
"""The most texts that a service takes at once, where it is less than ours."""


class LitellmEncoder(ApiEncoder):
    """A model at any service that litellm supports."""

    symmetric = False

    def __init__(
        self, engine: ModuleType, model: str, spec: ModelSpec, card: ModelCard, retry_policy: RetryPolicy | None = None
    ) -> None:
        provider = model.partition("/")[0]
        self.batch_texts = MAX_BATCH_SIZES.get(provider, self.batch_texts)
        super().__init__(spec, card, "litellm", model, spec.options.get("base_url", ""), retry_policy=retry_policy)
        self._engine = engine
        self._types = INPUT_TYPES.get(provider, {})
        self._request: dict[str, Any] = {
            "model": model,
            "timeout": positive_option(spec, "timeout") or TIMEOUT_SECONDS,
            "num_retries": 0,
            "max_retries": 0,
        }
        if spec.count("dimensions"):
            self._request["dimensions"] = spec.count("dimensions")
        if "base_url" in spec.options:
            self._request["api_base"] = spec.options["base_url"]

    def request(self, texts: Sequence[str], role: Role) -> Any:
        """The answer, with the type of the input where the service distinguishes queries and documents."""
        input_type = {"input_type": self._types[role]} if role in self._types else {}
        return self._engine.embedding(input=list(texts), **self._request, **input_type)


def load(spec: ModelSpec, *, retry_policy: RetryPolicy | None = None) -> LitellmEncoder:
    """The model of a ``cohere:``, ``voyage:`` or ``litellm:`` spec; no request is made."""
    model = spec.name if spec.kind == "litellm" else f"{spec.kind}/{spec.name}"
    if not model.partition("/")[2]:
        raise ParameterError(
            f"{spec} names no model", hint="for example cohere:embed-v4.0 or litellm:mistral/mistral-embed"
        )
    engine = open_engine(spec, model)
    dims, max_tokens = _sizes(engine, model)
    card = ModelCard(
        model,
        str(spec),
        dims=spec.count("dimensions") or dims,
        max_tokens=max_tokens,
        licence="proprietary",
        origin=spec.options.get("base_url", model.partition("/")[0]),
    )
    return LitellmEncoder(engine, model, spec, card, retry_policy)


def open_engine(spec: ModelSpec, model: str) -> ModuleType:
    """The package litellm for ``PROVIDER/NAME``, after its URL and its key were checked."""
    for secret in environment_secrets():  # litellm reads the variables of a provider from the environment
        note_secret(secret)
    if "base_url" in spec.options:
        checked_url(spec.options["base_url"])
    with _without_price_download():
        engine = require_extra("litellm", extra="litellm")
    # Disable advertisements on standard output, and retries that would hide the server's message.
    engine.suppress_debug_info, engine.DEFAULT_MAX_RETRIES = True, 0  # type: ignore[attr-defined]
    if "base_url" not in spec.options:
        missing = engine.validate_environment(model).get("missing_keys") or []
        if missing:
            raise missing_api_key_error(model.partition("/")[0], *missing)
    return engine


def _sizes(engine: ModuleType, model: str) -> tuple[int | None, int | None]:
    """Dimensions and longest input, from the table inside litellm."""
    costs = engine.model_cost.get(model) or engine.model_cost.get(model.partition("/")[2]) or {}
    return costs.get("output_vector_size"), costs.get("max_input_tokens")


@contextmanager
def _without_price_download() -> Iterator[None]:
    """While litellm is imported, it would fetch a table of prices; it has one inside."""
    name = "LITELLM_LOCAL_MODEL_COST_MAP"
    before = os.environ.get(name)
    os.environ[name] = "True"
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before
