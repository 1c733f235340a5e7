"""Rollouts of a version of a program in stages: offers to agents, failures that they report, and the way back."""

from __future__ import annotations

import hashlib
import json
from datetime import timedelta
from typing import Any

import pytest

from cloud.domain.releases import own
from cloud.domain.releases.metadata import SignedTarget
from cloud.server.memory import MemoryCloud
from cloud.services.agents.agent_service import AgentService
from cloud.values.author import PART, Author
from schema import ErrorKind, MachineError
from tests.unit.cloud.conftest import Clock
from tests.unit.cloud.release_help import SERVER, Person, opened, publish, send, service
from tests.unit.cloud.services.releases.test_rollouts import parts, report, use, version
from tests.unit.cloud.services.rollouts.rollout_help import call, proceed
from uplink.releases import Custom

OLD, NEW = "1.0.0", "2.0.0"


def plan(*shares: float, **more: Any) -> dict[str, Any]:
    stages = [{"percent": share} for share in shares]
    return {"kind": "program", "subject": SERVER, "revision": NEW, "stages": stages, "soak_seconds": 300, **more}


async def runs(cloud: MemoryCloud, part: str, number: str) -> None:
    """Report as an agent that runs a version."""
    text = json.dumps({"format": 1, "time": 1.0, "agent": {}, "server": {"version": number}})
    await AgentService(cloud.cloud, Author(PART, part)).report_agent(part, text.encode())


async def fleet(cloud: MemoryCloud, count: int) -> list[str]:
    machines = await parts(cloud, count)
    for part in machines:
        await use(cloud, part, "stable")
        await runs(cloud, part, OLD)
    return machines


async def started(cloud: MemoryCloud, *shares: float, **more: Any) -> str:
    created: str = await call(
        cloud, "start_staged_rollout", organization_id=cloud.first.organization, plan=plan(*shares, **more)
    )
    return created


async def shown(cloud: MemoryCloud, rollout: str) -> Any:
    reply = await call(cloud, "get_staged_rollout", organization_id=cloud.first.organization, id=rollout)
    return reply["rollout"]


async def act(cloud: MemoryCloud, rollout: str, action: str) -> Any:
    return await call(
        cloud, "change_staged_rollout", organization_id=cloud.first.organization, id=rollout, action=action
    )


async def offered(cloud: MemoryCloud, machines: list[str], running: str = OLD) -> list[str | None]:
    return [await version(cloud, part, running) for part in machines]


async def people(cloud: MemoryCloud) -> Person:
    """Publish two versions with keys of people: the newer one in the channel dev."""
    person = await opened(cloud, OLD, channels=["stable"])
    person.add(NEW, b"program 2.0.0")
    await publish(cloud, person)
    return person


async def promote(cloud: MemoryCloud, person: Person) -> None:
    person.add(NEW, b"program 2.0.0", ["dev", "stable"])
    await publish(cloud, person)


async def test_a_version_reaches_everyone_stage_by_stage(cloud: MemoryCloud, clock: Clock) -> None:
    person = await people(cloud)
    machines = await fleet(cloud, 4)
    rollout = await started(cloud, 25, 100)
    assert set(await offered(cloud, machines)) == {OLD}  # it is not in the channel stable yet
    await promote(cloud, person)
    for count in (1, 4):
        reached = [part for part, new in zip(machines, await offered(cloud, machines), strict=True) if new == NEW]
        assert len(reached) == count
        for part in reached:
            await runs(cloud, part, NEW)
        await proceed(cloud)
        clock.now += timedelta(minutes=6)
        await proceed(cloud)
    assert (await shown(cloud, rollout))["state"] == "finished"
    assert set(await offered(cloud, machines)) == {NEW}


