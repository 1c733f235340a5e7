"""Real machine-server processes for tests: on a free loopback port, with a log of their own, always ended."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

START_LIMIT_S = 30.0
STOP_LIMIT_S = 30.0


class Server:
    """`with Server(document, folder) as server:` runs machine-server with `document` until the block ends.

    The port is open when the block begins; `wait_running` waits for the first full pass over the resources.
    """

    def __init__(
        self, document: dict[str, Any], folder: Path, *arguments: str, env: dict[str, str] | None = None
    ) -> None:
        self.folder = folder
        self.config = folder / "machine.json"
        network = {"bind_address": "localhost:0", **document.get("network", {})}
        self.write({**document, "network": network})
        self.log_file = folder / "server.log"
        self.address = ""
        self._arguments = arguments
        self._env = env or {}
        self.process: subprocess.Popen[bytes] | None = None
        self._said = b""

    def write(self, document: dict[str, Any]) -> None:
        """Replace the configuration file atomically."""
        part = self.config.with_suffix(".part")
        part.write_text(json.dumps(document))
        part.replace(self.config)

    def __enter__(self) -> Self:
        reading, writing = os.pipe()
        with self.log_file.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "runtime.cli", "-config", str(self.config), *self._arguments],
                stdout=log,
                stderr=subprocess.STDOUT,
                pass_fds=(writing,),
                env={
                    **os.environ,
                    "MACHINE_HOME": str(self.folder / "home"),
                    "MACHINE_READY_FD": str(writing),
                    **self._env,
                },
            )
        os.close(writing)
        self._ready = os.fdopen(reading, "rb", buffering=0)
        try:
            self._read_ready("addresses", lambda said: said.endswith(b"\n"))
            if not self._said:
                raise AssertionError(f"machine-server ended before its port was open:\n{self.log()}")
            lines = [line for line in self._said.decode().split() if line != "running"]
            self.address = next((line for line in lines if line.startswith(("127.", "localhost"))), lines[0])
        except BaseException:
            self._ready.close()
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            self.stop()
        finally:
            self._ready.close()

    def wait_running(self) -> Self:
        """Return once every resource was tried for the first time: the server says so on MACHINE_READY_FD."""
        self._read_ready("running", lambda said: said.endswith(b"running\n"))
        if not self._said.endswith(b"running\n"):
            raise AssertionError(f"machine-server ended before it was running:\n{self.log()}")
        return self

    def _read_ready(self, what: str, enough: Callable[[bytes], bool]) -> None:
        """Read MACHINE_READY_FD until it has said enough, or its end."""
        deadline = time.monotonic() + START_LIMIT_S
        while not enough(self._said):
            if not select.select([self._ready], [], [], max(0.0, deadline - time.monotonic()))[0]:
                raise AssertionError(f"not {what} within {START_LIMIT_S} s:\n{self.log()}")
            data = self._ready.read(4096)
            if not data:
                return
            self._said += data

    @property
    def port(self) -> int:
        return int(self.address.rpartition(":")[2])

    def log(self) -> str:
        return self.log_file.read_text("utf-8", "replace")

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Signal the server and return its exit status; SIGKILL after STOP_LIMIT_S is a failure of the test."""
        process = self.process
        assert process is not None
        if process.poll() is None:
            process.send_signal(number)
        try:
            return process.wait(STOP_LIMIT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise AssertionError(f"did not stop within {STOP_LIMIT_S} s:\n{self.log()}") from None

    def command(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run `machine ARGUMENTS` against this server."""
        return subprocess.run(
            [str(Path(sys.executable).with_name("machine")), *arguments, "--address", self.address],
            capture_output=True,
            text=True,
            timeout=60,
        )


def in_namespace(command: list[str]) -> list[str]:
    """`command` in a network namespace of its own that has loopback and nothing else."""
    script = 'ip link set lo up && exec "$@"'
    mapped = [] if os.geteuid() == 0 else ["--map-root-user"]
    return ["unshare", "--net", *mapped, "sh", "-c", script, "sh", *command]


@functools.cache
def namespace_refusal() -> str:
    """Why there can be no network namespace here; empty if there can be."""
    for tool in ("unshare", "ip"):
        if shutil.which(tool) is None:
            return f"{tool} is not installed (Debian packages util-linux and iproute2)"
    with contextlib.suppress(subprocess.TimeoutExpired):
        done = subprocess.run(in_namespace(["true"]), capture_output=True, text=True, timeout=10)
        return "" if done.returncode == 0 else done.stderr.strip() or f"unshare exited with {done.returncode}"
    return "unshare did not answer"
