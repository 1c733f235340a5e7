"""Input controller and sensor: contact bounce, and levels by name."""

from __future__ import annotations

from contextlib import aclosing
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from engine.components.controls.input_controller import Event, Subscription
from hal.errors import Fault, HalError
from hal.sim.faults import FaultPlan
from models.gpio.input_controller.attributes import GpioInputControllerConfig
from models.gpio.input_sensor.attributes import GpioInputConfig
from schema.attributes import decode_attributes
from schema.errors import ConfigError, MachineError
from tests.unit.models.builtin.support import Bench

INTERRUPTS = [{"name": "go", "pin": "3"}, {"name": "estop", "pin": "4"}, {"name": "mode", "pin": "5"}]
CONTACTS = {
    "buttons": {
        "go": {"control": "ButtonStart", "debounce_msec": 20},
        "estop": {"control": "ButtonEStop", "invert": True, "debounce_msec": 0},
    },
    "toggles": {"mode": {"control": "AbsoluteZ", "debounce_msec": 20}},
}


class Heard:
    """Record every event that a listener receives."""

    def __init__(self, pad: Any, nursery: trio.Nursery, subscriptions: list[Subscription]) -> None:
        self.events: list[tuple[str, str, float]] = []
        nursery.start_soon(self._listen, pad, subscriptions)

    async def _listen(self, pad: Any, subscriptions: list[Subscription]) -> None:
        async with aclosing(pad.stream_events(subscriptions)) as events:
            async for event in events:
                self.events.append((event.control, event.event, event.value))


async def controls(bench: Bench) -> tuple[Any, Any]:
    pi = await bench.add("board", "pi", {"digital_interrupts": INTERRUPTS})
    await pi.set_gpio("4", True)
    pad = await bench.add("input_controller", "pad", {"board": "pi", **CONTACTS}, model="rdk:builtin:gpio")
    return pi, pad


async def test_presses_and_positions_are_reported(
    bench: Bench, nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    pi, pad = await controls(bench)
    assert await pad.get_controls() == ["ButtonStart", "ButtonEStop", "AbsoluteZ"]
    assert [(event.event, event.value) for event in await pad.get_events()] == [("Connect", 0.0)] * 3
    heard = Heard(pad, nursery, [Subscription(control, ["AllEvents"]) for control in await pad.get_controls()])
    await trio.testing.wait_all_tasks_blocked()
    for pin, high in (("3", True), ("3", False), ("4", False), ("5", True), ("4", True), ("5", False)):
        await pi.set_gpio(pin, high)
        await trio.sleep(0.1)
    assert heard.events == [
        ("ButtonStart", "ButtonPress", 1.0),
        ("ButtonStart", "ButtonRelease", 0.0),
        ("ButtonEStop", "ButtonPress", 1.0),
        ("AbsoluteZ", "PositionChangeAbs", 1.0),
        ("ButtonEStop", "ButtonRelease", 0.0),
        ("AbsoluteZ", "PositionChangeAbs", 0.0),
    ]


async def test_a_contact_that_bounces_is_believed_once(
    bench: Bench, nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    pi, pad = await controls(bench)
    heard = Heard(pad, nursery, [Subscription("ButtonStart", ["ButtonChange"])])
    await trio.testing.wait_all_tasks_blocked()
    for high in (True, False, True, False, True):
        await pi.set_gpio("3", high)
        await trio.sleep(0.005)
    assert heard.events == []
    await trio.sleep(0.05)
    assert heard.events == [("ButtonStart", "ButtonPress", 1.0)]
    await pi.set_gpio("3", False)
    await trio.sleep(0.01)
    await pi.set_gpio("3", True)  # too short to count as a release
    await trio.sleep(1)
    assert len(heard.events) == 1


async def test_only_what_was_asked_for_is_heard(bench: Bench, nursery: trio.Nursery, autojump_clock: MockClock) -> None:
    pi, pad = await controls(bench)
    heard = Heard(pad, nursery, [Subscription("ButtonStart", ["ButtonRelease"])])
    await trio.testing.wait_all_tasks_blocked()
    for high in (True, False):
        await pi.set_gpio("3", high)
        await trio.sleep(0.1)
    assert heard.events == [("ButtonStart", "ButtonRelease", 0.0)]
    assert (await pad.get_events())[0].event == "ButtonRelease"


async def test_triggered_events_are_heard(bench: Bench, nursery: trio.Nursery, autojump_clock: MockClock) -> None:
    _, pad = await controls(bench)
    heard = Heard(pad, nursery, [Subscription("ButtonEStop", ["AllEvents"])])
    await trio.testing.wait_all_tasks_blocked()
    await pad.trigger_event(Event(None, "ButtonPress", "ButtonEStop", 1.0))
    await trio.testing.wait_all_tasks_blocked()
    assert heard.events == [("ButtonEStop", "ButtonPress", 1.0)]
    for call in (pad.trigger_event, lambda event: pad.stream_events([Subscription(event.control)])):
        with pytest.raises(MachineError, match="no control 'ButtonX'"):
            await call(Event(None, "ButtonPress", "ButtonX", 1.0))


@pytest.mark.parametrize(
    ("attributes", "says"),
    [
        ({}, "give buttons or toggles"),
        ({"buttons": {"a": {"control": "X"}, "b": {"control": "X"}}}, "two contacts are called X"),
        ({"buttons": {"a": {"control": "X"}}, "toggles": {"a": {"control": "Y"}}}, "both a button and a toggle"),
        ({"buttons": {"a": {"control": "X", "debounce_msec": -2}}}, "debounce_msec"),
    ],
)
def test_controllers_that_cannot_be(attributes: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        decode_attributes(GpioInputControllerConfig, {"board": "pi", **attributes}, path="attributes")


async def test_levels_by_name(bench: Bench, autojump_clock: MockClock) -> None:
    pi = await bench.add("board", "pi")
    attributes = {"board": "pi", "pins": {"door_open": "3", "tank_full": "4"}, "invert": ["tank_full"]}
    sensor = await bench.add("sensor", "levels", attributes, model="rdk:builtin:gpio_input")
    assert await sensor.get_readings() == {"door_open": False, "tank_full": True}
    await pi.set_gpio("3", True)
    await pi.set_gpio("4", True)
    assert await sensor.get_readings() == {"door_open": True, "tank_full": False}
    bench.world.faults.inject("pi", FaultPlan(Fault.GONE))
    with pytest.raises(HalError):
        await sensor.get_readings()
    with pytest.raises(ConfigError, match="invert contains 'x', which is not one of a"):
        decode_attributes(GpioInputConfig, {"board": "pi", "pins": {"a": "1"}, "invert": ["x"]}, path="attributes")
