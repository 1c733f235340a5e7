"""Control the machine's radio in a guest: `python3 -m tests.hil.guest.wifi`, with a request of JSON in each line.

A request is `{"call": METHOD, ...}` with the arguments of Supplicant's or Radios' method; the answer is a line
`{"answer": ...}` or `{"error": ...}`, and what is reported is a line such as `{"JoinFailed": ...}`.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec
import trio

from netmgr.model.network import UsableNetwork
from netmgr.model.settings import Hotspot
from netmgr.netlink.nl80211 import RadioChanges, Radios, family
from netmgr.wifi.supplicant import Supplicant
from schema.errors import MachineError

RECORDS = {"network": UsableNetwork, "hotspot": Hotspot}


def say(kind: str, value: Any) -> None:
    print(json.dumps({kind: msgspec.to_builtins(value, enc_hook=str)}), flush=True)


async def carry_out(places: list[Any], name: str, arguments: dict[str, Any]) -> Any:
    """Call a method of the first object that has it, or return its attribute."""
    place = next(place for place in places if hasattr(place, name))
    member = getattr(place, name)
    if not callable(member):
        return member
    result = member(
        **{
            key: msgspec.convert(value, RECORDS.get(key, Any), dec_hook=lambda kind, text: kind(text))
            for key, value in arguments.items()
        }
    )
    return await result


async def follow(changes: RadioChanges) -> None:
    while True:
        say("changes", sorted(await changes.wait()))


async def main() -> None:
    supplicant = Supplicant(
        0, lambda report: say(type(report).__name__, report), lambda error: say("running", str(error or "yes"))
    )
    numbers = await family()
    with Radios(numbers) as radios, RadioChanges(numbers) as changes:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(supplicant.run)
            nursery.start_soon(follow, changes)
            pending = b""
            async for data in trio.lowlevel.FdStream(0):
                *lines, pending = (pending + data).split(b"\n")
                for line in lines:
                    request = json.loads(line)
                    try:
                        say("answer", await carry_out([supplicant, radios], request.pop("call"), request))
                    except MachineError as error:
                        say("error", str(error))
            nursery.cancel_scope.cancel()


if __name__ == "__main__":
    trio.run(main)
