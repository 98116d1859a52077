"""What runs on a worker of a cluster: one cell, in surroundings as they are where it was sent from."""

from __future__ import annotations

import os
import pickle
import platform
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from equipoise.errors import EquipoiseError, MissingExtraError
from equipoise.version import __version__

SENT = ("EQUIPOISE_CACHE", "EQUIPOISE_CACHE_BYTES")
"""What a worker is told of the environment. Keys of services are not sent: a node has its own."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Where a command was typed: its version, its folder, and its settings."""

    version: str = __version__
    folder: str = field(default_factory=os.getcwd)
    environment: Mapping[str, str] = field(
        default_factory=lambda: {name: os.environ[name] for name in SENT if name in os.environ}
    )


@dataclass(frozen=True)
class Answer:
    """What a cell gave or why it failed, and the steps that it told."""

    outcome: Any
    steps: tuple[str, ...] = ()
    unfit: bool = False
    """Whether no cell at all can run on this machine."""


def answer(sent: bytes, held: bytes, typed: bytes) -> Answer:
    """Run the pickled function on the pickled cell; an error is an answer too, and crosses whole."""
    steps: list[str] = []
    node = platform.node()
    try:
        _settle(pickle.loads(typed), node)
    except Exception as error:  # another version may not even have the same surroundings
        return Answer(_portable(error), unfit=True)
    try:
        function, cell = _unpacked(sent, node)
        outcome = function(cell, _unpacked(held, node), steps.append)
    except Exception as error:  # whatever it is, whoever sent the cell wants to hear of it
        outcome = _portable(error)
    return Answer(outcome, tuple(steps))


def _settle(typed: Surroundings, node: str) -> None:
    """Take over folder and settings: a relative path means what it meant where it was typed.

    Only the number of the version is compared: two states of one version under development pass for equal.
    """
    if typed.version != __version__:
        raise MissingExtraError(
            f"the node {node} has equipoise {__version__}, and the command was typed with {typed.version}",
            hint="install the same version on every node",
        )
    os.environ.update(typed.environment)
    with suppress(OSError):  # a machine that shares no files has no such folder
        os.chdir(typed.folder)


def _unpacked(sent: bytes, node: str) -> Any:
    """What was sent, when this machine has what it is made of."""
    try:
        return pickle.loads(sent)
    except ImportError as error:
        raise MissingExtraError(
            f"the node {node} lacks what a cell is made of: {error}",
            hint="install the same packages on every node",
        ) from error


def _portable(error: Exception) -> Exception:
    """The error itself where it can travel, or one of ours that quotes it."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:  # an exception may refuse to be pickled in any way it likes
        return EquipoiseError(f"{type(error).__name__}: {error}")
    return error
