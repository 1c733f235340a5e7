"""A machine somewhere else, reached as clients reach it: `--rig host:port`, or an address that another rig has made."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

import trio

from rpc.api.client import ApiClient
from rpc.client import Channel
from rpc.credentials import ApiKey
from runtime.machine import Machine
from runtime.rig.faults import Bench, Context
from runtime.rig.plant import PlantLink
from runtime.rig.setup import Backend, Setup
from runtime.sessions import SESSION_KEY
from schema.errors import ErrorKind, MachineError
from schema.names import ResourceName

ROBOT: Final = "viam.robot.v1.RobotService"
NOT_CONFIGURED: Final = "not configured"
START_LIMIT: Final = 60.0  # seconds until every resource is ready
SAFE_LIMIT: Final = 20.0  # seconds for stopping everything that moves


@asynccontextmanager
async def open_address(setup: Setup) -> AsyncIterator[Backend]:
    """The machine at the address; its configuration is its own, and has to have what the test's has."""
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
    """A client in a session: should this computer vanish, the machine stops what it was commanded to do."""
    client = ApiClient(channel)
    started = await client.call(ROBOT, "", "start_session", resume="")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_stay_in_touch, client, started)
        yield ApiClient(channel, metadata={SESSION_KEY: started["id"]})
        nursery.cancel_scope.cancel()


async def _stay_in_touch(client: ApiClient, session: Mapping[str, Any]) -> None:
    pause = session["heartbeat_window"].total_seconds() / 4
    while True:
        await trio.sleep(pause)
        await client.call(ROBOT, "", "send_session_heartbeat", id=session["id"])


async def wait_ready(client: ApiClient, document: Mapping[str, Any]) -> None:
    """Wait until every resource of the document is ready on the machine; MachineError names those that are not."""
    wanted = {
        f"{entry['api']}/{entry['name']}"
        for section in ("components", "services")
        for entry in document.get(section, ())
        if isinstance(entry, Mapping) and "api" in entry and "name" in entry
    }
    missing: dict[str, str] = {}
    with trio.move_on_after(START_LIMIT):
        while True:
            status = await client.call(ROBOT, "", "get_machine_status")
            missing = _missing(wanted, status.get("resources", ()))
            if not missing:
                return
            if status["state"] != "INITIALIZING" and set(missing.values()) == {NOT_CONFIGURED}:
                break  # it has tried everything it knows
            await trio.sleep(0.2)
    raise MachineError(
        "the machine is not ready:\n" + "\n".join(f"{name}: {why}" for name, why in sorted(missing.items())),
        kind=ErrorKind.PRECONDITION,
        remedy="give it the configuration of the test",
    )


def _missing(wanted: set[str], resources: Any) -> dict[str, str]:
    missing = dict.fromkeys(wanted, NOT_CONFIGURED)
    for one in resources:
        name = str(one["name"])
        if name in missing:
            if one["state"] == "READY":
                del missing[name]
            else:
                missing[name] = f"{one['state'].lower()} {one.get('error', '')}".rstrip()
    return missing


class RemoteMachine:
    """What a test has of it. Between tests it goes on running, with everything that moves stopped."""

    machine: Machine | None = None
    power_loss: Callable[[], Context] | None = None

    def __init__(self, client: ApiClient, bench: Bench | None = None, plant: PlantLink | None = None) -> None:
        self.client = client
        self.bench = bench
        self.plant = plant


async def stop_everything(client: ApiClient) -> list[str]:
    """StopAll, then ask each actuator whether it rests; what could not be stopped, in words. Bounded by SAFE_LIMIT."""
    from runtime.apis import base_of
    from runtime.resource import Actuator

    wrong: list[str] = []
    with trio.move_on_after(SAFE_LIMIT) as limit:
        try:
            await client.call(ROBOT, "", "stop_all", extra=[])
            for name in map(ResourceName.parse, await client.call(ROBOT, "", "resource_names")):
                base = base_of(name.api)
                moves = base is not None and issubclass(base, Actuator)
                if moves and await client.call(name.api, name.short, "is_moving"):
                    wrong.append(f"{name} still moves after StopAll")
        except MachineError as error:
            wrong.append(f"the machine could not be asked to stop everything: {error}")
    if limit.cancelled_caught:
        wrong.append(f"the machine did not stop everything within {SAFE_LIMIT:g} s")
    return wrong
