"""The engine that runs programs on this computer: a confined process for each job."""

from __future__ import annotations

import json
import os
import secrets
import socket
import subprocess
import sys
import zlib
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import trio

from nursery_graph import ProcessGroup, process_group
from schema import ErrorKind, MachineError
from support import Worker
from support.foreign import remove
from telemetry.logs import Lines
from training.engine import disk
from training.engine.groups import Groups, Used, used
from training.engine.lock import share
from training.engine.network import network_of
from training.engine.port import CLOUD, MIB, Bounds, Order, RunOutcome, Sink
from training.engine.reasons import CPU, Reasons
from training.engine.usage import UnmeasuredError, memory, usage
from training.jobs.events import Log, of_line

ROOT: Final = Path(__file__).resolve().parents[2]  # folder of the packages
OWN: Final = ("training", "schema", "support")  # packages that programs of this project import
USERS: Final = range(1_500_000_000, 1_600_000_000)  # user ids of jobs, if the engine runs as root: a job, a user
WATCH: Final = 2.0  # seconds between two measurements of disk and memory: no event says that they fill
LIFE: Final = 5.0  # seconds between two signs of life of the engine
SILENCE: Final = 45.0  # seconds without one until the program is killed; leases of jobs last longer
DRAIN: Final = 10.0  # seconds to read the last output, after the program has ended
SAVING: Final = 60.0  # seconds between two copies of the checkpoints that are on a disk of their own
KEEPING: Final = 120.0  # seconds to copy what must survive from there, after the program has ended
PIECE: Final = 64 * 1024
REMOVAL: Final = 1.0  # seconds to remove a folder of an earlier start: it may have millions of files
SLICE: Final = 100  # lines that are passed on at once
_EARLIER: Final = ".earlier-"
_PROGRAM: Final = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from training.engine.sandbox import main; main()"


@dataclass(frozen=True, slots=True)
class Interpreter:
    """A Python interpreter, and the folders that it needs."""

    program: str
    folders: tuple[Path, ...]


