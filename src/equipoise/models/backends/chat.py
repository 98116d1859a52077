"""Hosted chat models: one prompt, one answer. ``openai:`` (any compatible server) and ``litellm:provider/model``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from equipoise.errors import ParameterError, PartialError
from equipoise.models.backends.hosted import checked_url, positive_option, retry_policy_from
from equipoise.models.backends.hosted_retry import (
    RequestFailedError,
    RequestFailure,
    RetryPolicy,
    call_with_retries,
    classify_error,
    environment_secrets,
    missing_api_key_error,
)
from equipoise.models.backends.openai import open_client
from equipoise.models.registry import ModelSpec, parse_spec
from equipoise.redaction import note_secret
from equipoise.types import require_extra

CHAT_KINDS = ("openai", "litellm")
TIMEOUT_SECONDS = 120.0


class ChatModel:
    """A chat model at a server; the key is read from the environment."""

    def __init__(self, name: str, send: Callable[[str], Any], patience: RetryPolicy) -> None:
        self.name = name
        self._send, self._patience = send, patience

    def complete(self, prompt: str) -> str:
        """The answer to a prompt; a failed request is retried, and raises ``PartialError`` in the end."""
        try:
            return call_with_retries(lambda: self._answer(prompt), self._patience)
        except RequestFailedError as error:
            reason = error.refusal.reason
        raise PartialError(
            f"{self.name} did not answer: {reason}", hint="check the key, the name of the model and --model"
        )

    def _answer(self, prompt: str) -> str:
        refusal: RequestFailure
        try:
            text = self._send(prompt).choices[0].message.content
        except Exception as error:  # the exception may contain the key, so it is not chained
            refusal = classify_error(error)
        else:
            if isinstance(text, str) and text.strip():
                return text
            refusal = RequestFailure("the server answered without a text", wrong=True)
        raise RequestFailedError(refusal)


def chat_model(text: str) -> ChatModel:
    """The chat model that a spec names; no request is made."""
    spec = parse_spec(text)
    if spec.kind not in CHAT_KINDS or not spec.name:
        raise ParameterError(
            f"{text} is not a chat model",
            hint="write openai:MODEL, openai:MODEL,base_url=http://localhost:11434/v1 or litellm:PROVIDER/MODEL",
        )
    patience = retry_policy_from(spec)
    if spec.kind == "openai":
        client = open_client(spec)
        return ChatModel(spec.name, lambda prompt: _openai_answer(client, spec.name, prompt), patience)
    return ChatModel(spec.name, _litellm_sender(spec), patience)


def _messages(prompt: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": prompt}]


def _openai_answer(client: Any, model: str, prompt: str) -> Any:
    return client.chat.completions.create(model=model, messages=_messages(prompt))


def _litellm_sender(spec: ModelSpec) -> Callable[[str], Any]:
    for secret in environment_secrets():  # litellm takes from the environment whatever a provider needs
        note_secret(secret)
    engine: Any = require_extra("litellm", extra="litellm")
    engine.suppress_debug_info = True
    request: dict[str, Any] = {"model": spec.name, "num_retries": 0, "max_retries": 0}
    request["timeout"] = positive_option(spec, "timeout") or TIMEOUT_SECONDS
    if "base_url" in spec.options:
        request["api_base"] = checked_url(spec.options["base_url"])
    elif missing := engine.validate_environment(spec.name).get("missing_keys"):
        raise missing_api_key_error(spec.name.partition("/")[0], *missing)
    return lambda prompt: engine.completion(messages=_messages(prompt), **request)
