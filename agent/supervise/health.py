"""Decides from the answers of machine-server whether it is dead, and when it is started again. Pure.

A server that is busy must not be killed, and one that hangs must be:

* Every HTTP response is a sign of life, also an error or a refusal, since only a working event loop can send it.
* Only consecutive requests without a response count, and it takes `failures` of them, over about two minutes: longer
  than any operation that the server may run on its event loop, and than its own time limits for modules and sensors.
* A request does not count if the agent itself was late while it waited, because then the computer was too busy or
  asleep, and the server with it; nor if the process is suspended by a debugger or SIGSTOP, which a person has done.
"""

from __future__ import annotations

from enum import Enum
from typing import Final, NamedTuple

from support import doubled

FIRST_DELAY: Final = 5.0  # seconds before the first restart; reference value
LONGEST_DELAY: Final = 300.0
STABLE: Final = 600.0  # seconds of running after which crashes are forgotten


class ProbeAnswer(Enum):
    """The result of a request."""

    ANSWERED = "it answered"
    SILENT = "it did not answer"
    EXCUSED = "it could not answer"


class HealthLimits(NamedTuple):
    """Times in seconds."""

    start: float = 600.0  # until the first answer
    request: float = 10.0  # until the answer to one request
    interval: float = 15.0  # between requests
    retry: float = 5.0  # between requests before the first answer
    failures: int = 6  # unanswered requests in a row


DEFAULT_LIMITS: Final = HealthLimits()


class ServerHealth(NamedTuple):
    """What the requests to one process have shown. `deadline` is the time of the first answer at the latest."""

    deadline: float
    served: bool = False
    failures: int = 0


def judge(health: ServerHealth, answer: ProbeAnswer, now: float, limits: HealthLimits) -> tuple[ServerHealth, str]:
    """Return the health after one more request, and the reason to kill the process, or an empty text."""
    if answer is ProbeAnswer.ANSWERED:
        return health._replace(served=True, failures=0), ""
    if not health.served:
        late = now >= health.deadline and answer is ProbeAnswer.SILENT
        return health, f"it did not serve within {limits.start / 60:g} minutes" if late else ""
    if answer is ProbeAnswer.EXCUSED:
        return health, ""
    health = health._replace(failures=health.failures + 1)
    dead = health.failures >= limits.failures
    return health, f"it did not answer {health.failures} requests in a row" if dead else ""


def crashes_in_a_row(before: int, ran: float) -> int:
    """Return the number of crashes in a row after one more, of a process that ran for `ran` seconds."""
    return 1 if ran >= STABLE else before + 1


def restart_delay(crashes: int) -> float:
    """Return the seconds to wait before the restart after so many crashes in a row."""
    return doubled(FIRST_DELAY, LONGEST_DELAY, crashes)
