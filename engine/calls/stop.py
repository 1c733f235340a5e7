"""Stops actuators: all of them, or those that a lost client commanded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

import trio

from engine.resource import Actuator
from schema import ErrorKind, MachineError

if TYPE_CHECKING:
    from engine.calls.operations import Operation, Operations
    from engine.calls.sessions import Sessions
    from engine.host import ResourceHost
    from engine.roster import Roster

STOP_LIMIT: Final = 10.0  # seconds for all actuators, which are stopped concurrently


async def stop_all(
    roster: Roster,
    operations: Operations,
    sessions: Sessions,
    extra: Mapping[str, Mapping[str, Any]] | None = None,
    *,
    excluding: Operation | None = None,
) -> None:
    """Cancel all operations except `excluding` (the caller's own), then stop all actuators, even if cancelled.

    Ends the sessions in which a person holds something, so that the machine moves again only after a new press.
    `extra` maps full resource names to additional arguments for `stop`. If some resources could not be stopped, raises
    MachineError with their names and reasons after trying all.
    """
    sessions.interrupt()
    operations.cancel_all(excluding=excluding)
    failures = await stop_resources(roster, tuple(roster.hosts), extra)
    if failures:
        listed = "; ".join(f"{name}: {error}" for name, error in sorted(failures.items()))
        raise MachineError(
            f"{len(failures)} {'actuator' if len(failures) == 1 else 'actuators'} could not be stopped: {listed}",
            kind=ErrorKind.INTERNAL,
        )


async def stop_resources(
    roster: Roster, names: Iterable[str], extra: Mapping[str, Mapping[str, Any]] | None = None
) -> dict[str, Exception]:
    """Stop the ready actuators among `names` concurrently; returns the errors by name, and raises none.

    Shielded from cancellation, limited to STOP_LIMIT. A resource that is not ready is at rest: its host has stopped it.
    """
    failures: dict[str, Exception] = {}
    hosts = [host for name in names if (host := roster.hosts.get(name)) is not None]
    actuators = [host for host in hosts if isinstance(host.resource, Actuator)]
    pending = {str(host.name) for host in actuators}

    async def stop(host: ResourceHost) -> None:
        name = str(host.name)
        try:
            async with host.use():
                assert isinstance(host.resource, Actuator)
                await host.resource.stop(extra=(extra or {}).get(name))
        except Exception as error:
            if host.is_open:
                failures[name] = error
        pending.discard(name)

    with trio.move_on_after(STOP_LIMIT, shield=True):
        async with trio.open_nursery() as nursery:
            for host in actuators:
                nursery.start_soon(stop, host, name=f"stop {host.name}")
    for name in pending:
        failures[name] = MachineError(f"did not stop within {STOP_LIMIT:g} s", kind=ErrorKind.TIMEOUT)
    return failures
