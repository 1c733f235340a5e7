"""Identifiers and names: creation and validation."""

from __future__ import annotations

import re
import secrets
import string
import uuid
from typing import Final

from cloud.values.limits import NAME
from schema import ErrorKind, MachineError, composed

MAX_NAME: Final = NAME.value  # characters in a name
_LOCATION: Final = string.ascii_lowercase + string.digits
_NAMESPACE: Final = re.compile(r"[a-z0-9][a-z0-9-]{1,38}[a-z0-9]")
_ID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")  # id of an organization: see new_id


def new_id() -> str:
    """Return a random UUID, the type of id that clients expect for organizations, machines, parts and keys."""
    return str(uuid.uuid4())


def new_location_id() -> str:
    """Return ten random lowercase letters and digits, which become part of machines' host names."""
    return "".join(secrets.choice(_LOCATION) for _ in range(10))


def new_secret() -> str:
    """Return a random key or secret of 32 bytes."""
    return secrets.token_urlsafe(32)


def checked_name(name: str, what: str) -> str:
    """Return `name` without surrounding spaces and with composed letters (NFC).

    Otherwise two names that look the same could differ, depending on the keyboard that wrote them. INVALID if it is
    empty, too long or not printable.
    """
    name = composed(name).strip()
    if not name or len(name) > MAX_NAME or not name.isprintable():
        raise MachineError(
            f"{what} cannot be called {name[:40]!r}",
            kind=ErrorKind.INVALID,
            remedy=f"give it 1 to {MAX_NAME} printable characters",
        )
    return name


def checked_namespace(namespace: str) -> str:
    """Return a valid public namespace; INVALID for anything else.

    A text in the form of an organization's id is invalid too, because registry names begin with either of them.
    """
    if not _NAMESPACE.fullmatch(namespace) or _ID.fullmatch(namespace):
        raise MachineError(
            f"{namespace[:60]!r} is not a valid namespace",
            kind=ErrorKind.INVALID,
            remedy="use 3 to 40 lowercase letters, digits and dashes, without a dash at either end, and no id",
        )
    return namespace


def slug(name: str) -> str:
    """Return a name as a label of a host name."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "machine"
