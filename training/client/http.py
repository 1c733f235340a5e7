"""HTTP clients of the training client: one for event loops (Trio and asyncio), one that blocks.

Everything else is written once against `Http`. `BlockingHttp` has the same methods, which never suspend:
`training.client.blocking` runs coroutines on it without an event loop.
"""

from __future__ import annotations

import ssl
import time
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar

import anyio
import anyio.to_thread
import httpcore
from grpclib.const import Status
from grpclib.exceptions import GRPCError

from rpc.client import DialTarget
from rpc.network import MACHINE_AUTHORITY, client_context
from schema import ErrorKind, MachineError

CONNECT: Final = 30.0  # seconds
SILENCE: Final = 60.0  # seconds without a byte, after which a connection counts as lost; calls wait for 20 at most
MAX_REPLY: Final = 64 * 1024**2  # bytes of the reply to a call
_TIMEOUTS: Final = {"connect": CONNECT, "pool": CONNECT, "read": SILENCE, "write": SILENCE}
_LOST: Final = (httpcore.NetworkError, httpcore.TimeoutException, httpcore.ProtocolError, OSError)

T = TypeVar("T")
Headers = Sequence[tuple[str, str]]


class Http(Protocol):
    """An HTTP client of one cloud, which also waits."""

    async def post(self, path: str, headers: Headers, body: bytes) -> tuple[int, Mapping[str, str], bytes]:
        """Send a request; return the status, the header fields with names in lower case, and the whole body."""
        ...

    def get(self, url: str) -> AsyncGenerator[bytes, None]:
        """Yield the content of the file at `url`, which may be on another server. MachineError if there is none."""
        ...

    async def pause(self, seconds: float) -> None:
        """Wait."""
        ...

    async def work(self, function: Callable[[], T]) -> T:
        """Run a function that works on files; in a thread if there is an event loop, which it would block."""
        ...

    async def close(self) -> None:
        """Close all connections."""
        ...


class _Cloud:
    """The address of a cloud, and what both clients have in common."""

    def __init__(self, address: str, ca: Path | None) -> None:
        self.target = DialTarget.parse(
            address if "://" in address or address.startswith("unix:") else f"https://{address}"
        )
        if ca is not None and not self.target.tls:
            raise ValueError(f"ca applies only to a cloud with TLS: {address!r} has none")
        self.options: dict[str, Any] = {
            "ssl_context": self._tls(ca),
            "uds": self.target.path or None,
        }

    def _tls(self, ca: Path | None) -> ssl.SSLContext:
        return client_context(authorities=ca, protocols=["http/1.1"], except_subject=MACHINE_AUTHORITY)

    def url(self, path: str) -> httpcore.URL:
        target = self.target
        return httpcore.URL(
            scheme="https" if target.tls else "http", host=target.host, port=target.port or None, target=path.encode()
        )

    def sent(self, headers: Headers) -> list[tuple[str, str]]:
        return [("host", self.target.authority), *headers]

    def __repr__(self) -> str:
        return repr(self.target.path or self.target.authority)


class AsyncHttp:
    """HTTP on Trio or asyncio. `address` is a URL or `unix:/path`; without a scheme, https. ValueError otherwise."""

    def __init__(self, address: str, ca: Path | None = None) -> None:
        self._cloud = _Cloud(address, ca)
        self._pool = httpcore.AsyncConnectionPool(**self._cloud.options)

    def __repr__(self) -> str:
        return f"AsyncHttp({self._cloud!r})"

    async def post(self, path: str, headers: Headers, body: bytes) -> tuple[int, Mapping[str, str], bytes]:
        """Send `body` to `path` below the endpoint, without a time limit."""
        with _errors(_lost):
            async with self._pool.stream(
                "POST",
                self._cloud.url(path),
                headers=self._cloud.sent(headers),
                content=body,
                extensions={"timeout": _TIMEOUTS},
            ) as answer:
                content = bytearray()
                async for piece in answer.aiter_stream():
                    _add(content, piece)
        return answer.status, _fields(answer), bytes(content)

    async def get(self, url: str) -> AsyncGenerator[bytes, None]:
        """Yield the content of the file at `url`, which may be on another server."""
        with _errors(_unavailable):
            async with self._pool.stream("GET", url, extensions={"timeout": _TIMEOUTS}) as answer:
                _check(answer)
                async for piece in answer.aiter_stream():
                    yield piece

    async def pause(self, seconds: float) -> None:
        """Wait."""
        await anyio.sleep(seconds)

    async def work(self, function: Callable[[], T]) -> T:
        """Run a function that works on files; in a thread if there is an event loop, which it would block."""
        return await anyio.to_thread.run_sync(function)

    async def close(self) -> None:
        """Close all connections."""
        await self._pool.aclose()


class BlockingHttp:
    """The same for programs without an event loop: its coroutines block, and never suspend."""

    def __init__(self, address: str, ca: Path | None = None) -> None:
        self._cloud = _Cloud(address, ca)
        self._pool = httpcore.ConnectionPool(**self._cloud.options)

    def __repr__(self) -> str:
        return f"BlockingHttp({self._cloud!r})"

    async def post(self, path: str, headers: Headers, body: bytes) -> tuple[int, Mapping[str, str], bytes]:
        """Send `body` to `path` below the endpoint, without a time limit."""
        with (
            _errors(_lost),
            self._pool.stream(
                "POST",
                self._cloud.url(path),
                headers=self._cloud.sent(headers),
                content=body,
                extensions={"timeout": _TIMEOUTS},
            ) as answer,
        ):
            content = bytearray()
            for piece in answer.iter_stream():
                _add(content, piece)
        return answer.status, _fields(answer), bytes(content)

    async def get(self, url: str) -> AsyncGenerator[bytes, None]:
        """Yield the content of the file at `url`, which may be on another server."""
        with _errors(_unavailable), self._pool.stream("GET", url, extensions={"timeout": _TIMEOUTS}) as answer:
            _check(answer)
            for piece in answer.iter_stream():
                yield piece

    async def pause(self, seconds: float) -> None:
        """Wait."""
        _block(seconds)

    async def work(self, function: Callable[[], T]) -> T:
        """Run a function that works on files; in a thread if there is an event loop, which it would block."""
        return function()

    async def close(self) -> None:
        """Close all connections."""
        self._pool.close()


def _block(seconds: float) -> None:
    time.sleep(seconds)


def _add(content: bytearray, piece: bytes) -> None:
    content += piece
    if len(content) > MAX_REPLY:
        raise GRPCError(Status.RESOURCE_EXHAUSTED, f"the answer is larger than {MAX_REPLY >> 20} MiB")


def _fields(answer: httpcore.Response) -> dict[str, str]:
    return {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in answer.headers}


def _check(answer: httpcore.Response) -> None:
    if answer.status != 200:
        raise MachineError(
            f"the download was answered with HTTP status {answer.status}",
            kind=ErrorKind.NOT_FOUND if answer.status in (404, 410) else ErrorKind.UNAVAILABLE,
        )


def _lost(text: str) -> Exception:
    error: Exception = GRPCError(Status.UNAVAILABLE, text)
    return error


def _unavailable(text: str) -> Exception:
    return MachineError(text, kind=ErrorKind.UNAVAILABLE)


@contextmanager
def _errors(make: Callable[[str], Exception]) -> Iterator[None]:
    try:
        yield
    except _LOST as error:
        reason = str(error) or type(error).__name__
        raise make(f"no answer from the cloud: {reason}") from None
