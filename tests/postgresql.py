"""Temporary PostgreSQL clusters behind a Unix socket, for tests and benchmarks."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import psutil
import pytest

LIMIT = 30.0  # seconds to start or stop
QUICK = ("fsync=off", "full_page_writes=off")
"""Settings for tests without power cuts. Commits survive `Cluster.stop`, because synchronous_commit stays on."""
_numbers = count(1)


def programs() -> Path | None:
    """Return the folder of initdb and postgres, from Debian's location or PATH; None without PostgreSQL."""
    installed = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: float(path.parts[4]))
    if installed:
        return installed[-1].parent
    other = shutil.which("initdb")
    return Path(other).parent if other is not None else None


class Cluster:
    """A cluster with one server, which runs as `nobody` if the tests run as root: PostgreSQL refuses to run as root."""

    def __init__(self, folder: Path, binaries: Path, settings: Sequence[str]) -> None:
        self.folder = folder
        self._binaries = binaries
        self._settings = settings
        self._log = folder / "log"
        self._process: subprocess.Popen[bytes] | None = None

    def url(self, schema: str = "", database: str = "postgres") -> str:
        """Return the address for clients, optionally with the schema that they use."""
        path = f"&options=-csearch_path%3D{schema}" if schema else ""
        return f"postgresql://machine@/{database}?host={self.folder}{path}"

    def fresh(self) -> str:
        """Create an empty schema and return the address for it."""
        name = f"cloud_{next(_numbers)}"
        self.execute(f"CREATE SCHEMA {name}")
        return self.url(name)

    def execute(self, statement: str) -> None:
        """Execute a statement as the superuser."""
        import psycopg

        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute(statement)

    def create(self) -> None:
        """Create the files of the cluster."""
        if os.getuid() == 0:
            shutil.chown(self.folder, "nobody", "nogroup")
        words = ("-U", "machine", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "-N")
        self._run("initdb", "-D", str(self.folder / "data"), *words)

    def start(self) -> None:
        """Start the server and return when it accepts connections. It ends with the process that started it."""
        options = [
            f"-c{setting}"
            for setting in (f"unix_socket_directories={self.folder}", "listen_addresses=", *self._settings)
        ]
        data = str(self.folder / "data")
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [*self._words("--pdeathsig", "INT"), str(self._binaries / "postgres"), "-D", data, *options],
                stdout=log,
                stderr=log,
                cwd="/",
            )
        begin = time.monotonic()
        while subprocess.run([self._binaries / "pg_isready", "-q", "-h", self.folder], check=False).returncode:
            assert self._process.poll() is None, self._log.read_text()
            assert time.monotonic() - begin < LIMIT, self._log.read_text()
            time.sleep(0.02)  # the server sends no event when it is ready

    def process(self) -> psutil.Process:
        """Return the server process, whose children serve the connections."""
        assert self._process is not None
        return psutil.Process(self._process.pid)

    def stop(self) -> None:
        """Stop the server at once, as pg_ctl's immediate mode does."""
        if self._process is not None:
            self._process.send_signal(signal.SIGQUIT)
            self._process.wait(LIMIT)
            self._process = None

    def _run(self, program: str, *words: str) -> None:
        done = subprocess.run(
            [*self._words(), str(self._binaries / program), *words],
            capture_output=True,
            cwd="/",
            timeout=60,
            check=False,
        )
        assert not done.returncode, done.stderr.decode()

    @staticmethod
    def _words(*more: str) -> list[str]:
        if os.getuid() == 0:
            return ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups", *more]
        return ["setpriv", *more] if more else []


@contextmanager
def cluster(*settings: str) -> Iterator[Cluster]:
    """Yield a running server until the block ends. Skip the test where PostgreSQL is not installed."""
    binaries = programs()
    if binaries is None:
        pytest.skip("PostgreSQL is not installed here")
    pytest.importorskip("psycopg")
    folder = Path(tempfile.mkdtemp(prefix="machine-pg-"))
    server = Cluster(folder, binaries, settings)
    try:
        server.create()
        server.start()
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder)


@pytest.fixture(scope="session")
def postgresql() -> Iterator[Cluster]:
    """One server for all tests of a run; each test creates a schema of its own."""
    with cluster(*QUICK) as running:
        yield running
