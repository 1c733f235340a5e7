"""Published calls for machines and parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, Final
from urllib.parse import urlsplit

from cloud.documents import pieces
from cloud.domain.configurations import configurations
from cloud.domain.configurations.fragment_uses import named_by, parts_using
from cloud.domain.machines import machines
from cloud.domain.machines.online import Presence, presence, silent_for
from cloud.domain.organizations import sharing, tenants
from cloud.domain.permissions.access import ObjectKind, Role, holder, is_home, place_of
from cloud.domain.permissions.rules import ROLE_ANYWHERE, allow, home_owner, operator, owner, signed_in
from cloud.domain.permissions.shown import Shown, ShownText, reads_secrets, shown, shown_text, text_of
from cloud.domain.triggering.queue import enqueue_checks_of_machine
from cloud.services.common import messages as m
from cloud.services.common.base import Cloud, Service
from cloud.store.sql import Sql

STATES: Final = {
    Presence.NEVER: m.OnlineState.AWAITING_SETUP,
    Presence.ONLINE: m.OnlineState.ONLINE,
    Presence.OFFLINE: m.OnlineState.OFFLINE,
}
DEFAULT_PORT: Final = 8080  # default port of machine-server
TOGETHER: Final = 100  # machines in one transaction of a call that returns all of them


class Machines(Service):
    """Machines, their parts, and fleet summaries."""

    # ---- machines

    @allow(operator(ObjectKind.LOCATION, "location_id"))
    async def list_robots(self, location_id: str) -> list[m.Robot]:
        """Return the machines of a location."""
        return await self.read(
            lambda sql: [robot_message(self, machine) for machine in machines.machines(sql, location_id)]
        )

    @allow(signed_in("as ListRobots, for each location"))
    async def list_robots_for_locations(self, location_ids: Sequence[str]) -> list[m.Robot]:
        """Return the machines of several locations; NOT_FOUND if the caller has no access to one of them."""

        def work(sql: Sql) -> list[m.Robot]:
            for location in location_ids:
                self.require(sql, Role.OPERATOR, ObjectKind.LOCATION, location)
            return [
                robot_message(self, machine)
                for location in location_ids
                for machine in machines.machines(sql, location)
            ]

        return await self.read(work)

    @allow(operator(ObjectKind.ORGANIZATION, "org_id"))
    async def list_robots_for_org(self, org_id: str) -> list[m.Robot]:
        """Return all machines of an organization, and those in locations shared with it."""
        return await self.read(
            lambda sql: [
                robot_message(self, machine)
                for location in (*tenants.locations(sql, org_id), *sharing.reached_locations(sql, org_id))
                for machine in machines.machines(sql, location.id)
            ]
        )

    @allow(operator(ObjectKind.ROBOT, "id"))
    async def get_robot(self, id: str) -> m.Robot:  # noqa: A002 - field of the wire
        """Return a machine."""
        return await self.read(lambda sql: robot_message(self, machines.machine(sql, id)))

    @allow(home_owner(ObjectKind.LOCATION, "location"))
    async def new_robot(self, name: str, location: str) -> str:
        """Create a machine with its main part and return its id."""
        return await self.change(lambda sql: machines.create_machine(sql, location, name, self.now()))

    @allow(owner(ObjectKind.ROBOT, "id"))
    async def update_robot(self, id: str, name: str = "", location: str = "") -> m.Robot:  # noqa: A002 - field of the wire
        """Rename a machine, or move it to another location of the organization."""

        def work(sql: Sql) -> m.Robot:
            if location:
                self.require(sql, Role.OWNER, ObjectKind.LOCATION, location, home=True)
            with sharing.moving(sql, *filter(None, (machines.machine(sql, id).location_id, location))):
                machines.update_machine(sql, id, name, location)
            if location:
                enqueue_checks_of_machine(sql, id, self.now())
            return robot_message(self, machines.machine(sql, id))

        return await self.change(work)

    @allow(home_owner(ObjectKind.ROBOT, "id"))
    async def delete_robot(self, id: str) -> None:  # noqa: A002 - field of the wire
        """Delete a machine with its parts."""
        await self.change(lambda sql: machines.delete_machine(sql, id))

    # ---- parts

    @allow(operator(ObjectKind.ROBOT, "robot_id"))
    async def get_robot_parts(self, robot_id: str) -> list[m.RobotPart]:
        """Return the parts of a machine, the main part first."""
        parts = await self.read(lambda sql: [part_facts(self, sql, part) for part in machines.parts(sql, robot_id)])
        now = self.now()
        return [await self.offload(len(part.text), partial(part_message, part, now)) for part in parts]

    @allow(operator(ObjectKind.PART, "id", inside=True))
    async def get_robot_part(self, id: str) -> m.GetRobotPartResponse:  # noqa: A002 - field of the wire
        """Return a part with its configuration, which is also included as text."""

        facts = await self.read_checked(lambda sql: part_facts(self, sql, machines.part(sql, id)))
        message = await self.offload(len(facts.text), partial(part_message, facts, self.now()))
        return m.GetRobotPartResponse(message, message.robot_config_json or ShownText("{}"))

    @allow(home_owner(ObjectKind.ROBOT, "robot_id"))
    async def new_robot_part(self, robot_id: str, part_name: str) -> str:
        """Add a part to a machine and return its id."""
        return await self.change(lambda sql: machines.create_part(sql, robot_id, part_name, self.now()))

    @allow(home_owner(ObjectKind.PART, "part_id"))
    async def delete_robot_part(self, part_id: str) -> None:
        """Delete a part other than the main one."""
        await self.change(lambda sql: machines.delete_part(sql, part_id))

    @allow(owner(ObjectKind.PART, "part_id"))
    async def mark_part_as_main(self, part_id: str) -> None:
        """Make a part the main one, which `connect_to_machine` reaches."""
        await self.change(lambda sql: machines.mark_main(sql, part_id))

    @allow(operator(ObjectKind.PART, "part_id"))
    async def mark_part_for_restart(self, part_id: str) -> None:
        """Have the machine-server of a part restart at its next request."""
        await self.change(lambda sql: machines.mark_restart(sql, part_id, requested=True))

    @allow(home_owner(ObjectKind.PART, "part_id"))
    async def create_robot_part_secret(self, part_id: str) -> m.RobotPart:
        """Create another secret of a part; older ones stay valid until they are deleted."""

        def work(sql: Sql) -> PartFacts:
            machines.create_secret(sql, part_id, self.now())
            return part_facts(self, sql, machines.part(sql, part_id))

        facts = await self.change(work)
        return await self.offload(len(facts.text), partial(part_message, facts, self.now()))

    @allow(home_owner(ObjectKind.PART, "part_id"))
    async def delete_robot_part_secret(self, part_id: str, secret_id: str) -> None:
        """Delete a secret of a part, which becomes invalid immediately."""
        await self.change(lambda sql: machines.delete_secret(sql, part_id, secret_id))

    # ---- the fleet

    @allow(ROLE_ANYWHERE)
    async def list_machine_summaries(
        self,
        organization_id: str,
        fragment_ids: Sequence[str] = (),
        location_ids: Sequence[str] = (),
        limit: int | None = None,
    ) -> list[m.LocationSummary]:
        """Return all machines that the caller may see, by location; with `fragment_ids`, those that use any of them."""

        def places(sql: Sql) -> tuple[list[tenants.Location], set[str]]:
            using = {part for fragment in fragment_ids for part in parts_using(sql, fragment)}
            reached = sharing.reached_locations(sql, organization_id)
            locations = [*tenants.locations(sql, organization_id), *reached]
            return [each for each in locations if not location_ids or each.id in location_ids], using

        def some(
            sql: Sql, location: str, records: Sequence[machines.MachineRecord], left: int
        ) -> list[m.MachineSummary]:
            roles = holder(sql, self.author)
            summaries: list[m.MachineSummary] = []
            everywhere = roles.role(place_of(sql, ObjectKind.LOCATION, location)) is not Role.NONE
            for record in records:
                parts = machines.parts(sql, record.id)
                uses = not fragment_ids or any(part.id in using for part in parts)
                if not parts or not uses or len(summaries) >= left:
                    continue
                if everywhere or roles.role(place_of(sql, ObjectKind.ROBOT, record.id)) is not Role.NONE:
                    summaries.append(self._summary(sql, record, parts))
            return summaries

        locations, using = await self.read(places)
        left, result = limit or 1_000_000, []
        for location in locations:
            records = await self.read(partial(machines.machines, place=location.id))
            shown: list[m.MachineSummary] = []
            for start in range(0, len(records), TOGETHER):
                batch = records[start : start + TOGETHER]
                shown += await self.read(partial(some, location=location.id, records=batch, left=left - len(shown)))
            left -= len(shown)
            if shown:
                result.append(m.LocationSummary(location.id, location.name, shown))
        return result

    def _summary(
        self, sql: Sql, machine: machines.MachineRecord, parts: Sequence[machines.PartRecord]
    ) -> m.MachineSummary:
        now = self.now()
        return m.MachineSummary(
            machine.id,
            machine.name,
            [
                m.PartSummary(
                    part_id=part.id,
                    part_name=part.name,
                    is_main_part=part.main,
                    online_state=STATES[presence(part.seen, now, online=part.online, gone=part.gone)],
                    seconds_since_online=silent_for(part.seen, now, online=part.online, gone=part.gone),
                    last_access=part.seen,
                    last_online=part.seen,
                    viam_server_version=_version(
                        part.reported.get("version") or part.reported.get("viam_server_running")
                    ),
                    viam_agent_version=_version(part.reported.get("agent_running")),
                    os=part.reported.get("os"),
                    platform=part.reported.get("platform"),
                    dns_name=host_of(self.cloud, part) or address_of(part, {}),
                    fragments=[m.FragmentSummary(*fragment) for fragment in named_by(sql, part.id)],
                )
                for part in parts
            ],
        )


def _version(reported: object) -> m.Version | None:
    """Return the reported version as a message, without a leading "v"; None if there is none."""
    return m.Version(str(reported).removeprefix("v")) if reported else None


def robot_message(service: Service, machine: machines.MachineRecord) -> m.Robot:
    """Return a machine as a message, with its online state."""
    now = service.now()
    return m.Robot(
        id=machine.id,
        name=machine.name,
        location=machine.location_id,
        last_access=machine.seen,
        created_on=machine.created,
        online_state=STATES[presence(machine.seen, now, online=machine.online, gone=machine.gone)],
        seconds_since_online=silent_for(machine.seen, now, online=machine.online, gone=machine.gone),
    )


REPORTED: Final = ("host", "os", "platform", "distro", "version", "ips")
"""Keys of a machine's report that clients see in `user_supplied_info`."""


