"""A remote machine, accessed as clients access it: `--rig host:port`, or an address that another rig provides."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

import trio

from engine import SESSION_KEY
from rig.faults import Bench, Context
from rig.plant import PlantLink
from rig.setup import Backend, Setup
from rpc.api import ApiClient
from rpc.client import ApiKey, Channel
from runtime.server import Machine
from schema import ErrorKind, MachineError, ResourceName

ROBOT: Final = "viam.robot.v1.RobotService"
NOT_CONFIGURED: Final = "not configured"
START_LIMIT: Final = 60.0  # seconds until every resource is ready
SAFE_LIMIT: Final = 20.0  # seconds to stop everything that moves


@asynccontextmanager
async def open_address(setup: Setup) -> AsyncIterator[Backend]:
    """Connect to the machine at the address. Its own configuration must contain the resources of the test's."""
    async with Channel(setup.kind, credentials=_credentials()) as channel, open_session(channel) as client:
        await wait_ready(client, setup.document)
        try:
            yield RemoteMachine(client)
        finally:
            with trio.CancelScope(shield=True):
                setup.unsafe.extend(await stop_everything(client))


def _credentials() -> ApiKey | None:
    identity, key = os.environ.get("MACHINE_API_KEY_ID", ""), os.environ.get("MACHINE_API_KEY", "")
    return ApiKey(identity, key) if key else None


@asynccontextmanager
async def open_session(channel: Channel) -> AsyncIterator[ApiClient]:
    """Open a client session: if this computer disappears, the machine stops what the session has set in motion."""
    client = ApiClient(channel)
    started = await client.call(ROBOT, "", "start_session", resume="")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_send_heartbeats, client, started)
        yield ApiClient(channel, metadata={SESSION_KEY: started["id"]})
        nursery.cancel_scope.cancel()


async def _send_heartbeats(client: ApiClient, session: Mapping[str, Any]) -> None:
    pause = session["heartbeat_window"].total_seconds() / 4
    while True:
        await trio.sleep(pause)
        await client.call(ROBOT, "", "send_session_heartbeat", id=session["id"])


async def wait_ready(client: ApiClient, document: Mapping[str, Any]) -> None:
    """Wait until every resource of the document is ready on the machine. MachineError names those that are not."""
    required = {
        f"{entry['api']}/{entry['name']}"
        for section in ("components", "services")
        for entry in document.get(section, ())
        if isinstance(entry, Mapping) and "api" in entry and "name" in entry
    }
    missing: dict[str, str] = {}
    with trio.move_on_after(START_LIMIT):
        while True:
            status = await client.call(ROBOT, "", "get_machine_status")
            missing = _missing(required, status.get("resources", ()))
            if not missing:
                return
            if status["state"] != "INITIALIZING" and set(missing.values()) == {NOT_CONFIGURED}:
                break  # the machine has tried all its resources, and has none of those in the document
            await trio.sleep(0.2)
    raise MachineError(
        "the machine is not ready:\n" + "\n".join(f"{name}: {why}" for name, why in sorted(missing.items())),
        kind=ErrorKind.PRECONDITION,
        remedy="give it the configuration of the test",
    )


def _missing(required: set[str], resources: Any) -> dict[str, str]:
    missing = dict.fromkeys(required, NOT_CONFIGURED)
    for status in resources:
        name = str(status["name"])
        if name in missing:
            if status["state"] == "READY":
                del missing[name]
            else:
                missing[name] = f"{status['state'].lower()} {status.get('error', '')}".rstrip()
    return missing


class RemoteMachine:
    """The backend of a remote machine. Between tests the machine keeps running, with everything that moves stopped."""

    machine: Machine | None = None
    power_loss: Callable[[], Context] | None = None

    def __init__(self, client: ApiClient, bench: Bench | None = None, plant: PlantLink | None = None) -> None:
        self.client = client
        self.bench = bench
        self.plant = plant


async def stop_everything(client: ApiClient) -> list[str]:
    """Call StopAll, then check that no actuator moves; return a list of failures. Bounded by SAFE_LIMIT."""
    from engine import Actuator, base_of

    failures: list[str] = []
    with trio.move_on_after(SAFE_LIMIT) as limit:
        try:
            await client.call(ROBOT, "", "stop_all", extra=[])
            for name in map(ResourceName.parse, await client.call(ROBOT, "", "resource_names")):
                base = base_of(name.api)
                moves = base is not None and issubclass(base, Actuator)
                if moves and await client.call(name.api, name.short, "is_moving"):
                    failures.append(f"{name} still moves after StopAll")
        except MachineError as error:
            failures.append(f"the machine could not be asked to stop everything: {error}")
    if limit.cancelled_caught:
        failures.append(f"the machine did not stop everything within {SAFE_LIMIT:g} s")
    return failures
