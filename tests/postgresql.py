"""A PostgreSQL of one's own: a throw-away cluster behind a Unix socket, for tests and benchmarks."""

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

LIMIT = 30.0  # seconds for a start
QUICK = ("fsync=off", "full_page_writes=off")
"""For tests in which nobody cuts the power. What is committed survives `Cluster.stop`: synchronous_commit stays on."""
_numbers = count(1)


def programs() -> Path | None:
    """The folder of initdb and postgres: where Debian puts them, or where PATH says; None without PostgreSQL."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: float(path.parts[4]))
    if found:
        return found[-1].parent
    other = shutil.which("initdb")
    return Path(other).parent if other is not None else None


class Cluster:
    """One running server. Root does not run it: then it is nobody's."""

    def __init__(self, folder: Path, binaries: Path, settings: Sequence[str]) -> None:
        self.folder = folder
        self._binaries = binaries
        self._settings = settings
        self._log = folder / "log"
        self._process: subprocess.Popen[bytes] | None = None

    def url(self, schema: str = "", database: str = "postgres") -> str:
        """How a client connects; `schema` is where it finds and makes tables."""
        path = f"&options=-csearch_path%3D{schema}" if schema else ""
        return f"postgresql://machine@/{database}?host={self.folder}{path}"

    def fresh(self) -> str:
        """The address of a new, empty schema."""
        name = f"cloud_{next(_numbers)}"
        self.execute(f"CREATE SCHEMA {name}")
        return self.url(name)

    def execute(self, statement: str) -> None:
        """Carry out a statement as whoever may do everything."""
        import psycopg

        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute(statement)

    def create(self) -> None:
        """Make its files."""
        if os.getuid() == 0:
            shutil.chown(self.folder, "nobody", "nogroup")
        words = ("-U", "machine", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "-N")
        self._run("initdb", "-D", str(self.folder / "data"), *words)

    def start(self) -> None:
        """Return when it answers. It ends with the process that started it."""
        options = [
            f"-c{one}" for one in (f"unix_socket_directories={self.folder}", "listen_addresses=", *self._settings)
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
            time.sleep(0.02)  # it tells nobody when it is ready

    def process(self) -> psutil.Process:
        """The server, whose children serve the connections."""
        assert self._process is not None
        return psutil.Process(self._process.pid)

    def stop(self) -> None:
        """End it at once, as pg_ctl's immediate mode does."""
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
    """A running server until the context is left; skips the test that asks for one where there is no PostgreSQL."""
    binaries = programs()
    if binaries is None:
        pytest.skip("PostgreSQL is not installed here")
    pytest.importorskip("psycopg")
    folder = Path(tempfile.mkdtemp(prefix="machine-pg-"))
    made = Cluster(folder, binaries, settings)
    try:
        made.create()
        made.start()
        yield made
    finally:
        made.stop()
        shutil.rmtree(folder)


@pytest.fixture(scope="session")
def postgresql() -> Iterator[Cluster]:
    """One server for all tests of a run; each makes a schema of its own in it."""
    with cluster(*QUICK) as running:
        yield running
