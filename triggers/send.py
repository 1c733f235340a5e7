"""Delivery of webhooks. Every resolved address is checked, and only checked addresses are connected to.

`Outcome.error`, which tenants can read, never contains two things. The first is resolved addresses: a name with a
private address and a name that does not exist give the same error, so that tenants cannot use the cloud's resolver to
explore its network. The second is path and query of the URL, which are often secret and which receivers repeat in their
responses.
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

from schema import Masker
from triggers.retry import AttemptOutcome, of_status
from triggers.ssrf import NOTHING, Allow, WebhookRefused, WebhookTarget, check_address, parse_url
from triggers.webhook import WebhookRequest

MAX_ANSWER: Final = 64 * 1024  # bytes of a response that are read; the rest is ignored
_EXCERPT: Final = 200  # characters of a response that are included in an error
_ONE_ADDRESS: Final = 10.0  # seconds before the next of several addresses is tried
_PIECE: Final = 16 * 1024


class _NoAddress(OSError):
    """Name without an address, or with a refused address. The text is for the administrator only."""


async def deliver(request: WebhookRequest, allow: Allow = NOTHING, tls: ssl.SSLContext | None = None) -> AttemptOutcome:
    """Send a request once and return the outcome. Raises only Cancelled.

    Redirects are not followed. The caller limits the time. A cancelled request may have arrived.
    """
    outcome = await _deliver(request, allow, tls)
    return replace(outcome, error=Masker(_secrets_of(request)).text(outcome.error)) if outcome.error else outcome


def _secrets_of(request: WebhookRequest) -> list[str]:
    """Return the secret parts of a request, which a receiver may repeat in its response."""
    parts = urlsplit(request.url)
    whole = parts.path + (f"?{parts.query}" if parts.query else "")
    segments = [*parts.path.split("/"), *(value for _, value in parse_qsl(parts.query))]
    headers = [value.removeprefix("Basic ") for name, value in request.headers if name == "Authorization"]
    return [whole, parts.query, *segments, *map(unquote, segments), *headers]


async def _deliver(request: WebhookRequest, allow: Allow, tls: ssl.SSLContext | None) -> AttemptOutcome:
    try:
        target = parse_url(request.url)
    except WebhookRefused as refused:
        return AttemptOutcome(error=str(refused), final=True)
    try:
        sent = _written(request, target)
        stream = await _connect(target, allow)
    except WebhookRefused as refused:
        return AttemptOutcome(error=str(refused), final=True)
    except h11.LocalProtocolError as error:
        return AttemptOutcome(error=f"the request cannot be sent: {error}", final=True)
    except _NoAddress as error:
        text = (
            f"the name {target.host} has no address that this cloud may call: correct it, or ask the administrator of "
            "the cloud to allow it"
        )
        return AttemptOutcome(error=text, internal=str(error))
    except OSError as error:
        return AttemptOutcome(error=_describe(error, target.host))
    try:
        secured: trio.abc.Stream = stream
        if target.scheme == "https":
            secured = trio.SSLStream(stream, tls or _trusted(), server_hostname=target.host, https_compatible=True)
            await secured.do_handshake()
        with suppress(trio.BrokenResourceError):  # the receiver may respond before it has read the whole request
            await secured.send_all(sent)
        return await _answer(secured)
    except (h11.RemoteProtocolError, trio.BrokenResourceError, ssl.SSLError, OSError) as error:
        return AttemptOutcome(error=_describe(error, target.host))
    finally:
        await trio.aclose_forcefully(stream)


def _written(request: WebhookRequest, target: WebhookTarget) -> bytes:
    """Return the encoded head and body; LocalProtocolError if they cannot be encoded."""
    length = [("Content-Length", str(len(request.body)))] if request.body or request.method != "GET" else []
    headers = [("Host", _host(target)), ("Connection", "close"), *length, *request.headers]
    connection = h11.Connection(h11.CLIENT)
    head = connection.send(h11.Request(method=request.method, target=target.path, headers=headers))
    return (head or b"") + request.body


async def _connect(target: WebhookTarget, allow: Allow) -> trio.SocketStream:
    """Connect to the first address that accepts, if all addresses of the target are allowed.

    Raises Refused for an address in the URL itself, _NoAddress for a name without an allowed address, or OSError.
    """
    try:
        addresses = await _resolve(target.host, target.port)
        for address in addresses:
            check_address(address, target.host, allow)
    except socket.gaierror as error:
        raise _NoAddress(f"the name {target.host} cannot be resolved: {error.strerror}") from None
    except WebhookRefused as refused:
        if target.address is not None:
            raise
        raise _NoAddress(str(refused)) from None
    last: OSError = OSError("the name has no address")
    for number, address in enumerate(addresses, 1):
        limit = _ONE_ADDRESS if number < len(addresses) else float("inf")
        with trio.move_on_after(limit):
            try:
                return await trio.open_tcp_stream(address, target.port)
            except OSError as error:
                last = error
    raise last


async def _answer(stream: trio.abc.Stream) -> AttemptOutcome:
    """Read the response, up to `MAX_ANSWER` bytes, and return the outcome."""
    connection = h11.Connection(h11.CLIENT, max_incomplete_event_size=MAX_ANSWER)
    connection.send(h11.Request(method="GET", target="/", headers=[("Host", "x")]))
    connection.send(h11.EndOfMessage())
    response: h11.Response | None = None
    content, received = b"", 0
    try:
        while True:
            event = connection.next_event()
            if event is h11.NEED_DATA:
                if received > MAX_ANSWER:
                    break
                piece = await stream.receive_some(_PIECE)
                received += len(piece)
                connection.receive_data(bytes(piece))
            elif isinstance(event, h11.Response):
                response = event
            elif isinstance(event, h11.Data):
                content += event.data
            elif not isinstance(event, h11.InformationalResponse):
                break
    except (h11.RemoteProtocolError, trio.BrokenResourceError):
        if response is None:  # otherwise the status decides, even if the rest is missing
            raise
    if response is None:
        raise h11.RemoteProtocolError(
            "the connection was closed" if received <= MAX_ANSWER else "the response is too long"
        )
    return of_status(response.status_code, _retry_after(response.headers), _excerpt(content))


def _excerpt(content: bytes) -> str:
    text = " ".join(content[: 4 * _EXCERPT].decode(errors="replace").split())
    return "".join(character if character.isprintable() else " " for character in text)[:_EXCERPT]


async def _resolve(name: str, port: int) -> list[str]:
    """Return the distinct addresses of a name in the order of the resolver; an address resolves to itself."""
    try:
        return [str(ipaddress.ip_address(name))]
    except ValueError:
        results = await trio.socket.getaddrinfo(name, port, type=socket.SOCK_STREAM)
        return list(dict.fromkeys(str(address[0]) for *_, address in results))


def _retry_after(headers: Iterable[tuple[bytes, bytes]]) -> float | None:
    """Return the seconds of a Retry-After field (RFC 9110, 10.2.3), a number or a date; None if absent or invalid."""
    text = next((value for name, value in headers if name.lower() == b"retry-after"), b"").decode("latin-1").strip()
    if text.isascii() and text.isdigit() and len(text) <= 9:
        return float(text)
    try:
        when = parsedate_to_datetime(text)
    except (ValueError, TypeError, OverflowError):
        return None
    aware = when if when.tzinfo is not None else when.replace(tzinfo=UTC)
    return max(0.0, (aware - datetime.now(UTC)).total_seconds())


def _host(target: WebhookTarget) -> str:
    shown = f"[{target.host}]" if ":" in target.host else target.host
    return shown if target.port == {"http": 80, "https": 443}[target.scheme] else f"{shown}:{target.port}"


def _describe(error: Exception, host: str) -> str:
    cause = error.__cause__ if isinstance(error.__cause__, OSError) else error  # Trio's errors wrap those of the system
    if isinstance(cause, ssl.SSLCertVerificationError):
        return f"the certificate of {host} is not trusted: {cause.verify_message}"
    text = str(cause) or str(error) or type(error).__name__
    return f"no answer from {host}: {text}"


@cache
def _trusted() -> ssl.SSLContext:
    return ssl.create_default_context()
