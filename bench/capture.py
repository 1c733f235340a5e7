"""Compare capturing readings to files with writing the same messages by protobuf to a plain file.

`python -m bench capture [--seconds 5] [--rounds 3] [--rate 1000] [--folder DIR]`

A driver answers immediately with three numbers. `bare` builds the same message in a loop, writes it with protobuf's
writer of delimited messages to a buffered file, and syncs the file at the end. `captured` is a machine with the data
manager at a frequency above its capacity, so that it captures at full speed: timer, call, message, queue, thread, file,
sync. Each round runs both, one after the other, on the same disk. `steady` captures `--rate` readings per second and
reports its processor time, minus that of the same machine without capture.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import trio
from google.protobuf.proto import serialize_length_prefixed

from engine.components.sensing.sensor import Sensor
from engine.registry import Registry
from engine.resource import Extra, Value
from hal.linux.hardware import LinuxHardware
from models import BUILTIN
from rpc.api import messages
from runtime.parts.data.files.read import capture_files, read_capture_file
from runtime.server.memory import MemoryMachine, open_machine
from schema.names import API, Model

FLAT_OUT = 1_000_000.0  # Hz: above the capacity
SETTLE = 0.5  # seconds before the measurement
READINGS = {"temperature_c": 21.5, "humidity_pct": 40.25, "pressure_hpa": 1013.0}


class Instant(Sensor):
    """A sensor that answers immediately."""

    async def get_readings(self, *, extra: Extra = None) -> Mapping[str, Value]:
        await trio.lowlevel.checkpoint()
        return READINGS


@dataclass(frozen=True)
class Result:
    """The result of one run."""

    readings: int
    seconds: float
    bytes: int
    missed: int = 0
    processor: float = 0.0  # seconds

    @property
    def rate(self) -> float:
        return self.readings / self.seconds


async def bare(folder: Path, seconds: float) -> Result:
    """Write messages to a file without a machine."""
    sync = messages.load("app.datasync.v1.data_sync_pb2")
    header = sync.DataCaptureMetadata(
        component_type="rdk:component:sensor",
        component_name="s",
        method_name="Readings",
        type=sync.DATA_TYPE_TABULAR_SENSOR,
        file_extension=".dat",
    )
    path, count = folder / "bare", 0
    begin = time.monotonic()
    with path.open("wb") as file:
        serialize_length_prefixed(header, file)
        while time.monotonic() - begin < seconds:
            requested = time.time_ns()
            await trio.lowlevel.checkpoint()
            message = sync.SensorData()
            message.metadata.time_requested.FromNanoseconds(requested)
            message.metadata.time_received.FromNanoseconds(time.time_ns())
            message.struct.update({"readings": READINGS})
            serialize_length_prefixed(message, file)
            count += 1
        file.flush()
        os.fsync(file.fileno())
    return Result(count, time.monotonic() - begin, path.stat().st_size)


def document(folder: Path, frequency: float) -> dict[str, Any]:
    methods = [{"method": "Readings", "capture_frequency_hz": frequency}]
    return {
        "components": [
            {
                "name": "s",
                "api": "rdk:component:sensor",
                "model": "bench:capture:instant",
                "service_configs": [{"type": "data_manager", "attributes": {"capture_methods": methods}}],
            }
        ],
        "services": [{"name": "data", "api": "rdk:service:data_manager", "attributes": {"capture_dir": str(folder)}}],
    }


async def captured(folder: Path, seconds: float, frequency: float) -> Result:
    """Run a machine that captures, and count what it writes."""
    registry = Registry(BUILTIN)
    registry.add(API.parse("rdk:component:sensor"), Model.parse("bench:capture:instant"), Instant)
    async with open_machine(document(folder, frequency), registry=registry, hardware=LinuxHardware()) as memory:
        await memory.machine.lifecycle.running.wait()
        await trio.sleep(SETTLE)
        before, begin, processor = counters(memory), time.monotonic(), time.process_time()
        await trio.sleep(seconds)
        after, elapsed, processor = counters(memory), time.monotonic() - begin, time.process_time() - processor
    result = Result(
        after.get("written", 0) - before.get("written", 0),
        elapsed,
        after.get("bytes", 0) - before.get("bytes", 0),
        after.get("missed", 0) - before.get("missed", 0),
        processor,
    )
    file_readings = sum(len(read_capture_file(path).readings) for path in capture_files(folder))
    assert file_readings >= result.readings, "the files contain fewer readings than counted"
    return result


def counters(memory: MemoryMachine) -> Mapping[str, Any]:
    manager: Any = memory.machine.roster.find("data").resource
    counts: Mapping[str, Any] = next(iter(manager.store.status()["methods"].values()), {})
    return counts


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--rate", type=float, default=1000.0)
    parser.add_argument(
        "--folder", type=Path, default=None, help="folder on the disk to measure; a temporary folder by default"
    )
    options = parser.parse_args(argv)
    ratios = []
    with tempfile.TemporaryDirectory(dir=options.folder) as root:
        for number in range(options.rounds):
            folder = Path(root, str(number))
            folder.mkdir()
            base = trio.run(bare, folder, options.seconds)
            ours = trio.run(captured, folder / "capture", options.seconds, FLAT_OUT)
            ratios.append(base.rate / ours.rate)
            print(
                f"round {number + 1}: bare {base.rate:8,.0f}/s {base.bytes / base.readings:6.1f} bytes,  "
                f"captured {ours.rate:8,.0f}/s {ours.bytes / ours.readings:6.1f} bytes,  "
                f"ratio {ratios[-1]:.2f}"
            )
        idle = trio.run(captured, Path(root, "idle"), options.seconds, 0.0)
        steady = trio.run(captured, Path(root, "steady"), options.seconds, options.rate)
        share = (steady.processor - idle.processor) / steady.seconds
        print(
            f"steady {options.rate:g}/s: {steady.rate:,.1f}/s written, {steady.missed} periods missed, "
            f"{100 * share:.1f} % of one core, {1e6 * share / options.rate:.0f} us each"
        )
    print(f"bare protobuf and file is {statistics.median(ratios):.2f} times as fast as capture (median)")
    return 0


if __name__ == "__main__":
    import sys

    raise SystemExit(main(sys.argv[1:]))
