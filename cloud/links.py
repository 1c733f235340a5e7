"""Addresses that open one thing for a while without a key: `/files/…?expires=…&signature=…`."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Callable, Mapping
from datetime import datetime
from hashlib import sha256
from typing import Final

from cloud.store.sql import Sql, inserted
from schema.errors import ErrorKind, MachineError

SETTING: Final = "links_secret"


class Links:
    """Signs and checks paths. `base` tells the cloud's own address as clients see it, such as `http://localhost:8090`."""

    def __init__(self, secret: str, base: Callable[[], str]) -> None:
        self._secret = secret.encode()
        self._base = base

    @property
    def base(self) -> str:
        """The cloud's own address as clients see it, without a slash at its end."""
        return self._base()

    def url(self, path: str, until: datetime) -> str:
        """An address for `path` (it begins with /, its parts quoted) that works until then."""
        return f"{self.base}{path}?{self.query(path, until)}"

    def page(self, path: str) -> str:
        """The address of a page, for which one signs in."""
        return f"{self._base()}{path}"

    def query(self, path: str, until: datetime) -> str:
        """What `url` puts behind the question mark."""
        expires = int(until.timestamp())
        return f"expires={expires}&signature={self._sign(path, expires)}"

    def check(self, path: str, query: Mapping[str, str], now: datetime) -> None:
        """PERMISSION unless `query` is what was signed for `path` and has not expired."""
        expires, signature = query.get("expires", ""), query.get("signature", "")
        number = int(expires) if expires.isascii() and expires.isdigit() and len(expires) <= 12 else 0
        valid = hmac.compare_digest(signature.encode(), self._sign(path, number).encode())
        if not valid or now.timestamp() > number:
            raise MachineError(
                "this link is not valid any more" if valid else "this link is not valid",
                kind=ErrorKind.PERMISSION,
                remedy="ask for a new one",
            )

    def _sign(self, path: str, expires: int) -> str:
        return hmac.new(self._secret, f"{expires}\n{path}".encode(), sha256).hexdigest()


def open_secret(sql: Sql) -> str:
    """The secret of this cloud's links, made when it is asked for first."""
    row = sql.row("SELECT value FROM settings WHERE name = ?", SETTING)
    if row is not None:
        return str(row["value"])
    secret = secrets.token_hex(32)
    inserted(sql, "settings", {"name": SETTING, "value": secret})
    return secret
