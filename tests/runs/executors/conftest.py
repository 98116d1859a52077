"""A Ray cluster of three nodes, the command in a process of its own, and a database.

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
WATCHED = {
    "health_check_initial_delay_ms": 0,
    "health_check_period_ms": 500,
    "health_check_timeout_ms": 5000,
    "health_check_failure_threshold": 4,
}
"""A dead node refuses at once, and is missed after two seconds; one that is only slow has twenty."""

IMPATIENT = """
from equipoise.cli.main import main
from equipoise.runs.executors import ray
ray._HEADLESS_SECONDS = 1.0
main()
"""
"""The command, that waits for a lost head no longer than this."""

Eq = Callable[..., subprocess.Popen[str]]


class Machines:
    """A cluster whose head runs nothing; every other node has one core."""

    def __init__(self, nodes: int) -> None:
        from ray.cluster_utils import Cluster

        head = {"num_cpus": 0, "object_store_memory": SMALL, "include_dashboard": False}
        head["_system_config"] = WATCHED
        head["ray_client_server_port"] = port = free_port()
        head["min_worker_port"] = head["max_worker_port"] = 0
        self.client = f"ray://127.0.0.1:{port}"
        """Where it is reached from outside."""
        with warnings.catch_warnings(action="ignore", category=ResourceWarning):  # Ray leaves its logs open
            self._cluster: Any = Cluster(initialize_head=True, head_node_args=head)
        for _ in range(nodes):
            self.add_node()
        self.wait()

    @property
    def address(self) -> str:
        """Where it is reached."""
        return str(self._cluster.address)

    def add_node(self, **options: Any) -> Any:
        """One node more, which comes when it comes."""
        return self._cluster.add_node(num_cpus=1, object_store_memory=SMALL, wait=False, **options)

    def kill_node(self, node_id: str, *, gently: bool = False) -> None:
        """Pull the plug of a node, or let it go in peace."""
        (node,) = (each for each in self._cluster.worker_nodes if each.node_id == node_id)
        self._cluster.remove_node(node, allow_graceful=gently)

    def kill_head(self) -> None:
        """Pull the plug of the head; nothing can be done with the cluster after that."""
        self._cluster.head_node.kill_all_processes(check_alive=False, allow_graceful=False)

    def wait(self) -> None:
        """Until all nodes are there."""
        self._cluster.wait_for_nodes()

    def shutdown(self) -> None:
        """End all nodes."""
        self._cluster.shutdown()


@pytest.fixture(scope="module")
@marked(pytest.mark.engines("ray"), pytest.mark.slow)
def cluster() -> Iterator[Machines]:
    """A head and two nodes; all of them are ended."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join([SOURCE, TESTS]))
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.delenv("RAY_ADDRESS", raising=False)
        made = Machines(2)
        try:
            yield made
        finally:
            made.shutdown()


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


@pytest.fixture(scope="module")
def engine(cluster: Machines) -> Iterator[RayExecutor]:
    """This process, connected to the cluster."""
    cluster.wait()
    with RayExecutor(cluster.address) as connected:
        yield connected


@pytest.fixture(scope="module")
@marked(pytest.mark.slow)
def postgres() -> Iterator[str]:
    """The address of a PostgreSQL server of our own, stopped at the end."""
    with started() as address:
        yield address


@pytest.fixture
def eq(tmp_path: Path) -> Iterator[Eq]:
    """The command in a process of its own, which does not outlive the test."""
    begun_here = []

    def start(*words: str, cwd: Path = tmp_path, impatient: bool = False) -> subprocess.Popen[str]:
        program = ["-c", IMPATIENT] if impatient else ["-m", "equipoise"]
        process = subprocess.Popen(
            [sys.executable, *program, *words],
            cwd=cwd,
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
