"""Restarts that people request in the cloud: the published call NeedsRestart, at the interval of its answers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Final

import structlog
import trio

from rpc.api import ApiClient
from schema import MachineError
from uplink import CloudAddress

SERVICE: Final = "viam.app.v1.RobotService"
CALL_LIMIT: Final = 15.0  # seconds
SHORTEST: Final = 1.0  # seconds between two calls; reference value
LONGEST: Final = 3600.0
DEFAULT: Final = 5.0  # if the cloud names no interval, or does not answer
REASON: Final = "it was requested in the cloud"

_log = structlog.get_logger("agent.cloud")


async def follow_restarts(client: ApiClient, address: CloudAddress, restart: Callable[[], Awaitable[None]]) -> None:
    """Call `restart` for each request until cancelled; the cloud reports each request once.

    Outages of the cloud are silent: the call for settings logs them. A restart that fails is logged.
    """
    while True:
        interval = DEFAULT
        try:
            with trio.fail_after(CALL_LIMIT):
                answer = await client.call(SERVICE, "", "needs_restart", id=address.part)
        except (MachineError, OSError, trio.TooSlowError):
            pass
        else:
            interval = _interval(answer.get("restart_check_interval"))
            if answer.get("must_restart"):
                await _restart(restart)
        await trio.sleep(interval)


async def _restart(restart: Callable[[], Awaitable[None]]) -> None:
    try:
        await restart()
    except (MachineError, OSError) as error:
        _log.error("machine-server cannot be restarted", reason=REASON, error=str(error))


def _interval(value: timedelta | None) -> float:
    seconds = value.total_seconds() if value is not None else 0.0
    return min(max(seconds, SHORTEST), LONGEST) if seconds > 0 else DEFAULT
