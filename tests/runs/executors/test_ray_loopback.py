"""A cluster that is begun for a command can be reached from this machine alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from ipaddress import ip_address
from pathlib import Path

import pytest

import equipoise

TESTS, SOURCE = str(Path(__file__).parents[2]), str(Path(equipoise.__file__).parents[1])
BEGIN = """
import json, os, psutil
before = dict(os.environ)
from equipoise.runs.executors.ray import RayExecutor
from cluster_cells import square
with RayExecutor("local") as engine:
    values = [each.value() for each in engine.map(square, [3], 1)]
    here = psutil.Process()
    sockets = [
        (process.name(), socket.laddr.ip)
        for process in (here, *here.children(recursive=True))
        for socket in process.net_connections("inet")
        if socket.status == psutil.CONN_LISTEN
    ]
    notes = engine.messages
left = [name for name in os.environ if "OSX_CLUSTER" in name and name not in before]
print(json.dumps({"values": values, "sockets": sockets, "notes": notes, "left": left}))
"""


@pytest.mark.engines("ray", "psutil")
@pytest.mark.slow
def test_every_port_of_a_cluster_that_is_begun_here_is_on_the_loopback_interface() -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([SOURCE, TESTS])}
    environment.pop("RAY_ADDRESS", None)
    done = subprocess.run(
        [sys.executable, "-c", BEGIN],
        env=environment,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    assert {"gcs_server", "raylet"} <= {name for name, _ in told["sockets"]}
    for name, address in told["sockets"]:
        known = ip_address(address)
        assert (getattr(known, "ipv4_mapped", None) or known).is_loopback, (name, address)
    assert told["notes"] == []
    assert told["left"] == []
    assert len(told["values"]) == 1
