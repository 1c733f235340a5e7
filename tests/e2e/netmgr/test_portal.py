"""The ports of the portal on loopback: unmodified stubs of the SDK, and requests that must not get through."""

from __future__ import annotations

import json
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trio

from netmgr.portal.serve import HTTP_LIMITS, serve_portal
from schema.errors import MachineError
from tests.unit.netmgr.portal.support import DEVICE_SECRET, Device


@asynccontextmanager
async def portal(device: Device, interface: str = "") -> AsyncIterator[int]:
    async with trio.open_nursery() as nursery:
        ports = await nursery.start(
            lambda task_status: serve_portal(
                device, "127.0.0.1", ports=(0,), interface=interface, task_status=task_status
            )
        )
        yield ports[0]
        nursery.cancel_scope.cancel()


async def ask(port: int, *lines: str) -> str:
    stream = await trio.open_tcp_stream("127.0.0.1", port)
    async with stream:
        await stream.send_all("\r\n".join([*lines, "connection: close", "", ""]).encode())
        data = b""
        while piece := await stream.receive_some():
            data += piece
    return data.decode()


async def test_unmodified_stubs_provision_the_device() -> None:
    device = Device()
    device.show(configured=True)
    device.fail("the password is wrong")
    async with portal(device) as port:
        done = await trio.run_process(
            [sys.executable, "-m", "tests.e2e.netmgr.app", str(port), DEVICE_SECRET], capture_stdout=True
        )
    seen = json.loads(done.stdout)
    assert seen["manufacturer"] == "machine"
    assert seen["configured"]
    assert seen["attempt"] == ["home", "the password is wrong"]
    assert seen["errors"] == ["the password is wrong"]
    assert ["home", "WPA2", 78] in seen["networks"]
    assert seen["refused"]["short"][0] == "INVALID_ARGUMENT"
    assert seen["refused"]["wired"][0] == "INVALID_ARGUMENT"
    assert seen["refused"]["locked"][0] == "PERMISSION_DENIED"
    assert "belongs to a cloud already" in seen["refused"]["locked"][1]
    (entry,) = device.networks
    assert (entry.ssid, entry.passphrase) == (b"home", "correct horse")
    assert json.loads(device.credentials[0])["cloud"]["api_key"] == {"id": "key id", "key": "a secret of the cloud"}
    assert device.left == 1


async def test_pages_of_other_sites_cannot_call_the_api() -> None:
    device = Device()
    async with portal(device) as port:
        path = "POST /viam.provisioning.v1.ProvisioningService/ExitProvisioning HTTP/1.1"
        for host, origin in [("127.0.0.1", "http://evil.example"), ("evil.example", "http://evil.example")]:
            await ask(
                port, path, f"host: {host}", f"origin: {origin}", "content-type: application/grpc-web",
                "x-grpc-web: 1", "content-length: 0",
            )  # fmt: skip
    assert (device.left, device.interactions) == (0, 0)


async def test_a_test_of_a_phone_is_redirected() -> None:
    async with portal(Device()) as port:
        reply = await ask(port, "GET /generate_204 HTTP/1.1", "host: connectivitycheck.gstatic.com")
    assert reply.startswith("HTTP/1.1 302 ")
    assert "location: http://127.0.0.1/\r\n" in reply


async def test_a_flood_of_connections_is_bounded() -> None:
    async with portal(Device()) as port, trio.open_nursery() as nursery:
        streams = [await trio.open_tcp_stream("127.0.0.1", port) for _ in range(HTTP_LIMITS.max_per_address + 8)]
        closed = 0

        async def watch(stream: trio.SocketStream) -> None:
            nonlocal closed
            await stream.receive_some()
            closed += 1
            if closed == 8:
                nursery.cancel_scope.cancel()

        for stream in streams:
            nursery.start_soon(watch, stream)
        await trio.sleep_forever()
    assert closed == 8
    for stream in streams:
        await stream.aclose()


async def test_a_port_in_use_is_named_with_a_remedy() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        number = taken.getsockname()[1]
        with pytest.raises(MachineError, match=f"port {number} of 127.0.0.1: Address already in use: .*ss -ltnp"):
            await serve_portal(Device(), "127.0.0.1", ports=(0, number))
