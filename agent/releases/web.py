"""HTTP requests of a machine for its releases: to its cloud with its credentials, to other hosts without them."""

from __future__ import annotations

import ssl
from base64 import b64encode
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import quote, unquote, urljoin, urlsplit

import trio
from grpclib.exceptions import GRPCError, StreamTerminatedError

from rpc import to_machine_error
from rpc.network import client_context
from schema import ErrorKind, MachineError
from schema.agent import shown_url
from support import Worker
from uplink import HTTP1, CloudAddress, Headers, error_text, headers_of, responding, token_headers

if TYPE_CHECKING:
    import httpcore

MAX_REDIRECTS: Final = 5
"""Redirects of one request that are followed."""

_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_ACCEPTED: Final = frozenset({200, 206, 416})
_KINDS: Final = {
    401: ErrorKind.UNAUTHENTICATED,
    403: ErrorKind.PERMISSION,
    404: ErrorKind.NOT_FOUND,
    410: ErrorKind.NOT_FOUND,
}
_PORTS: Final = {"https": 443, "http": 80}
_ASCII: Final = "".join(chr(code) for code in range(0x21, 0x7F))
_HEADERS: Final[Headers] = (("user-agent", "machine-agent"), ("accept-encoding", "identity"))

SignIn = Callable[[], Awaitable[Headers]]
"""Returns the headers with the machine's token. Raises what a call raises."""


class _Origin(NamedTuple):
    """Scheme, host and port, which decide where credentials may be sent."""

    scheme: str
    host: str
    port: int


class Web:
    """Requests of the machine at `address`. The token is kept, and renewed once the cloud refuses it.

    `worker` must be open while requests run. `sign_in` is replaced by tests.
    """

    def __init__(self, address: CloudAddress, worker: Worker, *, sign_in: SignIn | None = None) -> None:
        self._address, self._worker = address, worker
        self._sign_in = sign_in or partial(token_headers, address)
        self._cloud = _origin(address.url)
        self._token: Headers | None = None
        self._lock = trio.Lock()

    def is_cloud(self, url: str) -> bool:
        """Return whether a URL, or a path, is one of the machine's cloud."""
        return _origin(_joined(self._address.url, url)) == self._cloud

    @asynccontextmanager
    async def get(self, url: str, headers: Headers = ()) -> AsyncIterator[httpcore.Response]:
        """Request a URL or a path of the cloud, follow redirects, and yield the response while its connection is open.

        The status is 200, 206 or 416. Raises MachineError: NOT_FOUND, PERMISSION, UNAUTHENTICATED as the server
        answers; PERMISSION for a redirect that would be less secure; otherwise UNAVAILABLE. User and password in a URL
        are sent to its host only. Errors show no secrets, and no content of other hosts: they are reported to the
        cloud, which may not be allowed to read there.
        """
        url, renewed = _joined(self._address.url, url), False
        first = origin = _origin(url)
        hops = 0
        while True:
            own = origin == first == self._cloud
            name = shown_url(url)
            secrets = await self._credentials() if own else _basic(url) if origin == first else ()
            tls = await self._worker.run(partial(self._tls, origin))
            async with responding(url, [*_HEADERS, *secrets, *headers], tls, name=name) as response:
                if response.status == 401 and own and secrets and not renewed:
                    renewed, self._token = True, None
                    continue
                if response.status in _REDIRECTS:
                    if (hops := hops + 1) > MAX_REDIRECTS:
                        raise MachineError(
                            f"{name} leads to more than {MAX_REDIRECTS} redirects", kind=ErrorKind.UNAVAILABLE
                        )
                    url = _location(url, headers_of(response).get("location", ""))
                    origin = _origin(url)
                    if origin != first:
                        first = _NOWHERE  # credentials are not sent again, even if it leads back
                    continue
                if response.status not in _ACCEPTED:
                    raise await _refused(name, response, own=own)
                yield response
                return

    async def _credentials(self) -> Headers:
        async with self._lock:
            if self._token is None:
                try:
                    self._token = await self._sign_in()
                except GRPCError as error:
                    raise to_machine_error(error) from None
                except (StreamTerminatedError, OSError) as error:
                    raise MachineError(
                        f"the cloud cannot be reached: {error or repr(error)}",
                        kind=ErrorKind.UNAVAILABLE,
                        remedy="the request is repeated",
                    ) from None
            return self._token

    def _tls(self, origin: _Origin) -> ssl.SSLContext | None:
        """Return the TLS context for a host. Blocks: it reads the authorities of the system, and imports the client."""
        import httpcore  # noqa: F401 - takes some 100 ms

        if origin.scheme != "https":
            return None
        return self._address.tls(HTTP1) if origin == self._cloud else client_context(protocols=(HTTP1,))


_NOWHERE: Final = _Origin("", "", 0)


def _origin(url: str) -> _Origin:
    """Return the origin of a URL. MachineError (INVALID) if it is not one for HTTP."""
    try:
        parts = urlsplit(url)
        if parts.scheme in _PORTS and parts.hostname:
            return _Origin(parts.scheme, parts.hostname, parts.port or _PORTS[parts.scheme])
    except ValueError:
        pass
    raise _unusable(url)


def _joined(base: str, url: str) -> str:
    """Return a URL that may be relative to another one, in ASCII."""
    try:
        return quote(urljoin(base, url), safe=_ASCII)
    except ValueError:
        raise _unusable(url) from None


def _unusable(url: str) -> MachineError:
    return MachineError(
        f"{shown_url(url)} is not an HTTP URL", kind=ErrorKind.INVALID, remedy="write an https:// or file:/// URL"
    )


def _location(url: str, location: str) -> str:
    """Return the target of a redirect. PERMISSION if anyone on the network path could replace what it leads to."""
    target = _joined(url, location)
    if not location or (urlsplit(url).scheme == "https" and urlsplit(target).scheme != "https"):
        where = shown_url(target) if location else "nowhere"
        raise MachineError(
            f"{shown_url(url)} redirects to {where}, which is not an https:// URL",
            kind=ErrorKind.PERMISSION,
            remedy="name the URL of the file itself",
        )
    return target


def _basic(url: str) -> Headers:
    """Return the header with user and password of a URL."""
    parts = urlsplit(url)
    if parts.username is None:
        return ()
    text = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    return (("authorization", f"Basic {b64encode(text.encode()).decode()}"),)


async def _refused(name: str, response: httpcore.Response, *, own: bool) -> MachineError:
    text = await error_text(response) if own else ""
    return MachineError(
        f"{name} answered with HTTP status {response.status}" + (f": {text}" if text else ""),
        kind=_KINDS.get(response.status, ErrorKind.UNAVAILABLE),
    )