class LocalEngine:
    """Runs programs on this computer; see training.engine.port.

    With `isolate`, each program has its own namespaces, which `probe` tries. Without, it is confined by limits only:
    enough for the programs of this project, not for programs of others. With `groups`, each job has a control group,
    which limits the memory of all its processes together; otherwise that is measured now and then.
    """

    def __init__(self, *, isolate: bool = True, python: str = "", groups: Groups | None = None) -> None:
        self._isolate = isolate
        self._groups = groups
        self._python = python
        self._own = _interpreter(sys.executable, [sys.prefix, sys.base_prefix])

    async def run(self, order: Order, sink: Sink) -> RunOutcome:
        """Run the program until it ends, and return how. MachineError or OSError if no process can be started."""
        own = order.program is None
        if not own and not self._isolate:
            raise MachineError("foreign programs need isolation", kind=ErrorKind.PRECONDITION)
        if order.online and not own:
            raise MachineError("foreign programs cannot use the network", kind=ErrorKind.PRECONDITION)
        interpreter = self._own if own else _inside(await inspected_interpreter(self._python), order.python)
        plan_file = order.folder / "plan.json"  # as an argument, it could be too long
        worker = Worker(f"folders of job {order.id}")
        with ExitStack() as held:
            lock = None
            if order.lock is not None:
                lock = share(order.lock)
                held.callback(os.close, lock)
            ours, theirs = (held.enter_context(end) for end in socket.socketpair())
            network = theirs.fileno() if order.connect is not None and self._isolate else None
            inherited = {"lock": lock, "network": network}
            plan = {
                **plan_of(order, interpreter, isolate=self._isolate),
                **inherited,
                "silence": SILENCE,
                "grace": order.bounds.grace,
                "cloud": CLOUD,
            }
            descriptors = tuple(value for value in inherited.values() if value is not None)
            async with worker.opened(), self._group_of(order, worker) as group:
                plan |= {"group": str(group / "cgroup.procs") if group is not None else None}
                plan["limits"] = limits_of(order.bounds, isolate=self._isolate, grouped=group is not None)
                if not own:
                    plan["disk"] = _disk_of(order)
                    plan["uncounted"] = group is not None
                    plan["limits"]["RLIMIT_FSIZE"] = plan["disk"]["size"]
                await worker.run(partial(_prepare, order))
                await worker.run(partial(plan_file.write_text, json.dumps(plan)))
                return await self._confined(order, sink, plan_file, descriptors, ours, group)

    @asynccontextmanager
    async def _group_of(self, order: Order, worker: Worker) -> AsyncIterator[Path | None]:
        """Provide a control group for a job; None if this engine has none."""
        if self._groups is None:
            yield None
            return
        try:
            group = await worker.run(partial(self._groups.make, order.id, order.bounds))
        except OSError as error:
            raise MachineError(f"no control group can be made: {error}", kind=ErrorKind.UNAVAILABLE) from error
        try:
            yield group
        finally:
            with trio.move_on_after(DRAIN, shield=True):
                await worker.run(partial(self._groups.remove, group))

    async def _confined(
        self,
        order: Order,
        sink: Sink,
        plan_file: Path,
        inherited: tuple[int, ...],
        network: socket.socket,
        control_group: Path | None,
    ) -> RunOutcome:
        command = [sys.executable, "-I", "-S", "-c", _PROGRAM, str(plan_file)]
        options: dict[str, Any] = {
            "pass_fds": inherited,
            "stdin": subprocess.PIPE,
            "stdout": subprocess.PIPE,
            "stderr": subprocess.STDOUT,
            "env": {},
            "cwd": "/",
            "grace": order.bounds.grace + (KEEPING if order.program is not None else 0.0),
            "session": True,
        }
        try:
            async with process_group(command, **options) as group:
                return await _Run(order, sink, group, network, control_group).outcome()
        except OSError as error:
            raise MachineError(f"no process can be started: {error}", kind=ErrorKind.UNAVAILABLE) from error

    async def probe(self, folder: Path) -> str:
        """Return why programs cannot be isolated here; empty if they can. `folder` is used for a moment."""
        lines: list[str] = []

        async def sink(events: Any) -> None:
            lines.extend(getattr(event, "message", "") for event in events)

        try:
            order = Order(folder.name.strip("."), folder, "this", (), bounds=Bounds(wall=30.0))
            order.dataset.mkdir(parents=True, exist_ok=True)
            outcome = await self.run(order, sink)
        except (MachineError, OSError) as error:
            return str(error)
        finally:
            remove(folder)
        return f"{outcome.reason}: {lines[-1] if lines else ''}" if outcome.reason else ""


def _interpreter(program: str, prefixes: list[str]) -> Interpreter:
    """Return an interpreter by its real path: symbolic links to its environment do not exist inside."""
    name = Path(program).name
    environment = Path(prefixes[0]).resolve()
    inside = environment / "bin" / name
    folders = dict.fromkeys(Path(prefix).resolve() for prefix in prefixes)
    return Interpreter(str(inside if inside.exists() else Path(program).resolve()), tuple(folders))


def _inside(interpreter: Interpreter, python: Path | None) -> Interpreter:
    """Return the interpreter of an environment that is based on `interpreter`.

    It is never started outside to ask for its folders: a package can have code that runs with every start (.pth).
    """
    if python is None:
        return interpreter
    return Interpreter(str(python), (python.parents[1], *interpreter.folders))


async def inspected_interpreter(program: str) -> Interpreter:
    """Return the interpreter at a path; PRECONDITION if it cannot be run."""
    code = "import json, sys; print(json.dumps([sys.prefix, sys.base_prefix]))"
    try:
        done = await trio.run_process([program, "-I", "-c", code], capture_stdout=True, capture_stderr=True, env={})
        return _interpreter(program, json.loads(done.stdout))
    except (OSError, ValueError, subprocess.CalledProcessError) as error:
        raise MachineError(
            f"the Python interpreter {program} cannot be run: {error}",
            kind=ErrorKind.PRECONDITION,
            remedy="correct --training-python",
        ) from error


