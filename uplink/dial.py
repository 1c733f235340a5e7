"""The address of the cloud, and the connections to it: RPC channels and the push channel."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlencode, urlsplit

import trio
from grpclib.exceptions import GRPCError, StreamTerminatedError

from rpc.access import API_KEY, PART_SECRET
from rpc.client import ApiKey, Channel, NotOpened, Stream, open_websocket
from rpc.network import ALPN, MACHINE_AUTHORITY, TlsError, client_context
from schema import ConfigError, ErrorKind, MachineError
from schema.document import Cloud
from support import unwrap
from uplink.contact import Contact
from uplink.http import Headers
from uplink.platforms import platform, tags

if TYPE_CHECKING:
    from trio_websocket import WebSocketConnection

PUSH: Final = "/machine/v1/follow"
SERVE: Final = "/machine/v1/serve"
HTTP1: Final = "http/1.1"  # for WebSockets and downloads
HERE: Final = Path()
NOT_TRUSTED: Final = "CERTIFICATE_VERIFY_FAILED"  # this and the following texts are those of OpenSSL
BY_TIME: Final = ("certificate is not yet valid", "certificate has expired")
NO_TLS: Final = "WRONG_VERSION_NUMBER"
DIAL_LIMIT: Final = 15.0  # seconds for connecting and logging in
CLOSE_LIMIT: Final = 0.1  # seconds for the closing handshake; the task that reads the answer may be cancelled already
_UNAUTHORIZED: Final = 401  # HTTP status
MAX_MESSAGE: Final = 16 * 1024 * 1024  # bytes; the limit for a document in a file


class CloudUnavailable(MachineError):
    """The cloud cannot be reached or rejects this machine; the text says why."""

    kind = ErrorKind.UNAVAILABLE


class TokenRefused(CloudUnavailable):
    """The cloud no longer accepts the token of a WebSocket."""


@dataclass(frozen=True, slots=True)
class CloudAddress:
    """The address of a cloud and this machine's identity and credentials there."""

    url: str  # http://host:port or https://host
    part: str
    entity: str
    type: str
    secret: str = field(repr=False)
    authorities: Path | None = None  # certificates to trust in addition to those of the system
    learned: Callable[[], str] = field(default=str, repr=False, compare=False, kw_only=True)
    """Returns the certificates (PEM) to trust instead of `authorities`; "" if there are none."""

    contact: Contact = field(default_factory=Contact, repr=False, compare=False, kw_only=True)
    opened: Channel | None = field(default=None, repr=False, compare=False, kw_only=True)
    """A channel that everything with this address shares: see `with_channel`."""

    def serve_url(self, request: str, address: str) -> str:
        """The URL of the WebSocket for calls that the cloud requests; `address` is the URL of its replica, or ""."""
        query = urlencode({"part": self.part, "request": request})
        return f"ws{(address or self.url).removeprefix('http')}{SERVE}?{query}"

    @property
    def push_url(self) -> str:
        """The URL of the push channel."""
        query = urlencode({"part": self.part, "platform": platform(), "tags": ",".join(tags())}, safe="/,:")
        return f"ws{self.url.removeprefix('http')}{PUSH}?{query}"

    def channel(self) -> AbstractAsyncContextManager[Channel]:
        """Return the context of an RPC channel, which authenticates itself. It is a new one, unless it is shared."""
        if self.opened is not None:
            return nullcontext(self.opened)
        return Channel(self.url, tls=self.tls(), credentials=self.credentials())

    def tls(self, *protocols: str) -> ssl.SSLContext | None:
        """Return a TLS context for the ALPN `protocols`, by default those of RPC; None for a cloud without TLS.

        The authorities are read at each call, so that new ones take effect without a restart. Raises TlsError.
        """
        if not self.secure:
            return None
        learned = self.learned()
        context = client_context(
            authorities=None if learned else self.authorities,
            protocols=protocols or ALPN,
            except_subject=MACHINE_AUTHORITY,
        )
        if learned:
            context.load_verify_locations(cadata=learned)
        return context

    @property
    def secure(self) -> bool:
        """Whether the cloud is reached by TLS."""
        return self.url.startswith("https://")

    def credentials(self) -> ApiKey:
        """Return the credentials for one channel."""
        return ApiKey(self.entity, self.secret, type=self.type)


def address_of(cloud: Cloud, folder: Path = HERE) -> CloudAddress:
    """Return the address in the section `cloud`; ConfigError if it is invalid. `ca_file` is relative to `folder`."""
    address = cloud.app_address
    parts = urlsplit(address if "://" in address else f"https://{address}")
    url = f"{parts.scheme}://{parts.netloc}"
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.path not in ("", "/") or parts.query:
        raise ConfigError(
            "cloud.app_address",
            "is not a valid address of a cloud",
            value=cloud.app_address,
            remedy="use an address such as https://cloud.example or http://localhost:8090",
        )
    authorities = folder / cloud.ca_file if cloud.ca_file else None
    key = cloud.api_key
    if key is not None and key.id:
        return CloudAddress(url, cloud.id, key.id, API_KEY, key.key, authorities)
    return CloudAddress(url, cloud.id, cloud.id, PART_SECRET, cloud.secret, authorities)


