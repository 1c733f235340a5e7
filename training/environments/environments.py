"""Makes the environments of training scripts: from the requirements of a script to an interpreter that has them.

The requirements are resolved to a lock with hashes, and the environment of a lock is made once and kept. Both are done
by uv in a confined process of the engine, with the network of this computer, limits of time, size and output, and none
of the secrets of the cloud apart from the credentials of the indexes.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit
from weakref import WeakValueDictionary

import trio
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from schema import ErrorKind, MachineError
from support import Worker
from support.foreign import remove
from training.engine.local import inspected_interpreter
from training.engine.port import MIB, Bounds, Engine, Order, Sink
from training.engine.usage import usage
from training.environments import requirements
from training.environments.cache import PYTHON, Cache
from training.environments.requirements import Requirements
from training.jobs.events import JobEvent, Log

MODULE: Final = "training.environments.install"
CACHE: Final = "cache"  # folder that uv uses while it makes one environment
FORMAT: Final = 1  # of environments; a change makes all of them again
CLEANUP: Final = 5.0  # seconds to remove a folder that was not finished
LIMITS: Final = Bounds(
    memory=2048 * MIB, cpu=1800, wall=1800.0, files=400_000, processes=256, lines=2000, grace=1.0, disk=20_480 * MIB
)
_SYSTEM: Final = (
    "/etc/resolv.conf",
    "/etc/hosts",
    "/etc/nsswitch.conf",
    "/etc/ssl",
    "/etc/pki",
    "/etc/ca-certificates",
)
_SETTINGS: Final = {
    "UV_NO_CONFIG": "1",
    "UV_NO_PROGRESS": "1",
    "UV_PYTHON_DOWNLOADS": "never",
    "UV_CONCURRENT_DOWNLOADS": "4",
    "UV_CONCURRENT_INSTALLS": "2",
    "TOKIO_WORKER_THREADS": "2",
    "RAYON_NUM_THREADS": "2",
    "NO_COLOR": "1",
}
_SMALLER: Final = "require fewer packages, or start machine-cloud with a larger --training-environments"
_URL: Final = re.compile(r"(?<!\w)(?P<scheme>\w++://)(?:[^\s/@]*+@)?+(?P<rest>[^\s?#]*+)(?:[?#]\S*+)?+")
_FACTS: Final = """
import importlib.metadata, json, os, platform, sys, sysconfig
version = platform.python_version()
implementation = sys.implementation
markers = {"implementation_name": implementation.name, "implementation_version": version, "os_name": os.name,
    "platform_machine": platform.machine(), "platform_release": platform.release(),
    "platform_system": platform.system(), "platform_version": platform.version(),
    "python_full_version": version, "platform_python_implementation": platform.python_implementation(),
    "python_version": ".".join(version.split(".")[:2]), "sys_platform": sys.platform}
distributions = [each for each in importlib.metadata.distributions() if each.metadata["Name"]]
installed = {each.metadata["Name"]: each.version for each in distributions}
print(json.dumps({"build": [sys.version, sysconfig.get_platform(), sys.base_prefix], "markers": markers,
    "installed": installed}))
