from __future__ import annotations

from typing import Any

import pytest
import trio
from trio.testing import MockClock

from micro.wire import faults
from micro.wire.faults import CallFailure
from tests.unit.micro.bench import BOARD, MicroBench, component

BRIDGE = component("motor", "m", "gpio", board="pins", pins={"a": "1", "b": "2"}, max_rpm=60)


def driven(bench: MicroBench) -> dict[str, Any]:
    """Return what drives each pin: a duty cycle, or true; pins that are low are left out."""
    levels = {pin: True for pin, high in bench.port.levels.items() if high}
    return levels | {pin: duty for pin, (duty, _) in bench.port.pwm.items()}


@pytest.mark.parametrize(
    ("pins", "forward", "backward"),
    [
        ({"a": "1", "b": "2"}, {"1": 0.25}, {"2": 0.25}),
        ({"a": "1", "b": "2", "pwm": "3"}, {"1": True, "3": 0.25}, {"2": True, "3": 0.25}),
        ({"dir": "1", "pwm": "3"}, {"1": True, "3": 0.25}, {"3": 0.25}),
        ({"a": "1", "b": "2", "en_high": "4", "en_low": "5"}, {"1": 0.25, "4": True}, {"2": 0.25, "4": True}),
    ],
)
async def test_bridges(pins: dict[str, str], forward: dict[str, Any], backward: dict[str, Any]) -> None:
    bench = MicroBench(BOARD, component("motor", "m", "gpio", board="pins", pins=pins))
    rest = {"5": True} if "en_low" in pins else {}
    assert driven(bench) == rest
    for power, expected in ((0.25, forward), (-0.25, backward), (0.25, forward), (0.0, rest)):
        await bench.call("motor", "SetPower", name="m", power_pct=power)
        moving = dict(driven(bench))
        if power == 0:
            moving.pop("1", None) if "dir" in pins else None
        assert moving == expected
        assert (await bench.call("motor", "IsPowered", name="m"))["power_pct"] == power
    await bench.call("motor", "SetPower", name="m", power_pct=1)
    bench.apply(BOARD)
    assert not {"1", "2", "3", "4"} & set(driven(bench)) - ({"1"} if "dir" in pins else set())


async def test_both_inputs_are_never_high_together() -> None:
    bench = MicroBench(BOARD, BRIDGE)
    seen = []
    set_level, set_pwm = bench.port.set_level, bench.port.set_pwm

    def look(*args: Any) -> None:
        (set_level if len(args) == 2 else set_pwm)(*args)
        seen.append(set(driven(bench)))

    bench.port.set_level = bench.port.set_pwm = look  # type: ignore[method-assign, assignment]
    for power in (1, -1, 0.5, -0.5, 1, 0):
        await bench.call("motor", "SetPower", name="m", power_pct=power)
    assert seen
    assert all(len(pins) <= 1 for pins in seen)


async def test_limits_and_flip() -> None:
    attributes = {**BRIDGE["attributes"], "min_power_pct": 0.3, "max_power_pct": 0.8, "dir_flip": True}
    bench = MicroBench(BOARD, {**BRIDGE, "attributes": attributes})
    for power, pin, duty in ((0.1, "2", 0.3), (0.5, "2", 0.5), (-1.0, "1", 0.8)):
        await bench.call("motor", "SetPower", name="m", power_pct=power)
        assert driven(bench) == {pin: duty}
    for bad in (1.01, float("nan"), -2.0):
        with pytest.raises(CallFailure, match="power_pct") as caught:
            await bench.call("motor", "SetPower", name="m", power_pct=bad)
        assert caught.value.status == faults.INVALID


async def test_go_for_takes_the_time_of_the_speed(autojump_clock: MockClock) -> None:
    bench = MicroBench(BOARD, BRIDGE)
    begin = trio.current_time()
    await bench.call("motor", "GoFor", name="m", rpm=30, revolutions=2)
    assert trio.current_time() - begin == pytest.approx(4, abs=0.02)
    assert driven(bench) == {}
    with pytest.raises(CallFailure, match="no encoder"):
        await bench.call("motor", "GetPosition", name="m")
    with pytest.raises(CallFailure, match="call stop"):
        await bench.call("motor", "GoFor", name="m", rpm=0, revolutions=2)


