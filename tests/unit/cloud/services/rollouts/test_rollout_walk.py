"""Random steps of owners, operators and machines: each machine gets the revision that the rollout gives it, always."""

from __future__ import annotations

import json
import random
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest

from cloud.domain.configurations import configurations
from cloud.server.memory import MemoryCloud
from schema import MachineError
from tests.unit.cloud.conftest import Clock
from tests.unit.cloud.services.rollouts.rollout_help import Machine, call, fleet, fragment, plan, proceed, save

ACTIONS = ("pause", "resume", "next", "stop", "next", "resume", "back", "finish")
STEPS = 60


class Walk:
    """A rollout with machines of which some lie about what they run."""

    def __init__(self, cloud: MemoryCloud, clock: Clock, chance: random.Random) -> None:
        self.cloud, self.clock, self.chance = cloud, clock, chance
        self.owner = cloud.first.organization
        self.subject = self.new = self.rollout = ""
        self.machines: list[Machine] = []
        self.pinned: set[str] = set()

    async def begin(self) -> None:
        self.subject = await fragment(self.cloud)
        self.machines = await fleet(self.cloud, 10, self.subject)
        self.new = await save(self.cloud, self.subject)
        chosen = plan(self.subject, self.new, 20, 50, 100, stop_after=self.chance.choice((0, 2, None)))
        self.rollout = await call(self.cloud, "start_staged_rollout", organization_id=self.owner, plan=chosen)

    async def step(self) -> None:
        machine = self.chance.choice(self.machines)
        match self.chance.randrange(12):
            case 0 | 1 | 2:
                await machine.follow()
            case 3:
                self.clock.now += timedelta(seconds=self.chance.choice((1, 61, 301, 660, -120)))
            case 4:
                await machine.stop()
            case 5:
                value = self.chance.choice((float("nan"), float("inf"), -5, 10**30, "many", True))
                await machine.report(unhealthy=value, problems=value, rejected="x" * 20_000 + "\0")
            case 6:  # it claims to run what it does not
                claim = self.chance.choice((self.new, "1", "99999999999", "-", ""))
                await machine.report(revision=f"1+{self.subject[:8]}-{claim}")
            case 7:
                entry = self.chance.choice((self.subject, {"id": self.subject, "version": "1"}))
                self.pinned = self.pinned - {machine.part} | ({machine.part} if isinstance(entry, dict) else set())
                text = json.dumps({"fragments": [entry], "debug": self.chance.random() < 0.5})
                await self.cloud.app("update_robot_part", id=machine.part, robot_config_json=text)
            case 8:
                action = self.chance.choice(ACTIONS)
                with suppress(MachineError):  # its state does not permit it
                    await call(
                        self.cloud, "change_staged_rollout", organization_id=self.owner, id=self.rollout, action=action
                    )
            case _:
                await proceed(self.cloud)

    async def check(self) -> None:
        entry = (await call(self.cloud, "get_staged_rollout", organization_id=self.owner, id=self.rollout))["rollout"]
        listed = await call(self.cloud, "list_staged_machines", organization_id=self.owner, id=self.rollout, limit=100)
        members = {each["part_id"]: each for each in listed["machines"]}
        assert len(members) == entry["total"] == sum(stage["machines"] for stage in entry["stages"])
        for machine in self.machines:
            assert await self.served(machine) == self.expected(entry, members[machine.part])

    def expected(self, entry: Any, member: Any) -> str:
        if member["part_id"] in self.pinned or entry["state"] == "reverted":
            return "1"
        if entry["state"] == "finished":
            return self.new
        kept = entry["state"] == "active" or member.get("taken") is not None
        return self.new if member["stage"] <= entry["stage"] and kept else "1"

    async def served(self, machine: Machine) -> str:
        """Return the revision in the configuration that a machine would get, without a report of it."""
        merged = await self.cloud.cloud.store.read(lambda sql: configurations.resolved(sql, machine.part))
        return {"speed1": "1", "speed2": self.new}[merged["log"][0]["pattern"]]


@pytest.mark.parametrize("seed", range(12))
async def test_machines_get_what_the_rollout_gives_them_at_each_step(
    cloud: MemoryCloud, clock: Clock, seed: int
) -> None:
    walk = Walk(cloud, clock, random.Random(seed))
    await walk.begin()
    for _ in range(STEPS):
        await walk.step()
        await walk.check()
