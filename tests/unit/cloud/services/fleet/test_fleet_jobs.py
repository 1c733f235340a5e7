"""Jobs on many machines: what they change, for whom, and how they are undone."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from typing import Any

import pytest
import trio

from cloud.domain.fleet import jobs
from cloud.domain.machines import machines
from cloud.domain.organizations.first import create_owner
from cloud.domain.organizations.keys import delete_key
from cloud.domain.permissions import audit
from cloud.server.memory import MemoryCloud
from cloud.services.fleet import applying
from cloud.services.fleet.runner import TURN, run, run_machine, run_next
from cloud.store.sql import Sql
from cloud.values.limits import FLEET_JOBS, FLEET_QUEUE
from schema import ErrorKind, MachineError
from tests.unit.cloud.conftest import BOTH, Clock
from tests.unit.cloud.pages import signed_in
from tests.unit.cloud.services.fleet.fleet_help import (
    ARM,
    SPEED,
    call,
    configuration,
    fill,
    finish,
    key_with,
    main_part,
    outcomes,
)


async def speed(cloud: MemoryCloud, machine: str) -> Any:
    document = await configuration(cloud, machine)
    return document["components"][0]["attributes"].get("speed")


@BOTH
async def test_a_value_is_set_on_every_machine_and_undone(cloud: MemoryCloud) -> None:
    ids = await fill(cloud, 3, ARM)
    preview = await call(cloud, "preview_fleet_job", machine_ids=ids, work=SPEED)
    assert (preview["selected"], preview["changing"], preview["unchanged"], preview["refused"]) == (3, 3, 0, 0)
    assert preview["example"] == "m000"
    assert any("speed" in line and "3" in line for line in preview["difference"])
    job = await call(cloud, "start_fleet_job", machine_ids=ids, work=SPEED, expected=3)
    await finish(cloud)
    assert set((await outcomes(cloud, job)).values()) == {("changed", "")}
    assert [await speed(cloud, each) for each in ids] == [3, 3, 3]
    undo = await call(cloud, "revert_fleet_job", id=job)
    await finish(cloud)
    assert [await speed(cloud, each) for each in ids] == [1, 1, 1]
    state = (await call(cloud, "get_fleet_job", id=undo))["job"]
    assert (state["state"], state["undo_of"], state["changed"]) == ("done", job, 3)


async def test_undo_leaves_machines_that_changed_meanwhile(cloud: MemoryCloud) -> None:
    ids = await fill(cloud, 2, ARM)
    job = await call(cloud, "start_fleet_job", machine_ids=ids, work=SPEED)
    await finish(cloud)
    part = await main_part(cloud, ids[1])
    await cloud.app("update_robot_part", id=part, robot_config_json=json.dumps({"components": []}))
    undo = await call(cloud, "revert_fleet_job", id=job)
    await finish(cloud)
    result = await outcomes(cloud, undo)
    assert result["m000"] == ("changed", "")
    assert result["m001"][0] == "failed"
    assert result["m001"][1].startswith(applying.MEANWHILE)
    assert (await configuration(cloud, ids[1])) == {"components": []}


async def test_a_refused_value_names_the_path_and_changes_nothing(cloud: MemoryCloud) -> None:
    (machine,) = await fill(cloud, 1, ARM)
    wrong = SPEED | {"path": "components.arm.attributes", "value_json": "3"}
    missing = SPEED | {"path": "components.gripper.attributes.speed"}
    jobs_ = [await call(cloud, "start_fleet_job", machine_ids=[machine], work=work) for work in (wrong, missing)]
    await finish(cloud)
    results = [(await outcomes(cloud, job))["m000"] for job in jobs_]
    assert all(state == "failed" for state, _ in results)
    assert "components" in results[0][1]
    assert "there is no components.gripper" in results[1][1]
    hall = await cloud.app("create_location", organization_id=cloud.first.organization, name="hall")
    (bare,) = await fill(cloud, 1, {}, hall["id"])
    job = await call(cloud, "start_fleet_job", machine_ids=[bare], work=SPEED)
    await finish(cloud)
    assert "there is no components.arm: the configuration has no components" in (await outcomes(cloud, job))["m000"][1]
    assert await configuration(cloud, machine) == ARM


@pytest.mark.parametrize(
    ("work", "check"),
    [
        ({"kind": "remove_value", "path": "components.arm.attributes.speed"}, {}),
        ({"kind": "remove_value", "path": "components.arm.attributes.no.such"}, {"speed": 1}),
    ],
)
async def test_a_value_is_removed(cloud: MemoryCloud, work: dict[str, Any], check: Any) -> None:
    (machine,) = await fill(cloud, 1, ARM)
    await call(cloud, "start_fleet_job", machine_ids=[machine], work=work)
    await finish(cloud)
    assert (await configuration(cloud, machine))["components"][0]["attributes"] == check


async def test_versions_are_pinned(cloud: MemoryCloud) -> None:
    (machine,) = await fill(cloud, 1, {})
    for program, version in (("machine-server", "1.2.3"), ("machine-agent", "stable")):
        work = {"kind": "pin_version", "program": program, "version": version}
        await call(cloud, "start_fleet_job", machine_ids=[machine], work=work)
    await finish(cloud)
    control = (await configuration(cloud, machine))["agent"]["version_control"]
    assert control == {"machine-server": "1.2.3", "agent": "stable"}


async def test_fragments_are_applied_once_and_removed(cloud: MemoryCloud) -> None:
    (machine,) = await fill(cloud, 1, ARM)
    fragment = await cloud.app(
        "create_fragment", organization_id=cloud.first.organization, name="base", config={"services": []}
    )
    subject = fragment["id"]
    add = {"kind": "add_fragment", "fragment_id": subject}
    states = []
    for _ in range(2):
        job = await call(cloud, "start_fleet_job", machine_ids=[machine], work=add)
        await finish(cloud)
        states.append((await outcomes(cloud, job))["m000"][0])
    assert states == ["changed", "unchanged"]
    assert (await configuration(cloud, machine))["fragments"] == [{"id": subject}]
    reply = await call(cloud, "list_fleet_machines", filter={"fragment_id": subject})
    assert [each["fragments"] for each in reply["machines"]] == [["base"]]
    await call(cloud, "start_fleet_job", machine_ids=[machine], work=add | {"kind": "remove_fragment"})
    await finish(cloud)
    assert await configuration(cloud, machine) == ARM


async def test_tags_locations_and_restarts(cloud: MemoryCloud) -> None:
    ids = await fill(cloud, 2)
    await call(cloud, "add_machine_tags", machine_id=ids[0], tags=["old", "red"])
    hall = await cloud.app("create_location", organization_id=cloud.first.organization, name="hall")
    tagged = await call(cloud, "start_fleet_job", machine_ids=ids, work={"kind": "add_tags", "tags": ["red", "new"]})
    moved = await call(cloud, "start_fleet_job", machine_ids=ids, work={"kind": "move", "location_id": hall["id"]})
    restarted = await call(cloud, "start_fleet_job", every=True, work={"kind": "restart"})
    await finish(cloud)
    assert await call(cloud, "list_machine_tags", machine_id=ids[0]) == ["new", "old", "red"]
    assert len(await cloud.app("list_robots", location_id=hall["id"])) == 2
    part = await main_part(cloud, ids[0])
    assert (await cloud.cloud.store.read(lambda sql: machines.part(sql, part))).restart
    await call(cloud, "remove_machine_tags", machine_id=ids[1], tags=["new"])
    undo = await call(cloud, "revert_fleet_job", id=tagged)
    await call(cloud, "revert_fleet_job", id=moved)
    await finish(cloud)
    assert await call(cloud, "list_machine_tags", machine_id=ids[0]) == ["old", "red"]
    assert (await outcomes(cloud, undo))["m001"] == ("failed", "its tags changed meanwhile")
    assert await cloud.app("list_robots", location_id=hall["id"]) == []
    with pytest.raises(MachineError, match="cannot be undone"):
        await call(cloud, "revert_fleet_job", id=restarted)


async def test_reasons_and_the_audit_log_contain_no_secrets_and_name_the_work(cloud: MemoryCloud) -> None:
    secret = {"components": [{"name": "eye", "model": "fake", "attributes": {"password": "hunter2-hunter2"}}]}
    ids = [*await fill(cloud, 1, secret)]
    work = {"kind": "set_value", "path": "components.eye.attributes.password.more", "value_json": '"more-hunter2"'}
    job = await call(cloud, "start_fleet_job", machine_ids=ids, work=work)
    good = work | {"path": "components.eye.attributes.password"}
    changed = await call(cloud, "start_fleet_job", machine_ids=ids, work=good)
    preview = await call(cloud, "preview_fleet_job", machine_ids=ids, work=good)
    await finish(cloud)
    state, reason = (await outcomes(cloud, job))["m000"]
    assert (state, "password" in reason) == ("failed", True)
    owner = cloud.first.organization
    entries = await cloud.cloud.store.read(lambda sql: audit.entries(sql, owner, audit.AuditQuery()))
    shown = [reason, str(preview), str(await call(cloud, "list_fleet_jobs")), str(entries)]
    assert [text for text in shown if "hunter2" in text] == []
    by_action = {entry.action: entry for entry in reversed(entries)}  # the newest of each
    assert by_action["change_by_job"].subject == ids[0]
    assert by_action["change_by_job"].detail["job"] == changed
    page = (await (await signed_in(cloud)).get("/audit?action=change_by_job")).text
    difference = f"/machines/{await main_part(cloud, ids[0])}/history?from=2&amp;to=3#comparison"
    assert f'<a href="{difference}">See the difference</a><a href="/fleet/{changed}">See the job</a>' in page
    page = (await (await signed_in(cloud)).get("/audit?action=start_fleet_job")).text
    assert f'<a href="/fleet/{changed}" title="{changed}">bulk job</a>' in page
    started = by_action["start_fleet_job"].detail
    assert (started["machine_ids"], started["work"]["path"]) == (ids, good["path"])


async def test_the_audit_page_counts_long_lists_of_machines(cloud: MemoryCloud) -> None:
    ids = await fill(cloud, 22)
    work = {"kind": "add_tags", "tags": ["press"]}
    for count in (3, 5, 22):
        await call(cloud, "start_fleet_job", machine_ids=ids[:count], work=work)
    page = (await (await signed_in(cloud)).get("/audit?action=start_fleet_job")).text
    listed = re.findall(r'<span class="muted">machine ids</span> ([^<]*)</span>', page)
    assert listed == ["more than 20", "5", "; ".join(f"{each[:8]}…" for each in ids[:3])]


async def test_an_unexpected_error_is_the_outcome_of_one_machine(
    cloud: MemoryCloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = await fill(cloud, 2, ARM)
    job = await call(cloud, "start_fleet_job", machine_ids=ids, work=SPEED)
    before, first = applying.changed, []

    def fail_once(*arguments: Any) -> Any:
        if not first:
            first.append(1)
            raise ZeroDivisionError
        return before(*arguments)

    monkeypatch.setattr(applying, "changed", fail_once)
    await finish(cloud)
    result = await outcomes(cloud, job)
    assert (result["m000"][0], result["m001"]) == ("failed", ("changed", ""))
    assert "unexpected" in result["m000"][1]


# ---- permissions


async def test_operators_and_guests_start_nothing(cloud: MemoryCloud, clock: Clock) -> None:
    ids = await fill(cloud, 2, ARM)
    operator = await key_with(cloud, ("operator", "organization", cloud.first.organization))
    other = await cloud.cloud.store.write(lambda sql: create_owner(sql, "Other", clock()))
    for caller, kind in ((operator, ErrorKind.PERMISSION), (other.id, ErrorKind.NOT_FOUND)):
        for name in ("preview_fleet_job", "start_fleet_job"):
            with pytest.raises(MachineError) as caught:
                await call(cloud, name, caller, machine_ids=ids, work=SPEED)
            assert caught.value.kind is kind
    await cloud.app("share_location", location_id=cloud.first.location, organization_id=other.organization)
    with pytest.raises(MachineError):
        await call(cloud, "start_fleet_job", other.id, machine_ids=ids, work=SPEED)
    assert await call(cloud, "list_fleet_jobs") == []


async def test_machines_of_others_are_left_out_and_never_named(cloud: MemoryCloud, clock: Clock) -> None:
    mine = await fill(cloud, 1, ARM)
    hall = await cloud.app("create_location", organization_id=cloud.first.organization, name="hall")
    await fill(cloud, 2, ARM, hall["id"])
    key = await key_with(cloud, ("owner", "location", cloud.first.location), ("operator", "location", hall["id"]))
    preview = await call(cloud, "preview_fleet_job", key, every=True, work=SPEED)
    assert (preview["selected"], preview["not_permitted"], preview["changing"]) == (3, 2, 1)
    job = await call(cloud, "start_fleet_job", key, every=True, work=SPEED)
    await finish(cloud)
    assert (await call(cloud, "get_fleet_job", key, id=job))["job"]["total"] == 1
    assert await speed(cloud, mine[0]) == 3
    other = await cloud.cloud.store.write(lambda sql: create_owner(sql, "Other", clock()))
    for name in ("get_fleet_job", "stop_fleet_job", "revert_fleet_job"):
        with pytest.raises(MachineError) as caught:
            await call(cloud, name, other.id, id=job)
        assert caught.value.kind is ErrorKind.NOT_FOUND
    assert await call(cloud, "list_fleet_jobs", other.id) == []


@pytest.mark.parametrize("lost", ["key", "role"])
async def test_the_permission_is_checked_again_for_each_machine(cloud: MemoryCloud, lost: str) -> None:
    ids = await fill(cloud, 2, ARM)
    key = await key_with(cloud, *(("owner", "robot", each) for each in ids))
    job = await call(cloud, "start_fleet_job", key, machine_ids=ids, work=SPEED)
    entry = await cloud.cloud.store.read(lambda sql: jobs.job(sql, job))
    assert await run_machine(cloud.cloud, entry)

    def lose(sql: Sql) -> None:
        if lost == "key":
            delete_key(sql, key)
        else:
            sql.run("DELETE FROM grants WHERE key_id = ? AND subject = ?", key, ids[1])

    await cloud.cloud.store.write(lose)
    assert await run_machine(cloud.cloud, entry)
    result = await outcomes(cloud, job)
    assert result["m000"] == ("changed", "")
    assert result["m001"][0] == "failed"
    assert result["m001"][1].startswith("not permitted")
    assert await speed(cloud, ids[1]) == 1


# ---- stopping, and being killed


@BOTH
async def test_a_job_that_is_killed_after_any_step_does_each_machine_once(cloud: MemoryCloud, clock: Clock) -> None:
    """Ends the work after each transaction, and goes on in another process when the lease has ended."""
    ids = await fill(cloud, 3, ARM)
    job = await call(cloud, "start_fleet_job", machine_ids=ids, work=SPEED)
    store, done = cloud.cloud.store, 0

    class Killed(BaseException):
        pass

    class Failing:
        """A store that ends the process after `left` transactions."""

        def __init__(self, left: int, *, before: bool) -> None:
            self.left, self.before = left, before

        async def read(self, work: Any) -> Any:
            return await self._step(store.read, work)

        async def write(self, work: Any) -> Any:
            return await self._step(store.write, work)

        async def _step(self, step: Any, work: Any) -> Any:
            self.left -= 1
            if self.left < 0 and self.before:
                raise Killed
            result = await step(work)
            if self.left < 0:
                raise Killed
            return result

    from dataclasses import replace

    steps = 0
    while done < 3:
        broken = replace(cloud.cloud, store=Failing(steps // 2, before=bool(steps % 2)))  # type: ignore[arg-type]
        steps += 1
        try:
            await run_next(broken, pace=0)
        except Killed:
            pass
        clock.now += jobs.LEASE + timedelta(seconds=1)
        done = (await call(cloud, "get_fleet_job", id=job))["job"]["changed"]
        revisions = [
            (await store.read(lambda sql, machine=each: machines.parts(sql, machine)))[0].revision  # type: ignore[misc]
            for each in ids
        ]
        assert sum(revision - 2 for revision in revisions) == done  # never half: a save has its outcome
        assert max(revisions) <= 3  # never twice
    assert steps > 4
    assert [await speed(cloud, each) for each in ids] == [3, 3, 3]
    assert (await call(cloud, "get_fleet_job", id=job))["job"]["state"] == "done"


async def test_a_stopped_job_skips_the_rest(cloud: MemoryCloud) -> None:
    ids = await fill(cloud, 3, ARM)
    job = await call(cloud, "start_fleet_job", machine_ids=ids, work=SPEED)
    entry = await cloud.cloud.store.read(lambda sql: jobs.job(sql, job))
    await run_machine(cloud.cloud, entry)
    waiting = (await cloud.cloud.store.read(lambda sql: jobs.machines(sql, job, jobs.WAITING)))[0]
    await call(cloud, "stop_fleet_job", id=job)
    await applying.apply(cloud.cloud, entry, waiting)  # it was under way when the job was stopped
    assert not await run_machine(cloud.cloud, entry)
    await finish(cloud)
    assert [await speed(cloud, each) for each in ids] == [3, 1, 1]
    state = (await call(cloud, "get_fleet_job", id=job))["job"]
    assert (state["state"], state["changed"], state["skipped"]) == ("stopped", 1, 2)


async def test_a_machine_that_is_deleted_meanwhile_is_reported(cloud: MemoryCloud) -> None:
    ids = await fill(cloud, 2, ARM)
    job = await call(cloud, "start_fleet_job", machine_ids=ids, work=SPEED)
    await cloud.app("delete_robot", id=ids[0])
    await finish(cloud)
    assert await outcomes(cloud, job) == {"m000": ("failed", "it was deleted meanwhile"), "m001": ("changed", "")}


# ---- requests that make no sense


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"work": SPEED}, "selection is not clear"),
        ({"every": True, "filter": {"state": "online"}, "work": SPEED}, "selection is not clear"),
        ({"every": True, "work": {"kind": "explode"}}, "there is no work"),
        ({"every": True, "work": SPEED | {"value_json": "{"}}, "not JSON"),
        ({"every": True, "work": SPEED | {"path": ""}}, "path is missing"),
        ({"every": True, "work": {"kind": "set_value", "path": "a"}}, "value is missing"),
        ({"every": True, "work": {"kind": "pin_version", "program": "sh", "version": "1.2.3"}}, "not a program"),
        (
            {"every": True, "work": {"kind": "pin_version", "program": "machine-agent", "version": "x"}},
            "not a version",
        ),
        ({"every": True, "work": {"kind": "add_tags", "tags": ["a,b"]}}, "not a tag"),
        ({"every": True, "work": {"kind": "add_tags"}}, "tags are missing"),
        ({"every": True, "work": {"kind": "move"}}, "location is missing"),
        ({"every": True, "work": {"kind": "add_fragment"}}, "fragment is missing"),
        ({"filter": {"state": "online"}, "work": SPEED}, "no machine is selected"),
        ({"every": True, "work": SPEED, "expected": 7}, "the preview was for 7"),
        ({"filter": {"text": "a " * 11}, "work": SPEED}, "fleet_words"),
        ({"every": True, "work": SPEED | {"value_json": f'"{"x" * 70_000}"'}}, "fleet_work"),
        ({"every": True, "work": {"kind": "add_fragment", "fragment_id": "no-such"}}, "no fragment"),
    ],
)
async def test_a_request_that_is_not_clear_is_refused(
    cloud: MemoryCloud, machine: str, arguments: dict[str, Any], text: str
) -> None:
    with pytest.raises(MachineError, match=text):
        await call(cloud, "start_fleet_job", **arguments)


async def test_jobs_take_turns_and_a_caller_waits_for_progress(cloud: MemoryCloud) -> None:
    ids = await fill(cloud, TURN + 2)
    first, second = [
        await call(cloud, "start_fleet_job", machine_ids=ids, work={"kind": "add_tags", "tags": [tag]})
        for tag in ("first", "second")
    ]
    assert await run_next(cloud.cloud, pace=0)  # a turn of the first
    assert await run_next(cloud.cloud, pace=0)
    states = [(await call(cloud, "get_fleet_job", id=job))["job"] for job in (first, second)]
    assert [state["changed"] for state in states] == [TURN, TURN]
    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            await nursery.start(run, cloud.cloud)
            finished = TURN
            while (state := await call(cloud, "wait_for_fleet_job", id=second, finished=finished))[
                "state"
            ] == "running":
                assert state["changed"] > finished
                finished = state["changed"]
            while (await call(cloud, "wait_for_fleet_job", id=first, finished=TURN + 2))["state"] == "running":
                pass
            nursery.cancel_scope.cancel()
    assert await call(cloud, "list_machine_tags", machine_id=ids[-1]) == ["first", "second"]


async def test_a_job_can_be_taken_when_the_lease_of_its_process_has_ended(
    cloud: MemoryCloud, clock: Clock, machine: str
) -> None:
    store = cloud.cloud.store
    assert await store.read(jobs.next_claim) is None
    job = await call(cloud, "start_fleet_job", every=True, work={"kind": "restart"})
    taken = await store.write(lambda sql: jobs.claim(sql, clock()))
    assert taken is not None
    assert taken.id == job
    assert await store.write(lambda sql: jobs.claim(sql, clock())) is None
    due = await store.read(jobs.next_claim)
    assert due is not None
    assert jobs.LEASE - timedelta(seconds=1) < due - clock() <= jobs.LEASE
    clock.now = due
    taken = await store.write(lambda sql: jobs.claim(sql, clock()))
    assert taken is not None
    assert taken.id == job


async def test_the_oldest_jobs_that_have_ended_are_deleted(cloud: MemoryCloud, machine: str) -> None:
    started = []
    for _ in range(FLEET_JOBS.value + 2):
        started.append(await call(cloud, "start_fleet_job", every=True, work={"kind": "restart"}))
        await call(cloud, "stop_fleet_job", id=started[-1])
    kept = [job["id"] for job in await call(cloud, "list_fleet_jobs")]
    assert kept == started[: -FLEET_JOBS.value - 1 : -1]
    with pytest.raises(MachineError, match="no fleet job"):
        await call(cloud, "get_fleet_job", id=started[0])


async def test_running_jobs_are_limited(cloud: MemoryCloud, machine: str) -> None:
    for _ in range(FLEET_QUEUE.value):
        await call(cloud, "start_fleet_job", every=True, work={"kind": "restart"})
    with pytest.raises(MachineError, match="fleet_queue"):
        await call(cloud, "start_fleet_job", every=True, work={"kind": "restart"})
    await finish(cloud)
    assert len(await call(cloud, "list_fleet_jobs")) == FLEET_QUEUE.value
