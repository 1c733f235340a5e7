"""Temporary links to one resource that work without a key: `/files/…?expires=…&signature=…`."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Callable, Mapping
from datetime import datetime
from hashlib import sha256
from typing import Final

from cloud.store.sql import Sql, inserted
from rpc.access.proof import proof_key
from schema import ErrorKind, MachineError

SETTING: Final = "links_secret"


class Links:
    """Signs and checks paths. `base` returns the cloud's address as clients see it, such as `http://localhost:8090`."""

    def __init__(self, secret: str, base: Callable[[], str]) -> None:
        self._secret = secret.encode()
        self._base = base

    @property
    def base(self) -> str:
        """The cloud's address as clients see it, without a trailing slash."""
        return self._base()

    def url(self, path: str, until: datetime) -> str:
        """Return a link to `path` (with a leading slash, segments quoted) that is valid until then."""
        return f"{self.base}{path}?{self.query(path, until)}"

    def page(self, path: str) -> str:
        """Return the address of a page, which requires logging in."""
        return f"{self._base()}{path}"

    def query(self, path: str, until: datetime) -> str:
        """Return the query string of `url`."""
        expires = int(until.timestamp())
        return f"expires={expires}&signature={self._sign(path, expires)}"

    def check(self, path: str, query: Mapping[str, str], now: datetime) -> None:
        """Raise PERMISSION unless `query` has a valid signature for `path` that has not expired."""
        expires, signature = query.get("expires", ""), query.get("signature", "")
        number = int(expires) if expires.isascii() and expires.isdigit() and len(expires) <= 12 else 0
        valid = hmac.compare_digest(signature.encode(), self._sign(path, number).encode())
        if not valid or now.timestamp() > number:
            raise MachineError(
                "this link has expired" if valid else "this link is not valid",
                kind=ErrorKind.PERMISSION,
                remedy="ask for a new one",
            )

    def proof_key(self, part: str) -> str:
        """Return the key with which this cloud proves to the agent of a part that it answers: see rpc.access.proof."""
        return proof_key(self._secret.decode(), part)

    def _sign(self, path: str, expires: int) -> str:
        return hmac.new(self._secret, f"{expires}\n{path}".encode(), sha256).hexdigest()


def open_secret(sql: Sql) -> str:
    """Return the secret that signs this cloud's links; create it on first use."""
    row = sql.row("SELECT value FROM settings WHERE name = ?", SETTING)
    if row is not None:
        return str(row["value"])
    secret = secrets.token_hex(32)
    inserted(sql, "settings", {"name": SETTING, "value": secret})
    return secret
