"""A caller that waits for the progress of a rollout."""

from __future__ import annotations

import math

import pytest
import trio

from cloud.server.memory import MemoryCloud
from cloud.services.rollouts import rollouts
from schema import ErrorKind, MachineError
from tests.unit.cloud.services.rollouts.rollout_help import call, fleet, fragment, plan, proceed, save


async def test_a_caller_waits_until_a_rollout_differs_from_what_it_has_seen(
    cloud: MemoryCloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    subject = await fragment(cloud)
    machines = await fleet(cloud, 2, subject)
    owner, new = cloud.first.organization, await save(cloud, subject)
    chosen = plan(subject, new, 50, 100, by_hand=True)
    where = {
        "organization_id": owner,
        "id": await call(cloud, "start_staged_rollout", organization_id=owner, plan=chosen),
    }
    first = await call(cloud, "wait_for_staged_rollout", **where)
    with monkeypatch.context() as patched:
        patched.setattr(rollouts, "WAIT", 0.01)
        again = await call(cloud, "wait_for_staged_rollout", **where, seen=first["seen"])
    assert again["seen"] == first["seen"]

    monkeypatch.setattr(rollouts, "WAIT", math.inf)
    monkeypatch.setattr(rollouts, "PAUSE", 0)
    replies = []

    async def wait() -> None:
        replies.append(await call(cloud, "wait_for_staged_rollout", **where, seen=first["seen"]))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait)
        for machine in machines:
            assert replies == []
            await machine.follow()
        await proceed(cloud)
    (later,) = replies
    assert later["rollout"]["stages"][0]["updated"] == 1
    await call(cloud, "change_staged_rollout", **where, action="back")
    ended = await call(cloud, "wait_for_staged_rollout", **where, seen=later["seen"])
    last = await call(cloud, "wait_for_staged_rollout", **where, seen=ended["seen"])  # at once
    assert last["rollout"]["state"] == "reverted"
    with pytest.raises(MachineError) as refused:
        await call(cloud, "wait_for_staged_rollout", organization_id=owner, id="nothing")
    assert refused.value.kind is ErrorKind.NOT_FOUND
