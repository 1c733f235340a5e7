"""Protection against cross-site request forgery.

Actions and live connections are refused if the headers Origin or Sec-Fetch-Site say that the request comes from another
site. Forms must also contain the token for the browser's cookie. `rpc.access.guard` has already checked credentials and
the host name.
"""

from __future__ import annotations

import hmac
import ipaddress
import secrets
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

from starlette.requests import HTTPConnection
from starlette.responses import Response

from schema import ErrorKind, MachineError

COOKIE: Final = "machine_page"


class Forgery:
    """Creates and checks form tokens. The key is valid until the process ends."""

    def __init__(self) -> None:
        self._key = secrets.token_bytes(32)

    def token(self, cookie: str) -> str:
        """Return the token for the forms of the browser with this cookie."""
        return hmac.digest(self._key, cookie.encode(), "sha256").hex()

    def check_form(self, connection: HTTPConnection, form: Mapping[str, str]) -> None:
        """Raise MachineError (PERMISSION) unless this server created the form for this browser."""
        check_origin(connection)
        cookie = connection.cookies.get(COOKIE, "")
        if not cookie or not hmac.compare_digest(self.token(cookie).encode(), form.get("csrf", "").encode()):
            raise _forged("this server did not create the form, or has restarted since")


def check_origin(connection: HTTPConnection) -> None:
    """Raise MachineError (PERMISSION) unless the request comes from a page of this server, or from no page."""
    origin = connection.headers.get("origin")
    if origin is not None:
        same = urlsplit(origin).netloc == connection.headers.get("host", "")
    else:
        same = connection.headers.get("sec-fetch-site", "none") in ("same-origin", "none")
    if not same:
        raise _forged("the request comes from another site")


def give_cookie(response: Response, connection: HTTPConnection, cookie: str) -> None:
    """Set the cookie to which forms are bound. Scripts cannot read it, and other sites cannot send it."""
    secure = connection.url.scheme == "https"
    response.set_cookie(COOKIE, cookie, httponly=True, samesite="strict", secure=secure)


def is_loopback(client: tuple[str, int] | None) -> bool:
    """Return whether the address of a client is a loopback address."""
    if client is None:
        return False
    try:
        address = ipaddress.ip_address(client[0].partition("%")[0])
    except ValueError:
        return False
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped  # before Python 3.13, is_loopback is false for mapped addresses
    return address.is_loopback


def _forged(reason: str) -> MachineError:
    return MachineError(reason, kind=ErrorKind.PERMISSION, remedy="reload the page and try again")
