"""Ask the owners of interfaces in a guest: `python3 -m tests.hil.guest.owners COMMAND INTERFACE`; prints JSON.

COMMAND is owner, networks, take or give_back. Passwords are printed: they are those of the test.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import msgspec
import trio

from netmgr.owners.detect import every_owner, owner_of
from support.worker import Worker


def _encoded(value: Any) -> Any:
    return value.decode() if isinstance(value, bytes) else str(value)


async def main(command: str, interface: str) -> Any:
    worker = Worker("owners")
    async with worker.opened():
        owners = every_owner(worker.run)
        if command == "give_back":
            name = sys.argv[3]
            owner = next(owner for owner in owners if owner.name == name)
            return await owner.give_back(interface)
        owner = await owner_of(interface, owners)
        if owner is None or command == "owner":
            return owner and owner.name
        if command == "networks":
            return msgspec.to_builtins(await owner.networks(interface), enc_hook=_encoded)
        return await owner.take(interface)


print(json.dumps(trio.run(main, sys.argv[1], sys.argv[2])))
