"""The input controller `mux`."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from datetime import UTC, datetime, timedelta
from typing import ClassVar

import pytest
import trio

from engine import Attributes, Event, Extra, InputController, Subscription
from models.common.listeners import Listeners
from schema.errors import ErrorKind, MachineError
from tests.unit.models.builtin.support import Bench

MUX = "rdk:builtin:mux"
START = datetime(2026, 1, 1, tzinfo=UTC)


def event(control: str, value: float, seconds: float = 0.0, kind: str = "PositionChangeAbs") -> Event:
    return Event(START + timedelta(seconds=seconds), kind, control, value)


class Pad(InputController):
    """A gamepad with the events that a test publishes."""

    Config: ClassVar[type[Attributes]] = Attributes
    listeners: Listeners

    async def get_controls(self, *, extra: Extra = None) -> Sequence[str]:
        return tuple(self.listeners.last)

    async def get_events(self, *, extra: Extra = None) -> Sequence[Event]:
        await trio.lowlevel.checkpoint()
        return list(self.listeners.last.values())

    def stream_events(self, events: Sequence[Subscription], *, extra: Extra = None) -> AsyncGenerator[Event, None]:
        return self.listeners.stream(events)

    async def trigger_event(self, event: Event, *, extra: Extra = None) -> None:
        self.listeners.publish(event)


async def pads(bench: Bench) -> tuple[Pad, Pad]:
    left, right = [await bench.add("input_controller", name, cls=Pad) for name in ("left", "right")]
    left.listeners, right.listeners = Listeners(), Listeners()
    left.listeners.publish(event("AbsoluteX", 0.25, 5))
    right.listeners.publish(event("AbsoluteX", 0.75, 3))
    right.listeners.publish(event("ButtonStart", 0.0, kind="Connect"))
    return left, right


async def test_the_controls_and_the_newest_state_of_all_sources(bench: Bench) -> None:
    await pads(bench)
    mux = await bench.add("input_controller", "it", {"sources": ["left", "right"]}, model=MUX)
    assert list(await mux.get_controls()) == ["AbsoluteX", "ButtonStart"]
    assert {each.control: each.value for each in await mux.get_events()} == {"AbsoluteX": 0.25, "ButtonStart": 0.0}


async def test_events_of_all_sources_arrive(bench: Bench, autojump_clock: trio.testing.MockClock) -> None:
    left, right = await pads(bench)
    mux = await bench.add("input_controller", "it", {"sources": ["left", "right"]}, model=MUX)
    stream = mux.stream_events(
        [Subscription("AbsoluteX", ("AllEvents",)), Subscription("ButtonStart", ("ButtonPress",))]
    )
    received: list[Event] = []

    async def receive() -> None:
        async for each in stream:  # until it is cancelled
            received.append(each)  # noqa: PERF401 - a comprehension would end with nothing

    async with trio.open_nursery() as nursery:
        nursery.start_soon(receive)
        await trio.testing.wait_all_tasks_blocked()
        left.listeners.publish(event("AbsoluteX", -1.0, 6))
        right.listeners.publish(event("ButtonStart", 1.0, 7, "ButtonPress"))
        right.listeners.publish(event("ButtonStart", 0.0, 8, "ButtonRelease"))
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    assert {(each.control, each.value) for each in received} == {("AbsoluteX", -1.0), ("ButtonStart", 1.0)}
    assert {each.control: each.value for each in await mux.get_events()} == {"AbsoluteX": -1.0, "ButtonStart": 0.0}


async def test_a_triggered_event_goes_to_the_first_source_with_the_control(bench: Bench) -> None:
    left, right = await pads(bench)
    mux = await bench.add("input_controller", "it", {"sources": ["left", "gone", "right"]}, model=MUX)
    await mux.trigger_event(event("AbsoluteX", 0.5, 9))
    await mux.trigger_event(event("ButtonStart", 1.0, 9))
    assert (left.listeners.last["AbsoluteX"].value, right.listeners.last["AbsoluteX"].value) == (0.5, 0.75)
    assert right.listeners.last["ButtonStart"].value == 1.0
    for call in (mux.trigger_event(event("AbsoluteY", 0.5)), anext(mux.stream_events([Subscription("AbsoluteY")]))):
        with pytest.raises(MachineError, match="no control 'AbsoluteY'") as caught:
            await call
        assert caught.value.kind is ErrorKind.INVALID


async def test_it_does_not_start_without_a_source(bench: Bench) -> None:
    with pytest.raises(MachineError, match="none of left, right is ready"):
        await bench.add("input_controller", "it", {"sources": ["left", "right"]}, model=MUX)
