"""Where the cloud is and how it is reached: RPC and the push channel, with one token."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias
from urllib.parse import urlencode, urlsplit

import trio
from grpclib.exceptions import GRPCError, StreamTerminatedError

from rpc.auth import API_KEY, PART_SECRET
from rpc.client import Channel
from rpc.credentials import ApiKey
from rpc.tls import ALPN, TlsError, client_context
from rpc.websocket_client import NotOpened, Stream, open_websocket
from schema.cloud import Cloud
from schema.errors import ConfigError, ErrorKind, MachineError
from support.gather import unwrap
from uplink.contact import Contact
from uplink.platform import platform, tags

if TYPE_CHECKING:
    from trio_websocket import WebSocketConnection

PUSH: Final = "/machine/v1/follow"
HTTP1: Final = "http/1.1"  # for WebSockets and downloads
HERE: Final = Path()
Headers: TypeAlias = Sequence[tuple[str, str]]
NOT_TRUSTED: Final = "CERTIFICATE_VERIFY_FAILED"  # words of OpenSSL
BY_TIME: Final = ("certificate is not yet valid", "certificate has expired")
NO_TLS: Final = "WRONG_VERSION_NUMBER"
DIAL_LIMIT: Final = 15.0  # seconds for connecting and signing in
CLOSE_LIMIT: Final = 0.1  # seconds for saying goodbye; whoever reads the answer may have been cancelled already
MAX_MESSAGE: Final = 16 * 1024 * 1024  # bytes; as large as a document in a file may be


class Refused(MachineError):
    """The cloud cannot be reached, or does not let this machine in; the text says why."""

    kind = ErrorKind.UNAVAILABLE


@dataclass(frozen=True, slots=True)
class CloudAddress:
    """One cloud, and who this machine is there."""

    url: str  # http://host:port or https://host
    part: str
    entity: str
    type: str
    secret: str = field(repr=False)
    authorities: Path | None = None  # certificates to trust besides the system's
    learned: Callable[[], str] = field(default=str, repr=False, compare=False, kw_only=True)
    """PEM: what counts in the place of `authorities`; "" while nothing does."""

    contact: Contact = field(default_factory=Contact, repr=False, compare=False, kw_only=True)

    @property
    def push_url(self) -> str:
        """Of the push channel."""
        query = urlencode({"part": self.part, "platform": platform(), "tags": ",".join(tags())}, safe="/,:")
        return f"ws{self.url.removeprefix('http')}{PUSH}?{query}"

    def channel(self) -> Channel:
        """A channel for calls, to be opened; it signs in by itself."""
        return Channel(self.url, tls=self.tls(), credentials=self.credentials())

    def tls(self, *protocols: str) -> ssl.SSLContext | None:
        """What to speak TLS with, for `protocols` or else for RPC; None for plain text.

        The authorities are read each time, so that new ones count without a restart. Raises TlsError.
        """
        if not self.secure:
            return None
        learned = self.learned()
        context = client_context(authorities=None if learned else self.authorities, protocols=protocols or ALPN)
        if learned:
            context.load_verify_locations(cadata=learned)
        return context

    @property
    def secure(self) -> bool:
        """Whether it is reached by TLS."""
        return self.url.startswith("https://")

    def credentials(self) -> ApiKey:
        """Credentials for one channel."""
        return ApiKey(self.entity, self.secret, type=self.type)


def address_of(cloud: Cloud, folder: Path = HERE) -> CloudAddress:
    """Where `cloud` says that it is; ConfigError for an address that cannot be dialled. `ca_file` is from `folder`."""
    given = cloud.app_address
    parts = urlsplit(given if "://" in given else f"https://{given}")
    url = f"{parts.scheme}://{parts.netloc}"
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.path not in ("", "/") or parts.query:
        raise ConfigError(
            "cloud.app_address",
            "this is no address of a cloud",
            value=cloud.app_address,
            remedy="write such as https://cloud.example or http://localhost:8090",
        )
    authorities = folder / cloud.ca_file if cloud.ca_file else None
    key = cloud.api_key
    if key is not None and key.id:
        return CloudAddress(url, cloud.id, key.id, API_KEY, key.key, authorities)
    return CloudAddress(url, cloud.id, cloud.id, PART_SECRET, cloud.secret, authorities)


@asynccontextmanager
async def connected(address: CloudAddress) -> AsyncIterator[WebSocketConnection]:
    """The push channel while the context is open; Refused if it cannot be had."""
    try:
        async with trio.open_nursery() as nursery:
            headers, stream = await _opened(address)
            try:
                socket = await _shaken(address, headers, stream, nursery)
                try:
                    yield socket
                finally:
                    with trio.move_on_after(CLOSE_LIMIT, shield=True):
                        await socket.aclose()
            finally:
                with trio.CancelScope(shield=True):  # the library leaves it open if the peer went without a word
                    await trio.aclose_forcefully(stream)
                nursery.cancel_scope.cancel()
    except BaseExceptionGroup as group:
        raise unwrap(group) from None


async def _opened(address: CloudAddress) -> tuple[Headers, Stream]:
    """What a request carries, and a stream on which nothing was said yet."""
    try:
        with trio.fail_after(DIAL_LIMIT):
            headers = await token_headers(address)
            parts, tls = urlsplit(address.url), address.tls(HTTP1)
            host = parts.hostname or ""
            stream = await trio.open_tcp_stream(host, parts.port or (443 if tls else 80))
        return headers, trio.SSLStream(stream, tls, server_hostname=host, https_compatible=True) if tls else stream
    except trio.TooSlowError:
        raise _late() from None
    except (GRPCError, StreamTerminatedError, OSError) as error:
        raise _refused(address, getattr(error, "message", "") or str(error) or repr(error)) from None
    except TlsError as error:
        raise Refused(error.message, remedy=error.remedy) from None


async def _shaken(
    address: CloudAddress, headers: Headers, stream: Stream, nursery: trio.Nursery
) -> WebSocketConnection:
    """The WebSocket on a stream, after its handshakes."""
    parts = urlsplit(address.push_url)
    try:
        with trio.fail_after(DIAL_LIMIT):
            if isinstance(stream, trio.SSLStream):
                await stream.do_handshake()
            target = f"{parts.path}?{parts.query}"
            return await open_websocket(nursery, stream, parts.netloc, target, headers=headers, max_message=MAX_MESSAGE)
    except trio.TooSlowError:
        raise _late() from None
    except NotOpened as error:
        raise Refused(str(error)) from None
    except (OSError, trio.BrokenResourceError) as error:
        raise _refused(address, str(error.__cause__ or error) or repr(error)) from None


def _late() -> Refused:
    return Refused(f"no answer within {DIAL_LIMIT:g} s")


def _refused(address: CloudAddress, reason: str) -> Refused:
    """Why there is no connection; with what to do, where the certificate is not trusted or there is none."""
    remedy = ""
    if any(words in reason for words in BY_TIME):
        remedy = f"set this computer's clock, which says {datetime.now(UTC):%Y-%m-%d}, or renew the certificate"
    elif NOT_TRUSTED in reason:
        own = (
            f"replace {address.authorities}" if address.authorities is not None else "name it as `ca_file` beside `id`"
        )
        remedy = (
            f"get the cloud's authority with `machine-cloud ca` and {own} in the credentials, or set SSL_CERT_FILE; "
            "and call the cloud by a name that its certificate has"
        )
    elif NO_TLS in reason:
        remedy = "it does not speak TLS: write http:// in app_address, or start machine-cloud with --tls"
    return Refused(reason, remedy=remedy)


async def token_headers(address: CloudAddress) -> list[tuple[str, str]]:
    """Sign in: what requests by HTTP carry from now on. Errors as those of a call."""
    async with Channel(address.url, tls=address.tls()) as channel:
        return list(await address.credentials().headers(channel))
