"""Lines of the character device, as far as testable without one; tests/hil/test_gpio.py covers the rest.

A pipe stands for the descriptor of a line request: each item in it is a kernel event.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import wait_all_tasks_blocked

from hal.errors import Fault, HalError
from hal.linux.gpio import edges as gpio_edges
from hal.linux.gpio.alternation import Alternation
from hal.linux.gpio.chips import find_chip
from hal.linux.gpio.edges import EDGE_BUFFER, EdgeSource, Listener
from hal.linux.hardware import LinuxHardware
from hal.ports.digital import InputSettings, Line, OutputSettings


@dataclass
class Event:
    """An event as the kernel reports it."""

    rising: bool
    timestamp_ns: int
    line_seqno: int


class Kernel:
    """A fake kernel with one requested line."""

    def __init__(self, folder: Path) -> None:
        self.out, self._into = os.pipe()
        self.events: list[Event] = []
        self.number = 0
        self.gone = False
        self.high = False  # the initial level
        self.source = EdgeSource(self.out, self.read, lambda event: event.rising, self.level, "chip line 3", folder)

    def edge(self, rising: bool, *, lost: int = 0, age: float = 0.0) -> None:
        """Report an edge that happened `age` seconds ago, after `lost` others that overflowed the kernel's buffer."""
        self.number += 1 + lost
        self.events.append(Event(rising, time.monotonic_ns() - int(age * 1e9), self.number))
        os.write(self._into, b"x")

    def read(self) -> list[Event]:
        if self.gone:
            raise OSError(errno.ENODEV, os.strerror(errno.ENODEV))
        os.read(self.out, 4096)
        events, self.events = self.events, []
        return events

    def level(self) -> bool:
        if self.gone:
            raise OSError(errno.ENODEV, os.strerror(errno.ENODEV))
        return self.high

    def close(self) -> None:
        self.source.close()
        os.close(self.out)
        os.close(self._into)


@pytest.fixture
def kernel(tmp_path: Path) -> Iterator[Kernel]:
    kernel = Kernel(tmp_path)
    yield kernel
    kernel.close()


async def take(listener: Listener, count: int) -> list[bool]:
    with trio.fail_after(30):
        return [(await anext(listener)).high for _ in range(count)]


async def test_edges_have_times_of_the_runs_clock(kernel: Kernel) -> None:
    with kernel.source.listener() as listener:
        before = trio.current_time()
        kernel.edge(True)
        edge = await anext(listener)
        assert edge.high is True
        assert before - 1e-6 <= edge.time <= trio.current_time() + 1e-6


async def test_every_listener_has_every_edge_since_it_listens(kernel: Kernel) -> None:
    with kernel.source.listener() as first:
        kernel.edge(True)
        assert await take(first, 1) == [True]
        with kernel.source.listener() as two:
            kernel.edge(False)
            kernel.edge(True)
            assert await take(two, 2) == [False, True]
            assert await take(first, 2) == [False, True]
            assert (first.dropped, two.dropped) == (0, 0)


async def test_edges_before_opening_are_not_reported(kernel: Kernel) -> None:
    kernel.edge(True, age=1)
    with kernel.source.listener() as listener:
        kernel.edge(False)
        assert await take(listener, 1) == [False]
        assert not listener.queue


async def test_listeners_wait_together_and_one_may_be_cancelled(kernel: Kernel) -> None:
    got: dict[str, list[bool]] = {}

    async def read(name: str, listener: Listener) -> None:
        got[name] = await take(listener, 2)

    with kernel.source.listener() as opened, kernel.source.listener() as two, kernel.source.listener() as three:
        async with trio.open_nursery() as nursery:
            cancelled = trio.CancelScope()

            async def first() -> None:
                with cancelled:
                    await read("one", opened)

            nursery.start_soon(first)
            await wait_all_tasks_blocked()
            nursery.start_soon(read, "two", two)
            nursery.start_soon(read, "three", three)
            await wait_all_tasks_blocked()
            cancelled.cancel()
            await wait_all_tasks_blocked()
            kernel.edge(True)
            await wait_all_tasks_blocked()
            kernel.edge(False)
        assert got == {"two": [True, False], "three": [True, False]}
        assert await take(opened, 2) == [True, False], "nothing is lost by waiting for nothing"


async def test_edges_dropped_by_the_kernel_are_counted(kernel: Kernel) -> None:
    with kernel.source.listener() as listener:
        kernel.edge(True)
        kernel.edge(False, lost=7)
        kernel.edge(True, lost=2)
        assert await take(listener, 3) == [True, False, True]
        assert listener.dropped == 9
    kernel.high = True
    with kernel.source.listener() as listener:
        kernel.edge(False)
        assert await take(listener, 1) == [False]
        assert listener.dropped == 0
        kernel.edge(True, lost=1)
        assert await take(listener, 1) == [True]
        assert listener.dropped == 1


async def test_the_first_edges_may_be_dropped_too(kernel: Kernel) -> None:
    with kernel.source.listener() as listener:
        kernel.edge(True, lost=4)
        assert await take(listener, 1) == [True]
        assert listener.dropped == 4


