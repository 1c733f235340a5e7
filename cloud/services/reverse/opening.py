"""Permission for calls to a machine, its request for a connection, and the audit log."""

from __future__ import annotations

import json
from typing import Any, Final

import trio

from cloud.domain.machines.machines import part as part_record
from cloud.domain.machines.online import Presence, presence
from cloud.domain.permissions import audit
from cloud.domain.permissions.access import ObjectKind, Role, require
from cloud.domain.permissions.calling import require_caller
from cloud.services.common.base import Cloud
from cloud.services.common.standing import until_refused
from cloud.store.sql import Sql
from cloud.values.author import Author
from cloud.work.reverse import Reverse, ReverseKey
from schema import ErrorKind, MachineError

CONNECTIONS: Final = 32  # reverse connections of one machine
RECORD_AGAIN: Final = 3600.0  # seconds until a caller's next call of the same method is recorded again
ACTION: Final = "call_machine"


def topic(part: str) -> str:
    """Return the event topic of requests to a part; their subjects are JSON for its push channel."""
    return f"calls {part}"


def message_of(reverse: Reverse, address: str) -> dict[str, Any]:
    """Return the request for a connection; see runtime.parts.cloud.calls.ConnectionRequest."""
    return {"id": reverse.id, "caller": {"type": reverse.key.type, "id": reverse.key.name}, "address": address}


async def until_caller_refused(cloud: Cloud, author: Author, part: str) -> MachineError:
    """Wait until `author` may no longer call a part, and return the reason."""

    def check(sql: Sql) -> None:
        require_caller(sql, author, part)

    return await until_refused(cloud, author, check)


async def until_machine_refused(cloud: Cloud, author: Author, part: str) -> MachineError:
    """Wait until `author` may no longer act as the machine, and return the reason."""

    def check(sql: Sql) -> None:
        require(sql, author, Role.MACHINE, ObjectKind.PART, part)

    return await until_refused(cloud, author, check)


async def connection_for(cloud: Cloud, author: Author, part: str) -> Reverse:
    """Return an open connection for calls of `author` to `part`.

    MachineError: as `require_caller`; UNAVAILABLE if the machine is offline or does not answer; EXHAUSTED.
    """

    async def ask(reverse: Reverse) -> None:
        follows = cloud.reverses.follows(part)
        request = json.dumps(message_of(reverse, cloud.replica_address))
        now = cloud.clock()

        def permitted(sql: Sql) -> str:
            require_caller(sql, author, part)
            record = part_record(sql, part)
            if (
                not follows
                and presence(record.seen, now, online=record.online, gone=record.gone) is not Presence.ONLINE
            ):
                raise MachineError(
                    f"machine {record.name} is offline",
                    kind=ErrorKind.UNAVAILABLE,
                    remedy="start its machine-server, and check its network",
                )
            return record.name

        reverse.name = await cloud.store.read(permitted)
        if not cloud.reverses.make_room(part, CONNECTIONS):
            raise MachineError(
                f"{CONNECTIONS} callers are connected to the machine, which is the limit",
                kind=ErrorKind.EXHAUSTED,
                remedy="wait until others have ended",
            )
        await cloud.store.write(lambda sql: sql.notify(topic(part), request))

    return await cloud.reverses.get(ReverseKey.of(part, author), ask)


async def record(cloud: Cloud, author: Author, part: str, method: str, again: float = RECORD_AGAIN) -> None:
    """Write to the audit log that `author` calls a method of a machine, once in `again` seconds."""
    key, reverses = ReverseKey.of(part, author), cloud.reverses
    if reverses.is_recorded(key, method, trio.current_time() - again) and again:
        return
    now = cloud.clock()

    def work(sql: Sql) -> None:
        entry = part_record(sql, part)
        detail = {"of": ObjectKind.PART.value, "called": entry.name, "method": method[: audit.MAX_TEXT]}
        audit.note(sql, entry.organization_id, author, ACTION, part, detail, now)

    await cloud.store.write(work)
    reverses.record(key, method, trio.current_time())
