"""machine.cloud.v1.HealthService: states and problems of machines."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from cloud.domain.fleet import health
from cloud.domain.fleet.fleet import FleetMachine
from cloud.domain.machines import reported
from cloud.domain.permissions.rules import ROLE_ANYWHERE, allow
from cloud.services.common.base import Service, guarded
from cloud.services.machines.whole_fleet import for_all_machines


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

        def of(machine: FleetMachine) -> Iterator[PartHealth]:
            for part in machine.parts:
                yield PartHealth(
                    part.id,
                    health.state_of(part, now)[0],
                    reported.problem_count(part.reported),
                    reported.rejected(part.reported),
                    machine.location.id,
                    machine.location.path,
                )

        return await for_all_machines(self, of)