def _temporary(order: Order) -> Path:
    return order.folder / "tmp"


def _disk_of(order: Order) -> dict[str, Any]:
    return {
        "at": str(_temporary(order)),  # in the namespace of the program only
        "size": order.bounds.own_disk,
        "entries": order.bounds.files,
        "output": str(order.output),
        "checkpoints": str(order.checkpoints),
        "temporary": str(_temporary(order)),
        "seconds": SAVING,
    }


def _root(order: Order) -> Path:
    return order.folder / "root"


def _prepare(order: Order) -> None:
    """Make the folders of a job. Only checkpoints survive a restart."""
    for folder in (order.output, _temporary(order), _root(order)):
        if os.path.lexists(folder):
            folder.rename(order.folder / f"{_EARLIER}{secrets.token_hex(8)}")
    for folder in order.folder.glob(f"{_EARLIER}*"):
        remove(folder, seconds=REMOVAL)  # what is left disappears with the folder of the job
    for folder in (order.output, order.checkpoints, _temporary(order), _root(order)):
        folder.mkdir(mode=0o700, exist_ok=True)


def user_of(job: str) -> int:
    """Return the user id of a job: the same after a restart, so that its files stay its own."""
    return USERS[zlib.crc32(job.encode()) % len(USERS)]


def limits_of(bounds: Bounds, *, isolate: bool, grouped: bool) -> dict[str, int]:
    """Return the limits of each process."""
    limits = {
        "RLIMIT_CPU": bounds.cpu,
        "RLIMIT_FSIZE": bounds.disk,
        "RLIMIT_CORE": 0,
        "RLIMIT_NOFILE": 1024,
    }
    if not grouped:  # a control group counts memory and processes exactly
        limits["RLIMIT_DATA"] = bounds.memory  # not RLIMIT_AS, which also counts what is only reserved
        if bounds.address_space is not None:
            limits["RLIMIT_AS"] = bounds.address_space
        if isolate:  # the limit counts all processes of a user, who is the engine's own user otherwise
            limits["RLIMIT_NPROC"] = bounds.processes
    return limits


def plan_of(order: Order, interpreter: Interpreter, *, isolate: bool) -> dict[str, Any]:
    """Return what the sandbox reads, without limits and inherited descriptors."""
    program = order.program or ROOT
    packages = [ROOT / name for name in OWN] if order.program is None else [order.program]
    temporary = str(_temporary(order))
    environment = {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "HOME": temporary,
        "TMPDIR": temporary,
        "LANG": "C.UTF-8",
        "PYTHONPATH": str(program),
        "PYTHONUNBUFFERED": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "TRAINING_CHECKPOINTS": str(order.checkpoints),
        **order.environment,
    }
    return {
        "isolate": isolate,
        "online": order.online,
        "disk": None,
        "uncounted": True,
        "user": user_of(order.id) if isolate and os.geteuid() == 0 else None,
        "root": str(_root(order)),
        "folder": str(order.dataset),
        "temporary": temporary,
        "readable": [str(path) for path in (*interpreter.folders, *packages, order.dataset, *order.readable)],
        "writable": [str(order.output), str(order.checkpoints), temporary],
        "environment": environment,
        "command": [interpreter.program, "-m", order.module, *order.arguments],
    }


