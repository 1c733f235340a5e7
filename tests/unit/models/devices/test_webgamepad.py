"""The input controller `webgamepad`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
import trio
import trio.testing

from engine import Event, InputController, Subscription
from models.common.controls import CONTROLS
from schema import ErrorKind, MachineError
from tests.unit.models.builtin.support import Bench

WEB = "rdk:builtin:webgamepad"


@pytest.fixture
async def bench(nursery: trio.Nursery) -> Bench:
    return Bench(nursery)


async def pad_of(bench: Bench, attributes: Mapping[str, Any]) -> InputController:
    pad = await bench.add("input_controller", "pad", dict(attributes), model=WEB)
    assert isinstance(pad, InputController)
    return pad


def moved(control: str, value: float) -> Event:
    return Event(None, "PositionChangeAbs", control, value)


async def state(pad: InputController, control: str) -> tuple[str, float]:
    return next((each.event, each.value) for each in await pad.get_events() if each.control == control)


async def test_triggered_events_are_the_state_and_the_stream(
    bench: Bench, autojump_clock: trio.testing.MockClock
) -> None:
    pad = await pad_of(bench, {})
    controls = await pad.get_controls()
    assert set(controls) <= set(CONTROLS)
    assert {(each.event, each.value) for each in await pad.get_events()} == {("Disconnect", 0.0)}
    received: list[Event] = []

    async def receive() -> None:
        async for each in pad.stream_events([Subscription("AbsoluteX", ("AllEvents",))]):
            received.append(each)  # noqa: PERF401 - a comprehension would end with nothing

    async with trio.open_nursery() as nursery:
        nursery.start_soon(receive)
        await trio.testing.wait_all_tasks_blocked()
        await pad.trigger_event(moved("AbsoluteX", 0.5))
        await pad.trigger_event(moved("AbsoluteY", -1.0))
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    assert [(each.control, each.value) for each in received] == [("AbsoluteX", 0.5)]
    assert received[0].time is not None
    assert await state(pad, "AbsoluteY") == ("PositionChangeAbs", -1.0)
    await trio.sleep(3600)
    assert await state(pad, "AbsoluteX") == ("PositionChangeAbs", 0.5)  # no limit is configured


async def test_controls_return_to_rest_when_the_browser_vanishes(
    bench: Bench, autojump_clock: trio.testing.MockClock
) -> None:
    pad = await pad_of(bench, {"disconnect_after_ms": 500})
    await trio.sleep(10)
    await pad.trigger_event(moved("AbsoluteX", 0.5))
    for _ in range(10):
        await trio.sleep(0.4)
        await pad.trigger_event(moved("AbsoluteY", 0.1))
    assert await state(pad, "AbsoluteX") == ("PositionChangeAbs", 0.5)
    await trio.sleep(0.6)
    assert await state(pad, "AbsoluteX") == ("Disconnect", 0.0)
    assert await state(pad, "AbsoluteY") == ("Disconnect", 0.0)
    await pad.trigger_event(moved("AbsoluteX", 0.0))
    await trio.sleep(10)
    assert await state(pad, "AbsoluteX") == ("PositionChangeAbs", 0.0)  # at rest, so nothing has to stop


@pytest.mark.parametrize("event", [moved("Other", 1.0), moved("AbsoluteX", float("nan"))])
async def test_bad_events_are_refused(bench: Bench, event: Event) -> None:
    pad = await pad_of(bench, {})
    with pytest.raises(MachineError) as caught:
        await pad.trigger_event(event)
    assert caught.value.kind is ErrorKind.INVALID
