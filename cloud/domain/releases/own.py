"""Repositories whose keys for root and targets the cloud keeps itself, until people bring keys of their own.

Each new organization has such keys, in the database. They are used from the first release that the cloud publishes
itself. The first root.json of people replaces them, and they are deleted; a repository of people is never changed here.
Call `metadata.load` in a thread before a transaction that signs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

from cloud.domain.organizations.release_seeds import replace_seeds
from cloud.domain.releases import metadata, own_signing, repository
from cloud.domain.releases.metadata import SignedTarget
from cloud.domain.releases.own_signing import OwnKeys
from cloud.store.sql import Sql
from schema import ErrorKind, MachineError
from uplink.releases import LIFETIMES, ROOT, TARGETS

Change = Callable[[Sequence[SignedTarget]], Sequence[SignedTarget]]
"""Returns the targets that are to be in force, from those that are."""


def keys_of(sql: Sql, owner: str) -> OwnKeys | None:
    """Return the keys of an organization; None if people hold them, or it has none yet."""
    row = sql.row("SELECT root_key, targets_key FROM own_release_keys WHERE organization_id = ?", owner)
    return None if row is None else OwnKeys(row["root_key"], row["targets_key"])


def kept(sql: Sql, owner: str) -> bool:
    """Return whether the cloud keeps the keys of an organization, or would create them."""
    row = sql.row("SELECT organization_id FROM own_release_keys WHERE organization_id = ?", owner)
    return row is not None or not repository.exists(sql, owner)


def publish(sql: Sql, owner: str, now: datetime, change: Change) -> None:
    """Publish changed targets. The first call creates the repository.

    PRECONDITION if people hold the keys; see also `repository.publish`.
    """
    keys = _required(sql, owner, now)
    root, targets = repository.newest(sql, owner, ROOT), repository.newest(sql, owner, TARGETS)
    new_root = None
    if root is None:
        new_root = own_signing.sign_root(None, keys, repository.create_keys(sql, owner, now), now)
    current = None
    before: Sequence[SignedTarget] = ()
    if root is not None and targets is not None:
        current = targets.content
        checked = metadata.read_targets(current, root.content)
        before = () if checked is None else checked.targets
    after = change(before)
    if current is not None and list(after) == list(before):
        return
    signed = own_signing.sign_targets(current, keys, after, now)
    repository.publish(sql, owner, now, root=new_root, new_targets=signed)


def publish_of_people(sql: Sql, owner: str, now: datetime, *, root: bytes | None, targets: bytes | None) -> None:
    """Publish what people signed; see `repository.publish`. Their first root.json ends the use of the cloud's keys."""
    keys = keys_of(sql, owner)
    if keys is not None and root is not None and repository.exists(sql, owner):
        root = own_signing.handed_over(root, keys)
    repository.publish(sql, owner, now, root=root, new_targets=targets)
    if keys is not None and root is not None:
        sql.run("DELETE FROM own_release_keys WHERE organization_id = ?", owner)


def rotate(sql: Sql, owner: str, now: datetime) -> None:
    """Replace all keys that the cloud keeps. PRECONDITION if people hold them, or there is no repository."""
    before = _required(sql, owner, now)
    root, targets = repository.newest(sql, owner, ROOT), repository.newest(sql, owner, TARGETS)
    if root is None or targets is None:
        raise MachineError(
            "this cloud has published no release yet",
            kind=ErrorKind.PRECONDITION,
            remedy="import its releases first: `machine cloud releases import`",
        )
    keys = OwnKeys(*replace_seeds(sql, owner, now))
    checked = metadata.read_targets(targets.content, root.content)
    assert checked is not None
    new_root = own_signing.sign_root(root.content, keys, repository.create_keys(sql, owner, now), now, before)
    signed = own_signing.sign_targets(targets.content, keys, checked.targets, now)
    repository.publish(sql, owner, now, root=new_root, new_targets=signed)


def renew(sql: Sql, owner: str, now: datetime) -> None:
    """Rotate the keys after half of the lifetime of root.json, and sign targets.json again after half of its lifetime.

    Nothing happens to a repository of people.
    """
    keys = keys_of(sql, owner)
    root, targets = repository.newest(sql, owner, ROOT), repository.newest(sql, owner, TARGETS)
    if keys is None or root is None or targets is None:
        return
    if root.expires - LIFETIMES[ROOT] / 2 <= now:
        rotate(sql, owner, now)
    elif targets.expires - LIFETIMES[TARGETS] / 2 <= now:
        checked = metadata.read_targets(targets.content, root.content)
        assert checked is not None
        signed = own_signing.sign_targets(targets.content, keys, checked.targets, now)
        repository.publish(sql, owner, now, root=None, new_targets=signed)


def _required(sql: Sql, owner: str, now: datetime) -> OwnKeys:
    """Return the keys of an organization, which are created if it is older than this table. PRECONDITION."""
    keys = keys_of(sql, owner)
    if keys is None and not repository.exists(sql, owner):
        keys = OwnKeys(*replace_seeds(sql, owner, now))
    if keys is None:
        raise held_by_people()
    return keys


def held_by_people() -> MachineError:
    """Return the error PRECONDITION: people hold the keys, so the cloud signs nothing."""
    return MachineError(
        "people of this organization hold the keys for its releases, so this cloud signs none",
        kind=ErrorKind.PRECONDITION,
        remedy="use the commands with your keys: `machine cloud releases ... --keys FOLDER`",
    )
