"""Machines and replicas that are not there, limits, and the ends of connections for calls."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import trio
import trio.testing
from grpclib.const import Status
from grpclib.reflection.v1.reflection_pb2 import ServerReflectionRequest as Request

from cloud.domain.machines.machines import note_seen
from cloud.server.memory import MemoryCloud
from cloud.work.reverse import Reverses
from tests.unit.cloud.replicas import operator_key
from tests.unit.cloud.services.reverse.site import Site, site
from tests.unit.rpc.test_calls import refused


async def test_a_machine_that_vanishes_ends_its_calls(opened: Site, part: str) -> None:
    machine = await opened.machine(part)
    async with opened.caller(part) as stub, trio.open_nursery() as nursery:
        errors = []

        async def call() -> None:
            errors.append(await refused(stub.Hang(Request())))

        nursery.start_soon(call)
        await machine.service.started.wait()
        machine.serving[0].cancel()
        while not errors:
            await trio.testing.wait_all_tasks_blocked(0.01)
        assert errors[0].status is Status.UNAVAILABLE
        assert (await stub.Echo(Request(host="again"))).valid_host == "again"
        assert len(machine.callers) == 2


async def test_a_machine_that_is_offline(opened: Site, part: str) -> None:
    async with opened.caller(part) as stub:
        error = await refused(stub.Echo(Request()))
    assert error.status is Status.UNAVAILABLE
    assert error.message == "machine rover-main is offline: start its machine-server, and check its network"


async def test_a_machine_that_does_not_open_a_connection(
    opened: Site, part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cloud.work.reverse.WAIT", 0.2)
    machine = await opened.machine(part)
    machine.source.answer_calls(lambda message: None)
    async with opened.caller(part) as stub:
        errors = []

        async def call() -> None:
            errors.append(await refused(stub.Echo(Request())))

        async with trio.open_nursery() as nursery:
            for _ in range(3):
                nursery.start_soon(call)
        assert {error.status for error in errors} == {Status.UNAVAILABLE}
        assert {error.message for error in errors} == {
            "machine rover-main did not open a connection for the call within 0.2 s: "
            "try again; if it persists, see the log of its machine-server"
        }
        machine.source.answer_calls(machine.calls.requested)
        assert (await stub.Echo(Request(host="now"))).valid_host == "now"


async def test_a_connection_closes_after_its_clients(opened: Site, part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cloud.work.reverse.LINGER", 0.1)
    machine = await opened.machine(part)
    async with opened.caller(part) as staying:
        await staying.Echo(Request(host="x"))
        async with opened.caller(part) as leaving:
            await leaving.Echo(Request(host="x"))
        await trio.sleep(0.3)  # the other client is still connected, though it makes no calls
        assert len(machine.core._connections) == 1
    while machine.core._connections:
        await trio.testing.wait_all_tasks_blocked(0.01)
    assert len(machine.callers) == 1
    assert not opened.cloud.cloud.reverses._reverses


async def test_a_call_waits_for_a_machine_that_reconnects(opened: Site, part: str) -> None:
    cloud = opened.cloud.cloud
    await cloud.store.write(lambda sql: note_seen(sql, part, cloud.clock()))  # it was here a moment ago
    async with opened.caller(part) as stub, trio.open_nursery() as nursery:
        replies = []

        async def call() -> None:
            replies.append(await stub.Echo(Request(host="x")))

        nursery.start_soon(call)
        while not cloud.reverses.awaited(part):
            await trio.testing.wait_all_tasks_blocked(0.01)
        machine = await opened.machine(part)
    assert [reply.valid_host for reply in replies] == ["x"]
    assert len(machine.callers) == 1


async def test_callers_that_begin_together_share_a_connection(opened: Site, part: str) -> None:
    machine = await opened.machine(part)
    async with opened.caller(part) as first, opened.caller(part) as second, trio.open_nursery() as nursery:
        for stub in (first, second) * 5:
            nursery.start_soon(stub.Echo, Request(host="x"))
    assert len(machine.callers) == 1
    other = await opened.cloud.cloud.store.write(lambda sql: operator_key(sql, opened.cloud))
    async with opened.caller(part, other) as stub:
        await stub.Echo(Request(host="x"))
    assert [caller.entity for caller in machine.callers] == [opened.cloud.first.id, other[0]]


async def test_an_idle_connection_is_closed(opened: Site, part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cloud.web.api.serve.IDLE", 0.1)
    machine = await opened.machine(part)
    async with opened.caller(part) as stub:
        for count in (1, 2):
            await stub.Echo(Request(host="x"))
            assert len(machine.callers) == count
            while opened.cloud.cloud.reverses._reverses:
                await trio.testing.wait_all_tasks_blocked(0.01)
    assert not machine.core._connections


async def test_the_limits_of_calls(opened: Site, part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cloud.services.reverse.calls.CALLS_OF_KEY", 1)
    monkeypatch.setattr("cloud.services.reverse.opening.CONNECTIONS", 1)
    machine = await opened.machine(part)
    other = await opened.cloud.cloud.store.write(lambda sql: operator_key(sql, opened.cloud))
    async with opened.caller(part) as stub, opened.caller(part, other) as second, trio.open_nursery() as nursery:
        nursery.start_soon(stub.Hang, Request())
        await machine.service.started.wait()
        assert (await refused(stub.Echo(Request()))).status is Status.RESOURCE_EXHAUSTED
        error = await refused(second.Echo(Request()))
        assert error.status is Status.RESOURCE_EXHAUSTED
        assert "1 callers are connected" in (error.message or "")
        nursery.cancel_scope.cancel()


async def test_a_request_that_is_too_large(cloud: MemoryCloud, part: str, tmp_path: Path) -> None:
    limits = type(cloud.cloud.limits)(message=100_000)
    async with site(cloud, tmp_path, limits=limits) as opened:
        await opened.machine(part)
        async with opened.caller(part) as stub:
            assert (await stub.Echo(Request(host="x" * 90_000))).valid_host == "x" * 90_000
            for call in (stub.Collect([Request(host="x" * 100_001)]), stub.Many(Request(host="1,100001"))):
                assert (await refused(call)).status is Status.RESOURCE_EXHAUSTED


@pytest.mark.parametrize("addressed", [True, False], ids=["with an address", "without"])
async def test_a_machine_that_is_connected_to_another_replica(
    cloud: MemoryCloud, part: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, addressed: bool
) -> None:
    monkeypatch.setattr("cloud.work.reverse.WAIT", 10.0 if addressed else 0.3)
    other = MemoryCloud(replace(cloud.cloud, reverses=Reverses()), cloud.first)
    async with site(cloud, tmp_path) as near, site(other, tmp_path, replica=addressed) as far:
        await near.machine(part)
        await cloud.cloud.store.write(lambda sql: note_seen(sql, part, cloud.cloud.clock(), {}))
        async with far.caller(part) as stub:
            if addressed:
                assert (await stub.Echo(Request(host="x"))).valid_host == "x"
            else:
                assert (await refused(stub.Echo(Request()))).status is Status.UNAVAILABLE
