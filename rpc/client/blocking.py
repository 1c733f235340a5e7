"""Calls that block, for programs that wait for one answer after the other: they need no event loop.

`run_blocking` runs coroutines on a `PlainHttp`, such as those of `rpc.client.web.StreamingWebChannel`. A short command
spends most of its time on imports: `import trio` takes as long as the rest of it, and `http.client` a fifth.
"""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedReader
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from grpclib.const import Status
from grpclib.exceptions import GRPCError

from rpc.client.target import DialTarget

if TYPE_CHECKING:
    import ssl

CONNECT: Final = 30.0  # seconds to connect to the last address of a host
OTHERS: Final = 3.0  # seconds to connect to each of the others: a host may have an IPv6 address that does not answer
MAX_ANSWER: Final = 64 * 1024**2  # bytes of an answer: the largest message
PART: Final = 64 * 1024  # bytes that are read at a time
MAX_LINE: Final = 64 * 1024  # bytes of a header field or another line
MAX_FIELDS: Final = 256  # of an answer
LOST: Final = "the connection was lost"

SILENCE: Final = ((socket.TCP_KEEPIDLE, 20), (socket.TCP_KEEPINTVL, 5), (socket.TCP_KEEPCNT, 3))
"""A peer that is gone is noticed after 35 seconds, however long a call takes."""

T = TypeVar("T")


