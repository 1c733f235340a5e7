"""The engine that runs programs on a Ray cluster.

The folder of a job is on a disk that the cloud and all nodes see under the same path. Each start of a job there is an
attempt with a separate folder, and a submission to Ray whose id is that of the job and the number of the attempt:

* `ray_node.py` runs on the node, and the training program below it.
* This engine rewrites `alive` while it wants the attempt to run. Ray cannot be relied on for that: a job whose node has
  lost its network is FAILED for Ray while its program still runs, and a killed cloud leaves its jobs running.
* `ended` proves that an attempt has ended. Without it, an attempt counts as ended when `alive` has not changed for
  SILENCE and MARGIN. Only then is there another attempt, which begins with a copy of the last checkpoints, so that not
  even a node that was suspended meanwhile can disturb it.

Nothing says that a file on another computer has changed, so this engine looks once in LOOK seconds.
"""

from __future__ import annotations

import errno
import json
import math
import os
import shlex
import shutil
import stat
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Final

import trio

from schema import ErrorKind, MachineError
from support import Worker
from support.foreign import remove, walk
from telemetry.logs import Lines
from training.engine.groups import Used
from training.engine.local import LIFE, OWN, PIECE, ROOT, SILENCE, SLICE, WATCH, Interpreter, limits_of, plan_of
from training.engine.port import MIB, Order, RunOutcome, Sink
from training.engine.ray_client import TERMINAL, Placement, RayJobs, Submission
from training.engine.ray_node import LOOK, STOP
from training.engine.reasons import Reasons
from training.engine.usage import usage
from training.jobs.events import Log, of_line

ATTEMPTS: Final = "attempts"
CODE: Final = "code"  # the programs of this project, for nodes
NODE: Final = Path(__file__).with_name("ray_node.py")
NOTES: Final = ("NOTICE", "LICENSE")  # files next to weights that belong to models


@dataclass(frozen=True, slots=True)
class Times:
    """Times in seconds."""

    look: float = 1.0  # between two looks at the files of an attempt
    ask: float = 5.0  # between two questions about the state of a submission
    life: float = LIFE  # between two signs of life
    silence: float = SILENCE  # without one until the program is killed
    margin: float = 15.0  # until that is certain, with different clocks and cached attributes of files
    settle: float = 10.0  # from the end of a submission to that of its attempt, which the node writes
    pending: float = 1800.0  # until a submission that no node can run is given up
    reach: float = 600.0  # until a cluster that does not answer is given up


@dataclass(frozen=True, slots=True)
class Cluster:
    """How jobs run on a cluster."""

    python: str = "python3"  # the interpreter on the nodes
    placement: Placement = field(default_factory=Placement)
    scripts: bool = False  # run programs of tenants too, which the nodes do not isolate
    losses: int = 3  # nodes that one run of a job may lose
    times: Times = field(default_factory=Times)


class RayEngine:
    """Runs programs on a Ray cluster; see training.engine.port."""

    def __init__(self, jobs: RayJobs, cluster: Cluster) -> None:
        self._jobs = jobs
        self._cluster = cluster

    async def run(self, order: Order, sink: Sink) -> RunOutcome:
        """Run the program until it ends, and return how.

        MachineError if the cluster refuses the job or cannot be reached for a long time.
        """
        if order.program is not None and not self._cluster.scripts:
            raise MachineError("foreign programs need isolation", kind=ErrorKind.PRECONDITION)
        worker = Worker(f"files of job {order.id}")
        bounds = replace(order.bounds, memory=self._cluster.placement.memory or order.bounds.memory)
        order = replace(order, bounds=bounds)
        async with worker.opened():
            await self._end_earlier(order, worker, sink)
            with trio.move_on_after(bounds.wall):
                lost = ""
                for loss in range(self._cluster.losses + 1):
                    if loss:
                        text = f"the job has lost its node: it starts again from its last checkpoint ({lost})"
                        await sink([Log(text, "warning")])
                    attempt = _Attempt(self._jobs, self._cluster, order, sink, worker)
                    outcome = await attempt.run()
                    if outcome is not None:
                        return outcome
                    lost = attempt.lost
                return RunOutcome(f"the job has lost its node {self._cluster.losses + 1} times, at last: {lost}")
            await self._end_earlier(order, worker, sink)
            return RunOutcome(f"the program took longer than {bounds.wall:g} s")

    async def _end_earlier(self, order: Order, worker: Worker, sink: Sink) -> None:
        """Wait until nothing of earlier attempts runs any more: those of a cloud that was killed, for example."""
        for folder in await worker.run(partial(attempts, order.folder)):
            if not await worker.run(partial(has_ended, folder)):
                await sink([Log(f"ending the earlier attempt {folder.name} of this job")])
                await end_attempt(folder, submission_of(order, folder), self._jobs, self._cluster.times, worker)


