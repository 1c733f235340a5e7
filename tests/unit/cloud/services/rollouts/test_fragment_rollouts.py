"""Rollouts of a fragment in stages: who gets the revision when, what stops them, and the way back."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from cloud.domain.organizations.first import create_owner
from cloud.domain.permissions import audit
from cloud.domain.permissions.audit import AuditQuery
from cloud.server.memory import MemoryCloud
from cloud.values.limits import KEPT_ROLLOUTS, OPEN_ROLLOUTS, ROLLOUT_MACHINES
from schema import ErrorKind, MachineError
from tests.unit.cloud.conftest import BOTH, Clock
from tests.unit.cloud.services.rollouts.rollout_help import (
    ARM,
    Machine,
    call,
    document,
    fleet,
    fragment,
    plan,
    proceed,
    save,
)

SOAK = timedelta(minutes=5)


async def started(cloud: MemoryCloud, subject: str, revision: str, *shares: float, **more: Any) -> str:
    chosen = plan(subject, revision, *shares, **more)
    created: str = await call(cloud, "start_staged_rollout", organization_id=cloud.first.organization, plan=chosen)
    return created


async def shown(cloud: MemoryCloud, rollout: str) -> Any:
    reply = await call(cloud, "get_staged_rollout", organization_id=cloud.first.organization, id=rollout)
    return reply["rollout"]


async def act(cloud: MemoryCloud, rollout: str, action: str) -> Any:
    return await call(
        cloud, "change_staged_rollout", organization_id=cloud.first.organization, id=rollout, action=action
    )


async def follow(cloud: MemoryCloud, machines: list[Machine], bad: str = "") -> list[str]:
    """Let all machines fetch and report, and the rollout proceed; return the revisions that they have."""
    revisions = [await machine.follow(bad) for machine in machines]
    await proceed(cloud)
    return revisions


async def refused(cloud: MemoryCloud, name: str, **arguments: Any) -> MachineError:
    with pytest.raises(MachineError) as caught:
        await call(cloud, name, organization_id=cloud.first.organization, **arguments)
    return caught.value


@BOTH
async def test_two_hundred_machines_of_which_ten_break_stop_the_rollout_and_go_back(
    cloud: MemoryCloud, clock: Clock
) -> None:
    subject = await fragment(cloud)
    machines = await fleet(cloud, 200, subject)
    assert {machine.has for machine in machines} == {"1"}
    new = await save(cloud, subject)
    assert set(await follow(cloud, machines)) == {"1"}  # saved, and given to no one
    rollout = await started(cloud, subject, new, stop_after=3)
    listed = await call(cloud, "list_staged_machines", organization_id=cloud.first.organization, id=rollout, limit=1000)
    stages = {each["part_id"]: each["stage"] for each in listed["machines"]}
    for machine in [machine for machine in machines if stages[machine.part] == 1][:10]:
        machine.breaks = True
    revisions: list[str] = []
    for _ in range(40):
        clock.now += timedelta(seconds=30)
        revisions = await follow(cloud, machines, new)
        state = await shown(cloud, rollout)
        if state["state"] != "active":
            break
    assert (state["state"], state["stage"], state["failures"]) == ("stopped", 1, 10)
    assert state["reason"].endswith("machines failed, more than 3")
    reply = await call(cloud, "list_staged_machines", organization_id=cloud.first.organization, id=rollout, limit=1000)
    states = {each["part_id"]: each["state"] for each in reply["machines"]}
    for machine, revision in zip(machines, revisions, strict=True):  # no machine outside of the stages got it
        outside = stages[machine.part] > 1
        assert revision == ("1" if outside else new)
        assert (states[machine.part] == "pending") == outside
    assert {part for part, each in states.items() if each == "failed"} == {m.part for m in machines if m.breaks}
    assert (revisions.count(new), revisions.count("1")) == (50, 150)

    await act(cloud, rollout, "back")
    assert set(await follow(cloud, machines, new)) == {"1"}
    await follow(cloud, machines, new)
    state = await shown(cloud, rollout)
    assert (state["state"], state["returned"], state["returning"]) == ("reverted", 50, 0)


@BOTH
async def test_a_rollout_without_failures_reaches_everyone_stage_by_stage(cloud: MemoryCloud, clock: Clock) -> None:
    subject = await fragment(cloud)
    machines = await fleet(cloud, 20, subject)
    new = await save(cloud, subject)
    rollout = await started(cloud, subject, new)
    counts = []
    for _ in range(3):
        await follow(cloud, machines)
        counts.append((await follow(cloud, machines)).count(new))
        clock.now += SOAK - timedelta(seconds=5)
        await proceed(cloud)
        assert (await follow(cloud, machines)).count(new) == counts[-1]  # not healthy for long enough
        clock.now += timedelta(seconds=10)
        await proceed(cloud)
    assert counts == [1, 5, 20]
    state = await shown(cloud, rollout)
    assert state["state"] == "finished"
    late = (await fleet(cloud, 1, subject, location=await place(cloud)))[0]
    assert late.has == new
    await cloud.app("update_fragment", id=subject, fragment_config_json=document(9))
    assert set(await follow(cloud, machines)) == {"3"}


async def place(cloud: MemoryCloud, name: str = "hall") -> str:
    created = await cloud.app("create_location", organization_id=cloud.first.organization, name=name)
    return str(created["id"])


async def test_only_reached_machines_hear_of_a_change(cloud: MemoryCloud) -> None:
    subject = await fragment(cloud)
    machines = await fleet(cloud, 10, subject)
    new = await save(cloud, subject)
    with cloud.cloud.events.listening("part") as news:
        rollout = await started(cloud, subject, new, 20, 100)
        first = set(await news.all())
        await act(cloud, rollout, "next")
        second = set(await news.all())
    assert (len(first), len(second)) == (2, 8)
    assert first | second == {machine.part for machine in machines}


async def test_machines_with_a_tag_come_first_and_others_are_not_selected(cloud: MemoryCloud, clock: Clock) -> None:
    subject = await fragment(cloud)
    hall = await place(cloud)
    machines = await fleet(cloud, 4, subject) + await fleet(cloud, 2, subject, location=hall)
    lab = (await cloud.app("get_robot_part", id=machines[3].part))["part"]["robot"]
    await cloud.app("update_robot_metadata", id=lab, data={"tags": ["lab"]})
    new = await save(cloud, subject)
    chosen = plan(subject, new, location_ids=[cloud.first.location], stop_after=0)
    chosen["stages"] = [{"tags": ["lab"]}, {"percent": 100}]
    preview = await call(cloud, "preview_staged_rollout", organization_id=cloud.first.organization, plan=chosen)
    assert [(each["stage"], each["machines"]) for each in preview["stages"]] == [("tag lab", 1), ("100 %", 3)]
    assert (preview["selected"], preview["concerned"], preview["revision_from"]) == (4, 6, "1")
    rollout = await call(
        cloud, "start_staged_rollout", organization_id=cloud.first.organization, plan=chosen, expected=4
    )
    await follow(cloud, machines)
    assert await follow(cloud, machines) == ["1", "1", "1", new, "1", "1"]
    for _ in range(2):
        clock.now += SOAK
        await follow(cloud, machines)
    clock.now += SOAK
    assert await follow(cloud, machines) == [new, new, new, new, "1", "1"]
    state = await shown(cloud, rollout)
    assert (state["state"], state["next"]) == ("active", "all selected machines are done")
    await act(cloud, rollout, "finish")
    assert set(await follow(cloud, machines)) == {new}


async def test_a_tag_moves_by_a_rollout_and_leaves_the_others_alone(cloud: MemoryCloud) -> None:
    subject = await fragment(cloud)
    await cloud.app("set_fragment_tag", fragment_id=subject, tag="stable", revision="1")
    pinned = await fleet(cloud, 2, {"id": subject, "version": "stable"})
    newest = await fleet(cloud, 1, subject, location=await place(cloud))
    await cloud.app("update_fragment", id=subject, fragment_config_json=document(2))
    rollout = await started(cloud, subject, "2", 50, 100, channel="stable")
    assert sorted(await follow(cloud, pinned)) == ["1", "2"]
    assert await follow(cloud, newest) == ["2"]
    with pytest.raises(MachineError) as caught:
        await cloud.app("set_fragment_tag", fragment_id=subject, tag="stable", revision="2")
    assert caught.value.kind is ErrorKind.PRECONDITION
    await cloud.app("update_fragment", id=subject, fragment_config_json=document(3))  # not what is rolled out
    await act(cloud, rollout, "finish")
    assert await follow(cloud, pinned) == ["2", "2"]
    assert (await cloud.app("get_fragment", id=subject))["tags"][0]["revision"] == "2"


async def test_a_fragment_in_another_fragment_is_rolled_out_too(cloud: MemoryCloud) -> None:
    subject = await fragment(cloud)
    outer = await cloud.app(
        "create_fragment", name="outer", organization_id=cloud.first.organization, config={"fragments": [subject]}
    )
    machines = await fleet(cloud, 2, outer["id"])
    new = await save(cloud, subject)
    await started(cloud, subject, new, 50, 100)
    for machine in machines:
        await machine.follow()
    mine = [
        {part.rpartition("-")[2] for part in m.revision.split("+")[1].split(".") if part[:8] == subject[:8]}
        for m in machines
    ]
    assert sorted(map(str, mine)) == ["{'1'}", "{'2'}"]


async def test_while_a_rollout_is_open_saves_wait_for_it(cloud: MemoryCloud) -> None:
    subject = await fragment(cloud)
    machines = await fleet(cloud, 2, subject)
    new = await save(cloud, subject)
    rollout = await started(cloud, subject, new, 50, 100)
    with pytest.raises(MachineError) as caught:
        await cloud.app("update_fragment", id=subject, fragment_config_json=document(3))
    assert caught.value.kind is ErrorKind.PRECONDITION
    assert await save(cloud, subject, 3) == "3"
    assert sorted(await follow(cloud, machines)) == ["1", new]
    await act(cloud, rollout, "finish")
    assert await follow(cloud, machines) == [new, new]
    assert (await refused(cloud, "start_staged_rollout", plan=plan(subject, new))).kind is ErrorKind.PRECONDITION
    again = await started(cloud, subject, "3", 100)
    assert await follow(cloud, machines) == ["3", "3"]
    assert (await shown(cloud, again))["revision_from"] == new


async def test_pause_and_stop_keep_what_machines_have_and_give_it_to_no_one_else(cloud: MemoryCloud) -> None:
    subject = await fragment(cloud)
    machines = await fleet(cloud, 4, subject)
    new = await save(cloud, subject)
    rollout = await started(cloud, subject, new, 50, 100)
    reached = [machine for machine in machines if await machine.follow() == new]
    assert len(reached) == 2
    await proceed(cloud)
    await act(cloud, rollout, "next")
    for action in ("pause", "stop"):
        await act(cloud, rollout, action)
        assert sorted(await follow(cloud, machines)) == ["1", "1", new, new]
    await act(cloud, rollout, "resume")
    assert set(await follow(cloud, machines)) == {new}


async def test_machines_that_were_offline_do_not_hold_up_a_stage_and_get_it_later(
    cloud: MemoryCloud, clock: Clock
) -> None:
    subject = await fragment(cloud)
    machines = await fleet(cloud, 3, subject)
    await machines[0].stop()
    new = await save(cloud, subject)
    rollout = await started(cloud, subject, new, 100, by_hand=True)
    await follow(cloud, machines[1:])
    clock.now += SOAK
    await follow(cloud, machines[1:])
    state = await shown(cloud, rollout)
    assert (state["stages"][0]["healthy"], state["stages"][0]["offline"], state["next"]) == (
        2,
        1,
        "all stages are complete",
    )
    assert await machines[0].follow() == new


async def test_a_rejected_configuration_and_a_machine_that_vanishes_are_failures(
    cloud: MemoryCloud, clock: Clock
) -> None:
    subject = await fragment(cloud)
    machines = await fleet(cloud, 3, subject)
    new = await save(cloud, subject)
    rollout = await started(cloud, subject, new, 100, stop_after=1)
    await proceed(cloud)
    await machines[0].report(rejected="components.0: unknown model", problems=1)
    await machines[1].follow()
    await proceed(cloud)
    assert (await shown(cloud, rollout))["state"] == "active"
    await machines[1].stop()
    await proceed(cloud)
    clock.now += timedelta(seconds=61)
    await proceed(cloud)
    state = await shown(cloud, rollout)
    assert (state["state"], state["failures"]) == ("stopped", 2)
    reply = await call(
        cloud, "list_staged_machines", organization_id=cloud.first.organization, id=rollout, state="failed"
    )
    assert [each["reason"] for each in reply["machines"]] == [
        "it rejects the configuration: components.0: unknown model",
        "it went offline after it took the change",
    ]


async def test_other_organizations_stay_at_the_former_revision_until_it_is_finished(cloud: MemoryCloud) -> None:
    subject = await fragment(cloud)
    await cloud.app("update_fragment", id=subject, public=True)
    await fleet(cloud, 1, subject)
    other = await cloud.cloud.store.write(lambda sql: create_owner(sql, "Other", cloud.cloud.clock()))
    client = cloud.client(other.id)
    app = "viam.app.v1.AppService"
    machine = await client.call(app, "", "new_robot", name="theirs", location=other.location)
    part = (await client.call(app, "", "get_robot_parts", robot_id=machine))[0]["id"]
    text = json.dumps({"fragments": [subject]})
    await client.call(app, "", "update_robot_part", id=part, robot_config_json=text)
    theirs = Machine(cloud, part, "theirs")
    new = await save(cloud, subject)
    preview = await call(
        cloud, "preview_staged_rollout", organization_id=cloud.first.organization, plan=plan(subject, new, 100)
    )
    assert (preview["selected"], preview["elsewhere"]) == (1, 1)
    rollout = await started(cloud, subject, new, 100, by_hand=True)
    assert await theirs.follow() == "1"
    for name, arguments in (("get_staged_rollout", {}), ("change_staged_rollout", {"action": "back"})):
        for owner in (cloud.first.organization, other.organization):
            with pytest.raises(MachineError) as caught:
                await call(cloud, name, other.id, organization_id=owner, id=rollout, **arguments)
            assert caught.value.kind in (ErrorKind.NOT_FOUND, ErrorKind.PERMISSION)
    with pytest.raises(MachineError) as caught:
        await call(
            cloud, "start_staged_rollout", other.id, organization_id=other.organization, plan=plan(subject, new, 100)
        )
    assert caught.value.kind is ErrorKind.NOT_FOUND
    await act(cloud, rollout, "finish")
    assert await theirs.follow() == new


async def test_refusals_have_reasons_and_change_nothing(cloud: MemoryCloud) -> None:
    subject = await fragment(cloud)
    assert "no machine" in str(
        await refused(cloud, "start_staged_rollout", plan=plan(subject, await save(cloud, subject)))
    )
    await fleet(cloud, 2, subject)
    rollout = await started(cloud, subject, "2", 100, by_hand=True)
    assert (await refused(cloud, "start_staged_rollout", plan=plan(subject, "2"))).kind is ErrorKind.EXISTS
    assert (await refused(cloud, "start_staged_rollout", plan=plan(subject, "9"))).kind is ErrorKind.NOT_FOUND
    assert (await refused(cloud, "start_staged_rollout", plan=plan(subject, "1"))).kind is ErrorKind.PRECONDITION
    assert "next" in str(await refused(cloud, "change_staged_rollout", id=rollout, action="explode"))
    assert (await refused(cloud, "change_staged_rollout", id=rollout, action="next")).kind is ErrorKind.PRECONDITION
    await act(cloud, rollout, "back")
    for action in ("resume", "pause", "stop", "next", "finish", "back"):
        error = await refused(cloud, "change_staged_rollout", id=rollout, action=action)
        assert error.kind is ErrorKind.PRECONDITION
        assert "reverted" in str(error)
    error = await refused(cloud, "start_staged_rollout", plan=plan(subject, "2"), expected=5)
    assert "2 machines are selected now" in str(error)


async def test_the_history_and_the_audit_log_name_the_author_of_each_action(cloud: MemoryCloud) -> None:
    subject = await fragment(cloud)
    await fleet(cloud, 2, subject)
    rollout = await started(cloud, subject, await save(cloud, subject), 50, 100)
    for action in ("pause", "resume", "next", "back"):
        await act(cloud, rollout, action)
    reply = await call(cloud, "get_staged_rollout", organization_id=cloud.first.organization, id=rollout)
    assert [(each["kind"], each["author"]) for each in reply["events"]] == [
        ("reverted", "owner"),
        ("next", "owner"),
        ("resumed", "owner"),
        ("paused", "owner"),
        ("started", "owner"),
    ]
    entries = await cloud.cloud.store.read(
        lambda sql: audit.entries(sql, cloud.first.organization, AuditQuery(action="change_staged_rollout"))
    )
    assert [(entry.detail["action"], entry.detail["called"]) for entry in entries][-1] == ("pause", "arms")


async def test_there_is_a_limit_of_open_rollouts(cloud: MemoryCloud, monkeypatch: pytest.MonkeyPatch) -> None:
    subject = await fragment(cloud)
    await fleet(cloud, 1, subject)
    new = await save(cloud, subject)
    monkeypatch.setattr(
        "cloud.domain.rollouts.records.OPEN_ROLLOUTS",
        OPEN_ROLLOUTS.__class__(
            OPEN_ROLLOUTS.name, 0, OPEN_ROLLOUTS.unit, OPEN_ROLLOUTS.of, OPEN_ROLLOUTS.remedy, OPEN_ROLLOUTS.kind
        ),
    )
    assert (await refused(cloud, "start_staged_rollout", plan=plan(subject, new))).kind is ErrorKind.EXHAUSTED


async def test_a_deleted_machine_does_not_hold_up_its_stage(cloud: MemoryCloud, clock: Clock) -> None:
    subject = await fragment(cloud)
    machines = await fleet(cloud, 3, subject)
    new = await save(cloud, subject)
    rollout = await started(cloud, subject, new, 100, by_hand=True)
    await follow(cloud, machines[1:])
    assert (await shown(cloud, rollout))["next"] == "waits for 1 machine of the stage to take the change"
    robot = (await cloud.app("get_robot_part", id=machines[0].part))["part"]["robot"]
    await cloud.app("delete_robot", id=robot)
    await proceed(cloud)
    state = await shown(cloud, rollout)
    assert (state["next"], state["stages"][0]["others"]) == ("watches 2 machines of the stage", 1)


async def test_a_rollout_has_a_limit_of_machines(cloud: MemoryCloud, monkeypatch: pytest.MonkeyPatch) -> None:
    subject = await fragment(cloud)
    await fleet(cloud, 2, subject)
    new = await save(cloud, subject)
    limit = ROLLOUT_MACHINES
    monkeypatch.setattr(
        "cloud.services.rollouts.rollouts.ROLLOUT_MACHINES",
        limit.__class__(limit.name, 1, limit.unit, limit.of, limit.remedy, limit.kind),
    )
    error = await refused(cloud, "preview_staged_rollout", plan=plan(subject, new))
    assert "rollout_machines" in str(error)


async def test_a_configuration_is_saved_by_the_revision_that_its_machine_has(cloud: MemoryCloud) -> None:
    """A save is checked with the revision of the machine, also by one that a rollout has reached."""
    subject = await fragment(cloud)
    machines = await fleet(cloud, 2, subject)
    new = await save(cloud, subject)
    await started(cloud, subject, new, 50, 100)
    for machine in machines:
        text = json.dumps({"fragments": [subject], "debug": True})
        await cloud.app("update_robot_part", id=machine.part, robot_config_json=text)
    assert sorted(await follow(cloud, machines)) == ["1", new]


async def test_the_oldest_ended_rollouts_are_deleted(cloud: MemoryCloud, monkeypatch: pytest.MonkeyPatch) -> None:
    subject = await fragment(cloud)
    await fleet(cloud, 1, subject)
    new = await save(cloud, subject)
    limit = KEPT_ROLLOUTS
    monkeypatch.setattr(
        "cloud.domain.rollouts.records.KEPT_ROLLOUTS",
        limit.__class__(limit.name, 2, limit.unit, limit.of, limit.remedy, limit.kind),
    )
    created = []
    for _ in range(4):
        created.append(await started(cloud, subject, new, 100))
        await act(cloud, created[-1], "back")
    listed = await call(cloud, "list_staged_rollouts", organization_id=cloud.first.organization)
    assert [each["id"] for each in listed] == created[:1:-1]


@BOTH
@pytest.mark.parametrize("entry", [None, {"version": "1"}])
async def test_a_machine_that_no_longer_uses_the_fragment_is_late_and_has_not_failed(
    cloud: MemoryCloud, clock: Clock, entry: dict[str, str] | None
) -> None:
    """An operator who edits the configuration of a machine does not stop the rollout of others."""
    subject = await fragment(cloud)
    machines = await fleet(cloud, 2, subject)
    new = await save(cloud, subject)
    rollout = await started(cloud, subject, new, 100, stop_after=0, by_hand=True)
    text = json.dumps({"fragments": [{"id": subject} | entry]} if entry else ARM)
    await cloud.app("update_robot_part", id=machines[0].part, robot_config_json=text)
    for _ in range(12):
        clock.now += timedelta(minutes=1)
        await follow(cloud, machines)
    state = await shown(cloud, rollout)
    assert (state["state"], state["failures"]) == ("active", 0)
    assert [state["stages"][0][name] for name in ("healthy", "others")] == [1, 1]
    late = await call(cloud, "list_staged_machines", organization_id=cloud.first.organization, id=rollout, state="late")
    assert [each["name"] for each in late["machines"]] == ["m000"]
    assert "does not use the fragment" in late["machines"][0]["reason"]


@BOTH
async def test_no_revision_with_a_secret_reaches_machines_of_other_organizations(cloud: MemoryCloud) -> None:
    hook = {"type": "webhook", "value": "https://example.com", "auth": {"type": "bearer", "token": "t"}}
    trigger = {"name": "hook", "event": {"type": "part_online"}, "notifications": [hook]}
    owner = cloud.first.organization
    created = await cloud.app("create_fragment", name="hooks", organization_id=owner, config={"triggers": [trigger]})
    subject = str(created["id"])
    await fleet(cloud, 1, subject)
    new = await call(
        cloud, "update_fragment_for_rollout", fragment_id=subject, fragment_config_json=document(1)
    )  # machines stay at the revision with the secret
    with pytest.raises(MachineError, match="secret in this fragment"):
        await cloud.app("update_fragment", id=subject, public=True)
    rollout = await started(cloud, subject, new, 100, by_hand=True)
    await act(cloud, rollout, "finish")
    await cloud.app("update_fragment", id=subject, public=True)
    assert "secret in this fragment" in str(await refused(cloud, "start_staged_rollout", plan=plan(subject, "1")))
    with pytest.raises(MachineError, match="secret in this fragment"):
        await cloud.app("set_fragment_tag", fragment_id=subject, tag="old", revision="1")


@BOTH
async def test_a_part_that_was_offline_has_not_failed_because_another_part_is_online(
    cloud: MemoryCloud, clock: Clock
) -> None:
    subject = await fragment(cloud)
    machines = await fleet(cloud, 1, subject)
    robot = (await cloud.app("get_robot_part", id=machines[0].part))["part"]["robot"]
    second = await cloud.app("new_robot_part", robot_id=robot, part_name="second")
    await cloud.app("update_robot_part", id=second, robot_config_json=json.dumps({"fragments": [subject]}))
    rollout = await started(cloud, subject, await save(cloud, subject), 100, stop_after=0, by_hand=True)
    for _ in range(8):
        await follow(cloud, machines)
        clock.now += timedelta(minutes=1)
    state = await shown(cloud, rollout)
    assert (state["state"], state["failures"]) == ("active", 0)
    assert [state["stages"][0][name] for name in ("healthy", "offline")] == [1, 1]
