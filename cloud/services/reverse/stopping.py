"""Stopping a machine from a page: the published call StopAll, over the connection that the machine opens."""

from __future__ import annotations

from typing import Final

import trio

from cloud.services.common.base import Cloud
from cloud.services.reverse.opening import connection_for, record
from cloud.services.reverse.unary import unary, usable
from cloud.values.author import Author

METHOD: Final = "/viam.robot.v1.RobotService/StopAll"
LIMIT: Final = 15.0  # seconds for the machine to answer; it gives its actuators 10
RECORDING: Final = 5.0  # seconds for the entry in the audit log, after the attempt to stop


async def stop_all(cloud: Cloud, author: Author, part: str) -> None:
    """Cancel all calls of a part and stop everything that moves; return when it has stopped.

    Each stop is recorded in the audit log. The limits of calls in progress do not apply. MachineError: NOT_FOUND or
    PERMISSION as for every call of the machine; UNAVAILABLE if the machine is offline or the connection is lost;
    TIMEOUT if it does not answer; INTERNAL with names and reasons of what could not be stopped.
    """
    reverse = await connection_for(cloud, author, part)
    usable(reverse)
    try:
        await unary(reverse, METHOD, b"", LIMIT, "it may be moving: stop it at the machine")
    finally:
        with trio.move_on_after(RECORDING, shield=True):
            await record(cloud, author, part, METHOD, again=0.0)
