"""Parts of the benchmark of the cloud: a cloud, the process that simulates machines, a receiver of webhooks."""

from __future__ import annotations

import json
import socket
import sys
import time
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import psutil
import trio

from bench.propagation import process

_ALL_THREADS: Final = 2
"""With the complement of a process id above it, the number of the clock of that process in Linux."""


@dataclass
class Database:
    """The database of a cloud. `others` are the processes of the database server."""

    name: str
    url: str = ""
    others: list[psutil.Process] = field(default_factory=list)

    def used(self) -> float:
        """Return the processor time of the database server in seconds."""
        return used_by([*self.others, *(child for other in self.others for child in other.children())])

    def waiting(self, folder: Path) -> int:
        """Return the number of events that triggers have not evaluated yet."""
        statement = "SELECT COUNT(*) FROM trigger_events"
        if self.url:
            import psycopg

            with psycopg.connect(self.url, autocommit=True) as connection:
                return int(connection.execute(statement).fetchone()[0])  # type: ignore[index]
        import sqlite3

        file = sqlite3.connect(f"file:{folder / 'data' / 'cloud.db'}?mode=ro", uri=True)
        try:
            return int(file.execute(statement).fetchone()[0])
        finally:
            file.close()


def used_by(processes: Iterable[psutil.Process]) -> float:
    """Return the processor time of those processes that still run, in seconds, to the microsecond."""
    seconds = 0.0
    for each in processes:
        with suppress(OSError):  # it has ended
            seconds += time.clock_gettime(~each.pid << 3 | _ALL_THREADS)
    return seconds


@contextmanager
def databases(which: str) -> Iterator[list[Database]]:
    """Provide the selected databases, running while the context is open."""
    selected = [Database("SQLite")] if which != "postgresql" else []
    if which == "sqlite":
        yield selected
        return
    from tests.postgresql import cluster, programs

    if programs() is None:
        print("PostgreSQL is not installed")
        yield selected
        return
    with cluster() as server:
        yield [*selected, Database("PostgreSQL", server.url(), [server.process()])]


@dataclass
class Running:
    """A running cloud. `facts` are the values printed by its first start."""

    address: str
    facts: dict[str, str]
    process: psutil.Process
    ready: float  # when it was ready (time.perf_counter)


@asynccontextmanager
async def cloud(
    folder: Path, database: Database, port: int, source: str = "", program: str = "cloud.server.cli"
) -> AsyncIterator[Running]:
    """Run a machine-cloud with its data in `folder`; `source` is the folder of another version to run."""
    log = folder / f"{time.monotonic_ns()}.log"
    words = [program, "--data", str(folder / "data"), "--listen", f"localhost:{port}"]
    words += ["--webhook-allow", "127.0.0.0/8", *(["--database", database.url] if database.url else [])]
    older = {"PYTHONPATH": source, "PYTHONSAFEPATH": "1"} if source else {}
    before = set(psutil.Process().children())
    async with process(*words, log=log, **older) as address:
        ready = time.perf_counter()
        (child,) = set(psutil.Process().children()) - before
        lines = [line for line in log.read_text().splitlines() if line.startswith("  ")]
        facts = {key.strip(): value for key, value in (line.strip().rsplit("  ", 1) for line in lines)}
        yield Running(address, facts, child, ready)


def free_port() -> int:
    """Return an unused port."""
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        return int(probe.getsockname()[1])


class Load:
    """The process that simulates machines."""

    def __init__(self, child: trio.Process) -> None:
        self._child = child
        self._read = b""

    async def __call__(self, do: str, **more: Any) -> dict[str, Any]:
        """Send a command and return its answer."""
        await self.tell(do, **more)
        return await self.answer()

    async def tell(self, do: str, **more: Any) -> None:
        """Send a command without waiting for the answer."""
        assert self._child.stdin is not None
        await self._child.stdin.send_all(json.dumps({"do": do, **more}).encode() + b"\n")

    async def answer(self) -> dict[str, Any]:
        """Return the next answer."""
        assert self._child.stdout is not None
        while b"\n" not in self._read:
            data = await self._child.stdout.receive_some()
            if not data:
                raise RuntimeError("the process that simulates machines has ended")
            self._read += data
        line, _, self._read = self._read.partition(b"\n")
        answer: dict[str, Any] = json.loads(line)
        return answer


@asynccontextmanager
async def load(port: int) -> AsyncIterator[Load]:
    """Run the process that simulates machines of the cloud at a local port."""
    child = await trio.lowlevel.open_process(
        [sys.executable, "-m", "bench.cloud_load", "127.0.0.1", str(port)], stdin=-1, stdout=-1
    )
    try:
        yield Load(child)
    finally:
        with trio.CancelScope(shield=True):
            child.kill()
            await child.wait()


class Cost:
    """Processor time of cloud and database since the creation of this object, and memory of the cloud."""

    def __init__(self, running: Running, database: Database) -> None:
        self._cloud = running.process
        self._database = database
        self._begin = self._used(), time.perf_counter()

    def _used(self) -> float:
        return used_by([self._cloud]) + self._database.used()

    def seconds(self) -> float:
        """Return the processor time of the cloud and its database."""
        return self._used() - self._begin[0]

    def percent(self) -> float:
        """Return the processor time in percent of one core."""
        return 100 * self.seconds() / (time.perf_counter() - self._begin[1])

    @property
    def memory(self) -> float:
        """Resident memory of the cloud in MiB."""
        return float(self._cloud.memory_info().rss) / 2**20


class Hooks:
    """A server that accepts webhooks. `news` is set for each."""

    def __init__(self) -> None:
        self.count = 0
        self.news = trio.Event()
        self.port = 0

    async def serve(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Serve until cancelled."""
        listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
        self.port = listeners[0].socket.getsockname()[1]
        task_status.started()
        await trio.serve_listeners(self._serve, listeners)

    async def _serve(self, stream: trio.SocketStream) -> None:
        data = b""
        while True:
            while b"\r\n\r\n" not in data:
                more = await stream.receive_some()
                if not more:
                    return
                data += more
            head, _, data = data.partition(b"\r\n\r\n")
            names = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:])
            size = int(names.get(b"content-length", b"0"))
            while len(data) < size:
                data += await stream.receive_some()
            data = data[size:]
            await stream.send_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
            self.count += 1
            self.news.set()

    async def until(self, count: int) -> None:
        """Wait until `count` webhooks have been received."""
        while self.count < count:
            self.news = trio.Event()
            await self.news.wait()