"""


@dataclass(frozen=True, slots=True)
class EnvironmentSettings:
    """How environments are made. Without an index, none are."""

    folder: Path
    python: str  # the interpreter on which they are based
    indexes: tuple[str, ...] = ()  # URLs; the first that has a package provides it
    netrc: Path | None = None  # credentials for the indexes
    uv: str = ""  # the program
    limits: Bounds = LIMITS  # `disk` is the size of one environment, and of all that are kept

    @property
    def sources(self) -> tuple[Path, ...]:
        """Folders of indexes that are on this computer."""
        return tuple(Path(unquote(urlsplit(url).path)) for url in self.indexes if url.startswith("file:"))


@dataclass(frozen=True, slots=True)
class Environment:
    """What a script runs with. `python` is None for the interpreter of the engine."""

    python: Path | None = None
    lock: str = ""  # content of the lock, "" without requirements

    @property
    def variables(self) -> dict[str, str]:
        """Environment variables by which programs of the environment are found."""
        if self.python is None:
            return {}
        return {
            "PATH": f"{self.python.parent}:/usr/local/bin:/usr/bin:/bin",
            "VIRTUAL_ENV": str(self.python.parents[1]),
        }


def uv_program() -> str:
    """Return the real path of uv: next to this interpreter, where pip installs it, or in PATH; "" if there is none.

    Symbolic links do not exist inside.
    """
    places = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    program = shutil.which("uv", path=places)
    return str(Path(program).resolve()) if program else ""


@dataclass(slots=True)
class Environments:
    """Makes and keeps environments. One for each process."""

    engine: Engine
    settings: EnvironmentSettings
    _turns: WeakValueDictionary[str, trio.Lock] = field(default_factory=WeakValueDictionary)

    @asynccontextmanager
    async def of(self, order: Order, sink: Sink) -> AsyncIterator[Environment]:
        """Yield the environment of the order's script, which is kept until the block is left.

        MachineError says why it cannot be made; OSError if this computer does not work. Cancellation ends what runs.
        """
        assert order.program is not None
        worker = Worker(f"environment of job {order.id}")
        async with worker.opened():
            needs, remark = await worker.run(partial(requirements.requirements_of, order.program))
            if remark:
                await sink([Log(remark, "warning")])
            if needs is None:
                yield Environment()
                return
            facts = await _facts(self.settings.python)
            if not self.settings.indexes:
                _check_installed(needs, facts)
                yield Environment()
                return
            if not self.settings.uv:
                raise _failure("uv is not installed on the computer of the cloud", "install machine-runtime[scripts]")
            lock = await self._lock(order, needs, sink, worker)
            key = _key(lock, facts)
            with ExitStack() as held:
                await self._hold(held, key, lock, order, sink, worker)
                yield Environment(self.settings.folder / key / PYTHON / "bin" / "python", lock.text)

    @property
    def _most(self) -> str:
        return f"{self.settings.limits.disk // MIB} MiB"

    # ---- lock

    async def _lock(self, order: Order, needs: Requirements, sink: Sink, worker: Worker) -> Requirements:
        """Return the lock: that of the script, that of an earlier start of the same job, or a new one."""
        kept = order.folder / requirements.LOCK
        if needs.locked:
            await sink([Log(f"the versions of packages are those of {needs.file}")])
            return needs
        if await worker.run(kept.is_file):
            return _parsed(needs.file, await worker.run(kept.read_text))
        await sink([Log(f"resolving the requirements of {needs.file}")])
        async with self._folder(worker) as folder:
            work = self._order(order, folder, needs, f"--lock={folder / 'output' / requirements.LOCK}")
            await self._run(work, sink, worker, needs)
            text = await worker.run(partial(_read, work.output / requirements.LOCK))
        lock = _parsed(needs.file, text)
        await worker.run(partial(_write_whole, kept, text))
        await sink([Log(f"resolved to {' '.join(line.split(' ')[0] for line in lock.lines)}")])
        return lock

    # ---- environment

    async def _hold(
        self, held: ExitStack, key: str, lock: Requirements, order: Order, sink: Sink, worker: Worker
    ) -> None:
        """Keep the environment of a lock until `held` is closed; make it if there is none."""
        cache = Cache(self.settings.folder)
        turn = self._turns.setdefault(key, trio.Lock())
        async with turn:  # the second of two jobs waits, and uses what the first has made
            if await _kept(held, worker, partial(cache.use, key)):
                await sink([Log("using the environment that was made before from the same lock")])
                return
            begin = trio.current_time()
            async with self._folder(worker) as folder:
                made = folder / "output" / PYTHON
                work = self._order(order, folder, lock, f"--environment={made}")
                await self._run(work, sink, worker, lock)
                size = await worker.run(partial(_measured, made, self.settings.limits.files))
                if size > self.settings.limits.disk:  # it grew between two measurements of the engine
                    raise _failure(f"they need {size // MIB} MiB, more than {self._most}", _SMALLER)
                await _kept(held, worker, partial(cache.finish, made, key, lock.text, size))
        await worker.run(partial(cache.shrink, self.settings.limits.disk))
        seconds = trio.current_time() - begin
        await sink([Log(f"made an environment of {size // MIB} MiB in {seconds:.1f} s")])

    @asynccontextmanager
    async def _folder(self, worker: Worker) -> AsyncIterator[Path]:
        """Yield a folder for one run of uv, and remove it."""
        cache = Cache(self.settings.folder)
        made: list[tuple[Path, int]] = []
        try:
            await worker.run(lambda: made.append(cache.unfinished()))
            yield made[0][0]
        finally:
            with trio.move_on_after(CLEANUP, shield=True):  # what is left is removed at the next start
                await worker.run(partial(_remove, cache, made))

    # ---- uv

    def _order(self, order: Order, folder: Path, needs: Requirements, product: str) -> Order:
        settings = self.settings
        plain = Order(folder.name, folder, MODULE, ())
        file = plain.dataset / "requirements.txt"
        arguments = (
            f"--uv={settings.uv}",
            f"--requirements={file}",
            product,
            *(f"--index={url}" for url in settings.indexes),
        )
        environment = {**_SETTINGS, "UV_CACHE_DIR": str(plain.output / CACHE)}  # where it can use hard links
        if Path("/etc/ssl/certs").is_dir():
            environment["UV_SYSTEM_CERTS"] = "1"
        readable = [*map(Path, _SYSTEM), Path("/etc/resolv.conf").resolve(), Path(settings.uv)]
        if certificates := os.environ.get("SSL_CERT_FILE"):
            environment["SSL_CERT_FILE"] = certificates
            readable.append(Path(certificates))
        if settings.netrc is not None:
            environment["NETRC"] = str(plain.dataset / "netrc")
        return replace(
            plain,
            arguments=arguments,
            environment=environment,
            readable=(*readable, *settings.sources),
            online=True,
            lock=order.lock,
            bounds=settings.limits,
        )

    async def _run(self, work: Order, sink: Sink, worker: Worker, needs: Requirements) -> None:
        """Run uv. MachineError with the reason if it fails."""
        base = await inspected_interpreter(self.settings.python)
        arguments = (f"--python={base.program}", *work.arguments)
        work = replace(work, arguments=arguments, readable=(*base.folders, *work.readable))
        await worker.run(partial(self._write, work, needs.text))
        last: list[str] = []

        async def shown(events: Sequence[JobEvent]) -> None:
            lines = [Log(redacted(event.message), event.level) for event in events if isinstance(event, Log)]
            last[:] = [*last, *(line.message for line in lines)][-20:]
            await sink(lines)

        outcome = await self.engine.run(work, shown)
        if outcome.reason:
            reason = _reason(outcome.reason, last)
            raise _failure(reason, _SMALLER if "MiB" in outcome.reason else f"correct {needs.file}")

    def _write(self, work: Order, text: str) -> None:
        """Write the files for uv, which runs as another user: the folder around them is closed to other programs."""
        work.dataset.mkdir()
        work.dataset.chmod(0o755)
        files = {"requirements.txt": text.encode()}
        if self.settings.netrc is not None:
            files["netrc"] = self.settings.netrc.read_bytes()
        for name, content in files.items():
            (work.dataset / name).write_bytes(content)
            (work.dataset / name).chmod(0o644)


def redacted(line: str) -> str:
    """Return a line without what can be secret in its URLs: users, passwords, queries."""
    return _URL.sub(r"\g<scheme>\g<rest>", line)


def _reason(reason: str, lines: Sequence[str]) -> str:
    """Return why uv failed: what it said, or the limit that it exceeded."""
    said = [line.strip(" \u2500-\u259f") for line in lines]  # without frames
    errors = [number for number, line in enumerate(said) if re.match(r"(error:|×|No solution)", line)]
    if "its log says why" in reason and errors:
        return " ".join(filter(None, said[errors[-1] :])).removeprefix("error: ").removeprefix("× ")[:600]
    return reason.replace("the program", "uv")


def _failure(reason: str, remedy: str) -> MachineError:
    return MachineError(
        f"the requirements of the script could not be installed: {reason}",
        kind=ErrorKind.PRECONDITION,
        remedy=remedy,
    )


def _parsed(file: str, text: str) -> Requirements:
    """Return the lock that was made for a file of the script, which errors name."""
    return Requirements(file, requirements.parse_lock(requirements.LOCK, text), locked=True)


def _write_whole(path: Path, text: str) -> None:
    """Write a file completely or not at all."""
    part = path.with_suffix(".part")
    part.write_text(text, encoding="utf-8")
    part.rename(path)


def _read(path: Path) -> str:
    with path.open(encoding="utf-8") as file:
        return file.read(requirements.MAX_LOCK)


def _measured(made: Path, most: int) -> int:
    """Return the bytes of an environment. uv's cache is removed before, which has other names of its files."""
    remove(made.parent / CACHE)
    return usage([made], most)[0]


