"""Requests of people to agents, and the call with which an agent waits for them."""

from __future__ import annotations

from typing import Final

import trio

from cloud.domain.machines import install_codes
from cloud.domain.machines.signalling import OFFERED, SIGNALLED
from cloud.domain.permissions.access import ObjectKind
from cloud.domain.permissions.rules import allow, home_owner, machine, operator
from cloud.domain.releases import requests
from cloud.domain.releases.requests import AgentRequest
from cloud.domain.training.jobs import EVENTS
from cloud.services.agents import agent_messages as m
from cloud.services.common.base import Cloud, Service
from cloud.services.common.standing import while_allowed
from cloud.store.events import EVERY
from cloud.store.sql import Sql
from cloud.work.openings import WAITING_AGENTS
from schema import ErrorKind, MachineError
from uplink.releases import CHECK, REQUEST_WAIT, UPDATE

MAX_ARRIVED: Final = 20  # ids in one call; a part has at most three requests


class AgentRequests(Service):
    """Requests to agents."""

    @allow(operator(ObjectKind.PART, "part_id"))
    async def mark_agent_for_update(self, part_id: str, program: str) -> None:
        """Have the agent of a part install the update of a program that waits now, whatever maintenance says."""
        await self.change(lambda sql: requests.request(sql, part_id, UPDATE, program, self.now()))

    @allow(operator(ObjectKind.PART, "part_id"))
    async def mark_agent_for_check(self, part_id: str) -> None:
        """Have the agent of a part ask for settings and versions now."""
        await self.change(lambda sql: requests.request(sql, part_id, CHECK, "", self.now()))

    @allow(home_owner(ObjectKind.PART, "part_id"))
    async def create_install_code(self, part_id: str) -> m.InstallCode:
        """Create a code that gives the credentials of a part to one computer, once. The former ones are void."""
        return m.InstallCode(
            *await self.change(lambda sql: install_codes.create(sql, part_id, self.author, self.now()))
        )

    @allow(machine("part_id"))
    async def wait_for_agent_requests(self, part_id: str, arrived: list[str]) -> list[m.AgentRequest]:
        """Return the requests to the agent of a part; wait for one at most REQUEST_WAIT seconds, if there is none.

        `arrived` are the ids of requests that a former call returned: they are deleted. EXHAUSTED for too many calls
        of one part at the same time.
        """
        if len(arrived) > MAX_ARRIVED:
            raise MachineError(f"more than {MAX_ARRIVED} ids", kind=ErrorKind.INVALID)
        if arrived:
            await self.write(lambda sql: requests.arrived(sql, part_id, arrived))

        def work(sql: Sql) -> list[AgentRequest]:
            return requests.pending(sql, part_id, self.now())

        with (
            self.cloud.openings.hold(f"the agent of {part_id}", WAITING_AGENTS),
            self.cloud.events.listening(requests.TOPIC, part_id) as news,
        ):
            opened = await self.read(work)
            with trio.move_on_after(REQUEST_WAIT):
                with while_allowed(self.cloud, self.author, self.again):
                    while not opened and not self.cloud.openings.closing:
                        await news.next()
                        if not self.cloud.openings.closing:
                            opened = await self.read(work)
        return [m.AgentRequest(entry.id, entry.kind, entry.program, entry.requested, entry.expires) for entry in opened]


async def end_waiting(cloud: Cloud) -> None:
    """Wait to be cancelled, and then end the calls that wait for requests, offers, signals or events of jobs.

    They would delay the shutdown.
    """
    try:
        await trio.sleep_forever()
    finally:
        cloud.openings.closing = True
        for topic in (requests.TOPIC, OFFERED, SIGNALLED, EVENTS):
            cloud.events.notify(topic, EVERY)
