"""Planning in a process for each motion, which is killed when its caller leaves.

Native code that crashes, runs forever or grows takes its process with it, and nothing else. A new process also makes
results repeatable: OMPL can be seeded once in a process.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import msgspec
import trio

from models.planner.problem import EXTRA, MAX_SECONDS, MAX_SOLIDS, PLANNED, PlanningProblem, Refusal, Trajectory
from schema import ErrorKind, MachineError

AT_ONCE: Final = 2  # processes
GRACE: Final = 20.0  # seconds beyond those of the problem: start, imports and the final check
NICE: Final = 5  # lower priority than what the machine serves
MAX_ANSWER: Final = 16 * 1024 * 1024
_ROOT: Final = str(Path(__file__).resolve().parents[2])
_SIZE: Final = 64 * 1024


class ProcessPlanner:
    """A Planner: `await planner(problem)`."""

    def __init__(self) -> None:
        self._slots = trio.CapacityLimiter(AT_ONCE)

    async def __call__(self, problem: PlanningProblem) -> Trajectory:
        """Return a trajectory; MachineError with an explanation if there is none."""
        if len(problem.solids) > MAX_SOLIDS:
            raise MachineError(
                f"{len(problem.solids)} shapes are more than a planner accepts",
                kind=ErrorKind.EXHAUSTED,
                remedy=f"use at most {MAX_SOLIDS}: leave out those that are far away, or join some",
            )
        if not 0 < problem.seconds <= MAX_SECONDS:
            raise MachineError(
                f"a time of {problem.seconds:g} s for planning",
                kind=ErrorKind.INVALID,
                remedy=f"use up to {MAX_SECONDS:g}",
            )
        request = msgspec.msgpack.encode(problem)
        async with self._slots:
            with trio.move_on_after(problem.seconds + GRACE):
                return await _planned(request, problem.seconds)
        raise _too_long(problem.seconds)


async def _planned(request: bytes, seconds: float) -> Trajectory:
    cpu = int(seconds + GRACE)
    program = (
        f"import os; os.nice({NICE}); import sys; sys.path += {list(_paths())!r}; "  # -I -S: no other path
        f"from models.planner.child import main; main({cpu})"
    )
    process = await trio.lowlevel.open_process(
        [sys.executable, "-I", "-S", "-c", program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
        cwd="/",
        start_new_session=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        with suppress(trio.BrokenResourceError):  # the process has ended; its status says why
            await process.stdin.send_all(request)
        await process.stdin.aclose()
        answer = bytearray()
        while piece := await process.stdout.receive_some(_SIZE):
            answer += piece
            if len(answer) > MAX_ANSWER:
                raise MachineError("the answer of the planner is too long", kind=ErrorKind.INTERNAL)
        status = await process.wait()
    finally:
        process.kill()
        with trio.CancelScope(shield=True):
            await process.stdin.aclose()
            await process.stdout.aclose()
            await process.wait()
    return _decoded(bytes(answer), status, seconds)


def _decoded(answer: bytes, status: int, seconds: float) -> Trajectory:
    if status in (-signal.SIGXCPU, -signal.SIGKILL):
        raise _too_long(seconds)
    if status or not answer:
        name = signal.Signals(-status).name if status < 0 else f"status {status}"
        raise MachineError(
            f"the process of the planner ended unexpectedly ({name})",
            kind=ErrorKind.INTERNAL,
            remedy="try again with another seed; if it stays, report it with the request",
        )
    if answer[:1] == PLANNED:
        return msgspec.msgpack.decode(answer[1:], type=Trajectory)
    raise msgspec.msgpack.decode(answer[1:], type=Refusal).error()


def _too_long(seconds: float) -> MachineError:
    return MachineError(
        f"planning takes longer than {seconds:g} s",
        kind=ErrorKind.TIMEOUT,
        remedy="use fewer obstacles, or allow more time",
    )


@cache
def _paths() -> tuple[str, ...]:
    """Return the folders from which the process imports, without importing anything here."""
    folders = [_ROOT]
    for name in ("msgspec", *EXTRA):
        spec = find_spec(name)
        if spec is not None and spec.origin is not None:
            folders.append(str(Path(spec.origin).parent.parent))
    return tuple(dict.fromkeys(folders))
