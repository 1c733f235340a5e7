"""Connections to brokers that are hostile, silent or gone: a clear error, bounded memory, nothing that hangs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
import trio.lowlevel

from models.mqtt import connection as connection_module
from models.mqtt.attributes import BrokerAddress
from models.mqtt.connection import LARGEST_PACKET, MOST_WAITING, MqttConnection, MqttLogin, mqtt_connection
from schema.errors import ErrorKind, MachineError
from support.concurrency import ungrouped
from support.worker import Worker
from tests.loopback import listening

ACCEPTED = b"\x20\x02\x00\x00"
SCRIPT_LIMIT_S = 30.0
Script = Callable[[trio.SocketStream], Awaitable[None]]


def published(topic: bytes, payload: bytes) -> bytes:
    """Return a message from a broker, shorter than 128 bytes."""
    body = len(topic).to_bytes(2, "big") + topic + payload
    return bytes([0x30, len(body)]) + body


@asynccontextmanager
async def connected(script: Script, **login: str) -> Any:
    """Connect to a broker that does what a script says; yield the connection."""

    async def serve(stream: trio.SocketStream) -> None:
        async with stream:
            try:
                await script(stream)
            except trio.BrokenResourceError:
                pass

    worker, will = Worker("connecting"), ("test/status", b"gone")
    with ungrouped(MachineError):
        async with listening(serve) as port, worker.opened():
            address = BrokerAddress("127.0.0.1", port, tls=False)
            with trio.fail_after(SCRIPT_LIMIT_S):
                async with mqtt_connection(address, MqttLogin("test", **login), worker.run, will) as made:
                    yield made


async def rest(stream: trio.SocketStream) -> bytes:
    """Return what the client sends until it closes."""
    return b"".join([piece async for piece in stream])


async def test_a_greeting_and_a_last_word() -> None:
    sent = bytearray()

    async def script(stream: trio.SocketStream) -> None:
        sent.extend(await stream.receive_some())
        await stream.send_all(ACCEPTED)
        sent.extend(await rest(stream))

    async with connected(script, username="me", password="word") as made:
        assert made.publish("test/a", b"1", retain=False)
        await made.flush()
    assert sent.count(b"gone") == 2  # as the last will, and at the end
    assert sent.endswith(b"\xe0\x00")  # DISCONNECT, so the broker does not send the will itself


@pytest.mark.parametrize(
    ("answer", "reason", "kind"),
    [
        (b"\x20\x02\x00\x05", "refuses the connection: not authorized", ErrorKind.PERMISSION),
        (b"\x20\x02\x00\x04", "refuses the connection: bad user name or password", ErrorKind.PERMISSION),
        (b"", "was lost", ErrorKind.UNAVAILABLE),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "was lost", ErrorKind.UNAVAILABLE),
        (b"\x20\xff\xff\xff\xff\xff", "was lost", ErrorKind.UNAVAILABLE),
    ],
)
async def test_a_broker_that_does_not_accept(answer: bytes, reason: str, kind: ErrorKind) -> None:
    async def script(stream: trio.SocketStream) -> None:
        await stream.receive_some()
        if answer:
            await stream.send_all(answer)

    with pytest.raises(MachineError, match=reason) as caught:
        async with connected(script):
            await trio.sleep_forever()
    assert caught.value.kind is kind
    assert caught.value.remedy


async def test_a_silent_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_module, "CONNECT_LIMIT_S", 0.2)

    async def script(stream: trio.SocketStream) -> None:
        await rest(stream)

    with pytest.raises(MachineError, match="does not answer the connection"):
        async with connected(script):
            raise AssertionError("it was accepted")


async def test_no_broker() -> None:
    worker, address = Worker("connecting"), BrokerAddress("127.0.0.1", 9, tls=False)
    async with worker.opened():
        with pytest.raises(MachineError, match=r"the broker mqtt://127.0.0.1:9 cannot be reached: Connection refused"):
            async with mqtt_connection(address, MqttLogin("test"), worker.run, ("a", b"")):
                raise AssertionError("it was accepted")


async def test_a_message_that_is_too_large() -> None:
    async def script(stream: trio.SocketStream) -> None:
        await stream.receive_some()
        await stream.send_all(ACCEPTED + b"\x30\xff\xff\xff\x7f" + bytes(1000))  # announces 256 MiB
        await rest(stream)

    with pytest.raises(MachineError, match=f"268435455 bytes, and {LARGEST_PACKET} are allowed"):
        async with connected(script):
            await trio.sleep_forever()


async def test_a_flood_of_messages_is_dropped() -> None:
    async def script(stream: trio.SocketStream) -> None:
        await stream.receive_some()
        await stream.send_all(ACCEPTED + published(b"a", b"x") * (3 * MOST_WAITING) + published(b"\xff\xfe", b""))
        await rest(stream)

    async with connected(script) as made:
        assert isinstance(made, MqttConnection)
        while made.dropped < 2 * MOST_WAITING + 1:
            await trio.lowlevel.checkpoint()
        assert [(await made.receive()).payload for _ in range(MOST_WAITING)] == [b"x"] * MOST_WAITING


async def test_a_broker_that_stops_reading() -> None:
    async def script(stream: trio.SocketStream) -> None:
        await stream.receive_some()
        await stream.send_all(ACCEPTED)
        await trio.sleep_forever()

    async with connected(script) as made:
        count = 0
        while made.publish("a", bytes(100_000)):
            count += 1
            await trio.lowlevel.checkpoint()
        assert MOST_WAITING <= count < 10 * MOST_WAITING


async def test_a_refused_subscription() -> None:
    async def script(stream: trio.SocketStream) -> None:
        await stream.receive_some()
        await stream.send_all(ACCEPTED)
        subscription = await stream.receive_some()
        await stream.send_all(b"\x90\x03" + subscription[2:4] + b"\x80")
        await rest(stream)

    with pytest.raises(MachineError, match="refuses the subscription"):
        async with connected(script) as made:
            await made.subscribe("a/+/set")
