"""Reads metrics of processes and of the network from small files in /proc; missing files are skipped.

On Windows, of processes and of the computer, from the system's calls; none of the network.
"""

from __future__ import annotations

import sys

if sys.platform == "win32":
    from engine.metrics.system_windows import count_descriptors as count_descriptors
    from engine.metrics.system_windows import measure_host as measure_host
    from engine.metrics.system_windows import measure_network as measure_network
    from engine.metrics.system_windows import measure_process as measure_process
else:
    import os
    import time
    from collections.abc import MutableMapping
    from functools import cache
    from typing import Final

    _TICKS: Final = os.sysconf("SC_CLK_TCK")
    _PAGE_MIB: Final = os.sysconf("SC_PAGE_SIZE") / 2**20
    _MIB: Final = 2**20

    # proc(5), /proc/pid/stat: indices in the fields after the name in brackets, which is field 2
    _UTIME, _STIME, _THREADS, _START, _VSIZE, _RSS = 11, 12, 17, 19, 20, 21

    _DEVICE: Final = (
        (0, "RxBytes"), (1, "RxPackets"), (2, "RxErrors"), (3, "RxDropped"),
        (8, "TxBytes"), (9, "TxPackets"), (10, "TxErrors"), (11, "TxDropped"),
    )  # fmt: skip
    """Columns of /proc/net/dev."""

    _SOCKETS: Final = {
        ("TCP", "inuse"): "net.TCP.UsedSockets",
        ("TCP", "tw"): "net.TCP.TimeWait",
        ("TCP", "mem"): "net.TCP.QueuedPages",
        ("TCP6", "inuse"): "net.TCP6.UsedSockets",
        ("UDP", "inuse"): "net.UDP.UsedSockets",
        ("UDP", "mem"): "net.UDP.QueuedPages",
        ("UDP6", "inuse"): "net.UDP6.UsedSockets",
    }
    """Values read from /proc/net/sockstat and sockstat6. /proc/net/tcp has each queue, but reading it can take 4 ms."""

    _PROTOCOLS: Final = {
        ("Tcp", "RetransSegs"): "net.TCP.RetransmittedSegments",
        ("Udp", "InErrors"): "net.UDP.ReceiveErrors",
        ("Udp", "RcvbufErrors"): "net.UDP.ReceiveDrops",
    }
    """Values read from /proc/net/snmp."""

    def measure_process(values: MutableMapping[str, float], name: str, pid: int | str = "self") -> None:
        """Add `<name>.UserCPUSecs`, `SystemCPUSecs`, `ElapsedTimeSecs`, `VssMB`, `RssMB` and `Threads` of a process."""
        fields = _read(f"/proc/{pid}/stat").rpartition(b")")[2].split()
        if len(fields) <= _RSS:
            return
        values[f"{name}.UserCPUSecs"] = int(fields[_UTIME]) / _TICKS
        values[f"{name}.SystemCPUSecs"] = int(fields[_STIME]) / _TICKS
        values[f"{name}.ElapsedTimeSecs"] = time.clock_gettime(time.CLOCK_BOOTTIME) - int(fields[_START]) / _TICKS
        values[f"{name}.VssMB"] = int(fields[_VSIZE]) / _MIB
        values[f"{name}.RssMB"] = int(fields[_RSS]) * _PAGE_MIB
        values[f"{name}.Threads"] = int(fields[_THREADS])

    def measure_network(values: MutableMapping[str, float]) -> None:
        """Add the counters of each interface (`net.eth0.RxBytes`) and those of TCP and UDP."""
        for line in _read("/proc/net/dev").decode("utf-8", "replace").splitlines()[2:]:
            interface, _, rest = line.partition(":")
            columns = rest.split()
            for column, word in _DEVICE:
                values[f"net.{interface.strip()}.{word}"] = int(columns[column])
        for path in ("/proc/net/sockstat", "/proc/net/sockstat6"):
            for line in _read(path).decode().splitlines():
                protocol, _, rest = line.partition(":")
                pairs = rest.split()
                for word, number in zip(pairs[::2], pairs[1::2], strict=False):
                    if (name := _SOCKETS.get((protocol, word))) is not None:
                        values[name] = int(number)
        lines = _read("/proc/net/snmp").decode().splitlines()
        for head, line in zip(lines[::2], lines[1::2], strict=False):
            protocol = head.partition(":")[0]
            for word, number in zip(head.split()[1:], line.split()[1:], strict=False):
                if (name := _PROTOCOLS.get((protocol, word))) is not None:
                    values[name] = int(number)

    def measure_host(values: MutableMapping[str, float]) -> None:
        """Add the computer's processor time (`host.BusySecs`, `IdleSecs`, over all cores), its highest temperature, and
        the share of memory and of the disk with the root folder that is used.
        """
        ticks = [int(word) for word in _read("/proc/stat").partition(b"\n")[0].split()[1:9]]
        if len(ticks) == 8:  # proc(5): idle and iowait are the fourth and fifth; guest time is within user time
            idle = sum(ticks[3:5])
            values["host.BusySecs"], values["host.IdleSecs"] = (sum(ticks) - idle) / _TICKS, idle / _TICKS
        memory = {}
        for line in _read("/proc/meminfo").splitlines()[:3]:
            name, _, rest = line.partition(b":")
            memory[name] = int(rest.split()[0])
        if memory.get(b"MemTotal") and b"MemAvailable" in memory:
            values["host.MemoryUsedPct"] = 100 * (1 - memory[b"MemAvailable"] / memory[b"MemTotal"])
        try:
            disk = os.statvfs("/")
        except OSError:
            pass  # a root folder that cannot be read has no share
        else:
            usable = disk.f_blocks - disk.f_bfree + disk.f_bavail
            if usable:
                values["host.DiskUsedPct"] = 100 * (1 - disk.f_bavail / usable)
        texts = (_read(f"/sys/class/thermal/{zone}/temp").strip() for zone in _zones())
        temperatures = [int(text) / 1000 for text in texts if text.lstrip(b"-").isdigit()]
        if temperatures:
            values["host.TemperatureCelsius"] = max(temperatures)

    def count_descriptors() -> int:
        """Return the number of open file descriptors of this process; 0 if they cannot be counted."""
        try:
            return len(os.listdir("/proc/self/fd")) - 1  # without the descriptor of listdir itself
        except OSError:
            return 0

    def _read(path: str) -> bytes:
        """Read at most 64 KiB of a file in /proc; empty if it does not exist."""
        try:
            fd = os.open(path, os.O_RDONLY)
        except OSError:
            return b""
        try:
            return os.read(fd, 65536)
        except OSError:  # the process has just ended
            return b""
        finally:
            os.close(fd)

    @cache
    def _zones() -> tuple[str, ...]:
        """Return the thermal zones of this computer, which do not change."""
        try:
            return tuple(sorted(name for name in os.listdir("/sys/class/thermal") if name.startswith("thermal_zone")))
        except OSError:
            return ()
