"""`connect_to_machine` of the official Python SDK: by the machine's id, through the cloud, to the machine."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest
import trio

from tests.e2e.cloud.process import cloud
from tests.e2e.cloud.sdk_machine import readings
from tests.e2e.cloud.test_certificates import Secured
from tests.e2e.cloud.test_machine import APP, until
from tests.e2e.harness import in_namespace, namespace_refusal


async def test_over_tls(tmp_path: Path) -> None:
    async with cloud(tmp_path / "cloud", "--tls") as running:
        made = Secured(running, tmp_path)
        made.trust()
        await made.join()
        async with made.machine() as machine, made.client() as client:
            (robot,) = await client.call(APP, "", "list_robots", location_id=running.facts["location"])

            async def known() -> bool:
                found = (await client.call(APP, "", "get_robot_part", id=made.credentials["id"]))["part"]
                return found["fqdn"] == machine.address and await made.names(machine) == {"a"}

            await until(known, "the machine listens, and the cloud knows where")
            address = f"https://localhost:{made.port}"
            call = readings(address, running.key, robot["id"], secure=True)
            assert await trio.to_thread.run_sync(lambda: asyncio.run(call)) == {"a": 1.0, "b": 2.0, "c": 3.0}


def test_in_plain_text_by_the_default_transport(tmp_path: Path) -> None:
    if refusal := namespace_refusal():
        pytest.skip(f"no network namespace of our own here: {refusal}")
    command = in_namespace([sys.executable, "-m", "tests.e2e.cloud.sdk_machine", str(tmp_path)])
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "'a': 1" in done.stdout
