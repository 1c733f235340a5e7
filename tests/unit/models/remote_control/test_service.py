"""The service `base_remote_control`, with a base that records its commands."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import Any, ClassVar

import pytest
import trio
import trio.testing

from engine import Attributes, Base, Event, Extra, InputController, Subscription
from models.remote_control.model import BuiltinRemoteControl
from schema import ErrorKind, MachineError, Vector3
from schema.attributes import decode_attributes
from tests.unit.models.builtin.support import Bench

API = "rdk:service:base_remote_control"
BUILTIN = "rdk:builtin:builtin"
JOYSTICK = {"base": "base", "input_controller": "pad", "control_mode": "joystickControl"}


class RecordingBase(Base):
    """Records its commands. While `hangs` is set, SetPower does not return; `error` is raised."""

    Config: ClassVar[type[Attributes]] = Attributes
    hangs = False
    error: Exception | None = None

    def __init__(self, context: Any) -> None:
        super().__init__(context)
        self.commands: list[Any] = []
        self.stopped = trio.Event()

    async def set_power(self, linear: Vector3, angular: Vector3, *, extra: Extra = None) -> None:
        self.commands.append((linear.y, angular.z))
        if self.hangs:
            await trio.sleep_forever()
        if self.error is not None:
            raise self.error
        await trio.lowlevel.checkpoint()

    async def set_velocity(self, linear: Vector3, angular: Vector3, *, extra: Extra = None) -> None:
        self.commands.append((linear.y, angular.z))
        await trio.lowlevel.checkpoint()

    async def stop(self, *, extra: Extra = None) -> None:
        self.commands.append("stop")
        self.stopped.set()
        await trio.lowlevel.checkpoint()

    async def is_moving(self) -> bool:
        return bool(self.commands) and self.commands[-1] != "stop"


class Rig:
    """The service, its base and its input controller."""

    def __init__(self, bench: Bench, base: RecordingBase, pad: InputController, service: BuiltinRemoteControl) -> None:
        self.bench, self.base, self.pad, self.service = bench, base, pad, service

    async def push(self, control: str, value: float, kind: str = "PositionChangeAbs") -> None:
        await self.pad.trigger_event(Event(None, kind, control, value))
        await trio.testing.wait_all_tasks_blocked()

    def taken(self) -> list[Any]:
        commands, self.base.commands = self.base.commands, []
        return commands


async def rig_of(nursery: trio.Nursery, pad: str = "webgamepad", **attributes: Any) -> Rig:
    bench = Bench(nursery)
    base = await bench.add("base", "base", cls=RecordingBase)
    more = {"controls": ["AbsoluteX", "AbsoluteY"], "event_value": 0.0} if pad == "fake" else {}
    controller = await bench.add("input_controller", "pad", more, model=f"rdk:builtin:{pad}")
    service = await bench.add(API, "rc", {**JOYSTICK, **attributes}, model=BUILTIN)
    await trio.testing.wait_all_tasks_blocked()
    return Rig(bench, base, controller, service)


@pytest.fixture
async def rig(nursery: trio.Nursery) -> Rig:
    return await rig_of(nursery)


@pytest.mark.parametrize("pad", ["webgamepad", "fake"])
async def test_the_newest_state_of_all_controls_drives(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock, pad: str
) -> None:
    rig = await rig_of(nursery, pad)
    assert await rig.service.controller_inputs() == ("AbsoluteX", "AbsoluteY")
    await rig.push("AbsoluteY", -0.5)
    await rig.push("AbsoluteX", 1.0)
    assert await rig.service.is_moving()
    await rig.push("AbsoluteY", 0.0)
    await rig.push("AbsoluteX", 0.0)
    assert rig.taken() == [(0.5, 0.0), (0.5, -1.0), (0.0, -1.0), "stop"]
    assert not await rig.service.is_moving()


async def test_velocities_instead_of_power(nursery: trio.Nursery, autojump_clock: trio.testing.MockClock) -> None:
    rig = await rig_of(nursery, max_linear_mm_per_sec=400, max_angular_degs_per_sec=60)
    await rig.push("AbsoluteY", -0.5)
    await rig.push("AbsoluteX", -1.0)
    assert rig.taken() == [(200.0, 0.0), (200.0, 60.0)]


async def test_the_base_stops_when_the_controller_disconnects(autojump_clock: trio.testing.MockClock, rig: Rig) -> None:
    await rig.push("AbsoluteY", -1.0)
    await rig.push("AbsoluteX", 0.5)
    await rig.push("AbsoluteY", 0.0, "Disconnect")
    assert rig.taken()[2:] == ["stop"]
    assert "disconnected" in (await rig.service.get_status())["problem"]
    await rig.push("AbsoluteX", 0.6)  # still held
    assert rig.taken() == []
    await rig.push("AbsoluteX", 0.0, "Disconnect")
    await rig.push("AbsoluteX", 1.0, "Connect")
    assert rig.taken() == []
    await rig.push("AbsoluteX", 0.9)
    assert rig.taken() == [(0.0, -0.9)]


async def test_after_a_stop_controls_must_have_been_at_rest(autojump_clock: trio.testing.MockClock, rig: Rig) -> None:
    await rig.push("AbsoluteY", -1.0)
    await rig.service.stop()
    assert rig.taken() == [(1.0, 0.0), "stop"]
    await rig.push("AbsoluteY", -0.9)
    assert rig.taken() == []
    assert (await rig.service.get_status())["waits_for_controls_at_rest"]
    await rig.push("AbsoluteY", 0.0)
    await rig.push("AbsoluteY", -0.4)
    assert rig.taken() == [(0.4, 0.0)]


async def test_a_stop_of_the_controller_stops_the_base(autojump_clock: trio.testing.MockClock, rig: Rig) -> None:
    await rig.push("AbsoluteY", -1.0)
    await rig.pad.stop()  # type: ignore[attr-defined]
    await trio.testing.wait_all_tasks_blocked()
    assert rig.taken() == [(1.0, 0.0), "stop"]


async def test_the_base_stops_when_the_service_ends(autojump_clock: trio.testing.MockClock, rig: Rig) -> None:
    await rig.push("AbsoluteY", -1.0)
    await rig.bench.remove(rig.service)
    assert rig.taken() == [(1.0, 0.0), "stop"]


async def test_a_base_that_hangs_is_stopped(autojump_clock: trio.testing.MockClock, rig: Rig) -> None:
    rig.base.hangs = True
    await rig.push("AbsoluteY", -1.0)
    await trio.sleep(2.1)
    assert rig.taken() == [(1.0, 0.0), "stop"]
    assert "2 s" in (await rig.service.get_status())["problem"]
    rig.base.hangs = False
    await rig.push("AbsoluteY", -0.9)
    assert rig.taken() == []


async def test_a_command_that_hangs_does_not_delay_a_stop(autojump_clock: trio.testing.MockClock, rig: Rig) -> None:
    rig.base.hangs = True
    await rig.push("AbsoluteY", -1.0)
    start = trio.current_time()
    await rig.service.stop()
    assert trio.current_time() == start
    assert rig.taken()[0] == (1.0, 0.0)
    assert rig.base.stopped.is_set()
    rig.base.hangs = False
    await rig.push("AbsoluteY", 0.0)
    await rig.push("AbsoluteY", -0.5)
    assert rig.taken()[-1] == (0.5, 0.0)


async def test_an_error_of_the_base_stops_it(autojump_clock: trio.testing.MockClock, rig: Rig) -> None:
    rig.base.error = MachineError("a wheel is blocked", kind=ErrorKind.INTERNAL)
    await rig.push("AbsoluteY", -1.0)
    assert rig.taken() == [(1.0, 0.0), "stop"]
    assert "wheel" in (await rig.service.get_status())["problem"]
    rig.base.error = None
    await rig.push("AbsoluteY", 0.0)
    await rig.push("AbsoluteY", -0.5)
    assert rig.taken() == [(0.5, 0.0)]
    assert "problem" not in await rig.service.get_status()


class Ending(InputController):
    """Its stream of events ends after the first."""

    Config: ClassVar[type[Attributes]] = Attributes

    async def get_controls(self, *, extra: Extra = None) -> Sequence[str]:
        return ("AbsoluteX", "AbsoluteY")

    async def stream_events(
        self, events: Sequence[Subscription], *, extra: Extra = None
    ) -> AsyncGenerator[Event, None]:
        yield Event(None, "PositionChangeAbs", "AbsoluteY", -1.0)
        await trio.sleep(1)


async def test_the_base_stops_when_the_events_end(autojump_clock: trio.testing.MockClock) -> None:
    commands: list[Any] = []

    async def drive() -> None:
        async with trio.open_nursery() as nursery:
            bench = Bench(nursery)
            base = await bench.add("base", "base", cls=RecordingBase)
            base.commands = commands
            await bench.add("input_controller", "pad", cls=Ending)
            await bench.add(API, "rc", JOYSTICK, model=BUILTIN)
            await trio.sleep(5)

    with pytest.raises(BaseExceptionGroup) as caught:
        await drive()
    assert caught.group_contains(MachineError, match="have ended")
    assert commands == [(1.0, 0.0), "stop"]


async def test_a_controller_without_the_controls_of_the_mode_is_refused(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    bench = Bench(nursery)
    await bench.add("base", "base", cls=RecordingBase)
    await bench.add("input_controller", "pad", {"controls": ["AbsoluteX", "AbsoluteY"]})
    with pytest.raises(MachineError, match=r"AbsoluteHat0X.*joystickControl") as caught:
        await bench.add(API, "rc", {"base": "base", "input_controller": "pad"}, model=BUILTIN)
    assert caught.value.kind is ErrorKind.PRECONDITION


@pytest.mark.parametrize(
    "attributes",
    [{"max_linear_mm_per_sec": 5}, {"max_angular_degs_per_sec": 5}, {"control_mode": "flying"}, {"base": 3}],
)
def test_attributes_that_are_refused(attributes: dict[str, Any]) -> None:
    with pytest.raises(MachineError):
        decode_attributes(BuiltinRemoteControl.Config, {**JOYSTICK, **attributes}, path="attributes")
