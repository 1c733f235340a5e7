"""Motor `gpio` with an encoder, on pins that really turn a shaft."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from trio.testing import MockClock

from tests.unit.builtin.support import Bench
from tests.unit.gpio.support import TICKS, board, is_off, plant

AB = {"a": "11", "b": "13"}


async def driven(bench: Bench, *, pins: dict[str, str] = AB, encoder: str = "incremental", **attributes: Any) -> Any:
    tracks = {"a": "enc-a", "b": "enc-b"} if encoder == "incremental" else {"i": "enc-a"}
    await bench.add("encoder", "enc", {"board": "pi", "pins": tracks}, model=f"rdk:builtin:{encoder}")
    full = {"board": "pi", "pins": pins, "encoder": "enc", "ticks_per_rotation": TICKS, "max_rpm": 120, **attributes}
    return await bench.add("motor", "left", full, model="rdk:builtin:gpio")


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("flip", [False, True])
async def test_go_for_turns_exactly(bench: Bench, autojump_clock: MockClock, sign: int, flip: bool) -> None:
    await board(bench)
    with plant(bench, a="11", b="13") as shaft:
        motor = await driven(bench, dir_flip=flip)
        begin = trio.current_time()
        await motor.go_for(60 * sign, 5)
        took = trio.current_time() - begin
        await trio.sleep(1)
        assert shaft.travel(bench.world.now()) == pytest.approx(5 * sign * (-1 if flip else 1), abs=1 / TICKS)
        assert await motor.get_position() == pytest.approx(5 * sign, abs=0.5 / TICKS)
        assert 5.5 <= took < 7
        assert is_off(bench, "11", "13")
