"""A version is rolled out to a fleet in virtual time: a bad one stops by itself, the next one reaches every machine.

Who gets a version, and when a rollout stops, is decided by the functions of the cloud; machines are those of `device`.
"""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from agent.layout import AGENT, SERVER
from agent.update.record import Release, UpdateResult
from agent.update.steps import release_to_start
from cloud.domain.releases import decision
from cloud.domain.releases.decision import Rollout, RolloutFacts, RolloutState
from cloud.domain.releases.repository import Published
from tests.helpers.agent.cloud import PLATFORM, Behavior
from tests.helpers.agent.device import Device, Open
from tests.sim.agent.scenario import reproducible
from uplink.releases import STABLE, Custom

HOUR = 3600.0
DAY = 24 * HOUR
MACHINES = 40
PERCENT = 50.0
STOP_AFTER = 3
ASK = 600.0  # seconds between two requests of a machine to the cloud
REACTION = 2 * ASK  # seconds in which each machine has asked the cloud, and offered its driver what it answered


class Organization:
    """The cloud's side: releases in the channel stable, rollouts by version, and the machines that rolled back."""

    def __init__(self) -> None:
        self.published: list[Published] = []
        self.rollouts: dict[str, Rollout] = {}
        self.rolled_back: dict[str, set[str]] = {}
        self.stopped = trio.Event()
        self._releases: dict[str, Release] = {}

    def release(self, release: Release, rollout: Rollout | None = None) -> None:
        """Publish a release, for all machines or with a rollout."""
        self._releases[release.sha256] = release
        custom = Custom(SERVER, release.version, PLATFORM, (STABLE,))
        self.published.append(Published(custom, release.sha256, release.size, release.version))
        if rollout is not None:
            self.rollouts[release.version] = rollout

    def wants(self, part: str, running: str) -> Release:
        """Return the release for a machine that runs a version."""
        target = decision.choose(STABLE, self.published, self.rollouts, RolloutFacts(part, PLATFORM, running=running))
        assert target is not None
        return self._releases[target.digest]

    def report(self, part: str, version: str, result: UpdateResult) -> None:
        """Take the outcome of an update."""
        rollout = self.rollouts.get(version)
        if rollout is None or result is not UpdateResult.ROLLED_BACK:
            return
        failed = self.rolled_back.setdefault(version, set())
        failed.add(part)
        if decision.must_stop(rollout, failed):
            self.rollouts[version] = replace(rollout, state=RolloutState.STOPPED)
            self.stopped.set()


class Fleet:
    """Machines with an agent each. Their maintenance windows open one after the other within a day."""

    def __init__(self, folder: Path, rng: random.Random, faults: float) -> None:
        self.cloud = Organization()
        self.devices = {
            f"part-{number}": Device(folder / str(number), random.Random(rng.random()), faults=faults)
            for number in range(MACHINES)
        }
        for device in self.devices.values():
            device.install(AGENT)
            device.offered_every = ASK / 2
        (current,) = {device.install(SERVER) for device in self.devices.values()}
        self.cloud.release(current)
        self._rng = rng

    async def run(self) -> None:
        async with trio.open_nursery() as nursery:
            for part, device in self.devices.items():
                nursery.start_soon(device.run)
                nursery.start_soon(self._ask, part, device)
                nursery.start_soon(self._open, device, self._rng.uniform(0, DAY))

    async def _ask(self, part: str, device: Device) -> None:
        while True:
            record = device.record(SERVER)
            for outcome in record.history:
                self.cloud.report(part, outcome.version_to, outcome.result)
            device.offer(SERVER, self.cloud.wants(part, release_to_start(record).version))
            await trio.sleep(self._rng.uniform(0.9, 1) * ASK)

    async def _open(self, device: Device, after: float) -> None:
        permission = device.permission
        assert isinstance(permission, Open)
        permission.reason = "the window is closed"
        await trio.sleep(after)
        permission.reason = ""

    def publish(self, version: str, behavior: Behavior | None = None) -> Release:
        """Build a release; all machines can download it."""
        (release,) = {device.cloud.publish(SERVER, version, behavior) for device in self.devices.values()}
        return release

    def tried(self, release: Release) -> set[str]:
        """Return the machines that have started a release."""
        return {part for part, device in self.devices.items() if release.sha256 in device.server.starts}

    def running(self) -> set[str]:
        """Return the versions that are current, of machines on which nothing is in progress."""
        records = [device.record(SERVER) for device in self.devices.values()]
        assert [record.progress for record in records] == [None] * MACHINES
        return {record.slots.current.version for record in records}


@pytest.mark.parametrize(
    ("behavior", "faults"),
    [(Behavior(crashes_after=200), 0.0), (Behavior(serves_after=None), 0.002)],
    ids=["crashes", "never serves, power fails"],
)
async def test_the_rollout_of_a_bad_version_stops_by_itself(
    behavior: Behavior, faults: float, tmp_path: Path, autojump_clock: MockClock
) -> None:
    reproducible(1)
    fleet = Fleet(tmp_path, random.Random(1), faults)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(fleet.run)
        bad = fleet.publish("2.0.0", behavior)
        rollout = Rollout("bad", SERVER, "2.0.0", PERCENT, stop_after=STOP_AFTER)
        fleet.cloud.release(bad, rollout)
        selected = {part for part in fleet.devices if decision.selected(rollout, RolloutFacts(part, PLATFORM))}

        with trio.fail_after(DAY):
            await fleet.cloud.stopped.wait()
        await trio.sleep(REACTION)
        tried = fleet.tried(bad)
        assert STOP_AFTER < len(tried) < len(selected)
        assert tried <= selected
        await trio.sleep(DAY)
        assert fleet.tried(bad) == tried, "machines started a version whose rollout had stopped"
        assert fleet.running() == {"1.0.0"}
        assert all(fleet.devices[part].record(SERVER).is_quarantined(bad) for part in tried)

        for device in fleet.devices.values():
            device.faults = 0.0  # a machine whose power fails three times during a trial rejects any release
        cure = fleet.publish("2.0.1")
        fleet.cloud.release(cure, Rollout("cure", SERVER, "2.0.1", 100.0, stop_after=0))
        await trio.sleep(3 * HOUR)
        assert fleet.running() == {"2.0.1"}
        assert fleet.cloud.rollouts["2.0.1"].state is RolloutState.ACTIVE
        nursery.cancel_scope.cancel()
