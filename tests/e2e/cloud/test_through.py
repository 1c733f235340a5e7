"""Calls to a machine through the cloud, with everything as a process and an unmodified client of the official SDK."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import trio

from rpc.access.auth import API_KEY, LOCATION_SECRET
from tests.e2e.cloud.process import cloud
from tests.e2e.cloud.test_certificates import Secured
from tests.e2e.cloud.test_machine import APP, until

DOMAIN = "machines.test"
RESOURCES = [
    {"name": "a", "api": "rdk:component:sensor", "model": "fake"},
    {"name": "left", "api": "rdk:component:motor", "model": "fake"},
]


async def test_an_official_client(tmp_path: Path) -> None:
    async with cloud(tmp_path / "cloud", "--tls", "--machine-domain", DOMAIN) as running:
        secured = Secured(running, tmp_path)
        secured.trust()
        await secured.join(components=RESOURCES)
        async with secured.machine(), secured.client() as client:

            async def online() -> bool:
                part = (await client.call(APP, "", "get_robot_part", id=secured.credentials["id"]))["part"]
                return part["last_access"] is not None

            await until(online, "the machine has joined")
            place = {"location_id": running.facts["location"]}
            secret = (await client.call(APP, "", "create_location_secret", **place))["secrets"][0]["secret"]
            host = f"rover-{secured.credentials['id']}.{DOMAIN}:{secured.port}"
            environ = {**os.environ, "SSL_CERT_FILE": str(secured.authorities)}
            for shown in ((API_KEY, *running.key), (LOCATION_SECRET, "", secret)):
                command = [sys.executable, "-m", "tests.e2e.cloud.sdk_through", host, *shown]
                done = await trio.run_process(
                    command, capture_stdout=True, capture_stderr=True, check=False, env=environ
                )
                assert done.stdout.decode().splitlines() == [
                    "['a', 'left']",
                    "[('a', 1.0), ('b', 2.0), ('c', 3.0)]",
                    "True 0.5",
                ], done.stderr.decode()
