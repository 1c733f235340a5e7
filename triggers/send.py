"""Webhooks, sent: each address is checked after it was resolved, and the very address that was checked is called.

Two things do not get into `Outcome.error`, which tenants read. Addresses that a name resolves to: a name that resolves
to a private address and a name that does not exist end alike, so that nobody asks the cloud's resolver what is inside
its network. And the path and query of the URL, which receivers repeat in their answers: they are often a secret.
"""

from __future__ import annotations

import ipaddress
import socket
import ssl
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cache
from typing import Final
from urllib.parse import parse_qsl, unquote, urlsplit

import h11
import trio

from schema.secrets import Masker
from triggers.retry import Outcome, of_status
from triggers.ssrf import NOTHING, Allow, Refused, Target, check_address, parse_url
from triggers.webhook import Request

MAX_ANSWER: Final = 64 * 1024  # bytes of an answer that are read; what follows is not wanted
_SAID: Final = 200  # characters of an answer that a failure is explained with
_ONE_ADDRESS: Final = 10.0  # seconds until the next of several addresses is tried
_PIECE: Final = 16 * 1024


class _Nowhere(OSError):
    """A name that has no address, or one that may not be called. The text is for the administrator."""


async def deliver(request: Request, allow: Allow = NOTHING, tls: ssl.SSLContext | None = None) -> Outcome:
    """Send a request once, and say how it ended; never raises but when it is cancelled.

    Redirects are not followed. The caller limits the time; a request that is cancelled may have arrived.
    """
    outcome = await _deliver(request, allow, tls)
    return replace(outcome, error=Masker(_secrets_of(request)).text(outcome.error)) if outcome.error else outcome


def _secrets_of(request: Request) -> list[str]:
    """What of a request a receiver may repeat in its answer, and nobody is to read there."""
    parts = urlsplit(request.url)
    whole = parts.path + (f"?{parts.query}" if parts.query else "")
    segments = [*parts.path.split("/"), *(value for _, value in parse_qsl(parts.query))]
    headers = [value.removeprefix("Basic ") for name, value in request.headers if name == "Authorization"]
    return [whole, parts.query, *segments, *map(unquote, segments), *headers]


async def _deliver(request: Request, allow: Allow, tls: ssl.SSLContext | None) -> Outcome:
    try:
        target = parse_url(request.url)
    except Refused as refused:
        return Outcome(error=str(refused), final=True)
    try:
        sent = _written(request, target)
        stream = await _connect(target, allow)
    except Refused as refused:
        return Outcome(error=str(refused), final=True)
    except h11.LocalProtocolError as error:
        return Outcome(error=f"the request cannot be sent: {error}", final=True)
    except _Nowhere as error:
        text = (
            f"the name {target.host} has no address that this cloud calls: correct it, or ask the administrator of the "
            "cloud to allow it"
        )
        return Outcome(error=text, internal=str(error))
    except OSError as error:
        return Outcome(error=_words(error, target.host))
    try:
        secured: trio.abc.Stream = stream
        if target.scheme == "https":
            secured = trio.SSLStream(stream, tls or _trusted(), server_hostname=target.host, https_compatible=True)
            await secured.do_handshake()
        with suppress(trio.BrokenResourceError):  # whoever answers without having read all is heard
            await secured.send_all(sent)
        return await _answer(secured)
    except (h11.RemoteProtocolError, trio.BrokenResourceError, ssl.SSLError, OSError) as error:
        return Outcome(error=_words(error, target.host))
    finally:
        await trio.aclose_forcefully(stream)


def _written(request: Request, target: Target) -> bytes:
    """Head and body as they go over the wire; LocalProtocolError."""
    length = [("Content-Length", str(len(request.body)))] if request.body or request.method != "GET" else []
    headers = [("Host", _host(target)), ("Connection", "close"), *length, *request.headers]
    connection = h11.Connection(h11.CLIENT)
    head = connection.send(h11.Request(method=request.method, target=target.path, headers=headers))
    return (head or b"") + request.body


