"""Years of agents in virtual time, with everything that goes wrong on devices in the field.

Each device lives for a year: releases are published every few weeks, one in three is bad; the cloud goes away, the
clock jumps, the disk is full, downloads and records are damaged, and the power fails before or after any blocking call.
Device.check runs after each of them. At the end the faults stop, and each device must reach what the cloud wants, or
have rejected it.
"""

from __future__ import annotations

import random
from contextlib import suppress
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from agent.layout import AGENT, PROGRAMS, SERVER
from agent.update.record import Release
from schema.errors import MachineError
from tests.sim.agent.device import Behavior, Device

HOUR = 3600.0
DAY = 24 * HOUR
YEAR = 365 * DAY
AGENTS = 50
LOOP = 10  # devices of one test

BAD = (
    Behavior(crashes_after=0.1),
    Behavior(crashes_after=200),
    Behavior(serves_after=None),
    Behavior(configured=False),
)


def flipped(content: bytes) -> bytes:
    return content[:1200] + b"x" + content[1201:]


async def publish(device: Device, rng: random.Random) -> None:
    """Publish a release from time to time, and let the cloud want it; sometimes withdraw it."""
    number = 1
    while True:
        await trio.sleep(rng.uniform(10, 90) * DAY)
        number += 1
        program = rng.choice(PROGRAMS)
        behavior, deliver, claims = Behavior(), bytes, {}
        kind = rng.random()
        if kind < 0.2:
            behavior = rng.choice(BAD[:3] if program == AGENT else BAD)
        elif kind < 0.26:
            deliver = flipped
        elif kind < 0.32:
            claims = {"program": AGENT if program == SERVER else SERVER}
        release = device.cloud.publish(program, f"1.{number}.0", behavior, deliver=deliver, claims=claims)
        device.offer(program, release, explicit=rng.random() < 0.2)
        if rng.random() < 0.15:
            await trio.sleep(rng.uniform(0, HOUR))
            device.cloud.published[release.sha256].withdrawn = True


async def disturb(device: Device, rng: random.Random) -> None:
    """Let the cloud go away, the disk fill up, the clock jump, and files rot."""
    while True:
        await trio.sleep(rng.expovariate(1 / (5 * DAY)))
        match rng.randrange(4):
            case 0:
                device.cloud.reachable = False
                await trio.sleep(rng.uniform(60, 3 * DAY))
                device.cloud.reachable = True
            case 1:
                device.disk_full = 0.3
                await trio.sleep(rng.uniform(60, DAY))
                device.disk_full = 0.0
            case 2:
                device.wall_offset += rng.choice((-5 * YEAR, 5 * YEAR, -HOUR, HOUR))
            case 3:
                for path in device.layout.downloads.iterdir():
                    path.write_bytes(path.read_bytes()[: rng.randrange(1, 3000)] + b"rot")
                device.layout.record(rng.choice(PROGRAMS)).write_bytes(b"rot")


async def people(device: Device, rng: random.Random) -> None:
    """Go back, hold and select releases by hand, a few times in a year."""
    while True:
        await trio.sleep(rng.expovariate(1 / (60 * DAY)))
        driver = device.drivers.get(rng.choice(PROGRAMS))
        if driver is None or driver.record is None:
            continue
        with trio.move_on_after(60):
            with suppress(MachineError):  # there is no older release, or the disk is full
                match rng.randrange(2):
                    case 0:
                        await driver.roll_back()
                    case 1:
                        await driver.hold(driver._clock.now() + rng.uniform(0, DAY))


async def live(folder: Path, seed: int) -> Device:
    """Let a device live for a year and recover for some days; return it."""
    rng = random.Random(seed)
    device = Device(folder, rng, faults=rng.choice((0.0, 0.005, 0.03)))
    device.offered_every = 3 * HOUR
    for program in PROGRAMS:
        device.install(program)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(device.run)
        async with trio.open_nursery() as trouble:
            for task in (publish, disturb, people):
                trouble.start_soon(task, device, rng)
            await trio.sleep(YEAR)
            trouble.cancel_scope.cancel()
        device.faults = device.disk_full = 0.0
        device.cloud.reachable = True
        device.wall_offset = 0.0
        await trio.sleep(10 * DAY)
        nursery.cancel_scope.cancel()
    return device


def settled(device: Device, program: str) -> None:
    """Raise AssertionError unless the program runs what the cloud wants, or something older with a good reason."""
    record = device.drivers[program].record
    assert record is not None
    assert record.progress is None, record.progress
    current = record.slots.current
    offer = device.wanted.get(program)
    if offer is None:
        return
    offered: Release = offer.release
    if current != offered:
        assert record.is_quarantined(offered) or device.cloud.published[offered.sha256].withdrawn, record
    behavior = device.cloud.behavior(current.sha256)
    assert behavior == Behavior(), f"a bad release of {program} was confirmed: {behavior}"
    running = device.server.release if program == SERVER else device.agents[-1]
    assert running == current.sha256


@pytest.mark.parametrize("first", range(0, AGENTS, LOOP))
async def test_a_year(first: int, tmp_path: Path, autojump_clock: MockClock) -> None:
    updates = losses = 0
    for seed in range(first, first + LOOP):
        begun = trio.current_time()
        device = await live(tmp_path / str(seed), seed)
        assert trio.current_time() - begun >= YEAR
        for program in PROGRAMS:
            settled(device, program)
            record = device.drivers[program].record
            updates += len(record.history) if record is not None else 0
        losses += device.power_losses
    assert updates >= LOOP
    assert losses >= 10, "the faults were not injected"
