"""Addresses without a Ray cluster are errors within seconds."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from equipoise.cli.main import cli
from equipoise.errors import MissingExtraError, ParameterError
from equipoise.runs.executors import ray_worker
from equipoise.runs.executors.ray_worker import check_cluster, host_and_port
from toy_ontology import obo


@pytest.fixture
def listener() -> Iterator[str]:
    """The address of a listening socket that is not a cluster."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield "{}:{}".format(*server.getsockname())


@pytest.mark.parametrize("scheme", ["", "ray://"])
def test_a_refused_connection_is_an_immediate_error(scheme: str, listener: str) -> None:
    free_socket = socket.create_server(("127.0.0.1", 0))
    address = scheme + "{}:{}".format(*free_socket.getsockname())
    free_socket.close()
    with pytest.raises(MissingExtraError, match=f"no Ray cluster answers at {address}: Connection refused"):
        check_cluster(address)


@pytest.mark.engines("ray")
@pytest.mark.parametrize(
    "arguments",
    [
        ["phenotypes", "index", "build", "--ontology", "toy.obo", "--model-name", "hash"],
        ["accounts", "evaluate", "--tree", "tree.csv"],
        ["index-quality", "--store", "memory", "--corpus", "c.npy", "--queries", "c.npy"],
    ],
    ids=lambda arguments: arguments[0],
)
def test_every_command_checks_the_address_before_any_work(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("ray")
    obo(tmp_path / "toy.obo")
    (tmp_path / "tree.csv").write_text("id,parent\na,\nb,a\n")
    np.save(tmp_path / "c.npy", np.eye(3))
    files_before = sorted(tmp_path.iterdir())
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    result = CliRunner().invoke(cli, [*arguments, "--engine", "ray", "--address", "127.0.0.1:1"], prog_name="eq")
    assert result.exit_code == 4, result.output
    assert "no Ray cluster answers at 127.0.0.1:1" in result.stderr
    assert sorted(tmp_path.iterdir()) == files_before


def test_another_service_at_the_address_is_an_error_after_a_timeout(
    listener: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ray_worker, "SECONDS", 1)
    with pytest.raises(MissingExtraError, match=r"within 1 seconds|No module named 'ray'") as error:
        check_cluster(listener)
    assert "RAY_AUTH_TOKEN" in error.value.hint


def test_an_unknown_host_is_an_error() -> None:
    with pytest.raises(MissingExtraError, match=r"answers at nowhere\.invalid:6379"):
        check_cluster("nowhere.invalid:6379")


@pytest.mark.parametrize("address", ["head", "head:port", "http://head:80/", "head:0", "head:70000", ":1"])
def test_an_invalid_address_is_an_error(address: str) -> None:
    with pytest.raises(ParameterError) as error:
        host_and_port(address)
    assert error.value.code == "E310"


def test_all_kinds_of_addresses_are_parsed() -> None:
    assert host_and_port("[::1]:6379") == ("::1", 6379)
    assert host_and_port("ray://10.0.0.7") == ("10.0.0.7", 10001)
    assert host_and_port("ray://head.example:9999") == ("head.example", 9999)
