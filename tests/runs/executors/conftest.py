"""A Ray cluster of three nodes, the command in a separate process, and a database.

One module holds all tests that need the cluster, since starting one takes longer than most of them.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import equipoise
from equipoise.runs.executors.ray import RayExecutor
from marked import marked
from postgres_server import started

TESTS = str(Path(__file__).parents[2])
SOURCE = str(Path(equipoise.__file__).parents[1])
SMALL = 80 * 2**20
HEALTH_CHECKS = {
    "health_check_initial_delay_ms": 0,
    "health_check_period_ms": 500,
    "health_check_timeout_ms": 5000,
    "health_check_failure_threshold": 4,
}
"""Health checks detect a dead node after two seconds; a slow node has twenty."""

SHORT_TIMEOUT_PROGRAM = """
from equipoise.cli.main import main
from equipoise.runs.executors import ray
ray._HEADLESS_SECONDS = 1.0
main()
"""
"""The command with a short timeout for a lost head node."""

Eq = Callable[..., subprocess.Popen[str]]


class RayTestCluster:
    """A cluster with a head node without cores; every other node has one core."""

    def __init__(self, nodes: int) -> None:
        from ray.cluster_utils import Cluster

        head = {"num_cpus": 0, "object_store_memory": SMALL, "include_dashboard": False}
        head["_system_config"] = HEALTH_CHECKS
        head["ray_client_server_port"] = port = free_port()
        head["min_worker_port"] = head["max_worker_port"] = 0
        self.client = f"ray://127.0.0.1:{port}"
        """The address for Ray clients."""
        with warnings.catch_warnings(action="ignore", category=ResourceWarning):  # Ray does not close its log files
            self._cluster: Any = Cluster(initialize_head=True, head_node_args=head)
        for _ in range(nodes):
            self.add_node()
        self.wait()

    @property
    def address(self) -> str:
        """The address of the head node."""
        return str(self._cluster.address)

    def add_node(self, **options: Any) -> Any:
        """Add a node without waiting for it."""
        return self._cluster.add_node(num_cpus=1, object_store_memory=SMALL, wait=False, **options)

    def kill_node(self, node_id: str, *, graceful: bool = False) -> None:
        """Kill a node, or stop it gracefully."""
        (node,) = (worker for worker in self._cluster.worker_nodes if worker.node_id == node_id)
        self._cluster.remove_node(node, allow_graceful=graceful)

    def kill_head(self) -> None:
        """Kill the head node; the cluster is unusable afterwards."""
        self._cluster.head_node.kill_all_processes(check_alive=False, allow_graceful=False)

    def wait(self) -> None:
        """Wait until all nodes are connected."""
        self._cluster.wait_for_nodes()

    def shutdown(self) -> None:
        """Stop all nodes."""
        self._cluster.shutdown()


@pytest.fixture(scope="module")
@marked(pytest.mark.engines("ray"), pytest.mark.slow)
def cluster() -> Iterator[RayTestCluster]:
    """A cluster with a head node and two workers, stopped at the end."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join([SOURCE, TESTS]))
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.delenv("RAY_ADDRESS", raising=False)
        machines = RayTestCluster(2)
        try:
            yield machines
        finally:
            machines.shutdown()


def free_port() -> int:
    """Return a free port."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


@pytest.fixture(scope="module")
def engine(cluster: RayTestCluster) -> Iterator[RayExecutor]:
    """This process, connected to the cluster."""
    cluster.wait()
    with RayExecutor(cluster.address) as connected:
        yield connected


@pytest.fixture(scope="module")
@marked(pytest.mark.slow)
def postgres() -> Iterator[str]:
    """The address of a temporary PostgreSQL server, stopped at the end."""
    with started() as address:
        yield address


@pytest.fixture
def eq(tmp_path: Path) -> Iterator[Eq]:
    """Start the command in a separate process, which is stopped at the end of the test."""
    processes = []

    def start(*arguments: str, cwd: Path = tmp_path, short_timeout: bool = False) -> subprocess.Popen[str]:
        program = ["-c", SHORT_TIMEOUT_PROGRAM] if short_timeout else ["-m", "equipoise"]
        process = subprocess.Popen(
            [sys.executable, *program, *arguments],
            cwd=cwd,
            env={**os.environ, "PYTHONPATH": os.pathsep.join([SOURCE, TESTS])},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        processes.append(process)
        return process

    yield start
    for process in processes:
        if process.poll() is None:
            process.kill()
            process.communicate()
