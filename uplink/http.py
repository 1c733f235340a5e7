"""HTTP/1.1 requests for files on Trio. A connection without a byte for STALL seconds counts as lost."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

import trio

from schema import ErrorKind, MachineError
from support import unwrap

if TYPE_CHECKING:
    import httpcore

STALL: Final = 30.0  # seconds without a byte after which a connection counts as lost
MAX_ERROR_TEXT: Final = 400  # bytes of an error response that are shown

Headers = Sequence[tuple[str, str]]


@asynccontextmanager
async def responding(
    url: str, headers: Headers, tls: ssl.SSLContext | None = None, *, name: str = ""
) -> AsyncIterator[httpcore.Response]:
    """Send a GET request, and yield the response of any status while its connection is open; no redirect is followed.

    `name` is the URL as errors show it, without what is secret in it. `tls` says which authorities to trust, by default
    those of the system. Raises MachineError (UNAVAILABLE) if the connection fails.
    """
    import httpcore

    limits: Mapping[str, Any] = {"timeout": {"connect": STALL, "read": STALL, "write": STALL, "pool": STALL}}
    try:
        async with httpcore.AsyncConnectionPool(tls, network_backend=httpcore.TrioBackend()) as pool:
            async with pool.stream("GET", url, headers=[*headers], extensions=dict(limits)) as response:
                yield response
    except (httpcore.ConnectError, httpcore.TimeoutException, httpcore.NetworkError, httpcore.ProtocolError) as error:
        raise _lost(name or url, error) from error
    except BaseExceptionGroup as group:
        raise unwrap(group) from None


async def read_body(name: str, response: httpcore.Response, take: Callable[[bytes], Awaitable[None]]) -> None:
    """Pass each piece of the body to `take`; an exception from it ends the reading. `name` is that of `responding`.

    The reading is ended from inside by cancellation, because httpcore's nested generators do not close each other.
    """
    import httpcore

    failure: BaseException | None = None
    with trio.CancelScope() as scope:
        try:
            async for piece in response.aiter_stream():
                if failure is None:
                    try:
                        await take(piece)
                    except BaseException as error:  # raised below
                        failure = error
                        scope.cancel()
        except (httpcore.TimeoutException, httpcore.NetworkError, httpcore.ProtocolError) as error:
            raise _lost(name, error) from error
    if failure is not None:
        raise failure


async def read_up_to(name: str, response: httpcore.Response, limit: int) -> bytes:
    """Return the body, or its first bytes, more than `limit`, if it is longer. MachineError (UNAVAILABLE)."""
    content = bytearray()

    async def take(piece: bytes) -> None:
        content.extend(piece)
        if len(content) > limit:
            raise _Enough

    try:
        await read_body(name, response, take)
    except _Enough:
        pass
    return bytes(content)


async def error_text(response: httpcore.Response) -> str:
    """Return the beginning of the body of an error response; empty if it cannot be read."""
    with trio.move_on_after(STALL):
        try:
            content = await read_up_to("", response, MAX_ERROR_TEXT)
        except MachineError:
            return ""
        return content[:MAX_ERROR_TEXT].decode(errors="replace").strip()
    return ""


def headers_of(response: httpcore.Response) -> dict[str, str]:
    """Return the headers of a response with names in lower case."""
    return {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in response.headers}


class _Enough(Exception):
    """The rest of a body is not needed."""


def _lost(name: str, error: Exception) -> MachineError:
    import httpcore

    reason = f"no data for {STALL:g} s" if isinstance(error, httpcore.TimeoutException) else _text(error)
    return MachineError(
        f"{name} cannot be read: {reason}", kind=ErrorKind.UNAVAILABLE, remedy="the request is repeated"
    )


def _text(error: BaseException) -> str:
    """Return the text of an error, or that of the one that has caused it: failures of TLS have theirs there."""
    cause: BaseException | None = error
    while cause is not None and not str(cause):
        cause = cause.__cause__ or cause.__context__
    return str(cause or repr(error))
