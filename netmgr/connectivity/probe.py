"""Ask the cloud for a proof that it answers: rpc.access.proof, over HTTP/1.1, through one interface or any.

The certificate of the cloud is not verified: the signature of the answer proves who has answered, also on a device
whose clock is wrong. Nothing secret is sent.
"""

from __future__ import annotations

import secrets
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import Final
from urllib.parse import urlsplit

import h11
import trio

from rpc.access import proof

CONNECT_LIMIT: Final = 5.0  # seconds for one address of the cloud before the next is tried
NAME_LIMIT: Final = 8.0
"""Seconds for the name of the cloud: the C library asks a silent name server twice, for 5 seconds each."""
MAX_ADDRESSES: Final = 6
MAX_HEAD: Final = 16 * 1024  # bytes
READ: Final = 4096


class ConnectivityVerdict(StrEnum):
    """Who has answered."""

    CLOUD = "cloud"
    OTHER = "other"  # something else has answered in place of the cloud: a page of the network, or a proxy
    NO_NAME = "no-name"  # the name of the cloud cannot be resolved
    NO_ANSWER = "no-answer"


@dataclass(frozen=True, slots=True)
class ConnectivityProof:
    """Result of a probe. `time` is the clock of the cloud in seconds since 1970, if the cloud has answered."""

    verdict: ConnectivityVerdict
    detail: str = ""
    time: int | None = None


async def prove(url: str, part: str, key: str, *, interface: str = "") -> ConnectivityProof:
    """Ask the cloud at `url` for a proof with the key of the part; return the verdict, whatever has happened.

    `interface` limits the question to one interface; empty leaves it to the routes. Set a time limit around the call: a
    network that answers nothing takes CONNECT_LIMIT for each address of the cloud, one that answers slowly any time.
    """
    parts = urlsplit(url)
    host, secure = parts.hostname or "", parts.scheme == "https"
    nonce = secrets.token_hex(16)
    target = f"{proof.PATH.format(part=part)}?{proof.NONCE}={nonce}"
    try:
        with trio.fail_after(NAME_LIMIT):
            addresses = await trio.socket.getaddrinfo(
                host, parts.port or (443 if secure else 80), type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP
            )
    except trio.TooSlowError:
        return ConnectivityProof(ConnectivityVerdict.NO_NAME, f"{host}: no name server answers within {NAME_LIMIT:g} s")
    except (OSError, UnicodeError) as error:
        return ConnectivityProof(ConnectivityVerdict.NO_NAME, f"{host}: {getattr(error, 'strerror', '') or error}")
    failure = ConnectivityProof(ConnectivityVerdict.NO_ANSWER, f"{host} has no address")
    for family, _, _, _, address in addresses[:MAX_ADDRESSES]:
        try:
            async with _connected(family, address, interface, host if secure else "") as stream:
                data = await _get(stream, parts.netloc, target)
        except (ssl.SSLError, h11.RemoteProtocolError) as error:
            failure = ConnectivityProof(
                ConnectivityVerdict.OTHER, f"{address[0]} does not speak {parts.scheme}: {error}"
            )
            continue
        except (OSError, trio.BrokenResourceError, trio.TooSlowError) as error:
            failure = ConnectivityProof(ConnectivityVerdict.NO_ANSWER, f"{address[0]}: {_reason(error)}")
            continue
        now = proof.verified(key, nonce, data)
        if now is not None:
            return ConnectivityProof(ConnectivityVerdict.CLOUD, time=now)
        failure = ConnectivityProof(
            ConnectivityVerdict.OTHER, f"{address[0]} has answered without the signature of the cloud"
        )
    return failure


@asynccontextmanager
async def _connected(
    family: int, address: tuple[object, ...], interface: str, name: str
) -> AsyncIterator[trio.abc.Stream]:
    """Connect to an address while the context is open, with TLS if there is a `name` to ask for."""
    connection = trio.socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    with connection:
        if interface:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, interface.encode())
        stream: trio.abc.Stream = trio.SocketStream(connection)
        with trio.fail_after(CONNECT_LIMIT):
            await connection.connect(address)
        if name:
            context = ssl.create_default_context()
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            stream = trio.SSLStream(stream, context, server_hostname=name, https_compatible=True)
        try:
            yield stream
        except trio.BrokenResourceError as error:
            if isinstance(error.__cause__, ssl.SSLError):
                raise error.__cause__ from None
            raise


async def _get(stream: trio.abc.Stream, host: str, target: str) -> bytes:
    """Send a request and return the first bytes of the body, of a response with any status."""
    connection = h11.Connection(h11.CLIENT, max_incomplete_event_size=MAX_HEAD)
    head = h11.Request(method="GET", target=target, headers=[("host", host), ("connection", "close")])
    await stream.send_all((connection.send(head) or b"") + (connection.send(h11.EndOfMessage()) or b""))
    body = bytearray()
    while len(body) <= proof.MAX_ANSWER:
        event = connection.next_event()
        if event is h11.NEED_DATA:
            connection.receive_data(bytes(await stream.receive_some(READ)))
        elif isinstance(event, h11.Data):
            body += event.data
        elif isinstance(event, h11.EndOfMessage | h11.ConnectionClosed):
            break
    return bytes(body[: proof.MAX_ANSWER])


def _reason(error: Exception) -> str:
    if isinstance(error, trio.TooSlowError):
        return f"no answer within {CONNECT_LIMIT:g} s"
    return str(getattr(error, "strerror", "") or error.__cause__ or error or type(error).__name__)
