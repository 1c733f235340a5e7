"""Client of a machine's log stream, a WebSocket, with the credentials of the other commands."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlencode

import click
import trio
from grpclib.exceptions import GRPCError
from trio_websocket import ConnectionClosed, WebSocketConnection

from command.connection import Connection, Unreachable, tls_context, unreachable
from rpc import to_machine_error
from rpc.client import ApiKey, Channel, DialTarget, NotOpened, Stream, open_websocket
from runtime.parts import INVALID, REFUSED
from schema import ErrorKind, MachineError

PATH: Final = "/logs/stream"
ANSWER_LIMIT: Final = 10.0  # seconds for the machine to accept the connection, and to answer a ping
PING: Final = 15.0  # seconds between pings, which detect that the machine has disappeared
MAX_MESSAGE: Final = 64 * 1024 * 1024  # bytes

_KINDS: Final = {401: ErrorKind.UNAUTHENTICATED, 403: ErrorKind.PERMISSION, 404: ErrorKind.UNSUPPORTED}
_CLOSED: Final = {INVALID: ErrorKind.INVALID, REFUSED: ErrorKind.PERMISSION}
_NORMAL: Final = 1000  # RFC 6455 7.4.1


class LogReader:
    """Reads the log stream. Each `read` continues after the last line of the previous one."""

    def __init__(self, connection: Connection, query: Mapping[str, str]) -> None:
        self._connection = connection
        self._query = dict(query)
        self._last_sequence = 0
        self._stream: Stream | None = None
        try:
            self._target = DialTarget.parse(connection.address)
        except ValueError as error:
            raise click.UsageError(str(error)) from None
        self.instance = ""
        """Instance of the machine that answered last, which changes at each restart; empty before the first answer."""
        self.restarted = False
        """Whether the instance changed with the last connection."""

    async def read(self, handle_message: Callable[[Mapping[str, Any]], None]) -> None:
        """Connect, and pass every message to `handle_message` until the machine ends the stream.

        Raises Unreachable, or MachineError: UNAVAILABLE if the connection is lost, INVALID for invalid parameters,
        UNAUTHENTICATED, PERMISSION.
        """
        try:
            async with trio.open_nursery() as nursery:
                socket = await self._open(nursery)
                nursery.start_soon(_stay, socket)
                await self._take(socket, handle_message)
                nursery.cancel_scope.cancel()
        except BaseExceptionGroup as group:
            raise _error_for_user(group) from None
        finally:
            if self._stream is not None:
                await trio.aclose_forcefully(self._stream)

    async def _take(self, socket: WebSocketConnection, handle_message: Callable[[Mapping[str, Any]], None]) -> None:
        while True:
            try:
                message: Mapping[str, Any] = json.loads(await socket.get_message())
            except ConnectionClosed as closed:
                code = closed.reason.code if closed.reason is not None else None
                if code == _NORMAL:
                    return
                reason = (closed.reason.reason if closed.reason is not None else "") or "the connection was lost"
                raise MachineError(reason, kind=_CLOSED.get(code or 0, ErrorKind.UNAVAILABLE)) from None
            if "machine" in message:
                instance = message["machine"]["instance"]
                self.restarted = bool(self.instance) and instance != self.instance
                self._last_sequence = 0 if instance != self.instance else self._last_sequence
                self.instance = instance
            if entries := message.get("entries"):
                self._last_sequence = entries[-1]["seq"]
            handle_message(message)

    async def _open(self, nursery: trio.Nursery) -> WebSocketConnection:
        query = dict(self._query)
        if self.instance:  # `newest` and `after` apply only to the first connection
            query = {key: value for key, value in query.items() if key not in ("newest", "after")}
            query |= {"instance": self.instance, "since": str(self._last_sequence)}
        target, reason = self._target, "no answer"
        with trio.move_on_after(ANSWER_LIMIT):
            try:
                headers = await self._token()
                self._stream = stream = await self._connect()
                path = f"{PATH}?{urlencode(query)}"
                return await open_websocket(
                    nursery, stream, target.authority, path, headers=headers, max_message=MAX_MESSAGE
                )
            except GRPCError as error:
                raise to_machine_error(error) from None
            except NotOpened as error:
                if error.status:
                    kind = _KINDS.get(error.status, ErrorKind.UNAVAILABLE)
                    raise MachineError(
                        error.body or f"the machine answered with HTTP status {error.status}", kind=kind
                    ) from None
                reason = str(error)
            except (OSError, trio.BrokenResourceError, trio.ClosedResourceError) as error:
                reason = str(error.__cause__ or error)
        raise Unreachable(unreachable(self._connection, reason))

    async def _token(self) -> Sequence[tuple[str, str]]:
        connection = self._connection
        if not connection.api_key:
            return ()
        credentials = ApiKey(connection.api_key_id, connection.api_key)
        async with Channel(connection.address, tls=tls_context(connection), credentials=credentials) as channel:
            return await credentials.headers(channel)

    async def _connect(self) -> Stream:
        target = self._target
        if target.path:
            return await trio.open_unix_socket(target.path)
        stream = await trio.open_tcp_stream(target.host, target.port)
        context = tls_context(self._connection)
        if context is None:
            return stream
        context.set_alpn_protocols(["http/1.1"])
        secure = trio.SSLStream(stream, context, server_hostname=target.host, https_compatible=True)
        try:
            await secure.do_handshake()
        except BaseException:
            await trio.aclose_forcefully(stream)
            raise
        return secure


def _error_for_user(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """Return the first error in a group that has a message for the user, or the group itself."""
    error: BaseException | None = group.subgroup((MachineError, Unreachable, KeyboardInterrupt))
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error or group


async def _stay(socket: WebSocketConnection) -> None:
    """Send pings until the connection is closed. Raises MachineError (UNAVAILABLE) if one is not answered."""
    while True:
        await trio.sleep(PING)
        with trio.move_on_after(ANSWER_LIMIT) as limit:
            try:
                await socket.ping()
            except ConnectionClosed:
                return  # the reader notices it, too
        if limit.cancelled_caught:
            raise MachineError("the machine does not answer any longer", kind=ErrorKind.UNAVAILABLE)
