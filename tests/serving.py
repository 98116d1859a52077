"""Runs for the viewer, and a real server for them on a local port."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np

from equipoise.config import StatsConfig
from equipoise.evidence.ranking import Ranking
from equipoise.runs.evaluate import evaluate
from equipoise.runs.manifest import Manifest, Status
from equipoise.runs.run_folder import save_run
from equipoise.runs.unit_table import RetrievedItem, UnitContent
from equipoise.view.cli import make_server, open_socket

Store = Callable[..., Path]
DAY = "2026-11-{:02}T10:00:00Z"


def store(
    path: Path,
    system: str = "",
    *,
    units: Sequence[str | int] | int = 30,
    metrics: Sequence[str] = ("MRR", "HR@1"),
    worse: int = 0,
    status: Status = Status.COMPLETE,
    day: int = 1,
    details: bool = False,
) -> Path:
    """Write a run directory; ``worse`` increases the ranks of the relevant items."""
    ids = [f"q{index}" for index in range(units)] if isinstance(units, int) else list(units)
    ranks = np.random.default_rng(7).integers(1, 4 + 2 * worse, len(ids))
    evidence = Ranking.from_ranks(ranks, candidates=100, unit_ids=ids)
    result = evaluate(evidence, metrics, system=system or path.name, config=StatsConfig(n_resamples=200))
    manifest = Manifest(
        system or path.name,
        status=status,
        reason="" if status is Status.COMPLETE else "out of time",
        datasets={"data/truth.qrels": "ab12"},
        started=DAY.format(day),
        finished=DAY.format(day),
    )
    retrieved_items = (RetrievedItem("d1", "the text of d1", 0.9, True), RetrievedItem("d2", "of d2", 0.4))
    contents: dict[str | int, UnitContent] = {
        unit: UnitContent(f"query {unit}", ("d1",), {}, retrieved_items) for unit in ids
    }
    return save_run(path, result, manifest=manifest, details=contents if details else None)


@dataclass(frozen=True)
class Answer:
    """The response of a server."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class Served:
    """A running server, and requests to it."""

    root: Path
    port: int

    def get(self, path: str = "/", *, method: str = "GET", **headers: str) -> Answer:
        """Request a path without normalising it."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, path, headers={n.replace("_", "-"): v for n, v in headers.items()})
            response = connection.getresponse()
            response_headers = {name.lower(): value for name, value in response.getheaders()}
            return Answer(response.status, response_headers, response.read())
        finally:
            connection.close()


@contextmanager
def serving(root: Path) -> Iterator[Served]:
    """Run a server in a thread until the context ends."""
    with open_socket(0) as listener:
        server = make_server(root, listener)
        thread = Thread(target=server.run, kwargs={"sockets": [listener]})
        port = listener.getsockname()[1]
        thread.start()
        try:
            while not server.started:
                time.sleep(0.01)
            yield Served(root, port)
        finally:
            server.should_exit = True
            thread.join()
