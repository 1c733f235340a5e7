"""Webhooks, sent: each address is checked after it was resolved, and the very address that was checked is called."""

from __future__ import annotations

import ipaddress
import socket
import ssl
from collections.abc import Iterable
from contextlib import aclosing
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cache
from typing import Any, Final

import httpcore
import trio

from triggers.retry import Outcome, of_status
from triggers.ssrf import NOTHING, Allow, Refused, check_address, parse_url
from triggers.webhook import Request

MAX_ANSWER: Final = 64 * 1024  # bytes of an answer that are read; what follows is not wanted
_SAID: Final = 200  # characters of an answer that a failure is explained with
_ONE_ADDRESS: Final = 10.0  # seconds until the next of several addresses is tried
_CLOSING: Final = 1.0  # seconds


async def deliver(request: Request, allow: Allow = NOTHING, tls: ssl.SSLContext | None = None) -> Outcome:
    """Send a request once, and say how it ended; never raises but when it is cancelled.

    Redirects are not followed. The caller limits the time; a request that is cancelled may have arrived.
    """
    try:
        target = parse_url(request.url)
    except Refused as refused:
        return Outcome(error=str(refused), final=True)
    backend = _Checked(allow)
    try:
        async with httpcore.AsyncConnectionPool(tls or _trusted(), network_backend=backend) as pool:
            headers = [(b"Host", _host(target.host, target.port, target.scheme)), *_encoded(request.headers)]
            url = httpcore.URL(
                scheme=target.scheme.encode(),
                host=target.host.encode(),
                port=target.port,
                target=target.path.encode(),
            )
            async with pool.stream(request.method, url, headers=headers, content=request.body or None) as answer:
                said = await _read(answer)
                return of_status(answer.status, _retry_after(answer.headers), said)
    except Refused as refused:
        return Outcome(error=str(refused), final=True)
    except (httpcore.UnsupportedProtocol, httpcore.LocalProtocolError) as error:
        return Outcome(error=f"the request cannot be sent: {error}", final=True)
    except (httpcore.NetworkError, httpcore.ProtocolError, httpcore.TimeoutException, OSError, ssl.SSLError) as error:
        return Outcome(error=_words(error, target.host))


class _Checked(httpcore.AsyncNetworkBackend):
    """Connects to addresses that may be called, and to nothing else."""

    def __init__(self, allow: Allow) -> None:
        self._allow = allow
        self._trio = httpcore.TrioBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        name = host.strip("[]")
        addresses = await _resolve(name, port)
        for address in addresses:
            check_address(address, name.rstrip("."), self._allow)
        last: Exception = OSError(f"{name} has no address")
        for number, address in enumerate(addresses, 1):
            limit = timeout if number == len(addresses) else _ONE_ADDRESS
            try:
                return await self._trio.connect_tcp(address, port, limit, local_address, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                last = error
        raise last

    async def connect_unix_socket(
        self, path: str, timeout: float | None = None, socket_options: Iterable[Any] | None = None
    ) -> httpcore.AsyncNetworkStream:
        raise Refused("Unix sockets are not called")

    async def sleep(self, seconds: float) -> None:
        await trio.sleep(seconds)


async def _resolve(name: str, port: int) -> list[str]:
    """Every address of a name, each once, in the order of the system; an address is its own."""
    try:
        return [str(ipaddress.ip_address(name))]
    except ValueError:
        found = await trio.socket.getaddrinfo(name, port, type=socket.SOCK_STREAM)
        return list(dict.fromkeys(str(address[0]) for *_, address in found))


async def _read(answer: httpcore.Response) -> str:
    """The begin of an answer's text."""
    kept = b""
    assert not isinstance(answer.stream, bytes)
    async with aclosing(answer.aiter_stream()) as pieces:  # type: ignore[type-var]
        async for piece in pieces:
            kept += piece
            if len(kept) >= MAX_ANSWER:
                break
    text = " ".join(kept[: 4 * _SAID].decode(errors="replace").split())
    return "".join(one if one.isprintable() else " " for one in text)[:_SAID]


def _retry_after(headers: Iterable[tuple[bytes, bytes]]) -> float | None:
    """Seconds of Retry-After (RFC 9110, 10.2.3): a number of them, or a date."""
    text = next((value for name, value in headers if name.lower() == b"retry-after"), b"").decode("latin-1").strip()
    if text.isascii() and text.isdigit() and len(text) <= 9:
        return float(text)
    try:
        when = parsedate_to_datetime(text)
    except (ValueError, TypeError):
        return None
    aware = when if when.tzinfo is not None else when.replace(tzinfo=UTC)
    return max(0.0, (aware - datetime.now(UTC)).total_seconds())


def _host(host: str, port: int, scheme: str) -> bytes:
    shown = f"[{host}]" if ":" in host else host
    return (shown if port == {"http": 80, "https": 443}[scheme] else f"{shown}:{port}").encode()


def _encoded(headers: Iterable[tuple[str, str]]) -> list[tuple[bytes, bytes]]:
    return [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers]


def _words(error: Exception, host: str) -> str:
    cause = next((one for one in (error, error.__cause__, error.__context__) if isinstance(one, OSError)), error)
    if isinstance(cause, socket.gaierror):
        return f"the name {host} cannot be resolved: {cause.strerror}"
    if isinstance(cause, ssl.SSLCertVerificationError):
        return f"the certificate of {host} is not trusted: {cause.verify_message}"
    text = str(cause) or str(error) or type(error).__name__
    return f"no answer from {host}: {text}"


@cache
def _trusted() -> ssl.SSLContext:
    return ssl.create_default_context()
