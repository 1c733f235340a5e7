"""A client connection for stubs that makes each call as gRPC-Web over HTTP/1.1, built on the `h11` library."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import h11
import trio
from grpclib.exceptions import StreamTerminatedError

from rpc.carrier import Caller, Headers, Peer
from rpc.client.call import ClientCall
from rpc.errors import CANCEL, REFUSED_STREAM
from rpc.inbox import Budget
from rpc.limits import Limits
from rpc.statistics import Statistics

HTTP = (b"date", b"transfer-encoding", b"content-length")  # fields that are not metadata


class WebCalls:
    """Channel for stubs and connection of their calls; `connect` opens one stream for each call."""

    def __init__(self, nursery: trio.Nursery, connect: Callable[[], trio.abc.Stream], limits: Limits) -> None:
        self.limits = limits
        self.statistics = Statistics()
        self.peer = Peer()
        self.budget = Budget(limits.max_buffered)
        self._nursery = nursery
        self._connect = connect
        self._calls: dict[int, _WebCall] = {}
        self._last = 0

    def request(self, name: str, cardinality: Any, request_type: Any, reply_type: Any, **options: Any) -> ClientCall:
        options.pop("deadline", None)
        options = {"metadata": None, "timeout": None, "credentials": False, **options}
        return ClientCall(self, name, cardinality, reply_type, **options)

    async def credential_headers(self) -> Headers:
        return ()

    def rejected(self, headers: object) -> bool:
        return False

    async def connection(self) -> WebCalls:
        return self

    async def begin(self, caller: Caller, method: str, headers: Headers, *, end: bool) -> int:
        sid = self._last = self._last + 1
        call = self._calls[sid] = _WebCall(self._connect(), caller)
        fixed = [("host", "machine"), ("content-type", "application/grpc-web+proto"), ("transfer-encoding", "chunked")]
        await call.send(h11.Request(method="POST", target=method, headers=[*fixed, *headers]))
        if end:
            await call.send(h11.EndOfMessage())
        self._nursery.start_soon(call.receive)
        return sid

    async def send_data(self, sid: int, data: bytes, *, end: bool = False) -> None:
        call = self._calls[sid]
        await call.send(h11.Data(data=data))
        if end:
            await call.send(h11.EndOfMessage())

    def consumed(self, sid: int, n: int) -> None:
        pass

    def forget(self, sid: int) -> None:
        call = self._calls.pop(sid, None)
        if call is not None:
            self._nursery.start_soon(trio.aclose_forcefully, call.stream)


class _WebCall:
    def __init__(self, stream: trio.abc.Stream, caller: Caller) -> None:
        self.stream = stream
        self._caller = caller
        self._h11 = h11.Connection(h11.CLIENT)
        self._body = b""

    async def send(self, event: Any) -> None:
        try:
            await self.stream.send_all(self._h11.send(event) or b"")
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            raise StreamTerminatedError("the server has closed the connection") from None

    async def receive(self) -> None:
        """Pass the response to the caller until its end."""
        try:
            while not isinstance(event := await self._event(), h11.EndOfMessage):
                if isinstance(event, h11.Response):
                    self._on_head(event)
                elif isinstance(event, h11.Data):
                    self._on_body(bytes(event.data))
            self._caller.end()
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            self._caller.terminate(CANCEL, "closed")
        except h11.RemoteProtocolError:
            self._caller.terminate(REFUSED_STREAM, "the connection was lost")

    async def _event(self) -> Any:
        while (event := self._h11.next_event()) is h11.NEED_DATA:
            self._h11.receive_data(await self.stream.receive_some(65536))
        return event

    def _on_head(self, response: h11.Response) -> None:
        fields = {name.decode(): value.decode() for name, value in response.headers if name not in HTTP}
        fields |= {"content-type": "application/grpc"}
        head = [(":status", str(response.status_code)), *fields.items()]
        self._caller.on_headers(head, end="grpc-status" in fields)

    def _on_body(self, data: bytes) -> None:
        self._body += data
        while len(self._body) >= 5 and len(self._body) >= (end := 5 + int.from_bytes(self._body[1:5], "big")):
            frame, self._body = self._body[:end], self._body[end:]
            if frame[0] & 0x80:
                lines = frame[5:].decode("latin-1").split("\r\n")
                self._caller.on_headers([tuple(line.split(": ", 1)) for line in lines if line], end=True)
            else:
                self._caller.feed(frame, len(frame))
