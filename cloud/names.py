"""Identifiers and names: how they are made, and which are refused."""

from __future__ import annotations

import re
import secrets
import string
import uuid
from typing import Final

from cloud.limits import NAME
from schema.errors import ErrorKind, MachineError

MAX_NAME: Final = NAME.value  # characters of a name that people give
_LOCATION: Final = string.ascii_lowercase + string.digits
_NAMESPACE: Final = re.compile(r"[a-z0-9][a-z0-9-]{1,38}[a-z0-9]")
_ID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")  # of an organization: see new_id


def new_id() -> str:
    """A random UUID: of organizations, machines, parts and keys, as clients expect."""
    return str(uuid.uuid4())


def new_location_id() -> str:
    """Ten lowercase letters and digits: it becomes part of machines' names."""
    return "".join(secrets.choice(_LOCATION) for _ in range(10))


def new_secret() -> str:
    """A key or secret that nobody guesses: 32 random bytes."""
    return secrets.token_urlsafe(32)


def checked_name(name: str, what: str) -> str:
    """`name` without blanks around it. MachineError (INVALID) if it is empty, too long or not printable."""
    name = name.strip()
    if not name or len(name) > MAX_NAME or not name.isprintable():
        raise MachineError(
            f"{what} cannot be called {name[:40]!r}",
            kind=ErrorKind.INVALID,
            remedy=f"give it 1 to {MAX_NAME} printable characters",
        )
    return name


def checked_namespace(namespace: str) -> str:
    """A public namespace. MachineError (INVALID) for anything else, and for what may be the id of an organization:
    names in the registry begin with either.
    """
    if not _NAMESPACE.fullmatch(namespace) or _ID.fullmatch(namespace):
        raise MachineError(
            f"{namespace[:60]!r} is no namespace",
            kind=ErrorKind.INVALID,
            remedy="use 3 to 40 lowercase letters, digits and dashes, no dash at either end, and no id",
        )
    return namespace


def slug(name: str) -> str:
    """A name as a label of a host name."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "machine"
