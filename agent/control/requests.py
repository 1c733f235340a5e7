"""Requests of people in the cloud: check now, and update now. The agent waits for them with a call that stays open."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple

import structlog
import trio

from rpc.api import AGENTS, ApiClient
from schema import ErrorKind, MachineError
from support import DoublingDelay
from uplink import CloudAddress
from uplink.releases import REQUEST_WAIT

CALL_LIMIT: Final = REQUEST_WAIT + 15.0  # seconds
SHORTEST: Final = 1.0  # seconds from the begin of a call to that of the next one
FIRST_DELAY: Final = 2.0  # seconds after a failed call, doubled after each further one
MAX_DELAY: Final = 300.0
UNSUPPORTED: Final = 3600.0  # seconds after which a cloud without this call is asked again
JITTER: Final = 0.1  # of UNSUPPORTED
REMEMBERED: Final = 20  # requests that are not carried out again

_log = structlog.get_logger("agent.cloud")


class CloudRequest(NamedTuple):
    """A request: `kind` is CHECK or UPDATE of `uplink.releases`, or one of a later version."""

    kind: str
    program: str  # of an update


async def follow_requests(
    client: ApiClient, address: CloudAddress, carry_out: Callable[[CloudRequest], Awaitable[None]]
) -> None:
    """Call `carry_out` once for each request, until cancelled. Outages are silent: the call for settings logs them."""
    delay = DoublingDelay(FIRST_DELAY, MAX_DELAY)
    arrived: list[str] = []
    handled: deque[str] = deque(maxlen=REMEMBERED)
    while True:
        begun = trio.current_time()
        try:
            with trio.fail_after(CALL_LIMIT):
                answer = await client.call(AGENTS, "", "wait_for_agent_requests", part_id=address.part, arrived=arrived)
        except (MachineError, OSError, trio.TooSlowError) as error:
            if getattr(error, "kind", None) is ErrorKind.UNSUPPORTED:
                await trio.sleep(UNSUPPORTED * random.uniform(1 - JITTER, 1 + JITTER))
                continue
            if await address.contact.pause(delay.next() * random.uniform(0.5, 1.0)):
                delay.reset()
            continue
        delay.reset()
        arrived = [entry["id"] for entry in answer]
        for entry in answer:
            if entry["id"] not in handled:
                handled.append(entry["id"])
                _log.info("a person requested it in the cloud", request=entry["kind"], program=entry["program"])
                await carry_out(CloudRequest(entry["kind"], entry["program"]))
        await trio.sleep_until(begun + SHORTEST)
