"""Measure machine-server with simulated devices: time from start to first answer, resident memory, idle CPU.

`python -c "import trio"` is measured in the same run, because absolute figures depend on the computer.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent
FIELDS = (
    (":method", "POST"), (":scheme", "http"), (":path", "/viam.robot.v1.RobotService/ResourceNames"),
    (":authority", "localhost"), ("te", "trailers"), ("content-type", "application/grpc"),
)  # fmt: skip


def frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return len(payload).to_bytes(3, "big") + bytes((kind, flags)) + stream.to_bytes(4, "big") + payload


def literal(text: str) -> bytes:
    return bytes((len(text),)) + text.encode()


REQUEST = (
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
    + frame(4, 0, 0, b"")
    + frame(1, 4, 1, b"".join(b"\0" + literal(name) + literal(value) for name, value in FIELDS))
    + frame(0, 1, 1, bytes(5))
)
"""A new connection with a call of ResourceNames."""
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def first_answer(port: int, deadline: float) -> None:
    """Wait until the server has answered ResourceNames."""
    while True:
        try:
            with (
                socket.create_connection(("127.0.0.1", port), timeout=5) as connection,
                connection.makefile("rb") as lines,
            ):
                connection.sendall(REQUEST)
                while head := lines.read(9):
                    lines.read(int.from_bytes(head[:3], "big"))
                    if head[3] == 0:  # DATA
                        return
                raise RuntimeError("the server closed the connection without an answer")
        except ConnectionRefusedError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.002)


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_SECOND


def resident_mib(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    raise RuntimeError("no VmRSS")


def running_resources(port: int) -> int:
    done = subprocess.run(
        [str(Path(sys.executable).with_name("machine")), "resources", "--json", "--address", f"localhost:{port}"],
        capture_output=True, text=True, cwd=ROOT, timeout=30, check=True,
    )  # fmt: skip
    return len(json.loads(done.stdout))


def bare() -> float:
    begin = time.monotonic()
    subprocess.run([sys.executable, "-c", "import trio"], check=True)
    return time.monotonic() - begin


def measure(config: Path, idle_seconds: float) -> dict[str, float]:
    port = free_port()
    document = json.loads(config.read_text())
    document.setdefault("network", {})["bind_address"] = f"localhost:{port}"
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(document, file)
        file.flush()
        begin = time.monotonic()
        server = subprocess.Popen(
            [sys.executable, "-m", "runtime.server.cli", "-config", file.name], cwd=ROOT,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            first_answer(port, begin + 20)
            answered = time.monotonic() - begin
            resources = running_resources(port)
            time.sleep(1)
            before, clock = cpu_seconds(server.pid), time.monotonic()
            time.sleep(idle_seconds)
            idle = (cpu_seconds(server.pid) - before) / (time.monotonic() - clock)
            return {
                "first answer s": answered,
                "resident MiB": resident_mib(server.pid),
                "idle CPU %": 100 * idle,
                "resources": resources,
            }
        finally:
            server.terminate()
            server.wait(30)


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench footprint", description=__doc__)
    parser.add_argument("--config", type=Path, default=ROOT / "examples" / "bench.json")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--idle", type=float, default=20, help="seconds during which idle CPU is measured")
    options = parser.parse_args(argv)
    bare()  # warm the file cache
    rows, bares = [], []
    for _ in range(options.rounds):
        bares.append(bare())
        rows.append(measure(options.config, options.idle))
    print(f"medians of {options.rounds} rounds on {options.config.name}; budget in brackets")
    budgets = {"first answer s": 0.6, "resident MiB": 60, "idle CPU %": 0.3, "resources": 20}
    for key, budget in budgets.items():
        print(f"  {key:16} {statistics.median(row[key] for row in rows):8.2f}   [{budget}]")
    print(f"  {'import trio s':16} {statistics.median(bares):8.2f}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