async def test_newer_commands_end_older_ones(autojump_clock: MockClock) -> None:
    bench = MicroBench(BOARD, BRIDGE)
    failures: list[CallFailure] = []

    async def go() -> None:
        try:
            await bench.call("motor", "GoFor", name="m", rpm=60, revolutions=10)
        except CallFailure as failure:
            failures.append(failure)

    for command in ({"method": "SetPower", "power_pct": -0.5}, {"method": "Stop"}):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(go)
            await trio.sleep(1)
            (running,) = (await bench.call("RobotService", "GetOperations"))["operations"]
            assert running["method"] == "motor.GoFor"
            await bench.call("motor", name="m", **command)
        assert (await bench.call("RobotService", "GetOperations"))["operations"] == []
        assert driven(bench) == ({"2": 0.5} if "power_pct" in command else {})
    assert [failure.status for failure in failures] == [10, 10]
    async with trio.open_nursery() as nursery:
        nursery.start_soon(go)
        await trio.sleep(1)
        bench.machine.halt_all()
    assert len(failures) == 3


async def test_a_cancelled_go_for_stops_the_motor(autojump_clock: MockClock) -> None:
    bench = MicroBench(BOARD, BRIDGE)
    with trio.move_on_after(1):
        await bench.call("motor", "GoFor", name="m", rpm=60, revolutions=10)
    assert driven(bench) == {}


ENCODED = [
    BOARD,
    component("encoder", "e", "incremental", board="pins", pins={"a": "11", "b": "12"}, ticks_per_rotation=8),
    component(
        "motor", "m", "gpio", board="pins", pins={"a": "1", "b": "2"}, encoder="e", ticks_per_rotation=8, max_rpm=60
    ),
]
CYCLE = [(True, False), (True, True), (False, True), (False, False)]


class Shaft:
    """Turns the tracks of an encoder."""

    def __init__(self, bench: MicroBench) -> None:
        self.bench = bench
        self.place = 3
        self._show()  # the pull resistors have held both tracks high

    def _show(self) -> None:
        for pin, level in zip(("11", "12"), CYCLE[self.place], strict=True):
            self.bench.port.drive(pin, level)

    async def turn(self, ticks: int, pause: float = 0.0) -> None:
        for _ in range(abs(ticks)):
            await trio.sleep(pause)
            self.place = (self.place + (1 if ticks > 0 else -1)) % 4
            self._show()


async def test_encoders_count_every_edge(autojump_clock: MockClock) -> None:
    bench = MicroBench(*ENCODED)
    shaft = Shaft(bench)
    await bench.call("encoder", "ResetPosition", name="e")
    for ticks, total in ((9, 9), (-4, 5), (-30, -25), (30, 5)):
        await shaft.turn(ticks)
        assert (await bench.call("encoder", "GetPosition", name="e"))["value"] == total
    degrees = await bench.call("encoder", "GetPosition", name="e", position_type=2)
    assert degrees["value"] == 5 * 45


async def test_go_for_with_an_encoder_ends_at_its_position(autojump_clock: MockClock) -> None:
    bench = MicroBench(*ENCODED)
    shaft = Shaft(bench)
    await bench.call("encoder", "ResetPosition", name="e")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(shaft.turn, 16, 0.1)
        await bench.call("motor", "GoFor", name="m", rpm=60, revolutions=1)
        assert trio.current_time() == pytest.approx(0.8, abs=0.02)
        assert (await bench.call("encoder", "GetPosition", name="e"))["value"] == 8
        assert driven(bench).keys() & {"1", "2"} == set()


async def test_a_motor_whose_encoder_stands_still_is_stopped(autojump_clock: MockClock) -> None:
    bench = MicroBench(*ENCODED)
    with pytest.raises(CallFailure, match="does not arrive") as caught:
        await bench.call("motor", "GoFor", name="m", rpm=60, revolutions=1)
    assert caught.value.status == 10
    assert not {"1", "2"} & set(driven(bench))


