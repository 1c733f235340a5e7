"""Bring actuators to rest: all of them, or those that a vanished client commanded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

import trio

from runtime.resource import Actuator
from schema.errors import ErrorKind, MachineError

if TYPE_CHECKING:
    from runtime.host import ResourceHost
    from runtime.machine import Machine
    from runtime.operations import Operation

STOP_LIMIT: Final = 10.0  # seconds for all of them together; they are stopped at the same time


async def stop_all(
    machine: Machine, extra: Mapping[str, Mapping[str, Any]] | None = None, *, besides: Operation | None = None
) -> None:
    """Cancel every operation but `besides` (the caller's own), then stop every actuator, even if the caller is gone.

    `extra` maps full resource names to additional arguments of their stop. Raises MachineError listing each resource
    that could not be stopped and why, after all the others were.
    """
    machine.operations.cancel_all(besides=besides)
    failures = await stop_resources(machine, tuple(machine.hosts), extra)
    if failures:
        listed = "; ".join(f"{name}: {error}" for name, error in sorted(failures.items()))
        raise MachineError(f"{len(failures)} not stopped: {listed}", kind=ErrorKind.INTERNAL)


async def stop_resources(
    machine: Machine, names: Iterable[str], extra: Mapping[str, Mapping[str, Any]] | None = None
) -> dict[str, Exception]:
    """Stop those of `names` that are ready actuators, at the same time; the errors by name, none raised.

    Not cancelled with its caller; bounded by STOP_LIMIT. A resource that is not ready is at rest: its host saw to that.
    """
    failures: dict[str, Exception] = {}
    hosts = [host for name in names if (host := machine.hosts.get(name)) is not None]
    actuators = [host for host in hosts if isinstance(host.resource, Actuator)]
    waiting = {str(host.name) for host in actuators}

    async def stop(host: ResourceHost) -> None:
        name = str(host.name)
        try:
            async with host.use():
                assert isinstance(host.resource, Actuator)
                await host.resource.stop(extra=(extra or {}).get(name))
        except Exception as error:
            if host.is_open:
                failures[name] = error
        waiting.discard(name)

    with trio.move_on_after(STOP_LIMIT, shield=True):
        async with trio.open_nursery() as nursery:
            for host in actuators:
                nursery.start_soon(stop, host, name=f"stop {host.name}")
    for name in waiting:
        failures[name] = MachineError(f"not at rest within {STOP_LIMIT:g} s", kind=ErrorKind.TIMEOUT)
    return failures
