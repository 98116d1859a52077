"""A Ray cluster of three nodes, the command in a process of its own, and a database.

One module holds all tests that need the cluster, since starting one takes longer than most of them.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import equipoise
from equipoise.run.engines.ray import RayEngine
from postgres_server import started

TESTS = str(Path(__file__).parents[2])
SOURCE = str(Path(equipoise.__file__).parents[1])
SMALL = 80 * 2**20
WATCHED = {
    "health_check_initial_delay_ms": 0,
    "health_check_period_ms": 500,
    "health_check_timeout_ms": 5000,
    "health_check_failure_threshold": 4,
}
"""A dead node refuses at once, and is missed after two seconds; one that is only slow has twenty."""

Eq = Callable[..., subprocess.Popen[str]]


class Machines:
    """A cluster whose head runs nothing; every other node has one core."""

    def __init__(self, nodes: int) -> None:
        from ray.cluster_utils import Cluster

        head = {"num_cpus": 0, "object_store_memory": SMALL, "include_dashboard": False}
        head["_system_config"] = WATCHED
        self._cluster: Any = Cluster(initialize_head=True, head_node_args=head)
        for _ in range(nodes):
            self.add_node()
        self.wait()

    @property
    def address(self) -> str:
        """Where it is reached."""
        return str(self._cluster.address)

    def add_node(self) -> None:
        """One node more, which comes when it comes."""
        self._cluster.add_node(num_cpus=1, object_store_memory=SMALL, wait=False)

    def kill_node(self, node_id: str) -> None:
        """Pull the plug of a node."""
        (node,) = (each for each in self._cluster.worker_nodes if each.node_id == node_id)
        self._cluster.remove_node(node, allow_graceful=False)

    def wait(self) -> None:
        """Until all nodes are there."""
        self._cluster.wait_for_nodes()

    def shutdown(self) -> None:
        """End all nodes."""
        self._cluster.shutdown()


@pytest.fixture(scope="module")
def cluster() -> Iterator[Machines]:
    """A head and two nodes; all of them are ended."""
    pytest.importorskip("ray")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join([SOURCE, TESTS]))
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.delenv("RAY_ADDRESS", raising=False)
        made = Machines(2)
        try:
            yield made
        finally:
            made.shutdown()


@pytest.fixture(scope="module")
def engine(cluster: Machines) -> Iterator[RayEngine]:
    """This process, connected to the cluster."""
    cluster.wait()
    with RayEngine(cluster.address) as connected:
        yield connected


@pytest.fixture(scope="module")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a PostgreSQL server of our own, stopped at the end."""
    with started(tmp_path_factory.mktemp("postgres")) as address:
        yield address


@pytest.fixture
def eq(tmp_path: Path) -> Iterator[Eq]:
    """The command in a process of its own, which does not outlive the test."""
    begun_here = []

    def start(*words: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-m", "equipoise", *words],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": os.pathsep.join([SOURCE, TESTS])},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        begun_here.append(process)
        return process

    yield start
    for process in begun_here:
        if process.poll() is None:
            process.kill()
            process.communicate()
