"""Checks that the database and the file store belong together.

Both contain the id of the cloud: the database in `settings`, the store in the file `machine-cloud.json` at its root.
Both also contain a count, which increases with each start and each sweep, in the database first. A store with a higher
count therefore shows that the database was restored to an earlier state. Nothing is deleted from a store that does not
match.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Final

from cloud.blobs import Blobs
from cloud.domain.upkeep.named import sample
from cloud.store.sql import Sql, Store
from schema import ErrorKind, MachineError

_SETTING: Final = "cloud"
ADOPT: Final = "machine-cloud doctor --adopt-files"
_PLACES: Final = "set --files to the files of this cloud, or --data or MACHINE_CLOUD_DATABASE to their database"


@dataclass(frozen=True, slots=True)
class Identity:
    """Identity of a cloud. `count` is 0 in a database that has not confirmed its store yet."""

    cloud: str
    count: int = 0


def written(identity: Identity) -> bytes:
    """Return the content of `machine-cloud.json`."""
    return json.dumps({"cloud": identity.cloud, "count": identity.count}).encode() + b"\n"


def parsed(content: bytes | str) -> Identity:
    """Parse the result of `written`; ValueError for anything else."""
    try:
        value = json.loads(content)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    match value:
        case {"cloud": str(cloud), "count": int(count)} if cloud and count >= 0:
            return Identity(cloud, count)
    raise ValueError("it does not contain a cloud and a count")


def of(sql: Sql) -> Identity | None:
    """Return the identity in the database; None before the first start."""
    row = sql.row("SELECT value FROM settings WHERE name = ?", _SETTING)
    return None if row is None else parsed(row["value"])


def keep(sql: Sql, identity: Identity) -> Identity:
    """Store the identity in the database."""
    value = written(identity).decode()
    sql.run("INSERT INTO settings (name, value) VALUES (?, '') ON CONFLICT (name) DO NOTHING", _SETTING)
    sql.run("UPDATE settings SET value = ? WHERE name = ?", value, _SETTING)
    return identity


async def stamp_of(blobs: Blobs) -> Identity | None:
    """Return the identity in a file store; None if it has none. MachineError if its file is invalid."""
    content = await blobs.stamp()
    if not content:
        return None
    try:
        return parsed(content)
    except ValueError as error:
        raise MachineError(
            f"machine-cloud.json in {blobs.where} is not valid: {error}",
            kind=ErrorKind.PRECONDITION,
            remedy=f"restore it from a backup; if these are the files of this cloud, run: {ADOPT}",
        ) from None


async def bind(store: Store, blobs: Blobs) -> list[MachineError]:
    """Check at startup that database and files belong together; mark both if they have no id yet.

    Raise MachineError (PRECONDITION) with a remedy if they do not. Return the problems that an administrator must look
    at, although the cloud can run.
    """
    keys = await store.read(sample)
    missing = [key for key in keys if await blobs.size(key) is None]
    if await stamp_of(blobs) is None:
        await _first(store, blobs, keys, missing)
    problems: list[MachineError] = []
    try:
        await confirm(store, blobs)
    except OlderDatabase as error:
        problems.append(error)
    if missing:
        problems.append(
            MachineError(
                f"{len(missing)} of {len(keys)} files that were looked for in {blobs.where} are missing",
                kind=ErrorKind.PRECONDITION,
                remedy="restore the files from a backup as new as the database; `machine-cloud doctor` lists them",
            )
        )
    return problems


class OlderDatabase(MachineError):
    """The database is older than the files."""

    kind = ErrorKind.PRECONDITION


async def confirm(store: Store, blobs: Blobs) -> None:
    """Check that database and files belong together and that the database is not older; increase the count.

    Raise MachineError (PRECONDITION) otherwise.
    """
    stamp = await stamp_of(blobs)
    now = await store.write(lambda sql: _counted(sql, stamp, blobs.where))
    await blobs.put_stamp(written(now), replace=True)


async def compare(store: Store, blobs: Blobs) -> None:
    """Check as `confirm` does, without changing anything."""
    stamp = await stamp_of(blobs)
    await store.read(lambda sql: _compared(sql, stamp, blobs.where))


def _counted(sql: Sql, stamp: Identity | None, where: str) -> Identity:
    recorded = _compared(sql, stamp, where)
    return keep(sql, Identity(recorded.cloud, recorded.count + 1))


def _compared(sql: Sql, stamp: Identity | None, where: str) -> Identity:
    recorded = of(sql)
    _same(where, stamp, recorded)
    assert stamp is not None
    assert recorded is not None
    if stamp.count > recorded.count:
        raise OlderDatabase(
            f"the database is older than the files in {where} "
            f"(count {recorded.count} in the database, {stamp.count} with the files): no file will be deleted",
            remedy=f"if this is the wrong database, use the right one; if you have restored a backup, list the missing "
            f"files with `machine-cloud doctor`, then accept the files with `{ADOPT}`",
        )
    return recorded


def _same(where: str, stamp: Identity | None, recorded: Identity | None) -> None:
    if stamp is None:
        raise MachineError(
            f"machine-cloud.json, which this cloud has written, is missing in {where}",
            kind=ErrorKind.PRECONDITION,
            remedy=f"check that its disk is mounted and that --files names the right place; if it does, run: {ADOPT}",
        )
    if recorded is None:
        raise MachineError(
            f"the database is new, but the files in {where} belong to the cloud {stamp.cloud}",
            kind=ErrorKind.PRECONDITION,
            remedy=f"{_PLACES}, or restore a backup of the database; if there is none, run: {ADOPT}",
        )
    if recorded.cloud != stamp.cloud:
        raise MachineError(
            f"the files in {where} belong to the cloud {stamp.cloud}, and the database to the cloud {recorded.cloud}",
            kind=ErrorKind.PRECONDITION,
            remedy=f"{_PLACES}; if they belong together, run: {ADOPT}",
        )


async def _first(store: Store, blobs: Blobs, keys: Sequence[str], missing: Sequence[str]) -> None:
    """Mark a store without an id: a new one, or one from before ids were introduced."""
    recorded = await store.read(of)
    if recorded is not None and recorded.count:  # another replica marks the store first and then counts, maybe just now
        _same(blobs.where, await stamp_of(blobs), recorded)
        return
    if len(missing) == len(keys) and (keys or await holds_files(blobs)):
        what = (
            f"none of {len(keys)} files in the database is there"
            if keys
            else "none of the files there is in the database"
        )
        raise MachineError(
            f"the database does not belong to the files in {blobs.where}: {what}",
            kind=ErrorKind.PRECONDITION,
            remedy=f"check that its disk is mounted; {_PLACES}; if they belong together, run: {ADOPT}",
        )
    identity = Identity(secrets.token_hex(16))
    identity = await store.write(lambda sql: of(sql) or keep(sql, identity))
    await blobs.put_stamp(written(Identity(identity.cloud)), replace=False)  # confirm checks which replica's id it is


async def holds_files(blobs: Blobs) -> bool:
    """Return whether a store contains any blob."""
    async with aclosing(blobs.listed()) as pages:
        async for page in pages:
            if page:
                return True
    return False


async def adopt(store: Store, blobs: Blobs) -> Identity:
    """Declare that the files belong to the database, whatever both say. An administrator must be sure that they do."""
    try:
        stamp = await stamp_of(blobs)
    except MachineError:
        stamp = None
    new_identity = Identity(secrets.token_hex(16))

    def work(sql: Sql) -> Identity:
        recorded = of(sql) or new_identity
        return keep(sql, Identity(recorded.cloud, max(recorded.count, stamp.count if stamp is not None else 0) + 1))

    now = await store.write(work)
    await blobs.put_stamp(written(now), replace=True)
    return now