@dataclass(frozen=True, slots=True)
class PartFacts:
    """Data for the message of a part: `text` is its configuration, `whole` whether its secrets are included."""

    part: machines.PartRecord
    text: str
    whole: bool
    secrets: Sequence[m.SharedSecret]
    host: str  # see `host_of`


def part_facts(service: Service, sql: Sql, part: machines.PartRecord) -> PartFacts:
    """Read the data of a part; its own secrets are included only for owners in its organization."""
    whole = reads_secrets(sql, service.author, ObjectKind.PART, part.id)
    owner = whole and is_home(sql, service.author, place_of(sql, ObjectKind.PART, part.id))
    secrets = [m.SharedSecret(*secret) for secret in machines.secrets_of(sql, part.id)] if owner else []
    return PartFacts(part, configurations.current_text(sql, part), whole, secrets, host_of(service.cloud, part))


def part_message(facts: PartFacts, now: datetime) -> m.RobotPart:
    """Return a part with its configuration as a message.

    It parses the configuration, so it must not be called in a transaction, in which it would delay others.
    """
    part, document = facts.part, pieces.loads(facts.text)
    return m.RobotPart(
        id=part.id,
        name=part.name,
        dns_name=part.host_name,
        secret=facts.secrets[0].secret if facts.secrets else "",
        robot=part.machine_id,
        location_id=part.location_id,
        robot_config=shown(document, whole=facts.whole),
        last_access=part.seen,
        user_supplied_info={key: part.reported[key] for key in REPORTED if part.reported.get(key)},
        main_part=part.main,
        fqdn=facts.host or address_of(part, document),
        local_fqdn=address_of(part, document) if facts.host else part.host_name,
        created_on=part.created,
        secrets=list(facts.secrets),
        last_updated=part.saved,
        online_state=STATES[presence(part.seen, now, online=part.online, gone=part.gone)],
        seconds_since_online=silent_for(part.seen, now, online=part.online, gone=part.gone),
        robot_config_json=shown_text(facts.text, whole=facts.whole),
    )