def _remove(cache: Cache, made: Sequence[tuple[Path, int]]) -> None:
    for folder, held in made:
        cache.remove(folder, held)


async def _kept(held: ExitStack, worker: Worker, hold: Callable[[], int | None]) -> bool:
    """Let `held` close the descriptor that `hold` opens in the worker; return whether there is one."""
    opened: list[int] = []
    complete = False
    try:
        await worker.run(lambda: opened.extend(each for each in (hold(),) if each is not None))
        complete = True
    finally:
        if not complete:  # cancelled: the worker may still be opening it, and does one thing after the other
            with trio.move_on_after(CLEANUP, shield=True):
                await worker.run(partial(_close, opened))
    for descriptor in opened:
        held.callback(os.close, descriptor)
    return bool(opened)


def _close(opened: list[int]) -> None:
    while opened:
        os.close(opened.pop())


# ---- the interpreter


async def _facts(python: str) -> dict[str, Any]:
    """Return the build of the base interpreter, its values of markers, and what is installed in it."""
    try:
        done = await trio.run_process([python, "-I", "-c", _FACTS], capture_stdout=True, capture_stderr=True, env={})
        facts: dict[str, Any] = json.loads(done.stdout)
    except (OSError, ValueError, subprocess.CalledProcessError) as error:
        raise MachineError(
            f"the Python interpreter {python} cannot be run: {error}",
            kind=ErrorKind.PRECONDITION,
            remedy="correct --training-python",
        ) from error
    return facts


