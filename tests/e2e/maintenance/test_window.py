"""The maintenance window of real servers: the sensor of a door, as a built-in model, in a module, on a remote."""

from __future__ import annotations

import json
import signal
import stat
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.e2e.harness import Server
from tests.processes import running

LIMIT = 60.0  # seconds; more than the 10 s between two reads of the sensor
WINDOW = {"sensor_name": "rdk:component:sensor/door", "maintenance_allowed_key": "open"}
BUILT_IN = {"name": "door", "api": "rdk:component:sensor", "model": "command"}


class Door:
    """A file with the readings of a sensor."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "door.json"
        self.says({"open": False})

    def says(self, readings: Any) -> None:
        part = self.path.with_suffix(".part")
        part.write_text(readings if isinstance(readings, str) else json.dumps(readings))
        part.replace(self.path)

    @property
    def entry(self) -> dict[str, Any]:
        return {**BUILT_IN, "attributes": {"argv": ["cat", str(self.path)]}}


def document(level: int, *components: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return version `level` of the configuration, whose fake sensor differs from that of every other version."""
    changing = {
        "name": "changing",
        "api": "rdk:component:sensor",
        "model": "fake",
        "attributes": {"values": {"a": level}},
    }
    values = {"network": {"bind_address": "localhost:0"}, "components": [changing, *components], "maintenance": WINDOW}
    return {**values, **more, "revision": str(level)}


def get(server: Server, path: str) -> Any:
    with urllib.request.urlopen(f"http://{server.address}{path}", timeout=LIMIT) as reply:
        return json.load(reply)


def revision(server: Server) -> str:
    result: str = get(server, "/status.json")["config"]["revision"]
    return result


def until(expected: Callable[[], bool]) -> None:
    end = time.monotonic() + LIMIT
    while not expected():
        assert time.monotonic() < end
        time.sleep(0.1)


def pending(server: Server) -> str:
    result: str = get(server, "/status.json")["config"]["pending"]
    return result


def allowed(server: Server) -> bool:
    restart_allowed: bool = get(server, "/restart_status")["restart_allowed"]
    return restart_allowed


def test_a_sensor_that_changes(tmp_path: Path) -> None:
    door = Door(tmp_path)
    with Server(document(1, door.entry), tmp_path) as server:
        server.wait_running()
        assert get(server, "/restart_status") == {
            "restart_allowed": False,
            "does_not_handle_needs_restart": True,
            "module_server_tcp_addr": "",
            "reason": "rdk:component:sensor/door says open is false",
            "configured": True,
        }
        server.write(document(2, door.entry))
        until(lambda: bool(pending(server)))
        assert revision(server) == "1"
        reason = "rdk:component:sensor/door says open is false"
        shown = server.command("status").stdout
        assert f"a newer configuration is pending: {reason}" in shown
        assert f"restart not allowed now: {reason}" in shown
        content = json.loads(server.command("status", "--json").stdout)
        assert (content["restart_allowed"], content["maintenance"], content["pending"]) == (False, reason, reason)
        page = urllib.request.Request(f"http://{server.address}/", headers={"Accept": "text/html"})
        with urllib.request.urlopen(page, timeout=LIMIT) as reply:
            html = reply.read().decode()
        assert "A newer configuration is waiting." in html
        assert html.count(reason) >= 2

        door.says({"open": True})
        get(server, "/restart_status")  # asks now, not 10 s ago; the pending configuration is applied with it
        until(lambda: revision(server) == "2")
        until(lambda: allowed(server))
        door.says({"open": False})
        assert not allowed(server)
        assert "restart not allowed now" in server.command("status").stdout


