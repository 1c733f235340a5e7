"""Process that plans one motion; see `models.planner.process`.

Its standard input is a Problem, its standard output a Trajectory or a Refusal, in MessagePack. It limits its memory and
time before it reads the problem. The packages of the extra `motion` are imported only if the direct way is blocked.
"""

from __future__ import annotations

import os
import resource
import sys
import time
from importlib.util import find_spec
from typing import Any, Final

import msgspec

from models.planner.problem import EXTRA, PLANNED, REFUSED, PlanningProblem, Refusal, Trajectory
from models.planner.solve import plan
from schema import ErrorKind, MachineError

MEMORY: Final = 3 * 1024**3  # bytes of address space; numpy and OMPL reserve far more than they use


def main(cpu: int) -> None:
    """Plan the motion on standard input, with at most `cpu` seconds of processor time."""
    for limited, value in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_CPU, cpu),
        (resource.RLIMIT_AS, MEMORY),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_NOFILE, 256),
    ):
        hard = resource.getrlimit(limited)[1]
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(limited, (value, value))
    answer = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # native code prints
    result = _result(sys.stdin.buffer.read())
    answer.write((PLANNED if isinstance(result, Trajectory) else REFUSED) + msgspec.msgpack.encode(result))
    answer.flush()
    os._exit(0)  # skip cleanup


def _result(request: bytes) -> Trajectory | Refusal:
    began = time.monotonic()
    try:
        problem = msgspec.msgpack.decode(request, type=PlanningProblem)

        def remaining() -> float:
            return problem.seconds - (time.monotonic() - began)

        return plan(problem, _search(remaining) if installed() else None, lambda: remaining() <= 0)
    except MachineError as error:
        return Refusal(error.kind.value, error.message, error.remedy)
    except MemoryError:
        return Refusal(ErrorKind.EXHAUSTED.value, "planning needs too much memory", "use fewer obstacles")


def installed() -> bool:
    """Return whether the packages for searching are installed; imports none of them."""
    return all(find_spec(name) is not None for name in EXTRA)


def _search(remaining: Any) -> Any:
    def search(*arguments: Any) -> Any:
        from models.planner.native import NativeSearch

        return NativeSearch(remaining)(*arguments)

    return search