async def test_roll_backs_stop_it_and_back_offers_the_older_version(cloud: MemoryCloud) -> None:
    person = await people(cloud)
    machines = await fleet(cloud, 4)
    rollout = await started(cloud, 50, 100, stop_after=0)
    await promote(cloud, person)
    reached = [part for part, new in zip(machines, await offered(cloud, machines), strict=True) if new == NEW]
    assert len(reached) == 2
    await runs(cloud, reached[0], NEW)
    await AgentService(cloud.cloud, Author(PART, reached[1])).report_agent(
        reached[1], report(NEW, "rolled_back").encode()
    )
    await proceed(cloud)
    state = await shown(cloud, rollout)
    assert (state["state"], state["reason"]) == ("stopped", "1 machine failed, more than 0")
    reply = await call(
        cloud, "list_staged_machines", organization_id=cloud.first.organization, id=rollout, state="failed"
    )
    assert [each["reason"] for each in reply["machines"]] == ["rolled back: it did not serve"]
    assert await version(cloud, reached[0], NEW) == NEW  # who runs it keeps it
    assert await version(cloud, reached[1], OLD) == OLD
    await act(cloud, rollout, "back")
    assert await version(cloud, reached[0], NEW) == OLD
    await runs(cloud, reached[0], OLD)
    await proceed(cloud)
    assert (await shown(cloud, rollout))["returned"] == 2
    again = await started(cloud, 100)  # the version may be tried again
    assert set(await offered(cloud, machines)) == {NEW}
    assert again != rollout


async def test_there_is_no_way_back_without_an_older_version(cloud: MemoryCloud) -> None:
    person = await opened(cloud, NEW)
    machines = await fleet(cloud, 1)
    rollout = await started(cloud, 100)
    person.add(NEW, b"program 2.0.0", ["dev", "stable"])
    await publish(cloud, person)
    with pytest.raises(MachineError) as caught:
        await act(cloud, rollout, "back")
    assert caught.value.kind is ErrorKind.PRECONDITION
    assert "stop the rollout" in str(caught.value)
    await act(cloud, rollout, "stop")
    assert await offered(cloud, machines) == [None]


async def test_a_machine_that_waits_for_its_own_reasons_is_late_and_does_not_stop_it(
    cloud: MemoryCloud, clock: Clock
) -> None:
    person = await people(cloud)
    machines = await fleet(cloud, 2)
    rollout = await started(cloud, 100, stop_after=0, by_hand=True)
    await promote(cloud, person)
    await runs(cloud, machines[0], NEW)
    await proceed(cloud)
    clock.now += timedelta(minutes=59)
    for part, number in zip(machines, (NEW, OLD), strict=True):
        await runs(cloud, part, number)
    await proceed(cloud)
    assert (await shown(cloud, rollout))["next"] == "waits for 1 machine of the stage to take the change"
    clock.now += timedelta(minutes=2)
    await proceed(cloud)
    state = await shown(cloud, rollout)
    assert (state["state"], state["next"], state["stages"][0]["others"]) == ("active", "all stages are complete", 1)


async def test_the_share_of_a_version_in_stages_is_not_changed_elsewhere(cloud: MemoryCloud) -> None:
    person = await people(cloud)
    await fleet(cloud, 1)
    await started(cloud, 100)
    calls = service(cloud)
    for attempt in (
        calls.start_rollout(person.owner, SERVER, NEW, 100.0),
        calls.set_rollout_state(person.owner, SERVER, NEW, "finished"),
    ):
        with pytest.raises(MachineError) as caught:
            await attempt
        assert "in stages" in str(caught.value)


async def test_a_cloud_with_the_keys_puts_the_version_into_the_channel(cloud: MemoryCloud) -> None:
    person = Person(cloud.first.organization)
    entries = []
    for number, channels in ((OLD, ("stable",)), (NEW, ("dev",))):
        content = f"program {number}".encode()
        person.add(number, content)
        digest = hashlib.sha256(content).hexdigest()
        entries.append(SignedTarget(Custom(SERVER, number, "linux/x86_64", channels), digest, len(content)))
    await send(cloud, person)
    now = cloud.cloud.clock()
    await cloud.cloud.store.write(lambda sql: own.publish(sql, person.owner, now, lambda before: entries))
    machines = await fleet(cloud, 2)
    await started(cloud, 50, 100)
    assert sorted(map(str, await offered(cloud, machines))) == [OLD, NEW]