@pytest.mark.parametrize(
    ("readings", "reason"),
    [
        ({}, "have no 'open'"),
        ({"open": "yes"}, "is str, not true or false"),
        ("no JSON", "returned no readings: "),
    ],
)
def test_a_sensor_without_usable_readings(tmp_path: Path, readings: Any, reason: str) -> None:
    door = Door(tmp_path)
    door.says(readings)
    with Server(document(1, door.entry), tmp_path) as server:
        server.wait_running()
        server.write(document(2, door.entry))
        until(lambda: reason in pending(server))
        assert not allowed(server)
        server.write({**document(3, door.entry), "maintenance": None})  # the remedy: a document without the window
        until(lambda: revision(server) == "3")


def test_without_the_sensor_maintenance_is_allowed(tmp_path: Path) -> None:
    with Server(document(1), tmp_path) as server:
        server.wait_running()
        until(lambda: allowed(server))
        server.write(document(2))
        until(lambda: revision(server) == "2")
        assert "is not configured" in get(server, "/status.json")["maintenance"]
        assert "the maintenance window has no effect" in server.log()


def test_a_sensor_of_a_module(tmp_path: Path) -> None:
    door = Door(tmp_path)
    program = tmp_path / "door"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} {Path(__file__).with_name("door_module.py")} "$@"\n')
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    entry = {**BUILT_IN, "model": "acme:demo:door", "attributes": {"path": str(door.path)}}
    modules = [{"name": "doors", "type": "local", "executable_path": str(program)}]
    with Server(document(1, entry, modules=modules), tmp_path) as server:
        server.wait_running()
        until(
            lambda: (
                "says open is false" in (get(server, "/restart_status") and get(server, "/status.json"))["maintenance"]
            )
        )
        server.write(document(2, entry, modules=modules))
        until(lambda: "says open is false" in pending(server))
        assert server.process is not None
        children = psutil.Process(server.process.pid).children(recursive=True)
        (module,) = (child for child in children if child.pid in running("door_module"))
        module.send_signal(signal.SIGSTOP)
        try:
            begin = time.monotonic()
            assert not allowed(server)
            assert time.monotonic() - begin < 30  # an unresponsive module has 5 s
            until(lambda: "no answer within 5 s" in pending(server))
        finally:
            module.send_signal(signal.SIGCONT)
        door.says({"open": True})
        until(lambda: revision(server) == "2")


def test_a_sensor_of_a_remote(tmp_path: Path) -> None:
    door = Door(tmp_path)
    window = {**WINDOW, "sensor_name": "rdk:component:sensor/pi:door"}
    with ExitStack() as stack:
        (tmp_path / "pi").mkdir()
        pi = stack.enter_context(Server({"components": [door.entry]}, tmp_path / "pi")).wait_running()
        remotes = [{"name": "pi", "address": pi.address, "insecure": True}]
        here = Server(document(1, remotes=remotes, maintenance=window), tmp_path)
        server = stack.enter_context(here).wait_running()
        server.write(document(2, remotes=remotes, maintenance=window))
        until(lambda: "rdk:component:sensor/pi:door says open is false" in pending(server))
        pi.stop()
        until(lambda: "returned no readings" in pending(server))
        assert revision(server) == "1"
        server.write(document(3, remotes=[], maintenance=window))  # without the remote, the sensor does not exist
        until(lambda: bool(pending(server)))
        assert revision(server) == "1"  # the remote still exists in the current configuration
        server.write({**document(4, remotes=[]), "maintenance": None})
        until(lambda: revision(server) == "4")


def test_only_local_processes_may_ask(tmp_path: Path) -> None:
    own = next(
        (
            address.address
            for name, addresses in psutil.net_if_addrs().items()
            for address in addresses
            if name != "lo" and address.family.name == "AF_INET"
        ),
        None,
    )
    if own is None:
        pytest.skip("this computer has no address but loopback")
    with Server({"network": {"bind_address": f"{own}:0"}}, tmp_path, "-disable-mdns") as server:
        server.wait_running()
        with urllib.request.urlopen(f"http://{server.address}/restart_status", timeout=LIMIT) as reply:
            assert json.load(reply)["restart_allowed"]
