"""A local cluster of a command listens on the loopback interface only."""

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
PROGRAM = """
import json, os, psutil
before = dict(os.environ)
from equipoise.runs.executors.ray import RayExecutor
from cluster_cells import square
with RayExecutor("local") as engine:
    values = [item.value() for item in engine.map(square, [3], 1)]
    driver = psutil.Process()
    sockets = [
        (process.name(), socket.laddr.ip)
        for process in (driver, *driver.children(recursive=True))
        for socket in process.net_connections("inet")
        if socket.status == psutil.CONN_LISTEN
    ]
    notes = engine.messages
left = [name for name in os.environ if "OSX_CLUSTER" in name and name not in before]
print(json.dumps({"values": values, "sockets": sockets, "notes": notes, "left": left}))
"""


@pytest.mark.engines("ray", "psutil")
@pytest.mark.slow
def test_every_port_of_a_local_cluster_is_on_the_loopback_interface() -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([SOURCE, TESTS])}
    environment.pop("RAY_ADDRESS", None)
    completed = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=environment,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert completed.returncode == 0, completed.stderr
    content = json.loads(completed.stdout.splitlines()[-1])
    assert {"gcs_server", "raylet"} <= {name for name, _ in content["sockets"]}
    for name, address in content["sockets"]:
        ip = ip_address(address)
        assert (getattr(ip, "ipv4_mapped", None) or ip).is_loopback, (name, address)
    assert content["notes"] == []
    assert content["left"] == []
    assert len(content["values"]) == 1
