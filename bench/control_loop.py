"""Compare a control loop in machine-server, while it serves calls, with the same loop in a bare script.

`python -m bench.control_loop [--i2c BUS:ADDRESS --gpio CHIP:LINE] [--rate 200] [--calls 1000] [--seconds 10]`

In each period the loop reads a register of two bytes over I2C and writes an output. Lateness is the time from the
beginning of the period until the output is written; a period that was skipped because the previous one took too long
counts as missed. Without --i2c and --gpio the devices are simulated, and cost no time themselves. There are three runs:
the bare script, the loop in an idle server, and the loop while calls are served.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, ClassVar

import trio

from engine.components.sensing.sensor import Sensor
from engine.resource import Attributes, Extra, Started, Value, model
from hal.hardware import Hardware
from hal.linux.timer import ticks
from hal.ports.digital import Line, OutputSettings
from hal.ports.ticks import Ticks
from hal.sim.bench.world import World
from hal.sim.hardware import SimHardware
from models.chips.lm75.simulation import Lm75Target

SETTLE = 1.0  # seconds before the measurement, after the start of the server


def lateness(late: Sequence[float], missed: int) -> dict[str, float]:
    """Return the number of periods and the percentiles of lateness in milliseconds."""
    ordered = sorted(late) or [0.0]
    last = len(ordered) - 1
    return {
        "beats": len(late),
        "missed": missed,
        "p50_ms": ordered[round(last * 0.5)] * 1e3,
        "p99_ms": ordered[round(last * 0.99)] * 1e3,
        "max_ms": ordered[-1] * 1e3,
    }


class LoopConfig(Attributes, kw_only=True, frozen=True):
    """The devices and rate of the loop."""

    bus: str  # I2C bus
    address: int  # address of a chip with a two-byte register 0
    chip: str  # GPIO chip
    line: int  # line of the output
    rate: float  # periods per second


@model("bench:control:loop")
class Loop(Sensor):
    """Runs the loop continuously. Its readings are the lateness since the previous call."""

    Config: ClassVar[type[Attributes]] = LoopConfig

    async def run(self, *, task_status: Started) -> None:
        """Run the loop like a driver."""
        config: LoopConfig = self.attributes
        line = Line(config.chip, config.line)
        self._late: list[float] = []
        self._missed = 0
        async with (
            self.hardware.i2c(config.bus) as bus,
            self.hardware.digital_output(line, OutputSettings()) as output,
            self.hardware.ticks(1 / config.rate) as beats,
        ):
            task_status.started()
            beat, level = time.monotonic(), False
            async for passed in beats:
                beat += passed / config.rate
                self._missed += passed - 1
                await bus.transaction(config.address, b"\0", 2)
                level = not level
                output.write(level)
                self._late.append(time.monotonic() - beat)

    async def get_readings(self, *, extra: Extra = None) -> Mapping[str, Value]:
        """Return the lateness since the previous call."""
        late, missed = self._late, self._missed
        self._late, self._missed = [], 0
        return lateness(late, missed)


@model("bench:control:target")
class Target(Sensor):
    """The sensor that the load calls."""

    async def get_readings(self, *, extra: Extra = None) -> Mapping[str, Value]:
        """Return one value."""
        return {"value": 1.0}


class Simulated(SimHardware):
    """Simulated devices with the timer of the kernel."""

    def ticks(self, period: float) -> AbstractAsyncContextManager[Ticks]:
        """Open a timer of the kernel."""
        return ticks(period)


def simulated(world: World) -> Hardware:
    """Create hardware with a thermometer at 0x48 of bus 1."""
    hardware = Simulated(world)
    hardware.bus("1").attach(0x48, Lm75Target(clock=time.monotonic))
    return hardware


def bare(rate: float, seconds: float, i2c: str, gpio: str) -> dict[str, float]:
    """Run the loop with only the libraries, in a script that sleeps until the next period."""
    read, write = raw_devices(i2c, gpio) if i2c else (_simulated_read(), bool)
    late: list[float] = []
    missed, level = 0, False
    beat = time.monotonic()
    end = beat + SETTLE + seconds
    while beat < end:
        beat += 1 / rate
        now = time.monotonic()
        while beat < now - 1 / rate:
            beat += 1 / rate
            missed += 1
        time.sleep(max(0.0, beat - now))
        read()
        level = not level
        write(level)
        late.append(time.monotonic() - beat)
    return lateness(late[int(SETTLE * rate) :], missed)


def _simulated_read() -> Callable[[], object]:
    chip = Lm75Target(clock=time.monotonic)

    def read() -> object:
        chip.write(b"\0")
        return chip.read(2)

    return read


def raw_devices(i2c: str, gpio: str) -> tuple[Callable[[], object], Callable[[bool], object]]:
    """Return functions that read a register by smbus2 and write a line by gpiod."""
    import gpiod
    import smbus2
    from gpiod.line import Direction, Value

    path, address = _pair(i2c)
    chip, line = _pair(gpio)
    bus = smbus2.SMBus(path)
    settings = gpiod.LineSettings(direction=Direction.OUTPUT)
    request = gpiod.request_lines(chip if "/" in chip else f"/dev/{chip}", config={line: settings})

    def read() -> object:
        messages = smbus2.i2c_msg.write(address, b"\0"), smbus2.i2c_msg.read(address, 2)
        bus.i2c_rdwr(*messages)
        return bytes(messages[1])

    return read, lambda level: request.set_value(line, Value.ACTIVE if level else Value.INACTIVE)


def _pair(text: str) -> tuple[str, int]:
    name, _, number = text.rpartition(":")
    return name, int(number, 0)


async def served(options: argparse.Namespace, calls: float) -> dict[str, Any]:
    """Run the loop in a new machine-server with `calls` calls per second."""
    from rpc.api.client import ApiClient
    from rpc.client.channel import Channel

    bus, address = _pair(options.i2c) if options.i2c else ("1", 0x48)
    chip, line = _pair(options.gpio) if options.gpio else ("gpiochip0", 4)
    attributes = {"bus": bus, "address": address, "chip": chip, "line": line, "rate": options.rate}
    components = [
        {"name": "loop", "api": "rdk:component:sensor", "model": "bench:control:loop", "attributes": attributes},
        {"name": "target", "api": "rdk:component:sensor", "model": "bench:control:target"},
    ]
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "machine.json"
        document = {"components": components, "network": {"bind_address": "localhost:0"}}
        config.write_text(json.dumps(document))
        read, write = os.pipe()
        family = "linux" if options.i2c else "bench.control_loop:simulated"
        models = "bench.control_loop:Loop,bench.control_loop:Target"
        process = subprocess.Popen(  # noqa: ASYNC220 - nothing else runs yet
            [sys.executable, "-m", "runtime.server.cli", "-config", str(config), "-hardware", family],
            env={**os.environ, "MACHINE_READY_FD": str(write), "MACHINE_MODELS": models},
            pass_fds=[write],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        os.close(write)
        try:
            async with trio.lowlevel.FdStream(read) as ready:
                said = ""
                while not said.endswith("running\n"):
                    part = await ready.receive_some()
                    if not part:
                        raise RuntimeError(f"machine-server ended: {process.communicate()[0]}")
                    said += part.decode()
            port = int(said.split()[0].rpartition(":")[2])
            async with Channel(f"localhost:{port}") as channel:
                client = ApiClient(channel)
                await client.call("rdk:component:sensor", "loop", "get_readings")  # loads the messages of the API
                await trio.sleep(SETTLE)
                await client.call("rdk:component:sensor", "loop", "get_readings")
                load: dict[str, float] = {}
                if calls:
                    words = ["-m", "bench.control_load", str(port), "target", str(calls), str(options.seconds)]
                    done = await trio.run_process([sys.executable, *words], capture_stdout=True)
                    load = json.loads(done.stdout)
                else:
                    await trio.sleep(options.seconds)
                late: dict[str, Any] = await client.call("rdk:component:sensor", "loop", "get_readings")
            return {**late, "load": load}
        finally:
            process.terminate()
            process.communicate(timeout=60)


def show(rows: Mapping[str, Mapping[str, Any]]) -> None:
    """Print the table."""
    print(f"{'':44}{'periods':>8}{'missed':>7}{'p50':>9}{'p99':>9}{'max':>9}  ms after the start of the period")
    for name, row in rows.items():
        figures = "".join(f"{row[key]:9.2f}" for key in ("p50_ms", "p99_ms", "max_ms"))
        print(f"{name:44}{row['beats']:8.0f}{row['missed']:7.0f}{figures}")
        if row.get("load"):
            load = row["load"]
            print(f"    {load['rate']:.0f} calls/s answered, p50 {load['p50_ms']:.1f} ms, p99 {load['p99_ms']:.1f} ms")


def main(argv: list[str]) -> int:
    """Run the three measurements and print the table, or JSON."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.control_loop", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--i2c", metavar="BUS:ADDRESS", default="")
    parser.add_argument("--gpio", metavar="CHIP:LINE", default="")
    parser.add_argument("--rate", type=float, default=200.0, help="periods per second")
    parser.add_argument("--calls", type=float, default=1000.0, help="calls per second")
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--bare", action="store_true", help="run only the bare script")
    options = parser.parse_args(argv)
    if bool(options.i2c) != bool(options.gpio):
        parser.error("give both --i2c and --gpio, or neither")
    if options.bare:
        print(json.dumps(bare(options.rate, options.seconds, options.i2c, options.gpio)))
        return 0
    words = [sys.executable, "-m", "bench.control_loop", *argv, "--bare"]
    rows = {
        "bare script": json.loads(subprocess.run(words, check=True, stdout=subprocess.PIPE).stdout),
        "in machine-server, no calls": trio.run(served, options, 0.0),
        f"in machine-server, {options.calls:.0f} calls/s": trio.run(served, options, options.calls),
    }
    if options.json:
        print(json.dumps(rows))
    else:
        show(rows)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
