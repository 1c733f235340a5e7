"""Micro servers as processes: on CPython, on Debian's MicroPython, and on MicroPython with the server frozen in."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from rpc.client.blocking import PlainHttp, run_blocking
from rpc.client.target import DialTarget
from tests.e2e.micro.build import ROOT, firmware, stock, why_not_ready
from tests.loopback import free_port

PYTHON, STOCK, FIRMWARE = "python", "stock", "firmware"
LIMIT_S = 30.0


def words_of(host: str, heap: str = "") -> list[str]:
    """Return the words that start an interpreter with a heap such as 64k; skip the test if there is none."""
    if host != PYTHON and (problem := why_not_ready()):
        pytest.skip(problem)
    options = ("-X", f"heapsize={heap}") if heap else ()
    return {PYTHON: [sys.executable], STOCK: stock(*options), FIRMWARE: firmware(*options)}[host]


@dataclass
class MicroServer:
    """A running micro server."""

    process: subprocess.Popen[bytes]
    port: int
    config: Path
    lines: list[str] = field(default_factory=list)
    _rest: list[str] = field(default_factory=list)
    _half: str = ""

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def write(self, document: Mapping[str, Any]) -> None:
        """Replace the configuration."""
        part = self.config.with_suffix(".part")
        part.write_text(json.dumps(document))
        os.utime(part, (0, self.config.stat().st_mtime + 2))  # the server compares whole seconds
        part.replace(self.config)

    def until(self, text: str) -> str:
        """Read what the server prints, until a line contains `text`."""
        assert self.process.stdout is not None
        end = time.monotonic() + LIMIT_S
        while True:
            while self._rest:
                line = self._rest.pop(0)
                self.lines.append(line)
                if text in line:
                    return line
            readable, _, _ = select.select([self.process.stdout], [], [], max(0.0, end - time.monotonic()))
            data = os.read(self.process.stdout.fileno(), 65536) if readable else b""
            assert data, f"the server did not print {text!r}:\n" + "\n".join(self.lines)
            *complete, self._half = (self._half + data.decode()).split("\n")
            self._rest += complete


@contextmanager
def micro_server(
    folder: Path,
    document: Mapping[str, Any],
    host: str,
    heap: str = "",
    *,
    module: str = "micro.hosts.main",
    quiet: bool = False,
) -> Iterator[MicroServer]:
    """Run a micro server until the block ends. The frozen one runs where it cannot import the sources."""
    config = folder / "machine.json"
    config.write_text(json.dumps(document))
    port = free_port()
    command = [*words_of(host, heap), "-m", module, str(config), "127.0.0.1", str(port)]
    environ = {**os.environ, "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(
        command,
        cwd=folder if host == FIRMWARE else ROOT,
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    server = MicroServer(process, port, config)
    try:
        server.until("listening on")
        yield server
    finally:
        process.kill()
        rest, _ = process.communicate()
        server.lines += rest.decode(errors="replace").splitlines()
        if not quiet:
            print("\n".join(server.lines))


def is_answering(server: MicroServer) -> bool:
    """Return whether a new connection is answered: with the status of HTTP, for a request that is not a call."""
    http = PlainHttp(DialTarget.parse(f"http://{server.address}"), None)
    try:
        status, _, _ = run_blocking(http.post("/", [], b""))
        return status == 405
    finally:
        http.close()
