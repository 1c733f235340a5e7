"""All traffic of clients, browsers and machines through a proxy that terminates TLS."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest
import trio
from grpclib.const import Status

from rpc.access.attempts import FAILURES
from rpc.api import messages
from rpc.api.client import ApiClient
from rpc.client.channel import Channel
from rpc.client.credentials import ApiKey
from rpc.network.tls import client_context
from tests.e2e.cloud.nginx import before, listener, nginx
from tests.e2e.cloud.process import cloud
from tests.e2e.cloud.test_machine import APP, names, sensors, until
from tests.e2e.server.process import Server, server

pytestmark = pytest.mark.skipif(nginx() is None, reason="nginx not found: apt-get install nginx")

SDK = """
import asyncio, sys
from viam.app.viam_client import ViamClient
from viam.rpc.dial import DialOptions

async def main(url, part, id, key):
    options = DialOptions.with_api_key(api_key=key, api_key_id=id)
    client = await ViamClient.create_from_dial_options(options, app_url=url)
    entry = (await (await client.app_client.tail_robot_part_logs(part, errors_only=False)).__anext__())[0]
    file = await client.data_client.file_upload(part_id=part, data=bytes(3_000_000), file_name="big")
    (found,) = await client.data_client.binary_data_by_ids([file])
    print(entry.message, len(found.binary))
    client.close()

asyncio.run(main(*sys.argv[1:]))
"""


async def _has(machine: Server, key: tuple[str, str], expected: str) -> bool:
    return await names(machine, key) == {expected}


async def test_calls_pages_and_machines_through_nginx(tmp_path: Path) -> None:
    place = listener()
    url = f"https://localhost:{place.getsockname()[1]}"
    async with cloud(tmp_path / "cloud", "--url", url) as running, trio.open_nursery() as nursery:
        async with before(running.address, place, tmp_path / "nginx") as authority:
            tls, key = client_context(authorities=authority), running.key
            async with Channel(url, tls=tls, credentials=ApiKey(*key)) as channel:
                client = ApiClient(channel)
                robot = await client.call(APP, "", "new_robot", name="rover", location=running.facts["location"])
                (part,) = await client.call(APP, "", "get_robot_parts", robot_id=robot)

                async def save(*required: str) -> None:
                    text = json.dumps(sensors(*required))
                    await client.call(APP, "", "update_robot_part", id=part["id"], name="", robot_config_json=text)

                await save("a")
                joined = {"id": part["id"], "secret": part["secret"], "app_address": url, "ca_file": str(authority)}
                (tmp_path / "machine").mkdir()
                async with server(tmp_path / "machine", {"cloud": joined}, "-disable-mdns") as machine:

                    async def until_has(requested: str) -> None:
                        await until(lambda: _has(machine, key, requested), f"a configuration with {requested}")

                    await until_has("a")
                    said: list[str] = []

                    async def sdk() -> None:
                        done = await trio.run_process(
                            [sys.executable, "-c", SDK, url, part["id"], *key],
                            capture_stdout=True,
                            env={**os.environ, "SSL_CERT_FILE": str(authority)},
                        )
                        said.append(done.stdout.decode())

                    nursery.start_soon(sdk)
                    for expected in ("b", "c"):  # pushed at once: a machine that only polls would need seconds
                        await save(expected)
                        await until_has(expected)
                    assert "not connected to the cloud" not in machine.log()
                    number = 0
                    while not said:  # a follower receives the entries logged from now on
                        number += 1
                        await save(f"d{number}")
                        await until_has(f"d{number}")
                assert said[0].split()[-1] == "3000000"

            form = f"id={key[0]}&key={key[1]}&next=/"
            words = ["curl", "-sS", "--cacert", str(authority), "-c", str(tmp_path / "cookies"), "--fail", "-i"]
            signed_in = await trio.run_process(
                [*words, "-H", f"Origin: {url}", "-d", form, f"{url}/login"], capture_stdout=True
            )
            assert b"303" in signed_in.stdout.splitlines()[0]
            assert b"secure" in signed_in.stdout.lower()
            page = await trio.run_process([*words, "-b", str(tmp_path / "cookies"), f"{url}/"], capture_stdout=True)
            assert b"rover" in page.stdout


class Caller:
    """curl with a loopback address of its own."""

    def __init__(self, url: str, authority: Path, address: str) -> None:
        self.url = url
        self.words = ["curl", "-sS", "--cacert", str(authority), "--interface", address]

    async def _run(self, *words: str, body: bytes) -> str:
        done = await trio.run_process([*self.words, "--data-binary", "@-", *words], stdin=body, capture_stdout=True)
        return done.stdout.decode(errors="replace")

    async def form(self, key_id: str, key: str) -> int:
        """Return the HTTP status of the form for logging in. The request claims to come through another proxy."""
        claim = ["-H", f"Origin: {self.url}", "-H", "X-Forwarded-For: 192.0.2.77"]
        shown = ["-o", "/dev/null", "-w", "%{http_code}"]
        return int(await self._run(*claim, *shown, f"{self.url}/login", body=f"id={key_id}&key={key}".encode()))

    async def call(self, key_id: str, key: str) -> int:
        """Return the gRPC status of Authenticate."""
        auth = messages.auth()
        shown = auth.Credentials(type="api-key", payload=key)
        raw = auth.AuthenticateRequest(entity=key_id, credentials=shown).SerializeToString()
        said = await self._run(
            *("--http2", "-D", "-", "-o", "/dev/null", "-H", "content-type: application/grpc", "-H", "te: trailers"),
            f"{self.url}/proto.rpc.v1.AuthService/Authenticate",
            body=bytes(1) + len(raw).to_bytes(4) + raw,
        )
        return int(next(line.split(":")[1] for line in said.splitlines() if line.startswith("grpc-status")))


@pytest.mark.parametrize("believed", [True, False])
async def test_key_guessing_is_throttled_per_client_behind_a_trusted_nginx(tmp_path: Path, believed: bool) -> None:
    place = listener()
    url = f"https://localhost:{place.getsockname()[1]}"
    reports = ("--proxy", "127.0.0.1") if believed else ()
    async with (
        cloud(tmp_path / "cloud", "--url", url, *reports) as running,
        before(running.address, place, tmp_path / "nginx") as authority,
    ):
        guesser, owner = (Caller(url, authority, address) for address in ("127.0.0.2", "127.0.0.3"))
        key_id, key = running.key
        for guess in range(FAILURES // 2):
            assert await guesser.form(key_id, f"wrong{guess}") == 401
            assert await guesser.call(key_id, f"wrong{guess}") == Status.UNAUTHENTICATED.value
        assert await guesser.form(key_id, "wrong") == 429
        assert await guesser.call(key_id, "wrong") == Status.RESOURCE_EXHAUSTED.value
        assert await owner.form(key_id, "wrong") == (401 if believed else 429)
        assert await owner.call(key_id, "wrong") == (
            (Status.UNAUTHENTICATED if believed else Status.RESOURCE_EXHAUSTED).value
        )
        for caller in (guesser, owner):
            assert await caller.form(key_id, key) == 303
            assert await caller.call(key_id, key) == Status.OK.value
