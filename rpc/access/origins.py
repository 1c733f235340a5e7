"""Check which web pages may call a port. Pure.

A browser sends requests on behalf of any web site that its user visits and names that site in `Origin`. If the owner of
the site points its host name to this computer (DNS rebinding), the requests look like those of the server's own pages,
unless the server knows its names. On a server with keys neither matters for calls, because a foreign page has no token
and calls do not use cookies.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from typing import Final

from rpc.access.addresses import allowed_host, host_of, is_loopback_name

_PORTS: Final = {"http": ":80", "https": ":443"}  # default ports, which browsers omit
_PRIVATE: Final = (".local", ".localhost", ".internal", ".home.arpa", ".lan")
"""Domains that the public DNS does not delegate, so that no web site can have a name in them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Origins:
    """Rules of one port. `configured` are allowed origins such as `https://app.example` or `http://localhost:*`.

    `names` are host names of this server in addition to private names and addresses. `option` is the setting that error
    messages name.
    """

    keys: bool = True  # calls need a token
    loopback: bool = False  # the port is reachable from this computer only
    names: tuple[str, ...] = ()
    configured: tuple[str, ...] = ()
    option: str = ""

    def wrong_host(self, authority: str) -> str:
        """Return why a request to `authority` is refused, "" if it is allowed."""
        names = (*self.names, *(_host(origin) for origin in self.configured))
        if allowed_host(authority, names):
            return ""
        host = host_of(authority)
        if self.loopback:
            return (
                f"this server accepts only requests for localhost, but this one is for {host[:100]!r}; "
                f"if a proxy forwards requests, add its name to the settings{self._hint(authority)}"
            )
        if self.keys or _unforgeable(host):
            return ""
        return f"this server has no keys, and {host[:100]!r} is not one of its names{self._hint(authority)}"

    def wrong_page(self, scheme: str, authority: str, origin: str | None) -> str:
        """Return why a page of `origin` may not make calls, "" if it may. It is None for requests without page."""
        if self.keys and not self.configured:
            return ""
        if not self.keys and (wrong := self.wrong_host(authority)):
            return wrong
        if origin is None or same_origin(origin, scheme, authority) or self._is_configured(origin):
            return ""
        return f"web pages of {origin[:100]} may not call this server{self._hint(origin)}"

    def _is_configured(self, origin: str) -> bool:
        origin = origin.lower()
        host, colon, port = origin.rpartition(":")
        anywhere = f"{host}:*" if colon and port.isdigit() else f"{origin}:*"
        return any(allowed in (origin, anywhere) for allowed in self.configured)

    def _hint(self, what: str) -> str:
        if not self.option or not what:
            return ""
        if what == "null":
            return f"; serve the page from a web server, and add its origin to {self.option}"
        origin = what if "://" in what else f"http://{what}"
        return f': to allow this, add "{origin[:120]}" to {self.option}' + ("" if self.keys else ", or configure keys")


ANY: Final = Origins()
"""Rules that allow every page, for ports where every call needs a token, and for tests."""


def same_origin(origin: str, scheme: str, authority: str) -> bool:
    """Return True if `origin` is the origin of `authority` itself."""
    usual = _PORTS.get(scheme, "")
    return origin.lower().removesuffix(usual) == f"{scheme}://{authority.removesuffix(usual)}".lower()


def _host(origin: str) -> str:
    return host_of(origin.partition("://")[2])


def _unforgeable(host: str) -> bool:
    """Return True if no web site can have the name `host`: addresses, names without a dot, and private domains."""
    if not host:
        return False
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return "." not in host or host.endswith(_PRIVATE) or is_loopback_name(host)
    return True
