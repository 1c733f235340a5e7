"""Addresses, encryption and credentials of remotes.

`https://` means TLS, `http://` and `unix:` mean plain text. A bare `host:port` means TLS if the remote supports it.
Keys are sent in plain text only to this computer, or if `insecure` is set.
"""

from __future__ import annotations

import os
import re
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias
from urllib.parse import urlsplit

import trio

from rpc import Peer
from rpc.access import API_KEY, CREDENTIAL_TYPES, LOCATION_SECRET
from rpc.client import ApiKey, DialTarget
from schema import ConfigError
from schema.document import DEFAULT_BIND_ADDRESS, Remote

DEFAULT_PORT: Final = int(DEFAULT_BIND_ADDRESS.rpartition(":")[2])

_LABEL: Final = re.compile(r"(?:[a-z0-9-]+-)?([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})")
"""Host name of a part: its name, and the id that identifies it, see cloud.domain.machines.hosts."""

Mode = Literal["plain", "tls", "either"]


@dataclass(frozen=True, slots=True)
class Route:
    """How to reach a remote. `secret` means that a key will be sent to it."""

    target: DialTarget
    mode: Mode
    secret: bool
    part: str = ""  # the part of the cloud that is called, if `target` is the cloud

    @property
    def address(self) -> str:
        """The address for messages and for Channel."""
        return f"unix:{self.target.path}" if self.target.path else self.target.authority


def part_of(remote: Remote, domain: str) -> str:
    """Return the part of the cloud that the address of a remote names; "" for other addresses.

    It is a host name in `domain`, or its first label, which is enough without a domain.
    """
    label, _, rest = _host(remote).rstrip(".").lower().partition(".")
    match = _LABEL.fullmatch(label)
    return match[1] if match is not None and rest in ("", domain) else ""


def route_to(remote: Remote, path: str, *, port: int = DEFAULT_PORT) -> Route:
    """Return the route to `remote`, whose entry is at `path` of the document; `port` is the default. ConfigError."""
    text = remote.address
    try:
        if "://" not in text and not text.startswith("unix:") and urlsplit(f"//{text}").port is None:
            text = f"{text}:{port}"
        target = DialTarget.parse(text)
    except ValueError as error:
        raise ConfigError(
            f"{path}.address",
            f"{remote.address!r} is not a valid address",
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
    return Route(target, mode, secret=credentials_of(remote, path) is not None)


def credentials_of(remote: Remote, path: str) -> ApiKey | None:
    """Return the configured credentials for the remote, or None. Raises ConfigError."""
    credentials = remote.auth.credentials if remote.auth is not None else None
    entity = remote.auth.entity if remote.auth is not None else ""
    if credentials is None or not credentials.payload:
        return ApiKey(entity or _host(remote), remote.secret, type=LOCATION_SECRET) if remote.secret else None
    kind = credentials.type or API_KEY
    if kind not in CREDENTIAL_TYPES:
        raise ConfigError(
            f"{path}.auth.credentials.type",
            f"{kind!r} is not supported",
            value=kind,
            remedy=f"use {' or '.join(CREDENTIAL_TYPES)}",
        )
    if kind == API_KEY and not entity:
        raise ConfigError(f"{path}.auth.entity", "is missing", remedy="write the id of the API key")
    return ApiKey(entity or _host(remote), credentials.payload, type=kind)


def _host(remote: Remote) -> str:
    return urlsplit(remote.address if "://" in remote.address else f"//{remote.address}").hostname or remote.address


Dial: TypeAlias = Callable[[Route], Awaitable[trio.abc.Stream]]
"""Returns a stream that is ready for HTTP/2. Raises OSError with the reason."""


async def dial(
    route: Route, *, trusted: Callable[[], str] = str, context: Callable[[], ssl.SSLContext | None] = lambda: None
) -> trio.abc.Stream:
    """Connect to a remote over the network. See Dial.

    `trusted` returns root certificates (PEM) that are trusted in addition to those of the system. `context` returns a
    TLS context to use instead, or None.
    """
    if route.mode == "plain":
        return await _open(route.target)
    try:
        return await _secured(route.target, context() or _context(trusted()))
    except _NoTls as error:
        if route.mode == "tls":
            raise OSError(f"the TLS connection failed ({error})") from error
    stream = await _open(route.target)
    if route.secret and not Peer.of(stream).local:
        await trio.aclose_forcefully(stream)
        raise OSError(
            "it does not support TLS, and keys are not sent in plain text: configure a certificate there "
            "(network.tls_cert_file), or set insecure to true for this remote if others cannot read this network"
        )
    return stream


async def _open(target: DialTarget) -> trio.SocketStream:
    if target.path:
        return await trio.open_unix_socket(target.path)
    try:
        return await trio.open_tcp_stream(target.host, target.port)
    except OSError as error:
        raise OSError(why(error)) from error


def why(error: BaseException) -> str:
    """Return the system's error text; Trio's message only counts the addresses that it has tried."""
    cause: BaseException = error.__cause__ or error
    while isinstance(cause, BaseExceptionGroup):
        cause = cause.exceptions[0]
    if isinstance(cause, OSError) and (cause.errno or 0) > 0:  # those of name resolution are negative
        return os.strerror(cause.errno or 0)
    return (cause.strerror if isinstance(cause, OSError) else "") or str(cause)


def _context(trusted: str) -> ssl.SSLContext:
    from rpc.network import client_context

    context = client_context()
    if trusted:
        context.load_verify_locations(cadata=trusted)
    return context


async def _secured(target: DialTarget, context: ssl.SSLContext) -> trio.abc.Stream:
    stream = await _open(target)
    secure = trio.SSLStream(stream, context, server_hostname=target.host, https_compatible=True)
    try:
        await secure.do_handshake()
    except trio.BrokenResourceError as error:
        await trio.aclose_forcefully(stream)
        cause = error.__cause__ or error
        if isinstance(cause, ssl.SSLCertVerificationError):
            raise OSError(
                f"its certificate is not trusted ({cause.verify_message}): set the environment "
                "variable SSL_CERT_FILE to its authority's file, and use a name that is in the certificate"
            ) from error
        raise _NoTls(str(cause)) from error
    except BaseException:
        await trio.aclose_forcefully(stream)
        raise
    return secure


class _NoTls(Exception):
    """The peer does not answer with TLS."""