def historical(part: machines.PartRecord, document: Shown, saved: datetime) -> m.RobotPart:
    """Return a part with a former configuration, without its own secrets."""
    return m.RobotPart(
        id=part.id,
        name=part.name,
        robot=part.machine_id,
        location_id=part.location_id,
        robot_config=document,
        main_part=part.main,
        last_updated=saved,
        robot_config_json=text_of(document),
    )


def host_of(cloud: Cloud, part: machines.PartRecord) -> str:
    """Return the host name of a part that leads to this cloud, with the port unless it is 443; "" if it has none."""
    name, base = cloud.hosts.name_of(part.id, part.name), urlsplit(cloud.links.base)
    port = base.port or (443 if base.scheme == "https" else 80)
    return f"{name}:{port}" if name and port != 443 else name


def cloud_address_of(cloud: Cloud, part: machines.PartRecord) -> str:
    """Return the address at which another machine of this cloud has the part as a remote.

    Without a domain of machines it is only a label, which machine-server understands.
    """
    return host_of(cloud, part) or cloud.hosts.label_of(part.id, part.name)


def address_of(part: machines.PartRecord, document: Mapping[str, Any]) -> str:
    """Return the address of a part: the reported one, else its first IP address with the port of its document."""
    listening = part.reported.get("address")
    if isinstance(listening, str) and listening:
        return listening
    ips = part.reported.get("ips") or []
    network = document.get("network")
    bind = str(network.get("bind_address", "")) if isinstance(network, Mapping) else ""
    port = bind.rpartition(":")[2] or str(DEFAULT_PORT)
    return f"{ips[0]}:{port}" if ips else part.host_name
