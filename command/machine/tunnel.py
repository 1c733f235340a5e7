"""`machine tunnel`: forwards ports of this computer to ports of the machine."""

from __future__ import annotations

import re
import signal
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import click
import trio

from command.connection import EXIT_INTERRUPTED, ROBOT, Connection
from schema import ErrorKind, MachineError

if TYPE_CHECKING:
    from rpc.api import ApiClient

HOST: Final = "127.0.0.1"
CHUNK: Final = 32 * 1024  # bytes in one request; reference value
_PAIR: Final = re.compile(r"(?:(\d{1,5}):)?(\d{1,5})\Z")


@dataclass(frozen=True, slots=True)
class PortPair:
    """A port of this computer (0: any free port) and a port of the machine."""

    local: int
    remote: int


def parse_pair(text: str) -> PortPair:
    """Parse `LOCAL:REMOTE`, or `PORT` for both. Raises click.UsageError."""
    match = _PAIR.match(text)
    remote = int(match[2]) if match else 0
    local = int(match[1]) if match and match[1] else remote
    if not 1 <= remote <= 65535 or local > 65535:
        raise click.UsageError(
            f"{text!r} is not LOCAL:REMOTE: write two ports, such as 8081:80, or 0:80 for a free one"
        )
    return PortPair(local, remote)


async def tunnel(client: ApiClient, connection: Connection, pairs: Sequence[PortPair]) -> None:
    """Forward all connections to the local ports until Ctrl-C. Raises MachineError if a port is not allowed."""
    allowed = [endpoint["port"] for endpoint in await client.call(ROBOT, "", "list_tunnels")]
    for pair in pairs:
        if pair.remote not in allowed:
            allowed_ports = f"allowed ports: {', '.join(map(str, allowed))}; " if allowed else ""
            raise MachineError(
                f"the machine does not allow tunnels to port {pair.remote}",
                kind=ErrorKind.PERMISSION,
                remedy=f"{allowed_ports}add the port to network.traffic_tunnel_endpoints of its configuration",
            )
    # Receive Ctrl-C as an event instead of an exception in an arbitrary task.
    with trio.open_signal_receiver(signal.SIGINT) as signals:
        async with trio.open_nursery() as nursery:
            for pair in pairs:
                listeners = await _listen(pair.local)
                port = listeners[0].socket.getsockname()[1]
                click.echo(f"{HOST}:{port} forwards to port {pair.remote} of {connection.address}; stop with Ctrl-C")
                nursery.start_soon(trio.serve_listeners, _Forward(client, pair.remote), listeners)
            await anext(signals)
            nursery.cancel_scope.cancel()
    raise click.exceptions.Exit(EXIT_INTERRUPTED)


async def _listen(port: int) -> list[trio.SocketListener]:
    try:
        return await trio.open_tcp_listeners(port, host=HOST)
    except OSError as error:
        raise click.ClickException(
            f"port {port} of this computer cannot be opened: {error.strerror or error}"
        ) from None


class _Forward:
    """Forwards one local connection through a call. A failure is printed and affects nothing else."""

    def __init__(self, client: ApiClient, port: int) -> None:
        self._client = client
        self._port = port

    async def __call__(self, stream: trio.SocketStream) -> None:
        replies = self._client.stream(ROBOT, "", "tunnel", destination_port=self._port, data=_Received(stream))
        try:
            async with aclosing(replies):
                async for chunk in replies:
                    await stream.send_all(chunk)
        except trio.BrokenResourceError:
            pass  # the local program has closed its connection
        except MachineError as error:
            click.echo(f"machine: {error}", err=True)


class _Received:
    """The bytes that a connection receives, until its end or failure."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self._stream = stream

    def __aiter__(self) -> AsyncIterator[Any]:
        return self

    async def __anext__(self) -> bytes:
        try:
            chunk = bytes(await self._stream.receive_some(CHUNK))
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            chunk = b""
        if not chunk:
            raise StopAsyncIteration
        return chunk
