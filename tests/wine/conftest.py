"""Fixtures of the tests on Wine: a room for Windows programs, and machine-server in it."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import queue
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from tests.wine.places import ROOT, tree, why_not_ready
from tests.wine.room import PYTHON, Room, open_room

START: Final = 60.0  # seconds for machine-server to start beside other tests
_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def room() -> Iterator[Room]:
    """Yield the room with this checkout, mounted at Z:\\opt\\machine."""
    if why_not_ready():
        subprocess.run([sys.executable, "-m", "tests.wine.build"], cwd=ROOT, check=False)
    if reason := why_not_ready():
        pytest.skip(reason)
    with open_room(tree(), ROOT) as room:
        shutil.rmtree(room.drive / "t", ignore_errors=True)
        (room.drive / "t").mkdir()
        yield room


class Server:
    """machine-server for Windows. `document` is its file, `lines` what it has printed."""

    def __init__(self, room: Room, document: Mapping[str, Any], *options: str) -> None:
        self.here, self.there = room.folder(f"server-{os.getpid()}-{next(_numbers)}")
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.address = f"127.0.0.1:{probe.getsockname()[1]}"
        self.document = {"network": {"bind_address": self.address}, **document}
        self.write()
        self.lines: list[str] = []
        self._fresh: queue.Queue[str | None] = queue.Queue()
        self._options = (r"-config", rf"{self.there}\machine.json", *options)
        self._process = subprocess.Popen(
            room.words(PYTHON, "-m", "runtime.server.start", *self._options),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def write(self) -> None:
        """Replace the file with the document."""
        part = self.here / "new"
        part.write_text(json.dumps(self.document))
        part.rename(self.here / "machine.json")

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._fresh.put(line.rstrip())
        self._fresh.put(None)

    def until(self, *words: str, limit: float = START) -> str:
        """Return the next line that contains all words; AssertionError if none comes, or the program ends."""
        end = time.monotonic() + limit
        while True:
            try:
                line = self._fresh.get(timeout=max(0.0, end - time.monotonic()))
            except queue.Empty:
                line = None
            said = "\n".join(self.lines[-60:])
            assert line is not None, f"machine-server did not print {words}:\n{said}"
            self.lines.append(line)
            if all(word in line for word in words):
                return line

    def wait(self, limit: float = START) -> int:
        """Wait for its end; return the exit status."""
        status = self._process.wait(limit)
        self._reader.join(limit)
        while (line := self._fresh.get(timeout=limit)) is not None:
            self.lines.append(line)
        return status

    def kill(self) -> None:
        """End it now, if it runs, and close its pipes."""
        for pid in descendants(self._process.pid):  # nsenter starts it as a child
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._process.wait(30)
        self._reader.join(30)
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()


def descendants(pid: int) -> list[int]:
    """Return a process and what it has started, the last first; empty if it has ended and was waited for."""
    every = [pid]
    for number in every:
        children = Path(f"/proc/{number}/task/{number}/children")
        if children.exists():
            every += map(int, children.read_text().split())
    return [number for number in reversed(every) if Path(f"/proc/{number}").exists()]


def fake(name: str, api: str, **attributes: Any) -> dict[str, Any]:
    """Return the entry of a component with the model fake."""
    return {"name": name, "api": f"rdk:component:{api}", "model": "fake", "attributes": attributes}


FAKES: Final = tuple(fake(api, api) for api in ("motor", "sensor", "camera", "arm", "base"))


def site(folder: Path) -> str:
    """Return the path of a folder of the checkout for Windows programs."""
    return "Z:\\opt\\machine\\" + str(folder.relative_to(ROOT)).replace("/", "\\")
