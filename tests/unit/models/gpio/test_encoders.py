"""Encoders on the interrupts of a board."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from engine.components.controls.board import Tick
from engine.components.sensing.encoder import EncoderPosition, EncoderProperties, PositionType
from engine.resource import Extra, Unsupported
from hal.errors import HalError
from models.fake.board.model import FakeBoard
from models.gpio.encoder.attributes import IncrementalConfig
from schema.attributes import decode_attributes
from schema.errors import ConfigError, MachineError
from tests.unit.models.builtin.support import Bench
from tests.unit.models.gpio.support import TICKS, board, plant

CYCLE = ((True, False), (True, True), (False, True), (False, False))


async def incremental(bench: Bench, **attributes: Any) -> Any:
    full = {"board": "pi", "pins": {"a": "enc-a", "b": "enc-b"}, **attributes}
    return await bench.add("encoder", "enc", full, model="rdk:builtin:incremental")


async def single(bench: Bench, **attributes: Any) -> Any:
    return await bench.add(
        "encoder", "enc", {"board": "pi", "pins": {"i": "enc-a"}, **attributes}, model="rdk:builtin:single"
    )


async def ticks(encoder: Any) -> float:
    await trio.testing.wait_all_tasks_blocked()
    position = await encoder.get_position()
    assert position.position_type is PositionType.TICKS_COUNT
    return float(position.value)


async def turn(pi: Any, steps: int) -> None:
    """Toggle the tracks, starting with both low."""
    states = CYCLE if steps > 0 else ((False, True), (True, True), (True, False), (False, False))
    for index in range(abs(steps)):
        for pin, high in zip(("35", "37"), states[index % 4], strict=True):
            await pi.set_gpio(pin, high)
        await trio.sleep(0.001)


async def test_it_counts_both_ways_and_from_its_reset(bench: Bench, autojump_clock: MockClock) -> None:
    pi = await board(bench)
    encoder = await incremental(bench)
    await turn(pi, 12)
    assert await ticks(encoder) == 12
    await turn(pi, -8)
    assert await ticks(encoder) == 4
    await encoder.reset_position()
    assert await ticks(encoder) == 0
    await turn(pi, -4)
    assert await ticks(encoder) == -4
    assert await encoder.get_status() == {"ticks": 0, "missed": 0}


async def test_it_follows_a_shaft(bench: Bench, autojump_clock: MockClock) -> None:
    pi = await board(bench)
    encoder = await incremental(bench, ticks_per_rotation=TICKS)
    with plant(bench, {"a": "11", "b": "13"}) as shaft:
        for pin, seconds in (("11", 9.3031), ("13", 3.7057)):  # at rest between two ticks, not on a boundary
            await pi.set_gpio(pin, True)
            await trio.sleep(seconds)
            await pi.set_gpio(pin, False)
            await trio.sleep(1)
            turned = shaft.travel(bench.world.now())
            assert await ticks(encoder) == pytest.approx(turned * TICKS, abs=1)
            degrees = await encoder.get_position(PositionType.ANGLE_DEGREES)
            assert degrees == EncoderPosition(await ticks(encoder) * 360 / TICKS, PositionType.ANGLE_DEGREES)
    assert (await encoder.get_status())["missed"] == 0


async def test_degrees_need_the_ticks_of_a_turn(bench: Bench, autojump_clock: MockClock) -> None:
    await board(bench)
    encoder = await incremental(bench)
    assert await encoder.get_properties() == EncoderProperties(True, False)
    with pytest.raises(Unsupported, match="configure ticks_per_rotation"):
        await encoder.get_position(PositionType.ANGLE_DEGREES)
    await bench.remove(encoder)
    encoder = await incremental(bench, ticks_per_rotation=8)
    assert await encoder.get_properties() == EncoderProperties(True, True)


async def test_a_single_track_counts_rises(bench: Bench, autojump_clock: MockClock) -> None:
    pi = await board(bench)
    encoder = await single(bench, ticks_per_rotation=10)
    await turn(pi, 12)
    await turn(pi, -12)
    assert await ticks(encoder) == 6
    assert (await encoder.get_position(PositionType.ANGLE_DEGREES)).value == 216
    with encoder.following(lambda: -1):
        assert (await encoder.get_status())["directed"]
        await turn(pi, 4)
        assert await ticks(encoder) == 5
    await turn(pi, 4)
    assert await ticks(encoder) == 6
    assert not (await encoder.get_status())["directed"]


async def test_the_pins_are_its_own(bench: Bench, autojump_clock: MockClock) -> None:
    await board(bench)
    await incremental(bench)
    with pytest.raises(HalError, match=r"pin 35 of .* is wanted by .*door and already used by .*enc"):
        await bench.add("sensor", "door", {"board": "pi", "pins": {"open": "35"}}, model="rdk:builtin:gpio_input")


def test_one_pin_for_both_tracks_is_refused() -> None:
    with pytest.raises(ConfigError, match="a and b are both 5"):
        decode_attributes(IncrementalConfig, {"board": "pi", "pins": {"a": "5", "b": "5"}}, path="attributes")


async def test_a_board_that_refuses_its_pins_is_heard_before_it_is_ready(
    bench: Bench, autojump_clock: MockClock
) -> None:
    await board(bench)
    with pytest.raises(MachineError, match="no digital interrupt called '36'"):
        await incremental(bench, pins={"a": "enc-a", "b": "36"})


class Ending(FakeBoard):
    """A board whose streams end."""

    async def stream_ticks(self, pin_names: Sequence[str], *, extra: Extra = None) -> AsyncGenerator[Tick, None]:
        await trio.sleep(1)
        yield Tick(pin_names[0], 0, True)


async def test_a_stream_that_ends_is_a_failure(autojump_clock: MockClock) -> None:
    with pytest.RaisesGroup(pytest.RaisesExc(MachineError, match="ended its stream of ticks")):
        async with trio.open_nursery() as nursery:
            bench = Bench(nursery)
            await board(bench, Ending)
            await incremental(bench)
            await trio.sleep(5)
