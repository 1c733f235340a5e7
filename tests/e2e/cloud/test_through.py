"""Calls to a machine through the cloud, with everything as a process, and official and own clients."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import httpcore
import trio

from command.machine.through.connect import direct_address
from rpc.access.credential_types import API_KEY, LOCATION_SECRET
from tests.e2e.cloud.process import cloud
from tests.e2e.cloud.test_certificates import Secured
from tests.e2e.cloud.test_machine import APP, until
from tests.loopback import listening

LIMIT = 60.0  # seconds for the log of a machine to arrive in the cloud

DOMAIN = "machines.test"
PARTS = {
    "components": [
        {"name": "a", "api": "rdk:component:sensor", "model": "fake"},
        {"name": "left", "api": "rdk:component:motor", "model": "fake"},
    ],
    "services": [{"name": "sh", "api": "rdk:service:shell", "attributes": {"program": "/bin/sh"}}],
}


class Reachable:
    """A cloud with TLS and one machine, whose port listens on loopback only."""

    def __init__(self, secured: Secured) -> None:
        self.secured = secured
        self.part = secured.credentials["id"]
        self.host = f"rover-{self.part}.{DOMAIN}:{secured.port}"
        self.url = f"https://localhost:{secured.port}"

    def words(self, *words: str) -> tuple[list[str], dict[str, str]]:
        """Return a command line of `machine`, and its environment."""
        key_id, key = self.secured.running.key
        kept = {key: value for key, value in os.environ.items() if not key.startswith("MACHINE_")}
        login = {"MACHINE_CLOUD": self.url, "MACHINE_CLOUD_KEY_ID": key_id, "MACHINE_CLOUD_KEY": key}
        command = [sys.executable, "-m", "command.cli", "--cloud", "rover", *words]
        return command, {**kept, **login, "MACHINE_CLOUD_CA": str(self.secured.authorities)}

    async def command(self, *words: str, status: int = 0) -> str:
        command, environ = self.words(*words)
        done = await trio.run_process(
            command, capture_stdout=True, stderr=subprocess.STDOUT, check=False, env=environ, stdin=b""
        )
        assert done.returncode == status, done.stdout.decode()
        return done.stdout.decode()


@asynccontextmanager
async def reachable(tmp_path: Path, *ports: int) -> AsyncIterator[Reachable]:
    async with cloud(tmp_path / "cloud", "--tls", "--machine-domain", DOMAIN) as running:
        secured = Secured(running, tmp_path)
        secured.trust()
        tunnels = {"network": {"traffic_tunnel_endpoints": [{"port": port} for port in ports]}}
        await secured.join(**PARTS, **tunnels)
        async with secured.machine(), secured.client() as client:

            async def online() -> bool:
                part = (await client.call(APP, "", "get_robot_part", id=secured.credentials["id"]))["part"]
                return part["last_access"] is not None

            await until(online, "the machine has joined")
            yield Reachable(secured)


async def test_an_official_client(tmp_path: Path) -> None:
    async with reachable(tmp_path) as opened, opened.secured.client() as client:
        place = {"location_id": opened.secured.running.facts["location"]}
        secret = (await client.call(APP, "", "create_location_secret", **place))["secrets"][0]["secret"]
        environ = {**os.environ, "SSL_CERT_FILE": str(opened.secured.authorities)}
        for shown in ((API_KEY, *opened.secured.running.key), (LOCATION_SECRET, "", secret)):
            command = [sys.executable, "-m", "tests.e2e.cloud.sdk_through", opened.host, *shown]
            done = await trio.run_process(command, capture_stdout=True, capture_stderr=True, check=False, env=environ)
            assert done.stdout.decode().splitlines() == [
                "['a', 'left', 'sh']",
                "[('a', 1.0), ('b', 2.0), ('c', 3.0)]",
                "True 0.5",
            ], done.stderr.decode()


async def test_the_commands_for_a_machine(tmp_path: Path) -> None:
    async def greet(stream: trio.SocketStream) -> None:
        async with stream:
            await stream.send_all(b"HTTP/1.0 200 OK\r\n\r\nfrom the port")

    async with listening(greet) as port, reachable(tmp_path, port) as opened:
        assert f"at rover in {opened.url} is running" in await opened.command("status")
        assert json.loads(await opened.command("call", "a", "get_readings", "--json")) == {"a": 1, "b": 2, "c": 3}
        assert await opened.command("shell", "echo from the machine") == "from the machine\n"
        (tmp_path / "sent").write_text("copied")
        await opened.command("cp", str(tmp_path / "sent"), f":{tmp_path / 'there'}")
        assert (tmp_path / "there").read_text() == "copied"
        with trio.fail_after(LIMIT):
            while "listening on" not in await opened.command("logs", "-n", "1000"):
                pass  # the machine has not sent it to the cloud yet
        assert "apply to logs" in await opened.command("logs", "--since", "10m", status=2)
        assert "there is no machine 'nowhere'" in await opened.command("--cloud", "nowhere", "status", status=1)
        assert "leave out" in await opened.command("status", "--tls", status=2)
        await _tunnelled(opened, port)


async def _tunnelled(opened: Reachable, port: int) -> None:
    command, environ = opened.words("tunnel", f"0:{port}")
    async with trio.open_nursery() as nursery:
        run = partial(trio.run_process, command, stdout=subprocess.PIPE, env=environ, check=False)
        process: trio.Process = await nursery.start(run)
        assert process.stdout is not None
        said = b""
        while b"forwards" not in said:
            said += await process.stdout.receive_some()
        local = said.decode().partition("127.0.0.1:")[2].split()[0]
        async with httpcore.AsyncConnectionPool() as pool:
            assert (await pool.request("GET", f"http://127.0.0.1:{local}/")).content == b"from the port"
        process.terminate()


def test_addresses_that_are_tried_directly() -> None:
    for fqdn, local, expected in (
        ("192.0.2.7:8080", "", "192.0.2.7:8080"),
        ("rover-x.machines.test", "192.0.2.7:8080", "192.0.2.7:8080"),
        ("[2001:db8::7]:8080", "rover.home.local", "[2001:db8::7]:8080"),
        ("localhost:8080", "127.0.0.1:8080", ""),
        ("rover.home.local", "", ""),
        ("192.0.2.7", "0.0.0.0:8080", ""),
    ):
        assert direct_address({"fqdn": fqdn, "local_fqdn": local}) == expected
