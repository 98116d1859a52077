"""Loading from the hub without its noise: no bars, no log, and no retries where nobody answers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from equipoise.embed.local.torch_engine import no_progress_bars
from equipoise.types import need

PATIENCE = 10.0
"""Seconds that the hub has to answer at all."""


@contextmanager
def quiet_hub(asked: bool) -> Iterator[None]:
    """Let a model be loaded inside the block in silence; ``asked`` says whether the hub is needed for it.

    The library asks six times for every file, over more than 20 seconds, before it looks into its cache. A
    hub that does not answer one question is taken for absent, so that the cache is looked into at once.
    """
    hub = need("huggingface_hub", extra="st")
    log, constants = hub.utils.logging, hub.constants
    verbosity, offline = log.get_verbosity(), constants.HF_HUB_OFFLINE
    log.set_verbosity_error()
    try:
        if asked and not offline:
            constants.HF_HUB_OFFLINE = not _answers()
        with no_progress_bars():
            yield
    finally:
        constants.HF_HUB_OFFLINE = offline
        log.set_verbosity(verbosity)


def _answers() -> bool:
    """Whether the hub says anything, be it a refusal."""
    hub = need("huggingface_hub", extra="st")
    try:
        hub.utils.get_session().head(hub.constants.ENDPOINT, timeout=PATIENCE)
    except Exception:  # of httpx or of requests, as the version of the library has it
        return False
    return True
