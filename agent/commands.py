"""The commands of the control socket for updates and for leases."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Mapping
from typing import Any, Final

import msgspec
import structlog
import trio

from agent.console.server import Command
from agent.control.fetch import CALL_LIMIT, Fetcher
from agent.control.requests import CloudRequest
from agent.layout import PROGRAMS, SERVER
from agent.leases.leases import Leases
from agent.updates import Updates
from schema import ErrorKind, MachineError
from schema.agent import shown_url
from uplink.releases import CHECK, UPDATE

_log = structlog.get_logger("agent.cloud")
_NAMES: Final = " or ".join(PROGRAMS)


class UpdateCommands:
    """Commands for `agent.console.server`, and requests of the cloud. `fetcher` asks the cloud."""

    def __init__(self, updates: Updates, fetcher: Fetcher) -> None:
        self._updates, self._fetcher = updates, fetcher

    async def update(self, arguments: Mapping[str, Any]) -> AsyncGenerator[Any, None]:
        """Install `choice` (a version or URL), or what the cloud wants if it is missing; "" ends an earlier choice.

        With `now`, do not wait for maintenance.
        """
        name, choice, at_once = _program(arguments), arguments.get("choice"), arguments.get("now") is True
        if choice is None and at_once:
            await self.update_now(name)
        elif choice is None:
            self._fetcher.hurry()
        elif isinstance(choice, str):
            await self._updates.offers.choose(name, choice, at_once=at_once)
        else:
            raise _invalid("choice", choice, "a version or URL")
        yield {"program": name, "choice": shown_url(choice) if choice else "", "now": at_once}

    async def update_now(self, name: str) -> None:
        """Ask the cloud, and do not wait for maintenance with what is wanted then. PRECONDITION if it is not updated.

        Without an answer of the cloud, that is what was wanted before.
        """
        self._updates.driver(name)
        with trio.move_on_after(CALL_LIMIT):
            await self._fetcher.ask()
        self._updates.offers.hurry(name)

    async def carry_out(self, request: CloudRequest) -> None:
        """Carry out a request of the cloud; a request that cannot be carried out is logged."""
        try:
            if request.kind == UPDATE:
                await self.update_now(request.program)
            elif request.kind == CHECK:
                self._fetcher.hurry()
            else:
                _log.warning("a request of the cloud is unknown", request=request.kind, remedy="update machine-agent")
        except MachineError as error:
            _log.error("a request of the cloud cannot be carried out", request=request.kind, error=str(error))

    async def rollback(self, arguments: Mapping[str, Any]) -> AsyncGenerator[Any, None]:
        """Go back to the release that ran before."""
        name = _program(arguments)
        await self._updates.driver(name).roll_back()
        record = self._updates.record(name)
        yield {"program": name, "version": record.slots.current.version if record is not None else ""}

    async def hold(self, arguments: Mapping[str, Any]) -> AsyncGenerator[Any, None]:
        """Switch to no other release before `until` (seconds since 1970), or again at once if it is 0."""
        name, until = _program(arguments), arguments.get("until")
        if not isinstance(until, int | float) or isinstance(until, bool):
            raise _invalid("until", until, "seconds since 1970")
        await self._updates.driver(name).hold(float(until))
        yield {"program": name, "until": until}


class LeaseCommands:
    """Commands with which programs hold off maintenance."""

    def __init__(self, leases: Leases, updates: Updates) -> None:
        self._leases, self._updates = leases, updates

    def commands(self) -> Mapping[str, Command]:
        """Return the commands by name."""
        return {"lease-take": self.take, "lease-release": self.release, "lease-list": self.current}

    async def take(self, arguments: Mapping[str, Any]) -> AsyncGenerator[Any, None]:
        """Hold off maintenance for `seconds`, or renew that. `late` names programs that are being switched already."""
        seconds, note = arguments.get("seconds"), arguments.get("note", "")
        if not isinstance(seconds, int | float) or isinstance(seconds, bool):
            raise _invalid("seconds", seconds, "a number")
        if not isinstance(note, str):
            raise _invalid("note", note, "text")
        held = await self._leases.take(_name(arguments), float(seconds), note)
        late = [name for name in PROGRAMS if self._updates.is_switching(name)]
        yield {"name": held.name, "until": held.until, "late": late}

    async def release(self, arguments: Mapping[str, Any]) -> AsyncGenerator[Any, None]:
        """End a lease."""
        name = _name(arguments)
        await self._leases.release(name)
        yield {"name": name}

    async def current(self, arguments: Mapping[str, Any]) -> AsyncGenerator[Any, None]:
        """Return the leases that count now."""
        yield {"time": time.time(), "leases": [msgspec.to_builtins(held) for held in await self._leases.current()]}


def _name(arguments: Mapping[str, Any]) -> str:
    name = arguments.get("name")
    if not isinstance(name, str):
        raise _invalid("name", name, "the name of a lease")
    return name


def _program(arguments: Mapping[str, Any]) -> str:
    name = arguments.get("program", SERVER)
    if name not in PROGRAMS:
        raise _invalid("program", name, _NAMES)
    return str(name)


def _invalid(argument: str, value: object, expected: str) -> MachineError:
    return MachineError(f"{argument} is {str(value)[:100]!r}", kind=ErrorKind.INVALID, remedy=f"expected {expected}")
