"""Interrupts of the board are counted and streamed in order."""

from __future__ import annotations

from contextlib import aclosing

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import MockClock, wait_all_tasks_blocked

from models.board.ticks import BUFFER, TickQueue
from schema.errors import ErrorKind, MachineError
from tests.unit.models.board.support import Rig, entry, rig

DOOR = {"name": "door", "pin": "11"}


async def pulses(r: Rig, offset: int, count: int, seconds: float = 0.01) -> None:
    for _ in range(count):
        r.drive(offset, True)
        await trio.sleep(seconds)
        r.drive(offset, False)
        await trio.sleep(seconds)


async def test_an_interrupt_counts_rising_edges_from_the_start(autojump_clock: MockClock) -> None:
    async with rig(entry(digital_interrupts=[DOOR, {"name": "low", "pin": "13", "active_low": True}])) as r:
        assert await r.call("get_digital_interrupt_value", digital_interrupt_name="door") == 0
        await pulses(r, 17, 5)
        r.drive(17, True)
        await wait_all_tasks_blocked()
        assert await r.call("get_digital_interrupt_value", digital_interrupt_name="door") == 6
        r.drive(27, True)
        await wait_all_tasks_blocked()
        assert await r.call("get_digital_interrupt_value", digital_interrupt_name="low") == 0
        assert await r.call("get_gpio", pin="13") is False, "a high level of an active-low interrupt is low"
        r.drive(27, False)
        await wait_all_tasks_blocked()
        assert await r.call("get_digital_interrupt_value", digital_interrupt_name="low") == 1


async def test_bias_and_debouncing_are_taken(autojump_clock: MockClock) -> None:
    async with rig(entry(digital_interrupts=[{**DOOR, "bias": "up", "debounce_ms": 5}])) as r:
        assert await r.call("get_gpio", pin="door") is True
        r.drive(17, False)
        await trio.sleep(0.1)
        for _ in range(3):
            await pulses(r, 17, 2, 0.001)
        await trio.sleep(0.1)
        assert await r.call("get_digital_interrupt_value", digital_interrupt_name="door") == 0
        await pulses(r, 17, 1, 0.01)
        assert await r.call("get_digital_interrupt_value", digital_interrupt_name="door") == 1


async def test_ticks_of_interrupts_and_plain_pins_in_order(autojump_clock: MockClock) -> None:
    async with rig(entry(digital_interrupts=[DOOR])) as r:
        got = []

        async def read() -> None:
            async with aclosing(r.ticks("door", "16")) as ticks:
                async for tick in ticks:
                    got.append((tick["pin_name"], tick["high"], tick["time"]))
                    if len(got) == 8:
                        break

        async with trio.open_nursery() as nursery:
            nursery.start_soon(read)
            await wait_all_tasks_blocked()
            start = trio.current_time()
            for _ in range(2):
                for offset in (17, 23):
                    r.drive(offset, True)
                    await trio.sleep(0.5)
                for offset in (17, 23):
                    r.drive(offset, False)
                    await trio.sleep(0.5)
        assert [(name, high) for name, high, _ in got] == 2 * [
            ("door", True), ("16", True), ("door", False), ("16", False),
        ]  # fmt: skip
        assert [time for _, _, time in got] == [round((start + turn * 0.5) * 1e9) for turn in range(8)]


async def test_two_streams_of_one_pin_each_have_every_tick(autojump_clock: MockClock) -> None:
    async with rig() as r:
        counts = {}

        async def read(name: str) -> None:
            counts[name] = 0
            async with aclosing(r.ticks("11")) as ticks:
                async for _ in ticks:
                    counts[name] += 1
                    if counts[name] == 6:
                        break

        async with trio.open_nursery() as nursery:
            nursery.start_soon(read, "one")
            nursery.start_soon(read, "two")
            await wait_all_tasks_blocked()
            await pulses(r, 17, 3)
        assert counts == {"one": 6, "two": 6}
        await wait_all_tasks_blocked()
        await r.call("set_gpio", pin="11", high=True)
        assert r.level(17) is True, "no reader is left"


async def test_an_interrupt_cannot_be_written(autojump_clock: MockClock) -> None:
    async with rig(entry(digital_interrupts=[DOOR])) as r:
        for method, more in (
            ("set_gpio", {"high": True}),
            ("set_pwm", {"duty_cycle_pct": 0.5}),
            ("set_pwm_frequency", {"frequency_hz": 50}),
        ):
            with pytest.raises(MachineError, match="'door'") as caught:
                await r.call(method, pin="GPIO17", **more)
            assert caught.value.kind is ErrorKind.PRECONDITION
        ticks = r.ticks("16")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(anext, ticks)
            await wait_all_tasks_blocked()
            with pytest.raises(MachineError, match="stream of its ticks"):
                await r.call("set_gpio", pin="16", high=True)
            nursery.cancel_scope.cancel()


async def test_an_output_cannot_be_listened_to(autojump_clock: MockClock) -> None:
    async with rig() as r:
        await r.call("set_gpio", pin="11", high=True)
        with pytest.raises(MachineError, match="is an output"):
            await anext(r.ticks("13", "11"))
        await wait_all_tasks_blocked()
        await r.call("set_gpio", pin="13", high=True)
        assert r.level(27) is True, "what was listened to before the error is free again"


async def test_unknown_interrupts_and_pins_are_named(autojump_clock: MockClock) -> None:
    async with rig(entry(digital_interrupts=[DOOR])) as r:
        with pytest.raises(MachineError, match="door") as caught:
            await r.call("get_digital_interrupt_value", digital_interrupt_name="dor")
        assert caught.value.kind is ErrorKind.NOT_FOUND
        with pytest.raises(MachineError, match="did you mean"):
            await anext(r.ticks("GPIO77"))


async def test_two_interrupts_on_one_pin_are_refused(autojump_clock: MockClock) -> None:
    async with rig(entry(digital_interrupts=[DOOR, {"name": "window", "pin": "GPIO17"}])) as r:
        assert "'door' and 'window'" in r.reason()


async def test_a_board_may_restart_with_its_interrupts(autojump_clock: MockClock) -> None:
    async with rig(entry(digital_interrupts=[DOOR])) as r:
        await pulses(r, 17, 2)
        r.memory.write({"components": [entry(digital_interrupts=[DOOR], safe_high=["13"])]})
        await wait_all_tasks_blocked()
        assert r.state() == "ready"
        assert await r.call("get_digital_interrupt_value", digital_interrupt_name="door") == 0
        await pulses(r, 17, 2)
        assert await r.call("get_digital_interrupt_value", digital_interrupt_name="door") == 2


@given(st.lists(st.tuples(st.sampled_from("ab"), st.booleans(), st.floats(0, 1000)), max_size=60))
def test_ticks_come_out_in_the_order_of_their_times(ticks: list[tuple[str, bool, float]]) -> None:
    async def main() -> list[int]:
        queue = TickQueue()
        for tick in ticks:
            queue.put(*tick)
        return [(await queue.get()).time for _ in ticks]

    assert trio.run(main) == sorted(round(time * 1e9) for _, _, time in ticks)


async def test_a_slow_reader_loses_the_earliest_ticks_and_they_are_counted() -> None:
    queue = TickQueue()
    for number in range(BUFFER + 3):
        queue.put("a", True, float(number))
    assert queue.dropped == 3
    assert (await queue.get()).time == 3 * 10**9
