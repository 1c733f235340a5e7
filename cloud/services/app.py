"""viam.app.v1.AppService: what clients and pages arrange. Which role each call needs is one table."""

from __future__ import annotations

from cloud import permissions
from cloud.services import deprecation, finding, fragments, people, places, registry
from cloud.services.base import guarded
from cloud.services.configurations import Configurations
from cloud.services.keys import Keys
from cloud.services.logs import Logs
from cloud.services.machines import Machines
from cloud.services.organizations import Organizations


@guarded(permissions.APP)
class AppService(
    Organizations,
    Machines,
    Configurations,
    Logs,
    Keys,
    finding.Finding,
    fragments.Fragments,
    registry.Registry,
    deprecation.Deprecations,
    people.People,
    places.Places,
):
    """One call. What is not here is UNIMPLEMENTED."""
