"""Sends the report of the agent to the cloud: soon after it has changed, and rarely if it has not.

A report contains the last outcomes of updates, and is sent again until the cloud has accepted it, so that an outcome
which occurred during an outage arrives, too.
"""

from __future__ import annotations

import random
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Final

import structlog
import trio

from agent.control.report import AgentReport, encode, essence
from rpc.api import AGENTS, ApiClient
from schema import ErrorKind, MachineError
from support import ChangeSignal, DoublingDelay
from uplink import CloudAddress

GATHER: Final = 1.0  # seconds after a change, in which further ones are included
SHORTEST: Final = 5.0  # seconds between two reports
PERIOD: Final = 3600.0  # seconds until an unchanged report is sent again, in case the cloud has lost it
FIRST_DELAY: Final = 2.0  # seconds after a failure, doubled after each further one
MAX_DELAY: Final = 300.0
REFUSED: Final = 900.0  # seconds after which a report that the cloud does not take is sent again
JITTER: Final = 0.1  # of PERIOD and REFUSED, so that a fleet does not send at the same moment
LIMIT: Final = 60.0  # seconds for a request; 64 KiB at 2 KiB/s take 32

_REFUSALS: Final = frozenset(
    {
        *(ErrorKind.INVALID, ErrorKind.NOT_FOUND, ErrorKind.PERMISSION, ErrorKind.UNAUTHENTICATED),
        ErrorKind.UNSUPPORTED,  # a cloud without this call
    }
)
_log = structlog.get_logger("agent.cloud")


class Reporter:
    """Sends what `report` returns for the machine at `address`.

    `learned` gets the key of rpc.access.proof, a secret, from each answer that has one.
    """

    def __init__(
        self, address: CloudAddress, report: Callable[[], AgentReport], learned: Callable[[str], None] | None = None
    ) -> None:
        self._report, self._part, self._contact = report, address.part, address.contact
        self._learned = learned
        self._news = ChangeSignal()
        self._logged = ""  # the failure that is logged

    async def follow(self, changes: AsyncGenerator[object, None]) -> None:
        """Look at the report after each change, until cancelled or the changes end."""
        async with aclosing(changes):
            async for _ in changes:
                self._news.announce()

    async def run(self, client: ApiClient, asked: trio.Event) -> None:
        """Send reports until cancelled. `asked` is set once the cloud was asked for settings.

        Waiting for it includes their problems in the first report.
        """
        accepted: AgentReport | None = None
        delay, due = DoublingDelay(FIRST_DELAY, MAX_DELAY), 0.0
        await asked.wait()
        while True:
            await trio.sleep(GATHER)
            news = self._news.next
            report = self._report()
            content = essence(report, accepted)
            if content == accepted and trio.current_time() < due:
                with trio.move_on_at(due):
                    await news.wait()
            elif (error := await self._send(client, report)) is None:
                accepted, due = content, trio.current_time() + PERIOD * _jitter()
                delay.reset()
                await trio.sleep(SHORTEST - GATHER)
            elif error.kind in _REFUSALS:
                await trio.sleep(REFUSED * _jitter())
            elif await self._contact.pause(delay.next() * random.uniform(0.5, 1.0)):
                delay.reset()

    async def _send(self, client: ApiClient, report: AgentReport) -> MachineError | None:
        """Send a report; return why that failed. Failures of the same kind are logged once."""
        failure: MachineError | None = None
        try:
            data = encode(report)
            with trio.fail_after(LIMIT):
                key = await client.call(AGENTS, "", "report_agent", part_id=self._part, report_json=data)
                if self._learned is not None and isinstance(key, str):  # an older cloud returns nothing
                    self._learned(key)
        except trio.TooSlowError:
            failure = MachineError(f"no answer within {LIMIT:g} s", kind=ErrorKind.UNAVAILABLE)
        except ValueError as error:  # a defect of ours, which must not end the agent
            failure = MachineError(f"the report cannot be encoded: {error}", kind=ErrorKind.INVALID)
        except OSError as error:
            failure = MachineError(str(error), kind=ErrorKind.UNAVAILABLE)
        except MachineError as error:
            failure = error
        kind = "" if failure is None else "refused" if failure.kind in _REFUSALS else "unreachable"
        if failure is not None and kind != self._logged:
            _log.warning(_EVENTS[kind], reason=str(failure))
        elif failure is None and self._logged:
            _log.info("the cloud receives the report of the agent again")
        self._logged = kind
        return failure


_EVENTS: Final = {
    "refused": "the cloud does not take the report of the agent; it is sent again every 15 minutes",
    "unreachable": "the report of the agent cannot be sent; it is sent when the cloud can be reached",
}


def _jitter() -> float:
    return random.uniform(1 - JITTER, 1 + JITTER)
