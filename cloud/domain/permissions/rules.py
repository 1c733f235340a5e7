"""Rules of permission: the role that a caller needs, and the object at which it needs it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from cloud.domain.permissions.access import ObjectKind, Role


@dataclass(frozen=True, slots=True)
class AccessRule:
    """Permission for a call: `role` at the object that the argument or path segment named `field` refers to.

    Role.MACHINE means the machine itself or an owner in its own organization. Without `of`, every signed-in caller is
    accepted; `note` then says what it gets.
    """

    role: Role = Role.NONE
    of: ObjectKind | None = None
    field: str = ""
    home: bool = False  # only keys of the owning organization, not of those that it is shared with
    inside: bool = False  # the method itself checks it, by `read_checked` or `write_checked`; for frequent calls
    otherwise: ObjectKind | None = None  # other kind of object that the field may refer to
    own_secret: bool = False  # a machine needs its own secret, not that of its location: see check_answering
    public: bool = False  # no key is needed
    note: str = ""

    def __or__(self, note: str) -> AccessRule:
        """Return a copy with this note."""
        return replace(self, note=note)


SELF: Final = AccessRule(note="what the caller may see")
"""Any signed-in caller: the method filters its results, or calls `require` itself."""


def signed_in(note: str) -> AccessRule:
    """Allow any signed-in caller; `note` says what it gets."""
    return AccessRule(note=note)


def public(note: str) -> AccessRule:
    """Allow anyone, without a key; `note` says why."""
    return AccessRule(public=True, note=note)


def machine(field: str, *, inside: bool = False) -> AccessRule:
    """Allow the machine itself, with a secret of the part or its location, or an owner in its own organization."""
    return AccessRule(Role.MACHINE, ObjectKind.PART, field, inside=inside)


def answering(field: str) -> AccessRule:
    """Allow the machine itself, with a secret of the part, or an owner in its own organization."""
    return AccessRule(Role.MACHINE, ObjectKind.PART, field, own_secret=True, note="not with a secret of its location")


def operator(of: ObjectKind, field: str, otherwise: ObjectKind | None = None, *, inside: bool = False) -> AccessRule:
    """Allow operators and owners."""
    return AccessRule(Role.OPERATOR, of, field, inside=inside, otherwise=otherwise)


def owner(of: ObjectKind, field: str, otherwise: ObjectKind | None = None) -> AccessRule:
    """Allow owners only."""
    return AccessRule(Role.OWNER, of, field, otherwise=otherwise)


def home_owner(of: ObjectKind, field: str, otherwise: ObjectKind | None = None) -> AccessRule:
    """Allow owners in the owning organization, not in those that it is shared with."""
    return AccessRule(Role.OWNER, of, field, home=True, otherwise=otherwise)


def home_operator(of: ObjectKind, field: str) -> AccessRule:
    """Allow operators and owners in the owning organization."""
    return AccessRule(Role.OPERATOR, of, field, home=True)
