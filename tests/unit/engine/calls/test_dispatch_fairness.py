"""Call limits of a resource: no client takes all places, and calls that stop something are never refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest
import trio
from trio.testing import MockClock, memory_stream_pair, wait_all_tasks_blocked

from engine.components.motion.motor import Motor
from engine.registry import Registry
from engine.resource import Extra
from rpc.api.client import ApiClient
from rpc.call import ServerCore
from rpc.client.channel import Channel
from rpc.http2.server import serve_http2
from runtime.server.memory import MemoryMachine, open_machine
from runtime.server.port.serving import REQUESTS_LIMIT_VARIABLE
from schema.errors import ErrorKind, MachineError
from schema.names import Model

MOTOR, ROBOT = "rdk:component:motor", "viam.robot.v1.RobotService"
DOCUMENT = {"components": [{"name": "m", "api": MOTOR, "model": "test"}]}


class Endless(Motor):
    """Turn until cancelled."""

    async def go_for(self, rpm: float, revolutions: float, *, extra: Extra = None) -> None:
        await trio.sleep_forever()

    async def stop(self, *, extra: Extra = None) -> None:
        pass

    async def is_moving(self) -> bool:
        return True

    async def get_position(self, *, extra: Extra = None) -> float:
        await trio.sleep(0.1)
        return 1.5


def registry() -> Registry:
    result = Registry({})
    result.add(Endless.API, Model.parse("test"), Endless)
    return result


class Hog:
    """A client with many calls in flight in one session."""

    def __init__(self, memory: MemoryMachine, session: str) -> None:
        self.client = memory.client({"viam-sid": session})
        self.refused: list[MachineError] = []

    async def call(self) -> None:
        try:
            await self.client.call(MOTOR, "m", "go_for", rpm=1.0, revolutions=1.0)
        except MachineError as error:
            self.refused.append(error)


async def hog(memory: MemoryMachine, nursery: trio.Nursery, calls: int) -> Hog:
    session: Mapping[str, Any] = await memory.client().call(ROBOT, "", "start_session", resume="")
    result = Hog(memory, session["id"])
    for _ in range(calls):
        nursery.start_soon(result.call)
    await wait_all_tasks_blocked()
    return result


async def test_a_thousand_calls_of_one_client_leave_places_for_others(
    mock_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(REQUESTS_LIMIT_VARIABLE, "100")
    async with open_machine(DOCUMENT, registry=registry()) as memory, trio.open_nursery() as nursery:
        await memory.machine.lifecycle.running.wait()
        first = await hog(memory, nursery, 1000)
        assert len(first.refused) == 925
        assert {error.kind for error in first.refused} == {ErrorKind.EXHAUSTED}
        assert "motor/m has 75 of 100 calls in flight, held by 127.0.0.1:0 75; this client holds its share" in str(
            first.refused[-1]
        )
        assert "(75 GoFor)" in str(first.refused[-1])
        assert await memory.client().call(MOTOR, "m", "is_moving") is True
        second = await hog(memory, nursery, 100)
        assert 0 < len(second.refused) < 100
        assert await memory.client().call(MOTOR, "m", "is_moving") is True
        await second.client.call(MOTOR, "m", "stop")  # stop needs no free place
        await memory.client().call(ROBOT, "", "stop_all")
        await wait_all_tasks_blocked()
        assert await first.client.call(MOTOR, "m", "is_moving") is True  # all places are free again
        assert memory.serving.dispatch._places == {}
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("session", [False, True])
async def test_a_client_that_keeps_to_its_streams_is_never_refused(autojump_clock: MockClock, session: bool) -> None:
    """A thousand calls over one connection, 128 at a time, all to one resource."""
    async with open_machine(DOCUMENT, registry=registry()) as memory, trio.open_nursery() as nursery:
        await memory.machine.lifecycle.running.wait()
        core = ServerCore(memory.serving.router)
        outcomes: list[Any] = []

        async def connect() -> trio.abc.Stream:
            near, far = memory_stream_pair()
            nursery.start_soon(serve_http2, far, core)
            return near

        async with Channel("machine:1", connect=connect) as channel:
            begun = await ApiClient(channel).call(ROBOT, "", "start_session", resume="")
            client = ApiClient(channel, metadata={"viam-sid": begun["id"]} if session else None)

            async def call() -> None:
                try:
                    outcomes.append(await client.call(MOTOR, "m", "get_position"))
                except MachineError as error:
                    outcomes.append(error.kind)

            async with trio.open_nursery() as calls:
                for _ in range(1000):
                    calls.start_soon(call)
        assert Counter(outcomes) == {1.5: 1000}
        nursery.cancel_scope.cancel()


async def test_calls_that_never_begin_hold_no_place(autojump_clock: MockClock) -> None:
    async with open_machine(DOCUMENT, registry=registry()) as memory:
        await memory.machine.lifecycle.running.wait()
        for metadata in ({"opid": "nonsense"}, {"viam-sid": "nobody"}):
            for api, name, method in ((MOTOR, "m", "is_moving"), (ROBOT, "", "resource_names")):
                if "viam-sid" in metadata and api == ROBOT:
                    continue
                with pytest.raises(MachineError) as caught:
                    await memory.client(metadata).call(api, name, method)
                assert caught.value.kind is ErrorKind.INVALID
        assert memory.serving.dispatch._places == {}
