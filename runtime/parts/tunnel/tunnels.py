"""Tunnels from clients to ports of the machine: the allowed ports, and the relay of bytes."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from functools import partial
from typing import Final

import trio

from schema import ErrorKind, MachineError, format_duration
from schema.document import TunnelEndpoint
from support import SideTask, side_task

CHUNK: Final = 32 * 1024  # bytes in one message of the reply; reference value
TUNNELS_LIMIT: Final = 64  # open at the same time; each uses one of about 1,000 file descriptors of the process
HOST: Final = "127.0.0.1"


class Tunnels:
    """Relays between clients and the allowed ports of this computer, on 127.0.0.1."""

    def __init__(self) -> None:
        self._endpoints: dict[int, TunnelEndpoint] = {}
        self._open: dict[SideTask, int] = {}

    @property
    def endpoints(self) -> tuple[TunnelEndpoint, ...]:
        """The allowed endpoints, sorted by port."""
        return tuple(self._endpoints[port] for port in sorted(self._endpoints))

    @property
    def open(self) -> int:
        """Number of open tunnels."""
        return len(self._open)

    def configure(self, endpoints: Sequence[TunnelEndpoint]) -> None:
        """Allow exactly these ports from now on. Tunnels to other ports fail with MachineError (PERMISSION)."""
        self._endpoints = {endpoint.port: endpoint for endpoint in endpoints}
        for tunnel, port in list(self._open.items()):
            if port not in self._endpoints:
                tunnel.fail(self._not_allowed(port))

    async def relay(self, port: int, data: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
        """Connect to `port`, send `data` and then end of file, and yield received bytes until the port's end of file.

        Raises MachineError: PERMISSION for a port that is not allowed, UNAVAILABLE if nothing listens there or the
        connection breaks, EXHAUSTED beyond TUNNELS_LIMIT. The connection is closed when the generator is.
        """
        endpoint = self._endpoints.get(port)
        if endpoint is None:
            raise self._not_allowed(port)
        if len(self._open) >= TUNNELS_LIMIT:
            raise MachineError(
                f"{TUNNELS_LIMIT} tunnels are open, which is the limit",
                kind=ErrorKind.EXHAUSTED,
                remedy="close or cancel some of them (GetOperations lists them)",
            )
        tunnel = SideTask()  # counts before it is connected, so that simultaneous connects respect the limit
        self._open[tunnel] = port
        try:
            async with await tunnel.until(partial(_connect, endpoint)) as stream:
                async with side_task(partial(_send, stream, data), tunnel):
                    while chunk := await tunnel.until(partial(_receive, stream, port)):
                        yield chunk
        finally:
            del self._open[tunnel]

    def _not_allowed(self, port: int) -> MachineError:
        allowed = ", ".join(map(str, sorted(self._endpoints)))
        return MachineError(
            f"port {port} is not open for tunnels",
            kind=ErrorKind.PERMISSION,
            remedy=f"{f'allowed ports are {allowed}; ' if allowed else ''}add it to network.traffic_tunnel_endpoints",
        )


async def _connect(endpoint: TunnelEndpoint) -> trio.SocketStream:
    port, sock = endpoint.port, trio.socket.socket()
    try:
        with trio.move_on_after(endpoint.connection_timeout):
            await sock.connect((HOST, port))
            return trio.SocketStream(sock)
        problem = f"no connection within {format_duration(endpoint.connection_timeout)}"
    except OSError as error:
        sock.close()
        problem = os.strerror(error.errno) if error.errno else str(error)
    except BaseException:
        sock.close()
        raise
    sock.close()
    raise MachineError(
        f"port {port} of the machine ({HOST}:{port}): {problem}",
        kind=ErrorKind.UNAVAILABLE,
        remedy="start the program that listens there",
    )


async def _send(stream: trio.SocketStream, data: AsyncIterator[bytes]) -> None:
    try:
        async for chunk in data:
            await stream.send_all(chunk)
        await stream.send_eof()
    except (trio.BrokenResourceError, OSError):
        pass  # the port no longer reads, but may still send


async def _receive(stream: trio.SocketStream, port: int) -> bytes:
    try:
        return bytes(await stream.receive_some(CHUNK))
    except trio.BrokenResourceError as error:
        reason = os.strerror(error.__cause__.errno or 0) if isinstance(error.__cause__, OSError) else str(error)
        raise MachineError(
            f"the connection to port {port} of the machine failed: {reason}", kind=ErrorKind.UNAVAILABLE
        ) from error
