"""Input controller `gamepad` on simulated hardware, in virtual time."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from engine.components.controls.input_controller import Event, InputController, Subscription
from hal.errors import Fault, HalError
from hal.ports.controls import ControlChange, ControlsIdentity
from hal.sim.controls import SimGamepad
from models.common.controls import CONTROLS
from models.common.listeners import BUFFER
from models.devices.gamepad.attributes import GamepadConfig
from schema.errors import ErrorKind, MachineError
from tests.unit.models.builtin.support import Bench

PAD = ControlsIdentity("/dev/input/event3", "Test Pad", 0x045E, 0x028E, "aa:bb")
CONTROLLER = "rdk:component:input_controller"
SOUTH, START = 0x130, 0x13B


@pytest.fixture
def pad(bench: Bench) -> SimGamepad:
    return bench.hardware.plug_gamepad(PAD)


async def started(bench: Bench, **attributes: object) -> InputController:
    controller: InputController = await bench.add(CONTROLLER, "it", attributes, model="gamepad")
    await wait_all_tasks_blocked()
    return controller


def everything(controls: tuple[str, ...]) -> list[Subscription]:
    return [Subscription(control, ["AllEvents"]) for control in controls]


@asynccontextmanager
async def listening(controller: InputController) -> AsyncIterator[list[tuple[str, str, float]]]:
    """Collect the events that a client receives."""
    heard: list[tuple[str, str, float]] = []
    stream = controller.stream_events(everything(tuple(await controller.get_controls())))

    async def listen() -> None:
        async with aclosing(stream):
            async for event in stream:
                heard.append((event.event, event.control, event.value))  # noqa: PERF401 - as they come

    async with trio.open_nursery() as nursery:
        nursery.start_soon(listen)
        await wait_all_tasks_blocked()
        yield heard
        nursery.cancel_scope.cancel()


async def test_a_usual_gamepad_has_controls_that_clients_know(
    bench: Bench, pad: SimGamepad, autojump_clock: object
) -> None:
    controller = await started(bench)
    controls = await controller.get_controls()
    assert set(controls) <= set(CONTROLS)
    assert {"AbsoluteX", "AbsoluteRZ", "AbsoluteHat0Y", "ButtonSouth", "ButtonMenu"} <= set(controls)
    assert {(e.control, e.event, e.value) for e in await controller.get_events()} == {
        (control, "Connect", 0.0) for control in controls
    }


async def test_events_come_with_their_values(bench: Bench, pad: SimGamepad, autojump_clock: object) -> None:
    controller = await started(bench)
    async with listening(controller) as heard:
        pad.move(0, 32767)
        pad.report(ControlChange(False, 1, -32768), ControlChange(True, SOUTH, 1))
        pad.press(SOUTH, 2)
        pad.press(SOUTH, 0)
        pad.move(5, 255)
        await wait_all_tasks_blocked()
        assert heard == [
            ("PositionChangeAbs", "AbsoluteX", 1.0),
            ("PositionChangeAbs", "AbsoluteY", -1.0),
            ("ButtonPress", "ButtonSouth", 1.0),
            ("ButtonHold", "ButtonSouth", 1.0),
            ("ButtonRelease", "ButtonSouth", 0.0),
            ("PositionChangeAbs", "AbsoluteRZ", 1.0),
        ]
        last = {event.control: event for event in await controller.get_events()}
        assert last["AbsoluteRZ"].value == 1.0
        assert last["ButtonSouth"].event == "ButtonRelease"


async def test_a_gamepad_that_goes_away_lets_go_of_everything_and_comes_back(
    bench: Bench, pad: SimGamepad, autojump_clock: object
) -> None:
    controller = await started(bench)
    pad.move(1, -32768)
    pad.press(SOUTH)
    await wait_all_tasks_blocked()
    async with listening(controller) as heard:
        pad.unplug()
        await wait_all_tasks_blocked()
        assert set(heard[:2]) == {("PositionChangeAbs", "AbsoluteY", 0.0), ("ButtonRelease", "ButtonSouth", 0.0)}
        controls = await controller.get_controls()
        assert set(heard[2:]) == {("Disconnect", control, 0.0) for control in controls}
        assert all((e.event, e.value) == ("Disconnect", 0.0) for e in await controller.get_events())
        assert await controller.get_status() == {"connected": False}
        heard.clear()
        pad.plug()
        await wait_all_tasks_blocked()
        assert set(heard) == {("Connect", control, 0.0) for control in controls}
        heard.clear()
        pad.press(START)
        await wait_all_tasks_blocked()
        assert heard == [("ButtonPress", "ButtonStart", 1.0)]


async def test_it_is_ready_before_the_gamepad_is_there(bench: Bench, autojump_clock: object) -> None:
    controller = await started(bench, vendor_id="045e")
    with pytest.raises(MachineError, match="not been connected") as caught:
        await controller.get_controls()
    assert caught.value.kind is ErrorKind.UNAVAILABLE
    assert await controller.get_events() == []
    other = bench.hardware.plug_gamepad(ControlsIdentity("/dev/input/event1", "Other", 1, 2))
    await wait_all_tasks_blocked()
    assert await controller.get_status() == {"connected": False}
    bench.hardware.plug_gamepad(PAD)
    await wait_all_tasks_blocked()
    assert await controller.get_status() == {"connected": True, "device": "Test Pad", "path": "/dev/input/event3"}
    assert other.plugged


async def test_without_auto_reconnect_losing_it_is_a_failure(autojump_clock: object) -> None:
    async def until_lost() -> None:
        async with trio.open_nursery() as nursery:
            bench = Bench(nursery)
            pad = bench.hardware.plug_gamepad(PAD)
            await started(bench, auto_reconnect=False)
            pad.unplug()

    with pytest.raises(BaseExceptionGroup) as caught:
        await until_lost()
    (error,) = caught.value.exceptions
    assert isinstance(error, HalError)
    assert error.fault is Fault.GONE


async def test_a_slow_listener_gets_how_it_is_at_last(bench: Bench, pad: SimGamepad, autojump_clock: object) -> None:
    controller = await started(bench)
    stream = controller.stream_events(
        [Subscription("AbsoluteX", ["PositionChangeAbs"]), Subscription("ButtonStart", ["ButtonChange"])]
    )
    async with aclosing(stream):
        first: list[Event] = []

        async def take() -> None:
            first.append(await anext(stream))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(take)
            await wait_all_tasks_blocked()
            pad.move(0, 20000)
        for step in range(BUFFER * 2):
            pad.move(0, 10000 + step)
            if step % 50 == 0:
                await wait_all_tasks_blocked()
        pad.press(START)
        pad.move(0, -32768)
        await wait_all_tasks_blocked()
        last: dict[str, Event] = {}
        with trio.move_on_after(1):
            async for event in stream:
                last[event.control] = event
        assert last["AbsoluteX"].value == -1.0
        assert last["ButtonStart"].value == 1.0


async def test_configured_controls_must_exist(bench: Bench, pad: SimGamepad, autojump_clock: object) -> None:
    controller = await started(bench)
    with pytest.raises(MachineError, match="ButtonSuoth"):
        controller.stream_events([Subscription("ButtonSuoth", ["AllEvents"])])
    await controller.stream_events([Subscription("ButtonEStop", ["AllEvents"])]).aclose()


async def test_grab_and_dead_zone_reach_the_device(bench: Bench, pad: SimGamepad, autojump_clock: object) -> None:
    controller = await started(bench, grab=True, dead_zone=0.5, path="/dev/input/event3")
    assert pad.grabbed
    async with listening(controller) as heard:
        pad.move(0, 16383)
        pad.move(0, 24575)
        await wait_all_tasks_blocked()
        assert [(control, round(value, 3)) for _, control, value in heard] == [("AbsoluteX", 0.5)]
    await bench.remove(controller)
    assert not pad.grabbed


def test_a_device_has_one_path() -> None:
    with pytest.raises(ValueError, match="mean the same"):
        GamepadConfig(path="/dev/input/event0", dev_file="/dev/input/event1")
    assert GamepadConfig(dev_file="/dev/input/js").identity().path == "/dev/input/js"