async def test_a_single_track_counts_in_the_direction_of_its_motor(autojump_clock: MockClock) -> None:
    bench = MicroBench(
        BOARD,
        component("encoder", "e", "single", board="pins", pins={"i": "11"}),
        component("motor", "m", "gpio", board="pins", pins={"a": "1", "b": "2"}, encoder="e", ticks_per_rotation=4),
    )
    for power, expected in ((0.5, 3), (-0.5, 1)):
        await bench.call("motor", "SetPower", name="m", power_pct=power)
        for _ in range(3 if power > 0 else 2):
            bench.port.drive("11", False)
            bench.port.drive("11", True)
        value = (await bench.call("encoder", "GetPosition", name="e"))["value"]
        assert value in (expected, expected - 1)  # the first edge depends on the pull resistor


async def test_the_model_of_a_motor_moves_with_the_clock(autojump_clock: MockClock) -> None:
    bench = MicroBench(component("motor", "m", max_rpm=60))
    await bench.call("motor", "GoFor", name="m", rpm=30, revolutions=-2)
    assert (await bench.call("motor", "GetPosition", name="m"))["position"] == pytest.approx(-2, abs=0.05)
    await bench.call("motor", "GoTo", name="m", rpm=60, position_revolutions=1)
    assert (await bench.call("motor", "GetPosition", name="m"))["position"] == pytest.approx(1, abs=0.05)
    await bench.call("motor", "ResetZeroPosition", name="m", offset=0)
    assert (await bench.call("motor", "GetPosition", name="m"))["position"] == pytest.approx(0)


ROVER = [
    component("motor", "l", max_rpm=600),
    component("motor", "r", max_rpm=600),
    component("base", "rover", "wheeled", left=["l"], right=["r"], width_mm=200, wheel_circumference_mm=100),
]


async def positions(bench: MicroBench) -> list[float]:
    return [(await bench.call("motor", "GetPosition", name=name))["position"] for name in "lr"]


async def test_bases_drive_and_turn(autojump_clock: MockClock) -> None:
    bench = MicroBench(*ROVER)
    await bench.call("base", "MoveStraight", name="rover", distance_mm=500, mm_per_sec=100)
    assert trio.current_time() == pytest.approx(5, abs=0.05)
    assert await positions(bench) == pytest.approx([5, 5], abs=0.2)
    await bench.call("base", "Spin", name="rover", angle_deg=90, degs_per_sec=45)
    side = 200 * 3.14159 / 4 / 100
    assert await positions(bench) == pytest.approx([5 - side, 5 + side], abs=0.2)
    vectors = {"linear": {"y": 1.0}, "angular": {"z": 0.5}}
    await bench.call("base", "SetPower", name="rover", **vectors)
    powers = [(await bench.call("motor", "IsPowered", name=name))["power_pct"] for name in "lr"]
    assert powers == pytest.approx([0.5 / 1.5, 1.0])
    assert (await bench.call("base", "IsMoving", name="rover"))["is_moving"]
    await bench.call("RobotService", "StopAll")
    assert not (await bench.call("base", "IsMoving", name="rover"))["is_moving"]


async def test_a_base_stops_both_sides_if_one_cannot_go_on(autojump_clock: MockClock) -> None:
    bench = MicroBench(*ROVER)

    async def interfere() -> None:
        await trio.sleep(1)
        await bench.call("motor", "Stop", name="l")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(interfere)
        with pytest.raises(CallFailure, match="another command has taken over l"):
            await bench.call("base", "MoveStraight", name="rover", distance_mm=500, mm_per_sec=100)
    assert not (await bench.call("motor", "IsMoving", name="r"))["is_moving"]


async def test_servos() -> None:
    bench = MicroBench(BOARD, component("servo", "s", "gpio", board="pins", pin="7", frequency_hz=50, max_angle_deg=90))
    assert "7" not in bench.port.pwm
    await bench.call("servo", "Move", name="s", angle_deg=45)
    assert bench.port.pwm["7"] == (pytest.approx(0.075), 50)  # 1.5 ms of 20 ms
    assert (await bench.call("servo", "GetPosition", name="s"))["position_deg"] == 45
    with pytest.raises(CallFailure, match="expected 0 to 90"):
        await bench.call("servo", "Move", name="s", angle_deg=91)
    bench.apply(BOARD)
    assert "7" not in bench.port.pwm
