"""Sensor `host`: processor, memory, disk, network, temperatures and uptime of this computer.

All values are read from files of the kernel in memory, without threads or processes, in under a millisecond.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import ClassVar, Final

import trio

from engine import Attributes, Context, Extra, Sensor, Value, model
from models.host.attributes import HostSensorConfig

MIN_INTERVAL: Final = 0.1  # shortest averaging time of processor use in seconds


@model("rdk:builtin:host")
class HostSensor(Sensor):
    """The names of readings contain the unit. Values that the kernel does not provide are omitted."""

    Config: ClassVar[type[Attributes]] = HostSensorConfig

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._root = Path(self.attributes.root)
        self._ticks = self._cpu_ticks()
        self._since = trio.current_time()
        self._cpu_pct: float | None = None

    async def get_readings(self, *, extra: Extra = None) -> Mapping[str, Value]:
        """Return the configured groups. Processor use is the average since the previous call, over at least 0.1 s."""
        await trio.lowlevel.checkpoint()
        readings: dict[str, Value] = {}
        for group in self.attributes.groups:
            readings.update(getattr(self, f"_{group}")())
        return readings

    def _lines(self, path: str) -> list[str]:
        try:
            return (self._root / path).read_text(errors="replace").splitlines()
        except OSError:
            return []

    def _cpu_ticks(self) -> tuple[int, int] | None:
        """Return total and idle ticks (proc(5): idle and iowait are the fourth and fifth)."""
        for line in self._lines("proc/stat"):
            if line.startswith("cpu "):
                # Guest time is already included in user time.
                numbers = [int(word) for word in line.split()[1:9]]
                return sum(numbers), sum(numbers[3:5])
        return None

    def _cpu(self) -> Iterator[tuple[str, Value]]:
        now, ticks = trio.current_time(), self._cpu_ticks()
        if ticks is not None and self._ticks is not None and now - self._since >= MIN_INTERVAL:
            total = ticks[0] - self._ticks[0]
            if total > 0:
                self._cpu_pct = round(100.0 * (1 - (ticks[1] - self._ticks[1]) / total), 1)
                self._ticks, self._since = ticks, now
        if self._cpu_pct is not None:
            yield "cpu_pct", self._cpu_pct
        yield "cpu_count", os.cpu_count() or 1
        for line in self._lines("proc/loadavg")[:1]:
            for name, word in zip(("load_1m", "load_5m", "load_15m"), line.split(), strict=False):
                yield name, float(word)

    def _memory(self) -> Iterator[tuple[str, Value]]:
        fields = {}
        for line in self._lines("proc/meminfo"):
            name, _, value = line.partition(":")
            fields[name] = int(value.split()[0]) * 1024  # "kB" in this file means KiB
        for name, field in (
            ("memory_total_bytes", "MemTotal"),
            ("memory_available_bytes", "MemAvailable"),
            ("swap_free_bytes", "SwapFree"),
        ):
            if field in fields:
                yield name, fields[field]
        if fields.get("MemTotal"):
            used = 1 - fields.get("MemAvailable", 0) / fields["MemTotal"]
            yield "memory_used_pct", round(100.0 * used, 1)

    def _disk(self) -> Iterator[tuple[str, Value]]:
        try:
            disk = shutil.disk_usage(self.attributes.disk_path)
        except OSError:
            return
        yield "disk_total_bytes", disk.total
        yield "disk_available_bytes", disk.free
        usable = disk.used + disk.free  # without the space that is reserved for root
        if usable:
            yield "disk_used_pct", round(100.0 * (1 - disk.free / usable), 1)

    def _network(self) -> Iterator[tuple[str, Value]]:
        """Yield bytes since boot over all interfaces except loopback."""
        received = sent = 0
        lines = self._lines("proc/net/dev")[2:]
        for line in lines:
            name, _, counters = line.partition(":")
            words = counters.split()
            if name.strip() != "lo" and len(words) >= 9:
                received, sent = received + int(words[0]), sent + int(words[8])
        if lines:
            yield "network_received_bytes", received
            yield "network_sent_bytes", sent

    def _temperature(self) -> Iterator[tuple[str, Value]]:
        for zone in sorted((self._root / "sys/class/thermal").glob("thermal_zone*")):
            relative = zone.relative_to(self._root)
            kind, value = self._lines(f"{relative}/type"), self._lines(f"{relative}/temp")
            if value and value[0].lstrip("-").isdigit():
                yield f"temperature_{kind[0] if kind else zone.name}_c", int(value[0]) / 1000

    def _uptime(self) -> Iterator[tuple[str, Value]]:
        for line in self._lines("proc/uptime")[:1]:
            yield "uptime_s", float(line.split()[0])
