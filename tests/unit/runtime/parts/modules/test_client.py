"""Calls to a module, and its wait for the machine: time limits exclude time in which this process was suspended."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from rpc.client.channel import Channel
from runtime.parts.modules import apis
from runtime.parts.modules.client import ModuleClient, Needs, Offer
from runtime.parts.modules.foreign import ForeignApi
from runtime.sdk.logs import MachineSink
from runtime.sdk.parent import ASK_LIMIT, Parent
from schema.document.resources import ResourceEntry
from schema.names import API, Model, ResourceName


class Calls:
    """Calls that the test answers."""

    def __init__(self) -> None:
        self.asked = 0
        self.answer = trio.Event()

    async def call(self, *names: str, **arguments: Any) -> Any:
        self.asked += 1
        await self.answer.wait()
        await trio.lowlevel.checkpoint()
        return {"ready": True, "handlermap": None, "dependencies": ["arm"], "optional_dependencies": []}


async def test_answers_that_came_while_this_process_was_stopped_count(
    mock_clock: MockClock, nursery: trio.Nursery
) -> None:
    client, calls = ModuleClient(cast(Channel, None), "demo"), Calls()
    client.calls = cast(Any, calls)
    sensor = API("rdk", "component", "sensor")
    entry = ResourceEntry(ResourceName(sensor, "one"), Model.parse("acme:demo:one"))
    results: list[Needs] = []

    async def validate() -> None:
        results.append(await client.validate(entry))

    nursery.start_soon(validate)
    nursery.start_soon(client.ready, "parent")
    await wait_all_tasks_blocked()
    calls.answer.set()
    mock_clock.jump(60)
    await wait_all_tasks_blocked()
    assert results == [Needs(required=("arm",))]
    assert (calls.asked, client.not_ready_reason) == (2, "")


async def test_an_api_is_learned_even_if_this_process_was_stopped(
    mock_clock: MockClock, nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    gizmo, answer, learned = API("acme", "component", "gizmo"), trio.Event(), cast(ForeignApi, object())
    results: list[Any] = []

    async def describe(*asked: object) -> ForeignApi:
        await answer.wait()
        await trio.lowlevel.checkpoint()
        return learned

    async def learn() -> None:
        results.append(await apis.learn(cast(Channel, None), Offer(services=((gizmo, "acme.v1.GizmoService"),))))

    monkeypatch.setattr(apis, "_describe", describe)
    nursery.start_soon(learn)
    await wait_all_tasks_blocked()
    answer.set()
    mock_clock.jump(60)
    await wait_all_tasks_blocked()
    assert results == [({gizmo: learned}, {})]


async def test_a_module_that_was_stopped_hears_the_machine_that_has_asked(
    mock_clock: MockClock, nursery: trio.Nursery
) -> None:
    question, dialled, gone = trio.Event(), list[str](), list[str]()

    @asynccontextmanager
    async def dial(address: str) -> AsyncIterator[Any]:
        dialled.append(address)
        await trio.sleep_forever()
        yield

    async def listen() -> None:
        await question.wait()
        await trio.lowlevel.checkpoint()
        parent.introduce("/machine.sock")

    parent = Parent("demo", cast(MachineSink, None), gone.append, dial)
    await nursery.start(parent.run, {})
    nursery.start_soon(listen)
    await wait_all_tasks_blocked()
    question.set()
    mock_clock.jump(2 * ASK_LIMIT)
    await wait_all_tasks_blocked()
    assert (dialled, gone) == (["/machine.sock"], [])
    nursery.cancel_scope.cancel()
