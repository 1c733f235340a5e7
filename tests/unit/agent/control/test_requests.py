"""Requests of the cloud: each is carried out once, also after outages, and a cloud without them is asked rarely."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import pytest
import trio

from agent.control.requests import CALL_LIMIT, MAX_DELAY, SHORTEST, UNSUPPORTED, CloudRequest, follow_requests
from rpc.api.client import ApiClient
from schema.errors import ErrorKind, MachineError
from uplink.dial import CloudAddress
from uplink.releases import REQUEST_WAIT

UPDATE = {"id": "1", "kind": "update", "program": "machine-server"}
CHECK = {"id": "2", "kind": "check", "program": ""}


class World:
    """A cloud that answers calls with a list of requests or errors, and then lets each call wait."""

    def __init__(self, *answers: list[dict[str, str]] | Exception) -> None:
        self.answers = list(answers)
        self.calls: list[tuple[float, list[str]]] = []
        self.done: list[tuple[float, CloudRequest]] = []
        self.silent = False
        self.address = CloudAddress("https://cloud.example", "p1", "p1", "robot-secret", "secret")

    async def call(self, service: str, name: str, method: str, **arguments: Any) -> list[dict[str, str]]:
        assert (service, name, method) == ("machine.cloud.v1.AgentService", "", "wait_for_agent_requests")
        assert arguments["part_id"] == "p1"
        self.calls.append((trio.current_time(), arguments["arrived"]))
        if self.silent:
            await trio.sleep_forever()
        if not self.answers:
            await trio.sleep(REQUEST_WAIT)
            return []
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def carry_out(self, request: CloudRequest) -> None:
        self.done.append((trio.current_time(), request))

    @property
    def requests(self) -> list[CloudRequest]:
        return [request for _, request in self.done]


async def run(world: World, seconds: float, then: Callable[[], None] | None = None) -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(follow_requests, cast(ApiClient, world), world.address, world.carry_out)
        await trio.sleep(seconds)
        if then is not None:
            then()
            await trio.sleep(1)
        nursery.cancel_scope.cancel()


async def test_a_request_is_carried_out_at_once_and_confirmed_by_the_next_call(autojump_clock: Any) -> None:
    world = World([UPDATE, CHECK])
    start = trio.current_time()
    await run(world, 2)
    assert world.done == [(start, CloudRequest("update", "machine-server")), (start, CloudRequest("check", ""))]
    assert [arrived for _, arrived in world.calls] == [[], ["1", "2"]]


async def test_a_request_that_is_sent_again_is_not_carried_out_again(autojump_clock: Any) -> None:
    lost = MachineError("lost", kind=ErrorKind.UNAVAILABLE)
    world = World([UPDATE], lost, [UPDATE], [UPDATE, CHECK])
    await run(world, 60)
    assert world.requests == [CloudRequest("update", "machine-server"), CloudRequest("check", "")]
    assert [arrived for _, arrived in world.calls[:5]] == [[], ["1"], ["1"], ["1"], ["1", "2"]]


async def test_an_idle_agent_makes_one_call_in_the_time_that_the_cloud_waits(autojump_clock: Any) -> None:
    world = World()
    await run(world, 3600)
    assert len(world.calls) == pytest.approx(3600 / REQUEST_WAIT, abs=2)


async def test_a_cloud_that_does_not_wait_is_not_asked_without_a_pause(autojump_clock: Any) -> None:
    world = World(*[[]] * 1000)
    await run(world, 100)
    assert len(world.calls) == pytest.approx(100 / SHORTEST, abs=2)


async def test_an_outage_is_followed_by_growing_pauses_and_ends_with_contact(autojump_clock: Any) -> None:
    world = World(*[MachineError("away", kind=ErrorKind.UNAVAILABLE)] * 1000)
    await run(world, 7200)
    assert 7200 / MAX_DELAY < len(world.calls) < 2 * 7200 / MAX_DELAY + 10
    before = len(world.calls)
    await run(world, 600, world.address.contact.mark_reached)
    assert world.calls[-1][0] == pytest.approx(trio.current_time() - 1)
    assert len(world.calls) > before


async def test_a_cloud_without_the_call_is_asked_rarely(autojump_clock: Any) -> None:
    world = World(*[MachineError("no such method", kind=ErrorKind.UNSUPPORTED)] * 1000)
    await run(world, 24 * UNSUPPORTED)
    assert 21 <= len(world.calls) <= 27


async def test_a_call_that_gets_no_answer_ends_after_a_limit(autojump_clock: Any) -> None:
    world = World()
    world.silent = True
    await run(world, 2 * CALL_LIMIT + 10)
    assert len(world.calls) >= 2