class _Attempt:
    """One attempt to run a job."""

    def __init__(self, jobs: RayJobs, cluster: Cluster, order: Order, sink: Sink, worker: Worker) -> None:
        self._jobs = jobs
        self._cluster = cluster
        self._times = cluster.times
        self._order = order
        self._sink = sink
        self._worker = worker
        self._reasons = Reasons(order.bounds, "install it for the interpreter of the nodes, see --ray-python")
        self._lines = Lines()
        self._left = order.bounds.lines
        self._offset = 0  # in the log
        self._exceeded = ""
        self._scope = trio.CancelScope()
        self._folder = order.folder
        self.lost = ""  # why the attempt has ended without `ended`

    async def run(self) -> RunOutcome | None:
        """Run the program once; None if the node was lost, and nothing runs there any more."""
        self._folder = await self._worker.run(partial(_new_attempt, self._order, self._cluster))
        submission = submission_of(self._order, self._folder)
        entrypoint = f"exec {shlex.join([self._cluster.python, str(self._folder / NODE.name), str(self._folder)])}"
        ended: int | None = None
        try:
            await self._submit(submission, entrypoint)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._show_life)
                nursery.start_soon(self._watch)
                with self._scope:
                    ended = await self._until_end(submission)
                nursery.cancel_scope.cancel()
        except ExceptionGroup as group:
            if (failures := group.subgroup(OSError)) is None:
                raise
            reason = str(failures.exceptions[0])
            raise MachineError(f"the shared folder cannot be used: {reason}", kind=ErrorKind.UNAVAILABLE) from group
        finally:
            if ended is None:
                with trio.move_on_after(self._order.bounds.grace + self._times.settle + 3 * LOOK, shield=True):
                    await self._ask_to_end(submission)
        if self._exceeded:
            await end_attempt(self._folder, submission, self._jobs, self._times, self._worker)
            return RunOutcome(self._exceeded)
        if ended is None:
            await end_attempt(self._folder, submission, self._jobs, self._times, self._worker)
            return None
        await self._worker.run(partial(_collect, self._folder, self._order))
        reason, node = self._reasons.of(ended, Used()), await self._worker.run(self._node)
        return RunOutcome(reason and f"{reason} (on the node {node or 'without a name'})")

    def _node(self) -> str:
        """Return the name of the node that has started the program; "" if none has. Blocking."""
        name = _read(self._folder / "started", 0)[:64].decode(errors="replace")
        return "".join(char if char.isprintable() else "?" for char in name)

    async def _ask_to_end(self, submission: str) -> None:
        """Ask the program to end, and wait until it has ended, as long as the caller allows."""
        await self._worker.run(partial(say, self._folder, STOP))
        while not await self._worker.run(partial(has_ended, self._folder)):  # noqa: ASYNC110 - see the module
            await trio.sleep(self._times.look / 4)
        with suppress(MachineError):
            await self._jobs.stop(submission)

    async def _submit(self, submission: str, entrypoint: str) -> None:
        """Submit the attempt; wait for a cluster that does not answer."""
        until = trio.current_time() + self._times.reach
        unclear = False  # whether an earlier call may have started it
        while True:
            try:
                return await self._jobs.submit(submission, entrypoint, self._cluster.placement)
            except MachineError as error:
                refused = error.kind is not ErrorKind.UNAVAILABLE
                if refused and not unclear:
                    await self._worker.run(partial(_note_end, self._folder))
                if refused or trio.current_time() > until:
                    raise
                unclear = True
                await self._sink([Log(str(error), "warning")])
            await trio.sleep(self._times.ask)

    # ---- what happens meanwhile

    async def _until_end(self, submission: str) -> int | None:
        """Pass on the output until the program has ended; return its status, None if its node was lost."""
        begin = asked = trio.current_time()
        gone = math.inf  # when the submission had ended
        while True:
            ended = await self._worker.run(partial(read_end, self._folder))
            more = await self._pass_on()
            if ended is not None:
                while await self._pass_on():
                    pass
                await self._report(self._lines.rest())
                if ended < 0:  # only the process around the program, or the kernel, kills like this
                    self.lost = f"the process around the program was killed by signal {-ended}"
                    return None
                return ended
            now = trio.current_time()
            if now - gone > self._times.settle and not await self._worker.run(partial(has_ended, self._folder)):
                return None
            if now - asked >= self._times.ask and gone == math.inf:
                asked = now
                answers, state = await self._state(submission)
                if answers and (state is None or state.status in TERMINAL):
                    gone = now
                    self.lost = _loss(state)
                    if state is not None and state.exit_code > 0 and not await self._worker.run(self._node):
                        await self._worker.run(partial(_note_end, self._folder))  # nothing has begun
                        self._exceed(
                            f"the node {state.node} could not start the program: {self._order.folder.parent} must be "
                            f"the same folder on all nodes, and {self._cluster.python} an interpreter there "
                            f"({self.lost})"
                        )
                elif answers and state is not None and state.status == "PENDING" and now - begin > self._times.pending:
                    self._exceed(
                        f"no node of the Ray cluster has run the job within {self._times.pending:g} s: it needs "
                        f"{self._cluster.placement} on one node, see --ray-resources"
                    )
            await trio.sleep(0 if more else self._times.look)

    async def _state(self, submission: str) -> tuple[bool, Submission | None]:
        """Return whether the cluster answers, and what it says. Without an answer, the files say what happens."""
        try:
            return True, await self._jobs.state(submission)
        except MachineError:
            return False, None

    async def _pass_on(self) -> bool:
        """Pass on new output, no faster than the rate; return whether there may be more."""
        data = await self._worker.run(partial(_read, self._folder / "log", self._offset))
        self._offset += len(data)
        await self._report(self._lines.feed(data))
        return len(data) == PIECE

    async def _report(self, lines: Sequence[str]) -> None:
        for start in range(0, len(lines), SLICE):
            part = lines[start : start + min(SLICE, max(0, self._left))]
            self._reasons.read(part)
            if part:
                await self._sink([of_line(line) for line in part])
            self._left -= len(lines[start : start + SLICE])
            if self._left < 0:
                self._exceed(f"the program printed more than {self._order.bounds.lines} lines")
            await trio.sleep(len(part) / self._order.bounds.rate)

    def _exceed(self, reason: str) -> None:
        self._exceeded = self._exceeded or reason
        self._scope.cancel()

    async def _show_life(self) -> None:
        number = 0
        while True:
            number += 1
            await self._worker.run(partial(say, self._folder, f"run {number}"))
            await trio.sleep(self._times.life)

    async def _watch(self) -> None:
        """Compare the content of the folders with the limits."""
        bounds, folders = self._order.bounds, [self._folder / name for name in _WRITTEN]
        while True:
            size, entries = await self._worker.run(partial(usage, folders, bounds.files))
            if size > bounds.disk:
                self._exceed(f"the program wrote more than {bounds.disk // MIB} MiB")
            if entries > bounds.files:
                self._exceed(f"the program made more than {bounds.files} files")
            await trio.sleep(WATCH)


