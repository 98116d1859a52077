"""The options that all hosted models share: batch, parallel, timeout, attempts, truncate, price."""

from __future__ import annotations

from urllib.parse import urlsplit

from equipoise.embed.hosted.encoder import Limits
from equipoise.embed.hosted.retry import Patience
from equipoise.embed.options import number_option
from equipoise.embed.spec import Spec
from equipoise.errors import ParameterError
from equipoise.redaction import redact

SERVICE_OPTIONS = ("batch", "parallel", "timeout", "attempts", "truncate", "price")


def limits_of(spec: Spec, *, most: int | None = None) -> Limits:
    """How much goes into a request, and how many run at once; ``most`` texts where none are asked for."""
    usual = Limits()
    return Limits(
        texts=spec.count("batch") or most or usual.texts,
        parallel=spec.count("parallel") or usual.parallel,
        cut=spec.flag("truncate", False),
    )


def patience_of(spec: Spec) -> Patience:
    """How often to try."""
    attempts = spec.count("attempts")
    return Patience() if attempts is None else Patience(attempts=attempts)


def positive(spec: Spec, option: str) -> float | None:
    """A number above 0; None where the option was not given."""
    if option not in spec.options:
        return None
    number = number_option(spec, option, 0.0)
    if number <= 0:
        raise ParameterError(f"{option} is {spec.options[option]!r} in {spec}", hint=f"{option} is above 0")
    return number


def checked_url(url: str) -> str:
    """The address of a server, without a secret in it: addresses are printed, and kept in manifests."""
    try:
        parts = urlsplit(url)
        whole = parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        whole = False
    if not whole:
        raise ParameterError(
            "base_url is no address of a server", hint="for example base_url=http://localhost:11434/v1"
        )
    if parts.username or parts.password or parts.query or redact(url) != url:
        raise ParameterError(
            "base_url holds a name, a password, a key or a query",
            hint="keys are read from the environment only: OPENAI_API_KEY, or key_env=NAME",
        )
    return url