def _key(lock: Requirements, facts: dict[str, Any]) -> str:
    content = json.dumps([FORMAT, lock.lines, facts["build"]])
    return hashlib.sha256(content.encode()).hexdigest()[:40]


def _check_installed(needs: Requirements, facts: dict[str, Any]) -> None:
    """MachineError unless the interpreter has everything that the requirements name."""
    installed = {canonicalize_name(name): version for name, version in facts["installed"].items()}
    for line in needs.lines:
        text = line.partition(" --hash")[0]
        requirement = Requirement(text)
        version = installed.get(canonicalize_name(requirement.name))
        if not _is_met(requirement, version, facts["markers"]):
            has = f"has {version}" if version else "does not have it"
            raise MachineError(
                f"the script requires {text} ({needs.file}), and the interpreter of this cloud {has}",
                kind=ErrorKind.PRECONDITION,
                remedy="install it there, or start machine-cloud with --training-index URL to install requirements",
            )


def _is_met(requirement: Requirement, version: str | None, markers: dict[str, str]) -> bool:
    try:
        if requirement.marker is not None and not requirement.marker.evaluate({**markers, "extra": ""}):
            return True
        return version is not None and requirement.specifier.contains(version, prereleases=True)
    except (ValueError, RecursionError):  # a marker that compares what cannot be compared, or a version in an old form
        return False