def _loss(state: Submission | None) -> str:
    if state is None:
        return "the Ray cluster does not know it any more"
    return f"Ray says {state.status}: {state.message}" if state.message else f"Ray says {state.status}"


async def end_attempt(folder: Path, submission: str, jobs: RayJobs, times: Times, worker: Worker) -> None:
    """Return when nothing of an attempt runs any more: it says so itself, or had no sign of life for long enough."""
    await worker.run(partial(say, folder, STOP))
    until = trio.current_time() + times.silence + times.margin
    with suppress(MachineError):  # what it still runs there ends without a sign of life
        await jobs.stop(submission)
    while trio.current_time() < until and not await worker.run(partial(has_ended, folder)):  # noqa: ASYNC110
        await trio.sleep(times.look / 4)
    await worker.run(partial(_note_end, folder))


# ---- files


_WRITTEN: Final = ("output", "checkpoints", "tmp")
_SAFE: Final = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # a program on a node can replace files by links and pipes


def submission_of(order: Order, folder: Path) -> str:
    """Return the id of the submission of an attempt."""
    return f"{order.id}-{folder.name}"


def attempts(folder: Path) -> list[Path]:
    """Return the folders of attempts of a job, oldest first."""
    try:
        names = [name for name in os.listdir(folder / ATTEMPTS) if name.isdigit()]
    except FileNotFoundError:
        return []
    return [folder / ATTEMPTS / name for name in sorted(names, key=int)]


