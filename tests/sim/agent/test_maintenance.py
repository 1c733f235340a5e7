"""Months of devices whose owners restrict maintenance, in virtual time: windows, leases, a sensor, and hooks that fail.

Nothing switches while it is forbidden, and no update waits longer than the longest deferral if there is one.
"""

from __future__ import annotations

import random
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from agent.hooks.moments import HookMoment
from agent.layout import PROGRAMS
from agent.leases.lease import LONGEST
from schema.errors import MachineError
from tests.helpers.agent.cloud import Behavior
from tests.scope import selected
from tests.sim.agent.owner import DAY, HOUR, MINUTE, OwnedDevice
from tests.sim.agent.test_years import settled

PERIOD = 45 * DAY
DEVICES = 3 if selected() else 1


async def publish(device: OwnedDevice, rng: random.Random) -> None:
    """Publish releases every few days; one in four is bad."""
    number = 1
    while True:
        await trio.sleep(rng.uniform(1, 4) * DAY)
        number += 1
        program = rng.choice(PROGRAMS)
        behavior = Behavior(crashes_after=0.1) if rng.random() < 0.25 else Behavior()
        device.offer(program, device.cloud.publish(program, f"1.{number}.0", behavior))


async def restrict(device: OwnedDevice, rng: random.Random) -> None:
    """Change the window and the sensor from time to time."""
    while True:
        await trio.sleep(rng.expovariate(1 / (8 * HOUR)))
        if rng.random() < 0.2:
            start = rng.randrange(24)
            device.set_window(rng.choice((None, (start, (start + rng.randrange(1, 6)) % 24))))
        else:
            device.reason = rng.choice((None, "the arm moves"))


async def programs(device: OwnedDevice, rng: random.Random) -> None:
    """Take leases, release some, forget others, and write what is not a lease."""
    while True:
        await trio.sleep(rng.expovariate(1 / (6 * HOUR)))
        name = rng.choice(("flash", "backup", "export"))
        match rng.randrange(4):
            case 0:
                await device.spoil(name)
            case 1:
                await device.take(name, rng.uniform(1, 3) * LONGEST)
            case _:
                await device.take(name, rng.uniform(MINUTE, 12 * HOUR))
                await trio.sleep(rng.uniform(0, 12 * HOUR))
                if rng.random() < 0.7:
                    device.release(name)


async def hooks(device: OwnedDevice, rng: random.Random) -> None:
    """Let hooks refuse or hang for some hours."""
    while True:
        await trio.sleep(rng.expovariate(1 / (12 * HOUR)))
        moment = rng.choice(
            (HookMoment.BEFORE_UPDATE, HookMoment.BEFORE_SWITCH, HookMoment.BEFORE_SWITCH, HookMoment.BEFORE_ROLLBACK)
        )
        if rng.random() < 0.5:
            device.hooks.refusals[moment] = "exit code 3"
        else:
            device.hooks.hangs.add(moment)
        device.hooks.edit()
        await trio.sleep(rng.expovariate(1 / (12 * HOUR)))
        device.hooks.refusals.clear()
        device.hooks.hangs.clear()
        device.hooks.edit()


async def disturb(device: OwnedDevice, rng: random.Random) -> None:
    """Set the clock, let the cloud go away, and let a person request an update."""
    while True:
        await trio.sleep(rng.expovariate(1 / (2 * DAY)))
        match rng.randrange(3):
            case 0:
                device.wall_offset += rng.choice((-90 * DAY, 90 * DAY, -HOUR, HOUR))
            case 1:
                device.cloud.reachable = False
                await trio.sleep(rng.uniform(MINUTE, DAY))
                device.cloud.reachable = True
            case 2:
                program = rng.choice(PROGRAMS)
                if program in device.drivers and program in device.offered:
                    with trio.move_on_after(MINUTE), suppress(MachineError):
                        await device.drivers[program].offer(device.offered[program], now=True)


async def live(folder: Path, seed: int) -> OwnedDevice:
    """Let a device live for the period, and recover without restrictions; return it."""
    rng = random.Random(seed)
    device = OwnedDevice(folder, rng, rng.choice((0.0, 12 * HOUR, 36 * HOUR)), faults=rng.choice((0.0, 0.005)))
    device.offered_every = HOUR
    for program in PROGRAMS:
        device.install(program)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(device.run)
        async with trio.open_nursery() as trouble:
            for task in (publish, restrict, programs, hooks, disturb):
                trouble.start_soon(task, device, rng)
            await trio.sleep(PERIOD)
            trouble.cancel_scope.cancel()
        device.faults = 0.0
        device.cloud.reachable = True
        device.wall_offset = 0.0
        device.reason = None
        device.set_window(None)
        device.hooks.refusals.clear()
        device.hooks.hangs.clear()
        device.hooks.edit()
        await trio.sleep(10 * DAY)
        nursery.cancel_scope.cancel()
    return device


async def test_nothing_switches_while_it_is_forbidden_and_nothing_waits_too_long(
    tmp_path: Path, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "UTC0")
    happened: Counter[str] = Counter()
    for seed in range(DEVICES):
        device = await live(tmp_path / str(seed), seed)
        for program in PROGRAMS:
            settled(device, program)
        happened += device.happened
    print(dict(happened))
    for fact in (
        "switch",
        "switch after the longest deferral",
        "hook refused",
        "hook accepted",
        "lease while the hook ran",
        "waited",
    ):
        assert happened[fact] >= DEVICES, f"the trouble was not made: {dict(happened)}"