class _Run:
    """One run of a program, until it ends or exceeds a limit."""

    def __init__(
        self, order: Order, sink: Sink, group: ProcessGroup, network: socket.socket, control_group: Path | None
    ) -> None:
        self._network = network
        self._control_group = control_group
        self._order = order
        self._sink = sink
        self._group = group
        self._exceeded = ""  # the limit that ended it
        self._reasons = Reasons(order.bounds, own_disk=order.program is not None)
        self._scope = trio.CancelScope()

    async def outcome(self) -> RunOutcome:
        """Run until the program ends or a limit ends it; the caller's process group ends the processes."""
        bounds, status = self._order.bounds, 0
        self._scope.deadline = trio.current_time() + bounds.wall
        read_all = trio.Event()
        with self._scope:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._read, read_all)
                nursery.start_soon(self._watch)
                nursery.start_soon(self._show_life)
                if self._order.connect is not None:
                    nursery.start_soon(network_of, self._network, self._order.connect)
                status = await self._group.wait()
                with trio.move_on_after(DRAIN):
                    await read_all.wait()
                nursery.cancel_scope.cancel()
        consumed = Used() if self._control_group is None else used(self._control_group)
        if consumed.cpu:
            text = f"used {consumed.cpu:.1f} s of processor time, and at most {consumed.memory / MIB:.0f} MiB of memory"
            await self._sink([Log(text)])
        if self._exceeded:
            return RunOutcome(self._exceeded)
        if self._scope.cancelled_caught:
            return RunOutcome(f"the program took longer than {bounds.wall:g} s")
        return RunOutcome(self._reasons.of(status, consumed))

    def _exceed(self, reason: str) -> None:
        self._exceeded = self._exceeded or reason
        self._scope.cancel()

    async def _read(self, read_all: trio.Event) -> None:
        """Pass on the output, no faster than the rate: a program that prints faster waits."""
        stdout, lines, bounds = self._group.process.stdout, Lines(), self._order.bounds
        assert stdout is not None
        left = bounds.lines
        while left >= 0:
            with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
                data = await stdout.receive_some(PIECE)
                batch = lines.feed(bytes(data)) if data else lines.rest()
                for start in range(0, len(batch), SLICE):
                    part = batch[start : start + min(SLICE, left)]
                    await self._pass_on(part)
                    left -= len(batch[start : start + SLICE])
                    if left < 0:
                        break
                    await trio.sleep(len(part) / bounds.rate)
                if data:
                    continue
            read_all.set()
            return
        self._exceed(f"the program printed more than {bounds.lines} lines")

    async def _pass_on(self, lines: list[str]) -> None:
        self._reasons.read(lines)
        if lines:
            await self._sink([of_line(line) for line in lines])

    async def _show_life(self) -> None:
        """Write to the process around the program, which ends it when nothing arrives."""
        stdin = self._group.process.stdin
        assert stdin is not None
        while True:
            with suppress(trio.BrokenResourceError):  # it has just ended
                await stdin.send_all(b".")
            await trio.sleep(LIFE)

    async def _watch(self) -> None:
        """Compare what the whole job uses with the limits that the kernel checks for each process or not at all."""
        bounds = self._order.bounds
        worker = Worker(f"measurements of job {self._order.id}")
        async with worker.opened():
            while True:
                if self._order.program is None:
                    await self._measure(worker)
                if self._control_group is not None:
                    if used(self._control_group).cpu > bounds.cpu:
                        self._exceed(CPU.format(cpu=bounds.cpu))
                elif await worker.run(self._memory) > bounds.memory:
                    self._exceed(f"the processes of the program used more than {bounds.memory // 1024**2} MiB together")
                await trio.sleep(WATCH)

    async def _measure(self, worker: Worker) -> None:
        """Compare the folders of a program that has no disk of its own with the limits."""
        order, bounds = self._order, self._order.bounds
        try:
            size, entries = await worker.run(
                partial(usage, (order.output, order.checkpoints, _temporary(order)), bounds.files)
            )
        except UnmeasuredError as error:
            self._exceed(f"the files of the program cannot be measured: {error}")
            return
        if size > bounds.disk:
            self._exceed(f"the program wrote more than {bounds.disk // 1024**2} MiB")
        if entries > bounds.files:
            self._exceed(f"the program made more than {bounds.files} files")

    def _memory(self) -> int:
        """Return what the processes of the program use, with the disk of its own, which is memory."""
        return memory(self._group.pid) + disk.used(self._group.pid, _temporary(self._order))