def run_blocking(coroutine: Coroutine[Any, Any, T]) -> T:
    """Return the result of a coroutine that never suspends; RuntimeError if it does."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    coroutine.close()
    raise RuntimeError(f"{coroutine!r} waits for an event loop, and there is none")


class PlainHttp:
    """HTTP/1.1 to one server, over one connection, which the first request opens.

    Its coroutines block, and never suspend. Requests raise GRPCError: UNAVAILABLE if the connection cannot be opened
    or is lost, RESOURCE_EXHAUSTED for an answer of more than MAX_ANSWER. See `rpc.client.web.StreamingHttpClient`.
    """

    def __init__(self, target: DialTarget, tls: ssl.SSLContext | None) -> None:
        self.connected = False  # whether the connection has ever been open
        self._target = target
        self._tls = tls
        self._socket: socket.socket | None = None
        self._received: BufferedReader | None = None

    def __repr__(self) -> str:
        return f"PlainHttp({self._target.path or self._target.authority!r})"

    def close(self) -> None:
        """Close the connection; a later request opens another one."""
        for part in (self._received, self._socket):
            if part is not None:
                part.close()
        self._socket = self._received = None

    async def post(
        self, path: str, headers: Sequence[tuple[str, str]], body: bytes
    ) -> tuple[int, Mapping[str, str], bytes]:
        """Send a request; return the status, the header fields with names in lower case, and the whole body."""
        content = bytearray()
        with self._errors():
            answer = self._send(path, headers, body)
            for part in self._parts(answer):
                content += part
                if len(content) > MAX_ANSWER:
                    self.close()
                    raise GRPCError(Status.RESOURCE_EXHAUSTED, f"the answer is larger than {MAX_ANSWER >> 20} MiB")
        return answer.status, answer.fields, bytes(content)

    async def open(
        self, path: str, headers: Sequence[tuple[str, str]], body: bytes
    ) -> tuple[int, Mapping[str, str], AsyncIterator[bytes]]:
        """Send a request; return the status, the header fields with names in lower case, and the parts of the body."""
        with self._errors():
            answer = self._send(path, headers, body)
        return answer.status, answer.fields, self._following(answer)

    async def _following(self, answer: _Head) -> AsyncIterator[bytes]:
        complete = False
        try:
            with self._errors():
                for part in self._parts(answer):
                    yield part
            complete = True
        finally:
            if not complete:
                self.close()  # the rest of the answer would be taken for the next one

    def _send(self, path: str, headers: Sequence[tuple[str, str]], body: bytes) -> _Head:
        if self._socket is None:
            self._socket = self._opened()
            self._received = cast(BufferedReader, self._socket.makefile("rb", PART))
            self.connected = True
        fields = [("host", self._target.authority), *headers, ("content-length", str(len(body)))]
        lines = [f"POST {path} HTTP/1.1", *(f"{name}: {value}" for name, value in fields), "", ""]
        self._socket.sendall("\r\n".join(lines).encode("latin-1") + body)
        while (answer := _read_head(self._buffer())).status < 200:
            pass
        if answer.status == 400 and self._tls is None and "grpc-status" not in answer.fields:
            raise _Broken  # what servers of TLS answer to plain text
        return answer

    def _parts(self, answer: _Head) -> Iterator[bytes]:
        received, fields = self._buffer(), answer.fields
        if answer.status in (204, 304):
            return
        if "chunked" in fields.get("transfer-encoding", "").lower():
            yield from _chunks(received)
        elif "content-length" in fields:
            yield from _exactly(received, _number(fields["content-length"], 10))
        else:
            yield from iter(lambda: received.read1(PART), b"")
            self.close()
        if answer.last:
            self.close()

    def _buffer(self) -> BufferedReader:
        if self._received is None:
            raise _Broken
        return self._received

    def _opened(self) -> socket.socket:
        if self._target.path:
            opened = socket.socket(socket.AF_UNIX)
            opened.connect(self._target.path)
            return opened
        opened = _connected(self._target.host, self._target.port)
        try:
            for option, value in (*SILENCE, (socket.TCP_NODELAY, 1)):
                opened.setsockopt(socket.IPPROTO_TCP, option, value)
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            if self._tls is not None:
                opened = self._tls.wrap_socket(opened, server_hostname=self._target.host)
            opened.settimeout(None)
        except BaseException:
            opened.close()
            raise
        return opened

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except (OSError, _Broken) as error:
            self.close()
            text = LOST if self.connected else str(error) or type(error).__name__
            raise GRPCError(Status.UNAVAILABLE, text) from error


def _connected(host: str, port: int) -> socket.socket:
    """Return a socket that is connected to one of the addresses of a host. Raises the OSError of the last one."""
    addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    for left, (family, kind, protocol, _, address) in zip(range(len(addresses) - 1, -1, -1), addresses, strict=True):
        opened = socket.socket(family, kind, protocol)
        try:
            opened.settimeout(OTHERS if left else CONNECT)
            opened.connect(address)
        except BaseException as error:
            opened.close()
            if isinstance(error, OSError) and left:
                continue
            raise
        return opened
    raise OSError(f"{host} has no address")


class _Broken(Exception):
    """What was received is not HTTP/1.1, or is cut off."""


@dataclass(frozen=True, slots=True)
class _Head:
    status: int
    fields: Mapping[str, str]  # names in lower case
    last: bool  # whether the server closes the connection after this answer


def _read_head(received: BufferedReader) -> _Head:
    version, _, rest = _line(received).partition(" ")
    if not version.startswith("HTTP/1."):
        raise _Broken
    fields: dict[str, str] = {}
    while line := _line(received):
        name, _, value = line.partition(":")
        name = name.strip().lower()
        fields[name] = f"{fields[name]},{value.strip()}" if name in fields else value.strip()
        if len(fields) > MAX_FIELDS:
            raise _Broken
    last = version == "HTTP/1.0" or "close" in fields.get("connection", "").lower()
    return _Head(_number(rest[:3], 10), fields, last)


def _line(received: BufferedReader) -> str:
    line = received.readline(MAX_LINE)
    if not line.endswith(b"\n"):
        raise _Broken
    return line.decode("latin-1").rstrip("\r\n")


def _number(text: str, base: int) -> int:
    try:
        number = int(text, base)
    except ValueError:
        raise _Broken from None
    if number < 0:
        raise _Broken
    return number


def _chunks(received: BufferedReader) -> Iterator[bytes]:
    while size := _number(_line(received).partition(";")[0], 16):
        yield from _exactly(received, size)
        if _line(received):
            raise _Broken
    while _line(received):
        pass


def _exactly(received: BufferedReader, size: int) -> Iterator[bytes]:
    while size:
        part = received.read1(min(size, PART))
        if not part:
            raise _Broken
        size -= len(part)
        yield part
