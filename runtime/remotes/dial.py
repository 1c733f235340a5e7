"""Where a remote is, how it is spoken to and who this machine is to it.

The address says so: `https://` is TLS, `http://` and `unix:` are plain text. A bare `host:port` is TLS if the remote
speaks it. A key goes out in plain text only to this very computer or where `insecure` allows it.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias
from urllib.parse import urlsplit

import trio

from rpc.auth import API_KEY, LOCATION_SECRET, TYPES
from rpc.carrier import Peer
from rpc.client import Target
from rpc.credentials import ApiKey
from schema.errors import ConfigError
from schema.network import DEFAULT_BIND_ADDRESS
from schema.remotes import Remote

DEFAULT_PORT: Final = int(DEFAULT_BIND_ADDRESS.rpartition(":")[2])

Mode = Literal["plain", "tls", "either"]


@dataclass(frozen=True, slots=True)
class Way:
    """How to reach a remote; `secret` if a key will be shown to it."""

    target: Target
    mode: Mode
    secret: bool

    @property
    def address(self) -> str:
        """For people, and for Channel."""
        return f"unix:{self.target.path}" if self.target.path else self.target.authority


def way_to(remote: Remote, path: str) -> Way:
    """What `remote`, which stands at `path` of the document, says; raises ConfigError."""
    text = remote.address
    try:
        if "://" not in text and not text.startswith("unix:") and urlsplit(f"//{text}").port is None:
            text = f"{text}:{DEFAULT_PORT}"
        target = Target.parse(text)
    except ValueError as error:
        raise ConfigError(
            f"{path}.address",
            f"{remote.address!r} is no address",
            value=remote.address,
            remedy="write host, host:port, https://host or unix:/path",
        ) from error
    if target.tls and remote.insecure:
        raise ConfigError(
            f"{path}.insecure",
            f"contradicts the address {remote.address}",
            value=True,
            remedy="remove it, or write the address with http://",
        )
    plain = remote.insecure or target.path or text.startswith("http://")
    mode: Mode = "tls" if target.tls else "plain" if plain else "either"
    return Way(target, mode, secret=credentials_of(remote, path) is not None)


def credentials_of(remote: Remote, path: str) -> ApiKey | None:
    """What this machine shows the remote; None if nothing is configured. Raises ConfigError."""
    given = remote.auth.credentials if remote.auth is not None else None
    entity = remote.auth.entity if remote.auth is not None else ""
    if given is None or not given.payload:
        return ApiKey(entity or _host(remote), remote.secret, type=LOCATION_SECRET) if remote.secret else None
    kind = given.type or API_KEY
    if kind not in TYPES:
        raise ConfigError(
            f"{path}.auth.credentials.type", f"{kind!r} is unknown", value=kind, remedy=f"use {' or '.join(TYPES)}"
        )
    if kind == API_KEY and not entity:
        raise ConfigError(f"{path}.auth.entity", "is missing", remedy="write the id of the API key")
    return ApiKey(entity or _host(remote), given.payload, type=kind)


def _host(remote: Remote) -> str:
    return urlsplit(remote.address if "://" in remote.address else f"//{remote.address}").hostname or remote.address


Dial: TypeAlias = Callable[[Way], Awaitable[trio.abc.Stream]]
"""Makes a stream that is ready for HTTP/2; OSError says why there is none."""


async def dial(way: Way, *, trusted: Callable[[], str] = str) -> trio.abc.Stream:
    """As Dial, over the network. `trusted` gives roots (PEM) that count besides those of the system."""
    if way.mode == "plain":
        return await _open(way.target)
    try:
        return await _secured(way.target, trusted())
    except _NoTls as error:
        if way.mode == "tls":
            raise OSError(f"no TLS connection came about ({error})") from error
    stream = await _open(way.target)
    if way.secret and not Peer.of(stream).local:
        await trio.aclose_forcefully(stream)
        raise OSError(
            "it does not speak TLS, and a key is not sent in plain text: give it a certificate (network.tls_cert_"
            "file), or set insecure to true for this remote if nobody else can read this network"
        )
    return stream


async def _open(target: Target) -> trio.SocketStream:
    if target.path:
        return await trio.open_unix_socket(target.path)
    try:
        return await trio.open_tcp_stream(target.host, target.port)
    except OSError as error:
        raise OSError(_why(error)) from error


def _why(error: BaseException) -> str:
    """What the system says; Trio's own words only count the addresses that it has tried."""
    cause: BaseException = error.__cause__ or error
    while isinstance(cause, BaseExceptionGroup):
        cause = cause.exceptions[0]
    if isinstance(cause, OSError) and (cause.errno or 0) > 0:  # those of name resolution are negative
        return os.strerror(cause.errno or 0)
    return (cause.strerror if isinstance(cause, OSError) else "") or str(cause)


async def _secured(target: Target, trusted: str) -> trio.abc.Stream:
    from rpc.tls import client_context

    context = client_context()
    if trusted:
        context.load_verify_locations(cadata=trusted)
    stream = await _open(target)
    secure = trio.SSLStream(stream, context, server_hostname=target.host, https_compatible=True)
    try:
        await secure.do_handshake()
    except trio.BrokenResourceError as error:
        await trio.aclose_forcefully(stream)
        cause = error.__cause__ or error
        if isinstance(cause, ssl.SSLCertVerificationError):
            raise OSError(
                f"its certificate is not trusted ({cause.verify_message}): name its authority's file in the "
                "environment variable SSL_CERT_FILE, and the machine by a name that the certificate has"
            ) from error
        raise _NoTls(str(cause)) from error
    except BaseException:
        await trio.aclose_forcefully(stream)
        raise
    return secure


class _NoTls(Exception):
    """The other side does not answer as TLS does."""
