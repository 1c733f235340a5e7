"""Years of agents in virtual time, with everything that goes wrong on devices in the field.

Each device lives for a year: releases of both programs are published every few weeks, one in three is bad; the cloud
goes away, the clock jumps, the disk is full, files are damaged, the power fails before or after any blocking call, and
the agent crashes at any await. Invariants.check runs after each blocking call, and each confirmation is compared with
what the device has seen of the release. At the end the faults stop, and each device must reach what the cloud wants, or
have rejected it. Each fault must have occurred, and each kind of outcome.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from agent.hooks.moments import HookedChange, HookMoment
from agent.layout import AGENT, PROGRAMS, SERVER
from agent.update import store
from agent.update.record import Release, UpdateResult, UpdateStep
from schema.errors import MachineError
from tests.helpers.agent.cloud import Behavior, sealed
from tests.helpers.agent.device import Device, Open, Steps
from tests.scope import some_of
from tests.sim.agent.scenario import reproducible

HOUR = 3600.0
DAY = 24 * HOUR
YEAR = 365 * DAY
AGENTS = 50
LOOP = 10  # devices of one test

BAD = (
    Behavior(crashes_after=0.1),
    Behavior(crashes_after=200),
    Behavior(crashes_after=595),  # just before it would be confirmed
    Behavior(serves_after=None),
    Behavior(configured=False),
    Behavior(serves_after=900),  # good only if the start timeout allows it
)
OF_AGENT = 4  # of these releases, the first ones may be agents


def flipped(content: bytes) -> bytes:
    return content[:1200] + b"x" + content[1201:]


def another(content: bytes) -> bytes:
    """Return another build of the release: only its hash is wrong."""
    return sealed(flipped(content[:-4]))


async def publish(device: Device, rng: random.Random) -> None:
    """Publish a release from time to time, and let the cloud want it; sometimes withdraw it."""
    number = 1
    while True:
        await trio.sleep(rng.uniform(0, HOUR) if rng.random() < 0.3 else rng.uniform(7, 75) * DAY)
        number += 1
        program = rng.choice(PROGRAMS)
        deliver: Callable[[bytes], bytes] = bytes
        behavior, claims = Behavior(), {}
        kind = rng.random()
        if kind < 0.2:
            behavior = rng.choice(BAD[:OF_AGENT] if program == AGENT else BAD)
        elif kind < 0.26:
            deliver = rng.choice((flipped, another))
        elif kind < 0.32:
            claims = {"program": AGENT if program == SERVER else SERVER}
        release = device.cloud.publish(program, f"1.{number}.0", behavior, deliver=deliver, claims=claims)
        device.offer(program, release, explicit=rng.random() < 0.2)
        if rng.random() < 0.15:
            await trio.sleep(rng.uniform(0, HOUR))
            device.cloud.published[release.sha256].withdrawn = True


async def disturb(device: Device, rng: random.Random) -> None:
    """Let the cloud go away, the disk fill up, the clock jump, and files rot; more often during an update."""
    while True:
        await trio.sleep(rng.expovariate(1 / (3 * DAY)))
        if rng.random() < 0.5:
            with trio.move_on_after(30 * DAY):
                await device.reached(
                    rng.choice((UpdateStep.DOWNLOAD, UpdateStep.VERIFY, UpdateStep.TRIAL, UpdateStep.RECOVER))
                )
                await trio.sleep(rng.uniform(0, rng.choice((2, 600))))
        match rng.randrange(4):
            case 0:
                device.cloud.reachable = False
                await trio.sleep(rng.uniform(60, 3 * DAY))
                device.cloud.reachable = True
            case 1:
                device.disk_full = 0.3
                await trio.sleep(rng.uniform(60, 3 * HOUR))
                device.disk_full = 0.0
            case 2:
                device.occurred["clock jumps"] += 1
                device.wall_offset += rng.choice((-5 * YEAR, 5 * YEAR, -HOUR, HOUR))
            case 3:
                rot(device, rng)


async def during_downloads(device: Device, rng: random.Random) -> None:
    """Damage what is downloaded, and close the maintenance window, so that updates wait and are replaced."""
    while True:
        await device.reached(UpdateStep.DOWNLOAD)
        device.permission = Open("the window is closed" if rng.random() < 0.3 else "")
        await trio.sleep(rng.uniform(0, 15))
        for path in device.layout.downloads.iterdir():
            if rng.random() < 0.5:
                device.occurred["a download rots"] += 1
                path.write_bytes(path.read_bytes()[: rng.randrange(1, 3000)] + b"rot")
        await trio.sleep(rng.uniform(0, 2 * HOUR))
        device.permission = Open()


def rot(device: Device, rng: random.Random) -> None:
    """Damage files of the agent, as a worn-out SD card does."""
    tried = [program for program in PROGRAMS if (device.layout.launch(program) / "trial").exists()]
    program = rng.choice(tried or PROGRAMS)
    record, trial = device.layout.record(program), device.layout.launch(program) / "trial"
    if trial.exists():
        device.occurred["a count of starts rots"] += 1
        trial.write_bytes(b"rot")
    device.occurred["a record rots"] += 1
    device.invariants.damage(program)
    record.write_bytes(b"rot")
    if rng.random() < 0.3:
        device.occurred["a record and its copy rot"] += 1
        record.with_name(record.name + store.COPY).write_bytes(b"rot")


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
    device = Device(folder, rng, faults=rng.choice((0.0, 0.005, 0.03)), crashes=rng.choice((0.0, 0.002, 0.01)))
    device.offered_every = 6 * HOUR
    device.clock_is_lost = rng.random() < 0.5
    device.server.start_timeout = rng.choice((600.0, 1500.0))
    if device.faults:
        device.cuts = {
            UpdateStep.SWITCH: 0.1,
            UpdateStep.TRIAL: 0.1,
            UpdateStep.ROLL_BACK: 0.1,
            UpdateStep.RECOVER: 0.1,
            None: 0.1,
        }

    async def during(moment: HookMoment, change: HookedChange) -> None:
        """Let machine-server crash while a hook of its owner runs."""
        if rng.random() < 0.2:
            device.occurred["machine-server crashes before an update"] += 1
            device.server.crash()
            await trio.sleep(rng.uniform(0.1, 3))

    device.hooks.during = during
    for program in PROGRAMS:
        device.install(program)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(device.run)
        async with trio.open_nursery() as trouble:
            for task in (publish, disturb, during_downloads, people):
                trouble.start_soon(task, device, rng)
            await trio.sleep(YEAR)
            trouble.cancel_scope.cancel()
        device.faults = device.disk_full = device.crashes = 0.0
        device.cuts.clear()
        device.cloud.reachable = True
        device.permission = Open()
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
    offer = device.offered.get(program)
    if offer is None:
        return
    offered: Release = offer.release
    if current != offered:
        assert record.is_quarantined(offered) or device.cloud.published[offered.sha256].withdrawn, record
    behavior = device.cloud.behavior(current.sha256)
    if current.sha256 in device.invariants.tried_offline:
        behavior = replace(behavior, configured=True)
    assert behavior.is_good(device.server.start_timeout), f"a bad release of {program} was confirmed: {behavior}"
    running = device.server.release if program == SERVER else device.agents[-1]
    assert running == current.sha256


FAULTS = {
    "cloud is away": 10,
    "machine-server crashes before an update": 10,
    "clock jumps": 20,
    "clock is lost with the power": 5,
    "disk is full": 20,
    "a download rots": 10,
    "a count of starts rots": 2,
    "a record rots": 20,
    "a record and its copy rot": 5,
    "power fails before a call": 30,
    "power fails after a call": 30,
    "agent is killed at an await": 20,
    "agent ends at an await": 20,
}
"""How often each fault must occur at least on the devices of one test."""
OUTCOMES = {
    (program, result): 3 for program in PROGRAMS for result in UpdateResult if result is not UpdateResult.SUPERSEDED
}
"""How often an update of each program must end in each way."""


@pytest.mark.parametrize("first", some_of(1, range(0, AGENTS, LOOP), 15))
async def test_a_year(first: int, tmp_path: Path, autojump_clock: MockClock) -> None:
    occurred: Counter[str] = Counter()
    outcomes: Counter[tuple[str, UpdateResult]] = Counter()
    trio.lowlevel.add_instrument(Steps())
    for seed in range(first, first + LOOP):
        reproducible(seed)
        begun = trio.current_time()
        device = await live(tmp_path / str(seed), seed)
        assert trio.current_time() - begun >= YEAR
        assert device.invariants.checks > 100
        for program in PROGRAMS:
            settled(device, program)
            record = device.drivers[program].record
            assert record is not None
            outcomes.update((program, outcome.result) for outcome in record.history)
        occurred += device.occurred
    print(dict(occurred), {f"{program} {result.value}": count for (program, result), count in outcomes.items()})
    assert {fault for fault, least in FAULTS.items() if occurred[fault] < least} == set(), "too few of these faults"
    assert {end for end, least in OUTCOMES.items() if outcomes[end] < least} == set(), "too few of these outcomes"
