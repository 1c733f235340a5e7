"""`connect_to_machine` of the official Python SDK: by the machine's id, through the cloud, to the machine."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest
import trio

from rpc.access.credential_types import LOCATION_SECRET
from rpc.api.client import ApiClient
from rpc.client.channel import Channel
from rpc.client.credentials import ApiKey
from rpc.network.tls import client_context
from schema.errors import ErrorKind, MachineError
from tests.e2e.cloud.process import cloud
from tests.e2e.cloud.sdk_machine import readings
from tests.e2e.cloud.test_certificates import Secured
from tests.e2e.cloud.test_machine import APP, MACHINE, until
from tests.e2e.harness import in_namespace, namespace_refusal
from tests.e2e.server.process import Server


async def test_over_tls(tmp_path: Path) -> None:
    async with cloud(tmp_path / "cloud", "--tls") as running:
        secured = Secured(running, tmp_path)
        secured.trust()
        await secured.join()
        async with secured.machine() as machine, secured.client() as client:
            (robot,) = await client.call(APP, "", "list_robots", location_id=running.facts["location"])

            async def listed() -> bool:
                part = (await client.call(APP, "", "get_robot_part", id=secured.credentials["id"]))["part"]
                return part["fqdn"] == machine.address and await secured.names(machine) == {"a"}

            await until(listed, "the machine listens, and the cloud knows where")
            address = f"https://localhost:{secured.port}"
            call = readings(address, running.key, robot["id"], secure=True)
            assert await trio.to_thread.run_sync(lambda: asyncio.run(call)) == {"a": 1.0, "b": 2.0, "c": 3.0}
            await _by_secret(secured, machine, client)


async def _by_secret(created: Secured, machine: Server, client: ApiClient) -> None:
    """Check that a secret of the location gives access to the machine until it is deleted."""
    place = {"location_id": created.running.facts["location"]}
    secrets = (await client.call(APP, "", "create_location_secret", **place))["secrets"]

    async def opens() -> bool:
        shown = ApiKey(machine.address, secrets[0]["secret"], type=LOCATION_SECRET)
        trusted = client_context(authorities=created.authorities)
        try:
            async with Channel(f"https://{machine.address}", tls=trusted, credentials=shown) as channel:
                return bool(await ApiClient(channel).call(MACHINE, "", "resource_names"))
        except MachineError as error:
            if error.kind not in (ErrorKind.UNAUTHENTICATED, ErrorKind.INVALID):
                raise
            return False

    async def shut() -> bool:
        return not await opens()

    await until(opens, "the machine knows the secret")
    command = [sys.executable, "-m", "tests.e2e.cloud.sdk_machine", machine.address, secrets[0]["secret"]]
    done = await trio.run_process(command, capture_stdout=True)
    assert done.stdout.split() == [b"a"]
    await client.call(APP, "", "delete_location_secret", **place, secret_id=secrets[0]["id"])
    await until(shut, "the machine knows it no more")
    assert await created.names(machine) == {"a"}
    kept = [path.read_text() for path in created.machine_folder.rglob("*.json")]
    assert not any(secrets[0]["secret"] in text for text in [machine.log(), *kept])


def test_in_plain_text_by_the_default_transport(tmp_path: Path) -> None:
    if refusal := namespace_refusal():
        pytest.skip(f"no network namespace of our own here: {refusal}")
    command = in_namespace([sys.executable, "-m", "tests.e2e.cloud.sdk_machine", str(tmp_path)])
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "'a': 1" in done.stdout