async def test_a_slow_listener_loses_the_oldest(kernel: Kernel) -> None:
    with kernel.source.listener() as slow, kernel.source.listener() as quick:
        for number in range(EDGE_BUFFER + 10):
            kernel.edge(number % 2 == 0)
            if number % 1000 == 999:
                await take(quick, 1000)
        await take(quick, 1)
        assert len(slow.queue) == EDGE_BUFFER
        assert (slow.dropped, quick.dropped) == (10, 0)
        assert await take(slow, 2) == [True, False]


async def test_edges_that_arrive_together_are_delivered_before_other_tasks_run(kernel: Kernel) -> None:
    """This lets the reader sort edges of several lines by time."""
    with kernel.source.listener() as listener:
        for _ in range(10):
            kernel.edge(True)
        await anext(listener)
        ran = []

        async def other() -> None:
            ran.append(True)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(other)
            for _ in range(9):
                await anext(listener)
            assert ran == []


async def test_a_chip_that_vanishes_wakes_and_tells(kernel: Kernel, tmp_path: Path) -> None:
    (tmp_path / "gpiochip0").touch()
    with kernel.source.listener() as listener:

        async def vanish() -> None:
            await wait_all_tasks_blocked()
            (tmp_path / "something-else").touch()
            await wait_all_tasks_blocked(0.01)
            kernel.gone = True
            (tmp_path / "gpiochip0").unlink()

        with trio.fail_after(30):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(vanish)
                with pytest.raises(HalError, match="chip line 3") as caught:
                    await anext(listener)
        assert caught.value.fault is Fault.GONE
        with trio.fail_after(30), pytest.raises(HalError):
            await anext(listener)


async def test_a_kernel_that_tells_it_on_the_descriptor_is_heard(kernel: Kernel) -> None:
    with kernel.source.listener() as listener:
        kernel.gone = True
        kernel.edge(True)
        with pytest.raises(HalError) as caught:
            await anext(listener)
        assert caught.value.fault is Fault.GONE


async def test_closing_wakes_waiters(kernel: Kernel) -> None:
    with kernel.source.listener() as listener:

        async def read() -> None:
            with pytest.raises(trio.ClosedResourceError):
                await anext(listener)

        with trio.fail_after(30):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(read)
                await wait_all_tasks_blocked()
                kernel.source.close()


async def test_descriptors_are_closed(kernel: Kernel) -> None:
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(20):
        with kernel.source.listener(), kernel.source.listener():
            pass
    assert len(os.listdir("/proc/self/fd")) == before


def test_the_kernels_buffer_is_the_most_it_gives() -> None:
    assert gpio_edges.KERNEL_BUFFER == 64 * 16


# ---- pulses shorter than the kernel's latency


@given(st.booleans(), st.lists(st.sampled_from(["clean", "late", "masked", "edge"])))
def test_short_pulses_are_whole(level: bool, happened: list[str]) -> None:
    """`edge` is a lasting change; the others are pulses: read in time, read too late, or merged into one interrupt."""
    alternation = Alternation(level)
    edges: list[bool] = []
    truth: list[bool] = []
    for what in happened:
        if what == "edge":
            level = not level
            reports = [level]
            truth.append(level)
        else:
            reports = {"clean": [not level, level], "late": [level, level], "masked": [level]}[what]
            truth += [not level, level]
        for report in reports:
            edges += alternation.edges(report, 0)
        if what == "masked":
            alternation = Alternation(level)  # no further reports can follow
    assert edges == truth


@given(st.booleans(), st.lists(st.tuples(st.booleans(), st.integers(0, 2))))
def test_whatever_the_kernel_reports_edges_alternate_and_end_at_its_level(
    level: bool, reports: list[tuple[bool, int]]
) -> None:
    alternation = Alternation(level)
    for high, lost in reports:
        for edge in alternation.edges(high, lost):
            assert edge != level or lost
            level = edge
        assert level is high


async def test_a_pulse_that_was_reported_late_is_a_pulse(kernel: Kernel) -> None:
    with kernel.source.listener() as listener:
        kernel.edge(False)
        kernel.edge(False)
        kernel.edge(True)
        assert await take(listener, 3) == [True, False, True]
        assert listener.dropped == 0


# ---- chips


def test_a_chip_that_is_not_there(tmp_path: Path) -> None:
    for name in ("pinctrl-bcm2711", "gpiochip9", str(tmp_path / "gpiochip9")):
        with pytest.raises(HalError, match=f"no GPIO chip {name}; there is none at all") as caught:
            find_chip(name, tmp_path)
        assert caught.value.fault is Fault.GONE


def test_files_that_are_not_gpio_chips_are_ignored(tmp_path: Path) -> None:
    (tmp_path / "gpiochip0").touch()
    with pytest.raises(HalError) as caught:
        find_chip("gpiochip0", tmp_path)
    assert caught.value.fault is Fault.GONE
    with pytest.raises(HalError):
        find_chip("/dev/null")


@pytest.mark.skipif(Path("/dev/gpiochip0").exists(), reason="this computer has GPIO")
async def test_opening_without_a_chip_says_so() -> None:
    hardware = LinuxHardware()
    line = Line("gpiochip0", 3)
    for manager in (
        hardware.digital_input(line, InputSettings()),
        hardware.digital_output(line, OutputSettings()),
        hardware.pwm(line),
    ):
        with pytest.raises(HalError, match="no GPIO chip gpiochip0"):
            await manager.__aenter__()
