"""viam.app.v1.AppService: management of organizations, machines and configurations."""

from __future__ import annotations

from cloud.services.common.base import guarded
from cloud.services.configurations import fragments
from cloud.services.configurations.configurations import Configurations
from cloud.services.machines import finding
from cloud.services.machines.logs import Logs
from cloud.services.machines.machines import Machines
from cloud.services.organizations import people, places
from cloud.services.organizations.keys import Keys
from cloud.services.organizations.organizations import Organizations
from cloud.services.registry import deprecation, registry


@guarded
class AppService(
    Organizations,
    Machines,
    Configurations,
    Logs,
    Keys,
    finding.MachineFinding,
    fragments.Fragments,
    registry.Registry,
    deprecation.Deprecations,
    people.People,
    places.PlaceService,
):
    """A call of AppService. Published methods that are missing here are UNIMPLEMENTED."""
