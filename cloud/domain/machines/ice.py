"""STUN and TURN servers for connections to machines. Pure.

TURN credentials are those of the "TURN REST API" that coturn calls `use-auth-secret`: a name that begins with the time
at which it expires, and an HMAC-SHA1 of it with the secret that cloud and server share.
"""

from __future__ import annotations

import hmac
from base64 import b64encode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from hashlib import sha1
from typing import Any, Final

from rpc.peers import MAX_URLS, IceServer, PeerOptions, check_servers
from schema import MachineError

LIFE: Final = timedelta(hours=12)
"""Validity of TURN credentials. The server checks them when a connection begins, not while it lasts."""

VARIABLE: Final = "MACHINE_CLOUD_TURN_SECRET"


@dataclass(frozen=True, slots=True)
class IceServers:
    """URLs of the servers that this cloud offers, and the secret that it shares with its TURN servers."""

    urls: tuple[str, ...] = ()
    secret: str = field(default="", repr=False)

    def offered(self, user: str, now: datetime) -> list[dict[str, Any]]:
        """Return the servers as fields of published messages, with credentials for `user`, which servers may log."""
        stun = [url for url in self.urls if url.startswith("stun")]
        turn = [url for url in self.urls if url.startswith("turn")]
        servers: list[dict[str, Any]] = [{"urls": stun}] if stun else []
        if turn:
            username = f"{int((now + LIFE).timestamp())}:{user}"
            servers.append({"urls": turn, "username": username, "credential": self._credential(username)})
        return servers

    def _credential(self, username: str) -> str:
        return b64encode(hmac.digest(self.secret.encode(), username.encode(), sha1)).decode()


NO_SERVERS: Final = IceServers()


def ice_servers(urls: Iterable[str], environment: Mapping[str, str]) -> IceServers:
    """Return the servers of the option --ice-server; ValueError if a URL is invalid or a secret is missing."""
    chosen = tuple(urls)
    for url in chosen:
        try:
            check_servers(PeerOptions((IceServer((url,), "user", "credential"),)))  # as machines check them
        except MachineError:
            raise ValueError(
                f"{url!r} is not a URL such as stun:HOST:3478, turn:HOST:3478?transport=tcp or turns:HOST:5349"
            ) from None
    if len(chosen) > MAX_URLS:
        raise ValueError(f"{len(chosen)} servers; machines use at most {MAX_URLS}")
    secret = environment.get(VARIABLE, "")
    if not secret and any(url.startswith("turn") for url in chosen):
        raise ValueError(f"a TURN server needs its `static-auth-secret` in the environment variable {VARIABLE}")
    return IceServers(chosen, secret)