def with_channel(address: CloudAddress) -> tuple[CloudAddress, Channel]:
    """Return an address whose `channel` is the same one for all, so that they use one connection, and this channel.

    The caller opens the channel before it is used. Certificate authorities are those of now. Raises TlsError.
    """
    channel = Channel(address.url, tls=address.tls(), credentials=address.credentials())
    return replace(address, opened=channel), channel


@asynccontextmanager
async def shared_channel(address: CloudAddress) -> AsyncIterator[CloudAddress]:
    """Yield an address `with_channel`, which is open in the context; `address` itself if it has a channel."""
    if address.opened is not None:
        yield address
        return
    shared, channel = with_channel(address)
    async with channel:
        yield shared


@asynccontextmanager
async def connected(
    address: CloudAddress, url: str = "", *, sign_in: Callable[[], Awaitable[Headers]] | None = None
) -> AsyncIterator[WebSocketConnection]:
    """Open a WebSocket, by default the push channel, while the context is open; CloudUnavailable if that fails.

    `sign_in` returns the headers that authenticate, by default those of `token_headers`.
    """
    url = url or address.push_url
    try:
        async with trio.open_nursery() as nursery:
            headers, stream = await _open_stream(address, url, sign_in or partial(token_headers, address))
            try:
                socket = await _handshake(address, url, headers, stream, nursery)
                try:
                    yield socket
                finally:
                    with trio.move_on_after(CLOSE_LIMIT, shield=True):
                        await socket.aclose()
            finally:
                with trio.CancelScope(shield=True):  # the library leaves it open if the peer did not close it
                    await trio.aclose_forcefully(stream)
                nursery.cancel_scope.cancel()
    except BaseExceptionGroup as group:
        raise unwrap(group) from None


async def _open_stream(
    address: CloudAddress, url: str, sign_in: Callable[[], Awaitable[Headers]]
) -> tuple[Headers, Stream]:
    """Authenticate and connect; return the headers for requests and a stream on which nothing was sent yet."""
    try:
        with trio.fail_after(DIAL_LIMIT):
            headers = await sign_in()
            parts, tls = urlsplit(url), address.tls(HTTP1)
            host = parts.hostname or ""
            stream = await trio.open_tcp_stream(host, parts.port or (443 if tls else 80))
        return headers, trio.SSLStream(stream, tls, server_hostname=host, https_compatible=True) if tls else stream
    except trio.TooSlowError:
        raise _timed_out() from None
    except (GRPCError, StreamTerminatedError, OSError) as error:
        raise _unavailable(address, getattr(error, "message", "") or str(error) or repr(error)) from None
    except TlsError as error:
        raise CloudUnavailable(error.message, remedy=error.remedy) from None


async def _handshake(
    address: CloudAddress, url: str, headers: Headers, stream: Stream, nursery: trio.Nursery
) -> WebSocketConnection:
    """Perform the TLS and WebSocket handshakes on a stream."""
    parts = urlsplit(url)
    try:
        with trio.fail_after(DIAL_LIMIT):
            if isinstance(stream, trio.SSLStream):
                await stream.do_handshake()
            target = f"{parts.path}?{parts.query}"
            return await open_websocket(nursery, stream, parts.netloc, target, headers=headers, max_message=MAX_MESSAGE)
    except trio.TooSlowError:
        raise _timed_out() from None
    except NotOpened as error:
        raise (TokenRefused if error.status == _UNAUTHORIZED else CloudUnavailable)(str(error)) from None
    except (OSError, trio.BrokenResourceError) as error:
        raise _unavailable(address, str(error.__cause__ or error) or repr(error)) from None


def _timed_out() -> CloudUnavailable:
    return CloudUnavailable(f"no answer within {DIAL_LIMIT:g} s")


def _unavailable(address: CloudAddress, reason: str) -> CloudUnavailable:
    """Return the error for a failed connection, with a remedy for problems of TLS."""
    remedy = ""
    if any(text in reason for text in BY_TIME):
        remedy = f"set this computer's clock, which says {datetime.now(UTC):%Y-%m-%d}, or renew the certificate"
    elif NOT_TRUSTED in reason:
        ca_file = (
            f"replace {address.authorities}" if address.authorities is not None else "add it as `ca_file` next to `id`"
        )
        remedy = (
            f"get its authority with `machine-cloud ca` and {ca_file} in the credentials, or set SSL_CERT_FILE; "
            "and address the cloud by a name that its certificate contains"
        )
    elif NO_TLS in reason:
        remedy = "it does not use TLS: use http:// in app_address, or start machine-cloud with --tls"
    return CloudUnavailable(reason, remedy=remedy)


async def token_headers(address: CloudAddress) -> list[tuple[str, str]]:
    """Log in at `address` over a new connection and return the headers that authenticate HTTP requests there.

    Raises GRPCError if the cloud refuses the credentials; OSError, StreamTerminatedError or TlsError if it cannot be
    reached. Sets no time limit: callers use a cancel scope.
    """
    async with Channel(address.url, tls=address.tls()) as channel:
        return list(await address.credentials().headers(channel))