def say(folder: Path, text: str) -> None:
    """Rewrite `alive` in place: readers see the old or the new content."""
    descriptor = os.open(folder / "alive", os.O_WRONLY | os.O_CREAT | _SAFE, 0o600)
    try:
        os.pwrite(descriptor, f"{text:<15}\n".encode(), 0)
    finally:
        os.close(descriptor)


def has_ended(folder: Path) -> bool:
    """Return whether an attempt has ended."""
    return read_end(folder) is not None


def read_end(folder: Path) -> int | None:
    """Return the exit status of an attempt; None while it may run."""
    try:
        content = _read(folder / "ended", 0)
        return int(json.loads(content)["status"]) if content else None
    except (ValueError, KeyError, TypeError):
        return 1  # only this project writes the file, but as the user of the training program


def _note_end(folder: Path) -> None:
    if not has_ended(folder):
        (folder / "ended").write_text('{"status": 137}')


def _read(path: Path, offset: int) -> bytes:
    """Return a piece of a file; nothing if there is none, or something else that a program has put there."""
    try:
        descriptor = os.open(path, os.O_RDONLY | _SAFE)
    except (FileNotFoundError, NotADirectoryError):
        return b""
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO):  # a link, a socket
            return b""
        raise
    try:
        return os.pread(descriptor, PIECE, offset) if stat.S_ISREG(os.fstat(descriptor).st_mode) else b""
    finally:
        os.close(descriptor)


def _new_attempt(order: Order, cluster: Cluster) -> Path:
    """Make the folder of the next attempt, with the checkpoints of the last one; return it."""
    earlier = attempts(order.folder)
    number = int(earlier[-1].name) + 1 if earlier else 1
    folder = order.folder / ATTEMPTS / str(number)
    folder.mkdir(mode=0o700, parents=True)
    for name in _WRITTEN:
        (folder / name).mkdir(mode=0o700)
    if earlier:
        _copy(earlier[-1] / "checkpoints", folder / "checkpoints")
        for name in _WRITTEN:
            remove(earlier[-1] / name)
    code, mapping = _share(order)
    mapping[str(order.output)] = str(folder / "output")
    moved = replace(order, arguments=tuple(_moved(text, mapping) for text in order.arguments), folder=folder)
    plan = plan_of(moved, Interpreter("python", ()), isolate=False)
    plan["environment"] |= {"PYTHONPATH": str(order.program or code)}
    plan |= {
        "folder": str(order.dataset),
        "limits": limits_of(order.bounds, isolate=False, grouped=False),
        "code": str(code),
        "grace": order.bounds.grace,
        "silence": cluster.times.silence,
        **dict.fromkeys(("lock", "network", "group", "cloud")),
    }
    (folder / "plan.json").write_text(json.dumps(plan))
    shutil.copy(NODE, folder / NODE.name)
    say(folder, "run 0")
    return folder


def _copy(source: Path, target: Path) -> None:
    """Copy checkpoints; a link or a device that a program has made is left out."""
    if source.is_dir() and not source.is_symlink():
        for folder, _, others in walk(source):
            place = target / folder.relative_to(source)
            place.mkdir(exist_ok=True)
            for path in (folder / name for name in others):
                if path.is_file() and not path.is_symlink():
                    shutil.copy2(path, place / path.name, follow_symlinks=False)


def _share(order: Order) -> tuple[Path, dict[str, str]]:
    """Copy what nodes need into the folder of the job; return the folder of packages, and where paths are now."""
    code = order.folder / CODE
    ignored = shutil.ignore_patterns("__pycache__", "client")
    for name in OWN:
        if not (code / name).exists():
            part = code / f"{name}.part"
            remove(part)
            shutil.copytree(ROOT / name, part, ignore=ignored)
            part.rename(code / name)
    mapping = {}
    for number, path in enumerate(order.readable):
        if path.is_relative_to(ROOT):
            mapping[str(path)] = str(code / path.relative_to(ROOT))
            continue
        folder = code / "readable" / str(number)
        folder.mkdir(parents=True, exist_ok=True)
        for file in (path, *(path.parent / name for name in NOTES)):
            if file.is_file():
                shutil.copy(file, folder / file.name)
        mapping[str(path)] = str(folder / path.name)
    return code, mapping


def _moved(text: str, mapping: Mapping[str, str]) -> str:
    """Return an argument `--name=path` with the new path."""
    name, equals, value = text.partition("=")
    return f"{name}{equals}{mapping[value]}" if value in mapping else text


def _collect(folder: Path, order: Order) -> None:
    """Move the output of an attempt to where it is expected."""
    remove(order.output)
    (folder / "output").rename(order.output)
