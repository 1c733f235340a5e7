"""Rules of permission: the role that a caller needs, and the object at which it needs it.

Each method of a service has its rule in front of it, as the decorator `allow`; each route has one in `RULES` of its
module. docs/reference/security.md is generated from all of them, and a test sends every request as every kind of caller
and compares the results. A method or route without a rule raises TypeError when the cloud starts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar

from cloud.domain.permissions.access import ObjectKind, Role

Method = TypeVar("Method", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class AccessRule:
    """Permission for a call: `role` at the object that the argument or path segment named `field` refers to.

    Role.MACHINE means the machine itself or an owner in its own organization. Without `of`, every logged-in caller is
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


def signed_in(note: str) -> AccessRule:
    """Allow any logged-in caller; `note` says what it gets."""
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


def allow(rule: AccessRule) -> Callable[[Method], Method]:
    """Mark a method of a service with the rule that is checked before it runs; see `services.common.base.guarded`."""

    def mark(method: Method) -> Method:
        vars(method)["access_rule"] = rule
        return method

    return mark


def rule_of(method: Callable[..., Any]) -> AccessRule | None:
    """Return the rule that `allow` has given to a method."""
    rule: AccessRule | None = vars(method).get("access_rule")
    return rule


ROLE_ANYWHERE: Final = signed_in("those in which the caller has a role")
READABLE: Final = signed_in("public ones, and those of the caller's organization")
FILTERED: Final = signed_in("data of resources at which the caller has a role")
FILTERED_OR_JOB: Final = signed_in(
    "data of resources at which the caller has a role; with the key of a running training script, those of its dataset"
)
OWNED: Final = signed_in("data of resources that the caller owns")
GIVES: Final = signed_in("roles at resources that the caller owns")
OWN_MARKS: Final = signed_in("the caller's own marks")
OWN_MACHINES: Final = signed_in("machines that the caller owns in its own organization; each is checked again")
OWN_JOBS: Final = signed_in("jobs that the caller started, and those of an organization that it owns")
OF_FORM: Final = signed_in("owners of the place that the form names")
OF_HOST: Final = signed_in("of a machine that the caller operates, named by `rpc-host`; checked by the method")
AT_ALERTS: Final = signed_in("alerts of the caller's organization, at machines at which the caller has a role")
ITSELF_UPLOADS: Final = AccessRule(Role.MACHINE, note="of the part that the metadata names; checked by the method")

STANDARD: Final[Mapping[str, AccessRule]] = {
    "/proto.rpc.v1.AuthService/Authenticate": public("a key or secret is the credential"),
    "/grpc.health.v1.Health/Check": public("whether the server answers; for a single service, a key is needed"),
    "/grpc.health.v1.Health/Watch": signed_in("the same"),
    "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo": signed_in("published names"),
    "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo": signed_in("published names"),
}
"""Rules for the calls that rpc.server.standard answers on every server."""
