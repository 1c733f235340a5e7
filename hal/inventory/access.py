"""Access to device nodes: compare owner, group and mode of a node with a user and its groups."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from hal.inventory.findings import HardwareProblem
from hal.inventory.sysfs import ROOT


@dataclass(frozen=True, slots=True)
class User:
    """The user and groups of this process; `member_of` are the groups that a new session would get from /etc/group."""

    name: str
    uid: int
    gids: frozenset[int]
    member_of: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class DeviceNode:
    """A device node: path, owner, group (empty if it has no name) and permissions."""

    path: str
    uid: int
    gid: int
    group: str
    mode: int


def current_user() -> User:
    """Return the user of this process."""
    import grp
    import pwd

    uid = os.geteuid()
    try:
        name = pwd.getpwuid(uid).pw_name
    except KeyError:
        name = str(uid)
    members = frozenset(entry.gr_name for entry in grp.getgrall() if name in entry.gr_mem)
    return User(name, uid, frozenset((os.getegid(), *os.getgroups())), members)


def nodes(paths: Iterable[str], root: Path = ROOT) -> tuple[DeviceNode, ...]:
    """Return the nodes of `paths` that exist."""
    existing = []
    for path in paths:
        try:
            status = (root / path.lstrip("/")).stat()
        except OSError:
            continue
        existing.append(
            DeviceNode(path, status.st_uid, status.st_gid, _group(status.st_gid), stat.S_IMODE(status.st_mode))
        )
    return tuple(existing)


def usable(node: DeviceNode, user: User) -> bool:
    """Return whether `user` has read and write access, by the class that applies: owner, else group, else others."""
    if user.uid == 0:
        return True
    if user.uid == node.uid:
        return node.mode & 0o600 == 0o600
    if node.gid in user.gids:
        return node.mode & 0o060 == 0o060
    return node.mode & 0o006 == 0o006


def refused(candidates: Iterable[DeviceNode], user: User, groups: Mapping[str, str]) -> tuple[HardwareProblem, ...]:
    """Return the nodes that `user` may not use, one problem for each reason; `groups` are the right groups by path."""
    reasons: dict[tuple[str, str], list[str]] = {}
    for node in candidates:
        if not usable(node, user):
            reasons.setdefault(_why(node, user, groups[node.path]), []).append(node.path)
    return tuple(HardwareProblem(", ".join(paths), reason, remedy) for (reason, remedy), paths in reasons.items())


def _why(node: DeviceNode, user: User, group: str) -> tuple[str, str]:
    ownership = f"it belongs to {_owner(node)} with mode {node.mode:04o}"
    if node.group != group or node.mode & 0o060 != 0o060:
        return (
            f"user {user.name} may not use it: {ownership}, but should belong to group {group} with mode 0660",
            "install the rules: sudo machine hal install-rules",
        )
    if group in user.member_of:
        return (
            f"user {user.name} was added to group {group} after this session began",
            "log out and in again, or restart the service",
        )
    return (
        f"user {user.name} is not in group {group}, to which it belongs",
        f"sudo usermod -aG {group} {user.name}, then log out and in again",
    )


def _owner(node: DeviceNode) -> str:
    try:
        import pwd

        owner = pwd.getpwuid(node.uid).pw_name
    except KeyError:
        owner = str(node.uid)
    return f"{owner}:{node.group or node.gid}"


def _group(gid: int) -> str:
    try:
        import grp

        return grp.getgrgid(gid).gr_name
    except KeyError:
        return ""
