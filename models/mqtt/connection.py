"""A connection to an MQTT broker on Trio: paho-mqtt encodes and decodes, and Trio waits for its socket.

paho-mqtt starts no thread here. Only the start of a connection blocks (the look-up of the name, TCP and TLS), and runs
in a worker.
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

import paho.mqtt.client as paho
import trio
from paho.mqtt.enums import CallbackAPIVersion, MQTTErrorCode, MQTTProtocolVersion

from models.mqtt.attributes import BrokerAddress
from schema import ErrorKind, MachineError
from support import RunBlocking, ungrouped

CONNECT_LIMIT_S: Final = 4.0  # for TCP and for TLS, and then for the broker's answer
KEEP_ALIVE_S: Final = 10  # a broker that is silent for twice as long is lost, and so is this client for the broker
CLOSE_LIMIT_S: Final = 2.0  # for the last messages
LARGEST_PACKET: Final = 256 * 1024  # bytes that a broker may send at once; commands are a few bytes
MOST_WAITING: Final = 100  # messages from the broker that wait for the program; more are dropped


@dataclass(frozen=True, slots=True)
class MqttMessage:
    """A message from the broker. `retained` is whether it was sent before this client subscribed."""

    topic: str
    payload: bytes
    retained: bool


@dataclass(frozen=True, slots=True)
class MqttLogin:
    """Who this client is: its name at the broker, its password, and its certificates as file names."""

    client_id: str
    username: str = ""
    password: str = ""
    ca: str = ""
    certificate: str = ""
    private_key: str = ""

    def context(self) -> ssl.SSLContext:
        """Return the settings of TLS. Blocking; OSError if a file cannot be used."""
        context = ssl.create_default_context(cafile=self.ca or None)
        if self.certificate:
            context.load_cert_chain(self.certificate, self.private_key or None)
        return context


class MqttConnection:
    """An open connection. Messages have quality of service 0: while it is open, TCP delivers them.

    Attributes: `dropped`, the number of messages from the broker that were dropped because too many waited.
    """

    def __init__(self, client: paho.Client, address: BrokerAddress) -> None:
        self.dropped = 0
        self._client = client
        self._address = address
        self._connected = trio.Event()
        self._subscribed = trio.Event()
        self._refused = ""
        self._output = trio.Event()
        self._sender, self._receiver = trio.open_memory_channel[MqttMessage](MOST_WAITING)
        client.on_connect = self._on_connect
        client.on_subscribe = self._on_subscribe
        client.on_message = self._on_message
        client.on_socket_close = self._on_socket_close
        client.on_socket_register_write = self._on_socket_register_write

    def publish(self, topic: str, payload: bytes, *, retain: bool = True) -> bool:
        """Send a message; return False, without sending it, if earlier ones still wait for the network."""
        if len(self._client._out_packet) > MOST_WAITING:
            return False
        self._client.publish(topic, payload, qos=0, retain=retain)
        return True

    async def flush(self) -> None:
        """Wait until everything was passed to the network."""
        while self._client.want_write():
            try:
                await trio.lowlevel.wait_writable(self._socket())
            except trio.ClosedResourceError:
                raise self._lost("it was closed") from None
            self._check(self._client.loop_write())

    async def subscribe(self, *patterns: str) -> None:
        """Receive messages with these topics. Raises MachineError (PERMISSION) if the broker refuses."""
        self._subscribed = trio.Event()
        self._client.subscribe([(pattern, 0) for pattern in patterns])
        await self._answered(self._subscribed, "the subscription")

    async def receive(self) -> MqttMessage:
        """Return the next message."""
        return await self._receiver.receive()

    async def start(self, nursery: trio.Nursery) -> None:
        """Serve the connection in `nursery`; wait until the broker has accepted it."""
        nursery.start_soon(self._read)
        nursery.start_soon(self._write)
        nursery.start_soon(self._keep_alive)
        await self._answered(self._connected, "the connection")

    async def _answered(self, event: trio.Event, subject: str) -> None:
        with trio.move_on_after(CONNECT_LIMIT_S) as scope:
            await event.wait()
        if scope.cancelled_caught:
            raise self._error(f"does not answer {subject}", "check that an MQTT broker listens there")
        if self._refused:
            raise self._refusal(subject)

    async def _read(self) -> None:
        while True:
            socket = self._socket()
            try:
                await trio.lowlevel.wait_readable(socket)
            except trio.ClosedResourceError:
                raise self._lost("it was closed") from None
            self._check(self._client.loop_read())
            while isinstance(socket, ssl.SSLSocket) and socket.pending():
                await trio.lowlevel.checkpoint()
                self._check(self._client.loop_read())

    async def _write(self) -> None:
        while True:
            await self._output.wait()
            self._output = trio.Event()
            await self.flush()

    async def _keep_alive(self) -> None:
        while True:
            await trio.sleep(KEEP_ALIVE_S / 4)
            self._check(self._client.loop_misc())

    def _socket(self) -> Any:
        socket = self._client.socket()
        if socket is None:
            raise self._lost("it was closed")
        return socket

    def _check(self, code: MQTTErrorCode) -> None:
        size = self._client._in_packet["remaining_length"]
        if size > LARGEST_PACKET:
            raise self._lost(f"it sent a message of {size} bytes, and {LARGEST_PACKET} are allowed")
        if code is not MQTTErrorCode.MQTT_ERR_SUCCESS:
            raise self._lost(paho.error_string(code).rstrip(".").lower())

    def _refusal(self, subject: str) -> MachineError:
        remedy = "check username, password and topic, and what the broker permits"
        return self._error(f"refuses {subject}: {self._refused}", remedy, ErrorKind.PERMISSION)

    def _lost(self, reason: str) -> MachineError:
        if self._refused:  # a broker closes the connection that it refuses
            return self._refusal("the connection")
        return self._error(f"was lost: {reason}", "check the broker and the network")

    def _error(self, what: str, remedy: str, kind: ErrorKind = ErrorKind.UNAVAILABLE) -> MachineError:
        return MachineError(f"the broker {self._address} {what}", kind=kind, remedy=remedy)

    def _on_connect(self, client: Any, data: Any, flags: Any, reason: Any, properties: Any) -> None:
        self._refused = str(reason).lower() if reason.is_failure else ""
        self._connected.set()

    def _on_subscribe(self, client: Any, data: Any, number: int, reasons: Any, properties: Any) -> None:
        failed = [str(reason).lower() for reason in reasons if reason.is_failure]
        self._refused = failed[0] if failed else ""
        self._subscribed.set()

    def _on_message(self, client: Any, data: Any, message: paho.MQTTMessage) -> None:
        try:
            self._sender.send_nowait(MqttMessage(message.topic, bytes(message.payload), message.retain))
        except (trio.WouldBlock, UnicodeDecodeError):  # a topic that is not UTF-8 has no subscriber here
            self.dropped += 1

    def _on_socket_close(self, client: Any, data: Any, socket: Any) -> None:
        if socket.fileno() >= 0:
            trio.lowlevel.notify_closing(socket)

    def _on_socket_register_write(self, client: Any, data: Any, socket: Any) -> None:
        self._output.set()


@asynccontextmanager
async def mqtt_connection(
    address: BrokerAddress, login: MqttLogin, run_blocking: RunBlocking, last_will: tuple[str, bytes]
) -> AsyncIterator[MqttConnection]:
    """Connect to a broker; yield the connection.

    `last_will` is the topic and payload of the retained message that the broker sends when it loses this client, and
    that this client sends when the context ends. MachineError (UNAVAILABLE or PERMISSION) names the broker and what
    failed, also if the connection is lost while the context is open.
    """
    client = paho.Client(
        CallbackAPIVersion.VERSION2,
        client_id=login.client_id,
        protocol=MQTTProtocolVersion.MQTTv311,
        clean_session=True,
    )
    client.connect_timeout = CONNECT_LIMIT_S
    client.will_set(last_will[0], last_will[1], qos=0, retain=True)
    if login.username:
        client.username_pw_set(login.username, login.password)
    attempt = _Attempt(client, address, login)
    try:
        await run_blocking(attempt.connect)
    except (OSError, ValueError) as error:
        raise MachineError(
            f"the broker {address} cannot be reached: {_reason(error)}",
            kind=ErrorKind.UNAVAILABLE,
            remedy="check its address and port, its certificate, and that it runs",
        ) from error
    except trio.Cancelled:
        attempt.is_abandoned = True
        raise
    connection = MqttConnection(client, address)
    try:
        with ungrouped(MachineError):
            async with trio.open_nursery() as nursery:
                await connection.start(nursery)
                yield connection
                nursery.cancel_scope.cancel()
    finally:
        with trio.move_on_after(CLOSE_LIMIT_S, shield=True):
            try:
                connection.publish(*last_will)
                client.disconnect()
                await connection.flush()
            except MachineError:
                pass  # the connection is lost, so the broker sends it
        client._sock_close()


@dataclass(slots=True)
class _Attempt:
    """The start of a connection. One that was cancelled is closed by its thread, or it would displace the next one."""

    client: paho.Client
    address: BrokerAddress
    login: MqttLogin
    is_abandoned: bool = False

    def connect(self) -> None:
        if self.address.tls:
            self.client.tls_set_context(self.login.context())
        self.client.connect_async(self.address.host, self.address.port, keepalive=KEEP_ALIVE_S)
        self.client.reconnect()
        if self.is_abandoned:
            self.client._sock_close()


def _reason(error: Exception) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted: {error.verify_message}"
    return (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
