"""machine.cloud.v1.HealthService: states and problems of machines."""

from __future__ import annotations

from msgspec import Struct

from cloud.domain.fleet import fleet, health
from cloud.domain.machines import reported
from cloud.domain.permissions.rules import ROLE_ANYWHERE, allow
from cloud.services.common.base import Service, guarded


class PartHealth(Struct, frozen=True):
    """State of a part, one of cloud.domain.fleet.health.STATES, and the number of its problems."""

    part_id: str
    state: str
    problems: int
    rejected: str
    location_id: str
    location: str  # with those that contain it, as on the pages


@guarded
class HealthService(Service):
    """Health of the machines of the caller."""

    @allow(ROLE_ANYWHERE)
    async def list_health(self) -> list[PartHealth]:
        """Return the health of all parts at which the caller has a role."""
        now = self.now()
        machines = await self.read(lambda sql: fleet.fleet(sql, self.author))
        return [
            PartHealth(
                part.id,
                health.state_of(part, now)[0],
                reported.problem_count(part.reported),
                reported.rejected(part.reported),
                machine.location.id,
                machine.location.path,
            )
            for machine in machines
            for part in machine.parts
        ]
