"""Compare reading lines from a serial port at full speed: pyserial in a thread, and the model serial_line.

The port is a pty, whose speed is limited only by the kernel; another process writes to it.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
import tty
from collections.abc import Iterator
from contextlib import contextmanager

import trio

from engine.components.sensing.sensor import Sensor
from hal.linux.hardware import LinuxHardware
from runtime.server.memory import open_machine

BUDGET = 100_000  # lines/s
LINE = b'{"t": 21.5}\n'
FLOOD = f"import os\nwhile True: os.write(%d, {LINE!r} * 300)"


@contextmanager
def flooded() -> Iterator[str]:
    """Yield the path of a port that continuously receives lines."""
    master, slave = os.openpty()
    tty.setraw(slave)
    flood = subprocess.Popen([sys.executable, "-c", FLOOD % master], pass_fds=[master])
    try:
        yield os.ttyname(slave)
    finally:
        flood.kill()
        flood.wait()
        os.close(slave)
        os.close(master)


async def ours(seconds: float) -> float:
    """Return the lines/s of the resource, from its own counter."""
    with flooded() as path:
        attributes = {"path": path}
        document = {
            "components": [
                {"name": "line", "api": str(Sensor.API), "model": "rdk:builtin:serial_line", "attributes": attributes}
            ]
        }
        async with open_machine(document, hardware=LinuxHardware()) as machine:
            await machine.machine.lifecycle.running.wait()
            sensor = machine.machine.roster.find("line").resource
            begin, before = time.perf_counter(), await sensor.get_status()
            await trio.sleep(seconds)
            after, end = await sensor.get_status(), time.perf_counter()
            assert await sensor.get_readings()  # type: ignore[attr-defined]
    return (after["lines"] - before["lines"]) / (end - begin)  # type: ignore[no-any-return]


async def pyserial(seconds: float) -> float:
    """Return the lines/s of `readline` in a thread."""
    import serial

    with flooded() as path, serial.Serial(path, timeout=5) as port:
        count, begin = 0, time.perf_counter()
        while time.perf_counter() < begin + seconds:
            assert await trio.to_thread.run_sync(port.readline)
            count += 1
        return count / (time.perf_counter() - begin)


async def measure(seconds: float, rounds: int) -> bool:
    figures: dict[str, list[float]] = {"pyserial": [], "ours": []}
    for _ in range(rounds):
        figures["pyserial"].append(await pyserial(seconds))
        figures["ours"].append(await ours(seconds))
    raw, model = (statistics.median(each) for each in figures.values())
    print("Serial, lines of 12 bytes on a pty")
    print(f"  {'pyserial readline in trio.to_thread.run_sync':44} {raw:9.0f} lines/s")
    print(f"  {'the model serial_line':44} {model:9.0f} lines/s   {model / raw:5.1f}")
    print(f"  {'budget kept' if model >= BUDGET else 'BUDGET MISSED'}: at least {BUDGET} lines/s")
    return model >= BUDGET
