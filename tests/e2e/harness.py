"""Real machine-server processes for tests: on a free loopback port, with a separate log, always stopped at the end."""

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
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

START_LIMIT_S = 60.0  # generous: the computer that runs the tests may be busy
STOP_LIMIT_S = 60.0


def relative(path: Path | str, folder: Path) -> str:
    """Return `path` relative to `folder`, in which a program is started."""
    return os.path.relpath(path, folder)


class Files:
    """The files and the command line of a machine-server in `folder`; it writes its address to a descriptor."""

    def __init__(self, document: Mapping[str, Any], folder: Path) -> None:
        self.folder = folder
        self.config = folder / "machine.json"
        self.log_file = folder / "server.log"
        self.address = ""
        network = {"bind_address": "localhost:0", **document.get("network", {})}
        self.write({**document, "network": network})

    def write(self, document: Mapping[str, Any] | bytes) -> None:
        """Replace the configuration file atomically, as editors and agents do."""
        part = self.config.with_suffix(".part")
        part.write_bytes(document if isinstance(document, bytes) else json.dumps(document).encode())
        part.replace(self.config)

    def log(self) -> str:
        """Return everything logged so far."""
        return self.log_file.read_text("utf-8", "replace")

    @property
    def port(self) -> int:
        return int(self.address.rpartition(":")[2])

    def words(self, *options: str, program: str = "") -> list[str]:
        """Return the command line; `program` is run instead of the usual entry point."""
        entry = ["-c", program] if program else ["-m", "runtime.server.cli"]
        return [sys.executable, *entry, "-config", str(self.config), *options]

    @property
    def environ(self) -> dict[str, str]:
        """Return the environment variables in addition to those of this process."""
        return {"MACHINE_HOME": str(self.folder / "home")}

    def take(self, said: str) -> None:
        """Read the address from the process's ready message."""
        lines = [line for line in said.split() if line != "running"]
        self.address = next((line for line in lines if line.startswith(("127.", "localhost"))), lines[0])


class Server(Files):
    """`with Server(document, folder) as server:` runs machine-server with `document` until the block ends.

    The port is open when the block begins; `wait_running` waits for the first full pass over the resources. For tests
    on Trio, use tests.e2e.server.process.server.
    """

    def __init__(
        self, document: Mapping[str, Any], folder: Path, *arguments: str, env: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(document, folder)
        self._arguments = arguments
        self._env = env or {}
        self.process: subprocess.Popen[bytes] | None = None
        self._said = b""

    def __enter__(self) -> Self:
        reading, writing = os.pipe()
        with self.log_file.open("wb") as log:
            self.process = subprocess.Popen(
                self.words(*self._arguments),
                stdout=log,
                stderr=subprocess.STDOUT,
                pass_fds=(writing,),
                env={**os.environ, **self.environ, **self._env, "MACHINE_READY_FD": str(writing)},
            )
        os.close(writing)
        self._ready = os.fdopen(reading, "rb", buffering=0)
        try:
            self._read_ready("addresses", lambda said: said.endswith(b"\n"))
            if not self._said:
                raise AssertionError(f"machine-server ended before its port was open:\n{self.log()}")
            self.take(self._said.decode())
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
        """Return after the first attempt to start every resource, which the server reports on MACHINE_READY_FD."""
        self._read_ready("running", lambda said: said.endswith(b"running\n"))
        if not self._said.endswith(b"running\n"):
            raise AssertionError(f"machine-server ended before it was running:\n{self.log()}")
        return self

    def _read_ready(self, what: str, enough: Callable[[bytes], bool]) -> None:
        """Read MACHINE_READY_FD until `enough` is true of its content, or until it is closed."""
        deadline = time.monotonic() + START_LIMIT_S
        while not enough(self._said):
            if not select.select([self._ready], [], [], max(0.0, deadline - time.monotonic()))[0]:
                raise AssertionError(f"not {what} within {START_LIMIT_S} s:\n{self.log()}")
            data = self._ready.read(4096)
            if not data:
                return
            self._said += data

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
    """Return the command that runs `command` in a separate network namespace with nothing but loopback."""
    script = 'ip link set lo up && exec "$@"'
    mapped = [] if os.geteuid() == 0 else ["--map-root-user"]
    return ["unshare", "--net", *mapped, "sh", "-c", script, "sh", *command]


@functools.cache
def namespace_refusal() -> str:
    """Return why network namespaces are not available here; empty if they are."""
    for tool in ("unshare", "ip"):
        if shutil.which(tool) is None:
            return f"{tool} is not installed (Debian packages util-linux and iproute2)"
    with contextlib.suppress(subprocess.TimeoutExpired):
        done = subprocess.run(in_namespace(["true"]), capture_output=True, text=True, timeout=10)
        return "" if done.returncode == 0 else done.stderr.strip() or f"unshare exited with {done.returncode}"
    return "unshare did not answer"
