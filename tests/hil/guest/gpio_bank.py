"""GPIO chips of gpio-sim: lines that the plant pulls, reads and watches.

Every change of a line by software is recorded with its time: writes by the kernel's tracepoint gpio:gpio_value,
requests and releases by the line information of the character device. Times are of CLOCK_MONOTONIC. The two sources
have different delays; queries read both first, and return events in the order in which they happened.
"""

from __future__ import annotations

import itertools
import os
import re
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import trio

CONFIG = Path("/sys/kernel/config/gpio-sim")
TRACING = Path("/sys/kernel/tracing")
KEPT = 100_000  # events
NAMES = itertools.count()


@dataclass(frozen=True)
class LineEvent:
    """A change of a line by software: `what` is set, requested, released or reconfigured.

    `high` is the level that was set; for other events, the level when the plant received the event, which may be later.
    """

    time: float
    line: int
    high: bool
    what: str


class GpioBank:
    """A GPIO chip. `names` maps lines to names; lines are numbered from 0."""

    def __init__(self, label: str = "rig", lines: int = 28, names: dict[str, str] | None = None) -> None:
        self.label = label
        self.lines = lines
        self.events: deque[LineEvent] = deque(maxlen=KEPT)
        self._changed = trio.Event()
        self._folder = CONFIG / f"rig{next(NAMES)}"
        bank = self._folder / "bank0"
        bank.mkdir(parents=True)
        (bank / "num_lines").write_text(str(lines))
        (bank / "label").write_text(label)
        for number, name in (names or {}).items():
            (bank / f"line{number}").mkdir()
            (bank / f"line{number}" / "name").write_text(name)
        (self._folder / "live").write_text("1")
        self.chip = (bank / "chip_name").read_text().strip()
        device = (self._folder / "dev_name").read_text().strip()
        self._system = Path("/sys/devices/platform") / device / self.chip
        self.path = f"/dev/{self.chip}"
        self._rest = ""
        self._readers: list[Callable[[], None]] = []  # of the kernel's events

    def close(self) -> None:
        """Remove the chip, even while programs use it."""
        (self._folder / "live").write_text("0")
        for line in self._folder.glob("bank0/line*"):
            line.rmdir()
        (self._folder / "bank0").rmdir()
        self._folder.rmdir()

    def pull(self, line: int, high: bool) -> None:
        """Drive a line from outside: the value of an input, and of an output after its release."""
        (self._system / f"sim_gpio{line}" / "pull").write_text("pull-up" if high else "pull-down")

    def value(self, line: int) -> bool:
        """Return the current level of a line."""
        return (self._system / f"sim_gpio{line}" / "value").read_text().strip() == "1"

    def values(self, *lines: int) -> list[bool]:
        """Return the levels of lines."""
        return [self.value(line) for line in lines]

    async def wait_value(self, line: int, high: bool) -> float:
        """Wait until a line has a level; return the time of the change, 0.0 if it already had the level."""
        if self.value(line) is high:
            return 0.0
        while self.value(line) is not high:
            await self._changed.wait()
        return self.history(line)[-1].time

    async def wait_event(self, line: int, what: str, since: float = 0.0) -> float:
        """Wait for an event of a line after the time `since`; return its time."""
        while not (events := [event for event in self.history(line, since) if event.what == what]):
            await self._changed.wait()
        return events[0].time

    def history(self, line: int, since: float = 0.0) -> list[LineEvent]:
        """Return the stored events of a line until now, oldest first."""
        for read in self._readers:
            read()
        events = [event for event in self.events if event.line == line and event.time >= since]
        return sorted(events, key=lambda event: event.time)

    async def wait_rises(self, line: int, count: int, since: float = 0.0) -> None:
        """Wait until software has raised a line `count` times after the time `since`."""
        while sum(event.high for event in self.history(line, since) if event.what == "set") < count:
            await self._changed.wait()

    def duty(self, line: int, since: float) -> dict[str, float]:
        """Measure the wave of software on a line after `since`: share of high time, rises per second, rises."""
        sets = [event for event in self.history(line, since) if event.what == "set"]
        changes = [event for index, event in enumerate(sets) if index == 0 or event.high != sets[index - 1].high]
        rises = [index for index, event in enumerate(changes) if event.high]
        if len(rises) < 2:
            return {"duty": 0.0, "frequency": 0.0, "rises": len(rises)}
        first, last = rises[0], rises[-1]
        span = changes[last].time - changes[first].time
        high = sum(b.time - a.time for a, b in itertools.pairwise(changes[first : last + 1]) if a.high)
        return {"duty": high / span, "frequency": (len(rises) - 1) / span, "rises": len(rises)}

    async def pulse(self, line: int, seconds: float, high: bool = True) -> None:
        """Pull a line to a level for a time, then back."""
        self.pull(line, high)
        await trio.sleep(seconds)
        self.pull(line, not high)

    async def quadrature(self, a: int, b: int, steps: int, rate: float) -> None:
        """Turn an encoder with its phases on lines a and b by `steps` edges (negative: backwards), at `rate` per s."""
        level_a, level_b = self.value(a), self.value(b)
        start = trio.current_time()
        for number in range(abs(steps)):
            if (level_a == level_b) is (steps > 0):
                level_a = not level_a
                self.pull(a, level_a)
            else:
                level_b = not level_b
                self.pull(b, level_b)
            await trio.sleep_until(start + (number + 1) / rate)

    def changed(self) -> trio.Event:
        """Return an event that is set at the next change; for plants of the same process."""
        return self._changed

    def _note(self, event: LineEvent) -> None:
        self.events.append(event)
        self._changed.set()
        self._changed = trio.Event()

    async def run(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Watch the chip."""
        async with trio.open_nursery() as nursery:
            await nursery.start(self._watch_levels)
            await nursery.start(self._watch_owners)
            task_status.started()

    async def _watch_levels(self, task_status: trio.TaskStatus[None]) -> None:
        # If a trace records program names, it switches the scheduler's tracepoints on and off: the kernel then rewrites
        # code that the other processor runs, and a QEMU with a thread for each processor may keep running the old code.
        # Of guests that did little else for half a minute, 5 of 5 hung; without the names, none of 6.
        instance = TRACING / "instances" / self._folder.name
        instance.mkdir()
        try:
            base = self._base()
            for name, text in (
                ("trace_options", "norecord-cmd"),
                ("trace_clock", "mono"),
                ("events/gpio/gpio_value/filter", f"get == 0 && gpio >= {base} && gpio < {base + self.lines}"),
                ("events/gpio/gpio_value/enable", "1"),
            ):
                (instance / name).write_text(text)
            fd = os.open(instance / "trace_pipe", os.O_RDONLY | os.O_NONBLOCK)
            reader = partial(self._read_levels, fd, base)
            self._readers.append(reader)
            try:
                task_status.started()
                while True:
                    await trio.lowlevel.wait_readable(fd)
                    reader()
            finally:
                self._readers.remove(reader)
                os.close(fd)
        finally:
            instance.rmdir()

    def _read_levels(self, fd: int, base: int) -> None:
        while True:
            try:
                self._rest += os.read(fd, 65536).decode()
            except BlockingIOError:
                return
            *lines, self._rest = self._rest.split("\n")
            for line in lines:
                match = re.search(r" (\d+\.\d+): gpio_value: (\d+) set (\d)", line)
                if match is not None:
                    self._note(LineEvent(float(match[1]), int(match[2]) - base, match[3] == "1", "set"))

    def _base(self) -> int:
        for path in Path("/sys/class/gpio").glob("gpiochip*"):
            if (path / "label").read_text().strip() == self.label:
                return int((path / "base").read_text())
        raise OSError(f"/sys/class/gpio has no chip {self.label}")

    async def _watch_owners(self, task_status: trio.TaskStatus[None]) -> None:
        import gpiod

        with gpiod.Chip(self.path) as chip:
            for line in range(self.lines):
                chip.watch_line_info(line)
            reader = partial(self._read_owners, chip)
            self._readers.append(reader)
            try:
                task_status.started()
                while True:
                    await trio.lowlevel.wait_readable(chip.fd)
                    reader()
            finally:
                self._readers.remove(reader)

    def _read_owners(self, chip: Any) -> None:
        from gpiod.info_event import InfoEvent

        names = {
            InfoEvent.Type.LINE_REQUESTED: "requested",
            InfoEvent.Type.LINE_RELEASED: "released",
            InfoEvent.Type.LINE_CONFIG_CHANGED: "reconfigured",
        }
        while chip.wait_info_event(0):
            event = chip.read_info_event()
            line = event.line_info.offset
            self._note(LineEvent(event.timestamp_ns / 1e9, line, self.value(line), names[event.event_type]))