async def _connect(target: Target, allow: Allow) -> trio.SocketStream:
    """A connection to the first address that answers, if all of them may be called; Refused for an address that was
    written in the URL, OSError."""
    try:
        addresses = await _resolve(target.host, target.port)
        for address in addresses:
            check_address(address, target.host, allow)
    except socket.gaierror as error:
        raise _Nowhere(f"the name {target.host} cannot be resolved: {error.strerror}") from None
    except Refused as refused:
        if target.address is not None:
            raise
        raise _Nowhere(str(refused)) from None
    last: OSError = OSError("it has no address")
    for number, address in enumerate(addresses, 1):
        limit = _ONE_ADDRESS if number < len(addresses) else float("inf")
        with trio.move_on_after(limit):
            try:
                return await trio.open_tcp_stream(address, target.port)
            except OSError as error:
                last = error
    raise last


async def _answer(stream: trio.abc.Stream) -> Outcome:
    """What the receiver answers; of its text no more than is wanted."""
    connection = h11.Connection(h11.CLIENT, max_incomplete_event_size=MAX_ANSWER)
    connection.send(h11.Request(method="GET", target="/", headers=[("Host", "x")]))
    connection.send(h11.EndOfMessage())
    response: h11.Response | None = None
    said, taken = b"", 0
    try:
        while True:
            event = connection.next_event()
            if event is h11.NEED_DATA:
                if taken > MAX_ANSWER:
                    break
                piece = await stream.receive_some(_PIECE)
                taken += len(piece)
                connection.receive_data(bytes(piece))
            elif isinstance(event, h11.Response):
                response = event
            elif isinstance(event, h11.Data):
                said += event.data
            elif not isinstance(event, h11.InformationalResponse):
                break
    except (h11.RemoteProtocolError, trio.BrokenResourceError):
        if response is None:  # else its status says it, whatever became of the rest
            raise
    if response is None:
        raise h11.RemoteProtocolError("it hung up" if taken <= MAX_ANSWER else "it says too much")
    return of_status(response.status_code, _retry_after(response.headers), _excerpt(said))


def _excerpt(said: bytes) -> str:
    text = " ".join(said[: 4 * _SAID].decode(errors="replace").split())
    return "".join(one if one.isprintable() else " " for one in text)[:_SAID]


async def _resolve(name: str, port: int) -> list[str]:
    """Every address of a name, each once, in the order of the system; an address is its own."""
    try:
        return [str(ipaddress.ip_address(name))]
    except ValueError:
        found = await trio.socket.getaddrinfo(name, port, type=socket.SOCK_STREAM)
        return list(dict.fromkeys(str(address[0]) for *_, address in found))


def _retry_after(headers: Iterable[tuple[bytes, bytes]]) -> float | None:
    """Seconds of Retry-After (RFC 9110, 10.2.3): a number of them, or a date."""
    text = next((value for name, value in headers if name.lower() == b"retry-after"), b"").decode("latin-1").strip()
    if text.isascii() and text.isdigit() and len(text) <= 9:
        return float(text)
    try:
        when = parsedate_to_datetime(text)
    except (ValueError, TypeError, OverflowError):
        return None
    aware = when if when.tzinfo is not None else when.replace(tzinfo=UTC)
    return max(0.0, (aware - datetime.now(UTC)).total_seconds())


def _host(target: Target) -> str:
    shown = f"[{target.host}]" if ":" in target.host else target.host
    return shown if target.port == {"http": 80, "https": 443}[target.scheme] else f"{shown}:{target.port}"


def _words(error: Exception, host: str) -> str:
    cause = error.__cause__ if isinstance(error.__cause__, OSError) else error  # Trio's own errors wrap the system's
    if isinstance(cause, ssl.SSLCertVerificationError):
        return f"the certificate of {host} is not trusted: {cause.verify_message}"
    text = str(cause) or str(error) or type(error).__name__
    return f"no answer from {host}: {text}"


@cache
def _trusted() -> ssl.SSLContext:
    return ssl.create_default_context()
